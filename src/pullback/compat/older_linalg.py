"""Linear algebra under torch's older names, functions of `torch` itself and methods of its tensors.

They compute as `linalg` does; the arguments, and sometimes the order of the results, differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.linalg import (
    cholesky_qr,
    determinants,
    leastsquares,
    matrix_functions,
    solving,
    spectral,
)
from ..ops.linalg import lu as factored
from ..ops.linalg.cholesky_qr import NO_MATRIX
from ..ops.linalg.last_axes import adjoint
from ..ops.linalg.matrix_functions import cross_product
from ..ops.linalg.solving import EMPTY, NO_SQUARE, SINGULAR, check_system, solve_lower, solve_upper, squares
from ..table.entry import composite, special
from ..table.operands import check_matrix
from ..table.results import result_type
from ..table.samples import A as M
from ..table.samples import Differs, S, Sample, V
from ..tensor.arrays import zeros_beside
from ..tensor.tensor import Tensor

SlogdetResult = result_type("slogdet", "sign", "logabsdet")
QRResult = result_type("qr", "Q", "R")
SVDResult = result_type("svd", "U", "S", "V")
GeqrfResult = result_type("geqrf", "a", "tau")
TriangularSolveResult = result_type("triangular_solve", "solution", "cloned_coefficient")


# Determinants, inverses, powers ---------------------------------------------------------------------------------------


@composite(out=False, samples=squares, refused=NO_SQUARE)
def det(input: Tensor) -> Tensor:
    """The determinant: `linalg.det`."""
    return determinants.det(input)


@composite(samples=squares, refused=NO_SQUARE)
def slogdet(input: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of the determinant and the logarithm of its modulus: `linalg.slogdet`."""
    return SlogdetResult(*determinants.slogdet(input))


@composite(out=False, samples=lambda: squares("definite"), kinks=[S(V([[0.0, 1.0], [1.0, 0.0]]))], refused=NO_SQUARE)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative. ``d log det = tr(A^-1 dA)``.

    >>> import pullback
    >>> pullback.logdet(pullback.eye(2) * 2)
    tensor(1.3863)
    """
    sign, logabsdet = determinants.slogdet(input)
    if input._data.dtype.kind == "c":
        return logabsdet + np.log(sign)
    found: Any = np.where(sign < 0, np.nan, logabsdet)
    return found


@composite(samples=squares, refused=[*NO_SQUARE, *SINGULAR])
def inverse(input: Tensor) -> Tensor:
    """The inverse: `linalg.inv`."""
    return solving.inv(input)


@composite(
    out=False,
    samples=lambda: [
        S(M(3, 3, domain="regular")),
        S(M(2, 3, 2, domain="regular")),
        S(M(2, 3, domain="regular"), 1e-6),
        S(M(3, 3, domain="regular"), rcond=1e-6),
    ],
    refused=NO_MATRIX,
)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse, in which singular values up to `rcond` times the largest count as 0: `linalg.pinv`."""
    return leastsquares.pinv(input, rtol=rcond)


@composite(
    samples=lambda: [S(M(2, 2, domain="regular"), n) for n in (0, 1, 3, -2)],
    refused=[S(M(2, 3), 2), S(M(2, 2), 1.5)],
    differs=[Differs("torch has no kernel for bool, as of other products", "values", "bool")],
)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The product of n factors: `linalg.matrix_power`."""
    return matrix_functions.matrix_power(input, n)


# Factors --------------------------------------------------------------------------------------------------------------


@composite(
    narrow="whole",
    samples=lambda: [
        *squares("definite"),
        S(M(2, 2, domain="definite"), True),
        S(M(2, 2, domain="definite"), upper=True),
    ],
    refused=[*NO_SQUARE, S(V([[1.0, 2.0], [2.0, 1.0]]))],
    differs=[EMPTY, *cholesky_qr.IMAGINARY],
)
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor: `linalg.cholesky`."""
    if upper is False:
        return cholesky_qr.lower(input, "CholeskyBackward0")
    return cholesky_qr.cholesky(input, upper=upper)


