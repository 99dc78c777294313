"""Linear algebra: systems, factors, spectra, norms, functions of matrices, which are the last two axes."""

from . import determinants, factors, functions, ldl, leastsquares, lowrank, lu, norms, older, solving, spectral
