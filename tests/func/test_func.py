"""Transforms of functions, side by side with torch.func: values, structure, nesting, graphs that go on, refusals."""

from __future__ import annotations

import collections
import re
from typing import Any

import numpy as np
import pytest

import pullback
from tests.side_by_side import Program, constant, function, leaf, name_of, outcomes, programs

PROGRAMS, program = programs()


def f_of(lib: Any) -> Any:
    """A function with two results of two arguments."""

    def f(x: Any, y: Any) -> Any:
        return (x.sin() * y).cumsum(0), (x * x).sum() * y.exp()

    return f


def points(lib: Any) -> Any:
    return constant(lib, [0.3, -1.2, 0.7]), constant(lib, [1.5, 0.2, -0.4])


# grad and grad_and_value -----------------------------------------------------------------------------------------


@program
def grad_of_a_scalar_function(lib: Any) -> Any:
    return lib.func.grad(lambda x: x.sin().sum())(points(lib)[0])


@program
def grad_by_several(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b.exp()).sum(), argnums=(1, 0))(x, y)


@program
def grad_by_a_negative_number(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b.exp()).sum(), argnums=-1)(x, y)


@program
def grad_by_one_in_a_tuple(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b.exp()).sum(), argnums=(1,))(x, y)


@program
def grad_by_a_list(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b).sum(), argnums=[0, 1])(x, y)


@program
def grad_by_the_same_twice(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 0))(x, y)


@program
def grad_by_one_that_is_not_there(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b).sum(), argnums=2)(x, y)


@program
def grad_by_text(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: (a * b).sum(), argnums="0")(x, y)


@program
def grad_of_nested_arguments(lib: Any) -> Any:
    x, y = points(lib)
    given = {"a": x, "b": [y, (x,)]}
    return lib.func.grad(lambda d: (d["a"] * d["b"][0] + d["b"][1][0] ** 2).sum())(given)


@program
def grad_with_keywords(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b=None: (a * b).sum())(x, b=y)


@program
def grad_has_aux(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: ((a * b).sum(), {"twice": a * 2, "y": b}), has_aux=True)(x, y)


@program
def grad_has_aux_without_aux(lib: Any) -> Any:
    return lib.func.grad(lambda a: a.sum(), has_aux=True)(points(lib)[0])


@program
def grad_has_aux_three(lib: Any) -> Any:
    return lib.func.grad(lambda a: (a.sum(), a, a), has_aux=True)(points(lib)[0])


@program
def grad_and_value_of(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad_and_value(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, y)


@program
def grad_and_value_has_aux(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad_and_value(lambda a, b: ((a * b).sum(), a * 3), has_aux=True)(x, y)


@program
def grad_of_what_does_not_depend(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.grad(lambda a, b: b.sum())(x, y)


@program
def grad_of_a_constant(lib: Any) -> Any:
    return lib.func.grad(lambda a: lib.tensor(3.0))(points(lib)[0])


@program
def grad_of_no_scalar(lib: Any) -> Any:
    return lib.func.grad(lambda a: a * 2)(points(lib)[0])


@program
def grad_of_one_element_with_an_axis(lib: Any) -> Any:
    return lib.func.grad(lambda a: a.sum()[None])(points(lib)[0])


@program
def grad_of_no_tensor(lib: Any) -> Any:
    return lib.func.grad(lambda a: 3.0)(points(lib)[0])


@program
def grad_of_a_tuple(lib: Any) -> Any:
    return lib.func.grad(lambda a: (a.sum(),))(points(lib)[0])


@program
def grad_by_a_number(lib: Any) -> Any:
    return lib.func.grad(lambda a: lib.tensor(2.0) * a)(3.0)


@program
def grad_by_integers(lib: Any) -> Any:
    return lib.func.grad(lambda a: (a * 1.0).sum())(lib.tensor([1, 2]))


@program
def grad_with_integers_beside(lib: Any) -> Any:
    return lib.func.grad(lambda a, i: a[i].sum())(points(lib)[0], lib.tensor([1, 1]))


@program
def grad_of_a_complex_function(lib: Any) -> Any:
    z = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex128)
    return lib.func.grad(lambda a: (a * a.conj()).real.sum())(z)


@program
def grad_of_a_complex_value(lib: Any) -> Any:
    z = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex128)
    return lib.func.grad(lambda a: (a * a).sum())(z)


@program
def grad_in_float32(lib: Any) -> Any:
    return lib.func.grad(lambda a: (a * a).sum())(lib.tensor([1.0, 2.0]))


@program
def grad_twice(lib: Any) -> Any:
    return lib.func.grad(lib.func.grad(lambda a: a**4 + a.sin()))(constant(lib, 0.5))


@program
def grad_five_times(lib: Any) -> Any:
    f = lambda a: (a * 1.5).sin()  # noqa: E731
    for _ in range(5):
        f = lib.func.grad(f)
    return f(constant(lib, 0.5))


@program
def mixed_partial(lib: Any) -> Any:
    f = lib.func.grad(lambda a, b: (a**2 * b**3).sum(), argnums=0)
    return lib.func.grad(lambda a, b: f(a, b).sum(), argnums=1)(*points(lib))


# closures, perturbation confusion, tracked tensors ------------------------------------------------------------------


@program
def no_confusion_of_perturbations(lib: Any) -> Any:
    g = lib.func.grad
    return g(lambda x: x * g(lambda y: x + y)(constant(lib, 1.0)))(constant(lib, 3.0))


@program
def confusion_with_jvp(lib: Any) -> Any:
    def derivative(f: Any) -> Any:
        return lambda x: lib.func.jvp(f, (x,), (lib.ones_like(x),))[1]

    return derivative(lambda x: x * derivative(lambda y: x * y * y)(constant(lib, 2.0)))(constant(lib, 3.0))


@program
def confusion_of_modes(lib: Any) -> Any:
    def forward(f: Any) -> Any:
        return lambda x: lib.func.jvp(f, (x,), (lib.ones_like(x),))[1]

    g, two = lib.func.grad, constant(lib, 2.0)
    a = g(lambda x: x * forward(lambda y: x * x * y * y)(x))(two)
    b = forward(lambda x: x * g(lambda y: x * x * y * y)(x))(two)
    return a, b, forward(g(forward(lambda x: x**5)))(two), g(forward(g(lambda x: x**5)))(two)


@program
def a_function_of_the_derivative_by_the_outer(lib: Any) -> Any:
    g = lib.func.grad
    return g(lambda x: g(lambda y: (x * y).sin())(x * x))(constant(lib, 0.7))


@program
def closure_over_a_tracked_tensor(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])
    out = lib.func.grad(lambda x: (w * x * x).sum())(points(lib)[0])
    out.sum().backward()
    return out, w.grad


@program
def argument_that_is_tracked(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    out = lib.func.grad(lambda a: (a**3).sum())(x)
    out.sum().backward()
    return out, x.grad


@program
def argument_that_is_tracked_and_closure_too(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    out = lib.func.grad(lambda a: (a**3 * x).sum())(x)
    out.sum().backward()
    return out, x.grad


@program
def value_keeps_the_outer_graph(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])
    g, v = lib.func.grad_and_value(lambda x: (w * x * x).sum())(points(lib)[0])
    (g.sum() * v).backward()
    return g, v, w.grad


@program
def aux_keeps_the_outer_graph(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])
    g, aux = lib.func.grad(lambda x: ((x * x).sum(), (w * x, x)), has_aux=True)(points(lib)[0])
    aux[0].sum().backward()
    return g, aux, w.grad


@program
def result_beyond_the_argument_only(lib: Any) -> Any:
    x = points(lib)[0]
    g, v = lib.func.grad_and_value(lambda a: (a * a).sum())(x)
    return g.requires_grad, v.requires_grad, x.requires_grad, x.grad, g.grad_fn, v.is_leaf


@program
def an_integer_tensor_gets_no_grad_flag(lib: Any) -> Any:
    x = points(lib)[0]
    seen = []

    def f(a: Any) -> Any:
        seen.extend([a.requires_grad, a.is_leaf, x.requires_grad, a is x])
        return a.sum()

    lib.func.grad(f)(x)
    return seen


@program
def autograd_grad_inside(lib: Any) -> Any:
    def f(a: Any) -> Any:
        (d,) = lib.autograd.grad((a**3).sum(), a, create_graph=True)
        return (d * a).sum()

    return lib.func.grad(f)(points(lib)[0])


@program
def autograd_grad_inside_without_create_graph(lib: Any) -> Any:
    def f(a: Any) -> Any:
        (d,) = lib.autograd.grad((a**3).sum(), a)
        return (d * a).sum()

    return lib.func.grad(f)(points(lib)[0])


# no_grad ----------------------------------------------------------------------------------------------------------


@program
def no_grad_outside(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])
    with lib.no_grad():
        return lib.func.grad(lambda a: (a * a * w).sum())(points(lib)[0])


@program
def no_grad_outside_twice(lib: Any) -> Any:
    with lib.no_grad():
        return lib.func.grad(lib.func.grad(lambda a: a**3))(constant(lib, 2.0))


