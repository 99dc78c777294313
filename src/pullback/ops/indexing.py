"""Indexing: `x[index]`, `x[index] = value`, and selection by arrays of positions.

An index is made plain first: tensors in it become arrays, and its parts are split the way torch reads them (integers select before arrays do,
so ``x[0, :, [1, 2]]`` keeps its axes in order, where NumPy would move them).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import errors
from .._arrays import broadcasts_to, wrap_axis
from .._state import modes
from .._tensor import NUMPY, Tensor, wrap
from .table import apply, linear, on, record

_full = slice(None)


def _plain_part(part: Any) -> Any:
    """One part of an index as NumPy takes it."""
    if part is None or part is Ellipsis or isinstance(part, (bool, int)):
        return part
    if isinstance(part, slice):
        step = None if part.step is None else operator.index(part.step)
        if step is not None and step <= 0:
            raise ValueError(errors.message("slice", expected="a step greater than zero", found=f"step {step}",
                                            do="reverse an axis with flip(dim)"))  # fmt: skip
        return slice(*(None if v is None else operator.index(v) for v in (part.start, part.stop)), step)
    array = part._data if isinstance(part, Tensor) else np.asarray(part)
    if array.size == 0 and not isinstance(part, (Tensor, np.ndarray)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise IndexError(
            errors.message("index", expected="integers, slices, None, Ellipsis, or integer or bool tensors",
                           found=errors.describe(part), do="use a mask such as x > 0, or positions with .long()")
        )  # fmt: skip
    if array.ndim == 0 and array.dtype.kind != "b":
        return int(array)
    return array


def plain_index(index: Any) -> tuple[Any, ...]:
    """An index as a tuple of integers, slices, None, Ellipsis and arrays."""
    if isinstance(index, list) and any(isinstance(i, (slice, Tensor, type(None), type(Ellipsis))) for i in index):
        index = tuple(index)
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(_plain_part(p) for p in parts)


def _is_basic(index: tuple[Any, ...]) -> bool:
    return not any(isinstance(p, (np.ndarray, bool)) for p in index)


def _split(index: tuple[Any, ...], ndim: int) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """The basic part of an index, and the part made of arrays that applies to its result (None where there is none)."""
    arrays = [p for p in index if isinstance(p, (np.ndarray, bool))]
    if not arrays or not any(isinstance(p, int) and not isinstance(p, bool) for p in index):
        return index, None
    taken = sum(1 if isinstance(p, (int, slice)) and not isinstance(p, bool) else p.ndim if _is_mask(p) else 1
                for p in index if p is not None and p is not Ellipsis and not isinstance(p, bool))  # fmt: skip
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


@linear(method=False, input=lambda g, index: on(getitem, g, index))
def scatter_into_zeros(input: Any, index: Any, shape: Any) -> Any:
    """Zeros of `shape` to which `input` is added at `index`: the adjoint of reading there."""
    out = np.zeros(shape, dtype=input.dtype)
    if _is_basic(index) or all(_is_mask(p) or not isinstance(p, np.ndarray) for p in index):
        out[index] = input  # no position occurs twice
    else:
        np.add.at(out, index, input)
    return out


@linear(method=False, view=True, input=lambda g, index, input_shape: on(scatter_into_zeros, g, index, input_shape))
def getitem(input: Any, index: Any) -> Any:
    """`input[index]`, for an index that is plain already."""
    return _read(input, index)


def _getitem(self: Tensor, index: Any) -> Tensor:
    first, second = _split(plain_index(index), self._data.ndim)
    out = apply(getitem.op, (self, first), {})
    return out if second is None else apply(getitem.op, (out, second), {})


@linear(
    method=False,
    input=lambda g, index: on(index_put, g, 0.0, index),
    values=lambda g, index: on(getitem, g, index),
)
def index_put(input: Any, values: Any, index: Any) -> Any:
    """A copy of `input` with `values` at `index`."""
    out = np.array(input)
    out[index] = values
    return out


def refuse_write(t: Tensor, others: tuple[Any, ...] = ()) -> None:
    """Raise if `t` must not be written in place: before anything is computed or changed."""
    data = t._data
    if isinstance(data, np.ndarray):
        if not data.flags.writeable and 0 not in data.strides:
            raise RuntimeError(
                errors.message("in-place write", expected="writable memory", found="a read-only array", do="clone() it first")
            )
        if data.size > 1 and any(s == 0 and n > 1 for s, n in zip(data.strides, data.shape, strict=True)):
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                "Please clone() the tensor before performing the operation."
            )
    if not modes.grad_enabled:
        return
    if t._requires_grad and t._edge is None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation.\n"
            "  What to do: write within pullback.no_grad(), or use the out-of-place operation."
        )
    recorded = t._requires_grad or any(isinstance(o, Tensor) and o._requires_grad for o in others)
    if t._base is not None and (recorded or t._base._requires_grad):
        raise RuntimeError(
            "a view of a tensor is being written in place while operations are recorded, which is not supported.\n"
            "  What to do: write to the tensor it is a view of, e.g. base[index] = value, or to a clone()."
        )


def take_history(t: Tensor, result: Tensor) -> None:
    """Make `t`, whose memory was just written, the output of the node that `result` came from."""
    t._bump()
    if result._edge is not None:
        node, nr, _, _ = result._edge
        t._edge = (node, nr, t._data.shape, t._data.dtype)
        t._requires_grad = True


def before_write(t: Tensor) -> Tensor:
    """A stand-in for what `t` was before it is written: same place in the graph, a copy of the values."""
    old = wrap(np.array(t._data))
    old._edge, old._requires_grad = t._edge, t._requires_grad
    return old


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    write(self, plain_index(index), value)


def write(t: Tensor, index: tuple[Any, ...], value: Any) -> None:
    """``t[index] = value``, recorded where either requires grad."""
    refuse_write(t, (value,))
    source = value._data if isinstance(value, Tensor) else value
    if not hasattr(source, "dtype"):
        source = np.asarray(source)
    if source.dtype.kind not in "biufc":
        raise TypeError(errors.message("assignment", expected="a Tensor, an array or a number", found=errors.describe(value)))
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
            f"shape mismatch: value tensor of shape {list(source.shape)} cannot be broadcast to indexing result of shape "
            f"{list(np.shape(target))}"
        )
    t._data[first] = source
    mask = 0
    if modes.grad_enabled:
        mask = (1 if t._requires_grad else 0) | (2 if isinstance(value, Tensor) and value._requires_grad else 0)
    if mask:
        take_history(t, record(index_put.op, mask, (t, value, first), t._data))
    else:
        t._bump()


Tensor.__getitem__ = _getitem  # type: ignore[method-assign]
Tensor.__setitem__ = _setitem  # type: ignore[attr-defined]


@linear(
    numpy={np.take_along_axis: lambda arr, indices, axis=-1: gather(arr, axis, wrap(np.asarray(indices)))},
    input=lambda g, dim, index, input_shape: on(scatter_into_zeros, g, _along(index, dim, len(input_shape)), input_shape),
)  # fmt: skip
def gather(input: Any, dim: int, index: Any) -> Any:
    """``out[i][j] = input[index[i][j]][j]`` for ``dim=0``, and so on: one element along `dim` for each entry of `index`."""
    index = index._data if isinstance(index, Tensor) else np.asarray(index)
    if index.dtype.kind not in "iu":
        raise RuntimeError(errors.message("gather()", expected="an integer index", found=errors.describe(index)))
    axis = wrap_axis(dim, input.ndim)
    if index.ndim != input.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    if index.size and input.ndim and (index.min() < 0 or index.max() >= input.shape[axis]):
        raise RuntimeError(
            errors.message("gather()", expected=f"indices in [0, {input.shape[axis] - 1}]",
                           found=f"{int(index.min())} to {int(index.max())}")
        )  # fmt: skip
    return _read(input, _along(index, dim, input.ndim))


def _along(index: Any, dim: int, ndim: int) -> tuple[Any, ...]:
    """The index tuple that goes along `dim` by `index` and straight along every other axis."""
    index = index._data if isinstance(index, Tensor) else index
    axis = wrap_axis(dim, ndim)
    grids = np.ogrid[tuple(slice(n) for n in index.shape)] if ndim else ()
    return tuple(index if i == axis else grid for i, grid in enumerate(grids))


def take_along_dim(input: Tensor, indices: Tensor, dim: int) -> Tensor:
    """`gather` with its arguments in NumPy's order."""
    return gather(input, dim, indices)


@linear(
    numpy={np.take: lambda a, indices, axis=None: index_select(a if axis is not None else a.flatten(), axis or 0, indices)},
    input=lambda g, dim, index, input_shape: on(scatter_into_zeros, g, _straight(index, dim, len(input_shape)), input_shape),
)  # fmt: skip
def index_select(input: Any, dim: int, index: Any) -> Any:
    """The slices of `input` along `dim` whose positions `index`, a 1-D integer tensor, lists."""
    return _read(input, _straight(index, dim, input.ndim))


def _straight(index: Any, dim: int, ndim: int) -> tuple[Any, ...]:
    index = np.asarray(index._data if isinstance(index, Tensor) else index)
    return (*[_full] * wrap_axis(dim, ndim), index)


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy of `input` with `value` wherever `mask`, a bool tensor that broadcasts to it, is True."""
    return np.where(mask, value, input)  # type: ignore[call-overload]


for _shape_of in (np.shape, np.ndim, np.size):
    NUMPY[_shape_of] = lambda a, axis=None, _f=_shape_of: _f(a._data) if axis is None else _f(a._data, axis)  # type: ignore[call-overload, misc]
