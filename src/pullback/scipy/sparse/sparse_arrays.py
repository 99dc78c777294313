"""Sparse matrices whose values are Tensors: SciPy's constructors, and what the functions of `linalg` read.

A matrix is its values, one for each place, and a `Pattern` of these places, sorted by rows. All computation is done on
the values, so gradients exist at the nonzeros alone, and values of a transform (`vmap`, `jvp`, ...) are as good as any.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ... import errors
from ...kept_gradients import keeping_gradient
from ...ops.index.subscripts import add_up, pick_at
from ...ops.make.conversion import to
from ...ops.shape.joining import cat
from ...ops.shape.reshape import reshape
from ...ops.sparse.coo import SparseTensor, coalesced, in_layout, sparse_at
from ...ops.sparse.pattern import Pattern, pattern_mm, sampled_mm, sparse_coo, sparse_csc, sparse_csr
from ...ops.sparse.sparse_products import entries_of_product
from ...table.calls import on
from ...tensor.tensor import Tensor
from ..array_nodes import Array, as_tensor, floating
from ..mirror import mirrors

_TO_ADD = (
    "make the matrix once, of all its values: csr_array((values, (rows, columns)), shape=...) sums those of one place, "
    "so that what is to be added to an element is one more value"
)
_LAYOUTS = {"csr": sparse_csr, "csc": sparse_csc, "coo": sparse_coo}


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
        return in_layout(sparse_at(self.data, self.pattern), _LAYOUTS[self.format])

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
        if scipy.sparse.issparse(other) or isinstance(other, SparseTensor):
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
        return SparseArray(floating(values), pattern, {v: k for k, v in _LAYOUTS.items()}[A.layout])
    if scipy.sparse.issparse(A):
        coo = scipy.sparse.coo_array(A)
        indices = np.stack([coo.coords[0], coo.coords[1]]).astype(np.int64)
        format = A.format if A.format in _LAYOUTS else "csr"
        return by_rows(floating(coo.data), Pattern(indices, coo.shape, False), format)
    dense = floating(A)
    if dense.dim() != 2:
        raise ValueError(errors.message(where, expected="a matrix", found=f"an array of shape {tuple(dense.shape)}"))
    return SparseArray(reshape(dense, (-1,)), full(tuple(dense.shape)), "csr")


def full(shape: tuple[int, ...]) -> Pattern:
    """The pattern of all places."""
    return Pattern(np.stack([i.reshape(-1) for i in np.indices(shape)]), shape, True)


# SciPy's constructors -------------------------------------------------------------------------------------------------


def _typed(data: Tensor, dtype: Any) -> Tensor:
    return data if dtype is None else to(data, np.dtype(dtype))


def _made(format: str, arg1: Any, shape: Any, dtype: Any) -> SparseArray:
    """What the constructor of a format makes of its first argument. SciPy checks the places."""
    if isinstance(arg1, tuple) and len(arg1) in (2, 3) and not all(isinstance(n, (int, np.integer)) for n in arg1):
        data = as_tensor(arg1[0])
        places = [p._data if isinstance(p, Tensor) else p for p in arg1[1:]]
        numbers = np.arange(data.shape[0]) if data.dim() else np.zeros(0)
        if len(places) == 1:  # SciPy's other formats would add the numbers of duplicates
            known = scipy.sparse.coo_array((numbers, tuple(np.asarray(p) for p in places[0])), shape=shape)
        else:
            known = getattr(scipy.sparse, f"{format}_array")((numbers, *places), shape=shape)
        coo = known.tocoo()
        indices = np.stack([coo.coords[0], coo.coords[1]]).astype(np.int64)
        values = on(pick_at, data, (coo.data.astype(np.int64),))
        return by_rows(_typed(values, dtype), Pattern(indices, coo.shape, False), format)
    if isinstance(arg1, tuple):  # a shape: no values
        plain = getattr(scipy.sparse, f"{format}_array")(arg1, dtype=dtype or float)
        return sparse(f"{format}_array", plain)
    found = sparse(f"{format}_array", arg1)
    if shape is not None and tuple(shape) != found.shape:
        raise ValueError(f"inconsistent shapes: {found.shape} and {tuple(shape)}")
    if not isinstance(arg1, (SparseArray, SparseTensor)) and not scipy.sparse.issparse(arg1):
        (at,) = np.nonzero(_plain(found.data))
        pattern = Pattern(found.pattern.indices[:, at], found.shape, True)
        found = SparseArray(on(pick_at, found.data, (at,)), pattern, format)
    return SparseArray(_typed(found.data, dtype), found.pattern, format)


def _plain(data: Tensor) -> Array:
    if type(data._data) is not np.ndarray:
        raise TypeError(
            errors.message(
                "a sparse array of a dense tensor",
                expected="one that belongs to no transform: its values decide where the nonzeros are",
                found=errors.describe(data),
                do="give (data, (rows, columns))",
            )
        )
    return data._data


_LIMITS = "the matrix has two axes; places are constants"
_HOW = "linear in the values; gradients at the nonzeros alone"


@mirrors("sparse.csr_array", derivative=_HOW, limits=_LIMITS)
def csr_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, maxprint: Any = None
) -> SparseArray:
    """A sparse matrix by rows: of ``(data, indices, indptr)``, ``(data, (rows, columns))``, a shape or a matrix.

    data: may be a Tensor that requires grad. copy, maxprint: accepted as SciPy does; the values are never copied.

    >>> import pullback
    >>> from pullback.scipy.sparse import csr_array
    >>> data = pullback.tensor([3.0, 4.0, 5.0], requires_grad=True)
    >>> a = csr_array((data, [2, 0, 2], [0, 1, 3]), shape=(2, 3))
    >>> (a @ pullback.ones(3)).sum().backward()
    >>> data.grad
    tensor([1., 1., 1.])
    """
    return _made("csr", arg1, shape, dtype)


@mirrors("sparse.csc_array", derivative=_HOW, limits=_LIMITS)
def csc_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, maxprint: Any = None
) -> SparseArray:
    """A sparse matrix by columns: of ``(data, indices, indptr)``, ``(data, (rows, columns))``, a shape or a matrix.

    >>> import pullback
    >>> from pullback.scipy.sparse import csc_array
    >>> csc_array((pullback.tensor([3.0, 4.0]), [1, 0], [0, 1, 2])).toarray()
    tensor([[0., 4.],
            [3., 0.]])
    """
    return _made("csc", arg1, shape, dtype)


@mirrors("sparse.coo_array", derivative=_HOW, limits=_LIMITS)
def coo_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, maxprint: Any = None
) -> SparseArray:
    """A sparse matrix of ``(data, (rows, columns))``, a shape or a matrix. Values at one place are summed.

    >>> import pullback
    >>> from pullback.scipy.sparse import coo_array
    >>> coo_array((pullback.tensor([3.0, 4.0, 5.0]), ([1, 0, 1], [0, 1, 0]))).toarray()
    tensor([[0., 4.],
            [8., 0.]])
    """
    return _made("coo", arg1, shape, dtype)


@mirrors("sparse.diags_array", derivative=_HOW, limits=_LIMITS)
def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None
) -> SparseArray:
    """The matrix of some diagonals: a list of vectors, one vector, or numbers if there is a shape.

    format: "csr", "csc" or "coo"; by default "csr", because SciPy's "dia" is not here.

    >>> import pullback
    >>> from pullback.scipy.sparse import diags_array
    >>> diags_array([pullback.tensor([1.0, 2.0]), pullback.tensor([5.0])], offsets=[0, 1]).toarray()
    tensor([[1., 5.],
            [0., 2.]])
    """
    if np.ndim(offsets) == 0:
        single = isinstance(diagonals, Tensor) or len(diagonals) == 0 or np.ndim(diagonals[0]) == 0
        diagonals = [diagonals] if single else diagonals
    parts: Sequence[Any] = [np.atleast_1d(floating(d)) for d in diagonals]
    starts = np.cumsum([0, *(p.shape[0] for p in parts)])
    numbered = [np.arange(a, b, dtype=float) + 1 for a, b in itertools.pairwise(starts)]
    places = scipy.sparse.diags_array(numbered, offsets=np.atleast_1d(offsets), shape=shape).tocoo()
    places.eliminate_zeros()
    indices = np.stack([places.coords[0], places.coords[1]]).astype(np.int64)
    kind = np.result_type(*(p._data.dtype for p in parts)) if dtype is None else np.dtype(dtype)
    values = cat([to(p, kind) for p in parts])
    picked = on(pick_at, values, (places.data.astype(np.int64) - 1,))
    return by_rows(picked, Pattern(indices, places.shape, False), _format(format))


@mirrors("sparse.eye_array", derivative="a constant")
def eye_array(m: int, n: int | None = None, *, k: int = 0, dtype: Any = float, format: Any = None) -> SparseArray:
    """The matrix with ones on diagonal `k`.

    >>> from pullback.scipy.sparse import eye_array
    >>> (2 * eye_array(2)).toarray()
    tensor([[2., 0.],
            [0., 2.]], dtype=pullback.float64)
    """
    found = sparse("eye_array", scipy.sparse.eye_array(m, n, k=k, dtype=dtype))
    return SparseArray(found.data, found.pattern, _format(format))


def _format(format: Any) -> str:
    if format is None:
        return "csr"
    if format not in _LAYOUTS:
        raise ValueError(errors.message("format", expected="'csr', 'csc' or 'coo'", found=repr(format)))
    return str(format)


__all__ = [
    "SparseArray",
    "by_rows",
    "coo_array",
    "csc_array",
    "csr_array",
    "diags_array",
    "eye_array",
    "full",
    "product",
    "sampled",
    "sparse",
]
