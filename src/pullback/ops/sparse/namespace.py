"""`sparse_coo_tensor`, and the namespace `pullback.sparse`: makes, checks and multiplies sparse tensors.

The tensors themselves are in `coo.py`, the constructors of compressed ones in `compressed.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.entry import METHODS, method
from ...tensor import dtypes
from ...tensor.arrays import sizes
from ...tensor.overrides import by_modes
from ...tensor.tensor import Tensor
from ..make.from_data import tensor
from ..products import matmul
from . import sparse_products
from .coo import Pattern, SparseTensor, at, in_layout, sparse_at
from .pattern import layout, sparse_coo, sparse_csc, sparse_csr, strided
from .sparse_operations import log_softmax, softmax
from .sparse_products import sampled_addmm

__all__ = [
    "SparseTensor",
    "addmm",
    "layout",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_coo",
    "sparse_coo_tensor",
    "strided",
    "sum",
]


def __dir__() -> list[str]:
    return sorted(__all__)


@by_modes
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """The sparse tensor with `values` at `indices`; gradients flow to a tensor given as `values`.

    Args:
        indices: integers of shape ``(sparse_dim, nnz)``, a column for each value: a tensor, an array, nested lists. An
            index may occur several times: its values are summed.
        values: of shape ``(nnz,)``; or ``(nnz, ...)``, if each value is a dense tensor itself; or one number.
            If left out, the first argument is the `size`, and the tensor has no entries.
        size: the shape; by default the smallest that holds the indices.
        dtype, requires_grad: as for `tensor`.
        check_invariants: accepted as in PyTorch; the indices are always checked.
        is_coalesced: a promise that the indices are sorted, row by row, without duplicates.

    Raises:
        RuntimeError: indices that are not integers, not 2-D, negative or out of range; shapes that do not fit; a
            promise that is not kept.
        TypeError: a size that is not a tuple.

    >>> import pullback
    >>> pullback.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    tensor(indices=tensor([[0, 1, 1],
                           [2, 0, 2]]),
           values=tensor([3., 4., 5.]),
           size=(2, 3), nnz=3, layout=pullback.sparse_coo)

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse_coo_tensor.html.
    """
    dtypes.check_device(device)
    if values is None:
        size = indices if size is None else size
        if not isinstance(size, tuple | list):
            raise TypeError(errors.message("sparse_coo_tensor()", expected="values, or a size alone", found="neither"))
        indices, values = np.empty((len(size), 0), np.int64), ()
    places = _checked_indices(indices)
    if not isinstance(values, Tensor):
        values = tensor(values, dtype=dtype)
    elif dtype is not None:
        values = values.to(dtype)
    if not values._data.ndim:
        values = values.reshape(1)
    nnz, shape = places.shape[1], values._data.shape
    if not shape or shape[0] != nnz:
        raise RuntimeError(
            errors.message(
                "indices and values must have same nnz",
                expected=f"values of shape [{nnz}, ...], one for each column of indices",
                found=f"values of shape {list(shape)}",
            )
        )
    pattern = Pattern(places, _checked_size(places, shape[1:], size), bool(is_coalesced) or nnz < 2)
    if is_coalesced and not _is_increasing(places):
        raise RuntimeError(
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor: they are not sorted, or "
            "one occurs twice.\n  What to do: leave is_coalesced out, and call coalesce() on the result."
        )
    made = sparse_at(values, pattern)
    if requires_grad:
        made.requires_grad = True
    return made


def _checked_indices(indices: Any) -> np.ndarray[Any, Any]:
    """The indices as a separate array."""
    found = np.asarray(indices._data if isinstance(indices, Tensor) else indices)
    if found.dtype.kind not in "iu" and found.size:
        raise RuntimeError(
            errors.message(
                "indices must be an int64 tensor",
                expected="integers",
                found=errors.describe(found),
                do="convert them with .long(); the indices of a mask are mask.nonzero().T",
            )
        )
    if found.ndim != 2 or not found.shape[0]:
        raise RuntimeError(
            f"indices must be sparse_dim x nnz, but got: {list(found.shape)}; expected a row for each dimension and a "
            "column for each value."
        )
    if found.size and found.min() < 0:
        d = int(np.argmax(found.min(axis=1) < 0))
        raise RuntimeError(f"found negative index {found[d].min()} for dim {d}; indices count from 0.")
    return np.array(found, np.int64, order="C")


def _checked_size(places: np.ndarray[Any, Any], dense: tuple[int, ...], size: Any) -> tuple[int, ...]:
    """`size`, if indices and values of shape ``(nnz, *dense)`` fit; if it is None, the smallest that they fit."""
    needed = tuple(int(n) for n in places.max(axis=1) + 1) if places.shape[1] else (0,) * len(places)
    if size is None:
        return needed + dense
    if not isinstance(size, tuple | list):
        raise TypeError(
            errors.message(
                "sparse_coo_tensor()", expected="size to be a tuple, e.g. (2, 3)", found=errors.describe(size)
            )
        )
    found = sizes((size,))
    if len(found) != len(needed) + len(dense):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(found)}, sparse_dim = "
            f"{len(needed)}, dense_dim = {len(dense)}; the size has one number for each row of indices, and for each "
            "axis of a value."
        )
    if found[len(needed) :] != dense:
        raise RuntimeError(
            f"values has incorrect size, expected {list(found[len(needed) :])}, got {list(dense)}, for each value"
        )
    for d, (have, need) in enumerate(zip(found, needed, strict=False)):
        if have < 0:
            raise RuntimeError(errors.message("size", expected="no negative number", found=str(list(found))))
        if have < need:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {have} but found index {need - 1}"
            )
    return found


def _is_increasing(places: np.ndarray[Any, Any]) -> bool:
    """Whether each column comes after the one before it, compared row by row."""
    after, equal = np.zeros(max(places.shape[1] - 1, 0), bool), np.ones(max(places.shape[1] - 1, 0), bool)
    for step in np.diff(places, axis=1):
        after |= equal & (step > 0)
        equal &= step == 0
    return bool(after.all())


def mm(sparse: Tensor, dense: Tensor) -> Tensor:
    """The product of two matrices, one of them sparse: ``sparse @ dense``. The gradient of the sparse one is sparse.

    Both have the same dtype: floating point, complex or integer. RuntimeError if dtypes or shapes do not fit.

    >>> import pullback
    >>> values = pullback.tensor([3.0, 4.0, 5.0], requires_grad=True)
    >>> a = pullback.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3))
    >>> b = pullback.tensor([[1.0], [10.0], [100.0]], requires_grad=True)
    >>> pullback.sparse.mm(a, b).sum().backward()
    >>> values.grad, b.grad.T
    (tensor([100.,   1., 100.]), tensor([[4., 0., 8.]]))

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.mm.html.
    """
    return matmul.mm(sparse, dense)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of the elements of a sparse tensor, or along one or several axes: sparse if a sparse axis is left.

    >>> import pullback
    >>> a = pullback.tensor([[3.0, 0.0], [4.0, 5.0]]).to_sparse()
    >>> pullback.sparse.sum(a), pullback.sparse.sum(a, 0).to_dense()
    (tensor(12.), tensor([7., 5.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.sum.html.
    """
    if not isinstance(input, SparseTensor) or input.layout is not sparse_coo:
        compressed = isinstance(input, SparseTensor) and dim is not None
        raise (NotImplementedError if compressed else RuntimeError)(
            errors.message("sparse.sum()", expected="a sparse tensor in coordinate form", found=errors.describe(input))
        )
    return input.sum(dim, dtype=dtype)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """``beta * mat + alpha * mat1 @ mat2`` with a sparse `mat1`; `mat` and the result are dense.

    >>> import pullback
    >>> a = pullback.tensor([[3.0, 0.0], [4.0, 5.0]]).to_sparse()
    >>> pullback.sparse.addmm(pullback.ones(2, 1), a, pullback.ones(2, 1), beta=0.5)
    tensor([[3.5000],
            [9.5000]])

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.addmm.html.
    """
    return sparse_products.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


