"""Indexing, `x[index]`, and how an index is read.

An index is read in two steps, as in torch. The first takes the parts that give a view: integers, slices, None,
Ellipsis. The second takes the arrays of positions, one or None for each remaining axis; a mask counts as the positions
of its True elements. So ``x[0, :, [1, 2]]`` keeps its axes in order, where NumPy would move them.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batched import looped, refused
from ...kernels.masks import only
from ...kernels.positions import add_at, layout
from ...table.calls import apply, on
from ...table.entry import linear, method
from ...table.tensor_methods import other_kind
from ...tensor.adding import summing
from ...tensor.arrays import arange_beside, beside, zeros_beside
from ...tensor.modes import LEVELS, thread
from ...tensor.overrides import dispatch, overriding
from ...tensor.protocol import is_array, is_payload
from ...tensor.tensor import Lifted, Tensor, wrap
from ..shape.slices import getitem, outside

FULL = slice(None)
WHOLE = (Ellipsis,)


# The parts of an index ----------------------------------------------------------------------------------------------


def _plain_part(part: Any) -> Any:
    """One part of an index in NumPy's form; a tensor of positions inside a transform is returned unchanged."""
    if part is None or part is Ellipsis or isinstance(part, (bool, int)):
        return part
    if isinstance(part, slice):
        try:
            start, stop, step = [None if v is None else operator.index(v) for v in (part.start, part.stop, part.step)]
        except TypeError:
            raise TypeError("slice indices must be integers or None or have an __index__ method") from None
        if step is not None and step <= 0:
            raise ValueError(
                errors.message(
                    "slice",
                    expected="a step greater than zero",
                    found=f"step {step}",
                    do="write numpy.flip(x, 0) for x[::-1], or x.flip(0)",
                )
            )
        return slice(start, stop, step)
    array = part._data if isinstance(part, Tensor) else part if is_payload(part) else np.asarray(part)
    if array.size == 0 and not isinstance(part, (Tensor, np.ndarray)):
        array = array.astype(np.int64)
    usable = not isinstance(part, Tensor) or array.dtype in _OF_TENSORS or array.ndim == 0
    if array.dtype.kind not in "iub" or not usable:
        raise IndexError(
            errors.message(
                "index",
                expected="integers, slices, None, Ellipsis, or tensors of int64, int32 or bool",
                found=errors.describe(part),
                do="use a mask such as x > 0, or positions with .long()",
            )
        )
    if array.dtype == np.uint8:
        warnings.warn(
            "indexing with dtype uint8 is now deprecated, please use a dtype bool instead: a mask such as x > 0, or "
            "x.bool(). As in torch, it is taken for a mask, not for positions.",
            stacklevel=errors.callers_level(),
        )
        return part.bool() if isinstance(part, Lifted) else array.astype(np.bool_)
    if isinstance(part, Lifted):
        return part
    return int(array) if array.ndim == 0 and array.dtype.kind != "b" else array


def plain_index(index: Any) -> tuple[Any, ...]:
    """An index as a tuple of integers, slices, None, Ellipsis and arrays."""
    if isinstance(index, list) and len(index) < 32 and any(isinstance(i, _MAKE_A_TUPLE) for i in index):
        warnings.warn(
            "A list of sequences as an index is read as a tuple, x[tuple(index)], as torch does it for now; NumPy, "
            "and torch to come, read it as one array. Write x[tuple(index)] or x[pullback.tensor(index)].",
            stacklevel=errors.callers_level(),
        )
        index = tuple(index)
    parts = index if isinstance(index, tuple) else (index,)
    return tuple([_plain_part(p) for p in parts])


_OF_TENSORS = tuple(map(np.dtype, ("int64", "int32", "bool", "uint8")))
_MAKE_A_TUPLE = (list, tuple, range, np.ndarray, Tensor, slice, type(None), type(Ellipsis))

Parts = tuple[Any, ...]


def two_steps(index: Any, shape: Sequence[int]) -> tuple[Parts, Parts | None]:
    """The two steps of an index into a tensor of `shape`: the parts that give a view, and an array of positions or None
    for each of the leading axes of that view. The second step is None if there is no array."""
    if type(index) is Tensor and index._data.dtype == np.int64 and index._data.ndim and shape:
        return WHOLE, (index._data,)  # a shortcut to the same result
    parts = plain_index(index)
    if not any(isinstance(p, bool) or is_array(p) for p in parts):
        return parts, None
    taken = sum(map(_width, parts))
    if taken > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}: there are {taken}")
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    first: list[Any] = []
    second: list[Any] = []
    axis = 0
    for part in parts:
        width = len(shape) - taken if part is Ellipsis else _width(part)
        if part is Ellipsis:
            first += [FULL] * width
            second += [None] * width
        elif isinstance(part, bool):
            first.append(None)
            second.append(np.zeros(int(part), np.int64))
        elif is_array(part):
            first += [FULL] * width or [None]
            second += _positions_of(part, shape, axis)
        else:
            first.append(part)
            second += [] if isinstance(part, int) else [None]
        axis += width
    while second[-1] is None:
        second.pop()
    return (WHOLE if all(p == FULL for p in first) else tuple(first)), tuple(second)


