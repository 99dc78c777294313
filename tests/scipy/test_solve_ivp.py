"""`pullback.scipy.integrate.solve_ivp`: values are SciPy's; derivatives of every order, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import pullback
from pullback import func
from pullback.autograd import gradcheck, gradgradcheck
from pullback.scipy.integrate import ivp_runs, solve_ivp

EXPLICIT = ["RK23", "RK45", "DOP853"]
IMPLICIT = ["Radau", "BDF", "LSODA"]
TIMES = np.array([0.0, 0.3, 1.1, 2.0])
CHECKS = {"check_forward_ad": True, "check_batched_grad": True}

# Large tolerances and a largest step: the sizes of the steps are then constant, and differences see no other change.
FIXED = {"rtol": 1e3, "atol": 1e3, "max_step": 0.25, "first_step": 0.25}
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def t64(value: Any, grad: bool = True) -> Any:
    return pullback.tensor(value, dtype=pullback.float64, requires_grad=grad)


def pendulum(t: Any, y: Any, k: Any, w: Any) -> Any:
    return [y[1], -k * np.sin(y[0]) - 0.1 * y[1] + w[0] * np.sin(w[1] * t)]


def arguments() -> Any:
    return t64([1.0, 0.5]), t64(1.3), t64([0.4, 2.0])


def plain(method: str, t_eval: Any = TIMES, **options: Any) -> Any:
    return scipy.integrate.solve_ivp(
        lambda t, y: np.array([float(v) for v in pendulum(t, y, 1.3, [0.4, 2.0])]),
        (0.0, 2.0),
        [1.0, 0.5],
        method,
        t_eval=t_eval,
        **options,
    )


@pytest.mark.parametrize("method", EXPLICIT + IMPLICIT)
@pytest.mark.parametrize("t_eval", [None, TIMES], ids=["steps", "t_eval"])
def test_values_are_scipys(method: str, t_eval: Any) -> None:
    y0, k, w = arguments()
    ours = solve_ivp(pendulum, (0.0, 2.0), y0, method, t_eval=t_eval, args=(k, w), rtol=1e-6)
    theirs = plain(method, t_eval, rtol=1e-6)
    assert isinstance(ours, type(theirs))
    assert ours.t.shape == theirs.t.shape
    # The Jacobian is ours instead of differences, so implicit methods differ by rounding.
    np.testing.assert_allclose(ours.y.detach().numpy(), theirs.y, rtol=1e-12 if method in EXPLICIT else 1e-5)
    assert (ours.status, ours.success, ours.message) == (theirs.status, theirs.success, theirs.message)
    assert method in IMPLICIT or ours.nfev == theirs.nfev
    assert 0 < ours.gradient_error < 1e-2


@pytest.mark.parametrize("method", EXPLICIT)
@pytest.mark.parametrize("t_eval", [None, TIMES], ids=["steps", "t_eval"])
def test_explicit_methods_have_every_derivative(method: str, t_eval: Any) -> None:
    def states(y0: Any, k: Any, w: Any) -> Any:
        return solve_ivp(pendulum, (0.0, 2.0), y0, method, t_eval=t_eval, args=(k, w), **FIXED).y

    gradcheck(states, arguments(), **CHECKS)
    if method != "DOP853" or t_eval is not None:
        gradgradcheck(states, arguments())


@pytest.mark.parametrize("method", EXPLICIT)
def test_the_ends_of_the_span_and_the_times_asked_for(method: str) -> None:
    def states(t0: Any, t1: Any, s: Any) -> Any:
        sol = solve_ivp(pendulum, (t0, t1), [1.0, 0.5], method, t_eval=s, args=(1.3, [0.4, 2.0]), **FIXED)
        return sol.y

    def ends(t0: Any, t1: Any) -> Any:
        sol = solve_ivp(pendulum, (t0, t1), [1.0, 0.5], method, args=(1.3, [0.4, 2.0]), **TIGHT)
        return sol.y[:, -1], sol.t[0] * sol.t[-1]

    t0, t1 = t64(0.05), t64(0.85)
    if method != "RK23":  # at tight tolerances it takes 1e5 steps
        gradcheck(ends, (t0, t1), rtol=1e-4)
        (slope,) = pullback.autograd.grad(ends(t0, t1)[0][0], t1)
        y = ends(t0, t1)[0]
        np.testing.assert_allclose(slope.item(), y[1].item(), rtol=1e-8)
    gradcheck(lambda s: states(0.0, 1.0, s), (t64([0.1, 0.6, 0.9]),), **CHECKS)


@pytest.mark.parametrize("method", IMPLICIT)
def test_implicit_methods(method: str) -> None:
    def last(y0: Any, k: Any, w: Any) -> Any:
        return solve_ivp(pendulum, (0.0, 1.0), y0, method, t_eval=[0.4, 1.0], args=(k, w), rtol=1e-7, atol=1e-9).y

    def reference(y0: Any, k: Any, w: Any) -> Any:
        return solve_ivp(pendulum, (0.0, 1.0), y0, "DOP853", t_eval=[0.4, 1.0], args=(k, w), **TIGHT).y

    found, expected = [], []
    for solve, into in ((last, found), (reference, expected)):
        given = arguments()
        grads = pullback.autograd.grad(solve(*given).sum(), given, create_graph=True)
        second = pullback.autograd.grad(sum(g.sum() for g in grads), given)
        ones = tuple(np.ones_like(x.detach()) for x in given)
        pushed = func.jvp(solve, tuple(x.detach() for x in given), ones)[1]
        into += [g.detach().numpy() for g in (*grads, *second, pushed)]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_stiff_system() -> None:
    """Robertson's reactions: rates of 4e-2 and 3e7."""

    def reactions(t: Any, y: Any, k: Any) -> Any:
        a, b = k[0] * y[0], k[2] * y[1] * y[2]
        c = k[1] * y[1] ** 2
        return [b - a, a - b - c, c]

    def last(k: Any, method: str = "BDF") -> Any:
        return solve_ivp(reactions, (0.0, 40.0), [1.0, 0.0, 0.0], method, args=(k,), rtol=1e-7, atol=1e-10).y[:, -1]

    rates = np.array([0.04, 3e7, 1e4])
    k = t64(rates)
    (g,) = pullback.autograd.grad(last(k)[2], k)
    step = 1e-3 * rates[0]
    up, down = (last(t64(rates + np.array([s, 0, 0]), False), "Radau")[2].item() for s in (step, -step))
    np.testing.assert_allclose(g[0].item(), (up - down) / (2 * step), rtol=1e-4)


