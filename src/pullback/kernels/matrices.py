"""Algorithms of linear algebra that NumPy lacks: triangular systems, LU factors, the exponential of a matrix.

They take arrays, whole stacks of matrices at once, and work in blocks, so that most of the work is matrix products.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..tensor.arrays import arange_beside, empty_beside, eye_beside, zeros_beside
from ..tensor.protocol import is_foreign, on_arrays
from .counterparts import checked, solved

Array = np.ndarray[Any, Any]

_BLOCK = 32


def _count(a: Array) -> int:
    """The number of matrices in a stack."""
    return math.prod(a.shape[:-2])


# Triangular systems ---------------------------------------------------------------------------------------------------


@on_arrays
def solve_triangular(a: Array, b: Array, upper: bool, unit: bool = False) -> Array:
    """X with ``a X = b``. Only one triangle of `a` is read, and with `unit` its diagonal is taken to be 1.

    A 0 on the diagonal is used as a divisor, so the result then has infinities or NaN.
    """
    if upper:  # with rows and columns in reverse order, upper is lower
        return solve_triangular(a[..., ::-1, ::-1], b[..., ::-1, :], False, unit)[..., ::-1, :]
    n = a.shape[-1]
    if n <= _BLOCK:
        return _substituted(a, b, unit)
    # The blocks on the diagonal are inverted, all at once; the rest is matrix products.
    count = -(-n // _BLOCK)
    blocks = zeros_beside(a, (*a.shape[:-2], count, _BLOCK, _BLOCK))
    unity = eye_beside(a, _BLOCK)
    blocks[..., :, :] = unity
    for k in range(count):
        part = a[..., k * _BLOCK : (k + 1) * _BLOCK, k * _BLOCK : (k + 1) * _BLOCK]
        blocks[..., k, : part.shape[-2], : part.shape[-1]] = part
    inverses = _substituted(blocks, unity, unit)
    x = empty_beside(a, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), np.result_type(a, b))
    for k in range(count):
        rows = slice(k * _BLOCK, min((k + 1) * _BLOCK, n))
        left = b[..., rows, :] - np.matmul(a[..., rows, : rows.start], x[..., : rows.start, :])
        size = rows.stop - rows.start
        x[..., rows, :] = np.matmul(inverses[..., k, :size, :size], left)
    return x


def _substituted(a: Array, b: Array, unit: bool) -> Array:
    """A lower triangular system solved row by row."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = empty_beside(a, (*shape, *b.shape[-2:]), np.result_type(a, b))
    for i in range(a.shape[-1]):
        row = b[..., i, :] - np.matmul(a[..., i, None, :i], x[..., :i, :])[..., 0, :]
        x[..., i, :] = row if unit else row / a[..., i, i, None]
    return x


# LU factors -----------------------------------------------------------------------------------------------------------


@on_arrays
def lu(a: Array) -> tuple[Array, Array, Array]:
    """The LU factors of matrices with rows exchanged, as LAPACK's getrf gives them.

    Returns both factors in one array; for each of the first rows, the row (counted from 1) it was exchanged with; and
    the number of the first pivot that is 0, or 0 if there is none. SciPy, if installed, factors all but small matrices.
    """
    m, n = a.shape[-2:]
    k = min(m, n)
    stack = np.copy(a.reshape(_count(a), m, n), order="C")
    pivots = zeros_beside(a, (len(stack), k), np.int32)
    getrf = _getrf(stack) if k > 8 and not is_foreign(stack) else None
    if getrf is not None:
        for i, matrix in enumerate(stack):
            stack[i], pivots[i], _ = getrf(matrix)
    else:
        _factor(stack, pivots)
    zero = np.diagonal(stack, axis1=-2, axis2=-1) == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if k else zeros_beside(a, (len(stack),))
    shape = a.shape[:-2]
    return stack.reshape(a.shape), pivots.reshape(*shape, k) + 1, info.astype(np.int32).reshape(shape)


def _getrf(stack: Array) -> Any:
    """LAPACK's function for the dtype of some matrices; None without SciPy."""
    try:
        from scipy.linalg import get_lapack_funcs
    except ImportError:
        return None
    return get_lapack_funcs(("getrf",), (stack,))[0]


def _factor(stack: Array, pivots: Array) -> None:
    """Factor each matrix in place, some columns at a time; the columns to the right follow by a matrix product."""
    _, m, n = stack.shape
    for start in range(0, min(m, n), _BLOCK):
        stop = min(start + _BLOCK, m, n)
        _factor_columns(stack, pivots, start, stop)
        if stop < n:
            head = solve_triangular(stack[:, start:stop, start:stop], stack[:, start:stop, stop:], False, True)
            stack[:, start:stop, stop:] = head
            stack[:, stop:, stop:] -= np.matmul(stack[:, stop:, start:stop], head)


