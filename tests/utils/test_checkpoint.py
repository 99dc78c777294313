"""Checkpointing: the same gradients, nothing kept, and the part run again as often as PyTorch runs it."""

from __future__ import annotations

import gc
import threading
import weakref
from functools import partial
from typing import Any

import pytest

import pullback
from pullback.utils.checkpoint import (
    CheckpointError,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)
from tests.programs.checkpoint.common import _checkpoint
from tests.programs.checkpoint.selective import MATRIX
from tests.side_by_side import leaf

checkpoint = partial(pullback.utils.checkpoint.checkpoint, use_reentrant=False)
checkpoint_sequential = partial(pullback.utils.checkpoint.checkpoint_sequential, use_reentrant=False)


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
    with pytest.raises(ValueError, match=r"one of \['default', 'none'\]"):
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
    with pytest.raises(ValueError, match="does not join"):
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


def _mark_the_first(x: Any) -> Any:
    return x.exp() * x


def _mark_the_second(x: Any) -> Any:
    return pullback.cat([x, x]).sin()


def test_debug_lists_the_operations_of_both_runs_with_their_lines() -> None:
    calls: list[int] = []

    def part(x: Any) -> Any:
        calls.append(1)
        return _mark_the_first(x) if len(calls) == 1 else _mark_the_second(x)

    y = checkpoint(part, leaf(pullback, [1.0, 2.0]), debug=True)
    with pytest.raises(CheckpointError) as caught:
        y.sum().backward()
    said = str(caught.value)
    assert type(caught.value.__cause__) is CheckpointError
    assert str(caught.value.__cause__) in said
    traces, _, logs = said.partition("3. Log of operators")
    first, _, again = traces.partition("2. Stack traces")
    assert ":_mark_the_first\n" in first
    assert ":_mark_the_second\n" not in first
    assert ":_mark_the_second\n" in again
    assert "exp(float64[2])   (1 of 2)" in first
    assert "cat([float64[2], float64[2]], 0)   (1 of " in again
    lines = [line.strip() for line in logs.splitlines() if line.startswith("  ")]
    assert lines[:3] == ["exp(float64[2])", "mul(float64[2], float64[2])", "cat([float64[2], float64[2]], 0)"]


def test_reentrance_without_an_input_that_requires_grad() -> None:
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


@pytest.mark.parametrize("momentum", [None, 0.1])
def test_a_norm_that_ends_a_part_counts_its_batches_as_often_as_it_moves(momentum: Any) -> None:
    norm = pullback.nn.BatchNorm1d(2, momentum=momentum)
    plain = pullback.nn.BatchNorm1d(2, momentum=momentum)
    for k in (1.0, 2.0):
        x = pullback.arange(6.0).reshape(3, 2) * k
        checkpoint(norm, x.requires_grad_(), use_reentrant=False).pow(2).sum().backward()
        plain(x), plain(x)
    assert (norm.num_batches_tracked, plain.num_batches_tracked) == (4, 4)
    assert pullback.allclose(norm.running_mean, plain.running_mean)
    assert pullback.allclose(norm.running_var, plain.running_var)


def test_a_batch_that_is_refused_is_not_counted() -> None:
    norm = pullback.nn.BatchNorm1d(2)
    with pytest.raises(ValueError, match="expected more than 1 value per channel"):
        norm(pullback.ones(1, 2))
    assert norm.num_batches_tracked == 0
