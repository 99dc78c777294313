"""NumPy's functions on shapes and positions that torch lacks, computed by operations of this package.

Functions that torch has as well are named in their entries. Positions, conditions and numbers of sections are read as
values: they have no derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...tensor.arrays import wrap_axis
from ...tensor.protocol import without_rule
from ...tensor.tensor import NUMPY, Tensor, extend, is_tracked, wrap
from ..elementwise.limits import where
from ..index.gather import index_select, take, take_along_dim
from ..make.conversion import to
from ..shape.axes import transpose
from ..shape.joining import cat, constants, stack
from ..shape.reshape import broadcast_tensors, flatten, reshape
from ..shape.slices import placed
from ..shape.splitting import tensor_split, unbind


def _values(given: Any) -> Any:
    """The values of another argument than the Tensor, as an array."""
    return given.detach().numpy() if isinstance(given, Tensor) else np.asarray(given)


def _size(a: Any, axis: Any = None) -> int:
    return a._data.size if axis is None else a._data.shape[axis]


def _axis(a: Any, axis: int | None) -> tuple[Tensor, int]:
    """The tensor and the axis; without an axis, the flattened tensor and axis 0."""
    (a,) = constants([a])
    return (flatten(a), 0) if axis is None else (a, wrap_axis(axis, a._data.ndim))


# Cutting and joining --------------------------------------------------------------------------------------------------


def _array_split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """numpy.array_split: pieces, not necessarily of the same length."""
    cuts = _values(indices_or_sections).tolist()
    return [*tensor_split(ary, cuts, axis)]


def _split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """numpy.split: pieces of the same length."""
    cuts, n = _values(indices_or_sections).tolist(), ary._data.shape[axis]
    if isinstance(cuts, int) and n % cuts:
        raise ValueError(f"array split does not result in an equal division: {n} elements by {cuts}")
    return _array_split(ary, cuts, axis)


def _append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """numpy.append: both one after the other; without an axis, flattened."""
    found = constants([arr, values])
    return cat([flatten(a) for a in found]) if axis is None else cat(found, axis)


def _insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """numpy.insert: values, in the dtype of the array, before positions. NumPy inserts their numbers among its own."""
    arr, axis = _axis(arr, axis)
    (values,) = constants([values])
    if is_tracked(values) and arr._data.dtype.kind in "biu":
        raise TypeError(
            errors.message(
                f"numpy.insert(): values in {errors.describe(arr)} are rounded, their gradient would be lost",
                found=errors.describe(values),
                do="convert the array: numpy.insert(arr.astype(float), obj, t)",
            )
        )
    n, count = arr._data.size, values._data.size
    places, added = np.arange(n), np.arange(n, n + count)
    at = _values(obj) if isinstance(obj, Tensor) else obj
    order = np.insert(places.reshape(arr._data.shape), at, added.reshape(values._data.shape), axis)
    return take(cat([flatten(arr), flatten(to(values, arr._data.dtype))]), wrap(order))


def _delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """numpy.delete: all but some positions."""
    arr, axis = _axis(arr, axis)
    positions = obj if isinstance(obj, slice) else _values(obj)
    if not isinstance(positions, slice) and not np.size(positions):  # an empty list would be an array of floats
        positions = np.empty(0, np.intp)
    kept = np.delete(np.arange(arr._data.shape[axis]), positions)
    return index_select(arr, axis, wrap(kept))


def _block(arrays: Any) -> Tensor:
    """numpy.block: nested lists of blocks, the innermost along the last axis."""

    def depth(part: Any) -> int:
        return 1 + max(map(depth, part), default=0) if isinstance(part, list) else 0

    def leaves(part: Any) -> list[Any]:
        return [leaf for p in part for leaf in leaves(p)] if isinstance(part, list) else [part]

    levels = depth(arrays)
    rank = max(levels, *(np.ndim(leaf) for leaf in leaves(arrays)))

    def joined(part: Any, level: int) -> Tensor:
        if isinstance(part, list):
            return cat([joined(p, level - 1) for p in part], -level)
        (part,) = constants([part])
        return reshape(part, (1,) * (rank - part._data.ndim) + tuple(part._data.shape))

    return joined(arrays, levels) if levels else joined(arrays, 0).clone()


def _resize(a: Tensor, new_shape: Any) -> Tensor:
    """numpy.resize: the elements in a row, repeated until they fill the new shape."""
    return take(a, wrap(np.resize(np.arange(a._data.size), new_shape)))


# Choosing -------------------------------------------------------------------------------------------------------------


def _compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    """numpy.compress: the slices for which a condition holds."""
    a, axis = _axis(a, axis)
    return index_select(a, axis, wrap(np.flatnonzero(_values(condition))))


def _extract(condition: Any, arr: Any) -> Tensor:
    """numpy.extract: the elements for which a condition holds."""
    return _compress(_values(condition).reshape(-1), arr)


def _choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Tensor:
    """numpy.choose: each element from the array whose number is in `a`."""
    numbers, count = _values(a), len(choices)
    if mode != "raise":
        numbers = numbers % count if mode == "wrap" else np.clip(numbers, 0, count - 1)
    elif numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
        raise ValueError("invalid entry in choice array: " + f"{numbers.min()} to {numbers.max()} of {count} choices")
    at, *found = broadcast_tensors(wrap(numbers.astype(np.int64)), *constants(choices))
    return take_along_dim(stack(found), at[None], 0)[0]


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """numpy.select: the choice of the first condition that holds."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    (found,) = constants([default])
    for condition, choice in zip(reversed(condlist), reversed(constants(choicelist)), strict=True):
        found = where(*constants([condition]), choice, found)
    return found


