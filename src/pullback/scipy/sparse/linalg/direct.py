"""Sparse systems solved by factorisation: `spsolve`, `splu`, `factorized`, `spsolve_triangular`.

The factorisation of the forward serves the adjoint system, and all derivatives of higher order. Each solution is a
`LinearEquation`: with ``w = A^-H g`` the gradient of b is w, and that of the value at ``(i, j)`` is
``-sum_k w[i, k] conj(x[j, k])``, computed at the nonzeros alone (Giles, Collected matrix derivative results, 2008).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from .... import errors
from ....ops.index.subscripts import pick_at
from ....ops.sparse.coo import SparseTensor
from ....ops.sparse.pattern import Pattern
from ....table.calls import on
from ....tensor.tensor import Tensor
from ...array_nodes import Array, floating
from ...mirror import mirrors
from ...solutions import LinearEquation
from ...user_functions import plain_setting
from ..sparse_arrays import SparseArray, product, sparse


class Factors:
    """The factorisations of matrices with one pattern: one for each set of values, made when it is first needed."""

    def __init__(self, where: str, pattern: Pattern, **options: Any) -> None:
        self.where, self.pattern, self.options = where, pattern, options
        self._made: dict[tuple[bytes, str], Any] = {}

    def of(self, values: Array) -> Any:
        """SciPy's factorisation for these values."""
        key = values.tobytes(), values.dtype.char
        if key not in self._made:
            by_columns, order = self.pattern.compressed(1)
            parts = values[order], by_columns.across.astype(np.int32), by_columns.ends.astype(np.int32)
            try:
                self._made[key] = scipy.sparse.linalg.splu(
                    scipy.sparse.csc_array(parts, shape=self.pattern.size), **self.options
                )
            except RuntimeError as error:
                if "singular" not in str(error):
                    raise
                raise errors.LinAlgError(
                    errors.message(
                        f"{self.where}: {error}",
                        expected="a regular matrix",
                        do="fix the unknowns that no equation determines, or add a small multiple of the identity",
                    )
                ) from None
        return self._made[key]

    def solve(self, adjoint: bool, b: Array, values: Array) -> Array:
        """Solve with the matrix of these values, or with its conjugate transpose."""
        kind = np.result_type(values.dtype, b.dtype, np.float32)
        split = kind.kind == "c" and values.dtype.kind != "c"  # a real matrix: the parts are solved by themselves
        factor = self.of(values.astype(kind.char.lower() if split else kind, copy=False))
        if not split:
            found: Array = factor.solve(np.asfortranarray(b, kind), "H" if adjoint else "N")
            return found
        columns = b.reshape(b.shape[0], -1)
        parts = factor.solve(np.asfortranarray(np.hstack([columns.real, columns.imag])), "H" if adjoint else "N")
        real, imaginary = np.hsplit(parts, 2)
        return (real + 1j * imaginary).astype(kind).reshape(b.shape)

    def equation(self) -> LinearEquation:
        """The equation ``A x = b`` of b and the values."""
        return LinearEquation(self.solve, functools.partial(product, self.pattern), columns=True, mixed=True)


def _system(where: str, A: Any) -> SparseArray:
    found = sparse(where, A)
    rows, columns = found.shape
    if rows != columns:
        raise ValueError(f"matrix must be square (has shape {found.shape})")
    return found


def right_side(where: str, n: int, b: Any) -> Tensor:
    """The right-hand side, dense, with n rows."""
    if isinstance(b, (SparseArray, SparseTensor)) or scipy.sparse.issparse(b):
        raise TypeError(errors.message(f"{where}: b", expected="a dense array", found="a sparse one", do="b.toarray()"))
    t = floating(b)
    if t.dim() not in (1, 2) or t.shape[0] != n:
        raise ValueError(f"matrix - rhs dimension mismatch ({(n, n)} - {t.shape[0] if t.dim() else 0})")
    return t


@mirrors(
    "sparse.linalg.spsolve",
    derivative="adjoint system, with the factorisation of the forward; values' gradient at the nonzeros",
    limits="b is dense; use_umfpack has no effect: SuperLU solves",
)
def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Tensor:
    """The solution of the sparse system ``A x = b``.

    Args:
        A: a sparse matrix with values that may require grad: of `pullback.scipy.sparse`, or a sparse tensor; SciPy's,
            which is a constant; or a dense one.
        b: of shape ``(n,)``, or ``(n, k)`` with any number of columns. For ``(n, 1)`` the result has shape ``(n,)``, as
            SciPy's.
        permc_spec: SuperLU's order of columns.

    The gradient of b is ``w = A^-H g``, that of the values ``-w x^H`` at the nonzeros.

    Raises:
        LinAlgError: the matrix is singular.
        ValueError: as SciPy's, for shapes that do not fit.

    >>> import pullback
    >>> from pullback.scipy.sparse import diags_array
    >>> from pullback.scipy.sparse.linalg import spsolve
    >>> d = pullback.tensor([2.0, 4.0], requires_grad=True)
    >>> x = spsolve(diags_array(d), pullback.tensor([2.0, 2.0]))
    >>> x.sum().backward()
    >>> d.grad
    tensor([-0.5000, -0.1250])
    """
    matrix = _system("spsolve", A)
    right = right_side("spsolve", matrix.shape[0], b)
    if right.dim() == 2 and right.shape[1] == 1:
        right = right[:, 0]
    return Factors("spsolve", matrix.pattern, permc_spec=permc_spec).equation()(right, matrix.data)


