"""Programs about nodes: edges, names, hooks, what they save."""