@composite(
    samples=lambda: [
        S(M(3, 2, domain="regular")),
        S(M(2, 3, domain="regular"), True),
        S(M(2, 3, 3, domain="regular"), some=False),
    ],
    kinks=lambda: [S(M(3, 2, domain="regular"), False)],  # it has no gradient
    refused=NO_MATRIX,
)
def qr(input: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """``Q`` and ``R``: `linalg.qr`; ``some=False`` is its mode "complete"."""
    return QRResult(*cholesky_qr.qr(input, "reduced" if some else "complete"))


def _no_rule(g: Any) -> Any:
    raise NotImplementedError(
        "the derivative for 'geqrf' is not implemented.\n  What to do: use linalg.qr, whose factors have one."
    )


def _check_geqrf(input: Tensor) -> Any:
    check_matrix("geqrf", input)


@special(
    checks=_check_geqrf,
    batch="leading",
    input=_no_rule,
    samples=lambda: [
        S(M(4, 3, domain="regular")),
        S(M(2, 3, domain="regular")),
        S(M(2, 3, 2, domain="regular")),
        S(M(3, 0)),
        S(M(0, 2, 2)),
    ],
    refused=[S(M(3)), S(M(2, 2, dtype="int64")), S([[1.0]]), S()],
    differs=[Differs("as in torch, it has no derivative", check) for check in ("slopes", "forward")],
)
def geqrf(input: Any) -> tuple[Any, Any]:
    """The result of LAPACK's routine of that name: R above and the reflections below the diagonal of ``a``, with their
    ``tau``; it has no derivative. `linalg.householder_product` computes Q from both.
    """
    *batch, m, n = input.shape
    if not input.size:
        return GeqrfResult(np.copy(input), zeros_beside(input, (*batch, min(m, n))))
    found, tau = np.linalg.qr(input, "raw")
    return GeqrfResult(np.swapaxes(found, -1, -2), tau)


@composite(
    samples=lambda: [S(M(4, 3), M(3)), S(M(2, 4, 2), M(2, 1))],
    refused=lambda: [S(M(2, 3), M(2)), S(M(4, 2), M(3)), S(M(4, 2), 1.0), S(M(4, 2))],
)
def orgqr(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of a product of reflections: `linalg.householder_product`."""
    return cholesky_qr.householder_product(input, tau)


@composite(
    samples=lambda: [
        S(M(3, 2, domain="regular")),
        S(M(2, 3, domain="regular"), False),
        S(M(2, 3, 2, domain="regular"), some=True),
        S(M(3, 2, domain="regular"), True, False),
        S(M(2, 3, domain="regular"), compute_uv=False),
    ],
    refused=NO_MATRIX,
)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """``U``, ``S`` and ``V`` (not its conjugate transpose) of `linalg.svd`; U and V are zeros without `compute_uv`."""
    check_matrix("svd", input)
    if compute_uv:
        u, s, vh = spectral.svd(input, not some)
        return SVDResult(u, s, adjoint(vh))
    *batch, m, n = input._data.shape
    return SVDResult(input.new_zeros(*batch, m, m), spectral.svdvals(input), input.new_zeros(*batch, n, n))


@composite(
    truths="get_infos",
    samples=lambda: [
        S(M(3, 3, domain="regular")),
        S(M(2, 3, 2, domain="regular")),
        S(M(2, 3, domain="regular"), True, True),
        S(M(3, 3, domain="regular"), get_infos=True),
    ],
    kinks=SINGULAR,
    refused=[*NO_MATRIX, S(M(2, 2), False)],
)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """The LU factors in one matrix, the row exchanges, and with `get_infos` the first zero pivots, from
    `linalg.lu_factor_ex`.
    """
    found = factored.lu_factor_ex(A, pivot=pivot)
    return found if get_infos else tuple(found[:2])


# Systems --------------------------------------------------------------------------------------------------------------


@composite(
    samples=lambda: [
        S(M(3, 2), M(3, 3, domain="regular"), V([2, 3, 3], "int32")),
        S(M(2, 3, 1), M(2, 3, 3, domain="regular"), V([[1, 3, 3], [3, 2, 3]], "int32")),
    ],
    refused=lambda: [
        S(M(3), M(3, 3), V([1, 2, 3], "int32")),
        S(M(2, 2), M(3, 3), V([1, 2, 3], "int32")),
        S(M(3, 2), M(3, 3)),
    ],
)
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with ``A X = b``: `linalg.lu_solve`."""
    return factored.lu_solve(LU_data, LU_pivots, b)


_HALF = [
    Differs("the half of the matrix that is not read has no gradient; torch gives it one", check)
    for check in ("gradients", "second")
]


def _halves(*more: Any) -> list[Sample]:
    return [
        S(*more, M(3, 3, domain="lower")),
        S(*more, M(3, 3, domain="upper"), True),
        S(*more, M(3, 3, domain="upper"), upper=True),
    ]


@composite(
    samples=lambda: [
        *_halves(M(3, 2)),
        S(M(2, 3, 1), M(2, 3, 3, domain="lower")),
        S(M(3, 2), M(2, 3, 3, domain="lower")),
        S(M(5, 2, 2), M(2, 1, 2, 2, domain="upper"), True),
        S(M(0, 2), M(0, 0)),
        S(M(3, 0), M(3, 3, domain="lower")),
        S(M(3, 2, layout="T"), M(3, 3, domain="lower", layout="T")),
    ],
    refused=lambda: [
        S(M(3), M(3, 3)),
        S(M(2, 2), M(3, 3)),
        S(M(2, 2), M(2, 3)),
        S(M(2, 2), M(2, 2, dtype="float64")),
        S(M(2, 2), 1.0),
        S(M(2, 2)),
    ],
    differs=_HALF,
)
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with ``L L^H X = B``, or ``L^H L X = B`` if `upper`; of the Cholesky factor L only that triangle is read.

    >>> import pullback
    >>> pullback.cholesky_solve(pullback.ones(2, 1), pullback.eye(2) * 2)
    tensor([[0.2500],
            [0.2500]])
    """
    check_system("cholesky_solve", L, B)
    if upper:
        return solve_upper(L, solve_lower(adjoint(L), B))
    return solve_upper(adjoint(L), solve_lower(L, B))


@composite(
    samples=lambda: [*_halves(), S(M(2, 3, 3, domain="lower")), S(M(0, 0)), S(M(0, 2, 2)), S(M(1, 1, domain="lower"))],
    refused=[*NO_SQUARE, S(V([[0.0, 0.0], [1.0, 1.0]]))],
    differs=_HALF,
)
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of ``L L^H``, or of ``L^H L`` if `upper`; of the Cholesky factor L only that triangle is read."""
    check_matrix("cholesky_inverse", L, "L", square=True)
    half = solving.triangular_inverse("cholesky_inverse", L, bool(upper))
    return np.matmul(half, adjoint(half)) if upper else np.matmul(adjoint(half), half)


@composite(
    samples=lambda: [
        S(M(3, 2), M(3, 3, domain="upper")),
        S(M(3, 2), M(3, 3, domain="lower"), False),
        S(M(3, 2), M(3, 3, domain="upper"), True, True),
        S(M(3, 2), M(3, 3, domain="regular"), unitriangular=True),
        S(M(3, 2), M(2, 3, 3, domain="lower"), upper=False, transpose=True),
        S(M(2, 3, 1), M(3, 3, domain="upper")),
        S(M(0, 2), M(0, 0)),
    ],
    refused=lambda: [S(M(3), M(3, 3)), S(M(2, 2), M(3, 3)), S(M(2, 2), M(2, 2, dtype="float64")), S(M(2, 2), 1.0)],
)
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """``solution``, the X with ``A X = b`` for a triangular A (``A^T X = b`` with `transpose`), and a copy of A:
    `linalg.solve_triangular`.
    """
    check_system("triangular_solve", A, b)
    batch = np.broadcast_shapes(A._data.shape[:-2], b._data.shape[:-2])
    turned = A.mT if transpose else A
    found = solving.solve_triangular(turned, b, upper=upper is not transpose, unitriangular=unitriangular)
    return TriangularSolveResult(found, A.expand(*batch, *A._data.shape[-2:]).clone())


# Products of vectors --------------------------------------------------------------------------------------------------


@composite(
    out="exact",
    samples=lambda: [
        S(M(3), M(3)),
        S(M(2, 3), M(2, 3)),
        S(M(3, 2), M(3, 2)),
        S(M(3, 3), M(3, 3), 1),
        S(M(3, 3), M(3, 3)),
        S(M(2, 3), M(1, 3), dim=-1),
    ],
    refused=lambda: [S(M(2, 2), M(2, 2)), S(M(3), M(2, 3)), S(M(3), 1.0), S(M(3), M(3, dtype="int64")), S(M(3))],
)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along `dim`, or along the first dimension of size 3: `linalg.cross`."""
    return cross_product("cross", input, other, dim)
