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
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import pullback
from pullback.autograd import Function, backward, grad, inner_passes
from tests.programs.engine.threads import around, together
from tests.side_by_side import constant, leaf


@pytest.fixture(autouse=True)
def _in_turn() -> Iterator[None]:
    with around():
        yield


# what ours promises besides -------------------------------------------------------------------------------------------


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
            inner_passes.on_an_empty_stack(work)
        assert ran == [True]  # so it writes to the modes of this thread no more
    finally:
        signal.signal(signal.SIGINT, before)
