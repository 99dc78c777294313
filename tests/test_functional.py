"""`autograd.functional`, and `autograd.grad` of a batch of vectors, side by side with torch's."""

from __future__ import annotations

from typing import Any

import pytest
from side_by_side import Program, constant, leaf, name_of, outcomes, programs

import pullback

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
