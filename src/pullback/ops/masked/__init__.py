"""`pullback.masked`: reductions and normalisations of the elements where a mask is True, under torch's names.

Masked elements change neither a result nor a gradient, whatever they are, and their own gradient is 0. The operations
are entered in the table when this module is loaded.

>>> import pullback
>>> x = pullback.tensor([[1.0, 2.0], [3.0, pullback.nan]])
>>> pullback.masked.mean(x, 1, mask=~x.isnan())
tensor([1.5000, 3.0000])
"""

from ...table.entry import NAMES as _NAMES
from . import centres, reducing, slicewise, totals

__all__ = sorted(_NAMES["masked"])


def __dir__() -> list[str]:
    return sorted(__all__)


globals().update(_NAMES["masked"])
