"""Transforms within transforms."""

from __future__ import annotations

from typing import Any

from tests.programs.func.common import each, points
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


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


@program
def gradient_at_a_constant_within_jvp(lib: Any) -> Any:
    x, given = points(lib)[0], constant(lib, [5.0, 6.0, 7.0])
    found = [
        lib.func.jvp(lambda a: lib.func.grad(lambda c: (c * c * a).sum())(given), (x,), (x,)),
        lib.func.jvp(lambda a: lib.func.grad(lambda c: (c**3).sum())(given) + a, (x,), (x,)),
        lib.func.jvp(lambda a: lib.func.vjp(lambda c: c * c * a, given)[1](a)[0], (x,), (x,)),
    ]
    return found, lib.func.hessian(lambda a: lib.func.grad(lambda c: (c * c * a * a).sum())(given).sum())(x)


@program
def second_derivatives_of_what_is_written_over(lib: Any) -> Any:
    x, y = points(lib)

    def f(a: Any) -> Any:
        b = a * a
        b.mul_(a.sin())
        b.mul_(a)
        return b.sum()

    func = lib.func
    found = func.hessian(f)(x), func.jacrev(func.jacfwd(f))(x), func.jacfwd(func.jacfwd(f))(x)
    return *found, func.jvp(func.grad(f), (x,), (y,)), func.grad(lambda a: func.jvp(f, (a,), (y,))[1])(x)
