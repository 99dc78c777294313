"""What the solvers of `pullback.scipy` say to do: the advice names what mends the problem, and it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback
from pullback.scipy import integrate, optimize

F64 = pullback.float64


def leaf(*values: Any) -> Any:
    return pullback.tensor(values if len(values) > 1 else values[0], dtype=F64, requires_grad=True)


def valley(x: Any, a: Any) -> Any:
    return 100 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - a * x[:-1]) ** 2).sum()


# Bounds that mix numbers and Tensors ----------------------------------------------------------------------------------

METHODS = ["trust-constr", "Powell", "COBYQA", "L-BFGS-B", "SLSQP", "TNC", "Nelder-Mead", "COBYLA"]


@pytest.mark.parametrize("method", METHODS)
def test_bounds_of_numbers_and_tensors_suit_every_method(method: str) -> None:
    upper = leaf(2.0)
    box = optimize.Bounds([-9, -9], pullback.stack([upper, upper + 7]))
    # a stopped barrier is 1e-9 from the bound, and methods without gradients know half of the digits
    x = optimize.minimize(lambda x: ((x - 5) ** 2).sum(), [0.0, 0.0], method=method, bounds=box, tol=1e-10).x
    np.testing.assert_allclose(x.detach().numpy(), [2.0, 5.0], atol=1e-4)
    slope: Any = pullback.autograd.grad(x.sum(), upper)[0]
    np.testing.assert_allclose(slope.item(), 1.0, rtol=1e-6)


def test_bounds_under_vmap_keep_what_is_feasible() -> None:
    def held(upper: Any) -> Any:
        box = optimize.Bounds([-9.0], pullback.stack([upper]), keep_feasible=True)
        return optimize.minimize(lambda x: ((x - 5) ** 2).sum(), [0.0], method="trust-constr", bounds=box, tol=1e-10).x

    upper = pullback.tensor([1.0, 2.0], dtype=F64)
    found = pullback.vmap(held)(upper)
    assert (found.numpy()[:, 0] < upper.numpy()).all()  # the barrier stays inside
    np.testing.assert_allclose(found.numpy()[:, 0], upper.numpy(), rtol=1e-3)
    np.testing.assert_array_equal(found.numpy(), np.stack([held(u).numpy() for u in upper]))


# Solvers that stop ----------------------------------------------------------------------------------------------------


def few(method: str, **options: int) -> Callable[[], Any]:
    return lambda: optimize.minimize(valley, np.zeros(3), (leaf(1.1),), method=method, options=options)


LIMITS: dict[str, Callable[[], Any]] = {
    **{m: few(m, maxiter=2) for m in ("BFGS", "SLSQP", "trust-constr", "L-BFGS-B", "Nelder-Mead", "Powell", "CG")},
    **{m: few(m, maxiter=2) for m in ("Newton-CG", "trust-exact", "COBYLA")},
    "COBYQA": few("COBYQA", maxiter=2),
    "TNC": few("TNC", maxfun=2),
    "evaluations": few("Nelder-Mead", maxfev=5),
    "root": lambda: optimize.root(lambda x, a: x**3 - a, [9.0], (leaf(1.0),), options={"maxfev": 2}),
    "least squares": lambda: optimize.least_squares(lambda x, a: x**3 - a, [9.0], args=(leaf(1.0),), max_nfev=2),
    "df-sane": lambda: optimize.root(
        lambda x, a: x**3 - a, [9.0], (leaf(1.0),), method="df-sane", options={"maxfev": 2}
    ),
    "krylov": lambda: optimize.root(
        lambda x, a: x**3 - a, [9.0], (leaf(1.0),), method="krylov", options={"maxiter": 1}
    ),
    "scalar": lambda: optimize.minimize_scalar(lambda x, a: x**4 - a * x, args=(leaf(1.0),), options={"maxiter": 1}),
    "curve fit": lambda: optimize.curve_fit(
        lambda t, a, b: a * (b * t).exp(), np.arange(5.0), leaf(1.0, 2.0, 4.5, 8.0, 17.0), max_nfev=2, method="trf"
    ),
    "fixed point": lambda: optimize.fixed_point(lambda x, a: np.cos(a * x), 1.0, (leaf(1.0),), maxiter=1),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_that_was_reached_is_what_to_raise(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"did not converge(.|\n)*What to do: raise the limit(.|\n)*maxiter"):
        LIMITS[name]()


def test_where_rounding_hides_progress_a_looser_tolerance_is_what_to_give() -> None:
    a = leaf(3.0)

    def offset(x: Any, a: Any) -> Any:
        return valley(x, a) + 1e9

    with pytest.raises(RuntimeError, match=r"precision loss(.|\n)*What to do: give a larger tol"):
        optimize.minimize(offset, [0.0, 0.5], (a,), method="BFGS", tol=1e-12)
    assert optimize.minimize(offset, [0.0, 0.5], (a,), method="BFGS", tol=1e-2).success


def test_where_nothing_is_known_the_start_is_what_to_change() -> None:
    with pytest.raises(RuntimeError, match="What to do: change x0, the method or its tolerances"):
        optimize.root(lambda x, a: x**2 + a, [1.0], (leaf(1.0),))


def test_a_mesh_that_is_full_is_told_its_size() -> None:
    k = leaf(1.0)

    def solve(max_nodes: int) -> Any:
        return integrate.solve_bvp(
            lambda x, y: [y[1], -k * y[0] ** 3], lambda a, b: [a[0], b[0] - 1], [0.0, 0.5, 1.0], np.ones((2, 3)),
            tol=1e-6, max_nodes=max_nodes,
        )  # fmt: skip

    with pytest.raises(RuntimeError, match=r"mesh nodes is exceeded(.|\n)*What to do: raise max_nodes above 4"):
        solve(4)
    assert solve(1000).success


# Parts of different shapes --------------------------------------------------------------------------------------------


def bvp(fun: Any, bc: Any) -> Any:
    return integrate.solve_bvp(fun, bc, np.linspace(0, 1, 5), np.ones((2, 5)))


def test_a_constant_row_is_named_and_the_advice_mends_it() -> None:
    k = leaf(2.0)

    def ends(a: Any, b: Any) -> Any:
        return [a[0], b[0] - k]

    text = r"row 1 of what .*steady.* returns: expected shape \[5\], as row 0 has, found shape \[\](.|\n)*0 \* y\[0\]"
    for one in (1.0, pullback.tensor(1.0, dtype=F64)):

        def steady(x: Any, y: Any, one: Any = one) -> Any:
            return [y[1], one]

        with pytest.raises(RuntimeError, match=text):
            bvp(steady, ends)
    slope: Any = pullback.autograd.grad(bvp(lambda x, y: [y[1], 1.0 + 0 * y[0]], ends).sol(0.5)[0], k)[0]
    np.testing.assert_allclose(slope.item(), 0.5, rtol=1e-10)


@pytest.mark.parametrize(
    "call",
    [
        lambda: bvp(lambda x, y: [y[1], y[0][:2]], lambda a, b: [a[0], b[0]]),
        lambda: bvp(lambda x, y: [y[1], y[0]], lambda a, b: [a[:1], b]),
        lambda: integrate.solve_ivp(lambda t, y: [y[:1], y], (0, 1), [1.0, 2.0]),
        lambda: optimize.root(lambda x: [x[:1], x], [1.0, 2.0]),
        lambda: optimize.least_squares(lambda x: [x[:1], x], [1.0, 2.0]),
    ],
    ids=["fun", "bc", "ivp", "root", "least squares"],
)
def test_rows_of_other_shapes_are_named(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"row \d of what .*<lambda> returns: expected shape"):
        call()


# Bounds without a force, and constraints that depend on each other ----------------------------------------------------


def test_a_kink_is_told_with_its_numbers_and_how_far_is_far_enough() -> None:
    def nearest(a: Any) -> Any:
        return optimize.minimize(lambda x, a: ((x - a) ** 2).sum(), [0.5, 0.5], (a,), bounds=[(0, None)] * 2).x

    text = (
        r"the bound of x\[1\] is reached, but has no multiplier: (.|\n)*this kink(.|\n)*distance 0, multiplier 0; "
        r"a derivative needs a distance above 1e-05 or a multiplier above 1e-05"
    )
    with pytest.raises(RuntimeError, match=text) as told:
        nearest(leaf(0.5, 0.0)).sum().backward()
    assert "leave the bound out" not in str(told.value)
    for aside, slope in ((1e-4, 1.0), (-1e-4, 0.0)):
        a = leaf(0.5, aside)
        nearest(a)[1].backward()
        np.testing.assert_allclose(a.grad.numpy(), [0.0, slope], atol=1e-6)


A = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0], [2.0, 0.0, 1.0]])  # the last row is the sum of the others


def balanced(rows: Any, method: str, a: Any) -> Any:
    rule = scipy.optimize.LinearConstraint(A[rows], np.array([3.0, 0.5, 3.5])[rows], np.array([3.0, 0.5, 3.5])[rows])
    return optimize.minimize(
        lambda x, a: (x**4).sum() + ((x - a) ** 2).sum(), np.ones(3), (a,), method=method, constraints=rule, tol=1e-10
    )


@pytest.mark.filterwarnings("ignore:delta_grad:UserWarning", "ignore:Singular Jacobian matrix:UserWarning")
def test_constraints_that_depend_on_each_other_are_named() -> None:
    text = r"value 0 of constraints\[0\], value 1 of .*, value 2 of .* are linearly dependent(.|\n)*remove one of them"
    a = leaf(1.0, 2.0, 0.5)
    x = balanced([0, 1, 2], "trust-constr", a).x
    with pytest.raises(RuntimeError, match=text):
        x[0].backward()
    untouched: Any = a.grad
    assert untouched is None
    two = balanced([0, 1], "trust-constr", a).x
    two[0].backward()
    along = np.array([1.0, 1.0, -2.0])  # what two constraints leave free
    bend = (along**2 * (12 * two.detach().numpy() ** 2 + 2)).sum()
    np.testing.assert_allclose(a.grad.numpy(), 2 * along / bend, rtol=1e-6)
    held = optimize.minimize(
        lambda x, a: ((x - a) ** 2).sum(), [0.0, 0.0], (leaf(3.0, 0.5),), method="trust-constr", bounds=[(-9, 1)] * 2,
        constraints={"type": "ineq", "fun": lambda x: np.stack([1 - x[0]])}, tol=1e-10,
    ).x  # fmt: skip
    with pytest.raises(RuntimeError, match=r"the bound of x\[0\], value 0 of constraints\[0\] are linearly dependent"):
        held[0].backward()


def test_a_method_that_stops_at_dependent_constraints_says_so() -> None:
    advice = r"Singular matrix C(.|\n)*What to do: remove constraints that follow from the others"
    with pytest.raises(RuntimeError, match=advice):
        balanced([0, 0], "SLSQP", leaf(1.0, 2.0, 0.5))


@pytest.mark.parametrize("said", ["Positive directional derivative", "Inequality constraints incompatible"])
def test_what_else_it_says_of_them_has_the_same_advice(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it comes to that depends on rounding, so the answer is planted."""
    stopped = scipy.optimize.OptimizeResult(success=False, status=8, message=said, x=np.zeros(3), fun=0.0)
    monkeypatch.setattr(scipy.optimize, "minimize", lambda *args, **given: stopped)
    with pytest.raises(RuntimeError, match=rf"{said}(.|\n)*What to do: remove constraints that follow from the others"):
        balanced([0, 1, 2], "SLSQP", leaf(1.0, 2.0, 0.5))


def test_a_minimum_that_is_not_determined_is_still_told_so() -> None:
    a = leaf(1.0)
    flat = optimize.minimize(lambda x, a: (x[0] - a) ** 2 + 0 * x[1], [0.0, 0.0], (a,), bounds=[(-9, 0.5), (-9, 9)]).x
    with pytest.raises(RuntimeError, match="Jacobian at the solution is singular"):
        flat[0].backward()
