"""`solve_bvp` and `odeint`: values are SciPy's; derivatives of every order, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import pullback
from pullback import func
from pullback.autograd import gradcheck, gradgradcheck
from pullback.scipy import integrate
from pullback.scipy.integrate import odeint, solve_bvp


def t64(value: Any, grad: bool = True) -> Any:
    return pullback.tensor(value, dtype=pullback.float64, requires_grad=grad)


# solve_bvp ------------------------------------------------------------------------------------------------------------


def hanging(k: Any, end: Any, b: Any, look: Callable[[Any], Any], n: int = 5) -> Any:
    """A pendulum's angle between two times."""
    mesh = t64(np.linspace(0, 1, n), False) * b
    return look(
        solve_bvp(
            lambda x, y: [y[1], -k * np.sin(y[0]) + 0.1 * x],
            lambda ya, yb: [ya[0], yb[0] - end],
            mesh,
            np.ones((2, n)),
            tol=1e-7,
        )
    )


LOOKS: dict[str, Callable[[Any], Any]] = {
    "sol": lambda s: s.sol(t64([0.3, 0.7], False)),
    "slope": lambda s: s.sol(0.4, 1),
    "ends": lambda s: s.y[:, -1] * s.x[-1],
    "yp": lambda s: s.yp[:, 0],
}


def test_values_of_solve_bvp_are_scipys() -> None:
    ours = hanging(t64(1.3), t64(1.0), t64(1.5), lambda s: s)
    theirs = scipy.integrate.solve_bvp(
        lambda x, y: np.array([y[1], -1.3 * np.sin(y[0]) + 0.1 * x]),
        lambda ya, yb: np.array([ya[0], yb[0] - 1.0]),
        np.linspace(0, 1, 5) * 1.5,
        np.ones((2, 5)),
        tol=1e-7,
    )
    assert isinstance(ours, type(theirs))
    assert (ours.p, ours.niter) == (None, theirs.niter)
    for name in ("x", "y", "yp"):
        np.testing.assert_allclose(ours[name].detach().numpy(), theirs[name], rtol=1e-13, atol=1e-13)
    at = np.array([[0.1, 0.9], [1.5, 0.0]])
    for nu in (0, 1, 2, 3):
        np.testing.assert_allclose(ours.sol(at, nu).detach().numpy(), theirs.sol(at, nu), rtol=1e-6, atol=1e-8)
    assert (tuple(ours.sol(0.3).shape), ours.gradient_error) == ((2,), theirs.rms_residuals.max())


@pytest.mark.parametrize("look", LOOKS)
def test_derivatives_of_solve_bvp(look: str) -> None:
    # The collocation solution is as exact as tol, and the mesh of a neighbouring problem differs: hence rtol.
    gradcheck(lambda *given: hanging(*given, LOOKS[look]), (t64(1.3), t64(1.0), t64(1.5)), rtol=1e-4, atol=1e-6)
    if look == "ends":
        gradgradcheck(lambda k, end: hanging(k, end, 1.5, LOOKS[look]), (t64(1.3), t64(1.0)), rtol=1e-4, atol=1e-5)


def test_a_parameter_that_is_found() -> None:
    c = t64(1.5)
    x, y = np.linspace(0, 1, 5), np.array([[0.0, 1, 0, -1, 0], [0.0] * 5])
    sol = solve_bvp(
        lambda x, y, p: [y[1], -c * p[0] ** 2 * y[0]], lambda a, b, p: [a[0], b[0], a[1] - p[0]], x, y, p=[5], tol=1e-6
    )
    (g,) = pullback.autograd.grad(sol.p[0], c, create_graph=True)  # p = 2 pi / sqrt(c)
    (h,) = pullback.autograd.grad(g, c)
    expected = [2 * np.pi / np.sqrt(1.5), -np.pi * 1.5**-1.5, 1.5 * np.pi * 1.5**-2.5]
    np.testing.assert_allclose([sol.p.item(), g.item(), h.item()], expected, rtol=1e-5)


def test_tensors_of_a_transform_that_the_functions_read() -> None:
    x = np.linspace(0, 1, 9)

    def middle(k: Any) -> Any:
        m = k * 2
        sol = solve_bvp(
            lambda x, y: [y[1], -(m - k) * y[0]], lambda a, b: [a[0], b[0] - k], x, np.ones((2, 9)), tol=1e-8
        )
        return sol.sol(0.5)[0]

    def exact(k: Any) -> Any:  # k sin(sqrt(k) / 2) / sin(sqrt(k))
        return k * np.sin(k**0.5 / 2) / np.sin(k**0.5)

    k, one = t64(1.2, False), t64(1.0, False)
    for transform in (
        lambda f: func.jvp(f, (k,), (one,))[1],
        lambda f: func.grad(f)(k),
        lambda f: func.hessian(f)(k),
        lambda f: func.vmap(func.grad(f))(pullback.stack([k, k])),
    ):
        np.testing.assert_allclose(transform(middle).numpy(), transform(exact).numpy(), rtol=1e-5)


