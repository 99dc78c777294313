"""LU factors of matrices with their rows exchanged, ``A = P L U``, and systems solved with them.

One entry, `_lu`, computes both factors in one matrix; the factoring functions take their results from it. Its rule
follows from ``L^-1 dA U^-1 = L^-1 dL + dU U^-1``, the sum of a strictly lower and an upper triangular matrix (Lutz et
al., cited with torch's lu_factor; Walter and Lehmann, 2010).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...kernels import matrices
from ...table.calls import on
from ...table.entry import composite, linear, special
from ...table.operands import check_matrix
from ...table.results import result_type
from ...table.samples import A as M
from ...table.samples import Differs, S, Sample, V
from ...tensor.arrays import arange_beside, eye_beside
from ...tensor.protocol import is_foreign, on_arrays
from ...tensor.tensor import Tensor, wrap
from ..products.matmul import with_axes
from .cholesky_qr import NO_MATRIX
from .last_axes import adjoint, transpose
from .solving import EMPTY, SINGULAR, _solve_triangular, check_system, solve_lower, solve_upper

LUResult = result_type("linalg_lu", "P", "L", "U")
LUUnpackResult = result_type("lu_unpack", "P", "L", "U")
LUFactorResult = result_type("linalg_lu_factor", "LU", "pivots")
LUFactorExResult = result_type("linalg_lu_factor_ex", "LU", "pivots", "info")


# The order of rows ----------------------------------------------------------------------------------------------------


@on_arrays
def _order(pivots: Any, rows: int, inverse: bool) -> Any:
    """The row of A for each row of ``L U``, or the inverse permutation; from the exchanges, which count from 1."""
    if pivots.dtype != np.int32 or np.any(pivots < 1) or np.any(pivots > rows):
        raise RuntimeError(
            errors.message(
                "LU pivots",
                expected=f"a tensor of torch.int32 dtype, of numbers between 1 and LU.size(-2). Here that is {rows}",
                found=errors.describe(pivots),
            )
        )
    if is_foreign(pivots):
        return _exchanges(pivots, rows, inverse)
    order = np.empty((*pivots.shape[:-1], rows), np.int64)
    for place in np.ndindex(pivots.shape[:-1]):
        found = list(range(rows))  # exchanging Python numbers is faster than exchanging elements of an array
        for i, other in enumerate(pivots[place].tolist()):
            found[i], found[other - 1] = found[other - 1], found[i]
        order[place] = found
    return np.argsort(order, axis=-1) if inverse else order


def _exchanges(pivots: Any, rows: int, inverse: bool) -> Any:
    """As `_order`, an exchange at a time for all matrices, so that nothing is read from a device."""
    count = math.prod(pivots.shape[:-1])
    order = np.broadcast_to(arange_beside(pivots, rows), (count, rows)).copy()
    every, other = arange_beside(pivots, count), pivots.reshape(count, pivots.shape[-1]).astype(np.int64) - 1
    for i in range(pivots.shape[-1]):
        kept = order[every, other[:, i]]
        order[every, other[:, i]] = order[:, i]
        order[:, i] = kept
    order = order.reshape(*pivots.shape[:-1], rows)
    return np.argsort(order, axis=-1) if inverse else order


def _exchanged_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: pivots have one axis fewer than their matrices."""
    input, pivots, inverse = args
    ndim = max(input._data.ndim - 1, pivots._data.ndim)
    return op.unchecked(with_axes(level, input, ndim + 1), with_axes(level, pivots, ndim), inverse)


@linear(
    method=False,
    batch=_exchanged_of_each,
    numbers="",
    input=lambda g, pivots, inverse: on(_exchanged, g, pivots, not inverse),
)
def _exchanged(input: Any, pivots: Any, inverse: bool) -> Any:
    """``P^T input``, or ``P input`` if `inverse`."""
    order = _order(pivots, input.shape[-2], inverse)
    lead = input.ndim - order.ndim - 1
    rows = np.reshape(input, (1,) * -lead + input.shape)
    return np.take_along_axis(rows, np.reshape(order, (1,) * lead + (*order.shape, 1)), axis=-2)


# Factors --------------------------------------------------------------------------------------------------------------


def _square_rule(g: Any, lu: Any) -> Any:
    """The gradient of a square ``L U``, from the gradients of L (strictly lower) and U (upper) in one matrix."""
    lower, upper = transpose(lu), transpose(np.triu(lu))
    unit = np.where(eye_beside(lu, np.shape(lu)[-1], dtype=np.bool_), 1, np.tril(lu, -1))
    of_l = np.tril(np.matmul(transpose(unit), np.tril(g, -1)), -1)
    middle = np.add(of_l, np.triu(np.matmul(np.triu(g), upper)))
    # L^-T middle U^-T
    left = on(_solve_triangular, lower, middle, True, True)
    return transpose(solve_upper(lu, transpose(left)))


