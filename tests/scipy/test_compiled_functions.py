"""Compiled functions given to solvers: called on arrays, with the values and gradients of the plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import grad
from pullback.scipy import integrate, optimize
from pullback.scipy.direct_calls import Direct, direct, with_gradient

F64 = pullback.float64


def leaf(*values: float) -> Any:
    return pullback.tensor(values, dtype=F64, requires_grad=True)


def valley(x: Any, a: Any) -> Any:
    return (a * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() + ((x - 0.5) ** 2).sum() / 100


def decay(t: Any, y: Any, k: Any) -> Any:
    return -k * y + pullback.sin(t)


def close(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=rtol, atol=1e-12)


def solutions(f: Any) -> list[Any]:
    """What solvers find with a function of one number whose root is 2."""
    return [
        optimize.root_scalar(f, bracket=(-10.0, 10.0)).root,
        optimize.root(lambda x: f(x), 1.0).x.sum(),
        optimize.minimize(lambda x: (f(x) ** 2).sum(), [0.3], tol=1e-10).x.sum(),
        optimize.fixed_point(lambda x: x - 0.9 * f(x), [1.0]).sum(),
        integrate.solve_ivp(lambda t, y: f(y), (0.0, 1.0), [1.0], rtol=1e-8, atol=1e-8).y[0, -1],
        integrate.quad(f, 0.0, 1.0)[0],
    ]


def test_what_a_compiled_function_within_another_reads_has_its_gradient() -> None:
    a = leaf(2.0)[0].detach().requires_grad_()
    for found, expected in zip(solutions(pullback.compile(lambda x: x - a)), solutions(lambda x: x - a), strict=True):
        close(found, expected)
        close(grad(found, a)[0], grad(expected, a)[0])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often a compiled function was called on arrays."""
    counts = {"value": 0, "value_and_gradient": 0}
    for name in counts:
        before = getattr(Direct, name)

        def call(self: Any, *args: Any, _before: Any = before, _name: str = name) -> Any:
            found = _before(self, *args)
            counts[_name] += found is not None
            return found

        monkeypatch.setattr(Direct, name, call)
    return counts


@pytest.mark.parametrize("backend", ["numpy", None])
def test_a_minimum(backend: Any, counted: dict[str, int]) -> None:
    compiled = pullback.compile(valley, backend=backend)
    for value in (10.0, 7.0):
        a = pullback.tensor(value, dtype=F64, requires_grad=True)
        found = [optimize.minimize(f, np.full(5, 0.5), (a,), tol=1e-8) for f in (compiled, valley)]
        close(found[0].x, found[1].x, 1e-6)
        close(*[grad(each.x.sum(), a)[0] for each in found], 1e-5)
        assert found[0].nfev == found[1].nfev
    assert counted["value_and_gradient"] > 20


def test_a_minimum_of_a_function_that_reads_its_parameter(counted: dict[str, int]) -> None:
    a = leaf(1.0, 2.0)

    def f(x: Any) -> Any:
        return ((x - a) ** 4 + (x - a) ** 2).sum()

    found = [optimize.minimize(g, [0.0, 0.0], tol=1e-8).x for g in (pullback.compile(f, backend="numpy"), f)]
    close(*found, 1e-6)
    close(*[grad(x.sum(), a)[0] for x in found], 1e-5)
    assert counted["value_and_gradient"] > 3


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "LSODA"])
@pytest.mark.parametrize("captured", [False, True], ids=["args", "a variable"])
def test_an_initial_value_problem(method: str, captured: bool, counted: dict[str, int]) -> None:
    k = leaf(0.7, 1.3)

    def reads(t: Any, y: Any) -> Any:
        return decay(t, y, k)

    found = []
    for wrap in (lambda f: pullback.compile(f, backend="numpy"), lambda f: f):
        fun, args = (wrap(reads), None) if captured else (wrap(decay), (k,))
        sol = integrate.solve_ivp(fun, (0, 2.0), [1.0, 2.0], method=method, t_eval=[1.0, 2.0], args=args, rtol=1e-7)
        found.append((sol.y, grad(sol.y.sum(), k)[0]))
    for one, other in zip(*found, strict=True):
        close(one, other, 1e-6)
    assert counted["value"] > 10


