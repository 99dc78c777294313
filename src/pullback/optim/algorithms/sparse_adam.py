"""SparseAdam: Adam for the rows of an embedding that have a gradient; all others stay unchanged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import message
from ...ops.sparse.coo import SparseTensor
from ...tensor.tensor import Tensor
from ..optimizer import Group, Params, Shapes
from ..options import Domain, algorithm, check_option, check_options, number
from ..tensorwise import Tensorwise, zeros_of

__all__ = ["SparseAdam"]


def __dir__() -> list[str]:
    return sorted(__all__)


_POSITIVE = Domain("more than zero", lambda value: value > 0)


@algorithm
class SparseAdam(Tensorwise):
    """Adam's step, taken where a sparse gradient has entries: elsewhere neither p nor its averages change.

    For the gradient of ``embedding(..., sparse=True)``: a step costs as much as the rows that were looked up. From the
    entries g of the gradient (-g with `maximize`), and with (b1, b2) = `betas`, step number t computes

        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g ** 2
        p = p - lr * sqrt(1 - b2 ** t) / (1 - b1 ** t) * m / (sqrt(v) + eps)

    at their places, in place. A step in which a row has no gradient does not move the row's averages towards zero.

    State, from the first step: `step` (t, an int), `exp_avg` (m) and `exp_avg_sq` (v), dense, like p.

    Raises `ValueError` if `lr` or `eps` is not positive, a beta not in [0, 1), or a parameter complex; `RuntimeError`
    for a dense gradient.

    Source: Kingma and Ba, Adam: A method for stochastic optimization, https://arxiv.org/abs/1412.6980, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html.

    >>> import pullback
    >>> rows = pullback.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    >>> opt = pullback.optim.SparseAdam([rows], lr=0.5)
    >>> pullback.nn.functional.embedding(pullback.tensor([0, 2]), rows, sparse=True).sum().backward()
    >>> opt.step()
    >>> rows
    tensor([[0.5000],
            [2.0000],
            [2.5000]], requires_grad=True)
    """

    params: Params
    lr: float | Tensor = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    maximize: bool = False

    def _prepare(self, options: Group) -> None:
        check_options("SparseAdam", options)
        for name in ("lr", "eps"):
            check_option("SparseAdam", name, options[name], _POSITIVE)

    def _checked(self, param_group: Group) -> tuple[list[str] | None, list[Tensor]]:
        names, params = super()._checked(param_group)
        for i, p in enumerate(params):
            if p._data.dtype.kind == "c":
                raise ValueError(
                    message("SparseAdam: param_group", expected="real parameters", found=f"a complex one, number {i}")
                )
        return names, params

    def _check(self, p: Tensor, grad: Tensor) -> None:
        if not isinstance(grad, SparseTensor):
            raise RuntimeError(
                message("SparseAdam does not support dense gradients", do="use Adam, or embedding(..., sparse=True)")
            )

    _all_at_once = True

    def _shapes(self, param: Tensor, group: Group) -> Shapes:
        return {"step": (), "exp_avg": param._data.shape, "exp_avg_sq": param._data.shape}

    def _advance(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        if not state:
            state |= {"step": 0, "exp_avg": zeros_of(p, p._data.shape), "exp_avg_sq": zeros_of(p, p._data.shape)}
        state["step"] += 1
        sparse: Any = grad
        entries = sparse.coalesce()
        at, g = tuple(entries.indices()._data), entries.values()._data
        g = -g if group["maximize"] else g
        (b1, b2), t = group["betas"], state["step"]
        mean, square = state["exp_avg"]._data, state["exp_avg_sq"]._data
        m = mean[at] + (1 - b1) * (g - mean[at])
        v = square[at] + (1 - b2) * (g * g - square[at])
        mean[at], square[at] = m, v
        rate = number(group["lr"]) * math.sqrt(1 - b2**t) / (1 - b1**t)
        p._data[at] -= rate * m / (np.sqrt(v) + group["eps"])
