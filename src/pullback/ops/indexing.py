"""Indexing: `x[index]`, `x[index] = value`, and selection by arrays of positions.

An index is made plain first: tensors in it become arrays, and its parts are split the way torch reads them (integers
select before arrays do, so ``x[0, :, [1, 2]]`` keeps its axes in order, where NumPy would move them).
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from .. import errors
from .._arrays import broadcasts_to, wrap_axis
from .._state import thread
from .._tensor import NUMPY, Tensor, wrap
from .calls import apply, on, record
from .creation import to
from .elementwise import where
from .shape import expand, reshape
from .table import composite, linear
from .writing import refuse_write, take_history

_full = slice(None)


def _plain_part(part: Any) -> Any:
    """One part of an index as NumPy takes it."""
    if part is None or part is Ellipsis or isinstance(part, (bool, int)):
        return part
    if isinstance(part, slice):
        step = None if part.step is None else operator.index(part.step)
        if step is not None and step <= 0:
            raise ValueError(
                errors.message(
                    "slice",
                    expected="a step greater than zero",
                    found=f"step {step}",
                    do="reverse an axis with flip(dim)",
                )
            )
        start, stop = (None if v is None else operator.index(v) for v in (part.start, part.stop))
        return slice(start, stop, step)
    array = part._data if isinstance(part, Tensor) else np.asarray(part)
    if array.size == 0 and not isinstance(part, (Tensor, np.ndarray)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise IndexError(
            errors.message(
                "index",
                expected="integers, slices, None, Ellipsis, or integer or bool tensors",
                found=errors.describe(part),
                do="use a mask such as x > 0, or positions with .long()",
            )
        )
    if array.dtype == np.uint8:
        raise IndexError(
            errors.message(
                "index",
                expected="a bool mask or positions",
                do="convert it with .bool() or .long()",
                found="uint8, which torch once took for a mask",
            )
        )
    if array.ndim == 0 and array.dtype.kind != "b":
        return int(array)
    return array


def plain_index(index: Any) -> tuple[Any, ...]:
    """An index as a tuple of integers, slices, None, Ellipsis and arrays."""
    if isinstance(index, list) and len(index) < 32 and any(isinstance(i, _MAKE_A_TUPLE) for i in index):
        warnings.warn(
            "A list of sequences as an index is read as a tuple, x[tuple(index)], as torch does it for now; NumPy, "
            "and torch to come, read it as one array. Write x[tuple(index)] or x[pullback.tensor(index)].",
            stacklevel=3,
        )
        index = tuple(index)
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(_plain_part(p) for p in parts)


_MAKE_A_TUPLE = (list, tuple, np.ndarray, Tensor, slice, type(None), type(Ellipsis))


def _is_basic(index: tuple[Any, ...]) -> bool:
    return not any(isinstance(p, (np.ndarray, bool)) for p in index)


def _split(index: tuple[Any, ...], ndim: int) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """The basic part of an index, and the part made of arrays that applies to its result (None where there is none)."""
    arrays = [p for p in index if isinstance(p, (np.ndarray, bool))]
    if not arrays or not any(isinstance(p, int) and not isinstance(p, bool) for p in index):
        return index, None
    taken = sum(
        1 if isinstance(p, (int, slice)) and not isinstance(p, bool) else p.ndim if _is_mask(p) else 1
        for p in index
        if p is not None and p is not Ellipsis and not isinstance(p, bool)
    )
    first: list[Any] = []
    second: list[Any] = []
    for part in index:
        if isinstance(part, np.ndarray):
            width = part.ndim if _is_mask(part) else 1
            first += [_full] * width
            second.append(part)
        elif part is Ellipsis:
            first += [_full] * (ndim - taken)
            second += [_full] * (ndim - taken)
        elif isinstance(part, bool):
            first.append(None)
            second.append(np.array([part]) if part else np.array([False]))
        else:
            first.append(part)
            if part is None or isinstance(part, slice):
                second.append(_full)
    return tuple(first), tuple(second)


def _is_mask(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.kind == "b"


def _read(data: Any, index: tuple[Any, ...]) -> Any:
    try:
        return data[index]
    except IndexError as error:
        raise IndexError(f"index: {error}; the tensor has shape {list(data.shape)}.") from None


@linear(method=False, input=lambda g, index: on(_getitem, g, index))
def _scatter(input: Any, index: Any, shape: Any) -> Any:
    """Zeros of `shape` to which `input` is added at `index`: the adjoint of reading there."""
    out = np.zeros(shape, dtype=input.dtype)
    if _is_basic(index) or all(_is_mask(p) or not isinstance(p, np.ndarray) for p in index):
        out[index] = input  # no position occurs twice
    else:
        np.add.at(out, index, input)
    return out


@linear(method=False, view=True, input=lambda g, index, input_shape: on(_scatter, g, index, input_shape))
def _getitem(input: Any, index: Any) -> Any:
    """`input[index]`, for an index that is plain already."""
    found = _read(input, index)
    # NumPy gives a number where all axes are indexed; with an Ellipsis it gives what torch does, a 0-d view
    return found if np.ndim(found) or not _is_basic(index) or Ellipsis in index else _read(input, (*index, Ellipsis))


def _subscript(self: Tensor, index: Any) -> Tensor:
    first, second = _split(plain_index(index), self._data.ndim)
    out = apply(_getitem.op, (self, first), {})
    return out if second is None else apply(_getitem.op, (out, second), {})


@linear(
    method=False,
    input=lambda g, index: on(_index_put, g, 0.0, index),
    values=lambda g, index: on(_getitem, g, index),
)
def _index_put(input: Any, values: Any, index: Any) -> Any:
    """A copy of `input` with `values` at `index`."""
    out = np.array(input)
    out[index] = values
    return out


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    write(self, plain_index(index), value)


def write(t: Tensor, index: tuple[Any, ...], value: Any) -> None:
    """``t[index] = value``, recorded where either requires grad."""
    refuse_write(t, (value,))
    source = value._data if isinstance(value, Tensor) else value
    if not hasattr(source, "dtype"):
        source = np.asarray(source)
    if source.dtype.kind not in "biufc":
        raise TypeError(
            errors.message("assignment", expected="a Tensor, an array or a number", found=errors.describe(value))
        )
    if source.dtype.kind == "c" and t._data.dtype.kind != "c":
        raise RuntimeError(errors.message("assignment", expected=f"values that fit {t.dtype}", found=str(source.dtype)))
    first, second = _split(index, t._data.ndim)
    if second is not None:  # one index for both steps: where each element of the result lies
        positions = _read(_read(np.arange(t._data.size).reshape(t._data.shape), first), second)
        first = np.unravel_index(positions, t._data.shape)
    target = _read(t._data, first)
    while source.ndim > np.ndim(target) and source.shape[0] == 1:
        source = source[0]
    if not broadcasts_to(source.shape, np.shape(target)):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(source.shape)} cannot be broadcast to indexing result of "
            f"shape {list(np.shape(target))}"
        )
    t._data[first] = source
    mask = 0
    if thread.modes.grad_enabled:
        mask = (1 if t._requires_grad else 0) | (2 if isinstance(value, Tensor) and value._requires_grad else 0)
    if mask:
        take_history(t, record(_index_put.op, mask, (t, value, first), t._data))
    else:
        t._bump()


Tensor.__getitem__ = _subscript  # type: ignore[method-assign]
Tensor.__setitem__ = _setitem  # type: ignore[method-assign]


def _positions(name: str, index: Any, n: int, outside: type[Exception]) -> np.ndarray[Any, Any]:
    """The values of a tensor of positions along an axis of length `n`; none is counted from its end, as `[]` does."""
    if not isinstance(index, Tensor):
        raise TypeError(
            errors.message(f"{name}()", expected="index to be an integer Tensor", found=errors.describe(index))
        )
    found = index._data
    if found.dtype not in (np.int64, np.int32):
        raise RuntimeError(
            errors.message(f"{name}()", expected="an index of int64 or int32", found=errors.describe(index))
        )
    if found.size and (found.min() < 0 or found.max() >= n):
        span = f"{int(found.min())} to {int(found.max())}"
        raise outside(
            errors.message(f"{name}(): index out of range", expected=f"positions in [0, {n - 1}]", found=span)
        )
    return found


@linear(method=False, input=lambda g, dim, index, input_shape: on(_scatter, g, _along(index, dim), input_shape))
def _gather(input: Any, dim: int, index: Any) -> Any:
    return _read(input, _along(index, dim))


def _along(index: Any, dim: int) -> tuple[Any, ...]:
    """The index tuple that goes along `dim` by `index` and straight along every other axis."""
    grids = np.ogrid[tuple(slice(n) for n in index.shape)]
    return tuple(index if i == dim else grid for i, grid in enumerate(grids))


@composite()
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """``out[i][j] = input[index[i][j]][j]`` for ``dim=0``, and so on: one element along `dim` for each of `index`."""
    shape, ndim = input._data.shape, input._data.ndim
    axis = wrap_axis(dim, ndim)
    found = _positions("gather", index, shape[axis] if shape else 1, RuntimeError)
    if not ndim or not found.ndim:  # what has no axes counts as having one
        if max(ndim, found.ndim) > 1 and found.size:
            raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
        return reshape(gather(reshape(input, -1), 0, reshape(index, -1)), found.shape)
    if found.ndim != ndim and found.size:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    if any(m > n for i, (m, n) in enumerate(zip(found.shape, shape, strict=False)) if i != axis):
        raise RuntimeError(
            f"Size does not match: expected index {list(found.shape)} to be no larger than input {list(shape)} apart "
            f"from dimension {axis}"
        )
    return apply(_gather.op, (input, axis, found), {})


@composite(
    numpy={np.take_along_axis: lambda arr, indices, axis=-1: take_along_dim(arr, wrap(np.asarray(indices)), axis)}
)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements at `indices` along `dim`, where the other axes broadcast; without `dim`, of the flattened tensor."""
    if dim is None:
        return take_along_dim(reshape(input, -1), reshape(indices, -1), 0)
    shape, found = input._data.shape, indices._data.shape
    if len(shape) != len(found):
        raise RuntimeError(
            errors.message(
                "take_along_dim()",
                expected="as many dimensions of indices as of input",
                found=f"{list(found)} and {list(shape)}",
            )
        )
    axis = wrap_axis(dim, len(shape))
    indices = where(indices < 0, indices + shape[axis], indices)
    before = np.broadcast_shapes(shape[:axis], found[:axis])
    after = np.broadcast_shapes(shape[axis + 1 :], found[axis + 1 :])
    input = expand(input, (*before, shape[axis], *after))
    return gather(input, axis, expand(indices, (*before, found[axis], *after)))


