"""The order of nodes, on which the engine rests: every node is newer than those its gradients go to."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import pullback


class Twice(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def _write(x: Any) -> Any:
    y = pullback.zeros(3)
    y[:2] = x[:2]
    return y


FIRST_USES: dict[str, Callable[[Any], Any]] = {
    "two operands": lambda x: x * x,
    "a number": lambda x: 2 - x,
    "one operand": lambda x: x.exp(),
    "other dtypes": lambda x: x * pullback.ones(3, dtype=pullback.float64),
    "a reduction": lambda x: x.sum(),
    "a view": lambda x: x[1:],
    "joining": lambda x: pullback.cat([x, x]),
    "a product": lambda x: x @ x,
    "a Function": Twice.apply,
    "a write": _write,
}


@pytest.mark.parametrize("name", FIRST_USES)
def test_a_node_is_newer_than_what_it_sends_gradients_to(name: str) -> None:
    x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    stack = [FIRST_USES[name](x).grad_fn]
    leaves = 0
    while stack:
        node = stack.pop()
        for following, _ in node.next_functions:
            if following is not None:
                leaf = following.name() == "AccumulateGrad"  # torch gives it the largest number, too
                assert leaf or following._sequence_nr() < node._sequence_nr()
                stack.append(following)
                leaves += leaf
    assert leaves


@pytest.mark.parametrize("name", FIRST_USES)
def test_the_gradient_of_a_first_use_is_found_and_hooks_see_it_once(name: str) -> None:
    x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    seen: list[Any] = []
    x.register_hook(seen.append)
    (g,) = pullback.autograd.grad(FIRST_USES[name](x).sum() + FIRST_USES[name](x).sum(), x)
    assert len(seen) == 1
    assert seen[0].tolist() == g.tolist()


def test_a_leaf_used_again_further_on_gets_both_gradients() -> None:
    x = pullback.tensor(3.0, requires_grad=True)
    y = x * 2
    assert pullback.autograd.grad(y * x, x)[0].item() == 12


@pytest.mark.slow
def test_a_chain_of_a_million_nodes() -> None:
    x, c = pullback.ones(3, requires_grad=True), pullback.ones(3)
    y = x
    for _ in range(1_000_000):
        y = y * c
    last = weakref.ref(y.grad_fn)
    y.backward(c)
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    gc.disable()
    try:
        del y
        assert last() is None  # by reference counts alone, and without recursion
    finally:
        gc.enable()


def test_a_hook_that_comes_while_a_gradient_waits_is_called() -> None:
    x = pullback.tensor([1.0], requires_grad=True)
    seen: list[Any] = []
    early, late = x * 2, x * 3

    def note(t: Any) -> None:
        seen.append(t.grad.tolist())

    def register(*_: Any) -> None:
        x.register_post_accumulate_grad_hook(note)

    early.grad_fn.register_hook(register)
    (early + late).backward()
    assert seen == [[5.0]]


def test_a_pass_that_fails_has_added_to_no_gradient() -> None:
    x, y = (pullback.tensor([1.0], requires_grad=True) for _ in range(2))
    early = x * 2
    late = y * 3

    def fail(*_: Any) -> None:
        raise ValueError("planted")

    early.grad_fn.register_prehook(fail)
    with pytest.raises(ValueError, match="planted"):
        (early + late).backward()
    assert x.grad is y.grad is None
