"""Linear maps along one axis, each output from a few inputs: averages of windows, resampling, mirrored borders.

`applied` applies one map to each of the last axes. Its adjoint is the same with the maps transposed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tensor.adding import summed
from ..tensor.arrays import beside, empty_beside
from ..tensor.protocol import on_arrays
from .sliding import Array

_BLOCK = 1 << 16  # elements computed at a time, so that they stay in the processor's cache
_RUNS = 16  # the most runs of consecutive positions that get a slice each
_MANY = 8  # with more inputs for an output, they are gathered at once and added up by segments


class Taps:
    """A sparse matrix ``(outputs, inputs)`` along an axis: ``y[rows[i]] += weights[i] * x[columns[i]]`` for all i.

    The rows are sorted. Without weights, all weights are 1. groups: a number for each i, such that no row and no column
    occurs twice with the same number; by default, the place of a column in its row. A Taps never changes.
    """

    def __init__(
        self,
        outputs: int,
        inputs: int,
        rows: Array,
        columns: Array,
        weights: Array | None = None,
        groups: Array | None = None,
    ) -> None:
        self.outputs, self.inputs = outputs, inputs
        self.rows, self.columns, self.weights, self.groups = rows, columns, weights, groups

    @functools.cached_property
    def transposed(self) -> Taps:
        """The adjoint."""
        order = np.argsort(self.columns, kind="stable")
        weights, groups = (None if a is None else a[order] for a in (self.weights, self.groups))
        found = Taps(self.inputs, self.outputs, self.columns[order], self.rows[order], weights, groups)
        found.__dict__["transposed"] = self
        return found

    @functools.cached_property
    def terms(self) -> list[tuple[Any, Any, Array | None]]:
        """Maps with at most one input for an output, which add up to this one: its rows, its columns, the weights.

        The fullest map comes first. Rows and columns are slices where possible.
        """
        groups = np.arange(self.rows.size) - np.searchsorted(self.rows, self.rows)
        groups = groups if self.groups is None else self.groups
        numbers, sizes = np.unique(groups, return_counts=True)
        found = []
        for number in numbers[np.argsort(-sizes, kind="stable")]:
            chosen = groups == number
            weights = None if self.weights is None else self.weights[chosen]
            found.append((_selection(self.rows[chosen]), _selection(self.columns[chosen]), weights))
        return found

    @functools.cached_property
    def full(self) -> bool:
        """Whether the first of the terms writes every output, so that no output has to begin as 0."""
        if not self.terms:
            return not self.outputs
        rows = self.terms[0][0]
        size = len(range(self.outputs)[rows]) if isinstance(rows, slice) else rows.size
        return size == self.outputs or self.single

    @functools.cached_property
    def single(self) -> bool:
        """Whether every output has exactly one input."""
        return np.array_equal(self.rows, np.arange(self.outputs))

    @functools.cached_property
    def by_terms(self) -> bool:
        """Whether going term by term is faster than gathering all inputs first."""
        return len(self.terms) <= _MANY or all(isinstance(columns, slice) for _, columns, _ in self.terms)

    @functools.cached_property
    def segments(self) -> tuple[Array, Array]:
        """The outputs that have an input, and where in `columns` the inputs of each begin."""
        return np.unique(self.rows, return_index=True)

    @functools.cached_property
    def total(self) -> bool:
        """Whether it is the sum of all inputs."""
        return self.outputs == 1 and self.weights is None and np.array_equal(self.columns, np.arange(self.inputs))

    def __call__(self, x: Array, axis: int) -> Array:
        """The map applied along an axis of x, counted from the first."""
        outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
        x3 = x.reshape(outer, self.inputs, inner)
        y = empty_beside(x, (outer, self.outputs, inner))
        scale = np.dtype(np.float64 if x.dtype in (np.float64, np.complex128) else np.float32)
        work = self._by_terms if self.by_terms else self._by_segments
        step = max(1, _BLOCK // max(1, max(self.outputs, self.inputs) * inner))
        for start in range(0, outer, step):
            if not self.full:
                y[start : start + step] = 0
            work(x3[start : start + step], y[start : start + step], scale)
        return y.reshape(*x.shape[:axis], self.outputs, *x.shape[axis + 1 :])

    def _by_terms(self, x: Array, y: Array, scale: Any) -> None:
        for k, (rows, columns, weights) in enumerate(self.terms):
            part = x[:, columns] if isinstance(columns, slice) else np.take(x, columns, 1)
            if weights is not None:
                part = part * beside(x, weights.astype(scale)[:, None])
            if not k or self.single:
                y[:, rows] = part
            else:
                y[:, rows] += part

    def _by_segments(self, x: Array, y: Array, scale: Any) -> None:
        part = np.take(x, self.columns, 1)
        if self.weights is not None:
            part = part * beside(x, self.weights.astype(scale)[:, None])
        filled, starts = self.segments
        y[:, filled] = np.add.reduceat(part, beside(x, starts), 1, dtype=x.dtype)


def _selection(positions: Array) -> Any:
    """Positions along an axis as a slice, if possible; a repeated position as a slice of length 1, which broadcasts."""
    if not positions.size:
        return positions
    steps = np.diff(positions) if positions.size > 1 else np.ones(1, np.int64)
    step, first, last = int(steps[0]), int(positions[0]), int(positions[-1])
    if (steps != step).any():
        return positions
    if step < 0:
        return slice(first, last - 1 if last else None, step)
    return slice(first, last + 1, max(step, 1))


def of_rows(outputs: int, inputs: int, columns: Array, weights: Array) -> Taps:
    """Taps from arrays ``(outputs, k)`` of inputs and weights; inputs of weight zero are left out."""
    kept = weights != 0
    rows = np.broadcast_to(np.arange(outputs)[:, None], columns.shape)
    return Taps(outputs, inputs, rows[kept], columns[kept], weights[kept])


def picked(inputs: int, columns: Array) -> Taps:
    """Taps with one input for each output: the input at the position in `columns`."""
    steps = np.diff(columns)
    turns = np.abs(steps) != 1
    turns[1:] |= steps[1:] != steps[:-1]
    groups = np.concatenate([[0], np.cumsum(turns)])[: columns.size]  # of consecutive positions, up or down
    found = Taps(columns.size, inputs, np.arange(columns.size), columns)
    found.groups = groups if columns.size and groups[-1] < _RUNS else None
    return found


def runs(inputs: int, starts: Array, ends: Array, evenly: bool = False) -> Taps:
    """The sum of consecutive inputs for each output, from its start to before its end, within the inputs.

    evenly: the starts have equal distances.
    """
    firsts = np.clip(starts, 0, inputs)  # at once, since a window may be longer than memory
    lengths = np.clip(ends, firsts, inputs) - firsts
    rows = np.repeat(np.arange(starts.size), lengths)
    columns = np.arange(rows.size) - np.repeat(np.cumsum(lengths) - lengths, lengths) + firsts[rows]
    return Taps(starts.size, inputs, rows, columns, None, columns - starts[rows] if evenly else None)


@on_arrays
def applied(maps: Sequence[Taps | None], values: Array) -> Array:
    """The maps applied to the last axes, one each (None: that axis stays), those that make an axis shorter first."""
    first, dtype = values.ndim - len(maps), values.dtype
    todo = [(first + i, m) for i, m in enumerate(maps) if m is not None]
    totals = tuple(axis for axis, m in todo if m.total)
    out: Array = values.astype(np.float32) if dtype == np.float16 else values
    if totals:
        out = summed(out, totals, True)
    todo = [(axis, m) for axis, m in todo if not m.total]
    for axis, m in [(axis, m) for axis, m in todo if m.outputs < m.inputs]:
        out = m(out, axis)
    for axis, m in [(axis, m) for axis, m in reversed(todo) if m.outputs >= m.inputs]:
        out = m(out, axis)
    return np.copy(values) if out is values else out.astype(dtype, copy=False)
