"""Adamax: Adam with a running maximum of the gradient's size instead of the root of its mean square."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from ...tensor.tensor import Tensor
from ..elementwise import Elementwise
from ..optimizer import Group, Params
from ..options import algorithm, number
from ..sweep import Array
from ..updates import descend, move

__all__ = ["Adamax"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class Adamax(Elementwise):
    """p = p - lr * m / u, with a running average m of g and a decaying maximum u of abs(g).

    From the gradient g (-g with `maximize`), step number t computes

        d = g + weight_decay * p
        m = beta1 * m + (1 - beta1) * d
        u = max(beta2 * u, abs(d) + eps)
        p = p - lr / (1 - beta1 ** t) * m / u

    in place. A complex parameter is treated as the pair of its real and imaginary parts. `foreach` chooses among
    PyTorch's implementations of this formula; it is accepted, and makes no difference here.

    State: `step` (t, a 0-d tensor), `exp_avg` (m) and `exp_inf` (u), each like p.

    Raises `ValueError` if `lr`, `eps` or `weight_decay` is negative, or if one of `betas` is not in [0, 1);
    `NotImplementedError` for `differentiable=True` and `capturable=True`.

    Source: Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015, section 7.1,
    https://arxiv.org/abs/1412.6980, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Adamax.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.Adamax([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x
    tensor([ 2.5000, -3.5000], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False

    _arrays = ("exp_avg", "exp_inf")

    _moving = ("rate",)

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        beta1, beta2 = map(number, group["betas"])
        (step,) = counts
        return {"beta1": beta1, "beta2": beta2, "eps": group["eps"], "rate": number(group["lr"]) / (1 - beta1**step)}

    @staticmethod
    def _rule(
        param: Array,
        grad: Array,
        work: Sequence[Array],
        *,
        exp_avg: Array,
        exp_inf: Array,
        beta1: float,
        beta2: float,
        eps: float,
        rate: float,
    ) -> None:
        spare = work[0]
        move(exp_avg, grad, 1 - beta1, spare)
        np.multiply(exp_inf, beta2, out=exp_inf)
        np.abs(grad, out=spare)
        np.add(spare, eps, out=spare)
        np.maximum(exp_inf, spare, out=exp_inf)
        np.divide(exp_avg, exp_inf, out=spare)
        descend(param, spare, rate, spare)
