"""Sparse tensors: their contents, constructors, and products computed at the nonzeros alone."""
