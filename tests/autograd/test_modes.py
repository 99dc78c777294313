"""Grad mode: `no_grad`, `enable_grad`, `set_grad_enabled` in all their uses, and threads.

A mode belongs to a thread. Graphs do not: several threads may build them on the same leaves, and run them at once.
"""

from __future__ import annotations

import functools
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from pullback.autograd import Function, grad
from tests.side_by_side import leaf

wanting: Callable[..., Any] = functools.partial(leaf, pullback)


# Each sets the mode to what is written beside it.
MODES = {
    "no_grad": (no_grad, False),
    "enable_grad": (enable_grad, True),
    "set_grad_enabled(False)": (lambda: set_grad_enabled(False), False),
    "set_grad_enabled(True)": (lambda: set_grad_enabled(True), True),
}


@pytest.fixture(params=MODES.values(), ids=MODES)
def mode(request: pytest.FixtureRequest) -> tuple[Callable[[], Any], bool]:
    """Something that makes a mode, and whether operations are recorded in it."""
    return request.param


@pytest.fixture(params=[True, False], ids=["while recording", "while not recording"])
def outside(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether operations are recorded around the mode that is tested."""
    with set_grad_enabled(request.param):
        yield request.param
        assert is_grad_enabled() == request.param


# as context managers --------------------------------------------------------------------------------------------------


def test_a_mode_holds_within_its_block(mode: Any, outside: bool) -> None:
    make, enabled = mode
    with make() as nothing:
        assert (is_grad_enabled(), nothing) == (enabled, None)
        assert (wanting([1.0]) * 2).requires_grad == enabled
    assert is_grad_enabled() == outside
    assert (wanting([1.0]) * 2).requires_grad == outside


def test_modes_nest(mode: Any, outside: bool) -> None:
    make, enabled = mode
    with make():
        with no_grad():
            with enable_grad():
                assert is_grad_enabled()
                with make():
                    assert is_grad_enabled() == enabled
                assert is_grad_enabled()
            assert not is_grad_enabled()
        assert is_grad_enabled() == enabled


def test_an_exception_leaves_the_mode(mode: Any, outside: bool) -> None:
    make, _ = mode
    with pytest.raises(ArithmeticError), make():
        raise ArithmeticError
    assert is_grad_enabled() == outside


@pytest.mark.parametrize("make", [no_grad, enable_grad])
def test_one_object_can_be_used_again_and_within_itself(make: Any, outside: bool) -> None:
    manager, enabled = make(), make is enable_grad
    for _ in range(2):
        with manager:
            assert is_grad_enabled() == enabled
            with set_grad_enabled(not enabled):
                with manager:
                    assert is_grad_enabled() == enabled
                assert is_grad_enabled() != enabled
            assert is_grad_enabled() == enabled
        assert is_grad_enabled() == outside


def test_what_requires_grad_stays_so_and_new_leaves_may() -> None:
    x = wanting([1.0])
    with no_grad():
        assert x.requires_grad
        assert wanting([1.0]).requires_grad
        assert pullback.ones(2, requires_grad=True).requires_grad
        y = x * 2
        y.requires_grad_()
    (y * x).backward()
    assert (y.grad.item(), x.grad.item()) == (1.0, 2.0)


def test_a_leaf_may_be_written_to_where_nothing_is_recorded() -> None:
    x = wanting([1.0])
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)
    with no_grad():
        x.add_(1)
    assert (x.item(), x.requires_grad, x.is_leaf) == (2.0, True, True)


def test_a_backward_pass_does_not_depend_on_the_mode() -> None:
    x = wanting([2.0])
    y = x**3
    with no_grad():
        (first,) = grad(y, x, create_graph=True)
        assert not is_grad_enabled()
    assert grad(first, x)[0].item() == 12.0


# set_grad_enabled called ----------------------------------------------------------------------------------------------


def test_set_grad_enabled_acts_when_called() -> None:
    set_grad_enabled(False)
    try:
        assert not is_grad_enabled()
        with set_grad_enabled(True):
            assert is_grad_enabled()
        assert not is_grad_enabled()
    finally:
        set_grad_enabled(True)
    assert is_grad_enabled()


def test_entering_it_later_restores_what_was_when_it_was_called() -> None:
    manager = set_grad_enabled(False)
    with enable_grad():
        assert is_grad_enabled()
        with manager:
            assert not is_grad_enabled()
    assert not is_grad_enabled()
    set_grad_enabled(True)


@pytest.mark.parametrize("value", [0, 1, None, "on"], ids=repr)
def test_it_takes_a_bool(value: Any) -> None:
    with pytest.raises(TypeError, match=r"set_grad_enabled\(\).*bool"):
        set_grad_enabled(value)
    assert is_grad_enabled()


# as decorators --------------------------------------------------------------------------------------------------------


def test_a_decorated_function_runs_in_the_mode(mode: Any, outside: bool) -> None:
    make, enabled = mode

    @make()
    def double(x: Any, *, factor: float = 2.0) -> Any:
        """Doubles."""
        return x * factor, is_grad_enabled()

    assert is_grad_enabled() == outside
    assert (double.__name__, double.__doc__) == ("double", "Doubles.")
    for _ in range(2):
        y, inside = double(wanting([1.0]), factor=3.0)
        assert (y.item(), y.requires_grad, inside) == (3.0, enabled, enabled)
        assert is_grad_enabled() == outside


@pytest.mark.parametrize("make", [no_grad, enable_grad])
def test_the_parentheses_may_be_left_out(make: Any, outside: bool) -> None:
    @make
    def double(x: Any) -> Any:
        """Doubles."""
        return x * 2

    assert (double.__name__, double.__doc__) == ("double", "Doubles.")
    assert double(wanting([1.0])).requires_grad == (make is enable_grad)
    assert is_grad_enabled() == outside


def test_methods_can_be_decorated() -> None:
    class Model:
        factor = 2.0

        @no_grad
        def predict(self, x: Any) -> Any:
            return x * self.factor

        @staticmethod
        @enable_grad()
        def train(x: Any) -> Any:
            return x * 2

    assert not Model().predict(wanting([1.0])).requires_grad
    with no_grad():
        assert Model.train(wanting([1.0])).requires_grad


def test_a_decorated_function_may_call_itself_and_raise(mode: Any, outside: bool) -> None:
    make, enabled = mode

    @make()
    def down(n: int) -> list[bool]:
        if n == 0:
            raise ArithmeticError
        seen = [is_grad_enabled()]
        try:
            return seen + down(n - 1)
        except ArithmeticError:
            return [*seen, is_grad_enabled()]

    assert down(3) == [enabled] * 4
    with pytest.raises(ArithmeticError):
        down(0)


def test_a_generators_mode_holds_only_while_it_runs(mode: Any, outside: bool) -> None:
    make, enabled = mode
    seen = []

    @make()
    def numbers(n: int) -> Any:
        try:
            for k in range(n):
                seen.append(is_grad_enabled())
                try:
                    sent = yield k
                    seen.append((sent, is_grad_enabled()))
                except KeyError:
                    seen.append(("thrown", is_grad_enabled()))
        finally:
            seen.append(("end", is_grad_enabled()))
        return "done"

    def around() -> None:
        assert is_grad_enabled() == outside

    generator = numbers(3)
    around()
    assert next(generator) == 0
    around()
    assert generator.send("a") == 1
    around()
    assert generator.throw(KeyError()) == 2
    around()
    with pytest.raises(StopIteration) as stop:
        generator.send("b")
    around()
    assert stop.value.value == "done"
    assert seen == [enabled, ("a", enabled), enabled, ("thrown", enabled), enabled, ("b", enabled), ("end", enabled)]


def test_a_generator_that_is_closed_or_fails_cleans_up_in_its_mode(mode: Any, outside: bool) -> None:
    make, enabled = mode
    seen = []

    @make()
    def fails() -> Any:
        try:
            yield 1
            raise ArithmeticError
        finally:
            seen.append(is_grad_enabled())

    generator = fails()
    next(generator)
    generator.close()
    generator = fails()
    next(generator)
    with pytest.raises(ArithmeticError):
        next(generator)
    assert seen == [enabled, enabled]
    assert is_grad_enabled() == outside


def test_a_mode_that_a_generator_is_in_stays_inside() -> None:
    @no_grad()
    def changes() -> Any:
        yield is_grad_enabled()
        with enable_grad():
            yield is_grad_enabled()
        yield is_grad_enabled()

    assert [(inside, is_grad_enabled()) for inside in changes()] == [(False, True), (True, True), (False, True)]


# threads --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def switching() -> Iterator[None]:
    """Have threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """Run each job in a thread of its own, all from the same moment on; what they return, in their order."""
    start = threading.Barrier(len(jobs))
    results: queue.Queue[tuple[int, Any, BaseException | None]] = queue.Queue()

    def run(k: int, job: Callable[[], Any]) -> None:
        start.wait()
        try:
            results.put((k, job(), None))
        except BaseException as error:
            results.put((k, None, error))

    threads = [threading.Thread(target=run, args=(k, job)) for k, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found: dict[int, Any] = {}
    for _ in jobs:
        k, result, error = results.get_nowait()
        if error is not None:
            raise error
        found[k] = result
    return [found[k] for k in range(len(jobs))]


def test_a_thread_starts_recording_and_keeps_its_mode_to_itself(outside: bool) -> None:
    entered, checked = threading.Event(), threading.Event()

    def inside() -> list[bool]:
        seen = [is_grad_enabled()]
        with set_grad_enabled(not outside):
            seen.append(is_grad_enabled())
            entered.set()
            assert checked.wait(30)
        return seen

    def observer() -> bool:
        assert entered.wait(30)
        checked.set()
        return is_grad_enabled()

    assert together(inside, observer) == [[True, not outside], True]
    assert is_grad_enabled() == outside


def test_graphs_of_many_threads_do_not_disturb_each_other(switching: None) -> None:
    def work(k: int) -> Callable[[], Any]:
        def run() -> Any:
            x = wanting([float(k), 1.0])
            for _ in range(20):
                y = x
                for step in range(20):
                    y = (y * 0.5 + x).sin() if step % 2 else y * x
                y.sum().backward()
            return x.grad.tolist()

        return run

    jobs = [work(k) for k in range(6)]
    assert together(*jobs) == [job() for job in jobs]


def test_leaves_shared_by_threads_lose_no_gradient(switching: None) -> None:
    times, threads = 100, 6
    x, w = wanting(np.ones(2000)), wanting(1.0)

    def run() -> None:
        for _ in range(times):
            (x * w).sum().backward()

    together(*[run] * threads)
    assert x.grad.tolist() == [times * threads] * 2000
    assert w.grad.item() == times * threads * 2000


def test_so_do_first_gradients(switching: None) -> None:
    for _ in range(100):
        x = wanting([1.0])
        together(*[lambda x=x: (x * 2).backward()] * 4)
        assert x.grad.item() == 8.0


def test_threads_that_meet_a_leaf_at_the_same_time_find_one_accumulator(switching: None) -> None:
    for _ in range(200):
        x = wanting([1.0])

        def first_use(x: Any = x) -> Any:
            y = x * 2
            return y, grad(y, x)[0].item()

        found = together(*[first_use] * 4)
        assert [value for _, value in found] == [2.0] * 4
        assert len({y.grad_fn.next_functions[0][0] for y, _ in found}) == 1


def test_a_graph_built_in_one_thread_runs_in_another() -> None:
    x = wanting([2.0])
    ys: queue.Queue[Any] = queue.Queue()

    def build() -> None:
        y = x
        for _ in range(50):
            y = y * 1.5
        ys.put(y)
        ys.put((x * x).sum())

    def run() -> None:
        (ys.get(timeout=30) + ys.get(timeout=30)).backward()

    together(build, run)
    assert x.grad.item() == pytest.approx(1.5**50 + 4.0, rel=1e-12)


def test_one_graph_run_by_many_threads(switching: None) -> None:
    x = wanting([0.5, 2.0])
    y = (x.exp() * x).sum()
    expected = grad(y, x, retain_graph=True)[0].tolist()
    found = together(*[lambda: grad(y, x, retain_graph=True)[0].tolist()] * 8)
    assert found == [expected] * 8


def test_what_a_pass_reaches_for_is_the_threads_own(switching: None) -> None:
    class Watching(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * 1 + y * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            ctx.seen = ctx.needs_input_grad
            return g, g

    def run(which: int) -> Callable[[], set[Any]]:
        def job() -> set[Any]:
            seen = set()
            for _ in range(200):
                leaves = wanting([1.0]), wanting([1.0])
                y = Watching.apply(*leaves)
                grad(y, leaves[which])
                seen.add(y.grad_fn.seen)
            return seen

        return job

    assert together(run(0), run(1), run(0), run(1)) == [{(True, False)}, {(False, True)}] * 2


def test_an_exception_in_one_thread_is_not_seen_by_others(switching: None) -> None:
    class Fails(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, fails: bool) -> Any:
            ctx.fails = fails
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.fails:
                raise ArithmeticError
            return g, None

    def run(fails: bool) -> Callable[[], Any]:
        def job() -> Any:
            x = wanting([1.0])
            for _ in range(100):
                y = Fails.apply(x, fails)
                if fails:
                    with pytest.raises(ArithmeticError):
                        y.backward()
                    assert is_grad_enabled()
                else:
                    y.backward()
            return x.grad and x.grad.item()

        return job

    assert together(run(True), run(False), run(True), run(False)) == [None, 100.0] * 2


# tasks, threads, other modes ------------------------------------------------------------------------------------------


def test_what_set_multithreading_enabled_says_is_remembered() -> None:
    assert pullback.autograd.is_multithreading_enabled()
    with pullback.autograd.set_multithreading_enabled(False):
        assert not pullback.autograd.is_multithreading_enabled()
        with pullback.autograd.set_multithreading_enabled(True).clone():
            assert pullback.autograd.is_multithreading_enabled()
    assert pullback.autograd.is_multithreading_enabled()


def test_a_tensor_that_is_given_the_data_of_an_inference_tensor_keeps_its_gradients() -> None:
    with pullback.inference_mode():
        t = pullback.tensor([1.0, 2.0]) * 2
    w = pullback.zeros(2, requires_grad=True)
    w.data = t
    assert (t.is_inference(), w.is_inference(), w.is_leaf, w.requires_grad) == (True, False, True, True)
    (w * w).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [4.0, 8.0]
    y = (w * w).sum()
    with pullback.no_grad():
        w.add_(1)  # a write that is counted: the node saved the values before it
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
