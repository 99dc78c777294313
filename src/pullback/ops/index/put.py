"""Elements replaced: at flat positions, at positions along several axes, where a mask is True, in a view.

Most operations have an in-place twin. All twins but that of `masked_scatter` write only the memory that changes.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batched import looped
from ...kernels.counterparts import combine_at, contiguous
from ...kernels.positions import INT64, add_at, indexed_shape, positions
from ...table.calls import on
from ...table.entry import alias, composite, linear, method, titled
from ...table.samples import A, Differs, S, V, index, inf, mask, nan
from ...tensor import dtypes
from ...tensor.adding import summing
from ...tensor.arrays import broadcasts_to, copied, wrap_axis, zeros_beside
from ...tensor.protocol import into_array, is_array, on_arrays
from ...tensor.tensor import Tensor
from ...tensor.views import refuse_shared
from ..elementwise.limits import where
from ..shape.reshape import reshape
from ..shape.slices import getitem
from ..shape.strided import laid_over, strided_arguments
from .assignment import _index_put, overwrite, put_into_base, put_of_each, write
from .gather import check_mask, fitting_number, take
from .index_add import refuse_dtypes
from .subscripts import arrays_of, in_rows, of_the_last, pick_at, tensors_of, two_steps

# Flat positions -------------------------------------------------------------------------------------------------------


@into_array(0)
def _put_into(out: Any, index: Any, source: Any, accumulate: bool) -> None:
    found = positions("put", index, out.size, negative=True, dtypes=(INT64,)).reshape(-1)
    if is_array(source):
        if source.size != found.size:
            raise IndexError(
                "put(): Expected source and index to have the same number of elements, but got source.numel() = "
                f"{source.size}, index.numel() = {found.size}"
            )
        source = source.reshape(-1)
    work = contiguous(out).reshape(-1)
    if accumulate:
        work = work.astype(summing(out.dtype), copy=False)
        combine_at(np.add, work, found, source)
    else:
        work[found] = source
    if not np.may_share_memory(work, out):
        out[...] = work.reshape(out.shape)


def _put_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: each tensor of the batch, flattened, is a row to write into."""
    input, index, source, accumulate = op.padded(args, kwargs)
    if isinstance(source, Tensor):
        if index._data.dtype != np.int64 or source._data.size != index._data.size:
            return looped(level, op, args, kwargs)  # which raises the error
        source = level.lower(source).reshape(level.size, *index._data.shape)
    rows = level.lower(input).reshape(level.size, input._data.size)
    write = _index_put_add if accumulate else _index_put
    return write(rows, source, (), in_rows(level, index)).reshape(level.size, *input._data.shape)


def _put_there(g: Any, index: Any, accumulate: bool) -> Any:
    """The gradient of elements that were put at flat positions, from that of the result."""
    found = on(take, g, index)
    if accumulate:
        return found
    return of_the_last(
        found,
        np.shape(g),
        (index,),
        lambda zeros, numbers: on(put, zeros, index, numbers, False),
        lambda whole: on(take, whole, index),
    )


def _check_put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    refuse_dtypes("put", input, source)
    return input, index, source, accumulate


@linear(
    out=False,
    contiguous=False,
    checks=_check_put,
    batch=_put_of_each,
    numbers="",
    input=lambda g, index, accumulate: g if accumulate else on(put, g, index, 0.0, False),
    source=lambda g, index, accumulate, source_shape: np.reshape(_put_there(g, index, accumulate), source_shape),
    samples=lambda: [
        S(A(3, 4), V([2, -1], "int64"), A(2)),
        S(A(3, 4), V([[2, 0], [11, 5]], "int64"), A(4)),
        S(A(3), V(1, "int64"), A()),
        S(A(3), V([0, 1, 1, 0], "int64"), A(4), accumulate=True),
        S(A(3), V([0, 2], "int64"), A(2), True),
        S(A(), V([0], "int64"), A(1)),
        S(A(0, 2), index(1, 0), A(0)),
        S(A(3, 2, layout="T"), index=V([4], "int64"), source=A(1)),
    ],
    refused=lambda: [
        S(A(3), V([3], "int64"), A(1)),
        S(A(3), V([-4], "int64"), A(1)),
        S(A(3), V([0], "int32"), A(1)),
        S(A(3), V([0], "int64"), A(2)),
        S(A(3), V([0], "int64"), A(1, dtype="float64")),
        S(A(0), V([0], "int64"), A(1)),
        S(A(3), V([0], "int64"), 1.0),
        S(A(3), [0], A(1)),
    ],
)
@on_arrays
def put(input: Any, index: Any, source: Any, accumulate: bool) -> Any:
    """`input` with the elements of `source` written at flat positions, or added there if `accumulate`.

    Negative positions count from the end. Where a position repeats, the last element wins unless `accumulate`.
    """
    out = copied(input)
    _put_into(out, index, source, accumulate)
    return out


