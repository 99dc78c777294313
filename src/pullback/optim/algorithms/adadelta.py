"""Adadelta: steps in the parameter's own units, from running averages of squared gradients and of squared steps."""

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
from ..updates import average_square, descend

__all__ = ["Adadelta"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class Adadelta(Elementwise):
    """p = p - lr * g * sqrt(u + eps) / sqrt(v + eps), with running averages v of g ** 2 and u of the squared steps.

    From the gradient g (-g with `maximize`), a step computes

        d = g + weight_decay * p
        v = rho * v + (1 - rho) * d ** 2
        delta = sqrt(u + eps) / sqrt(v + eps) * d
        u = rho * u + (1 - rho) * delta ** 2
        p = p - lr * delta

    in place. A complex parameter is treated as the pair of its real and imaginary parts. `foreach` chooses among
    PyTorch's implementations of this formula; it is accepted, and makes no difference here.

    State: `step` (a 0-d tensor), `square_avg` (v) and `acc_delta` (u), each like p.

    Raises `ValueError` if `lr`, `eps` or `weight_decay` is negative, or if `rho` is not in [0, 1];
    `NotImplementedError` for `differentiable=True` and `capturable=True`.

    Source: Zeiler, ADADELTA: an adaptive learning rate method, 2012, https://arxiv.org/abs/1212.5701, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Adadelta.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.Adadelta([x], eps=0.25)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x
    tensor([ 1.4711, -2.4489], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    capturable: bool = False
    maximize: bool = False
    differentiable: bool = False

    _order = "lr rho eps weight_decay maximize capturable foreach differentiable"

    _arrays = ("square_avg", "acc_delta")

    _moving = ("lr",)

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        return {"lr": number(group["lr"]), "rho": group["rho"], "eps": group["eps"]}

    @staticmethod
    def _rule(
        param: Array,
        grad: Array,
        work: Sequence[Array],
        *,
        square_avg: Array,
        acc_delta: Array,
        lr: float,
        rho: float,
        eps: float,
    ) -> None:
        spare, delta = work
        average_square(square_avg, grad, rho, spare)
        np.sqrt(np.add(acc_delta, eps, out=delta), out=delta)
        np.sqrt(np.add(square_avg, eps, out=spare), out=spare)
        np.divide(delta, spare, out=delta)
        np.multiply(delta, grad, out=delta)
        average_square(acc_delta, delta, rho, spare)
        descend(param, delta, lr, spare)
