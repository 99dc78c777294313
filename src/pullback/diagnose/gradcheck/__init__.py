"""`gradcheck` and `gradgradcheck`: whether a backward computes the derivative of its function."""