@method("put_", named=True)
def _put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`put`, written into this tensor, which is returned."""
    refuse_dtypes("put_", self, source)
    return overwrite(self, put.op, index, source, accumulate, change=_put_into)


# Positions along several axes -----------------------------------------------------------------------------------------


def _add_at(out: Any, values: Any, first: Any, second: Any) -> None:
    add_at(out[first], arrays_of(second), values)


@linear(
    method=False,
    node="IndexPutBackward0",
    saved={"indices": lambda second: tensors_of(second), "accumulate": lambda: True},
    batch=put_of_each,
    numbers="",
    input=lambda g: g,
    values=lambda g, first, second: on(pick_at, on(getitem, g, first), second),
)
@on_arrays
def _index_put_add(input: Any, values: Any, first: Any, second: Any) -> Any:
    """A copy of `input` with `values` added at positions, which may repeat, in a view of it."""
    out = copied(input)
    _add_at(out, values, first, second)
    return out


def _two_steps(input: Tensor, indices: Any, values: Any) -> Any:
    """The two steps (see `subscripts.py`) of the index given to `index_put`."""
    if not isinstance(indices, (tuple, list)) or not all(isinstance(i, (Tensor, np.ndarray)) for i in indices):
        raise TypeError(
            errors.message("index_put()", expected="indices to be a tuple of Tensors", found=errors.describe(indices))
        )
    if not indices:
        raise RuntimeError(errors.message("index_put()", expected="at least one tensor of indices", found="none"))
    refuse_dtypes("index_put", input, values)
    # 0-d positions get an axis: without one they would be read as integers
    number = [isinstance(i, Tensor) and not i.ndim and i.dtype is not dtypes.bool for i in indices]
    parts = tuple(reshape(i, (1,)) if one else i for i, one in zip(indices, number, strict=True))
    first, second = two_steps(parts, input._data.shape)
    lengths = input._data.shape if Ellipsis in first else (1,) * first.count(None) + input._data.shape
    shape = indexed_shape(lengths, second or ())
    if not broadcasts_to(values._data.shape, shape):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values._data.shape)} cannot be broadcast to indexing result "
            f"of shape {list(shape)}"
        )
    return first, second


_AT = [
    S(A(3, 4), (V([2, 0], "int64"),), A(4)),
    S(A(3, 4), (V([2, -1], "int64"), V([0, 3], "int64")), A(2)),
    S(A(3, 4), [V([[2], [0]], "int64"), V([0, 3], "int32")], A()),
    S(A(3, 4), (mask(3, 4),), A(1)),
    S(A(3, 4), (V([True, False, True], "bool"), V([0, 3], "int64")), A(2)),
    S(A(3, 4), (V(1, "int64"),), A(4)),
    S(A(3), (index(3, 0),), A(0)),
    S(A(3, 2, layout="T"), (V([2], "int64"),), A(1, 2)),
]


@composite(
    out=False,
    samples=lambda: [
        *_AT,
        *(S(*s.args, accumulate=True) for s in _AT),
        S(A(3, 4), (V([0, 0, -3], "int64"), V([1, 1, 1], "int64")), A(3), True),
        S(A(3, 4), (V([0, 0], "int64"),), A(), True),
    ],
    refused=lambda: [
        S(A(3), (V([3], "int64"),), A()),
        S(A(3), (V([-4], "int64"),), A()),
        S(A(3), (V([0.0], "float64"),), A()),
        S(A(3), (V([0], "int64"),), A(1, dtype="float64")),
        S(A(3), (V([0, 1], "int64"),), A(3)),
        S(A(3), (V([0], "int64"), V([0], "int64")), A()),
        S(A(3), V([0], "int64"), A()),
        S(A(3), (0,), A()),
        S(A(3), (), A()),
        S(A(3), (V([0], "int64"),), 1.0),
        S(A(3), (mask(2),), A()),
    ],
)
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `values` written at ``input[indices]``, for a tuple of tensors, or added there if `accumulate`.

    >>> import pullback
    >>> at = pullback.tensor([2, 0, 2])
    >>> pullback.zeros(3).index_put((at,), pullback.tensor(1.0), accumulate=True)
    tensor([1., 0., 2.])
    """
    first, second = _two_steps(input, indices, values)
    return (_index_put_add if accumulate else _index_put)(input, values, first, second)


