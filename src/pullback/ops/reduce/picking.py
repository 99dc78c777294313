"""Derivatives of operations that return elements of the input and their positions: `sort`, `topk`, `max`, `median`.

The forward of such an operation finds the positions. Its derivative is that of reading the input at them (`pick`):
cotangents go back to the positions (`place`), tangents are read at them. So second order and forward mode follow from
two linear operations that are each other's adjoints.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...kernels.positions import along
from ...table.calls import on
from ...table.entry import linear
from ...table.op import Op
from ...tensor.adding import summing
from ...tensor.arrays import insert_axes, places_along, taken_along, wrap_axis, zeros_beside
from ...tensor.protocol import is_payload


def _put_in_front(level: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """vmap of `pick` and `place`: put the batch axis first in both tensors, so that `dim` moves on by one."""
    source, dim, index, *rest = args
    if not source._data.ndim:  # a 0-d tensor, treated as if it had an axis
        found = _put_in_front(level, op, (np.reshape(source, (1,)), 0, np.reshape(index, (1,)), *rest), kwargs)
        return np.reshape(found, (level.size,))
    if rest:
        shape, repeated = rest
        rest = [(level.size, *(shape or (1,))), repeated]
    return op.unchecked(level.lower(source), dim + 1, level.lower(index), *rest)


@linear(
    method=False,
    numbers="",
    input=lambda g, dim, index, input_shape: on(unpick, g, dim, index, input_shape, True),
    batch=_put_in_front,
)
def _pick(input: Any, dim: int, index: Any) -> Any:
    """The elements of `input` at positions `index` along `dim`, which counts from 0."""
    return taken_along(input, index, dim) if input.ndim else np.copy(input)


@linear(
    name="_unpick",
    method=False,
    numbers="",
    input=lambda g, dim, index: on(_pick, g, dim, index),
    batch=_put_in_front,
)
def unpick(input: Any, dim: int, index: Any, shape: Any, repeated: bool) -> Any:
    """Zeros of `shape` with `input` added at positions `index` along `dim`: the adjoint of `_pick`.

    repeated: whether a position may occur twice.
    """
    if not input.ndim:
        return np.copy(input)
    beside = index if is_payload(index) else input
    if not repeated:
        out = zeros_beside(beside, shape, input.dtype)
        out[places_along(index, dim, shape)] = input
        return out
    flat = zeros_beside(beside, (math.prod(shape),), summing(input.dtype))  # several times faster than several axes
    np.add.at(flat, along(index, dim, shape).reshape(-1), input.reshape(-1))
    return flat.reshape(shape).astype(input.dtype, copy=False)


def pick(input: Any, dim: int, index: Any) -> Any:
    """The elements of `input` at positions `index` along `dim`, which counts from 0."""
    return on(_pick, input, dim, index)


def place(input: Any, dim: int, index: Any, shape: Any) -> Any:
    """Zeros of `shape` with `input` added at positions `index` along `dim`, which counts from 0."""
    return on(unpick, input, dim, index, shape, True)


# Rules of operations that return values and indices with as many axes as the input ------------------------------------


def many_rule(g: Any, out1: Any, dim: int, input_shape: Any) -> Any:
    """Cotangents go to the positions of the values, which are all different."""
    return on(unpick, g[0], wrap_axis(dim, len(input_shape)), out1, input_shape, False)


def repeated_rule(g: Any, out1: Any, dim: int, input_shape: Any) -> Any:
    """Cotangents go to the positions of the values, and add up there."""
    return on(unpick, g[0], wrap_axis(dim, len(input_shape)), out1, input_shape, True)


def many_jvp(tangents: Any, out1: Any, dim: int, input_shape: Any) -> Any:
    """Tangents are read at the positions of the values."""
    return on(_pick, tangents[0], wrap_axis(dim, len(input_shape)), out1), None


# ... and of operations that choose one along an axis, which is dropped unless `keepdim` -------------------------------


def one_rule(g: Any, out1: Any, dim: int, keepdim: bool, input_shape: Any) -> Any:
    """The cotangent goes to the position of the value."""
    axis = wrap_axis(dim, len(input_shape))
    cotangent, index = (insert_axes(v, (axis,), input_shape, keepdim) for v in (g[0], out1))
    return on(unpick, cotangent, axis, index, input_shape, False)


def one_jvp(tangents: Any, out1: Any, dim: int, keepdim: bool, input_shape: Any) -> Any:
    """The tangent is read at the position of the value."""
    axis = wrap_axis(dim, len(input_shape))
    return np.reshape(
        on(_pick, tangents[0], axis, insert_axes(out1, (axis,), input_shape, keepdim)), np.shape(out1)
    ), None


def chosen(input: Any, dim: int, keepdim: bool, find: Any) -> tuple[Any, Any]:
    """The value and the index for each slice along `dim`; ``find(array, axis)`` gives the indices, axes kept."""
    axis = wrap_axis(dim, input.ndim)
    whole = input if input.ndim else np.reshape(input, (1,))
    index = find(whole, axis)
    values = taken_along(whole, index, axis)
    shape = input.shape[:axis] + (1,) * (keepdim and input.ndim > 0) + input.shape[axis + 1 :]
    return np.reshape(values, shape), np.reshape(index, shape).astype(np.int64, copy=False)


# Refusals -------------------------------------------------------------------------------------------------------------


def refuse_unordered(name: str, input: Any, error: type[Exception] = NotImplementedError, kinds: str = "c") -> None:
    """Refuse dtypes of some kinds: complex numbers have no order."""
    if input.dtype.kind in kinds:
        expected = "real numbers, which have an order" if input.dtype.kind == "c" else "numbers"
        raise error(
            errors.message(
                f"{name}() is not implemented for {input.dtype}", expected=expected, found=errors.describe(input)
            )
        )


def refuse_empty(name: str, input: Any, dim: int) -> None:
    """Refuse to choose an element of an empty tensor."""
    if input.ndim and not input.shape[wrap_axis(dim, input.ndim)]:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