def test_modes_and_their_nesting() -> None:
    y0, k, w = (x.detach() for x in arguments())

    def loss(k: Any, w: Any = w, y: Any = y0) -> Any:
        return (solve_ivp(pendulum, (0.0, 2.0), y, "RK45", t_eval=TIMES, args=(k, w), **FIXED).y ** 2).sum()

    first = func.grad(loss)(k)
    tangent = func.jvp(loss, (k,), (np.ones_like(k),))[1]
    np.testing.assert_allclose(first.item(), tangent.item(), rtol=1e-10)
    second = [
        func.hessian(loss)(k),
        func.grad(func.grad(loss))(k),
        func.jvp(func.grad(loss), (k,), (np.ones_like(k),))[1],
        func.grad(lambda k: func.jvp(loss, (k,), (np.ones_like(k),))[1])(k),
        func.jvp(lambda k: func.jvp(loss, (k,), (np.ones_like(k),))[1], (k,), (np.ones_like(k),))[1],
    ]
    np.testing.assert_allclose([s.item() for s in second], second[0].item(), rtol=1e-9)
    ks = t64([0.7, 1.3, 2.0], False)
    for f in (loss, func.grad(loss), func.hessian(loss)):
        np.testing.assert_allclose(func.vmap(f)(ks).numpy(), [f(x).item() for x in ks], rtol=1e-9)
    jacobian = func.jacrev(lambda y: solve_ivp(pendulum, (0.0, 2.0), y, t_eval=TIMES, args=(k, w), **FIXED).y)(y0)
    forward = func.jacfwd(lambda y: solve_ivp(pendulum, (0.0, 2.0), y, t_eval=TIMES, args=(k, w), **FIXED).y)(y0)
    np.testing.assert_allclose(jacobian.numpy(), forward.numpy(), rtol=1e-9, atol=1e-12)