@method("index_put_", named=True)
def _index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """`index_put`, written into this tensor, which is returned."""
    first, second = _two_steps(self, indices, values)
    if not accumulate:
        write(self, tuple(indices), values)
        return self
    return overwrite(self, _index_put_add.op, values, first, second, change=_add_at)


# Masks ----------------------------------------------------------------------------------------------------------------


@composite(
    out=False,
    samples=lambda: [
        S(A(2, 3), mask(2, 3), 1.5),
        S(A(2, 3), mask(3), 0),
        S(A(2, 3), mask(), A()),
        S(A(3), mask(2, 3), 2),
        S(A(0), mask(0), 1),
        S(A(3, 2, layout="T"), mask(2), -inf),
    ],
    kinks=lambda: [S(V([inf, nan, 1.0]), V([True, True, False], "bool"), 0.0)],
    refused=lambda: [S(A(3), A(3), 1.0), S(A(3), mask(2), 1.0), S(A(3), mask(3), A(3)), S(A(3), mask(3), "x")],
)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`input` with `value`, a number or a 0-d tensor, wherever `mask`, a bool tensor broadcast with it, is True.

    >>> import pullback
    >>> x = pullback.tensor([1.0, -2.0])
    >>> x.masked_fill(x < 0, 0)
    tensor([1., 0.])
    """
    check_mask("masked_fill", mask)
    call = titled(where, f"MaskedFillBackward{int(isinstance(value, Tensor))}", contiguous=True)
    return call(mask, fitting_number("masked_fill", input, value), input)


@linear(method=False, numbers="", input=lambda g, mask, input_shape: on(_masked_first, g, mask, input_shape))
@on_arrays
def _masked_spread(input: Any, mask: Any, shape: Any) -> Any:
    """Zeros of `shape` with the first elements of `input`, one after the other, where `mask` is True."""
    out = zeros_beside(input, shape)
    chosen = np.broadcast_to(mask, shape)
    count = int(np.count_nonzero(chosen))
    if count > input.size:
        raise RuntimeError(
            errors.message(
                "masked_scatter(): Number of elements of source < number of ones in mask",
                expected=f"{count} or more",
                found=str(input.size),
            )
        )
    out[chosen] = input.reshape(-1)[:count]
    return out


@linear(method=False, numbers="", input=lambda g, mask, input_shape: on(_masked_spread, g, mask, input_shape))
@on_arrays
def _masked_first(input: Any, mask: Any, shape: Any) -> Any:
    """Zeros of `shape` that begin with the elements of `input` where `mask` is True."""
    out = zeros_beside(input, shape)
    found = input[np.broadcast_to(mask, input.shape)]
    out.reshape(-1)[: found.size] = found
    return out


@composite(
    out=False,
    samples=lambda: [
        S(A(2, 3), V([[True, False, True], [False, True, True]], "bool"), A(4)),
        S(A(2, 3), mask(3), A(2, 4)),
        S(A(3), mask(2, 1), A(7)),
        S(A(2), V(True, "bool"), A(2)),
        S(A(0), mask(0), A(0)),
        S(A(3, 2, layout="T"), mask(3, 2), A(2, 3, layout="T")),
    ],
    refused=lambda: [
        S(A(3), V([True, False, True], "bool"), A(1)),
        S(A(3), A(3), A(3)),
        S(A(3), mask(2), A(3)),
        S(A(3), mask(3), A(3, dtype="float64")),
        S(A(3), mask(3), 1.0),
        S(A(3), [True] * 3, A(3)),
    ],
)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the elements of `source`, one after the other, where `mask` is True; the mask broadcasts."""
    check_mask("masked_scatter", mask)
    refuse_dtypes("masked_scatter", input, source)
    shapes = [input._data.shape, mask._data.shape]
    text = errors.broadcast_message(shapes)
    if text:
        raise RuntimeError(text)
    return where(mask, _masked_spread(source, mask, np.broadcast_shapes(*shapes)), input)


