"""Dual levels: duals and their tangents, and what ends them."""

from __future__ import annotations

from typing import Any

from tests.programs.forward_ad.common import dual_of, fw, tangent_of
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


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
