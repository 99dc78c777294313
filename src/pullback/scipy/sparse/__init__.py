"""scipy.sparse with derivatives: matrices with Tensors as values, and `linalg`."""

from ..mirror import home, instead
from . import linalg
from .constructors import coo_array, csc_array, csr_array, diags_array, eye_array

__all__ = ["coo_array", "csc_array", "csr_array", "diags_array", "eye_array", "linalg"]

instead(
    "sparse",
    {
        "identity": "write eye_array(n)",
        "spdiags": "write diags_array(diagonals, offsets=offsets, shape=(m, n))",
        "lil_matrix dok_matrix lil_array dok_array": (
            "collect values, rows and columns in lists, then write csr_array((numpy.stack(values), (rows, columns)), "
            "shape=...), which sums those of one place"
        ),
        "hstack vstack bmat block_array block_diag kron kronsum tril triu": (
            "for matrices of arrays alone, write csr_array(m) for the matrix m that SciPy's function makes; with "
            "Tensors, make the matrix once, of all values: csr_array((numpy.concatenate(values), (rows, columns)), "
            "shape=...)"
        ),
    },
)

__getattr__, __dir__ = home("sparse", globals(), same="SparseEfficiencyWarning SparseWarning issparse")
