"""SciPy's functions in compiled functions: values and derivatives of eager mode, whole calls, what may be read."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import grad
from pullback.interpreters.traced import TraceError
from pullback.scipy import integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats
from pullback.scipy.sparse.linalg import LinearOperator, cg, eigsh, factorized, splu, spsolve

F64 = pullback.float64
PLACES = ([0, 0, 1, 1, 1, 2, 2], [0, 1, 0, 1, 2, 1, 2])
B = np.array([1.0, 2.0, 3.0])
TIGHT = {"rtol": 1e-8, "atol": 1e-8}
W = pullback.tensor([[1.0, 0.2], [0.1, 1.5]], dtype=F64)


def leaf(*values: float) -> Any:
    return pullback.tensor(values, dtype=F64, requires_grad=True)


def matrix(v: Any) -> Any:
    return sparse.csr_array((v, PLACES), shape=(3, 3))


def symmetric(v: Any) -> Any:
    return matrix(pullback.stack([v[0], v[1], v[1], v[2], v[3], v[3], v[4]]))


def oscillator(t: Any, y: Any, k: Any) -> Any:
    return pullback.stack([y[1], -k[0] * y[0] - k[1] * y[1]])


def ode(method: str) -> Any:
    return lambda k: (
        integrate.solve_ivp(oscillator, (0, 1.0), [1.0, 0.0], method=method, t_eval=[0.5, 1.0], args=(k,), **TIGHT).y
    )


def shooting(a: Any) -> Any:
    def ends(left: Any, right: Any) -> Any:
        return pullback.stack([left[0] - a[1], right[0]])

    def slope(x: Any, y: Any) -> Any:
        return pullback.stack([y[1], -a[0] * y[0]])

    return integrate.solve_bvp(slope, ends, np.linspace(0, 1, 9), np.ones((2, 9)), tol=1e-4).sol(0.5)


def of_root(a: Any) -> Any:
    return optimize.root(lambda x, a: x + np.exp(x) - a, np.zeros(2), args=(a * 1.5,)).x * 3


def of_closure(a: Any) -> Any:
    return optimize.root(lambda x: W @ x + np.exp(x) - a * 2, np.zeros(2)).x


def of_number(a: Any) -> Any:
    return optimize.root_scalar(lambda x, p: x**3 - p, args=(a[0] * a[1],), bracket=[0, 5]).root


def minimum(a: Any) -> Any:
    def f(x: Any, a: Any) -> Any:
        return ((x - a) ** 4 + (x - a) ** 2).sum() + x.prod() / 10

    return optimize.minimize(f, [0.0, 0.0], args=(a,), tol=1e-8).x


def constrained(a: Any) -> Any:
    line = {"type": "eq", "fun": lambda x: x[0] * a[1] + x[1] - 1}
    return optimize.minimize(lambda x: ((x - a) ** 2).sum(), [0.0, 0.0], constraints=line, tol=1e-8).x


def bounded(a: Any) -> Any:
    bounds = optimize.Bounds(a * 1.5, np.inf)
    return optimize.minimize(lambda x: ((x - a) ** 2).sum(), [5.0, 5.0], bounds=bounds, tol=1e-8).x


def squares(a: Any) -> Any:
    def residuals(x: Any) -> Any:
        return pullback.stack([x[0] ** 2 + x[1] - a[0], x[0] - a[1] * x[1], x.prod() - 1])

    return optimize.least_squares(residuals, [1.0, 1.0], xtol=1e-12, ftol=1e-12, gtol=1e-12).x


def fitted(y: Any) -> Any:
    return optimize.curve_fit(lambda t, p, q: p * np.exp(-q * t), np.arange(4.0), y, p0=[1.0, 0.5])[0]


def integral(a: Any) -> Any:
    return integrate.quad(lambda t: pullback.exp(-a[0] * t) * pullback.sin(a[1] * t), 0.0, a[0])[0]


def with_operator(v: Any) -> Any:
    return cg(LinearOperator((3, 3), matvec=lambda x: v * x + x.sum() / 10), B, rtol=1e-12)[0]


def of_pair(v: Any) -> Any:
    w, u = eigsh(symmetric(v), k=1)
    return w * u[0] ** 2


def sylvester(a: Any) -> Any:
    return linalg.solve_sylvester(pullback.stack([a, a * a]), [[1.0, 2.0], [0.0, 3.0]], np.eye(2))


def spline(y: Any) -> Any:
    return interpolate.CubicSpline([0.0, 1.0, 2.0, 3.0], y**2)(np.array([0.3, 1.4]))


def density(a: Any) -> Any:
    return stats.gamma.logpdf(np.array([1.0, 2.0]), a[0], scale=a[1]) + stats.norm.logpdf(a)


ENTRIES, EVEN = (4, 1, 1, 3, 0.5, 0.5, 2), (4, 1, 3, 0.5, 2)
FUNCTIONS: dict[str, tuple[Any, tuple[float, ...]]] = {
    "root": (of_root, (2, 3)),
    "root of a closure": (of_closure, (2, 3)),
    "root_scalar": (of_number, (2, 3)),
    "minimize": (minimum, (1, 2)),
    "constraint": (constrained, (1, 2)),
    "bounds": (bounded, (1, 2)),
    "least_squares": (squares, (2, 1.5)),
    "curve_fit": (fitted, (2, 1.3, 0.8, 0.5)),
    "quad": (integral, (1, 2)),
    **{method: (ode(method), (2, 0.3)) for method in ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")},
    "odeint": (lambda a: integrate.odeint(lambda y, t: -a * y, [1.0, 2.0], [0.0, 0.5, 1.0])[-1], (1, 2)),
    "solve_bvp": (shooting, (1, 2)),
    "spsolve": (lambda v: spsolve(matrix(v), B), ENTRIES),
    "splu": (lambda v: splu(matrix(v)).solve(B), ENTRIES),
    "factorized": (lambda v: factorized(matrix(v))(B), ENTRIES),
    "cg": (lambda v: cg(symmetric(v), B, rtol=1e-12)[0], EVEN),
    "LinearOperator": (with_operator, (4, 3, 2)),
    "eigsh": (of_pair, EVEN),
    "solve_sylvester": (sylvester, (1, 2)),
    "expm": (lambda a: linalg.expm(pullback.stack([a, a * a])), (0.3, 0.5)),
    "CubicSpline": (spline, (1, 2, 0.5, 1)),
    "knots": (lambda x: interpolate.CubicSpline(x, [1.0, 2.0, 0.0, 1.0]).derivative()(x[0] + 1.4), (0, 1, 2, 3)),
    "lfilter": (lambda c: signal.lfilter(c[:2], c[2:], np.arange(4.0)), (1, 0.5, 1, 0.3)),
    "gaussian_filter": (lambda a: ndimage.gaussian_filter(a.reshape(2, 3) ** 2, 1.0), (1, 2, 3, 4, 5, 6)),
    "gammainc": (lambda a: special.gammainc(a, 2 * a), (1, 2)),
    "logpdf": (density, (1.3, 2)),
}
"""Functions of one tensor, and where they are called."""

EACH = pytest.mark.parametrize("name", FUNCTIONS)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-6, atol=1e-8)


def derivatives(f: Any, x: Any) -> list[Any]:
    """The value, a gradient and a derivative of that."""
    y = f(x)
    (g,) = grad((y * pullback.linspace(1, 2, y.numel(), dtype=F64).reshape(y.shape)).sum(), x, create_graph=True)
    return [y, g, *grad((g * pullback.linspace(2, 3, x.numel(), dtype=F64)).sum(), x)]


@EACH
def test_values_and_derivatives_are_those_of_eager_mode(name: str) -> None:
    f, at = FUNCTIONS[name]
    compiled = pullback.compile(f, backend="numpy")
    for factor in (1.0, 1.02):
        x = leaf(*[factor * v for v in at])
        for found, expected in zip(derivatives(compiled, x), derivatives(f, x), strict=True):
            close(found, expected)
    assert [len(entries) for entries in compiled._entries.values()] == [1]
    assert "is called as it is" in compiled.explain()


LONG = {"RK23", "BDF", "LSODA", "odeint"}  # second derivatives of these take seconds; others go their ways


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in LONG])
def test_transforms_within_and_around(name: str) -> None:
    f, at = FUNCTIONS[name]
    x = leaf(*at).detach()

    def loss(x: Any) -> Any:
        return f(x).sin().sum()

    def tangent(x: Any) -> Any:
        return pullback.func.jvp(f, (x,), (x.cos(),))[1]

    for transformed in (pullback.func.hessian(loss), tangent):
        close(pullback.compile(transformed, backend="numpy")(x), transformed(x))
    if name == "solve_bvp":  # its samples have meshes of different sizes, in eager mode as well
        return
    rows, slopes = pullback.stack([x, 1.03 * x]), pullback.vmap(pullback.func.grad(loss))
    close(pullback.compile(slopes, backend="numpy")(rows), slopes(rows))
    close(pullback.vmap(pullback.compile(f, backend="numpy"))(rows), pullback.vmap(f)(rows))
    close(pullback.func.hessian(pullback.compile(loss, backend="numpy"))(x), pullback.func.hessian(loss)(x))


# What is no tensor ----------------------------------------------------------------------------------------------------


def found_root(a: Any) -> Any:
    return optimize.root(lambda x, a: x**3 - a, [1.0, 1.0], (a,))


def test_what_is_read_of_a_result_is_compared_in_each_call() -> None:
    def scaled(a: Any) -> Any:
        found = found_root(a)
        if not found.success:
            raise RuntimeError(found.message)
        return found.x * found["nfev"]

    compiled = pullback.compile(scaled, backend="numpy")
    for a in (leaf(2.0, 3.0), leaf(2.0, 3.1), leaf(500.0, 3.0), leaf(1.0, 1.0)):
        close(compiled(a), scaled(a))
        close(*[grad(f(a).sum(), a)[0] for f in (compiled, scaled)])


def test_the_last_step_of_an_initial_value_problem() -> None:
    def last(k: Any) -> Any:
        return integrate.solve_ivp(lambda t, y: -k * y, (0, 1.0), [1.0]).y[:, -1].sum()

    compiled = pullback.compile(last, backend="numpy")
    for value in (0.5, 20.0, 0.6):
        k = pullback.tensor(value, dtype=F64, requires_grad=True)
        close(compiled(k), last(k))
        close(*[grad(f(k), k)[0] for f in (compiled, last)])


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda a: found_root(a).x * found_root(a).gradient_error, "gradient_error of scipy.optimize.root"),
        (found_root, "gradient_error"),
        (lambda a: {**found_root(a)}["gradient_error"] * a, "gradient_error"),
        (lambda a: next(v for k, v in found_root(a).items() if k == "x"), "gradient_error"),
        (lambda a: integrate.quad(lambda t: a[0] * t, 0, 1)[1] * a, "result 1 of scipy.integrate.quad"),
        (lambda a: a if integrate.quad(lambda t: a[0] * t, 0, 1)[1] < 1 else -a, "result 1 of scipy.integrate.quad"),
    ],
    ids=["attribute", "the result", "a copy", "items", "tuple", "if"],
)
def test_numbers_that_change_are_refused_with_the_line(f: Any, name: str) -> None:
    with pytest.raises(TraceError, match=rf"{name}.* is read, a float") as caught:
        pullback.compile(f, backend="numpy")(leaf(2.0, 3.0))
    assert "test_in_programs.py" in str(caught.value)


def test_a_tuple_is_unpacked() -> None:
    def area(a: Any) -> Any:
        value, _ = integrate.quad(lambda t: a[0] * t, 0, 1)
        x, info = cg(symmetric(a), B, rtol=1e-10)
        assert info == 0
        return value * x

    a = leaf(4.0, 1.0, 3.0, 0.5, 2.0)
    close(pullback.compile(area, backend="numpy")(a), area(a))


# What a program cannot repeat -----------------------------------------------------------------------------------------


def test_a_callback_that_counts_is_refused() -> None:
    def counted(a: Any) -> Any:
        seen: list[Any] = []
        found = optimize.minimize(lambda x: ((x - a) ** 2).sum(), [0.0, 0.0], callback=lambda x: seen.append(x))
        return found.x * len(seen)

    with pytest.raises(TraceError, match=r"seen.* was changed while the function was traced"):
        pullback.compile(counted, backend="numpy")(leaf(1.0, 2.0))


def test_random_numbers_are_refused() -> None:
    def noisy(a: Any) -> Any:
        return integrate.quad(lambda t: a[0] * t + 0 * pullback.rand(()), 0, 1)[0]

    with pytest.raises(TraceError, match="random numbers are drawn"):
        pullback.compile(noisy, backend="numpy")(leaf(1.0, 2.0))


class Hidden:
    scale = pullback.tensor(2.0, dtype=F64)


def test_a_tensor_of_a_class_is_read_and_one_that_requires_grad_is_refused() -> None:
    def scaled(a: Any) -> Any:
        return optimize.root(lambda x: x**2 - a * Hidden.scale, [1.0, 1.0]).x

    a, compiled = leaf(2.0, 3.0), pullback.compile(scaled, backend="numpy")
    close(compiled(a), scaled(a))
    try:
        Hidden.scale = pullback.tensor(3.0, dtype=F64)
        close(compiled(a), scaled(a))
        Hidden.scale = pullback.tensor(3.0, dtype=F64, requires_grad=True)
        with pytest.raises(
            TraceError, match=r"scipy.optimize.root uses a tensor \(shape \[\]\) that is differentiated"
        ):
            compiled(a)
    finally:
        Hidden.scale = pullback.tensor(2.0, dtype=F64)


def test_what_a_function_reads_is_guarded() -> None:
    factor = 3.0

    def scaled(a: Any) -> Any:
        return optimize.root(lambda x: x**2 - a * factor, [1.0, 1.0]).x

    a, compiled = leaf(2.0, 3.0), pullback.compile(scaled, backend="numpy")
    close(grad(compiled(a).sum(), a)[0], grad(scaled(a).sum(), a)[0])
    before, right = compiled(a), grad(scaled(a).sum(), a)[0]
    factor = 5.0
    close(compiled(a), scaled(a))
    close(grad(compiled(a).sum(), a)[0], grad(scaled(a).sum(), a)[0])
    close(grad(before.sum(), a)[0], right)  # the equation is differentiated in backward, as it was


@pytest.mark.parametrize("twice", [False, True])
def test_a_gradient_after_a_change_of_what_a_solver_read_is_that_of_the_call(twice: bool) -> None:
    scale, factor = pullback.tensor([2.0, 3.0], dtype=F64), 1.0

    def solved(a: Any) -> Any:
        return optimize.root(lambda x: scale * x + factor * np.exp(x) - a, np.zeros(2)).x.sum()

    a, compiled = leaf(2.0, 3.0), pullback.compile(solved, backend="numpy")
    expected = grad(solved(a), a)[0]
    found = compiled(a)
    scale, factor = pullback.tensor([1.0, 1.0], dtype=F64), 7.0
    if twice:
        close(grad(found, a, retain_graph=True)[0], expected)
    close(grad(found, a)[0], expected)
    close(compiled(a), solved(a))
    close(grad(compiled(a), a)[0], grad(solved(a), a)[0])


def test_a_function_of_the_user_s_in_backward_still_refuses_a_change() -> None:
    factor = 1.0

    class Scaled(pullback.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * factor

    def f(a: Any) -> Any:
        return Scaled.apply(optimize.root(lambda x: x + factor * np.exp(x) - a, np.zeros(2)).x).sum()

    a = leaf(2.0, 3.0)
    found = pullback.compile(f, backend="numpy")(a)
    factor = 3.0
    with pytest.raises(RuntimeError, match="factor has changed since the function was called"):
        grad(found, a)


def test_the_parameters_of_a_module() -> None:
    net, y0 = pullback.nn.Linear(2, 2).double(), leaf(1.0, 2.0)

    def end(y0: Any) -> Any:
        return integrate.solve_ivp(lambda t, y: pullback.tanh(net(y)), (0, 1.0), y0, t_eval=[1.0], **TIGHT).y.sum()

    compiled, by = pullback.compile(end, backend="numpy"), [y0, *net.parameters()]
    for found, expected in zip(grad(compiled(y0), by), grad(end(y0), by), strict=True):
        close(found, expected)


def test_an_error_is_that_of_eager_mode() -> None:
    def solved(a: Any) -> Any:
        return optimize.root(lambda x: x * x - a, [1.0]).x

    compiled = pullback.compile(solved, backend="numpy")
    compiled(leaf(2.0))
    for f in (solved, compiled):
        with pytest.raises(RuntimeError, match="did not converge, so there is no solution to differentiate"):
            f(leaf(-2.0))


def test_a_backward_takes_the_graph_of_its_call() -> None:
    """Forward and backward solve once: the factorisation that forward left is found again."""
    solves = 0

    def counting(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal solves
            solves += 1
            return function(*args, **kwargs)

        return call

    import scipy.optimize

    def f(a: Any) -> Any:
        return optimize.root(lambda x, a: x**3 - a, [1.0, 1.0], (a,)).x.sum()

    a, compiled = leaf(2.0, 3.0), pullback.compile(f, backend="numpy")
    compiled(a).backward()
    before = scipy.optimize.root
    try:
        scipy.optimize.root = counting(before)
        compiled(leaf(2.5, 3.0)).backward()
        assert solves == 1
        values = [compiled(leaf(2.0 + i, 3.0)) for i in range(3)]
        sum(values).backward()  # several calls before a backward
        assert solves == 4
    finally:
        scipy.optimize.root = before


def test_without_gradients_nothing_is_kept_or_warned_of() -> None:
    compiled = pullback.compile(lambda a: found_root(a).x, backend="numpy")
    with pullback.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not compiled(leaf(2.0, 3.0)).requires_grad
        assert not compiled(leaf(2.0, 4.0)).requires_grad


def test_a_sum_of_probabilities_whose_length_depends_on_values() -> None:
    a = pullback.tensor(2.0, dtype=pullback.float64, requires_grad=True)
    k = pullback.tensor([1.0, 3.0, 12.0, -1.0], dtype=pullback.float64)
    for name in ("cdf", "sf", "logsf"):
        law = getattr(stats.betabinom, name)
        compiled = pullback.compile(lambda k, a, law=law: law(k, 10, a, 3.0).exp())
        for shift in (0, 2):
            found, expected = compiled(k + shift, a), law(k + shift, 10, a, 3.0).exp()
            np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-14)
            slopes = [pullback.autograd.grad(v[:2].sum(), a)[0].item() for v in (found, expected)]
            np.testing.assert_allclose(*slopes, rtol=1e-12)