@method("to_sparse", named=True)
def _to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: None = None,
    dense_dim: int | None = None,
) -> Any:
    """The nonzero elements as a sparse tensor in coordinate form, or in another `layout`; differentiable.

    sparse_dim: the number of leading axes that the indices run over. The other `dense_dim` axes belong to a value; a
    value is kept if any of its elements is not 0. layout: `sparse_coo`, `sparse_csr`, `sparse_csc`, or `strided` for
    `to_dense`; they have no blocks, so `blocksize` is refused.
    """
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc, strided) or blocksize is not None:
        found = str(layout) if blocksize is None else f"blocksize={blocksize}"
        raise NotImplementedError(errors.message("to_sparse()", expected="layout=sparse_coo", found=found))
    if layout is strided:
        return self.to_dense()
    count = self.ndim - (dense_dim or 0) if sparse_dim is None else sparse_dim
    if not isinstance(count, int):
        raise TypeError(errors.message("to_sparse()", expected="sparse_dim to be an integer", found=repr(count)))
    if not isinstance(self, SparseTensor):
        coordinates = _nonzeros(self, count, dense_dim) if layout in (None, sparse_coo) else _matrix(self, count)
        return in_layout(coordinates, layout or sparse_coo)
    given = sparse_dim is not None or (dense_dim is not None and layout in (sparse_csr, sparse_csc))
    if (given and count != self.sparse_dim()) or (dense_dim is not None and layout in (sparse_csr, sparse_csc)):
        raise RuntimeError(
            errors.message("to_sparse()", expected=f"sparse_dim={self.sparse_dim()}, as it is", found=str(count))
        )
    if layout in (sparse_csr, sparse_csc) and self.sparse_dim() != 2:
        raise RuntimeError(
            errors.message("to_sparse()", expected="a sparse matrix", found=f"{self.sparse_dim()} sparse dimensions")
        )
    return in_layout(self, layout or sparse_coo)


