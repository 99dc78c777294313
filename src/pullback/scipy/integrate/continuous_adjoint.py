"""The adjoint of an initial value problem as an initial value problem, solved backward in time.

With the cotangent g of the state y(s), ``lambda' = -(df/dy)^T lambda`` and ``mu' = -(df/dtheta)^T lambda``, from
``lambda(s) = g`` and ``mu(s) = 0`` back to t0; there lambda is the gradient of y0, and mu the one of theta. The state
is solved for once more, from its known value at each point. `solve_ivp` does it, so its derivatives have every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ops.make.conversion import to
from ...ops.shape.joining import concatenate
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..closed_functions import Closed, call
from .ivp_runs import EVENT, KNOT, Run, System
from .trajectories import Trajectory

_KEPT = ("rtol", "atol", "max_step", "min_step")


class ContinuousTrajectory(Trajectory):
    """A trajectory whose reverse mode is the adjoint equation. Times of events have the discrete adjoint."""

    __slots__ = ("solve",)

    def __init__(self, system: System, solve: Callable[..., Any]) -> None:
        super().__init__(system)
        self.solve = solve

    def vjp(self, wanted: Sequence[bool], outputs: Sequence[bool]) -> Closed:
        """The solution of the adjoint equation."""
        discrete = super().vjp(wanted, outputs)
        count = sum(outputs)

        def pulled(*values: Tensor) -> tuple[Any, ...]:
            run = self.system.runs[int(values[count]._data)]
            if run.failed or any(p.kind == EVENT for p in run.points):
                return discrete.fun(*values)
            back = _Backward(self, run, wanted, values[count:])
            of_times = values[0] if outputs[0] else np.zeros(len(run.points))
            of_rows = values[count - 1] if outputs[1] else np.zeros(run.rows.shape)
            return back.gradients(of_times, of_rows)

        return Closed(pulled)


class _Backward:
    """One pass back over the points of a run."""

    def __init__(
        self, trajectory: ContinuousTrajectory, run: Run, wanted: Sequence[bool], inputs: Sequence[Any]
    ) -> None:
        self.system, self.solve, self.run, self.wanted, self.inputs = (
            trajectory.system, trajectory.solve, run, wanted, inputs,
        )  # fmt: skip
        self.theta = list(inputs[5:])
        self.like = [inputs[4], *[p for p, w in zip(self.theta, wanted[5:], strict=True) if w]]
        self.rows = call(Trajectory(self.system), *inputs)[1]
        closed = Closed(lambda t, y, *theta: (self.system.fun(t, y, *theta),))
        self.pull = closed.vjp((False, True, *wanted[5:]), (True,)).fun

    def gradients(self, of_times: Any, of_rows: Any) -> tuple[Any, ...]:
        """The gradients of what is wanted of t0, t1, times, y0 and theta."""
        _, t0, t1, times, y0 = self.inputs[:5]
        run, n = self.run, y0.shape[0]
        size = n + sum(p.numel() for p in self.like[1:])
        adjoint: Any = wrap(np.zeros(size, run.rows.dtype))
        of_t0, of_t1 = t0 * 0, t1 * 0
        of_query: dict[int, Any] = {}
        sign = 1.0 if run.t[-1] >= run.t[0] else -1.0
        now: Any = None
        for i in sorted(range(len(run.points)), key=lambda i: -sign * run.points[i].time):
            point = run.points[i]
            moving = (
                times[point.number] if point.kind != KNOT else t0 if i == 0 else t1 if i == len(run.t) - 1 else None
            )
            s = wrap(np.array(point.time)) if moving is None else moving
            if now is not None:
                adjoint = self._between(now[0], now[1], s, adjoint)
            adjoint = concatenate([adjoint[:n] + of_rows[i], adjoint[n:]], 0)
            now = s, self.rows[i]
            if moving is not None:
                slope = self._along(of_rows[i], s, self.rows[i]) + of_times[i]
                if point.kind != KNOT:
                    of_query[point.number] = slope
                elif i == 0:
                    of_t0 = of_t0 + slope
                else:
                    of_t1 = of_t1 + slope
        if now is not None:
            adjoint = self._between(now[0], now[1], t0, adjoint)
        of_t0 = of_t0 - self._along(adjoint[:n], t0, y0)
        of_query_all = (
            concatenate([reshape(of_query[k], (1,)) for k in range(times.shape[0])], 0) if of_query else times * 0
        )
        found = [g for g, w in zip((of_t0, of_t1, of_query_all), self.wanted[1:4], strict=True) if w]
        parts = list(self._parts(adjoint))
        return (*found, *(parts if self.wanted[4] else parts[1:]))

    def _along(self, g: Any, t: Any, y: Any) -> Any:
        """The product of a cotangent and the slope of the state."""
        return np.real((np.conj(g) * self.system.fun(t, y, *self.theta)).sum())

    def _between(self, start: Any, y: Any, end: Any, adjoint: Any) -> Any:
        """The adjoint at `end`, from the one at `start`, where the state is y."""
        if float(start.detach()._data) == float(end.detach()._data):
            return adjoint
        n, pull = y.shape[0], self.pull

        def backward(t: Any, state: Any, *theta: Any) -> Any:
            y, g = state[:n], state[n : 2 * n]
            grads = [to(reshape(p, (-1,)), state._data.dtype) for p in pull(g, t, y, *theta)]
            return concatenate([self.system.fun(t, y, *theta), *[-p for p in grads]], 0)

        options = {k: self.system.options[k] for k in _KEPT if k in self.system.options}
        if np.ndim(options.get("atol", 0)):
            options["atol"] = float(np.min(options["atol"]))
        found = self.solve(
            backward, (start, end), concatenate([y, adjoint], 0), self.system.method, args=tuple(self.theta),
            adjoint="continuous", **options,
        )  # fmt: skip
        return found.y[n:, -1]

    def _parts(self, adjoint: Any) -> Any:
        """The parts of the adjoint, as the tensors that they belong to."""
        start = 0
        for p in self.like:
            part = reshape(adjoint[start : start + p.numel()], tuple(p.shape))
            if part._data.dtype.kind == "c" and p._data.dtype.kind != "c":
                part = np.real(part)
            yield to(part, p._data.dtype)
            start += p.numel()


__all__ = ["ContinuousTrajectory"]
