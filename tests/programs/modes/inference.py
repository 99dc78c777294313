"""Inference mode: tensors made in it take no part in a graph and in no write outside of it."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant, function, leaf, programs, says

PROGRAMS, program = programs()

WRITE = "Inplace update to inference tensor outside InferenceMode is not allowed."
SAVE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd"
)


def _inferred(lib: Any, values: Any) -> Any:
    with lib.inference_mode():
        return constant(lib, values)


@program
def gradient_made_in_inference_mode_is_not_added_to(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    x.grad = _inferred(lib, [5.0, 5.0])
    return says((x * 2).sum().backward, WRITE)


@program
def gradient_made_by_a_pass_in_inference_mode_is_not_added_to(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y = (x * 2).sum()
    with lib.inference_mode():
        y.backward(retain_graph=True)
        y.backward(retain_graph=True)
    return x.grad.is_inference(), says(y.backward, WRITE)


@program
def gradient_written_to_in_inference_mode(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    (x * 2).sum().backward()
    with lib.inference_mode():
        x.grad.mul_(2)
    (x * 2).sum().backward()
    return x.grad


@program
def gradient_made_in_inference_mode_and_a_recorded_pass(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    x.grad = _inferred(lib, [5.0, 5.0])
    (x * x).sum().backward(create_graph=True)
    return x.grad


@program
def retained_gradient_made_in_inference_mode(lib: Any) -> Any:
    y = leaf(lib, [1.0, 2.0]) * 2
    y.retain_grad()
    y.grad = _inferred(lib, [5.0, 5.0])
    y.sum().backward()
    return y.grad


@program
def sparse_gradient_and_one_made_in_inference_mode(lib: Any) -> Any:
    w = leaf(lib, [[1.0], [2.0]])
    w.grad = _inferred(lib, [[5.0], [5.0]])
    y = lib.nn.functional.embedding(lib.tensor([1]), w, sparse=True).sum()
    return says(y.backward, WRITE)


@program
def writes_outside(lib: Any) -> Any:
    t = _inferred(lib, [1.0, 2.0])
    F = function(lib, lambda ctx, x: (ctx.mark_dirty(x), x.add_(1))[1], lambda ctx, g: g)
    calls = {
        "in place": lambda: t.add_(1),
        "item": lambda: t.__setitem__(0, 1.0),
        "copy": lambda: t.copy_(constant(lib, [3.0, 4.0])),
        "view": lambda: t.view(2, 1).add_(1),
        "out": lambda: lib.mul(constant(lib, [3.0, 4.0]), 2, out=t),
        "marked": lambda: F.apply(t),
    }
    return {name: says(call, WRITE) for name, call in calls.items()}


@program
def saved_outside(lib: Any) -> Any:
    t, x = _inferred(lib, [1.0, 2.0]), leaf(lib, [1.0, 2.0])

    def forward(ctx: Any, t: Any, x: Any) -> Any:
        ctx.save_for_backward(t)
        return x * 2

    F = function(lib, forward, lambda ctx, g: (None, g))
    calls = {"operation": lambda: t * x, "view": lambda: t.view(2) * x, "function": lambda: F.apply(t, x)}
    return {name: says(call, SAVE) for name, call in calls.items()}


@program
def set_to_require_grad(lib: Any) -> Any:
    phrase = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
    return says(lambda: _inferred(lib, [1.0]).requires_grad_(), phrase)


@program
def view_made_in_inference_mode_written_outside(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0]).clone()
    with lib.inference_mode():
        view = x[:1]
    return says(
        lambda: view.add_(1),
        "A view was created in inference mode and is being modified inplace in normal mode.",
    )
