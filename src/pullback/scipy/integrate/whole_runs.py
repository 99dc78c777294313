"""The states of one run in recorded operations, with all its steps together; see `stage_equations`.

An explicit method's stages are those of SciPy's own run, and its states between the ends of steps follow from them. An
implicit method is followed by steps of the Radau IIA method. A state that is asked for between their ends is the end of
a step of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.grad_mode import no_grad
from ...ops.shape.joining import concatenate, stack
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array
from ..solutions import Solution
from .explicit_steps import Tableau, combined
from .implicit_steps import A, C, Slopes, increments
from .stage_equations import Stages, Together

if TYPE_CHECKING:
    from .ivp_runs import Run

_INVERSE = np.linalg.inv(A)


class WholeRun:
    """The steps of a run up to its last point.

    tableau: of an explicit method. asked: the steps in which the times lie that were asked for. numbers: of these
    times. elements: how many numbers their Jacobians have.
    """

    def __init__(self, together: Together, slopes: Slopes, tableau: Tableau | None, run: Run) -> None:
        self.together, self.slopes, self.tableau, self.run = together, slopes, tableau, run
        asked = [p for p in run.points if p.kind == "query"]
        self.asked = np.array([p.segment for p in asked], int)
        self.numbers = np.array([p.number for p in asked], int)
        explicit = tableau is not None
        needed = [p.number if p.kind == "knot" else p.segment + (p.kind == "query" and explicit) for p in run.points]
        self.main = max(needed, default=0)
        begin = np.arange(self.main)
        if tableau is None:
            self.coefficients = A, A[-1], C
            begin = np.concatenate([begin, self.asked])
        else:
            count = tableau.every if self.asked.size else tableau.stages
            b = np.concatenate([tableau.b, np.zeros(count - tableau.stages)])
            self.coefficients = tableau.a[:count, :count], b, tableau.c[:count]
        self.stages = Stages(together, self.coefficients, begin, self.main, self._found)
        doubled = 2 if run.y.dtype.kind == "c" else 1
        self.elements = len(begin) * len(self.coefficients[2]) * (doubled * run.y.shape[1]) ** 2
        self._known: tuple[Any, Array] | None = None

    def states(self, knots: Sequence[Any], times: Any, y0: Any, theta: Sequence[Any]) -> tuple[Any, Any]:
        """The states at the ends of the steps, and at the times that were asked for, as rows."""
        stages = self.stages
        if not len(stages.begin):
            return reshape(y0, (1, -1)), None
        at = stack(list(knots[: self.main + 1]))
        t, h = at[: self.main], at[1 : self.main + 1] - at[: self.main]
        asked = times[self.numbers]
        if self.tableau is None and self.asked.size:
            start = at[self.asked]
            t, h = concatenate([t, start], 0), concatenate([h, asked - start], 0)
        k = stages.shaped(Solution.apply(stages, t, h, y0, *theta), y0)
        ends = stages.ends(k, h, y0)
        if not self.asked.size:
            return ends, None
        if self.tableau is None:
            own, h = k[self.main :], h[self.main :]
            return ends, ends[self.asked] + reshape(h, (-1, 1)) * combined(self.coefficients[1], own)
        w = np.transpose(self.tableau.weights((asked - t[self.asked]) / h[self.asked]))
        inside = reshape(combined(reshape(w, (self.asked.size, 1, -1)), k[self.asked]), (self.asked.size, -1))
        return ends, ends[self.asked] + reshape(h[self.asked], (-1, 1)) * inside

    # Values -------------------------------------------------------------------------------------------------------

    def _found(self, t: Array, h: Array, y0: Array, *theta: Array) -> Array:
        """The slopes at all stages; those of one call are kept."""
        key = [v.tobytes() for v in (t, h, y0, *theta)]
        if self._known is None or self._known[0] != key:
            find = self._of_radau if self.tableau is None else self._of_scipy
            self._known = key, find(t, h, y0, *theta)
        return self._known[1]

    def _of_scipy(self, t: Array, h: Array, y0: Array, *theta: Array) -> Array:
        """Those of an explicit method, from SciPy's run; further ones serve states between the ends of steps."""
        a, _, c = self.coefficients
        kept = np.array(self.run.k[: self.main])
        known = kept.shape[1]
        own = [*map(wrap, theta)]
        y = self.run.y[: self.main, None]
        states = y + h[:, None, None] * (a[:known, :known] @ kept[:, : len(c)])
        times = t[:, None] + h[:, None] * c[:known]
        n = y0.size
        self.together.compare(times.reshape(-1), states.reshape(-1, n), own, kept[:, : len(c)].reshape(-1, n))
        k = np.zeros((self.main, len(c), n), kept.dtype)
        k[:, :known] = kept[:, : len(c)]
        for j in range(known, len(c)):
            state = self.run.y[: self.main] + h[:, None] * np.einsum("l,ilx->ix", a[j, :j], k[:, :j])
            with no_grad():
                k[:, j] = self.together(wrap(t + h * c[j]), wrap(state), own)._data
        return k

    def _of_radau(self, t: Array, h: Array, y0: Array, *theta: Array) -> Array:
        """Those of Radau IIA, by Newton's method for all steps, or where that fails for one after another."""
        _, _, c = self.coefficients
        y, begin, own = self.run.y, self.stages.begin, [*map(wrap, theta)]
        steps = np.diff(self.run.t)[np.minimum(begin, len(self.run.t) - 2)]
        part = np.divide(h, steps, out=np.zeros_like(h), where=steps != 0)[:, None] * c
        change = y[np.minimum(begin + 1, len(y) - 1)] - y[begin]
        states = (y[begin][:, None] + part[..., None] * change[:, None]).reshape(-1, y0.size)
        times = (t[:, None] + h[:, None] * c).reshape(-1)
        with self.together.f.given.running():
            f = self.together.f.of_arrays(own)
        values = np.array([np.reshape(f(s, v), -1) * np.ones(y0.size) for s, v in zip(times, states, strict=True)])
        self.together.compare(times, states, own, values)
        k = values.reshape(len(h), len(C), -1).astype(y.dtype)
        increments_of = _INVERSE @ (part[..., None] * change[:, None])
        np.divide(increments_of, h[:, None, None], out=k, where=h[:, None, None] != 0)
        found = self.stages.newton(k, t, h, y0, *theta)
        return self._in_order(k, t, h, y0, own) if found is None else found

    def _in_order(self, found: Array, t: Array, h: Array, y0: Array, theta: Sequence[Tensor]) -> Array:
        f, n, y = self.together.f.bound(theta), y0.size, [y0]
        with no_grad():
            for i, start in enumerate(self.stages.begin):
                if h[i] != 0:
                    guess = h[i] * (A @ found[i])
                    z = increments(f, self.slopes, t[i], h[i], y[start], guess.reshape(-1)).reshape(len(C), n)
                    found[i] = _INVERSE @ z / h[i]
                if i < self.main:
                    y.append(y[i] + h[i] * (A[-1] @ found[i]))
        return found


__all__ = ["WholeRun"]
