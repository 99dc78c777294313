"""Programs about `vmap`."""
