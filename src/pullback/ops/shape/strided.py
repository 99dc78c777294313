"""Views by strides: `as_strided`, any layout of a tensor's memory, and `unfold`, windows that may overlap.

An element that appears at several places of such a view gets the sum of the gradients there.

`as_strided` reads memory, not the tensor: its result depends on the places of the elements in memory. These are an
argument of the entry, `geometry`, so that the operation is the same function of the elements for every tensor. If a
tensor has another geometry (a gradient, a tangent), memory of that geometry is filled with its elements first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by, moved
from ...kernels.boxes import address
from ...kernels.counterparts import strided_windows
from ...kernels.positions import add_at
from ...table.calls import apply, as_view, on
from ...table.entry import composite, linear, method
from ...table.samples import A, S
from ...tensor.adding import summing
from ...tensor.arrays import sizes, wrap_axis, zeros_beside
from ...tensor.memory import innermost, same_memory
from ...tensor.protocol import is_foreign, is_payload, on_arrays, on_host
from ...tensor.tensor import Lifted, Tensor

Geometry = tuple[tuple[int, ...], int]
"""The distance, in elements, between neighbours along each axis, and the number of elements before the first."""


_OF_MEMORY = on_host("it reads the memory of an array, whatever its elements are")


def _memory(a: Any) -> Any:
    """The whole memory that an array is part of, as a row of elements of its dtype."""
    owner = a
    while True:
        base = owner.base
        base = base if isinstance(base, np.ndarray) else getattr(base, "base", None)  # the base that as_strided() sets
        if not isinstance(base, np.ndarray):
            break
        owner = base
    start = owner if owner.flags.c_contiguous else owner.T
    if not start.flags.c_contiguous:  # memory with gaps: all of it, from its first element
        low, high = np.lib.array_utils.byte_bounds(owner)
        start = owner[tuple(slice(None, None, -1) if s < 0 else slice(None) for s in owner.strides)]
        start = np.lib.stride_tricks.as_strided(start, ((high - low) // owner.itemsize,), (owner.itemsize,))
    return start.reshape(-1).view(a.dtype)


def _geometry(a: Any, memory: Any) -> Geometry:
    item = a.itemsize
    return tuple(s // item for s in a.strides), (address(a) - address(memory)) // item


def _places(size: Any, stride: Any, offset: int) -> Any:
    """The places of a view's elements in memory."""
    found = np.asarray(offset, dtype=np.int64)
    for n, step in zip(size, stride, strict=True):
        found = found[..., None] + np.arange(n) * step
    return found


