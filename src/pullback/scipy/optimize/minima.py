"""Minima of functions: SciPy's methods with exact gradients, and the derivative of the minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from ... import autograd, errors
from ...autograd.grad_mode import enable_grad, no_grad
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array, array_of, floating
from ..direct_calls import Direct
from ..jacobians import jacobian, product
from ..mirror import mirrors
from ..progress_bar import counting, shown
from ..user_functions import bare, plain_options, plain_setting
from .outcomes import Runs, outcome, solved
from .outer_products import plain, slope_of
from .stationary import Program, rows_of

_BY_VALUES = ("nelder-mead", "powell", "cobyla", "cobyqa")
_BY_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
_BY_MATRICES = ("dogleg", "trust-exact")


class ValueAndSlope:
    """The value of a function and its gradient, computed at once, for SciPy, which asks for each of them."""

    def __init__(self, program: Program, parameters: Any) -> None:
        self._program, self._parameters = program, parameters
        self._calls = program.calls(parameters, gradient=True)
        self._fast: Direct | None = None
        self._begins, self._depends = True, False
        self._at: bytes | None = None
        self._found: tuple[float, Array]

    def value(self, a: Array, *ignored: Any) -> float:
        """The value at this point."""
        return self._both(a)[0]

    def slope(self, a: Array, *ignored: Any) -> Array:
        """The gradient at this point."""
        return self._both(a)[1]

    def _both(self, a: Array) -> tuple[float, Array]:
        at = a.tobytes()
        if at != self._at:
            if self._begins:
                self._begins, self._fast = False, self._calls.at_once(a)
                self._program.is_program = self._fast is not None
            found = None if self._fast is None else self._fast.value_and_gradient(a)
            self._found = self._computed(a) if found is None else (found[0].item(), found[1])
            self._at = at
        return self._found

    def _computed(self, a: Array) -> tuple[float, Array]:
        with enable_grad():
            x = wrap(np.array(a)).requires_grad_()
            f = self._program(x, *self._parameters)
            if not f.requires_grad:
                if not self._depends:
                    raise RuntimeError(
                        errors.message(
                            f"{self._program.where}: the function's value does not depend on its unknowns: its "
                            "gradient is zero everywhere, and the search would end where it begins",
                            do="compute with the Tensor of the unknowns itself, not with its numbers or its array; "
                            "method='Nelder-Mead' needs no gradient; for a constant, return 0 * x.sum()",
                        )
                    )
                return f.item(), np.zeros_like(a)
            self._depends = True
            (g,) = autograd.grad(f, x, materialize_grads=True)
        if self._fast is None:
            self._fast = self._calls.program((x._data,), (f._data, array_of(g)))
            self._program.is_program = self._fast is not None
        return f.item(), array_of(g)


def _derivatives(
    program: Program, method: str, jac: Any, hess: Any, hessp: Any, fun: Any, parameters: Any
) -> dict[str, Any]:
    """The function and its derivatives for SciPy: the person's own, or exact ones where the method takes them."""
    plain = program.plain
    given: dict[str, Any] = {"fun": plain(program, parameters), "jac": jac, "hess": hess, "hessp": hessp}
    if jac is True:
        given["fun"] = lambda a, *_: tuple(map(_number_or_array, program.called(fun, wrap(np.array(a)), *parameters)))
    elif callable(jac):
        given["jac"] = plain(lambda x, *p: program.called(jac, x, *p), parameters)
    elif jac is None and method not in _BY_VALUES:
        both = ValueAndSlope(program, parameters)
        given["fun"], given["jac"] = both.value, both.slope
    if method == "bfgs" and callable(slope := given["jac"]):
        given["jac"] = lambda *a: slope_of(slope(*a))
    if callable(hess):
        given["hess"] = plain(lambda x, *p: program.called(hess, x, *p), parameters)
    if callable(hessp):
        given["hessp"] = lambda a, v, *_: array_of(
            program.called(lambda x, *p: hessp(x, wrap(np.array(v)), *p), wrap(np.array(a)), *parameters)
        )
    if hess is None and hessp is None:
        if method in _BY_PRODUCTS:
            given["hessp"] = _products(program, parameters)
        elif method in _BY_MATRICES:
            given["hess"] = plain(lambda x, *p: jacobian(lambda y: program.slope(y, *p), x), parameters)
    return given


