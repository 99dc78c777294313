"""Steps of SciPy's explicit Runge-Kutta methods in recorded operations, and their adjoint.

A step of size h from y at t has the stages ``k_j = f(t + c_j h, y + h sum_l a_jl k_l)``. It ends at
``y + h sum_j b_j k_j``. Between its ends the solution is ``y + h sum_j w_j(x) k_j`` at ``t + x h``, where w are
polynomials; the stages that only these need come last. The coefficients are those of SciPy's classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate
from numpy.polynomial import polynomial

from ...autograd.grad_mode import enable_grad
from ...ops.make.conversion import to
from ...ops.shape.joining import stack
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array
from ..closed_functions import gradients


class Tableau:
    """The coefficients of a method. a, c: of all stages. b: of the end. p: of the polynomials w, from x upwards."""

    def __init__(self, method: Any) -> None:
        self.stages = len(method.B)
        dop853 = hasattr(method, "A_EXTRA")
        extra = list(method.A_EXTRA) if dop853 else []
        rows = [*method.A, method.B, *extra]
        self.every = len(rows)
        self.a = np.zeros((self.every, self.every))
        for row, given in zip(self.a, rows, strict=True):
            n = min(len(given), self.every)
            row[:n] = given[:n]
        self.c = np.array([*method.C, 1.0, *(method.C_EXTRA if dop853 else [])])
        self.b = np.asarray(method.B)
        self.p = self._nested(method.D) if dop853 else np.asarray(method.P)

    def _nested(self, d: Array) -> Array:
        """The polynomials of DOP853's dense output, which is ``x (F0 + (1 - x) (F1 + x (F2 + ...)))``."""
        unit = np.eye(self.every)
        delta = np.zeros(self.every)
        delta[: self.stages] = self.b
        first, last = unit[0], unit[self.stages]
        parts = [delta, first - delta, 2 * delta - (last + first), *np.asarray(d)]
        found = np.zeros((self.every, len(parts)))
        factor = np.array([1.0])
        for i, part in enumerate(parts):
            factor = polynomial.polymul(factor, [0.0, 1.0] if i % 2 == 0 else [1.0, -1.0])
            found[:, : len(factor) - 1] += np.outer(part, factor[1:])
        return found

    def weights(self, x: Any) -> Any:
        """w at positions x within the step, a column for each."""
        powers = [x]
        for _ in range(self.p.shape[1] - 1):
            powers.append(powers[-1] * x)
        return self.p @ (stack(powers) if isinstance(x, Tensor) else np.array(powers))


TABLEAUS = {cls: Tableau(cls) for cls in (scipy.integrate.RK23, scipy.integrate.RK45, scipy.integrate.DOP853)}


def combined(weights: Any, k: Any) -> Any:
    """The combinations of stages with real weights."""
    if k._data.dtype.kind == "c":
        weights = to(weights, k._data.dtype) if isinstance(weights, Tensor) else weights.astype(k._data.dtype)
    return weights @ k


class ExplicitStep:
    """One step in recorded operations. f: the right-hand side of t and y."""

    def __init__(self, tableau: Tableau, f: Callable[..., Any], t: Any, h: Any, y: Any) -> None:
        self.tableau, self.f, self.t, self.h, self.y = tableau, f, t, h, y
        self.k: list[Any] = []

    def _stages(self, count: int) -> Any:
        a, c = self.tableau.a, self.tableau.c
        while (j := len(self.k)) < count:
            y = self.y + self.h * combined(a[j, :j], stack(self.k)) if j else self.y
            self.k.append(self.f(self.t + c[j] * self.h, y))
        return stack(self.k[:count])

    def end(self) -> Any:
        """The state at the end."""
        return self.y + self.h * combined(self.tableau.b, self._stages(self.tableau.stages))

    def at(self, s: Any) -> Any:
        """The states at the times s, one axis, as rows."""
        w = self.tableau.weights((s - self.t) / self.h)
        return self.y + self.h * combined(np.transpose(w), self._stages(self.tableau.every))


class Adjoint:
    """The gradients of one run by its steps in reverse order, on arrays.

    The stages of a step are computed again from its state at the beginning, each with a graph of its own.
    f: the right-hand side of t and y. sources: the leaves that f depends on, besides, whose gradients are wanted.
    """

    def __init__(self, tableau: Tableau, f: Callable[..., Any], sources: Sequence[Tensor]) -> None:
        self.tableau, self.f, self.sources = tableau, f, sources
        self.sums: list[Any] = [np.zeros_like(s._data) for s in sources]

    def back(self, t: float, h: float, y: Array, at_end: Array, inside: tuple[Array, Array] | None) -> Array:
        """The cotangent of y. at_end: that of the end. inside: positions x in the step, and the cotangents there."""
        tableau = self.tableau
        count = tableau.stages if inside is None else tableau.every
        of_k = np.zeros((count, y.size), at_end.dtype)
        of_k[: tableau.stages] = np.outer(h * tableau.b, at_end)
        total = at_end.copy()
        if inside is not None:
            x, cotangents = inside
            of_k += h * (tableau.weights(x) @ cotangents)
            total += cotangents.sum(axis=0)
        a, times = h * tableau.a[:count, :count], t + h * tableau.c
        k, of_states = np.zeros((count, y.size), y.dtype), np.zeros_like(of_k)
        recorded = []
        with enable_grad():
            for j in range(count):
                state = wrap(y + a[j, :j] @ k[:j])
                state.requires_grad_()
                out = self.f(wrap(np.array(times[j])), state)
                k[j] = out._data
                recorded.append((state, out))
        for j in reversed(range(count)):
            state, out = recorded.pop()
            cotangent = of_k[j] + a[j + 1 :, j] @ of_states[j + 1 :] if j + 1 < count else of_k[j]
            found = gradients(out, [state, *self.sources], cotangent)
            if found[0] is not None:
                of_states[j] = found[0]
            for sums, g in zip(self.sums, found[1:], strict=True):
                if g is not None:
                    sums += g
        return total + of_states.sum(axis=0)


__all__ = ["TABLEAUS", "Adjoint", "ExplicitStep", "Tableau", "combined"]