def _lu_rule(g: Any, out0: Any, out1: Any) -> Any:
    g, lu = g[0], out0
    if g is None:
        return None
    m, n = np.shape(lu)[-2:]
    k = min(m, n)
    square, of_square = lu[..., :k, :k], g[..., :k, :k]
    if n > k:  # the columns to the right are L^-1 times those of A
        right = on(_solve_triangular, transpose(square), g[..., k:], True, True)
        of_l = np.matmul(right, transpose(lu[..., k:]))
        found = _square_rule(np.subtract(of_square, np.tril(of_l, -1)), square)
        return on(_exchanged, np.concatenate([found, right], axis=-1), out1, True)
    if m > k:  # the rows below are those of A times U^-1
        below = transpose(solve_upper(square, transpose(g[..., k:, :])))
        of_u = np.matmul(transpose(lu[..., k:, :]), below)
        found = _square_rule(np.subtract(of_square, np.triu(of_u)), square)
        return on(_exchanged, np.concatenate([found, below], axis=-2), out1, True)
    return on(_exchanged, _square_rule(of_square, square), out1, True)


@special(
    method=False,
    node="LinalgLuFactorExBackward0",
    saved={"LU": "out0", "pivots": "out1"},
    batch="leading",
    A=_lu_rule,
)
def _lu(A: Any, pivot: bool, check: str) -> Any:
    """Both factors in one matrix, the exchanges, and the first zero pivots: an error if `check` names an operation."""
    if not pivot:
        raise RuntimeError("linalg.lu_factor(): LU without pivoting is not implemented on the CPU.")
    found, pivots, info = matrices.lu(A)
    if check and np.any(info):
        raise errors.LinAlgError(
            f"{check}(): U[{int(info.max())},{int(info.max())}] is zero and using it on lu_solve would result in a "
            "division by zero.\n  What to do: linalg.lu and linalg.lu_factor_ex give the factors all the same."
        )
    return LUFactorExResult(found, pivots, info)


def _rectangles() -> list[Sample]:
    return [
        S(M(3, 3, domain="regular")),
        S(M(4, 2, domain="regular")),
        S(M(2, 4, domain="regular")),
        S(M(2, 3, 3, domain="regular")),
        S(M(2, 1, 3, 2, domain="regular")),
        S(M(2, 2, 3, domain="regular")),
        S(M(1, 1, domain="regular")),
        S(M(0, 3)),
        S(M(3, 0)),
        S(M(2, 0, 0)),
        S(M(0, 3, 2)),
        S(M(3, 3, domain="regular", layout="T")),
        S(M(3, 2, domain="regular", layout="step"), pivot=True),
        S(M(12, 12, domain="regular")),
    ]


_NO_PIVOT = [*NO_MATRIX, S(M(2, 2), pivot=False), S(M(2, 2), False)]


@composite(home="linalg", samples=_rectangles, refused=[*_NO_PIVOT, *SINGULAR], differs=[EMPTY])
def lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    """The LU factors of A in one matrix, ``LU``, and the exchanges of rows, ``pivots``, which count from 1.

    It is meant for `lu_solve`, so a singular matrix raises LinAlgError. The results are those of LAPACK's getrf.
    """
    check_matrix("linalg.lu_factor", A)
    return LUFactorResult(*_lu(A, pivot, "linalg.lu_factor")[:2])


@composite(
    home="linalg",
    samples=_rectangles,
    refused=[*_NO_PIVOT, *(S(*s.args, check_errors=True) for s in SINGULAR)],
    differs=[EMPTY],
)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """`lu_factor` without an error, unless `check_errors`; returns ``info`` as well: 0, or the number of the first
    zero on the diagonal of U.
    """
    check_matrix("linalg.lu_factor_ex", A)
    return _lu(A, pivot, "linalg.lu_factor_ex" if check_errors else "")


def _unpacked(lu: Tensor) -> tuple[Any, Any]:
    """L and U, from the matrix that holds both."""
    m, n = lu._data.shape[-2:]
    k = min(m, n)
    lower = np.where(eye_beside(lu, m, k, np.bool_), True, np.tril(lu[..., :k], -1))
    return lower, np.triu(lu[..., :k, :])


def _permutation(pivots: Tensor, rows: int, dtype: Any) -> Tensor:
    """P as a matrix."""
    return _exchanged(wrap(eye_beside(pivots, rows, dtype=dtype)), pivots, True)


@composite(home="linalg", samples=_rectangles, refused=_NO_PIVOT, differs=[EMPTY])
def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """``A = P L U``: P a permutation, L lower triangular with ones on its diagonal, U upper triangular.

    >>> import pullback
    >>> P, L, U = pullback.linalg.lu(pullback.tensor([[1.0, 2.0], [2.0, 1.0]]))
    >>> L, P @ L @ U
    (tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]]), tensor([[1., 2.],
            [2., 1.]]))
    """
    check_matrix("linalg.lu", A)
    found = _lu(A, pivot, "")
    return LUResult(_permutation(found.pivots, A._data.shape[-2], A._data.dtype), *_unpacked(found.LU))


