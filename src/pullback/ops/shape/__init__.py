"""The same elements under other axes: reshaped, transposed, cut, joined, repeated."""
