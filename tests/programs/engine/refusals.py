"""What `backward` and `grad` refuse, what they warn of, and callbacks at the end of a pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tests.side_by_side import constant, function, leaf, programs, refused

PROGRAMS, program = programs()


# refusals -------------------------------------------------------------------------------------------------------------


@program
def calls_that_are_refused(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y, ones, backward, grad = x * 2, constant(lib, [1.0, 1.0]), lib.autograd.backward, lib.autograd.grad
    calls: list[Callable[[], Any]] = [
        lambda: y.backward(),
        lambda: y.backward(constant(lib, [1.0])),
        lambda: y.backward(constant(lib, 1.0)),
        lambda: y.backward(lib.tensor([1j, 1j])),
        lambda: y.backward("x"),
        lambda: y.backward(3.0),
        lambda: y.backward(ones, inputs=[]),
        lambda: ones.backward(),
        lambda: lib.tensor(1).backward(),
        lambda: backward([y, y], [ones]),
        lambda: backward(None),
        lambda: backward([y.sum(), ones.sum()]),
        lambda: grad(y, []),
        lambda: grad(y, None),
        lambda: grad(y, ones, ones),
        lambda: grad(y, [lib.tensor([1])], ones),
        lambda: grad(y, x, ones, allow_unused=False, materialize_grads=True),
        lambda: grad(y.sum(), x, ones),
    ]
    return [refused(call) for call in calls], x.grad


@program
def arguments_of_old(lib: Any) -> Any:
    x, g = leaf(lib, [1.0, 2.0]), constant(lib, [1.0, 10.0])
    y = x * 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lib.autograd.backward(y, None, True, False, g)
        found = lib.autograd.grad(y, x, g, True, False, False, True)
    both = refused(lambda: lib.autograd.backward(y, g, grad_variables=g))
    return x.grad, found, both, [w.category.__name__ for w in caught]


@program
def arguments_by_position(lib: Any) -> Any:
    x, w, g = leaf(lib, [1.0, 2.0]), leaf(lib, [1.0, 1.0]), constant(lib, [1.0, 10.0])
    y = x * w
    lib.autograd.backward([y], [g], True, False, None, [x])
    y.backward(g, True, False, [w])
    batch = lib.autograd.grad(y, x, constant(lib, [[1.0, 0.0], [0.0, 1.0]]), True, False, True, None, True)
    return x.grad, w.grad, batch, lib.autograd.grad(y, [x, leaf(lib, [1.0])], g, None, False, True, True, False, True)


@program
def no_roots(lib: Any) -> Any:
    return lib.autograd.backward([])


@program
def functions_that_return_the_wrong_gradients(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    answers: list[Callable[[Any], Any]] = [
        lambda g: (g, None, None),
        lambda g: (g, g),
        lambda g: (),
        lambda g: 3.0,
        lambda g: (3.0,),
        lambda g: "g",
        lambda g: lib.ones(5),
        lambda g: g.new_zeros(2, 3),
    ]
    found = []
    for answer in answers:
        y = function(lib, lambda ctx, x: x * 2, lambda ctx, g, answer=answer: answer(g)).apply(x)
        found.append(refused(lambda y=y: y.sum().backward()))
    return found, x.grad


@program
def an_error_leaves_the_graph_as_it_was(lib: Any) -> Any:
    fails = [True]

    def backward(ctx: Any, g: Any) -> Any:
        if fails:
            raise ArithmeticError
        return g * ctx.saved_tensors[0]

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**2 / 2

    x = leaf(lib, [3.0])
    y = function(lib, forward, backward).apply(x.exp())
    first = refused(lambda: y.backward(retain_graph=True)), x.grad
    fails.clear()
    y.backward()
    return first, x.grad


@program
def a_backward_that_changes_its_mind_about_modes(lib: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(lib.is_grad_enabled())
        return g * 2

    x = leaf(lib, [1.0])
    y = function(lib, lambda ctx, x: x * 2, backward).apply(x)
    y.backward(retain_graph=True)
    lib.autograd.grad(y, x, create_graph=True)
    with lib.no_grad():
        lib.autograd.grad(y, x, create_graph=True)
        seen.append(lib.is_grad_enabled())
    return seen


# the warning of a recorded backward -----------------------------------------------------------------------------------


@program
def a_recorded_backward_warns(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    always = getattr(lib, "set_warn_always", lambda _: None)
    always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (x**2).backward(create_graph=True)
            lib.autograd.backward(x**2, create_graph=True)
            lib.autograd.grad(x**2, x, create_graph=True)
            (x**2).backward()
    finally:
        always(False)
        x.grad = None
    return [(w.category.__name__, str(w.message)[:42]) for w in caught]


# callbacks ------------------------------------------------------------------------------------------------------------


def queue(lib: Any) -> Callable[[Callable[[], Any]], None]:
    """What queues a callback to the end of the pass."""
    return lib.autograd.Variable._execution_engine.queue_callback  # type: ignore[no-any-return]


@program
def callbacks_run_in_order_at_the_end(lib: Any) -> Any:
    events: list[Any] = []
    x, w = leaf(lib, [1.0]), leaf(lib, [1.0])

    def first() -> None:
        events.append(("first", x.grad, w.grad, lib.is_grad_enabled()))
        queue(lib)(lambda: events.append("third"))

    def hook(g: Any) -> None:
        queue(lib)(first)
        queue(lib)(lambda: events.append("second"))
        events.append("hook")

    y = x * w
    y.register_hook(hook)
    x.register_post_accumulate_grad_hook(lambda t: events.append("accumulated"))
    y.backward()
    (x * w).backward()
    return events


@program
def callbacks_of_an_inner_pass_run_at_its_end(lib: Any) -> Any:
    events: list[Any] = []
    x, w = leaf(lib, [1.0]), leaf(lib, [1.0])

    def hook(g: Any) -> None:
        queue(lib)(lambda: events.append("outer"))
        with lib.enable_grad():
            z = w * 2
            z.register_hook(lambda g: queue(lib)(lambda: events.append("inner")))
            z.backward()
        events.append("after the inner pass")

    x.register_hook(hook)
    (x * 2).backward()
    return events


@program
def a_callback_needs_a_pass(lib: Any) -> Any:
    return queue(lib)(lambda: None)


@program
def a_callback_that_raises(lib: Any) -> Any:
    def callback() -> None:
        raise ArithmeticError

    x = leaf(lib, [1.0])
    x.register_hook(lambda g: queue(lib)(callback))
    return refused(lambda: (x * 2).backward()), x.grad, lib.is_grad_enabled()


@program
def no_callback_after_an_error(lib: Any) -> Any:
    events: list[Any] = []

    def hook(g: Any) -> None:
        queue(lib)(lambda: events.append("called"))
        raise ArithmeticError

    x = leaf(lib, [1.0])
    x.register_hook(hook)
    first = refused(lambda: (x * 2).backward())
    (leaf(lib, [1.0]) * 2).backward()
    return first, events
