"""RAdam: Adam that does not trust the mean square of a gradient before it has seen enough of them."""

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

__all__ = ["RAdam"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class RAdam(Elementwise):
    """p = p - lr * m * r / (sqrt(v) + eps), and p = p - lr * m while the variance of v is not tractable.

    From the gradient g (-g with `maximize`), step number t computes

        d = g + weight_decay * p
        m = beta1 * m + (1 - beta1) * d
        v = beta2 * v + (1 - beta2) * d ** 2
        rho = rho_inf - 2 * t * beta2 ** t / (1 - beta2 ** t)    with rho_inf = 2 / (1 - beta2) - 1
        r = sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
        p = p - lr * m / (1 - beta1 ** t) * (r * sqrt(1 - beta2 ** t) / (sqrt(v) + eps) if rho > 5 else 1)

    in place. `decoupled_weight_decay` takes d = g and shrinks p by 1 - lr * weight_decay first. A complex parameter is
    treated as the pair of its real and imaginary parts. `foreach` chooses among PyTorch's implementations of this
    formula; it is accepted, and makes no difference here.

    State: `step` (t, a 0-d tensor), `exp_avg` (m) and `exp_avg_sq` (v), each like p.

    Raises `ValueError` if `lr`, `eps` or `weight_decay` is negative, or if one of `betas` is not in [0, 1);
    `NotImplementedError` for `differentiable=True` and `capturable=True`.

    Source: Liu et al., On the variance of the adaptive learning rate and beyond, ICLR 2020,
    https://arxiv.org/abs/1908.03265, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.RAdam.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.RAdam([x], lr=0.125)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x  # the first steps are plain gradient descent, with momentum
    tensor([ 2.2500, -3.0000], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False

    _order = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"

    _arrays = ("exp_avg", "exp_avg_sq")

    _moving = ("rate",)

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        beta1, beta2 = map(number, group["betas"])
        (step,) = counts
        seen = 1 - beta2**step
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2**step / seen
        rate = number(group["lr"]) / (1 - beta1**step)
        if trusted := length > 5:
            rectifier = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            rate *= math.sqrt(rectifier * seen)
        return {"beta1": beta1, "beta2": beta2, "rate": rate, "eps": group["eps"], "trusted": trusted}

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
        rate: float,
        eps: float,
        trusted: bool,
    ) -> None:
        spare = work[0]
        move(exp_avg, grad, 1 - beta1, spare)
        average_square(exp_avg_sq, grad, beta2, spare)
        direction = np.divide(exp_avg, root(exp_avg_sq, eps, spare), out=spare) if trusted else exp_avg
        descend(param, direction, rate, spare)
