"""`odeint`: the older form of `solve_ivp` with LSODA."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate

from ...ops.make.conversion import to
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Lifted, Tensor, wrap
from ..array_nodes import Array, array_of, as_tensor, floating
from ..closed_functions import Closed, call
from ..mirror import mirrors
from ..progress_bar import Show, shown
from ..user_functions import ON_FAILURE, Given, arguments, check_choice, check_function, not_converged, plain_setting
from .ivp_runs import NOT_FINITE, Run, System, queries
from .right_hand_side import UserFunction
from .trajectories import Trajectory

_WHERE = "pullback.scipy.integrate.odeint"
_TOLERANCE = 1.49012e-8  # odeint's own, of both kinds


class _Older(System):
    """A system whose values are those of `odeint`. Its steps, for the adjoint, are those of `solve_ivp` with LSODA."""

    settings: dict[str, Any]
    differentiated: bool
    show: Show | None = None

    def plan(self, t0: Tensor, t1: Tensor, times: Tensor, y0: Tensor, *theta: Tensor) -> tuple[Tensor]:
        """Run `odeint`; the result is the number of the run."""
        with self.fun.given.running():
            return self._plan(t0, times, y0, theta)

    def _plan(self, t0: Tensor, times: Tensor, y0: Tensor, theta: Sequence[Tensor]) -> tuple[Tensor]:
        f, settings = self.fun.of_arrays(theta), dict(self.settings)
        if self.jacobian is not None:
            settings["Dfun"] = self.jacobian(theta)
        t = times._data
        slope = f if self.show is None else _watched(f, t, self.show)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows, info = scipy.integrate.odeint(
                lambda s, y: slope(s, y).reshape(-1), y0._data, t, full_output=True, tfirst=True, **settings
            )
        message = info["message"]
        lost = next((str(w.message) for w in caught if issubclass(w.category, scipy.integrate.ODEintWarning)), None)
        if message == "Integration successful." and not np.isfinite(rows).all():
            message = NOT_FINITE
        steps = [(t[0], y0._data), (t[-1], y0._data)]
        if self.differentiated and message == "Integration successful." and t[0] != t[-1]:
            found = scipy.integrate.solve_ivp(f, (t[0], t[-1]), y0._data, "LSODA", **self.options)
            if found.status < 0:
                message = found.message
            steps = list(zip(found.t, found.y.T, strict=True))
        result = {"info": info, "message": lost or message, "status": 0 if message == "Integration successful." else -1}
        knots, states = np.array([s[0] for s in steps]), np.array([s[1] for s in steps])
        self._look(t0, y0, theta)
        run = Run(_Result(result), knots, states, queries(knots, t), rows, len(rows), True)
        self.runs.append(run)
        return (wrap(np.array(len(self.runs) - 1)),)


def _watched(f: Callable[..., Any], t: Array, show: Show) -> Callable[..., Any]:
    """The right-hand side, which shows how far the solver is at each call."""
    count, length = itertools.count(1), t[-1] - t[0]

    def call(s: float, y: Any) -> Any:
        show(f"t = {s:.6g}, {next(count)} calls", min(max((s - t[0]) / length, 0.0), 1.0) if length else 1.0)
        return f(s, y)

    return call


class _Result(dict[str, Any]):
    """What a run found, by attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


