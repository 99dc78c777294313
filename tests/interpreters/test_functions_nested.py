"""A Function whose forward computes outside of the library, under forward and reverse mode nested in every order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.autograd import Function

AT = 0.5


class _Exp(Function, abstract=True):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (kept,) = ctx.saved_tensors
        return g * ctx.slope(kept)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (kept,) = ctx.saved_tensors
        return t * ctx.slope(kept)


def _identity(kept: Any) -> Any:
    return kept


class OutputKept(_Exp):
    """forward(ctx, ...) that keeps its result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        out = pullback.tensor(math.exp(x.item()), dtype=pullback.float64)
        ctx.slope = _identity
        ctx.save_for_backward(out)
        ctx.save_for_forward(out)
        return out


class InputKept(_Exp):
    """forward(ctx, ...) that keeps its argument, and its slope is an operation."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.slope = pullback.exp
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return pullback.tensor(math.exp(x.item()), dtype=pullback.float64)


class OnlyForBackward(_Exp):
    """forward(ctx, ...) that keeps its result for both by `save_for_backward`."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        out = pullback.tensor(math.exp(x.item()), dtype=pullback.float64)
        ctx.slope = _identity
        ctx.save_for_backward(out)
        return out


class Separate(_Exp):
    """setup_context that keeps the result."""

    @staticmethod
    def forward(x: Any) -> Any:
        return pullback.tensor(np.exp(x.numpy()), dtype=pullback.float64)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.slope = _identity
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)


def forward(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: func.jvp(f, (x,), (pullback.ones((), dtype=pullback.float64),))[1]


ORDERS = [order for n in (1, 2, 3) for order in itertools.product((forward, func.grad), repeat=n)]


@pytest.mark.parametrize(
    "order", ORDERS, ids=lambda order: " of ".join("grad" if d is func.grad else "jvp" for d in order)
)
@pytest.mark.parametrize("cls", [OutputKept, InputKept, OnlyForBackward, Separate])
def test_every_order_of_derivatives_of_exp_is_exp(cls: type[Function], order: Any) -> None:
    f: Callable[[Any], Any] = cls.apply
    for derive in reversed(order):
        f = derive(f)
    assert f(pullback.tensor(AT, dtype=pullback.float64)).item() == pytest.approx(math.exp(AT), rel=1e-15)


class _ScaledAlongTheEnd(Function):
    """``x * c.sum()``, whose `vmap` hands the batch back along the last axis."""

    @staticmethod
    def forward(x: Any, c: Any) -> Any:
        return x * c.sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, c = ctx.saved_tensors
        return g * c.sum(), (g * x).sum() * pullback.ones_like(c)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, c: Any) -> Any:
        return _ScaledAlongTheEnd.apply(x.movedim(in_dims[0], -1), c), x.dim() - 1


def test_a_batch_along_another_axis_than_the_first_stays_in_the_graph() -> None:
    x = pullback.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    c = pullback.tensor([1.0, 1.0], requires_grad=True)

    def batched(c: Any) -> Any:
        return func.vmap(lambda v: _ScaledAlongTheEnd.apply(v, c))(x)

    (found,) = pullback.autograd.grad(batched(c).sum(), c)
    assert found.tolist() == [21.0, 21.0]
    assert func.jacrev(batched)(c.detach())[..., 0].tolist() == x.tolist()