@composite(
    method=False,
    samples=lambda: [
        S(M(3, 3), V([2, 3, 3], "int32")),
        S(M(3, 2), V([3, 3], "int32")),
        S(M(2, 3), V([1, 2], "int32")),
        S(M(2, 2, 2), V([[1, 2], [2, 2]], "int32")),
        S(M(0, 2, 2), M(0, 2, dtype="int32")),
        S(M(3, 3), V([2, 3, 3], "int32"), False),
        S(M(3, 3), V([2, 3, 3], "int32"), unpack_pivots=False),
        S(M(3, 3), V([2, 3, 3], "int32"), False, False),
    ],
    refused=lambda: [
        S(M(3, 3), V([2, 3, 3], "int64")),
        S(M(3, 3), V([2, 3, 4], "int32")),
        S(M(3, 3), V([2, 3, 0], "int32")),
        S(M(3), V([2, 3, 3], "int32")),
        S(M(3, 3), 1),
        S(M(3, 3)),
    ],
    differs=[
        Differs("an empty result has no gradient; torch fails to compute one", check, sample="False")
        for check in ("gradients", "second")
    ],
)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """``P``, ``L`` and ``U`` from the result of `linalg.lu_factor`; a result that is not requested is empty."""
    if LU_data._data.ndim < 2:
        raise RuntimeError(
            errors.message("lu_unpack()", expected="LU_data of matrices", found=errors.describe(LU_data))
        )
    if not isinstance(LU_pivots, Tensor):
        raise TypeError(
            errors.message("lu_unpack()", expected="LU_pivots to be a Tensor", found=errors.describe(LU_pivots))
        )
    empty = LU_data.detach().reshape(-1)[:0]
    rows = LU_data._data.shape[-2]
    P = _permutation(LU_pivots, rows, LU_data._data.dtype) if unpack_pivots else empty
    return LUUnpackResult(P, *(_unpacked(LU_data) if unpack_data else (empty, empty)))


# Systems --------------------------------------------------------------------------------------------------------------


def _lu_systems() -> list[Sample]:
    upright, stack = M(3, 3, domain="regular"), M(2, 3, 3, domain="regular")
    order, orders = V([2, 3, 3], "int32"), V([[1, 3, 3], [3, 2, 3]], "int32")
    return [
        S(upright, order, M(3, 2)),
        S(upright, order, M(2, 3), left=False),
        S(upright, order, M(3, 2), adjoint=True),
        S(upright, order, M(2, 3), left=False, adjoint=True),
        S(stack, orders, M(2, 3, 1)),
        S(stack, orders, M(3, 2)),
        S(upright, order, M(2, 3, 2)),
        S(stack, orders, M(2, 1, 3, 2), adjoint=True),
        S(M(1, 1, domain="regular"), V([1], "int32"), M(1, 2)),
        S(M(0, 0), M(0, dtype="int32"), M(0, 2)),
        S(upright, order, B=M(3, 0)),
    ]


_NO_LU = [
    S(M(3, 3), V([1, 2, 3], "int32"), M(2, 2)),
    S(M(3, 3), V([1, 2, 3], "int32"), M(3)),
    S(M(3, 3), V([1, 2, 3], "int64"), M(3, 2)),
    S(M(2, 3), V([1, 2], "int32"), M(2, 2)),
    S(M(3, 3), V([1, 2, 3], "int32"), M(3, 2, dtype="float64")),
    S(M(3, 3), V([1, 2, 3], "int32"), 1.0),
    S(M(3, 3), V([1, 2, 3], "int32")),
]


@composite(
    contiguous=True,
    home="linalg",
    samples=_lu_systems,
    refused=lambda: [*_NO_LU, S(M(3, 3), V([1, 2, 3], "int32"), M(3, 2), left=False)],
)
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with ``A X = B``, or ``X A = B`` if not `left`, from the factors of `lu_factor`; with `adjoint`, A^H for A.

    >>> import pullback
    >>> A = pullback.tensor([[0.0, 2.0], [4.0, 0.0]])
    >>> pullback.linalg.lu_solve(*pullback.linalg.lu_factor(A), pullback.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    check_system("linalg.lu_solve", LU, B, left)
    if not isinstance(pivots, Tensor):
        raise TypeError(
            errors.message("linalg.lu_solve()", expected="pivots to be a Tensor", found=errors.describe(pivots))
        )
    return _by_factors(LU, pivots, B, left, adjoint)


def _by_factors(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, turned: bool) -> Tensor:
    if not left:
        return adjoint(_by_factors(LU, pivots, adjoint(B), True, not turned))
    if not turned:
        return solve_upper(LU, _solve_triangular(LU, _exchanged(B, pivots, False), False, True))
    lower = adjoint(LU)
    return _exchanged(_solve_triangular(lower, solve_lower(lower, B), True, True), pivots, True)