def _gives_a_view(parts: Parts) -> bool:
    """Whether an index certainly gives a view and is in NumPy's form already: most do, and need no `two_steps`."""
    for part in parts:
        if type(part) is slice:
            if not (type(part.start) in _BOUNDS and type(part.stop) in _BOUNDS and part.step is None):
                return False
        elif not (type(part) is int or part is None or part is Ellipsis):
            return False
    return True


_BOUNDS = (int, type(None))


def _width(part: Any) -> int:
    """The number of axes that a part of an index takes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.ndim if is_array(part) and is_mask(part) else 1


def is_mask(part: Any) -> bool:
    """Whether an array or a Tensor has the dtype bool."""
    return (part._data if isinstance(part, Tensor) else part).dtype.kind == "b"


def _positions_of(part: Any, shape: Sequence[int], axis: int = 0) -> Sequence[Any]:
    """An array of positions unchanged; a mask as the positions of its True elements along each axis, or as a Tensor."""
    if not is_mask(part):
        return [part]
    for i, (n, wanted) in enumerate(zip(part.shape, shape[axis:], strict=False)):
        if n != wanted:
            raise IndexError(
                f"The shape of the mask {list(part.shape)} at index {i} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {axis + i}"
            )
    if isinstance(part, Tensor):
        return [part]
    return np.nonzero(part) if part.ndim else [np.zeros(int(part), np.int64)]


def arrays_of(indices: Parts) -> Parts:
    """Positions as arrays; they may be tensors, or masks, which stand for several axes."""
    if not any(isinstance(p, Tensor) for p in indices):
        return indices
    found: list[Any] = []
    for part in indices:
        data = part._data if isinstance(part, Tensor) else part
        found += [data] if data is None or data.dtype.kind != "b" else _positions_of(data, data.shape)
    return tuple(found)


def tensors_of(indices: Parts) -> Parts:
    """Positions as torch's nodes save them: tensors and None."""
    return tuple([None if p is None else wrap(p) for p in arrays_of(indices)])


# Reading ------------------------------------------------------------------------------------------------------------


def _added_up_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """For ``add_up(input, indices, shape)``, the adjoint of `pick_at`."""
    input, indices, shape = args
    if any(isinstance(p, Tensor) and p._data.dtype.kind == "b" for p in indices):
        return looped(level, op, args, kwargs)
    value: Any = level.lower(input)
    whole = (level.size, *shape)
    axes, adjacent = layout(indices)
    lead = axes[0] if adjacent else 0
    rank = max(indices[a].ndim for a in axes)
    places = [p if p is None else aligned(level, p, rank) for p in indices]
    if not any(isinstance(p, Tensor) and level.varies(p) for p in indices):
        return op.unchecked(value if adjacent else np.moveaxis(value, 0, rank), (None, *places), whole)
    if lead:
        value = np.moveaxis(value, tuple(range(1 + lead, 1 + lead + rank)), tuple(range(1, rank + 1)))
    return op.unchecked(value, (numbers_of_each(level, rank), *places), whole)


@linear(
    name="_add_up", method=False, batch=_added_up_of_each, numbers="", input=lambda g, indices: on(pick_at, g, indices)
)
def add_up(input: Any, indices: Any, shape: Any) -> Any:
    """Zeros of `shape` with `input` added at positions, which may repeat: the adjoint of reading there."""
    out = zeros_beside(input, shape, summing(input.dtype))
    add_at(out, arrays_of(indices), input)
    return out.astype(input.dtype, copy=False)


def _has_masks(input: Any, indices: Any) -> bool:
    """Whether a mask is among the positions: their number then depends on its values."""
    return any(isinstance(p, Tensor) and p._data.dtype.kind == "b" for p in indices)


def index_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """For ``pick_at(input, indices)``: an array of positions, or None, for each leading axis."""
    source, indices = args
    if _has_masks(source, indices):
        return (refused if any(level.varies(p) for p in indices if isinstance(p, Tensor)) else looped)(
            level, op, args, kwargs
        )
    value, own = level.value(source), level.varies(source)
    axes, adjacent = layout(indices)
    lead = axes[0] if adjacent else 0
    rank = max(indices[a].ndim for a in axes)
    varying = [a for a in axes if isinstance(indices[a], Tensor) and level.varies(indices[a])]
    if not varying:
        out = op.unchecked(value, (None, *indices))
        return out if adjacent else np.moveaxis(out, rank, 0)
    places = [p if p is None else aligned(level, p, rank) for p in indices]
    if not own:
        return np.moveaxis(op.unchecked(value, tuple(places)), lead, 0)
    out = op.unchecked(value, (numbers_of_each(level, rank), *places))
    if not lead:
        return out
    # the axes of the arrays come first, as they are not next to the batch's axis: put them where they belong
    return np.moveaxis(out, tuple(range(1, rank + 1)), tuple(range(1 + lead, 1 + lead + rank)))


