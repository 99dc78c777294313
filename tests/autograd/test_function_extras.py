"""What a Function has besides forward and backward: marks in all combinations, `jvp`, `vmap`, deprecated names.

The programs run in PyTorch, too, and have to come to the same. The rest of the contract is in test_function.py.
"""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import Function, Variable
from tests.programs.function.extras import of_jvp, separate
from tests.side_by_side import constant, function, leaf

# vmap -----------------------------------------------------------------------------------------------------------------


def test_a_vmap_of_ones_own_has_the_batch_in_front() -> None:
    seen = []

    def vmap(info: Any, in_dims: Any, x: Any, n: Any) -> Any:
        seen.append((in_dims, list(x.shape)))
        return x * n, 0

    F = separate(pullback, lambda x, n: x * n, lambda ctx, inputs, output: None, lambda ctx, g: (g, None), vmap=vmap)
    y = pullback.func.vmap(F.apply, in_dims=(1, None), out_dims=1)(constant(pullback, [[1.0, 2.0, 3.0]]), 2)
    assert (seen, y.tolist()) == ([((0, None), [3, 1])], [[2.0, 4.0, 6.0]])


def test_a_generated_vmap_may_write_in_place() -> None:
    def forward(x: Any) -> Any:
        return x.mul_(2)

    F = separate(
        pullback,
        forward,
        lambda ctx, inputs, output: ctx.mark_dirty(inputs[0]),
        lambda ctx, g: g * 2,
        generate_vmap_rule=True,
    )
    x = leaf(pullback, [1.0, 2.0])
    y = pullback.func.vmap(lambda t: F.apply(t * 1))(x)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([2.0, 4.0], [2.0, 2.0])


# deprecated names -----------------------------------------------------------------------------------------------------


def test_a_tangent_that_is_left_out_is_none() -> None:
    found = of_jvp(pullback, lambda ctx, dx, dy, n: (dx * 2, None), lambda x, y: (x * y, x * 3))
    assert (found[0].tolist(), found[1]) == ([[2.0, 8.0]], None)


# with no counterpart --------------------------------------------------------------------------------------------------


def test_a_function_and_its_contexts_do_not_pickle_but_the_class_does() -> None:
    x = leaf(pullback, [1.0])
    y = Kept.apply(x)
    assert pickle.loads(pickle.dumps(Kept)) is Kept
    with pytest.raises(TypeError, match="'KeptBackward', a node of the graph"):
        pickle.dumps(y.grad_fn)


class Kept(Function):
    """Keeps its output as an attribute: a cycle, which is the users' own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.out = x * 2
        return ctx.out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_a_context_that_stashes_itself_is_collected() -> None:
    contexts: list[Any] = []

    class Stashes(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.own = ctx
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            contexts.append(ctx.own is ctx)
            return g * 2

    x = leaf(pullback, [1.0])
    y = Stashes.apply(x)
    y.backward()
    node, out = weakref.ref(y.grad_fn), weakref.ref(y)
    del y
    assert out() is None
    gc.collect()
    assert (node(), contexts, x.grad.item()) == (None, [True], 2.0)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("forward", "says"),
    [
        (lambda ctx, x: x.view_as(x), "This view was created inside a custom Function"),
        (lambda ctx, x: (x.view_as(x), x * 2), "is the output of a function that returns multiple views"),
    ],
    ids=["one", "two"],
)
def test_the_refusal_of_a_write_to_an_output_says_what_torchs_does(forward: Any, says: str) -> None:
    for lib in (pullback, pytest.importorskip("torch")):
        out = function(lib, forward, lambda ctx, *g: sum(g)).apply(leaf(lib, [1.0, 2.0]).clone())
        with pytest.raises(RuntimeError, match=says):
            (out[0] if isinstance(out, tuple) else out).add_(1)


def test_the_error_of_a_returned_and_saved_input_says_what_to_do() -> None:
    F = separate(pullback, lambda x: x, lambda ctx, inputs, output: ctx.save_for_backward(output), lambda ctx, g: g)
    with pytest.raises(RuntimeError, match=r"returned as-is as output is being saved.*\n.*x.view_as\(x\)"):
        F.apply(leaf(pullback, [1.0]))


def test_variable_takes_tensors_only() -> None:
    with pytest.raises(TypeError, match="got ndarray"):
        Variable(np.ones(2))