def test_a_singular_term_and_forward_mode() -> None:
    """Emden's equation: y'' + 2 y' / x + k y^5 = 0, y'(0) = 0, y(1) = sqrt(3/4)."""
    k = t64(1.0)
    s = np.array([[0.0, 0.0], [0.0, -2.0]])
    x = np.linspace(0, 1, 7)
    sol = solve_bvp(
        lambda x, y: [y[1], -k * y[0] ** 5], lambda a, b: [a[1], b[0] - 0.75**0.5], x, np.ones((2, 7)), S=s, tol=1e-6
    )
    np.testing.assert_allclose(sol.sol(0.5)[0].item(), (1 + 0.25 / 3) ** -0.5, rtol=1e-5)
    (g,) = pullback.autograd.grad(sol.sol(0.5)[0], k)
    up, down = (
        scipy.integrate.solve_bvp(
            lambda x, y, v=v: np.array([y[1], -v * y[0] ** 5]), lambda a, b: np.array([a[1], b[0] - 0.75**0.5]),
            x, np.ones((2, 7)), S=s, tol=1e-9, max_nodes=10**5,
        ).sol(0.5)[0]
        for v in (1 + 1e-3, 1 - 1e-3)
    )  # fmt: skip
    np.testing.assert_allclose(g.item(), (up - down) / 2e-3, rtol=1e-4)

    def at_end(b: Any) -> Any:
        return hanging(1.3, 1.0, b, lambda s: s.y[1, 0], n=60)

    b = t64(1.5, False)
    tangent = func.jvp(at_end, (b,), (t64(1.0, False),))[1]
    np.testing.assert_allclose(tangent.item(), func.grad(at_end)(b).item(), rtol=1e-9)
    np.testing.assert_allclose(func.hessian(at_end)(b).item(), func.grad(func.grad(at_end))(b).item(), rtol=1e-8)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"tol": t64(1e-3)}, TypeError, "tol is a setting"),
        ({"S": t64(np.eye(2))}, TypeError, "S is a setting"),
        ({"x": [[0.0, 1.0]]}, ValueError, "`x` must be 1 dimensional"),
        ({"x": [0.0, 1.0, 0.5]}, ValueError, "`x` must be strictly increasing"),
        ({"y": np.ones((2, 4))}, ValueError, "expected to have 3 columns"),
        ({"bc": lambda a, b: [a[0]]}, ValueError, "`bc` return is expected to have shape"),
        ({"fun": lambda x, y: y[:1]}, ValueError, "`fun` return is expected to have shape"),
        ({"fun": None}, TypeError, "a function"),
        ({"max_nodes": 3, "tol": 1e-9}, RuntimeError, "maximum number of mesh nodes is exceeded"),
        ({"bc": lambda a, b: [a[0], a[0]]}, RuntimeError, "singular Jacobian"),
    ],
    ids=range(10),
)
def test_bad_input_to_solve_bvp(change: dict[str, Any], error: type[Exception], text: str) -> None:
    given: dict[str, Any] = {
        "fun": lambda x, y: [y[1], -(y[0] ** 3)],
        "bc": lambda a, b: [a[0], b[0] - 1],
        "x": [0.0, 0.5, 1.0],
        "y": np.ones((2, 3)),
    }
    with pytest.raises(error, match=text):
        solve_bvp(**(given | change))


def test_a_boundary_value_problem_without_a_solution() -> None:
    k = t64(1.0)

    def lost(on_failure: str) -> Any:
        return solve_bvp(
            lambda x, y: [y[1], -k * y[0]], lambda a, b: [a[0], a[0]], [0, 0.5, 1], np.ones((2, 3)),
            on_failure=on_failure,
        )  # fmt: skip

    found = lost("nan")
    assert not found.success
    assert np.isnan(found.y.detach().numpy()).all()
    with pytest.raises(RuntimeError, match=r"solve_bvp did not converge, .*singular Jacobian"):
        lost("raise")
    with pytest.raises(ValueError, match="on_failure"):
        lost("ignore")


# odeint ---------------------------------------------------------------------------------------------------------------

TIMES = np.array([0.0, 0.3, 0.8])


def pendulum(y: Any, t: Any, k: Any) -> Any:
    return [y[1], -k * np.sin(y[0]) + 0.2 * np.sin(t)]


def test_odeint() -> None:
    y0, k, t = t64([1.0, 0.5]), t64(1.3), t64(TIMES)
    ours = odeint(pendulum, y0, t, args=(k,))
    theirs = scipy.integrate.odeint(lambda y, t: np.array(pendulum(y, t, 1.3)), [1.0, 0.5], TIMES)
    np.testing.assert_array_equal(ours.detach().numpy(), theirs)
    swapped = odeint(lambda t, y, k: pendulum(y, t, k), y0, t, args=(k,), tfirst=True)
    np.testing.assert_array_equal(swapped.detach().numpy(), theirs)

    def exact(y0: Any, k: Any, t: Any) -> Any:
        return odeint(pendulum, y0, t, args=(k,), rtol=1e-10, atol=1e-10)

    gradcheck(exact, (y0, k, t), rtol=1e-4, check_forward_ad=True, check_batched_grad=True)
    gradgradcheck(lambda k: exact(y0.detach(), k, t.detach())[-1], (k,), rtol=1e-4)
    ks = t64([0.5, 1.3], False)
    first = func.vmap(func.grad(lambda k: exact(y0.detach(), k, TIMES)[-1, 0]))(ks)
    each = [func.grad(lambda k: exact(y0.detach(), k, TIMES)[-1, 0])(k).item() for k in ks]
    np.testing.assert_allclose(first.numpy(), each, rtol=1e-9)


