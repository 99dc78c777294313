"""Structures of arguments and results, and refusals, each in every form."""

from __future__ import annotations

import collections
from typing import Any

from tests.programs.func.common import each, points, product
from tests.side_by_side import programs

PROGRAMS, program = programs()


# structure ------------------------------------------------------------------------------------------------------------


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