@mirrors(
    "sparse.linalg.splu",
    derivative="`solve` is differentiable in the values of A and in its argument",
    limits="L and U are constants, and refused where A requires grad",
)
def splu(
    A: Any,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: dict[str, Any] | None = None,
) -> SuperLU:
    """The LU factorisation of a sparse matrix: an object whose ``solve(b)`` solves ``A x = b``.

    Its arguments are SciPy's; A may be any matrix that `spsolve` takes. Each right-hand side and all its derivatives
    use the one factorisation.

    >>> import pullback
    >>> from pullback.scipy.sparse import csr_array
    >>> from pullback.scipy.sparse.linalg import splu
    >>> a = pullback.tensor([[2.0, 1.0], [0.0, 4.0]], requires_grad=True)
    >>> lu = splu(csr_array(a))
    >>> lu.solve(pullback.tensor([4.0, 4.0])), lu.solve(pullback.tensor([4.0, 4.0]), "T")
    (tensor([1.5000, 1.0000], grad_fn=<SolutionBackward>), tensor([2.0000, 0.5000], grad_fn=<SolutionBackward>))
    """
    thresh, relax, panel_size = plain_setting(
        "splu", diag_pivot_thresh=diag_pivot_thresh, relax=relax, panel_size=panel_size
    )
    known = {"permc_spec": permc_spec, "diag_pivot_thresh": thresh, "relax": relax, "panel_size": panel_size}
    return SuperLU(_system("splu", A), options=options, **known)


class SuperLU:
    """A factorised matrix, as SciPy's class of this name; `splu` makes it."""

    def __init__(self, matrix: SparseArray, **options: Any) -> None:
        self._matrix = matrix
        self._factors = Factors("splu", matrix.pattern, **options)
        if type(matrix.data._data) is np.ndarray:
            self._factors.of(np.array(matrix.data._data))  # SciPy's errors come now

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self._matrix.shape

    def solve(self, rhs: Any, trans: str = "N") -> Tensor:
        """The solution of ``A x = rhs``; of ``A^T x = rhs`` for trans="T", of ``A^H x = rhs`` for "H"."""
        if trans not in ("N", "T", "H"):
            raise ValueError("trans must be N, T, or H")
        right = right_side("splu", self.shape[0], rhs)
        equation = self._factors.equation()
        if trans == "N":
            return equation(right, self._matrix.data)
        if trans == "H":
            return equation.turned()(right, self._matrix.data)
        found: Any = equation.turned()(np.conj(right), self._matrix.data)
        return found.conj()

    def __getattr__(self, name: str) -> Any:
        if name in ("nnz", "perm_r", "perm_c"):
            return getattr(self._factors.of(self._matrix.data._data), name)
        if name in ("L", "U"):
            if self._matrix.data.requires_grad:
                raise AttributeError(
                    errors.message(
                        f"splu: {name} of a matrix that requires grad has no derivative",
                        do="factorise the detached matrix, or use pullback.linalg.lu of a dense one",
                    )
                )
            return getattr(self._factors.of(self._matrix.data._data), name)
        raise AttributeError(f"'SuperLU' object has no attribute {name!r}")


@mirrors("sparse.linalg.factorized", derivative="as `splu`")
def factorized(A: Any) -> Callable[[Any], Tensor]:
    """A function that solves ``A x = b`` for each b, with one factorisation.

    >>> import pullback
    >>> from pullback.scipy.sparse import diags_array
    >>> from pullback.scipy.sparse.linalg import factorized
    >>> factorized(diags_array(pullback.tensor([2.0, 4.0])))(pullback.tensor([1.0, 1.0]))
    tensor([0.5000, 0.2500])
    """
    return SuperLU(_system("factorized", A)).solve


@mirrors("sparse.linalg.spsolve_triangular", derivative="adjoint triangular system; values' gradient at the nonzeros")
def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Tensor:
    """The solution of ``A x = b`` for a sparse triangular A. Only the triangle is read.

    >>> import pullback
    >>> from pullback.scipy.sparse import csr_array
    >>> from pullback.scipy.sparse.linalg import spsolve_triangular
    >>> spsolve_triangular(csr_array(pullback.tensor([[2.0, 0.0], [1.0, 4.0]])), pullback.tensor([2.0, 5.0]))
    tensor([1., 1.])
    """
    lower, unit = plain_setting("spsolve_triangular", lower=lower, unit_diagonal=unit_diagonal)
    matrix = _system("spsolve_triangular", A)
    right = right_side("spsolve_triangular", matrix.shape[0], b)
    rows, columns = matrix.pattern.indices
    (kept,) = np.nonzero((rows > columns if lower else rows < columns) | ((rows == columns) & (not unit)))
    inside = Pattern(matrix.pattern.indices[:, kept], matrix.shape, True)

    def by(adjoint: bool, b: Array, values: Array) -> Array:
        found = inside.matrix(values)
        found = found.conj().T.tocsr() if adjoint else found
        return scipy.sparse.linalg.spsolve_triangular(found, b, bool(lower) is not adjoint, unit_diagonal=bool(unit))

    def times(adjoint: bool, x: Tensor, values: Tensor) -> Tensor:
        found = product(inside, adjoint, x, values)
        return found + x if unit else found

    return LinearEquation(by, times, columns=True)(right, on(pick_at, matrix.data, (kept,)))


__all__ = ["Factors", "SuperLU", "factorized", "right_side", "splu", "spsolve", "spsolve_triangular"]