@method("masked_scatter_", named=True)
def _masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`masked_scatter`, written into this tensor, which is returned."""
    return overwrite(self, masked_scatter.op, mask, source)


# Views ----------------------------------------------------------------------------------------------------------------


def put_through(name: str, input: Tensor, src: Any, shape: Any, op: Any, *args: Any, title: str) -> Tensor:
    """`input` with the view ``op(input, *args)``, of shape `shape`, replaced by `src`. title: the name of the node."""
    if not isinstance(src, (Tensor, np.ndarray)):
        raise TypeError(errors.message(f"{name}()", expected="src to be a Tensor", found=errors.describe(src)))
    if tuple(src.shape) != tuple(shape):
        raise RuntimeError(
            errors.message(f"{name}()", expected=f"src of shape {list(shape)}", found=str(list(src.shape)))
        )
    return titled(put_into_base, title)(input, src, ((op, args),))


@composite(
    out=False,
    samples=lambda: [
        S(A(3, 4), A(4), 0, 1),
        S(A(3, 4), A(3), -1, -2),
        S(A(2, 3, 2), A(2, 2), dim=1, index=0),
        S(A(3), A(), 0, 2),
        S(A(3, 2, layout="T"), A(3), 1, 1),
        S(A(3), V(1, "int64"), 0, 0),
    ],
    refused=lambda: [
        S(A(3, 4), A(3), 0, 1),
        S(A(3), A(), 0, 3),
        S(A(3), A(), 1, 0),
        S(A(3), 1.0, 0, 0),
        S(A(3), A(), 0),
    ],
)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """`input` with the slice at position `index` along `dim` replaced by `src`."""
    shape, axis = input._data.shape, wrap_axis(dim, input._data.ndim)
    if not shape or not -shape[axis] <= index < shape[axis]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")
    place = (*(slice(None),) * axis, operator.index(index))
    return put_through(
        "select_scatter",
        input,
        src,
        shape[:axis] + shape[axis + 1 :],
        getitem.op,
        place,
        title="SelectScatterBackward0",
    )


@composite(
    samples=lambda: [
        S(A(3, 4), A(2, 4), 0, 1),
        S(A(3, 4), A(2, 4), start=1),
        S(A(3, 4), A(3, 2), 1, 0, 4, 2),
        S(A(3, 4), A(3, 2), -1, -2),
        S(A(3, 4), A(3, 4)),
        S(A(3, 4), A(0, 4), 0, 2, 1),
        S(A(3), A(2), dim=0, end=-1),
        S(A(3, 2, layout="T"), A(1, 2), 0, 0, 1),
    ],
    refused=lambda: [
        S(A(3, 4), A(4), 0, 1),
        S(A(3, 4), A(1, 4), 0, 1),
        S(A(3, 4), A(3, 2), 1, 0, 4, -2),
        S(A(3), A(2), 1, 0, 2),
        S(A(3), 1.0),
    ],
)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """`input` with the slices along `dim` from `start` to `end`, or every `step`-th of them, replaced by `src`."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    shape, axis = input._data.shape, wrap_axis(dim, input._data.ndim)
    part = slice(start, end, step)
    n = len(range(*part.indices(shape[axis])))
    place = (*(slice(None),) * axis, part)
    return put_through(
        "slice_scatter",
        input,
        src,
        (*shape[:axis], n, *shape[axis + 1 :]),
        getitem.op,
        place,
        title="SliceScatterBackward0",
    )


alias("index_put_", _index_put_)


@composite(
    out=False,
    samples=lambda: [
        S(A(3, 4), A(2, 2), (2, 2), (1, 2), 1),
        S(A(3, 4), A(2), (2,), (3,)),
        S(A(6), A(), (), (), storage_offset=3),
    ],
    refused=lambda: [
        S(A(3, 4), A(2), (2, 2), (1, 2), 1),
        S(A(3, 4), A(2, 2), (2, 2), (1, 20)),
        S(A(3, 4), 1.0, (1,), (1,)),
        S(A(5), A(3), (3,), (0,)),
    ],
    differs=lambda: [
        Differs("torch keeps the gradient of the replaced part, not that of the rest", check)
        for check in ("gradients", "second")
    ],
)
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """`input` with the elements that `as_strided` selects, each of them once, replaced by `src`."""
    args = strided_arguments(input, size, stride, storage_offset)
    refuse_shared(*args[:2])
    return put_through(
        "as_strided_scatter", input, src, args[0], laid_over.op, *args, title="AsStridedScatterBackward0"
    )
