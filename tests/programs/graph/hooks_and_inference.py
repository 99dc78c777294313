"""Hooks on what is saved, hooks on several gradients, and inference mode."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant, leaf, named, programs

PROGRAMS, program = programs()


# saved_tensors_hooks --------------------------------------------------------------------------------------------------


def _logging(lib: Any, log: list[Any]) -> Any:
    def pack(t: Any) -> Any:
        log.append(("pack", tuple(t.shape), t.requires_grad))
        return t * 1

    def unpack(t: Any) -> Any:
        log.append("unpack")
        return t

    return lib.autograd.graph.saved_tensors_hooks(pack, unpack)


@program
def what_is_saved_is_packed_and_unpacked_once(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    with _logging(lib, log):
        y = x.exp() * x
    y.sum().backward()
    return log, x.grad


@program
def gradients_through_packed_values_can_be_differentiated(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    with _logging(lib, log):
        y = (x.exp() * x).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    return lib.autograd.grad(g.sum(), x)


@program
def of_nested_hooks_the_innermost_is_used(lib: Any) -> Any:
    x, outer, inner = leaf(lib, [3.0]), [], []
    with _logging(lib, outer):
        y = x * x
        with _logging(lib, inner):
            z = x.sin()
        w = x.cos()
    (y + z + w).backward()
    return outer, inner, x.grad


@program
def a_functions_saved_tensors_are_packed(lib: Any) -> Any:
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x**3
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return 3 * y / x * g

    x, log = leaf(lib, [2.0, 1.0]), []
    with _logging(lib, log):
        y = Cube.apply(x)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return len(log), g, lib.autograd.grad(g.sum(), x)


@program
def what_hooks_do_is_not_hooked(lib: Any) -> Any:
    calls = []

    def pack(t: Any) -> Any:
        calls.append("pack")
        return t.detach() * t.detach()

    x = leaf(lib, [2.0])
    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t.sqrt()):
        y = x.exp().sin()
    y.backward()
    return calls, x.grad


@program
def an_unpack_hook_that_returns_no_tensor(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 1.0):
        y = x * x
    y.backward()


@program
def a_pack_hook_that_writes_to_what_it_is_given(lib: Any) -> Any:
    def pack(t: Any) -> Any:
        t *= 2
        return t

    x = leaf(lib, [2.0]) * 1
    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        return x * x


@program
def a_pack_hook_that_raises_leaves_no_hook_behind(lib: Any) -> Any:
    def pack(t: Any) -> Any:
        raise ArithmeticError("no")

    x = leaf(lib, [2.0])
    try:
        with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            x * x
    except ArithmeticError:
        pass
    (x * x).backward()
    return x.grad


@program
def a_packed_value_is_not_checked_for_writes(lib: Any) -> Any:
    x = leaf(lib, [2.0]) * 1
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x * x
    x.detach().add_(1)
    (g,) = lib.autograd.grad(y, x)
    return g


@program
def hooks_may_be_disabled(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
        y = x * x
        y.backward()
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return x * x


@program
def save_on_cpu_keeps_copies(lib: Any) -> Any:
    x = leaf(lib, [2.0]) * 1
    with lib.autograd.graph.save_on_cpu():
        y = x.sin() * x
    return lib.autograd.grad(y, x)


# edges ----------------------------------------------------------------------------------------------------------------


@program
def gradients_with_respect_to_an_edge(lib: Any) -> Any:
    x = leaf(lib, [2.0, 3.0])
    y = x * x
    edge = lib.autograd.graph.get_gradient_edge(y)
    z = (y * y).sum()
    return (
        edge.node.name(),
        edge.output_nr,
        lib.autograd.grad(z, edge, retain_graph=True),
        lib.autograd.grad(z, [edge, x]),
    )


@program
def an_edge_as_the_root_of_a_pass(lib: Any) -> Any:
    x = leaf(lib, [2.0, 3.0])
    edge = lib.autograd.graph.get_gradient_edge(x * x)
    lib.autograd.backward(edge, constant(lib, [1.0, 10.0]))
    return x.grad


@program
def the_edge_of_a_leaf(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    edge = lib.autograd.graph.get_gradient_edge(x)
    return edge.node, lib.autograd.grad(x * 3, edge)


@program
def the_edge_of_a_constant(lib: Any) -> Any:
    return lib.autograd.graph.get_gradient_edge(constant(lib, [1.0]))


@program
def a_version_that_is_counted_by_hand(lib: Any) -> Any:
    x = leaf(lib, [2.0]) * 1
    y = x * x
    before = x._version
    lib.autograd.graph.increment_version(x)
    after = x._version
    try:
        y.backward()
    except RuntimeError:
        return before, after, "refused"


# hooks on several gradients -------------------------------------------------------------------------------------------


def _several(lib: Any, mode: str, loss: Any) -> Any:
    a, b, c = (leaf(lib, [float(k)]) for k in (1, 2, 3))
    seen: list[Any] = []
    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c), seen.append, mode=mode)
    loss(a, b, c).backward()
    loss(a, b, c).backward()
    handle.remove()
    loss(a, b, c).backward()
    return [list(s) if isinstance(s, (tuple, list)) else s for s in seen]


@program
def all_of_several_gradients(lib: Any) -> Any:
    return _several(lib, "all", lambda a, b, c: (a * b * c).sum())


@program
def all_of_those_that_are_computed(lib: Any) -> Any:
    return _several(lib, "all", lambda a, b, c: (a * c).sum())


@program
def the_first_of_several_gradients(lib: Any) -> Any:
    return len(_several(lib, "any", lambda a, b, c: (a * b * c).sum()))


@program
def several_gradients_of_inner_tensors(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y, z = x * 2, x * 3
    seen: list[Any] = []
    lib.autograd.graph.register_multi_grad_hook((y, z), lambda grads: seen.append(list(grads)))
    (y * z).backward()
    return seen


@program
def a_mode_of_hooks_that_is_none(lib: Any) -> Any:
    return lib.autograd.graph.register_multi_grad_hook((leaf(lib, [1.0]),), print, mode="some")


# inference mode -------------------------------------------------------------------------------------------------------


@program
def results_of_inference(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.inference_mode():
        y, z, v = x * 2, lib.ones(2), x.view(2)
        inside = [
            y.is_inference(),
            z.is_inference(),
            v.is_inference(),
            y.requires_grad,
            lib.is_inference_mode_enabled(),
        ]
        y.add_(1)
    return inside, y, lib.is_inference_mode_enabled(), lib.ones(1).is_inference()


@program
def inference_can_be_left_inside(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.inference_mode(), lib.inference_mode(False):
        y = x * 2
    return y.is_inference(), y.requires_grad


@program
def inference_as_a_decorator(lib: Any) -> Any:
    @lib.inference_mode()
    def double(x: Any) -> Any:
        return x * 2

    @lib.inference_mode
    def half(x: Any) -> Any:
        return x / 2

    x = leaf(lib, [1.0])
    return double(x).is_inference(), half(x).is_inference(), (x * 2).is_inference()


_REFUSED = {
    "version": lambda lib, x, y: y._version,
    "write": lambda lib, x, y: y.add_(1),
    "save": lambda lib, x, y: x * y,
    "require grad": lambda lib, x, y: y.requires_grad_(),
    "clone": lambda lib, x, y: (y.clone() * x).sum().backward(),
    "not saved": lambda lib, x, y: x + y,
    "detach": lambda lib, x, y: y.detach().is_inference(),
    "a view of it": lambda lib, x, y: y[0].is_inference(),
}


def an_inference_tensor_outside(lib: Any, what: str) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with lib.inference_mode():
        y = x.detach() * 2
    return _REFUSED[what](lib, x, y)


PROGRAMS += [
    named(f"an_inference_tensor_outside: {what}", lambda lib, what=what: an_inference_tensor_outside(lib, what))
    for what in _REFUSED
]
