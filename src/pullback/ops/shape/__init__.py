"""Operations on shape: the same elements reshaped, transposed, cut, joined, repeated."""
