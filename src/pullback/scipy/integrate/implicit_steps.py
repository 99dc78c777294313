"""Steps of the three-stage Radau IIA method in recorded operations, for the adjoint of stiff systems.

A step from y at t has the increments ``z_i = h sum_j a_ij f(t + c_j h, y + z_j)``; it ends at ``y + z_3``, with an
error of order h^6. The method is L-stable, and its adjoint is as stable as it is. The increments are a root, so the
derivatives are exact (Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.polynomial import polynomial

from ...autograd.grad_mode import enable_grad, no_grad
from ...ops.shape.joining import stack
from ...ops.shape.reshape import reshape
from ...tensor.tensor import wrap
from ..array_nodes import Array
from ..closed_functions import Closed, gradients, root
from .explicit_steps import combined
from .right_hand_side import UserFunction

C = np.array([(4 - 6**0.5) / 10, (4 + 6**0.5) / 10, 1.0])


def _collocation(c: Array) -> Array:
    """The integrals from 0 to each c_i of the polynomials that are 1 at c_j and 0 at the others."""
    found = np.empty((c.size, c.size))
    for j, node in enumerate(c):
        others = np.delete(c, j)
        lagrange = polynomial.polyfromroots(others) / np.prod(node - others)
        found[:, j] = polynomial.polyval(c, polynomial.polyint(lagrange))
    return found


A = _collocation(C)

_ITERATIONS = 25
_SLOW = 0.1  # changes that shrink by less ask for other Jacobians
_PRECISE = 1e-13  # of the increments, relative to the state


def jacobian_of(f: Callable[..., Any], t: Any, y: Array) -> Array:
    """The Jacobian of the right-hand side at arrays, a row for each component."""
    state = wrap(np.array(y))
    state.requires_grad_()
    with enable_grad():
        out = f(wrap(np.array(t)), state)
        rows = []
        for i in range(y.size):
            unit = np.zeros(y.size, out._data.dtype)
            unit[i] = 1
            (g,) = gradients(out, [state], unit, keep=True)
            rows.append(np.zeros_like(y) if g is None else np.conj(g))
    return np.array(rows)


class ImplicitStep:
    """One step in recorded operations. f: of t, y and the inputs `theta`. guess: of the increment of the step."""

    def __init__(
        self,
        f: UserFunction,
        t: Any,
        h: Any,
        y: Any,
        theta: Sequence[Any],
        guess: Array | None = None,
    ) -> None:
        self.f, self.t, self.h, self.y, self.theta, self.guess = f, t, h, y, theta, guess

    def _increments(self, h: Any, guess: Any) -> Any:
        n = self.y.shape[0]

        def slopes(z: Any, t: Any, h: Any, y: Any, theta: Sequence[Any]) -> Any:
            z = reshape(z, (3, n))
            return stack([self.f(t + C[j] * h, y + z[j], *theta) for j in range(3)])

        def residual(z: Any, t: Any, h: Any, y: Any, *theta: Any) -> tuple[Any]:
            return (z - reshape(h * combined(A, slopes(z, t, h, y, theta)), (-1,)),)

        def find(t: Array, h: Array, y: Array, *theta: Array) -> Array:
            own = [wrap(p) for p in theta]
            start = np.zeros(3 * n, y.dtype) if guess is None else np.outer(C, guess).reshape(-1)
            with no_grad():
                return _newton(self.f.bound(own), t, h, y, start)

        return root(Closed(residual), find, self.t, h, self.y, *self.theta)

    def end(self) -> Any:
        """The state at the end."""
        n = self.y.shape[0]
        return self.y + self._increments(self.h, self.guess)[2 * n :]

    def at(self, s: Any) -> Any:
        """The states at the times s, one axis, as rows: each is the end of a step of its own."""
        n = self.y.shape[0]
        return stack([self.y + self._increments(s[i] - self.t, None)[2 * n :] for i in range(s.shape[0])])


def _newton(f: Callable[..., Any], t: Array, h: Array, y: Array, z: Array) -> Array:
    """The increments at arrays: Newton's method with the Jacobians at the stages, kept while changes shrink by them."""
    n = y.size
    times = [t + c * h for c in C]
    scale, factors, last = 1 + np.linalg.norm(y), None, np.inf
    for _ in range(_ITERATIONS):
        parts = z.reshape(3, n)
        slopes = np.array([f(wrap(np.array(s)), wrap(y + p))._data for s, p in zip(times, parts, strict=True)])
        rest = (parts - h * (A @ slopes)).reshape(-1)
        if factors is None:
            blocks = [jacobian_of(f, s, y + p) for s, p in zip(times, parts, strict=True)]
            matrix = np.eye(3 * n) - np.block([[h * A[i, j] * blocks[j] for j in range(3)] for i in range(3)])
            factors = scipy.linalg.lu_factor(matrix)
        change = scipy.linalg.lu_solve(factors, rest)
        z, size = z - change, float(np.linalg.norm(change))
        if size <= _PRECISE * scale:
            break
        if size > _SLOW * last:
            factors = None
        last = size
    return z


__all__ = ["ImplicitStep", "jacobian_of"]
