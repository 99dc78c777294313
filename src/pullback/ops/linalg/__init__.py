"""Linear algebra: systems, factors, spectra, norms, functions of matrices, which are the last two axes."""
