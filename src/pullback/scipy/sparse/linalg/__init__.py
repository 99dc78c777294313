"""scipy.sparse.linalg with derivatives."""

from ...mirror import home
from .direct import SuperLU, factorized, splu, spsolve
from .krylov import bicgstab, cg, gmres
from .linear_operator import LinearOperator

__all__ = ["LinearOperator", "SuperLU", "bicgstab", "cg", "factorized", "gmres", "splu", "spsolve"]

__getattr__, __dir__ = home("sparse.linalg", globals(), same="MatrixRankWarning ArpackError ArpackNoConvergence")
