"""Reductions of the losses of single elements: their mean, their sum, or none."""

from __future__ import annotations

import warnings
from typing import Any

from .... import errors
from ....ops.reduce import sums
from ....tensor.tensor import Tensor
from ..arguments import refuse


def chosen_reduction(name: str, reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """The reduction, which torch's older arguments may choose; called directly by the body of a loss."""
    if size_average is not None or reduce is not None:
        average, one = size_average is None or size_average, reduce is None or reduce
        reduction = ("mean" if average else "sum") if one else "none"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=errors.callers_level(),
        )
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=errors.callers_level(),
        )
        return "mean"
    if reduction not in ("mean", "sum", "none"):
        raise refuse(name, "reduction 'mean', 'sum' or 'none'", repr(reduction), error=ValueError)
    return reduction


def reduced(values: Tensor, reduction: str) -> Tensor:
    """The mean of the values, their sum, or the values themselves."""
    if reduction == "none":
        return values
    return sums.mean(values) if reduction == "mean" else sums.sum(values)


def warn_of_broadcast(name: str, input: Tensor, target: Tensor) -> None:
    """Warn if the shapes of a target and of the prediction differ; called directly by a loss."""
    if input._data.shape != target._data.shape:
        warnings.warn(
            f"{name}(): the target, of size {list(target._data.shape)}, is broadcast with an input of size "
            f"{list(input._data.shape)}, which is seldom what is meant.\n  What to do: give them the same size.",
            stacklevel=errors.callers_level(),
        )
