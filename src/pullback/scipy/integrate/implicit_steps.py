"""Steps of the three-stage Radau IIA method in recorded operations, for the adjoint of stiff systems.

A step from y at t has the increments ``z_i = h sum_j a_ij f(t + c_j h, y + z_j)``; it ends at ``y + z_3``, with an
error of order h^6. The method is L-stable, and its adjoint is as stable as it is. The increments are a root, so the
derivatives are exact (Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8).

For many equations the Jacobian of the right-hand side is sparse, with a pattern that is found once from the function.
It serves SciPy's method, the increments, and the adjoint equations alike.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.polynomial import polynomial

from ...autograd.grad_mode import enable_grad, no_grad
from ...ops.shape.joining import stack
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array, array_of
from ..closed_functions import Closed, call, gradients, root
from ..implicit import Implicit, Pattern, Sparse, factors_of
from ..solutions import Solution
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

MANY = 50
"""From this number of equations on, a sparse Jacobian is looked for."""
_DENSE = 0.3  # a Jacobian with more nonzeros than this part is a dense matrix
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
    return np.array(rows).reshape(y.size, y.size)


class Slopes:
    """The Jacobian of a right-hand side: a sparse matrix where that is found to be one, otherwise a dense one.

    sparse: whether it is; None until it was computed for the first time.
    """

    def __init__(self) -> None:
        self.sparse: bool | None = None
        self._pattern = Pattern()

    def __call__(self, f: Callable[..., Any], t: Any, y: Array) -> Any:
        """At arrays. f: of t and y."""
        if self.sparse is not False:
            found = self._found(f, t, y)
            self.sparse = found is not None
            if self.sparse:
                return found
        return jacobian_of(f, t, y)

    def look(self, f: Callable[..., Any], t: Any, y: Array) -> None:
        """Find out whether it is sparse, where a method did not ask for it."""
        if self.sparse is None:
            self.sparse = self._found(f, t, y) is not None

    def _found(self, f: Callable[..., Any], t: Any, y: Array) -> Any:
        if y.size < MANY or y.dtype.kind == "c":
            return None
        time, state = wrap(np.array(t)), wrap(np.array(y))
        with no_grad():
            jacobian = self._pattern.jacobian(lambda s: f(time, s), state)
            found = None if jacobian is None else scipy.sparse.csc_array(jacobian(state))
        return found if found is not None and (self.sparse or found.nnz < _DENSE * y.size**2) else None


class _Increments(Implicit):
    """The increments of a step as a root, with a sparse Jacobian."""

    def __init__(self, f: UserFunction, slopes: Slopes, residual: Closed, find: Callable[..., Array]) -> None:
        super().__init__(f.where, lambda z, *xs: call(residual, z, *xs)[0], lambda *xs: find(*map(array_of, xs)))
        self.f, self.slopes = f, slopes

    def _factorise(self, x: Tensor, inputs: Sequence[Tensor]) -> Any:
        t, h, y, *theta = map(array_of, inputs)
        f = self.f.bound([*map(wrap, theta)])
        return Sparse(self.where, _matrix(self.slopes, f, [t + c * h for c in C], h, y, array_of(x).reshape(3, -1)))


class ImplicitStep:
    """One step in recorded operations.

    f: of t, y and the inputs `theta`. slopes: its Jacobian. guess: of the increment of the step.
    """

    def __init__(
        self,
        f: UserFunction,
        slopes: Slopes,
        t: Any,
        h: Any,
        y: Any,
        theta: Sequence[Any],
        guess: Array | None = None,
    ) -> None:
        self.f, self.slopes, self.t, self.h, self.y = f, slopes, t, h, y
        self.theta, self.guess = theta, guess

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
                return increments(self.f.bound(own), self.slopes, t, h, y, start)

        inputs = (self.t, h, self.y, *self.theta)
        if self.slopes.sparse:
            return Solution.apply(_Increments(self.f, self.slopes, Closed(residual), find), *inputs)
        return root(Closed(residual), find, *inputs)

    def end(self) -> Any:
        """The state at the end."""
        n = self.y.shape[0]
        return self.y + self._increments(self.h, self.guess)[2 * n :]

    def at(self, s: Any) -> Any:
        """The states at the times s, one axis, as rows: each is the end of a step of its own."""
        n = self.y.shape[0]
        return stack([self.y + self._increments(s[i] - self.t, None)[2 * n :] for i in range(s.shape[0])])


def _matrix(slopes: Slopes, f: Callable[..., Any], times: Sequence[Array], h: Array, y: Array, parts: Array) -> Any:
    """The Jacobian of the equations of a step at the increments `parts`."""
    blocks = [slopes(f, s, y + p) for s, p in zip(times, parts, strict=True)]
    if not slopes.sparse:
        return np.eye(3 * y.size) - np.block([[h * A[i, j] * blocks[j] for j in range(3)] for i in range(3)])
    rows = [[(h * A[i, j]) * blocks[j] for j in range(3)] for i in range(3)]
    return scipy.sparse.csc_array(scipy.sparse.eye_array(3 * y.size) - scipy.sparse.block_array(rows))


def increments(f: Callable[..., Any], slopes: Slopes, t: Array, h: Array, y: Array, z: Array) -> Array:
    """The increments at arrays: Newton's method with the Jacobians at the stages, kept while changes shrink by them."""
    n = y.size
    times = [t + c * h for c in C]
    scale, solve, last = 1 + np.linalg.norm(y), None, np.inf
    for _ in range(_ITERATIONS):
        parts = z.reshape(3, n)
        values = np.array([f(wrap(np.array(s)), wrap(y + p))._data for s, p in zip(times, parts, strict=True)])
        rest = (parts - h * (A @ values)).reshape(-1)
        if solve is None:
            matrix = _matrix(slopes, f, times, h, y, parts)
            if slopes.sparse:
                solve = factors_of(matrix).solve
            else:
                solve = functools.partial(scipy.linalg.lu_solve, scipy.linalg.lu_factor(matrix))
        change = solve(rest)
        z, size = z - change, float(np.linalg.norm(change))
        if size <= _PRECISE * scale:
            break
        if size > _SLOW * last:
            solve = None
        last = size
    return z


__all__ = ["A", "C", "ImplicitStep", "Slopes", "increments"]
