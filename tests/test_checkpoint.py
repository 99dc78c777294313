"""Checkpointing: the same gradients, nothing kept, and the part run again as often as PyTorch runs it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from side_by_side import Program, leaf, name_of, outcomes, programs

import pullback
from pullback.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop

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
