"""Singular values and eigenvalues, and their vectors.

Vectors are determined up to a sign, or a phase if they are complex. A loss that depends on the phase has no derivative:
the rules refuse it, as torch's do. The rules are from Giles, An extended collection of matrix derivative results
(2008), and for complex matrices from Wan and Zhang, Automatic differentiation for complex valued SVD (2019), and
Boeddeker et al., On the computation of complex-valued gradients (2017). They divide by differences of the values, so
gradients are infinite if two values are equal; gradients of the values alone are finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...table.entry import special
from ...table.operands import check_matrix
from ...table.results import result_type
from ...table.samples import A as M
from ...table.samples import S, Sample
from ...tensor import dtypes
from ...tensor.tensor import Tensor
from ..elementwise.value_checks import check_values
from .cholesky_qr import NO_MATRIX
from .last_axes import adjoint, conj, diagonal_of, is_complex, scale_columns, scale_rows, with_diagonal
from .solving import EMPTY, NO_SQUARE, _solve_or_nan, squares

SVDResult = result_type("linalg_svd", "U", "S", "Vh")
EighResult = result_type("linalg_eigh", "eigenvalues", "eigenvectors")
EigResult = result_type("linalg_eig", "eigenvalues", "eigenvectors")


def _skew(x: Any) -> Any:
    return np.subtract(x, adjoint(x))


def _differences(values: Any) -> Any:
    """``values[j] - values[i]`` at [i, j], with ones on the diagonal."""
    return with_diagonal(np.subtract(np.expand_dims(values, -2), np.expand_dims(values, -1)), np.ones_like(values))


def _check_vanishing(change: Any, name: str, what: str) -> None:
    """Refuse a loss that changes with the choice of the vectors."""
    if change.size and np.max(np.abs(change)) > 1e-2:
        raise RuntimeError(
            f"{name}: {what}. The specified loss function depends on this choice: it is ill-defined.\n"
            "  What to do: use functions that do not, e.g. of projections v v^H, of absolute values, or of the values."
        )


_PHASES = "the vectors in the complex case are specified up to multiplication by e^{i phi}"


def _phase_free(x: Any, name: str) -> Any:
    """A square matrix, after a check that the imaginary part of its diagonal, a loss's change with the phases, is 0."""
    if not is_complex(x):
        return x
    diagonal = diagonal_of(x)
    phases = check_values(_check_vanishing, np.imag(diagonal), name, _PHASES)
    return with_diagonal(x, np.add(np.real(diagonal), np.multiply(1j, phases)))


# Singular values ------------------------------------------------------------------------------------------------------


def _of_thin(vectors: Any, g: Any, k: int) -> tuple[Any, Any]:
    """The first k columns of an orthogonal matrix and their cotangent, with that of the other columns added.

    The others span the orthogonal complement of the first, so they turn with them: ``dU2 = -U1 dU1^H U2``. Their choice
    within that space is not determined.
    """
    first, others = vectors[..., :k], vectors[..., k:]
    if g is None or not np.shape(others)[-1]:
        return first, None if g is None else g[..., :k]
    of_others = g[..., k:]
    turn = check_values(
        _check_vanishing,
        _skew(np.matmul(adjoint(others), of_others)),
        "linalg.svd",
        "with full_matrices=True the additional vectors are specified up to a choice of basis",
    )
    # the skew part is zero if the derivative exists, so it may be subtracted
    of_others = np.subtract(of_others, np.multiply(np.matmul(others, turn), 0.5))
    return first, np.subtract(g[..., :k], np.matmul(others, np.matmul(adjoint(of_others), first)))


def _svd_rule(g: Any, out0: Any, out1: Any, out2: Any) -> Any:
    s, k = out1, np.shape(out1)[-1]
    u, of_u = _of_thin(out0, g[0], k)
    v, of_v = _of_thin(adjoint(out2), None if g[2] is None else adjoint(g[2]), k)
    vh, of_s = adjoint(v), g[1]
    if of_u is None and of_v is None:
        return None if of_s is None else np.matmul(scale_columns(u, of_s), vh)
    both = of_u is not None and of_v is not None
    of_u = np.zeros_like(u) if of_u is None else of_u
    of_v = np.zeros_like(v) if of_v is None else of_v
    u_turn, v_turn = _skew(np.matmul(adjoint(u), of_u)), _skew(np.matmul(vh, of_v))
    total = _phase_free(np.add(u_turn, v_turn), "linalg.svd")
    core = np.true_divide(np.add(scale_columns(u_turn, s), scale_rows(v_turn, s)), _differences(np.multiply(s, s)))
    diagonal = np.multiply(diagonal_of(total), s)  # its value is zero
    if of_s is not None:
        diagonal = np.add(diagonal, of_s)
    if both and is_complex(u):
        diagonal = np.add(diagonal, np.true_divide(diagonal_of(u_turn), np.multiply(2, s)))
    found = np.matmul(u, np.matmul(with_diagonal(core, diagonal), vh))
    if np.shape(u)[-2] > k:
        outside = np.true_divide(of_u, np.expand_dims(s, -2))
        outside = np.subtract(outside, np.matmul(u, np.matmul(adjoint(u), outside)))
        found = np.add(found, np.matmul(outside, vh))
    if np.shape(v)[-2] > k:
        outside = np.true_divide(of_v, np.expand_dims(s, -2))
        outside = np.subtract(outside, np.matmul(v, np.matmul(vh, outside)))
        found = np.add(found, np.matmul(u, adjoint(outside)))
    return found