@linear(method=False, input=lambda g, dim, index, input_shape: on(_scatter, g, _straight(index, dim), input_shape))
def _index_select(input: Any, dim: int, index: Any) -> Any:
    return _read(input, _straight(index, dim))


def _straight(index: Any, dim: int) -> tuple[Any, ...]:
    return (*[_full] * dim, index)


@composite()
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `input` along `dim` whose positions `index`, a 1-D integer tensor, lists."""
    shape = input._data.shape
    axis = wrap_axis(dim, len(shape))
    found = _positions("index_select", index, shape[axis] if shape else 1, IndexError)
    if found.ndim > 1:
        raise IndexError(
            errors.message("index_select()", expected="index to be a vector", found=errors.describe(index))
        )
    if not shape:
        return reshape(index_select(reshape(input, 1), 0, index), ())
    return apply(_index_select.op, (input, axis, np.atleast_1d(found)), {})


def check_mask(name: str, mask: Any) -> None:
    """Refuse a mask that is not a bool tensor."""
    if not isinstance(mask, Tensor):
        raise TypeError(errors.message(f"{name}()", expected="mask to be a bool Tensor", found=errors.describe(mask)))
    if mask._data.dtype.kind != "b":
        raise RuntimeError(
            errors.message(
                f"{name}()", expected="a bool mask", found=errors.describe(mask), do="compare, e.g. mask != 0"
            )
        )


@composite()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`input` with `value`, a number or a 0-d tensor, wherever `mask`, a bool tensor broadcast with it, is True."""
    check_mask("masked_fill", mask)
    value = fitting_number("masked_fill", input, value)
    return where(mask, value, input)


