"""Adam and AdamW: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from ...errors import message
from ...tensor.tensor import Tensor
from ..elementwise import Elementwise
from ..optimizer import Group, Params
from ..options import algorithm, number
from ..sweep import Array
from ..updates import average_square, descend, move, root

__all__ = ["Adam", "AdamW"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class Adam(Elementwise):
    """p = p - lr * m / (sqrt(v) + eps), with unbiased running averages m of g and v of g ** 2.

    From the gradient g (-g with `maximize`), step number t computes

        d = g + weight_decay * p
        m = beta1 * m + (1 - beta1) * d
        v = beta2 * v + (1 - beta2) * d ** 2
        p = p - lr * (m / (1 - beta1 ** t)) / (sqrt(v / (1 - beta2 ** t)) + eps)

    in place. `amsgrad` puts the largest v so far under the root. `decoupled_weight_decay` takes d = g and shrinks p by
    1 - lr * weight_decay first (`AdamW`). A complex parameter is treated as the pair of its real and imaginary parts.
    `foreach` and `fused` choose among PyTorch's implementations of this formula; they are accepted, and make no
    difference here.

    State: `step` (t, a 0-d tensor), `exp_avg` (m), `exp_avg_sq` (v) and, with `amsgrad`, `max_exp_avg_sq`, each like p.

    Raises `ValueError` if `lr`, `eps` or `weight_decay` is negative, or if `betas` are not two floats (or two
    one-element tensors) in [0, 1); `NotImplementedError` for `differentiable=True` and `capturable=True`.

    Source: Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015, https://arxiv.org/abs/1412.6980;
    AMSGrad: Reddi et al., ICLR 2018, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x  # the first step is lr long, whatever the gradient's size
    tensor([ 2.5000, -3.5000], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 1e-3
    betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    amsgrad: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False
    fused: bool | None = None
    decoupled_weight_decay: bool = False

    _order = "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay"

    def _prepare(self, options: Group) -> None:
        betas = options["betas"]
        if not any(all(isinstance(beta, kind) for beta in betas) for kind in (float, Tensor)):
            raise ValueError(
                message(
                    f"{type(self).__name__}: argument betas", expected="two floats or two Tensors", found=repr(betas)
                )
            )

    def _layout(self, group: Group) -> tuple[dict[str, float], dict[str, float]]:
        averages = {"exp_avg": 0.0, "exp_avg_sq": 0.0}
        return {"step": 0.0}, {**averages, "max_exp_avg_sq": 0.0} if group["amsgrad"] else averages

    _moving = ("rate", "eps")

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        beta1, beta2 = map(number, group["betas"])
        (step,) = counts
        # The bias correction of v is moved out of the root, into the two numbers next to it.
        correction = math.sqrt(1 - beta2**step)
        return {
            "beta1": beta1,
            "beta2": beta2,
            "rate": number(group["lr"]) * correction / (1 - beta1**step),
            "eps": group["eps"] * correction,
        }

    @staticmethod
    def _rule(
        param: Array,
        grad: Array,
        work: Sequence[Array],
        *,
        exp_avg: Array,
        exp_avg_sq: Array,
        max_exp_avg_sq: Array | None = None,
        beta1: float,
        beta2: float,
        rate: float,
        eps: float,
    ) -> None:
        spare = work[0]
        move(exp_avg, grad, 1 - beta1, spare)
        average_square(exp_avg_sq, grad, beta2, spare)
        if max_exp_avg_sq is not None:
            exp_avg_sq = np.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)
        np.divide(exp_avg, root(exp_avg_sq, eps, spare), out=spare)
        descend(param, spare, rate, spare)


@algorithm
class AdamW(Adam):
    """p = (1 - lr * weight_decay) * p, then a step of Adam: the weight decay is decoupled from the averages.

    So the decay acts on all parameters alike, however large their gradients. Arguments, state and errors are those of
    `Adam`; `weight_decay` is 0.01 by default.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019,
    https://arxiv.org/abs/1711.05101.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.AdamW([x], lr=0.5, weight_decay=0.1)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x
    tensor([ 2.3500, -3.3000], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 1e-3
    betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 1e-2
    amsgrad: bool = False
    _: KW_ONLY
    maximize: bool = False
    foreach: bool | None = None
    capturable: bool = False
    differentiable: bool = False
    fused: bool | None = None

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        options["decoupled_weight_decay"] = True

    def load_state_dict(self, state_dict: dict[str, object]) -> None:
        """As in `Optimizer`; a state saved by `Adam` goes on with decoupled decay."""
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
