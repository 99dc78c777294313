"""Indexing: `x[index]` and `x[index] = value`, and the one way for operations to write to the memory of a tensor.

An index is read in two steps, as in torch. The first takes the parts that give a view: integers, slices, None,
Ellipsis. The second takes the arrays of positions, one or None for each remaining axis; a mask counts as the positions
of its True elements. So ``x[0, :, [1, 2]]`` keeps its axes in order, where NumPy would move them.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batched import looped, refused
from ...kernels.positions import add_at, indexed_shape, layout
from ...table.calls import apply, on, record
from ...table.entry import linear, method
from ...table.narrow import Conversion
from ...table.writing import before_write, put, refuse_turn, refuse_write, take_history, way_to
from ...tensor import dtypes
from ...tensor.adding import summing
from ...tensor.arrays import broadcasts_to, copied, zeros_beside
from ...tensor.memory import same_memory
from ...tensor.modes import LEVELS, thread
from ...tensor.nested import any_instance
from ...tensor.overrides import dispatch, overriding
from ...tensor.protocol import is_array, is_payload, on_arrays
from ...tensor.tensor import Lifted, Tensor, wrap
from ...tensor.views import refuse_memory
from ..shape.reshape import copied_in_order
from ..shape.slices import getitem, outside

_full = slice(None)
_WHOLE = (Ellipsis,)


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
                    do="reverse an axis with flip(dim)",
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
        return _WHOLE, (index._data,)  # a shortcut to the same result
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
            first += [_full] * width
            second += [None] * width
        elif isinstance(part, bool):
            first.append(None)
            second.append(np.zeros(int(part), np.int64))
        elif is_array(part):
            first += [_full] * width or [None]
            second += _positions_of(part, shape, axis)
        else:
            first.append(part)
            second += [] if isinstance(part, int) else [None]
        axis += width
    while second[-1] is None:
        second.pop()
    return (_WHOLE if all(p == _full for p in first) else tuple(first)), tuple(second)


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
    return part.ndim if is_array(part) and _is_mask(part) else 1


def _is_mask(part: Any) -> bool:
    """Whether an array or a Tensor has the dtype bool."""
    return (part._data if isinstance(part, Tensor) else part).dtype.kind == "b"


def _positions_of(part: Any, shape: Sequence[int], axis: int = 0) -> Sequence[Any]:
    """An array of positions unchanged; a mask as the positions of its True elements along each axis, or as a Tensor."""
    if not _is_mask(part):
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
    places = [p if p is None else _aligned(level, p, rank) for p in indices]
    if not any(isinstance(p, Tensor) and level.varies(p) for p in indices):
        return op.unchecked(value if adjacent else np.moveaxis(value, 0, rank), (None, *places), whole)
    if lead:
        value = np.moveaxis(value, tuple(range(1 + lead, 1 + lead + rank)), tuple(range(1, rank + 1)))
    return op.unchecked(value, (_each(level, rank), *places), whole)


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
    places = [p if p is None else _aligned(level, p, rank) for p in indices]
    if not own:
        return np.moveaxis(op.unchecked(value, tuple(places)), lead, 0)
    out = op.unchecked(value, (_each(level, rank), *places))
    if not lead:
        return out
    # the axes of the arrays come first, as they are not next to the batch's axis: put them where they belong
    return np.moveaxis(out, tuple(range(1, rank + 1)), tuple(range(1 + lead, 1 + lead + rank)))


def in_rows(level: Any, index: Any) -> tuple[Any, ...]:
    """Positions in flattened tensors, as an index into rows, one for each element of the batch."""
    return _each(level, index.ndim), _aligned(level, index, index.ndim)


def _each(level: Any, rank: int) -> Any:
    """The number of each element of the batch, with so many axes behind the batch's."""
    return np.arange(level.size).reshape(level.size, *(1,) * rank)


def _aligned(level: Any, index: Any, rank: int) -> Any:
    """An array of positions, with the axis of the batch in front if it has one, then `rank` axes."""
    if not isinstance(index, Tensor) or not level.varies(index):
        return level.value(index) if isinstance(index, Tensor) else index
    value, shape = level.value(index), index._data.shape
    return np.reshape(value, (level.size, *(1,) * (rank - len(shape)), *shape))


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
            return input.take(found[-1], len(found) - 1)
        return input[tuple([_full if p is None else p for p in found])]
    except IndexError as error:
        raise outside(error, input) from None


