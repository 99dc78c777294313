"""Pseudoinverses, least squares and ranks from singular values; the matrices may be singular.

The rules are from Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems
(1973). They hold if the rank does not change; singular values that a tolerance cuts off count as 0, as in torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...kernels.counterparts import folded
from ...table.calls import on
from ...table.entry import composite, special
from ...table.operands import check_matrix, check_same_dtype, data_of
from ...table.results import result_type
from ...table.samples import A as M
from ...table.samples import Differs, S, Sample, V
from ...tensor.adding import summed
from ...tensor.arrays import empty_beside
from ...tensor.tensor import Tensor
from ..make.conversion import alike
from ..products.matmul import with_axes
from .cholesky_qr import NO_MATRIX
from .last_axes import adjoint
from .spectral import eigvalsh, refuse_not_finite, svdvals

LstsqResult = result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


# The bound of zero --------------------------------------------------------------------------------------------------


def _tolerance(A: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """The absolute and the relative tolerance; if neither is given, the relative one is the size of rounding errors."""
    shape, dtype = data_of(A).shape, data_of(A).dtype
    if rtol is None:
        by_rounding = atol is None or (isinstance(atol, (int, float)) and atol <= 0)
        rtol = float(np.finfo(dtype).eps) * max(shape[-2:], default=0) if by_rounding else 0.0
    return 0.0 if atol is None else atol, rtol


def _check_tolerances(name: str, **tolerances: Any) -> None:
    for which, value in tolerances.items():
        if isinstance(value, Tensor) and value._data.dtype.kind == "c":
            raise RuntimeError(f"{name}(): {which} tensor of complex type is not supported.")


def _cut(values: Any, atol: Any, rtol: Any) -> Any:
    """A mask of the singular values above the tolerances: numbers, or arrays with one number for each matrix."""
    largest = folded(np.maximum, values, axis=-1, keepdims=True, initial=0)
    atol, rtol = (t[..., None] if hasattr(t, "shape") and np.ndim(t) else t for t in (atol, rtol))
    return values > np.maximum(rtol * largest, atol)


# Pseudoinverses -------------------------------------------------------------------------------------------------------


def _pinv_rule(g: Any, A: Any, out: Any) -> Any:
    # dX = -X dA X + X X^H dA^H (I - A X) + (I - X A) dA^H X^H X
    xh, gh = adjoint(out), adjoint(g)
    first = np.negative(np.matmul(xh, np.matmul(g, xh)))
    right, left = np.matmul(gh, np.matmul(out, xh)), np.matmul(np.matmul(xh, out), gh)
    second = np.subtract(right, np.matmul(A, np.matmul(out, right)))
    third = np.subtract(left, np.matmul(np.matmul(left, out), A))
    return np.add(first, np.add(second, third))


def _pinv_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: tolerances that are tensors have two axes fewer than their matrices."""
    A, *tolerances, hermitian = args
    lead = A._data.ndim - 2
    return op.unchecked(
        level.value(A), *(with_axes(level, t, lead) if isinstance(t, Tensor) else t for t in tolerances), hermitian
    )


def _pinv_samples() -> list[Sample]:
    return [
        S(M(3, 3, domain="regular")),
        S(M(4, 2, domain="regular")),
        S(M(2, 4, domain="regular")),
        S(M(2, 3, 2, domain="regular")),
        S(M(2, 1, 2, 3, domain="regular")),
        S(M(0, 3)),
        S(M(2, 3, 0)),
        S(M(0, 3, 2)),
        S(M(3, 3, domain="hermitian"), hermitian=True),
        S(M(2, 2, 2, domain="hermitian"), 1e-6, True),
        S(M(3, 2, domain="regular"), rtol=1e-6),
        S(M(3, 2, domain="regular"), atol=1e-3, rtol=1e-6),
        S(M(2, 3, 2, domain="regular"), atol=V([1e-3, 1e-6], "float64")),
        S(M(2, 3, 2, domain="regular"), rtol=V([1e-3, 1e-6], "float64")),
        S(M(3, 2, domain="regular", layout="T")),
    ]


