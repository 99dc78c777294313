"""Tensors joined into one: along an existing axis, along a new one, as blocks, as all combinations of elements."""

from __future__ import annotations

import itertools
from itertools import pairwise
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batched import looped
from ...table.entry import composite, joining
from ...table.samples import A, Differs, S, V
from ...tensor.arrays import as_array, beside, empty_beside, wrap_axis, zeros_beside
from ...tensor.tensor import Tensor, wrap
from ..make.of_size import zeros
from .axes import each, to_1d, to_2d, to_3d
from .reshape import expand, flatten, many, reshape


def _cat_rule(g: Any, dim: Any, tensors_shape: Any) -> list[Any]:
    axis = wrap_axis(dim, len(g.shape))
    lead, end, pieces = (slice(None),) * axis, 0, []
    for shape in tensors_shape:
        start, end = end, end + (shape[axis] if len(shape) > axis else 0)
        piece = g[(*lead, slice(start, end))]
        # an empty tensor that was skipped may have fewer axes
        pieces.append(piece if piece.shape == shape else np.reshape(piece, shape))
    return pieces


_CAT = [
    S([A(2, 3), A(1, 3)]),
    S((A(2, 3), A(2, 1)), 1),
    S([A(2, 3), A(2, 2)], -1),
    S([A(2)]),
    S([A(0), A(2, 3)]),
    S([A(0, 3), A(2, 3)]),
    S([A(0), A(0)]),
    S([A(2), A(1, layout="readonly"), A(3)]),
    S([A(2), V([1, 2], "int64")]),
]
_NO_CAT = [
    S([A(2, 3), A(2, 2)]),
    S([A(2), A(2, 2)]),
    S([A(), A()]),
    S([]),
    S(A(2)),
    S([A(2), 1.0]),
    S([A(2), A(2)], 1),
    S([A(2, 2), A(2, 2)], foo=1),
]
_EMPTY_LIST = [Differs("both are RuntimeErrors in other versions of torch, and in stack()", "refused", sample="([])")]


def _joined_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """vmap: the axis moves on by one, where it is one of every tensor."""
    tensors, dim = op.padded(args, kwargs)
    rank = max(t._data.ndim for t in tensors)
    if any(t._data.ndim != rank for t in tensors) or not -rank <= dim < rank:
        return looped(level, op, args, kwargs)
    return op.unchecked([level.lower(t) for t in tensors], dim % rank + 1)


def _in_order(like: Any, shape: tuple[int, ...]) -> Any:
    """Memory in the order of its axes, for what NumPy would lay out as its operands, and which would be copied then."""
    return np.empty(shape, like.dtype)


@joining(
    tensors=_cat_rule,
    batch=_joined_of_each,
    samples=lambda: [*_CAT, S([A(3, 2, layout="T"), A(3, 2, layout="step")], axis=1)],
    refused=_NO_CAT,
    differs=_EMPTY_LIST,
    numpy={np.concatenate: lambda arrays, axis=0: _concatenated(arrays, axis)},
)
def cat(tensors: Any, dim: int = 0) -> Any:
    """The tensors one after the other along `dim`. Empty 1-D tensors are skipped, as in torch.

    >>> import pullback
    >>> pullback.cat([pullback.tensor([1, 2]), pullback.tensor([3])])
    tensor([1, 2, 3])
    """
    try:
        first, axis = tensors[0], wrap_axis(dim, tensors[0].ndim)
        if type(first) is not np.ndarray or first.flags.c_contiguous:
            return np.concatenate(tensors, axis)
        length = sum(a.shape[axis] for a in tensors)
        return np.concatenate(
            tensors, axis, out=_in_order(first, (*first.shape[:axis], length, *first.shape[axis + 1 :]))
        )
    except (ValueError, IndexError):  # perhaps because of a tensor to skip; if not, raised below
        pass
    kept = [a for a in tensors if a.shape != (0,)] or list(tensors)
    ndims = {a.ndim for a in kept}
    if 0 in ndims:
        raise RuntimeError("cat(): zero-dimensional tensor cannot be concatenated")
    axis = wrap_axis(dim, kept[0].ndim)
    shapes = [s[:axis] + s[axis + 1 :] for s in (a.shape for a in kept)]
    if len(ndims) > 1 or len(set(shapes)) > 1:
        raise RuntimeError(
            errors.message(
                f"cat(): Sizes of tensors must match except in dimension {axis}",
                found=", ".join(str(list(a.shape)) for a in kept),
            )
        )
    return np.concatenate(kept, axis=axis)


