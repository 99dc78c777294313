"""The adjoint of implicit methods with a sparse Jacobian, which is found from the right-hand side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse

import pullback
from pullback.autograd import grad, gradcheck
from pullback.func import hessian, jacrev, jvp, vmap
from pullback.scipy.integrate import implicit_steps, odeint, solve_ivp
from pullback.scipy.integrate.implicit_steps import Slopes

F64 = pullback.float64
METHODS = ["Radau", "BDF", "LSODA"]


def leaf(*values: float) -> Any:
    return pullback.tensor(values, dtype=F64, requires_grad=True)


def diffusion(t: Any, u: Any, k: Any) -> Any:
    """Heat along a rod whose ends are at zero, and a reaction."""
    p = np.pad(u, 1)
    return k[0] * (p[2:] - 2 * u + p[:-2]) * (u.shape[0] + 1) ** 2 / 100 + k[1] * u * (1 - u)


def mixed(t: Any, u: Any, k: Any) -> Any:
    """Each depends on all."""
    return k[0] * (u.sum() - u**2) - k[1] * u


def start(n: int) -> Any:
    return np.sin(np.linspace(0, np.pi, n + 2)[1:-1])


def solved(n: int, method: str, k: Any, f: Any = diffusion, **options: Any) -> Any:
    options = {"rtol": 1e-6, "atol": 1e-8, **options}
    return solve_ivp(f, (0, 1.0), start(n), method, t_eval=[0.3, 1.0], args=(k,), **options).y


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A sparse Jacobian is looked for from three equations on; whether each that was computed is one."""
    monkeypatch.setattr(implicit_steps, "MANY", 3)
    found: list[bool] = []
    before = Slopes.__call__

    def call(self: Slopes, *args: Any) -> Any:
        matrix = before(self, *args)
        found.append(scipy.sparse.issparse(matrix))
        return matrix

    monkeypatch.setattr(Slopes, "__call__", call)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_a_thousand_unknowns(method: str) -> None:
    n, k = 1000, leaf(0.5, 1.0)
    found = grad(solved(n, method, k)[:, -1].sum(), k)[0]
    pattern = scipy.sparse.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=(-1, 0, 1))

    def total(k: Any) -> float:
        run = scipy.integrate.solve_ivp(
            diffusion, (0, 1.0), start(n), "BDF", args=(k,), rtol=1e-10, atol=1e-12, jac_sparsity=pattern
        )
        return float(run.y[:, -1].sum())

    for i, step in enumerate(np.eye(2) * 1e-4):
        sides = [total(k.detach().numpy() + s) for s in (step, -step)]
        np.testing.assert_allclose(found[i].item(), (sides[0] - sides[1]) / 2e-4, rtol=2e-5)


@pytest.mark.parametrize("method", METHODS)
def test_every_order_and_mode_with_a_sparse_jacobian(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    k = pullback.tensor([0.5, 1.2], dtype=F64)
    tangent, batch = pullback.tensor([1.0, -0.5], dtype=F64), pullback.stack([k, 2 * k])

    def of(k: Any) -> Any:
        return solved(6, method, k, rtol=1e-3)[::5]

    found = []
    for many in (3, 10**9):
        monkeypatch.setattr(implicit_steps, "MANY", many)
        found.append(
            [
                jvp(of, (k,), (tangent,))[1],
                jacrev(of)(k) @ tangent,
                hessian(lambda k: of(k).sum())(k),
                jacrev(jacrev(lambda k: of(k).sum()))(k),
                vmap(of)(batch),
                vmap(jacrev(lambda k: of(k).sum()))(batch),
            ]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found[0][0].numpy(), found[0][1].numpy(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found[0][2].numpy(), found[0][3].numpy(), rtol=1e-6, atol=1e-9)


def test_gradcheck_with_a_sparse_jacobian(soon: list[bool]) -> None:
    assert gradcheck(lambda k: solved(10, "Radau", k)[::4], leaf(0.5, 1.2), atol=1e-4, rtol=1e-3)
    assert any(soon)


@pytest.mark.parametrize("method", METHODS)
def test_a_sparse_and_a_dense_jacobian_give_the_same(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for many in (3, 10**9):
        monkeypatch.setattr(implicit_steps, "MANY", many)
        k = leaf(0.5, 1.2)
        y0 = pullback.tensor(start(15), requires_grad=True)
        sol = solve_ivp(diffusion, (0, 1.0), y0, method, args=(k,), rtol=1e-6, atol=1e-8)
        found.append([sol.y, *grad((sol.y[:, -1] ** 2).sum(), [k, y0])])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_dense_jacobian_stays_one(method: str, soon: list[bool]) -> None:
    k = leaf(0.1, 2.0)
    grad(solved(6, method, k, mixed).sum(), k)
    assert not any(soon)


@pytest.mark.parametrize("given", ["jac", "jac_sparsity"])
def test_a_jacobian_of_the_user_s_is_for_scipy_and_the_adjoint_finds_its_own(given: str, soon: list[bool]) -> None:
    n, k = 20, leaf(0.5, 1.2)  # more than are solved as one equation
    expected = grad(solved(n, "BDF", k).sum(), k)[0]
    soon.clear()
    pattern = np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)

    def jac(t: Any, u: Any, k: Any) -> Any:
        scale = k[0] * (n + 1) ** 2 / 100
        return pullback.eye(n, dtype=F64) * (k[1] - 2 * k[1] * u - 2 * scale) + scale * (pattern - np.eye(n))

    options = {"jac": jac} if given == "jac" else {"jac_sparsity": pattern}
    found = grad(solved(n, "BDF", k, **options).sum(), k)[0]
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4)
    assert any(soon)


def test_odeint_with_a_sparse_jacobian(soon: list[bool]) -> None:
    k = leaf(0.5, 1.2)
    y = odeint(diffusion, start(12), [0.0, 0.5, 1.0], args=(k,), tfirst=True, rtol=1e-8, atol=1e-10)
    expected = grad(solved(12, "Radau", k)[:, -1].sum(), k)[0]
    np.testing.assert_allclose(grad(y[-1].sum(), k)[0].numpy(), expected.numpy(), rtol=1e-4)
    assert any(soon)


def test_a_right_hand_side_that_reads_values_has_a_dense_jacobian(soon: list[bool]) -> None:
    def f(t: Any, u: Any, k: Any) -> Any:
        return diffusion(t, u, k) if u[0].detach().item() > -1e9 else u

    k = leaf(0.5, 1.2)
    found = grad(solved(12, "BDF", k, f).sum(), k)[0]
    np.testing.assert_allclose(found.numpy(), grad(solved(12, "BDF", k).sum(), k)[0].numpy(), rtol=1e-6)


def test_complex_states_have_a_dense_jacobian(soon: list[bool]) -> None:
    k = leaf(0.5, 1.2)
    y = solve_ivp(lambda t, y, k: 1j * k[0] * y - k[1] * y, (0, 1.0), [1.0 + 0j, 1j, 2.0], "BDF", args=(k,)).y
    grad(y[:, -1].abs().sum(), k)
    assert not any(soon)