def _steps(shape: Any) -> tuple[int, ...]:
    """The strides, in elements, of a contiguous tensor of this shape."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _length(size: Any, stride: Any, offset: int) -> int:
    """The number of elements of memory that a view spans."""
    if 0 in size:
        return 0
    return offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))


def _filled(a: Any, geometry: Geometry, length: int) -> Any:
    """Memory filled with the elements of `a` by `geometry`, with the mean of elements at the same place."""
    stride, offset = geometry
    memory = np.zeros(max(length, _length(a.shape, stride, offset)), a.dtype)
    places = _places(a.shape, stride, offset)
    add_at(memory, (places,), a)
    return _divided(memory, places)


def _divided(memory: Any, places: Any) -> Any:
    count = np.bincount(places.reshape(-1), minlength=memory.size)
    return memory / np.maximum(count, 1).astype(memory.real.dtype) if count.max(initial=0) > 1 else memory


def _sum_rule(g: Any, size: Any, stride: Any, offset: Any, geometry: Any) -> Any:
    return on(laid_over, g, size, stride, offset, geometry)


@linear(method=False, numbers="size stride geometry", input=_sum_rule)
@_OF_MEMORY
def _as_strided_sum(input: Any, size: Any, stride: Any, offset: int, geometry: Geometry, shape: Any) -> Any:
    """The adjoint of `laid_over`, for an input of `shape`."""
    own, first = geometry
    length = max(_length(size, stride, offset), _length(shape, own, first))
    memory = np.zeros(length, summing(input.dtype))
    add_at(memory, (_places(size, stride, offset),), input)
    memory = memory.astype(input.dtype, copy=False)
    if own == _steps(shape):
        return memory[first : first + math.prod(shape)].reshape(shape)
    places = _places(shape, own, first)
    return _divided(memory, places)[places]


def _viewed(out: Tensor, op: Any, args: tuple[Any, ...]) -> Tensor:
    """The result, tied to the tensor it is a view of. If it had to be a copy, it is made read-only."""
    source = args[0]
    if isinstance(out, Lifted) == isinstance(source, Lifted):
        held = innermost(source._data)
        if isinstance(held, np.ndarray) and not held.size:
            held = _memory(held)  # an empty part shares none of its elements, and yet it lies there
        if same_memory(out._data, held):
            as_view(out, op, args, known=True)
        elif out._data.size:
            innermost(out._data).setflags(write=False)
    return out


def _whole_strided(full: Any, size: Any, stride: Any, offset: Any, geometry: Any) -> Any:
    """vmap: each sample is treated as a contiguous tensor; they lie one after the other."""
    each = _steps(full)
    return (full[0], *size), (each[0], *stride), offset, (each, 0)


@linear(
    name="_as_strided",
    method=False,
    view=True,
    # None if it begins where the input does; in torch, only if no offset was given
    saved={"storage_offset": lambda offset, geometry: None if offset == geometry[1] else offset},
    batch=by(_whole_strided, _viewed),
    input=lambda g, size, stride, offset, geometry, input_shape: on(
        _as_strided_sum, g, size, stride, offset, geometry, tuple(input_shape)
    ),
)
@_OF_MEMORY
def laid_over(input: Any, size: Any, stride: Any, offset: int, geometry: Geometry) -> Any:
    memory = _memory(input)
    length = _length(size, stride, offset)
    if _geometry(input, memory) != geometry:
        if geometry == (_steps(input.shape), 0) and input.flags.c_contiguous and length <= input.size:
            memory = input.reshape(-1)  # this part of the memory is treated as all of it
        else:
            return _filled(input, geometry, length)[_places(size, stride, offset)]
    if length > memory.size:
        raise RuntimeError(
            f"as_strided(): sizes {list(size)}, strides {list(stride)} and storage offset {offset} reach over {length} "
            f"elements, out of bounds for storage of {memory.size}"
        )
    item = memory.itemsize
    return np.lib.stride_tricks.as_strided(memory[offset:], size, [s * item for s in stride])


def geometry_of(t: Tensor) -> Geometry:
    """The geometry of a tensor in its memory. A tensor of a transform is treated as contiguous."""
    if isinstance(t, Lifted):
        return t.stride(), t._data.offset()
    return (_steps(t._data.shape), 0) if is_payload(t._data) else _geometry(t._data, _memory(t._data))


def _reaches_beyond(input: Tensor, size: Any, stride: Any, offset: int, geometry: Geometry) -> bool:
    """Whether the view has elements that `input`, itself a view, has not: their gradients belong to its base."""
    if input._view is None or isinstance(input, Lifted) or is_payload(input._data):
        return False
    if input._view.made and (input._requires_grad or input._view.made != "pieces"):
        return False  # writes to it are refused
    return not np.isin(_places(size, stride, offset), _places(input._data.shape, *geometry)).all()


def strided_arguments(input: Tensor, size: Any, stride: Any, storage_offset: Any) -> tuple[Any, ...]:
    """The arguments of the entry, checked: size, stride, offset and geometry."""
    size, stride, geometry = sizes((size,)), sizes((stride,)), geometry_of(input)
    offset = geometry[1] if storage_offset is None else sizes((storage_offset,))[0]
    if len(size) != len(stride):
        raise RuntimeError(
            errors.message(
                "as_strided(): size and stride must have the same length",
                expected="one stride for each size",
                found=f"{size} and {stride}",
            )
        )
    if min(stride, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if min(size, default=0) < 0 or offset < 0:
        raise RuntimeError(
            errors.message("as_strided()", expected="no negative size or offset", found=f"{list(size)}, {offset}")
        )
    if isinstance(input, Lifted) and _length(size, stride, offset) > input._data.size:
        raise RuntimeError(
            f"as_strided(): sizes {list(size)}, strides {list(stride)} and storage offset {offset} reach over "
            f"{_length(size, stride, offset)} elements, out of bounds for a tensor of {input._data.size}. This is not "
            "supported inside of vmap() and other transforms, where a tensor is seen as if it were contiguous."
        )
    return size, stride, offset, geometry


@composite(
    view=True,
    samples=lambda: [
        S(A(3, 4), (2, 2), (1, 2)),
        S(A(3, 4), (2, 2), (1, 2), 1),
        S(A(3, 4), [3, 3], [1, 1], storage_offset=3),
        S(A(6), (3, 2, 2), (0, 1, 1)),
        S(A(3, 4), (), (), 5),
        S(A(3), (0,), (100,)),
        S(A(3, 2, layout="readonly"), size=(2,), stride=(2,)),
        S(A(), (3,), (0,)),
    ],
    refused=lambda: [
        S(A(3, 4), (2, 2), (1, 20)),
        S(A(3, 4), (2, 2), (1, -1)),
        S(A(3, 4), (2,), (1, 2)),
        S(A(3, 4), (2,), (1,), -1),
        S(A(3, 4), (2,), (1,), 11),
        S(A(3, 4), (-1,), (1,)),
        S(A(3, 4), (2,)),
        S(A(3, 4), "x", (1,)),
    ],
)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the memory behind `input` with any size and strides, counted in elements; its elements may overlap.

    storage_offset: where in the memory the view begins (default: where `input` begins). RuntimeError if it would reach
    beyond the memory.

    >>> import pullback
    >>> pullback.arange(5).as_strided((3, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    args = (input, *strided_arguments(input, size, stride, storage_offset))
    if _reaches_beyond(*args):
        whole = input._view.base  # type: ignore[union-attr]
        args = (whole, *args[1:-1], geometry_of(whole))
    return _viewed(apply(laid_over.op, args, {}), laid_over.op, args)


def strided_again(input: Tensor, size: Any, stride: Any, storage_offset: Any) -> Tensor:
    """`as_strided`, as a view of `input` itself wherever it reaches."""
    args = (input, *strided_arguments(input, size, stride, storage_offset))
    return _viewed(apply(laid_over.op, args, {}), laid_over.op, args)


# Windows --------------------------------------------------------------------------------------------------------------


def _windows_moved(full: Any, dimension: Any, size: Any, step: Any) -> Any:
    if len(full) == 1:  # 0-d tensors: each is a window of one element
        return (wrap_axis(dimension, 1), 1, 1) if size == 1 and step > 0 else None
    return moved(dimension, full), size, step


def _fold_moved(full: Any, dimension: Any, size: Any, step: Any, shape: Any) -> Any:
    return None if not shape else (moved(dimension, (*shape, 0)), size, step, (full[0], *shape))


@linear(
    method=False,
    batch=by(_fold_moved),
    input=lambda g, dimension, size, step: on(_unfold, g, dimension, size, step),
)
@on_arrays
def _fold(input: Any, dimension: int, size: int, step: int, shape: Any) -> Any:
    """Add the windows (the last axis) into zeros of `shape`: the adjoint of `unfold`."""
    out = zeros_beside(input, shape)
    target = np.moveaxis(np.atleast_1d(out), wrap_axis(dimension, len(shape)), -1)
    if not shape:
        return input.sum(dtype=input.dtype)
    windows = np.moveaxis(input, wrap_axis(dimension, len(shape)), -2)
    count = windows.shape[-2]
    if size <= count:
        for i in range(size):
            target[..., i : i + step * count : step][..., :count] += windows[..., i]
    else:
        for i in range(count):
            target[..., i * step : i * step + size] += windows[..., i, :]
    return out


@linear(
    method=False,
    view=True,
    batch=by(_windows_moved, _viewed),
    input=lambda g, dimension, size, step, input_shape: on(_fold, g, dimension, size, step, tuple(input_shape)),
)
@on_arrays
def _unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    axis = wrap_axis(dimension, input.ndim)
    n = input.shape[axis] if input.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not input.ndim:
        return input.reshape(1)[:size]
    count = (n - size) // step + 1
    if is_foreign(input):
        seen = strided_windows(np.moveaxis(input, axis, -1), (size,), (count,), (step,), (1,))
        return np.moveaxis(seen, -1, axis)
    shape = [*input.shape, size]
    shape[axis] = count
    strides = [*input.strides, input.strides[axis]]
    strides[axis] *= step
    return np.lib.stride_tricks.as_strided(input, shape, strides)


@composite(
    function=False,
    method=True,
    view=True,
    samples=lambda: [
        S(A(3, 4), 1, 2, 1),
        S(A(3, 4), 0, 2, 2),
        S(A(7), 0, 3, 2),
        S(A(7), -1, 2, 3),
        S(A(3, 4), dimension=1, size=3, step=2),
        S(A(3), 0, 0, 1),
        S(A(3), 0, 3, 9),
        S(A(), 0, 1, 1),
        S(A(2, 9, layout="T"), 1, 2, 4),
        S(A(0, 3), 0, 0, 1),
    ],
    refused=lambda: [
        S(A(3), 0, 4, 1),
        S(A(3), 0, -1, 1),
        S(A(3), 0, 1, 0),
        S(A(3), 1, 1, 1),
        S(A(), 0, 2, 1),
        S(A(3), 0, 1),
    ],
)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements along an axis, one every `step` elements, as a new last axis; a view.

    >>> import pullback
    >>> pullback.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    args = (input, dimension, size, step)
    return _viewed(apply(_unfold.op, args, {}), _unfold.op, args)


@method("storage_offset")
def _storage_offset(self: Tensor) -> int:
    """The number of elements of its memory before the first element of this tensor."""
    return geometry_of(self)[1]
