"""What needs a GPU: `pytest tests/gpu`. Where CuPy or a GPU is missing, all of it is left out, and that is said."""
