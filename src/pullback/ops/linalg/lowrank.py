"""The largest singular values of big matrices, and principal components, by random projections.

A few random combinations of the columns, improved by passes over the matrix, span nearly the same space as its largest
singular vectors; the rest is the singular value decomposition of a small matrix. Source: Halko, Martinsson and Tropp,
Finding structure with randomness, SIAM Review 53, 2011, https://arxiv.org/abs/0909.4061, algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from typing import Any

from ... import errors
from ...table.entry import alias
from ...table.operands import check_matrix
from ...tensor.tensor import Tensor, need_tensor
from ..make.random import randn
from ..products.matmul import matmul
from . import cholesky_qr, spectral
from .last_axes import adjoint


def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Any = None) -> Any:
    """U, S and V of rank `q` with ``U diag(S) V^H`` near A, or near ``A - M``: a tuple.

    A: of shape (..., m, n). q: somewhat more than the wanted rank. niter: the number of passes that improve the result.
    The default generator draws the random numbers. If the rank of A is at most q, the result is exact.

    >>> import pullback
    >>> x = pullback.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    >>> U, S, V = pullback.svd_lowrank(x, q=2)
    >>> S, pullback.allclose((U * S) @ V.mT, x, atol=1e-5)
    (tensor([3., 2.]), True)
    """
    check_matrix("svd_lowrank", need_tensor("svd_lowrank()", A))
    if M is not None:
        A = A - M
    m, n = A._data.shape[-2:]
    if m < n:
        V, S, U = _tall(adjoint(A), q, niter)
        return U, S, V
    return _tall(A, q, niter)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """The first `q` principal components of the rows of A, the columns of V: `svd_lowrank` of A minus its mean row.

    A: of shape (..., m, n). q: by default the smallest of 6, m and n. center: whether to subtract the mean. Returns U,
    S and V; ``S ** 2 / (m - 1)`` are the variances along the components. ValueError for a negative q or one above m or
    n, and for a negative niter.

    >>> import pullback
    >>> x = pullback.tensor([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    >>> U, S, V = pullback.pca_lowrank(x, q=1)
    >>> V.abs()
    tensor([[1.],
            [0.]])
    """
    check_matrix("pca_lowrank", need_tensor("pca_lowrank()", A))
    m, n = A._data.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(errors.message("pca_lowrank()", expected=f"q from 0 to {min(m, n)}", found=str(q)))
    if niter < 0:
        raise ValueError(errors.message("pca_lowrank()", expected="niter of at least 0", found=str(niter)))
    return svd_lowrank(A, q, niter, A.mean(-2, keepdim=True) if center else None)


def _tall(A: Tensor, q: int, niter: int) -> tuple[Any, Any, Any]:
    """U, S and V of a matrix with at least as many rows as columns."""
    turned = adjoint(A)
    basis = cholesky_qr.qr(matmul(A, randn(A._data.shape[-1], q, dtype=A.dtype, device=A.device)))[0]
    for _ in range(niter):
        basis = cholesky_qr.qr(matmul(turned, basis))[0]
        basis = cholesky_qr.qr(matmul(A, basis))[0]
    U, S, Vh = spectral.svd(matmul(adjoint(basis), A), full_matrices=False)
    return matmul(basis, U), S, adjoint(Vh)


# They draw random numbers, so they are not entries of the table: results of entries are compared with PyTorch's.
alias("svd_lowrank", svd_lowrank)
alias("pca_lowrank", pca_lowrank)
