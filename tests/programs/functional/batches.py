"""`autograd.grad` of a batch of vectors."""

from __future__ import annotations

from typing import Any

from tests.programs.functional.common import vector
from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


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