def test_a_sample_has_steps_of_its_own_under_vmap() -> None:
    def decay(t: Any, y: Any, k: Any) -> Any:
        return -k * y

    def last(k: Any) -> Any:
        return solve_ivp(lambda t, y, k: -k * y, (0.0, 1.0), [1.0], t_eval=[1.0], args=(k,), rtol=1e-9, atol=1e-9).y[
            0, 0
        ]

    ks = t64([0.1, 5.0, 40.0], False)
    np.testing.assert_allclose(func.vmap(func.grad(last))(ks).numpy(), -np.exp(-ks.numpy()), atol=1e-7)
    with pytest.raises(RuntimeError, match="number of times differs between the samples"):
        func.vmap(lambda k: solve_ivp(lambda t, y, k: -k * y, (0.0, 1.0), [1.0], args=(k,)).y)(ks)


def test_captured_tensors_each_have_their_own_gradient() -> None:
    a = t64(0.7)
    b = a * 3  # read as well, and computed from a

    def fun(t: Any, y: Any) -> Any:
        return -a * y + b * np.cos(t)

    def explicit(t: Any, y: Any, a: Any) -> Any:
        return -a * y + 3 * a * np.cos(t)

    settings: Any = {"t_eval": [0.5, 1.0], **FIXED}
    found = pullback.autograd.grad(solve_ivp(fun, (0, 1), [1.0], **settings).y.sum(), a, create_graph=True)[0]
    c = t64(0.7)
    expected = pullback.autograd.grad(
        solve_ivp(explicit, (0, 1), [1.0], args=(c,), **settings).y.sum(), c, create_graph=True
    )[0]
    np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-12)
    again = [pullback.autograd.grad(g, x)[0].item() for g, x in ((found, a), (expected, c))]
    np.testing.assert_allclose(again[0], again[1], rtol=1e-12)


def test_an_initial_state_computed_from_a_captured_tensor() -> None:
    a = t64(0.7)
    sol = solve_ivp(lambda t, y: -a * y, (0, 1), [a * 2], t_eval=[1.0], rtol=1e-10, atol=1e-12)
    (g,) = pullback.autograd.grad(sol.y[0, 0], a, create_graph=True)
    np.testing.assert_allclose(g.item(), 2 * np.exp(-0.7) * (1 - 0.7), rtol=1e-8)
    (h,) = pullback.autograd.grad(g, a)
    np.testing.assert_allclose(h.item(), 2 * np.exp(-0.7) * (0.7 - 2), rtol=1e-8)


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_captured_tensors_of_a_transform(method: str) -> None:
    settings: Any = {"t_eval": [0.5, 1.0], "method": method, "rtol": 1e-6, "atol": 1e-8}

    def reads(k: Any) -> Any:
        m = k * 2
        return solve_ivp(lambda t, y: -k * y + m * np.cos(t), (0, 1), [1.0], **settings).y.sum()

    def takes(k: Any) -> Any:
        return solve_ivp(lambda t, y, k, m: -k * y + m * np.cos(t), (0, 1), [1.0], args=(k, k * 2), **settings).y.sum()

    k, one = t64(0.7, False), t64(1.0, False)
    ks = pullback.stack([k, 2 * k])
    for transformed in (
        lambda f: func.jvp(f, (k,), (one,)),
        lambda f: [func.grad(f)(k), func.hessian(f)(k), func.grad(func.grad(f))(k)],
        lambda f: [func.vmap(f)(ks), func.vmap(func.grad(f))(ks)],
    ):
        for found, expected in zip(transformed(reads), transformed(takes), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10)


# Dense output and events ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", EXPLICIT + IMPLICIT)
def test_dense_output(method: str) -> None:
    y0, k, w = arguments()
    ours = solve_ivp(pendulum, (0.0, 2.0), y0, method, dense_output=True, args=(k, w), rtol=1e-7, atol=1e-9)
    theirs = plain(method, None, dense_output=True, rtol=1e-7, atol=1e-9)
    s = np.array([1.7, 0.0, 0.35, 2.0, 0.36])
    np.testing.assert_allclose(ours.sol(s).detach().numpy(), theirs.sol(s), rtol=1e-5, atol=1e-6)
    assert ours.sol(0.4).shape == (2,)
    at = t64(0.4)
    y = ours.sol(at)
    (slope,) = pullback.autograd.grad(y[0], at)
    np.testing.assert_allclose(slope.item(), y[1].item(), rtol=1e-4)
    known = solve_ivp(pendulum, (0.0, 2.0), y0, "DOP853", t_eval=[0.35, 0.36, 1.7], args=(k, w), **TIGHT)
    expected = pullback.autograd.grad(known.y.sum(), [y0, k, w])
    found = pullback.autograd.grad(ours.sol([0.36, 1.7, 0.35]).sum(), [y0, k, w])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", EXPLICIT)
