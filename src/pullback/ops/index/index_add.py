"""Slices at positions along an axis: added to, filled, replaced, combined.

Each operation has an in-place twin. All twins but that of `index_reduce` write only the memory that changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by_row
from ...kernels.positions import INT64, add_at, positions, vector
from ...table.calls import on
from ...table.checks import Titled
from ...table.entry import composite, linear, method, titled
from ...table.samples import A, Differs, S, V, index
from ...tensor.arrays import copied, reshaped, wrap_axis
from ...tensor.protocol import into_array, is_array, on_arrays
from ...tensor.tensor import Tensor
from ..elementwise.value_checks import check_values
from ..shape.reshape import expand, reshape
from .assignment import overwrite
from .gather import fitting_number, index_select, straight
from .scatter import combined
from .subscripts import of_the_last


def refuse_dtypes(name: str, input: Tensor, source: Any) -> None:
    """Refuse a source that is not a tensor of the dtype of `input`, the tensor to write to."""
    if not isinstance(source, (Tensor, np.ndarray)):
        raise TypeError(errors.message(f"{name}()", expected="source to be a Tensor", found=errors.describe(source)))
    if source.dtype != (input.dtype if isinstance(source, Tensor) else input._data.dtype):
        raise RuntimeError(
            errors.message(
                f"{name}(): self and source expected to have the same dtype",
                found=f"{input.dtype} and {source.dtype}",
                do="convert one of them with .to(dtype)",
            )
        )


# Slices along an axis -------------------------------------------------------------------------------------------------

_SLICES = [
    S(A(3, 4), 0, V([2, 0], "int64"), A(2, 4)),
    S(A(3, 4), 1, V([3], "int64"), A(3, 1)),
    S(A(3, 4), -1, V(2, "int64"), A(3, 1)),
    S(A(5), 0, V([3, 1], "int64"), A(2)),
    S(A(2, 3, 2), dim=1, index=V([2, 0], "int64"), source=A(2, 2, 2)),
    S(A(3), 0, index(3, 0), A(0)),
    S(A(), 0, V(0, "int64"), A()),
    S(A(3, 2, layout="T"), 0, V([2, 1], "int64"), A(2, 2, layout="step")),
]
_REPEATED = [S(A(3, 2), 0, V([1, 1, 0, 1], "int64"), A(4, 2)), S(A(2, 9), 0, V([1, 0, 1], "int32"), A(3, 9))]
_NO_SLICES = [
    S(A(3, 4), 2, V([0], "int64"), A(1, 4)),
    S(A(3), 0, V([3], "int64"), A(1)),
    S(A(3), 0, V([-1], "int64"), A(1)),
    S(A(3), 0, V([0.0], "float64"), A(1)),
    S(A(3), 0, V([0], "int16"), A(1)),
    S(A(3, 4), 0, V([[0]], "int64"), A(1, 4)),
    S(A(3, 4), 0, V([0, 1], "int64"), A(1, 4)),
    S(A(3, 4), 0, V([0], "int64"), A(1, 3)),
    S(A(3, 4), 0, V([0], "int64"), A(1, 4, dtype="float64")),
    S(A(3), 0, V([0], "int64"), 1.0),
    S(A(3), 0, [0], A(1)),
    S(A(3), 0, V([0], "int64")),
]


def _slices(name: str, out: Any, dim: int, index: Any, source: Any, mismatch: type[Exception], **how: Any) -> Any:
    """The arguments of an operation on slices: the array (of at least one axis), the index into it, and the values."""
    axis = wrap_axis(dim, out.ndim)
    found = vector(name, index, out.shape[axis] if out.ndim else 1, **how)
    if not isinstance(source, np.ndarray):
        return out.reshape(out.shape or (1,)), straight(found, axis), source
    _check_slices(name, out, axis, found, source, mismatch)
    return np.atleast_1d(out), straight(found, axis), np.atleast_1d(source)


def _check_slices(name: str, out: Any, axis: int, index: Any, source: Any, mismatch: type[Exception]) -> None:
    """Refuse slices of `source` that do not fit `out` at so many positions along an axis."""
    # index_copy() takes a 0-d tensor for a row of one element, and the other way round
    one = name == "index_copy" and source.size == 1 and {source.ndim, out.ndim} == {0, 1}
    if source.ndim != out.ndim and not one:
        raise mismatch(
            f"{name}(): source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(out.shape)} source.shape = {list(source.shape)}"
        )
    target, values = out.shape or (1,), source.shape or (1,)
    if values[axis] != index.size:
        raise mismatch(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): ({values[axis]}), "
            f"for dim: {axis}"
        )
    if target[:axis] + target[axis + 1 :] != values[:axis] + values[axis + 1 :]:
        raise RuntimeError(
            f"{name}(): source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(out.shape)} source.shape = {list(source.shape)}"
        )


@into_array(0)
def _add_slices(out: Any, dim: int, index: Any, source: Any, alpha: Any) -> None:
    kind = IndexError if out.ndim < 2 else RuntimeError
    target, at, values = _slices("index_add", out, dim, index, source, RuntimeError, outside=kind)
    add_at(target, at, values if alpha == 1 else np.multiply(values, out.dtype.type(alpha)))


def _check_alpha(input: Tensor, alpha: Any) -> Any:
    """The factor `alpha` as a number that fits `input`."""
    if isinstance(alpha, float) and input._data.dtype.kind in "iub":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    return fitting_number("index_add", input, alpha)._data.item()


def _check_index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Any:
    refuse_dtypes("index_add", input, source)
    return input, dim, index, source, _check_alpha(input, alpha)


@linear(
    checks=_check_index_add,
    batch=by_row("dim", "index"),
    numbers="alpha",
    out="exact",
    input=lambda g: g,
    source=lambda g, dim, index, alpha: on(index_select, g, dim, index) * alpha,
    samples=lambda: [*_SLICES, *_REPEATED, S(A(3), 0, V([2, 2], "int64"), A(2), alpha=2)],
    refused=lambda: [*_NO_SLICES, S(A(3), 0, V([0], "int64"), A(1), 2), S(A(3), 0, V([0], "int64"), A(1), alpha="x")],
)
@on_arrays
def index_add(input: Any, dim: int, index: Any, source: Any, alpha: Any) -> Any:
    """`input` with the slices of ``alpha * source`` added to its slices along `dim` at the positions in `index`.

    >>> import pullback
    >>> pullback.zeros(3).index_add(0, pullback.tensor([2, 0, 2]), pullback.ones(3))
    tensor([1., 0., 2.])
    """
    out = copied(input)
    _add_slices(out, dim, index, source, alpha)
    return out


@method("index_add_", named=True)
def _index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """`index_add`, written into this tensor, which is returned."""
    refuse_dtypes("index_add_", self, source)
    return overwrite(self, index_add.op, dim, index, source, _check_alpha(self, alpha), change=_add_slices)


@into_array(0)
def _fill_slices(out: Any, dim: int, index: Any, value: Any) -> None:
    value = value[()] if is_array(value) else value
    target, at, _ = _slices(
        "index_fill",
        out,
        dim,
        index,
        value,
        RuntimeError,
        negative=True,
        rank=RuntimeError,
        dtypes=(INT64,),
        wrong=IndexError,
    )
    _put_slices(target, at, value)


def _put_slices(target: Any, at: Any, values: Any) -> None:
    target[tuple(slice(None) if p is None else p for p in at)] = values


def _filled(name: str, input: Tensor, dim: int, value: Any) -> tuple[int, Any]:
    """The axis, counted from 0, and the value to fill slices with: a 0-d tensor, or a number that fits."""
    axis = wrap_axis(dim, input._data.ndim)
    found = fitting_number(name, input, value)
    return axis, found if isinstance(value, Tensor) else found._data.item()


def _check_index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    axis, filling = _filled("index_fill", input, dim, value)
    given = input, axis, index, filling
    return Titled("IndexFillBackward1", given) if isinstance(value, Tensor) else given


@linear(
    out=False,
    contiguous=False,
    checks=_check_index_fill,
    batch=by_row("dim", "index"),
    numbers="",
    input=lambda g, dim, index: on(index_fill, g, dim, index, 0.0),
    value=lambda g, dim, index: g - on(index_fill, g, dim, index, 0.0),  # a repeated position counts once
    samples=lambda: [
        S(A(3, 4), 0, V([2, 0], "int64"), 1.5),
        S(A(3, 4), 1, V([3, -1, -4], "int64"), 2),
        S(A(3, 4), -1, V(2, "int64"), A()),
        S(A(3), 0, V([1, 1], "int64"), A()),
        S(A(2, 3, 2), dim=1, index=V([0], "int64"), value=0),
        S(A(3), 0, index(3, 0), 1),
        S(A(), 0, V(0, "int64"), 3),
        S(A(3, 2, layout="T"), 0, V([2], "int64"), True),
    ],
    refused=lambda: [
        S(A(3, 4), 2, V([0], "int64"), 1),
        S(A(3), 0, V([3], "int64"), 1),
        S(A(3), 0, V([-4], "int64"), 1),
        S(A(3), 0, V([0], "int32"), 1),
        S(A(3), 0, V([0.0], "float64"), 1),
        S(A(3), 0, V([[0]], "int64"), 1),
        S(A(3), 0, V([0], "int64"), A(1)),
        S(A(3), 0, V([0], "int64"), 1j),
        S(A(3), 0, V([0], "int64"), "x"),
        S(A(3), 0, [0], 1),
    ],
)
@on_arrays
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """`input` with `value`, a number or a 0-d tensor, in the slices along `dim` at the positions in `index`.

    >>> import pullback
    >>> pullback.index_fill(pullback.arange(4), 0, pullback.tensor([1, -1]), 0)
    tensor([0, 0, 2, 0])
    """
    out = copied(input)
    _fill_slices(out, dim, index, value)
    return out


@method("index_fill_", named=True)
def _index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`index_fill`, written into this tensor, which is returned."""
    axis, filling = _filled("index_fill_", self, dim, value)
    op = titled(index_fill, "IndexFillBackward1").op if isinstance(value, Tensor) else index_fill.op  # type: ignore[attr-defined]
    return overwrite(self, op, axis, index, filling, change=_fill_slices)


