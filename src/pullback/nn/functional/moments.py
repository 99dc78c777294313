"""The common part of the normalisations: mean 0 and variance 1 within groups, and a scale and a shift.

All take an array of three axes ``(a, c, b)``, and give the elements of each c mean 0 and variance 1. For a batch,
``(N, C, *space)``, c is the channel; for a layer, c runs over all the leading axes, and a is 1. `_standardize` does
that. Its derivative is a projection, `_project`, which is its own transpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.counterparts import vecdot
from ...kernels.sliding import Array
from ...table.calls import on
from ...table.entry import bilinear, special
from ...tensor import adding
from ...tensor.adding import summed, summing
from ...tensor.arrays import reshaped
from ...tensor.tensor import Tensor

# Sums over a and b ----------------------------------------------------------------------------------------------------


def _total(x: Array) -> Array:
    """The sum over a and b, ``(..., 1, c, 1)``."""
    rows = summed(x, -1, True) if x.shape[-1] != 1 else x
    return summed(rows, -3, True) if x.shape[-3] != 1 else rows


def _total_product(x: Array, y: Array) -> Array:
    """The sum of products over a and b."""
    if type(x) is not np.ndarray:
        return _total(np.multiply(x, y))
    if x.shape[-1] == 1:
        return _products(x, y, "c")[..., None, :, None]
    rows = vecdot(x, y)[..., None]
    return summed(rows, -3, True) if x.shape[-3] != 1 else rows


def _products(x: Array, y: Array, kept: str) -> Array:
    """The sum of products over those of the axes a, c and b that are not kept; many rows in blocks, as in `summed`."""
    if type(x) is not np.ndarray:
        return np.sum(np.multiply(x, y), axis=tuple(i for i in (-3, -2, -1) if "acb"[i] not in kept))
    axis = max((i for i in (-3, -2) if "acb"[i] not in kept), key=x.shape.__getitem__, default=-1)
    n = x.shape[axis]
    if axis == -1 or n <= adding.FEW or x.shape != y.shape:
        return np.einsum(f"...acb,...acb->...{kept}", x, y)
    blocks = "acb".replace("acb"[axis], f"z{'acb'[axis]}")
    before, after = x.shape[:axis], x.shape[x.ndim + axis + 1 :]
    parts = []
    block = adding.BLOCK
    for start, height in ((0, block), (n // block * block, n % block)):  # whole blocks, and an incomplete one
        if height:
            some: Any = (..., slice(start, n - (n - start) % height), *(slice(None),) * len(after))
            u, v = (t[some].reshape(*before, -1, height, *after) for t in (x, y))
            parts.append(np.einsum(f"...{blocks},...{blocks}->z...{kept}", u, v))
    return summed(np.concatenate(parts), 0)


def _mean(x: Any) -> Any:
    count = np.shape(x)[-3] * np.shape(x)[-1] or 1
    if type(x) is np.ndarray:
        return _total(x) / x.dtype.type(count)
    return np.true_divide(np.sum(x, axis=(-3, -1), keepdims=True), count)


# To mean 0 and variance 1 ---------------------------------------------------------------------------------------------


def _project_rule(g: Any, input: Any, direction: Any, scale: Any) -> Any:
    # the derivative of <u, P v>, which is quadratic in the direction
    along = np.multiply(g, _mean(np.multiply(input, direction)))
    across = np.multiply(input, _mean(np.multiply(g, direction)))
    return np.multiply(np.negative(scale), np.add(along, across))


@special(
    home="nn.functional",
    batch="leading",
    fused=True,
    input=lambda g, direction, scale, center: on(_project, g, direction, scale, center),
    direction=_project_rule,
    scale=lambda g, scale, out, scale_shape: np.true_divide(on(_sum_product, g, out, scale_shape), scale),
)
def _project(input: Any, direction: Any, scale: Any, center: Any) -> Any:
    """``(v - mean(v) - d mean(v d)) scale`` of a tangent v and a standardised d: the part that keeps mean and variance.

    The scale, one number for each c, commutes with the projection.
    """
    dtype, single = input.dtype, summing(input.dtype)
    if dtype is not single:
        input, direction, scale = (x.astype(single) for x in (input, direction, scale))
    count = input.dtype.type(input.shape[-3] * input.shape[-1])
    out = direction * (_total_product(input, direction) / -count)
    out += input
    if center:
        out -= _total(input) / count
    out *= scale
    return out.astype(dtype, copy=False)


def _inverse(variance: Any, eps: Any) -> Any:
    return np.reciprocal(np.sqrt(np.add(variance, eps)))


def _standardize_rule(g: Any, out0: Any, out2: Any, eps: Any, center: Any) -> Any:
    scale, found = _inverse(out2, eps), 0.0
    if g[0] is not None:
        found = on(_project, g[0], out0, scale, center)
    count = np.shape(out0)[-3] * np.shape(out0)[-1] or 1
    if g[1] is not None and center:
        found = np.add(found, np.true_divide(g[1], count))
    if g[2] is not None:  # the variance is mean(x x), x = out0 / scale; its part through the mean is 0
        found = np.add(found, np.multiply(out0, np.multiply(g[2], np.true_divide(2 / count, scale))))
    return found


def _standardize_tangents(tangents: Any, out0: Any, out2: Any, eps: Any, center: Any) -> list[Any]:
    t, scale = tangents[0], _inverse(out2, eps)
    return [
        on(_project, t, out0, scale, center),
        np.multiply(_mean(t), float(center)),
        np.multiply(_mean(np.multiply(out0, t)), np.true_divide(2, scale)),
    ]


@special(home="nn.functional", batch="leading", fused=True, jvp=_standardize_tangents, input=_standardize_rule)
def _standardize(input: Any, eps: Any, center: Any) -> Any:
    """``(x - mean) / sqrt(variance + eps)`` of ``(..., a, c, b)``, and the mean and the variance over a and b.

    Unless `center`, the mean is taken to be 0, and the variance is the mean square; what stands for the mean is not
    to be used.
    """
    dtype = input.dtype
    x = input.astype(np.float32) if dtype == np.float16 else input
    count = x.dtype.type(x.shape[-3] * x.shape[-1])
    mean: Any = _total(x) / count if center else None
    out = x - mean if center else x
    variance = _total_product(out, out) / count
    mean = mean if center else variance * 0
    scale = _inverse(variance, eps)
    out = np.multiply(out, scale, out=out if center else None)
    return tuple(part.astype(dtype, copy=False) for part in (out, mean, variance))


def _standardized(input: Any, mean: Any, variance: Any, eps: Any, center: Any) -> Any:
    return np.multiply(np.subtract(input, mean) if center else input, _inverse(variance, eps))


def _normalize_rule(g: Any, input: Any, out1: Any, out2: Any, eps: Any, center: Any) -> Any:
    return _standardize_rule(g, _standardized(input, out1, out2, eps, center), out2, eps, center)


def _normalize_tangents(tangents: Any, input: Any, out1: Any, out2: Any, eps: Any, center: Any) -> list[Any]:
    return _standardize_tangents(tangents, _standardized(input, out1, out2, eps, center), out2, eps, center)


@special(home="nn.functional", batch="leading", fused=True, jvp=_normalize_tangents, input=_normalize_rule)
def _normalize(input: Any, eps: Any, center: Any) -> Any:
    """`_standardize` for a first result that is returned unchanged: a caller may write to it, so the input is saved."""
    return _standardize.op.forward(input, eps, center)


# A scale and a shift --------------------------------------------------------------------------------------------------


@bilinear(
    home="nn.functional",
    batch="leading",
    input=lambda g, other: np.multiply(g, other),
    other=lambda g, input: np.multiply(g, input),
)
def _sum_product(input: Any, other: Any, shape: Any) -> Any:
    """``input * other`` summed to a shape of three axes that broadcasts to it: ``(1, c, 1)``, ``(1, 1, b)``...

    The axes of a batch before these three are left to the engine.
    """
    shape, single = shape[-3:], summing(input.dtype)
    if input.dtype is not single:
        return _sum_product.op.forward(input.astype(single), other.astype(single), shape).astype(input.dtype)
    if shape[0] == 1 == shape[2] and input.shape == other.shape:
        return _total_product(input, other)
    kept = "".join(axis for axis, n in zip("acb", shape, strict=True) if n != 1)
    found = _products(input, other, kept)
    return found.reshape(*found.shape[: found.ndim - len(kept)], *shape)


@special(
    home="nn.functional",
    batch="leading",
    fused=True,
    jvp=lambda tangents, input, scale: _affine_tangent(tangents, input, scale),
    input=lambda g, scale: np.multiply(g, scale),
    scale=lambda g, input, scale_shape: on(_sum_product, g, input, scale_shape),
    shift=lambda g: g,
)
def _affine(input: Any, scale: Any, shift: Any) -> Any:
    """``input * scale + shift`` of real arrays of three axes each; the scale and the shift broadcast."""
    out = input * scale
    if type(out) is not type(shift) or np.broadcast_shapes(out.shape, shift.shape) != out.shape:
        return out + shift  # only the shift is a payload, or varies over a batch
    out += shift
    return out


def _affine_tangent(tangents: Any, input: Any, scale: Any) -> Any:
    parts = [
        None if tangents[0] is None else np.multiply(tangents[0], scale),
        None if tangents[1] is None else np.multiply(tangents[1], input),
        tangents[2],
    ]
    found: Any = 0.0
    for part in parts:
        if part is not None:
            found = np.add(found, part)
    return np.broadcast_to(found, np.shape(input)) if np.shape(found) != np.shape(input) else found


# A layer: along the last axis, with a scale and a shift ---------------------------------------------------------------


def _rows(x: Any) -> Any:
    """``(..., n)`` as the three axes ``(..., 1, c, n)``."""
    shape = np.shape(x)
    return reshaped(x, (*shape[:-2], 1, *shape[-2:]) if len(shape) > 1 else (1, 1, *shape))


def _of_rows(x: Any, like: Any) -> Any:
    """``(..., 1, c, n)`` as ``(..., c, n)``, or as ``(n)`` if `like` has one axis."""
    shape = np.shape(x)
    return reshaped(x, (*shape[:-3], *shape[-2:]) if np.ndim(like) > 1 else shape[-1:])


def _standard_rows(input: Any, mean: Any, variance: Any, eps: Any, center: Any) -> tuple[Any, Any]:
    """The standardised rows, and their variance. Where a derivative is recorded it is that of the input alone, so that
    nothing flows through the other results of the node, and hooks see what they see in torch."""
    if not isinstance(input, Tensor):
        return _standardized(input, mean, variance, eps, center), variance
    rows, _, variance = on(_standardize, _rows(input), eps, center)
    return _of_rows(rows, input), _of_rows(variance, input)


def _layer_rule(g: Any, input: Any, scale: Any, out1: Any, out2: Any, eps: Any, center: Any) -> Any:
    rows, variance = _standard_rows(input, out1, out2, eps, center)
    first = g[0]
    if first is not None:
        first = _rows(first if scale is None else np.multiply(first, scale))
    others = [part if part is None else _rows(part) for part in g[1:]]
    return _of_rows(_standardize_rule([first, *others], _rows(rows), _rows(variance), eps, center), rows)


def _scale_rule(g: Any, input: Any, out1: Any, out2: Any, eps: Any, center: Any, scale_shape: Any) -> Any:
    if g[0] is None:
        return None
    rows, _ = _standard_rows(input, out1, out2, eps, center)
    if len(scale_shape) > 1:  # one scale for each in a batch
        return np.multiply(g[0], rows)
    found = on(_sum_product, _rows(g[0]), _rows(rows), (1, 1, *scale_shape))
    return reshaped(found, (*np.shape(found)[:-3], *scale_shape))


def _shift_rule(g: Any, shift_shape: Any) -> Any:
    if g[0] is None or len(shift_shape) > 1:
        return g[0]
    return summed(g[0], tuple(range(np.ndim(g[0]) - 1)))


def _layer_tangents(tangents: Any, input: Any, scale: Any, out1: Any, out2: Any, eps: Any, center: Any) -> list[Any]:
    rows, variance = _standard_rows(input, out1, out2, eps, center)
    found: list[Any] = [None, None, None]
    if tangents[0] is not None:
        parts = _standardize_tangents([_rows(tangents[0])], _rows(rows), _rows(variance), eps, center)
        found = [_of_rows(part, rows) for part in parts]
        found[0] = found[0] if scale is None else np.multiply(found[0], scale)
    scaled = None if tangents[1] is None else np.multiply(rows, tangents[1])
    for part in (scaled, tangents[2]):
        if part is not None:
            found[0] = part if found[0] is None else np.add(found[0], part)
    return found


@special(
    home="nn.functional",
    batch="leading",
    numbers="eps center",
    node="NativeLayerNormBackward0",
    saved={
        "weight": "scale",
        "normalized_shape": lambda input: np.shape(input)[-1:],
        "result1": "out1",
        "result2": lambda out2, eps: _inverse(out2, eps),
    },
    fused=True,
    jvp=_layer_tangents,
    input=_layer_rule,
    scale=_scale_rule,
    shift=_shift_rule,
)
def _layer_norm(input: Any, scale: Any, shift: Any, eps: Any, center: Any) -> Any:
    """`_standardize` of each row ``(..., n)``, times the scale plus the shift: ``(n)`` each, or None."""
    parts = _standardize.op.forward(_rows(input), eps, center)
    out, mean, variance = (_of_rows(part, input) for part in parts)
    if scale is not None:
        out = out * scale if shift is None else _affine.op.forward(out, scale, shift)
    elif shift is not None:
        out = out + shift
    if np.ndim(out) > np.ndim(input):  # a batch of scales
        mean, variance = (np.broadcast_to(part, (*np.shape(out)[:-1], 1)) for part in (mean, variance))
    return out, mean, variance
