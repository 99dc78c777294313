"""Sparse tensors: what they hold, how they are made, products at the nonzeros alone."""
