"""Which of many parts of an array share elements with one of them, told by numbers alone.

A part that numbers and slices take is within a box: a range along each axis. Two parts whose boxes do not meet share no
element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Box = tuple[Sequence[int], Sequence[int]]
"""The first and the last number along each axis."""

_ANYWHERE = np.iinfo(np.int64)


class Boxes:
    """The boxes of parts of one array, which are called by their numbers. A part is anywhere until its box is known."""

    def __init__(self, whole: Array) -> None:
        axes = sorted(((s, n) for s, n in zip(whole.strides, whole.shape, strict=True) if n > 1), reverse=True)
        self._steps, reach = [s for s, _ in axes], 0
        for s, n in reversed(axes):
            if s < reach + whole.itemsize:  # the axes inside reach beyond a step of this one
                self._steps = []
            reach += s * (n - 1)
        self.whole, self._start, self._reach = whole, address(whole), reach
        self._low = self._high = np.empty((len(self._steps), 0), np.int64)

    def of(self, part: Array) -> Box | None:
        """The box of what numbers and slices took of the array; None if it is not known."""
        if not part.size or not self._steps or min(part.strides, default=0) < 0:
            return None
        first = address(part) - self._start
        last = first + sum([s * (n - 1) for s, n in zip(part.strides, part.shape, strict=True)])
        if first < 0 or last > self._reach:  # it lies elsewhere
            return None
        low, high = [], []
        for step in self._steps:
            (i, first), (j, last) = divmod(first, step), divmod(last, step)
            low.append(i)
            high.append(j)
        return None if first or last else (low, high)

    def meet(self, box: Box, count: int) -> list[int]:
        """The numbers, below `count`, of the parts that may share an element with a box."""
        before = self._low.shape[1]
        if before < count:
            room = len(self._steps), 2 * count
            low, high = np.full(room, _ANYWHERE.min), np.full(room, _ANYWHERE.max)
            low[:, :before], high[:, :before] = self._low, self._high
            self._low, self._high = low, high
        near = np.ones(count, np.bool_)
        for low, high, i, j in zip(self._low, self._high, *box, strict=True):
            near &= (low[:count] <= j) & (high[:count] >= i)
        found: list[int] = np.flatnonzero(near).tolist()
        return found

    def renumber(self, numbers: Sequence[int]) -> None:
        """Let the parts be others: each was the part of this number, or is new, -1."""
        before = self._low.shape[1]
        at = [n if n < before else -1 for n in numbers]
        for name, unknown in (("_low", _ANYWHERE.min), ("_high", _ANYWHERE.max)):
            ends = np.pad(getattr(self, name), ((0, 0), (0, 1)), constant_values=unknown)
            setattr(self, name, ends[:, at])

    def is_known(self, number: int) -> bool:
        """Whether the box of a part is known."""
        return bool(self._low[0, number] != _ANYWHERE.min)

    def put(self, number: int, box: Box) -> None:
        """Say what the box of a part is."""
        self._low[:, number], self._high[:, number] = box


def apart(a: Box, b: Box) -> bool:
    """Whether two boxes do not meet."""
    return any(i > n or j < m for i, j, m, n in zip(*a, *b, strict=True))


def address(a: Any) -> int:
    """Where the first element of an array lies."""
    found: int = a.__array_interface__["data"][0]
    return found


__all__ = ["Boxes", "address", "apart"]
