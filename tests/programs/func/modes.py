"""Modes, and what runs inside of a transform."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.programs.func.common import each, points
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


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
