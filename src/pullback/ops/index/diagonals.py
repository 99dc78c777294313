"""Diagonals and triangles of matrices: of the last two axes, or of two given axes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by, moved
from ...table.calls import on
from ...table.entry import composite, linear, method
from ...table.samples import A, D, S, V
from ...tensor import dtypes
from ...tensor.arrays import need_memory, wrap_axis, zeros_beside
from ...tensor.protocol import on_arrays
from ...tensor.tensor import Tensor, wrap
from ..shape.reshape import clone, flatten
from .assignment import overwrite, write
from .gather import fitting_number
from .put import put_through


def _two_dims(ndim: int, dim1: Any, dim2: Any) -> tuple[int, int]:
    """Two different axes, counted from 0."""
    first, second = wrap_axis(dim1, ndim), wrap_axis(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def _diagonal_of(a: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonals, as the last axis of the result; a view, writable if `a` is."""
    found = np.diagonal(a, offset, dim1, dim2)
    if a.flags.writeable:
        found.flags.writeable = True
    return found


def _dims_moved(full: Any, offset: Any, dim1: Any, dim2: Any, *shape: Any) -> Any:
    return (offset, moved(dim1, full), moved(dim2, full), *((full[0], *s) for s in shape))


def _place_moved(full: Any, offset: Any, dim1: Any, dim2: Any, shape: Any) -> Any:
    one = (*shape, 0)
    return offset, moved(dim1, one), moved(dim2, one), (full[0], *shape)


@linear(
    method=False,
    batch=by(_place_moved),
    input=lambda g, offset, dim1, dim2: on(diagonal, g, offset, dim1, dim2),
)
@on_arrays
def _on_diagonal(input: Any, offset: int, dim1: int, dim2: int, shape: Any) -> Any:
    """Zeros of `shape` with `input` on the diagonals: the adjoint of taking them."""
    out = zeros_beside(input, shape)
    _diagonal_of(out, offset, dim1, dim2)[...] = input
    return out


