"""Gradients of gradients: through operations, through Functions, in place, by hand and in batches; and what they keep.

The programs run in PyTorch, too, and have to come to the same.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback
from pullback.autograd import Function, grad
from tests.side_by_side import leaf

# through Functions ----------------------------------------------------------------------------------------------------


def test_the_error_of_once_differentiable_names_the_function() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @pullback.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

    x = leaf(pullback, [3.0])
    (g,) = grad(Square.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable: the backward of SquareBackward"):
        grad(g, x)


# what is kept ---------------------------------------------------------------------------------------------------------


class Cube(Function):
    """x^3, which saves its input."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3 * ctx.saved_tensors[0] ** 2


class Exponential(Function):
    """exp(x), which saves its output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0]


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """Without the garbage collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize(
    "fn",
    [lambda x: x**5, lambda x: x.exp() * x.tanh(), lambda x: (x @ x).softmax(0), Cube.apply, Exponential.apply],
    ids=["power", "saved results", "products", "Function, input", "Function, output"],
)
def test_graphs_of_every_order_die_by_reference_count(fn: Callable[[Any], Any]) -> None:
    x = leaf(pullback, [[0.5, 1.0], [2.0, 0.3]])
    made = [fn(x)]
    for _ in range(3):
        made.append(grad(made[-1].sum(), x, create_graph=True)[0])
    alive = [weakref.ref(t) for t in made] + [weakref.ref(t.grad_fn) for t in made]
    assert all(ref() is not None for ref in alive)
    made.clear()
    assert [ref() for ref in alive] == [None] * len(alive)


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("apply", [Cube.apply, Exponential.apply])
def test_what_a_recorded_pass_that_fails_made_dies(apply: Callable[[Any], Any]) -> None:
    x = leaf(pullback, [1.0])
    y = x * 1
    z = apply(y)
    kept = []

    def fails(g: Any) -> None:
        kept.append(weakref.ref(g.grad_fn))
        raise ArithmeticError

    y.register_hook(fails)
    with pytest.raises(ArithmeticError) as caught:
        grad(z, x, create_graph=True)
    assert len(kept) == 1
    caught.value.__traceback__ = None
    del caught
    assert kept[0]() is None
