"""Forward mode with reverse mode, and Functions of the user's."""

from __future__ import annotations

from typing import Any

from tests.programs.forward_ad.common import dual_of, fw, tangent_of, within_a_level
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


# With reverse mode ----------------------------------------------------------------------------------------------------


@program
@within_a_level
def gradients_of_a_dual_and_of_its_primal(lib: Any) -> Any:
    p = leaf(lib, [1.0, 2.0])
    x = fw(lib).make_dual(p, constant(lib, [3.0, 4.0]))
    y = (x**3).sum()
    (by_dual,) = lib.autograd.grad(y, x, retain_graph=True)
    (by_primal,) = lib.autograd.grad(y, p, create_graph=True)
    second = tangent_of(lib, by_primal)
    return tangent_of(lib, by_dual), second, lib.autograd.grad(second.sum(), p)


@program
@within_a_level
def a_tangent_that_lies_otherwise_in_memory(lib: Any) -> Any:
    """It is copied, so that a write to a view of the values is one to the same elements of the tangent."""
    found = []
    whole = lib.arange(6.0, dtype=lib.float64)
    for t in (whole.reshape(2, 3), whole.reshape(3, 2).T, whole[:1].reshape(1, 1).expand(2, 3)):
        d = fw(lib).make_dual(lib.ones(2, 3, dtype=lib.float64), t)
        first = fw(lib).unpack_dual(d).tangent
        d.view(-1)[1:3].mul_(2)
        found.append((first is t, tangent_of(lib, d), t.clone()))
    return found


@program
@within_a_level
def writes_where_a_tangent_is_handed_through(lib: Any) -> Any:
    d = dual_of(lib)
    y = d + 0
    y.mul_(3)
    u = d.clone()
    z = u - 1
    u.mul_(5)
    return [tangent_of(lib, t) for t in (d, y, u, z)]


@program
@within_a_level
def a_gradient_through_a_tangent(lib: Any) -> Any:
    t = leaf(lib, [3.0, 4.0])
    g = tangent_of(lib, fw(lib).make_dual(constant(lib, [1.0, 2.0]), t).sin())
    return g.requires_grad, lib.autograd.grad(g.sum(), t)


@program
@within_a_level
def a_module(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1).double()
    found = tangent_of(lib, m(dual_of(lib)))
    return lib.allclose(found, m.weight @ constant(lib, [3.0, 4.0])), found.requires_grad


@program
@within_a_level
def transforms_of_duals(lib: Any) -> Any:
    x = dual_of(lib)
    by_grad = lib.func.grad(lambda a: (a**3).sum())(x)
    by_vmap = lib.vmap(lambda a: a**3)(x)
    return tangent_of(lib, by_grad), tangent_of(lib, by_vmap)


# Functions ------------------------------------------------------------------------------------------------------------


def function(lib: Any, run: Any, push: Any) -> Any:
    class Made(lib.autograd.Function):
        forward, jvp = staticmethod(run), staticmethod(push)

        @staticmethod
        def backward(ctx: Any, *g: Any) -> Any:
            return g

    return Made.apply


