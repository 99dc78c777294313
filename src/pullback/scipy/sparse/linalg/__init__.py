"""scipy.sparse.linalg with derivatives."""

from ...mirror import home
from .direct import SuperLU, factorized, splu, spsolve

__all__ = ["SuperLU", "factorized", "splu", "spsolve"]

__getattr__, __dir__ = home("sparse.linalg", globals(), same="MatrixRankWarning ArpackError ArpackNoConvergence")
