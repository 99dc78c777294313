"""From a call of a Python function to a program of NumPy operations."""