@program
def no_grad_outside_of_a_tracked_argument(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.no_grad():
        g, v = lib.func.grad_and_value(lambda a: (a**3).sum())(x)
    return g, v


@program
def no_grad_inside(lib: Any) -> Any:
    def f(a: Any) -> Any:
        with lib.no_grad():
            c = a * a
        return (a * c).sum()

    return lib.func.grad(f)(points(lib)[0])


@program
def no_grad_inside_of_everything(lib: Any) -> Any:
    def f(a: Any) -> Any:
        with lib.no_grad():
            return (a * a).sum()

    return lib.func.grad(f)(points(lib)[0])


@program
def no_grad_between_two(lib: Any) -> Any:
    def inner(a: Any) -> Any:
        with lib.no_grad():
            shift = lib.func.grad(lambda b: b**3)(a)
        return a - shift

    return lib.func.grad(inner)(constant(lib, 2.0))


@program
def no_grad_outside_of_vjp_and_jvp(lib: Any) -> Any:
    w = leaf(lib, 2.0)
    x = constant(lib, 3.0)
    with lib.no_grad():
        y, pull = lib.func.vjp(lambda a: a * a * w, x)
        return y, pull(x), lib.func.jvp(lambda a: a * a * w, (x,), (x,)), lib.func.jacrev(lambda a: a * a)(x)


@program
def no_grad_around_the_pullback(lib: Any) -> Any:
    w = leaf(lib, 2.0)
    y, pull = lib.func.vjp(lambda a: a * a * w, constant(lib, 3.0))
    with lib.no_grad():
        return pull(constant(lib, 1.0)), y


@program
def no_grad_inside_of_jvp(lib: Any) -> Any:
    def f(a: Any) -> Any:
        with lib.no_grad():
            c = a * a
        return a * c

    x = constant(lib, 3.0)
    return lib.func.jvp(f, (x,), (x,))


@program
def no_grad_outside_of_nested_transforms(lib: Any) -> Any:
    x, w = leaf(lib, [1.0, 2.0]), leaf(lib, [2.0, 3.0])
    with lib.no_grad():
        a = lib.func.vmap(lib.func.grad(lambda a: a**3))(x)
        b = lib.func.vmap(lib.func.grad_and_value(lambda a, c: a**3 * c))(x, w)
        c = lib.func.jvp(lib.func.grad(lambda a: (a**3 * w).sum()), (x,), (w,))
        d = lib.func.hessian(lambda a: (a**3 * w).sum())(x)
    return a, b, c, d


@program
def the_value_beside_a_gradient_has_a_tangent(lib: Any) -> Any:
    x, t = points(lib)
    both = lib.func.grad_and_value(lambda a: ((a**3).sum(), a.sin()), has_aux=True)
    return lib.func.jvp(both, (x,), (t,))


@program
def what_a_pullback_comes_with_has_a_tangent(lib: Any) -> Any:
    def f(a: Any) -> Any:
        out, pull, aux = lib.func.vjp(lambda b: (b**3, b.sin()), a, has_aux=True)
        return out, pull(t), aux

    x, t = points(lib)
    return lib.func.jvp(f, (x,), (t,))


@program
def detached_inside(lib: Any) -> Any:
    x, t = points(lib)
    f = lambda a: a.detach() * a  # noqa: E731
    return lib.func.jvp(f, (x,), (t,)), lib.func.vjp(f, x)[1](t), lib.func.vmap(f)(x)


@program
def aux_shares_a_freed_part(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])

    def f(a: Any) -> Any:
        h = a * a
        return h.exp().sum(), w * h.exp()

    _, aux = lib.func.grad(f, has_aux=True)(points(lib)[0])
    aux.sum().backward()
    return w.grad


# in place ---------------------------------------------------------------------------------------------------------


@program
def in_place_inside(lib: Any) -> Any:
    def f(a: Any) -> Any:
        b = a * 2
        b.mul_(a).add_(1.0)
        b[0] = a[1] ** 2
        return (b * a).sum()

    return lib.func.grad(f)(points(lib)[0])


@program
def in_place_on_the_argument(lib: Any) -> Any:
    x = points(lib)[0]

    def f(a: Any) -> Any:
        a.mul_(2.0)
        return (a * a).sum()

    return lib.func.grad(f)(x), x


@program
def in_place_inside_of_jvp(lib: Any) -> Any:
    def f(a: Any) -> Any:
        b = a * 2
        b.mul_(a)
        b[0] = a[1] ** 2
        c = b[1:]
        c.exp_()
        return b

    x, t = points(lib)
    return lib.func.jvp(f, (x,), (t,))


@program
def jvp_zeros_filled(lib: Any) -> Any:
    def f(a: Any) -> Any:
        b = lib.zeros(2, 3, dtype=lib.float64)
        b[1] = a
        return b

    x, t = points(lib)
    return lib.func.jvp(f, (x,), (t,))


# vjp --------------------------------------------------------------------------------------------------------------


@program
def vjp_of_two_by_two(lib: Any) -> Any:
    x, y = points(lib)
    out, pull = lib.func.vjp(f_of(lib), x, y)
    return out, pull((x, y)), pull((y, x))


@program
def vjp_of_one(lib: Any) -> Any:
    out, pull = lib.func.vjp(lib.sin, points(lib)[0])
    return out, pull(lib.ones_like(out)), pull(out)


@program
def vjp_of_dicts(lib: Any) -> Any:
    x, y = points(lib)
    out, pull = lib.func.vjp(lambda d: {"p": d["a"] * d["b"], "q": [d["a"].sum()]}, {"a": x, "b": y})
    return out, pull({"p": x, "q": [constant(lib, 2.0)]})


@program
def vjp_has_aux(lib: Any) -> Any:
    x, y = points(lib)
    out, pull, aux = lib.func.vjp(lambda a: (a.sin(), {"x": a * 2}), x, has_aux=True)
    return out, aux, pull(y)


@program
def vjp_has_aux_without(lib: Any) -> Any:
    return lib.func.vjp(lambda a: a.sin(), points(lib)[0], has_aux=True)


@program
def vjp_of_no_tensor(lib: Any) -> Any:
    return lib.func.vjp(lambda a: 3.0, points(lib)[0])[0]


@program
def vjp_of_nothing(lib: Any) -> Any:
    return lib.func.vjp(lambda a: (), points(lib)[0])[0]


@program
def vjp_without_arguments(lib: Any) -> Any:
    return lib.func.vjp(lambda: lib.ones(2))[0]


