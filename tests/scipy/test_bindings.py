"""Variables that are bound anew after a solver was called: its derivatives are those of what it read."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import grad
from pullback.scipy import integrate, optimize
from pullback.scipy.sparse.linalg import LinearOperator, cg, gmres

F64 = pullback.float64
FACTOR: Any = 1.0
K: Any = pullback.tensor([1.0], dtype=F64)
SPACE = types.SimpleNamespace(k=K)


def leaf(*values: float) -> Any:
    return pullback.tensor(values, dtype=F64, requires_grad=True)


def of(f: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
    """Solvers for functions made of ``f(v)``, which multiplies by what it reads."""
    start, t = np.ones(1), {"t_eval": [0.5, 1.0], "rtol": 1e-8, "atol": 1e-8}

    def ground(t: Any, y: Any) -> Any:
        return y[0] - f(1.0)[0] / 10

    ground.terminal = True  # type: ignore[attr-defined]
    line = {"type": "eq", "fun": lambda x: x - f(2.0)}
    diagonal = LinearOperator((1, 1), matvec=lambda v: v + f(v), rmatvec=lambda v: v + f(v))
    return {
        "root": lambda: optimize.root(lambda x: x + np.exp(x) - f(1.0), start).x,
        "root_scalar": lambda: optimize.root_scalar(lambda x: x**3 - f(1.0).sum(), x0=1.0, x1=2.0).root,
        "fixed_point": lambda: optimize.fixed_point(lambda x: np.cos(x) * f(0.1), start),
        "newton_krylov": lambda: optimize.newton_krylov(lambda x: x + np.exp(x) - f(1.0), start, f_tol=1e-11),
        "minimize": lambda: optimize.minimize(lambda x: ((x - f(1.0)) ** 4 + x**2).sum(), start, tol=1e-10).x,
        "constraint": lambda: optimize.minimize(lambda x: (x**2).sum(), start, constraints=line, tol=1e-10).x,
        "least_squares": lambda: optimize.least_squares(lambda x: np.exp(x) - f(1.0), start, xtol=1e-12).x,
        "curve_fit": lambda: optimize.curve_fit(lambda t, p: p * t + f(t), np.arange(3.0), np.arange(3.0) * 4)[0],
        "RK45": lambda: integrate.solve_ivp(lambda t, y: -f(y), (0, 1.0), start, **t).y,
        "continuous": lambda: integrate.solve_ivp(lambda t, y: -f(y), (0, 1.0), start, adjoint="continuous", **t).y,
        "BDF": lambda: integrate.solve_ivp(lambda t, y: -f(y), (0, 1.0), start, "BDF", **t).y,
        "event": lambda: integrate.solve_ivp(lambda t, y: -f(y), (0, 9.0), start, events=ground, rtol=1e-8).t_events[0],
        "odeint": lambda: integrate.odeint(lambda y, t: -f(y), 1.0, [0.0, 1.0]),
        "solve_bvp": lambda: integrate.solve_bvp(
            lambda x, y: pullback.stack([y[1], -f(y[0])]),
            lambda a, b: [a[0], b[0] - 1],
            np.linspace(0, 1, 9),
            np.ones((2, 9)),
        ).y[0, 4],
        "quad": lambda: integrate.quad(lambda x: f(x).sum(), 0.0, 1.0)[0],
        "quad_vec": lambda: integrate.quad_vec(lambda x: f(x), 0.0, 1.0)[0],
        "cg": lambda: cg(diagonal, np.ones(1), rtol=1e-12)[0],
        "gmres": lambda: gmres(diagonal, np.ones(1), rtol=1e-12)[0],
    }


NAMES = list(of(lambda v: v))


def check(solve: Callable[[], Any], change: Callable[[Any, float], None]) -> None:
    """The gradients of two solutions after both were made are those that are taken at once."""
    at_once, later, leaves = [], [], []
    for v in (0.9, 1.4):
        k = leaf(v)
        change(k, v)
        at_once.append(grad(solve().sum(), k)[0].numpy())
        leaves.append(k)
        later.append(solve().sum())
    change(leaf(5.0), 3.0)
    found = grad(later[0] + later[1], leaves, create_graph=True)
    second = [grad(g.sum(), k, allow_unused=True)[0] for g, k in zip(found, leaves, strict=True)]
    for one, other in zip(found, at_once, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other, rtol=1e-6)
    assert all(s is None or np.isfinite(s.numpy()).all() for s in second)


@pytest.mark.parametrize("name", NAMES)
def test_a_global(name: str) -> None:
    def change(k: Any, v: float) -> None:
        global K, FACTOR
        K, FACTOR = k, v

    check(of(lambda v: v * K * FACTOR)[name], change)


@pytest.mark.parametrize("name", NAMES)
def test_the_variable_of_a_loop(name: str) -> None:
    k, factor = leaf(1.0), 1.0

    def change(new: Any, v: float) -> None:
        nonlocal k, factor
        k, factor = new, v

    check(of(lambda v: v * k * factor)[name], change)


class Model:
    def __init__(self) -> None:
        self.k: Any = leaf(1.0)
        self.parts: dict[str, Any] = {"factor": 1.0}
        self.calls = 0

    def scaled(self, v: Any) -> Any:
        self.calls += 1
        return v * self.k * self.parts["factor"]

    def __call__(self, v: Any) -> Any:
        return self.scaled(v)


MODEL = Model()


def helper(v: Any) -> Any:
    return v * K * FACTOR


def _attribute(k: Any, v: float) -> None:
    MODEL.k, MODEL.parts["factor"] = k, v


def _globals(k: Any, v: float) -> None:
    global K, FACTOR
    K, FACTOR = k, v


def _space(k: Any, v: float) -> None:
    SPACE.k = k


LISTED: list[Any] = [K, 1.0]


def _item(k: Any, v: float) -> None:
    LISTED[:] = [k, v]


@pytest.mark.parametrize("name", ["root", "minimize", "RK45", "BDF", "quad", "solve_bvp"])
@pytest.mark.parametrize(
    ("f", "change"),
    [
        (MODEL.scaled, _attribute),
        (MODEL, _attribute),
        (lambda v: MODEL(v), _attribute),
        (functools.partial(lambda m, v: m.scaled(v), MODEL), _attribute),
        (lambda v: helper(v), _globals),
        (helper, _globals),
        (functools.partial(helper), _globals),
        (lambda v: v * LISTED[0] * LISTED[1], _item),
    ],
    ids=["a method", "callable", "an object", "partial", "a helper", "itself", "its partial", "a list"],
)
def test_where_a_variable_is(name: str, f: Any, change: Any) -> None:
    check(of(f)[name], change)


def test_a_compiled_function() -> None:
    compiled = pullback.compile(lambda x: x + np.exp(x) - K * FACTOR, backend="numpy")
    check(lambda: optimize.root(compiled, np.ones(1)).x, _globals)


def test_a_tensor_in_a_class_that_is_another_is_an_error() -> None:
    class Settings:
        k = leaf(2.0)

        def scaled(self, v: Any) -> Any:
            return v * Settings.k

    y = optimize.root(Settings().scaled, np.ones(1)).x
    settings = Settings()
    before, other = Settings.k, optimize.root(lambda x: x + settings.scaled(x) - 1, np.ones(1)).x
    grad(y.sum(), before, retain_graph=True)
    Settings.k = leaf(3.0)
    with pytest.raises(RuntimeError, match=r"k, a tensor that the function reads(.|\n)*pass it in args="):
        grad(other.sum(), before)


def test_a_function_that_counts_counts_the_calls_of_the_solver() -> None:
    model = Model()
    model.k = leaf(0.5)
    x = optimize.root(lambda x: x + model.scaled(x) - 1, np.ones(1)).x
    solved = model.calls
    assert solved > 2
    np.testing.assert_allclose(grad(x.sum(), model.k)[0].numpy(), -1 / 1.5**2, rtol=1e-9)
    assert model.calls == solved  # a derivative calls the function as it was


def test_nothing_is_noted_where_nothing_is_differentiated() -> None:
    with pullback.no_grad():
        assert not optimize.outcomes.Problem("root", lambda x: x, np.ones(1), ()).given._bindings


def test_large_containers_and_recursive_ones_are_no_trouble() -> None:
    data, own = [1.0] * 10_000, []  # type: ignore[var-annotated]
    own.append(own)
    k = leaf(2.0)

    def f(x: Any) -> Any:
        return x - k * data[0] if own else x

    x = optimize.root(f, np.ones(1)).x
    first, k = k, leaf(3.0)
    assert grad(x.sum(), first)[0].item() == 1.0
