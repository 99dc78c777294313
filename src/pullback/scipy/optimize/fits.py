"""Least squares and curves fitted to data, with derivatives of what is found with respect to the data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from ... import errors
from ...ops.elementwise.limits import where as choose
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Lifted, Tensor
from ..array_nodes import Array, array_of, floating
from ..jacobians import jacobian
from ..mirror import mirrors
from ..progress_bar import counting, shown
from ..user_functions import check_function, plain_setting, value_of
from .outcomes import Runs, outcome, solved
from .stationary import Program, Rows, side

_LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * ((1 + z) ** 0.5 - 1),
    "huber": lambda z: choose(z <= 1, z, 2 * choose(z <= 1, 1, z) ** 0.5 - 1),
    "cauchy": lambda z: np.log1p(z),  # type: ignore[dict-item, return-value]
    "arctan": lambda z: np.arctan(z),  # type: ignore[dict-item, return-value]
}
"""The functions of squared residuals that SciPy's least_squares adds up."""


class Squares(Program):
    """Half the sum of squared residuals, or of a loss of these, to be minimised."""

    def __init__(self, where: str, fun: Any, x0: Any, args: Any, bounds: Any, loss: str, scale: float) -> None:
        check_function(where, fun)
        self.loss, self.scale = _LOSSES[loss], scale
        self.residuals = fun
        super().__init__(where, self._cost, x0, args, _bound_rows(bounds), source=fun)

    def _cost(self, x: Tensor, *args: Any) -> Tensor:
        f = value_of(self.residuals, self.where, self.given.as_it_was(self.residuals)(x, *args))
        found: Tensor = 0.5 * self.scale**2 * self.loss((f / self.scale) ** 2).sum()
        return found

    def values(self, x: Tensor, *parameters: Any) -> Tensor:
        """The residuals."""
        found = self.called(self.residuals, x, *parameters)
        return reshape(value_of(self.residuals, self.where, found), (-1,))


def _bound_rows(bounds: Any) -> list[Rows]:
    if isinstance(bounds, scipy.optimize.Bounds):
        bounds = bounds.lb, bounds.ub
    lower, upper = (side(b) if isinstance(b, (list, tuple)) else b for b in bounds)
    free = [not isinstance(b, Tensor) and not np.isfinite(b).any() for b in (lower, upper)]
    return [] if all(free) else [Rows("bounds", lambda x: x, (), lower, upper, None)]


def _plain_bounds(program: Program, start: Array, parameters: Any) -> Any:
    """The bounds as arrays, as SciPy takes them."""
    if not program.rows:
        return -np.inf, np.inf
    _, lower, upper = program.at(start, parameters)
    return lower, upper


def _jacobian(program: Squares, jac: Any, parameters: Any) -> Any:
    if callable(jac):
        return program.plain(lambda x, *p: program.called(jac, x, *p), parameters)
    exact = program.plain(lambda x, *p: jacobian(lambda y: program.values(y, *p), x), parameters)
    return exact if jac is None else jac


