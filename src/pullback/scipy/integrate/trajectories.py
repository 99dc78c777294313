"""The states of a run as a node: its values are SciPy's, its derivative is that of the steps SciPy took.

The first derivative in reverse mode of an explicit method goes back over the steps on arrays. Every other derivative is
that of the steps in recorded operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array
from ..closed_functions import Closed
from .batched_adjoint import Batched, Inside
from .explicit_steps import TABLEAUS, Adjoint, Tableau
from .ivp_runs import EVENT, KNOT, Run, System


class Trajectory(Closed):
    """The times and states at the points of a run, as a function of its number, of t0, t1, times, y0 and theta."""

    __slots__ = ("system",)

    def __init__(self, system: System) -> None:
        super().__init__(system.replay, system.found)
        self.system = system

    def vjp(self, wanted: Sequence[bool], outputs: Sequence[bool]) -> Closed:
        """The vjp of the recorded steps, with its values from the steps in reverse order where that is possible."""
        closed = super().vjp(wanted, outputs)
        tableau = next((t for cls, t in TABLEAUS.items() if issubclass(self.system.method, cls)), None)
        if tableau is None or any(wanted[:4]):
            return closed

        def values(*given: Tensor) -> Any:
            run = self.system.runs[int(given[sum(outputs)]._data)]
            if run.failed or any(p.kind == EVENT for p in run.points):
                return closed.fun(*given)
            return self._back(tableau, run, wanted, outputs, given)

        closed.values = values
        return closed

    def _back(
        self, tableau: Tableau, run: Run, wanted: Sequence[bool], outputs: Sequence[bool], given: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        theta = list(given[sum(outputs) + 5 :])
        theta = [wrap(p._data).requires_grad_() if w else p for p, w in zip(theta, wanted[5:], strict=True)]
        sources = [p for p, w in zip(theta, wanted[5:], strict=True) if w]
        n = run.y.shape[1]
        cotangents = given[sum(outputs) - 1]._data if outputs[1] else np.zeros((len(run.points), n))
        at_knot, inside = _by_step(run, cotangents)
        last = max([*at_knot, *(i + 1 for i in inside)], default=0)

        def f(t: Any, y: Any) -> Any:
            return self.system.fun(t, y, *theta)

        if run.k and run.y.dtype == cotangents.dtype:
            batched = Batched(tableau, f, sources)
            found = batched.back(run, last, at_knot, inside)
            if found is not None:
                return (*([wrap(found)] if wanted[4] else []), *map(wrap, batched.sums))
        back = Adjoint(tableau, f, sources)
        adjoint = np.zeros(n, run.y.dtype)
        for i in reversed(range(last)):
            at_end = adjoint + at_knot.get(i + 1, 0)
            adjoint = back.back(run.t[i], run.t[i + 1] - run.t[i], run.y[i], at_end, inside.get(i))
        adjoint = adjoint + at_knot.get(0, 0)
        return (*([wrap(adjoint)] if wanted[4] else []), *map(wrap, back.sums))


def _by_step(run: Run, cotangents: Array) -> tuple[dict[int, Array], Inside]:
    """The cotangents at the knots, and those within the steps with their positions there; zeros are left out."""
    at_knot: dict[int, Array] = {}
    inside: dict[int, list[tuple[float, Array]]] = {}
    for point, g in zip(run.points, cotangents, strict=True):
        if not g.any():
            continue
        i = point.segment
        number = point.number if point.kind == KNOT else _knot(run, point.time, i)
        if number is None:
            inside.setdefault(i, []).append(((point.time - run.t[i]) / (run.t[i + 1] - run.t[i]), g))
        else:
            at_knot[number] = at_knot.get(number, 0) + g
    return at_knot, {i: (np.array([x for x, _ in own]), np.array([g for _, g in own])) for i, own in inside.items()}


def _knot(run: Run, time: float, segment: int) -> int | None:
    """The number of the knot at a time, if there is one: the dense output is exact there."""
    return next((i for i in (segment, segment + 1) if run.t[i] == time), None)


__all__ = ["Trajectory"]