def _products(program: Program, parameters: Any) -> Callable[..., Array]:
    def along(a: Array, v: Array, *ignored: Any) -> Array:
        with no_grad():
            x, direction = wrap(np.array(a)), wrap(np.array(v, a.dtype))
            return array_of(product(lambda y: program.slope(y, *parameters), x, direction))

    return along


def _number_or_array(value: Any) -> Any:
    a = array_of(value)
    return a.item() if a.size == 1 and a.ndim == 0 else a


def _constraint(program: Program, index: int, start: Array, parameters: Any) -> Any:
    """A constraint for SciPy, on arrays, with its exact Jacobian."""
    given = program.rows[index].given

    def values(x: Tensor, *p: Any) -> Tensor:
        return program.parts(x, *p)[index][0]

    fun = program.plain(values, parameters)
    jac = program.plain(lambda x, *p: jacobian(lambda y: values(y, *p), x), parameters)
    if isinstance(given, dict):
        return {"type": given["type"], "fun": fun, "jac": jac}
    with no_grad():
        _, lower, upper = map(array_of, program.parts(wrap(start), *parameters)[index])
    if isinstance(given, scipy.optimize.LinearConstraint):
        return scipy.optimize.LinearConstraint(jac(start), lower, upper, given.keep_feasible)
    hess = scipy.optimize.BFGS() if callable(given.hess) else given.hess
    return scipy.optimize.NonlinearConstraint(fun, lower, upper, jac, hess, given.keep_feasible)


def _bounds(program: Program, bounds: Any, start: Array, parameters: Any) -> Any:
    if bounds is None:
        return None
    with no_grad():
        _, lower, upper = map(array_of, program.parts(wrap(start), *parameters)[0])
    kept = bare(getattr(bounds, "keep_feasible", False))  # SciPy broadcasts it with Tensors, so it may be one
    return scipy.optimize.Bounds(lower, upper, kept)


