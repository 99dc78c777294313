"""NumPy's own functions on Tensors, where torch has no function of the same meaning."""
