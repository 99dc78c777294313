"""What is said about a backward that returns something else, or fails: and that it helps."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

import pullback
from pullback.autograd import Function


def twice(returned: Any) -> type[Function]:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return returned(g * b, g * a)

    return Product


def gradients(function: type[Function]) -> list[Any]:
    a, b = pullback.full((2,), 3.0, requires_grad=True), pullback.full((2,), 5.0, requires_grad=True)
    function.apply(a, b).sum().backward()
    return [a.grad.tolist(), b.grad.tolist()]


@pytest.mark.parametrize(
    "returned",
    [lambda a, b: {a, b}, lambda a, b: {"a": a, "b": b}, lambda a, b: iter((a, b)), lambda a, b: (t for t in (a, b))],
)
def test_what_has_no_order_is_to_be_a_tuple(returned: Any) -> None:
    with pytest.raises(RuntimeError, match="What to do: return a tuple of gradients, in the order of forward's"):
        gradients(twice(returned))
    assert gradients(twice(lambda a, b: (a, b))) == [[5.0, 5.0], [3.0, 3.0]]


def test_a_set_for_one_argument() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return {2 * g}

    with pytest.raises(RuntimeError, match=r"returned a set(?s:.*)What to do: return a tuple of gradients"):
        Double.apply(pullback.ones(2, requires_grad=True)).sum().backward()


def softmax(keepdim: bool) -> type[Function]:
    class Softmax(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            s = x.softmax(1)
            ctx.save_for_backward(s)
            return s

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (s,) = ctx.saved_tensors
            return s * (g - (g * s).sum(1, keepdim=keepdim))

    return Softmax


def test_an_axis_that_was_summed_away() -> None:
    with pytest.raises(
        RuntimeError,
        match=r"What to do: keep the axis that was summed, by keepdim=True, or .* unsqu"
        r"eeze\(1\)",
    ) as raised:
        softmax(False).apply(pullback.randn(2, 3, requires_grad=True)).sum().backward()
    assert "In Softmax.backward()." in "".join(traceback.format_exception(raised.value))
    assert pullback.autograd.gradcheck(softmax(True).apply, pullback.randn(2, 3))


@pytest.mark.parametrize(("a", "b", "dim"), [((2, 3), (2,), 1), ((4, 2, 3), (4, 3), 1), ((4, 2, 3), (4, 2), 2)])
def test_where_the_axis_is_put_back(a: tuple[int, ...], b: tuple[int, ...], dim: int) -> None:
    with pytest.raises(RuntimeError, match=rf"unsqueeze\({dim}\)"):
        pullback.zeros(a) + pullback.zeros(b)
    assert (pullback.zeros(a) + pullback.zeros(b).unsqueeze(dim)).shape == a
    with pytest.raises(RuntimeError) as raised:
        pullback.zeros(2, 3) + pullback.zeros(4)
    assert "What to do" not in str(raised.value)


def test_a_loss_of_integers() -> None:
    x = pullback.tensor([0.5, -0.5], requires_grad=True)
    with pytest.raises(RuntimeError, match="compute it in floating point: a tensor of int64 has no gradient"):
        (x > 0).long().sum().backward()


def test_an_array_is_saved_as_a_tensor() -> None:
    class Exp(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            import numpy as np

            y = np.exp(x.numpy())
            with pytest.raises(TypeError, match=r"save an array as a Tensor, pullback.from_numpy\(array\)"):
                ctx.save_for_backward(y)
            ctx.save_for_backward(pullback.from_numpy(y))
            return pullback.from_numpy(y)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    assert pullback.autograd.gradcheck(Exp.apply, pullback.randn(3))
