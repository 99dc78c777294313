"""scipy.sparse.linalg with derivatives: solvers, eigenpairs, exponentials."""

from ...mirror import home, refuse
from .direct import SuperLU, factorized, splu, spsolve
from .eigenpairs import eigs, eigsh, svds
from .exponential import expm_multiply
from .krylov import bicgstab, cg, gmres
from .linear_operator import LinearOperator

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
    "splu",
    "spsolve",
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
