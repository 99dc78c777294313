# Made from the table of operations by `pullback ops --stubs`; do not edit.
import builtins
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from .tensor.tensor import Tensor
_Other = builtins.complex | np.ndarray[Any, Any] | np.generic
from .errors import LinAlgError as LinAlgError
def cholesky(A: Tensor, *, upper: builtins.bool = ..., out: Any = ...) -> Tensor:
    """The lower triangular L with a positive diagonal and ``A = L L^H``, or the upper one with ``A = U^H U``."""
def cholesky_ex(A: Tensor, *, upper: builtins.bool = ..., check_errors: builtins.bool = ..., out: Any = ...) -> Any:
    """`cholesky` without an error for a matrix that is not positive-definite, unless `check_errors`."""
def cond(A: Tensor, p: Any = ..., *, out: Any = ...) -> Tensor:
    """The condition number ``|A| |A^-1|`` of matrix norms; p None, 2, -2: a ratio of singular values, for any matrix."""
def cross(input: Tensor, other: Tensor, *, dim: SupportsIndex = ..., out: Any = ...) -> Tensor:
    """The cross product of vectors of length 3 along `dim`; other axes broadcast. ``dc = da x b + a x db``."""
def det(A: Tensor, *, out: Any = ...) -> Tensor:
    """The determinant of square matrices. ``d det = tr(adj(A) dA)``, also for singular ones."""
def diagonal(A: Tensor, *, offset: SupportsIndex = ..., dim1: SupportsIndex = ..., dim2: SupportsIndex = ..., out: Any = ...) -> Tensor:
    """The diagonals of matrices, `offset` above the main one, as the last axis; a view, like `pullback.diagonal`."""
def eig(A: Tensor, *, out: Any = ...) -> Any:
    """Eigenvalues and eigenvectors of length 1, ``A V = V diag(L)``, always complex; in no particular order."""
def eigh(A: Tensor, UPLO: builtins.str = ..., *, out: Any = ...) -> Any:
    """``A = V diag(L) V^H`` of Hermitian matrices: eigenvalues, real and ascending, and orthonormal eigenvectors."""
def eigvals(A: Tensor, *, out: Any = ...) -> Tensor:
    """The eigenvalues, always complex, in no particular order. ``dL = diag(V^-1 dA V)``."""
def eigvalsh(A: Tensor, UPLO: builtins.str = ..., *, out: Any = ...) -> Tensor:
    """The eigenvalues of Hermitian matrices, ascending. ``dL = diag(V^H dA V)``, even if some of them are equal."""
def householder_product(A: Tensor, tau: Tensor, *, out: Any = ...) -> Tensor:
    """The first columns of a product of reflections ``H_i = I - tau_i v_i v_i^H``, as LAPACK's geqrf leaves them."""
