"""One run of SciPy's `solve_ivp`, with the steps it took, and the same run in recorded operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
import scipy.sparse

from ... import errors
from ...ops.make.conversion import to
from ...ops.shape.joining import concatenate, stack
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array
from ..closed_functions import Closed, root
from ..user_functions import name_of
from .explicit_steps import TABLEAUS, ExplicitStep
from .implicit_steps import ImplicitStep, Slopes
from .right_hand_side import UserFunction
from .stage_equations import Together
from .whole_runs import WholeRun

KNOT, QUERY, EVENT = "knot", "query", "event"

EQUATIONS = 16
"""The most equations for which the stages of the steps are kept, and their Jacobians computed at once."""

_ELEMENTS = 1 << 23  # of these Jacobians, at most

NOT_FINITE = "The right-hand side or the state is not finite."

_STAYS = 100  # so many steps that do not move the time are a failure

_NEAR = 1e-4  # how far beside an event its function is looked at, relative to the step
_FLAT = 1e-5  # a slope below this, relative to the values over a step, is none


class Point(NamedTuple):
    """A place where the solution is a result: an end of a step, a time of ``t_eval``, or an event.

    number: of the knot, of the time in ``t_eval``, or of the event's function. segment: the step it lies in.
    """

    kind: str
    number: int
    segment: int
    time: float


class Run(NamedTuple):
    """What SciPy found. t, y: at the ends of its steps. points: of ``t``, then of the events in order."""

    result: Any
    t: Array
    y: Array
    points: list[Point]
    rows: Array  # the states at the points
    main: int  # the number of points that are no events
    bounded: bool  # the last step ends at the end of the span
    k: Sequence[Array] = ()  # the slopes at the stages of each step, of explicit methods for few equations

    @property
    def failed(self) -> bool:
        return self.result.status == -1


class _UndefinedError(Exception):
    """The solver cannot go on, because something is not finite."""


def recorded(method: Any, steps: list[Any], after: Callable[[Any], None] | None) -> Any:
    """A solver class that notes its steps. after: called with the solver after each step.

    It fails where no step moves the time any more, as LSODA does not by itself.
    """

    def begin(self: Any, fun: Any, t0: Any, y0: Any, *args: Any, **options: Any) -> None:
        method.__init__(self, fun, t0, y0, *args, **options)
        steps.append((self.t, np.array(self.y), None))

    def step(self: Any) -> Any:
        message = method.step(self)
        self.stays = self.stays + 1 if self.status == "running" and self.t == self.t_old else 0
        if self.stays > _STAYS:
            self.status, message = "failed", self.TOO_SMALL_STEP
        if self.status != "failed":
            k = getattr(self, "K", None) if self.n <= EQUATIONS else None
            steps.append((self.t, np.array(self.y), None if k is None else k[: self.n_stages].copy()))
            if after is not None:
                after(self)
        return message

    return type(method.__name__, (method,), {"__init__": begin, "step": step, "stays": 0})


class System:
    """A system of equations with its events and settings; it runs SciPy, and keeps every run.

    shape of a run's inputs: t0, t1, the times of t_eval (none if it is not given), y0, and those of `Given`.
    """

    def __init__(
        self,
        fun: UserFunction,
        events: Sequence[UserFunction],
        method: Any,
        options: dict[str, Any],
        evaluates: bool,
        after: Callable[[Any], None] | None,
    ) -> None:
        self.fun, self.events, self.method, self.options = fun, events, method, options
        self.evaluates, self.after = evaluates, after
        self.jacobian: Any = None
        self.slopes = Slopes()
        self.runs: list[Run] = []
        self.together = Together(fun)
        self._wholes: dict[int, WholeRun | None] = {}

    # Values -----------------------------------------------------------------------------------------------------------

    def plan(self, t0: Tensor, t1: Tensor, times: Tensor, y0: Tensor, *theta: Tensor) -> tuple[Tensor]:
        """Run SciPy; the result is the number of the run."""
        steps: list[Any] = []
        options = dict(self.options)
        with self.fun.given.running():
            if self.jacobian is not None:
                options["jac"] = _checked(self.jacobian(theta))
            rhs, span = self.fun.of_arrays(theta), (float(t0._data), float(t1._data))

        def fun(t: Any, y: Any) -> Any:
            if t != t:
                raise _UndefinedError("The right-hand side is not finite at the beginning; no step can be taken.")
            return rhs(t, y)

        try:
            with self.fun.given.running():
                result = scipy.integrate.solve_ivp(
                    fun,
                    span,
                    y0._data,
                    method=recorded(self.method, steps, self.after),
                    t_eval=times._data if self.evaluates else None,
                    events=[self._event(e, theta) for e in self.events] or None,
                    **options,
                )
        except _UndefinedError as error:
            result = _undefined(span, y0._data, len(self.events), str(error))
            steps = [(span[0], y0._data, None), (span[1], y0._data, None)]
        if result.status >= 0 and not all(np.isfinite(y).all() for _, y, _ in steps):  # LSODA goes on with NaN
            result.update(status=-1, success=False, message=NOT_FINITE)
        self._look(t0, y0, theta)
        self.runs.append(self._run(result, steps, span, times._data))
        return (wrap(np.array(len(self.runs) - 1)),)

    def _look(self, t0: Tensor, y0: Tensor, theta: Sequence[Any]) -> None:
        if not issubclass(self.method, tuple(TABLEAUS)):
            self.slopes.look(self.fun.bound(theta), t0._data, y0._data)

    @staticmethod
    def _event(event: UserFunction, theta: Sequence[Any]) -> Callable[..., Any]:
        values = event.of_arrays(theta)

        def g(t: Any, y: Any) -> float:
            return values(t, y).item()

        for name in ("terminal", "direction"):
            if hasattr(event.fun, name):
                setattr(g, name, getattr(event.fun, name))
        return g

    def _run(self, result: Any, steps: list[Any], span: tuple[float, float], times: Array) -> Run:
        t, y = np.array([s[0] for s in steps]), np.array([s[1] for s in steps])
        n, failed = y.shape[1], result.status == -1
        found = times if failed and self.evaluates else np.asarray(result.t, np.float64)
        if self.evaluates:
            points = queries(t, found)
        else:
            points = [Point(KNOT, i, max(i - 1, 0), s) for i, s in enumerate(found)]
        for number, at in enumerate(result.t_events or []):
            points += [Point(EVENT, number, _segment(t, s), s) for s in at]
            if result.status == 1 and not self.evaluates and len(at) and at[-1] == found[-1]:
                points[len(found) - 1] = points[-1]
        if failed:
            rows = np.full((len(points), n), np.nan, y.dtype)
        else:
            main = np.asarray(result.y).T if len(result.t) else np.empty((0, n))
            events = [np.asarray(e).reshape(-1, n) for e in result.y_events or []]
            rows = np.concatenate([main, *events]).astype(y.dtype, copy=False)
        k = [s[2] for s in steps[1:]]
        return Run(result, t, y, points, rows, len(found), result.status == 0, () if any(v is None for v in k) else k)

    def query(self, which: Tensor, times: Tensor) -> tuple[Tensor]:
        """Evaluate the dense output of a run at times; the result is the number of a run with these points."""
        run = self.runs[int(which._data)]
        rows = run.result.sol(times._data).T
        self.runs.append(run._replace(points=queries(run.t, times._data), rows=rows, main=len(rows)))
        return (wrap(np.array(len(self.runs) - 1)),)

    def found(self, which: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        """The times and the states, as rows, at the points of a run."""
        run = self.runs[int(which._data)]
        return wrap(np.array([p.time for p in run.points], np.float64)), wrap(run.rows.copy())

    # The same, recorded -----------------------------------------------------------------------------------------------

    def replay(
        self, which: Tensor, t0: Tensor, t1: Tensor, times: Tensor, y0: Tensor, *theta: Tensor
    ) -> tuple[Any, Any]:
        """`found` in recorded operations: the steps are taken again, with their sizes as constants."""
        run = self.runs[int(which._data)]
        if run.failed:
            lost = np.nan * sum((x.sum() for x in (t0, t1, y0, *theta)), wrap(np.zeros(())))
            return wrap(np.array([p.time for p in run.points])), lost * np.ones(run.rows.shape)
        knots = self._knots(run, t0, t1)
        whole = self._whole(int(which._data))
        if whole is not None:
            return self._joined(run, whole, knots, times, to(y0, run.y.dtype), theta)
        here: dict[int, list[int]] = {}
        for j, point in enumerate(run.points):
            here.setdefault(point.segment, []).append(j)
        at: dict[int, tuple[Any, Any]] = {}
        y = to(y0, run.y.dtype)
        for i in range(max(here, default=-1) + 1):
            step = self._step(run, i, knots, y, theta)
            end = step.end() if i < max(here) or self._ends(run, i) else None
            self._inside(run, i, here.get(i, ()), knots, times, step, (y, end), theta, at)
            y = end
        if not at:
            return times[:0], reshape(y0, (1, -1))[:0]
        return stack([at[j][0] for j in range(len(at))]), stack([at[j][1] for j in range(len(at))])

    def _whole(self, number: int) -> WholeRun | None:
        """The steps of a run together, where that pays: for few equations. It is kept, for all its derivatives."""
        if number not in self._wholes:
            run = self.runs[number]
            tableau = next((t for cls, t in TABLEAUS.items() if issubclass(self.method, cls)), None)
            apart = not 0 < run.y.shape[1] <= EQUATIONS or (tableau is not None and len(run.k) < len(run.t) - 1)
            whole = None if apart else WholeRun(self.together, self.slopes, tableau, run)
            self._wholes[number] = None if whole is None or whole.elements > _ELEMENTS else whole
        return self._wholes[number]

    def _joined(
        self, run: Run, whole: WholeRun, knots: Sequence[Any], times: Any, y0: Any, theta: Sequence[Any]
    ) -> tuple[Any, Any]:
        """The times and states at the points of a run whose steps are taken together."""
        ends, inside = whole.states(knots, times, y0, theta)
        at: dict[int, tuple[Any, Any]] = {}
        for j, (kind, _, i, _) in enumerate(run.points):
            if kind == EVENT:
                step = self._step(run, i, knots, ends[i], theta)
                self._inside(run, i, (j,), knots, times, step, (ends[i], None), theta, at)
        of_events = [at[j] for j in sorted(at)]
        order = np.argsort([j for kind in (KNOT, QUERY, EVENT) for j, p in enumerate(run.points) if p.kind == kind])
        if not len(order):
            return times[:0], ends[:0]
        at_knots = [p.number for p in run.points if p.kind == KNOT]
        moments = [stack([knots[i] for i in at_knots])] if at_knots else []
        rows = [ends[np.array(at_knots)]] if at_knots else []
        if whole.asked.size:
            moments, rows = [*moments, times[whole.numbers]], [*rows, inside]
        if of_events:
            moments, rows = [*moments, stack([s for s, _ in of_events])], [*rows, stack([y for _, y in of_events])]
        return concatenate(moments, 0)[order], concatenate(rows, 0)[order]

    @staticmethod
    def _ends(run: Run, i: int) -> bool:
        """Whether the end of the last step is a point."""
        return any(p.kind == KNOT and p.number == i + 1 for p in run.points)

    def _knots(self, run: Run, t0: Any, t1: Any) -> list[Any]:
        knots: list[Any] = [wrap(np.array(t)) for t in run.t]
        knots[0] = t0
        if run.bounded:
            knots[-1] = t1
        return knots

    def _step(self, run: Run, i: int, knots: Any, y: Any, theta: Sequence[Any]) -> Any:
        h = knots[i + 1] - knots[i]
        for cls, tableau in TABLEAUS.items():
            if issubclass(self.method, cls):
                return ExplicitStep(tableau, lambda t, y: self.fun(t, y, *theta), knots[i], h, y)
        return ImplicitStep(self.fun, self.slopes, knots[i], h, y, theta, run.y[i + 1] - run.y[i])

    def _inside(
        self,
        run: Run,
        i: int,
        here: Sequence[int],
        knots: Sequence[Any],
        times: Any,
        step: Any,
        ends: tuple[Any, Any],
        theta: Sequence[Any],
        at: dict[int, tuple[Any, Any]],
    ) -> None:
        """Note the times and states of the points in one step."""
        asked = []
        for j in here:
            kind, number, _, time = run.points[j]
            if kind == KNOT:
                at[j] = knots[number], ends[number - i]
            elif kind == QUERY:
                asked.append((j, times[number]))
            else:
                asked.append((j, self._event_time(run, i, number, time, knots, ends[0], theta)))
        if asked:
            rows = step.at(stack([s for _, s in asked]))
            for k, (j, s) in enumerate(asked):
                at[j] = s, rows[k]

    def _event_time(
        self, run: Run, i: int, number: int, time: float, knots: Sequence[Any], y: Any, theta: Sequence[Any]
    ) -> Any:
        """The time of an event: the root of its function along the solution in one step."""
        event = self.events[number]

        def along(s: Any, t: Any, end: Any, y: Any, theta: Sequence[Any]) -> Any:
            step = self._step(run, i, {i: t, i + 1: end}, y, theta)
            return event(s[0], step.at(s)[0], *theta)

        def residual(s: Any, t: Any, end: Any, y: Any, *theta: Any) -> tuple[Any]:
            return (reshape(along(s, t, end, y, theta), (1,)),)

        def find(t: Array, end: Array, y: Array, *theta: Array) -> Array:
            given = (wrap(t), wrap(end), wrap(y), [wrap(p) for p in theta])
            near = _NEAR * (end - t)
            ahead, behind, *ends = (
                float(along(wrap(np.array([s])), *given)._data) for s in (time + near, time - near, t, end)
            )
            if abs(ahead - behind) <= _FLAT * 2 * _NEAR * max(map(abs, ends)):
                raise RuntimeError(
                    errors.message(
                        f"{event.where}: event {number} ({name_of(event.fun)}) is tangential at t = {time:.6g}: it "
                        "touches zero there, and its time has no derivative",
                        do="choose an event that crosses zero, or differentiate results that do not depend on it",
                    )
                )
            return np.array([time])

        return root(Closed(residual), find, knots[i], knots[i + 1], y, *theta)[0]


def _segment(t: Array, time: float) -> int:
    """The number of the step whose end is the first at `time` or after it."""
    sign = 1.0 if t[-1] >= t[0] else -1.0
    return max(0, min(int(np.searchsorted(sign * t, sign * time)) - 1, len(t) - 2))


def queries(t: Array, times: Array) -> list[Point]:
    """Times as points."""
    return [Point(QUERY, i, _segment(t, s), s) for i, s in enumerate(times)]


def _checked(jacobian: Callable[..., Any]) -> Callable[..., Any]:
    """A Jacobian for SciPy, which would not say what is not finite."""

    def finite(t: Any, y: Any) -> Any:
        found = jacobian(t, y)
        if not np.isfinite(found.data if scipy.sparse.issparse(found) else found).all():
            raise _UndefinedError(f"The Jacobian of the right-hand side is not finite at t = {t:.6g}.")
        return found

    return finite


def _undefined(span: tuple[float, float], y0: Array, events: int, message: str) -> Any:
    """SciPy's result where it would not end, or fail with an error of another kind."""
    return scipy.integrate._ivp.ivp.OdeResult(
        t=np.array([span[0]]),
        y=y0[:, None],
        sol=None,
        t_events=[np.array([])] * events if events else None,
        y_events=[np.array([])] * events if events else None,
        nfev=2,
        njev=0,
        nlu=0,
        status=-1,
        message=message,
        success=False,
    )


__all__ = ["EQUATIONS", "EVENT", "KNOT", "NOT_FINITE", "QUERY", "Point", "Run", "System", "queries"]