def _concatenated(arrays: Any, axis: Any) -> Tensor:
    """numpy.concatenate of tensors, arrays and sequences."""
    found = constants(arrays)
    return cat(found, axis) if axis is not None else cat([flatten(a) for a in found])


def constants(arrays: Any) -> list[Tensor]:
    """Tensors unchanged, lists with Tensors among their parts stacked, anything else as a constant tensor."""
    return [a if isinstance(a, Tensor) else stack(constants(a)) if _has_tensors(a) else _constant(a) for a in arrays]


def _constant(a: Any) -> Tensor:
    return wrap(as_array(a))


def _has_tensors(part: Any) -> bool:
    return isinstance(part, (list, tuple)) and any(isinstance(p, Tensor) or _has_tensors(p) for p in part)


@composite(method=False, samples=_CAT, refused=_NO_CAT, differs=_EMPTY_LIST)
def concat(tensors: Any, dim: int = 0) -> Tensor:
    """`cat` under another name."""
    return cat(tensors, dim)


@composite(
    method=False,
    samples=lambda: [*_CAT, S([A(2, 2), A(2, 1)], axis=1)],
    refused=_NO_CAT,
    differs=_EMPTY_LIST,
)
def concatenate(tensors: Any, axis: int = 0) -> Tensor:
    """`cat` under NumPy's name."""
    return cat(tensors, axis)


def _stack_rule(g: Any, dim: Any, tensors_shape: Any) -> list[Any]:
    axis = wrap_axis(dim, len(np.shape(g)))
    lead = (slice(None),) * axis
    return [g[(*lead, i)] for i in range(len(tensors_shape))]


def _stacked_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """vmap: the new axis moves on by one."""
    tensors, dim = op.padded(args, kwargs)
    return op.unchecked([level.lower(t) for t in tensors], wrap_axis(dim, tensors[0]._data.ndim + 1) + 1)


@joining(
    tensors=_stack_rule,
    batch=_stacked_of_each,
    numpy={np.stack: lambda arrays, axis=0: stack(constants(arrays), axis)},
    samples=lambda: [
        S([A(2, 3), A(2, 3)]),
        S((A(2, 3), A(2, 3)), 1),
        S([A(3), A(3), A(3)], -1),
        S([A(), A()]),
        S([A(0)], 0),
        S([A(3, 2, layout="T"), A(3, 2)], dim=2),
        S([A(2), V([1, 2], "int64")]),
    ],
    refused=lambda: [S([A(2), A(3)]), S([]), S(A(2)), S([A(2), 1.0]), S([A(2), A(2)], 2)],
)
def stack(tensors: Any, dim: int = 0) -> Any:
    """Tensors of one shape side by side along a new axis `dim`.

    >>> import pullback
    >>> pullback.stack([pullback.tensor([1, 2]), pullback.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if len({a.shape for a in tensors}) > 1:
        raise RuntimeError(
            errors.message(
                "stack expects each tensor to be equal size", found=", ".join(str(list(a.shape)) for a in tensors)
            )
        )
    first, axis = tensors[0], wrap_axis(dim, tensors[0].ndim + 1)
    if type(first) is not np.ndarray or first.flags.c_contiguous:
        return np.stack(tensors, axis=axis)
    return np.stack(tensors, axis, out=_in_order(first, (*first.shape[:axis], len(tensors), *first.shape[axis:])))


# With axes added where needed ---------------------------------------------------------------------------------------

_ROWS = [
    S([A(2, 3), A(2, 3)]),
    S((A(3), A(3))),
    S([A(), A()]),
    S([A(2, 3, 2), A(2, 3, 2), A(2, 3, 2)]),
    S([A(1)]),
    S([A(0), A(0)]),
    S([A(3, 2, layout="T"), A(3, 2)]),
    S([A(2), V([1, 2], "int64")]),
]
_NO_ROWS = [S([A(2), A(2, 3, 4)]), S([]), S(A(2)), S([A(2), 1.0]), S()]


def _in_list(name: str, tensors: Any, change: Any) -> list[Tensor]:
    """The tensors of a sequence, each passed through `change`."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise TypeError(
            errors.message(
                f"{name}(): argument 'tensors' must be tuple of Tensors, not {type(tensors).__name__}",
                do=f"write {name}([a, b])",
            )
        )
    if not tensors:
        raise RuntimeError(f"{name}() expects a non-empty list of Tensors")
    return [*each(name, (tensors,), change)]


