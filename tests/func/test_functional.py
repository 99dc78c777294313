"""`autograd.functional`, and `autograd.grad` of a batch of vectors, side by side with torch's."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.side_by_side import Program, constant, leaf, name_of, outcomes, programs

PROGRAMS, program = programs()


def fn(lib: Any) -> Any:
    return lib.autograd.functional


def one(lib: Any) -> Any:
    return constant(lib, [0.3, -1.2, 0.7])


def two(lib: Any) -> Any:
    return one(lib), constant(lib, [1.5, 0.2])


def vector(x: Any, y: Any) -> Any:
    return (x.sin() * y.sum(), x[:2] * y)


def scalar(x: Any, y: Any) -> Any:
    return (x**3).sum() * y[0] + y.exp().sum()


@program
def vjp_of_one(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: x.sin(), one(lib), one(lib))


@program
def vjp_of_two(lib: Any) -> Any:
    return fn(lib).vjp(vector, two(lib), two(lib))


@program
def vjp_of_two_in_lists(lib: Any) -> Any:
    return fn(lib).vjp(vector, list(two(lib)), list(two(lib)))


@program
def vjp_of_a_scalar_function(lib: Any) -> Any:
    return fn(lib).vjp(scalar, two(lib)), fn(lib).vjp(scalar, two(lib), constant(lib, 2.0))


@program
def vjp_without_vector(lib: Any) -> Any:
    return fn(lib).vjp(vector, two(lib))


@program
def vjp_vector_of_another_shape(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: x.sin(), one(lib), constant(lib, [1.0]))


@program
def vjp_too_few_vectors(lib: Any) -> Any:
    return fn(lib).vjp(vector, two(lib), one(lib))


@program
def vjp_create_graph(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    out, g = fn(lib).vjp(lambda a: a**3, x, one(lib), create_graph=True)
    (g * out).sum().backward()
    return out, g, x.grad


@program
def vjp_through_the_vector(lib: Any) -> Any:
    v = leaf(lib, [0.3, -1.2, 0.7])
    out, g = fn(lib).vjp(lambda a: a**3, one(lib), v, create_graph=True)
    g.sum().backward()
    return out, g, v.grad


@program
def vjp_of_a_tracked_input(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    return fn(lib).vjp(lambda a: a**3, x, one(lib)), x.grad


@program
def vjp_strict(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: x.sin(), one(lib), one(lib), strict=True)


@program
def vjp_strict_output_independent(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: lib.ones(2), one(lib), lib.ones(2), strict=True)


@program
def vjp_strict_input_independent(lib: Any) -> Any:
    return fn(lib).vjp(lambda x, y: x.sin(), two(lib), one(lib), strict=True)


@program
def vjp_independent(lib: Any) -> Any:
    return fn(lib).vjp(lambda x, y: (x.sin(), lib.ones(2)), two(lib), (one(lib), lib.ones(2)))


@program
def vjp_of_a_number(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: x, 3.0, 1.0)


@program
def vjp_to_a_number(lib: Any) -> Any:
    return fn(lib).vjp(lambda x: 3.0, one(lib))


@program
def vjp_under_no_grad(lib: Any) -> Any:
    with lib.no_grad():
        return fn(lib).vjp(lambda x: x.sin(), one(lib), one(lib))


@program
def jvp_of_one(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: x.sin(), one(lib), one(lib))


@program
def jvp_of_two(lib: Any) -> Any:
    return fn(lib).jvp(vector, two(lib), two(lib))


@program
def jvp_without_vector(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: x * lib.ones(2), constant(lib, 2.0)), fn(lib).jvp(
        lambda x: x * lib.ones(2), constant(lib, [2.0])
    )


@program
def jvp_without_vector_of_many(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: x.sin(), one(lib))


@program
def jvp_create_graph(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    out, t = fn(lib).jvp(lambda a: a**3, x, one(lib), create_graph=True)
    (t * out).sum().backward()
    return out, t, x.grad


@program
def jvp_through_the_vector(lib: Any) -> Any:
    v = leaf(lib, [0.3, -1.2, 0.7])
    _, t = fn(lib).jvp(lambda a: a**3, one(lib), v, create_graph=True)
    t.sum().backward()
    return t, v.grad


@program
def jvp_strict_independent(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: lib.ones(2), one(lib), one(lib), strict=True)


@program
def jvp_strict_input_independent(lib: Any) -> Any:
    return fn(lib).jvp(lambda x, y: x.sin(), two(lib), two(lib), strict=True)


@program
def jvp_independent(lib: Any) -> Any:
    return fn(lib).jvp(lambda x, y: (x.sin(), lib.ones(2)), two(lib), two(lib))


@program
def jvp_strict_create_graph_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).jvp(lambda x: x * 2, one(lib), one(lib), create_graph=True, strict=True)


@program
def products_with_the_hessian(lib: Any) -> Any:
    return [f(scalar, two(lib), two(lib)) for f in (fn(lib).vhp, fn(lib).hvp)]


@program
def products_with_the_hessian_of_one(lib: Any) -> Any:
    return [f(lambda x: (x**3).sum(), one(lib), one(lib)) for f in (fn(lib).vhp, fn(lib).hvp)]


@program
def products_with_the_hessian_without_vector(lib: Any) -> Any:
    return [f(lambda x: x**3, constant(lib, 2.0)) for f in (fn(lib).vhp, fn(lib).hvp)]


@program
def products_with_the_hessian_create_graph(lib: Any) -> Any:
    found = []
    for name in ("vhp", "hvp"):
        x = leaf(lib, [0.3, -1.2, 0.7])
        out, h = getattr(fn(lib), name)(lambda a: (a**4).sum(), x, one(lib), create_graph=True)
        (h.sum() * out).backward()
        found.append((out, h, x.grad))
    return found


@program
def vhp_of_a_vector_function(lib: Any) -> Any:
    return fn(lib).vhp(lambda x: x**2, one(lib), one(lib))


@program
def hvp_of_two_results(lib: Any) -> Any:
    return fn(lib).hvp(vector, two(lib), two(lib))


@program
def vhp_of_one_element(lib: Any) -> Any:
    return fn(lib).vhp(lambda x: (x**2).sum()[None], one(lib), one(lib))


@program
def vhp_strict_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).vhp(lambda x: x.sum(), one(lib), one(lib), strict=True)


@program
def hvp_strict_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).hvp(lambda x: x.sum(), one(lib), one(lib), strict=True)


@program
def vhp_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).vhp(lambda x: x.sum() * 2, one(lib), one(lib))


MODES: list[dict[str, Any]] = [{}, {"vectorize": True}]


def forward(lib: Any, f: Any, inputs: Any) -> Any:
    """By forward mode, as a flat list: torch's nests in lists there, and may require grad."""
    return flat(fn(lib).jacobian(f, inputs, vectorize=True, strategy="forward-mode"))