def inv(A: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of square matrices; LinAlgError if one is singular. ``dX = -X dA X``."""
def inv_ex(A: Tensor, *, check_errors: builtins.bool = ..., out: Any = ...) -> Any:
    """`inv` without an error for a singular matrix, unless `check_errors`: its inverse is then NaN."""
def ldl_factor(A: Tensor, *, hermitian: builtins.bool = ..., out: Any = ...) -> Any:
    """The factors of symmetric matrices, or of Hermitian ones if `hermitian`, for `ldl_solve`: ``LD`` and ``pivots``."""
def ldl_factor_ex(A: Tensor, *, hermitian: builtins.bool = ..., check_errors: builtins.bool = ..., out: Any = ...) -> Any:
    """`ldl_factor` without an error, unless `check_errors`; returns ``info`` as well: 0, or the number of the first zero on the diagonal of D."""
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: builtins.bool = ..., out: Any = ...) -> Tensor:
    """X with ``A X = B``, from `ldl_factor` with the same `hermitian`; no derivative by LD. Needs SciPy."""
def lstsq(A: Tensor, B: Tensor, rcond: SupportsFloat | None = ..., *, driver: builtins.str | None = ..., out: Any = ...) -> Any:
    """The X of smallest norm that minimises the norm of ``A X - B``; the squared norms of its columns; and ranks."""
def lu(A: Tensor, *, pivot: builtins.bool = ..., out: Any = ...) -> Any:
    """``A = P L U``: P a permutation, L lower triangular with ones on its diagonal, U upper triangular."""
def lu_factor(A: Tensor, *, pivot: builtins.bool = ..., out: Any = ...) -> Any:
    """The LU factors of A in one matrix, ``LU``, and the exchanges of rows, ``pivots``, which count from 1."""
def lu_factor_ex(A: Tensor, *, pivot: builtins.bool = ..., check_errors: builtins.bool = ..., out: Any = ...) -> Any:
    """`lu_factor` without an error, unless `check_errors`; returns ``info`` as well: 0, or the number of the first zero on the diagonal of U."""
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: builtins.bool = ..., adjoint: builtins.bool = ..., out: Any = ...) -> Tensor:
    """X with ``A X = B``, or ``X A = B`` if not `left`, from the factors of `lu_factor`; with `adjoint`, A^H for A."""
def matmul(input: Tensor, other: Tensor | np.ndarray[Any, Any], *, out: Any = ...) -> Tensor:
    """The matrix product; vectors and batches of matrices as in NumPy. ``dA = g B^T``, ``dB = A^T g``."""
def matrix_exp(A: Tensor, *, out: Any = ...) -> Tensor:
    """The exponential of square matrices, ``I + A + A A / 2 + ...``; by scaling and squaring."""
def matrix_norm(A: Tensor, ord: Any = ..., dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """A norm of matrices, the axes `dim`: "fro", the root of the sum of squares; "nuc", 2, -2, the sum, the largest and the smallest of the singular values; 1, -1, the largest and the smallest sum of moduli in a column; inf, -inf, in a row."""
def matrix_power(A: Tensor, n: SupportsIndex, *, out: Any = ...) -> Tensor:
    """The product of n factors A, by squaring; of ``-n`` inverses if n is negative; the identity if it is 0."""
def matrix_rank(A: Tensor, tol: Any = ..., hermitian: builtins.bool = ..., *, atol: Any = ..., rtol: Any = ..., out: Any = ...) -> Tensor:
    """The number of singular values above ``max(atol, rtol * S[0])``, int64. Tolerances as in `pinv`; `tol` is atol."""
def multi_dot(tensors: Any, *, out: Any = ...) -> Tensor:
    """The product of two or more matrices, in the cheapest order; the first and the last may be vectors."""
def norm(input: Tensor, ord: Any = ..., dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """`vector_norm` over one dim, `matrix_norm` over two; without dim, the number of axes of the tensor decides."""
def pinv(A: Tensor, rcond: Any = ..., hermitian: builtins.bool = ..., *, atol: Any = ..., rtol: Any = ..., out: Any = ...) -> Tensor:
    """The pseudoinverse (Moore and Penrose); singular values up to ``max(atol, rtol * S[0])`` count as 0."""
def qr(A: Tensor, mode: builtins.str = ..., *, out: Any = ...) -> Any:
    """``A = Q R``: the columns of Q are orthonormal, R is upper triangular; a named tuple of ``Q`` and ``R``."""
def slogdet(A: Tensor, *, out: Any = ...) -> Any:
    """``sign`` and ``logabsdet`` with ``det(A) = sign * exp(logabsdet)``: no overflow; 0 and -inf if A is singular."""
def solve(A: Tensor, B: Tensor, *, left: builtins.bool = ..., out: Any = ...) -> Tensor:
    """X with ``A X = B``, or with ``X A = B`` if not `left`. ``dX = A^-1 (dB - dA X)``; LinAlgError if A is singular."""
def solve_ex(A: Tensor, B: Tensor, *, left: builtins.bool = ..., check_errors: builtins.bool = ..., out: Any = ...) -> Any:
    """`solve` without an error for a singular matrix, unless `check_errors`: its solution is then NaN."""
def solve_triangular(A: Tensor, B: Tensor, *, upper: builtins.bool, left: builtins.bool = ..., unitriangular: builtins.bool = ..., out: Any = ...) -> Tensor:
    """X with ``A X = B``, or ``X A = B`` if not `left`; only the upper or the lower triangle of A is read."""
def svd(A: Tensor, full_matrices: builtins.bool = ..., *, driver: builtins.str | None = ..., out: Any = ...) -> Any:
    """``A = U diag(S) Vh``: S real, descending; columns of U and rows of Vh orthonormal. A named tuple."""
def svdvals(A: Tensor, *, driver: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """The singular values, descending. ``dS = Re(diag(U^H dA V))``, even if some of them are equal."""
def tensorinv(A: Tensor, ind: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """The inverse of A as a matrix whose rows are its first `ind` axes."""
def tensorsolve(A: Tensor, B: Tensor, dims: Any = ..., *, out: Any = ...) -> Tensor:
    """X with ``tensordot(A, X, X.ndim) = B``, once the axes `dims` of A are moved to its end."""
def vander(x: Tensor, *, N: SupportsIndex | None = ..., out: Any = ...) -> Tensor:
    """Vandermonde matrices: a row for each element, with its powers 0 to N - 1. N: by default the number of elements."""
def vecdot(x: Tensor, y: Tensor, *, dim: SupportsIndex = ..., out: Any = ...) -> Tensor:
    """``sum(conj(x) * y)`` along `dim`; other axes broadcast."""
def vector_norm(x: Tensor, ord: Any = ..., dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """``(sum |x|^ord)^(1/ord)`` over `dim` (default: all); inf and -inf are the largest and the smallest modulus, 0 counts the elements that are not 0. The gradient at the origin is 0."""