@method("__getitem__")
def _subscript(self: Tensor, index: Any) -> Tensor:
    if LEVELS.n and (kinds := overriding((self, index))):
        return dispatch(kinds, _subscript, (self, index), {})
    if type(index) is int:
        return apply(getitem.op, (self, (index,)), {})
    parts = index if type(index) is tuple else (index,)
    first, second = (parts, None) if _gives_a_view(parts) else two_steps(index, self._data.shape)
    if second is None:
        return apply(getitem.op, (self, first), {})
    out = self if first is _WHOLE else apply(getitem.op, (self, first), {})
    if self._requires_grad and thread.modes.grad_enabled:
        # a copy: the caller may change the array before the backward pass uses it
        second = tuple([np.copy(p) if is_array(p) and not isinstance(p, Tensor) else p for p in second])
    return apply(pick_at.op, (out, second), {})


# Writing ------------------------------------------------------------------------------------------------------------


def _viewed(input: Any, steps: Any) -> Any:
    """The result of the operations `steps`, each with its arguments, applied to `input` one after the other."""
    if _in_pairs(steps):
        input = on(copied_in_order, input)
    return functools.reduce(lambda found, step: on(step[0].call, found, *step[1]), steps, input)


def _in_pairs(steps: Any) -> bool:
    """Whether a step is `view_as_complex`, which needs both numbers of a pair side by side in memory."""
    return any(op.name == "view_as_complex" for op, _ in steps)


def _put_through_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """For ``put_into_base(input, values, steps)``: the same view is written for all of them."""
    source, values, steps = args
    whole = level.lower(source).clone()
    view = level.lift(whole)
    for step, rest in steps:
        view = step.unchecked(view, *rest)
    target = level.value(view)
    if not same_memory(target._data, whole._data):
        return looped(level, op, args, kwargs)
    if isinstance(values, Tensor) and level.varies(values):
        shape, rank = values._data.shape, target._data.ndim - 1
        values = np.reshape(level.value(values), (level.size, *(1,) * (rank - len(shape)), *shape))
    target.copy_(level.value(values) if isinstance(values, Tensor) else values)
    return whole


@linear(
    name="_put_through",
    method=False,
    node="CopySlices",
    contiguous=False,
    narrow="as the first",
    batch=_put_through_of_each,
    numbers="",
    input=lambda g, steps: on(put_into_base, g, 0.0, steps),
    values=lambda g, steps: _viewed(g, steps),
)
@on_arrays
def put_into_base(input: Any, values: Any, steps: Any) -> Any:
    """A copy of `input` with `values` written into the view that `steps` lead to, or at positions in that view."""
    # `view_as_complex` needs both numbers of a pair side by side
    out, positions = np.array(input, order="C" if _in_pairs(steps) else "K"), None
    if steps[-1][0] is pick_at.op:
        *steps, (_, (positions,)) = steps
    view = _followed(out, steps)
    if np.may_share_memory(view, out) or not out.size:
        _assign(view, None if positions is None else arrays_of(positions), values)
        return out
    # the copy has another order in memory than the original, so that a step made a copy instead of a view
    places = _followed(np.arange(out.size).reshape(out.shape), steps)
    out = np.copy(input, order="C")
    if positions is not None:
        places = pick_at.op.forward(places, positions)
    out.reshape(-1)[places] = values
    return out


def _followed(input: Any, steps: Any) -> Any:
    """The view of an array that `steps` lead to, or a copy where a step cannot give a view."""
    return functools.reduce(lambda found, step: step[0].forward(found, *step[1]), steps, input)


def put_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """For ``_index_put(input, values, first, second)``: an index without arrays, and one as for `pick_at`."""
    source, values, first, second = op.padded(args, kwargs)
    axes, adjacent = layout(second)
    varying = any(isinstance(p, Tensor) and level.varies(p) for p in second)
    masks = any(isinstance(p, Tensor) and p._data.dtype.kind == "b" for p in second)
    if masks or not adjacent or (varying and axes[0]) or any_instance([first], Tensor):
        return looped(level, op, args, kwargs)
    rank = max(second[a].ndim for a in axes)
    places = tuple(p if p is None else _aligned(level, p, rank) for p in second)
    each = _each(level, rank) if varying else None
    if isinstance(values, Tensor) and level.varies(values):
        shape = values._data.shape
        lead = len(indexed_shape(np.broadcast_to(0, source._data.shape)[first].shape, second)) - len(shape)
        if lead < 0:
            return looped(level, op, args, kwargs)
        values = np.reshape(level.value(values), (level.size, *(1,) * lead, *shape))
    elif isinstance(values, Tensor):
        values = level.value(values)
    return op.unchecked(level.lower(source), values, (slice(None), *first), (each, *places))


