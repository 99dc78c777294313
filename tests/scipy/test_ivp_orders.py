"""Initial value problems by every method: derivatives of both orders in every mode, beside closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.scipy.integrate import batched_adjoint, ivp_runs, odeint, solve_ivp, stage_equations
from pullback.scipy.optimize import curve_fit, least_squares

METHODS = ["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA", "odeint"]
TOLERANCES = {"RK23": 1e-6, "Radau": 1e-7, "BDF": 1e-7}
BOUNDS = {"RK23": 3e-3, "BDF": 1e-4}  # a second derivative by an end of the span is that of one step, of low order
WEIGHTS = np.array([[1.0, -0.5, 0.3], [0.7, 0.2, -1.0]])


def t64(value: Any, grad: bool = False) -> Any:
    return pullback.tensor(value, dtype=pullback.float64, requires_grad=grad)


POINT = t64([0.3, 2.1, 1.4, 1.0, -0.4, 0.2, 1.7])


def times(p: Any) -> Any:
    return pullback.stack([p[5] + 0.3 * (p[6] - p[5]), p[5] + 0.71 * (p[6] - p[5]), p[6]])


def measured(y: Any, p: Any) -> Any:
    return (y * t64(WEIGHTS)).sum() * p[2] + y[0, -1] ** 2


def spiral(p: Any) -> Any:
    """In closed form: a state that turns with speed p[1] and decays with rate p[0], from time p[5] on."""
    s = times(p) - p[5]
    cosine, sine = pullback.cos(p[1] * s), pullback.sin(p[1] * s)
    y = pullback.stack([p[3] * cosine + p[4] * sine, p[4] * cosine - p[3] * sine])
    return measured(pullback.exp(-p[0] * s) * y, p)


def solved(method: str, dense: bool = False) -> Callable[[Any], Any]:
    """The same by a solver: a rate in args=, a speed that is read, a state, a span and times, all of them tensors."""
    tol = {"rtol": TOLERANCES.get(method, 1e-10), "atol": TOLERANCES.get(method, 1e-10)}

    def f(p: Any) -> Any:
        def slope(y: Any, a: Any) -> Any:
            return [-a * y[0] + p[1] * y[1], -p[1] * y[0] - a * y[1]]

        y0, ts = pullback.stack([p[3], p[4]]), times(p)
        if method == "odeint":
            at = pullback.cat([p[5:6], ts])
            return measured(odeint(lambda y, t, a: slope(y, a), y0, at, args=(p[0],), **tol)[1:].T, p)
        span = (p[5], p[6])
        if dense:
            sol = solve_ivp(lambda t, y, a: slope(y, a), span, y0, method, dense_output=True, args=(p[0],), **tol)
            return measured(sol.sol(ts), p)
        return measured(solve_ivp(lambda t, y, a: slope(y, a), span, y0, method, ts, args=(p[0],), **tol).y, p)

    return f


def same(method: str, found: Any, expected: Any) -> None:
    bound = BOUNDS.get(method, 1e-5) * (1 + float(expected.abs().max()))
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=0, atol=bound)


@pytest.mark.parametrize("dense", [False, True], ids=["t_eval", "dense"])
@pytest.mark.parametrize("method", METHODS)
def test_both_orders_are_those_of_the_closed_form(method: str, dense: bool) -> None:
    f = solved(method, dense)
    slope, curvature = func.grad(spiral)(POINT), func.hessian(spiral)(POINT)
    same(method, f(POINT), spiral(POINT))
    same(method, func.grad(f)(POINT), slope)
    same(method, func.jacfwd(f)(POINT), slope)
    same(method, func.hessian(f)(POINT), curvature)
    same(method, func.jacrev(func.grad(f))(POINT), curvature)
    same(method, func.jacfwd(func.jacfwd(f))(POINT), curvature)


@pytest.mark.parametrize("method", METHODS)
def test_batches_and_compiled_functions_have_both_orders(method: str) -> None:
    f = solved(method)
    points = pullback.stack([POINT, 1.1 * POINT])
    slopes = pullback.vmap(func.grad(spiral))(points)
    same(method, pullback.vmap(func.grad(f))(points), slopes)
    same(method, func.grad(lambda q: pullback.vmap(f)(q).sum())(points), slopes)
    same(method, pullback.vmap(func.hessian(f))(points), pullback.vmap(func.hessian(spiral))(points))
    p = POINT.clone().requires_grad_()
    value = pullback.compile(f)(p)
    same(method, value, spiral(POINT))
    (g,) = pullback.autograd.grad(value, p, create_graph=True)
    same(method, g, slopes[0])
    same(method, pullback.autograd.grad((g * POINT).sum(), p)[0], func.hessian(spiral)(POINT) @ POINT)


# Steps together ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS[:-1])
@pytest.mark.parametrize("t_eval", [None, [0.0, 0.4, 1.0]], ids=["steps", "t_eval"])
def test_steps_together_and_one_after_another_agree(method: str, t_eval: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(p: Any) -> Any:
        def fun(t: Any, y: Any) -> Any:
            return [y[1], p[0] * (1 - y[0] ** 2) * y[1] - y[0] + t * p[1]]

        def event(t: Any, y: Any) -> Any:
            return y[0] - 0.5 * p[1]

        sol = solve_ivp(fun, (0.0, p[2]), p[:2], method, t_eval, events=event, rtol=1e-2, atol=1e-3)
        return pullback.cat([sol.y.reshape(-1), sol.t_events[0], sol.y_events[0].reshape(-1)])

    p, found = t64([1.5, 0.4, 1.0]), []
    for equations in (16, 0):
        monkeypatch.setattr(ivp_runs, "EQUATIONS", equations)
        weights = np.cos(np.arange(f(p).shape[0]))
        found.append([func.jacrev(f)(p), func.jacfwd(f)(p), func.hessian(lambda q: (f(q) * weights).sum())(p)])  # noqa: B023
    for together, apart in zip(*found, strict=True):
        np.testing.assert_allclose(together.numpy(), apart.numpy(), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_a_function_that_looks_at_values_is_called_for_one_state_after_another(method: str) -> None:
    def f(p: Any, looks: bool) -> Any:
        def fun(t: Any, y: Any) -> Any:
            if looks and float(t) > 1e9:
                return y
            return [y[1], -p[0] * np.sin(y[0])]

        return solve_ivp(fun, (0.0, 1.0), p, method, [0.5, 1.0], rtol=1e-6).y

    p = t64([1.3, 0.2])
    for of in (func.jacfwd, func.jacrev, lambda g: func.hessian(lambda q: g(q).sum())):
        found, expected = of(lambda q: f(q, True))(p), of(lambda q: f(q, False))(p)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_a_jacobian_does_not_call_the_function_once_for_each_step(method: str) -> None:
    calls = [0]

    def f(p: Any, tol: float) -> Any:
        def fun(t: Any, y: Any) -> Any:
            calls[0] += isinstance(p, pullback.Tensor) and pullback.is_grad_enabled()
            return [y[1], -p[0] * y[0]]

        return solve_ivp(fun, (0.0, 10.0), [1.0, p[1]], method, [5.0, 10.0], rtol=tol, atol=tol).y

    counts = []
    for tol in (1e-3, 1e-7):
        calls[0] = 0
        func.jacfwd(lambda p, tol=tol: f(p, tol))(t64([1.3, 0.2]))
        counts.append(calls[0])
    assert 0 < counts[1] <= counts[0] + 5


def test_newtons_method_for_all_steps_of_a_stiff_system(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = t64([0.04, 3e7, 1e4])

    def f(q: Any) -> Any:
        def fun(t: Any, y: Any, k: Any) -> Any:
            slow, fast, back = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
            return [back - slow, slow - back - fast, fast]

        args = (rates * q.exp(),)
        return solve_ivp(fun, (0, 1e4), [1.0, 0, 0], "BDF", [1.0, 1e4], args=args, rtol=1e-8, atol=1e-12).y

    q = t64([0.0, 0.0, 0.0])
    found = func.jacfwd(f)(q).numpy()
    monkeypatch.setattr(stage_equations, "_ITERATIONS", 0)  # it does not converge: one step after another
    np.testing.assert_allclose(func.jacfwd(f)(q).numpy(), found, rtol=1e-6, atol=1e-13)
    sizes = np.array([1.0, 1e-5, 1.0])[:, None]
    for i in range(3):
        step = 1e-3 * np.eye(3)[i]
        slope = (f(q + step) - f(q - step)).numpy() / 2e-3
        np.testing.assert_allclose(found[..., i] / sizes, slope / sizes, rtol=0, atol=1e-4)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "BDF"])
def test_a_complex_function_that_is_not_holomorphic(method: str) -> None:
    def f(p: Any) -> Any:
        def fun(t: Any, y: Any) -> Any:
            return np.stack([-1j * np.abs(y[0]) ** 2 * y[0] + 1j * y[1], np.conj(y[0]) - p[4] * y[1]])

        y0 = pullback.complex(p[:2], p[2:4])
        y = solve_ivp(fun, (0.0, 1.0), y0, method, [0.4, 1.0], rtol=1e-9, atol=1e-9).y
        return (y.real * t64([[1.0, 2.0], [0.5, -1.0]])).sum() + y[0, -1].imag

    p = t64([1.0, 0.5, 0.2, -0.3, 0.4])
    steps = 1e-5 * np.eye(5)
    slope = np.array([(f(p + s) - f(p - s)).item() / 2e-5 for s in steps])
    np.testing.assert_allclose(func.grad(f)(p).numpy(), slope, atol=1e-6)
    np.testing.assert_allclose(func.jacfwd(f)(p).numpy(), slope, atol=1e-6)
    curvature = np.array([(func.grad(f)(p + s) - func.grad(f)(p - s)).numpy() / 2e-5 for s in steps])
    np.testing.assert_allclose(func.hessian(f)(p).numpy(), curvature, atol=1e-5)
    np.testing.assert_allclose(func.jacrev(func.grad(f))(p).numpy(), curvature, atol=1e-5)


# Fits of solutions ---------------------------------------------------------------------------------------------------


def predators(t: Any, y: Any, a: Any, b: Any) -> Any:
    return [a * y[0] - b * y[0] * y[1], 0.1 * y[0] * y[1] - 0.4 * y[1]]


def fitted(solver: str, data: Any) -> Any:
    """Two rates of a system, fitted to its states at some times."""
    at, start, tol = np.linspace(0, 4, 9), [10.0, 5.0], {"rtol": 1e-9, "atol": 1e-9}
    if solver == "odeint":

        def curve(_: Any, *p: Any) -> Any:
            return odeint(predators, start, at, args=p, tfirst=True, **tol).reshape(-1)

        return curve_fit(curve, None, data.reshape(-1), [1.0, 0.35])[0]

    def rest(p: Any, data: Any) -> Any:
        y = solve_ivp(predators, (0.0, 4.0), start, solver, at, args=(p[0], p[1]), **tol).y
        return (y.T - data).reshape(-1)

    return least_squares(rest, [1.0, 0.35], args=(data,), xtol=1e-12, gtol=1e-12).x


@pytest.mark.parametrize("solver", ["RK45", "LSODA", "odeint"])
def test_a_fit_of_a_solution_has_the_derivative_of_the_fit(solver: str) -> None:
    at = np.linspace(0, 4, 9)
    exact = odeint(predators, [10.0, 5.0], at, args=(1.1, 0.4), tfirst=True, rtol=1e-10, atol=1e-10)
    data = exact + 0.1 * t64(np.sin(np.arange(18.0)).reshape(9, 2))
    slope = func.jacrev(lambda d: fitted(solver, d))(data).numpy()
    for place in ((3, 0), (8, 1)):
        step = np.zeros((9, 2))
        step[place] = 1e-3
        difference = (fitted(solver, data + step) - fitted(solver, data - step)).numpy() / 2e-3
        np.testing.assert_allclose(slope[(slice(None), *place)], difference, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("method", METHODS[:-1])
def test_a_solution_that_grows_beyond_all_bounds(method: str) -> None:
    k = t64(1.0, True)
    with (
        np.errstate(over="ignore"),
        pytest.raises(RuntimeError, match=r"did not converge.*step size is less than spacing"),
    ):
        solve_ivp(lambda t, y: [k * y[0] ** 2], (0, 2.0), [1.0], method)
    with np.errstate(over="ignore"):
        y = solve_ivp(lambda t, y: [k * y[0] ** 2], (0, 2.0), [1.0], method, [0.5, 2.0], on_failure="nan").y
    assert y.detach().isnan().all()


@pytest.mark.parametrize("begins", [True, False], ids=["at once", "later"])
@pytest.mark.parametrize("method", METHODS)
def test_a_function_that_returns_nan(method: str, begins: bool) -> None:
    k = t64(1.0, True)

    def fun(t: Any, y: Any) -> Any:
        return [np.where(begins | (t > 0.5), np.nan, 1.0) * k * y[0]]

    def found(**more: Any) -> Any:
        if method == "odeint":
            return odeint(fun, [1.0], [0.0, 1.0], tfirst=True, **more)
        return solve_ivp(fun, (0.0, 1.0), [1.0], method, [0.0, 1.0], **more).y

    with pytest.raises(RuntimeError, match=r"did not converge"):
        found()
    assert found(on_failure="nan").detach().isnan().all()


ANEW = {  # how a right-hand side of y (which varies over the stages) and k (which does not) makes its result
    "like the state": lambda y, k: np.zeros_like(y, float, shape=2),
    "like a parameter": lambda y, k: np.zeros_like(k, float, shape=2),
    "a function": lambda y, k: pullback.zeros(2, dtype=pullback.float64),
    "of a parameter": lambda y, k: k[0] * pullback.ones(2, dtype=pullback.float64),
    "a copy": lambda y, k: k[:2].clone(),
    "a part": lambda y, k: pullback.zeros(2, 3, dtype=pullback.float64)[:, 1],
}


@pytest.mark.parametrize("method", METHODS)
def test_a_result_may_be_written_into_any_tensor_made_for_it(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the derivatives call it for the stages of many steps at once, as one that returns a list."""
    t, at_once = np.linspace(0.0, 3.0, 7), []
    called, together = batched_adjoint.Batched._called, stage_equations.Together.__call__

    def batched(self: Any, *args: Any) -> Any:
        found = called(self, *args)
        at_once.append(found is not None)
        return found

    def stages(self: Any, *args: Any) -> Any:
        at_once.append(self.by_vmap)
        return together(self, *args)

    monkeypatch.setattr(batched_adjoint.Batched, "_called", batched)
    monkeypatch.setattr(stage_equations.Together, "__call__", stages)

    def run(made: Any) -> list[Any]:
        def rhs(t: Any, y: Any, k: Any) -> Any:
            slopes = [y[1] * k[2] + 0.1 * k[1], -k[0] * np.sin(y[0]) - k[1] * y[1]]
            if made is None:
                return slopes
            dy = made(y, k)
            first = dy[:1]
            dy[0] = slopes[0]
            dy[1] = slopes[1]
            dy[1:] += 0.0 * first  # a view taken before the write sees it
            return dy

        y0, k = t64([1.0, 0.5], True), t64([1.3, 0.2, 0.9], True)
        if method == "odeint":
            y = odeint(rhs, y0, t, args=(k,), tfirst=True, rtol=1e-6, atol=1e-8).T
        else:
            y = solve_ivp(rhs, (0.0, 3.0), y0, method, t_eval=t, args=(k,), rtol=1e-6, atol=1e-8).y
        grads = pullback.autograd.grad((y * WEIGHTS[:2, :1]).sum(), [y0, k], create_graph=True)
        (second,) = pullback.autograd.grad(grads[1].sum(), k)
        return [g.detach().numpy() for g in (y, *grads, second)]

    expected = run(None)
    assert at_once
    for name, made in ANEW.items():
        at_once.clear()
        for got, wanted in zip(run(made), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8, err_msg=name)
        assert at_once
        assert all(at_once), name
