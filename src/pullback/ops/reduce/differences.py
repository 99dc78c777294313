"""Differences and integrals along an axis: `diff`, `gradient`, `trapezoid`. All are sums and products of slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.entry import composite
from ...table.samples import A, S, Sample, V, inf, nan
from ...tensor import dtypes
from ...tensor.arrays import own_axis, wrap_axes, wrap_axis
from ...tensor.tensor import Tensor
from ..make.conversion import to
from ..shape.joining import cat
from ..shape.reshape import reshape
from .scans import cumsum
from .sums import sum


def _cut(input: Tensor, axis: int, start: int | None, stop: int | None) -> Tensor:
    """``input[start:stop]`` along an axis."""
    return input[(slice(None),) * axis + (slice(start, stop),)]


@composite(
    samples=lambda: [
        *(S(A(3, 4), n) for n in (0, 1, 2, 5)),
        *(S(A(3, 4), n, 0) for n in (1, 2, 3)),
        S(A(4)),
        S(A(2, 3, 2), dim=1),
        S(A(3, 2, layout="T"), dim=-1, n=1),
        S(A(2, 4, layout="step"), 2),
        S(A(0)),
        S(A(1)),
        S(A(2, 0), 1, 0),
        S(A(2), prepend=A(1)),
        S(A(2, 3), 1, 0, A(1, 3), A(2, 3)),
        S(A(2, 3), 2, append=A(2, 1)),
        S(A(2), append=A(2, dtype="int64")),
        S(A(2, 3), n=0, prepend=A(2, 1)),
    ],
    kinks=[S(V([inf, 1.0, -inf])), S(V([nan, 1.0, 2.0]))],
    refused=lambda: [
        S(A()),
        S(A(3), -1),
        S(A(2, 3), 1, 2),
        S(A(3), prepend=A()),
        S(A(3), append=A(1, 1)),
        S(A(2, 3), append=A(3, 1)),
        S(A(3), "x"),
        S([1.0, 2.0]),
    ],
)
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """``input[i + 1] - input[i]`` along `dim`, `n` times; for bools, whether they differ.

    prepend, append: tensors that are first put before and after it.

    >>> import pullback
    >>> pullback.tensor([1, 4, 9, 16]).diff(), pullback.tensor([1, 4, 9, 16]).diff(n=2)
    (tensor([3, 5, 7]), tensor([2, 2]))
    """
    if not isinstance(n, (int, np.integer)):
        raise TypeError(errors.message("diff()", expected="n to be an integer", found=errors.describe(n)))
    if not input._data.ndim or n < 0:
        raise RuntimeError(
            errors.message(
                "diff()", expected="at least one dimension, and n >= 0", found=f"{errors.describe(input)}, n={n}"
            )
        )
    axis = wrap_axis(dim, input._data.ndim)
    for end in (prepend, append):
        if end is not None and (not isinstance(end, Tensor) or end._data.ndim != input._data.ndim):
            raise RuntimeError(
                errors.message(
                    "diff()", expected="prepend and append to have the dimensions of input", found=errors.describe(end)
                )
            )
    parts = [part for part in (prepend, input, append) if part is not None]
    if n and len(parts) > 1:
        input = cat(parts, axis)
    for _ in range(min(n, input._data.shape[axis])):  # then there is nothing left
        ahead, behind = _cut(input, axis, 1, None), _cut(input, axis, None, -1)
        input = np.not_equal(ahead, behind) if input._data.dtype.kind == "b" else ahead - behind  # type: ignore[assignment]
    return input if n else input.clone()


# The gradient of samples of a function --------------------------------------------------------------------------------


def _slopes(x: Tensor, axis: int, width: Any) -> Tensor:
    """Central differences inside. width: the distances of neighbours, a number or a vector along the axis."""
    if not isinstance(width, Tensor) or not width._data.ndim:
        return (_cut(x, axis, 2, None) - _cut(x, axis, None, -2)) / (2 * width)
    # a mean of the slopes on both sides, with weights that make it exact for a parabola
    before, after = _cut(width, axis, None, -1), _cut(width, axis, 1, None)
    middle = _cut(x, axis, 1, -1)
    left, right = (middle - _cut(x, axis, None, -2)) / before, (_cut(x, axis, 2, None) - middle) / after
    return (left * after + right * before) / (before + after)


def _end(x: Tensor, axis: int, width: Any, order: int, last: bool) -> Tensor:
    """The slope at one end, from the nearest two or three elements."""

    def at(t: Any, i: int) -> Any:
        if not isinstance(t, Tensor) or not t._data.ndim:
            return t
        n = t._data.shape[axis]
        return _cut(t, axis, n - 1 - i, n - i) if last else _cut(t, axis, i, i + 1)

    sign = -1 if last else 1
    first, second = sign * (at(x, 1) - at(x, 0)), at(width, 0)
    if order == 1:
        return first / second
    next_width = at(width, 1)
    next_first = sign * (at(x, 2) - at(x, 1))
    near, far = first / second, next_first / next_width
    return near + (near - far) * second / (second + next_width)


def gradient_along(x: Tensor, axis: int, width: Any, order: int) -> Tensor:
    """The derivative along an axis, by second-order differences inside and one-sided ones of `order` at the ends."""
    if x._data.shape[axis] < order + 1:
        raise RuntimeError(
            errors.message(
                "gradient()",
                expected=f"each dimension size to be at least edge_order+1, {order + 1}",
                found=errors.describe(x),
            )
        )
    parts = [_end(x, axis, width, order, False), _slopes(x, axis, width), _end(x, axis, width, order, True)]
    return cat(parts, axis)


def widths(coordinates: Tensor, ndim: int, axis: int) -> Tensor:
    """The distances of neighbouring coordinates, along an axis of `ndim`."""
    return reshape(diff(coordinates), tuple(-1 if i == axis else 1 for i in range(ndim)))


def _distances(input: Tensor, spacing: Any, axes: tuple[int, ...]) -> list[Any]:
    """The distances of neighbours for each axis: a number, a 0-d tensor, or a tensor that broadcasts."""
    if isinstance(spacing, (int, float, complex, np.number, type(None))) or (
        isinstance(spacing, Tensor) and not spacing._data.ndim
    ):
        return [1 if spacing is None else spacing] * len(axes)
    if not isinstance(spacing, (tuple, list)):
        raise TypeError(
            errors.message(
                "gradient()",
                expected="spacing to be a number, or a list with one for each dim",
                found=errors.describe(spacing),
            )
        )
    if len(spacing) != len(axes):
        raise RuntimeError(
            errors.message(
                "gradient()", expected=f"spacing for each of {len(axes)} dims", found=f"{len(spacing)} of them"
            )
        )
    found = []
    for part, axis in zip(spacing, axes, strict=True):
        if isinstance(part, Tensor) and part._data.ndim:
            if part._data.shape != (input._data.shape[axis],):
                raise RuntimeError(
                    errors.message(
                        "gradient()",
                        expected=f"a vector of {input._data.shape[axis]} coordinates for dim {axis}",
                        found=errors.describe(part),
                    )
                )
            part = widths(part, input._data.ndim, axis)
        found.append(part)
    return found


@composite(
    out=False,
    method=False,
    samples=lambda: [
        S(A(4)),
        S(A(3, 4)),
        S(A()),
        *(S(A(5), spacing=h) for h in (2, None, 0.5, [2.0], (V([0.0, 1.0, 3.0, 4.0, 7.0]),), V(2.0))),
        *(S(A(4, 3), dim=d) for d in (0, -1, (0, 1), [1, 0], [])),
        S(A(4, 3), dim=(1, 0), spacing=[1.0, 2.0]),
        S(A(2, 4), spacing=(V([0.0, 2.0]), V([0.0, 1.0, 4.0, 6.0]))),
        S(A(4), edge_order=2),
        S(A(4, 3), edge_order=2, spacing=0.5),
        S(A(4), edge_order=2, spacing=(V([0.0, 1.0, 3.0, 4.0]),)),
        S(A(2)),
        S(A(4, 3, layout="T"), spacing=1, dim=0, edge_order=1),
        S(A(3, 4, layout="step"), dim=1),
    ],
    refused=lambda: [
        S(A(4), edge_order=3),
        S(A(2), edge_order=2),
        S(A(1)),
        S(A(0)),
        S(A(2, 3), dim=2),
        S(A(2, 3), dim=(0, 0)),
        S(A(2, 3), spacing=[1.0]),
        S(A(3), spacing=A(3)),
        S(A(3), spacing="x"),
        S(A(3, dtype="bool")),
        S([1.0]),
    ],
)
def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The derivatives along each of `dim` of the function that `input` samples, by second-order differences.

    spacing: the distance of neighbours, a number (None: 1); or for each of `dim` a number or a vector of coordinates.
    edge_order: the order of the one-sided differences at the ends, 1 or 2.

    >>> import pullback
    >>> pullback.gradient(pullback.tensor([0.0, 1.0, 4.0, 9.0]))
    (tensor([1., 2., 4., 5.]),)
    """
    data = input._data
    if edge_order not in (1, 2):
        raise RuntimeError(errors.message("gradient()", expected="edge_order to be 1 or 2", found=str(edge_order)))
    axes = tuple(range(data.ndim)) if dim is None else wrap_axes(dim, data.ndim) or ()
    if dim is not None and not data.ndim:
        own_axis(dim, 0)
    if axes and data.dtype.kind == "b":
        raise RuntimeError(errors.message("gradient()", expected="numbers", found=errors.describe(input)))
    return tuple(
        gradient_along(input, axis, width, edge_order)
        for axis, width in zip(axes, _distances(input, spacing, axes), strict=True)
    )


