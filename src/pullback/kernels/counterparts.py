"""What stands in for functions of NumPy that a library of arrays for devices lacks, as CuPy does.

Each function here is NumPy's own on NumPy's arrays, and on all payloads but arrays of another library: those compute
with functions that they have. Nothing here looks at values, so nothing waits for the device.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from ..tensor.arrays import beside, zeros_beside
from ..tensor.protocol import is_foreign

# Reductions and scans -------------------------------------------------------------------------------------------------

FOLDS: dict[Any, Any] = {np.maximum: np.max, np.minimum: np.min, np.logical_and: np.all, np.logical_or: np.any}
_SCANS = (np.add, np.multiply)


def folded(ufunc: np.ufunc, x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
    """``ufunc.reduce`` of the largest, the smallest, `and` or `or`.

    >>> folded(np.maximum, np.array([[1.0, 3.0], [2.0, 0.0]]), axis=0)
    array([2., 3.])
    """
    if not is_foreign(x):
        how = {} if initial is None else {"initial": initial}
        return ufunc.reduce(x, axis=axis, keepdims=keepdims, **how)
    if initial is None:
        return FOLDS[ufunc](x, axis=axis, keepdims=keepdims)
    if not x.size:
        return np.full_like(x, initial, shape=np.sum(np.empty(x.shape, bool), axis=axis, keepdims=keepdims).shape)
    return ufunc(FOLDS[ufunc](x, axis=axis, keepdims=keepdims), initial)


def scanned(ufunc: np.ufunc, x: Any, axis: int, dtype: Any = None) -> Any:
    """``ufunc.accumulate`` along an axis, for an associative ufunc.

    >>> scanned(np.maximum, np.array([1.0, 3.0, 2.0]), 0)
    array([1., 3., 3.])
    """
    if not is_foreign(x) or ufunc in _SCANS:
        return ufunc.accumulate(x, axis=axis, dtype=dtype)
    found, step = np.moveaxis(x if dtype is None else x.astype(dtype), axis, -1), 1
    while step < found.shape[-1]:  # over stretches of twice the length each time (Hillis and Steele, 1986)
        found = np.concatenate([found[..., :step], ufunc(found[..., step:], found[..., :-step])], axis=-1)
        step *= 2
    return np.moveaxis(found, -1, axis)


def vecdot(x: Any, y: Any) -> Any:
    """``np.vecdot``: the sum of the products of the last axes, conjugates of `x` taken.

    >>> vecdot(np.array([1.0, 2.0]), np.array([3.0, 4.0])).item()
    11.0
    """
    if not is_foreign(x):
        return np.vecdot(x, y)
    return np.matmul(np.conj(x)[..., None, :], y[..., None])[..., 0, 0]


def counted(mask: Any, axis: int) -> Any:
    """``np.count_nonzero`` of a mask along an axis, which is kept."""
    return np.sum(mask, axis=axis, keepdims=True, dtype=np.int64)


# Positions that repeat ------------------------------------------------------------------------------------------------

_AT: dict[Any, str] = {np.add: "iIlLqQfd", np.maximum: "iIlLqQfd", np.minimum: "iIlLqQfd"}
"""The types for which devices combine values at one position by an atomic instruction."""


def combine_at(ufunc: np.ufunc, target: Any, places: Any, values: Any) -> None:
    """``ufunc.at`` of arrays with one axis: `target` combined with each value at its place.

    >>> x = np.array([1.0, 2.0])
    >>> combine_at(np.multiply, x, np.array([1, 1]), np.array([3.0, 5.0]))
    >>> x
    array([ 1., 30.])
    """
    if not is_foreign(target) or target.dtype.char in _AT.get(ufunc, ""):
        ufunc.at(target, places, values)
    elif math.prod(places.shape):
        _combine_runs(ufunc, target, places, beside(target, np.asarray(values)) if np.isscalar(values) else values)


def _combine_runs(ufunc: np.ufunc, target: Any, places: Any, values: Any) -> None:
    """As `combine_at`, by sorting the places: the values of a run of equal places are combined by a scan."""
    values = np.broadcast_to(values, places.shape).astype(target.dtype)
    order = np.argsort(places, kind="stable")
    places, values = np.take(places, order), np.take(values, order)
    n, step = places.shape[0], 1
    while step < n:
        same = np.equal(places[step:], places[:-step])
        joined = np.where(same, ufunc(values[:-step], values[step:]), values[step:])
        values, step = np.concatenate([values[:step], joined]), 2 * step
    last = np.concatenate([np.not_equal(places[1:], places[:-1]), np.ones_like(places[:1], dtype=bool)])
    # all but the last of a run go to a place behind the array, so that no place is written twice with different values
    wide = np.concatenate([target, zeros_beside(target, (1,))])
    wide[np.where(last, places, target.shape[0])] = ufunc(np.take(target, places), values)
    target[...] = wide[:-1]


# Layout and windows ---------------------------------------------------------------------------------------------------


def contiguous(x: Any) -> Any:
    """``np.ascontiguousarray``, which NumPy answers for its own arrays alone."""
    if type(x) is np.ndarray:
        return np.ascontiguousarray(x)
    return x if x.flags.c_contiguous else np.copy(x, order="C")


def strided_windows(x: Any, kernel: Sequence[int], places: Sequence[int], step: Any, spacing: Any) -> Any:
    """A view ``(..., *kernel, *places)`` of the elements under windows that slide over the last axes.

    step: how far a window moves; spacing: the distance of its elements. Both have a number for each of these axes.

    >>> strided_windows(np.arange(5), (2,), (2,), (2,), (1,))
    array([[0, 2],
           [1, 3]])
    """
    lead, space = x.ndim - len(kernel), len(kernel)
    if not is_foreign(x):
        steps = x.strides[lead:]
        strides = [d * n for d, n in zip(spacing, steps, strict=True)] + [
            s * n for s, n in zip(step, steps, strict=True)
        ]
        return as_strided(x, (*x.shape[:lead], *kernel, *places), (*x.strides[:lead], *strides))
    spans = tuple(d * (k - 1) + 1 for d, k in zip(spacing, kernel, strict=True))
    seen: Any = sliding_window_view(x, spans, axis=tuple(range(lead, x.ndim)))
    moved = [slice(0, s * (n - 1) + 1, s) for s, n in zip(step, places, strict=True)]
    seen = seen[(..., *moved, *(slice(None, None, d) for d in spacing))]
    order = [*range(lead), *range(lead + space, lead + 2 * space), *range(lead, lead + space)]
    return np.transpose(seen, order)


# Linear algebra -------------------------------------------------------------------------------------------------------


def checked(function: Any, *arrays: Any) -> Any:
    """A function of `np.linalg`, with its LinAlgError: CuPy raises it where it is asked to, for it has to wait then."""
    if type(arrays[0]).__module__.partition(".")[0] != "cupy":
        return function(*arrays)
    with sys.modules["cupyx"].errstate(linalg="raise"):
        return function(*arrays)


def solved(a: Any, b: Any) -> Any:
    """``np.linalg.solve``, whose stacks of matrices may broadcast."""
    if is_foreign(a):
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (np.broadcast_to(m, (*lead, *m.shape[-2:])) for m in (a, b))
    return checked(np.linalg.solve, a, b)
