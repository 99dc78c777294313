"""Muon: momentum for matrices, whose steps are made nearly orthogonal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import message
from ...table.levels import memory_of
from ...tensor.tensor import Tensor
from ..optimizer import Group, Params, Shapes
from ..options import algorithm, check_options, number
from ..sweep import Array
from ..tensorwise import Tensorwise, wide, zeros_of

__all__ = ["Muon"]


def __dir__() -> list[str]:
    return sorted(__all__)


_ADJUSTMENTS = (None, "original", "match_rms_adamw")


@algorithm
class Muon(Tensorwise):
    """p = p - lr * c * O(m), with the momentum m made nearly orthogonal: all its singular values near 1.

    It is for matrices alone, the weights of hidden layers; use `AdamW` or the like for biases and embeddings. From the
    gradient g of shape (rows, columns), with mu = `momentum`, a step computes

        m = m + (1 - mu) * (g - m)
        u = g + mu * (m - g) with `nesterov`, else m
        p = (1 - lr * weight_decay) * p - lr * c * O(u)

    in place. O takes `ns_steps` steps of ``x = a x + (b y + c y y) x``, with ``y = x x^T`` and (a, b, c) =
    `ns_coefficients`, from ``u / max(|u|, eps)``: a Newton-Schulz iteration, in the precision of p and at least single.
    c, by `adjust_lr_fn`, is ``sqrt(max(1, rows / columns))`` ("original", or None) or ``0.2 sqrt(max(rows, columns))``
    ("match_rms_adamw", with which learning rate and weight decay of AdamW may be kept).

    State, from the first step: `momentum_buffer` (m, like p).

    Raises `ValueError` if `lr`, `weight_decay` or `momentum` is negative, `ns_steps` is 100 or more, for other names in
    `adjust_lr_fn`, and for a parameter that is not a matrix; `RuntimeError` for a complex one, or a sparse gradient.

    Source: Jordan et al., Muon: An optimizer for hidden layers in neural networks, 2024,
    https://kellerjordan.github.io/posts/muon/; Liu et al., Muon is scalable for LLM training, 2025,
    https://arxiv.org/abs/2502.16982, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Muon.html.

    >>> import pullback
    >>> w = pullback.tensor([[3.0, 0.0], [0.0, 4.0]], requires_grad=True)
    >>> opt = pullback.optim.Muon([w], lr=0.5, weight_decay=0.0, ns_coefficients=(1.5, -0.5, 0.0), ns_steps=9)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([[2.5000, 0.0000],
            [0.0000, 3.5000]], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 1e-3
    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315)
    eps: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: str | None = None

    def _prepare(self, options: Group) -> None:
        check_options("Muon", options)
        coefficients, steps, adjustment = (options[k] for k in ("ns_coefficients", "ns_steps", "adjust_lr_fn"))
        if len(coefficients) != 3:
            raise ValueError(
                message("Muon: argument ns_coefficients", expected="three numbers", found=str(coefficients))
            )
        if steps >= 100:
            raise ValueError(message("Muon: argument ns_steps", expected="less than 100", found=str(steps)))
        if adjustment not in _ADJUSTMENTS:
            raise ValueError(
                message("Muon: argument adjust_lr_fn", expected=f"one of {list(_ADJUSTMENTS)}", found=repr(adjustment))
            )

    def _checked(self, param_group: Group) -> tuple[list[str] | None, list[Tensor]]:
        names, params = super()._checked(param_group)
        for i, p in enumerate(params):
            if p._data.ndim != 2:
                raise ValueError(
                    message(
                        "Muon: param_group",
                        expected="2D parameters, matrices, only",
                        found=f"parameter {i} of shape {list(p.shape)}",
                        do="give the others to another optimiser, e.g. AdamW",
                    )
                )
        return names, params

    def _shapes(self, param: Tensor, group: Group) -> Shapes:
        return {"momentum_buffer": param._data.shape}

    def _advance(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        values, g = memory_of(p._data), wide(memory_of(grad._data))
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_of(p, values.shape)
        buffer, momentum = state["momentum_buffer"]._data, group["momentum"]
        buffer += ((1 - momentum) * (g - buffer)).astype(buffer.dtype)
        update = g + momentum * (wide(buffer) - g) if group["nesterov"] else wide(buffer)
        turned = _orthogonalised(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rate = number(group["lr"])
        values *= values.dtype.type(1 - rate * group["weight_decay"])
        values -= (rate * _adjustment(group["adjust_lr_fn"], *values.shape) * turned).astype(values.dtype)


def _orthogonalised(u: Array, coefficients: tuple[float, float, float], steps: int, eps: float) -> Array:
    """The matrix with singular values that are all near 1, and the same singular vectors."""
    a, b, c = coefficients
    upright = u.shape[0] > u.shape[1]
    x = (u.T if upright else u) / max(float(np.linalg.norm(u)), eps)
    for _ in range(steps):
        y = x @ x.T
        x = a * x + (b * y + c * (y @ y)) @ x
    return x.T if upright else x


def _adjustment(kind: str | None, rows: int, columns: int) -> float:
    if kind == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns)) if columns else 1.0
