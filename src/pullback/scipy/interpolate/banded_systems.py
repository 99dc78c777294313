"""Banded linear systems, differentiable in the matrix and in the right-hand side.

A matrix A with `lower` diagonals below and `upper` above the main one is held by its rows:
``rows[r, m] = A[r, r - lower + m]``. Entries that lie outside of the matrix are ignored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ...autograd.function import Function
from ...ops.shape.axes import movedim
from ...ops.shape.joining import stack
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor
from ..array_nodes import Array, array_of, tensor_of


class Bands(NamedTuple):
    """How many diagonals there are, and whether the system is that of the transposed matrix."""

    lower: int
    upper: int
    turned: bool = False

    def diagonals(self, rows: Array) -> Array:
        """The matrix (or its transpose) as `scipy.linalg.solve_banded` takes it."""
        n = len(rows)
        upper = self.lower if self.turned else self.upper
        ab = np.zeros((self.lower + self.upper + 1, n), rows.dtype)
        for m in range(self.lower + self.upper + 1):
            d = m - self.lower  # the diagonal: column less row
            entries = rows[max(-d, 0) : n - max(d, 0), m]
            start = max(-d, 0) if self.turned else max(d, 0)
            ab[upper + d if self.turned else upper - d, start : start + len(entries)] = entries
        return ab

    def shifted(self, x: Any) -> list[Any]:
        """For each m, the entries of x at the columns ``r - lower + m``; zeros beyond the ends."""
        n = len(x)
        wide = np.concatenate([np.zeros((self.lower, *x.shape[1:])), x, np.zeros((self.upper, *x.shape[1:]))])
        return [wide[m : m + n] for m in range(self.lower + self.upper + 1)]

    def times(self, rows: Any, x: Any) -> Any:
        """The matrix, or its transpose, times x of shape (n, columns)."""
        if not self.turned:
            return sum(rows[:, m, None] * s for m, s in enumerate(self.shifted(x)))
        n, width = len(x), self.lower + self.upper
        ends = [np.zeros((m, *x.shape[1:])) for m in range(width + 1)]
        terms: Any = [np.concatenate([ends[m], rows[:, m, None] * x, ends[width - m]]) for m in range(width + 1)]
        return sum(terms[1:], terms[0])[self.lower : self.lower + n]

    def outer(self, p: Any, q: Any) -> Any:
        """The rows of the banded part of the product ``p q^T`` (``q p^T`` if transposed), summed over columns."""
        if self.turned:
            p, q = q, p
        return np.stack([np.sum(p * s, axis=1) for s in self.shifted(q)], axis=1)


class BandedSolve(Function):
    """The solution x of ``A x = b``. With ``A^T w = g``: the gradient of b is w, that of A is ``-w x^T``."""

    @staticmethod
    def forward(bands: Bands, rows: Tensor, b: Any) -> Any:
        """SciPy's solver. LinAlgError for a singular matrix."""
        sides = (bands.upper, bands.lower) if bands.turned else (bands.lower, bands.upper)
        ab = bands.diagonals(array_of(rows))
        return tensor_of(scipy.linalg.solve_banded(sides, ab, array_of(b), check_finite=False))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the matrix and the solution."""
        ctx.bands, rows, b = inputs
        ctx.real = b._data.dtype.kind != "c"
        ctx.save_for_backward(rows, output)
        ctx.save_for_forward(rows, output)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """By the transposed system. The matrix is real."""
        rows, x = ctx.saved_tensors
        w = BandedSolve.apply(ctx.bands._replace(turned=not ctx.bands.turned), rows, g)
        grad = -np.real(ctx.bands.outer(w, np.conj(x))) if ctx.needs_input_grad[1] else None
        return None, grad, w

    @staticmethod
    def jvp(ctx: Any, _: Any, t_rows: Any, t_b: Any) -> Any:
        """The same system: ``A dx = db - dA x``."""
        rows, x = ctx.saved_tensors
        right = -ctx.bands.times(t_rows, x) if t_rows is not None else 0
        return BandedSolve.apply(ctx.bands, rows, right if t_b is None else right + t_b)

    @staticmethod
    def vmap(info: Any, in_dims: Any, bands: Bands, rows: Tensor, b: Tensor) -> Any:
        """One factorisation for the batch if all share the matrix."""
        _, d_rows, d_b = in_dims
        if d_rows is None:
            b = movedim(b, d_b, -1)
            return reshape(BandedSolve.apply(bands, rows, reshape(b, (b.shape[0], -1))), b.shape), b.dim() - 1
        rows = movedim(rows, d_rows, 0)
        bs = [b] * info.batch_size if d_b is None else movedim(b, d_b, 0)
        return stack([BandedSolve.apply(bands, rows[i], bs[i]) for i in range(info.batch_size)]), 0


def banded_solve(lower: int, upper: int, rows: Any, b: Any) -> Any:
    """The solution of a banded system; b has shape (n, ...).

    >>> banded_solve(0, 1, np.array([[2.0, 1.0], [4.0, 0.0]]), np.array([4.0, 8.0]))
    tensor([1., 2.], dtype=pullback.float64)
    """
    flat = np.reshape(b, (len(b), -1))
    return np.reshape(BandedSolve.apply(Bands(lower, upper), tensor_or(rows), tensor_or(flat)), b.shape)


def tensor_or(value: Any) -> Tensor:
    """A Tensor as it is, an array as a constant."""
    return value if isinstance(value, Tensor) else tensor_of(value)
