"""`halo`: the borders of neighbours, for a grid that is split over ranks."""

from __future__ import annotations

from .. import errors
from ..ops import NAMES
from ..tensor.tensor import Tensor, need_tensor
from .moves import Exchange, move
from .placements import placed_on
from .process_group import Group


def halo(x: Tensor, axis: int, width: int = 1, periodic: bool = False, group: Group | None = None) -> Tensor:
    """A rank's part of a grid with the borders of its neighbours on both sides along an axis.

    The parts lie in the order of the ranks along `axis`; each has at least `width` cells there. The result has ``2 *
    width`` more: the last cells of the rank before in front, the first of the next behind. At the ends of the grid they
    are zeros, or with `periodic` those of the other end. x, result: varying, of the same shape on every rank. The
    gradient of borders is added to the cells that they came from, on the ranks that have them.

    IndexError: there is no such axis. ValueError: a width that is not between 1 and the number of cells.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> dist.halo(pullback.arange(4.0), 0, periodic=True)
    tensor([3., 0., 1., 2., 3., 0.])
    >>> dist.destroy_process_group()
    """
    found = placed_on(need_tensor("halo()", x), group)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(errors.message("halo(): axis", expected=f"from {-x.ndim} to {x.ndim - 1}", found=str(axis)))
    cells = x.shape[axis]
    if not 1 <= width <= cells:
        raise ValueError(
            errors.message("halo(): width", expected=f"from 1 to {cells}, the cells of a rank", found=str(width))
        )
    rank, size = found.rank, found.size
    before = rank - 1 if rank else (size - 1 if periodic else None)
    after = rank + 1 if rank + 1 < size else (0 if periodic else None)
    front = move(Exchange(found, "halo()", after, before), x.narrow(axis, cells - width, width))
    behind = move(Exchange(found, "halo()", before, after), x.narrow(axis, 0, width))
    return NAMES[""]["cat"]([front, x, behind], axis)
