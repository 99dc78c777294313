"""Cholesky and QR factors, and products of Householder reflections.

The rule for Cholesky is from Murray, Differentiation of the Cholesky decomposition (2016); the rule for QR is from
Walter and Lehmann, On evaluating higher-order derivatives of the QR decomposition (2010), and Liao et al. (2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...kernels import matrices
from ...table.entry import composite, special, titled
from ...table.operands import check_floating, check_matrix, check_same_dtype, data_of
from ...table.results import result_type
from ...table.samples import A as M
from ...table.samples import Differs, S, Sample, V
from ...tensor.arrays import eye_beside
from ...tensor.tensor import Tensor
from .last_axes import adjoint, conj, scale_rows
from .solving import NO_SQUARE, SINGULAR, _solve_triangular, solve_upper, squares

CholeskyExResult = result_type("linalg_cholesky_ex", "L", "info")
QRResult = result_type("linalg_qr", "Q", "R")


# Cholesky -------------------------------------------------------------------------------------------------------------


def _symmetric(x: Any) -> Any:
    """The Hermitian matrix with the lower triangle of `x`, and only the real part of its diagonal."""
    return np.multiply(
        np.add(np.add(np.tril(x), adjoint(np.tril(x))), np.add(np.tril(x, -1), adjoint(np.tril(x, -1)))), 0.5
    )


def _right_by(L: Any, x: Any) -> Any:
    """``x L^-1`` for a lower triangular L."""
    return adjoint(solve_upper(adjoint(L), adjoint(x)))


def _cholesky_rule(g: Any, L: Any) -> Any:
    # dA = dL L^H + L dL^H, so L^-1 dL is the lower triangle, with half its diagonal, of L^-1 dA L^-H
    middle = np.multiply(_symmetric(np.matmul(adjoint(L), g)), 0.5)
    return _right_by(L, solve_upper(adjoint(L), middle))


@special(
    method=False,
    node="LinalgCholeskyExBackward0",
    saved={"L": "out", "upper": lambda: False},
    batch="leading",
    conjugate=False,
    A=lambda g, out: _cholesky_rule(g, out),
)
def _cholesky(A: Any) -> Any:
    found, info = matrices.cholesky(A)
    if np.any(info):
        raise _not_definite("linalg.cholesky", info)
    return found


@special(
    method=False,
    node="LinalgCholeskyExBackward0",
    saved={"L": "out0", "upper": lambda: False},
    batch="leading",
    conjugate=False,
    A=lambda g, out0: None if g[0] is None else _cholesky_rule(g[0], out0),
)
def _cholesky_ex(A: Any, check_errors: bool) -> Any:
    found, info = matrices.cholesky(A)
    if check_errors and np.any(info):
        raise _not_definite("linalg.cholesky_ex", info)
    return CholeskyExResult(found, info)


IMAGINARY = [
    Differs(
        "the imaginary part of the diagonal, which is not read, has no gradient; torch gives it one",
        check,
        "complex128",
    )
    for check in ("gradients", "second")
]


def _not_definite(name: str, info: Any) -> errors.LinAlgError:
    place = int(np.flatnonzero(info)[0])
    which = f" (Batch element {place})" if np.ndim(info) else ""
    return errors.LinAlgError(
        f"{name}{which}: The factorization could not be completed: the input is not positive-definite, its leading "
        f"minor of order {int(np.ravel(info)[place])} is not positive-definite.\n"
        "  What to do: add a small multiple of the identity, or use linalg.eigh or linalg.lu."
    )


_NOT_DEFINITE = [S(V([[1.0, 2.0], [2.0, 1.0]])), S(V([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]))]


@composite(
    home="linalg",
    numpy={np.linalg.cholesky: lambda a, *, upper=False: cholesky(a, upper=upper)},
    samples=lambda: [
        *squares("definite"),
        S(M(3, 3, domain="definite"), upper=True),
        S(M(2, 3, 3, domain="definite"), upper=True),
        S(M(40, 40, domain="definite")),
    ],
    refused=lambda: [*NO_SQUARE, *SINGULAR[1:], *_NOT_DEFINITE, S(M(2, 2, domain="definite"), True)],
    differs=IMAGINARY,
)
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with a positive diagonal and ``A = L L^H``, or the upper one with ``A = U^H U``.

    A is Hermitian, and only the same triangle of it is read; LinAlgError if it is not positive-definite. The gradient
    is that of a function of Hermitian matrices, and is Hermitian itself.

    >>> import pullback
    >>> pullback.linalg.cholesky(pullback.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    if not upper:
        return lower(A)
    check_matrix("linalg.cholesky", A, square=True)
    return adjoint(_cholesky(adjoint(A)))


def lower(A: Tensor, title: str = "") -> Tensor:
    """The lower triangular factor. title: torch's name for its node."""
    check_matrix("linalg.cholesky", A, square=True)
    return (titled(_cholesky, title) if title else _cholesky)(A)


