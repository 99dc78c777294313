"""`grid_sample` reads an image at places between its elements; `affine_grid` makes such places.

Along each axis a place becomes the positions of the elements around it, and their weights, which are differentiable in
the place and written in operations on Tensors. The rest is one trilinear form, the sum over ``x[c, index[k, l]] w[k, l]
y[c, l]``. `_read` is its derivative with respect to y, `_write` with respect to x, `_compare` with respect to w. The
adjoints of each are the other two, so there are derivatives of every order, in the image and in the grid.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .... import errors
from ....kernels.counterparts import combine_at
from ....kernels.sliding import Array, Ints
from ....ops.elementwise.limits import where
from ....ops.products.matmul import matmul
from ....table.calls import on
from ....table.entry import bilinear, composite
from ....table.samples import A, S, V
from ....tensor.arrays import beside, empty_beside, zeros_beside
from ....tensor.protocol import on_arrays
from ....tensor.tensor import Tensor, wrap
from ..arguments import floating, refuse, tensors, where_empty
from .resampling import cubic_weights

Taken = list[tuple[Tensor, Tensor]]  # positions along an axis, all of them inside, and weights


# The trilinear form ---------------------------------------------------------------------------------------------------


def _batches(*arrays: Array) -> tuple[Ints, list[Array]]:
    """The shape of the axes before the last two, and the arrays with these axes flattened into one."""
    lead = np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    count = math.prod(lead)
    return lead, [np.broadcast_to(a, (*lead, *a.shape[-2:])).reshape(count, *a.shape[-2:]) for a in arrays]


@bilinear(
    home="nn.functional",
    batch="leading",
    input=lambda g, index, weight, input_shape: on(_write, g, index, weight, input_shape[-1]),
    weight=lambda g, input, index: on(_compare, g, input, index),
)
@on_arrays
def _read(input: Any, index: Any, weight: Any) -> Any:
    """y ``(..., C, l)`` of x ``(..., C, p)`` at positions ``(..., k, l)``, with weights."""
    lead, (x, places, w) = _batches(input, index, weight)
    y = zeros_beside(input, (len(x), x.shape[1], places.shape[2]))
    for b in range(len(x)):
        for k in range(places.shape[1]):
            part = np.take(x[b], places[b, k], axis=1)
            part *= w[b, k]
            y[b] += part
    return y.reshape(*lead, *y.shape[1:])


@bilinear(
    home="nn.functional",
    batch="leading",
    input=lambda g, index, weight: on(_read, g, index, weight),
    weight=lambda g, input, index: on(_compare, input, g, index),
)
@on_arrays
def _write(input: Any, index: Any, weight: Any, size: Any) -> Any:
    """x, with `size` elements, from y as `input` and the weights."""
    lead, (y, places, w) = _batches(input, index, weight)
    x = zeros_beside(input, (len(y), y.shape[1], size))
    for b in range(len(y)):
        for k in range(places.shape[1]):
            part = y[b] * w[b, k]
            for c in range(len(part)):  # faster than positions of two axes
                combine_at(np.add, x[b, c], places[b, k], part[c])
    return x.reshape(*lead, *x.shape[1:])


@bilinear(
    home="nn.functional",
    batch="leading",
    input=lambda g, other, index: on(_read, other, index, g),
    other=lambda g, input, index, other_shape: on(_write, input, index, g, other_shape[-1]),
)
@on_arrays
def _compare(input: Any, other: Any, index: Any) -> Any:
    """w, from y as `input` and x as `other`."""
    lead, (y, x, places) = _batches(input, other, index)
    w = empty_beside(input, places.shape)
    for b in range(len(y)):
        for k in range(places.shape[1]):
            w[b, k] = np.einsum("cl,cl->l", y[b], np.take(x[b], places[b, k], axis=1))
    return w.reshape(*lead, *w.shape[1:])


# Places ---------------------------------------------------------------------------------------------------------------


def _mirrored(x: Tensor, n: int, corners: bool) -> Tensor:
    """Places reflected until they are inside, at the middles or the outer edges of the outermost elements."""
    low, span = (0.0, n - 1.0) if corners else (-0.5, float(n))
    if not span:
        return x * 0
    rest = (x - low).abs() % (2 * span)
    return where(rest > span, 2 * span - rest, rest) + low


def _placed(x: Tensor, n: int, padding: str, corners: bool) -> Tensor:
    """Places moved into an axis of n elements in the mode `padding`; 'zeros' leaves them unchanged."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        x = _mirrored(x, n, corners)
    # at the border, the derivative is that of the outside
    return where(x > 0, where(x < n - 1, x, n - 1), 0)


