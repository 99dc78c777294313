"""`backward` and `grad`: what they accept, where gradients go, and how they add up."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


def simple(name: str, fn: Callable[[Any, Any, Any], Any]) -> None:
    """A program of a library, a leaf x = [3, 4] and a leaf w = [1, 2]; the gradients of both come with its result."""

    @program
    def run(lib: Any) -> Any:
        x, w = leaf(lib, [3.0, 4.0]), leaf(lib, [1.0, 2.0])
        return fn(lib, x, w), x.grad, w.grad

    run.__name__ = name


def both_backward(y: Any, **options: Any) -> None:
    y.backward(**options)
    y.backward()


def with_second_order(lib: Any, x: Any, w: Any) -> Any:
    (g,) = lib.autograd.grad((x**3 * w).sum(), x, create_graph=True)
    return g, lib.autograd.grad(g.sum(), [x, w])


def under_no_grad(lib: Any, x: Any, w: Any) -> Any:
    y = (x * x * w).sum()
    with lib.no_grad():
        return lib.autograd.grad(y, [x, w], create_graph=True)


def with_recorded_vector(lib: Any, x: Any, w: Any) -> Any:
    (g,) = lib.autograd.grad(x * x, x, w, create_graph=True)
    return g, lib.autograd.grad(g.sum(), [x, w])


def written_since(write: Callable[[Any, Any], Any], operation: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def run(lib: Any, x: Any, w: Any) -> Any:
        h = x * 1
        y = operation(h)
        with lib.no_grad():
            write(lib, h)
        y.sum().backward()

    return run


ones = functools.partial(constant, values=[1.0, 1.0])

simple("accumulates", lambda lib, x, w: [(x * k).sum().backward() for k in (1, 2, 3)])
simple("single element of any shape", lambda lib, x, w: (x[:1].view(1, 1) * 2).backward())
simple("vector", lambda lib, x, w: (x * w).backward(constant(lib, [1.0, 10.0])))
simple("vector in single precision", lambda lib, x, w: (x * w).backward(constant(lib, [1.0, 10.0], "float32")))
simple("vector of integers", lambda lib, x, w: (x * w).backward(constant(lib, [1, 10], "int64")))
simple("retained", lambda lib, x, w: both_backward((x * w).sum(), retain_graph=True))
simple("not retained", lambda lib, x, w: both_backward((x * w).sum()))
simple("recorded", lambda lib, x, w: both_backward((x * w).sum(), create_graph=True))
simple(
    "recorded and not retained", lambda lib, x, w: both_backward((x * w).sum(), create_graph=True, retain_graph=False)
)
simple("several roots", lambda lib, x, w: lib.autograd.backward([x * w, x.sum()], [ones(lib), None]))
simple("several scalar roots", lambda lib, x, w: lib.autograd.backward([x.sum(), (x * w).sum(), x[0]]))
simple("no roots", lambda lib, x, w: lib.autograd.backward([]))
simple("single vector", lambda lib, x, w: lib.autograd.backward(x * w, ones(lib)))
simple("tuples", lambda lib, x, w: lib.autograd.backward((x * w,), (ones(lib),)))
simple("by position", lambda lib, x, w: (x * w).backward(ones(lib), True, False, [x]))
simple("inputs", lambda lib, x, w: (x * w).sum().backward(inputs=[w]))
simple("input alone", lambda lib, x, w: (x * w).sum().backward(inputs=w))
simple("inputs twice", lambda lib, x, w: (x * w).sum().backward(inputs=[w, w]))
simple("no inputs", lambda lib, x, w: (x * w).sum().backward(inputs=[]))
simple("unrelated input", lambda lib, x, w: x.sum().backward(inputs=[w]))
simple("input without grad", lambda lib, x, w: x.sum().backward(inputs=[ones(lib)]))
simple("root without grad", lambda lib, x, w: ones(lib).sum().backward())
simple("shape mismatch", lambda lib, x, w: x.backward(constant(lib, [1.0])))
simple("complex for real", lambda lib, x, w: x.backward(constant(lib, [1.0, 1.0], "complex128")))
simple("number as gradient", lambda lib, x, w: x.backward(1.0))
simple("grad", lambda lib, x, w: lib.autograd.grad((x * w).sum(), [x, w]))
simple("grad of one", lambda lib, x, w: lib.autograd.grad((x * w).sum(), w))
simple("grad of the same twice", lambda lib, x, w: lib.autograd.grad((x * w).sum(), [x, x]))
simple("grad of itself", lambda lib, x, w: lib.autograd.grad(x, x, ones(lib)))
simple(
    "grad of several", lambda lib, x, w: lib.autograd.grad([x * 2, x * w], x, [ones(lib), constant(lib, [0.0, 5.0])])
)
simple("grad unused", lambda lib, x, w: lib.autograd.grad(x.sum(), [x, w]))
simple("grad unused allowed", lambda lib, x, w: lib.autograd.grad(x.sum(), [x, w], allow_unused=True))
simple("grad unused zeros", lambda lib, x, w: lib.autograd.grad(x.sum(), [x, w], materialize_grads=True))
simple(
    "grad unused contradiction",
    lambda lib, x, w: lib.autograd.grad(x.sum(), [x, w], materialize_grads=True, allow_unused=False),
)
simple("grad of what requires none", lambda lib, x, w: lib.autograd.grad(x.sum(), [ones(lib)]))
simple("grad of nothing", lambda lib, x, w: lib.autograd.grad(x.sum(), []))
simple("grad from nothing", lambda lib, x, w: lib.autograd.grad([], [x]))
simple("grad with too few vectors", lambda lib, x, w: lib.autograd.grad([x, x], x, [ones(lib)]))
simple("second order", with_second_order)
simple("under no_grad", under_no_grad)
simple("recorded vector", with_recorded_vector)
simple("batched", lambda lib, x, w: lib.autograd.grad(x * x * w, [x, w], lib.eye(2).double(), is_grads_batched=True))
simple(
    "batched with unused",
    lambda lib, x, w: lib.autograd.grad(x * x, [x, w], lib.eye(2).double(), is_grads_batched=True, allow_unused=True),
)
simple(
    "batched and recorded",
    lambda lib, x, w: lib.autograd.grad(
        lib.autograd.grad(x**3, x, lib.eye(2).double(), is_grads_batched=True, create_graph=True)[0].sum(), x
    ),
)
simple("written and needed", written_since(lambda lib, h: h.add_(1), lambda h: h * h))
simple("written and not needed", written_since(lambda lib, h: h.add_(1), lambda h: h + h))
simple("written through a view", written_since(lambda lib, h: h[:1].add_(1), lambda h: h * h))
simple("written through an alias", written_since(lambda lib, h: h.detach().add_(1), lambda h: h * h))
simple("written through data", written_since(lambda lib, h: h.data.add_(1), lambda h: h * h))


@program
def inner_inputs(lib: Any) -> Any:
    x = leaf(lib, [3.0])
    y = x * 2
    z = y * y
    z.backward(inputs=[y, x], retain_graph=True)
    z.backward(inputs=[y, y])
    return y.grad, x.grad


@program
def inner_inputs_that_retain(lib: Any) -> Any:
    y = leaf(lib, [3.0]) * 2
    y.retain_grad()
    z = y * y
    z.backward(inputs=[y], retain_graph=True)
    z.backward()
    return y.grad


@program
def the_root_as_input(lib: Any) -> Any:
    x = leaf(lib, [3.0])
    y = x * 2
    y.backward(inputs=[y])
    return y.grad, x.grad


@program
def gradient_of_a_path_and_its_start(lib: Any) -> Any:
    x = leaf(lib, [3.0])
    y = x * 2
    return lib.autograd.grad(y * y, [x, y])


@program
def a_gradient_that_is_set_stays_the_object(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    x.grad = mine = constant(lib, [5.0])
    (x * 2).backward()
    same = x.grad is mine
    (x * 2).backward(create_graph=True)
    return same, x.grad is mine, mine, x.grad


@program
def the_leaf_no_longer_requires_grad(lib: Any) -> Any:
    x = leaf(lib, [3.0])
    y = x * x
    x.requires_grad_(False)
    y.backward()
    return x.grad


@program
def a_recorded_gradient_is_a_copy(lib: Any) -> Any:
    x, w, g = leaf(lib, [2.0]), leaf(lib, [3.0]), constant(lib, [1.0])
    (x + w).backward(g, create_graph=True)
    x.grad.detach().mul_(5)
    return g, x.grad is g, x.grad.detach(), w.grad.detach()


@program
def mixed_precision(lib: Any) -> Any:
    x, w = leaf(lib, [3.0], "float32"), leaf(lib, [4.0])
    (x * w).sum().backward()
    return x.grad, w.grad


@program
def real_and_complex(lib: Any) -> Any:
    x, w = leaf(lib, [3.0]), leaf(lib, [4.0 + 1.0j], "complex128")
    (x * w).backward(constant(lib, [1.0 + 1.0j], "complex128"))
    return x.grad, w.grad


@program
def setting_a_grad_of_another_shape(lib: Any) -> Any:
    leaf(lib, [1.0]).grad = constant(lib, [1.0, 2.0])


@program
def setting_a_grad_of_another_dtype(lib: Any) -> Any:
    leaf(lib, [1.0]).grad = constant(lib, [1.0], "float32")


@program
def setting_a_grad_that_is_no_tensor(lib: Any) -> Any:
    leaf(lib, [1.0]).grad = 3.0
