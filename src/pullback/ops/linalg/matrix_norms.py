"""Norms of vectors and of matrices, and condition numbers, computed from sums, extremes and singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.entry import composite
from ...table.operands import check_floating, check_matrix
from ...table.samples import A as M
from ...table.samples import D, Differs, S, Sample, V, inf, nan, whole
from ...tensor import dtypes
from ...tensor.arrays import wrap_axes, wrap_axis
from ...tensor.tensor import Tensor
from ..make.conversion import to
from ..reduce.extremes import amax, amin
from ..reduce.norm import p_norm
from .cholesky_qr import NO_MATRIX
from .solving import EMPTY, inv_ex
from .spectral import svdvals


def _converted(name: str, x: Tensor, dtype: Any) -> Tensor:
    """The tensor in the requested dtype, which must hold its values."""
    if dtype is None:
        return x
    asked, own = dtypes.to_numpy(dtype), x._data.dtype
    if asked != own and (asked.kind != own.kind.replace("V", "f") or asked.itemsize < own.itemsize):
        raise RuntimeError(
            errors.message(f"{name}()", expected=f"a dtype of the kind of {own}, and not narrower", found=str(dtype))
        )
    return to(x, asked)


# Norms of vectors
# -----------------------------------------------------------------------------------------------------------

_ORDERS = (2, 1, 0, 3, 2.5, 0.5, -1, -2, inf, -inf)


@composite(
    home="linalg",
    numpy={
        np.linalg.vector_norm: lambda x, *, axis=None, keepdims=False, ord=2: vector_norm(x, ord, axis, keepdims),
    },
    samples=lambda: [
        *whole(),
        *(S(M(2, 3), p) for p in _ORDERS),
        *(S(M(2, 3), p, 1) for p in _ORDERS),
        S(M(2, 3), True),
        S(M(2, 3, 2), 2, (0, 2)),
        S(M(2, 3), dim=0, keepdim=True),
        S(M(2, 3), 3, None, True),
        S(M(2, 3), ord=2, dim=()),
        S(M(), 3, 0),
        S(M(0)),
        S(M(0), 0),
        S(M(2, 0), 2, 1),
        S(M(2, 0), inf, 0),
    ],
    kinks=lambda: [
        *(S(V([0.0, 0.0]), p) for p in (2, 1, 3, 1.5, 0.5, inf, -inf, 0)),
        *(S(V([0.0, 2.0, -2.0]), p) for p in (2, 1, 3, 1.5, inf, -inf, 0)),
        S(V([[0.0, 0.0], [3.0, 4.0]]), 2, 1),
        S(V([nan, 1.0])),
        S(M(2, 3, dtype="float32"), dtype=D("float64")),
        S(M(2, 3, dtype="complex64"), dtype=D("complex128")),
    ],
    refused=lambda: [
        S([1.0]),
        S(M(2, 3), 2, 2),
        S(M(2, 3), 2, (0, 0)),
        S(M(2, 3), "fro"),
        S(M(2, 3), None),
        *(S(M(0), p) for p in (inf, -inf, -1)),
        S(M(2, 0), inf, 1),
        S(M(3, dtype="int64")),
        S(M(3, dtype="int64"), dtype=D("float64")),
        S(M(3, dtype="complex64"), dtype=D("float64")),
        S(M(3, dtype="float64"), dtype=D("float32")),
        S(M(3, dtype="float32"), dtype=D("complex64")),
        S(M(3), 2, 0, True, None),
    ],
)
def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """``(sum |x|^ord)^(1/ord)`` over `dim` (default: all); inf and -inf are the largest and the smallest modulus, 0
    counts the elements that are not 0. The gradient at the origin is 0.

    >>> import pullback
    >>> pullback.linalg.vector_norm(pullback.tensor([3.0, 4.0]))
    tensor(5.)
    """
    check_floating("linalg.vector_norm", x, "x", half=True)
    if not isinstance(ord, (int, float)):
        raise TypeError(errors.message("linalg.vector_norm()", expected="ord to be a number", found=repr(ord)))
    axes = wrap_axes(dim, x._data.ndim)
    lengths = [n for i, n in enumerate(x._data.shape) if axes is None or i in axes]
    if (ord < 0 or ord == inf) and 0 in lengths:
        raise RuntimeError(
            errors.message(
                f"linalg.vector_norm cannot compute the norm of order {ord} of no elements", found=errors.describe(x)
            )
        )
    return p_norm(_converted("linalg.vector_norm", x, dtype), ord, dim, keepdim)


# Norms of matrices
# ----------------------------------------------------------------------------------------------------------


def _largest(x: Tensor, dim: int) -> Any:
    """The largest of numbers that are not negative; 0 if there are no numbers."""
    return amax(x, dim, True) if x._data.shape[dim] else np.zeros_like(x.sum(dim, True))


def _by_singular_values(A: Tensor, ord: Any) -> Tensor:
    values = svdvals(A)
    if ord == "nuc":
        return values.sum(-1)
    return _largest(values, -1).squeeze(-1) if ord == 2 else amin(values, -1)


def _by_sums(A: Tensor, ord: Any) -> Tensor:
    """The largest or smallest sum of moduli, of columns (1, -1) or of rows (inf, -inf)."""
    sums = abs(A).sum(-2 if abs(ord) == 1 else -1)
    return _largest(sums, -1).squeeze(-1) if ord > 0 else amin(sums, -1)


_NORMS = {"fro": None, "nuc": _by_singular_values, 2: _by_singular_values, -2: _by_singular_values} | dict.fromkeys(
    (1, -1, inf, -inf), _by_sums
)


def _matrix_norms() -> list[Sample]:
    return [
        *(S(M(3, 3, domain="regular"), ord) for ord in _NORMS),
        *(S(M(2, 3, domain="regular"), ord) for ord in _NORMS),
        *(S(M(2, 3, 2, domain="regular"), ord, keepdim=True) for ord in _NORMS),
    ]


@composite(
    home="linalg",
    numpy={np.linalg.matrix_norm: lambda x, *, keepdims=False, ord="fro": matrix_norm(x, ord, keepdim=keepdims)},
    samples=lambda: [
        *_matrix_norms(),
        S(M(3, 2, domain="regular")),
        *(S(M(2, 3, 4), ord, (0, 2)) for ord in ("fro", "nuc", 1, inf)),
        *(S(M(2, 3, 4), ord, (2, 0), True) for ord in ("fro", 2, -1, -inf)),
        S(M(2, 3, 2), "nuc", [-1, 0]),
        *(S(M(0, 3), ord) for ord in ("fro", "nuc", 2, 1, inf)),
        *(S(M(3, 0), ord) for ord in ("fro", "nuc", 2, 1, inf)),
        *(S(M(0, 3, 2), ord) for ord in _NORMS),
        S(M(3, 2, domain="regular", layout="T"), ord=1, dim=(0, 1)),
    ],
    kinks=lambda: [
        *(S(V([[0.0, 0.0], [0.0, 0.0]]), ord) for ord in ("fro", "nuc", 2, 1, inf)),
        *(S(V([[1.0, 0.0], [0.0, 1.0]]), ord) for ord in ("fro", "nuc", 2, -2, 1, -1, inf, -inf)),
        S(V([[1.0, 2.0], [2.0, 4.0]]), "nuc"),
        S(M(2, 3, domain="regular", dtype="float32"), "nuc", dtype=D("float64")),
    ],
    refused=lambda: [
        *(S(M(2, 3), ord) for ord in (3, 0, "x", None)),
        S(M(2, 3, 4), 1, (0, 0)),
        S(M(2, 3, 4), 1, (0,)),
        S(M(2, 3, 4), 1, (0, 1, 2)),
        S(M(2, 3, 4), 1, 0),
        S(M(2, 3, 4), 1, (0, 3)),
        S(M(3)),
        S(M()),
        S([[1.0]]),
        S(M(2, 2, dtype="int64")),
        S(M(0, 3), -2),
        S(M(3, 0), -1),
        S(M(0, 3), -inf),
        S(M(2, 2, dtype="float64"), dtype=D("float32")),
    ],
)
def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """A norm of matrices, the axes `dim`: "fro", the root of the sum of squares; "nuc", 2, -2, the sum, the largest and
    the smallest of the singular values; 1, -1, the largest and the smallest sum of moduli in a column; inf, -inf, in a
    row.

    >>> import pullback
    >>> A = pullback.tensor([[3.0, 0.0], [0.0, 4.0]])
    >>> pullback.linalg.matrix_norm(A), pullback.linalg.matrix_norm(A, "nuc"), pullback.linalg.matrix_norm(A, 1)
    (tensor(5.), tensor(7.), tensor(4.))
    """
    check_matrix("linalg.matrix_norm", A, half=ord not in ("nuc", 2, -2))
    if not isinstance(ord, (str, int, float)) or isinstance(dim, int):
        raise TypeError(
            errors.message(
                "linalg.matrix_norm()", expected="a number or a name, and two dims", found=f"{ord!r}, {dim!r}"
            )
        )
    if ord not in _NORMS:
        raise RuntimeError(
            errors.message(f"linalg.matrix_norm: Order {ord} not supported", expected=f"ord in {[*_NORMS]}")
        )
    if len(dim) != 2:
        raise RuntimeError(errors.message("linalg.matrix_norm: dim must be a 2-tuple", found=str(tuple(dim))))
    if wrap_axis(dim[0], A._data.ndim) == wrap_axis(dim[1], A._data.ndim):
        raise RuntimeError(errors.message("linalg.matrix_norm: dims must be different", found=str(tuple(dim))))
    A = _converted("linalg.matrix_norm", A, dtype)
    find = _NORMS[ord]
    if find is None:
        return p_norm(A, 2, tuple(dim), keepdim)
    found = find(A.movedim(tuple(dim), (-2, -1)), ord)
    for axis in sorted(wrap_axis(d, A._data.ndim) for d in dim) if keepdim else ():
        found = found.unsqueeze(axis)
    return found


@composite(
    home="linalg",
    numpy={
        np.linalg.norm: lambda x, ord=None, axis=None, keepdims=False: norm(x, ord, axis, keepdims),
    },
    samples=lambda: [
        *_matrix_norms(),
        *(S(M(3), ord) for ord in (None, *_ORDERS)),
        *(S(M(2, 3), ord, 1) for ord in (None, *_ORDERS)),
        *(S(M(2, 3), ord, (0, 1)) for ord in (None, 2, "fro", "nuc", 1, -inf)),
        S(M(2, 3, 4)),
        S(M()),
        S(M(2, 3, 4), dim=(2,)),
        S(M(2, 3, 4), None, [0, 1], True),
        S(M(2, 3), keepdim=True),
        S(M(0, 3)),
        S(M(3, 2, layout="T"), ord=2, dim=0),
    ],
    kinks=[S(M(2, 3, dtype="float32"), dtype=D("float64"))],
    refused=lambda: [
        S(M(2, 3), "fro", 0),
        S(M(2, 3), 3),
        S(M(2, 3), 3, (0, 1)),
        S(M(2, 2, 2), 2),
        S(M(3), "fro"),
        S(M(), 2),
        S(M(2, 2, 2), 2, (0, 1, 2)),
        S(M(2, 2, 2), None, (0, 1, 2)),
        S(M(2, 3), 2, 2),
        S(M(2, 2, dtype="int64")),
        S([1.0]),
    ],
)
def norm(input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """`vector_norm` over one dim, `matrix_norm` over two; without dim, the number of axes of the tensor decides.

    Without `ord`: the root of the sum of squares, over `dim` or over all.
    """
    check_floating("linalg.norm", input, "input", half=True)
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(
            errors.message("linalg.norm: If dim is specified, it must be of length 1 or 2", found=str(dim))
        )
    if ord is None:
        return vector_norm(input, 2, dims, keepdim, dtype=dtype)
    if dims is None and input._data.ndim not in (1, 2):
        raise RuntimeError(
            errors.message(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D",
                found=f"ord {ord} and {input._data.ndim} dimensions",
            )
        )
    if isinstance(ord, str) or len(dims if dims is not None else input._data.shape) == 2:
        return matrix_norm(input, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)
    return vector_norm(input, ord, dims, keepdim, dtype=dtype)


# Condition numbers ----------------------------------------------------------------------------------------------------


@composite(
    home="linalg",
    numpy={np.linalg.cond: lambda x, p=None: cond(x, p)},
    samples=lambda: [
        *(S(M(3, 3, domain="regular"), p) for p in (None, *_NORMS)),
        *(S(M(2, 3, 3, domain="regular"), p) for p in (None, *_NORMS)),
        *(S(M(3, 2, domain="regular"), p) for p in (None, 2, -2)),
        S(M(3, 3, domain="regular"), p=1),
        *(S(M(0, 0), p) for p in (None, 2, 1, "fro")),
        S(M(0, 2, 2)),
        S(M(0, 2, 2), 1),
    ],
    refused=[*NO_MATRIX, S(M(3, 2), 1), S(M(3, 3), 3), S(M(3, 3), "x")],
    differs=[
        EMPTY,
        *(
            Differs(
                "torch changes the inverse in place, and then refuses to differentiate", check, sample=f"regular, {p}"
            )
            for check in ("gradients", "second")
            for p in ("'fro'", "1", "-1", "inf", "-inf", "p=1")
        ),
    ],
)
def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number ``|A| |A^-1|`` of matrix norms; p None, 2, -2: a ratio of singular values, for any matrix.

    It is inf for a singular matrix.
    """
    check_matrix("linalg.cond", A, square=p not in (None, 2, -2))
    if p is not None and p not in _NORMS:
        raise RuntimeError(
            errors.message(f"linalg.cond got an invalid norm type: {p}", expected=f"None or one of {[*_NORMS]}")
        )
    if not A._data.size:
        empty: Any = np.zeros_like(abs(A).sum((-2, -1)))
        return empty
    if p in (None, 2, -2):
        values = svdvals(A)
        ends = values[..., 0], values[..., -1]
        return ends[1] / ends[0] if p == -2 else ends[0] / ends[1]
    inverse, info = inv_ex(A)
    found: Any = np.where(info != 0, inf, matrix_norm(A, p) * matrix_norm(inverse, p))
    return found