def test_what_a_function_reads_is_compared_in_each_call() -> None:
    factor = 1.0

    def f(x: Any) -> Any:
        return x * factor

    fast = direct(pullback.compile(f, backend="numpy"), (leaf(1.0, 2.0).detach(),), 1)
    assert fast is not None
    x = np.array([3.0, 4.0])
    np.testing.assert_array_equal(fast.value(x), [3.0, 4.0])
    factor = 2.0
    np.testing.assert_array_equal(fast.value(x), [6.0, 8.0])
    np.testing.assert_array_equal(fast.value(np.ones(3)), [2.0, 2.0, 2.0])  # another shape
    assert fast.value(np.ones(2, np.float32)).dtype == np.float32


def test_a_program_that_depends_on_strides_is_for_arrays_that_lie_so() -> None:
    fast = direct(
        pullback.compile(lambda x: x.view(2) * 3 if x.is_contiguous() else x * 2, backend="numpy"),
        (leaf(1.0, 2.0).detach(),),
        1,
    )
    assert fast is not None
    for x, expected in ((np.ones(2), [3.0, 3.0]), (np.ones(4)[::2], [2.0, 2.0]), (np.ones(2), [3.0, 3.0])):
        np.testing.assert_array_equal(fast.value(x), expected)


def test_a_gradient_is_refused_where_something_has_changed() -> None:
    factor = pullback.tensor(1.0, dtype=F64)
    held = [factor]

    def f(x: Any) -> Any:
        return (x**2 * held[0]).sum()

    fast = direct(pullback.compile(with_gradient(f), backend="numpy"), (leaf(1.0, 2.0),), 1, gradient=True)
    assert fast is not None
    x = np.array([3.0, 4.0])
    found = fast.value_and_gradient(x)
    assert found is not None
    np.testing.assert_allclose(found[0], 25.0)
    np.testing.assert_allclose(found[1], 2 * x)
    factor.mul_(3.0)  # a captured tensor is read in each call
    found = fast.value_and_gradient(x)
    assert found is not None
    np.testing.assert_allclose(found[1], 6 * x)
    held[0] = pullback.tensor(2.0, dtype=F64)
    assert fast.value_and_gradient(x) is None


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x, x * 2),
        lambda x: x,
        lambda x: x.as_strided((2,), (0,)),
        lambda x: {"y": x * 2},
        lambda x: x.add_(1),
    ],
    ids=["two", "the argument", "memory", "a dict", "in place"],
)
def test_other_functions_are_called_as_usual(f: Any) -> None:
    assert direct(pullback.compile(f, backend="numpy"), (leaf(1.0, 2.0).detach(),), 1) is None


def test_with_numbers_among_the_arguments_and_under_transforms() -> None:
    compiled = pullback.compile(valley, backend="numpy")
    close(
        optimize.minimize(compiled, np.full(3, 0.5), (10.0,), tol=1e-8).x,
        optimize.minimize(valley, np.full(3, 0.5), (10.0,), tol=1e-8).x,
        1e-6,
    )

    def total(f: Any) -> Any:
        return lambda a: optimize.minimize(f, np.full(3, 0.5), (a,), tol=1e-8).x.sum()

    a = pullback.tensor(10.0, dtype=F64)
    close(pullback.func.hessian(total(compiled))(a), pullback.func.hessian(total(valley))(a), 1e-4)
    rows = pullback.tensor([10.0, 5.0], dtype=F64)
    close(pullback.vmap(total(compiled))(rows), pullback.vmap(total(valley))(rows), 1e-6)
