"""Banded systems. A band is a sparse matrix: its shape says where the places are, and values are picked from `ab`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ...ops.index.subscripts import pick_at
from ...ops.sparse.pattern import Pattern
from ...table.calls import on
from ...tensor.tensor import Tensor
from ..array_nodes import Array, floating
from ..mirror import mirrors
from ..solutions import LinearEquation
from ..sparse.sparse_arrays import product
from ..user_functions import plain_setting
from .mapping import checked


class Band:
    """The places of a matrix with `low` diagonals below the main one and `up` above it, in LAPACK's form."""

    def __init__(self, low: int, up: int, n: int) -> None:
        self.low, self.up, self.n = low, up, n
        places = np.indices((low + up + 1, n)).reshape(2, -1)
        rows = places[0] - up + places[1]
        kept = (rows >= 0) & (rows < n)
        order = np.lexsort((places[1][kept], rows[kept]))
        self.stored = tuple(p[kept][order] for p in places)
        self.pattern = Pattern(np.stack([rows[kept][order], self.stored[1]]), (n, n), True)

    def values(self, ab: Tensor) -> Tensor:
        """The values of the matrix, row by row."""
        return on(pick_at, ab, self.stored)

    def turned(self, ab: Array) -> Array:
        """The band of the conjugate transpose."""
        rows, columns = self.stored
        found = np.zeros_like(ab)
        found[self.low + self.up - rows, rows - self.up + columns] = ab[rows, columns].conj()
        return found


def _checked_band(ab: Any, b: Any, rows: int | None, finite: bool) -> tuple[Tensor, Tensor]:
    band, right = floating(ab), floating(b)
    if finite:
        checked(band), checked(right)
    if band.dim() != 2 or right.dim() not in (1, 2) or band.shape[1] != right.shape[0]:
        raise ValueError("shapes of ab and b are not compatible.")
    if rows is not None and band.shape[0] != rows:
        raise ValueError(
            "invalid values for the number of lower and upper diagonals: "
            f"l+u+1 ({rows}) does not equal ab.shape[0] ({band.shape[0]})"
        )
    return band, right


@mirrors("linalg.solve_banded", derivative="adjoint banded system; the band's gradient within the band")
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """The solution of ``A x = b`` for a banded A, given by its diagonals: ``ab[u + i - j, j] = A[i, j]``.

    Args:
        l_and_u: how many diagonals are below and above the main one.
        ab: of shape ``(l + u + 1, n)``. The gradient at places outside of the matrix is 0.
        b: of shape ``(n,)`` or ``(n, k)``.
        overwrite_ab, overwrite_b: accepted; nothing is overwritten.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve_banded
    >>> ab = pullback.tensor([[0.0, 1.0], [2.0, 4.0]], requires_grad=True)
    >>> x = solve_banded((0, 1), ab, pullback.tensor([3.0, 4.0]))
    >>> x.sum().backward()
    >>> x, ab.grad
    (tensor([1., 1.], grad_fn=<SolutionBackward>), tensor([[ 0.0000, -0.5000],
            [-0.5000, -0.1250]]))
    """
    (given,) = plain_setting("solve_banded", l_and_u=l_and_u)
    low, up = (int(n) for n in given)
    band, right = _checked_band(ab, b, low + up + 1, check_finite)
    places = Band(low, up, band.shape[1])

    def by(adjoint: bool, b: Array, ab: Array) -> Array:
        if adjoint:
            return scipy.linalg.solve_banded((up, low), places.turned(ab), b)
        return scipy.linalg.solve_banded((low, up), ab, b)

    def times(adjoint: bool, x: Tensor, ab: Tensor) -> Tensor:
        return product(places.pattern, adjoint, x, places.values(ab))

    return LinearEquation(by, times, columns=True)(right, band)


@mirrors("linalg.solveh_banded", derivative="the system is its own adjoint")
def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution of ``A x = b`` for a banded Hermitian positive definite A, given by one half of its diagonals.

    ab: ``ab[u + i - j, j] = A[i, j]`` for ``i <= j``, or with `lower` ``ab[i - j, j] = A[i, j]`` for ``i >= j``. A
    value off the main diagonal stands for two elements, and its gradient counts both.

    >>> import pullback
    >>> from pullback.scipy.linalg import solveh_banded
    >>> solveh_banded(pullback.tensor([[0.0, 1.0], [2.0, 2.0]]), [3.0, 3.0])
    tensor([1., 1.], dtype=pullback.float64)
    """
    (lower,) = plain_setting("solveh_banded", lower=lower)
    band, right = _checked_band(ab, b, None, check_finite)
    n, width = band.shape[1], band.shape[0] - 1
    half = Band(width, 0, n) if lower else Band(0, width, n)
    main = Pattern(np.stack([np.arange(n)] * 2), (n, n), True)
    off = half.pattern.indices[0] != half.pattern.indices[1]
    rest = Pattern(half.pattern.indices[:, off], (n, n), True)
    stored = tuple(p[off] for p in half.stored)

    def by(adjoint: bool, b: Array, ab: Array) -> Array:
        return scipy.linalg.solveh_banded(ab, b, lower=lower)

    def times(adjoint: bool, x: Tensor, ab: Tensor) -> Tensor:
        beside = on(pick_at, ab, stored)
        both = product(rest, False, x, beside) + product(rest, True, x, beside)
        return both + product(main, False, x, np.real(ab[0 if lower else -1]))

    return LinearEquation(by, times, columns=True)(right, band)


__all__ = ["solve_banded", "solveh_banded"]
