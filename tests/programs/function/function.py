"""A Function: forward and backward, what it saves, marks and returns."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


def _identity(lib: Any, **methods: Any) -> Any:
    """A Function of one argument from two plain functions."""
    return type("F", (lib.autograd.Function,), {name: staticmethod(fn) for name, fn in methods.items()})


@program
def several_outputs_one_used(lib: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
        seen.append((a, b, c))
        return a * 2

    F = _identity(lib, forward=lambda ctx, x: (x * 2, lib.tensor([1, 2]), x > 0), backward=backward)
    x = leaf(lib, [1.0, 2.0])
    y = F.apply(x)
    y[0].sum().backward()
    return y, seen, x.grad


@program
def several_outputs_without_materialized(lib: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, lib.tensor([1, 2]), x * 3

    def backward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
        seen.append((a, b, c))
        return c * 3

    x = leaf(lib, [1.0, 2.0])
    y = _identity(lib, forward=forward, backward=backward).apply(x)
    y[2].sum().backward()
    return y, seen, x.grad


@program
def saved_tensors_of_every_kind(lib: Any) -> Any:
    found: list[Any] = []

    def forward(ctx: Any, x: Any, w: Any, c: Any) -> Any:
        inner = x * w
        out = inner + c
        ctx.save_for_backward(x, None, c, inner, out)
        return out

    def backward(ctx: Any, g: Any) -> Any:
        found.extend(ctx.saved_tensors)
        return g, g, None

    x, w, c = leaf(lib, [2.0]) * 1, leaf(lib, [3.0]), constant(lib, [4.0])
    _identity(lib, forward=forward, backward=backward).apply(x, w, c).backward()
    return found, found[0] is x, found[2] is c


@program
def identity_of_a_leaf(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x, backward=lambda ctx, g: g * 2)
    x = leaf(lib, [1.0])
    y = F.apply(x)
    y.backward()
    return y is x, y, y._is_view(), x.grad


@program
def identity_without_recording(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x, backward=lambda ctx, g: g * 2)
    found = []
    for x in (leaf(lib, [1.0]), constant(lib, [1.0])):
        with lib.no_grad():
            y = F.apply(x)
        found.append((y is x, y, x))
    x = constant(lib, [1.0])
    y = F.apply(x)
    return found, y is x, y


@program
def view_of_the_input(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x.view(1, 2), backward=lambda ctx, g: g.view(2) * 7)
    x = leaf(lib, [1.0, 2.0])
    y = F.apply(x)
    y.sum().backward()
    return y, x.grad


@program
def writing_to_a_view_of_the_input(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x.view(1, 2), backward=lambda ctx, g: g.view(2) * 7)
    return F.apply(leaf(lib, [1.0, 2.0]) * 1).mul_(2)


def _dirty(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    return _identity(lib, forward=forward, backward=lambda ctx, g: g * 2)


@program
def dirty_inputs(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0])
    x = w * 3
    y = _dirty(lib).apply(x)
    y.sum().backward()
    return y is x, x._version, y, w.grad


@program
def dirty_leaf(lib: Any) -> Any:
    return _dirty(lib).apply(leaf(lib, [1.0]))


@program
def dirty_without_recording(lib: Any) -> Any:
    found = []
    for x in (leaf(lib, [1.0]), leaf(lib, [1.0]) * 1, constant(lib, [1.0])):
        with lib.no_grad():
            y = _dirty(lib).apply(x)
        found.append((y is x, y, x, x._version))
    return found


@program
def dirty_view(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])
    base = w * 3
    view = base[:2]
    y = _dirty(lib).apply(view)
    (base * constant(lib, [1.0, 10.0, 100.0])).sum().backward()
    return y is view, base, w.grad


@program
def dirty_base(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0, 3.0])
    base = w * 3
    view = base[:2]
    _dirty(lib).apply(base)
    view.sum().backward()
    return view, w.grad


@program
def dirty_saved_upstream(lib: Any) -> Any:
    x = leaf(lib, [1.0]).exp()
    _dirty(lib).apply(x).backward()


@program
def dirty_output_saved(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    F = _identity(lib, forward=forward, backward=lambda ctx, g: g * ctx.saved_tensors[0])
    w = leaf(lib, [1.0, 0.0])
    (g,) = lib.autograd.grad(F.apply(w * 1).sum(), w, create_graph=True)
    return g, lib.autograd.grad(g.sum(), w)


@program
def dirty_retained(lib: Any) -> Any:
    x = leaf(lib, [1.0]) * 3
    x.retain_grad()
    _dirty(lib).apply(x).sum().backward()
    return x.grad


@program
def dirty_integers(lib: Any) -> Any:
    def forward(ctx: Any, x: Any, n: Any) -> Any:
        ctx.mark_dirty(n)
        return x * 2, n.add_(1)

    F = _identity(lib, forward=forward, backward=lambda ctx, g, h: (g * 2, None))
    x, n = leaf(lib, [1.0]), lib.tensor([1])
    y, m = F.apply(x, n)
    y.backward()
    return y, m, m is n, x.grad


@program
def non_differentiable_input(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_non_differentiable(x)
        return x, x * 2

    F = _identity(lib, forward=forward, backward=lambda ctx, g, h: h * 2)
    x = leaf(lib, [1.0])
    y, z = F.apply(x)
    z.backward()
    return y is x, y, z, x.grad


@program
def exponential_to_third_order(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    F = _identity(lib, forward=forward, backward=lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(lib, 0.5)
    found = [F.apply(x * x)]
    for _ in range(3):
        found += lib.autograd.grad(found[-1], x, create_graph=True)
    return found


@program
def too_many_gradients(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: (g, g))
    F.apply(leaf(lib, [1.0])).backward()


@program
def trailing_nones(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: (g, None, None))
    x = leaf(lib, [1.0])
    F.apply(x).backward()
    return x.grad


@program
def too_few_gradients(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x, n: x * 2, backward=lambda ctx, g: g)
    F.apply(leaf(lib, [1.0]), 2).backward()


@program
def no_gradient_at_all(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: None)
    x = leaf(lib, [1.0])
    F.apply(x).backward()
    return x.grad


@program
def gradient_for_a_number(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x, n: x * 2, backward=lambda ctx, g: (g, g))
    F.apply(leaf(lib, [1.0]), 2).backward()


@program
def gradient_that_is_no_tensor(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: 2.0)
    F.apply(leaf(lib, [1.0])).backward()


@program
def gradient_for_what_requires_none(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x, c: x * c, backward=lambda ctx, g: (g, g))
    x = leaf(lib, [1.0])
    F.apply(x, constant(lib, [1.0])).backward()
    return x.grad


@program
def gradient_in_single_precision(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g.float() / 3)
    x = leaf(lib, [1.0])
    F.apply(x).backward()
    return x.grad


@program
def real_gradient_of_a_complex_input(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x.real * 2, backward=lambda ctx, g: g * 2)
    x = leaf(lib, [1.0 + 2.0j], "complex128")
    F.apply(x).backward()
    return x.grad


@program
def complex_gradient_of_a_real_input(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 1j)
    F.apply(leaf(lib, [1.0])).backward()


@program
def saved_and_written_since(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    F = _identity(lib, forward=forward, backward=lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(lib, [1.0]) * 1
    y = F.apply(x)
    x.add_(1)
    y.backward()


@program
def freed_and_read(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    F = _identity(lib, forward=forward, backward=lambda ctx, g: g)
    y = F.apply(leaf(lib, [1.0]))
    y.backward()
    return y.grad_fn.saved_tensors


@program
def nothing_saved_runs_again(lib: Any) -> Any:
    F = _identity(lib, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2)
    x = leaf(lib, [1.0])
    y = F.apply(x)
    y.backward()
    y.backward()
    return x.grad
