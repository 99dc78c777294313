"""`pullback.special`: special functions, under torch's names.

Most of them are computed by SciPy, the extra ``scipy``. The operations are entries of the table in `pullback.ops`.

>>> import pullback
>>> pullback.special.erf(pullback.tensor([0.0, 1.0]))
tensor([0.0000, 0.8427])
"""

from .table.entry import NAMES

__all__ = sorted(NAMES["special"])


def __dir__() -> list[str]:
    return sorted(__all__)


globals().update(NAMES["special"])