@into_array(0)
def _copy_slices(out: Any, dim: int, index: Any, source: Any) -> None:
    _put_slices(*_slices("index_copy", out, dim, index, source, IndexError, dtypes=(INT64,)))


def _slices_copied(g: Any, dim: int, index: Any) -> Any:
    """The gradient of slices that were copied to positions, from that of the result."""
    axis, index = wrap_axis(dim, np.ndim(g)), np.reshape(index, -1)
    return of_the_last(
        on(index_select, g, dim, index),
        np.shape(g)[axis : axis + 1] or (1,),
        (index,),
        lambda zeros, numbers: on(index_copy, zeros, 0, index, numbers),
        lambda whole: on(index_select, whole, 0, index),
        axis,
    )


def _check_index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    refuse_dtypes("index_copy", input, source)


@linear(
    checks=_check_index_copy,
    batch=by_row("dim", "index"),
    numbers="",
    out="exact",
    input=lambda g, dim, index: on(index_fill, g, dim, index, 0.0),
    source=lambda g, dim, index, source_shape: reshaped(_slices_copied(g, dim, index), source_shape),
    samples=_SLICES,
    refused=_NO_SLICES,
)
@on_arrays
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """`input` with its slices along `dim` at the positions in `index` replaced by the slices of `source`.

    Where a position repeats, the last slice wins, and has the gradient; in torch all of them have it.
    """
    out = copied(input)
    _copy_slices(out, dim, index, source)
    return out


