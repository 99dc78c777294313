"""Sums of arrays over axes, added up in blocks.

NumPy adds the elements of one run of memory in pairs, but rows one after the other: the sum of 300,000 rows of 0.1 in
single precision is 29,920 instead of 30,000. Here rows are added in blocks of a few, and then the sums of the blocks,
so the error grows with the logarithm of their number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FEW = 256  # rows that are added one after the other, as NumPy does
BLOCK = 64  # rows of a block
SHORT = 32  # elements; a shorter row is copied next to its neighbours, a shorter run is not added up by itself
NEAR = 1 << 14  # elements of a row, at most, that stays in the cache while others are added to it
WIDE = 512  # elements that are added at once, in which several short rows lie side by side

_add_up: Any = np.add.reduce  # Any: the type of ndarray has no axes by position
_SINGLE = np.dtype(np.float32)


def summing(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to add up numbers of `dtype` in: single for half precision, where adding 1 to 2048 changes nothing.

    >>> ones = np.ones((3000, 2), np.float16)
    >>> ones.sum(0).tolist(), np.add.reduce(ones, 0, summing(ones.dtype)).tolist()
    ([2048.0, 2048.0], [3000.0, 3000.0])
    """
    return _SINGLE if dtype.char == "e" or dtype.kind == "V" else dtype


def summed(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """``np.sum``, of an array in blocks, over an axis, a tuple of axes, or all. Half precision is added up in single.

    What is no array answers NumPy itself. Warnings of overflow and of inf - inf, which torch does not give, arise in a
    frame of this package, where they are silenced.

    >>> rows = np.full((300_001, 3), 0.1, np.float32)
    >>> np.add.reduce(rows, 0).round(), summed(rows, 0).round()
    (array([29921., 29921., 29921.], dtype=float32), array([30000., 30000., 30000.], dtype=float32))
    """
    if type(x) is not np.ndarray:
        return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)
    wanted = x.dtype if dtype is None else dtype
    if wanted.kind not in "fcV":
        return _add_up(x, axis, dtype, None, keepdims)
    exact = _SINGLE if wanted.char == "e" or wanted.kind == "V" else wanted  # `summing`, without the call
    at_once = x.size <= FEW or _in_one_run(x, axis)
    found = _add_up(x, axis, exact, None, keepdims) if at_once else _by_blocks(x, axis, keepdims, exact)
    return found if exact is wanted else found.astype(wanted)


def _in_one_run(x: Array, axes: Any) -> bool:
    """Whether what is added up lies in one run of memory, or is few numbers."""
    if axes is None:
        return x.flags.forc
    ndim, shape = x.ndim, x.shape
    axes = [axis % ndim for axis in (axes if isinstance(axes, tuple) else (axes,))]
    few = math.prod([shape[axis] for axis in axes]) <= FEW
    return few or (x.flags.c_contiguous and min(axes) == ndim - len(axes))


def _by_blocks(x: Array, axes: Any, keepdims: bool, dtype: np.dtype[Any]) -> Any:
    """The sum over axes of an array seen as few axes as it takes, in the order of memory, as NumPy goes through it."""
    axes = range(x.ndim) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    axes = [axis % x.ndim for axis in axes]
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    shape: list[int] = []
    marked: list[bool] = []
    step = 0
    for axis in order:
        n, stride = x.shape[axis], x.strides[axis]
        if n == 1:
            continue
        if shape and marked[-1] == (axis in axes) and step == n * stride:
            shape[-1] *= n
        else:
            shape.append(n)
            marked.append(axis in axes)
        step = stride
    total = _folded(x.transpose(order).reshape(shape), marked, dtype)
    kept = [axis for axis in order if axis not in axes]
    total = total.reshape([x.shape[axis] for axis in kept])
    total = total.transpose(sorted(range(len(kept)), key=kept.__getitem__))
    return np.expand_dims(total, tuple(axes)) if keepdims else total


def _folded(x: Array, marked: list[bool], dtype: np.dtype[Any]) -> Any:
    """The sum over the axes that are marked: first of long runs, then of blocks, until few rows are left.

    Runs in rows that stay in the processor's cache are added up last: NumPy adds whole rows faster.
    """
    if marked[-1] and True in marked[:-1]:
        if SHORT <= math.prod(x.shape[marked.index(True) + 1 :]) <= NEAR:
            return np.asarray(_add_up(_folded(x, [*marked[:-1], False], dtype), -1, dtype))
        if x.shape[-1] >= SHORT:
            x = _add_up(x, -1, dtype)
            marked = marked[:-1]
    rows = [axis for axis, wanted in enumerate(marked[:-1]) if wanted]
    if not marked[-1] and len(rows) == 1 and not x.flags.c_contiguous and math.prod(x.shape[rows[0] + 1 :]) < SHORT:
        x = np.ascontiguousarray(x)
    while math.prod([x.shape[axis] for axis in rows]) > FEW:
        x = _of_blocks(x, max(rows, key=x.shape.__getitem__), dtype)
    return np.asarray(_add_up(x, tuple(axis for axis, wanted in enumerate(marked) if wanted), dtype))


def _of_blocks(x: Array, axis: int, dtype: np.dtype[Any]) -> Array:
    """The sums of the blocks along an axis. Short rows are added several at a time, as one wide row."""
    n, before, after = x.shape[axis], x.shape[:axis], x.shape[axis + 1 :]
    lead = (slice(None),) * axis
    out = np.empty((*before, -(-n // BLOCK), *after), dtype)
    side = max(1, min(WIDE // max(1, math.prod(after)), n // BLOCK))
    rows = blocks = 0
    while rows < n:  # as many as fit side by side; a rest of fewer; an incomplete block
        side = min(side, max(1, (n - rows) // BLOCK))
        height = min(BLOCK, n - rows)
        times = (n - rows) // (side * height)
        part = x[(*lead, slice(rows, rows := rows + times * height * side))]
        sums = out[(*lead, slice(blocks, blocks := blocks + times * side))]
        part = part.reshape(*before, times, height, side, *after)
        _add_up(part, axis + 1, dtype, sums.reshape(*before, times, side, *after))
    return out
