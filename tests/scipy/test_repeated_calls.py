"""Functions that a solver calls often: traced after that, with the same results, and left alone where they do more."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import scipy
from pullback.autograd import grad
from pullback.interpreters.traced import open_trace
from pullback.scipy import integrate, optimize, repeated_calls
from pullback.scipy.direct_calls import Direct
from pullback.scipy.optimize import stationary

F64 = pullback.float64


def leaf(*values: float) -> Any:
    return pullback.tensor(values, dtype=F64, requires_grad=True)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Functions are traced after twenty calls; how often their programs ran."""
    monkeypatch.setattr(repeated_calls, "AFTER", {False: 20, True: 10})
    monkeypatch.setattr(repeated_calls, "_RECORDS", type(repeated_calls._RECORDS)())
    counts = {"value": 0, "value_and_gradient": 0}
    for name in counts:
        before = getattr(Direct, name)

        def call(self: Any, *args: Any, _before: Any = before, _name: str = name) -> Any:
            counts[_name] += 1
            return _before(self, *args)

        monkeypatch.setattr(Direct, name, call)
    yield counts
    scipy.set_tracing(True)


def oscillator(t: Any, y: Any, k: Any) -> Any:
    return [y[1], -k[0] * y[0] - k[1] * y[1] + pullback.sin(t)]


def vector(t: Any, y: Any, k: Any) -> Any:
    return pullback.stack([y[1], -k[0] * y[0] - k[1] * y[1]])


