"""Objects in ``args=`` that hold tensors: their gradients are those of the closure that reads the same object."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.autograd import grad
from pullback.func import jvp
from pullback.scipy import integrate, interpolate, optimize

F64 = pullback.float64
KNOTS = np.linspace(0.0, 3.0, 5)
TIGHT = {"rtol": 1e-9, "atol": 1e-9}

Force = Callable[[Any, Any], Any]
"""``f(obj, s)``: a positive number from an object and a place."""


class Slotted:
    __slots__ = ("amps",)

    def __init__(self, amps: Any) -> None:
        self.amps = amps

    def at(self, s: Any) -> Any:
        return self.amps.sum() + s


class Plain:
    def __init__(self, amps: Any) -> None:
        self.amps = amps

    def at(self, s: Any) -> Any:
        return self.amps.sum() + s


@dataclasses.dataclass
class Data:
    inner: Any

    def __call__(self, s: Any) -> Any:
        return self.inner["spline"](s)


class Net(nn.Module):
    def __init__(self, amps: Any) -> None:
        super().__init__()
        self.amps = amps

    def forward(self, s: Any) -> Any:
        return (self.amps * s).sum() + 1


def spline(amps: Any) -> Any:
    return interpolate.CubicSpline(KNOTS, amps)


def called(obj: Any, s: Any) -> Any:
    return obj(s)


def at(obj: Any, s: Any) -> Any:
    return obj.at(s)


OBJECTS: dict[str, tuple[Callable[[Any], Any], Force]] = {
    "interp1d": (lambda a: interpolate.interp1d(KNOTS, a), called),
    "CubicSpline": (spline, called),
    "pchip": (lambda a: interpolate.PchipInterpolator(KNOTS, a), called),
    "BSpline": (lambda a: interpolate.make_interp_spline(KNOTS, a), called),
    "a lambda": (lambda a: lambda s: a.sum() + s, called),
    "a partial": (lambda a: functools.partial(lambda b, s: b.sum() + s, a), called),
    "a bound method": (lambda a: Plain(a).at, called),
    "a plain object": (Plain, at),
    "slots": (Slotted, at),
    "a namespace": (lambda a: types.SimpleNamespace(amps=a, at=lambda s: a.sum() + s), at),
    "a dataclass": (lambda a: Data({"spline": spline(a)}), called),
    "a module": (Net, called),
    "a dict": (lambda a: {"spline": spline(a)}, lambda obj, s: obj["spline"](s)),
    "a list": (lambda a: [spline(a), 1.0], lambda obj, s: obj[0](s) * obj[1]),
    "compiled": (lambda a: pullback.compile(lambda s: a.sum() + s, backend="numpy"), called),
}

ONE = np.ones(1)
SOLVERS: dict[str, Callable[[Force, Any], Any]] = {
    "odeint": lambda f, o: integrate.odeint(lambda y, t, p: -f(p, t) * y, 1.0, [0.0, 1.0], args=(o,), **TIGHT)[-1],
    "RK45": lambda f, o: integrate.solve_ivp(lambda t, y, p: -f(p, t) * y, (0, 1), ONE, args=(o,), **TIGHT).y[:, -1],
    "BDF": lambda f, o: integrate.solve_ivp(lambda t, y, p: -f(p, t) * y, (0, 1), ONE, "BDF", args=(o,), **TIGHT).y[
        :, -1
    ],
    "continuous": lambda f, o: integrate.solve_ivp(
        lambda t, y, p: -f(p, t) * y, (0, 1), ONE, args=(o,), adjoint="continuous", **TIGHT
    ).y[:, -1],
    "root": lambda f, o: optimize.root(lambda x, p: x + x**3 - f(p, 1.0), ONE, args=(o,)).x,
    "fsolve": lambda f, o: optimize.fsolve(lambda x, p: x + x**3 - f(p, 1.0), ONE, args=(o,)),
    "brentq": lambda f, o: optimize.brentq(lambda x, p: x + x**3 - f(p, 1.0), 0.0, 50.0, args=(o,)),
    "newton": lambda f, o: optimize.newton(lambda x, p: x + x**3 - f(p, 1.0), 1.0, args=(o,)),
    "root_scalar": lambda f, o: optimize.root_scalar(lambda x, p: x + x**3 - f(p, 1.0), args=(o,), x0=1.0, x1=2.0).root,
    "fixed_point": lambda f, o: optimize.fixed_point(lambda x, p: np.cos(x) * f(p, 1.0) / 20, ONE, args=(o,)),
    "minimize": lambda f, o: optimize.minimize(lambda x, p: ((x - f(p, 1.0)) ** 2).sum(), ONE, (o,), tol=1e-10).x,
    "minimize_scalar": lambda f, o: optimize.minimize_scalar(lambda x, p: (x - f(p, 1.0)) ** 2, args=(o,)).x,
    "constraint": lambda f, o: (
        optimize.minimize(
            lambda x: (x**2).sum(), ONE, constraints={"type": "eq", "fun": lambda x, p: x - f(p, 1.0), "args": (o,)}
        ).x
    ),
    "least_squares": lambda f, o: optimize.least_squares(lambda x, p: x + x**3 - f(p, 1.0), ONE, args=(o,)).x,
    "kwargs": lambda f, o: optimize.least_squares(lambda x, p: x + x**3 - f(p, 1.0), ONE, kwargs={"p": o}).x,
    "quad": lambda f, o: integrate.quad(lambda s, p: f(p, s) ** 2, 0.0, 2.0, args=(o,))[0],
    "quad_vec": lambda f, o: integrate.quad_vec(lambda s, p: f(p, s) ** 2, 0.0, 2.0, args=(o,))[0],
}


def amplitudes() -> tuple[Any, Any]:
    """A leaf, and positive numbers computed from it: no leaf, so that it must be found by its name."""
    leaf = pullback.tensor([0.3, 0.5, 0.4, 0.7, 0.6], dtype=F64, requires_grad=True)
    return leaf, leaf * 1.5


def compared(solver: str, kind: str) -> None:
    make, f = OBJECTS[kind]
    found = []
    for in_args in (True, False):
        leaf, amps = amplitudes()
        obj = make(amps)
        y = SOLVERS[solver](f, obj) if in_args else SOLVERS[solver](lambda _, s, obj=obj: f(obj, s), 0.0)
        found.append((y.detach().numpy(), grad(y.sum(), leaf)[0].numpy()))
    (value, gradient), (right_value, right) = found
    np.testing.assert_allclose(value, right_value, rtol=1e-9)
    np.testing.assert_allclose(gradient, right, rtol=1e-9)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["CubicSpline", "a lambda"])
def test_each_solver(solver: str, kind: str) -> None:
    compared(solver, kind)


@pytest.mark.parametrize("solver", ["odeint", "root"])
@pytest.mark.parametrize("kind", OBJECTS)
def test_each_object(solver: str, kind: str) -> None:
    compared(solver, kind)


@pytest.mark.parametrize("solver", ["odeint", "RK45", "root", "quad", "minimize"])
@pytest.mark.parametrize("kind", ["interp1d", "a lambda", "a plain object"])
def test_forward_mode(solver: str, kind: str) -> None:
    make, f = OBJECTS[kind]
    a = amplitudes()[1].detach()
    one, other = (
        jvp(lambda a: SOLVERS[solver](f, make(a)), (a,), (a * 0 + 1,)),
        jvp(lambda a: SOLVERS[solver](lambda _, s: f(make(a), s), 0.0), (a,), (a * 0 + 1,)),
    )
    for found, right in zip(one, other, strict=True):
        np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=1e-9)


@pytest.mark.parametrize("solver", ["odeint", "RK45", "BDF", "root", "quad", "minimize"])
def test_an_attribute_that_is_bound_anew(solver: str) -> None:
    """The derivative is that of what the object held when the solver was called."""
    leaf, amps = amplitudes()
    model = Plain(amps)
    right = grad(SOLVERS[solver](at, Plain(amps)).sum(), leaf, retain_graph=True)[0]
    y = SOLVERS[solver](at, model).sum()
    model.amps = amps.detach() * 3
    np.testing.assert_allclose(grad(y, leaf)[0].numpy(), right.numpy(), rtol=1e-9)


class Counting(Plain):
    def __init__(self, amps: Any) -> None:
        super().__init__(amps)
        self.calls = 0

    def at(self, s: Any) -> Any:
        self.calls += 1
        return super().at(s)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_object_that_counts_its_calls(solver: str) -> None:
    """A solver calls the object itself, and a derivative calls what a closure would read."""
    leaf, amps = amplitudes()
    inside, around = Counting(amps), Counting(amps)
    found = SOLVERS[solver](at, inside).sum()
    right = SOLVERS[solver](lambda _, s: around.at(s), 0.0).sum()
    assert inside.calls > 2
    assert around.calls - inside.calls in (0, 1)  # a call of a copy, between finding what is read and solving
    before = inside.calls, around.calls
    gradient, right_gradient = (grad(y, leaf, retain_graph=True)[0].numpy() for y in (found, right))
    np.testing.assert_allclose(gradient, right_gradient)
    assert inside.calls - before[0] == around.calls - before[1]


def test_a_tensor_that_the_function_makes_is_a_constant_to_the_solver() -> None:
    """Also one that requires grad: a new one in each call, whose gradient nobody can ask for."""
    k, kept = pullback.tensor(2.0, dtype=F64, requires_grad=True), []

    def one(**options: Any) -> Any:
        return pullback.tensor([1.0, 5.0], dtype=F64, requires_grad=True, **options)[0]

    t = [0.0, 1.0]
    for made, plain in (
        (
            lambda: integrate.odeint(lambda y, t: -y * one() * k, [1.0], t),
            lambda: integrate.odeint(lambda y, t: -y * k, [1.0], t),
        ),
        (
            lambda: integrate.solve_ivp(lambda t, y: -y * one() * k, t, [1.0]).y,
            lambda: integrate.solve_ivp(lambda t, y: -y * k, t, [1.0]).y,
        ),
        (
            lambda: optimize.root(lambda x: x**2 - k * one(), [1.0]).x,
            lambda: optimize.root(lambda x: x**2 - k, [1.0]).x,
        ),
    ):
        np.testing.assert_array_equal(grad(made().sum(), k)[0].item(), grad(plain().sum(), k)[0].item())

    def keeps(y: Any, t: Any) -> Any:
        kept.append(one())
        return -y * kept[-1]

    with pytest.raises(RuntimeError, match=r"keeps reads a tensor that requires grad, another one in each call"):
        integrate.odeint(keeps, [1.0], t)