def in_rows(level: Any, index: Any) -> tuple[Any, ...]:
    """Positions in flattened tensors, as an index into rows, one for each element of the batch."""
    return numbers_of_each(level, index.ndim), aligned(level, index, index.ndim)


def numbers_of_each(level: Any, rank: int) -> Any:
    """The number of each element of the batch, with so many axes behind the batch's."""
    return np.arange(level.size).reshape(level.size, *(1,) * rank)


def aligned(level: Any, index: Any, rank: int) -> Any:
    """An array of positions, with the axis of the batch in front if it has one, then `rank` axes."""
    if not isinstance(index, Tensor) or not level.varies(index):
        return level.value(index) if isinstance(index, Tensor) else index
    value, shape = level.value(index), index._data.shape
    return np.reshape(value, (level.size, *(1,) * (rank - len(shape)), *shape))


def of_the_last(
    picked: Any, whole: Any, places: Any, write: Any, read: Any, axis: int = 0, shape: Any = None, dtype: Any = np.int64
) -> Any:
    """`picked`, a gradient at positions, with 0 for each value that a later one has overwritten at the same place.

    whole: the shape of what has the places. places: the arrays of positions, whose axes are those of `picked` from
    `axis` on. write, read: ``write(zeros, numbers)`` puts numbers at the positions, ``read(zeros)`` looks there.
    shape: that of the numbers, if it is not the positions'. dtype: that of the zeros, if it matters.
    """
    shape = np.broadcast_shapes(*map(np.shape, places)) if shape is None else shape
    if math.prod(shape) < 2:
        return picked
    zeros: Any = zeros_beside(picked, whole, dtype)
    number: Any = np.reshape(arange_beside(picked, math.prod(shape)), shape)
    number = number if dtype is np.int64 else number.astype(np.float64)
    if any(isinstance(p, Lifted) for p in places):  # so that the transform is asked
        zeros, number = wrap(zeros), wrap(number)
    last = read(write(zeros, number)) == number
    last = last._data if type(last) is Tensor else last
    if type(last) is np.ndarray and last.all():
        return picked
    rank = np.ndim(picked) - axis - len(shape)
    return only(np.reshape(last, (*shape, *(1,) * rank)), picked)


@linear(
    name="_index",
    method=False,
    saved={"indices": lambda indices: tensors_of(indices)},
    batch=index_of_each,
    said="indexing with a mask",
    shape_from_values=_has_masks,
    numbers="",
    input=lambda g, indices, input_shape: on(add_up, g, indices, input_shape),
)
def pick_at(input: Any, indices: Any) -> Any:
    """The elements at positions: for each leading axis an array of positions, or None."""
    found = arrays_of(indices)
    try:
        if all(p is None for p in found[:-1]):  # along one axis
            return input.take(beside(input, found[-1]), len(found) - 1)
        return input[tuple([FULL if p is None else p for p in found])]
    except IndexError as error:
        raise outside(error, input) from None
    except errors.NotConverted:  # an array, at positions that are none
        payload = next((p for p in found if is_payload(p)), None)
        if payload is None or type(input) is not np.ndarray:
            raise
        return pick_at.op.forward(payload.like(input), indices)


@method("__getitem__")
def _subscript(self: Tensor, index: Any) -> Tensor:
    if LEVELS.n and (kinds := overriding((self, index))):
        return dispatch(kinds, _subscript, (self, index), {})
    if type(index) is int:
        return apply(getitem.op, (self, (index,)), {})
    parts = index if type(index) is tuple else (index,)
    try:
        first, second = (parts, None) if _gives_a_view(parts) else two_steps(index, self._data.shape)
    except AttributeError:
        if isinstance(self, Tensor):
            raise
        raise other_kind(Tensor, "__getitem__", self) from None
    if second is None:
        return apply(getitem.op, (self, first), {})
    out = self if first is WHOLE else apply(getitem.op, (self, first), {})
    if self._requires_grad and thread.modes.grad_enabled:
        # a copy: the caller may change the array before the backward pass uses it
        second = tuple([np.copy(p) if is_array(p) and not isinstance(p, Tensor) else p for p in second])
    return apply(pick_at.op, (out, second), {})


_subscript.__name__ = "__getitem__"
