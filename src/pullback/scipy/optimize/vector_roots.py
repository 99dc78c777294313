"""Roots of equations and fixed points: SciPy's solvers, with the derivative by the implicit function theorem.

At a root ``F(x, p) = 0`` the derivative is ``dx/dp = -(dF/dx)^-1 dF/dp``; a fixed point of `f` is a root of
``x - f(x)``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

from ...autograd.grad_mode import no_grad
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array, array_of
from ..implicit import Implicit, factors_of
from ..mirror import mirrors
from ..progress_bar import Show, shown
from ..user_functions import plain_options, plain_setting
from .outcomes import Problem, Runs, outcome, result_of, solved

_WITH_JACOBIAN = ("hybr", "lm")
_FLAT = ("hybr", "lm", "df-sane")
_NEAR = 0.1  # a step of Newton's method from a root is smaller, relative to the unknowns


class Preconditioner(scipy.sparse.linalg.LinearOperator):
    """The inverse of the sparse Jacobian at an iterate, for SciPy's Krylov methods.

    It is factorised again where the last step has not made the residual ten times smaller.
    """

    def __init__(self, jacobian: Callable[[Tensor], Any], x: Array) -> None:
        super().__init__(x.dtype, (x.size, x.size))
        self.jacobian, self.size = jacobian, np.inf
        self.factors = factors_of(jacobian(wrap(np.array(x))))

    def update(self, x: Array, f: Array) -> None:
        """SciPy calls it after each step, with the iterate and the residual."""
        size = float(np.max(np.abs(f), initial=0.0))
        if size > 0.1 * self.size:
            self.factors = factors_of(self.jacobian(wrap(np.array(x).reshape(-1))))
        self.size = size

    def _matvec(self, v: Array) -> Array:
        found: Array = self.factors.solve(np.ravel(v))
        return found


def preconditioner(problem: Problem, x: Array, parameters: Any) -> Preconditioner | None:
    """From the sparse Jacobian; None where its pattern is not found, or where it is singular at the start."""

    def of_x(y: Tensor) -> Tensor:
        return problem.residual(y, y, *parameters)

    jacobian = problem.pattern.jacobian(of_x, wrap(np.array(x)))
    try:
        return None if jacobian is None else Preconditioner(jacobian, x)
    except RuntimeError:
        return None


def watched(function: Callable[..., Any], show: Show) -> Callable[..., Any]:
    """A function of arrays that shows how often it was called, and how large its value was."""
    count = 0

    def call(x: Any, *ignored: Any) -> Any:
        nonlocal count
        count += 1
        f = function(x)
        show(f"evaluation {count}, residual {np.max(np.abs(f), initial=0.0):.3g}")
        return f

    return call


def _jacobian_for(problem: Problem, jac: Any, both: Any, exact: bool, parameters: Any) -> Any:
    """What SciPy gets as the Jacobian: the person's own, an exact one, or none. both: returns ``(f, J)``."""
    if jac is True:
        return problem.plain(lambda x, *p: problem.called(both, x, *p)[1], parameters)
    if callable(jac):
        return problem.plain(lambda x, *p: problem.called(jac, x, *p), parameters)
    return problem.plain(problem.jacobian, parameters) if jac is None and exact else jac


