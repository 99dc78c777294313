"""The engine's contract, clause by clause: order, nested passes, what runs, what arrives, errors, callbacks, freeing.

The programs write down what happens; they run in PyTorch, too, and have to come to the same. What the engine computes
is in test_engine.py, hooks are in test_hooks.py.
"""

from __future__ import annotations

import contextvars
import copy
import gc
import itertools
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback
from pullback.autograd import Function
from tests.side_by_side import Program, constant, function, leaf, name_of, outcomes, programs, refused

PROGRAMS, program = programs()


def noting(lib: Any, events: list[Any], name: str, factor: float = 1.0) -> Callable[[Any], Any]:
    """A Function that multiplies by a factor, and notes when its backward runs."""

    def backward(ctx: Any, g: Any) -> Any:
        events.append(name)
        return g * factor

    return function(lib, lambda ctx, x: x * factor, backward).apply  # type: ignore[no-any-return]


# -- order -------------------------------------------------------------------------------------------------------------


@program
def the_newest_node_that_is_ready_runs_first(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    a = noting(lib, events, "a")(x)
    b = noting(lib, events, "b")(x)
    c = noting(lib, events, "c")(a)
    d = noting(lib, events, "d")(b)
    (d + c + a + b).backward()
    return events, x.grad


@program
def the_order_of_roots_does_not_count(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    a, b, c = (noting(lib, events, n)(x) for n in "abc")
    lib.autograd.backward([b, a, c])
    return events


@program
def a_node_waits_for_a_long_way_round(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = noting(lib, events, "y")(x)
    z = y
    for i in range(5):
        z = noting(lib, events, f"z{i}", 2.0)(z)
    (noting(lib, events, "late")(y) + z).backward()
    return events, x.grad


@program
def a_root_within_the_graph_of_another(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = noting(lib, events, "y", 2.0)(x)
    z = noting(lib, events, "z", 3.0)(y)
    lib.autograd.backward([y, z])
    return events, x.grad


@program
def each_node_runs_once_for_all_its_outputs(lib: Any) -> Any:
    events: list[Any] = []

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        events.append((g, h))
        return g * 2 + h * 3

    x = leaf(lib, [1.0])
    a, b = function(lib, lambda ctx, x: (x * 2, x * 3), backward).apply(x)
    (a * 5 + b + a).backward()
    return events, x.grad


@program
def leaves_accumulate_once_and_in_order(lib: Any) -> Any:
    events: list[Any] = []
    xs = [leaf(lib, [float(i + 1)]) for i in range(4)]
    for i, x in enumerate(xs):
        x.register_post_accumulate_grad_hook(lambda t, i=i: events.append((i, t.grad)))
    y = xs[0] * xs[1]
    z = y * xs[2]
    y.register_hook(lambda g: events.append("y"))
    z.register_hook(lambda g: events.append("z"))
    (z * xs[3] + xs[0]).backward()
    return events


# -- passes within passes ----------------------------------------------------------------------------------------------


@program
def a_backward_that_calls_backward(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        with lib.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.w = constant(lib, [[2.0, 3.0]]).requires_grad_()
            ctx.out = ctx.x * ctx.w
        return ctx.out.detach()

    def backward(ctx: Any, g: Any) -> Any:
        with lib.enable_grad():
            ctx.out.sum().backward()
        return ctx.x.grad * g

    x = leaf(lib, [[1.0, 1.0]])
    function(lib, forward, backward).apply(x).sum().backward()
    return x.grad, lib.is_grad_enabled()


@program
def the_inner_pass_runs_before_what_was_pending(lib: Any) -> Any:
    events: list[Any] = []
    plain = noting(lib, events, "plain")

    def backward(ctx: Any, g: Any) -> Any:
        events.append("nested")
        if len(events) < 20:
            with lib.enable_grad():
                (nested(leaf(lib, [1.0])) * plain(leaf(lib, [2.0]))).backward()
        events.append("end")
        return g

    nested = function(lib, lambda ctx, x: x * 1, backward).apply
    (plain(leaf(lib, [6.0])) * nested(leaf(lib, [9.0]))).backward()
    return events


@program
def a_hook_that_calls_backward(lib: Any) -> Any:
    found = []
    x, w = leaf(lib, [1.0]), leaf(lib, [3.0])

    def hook(g: Any) -> None:
        with lib.enable_grad():
            w.pow(2).sum().backward()

    y = x * 2
    x.register_hook(hook)
    y.register_hook(hook)
    y.sum().backward()
    found.append(w.grad)
    (x * 4).sum().backward()
    return found, w.grad, x.grad


@program
def a_pass_within_a_pass_that_reaches_for_some_inputs(lib: Any) -> Any:
    events: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        with lib.enable_grad():
            v = leaf(lib, [2.0])
            (inner,) = lib.autograd.grad(v**3, v)
            (v * noting(lib, events, "inner")(v)).backward()
        return g * inner + v.grad

    x, w = leaf(lib, [1.0]), leaf(lib, [1.0])
    y = function(lib, lambda ctx, x: x * 1, backward).apply(x) * noting(lib, events, "outer")(w)
    return lib.autograd.grad(y, x), events


@program
def an_inner_pass_that_fails(lib: Any) -> Any:
    def fails(g: Any) -> None:
        raise ArithmeticError("inner")

    def backward(ctx: Any, g: Any) -> Any:
        with lib.enable_grad():
            x = leaf(lib, [1.0])
            x.register_hook(fails)
            (x * 2).backward()
        return g

    x = leaf(lib, [1.0])
    y = function(lib, lambda ctx, x: x * 2, backward).apply(x)
    return refused(y.backward), x.grad, lib.is_grad_enabled()


@program
def the_same_graph_in_the_inner_pass(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = x**3

    def backward(ctx: Any, g: Any) -> Any:
        return g * lib.autograd.grad(y, x, retain_graph=True)[0]

    function(lib, lambda ctx, x: x * 1, backward).apply(y).backward()
    return x.grad


def countdown(lib: Any, depth: int) -> Any:
    """The gradient of a Function whose backward calls itself `depth` times, each in a backward pass of its own."""

    def forward(ctx: Any, x: Any) -> Any:
        with lib.enable_grad():
            ctx.rest = x.detach().requires_grad_() - 1
        return ctx.rest.detach()

    def backward(ctx: Any, g: Any) -> Any:
        if ctx.rest < 0:
            return g
        with lib.enable_grad():
            F.apply(ctx.rest).sum().backward()
        return g

    F = function(lib, forward, backward)
    x = lib.tensor(float(depth), requires_grad=True)
    F.apply(x).sum().backward()
    return x.grad


@program
def passes_nest_2000_deep(lib: Any) -> Any:
    return countdown(lib, 2000)


def test_deep_passes_keep_modes_and_context_and_raise_through() -> None:
    variable = contextvars.ContextVar("variable", default=0)
    seen = []

    class Nested(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, depth: int) -> Any:
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.depth:
                with pullback.enable_grad():
                    Nested.apply(leaf(pullback, [1.0]), ctx.depth - 1).backward()
            else:
                seen.append((variable.get(), pullback.is_anomaly_enabled(), threading.current_thread() is main))
                raise ArithmeticError("at the bottom")
            return g, None

    main = threading.current_thread()
    variable.set(7)
    before = threading.active_count()
    depth = sys.getrecursionlimit() // 4
    with warnings.catch_warnings(action="ignore"), pullback.autograd.detect_anomaly():
        y = Nested.apply(leaf(pullback, [1.0]), depth)
        with pytest.raises(ArithmeticError, match="at the bottom"):
            y.backward()
    assert seen == [(7, True, False)]
    assert threading.active_count() == before
    assert pullback.is_grad_enabled()


def test_passes_that_nest_a_little_stay_in_the_callers_thread() -> None:
    seen = []

    class Nested(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(threading.current_thread())
            if len(seen) < 10:
                with pullback.enable_grad():
                    Nested.apply(leaf(pullback, [1.0])).backward()
            return g

    Nested.apply(leaf(pullback, [1.0])).backward()
    assert set(seen) == {threading.current_thread()}
    assert len(seen) == 10


# -- what runs ---------------------------------------------------------------------------------------------------------


@program
def what_does_not_lead_to_the_inputs_does_not_run(lib: Any) -> Any:
    events: list[Any] = []
    x, y = leaf(lib, [1.0]), leaf(lib, [2.0])
    inner = noting(lib, events, "y", 3.0)(y)
    z = noting(lib, events, "x", 2.0)(x) * inner
    found = lib.autograd.grad(z, inner, retain_graph=True), list(events)
    z.backward(inputs=[y])
    return found, events, x.grad, y.grad


@program
def what_lies_behind_an_inner_input_does_not_run(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    a = noting(lib, events, "a", 2.0)(x)
    b = noting(lib, events, "b", 3.0)(a)
    c = noting(lib, events, "c", 4.0)(b)
    first = lib.autograd.grad(c, b, retain_graph=True), list(events)
    events.clear()
    second = lib.autograd.grad(c, [b, a], retain_graph=True), list(events)
    events.clear()
    return first, second, lib.autograd.grad(c, [c], retain_graph=True), events, lib.autograd.grad(c, [x, b])


@program
def saved_values_of_what_did_not_run_are_kept(lib: Any) -> Any:
    x, y = leaf(lib, [1.0]), leaf(lib, [2.0])
    a, b = x.exp(), y.exp()
    lib.autograd.grad(a * 1 + b * 1, b)
    return refused(lambda: b.backward()), lib.autograd.grad(a, x)


@program
def inner_inputs_of_backward_accumulate(lib: Any) -> Any:
    x, w = leaf(lib, [2.0]), leaf(lib, [3.0])
    a, b = x**2, w**2
    out = a * b
    out.backward(inputs=[a, w], retain_graph=True)
    out.backward(inputs=[a, b])
    return x.grad, w.grad, a.grad, b.grad


@program
def inputs_named_twice(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    y.backward(inputs=[x, x], retain_graph=True)
    return x.grad, lib.autograd.grad(y, [x, x])


@program
def roots_named_twice(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    lib.autograd.backward([y, y], retain_graph=True)
    return x.grad, lib.autograd.grad([y, y], x)


@program
def a_root_among_the_inputs(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x.exp()
    return lib.autograd.grad(x, x), lib.autograd.grad([y, x], [y, x], retain_graph=True), lib.autograd.grad(y, y)


@program
def a_leaf_as_root(lib: Any) -> Any:
    x, g = leaf(lib, [1.0]), constant(lib, [5.0])
    x.backward(g)
    x.backward()
    g.mul_(100)
    return x.grad


@program
def several_outputs_of_one_node(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0, 3.0])
    a, b, c = x.unbind()
    return lib.autograd.grad([a, c], x, [constant(lib, 2.0), None], retain_graph=True), lib.autograd.grad(b * c, [b, c])


@program
def unused_inputs(lib: Any) -> Any:
    x, y = leaf(lib, [1.0]), leaf(lib, [[2.0, 3.0]])
    z = x * 2

    def of(**options: Any) -> Any:
        return lib.autograd.grad(z, [x, y], retain_graph=True, **options)

    return refused(of), of(allow_unused=True), of(materialize_grads=True), of(allow_unused=True, materialize_grads=True)


@program
def a_gradient_that_comes_to_nothing(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = function(lib, lambda ctx, x: x * 2, lambda ctx, g: None).apply(x)

    def of(**options: Any) -> Any:
        return lib.autograd.grad(y, x, retain_graph=True, **options)

    y.backward(retain_graph=True)
    return refused(of), of(allow_unused=True), of(materialize_grads=True), x.grad


@program
def a_gradient_that_comes_one_of_two_ways(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 3
    nothing = function(lib, lambda ctx, x: x * 2, lambda ctx, g: None).apply
    (nothing(y) + y).backward()
    return x.grad


@program
def integers_and_what_is_not_differentiable(lib: Any) -> Any:
    x = leaf(lib, [1.5])
    found = [x.long(), x > 1, x.argmax(), x.round(), x.sign()]
    total = (x * x.long() + x.floor()).sum()
    total.backward()
    return [(t.requires_grad, t.grad_fn is None) for t in found], x.grad


# -- gradients that arrive ---------------------------------------------------------------------------------------------


@program
def gradients_accumulate_in_place(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    (x * 2).backward()
    g, version = x.grad, x.grad._version
    (x * 3).backward()
    return g is x.grad, g, g._version > version, g.requires_grad, g.is_leaf


@program
def a_recorded_pass_replaces_the_gradient(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    (x * 2).backward()
    g = x.grad
    (x**2).backward(create_graph=True)
    found = g is x.grad, g, x.grad
    x.grad = None
    return found


@program
def a_pass_after_a_recorded_one(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    (x**3).backward(create_graph=True)
    g = x.grad
    (x**2).backward()
    found = g is x.grad, x.grad.detach(), g.detach(), x.grad.requires_grad
    x.grad = None
    return found


@program
def gradients_of_leaves_are_their_own(lib: Any) -> Any:
    x, y = leaf(lib, [1.0]), leaf(lib, [1.0])
    g = constant(lib, [1.0])
    (x + y).backward(g)
    x.grad.mul_(3)
    return x.grad, y.grad, g


@program
def the_gradient_of_a_sum_can_be_written_to(lib: Any) -> Any:
    x = lib.ones(3, 2, dtype=lib.float64, requires_grad=True)
    x.sum().backward()
    x.grad[0, 0] = 5
    return x.grad, x.grad.stride(), x.grad.is_contiguous()


@program
def a_retained_gradient_is_its_own(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x + 0
    y.retain_grad()
    y.backward()
    y.grad.mul_(3)
    return x.grad, y.grad


@program
def the_gradient_has_the_leafs_dtype(lib: Any) -> Any:
    x, z = leaf(lib, [1.0], "float32"), lib.tensor([1.0 + 2.0j], requires_grad=True)
    x.double().sum().backward()
    wide = function(lib, lambda ctx, x: x * 2, lambda ctx, g: g.double()).apply(x)
    wide.backward()
    (z * 2).real.sum().backward()
    return x.grad, z.grad


@program
def the_gradient_given_may_be_of_another_dtype(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    (x * 2).backward(lib.tensor([1, 2]))
    (x * 2).backward(constant(lib, [1.0, 2.0], "float32"))
    return x.grad


@program
def a_gradient_is_set_cleared_and_deleted(lib: Any) -> Any:
    x, own = leaf(lib, [1.0]), constant(lib, [10.0])
    x.grad = own
    (x * 2).backward()
    found = [x.grad is own, x.grad.clone()]
    x.grad = None
    (x * 2).backward()
    found.append(x.grad)
    del x.grad
    found.append(x.grad)
    del x.grad
    (x * 2).backward()
    return found, x.grad


@program
def what_cannot_be_set_as_a_gradient(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    values = [constant(lib, [1.0, 2.0]), constant(lib, [1.0], "float32"), lib.tensor([1]), 0, [1.0], x, "g"]
    return [refused(lambda v=v: setattr(x, "grad", v)) for v in values], x.grad


@program
def an_inner_tensors_gradient_can_be_set(lib: Any) -> Any:
    y = leaf(lib, [1.0]) * 2
    y.grad = constant(lib, [3.0])
    (y * 2).backward()
    return y.grad


@program
def reading_an_inner_gradient_warns_once_it_is_not_retained(lib: Any) -> Any:
    y = leaf(lib, [1.0]) * 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y.grad  # noqa: B018 - reading is what warns
        first = len(caught)
        y.retain_grad()
        y.grad  # noqa: B018
    return first, len(caught)


@program
def a_leaf_that_no_longer_requires_grad(lib: Any) -> Any:
    x, w = leaf(lib, [1.0]), leaf(lib, [1.0])
    y = x * w
    x.requires_grad_(False)
    y.backward()
    return x.grad, w.grad, refused(lambda: (w * 2).requires_grad_(False))


@program
def empty_tensors_have_gradients(lib: Any) -> Any:
    x = lib.ones(0, 3, dtype=lib.float64, requires_grad=True)
    (x * 2).sum().backward()
    a, b = lib.ones(4, 0, dtype=lib.float64, requires_grad=True), leaf(lib, [[1.0], [2.0], [3.0], [4.0]])
    (a + b).sum().backward()
    return x.grad, a.grad, b.grad


@program
def a_gradient_stays_the_object_where_it_can_hold_the_sum(lib: Any) -> Any:
    def made(sparse: bool) -> Any:
        if not sparse:
            return lib.tensor([1.5, 1.5])
        return lib.sparse_coo_tensor(lib.tensor([[0, 1]]), lib.tensor([1.0, 1.0]), (2,))

    found = []
    for held_sparse, sparse, taped in itertools.product([False, True], repeat=3):
        x = lib.tensor([1.5, 1.5], requires_grad=True)
        x.grad = held = made(held_sparse)
        x.backward(made(sparse), create_graph=taped)
        found.append((x.grad is held, x.grad.is_sparse, x.grad.to_dense() if x.grad.is_sparse else x.grad))
    return found


# -- gradients in batches ----------------------------------------------------------------------------------------------


@program
def gradients_in_batches(lib: Any) -> Any:
    x, w = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0])
    y, rows = x**2 * w, constant(lib, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    return lib.autograd.grad(y, [x, w], rows, is_grads_batched=True)


@program
def recorded_gradients_in_batches(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    (first,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first, x, constant(lib, [[1.0, 0.0], [0.0, 1.0]]), None, True, is_grads_batched=True)
    return second, lib.autograd.grad(second.sum(), x)


@program
def batches_with_unused_inputs(lib: Any) -> Any:
    x, w = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0])
    y, rows = x**2, constant(lib, [[1.0, 0.0], [0.0, 1.0]])

    def of(**options: Any) -> Any:
        return lib.autograd.grad(y, [x, w], rows, retain_graph=True, is_grads_batched=True, **options)

    return refused(of), of(allow_unused=True)


@program
def what_is_no_batch(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y = x**2

    def of(*rows: Any) -> Any:
        return refused(lambda: lib.autograd.grad([y] * len(rows), x, rows, is_grads_batched=True))

    scalar = refused(lambda: lib.autograd.grad(y.sum(), x, is_grads_batched=True))
    return scalar, of(constant(lib, [1.0, 1.0])), of(constant(lib, [[1.0, 1.0]]), constant(lib, [[1.0, 1.0]] * 2))


@program
def a_batch_is_one_pass(lib: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(("backward", tuple(g.shape)))
        return g * 3 * ctx.saved_tensors[0] ** 2

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    x = leaf(lib, [1.0, 2.0])
    y = function(lib, forward, backward).apply(x)
    y.register_hook(lambda g: seen.append(("y", tuple(g.shape))))
    x.register_hook(lambda g: seen.append(("x", tuple(g.shape))))
    y.grad_fn.register_hook(lambda sent, got: seen.append(("node", tuple(sent[0].shape), tuple(got[0].shape))))
    return lib.autograd.grad(y, x, constant(lib, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), is_grads_batched=True), seen


@program
def a_batch_has_no_one_value(lib: Any) -> Any:
    x, rows = leaf(lib, [1.0, 2.0]), constant(lib, [[1.0, 0.0], [0.0, 1.0]])
    looks = function(lib, lambda ctx, x: x * 2, lambda ctx, g: 2 * g if g.sum() > 0 else g)
    leaves_for_numpy = function(lib, lambda ctx, x: x * 2, lambda ctx, g: lib.from_numpy(2 * g.numpy()))
    return [
        refused(lambda f=f: lib.autograd.grad(f.apply(x), x, rows, is_grads_batched=True))
        for f in (looks, leaves_for_numpy)
    ]


def _cube_in_numpy() -> Any:
    @pullback.autograd.function.once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return pullback.from_numpy(3 * ctx.x**2 * g.numpy()), None

    def forward(ctx: Any, x: Any, other: Any) -> Any:
        ctx.x = x.detach().numpy()
        return pullback.from_numpy(ctx.x**3)

    return function(pullback, forward, backward)


def test_a_backward_marked_once_differentiable_is_called_for_each_row_of_a_batch() -> None:
    x = leaf(pullback, [1.0, 2.0])
    y, rows = _cube_in_numpy().apply(x, leaf(pullback, [1.0])), constant(pullback, [[1.0, 0.0], [0.0, 1.0]])
    (found,) = pullback.autograd.grad(y, x, rows, is_grads_batched=True, create_graph=True)
    assert found.tolist() == [[3.0, 0.0], [0.0, 12.0]]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        pullback.autograd.grad((found + x).sum(), x)


def test_a_tensor_that_retains_its_gradient_gets_the_sum_over_a_batch() -> None:
    x = leaf(pullback, [1.0, 2.0])
    y = x * 2
    y.retain_grad()
    pullback.autograd.grad(y**2, x, constant(pullback, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), is_grads_batched=True)
    assert y.grad.tolist() == [8.0, 16.0]


# -- refusals ----------------------------------------------------------------------------------------------------------


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


def test_errors_name_the_node_and_what_to_do() -> None:
    x = leaf(pullback, [1.0, 2.0])
    y = function(pullback, lambda ctx, a, b: a * b, lambda ctx, g: (g,)).apply(x, x)
    with pytest.raises(RuntimeError, match=r"FBackward.*expected 2, got 1.*\n.*F.forward \(a, b\)"):
        y.sum().backward()
    z = x.exp()
    z.sum().backward()
    with pytest.raises(RuntimeError, match=r"(?s)a second time.*ExpBackward0.*retain_graph=True"):
        z.sum().backward()


# -- the warning of a recorded backward --------------------------------------------------------------------------------


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


def test_the_warning_points_at_the_callers_line() -> None:
    x = leaf(pullback, [1.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (x**2).backward(create_graph=True)
    x.grad = None
    assert [w.filename for w in caught] == [__file__]


# -- callbacks ---------------------------------------------------------------------------------------------------------


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


# -- graphs that die ---------------------------------------------------------------------------------------------------

N = 150_000


class Twice(Function):
    """2 x, which saves its input."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Pair(Function):
    """Two outputs, and its input kept as an attribute."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x = x
        return x * 1, x * 2

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        return a


STEPS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "operations that save": (N, lambda y: y.exp()),
    "operations that save nothing": (N, lambda y: y + 1),
    "two ways": (N, lambda y: y + y),
    "functions": (N, Twice.apply),
    "functions of several outputs": (N, lambda y: Pair.apply(y)[0]),
    "views": (N // 4, lambda y: y.view(1)),
    "operations of several outputs": (N // 4, lambda y: y.sort()[0]),
    "pieces": (N // 4, lambda y: y.unbind()[0].reshape(1)),
    "joins": (N // 4, lambda y: pullback.cat([y, y])[:1]),
    "writes in place": (N // 4, lambda y: y.mul_(1.0)),
}


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """Without the garbage collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def chain(n: int, step: Callable[[Any], Any]) -> tuple[Any, Callable[[], Any]]:
    """The end of a chain of `n` steps, and a weak reference to its first node."""
    y = leaf(pullback, [1.0], "float32") * 1
    first = weakref.ref(y.grad_fn)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        for _ in range(n):
            y = step(y)
    return y, first


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("name", STEPS)
def test_a_deep_graph_dies_by_reference_count(name: str) -> None:
    y, first = chain(*STEPS[name])
    assert first() is not None
    del y
    assert first() is None


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("step", [STEPS["operations that save"][1], Twice.apply], ids=["operations", "functions"])
def test_a_deep_graph_may_die_anywhere(step: Callable[[Any], Any]) -> None:
    y, first = chain(N, step)
    held = [y]
    del y
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert first() is None

    def generator() -> Iterator[Any]:
        y, first = chain(N, step)
        yield first
        y.sum()

    going = generator()
    first = next(going)
    going.close()
    assert first() is None


def test_a_deep_graph_in_a_cycle_is_collected() -> None:
    y, first = chain(N, Twice.apply)
    cycle: list[Any] = [y]
    cycle.append(cycle)
    del y, cycle
    gc.collect()
    assert first() is None


@pytest.mark.usefixtures("_no_collector")
def test_a_wide_graph_dies_by_reference_count() -> None:
    # each node is used by some of the next three
    recent = [leaf(pullback, [1.0], "float32") * 1 for _ in range(3)]
    first = weakref.ref(recent[0].grad_fn)
    for i in range(N // 2):
        recent.append((recent[0] + recent[1]) * 0.5)
        del recent[(i * 7) % 3]
    recent.clear()
    assert first() is None


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("taped", [False, True])
def test_a_deep_graph_that_ran_dies_by_reference_count(taped: bool) -> None:
    x = leaf(pullback, [1.0], "float32")
    y = x * 1
    first = weakref.ref(y.grad_fn)
    for _ in range(N // 10):
        y = y * x
    (g,) = pullback.autograd.grad(y, x, create_graph=taped)
    assert g.item() == N // 10 + 1
    newest = weakref.ref(g.grad_fn) if taped else first
    del y, g
    assert (first(), newest()) == (None, None)


@pytest.mark.usefixtures("_no_collector")
def test_a_backward_in_a_destructor() -> None:
    class Runs:
        def __init__(self, y: Any) -> None:
            self.y = y

        def __del__(self) -> None:
            self.y.backward()

    def backward(ctx: Any, g: Any) -> Any:
        ctx.held = None  # here another pass begins and ends
        return g

    inner, x = leaf(pullback, [1.0]), leaf(pullback, [2.0])
    y = function(pullback, lambda ctx, x: x * 1, backward).apply(x)
    y.grad_fn.held = Runs((inner * 5).sum())
    y.backward()
    del y
    assert (x.grad.item(), inner.grad.item()) == (1.0, 5.0)


# -- a gradient of None is delivered as such ---------------------------------------------------------------------------
# The nodes behind it run (a Function's backward gets zeros, or None if it does not materialise; an operation sends on
# Nones), and their hooks are called with None.


def nothing(lib: Any) -> Any:
    return function(lib, lambda ctx, x: x * 2, lambda ctx, g: None).apply


@program
def hooks_are_called_with_none(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = x * 1
    y.register_hook(lambda g: events.append(("y", g)))
    y.grad_fn.register_prehook(lambda got: events.append(("before y", got)))
    y.grad_fn.register_hook(lambda sent, got: events.append(("after y", sent, got)))
    y.retain_grad()
    x.register_hook(lambda g: events.append(("x", g)))
    x.register_post_accumulate_grad_hook(lambda t: events.append(("x accumulated", t.grad)))
    nothing(lib)(y).backward()
    return events, x.grad, y.grad


@program
def a_function_behind_none_gets_zeros(lib: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(g)
        return g * 3

    x = leaf(lib, [1.0])
    nothing(lib)(function(lib, lambda ctx, x: x * 3, backward).apply(x) * 2).backward()
    return seen, x.grad


@program
def a_function_behind_none_that_does_not_materialise(lib: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 3

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(g)

    x = leaf(lib, [1.0])
    nothing(lib)(function(lib, forward, backward).apply(x)).backward()
    return seen, x.grad


@program
def a_post_hook_that_takes_the_gradient_away(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = x * 1
    z = y.exp()
    z.grad_fn.register_hook(lambda sent, got: (None,))
    y.grad_fn.register_hook(lambda sent, got: events.append((sent, got)))
    x.register_hook(lambda g: events.append(g))
    z.backward()
    return events, x.grad


@program
def a_prehook_that_takes_the_gradient_away(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0])
    y = x.exp()
    y.grad_fn.register_prehook(lambda got: (None,))
    y.grad_fn.register_hook(lambda sent, got: events.append((sent, got)))
    x.register_hook(lambda g: events.append(g))
    y.backward()
    return events, x.grad


@program
def a_prehook_before_a_function_that_takes_the_gradient_away(lib: Any) -> Any:
    seen: list[Any] = []
    x = leaf(lib, [1.0])
    y = function(lib, lambda ctx, x: x * 2, lambda ctx, g: (seen.append(g), g * 2)[1]).apply(x)
    y.grad_fn.register_prehook(lambda got: (None,))
    y.backward()
    return seen, x.grad


@program
def hooks_of_the_other_output(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [1.0, 2.0])
    a, b = (x * 1).unbind()
    a.register_hook(lambda g: events.append(("a", g)))
    b.register_hook(lambda g: events.append(("b", g)))
    a.backward()
    return events, x.grad


@program
def a_leaf_waits_for_a_consumer_that_sends_none(lib: Any) -> Any:
    # the accumulator runs when its last consumer has run, whatever that sends; its hooks are called once
    events: list[Any] = []
    x, w = leaf(lib, [[1.0, 2.0]]), leaf(lib, [[3.0], [4.0]])

    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x @ w

    def backward(ctx: Any, g: Any) -> Any:
        events.append("product")
        return g @ ctx.saved_tensors[1].t(), None

    end = w.view_as(w).grad_fn.next_functions[0][0]
    end.register_hook(lambda sent, got: events.append("accumulator"))
    x = x * 1
    x.grad_fn.register_hook(lambda sent, got: events.append("x"))
    function(lib, forward, backward).apply(x, w).sum().backward()
    return events, w.grad


# -- the gradient of a leaf lies in memory as the leaf does ------------------------------------------------------------
# AccumulateGrad takes an incoming array over only if its strides are the leaf's (the leaf not overlapping and dense);
# else it copies into memory laid out like the leaf.


@program
def strides_of_a_gradient(lib: Any) -> Any:
    x = lib.ones(3, 2, dtype=lib.float64, requires_grad=True)
    w = lib.arange(6.0, dtype=lib.float64).reshape(2, 3)
    (x.t() * w).sum().backward()
    y = lib.ones(3, 2, dtype=lib.float64).t().requires_grad_()
    (y * w).sum().backward()
    z = lib.ones(3, 2, dtype=lib.float64).t().requires_grad_()
    z.sum().backward()
    return x.grad.stride(), y.grad.stride(), z.grad.stride()


# -- the dtype of a leaf's gradient ------------------------------------------------------------------------------------


def _doubled(lib: Any) -> Any:
    """A Function, 2 x, whose backward gives a gradient in double precision."""
    return function(lib, lambda ctx, x: x * 2, lambda ctx, g: g.to(lib.float64)).apply


def _in_dtype(dtype: str | None, pass_: Callable[..., Any]) -> Program:
    def runs(lib: Any) -> Any:
        x = leaf(lib, [1.0, 2.0], "float32")
        if dtype is not None:
            x.grad_dtype = getattr(lib, dtype, None)
        return str(x.grad_dtype).rpartition(".")[2], pass_(lib, x)

    runs.__name__ = f"a gradient of dtype {dtype}, {pass_.__name__}"
    return runs


def accumulated(lib: Any, x: Any) -> Any:
    _doubled(lib)(x).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    return first is x.grad, x.grad


def returned(lib: Any, x: Any) -> Any:
    return lib.autograd.grad(_doubled(lib)(x).sum() + (x * 3).sum(), x)


def hooked(lib: Any, x: Any) -> Any:
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g))
    _doubled(lib)(x).sum().backward()
    return seen, x.grad


def recorded(lib: Any, x: Any) -> Any:
    (g,) = lib.autograd.grad((_doubled(lib)(x) * x).sum(), x, create_graph=True)
    return g, lib.autograd.grad(g.sum(), x)


def summed_away(lib: Any, x: Any) -> Any:
    (x + constant(lib, [[1.0], [2.0]])).sum().backward()
    return x.grad


for _pass in (accumulated, returned, hooked, recorded, summed_away):
    PROGRAMS += [_in_dtype(dtype, _pass) for dtype in (None, "any", "float32", "float64", "float16")]


@program
def which_dtype_of_a_gradient_may_be_set(lib: Any) -> Any:
    x, numbers = leaf(lib, [1.0, 2.0], "float32"), lib.tensor([1, 2])

    def put(name: str, t: Any, value: Any) -> str:
        return refused(lambda: setattr(t, name, value))

    found = [put("grad_dtype", x, "float64"), put("grad_dtype", x * 2, lib.float64)]
    found += [refused(lambda: (x * 2).grad_dtype)]
    found += [put("grad", x, constant(lib, [1.0, 2.0])), put("grad_dtype", x, lib.float64)]
    found += [put("grad", x, constant(lib, [1.0, 2.0])), put("grad", x, lib.ones(2)), put("grad", x, lib.ones(3))]
    found += [put("grad_dtype", x, lib.float16), put("grad_dtype", x, lib.float64), put("grad_dtype", x, None)]
    found += [put("grad", x, lib.ones(2)), put("grad_dtype", numbers, None)]
    dtypes = [str(t.grad_dtype).rpartition(".")[2] for t in (x, numbers, x.detach(), lib.tensor([1]))]
    return found, dtypes, x.grad


@program
def a_leaf_given_other_data_keeps_the_dtype_set_for_its_gradient(lib: Any) -> Any:
    def of(dtype: Any, data: Any) -> Any:
        x = leaf(lib, [1.0, 2.0], "float32")
        if dtype != "its own":
            x.grad_dtype = dtype
        x.data = data
        (x * 3).sum().backward()
        return str(x.grad_dtype).rpartition(".")[2], x.grad

    datas = [lib.ones(3), lib.ones(2, dtype=lib.float16), lib.ones(3, dtype=lib.float64)]
    return [of(dtype, data) for dtype in ("its own", None, lib.float64) for data in datas]


def test_a_deep_copy_with_a_gradient_of_another_dtype_keeps_the_dtype_set_for_it() -> None:
    x = leaf(pullback, [1.0, 2.0], "float32")
    x.grad_dtype = pullback.float64
    assert copy.deepcopy(x).grad_dtype is pullback.float32  # as in torch, which refuses the other:
    (x * 3).sum().backward()
    made = copy.deepcopy(x)
    assert made.grad_dtype is pullback.float64
    (made * 2).sum().backward()
    assert made.grad.dtype is pullback.float64
    assert (made.grad.tolist(), x.grad.tolist()) == ([5.0, 5.0], [3.0, 3.0])


def test_the_dtype_of_a_gradient_counts_for_what_is_computed_from_then_on() -> None:
    x = leaf(pullback, [1.0, 2.0], "float32")
    before = (x * 2).sum()
    x.grad_dtype = pullback.float64
    assert pullback.autograd.grad(before, x)[0].dtype is pullback.float32
    assert pullback.autograd.grad((x * 2).sum(), x)[0].dtype is pullback.float64


# -- what a leaf was ---------------------------------------------------------------------------------------------------


@program
def a_leaf_given_other_memory_is_another_leaf(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    edge = lib.autograd.graph.get_gradient_edge(x)
    y = (x * x.detach().clone()).sum()
    with lib.no_grad():
        x.set_(constant(lib, [3.0, 4.0]))
    unused = refused(lambda: lib.autograd.grad(y, x, retain_graph=True))
    found = lib.autograd.grad(y, edge, retain_graph=True)
    y.backward()
    (x * 5).sum().backward()
    return unused, found, x.grad


@program
def zeros_in_the_place_of_no_gradient_can_be_differentiated_again(lib: Any) -> Any:
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    z = (x * y).sum()
    (g,) = lib.autograd.grad(z, x, create_graph=True)
    found = [g]
    for _ in range(2):
        found += lib.autograd.grad(found[-1].sum(), x, create_graph=True, materialize_grads=True)
    return found, lib.autograd.grad(g.sum(), x, materialize_grads=True)


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_as_torch_does(program: Program) -> None:
    ours, torchs = outcomes(program)
    assert ours == torchs


def inputs_of_which_the_second_requires_no_gradient(lib: Any) -> str:
    x, c = lib.ones(2, requires_grad=True), lib.ones(2)
    with pytest.raises(RuntimeError) as refused:
        (x * c).sum().backward(inputs=[x, c])
    return str(refused.value)


def test_the_input_that_requires_no_gradient_is_named_by_its_number() -> None:
    assert "(inputs[1])" in inputs_of_which_the_second_requires_no_gradient(pullback)


# -- small differences (docs/differences.md) ---------------------------------------------------------------------------


def test_a_hook_of_a_node_must_be_callable() -> None:
    node = (leaf(pullback, [1.0]) * 2).grad_fn
    for register in (node.register_hook, node.register_prehook):
        with pytest.raises(TypeError, match="a hook must be callable, not int"):
            register(3)


@pytest.mark.parametrize(
    "keeps", [pullback.linalg.eigvalsh, pullback.linalg.svdvals, pullback.special.ndtr], ids=lambda f: f.__name__
)
def test_an_operation_that_keeps_its_argument_refuses_a_write_to_it(keeps: Callable[..., Any]) -> None:
    x = pullback.eye(2, dtype=pullback.float64).requires_grad_()
    y = x * 1
    out = keeps(y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_what_is_computed_of_a_tensor_that_escaped_from_a_transform_is_tracked() -> None:
    escaped = []

    def loss(x: Any) -> Any:
        escaped.append(x * 2)
        return escaped[0].sum()

    pullback.func.grad(loss)(pullback.ones(2))
    assert escaped[0].requires_grad
    assert (escaped[0] * 3).requires_grad


def test_a_function_has_no_methods_that_it_does_not_define() -> None:
    doubled = function(pullback, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    assert not hasattr(doubled, "vmap")
    assert not hasattr(doubled, "jvp")


def test_requires_grad_cannot_be_deleted() -> None:
    x = leaf(pullback, [1.0])
    with pytest.raises(RuntimeError, match="requires_grad must be a bool, and cannot be deleted"):
        del x.requires_grad
    assert x.requires_grad


def test_an_empty_list_of_inputs_is_refused_before_anything_else() -> None:
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"):
        (leaf(pullback, [1.0, 2.0]) * 2).backward(inputs=[])
