"""Solvers of complex unknowns: derivatives are right, also where the function is not holomorphic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.scipy import implicit, optimize
from pullback.scipy.integrate import solve_ivp

POINT = pullback.tensor([0.5, 0.3, -0.2], dtype=pullback.float64)
GUESS = np.array([0.1 + 0.1j, 0.2j])


def parts(z: Any) -> Any:
    return pullback.cat([z.real.reshape(-1), z.imag.reshape(-1)])


def equations(z: Any, p: Any) -> Any:
    c = pullback.complex(p[0], p[1])
    return z + p[2] * np.conj(z) * z - np.stack([c + 0 * z[0], 2j * c + 0.1 * z[0]])


def differences(f: Callable[[Any], Any], p: Any) -> Any:
    steps = 1e-5 * np.eye(p.shape[0])
    return np.stack([(f(p + s) - f(p - s)).numpy() / 2e-5 for s in steps], -1)


def check(f: Callable[[Any], Any], bound: float = 1e-6) -> None:
    slope = differences(f, POINT)
    assert np.abs(slope).max() > 0.1
    np.testing.assert_allclose(func.jacfwd(f)(POINT).numpy(), slope, rtol=0, atol=bound)
    np.testing.assert_allclose(func.jacrev(f)(POINT).numpy(), slope, rtol=0, atol=bound)
    weights = np.arange(1.0, 1 + slope.shape[0])

    def total(p: Any) -> Any:
        return (f(p) * weights).sum()

    curvature = differences(func.grad(total), POINT)
    np.testing.assert_allclose(func.hessian(total)(POINT).numpy(), curvature, rtol=0, atol=10 * bound)
    np.testing.assert_allclose(func.jacrev(func.grad(total))(POINT).numpy(), curvature, rtol=0, atol=10 * bound)


def iterated(p: Any) -> Any:
    return optimize.fixed_point(
        lambda z: z - 0.3 * equations(z, p), GUESS, xtol=1e-12, maxiter=2000, method="iteration"
    )


ROOTS = {
    "root": lambda p: optimize.root(lambda z: equations(z, p), GUESS, method="krylov", tol=1e-11).x,
    "newton_krylov": lambda p: optimize.newton_krylov(lambda z: equations(z, p), GUESS, f_tol=1e-12),
    "fixed_point": iterated,
}


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse or by products"])
@pytest.mark.parametrize("solver", ROOTS)
def test_roots(solver: str, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not dense:
        monkeypatch.setattr(implicit, "DENSE", 0)
    check(lambda p: parts(ROOTS[solver](p)))


@pytest.mark.parametrize(
    "more", [{"method": "newton", "fprime": lambda z: 2 * z}, {"method": "secant", "x1": 0.2 + 1.1j}]
)
def test_a_root_of_one_complex_number(more: dict[str, Any]) -> None:
    def found(p: Any) -> Any:
        c = pullback.complex(p[0], p[1]) + p[2]
        return parts(optimize.root_scalar(lambda z: z * z + 1 + c, x0=0.3 + 1j, **more).root)

    check(found)
    check(lambda p: parts(optimize.newton(lambda z: z * z + 1 + pullback.complex(p[0], p[1]) + p[2], 0.3 + 1j)))


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_initial_values_of_many_equations(method: str) -> None:
    def f(p: Any) -> Any:
        def fun(t: Any, y: Any) -> Any:
            return -1j * np.abs(y) ** 2 * y * p[0] + 1j * np.roll(y, 1) + p[1] * np.conj(y)

        y0 = pullback.complex(p[2] * pullback.ones(20, dtype=pullback.float64), pullback.tensor(np.linspace(0, 1, 20)))
        y = solve_ivp(fun, (0, 0.2), y0, method, [0.2], rtol=1e-8, atol=1e-8).y
        return parts(y[:3])

    check(f, 1e-5)
