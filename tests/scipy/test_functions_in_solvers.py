"""A person's own `Function` in the functions that solvers are given: `backward` alone is enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.scipy import optimize


class Cube(pullback.autograd.Function):
    """x^3 of arrays; its gradient is computed with Tensors."""

    calls = 0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        Cube.calls += 1
        ctx.save_for_backward(x)
        return pullback.from_numpy(np.asarray(x.numpy() ** 3))

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


class Once(Cube):
    """The same, with a gradient that has no derivative."""

    @staticmethod
    @pullback.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Any) -> Any:
        (x,) = ctx.saved_tensors
        return pullback.from_numpy(grad_output.numpy() * 3 * x.numpy() ** 2)


START = np.array([3.0, 1.5])


def _solved(name: str, a: Any, cube: Any) -> Any:
    if name == "root":
        return optimize.root(lambda v, a: cube(v) - a, START, args=(a,)).x
    if name == "least_squares":
        return optimize.least_squares(lambda v, a: cube(v) - a, START, args=(a,)).x
    if name == "curve_fit":
        data = pullback.cat([a, a[:1] * 1.1])
        return optimize.curve_fit(lambda x, p, q: cube(pullback.stack([p, q, p])) + 0 * x, np.ones(3), data, p0=START)[
            0
        ]
    if name == "root_scalar":
        return pullback.stack([optimize.root_scalar(lambda v: cube(v) - a[0], x0=3.0, method="halley").root] * 2)
    if name == "newton":
        return pullback.stack([optimize.newton(lambda v: cube(v) - a[0], 3.0)] * 2)
    method = name if name in ("Newton-CG", "trust-exact", "SLSQP", "trust-constr") else "BFGS"
    constraints = {"type": "ineq", "fun": lambda v: 10 - cube(v).sum()} if name in ("SLSQP", "trust-constr") else ()
    start = START * 0.6 if constraints else START
    return optimize.minimize(
        lambda v, a: (
            (v**4 / 4 - a ** (1 / 3) * cube(v) / 3).sum() if not constraints else ((cube(v) - a / 8) ** 2).sum()
        ),
        start,
        args=(a,),
        method=method,
        constraints=constraints,
        tol=1e-10,
    ).x


NAMES = ("root", "least_squares", "curve_fit", "root_scalar", "newton", "BFGS", "Newton-CG", "trust-exact")


@pytest.mark.parametrize("name", [*NAMES, "SLSQP", "trust-constr"])
def test_a_function_with_backward_alone_is_differentiated_by_it(name: str) -> None:
    a = pullback.tensor([8.0, 8.0], dtype=pullback.float64, requires_grad=True)
    found = []
    for cube in (Cube.apply, lambda v: v**3):
        x = _solved(name, a, cube)
        first = pullback.autograd.grad(x.sum(), a)[0]
        found.append(np.concatenate([x.detach().numpy(), first.numpy()]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-7)
    assert np.isfinite(found[0]).all()


def test_second_derivatives_go_through_it_as_well() -> None:
    a = pullback.tensor([8.0, 8.0], dtype=pullback.float64, requires_grad=True)
    x = optimize.root(lambda v, a: Cube.apply(v) - a, START, args=(a,)).x
    (first,) = pullback.autograd.grad(x.sum(), a, create_graph=True)
    (second,) = pullback.autograd.grad(first.sum(), a)
    np.testing.assert_allclose(second.numpy(), -2 / 9 * 8.0 ** (-5 / 3) * np.ones(2), rtol=1e-6)


def test_a_gradient_without_a_derivative_is_refused_where_a_second_is_needed() -> None:
    a = pullback.tensor([8.0, 8.0], dtype=pullback.float64, requires_grad=True)
    x = optimize.root(lambda v, a: Once.apply(v) - a, START, args=(a,)).x
    np.testing.assert_allclose(pullback.autograd.grad(x.sum(), a)[0].numpy(), [1 / 12, 1 / 12], rtol=1e-6)
    with pytest.raises(NotImplementedError, match="you must implement the jvp function"):
        optimize.minimize(lambda v: (v**4 / 4 - 2 * Once.apply(v) / 3).sum(), START, method="Newton-CG")


def test_an_error_of_the_persons_own_stays_the_one_it_is() -> None:
    def bad(v: Any) -> Any:
        raise NotImplementedError("of my own")

    with pytest.raises(NotImplementedError, match="of my own"):
        optimize.root(bad, START)


METHODS = ("BFGS", "L-BFGS-B", "CG", "Newton-CG", "TNC", "SLSQP")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("hidden", [lambda v: np.sum((v.detach().numpy() - 1) ** 2), lambda v: 0.0])
def test_a_function_that_loses_its_unknowns_is_refused(method: str, hidden: Any) -> None:
    with pytest.raises(
        RuntimeError, match=r"minimize: the function's value does not depend on its unknowns(.|\n)*What to"
    ):
        optimize.minimize(hidden, np.zeros(2), method=method)


@pytest.mark.parametrize("method", METHODS)
def test_a_number_far_out_of_the_domain_is_no_lost_unknown(method: str) -> None:
    def fun(v: Any) -> Any:
        return 1e6 if v[0] > 40 else (v**4).sum() + (v**2).sum()

    with pullback.no_grad():
        found = optimize.minimize(fun, np.array([3.0, -2.0]), method=method)
    np.testing.assert_allclose(found.x.numpy(), 0, atol=1e-3)


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "COBYLA"])
def test_a_method_that_looks_at_values_alone_takes_a_function_of_arrays(method: str) -> None:
    found = optimize.minimize(lambda v: np.sum((v.detach().numpy() - 1) ** 2), np.zeros(2), method=method)
    np.testing.assert_allclose(found.x.numpy(), 1, atol=1e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_failure_says_where_the_solver_stopped() -> None:
    with pytest.raises(
        RuntimeError, match=r"is not finite.*x = \[-1\.\](.|\n)*What to do: change x0(.|\n)*detect_anomaly"
    ):
        optimize.minimize(lambda v: pullback.log(v).sum(), np.array([-1.0]))
    with pytest.raises(RuntimeError, match=r"It stopped at x = \[.*\], where the function is 1(.|\n)*maxiter"):
        optimize.minimize(lambda v: ((v - 3) ** 4).sum(), np.array([2.0, 5.0]), options={"maxiter": 0})
