"""Orthogonal, spectral and singular value decompositions under SciPy's arguments, mapped to `pullback.linalg`.

The derivatives of vectors exist where the values are distinct, for losses that do not depend on signs or phases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ... import errors
from ...autograd.function import Function
from ...interpreters.batched import Vmap
from ...linalg import eig as _eig
from ...linalg import eigh as _eigh
from ...linalg import eigvals as _eigvals
from ...linalg import eigvalsh as _eigvalsh
from ...linalg import pinv as _pinv
from ...linalg import qr as _qr
from ...linalg import svd as _svd
from ...linalg import svdvals as _svdvals
from ...ops.shape.axes import movedim
from ...ops.shape.joining import stack
from ...table.levels import Lifted
from ...tensor.tensor import Tensor
from ..array_nodes import array_of, tensor_of
from ..user_functions import bare
from .mapping import adjoint, completed, mapped, square

_PSEUDO = "d(A^+) = -A^+ dA A^+ + A^+ A^+H dA^H (I - A A^+) + (I - A^+ A) dA^H A^+H A^+"
_VECTORS = "vectors where values are distinct, up to signs (phases)"


def _seen(setting: str, t: Tensor) -> Any:
    """The values of a tensor, also in forward mode, for a result that depends on them by steps.

    RuntimeError for the samples of `vmap`, whose results would differ in shape.
    """
    inner: Any = t
    while isinstance(inner, Lifted):
        level = inner._data.level
        if isinstance(level, Vmap) and level.varies(inner):
            raise RuntimeError(
                errors.message(
                    f"{setting} in vmap: what it gives differs from sample to sample", do="loop over the samples"
                )
            )
        inner = inner._data.inside
    return bare(t)


class _Order(Function):
    """The order of columns in a QR decomposition with pivoting. It is constant while the matrix moves a little."""

    @staticmethod
    def forward(a: Tensor) -> Any:
        """Ask SciPy."""
        return tensor_of(scipy.linalg.qr(array_of(a), mode="r", pivoting=True)[-1].astype(np.int64))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """There is no derivative."""
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        """There is none."""
        return None

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        """There is none."""
        return None

    @staticmethod
    def vmap(info: Any, in_dims: Any, a: Tensor) -> Any:
        """One order for each matrix."""
        a = movedim(a, in_dims[0], 0)
        return stack([_Order.apply(a[i]) for i in range(info.batch_size)]), 0


@mapped(
    "qr",
    "a",
    derivative="dQ = Q W + (I - Q Q^H) dA R^-1, dR = Q^H dA - W R; W = -W^H, its lower triangle that of Q^H dA R^-1",
    limits="the columns' order is constant; Q of mode 'full' has none where there are more rows; mode 'raw' is "
    "not here; no batch with pivoting",
)
def qr(a: Any, mode: Any, pivoting: Any) -> Any:
    """``A = Q R``, or ``A[:, p] = Q R`` with `pivoting`: ``(Q, R)``, ``(R,)`` for mode "r", and p at the end.

    mode: "full", "economic" or "r". Where A has more rows than columns, Q of "full" has no gradient, as torch's
    "complete"; R has one, because it is the one of "economic" with rows of zeros.

    >>> import pullback
    >>> from pullback.scipy.linalg import qr
    >>> q, r = qr(pullback.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> (q @ r).float()
    tensor([[3.0000, 1.0000],
            [4.0000, 2.0000]])
    """
    if mode not in ("full", "economic", "r"):
        kind = "is not here" if mode == "raw" else "is unknown"
        raise ValueError(errors.message(f"qr: mode {mode!r} {kind}", expected="'full', 'economic' or 'r'"))
    order: tuple[Any, ...] = ()
    if pivoting:
        columns = _Order.apply(a)
        a, order = np.take_along_axis(a, np.broadcast_to(columns[None, :], a.shape), 1), (columns,)
    if mode == "r":
        return _tall(_qr(a).R, a), *order
    if mode == "full" and a.shape[-2] > a.shape[-1]:
        return _qr(a, "complete").Q, _tall(_qr(a).R, a), *order
    return *_qr(a), *order


def _tall(r: Any, a: Any) -> Any:
    """R with rows of zeros, as many as A has rows."""
    rows = a.shape[-2] - r.shape[-2]
    return np.concatenate([r, np.zeros_like(a[..., :rows, :])], axis=-2) if rows > 0 else r


@mapped("svd", "a", derivative="ds_i = Re(u_i^H dA v_i); dU and dV by the factors 1 / (s_j^2 - s_i^2)", limits=_VECTORS)
def svd(a: Any, full_matrices: Any, compute_uv: Any) -> Any:
    """``A = U diag(s) Vh``: ``(U, s, Vh)``, or s alone without `compute_uv`.

    >>> import pullback
    >>> from pullback.scipy.linalg import svd
    >>> svd(pullback.tensor([[0.0, 3.0], [2.0, 0.0]]), compute_uv=False).float()
    tensor([3., 2.])
    """
    return tuple(_svd(a, bool(full_matrices))) if compute_uv else _svdvals(a)


@mapped("svdvals", "a", derivative="ds_i = Re(u_i^H dA v_i)")
def svdvals(a: Any) -> Any:
    """The singular values, descending.

    >>> import pullback
    >>> from pullback.scipy.linalg import svdvals
    >>> svdvals(pullback.tensor([[0.0, 3.0], [2.0, 0.0]])).float()
    tensor([3., 2.])
    """
    return _svdvals(a)


_TYPES = {1: "A v = w B v", 2: "A B v = w v", 3: "B A v = w v"}


def _divided(factor: Any, x: Any) -> Any:
    return np.linalg.solve(factor, x)


def _hermitian(a: Any, b: Any, lower: Any, type: Any, values_only: bool) -> tuple[Any, Any]:
    """All eigenvalues and eigenvectors of a problem with a Hermitian A and a positive definite B, by Cholesky."""
    a = completed(a, bool(lower))
    if b is None:
        return (_eigvalsh(a), None) if values_only else tuple(_eigh(a))
    if type not in _TYPES:
        raise ValueError(f'"type" keyword only accepts 1, 2, and 3, not {type}')
    factor: Any = np.linalg.cholesky(completed(square("eigh", b), bool(lower)))
    half: Any = _divided(factor, adjoint(_divided(factor, a))) if type == 1 else adjoint(factor) @ a @ factor
    half = (half + adjoint(half)) / 2
    if values_only:
        return _eigvalsh(half), None
    w, v = _eigh(half)
    return w, factor @ v if type == 3 else np.linalg.solve(adjoint(factor), v)


def _subset(w: Tensor, by_index: Any, by_value: Any) -> slice:
    """Which eigenvalues are wanted: they are sorted, so a slice."""
    if by_index is not None and by_value is not None:
        raise ValueError("Either index or value subset can be requested.")
    if by_index is not None:
        low, high = (int(i) for i in by_index)
        if not 0 <= low <= high < w.shape[-1]:
            raise ValueError(
                f"Requested eigenvalue indices are not valid. Valid range is [0, {w.shape[-1] - 1}] and start <= end, "
                f"but start={low}, end={high} is given"
            )
        return slice(low, high + 1)
    if by_value is not None:
        low, high = by_value
        values = _seen("eigh: subset_by_value", w)
        return slice(int(np.searchsorted(values, low, "right")), int(np.searchsorted(values, high, "right")))
    return slice(None)


@mapped("eigh", "a b", derivative="dw_i = v_i^H (dA - w_i dB) v_i; dV by the factors 1 / (w_j - w_i)", limits=_VECTORS)
def eigh(a: Any, b: Any, lower: Any, eigvals_only: Any, type: Any, subset_by_index: Any, subset_by_value: Any) -> Any:
    """Eigenvalues and eigenvectors ``(w, v)`` of a Hermitian A, or of a problem with a positive definite B.

    The generalized problem is reduced by Cholesky's factor of B, so the vectors are scaled as SciPy's:
    ``v^H B v = I``.

    >>> import pullback
    >>> from pullback.scipy.linalg import eigh
    >>> eigh(pullback.tensor([[2.0, 0.0], [0.0, 3.0]]), eigvals_only=True)
    tensor([2., 3.])
    """
    w, v = _hermitian(square("eigh", a), b, lower, type, bool(eigvals_only))
    kept = _subset(w, subset_by_index, subset_by_value)
    return w[..., kept] if eigvals_only else (w[..., kept], v[..., kept])


@mapped("eigvalsh", "a b", derivative="dw_i = v_i^H (dA - w_i dB) v_i, with v_i^H B v_i = 1")
def eigvalsh(a: Any, b: Any, lower: Any, type: Any, subset_by_index: Any, subset_by_value: Any) -> Any:
    """The eigenvalues of a Hermitian A, or of a problem with a positive definite B, ascending.

    >>> import pullback
    >>> from pullback.scipy.linalg import eigvalsh
    >>> eigvalsh(pullback.tensor([[2.0, 0.0], [0.0, 3.0]]), [[2.0, 0.0], [0.0, 1.0]]).float()
    tensor([1., 3.])
    """
    w, _ = _hermitian(square("eigvalsh", a), b, lower, type, True)
    return w[..., _subset(w, subset_by_index, subset_by_value)]


_NOT_HERE = "left vectors and homogeneous values are not here; B is regular"


def _general(name: str, a: Tensor, b: Any, left: Any, homogeneous: Any) -> Any:
    if left or homogeneous:
        raise NotImplementedError(
            errors.message(f"{name}: {_NOT_HERE}", do="take the left vectors as eig of the conjugate transpose")
        )
    return square(name, a) if b is None else np.linalg.solve(square(name, b), square(name, a))


@mapped(
    "eig",
    "a b",
    derivative="dw_i = (V^-1 B^-1 (dA - w_i dB) V)_ii; dV by the factors 1 / (w_j - w_i)",
    limits=f"{_VECTORS}; {_NOT_HERE}",
)
def eig(a: Any, b: Any, left: Any, right: Any, homogeneous_eigvals: Any) -> Any:
    """Eigenvalues and right eigenvectors of length 1, ``(w, vr)``; always complex. With B those of ``B^-1 A``.

    >>> import pullback
    >>> from pullback.scipy.linalg import eig
    >>> eig(pullback.tensor([[0.0, 1.0], [-1.0, 0.0]]), right=False).imag.abs()
    tensor([1., 1.])
    """
    matrix = _general("eig", a, b, left, homogeneous_eigvals)
    return tuple(_eig(matrix)) if right else _eigvals(matrix)


@mapped("eigvals", "a b", derivative="dw_i = (V^-1 B^-1 (dA - w_i dB) V)_ii", limits=_NOT_HERE)
def eigvals(a: Any, b: Any, homogeneous_eigvals: Any) -> Any:
    """The eigenvalues of A, or of ``B^-1 A``; always complex.

    >>> import pullback
    >>> from pullback.scipy.linalg import eigvals
    >>> eigvals(pullback.tensor([[2.0, 1.0], [0.0, 2.0]]))
    tensor([2.+0.j, 2.+0.j])
    """
    return _eigvals(_general("eigvals", a, b, False, homogeneous_eigvals))


def _cut(a: Tensor, atol: Any, rtol: Any) -> dict[str, float]:
    m, n = a.shape[-2:]
    default = max(m, n) * float(np.finfo(a._data.dtype).eps)
    if (atol is not None and atol < 0) or (rtol is not None and rtol < 0):
        raise ValueError("atol and rtol values must be positive.")
    return {"atol": atol or 0.0, "rtol": default if rtol is None and atol is None else rtol or 0.0}


@mapped("pinv", "a", derivative=_PSEUDO, limits="where the rank stays")
def pinv(a: Any, atol: Any, rtol: Any, return_rank: Any) -> Any:
    """The pseudoinverse of Moore and Penrose; with `return_rank` the rank as well.

    >>> import pullback
    >>> from pullback.scipy.linalg import pinv
    >>> pinv(pullback.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return _pseudoinverse(a, _cut(a, atol, rtol), return_rank)


@mapped("pinvh", "a", derivative=_PSEUDO, limits="where the rank stays")
def pinvh(a: Any, atol: Any, rtol: Any, lower: Any, return_rank: Any) -> Any:
    """The pseudoinverse of a Hermitian matrix. One triangle is read.

    >>> import pullback
    >>> from pullback.scipy.linalg import pinvh
    >>> pinvh(pullback.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    a = completed(square("pinvh", a), bool(lower))
    return _pseudoinverse(a, _cut(a, atol, rtol), return_rank)


def _pseudoinverse(a: Tensor, cut: dict[str, Any], return_rank: Any) -> Any:
    found = _pinv(a, **cut)
    if not return_rank:
        return found
    s = np.linalg.svd(_seen("pinv: return_rank", a), compute_uv=False)
    return found, int(np.sum(s > cut["atol"] + cut["rtol"] * s.max(initial=0.0)))


@mapped("polar", "a", derivative="through the singular value decomposition", limits="distinct singular values")
def polar(a: Any, side: Any) -> tuple[Tensor, Tensor]:
    """``A = U P`` with orthonormal U and Hermitian P, or ``A = P U`` for side "left": ``(U, P)``.

    >>> import pullback
    >>> from pullback.scipy.linalg import polar
    >>> polar(pullback.tensor([[0.0, -2.0], [3.0, 0.0]]))[1]
    tensor([[3., 0.],
            [0., 2.]])
    """
    if side not in ("right", "left"):
        raise ValueError("`side` must be either 'right' or 'left'")
    w, s, vh = _svd(a, False)
    p = (adjoint(vh) * s) @ vh if side == "right" else (w * s) @ adjoint(w)
    return w @ vh, p


@mapped(
    "orthogonal_procrustes",
    "A B",
    derivative="through the singular value decomposition",
    limits="distinct singular values",
)
def orthogonal_procrustes(A: Any, B: Any) -> tuple[Tensor, Tensor]:
    """The orthogonal R that makes the norm of ``A R - B`` least, and the sum of the singular values of ``A^H B``.

    >>> from pullback.scipy.linalg import orthogonal_procrustes
    >>> import pullback
    >>> orthogonal_procrustes(pullback.tensor([[2.0]]), [[-1.0]])
    (tensor([[-1.]], dtype=pullback.float64), tensor(2., dtype=pullback.float64))
    """
    if A.dim() != 2:
        raise ValueError(f"expected ndim to be 2, but observed {A.dim()}")
    if A.shape != B.shape:
        raise ValueError(f"the shapes of A and B differ ({tuple(A.shape)} vs {tuple(B.shape)})")
    u, s, vh = _svd(np.conj(np.transpose(np.matmul(np.conj(np.transpose(B)), A))), False)
    return u @ vh, s.sum()


__all__ = [
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "orthogonal_procrustes",
    "pinv",
    "pinvh",
    "polar",
    "qr",
    "svd",
    "svdvals",
]
