"""Threads: forward and backward in many at once, and modes that are each thread's own."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.side_by_side import function, leaf, programs, refused

PROGRAMS, program = programs()


@contextlib.contextmanager
def around() -> Iterator[None]:
    """Threads that give way to each other as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


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


# each with a graph of its own -----------------------------------------------------------------------------------------


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


# one leaf, one graph --------------------------------------------------------------------------------------------------


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


# errors, and threads begun in the middle ------------------------------------------------------------------------------


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


# modes ----------------------------------------------------------------------------------------------------------------


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
