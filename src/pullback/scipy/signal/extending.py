"""Signals continued beyond their ends: the linear map that extends an axis, and its adjoint, which folds it back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_nodes import Array, floating, linear

_PADS: dict[str, Any] = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "nearest": "edge",
    "mirror": "reflect",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}
"""NumPy's name of each mode of `scipy.ndimage` that repeats values."""


def sources(n: int, before: int, after: int, mode: str) -> Any:
    """The number of the element that stands at each place of the extended axis; None for the mode 'constant'."""
    return None if mode in ("constant", "grid-constant") else np.pad(np.arange(n), (before, after), _PADS[mode])


def extended(x: Any, axis: int, before: int, after: int, mode: str, cval: Any = 0.0) -> Any:
    """An axis continued on both sides in one of the modes of `scipy.ndimage`.

    >>> extended(np.array([1.0, 2.0, 3.0]), 0, 2, 1, "mirror")
    tensor([3., 2., 1., 2., 3., 2.], dtype=pullback.float64)
    """
    x = floating(x)
    if before == after == 0:
        return x
    n, axis = x.shape[axis], axis % x.ndim - x.ndim
    inner: Any = (..., slice(before, before + n), *[slice(None)] * (-1 - axis))
    index = sources(n, before, after, mode) if n else None  # zeros, whose number a filter takes off again

    def apply(a: Array) -> Array:
        if index is not None:
            return np.take(a, index, axis=axis)
        shape = [*a.shape]
        shape[axis] = before + n + after
        out = np.zeros(shape, a.dtype)
        out[inner] = a
        return out

    def fold(g: Array) -> Array:
        out = np.array(g[inner])
        if index is not None:
            ends = np.r_[0:before, before + n : before + n + after]
            np.add.at(np.moveaxis(out, axis, 0), index[ends], np.moveaxis(np.take(g, ends, axis=axis), axis, 0))
        return out

    out = linear(apply, fold, x, batched=True)
    if index is None and np.any(cval != 0):
        border = np.full(out.shape[axis], cval, x._data.dtype if np.isrealobj(cval) else np.complex128)
        border[before : before + n] = 0
        out = out + border.reshape((-1, *[1] * (-1 - axis)))
    return out


def flipped(x: Any, axes: Any) -> Any:
    """A Tensor in the opposite order along some axes, conjugated."""
    return np.conj(np.flip(x, tuple(axes)))
