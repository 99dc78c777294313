"""Arithmetic on arrays that NumPy does not have. Nothing here knows a Tensor or an operation."""