def _within(x: Tensor, weight: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Whole places as positions along an axis of n elements; places outside get weight 0."""
    inside = (x >= 0) & (x <= n - 1)
    return where(inside, x, 0).long(), where(inside, weight, 0)


def _along(coordinate: Tensor, n: int, mode: str, padding: str, corners: bool) -> Taken:
    """The positions and weights along an axis of n elements for coordinates from -1 to 1."""
    x = (coordinate + 1) * ((n - 1) / 2) if corners else ((coordinate + 1) * n - 1) / 2
    if mode == "bicubic":
        low = x.floor()
        weights = cubic_weights(x - low)
        return [_within(_placed(low + (k - 1), n, padding, corners), w, n) for k, w in enumerate(weights)]
    x = _placed(x, n, padding, corners)
    if mode == "nearest":
        return [_within(x.round().detach(), x * 0 + 1, n)]
    low = x.floor()
    part = x - low
    return [_within(low, 1 - part, n), _within(low + 1, part, n)]


def _check(input: Tensor, grid: Tensor, mode: str, padding: str) -> int:
    """The number of spatial axes."""
    name = "grid_sample"
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise refuse(name, "mode 'bilinear', 'nearest' or 'bicubic'", repr(mode), error=ValueError)
    if padding not in ("zeros", "border", "reflection"):
        raise refuse(name, "padding_mode 'zeros', 'border' or 'reflection'", repr(padding), error=ValueError)
    tensors(name, input=input, grid=grid)
    shape, found = input._data.shape, grid._data.shape
    space = len(shape) - 2
    if space not in (2, 3) or len(found) != len(shape):
        raise refuse(name, "a 4D or 5D input and grid of as many dimensions", f"{list(shape)} and {list(found)}")
    if found[-1] != space:
        raise refuse(name, f"a grid of size {space} in its last dimension", f"size {list(found)}")
    if found[0] != shape[0]:
        raise refuse(name, f"a grid of the input's batch size {shape[0]}", f"{found[0]}")
    if 0 in shape[2:]:
        raise refuse(name, "an input of some elements", f"size {list(shape)}")
    if mode == "bicubic" and space == 3:
        raise refuse(name, "a 4D input with mode='bicubic'", f"size {list(shape)}")
    if grid._data.dtype != input._data.dtype:
        raise refuse(name, f"a grid of the input's dtype {input.dtype}", errors.describe(grid))
    floating(name, input)
    return space


@composite(
    home="nn.functional",
    narrow="one dtype",
    samples=lambda: _samples(),
    kinks=lambda: _kinks(),
    refused=lambda: _refused(),
    differs=where_empty("int64 bool complex128"),
)
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """`input`, ``(N, C, H, W)``, at the places that ``grid``, ``(N, h, w, 2)``, holds as x and y from -1 to 1.

    Or ``(N, C, D, H, W)`` at ``(N, d, h, w, 3)``. mode: ``'bilinear'`` (also of three axes), ``'nearest'`` or
    ``'bicubic'``. padding_mode: the values outside: ``'zeros'``, the ``'border'`` value, or the ``'reflection'`` at the
    border. align_corners: -1 and 1 are the middles of the outermost elements, not their outer edges.

    >>> import pullback
    >>> x = pullback.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> pullback.nn.functional.grid_sample(x, pullback.zeros(1, 1, 1, 2))
    tensor([[[[1.5000]]]])
    """
    space = _check(input, grid, mode, padding_mode)
    n, channels, *image = input._data.shape
    places = math.prod(grid._data.shape[1:-1])
    flat = grid.reshape(n, places, space)
    axes = [  # the grid names the last axis first
        _along(flat[..., space - 1 - i], m, mode, padding_mode, bool(align_corners)) for i, m in enumerate(image)
    ]
    positions, weights = [], []
    for taken in itertools.product(*axes):
        position, weight = taken[0]
        for (p, w), m in zip(taken[1:], image[1:], strict=True):
            position, weight = position * m + p, weight * w
        positions.append(position)
        weights.append(weight)
    pixels = input.reshape(n, channels, math.prod(image))
    found = _read(pixels, np.stack(positions, 1), np.stack(weights, 1))
    return found.reshape(n, channels, *grid._data.shape[1:-1])


def _base(size: Any, corners: bool, dtype: Any) -> Any:
    """The places ``(elements, axes + 1)`` of an image of size `size`, the last axis first, and a column of ones."""
    lines = []
    for n in size:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        lines.append(line if corners else line * ((n - 1) / n))
    grids = np.meshgrid(*lines, indexing="ij")
    return np.stack([*(g.reshape(-1) for g in reversed(grids)), np.ones(math.prod(size))], -1).astype(dtype)


@composite(
    home="nn.functional",
    samples=lambda: [
        S(A(2, 2, 3), (2, 1, 3, 4)),
        S(A(1, 2, 3, layout="T"), [1, 3, 1, 2], align_corners=True),
        S(A(2, 3, 4), (2, 1, 3, 2, 4), False),
        S(A(1, 3, 4), (1, 1, 2, 1, 3), True),
    ],
    refused=lambda: [
        S(A(2, 3, 4), (2, 1, 3, 4)),
        S(A(2, 2, 3), (2, 1, 3, 4, 5)),
        S(A(2, 2, 3), (3, 1, 3, 4)),
        S(A(2, 2, 3), (2, 1, 0, 4)),
        S(A(2, 2, 3), (2, 1, 3)),
        S(A(2, 2, 3, dtype="int64"), (2, 1, 3, 4)),
        S(A(2, 2, 3)),
    ],
)
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` that affine maps ``(N, 2, 3)`` make of an image of `size` ``(N, C, H, W)``; or in 3D.

    Each element is ``theta @ (x, y, 1)``, where x and y go from -1 to 1.

    >>> import pullback
    >>> pullback.nn.functional.affine_grid(pullback.eye(2, 3)[None], (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    tensors("affine_grid", theta=theta)
    if theta._data.dtype.kind != "f":
        raise refuse("affine_grid", "theta of floating point numbers", theta.dtype, error=ValueError)
    found = tuple(size)
    space = len(found) - 2
    if space not in (2, 3):
        raise refuse("affine_grid", "a size of 4 or 5 numbers", list(found), error=NotImplementedError)
    if theta._data.ndim != 3 or theta._data.shape[1:] != (space, space + 1):
        raise refuse(
            "affine_grid",
            f"theta of shape (N, {space}, {space + 1}) for size {list(found)}",
            list(theta._data.shape),
            error=ValueError,
        )
    if min(found) < 1:
        raise refuse("affine_grid", "a positive size", list(found), error=ValueError)
    if theta._data.shape[0] != found[0]:
        raise refuse("affine_grid", f"theta for each of {found[0]} images", theta._data.shape[0])
    base = wrap(beside(theta, _base(found[2:], bool(align_corners), theta._data.dtype)))
    return matmul(base, theta.transpose(1, 2)).reshape(found[0], *found[2:], space)


# Their domains --------------------------------------------------------------------------------------------------------


def _samples() -> list[Any]:
    found = []
    for padding in ("zeros", "border", "reflection"):
        for corners in (False, True):
            for mode in ("bilinear", "nearest", "bicubic"):
                found += [S(A(2, 2, 4, 3), _places(2, 3, 2, 2), mode, padding, corners)]
            for mode in ("bilinear", "nearest"):
                found += [S(A(1, 2, 3, 2, 4), _places(1, 2, 2, 2, 3), mode, padding, corners)]
    return [
        *found,
        S(A(1, 2, 3, 3, layout="T"), A(1, 2, 2, 2, domain="small", layout="step")),
        S(A(1, 1, 1, 1), A(1, 2, 2, 2, domain="small"), align_corners=True, padding_mode="reflection"),
        S(A(0, 2, 3, 3), A(0, 2, 2, 2)),
    ]


def _places(*shape: int) -> Any:
    """Places inside and outside an image, none at an edge or halfway."""
    rng = np.random.default_rng(4)
    return V(np.round(rng.uniform(-2.3, 2.3, shape), 3).tolist())


def _kinks() -> list[Any]:
    edges = [[[[-1.0, 1.0], [0.0, 0.5], [-1.5, 3.0]]]]
    x = [[[[1.0, 2.0, 4.0], [3.0, 5.0, -2.0]]]]
    return [
        S(V(x), V(edges), mode, padding, True) for mode in ("bilinear", "nearest") for padding in ("zeros", "border")
    ]


def _refused() -> list[Any]:
    x, grid = A(1, 2, 4, 4), A(1, 3, 3, 2)
    return [
        S(x, A(1, 3, 3, 3)),
        S(x, A(2, 3, 3, 2)),
        S(A(1, 2, 4), A(1, 3, 1)),
        S(A(1, 2, 4, 4, 4), A(1, 3, 3, 3, 3), mode="bicubic"),
        S(x, grid, "cubic"),
        S(x, grid, "nearest", "zero"),
        S(A(1, 2, 0, 4), grid),
        S(x, A(1, 3, 3, 2, dtype="float64")),
        S(x),
    ]