@mirrors(
    "optimize.root",
    derivative="implicit function theorem; the Jacobian is dense, sparse as found from `fun`, or used by its products",
    limits="x0 has no derivative",
)
def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
    *,
    on_failure: str = "raise",
    progress: bool = False,
) -> Any:
    """A root of ``fun(x, *args) = 0``, as `scipy.optimize.root` finds it.

    Args:
        fun: takes a Tensor of the unknowns and the `args`; returns a Tensor, an array, or a list of them.
        x0: where to begin; the root does not depend on it.
        args: Tensors here have derivatives, and so have tensors that `fun` reads itself.
        method, tol, callback, options: SciPy's. The Krylov method gets a preconditioner from the sparse Jacobian,
            unless ``options["jac_options"]`` has one.
        jac: the Jacobian as a function of the same arguments, or True if `fun` returns ``(f, J)``. Without it the
            methods "hybr" and "lm" get an exact one.
        on_failure: "raise", or "nan" for a root of NaN where SciPy does not converge.
        progress: show the iterations.

    Returns:
        SciPy's OptimizeResult. `x` and `fun` are Tensors; `gradient_error` is the relative change of `x` by one more
        Newton step, which bounds the relative error of the gradient that comes from the solver's tolerance.

    The derivative is ``dx/dp = -J^-1 dF/dp`` at the root, with ``J = dF/dx``. For a cotangent one linear system with
    ``J^T`` is solved.

    Raises:
        RuntimeError: it did not converge; the Jacobian is singular, when a derivative is asked for; `fun` reads a
            tensor in a way that is not visible.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> a = pullback.tensor(2.0, dtype=pullback.float64, requires_grad=True)
    >>> found = optimize.root(lambda x, a: x**2 - a, 1.0, args=(a,))
    >>> found.x.backward()
    >>> a.grad  # 1 / (2 sqrt(2))
    tensor(0.3536, dtype=pullback.float64)
    """
    where = "scipy.optimize.root"
    (tol,), options = plain_setting(where, tol=tol), plain_options(where, options)
    first = (lambda *a: fun(*a)[0]) if jac is True else fun
    problem = Problem(where, first, x0, args, flat=method in _FLAT, source=fun)

    def run(start: Array, *parameters: Any) -> tuple[Array, Any]:
        settings = {**(options or {})}
        if method == "krylov":
            settings["jac_options"] = _preconditioned(problem, start, parameters, settings.get("jac_options"))
        derivative = _jacobian_for(problem, jac, fun, method in _WITH_JACOBIAN, parameters)
        with shown("root", progress) as show:
            values = watched(problem.plain(problem, parameters), show)
            begin = start.reshape(problem.shape)
            found = scipy.optimize.root(values, begin, (), method, derivative, tol, callback, settings)
        if method == "lm" and found.success and not _is_root(problem, found, parameters):
            found.success = False
            found.message = (
                f"The least squares of the equations were found, and are no root: the residual is "
                f"{np.max(np.abs(found.fun)):.3g}"
            )
        return found.x, found

    runs = Runs(problem.given, where, on_failure, run)
    x, error = solved(problem, runs)
    return outcome(runs, error, x=reshape(x, problem.shape), fun=problem(x, *problem.inputs[1:]))


def _is_root(problem: Problem, found: Any, parameters: Any) -> bool:
    """Whether Newton's method would stay near. Where the sum of squares is smallest and not zero, it goes far away."""
    with no_grad():
        jacobian = array_of(problem.jacobian(wrap(found.x), *parameters))
    if jacobian.shape[0] != jacobian.shape[1] or not np.any(found.fun):
        return True
    try:
        step = np.linalg.solve(jacobian, np.ravel(found.fun))
    except np.linalg.LinAlgError:
        return False
    return bool(np.max(np.abs(step)) <= _NEAR * (1 + np.max(np.abs(found.x))))


def _preconditioned(problem: Problem, start: Array, parameters: Any, given: Any) -> dict[str, Any]:
    """Options of a Krylov method, with a preconditioner if there is none."""
    options = dict(given or {})
    if "inner_M" not in options and start.size > 1 and (made := preconditioner(problem, start, parameters)) is not None:
        options["inner_M"] = made
    return options


@mirrors(
    "optimize.newton_krylov",
    derivative="implicit function theorem, by the tensors that F reads",
    limits="xin has no derivative",
)
def newton_krylov(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    rdiff: Any = None,
    method: str = "lgmres",
    inner_maxiter: int = 20,
    inner_M: Any = None,
    outer_k: int = 10,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: Any = None,
    f_rtol: Any = None,
    x_tol: Any = None,
    x_rtol: Any = None,
    tol_norm: Any = None,
    line_search: str = "armijo",
    callback: Any = None,
    *,
    on_failure: str = "raise",
    progress: bool = False,
    **kw: Any,
) -> Tensor:
    """A root of ``F(x) = 0`` by a Newton-Krylov method, as `scipy.optimize.newton_krylov` finds it.

    F has one argument, so the root is a function of the tensors that `F` reads. Without `inner_M` the method is
    preconditioned by the sparse Jacobian, if its pattern can be found. The derivative is that of `root`.

    Raises:
        RuntimeError: it did not converge, with SciPy's residual; `F` reads a tensor in a way that is not visible.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> a = pullback.tensor([2.0, 3.0], dtype=pullback.float64, requires_grad=True)
    >>> x = optimize.newton_krylov(lambda x: x**2 - a, [1.4, 1.7], f_tol=1e-10)
    >>> x.sum().backward()
    >>> a.grad
    tensor([0.3536, 0.2887], dtype=pullback.float64)
    """
    where = "scipy.optimize.newton_krylov"
    tolerances = dict(zip(("f_tol", "f_rtol", "x_tol", "x_rtol"), (f_tol, f_rtol, x_tol, x_rtol), strict=True))
    settings = dict(zip(tolerances, plain_setting(where, **tolerances), strict=True))
    settings |= {"iter": iter, "rdiff": rdiff, "method": method, "inner_maxiter": inner_maxiter, "outer_k": outer_k}
    settings |= {"verbose": verbose, "maxiter": maxiter, "tol_norm": tol_norm, "line_search": line_search}
    problem = Problem(where, F, xin, (), argument="F")

    def run(start: Array, *parameters: Any) -> tuple[Array, Any]:
        options = _preconditioned(problem, start, parameters, {} if inner_M is None else {"inner_M": inner_M})
        with shown("newton_krylov", progress) as show:
            values = watched(problem.plain(problem, parameters), show)
            try:
                x = scipy.optimize.newton_krylov(
                    values, start.reshape(problem.shape), callback=callback, **settings, **options, **kw
                )
            except scipy.optimize.NoConvergence as error:
                left = np.max(np.abs(values(error.args[0])))
                return error.args[0], result_of(success=False, message=f"the residual is {left:.3g} (NoConvergence)")
        return x, result_of(success=True)

    x, _ = solved(problem, Runs(problem.given, where, on_failure, run), told=False)
    return reshape(x, problem.shape)