@linear(
    contiguous=False,
    method=False,
    saved={"indices": lambda second: tensors_of(second), "accumulate": lambda: False},
    batch=put_of_each,
    numbers="",
    input=lambda g, first, second: on(_index_put, g, 0.0, first, second),
    values=lambda g, first, second: on(pick_at, on(getitem, g, first), second),
)
@on_arrays
def _index_put(input: Any, values: Any, first: Any, second: Any) -> Any:
    """A copy of `input` with `values` at positions in a view of it."""
    out = copied(input)
    _assign(out[first], arrays_of(second), values)
    return out


@linear(
    name="_copy_over",
    method=False,
    node="CopyBackwards",
    numbers="",
    input=lambda g: np.zeros_like(g),
    values=lambda g: g,
)
def copy_over(input: Any, values: Any) -> Any:
    """A copy of `input` with `values` written over all of it. Its node saves nothing, so it can run again."""
    out = np.copy(input)
    out[...] = values
    return out


def _assign(target: Any, indices: Parts | None, values: Any) -> None:
    target[_WHOLE if indices is None else tuple([_full if p is None else p for p in indices])] = values


@method("__setitem__")
def _setitem(self: Tensor, index: Any, value: Any) -> None:
    if LEVELS.n and (kinds := overriding((self, index, value))):
        dispatch(kinds, _setitem, (self, index, value), {})
        return
    write(self, index, value)


_subscript.__name__, _setitem.__name__ = "__getitem__", "__setitem__"


def _source(t: Tensor, value: Any, index: Any, second: Parts | None) -> Any:
    """The value to write to ``t[index]``, as a Tensor or an array; an error if it cannot be written."""
    source = value if isinstance(value, Tensor) else value if hasattr(value, "dtype") else np.asarray(value)
    dtype = source._data.dtype if isinstance(source, Tensor) else source.dtype
    if dtype.kind not in "biufcV":
        raise TypeError(
            errors.message("assignment", expected="a Tensor, an array or a number", found=errors.describe(value))
        )
    if second is not None and isinstance(value, Tensor) and dtype != t._data.dtype:
        parts = index if isinstance(index, tuple) else (index,)
        masks = [p for p in parts if isinstance(p, (Tensor, np.ndarray))]
        of_arrays = bool(masks) or any(isinstance(p, (list, tuple)) for p in parts)  # True and False alone are no index
        if of_arrays and (value._data.size != 1 or len(masks) != 1 or not _is_mask(masks[0])):
            raise RuntimeError(
                errors.message(
                    "Index put requires the source and destination dtypes match",
                    expected=f"a tensor of {t.dtype}",
                    found=str(value.dtype),
                    do=f"convert it with .to({t.dtype})",
                )
            )
    if type(value) in (int, float) and t._data.dtype.kind in "iu":
        dtypes.refuse_overflow(value, t._data.dtype)
    if dtype.kind == "c" and t._data.dtype.kind not in "cb":
        if not isinstance(value, Tensor):
            raise RuntimeError(errors.message("assignment", expected=f"values that fit {t.dtype}", found=str(dtype)))
        if LEVELS.n:
            return Conversion.to(value, t.dtype)
        warnings.warn("Casting complex values to real discards the imaginary part", stacklevel=errors.callers_level())
        return value._data.real
    return source


def _fitting(source: Any, shape: Any, second: Parts | None) -> Any:
    """The value to write into a view of `shape`, at positions in it, without axes of length 1 that it has too many in
    front; an error if it does not fit there."""
    if second is not None:
        if any(isinstance(p, Tensor) and _is_mask(p) for p in second):
            return source  # how many positions there are depends on values
        shape = indexed_shape(shape, second)
    while source.ndim > len(shape) and source.shape[0] == 1:
        source = source[0]
    if not broadcasts_to(source.shape, shape):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(source.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        )
    return source


