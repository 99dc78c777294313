"""Rprop: steps that follow the sign of the gradient alone, and whose sizes adapt to whether it changes."""

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

__all__ = ["Rprop"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class Rprop(Elementwise):
    """p = p - sign(g) * size, with a size for each element that grows while g keeps its sign.

    From the gradient g (-g with `maximize`), a step computes, for each element,

        size = clip(size * (1.2 if g * prev > 0 else 0.5 if g * prev < 0 else 1), *step_sizes)
        g = 0 if g * prev < 0 else g
        p = p - sign(g) * size
        prev = g

    in place; 0.5 and 1.2 are `etas`, and size begins with `lr`. It is meant for gradients over all data, not over a
    batch. A complex parameter is treated as the pair of its real and imaginary parts. `foreach` chooses among PyTorch's
    implementations of this formula; it is accepted, and makes no difference here.

    State: `step` (a 0-d tensor), `prev` and `step_size`, each like p.

    Raises `ValueError` if `lr` is negative, or unless 0 < etas[0] < 1 < etas[1]; `NotImplementedError` for
    `differentiable=True` and `capturable=True`.

    Source: Riedmiller and Braun, A direct adaptive method for faster backpropagation learning, ICNN 1993,
    https://doi.org/10.1109/ICNN.1993.298623, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Rprop.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -0.25], requires_grad=True)
    >>> opt = pullback.optim.Rprop([x], lr=0.5, etas=(0.5, 2.0))
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     (x * x).sum().backward()
    ...     opt.step()
    >>> x, opt.state[x]["step_size"]
    (tensor([1.5000, 0.2500], requires_grad=True), tensor([1.0000, 0.2500]))
    """

    params: Params
    lr: float | Tensor = 1e-2
    etas: tuple[float, float] = (0.5, 1.2)
    step_sizes: tuple[float, float] = (1e-6, 50)
    _: KW_ONLY
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False

    _order = "lr etas step_sizes foreach maximize differentiable capturable"

    def _prepare(self, options: Group) -> None:
        etas = options["etas"]
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(
                message("Rprop: argument etas", expected="two numbers with 0 < etas[0] < 1 < etas[1]", found=str(etas))
            )

    def _layout(self, group: Group) -> tuple[dict[str, float], dict[str, float]]:
        return {"step": 0.0}, {"prev": 0.0, "step_size": number(group["lr"])}

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        return {"etas": group["etas"], "step_sizes": group["step_sizes"]}

    @staticmethod
    def _rule(
        param: Array,
        grad: Array,
        work: Sequence[Array],
        *,
        prev: Array,
        step_size: Array,
        etas: tuple[float, float],
        step_sizes: tuple[float, float],
    ) -> None:
        factor, change = work
        # The masks share the memory of `change`: a mask takes one byte an element, a float at least two.
        masks = change.reshape(-1).view(np.bool_)[: 2 * factor.size].reshape(2, *factor.shape)
        turned, mask = masks
        np.sign(np.multiply(grad, prev, out=factor), out=factor)
        np.less(factor, 0, out=turned)
        np.greater(factor, 0, out=mask)
        np.putmask(factor, mask, etas[1])
        np.equal(factor, 0, out=mask)
        np.putmask(factor, mask, 1.0)
        np.putmask(factor, turned, etas[0])
        np.multiply(step_size, factor, out=step_size)
        np.clip(step_size, *step_sizes, out=step_size)
        np.copyto(prev, grad)
        np.putmask(prev, turned, 0.0)
        np.multiply(np.sign(prev, out=change), step_size, out=change)
        np.subtract(param, change, out=param)
