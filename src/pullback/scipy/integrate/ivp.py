"""`solve_ivp`: SciPy's solvers of initial value problems, with the derivatives of the steps that they take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate
import scipy.sparse

from ... import errors
from ...ops.make.conversion import to
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import array_of, as_tensor, floating
from ..closed_functions import Closed, call
from ..mirror import mirrors
from ..progress_bar import Show, shown
from ..user_functions import ON_FAILURE, Given, check_choice, check_function, not_converged, plain_setting
from .continuous_adjoint import ContinuousTrajectory
from .implicit_steps import Slopes
from .ivp_runs import Run, System
from .right_hand_side import UserFunction
from .trajectories import Trajectory

_WHERE = "pullback.scipy.integrate.solve_ivp"

EXPLICIT = (scipy.integrate.RK45, scipy.integrate.RK23, scipy.integrate.DOP853)
IMPLICIT = (scipy.integrate.Radau, scipy.integrate.BDF, scipy.integrate.LSODA)
METHODS = {cls.__name__: cls for cls in (*EXPLICIT, *IMPLICIT)}


class OdeSolution:
    """The solution as a function of time, from ``dense_output=True``. ts: the ends of the steps."""

    def __init__(self, trajectory: Trajectory, which: Tensor, inputs: Sequence[Any], ts: Tensor) -> None:
        self.ts = ts
        self.t_min, self.t_max = min(ts[0], ts[-1]), max(ts[0], ts[-1])
        self.n_segments = ts.shape[0] - 1
        self._trajectory, self._which, self._inputs = trajectory, which, inputs

    def __call__(self, t: Any) -> Any:
        """The states at `t`: shape (n,) for a number, (n, k) for k times. Tensors in `t` are differentiated."""
        t = to(floating(t), np.float64)
        times = reshape(t, (-1,))
        t0, t1, _, *rest = self._inputs
        (which,) = call(Closed(self._trajectory.system.query), self._which, times)
        _, rows = call(self._trajectory, which, t0, t1, times, *rest)
        return rows[0] if t.dim() == 0 else np.transpose(rows)


@mirrors(
    "integrate.solve_ivp",
    derivative="explicit methods: the exact discrete adjoint of the steps taken, or the continuous one; implicit "
    "methods: the adjoint by Radau IIA on the steps taken, with a Jacobian that is sparse where it is found to be; "
    "times of events: implicit function theorem",
    limits="sizes of steps are constants; a tangential event is an error",
)
def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    *,
    adjoint: str = "discrete",
    on_failure: str = "raise",
    progress: bool = False,
    **options: Any,
) -> Any:
    """Solve an initial value problem ``dy/dt = fun(t, y, *args)``, ``y(t0) = y0``.

    Args:
        fun: is called with Tensors t and y, of shape (n,). It returns a Tensor, or a list of numbers and Tensors.
            Tensors that it reads besides its arguments are differentiated as well.
        t_span, y0, t_eval, args: Tensors in them are differentiated.
        method: "RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA", or the class.
        events: functions with the arguments of `fun`. Their times and states are differentiated too.
        adjoint: "discrete", or "continuous": the adjoint equation is solved backward by the same method, together with
            the state. Its error is that of the tolerances, and it is not for stiff systems, whose state cannot be
            followed backward. Forward mode and events are as with "discrete".
        on_failure: "raise" a RuntimeError with SciPy's message, or "nan": values and gradients are NaN.
        progress: show how far the solver is.
        options: SciPy's ``rtol``, ``atol``, ``max_step``, ``first_step``, ``jac``, ``jac_sparsity`` ... For an implicit
            method without ``jac`` the Jacobian comes from the derivative of `fun`.

    Returns:
        SciPy's OdeResult with Tensors t, y, t_events, y_events, with ``sol(t)`` to call if `dense_output`, and with
        ``gradient_error``: the local errors that the tolerances allow, summed over the steps, relative to the solution.
        A gradient differs from that of the exact solution by about as much.

    An explicit method takes steps that are compositions of arithmetic, and the derivative is that of these steps with
    their sizes as constants: the first and the last one end at the ends of `t_span`, so these are differentiated. This
    is the gradient of exactly what was computed (Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I,
    II.6). An implicit method's adjoint takes the same steps by the Radau IIA method of order 5.

    Raises:
        RuntimeError: the solver failed, with its message; an event that touches zero without crossing it.
        TypeError: a setting that requires grad.
        ValueError: what SciPy refuses, with its message.

    >>> import pullback
    >>> from pullback.scipy.integrate import solve_ivp
    >>> rate = pullback.tensor(0.5, dtype=pullback.float64, requires_grad=True)
    >>> sol = solve_ivp(lambda t, y, k: -k * y, (0.0, 2.0), [1.0], args=(rate,), rtol=1e-8, atol=1e-8)
    >>> sol.y[0, -1].backward()  # of exp(-2 k), which is -2 exp(-2 k)
    >>> round(rate.grad.item(), 5)
    -0.73576
    """
    check_function(_WHERE, fun)
    check_choice(_WHERE, "adjoint", adjoint, ("discrete", "continuous"))
    check_choice(_WHERE, "on_failure", on_failure, ON_FAILURE)
    solver = _solver(method)
    names = [k for k in options if not callable(options[k])]
    options |= dict(zip(names, plain_setting(_WHERE, **{k: options[k] for k in names}), strict=True))
    (vectorized,) = plain_setting(_WHERE, vectorized=vectorized)
    if args is not None:
        _check_unpacks(args)
    given = Given(tuple(args) if args is not None else ())
    t0, t1 = (to(floating(t), np.float64) for t in _two(t_span))
    y0 = _state(y0)
    times = wrap(np.zeros(0)) if t_eval is None else to(as_tensor(t_eval), np.float64)
    rhs = UserFunction(_WHERE, fun, given, tuple(y0.shape), columns=bool(vectorized))
    watched = [UserFunction(_WHERE, e, given, ()) for e in _listed(events)]
    for e in watched:
        check_function(_WHERE, e.fun, "events")
    for f in (rhs, *watched) if y0.dim() == 1 else ():
        f.find_reads(t0, y0)
    with shown("solve_ivp", progress) as show:
        system = System(
            rhs,
            watched,
            solver,
            {**options, "dense_output": bool(dense_output)},
            t_eval is not None,
            functools.partial(_show, show) if progress else None,
        )
        system.jacobian = _jacobian(rhs, system.slopes, solver, options)
        inputs = (t0, t1, times, y0, *given.inputs)
        (which,) = call(Closed(system.plan), *[x.detach() for x in inputs])
    runs = list(system.runs)
    _check_runs(runs, on_failure)
    kind = Trajectory if adjoint == "discrete" else functools.partial(ContinuousTrajectory, solve=solve_ivp)
    found = call(kind(system), which, *inputs)
    return _result(system, runs, which, inputs, found, kind if dense_output else None)


def _show(show: Show, solver: Any) -> None:
    """Show how far a solver is after a step."""
    start, end = solver.__dict__.setdefault("_shown_from", solver.t_old), solver.t_bound
    done = 1.0 if end == start else (solver.t - start) / (end - start)
    show(f"t = {solver.t:.6g}, step {solver.step_size or 0:.2g}, {solver.nfev} calls", float(done))


def _solver(method: Any) -> Any:
    """The class of a method."""
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    if not (inspect.isclass(method) and issubclass(method, scipy.integrate.OdeSolver)):
        raise ValueError(f"`method` must be one of {tuple(METHODS)} or OdeSolver class.")
    if not issubclass(method, (*EXPLICIT, *IMPLICIT)):
        raise TypeError(
            errors.message(
                f"{_WHERE}: method", expected=f"one of {', '.join(METHODS)}, or a subclass", found=method.__name__
            )
        )
    return method


def _check_unpacks(args: Any) -> None:
    try:
        _ = [*args]
    except TypeError as error:
        raise TypeError(
            f"Supplied 'args' cannot be unpacked. Please supply `args` as a tuple (e.g. `args=({args},)`)"
        ) from error


def _two(t_span: Any) -> tuple[Any, Any]:
    t0, t1 = t_span
    return t0, t1


def _state(y0: Any) -> Any:
    """y0 as SciPy converts it: float64, or complex128."""
    y0 = floating(y0)
    return to(y0, np.complex128 if y0._data.dtype.kind == "c" else np.float64)


def _listed(events: Any) -> list[Any]:
    if events is None:
        return []
    return [events] if callable(events) else list(events)


def _jacobian(rhs: UserFunction, slopes: Slopes, solver: Any, options: dict[str, Any]) -> Any:
    """From the inputs of `Given` to the ``jac=`` that SciPy gets, or None where it needs none."""
    if not issubclass(solver, IMPLICIT):
        return None
    jac = options.get("jac")
    if callable(jac):

        def of_user(theta: Sequence[Any]) -> Any:
            return lambda t, y: _matrix(rhs.given.call(jac, (wrap(np.array(t)), wrap(np.array(y))), theta))

        return of_user
    if any(options.get(name) is not None for name in ("jac", "jac_sparsity", "lband", "uband")):
        return None

    def of_rhs(theta: Sequence[Any]) -> Any:
        f = rhs.bound(theta)
        if not issubclass(solver, scipy.integrate.LSODA):
            return lambda t, y: slopes(f, t, np.array(y))
        return lambda t, y: dense(slopes(f, t, np.array(y)))  # it takes no sparse matrix

    return of_rhs


def dense(matrix: Any) -> Any:
    """A matrix as an array."""
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def _matrix(value: Any) -> Any:
    return value if scipy.sparse.issparse(value) else array_of(as_tensor(value))


def _check_runs(runs: Sequence[Run], on_failure: str) -> None:
    for run in runs:
        if run.failed and on_failure == "raise":
            raise not_converged(_WHERE, run.result.message, "change the method, its tolerances or t_span")
    if len({(r.main, *map(len, r.result.t_events or [])) for r in runs}) > 1:
        raise RuntimeError(
            errors.message(
                f"{_WHERE}: under vmap the number of times differs between the samples",
                do="give t_eval, and no events that happen for some of the samples only",
            )
        )


def _result(system: System, runs: Sequence[Run], which: Any, inputs: Sequence[Any], found: Any, kind: Any) -> Any:
    """SciPy's result object with Tensors. Of several runs, under vmap, the counts are summed.

    kind: of trajectory, for the dense output; None if there is none.
    """
    times, rows = found
    first = runs[0]
    worst = min(runs, key=lambda r: r.result.status).result
    t_events = y_events = None
    if system.events:
        t_events, y_events, start = [], [], first.main
        for at in first.result.t_events:
            t_events.append(times[start : start + len(at)])
            y_events.append(rows[start : start + len(at)])
            start += len(at)
    y = np.transpose(rows[: first.main])
    fields = dict(worst)
    fields.update(t=times[: first.main], y=y, sol=None, t_events=t_events, y_events=y_events)
    fields.update({k: sum(r.result[k] for r in runs) for k in ("nfev", "njev", "nlu")})
    if kind is not None and first.result.sol is not None:
        fields["sol"] = OdeSolution(kind(system), which, inputs, wrap(np.array(first.t)))
    fields["gradient_error"] = max(_error(system, r) for r in runs)
    return type(worst)(fields)


def _error(system: System, run: Run) -> float:
    """The sum of the local errors that the tolerances allow, relative to the largest state."""
    if run.failed:
        return float("nan")
    rtol, atol = system.options.get("rtol", 1e-3), system.options.get("atol", 1e-6)
    size = float(np.abs(run.y).max(initial=0.0))
    return float((len(run.t) - 1) * (np.max(rtol) + np.max(atol) / max(size, np.finfo(float).tiny)))


__all__ = ["METHODS", "OdeSolution", "solve_ivp"]
