"""Gradients that arrive: added, fitted, in batches, as None."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

from tests.programs.engine.common import nothing
from tests.side_by_side import constant, function, leaf, programs, refused

PROGRAMS, program = programs()


# gradients that arrive ------------------------------------------------------------------------------------------------


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


# gradients in batches -------------------------------------------------------------------------------------------------


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


# a gradient of None is delivered as such ------------------------------------------------------------------------------


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
