"""Compressed sparse tensors: constructors of CSR and CSC matrices, and the checks of their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.entry import method
from ...tensor import dtypes
from ...tensor.arrays import sizes
from ...tensor.overrides import by_modes
from ...tensor.tensor import Tensor
from ..make.from_data import tensor
from .coo import SparseTensor, sparse_at
from .pattern import Compressed, sparse_coo, sparse_csc, sparse_csr
from .pattern import layout as _layout

_WORDS = {0: ("crow_indices", "col_indices", "rows", "ncols"), 1: ("ccol_indices", "row_indices", "columns", "nrows")}


@by_modes
def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """The sparse matrix compressed by rows (CSR) with `values` row after row; gradients flow to a tensor of values.

    Args:
        crow_indices: where each row begins among the values, and the last one ends: integers of shape ``(rows + 1,)``.
        col_indices: the column of each value, increasing within a row: integers of shape ``(nnz,)``, of the same dtype
            (int32 or int64).
        values: of shape ``(nnz,)``; or ``(nnz, ...)``, if each value is a dense tensor itself.
        size: the shape; by default the smallest that holds the indices.
        dtype, requires_grad: as for `tensor`.
        layout: `pullback.sparse_csr`, if given.
        check_invariants: accepted as in PyTorch; the indices are always checked.

    Raises:
        RuntimeError: indices that are not integers, do not fit values or size, are out of range, or do not increase.
        NotImplementedError: a batch of matrices.
        TypeError: a size that is not a tuple.

    >>> import pullback
    >>> a = pullback.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3))
    >>> a
    tensor(crow_indices=tensor([0, 1, 3]),
           col_indices=tensor([2, 0, 2]),
           values=tensor([3., 4., 5.]), size=(2, 3), nnz=3,
           layout=pullback.sparse_csr)
    >>> a @ pullback.ones(3)
    tensor([3., 9.])

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse_csr_tensor.html.
    """
    _expect(layout, sparse_csr, "sparse_csr_tensor")
    return _made("sparse_csr_tensor", 0, crow_indices, col_indices, values, size, dtype, device, requires_grad)


@by_modes
def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """The sparse matrix compressed by columns (CSC) with `values` column after column.

    Its arguments are those of `sparse_csr_tensor`, with columns for rows: `ccol_indices` has shape ``(columns + 1,)``.

    >>> import pullback
    >>> pullback.sparse_csc_tensor([0, 1, 1, 3], [1, 0, 1], [4.0, 3.0, 5.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse_csc_tensor.html.
    """
    _expect(layout, sparse_csc, "sparse_csc_tensor")
    return _made("sparse_csc_tensor", 1, ccol_indices, row_indices, values, size, dtype, device, requires_grad)


@by_modes
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """`sparse_csr_tensor` or `sparse_csc_tensor`, as `layout` says: `pullback.sparse_csr` or `pullback.sparse_csc`.

    >>> import pullback
    >>> pullback.sparse_compressed_tensor([0, 1], [0], [2.0], layout=pullback.sparse_csc).to_dense()
    tensor([[2.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse_compressed_tensor.html.
    """
    if layout is not None and not isinstance(layout, _layout):
        raise TypeError(
            errors.message("sparse_compressed_tensor()", expected="layout to be a layout", found=repr(layout))
        )
    if layout not in (sparse_csr, sparse_csc):
        raise RuntimeError(
            "sparse_compressed_tensor expected sparse compressed tensor layout but got "
            f"{'none' if layout is None else layout.title}.\n"
            "  What to do: say layout=pullback.sparse_csr or pullback.sparse_csc."
        )
    parts = compressed_indices, plain_indices, values, size
    return _made("sparse_compressed_tensor", 0 if layout is sparse_csr else 1, *parts, dtype, device, requires_grad)


def _expect(found: Any, wanted: Any, name: str) -> None:
    if found not in (None, wanted):
        said = getattr(found, "title", repr(found))
        raise (RuntimeError if isinstance(found, _layout) else TypeError)(
            f"{name}: layout must be {wanted.title} but got {said}.\n  What to do: leave layout out."
        )


def _made(
    name: str, axis: int, ends: Any, across: Any, values: Any, size: Any, dtype: Any, device: Any, requires_grad: bool
) -> SparseTensor:
    """The matrix of these parts, once they are checked."""
    dtypes.check_device(device)
    if not isinstance(values, Tensor):
        values = tensor(values, dtype=dtype)
    elif dtype is not None:
        values = values.to(dtype)
    found_ends, found_across = (_read(part, word) for part, word in zip((ends, across), _WORDS[axis], strict=False))
    shape = _shape(name, axis, found_ends, found_across, values._data.shape, size)
    _check_places(axis, found_ends, found_across, shape)
    made = sparse_at(values, Compressed(found_ends, found_across, shape, axis))
    if requires_grad:
        made.requires_grad = True
    return made


def _read(given: Any, word: str) -> np.ndarray[Any, Any]:
    """Indices as a separate array of int32 or int64."""
    found = np.asarray(given._data if isinstance(given, Tensor) else given)
    if not found.size and not isinstance(given, Tensor):
        found = found.astype(np.int64)
    if found.ndim != 1:
        kind = NotImplementedError if found.ndim > 1 else RuntimeError
        raise kind(
            errors.message(
                f"{word} must have dimensionality >= 1 but got {found.ndim}"
                if not found.ndim
                else f"{word}: batches of compressed matrices are not supported",
                expected="a vector of integers",
                found=f"shape {list(found.shape)}",
                do="make a sparse tensor of each matrix",
            )
        )
    if found.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            errors.message(
                f"{word} dtype must be Int or Long",
                expected="int32 or int64",
                found=str(found.dtype),
                do="convert the indices with .long()",
            )
        )
    return np.array(found, order="C")


def _shape(name: str, axis: int, ends: Any, across: Any, values: tuple[int, ...], size: Any) -> tuple[int, ...]:
    """`size`, if the lengths of the parts fit it; if it is None, the smallest that they fit."""
    first, second, lines, _ = _WORDS[axis]
    if ends.dtype != across.dtype:
        raise RuntimeError(
            errors.message(
                f"{first} and {second} must have the same dtype",
                found=f"{ends.dtype} and {across.dtype}",
                do="use .to()",
            )
        )
    if not values:
        raise RuntimeError(errors.message("values must have dimensionality > 0", found="a number", do="use a list"))
    if len(across) != values[0]:
        raise RuntimeError(
            f"{second}.shape[-1] must be equal to nnz (={values[0]}) as defined by values.shape[0], but got "
            f"{len(across)}; there is one index for each value."
        )
    if size is None:
        if not len(ends):
            raise RuntimeError(f"{first}.shape[-1] must be equal to the number of {lines} + 1, but got 0")
        other = int(across.max(initial=-1)) + 1
        return (len(ends) - 1, other, *values[1:]) if axis == 0 else (other, len(ends) - 1, *values[1:])
    if not isinstance(size, tuple | list):
        raise TypeError(
            errors.message(f"{name}()", expected="size to be a tuple, e.g. (2, 3)", found=errors.describe(size))
        )
    found = sizes((size,))
    if len(found) != 1 + len(values):
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(=0 + 2 + {len(values) - 1}) but got {len(found)}"
        )
    if len(ends) != found[axis] + 1:
        raise RuntimeError(
            f"{first}.shape[-1] must be equal to the number of {lines} + 1 (={found[axis] + 1}), but got {len(ends)}"
        )
    if found[2:] != values[1:]:
        raise RuntimeError(
            f"values has incorrect size, expected {list(found[2:])}, got {list(values[1:])}, for each value"
        )
    return found


def _check_places(axis: int, ends: Any, across: Any, shape: tuple[int, ...]) -> None:
    """Refuse indices that are out of range or do not increase; torch's conditions, in its order."""
    first, second, _, across_of = _WORDS[axis]
    length, counts = shape[1 - axis], np.diff(ends)
    inside = np.ones(max(len(across) - 1, 0), bool)  # whether an entry is in the line of the one before
    within = counts.size == 0 or (counts.min() >= 0 and ends[0] == 0 and ends[-1] == len(across))
    if within:
        starts = ends[1:-1]
        inside[starts[(starts > 0) & (starts < len(across))] - 1] = False
    conditions = {
        f"`{first}[..., 0] == 0`": ends[0] == 0,
        f"`{first}[..., -1] == nnz`": ends[-1] == len(across),
        f"`0 <= {second} < {across_of}`": not across.size or (across.min() >= 0 and across.max() < length),
        f"`0 <= {first}[..., 1:] - {first}[..., :-1] <= {across_of}`": not counts.size
        or (counts.min() >= 0 and counts.max() <= length),
        f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i are sorted and distinct along the last "
        "dimension values`": bool((np.diff(across) > 0)[inside].all()),
    }
    for condition, holds in conditions.items():
        if not holds:
            raise RuntimeError(
                errors.message(
                    f"{condition} is not satisfied",
                    found=f"{first} {_short(ends)}, {second} {_short(across)}, size {list(shape)}",
                    do="make a sparse_coo_tensor of rows and columns in any order, and call to_sparse_csr()",
                )
            )


def _short(array: np.ndarray[Any, Any]) -> str:
    return np.array2string(array, threshold=8, edgeitems=3, separator=", ")


@method("to_sparse_csr")
def _to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """The nonzero elements of a matrix, compressed by rows; differentiable. dense_dim: the axes of each value.

    >>> import pullback
    >>> pullback.tensor([[0.0, 3.0], [4.0, 0.0]]).to_sparse_csr().col_indices()
    tensor([1, 0])
    """
    made: SparseTensor = self.to_sparse(layout=sparse_csr, dense_dim=dense_dim)
    return made


@method("to_sparse_coo")
def _to_sparse_coo(self: Tensor) -> SparseTensor:
    """The nonzero elements in coordinate form, or those of a compressed matrix; differentiable."""
    made: SparseTensor = self.to_sparse(layout=sparse_coo)
    return made


@method("to_sparse_csc")
def _to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """The nonzero elements of a matrix, compressed by columns; differentiable. dense_dim: the axes of each value."""
    made: SparseTensor = self.to_sparse(layout=sparse_csc, dense_dim=dense_dim)
    return made


def _wrong_layout(name: str, expected: str) -> Any:
    convert = "to_sparse_csr()" if "compressed" in expected else "to_sparse()"

    def getter(self: Tensor) -> Any:
        raise RuntimeError(
            f"{name} expected {expected} tensor layout but got Strided.\n  What to do: call {convert} first."
        )

    getter.__name__ = name
    getter.__doc__ = f"RuntimeError: only a {expected} tensor has it."
    return getter


for _name, _expected in {
    "crow_indices": "sparse row compressed",
    "col_indices": "sparse row compressed",
    "ccol_indices": "sparse column compressed",
    "row_indices": "sparse column compressed",
    "indices": "sparse coordinate",
    "values": "sparse",
    "coalesce": "sparse coordinate",
    "is_coalesced": "sparse coordinate",
}.items():
    method(_name)(_wrong_layout(_name, _expected))


errors.doors(globals(), "sparse_compressed_tensor sparse_csc_tensor sparse_csr_tensor")
