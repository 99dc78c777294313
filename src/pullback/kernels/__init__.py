"""Arithmetic on arrays that NumPy lacks. Nothing here knows a Tensor or an operation."""