_DEFICIENT = [
    S(V([[1.0, 2.0], [2.0, 4.0]])),
    S(V([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])),
    S(V([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])),
    S(V([[1.0, 0.0], [0.0, 0.01]]), atol=0.1),
    S(V([[1.0, 0.0], [0.0, 0.01]]), rtol=0.1, atol=1e-3),
    S(V([[1.0, 0.0], [0.0, -0.01]]), 0.1, True),
]


def _numpy_pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    return pinv(a, rtol=rcond if rcond is not None else rtol, hermitian=hermitian)


def _check_pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    check_matrix("linalg.pinv", A, square=hermitian)
    _check_tolerances("linalg.pinv", rcond=rcond, atol=atol, rtol=rtol)
    return A, *_tolerance(A, atol, rcond if rtol is None else rtol), hermitian


@special(
    home="linalg",
    checks=_check_pinv,
    node="LinalgPinvBackward0",
    batch=_pinv_of_each,
    conjugate=False,
    A=_pinv_rule,
    numpy={np.linalg.pinv: _numpy_pinv},
    samples=_pinv_samples,
    kinks=_DEFICIENT,
    refused=[*NO_MATRIX, S(M(2, 3), hermitian=True)],
)
def pinv(A: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """The pseudoinverse (Moore and Penrose); singular values up to ``max(atol, rtol * S[0])`` count as 0.

    `rcond` is an older name of `rtol`; a tolerance may be a tensor with one number for each matrix. By default atol is
    0 and rtol is ``max(m, n) * eps``, or 0 if atol is given. hermitian: only the lower triangle is read.

    >>> import pullback
    >>> pullback.linalg.pinv(pullback.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    refuse_not_finite("linalg.pinv", A)
    if hermitian:
        values, u = np.linalg.eigh(A)
        vh = adjoint(u)
        keep = _cut(np.abs(values), atol, rtol)
    else:
        u, values, vh = np.linalg.svd(A, full_matrices=False)
        keep = _cut(values, atol, rtol)
    inverse = np.where(keep, 1 / np.where(keep, values, 1), 0).astype(values.dtype)
    return np.matmul(adjoint(vh) * inverse[..., None, :], adjoint(u))


# Ranks ----------------------------------------------------------------------------------------------------------------


@composite(
    home="linalg",
    numpy={
        np.linalg.matrix_rank: lambda A, tol=None, hermitian=False, *, rtol=None: matrix_rank(
            A, tol, hermitian, rtol=rtol
        )
    },
    samples=lambda: [
        *_pinv_samples(),
        *_DEFICIENT,
        S(M(3, 3, domain="regular"), 1.2),
        S(M(3, 3, domain="hermitian"), 1.2, True),
        S(M(2, 3, 3, domain="regular"), V([0.1, 1.6], "float64")),
        S(M(2, 2, 3, domain="regular"), tol=1.2),
    ],
    refused=[*NO_MATRIX, S(M(2, 3), hermitian=True)],
)
def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The number of singular values above ``max(atol, rtol * S[0])``, int64. Tolerances as in `pinv`; `tol` is atol."""
    check_matrix("linalg.matrix_rank", A, square=hermitian)
    _check_tolerances("linalg.matrix_rank", tol=tol, atol=atol, rtol=rtol)
    values = abs(eigvalsh(A)) if hermitian else svdvals(A)
    count = values._data.shape[-1]
    if not count:
        return values.sum(-1).long()
    atol, rtol = _tolerance(A, tol if atol is None else atol, rtol)
    atol, rtol = (t[..., None] if isinstance(t, Tensor) else t for t in (atol, rtol))
    limits = np.maximum(values.amax(-1, True) * rtol, atol * values.new_ones(1))
    return (values > limits).sum(-1)


# Least squares --------------------------------------------------------------------------------------------------------


def _has_residuals(g: Any, solution: Any) -> bool:
    """Whether the squared norms were computed and have a cotangent."""
    (*batch, _, columns) = np.shape(solution)
    return g is not None and np.shape(g) == (*batch, columns)


def _lstsq_rule_for_A(g: Any, A: Any, B: Any, rcond: Any, out0: Any) -> Any:  # noqa: N802 - the name of the argument
    of_solution, of_squares = g[0], g[1]
    rest, total = np.subtract(B, np.matmul(A, out0)), None
    if of_solution is not None:
        x = on(pinv, A, 0.0, rcond, False)
        y = np.matmul(adjoint(x), of_solution)
        total = np.subtract(np.matmul(rest, adjoint(np.matmul(x, y))), np.matmul(y, adjoint(out0)))
        inside = np.subtract(of_solution, np.matmul(x, np.matmul(A, of_solution)))
        total = np.add(total, np.matmul(np.matmul(adjoint(x), out0), adjoint(inside)))
    if _has_residuals(of_squares, out0):
        turned = np.multiply(-2, np.matmul(np.multiply(rest, np.expand_dims(of_squares, -2)), adjoint(out0)))
        total = turned if total is None else np.add(total, turned)
    return total


def _lstsq_rule_for_B(g: Any, A: Any, B: Any, rcond: Any, out0: Any) -> Any:  # noqa: N802
    of_solution, of_squares = g[0], g[1]
    total = None
    if of_solution is not None:
        total = np.matmul(adjoint(on(pinv, A, 0.0, rcond, False)), of_solution)
    if _has_residuals(of_squares, out0):
        rest = np.subtract(B, np.matmul(A, out0))
        turned = np.multiply(2, np.multiply(rest, np.expand_dims(of_squares, -2)))
        total = turned if total is None else np.add(total, turned)
    return total


@special(method=False, node="LinalgLstsqBackward0", conjugate=False, A=_lstsq_rule_for_A, B=_lstsq_rule_for_B)
def _lstsq(A: Any, B: Any, rcond: Any, squares: bool) -> Any:
    refuse_not_finite("linalg.lstsq", A)
    m, n = A.shape[-2:]
    u, s, vh = np.linalg.svd(A, full_matrices=False)
    keep = _cut(s, 0.0, rcond)
    coordinates = np.matmul(adjoint(u), B) * np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)[..., None]
    solution, rank = np.matmul(adjoint(vh), coordinates), keep.sum(-1)
    residuals = empty_beside(s, (0,))
    if squares and m > n and np.all(rank == n):
        residuals = summed(np.square(np.abs(B - np.matmul(A, solution))), axis=-2)
    return LstsqResult(solution, residuals, rank, s)


