"""SciPy's constructors of sparse matrices: of Tensors, or of arrays alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ... import errors
from ...ops.index.subscripts import pick_at
from ...ops.make.conversion import to
from ...ops.shape.joining import cat
from ...ops.sparse.coo import SparseTensor
from ...ops.sparse.pattern import Pattern
from ...table.calls import on
from ...tensor.tensor import Tensor
from ..array_nodes import Array, as_tensor, floating
from ..mirror import mirrors
from .constant_arrays import of_arrays
from .sparse_arrays import LAYOUTS, SparseArray, by_rows, sparse


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


@mirrors("sparse.csr_array", of_arrays=of_arrays, derivative=_HOW, limits=_LIMITS)
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


@mirrors("sparse.csc_array", of_arrays=of_arrays, derivative=_HOW, limits=_LIMITS)
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


@mirrors("sparse.coo_array", of_arrays=of_arrays, derivative=_HOW, limits=_LIMITS)
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


@mirrors("sparse.diags_array", of_arrays=of_arrays, derivative=_HOW, limits=_LIMITS)
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


@mirrors("sparse.eye_array", of_arrays=of_arrays, derivative="a constant")
def eye_array(m: int, n: int | None = None, *, k: int = 0, dtype: Any = float, format: Any = None) -> SparseArray:
    """The matrix with ones on diagonal `k`.

    >>> import pullback
    >>> from pullback.scipy.sparse import eye_array
    >>> (2 * eye_array(2)).toarray()
    array([[2., 0.],
           [0., 2.]])
    """
    found = sparse("eye_array", scipy.sparse.eye_array(m, n, k=k, dtype=dtype))
    return SparseArray(found.data, found.pattern, _format(format))


def _format(format: Any) -> str:
    if format is None:
        return "csr"
    if format not in LAYOUTS:
        raise ValueError(errors.message("format", expected="'csr', 'csc' or 'coo'", found=repr(format)))
    return str(format)


__all__ = ["coo_array", "csc_array", "csr_array", "diags_array", "eye_array"]
