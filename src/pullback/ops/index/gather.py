"""Selection by positions and masks: along an axis, from the flattened tensor, where a mask is True.

`x[index]` itself is in `subscripts.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by_positions, by_row
from ...interpreters.batched import looped, refused
from ...kernels.positions import INT64, add_at, along, positions, vector
from ...table.calls import on
from ...table.entry import composite, constant, linear
from ...table.samples import A, Differs, S, V, index, mask
from ...tensor import dtypes
from ...tensor.adding import summing
from ...tensor.arrays import as_array, beside, empty_beside, sizes, wrap_axis, zeros_beside
from ...tensor.tensor import Tensor, wrap
from ..elementwise.limits import where
from ..make.conversion import to
from ..shape.reshape import expand, reshape
from .subscripts import FULL, add_up, in_rows, index_of_each, pick_at

if TYPE_CHECKING:
    from ...interpreters.batched import Vmap
    from ...table.op import Op


def one_axis(name: str, shape: Any, index: Any, dim: int) -> tuple[Any, int, Any]:
    """The shape, the axis counted from 0 and the index of a selection along `dim`; both have at least one axis.

    RuntimeError if the numbers of axes differ, or if the index is longer than the shape along another axis.
    """
    axis = wrap_axis(dim, len(shape))
    if isinstance(index, np.ndarray) and not index.size:  # torch does not ask what nothing is
        index = index.astype(np.int64)
    found = positions(name, index, shape[axis] if shape else 1, RuntimeError)
    if not found.size:
        return shape, axis, found
    shape, found = shape or (1,), found if found.ndim else found.reshape(1)
    if found.ndim != len(shape):
        raise RuntimeError(
            errors.message(
                f"{name}(): Index tensor must have the same number of dimensions as input tensor",
                found=f"{list(index.shape)} and {list(shape)}",
            )
        )
    if found.shape != shape and any(
        m > n for i, (m, n) in enumerate(zip(found.shape, shape, strict=True)) if i != axis
    ):
        raise RuntimeError(
            f"Size does not match at dimension: expected index {list(found.shape)} to be no larger than self "
            f"{list(shape)} apart from dimension {axis}"
        )
    return shape, axis, found


@linear(
    method=False, batch=by_positions("dim", "shape"), numbers="", input=lambda g, dim, index: on(gather, g, dim, index)
)
def _scatter_sum(input: Any, dim: int, index: Any, shape: Any) -> Any:
    """Zeros of `shape` with `input` added at the elements that `gather` takes: the adjoint of `gather`."""
    flat = zeros_beside(input, (math.prod(shape),), summing(input.dtype))
    full, axis, found = one_axis("gather", shape, index, dim)
    if found.size:
        np.add.at(flat, along(found, axis, full).reshape(-1), input.reshape(-1))
    return flat.reshape(shape).astype(input.dtype, copy=False)


@linear(
    batch=by_positions("dim"),
    out="exact",
    numbers="",
    input=lambda g, dim, index, input_shape: on(_scatter_sum, g, dim, index, input_shape),
    samples=lambda: [
        S(A(3, 4), 1, index(4, 3, 2)),
        S(A(3, 4), 0, index(3, 2, 4)),
        S(A(3, 4), -1, index(4, 3, 6)),
        S(A(5), 0, index(5, 8)),
        S(A(), 0, index(1)),
        S(A(), 0, V([0, 0], "int64")),
        S(A(3), 0, index(3)),
        S(A(3, 4), 0, index(3, 1, 2)),
        S(A(2, 3, 2), 1, index(3, 2, 4, 2)),
        S(A(3, 2, layout="T"), dim=0, index=index(3, 2, 2)),
        S(A(3, 4, layout="step"), 1, V([[0, 0, 3]] * 3, "int32")),
        S(A(3), 0, index(3, 0)),
        S(A(3, 2), 0, index(3, 0, 9)),
        S(A(3, 4), 1, index(4, 3, 2), sparse_grad=False),
    ],
    refused=lambda: [
        S(A(3, 4), 2, index(3, 2, 2)),
        S(A(3), 0, V([3], "int64")),
        S(A(3), 0, V([-1], "int64")),
        S(A(3), 0, V([0.0], "float64")),
        S(A(3), 0, V([0], "int16")),
        S(A(3, 4), 0, index(3, 2)),
        S(A(2, 2), 0, index(2, 2, 3)),
        S(A(3), 0, [0]),
        S(A(3), 0),
    ],
)
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """``out[i][j] = input[index[i][j]][j]`` for ``dim=0``, and so on: one element along `dim` for each position.

    `index` has as many axes as `input` and is not longer, except along `dim`. Where a position repeats, gradients add
    up. RuntimeError for positions that do not exist, negative ones included.

    >>> import pullback
    >>> pullback.gather(pullback.tensor([[1, 2], [3, 4]]), 1, pullback.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    shape, axis, found = one_axis("gather", input.shape, index, dim)
    if not found.size:
        return empty_beside(input, index.shape)
    if input.flags.c_contiguous:
        return input.reshape(-1).take(along(found, axis, shape)).reshape(index.shape)
    grids = np.ogrid[tuple(slice(n) for n in found.shape)]
    return input[tuple(found if i == axis else grid for i, grid in enumerate(grids))].reshape(index.shape)


@composite(
    numpy={
        np.take_along_axis: lambda arr, indices, axis=-1: take_along_dim(
            arr, indices if isinstance(indices, Tensor) else wrap(as_array(indices)), axis
        )
    },
    out="exact",
    samples=lambda: [
        S(A(3, 4), index(4, 3, 2), 1),
        S(A(3, 4), index(12, 5)),
        S(A(3, 4), index(4, 1, 2), dim=-1),
        S(A(3, 1), index(3, 2, 4), 0),
        S(A(3, 4), V([[-1], [0], [-4]], "int64"), 1),
    ],
    refused=lambda: [
        S(A(3, 4), index(3, 2), 0),
        S(A(3), V([3], "int64"), 0),
        S(A(3), V([0.0], "float64"), 0),
        S(A(3, 4), index(3, 2, 2), 1),
    ],
    differs=lambda: [
        Differs("positions beyond the end are refused; torch takes their remainder", "refused", sample="[3], 0")
    ],
)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements at `indices` along `dim`; the other axes broadcast. Without `dim`, from the flattened tensor.

    Negative positions count from the end.
    """
    flat = dim is None
    if flat:
        input, indices, dim = reshape(input, -1), reshape(indices, -1), 0
    shape, found = input._data.shape, indices._data.shape
    if len(shape) != len(found):
        raise RuntimeError(
            errors.message(
                "take_along_dim(): input and indices should have the same number of dimensions",
                found=f"{list(shape)} and {list(found)}",
            )
        )
    axis = wrap_axis(dim, len(shape))
    if indices._data.dtype != np.int64 and not flat:
        raise RuntimeError(
            errors.message(
                "take_along_dim(): dtype of indices should be Long, that is int64",
                found=str(indices.dtype),
                do="convert it with .long()",
            )
        )
    if indices._data.dtype.kind == "i":
        indices = where(indices < 0, indices + shape[axis], indices)
    one = [(*s[:axis], 1, *s[axis + 1 :]) for s in (shape, found)]
    text = errors.broadcast_message(one)
    if text:
        raise RuntimeError(text)
    full = np.broadcast_shapes(*one)
    before, after = full[:axis], full[axis + 1 :]
    return gather(expand(input, (*before, shape[axis], *after)), axis, expand(indices, (*before, found[axis], *after)))


# Slices, elements -----------------------------------------------------------------------------------------------------


def straight(index: Any, dim: int) -> tuple[Any, ...]:
    """The index of these positions along axis `dim`, with full slices along the axes before it."""
    return (*[None] * dim, np.reshape(index, (-1,)))


def _index_select_rule(g: Any, dim: Any, index: Any, input_shape: Any) -> Any:
    if not input_shape:
        return np.reshape(g, ())
    return on(add_up, g, straight(index, wrap_axis(dim, len(input_shape))), input_shape)


_ROWS = by_row("dim", "index")


def _select_all(level: Vmap, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    source, dim, index = op.padded(args, kwargs)
    if not level.varies(index) or not source._data.ndim:
        return _ROWS(level, op, args, kwargs)
    return index_of_each(level, pick_at.op, (source, straight(index, wrap_axis(dim, source._data.ndim))), {})


@linear(
    batch=_select_all,
    out="exact",
    numbers="",
    input=_index_select_rule,
    samples=lambda: [
        S(A(3, 4), 1, index(4, 5)),
        S(A(3, 4), 0, index(3, 2)),
        S(A(3, 4), -1, index(4, 1)),
        S(A(5), 0, index(5, 0)),
        S(A(3, 2, layout="T"), 0, index(3, 4)),
        S(A(2, 3, 2), dim=1, index=index(3, 4)),
        S(A(3, 4), 0, index(3)),
        S(A(3, 4), 0, V([2, 0], "int32")),
        S(A(), 0, index(1, 1)),
    ],
    refused=lambda: [
        S(A(3), 1, index(3, 1)),
        S(A(3), 0, V([3], "int64")),
        S(A(3), 0, V([-1], "int64")),
        S(A(3), 0, V([0.0], "float64")),
        S(A(3), 0, index(3, 1, 1)),
        S(A(3), 0, [0]),
    ],
)
def index_select(input: Any, dim: int, index: Any) -> Any:
    """The slices of `input` along `dim` at the positions in `index`, a 1-D tensor of integers that are not negative.

    >>> import pullback
    >>> pullback.index_select(pullback.tensor([[1, 2], [3, 4]]), 1, pullback.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    axis = wrap_axis(dim, input.ndim)
    found = vector("index_select", index, input.shape[axis] if input.ndim else 1)
    return input.take(beside(input, found), axis) if input.ndim else np.copy(input)


def _take_sum_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: the rule of `_take_sum`, the adjoint of `take`."""
    input, index, shape = args
    found = add_up(level.lower(input), in_rows(level, index), (level.size, math.prod(shape)))
    return found.reshape(level.size, *shape)


def _take_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: each tensor of the batch, flattened, is a row to take from; one row if the tensor is the same for all."""
    input, index = op.padded(args, kwargs)
    if not level.varies(input):
        return op.unchecked(level.value(input), level.value(index))
    if isinstance(index, Tensor) and index._data.dtype != np.int64:
        return looped(level, op, args, kwargs)  # which raises the error
    return pick_at(level.value(input).reshape(level.size, input._data.size), in_rows(level, index))


@linear(method=False, batch=_take_sum_of_each, numbers="", input=lambda g, index: on(take, g, index))
def _take_sum(input: Any, index: Any, shape: Any) -> Any:
    """Zeros of `shape` with `input` added at the elements that `take` takes: the adjoint of `take`."""
    flat = zeros_beside(input, (math.prod(shape),), summing(input.dtype))
    add_at(flat, (index,), input)
    return flat.reshape(shape).astype(input.dtype, copy=False)


@linear(
    batch=_take_of_each,
    out="exact",
    numbers="",
    input=lambda g, index, input_shape: on(_take_sum, g, index, input_shape),
    numpy={np.take: lambda a, indices, axis=None, mode="raise": _numpy_take(a, indices, axis, mode)},
    samples=lambda: [
        S(A(3, 4), index(12, 2, 3)),
        S(A(3, 4), V(-1, "int64")),
        S(A(3), V([0, -3, 2, 0], "int64")),
        S(A(), V([0], "int64")),
        S(A(0, 2), index(1, 0)),
        S(A(3, 2, layout="T"), index(6, 4)),
    ],
    refused=lambda: [
        S(A(3, 4), V([12], "int64")),
        S(A(3, 4), V([-13], "int64")),
        S(A(3, 4), V([0], "int32")),
        S(A(3, 4), V([0.0], "float64")),
        S(A(0), V([0], "int64")),
        S(A(3), [0]),
    ],
)
def take(input: Any, index: Any) -> Any:
    """The elements at positions in the flattened tensor, negative ones from its end, in the shape of `index`.

    >>> import pullback
    >>> pullback.take(pullback.tensor([[1, 2], [3, 4]]), pullback.tensor([0, -1]))
    tensor([1, 4])
    """
    return input.take(positions("take", index, input.size, negative=True, dtypes=(INT64,)))


def _numpy_take(a: Tensor, indices: Any, axis: int | None, mode: str) -> Tensor:
    """numpy.take, a copy. Positions may be negative, of any shape, and bools, which are 0 and 1."""
    found = indices if isinstance(indices, Tensor) else as_array(indices)
    listed = not isinstance(indices, (Tensor, np.ndarray))
    empty = listed and found.ndim and not math.prod(found.shape)  # NumPy reads it as a list of floats
    if empty or np.dtype(found.dtype).kind == "b":
        found = found.astype(np.int64)
    if axis is None:
        a, axis = reshape(a, -1), 0
    axis = wrap_axis(axis, a.ndim)
    if mode != "raise":
        n, found = a._data.shape[axis], found.detach().numpy() if isinstance(found, Tensor) else found
        found = found % n if mode == "wrap" else np.clip(found, 0, n - 1)
    taken = a[(*[FULL] * axis, found)]
    return taken if found.ndim else taken.clone()


# Masks --------------------------------------------------------------------------------------------------------------


def check_mask(name: str, mask: Any) -> None:
    """Refuse a mask that is not a bool tensor."""
    if not isinstance(mask, Tensor):
        raise TypeError(errors.message(f"{name}()", expected="mask to be a bool Tensor", found=errors.describe(mask)))
    check_bool(name, mask._data)


def check_bool(name: str, mask: Any) -> None:
    """Refuse a mask whose dtype is not bool."""
    if mask.dtype.kind != "b":
        raise RuntimeError(
            errors.message(
                f"{name}() only supports boolean masks: expected BoolTensor for mask",
                found=errors.describe(mask),
                do="compare, e.g. mask != 0",
            )
        )


@linear(method=False, numbers="", input=lambda g, mask: on(masked_select, g, mask))
def _masked_place(input: Any, mask: Any, shape: Any) -> Any:
    """Zeros of `shape` with the elements of `input`, one after the other, where `mask` is True."""
    out = zeros_beside(input, shape)
    out[np.broadcast_to(mask, shape)] = input
    return out


def _masked_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """vmap: the result is as long as the mask selects, so the mask must be the same for each."""
    return (refused if isinstance(args[1], Tensor) and level.varies(args[1]) else looped)(level, op, args, kwargs)


@linear(
    batch=_masked_of_each,
    shape_from_values=True,
    out="exact",
    numbers="",
    input=lambda g, mask, input_shape: on(
        _masked_place, g, mask, np.broadcast_shapes(np.shape(mask), tuple(input_shape))
    ),
    samples=lambda: [
        S(A(2, 3), mask(2, 3)),
        S(A(2, 3), mask(3)),
        S(A(3), mask(2, 1)),
        S(A(), mask(3)),
        S(A(2, 3), V(True, "bool")),
        S(A(0), mask(0)),
        S(A(3, 2, layout="T"), mask(3, 2)),
    ],
    refused=lambda: [S(A(3), mask(2)), S(A(3), A(3)), S(A(3), [True] * 3), S(A(3))],
)
def masked_select(input: Any, mask: Any) -> Any:
    """The elements where `mask`, a bool tensor, is True, one after the other; the two broadcast.

    >>> import pullback
    >>> x = pullback.tensor([3, 1, 2])
    >>> pullback.masked_select(x, x > 1)
    tensor([3, 2])
    """
    if not hasattr(mask, "size"):
        raise TypeError(
            errors.message("masked_select()", expected="mask to be a bool Tensor", found=errors.describe(mask))
        )
    check_bool("masked_select", mask)
    values, chosen = np.broadcast_arrays(input, mask)
    # one axis: NumPy's loop over several is slower
    return values.reshape(-1)[np.flatnonzero(chosen)]


@constant(
    method=True,
    batch="refused",
    numpy={np.nonzero: lambda a: nonzero(a, as_tuple=True), np.flatnonzero: lambda a: nonzero(reshape(a, -1))[:, 0]},
    shape_from_values=True,
    out="exact",
    samples=lambda: [
        S(V([[0.0, 2.0], [3.0, 0.0]])),
        S(V([[0.0, 2.0], [3.0, 0.0]]), as_tuple=True),
        S(A(3), as_tuple=False),
        S(A()),
        S(A(), as_tuple=True),
        S(V(0.0)),
        S(A(0, 2)),
        S(A(3, 2, layout="T")),
    ],
    refused=lambda: [S([1.0]), S(A(2), True), S(A(2), nonsense=1)],
)
def nonzero(input: Any, *, as_tuple: bool = False) -> Any | tuple[Any, ...]:
    """The positions of the elements that are not 0: a row for each or, with `as_tuple`, a tensor for each axis.

    >>> import pullback
    >>> pullback.nonzero(pullback.tensor([[0, 2], [3, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    found = np.nonzero(np.atleast_1d(input))
    if as_tuple:
        return found
    return np.stack(found[: input.ndim], 1) if input.ndim else empty_beside(input, (found[0].size, 0), np.int64)


@constant(
    samples=lambda: [
        *(S(V([[0.0, 2.0], [3.0, 0.0], [1.0, 1.0]]), size=n) for n in (0, 2, 4, 6)),
        S(V([0, 1, 2]), size=4, fill_value=7),
        S(A(2, 2, layout="T"), size=1),
        S(A(), size=2),
        S(A(0, 2), size=1),
    ],
    refused=lambda: [S([1.0], size=1), S(A(2)), S(A(2), size=-1), S(A(2), size="1"), S(A(2), 3)],
)
def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """The first `size` rows of `nonzero`, filled up with rows of `fill_value`: the shape is known beforehand.

    >>> import pullback
    >>> pullback.nonzero_static(pullback.tensor([0, 2, 3]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if not isinstance(size, int):
        raise TypeError(errors.message("nonzero_static()", expected="size to be an int", found=errors.describe(size)))
    if size < 0:
        raise RuntimeError(errors.message("nonzero_static()", expected="size of at least 0", found=str(size)))
    rows = np.argwhere(input)[:size]
    rest = np.full_like(rows, fill_value, order="C", shape=(size - len(rows), input.ndim))
    return np.concatenate([rows, rest])


@composite(
    out=False,
    numpy={np.argwhere: lambda a: argwhere(a)},
    shape_from_values=True,
    samples=lambda: [S(V([[0.0, 2.0], [3.0, 0.0]])), S(A(3)), S(A()), S(V(0.0)), S(A(0, 2))],
    refused=lambda: [S([1.0])],
)
def argwhere(input: Tensor) -> Tensor:
    """`nonzero` under NumPy's name."""
    return nonzero(input)


@composite(
    out=False,
    method=False,
    numpy={np.unravel_index: lambda indices, shape: unravel_index(indices, shape)},
    samples=lambda: [
        S(V(5, "int64"), (3, 4)),
        S(V([5, 7], "int64"), (3, 4)),
        S(V([5, -12, 13], "int64"), [3, 4]),
        S(V([[5]], "int32"), 6),
        S(index(1, 0), shape=(3, 4)),
    ],
    refused=lambda: [S(V([5.0], "float64"), (3, 4)), S(V([True], "bool"), (3, 4)), S(V([5], "int64"), (3, -4))],
)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Flat positions in a tensor of `shape` as one tensor of positions for each axis."""
    if indices._data.dtype.kind not in "iu":
        raise TypeError(
            errors.message(
                "unravel_index(): expected 'indices' to be integer", found=errors.describe(indices), do="use .long()"
            )
        )
    if isinstance(shape, (tuple, list)) and not all(hasattr(n, "__index__") for n in shape):
        raise TypeError(f"unravel_index(): expected 'shape' sequence to only contain ints, but got {shape}")
    if hasattr(shape, "_data"):
        raise TypeError("unravel_index(): expected 'shape' to be int or sequence of ints, but got Tensor")
    lengths = sizes((shape,))
    if any(n < 0 for n in lengths):
        raise ValueError(f"unravel_index(): 'shape' cannot have negative values, but got {shape}")
    found = []
    indices = to(indices, np.int64)
    for n in reversed(lengths):
        found.append(indices % n)
        indices = indices // n
    return tuple(reversed(found))


# Numbers to be written ----------------------------------------------------------------------------------------------


def fitting_number(name: str, t: Tensor, value: Any) -> Tensor:
    """A number or a 0-d tensor as a tensor of the dtype of `t`, the tensor to write to."""
    found = value if isinstance(value, Tensor) else wrap(as_array(value))
    dtypes.refuse_beyond_64_bits(value)
    if found._data.dtype.kind not in "biufcV":
        raise TypeError(errors.message(f"{name}()", expected="a number or a 0-d tensor", found=errors.describe(value)))
    if found._data.ndim:
        words = "fill_ only supports 0-dimension value tensor but got tensor with"
        where = (
            words if name == "fill_" else f"{name}() only supports a 0-dimensional value tensor, but got tensor with"
        )
        raise RuntimeError(errors.message(f"{where} {found._data.ndim} dimensions", found=errors.describe(value)))
    whole = "c" if name.startswith("index_fill") else "cb"
    if found._data.dtype.kind == "c" and t._data.dtype.kind not in whole:
        raise RuntimeError(
            errors.message(f"{name}()", expected=f"a Scalar that fits {t.dtype}", found=errors.describe(value))
        )
    if isinstance(found._data, np.ndarray) and not (name == "fill_" and isinstance(value, Tensor)):
        dtypes.refuse_overflow(found.item(), t._data.dtype)
    return to(found, t.dtype)
