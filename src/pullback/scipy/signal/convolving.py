"""Convolutions and correlations, differentiable in both arguments.

A convolution is linear in each argument. Its adjoints are convolutions with the other argument, flipped and
conjugated: 'valid' where the convolution is 'full', 'full' where it is 'valid'. So three forms of one node are enough
for all orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage
import scipy.signal

from ...autograd.function import Function
from ...ops.make.conversion import to
from ...ops.shape.axes import movedim
from ...ops.shape.joining import stack
from ...ops.shape.reshape import reshape, sum_to_size
from ...tensor.tensor import Tensor
from ..array_nodes import Array, array_of, floating, tensor_of
from ..mirror import mirrors
from ..user_functions import bare
from .extending import extended, flipped

Many = Callable[..., Array]

_LARGEST = 1024  # elements of a kernel that is moved over an image; a larger one takes the FFT, where that is quicker


def by_image_filter(a: Array, b: Array, mode: str) -> Array:
    """By the loops of `scipy.ndimage`, which are exact where the FFT is not: NaN stays where it is.

    A kernel as large as the image, as in the gradient of a kernel, is left to `scipy.signal.convolve`.
    """
    if b.size > _LARGEST or a.ndim == 0:
        return np.asarray(scipy.signal.convolve(a, b, mode))
    if mode == "full":
        a = np.pad(a, [(s - 1, s - 1) for s in b.shape])
    one = [i for i, s in enumerate(b.shape) if s > 1]
    if len(one) <= 1:
        axis = one[0] if one else 0
        out = scipy.ndimage.convolve1d(a, b.reshape(-1), axis=axis, mode="constant")
    else:
        out = scipy.ndimage.convolve(a, b, mode="constant")
    start = [(s - 1) // 2 for s in b.shape]
    return out[tuple(slice(s, s + n - m + 1) for s, n, m in zip(start, a.shape, b.shape, strict=True))]


class Way(NamedTuple):
    """Which function convolves, 'full' or 'valid', along which axes (negative; the others broadcast)."""

    convolve: Many
    mode: str
    axes: tuple[int, ...]
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, a: Array, b: Array) -> Array:
        return np.asarray(self.convolve(a, b, self.mode, **dict(self.options)))

    def as_mode(self, mode: str) -> Way:
        return self._replace(mode=mode)


def _fitted(g: Any, x: Tensor) -> Any:
    g = np.real(g) if x._data.dtype.kind != "c" and g._data.dtype.kind == "c" else g
    return sum_to_size(g, x.shape) if g.shape != x.shape else g


class Convolution(Function):
    """The convolution of two arrays; where it is 'valid', the first is the larger one along each axis."""

    @staticmethod
    def forward(way: Way, a: Any, b: Any) -> Any:
        """SciPy's function."""
        return tensor_of(way(array_of(a), array_of(b)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep both arrays."""
        ctx.way, a, b = inputs
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Convolutions with the other array, flipped and conjugated."""
        a, b = ctx.saved_tensors
        way, wanted = ctx.way, ctx.needs_input_grad
        ga = gb = None
        if wanted[1]:
            other = "valid" if way.mode == "full" else "full"
            ga = _fitted(Convolution.apply(way.as_mode(other), g, flipped(b, way.axes)), a)
        if wanted[2] and way.mode == "full":
            gb = _fitted(Convolution.apply(way.as_mode("valid"), g, flipped(a, way.axes)), b)
        elif wanted[2]:
            gb = Convolution.apply(way, np.conj(a), np.flip(g, way.axes))
            gb = _fitted(np.flip(gb, way.axes), b)
        return None, ga, gb

    @staticmethod
    def jvp(ctx: Any, _: Any, ta: Any, tb: Any) -> Any:
        """The product rule."""
        a, b = ctx.saved_tensors
        terms = [Convolution.apply(ctx.way, ta, b)] if ta is not None else []
        terms += [Convolution.apply(ctx.way, a, tb)] if tb is not None else []
        return sum(terms[1:], terms[0])

    @staticmethod
    def vmap(info: Any, in_dims: Any, way: Way, a: Tensor, b: Tensor) -> Any:
        """One call where axes broadcast, or one for each sample."""
        a, b = (
            reshape(x, (1, *x.shape)) if d is None else movedim(x, d, 0)
            for x, d in zip((a, b), in_dims[1:], strict=True)
        )
        if way.options and way.options[0][0] == "axes":
            return Convolution.apply(way, a, b), 0
        several = [Convolution.apply(way, a[i % len(a)], b[i % len(b)]) for i in range(info.batch_size)]
        return stack(several), 0


def convolved(way: Way, a: Any, b: Any) -> Any:
    """A convolution of two Tensors; where it is 'valid', the larger one is put first."""
    sizes = [(a.shape[i], b.shape[i]) for i in way.axes]
    if way.mode == "valid" and all(m <= n for m, n in sizes) and any(m < n for m, n in sizes):
        a, b = b, a
    return Convolution.apply(way, a, b)


def along(x: Any, weights: Any, axis: int) -> Any:
    """The valid convolution of one axis with weights, by the loops of `scipy.ndimage`."""
    x, axis = floating(x), axis % x.ndim
    w = floating(weights)
    if w._data.dtype != x._data.dtype and w._data.dtype.kind == x._data.dtype.kind == "f":
        w = to(w, x._data.dtype)
    shape = [1] * x.ndim
    shape[axis] = -1
    return Convolution.apply(Way(by_image_filter, "valid", tuple(range(-x.ndim, 0))), x, np.reshape(w, shape))


def _cropped(way: Way, mode: str, a: Any, b: Any) -> Any:
    """'full', 'valid', or the middle of 'full', of the size of the first."""
    if mode != "same":
        return convolved(way.as_mode(mode), a, b)
    full = convolved(way.as_mode("full"), a, b)
    cut: list[Any] = [slice(None)] * full.ndim
    for axis in way.axes:
        start = (full.shape[axis] - a.shape[axis]) // 2
        cut[axis] = slice(start, start + a.shape[axis])
    return full[tuple(cut)]


def _convolved(name: str, in1: Any, in2: Any, mode: str, method: Any) -> Any:
    a, b = floating(in1), floating(in2)
    if mode not in ("full", "same", "valid") or a.ndim != b.ndim or not a.numel() * b.numel():
        return tensor_of(getattr(scipy.signal, name)(bare(a), bare(b), mode, method))
    axes = tuple(range(-a.ndim, 0))
    if name == "correlate":
        b = flipped(b, axes)
    if not axes:
        return a * b
    return _cropped(Way(scipy.signal.convolve, "full", axes, (("method", method),)), mode, a, b)


@mirrors("signal.convolve", derivative="correlation with the other argument")
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of two arrays of any dimension, differentiable in both. Integers count as float64.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> convolve(x, [1.0, -1.0], mode="valid").square().sum().backward()
    >>> x.grad
    tensor([-2.,  0.,  2.])
    """
    return _convolved("convolve", in1, in2, mode, method)


@mirrors("signal.correlate", derivative="convolution with, or of, the other argument")
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation of two arrays, differentiable in both: the convolution with the second, flipped and conjugated.

    >>> import pullback
    >>> correlate(pullback.tensor([1.0, 2.0, 3.0]), [0.0, 1.0], mode="same")
    tensor([1., 2., 3.], dtype=pullback.float64)
    """
    return _convolved("correlate", in1, in2, mode, method)


def _by_fft(name: str, in1: Any, in2: Any, mode: str, axes: Any) -> Any:
    a, b = floating(in1), floating(in2)
    call = getattr(scipy.signal, name)
    if mode not in ("full", "same", "valid") or a.ndim != b.ndim or not a.ndim or not a.numel() * b.numel():
        return a * b if a.ndim == b.ndim == 0 else tensor_of(call(bare(a), bare(b), mode, axes))
    where = range(-a.ndim, 0) if axes is None else [int(i) % a.ndim - a.ndim for i in np.atleast_1d(axes)]
    return _cropped(Way(call, "full", tuple(where), (("axes", tuple(where)),)), mode, a, b)


@mirrors("signal.fftconvolve", derivative="correlation with the other argument")
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution by FFT, along `axes`; other axes broadcast. Differentiable in both arguments.

    >>> import pullback
    >>> fftconvolve(pullback.tensor([1.0, 2.0]), [1.0, 1.0]).round()
    tensor([1., 3., 2.], dtype=pullback.float64)
    """
    return _by_fft("fftconvolve", in1, in2, mode, axes)


@mirrors("signal.oaconvolve", derivative="correlation with the other argument")
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution by overlapping FFTs, along `axes`; other axes broadcast. Differentiable in both arguments.

    >>> import pullback
    >>> oaconvolve(pullback.tensor([1.0, 2.0]), [1.0, 1.0]).round()
    tensor([1., 3., 2.], dtype=pullback.float64)
    """
    return _by_fft("oaconvolve", in1, in2, mode, axes)


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "reflect"}


def _convolve2d(name: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any) -> Any:
    a, b = floating(in1), floating(in2)
    good = mode in ("full", "same", "valid") and boundary in _BOUNDARIES and a.ndim == b.ndim == 2
    if good and mode == "valid":
        more = np.subtract(a.shape, b.shape)
        good = bool((more >= 0).all() or (more <= 0).all())
    if not good or not a.numel() * b.numel():
        return tensor_of(getattr(scipy.signal, name)(bare(a), bare(b), mode, boundary, fillvalue))
    if name == "correlate2d":
        b = flipped(b, (-2, -1))
    way = Way(by_image_filter, "valid", (-2, -1))
    if mode == "valid":
        return convolved(way, a, b)
    for axis in (-2, -1):
        size = b.shape[axis]
        more, less = (size - 1, size - 1) if mode == "full" else (size // 2, (size - 1) // 2)
        before, after = (more, less) if name == "convolve2d" else (less, more)
        a = extended(a, axis, before, after, _BOUNDARIES[boundary], fillvalue)
    return Convolution.apply(way, a, b)


@mirrors("signal.convolve2d", derivative="correlation with the other argument; the border is folded back")
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The convolution of two images, differentiable in both.

    >>> import pullback
    >>> convolve2d(pullback.tensor([[1.0, 2.0]]), [[1.0, 1.0]], boundary="wrap")
    tensor([[3., 3., 3.]])
    """
    return _convolve2d("convolve2d", in1, in2, mode, boundary, fillvalue)


@mirrors("signal.correlate2d", derivative="convolution with, or of, the other argument; the border is folded back")
def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The correlation of two images, differentiable in both.

    >>> import pullback
    >>> correlate2d(pullback.tensor([[1.0, 2.0]]), [[0.0, 1.0]], mode="same")
    tensor([[2., 0.]])
    """
    return _convolve2d("correlate2d", in1, in2, mode, boundary, fillvalue)