def flat(found: Any) -> list[Any]:
    """The tensors in nested tuples and lists, detached."""
    return [t for part in found for t in flat(part)] if isinstance(found, (tuple, list)) else [found.detach()]


@program
def jacobian_of_one(lib: Any) -> Any:
    given = lambda x: x.sin(), one(lib)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_two(lib: Any) -> Any:
    given = vector, two(lib)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_two_by_one(lib: Any) -> Any:
    given = lambda x: (x.sum(), x * 2), one(lib)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_one_by_two(lib: Any) -> Any:
    given = lambda x, y: x.sum() * y, two(lib)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_a_tuple_of_one(lib: Any) -> Any:
    given = lambda x: (x * 2,), (one(lib),)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_a_scalar(lib: Any) -> Any:
    given = lambda x: x**3, constant(lib, 2.0)
    return [fn(lib).jacobian(*given, **m) for m in MODES], forward(lib, *given)


@program
def jacobian_of_matrices(lib: Any) -> Any:
    m = lib.arange(6.0, dtype=lib.float64).reshape(2, 3)
    return [fn(lib).jacobian(lambda x: x @ x.mT, m, **mode) for mode in MODES]


@program
def jacobian_independent(lib: Any) -> Any:
    ones = lib.ones(2, dtype=lib.float64)
    return [fn(lib).jacobian(lambda x, y: (x * 2, ones), two(lib), **m) for m in MODES]


