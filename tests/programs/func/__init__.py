"""Programs about the transforms of functions."""