def test_dense_output_has_every_derivative(method: str) -> None:
    y0, k, w = (x.detach() for x in arguments())

    def dense(y0: Any, k: Any, s: Any) -> Any:
        return solve_ivp(pendulum, (0.0, 1.0), y0, method, dense_output=True, args=(k, w), **FIXED).sol(s)

    gradcheck(dense, (y0, k, t64([0.1, 0.8])), **CHECKS)
    gradgradcheck(dense, (y0, k, t64([0.1, 0.8])))


def fall(t: Any, y: Any, g: Any, drag: Any) -> Any:
    return [y[1], -g - drag * y[1]]


def ground(t: Any, y: Any, g: Any, drag: Any) -> Any:
    return y[0]


def top(t: Any, y: Any, g: Any, drag: Any) -> Any:
    return y[1]


ground.terminal, ground.direction = True, -1  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_events(method: str) -> None:
    def events(height: Any, speed: Any, g: Any) -> Any:
        sol = solve_ivp(fall, (0, 100), [height, speed], method, events=[ground, top], args=(g, 0.0), max_step=0.5)
        return sol.t_events[0], sol.t_events[1], sol.y_events[0][0, 1], sol.y_events[1][0, 0], sol.t[-1], sol.y[1, -1]

    h, v, g = 2.0, 3.0, 9.81
    time = (v + np.sqrt(v * v + 2 * g * h)) / g
    found = [x.detach().numpy().item() for x in events(t64(h), t64(v), t64(g))]
    expected = [time, v / g, v - g * time, h + v * v / (2 * g), time, v - g * time]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    gradcheck(events, (t64(h), t64(v), t64(g)), rtol=1e-5, check_forward_ad=True)  # exact: the solution is a parabola
    if method == "RK45":
        gradgradcheck(events, (t64(h), t64(v), t64(g)), rtol=1e-5)


def test_a_terminal_event_ends_t_eval() -> None:
    t_eval = np.linspace(0, 2, 9)
    ours = solve_ivp(fall, (0, 2), [t64(2.0), 3.0], events=ground, t_eval=t_eval, args=(9.81, 0.0))
    theirs = scipy.integrate.solve_ivp(fall, (0, 2), [2.0, 3.0], events=ground, t_eval=t_eval, args=(9.81, 0.0))
    assert (ours.status, ours.t.shape) == (1, theirs.t.shape)
    np.testing.assert_array_equal(ours.y.detach().numpy(), theirs.y)
    np.testing.assert_array_equal(ours.t_events[0].detach().numpy(), theirs.t_events[0])


def test_a_tangential_event_is_named() -> None:
    def touch(t: Any, y: Any) -> Any:
        return (t - 1) ** 3 * y[0]

    sol = solve_ivp(lambda t, y: -y, (0, 1), t64([0.1]), events=touch, **FIXED)
    with pytest.raises(RuntimeError, match=r"event 0 \(.*touch\) is tangential at t = 1"):
        sol.t_events[0].sum().backward()


# Input ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y0", [[1, 2], [True, False], np.float32([1, 2]), [1 + 1j, 2.0]], ids=str)
def test_the_state_is_converted_as_scipy_does(y0: Any) -> None:
    ours = solve_ivp(lambda t, y: -y, (0, 1), pullback.tensor(y0))
    theirs = scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), np.asarray(y0))
    assert ours.y.numpy().dtype == theirs.y.dtype
    np.testing.assert_array_equal(ours.y.numpy(), theirs.y)


