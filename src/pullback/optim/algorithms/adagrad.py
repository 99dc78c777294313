"""Adagrad: steps scaled by the root of the sum of all squared gradients so far."""

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
from ..updates import descend, root

__all__ = ["Adagrad"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class Adagrad(Elementwise):
    """p = p - lr * g / (sqrt(s) + eps), with the sum s of all g ** 2.

    From the gradient g (-g with `maximize`), step number t computes

        d = g + weight_decay * p
        s = s + d ** 2
        p = p - lr / (1 + (t - 1) * lr_decay) * d / (sqrt(s) + eps)

    in place; s begins with `initial_accumulator_value`. A complex parameter is treated as the pair of its real and
    imaginary parts. `foreach` and `fused` choose among PyTorch's implementations of this formula; they are accepted,
    and make no difference here.

    A sparse gradient, as of ``embedding(..., sparse=True)``, counts as zero where it has no entry, and a step costs as
    much as its entries.

    State, from the beginning: `step` (t, a 0-d tensor) and `sum` (s, like p).

    Raises `ValueError` if `lr`, `lr_decay`, `weight_decay`, `initial_accumulator_value` or `eps` is negative;
    `NotImplementedError` for `differentiable=True`; `RuntimeError` in a step for a sparse gradient with weight decay.

    Source: Duchi et al., Adaptive subgradient methods for online learning and stochastic optimization, JMLR 12, 2011,
    https://jmlr.org/papers/v12/duchi11a.html, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Adagrad.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.Adagrad([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x, opt.state[x]["sum"]
    (tensor([ 2.5000, -3.5000], requires_grad=True), tensor([36., 64.]))
    """

    params: Params
    lr: float | Tensor = 1e-2
    lr_decay: float = 0
    weight_decay: float = 0
    initial_accumulator_value: float = 0
    eps: float = 1e-10
    foreach: bool | None = None
    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False
    fused: bool | None = None

    _order = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"

    def __post_init__(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                self._begin(p, group)

    def _layout(self, group: Group) -> tuple[dict[str, float], dict[str, float]]:
        return {"step": 0.0}, {"sum": self.defaults["initial_accumulator_value"]}

    _moving = ("rate",)
    _takes_sparse = True

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        (step,) = counts
        return {"rate": number(group["lr"]) / (1 + (step - 1) * group["lr_decay"]), "eps": group["eps"]}

    @staticmethod
    def _rule(param: Array, grad: Array, work: Sequence[Array], *, sum: Array, rate: float, eps: float) -> None:
        spare = work[0]
        np.multiply(grad, grad, out=spare)
        np.add(sum, spare, out=sum)
        np.divide(grad, root(sum, eps, spare), out=spare)
        descend(param, spare, rate, spare)
