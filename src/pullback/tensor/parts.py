"""Where the parts of a tensor lie that indices took, so that a write looks at those alone that it may reach.

A program such as ``out[i] = step(out[i - 1])`` takes a part in each step, and the graph keeps those that its nodes have
saved. A part by numbers and slices is a box of the base: a range along each axis. Two parts whose boxes do not meet
share no element.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .tensor import Tensor

Array = np.ndarray[Any, Any]

FEW = 16
"""Up to this number of views it takes less time to look at each of them."""

_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Parts:
    """The boxes of the views of one base. What is not known to be a box reaches everywhere.

    views: the list of the memory's views. base: the array of the base.
    """

    __slots__ = ("_axes", "_high", "_low", "_start", "base", "views")

    def __init__(self, views: list[weakref.ref[Tensor]], base: Array) -> None:
        self.views, self.base = views, base
        axes = sorted(((s, n) for s, n in zip(base.strides, base.shape, strict=True) if n > 1), reverse=True)
        self._axes = [s for s, _ in axes]
        reach = 0  # of the axes inside: if they reach beyond a step of the next, numbers do not tell the place
        for s, n in reversed(axes):
            if s <= reach:
                self._axes = []
            reach += s * (n - 1)
        self._start = _address(base)
        self._low = self._high = np.empty((len(self._axes), 0), np.int64)

    def box(self, part: Array) -> tuple[list[int], list[int]] | None:
        """The first and the last number along each axis of the base; None if it is not known.

        part: elements of the base that numbers and slices chose.
        """
        first = _address(part) - self._start
        last = first + sum([s * (n - 1) for s, n in zip(part.strides, part.shape, strict=True)])
        if not part.size or not self._axes or min(part.strides, default=0) < 0:
            return None
        low, high = [], []
        for step in self._axes:
            (i, first), (j, last) = divmod(first, step), divmod(last, step)
            low.append(i)
            high.append(j)
        return None if first or last else (low, high)

    def reached(self, box: tuple[list[int], list[int]], part_of: Callable[[Tensor], Array | None]) -> list[Tensor]:
        """The living views that may have an element in a box, in their order.

        part_of: the array of a view that is a part, and of which a write elsewhere changes nothing; else None.
        """
        low, high = self._room(len(self.views))
        near = np.ones(len(self.views), np.bool_)
        for k, (i, j) in enumerate(zip(*box, strict=True)):
            near &= (low[k] <= j) & (high[k] >= i)
        found = []
        for number in np.flatnonzero(near).tolist():
            view = self.views[number]()
            if view is None or view._view is None:
                continue
            if low[0, number] == _FIRST and (part := part_of(view)) is not None and (own := self.box(part)) is not None:
                low[:, number], high[:, number] = own
                if any(a > j or b < i for a, b, i, j in zip(*own, *box, strict=True)):
                    continue
            found.append(view)
        return found

    def _room(self, count: int) -> tuple[Array, Array]:
        """The boxes of so many views; those that were added since reach everywhere."""
        before = self._low.shape[1]
        if before < count:
            room = (len(self._axes), 2 * count)
            low, high = np.full(room, _FIRST), np.full(room, _LAST)
            low[:, :before], high[:, :before] = self._low, self._high
            self._low, self._high = low, high
        return self._low[:, :count], self._high[:, :count]


def _address(a: Array) -> int:
    found: int = a.__array_interface__["data"][0]
    return found


__all__ = ["FEW", "Parts"]
