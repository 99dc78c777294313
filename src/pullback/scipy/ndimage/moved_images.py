"""Images at other places: `map_coordinates` and the transforms that compute the coordinates."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.special

from ... import errors
from ...ops.make.conversion import to
from ...ops.shape.axes import movedim
from ...tensor.tensor import Tensor
from ..array_nodes import Array, floating
from ..mirror import mirrors
from ..signal.extending import extended
from ..user_functions import bare, plain_setting
from .image_filters import as_output, each_axis
from .image_splines import Spline, SplineSum, coefficients

_BORDER = 12  # pixels that SciPy adds before it filters in these two modes
_MARGINS = ("nearest", "grid-constant")


def _sampled(x: Any, q: Any, order: int, mode: str, cval: Any, prefilter: bool) -> Any:
    """The image (..., *shape) at the coordinates (axes, points)."""
    dtype, ndim = x._data.dtype, len(q)
    if not all(x.shape[-ndim:]):
        if q.shape[-1]:
            found = errors.describe(x)
            raise ValueError(errors.message("scipy.ndimage", expected="an image that has pixels", found=found))
        return np.sum(x) * np.zeros((*x.shape[:-ndim], 0), dtype)
    x, q = to(x, np.complex128 if dtype.kind == "c" else np.float64), to(floating(q), np.float64)
    if prefilter and order > 1:
        for axis in range(-ndim, 0):
            if mode in _MARGINS:
                x = extended(x, axis, _BORDER, _BORDER, mode, cval)
        for axis in range(-ndim, 0):
            x = coefficients(x, order, axis, mode)
        q = q + _BORDER if mode in _MARGINS else q
    spline = Spline(tuple(x.shape[-ndim:]), order, mode, cval, (0,) * ndim)
    return to(SplineSum.apply(spline, x, q), dtype)


def _checked(x: Any, order: int, mode: str, cval: Any, prefilter: bool) -> None:
    """SciPy's own errors for what holds for all transforms."""
    few = bare(x)[tuple(slice(1) for _ in x.shape)]
    scipy.ndimage.shift(few, 0.0, None, order, mode, cval, prefilter)


@mirrors(
    "ndimage.map_coordinates",
    derivative="the adjoint sum for the image; the spline's derivative for the coordinates",
    limits="order 0 is constant between the pixels, order 1 has corners at them",
)
def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image between its pixels, by a spline; differentiable in the image and in the coordinates.

    >>> import pullback
    >>> q = pullback.tensor([[0.5]], requires_grad=True)
    >>> map_coordinates([1.0, 3.0, 7.0], q, order=1).backward()
    >>> q.grad
    tensor([[2.]])
    """
    x, q = floating(input), floating(coordinates)
    order, cval, prefilter = plain_setting("ndimage.map_coordinates", order=order, cval=cval, prefilter=prefilter)
    few = bare(q)
    few = np.take(few, range(min(1, few.shape[-1])), axis=-1) if few.ndim else few
    scipy.ndimage.map_coordinates(bare(x), few, None, order, mode, cval, prefilter=False)  # SciPy's checks
    out = _sampled(x, np.reshape(q, (q.shape[0], -1)), order, mode, cval, prefilter)
    return as_output("map_coordinates", np.reshape(out, q.shape[1:]), output)


def _grid(shape: Any) -> list[Array]:
    """The coordinates of all pixels, an array for each axis, in one row."""
    return [g.reshape(-1).astype(float) for g in np.meshgrid(*map(np.arange, shape), indexing="ij")]


@mirrors(
    "ndimage.affine_transform",
    derivative="that of map_coordinates, the coordinates in recorded operations; in input, matrix and offset",
    limits="as map_coordinates",
)
def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image at ``matrix @ o + offset`` for each pixel o of the result; differentiable in all three.

    >>> import pullback
    >>> offset = pullback.tensor([0.5], requires_grad=True)
    >>> affine_transform([1.0, 3.0, 7.0], [1.0], offset, order=1)[1].backward()
    >>> offset.grad
    tensor([4.])
    """
    x, m = floating(input), floating(matrix)
    shape = tuple(x.shape) if output_shape is None else tuple(map(int, output_shape))
    off: Any = offset if isinstance(offset, Tensor) else floating(each_axis(offset, x.ndim))
    few = tuple(min(1, n) for n in shape)
    given = bare(off)
    scipy.ndimage.affine_transform(
        bare(x),
        bare(m),
        given if given.ndim else given.item(),
        few,
        None,
        order,
        mode,
        cval,
        prefilter=False,
    )
    if m.ndim == 2 and m.shape[1] == x.ndim + 1 and m.shape[0] in (x.ndim, x.ndim + 1):
        off, m = m[: x.ndim, x.ndim], m[: x.ndim, : x.ndim]
    off = np.broadcast_to(off, (x.ndim,))
    return as_output(
        "affine_transform", np.reshape(_affine(x, m, off, shape, order, mode, cval, prefilter), shape), output
    )


def _affine(x: Any, m: Any, off: Any, shape: Any, order: int, mode: str, cval: Any, prefilter: bool) -> Any:
    grid = _grid(shape)
    if m.ndim == 1:
        q = [(g + off[i] / m[i]) * m[i] for i, g in enumerate(grid)]
    else:
        q = [sum((g * m[i, j] for j, g in enumerate(grid)), 0.0) + off[i] for i in range(m.shape[0])]
    return _sampled(x, np.stack(q), order, mode, cval, prefilter)


