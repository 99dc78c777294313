"""A part that is run again: how often, and what it may do."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.programs.checkpoint.common import _checkpoint
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


def _part(lib: Any, calls: list[int], w: Any) -> Any:
    def part(x: Any, scale: float = 1.0) -> Any:
        calls.append(1)
        return (x @ w).tanh() * scale

    return part


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