def fitting_number(name: str, t: Tensor, value: Any) -> Tensor:
    """A number, or a 0-d tensor, with the dtype of the tensor it is to be written into."""
    found = value if isinstance(value, Tensor) else wrap(np.asarray(value))
    if found._data.dtype.kind not in "biufc":
        raise TypeError(errors.message(f"{name}()", expected="a number or a 0-d tensor", found=errors.describe(value)))
    if found._data.ndim:
        raise RuntimeError(
            errors.message(f"{name}()", expected="a number or a 0-d tensor", found=errors.describe(value))
        )
    if found._data.dtype.kind == "c" and t._data.dtype.kind not in "cb":
        raise RuntimeError(
            errors.message(f"{name}()", expected=f"a value that fits {t.dtype}", found=errors.describe(value))
        )
    if t._data.dtype.kind in "iu" and not np.isfinite(found._data):
        raise RuntimeError(
            errors.message(f"{name}()", expected=f"a value that fits {t.dtype}", found=errors.describe(value))
        )
    return to(found, t.dtype)


def _take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    """numpy.take, whose positions may be negative and of any shape."""
    indices = indices if isinstance(indices, Tensor) else np.asarray(indices)
    return a[_straight(indices, wrap_axis(axis, a.ndim))] if axis is not None else reshape(a, -1)[indices]


NUMPY[np.take] = _take
NUMPY[np.shape] = lambda a: np.shape(a._data)
NUMPY[np.ndim] = lambda a: np.ndim(a._data)
NUMPY[np.size] = lambda a, axis=None: np.size(a._data, axis)
