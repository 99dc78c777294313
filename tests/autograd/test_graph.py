"""`autograd.graph`: hooks on what is saved, gradient edges, hooks on several gradients; and inference mode."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

import pullback
from pullback.autograd import graph
from tests.side_by_side import leaf


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
