"""Functions of the user's under transforms."""

from __future__ import annotations

from typing import Any

from tests.programs.func.common import batch, points
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


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


@program
def the_maximum_in_half_precision(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0, 2.0], dtype=lib.bfloat16)
    of_max = lib.func.jvp(lambda t: t.max(), (x,), (x * 2,))
    of_abs = lib.func.jvp(lambda t: t.clone().abs_(), (x[0],), (x[1],))
    return [t.float() for t in (*of_max, *of_abs, lib.func.jacfwd(lambda t: t.max())(x))]


@program
def linearize_takes_no_integers(lib: Any) -> Any:
    return lib.func.linearize(lambda t: t * 2, lib.tensor([3]))
