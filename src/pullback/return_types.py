"""The named tuples that operations return: ``x.max(dim=0)`` is a `return_types.max` of ``values`` and ``indices``.

>>> import pullback
>>> pullback.tensor([1.0, 3.0, 2.0]).max(dim=0)
pullback.return_types.max(
values=tensor(3.),
indices=tensor(1))
"""

from .table.results import RESULT_TYPES

__all__ = sorted(RESULT_TYPES)

globals().update(RESULT_TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)