@composite(
    home="linalg",
    samples=lambda: [
        *squares("definite"),
        S(M(3, 3, domain="definite"), upper=True),
        S(M(2, 3, 3, domain="definite"), upper=True, check_errors=True),
    ],
    refused=lambda: [*NO_SQUARE, *(S(*s.args, check_errors=True) for s in _NOT_DEFINITE)],
    differs=IMAGINARY,
)
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """`cholesky` without an error for a matrix that is not positive-definite, unless `check_errors`.

    Returns a named tuple of ``L`` and ``info``: int32, for each matrix 0 or the order of the leading minor that is not
    positive; from that column on, L is zero.
    """
    check_matrix("linalg.cholesky_ex", A, square=True)
    found = _cholesky_ex(adjoint(A) if upper else A, check_errors)
    return CholeskyExResult(adjoint(found.L), found.info) if upper else found


# QR -------------------------------------------------------------------------------------------------------------------


def _qr_rule(g: Any, complete: bool, out0: Any, out1: Any) -> Any:
    q, r = out0, out1
    of_q, of_r = g
    rows, columns = np.shape(q)[-2], np.shape(r)[-1]
    if complete and rows > columns:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols: the additional columns "
            "of Q are not determined.\n  What to do: use linalg.qr(A, mode='reduced'), which SciPy calls 'economic'."
        )
    of_q = np.zeros_like(q) if of_q is None else of_q
    of_r = np.zeros_like(r) if of_r is None else of_r
    if rows >= columns:
        return _thin_qr_rule(of_q, of_r, q, r)
    # A = [B C] and R = [T W] with B = Q T and W = Q^H C
    of_w, w = of_r[..., rows:], r[..., rows:]
    of_q = np.add(of_q, np.matmul(q, np.matmul(w, adjoint(of_w))))
    of_b = _thin_qr_rule(of_q, of_r[..., :rows], q, r[..., :rows])
    return np.concatenate([of_b, np.matmul(q, of_w)], axis=-1)


def _thin_qr_rule(of_q: Any, of_r: Any, q: Any, r: Any) -> Any:
    # Q^H dQ is skew, dR R^-1 upper triangular: Q^H dA R^-1 is their sum
    middle = np.subtract(np.matmul(r, adjoint(of_r)), np.matmul(adjoint(of_q), q))
    left = np.add(of_q, np.matmul(q, _symmetric(middle)))
    return adjoint(solve_upper(r, adjoint(left)))


@special(
    method=False,
    node="LinalgQrBackward0",
    saved={"Q": "out0", "R": "out1", "mode": lambda complete: "complete" if complete else "reduced"},
    batch="leading",
    conjugate=False,
    A=_qr_rule,
)
def _qr(A: Any, complete: bool) -> Any:
    return QRResult(*np.linalg.qr(A, "complete" if complete else "reduced"))


