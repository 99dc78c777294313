"""Sparse matrices whose values are Tensors: SciPy's constructors, and what the functions of `linalg` read.

A matrix is its values, one for each place, and a `Pattern` of these places, sorted by rows. All computation is done on
the values, so gradients exist at the nonzeros alone, and values of a transform (`vmap`, `jvp`, ...) are as good as any.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ... import errors
from ...kept_gradients import keeping_gradient
from ...ops.index.subscripts import add_up, pick_at
from ...ops.make.conversion import to
from ...ops.shape.reshape import reshape
from ...ops.sparse.coo import SparseTensor, coalesced, in_layout, sparse_at
from ...ops.sparse.pattern import Pattern, pattern_mm, sampled_mm, sparse_coo, sparse_csc, sparse_csr
from ...ops.sparse.sparse_products import entries_of_product
from ...table.calls import on
from ...tensor.tensor import Tensor
from ..array_nodes import Array, as_tensor, floating

_TO_ADD = (
    "make the matrix once, of all its values: csr_array((values, (rows, columns)), shape=...) sums those of one place, "
    "so that what is to be added to an element is one more value"
)
LAYOUTS = {"csr": sparse_csr, "csc": sparse_csc, "coo": sparse_coo}


class SparseArray:
    """A sparse matrix with the values `data`, a Tensor, at the places of a sorted pattern.

    `csr_array`, `csc_array`, `coo_array`, `diags_array` and `eye_array` make it. It has SciPy's attributes ``shape``,
    ``dtype``, ``nnz``, ``ndim``, ``T``, ``conj()``, ``diagonal()``, ``sum()``, ``toarray()``, ``tocsr()``, ``tocsc()``,
    ``tocoo()``, sums and differences, products with numbers, vectors and matrices, dense or sparse; and
    ``to_tensor()``, which makes a sparse tensor of this library. An index chooses as SciPy's; what has one axis is a
    dense Tensor. ``data`` are the values row by row, with duplicates summed, whatever the format.

    >>> import numpy as np, pullback
    >>> from pullback.scipy.sparse import csr_array
    >>> a = csr_array(pullback.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 4.0]]))
    >>> a[:, 1:].toarray(), a[1], a[0, 2]
    (tensor([[0., 2.],
            [3., 4.]]), tensor([0., 3., 4.]), tensor(2.))
    """

    __slots__ = ("data", "format", "pattern")
    __array_ufunc__ = None  # NumPy's operators leave the operation to those below

    def __init__(self, data: Any, pattern: Pattern, format: str = "csr") -> None:
        self.data: Any = data
        self.pattern, self.format = pattern, format

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        rows, columns = self.pattern.size
        return rows, columns

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """The number of values."""
        return self.pattern.nnz

    ndim = 2

    @property
    def T(self) -> SparseArray:  # noqa: N802 - SciPy's name
        """The transpose."""
        turned = Pattern(self.pattern.indices[::-1], self.shape[::-1], False)
        format = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
        return by_rows(self.data, turned, format)

    def transpose(self) -> SparseArray:
        """The transpose."""
        return self.T

    def conj(self) -> SparseArray:
        """The complex conjugate."""
        return SparseArray(np.conj(self.data), self.pattern, self.format)

    def diagonal(self) -> Tensor:
        """The elements on the diagonal."""
        rows, columns = self.pattern.indices
        (at,) = np.nonzero(rows == columns)
        return on(add_up, on(pick_at, self.data, (at,)), (rows[at],), (min(self.shape),))

    def toarray(self) -> Tensor:
        """The dense matrix."""
        return on(add_up, self.data, tuple(self.pattern.indices), self.shape)

    todense = to_dense = toarray

    def tocsr(self, copy: bool = False) -> SparseArray:
        """The same matrix, called one by rows. copy: accepted as SciPy does."""
        return SparseArray(self.data, self.pattern, "csr")

    def tocsc(self, copy: bool = False) -> SparseArray:
        """The same matrix, called one by columns."""
        return SparseArray(self.data, self.pattern, "csc")

    def tocoo(self, copy: bool = False) -> SparseArray:
        """The same matrix, called one in coordinates."""
        return SparseArray(self.data, self.pattern, "coo")

    def __getitem__(self, index: Any) -> Any:
        """What SciPy's index chooses: a sparse matrix where two axes are left, else a dense Tensor."""
        numbers = scipy.sparse.csr_array((np.arange(self.nnz) + 1, tuple(self.pattern.indices)), self.shape)
        found = numbers[index]  # which value is where; 0 where there is none
        places = scipy.sparse.coo_array(found if scipy.sparse.issparse(found) else np.atleast_1d(found))
        data = on(pick_at, self.data, (places.data - 1,))
        if places.ndim == 1:
            return reshape(on(add_up, data, tuple(places.coords), places.shape), np.shape(found))
        return by_rows(data, Pattern(np.stack(places.coords).astype(np.int64), places.shape, False), self.format)

    def to_tensor(self) -> SparseTensor:
        """A sparse tensor of this library, in the layout of the format."""
        return in_layout(sparse_at(self.data, self.pattern), LAYOUTS[self.format])

    def _with(self, data: Tensor) -> SparseArray:
        return SparseArray(data, self.pattern, self.format)

    def sum(self, axis: int | None = None) -> Tensor:
        """The sum of all values; of the columns with axis 0, of the rows with axis 1."""
        if axis is None:
            total: Any = np.sum(self.data)
            return total
        if axis not in (0, 1, -1, -2):
            raise ValueError(f"axis {axis} is out of bounds for array of dimension 2")
        matrix = self.T if axis % 2 == 0 else self
        return matrix @ np.ones(matrix.shape[1], self.data._data.dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(scipy.sparse.coo_array, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        do = "use sums, products, T, diagonal(), sum() or toarray(); or make the matrix of other values"
        raise AttributeError(
            errors.message(
                f"{name} of a sparse array is not here", do=_TO_ADD if name in ("tolil", "todok", "setdiag") else do
            )
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(errors.message("'SparseArray' object does not support item assignment", do=_TO_ADD))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        """An array of the object itself, by which SciPy's operators leave a product to this class.

        TypeError for a function of SciPy's: it would take that for a matrix of objects.
        """
        said = keeping_gradient().partition("\n")[0]
        do = said.removeprefix("  What to do: ") if said.startswith("  What to do: call ") else ""
        if said.startswith("  scipy."):  # it is not here
            do = "use sums, products, T, diagonal(), sum() or toarray()"
        if do:
            what = "A sparse array of Tensors is no array of NumPy's or SciPy's: its gradients would be lost"
            raise TypeError(errors.message(what, do=do))
        found = np.empty((), object)
        found[()] = self
        return found

    def dot(self, other: Any) -> Any:
        """The product with a vector or a matrix, as ``@``."""
        return self @ other

    def __matmul__(self, other: Any) -> Any:
        if scipy.sparse.issparse(other) or isinstance(other, (SparseArray, SparseTensor)):
            return multiplied(self, sparse("a product", other))
        return product(self.pattern, False, as_tensor(other), self.data)

    def __rmatmul__(self, other: Any) -> Any:
        if scipy.sparse.issparse(other) or isinstance(other, (SparseArray, SparseTensor)):
            return multiplied(sparse("a product", other), self)
        found: Any = np.transpose(self.T @ np.transpose(as_tensor(other)))
        return found

    def __mul__(self, other: Any) -> SparseArray:
        if np.ndim(other):
            raise TypeError(errors.message("a sparse array times", expected="a number", found=errors.describe(other)))
        return self._with(self.data * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseArray:
        return self * (1 / other)

    def __neg__(self) -> SparseArray:
        return self._with(-self.data)

    def __add__(self, other: Any) -> SparseArray:
        other = sparse("a sum", other)
        if other.shape != self.shape:
            raise ValueError(f"inconsistent shapes: {self.shape} and {other.shape}")
        both = np.concatenate([self.pattern.indices, other.pattern.indices], axis=1)
        return by_rows(np.concatenate([self.data, other.data]), Pattern(both, self.shape, False), self.format)

    __radd__ = __add__

    def __sub__(self, other: Any) -> SparseArray:
        return self + -sparse("a difference", other)

    def __rsub__(self, other: Any) -> SparseArray:
        return -self + other

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<sparse array of {rows} x {columns} in {self.format} format, nnz={self.nnz}: data={self.data!r}>"


def multiplied(a: SparseArray, b: SparseArray) -> SparseArray:
    """The sparse product of two sparse matrices."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"dimension mismatch: a matrix of {a.shape} times one of {b.shape}")
    return by_rows(*entries_of_product(a.data, a.pattern, b.data, b.pattern), a.format)


def by_rows(data: Any, pattern: Pattern, format: str) -> SparseArray:
    """The matrix with its places sorted by rows, and the values at one place summed."""
    unique, first, inverse = pattern.unique()
    if unique is pattern:
        return SparseArray(data, pattern, format)
    if unique.nnz == pattern.nnz:
        return SparseArray(on(pick_at, data, (first,)), unique, format)
    return SparseArray(on(add_up, data, (inverse,), (unique.nnz,)), unique, format)


def product(pattern: Pattern, adjoint: bool, x: Any, values: Any) -> Any:
    """The matrix with `values` at the places of a sorted pattern, or its conjugate transpose, times `x`."""
    rows, columns = pattern.size[::-1] if adjoint else pattern.size
    if x.dim() not in (1, 2) or x.shape[0] != columns:
        raise ValueError(f"dimension mismatch: a matrix of {rows} x {columns} times an array of shape {tuple(x.shape)}")
    kind = np.result_type(values._data.dtype, x._data.dtype)
    values, x = (to(t, kind) if t._data.dtype != kind else t for t in (values, x))
    return on(pattern_mm, np.conj(values) if adjoint else values, x, pattern, adjoint)


def sampled(pattern: Pattern, left: Any, right: Any) -> Any:
    """``left right^H`` at the places of a pattern alone."""
    return on(sampled_mm, left, np.conj(right), pattern)


def sparse(where: str, A: Any) -> SparseArray:
    """A matrix that any of the libraries may have made, as a `SparseArray`; a dense one has a value at each place.

    TypeError for what is no matrix, ValueError for an array of another dimension.
    """
    if isinstance(A, SparseArray):
        return A
    if isinstance(A, SparseTensor):
        if A.sparse_dim() != 2 or A.dense_dim():
            raise ValueError(errors.message(where, expected="a sparse matrix", found=errors.describe(A)))
        values, pattern = coalesced(A)
        return SparseArray(floating(values), pattern, {v: k for k, v in LAYOUTS.items()}[A.layout])
    if scipy.sparse.issparse(A):
        if A.ndim != 2:
            raise ValueError(errors.message(where, expected="a matrix", found=f"a sparse array of shape {A.shape}"))
        return _of_scipys(A)
    dense = floating(A)
    if dense.dim() != 2:
        raise ValueError(errors.message(where, expected="a matrix", found=f"an array of shape {tuple(dense.shape)}"))
    return SparseArray(reshape(dense, (-1,)), full(tuple(dense.shape)), "csr")


class _Kept(NamedTuple):
    """A matrix of constants, and the arrays of the matrix of SciPy's that it was made from."""

    of: Any  # a weak reference
    arrays: list[Array]
    made: SparseArray


_KEPT: dict[int, _Kept] = {}  # by the id of SciPy's matrix


def _of_scipys(A: Any) -> SparseArray:
    """A matrix of SciPy's, which is made once, and again if it was written to."""
    names = ("data", "indices", "indptr", "offsets", "row", "col")
    arrays = [v for name in names if isinstance(v := getattr(A, name, None), np.ndarray)]
    kept, key = _KEPT.get(id(A)), id(A)
    if kept is not None and kept.of() is A and kept.made.shape == A.shape and _same(arrays, kept.arrays):
        return kept.made
    coo = scipy.sparse.coo_array(A.copy())  # SciPy notes on the matrix itself what it finds of its places
    indices = np.stack([coo.coords[0], coo.coords[1]]).astype(np.int64)
    format = A.format if A.format in LAYOUTS else "csr"
    made = by_rows(floating(coo.data), Pattern(indices, coo.shape, False), format)
    _KEPT[key] = _Kept(weakref.ref(A, lambda _: _KEPT.pop(key, None)), [a.copy() for a in arrays], made)
    return made


def _same(some: list[Array], others: list[Array]) -> bool:
    pairs = zip(some, others, strict=True) if len(some) == len(others) else [(0, 1)]
    return all(np.array_equal(a, b) or np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def full(shape: tuple[int, ...]) -> Pattern:
    """The pattern of all places."""
    return Pattern(np.stack([i.reshape(-1) for i in np.indices(shape)]), shape, True)


__all__ = [
    "SparseArray",
    "by_rows",
    "full",
    "product",
    "sampled",
    "sparse",
]
