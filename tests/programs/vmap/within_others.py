"""`vmap` within transforms, and transforms within it; random numbers."""

from __future__ import annotations

from typing import Any

from tests.programs.vmap.common import a_of, b_of
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


# nesting --------------------------------------------------------------------------------------------------------------


@program
def pairwise(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lambda x: lib.vmap(lambda y: (x * y).sum())(b))(b)


@program
def pairwise_other(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lib.vmap(lambda x, y: x.sin() * y, (0, None)), (None, 0))(b, b)


@program
def three_levels(lib: Any) -> Any:
    a = a_of(lib)
    return lib.vmap(lib.vmap(lib.vmap(lambda x, y: x * y, (0, None), 0), 1, 1), 2, -1)(a, a)


@program
def inner_written_by_the_outer(lib: Any) -> Any:
    b = b_of(lib)

    def outer(x: Any) -> Any:
        y = x.clone()
        lib.vmap(lambda e: e.mul_(x.sum()))(y)
        return y

    return lib.vmap(outer)(b)


@program
def inner_refuses_what_only_the_outer_varies(lib: Any) -> Any:
    b = b_of(lib)
    return lib.vmap(lambda x: lib.vmap(lambda e: x.mul_(e))(b))(b)


@program
def over_derivatives(lib: Any) -> Any:
    b = b_of(lib)
    g, f = lib.func, lambda x: (x.sin() * x.sum()).sum()
    return [
        lib.vmap(g.grad(f))(b),
        lib.vmap(g.hessian(f))(b),
        lib.vmap(lambda x: g.jvp(g.grad(f), (x,), (x,)))(b),
        lib.vmap(g.jacrev(g.jacfwd(f)))(b),
        g.jacrev(lib.vmap(f))(b),
        g.jacfwd(lib.vmap(g.grad(f)))(b),
        g.grad(lambda x: lib.vmap(f)(x).sum())(b),
        g.jvp(lib.vmap(f), (b,), (b * b,)),
    ]


@program
def tracked_argument(lib: Any) -> Any:
    x = leaf(lib, b_of(lib).tolist())
    out = lib.vmap(lambda r: r.sin() * r.sum(), 1)(x)
    out.sum().backward()
    return out, x.grad


@program
def tracked_closure(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0, 4.0])
    out = lib.vmap(lambda r: (w * r).sum() * w)(b_of(lib))
    out.pow(2).sum().backward()
    return out, w.grad


@program
def tracked_under_no_grad(lib: Any) -> Any:
    x = leaf(lib, b_of(lib).tolist())
    with lib.no_grad():
        out = lib.vmap(lambda r: r * 2)(x)
    return out, lib.vmap(lambda r: r * 2)(x.detach())


@program
def no_grad_inside(lib: Any) -> Any:
    x = leaf(lib, b_of(lib).tolist())

    def f(r: Any) -> Any:
        with lib.no_grad():
            s = r.sum()
        return r * s

    out = lib.vmap(f)(x)
    out.sum().backward()
    return out, x.grad


@program
def gradients_of_a_captured_graph(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0, 3.0])
    y = x**3
    return lib.vmap(lambda v: lib.autograd.grad(y, x, v, retain_graph=True)[0])(lib.eye(3, dtype=lib.float64))


@program
def empty_batch(lib: Any) -> Any:
    return lib.vmap(lambda x: x.sin() * 2)(lib.ones(0, 3))


@program
def dtypes_as_for_one(lib: Any) -> Any:
    x, d = lib.ones(3), lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64)
    i = lib.tensor([1, 2, 3])
    f = lambda p, q: p * q  # noqa: E731
    return [
        lib.vmap(f)(x, d),
        lib.vmap(f)(i, x),
        lib.vmap(f, (0, None))(x, d[0]),
        lib.vmap(f, (None, 0))(d[0], x),
        lib.vmap(lambda p: p * lib.ones(2))(d),
        lib.vmap(lambda p: p + 1)(i),
        lib.vmap(lambda p: p / 2)(i),
        lib.vmap(lambda p: p * lib.ones(2))(i),
    ]


# randomness -----------------------------------------------------------------------------------------------------------


def rand_with(lib: Any, randomness: str, f: Any) -> Any:
    lib.manual_seed(0)
    return lib.vmap(f, randomness=randomness)(lib.ones(3, 4))


@program
def random_is_refused(lib: Any) -> Any:
    return rand_with(lib, "error", lambda x: x + lib.rand(4))


@program
def random_like_is_refused(lib: Any) -> Any:
    return rand_with(lib, "error", lambda x: x + lib.randn_like(x))


@program
def random_different(lib: Any) -> Any:
    out = rand_with(lib, "different", lambda x: x + lib.rand(4))
    return tuple(out.shape), bool((out[0] == out[1]).any()), bool((out[1] == out[2]).any())


@program
def random_same(lib: Any) -> Any:
    out = rand_with(lib, "same", lambda x: x + lib.rand(4))
    return tuple(out.shape), bool((out[0] == out[1]).all()), bool((out[1] == out[2]).all())


@program
def random_like_different(lib: Any) -> Any:
    out = rand_with(lib, "different", lambda x: x + lib.randn_like(x))
    return tuple(out.shape), bool((out[0] == out[1]).any())


@program
def random_like_same(lib: Any) -> Any:
    out = rand_with(lib, "same", lambda x: x + lib.randn_like(x))
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def dropout_is_refused(lib: Any) -> Any:
    return rand_with(lib, "error", lambda x: lib.nn.functional.dropout(x, 0.5))


@program
def dropout_different(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: lib.nn.functional.dropout(x, 0.5), randomness="different")(lib.ones(3, 50))
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def dropout_same(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: lib.nn.functional.dropout(x, 0.5), randomness="same")(lib.ones(3, 50))
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def bernoulli_of_what_varies_different(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: lib.bernoulli(x), randomness="different")(lib.ones(3, 50) / 2)
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def random_permutation_different(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: x[lib.randperm(50)], randomness="different")(lib.arange(150.0).reshape(3, 50))
    return tuple(out.shape), bool((out[0] + 50 == out[1]).all())


@program
def random_in_the_outer_only(lib: Any) -> Any:
    f = lib.vmap(lambda x: lib.vmap(lambda y: y * 2)(x + lib.rand(4)), randomness="different")
    return tuple(f(lib.ones(3, 4)).shape)


@program
def random_in_place_different(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: x.clone().uniform_(), randomness="different")(lib.ones(3, 40))
    return tuple(out.shape), bool((out[0] == out[1]).all())


@program
def random_in_place_same(lib: Any) -> Any:
    lib.manual_seed(0)
    out = lib.vmap(lambda x: x.clone().normal_(), randomness="same")(lib.ones(3, 40))
    return tuple(out.shape), bool((out[0] == out[1]).all())
