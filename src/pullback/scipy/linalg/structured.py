"""Matrices of a structure, and systems with them: Toeplitz, Hankel, circulant, block diagonal.

SciPy makes the matrix of the numbers of the elements, which are picked then: the derivative is that of picking.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ... import errors
from ...ops.index.subscripts import pick_at
from ...ops.shape.joining import cat
from ...ops.shape.reshape import reshape
from ...table.calls import on
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array, floating
from ..mirror import mirrors
from ..solutions import LinearEquation, alike
from .mapping import adjoint, checked, mapped

_HOW = "linear: a gather"


def placed(make: Callable[..., Array], *parts: Tensor) -> Tensor:
    """``make(*parts)`` for a function of arrays that puts their elements, and zeros, at places."""
    parts = tuple(alike(*parts))
    kind = parts[0]._data.dtype
    starts = np.cumsum([1, *(p.numel() for p in parts)])
    numbers = [
        start + np.arange(p.numel(), dtype=float).reshape(tuple(p.shape))
        for start, p in zip(starts[:-1], parts, strict=True)
    ]
    places = make(*numbers).astype(np.int64)
    flat = cat([reshape(parts[0], (-1,))[:0], *(reshape(p, (-1,)) for p in parts)])
    zero = (
        np.zeros_like(parts[0].detach()._data, shape=(1,)) if type(parts[0]._data) is np.ndarray else np.zeros(1, kind)
    )
    return on(pick_at, cat([floating(zero).to(kind), flat]), (places,))


def _row(c: Tensor, r: Any) -> Tensor:
    return np.conj(c) if r is None else r  # type: ignore[return-value]


@mapped("toeplitz", "c r", derivative=_HOW)
def toeplitz(c: Any, r: Any) -> Tensor:
    """The Toeplitz matrix with the first column c and the first row r, by default the conjugate of c.

    >>> import pullback
    >>> from pullback.scipy.linalg import toeplitz
    >>> toeplitz(pullback.tensor([1.0, 2.0]), pullback.tensor([1.0, 3.0]))
    tensor([[1., 3.],
            [2., 1.]])
    """
    return placed(scipy.linalg.toeplitz, c, _row(c, r))


@mapped("hankel", "c r", derivative=_HOW)
def hankel(c: Any, r: Any) -> Tensor:
    """The Hankel matrix with the first column c and the last row r, by default zeros.

    >>> import pullback
    >>> from pullback.scipy.linalg import hankel
    >>> hankel(pullback.tensor([1.0, 2.0]))
    tensor([[1., 2.],
            [2., 0.]])
    """
    return placed(scipy.linalg.hankel, c) if r is None else placed(scipy.linalg.hankel, c, r)


@mapped("circulant", "c", derivative=_HOW)
def circulant(c: Any) -> Tensor:
    """The circulant matrix with the first column c.

    >>> import pullback
    >>> from pullback.scipy.linalg import circulant
    >>> circulant(pullback.tensor([1.0, 2.0]))
    tensor([[1., 2.],
            [2., 1.]])
    """
    return placed(scipy.linalg.circulant, c)


@mapped("leslie", "f s", derivative=_HOW)
def leslie(f: Any, s: Any) -> Tensor:
    """The Leslie matrix with the first row f and the subdiagonal s.

    >>> import pullback
    >>> from pullback.scipy.linalg import leslie
    >>> leslie(pullback.tensor([1.0, 2.0]), [3.0])
    tensor([[1., 2.],
            [3., 0.]], dtype=pullback.float64)
    """
    return placed(scipy.linalg.leslie, f, s)


@mapped("convolution_matrix", "a", derivative=_HOW)
def convolution_matrix(a: Any, n: Any, mode: Any) -> Tensor:
    """The matrix of the convolution of vectors of length n with `a`.

    >>> import pullback
    >>> from pullback.scipy.linalg import convolution_matrix
    >>> convolution_matrix(pullback.tensor([1.0, 2.0]), 2, mode="same")
    tensor([[1., 0.],
            [2., 1.]])
    """
    return placed(lambda a: scipy.linalg.convolution_matrix(a, n, mode), a)


@mirrors("linalg.block_diag", derivative=_HOW)
def block_diag(*arrs: Any) -> Tensor:
    """The matrix with some matrices along its diagonal.

    >>> import pullback
    >>> from pullback.scipy.linalg import block_diag
    >>> block_diag(pullback.tensor([[1.0]]), [[2.0, 3.0]])
    tensor([[1., 0., 0.],
            [0., 2., 3.]], dtype=pullback.float64)
    """
    return placed(scipy.linalg.block_diag, *map(floating, arrs or ([],)))


@mapped("companion", "a", derivative="composition")
def companion(a: Any) -> Tensor:
    """The companion matrix of a polynomial's coefficients, the highest first.

    >>> import pullback
    >>> from pullback.scipy.linalg import companion
    >>> companion(pullback.tensor([2.0, 4.0, 6.0]))
    tensor([[-2., -3.],
            [ 1.,  0.]])
    """
    if type(a._data) is np.ndarray:
        scipy.linalg.companion(a._data)  # raises what SciPy raises
    n = a.shape[-1] - 1
    first = -a[..., 1:] / a[..., :1]
    rest = np.broadcast_to(np.eye(n - 1, n, dtype=a._data.dtype), (*a.shape[:-1], n - 1, n))
    return np.concatenate([first[..., None, :], floating(rest)], axis=-2)  # type: ignore[return-value]


# Systems --------------------------------------------------------------------------------------------------------------


def _pair(c_or_cr: Any) -> tuple[Tensor, Tensor]:
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    c = reshape(floating(c), (-1,))
    return c, _row(c, None if r is None else reshape(floating(r), (-1,)))


def _first(c: Array, r: Array, turned: bool) -> tuple[Array, Array]:
    """The column and the row that determine the matrix, or its conjugate transpose."""
    whole = np.concatenate([c[:1], r[1:]])
    return (whole.conj(), c.conj()) if turned else (c, whole)


_TOEPLITZ = LinearEquation(
    by=lambda turned, b, c, r: scipy.linalg.solve_toeplitz(_first(c, r, turned), b),
    product=lambda turned, x, c, r: _times(turned, placed(scipy.linalg.toeplitz, c, r), x),
    columns=True,
    double=True,
)


def _times(turned: bool, a: Tensor, x: Tensor) -> Tensor:
    return (adjoint(a) if turned else a) @ x


@mirrors("linalg.solve_toeplitz", derivative="adjoint Toeplitz system")
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Tensor:
    """The solution of ``T x = b`` for the Toeplitz matrix of a column c, or of a tuple ``(c, r)``; by Levinson.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve_toeplitz
    >>> solve_toeplitz(pullback.tensor([2.0, 1.0]), [3.0, 3.0])
    tensor([1., 1.], dtype=pullback.float64)
    """
    (c, r), right = _pair(c_or_cr), floating(b)
    if check_finite:
        checked(c), checked(r), checked(right)
    return _TOEPLITZ(right, c, r)


@mapped("solve_circulant", "c b", derivative="composition of Fourier transforms")
def solve_circulant(c: Any, b: Any, singular: Any, tol: Any, caxis: Any, baxis: Any, outaxis: Any) -> Tensor:
    """The solution of ``C x = b`` for the circulant matrix of c: quotients of Fourier transforms.

    singular: "raise" for LinAlgError where C is nearly singular, "lstsq" for the solution of least squares.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve_circulant
    >>> solve_circulant(pullback.tensor([2.0, 1.0]), [3.0, 3.0])
    tensor([1., 1.], dtype=pullback.float64)
    """
    if singular not in ("raise", "lstsq"):
        raise ValueError(
            errors.message("solve_circulant: singular", expected="'raise' or 'lstsq'", found=repr(singular))
        )
    n = c.shape[caxis]
    if n != b.shape[baxis]:
        raise ValueError(f"Shapes of c {tuple(c.shape)} and b {tuple(b.shape)} are incompatible")
    by_c: Any
    by_b: Any
    by_c, by_b = (np.fft.fft(np.moveaxis(t, axis, -1)) for t, axis in ((c, caxis), (b, baxis)))
    size = np.abs(by_c.detach())
    limit = size.max(-1, keepdim=True).values * n * np.finfo(np.float64).eps if tol is None else tol
    zero = size <= limit
    if singular == "raise" and type(zero._data) is np.ndarray and zero._data.any():
        raise errors.LinAlgError("near singular circulant matrix.")
    quotient = np.where(zero, 0.0, by_b / np.where(zero, 1.0, by_c))
    x = np.fft.ifft(quotient)
    real = not (c.dtype.is_complex or b.dtype.is_complex)
    return np.moveaxis(np.real(x) if real else x, -1, outaxis)  # type: ignore[return-value]


@mirrors("linalg.matmul_toeplitz", derivative="bilinear")
def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: int | None = None) -> Tensor:
    """The product of a Toeplitz matrix, of c or of ``(c, r)``, and x.

    >>> import pullback
    >>> from pullback.scipy.linalg import matmul_toeplitz
    >>> matmul_toeplitz(([1.0, 2.0], [1.0, 3.0]), pullback.tensor([1.0, 1.0]))
    tensor([4., 3.], dtype=pullback.float64)
    """
    (c, r), right = _pair(c_or_cr), floating(x)
    if check_finite:
        checked(c), checked(r), checked(right)
    if right.shape[0] != r.shape[0]:
        raise ValueError(
            f"incompatible shapes for matrix multiplication: {(c.numel(), r.numel())} and {tuple(right.shape)}"
        )
    a, right, _ = alike(placed(scipy.linalg.toeplitz, c, r), right, wrap(np.zeros(0)))  # double, as SciPy
    return a @ right


__all__ = [
    "block_diag",
    "circulant",
    "companion",
    "convolution_matrix",
    "hankel",
    "leslie",
    "matmul_toeplitz",
    "placed",
    "solve_circulant",
    "solve_toeplitz",
    "toeplitz",
]