def _no_rule(g: Any) -> Any:
    raise RuntimeError(
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'.\n"
        "  What to do: use linalg.qr(A, mode='reduced')."
    )


@special(method=False, batch="leading", A=_no_rule)
def _only_r(A: Any) -> Any:
    return np.linalg.qr(A, "r")


def _qr_samples() -> list[Sample]:
    return [
        S(M(3, 3, domain="regular")),
        S(M(4, 2, domain="regular")),
        S(M(2, 4, domain="regular")),
        S(M(2, 3, 2, domain="regular")),
        S(M(2, 1, 2, 3, domain="regular"), "reduced"),
        S(M(3, 3, domain="regular"), "complete"),
        S(M(2, 3, domain="regular"), mode="complete"),
        S(M(1, 1, domain="regular")),
        S(M(0, 3)),
        S(M(3, 0)),
        S(M(0, 3, 2)),
        S(M(3, 2, domain="regular", layout="T")),
        S(M(3, 2, domain="regular", layout="step")),
    ]


NO_MATRIX = [S(M(3)), S(M()), S([[1.0]]), S(M(2, 2, dtype="int64")), S(), S(M(2, 2), nonsense=1)]


def _numpy_qr(a: Any, mode: str = "reduced") -> Any:
    found = qr(a, mode)
    return found.R if mode == "r" else found


@composite(
    home="linalg",
    numpy={np.linalg.qr: _numpy_qr},
    samples=_qr_samples,
    kinks=lambda: [  # no gradient here
        S(M(4, 2, domain="regular"), mode="complete"),
        S(M(4, 2, domain="regular"), mode="r"),
        S(M(2, 2, 3, domain="regular"), "r"),
        S(M(0, 3, 2), "r"),
        S(M(3, 0), "complete"),
    ],
    refused=[*NO_MATRIX, S(M(2, 2), "raw"), S(M(2, 2), 1)],
)
def qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """``A = Q R``: the columns of Q are orthonormal, R is upper triangular; a named tuple of ``Q`` and ``R``.

    mode: "reduced", "complete" (Q is square; no gradient if A has more rows than columns), or "r" (Q is empty; no
    gradient). The gradient exists where the first columns of A are independent.

    >>> import pullback
    >>> Q, R = pullback.linalg.qr(pullback.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> Q @ R
    tensor([[3.0000, 1.0000],
            [4.0000, 2.0000]])
    """
    check_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise (RuntimeError if isinstance(mode, str) else TypeError)(
            errors.message(
                f"linalg.qr received unrecognized mode {mode!r}", expected="mode 'reduced', 'complete' or 'r'"
            )
        )
    if mode == "r":
        r = _only_r(A)
        return QRResult(r.reshape(-1)[:0], r)
    return _qr(A, mode == "complete")


# Householder reflections ----------------------------------------------------------------------------------------------


def _reflections(name: str, A: Any, tau: Any) -> tuple[Any, Any, Any]:
    """V, and the factors of ``T = B^-1 D``, in ``Q = H1 H2 ... = I - V T V^H`` (Joffrain et al., 2006)."""
    check_matrix(name, A, "input")
    check_floating(name, tau, "tau")
    check_same_dtype(name, input=A, tau=tau)
    (*batch, m, n), (*of_tau, k) = data_of(A).shape, data_of(tau).shape
    if batch != of_tau or not k <= n <= m:
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="tau with the batch of input, and input.shape[-2] >= input.shape[-1] >= tau.shape[-1]",
                found=f"input {list(data_of(A).shape)}, tau {list(data_of(tau).shape)}",
            )
        )
    V = np.where(eye_beside(A, m, k, np.bool_), 1, np.tril(A[..., :k], -1))
    return V, scale_rows(np.triu(np.matmul(adjoint(V), V), 1), tau), tau


