"""The optimisers, a file for each. All are in `pullback.optim`."""
