"""scipy.sparse with derivatives: matrices with Tensors as values, and `linalg`."""

from ..mirror import home
from . import linalg
from .constructors import coo_array, csc_array, csr_array, diags_array, eye_array

__all__ = ["coo_array", "csc_array", "csr_array", "diags_array", "eye_array", "linalg"]

__getattr__, __dir__ = home("sparse", globals(), same="SparseEfficiencyWarning SparseWarning issparse")
