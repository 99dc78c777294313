"""Making tensors: from data, of a given size, converted to another dtype, drawn at random."""
