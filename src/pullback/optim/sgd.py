"""Stochastic gradient descent, with momentum, dampening, weight decay and Nesterov's variant."""

from __future__ import annotations

import numpy as np

from .._tensor import Tensor, wrap
from ..errors import message
from .optimizer import Group, Optimizer, Params, check_options


class SGD(Optimizer):
    """Stochastic gradient descent.

    From the gradient g (-g with `maximize`), a step computes

        d = g + weight_decay * p b = momentum * b + (1 - dampening) * d    (b = d in the first step) p = p - lr * b

    in place. `nesterov` follows d + momentum * b in place of b; without momentum, d itself is followed. `foreach` and
    `fused` choose among PyTorch's implementations of this one formula; they are accepted and make no difference.

    State: `momentum_buffer` (b, like p), if `momentum` is not zero.

    Raises `ValueError` if `lr`, `momentum` or `weight_decay` is negative, or if `nesterov` is asked for
    without momentum or with dampening; `NotImplementedError` for `differentiable=True`.

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

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_options("SGD", lr, foreach, differentiable, fused, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum == 0 or dampening != 0):
            raise ValueError(
                message(
                    "SGD: argument nesterov",
                    expected="momentum > 0 and dampening == 0 with nesterov=True",
                    found=f"momentum={momentum}, dampening={dampening}",
                )
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _update(self, p: Tensor, grad: np.ndarray, group: Group) -> None:
        param = p._data
        direction = self._descent(param, grad, group["maximize"], float(group["weight_decay"]))
        if momentum := group["momentum"]:
            buffer = self._momentum_buffer(p, direction, momentum, group["dampening"])
            if group["nesterov"]:
                ahead = np.multiply(buffer, momentum, out=self._scratch(param, 1))
                direction = np.add(ahead, direction, out=ahead)
            else:
                direction = buffer
        change = np.multiply(direction, float(group["lr"]), out=self._scratch(param, 1))
        np.subtract(param, change, out=param)

    def _momentum_buffer(self, p: Tensor, direction: np.ndarray, momentum: float, dampening: float) -> np.ndarray:
        """The running average of the directions, brought up to date."""
        state = self.state[p]
        kept = state.get("momentum_buffer")
        if kept is None:
            kept = state["momentum_buffer"] = wrap(np.array(direction))
            return kept._data
        buffer = kept._data
        np.multiply(buffer, momentum, out=buffer)
        if dampening:
            direction = np.multiply(direction, 1 - dampening, out=self._scratch(buffer, 1))
        np.add(buffer, direction, out=buffer)
        kept._bump()
        return buffer
