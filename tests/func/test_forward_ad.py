"""`autograd.forward_ad`, side by side with torch's: dual levels, what they end, views, writes in place, nesting."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest

import pullback
from pullback.func import forward_ad
from tests.side_by_side import Program, constant, leaf, name_of, outcomes, programs

PROGRAMS, program = programs()


def fw(lib: Any) -> Any:
    return lib.autograd.forward_ad


def pair(lib: Any) -> Any:
    return constant(lib, [0.3, -1.2, 0.7]), constant(lib, [1.0, 10.0, 100.0])


def dual(lib: Any) -> Any:
    return fw(lib).make_dual(*pair(lib))


def tangents(lib: Any, f: Any) -> Any:
    """What a function gives for the dual tensor of `pair`: primal and tangent of each of its results."""
    with fw(lib).dual_level():
        out = f(dual(lib))
        return [tuple(fw(lib).unpack_dual(o)) for o in (out if isinstance(out, tuple) else (out,))]


@program
def elementwise_and_sums(lib: Any) -> Any:
    return tangents(lib, lambda x: (x.sin(), x * x, x.sum(), x @ x, x / x.norm(), lib.cat([x, x * 2])))


@program
def what_has_no_tangent(lib: Any) -> Any:
    return tangents(lib, lambda x: (x.floor(), x.detach(), x > 0, x.argmax(), lib.ones(2), x.sign()))


@program
def unpacked_named(lib: Any) -> Any:
    with fw(lib).dual_level():
        found = fw(lib).unpack_dual(dual(lib))
        return found._fields, found.primal, found.tangent


@program
def unpack_a_plain_tensor(lib: Any) -> Any:
    x = pair(lib)[0]
    with fw(lib).dual_level():
        return tuple(fw(lib).unpack_dual(x))


@program
def unpack_without_level(lib: Any) -> Any:
    return tuple(fw(lib).unpack_dual(pair(lib)[0]))


@program
def unpack_a_number(lib: Any) -> Any:
    with fw(lib).dual_level():
        return fw(lib).unpack_dual(3.0)


@program
def make_without_level(lib: Any) -> Any:
    return fw(lib).make_dual(*pair(lib))


@program
def make_at_a_negative_level(lib: Any) -> Any:
    with fw(lib).dual_level():
        return fw(lib).make_dual(*pair(lib), level=-1)


@program
def make_of_another_shape(lib: Any) -> Any:
    x, t = pair(lib)
    with fw(lib).dual_level():
        return fw(lib).make_dual(x, t[:2])


@program
def make_of_integers(lib: Any) -> Any:
    i = lib.tensor([1, 2])
    with fw(lib).dual_level():
        return fw(lib).make_dual(i, i)


@program
def make_with_a_tangent_of_integers(lib: Any) -> Any:
    with fw(lib).dual_level():
        return fw(lib).make_dual(lib.ones(2), lib.tensor([1, 2]))


@program
def make_twice(lib: Any) -> Any:
    with fw(lib).dual_level():
        x = dual(lib)
        return fw(lib).make_dual(x, pair(lib)[1])


@program
def make_with_a_dual_as_tangent(lib: Any) -> Any:
    with fw(lib).dual_level():
        return fw(lib).make_dual(pair(lib)[0], dual(lib))


@program
def make_leaves_the_primal_alone(lib: Any) -> Any:
    x, t = pair(lib)
    with fw(lib).dual_level():
        d = fw(lib).make_dual(x, t)
        return fw(lib).unpack_dual(x).tangent, fw(lib).unpack_dual(d).tangent, d is x


@program
def primal_shares_memory(lib: Any) -> Any:
    x, t = pair(lib)
    with fw(lib).dual_level():
        d = fw(lib).make_dual(x, t)
        d.mul_(2)
        return x, t, tuple(fw(lib).unpack_dual(d))


@program
def levels_do_not_nest(lib: Any) -> Any:
    with fw(lib).dual_level(), fw(lib).dual_level():
        return 1


@program
def exit_without_level(lib: Any) -> Any:
    return fw(lib).exit_dual_level()


@program
def exit_another_level(lib: Any) -> Any:
    fw(lib).enter_dual_level()
    try:
        return fw(lib).exit_dual_level(level=3)
    finally:
        fw(lib).exit_dual_level()


@program
def enter_and_exit(lib: Any) -> Any:
    n = fw(lib).enter_dual_level()
    x = dual(lib)
    before = fw(lib).unpack_dual(x).tangent
    fw(lib).exit_dual_level(level=n)
    with fw(lib).dual_level() as again:
        return n, again, before, fw(lib).unpack_dual(x).tangent


@program
def after_the_level(lib: Any) -> Any:
    with fw(lib).dual_level():
        x = dual(lib)
        y = x * x
        z = y[1:]
    z.mul_(2)
    return x + 1, y, z, fw(lib).unpack_dual(y).tangent, y.requires_grad


@program
def after_an_error_in_the_level(lib: Any) -> Any:
    try:
        with fw(lib).dual_level():
            x = dual(lib)
            raise KeyError("x")
    except KeyError:
        pass
    with fw(lib).dual_level():
        return x * 2, fw(lib).unpack_dual(x).tangent, tuple(fw(lib).unpack_dual(dual(lib)))


@program
def writes_in_place(lib: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 1
        y.mul_(3).add_(1)
        y[0] = 7.0
        y[1:] *= x[:1]
        return y

    return tangents(lib, f)


@program
def views(lib: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.repeat(2).view(2, 3)
        a, b, c = y[0], y.T, y.view(-1)[2:5]
        y.mul_(2)
        a.add_(x)
        c.zero_()
        b[0].sin_()
        return y, a, b, c

    return tangents(lib, f)


@program
def plain_tensor_written_with_duals(lib: Any) -> Any:
    def f(x: Any) -> Any:
        y, z, w = (lib.zeros(2, 3, dtype=lib.float64) for _ in range(3))
        v = z[1]
        y.copy_(x)
        v.copy_(x * x)
        w[1, 1:] = x[1:]
        w.T[0].add_(x[0])
        return y, z, v, w

    return tangents(lib, f)


@program
def plain_tensor_after_the_level(lib: Any) -> Any:
    y = lib.zeros(3, dtype=lib.float64)
    v = y[1:]
    with fw(lib).dual_level():
        v.copy_(dual(lib)[1:])
    return y, v, y.is_leaf, y + v.sum()


@program
def dual_overwritten_with_a_constant(lib: Any) -> Any:
    def f(x: Any) -> Any:
        y, z = x * 1, x * 2
        y.fill_(2.0)
        z.copy_(lib.ones(3))
        return y, z, x * y

    return tangents(lib, f)


@program
def gradient_through_a_dual(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])
    with fw(lib).dual_level():
        t = fw(lib).unpack_dual((dual(lib) * w * w).sin()).tangent
        t.sum().backward()
    return t, w.grad


@program
def gradient_by_the_primal_of_a_tangent(lib: Any) -> Any:
    x, t = leaf(lib, [0.3, -1.2]), constant(lib, [1.0, 10.0])
    with fw(lib).dual_level():
        d = fw(lib).make_dual(x, t)
        y = fw(lib).unpack_dual((d**3).sum())
        (g,) = lib.autograd.grad(y.tangent, x, retain_graph=True)
        (h,) = lib.autograd.grad(y.primal, x)
    return g, h, y.tangent.requires_grad, y.primal.requires_grad


@program
def gradient_by_the_tangent(lib: Any) -> Any:
    x, t = constant(lib, [0.3, -1.2]), leaf(lib, [1.0, 10.0])
    with fw(lib).dual_level():
        y = fw(lib).unpack_dual(fw(lib).make_dual(x, t) ** 3)
        y.tangent.sum().backward()
    return y.primal, y.tangent, t.grad


@program
def forward_over_reverse(lib: Any) -> Any:
    x, t = leaf(lib, [0.3, -1.2]), constant(lib, [1.0, 10.0])
    with fw(lib).dual_level():
        d = fw(lib).make_dual(x, t)
        (g,) = lib.autograd.grad((d**3 * d.flip(0)).sum(), d)
        return tuple(fw(lib).unpack_dual(g))


@program
def forward_over_reverse_by_the_leaf(lib: Any) -> Any:
    x, t = leaf(lib, [0.3, -1.2]), constant(lib, [1.0, 10.0])
    with fw(lib).dual_level():
        d = fw(lib).make_dual(x, t)
        (g,) = lib.autograd.grad((d**3).sum(), x)
        return tuple(fw(lib).unpack_dual(g))


@program
def no_grad_keeps_tangents(lib: Any) -> Any:
    with lib.no_grad():
        return tangents(lib, lambda x: x * x)


@program
def requires_grad_of_duals(lib: Any) -> Any:
    x, t = leaf(lib, [0.3, -1.2]), constant(lib, [1.0, 10.0])
    with fw(lib).dual_level():
        d = fw(lib).make_dual(x, t)
        return d.requires_grad, d.is_leaf, (d * 2).requires_grad, fw(lib).make_dual(t, t).requires_grad


@program
def complex_numbers(lib: Any) -> Any:
    z = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex128)
    with fw(lib).dual_level():
        d = fw(lib).make_dual(z, z * 1j)
        return [tuple(fw(lib).unpack_dual(o)) for o in (d * d, d.abs(), d.conj() * 1, d.real, lib.view_as_real(d))]


@program
def values_in_control_flow(lib: Any) -> Any:
    return tangents(lib, lambda x: x * x.sum().item() if x[0] > 0 else x)


@program
def a_module_with_dual_parameters(lib: Any) -> Any:
    layer = lib.nn.Linear(3, 2).double()
    with lib.no_grad():
        for p in layer.parameters():
            p.copy_(lib.arange(float(p.numel()), dtype=lib.float64).reshape(p.shape) / 5)
    given = {name: p for name, p in layer.named_parameters()}  # noqa: C416
    with fw(lib).dual_level():
        for name, p in given.items():
            delattr(layer, name)
            setattr(layer, name, fw(lib).make_dual(p, lib.ones_like(p)))
        return [o.detach() for o in fw(lib).unpack_dual(layer(pair(lib)[0]))]


@program
def function_without_jvp(lib: Any) -> Any:
    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return tangents(lib, Twice.apply)


@program
def function_with_jvp(lib: Any) -> Any:
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x**2 * t

    return tangents(lib, lambda x: Cube.apply(x * 1))


# Views and writes -----------------------------------------------------------------------------------------------------


def dual_of(lib: Any, values: Any = (1.0, 2.0), tangent: Any = (3.0, 4.0)) -> Any:
    return fw(lib).make_dual(constant(lib, values), constant(lib, tangent))


def tangent_of(lib: Any, x: Any) -> Any:
    return fw(lib).unpack_dual(x).tangent


def within_a_level(case: Program) -> Program:
    """A program that runs in a dual level."""

    @functools.wraps(case)
    def run(lib: Any) -> Any:
        with fw(lib).dual_level():
            return case(lib)

    return program(run)


@within_a_level
def a_view_of_a_dual_has_a_view_of_the_tangent(lib: Any) -> Any:
    v = dual_of(lib)[0]
    return tangent_of(lib, v), v._is_view(), tangent_of(lib, v)._is_view()


@within_a_level
def a_write_to_a_view_of_a_dual(lib: Any) -> Any:
    y = dual_of(lib) * 1
    y[0].mul_(5.0)
    return y, tangent_of(lib, y)


@within_a_level
def a_dual_written_into_a_tensor(lib: Any) -> Any:
    z = constant(lib, [0.0, 0.0])
    z[0] = dual_of(lib, 1.0, 3.0)
    return z, tangent_of(lib, z)


@within_a_level
def a_dual_written_into_a_view(lib: Any) -> Any:
    z = constant(lib, [0.0, 0.0])
    v = z[0]
    v.copy_(dual_of(lib, 1.0, 3.0))
    return tangent_of(lib, z), tangent_of(lib, v)


@within_a_level
def a_dual_written_into_the_base_of_a_view(lib: Any) -> Any:
    z = constant(lib, [0.0, 0.0])
    v = z[0]
    z.copy_(dual_of(lib))
    return tangent_of(lib, z), tangent_of(lib, v)


@within_a_level
def a_dual_of_a_view_that_is_written_to(lib: Any) -> Any:
    z = constant(lib, [1.0, 2.0])
    x = fw(lib).make_dual(z[:1], constant(lib, [3.0]))
    x.mul_(2.0)
    return z, tangent_of(lib, x), tangent_of(lib, z)


@within_a_level
def constants_written_into_a_dual(lib: Any) -> Any:
    x, y, z = dual_of(lib).clone(), dual_of(lib).clone(), dual_of(lib).clone()
    x.copy_(constant(lib, [7.0, 8.0]))
    y[0] = 5.0
    z.zero_()
    return [(t, tangent_of(lib, t)) for t in (x, y, z)]


@within_a_level
def a_chain_of_writes(lib: Any) -> Any:
    x = dual_of(lib)
    y = x.clone()
    y.add_(x)
    y.mul_(x)
    y.sin_()
    z = constant(lib, [1.0, 2.0])
    z.add_(x)
    return tangent_of(lib, y), tangent_of(lib, z)


@within_a_level
def out_is_refused(lib: Any) -> Any:
    lib.add(dual_of(lib), 1, out=constant(lib, [0.0, 0.0]))


@within_a_level
def tangents_in_the_modes(lib: Any) -> Any:
    x = dual_of(lib)
    with lib.no_grad():
        y = x * 2
    return tangent_of(lib, y), y.requires_grad, tangent_of(lib, x.detach())


@within_a_level
def forward_mode_switched_off(lib: Any) -> Any:
    mode, x = fw(lib), dual_of(lib)
    with mode._set_fwd_grad_enabled(False):
        off, told = tangent_of(lib, x * 2), mode._is_fwd_grad_enabled()
    return off, told, tangent_of(lib, x * 2), mode._is_fwd_grad_enabled()


@within_a_level
def pieces_and_stacks(lib: Any) -> Any:
    x = dual_of(lib, [1.0, 2.0, 3.0], [3.0, 4.0, 5.0])
    a, b, _ = x.unbind()
    return [tangent_of(lib, t) for t in (a, b, *x.split(2), lib.stack([a, b]), x.expand(2, 3), x > 2, x.argmax())]


@within_a_level
def versions_of_a_dual_and_its_primal(lib: Any) -> Any:
    p = constant(lib, [1.0, 2.0])
    x = fw(lib).make_dual(p, constant(lib, [3.0, 4.0]))
    x.add_(1)
    x[0] = 5.0
    found = x._version, p._version
    p.mul_(2)
    return found, x._version, p._version, x, p


# With reverse mode ----------------------------------------------------------------------------------------------------


@within_a_level
def gradients_of_a_dual_and_of_its_primal(lib: Any) -> Any:
    p = leaf(lib, [1.0, 2.0])
    x = fw(lib).make_dual(p, constant(lib, [3.0, 4.0]))
    y = (x**3).sum()
    (by_dual,) = lib.autograd.grad(y, x, retain_graph=True)
    (by_primal,) = lib.autograd.grad(y, p, create_graph=True)
    second = tangent_of(lib, by_primal)
    return tangent_of(lib, by_dual), second, lib.autograd.grad(second.sum(), p)


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


@within_a_level
def writes_where_a_tangent_is_handed_through(lib: Any) -> Any:
    d = dual_of(lib)
    y = d + 0
    y.mul_(3)
    u = d.clone()
    z = u - 1
    u.mul_(5)
    return [tangent_of(lib, t) for t in (d, y, u, z)]


@within_a_level
def a_gradient_through_a_tangent(lib: Any) -> Any:
    t = leaf(lib, [3.0, 4.0])
    g = tangent_of(lib, fw(lib).make_dual(constant(lib, [1.0, 2.0]), t).sin())
    return g.requires_grad, lib.autograd.grad(g.sum(), t)


@within_a_level
def a_module(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1).double()
    found = tangent_of(lib, m(dual_of(lib)))
    return lib.allclose(found, m.weight @ constant(lib, [3.0, 4.0])), found.requires_grad


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


@within_a_level
def a_function_that_writes_in_place(lib: Any) -> Any:
    y = dual_of(lib).clone()
    z = function(lib, doubled_in_place, lambda ctx, t: t.mul_(2))(y)
    return z is y, z, tangent_of(lib, z), tangent_of(lib, y)


@within_a_level
def a_jvp_that_does_not_write_in_place(lib: Any) -> Any:
    function(lib, doubled_in_place, lambda ctx, t: t * 2)(dual_of(lib).clone())


@within_a_level
def a_function_that_returns_a_view(lib: Any) -> Any:
    z = function(lib, lambda ctx, x: x.view(1, 2), lambda ctx, t: t.view(1, 2))(dual_of(lib))
    return z, tangent_of(lib, z)


@within_a_level
def a_jvp_that_returns_no_view(lib: Any) -> Any:
    function(lib, lambda ctx, x: x.view(1, 2), lambda ctx, t: t.view(1, 2) * 1)(dual_of(lib))


@within_a_level
def a_jvp_that_returns_too_many(lib: Any) -> Any:
    function(lib, lambda ctx, x: x * 2, lambda ctx, t: (t, t))(dual_of(lib))


@within_a_level
def a_jvp_of_another_shape(lib: Any) -> Any:
    function(lib, lambda ctx, x: x * 2, lambda ctx, t: t.sum())(dual_of(lib))


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


@within_a_level
def a_tracked_dual_that_a_function_writes_to(lib: Any) -> Any:
    x, d = tracked_dual_of(lib)
    y = d.clone()
    z = function(lib, doubled_in_place, lambda ctx, t: t.mul_(2))(y)
    return z is y, tangent_of(lib, z), lib.autograd.grad(z.sum(), x)


@within_a_level
def a_jvp_that_leaves_the_tangent_as_it_is(lib: Any) -> Any:
    function(lib, doubled_in_place, lambda ctx, t: t)(dual_of(lib).clone())


@within_a_level
def a_result_of_a_tracked_dual_without_derivative(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        rounded = x.round()
        ctx.mark_non_differentiable(rounded)
        return x * 2, rounded

    _, d = tracked_dual_of(lib)
    a, b = function(lib, forward, lambda ctx, t: (t * 2, None))(d)
    return tangent_of(lib, a), tangent_of(lib, b), a.requires_grad, b.requires_grad


@within_a_level
def a_tangent_for_what_has_no_derivative(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        rounded = x.round()
        ctx.mark_non_differentiable(rounded)
        return x * 2, rounded

    function(lib, forward, lambda ctx, t: (t * 2, t))(dual_of(lib))


@within_a_level
def a_dual_that_is_taken_out_of_the_graph(lib: Any) -> Any:
    _, d = tracked_dual_of(lib)
    y = d.clone()
    y.detach_()
    return y * 2, tangent_of(lib, y * 2)


@within_a_level
def a_dual_lies_where_its_primal_lies(lib: Any) -> Any:
    x = constant(lib, [1.0, 2.0])
    d = fw(lib).make_dual(x, constant(lib, [1.0, 1.0]))
    return d.data_ptr() == x.data_ptr(), d[1:].data_ptr() - x.data_ptr()


# Levels ---------------------------------------------------------------------------------------------------------------


@program
def a_decorated_function_runs_in_a_level(lib: Any) -> Any:
    @fw(lib).dual_level()
    def f() -> Any:
        return tangent_of(lib, dual_of(lib) * 2)

    return f(), f()


@program
def after_its_level_a_dual_is_its_primal(lib: Any) -> Any:
    with fw(lib).dual_level():
        y = dual_of(lib) * 2
    found = tangent_of(lib, y)
    with fw(lib).dual_level():
        return found, tangent_of(lib, y), y * 2


@program
def a_level_that_was_not_entered(lib: Any) -> Any:
    fw(lib).exit_dual_level()


@program
def a_level_by_its_number(lib: Any) -> Any:
    with fw(lib).dual_level() as number:
        x = fw(lib).make_dual(constant(lib, [1.0]), constant(lib, [2.0]), level=number)
        return number, fw(lib).unpack_dual(x, level=number).tangent


@pytest.mark.torch
@pytest.mark.parametrize("case", PROGRAMS, ids=name_of)
def test_as_torch(case: Program) -> None:
    ours, theirs = outcomes(case)
    assert ours == theirs


def test_levels_are_of_a_thread() -> None:
    """Another thread has no level, and may enter one of its own. In torch the levels are those of the process."""
    seen: list[Any] = []

    def other() -> None:
        try:
            forward_ad.make_dual(*pair(pullback))
        except RuntimeError:
            seen.append("no level")
        with forward_ad.dual_level():
            seen.append(forward_ad.unpack_dual(dual(pullback) * 2).tangent.tolist())

    with forward_ad.dual_level():
        x = dual(pullback)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert seen == ["no level", [2.0, 20.0, 200.0]]
        assert forward_ad.unpack_dual(x * 3).tangent.tolist() == [3.0, 30.0, 300.0]


# Where torch refuses, or loses something ------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("primal", "tangent"), [("float64", "float32"), ("float32", "float64"), ("complex128", "float64")]
)
def test_a_tangent_of_another_dtype_is_converted(primal: str, tangent: str) -> None:
    """In torch it stays as it is until it is computed with: a tangent may have another dtype than its primal."""
    torch = pytest.importorskip("torch")
    values = []
    for lib in (pullback, torch):
        x, t = lib.tensor([0.5, 2.0], dtype=getattr(lib, primal)), lib.tensor([1.0, 3.0], dtype=getattr(lib, tangent))
        with fw(lib).dual_level():
            made = fw(lib).make_dual(x, t)
            values.append(fw(lib).unpack_dual(made.exp()).tangent.tolist())
            if lib is pullback:
                assert fw(lib).unpack_dual(made).tangent.dtype is x.dtype
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_a_complex_tangent_of_a_real_primal_is_refused() -> None:
    """torch warns that it discards the imaginary part."""
    x, t = pair(pullback)
    with (
        forward_ad.dual_level(),
        pytest.raises(RuntimeError, match=r"to be real, as the primal is.*\n.*give its \.real"),
    ):
        forward_ad.make_dual(x, t + 1j)


def test_a_gradient_accumulated_in_a_level_has_its_tangent() -> None:
    """In torch, ``.grad`` is its primal alone; the Hessian times the tangent is to be had by autograd.grad only."""
    x, t = leaf(pullback, [0.3, -1.2]), constant(pullback, [1.0, 10.0])
    with forward_ad.dual_level():
        (forward_ad.make_dual(x, t) ** 3).sum().backward()
        assert forward_ad.unpack_dual(x.grad).tangent.tolist() == pytest.approx([1.8, -72.0])
    assert x.grad.tolist() == pytest.approx([0.27, 4.32])


def test_transforms_inside_of_a_level() -> None:
    """torch refuses jvp there, and vmap of a level."""
    x, t = pair(pullback)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, t)
        inner, cosine = pullback.func.jvp(pullback.sin, (d,), (pullback.ones_like(x),))
        assert forward_ad.unpack_dual(inner).tangent.tolist() == pytest.approx((x.cos() * t).tolist())
        assert forward_ad.unpack_dual(cosine).tangent.tolist() == pytest.approx((-x.sin() * t).tolist())

    def push(v: Any) -> Any:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(forward_ad.make_dual(x, v).sin()).tangent

    found = pullback.vmap(push)(pullback.stack([t, x]))
    assert found[1].tolist() == pytest.approx((x.cos() * x).tolist())


def test_an_operation_in_inference_mode_has_its_tangent() -> None:
    """torch computes none there."""
    with forward_ad.dual_level(), pullback.inference_mode():
        assert tangent_of(pullback, dual_of(pullback) * 2).tolist() == [6.0, 8.0]


def test_a_leaf_that_requires_grad_does_not_become_a_dual_by_a_write() -> None:
    """torch lets it, under no_grad."""
    p = pullback.zeros(2, dtype=pullback.float64, requires_grad=True)
    with forward_ad.dual_level(), pullback.no_grad():
        x = dual_of(pullback)
        with pytest.raises(RuntimeError, match="from outside"):
            p.add_(x)
    assert p.tolist() == [0.0, 0.0]


def test_a_write_to_a_dual_in_inference_mode_reaches_its_primal_and_its_tangent() -> None:
    with pullback.inference_mode(), forward_ad.dual_level():
        x = constant(pullback, [1.0, 2.0])
        d = forward_ad.make_dual(x, constant(pullback, [1.0, 1.0]))
        d *= 2
        found = x.tolist(), forward_ad.unpack_dual(d).tangent.tolist()
    assert found == ([2.0, 4.0], [2.0, 2.0])