@program
def vjp_wrong_number_of_cotangents(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.vjp(f_of(lib), x, y)[1](x)


@program
def vjp_wrong_shape_of_cotangent(lib: Any) -> Any:
    x, _ = points(lib)
    return lib.func.vjp(lib.sin, x)[1](x[:2])


@program
def vjp_cotangents_that_nest_otherwise(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.vjp(f_of(lib), x, y)[1]([x, [y]])


@program
def vjp_by_integers(lib: Any) -> Any:
    return lib.func.vjp(lambda a: a * 1.5, lib.tensor([1, 2]))[0]


@program
def vjp_through_the_cotangent(lib: Any) -> Any:
    x = points(lib)[0]
    _, pull = lib.func.vjp(lambda a: a.sin(), x)
    u = leaf(lib, [1.0, 2.0, 3.0])
    (g,) = pull(u)
    (g * g).sum().backward()
    return g, u.grad


@program
def vjp_of_what_does_not_depend(lib: Any) -> Any:
    x, y = points(lib)
    _, pull = lib.func.vjp(lambda a, b: b * 2, x, y)
    return pull(x)


@program
def vjp_returns_its_argument(lib: Any) -> Any:
    x = points(lib)[0]
    out, pull = lib.func.vjp(lambda a: a, x)
    return out, pull(x), out.requires_grad


@program
def vjp_same_argument_twice(lib: Any) -> Any:
    x = points(lib)[0]
    _, pull = lib.func.vjp(lambda a, b: a * a * b, x, x)
    return pull(x)


@program
def vjp_of_the_pullback(lib: Any) -> Any:
    x, y = points(lib)
    _, pull = lib.func.vjp(lib.sin, x)
    _, pull_pull = lib.func.vjp(pull, y)
    return pull_pull((x,))


@program
def vjp_pulls_again_after_no_retain(lib: Any) -> Any:
    x = points(lib)[0]
    _, pull = lib.func.vjp(lambda a: (a * a).exp(), x)
    return pull(x), pull(x)


# jvp --------------------------------------------------------------------------------------------------------------


@program
def jvp_of_two_by_two(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(f_of(lib), (x, y), (y, x))


@program
def jvp_has_aux(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda a: (a.sin(), [a * 2]), (x,), (y,), has_aux=True)


@program
def jvp_has_aux_without(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda a: a.sin(), (x,), (y,), has_aux=True)


@program
def jvp_of_dicts(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda d: {"r": d["a"] * d["b"][0]}, ({"a": x, "b": [y]},), ({"a": y, "b": [x]},))


@program
def jvp_no_tuple(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lib.sin, x, y)


@program
def jvp_list_of_primals(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lib.sin, [x], [y])


@program
def jvp_list_of_tangents(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lib.sin, (x,), [y])


@program
def jvp_too_few_tangents(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(f_of(lib), (x, y), (y,))


@program
def jvp_shape_of_tangent(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lib.sin, (x,), (y[:2],))


@program
def jvp_dtype_of_tangent(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lib.sin, (x,), (y.float(),))


@program
def jvp_of_integers(lib: Any) -> Any:
    i = lib.tensor([1, 2])
    return lib.func.jvp(lambda a: a * 1.5, (i,), (i,))


@program
def jvp_without_primals(lib: Any) -> Any:
    return lib.func.jvp(lambda: lib.ones(2), (), ())


@program
def jvp_number_as_primal(lib: Any) -> Any:
    return lib.func.jvp(lambda a: a * lib.ones(2), (2.0,), (1.0,))


@program
def jvp_of_no_tensor(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda a: 3.0, (x,), (y,))


@program
def jvp_of_what_does_not_depend(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda a: lib.ones(2), (x,), (y,))


@program
def jvp_of_a_result_of_integers(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda a: (a.argmax(), a > 0), (x,), (y,))


@program
def jvp_python_control_flow(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda a: a * 2 if a.sum() > 0 else a * 3, (x,), (y,))


@program
def jvp_item_inside(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda a: a * a.sum().item(), (x,), (y,))


@program
def jvp_of_jvp(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda a: lib.func.jvp(lib.sin, (a,), (y,))[1], (x,), (y,))


@program
def jvp_of_a_tracked_primal(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    out, t = lib.func.jvp(lambda a: a**3, (x,), (lib.ones_like(x),))
    t.sum().backward()
    return out, t, x.grad


@program
def jvp_of_a_tracked_tangent(lib: Any) -> Any:
    v = leaf(lib, [1.0, 2.0])
    out, t = lib.func.jvp(lambda a: a**3, (constant(lib, [0.5, 2.0]),), (v,))
    t.sum().backward()
    return out, t, v.grad


@program
def jvp_closure_over_a_tracked_tensor(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])
    x, y = points(lib)
    out, t = lib.func.jvp(lambda a: a * a * w, (x,), (y,))
    (out * t).sum().backward()
    return out, t, w.grad


@program
def jvp_of_complex(lib: Any) -> Any:
    z = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex128)
    return lib.func.jvp(lambda a: (a * a, a.abs(), a.real), (z,), (z * 1j,))


@program
def jvp_strict(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lib.sin, (x,), (y,), strict=True)


@program
def jvp_strict_independent(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.jvp(lambda a: lib.ones(2), (x,), (y,), strict=True)


# linearize ----------------------------------------------------------------------------------------------------------


@program
def linearize_of_two_by_two(lib: Any) -> Any:
    x, y = points(lib)
    out, push = lib.func.linearize(f_of(lib), x, y)
    return out, push(y, x), push(x, y)


@program
def linearize_of_dicts(lib: Any) -> Any:
    x, y = points(lib)
    out, push = lib.func.linearize(lambda d: {"r": d["a"] * d["b"]}, {"a": x, "b": y})
    return out, push({"a": y, "b": x})


@program
def linearize_too_few(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.linearize(f_of(lib), x, y)[1](x)


@program
def linearize_wrong_shape(lib: Any) -> Any:
    x, _ = points(lib)
    return lib.func.linearize(lib.sin, x)[1](x[:2])


@program
def linearize_in_a_batch(lib: Any) -> Any:
    x, y = points(lib)
    _, push = lib.func.linearize(lambda a: a.sin() * a.sum(), x)
    return lib.func.vmap(push)(lib.stack([x, y]))


# jacrev, jacfwd, hessian --------------------------------------------------------------------------------------------


def both(lib: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
    return [jac(f, **kwargs)(*args) for jac in (lib.func.jacrev, lib.func.jacfwd)]


@program
def jacobian_of_two_by_two(lib: Any) -> Any:
    return both(lib, f_of(lib), *points(lib), argnums=(0, 1))


@program
def jacobian_by_the_second(lib: Any) -> Any:
    return both(lib, f_of(lib), *points(lib), argnums=1)


@program
def jacobian_by_the_second_in_a_tuple(lib: Any) -> Any:
    return both(lib, f_of(lib), *points(lib), argnums=(1,))


@program
def jacobian_of_dicts(lib: Any) -> Any:
    x, y = points(lib)
    return both(lib, lambda d: {"p": d["a"] * d["b"][0], "q": [d["a"].sum()]}, {"a": x, "b": [y]})


@program
def jacobian_of_matrices(lib: Any) -> Any:
    m = lib.arange(6.0, dtype=lib.float64).reshape(2, 3)
    return both(lib, lambda a: a @ a.mT, m)


@program
def jacobian_has_aux(lib: Any) -> Any:
    x = points(lib)[0]
    return both(lib, lambda a: (a.sin(), {"x": a * 2}), x, has_aux=True)


@program
def jacobian_of_a_scalar(lib: Any) -> Any:
    return both(lib, lambda a: a**3, constant(lib, 2.0))


@program
def jacobian_of_what_does_not_depend(lib: Any) -> Any:
    x, _ = points(lib)
    return both(lib, lambda a: lib.ones(2, dtype=lib.float64), x)


@program
def jacobian_of_no_tensor(lib: Any) -> Any:
    return lib.func.jacrev(lambda a: 3.0)(points(lib)[0])


@program
def jacobian_forward_of_no_tensor(lib: Any) -> Any:
    return lib.func.jacfwd(lambda a: 3.0)(points(lib)[0])


@program
def jacobian_in_chunks(lib: Any) -> Any:
    return [lib.func.jacrev(f_of(lib), argnums=(0, 1), chunk_size=n)(*points(lib)) for n in (1, 2, 3, 100)]


@program
def jacobian_chunk_size_0(lib: Any) -> Any:
    return lib.func.jacrev(lib.sin, chunk_size=0)(points(lib)[0])


@program
def jacobian_of_jacobian(lib: Any) -> Any:
    f = lambda a: (a**3).cumsum(0)  # noqa: E731
    j, k = lib.func.jacrev, lib.func.jacfwd
    return [one(two(f))(points(lib)[0]) for one in (j, k) for two in (j, k)]


@program
def hessian_of_a_function(lib: Any) -> Any:
    return lib.func.hessian(lambda a: (a**3).sum() * a[0])(points(lib)[0])


@program
def hessian_by_two(lib: Any) -> Any:
    return lib.func.hessian(lambda a, b: (a**3 * b.exp()).sum(), argnums=(0, 1))(*points(lib))


@program
def hessian_of_a_dict(lib: Any) -> Any:
    x, y = points(lib)
    return lib.func.hessian(lambda d: (d["a"] ** 2 * d["b"]).sum())({"a": x, "b": y})


@program
def hessian_of_vectors(lib: Any) -> Any:
    return lib.func.hessian(lambda a: (a**3).cumsum(0))(points(lib)[0])


@program
def third_derivatives(lib: Any) -> Any:
    f = lambda a: (a**4).sum() + a.prod()  # noqa: E731
    return lib.func.jacrev(lib.func.hessian(f))(points(lib)[0])


@program
def jacobian_of_a_tracked_argument(lib: Any) -> Any:
    found = []
    for jac in (lib.func.jacrev, lib.func.jacfwd):
        x = leaf(lib, [1.0, 2.0])
        j = jac(lambda a: a**3)(x)
        j.sum().backward()
        found.append((j, x.grad))
    return found


@program
def jacobian_with_a_tracked_closure(lib: Any) -> Any:
    found = []
    for jac in (lib.func.jacrev, lib.func.jacfwd):
        w = leaf(lib, [1.0, 2.0, 3.0])
        j = jac(lambda a, w=w: a**2 * w)(points(lib)[0])
        j.sum().backward()
        found.append((j, w.grad))
    return found


@program
def jacobian_by_integers(lib: Any) -> Any:
    return lib.func.jacrev(lambda a: a * 1.5)(lib.tensor([1, 2]))


@program
def jacobian_forward_by_integers(lib: Any) -> Any:
    return lib.func.jacfwd(lambda a: a * 1.5)(lib.tensor([1, 2]))


@program
def jacobian_of_mixed_dtypes(lib: Any) -> Any:
    return both(lib, lambda a, b: (a.double() * b).sum(), lib.ones(2), constant(lib, [1.0, 3.0]), argnums=(0, 1))


@program
def jacobian_argnums_out_of_range(lib: Any) -> Any:
    return lib.func.jacrev(lib.sin, argnums=3)(points(lib)[0])


@program
def jacobian_forward_argnums_out_of_range(lib: Any) -> Any:
    return lib.func.jacfwd(lib.sin, argnums=3)(points(lib)[0])


@program
def jacobian_of_in_place(lib: Any) -> Any:
    def f(a: Any) -> Any:
        b = a.clone()
        b[1:] *= a[:-1]
        return b

    return both(lib, f, points(lib)[0])


# functional_call, stack_module_state --------------------------------------------------------------------------------


def net(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Tanh(), lib.nn.Linear(3, 1)).double()
    with lib.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(lib.arange(float(p.numel()), dtype=lib.float64).reshape(p.shape) * 0.1 - 0.2 * i)
    return model


def data(lib: Any) -> Any:
    return lib.arange(8.0, dtype=lib.float64).reshape(4, 2) / 5 - 0.6


@program
def functional_call_with_its_own(lib: Any) -> Any:
    model = net(lib)
    return lib.func.functional_call(model, dict(model.named_parameters()), data(lib)), model(data(lib))


@program
def functional_call_with_some(lib: Any) -> Any:
    model = net(lib)
    out = lib.func.functional_call(model, {"0.weight": lib.ones(3, 2, dtype=lib.float64)}, (data(lib),))
    return out, model(data(lib))


@program
def functional_call_unknown_name(lib: Any) -> Any:
    return lib.func.functional_call(net(lib), {"3.weight": lib.ones(3, 2)}, (data(lib),))


@program
def functional_call_no_tensor(lib: Any) -> Any:
    return lib.func.functional_call(net(lib), {"0.weight": 3.0}, (data(lib),))


@program
def functional_call_strict(lib: Any) -> Any:
    return lib.func.functional_call(
        net(lib), {"0.weight": lib.ones(3, 2, dtype=lib.float64)}, (data(lib),), strict=True
    )


@program
def functional_call_two_dicts(lib: Any) -> Any:
    model = net(lib)
    params = dict(model.named_parameters())
    first = {"0.weight": params.pop("0.weight")}
    return lib.func.functional_call(model, (first, params), (data(lib),))


@program
def functional_call_two_dicts_with_the_same(lib: Any) -> Any:
    model = net(lib)
    params = dict(model.named_parameters())
    return lib.func.functional_call(model, (params, params), (data(lib),))


@program
def functional_call_of_a_failing_module(lib: Any) -> Any:
    model = net(lib)
    before = model[0].weight
    try:
        lib.func.functional_call(model, {"0.weight": lib.ones(7, 7, dtype=lib.float64)}, (data(lib),))
    except RuntimeError:
        return model[0].weight is before, isinstance(model[0].weight, lib.nn.Parameter), model(data(lib))
    return "no error"


@program
def functional_call_tied(lib: Any) -> Any:
    class Tied(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = lib.nn.Parameter(lib.tensor(2.0))
            self.b = self.a

        def forward(self, x: Any) -> Any:
            return x * self.a + self.b

    x, new = lib.tensor([1.0, 2.0]), {"a": lib.tensor(5.0)}
    both_new = {"a": lib.tensor(5.0), "b": lib.tensor(7.0)}
    return (
        lib.func.functional_call(Tied(), new, x),
        lib.func.functional_call(Tied(), new, x, tie_weights=False),
        lib.func.functional_call(Tied(), {"b": lib.tensor(5.0)}, x),
        lib.func.functional_call(Tied(), both_new, x, tie_weights=False),
    )


@program
def functional_call_tied_given_differently(lib: Any) -> Any:
    class Tied(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = lib.nn.Parameter(lib.tensor(2.0))
            self.b = self.a

        def forward(self, x: Any) -> Any:
            return x * self.a + self.b

    return lib.func.functional_call(Tied(), {"a": lib.tensor(5.0), "b": lib.tensor(7.0)}, lib.tensor(1.0))


@program
def functional_call_writes_a_buffer(lib: Any) -> Any:
    class Counting(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", lib.tensor(0.0))

        def forward(self, x: Any) -> Any:
            self.n = self.n + 1
            return x * self.n

    model, buffers = Counting(), {"n": lib.tensor(4.0)}
    out = lib.func.functional_call(model, buffers, lib.tensor(2.0))
    return out, model.n, buffers


@program
def functional_call_gradient(lib: Any) -> Any:
    model = net(lib)
    params = {k: v.detach() for k, v in model.named_parameters()}
    return lib.func.grad(lambda p: lib.func.functional_call(model, p, (data(lib),)).pow(2).sum())(params)


@program
def per_sample_gradients(lib: Any) -> Any:
    model = net(lib)
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return ((lib.func.functional_call(model, p, (x[None],)) - y) ** 2).mean()

    y = constant(lib, [0.5, 1.0, -1.0, 2.0])
    return lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))(params, data(lib), y)


@program
def ensemble(lib: Any) -> Any:
    models = [net(lib) for _ in range(3)]
    with lib.no_grad():
        for k, model in enumerate(models):
            model[0].weight.mul_(k + 1.0)
    params, buffers = lib.func.stack_module_state(models)

    def call(p: Any, b: Any, x: Any) -> Any:
        return lib.func.functional_call(models[0], (p, b), (x,))

    out = lib.func.vmap(call, in_dims=(0, 0, None))(params, buffers, data(lib))
    out.sum().backward()
    return out, params, {k: p.grad for k, p in params.items()}, models[0][0].weight.grad


@program
def stack_no_models(lib: Any) -> Any:
    return lib.func.stack_module_state([])


@program
def stack_models_of_different_classes(lib: Any) -> Any:
    return lib.func.stack_module_state([lib.nn.Linear(2, 2), lib.nn.Tanh()])


@program
def stack_models_in_different_modes(lib: Any) -> Any:
    return lib.func.stack_module_state([lib.nn.Linear(2, 2), lib.nn.Linear(2, 2).eval()])


@program
def stack_models_some_frozen(lib: Any) -> Any:
    models = [net(lib), net(lib)]
    models[1][0].weight.requires_grad_(False)
    return lib.func.stack_module_state(models)


@program
def stack_buffers(lib: Any) -> Any:
    params, buffers = lib.func.stack_module_state([lib.nn.BatchNorm1d(2) for _ in range(2)])
    return buffers, sorted(params)


# Functions of the user's ----------------------------------------------------------------------------------------------


def cube(lib: Any, **more: Any) -> Any:
    """x^3 as a Function with setup_context, and what else is given."""

    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x**3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x**2

    return type("Cube", (Cube,), {k: v if isinstance(v, bool) else staticmethod(v) for k, v in more.items()})


def cube_jvp(ctx: Any, t: Any) -> Any:
    (x,) = ctx.saved_tensors
    return 3 * x**2 * t


def cube_vmap(info: Any, in_dims: Any, x: Any) -> Any:
    assert info.batch_size == 2
    assert info.randomness == "error"
    assert in_dims == (0,)
    return x**3, 0


def batch(lib: Any) -> Any:
    return lib.stack(points(lib))


@program
def function_in_reverse_transforms(lib: Any) -> Any:
    f, x = cube(lib).apply, points(lib)[0]
    g = lib.func.grad(lambda a: f(a).sum())
    return g(x), lib.func.grad(lambda a: g(a).sum())(x), lib.func.vjp(f, x)[1](x)


@program
def jacobian_of_nothing(lib: Any) -> Any:
    return lib.func.jacrev(lib.sin)(points(lib)[0][:0])


@program
def function_of_combined_forward(lib: Any) -> Any:
    class Old(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return lib.vmap(Old.apply)(batch(lib))


@program
def function_without_jvp(lib: Any) -> Any:
    x, t = points(lib)
    return lib.func.jvp(cube(lib).apply, (x,), (t,))


@program
def function_with_jvp(lib: Any) -> Any:
    x, t = points(lib)
    f = cube(lib, jvp=cube_jvp).apply
    return lib.func.jvp(f, (x,), (t,))


@program
def function_with_jvp_of_another_shape(lib: Any) -> Any:
    x, t = points(lib)
    return lib.func.jvp(cube(lib, jvp=lambda ctx, t: t[:1]).apply, (x,), (t,))


@program
def function_with_jvp_of_too_many(lib: Any) -> Any:
    x, t = points(lib)
    return lib.func.jvp(cube(lib, jvp=lambda ctx, t: (t, t)).apply, (x,), (t,))


@program
def function_forward_over_reverse(lib: Any) -> Any:
    x, t = points(lib)
    f = cube(lib, jvp=cube_jvp).apply
    return lib.func.jvp(lib.func.grad(lambda a: f(a).sum()), (x,), (t,)), lib.func.jvp(
        lib.func.grad(f), (x[0],), (t[0],)
    )


@program
def function_without_vmap(lib: Any) -> Any:
    return lib.vmap(cube(lib).apply)(batch(lib))


@program
def function_with_vmap(lib: Any) -> Any:
    f = cube(lib, vmap=cube_vmap).apply
    return lib.vmap(f)(batch(lib))


@program
def function_with_vmap_that_gives_no_dims(lib: Any) -> Any:
    return lib.vmap(cube(lib, vmap=lambda info, dims, x: x**3).apply)(batch(lib))


@program
def function_with_generated_vmap(lib: Any) -> Any:
    f = cube(lib, generate_vmap_rule=True).apply
    b = batch(lib)
    first = lib.func.grad(lambda a: f(a).sum())
    return lib.vmap(f)(b), lib.vmap(f, 1)(b), lib.vmap(first)(b), lib.func.grad(lambda a: lib.vmap(f)(a).sum())(b)


@program
def function_with_generated_vmap_and_jvp(lib: Any) -> Any:
    f = cube(lib, generate_vmap_rule=True, jvp=cube_jvp).apply
    b = batch(lib)
    return lib.vmap(lambda a: lib.func.jvp(f, (a,), (a,)))(b), lib.func.jacfwd(f)(b[0]), lib.func.jacrev(f)(b[0])


@program
def function_with_both(lib: Any) -> Any:
    return lib.vmap(cube(lib, generate_vmap_rule=True, vmap=cube_vmap).apply)(batch(lib))


@program
def function_whose_backward_is_not_that_of_its_forward(lib: Any) -> Any:
    class Straight(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any, scale: Any, n: Any) -> Any:
            return x.round() * scale, n

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[1], output[0])
            ctx.n = inputs[2]

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            scale, out = ctx.saved_tensors
            return g * ctx.n, (g * scale + out.sum() * 0).sum(), None

    x, scale = leaf(lib, [[1.2, 2.7], [3.1, 4.9]]), leaf(lib, 3.0)
    out, n = lib.vmap(lambda a: Straight.apply(a, scale, lib.tensor(5.0)))(x)
    out.sum().backward()
    twice = lib.vmap(lib.vmap(lambda a: Straight.apply(a, scale.detach(), lib.tensor(5.0))[0]))
    return out, n, x.grad, scale.grad, lib.func.grad(lambda a: twice(a).pow(2).sum())(x.detach())


@program
def function_with_tracked_input_in_vmap(lib: Any) -> Any:
    x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
    out = lib.vmap(cube(lib, generate_vmap_rule=True).apply)(x)
    out.sum().backward()
    return out, x.grad


# structure ----------------------------------------------------------------------------------------------------------


@program
def wrapped_names(lib: Any) -> Any:
    def some_function(x: Any) -> Any:
        "What it says."
        return x.sum()

    made = [lib.func.grad, lib.func.grad_and_value, lib.func.vmap, lib.func.jacrev, lib.func.jacfwd]
    return [(t(some_function).__name__, t(some_function).__doc__) for t in made[:4]]


@program
def state_after_an_error_inside(lib: Any) -> Any:
    def fails(a: Any) -> Any:
        raise KeyError("x")

    x, t = points(lib)
    seen = []
    calls = [
        lambda: lib.func.grad(fails)(x),
        lambda: lib.func.vmap(fails)(x),
        lambda: lib.func.jvp(fails, (x,), (t,)),
        lambda: lib.func.jacrev(fails)(x),
        lambda: lib.func.jacfwd(fails)(x),
    ]
    for call in calls:
        try:
            call()
        except KeyError:
            seen.append("KeyError")
        seen.append(lib.is_grad_enabled())
        seen.append((x * x).sum())
    with lib.no_grad():
        try:
            lib.func.grad(fails)(x)
        except KeyError:
            seen.append(lib.is_grad_enabled())
    return seen


# Arguments, structures and refusals, each in every form ---------------------------------------------------------------


def each(lib: Any, *calls: Any) -> list[Any]:
    """What each call gives, or the name of what it raises."""
    found: list[Any] = []
    for call in calls:
        try:
            found.append(call())
        except Exception as error:
            found.append(type(error).__name__)
    return found


def product(a: Any, b: Any) -> Any:
    return (a**2 * b).sum()


@program
def every_form_of_argnums(lib: Any) -> Any:
    x, y = points(lib)
    forms = (0, 1, -1, (0,), (0, 1), (1, 0), (-1, 0), (0, 0), 2, (), [0], "a", (0, 2), -3, 1.0)
    return each(lib, *(lambda form=form: lib.func.grad(product, argnums=form)(x, y) for form in forms))


@program
def every_form_of_argnums_of_a_jacobian(lib: Any) -> Any:
    x, y = points(lib)
    forms = (0, 1, -1, (0,), (0, 1), (1, 0), (-1, 0), (0, 0), 2, (), [0], "a", (0, 2))
    return each(lib, *(lambda form=form: lib.func.jacrev(product, argnums=form)(x, y) for form in forms))


def aux_in_every_transform(lib: Any, f: Any) -> Any:
    x, y = points(lib)
    return each(
        lib,
        lambda: lib.func.grad(f, has_aux=True)(x),
        lambda: lib.func.grad_and_value(f, has_aux=True)(x),
        lambda: lib.func.jacrev(f, has_aux=True)(x),
        lambda: lib.func.jacfwd(f, has_aux=True)(x),
        lambda: lib.func.jvp(f, (x,), (y,), has_aux=True),
        lambda: [lib.func.vjp(f, x, has_aux=True)[i] for i in (0, 2)],
    )


@program
def aux_of_tensors(lib: Any) -> Any:
    return aux_in_every_transform(lib, lambda x: ((x**2).sum(), {"a": x * 2, "b": [x, (x + 1,)]}))


@program
def aux_that_is_no_tensor(lib: Any) -> Any:
    return aux_in_every_transform(lib, lambda x: ((x**2).sum(), 3))


@program
def aux_with_a_number_in_it(lib: Any) -> Any:
    return aux_in_every_transform(lib, lambda x: ((x**2).sum(), [x, 1.0]))


@program
def aux_that_is_missing(lib: Any) -> Any:
    return aux_in_every_transform(lib, lambda x: (x**2).sum())


@program
def aux_in_a_triple(lib: Any) -> Any:
    return aux_in_every_transform(lib, lambda x: ((x**2).sum(), x, x))


@program
def trees_of_every_kind(lib: Any) -> Any:
    x, y = points(lib)
    pair = collections.namedtuple("pair", "a b")
    by_name = lib.func.grad(lambda n: (n.a * n.b).sum())(pair(x, y))
    ordered = lib.func.grad(lambda d: (d["a"] * d["b"]).sum())(collections.OrderedDict(a=x, b=y))
    f = lambda d, xs: {"o": (d["a"] * xs[0]).sum(), "p": (xs[1] ** 2,)}  # noqa: E731
    given = {"a": x}, [y, x.sum()]
    return (
        [type(by_name).__name__, tuple(by_name)],
        [type(ordered).__name__, dict(ordered)],
        lib.func.jacrev(f, argnums=(0, 1))(*given),
        lib.func.jacfwd(f, argnums=(0, 1))(*given),
        lib.func.grad(lambda d, xs: f(d, xs)["o"], argnums=(0, 1))(*given),
    )


@program
def what_is_no_tensor_among_the_arguments(lib: Any) -> Any:
    x, _ = points(lib)
    f = lambda d: d["a"].sum()  # noqa: E731
    return each(
        lib,
        lambda: lib.func.grad(f)({"a": x, "b": None}),
        lambda: lib.func.grad(f)({"a": x, "b": 2.0}),
        lambda: lib.func.grad(lambda a: a.sum())(lib.tensor([1])),
        lambda: lib.func.jacrev(lambda a: a * 1.0)(lib.tensor([1])),
    )


@program
def what_a_function_may_return(lib: Any) -> Any:
    x, _ = points(lib)
    results = (lambda a: 2.0, lambda a: (a.sum(),), lambda a: a, lambda a: a[:1], lambda a: None, lambda a: [a.sum()])
    return [
        each(
            lib,
            lambda f=f: lib.func.grad(f)(x),
            lambda f=f: lib.func.jacrev(f)(x),
            lambda f=f: lib.func.vjp(f, x)[0],
            lambda f=f: lib.func.jvp(f, (x,), (x,)),
        )
        for f in results
    ]


@program
def what_cotangents_may_be(lib: Any) -> Any:
    x, y = points(lib)
    _, one = lib.func.vjp(lambda a: a * 2, x)
    _, two = lib.func.vjp(lambda a: (a, a * 2), x)
    _, named = lib.func.vjp(lambda a: {"k": a}, x)
    return each(
        lib,
        lambda: one(y),
        lambda: one((y,)),
        lambda: one(y[:1]),
        lambda: two((x, y)),
        lambda: two(x, y),
        lambda: two([x, y]),
        lambda: two(x),
        lambda: named({"k": y}),
        lambda: named({"l": y}),
        lambda: one(y, True),
    )


@program
def what_tangents_may_be(lib: Any) -> Any:
    x, y = points(lib)
    given = (
        ((x,), (y,)),
        (x, (y,)),
        ((x,), y),
        ((x,), (y, y)),
        ((), ()),
        ((x,), (y[:1],)),
        ([x], [y]),
        ((x,), [y]),
        ((2.0,), (y,)),
        ((x,), (2.0,)),
    )
    return each(lib, *(lambda a=a: lib.func.jvp(lambda *xs: xs[0] * 2, *a) for a in given))


@program
def a_linearized_function(lib: Any) -> Any:
    x, y = points(lib)
    value, push = lib.func.linearize(lambda a, b: (a * b, a.sin()), x, y)
    _, single = lib.func.linearize(lambda a: a.sin() * a, x)
    every = lib.vmap(single)(lib.eye(3, dtype=lib.float64))
    given = ((), (x, x), (x[:2],), (x.float(),), ([x],))
    refused = each(lib, *(lambda a=a: single(*a) for a in given))
    return value, push(x, y * 0), push(x * 0, y), every, refused


# Modes, and what runs inside ------------------------------------------------------------------------------------------


@program
def recording_off_inside_and_outside(lib: Any) -> Any:
    x = lib.tensor(3.0)

    def f(a: Any) -> Any:
        with lib.no_grad():
            shift = a**2
        return a**2 - shift

    inside = lib.func.grad(f)(x)
    nested = lib.func.grad(lambda a: lib.func.grad(f)(a))(x)
    with lib.no_grad():
        outside = lib.func.grad(f)(x)
    return inside, nested, outside


@program
def a_gradient_within_no_grad_within_a_gradient(lib: Any) -> Any:
    def f(a: Any) -> Any:
        with lib.no_grad():
            return lib.func.grad(lambda b: b**3)(a) * a

    return lib.func.grad(f)(lib.tensor(3.0))


@program
def forward_mode_and_no_grad(lib: Any) -> Any:
    x, one = lib.tensor(3.0), lib.tensor(1.0)

    def f(a: Any) -> Any:
        with lib.no_grad():
            c = a**2
        return c * a

    tracked = lib.tensor(3.0, requires_grad=True)
    with lib.no_grad():
        outside = lib.func.jvp(lambda a: a**2, (tracked,), (one,))
    return lib.func.jvp(f, (x,), (one,)), outside


@program
def forward_mode_switched_off(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.autograd.forward_ad")
    x, one = lib.tensor(3.0), lib.tensor(1.0)
    with lib.autograd.forward_ad._set_fwd_grad_enabled(False):
        found = lib.func.jvp(lambda a: a**2, (x,), (one,))
    return found, lib.func.jvp(lambda a: a**2, (x,), (one,))


@program
def reverse_mode_by_hand_inside(lib: Any) -> Any:
    def f(a: Any) -> Any:
        (g,) = lib.autograd.grad((a**3).sum(), a, create_graph=True)
        return g.sum()

    return lib.func.grad(f)(points(lib)[0])


@program
def backward_on_what_transforms_return(lib: Any) -> Any:
    x, w = leaf(lib, [3.0, 1.0]), leaf(lib, [2.0, 5.0])
    found = []
    for transform in (lib.func.grad, lib.func.jacrev, lib.func.jacfwd):
        x.grad = w.grad = None
        transform(lambda a: (a**3 * w).sum())(x).sum().backward()
        found.append((x.grad, w.grad))
    return found


@program
def the_values_of_tensors_inside(lib: Any) -> Any:
    x, _ = points(lib)
    return each(
        lib,
        lambda: lib.func.grad(lambda a: a.sum() * a.sum().item())(x),
        lambda: lib.func.grad(lambda a: a.sum() if a.sum() > 0 else -a.sum())(x),
        lambda: lib.func.grad(lambda a: (a * a.detach()).sum())(x),
        lambda: lib.func.jvp(lambda a: a * a.sum().item(), (x,), (x,)),
    )


@program
def every_nesting_of_jacobians(lib: Any) -> Any:
    x, _ = points(lib)
    f = lambda a: (a.sin() * a.prod()).sum()  # noqa: E731
    kinds = (lib.func.jacrev, lib.func.jacfwd)
    return [outer(inner(f))(x) for outer in kinds for inner in kinds]


@program
def hessians_of_a_batch(lib: Any) -> Any:
    x, y = points(lib)
    return lib.vmap(lib.func.hessian(lambda a: (a**3).prod()))(lib.stack([x, y]))


@program
def perturbations_are_not_confused(lib: Any) -> Any:
    x, one = lib.tensor(1.0), lib.tensor(1.0)

    def derivative(f: Any, at: Any) -> Any:
        return lib.func.jvp(f, (at,), (one,))[1]

    grad = lib.func.grad
    return (
        grad(lambda a: a * grad(lambda b: a + b)(a))(x),
        derivative(lambda a: a * derivative(lambda b: a + b, one), x),
        derivative(lambda a: a * grad(lambda b: a + b)(a), x),
        grad(lambda a: a * derivative(lambda b: a * b, a))(x),
    )


@program
def a_jacobian_in_chunks(lib: Any) -> Any:
    x, _ = points(lib)
    sizes = (None, 1, 2, 7, 0, -1)
    return each(lib, *(lambda n=n: lib.func.jacrev(lambda a: a.sin(), chunk_size=n)(x) for n in sizes))


@program
def a_jacobian_by_copying(lib: Any) -> Any:
    return lib.func.jacrev(lib.sin, chunk_size=2, _preallocate_and_copy=True)(points(lib)[0])


@program
def random_numbers_in_a_jacobian(lib: Any) -> Any:
    x, _ = points(lib)
    f = lambda a: a * lib.rand(()) * 0  # noqa: E731
    return each(lib, *(lambda m=m: lib.func.jacfwd(f, randomness=m)(x) for m in ("error", "same", "different", "x")))


# Transforms within transforms -----------------------------------------------------------------------------------------


@program
def writes_within_every_transform(lib: Any) -> Any:
    x, y = points(lib)

    def f(a: Any) -> Any:
        b = a.clone()
        b[0] = 2 * a[1]
        b.view(-1)[1:].mul_(3)
        c = lib.zeros_like(a)
        c.copy_(b * a)
        return (c**2).sum()

    value = lib.func.jvp(f, (x,), (y,))
    return lib.func.grad(f)(x), lib.func.jacfwd(f)(x), lib.func.hessian(f)(x), value, lib.vmap(f)(lib.stack([x, y]))


@program
def writes_that_an_inner_transform_makes_of_outer_values(lib: Any) -> Any:
    def f(a: Any) -> Any:
        def g(b: Any) -> Any:
            c = lib.zeros(2, dtype=lib.float64)
            c[0] = a * b
            d = a.clone()
            d.mul_(b)
            return c.sum() + d

        return lib.func.grad(g)(a)

    return lib.func.grad(f)(constant(lib, 3.0))


@program
def derivatives_of_what_vjp_returns(lib: Any) -> Any:
    x, y = points(lib)
    _, pull = lib.func.vjp(lambda a: a.sin() * a.sum(), x)
    value, again = lib.func.vjp(lambda v: pull(v)[0], y)
    return (
        value,
        again(x),
        lib.func.jvp(lambda v: pull(v)[0], (y,), (x,)),
        lib.func.grad(lambda v: pull(v)[0].sum())(y),
        lib.vmap(pull)(lib.eye(3, dtype=lib.float64)),
    )


@program
def vjp_within_grad(lib: Any) -> Any:
    def f(a: Any) -> Any:
        _, pull = lib.func.vjp(lambda b: b**3, a)
        return pull(a)[0].sum()

    return lib.func.grad(f)(points(lib)[0])


@program
def every_way_to_a_product_with_the_hessian(lib: Any) -> Any:
    x, v = points(lib)
    f = lambda a: (a**3 * a.sum()).sum()  # noqa: E731
    grad = lib.func.grad
    return (
        lib.func.jvp(grad(f), (x,), (v,))[1],
        grad(lambda a: (grad(f)(a) * v).sum())(x),
        lib.func.vjp(grad(f), x)[1](v),
        lib.func.hessian(f)(x) @ v,
        grad(lambda a: lib.func.jvp(f, (a,), (v,))[1])(x),
    )


@program
def a_step_of_learning_to_learn(lib: Any) -> Any:
    w, examples = constant(lib, [0.5, 0.2]), constant(lib, [[1.0, 2.0], [3.0, 4.0]])

    def loss(w: Any, x: Any) -> Any:
        return ((w * x).sum() - 1) ** 2

    def adapted(w: Any, x: Any) -> Any:
        return loss(w - 0.01 * lib.func.grad(loss)(w, x), x)

    each = lib.vmap(lib.func.grad(adapted), in_dims=(None, 0))(w, examples)
    return each, lib.func.grad(lambda a: lib.vmap(adapted, in_dims=(None, 0))(a, examples).sum())(w)


@program
def forces_of_an_energy(lib: Any) -> Any:
    r = constant(lib, [1.0, 1.1, 1.5])
    force = lambda r: -lib.vmap(lib.func.grad(lambda r: 4 * ((1 / r) ** 12 - (1 / r) ** 6)))(r)  # noqa: E731
    return force(r), lib.func.jacrev(force)(r), lib.func.jacfwd(force)(r)


@program
def gradients_for_each_example_by_a_dict_of_parameters(lib: Any) -> Any:
    layer = lib.nn.Linear(2, 1).double()
    with lib.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.fill_(0.1)
    params = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(p: Any, x: Any) -> Any:
        return lib.func.functional_call(layer, p, (x,)).pow(2).sum()

    x = lib.arange(6.0, dtype=lib.float64).reshape(3, 2)
    return lib.vmap(lib.func.grad(loss), in_dims=(None, 0))(params, x), lib.func.hessian(loss)(params, x)


@program
def aux_of_an_inner_transform(lib: Any) -> Any:
    def f(a: Any) -> Any:
        g, product = lib.func.grad(lambda b: ((a * b).sum(), b * a), has_aux=True)(a)
        return (g**2).sum() + product.sum(), {"product": product}

    return lib.func.grad(f, has_aux=True)(points(lib)[0])


@program
def aux_in_the_graph_around(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    g, aux = lib.func.grad(lambda a: ((a**2).sum(), a * 3), has_aux=True)(x)
    return g, aux, lib.autograd.grad(aux.sum() + g.sum(), x)


@program
def integers_and_bools_in_and_out(lib: Any) -> Any:
    x, _ = points(lib)
    functions = (lambda a: a.long().sum(), lambda a: a.sum() > 0, lambda a: a.argmax())
    mask = lib.tensor([True, False, True])
    found = [
        each(
            lib,
            lambda f=f: lib.func.grad(f)(x),
            lambda f=f: lib.func.jacrev(f)(x),
            lambda f=f: lib.func.jacfwd(f)(x),
            lambda f=f: lib.func.jvp(f, (x,), (x,)),
        )
        for f in functions
    ]
    return found, lib.func.grad(lambda a, m: (a * m).sum() + a[a.argmax()])(x, mask)


@program
def what_a_transformed_tensor_says_of_itself(lib: Any) -> Any:
    seen: list[Any] = []

    def f(a: Any) -> Any:
        seen.append((a.requires_grad, (a * 2).requires_grad, list(a.shape), a.dim(), len(a), a.is_floating_point()))
        return a.sum()

    x, _ = points(lib)
    lib.func.grad(f)(x)
    lib.func.jvp(f, (x,), (x,))
    lib.vmap(f)(lib.stack([x, x]))
    return seen


# Modules --------------------------------------------------------------------------------------------------------------


@program
def names_that_a_module_has_not(lib: Any) -> Any:
    module, x = lib.nn.Linear(2, 1), lib.ones(2)
    given = ({"more": x}, {"a.b": x}, {"weight": x.reshape(1, 2), "more": x})
    found = each(lib, *(lambda d=d: list(lib.func.functional_call(module, d, x).shape) for d in given))
    strict = each(lib, *(lambda d=d: lib.func.functional_call(module, d, x, strict=True) for d in given))
    return found, strict


@program
def a_call_that_raises_leaves_the_module(lib: Any) -> Any:
    module = lib.nn.Linear(2, 1)
    weight = module.weight
    try:
        lib.func.functional_call(module, {"weight": lib.ones(5, 5)}, lib.ones(2))
    except RuntimeError:
        return module.weight is weight


@program
def buffers_that_a_call_changes(lib: Any) -> Any:
    norm = lib.nn.BatchNorm1d(2)
    buffers = {name: b.clone() for name, b in norm.named_buffers()}
    x = lib.arange(4.0).reshape(2, 2)
    lib.func.functional_call(norm, (dict(norm.named_parameters()), buffers), x)
    return buffers, norm.running_mean, norm.num_batches_tracked


@program
def many_modules_at_once(lib: Any) -> Any:
    modules = [lib.nn.Linear(2, 1) for _ in range(3)]
    params, buffers = lib.func.stack_module_state(modules)
    x = lib.ones(2)
    out = lib.vmap(lambda p, b: lib.func.functional_call(modules[0], (p, b), x))(params, buffers)
    same = lib.allclose(out, lib.stack([m(x) for m in modules]))
    return same, {name: (list(p.shape), p.requires_grad, p.is_leaf) for name, p in params.items()}, buffers


@program
def modules_that_cannot_be_stacked(lib: Any) -> Any:
    a, evaluated, frozen = (lib.nn.Linear(1, 1) for _ in range(3))
    evaluated.eval()
    frozen.weight.requires_grad_(False)
    lists = ([], [a, evaluated], [a, lib.nn.Tanh()], [a, frozen])
    return each(lib, *(lambda ms=ms: lib.func.stack_module_state(ms) for ms in lists))


@program
def batch_norms_without_statistics(lib: Any) -> Any:
    net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.BatchNorm1d(2)))
    same = lib.func.replace_all_batch_norm_modules_(net) is net
    norm = net[1][0]
    x = lib.arange(8.0).reshape(2, 2, 2)
    out = lib.vmap(net)(x)
    return same, norm.running_mean, norm.running_var, norm.track_running_stats, list(out.shape)


def says(call: Any, pattern: str) -> Any:
    """The type of what a call raises, and whether it says so."""
    try:
        call()
    except Exception as error:
        return type(error).__name__, bool(re.search(pattern, str(error)))
    return ""


@program
def what_is_wrong_with_argnums(lib: Any) -> Any:
    x, y = points(lib)
    found = []
    for f in (lib.func.grad, lib.func.jacrev, lib.func.jacfwd):
        for argnums, pattern in (
            (2, "but only 2 positional inputs"),
            (-3, "only 2 positional inputs"),
            ([0], "must be int or Tuple"),
            (("0",), "must be int"),
            ((0, -2), "must be unique"),
            ((), "must be non-empty"),
        ):
            found.append(says(lambda f=f, n=argnums: f(lib.mul, argnums=n)(x, y), pattern))
    return found


@program
def what_is_wrong_with_results(lib: Any) -> Any:
    x, t = points(lib)
    calls = (
        (r"grad_and_value\(f\)\(\*args\)", lambda f, **k: lib.func.grad(f, **k)(x)),
        (r"vjp\(f, \*primals\)", lambda f, **k: lib.func.vjp(f, x, **k)),
        (r"jvp\(f, primals, tangents\)", lambda f, **k: lib.func.jvp(f, (x,), (t,), **k)),
    )
    found = []
    for name, call in calls:
        pattern = name + ": output of function f should be a tuple"
        found += [
            says(lambda c=call, o=o: c(lambda a: o(a), has_aux=True), pattern) for o in (list, lambda a: (a,) * 3)
        ]
        found.append(says(lambda c=call: c(lambda a: (a.sum(), [a, 1]), has_aux=True), "got unsupported type"))
    for name, call in calls[1:]:
        empty, only = name + ": Expected f to be .* non-empty output", name + ": expected .* only tensors"
        found += [says(lambda c=call, o=o: c(lambda a: o), empty) for o in (None, ())]
        found += [says(lambda c=call, o=o: c(lambda a: o), only) for o in (1, "abc", [2.0])]
    for f in (lib.func.jacrev, lib.func.jacfwd):
        found += [says(lambda f=f, o=o: f(lambda a: o)(x), "has non-empty output") for o in (None, ())]
    return found


@program
def what_is_wrong_with_primals_and_tangents(lib: Any) -> Any:
    x, t = points(lib)
    jvp, f = lib.func.jvp, lib.sin
    _, push = lib.func.linearize(f, x)
    return (
        says(lambda: jvp(f, x, (t,)), "Expected primals to be a tuple"),
        says(lambda: jvp(f, (x,), [t]), "same python structure"),
        says(lambda: jvp(f, (1.0,), (t,)), "only contain Tensors"),
        says(lambda: jvp(f, (x,), (1.0,)), "only contain Tensors"),
        says(lambda: jvp(f, (), ()), "at least one Tensor"),
        says(lambda: push((t, t)), "to have the same argspec as the primals"),
        says(lambda: push(t[:2]), "in flattened pytree doesn't match the shape"),
        says(lambda: push(t.float()), "in flattened pytree doesn't match the dtype"),
        says(lambda: lib.func.jacrev(f, chunk_size=0)(x), "jacrev: `chunk_size` should be greater than 0"),
    )


@program
def a_backward_that_no_batch_can_do(lib: Any) -> Any:
    """One row at a time is done without a batch."""

    def backward(ctx: Any, g: Any) -> Any:
        g.nonzero()
        return g

    f = function(lib, lambda a: a * 1, backward, setup_context=lambda ctx, inputs, output: None).apply
    x = points(lib)[0]
    return lib.func.jacrev(f, chunk_size=1)(x), says(lambda: lib.func.jacrev(f, chunk_size=2)(x), "dynamic shape")


@program
def what_a_vmap_of_ones_own_may_return(lib: Any) -> Any:
    def made(vmap: Any) -> Any:
        return function(lib, lambda a: a * 1, lambda ctx, g: g, setup_context=lambda ctx, i, o: None, vmap=vmap).apply

    x = batch(lib)
    return (
        says(lambda: lib.vmap(made(lambda info, dims, a: a))(x), "to have two returns"),
        says(lambda: lib.vmap(made(lambda info, dims, a: (a, a, 0)))(x), "to have two returns"),
        says(lambda: lib.vmap(made(lambda info, dims, a: (a, (None,))))(x), "returned an incompatible"),
        says(lambda: lib.vmap(made(lambda info, dims, a: ([a], (None,))))(x), "returned an incompatible"),
        lib.vmap(made(lambda info, dims, a: (a[0], None)))(x),
    )


@program
def functionalized(lib: Any) -> Any:
    func = lib.func
    start = lib.arange(8.0, dtype=lib.float64).reshape(4, 2)

    def through_a_view(t: Any) -> Any:
        t.view(2, 4).add_(lib.ones(4, dtype=lib.float64))
        return t

    def of_a_view(t: Any) -> Any:
        y = t + t
        z = y.view(-1)
        y.add_(1)
        return z

    found = []
    for remove in ("mutations", "mutations_and_views"):
        for f in (through_a_view, of_a_view, lambda t: {"a": (t.T, [t[0] * 2])}):
            x = start.clone()
            made = func.functionalize(f, remove=remove)
            found += [made(x), x, made.__name__]
    x = leaf(lib, [1.0, 2.0])
    found += [func.functionalize(lambda t: t.view(1, 2))(x)._base is x, func.functionalize(lambda t: t)(x) is x]
    found.append(func.functionalize(lambda t: t.detach().view(1, 2), remove="mutations_and_views")(x)._base is None)
    found += [func.grad(func.functionalize(lambda t: of_a_view(t).sum()))(start)]
    found += [lib.vmap(func.functionalize(lambda t, u: func.jvp(of_a_view, (t,), (u,))))(start, start)]
    func.functionalize(lambda t: t**2)(x).sum().backward()
    return found, x.grad, says(lambda: func.functionalize(lib.sin, remove="x"), "Valid options are")


@program
def tangents_are_not_shared_where_values_are_not(lib: Any) -> Any:
    """What is computed has a tangent of its own, also where the rule hands through the one it got."""

    def after(make: Any, write: Any) -> Any:
        def f(x: Any) -> Any:
            u = x.clone()
            y = make(u)
            write(u, y)
            return u.sum(), y.sum()

        x, t = points(lib)
        return lib.func.jvp(f, (x,), (t,)), lib.vmap(lambda v: lib.func.jvp(f, (x,), (v,))[1])(lib.stack([t, x])), t

    wide = lib.zeros(2, 3, dtype=lib.float64)
    makers = (
        lambda u: u + 0,
        lambda u: u - 1.0,
        lambda u: u[:2] + 0,
        lambda u: u + wide,
        lambda u: (u + wide).double(),
        lambda u: lib.complex(u, u).real + 0,
        lambda u: u.view(3, 1),
        lambda u: u[1:],
        lambda u: u.expand(2, 3) * 1,
        lambda u: lib.stack([u, u]),
        lambda u: u.reshape(-1),
        lambda u: lib.where(u > 0, u, 0.0),
    )
    writers = (lambda u, y: u.mul_(3), lambda u, y: y.mul_(3), lambda u, y: y.reshape(-1)[:1].add_(y.sum()))
    found = [after(make, write) for make in makers for write in writers]
    # nor does it matter that a tangent lies otherwise in memory than the values do
    x, t = lib.ones(2, 3, dtype=lib.float64), lib.arange(6.0, dtype=lib.float64).reshape(3, 2).T

    def f(x: Any) -> Any:
        x.view(-1)[1:3].mul_(2)
        return x

    return found, lib.func.jvp(f, (x,), (t,)), lib.func.jvp(f, (x,), (t[:1, :1].expand(2, 3),)), t


@program
def by_a_sparse_matrix(lib: Any) -> Any:
    """With values, of which torch's gradient is sparse, too."""
    places = lib.tensor([[0, 1, 1], [2, 0, 2]])
    values = constant(lib, [3.0, 4.0, 5.0])
    s = lib.sparse_coo_tensor(places, values, (2, 3), check_invariants=True).coalesce()
    g = lib.func.grad(lambda a: (a.coalesce().values() ** 2).sum())(s)
    seen: list[Any] = []
    lib.func.grad(lambda a: (seen.append((a.is_sparse, a.requires_grad, list(a.shape))), a.values().sum())[1])(s)
    return g.is_sparse, g.to_dense(), seen, s.requires_grad


@pytest.mark.torch
@pytest.mark.parametrize("case", PROGRAMS, ids=name_of)
def test_as_torch(case: Program) -> None:
    ours, theirs = outcomes(case)
    assert ours == theirs


# Where torch refuses, or is wrong -------------------------------------------------------------------------------------


def test_backward_inside_of_a_transform() -> None:
    """torch refuses; here it is one more pass, which reaches the leaves it leads to."""
    w = leaf(pullback, [1.0, 2.0])

    def f(x: Any) -> Any:
        (w * w).sum().backward()
        return (x * w.grad).sum()

    assert pullback.func.grad(f)(constant(pullback, [5.0, 6.0])).tolist() == [2.0, 4.0]


def test_a_captured_tensor_may_be_written() -> None:
    """torch refuses to write what a transform did not make; here it is as if there were no transform."""
    count = constant(pullback, [1.0, 2.0])

    def f(x: Any) -> Any:
        count.mul_(2.0)
        return (x * count).sum()

    assert pullback.func.grad(f)(constant(pullback, [5.0, 6.0])).tolist() == [2.0, 4.0]
    assert count.tolist() == [2.0, 4.0]
    assert not count.requires_grad


@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp", "jacrev", "hessian"])
def test_a_captured_tensor_keeps_values_and_no_place_in_the_graph_of_a_transform(transform: str) -> None:
    kept = constant(pullback, [1.0, 2.0])
    view = kept[:1]

    def f(x: Any) -> Any:
        kept.copy_(x)
        return (x * kept).sum()

    x = constant(pullback, [5.0, 6.0])
    if transform == "grad":
        assert pullback.func.grad(f)(x).tolist() == [10.0, 12.0]
    elif transform == "vjp":
        _, pull = pullback.func.vjp(f, x)
        assert pull(pullback.ones((), dtype=pullback.float64))[0].tolist() == [10.0, 12.0]
    elif transform == "jvp":
        assert pullback.func.jvp(f, (x,), (x,))[1].item() == 122.0
    else:
        getattr(pullback.func, transform)(f)(x)
    for t in (kept, view):
        assert not t.requires_grad
        assert t.grad_fn is None
    assert kept.tolist() == [5.0, 6.0]
    kept.mul_(2.0)
    assert view.tolist() == [10.0]


def test_a_captured_tensor_stays_in_the_graph_of_what_goes_on() -> None:
    """An outer transform, or a backward pass by hand, follows what was written; when it has ended, nothing does."""
    kept, w = constant(pullback, [1.0]), leaf(pullback, [3.0])

    def inner(x: Any) -> Any:
        kept.copy_(x * w)
        return (x * kept).sum()

    pullback.func.grad(inner)(constant(pullback, [2.0]))
    assert kept.requires_grad
    kept.sum().backward()
    assert w.grad.tolist() == [2.0]
    other = constant(pullback, [1.0])

    def outer(y: Any) -> Any:
        def within(x: Any) -> Any:
            other.copy_(x * y)
            return (x * other).sum()

        return pullback.func.grad(within)(constant(pullback, [2.0])).sum() + other.sum()

    assert pullback.func.grad(outer)(constant(pullback, [5.0])).tolist() == [4.0 + 2.0]
    assert not other.requires_grad


def test_a_result_that_is_a_captured_tensor() -> None:
    kept = constant(pullback, [0.0])

    def f(x: Any) -> Any:
        kept.copy_(x)
        return kept.mul_(x)

    value, pull = pullback.func.vjp(f, constant(pullback, [3.0]))
    assert value.tolist() == [9.0]
    assert pull(pullback.ones_like(value))[0].tolist() == [6.0]
    assert not kept.requires_grad


def test_transforms_work_where_torch_refuses() -> None:
    """Hooks on what is saved, Functions without setup_context, retain_grad inside; complex numbers."""
    x = constant(pullback, [2.0])
    with pullback.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert pullback.func.grad(lambda a: (a**2).sum())(x).tolist() == [4.0]

    class Square(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    assert pullback.func.grad(lambda a: Square.apply(a).sum())(x).tolist() == [4.0]

    def by_hand(a: Any) -> Any:
        b = a.detach().requires_grad_()
        c = b * b
        c.retain_grad()
        c.sum().backward()
        return (a * b.grad * c.grad).sum()

    assert pullback.func.grad(by_hand)(x).tolist() == [4.0]
    z = pullback.tensor([1 + 1j])
    assert pullback.func.jacfwd(lambda a: a * a)(z).tolist() == [[2 + 2j]]
    assert pullback.func.jacrev(lambda a, *, k: a * k)(x, k=3.0).tolist() == [[3.0]]


def test_what_is_inside_of_a_tensor_of_a_transform() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append((pullback.func.debug_unwrap(x, recurse=False), pullback.func.debug_unwrap(x)))
        return x * 2

    pullback.vmap(pullback.vmap(f))(pullback.ones(2, 3))
    once, wholly = seen[0]
    assert type(once) is not pullback.Tensor
    assert type(wholly) is pullback.Tensor
    assert list(wholly.shape) == [2, 3]
    whole = pullback.ones(2, 3)
    pullback.vmap(pullback.vmap(f))(whole)
    assert seen.pop()[1] is whole
    pullback.func.jvp(f, (pullback.ones(1),), (pullback.ones(1),))
    assert seen[1][0].tolist() == [1.0]
    assert pullback.func.debug_unwrap(pullback.ones(1, requires_grad=True)).requires_grad is False


def test_jvp_of_an_argument_multiplied_by_itself_in_place() -> None:
    """torch's tangent uses the primal that has been overwritten already; it should be 2 x t."""
    x, t = points(pullback)
    expected = (2 * x * t).tolist()
    _, tangent = pullback.func.jvp(lambda a: a.mul_(a), (x,), (t,))
    assert tangent.tolist() == pytest.approx(expected)


def test_jacfwd_by_the_last_argument() -> None:
    """torch's jacfwd gives zeros for negative argnums."""
    x, y = points(pullback)
    f = f_of(pullback)
    for ours, other in zip(pullback.func.jacfwd(f, -1)(x, y), pullback.func.jacrev(f, 1)(x, y), strict=True):
        np.testing.assert_allclose(ours.numpy(), other.numpy())


def test_jacfwd_in_chunks() -> None:
    """torch's jacfwd has no chunk_size."""
    x, y = points(pullback)
    whole = pullback.func.jacfwd(f_of(pullback), (0, 1))(x, y)
    for n in (1, 2, 7):
        for a, b in zip(whole, pullback.func.jacfwd(f_of(pullback), (0, 1), chunk_size=n)(x, y), strict=True):
            for c, d in zip(a, b, strict=True):
                assert c.tolist() == d.tolist()
    with pytest.raises(ValueError, match="chunk_size"):
        pullback.func.jacfwd(pullback.sin, chunk_size=0)(x)


def test_the_gradient_by_a_sparse_matrix_is_at_its_places() -> None:
    """torch's is dense for a product with a dense matrix."""
    values, b = constant(pullback, [3.0, 4.0]), constant(pullback, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    s = pullback.sparse_coo_tensor(pullback.tensor([[0, 1], [2, 0]]), values, (2, 3)).coalesce()
    g = pullback.func.grad(lambda a: ((a @ b) ** 2).sum())(s)
    dense = pullback.func.grad(lambda a: ((a @ b) ** 2).sum())(s.to_dense())
    assert g.is_sparse
    assert g.coalesce().values().tolist() == [dense[0, 2].item(), dense[1, 0].item()]
    assert pullback.func.grad(lambda a: b.sum())(s).to_dense().tolist() == [[0.0] * 3] * 2
    tracked = s.detach().requires_grad_()
    again = pullback.func.grad(lambda a: ((a @ b) ** 2).sum())(tracked)
    (outer,) = pullback.autograd.grad(again.coalesce().values().sum(), tracked)
    assert outer.is_sparse


def test_a_pull_made_where_nothing_is_recorded_is_a_constant_function() -> None:
    """torch's goes on being recorded: "this one is a little weird", its own tests say."""
    x = leaf(pullback, 3.0)
    with pullback.no_grad():
        _, pull = pullback.func.vjp(lambda a: a**2, x)
    (y,) = pull(constant(pullback, 1.0))
    assert y.tolist() == 6.0
    assert not y.requires_grad


def test_a_transform_leaves_nothing_on_its_arguments() -> None:
    """Neither a graph nor a gradient on the argument, nor a graph on what it returns."""
    x = constant(pullback, [1.0, 2.0])
    for f in (pullback.func.grad, pullback.func.jacrev, pullback.func.hessian):
        out = f(lambda a: (a**3).sum())(x)
        assert not out.requires_grad
        assert out.grad_fn is None
    y, pull = pullback.func.vjp(lambda a: a**3, x)
    assert not y.requires_grad
    assert not pull(y)[0].requires_grad
    assert x.grad is None
    assert not x.requires_grad


def test_a_function_in_forward_mode_twice() -> None:
    """torch's tangent of the inner tangent is 0: what `save_for_forward` kept is not followed by the outer jvp."""
    x, t = points(pullback)
    f = cube(pullback, jvp=cube_jvp).apply
    _, second = pullback.func.jvp(lambda a: pullback.func.jvp(f, (a,), (t,))[1], (x,), (t,))
    assert second.tolist() == pytest.approx((6 * x * t * t).tolist())


def test_a_jvp_of_none_is_zero() -> None:
    """torch fails an internal assertion."""
    x, t = points(pullback)
    _, tangent = pullback.func.jvp(cube(pullback, jvp=lambda ctx, t: None).apply, (x,), (t,))
    assert tangent.tolist() == [0.0, 0.0, 0.0]
