"""The adjoint of explicit steps with the stages of many steps in one batch.

The states at all stages are known after the forward run. So the right-hand side is called once for a batch of them,
and its Jacobians are taken from the graph of that call, a row for all stages at a time. What remains to be done in
order is arithmetic on small arrays; at last one pass gives the gradients of what the right-hand side depends on. That
pays for few equations, and needs a right-hand side that `vmap` can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.grad_mode import enable_grad, no_grad
from ...func.vectorize import at_once
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array, pairs
from ..closed_functions import gradients
from .explicit_steps import Tableau
from .ivp_runs import Run
from .stage_equations import jacobians

Inside = dict[int, tuple[Array, Array]]

_STEPS = 64  # of one batch


class Batched:
    """The gradients of one run.

    f: of t and y. sources: the leaves that f depends on, besides.
    """

    def __init__(self, tableau: Tableau, f: Callable[..., Any], sources: Sequence[Tensor]) -> None:
        self.tableau, self.f, self.sources = tableau, f, sources
        self.sums: list[Any] = [np.zeros_like(s._data) for s in sources]

    def back(self, run: Run, last: int, at_knot: dict[int, Array], inside: Inside) -> Array | None:
        """The cotangent of y0; None where the right-hand side cannot be called for a batch.

        at_knot: the cotangents at the ends of steps. inside: positions in a step, and the cotangents there.
        """
        kind = run.y.dtype
        at_knot = {i: pairs(g) for i, g in at_knot.items()}
        inside = {i: (x, pairs(g)) for i, (x, g) in inside.items()}
        adjoint = pairs(np.zeros(run.y.shape[1], kind))
        for end in range(last, 0, -_STEPS):
            steps = range(max(0, end - _STEPS), end)
            stages = [self._stages(run, i, i in inside) for i in steps]
            states = wrap(np.concatenate([y for _, y, _ in stages])).requires_grad_()
            slopes = np.concatenate([k for _, _, k in stages])
            out = self._called(np.concatenate([t for t, _, _ in stages]), states, slopes)
            if out is None:
                return None
            slopes_by_states = jacobians(out, states)
            cotangents = np.empty(slopes_by_states.shape[:2])
            place = len(slopes)
            for i in reversed(steps):
                count = len(stages[i - steps.start][0])
                place -= count
                part = slice(place, place + count)
                at_end = adjoint + at_knot.get(i + 1, 0)
                h = run.t[i + 1] - run.t[i]
                adjoint = self._step(h, at_end, inside.get(i), slopes_by_states[part], cotangents[part])
            for sums, g in zip(self.sums, gradients(out, self.sources, cotangents.view(kind)), strict=True):
                if g is not None:
                    sums += g
        found: Array = (adjoint + at_knot.get(0, 0)).view(kind)
        return found

    def _stages(self, run: Run, i: int, every: bool) -> tuple[Array, Array, Array]:
        """The times, the states and the slopes at the stages of a step."""
        tableau, t, h, y = self.tableau, run.t[i], run.t[i + 1] - run.t[i], run.y[i]
        k = run.k[i]
        if every:
            k = np.concatenate([k, np.empty((tableau.every - len(k), y.size), k.dtype)])
            with no_grad():
                for j in range(tableau.stages, tableau.every):
                    state = y + h * (tableau.a[j, :j] @ k[:j])
                    k[j] = self.f(wrap(np.array(t + tableau.c[j] * h)), wrap(state))._data
        return t + h * tableau.c[: len(k)], y + h * (tableau.a[: len(k), : len(k)] @ k), k

    def _called(self, t: Array, states: Tensor, slopes: Array) -> Any:
        """The right-hand side at all stages; None if it cannot be called so, or gives other values then."""
        try:
            with enable_grad():
                out = at_once(self.f)(wrap(t), states)
        except Exception:  # of any kind: it is called for one state after another instead, and raises there if it must
            return None
        if out.shape != slopes.shape or not np.allclose(out._data, slopes, rtol=1e-8, atol=1e-12, equal_nan=True):
            return None
        return out

    def _step(self, h: float, at_end: Array, inside: Any, slopes: Array, cotangents: Array) -> Array:
        """The cotangent of the state at the beginning; those of the stages are written to `cotangents`."""
        tableau, count = self.tableau, len(cotangents)
        a = h * tableau.a[:count, :count].T
        base = np.zeros_like(cotangents)
        base[: tableau.stages] = np.outer(h * tableau.b, at_end)
        total = at_end
        if inside is not None:
            x, given = inside
            base += h * (tableau.weights(x) @ given)
            total = total + given.sum(axis=0)
        of_states = np.zeros_like(cotangents)
        for j in range(count - 1, -1, -1):
            cotangents[j] = base[j] + a[j, j + 1 :] @ of_states[j + 1 :]
            of_states[j] = cotangents[j] @ slopes[j]
        return total + of_states.sum(axis=0)


__all__ = ["Batched", "Inside"]
