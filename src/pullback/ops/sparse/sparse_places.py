"""Sparse tensors in coordinate form with other axes, with other entries, and written over as a whole.

What moves or picks entries computes with their values by ordinary operations, so its derivatives of every order follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...tensor.arrays import sizes, wrap_axis
from ...tensor.tensor import Tensor
from ..index.subscripts import pick_at
from .coo import SparseTensor, entries, in_layout, pattern_of, sparse_at
from .pattern import Pattern, sparse_coo
from .sparse_operations import OPERATIONS, enter, unsupported, written, zeros_like


def _in_coordinates(name: str, input: SparseTensor) -> Pattern:
    """The pattern of a tensor in coordinate form; of a compressed one, RuntimeError."""
    if input.layout is not sparse_coo:
        raise unsupported(name, input)
    return pattern_of(input)


@enter("unsqueeze")
def _unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """An axis of length 1 more: a sparse one among the sparse ones, and a dense one among the dense ones."""
    pattern, n = _in_coordinates("unsqueeze", input), input.sparse_dim()
    axis = wrap_axis(dim, input.ndim + 1)
    size = (*input.shape[:axis], 1, *input.shape[axis:])
    if axis > n:
        return sparse_at(entries(input).unsqueeze(axis - n + 1), Pattern(pattern.indices, size, pattern.coalesced))
    return sparse_at(entries(input), Pattern(np.insert(pattern.indices, axis, 0, axis=0), size, pattern.coalesced))


@enter("permute")
def _permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """The axes in another order: sparse ones stay before dense ones."""
    pattern, n = _in_coordinates("permute", input), input.sparse_dim()
    order = [wrap_axis(d, input.ndim) for d in sizes(dims)]
    if sorted(order) != list(range(input.ndim)):
        raise RuntimeError(
            errors.message(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
                "desired ordering of dimensions, or an axis is named twice",
                expected=f"each of {input.ndim} axes once",
                found=str(list(order)),
            )
        )
    if max(order[:n], default=0) >= n:
        raise RuntimeError(
            errors.message(
                "permute(): transpositions between sparse and dense dimensions are not allowed",
                expected=f"the first {n} axes, which are sparse, to stay the first",
                found=str(order),
            )
        )
    values = entries(input).permute(0, *(d - n + 1 for d in order[n:]))
    size = tuple(input.shape[d] for d in order)
    kept = pattern.coalesced and order[:n] == list(range(n))
    return sparse_at(values, Pattern(pattern.indices[order[:n]], size, kept or pattern.nnz < 2))


@enter("index_select")
def _index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The parts of an axis at some positions, in their order; a part may come several times."""
    pattern, n, axis = _in_coordinates("index_select", input), input.sparse_dim(), wrap_axis(dim, input.ndim)
    if not isinstance(index, Tensor) or index._data.dtype.kind not in "iu" or index.ndim > 1:
        raise IndexError(
            errors.message("index_select()", expected="index to be a vector of integers", found=errors.describe(index))
        )
    wanted, length = np.atleast_1d(index._data), input.shape[axis]
    if np.any(wanted < -length) or np.any(wanted >= length):
        raise IndexError(
            f"index_select(): index out of range for tensor of size {list(input.shape)} at dimension {axis}"
        )
    size = (*input.shape[:axis], len(wanted), *input.shape[axis + 1 :])
    if axis >= n:
        picked = entries(input).index_select(axis - n + 1, index)
        return sparse_at(picked, Pattern(pattern.indices, size, pattern.coalesced))
    wanted = wanted % max(length, 1)
    order = np.argsort(wanted, kind="stable")
    first, end = (np.searchsorted(wanted[order], pattern.indices[axis], side) for side in ("left", "right"))
    times = end - first
    which = np.repeat(np.arange(pattern.nnz), times)  # the entry behind each new one
    counted = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
    places = pattern.indices[:, which]
    places[axis] = order[np.repeat(first, times) + counted]
    sorting = np.lexsort(places[::-1])
    return sparse_at(
        on(pick_at, entries(input), (which[sorting],)), Pattern(places[:, sorting], size, pattern.coalesced)
    )


@enter("stack")
def _stack(tensors: Any, dim: int = 0) -> Any:
    """Sparse tensors in coordinate form side by side along a new axis."""
    for i, t in enumerate(tensors):
        if not isinstance(t, SparseTensor):
            raise RuntimeError(
                f"stack(): Concatenating sparse tensors, but a dense tensor was found at position {i}.\n"
                "  What to do: call to_sparse() of it, or to_dense() of the others."
            )
        if t.shape != tensors[0].shape:
            raise RuntimeError(
                errors.message(
                    "stack expects each tensor to be equal size", found=", ".join(str(list(t.shape)) for t in tensors)
                )
            )
    return OPERATIONS["cat"]([_unsqueeze(t, dim) for t in tensors], dim)


# Written over ---------------------------------------------------------------------------------------------------------


def _zero(self: SparseTensor) -> Tensor:
    """Without entries in coordinate form; a compressed tensor keeps its places, with zeros there."""
    if self.layout is not sparse_coo:
        return written(SparseTensor.zero_, "mul", OPERATIONS["mul"], (self, 0), {})
    return written(SparseTensor.zero_, "zeros_like", zeros_like, (self,), {})


def _copied(self: SparseTensor, src: Any, non_blocking: bool = False) -> Tensor:
    """The entries of another sparse tensor of the same shape, in this tensor's layout and dtype."""
    if not isinstance(src, SparseTensor):
        raise RuntimeError(
            errors.message(
                "copy_() between dense and sparse Tensors is not implemented!",
                found=errors.describe(src),
                do="copy src.to_sparse()",
            )
        )
    return written(SparseTensor.copy_, "clone", lambda t, src: in_layout(src, t.layout).to(t.dtype), (self, src), {})


_METHODS: dict[str, Callable[..., Tensor]] = {"zero_": _zero, "copy_": _copied}
for _name, _method in _METHODS.items():
    setattr(SparseTensor, _name, errors.door(_method, _name, method=True))
