"""scipy.sparse.linalg with derivatives: solvers, eigenpairs, exponentials."""

from ...mirror import home, refuse
from .direct import SuperLU, factorized, splu, spsolve, spsolve_triangular
from .eigenpairs import eigs, eigsh, svds
from .exponential import expm_multiply
from .krylov import bicgstab, cg, gmres
from .linear_operator import LinearOperator
from .sparse_norms import norm

__all__ = [
    "LinearOperator",
    "SuperLU",
    "bicgstab",
    "cg",
    "eigs",
    "eigsh",
    "expm_multiply",
    "factorized",
    "gmres",
    "norm",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "svds",
]

refuse(
    "sparse.linalg",
    {
        "spilu": "an incomplete factorisation is a preconditioner, on which the solution does not depend; "
        "give M=LinearOperator with its solve to cg, gmres or bicgstab",
        "use_solver": "it chooses a library for scipy.sparse.linalg.spsolve",
        "is_sptriangular": "it is a yes or no",
        "spbandwidth": "it counts diagonals",
    },
)

__getattr__, __dir__ = home("sparse.linalg", globals(), same="MatrixRankWarning ArpackError ArpackNoConvergence")
