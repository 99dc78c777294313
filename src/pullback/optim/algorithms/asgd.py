"""Averaged stochastic gradient descent: the iterates' average converges where the iterates themselves keep jumping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensor.tensor import Tensor
from ..elementwise import Elementwise
from ..optimizer import Group, Params
from ..options import algorithm, number
from ..sweep import Array
from ..updates import descend, move

__all__ = ["ASGD"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class ASGD(Elementwise):
    """p = (1 - lambd * eta) * p - eta * g, and a running average of p: averaged stochastic gradient descent.

    From the gradient g (-g with `maximize`), step number t computes

        d = g + weight_decay * p
        p = (1 - lambd * eta) * p - eta * d
        ax = ax + mu * (p - ax)
        eta = lr / (1 + lambd * lr * t) ** alpha
        mu = 1 / max(1, t - t0)

    in place; the last two are for the next step, and begin with lr and 1. So the average starts after `t0` steps.

    State: `step` (t), `eta` and `mu`, 0-d tensors, and `ax`, like p: the average, to be used when training is over.

    Raises `ValueError` if `lr` or `weight_decay` is negative; `NotImplementedError` for `differentiable=True` and
    `capturable=True`.

    Source: Polyak and Juditsky, Acceleration of stochastic approximation by averaging, SIAM Journal on Control and
    Optimization 30(4), 1992, https://doi.org/10.1137/0330046, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.ASGD.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.ASGD([x], lr=0.25, t0=0)
    >>> for _ in range(4):
    ...     opt.zero_grad()
    ...     (x * x).sum().backward()
    ...     opt.step()
    >>> x, opt.state[x]["ax"]
    (tensor([ 0.1875, -0.2500], requires_grad=True), tensor([ 0.4375, -0.5833]))
    """

    params: Params
    lr: float | Tensor = 1e-2
    lambd: float = 1e-4
    alpha: float = 0.75
    t0: float = 1e6
    weight_decay: float = 0
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False

    def _layout(self, group: Group) -> tuple[dict[str, float], dict[str, float]]:
        return {"step": 0.0, "eta": number(group["lr"]), "mu": 1.0}, {"ax": 0.0}

    _moving = ("eta", "shrink")

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        _, eta, mu = counts
        return {"eta": float(eta), "mu": float(mu), "shrink": 1 - group["lambd"] * float(eta)}

    def _count(self, group: Group, step: float, *others: Any) -> tuple[float, ...]:
        lr = number(group["lr"])
        return lr / (1 + group["lambd"] * lr * step) ** group["alpha"], 1 / max(1.0, step - group["t0"])

    @staticmethod
    def _rule(
        param: Array, grad: Array, work: Sequence[Array], *, ax: Array, eta: float, mu: float, shrink: float
    ) -> None:
        np.multiply(param, shrink, out=param)
        descend(param, grad, eta, work[0])
        move(ax, param, mu, work[0])
