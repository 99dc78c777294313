"""Passes within passes, and what of a graph runs."""

from __future__ import annotations

from typing import Any

from tests.programs.engine.common import noting
from tests.side_by_side import constant, function, leaf, programs, refused

PROGRAMS, program = programs()


# passes within passes -------------------------------------------------------------------------------------------------


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


# what runs ------------------------------------------------------------------------------------------------------------


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


# nodes that save no tensor --------------------------------------------------------------------------------------------


@program
def what_saved_only_numbers_runs_again(lib: Any) -> Any:
    def of(x: Any) -> dict[str, Any]:
        row, one, ones = x.view(1, 2), constant(lib, [[1.0]]), constant(lib, [[1.0, 1.0]])
        return {
            "add": lambda: x.add(x, alpha=2),
            "sub": lambda: x.sub(x, alpha=2),
            "rsub": lambda: lib.rsub(x, x, alpha=2),
            "add_": lambda: x.neg().add_(x, alpha=2),
            "lerp": lambda: lib.lerp(x, x, 0.25),
            "lerp_": lambda: x.neg().lerp_(x, 0.25),
            "lerp by a tensor": lambda: lib.lerp(x, x * 1, lib.full_like(x, 0.5)),
            "addmm": lambda: lib.addmm(row, one, ones, beta=2, alpha=3),
            "addr": lambda: lib.addr(row, one[0], ones[0], beta=2),
            "baddbmm": lambda: lib.baddbmm(row[None], one[None], ones[None], beta=2),
            "copy_": lambda: lib.zeros_like(x.detach()).copy_(x),
            "fill_": lambda: lib.zeros_like(x.detach()).fill_(x[0]),
            "a product": lambda: x * 2,
            "a part": lambda: x.neg().index_fill_(0, lib.tensor([0]), 1.0),
        }

    found = []
    for name in of(leaf(lib, [1.0, 2.0])):
        x = leaf(lib, [1.0, 2.0])
        y = of(x)[name]().sum()
        y.backward()
        found.append((name, refused(y.backward), x.grad))
    return found


@program
def all_of_a_tensor_is_written(lib: Any) -> Any:
    def by(write: Any, of: Any) -> Any:
        x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
        t = y.sin() if of else lib.zeros(2, dtype=lib.float64)
        write(t, x)
        (t * constant(lib, [1.0, 10.0])).sum().backward()
        return t.grad_fn, x.grad, y.grad

    return [
        by(write, of)
        for write in (lambda t, x: t.copy_(x), lambda t, x: t.__setitem__(..., x), lambda t, x: t.__setitem__(0, x[1]))
        for of in (False, True)
    ]