@program
def jacobian_create_graph(lib: Any) -> Any:
    found = []
    for m in MODES[:2]:
        x = leaf(lib, [0.3, -1.2, 0.7])
        j = fn(lib).jacobian(lambda a: a**3, x, create_graph=True, **m)
        j.sum().backward()
        found.append((j, x.grad))
    return found


@program
def jacobian_without_create_graph(lib: Any) -> Any:
    x, w = leaf(lib, [0.3, -1.2, 0.7]), leaf(lib, [1.0, 2.0, 3.0])
    f = lambda a: a**3 * w  # noqa: E731
    return [fn(lib).jacobian(f, x, **m) for m in MODES], forward(lib, f, x), x.grad, w.grad


@program
def jacobian_strict(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x**2, one(lib), strict=True)


@program
def jacobian_strict_output_independent(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: lib.ones(2), one(lib), strict=True)


@program
def jacobian_strict_input_independent(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x, y: x * 2, two(lib), strict=True)


@program
def jacobian_strict_linear_create_graph(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), strict=True, create_graph=True)


@program
def jacobian_strict_vectorize(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), strict=True, vectorize=True)


@program
def jacobian_forward_create_graph(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), create_graph=True, strategy="forward-mode")


@program
def jacobian_forward_without_vectorize(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), strategy="forward-mode")


@program
def jacobian_of_another_strategy(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * 2, one(lib), strategy="sideways")


@program
def jacobian_to_a_number(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: 2.0, one(lib))


@program
def jacobian_of_numbers(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x, (one(lib), 2.0))


@program
def jacobian_of_item_in_vectorized(lib: Any) -> Any:
    return fn(lib).jacobian(lambda x: x * x.sum().item(), one(lib), vectorize=True)


@program
def hessian_of_one(lib: Any) -> Any:
    given = lambda x: (x**3).sum() * x[0], one(lib)
    forward_mode = fn(lib).hessian(*given, vectorize=True, outer_jacobian_strategy="forward-mode")
    return [fn(lib).hessian(*given, **m) for m in MODES], flat(forward_mode)


@program
def hessian_of_two(lib: Any) -> Any:
    forward_mode = fn(lib).hessian(scalar, two(lib), vectorize=True, outer_jacobian_strategy="forward-mode")
    return [fn(lib).hessian(scalar, two(lib), **m) for m in MODES], flat(forward_mode)


@program
def hessian_of_a_vector_function(lib: Any) -> Any:
    return fn(lib).hessian(lambda x: x * 2, one(lib))


@program
def hessian_of_one_element(lib: Any) -> Any:
    return fn(lib).hessian(lambda x: (x**3).sum()[None], one(lib))


@program
def hessian_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).hessian(lambda x: x.sum() * 2, one(lib)), fn(lib).hessian(
        lambda x: x.sum() * 2, one(lib), vectorize=True
    )


@program
def hessian_strict_of_a_linear_function(lib: Any) -> Any:
    return fn(lib).hessian(lambda x: x.sum() * 2, one(lib), strict=True)


@program
def hessian_create_graph(lib: Any) -> Any:
    found = []
    for m in ({}, {"vectorize": True}):
        x = leaf(lib, [0.3, -1.2, 0.7])
        h = fn(lib).hessian(lambda a: (a**4).sum(), x, create_graph=True, **m)
        h.sum().backward()
        found.append((h, x.grad))
    return found


@program
def hessian_forward_create_graph(lib: Any) -> Any:
    return fn(lib).hessian(
        lambda a: (a**4).sum(), one(lib), create_graph=True, outer_jacobian_strategy="forward-mode", vectorize=True
    )


