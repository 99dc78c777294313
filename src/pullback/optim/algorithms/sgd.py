"""Stochastic gradient descent, with momentum, dampening, weight decay and Nesterov's variant."""

from __future__ import annotations

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
from ..updates import descend

__all__ = ["SGD"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class SGD(Elementwise):
    """p = p - lr * b, along the running sum b of the gradients: stochastic gradient descent.

    From the gradient g (-g with `maximize`), a step computes

        d = g + weight_decay * p
        b = momentum * b + (1 - dampening) * d    (b = d in the first step)
        p = p - lr * b

    in place. `nesterov` follows d + momentum * b instead of b; without momentum, d itself is followed. `foreach` and
    `fused` choose among PyTorch's implementations of this one formula; they are accepted and make no difference.

    A sparse gradient, as of ``embedding(..., sparse=True)``, counts as zero where it has no entry. Without momentum, a
    step costs as much as its entries.

    State: `momentum_buffer` (b, like p), if `momentum` is not zero.

    Raises `ValueError` if `lr`, `momentum` or `weight_decay` is negative, or if `nesterov` is asked for
    without momentum or with dampening; `NotImplementedError` for `differentiable=True`; `RuntimeError` in a step for a
    sparse gradient with weight decay.

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning, ICML 2013, in the form
    of https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.SGD([x], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     (x * x).sum().backward()
    ...     opt.step()
    >>> x
    tensor([ 1.3800, -1.8400], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 1e-3
    momentum: float = 0
    dampening: float = 0
    weight_decay: float | Tensor = 0
    nesterov: bool = False
    _: KW_ONLY
    maximize: bool = False
    foreach: bool | None = None
    differentiable: bool = False
    fused: bool | None = None

    def _prepare(self, options: Group) -> None:
        momentum, dampening = options["momentum"], options["dampening"]
        if options["nesterov"] and (momentum <= 0 or dampening != 0):
            raise ValueError(
                message(
                    "SGD: argument nesterov",
                    expected="momentum > 0 and dampening == 0 with nesterov=True",
                    found=f"momentum={momentum}, dampening={dampening}",
                )
            )

    def _layout(self, group: Group) -> tuple[dict[str, float], dict[str, float]]:
        return {}, {"momentum_buffer": 0.0} if group["momentum"] else {}

    _moving = ("lr", "momentum")
    _takes_sparse = True

    def _stays(self, group: Group) -> bool:
        return not group["momentum"]

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        return {
            "lr": number(group["lr"]),
            "momentum": number(group["momentum"]),
            "gain": 1.0 - (0 if first else number(group["dampening"])),
            "nesterov": group["nesterov"],
        }

    @staticmethod
    def _rule(
        param: Array,
        grad: Array,
        work: Sequence[Array],
        *,
        lr: float,
        momentum: float,
        gain: float,
        nesterov: bool,
        momentum_buffer: Array | None = None,
    ) -> None:
        direction = grad
        if momentum_buffer is not None:
            np.multiply(momentum_buffer, momentum, out=momentum_buffer)
            gained = grad if gain == 1 else np.multiply(grad, gain, out=work[0])
            direction = np.add(momentum_buffer, gained, out=momentum_buffer)
            if nesterov:
                np.multiply(momentum_buffer, momentum, out=work[0])
                direction = np.add(work[0], grad, out=work[0])
        descend(param, direction, lr, work[0])