def valley(x: Any, a: Any) -> Any:
    return (a * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() + ((x - 0.5) ** 2).sum() / 100


def cosine(x: Any, a: Any) -> Any:
    return (a * x).cos()


def ode(f: Any, method: str = "RK45") -> Callable[..., Any]:
    def solve(k: Any) -> Any:
        return integrate.solve_ivp(f, (0, 3.0), [1.0, 0.0], method, t_eval=[1.0, 3.0], args=(k,), rtol=1e-7).y

    return solve


def least(method: str, bounds: Any = None) -> Callable[..., Any]:
    def solve(a: Any) -> Any:
        return optimize.minimize(valley, np.full(4, 0.3), (a,), method, bounds=bounds, tol=1e-9).x

    return solve


SOLVERS: dict[str, tuple[Callable[..., Any], Any]] = {
    "RK45": (ode(oscillator), leaf(0.7, 0.3)),
    "DOP853": (ode(vector, "DOP853"), leaf(0.7, 0.3)),
    "BDF": (ode(oscillator, "BDF"), leaf(0.7, 0.3)),
    "odeint": (
        lambda k: integrate.odeint(oscillator, [1.0, 0.0], [0.0, 1.0, 3.0], args=(k,), tfirst=True),
        leaf(0.7, 0.3),
    ),
    "BFGS": (least("BFGS"), leaf(5.0)),
    "with bounds": (least("L-BFGS-B", [(0, 2)] * 4), leaf(5.0)),
    "by values": (least("Nelder-Mead"), leaf(5.0)),
    "of a number": (
        lambda a: optimize.minimize_scalar(lambda x, a: (x - a[0]) ** 2 + x**4, args=(a,), tol=1e-12).x,
        leaf(2.0),
    ),
    "fixed_point": (
        lambda a: optimize.fixed_point(cosine, np.full((2, 3), 0.7), (a,), method="iteration"),
        leaf(1.0),
    ),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_programs_give_what_the_functions_give(name: str, few: dict[str, int]) -> None:
    solve, parameter = SOLVERS[name]
    scipy.set_tracing(False)
    expected = solve(parameter)
    of_expected = grad(expected.sum(), parameter)[0]
    assert not any(few.values())
    scipy.set_tracing(True)
    for _ in range(3):
        found = solve(parameter)
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-9)
        np.testing.assert_allclose(grad(found.sum(), parameter)[0].numpy(), of_expected.numpy(), rtol=1e-6)
    assert sum(few.values()) > 20


def test_a_short_solution_traces_nothing(few: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    before = {key: (record.traces, record.refused) for key, record in repeated_calls._RECORDS.items()}
    ode(oscillator)(leaf(0.7, 0.3))
    after = {key: (r.traces, r.refused) for key, r in repeated_calls._RECORDS.items() if key not in before}
    assert set(after.values()) <= {(0, False)}


def test_calls_without_tracing_do_not_count(few: dict[str, int]) -> None:
    a = leaf(2.0)
    for _ in range(8):
        for enabled in (True, False):
            scipy.set_tracing(enabled)
            few["value_and_gradient"] = 0
            optimize.minimize(valley, np.full(4, 0.2), (a,), method="BFGS")
            assert (few["value_and_gradient"] > 0) is enabled


def test_calls_of_several_solutions_are_counted_together(few: dict[str, int]) -> None:
    def f(x: Any, a: Any) -> Any:
        return ((x - a) ** 4).sum() + ((x - a) ** 2).sum()

    for _ in range(3):
        optimize.minimize(f, [0.0, 0.0], (leaf(1.0, 2.0),), "BFGS")
    assert few["value_and_gradient"] > 5
    before = few["value_and_gradient"]
    calls = optimize.minimize(f, [0.0, 0.0], (leaf(3.0, 2.0),), "BFGS").nfev
    assert few["value_and_gradient"] - before >= calls - 1  # all but the first, with which they are compared


class Counter:
    n = 0


SEEN: list[Any] = []
COUNTER = Counter()
LAST: dict[str, Any] = {}
RNG = np.random.default_rng(0)


def _appends(x: Any) -> Any:
    SEEN.append(x)
    return (x**2).sum()


def _counts(x: Any) -> Any:
    COUNTER.n += 1
    return (x**2).sum()


def _notes(x: Any) -> Any:
    LAST["x"] = x
    return (x**2).sum()


def _prints(x: Any) -> Any:
    print("called")
    return (x**2).sum()


def _branches(x: Any) -> Any:
    return (x**2).sum() if x[0] > 0 else (x**2).sum() * 2


def _branches_and_catches(x: Any) -> Any:
    try:
        if x[0] > 1:
            return (x**2).sum() * 2
    except RuntimeError:
        pass
    return (x**2).sum()


def _draws(x: Any) -> Any:
    return (x**2).sum() + 0.0 * np.random.rand() + 0.0 * random.random() + 0.0 * RNG.normal()


def _reads_values(x: Any) -> Any:
    return (x**2).sum() + float(x.detach().numpy()[0]) * 0.0


@pytest.mark.parametrize(
    "f", [_appends, _counts, _notes, _prints, _branches, _branches_and_catches, _draws, _reads_values]
)
def test_a_function_that_does_more_runs_each_time(
    f: Any, few: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for traced in (False, True):
        scipy.set_tracing(traced)
        SEEN.clear()
        COUNTER.n = 0
        np.random.seed(3)
        random.seed(3)
        RNG.bit_generator.state = np.random.default_rng(3).bit_generator.state
        x = optimize.minimize(f, [1.5, 0.3], method="Nelder-Mead").x.detach().numpy()
        drawn = np.random.rand(), random.random(), RNG.normal()
        found.append((x.tolist(), len(SEEN), COUNTER.n, drawn, capsys.readouterr().out))
        assert all(type(v) is pullback.Tensor and type(v._data) is np.ndarray for v in [*SEEN, *LAST.values()])
    assert found[0] == found[1]
    assert few["value"] == 0


def test_a_function_that_changes_between_solutions_gives_what_it_is_now(few: dict[str, int]) -> None:
    factor = 1.0

    def f(t: Any, y: Any) -> Any:
        return -factor * y

    def end() -> float:
        return integrate.solve_ivp(f, (0, 1.0), [1.0], rtol=1e-9, atol=1e-9).y[0, -1].item()

    for factor in (1.0, 2.0, 3.0, 1.0, 0.5, 0.1, 1.0):
        np.testing.assert_allclose(end(), np.exp(-factor), rtol=1e-7)
    assert few["value"] > 100


def test_a_function_that_changes_during_a_solution(few: dict[str, int]) -> None:
    held = [1.0]

    def f(t: Any, y: Any) -> Any:
        return -held[0] * y

    def jump(t: Any, y: Any) -> Any:
        if t > 1:
            held[0] = 2.0
        return y[0] + 1

    def end() -> float:
        held[0] = 1.0
        return integrate.solve_ivp(f, (0, 2.0), [1.0], events=jump, max_step=0.01).y[0, -1].item()

    scipy.set_tracing(False)
    expected = end()
    scipy.set_tracing(True)
    assert end() == expected
    assert few["value"] > 100


def test_a_captured_parameter_has_its_gradient(few: dict[str, int]) -> None:
    for value in (1.0, 2.0, 3.0):
        k = leaf(value)

        def f(t: Any, y: Any, k: Any = k) -> Any:
            return -k * y

        y = integrate.solve_ivp(f, (0, 1.0), [1.0], rtol=1e-9, atol=1e-9).y[0, -1]
        np.testing.assert_allclose(grad(y, k)[0].numpy(), -np.exp(-value), rtol=1e-6)
    assert few["value"] > 100


def test_a_program_keeps_no_function_alive(few: dict[str, int]) -> None:
    def made() -> Any:
        weight = np.ones(2)

        def f(x: Any) -> Any:
            return ((x * weight - 1) ** 4).sum()

        for _ in range(3):
            optimize.minimize(f, [0.0, 0.0], method="BFGS")
        return weakref.ref(f)

    ref = made()
    gc.collect()
    assert ref() is None
    assert few["value_and_gradient"] > 0
    assert not repeated_calls._RECORDS


def test_other_shapes_are_other_programs(few: dict[str, int]) -> None:
    def f(x: Any, a: Any) -> Any:
        return ((x - a) ** 4).sum() + ((x - a) ** 2).sum()

    for n in (2, 3, 2, 4):
        found = optimize.minimize(f, np.zeros(n), (leaf(*range(n)),), "BFGS").x
        np.testing.assert_allclose(found.detach().numpy(), np.arange(n), atol=1e-4)


def test_transforms_and_compiled_functions_around_a_solver(few: dict[str, int]) -> None:
    solve, parameter = SOLVERS["RK45"]
    k = parameter.detach()
    scipy.set_tracing(False)
    expected = solve(k).sum(), pullback.func.grad(lambda k: solve(k).sum())(k)
    batch = pullback.stack([k, 2 * k])
    both = pullback.vmap(solve)(batch)
    scipy.set_tracing(True)
    for _ in range(2):
        np.testing.assert_allclose(pullback.func.grad(lambda k: solve(k).sum())(k).numpy(), expected[1].numpy())
        np.testing.assert_array_equal(pullback.vmap(solve)(batch).numpy(), both.numpy())
        found = pullback.compile(lambda k: solve(k).sum(), backend="numpy")(k)
        np.testing.assert_allclose(found.numpy(), expected[0].numpy())


def test_what_a_function_raises_is_raised(few: dict[str, int]) -> None:
    calls = []

    def f(t: Any, y: Any) -> Any:
        calls.append(t)
        if len(calls) > 50:
            raise ValueError("out of the domain")
        return -y

    with pytest.raises(ValueError, match="out of the domain"):
        integrate.solve_ivp(f, (0, 9.0), [1.0], max_step=0.01)
    assert few["value"] == 0


def test_a_function_of_large_data_is_not_traced(few: dict[str, int]) -> None:
    data = np.ones(20_000)  # a program would compare it in each call

    def f(x: Any) -> Any:
        return ((x - 1) ** 4).sum() * data[0]

    for _ in range(3):
        optimize.minimize(f, [0.0, 0.0], method="BFGS")
    assert not any(few.values())


# Derivatives at the solution ------------------------------------------------------------------------------------------


def pulling(x: Any, a: Any, b: Any) -> Any:
    return ((x[1:] - a * x[:-1] ** 2) ** 2).sum() + ((x - b) ** 2).sum() / 3


FACTOR = 1.0


def scaled(x: Any, a: Any, b: Any) -> Any:
    return FACTOR * a * ((x - 1) ** 4).sum() + ((x - b * FACTOR) ** 2).sum()


@pytest.fixture
def hessians(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One element for each Hessian that is computed as the function is written, or traced."""
    counts: list[int] = []
    before = stationary.jacobian
    monkeypatch.setattr(stationary, "jacobian", lambda f, x: counts.append(1) or before(f, x))  # type: ignore[func-returns-value]
    return counts


def at_minimum(f: Any, a: Any, b: Any, *wanted: Any, method: str = "BFGS") -> Any:
    found = optimize.minimize(f, np.full(5, 0.3), (a, b), method, tol=1e-8)
    return found, grad((found.x * pullback.arange(5)).sum(), wanted)


@pytest.mark.parametrize("compiled", [False, True], ids=["written", "compiled"])
@pytest.mark.parametrize("method", ["BFGS", "CG", "L-BFGS-B", "Newton-CG"])
def test_derivatives_of_minima_are_programs_after_some_solutions(
    method: str, compiled: bool, few: dict[str, int], hessians: list[int]
) -> None:
    f = pullback.compile(pulling, backend="numpy") if compiled else pulling
    counted = []
    for value in (0.5, 0.6, 0.7, 0.8, 0.5, 0.6):
        a, b = leaf(value)[0].detach().requires_grad_(), leaf(0.1, 0.2, 0.3, 0.4, 0.5)
        for wanted in ((a, b), (b,), (a,)):
            scipy.set_tracing(False)
            expected, right = at_minimum(pulling, a, b, *wanted, method=method)
            scipy.set_tracing(True)
            before = len(hessians)
            found, gradients = at_minimum(f, a, b, *wanted, method=method)
            counted.append(len(hessians) - before)
            np.testing.assert_allclose(found.x.detach().numpy(), expected.x.detach().numpy(), rtol=1e-6)
            for g, r in zip(gradients, right, strict=True):
                np.testing.assert_allclose(g.numpy(), r.numpy(), rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(found.gradient_error, expected.gradient_error, rtol=1e-2, atol=1e-9)
    assert sum(counted[:9]) > 0
    assert counted[9:] == [0] * 9


def test_derivatives_are_of_the_function_as_it_was(few: dict[str, int], hessians: list[int]) -> None:
    global FACTOR
    a, b = leaf(0.5)[0].detach().requires_grad_(), leaf(0.0, 0.1, 0.2, 0.3, 0.4)

    def gradients() -> list[Any]:
        global FACTOR
        found = []
        for factor in (1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0):
            FACTOR = factor
            x = optimize.minimize(scaled, np.full(5, 0.3), (a, b), "BFGS", tol=1e-8).x
            FACTOR = 3.0  # the solution has been found with another
            found.append(grad(x.sum(), (a, b)))
        return found

    try:
        scipy.set_tracing(False)
        expected = gradients()
        scipy.set_tracing(True)
        for found, right in zip(gradients(), expected, strict=True):
            for g, r in zip(found, right, strict=True):
                np.testing.assert_allclose(g.numpy(), r.numpy(), rtol=1e-5, atol=1e-7)
    finally:
        FACTOR = 1.0


def test_second_derivatives_and_batches_after_that(few: dict[str, int]) -> None:
    b = leaf(0.1, 0.2, 0.3, 0.4, 0.5).detach()

    def total(a: Any) -> Any:
        return optimize.minimize(pulling, np.full(5, 0.3), (a, b), "BFGS", tol=1e-8).x.sum()

    a, rows = pullback.tensor(0.5, dtype=F64), pullback.tensor([0.5, 0.7], dtype=F64)
    scipy.set_tracing(False)
    expected = pullback.func.hessian(total)(a), pullback.vmap(pullback.func.grad(total))(rows)
    scipy.set_tracing(True)
    for _ in range(5):
        p = a.clone().requires_grad_()
        (g,) = grad(total(p), p, create_graph=True)
        np.testing.assert_allclose(grad(g, p)[0].numpy(), expected[0].numpy(), rtol=1e-4)
        grad(total(p), p)
        np.testing.assert_allclose(pullback.func.hessian(total)(a).numpy(), expected[0].numpy(), rtol=1e-5)
        np.testing.assert_allclose(
            pullback.vmap(pullback.func.grad(total))(rows).numpy(), expected[1].numpy(), rtol=1e-5
        )


def test_a_captured_parameter_of_a_minimum_has_its_gradient(few: dict[str, int]) -> None:
    a = leaf(0.7)

    def f(x: Any, b: Any) -> Any:
        return pulling(x, a[0], b)

    b = leaf(0.1, 0.2, 0.3, 0.4, 0.5)
    scipy.set_tracing(False)
    right = grad(optimize.minimize(f, np.full(5, 0.3), (b,), "BFGS", tol=1e-8).x.sum(), (a, b))
    scipy.set_tracing(True)
    for g in (f, pullback.compile(f, backend="numpy")):
        for _ in range(5):
            found = grad(optimize.minimize(g, np.full(5, 0.3), (b,), "BFGS", tol=1e-8).x.sum(), (a, b))
            for one, other in zip(found, right, strict=True):
                np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)


def test_a_program_that_gives_something_else_is_not_used(
    few: dict[str, int], hessians: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stationary._pulled

    def wrong(which: Any, f: Any, *given: Any) -> Any:
        """Another result in a program."""
        (g,) = before(which, f, *given)
        return (g if open_trace() is None else 2 * g,)

    monkeypatch.setattr(stationary, "_pulled", wrong)
    a, b = leaf(0.5)[0].detach().requires_grad_(), leaf(0.1, 0.2, 0.3, 0.4, 0.5).detach()
    found = [at_minimum(pulling, a, b, a)[1][0].item() for _ in range(6)]
    np.testing.assert_allclose(found, found[0], rtol=1e-6)
    refused = {kind[-1]: record.refused for (_, kind), record in repeated_calls._RECORDS.items()}
    assert refused[("pulled", (True, False))] is True
    assert refused["Hessian"] is False
    assert hessians
