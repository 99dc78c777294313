"""Adafactor: steps scaled as Adam's, with memory for the rows and columns of a matrix instead of all its elements."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from ...table.levels import memory_of
from ...tensor.adding import summed
from ...tensor.dtypes import finfo
from ...tensor.tensor import Tensor
from ..elementwise import counter
from ..optimizer import Group, Params, Shapes
from ..options import NOT_NEGATIVE, Domain, algorithm, check_option, check_options, number
from ..sweep import Array
from ..tensorwise import Tensorwise, wide, zeros_of

__all__ = ["Adafactor"]


def __dir__() -> list[str]:
    return sorted(__all__)


@algorithm
class Adafactor(Tensorwise):
    """p = p - alpha * u, where u is the gradient divided by the root of a factored average of squares.

    From the gradient g (-g with `maximize`), step number t computes, with (e1, e2) = `eps`,

        w = t ** beta2_decay
        r = r + w * (mean of g ** 2 over the last axis - r)
        c = c + w * (mean of g ** 2 over the last axis but one - c)
        v = r c / mean(r)
        u = g / sqrt(max(v, e1 ** 2))
        p = (1 - lr * weight_decay) * p - alpha * u / max(1, rms(u) / d)

    in place, where alpha is ``max(e2, rms(p)) * min(lr, 1 / sqrt(t))`` and rms the root of the mean square. For vectors
    and numbers, v is the average itself. e1 is the machine epsilon of p's dtype if it is None. `foreach` chooses among
    PyTorch's implementations; it is accepted, and makes no difference here.

    State, from the first step: `step` (t, a 0-d tensor), and `row_var` (r, the last axis of length 1) and `col_var` (c,
    the last but one of length 1), or `variance` (v).

    Raises `ValueError` if `lr`, `weight_decay` or an epsilon is negative, `beta2_decay` is positive or `d` is below 1;
    `RuntimeError` for complex parameters and sparse gradients.

    Source: Shazeer and Stern, Adafactor: Adaptive learning rates with sublinear memory cost, ICML 2018,
    https://arxiv.org/abs/1804.04235, in the form of
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Adafactor.html.

    >>> import pullback
    >>> x = pullback.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = pullback.optim.Adafactor([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> opt.step()
    >>> x, opt.state[x]["variance"]
    (tensor([ 1.2322, -2.2322], requires_grad=True), tensor([36., 64.]))
    """

    params: Params
    lr: float | Tensor = 1e-2
    beta2_decay: float = -0.8
    eps: tuple[float | None, float] = (None, 1e-3)
    d: float = 1.0
    weight_decay: float = 0.0
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False

    _order = "lr beta2_decay d weight_decay foreach maximize eps"

    def _prepare(self, options: Group) -> None:
        check_options("Adafactor", {name: value for name, value in options.items() if name != "eps"})
        check_option("Adafactor", "beta2_decay", options["beta2_decay"], Domain("zero or less", lambda v: v <= 0))
        check_option("Adafactor", "d", options["d"], Domain("one or more", lambda v: v >= 1))
        for i, one in enumerate(options["eps"]):
            if one is not None:
                check_option("Adafactor", f"eps[{i}]", one, NOT_NEGATIVE)

    _all_at_once = True

    def _shapes(self, param: Tensor, group: Group) -> Shapes:
        shape = param._data.shape
        if len(shape) > 1:
            return {"step": (), "row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}
        return {"step": (), "variance": shape}

    def _advance(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        values, g = memory_of(p._data), wide(memory_of(grad._data))
        g = -g if group["maximize"] else g
        if not state:
            shapes: dict[str, Any] = dict(self._shapes(p, group))
            state |= {name: counter(0.0) if name == "step" else zeros_of(p, shape) for name, shape in shapes.items()}
        state["step"]._data += 1
        t = float(state["step"]._data)
        rate, (eps1, eps2) = number(group["lr"]), group["eps"]
        eps1 = finfo(p.dtype).eps if eps1 is None else eps1
        alpha = max(eps2, _rms(wide(values))) * min(rate, 1 / math.sqrt(t))
        if group["weight_decay"]:
            values *= values.dtype.type(1 - rate * group["weight_decay"])
        update = g / np.sqrt(np.maximum(_variance(g * g, state, t ** group["beta2_decay"], eps1), eps1 * eps1))
        step = alpha / max(1.0, _rms(update) / group["d"])
        values -= (step * update).astype(values.dtype)


def _variance(square: Array, state: dict[str, Any], weight: float, eps1: float) -> Array:
    """Update the average of squared gradients, and return it."""
    if "variance" in state:
        return _moved(state["variance"]._data, square, weight)
    row = _moved(state["row_var"]._data, _mean(square, -1), weight)
    column = _moved(state["col_var"]._data, _mean(square, -2), weight)
    return row * column / np.maximum(_mean(row, -2), eps1)


def _moved(mean: Array, target: Array, weight: float) -> Array:
    """``mean += weight * (target - mean)``, in place; returns the new mean."""
    mean += (weight * (target - mean)).astype(mean.dtype)
    return wide(mean)


def _mean(x: Array, axis: int) -> Array:
    """The mean over an axis, which is kept with length 1; 0 if it is empty."""
    found: Array = summed(x, axis, True) / max(x.shape[axis], 1)
    return found


def _rms(x: Array) -> float:
    """The root of the mean square; 0 of an empty array."""
    return float(np.linalg.norm(x)) / math.sqrt(x.size) if x.size else 0.0
