"""Roots of functions of one number, by brackets or by Newton's method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize

from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor
from ..array_nodes import Array, array_of, floating
from ..implicit import Implicit
from ..jacobians import jacobian
from ..mirror import mirrors
from ..user_functions import check_function, plain_options, plain_setting
from .outcomes import Problem, Runs, outcome, solved

_DERIVATIVE = "implicit function theorem, -(df/dp) / (df/dx)"


class ScalarProblem(Problem):
    """A function of one number."""

    def __init__(
        self, where: str, fun: Any, args: Any, argument: str = "f", source: Any = None, near: Sequence[Any] = ()
    ) -> None:
        check_function(where, fun, argument)
        self.kind = complex if any(np.iscomplexobj(x) for x in near) else float
        start = np.ones(1, self.kind)
        super().__init__(where, lambda x, *p: fun(reshape(x, ()), *p), start, args, source=source or fun)

    def numbers(self, function: Callable[..., Any], parameters: Any) -> Callable[[float], Any]:
        """A function of a number, for SciPy."""
        plain = self.plain(function, parameters)
        return lambda a, *ignored: plain(np.array(a, dtype=self.kind)).item()

    def slope(self, x: Tensor, *parameters: Any) -> Tensor:
        """The derivative."""
        return reshape(self.jacobian(x, *parameters), (1,))

    def bend(self, x: Tensor, *parameters: Any) -> Tensor:
        """The second derivative."""
        return reshape(jacobian(lambda y: self.slope(y, *parameters), x), (1,))


def _found(problem: ScalarProblem, on_failure: str, run: Callable[..., Any], told: bool) -> tuple[Runs, Tensor, float]:
    runs = Runs(problem.given, problem.where, on_failure, run)
    x, error = solved(problem, runs, Implicit(problem.where, problem.residual, runs), told=told)
    return runs, reshape(x, ()), error


@mirrors("optimize.root_scalar", derivative=_DERIVATIVE, limits="the bracket, x0 and x1 have no derivative")
def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: Any = None,
    rtol: Any = None,
    maxiter: int | None = None,
    options: Any = None,
    *,
    on_failure: str = "raise",
) -> Any:
    """A root of ``f(x, *args) = 0``, as `scipy.optimize.root_scalar` finds it.

    `f` takes a Tensor without axes. The methods "newton" and "halley" get exact derivatives if there are none. The
    result is SciPy's RootResults; `root` is a Tensor, and `gradient_error` is as in `root`.

    The derivative is ``dx/dp = -(df/dp) / (df/dx)``.

    Raises:
        RuntimeError: it did not converge; ``df/dx`` is zero at the root, when a derivative is asked for.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> a = pullback.tensor(8.0, dtype=pullback.float64, requires_grad=True)
    >>> found = optimize.root_scalar(lambda x, a: x**3 - a, args=(a,), bracket=[0, 10])
    >>> found.root.backward()
    >>> a.grad  # 1 / 12
    tensor(0.0833, dtype=pullback.float64)
    """
    where = "scipy.optimize.root_scalar"
    names = {"bracket": bracket, "x0": x0, "x1": x1, "xtol": xtol, "rtol": rtol}
    bracket, x0, x1, xtol, rtol = plain_setting(where, **names)
    problem = ScalarProblem(where, (lambda *a: f(*a)[0]) if fprime is True else f, args, source=f, near=(x0, x1))

    def run(_: Array, *parameters: Any) -> tuple[Array, Any]:
        given = {"fprime": fprime, "fprime2": fprime2}
        for name, exact in (("fprime", problem.slope), ("fprime2", problem.bend)):
            own = given[name]
            if callable(own):
                given[name] = problem.numbers(_of_number(problem, own), parameters)
            elif own is None and method in (("newton", "halley") if name == "fprime" else ("halley",)):
                given[name] = problem.numbers(exact, parameters)
        first = (
            (lambda a, *_: _pair(problem, f, a, parameters)) if fprime is True else problem.numbers(problem, parameters)
        )
        settings = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter}
        settings["options"] = plain_options(problem.where, options)
        found = scipy.optimize.root_scalar(first, (), method, bracket, **given, x0=x0, x1=x1, **settings)
        return np.array([found.root]), found

    runs, x, error = _found(problem, on_failure, run, True)
    return outcome(runs, error, root=x)


def _of_number(problem: ScalarProblem, fun: Any) -> Callable[..., Any]:
    return lambda x, *p: problem.called(lambda y, *q: fun(reshape(y, ()), *q), x, *p)


def _pair(problem: ScalarProblem, f: Any, a: Any, parameters: Any) -> tuple[Any, ...]:
    values = problem.called(
        lambda y, *q: f(reshape(y, ()), *q), floating(np.array([a], dtype=problem.kind)), *parameters
    )
    return tuple(array_of(v).item() for v in values)


def _bracketing(name: str, summary: str) -> Callable[..., Any]:
    """One of SciPy's methods that begin with a bracket; all have the same arguments."""
    solver = getattr(scipy.optimize, name)

    def method(
        f: Callable[..., Any],
        a: Any,
        b: Any,
        args: Any = (),
        xtol: Any = 2e-12,
        rtol: Any = 8.881784197001252e-16,
        maxiter: int = 100,
        full_output: bool = False,
        disp: bool = True,
    ) -> Any:
        where = f"scipy.optimize.{name}"
        a, b, xtol, rtol = plain_setting(where, a=a, b=b, xtol=xtol, rtol=rtol)
        problem = ScalarProblem(where, f, args)

        def run(_: Array, *parameters: Any) -> tuple[Array, Any]:
            values = problem.numbers(problem, parameters)
            x, found = solver(values, a, b, (), xtol, rtol, maxiter, True, disp)
            return np.array([x]), found

        runs, x, error = _found(problem, "raise", run, full_output)
        return (x, outcome(runs, error, root=x)) if full_output else x

    method.__name__ = method.__qualname__ = name
    method.__module__ = __name__
    method.__doc__ = f"""A root of ``f(x, *args) = 0`` between `a` and `b`, {summary}, as SciPy's {name} finds it.

    `f` takes a Tensor without axes, and must have different signs at `a` and `b`. The derivative is that of
    `root_scalar`. With `full_output` the result is ``(x, RootResults)``.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> a = pullback.tensor(8.0, dtype=pullback.float64, requires_grad=True)
    >>> optimize.{name}(lambda x, a: x**3 - a, 0, 10, args=(a,)).backward()
    >>> a.grad
    tensor(0.0833, dtype=pullback.float64)
    """
    return mirrors(f"optimize.{name}", derivative=_DERIVATIVE, limits="a and b have no derivative")(method)