def doubled_in_place(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


@program
@within_a_level
def a_function_that_writes_in_place(lib: Any) -> Any:
    y = dual_of(lib).clone()
    z = function(lib, doubled_in_place, lambda ctx, t: t.mul_(2))(y)
    return z is y, z, tangent_of(lib, z), tangent_of(lib, y)


@program
@within_a_level
def a_jvp_that_does_not_write_in_place(lib: Any) -> Any:
    function(lib, doubled_in_place, lambda ctx, t: t * 2)(dual_of(lib).clone())


@program
@within_a_level
def a_function_that_returns_a_view(lib: Any) -> Any:
    z = function(lib, lambda ctx, x: x.view(1, 2), lambda ctx, t: t.view(1, 2))(dual_of(lib))
    return z, tangent_of(lib, z)


@program
@within_a_level
def a_jvp_that_returns_no_view(lib: Any) -> Any:
    function(lib, lambda ctx, x: x.view(1, 2), lambda ctx, t: t.view(1, 2) * 1)(dual_of(lib))


@program
@within_a_level
def a_view_of_an_argument_without_a_tangent(lib: Any) -> Any:
    whole, part = (lambda ctx, x, y: x), (lambda ctx, x, y: x[:1])
    found = []
    for run, push in (
        (whole, lambda ctx, a, b: a.view_as(a)),
        (whole, lambda ctx, a, b: a * 2),
        (part, lambda ctx, a, b: a[:1]),
        (part, lambda ctx, a, b: a[:1] * 2),
    ):
        z = function(lib, run, push)(constant(lib, [5.0, 6.0]), dual_of(lib))
        found.append([z, tangent_of(lib, z)])
    return found


@program
@within_a_level
def a_view_of_an_argument_that_comes_twice(lib: Any) -> Any:
    x, t = constant(lib, [5.0, 6.0]), constant(lib, [3.0, 4.0])
    z = function(lib, lambda ctx, x, y: y[:1], lambda ctx, a, b: b[:1])(x, fw(lib).make_dual(x, t))
    return z, tangent_of(lib, z)


@program
def views_that_functions_without_a_jvp_make_of_constants(lib: Any) -> Any:
    def of(run: Any) -> Any:
        class Made(lib.autograd.Function):
            forward = staticmethod(run)

        return lib.func.linearize(lambda t: Made.apply(t.detach()), constant(lib, [5.0, 6.0]))[1](
            constant(lib, [1.0, 1.0])
        )

    return [of(lambda ctx, x: x), of(lambda ctx, x: x[:1]), of(lambda ctx, x: x * 2)]


@program
@within_a_level
def a_jvp_that_returns_too_many(lib: Any) -> Any:
    function(lib, lambda ctx, x: x * 2, lambda ctx, t: (t, t))(dual_of(lib))


@program
@within_a_level
def a_jvp_of_another_shape(lib: Any) -> Any:
    function(lib, lambda ctx, x: x * 2, lambda ctx, t: t.sum())(dual_of(lib))


@program
@within_a_level
def a_result_without_derivative(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        positive = x > 0
        ctx.mark_non_differentiable(positive)
        return x * 2, positive

    a, b = function(lib, forward, lambda ctx, t: (t * 2, None))(dual_of(lib))
    return tangent_of(lib, a), tangent_of(lib, b)


def tracked_dual_of(lib: Any) -> Any:
    x, t = leaf(lib, [0.3, -1.2, 0.7]), constant(lib, [1.0, 10.0, 100.0])
    return x, fw(lib).make_dual(x, t)


def times(ctx: Any, x: Any, factor: float) -> Any:
    ctx.factor, y = factor, x.exp()
    ctx.save_for_backward(x, y)
    ctx.save_for_forward(x, y)
    return y * factor, y


class _Times:
    """What a Function does that saves by itself: input, output, an attribute."""

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        _, y = ctx.saved_tensors
        return (g * ctx.factor + h) * y, None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        _, y = ctx.saved_tensors
        return t * ctx.factor * y, t * y


@program
@within_a_level
def a_function_without_setup_context_of_a_tracked_dual(lib: Any) -> Any:
    F = type("F", (_Times, lib.autograd.Function), {"forward": staticmethod(times)})
    x, d = tracked_dual_of(lib)
    a, b = F.apply(d, 3.0)
    primals = [fw(lib).unpack_dual(o).primal for o in (a, b)]
    of_primals = lib.autograd.grad((primals[0] * primals[1]).sum(), x, retain_graph=True)
    of_tangents = lib.autograd.grad((tangent_of(lib, a) * tangent_of(lib, b)).sum(), x, retain_graph=True)
    (both,) = lib.autograd.grad((a * b).sum(), x)
    return a, tangent_of(lib, a), tangent_of(lib, b), of_primals, of_tangents, fw(lib).unpack_dual(both).tangent


@program
@within_a_level
def a_tracked_dual_that_a_function_writes_to(lib: Any) -> Any:
    x, d = tracked_dual_of(lib)
    y = d.clone()
    z = function(lib, doubled_in_place, lambda ctx, t: t.mul_(2))(y)
    return z is y, tangent_of(lib, z), lib.autograd.grad(z.sum(), x)


@program
@within_a_level
def a_jvp_that_leaves_the_tangent_as_it_is(lib: Any) -> Any:
    function(lib, doubled_in_place, lambda ctx, t: t)(dual_of(lib).clone())


@program
@within_a_level
def a_result_of_a_tracked_dual_without_derivative(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        rounded = x.round()
        ctx.mark_non_differentiable(rounded)
        return x * 2, rounded

    _, d = tracked_dual_of(lib)
    a, b = function(lib, forward, lambda ctx, t: (t * 2, None))(d)
    return tangent_of(lib, a), tangent_of(lib, b), a.requires_grad, b.requires_grad


@program
@within_a_level
def a_tangent_for_what_has_no_derivative(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        rounded = x.round()
        ctx.mark_non_differentiable(rounded)
        return x * 2, rounded

    function(lib, forward, lambda ctx, t: (t * 2, t))(dual_of(lib))


@program
@within_a_level
def a_dual_that_is_taken_out_of_the_graph(lib: Any) -> Any:
    _, d = tracked_dual_of(lib)
    y = d.clone()
    y.detach_()
    return y * 2, tangent_of(lib, y * 2)


@program
@within_a_level
def a_dual_lies_where_its_primal_lies(lib: Any) -> Any:
    x = constant(lib, [1.0, 2.0])
    d = fw(lib).make_dual(x, constant(lib, [1.0, 1.0]))
    return d.data_ptr() == x.data_ptr(), d[1:].data_ptr() - x.data_ptr()


@program
@within_a_level
def a_dual_that_is_made_to_require_grad(lib: Any) -> Any:
    x = dual_of(lib)
    before = x * 2
    x.requires_grad_()
    y = (x**3).sum()
    (g,) = lib.autograd.grad(tangent_of(lib, y), x, create_graph=True)
    found = [before.requires_grad, fw(lib).unpack_dual(g).primal, lib.autograd.grad(g.sum(), x)[0], y.requires_grad]
    tangent_of(lib, (x**2).sum()).backward()
    tangent_of(lib, (x**2).sum()).backward()
    found.append(fw(lib).unpack_dual(x.grad).primal)
    return found


@program
@within_a_level
def a_dual_that_requires_grad_no_longer(lib: Any) -> Any:
    x = dual_of(lib).requires_grad_()
    x.requires_grad_(False)
    y = x**3
    return y.requires_grad, tangent_of(lib, y), tangent_of(lib, y).requires_grad


@program
def a_dual_that_requires_grad_after_its_level(lib: Any) -> Any:
    with fw(lib).dual_level():
        x = dual_of(lib).requires_grad_()
        y = (x**3).sum()
    y.backward()
    return x.grad, x.is_leaf
