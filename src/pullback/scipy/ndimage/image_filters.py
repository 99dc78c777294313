"""Linear filters of images: correlation with weights after the image is continued beyond its border."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.ndimage

from ...ops.make.conversion import to
from ...tensor.tensor import Tensor
from ..array_nodes import Array, floating, linear
from ..mirror import mirrors
from ..signal.convolving import Convolution, Way, along, by_image_filter
from ..signal.extending import extended
from ..user_functions import bare, plain_setting


def as_output(where: str, out: Any, output: Any) -> Any:
    """The result in the dtype that `output` names. TypeError for an array: a recorded result is a new Tensor."""
    if output is None:
        return out
    if isinstance(output, (np.ndarray, Tensor)):
        raise TypeError(f"ndimage.{where}: output must be None or a dtype; the result is a new Tensor")
    dtype = np.dtype(output)
    if dtype.kind not in "fc":
        raise TypeError(f"ndimage.{where}: output must be a floating dtype, for the result has derivatives")
    return to(out, dtype)


def each_axis(value: Any, count: int) -> list[Any]:
    """One setting for each axis. RuntimeError, SciPy's, for the wrong number."""
    several = isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", 1) > 0
    found = list(value) if several else [value] * count
    if len(found) != count:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return found


def axes_of(axes: Any, ndim: int) -> list[int]:
    """The axes of a filter. Errors, as SciPy's, for those that are not there and for one that is there twice."""
    if axes is None:
        return list(range(ndim))
    found = [int(np.lib.array_utils.normalize_axis_index(int(a), ndim)) for a in np.atleast_1d(axes)]
    if len(set(found)) < len(found):
        raise ValueError("axes must be unique")
    return found


def _correlated(x: Any, weights: Any, axis: int, mode: str, cval: Any, origin: int = 0) -> Any:
    """``y[i] = sum(w[j] x[i + j - len(w) // 2 - origin])`` along an axis; complex weights are conjugated."""
    size = weights.shape[0]
    before = size // 2 + origin
    x = extended(x, axis, before, size - 1 - before, mode, cval)
    return along(x, np.conj(np.flip(weights, 0)), axis)


def _one_axis(name: str, input: Any, weights: Any, axis: int, output: Any, mode: str, cval: Any, origin: int) -> Any:
    x, w = floating(input), floating(weights)
    cval, origin = plain_setting(f"ndimage.{name}", cval=cval, origin=origin)
    few = bare(x)[tuple(slice(1) for _ in x.shape)]
    getattr(scipy.ndimage, name)(few, bare(w), axis, None, mode, cval, origin)  # SciPy's checks
    if name == "convolve1d":
        origin = -origin - (len(w) % 2 == 0)
        w = np.conj(np.flip(w, 0))
    return as_output(name, _correlated(x, w, axis, mode, cval, origin), output)


@mirrors("ndimage.correlate1d", derivative="convolution, the border folded back; correlation for the weights")
def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The correlation of one axis with weights, differentiable in both. Integer images count as float64.

    >>> import pullback
    >>> w = pullback.tensor([1.0, 1.0], requires_grad=True)
    >>> correlate1d([1.0, 2.0, 4.0], w).sum().backward()
    >>> w.grad
    tensor([4., 7.])
    """
    return _one_axis("correlate1d", input, weights, axis, output, mode, cval, origin)


@mirrors("ndimage.convolve1d", derivative="correlation, the border folded back; correlation for the weights")
def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The convolution of one axis with weights, differentiable in both.

    >>> import pullback
    >>> convolve1d(pullback.tensor([1.0, 2.0, 4.0]), [1.0, 0.0], mode="nearest")
    tensor([2., 4., 4.])
    """
    return _one_axis("convolve1d", input, weights, axis, output, mode, cval, origin)