@mirrors("ndimage.shift", derivative="that of map_coordinates; in input and shift", limits="as map_coordinates")
def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image moved by a shift, differentiable in both.

    >>> import pullback
    >>> shift(pullback.tensor([1.0, 3.0, 7.0]), 0.5, order=1)
    tensor([0., 2., 5.])
    """
    x = floating(input)
    _checked(x, order, mode, cval, prefilter)
    by = each_axis(shift, x.ndim)
    q = np.stack([floating(g - s) for g, s in zip(_grid(x.shape), by, strict=True)])
    return as_output("shift", np.reshape(_sampled(x, q, order, mode, cval, prefilter), x.shape), output)


@mirrors(
    "ndimage.zoom",
    derivative="that of map_coordinates, in the image",
    limits="zoom sets the size of the result; complex images keep grid_mode, which SciPy drops",
)
def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """The image at another size, differentiable in the image.

    >>> import pullback
    >>> zoom(pullback.tensor([1.0, 3.0]), 1.5, order=1)
    tensor([1., 2., 3.])
    """
    x = floating(input)
    (factors,) = plain_setting("ndimage.zoom", zoom=zoom)
    _checked(x, order, mode, cval, prefilter)
    factors = each_axis(factors, x.ndim)
    shape = tuple(int(round(n * z)) for n, z in zip(x.shape, factors, strict=True))  # noqa: RUF046 - NumPy's numbers
    if any(n < 0 for n in shape):
        raise ValueError(
            errors.message("ndimage.zoom", expected="factors that are not negative", found=repr(tuple(factors)))
        )
    if all(z == 1 for z in factors) and prefilter:
        return as_output("zoom", x * 1, output)
    if grid_mode and mode in ("constant", "wrap"):
        message = f"It is recommended to use mode = grid-{mode} instead of {mode} when grid_mode is True."
        warnings.warn(message, stacklevel=2)
    q = []
    for have, size, g in zip(x.shape, shape, _grid(shape), strict=True):
        above, below = (have, size) if grid_mode else (have - 1, size - 1)
        step = above / below if below else 1.0
        q.append((g + 0.5) * step - 0.5 if grid_mode else g * step)
    out = _sampled(x, floating(np.stack(q)), order, mode, cval, prefilter)
    return as_output("zoom", np.reshape(out, shape), output)


@mirrors("ndimage.rotate", derivative="that of affine_transform; in input and angle", limits="as map_coordinates")
def rotate(
    input: Any,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image turned in a plane by an angle in degrees, differentiable in both.

    >>> import pullback
    >>> rotate(pullback.tensor([[1.0, 2.0], [3.0, 4.0]]), 90.0, order=1).round()
    tensor([[2., 4.],
            [1., 3.]])
    """
    x = floating(input)
    _checked(x, order, mode, cval, prefilter)
    few = bare(x)[tuple(slice(1) for _ in x.shape)]
    scipy.ndimage.rotate(few, 0.0, axes, False, None, order, mode, cval, prefilter)  # SciPy's checks
    plane = sorted(int(a) % x.ndim for a in axes)
    size = np.array([x.shape[a] for a in plane])
    c, s = scipy.special.cosdg(angle), scipy.special.sindg(angle)
    m = np.stack([np.stack([floating(c), floating(s)]), np.stack([floating(-s), floating(c)])])
    shape = size
    if reshape:
        corners = bare(m) @ [[0, 0, size[0], size[0]], [0, size[1], 0, size[1]]]
        shape = (np.ptp(corners, axis=1) + 0.5).astype(int)
    offset = (size - 1) / 2 - np.matmul(m, (shape - 1) / 2)
    x = movedim(x, plane, (-2, -1))
    out = _affine(x, m, offset, shape, order, mode, cval, prefilter)
    out = np.reshape(out, (*x.shape[:-2], *map(int, shape)))
    return as_output("rotate", np.moveaxis(out, (-2, -1), plane), output)


@mirrors("ndimage.spline_filter1d", derivative="the filter itself, up to its ends")
def spline_filter1d(
    input: Any,
    order: int = 3,
    axis: int = -1,
    output: Any = np.float64,
    mode: str = "mirror",
) -> Any:
    """The coefficients of the spline along one axis.

    >>> import pullback
    >>> spline_filter1d(pullback.tensor([1.0, 1.0, 1.0])).round(decimals=6)
    tensor([1., 1., 1.], dtype=pullback.float64)
    """
    x = floating(input)
    few = bare(x)[tuple(slice(1) for _ in x.shape)]
    scipy.ndimage.spline_filter1d(few, order, axis, few.dtype, mode)  # SciPy's checks
    out = coefficients(x, order, axis % x.ndim - x.ndim, mode) if order > 1 else x * 1
    return as_output("spline_filter1d", out, np.complex128 if out.is_complex() else output)


@mirrors("ndimage.spline_filter", derivative="that of spline_filter1d, axis by axis")
def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    """The coefficients of the spline along all axes.

    >>> import pullback
    >>> spline_filter(pullback.tensor([1.0, 1.0, 1.0])).round(decimals=6)
    tensor([1., 1., 1.], dtype=pullback.float64)
    """
    x = floating(input)
    few = bare(x)[tuple(slice(1) for _ in x.shape)]
    scipy.ndimage.spline_filter(few, order, few.dtype, mode)  # SciPy's checks
    for axis in range(-x.ndim, 0):
        x = coefficients(x, order, axis, mode)
    return as_output("spline_filter", x, np.complex128 if x.is_complex() else output)
