"""Checkpointing: the same gradients, nothing kept, and the part run again as often as PyTorch runs it."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from typing import Any

import pytest

import pullback
from pullback.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from tests.side_by_side import Program, leaf, name_of, outcomes, programs

PROGRAMS, program = programs()


def _part(lib: Any, calls: list[int], w: Any) -> Any:
    def part(x: Any, scale: float = 1.0) -> Any:
        calls.append(1)
        return (x @ w).tanh() * scale

    return part


def _checkpoint(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    return lib.utils.checkpoint.checkpoint


def _observed(lib: Any, use: Any) -> Any:
    calls: list[int] = []
    w = leaf(lib, [[0.1, 0.2], [0.3, 0.4]])
    x = leaf(lib, [1.0, 2.0])
    part = _part(lib, calls, w)
    y = use(_checkpoint(lib), part, x)
    y.sum().backward()
    return y, x.grad, w.grad, len(calls)


@program
def one_part(lib: Any) -> Any:
    return _observed(lib, lambda c, part, x: c(part, x, use_reentrant=False))


@program
def one_part_with_reentrance(lib: Any) -> Any:
    return _observed(lib, lambda c, part, x: c(part, x, use_reentrant=True))


@program
def keywords(lib: Any) -> Any:
    return _observed(lib, lambda c, part, x: c(part, x, scale=3.0, use_reentrant=False))


@program
def parts_one_after_the_other(lib: Any) -> Any:
    return _observed(
        lib,
        lambda c, part, x: c(part, c(part, c(part, x, use_reentrant=False), use_reentrant=False), use_reentrant=False),
    )


@program
def parts_one_after_the_other_with_reentrance(lib: Any) -> Any:
    return _observed(lib, lambda c, part, x: c(part, c(part, x, use_reentrant=True), use_reentrant=True))


@program
def parts_within_a_part(lib: Any) -> Any:
    def use(c: Any, part: Any, x: Any) -> Any:
        def whole(x: Any) -> Any:
            return c(part, c(part, x, use_reentrant=False), 2.0, use_reentrant=False).exp()

        return c(whole, x, use_reentrant=False)

    return _observed(lib, use)


@program
def three_deep(lib: Any) -> Any:
    def use(c: Any, part: Any, x: Any) -> Any:
        def inner(x: Any) -> Any:
            return c(part, x, use_reentrant=False).sin()

        def middle(x: Any) -> Any:
            return c(inner, x, use_reentrant=False).exp()

        def outer(x: Any) -> Any:
            return c(middle, x, use_reentrant=False).cos()

        return c(outer, x, use_reentrant=False)

    return _observed(lib, use)


@program
def without_early_stop(lib: Any) -> Any:
    return _observed(lib, lambda c, part, x: c(part, x, use_reentrant=False, early_stop=False))


@program
def gradients_of_gradients(lib: Any) -> Any:
    x = leaf(lib, [0.5, 1.0])
    y = _checkpoint(lib)(lambda x: x.sin().exp(), x, use_reentrant=False)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return g, lib.autograd.grad(g.sum(), x)


@program
def a_graph_that_is_kept(lib: Any) -> Any:
    x, calls = leaf(lib, [0.5, 1.0]), []

    def part(x: Any) -> Any:
        calls.append(1)
        return x.sin().exp()

    y = _checkpoint(lib)(part, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, len(calls)


@program
def nothing_is_recorded_under_no_grad(lib: Any) -> Any:
    with lib.no_grad():
        return _checkpoint(lib)(lambda x: x.sin(), leaf(lib, [0.5]), use_reentrant=False)


@program
def reentrance_under_grad(lib: Any) -> Any:
    x = leaf(lib, [0.5])
    y = _checkpoint(lib)(lambda x: x.sin(), x, use_reentrant=True)
    return lib.autograd.grad(y.sum(), x)


@program
def several_results_and_other_arguments(lib: Any) -> Any:
    x, y = leaf(lib, [0.5, 1.0]), leaf(lib, [2.0, 3.0])
    a, b = _checkpoint(lib)(lambda x, k, y: (x * y * k, (x - y).exp()), x, 2.0, y, use_reentrant=False)
    (a.sum() * b.sum()).backward()
    return x.grad, y.grad


@program
def only_the_parameters_are_tracked(lib: Any) -> Any:
    w = leaf(lib, [2.0])
    x = lib.tensor([3.0], dtype=lib.float64)
    y = _checkpoint(lib)(lambda x: (x * w).exp() * w, x, use_reentrant=False)
    y.backward()
    return w.grad


@program
def a_part_that_is_not_deterministic(lib: Any) -> Any:
    calls: list[int] = []

    def part(x: Any) -> Any:
        calls.append(1)
        return x * x * x if len(calls) == 1 else x.exp()

    x = leaf(lib, [1.0])
    try:
        _checkpoint(lib)(part, x, use_reentrant=False).backward()
    except lib.utils.checkpoint.CheckpointError:
        return "refused"


@program
def shapes_that_differ_the_second_time(lib: Any) -> Any:
    calls: list[int] = []

    def part(x: Any) -> Any:
        calls.append(1)
        return (x[:1] if len(calls) > 1 else x).exp().sum()

    try:
        _checkpoint(lib)(part, leaf(lib, [1.0, 2.0]), use_reentrant=False).backward()
    except lib.utils.checkpoint.CheckpointError:
        return "refused"


@program
def a_part_that_raises_when_it_runs_again(lib: Any) -> Any:
    calls: list[int] = []

    def part(x: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise ArithmeticError
        return x.exp()

    _checkpoint(lib)(part, leaf(lib, [1.0]), use_reentrant=False).backward()


@program
def unknown_keywords_with_reentrance(lib: Any) -> Any:
    return _checkpoint(lib)(lambda x: x, leaf(lib, [1.0]), use_reentrant=True, scale=2.0)


@program
def a_sequence(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    x = leaf(lib, [0.5, 1.0])
    y = lib.utils.checkpoint.checkpoint_sequential([lib.sin, lib.exp, lib.cos, lib.tanh], 2, x, use_reentrant=False)
    y.sum().backward()
    return y, x.grad


# The kind with reentrance ---------------------------------------------------------------------------------------------


@program
def reentrance_takes_no_context(lib: Any) -> Any:
    return _checkpoint(lib)(lib.sin, leaf(lib, [1.0]), use_reentrant=True, context_fn=lambda: (None, None))


@program
def reentrance_takes_no_debug(lib: Any) -> Any:
    return _checkpoint(lib)(lib.sin, leaf(lib, [1.0]), use_reentrant=True, debug=True)


@program
def reentrance_follows_no_tensor_in_a_list(lib: Any) -> Any:
    a, b = leaf(lib, [2.0]), leaf(lib, [3.0])
    _checkpoint(lib)(lambda a, bs: a * bs[0], a, [b], use_reentrant=True).backward()
    return a.grad, b.grad


@program
def reentrance_with_inputs_to_backward(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    _checkpoint(lib)(lib.sin, x, use_reentrant=True).backward(inputs=[x])


@program
def reentrance_without_a_result_that_requires_grad(lib: Any) -> Any:
    _checkpoint(lib)(lambda x: x.sin().detach(), leaf(lib, [1.0]), use_reentrant=True).backward()


@program
def reentrance_twice_without_retaining(lib: Any) -> Any:
    y = _checkpoint(lib)(lib.sin, leaf(lib, [1.0]), use_reentrant=True)
    y.backward()
    y.backward()


@program
def reentrance_twice(lib: Any) -> Any:
    x, calls = leaf(lib, [1.0]), []
    y = _checkpoint(lib)(lambda x: (calls.append(1), x.sin())[1], x, use_reentrant=True)
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, len(calls)


@program
def reentrance_with_other_results_and_arguments(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y, k, none = _checkpoint(lib)(lambda x, n, m: (x.sin(), n, m), x, 3, None, use_reentrant=True)
    y.backward()
    return x.grad, k, none


@program
def the_mode_in_a_part_with_reentrance(lib: Any) -> Any:
    x, seen = leaf(lib, [1.0]), []
    _checkpoint(lib)(lambda x: (seen.append(lib.is_grad_enabled()), x.sin())[1], x, use_reentrant=True).backward()
    return seen


@program
def a_part_with_reentrance_in_one_without(lib: Any) -> Any:
    c, x, log = _checkpoint(lib), leaf(lib, [0.3, 0.4]), []

    def inner(x: Any) -> Any:
        log.append("inner")
        return x.sin().exp()

    def outer(x: Any) -> Any:
        log.append("outer")
        return c(inner, x, use_reentrant=True).sin()

    c(outer, x, use_reentrant=False).sum().backward()
    return x.grad, log


@program
def a_part_without_reentrance_in_one_with(lib: Any) -> Any:
    c, x, log = _checkpoint(lib), leaf(lib, [0.3, 0.4]), []

    def inner(x: Any) -> Any:
        log.append("inner")
        return x.sin().exp()

    def outer(x: Any) -> Any:
        log.append("outer")
        return c(inner, x, use_reentrant=False).sin()

    c(outer, x, use_reentrant=True).sum().backward()
    return x.grad, log


# How often a part runs, and what it may do ----------------------------------------------------------------------------


@program
def which_parts_run_again_when_they_nest(lib: Any) -> Any:
    c, log, x = _checkpoint(lib), [], leaf(lib, [0.3, 0.4])

    def f(x: Any) -> Any:
        log.append("f")
        return x.sin().exp()

    def g(x: Any) -> Any:
        log.append("g")
        return c(f, c(f, x, use_reentrant=False).cos(), use_reentrant=False).sin()

    def h(x: Any) -> Any:
        log.append("h")
        return c(g, x, use_reentrant=False) + c(g, x, use_reentrant=False)

    c(h, x, use_reentrant=False).sum().backward()
    return x.grad, log


@program
def early_stop_by_argument_and_for_all(lib: Any) -> Any:
    c, found = _checkpoint(lib), []
    for for_all in (True, False):
        for argument in (True, False):
            calls: list[int] = []

            def part(x: Any, calls: list[int] = calls) -> Any:
                y = x.sin()
                calls.append(1)
                z = y.exp()
                calls.append(2)
                return z

            with lib.utils.checkpoint.set_checkpoint_early_stop(for_all):
                y = c(part, leaf(lib, [0.3]), use_reentrant=False, early_stop=argument)
            y.backward()
            found.append(len(calls))
    return found


@program
def two_results_one_after_the_other(lib: Any) -> Any:
    calls, x = [], leaf(lib, [0.3])
    a, b = _checkpoint(lib)(lambda x: (calls.append(1), x.sin(), x.exp())[1:], x, use_reentrant=False)
    a.backward(retain_graph=True)
    b.backward()
    return x.grad, len(calls)


@program
def two_results_in_one_group(lib: Any) -> Any:
    calls, x = [], leaf(lib, [0.3])
    a, b = _checkpoint(lib)(lambda x: (calls.append(1), x.sin(), x.exp())[1:], x, use_reentrant=False, early_stop=False)
    with lib.utils.checkpoint.GraphExecGroup():
        a.backward(retain_graph=True)
        b.backward()
    return x.grad, len(calls)


@program
def groups_do_not_nest(lib: Any) -> Any:
    group = lib.utils.checkpoint.GraphExecGroup
    with group(), group():
        pass


@program
def what_is_saved_can_be_read_once_in_a_pass(lib: Any) -> Any:
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(lib, [0.3])
    try:
        _checkpoint(lib)(lambda x: Square.apply(x.sin()), x, use_reentrant=False).backward()
    except lib.utils.checkpoint.CheckpointError:
        return "refused"


@program
def writes_in_a_part(lib: Any) -> Any:
    def part(x: Any) -> Any:
        y = x.sin()
        y.mul_(x)
        y.exp_()
        return y * y

    x = leaf(lib, [0.3])
    _checkpoint(lib)(part, x, use_reentrant=False).backward()
    return x.grad


@program
def an_argument_that_is_written_to_later(lib: Any) -> Any:
    x = leaf(lib, [0.3])
    y = x * 1
    z = _checkpoint(lib)(lib.sin, y, use_reentrant=False)
    y.mul_(2.0)
    z.backward()


@program
def more_is_saved_the_second_time(lib: Any) -> Any:
    calls: list[int] = []

    def part(x: Any) -> Any:
        calls.append(1)
        return x.sin().exp() if len(calls) > 1 else x.sin()

    x = leaf(lib, [1.0])
    y = _checkpoint(lib)(part, x, use_reentrant=False)
    y.backward()  # it had all it needed by then
    calls.clear()
    y = _checkpoint(lib)(part, x, use_reentrant=False, early_stop=False)
    try:
        y.backward()
    except lib.utils.checkpoint.CheckpointError:
        return "refused", x.grad


@program
def less_is_saved_the_second_time(lib: Any) -> Any:
    calls: list[int] = []

    def part(x: Any) -> Any:
        calls.append(1)
        return x.sin() if len(calls) > 1 else x.sin().exp()

    try:
        _checkpoint(lib)(part, leaf(lib, [1.0]), use_reentrant=False).backward()
    except lib.utils.checkpoint.CheckpointError:
        return "refused"


@program
def an_error_in_the_first_run_leaves_nothing_behind(lib: Any) -> Any:
    def part(x: Any) -> Any:
        raise ArithmeticError

    x = leaf(lib, [1.0])
    try:
        _checkpoint(lib)(part, x, use_reentrant=False)
    except ArithmeticError:
        x.sin().backward()
    return x.grad


@program
def a_hook_in_a_part_fires_once(lib: Any) -> Any:
    log, x = [], leaf(lib, [0.3])

    def part(x: Any) -> Any:
        y = x.sin()
        y.register_hook(lambda g: log.append("hook"))
        return y.exp()

    _checkpoint(lib)(part, x, use_reentrant=False).backward()
    return log, x.grad


@program
def segments_of_a_sequence(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    found: list[Any] = []
    for segments in range(7):
        log: list[int] = []
        steps = [lambda x, i=i, log=log: (log.append(i), x.sin())[1] for i in range(5)]
        x = leaf(lib, [1.0])
        try:
            lib.utils.checkpoint.checkpoint_sequential(steps, segments, x, use_reentrant=False).backward()
            found.append((list(log), x.grad))
        except Exception as error:
            found.append(type(error).__name__)
    return found


@program
def variables_without_their_graph(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    x = leaf(lib, [1.0])
    detach = lib.utils.checkpoint.detach_variable
    try:
        detach([x])
    except RuntimeError:
        return [(t, t.is_leaf) for t in detach((x, x * 2, lib.ones(1)))]


# Backward passes inside of parts --------------------------------------------------------------------------------------


class Kit:
    """Parts and gradients of functions, to be put into each other; `log` tells which part ran."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.log = lib, []

    def part(self, f: Any, name: str = "") -> Any:
        """A function as a part."""
        return lambda x: _checkpoint(self.lib)(lambda a: (self.log.append(name), f(a))[1], x, use_reentrant=False)

    def gradient(self, f: Any) -> Any:
        """The gradient of the sum of a function's elements, recorded."""

        def of(x: Any) -> Any:
            with self.lib.enable_grad():
                return self.lib.autograd.grad(f(x).sum(), x, create_graph=True)[0]

        return of