def test_complex_states() -> None:
    def states(y0: Any, a: Any) -> Any:
        return solve_ivp(lambda t, y, a: a * y + 0.1 * y * y, (0, 1), y0, t_eval=[0.4, 1.0], args=(a,), **FIXED).y

    y0 = pullback.tensor([1 + 0.5j, -0.3j], dtype=pullback.complex128, requires_grad=True)
    a = pullback.tensor(-0.4 + 1.1j, dtype=pullback.complex128, requires_grad=True)
    gradcheck(states, (y0, a))
    gradgradcheck(states, (y0, a))
    gradcheck(lambda w: states(y0.detach(), w * 1j), (t64(0.6),))


def test_vectorized_and_a_user_jacobian() -> None:
    matrix = np.array([[-2.0, 1.0], [0.5, -1.0]])
    m = t64(matrix)
    for method in ("RK45", "Radau"):
        found = solve_ivp(lambda t, y, m: m @ y, (0, 1), [1.0, 2.0], method, args=(m,), vectorized=True, t_eval=[1.0])
        theirs = scipy.integrate.solve_ivp(lambda t, y: matrix @ y, (0, 1), [1.0, 2.0], method, t_eval=[1.0])
        np.testing.assert_allclose(found.y.detach().numpy(), theirs.y, rtol=1e-7)
    for jac in (matrix, lambda t, y, m: m):
        ours = solve_ivp(lambda t, y, m: m @ y, (0, 1), [1.0, 2.0], "BDF", args=(m,), jac=jac)
        theirs = scipy.integrate.solve_ivp(lambda t, y: matrix @ y, (0, 1), [1.0, 2.0], "BDF", jac=matrix)
        np.testing.assert_allclose(ours.y.detach().numpy(), theirs.y, rtol=1e-10)
        ours.y[:, -1].sum().backward()
    assert m.grad is not None


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"rtol": t64(1e-3)}, TypeError, "rtol is a setting"),
        ({"max_step": t64(1.0)}, TypeError, "max_step is a setting"),
        ({"method": "Euler"}, ValueError, "`method` must be one of"),
        ({"args": 3}, TypeError, "Supplied 'args' cannot be unpacked"),
        ({"t_eval": [3.0]}, ValueError, "Values in `t_eval` are not within `t_span`"),
        ({"t_eval": [1.0, 0.5]}, ValueError, "Values in `t_eval` are not properly sorted"),
        ({"y0": [[1.0]]}, ValueError, "`y0` must be 1-dimensional"),
        ({"fun": 3}, TypeError, "a function"),
        ({"fun": lambda t, y: None}, TypeError, "must return a value"),
        ({"max_step": -1.0}, ValueError, "`max_step` must be positive"),
        ({"adjoint": "none"}, ValueError, "adjoint"),
        ({"on_failure": "ignore"}, ValueError, "on_failure"),
    ],
    ids=lambda x: str(x)[:20],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], text: str) -> None:
    given = {"fun": lambda t, y: -y, "t_span": (0.0, 1.0), "y0": [1.0]} | change
    with pytest.raises(error, match=text):
        solve_ivp(**given)


def test_a_function_that_raises_raises_the_same() -> None:
    class OwnError(Exception):
        pass

    def fun(t: Any, y: Any) -> Any:
        raise OwnError

    with pytest.raises(OwnError):
        solve_ivp(fun, (0, 1), [1.0])


def test_a_solver_that_fails() -> None:
    y0 = t64([1.0])

    def explodes(t: Any, y: Any) -> Any:
        return y * y

    with pytest.raises(RuntimeError, match="Required step size is less than spacing between numbers"):
        solve_ivp(explodes, (0, 2), y0)
    lost = solve_ivp(explodes, (0, 2), y0, t_eval=[0.5, 2.0], on_failure="nan")
    assert (lost.success, tuple(lost.y.shape)) == (False, (1, 2))
    assert np.isnan(lost.y.detach().numpy()).all()
    lost.y.sum().backward()
    assert np.isnan(y0.grad.numpy()).all()
    with pytest.raises(RuntimeError, match="not finite at the beginning"):
        solve_ivp(lambda t, y: y * np.nan, (0, 1), y0)


