"""Gaussian filters, differentiable in the image and in sigma, and filters that find edges."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ...tensor.tensor import Tensor
from ..array_nodes import as_tensor, floating
from ..mirror import mirrors
from ..user_functions import example
from .image_filters import as_output, axes_of, correlate1d, each_axis


def _size_of(sigma: Any) -> float:
    return float(example(sigma)) if isinstance(sigma, Tensor) else float(sigma)


def _kernel(sigma: Any, order: int, radius: int) -> Any:
    """The Gaussian, or its derivative: a polynomial times the Gaussian, by ``q <- q' - q x / sigma^2``."""
    if order < 0:
        raise ValueError("order must be non-negative")
    square = sigma * sigma
    x = np.arange(-radius, radius + 1).astype(float)
    phi = np.exp(-0.5 / square * x**2)
    phi = phi / np.sum(phi)
    q: list[Any] = [1.0] + [0.0] * order
    for _ in range(order):
        q = [(i + 1) * (q[i + 1] if i < order else 0.0) - (q[i - 1] / square if i else 0.0) for i in range(order + 1)]
    return phi * sum(c * x**i for i, c in enumerate(q)) if order else phi


@mirrors(
    "ndimage.gaussian_filter1d",
    derivative="the filter's weights in recorded operations; in input and sigma",
    limits="the radius is constant as sigma changes",
)
def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
) -> Any:
    """The Gaussian filter of one axis, or its derivative, differentiable in the image and in sigma.

    >>> import pullback
    >>> s = pullback.tensor(1.0, requires_grad=True)
    >>> gaussian_filter1d([0.0, 0.0, 1.0, 0.0, 0.0], s, mode="constant")[2].backward()
    >>> s.grad
    tensor(-0.3989)
    """
    reach = int(truncate * _size_of(sigma) + 0.5) if radius is None else radius
    if not isinstance(reach, numbers.Integral) or reach < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    weights = np.flip(as_tensor(_kernel(sigma, order, int(reach))), 0)
    return correlate1d(input, weights, axis, output, mode, cval, 0)


@mirrors("ndimage.gaussian_filter", derivative="that of gaussian_filter1d, axis by axis", limits="as gaussian_filter1d")
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """The Gaussian filter, or its derivatives, differentiable in the image and in sigma.

    >>> import pullback
    >>> gaussian_filter(pullback.tensor([[1.0, 1.0], [1.0, 1.0]]), 2.0)[0].round(decimals=6)
    tensor([1., 1.])
    """
    x = floating(input)
    where = axes_of(axes, x.ndim)
    settings = zip(where, *(each_axis(v, len(where)) for v in (sigma, order, mode, radius)), strict=True)
    for axis, width, derivative, border, reach in settings:
        if _size_of(width) > 1e-15:
            x = gaussian_filter1d(x, width, axis, derivative, None, border, cval, truncate, radius=reach)
    return as_output("gaussian_filter", x, output)


def _derivatives(
    x: Any, sigma: Any, order: int, mode: Any, cval: Any, axes: Any, settings: dict[str, Any]
) -> list[Any]:
    """The Gaussian derivative of this order along each axis."""
    where = axes_of(axes, x.ndim)
    found = []
    for axis, border in zip(where, each_axis(mode, len(where)), strict=True):
        orders = [0] * x.ndim
        orders[axis] = order
        found.append(gaussian_filter(x, sigma, orders, None, border, cval, **settings))
    return found


@mirrors(
    "ndimage.gaussian_gradient_magnitude",
    derivative="that of gaussian_filter",
    limits="where the gradient is zero, its magnitude has a corner; its derivative is taken as zero",
)
def gaussian_gradient_magnitude(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """The length of the gradient, by Gaussian derivatives.

    >>> import pullback
    >>> gaussian_gradient_magnitude(pullback.tensor([[1.0, 1.0]]), 1.0).round(decimals=6)
    tensor([[0., 0.]])
    """
    x = floating(input)
    parts = _derivatives(x, sigma, 1, mode, cval, axes, kwargs)
    square = sum(np.square(p) for p in parts)
    flat = square == 0
    return as_output(
        "gaussian_gradient_magnitude", np.where(flat, 0.0, np.sqrt(np.where(flat, 1.0, square))) if parts else x, output
    )


@mirrors("ndimage.gaussian_laplace", derivative="that of gaussian_filter")
def gaussian_laplace(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """The sum of the second Gaussian derivatives.

    >>> import pullback
    >>> gaussian_laplace(pullback.tensor([[1.0, 1.0]]), 1.0).abs().round(decimals=3)
    tensor([[0., 0.]])
    """
    x = floating(input)
    where = axes_of(axes, x.ndim)
    widths = dict(zip(where, each_axis(sigma, len(where)), strict=True))
    parts = _derivatives(x, [widths.get(i, 0.0) for i in range(x.ndim)], 2, mode, cval, axes, kwargs)
    return as_output("gaussian_laplace", sum(parts[1:], parts[0]) if parts else x, output)


@mirrors("ndimage.laplace", derivative="that of correlate1d")
def laplace(
    input: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
) -> Any:
    """The sum of second differences.

    >>> import pullback
    >>> laplace(pullback.tensor([0.0, 1.0, 0.0]))
    tensor([ 1., -2.,  1.])
    """
    x = floating(input)
    where = axes_of(axes, x.ndim)
    borders = zip(where, each_axis(mode, len(where)), strict=True)
    parts = [correlate1d(x, [1.0, -2.0, 1.0], axis, None, border, cval) for axis, border in borders]
    return as_output("laplace", sum(parts[1:], parts[0]) if parts else x, output)


def _edges(name: str, input: Any, across: list[float], axis: int, output: Any, mode: Any, cval: Any) -> Any:
    x = floating(input)
    borders = each_axis(mode, x.ndim)
    (axis,) = axes_of(axis, x.ndim)
    y = correlate1d(x, [-1.0, 0.0, 1.0], axis, None, borders[axis], cval)
    for other in range(x.ndim):
        if other != axis:
            y = correlate1d(y, across, other, None, borders[other], cval)
    return as_output(name, y, output)


@mirrors("ndimage.sobel", derivative="that of correlate1d")
def sobel(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """The difference along an axis, smoothed by 1, 2, 1 along the others.

    >>> import pullback
    >>> sobel(pullback.tensor([[1.0, 2.0, 4.0]]))
    tensor([[ 4., 12.,  8.]])
    """
    return _edges("sobel", input, [1.0, 2.0, 1.0], axis, output, mode, cval)


@mirrors("ndimage.prewitt", derivative="that of correlate1d")
def prewitt(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """The difference along an axis, summed over three neighbours along the others.

    >>> import pullback
    >>> prewitt(pullback.tensor([[1.0, 2.0, 4.0]]))
    tensor([[3., 9., 6.]])
    """
    return _edges("prewitt", input, [1.0, 1.0, 1.0], axis, output, mode, cval)
