"""`vjp`, `jvp` and `linearize`."""

from __future__ import annotations

from typing import Any

from tests.programs.func.common import f_of, points
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


# vjp ------------------------------------------------------------------------------------------------------------------


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


# jvp ------------------------------------------------------------------------------------------------------------------


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


# linearize ------------------------------------------------------------------------------------------------------------


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


@program
def linearize_where_nothing_is_recorded(lib: Any) -> Any:
    def f(a: Any) -> Any:
        with lib.no_grad():
            b = a * a
        return b + a

    x, t = points(lib)
    return lib.func.linearize(f, x)[1](t).tolist()


@program
def linearize_of_results_without_derivative(lib: Any) -> Any:
    x, t = points(lib)
    value, push = lib.func.linearize(lambda a: (a > 0, a.sin(), lib.ones(2)), x)
    return [v.tolist() for v in value], [v.tolist() for v in push(t)], str(push(t)[0].dtype).rpartition(".")[2]


@program
def linearize_of_what_is_written_after_it_was_used(lib: Any) -> Any:
    def f(a: Any) -> Any:
        b = a * 2
        c = b * a
        b.mul_(a)
        return b.exp_() + c

    x, t = points(lib)
    return lib.func.linearize(f, x)[1](t).tolist()