@method("index_copy_", named=True)
def _index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`index_copy`, written into this tensor, which is returned."""
    refuse_dtypes("index_copy_", self, source)
    return overwrite(self, index_copy.op, dim, index, source, change=_copy_slices)


def _check_positions(index: Any, n: int) -> None:
    positions("index_reduce", index, n)


_COMBINED = [
    S(*s.args, how, **({} if own else {"include_self": False}))
    for s in (
        S(A(3, 2), 0, V([1, 1, 0], "int64"), A(3, 2, domain="distinct")),
        S(A(2, 3), -1, V([0, 2], "int64"), A(2, 2, domain="distinct")),
        S(A(3), 0, index(3, 0), A(0)),
    )
    for how in ("prod", "mean", "amax", "amin")
    for own in (True, False)
]


@composite(
    out="exact",
    samples=lambda: [*_COMBINED, S(A(3), dim=0, index=V([1], "int64"), source=A(1), reduce="amax")],
    refused=lambda: [
        *(S(*s.args, "amax") for s in _NO_SLICES),
        S(A(3), 0, V([0], "int64"), A(1), "sum"),
        S(A(3), 0, V([0], "int64"), A(1)),
    ],
    differs=lambda: [Differs("torch has no kernel for it", "values", dtype) for dtype in ("bool", "complex128")],
)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The slices of `source` combined with those of `input` at their positions along `dim`: "prod", "mean", "amax" or
    "amin"; without `include_self`, only among themselves. See `scatter_reduce`."""
    refuse_dtypes("index_reduce", input, source)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.\n"
            "  What to do: choose one of them, or index_add() for the sum."
        )
    shape, axis = source._data.shape, wrap_axis(dim, input._data.ndim)
    if index._data.ndim > 1:
        raise IndexError(
            errors.message("index_reduce()", expected="index to be a vector", found=errors.describe(index))
        )
    index = check_values(_check_positions, index, input._data.shape[axis] if input._data.ndim else 1)
    _check_slices("index_reduce", input._data, axis, index._data, source._data, RuntimeError)
    if len(shape) > 1:
        row = reshape(index, tuple(-1 if i == axis else 1 for i in range(len(shape))))
        index = expand(row, shape)
    return combined("IndexReduceBackward0", input, axis, index, source, reduce, include_self)


@method("index_reduce_", named=True)
def _index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`index_reduce`, written into this tensor, which is returned."""
    return overwrite(self, index_reduce.op, dim, index, source, reduce, include_self=include_self)
