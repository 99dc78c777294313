"""What a transformed function closes over, switches off and writes to."""

from __future__ import annotations

from typing import Any

from tests.programs.func.common import points
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


# closures, perturbation confusion, tracked tensors --------------------------------------------------------------------


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


# no_grad --------------------------------------------------------------------------------------------------------------


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


# in place -------------------------------------------------------------------------------------------------------------


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


@program
def a_tracked_tensor_made_inside_joins_a_jvp(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])

    def f(a: Any) -> Any:
        u = w + 1
        v = u[1:]
        u[0] = a * a
        return u, v * u[1]

    value, tangent = lib.func.jvp(f, (constant(lib, 3.0),), (constant(lib, 1.0),))
    gradients = [lib.autograd.grad(v.sum(), w, retain_graph=True)[0] for v in value]
    return value[0].tolist(), tangent[0].tolist(), tangent[1].tolist(), gradients


@program
def the_result_of_a_function_on_what_is_outside_joins_a_jvp(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0])

    def f(a: Any) -> Any:
        v = w.exp()
        v.add_(a, alpha=2)
        return v

    x = constant(lib, [0.5, -1.0])
    return [t.tolist() for t in lib.func.jvp(f, (x,), (x * 2,))], lib.func.jacfwd(f)(x).tolist()


@program
def complex_results_of_what_is_outside_alone(lib: Any) -> Any:
    w = leaf(lib, [0.75])
    gradient = lib.func.grad(lambda a: (w * 1j).sum())
    return gradient(w).tolist(), lib.func.jvp(gradient, (w,), (w.detach(),))[1].tolist()