brentq = _bracketing("brentq", "by Brent's method")
brenth = _bracketing("brenth", "by Brent's method with hyperbolic extrapolation")
ridder = _bracketing("ridder", "by Ridder's method")
bisect = _bracketing("bisect", "by bisection")


@mirrors("optimize.newton", derivative=_DERIVATIVE, limits="x0 and x1 have no derivative; x0 is one number")
def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: Any = 1.48e-08,
    maxiter: int = 50,
    fprime2: Any = None,
    x1: Any = None,
    rtol: Any = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """A root of ``func(x, *args) = 0`` near `x0`, as `scipy.optimize.newton` finds it.

    Without `fprime` it is the secant method, as SciPy's. See `root_scalar` for the derivative, and `root` for several
    unknowns.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> a = pullback.tensor(8.0, dtype=pullback.float64, requires_grad=True)
    >>> optimize.newton(lambda x, a: x**3 - a, 1.5, args=(a,)).backward()
    >>> a.grad
    tensor(0.0833, dtype=pullback.float64)
    """
    where = "scipy.optimize.newton"
    x0, x1, tol, rtol = plain_setting(where, x0=x0, x1=x1, tol=tol, rtol=rtol)
    if np.size(x0) != 1:
        raise NotImplementedError(
            "scipy.optimize.newton: x0 is several numbers.\n  What to do: use vmap, or optimize.root."
        )
    problem = ScalarProblem(where, func, args, "func", near=(x0, x1))

    def run(_: Array, *parameters: Any) -> tuple[Array, Any]:
        slopes = [g and problem.numbers(_of_number(problem, g), parameters) for g in (fprime, fprime2)]
        values = problem.numbers(problem, parameters)
        start = problem.kind(np.reshape(x0, ()))
        x, found = scipy.optimize.newton(values, start, slopes[0], (), tol, maxiter, slopes[1], x1, rtol, True, disp)
        return np.array([x]), found

    runs, x, error = _found(problem, "raise", run, full_output)
    return (x, outcome(runs, error, root=x)) if full_output else x
