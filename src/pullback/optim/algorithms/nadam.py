"""NAdam: Adam with Nesterov's look ahead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from ...tensor.tensor import Tensor
from ..elementwise import Elementwise
from ..optimizer import Group, Params
from ..options import algorithm, number
from ..sweep import Array
from ..updates import average_square, descend, move, root

__all__ = ["NAdam"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class NAdam(Elementwise):
    """p = p - lr * (a * g + b * m) / (sqrt(v) + eps): Adam that weighs the new gradient and the mean of the next step.

    From the gradient g (-g with `maximize`), step number t computes

        d = g + weight_decay * p
        mu_t = beta1 * (1 - 0.96 ** (t * momentum_decay) / 2)
        m = beta1 * m + (1 - beta1) * d
        v = beta2 * v + (1 - beta2) * d ** 2
        M = mu_(t+1) * m / (1 - mu_1 * ... * mu_(t+1)) + (1 - mu_t) * d / (1 - mu_1 * ... * mu_t)
        p = p - lr * M / (sqrt(v / (1 - beta2 ** t)) + eps)

    in place. `decoupled_weight_decay` takes d = g and shrinks p by 1 - lr * weight_decay first. A complex parameter is
    treated as the pair of its real and imaginary parts. `foreach` chooses among PyTorch's implementations of this
    formula; it is accepted, and makes no difference here.

    State: `step` (t) and `mu_product` (mu_1 * ... * mu_t), 0-d tensors, `exp_avg` (m) and `exp_avg_sq` (v), like p.

    Raises `ValueError` if `lr`, `eps`, `weight_decay` or `momentum_decay` is negative, or if one of `betas` is not in
    [0, 1); `NotImplementedError` for `differentiable=True` and `capturable=True`.

    Source: Dozat, Incorporating Nesterov momentum into Adam, ICLR 2016 workshop,
    https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.NAdam.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.NAdam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x
    tensor([ 2.4718, -3.4718], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    momentum_decay: float = 4e-3
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False

    _order = (
        "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable"
    )

    def _layout(self, group: Group) -> tuple[dict[str, float], dict[str, float]]:
        return {"step": 0.0, "mu_product": 1.0}, {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    _moving = ("grad_rate", "mean_rate", "eps")

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        beta1, beta2 = map(number, group["betas"])
        step, _ = counts
        (product,) = self._count(group, *counts)
        mu, mu_next = _momentum(group, step), _momentum(group, step + 1)
        # The bias correction of v is moved out of the root, into the three numbers next to it.
        correction = math.sqrt(1 - beta2**step)
        rate = number(group["lr"]) * correction
        return {
            "beta1": beta1,
            "beta2": beta2,
            "grad_rate": rate * (1 - mu) / (1 - product),
            "mean_rate": rate * mu_next / (1 - product * mu_next),
            "eps": group["eps"] * correction,
        }

    def _count(self, group: Group, step: float, *others: Any) -> tuple[float, ...]:
        (product,) = others
        return (float(product * _momentum(group, step)),)  # rounded to the precision it is stored in

    @staticmethod
    def _rule(
        param: Array,
        grad: Array,
        work: Sequence[Array],
        *,
        exp_avg: Array,
        exp_avg_sq: Array,
        beta1: float,
        beta2: float,
        grad_rate: float,
        mean_rate: float,
        eps: float,
    ) -> None:
        spare, direction = work
        move(exp_avg, grad, 1 - beta1, spare)
        average_square(exp_avg_sq, grad, beta2, spare)
        np.multiply(grad, grad_rate, out=direction)
        np.multiply(exp_avg, mean_rate, out=spare)
        np.add(direction, spare, out=direction)
        np.divide(direction, root(exp_avg_sq, eps, spare), out=direction)
        descend(param, direction, 1.0, spare)


def _momentum(group: Group, step: float) -> float:
    """The momentum mu of a step; it grows towards the first of `betas`."""
    return number(group["betas"][0]) * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
