"""Sweep: one elementwise rule over many arrays, in blocks that stay in the processor's cache.

A rule makes a dozen passes over its arrays. Over a large parameter each pass would fetch all of it from memory again,
and for a small one the calls cost more than the arithmetic. So a rule gets blocks instead of parameters: large arrays
are cut, small ones are joined, and a complex array is read as the real array of its parts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..tensor.arrays import empty_beside
from ..tensor.protocol import is_foreign

Array = np.ndarray[Any, Any]
Rule = Callable[[Sequence[Array], Sequence[Array]], None]

BLOCK = 1 << 19
"""The most bytes of each array that a rule sees at once."""

JOINED = 1 << 14
"""Arrays of up to this many bytes are joined: copying them costs less than a call for each."""

WORK = 3
"""The number of scratch blocks that a rule gets."""


class Sweep:
    """Calls ``rule(arrays, work)`` for blocks of tuples of arrays; the rule may write all but the first in place.

    The arrays of a tuple have one shape and one dtype. `work` is uninitialised memory of the block's shape. The sweep
    keeps its memory for the next call.
    """

    def __init__(self) -> None:
        self._memory: dict[tuple[np.dtype[Any], int], list[Array]] = {}

    def __call__(self, rule: Rule, members: Sequence[Sequence[Array]]) -> None:
        """Apply the rule to all members; all have the same dtype and the same number of arrays."""
        joinable = len(members) > 1 and are_apart(members) and not any(is_foreign(arrays[1]) for arrays in members)
        joined: list[Sequence[Array]] = []
        total = 0
        for arrays in members:
            size = arrays[0].nbytes
            if not joinable or size > JOINED:
                self._apply(rule, arrays)
                continue
            if total + size > BLOCK:
                self._join(rule, joined)
                joined, total = [], 0
            joined.append(arrays)
            total += size
        if joined:
            self._join(rule, joined)

    def _apply(self, rule: Rule, arrays: Sequence[Array]) -> None:
        """Apply the rule to one tuple of arrays."""
        if is_foreign(arrays[1]):  # a device has no use for blocks that fit the processor's cache
            for block in _blocks(arrays, sys.maxsize):
                rule(block, [empty_beside(block[0], block[0].shape) for _ in range(WORK)])
            return
        real = arrays[0].dtype if arrays[0].dtype.kind != "c" else arrays[0].real.dtype
        rows = self._rows(real, WORK)
        for block in _blocks(arrays, BLOCK // real.itemsize):
            like = block[0]
            work = rows if like.size == rows[0].size else [row[: like.size] for row in rows]
            rule(block, work if like.ndim == 1 else [row.reshape(like.shape) for row in work])

    def _join(self, rule: Rule, members: Sequence[Sequence[Array]]) -> None:
        """Apply the rule to several tuples at once: gather their arrays, apply it, scatter the results."""
        columns = list(zip(*members, strict=True))
        total = sum(array.size for array in columns[0])
        rows = [row[:total] for row in self._rows(columns[0][0].dtype, -len(columns))]
        for row, column in zip(rows, columns, strict=True):
            np.concatenate(column, axis=None, out=row)
        self._apply(rule, rows)
        for row, column in zip(rows[1:], columns[1:], strict=True):
            start = 0
            for array in column:
                end = start + array.size
                array[...] = row[start:end].reshape(array.shape)
                start = end

    def _rows(self, dtype: np.dtype[Any], kind: int) -> list[Array]:
        """Work memory of `kind` blocks, or memory of `-kind` blocks to join arrays in."""
        rows = self._memory.get((dtype, kind))
        if rows is None:
            rows = self._memory[dtype, kind] = list(np.empty((abs(kind), BLOCK // dtype.itemsize), dtype))
        return rows


def are_apart(members: Sequence[Sequence[Array]]) -> bool:
    """Whether no two parameters share memory (tied weights): else the second must see the first one's new values."""
    return len({id(arrays[1] if arrays[1].base is None else arrays[1].base) for arrays in members}) == len(members)


def _blocks(arrays: Sequence[Array], most: int) -> Iterator[Sequence[Array]]:
    """Views that together cover the arrays, of at most `most` real numbers; flat where the arrays are contiguous."""
    first = arrays[0]
    if all(a.flags.c_contiguous for a in arrays):
        flat = arrays if first.ndim == 1 else [a.reshape(-1) for a in arrays]
        if first.dtype.kind == "c":
            flat = [a.view(a.real.dtype) for a in flat]
        size = flat[0].size
        if size <= most:
            yield flat
        else:
            for start in range(0, size, most):
                yield [a[start : start + most] for a in flat]
    elif first.dtype.kind == "c":
        yield from _blocks([a.real for a in arrays], most)
        yield from _blocks([a.imag for a in arrays], most)
    elif first.size <= most:
        yield arrays
    elif step := most * len(first) // first.size:
        for start in range(0, len(first), step):
            yield [a[start : start + step] for a in arrays]
    else:
        for i in range(len(first)):
            yield from _blocks([a[i] for a in arrays], most)
