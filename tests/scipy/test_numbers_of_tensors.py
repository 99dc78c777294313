"""A user's function that takes a number from a tensor, by `float` or `math`: an error, never a missing gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor

pytest.importorskip("scipy")
from pullback.scipy import integrate, optimize

FUNCTIONS = {
    "float of the state": lambda t, y, a: [-a * float(y[0])],
    "math of the state": lambda t, y, a: [-a * math.log(1 + y[0])],
    "float of a parameter": lambda t, y, a: [-float(a) * y[0]],
    "int of a parameter": lambda t, y, a: [-int(a) * a * y[0]],
}


def parameter() -> Tensor:
    return pullback.tensor(2.0, dtype=pullback.float64, requires_grad=True)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "RK23", "Radau", "BDF", "LSODA"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_a_system_is_refused(name: str, method: str) -> None:
    with pytest.raises(RuntimeError, match="Can't turn a Tensor that requires grad"):
        integrate.solve_ivp(FUNCTIONS[name], (0, 1), [1.0], method=method, args=(parameter(),))


@pytest.mark.parametrize("method", ["RK45", "DOP853", "LSODA"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_where_no_gradient_is_asked_for_a_number_is_a_number(name: str, method: str) -> None:
    with pullback.no_grad():
        found = integrate.solve_ivp(FUNCTIONS[name], (0, 1), [1.0], method=method, args=(parameter(),))
    assert found.success


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_of_a_variable_around_it_is_refused(method: str) -> None:
    a = parameter()
    with pytest.raises(RuntimeError, match="Can't turn a Tensor that requires grad"):
        integrate.solve_ivp(lambda t, y: [-a * math.exp(a) * y[0]], (0, 1), [1.0], method=method)


def test_of_what_needs_no_gradient_is_a_number() -> None:
    a, steps = parameter(), pullback.tensor(3)
    found = integrate.solve_ivp(lambda t, y, a, n: [-a * y[0] * int(n)], (0, 1), [1.0], args=(a, steps))
    (g,) = pullback.autograd.grad(found.y[0, -1], a)
    assert abs(g.item() + 3 * math.exp(-6.0)) < 1e-3


INTEGRALS = {
    "quad": lambda a: integrate.quad(lambda x, a: float(a) * x, 0, 1, args=(a,))[0],
    "quad of a variable": lambda a: integrate.quad(lambda x: float(a) * x, 0, a)[0],
    "quad_vec": lambda a: integrate.quad_vec(lambda x: np.stack([float(a) * x, a * x]), 0, 1)[0].sum(),
}


@pytest.mark.parametrize("name", INTEGRALS)
def test_of_an_integrand_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="Can't turn a Tensor that requires grad"):
        INTEGRALS[name](parameter())


def test_the_point_of_an_integrand_is_a_number() -> None:
    a = parameter()
    integrate.quad(lambda x, a: a * math.exp(x), 0, 1, args=(a,))[0].backward()
    assert a.grad is not None
    assert abs(a.grad.item() - (math.e - 1)) < 1e-12


# A method with a barrier stops short of the bounds: what is left of the slope says which it meant.

BOUNDED: dict[str, Any] = {
    "pairs": lambda a: {"bounds": [(-9, a), (-9, 9)]},
    "linear": lambda a: {"constraints": optimize.LinearConstraint(np.array([[1.0, 0.0]]), -np.inf, a)},
    "nonlinear": lambda a: {"constraints": optimize.NonlinearConstraint(lambda x: x[0] ** 2, -np.inf, a**2)},
}


@pytest.mark.parametrize("tol", [None, 1e-12])
@pytest.mark.parametrize("name", BOUNDED)
def test_a_bound_that_a_barrier_stops_short_of_has_its_derivative(name: str, tol: float | None) -> None:
    a = parameter()
    found = optimize.minimize(
        lambda x: (x[0] - 5.0) ** 2 + (x[1] - 1) ** 2, [0.5, 0.5], method="trust-constr", tol=tol, **BOUNDED[name](a)
    )
    (g,) = pullback.autograd.grad(found.x[0], a)
    assert abs(g.item() - 1.0) < 1e-3


def test_a_bound_that_a_barrier_stops_short_of_holds_an_unknown() -> None:
    c = pullback.tensor(5.0, dtype=pullback.float64, requires_grad=True)

    def f(x: Tensor, c: Tensor) -> Any:
        return (x[0] - c) ** 2 + (x[1] - 1) ** 2 + 0.3 * x[0] * x[1] * c

    bounds = optimize.Bounds([-9, -9], [2.0, 9.0])
    x = optimize.minimize(f, [0.0, 0.0], (c,), method="trust-constr", bounds=bounds).x
    (first,) = pullback.autograd.grad(x[0], c, retain_graph=True)
    (second,) = pullback.autograd.grad(x[1], c)
    assert (first.item(), round(second.item(), 2)) == (0.0, -0.3)


def test_a_minimum_near_a_bound_that_is_not_reached_is_free() -> None:
    c = pullback.tensor(1.995, dtype=pullback.float64, requires_grad=True)
    x = optimize.minimize(lambda x, c: ((x - c) ** 2).sum(), [0.0], (c,), method="L-BFGS-B", bounds=[(-9, 2.0)]).x
    (g,) = pullback.autograd.grad(x[0], c)
    assert abs(g.item() - 1.0) < 1e-9


def test_numbers_written_into_an_array_are_refused_with_the_reason() -> None:
    def filled(t: Any, y: Any, a: Any) -> Any:
        out = np.zeros(2)
        out[0], out[1] = y[1], -a * y[0]
        return out

    with pytest.raises(RuntimeError, match=r"Can't turn a Tensor(.|\n)*instead of writing them into an array"):
        integrate.solve_ivp(filled, (0, 1), [1.0, 0.0], args=(parameter(),))
    with pytest.raises(RuntimeError, match="Can't turn a Tensor"):
        optimize.root(lambda x, a: filled(0.0, x, a) - 1.0, [1.0, 0.0], args=(parameter(),))


# item() and tolist(): they leave the graph on purpose, so they warn ---------------------------------------------------

TAKEN = {
    "root": lambda c, a: optimize.root(lambda x, a: x + np.exp(x) - c(a) - a, [0.0], args=(a,)).x,
    "root of a variable": lambda c, a: optimize.root(lambda x: x + np.exp(x) - c(a), [0.0]).x,
    "the root itself": lambda c, a: optimize.root(lambda x, a: x**3 + 1e-9 * c(x[0]) - a, [1.0], args=(a,)).x,
    "minimize": lambda c, a: optimize.minimize(lambda x, a: ((x - c(a)) ** 2).sum(), [0.0], args=(a,)).x,
    "the minimum itself": lambda c, a: optimize.minimize(lambda x: (x[0] - a) ** 2 + 0.1 * c(x[0]), [0.0]).x,
    "least_squares": lambda c, a: optimize.least_squares(lambda x: x - c(a), [0.0]).x,
    "brentq": lambda c, a: optimize.brentq(lambda x, a: x - c(a), 0.0, 9.0, args=(a,)),
    "fixed_point": lambda c, a: optimize.fixed_point(lambda x, a: np.cos(x) * 0.1 * c(a), 0.5, args=(a,)),
    "solve_ivp": lambda c, a: integrate.solve_ivp(lambda t, y: -c(a) * y, (0, 1), [1.0]).y[0, -1],
    "the state": lambda c, a: integrate.solve_ivp(lambda t, y: [-a * c(y[0])], (0, 1), [1.0]).y[0, -1],
    "the state, implicit": lambda c, a: integrate.solve_ivp(
        lambda t, y: [-a * c(y[0])], (0, 1), [1.0], method="Radau"
    ).y[0, -1],
    "odeint": lambda c, a: integrate.odeint(lambda y, t, a: -y * c(a), [1.0], [0.0, 1.0], args=(a,))[-1],
    "quad": lambda c, a: integrate.quad(lambda x, a: c(a) * x, 0, 1, args=(a,))[0],
    "quad_vec": lambda c, a: integrate.quad_vec(lambda x: x * c(a), 0, 1)[0],
}


def derivative(found: Tensor, a: Tensor) -> None:
    if found.requires_grad:
        pullback.autograd.grad(found.sum(), a)


@pytest.mark.parametrize("how", ["item", "tolist"])
@pytest.mark.parametrize("name", TAKEN)
def test_a_number_taken_on_purpose_is_told(name: str, how: str) -> None:
    def taken(t: Any) -> Any:
        return getattr(t, how)()

    a = parameter()
    with pytest.warns(UserWarning, match=rf"takes a number, by {how}\(\)(.|\n)*t\.detach\(\)\.{how}\(\)") as told:
        derivative(TAKEN[name](taken, a), a)
    assert {w.filename for w in told} == {__file__}


@pytest.mark.parametrize("name", TAKEN)
def test_the_advice_is_silent_and_so_are_values(name: str) -> None:
    a = parameter()
    derivative(TAKEN[name](lambda t: t.detach().item(), a), a)
    by_values = "itself" not in name and "implicit" not in name  # the solver itself asks these for slopes
    if by_values:
        TAKEN[name](lambda t: t.item(), a.detach())
    if by_values and name != "minimize":
        with pullback.no_grad():
            TAKEN[name](lambda t: t.item(), a)
    assert parameter().item() == 2.0  # no word of it outside of solvers


def test_the_place_of_an_integrand_may_be_taken() -> None:
    a = parameter()
    found = integrate.quad(lambda x: a * math.sin(x.item()), 0, 1)[0]
    np.testing.assert_allclose(pullback.autograd.grad(found, a)[0].item(), 1 - math.cos(1.0))
