"""Dense systems, inverses and factorisations under SciPy's arguments: operations of this library, mapped.

SciPy reads one triangle of a matrix that is said to be symmetric or triangular. So do these, and the gradient of the
other triangle is 0: the derivative is that of SciPy's function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...linalg import lstsq as _lstsq
from ...linalg import lu as _lu
from ...linalg import lu_factor as _lu_factor
from ...linalg import lu_solve as _lu_solve
from ...linalg import matrix_norm, vector_norm
from ...linalg import solve_triangular as _solve_triangular
from ...ops.make.conversion import to
from ...tensor.tensor import Tensor, wrap
from ..solutions import alike
from .mapping import adjoint, completed, mapped, square

_SOLVED = "dX = A^-1 (dB - dA X)"
_CHOLESKY = "dL = L F, F: the lower triangle of L^-1 dA L^-H, with half of its diagonal"
_LU = "dL = L F_L, dU = F_U U; F_L and F_U: the strict lower and the upper triangle of L^-1 P^T dA U^-1"

_STRUCTURES: dict[Any, Callable[[Any, bool], Any]] = {
    **dict.fromkeys((None, "gen", "general", "banded"), lambda a, lower: a),
    **dict.fromkeys(("sym", "symmetric"), lambda a, lower: completed(a, lower, hermitian=False)),
    **dict.fromkeys(("her", "hermitian", "pos", "positive definite"), completed),
    "upper triangular": lambda a, lower: np.triu(a),
    "lower triangular": lambda a, lower: np.tril(a),
    "diagonal": lambda a, lower: np.triu(np.tril(a)),
    "tridiagonal": lambda a, lower: np.triu(np.tril(a, 1), -1),
}


def _structured(a: Any, assume_a: Any, lower: Any) -> Any:
    if assume_a not in _STRUCTURES:
        raise ValueError(f"{assume_a} is not a recognized matrix structure")
    return _STRUCTURES[assume_a](a, bool(lower))


@mapped("solve", "a b", derivative=_SOLVED)
def solve(a: Any, b: Any, lower: Any, assume_a: Any, transposed: Any) -> Any:
    """The solution of ``A x = b``; of ``A^T x = b`` with `transposed`. assume_a says which part of A is read.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve
    >>> solve(pullback.tensor([[2.0, 9.0], [1.0, 4.0]]), pullback.tensor([2.0, 5.0]), assume_a="lower triangular")
    tensor([1., 1.])
    """
    a = _structured(square("solve", a), assume_a, lower)
    if transposed:
        if a.dtype.is_complex:
            raise NotImplementedError(
                "scipy.linalg.solve can currently not solve a^T x = b or a^H x = b for complex a."
            )
        a = np.swapaxes(a, -1, -2)
    return np.linalg.solve(*alike(a, b))


@mapped("inv", "a", derivative="d(A^-1) = -A^-1 dA A^-1")
def inv(a: Any, assume_a: Any, lower: Any) -> Any:
    """The inverse. assume_a says which part of the matrix is read.

    >>> import pullback
    >>> from pullback.scipy.linalg import inv
    >>> inv(pullback.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return np.linalg.inv(_structured(square("inv", a), assume_a, lower))


@mapped("det", "a", derivative="d det A = det A tr(A^-1 dA)")
def det(a: Any) -> Any:
    """The determinant.

    >>> import pullback
    >>> from pullback.scipy.linalg import det
    >>> det(pullback.tensor([[2.0, 0.0], [0.0, 4.0]])).float()
    tensor(8.)
    """
    a = square("det", a)
    return np.linalg.det(to(a, np.complex128 if a.is_complex() else np.float64))  # as SciPy, of float32 as well


@mapped("solve_triangular", "a b", derivative=_SOLVED)
def solve_triangular(a: Any, b: Any, trans: Any, lower: Any, unit_diagonal: Any) -> Any:
    """The solution of ``A x = b``, ``A^T x = b`` or ``A^H x = b`` (trans 0, 1, 2 or "N", "T", "C") for a triangle A.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve_triangular
    >>> solve_triangular(pullback.tensor([[2.0, 0.0], [1.0, 4.0]]), [2.0, 5.0], lower=True)
    tensor([1., 1.], dtype=pullback.float64)
    """
    a, b = alike(square("solve_triangular", a), b)
    if trans in (1, 2, "T", "C"):
        a, lower = adjoint(a) if trans in (2, "C") else np.swapaxes(a, -1, -2), not lower
    return _on_columns(lambda b: _solve_triangular(a, b, upper=not lower, unitriangular=bool(unit_diagonal)), b)


def _on_columns(solver: Callable[[Any], Any], b: Any) -> Any:
    """The solutions for the columns of b, or for b if it is a vector."""
    return solver(b.unsqueeze(-1)).squeeze(-1) if b.dim() == 1 else solver(b)


@mapped(
    "lstsq",
    "a b",
    derivative="dX = A^+ (dB - dA X) + (A^H A)^-1 dA^H (B - A X)",
    limits="of the solution and the residuals; rank and singular values are constants",
)
def lstsq(a: Any, b: Any, cond: Any) -> tuple[Tensor, Tensor, int, Tensor]:
    """The solution of least squares: ``(x, residues, rank, s)``, as SciPy's.

    >>> import pullback
    >>> from pullback.scipy.linalg import lstsq
    >>> lstsq(pullback.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), [1.0, 2.0, 4.0])[0].float()
    tensor([1., 3.])
    """
    a, b = alike(a, b)
    rcond = float(np.finfo(a._data.dtype).eps) if cond is None else float(cond)
    found = _lstsq(a, b, rcond, driver="gelsd")
    rest = found.residuals
    if b.dim() == 1 and rest.numel():
        rest = rest.reshape(())
    rank = found.rank
    return (
        found.solution,
        rest,
        int(rank.item()) if type(rank._data) is np.ndarray and rank.numel() == 1 else rank,
        found.singular_values,
    )


# Factorisations -------------------------------------------------------------------------------------------------------


@mapped("cholesky", "a", derivative=_CHOLESKY, limits="of the triangle that is read")
def cholesky(a: Any, lower: Any) -> Any:
    """The upper factor R of ``A = R^H R``, or with `lower` L of ``A = L L^H``.

    >>> import pullback
    >>> from pullback.scipy.linalg import cholesky
    >>> cholesky(pullback.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 1.],
            [0., 2.]])
    """
    found = np.linalg.cholesky(completed(square("cholesky", a), bool(lower)))
    return found if lower else adjoint(found)


@mapped("cho_factor", "a", derivative=_CHOLESKY, limits="the other triangle of the factor is 0")
def cho_factor(a: Any, lower: Any) -> tuple[Any, bool]:
    """Cholesky's factor for `cho_solve`, with the flag which triangle it is.

    >>> import pullback
    >>> from pullback.scipy.linalg import cho_factor, cho_solve
    >>> cho_solve(cho_factor(pullback.tensor([[4.0, 2.0], [2.0, 5.0]])), [6.0, 7.0])
    tensor([1., 1.], dtype=pullback.float64)
    """
    found = np.linalg.cholesky(completed(square("cho_factor", a), bool(lower)))
    return (found if lower else adjoint(found)), bool(lower)


@mapped("cho_solve", "c_and_lower b", derivative=f"{_SOLVED}, A = L L^H")
def cho_solve(c_and_lower: Any, b: Any) -> Any:
    """The solution of ``A x = b`` from the result of `cho_factor`.

    >>> import pullback
    >>> from pullback.scipy.linalg import cho_solve
    >>> cho_solve(([[2.0]], True), pullback.tensor([8.0]))
    tensor([2.], dtype=pullback.float64)
    """
    c, lower = c_and_lower
    c, b = alike(square("cho_solve", c), b)
    if c.shape[-1] != b.shape[0 if b.dim() == 1 else -2]:
        raise ValueError(f"incompatible dimensions ({tuple(c.shape)} and {tuple(b.shape)})")

    def solver(b: Tensor) -> Tensor:
        first, second = (c, adjoint(c)) if lower else (adjoint(c), c)
        found: Tensor = _solve_triangular(second, _solve_triangular(first, b, upper=False), upper=True)
        return found

    return _on_columns(solver, b)


@mapped("lu_factor", "a", derivative=_LU, limits="pivots are constants")
def lu_factor(a: Any) -> tuple[Tensor, Tensor]:
    """The factors L and U in one matrix, and the pivots, which count from 0; for `lu_solve`.

    >>> import pullback
    >>> from pullback.scipy.linalg import lu_factor, lu_solve
    >>> lu_solve(lu_factor(pullback.tensor([[0.0, 2.0], [4.0, 0.0]])), [2.0, 4.0])
    tensor([1., 1.], dtype=pullback.float64)
    """
    found = _lu_factor(a)
    return found.LU, found.pivots - 1


@mapped("lu_solve", "lu_and_piv b", derivative=f"{_SOLVED}, A = P L U")
def lu_solve(lu_and_piv: Any, b: Any, trans: Any) -> Any:
    """The solution of ``A x = b``, ``A^T x = b`` or ``A^H x = b`` (trans 0, 1, 2) from the result of `lu_factor`.

    >>> import pullback
    >>> from pullback.scipy.linalg import lu_factor, lu_solve
    >>> lu_solve(lu_factor([[0.0, 2.0], [4.0, 0.0]]), pullback.tensor([4.0, 2.0]), trans=1)
    tensor([1., 1.], dtype=pullback.float64)
    """
    lu, pivots = lu_and_piv
    lu, b = alike(lu, b)
    if lu.shape[-2] != b.shape[0 if b.dim() == 1 else -2]:
        raise ValueError(f"Shapes of lu {tuple(lu.shape)} and b {tuple(b.shape)} are incompatible")
    order = (pivots if isinstance(pivots, Tensor) else wrap(np.asarray(pivots, np.int32))) + 1
    if trans not in (0, 1, 2):
        raise ValueError("illegal value in 6th argument of internal getrs")
    flip = np.conj if trans == 1 else lambda x: x  # A^T x = b is A^H conj(x) = conj(b)
    found = _on_columns(lambda b: _lu_solve(lu, order, b, adjoint=trans != 0), flip(b))
    return flip(found)


@mapped("lu", "a", derivative=_LU, limits="the permutation is constant")
def lu(a: Any, permute_l: Any, p_indices: Any) -> Any:
    """``A = P L U``: P, L and U; ``P L`` and U with `permute_l`; the order of rows for P with `p_indices`.

    >>> import pullback
    >>> from pullback.scipy.linalg import lu
    >>> lu(pullback.tensor([[1.0, 2.0], [2.0, 2.0]]))[2]
    tensor([[2., 2.],
            [0., 1.]])
    """
    p, lower, upper = _lu(a)
    if permute_l:
        return p @ lower, upper
    if p_indices:
        return np.argmax(np.real(p), axis=-1), lower, upper
    return p, lower, upper


# Norms ----------------------------------------------------------------------------------------------------------------


@mapped(
    "norm",
    "a",
    derivative="'fro': Re tr(A^H dA) / norm; 2, -2, 'nuc': by ds_i = Re(u_i^H dA v_i); others: by absolute values",
)
def norm(a: Any, ord: Any, axis: Any, keepdims: Any) -> Any:
    """The norm of a vector or a matrix, or along axes. Without `ord` the 2-norm of all elements.

    >>> import pullback
    >>> from pullback.scipy.linalg import norm
    >>> norm(pullback.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if axis is None and (ord is None or (ord in ("f", "fro") and a.dim() == 2) or (ord == 2 and a.dim() == 1)):
        found = vector_norm(a)
        return found.reshape((1,) * a.dim()) if keepdims else found
    if axis is None and a.dim() not in (1, 2):
        raise ValueError("Improper number of dimensions to norm.")
    axes = tuple(range(a.dim())) if axis is None else (axis,) if np.ndim(axis) == 0 else tuple(axis)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"Invalid norm order '{ord}' for vectors")
        return vector_norm(a, 2 if ord is None else ord, axes[0], bool(keepdims))
    if len(axes) != 2:
        raise ValueError(errors.message("norm: axis", expected="one or two axes", found=repr(axis)))
    if ord is None:
        return vector_norm(a, 2, axes, bool(keepdims))
    found = matrix_norm(a, ord, axes, bool(keepdims))
    lapack = axis is None and ord in (1, np.inf) and not keepdims
    return to(found, np.float64) if lapack else found  # SciPy asks LAPACK, and gets a double


__all__ = [
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "norm",
    "solve",
    "solve_triangular",
]