@program
def hessian_forward_without_vectorize(lib: Any) -> Any:
    return fn(lib).hessian(lambda a: (a**4).sum(), one(lib), outer_jacobian_strategy="forward-mode")


@program
def hessian_of_another_strategy(lib: Any) -> Any:
    return fn(lib).hessian(lambda a: (a**4).sum(), one(lib), outer_jacobian_strategy="sideways")


# autograd.grad(is_grads_batched=True) -------------------------------------------------------------------------------


@program
def batched_vectors(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    return lib.autograd.grad(x**3, x, lib.eye(3, dtype=lib.float64), is_grads_batched=True)


@program
def batched_vectors_of_two(lib: Any) -> Any:
    x, y = leaf(lib, [0.3, -1.2, 0.7]), leaf(lib, [1.5, 0.2])
    a, b = vector(x, y)
    vs = lib.arange(6.0, dtype=lib.float64).reshape(2, 3), lib.arange(4.0, dtype=lib.float64).reshape(2, 2)
    return lib.autograd.grad((a, b), (x, y), vs, is_grads_batched=True)


@program
def batched_vectors_create_graph(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    (g,) = lib.autograd.grad(x**3, x, lib.eye(3, dtype=lib.float64), is_grads_batched=True, create_graph=True)
    g.pow(2).sum().backward()
    return g, x.grad


@program
def batched_vectors_through_them(lib: Any) -> Any:
    x, v = leaf(lib, [0.3, -1.2, 0.7]), leaf(lib, [[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    (g,) = lib.autograd.grad(x**3, x, v, is_grads_batched=True, create_graph=True)
    g.pow(2).sum().backward()
    return g, v.grad, x.grad


@program
def batched_vectors_free_the_graph(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    y = x.exp() * x
    eye = lib.eye(3, dtype=lib.float64)
    lib.autograd.grad(y, x, eye, is_grads_batched=True)
    return lib.autograd.grad(y, x, eye, is_grads_batched=True)


@program
def batched_vectors_retain_the_graph(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    y = x.exp() * x
    eye = lib.eye(3, dtype=lib.float64)
    lib.autograd.grad(y, x, eye, is_grads_batched=True, retain_graph=True)
    return lib.autograd.grad(y, x, eye, is_grads_batched=True)


@program
def batched_vectors_unused(lib: Any) -> Any:
    x, y = leaf(lib, [0.3, -1.2, 0.7]), leaf(lib, [1.5, 0.2])
    eye = lib.eye(3, dtype=lib.float64)
    return lib.autograd.grad(x**3, (x, y), eye, is_grads_batched=True, allow_unused=True)


@program
def batched_vectors_unused_refused(lib: Any) -> Any:
    x, y = leaf(lib, [0.3, -1.2, 0.7]), leaf(lib, [1.5, 0.2])
    return lib.autograd.grad(x**3, (x, y), lib.eye(3, dtype=lib.float64), is_grads_batched=True)


@program
def batched_vectors_of_a_scalar(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    return lib.autograd.grad((x**3).sum(), x, constant(lib, [1.0, 2.0]), is_grads_batched=True)


@program
def batched_vectors_of_another_shape(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    return lib.autograd.grad(x**3, x, lib.ones(2, 4, dtype=lib.float64), is_grads_batched=True)


@program
def batched_vectors_to_an_inner_tensor(lib: Any) -> Any:
    x = leaf(lib, [0.3, -1.2, 0.7])
    y = x**2
    return lib.autograd.grad(y**3, (y, x), lib.eye(3, dtype=lib.float64), is_grads_batched=True)


@program
def batched_vectors_through_a_function(lib: Any) -> Any:
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x**2

    x = leaf(lib, [0.3, -1.2, 0.7])
    return lib.autograd.grad(Cube.apply(x), x, lib.eye(3, dtype=lib.float64), is_grads_batched=True)


# Every function in the same situations --------------------------------------------------------------------------------

NAMES = ("vjp", "jvp", "vhp", "hvp", "jacobian", "hessian")
SCALAR = ("vhp", "hvp", "hessian")


def ones_like(lib: Any, values: Any) -> Any:
    made = tuple(lib.ones_like(v) for v in (values if isinstance(values, (tuple, list)) else (values,)))
    return made if isinstance(values, (tuple, list)) else made[0]


def called(lib: Any, name: str, f: Any, inputs: Any, **how: Any) -> Any:
    """The function of that name with ones for a vector, if it takes one."""
    if name in ("jacobian", "hessian"):
        return getattr(fn(lib), name)(f, inputs, **how)
    if name == "vjp":
        with lib.no_grad():
            v = ones_like(lib, f(*inputs) if isinstance(inputs, (tuple, list)) else f(inputs))
    else:
        v = ones_like(lib, inputs)
    return getattr(fn(lib), name)(f, inputs, v, **how)


def in_every_function(situation: Any) -> Any:
    """A program for each function: what the situation is for it, or the name of what it raises."""
    for name in NAMES:

        def run(lib: Any, name: str = name) -> Any:
            return situation(lib, name)

        run.__name__ = f"{situation.__name__}_{name}"
        program(run)
    return situation


def cubed(name: str) -> Any:
    return (lambda a: (a**3).sum()) if name in SCALAR else (lambda a: a**3)


@in_every_function
def an_input_that_is_not_used(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a, b: cubed(name)(a), two(lib))


@in_every_function
def an_input_that_is_not_used_strictly(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a, b: cubed(name)(a), two(lib), strict=True)


@in_every_function
def a_linear_function(lib: Any, name: str) -> Any:
    f = (lambda a: (a * 2).sum()) if name in SCALAR else (lambda a: a * 2)
    return called(lib, name, f, one(lib))


@in_every_function
def a_linear_function_strictly(lib: Any, name: str) -> Any:
    f = (lambda a: (a * 2).sum()) if name in SCALAR else (lambda a: a * 2)
    return called(lib, name, f, one(lib), strict=True)


@in_every_function
def a_linear_function_strictly_with_its_graph(lib: Any, name: str) -> Any:
    f = (lambda a: (a * 2).sum()) if name in SCALAR else (lambda a: a * 2)
    return called(lib, name, f, one(lib), strict=True, create_graph=True)


@in_every_function
def a_constant_function(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: constant(lib, 1.0), one(lib))


@in_every_function
def a_constant_function_strictly(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: constant(lib, 1.0), one(lib), strict=True)


@in_every_function
def a_function_that_detaches(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: (a.detach() ** 2).sum(), one(lib))


@in_every_function
def the_graph_of_the_result(lib: Any, name: str) -> Any:
    x = leaf(lib, [1.0, 2.0])
    found = called(lib, name, cubed(name), x, create_graph=True)
    found = found[1] if isinstance(found, tuple) else found
    return found, lib.autograd.grad(found.sum(), x)


@in_every_function
def the_graphs_of_several_results(lib: Any, name: str) -> Any:
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 1.0])
    f = (lambda a, b: (a**3 * b**2).sum()) if name in SCALAR else (lambda a, b: (a**3 * b, b * a))
    return called(lib, name, f, (x, y), create_graph=True)


@in_every_function
def where_nothing_is_recorded(lib: Any, name: str) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.no_grad():
        return called(lib, name, cubed(name), x), called(lib, name, cubed(name), x, create_graph=True)


@in_every_function
def a_number_for_an_input(lib: Any, name: str) -> Any:
    return getattr(fn(lib), name)(lambda a: a, 2.0)


@in_every_function
def a_list_for_a_result(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: [a.sum()], one(lib))


@in_every_function
def numbers_for_a_result(lib: Any, name: str) -> Any:
    x = one(lib)
    return getattr(fn(lib), name)(lambda a: a.tolist(), x, *(() if name in ("jacobian", "hessian") else (x,)))


@in_every_function
def a_list_of_inputs(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a, b: (a**3).sum() * b.sum(), [*two(lib)])


@in_every_function
def no_vector(lib: Any, name: str) -> Any:
    return getattr(fn(lib), name)(lambda a: (a**3).sum(), constant(lib, [2.0]))


@in_every_function
def no_vector_for_several_elements(lib: Any, name: str) -> Any:
    return getattr(fn(lib), name)(lambda a: a**3, one(lib))


@in_every_function
def a_number_without_axes(lib: Any, name: str) -> Any:
    return called(lib, name, lambda a: a**3, constant(lib, 2.0))


@in_every_function
def a_matrix(lib: Any, name: str) -> Any:
    f = (lambda a: (a**3).sum()) if name in SCALAR else (lambda a: a.sum(0))
    return called(lib, name, f, constant(lib, [[1.0, 2.0], [3.0, 4.0]]))


@in_every_function
def complex_numbers(lib: Any, name: str) -> Any:
    z = constant(lib, [1.0 + 2j], "complex128")
    return called(lib, name, lambda a: (a * a.conj()).real.sum(), z)


@in_every_function
def the_mode_within(lib: Any, name: str) -> Any:
    seen: list[bool] = []

    def f(a: Any) -> Any:
        seen.append(lib.is_grad_enabled())
        return (a**2).sum()

    with lib.no_grad():
        called(lib, name, f, one(lib))
    return seen[-1]


@in_every_function
def gradients_of_others_are_left_alone(lib: Any, name: str) -> Any:
    x, w = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    called(lib, name, lambda a: (a**2 * w).sum(), x)
    return x.grad, w.grad


@program
def a_complex_jacobian(lib: Any) -> Any:
    return fn(lib).jacobian(lambda z: z * z, constant(lib, [1.0 + 1j], "complex128"))


@program
def jacobians_of_several_dtypes(lib: Any) -> Any:
    inputs = (constant(lib, [1.0, 2.0]), constant(lib, [3.0, 4.0], "float32"))
    f = lambda a, b: (a * b.double(), b * 2)  # noqa: E731
    return [fn(lib).jacobian(f, inputs, vectorize=v) for v in (False, True)]


@program
def random_numbers_in_a_vectorized_jacobian(lib: Any) -> Any:
    return fn(lib).jacobian(lambda a: a * lib.rand(3).double() * 0, one(lib), vectorize=True)


@pytest.mark.torch
@pytest.mark.parametrize("case", PROGRAMS, ids=name_of)
def test_as_torch(case: Program) -> None:
    ours, theirs = outcomes(case)
    assert ours == theirs


# Where torch refuses, or is less tidy ---------------------------------------------------------------------------------


def test_jacobian_of_an_empty_result() -> None:
    """torch raises "stack expects a non-empty TensorList"."""
    for mode in MODES:
        assert fn(pullback).jacobian(lambda x: x[:0], one(pullback), **mode).shape == (0, 3)


def test_forward_mode_nests_as_reverse_mode_does() -> None:
    """torch's forward strategy returns lists in the place of tuples, which require grad if something captured does."""
    w = leaf(pullback, [1.0, 2.0, 3.0])
    x = one(pullback)
    (block,) = fn(pullback).jacobian(lambda a: (a * w,), x, vectorize=True, strategy="forward-mode")
    assert not block.requires_grad
    found = fn(pullback).jacobian(lambda a: (a * w,), (x,), vectorize=True, strategy="forward-mode")
    assert isinstance(found, tuple)
    assert isinstance(found[0], tuple)


def test_the_results_of_forward_mode_nest_in_tuples() -> None:
    """torch's are lists there, and carry a graph in a Hessian."""
    x, y = two(pullback)
    found = fn(pullback).jacobian(vector, (x, y), vectorize=True, strategy="forward-mode")
    assert isinstance(found, tuple)
    assert all(isinstance(row, tuple) for row in found)
    second = fn(pullback).hessian(scalar, (x, y), vectorize=True, outer_jacobian_strategy="forward-mode")
    assert not any(t.requires_grad for row in second for t in row)