@mirrors(
    "optimize.least_squares",
    derivative="implicit function theorem for the gradient of the cost, with its whole Hessian",
    limits="x0 has no derivative; a loss that is a function is refused",
)
def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: Any = 1e-8,
    xtol: Any = 1e-8,
    gtol: Any = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: Any = 1.0,
    diff_step: Any = None,
    tr_solver: Any = None,
    tr_options: Any = None,
    jac_sparsity: Any = None,
    max_nfev: Any = None,
    verbose: int = 0,
    args: Any = (),
    kwargs: Any = None,
    callback: Any = None,
    workers: Any = None,
    *,
    on_failure: str = "raise",
    progress: bool = False,
) -> Any:
    """A local minimum of half the sum of squares of ``fun(x, *args, **kwargs)``, as SciPy's least_squares finds it.

    `fun` takes a Tensor of the unknowns, with one axis, and returns the residuals. Tensors in `args`, in `bounds` and
    those that `fun` reads have derivatives. Without `jac` SciPy gets an exact Jacobian; "2-point" asks for differences.
    `progress` shows the iterations; method "lm" of SciPy's has no callback, and refuses it.
    The result is SciPy's OptimizeResult; `x`, `fun` and `cost` are Tensors, and `gradient_error` is as in `minimize`.
    `jac` and `grad` are Tensors without a gradient.

    The derivative is that of the equation ``J^T f = 0``, whose Jacobian is the Hessian of the cost, with the second
    derivatives of the residuals. It holds for data that the model does not fit exactly.

    Raises:
        RuntimeError: SciPy did not succeed; the Hessian is singular, when a derivative is asked for.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> t = pullback.linspace(0, 1, 5, dtype=pullback.float64)
    >>> y = (2 * t).exp().requires_grad_()
    >>> found = optimize.least_squares(lambda k, y: (k * t).exp() - y, [1.0], args=(y,))
    >>> found.x.backward()
    >>> y.grad
    tensor([0.0000, 0.0061, 0.0200, 0.0495, 0.1088], dtype=pullback.float64)
    """
    where = "scipy.optimize.least_squares"
    names = {"ftol": ftol, "xtol": xtol, "gtol": gtol, "x_scale": x_scale, "f_scale": f_scale, "diff_step": diff_step}
    ftol, xtol, gtol, x_scale, f_scale, diff_step = plain_setting(where, **names)
    _check_choices(where, loss, method, progress)
    extra = dict(kwargs or {})
    program = Squares(where, (lambda x, *a: fun(x, *a, **extra)) if extra else fun, x0, args, bounds, loss, f_scale)

    def run(start: Array, *parameters: Any) -> tuple[Array, Any]:
        settings = {"method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol, "loss": loss, "f_scale": f_scale}
        settings |= {"diff_step": diff_step, "tr_solver": tr_solver, "tr_options": tr_options or {}, "verbose": verbose}
        settings |= {"jac_sparsity": jac_sparsity, "max_nfev": max_nfev}
        with shown("least_squares", progress) as show:
            by_name = callback is None or "intermediate_result" in inspect.signature(callback).parameters
            report = counting(show, callback, by_name) if progress else callback
            more = {"x_scale": x_scale, "callback": report, "workers": workers}
            found = scipy.optimize.least_squares(
                program.plain(program.values, parameters),
                start,
                _jacobian(program, jac, parameters),
                _plain_bounds(program, start, parameters),
                **settings,
                **{name: value for name, value in more.items() if value is not None},
            )
        return program.completed(np.array(found.x), parameters), found

    runs = Runs(program.given, where, on_failure, run)
    z, error = solved(program, runs, program.equation(runs))
    x, rest = z[: program.shape[0]], program.inputs[1:]
    return outcome(runs, error, x=x, fun=program.values(x, *rest), cost=program(x, *rest))


def _check_choices(where: str, loss: Any, method: str, progress: bool) -> None:
    """Errors for a loss without a derivative, and for progress that SciPy does not report."""
    if loss not in _LOSSES:
        raise NotImplementedError(
            errors.message(
                f"{where}: loss",
                expected=f"one of {', '.join(_LOSSES)}",
                found=errors.describe(loss),
                do="use minimize",
            )
        )
    if progress and method == "lm":
        raise ValueError(
            errors.message(
                f"{where}: progress with method 'lm', which has no callback in SciPy",
                do="use method 'trf' or 'dogbox', or verbose=1",
            )
        )


@mirrors(
    "optimize.curve_fit",
    derivative="implicit function theorem for the gradient of the sum of squares; pcov is a function of the fit",
    limits="p0 has no derivative",
)
def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: Any = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: Any = None,
    **kwargs: Any,
) -> Any:
    """Parameters of ``f(xdata, *parameters)`` fitted to `ydata`, as `scipy.optimize.curve_fit` finds them.

    Tensors in `xdata`, `ydata`, `sigma` and `bounds`, and those that `f` reads, have derivatives.

    `jac` is accepted, and not used: SciPy gets an exact Jacobian.

    Returns:
        popt: the parameters, a Tensor of shape [n]. pcov: their covariance [n, n], ``(J^T J)^-1`` of the weighted
        residuals, times their mean square unless `absolute_sigma`; a Tensor with derivatives as well. With
        `full_output` also SciPy's ``infodict, mesg, ier``.

    Raises:
        RuntimeError: SciPy did not find the parameters; `sigma`, `xdata` or `f` leave them undetermined, when a
            derivative is asked for.

    >>> import pullback
    >>> from pullback.scipy import optimize
    >>> t = pullback.tensor([0.0, 1.0, 2.0], dtype=pullback.float64)
    >>> y = pullback.tensor([1.0, 3.0, 5.5], dtype=pullback.float64, requires_grad=True)
    >>> popt, pcov = optimize.curve_fit(lambda t, a, b: a * t + b, t, y)
    >>> popt[0].backward()
    >>> y.grad.round(decimals=4)
    tensor([-0.5000, -0.0000,  0.5000], dtype=pullback.float64)
    """
    where = "scipy.optimize.curve_fit"
    check_function(where, f, "f")
    bounds = (bounds.lb, bounds.ub) if isinstance(bounds, scipy.optimize.Bounds) else bounds
    start = _first_guess(f, bounds) if p0 is None else floating(p0)
    y, weights = floating(ydata), None if sigma is None else floating(sigma)
    _check_data(where, check_finite, nan_policy, y, weights)
    count = y.numel()
    if weights is not None and weights.numel() != 1 and tuple(weights.shape) not in ((count,), (count, count)):
        raise ValueError("`sigma` has incorrect shape.")
    data = floating(xdata) if isinstance(xdata, (list, tuple)) or hasattr(xdata, "dtype") else xdata
    more: list[Any] = []

    def residuals(p: Tensor, x: Any, y: Tensor, s: Any) -> Tensor:
        found: Tensor = f(x, *[p[i] for i in range(p.shape[0])]) - y
        if s is None:
            return found
        return found / s if s.numel() == 1 or s.dim() == 1 else np.linalg.solve(np.linalg.cholesky(s), found)  # type: ignore[return-value]

    program = Squares(where, residuals, start, (data, y, weights), bounds, "linear", 1.0)

    def run(begin: Array, *parameters: Any) -> tuple[Array, Any]:
        values = program.plain(program.values, parameters)
        exact = program.plain(lambda x, *p: jacobian(lambda y: program.values(y, *p), x), parameters)
        settings = {"check_finite": check_finite, "nan_policy": nan_policy, "method": method}
        settings = {name: value for name, value in settings.items() if value is not None}
        try:
            popt, *_, info, message, code = scipy.optimize.curve_fit(
                lambda _, *p: values(np.array(p)),
                np.zeros(y.numel()),
                np.zeros(y.numel()),
                begin,
                bounds=_plain_bounds(program, begin, parameters),
                jac=lambda _, *p: exact(np.array(p)),
                full_output=True,
                **settings,
                **kwargs,
            )
        except RuntimeError as error:
            return begin, scipy.optimize.OptimizeResult(success=False, message=str(error))
        more[:] = info, message, code
        found = scipy.optimize.OptimizeResult(success=True, message=message)
        return program.completed(np.array(popt), parameters), found

    runs = Runs(program.given, where, "raise", run)
    z, _ = solved(program, runs, program.equation(runs), told=False)
    popt = z[: program.shape[0]]
    pcov = _covariance(program, popt, absolute_sigma)
    return (popt, pcov, *more) if full_output else (popt, pcov)


