"""Programs about backward passes: order, what arrives, what is refused, leaves, threads."""