@mirrors(
    "integrate.odeint",
    derivative="the adjoint by Radau IIA on the steps of LSODA, with the Jacobian; the times too",
    limits="settings have none",
)
def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,
    col_deriv: Any = 0,
    full_output: Any = 0,
    ml: Any = None,
    mu: Any = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: Any = 0.0,
    hmax: Any = 0.0,
    hmin: Any = 0.0,
    ixpr: Any = 0,
    mxstep: Any = 0,
    mxhnil: Any = 0,
    mxordn: Any = 12,
    mxords: Any = 5,
    printmessg: Any = 0,
    tfirst: Any = False,
    *,
    on_failure: str = "raise",
    progress: bool = False,
) -> Any:
    """Solve an initial value problem ``dy/dt = func(y, t, *args)``; the result has a row for each time.

    func, y0, t, args: as in `solve_ivp`, except for the order of y and t without `tfirst`. Tensors in y0, t and args
    are differentiated. on_failure: "raise" a RuntimeError with SciPy's message, or "nan": values and gradients are NaN.

    `progress` shows the time that the solver has reached, as it calls `func`.

    The values are SciPy's; the derivative is that of `solve_ivp` with "LSODA" at the same tolerances. `solve_ivp` with
    an explicit method is faster where the system is not stiff.

    >>> import pullback
    >>> k = pullback.tensor(0.5, dtype=pullback.float64, requires_grad=True)
    >>> y = odeint(lambda y, t, k: -k * y, 1.0, [0.0, 2.0], args=(k,))
    >>> y[-1, 0].backward()  # of exp(-2 k)
    >>> round(k.grad.item(), 5)
    -0.73576
    """
    check_function(_WHERE, func)
    check_choice(_WHERE, "on_failure", on_failure, ON_FAILURE)
    settings = {
        "col_deriv": col_deriv, "ml": ml, "mu": mu, "rtol": rtol, "atol": atol, "tcrit": tcrit, "h0": h0, "hmax": hmax,
        "hmin": hmin, "ixpr": ixpr, "mxstep": mxstep, "mxhnil": mxhnil, "mxordn": mxordn, "mxords": mxords,
        "printmessg": printmessg,
    }  # fmt: skip
    settings = dict(zip(settings, plain_setting(_WHERE, **settings), strict=True))
    given = Given(arguments(args))
    y0, t = reshape(to(floating(y0), np.float64), (-1,)), to(as_tensor(t), np.float64)
    rhs = UserFunction(_WHERE, func, given, tuple(y0.shape), state_first=not tfirst)
    rhs.find_reads(t[0], y0)
    system = _Older(rhs, [], scipy.integrate.LSODA, _ivp_options(settings), True, None)
    system.settings = settings
    inputs = (t[0], t[-1], t, y0, *given.inputs)
    system.differentiated = any(isinstance(x, Lifted) or x.requires_grad for x in inputs)
    if Dfun is not None:
        system.jacobian = _jacobian(Dfun, given, bool(tfirst))
    with shown("odeint", progress) as show:
        system.show = show if progress else None
        (which,) = call(Closed(system.plan), *[x.detach() for x in inputs])
    runs = list(system.runs)
    worst = min(runs, key=lambda r: r.result.status).result
    if worst.status < 0 and on_failure == "raise":
        raise not_converged(_WHERE, worst.message, "change mxstep, rtol, atol or t")
    rows = call(Trajectory(system), which, *inputs)[1]
    if worst.status < 0:
        rows = rows * np.nan
    return (rows, worst.info) if full_output else rows


def _ivp_options(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of `odeint` as options of `solve_ivp`."""
    return {
        "rtol": _TOLERANCE if settings["rtol"] is None else settings["rtol"],
        "atol": _TOLERANCE if settings["atol"] is None else settings["atol"],
        "max_step": settings["hmax"] or np.inf,
        "min_step": settings["hmin"],
        "first_step": settings["h0"] or None,
    }


def _jacobian(dfun: Callable[..., Any], given: Given, tfirst: bool) -> Callable[..., Any]:
    """From the inputs of `Given` to the Jacobian that SciPy calls, as ``Dfun=``."""

    def of_args(theta: Any) -> Any:
        def called(t: Any, y: Any) -> Any:
            t, y = wrap(np.array(t)), wrap(np.array(y))
            return array_of(as_tensor(given.call(dfun, (t, y) if tfirst else (y, t), theta)))

        return called

    return of_args


__all__ = ["odeint"]
