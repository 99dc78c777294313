"""Assignment: `x[index] = value`, and the one way for operations to write to the memory of a tensor.

An index is read in the two steps of `subscripts.py`: the parts that give a view, then the arrays of positions.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batched import looped
from ...kernels.boxes import address
from ...kernels.positions import indexed_shape, layout
from ...table.calls import on, record
from ...table.entry import linear, method
from ...table.levels import with_room
from ...table.narrow import Conversion
from ...table.writing import (
    Wrote,
    look_at_parts,
    may_share,
    put,
    refuse_turn,
    refuse_write,
    take_history,
    way_to,
)
from ...tensor import dtypes
from ...tensor.arrays import arange_beside, broadcasts_to, copied
from ...tensor.memory import same_memory
from ...tensor.modes import LEVELS, thread
from ...tensor.nested import any_instance
from ...tensor.overrides import dispatch, overriding
from ...tensor.protocol import is_payload, on_arrays
from ...tensor.tensor import Lifted, Tensor, wrap
from ...tensor.views import before_write, offsets, payload_of, refuse_memory
from ..shape.reshape import copied_in_order
from ..shape.slices import getitem
from .subscripts import (
    FULL,
    WHOLE,
    Parts,
    aligned,
    arrays_of,
    is_mask,
    numbers_of_each,
    of_the_last,
    pick_at,
    tensors_of,
    two_steps,
)


def _viewed(input: Any, steps: Any) -> Any:
    """The result of the operations `steps`, each with its arguments, applied to `input` one after the other."""
    if _in_pairs(steps):
        input = on(copied_in_order, input)
    return functools.reduce(lambda found, step: on(step[0].call, found, *step[1]), steps, input)


def _picked(part: Any, second: Any) -> Any:
    """The gradient of values that were written at positions, from that of the tensor they were written to."""
    picked = on(pick_at, part, second)
    if any(p is not None and is_mask(p) for p in second):
        second = arrays_of(second)  # beside other positions, those of a mask may repeat
    places = tuple([p for p in second if p is not None])
    axes, adjacent = layout(second)
    return of_the_last(
        picked,
        [np.shape(part)[a] for a in axes],
        places,
        lambda zeros, numbers: on(_index_put, zeros, numbers, (), places),
        lambda whole: on(pick_at, whole, places),
        axes[0] if adjacent else 0,
    )


def _written(g: Any, steps: Any) -> Any:
    """The gradient of what was written into the view that `steps` lead to, or at positions in that view."""
    found = _viewed(g, steps)
    places = [p for op, args in steps if op is pick_at.op for p in args[0] if p is not None]
    if not places:
        return found
    complex_base = (g._data if isinstance(g, Tensor) else g).dtype.kind == "c"
    return of_the_last(
        found,
        np.shape(g),
        places,
        lambda zeros, numbers: on(put_into_base, zeros, numbers, steps),
        lambda whole: _viewed(whole, steps),
        shape=np.shape(found),
        # a step may need complex numbers, or pairs that become some
        dtype=np.complex128 if complex_base else np.float64 if _in_pairs(steps) else np.int64,
    )


def _in_pairs(steps: Any) -> bool:
    """Whether a step is `view_as_complex`, which needs both numbers of a pair side by side in memory."""
    return any(op.name == "view_as_complex" for op, _ in steps)


def _put_through_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """For ``put_into_base(input, values, steps)``: the same view is written for all of them."""
    source, values, steps = args
    whole = level.lower(source)
    whole = with_room(whole, level.value(values)) if isinstance(values, Tensor) else whole.clone()
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
    values=lambda g, steps: _written(g, steps),
)
@on_arrays
def put_into_base(input: Any, values: Any, steps: Any) -> Any:
    """A copy of `input` with `values` written into the view that `steps` lead to, or at positions in that view."""
    # `view_as_complex` needs both numbers of a pair side by side
    out, positions = np.copy(input, order="C") if _in_pairs(steps) else copied(input), None
    if steps[-1][0] is pick_at.op:
        *steps, (_, (positions,)) = steps
    view = _followed(out, steps)
    if np.may_share_memory(view, out) or not out.size:
        _assign(view, None if positions is None else arrays_of(positions), values)
        return out
    # the copy has another order in memory than the original, so that a step made a copy instead of a view
    places = _followed(arange_beside(out, out.size).reshape(out.shape), steps)
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
    places = tuple(p if p is None else aligned(level, p, rank) for p in second)
    each = numbers_of_each(level, rank) if varying else None
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
    values=lambda g, first, second: _picked(on(getitem, g, first), second),
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
    narrow="as the first",
    batch=lambda level, op, args, kwargs: _put_through_of_each(level, op, (*args, ()), kwargs),
    numbers="",
    input=lambda g: np.zeros_like(g),
    values=lambda g: g,
)
@on_arrays
def copy_over(input: Any, values: Any) -> Any:
    """A copy of `input` with `values` written over all of it. Its node saves nothing, so it can run again."""
    out = copied(input)
    out[...] = values
    return out


def _assign(target: Any, indices: Parts | None, values: Any) -> None:
    target[WHOLE if indices is None else tuple([FULL if p is None else p for p in indices])] = values


def _assign_part(data: Any, first: Parts, part: Any, indices: Parts | None, values: Any) -> None:
    """Write values into a part of a payload, ``data[first]``; `indices` are positions in the part."""
    if indices is not None:
        _assign(part, indices, values)
        values = part
    data[first] = values


@method("__setitem__")
def _setitem(self: Tensor, index: Any, value: Any) -> None:
    if LEVELS.n and (kinds := overriding((self, index, value))):
        dispatch(kinds, _setitem, (self, index, value), {})
        return
    write(self, index, value)


_setitem.__name__ = "__setitem__"


def _source(t: Tensor, value: Any, index: Any, second: Parts | None) -> Any:
    """The value to write to ``t[index]``, as a Tensor or an array; an error if it cannot be written."""
    if not isinstance(value, (Tensor, np.ndarray)):
        errors.refuse_foreign("__setitem__()", (value,))
    source = value if isinstance(value, Tensor) else value if hasattr(value, "size") else np.asarray(value)
    dtype = source._data.dtype if isinstance(source, Tensor) else source.dtype
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise ValueError(errors.message("assignment: Overflow when unpacking long long", found=errors.describe(value)))
    if dtype.kind not in "biufcV":
        raise TypeError(
            errors.message("assignment", expected="a Tensor, an array or a number", found=errors.describe(value))
        )
    if second is not None and isinstance(value, Tensor) and dtype != t._data.dtype:
        given = index if isinstance(index, tuple) else (index,)
        parts = [np.array(p) if type(p) is list and p and all(type(v) is bool for v in p) else p for p in given]
        masks = [p for p in parts if isinstance(p, (Tensor, np.ndarray))]
        of_arrays = bool(masks) or any(isinstance(p, (list, tuple)) for p in parts)  # True and False alone are no index
        if of_arrays and (value._data.size != 1 or len(masks) != 1 or not is_mask(masks[0])):
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
        if any(isinstance(p, Tensor) and is_mask(p) for p in second):
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
        source = wrap(source) if isinstance(source, np.ndarray) else source
        if second is not None:
            _write_lifted(t, _index_put.op, (source, first, second), wrote=_wrote_to(t, None, first, second))
        elif _is_all(first):
            _write_lifted(t, copy_over.op, (source,))
        else:
            _write_lifted(t, put_into_base.op, (source, steps), wrote=_wrote_to(t, None, first, None))
        return
    source = _fitting(source._data if isinstance(source, Tensor) else source, target.shape, second)
    if is_payload(t._data):  # a part of it may be a copy
        _assign_part(t._data, first, target, second, source)
    else:
        _assign(target, second, source)
    base, way = way_to(t)
    mask = 0
    if thread.modes.grad_enabled and t._data.dtype.kind in "fcV":
        mask = (1 if base._requires_grad else 0) | (2 if isinstance(value, Tensor) and value._requires_grad else 0)
    if not mask:
        t._bump()
        if t._share_version().views:
            look_at_parts(t, _wrote_to(t, target, first, second))
    elif second is None and not way and _is_all(first):
        take_history(t, record(copy_over.op, mask, (t, value), t._data))
    elif second is not None and not way:
        wrote = _wrote_to(t, target, first, second)
        take_history(t, record(_index_put.op, mask, (t, value, first, second), t._data), wrote, target)
    else:
        wrote = _wrote_to(t, target, first, second)
        part = target if all(op is getitem.op for op, _ in way) else None
        way += steps if second is None else (*steps, (pick_at.op, (second,)))
        take_history(base, record(put_into_base.op, mask, (base, value, way), base._data), wrote, part)


def _wrote_to(t: Tensor, part: Any, first: Parts, second: Parts | None) -> Wrote:
    """A function that says whether ``t[index] = value`` wrote to a view; also where that cannot be known.

    part: the array that the first step gives, or None if `t` belongs to a transform.
    """

    def wrote(view: Tensor, _: Tensor) -> bool | None:
        if view is t:
            return None
        near = part is None or may_share(payload_of(view), part)
        if not near or (part is not None and second is None):
            return near
        (base, way), (start, steps) = way_to(t), way_to(view)
        kinds = {t._data.dtype, base._data.dtype, payload_of(view).dtype}  # several where pairs are complex numbers
        if len(kinds) > 1 or any(isinstance(p, Lifted) for p in second or ()):
            return True
        if any(op is None for op, _ in (*way, *steps)):
            return True
        if start is not base:  # the same memory, as after detach()
            return part is None or _meet(part, second, payload_of(view))
        places = np.zeros(base._data.shape, np.bool_)
        written = _followed(places, (*way, (getitem.op, (first,))))
        _assign(written, None if second is None else arrays_of(second), True)
        return bool(_followed(places, steps).any()) or not np.may_share_memory(written, places)

    return wrote


def _meet(part: Any, second: Any, other: Any) -> bool:
    """Whether elements of an array that an index with arrays chooses are elements of another, or it is not known."""
    if not (type(part) is np.ndarray and type(other) is np.ndarray):
        return True
    chosen = np.zeros(part.shape, np.bool_)
    _assign(chosen, arrays_of(second), True)
    begins, others = (address(a) + offsets(zip(a.strides, a.shape, strict=True)) for a in (part, other))
    return bool(np.isin(begins[chosen], others).any())


def _is_all(parts: Parts) -> bool:
    """Whether an index is that of a whole tensor."""
    return all(part is Ellipsis or part == FULL for part in parts)


def _write_lifted(
    t: Tensor, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, wrote: Any = None
) -> None:
    """Write ``op(t, *args)`` into `t`, where `t` or an argument is a tensor of a transform."""
    result = op.unchecked(before_write(t), *args, **(kwargs or {}))
    put(t, result)
    take_history(t, result, wrote)


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
        look_at_parts(t)
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