# Integrals ------------------------------------------------------------------------------------------------------------


def _integrand(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> tuple[Tensor, int]:
    """The samples in floating point, and their axis; checks `x` and `dx` as well."""
    if not isinstance(y, Tensor) or not isinstance(x, (Tensor, type(None))):
        wrong = x if isinstance(y, Tensor) else y
        raise TypeError(errors.message(f"{name}()", expected="y, and x, to be Tensors", found=errors.describe(wrong)))
    if x is not None and dx is not None:
        raise TypeError(errors.message(f"{name}()", expected="x or dx", found="both"))
    if not y._data.ndim:
        raise IndexError(errors.message(f"{name}()", expected="at least one dimension", found=errors.describe(y)))
    axis = wrap_axis(dim, y._data.ndim)
    if y._data.dtype.kind == "b":
        raise RuntimeError(errors.message(f"{name}()", expected="numbers", found=errors.describe(y)))
    if x is not None and x._data.ndim == 1 and x._data.shape != (y._data.shape[axis],):
        raise RuntimeError(
            errors.message(
                f"{name}(): There must be one `x` value for each sample point",
                expected=f"{y._data.shape[axis]} of them, or x with several dimensions, which are those of y",
                found=errors.describe(x),
            )
        )
    return (to(y, dtypes.default()) if y._data.dtype.kind in "iu" else y), axis


def strips(y: Tensor, x: Any, dx: Any, axis: int) -> Tensor:
    """The areas below the lines from sample to sample."""
    pairs = _cut(y, axis, 1, None) + _cut(y, axis, None, -1)
    if x is None:
        return pairs * (0.5 * (1 if dx is None else dx))
    if x._data.ndim == 1:
        return pairs * widths(x, y._data.ndim, axis) / 2
    missing = y._data.ndim - x._data.ndim
    return pairs * diff(x.reshape((1,) * missing + x._data.shape) if missing > 0 else x, 1, axis) / 2


def _strip_samples() -> list[Sample]:
    return [
        *(S(A(3, 4), dim=d) for d in (0, 1, -1)),
        S(A(4)),
        S(A(4), dx=2),
        S(A(2, 3), dx=0.5, dim=0),
        S(A(4), A(4, dtype="float64")),
        S(A(2, 3), x=A(3, dtype="float64")),
        S(A(2, 3), A(2, dtype="float64"), dim=0),
        S(A(2, 3), A(2, 3, dtype="float64"), dim=0),
        S(A(3), V([0, 1, 3], "int64")),
        S(A(2, 3, 2), A(3, 2, dtype="float64"), dim=1),
        S(A(2, 3), A(1, 3, dtype="float64")),
        S(A(1, 3), A(2, 3, dtype="float64")),
        S(A(2, 1), A(2, 3, dtype="float64"), dim=0),
        S(A(3, 2, layout="T"), dim=-1),
        S(A(2, 3, layout="step")),
        S(A(1)),
        S(A(0)),
        S(A(0, 2)),
        S(A(2, 0)),
    ]


def _no_strips() -> list[Sample]:
    return [
        S(A(3), x=A(3), dx=1),
        S(A(3), A(2)),
        S(A(2, 3), A(1)),
        S(A()),
        S(A(3, dtype="bool")),
        S(A(2, 3), dim=2),
        S([1.0, 2.0]),
        S(A(2, 3, 2), A(2, 3), dim=1),
    ]


@composite(out=False, method=False, also="trapz", samples=_strip_samples, refused=_no_strips)
def trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of the samples `y` along `dim` by the trapezoidal rule; at points `x`, or `dx` (1) apart.

    >>> import pullback
    >>> pullback.trapezoid(pullback.tensor([1.0, 2.0, 3.0]), dx=2)
    tensor(8.)
    """
    if isinstance(y, Tensor) and y._data.ndim and not y._data.shape[wrap_axis(dim, y._data.ndim)]:
        return np.zeros_like(sum(y.detach(), dim), dtype=y._data.dtype)
    y, axis = _integrand("trapezoid", y, x, dx, dim)
    if x is not None:
        return sum(strips(y, x, dx, axis), axis)
    ends = sum(_cut(y, axis, 0, 1) + _cut(y, axis, -1, None), axis)
    return (sum(y, axis) - 0.5 * ends) * (1 if dx is None else dx)


@composite(out=False, method=False, samples=_strip_samples, refused=_no_strips)
def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral up to each sample of `y` but the first; see `trapezoid`."""
    y, axis = _integrand("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(strips(y, x, dx, axis), axis)