def refuse_not_finite(name: str, A: Any) -> None:
    """Refuse infinities and NaN, on which LAPACK may never return."""
    if not np.isfinite(A).all():
        raise errors.LinAlgError(
            errors.message(f"{name}()", expected="finite numbers", found="infinite ones or NaN in A")
        )


def _rectangles() -> list[Sample]:
    return [
        S(M(3, 3, domain="regular")),
        S(M(4, 2, domain="regular")),
        S(M(2, 3, domain="regular")),
        S(M(2, 3, 2, domain="regular")),
        S(M(2, 1, 2, 3, domain="regular")),
        S(M(1, 1, domain="regular")),
        S(M(0, 3)),
        S(M(3, 0)),
        S(M(2, 0, 0)),
        S(M(0, 3, 2)),
        S(M(3, 2, domain="regular", layout="T")),
        S(M(3, 2, domain="regular", layout="step")),
    ]


def _numpy_svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    return svd(a, full_matrices) if compute_uv else svdvals(a)


def _check_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    _check_decomposed("linalg.svd", A, driver)
    return A, bool(full_matrices)


@special(
    home="linalg",
    checks=_check_svd,
    node="LinalgSvdBackward0",
    saved={"U": "out0", "S": "out1", "Vh": "out2"},
    batch="leading",
    conjugate=False,
    A=_svd_rule,
    numpy={np.linalg.svd: _numpy_svd},
    samples=lambda: [
        *(S(*s.args, full_matrices=False) for s in _rectangles()),
        *_rectangles(),
        S(M(4, 2, domain="regular"), False),
    ],
    refused=[*NO_MATRIX, S(M(2, 2), driver="gesvd")],
)
def svd(A: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    """``A = U diag(S) Vh``: S real, descending; columns of U and rows of Vh orthonormal. A named tuple.

    With `full_matrices` U and Vh are square. The gradient exists where the singular values are distinct, for losses
    that do not depend on the signs (phases) of the vectors, nor on the choice of those that `full_matrices` adds.

    >>> import pullback
    >>> pullback.linalg.svd(pullback.tensor([[0.0, 3.0], [2.0, 0.0]])).S
    tensor([3., 2.])
    """
    refuse_not_finite("linalg.svd", A)
    return SVDResult(*np.linalg.svd(A, full_matrices=full_matrices))


def _check_decomposed(name: str, A: Any, driver: Any) -> None:
    check_matrix(name, A)
    if driver is not None:
        raise RuntimeError(
            errors.message(f"{name}()", expected="no driver, which is for CUDA only", found=f"driver={driver!r}")
        )


def _svdvals_rule(g: Any, A: Any) -> Any:
    u, _, vh = on(svd, A, False)
    return np.matmul(scale_columns(u, g), vh)


def _check_svdvals(A: Tensor, *, driver: str | None = None) -> Any:
    _check_decomposed("linalg.svdvals", A, driver)
    return (A,)


@special(
    home="linalg",
    checks=_check_svdvals,
    node="LinalgSvdBackward0",
    batch="leading",
    A=_svdvals_rule,
    numpy={np.linalg.svdvals: lambda x: svdvals(x)},
    samples=_rectangles,
    refused=[*NO_MATRIX, S(M(2, 2), driver="gesvd")],
)
def svdvals(A: Any) -> Any:
    """The singular values, descending. ``dS = Re(diag(U^H dA V))``, even if some of them are equal."""
    finite = np.isfinite(A).all((-2, -1), keepdims=True)
    found = np.linalg.svd(np.where(finite, A, 0), compute_uv=False)
    return np.where(finite[..., 0], found, np.nan).astype(found.dtype)


# Eigenvalues of Hermitian matrices ------------------------------------------------------------------------------------


def _check_uplo(name: str, uplo: Any) -> Any:
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise (RuntimeError if isinstance(uplo, str) else TypeError)(
            errors.message(f"{name}()", expected="UPLO to be 'L' or 'U'", found=repr(uplo))
        )
    return uplo.upper()


def _eigh_rule(g: Any, out0: Any, out1: Any) -> Any:
    # dV = V ((V^H dA V) / E), with E the differences of the eigenvalues
    of_values, of_vectors = g
    if of_vectors is None:
        return None if of_values is None else _from_values(of_values, out1)
    core = _phase_free(np.matmul(adjoint(out1), of_vectors), "linalg.eigh")
    # half of the skew part: the gradient is Hermitian
    core = np.true_divide(np.multiply(_skew(core), 0.5), _differences(out0))
    core = with_diagonal(core, np.zeros_like(out0) if of_values is None else of_values)
    return np.matmul(out1, np.matmul(core, adjoint(out1)))


def _from_values(g: Any, vectors: Any) -> Any:
    return np.matmul(scale_columns(vectors, g), adjoint(vectors))


def _hermitian_samples() -> list[Sample]:
    return [*squares("hermitian"), S(M(3, 3, domain="definite"), "U"), S(M(2, 2, 2, domain="hermitian"), UPLO="u")]


_NO_UPLO = [*NO_SQUARE, S(M(2, 2), "x"), S(M(2, 2), UPLO=1)]


@special(
    home="linalg",
    batch="matrices",
    numpy={np.linalg.eigh: lambda a, UPLO="L": eigh(a, UPLO)},
    saved={"eigenvalues": "out0", "eigenvectors": "out1"},
    conjugate=False,
    A=_eigh_rule,
    samples=_hermitian_samples,
    refused=_NO_UPLO,
    differs=[EMPTY],
)
def eigh(A: Any, UPLO: str = "L") -> tuple[Any, Any]:
    """``A = V diag(L) V^H`` of Hermitian matrices: eigenvalues, real and ascending, and orthonormal eigenvectors.

    Only the lower triangle of A is read, or the upper with UPLO "U". Returns a named tuple of ``eigenvalues`` and
    ``eigenvectors``. The gradient exists where the eigenvalues are distinct, for losses that do not depend on the signs
    (phases) of the vectors.

    >>> import pullback
    >>> pullback.linalg.eigh(pullback.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])
    """
    check_matrix("linalg.eigh", A, square=True)
    return EighResult(*np.linalg.eigh(A, _check_uplo("linalg.eigh", UPLO)))


@special(
    home="linalg",
    batch="matrices",
    node="LinalgEighBackward0",
    numpy={np.linalg.eigvalsh: lambda a, UPLO="L": eigvalsh(a, UPLO)},
    A=lambda g, A, UPLO: _from_values(g, on(eigh, A, UPLO)[1]),
    samples=_hermitian_samples,
    refused=_NO_UPLO,
    differs=[EMPTY],
)
def eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of Hermitian matrices, ascending. ``dL = diag(V^H dA V)``, even if some of them are equal."""
    check_matrix("linalg.eigvalsh", A, square=True)
    return np.linalg.eigvalsh(A, _check_uplo("linalg.eigvalsh", UPLO))


# Eigenvalues of any matrices ------------------------------------------------------------------------------------------


def _eig_rule(g: Any, out0: Any, out1: Any) -> Any:
    # The vectors have length 1: the part of the cotangent along them is projected out.
    of_values, of_vectors = g
    vh = adjoint(out1)
    if of_vectors is None:
        return None if of_values is None else on(_solve_or_nan, vh, scale_rows(vh, of_values))
    core = _phase_free(np.matmul(vh, of_vectors), "linalg.eig")
    core = np.subtract(core, scale_columns(np.matmul(vh, out1), np.real(diagonal_of(core))))
    core = np.true_divide(core, conj(_differences(out0)))
    core = with_diagonal(core, np.zeros_like(out0) if of_values is None else of_values)
    return on(_solve_or_nan, vh, np.matmul(core, vh))


@special(
    home="linalg",
    batch="matrices",
    numpy={np.linalg.eig: lambda a: eig(a)},
    saved={"eigenvalues": "out0", "eigenvectors": "out1"},
    conjugate=False,
    out="converted",
    A=_eig_rule,
    samples=squares,
    refused=NO_SQUARE,
)
def eig(A: Any) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of length 1, ``A V = V diag(L)``, always complex; in no particular order.

    Returns a named tuple of ``eigenvalues`` and ``eigenvectors``. The gradient exists where the eigenvalues are
    distinct, for losses that do not depend on the phases of the vectors.

    >>> import pullback
    >>> pullback.linalg.eig(pullback.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    check_matrix("linalg.eig", A, square=True)
    dtype = dtypes.complex_of(A.dtype)
    return EigResult(*(part.astype(dtype) for part in np.linalg.eig(A)))


def _eigvals_rule(g: Any, A: Any) -> Any:
    vh = adjoint(on(eig, A)[1])
    return on(_solve_or_nan, vh, scale_rows(vh, g))


@special(
    home="linalg",
    batch="matrices",
    node="LinalgEigBackward0",
    numpy={np.linalg.eigvals: lambda a: eigvals(a)},
    conjugate=False,  # the eigenvalues of the conjugate may come in another order
    A=_eigvals_rule,
    samples=squares,
    refused=NO_SQUARE,
)
def eigvals(A: Any) -> Any:
    """The eigenvalues, always complex, in no particular order. ``dL = diag(V^-1 dA V)``."""
    check_matrix("linalg.eigvals", A, square=True)
    return np.linalg.eigvals(A).astype(dtypes.complex_of(A.dtype))
