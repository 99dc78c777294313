"""Programs about what happens to tensors besides mathematics."""