def _nonzeros(self: Tensor, count: int, dense_dim: int | None) -> SparseTensor:
    """The nonzero elements of a dense tensor along its first `count` axes, in coordinate form."""
    if not self.ndim:
        raise RuntimeError(
            errors.message("to_sparse()", expected="a tensor of 1 dimension or more", found="a 0-d tensor")
        )
    if not 0 < count <= self.ndim:
        raise RuntimeError(errors.message("to_sparse()", expected=f"sparse_dim in [1, {self.ndim}]", found=str(count)))
    there = self._data if count == self.ndim else (self._data != 0).any(tuple(range(count, self.ndim)))
    places = np.nonzero(there)
    return sparse_at(self[places], Pattern(np.stack(places), self._data.shape, True))


def _matrix(self: Tensor, count: int) -> SparseTensor:
    """The nonzero elements of a dense matrix, in coordinate form."""
    if self.ndim < 2:
        raise (IndexError if self.ndim else RuntimeError)(
            errors.message("to_sparse()", expected="a tensor of 2 dimensions", found=f"one of {self.ndim}")
        )
    if not 2 <= count <= self.ndim:
        raise RuntimeError(
            errors.message(
                "to_sparse(): dense_dim argument must be in range",
                expected=f"dense_dim in [0, {self.ndim - 2}]",
                found=str(self.ndim - count),
            )
        )
    if count > 2:
        raise NotImplementedError(
            errors.message(
                "to_sparse(): batches of compressed matrices are not supported",
                expected="a matrix, or dense_dim",
                found=f"shape {list(self.shape)}",
                do=f"say dense_dim={self.ndim - 2}, or make a sparse tensor of each matrix",
            )
        )
    return _nonzeros(self, 2, None)


@method("sparse_mask", named=True)
def _sparse_mask(self: Tensor, mask: Tensor) -> SparseTensor:
    """The elements at the places of a sparse tensor of the same shape (its values are not used); differentiable.

    >>> import pullback
    >>> mask = pullback.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 1.0], (2, 2))
    >>> pullback.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(mask)
    tensor(indices=tensor([[0, 1],
                           [1, 0]]),
           values=tensor([2., 3.]),
           size=(2, 2), nnz=2, layout=pullback.sparse_coo)
    """
    if not isinstance(mask, SparseTensor):
        kind = NotImplementedError if isinstance(mask, Tensor) else TypeError
        raise kind(errors.message("sparse_mask()", expected="mask to be a sparse tensor", found=errors.describe(mask)))
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    pattern = mask._data.pattern
    return sparse_at(at(self, pattern), pattern)


@method("to_dense", named=True)
def _to_dense(self: Tensor) -> Tensor:
    """The tensor itself; it is dense already."""
    return self


METHODS["layout"] = strided

errors.doors(globals(), "addmm mm sparse_coo_tensor sum")