def _factor_columns(stack: Array, pivots: Array, start: int, stop: int) -> None:
    every = arange_beside(stack, len(stack))
    for j in range(start, stop):
        column = stack[:, j:, j]
        # LAPACK's measure of a complex number's size
        size = np.abs(column) if column.dtype.kind != "c" else np.abs(column.real) + np.abs(column.imag)
        best = size.argmax(-1) + j
        pivots[:, j] = best
        rows = stack[every, best]
        stack[every, best] = stack[:, j]
        stack[:, j] = rows
        pivot = stack[:, j, j, None]
        stack[:, j + 1 :, j] /= np.where(pivot == 0, 1, pivot)
        stack[:, j + 1 :, j + 1 : stop] -= stack[:, j + 1 :, j, None] * stack[:, j, None, j + 1 : stop]


# Cholesky factors -----------------------------------------------------------------------------------------------------


@on_arrays
def cholesky(a: Array) -> tuple[Array, Array]:
    """The lower triangular L with ``a = L L^H``, and 0. Without such an L: zeros from some column on, and the order of
    the leading minor that is not positive. Only the lower triangle of `a` is read.
    """
    try:
        return checked(np.linalg.cholesky, a), zeros_beside(a, a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        pass
    found, info = np.zeros_like(a), zeros_beside(a, a.shape[:-2], np.int32)
    for place in np.ndindex(a.shape[:-2]):
        try:
            found[place] = checked(np.linalg.cholesky, a[place])
        except np.linalg.LinAlgError:
            info[place] = _cholesky_columns(a[place], found[place])
    return found, info


def _cholesky_columns(a: Array, found: Array) -> int:
    for j in range(len(a)):
        column = a[j:, j] - found[j:, :j] @ found[j, :j].conj()
        if not column[0].real > 0:
            return j + 1
        found[j:, j] = column / np.sqrt(column[0].real)
    return 0


# The exponential ------------------------------------------------------------------------------------------------------

# For the Padé approximant of each degree: the largest 1-norm for which it is exact in double and in single precision,
# and the coefficients (Higham, The scaling and squaring method for the matrix exponential revisited, 2005).
_PADE: dict[int, tuple[float, float, list[float]]] = {
    3: (1.495585217958292e-2, 4.258730016922831e-1, [120, 60, 12, 1]),
    5: (2.539398330063230e-1, 1.880152677804762, [30240, 15120, 3360, 420, 30, 1]),
    7: (9.504178996162932e-1, 3.925724783138660, [17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1]),
    9: (
        2.097847961257068,
        3.925724783138660,
        [17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1],
    ),
    13: (
        5.371920351148152,
        3.925724783138660,
        [
            64764752532480000,
            32382376266240000,
            7771770303897600,
            1187353796428800,
            129060195264000,
            10559470521600,
            670442572800,
            33522128640,
            1323241920,
            40840800,
            960960,
            16380,
            182,
            1,
        ],
    ),
}


@on_arrays
def exponential(a: Array) -> Array:
    """The exponential of matrices, by scaling and squaring; NaN where an element is not finite."""
    n = a.shape[-1]
    if not a.size:
        return np.copy(a)
    stack = a.reshape(_count(a), n, n)
    single = a.dtype in (np.float32, np.complex64)
    size = np.max(np.add.reduce(np.abs(stack), axis=-2), -1)
    finite = np.isfinite(size)
    size = np.where(finite, size, 0)
    stack = np.where(finite[:, None, None], stack, 0)
    degrees = (3, 5, 7) if single else (3, 5, 7, 9, 13)
    degree = next((d for d in degrees if size.max() <= _PADE[d][single]), degrees[-1])
    halvings = np.maximum(np.ceil(np.log2(np.maximum(size / _PADE[degree][single], 1))), 0).astype(np.int64)
    found = _pade(stack * (0.5**halvings)[:, None, None].astype(size.dtype), _PADE[degree][2])
    for i in range(int(halvings.max())):
        again = halvings > i
        found[again] = np.matmul(found[again], found[again])
    found[~finite] = np.nan
    return found.reshape(a.shape)


def _pade(a: Array, coefficients: list[float]) -> Array:
    """``q(a)^-1 p(a)`` of a polynomial p and its mirror image q, whose odd terms have the other sign."""
    powers = np.matmul(a, a)
    even = odd = eye_beside(a, a.shape[-1])
    total_even, total_odd = coefficients[0] * even, coefficients[1] * odd
    for k in range(2, len(coefficients), 2):
        even = np.matmul(even, powers) if k > 2 else powers
        total_even = total_even + coefficients[k] * even
        total_odd = total_odd + coefficients[k + 1] * even
    total_odd = np.matmul(a, total_odd)
    return solved(total_even - total_odd, total_even + total_odd)
