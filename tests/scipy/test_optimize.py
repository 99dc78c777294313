"""`pullback.scipy.optimize`: SciPy's values, derivatives in every mode and order, and what is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback
from pullback import func
from pullback.autograd import gradcheck, gradgradcheck
from pullback.scipy import integrate, optimize, sparse

F64 = pullback.float64
# A solver stops at its tolerance, so the finite differences of its results need steps that are large beside it.
STEPS: dict[str, Any] = {"eps": 1e-3, "atol": 1e-3}
TIGHT = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


def leaf(*values: Any) -> pullback.Tensor:
    return pullback.tensor(values if len(values) > 1 else values[0], dtype=F64, requires_grad=True)


def pair(x: Any, a: Any, b: Any) -> Any:
    return [x[0] ** 2 + b * x[1] - a[0], x[1] ** 3 + x[0] * b - a[1]]


def rosenbrock(x: Any, a: Any, b: Any) -> Any:
    return ((1 - x[:-1] * a[0]) ** 2 + a[1] * (x[1:] - x[:-1] ** 2) ** 2).sum() + b * (x**2).sum()


def cubic(x: Any, a: Any, b: Any) -> Any:
    return x**3 + b * x - a[0] - a[1]


T = pullback.linspace(0, 2, 6, dtype=F64)
NOISE = pullback.tensor([0.03, -0.05, 0.02, 0.04, -0.02, 0.01], dtype=F64)


def residuals(x: Any, a: Any, b: Any) -> Any:
    return x[0] * (-x[1] * T).exp() - a[1] * (-a[0] * T).exp() - b * NOISE


def decay(t: Any, height: Any, rate: Any) -> Any:
    return height * (-rate * t).exp()


def fitted(a: Any, b: Any) -> Any:
    return optimize.curve_fit(decay, T, a[1] * (-a[0] * T).exp() + b * NOISE, **TIGHT)


def with_method(name: str, **options: Any) -> Callable[..., Any]:
    return lambda a, b: optimize.minimize(rosenbrock, [0.5, 0.6], (a, b), method=name, options=options).x


def scalar(method: str | None) -> Callable[..., Any]:
    return lambda a, b: optimize.root_scalar(cubic, (a, b), method, [0, 10], x0=2.0, x1=3.0, xtol=1e-13).root


def bracketed(name: str) -> Callable[..., Any]:
    return lambda a, b: getattr(optimize, name)(cubic, 0, 10, (a, b))


# Functions of a pair of numbers and of a number, all smooth at (1.1, 2.2), 0.3.
SOLUTIONS: dict[str, Callable[..., Any]] = {
    **{
        f"root {m}": functools.partial(
            lambda m, a, b: optimize.root(pair, [1.0, 1.0], (a, b), method=m, tol=1e-10).x, m
        )
        for m in ("hybr", "lm", "krylov", "df-sane")
    },
    "fsolve": lambda a, b: optimize.fsolve(pair, [1.0, 1.0], (a, b), xtol=1e-13),
    "newton_krylov": lambda a, b: optimize.newton_krylov(
        lambda x: pullback.stack(pair(x, a, b)), [1.0, 1.0], f_tol=1e-8
    ),
    "fixed_point": lambda a, b: optimize.fixed_point(lambda x, a, b: (a * x * b).cos(), [0.5, 0.5], (a, b), xtol=1e-13),
    **{f"root_scalar {m}": scalar(m) for m in (None, "brentq", "toms748", "newton", "halley", "secant")},
    **{name: bracketed(name) for name in ("brentq", "brenth", "ridder", "bisect")},
    "newton": lambda a, b: optimize.newton(cubic, 2.0, args=(a, b), tol=1e-13),
    "minimize BFGS": with_method("BFGS", gtol=1e-8),
    "minimize CG": with_method("CG", gtol=1e-6),
    "minimize L-BFGS-B": with_method("L-BFGS-B", gtol=1e-8, ftol=1e-16),
    "minimize SLSQP": with_method("SLSQP", ftol=1e-16),
    "minimize Newton-CG": with_method("Newton-CG", xtol=1e-10),
    "minimize trust-ncg": with_method("trust-ncg", gtol=1e-8),
    "minimize trust-exact": with_method("trust-exact", gtol=1e-8),
    "minimize trust-constr": with_method("trust-constr", gtol=1e-8),
    "minimize Nelder-Mead": with_method("Nelder-Mead", xatol=1e-9, fatol=1e-15, maxiter=2000),
    "minimize Powell": with_method("Powell", xtol=1e-10, ftol=1e-15),
    "minimize_scalar": lambda a, b: optimize.minimize_scalar(
        lambda x, a, b: (x - a[0]) ** 2 * a[1] + b * x**4, args=(a, b)
    ).x,
    "least_squares": lambda a, b: optimize.least_squares(residuals, [1.0, 1.0], args=(a, b), **TIGHT).x,
    "least_squares lm": lambda a, b: optimize.least_squares(residuals, [1.0, 1.0], method="lm", args=(a, b), **TIGHT).x,
    **{
        f"least_squares {loss}": functools.partial(
            lambda loss, a, b: optimize.least_squares(
                residuals, [1.0, 1.0], loss=loss, f_scale=0.01, args=(a, b), **TIGHT
            ).x,
            loss,
        )
        for loss in ("soft_l1", "cauchy", "arctan")
    },
    "curve_fit": lambda a, b: fitted(a, b)[0],
    "curve_fit covariance": lambda a, b: fitted(a, b)[1] * 1e3,
}  # fmt: skip


@pytest.mark.parametrize("name", SOLUTIONS)
def test_derivatives_of_two_orders_in_both_modes(name: str) -> None:
    inputs = leaf(1.1, 2.2), leaf(0.3)
    assert gradcheck(SOLUTIONS[name], inputs, check_forward_ad=True, **STEPS)
    assert gradgradcheck(SOLUTIONS[name], inputs, **STEPS)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_transforms_agree_with_each_other(name: str) -> None:
    a, b = leaf(1.1, 2.2).detach(), leaf(0.3).detach()

    def total(a: Any) -> Any:
        return SOLUTIONS[name](a, b).sum()

    forward_over_reverse = func.hessian(total)(a)
    reverse_over_reverse = func.jacrev(func.grad(total))(a)
    np.testing.assert_allclose(forward_over_reverse.numpy(), reverse_over_reverse.numpy(), rtol=1e-6, atol=1e-8)
    batch = pullback.stack([a, a * 1.1])
    each = pullback.stack([func.grad(total)(row) for row in batch])
    np.testing.assert_allclose(pullback.vmap(func.grad(total))(batch).numpy(), each.numpy(), rtol=1e-6, atol=1e-8)


def test_parameters_that_are_numbers_or_integers_stay_what_they_are() -> None:
    which = pullback.tensor([1, 0])

    def root(a: Any) -> Any:
        def fun(x: Any, a: Any, which: Any, power: int, name: dict[str, str]) -> Any:
            assert (which.dtype, type(power), name) == (pullback.int64, int, {"as": "given"})
            return x**power - a[which]

        return optimize.root(fun, [1.0, 1.0], args=(a, which, 2, {"as": "given"}), tol=1e-12).x

    gradcheck(root, leaf(4.0, 9.0), check_forward_ad=True)
    gradgradcheck(root, leaf(4.0, 9.0))


@pytest.mark.parametrize("name", ["root hybr", "brentq", "minimize BFGS", "least_squares", "curve_fit", "fixed_point"])
def test_what_a_function_reads_has_the_derivative_of_an_argument(name: str) -> None:
    """Free variables, one of them the result of an operation on another; attributes; under transforms as well."""
    a, b = leaf(1.1, 2.2), leaf(0.3)
    expected = pullback.autograd.grad(SOLUTIONS[name](a, b).sum(), (a, b))

    def closed(a: Any, b: Any) -> Any:
        c = b * 2.0  # depends on b, which is read as well

        class Holder:
            half = c / 2

        held = {
            "root hybr": lambda: optimize.root(lambda x: pair(x, a, c - b), [1.0, 1.0], tol=1e-12).x,
            "brentq": lambda: optimize.brentq(lambda x: cubic(x, a, Holder.half), 0, 10),
            "minimize BFGS": lambda: (
                optimize.minimize(lambda x: rosenbrock(x, a, c - b), [0.5, 0.6], options={"gtol": 1e-8}).x
            ),
            "least_squares": lambda: optimize.least_squares(lambda x: residuals(x, a, c - b), [1.0, 1.0], **TIGHT).x,
            "curve_fit": lambda: optimize.curve_fit(
                lambda t, h, r: decay(t, h, r) - a[1] * (-a[0] * T).exp() - (c - b) * NOISE, T, 0 * T, **TIGHT
            )[0],
            "fixed_point": lambda: optimize.fixed_point(lambda x: (a * x * (c - b)).cos(), [0.5, 0.5], xtol=1e-13),
        }
        return held[name]().sum()

    for found, right in zip(pullback.autograd.grad(closed(a, b), (a, b)), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=1e-6)
    tangent = pullback.tensor([0.5, -1.0], dtype=F64)
    pushed = func.jvp(lambda a: closed(a, b.detach()), (a.detach(),), (tangent,))[1]
    np.testing.assert_allclose(pushed.item(), (expected[0] * tangent).sum().item(), rtol=1e-6)
    rows = pullback.vmap(lambda a: closed(a, b.detach()))(a.detach()[None] * pullback.tensor([[1.0], [1.1]]))
    assert rows[0].item() == pytest.approx(closed(a, b).item(), rel=1e-9)


def test_a_solver_within_the_function_of_a_solver() -> None:
    """The inner one runs where SciPy is handed a Jacobian, in a transform that records nothing."""

    def inner(x: Any, b: Any) -> Any:
        return optimize.root(lambda y, x: y**3 + b * y - x, x.detach(), (x,), tol=1e-13).x

    def outer(a: Any, b: Any) -> Any:
        return optimize.least_squares(lambda x, a: inner(x, b) - a, [1.0, 1.0], args=(a,), **TIGHT).x

    a, b = leaf(0.5, 0.8), leaf(0.3)
    np.testing.assert_allclose(outer(a, b).detach().numpy(), (a**3 + b * a).detach().numpy(), rtol=1e-8)
    for found, right in zip(
        pullback.autograd.grad(outer(a, b).sum(), (a, b)),
        pullback.autograd.grad((a**3 + b * a).sum(), (a, b)),
        strict=True,
    ):
        np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=1e-6)


def test_a_tensor_that_cannot_be_seen_is_an_error() -> None:
    hidden = iter([leaf(2.0) * 1.0] * 10)
    with pytest.raises(RuntimeError, match="not visible from outside"):
        optimize.root(lambda x: x**2 - next(hidden), 1.0)


def test_results_are_those_of_scipy() -> None:
    found = optimize.root(lambda x, a, b: pullback.stack(pair(x, a, b)), [1.0, 1.0], (leaf(1.1, 2.2), 0.3))
    plain = scipy.optimize.root(
        lambda x: np.array([x[0] ** 2 + 0.3 * x[1] - 1.1, x[1] ** 3 + x[0] * 0.3 - 2.2]), [1.0, 1.0]
    )
    assert type(found) is type(plain)
    np.testing.assert_allclose(found.x.detach().numpy(), plain.x, rtol=1e-9)
    assert (found.success, found.message) == (plain.success, plain.message)
    assert found.fun.requires_grad
    assert isinstance(found.fjac, pullback.Tensor)
    assert 0 <= found.gradient_error < 1e-8
    x = np.linspace(0, 2, 9)
    y = 2 * np.exp(-1.3 * x) + 0.02 * np.cos(20 * x)
    sigma = 1 + 0.1 * x
    for weights in (None, sigma, np.diag(sigma**2) + 0.01, 0.3, [2.0]):
        for absolute in (False, True):
            ours = optimize.curve_fit(decay, x, y, sigma=weights, absolute_sigma=absolute)
            right = scipy.optimize.curve_fit(
                lambda t, h, r: h * np.exp(-r * t), x, y, sigma=weights, absolute_sigma=absolute
            )
            np.testing.assert_allclose(ours[0].numpy(), right[0], rtol=1e-6)
            np.testing.assert_allclose(ours[1].numpy(), right[1], rtol=1e-4)
    popt, pcov, info, message, code = optimize.curve_fit(decay, x, y, full_output=True)
    assert (tuple(popt.shape), tuple(pcov.shape), code in (1, 2, 3, 4)) == ((2,), (2, 2), True)
    assert isinstance(message, str)
    assert "nfev" in info


def test_a_tighter_tolerance_has_a_smaller_gradient_error() -> None:
    a, b = leaf(1.1, 2.2), leaf(0.3)
    errors = [
        optimize.minimize(rosenbrock, [0.5, 0.6], (a, b), options={"gtol": g}).gradient_error for g in (1e-2, 1e-9)
    ]
    assert errors[0] > 1e-5 > 1e-8 > errors[1]


# Bounds and constraints -----------------------------------------------------------------------------------------------


def away(x: Any, a: Any) -> Any:
    return ((x - a) ** 2).sum() + 0.1 * (x**4).sum()


def boxed(a: Any, b: Any) -> Any:
    rules = [{"type": "eq", "fun": lambda x, b: x.sum() - 5 * b, "args": (b,)}]
    return optimize.minimize(away, [0.1, 0.1], (a,), bounds=[(0, b), (0, 3)], constraints=rules, tol=1e-14).x


def curved(a: Any, b: Any) -> Any:
    rules = [
        scipy.optimize.NonlinearConstraint(lambda x: (x**2).sum() * b, -np.inf, 1.0),
        scipy.optimize.LinearConstraint([[1.0, -1.0]], -3.0, 3.0),
    ]
    options = {"gtol": 1e-12, "xtol": 1e-14}
    return optimize.minimize(away, [0.1, 0.1], (a,), method="trust-constr", constraints=rules, options=options).x


def at_bounds(a: Any, b: Any) -> Any:
    return optimize.minimize(away, [0.1, 0.1], (a,), bounds=scipy.optimize.Bounds([0, 0], [5, 1.0]), tol=1e-14).x * b


def in_a_box(a: Any, b: Any) -> Any:
    upper = pullback.stack([b + 9, b])
    found = optimize.least_squares(residuals, [1.0, 0.1], bounds=(-np.inf, upper), args=(a, b), **TIGHT)
    return found.x


CONSTRAINED = {"equality and bounds": boxed, "curve": curved, "bounds": at_bounds, "least squares": in_a_box}


@pytest.mark.parametrize("name", CONSTRAINED)
def test_active_constraints_hold_the_minimum_and_move_it(name: str) -> None:
    # the interior point method stops within 1e-8 of a constraint
    inputs = leaf(1.1, 2.2), leaf(0.3)
    assert gradcheck(CONSTRAINED[name], inputs, check_forward_ad=True, **STEPS)
    assert gradgradcheck(CONSTRAINED[name], inputs, eps=1e-3, atol=5e-3)


def test_a_bound_that_is_reached_without_a_force_is_refused() -> None:
    a = leaf(1.0, 3.0)
    found = optimize.minimize(lambda x, a: ((x - a) ** 2).sum(), [0.1, 0.1], (a,), bounds=[(0, 1), (0, 5)])
    with pytest.raises(RuntimeError, match=r"the bound of x\[0\] is reached, but has no multiplier"):
        found.x.sum().backward()
    assert a.grad is None
    second = optimize.minimize(lambda x, a: ((x - a) ** 2).sum(), [0.1, 0.1], (a,), bounds=[(0, 2), (0, 3)])
    with pytest.raises(RuntimeError, match=r"the bound of x\[1\] is reached"):
        second.x.sum().backward()
    held = {"type": "ineq", "fun": lambda x: np.stack([5 - x[0], 3 - x[1]])}
    third = optimize.minimize(
        lambda x, a: ((x - a) ** 2).sum(), [0.1, 0.1], (a,), bounds=[(0, 2)] * 2, constraints=held
    )
    third.x.sum().backward()  # the bound of x[1] has a force, and the constraint is not reached
    loose = optimize.minimize(
        lambda x, a: ((x - a) ** 2).sum(), [0.1, 0.1], (a,), bounds=[(0, 9)] * 2, constraints=held
    )
    with pytest.raises(RuntimeError, match=r"value 1 of constraints\[0\] is reached"):
        loose.x.sum().backward()


def test_a_compiled_function_has_the_same_minimum_and_derivatives() -> None:
    def f(x: Any, a: Any) -> Any:
        return ((x - a) ** 4).sum() + ((x[1:] - x[:-1]) ** 2).sum() + (x**2).sum()

    def found(f: Any, a: Any) -> Any:
        return optimize.minimize(f, np.zeros(3), (a,), method="BFGS", options={"gtol": 1e-8}).x

    a, fast = leaf(0.5, 1.0, 2.0), pullback.compile(f, backend="numpy")
    np.testing.assert_allclose(found(fast, a).detach().numpy(), found(f, a).detach().numpy(), rtol=1e-8)
    jacobians = [func.jacrev(lambda a, f=f: found(f, a))(a.detach()).numpy() for f in (fast, f)]
    np.testing.assert_allclose(*jacobians, rtol=1e-6)
    (slope,) = pullback.autograd.grad(found(fast, a).sum(), a)
    np.testing.assert_allclose(slope.numpy(), jacobians[1].sum(0), rtol=1e-6)


# Failures and bad input -----------------------------------------------------------------------------------------------


def test_without_convergence_there_is_no_gradient() -> None:
    a = leaf(1.0)
    with pytest.raises(RuntimeError, match="not making good progress"):
        optimize.root(lambda x, a: x**2 + a, [1.0], (a,))
    x = optimize.root(lambda x, a: x**2 + a, [1.0], (a,), on_failure="nan").x
    x.sum().backward()
    assert np.isnan(x.item())
    assert np.isnan(a.grad.item())
    with pytest.raises(RuntimeError, match="Maximum number of iterations"):
        optimize.minimize(rosenbrock, [0.5, 0.6], (leaf(1.1, 2.2), 0.3), options={"maxiter": 1})
    with pytest.raises(RuntimeError, match="Failed to converge"):
        optimize.fixed_point(lambda x, a: 3 * x + a, 1.0, (a,), method="iteration", maxiter=5)
    with pytest.raises(ValueError, match="on_failure"):
        optimize.root(lambda x: x, 1.0, on_failure="ignore")


def test_a_singular_jacobian_is_named() -> None:
    a = leaf(0.0)
    x = optimize.root(lambda x, a: pullback.stack([x[0] + x[1] - a, 2 * x[0] + 2 * x[1] - 2 * a]), [0.0, 0.0], (a,)).x
    with pytest.raises(RuntimeError, match="Jacobian at the solution is singular"):
        x.sum().backward()
    flat = optimize.minimize(lambda x, a: (x[0] - a) ** 2 + 0 * x[1], [0.0, 0.0], (leaf(1.0),))
    with pytest.raises(RuntimeError, match="singular"):
        flat.x.sum().backward()


def test_a_sparse_jacobian_that_is_singular_but_for_rounding_is_named() -> None:
    """A closed pipe: the levels are determined up to a constant. The factors have a pivot of about 1e-16."""
    conductivity = pullback.from_numpy(np.random.default_rng(0).uniform(0.5, 2, 599))
    wall = pullback.zeros(1, dtype=pullback.float64)

    def balance(x: pullback.Tensor, source: pullback.Tensor, leak: float) -> pullback.Tensor:
        flux = pullback.cat([wall, conductivity * (x[1:] - x[:-1]), wall])
        return flux[1:] - flux[:-1] + source - source.mean() - leak * x

    source = leaf(*np.ones(600))
    closed = optimize.root(balance, np.zeros(600), (source, 0.0), method="krylov").x
    with pytest.raises(RuntimeError, match="Jacobian at the solution is singular"):
        closed[0].backward()
    scale = pullback.from_numpy(10.0 ** np.linspace(0, -11, 600))  # small pivots alone are no reason
    leaking = optimize.root(lambda x, s: scale * balance(x, s, 1.0), np.zeros(600), (source,), method="krylov").x
    (found,) = pullback.autograd.grad(leaking[0], source)
    assert abs(found.sum().item()) < 1e-8  # the mean of the source does not count
    assert found[0].item() > 0.1


def test_a_sparse_jacobian_with_a_long_chain_is_named() -> None:
    """Each unknown doubles an error of the next one, so the first is lost, though no pivot of the factors is small."""

    def chain(x: pullback.Tensor, a: pullback.Tensor) -> pullback.Tensor:
        return pullback.cat([x[:-1] - 2 * x[1:], x[-1:]]) - a

    a = leaf(*np.zeros(600))
    found = optimize.root(chain, np.zeros(600), (a,), method="krylov").x
    with pytest.raises(RuntimeError, match="Jacobian at the solution is singular"):
        found[0].backward()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: optimize.root(lambda x: x - 1, 0.0, tol=t), "tol is a setting of the solver"),
        (lambda t: optimize.brentq(lambda x: x - 1, 0, t), "b is a setting of the solver"),
        (lambda t: optimize.least_squares(lambda x: x - 1, [0.0], ftol=t), "ftol is a setting"),
        (lambda t: optimize.root(3, 0.0), "expected a function"),
        (lambda t: optimize.root(lambda x: None, 0.0), "must return a value"),
        (lambda t: optimize.minimize(lambda x: 3 * x, [t.detach(), 2.0]), "must return a number"),
        (lambda t: optimize.least_squares(lambda x: x - 1, [0.0], loss=lambda z: z), "loss"),
    ],
)
def test_bad_input_is_an_error_that_says_what_to_do(call: Callable[..., Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=message):
        call(leaf(1.0))


@pytest.mark.parametrize(
    ("ours", "scipys"),
    [
        (lambda: optimize.brentq(lambda x: x + 3, 0, 1), lambda: scipy.optimize.brentq(lambda x: x + 3, 0, 1)),
        (
            lambda: optimize.root(lambda x: x, 1.0, method="no"),
            lambda: scipy.optimize.root(lambda x: x, 1.0, method="no"),
        ),
        (
            lambda: optimize.minimize(lambda x: x.sum(), [1.0], method="no"),
            lambda: scipy.optimize.minimize(np.sum, [1.0], method="no"),
        ),
        (
            lambda: optimize.least_squares(lambda x: x, [2.0], bounds=(0.0, 1.0)),
            lambda: scipy.optimize.least_squares(lambda x: x, [2.0], bounds=(0.0, 1.0)),
        ),
        (
            lambda: optimize.curve_fit(decay, [0.0, 1.0], [1.0, np.nan]),
            lambda: scipy.optimize.curve_fit(lambda t, a, b: a * t + b, [0.0, 1.0], [1.0, np.nan]),
        ),
        *(
            (
                lambda sigma=sigma: optimize.curve_fit(decay, [0.0, 1.0], [1.0, 2.0], sigma=sigma),
                lambda sigma=sigma: scipy.optimize.curve_fit(
                    lambda t, a, b: a * t + b, [0.0, 1.0], [1.0, 2.0], sigma=sigma
                ),
            )
            for sigma in (np.ones(3), np.ones((2, 3)), np.ones((2, 2, 2)))
        ),
    ],
)
def test_scipys_own_errors_come_through(ours: Callable[..., Any], scipys: Callable[..., Any]) -> None:
    with pytest.raises(Exception) as right:  # noqa: PT011 - whichever SciPy raises
        scipys()
    with pytest.raises(type(right.value)) as found:
        ours()
    assert str(found.value) == str(right.value)


def test_integers_float32_and_plain_arguments() -> None:
    assert optimize.root(lambda x: x**2 - 4, 1).x.item() == pytest.approx(2.0)
    a = pullback.tensor(4.0, requires_grad=True)
    optimize.root(lambda x, a: x**2 - a, pullback.tensor(1), (a,)).x.backward()
    assert a.grad.dtype == pullback.float32
    assert a.grad.item() == pytest.approx(0.25)
    settings = {"powers": [2, 3]}
    assert optimize.root(lambda x, s: x ** s["powers"][1] - 8, 1.0, (settings,)).x.item() == pytest.approx(2.0)


def test_properties_of_what_a_function_reads_are_not_asked() -> None:
    class Slots:
        __slots__ = ("a", "n", "unset")

    class Guarded(Slots):
        @property
        def n(self) -> int:
            raise RuntimeError

    held = Guarded()
    held.a = leaf(4.0) * 1
    (g,) = pullback.autograd.grad(optimize.root(lambda x: x**2 - held.a, [1.0]).x.sum(), held.a)
    assert g.item() == pytest.approx(0.25)


def test_what_an_inherited_call_reads_is_found() -> None:
    def root_of(shift: Any) -> Any:
        class Base:
            def __call__(self, x: Any) -> Any:
                return x**2 - shift

        class Own(Base):
            pass

        return optimize.root(Own(), [1.0]).x.sum()

    assert func.grad(root_of)(leaf(4.0).detach().sum()).item() == pytest.approx(0.25)  # found by looking into it


def test_own_jacobians_and_callbacks_are_used() -> None:
    seen: list[str] = []

    def jac(x: Any, a: Any) -> Any:
        seen.append("jac")
        return (2 * x)[None]

    a = leaf(4.0)
    x = optimize.root(lambda x, a: x**2 - a, [1.0], (a,), jac=jac).x
    both = optimize.root(lambda x, a: (x**2 - a, (2 * x)[None]), [1.0], (a,), jac=True).x
    (x + both).sum().backward()
    assert a.grad.item() == pytest.approx(0.5)
    optimize.minimize(lambda x: (x**2).sum(), [1.0, 2.0], callback=lambda x: seen.append("step"))
    assert {"jac", "step"} <= set(seen)


SHOWN: dict[str, Callable[..., Any]] = {
    "root": lambda **given: optimize.root(lambda x: x**2 - 4, 1.0, **given).x,
    "minimize": lambda **given: optimize.minimize(lambda x: (x**2).sum(), [1.0, 2.0], **given).x,
    "least_squares": lambda **given: optimize.least_squares(lambda x: x**2 - 4, [1.0], **given).x,
    "fixed_point": lambda **given: optimize.fixed_point(np.cos, 1.0, **given),
    "odeint": lambda **given: integrate.odeint(lambda y, t: -y, [1.0], [0.0, 1.0], **given),
    "cg": lambda **given: sparse.linalg.cg(np.diag([1.0, 2.0]), np.ones(2), **given)[0],
    "bicgstab": lambda **given: sparse.linalg.bicgstab(np.diag([1.0, 2.0]), np.ones(2), **given)[0],
    "gmres": lambda **given: sparse.linalg.gmres(np.diag([1.0, 2.0]), np.ones(2), **given)[0],
}


@pytest.mark.parametrize("name", SHOWN)
def test_progress_is_shown_on_the_error_stream(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain = SHOWN[name]()
    assert capsys.readouterr() == ("", "")
    watched = SHOWN[name](progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert name in err
    np.testing.assert_array_equal(np.asarray(watched), np.asarray(plain))


def test_progress_calls_the_callback_as_well() -> None:
    seen: list[Any] = []

    def by_name(intermediate_result: Any) -> None:
        seen.append(intermediate_result.cost)

    for callback in (by_name, seen.append):
        before = len(seen)
        optimize.least_squares(lambda x: x**2 - 4, [1.0], callback=callback, progress=True)
        assert len(seen) > before
    before = len(seen)
    sparse.linalg.cg(np.diag([1.0, 2.0]), np.ones(2), callback=seen.append, progress=True)
    assert len(seen) > before


def test_progress_is_refused_where_scipy_has_no_callback() -> None:
    with pytest.raises(ValueError, match="progress with method 'lm'"):
        optimize.least_squares(lambda x: x - 1, [0.0], method="lm", progress=True)


def test_a_large_system_has_a_sparse_jacobian() -> None:
    n = 900

    def diffusion(x: Any, k: Any) -> Any:
        u = np.pad(x, 1)
        return (u[2:] - 2 * u[1:-1] + u[:-2]) * (n + 1) ** 2 - k * u[1:-1] ** 3 + 10.0

    k = leaf(1.0)
    options = {"fatol": 1e-6}
    found = optimize.root(diffusion, np.zeros(n), (k,), method="krylov", options=options)
    found.x.sum().backward()
    step = 1e-3
    up, down = (
        optimize.root(diffusion, np.zeros(n), (1 + s,), method="krylov", options=options).x for s in (step, -step)
    )
    assert k.grad.item() == pytest.approx((up - down).sum().item() / (2 * step), rel=1e-3)


@pytest.mark.parametrize("held", [0.0, 1e-3], ids=str)
def test_a_sparse_jacobian_that_is_almost_singular_is_named(held: float) -> None:
    n = 600
    weights = np.linspace(0.3, 1.7, n)  # their pivots are rounded, so that none is exactly 0

    def ring(x: Any, k: Any) -> Any:  # the mean is held by `held` alone
        flow = weights * (np.roll(x, -1) - x)
        return flow - np.roll(flow, 1) - held * x + k * (np.arange(n) % 2 - 0.5)

    k, state = leaf(1.0), np.random.get_state()[1]
    x = optimize.root(ring, np.zeros(n), (k,), method="krylov", options={"fatol": 1e-8}).x
    if held == 1e-3:
        (x**2).sum().backward()
        assert k.grad.item() == pytest.approx(2 * (x.detach() ** 2).sum().item(), rel=1e-5)
    else:
        with pytest.raises(RuntimeError, match="Jacobian at the solution is singular"):
            (x**2).sum().backward()
    np.testing.assert_array_equal(np.random.get_state()[1], state)


@pytest.mark.parametrize(
    ("name", "message"),
    [("linprog", "jumps from corner"), ("milp", "integers"), ("leastsq", "autograd.Function"), ("nonsense", "no attr")],
)
def test_what_is_not_here_says_why(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(optimize, name)
    assert "root" in dir(optimize)
    assert optimize.Bounds is scipy.optimize.Bounds


def test_least_squares_that_are_no_root_are_no_solution() -> None:
    a = leaf(0.5)
    with pytest.raises(RuntimeError, match=r"are no root: the residual is 0\.5"):
        optimize.root(lambda x, a: x**2 + a, [1.0], args=(a,), method="lm")
    lost = optimize.root(lambda x, a: x**2 + a, [1.0], args=(a,), method="lm", on_failure="nan").x
    assert np.isnan(lost.detach().numpy()).all()
    for tol in (None, 1e-2):  # a loose tolerance is no reason
        x = optimize.root(lambda x, a: x**2 - a, [1.0], args=(a,), method="lm", tol=tol).x
        np.testing.assert_allclose(pullback.autograd.grad(x.sum(), a)[0].numpy(), 0.5 / np.sqrt(0.5), rtol=1e-2)


@pytest.mark.parametrize(
    ("name", "solve"),
    [
        ("atol", lambda held: integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], atol=held)),
        ("rtol", lambda held: integrate.odeint(lambda y, t: -y, [1.0], [0.0, 1.0], rtol=held)),
        (r"options\['eps'\]", lambda held: optimize.root(lambda x: x, [1.0], options={"eps": held})),
    ],
)
def test_a_setting_that_holds_a_tensor_that_requires_grad_is_refused(name: str, solve: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=rf"(?s){name} is a setting.*detach\(\) the tensors in {name}"):
        solve([leaf(1e-3)])


@pytest.mark.parametrize(
    "solve",
    [
        lambda o: optimize.minimize(lambda x: (x**2).sum(), [1.0], options={"gtol": o}),
        lambda o: optimize.minimize_scalar(lambda x: x**2, options={"xtol": o}),
        lambda o: optimize.root(lambda x: x, [1.0], options={"xtol": o}),
        lambda o: optimize.root_scalar(lambda x: x, bracket=(-1, 2), options={"xtol": o}),
    ],
    ids=["minimize", "minimize_scalar", "root", "root_scalar"],
)
def test_an_option_that_requires_grad_is_refused(solve: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"options\['.tol'\] is a setting of the solver(.|\n)*detach"):
        solve(leaf(1e-3))


def test_data_that_are_to_be_left_out_are_told_of() -> None:
    with pytest.raises(NotImplementedError, match=r"nan_policy='omit'(.|\n)*leave the NaN out"):
        optimize.curve_fit(lambda t, a: a * t, [1.0, 2.0, 3.0], [2.0, np.nan, 6.0], nan_policy="omit")


def test_curve_fit_with_one_sigma_for_all() -> None:
    def fitted(s: Any) -> Any:
        return optimize.curve_fit(lambda t, a: a * t, [1.0, 2.0, 3.0], [2.0, 4.1, 5.9], sigma=s, absolute_sigma=True)[1]

    assert gradcheck(fitted, [pullback.tensor(0.3, dtype=pullback.float64, requires_grad=True)], rtol=1e-5)


def test_curve_fit_takes_lists_as_scipy_does() -> None:
    y = leaf(2.0, 4.1, 5.9)
    found = optimize.curve_fit(lambda t, a: a * t, [1.0, 2.0, 3.0], y)[0]
    expected = scipy.optimize.curve_fit(lambda t, a: a * t, [1.0, 2.0, 3.0], [2.0, 4.1, 5.9])[0]
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-8)
    listed = optimize.curve_fit(lambda t, a: a * t, [1.0, 2.0, 3.0], [2.0, 4.1, 5.9])[0]
    np.testing.assert_allclose(listed.numpy(), expected, rtol=1e-8)
