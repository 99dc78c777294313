"""Gradients of gradients: through operations, through Functions, in place and in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.side_by_side import constant, function, leaf, programs, refused

PROGRAMS, program = programs()


def derivatives(lib: Any, y: Any, x: Any, order: int) -> list[Any]:
    """The derivatives of a sum by `x`, one after the other."""
    found = []
    for _ in range(order):
        (y,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        found.append(y)
    return found


# through operations ---------------------------------------------------------------------------------------------------


@program
def derivatives_of_every_order(lib: Any) -> Any:
    x = leaf(lib, [0.5, 1.5])
    made = (x.sin() * x.exp(), x.log() / x, x.tanh(), x.sigmoid() ** 2, x.sqrt() * x, 1 / (1 + x * x), x.pow(4.5))
    return [derivatives(lib, y, x, 4) for y in made]


@program
def derivatives_of_reductions_and_views(lib: Any) -> Any:
    x = leaf(lib, [[0.5, 1.5], [2.0, 0.7]])
    made = (x.prod(), x.softmax(1)[:, 0], x.logsumexp(0), x.std(), x.norm(), (x @ x).diagonal(), x.cumsum(0)[1] ** 2)
    return [derivatives(lib, y, x, 3) for y in made], derivatives(lib, lib.linalg.inv(x), x, 2)


@program
def hessian_times_vector(lib: Any) -> Any:
    x, y = leaf(lib, [[0.0, 1.0], [2.0, 3.0]]), leaf(lib, [[1.0, 3.0], [5.0, 7.0]])
    z = x**2 + y * x + y**2
    (gx,) = lib.autograd.grad(z.sum(), x, create_graph=True)
    (gx.sum() + y.sum()).backward()
    return x.grad, y.grad


@program
def hessian_times_vector_by_backward(lib: Any) -> Any:
    x, y, ones = leaf(lib, [[0.0, 1.0], [2.0, 3.0]]), leaf(lib, [[1.0, 3.0], [5.0, 7.0]]), lib.ones(2, 2)
    z = x**2 + y * x + y**2
    z.backward(ones.double(), create_graph=True)
    first = x.grad.detach().clone(), y.grad.detach().clone()
    (2 * x.grad + y.grad).backward(ones.double())
    found = first, x.grad.detach(), y.grad.detach()
    x.grad = y.grad = None
    return found


@program
def mixed_partials(lib: Any) -> Any:
    x, y = leaf(lib, [2.0]), leaf(lib, [3.0])
    f = x**2 * y**3
    (fx,) = lib.autograd.grad(f, x, create_graph=True)
    (fy,) = lib.autograd.grad(f, y, create_graph=True)
    return fx, fy, lib.autograd.grad(fx, [x, y], retain_graph=True), lib.autograd.grad(fy, [x, y])


@program
def through_the_vector(lib: Any) -> Any:
    x, v = leaf(lib, [2.0]), leaf(lib, [3.0])
    (g,) = lib.autograd.grad(x**2, x, v, create_graph=True)
    return g, lib.autograd.grad(g, [x, v])


@program
def a_penalty_on_a_gradient(lib: Any) -> Any:
    x, w = leaf(lib, [[1.0, 2.0]]), leaf(lib, [[0.5], [0.3]])
    (g,) = lib.autograd.grad((x @ w).tanh().sum(), x, create_graph=True)
    ((g.norm() - 1) ** 2).backward()
    return w.grad, x.grad


@program
def choices_and_kinks(lib: Any) -> Any:
    x = leaf(lib, [1.0, -1.0, 0.5])
    made = (lib.where(x > 0, x**2, x**3), x.relu() ** 2, x.abs() * x, x.clamp(-0.7, 0.7) ** 3, x[x > 0] ** 3)
    return [t.detach() for y in made for t in derivatives(lib, y, x, 2)]


@program
def writes_in_place(lib: Any) -> Any:
    x = leaf(lib, [2.0, 3.0])
    y = x * 1
    y.mul_(x)
    z = x * 1
    z[0] = z[1] ** 2
    w = x.exp()
    w[1:].mul_(w[:1])
    return [derivatives(lib, t, x, 2) for t in (y, z, w)]


@program
def hessians_row_by_row_and_in_batches(lib: Any) -> Any:
    x, rows = leaf(lib, [1.0, 2.0]), constant(lib, [[1.0, 0.0], [0.0, 1.0]])
    (g,) = lib.autograd.grad((x**3).sum() * x[0], x, create_graph=True)
    by_row = [lib.autograd.grad(g[i], x, retain_graph=True) for i in range(2)]
    return by_row, lib.autograd.grad(g, x, rows, is_grads_batched=True)


# what of a pass is recorded -------------------------------------------------------------------------------------------


@program
def unless_asked_for_nothing_is_recorded(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    (g,) = lib.autograd.grad(x**2, x)
    return g.requires_grad, g.grad_fn, refused(lambda: lib.autograd.grad(g, x))


@program
def the_gradient_of_something_linear_is_constant(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    (g,) = lib.autograd.grad(x * 3, x, create_graph=True)
    return g.requires_grad, refused(lambda: lib.autograd.grad(g, x))


@program
def create_graph_counts_and_not_the_mode(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = x**3
    with lib.no_grad():
        (g,) = lib.autograd.grad(y, x, create_graph=True)
        after = lib.is_grad_enabled()
    (h,) = lib.autograd.grad(y, x)
    return g.requires_grad, h.requires_grad, after


@program
def a_recorded_pass_keeps_the_graph(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = x**3
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    return lib.autograd.grad(y, x), lib.autograd.grad(g, x), refused(lambda: lib.autograd.grad(y, x))


@program
def recorded_and_not_retained(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = x.exp()
    (g,) = lib.autograd.grad(y, x, create_graph=True, retain_graph=False)
    return g, refused(lambda: lib.autograd.grad(y, x)), refused(lambda: lib.autograd.grad(g, x))


@program
def hooks_in_both_passes(lib: Any) -> Any:
    events: list[Any] = []
    x = leaf(lib, [2.0])
    y = x**3
    y.register_hook(lambda g: events.append(("y", g, lib.is_grad_enabled())))
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    g.register_hook(lambda g: events.append(("g", g, lib.is_grad_enabled())))
    return lib.autograd.grad(g, x), events


@program
def a_hook_is_part_of_what_is_recorded(lib: Any) -> Any:
    x, w = leaf(lib, [2.0]), leaf(lib, [3.0])
    y = x**3
    y.register_hook(lambda g: g * w)
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    return g, lib.autograd.grad(g, [x, w])


@program
def accumulated_gradients_are_differentiable(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    (x**3).backward(create_graph=True)
    (x**2).backward(create_graph=True)
    found = x.grad.detach(), lib.autograd.grad(x.grad, x)
    x.grad = None
    return found


@program
def retained_gradients_are_differentiable(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = x**2
    y.retain_grad()
    (y**2).backward(create_graph=True)
    found = y.grad.detach(), lib.autograd.grad(y.grad, x)
    x.grad = y.grad = None
    return found


# through Functions ----------------------------------------------------------------------------------------------------


@program
def a_function_that_saves_its_input(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    x = leaf(lib, [2.0])
    return derivatives(lib, function(lib, forward, lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2).apply(x), x, 3)


@program
def a_function_that_saves_its_output(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    x = leaf(lib, [2.0])
    return derivatives(lib, function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x), x, 4)


@program
def a_function_that_returns_its_intermediates(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        a, b = x.exp(), (-x).exp()
        ctx.save_for_backward(a, b)
        return (a - b) / 2, a, b

    def backward(ctx: Any, g: Any, ga: Any, gb: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * (a + b) / 2 + ga * a - gb * b

    x = leaf(lib, [0.7])
    return derivatives(lib, function(lib, forward, backward).apply(x)[0], x, 4)


@program
def an_intermediate_that_is_not_returned_is_a_constant(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        a = x.exp()
        ctx.save_for_backward(a)
        return a * 1

    x = leaf(lib, [0.7])
    (g,) = lib.autograd.grad(
        function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x), x, create_graph=True
    )
    return g.requires_grad


@program
def functions_that_are_each_others_derivative(lib: Any) -> Any:
    def forward_of(name: str) -> Callable[[Any, Any], Any]:
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return getattr(x, name)()

        return forward

    Sin = function(lib, forward_of("sin"), lambda ctx, g: Cos.apply(ctx.saved_tensors[0]) * g)
    Cos = function(lib, forward_of("cos"), lambda ctx, g: -Sin.apply(ctx.saved_tensors[0]) * g)
    x = leaf(lib, [0.7])
    return derivatives(lib, Sin.apply(x), x, 5)


@program
def a_function_of_two_arguments(lib: Any) -> Any:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y + x**2

    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * (y + 2 * x), g * x

    x, y, v = leaf(lib, [2.0]), leaf(lib, [3.0]), leaf(lib, [1.5])
    first = lib.autograd.grad(function(lib, forward, backward).apply(x, y), [x, y], v, create_graph=True)
    total = (first[0] * 3 + first[1] ** 2).sum()
    return first, lib.autograd.grad(total, [x, y, v])


@program
def a_backward_that_records_behind_the_passs_back(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        with lib.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = ctx.x**3
        return ctx.y.detach()

    def backward(ctx: Any, g: Any) -> Any:
        (found,) = lib.autograd.grad(ctx.y, ctx.x, g, create_graph=True)
        return found

    x, g = leaf(lib, [2.0]), leaf(lib, [1.0])
    (first,) = lib.autograd.grad(function(lib, forward, backward).apply(x), x, g, create_graph=True)
    return first, lib.autograd.grad(first, g)


@program
def once_differentiable_works_once(lib: Any) -> Any:
    modes: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**2

    def backward(ctx: Any, g: Any) -> Any:
        modes.append((lib.is_grad_enabled(), g.requires_grad))
        return g * 2 * ctx.saved_tensors[0]

    F = function(lib, forward, lib.autograd.function.once_differentiable(backward))
    x, g = leaf(lib, [3.0]), leaf(lib, [1.0])
    F.apply(x).backward()
    (first,) = lib.autograd.grad(F.apply(x), x, g, create_graph=True)
    return x.grad, first, first.requires_grad, modes[0], refused(first.backward)


@program
def once_differentiable_of_several(lib: Any) -> Any:
    once = lib.autograd.function.once_differentiable
    F = function(lib, lambda ctx, x, n, y: x * n + y, once(lambda ctx, g: (g * 2, None, g)))
    x, y, g = leaf(lib, [3.0]), leaf(lib, [4.0]), leaf(lib, [1.0])
    found = lib.autograd.grad(F.apply(x, 2, y), [x, y], g, create_graph=True)
    return found, [refused(lambda t=t: lib.autograd.grad(t, g, retain_graph=True)) for t in found]
