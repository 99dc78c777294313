"""Poolings by the average or by a norm, over sliding windows and over adaptive ones.

A sum over a window is a sum along each axis in turn, so it is `resampled` with the windows of each axis.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ....kernels.sliding import Array
from ....kernels.taps import Taps, runs
from ....ops.elementwise.limits import relu
from ....ops.make.conversion import to
from ....table.entry import composite
from ....table.samples import A, S
from ....tensor.arrays import beside, counted
from ....tensor.tensor import Tensor, wrap
from ..arguments import floating, refuse, where_empty
from ..primitives import resampled
from .family import family
from .pooling import adaptive, adaptive_refused, adaptive_samples, targets, window

_Axis = tuple[Taps, Array]  # the sums along an axis, and the number of elements in each


@functools.lru_cache(256)
def _sliding(n: int, kernel: int, stride: int, padding: int, count: int, include: bool) -> _Axis:
    start = counted(count) * stride - padding
    end = np.minimum(start + kernel, n + padding)
    inside, before = np.maximum(start, 0), np.minimum(end, n)
    return runs(n, start, end, evenly=True), end - start if include else before - inside


@functools.lru_cache(256)
def _even(n: int, m: int) -> _Axis:
    start, end = adaptive(n, m)
    return runs(n, start, end), end - start


def _divided(total: Tensor, axes: list[_Axis], divisor: int | None) -> Tensor:
    """Sums, each divided by the number of its elements or by `divisor`."""
    count = functools.reduce(np.multiply.outer, [c for _, c in axes])
    by: Any = wrap(beside(total, count.astype(total._data.dtype))) if divisor is None else divisor
    if count.size and (divisor is None and (count == count.flat[0]).all()):
        by = int(count.flat[0])
    return total.div(by) if total.is_floating_point() else total.div(by, rounding_mode="trunc")


def _averaged(input: Tensor, axes: list[_Axis], divisor: int | None) -> Tensor:
    """The sums of windows, divided. Half precision is summed in single, which does not overflow."""
    half = input._data.dtype == np.float16
    total = resampled(to(input, np.float32) if half else input, tuple(m for m, _ in axes))
    found = _divided(total, axes, divisor)
    return to(found, np.float16) if half else found


@family(samples=lambda space: _samples(space), refused=lambda space: _refused(space))
def _average(
    space: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """`avg_pool2d`, `avg_pool3d` and, without the last parameter, `avg_pool1d`."""
    name = f"avg_pool{space}d"
    kernel, slide = window(name, space, input, kernel_size, stride, padding, 1, ceil_mode)
    floating(name, input, also="i")
    if divisor_override == 0:
        raise refuse(name, "divisor_override to be other than zero", "0")
    image = input._data.shape[-space:]
    axes = [
        _sliding(n, k, s, p, count, count_include_pad)
        for n, k, s, (p, _), count in zip(
            image, kernel, slide.stride, slide.padding, slide.places(image, kernel), strict=True
        )
    ]
    return _averaged(input, axes, divisor_override)


@composite(
    home="nn.functional",
    also="avg_pool1d",
    samples=lambda: _samples(1),
    refused=lambda: _refused(1),
)
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The average of each window along the last axis of ``(N, C, L)`` or ``(C, L)``.

    stride: `kernel_size` unless given; padding: zeros on both sides, which count unless `count_include_pad` is False;
    ceil_mode: a last window that is not full counts.

    >>> import pullback
    >>> pullback.nn.functional.avg_pool1d(pullback.tensor([[1.0, 5.0, 2.0, 4.0]]), 2)
    tensor([[3., 3.]])
    """
    return _average.body(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@_average(2, out=True)
def avg_pool2d() -> None:
    """The average of each window on images, as `avg_pool1d`; or the sum divided by `divisor_override`.

    >>> import pullback
    >>> pullback.nn.functional.avg_pool2d(pullback.arange(4.0).reshape(1, 2, 2), 2)
    tensor([[[1.5000]]])
    """


@_average(3, out=True)
def avg_pool3d() -> None:
    """The average of each window on volumes, as `avg_pool1d`; or the sum divided by `divisor_override`.

    >>> import pullback
    >>> pullback.nn.functional.avg_pool3d(pullback.arange(8.0).reshape(1, 2, 2, 2), 2, divisor_override=4)
    tensor([[[[7.]]]])
    """


@family(samples=lambda space: adaptive_samples(space), refused=lambda space: adaptive_refused(space))
def _adaptive(space: int, input: Tensor, output_size: Any) -> Tensor:
    """`adaptive_avg_pool1d` to `adaptive_avg_pool3d`."""
    size = targets(f"adaptive_avg_pool{space}d", input, output_size, space)
    axes = [_even(n, m) for n, m in zip(input._data.shape[-space:], size, strict=True)]
    return _averaged(input, axes, None)


@_adaptive(1, also="adaptive_avg_pool1d", differs=where_empty("int64 bool complex128"))
def adaptive_avg_pool1d() -> None:
    """The average of each of `output_size` windows that cover the last axis evenly.

    >>> import pullback
    >>> pullback.nn.functional.adaptive_avg_pool1d(pullback.arange(5.0).reshape(1, 5), 2)
    tensor([[1., 3.]])
    """


@_adaptive(2, differs=where_empty("int64 bool complex128"))
def adaptive_avg_pool2d() -> None:
    """As `adaptive_avg_pool1d`, along two axes; None in `output_size` keeps the length of an axis.

    >>> import pullback
    >>> pullback.nn.functional.adaptive_avg_pool2d(pullback.arange(4.0).reshape(1, 2, 2), (1, None))
    tensor([[[1., 2.]]])
    """


@_adaptive(3)
def adaptive_avg_pool3d() -> None:
    """As `adaptive_avg_pool1d`, along three axes; None in `output_size` keeps the length of an axis.

    >>> import pullback
    >>> pullback.nn.functional.adaptive_avg_pool3d(pullback.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """


@family(bounds="norm_type", samples=lambda space: _norm_samples(space), refused=lambda space: _norm_refused(space))
def _norm(
    space: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """`lp_pool1d` to `lp_pool3d`."""
    kernel: Any = kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size,) * space
    mean = _average.body(space, input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    # an odd power can have a negative sum; torch takes the root of zero instead
    return (mean.sign() * relu(mean.abs()) * math.prod(kernel)).pow(1.0 / norm_type)


@_norm(1)
def lp_pool1d() -> None:
    """``(sum of x ** p) ** (1 / p)`` over each window along the last axis, where p is `norm_type`.

    >>> import pullback
    >>> pullback.nn.functional.lp_pool1d(pullback.tensor([[3.0, 4.0, 0.0, 1.0]]), 2, 2)
    tensor([[5., 1.]])
    """


@_norm(2)
def lp_pool2d() -> None:
    """As `lp_pool1d`, for windows on images.

    >>> import pullback
    >>> pullback.nn.functional.lp_pool2d(pullback.tensor([[[3.0, 0.0], [0.0, 4.0]]]), 2, 2)
    tensor([[[5.]]])
    """


@_norm(3)
def lp_pool3d() -> None:
    """As `lp_pool1d`, for windows on volumes.

    >>> import pullback
    >>> pullback.nn.functional.lp_pool3d(pullback.ones(1, 1, 3, 3), 2, (1, 3, 3))
    tensor([[[[3.]]]])
    """


# Their domains --------------------------------------------------------------------------------------------------------


def _samples(space: int) -> list[Any]:
    image, kernel = (6, 5, 4)[:space], (3, 2, 2)[:space]
    x = A(2, 2, *image)
    found = [
        S(x, 2),
        S(x, kernel, 1),
        S(A(2, *image), kernel, (2, 1, 2)[:space], 1),
        S(x, 2, stride=3, padding=1, ceil_mode=True),
        S(x, [3] * space, 2, 1, True, False),
        S(A(1, 2, *image, layout="T"), 2, [], (1,), count_include_pad=False),
        S(A(0, 2, *image, layout="step"), 2),
        S(A(1, 1, *[1] * space), 1),
        S(A(1, 1, *[12] * space), 10, 1),
        S(A(2, 1, *image, layout="readonly"), kernel_size=3, stride=4, ceil_mode=True),
    ]
    if space > 1:
        found += [S(x, 2, 1, 1, False, True, 3), S(x, 2, divisor_override=-2)]
    return found


def _refused(space: int) -> list[Any]:
    x = A(1, 2, *[5] * space)
    found = [
        S(x, 2, 0),
        S(x, 0),
        S(x, 6),
        S(x, 2, padding=2),
        S(x, 2, padding=-1),
        S(x, [2] * (space + 1)),
        S(x, 2.5),
        S(A(1, 0, *[5] * space), 2),
        S(A(1, 2, *[5] * (space - 1), 0), 2),
        S([1.0], 2),
        S(x),
        S(x, 2, nonsense=1),
    ]
    return found + [S(x, 2, divisor_override=0)] * (space > 1) + [S(A(5), 2)] * (space == 1)


def _norm_samples(space: int) -> list[Any]:
    image, kernel = (5, 4, 3)[:space], (3, 2, 2)[:space]
    x = A(2, 2, *image, domain="positive")
    return [
        S(x, 2, 2),
        S(x, 3.0, kernel if space > 1 else 3, 1),
        S(A(2, *image), 2, 2, stride=(2, 1, 1)[:space] if space > 1 else 2, ceil_mode=True),
        S(A(1, 2, *image, domain="positive", layout="T"), norm_type=1.5, kernel_size=2),
        S(A(2, 2, *image), 3, 2),
    ]


def _norm_refused(space: int) -> list[Any]:
    x = A(1, 2, *[5] * space)
    return [S(x, 2, 6), S(x, 0, 2), S(x, 2, 2, 0), S(x, 2), S(x, 2, 2, nonsense=1)]