@mirrors(
    "optimize.minimize",
    derivative="implicit function theorem for the conditions of a minimum, with multipliers of what is active",
    limits="x0 has no derivative; a bound that is reached without a force is refused",
)
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
    *,
    on_failure: str = "raise",
    progress: bool = False,
) -> Any:
    """A local minimum of ``fun(x, *args)``, as `scipy.optimize.minimize` finds it.

    Args:
        fun: takes a Tensor of the unknowns, with one axis, and the `args`; returns a number.
        x0: where to begin; the minimum does not depend on it.
        args: Tensors here have derivatives, and so have tensors that `fun` and the constraints read themselves.
        method, tol, callback, options: SciPy's.
        jac, hess, hessp: as SciPy's. Without them a method that takes them gets exact ones.
        bounds: SciPy's Bounds or pairs; the bounds may be Tensors, and have derivatives where they are reached.
        constraints: SciPy's dicts, LinearConstraint or NonlinearConstraint, with Tensors in functions, args and bounds.
        on_failure: "raise", or "nan" for a minimum of NaN where SciPy does not succeed.
        progress: show the iterations.

    Returns:
        SciPy's OptimizeResult. `x` and `fun` are Tensors; `gradient_error` is the relative change of the unknowns by
        one Newton step on the conditions of the minimum: the error of the gradient that comes from `tol`.

    At the minimum the gradient of ``fun - m^T c`` is zero, with the multipliers `m` of the active constraints `c`.
    The derivative of this equation, with the Hessian as its Jacobian, is that of the minimum. A method without
    gradients stops far from it: then `gradient_error` is large, and a smaller `tol` helps.

    Raises:
        RuntimeError: SciPy did not succeed, with its message; the Hessian is singular, when a derivative is asked for;
            a bound is reached without a force.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> a = pullback.tensor([1.0, 3.0], dtype=pullback.float64, requires_grad=True)
    >>> found = optimize.minimize(lambda x, a: ((x - a) ** 2).sum(), [0.0, 0.0], args=(a,), bounds=[(0, 2), (0, 2)])
    >>> found.x.detach().round(decimals=6)
    tensor([1., 2.], dtype=pullback.float64)
    >>> found.x.sum().backward()
    >>> a.grad.abs()  # the second is held by its bound
    tensor([1., 0.], dtype=pullback.float64)
    """
    where = "scipy.optimize.minimize"
    (tol,), options = plain_setting(where, tol=tol), plain_options(where, options)
    first = (lambda *a: fun(*a)[0]) if jac is True else fun
    program = Program(where, first, x0, args, rows_of(where, bounds, constraints, floating(x0).numel()), fun)
    name = method.lower() if isinstance(method, str) else _default(bounds, constraints)

    def run(start: Array, *parameters: Any) -> tuple[Array, Any]:
        given = _derivatives(program, name, jac, hess, hessp, fun, parameters)
        limits = [_constraint(program, i, start, parameters) for i, r in enumerate(program.rows) if r.given is not None]
        box = _bounds(program, bounds, start, parameters)
        with shown("minimize", progress) as show:
            report = callback
            if progress:
                report = counting(show, callback, name not in ("tnc", "slsqp", "cobyla"))
            found = scipy.optimize.minimize(
                x0=start,
                method=method,
                bounds=box,
                constraints=limits or (),
                tol=tol,
                callback=report,
                options=options,
                **given,
            )
        if "hess_inv" in found:
            found["hess_inv"] = plain(found["hess_inv"])
        return program.completed(np.array(found.x), parameters), found

    runs = Runs(program.given, where, on_failure, run)
    z, error = solved(program, runs, program.equation(runs))
    x = z[: program.shape[0]] if program.rows else z
    return outcome(runs, error, x=x, fun=program(x, *program.inputs[1:]))


def _default(bounds: Any, constraints: Any) -> str:
    if constraints:
        return "slsqp"
    return "bfgs" if bounds is None else "l-bfgs-b"


@mirrors(
    "optimize.minimize_scalar",
    derivative="implicit function theorem for fun'(x) = 0",
    limits="a minimum at a bound is refused; the bracket has no derivative",
)
def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: Any = None,
    tol: Any = None,
    options: Any = None,
    *,
    on_failure: str = "raise",
) -> Any:
    """A local minimum of a function of one number, as `scipy.optimize.minimize_scalar` finds it.

    `fun` takes a Tensor without axes. The derivative is ``dx/dp = -(d2f/dx dp) / (d2f/dx2)``. The method looks at
    values alone, so `x` has half of their digits, and `gradient_error` says what this means for the gradient.

    Raises:
        RuntimeError: SciPy did not succeed; the minimum is at a bound, or the second derivative is zero, when a
            derivative is asked for.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> a = pullback.tensor(2.0, dtype=pullback.float64, requires_grad=True)
    >>> found = optimize.minimize_scalar(lambda x, a: (x - a) ** 2 + 1, args=(a,))
    >>> found.x.backward()
    >>> a.grad
    tensor(1., dtype=pullback.float64)
    """
    where = "scipy.optimize.minimize_scalar"
    (tol,), options = plain_setting(where, tol=tol), plain_options(where, options)
    program = Program(where, lambda x, *p: fun(reshape(x, ()), *p), np.ones(1), args, (), source=fun)

    def run(start: Array, *parameters: Any) -> tuple[Array, Any]:
        values = program.plain(program, parameters)
        found = scipy.optimize.minimize_scalar(lambda a: values(a).item(), bracket, bounds, (), method, tol, options)
        return np.array([found.x]), found

    runs = Runs(program.given, where, on_failure, run)
    x, error = solved(program, runs, program.equation(runs))
    return outcome(runs, error, x=reshape(x, ()), fun=program(x, *program.inputs[1:]))
