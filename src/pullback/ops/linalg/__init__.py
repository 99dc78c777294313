"""Linear algebra: systems, factors, spectra, norms and functions of matrices. A matrix is the last two axes."""