def _of_one_batch(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """Two stacks of matrices with the same number of rows, broadcast to one batch."""
    a, b = A._data.shape, B._data.shape
    if len(a) != len(b) or a[-2] != b[-2]:
        raise RuntimeError(
            errors.message(
                f"linalg.lstsq(): input.size(-2) should match other.size({-1 if len(b) < len(a) else -2})",
                expected=f"B of size {list(a[:-1])}, or matrices of {a[-2]} rows and a batch that broadcasts",
                found=f"A of size {list(a)}, B of size {list(b)}",
            )
        )
    if a[:-2] == b[:-2]:
        return A, B
    if refused := errors.broadcast_message([a[:-2], b[:-2]]):
        raise RuntimeError(f"linalg.lstsq(): {refused}.")
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    return A.expand(*batch, *a[-2:]), B.expand(*batch, *b[-2:])


_DRIVERS = (None, "gels", "gelsy", "gelsd", "gelss")


def _lstsq_samples() -> list[Sample]:
    tall, wide = M(4, 2, domain="regular"), M(2, 4, domain="regular")
    stack = M(2, 4, 2, domain="regular")
    return [
        S(tall, M(4, 3)),
        S(wide, M(2, 3)),
        S(M(3, 3, domain="regular"), M(3, 1)),
        *(S(tall, M(4, 3), driver=driver) for driver in _DRIVERS),
        *(S(wide, M(2, 1), driver=driver) for driver in _DRIVERS),
        S(tall, M(4)),
        S(stack, M(2, 4, 3), driver="gelsd"),
        S(stack, M(2, 4)),
        S(stack, M(1, 4, 3), driver="gelsd"),
        S(M(1, 4, 2, domain="regular"), M(3, 4, 1), driver="gels"),
        S(M(0, 4, 2), M(0, 4, 1)),
        S(M(0, 3), M(0, 2)),
        S(M(3, 0), M(3, 2)),
        S(tall, M(4, 3), 1e-6, driver="gelsd"),
        S(M(3, 2, domain="regular", layout="T"), M(3, 1, layout="step"), rcond=None),
        S(tall, M(4), driver="gels"),
        S(stack, M(2, 4), driver="gelss"),
    ]


@composite(
    home="linalg",
    numpy={np.linalg.lstsq: lambda a, b, rcond=None: tuple(lstsq(*alike(a, b), rcond, driver="gelsd"))},
    out="converted",
    samples=_lstsq_samples,
    kinks=lambda: [
        S(V([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]), V([[0.0], [1.0], [2.0]])),
        S(V([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]), V([[0.0], [1.0], [2.0]]), driver="gelsd"),
        S(V([[1.0, 0.0], [0.0, 0.01]]), V([[1.0], [2.0]]), 0.1, driver="gelsd"),
    ],
    refused=lambda: [
        S(M(3, 2), M(2, 2)),
        S(M(3), M(3)),
        S(M(3, 2), M(3, 2, dtype="float64")),
        S(M(3, 2, dtype="int64"), M(3, 2, dtype="int64")),
        S(M(3, 2), M(3, 2), driver="x"),
        S(M(2, 4, 3), M(4, 2)),
        S(M(3, 2), 1.0),
        S(M(3, 2)),
    ],
    differs=[
        Differs(
            "singular values that rcond cuts off count as 0 in the gradient as well; torch ignores rcond there",
            "kinks",
            sample="0.1",
        )
    ],
)
def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The X of smallest norm that minimises the norm of ``A X - B``; the squared norms of its columns; and ranks.

    Returns a named tuple of ``solution``, ``residuals`` (empty if a matrix has dependent columns, or driver is "gelsy",
    the default), ``rank`` (empty for "gels") and ``singular_values`` (empty except for "gelsd", "gelss"). All drivers
    compute with singular values; those up to `rcond` times the largest count as 0. B may be a vector.

    >>> import pullback
    >>> A = pullback.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> pullback.linalg.lstsq(A, pullback.tensor([[1.0], [2.0], [4.0]])).solution
    tensor([[1.0000],
            [3.0000]])
    """
    check_matrix("linalg.lstsq", A)
    if not isinstance(B, Tensor):
        raise TypeError(errors.message("linalg.lstsq()", expected="B to be a Tensor", found=errors.describe(B)))
    check_same_dtype("linalg.lstsq", A=A, B=B)
    if driver not in _DRIVERS:
        raise RuntimeError(errors.message("linalg.lstsq()", expected=f"driver one of {_DRIVERS}", found=repr(driver)))
    a, b = A._data.shape, B._data.shape
    is_vector = len(b) == len(a) - 1 and b == a[:-1]
    own = tuple(slice(n) for n in a[:-2])  # ranks and singular values are those of the given batch of A
    if not is_vector:
        A, B = _of_one_batch(A, B)
    if rcond is None:
        rcond = float(np.finfo(A._data.dtype).eps) * max(a[-2:])
    driver = driver or "gelsy"
    found = _lstsq(A, B.unsqueeze(-1) if is_vector else B, rcond, driver != "gelsy")
    solution, residuals, rank, values = found
    if A._data.shape != a:
        rank, values = rank[own], values[own]
    return LstsqResult(
        solution.squeeze(-1) if is_vector else solution,
        residuals,
        rank.reshape(-1)[:0] if driver == "gels" else rank,
        values.detach() if driver in ("gelsd", "gelss") else values.detach().reshape(-1)[:0],
    )