@composite(
    method=False,
    numpy={np.hstack: lambda tup: hstack(constants(tup))},
    samples=lambda: [*_ROWS, S([A(2), A(3)])],
    refused=_NO_ROWS,
)
def hstack(tensors: Any) -> Tensor:
    """The tensors side by side, from left to right: along the second axis, or along the first if there is only one.

    >>> import pullback
    >>> pullback.hstack([pullback.tensor([1, 2]), pullback.tensor([3])])
    tensor([1, 2, 3])
    """
    found = _in_list("hstack", tensors, to_1d)
    return cat(found, 0 if found[0]._data.ndim == 1 else 1)


@composite(
    method=False,
    also="row_stack",
    numpy={np.vstack: lambda tup: vstack(constants(tup))},
    samples=lambda: [*_ROWS, S([A(2, 3), A(3)])],
    refused=_NO_ROWS,
)
def vstack(tensors: Any) -> Tensor:
    """The tensors one below the other: along the first axis; a 1-D tensor is a row.

    >>> import pullback
    >>> pullback.vstack([pullback.tensor([1, 2]), pullback.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat(_in_list("vstack", tensors, to_2d), 0)


@composite(
    method=False,
    numpy={np.dstack: lambda tup: dstack(constants(tup))},
    samples=lambda: [*_ROWS, S([A(2, 3), A(2, 3, 2)])],
    refused=_NO_ROWS,
)
def dstack(tensors: Any) -> Tensor:
    """The tensors one behind the other: along the third axis."""
    return cat(_in_list("dstack", tensors, to_3d), 2)


@composite(
    method=False,
    numpy={np.column_stack: lambda tup: column_stack(constants(tup))},
    samples=lambda: [*_ROWS, S([A(2, 3), A(2)]), S([A(), A(1)])],
    refused=[*_NO_ROWS, S([A(2, 3), A(3)])],
)
def column_stack(tensors: Any) -> Tensor:
    """As `hstack`, but a tensor with at most one axis is a column."""
    return cat(_in_list("column_stack", tensors, _to_column), 1)


def _to_column(a: Tensor) -> Tensor:
    return a if a._data.ndim > 1 else reshape(a, (a._data.size, 1))


# Blocks and grids ---------------------------------------------------------------------------------------------------


def _blocks(tensors_shape: Any) -> list[tuple[slice, slice]]:
    """The place of each matrix in the block diagonal."""
    ends = np.cumsum([(0, 0), *tensors_shape], axis=0).tolist()
    return [(slice(a, c), slice(b, d)) for (a, b), (c, d) in pairwise(ends)]


@joining(tensors=lambda g, tensors_shape: [g[place] for place in _blocks(tensors_shape)])
def _block_diag(tensors: Any, dim: int = 0) -> Any:
    shapes = [a.shape for a in tensors]
    out = zeros_beside(tensors[0], tuple(np.sum(shapes, axis=0).tolist()))
    for place, a in zip(_blocks(shapes), tensors, strict=True):
        out[place] = a
    return out


@composite(
    out=False,
    method=False,
    samples=lambda: [
        S(A(2, 3), A(2), A()),
        S(A(1, 1)),
        S(A(2, 0), A(2, 1)),
        S(A(0)),
        S(A(3, 2, layout="T"), V([[1]], "int64")),
    ],
    refused=lambda: [S(A(1, 2, 3)), S([A(2)]), S(A(2), 1.0)],
)
def block_diag(*tensors: Any) -> Tensor:
    """The matrices along the diagonal of a larger one, zeros elsewhere; a 1-D tensor is a row.

    >>> import pullback
    >>> pullback.block_diag(pullback.tensor([[1, 2]]), pullback.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    found = many("block_diag", tensors, in_list=False)
    for i, t in enumerate(found):
        if t._data.ndim > 2:
            raise RuntimeError(
                f"block_diag(): Input tensors must have 2 or fewer dimensions. Input {i} has {t._data.ndim} dimensions"
            )
    return _block_diag([to_2d(t) for t in found]) if found else zeros(1, 0)


@composite(
    method=False,
    view=True,
    numpy={
        np.meshgrid: lambda *xi, copy=True, sparse=False, indexing="xy": _numpy_meshgrid(xi, copy, sparse, indexing)
    },
    samples=lambda: [
        S(A(2), A(3), indexing="ij"),
        S(A(2), A(3), indexing="xy"),
        S([A(2), A(1), A(3)], indexing="xy"),
        S(A(), A(2), indexing="ij"),
        S(A(2), indexing="xy"),
        S(A(0), A(2)),
    ],
    refused=lambda: [
        S(A(2), A(2, 3), indexing="ij"),
        S(A(2), V([1], "int64"), indexing="ij"),
        S(A(2), A(2), indexing="zz"),
        S(A(2), 1.0),
        S(),
    ],
)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid: each tensor's elements along a separate axis; "xy" exchanges the first two axes.

    >>> import pullback
    >>> pullback.meshgrid(pullback.tensor([1, 2]), pullback.tensor([3, 4]))
    (tensor([[1, 1],
            [2, 2]]), tensor([[3, 4],
            [3, 4]]))
    """
    found = many("meshgrid", tensors)
    if indexing not in ("ij", "xy"):
        raise RuntimeError(errors.message('meshgrid(): indexing must be one of "xy" or "ij"', found=repr(indexing)))
    if not found:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if len({t._data.dtype for t in found}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    for t in found:
        if t._data.ndim > 1:
            found_shape = errors.describe(t)
            raise RuntimeError(errors.message("meshgrid(): Expected 0D or 1D tensor in the list", found=found_shape))
    if indexing == "xy" and len(found) > 1:
        second, first, *rest = meshgrid(found[1], found[0], *found[2:])
        return (first, second, *rest)
    shape, n = tuple(t._data.size for t in found), len(found)
    return tuple(
        expand(reshape(t, (1,) * i + (t._data.size,) + (1,) * (n - i - 1)), shape) for i, t in enumerate(found)
    )


def _numpy_meshgrid(xi: Any, copy: bool, sparse: bool, indexing: str) -> list[Tensor]:
    """numpy.meshgrid, which accepts arrays of different dtypes, and copies them unless told not to."""
    found = [flatten(a) for a in constants(xi)]
    n = len(found)
    places = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else [*range(n)]
    grids = [reshape(t, (1,) * i + (t._data.size,) + (1,) * (n - i - 1)) for i, t in zip(places, found, strict=True)]
    shape = np.broadcast_shapes(*(t._data.shape for t in grids))
    grids = grids if sparse else [expand(t, shape) for t in grids]
    return [t.clone() for t in grids] if copy else grids


@composite(
    out=False,
    method=False,
    samples=lambda: [S(A(2), A(3)), S(A(2), A(2), A(1)), S(A(3)), S(A(2), A(0))],
    refused=lambda: [S(A(2, 3), A(2)), S(A(2), V([1], "int64")), S(A(2), 1.0), S(), S([A(2), A(2)])],
)
def cartesian_prod(*tensors: Any) -> Tensor:
    """All choices of one element from each tensor, as rows; for a single tensor, the tensor itself."""
    found = many("cartesian_prod", tensors, in_list=False)
    if not found:
        raise RuntimeError("cartesian_prod() expects a non-empty list of Tensors")
    for t in found:
        if t._data.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t._data.shape)}")
    return found[0] if len(found) == 1 else stack([flatten(t) for t in meshgrid(*found)], 1)


@composite(
    out=False,
    method=False,
    samples=lambda: [
        S(A(4)),
        S(A(4), 3),
        S(A(3), 2, True),
        S(A(4), r=0),
        S(A(4), r=1),
        S(A(2), 3),
        S(A(3), with_replacement=True),
        S(A(0)),
    ],
    refused=lambda: [S(A(2, 3)), S(A(3), -1), S(A()), S([1.0])],
)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements, in order, as rows.

    >>> import pullback
    >>> pullback.combinations(pullback.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input._data.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._data.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    n = input._data.size
    if r == 2:  # the usual case, without a Python loop
        rows, columns = np.triu_indices(n, 0 if with_replacement else 1)
        return stack([input.index_select(0, wrap(beside(input, places))) for places in (rows, columns)], 1)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    if not r:
        return wrap(empty_beside(input._data, (0,)))
    chosen = np.fromiter(itertools.chain.from_iterable(choose(range(n), r)), np.int64)
    found = input.index_select(0, wrap(beside(input, chosen)))
    return reshape(found, (chosen.size // r, r))
