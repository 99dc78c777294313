"""Tests of what a tensor is: memory, views, copies, text, subclasses, NumPy's protocol, files."""