def _all_axes(name: str, input: Any, weights: Any, output: Any, mode: str, cval: Any, origin: Any, axes: Any) -> Any:
    x: Any = floating(input)
    w: Any = floating(weights)
    cval, origin = plain_setting(f"ndimage.{name}", cval=cval, origin=origin)
    few = bare(x)[tuple(slice(1) for _ in x.shape)]
    getattr(scipy.ndimage, name)(few, bare(w), None, mode, cval, origin, axes=axes)  # SciPy's checks
    where = axes_of(axes, x.ndim)
    origins = dict(zip(where, each_axis(origin, len(where)), strict=True))
    if name == "convolve":
        w = np.conj(np.flip(w))
    full = [1] * x.ndim
    for axis, size in zip(sorted(where), w.shape, strict=True):
        shift = -origins[axis] - (size % 2 == 0) if name == "convolve" else origins[axis]
        before = size // 2 + shift
        x = extended(x, axis, before, size - 1 - before, mode, cval)
        full[axis] = size
    w = np.reshape(w, full)
    if w._data.dtype.kind == x._data.dtype.kind:
        w = to(w, x._data.dtype)
    way = Way(by_image_filter, "valid", tuple(range(-x.ndim, 0)))
    return as_output(name, Convolution.apply(way, x, np.conj(np.flip(w))), output)


@mirrors("ndimage.correlate", derivative="convolution, the border folded back; correlation for the weights")
def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The correlation of an image with weights, differentiable in both.

    >>> import pullback
    >>> correlate(pullback.tensor([[1.0, 2.0], [3.0, 4.0]]), [[0.0, 1.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return _all_axes("correlate", input, weights, output, mode, cval, origin, axes)


@mirrors("ndimage.convolve", derivative="correlation, the border folded back; correlation for the weights")
def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The convolution of an image with weights, differentiable in both.

    >>> import pullback
    >>> convolve(pullback.tensor([[1.0, 2.0], [3.0, 4.0]]), [[1.0, 0.0, 0.0]], mode="constant")
    tensor([[2., 0.],
            [4., 0.]])
    """
    return _all_axes("convolve", input, weights, output, mode, cval, origin, axes)


# Means ----------------------------------------------------------------------------------------------------------------


def _box(size: int, axis: int) -> tuple[Any, Any]:
    """The mean of each window that lies within the axis, and its adjoint."""

    def mean(a: Array) -> Array:
        found = scipy.ndimage.uniform_filter1d(a, size, axis, mode="constant")
        inner = slice(size // 2, size // 2 + a.shape[axis] - size + 1)
        return np.asarray(found[(..., inner, *[slice(None)] * (-1 - axis))])

    def spread(g: Array) -> Array:
        pads = [(0, 0)] * g.ndim
        pads[axis] = (size - 1, size - 1)
        return mean(np.pad(g, pads))

    return mean, spread


@mirrors("ndimage.uniform_filter1d", derivative="the same mean of the cotangent, the border folded back")
def uniform_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The mean of a moving window.

    >>> import pullback
    >>> uniform_filter1d(pullback.tensor([0.0, 3.0, 0.0, 0.0]), 3)
    tensor([1., 1., 1., 0.])
    """
    x = floating(input)
    size, cval, origin = plain_setting("ndimage.uniform_filter1d", size=size, cval=cval, origin=origin)
    few = bare(x)[tuple(slice(1) for _ in x.shape)]
    scipy.ndimage.uniform_filter1d(few, size, axis, None, mode, cval, origin)  # SciPy's checks
    before = size // 2 + origin
    x = extended(x, axis, before, size - 1 - before, mode, cval)
    out = linear(*_box(size, axis % x.ndim - x.ndim), x, batched=True)
    return as_output("uniform_filter1d", out, output)


@mirrors("ndimage.uniform_filter", derivative="that of uniform_filter1d, axis by axis")
def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The mean of a moving box.

    >>> import pullback
    >>> uniform_filter(pullback.tensor([[0.0, 4.0]]), [1, 2])
    tensor([[0., 2.]])
    """
    x = floating(input)
    where = axes_of(axes, x.ndim)
    settings = zip(where, *(each_axis(v, len(where)) for v in (size, origin, mode)), strict=True)
    for axis, width, start, border in settings:
        if width > 1:
            x = uniform_filter1d(x, int(width), axis, None, border, cval, start)
    return as_output("uniform_filter", x, output)