def plainly(x: Any) -> Any:
    return x.sin().exp().sin()


NESTED: dict[str, Any] = {
    "part_of_a_gradient": lambda k: k.part(k.gradient(plainly)),
    "gradient_of_a_part": lambda k: k.gradient(k.part(plainly)),
    "part_of_a_gradient_of_a_part": lambda k: k.part(k.gradient(k.part(plainly, "in")), "out"),
    "part_of_a_part_of_a_gradient": lambda k: k.part(k.part(k.gradient(plainly), "in"), "out"),
    "gradient_of_a_part_of_a_gradient": lambda k: k.gradient(k.part(k.gradient(plainly))),
    "part_of_two_gradients": lambda k: k.part(k.gradient(k.gradient(plainly))),
    "all_by_turns": lambda k: k.part(k.gradient(k.part(k.gradient(plainly), "in")), "out"),
    "gradient_of_two_parts": lambda k: k.gradient(k.part(k.part(plainly, "in"), "out")),
}


def _nested(lib: Any, name: str, early_stop: bool) -> Any:
    kit, x = Kit(lib), leaf(lib, [0.3, 0.4])
    build = NESTED[name](kit)
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    with lib.utils.checkpoint.set_checkpoint_early_stop(early_stop):
        y = build(x)
    y.sum().backward()
    return y, x.grad, kit.log


