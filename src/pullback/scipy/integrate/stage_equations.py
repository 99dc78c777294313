"""The steps of a run as one equation for the slopes at all their stages.

With the slopes ``k_ij`` at stage j of step i, and ``y_{i+1} = y_i + h_i sum_j b_j k_ij``, the steps are the root of

    k_ij - f(t_i + c_j h_i,  y_i + h_i sum_l a_jl k_il; theta) = 0

(Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, II.1). So the implicit function theorem gives
the derivatives of every order. Each needs the right-hand side once, for a batch of all stages, and a linear recursion
over the steps on small arrays, instead of the operations of one stage after another. That pays for few equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.grad_mode import enable_grad, no_grad
from ...func.vectorize import at_once
from ...ops.shape.joining import concatenate, stack
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array, array_of, pairs
from ..closed_functions import gradients
from ..implicit import Implicit
from .explicit_steps import combined
from .right_hand_side import UserFunction

_ITERATIONS = 12  # of Newton's method for all steps together
_PRECISE = 1e-12  # of the increments, relative to the state
_AT_ONCE = 1 << 18  # elements of the states in one graph, for the Jacobians


class Together:
    """The right-hand side at many states: in one call by `vmap` where that gives the same, or one after another.

    f: of t, y and the inputs `theta`. by_vmap: None until it was compared.
    """

    def __init__(self, f: UserFunction) -> None:
        self.f = f
        self.by_vmap: bool | None = None

    def __call__(self, t: Any, y: Any, theta: Sequence[Any]) -> Any:
        """The slopes [count, n] at times [count] and states [count, n]."""

        def f(t: Any, y: Any) -> Any:
            return self.f(t, y, *theta)

        if self.by_vmap:
            return at_once(f)(t, y)
        return stack([f(t[i], y[i]) for i in range(t.shape[0])])

    def compare(self, t: Array, y: Array, theta: Sequence[Any], expected: Array) -> None:
        """Find out whether `vmap` gives what the function gives for one state after another."""
        if self.by_vmap is False:
            return
        self.by_vmap = True
        try:
            with no_grad():
                found = self(wrap(t), wrap(y), theta)._data
            same = found.shape == expected.shape
            self.by_vmap = same and np.allclose(found, expected, rtol=1e-8, atol=1e-12, equal_nan=True)
        except Exception:  # of any kind: it is called for one state after another instead, and raises there if it must
            self.by_vmap = False


def jacobians(out: Tensor, states: Tensor) -> Array:
    """The Jacobians of a function at many states, where each result depends on its own state alone.

    They are real: a complex component counts as two, for a function need not be holomorphic.
    """
    count, n = out.shape
    units = (1.0, 1j) if out._data.dtype.kind == "c" else (1.0,)
    found = np.zeros((count, n * len(units), n * len(units)))
    for row in range(found.shape[1]):
        cotangent = np.zeros((count, n), out._data.dtype)
        cotangent[:, row // len(units)] = units[row % len(units)]
        (g,) = gradients(out, [states], cotangent, keep=True)
        if g is not None:
            found[:, row] = pairs(g)
    return found


class Recursion:
    """The linear equations of small changes of the slopes, solved.

    ``dk_i - J_i (dy_i + h_i A dk_i) = r_i`` with ``dy_{i+1} = dy_i + h_i b dk_i`` and ``dy_0 = 0``. The first
    steps, as many as `main`, follow each other. The others begin at a state `begin` of these, and nothing follows them.
    """

    def __init__(self, a: Array, b: Array, h: Array, begin: Array, main: int, slopes: Array) -> None:
        self.a, self.b, self.h, self.begin, self.main, self.slopes = a, b, h, begin, main, slopes
        count, stages, n, _ = slopes.shape
        self.explicit = not np.triu(a).any()
        if not self.explicit:
            scaled = h[:, None, None, None, None] * np.einsum("jl,ijxy->ijxly", a, slopes)
            self.matrix = np.eye(stages * n) - scaled.reshape(count, stages * n, stages * n)
        self.by_state = self._within(slopes)
        self.moves = np.eye(n) + self._summed(self.by_state)

    def _summed(self, k: Array) -> Array:
        """What slopes add to the state, of the main steps."""
        return np.einsum("i,j,ij...->i...", self.h[: self.main], self.b, k[: self.main])

    def _within(self, r: Array) -> Array:
        """The changes of the slopes [count, stages, n, columns] in steps that begin at a constant state."""
        if not self.explicit:
            flat = r.reshape(len(r), -1, r.shape[-1])
            return np.linalg.solve(self.matrix, flat).reshape(r.shape) if flat.size else r
        found = r.copy()
        for j in range(1, r.shape[1]):
            before = np.einsum("i,l,ilxc->ixc", self.h, self.a[j, :j], found[:, :j])
            found[:, j] += self.slopes[:, j] @ before
        return found

    def _within_transposed(self, g: Array) -> Array:
        if not self.explicit:
            flat = g.reshape(len(g), -1, 1)
            return np.linalg.solve(np.swapaxes(self.matrix, 1, 2), flat).reshape(g.shape) if flat.size else g
        found, of_states = g.copy(), np.zeros_like(g)
        for j in reversed(range(g.shape[1])):
            found[:, j] += np.einsum("i,l,ilx->ix", self.h, self.a[j + 1 :, j], of_states[:, j + 1 :])
            of_states[:, j] = np.einsum("ix,ixy->iy", found[:, j], self.slopes[:, j])
        return found

    def solve(self, r: Array, transposed: bool) -> Array:
        """For a right-hand side with one axis; with the transposed equations, if asked."""
        shape = self.slopes.shape[:3]
        found = (self._back if transposed else self._forward)(pairs(r).reshape(shape))
        return found.reshape(-1).view(r.dtype)

    def _forward(self, r: Array) -> Array:
        k = self._within(r[..., None])[..., 0]
        added = self._summed(k)
        y = np.zeros((self.main + 1, r.shape[-1]))
        for i in range(self.main):
            y[i + 1] = self.moves[i] @ y[i] + added[i]
        found: Array = k + np.einsum("ijxy,iy->ijx", self.by_state, y[self.begin])
        return found

    def _back(self, g: Array) -> Array:
        own = np.einsum("ijx,ijxy->iy", g, self.by_state)
        of_y = np.zeros((self.main + 1, g.shape[-1]))
        np.add.at(of_y, self.begin, own)
        for i in reversed(range(self.main)):
            of_y[i] += of_y[i + 1] @ self.moves[i]
        whole = g.copy()
        whole[: self.main] += np.einsum("i,j,ix->ijx", self.h[: self.main], self.b, of_y[1:])
        return self._within_transposed(whole)


class Stages(Implicit):
    """The slopes of one run as a node, an array of one axis, by the times and sizes of the steps, y0 and theta.

    a, b, c: the coefficients of the method. begin, main: see `Recursion`. find: the slopes [count, stages, n] from the
    arrays of t, h, y0 and theta.
    """

    def __init__(
        self,
        f: Together,
        coefficients: tuple[Array, Array, Array],
        begin: Array,
        main: int,
        find: Callable[..., Array],
    ) -> None:
        super().__init__(f.f.where, self._residual, lambda *ps: find(*map(array_of, ps)).reshape(-1))
        self.f, (self.a, self.b, self.c), self.begin, self.main = f, coefficients, begin, main

    def shaped(self, k: Any, y0: Any) -> Any:
        """The slopes [count, stages, n]."""
        return reshape(k, (len(self.begin), len(self.c), y0.shape[0]))

    def ends(self, k: Any, h: Any, y0: Any) -> Any:
        """The states at the beginning, and at the ends of the main steps."""
        first = reshape(y0, (1, -1))
        if not self.main:
            return first
        added = reshape(h[: self.main], (-1, 1)) * combined(self.b, k[: self.main])
        return concatenate([first, first + np.cumsum(added, axis=0)], 0)

    def at_stages(self, k: Any, t: Any, h: Any, y0: Any) -> tuple[Any, Any]:
        """The times and the states at all stages, in one batch."""
        inside = reshape(h, (-1, 1, 1)) * combined(self.a, k)
        states = reshape(self.ends(k, h, y0)[self.begin], (len(self.begin), 1, -1)) + inside
        times = reshape(t, (-1, 1)) + reshape(h, (-1, 1)) * self.c
        return reshape(times, (-1,)), reshape(states, (-1, y0.shape[0]))

    def _residual(self, k: Any, t: Any, h: Any, y0: Any, *theta: Any) -> Any:
        times, states = self.at_stages(self.shaped(k, y0), t, h, y0)
        return k - reshape(self.f(times, states, theta), (-1,))

    def _factorise(self, x: Tensor, inputs: Sequence[Tensor]) -> Recursion:
        return self.recursion(*map(array_of, (x, *inputs)))

    def recursion(self, k: Array, t: Array, h: Array, y0: Array, *theta: Array) -> Recursion:
        """The linear equations at these slopes."""
        own, parts = [*map(wrap, theta)], []
        with no_grad():
            times, states = (v._data for v in self.at_stages(self.shaped(wrap(k), wrap(y0)), *map(wrap, (t, h, y0))))
        most = max(1, _AT_ONCE // max(1, y0.size))
        for i in range(0, len(times), most):
            y = wrap(states[i : i + most].copy()).requires_grad_()
            with enable_grad():
                out = self.f(wrap(times[i : i + most].copy()), y, own)
            parts.append(jacobians(out, y))
        slopes = np.concatenate(parts)
        shape = (len(self.begin), len(self.c), *slopes.shape[1:])
        return Recursion(self.a, self.b, h, self.begin, self.main, slopes.reshape(shape))

    def newton(self, k: Array, t: Array, h: Array, y0: Array, *theta: Array) -> Array | None:
        """The slopes by Newton's method for all steps together, from near ones; None if it does not converge."""
        k, own = k.reshape(-1), [*map(wrap, (t, h, y0, *theta))]
        for _ in range(_ITERATIONS):
            with no_grad():
                rest = self._residual(wrap(k), *own)._data
                y = self.ends(self.shaped(wrap(k), own[2]), own[1], own[2])._data
            change = self.recursion(k, t, h, y0, *theta).solve(rest, False)
            k = k - change
            if not np.isfinite(k).all():
                return None
            size = np.abs(h) * np.abs(change.reshape(len(h), -1)).max(axis=1, initial=0.0)
            if (size <= _PRECISE * (1 + np.abs(y[self.begin]).max(axis=1, initial=0.0))).all():
                return k
        return None


__all__ = ["Recursion", "Stages", "Together", "jacobians"]
