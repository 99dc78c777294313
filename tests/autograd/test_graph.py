"""`autograd.graph`: hooks on what is saved, gradient edges, hooks on several gradients; and inference mode."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

import pullback
from pullback.autograd import graph
from tests.side_by_side import Program, constant, leaf, name_of, outcome, outcomes, programs

PROGRAMS, program = programs()


# -- saved_tensors_hooks -----------------------------------------------------------------------------------------------


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


# -- edges -------------------------------------------------------------------------------------------------------------


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


# -- hooks on several gradients ----------------------------------------------------------------------------------------


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


# -- inference mode ----------------------------------------------------------------------------------------------------


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


@pytest.mark.torch
@pytest.mark.parametrize("what", _REFUSED)
def test_what_may_be_done_with_an_inference_tensor_outside(what: str) -> None:
    def observed(lib: Any) -> Any:
        x = leaf(lib, [1.0, 2.0])
        with lib.inference_mode():
            y = x.detach() * 2
        return _REFUSED[what](lib, x, y)

    ours, theirs = outcomes(observed)
    assert ours == theirs


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_as_in_torch(program: Program) -> None:
    ours, theirs = outcomes(program)
    assert ours == theirs


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_runs_without_the_oracle(program: Program) -> None:
    refused = "write raise no_tensor disabled constant is_none".split()
    kind = outcome(program, pullback)
    expected = any(word in program.__name__ for word in refused) and "hook_that_raises" not in program.__name__
    assert (isinstance(kind, tuple) and kind[0] == "raises") == (
        expected and "not_checked_for_writes" not in program.__name__
    )


def test_the_messages_say_what_to_do() -> None:
    x = pullback.ones(2, requires_grad=True)
    with pullback.inference_mode():
        y = x.detach() * 2
    for act in (lambda: y.add_(1), lambda: x * y, lambda: y.requires_grad_()):
        with pytest.raises(RuntimeError, match="What to do: make a clone"):
            act()
    assert y.tolist() == [2.0, 2.0]


def test_an_edge_made_by_hand_needs_a_gradient_as_a_root() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = (x * 3).sum()
    edge = graph.GradientEdge(y.grad_fn, y.output_nr)
    with pytest.raises(RuntimeError, match="its gradient has to be given"):
        pullback.autograd.backward(edge)
    assert pullback.autograd.grad(edge, x, pullback.tensor(2.0))[0].tolist() == [6.0, 6.0]
    assert pullback.autograd.grad(graph.get_gradient_edge((x * 3).sum()), x)[0].tolist() == [3.0, 3.0]


def test_packed_values_make_no_cycle() -> None:
    gc.disable()
    try:
        x = pullback.ones(2, requires_grad=True)
        with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = x.exp().sin()
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_callbacks_run_at_the_end_of_the_pass() -> None:
    from pullback.autograd.engine import queue_callback

    log: list[str] = []
    x = pullback.ones(1, requires_grad=True)

    def hook(grad: Any) -> None:
        queue_callback(lambda: log.append("end"))
        log.append("hook")

    y = x * 2
    y.register_hook(hook)
    x.register_hook(lambda g: log.append("leaf"))
    y.sum().backward()
    assert log == ["hook", "leaf", "end"]
    with pytest.raises(RuntimeError, match="during backward"):
        queue_callback(lambda: None)


def multi_grad_hooks_of_a_pass_within_a_pass(lib: Any) -> Any:
    a, b = leaf(lib, [1.0]), leaf(lib, [1.0])
    seen: list[Any] = []
    lib.autograd.graph.register_multi_grad_hook([a, b], lambda grads: seen.append([g.tolist() for g in grads]))

    def inner(g: Any) -> None:
        if not seen:
            with lib.enable_grad():
                z = (a * b).sum()
            z.backward()

    c = a * 2
    c.register_hook(inner)
    (c + b * 3).sum().backward()
    return seen


@pytest.mark.torch
def test_a_multi_grad_hook_fires_once_for_each_of_two_passes_one_within_the_other() -> None:
    torch = pytest.importorskip("torch")
    assert multi_grad_hooks_of_a_pass_within_a_pass(pullback) == multi_grad_hooks_of_a_pass_within_a_pass(torch)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_multi_grad_hook_keeps_nothing_of_a_pass_nor_the_leaves_alive(mode: str) -> None:
    a, b = leaf(pullback, [1.0]), leaf(pullback, [1.0])
    unused = leaf(pullback, [1.0])
    handle = graph.register_multi_grad_hook([a, b, unused][: 2 + (mode == "any")], lambda grads: None, mode=mode)
    y = (a * b).sum()
    node, array = weakref.ref(y.grad_fn), weakref.ref(a._data)
    gc.disable()
    try:
        y.backward()
        del y
        assert node() is None
        del a, b, unused, handle
        assert array() is None
    finally:
        gc.enable()


def disabled_hooks_in_anomaly_mode(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"), lib.autograd.detect_anomaly():
        y = x * x
        y.backward()
    return x.grad


def disabled_hooks_twice(lib: Any) -> Any:
    both = lib.autograd.graph.disable_saved_tensors_hooks("not here")
    with both, both:
        pass
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return leaf(lib, [2.0]) * 2


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_where_hooks_are_disabled_all_else_is_as_always() -> None:
    torch = pytest.importorskip("torch")
    assert disabled_hooks_in_anomaly_mode(pullback).tolist() == disabled_hooks_in_anomaly_mode(torch).tolist()


def test_disabling_hooks_twice_enables_them_again() -> None:
    assert disabled_hooks_twice(pullback).tolist() == [4.0]


def test_where_hooks_are_disabled_origins_can_be_recorded() -> None:
    x = leaf(pullback, [2.0])
    with graph.disable_saved_tensors_hooks("not here"), pullback.autograd.record_origins():
        assert (x * x).tolist() == [4.0]


def test_hooks_that_are_on_cannot_be_disabled() -> None:
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        with pytest.raises(RuntimeError, match="not here"), graph.disable_saved_tensors_hooks("not here"):
            raise AssertionError
        leaf(pullback, [2.0]) * 2
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass  # they were not left disabled


def test_leaving_allow_mutation_forgets_only_its_own() -> None:
    w = leaf(pullback, [3.0]).clone()
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with graph.allow_mutation_on_saved_tensors():
            _ = w**2
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=other)
    with graph.allow_mutation_on_saved_tensors():
        y = (w**2).sum()
        thread.start()
        entered.wait(5)
        leave.set()
        thread.join()
        w.detach().zero_()
        (g,) = pullback.autograd.grad(y, w)
    assert g.tolist() == [6.0]