def _check_data(where: str, check_finite: Any, nan_policy: Any, *data: Any) -> None:
    """SciPy's own error for NaN and infinities."""
    if nan_policy == "omit":
        raise NotImplementedError(
            errors.message(f"{where}: nan_policy='omit'", do="leave the NaN out of xdata and ydata before the call")
        )
    for given in data:
        if check_finite is not False and given is not None and not isinstance(given, Lifted):
            np.asarray_chkfinite(array_of(given))


def _covariance(program: Squares, popt: Tensor, absolute: bool) -> Tensor:
    """The inverse of ``J^T J`` at the fit, times the mean square of the residuals."""
    parameters = program.inputs[1:]
    matrix = jacobian(lambda p: program.values(p, *parameters), popt)
    count, n = matrix.shape
    found = np.linalg.inv(matrix.mT @ matrix)
    if not absolute:
        if count <= n:
            return found * np.inf  # type: ignore[return-value]
        found = found * ((program.values(popt, *parameters) ** 2).sum() / (count - n))
    return found  # type: ignore[return-value]


def _first_guess(f: Any, bounds: Any) -> Array:
    """Where SciPy begins without `p0`: ones, or a point within the bounds."""
    names = [
        p for p in inspect.signature(f).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(names) < 2:
        raise ValueError("Unable to determine number of fit parameters.")
    count = len(names) - 1
    lower, upper = (np.broadcast_to(array_of(floating(b).detach()), (count,)) for b in bounds)
    low, high = np.isfinite(lower), np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (lower + upper)
    return np.select([low & high, low, high], [middle, lower + 1, upper - 1], 1.0)