def write(t: Tensor, index: Any, value: Any, one_value: bool = False) -> None:
    """``t[index] = value``, recorded where either requires grad. one_value: `value` is one number for all of `t`."""
    first, second = two_steps(index, t._data.shape)
    steps = ((getitem.op, (first,)),)
    target = t._data if isinstance(t, Lifted) else getitem.op.forward(t._data, first)
    source = _source(t, value, index, second)
    numbers = source._data.size if isinstance(source, Tensor) else source.size
    same = second is not None or (numbers == 1 and not (isinstance(source, Tensor) and source._requires_grad))
    refuse_memory(target if second is None else t._data, one_value, same)
    refuse_turn(t, (value,))
    if LEVELS.n and any_instance((t, source, second or ()), Lifted):
        del target  # a level may look who else holds the memory
        source = _fitting(source, np.broadcast_to(0, t._data.shape)[first].shape, second)
        args = (wrap(source) if isinstance(source, np.ndarray) else source, first, second)
        _write_lifted(t, put_into_base.op if second is None else _index_put.op, args if second else (args[0], steps))
        return
    source = _fitting(source._data if isinstance(source, Tensor) else source, target.shape, second)
    _assign(target, second, source)
    base, way = way_to(t)
    mask = 0
    if thread.modes.grad_enabled and t._data.dtype.kind in "fcV":
        mask = (1 if base._requires_grad else 0) | (2 if isinstance(value, Tensor) and value._requires_grad else 0)
    if not mask:
        t._bump()
    elif second is None and not way and all(part is Ellipsis or part == _full for part in first):
        take_history(t, record(copy_over.op, mask, (t, value), t._data))
    elif second is not None and not way:
        take_history(t, record(_index_put.op, mask, (t, value, first, second), t._data))
    else:
        way += steps if second is None else (*steps, (pick_at.op, (second,)))
        take_history(base, record(put_into_base.op, mask, (base, value, way), base._data))


def _write_lifted(t: Tensor, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
    """Write ``op(t, *args)`` into `t`, where `t` or an argument is a tensor of a transform."""
    result = op.unchecked(before_write(t), *args, **(kwargs or {}))
    put(t, result)
    take_history(t, result)


def overwrite(t: Tensor, op: Any, *args: Any, change: Callable[..., None] | None = None, **kwargs: Any) -> Tensor:
    """Write ``op(t, *args)`` into `t` and return `t`: the work of an operation's in-place twin.

    change: a function that writes to the memory, ``change(array, *args)``, faster than computing the whole result. It
    must raise its errors before it writes. Only for operations whose rules need neither the input nor the result.
    """
    refuse_write(t, args)
    if LEVELS.n and any_instance((t, *args), Lifted):
        _write_lifted(t, op, args, kwargs)
        return t
    given = [i for i, a in enumerate((t, *args)) if isinstance(a, Tensor) and a._requires_grad]
    recorded = thread.modes.grad_enabled and bool(given)
    if change is None:
        result = op.unchecked(before_write(t) if recorded else t, *args, **kwargs)
        _refuse_other(op.name, t, result)
        put(t, result)
        take_history(t, result)
        return t
    try:
        change(t._data, *(a._data if isinstance(a, Tensor) else a for a in args), **kwargs)
    except (ValueError, TypeError) as error:
        raise errors.translate(f"{op.name}_", (t._data,), error) from None
    full = op.padded((t, *args), kwargs)
    mask = sum(bit for i, bit in op.bits if i in given) if recorded and t._data.dtype.kind in "fcV" else 0
    if mask:
        take_history(t, record(op, mask, full, t._data))
    else:
        t._bump()
    return t


def _refuse_other(name: str, t: Tensor, result: Tensor) -> None:
    """Refuse a result that does not fit into the tensor to write to."""
    if result._data.shape != t._data.shape:
        raise RuntimeError(
            errors.message(
                f"{name}_()", expected=f"a result of shape {list(t._data.shape)}", found=errors.describe(result)
            )
        )
    if dtypes.CATEGORY[result._data.dtype.kind] > dtypes.CATEGORY[t._data.dtype.kind]:
        raise RuntimeError(
            errors.message(f"{name}_()", expected=f"a result that fits {t.dtype}", found=errors.describe(result))
        )
