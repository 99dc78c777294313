"""Linear algebra, as `torch.linalg`: matrices are the last two axes of a tensor, and the axes in front are a batch.

The functions come from the table in `pullback.ops`. A matrix without a result, e.g. the inverse of a singular one,
raises `LinAlgError`, which is both a RuntimeError and NumPy's error of that name.

>>> import pullback
>>> pullback.linalg.solve(pullback.eye(2) * 2, pullback.ones(2))
tensor([0.5000, 0.5000])
"""

from .errors import LinAlgError
from .table.entry import NAMES

__all__ = ["LinAlgError", *sorted(NAMES["linalg"])]


def __dir__() -> list[str]:
    return sorted(__all__)


globals().update(NAMES["linalg"])
