"""Checkpoints with graphs, hooks and saved values."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from typing import Any

import pytest

import pullback
from tests.programs.checkpoint.common import _checkpoint, plainly
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


class Witness:
    """Something that can be seen to die."""


@program
def a_graph_that_was_kept_dies_by_reference_count(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    found = []
    gc.disable()
    try:
        for early_stop in (True, True, False):  # in the first round torch loads parts of itself, and keeps what it sees
            x = leaf(lib, [1.0])
            b, witness = x * 1, Witness()
            b.grad_fn.metadata["witness"] = witness
            alive = weakref.ref(witness)
            with lib.utils.checkpoint.set_checkpoint_early_stop(early_stop):
                y = _checkpoint(lib)(plainly, b, use_reentrant=False)
            y.sum().backward(retain_graph=True)
            del witness, b
            found.append(alive() is None)
            del y
            found.append(alive() is None)
    finally:
        gc.enable()
    return found[2:]


@program
def a_saved_value_that_is_looked_at(lib: Any) -> Any:
    calls: list[int] = []

    def part(x: Any) -> Any:
        calls.append(1)
        return (x * x).exp()

    y = _checkpoint(lib)(part, leaf(lib, [0.1, 0.2]), use_reentrant=False)
    found = [len(calls)]
    for _ in range(2):  # outside of a backward pass, each time anew
        _ = y.grad_fn._saved_result
        found.append(len(calls))
    y.sum().backward()
    found.append(len(calls))
    try:
        _ = y.grad_fn._saved_result
    except RuntimeError:
        return found, "freed"


@program
def hooks_on_saved_values_around_and_inside(lib: Any) -> Any:
    log, x = [], leaf(lib, [0.5])

    def hooks(name: str) -> Any:
        pack = lambda t: (log.append(f"pack {name}"), t)[1]  # noqa: E731
        return lib.autograd.graph.saved_tensors_hooks(pack, lambda t: (log.append(f"unpack {name}"), t)[1])

    def part(a: Any) -> Any:
        with hooks("inside"):
            b = a.sin()
        return b.exp()

    with hooks("around"):
        y = _checkpoint(lib)(part, x, use_reentrant=False)
    log.append("backward")
    y.backward()
    return log, x.grad


@program
def where_hooks_are_disabled(lib: Any) -> Any:
    with lib.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        _checkpoint(lib)(lib.sin, leaf(lib, [1.0]), use_reentrant=False)


@program
def some_of_the_gradients(lib: Any) -> Any:
    x, w, calls = leaf(lib, [1.0]), leaf(lib, [2.0]), []

    def part(a: Any, b: Any) -> Any:
        calls.append(1)
        return (a * w).sin(), b**3

    y, z = _checkpoint(lib)(part, x, w, use_reentrant=False)
    y.backward(inputs=[w], retain_graph=True)
    found = w.grad.clone(), x.grad
    return found, lib.autograd.grad(z, w), len(calls)


@program
def a_part_without_derivative(lib: Any) -> Any:
    def part(x: Any) -> Any:
        with lib.no_grad():
            return x.sin()

    found = []
    for reentrant in (True, False):
        y = _checkpoint(lib)(part, leaf(lib, [1.0]), use_reentrant=reentrant)
        try:
            y.backward()
            found.append("no error")
        except RuntimeError:
            found.append((y.requires_grad, "RuntimeError"))
    return found


@program
def in_anomaly_mode(lib: Any) -> Any:
    x = leaf(lib, [0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with lib.autograd.detect_anomaly():
            _checkpoint(lib)(plainly, x, use_reentrant=False).backward()
    return x.grad


@program
def eight_deep(lib: Any) -> Any:
    f, x = plainly, leaf(lib, [0.5])
    for _ in range(8):
        f = lambda a, f=f: _checkpoint(lib)(lambda b: f(b) * 1.1, a, use_reentrant=False)  # noqa: E731
    f(x).backward()
    return x.grad


@program
def derivatives_to_the_third_order(lib: Any) -> Any:
    x = leaf(lib, [0.5])
    y = _checkpoint(lib)(lambda a: (a**4).sin(), x, use_reentrant=False)
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    (h,) = lib.autograd.grad(g, x, create_graph=True)
    return g, h, lib.autograd.grad(h, x)


@program
def long_chains_of_parts(lib: Any) -> Any:
    found = []
    for reentrant, count in ((True, 30), (False, 200)):
        y = x = leaf(lib, [0.5])
        for _ in range(count):
            y = _checkpoint(lib)(lib.sin, y, use_reentrant=reentrant)
        y.backward()
        found.append(x.grad)
    return found


@program
def threads_that_share_a_parameter(lib: Any) -> Any:
    w, c = leaf(lib, [2.0]), _checkpoint(lib)

    def job() -> None:
        c(lambda a: (a * w).sin() * a, leaf(lib, [1.0]), use_reentrant=False).backward()

    threads = [threading.Thread(target=job) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return w.grad


@program
def a_sequence_of_layers_in_either_kind(lib: Any) -> Any:
    net = lib.nn.Sequential(*[lib.nn.Linear(2, 2) for _ in range(6)]).double()
    found: list[Any] = []
    _checkpoint(lib)  # imports the module
    with lib.no_grad():
        for p in net.parameters():
            p.fill_(0.3)
    for segments in (2, 3):
        for reentrant in (True, False):
            net.zero_grad()
            x = leaf(lib, [[1.0, 1.0]])
            lib.utils.checkpoint.checkpoint_sequential(net, segments, x, use_reentrant=reentrant).sum().backward()
            found.append((x.grad, net[0].weight.grad.clone()))
    return found


@program
def dual_tensors_in_a_part(lib: Any) -> Any:
    c = _checkpoint(lib)
    if lib is not pullback:
        pytest.importorskip("torch.autograd.forward_ad")
    fw = lib.autograd.forward_ad
    with fw.dual_level():
        y = c(lib.sin, fw.make_dual(leaf(lib, [0.5]), lib.ones(1, dtype=lib.float64)), use_reentrant=False)
        return fw.unpack_dual(y).tangent, y.requires_grad


@program
def a_hessian_through_a_part(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0], dtype=lib.float64)
    return lib.autograd.functional.hessian(
        lambda a: _checkpoint(lib)(lambda b: (b**3).sum(), a, use_reentrant=False), x
    )