for _name in NESTED:
    for _early_stop in (True, False):

        def _program(lib: Any, name: str = _name, early_stop: bool = _early_stop) -> Any:
            return _nested(lib, name, early_stop)

        _program.__name__ = f"{_name}_{'early_stop' if _early_stop else 'to_the_end'}"
        program(_program)


# Graphs, hooks, saved values ------------------------------------------------------------------------------------------


class Witness:
    """Something that can be seen to die."""


@program
def a_graph_that_was_kept_dies_by_reference_count(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    found = []
    gc.disable()
    try:
        for early_stop in (True, False):
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
    return found


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


# Which operations are kept --------------------------------------------------------------------------------------------

MATRIX = [[0.1, 0.2], [0.3, 0.4]]


def _operations(lib: Any, *names: str) -> list[Any]:
    if lib is pullback:
        return [getattr(lib, {"mm": "matmul"}.get(n, n)) for n in names]
    return [getattr(lib.ops.aten, n).default for n in names]


def _is_product(op: Any) -> bool:
    return op is pullback.matmul or str(op) == "aten.mm.default"


def _selective(lib: Any, policy: Any, part: Any = None, **how: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    make = lib.utils.checkpoint.create_selective_checkpoint_contexts
    x, w = leaf(lib, MATRIX), leaf(lib, MATRIX)
    part = part or (lambda x, w: lib.mm(lib.mm(x, w).sin(), w).exp().sum())
    y = _checkpoint(lib)(part, x, w, use_reentrant=False, context_fn=lambda: make(policy, **how))
    y.backward()
    return y, x.grad, w.grad


@program
def kept_by_a_list(lib: Any) -> Any:
    return _selective(lib, _operations(lib, "mm"))


@program
def kept_by_a_longer_list(lib: Any) -> Any:
    return _selective(lib, _operations(lib, "mm", "sin", "exp"))


@program
def kept_by_a_policy(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    policies = lib.utils.checkpoint.CheckpointPolicy
    found = []
    for keep in ("MUST_SAVE", "PREFER_SAVE"):
        for rest in ("MUST_RECOMPUTE", "PREFER_RECOMPUTE"):
            wanted = {True: policies[keep], False: policies[rest]}
            found.append(_selective(lib, lambda ctx, op, *args, wanted=wanted, **kwargs: wanted[_is_product(op)]))
    return found


@program
def kept_by_a_bool(lib: Any) -> Any:
    return _selective(lib, lambda ctx, op, *args, **kwargs: _is_product(op))


@program
def what_a_policy_is_told_the_first_time(lib: Any) -> Any:
    seen: list[Any] = []
    watched = {op: i for i, op in enumerate(_operations(lib, "mm", "sin", "exp"))}

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        if op in watched and not ctx.is_recompute:
            seen.append((watched[op], len(args)))
        return _is_product(op)

    return _selective(lib, policy), seen


@program
def a_policy_is_asked_when_the_part_runs_first(lib: Any) -> Any:
    """What it said then holds, also if it would say something else later."""
    asked: list[Any] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        asked.append(ctx.is_recompute)
        return len(asked) == 2

    return _selective(lib, policy, lambda x, w: x.sin().sin().sin().sum()), asked


@program
def the_part_sees_constants_as_they_are_and_saves_them(lib: Any) -> Any:
    x, constant = leaf(lib, [1.0, 2.0]), lib.ones(2, dtype=lib.float64)
    seen: list[bool] = []

    class Same(lib.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, c: Any) -> Any:
            ctx.save_for_backward(c)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(ctx.saved_tensors[0] is constant)
            return g, None

    def part(x: Any, c: Any) -> Any:
        seen.append(c is constant)
        return Same.apply(x, c)

    _checkpoint(lib)(part, x, constant, use_reentrant=False).sum().backward()
    return x.grad, seen


@program
def a_kept_result_that_is_written_to(lib: Any) -> Any:
    return _selective(lib, _operations(lib, "mm"), lambda x, w: lib.mm(x, w).mul_(2).sin().sum())


@program
def a_kept_result_that_may_be_written_to(lib: Any) -> Any:
    part = lambda x, w: lib.mm(x, w).mul_(2).sin().sum()  # noqa: E731
    return _selective(lib, _operations(lib, "mm"), part, allow_cache_entry_mutation=True)


@program
def views_of_a_kept_result(lib: Any) -> Any:
    return _selective(lib, _operations(lib, "mm"), lambda x, w: lib.mm(x, w).t().reshape(4)[1:].sin().sum())


@program
def a_function_of_a_kept_result(lib: Any) -> Any:
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    return _selective(lib, _operations(lib, "mm"), lambda x, w: Square.apply(lib.mm(x, w)).exp().sum())


@program
def several_kept_results(lib: Any) -> Any:
    ops = [lib.sort if lib is pullback else lib.ops.aten.sort.default]
    return _selective(lib, ops, lambda x, w: lib.mm(x, w).sort(0)[0].sin().sum())


@program
def a_part_in_a_selective_one(lib: Any) -> Any:
    def part(x: Any, w: Any) -> Any:
        return _checkpoint(lib)(lambda x: lib.mm(x, w).sin(), x, use_reentrant=False).exp().sum()

    return _selective(lib, _operations(lib, "mm"), part)


@program
def a_list_of_something_else(lib: Any) -> Any:
    return _selective(lib, [3])


@program
def a_policy_that_is_none(lib: Any) -> Any:
    return _selective(lib, 3)


@program
def the_policies(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    return [policy.name for policy in lib.utils.checkpoint.CheckpointPolicy]


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_as_in_torch(program: Program) -> None:
    ours, theirs = outcomes(program)
    assert ours == theirs


@pytest.mark.parametrize("reentrant", [True, False])
def test_random_numbers_are_the_same_again(reentrant: bool) -> None:
    pullback.manual_seed(1)
    x = pullback.ones(20, requires_grad=True)
    y = checkpoint(lambda x: x * x * pullback.rand(20), x, use_reentrant=reentrant)
    after = pullback.rand(3)
    y.sum().backward()
    assert x.grad is not None
    assert pullback.allclose(x.grad, 2 * y.detach())
    pullback.manual_seed(1)
    pullback.rand(20)
    assert pullback.equal(pullback.rand(3), after)


def test_random_numbers_may_be_others() -> None:
    pullback.manual_seed(1)
    x = pullback.ones(20, requires_grad=True)
    y = checkpoint(lambda x: x * x * pullback.rand(20), x, preserve_rng_state=False)
    y.sum().backward()
    assert x.grad is not None
    assert not pullback.allclose(x.grad, 2 * y.detach())


def test_nothing_is_kept_but_the_arguments() -> None:
    inner: list[Any] = []

    def part(x: Any) -> Any:
        y = x.exp()
        inner.append(weakref.ref(y))
        return y.sin()

    gc.disable()
    try:
        x = pullback.ones(3, requires_grad=True)
        y = checkpoint(part, x)
        assert inner[0]() is None
        node = weakref.ref(y.grad_fn)
        y.sum().backward()
        assert inner[1]() is None
        del y
        assert node() is None
    finally:
        gc.enable()


def test_early_stop_can_be_set_for_all() -> None:
    def ran(enable: bool) -> bool:
        calls: list[int] = []

        def part(x: Any) -> Any:
            y = x.exp()
            calls.append(1)
            return y

        with set_checkpoint_early_stop(enable):
            checkpoint(part, pullback.ones(1, requires_grad=True)).backward()
        return len(calls) == 2

    assert ran(False)
    assert not ran(True)


def test_what_is_recomputed_is_checked_unless_told_otherwise() -> None:
    def wrong() -> Any:
        calls: list[int] = []

        def part(x: Any) -> Any:
            calls.append(1)
            return (x.float() if len(calls) > 1 else x).exp().sum()

        return part

    x = pullback.ones(2, dtype=pullback.float64, requires_grad=True)
    with pytest.raises(CheckpointError, match=r"float64 of shape \[2\], and is pullback.float32"):
        checkpoint(wrong(), x).backward()
    checkpoint(wrong(), x, determinism_check="none").backward()
    with pytest.raises(ValueError, match="'default' or 'none'"):
        checkpoint(wrong(), x, determinism_check="all")


@pytest.mark.torch
@pytest.mark.parametrize("lib", ["pullback", "torch"])
def test_what_is_wrong_with_a_part_is_said_in_the_same_words(lib: Any) -> None:
    lib = pytest.importorskip(lib)
    run = _checkpoint(lib)
    x = leaf(lib, [0.5])

    def changing(*parts: Any) -> Any:
        each = iter(parts)
        return lambda x: next(each)(x)

    with pytest.raises(RuntimeError, match="A different number of tensors was saved"):
        run(changing(lambda x: x.sin().exp().sin(), lambda x: x.sin().exp()), x, use_reentrant=False).backward()
    with (
        lib.utils.checkpoint.set_checkpoint_early_stop(False),
        pytest.raises(RuntimeError, match="trying to save more tensors during recomputation"),
    ):
        run(changing(lambda x: x.sin().exp(), lambda x: x.sin().exp().sin()), x, use_reentrant=False).backward()
    wider = changing(lambda x: x.sin().exp(), lambda x: x.sin() * lib.ones(2, dtype=lib.float64))
    with pytest.raises(RuntimeError, match="Recomputed values for the following tensors have different metadata"):
        run(wider, x, use_reentrant=False).backward()
    y = run(lambda x: x.sin().cos(), x, use_reentrant=False)
    with lib.utils.checkpoint.GraphExecGroup():
        y.sum().backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="Performing two backward calls that overlap"):
            y.sum().backward()


def test_contexts_of_the_first_and_of_the_second_run() -> None:
    log: list[str] = []

    class Noted:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            log.append(self.name)

        def __exit__(self, *exc: object) -> None:
            log.append(f"end of {self.name}")

    x = pullback.ones(1, requires_grad=True)
    checkpoint(lambda x: x.exp(), x, context_fn=lambda: (Noted("first"), Noted("again"))).backward()
    assert log == ["first", "end of first", "again", "end of again"]


def test_a_sequence_of_modules() -> None:
    net = pullback.nn.Sequential(pullback.nn.Identity(), pullback.nn.Identity())
    x = pullback.ones(2, requires_grad=True)
    assert pullback.equal(checkpoint_sequential(net, 2, x), x)
    with pytest.raises(ValueError, match="Unexpected"):
        checkpoint_sequential(net, 2, x, scale=3)


def test_what_is_kept_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    op = pullback.ops.TABLE["_mm"]
    product = op.forward
    monkeypatch.setattr(op, "forward", lambda *args: (calls.append(1), product(*args))[1])

    def products_in_backward(kept: list[Any]) -> int:
        x, w = leaf(pullback, MATRIX), leaf(pullback, MATRIX)
        y = checkpoint(
            lambda x, w: ((x @ w).sin() @ w).exp().sum(),
            x,
            w,
            context_fn=lambda: create_selective_checkpoint_contexts(kept),
        )
        calls.clear()
        y.backward()
        return len(calls)

    assert products_in_backward([pullback.sin]) - products_in_backward([pullback.matmul]) == 2


def test_a_selective_part_may_be_differentiated_again_and_again() -> None:
    """torch allows one backward pass through it."""
    x, w = leaf(pullback, MATRIX), leaf(pullback, MATRIX)
    y = checkpoint(
        lambda x, w: (x @ w).sin().sum(),
        x,
        w,
        context_fn=lambda: create_selective_checkpoint_contexts([pullback.matmul]),
    )
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    assert x.grad is not None
    (g,) = pullback.autograd.grad(y, x, create_graph=True)
    assert pullback.allclose(x.grad, 2 * g)
    expected = pullback.autograd.grad((x @ w).sin().sum(), x, create_graph=True)[0]
    assert pullback.allclose(pullback.autograd.grad(g.sum(), w)[0], pullback.autograd.grad(expected.sum(), w)[0])


def test_a_composite_is_kept_with_all_that_it_is_made_of() -> None:
    asked: list[Any] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        asked.append((op.__name__, ctx.is_recompute))
        return op is pullback.matmul

    x, w = leaf(pullback, MATRIX), leaf(pullback, MATRIX)
    y = checkpoint(
        lambda x, w: (x @ w).sin().sum(), x, w, context_fn=lambda: create_selective_checkpoint_contexts(policy)
    )
    y.backward()
    assert [name for name, again in asked if not again] == ["matmul", "sin", "sum"]
    with pytest.raises(ValueError, match="do not join"):
        create_selective_checkpoint_contexts([pullback.cat])


def test_within_a_transform_a_part_is_just_called() -> None:
    """torch refuses checkpoint() inside of grad(), because of its hooks on what is saved."""
    x = leaf(pullback, [0.5, 1.0])
    expected = (x.cos() * x.sin().exp()).detach()

    def part(a: Any) -> Any:
        return checkpoint(lambda a: a.sin().exp(), a)

    each = pullback.vmap(pullback.func.grad(part))(x.detach())
    assert pullback.allclose(each, expected)
    assert pullback.allclose(pullback.func.grad(lambda a: part(a).sum())(x.detach()), expected)
    assert pullback.allclose(pullback.func.jvp(part, (x.detach(),), (pullback.ones_like(x),))[1], expected)


def test_debug_for_all_parts() -> None:
    x = leaf(pullback, [1.0])
    with set_checkpoint_debug_enabled(True):
        assert checkpoint(pullback.sin, x).requires_grad
        with pytest.raises(ValueError, match="debug"):
            checkpoint(pullback.sin, x, use_reentrant=True)
    with pytest.warns(UserWarning, match="None of the inputs"):
        checkpoint(pullback.sin, pullback.ones(1), use_reentrant=True)


def test_transforms_in_parts() -> None:
    """Tensors of a transform that ends in the part are not computed again for its own backward pass."""
    x = leaf(pullback, MATRIX)

    def part(a: Any) -> Any:
        return pullback.vmap(pullback.func.grad(lambda r: (r.exp() @ r).sum()))(a).sin()

    (expected,) = pullback.autograd.grad(part(x).sum(), x)
    plain = checkpoint(part, x)
    selective = checkpoint(part, x, context_fn=lambda: create_selective_checkpoint_contexts([pullback.exp]))
    for y in (plain, selective):
        assert pullback.allclose(pullback.autograd.grad(y.sum(), x)[0], expected)


def test_what_selective_parts_write_to() -> None:
    """Running statistics, views and tensors made in the part."""
    norm, x = pullback.nn.BatchNorm1d(2).double(), leaf(pullback, MATRIX)

    def part(a: Any) -> Any:
        made = pullback.zeros(2, 2, dtype=pullback.float64)
        made.add_(a @ a)
        made[0] = (a @ a)[1]
        made[:1].mul_(2)
        return norm(made.exp()) * a

    y = checkpoint(part, x, context_fn=lambda: create_selective_checkpoint_contexts([pullback.matmul, pullback.exp]))
    assert norm.num_batches_tracked == 1
    (found,) = pullback.autograd.grad(y.sum(), x)
    assert norm.num_batches_tracked == 2
    assert pullback.allclose(found, pullback.autograd.grad(part(x).sum(), x)[0])


def test_selective_parts_die_by_reference_count() -> None:
    gc.disable()
    try:
        for backward in (True, False):
            x = leaf(pullback, MATRIX)
            y = checkpoint(
                lambda a: (a @ a).exp(),
                x,
                context_fn=lambda: create_selective_checkpoint_contexts([pullback.exp, pullback.matmul]),
            )
            node = weakref.ref(y.grad_fn)
            if backward:
                y.sum().backward()
            del y
            assert node() is None
    finally:
        gc.enable()


def test_what_is_set_for_all_parts_is_set_for_one_thread() -> None:
    found: list[Any] = []
    x = leaf(pullback, [1.0])

    def other() -> None:
        with pullback.utils.checkpoint.GraphExecGroup():  # not nested in the other thread's
            found.append(checkpoint(lambda x: x.exp(), x, use_reentrant=False).tolist())
        found.append(checkpoint(lambda x: x * 2, x, use_reentrant=True).tolist())  # which debug does not go with

    with pullback.utils.checkpoint.GraphExecGroup(), pullback.utils.checkpoint.set_checkpoint_debug_enabled(True):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == [x.exp().tolist(), [2.0]]
