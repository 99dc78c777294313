"""Gradients that `grad` returns for tensors with hooks: before the hooks where the pass goes on, else after them."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import function, leaf, programs

PROGRAMS, program = programs()


def _hooked(lib: Any, factor: float = 0.5) -> tuple[Any, Any]:
    u = leaf(lib, [2.0])
    v = u * 1
    v.register_hook(lambda g: g * factor)
    return u, v


@program
def where_the_pass_ends(lib: Any) -> Any:
    _, v = _hooked(lib)
    return lib.autograd.grad(v * 3, [v])


@program
def where_the_pass_goes_on(lib: Any) -> Any:
    u, v = _hooked(lib)
    return lib.autograd.grad(v * 3, [v, u])


@program
def at_the_root(lib: Any) -> Any:
    _, v = _hooked(lib)
    return lib.autograd.grad(v, [v])


@program
def at_the_root_and_beyond(lib: Any) -> Any:
    u, v = _hooked(lib)
    return lib.autograd.grad(v, [v, u])


@program
def of_a_leaf(lib: Any) -> Any:
    u = leaf(lib, [2.0])
    u.register_hook(lambda g: g / 2)
    v = u * 1
    return lib.autograd.grad(v * 3, [v, u])


@program
def under_create_graph(lib: Any) -> Any:
    u, v = _hooked(lib)
    by_v, by_u = lib.autograd.grad(v * v, [v, u], create_graph=True)
    return by_v, by_u, lib.autograd.grad(by_v, u, retain_graph=True), lib.autograd.grad(by_u, u)


@program
def two_hooks_in_a_chain(lib: Any) -> Any:
    u, v = _hooked(lib, 7.0)
    w = v * 2
    w.register_hook(lambda g: g / 2)
    return (
        lib.autograd.grad(w * 3, [w, v, u], retain_graph=True),
        lib.autograd.grad(w * 3, [w, v], retain_graph=True),
        lib.autograd.grad(w * 3, [w]),
    )


@program
def with_retain_grad(lib: Any) -> Any:
    u, v = _hooked(lib)
    v.retain_grad()
    return lib.autograd.grad(v * 3, [v, u], retain_graph=True), v.grad


@program
def by_backward_with_inputs(lib: Any) -> Any:
    u, v = _hooked(lib)
    (v * 3).backward(inputs=[v, u])
    return v.grad, u.grad


@program
def with_hooks_of_the_node(lib: Any) -> Any:
    u = leaf(lib, [2.0])
    v = u * 1
    v.grad_fn.register_prehook(lambda g: (g[0] / 2,))
    v.grad_fn.register_hook(lambda sent, got: (sent[0] * 10, *sent[1:]))
    return lib.autograd.grad(v * 3, [v, u])


@program
def of_two_outputs(lib: Any) -> Any:
    u = leaf(lib, [2.0])
    p, q = function(lib, lambda ctx, x: (x * 1, x * 2), lambda ctx, a, b: a + 2 * b).apply(u)
    p.register_hook(lambda g: g / 2)
    out = p * 3 + q
    return (
        lib.autograd.grad(out, [p, q], retain_graph=True),
        lib.autograd.grad(out, [p, q, u], retain_graph=True),
        lib.autograd.grad(out, [q]),
    )


@program
def of_views(lib: Any) -> Any:
    u = leaf(lib, [2.0])
    v = u * 2
    a, b = lib.stack([v, v * 3]).unbind()
    a.register_hook(lambda g: g / 2)
    b.register_hook(lambda g: g * 10)
    return lib.autograd.grad(a * 3 + b, [a, b, v, u])