@linear(
    view=True,
    batch=by(_dims_moved),
    input=lambda g, offset, dim1, dim2, input_shape: on(_on_diagonal, g, offset, dim1, dim2, tuple(input_shape)),
    numpy={np.diagonal: lambda a, offset=0, axis1=0, axis2=1: diagonal(a, offset, axis1, axis2)},
    samples=lambda: [
        S(A(3, 3)),
        S(A(2, 4), 1),
        S(A(4, 2), -1),
        S(A(3, 3), 5),
        S(A(2, 3, 4), 0, 0, 2),
        S(A(2, 3, 3), offset=-1, dim1=-2, dim2=-1),
        S(A(2, 3, 3), 1, 2, 1),
        S(A(0, 2)),
        S(A(3, 2, layout="T")),
        S(A(3, 2, layout="readonly")),
    ],
    refused=lambda: [S(A(3)), S(A()), S(A(2, 2), 0, 0, 0), S(A(2, 2), 0, 0, 2), S(A(2, 2), "x"), S([1.0])],
)
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The elements ``[i, i + offset]`` of the axes `dim1` and `dim2`, as the last axis; a view.

    >>> import pullback
    >>> pullback.diagonal(pullback.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    first, second = _two_dims(input.ndim, dim1, dim2)
    return _diagonal_of(input, offset, first, second)


def _embedded_moved(full: Any, offset: Any, dim1: Any, dim2: Any) -> Any:
    one = (*full, 0)
    return offset, moved(dim1, one), moved(dim2, one)


@linear(
    out=False,
    batch=by(_embedded_moved),
    input=lambda g, offset, dim1, dim2: on(diagonal, g, offset, dim1, dim2),
    samples=lambda: [
        S(A(3)),
        S(A(2, 3)),
        S(A(2, 3), 1),
        S(A(2, 3), -2, 0, 2),
        S(A(2, 3), dim1=0, dim2=-1),
        S(A(2, 3), 1, 2, 1),
        S(A(0)),
        S(A(3, 2, layout="T")),
    ],
    refused=lambda: [S(A()), S(A(2), 0, 0, 0), S(A(2), 0, 0, 2), S([1.0])],
)
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with the last axis of `input` on their diagonals, zeros elsewhere."""
    if not input.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
    first, second = _two_dims(input.ndim + 1, dim1, dim2)
    n = input.shape[-1] + abs(offset)
    rest = iter(input.shape[:-1])
    shape = tuple(n if i in (first, second) else next(rest) for i in range(input.ndim + 1))
    return _on_diagonal.op.forward(input, offset, first, second, shape)


@composite(
    numpy={np.diag: lambda v, k=0: diag(v, k)},
    out="exact",
    samples=lambda: [
        S(A(3)),
        S(A(2), 1),
        S(A(2), diagonal=-2),
        S(A(3, 3)),
        S(A(2, 4), 1),
        S(A(4, 2), -1),
        S(A(2, 2), 9),
        S(A(0)),
        S(A(3, 2, layout="T")),
    ],
    refused=lambda: [S(A()), S(A(1, 2, 2)), S(A(2), "x"), S([1.0])],
)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix, as a copy.

    >>> import pullback
    >>> pullback.diag(pullback.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if input._data.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._data.ndim}D")
    return diag_embed(input, diagonal) if input._data.ndim == 1 else clone(_diagonal(input, diagonal))


_diagonal = diagonal


@composite(
    out=False,
    numpy={np.diagflat: lambda v, k=0: diagflat(v, k)},
    samples=lambda: [S(A(3)), S(A(2, 2)), S(A(), 1), S(A(2), offset=-1), S(A(0))],
    refused=lambda: [S([1.0]), S(A(2), "x")],
)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with the elements of `input`, flattened, on its diagonal."""
    return diag_embed(flatten(input), offset)


@composite(
    out=False,
    samples=lambda: [
        S(A(3, 3), A(3)),
        S(A(2, 4), A(2), 1),
        S(A(4, 2), A(2), -1),
        S(A(2, 3, 4), A(3, 2), 0, 0, 2),
        S(A(2, 3, 3), A(2, 2), offset=-1, dim1=-2, dim2=-1),
        S(A(2, 2), A(0), 5),
        S(A(3, 2, layout="T"), A(2, layout="step")),
        S(A(2, 2), V([1, 2], "int64")),
    ],
    refused=lambda: [S(A(3, 3), A(2)), S(A(3), A(3)), S(A(2, 2), A(2), 0, 0, 0), S(A(2, 2), 1.0)],
)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`input` with its `diagonal` replaced by `src`."""
    shape = input._data.shape
    first, second = _two_dims(len(shape), dim1, dim2)
    n = max(0, min(shape[first] + min(offset, 0), shape[second] - max(offset, 0)))
    rest = tuple(k for i, k in enumerate(shape) if i not in (first, second))
    return put_through(
        "diagonal_scatter", input, src, (*rest, n), diagonal.op, offset, first, second, title="DiagonalScatterBackward0"
    )


# Triangles ------------------------------------------------------------------------------------------------------------

_TRIANGLES = [S(A(3, 3)), S(A(2, 4), 1), S(A(4, 2), -1), S(A(2, 3, 3)), S(A(0, 2)), S(A(3, 2, layout="T"), diagonal=0)]
_NO_TRIANGLES = [S(A(3)), S(A(3, 3), "x"), S([1.0])]


def _matrix(name: str, input: Any) -> Any:
    if input.ndim < 2:
        raise RuntimeError(errors.message(f"{name}()", expected="at least 2 dimensions", found=errors.describe(input)))
    return input


@linear(
    batch="matrices",
    out="exact",
    input=lambda g, diagonal: np.triu(g, diagonal),
    numpy={np.triu: lambda m, k=0: triu(m, k)},
    samples=lambda: [*_TRIANGLES, S(A(2, 2), 5)],
    refused=_NO_TRIANGLES,
)
def triu(input: Any, diagonal: int = 0) -> Any:
    """The part on and above a diagonal, zeros elsewhere.

    >>> import pullback
    >>> pullback.triu(pullback.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """
    return np.triu(_matrix("triu", input), diagonal)


@linear(
    batch="matrices",
    out="exact",
    input=lambda g, diagonal: np.tril(g, diagonal),
    numpy={np.tril: lambda m, k=0: tril(m, k)},
    samples=lambda: [*_TRIANGLES, S(A(2, 2), -5)],
    refused=_NO_TRIANGLES,
)
def tril(input: Any, diagonal: int = 0) -> Any:
    """The part on and below a diagonal, zeros elsewhere.

    >>> import pullback
    >>> pullback.tril(pullback.tensor([[1, 2], [3, 4]]), -1)
    tensor([[0, 0],
            [3, 0]])
    """
    return np.tril(_matrix("tril", input), diagonal)


def _triangle(name: str, find: Any, row: int, col: int, offset: int, dtype: Any) -> Tensor:
    """The positions of a triangle of a matrix of `row` rows and `col` columns."""
    for which, n in (("row", row), ("col", col)):
        if not isinstance(n, int):
            raise TypeError(errors.message(f"{name}()", expected="integers", found=errors.describe(n)))
        if n < 0:
            raise RuntimeError(errors.message(f"{name}(): {which} must be non-negative", found=str(n)))
    wanted = np.dtype(np.int64) if dtype is None else dtypes.to_numpy(dtype)
    if wanted.kind not in "iu":
        raise NotImplementedError(errors.message(f"{name}()", expected="a dtype of integers", found=str(dtype)))
    need_memory(row)
    need_memory(col)
    return wrap(np.stack(find(row, operator.index(offset), col)).astype(wanted, copy=False))


_SIZES = [
    S(3, 3),
    S(3, 4, -1),
    S(4, 2, 1),
    S(2, col=2, offset=-1),
    S(3, 0),
    S(2, 3, dtype=D("int32")),
    S(2, 2, 9),
    S(2, 2, -9),
]
_NO_SIZES = [S(3, -1), S(2.0, 3), S(3), S(2, 2, dtype=D("float32"))]


@composite(
    out=False,
    method=False,
    samples=_SIZES,
    refused=_NO_SIZES,
)
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The rows and the columns of the elements on and below a diagonal of a matrix: a tensor of two rows."""
    return _triangle("tril_indices", np.tril_indices, row, col, offset, dtype)


@composite(
    out=False,
    method=False,
    samples=_SIZES,
    refused=_NO_SIZES,
)
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The rows and the columns of the elements on and above a diagonal of a matrix: a tensor of two rows."""
    return _triangle("triu_indices", np.triu_indices, row, col, offset, dtype)


# In place -------------------------------------------------------------------------------------------------------------


@method("triu_", named=True)
def _triu_(self: Tensor, diagonal: int = 0) -> Tensor:
    """`triu`, written into this tensor, which is returned."""
    return overwrite(self, triu.op, diagonal)


@method("tril_", named=True)
def _tril_(self: Tensor, diagonal: int = 0) -> Tensor:
    """`tril`, written into this tensor, which is returned."""
    return overwrite(self, tril.op, diagonal)


@method("fill_diagonal_", named=True)
def _fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """`fill_value` on the main diagonal, written into this tensor, which is returned.

    wrap: the diagonal of a tall matrix begins again below its last column, after an empty row.
    """
    shape = self._data.shape
    if len(shape) < 2:
        raise RuntimeError(errors.message("fill_diagonal_()", expected="2 dimensions or more", found=str(list(shape))))
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    places = np.arange(min(shape))
    index = (places,) * len(shape)
    if wrap and len(shape) == 2 and shape[0] > shape[1]:
        index = np.unravel_index(np.arange(0, self._data.size, shape[1] + 1), shape)
    write(self, index, fitting_number("fill_diagonal_", self, fill_value))
    return self