@mirrors("optimize.fsolve", derivative="implicit function theorem", limits="x0 has no derivative")
def fsolve(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: Any = False,
    col_deriv: Any = False,
    xtol: Any = 1.49012e-08,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """A root of ``func(x, *args) = 0``, as `scipy.optimize.fsolve` finds it. See `root`.

    With `full_output` the result is ``(x, infodict, ier, mesg)``. Where SciPy warns that it made no progress, this is a
    RuntimeError with the same words.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> optimize.fsolve(lambda x, a: x**2 - a, 1.0, args=(pullback.tensor(4.0),))
    tensor([2.0000], dtype=pullback.float64)
    """
    where = "scipy.optimize.fsolve"
    (xtol,) = plain_setting(where, xtol=xtol)
    problem = Problem(where, func, x0, args, argument="func", flat=True)
    more: list[Any] = []

    def run(start: Array, *parameters: Any) -> tuple[Array, Any]:
        values = problem.plain(problem, parameters)
        derivative = _jacobian_for(problem, fprime, None, True, parameters)
        settings = (col_deriv, xtol, maxfev, band, epsfcn, factor, diag)
        x, *rest = scipy.optimize.fsolve(values, start, (), derivative, True, *settings)
        more[:] = rest
        return x, result_of(success=rest[1] == 1, message=rest[2])

    x, _ = solved(problem, Runs(problem.given, where, "raise", run), told=False)
    return (x, *more) if full_output else x


@mirrors("optimize.fixed_point", derivative="implicit function theorem for x - func(x)", limits="x0 has no derivative")
def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    xtol: Any = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
    *,
    on_failure: str = "raise",
    progress: bool = False,
) -> Tensor:
    """A fixed point ``x = func(x, *args)``, as `scipy.optimize.fixed_point` finds it.

    The derivative is ``dx/dp = (I - df/dx)^-1 df/dp``. `progress` shows the calls of `func`.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> a = pullback.tensor(1.0, dtype=pullback.float64, requires_grad=True)
    >>> x = optimize.fixed_point(lambda x, a: (a * x).cos(), 0.7, args=(a,))
    >>> x.backward()
    >>> x.detach(), a.grad
    (tensor(0.7391, dtype=pullback.float64), tensor(-0.2975, dtype=pullback.float64))
    """
    where = "scipy.optimize.fixed_point"
    (xtol,) = plain_setting(where, xtol=xtol)
    problem = Problem(where, func, x0, args, argument="func")

    def run(start: Array, *parameters: Any) -> tuple[Array, Any]:
        plain, count = problem.plain(problem, parameters), itertools.count(1)
        with shown("fixed_point", progress) as show:

            def values(x: Array) -> Array:
                found: Array = plain(x)
                show(f"call {next(count)}, change {np.max(np.abs(found - x), initial=0.0):.3g}")
                return found

            try:
                x = scipy.optimize.fixed_point(values, start.reshape(problem.shape), (), xtol, maxiter, method)
            except RuntimeError as error:
                return start, result_of(success=False, message=str(error))
        return x, result_of(success=True)

    def residual(x: Tensor, start: Tensor, *parameters: Any) -> Tensor:
        return x - problem.residual(x, start, *parameters)

    runs = Runs(problem.given, where, on_failure, run)
    x, _ = solved(problem, runs, Implicit(where, residual, runs, problem.pattern), told=False)
    return reshape(x, problem.shape)