def _reflected(parts: tuple[Any, Any, Any], x: Any, conjugated: bool) -> Any:
    """``T x`` for these reflections, or ``T^H x`` if `conjugated`."""
    _, upper, tau = parts
    if conjugated:
        return scale_rows(_solve_triangular(adjoint(upper), x, False, True), conj(tau))
    return _solve_triangular(upper, scale_rows(x, tau), True, True)


@composite(
    home="linalg",
    samples=lambda: [
        S(M(4, 3), M(3)),
        S(M(3, 3), M(3)),
        S(M(4, 3), M(2)),
        S(M(4, 2), M(0)),
        S(M(2, 4, 2), M(2, 2)),
        S(M(2, 0, 3, 2), M(2, 0, 2)),
        S(M(1, 1), M(1)),
        S(M(0, 0), M(0)),
        S(M(3, 2, layout="T"), tau=M(2, layout="step")),
    ],
    refused=lambda: [
        S(M(2, 3), M(2)),
        S(M(4, 2), M(3)),
        S(M(2, 4, 2), M(2)),
        S(M(2), M(2)),
        S(M(4, 2), M(2, dtype="int64")),
        S(M(4, 2), 1.0),
        S(M(4, 2)),
    ],
)
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of a product of reflections ``H_i = I - tau_i v_i v_i^H``, as LAPACK's geqrf leaves them.

    v_i is zeros, then a 1, then column i of A below its diagonal. The result has as many columns as A.
    """
    V, *_ = parts = _reflections("linalg.householder_product", A, tau)
    m, n = A._data.shape[-2:]
    columns = _reflected(parts, adjoint(V[..., :n, :]), False)
    found: Any = np.subtract(eye_beside(A, m, n), np.matmul(V, columns))
    return found


@composite(
    samples=lambda: [
        S(M(4, 3), M(3), M(4, 2)),
        S(M(4, 3), M(3), M(2, 4), False),
        S(M(4, 3), M(3), M(4, 2), transpose=True),
        S(M(4, 3), M(3), M(2, 4), left=False, transpose=True),
        S(M(2, 3, 3), M(2, 3), M(2, 3, 1)),
        S(M(2, 3, 3), M(2, 3), M(2, 1, 3), False, True),
        S(M(2, 4), M(2), M(2, 3)),
        S(M(3, 2, 3), M(3, 2), M(3, 1, 2), False, True),
        S(M(3, 2, layout="T"), M(2), M(3, 2, layout="step"), transpose=True),
    ],
    refused=lambda: [
        S(M(4, 3), M(3), M(3, 2)),
        S(M(4, 3), M(2), M(4, 2)),
        S(M(4, 3), M(3), M(4, 2), False),
        S(M(4, 3), M(4), M(4, 2)),
        S(M(4, 3), M(3), M(4)),
        S(M(4, 3), M(3), M(4, 2, dtype="int64")),
        S(M(4, 3), M(3), 1.0),
        S(M(4, 3), M(3)),
    ],
)
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """``Q other`` (or, if not `left`, ``other Q``) with the square Q of `linalg.householder_product`; with `transpose`,
    Q^H instead of Q.
    """
    check_matrix("ormqr", input, "input")
    count = min(input._data.shape[-2:])  # the number of reflections; further columns hold no reflection
    V, *_ = parts = _reflections("ormqr", input[..., :count], tau)
    check_matrix("ormqr", other, "other")
    check_same_dtype("ormqr", input=input, other=other)
    x = other if left else adjoint(other)
    if x._data.shape[:-1] != input._data.shape[:-1] or tau._data.shape[-1] != count:
        raise RuntimeError(
            errors.message(
                "ormqr()",
                expected=f"a tau for each of {count} reflections; the batch and the "
                f"{'rows' if left else 'columns'} of Q",
                found=f"input {list(input._data.shape)}, tau {list(tau._data.shape)}, other {list(other._data.shape)}",
            )
        )
    turned = np.subtract(x, np.matmul(V, _reflected(parts, np.matmul(adjoint(V), x), transpose is left)))
    found: Any = turned if left else adjoint(turned)
    return found