# Borders --------------------------------------------------------------------------------------------------------------


def _pad(array: Tensor, pad_width: Any, mode: Any = "constant", **how: Any) -> Tensor:
    """numpy.pad, in the modes that pad with repeated elements or constants."""
    shape = array._data.shape
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(i, pad_width.get(i - len(shape), (0, 0))) for i in range(len(shape))]
        pad_width = [(w, w) if isinstance(w, int) else w for w in pad_width]
    widths = np.broadcast_to(_values(pad_width), (len(shape), 2))
    if mode == "constant":
        frame = np.pad(np.zeros(shape, array._data.dtype), widths.tolist(), mode, **how)
        inside = tuple(slice(before, before + n) for (before, _), n in zip(widths.tolist(), shape, strict=True))
        out = placed(array, inside, frame.shape)
        return out + wrap(frame) if frame.any() else out
    if mode not in ("edge", "reflect", "symmetric", "wrap") or how.get("reflect_type", "even") != "even":
        raise TypeError(
            errors.message(
                "numpy.pad()",
                expected="mode 'constant', 'edge', 'reflect', 'symmetric' or 'wrap' for a Tensor",
                found=f"mode {mode!r}" + f" with {how}" * bool(how),
            )
        )
    for axis, (before, after) in enumerate(widths.tolist()):
        if before or after:
            order = np.pad(np.arange(shape[axis]), (before, after), mode)
            array = index_select(array, axis, wrap(order))
    return array if widths.any() else array.clone()


# Not for Tensors ------------------------------------------------------------------------------------------------------

_INSTEAD: dict[Any, str] = {
    np.put_along_axis: "t.scatter(axis, indices, values), or scatter_ to write in place",
    np.put: "t[numpy.unravel_index(indices, t.shape)] = values",
    np.place: "t[mask] = values",
    np.putmask: "where(mask, values, t), or t[mask] = ... to write in place",
    np.copyto: "t[...] = values, or t[mask] = values[mask] for where=mask",
    np.fill_diagonal: "t[numpy.diag_indices(n)] = value",
}
_INTO_ARRAYS: dict[Any, str] = {
    np.copyto: (  # which full_like calls
        "write t * np.ones_like(a) for np.full_like(a, t), and a[...] = t for np.copyto(a, t), where a begins with "
        "np.zeros_like(t, float, shape=...)"
    )
}


class _OfArrays:
    """An attribute of arrays that a Tensor has not, so that setting it is no attribute of the user's: what to write."""

    def __init__(self, name: str, do: str) -> None:
        self._text = f"'Tensor' object has no attribute {name!r}.\n  What to do: write {do}."

    def __get__(self, t: Any, kind: Any = None) -> Any:
        if t is None:
            return self
        raise AttributeError(self._text)

    def __set__(self, t: Any, value: Any) -> None:
        raise AttributeError(self._text)


extend(
    {
        name: _OfArrays(name, do)
        for name, do in {
            "flat": "t[...] = numpy.reshape(values, t.shape) to set the elements, and t.reshape(-1) to read them",
            "fill": "t[...] = value for t.fill(value)",
            "compress": "numpy.compress(condition, t) for t.compress(condition)",
            "resize": "numpy.resize(t, shape) for t.resize(shape)",
            "searchsorted": "numpy.searchsorted(t, v) for t.searchsorted(v)",
            "partition": "numpy.partition(t, k), which returns the result",
            "argpartition": "numpy.argpartition(t, k) for t.argpartition(k)",
            "flags": "t.is_contiguous(), or t.detach().numpy().flags",
        }.items()
    }
)


def _refused(function: Callable[..., Any], instead: str) -> Callable[..., Any]:
    """A stand-in for a NumPy function that writes into its first argument: it refuses a Tensor there."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if args and not isinstance(args[0], Tensor):
            return without_rule(Tensor, function, args, kwargs, _INTO_ARRAYS.get(function, ""))
        raise TypeError(
            f"numpy.{function.__name__}(): a Tensor cannot be written to by NumPy, which does not record it.\n"
            f"  What to do: write {instead}."
        )

    return refuse


NUMPY.update(
    {
        np.shape: lambda a: a._data.shape,
        np.ndim: lambda a: a._data.ndim,
        np.size: _size,
        np.array_split: _array_split,
        np.split: _split,
        np.append: _append,
        np.insert: _insert,
        np.delete: _delete,
        np.block: _block,
        np.resize: _resize,
        np.compress: _compress,
        np.extract: _extract,
        np.choose: _choose,
        np.select: _select,
        np.pad: _pad,
        np.matrix_transpose: lambda x: transpose(x, -2, -1),
        **{function: _refused(function, instead) for function, instead in _INSTEAD.items()},
    }
)
if hasattr(np, "unstack"):  # NumPy 2.1
    NUMPY[np.unstack] = lambda x, axis=0: unbind(x, axis)
