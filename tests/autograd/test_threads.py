"""Threads: forward and backward in many at once, graphs and leaves that several use, modes that are each thread's own.

What a program computes does not depend on how its threads take turns. The programs run in PyTorch, too.
"""

from __future__ import annotations

import contextvars
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import pullback
from pullback.autograd import Function, backward, grad, nesting
from tests.side_by_side import Program, constant, function, leaf, name_of, outcomes, programs, refused

PROGRAMS, program = programs()


def together(*works: Callable[[], Any]) -> list[Any]:
    """What functions return, or the types of what they raise: each in a thread of its own, begun at the same moment."""
    found: list[Any] = [None] * len(works)
    gate = threading.Barrier(len(works))

    def run(i: int) -> None:
        gate.wait()
        try:
            found[i] = works[i]()
        except Exception as error:
            found[i] = type(error).__name__

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return found


@pytest.fixture(autouse=True)
def _in_turn() -> Iterator[None]:
    """Threads that give way to each other as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


# -- each with a graph of its own --------------------------------------------------------------------------------------


@program
def forward_and_backward_in_each(lib: Any) -> Any:
    def work() -> Any:
        x = lib.ones(5, 5, dtype=lib.float64, requires_grad=True)
        for _ in range(20):
            ((x + 3) * (x + 4) * 0.5).sum().backward()
        return x.grad.sum().item()

    return together(*[work] * 6)


@program
def functions_in_each(lib: Any) -> Any:
    def forward(ctx: Any, x: Any, n: int) -> Any:
        ctx.n = n
        ctx.save_for_backward(x)
        return x**n

    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.n * ctx.saved_tensors[0] ** (ctx.n - 1), None

    F = function(lib, forward, backward)

    def work(n: int) -> Any:
        x = leaf(lib, [2.0])
        for _ in range(10):
            F.apply(F.apply(x, n), 2).sum().backward()
        return x.grad

    return together(*[lambda n=n: work(n) for n in range(1, 6)])


@program
def higher_orders_in_each(lib: Any) -> Any:
    def work() -> Any:
        x = leaf(lib, [0.5])
        y = x.sin()
        for _ in range(3):
            (y,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        return y.detach()

    return together(*[work] * 5)


@program
def nested_passes_in_each(lib: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        with lib.enable_grad():
            z = leaf(lib, [2.0])
            (z**2).backward()
        return g * z.grad

    F = function(lib, lambda ctx, x: x * 4, backward)

    def work() -> Any:
        x = leaf(lib, [1.0])
        F.apply(F.apply(x)).backward()
        return x.grad

    return together(*[work] * 5)


# -- one leaf, one graph -----------------------------------------------------------------------------------------------


@program
def one_leaf_in_many_graphs(lib: Any) -> Any:
    x = lib.ones(3, 3, dtype=lib.float64, requires_grad=True)

    def work() -> None:
        for _ in range(50):
            (x**2).sum().backward()

    return together(*[work] * 6), x.grad


@program
def one_graph_in_many_threads(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = x**3
    passes = together(*[lambda: y.backward(retain_graph=True)] * 6)
    return passes, x.grad, together(*[lambda: lib.autograd.grad(y, x, retain_graph=True)] * 4)


@program
def one_graph_that_saves_nothing(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = (x + 1).sum()
    return together(*[y.backward] * 5), x.grad


@program
def parts_made_in_threads(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    z = x.exp()
    a, b, c = together(lambda: z * 3, lambda: z.sin(), lambda: x * z)
    (a + b + c).backward()
    return x.grad


@program
def made_here_and_gone_back_there(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = x**3 * x.exp()
    return together(y.backward), x.grad


@program
def post_accumulation_hooks_of_one_leaf(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [2.0])
    x.register_post_accumulate_grad_hook(lambda t: events.append(t is x))
    together(*[lambda: (x * 2).backward()] * 6)
    return events, x.grad


@program
def hooks_of_many_gradients(lib: Any) -> Any:
    events: list[Any] = []
    x, w = leaf(lib, [2.0]), leaf(lib, [3.0])
    lib.autograd.graph.register_multi_grad_hook((x, w), lambda grads: events.append(len(grads)))
    for _ in range(3):
        together(lambda: (x * w).backward())
    return events, x.grad, w.grad


# -- errors, and threads begun in the middle ---------------------------------------------------------------------------


@program
def an_error_belongs_to_its_thread(lib: Any) -> Any:
    def fails(ctx: Any, g: Any) -> Any:
        raise ArithmeticError

    x = leaf(lib, [1.0])
    bad = function(lib, lambda ctx, x: x * 2, fails)
    found = together(lambda: bad.apply(x).backward(), lambda: (x * 3).backward(), lambda: bad.apply(x).backward())
    return found, x.grad, lib.is_grad_enabled()


@program
def a_thread_within_a_backward(lib: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        def work() -> Any:
            w = leaf(lib, [3.0])
            (w**2).backward()
            return lib.is_grad_enabled(), w.grad

        seen.append((lib.is_grad_enabled(), together(work, work)))
        return g * 2

    x = leaf(lib, [1.0])
    function(lib, lambda ctx, x: x * 2, backward).apply(x).backward()
    return seen, x.grad


@program
def a_thread_within_a_forward(lib: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        seen.extend(together(lambda: (x * 2).requires_grad, lib.is_grad_enabled))
        return x * 2

    function(lib, forward, lambda ctx, g: g).apply(leaf(lib, [1.0]))
    return seen


# -- modes -------------------------------------------------------------------------------------------------------------


@program
def modes_are_each_threads_own(lib: Any) -> Any:
    found: list[Any] = []
    with lib.no_grad():
        found += together(lib.is_grad_enabled)
    with lib.inference_mode():
        found += together(lib.is_inference_mode_enabled)
    together(lambda: lib.set_grad_enabled(False))
    return [*found, lib.is_grad_enabled()]


@program
def hooks_for_saved_tensors_are_each_threads_own(lib: Any) -> Any:
    events: list[Any] = []

    def pack(t: Any) -> Any:
        events.append("packed")
        return t

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        together(lambda: leaf(lib, [1.0]).exp())
    return events


@program
def a_mode_entered_in_one_thread_and_another(lib: Any) -> Any:
    def work() -> Any:
        with lib.no_grad():
            inner = lib.is_grad_enabled()
            with lib.enable_grad():
                deeper = lib.is_grad_enabled()
        return inner, deeper, lib.is_grad_enabled()

    return together(*[work] * 4)


@program
def the_pass_goes_by_the_callers_modes(lib: Any) -> Any:
    seen: list[Any] = []
    x = leaf(lib, [2.0])
    y = x**3
    y.register_hook(lambda g: seen.append(lib.is_grad_enabled()))
    together(lambda: y.backward(retain_graph=True), lambda: lib.autograd.grad(y, x, create_graph=True))
    return sorted(seen)


@program
def callbacks_belong_to_the_pass_of_their_thread(lib: Any) -> Any:
    queue = lib.autograd.Variable._execution_engine.queue_callback
    events: list[Any] = []

    def work() -> None:
        me = threading.get_ident()
        x = leaf(lib, [1.0])
        x.register_hook(lambda g: queue(lambda: events.append(threading.get_ident() == me)))
        (x * 2).backward()

    together(*[work] * 4)
    return events, together(lambda: refused(lambda: queue(lambda: None)))


# -- what ours promises besides ----------------------------------------------------------------------------------------


def test_backward_runs_in_the_callers_thread_and_context() -> None:
    variable = contextvars.ContextVar("variable", default="none")
    seen = []

    class Looks(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append((threading.get_ident(), variable.get(), sys._getframe().f_back is not None))
            return g

    def work() -> None:
        variable.set("mine")
        Looks.apply(leaf(pullback, [1.0])).backward()
        assert (threading.get_ident(), "mine", True) in seen

    work()
    assert together(work, work) == [None, None]


def test_the_users_frames_are_on_the_stack_of_a_hook() -> None:
    names = []
    x = leaf(pullback, [1.0])

    def hook(g: Any) -> None:
        frame = sys._getframe()
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back

    x.register_hook(hook)
    (x * 2).backward()
    assert test_the_users_frames_are_on_the_stack_of_a_hook.__name__ in names


def test_a_leaf_that_many_threads_use_first_has_one_accumulator() -> None:
    for _ in range(50):
        x = leaf(pullback, [1.0])
        made = together(*[lambda x=x: x * 2] * 4)
        assert len({y.grad_fn.next_functions[0][0] for y in made}) == 1


@pytest.mark.parametrize("taped", [False, True])
def test_no_gradient_of_a_shared_leaf_is_lost(taped: bool) -> None:
    x = leaf(pullback, [1.0, 1.0])

    def work() -> None:
        for _ in range(40):
            backward((x * x.detach()).sum(), create_graph=taped)

    assert together(*[work] * 6) == [None] * 6
    assert x.grad.tolist() == [240.0, 240.0]
    x.grad = None


def test_a_graph_dies_in_whatever_thread_lets_it_go() -> None:
    x = leaf(pullback, [1.0])
    y = x
    for _ in range(2000):
        y = y.exp() * 0.1
    alive = weakref.ref(y.grad_fn)
    held = [y]
    del y
    assert together(held.clear) == [None]
    assert alive() is None


def test_second_passes_in_other_threads_are_errors_not_wrong_numbers() -> None:
    x = leaf(pullback, [2.0])
    for _ in range(20):
        x.grad = None
        y = x.exp()
        found = together(*[y.backward] * 3)
        done = found.count(None)
        assert found.count("RuntimeError") == 3 - done
        assert done >= 1
        assert x.grad.item() == pytest.approx(done * y.item())


def test_numbers_of_nodes_are_of_one_sequence() -> None:
    def work() -> Sequence[int]:
        x = leaf(pullback, [1.0])
        return [(x * 2).grad_fn._sequence_nr() for _ in range(200)]

    numbers = [n for found in together(*[work] * 4) for n in found]
    assert len(set(numbers)) == len(numbers)


def test_gradients_of_one_graph_in_threads_do_not_mix() -> None:
    x, w = leaf(pullback, [2.0]), leaf(pullback, [5.0])
    y = x**2 * w

    def by(t: Any) -> Any:
        return [grad(y, t, retain_graph=True)[0].item() for _ in range(30)]

    assert together(*[lambda: by(x), lambda: by(w)] * 2) == [[20.0] * 30, [4.0] * 30] * 2


def test_a_write_in_one_thread_is_noticed_in_another() -> None:
    x = constant(pullback, [2.0]).requires_grad_()
    t = x * 1
    y = t.exp() * t
    together(lambda: t.add_(1))
    assert together(lambda: y.backward()) == ["RuntimeError"]


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_as_torch_does(program: Program) -> None:
    ours, torchs = outcomes(program)
    assert ours == torchs


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_a_nested_pass_that_is_interrupted_ends_before_its_thread_goes_on() -> None:
    handled, ran = threading.Event(), []

    def interrupt(*args: Any) -> None:
        handled.set()
        raise KeyboardInterrupt

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        handled.wait(5)
        for _ in range(100_000):  # the other thread has time to go on, if it does not wait
            pass
        ran.append(True)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            nesting.on_an_empty_stack(work)
        assert ran == [True]  # so it writes to the modes of this thread no more
    finally:
        signal.signal(signal.SIGINT, before)
