"""Tensors from data, of a size, converted to another dtype, drawn at random."""