def layer(k: Any, n: int = 5, **settings: Any) -> Any:
    """A boundary layer, the steeper the larger `k` is: SciPy refines its mesh for it."""
    return solve_bvp(
        lambda x, y: [y[1], k**2 * (y[0] - np.sin(x))],
        lambda a, b: [a[0] - 1, b[0]],
        np.linspace(0, 1, n),
        np.ones((2, n)),
        tol=1e-5,
        **settings,
    )


def test_samples_that_need_different_meshes_are_solved_on_the_points_of_all() -> None:
    ks = t64([0.5, 20.0, 60.0], False)
    sizes = [layer(k).x.shape[0] for k in ks]
    assert len(set(sizes)) == 3
    assert func.vmap(lambda k: layer(k).y)(ks).shape[-1] >= max(sizes)
    at = np.linspace(0, 1, 7)
    values = func.vmap(lambda k: layer(k).sol(at)[0])(ks)
    slopes = func.vmap(func.grad(lambda k: layer(k).sol(0.2)[0]))(ks)
    for i, k in enumerate(ks):
        np.testing.assert_allclose(values[i].numpy(), layer(k).sol(at)[0].numpy(), atol=1e-5)
        np.testing.assert_allclose(slopes[i].item(), func.grad(lambda k: layer(k).sol(0.2)[0])(k).item(), atol=1e-5)
    nested = func.vmap(func.vmap(lambda k: layer(k).sol(0.2)[0]))(pullback.stack([ks, ks / 2]))
    np.testing.assert_allclose(nested[0].numpy(), func.vmap(lambda k: layer(k).sol(0.2)[0])(ks).numpy(), atol=1e-5)


def test_a_sample_that_fails_is_nan_alone() -> None:
    ks = t64([0.5, 60.0, 1.0], False)
    with pytest.raises(RuntimeError, match="did not converge"):
        func.vmap(lambda k: layer(k, max_nodes=40).sol(0.2)[0])(ks)

    def value(k: Any) -> Any:
        return layer(k, max_nodes=40, on_failure="nan").sol(0.2)[0]

    found, slopes = func.vmap(value)(ks), func.vmap(func.grad(value))(ks)
    assert np.isnan([found[1].item(), slopes[1].item()]).all()
    for i in (0, 2):
        np.testing.assert_allclose(found[i].item(), value(ks[i]).item(), atol=1e-5)
        np.testing.assert_allclose(slopes[i].item(), func.grad(value)(ks[i]).item(), atol=1e-5)


def test_odeint_with_captured_tensors_a_jacobian_and_full_output() -> None:
    k = t64(0.5)
    rows, info = odeint(lambda y, t: -k * y, 2.0, [0.0, 2.0], Dfun=lambda y, t: [[-k]], full_output=1)
    assert (tuple(rows.shape), info["message"]) == ((2, 1), "Integration successful.")
    assert "nst" in info
    rows[-1, 0].backward()
    np.testing.assert_allclose(k.grad.item(), -4 * np.exp(-1.0), rtol=1e-6)


def test_odeint_refuses_what_scipy_refuses() -> None:
    with pytest.raises(ValueError, match="must be monotonically increasing"):
        odeint(lambda y, t: y, [1.0], [0.0, 1.0, 0.5])
    with pytest.raises(TypeError, match="rtol is a setting"):
        odeint(lambda y, t: y, [1.0], [0.0, 1.0], rtol=t64(1e-3))
    with pytest.raises(RuntimeError, match="Excess work done"):
        odeint(lambda y, t: y * y, t64([1.0]), [0.0, 2.0])
    start = t64([1.0])
    lost = odeint(lambda y, t: y * y, start, [0.0, 2.0], on_failure="nan")
    lost.sum().backward()
    assert np.isnan([*lost.detach().numpy().ravel(), start.grad.item()]).all()
    with pytest.raises(ValueError, match="on_failure"):
        odeint(lambda y, t: y, [1.0], [0.0, 1.0], on_failure="ignore")


# The package ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"), [("ode", "keeps its state"), ("qmc_quad", "drawn anew"), ("RK45", "one by one")]
)
def test_what_has_no_derivative_is_refused(name: str, reason: str) -> None:
    with pytest.raises(AttributeError, match=reason):
        getattr(integrate, name)


def test_a_function_that_is_not_here_shows_the_node_to_write() -> None:
    with pytest.raises(AttributeError, match=r"class Nquad\(pullback.autograd.Function\)"):
        _ = integrate.nquad
    assert integrate.IntegrationWarning is scipy.integrate.IntegrationWarning
