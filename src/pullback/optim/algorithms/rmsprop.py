"""RMSprop: steps scaled by the root of a running mean of squared gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensor.tensor import Tensor
from ..elementwise import Elementwise
from ..optimizer import Group, Params
from ..options import NOT_NEGATIVE, algorithm, check_option, number
from ..sweep import Array
from ..updates import average_square, descend, move, root

__all__ = ["RMSprop"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class RMSprop(Elementwise):
    """p = p - lr * g / (sqrt(v) + eps), with a running average v of g ** 2.

    From the gradient g (-g with `maximize`), a step computes

        d = g + weight_decay * p
        v = alpha * v + (1 - alpha) * d ** 2
        p = p - lr * d / (sqrt(v) + eps)

    in place. With `momentum`, p follows the sum b = momentum * b + d / (sqrt(v) + eps). With `centered`, the root is
    that of the variance v - a ** 2, with the running average a = alpha * a + (1 - alpha) * d. A complex parameter is
    treated as the pair of its real and imaginary parts. `foreach` chooses among PyTorch's implementations of this
    formula; it is accepted, and makes no difference here.

    State: `step` (a 0-d tensor), `square_avg` (v), with `momentum` `momentum_buffer` (b) and with `centered` `grad_avg`
    (a), each like p.

    Raises `ValueError` if `lr`, `alpha`, `eps`, `weight_decay` or `momentum` is negative; `NotImplementedError` for
    `differentiable=True` and `capturable=True`.

    Source: Hinton, Neural networks for machine learning, lecture 6e, 2012,
    https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf; centred: Graves, Generating sequences with
    recurrent neural networks, 2013, https://arxiv.org/abs/1308.0850, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.RMSprop.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.RMSprop([x], lr=0.25, alpha=0.75)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x
    tensor([ 2.5000, -3.5000], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0
    momentum: float = 0
    centered: bool = False
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False

    _order = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"

    def _prepare(self, options: Group) -> None:
        check_option("RMSprop", "alpha", options["alpha"], NOT_NEGATIVE)

    def _layout(self, group: Group) -> tuple[dict[str, float], dict[str, float]]:
        arrays = {"square_avg": 0.0}
        if group["momentum"] > 0:
            arrays["momentum_buffer"] = 0.0
        if group["centered"]:
            arrays["grad_avg"] = 0.0
        return {"step": 0.0}, arrays

    _moving = ("lr", "momentum")

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        return {"lr": number(group["lr"]), **{name: group[name] for name in ("alpha", "eps", "momentum")}}

    @staticmethod
    def _rule(
        param: Array,
        grad: Array,
        work: Sequence[Array],
        *,
        square_avg: Array,
        momentum_buffer: Array | None = None,
        grad_avg: Array | None = None,
        lr: float,
        alpha: float,
        eps: float,
        momentum: float,
    ) -> None:
        spare, scale = work
        average_square(square_avg, grad, alpha, spare)
        if grad_avg is None:
            root(square_avg, eps, scale)
        else:
            move(grad_avg, grad, 1 - alpha, spare)
            np.multiply(grad_avg, grad_avg, out=spare)
            root(np.subtract(square_avg, spare, out=spare), eps, scale)
        direction = np.divide(grad, scale, out=scale)
        if momentum_buffer is not None:
            np.multiply(momentum_buffer, momentum, out=momentum_buffer)
            direction = np.add(momentum_buffer, direction, out=momentum_buffer)
        descend(param, direction, lr, spare)