def test_backward_in_time_an_empty_span_and_an_empty_state() -> None:
    y0 = t64([1.0, 2.0])
    back = solve_ivp(lambda t, y: -y, (1.0, 0.0), y0, t_eval=[0.75, 0.0], rtol=1e-9, atol=1e-9)
    (g,) = pullback.autograd.grad(back.y[:, -1].sum(), y0)
    np.testing.assert_allclose(g.numpy(), np.e, rtol=1e-7)
    gradcheck(lambda y: solve_ivp(lambda t, y: -y, (1.0, 0.0), y, t_eval=[0.75, 0.0], **FIXED).y, (y0,))
    still = solve_ivp(lambda t, y: -y, (1.0, 1.0), y0)
    (g,) = pullback.autograd.grad(still.y[:, -1].sum(), y0)
    np.testing.assert_allclose(g.numpy(), 1.0)
    assert solve_ivp(lambda t, y: -y, (0.0, 1.0), y0, t_eval=[]).y.shape[-1] == 0


def test_progress(capsys: Any) -> None:
    solve_ivp(lambda t, y: -y, (0, 1), [1.0], progress=True)
    assert "t = 1" in capsys.readouterr().err


# The continuous adjoint -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["RK45", "DOP853", "LSODA"])
@pytest.mark.parametrize("t_eval", [None, TIMES], ids=["steps", "t_eval"])
def test_the_continuous_adjoint(method: str, t_eval: Any) -> None:
    def last(adjoint: str, method: str, *given: Any) -> Any:
        y0, k, w, t1 = given
        sol = solve_ivp(
            pendulum, (0.0, t1), y0, method, t_eval=t_eval, args=(k, w), adjoint=adjoint, rtol=1e-9, atol=1e-10
        )
        return (sol.y[:, -1] ** 2).sum() + sol.t[-1]

    found = []
    for adjoint, by in (("continuous", method), ("discrete", "DOP853")):
        given = (*arguments(), t64(2.0))
        grads = pullback.autograd.grad(last(adjoint, by, *given), given, create_graph=True)
        found.append([g.detach().numpy() for g in grads])
        if method == "DOP853":
            second = pullback.autograd.grad(sum((g**2).sum() for g in grads), given)
            found[-1] += [g.detach().numpy() for g in second]
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)


def test_the_continuous_adjoint_of_what_is_read_and_of_complex_states() -> None:
    found = []
    for adjoint in ("continuous", "discrete"):
        a = t64(0.7)
        b = a * 3
        sol = solve_ivp(
            lambda t, y, a=a, b=b: -a * y + b * 1j, (0, 1), [1.0 + 0j], t_eval=[0.5, 1.0], adjoint=adjoint, **TIGHT
        )
        (g,) = pullback.autograd.grad((sol.y.real + sol.y.imag).sum(), a, create_graph=True)
        (h,) = pullback.autograd.grad(g, a)
        found.append([g.item(), h.item()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7)


@pytest.mark.parametrize("method", EXPLICIT)
@pytest.mark.parametrize("t_eval", [None, TIMES], ids=["steps", "t_eval"])
def test_stages_in_a_batch_and_one_by_one_agree(method: str, t_eval: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    a = t64(0.3)
    b = a * 2

    def fun(t: Any, y: Any, k: Any, w: Any) -> Any:
        return np.stack(pendulum(t, y, k, w)) + a * b * y

    found = []
    for equations, one in ((16, False), (0, False), (16, True)):
        monkeypatch.setattr(ivp_runs, "EQUATIONS", equations)
        given = arguments()

        def rhs(t: Any, y: Any, k: Any, w: Any, one: bool = one) -> Any:
            return fun(t, y, k, w) if not one or y[0].detach().item() < 1e3 else y  # looks at values: not for a batch

        sol = solve_ivp(rhs, (0.0, 2.0), given[0], method, t_eval=t_eval, args=given[1:], rtol=1e-5)
        grads = pullback.autograd.grad((sol.y**2).sum(), [*given, a], retain_graph=True)
        found.append(np.concatenate([g.numpy().reshape(-1) for g in grads]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-11)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-11)


@pytest.mark.parametrize("method", IMPLICIT[:2])
def test_a_system_without_equations_has_no_states_with_an_implicit_method(method: str) -> None:
    y0 = pullback.zeros(0, dtype=pullback.float64, requires_grad=True)
    y = solve_ivp(lambda t, y: -y, (0, 1.0), y0, method, t_eval=[0.5, 1.0]).y
    assert tuple(y.shape) == (0, 2)
