"""Softmax and its relatives as functions of networks: they choose an axis if none is given, or draw at random."""

from __future__ import annotations

import warnings
from typing import Any

from ... import errors
from ...ops.elementwise.softmax import NO_AXES, OVERFLOWS, along_an_axis, log_softmax, of_nothing, softmax
from ...ops.make.generators import generator_for
from ...ops.make.of_size import arange
from ...ops.make.random import exponential
from ...table.entry import alias, composite
from ...tensor.arrays import wrap_axis
from ...tensor.tensor import Tensor
from .arguments import floating, tensors


def _chosen_dim(name: str, dim: int | None, input: Tensor) -> int:
    """The axis that torch takes if none is given."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=errors.callers_level(),
    )
    return 0 if input._data.ndim in (0, 1, 3) else 1


def _of(call: Any, input: Tensor, dim: int, dtype: Any) -> Any:
    """A softmax, with a dtype if there is one: arguments without names are looked at faster."""
    return call(input, dim) if dtype is None else call(input, dim, dtype=dtype)


@composite(
    home="nn.functional", fused=True, samples=along_an_axis, kinks=OVERFLOWS, refused=NO_AXES, differs=of_nothing
)
def softmax_(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size."""
    return _of(softmax, input, _chosen_dim("softmax", dim, input), dtype)


@composite(
    home="nn.functional", fused=True, samples=along_an_axis, kinks=OVERFLOWS, refused=NO_AXES, differs=of_nothing
)
def log_softmax_(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim`."""
    return _of(log_softmax, input, _chosen_dim("log_softmax", dim, input), dtype)


@composite(
    home="nn.functional", fused=True, samples=along_an_axis, kinks=OVERFLOWS, refused=NO_AXES, differs=of_nothing
)
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """`softmax` of ``-input``."""
    return softmax(-input, _chosen_dim("softmin", dim, input), dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A differentiable choice along `dim`, drawn with the probabilities ``softmax(logits)``.

    It is the softmax of ``(logits + noise) / tau`` with Gumbel noise (Jang et al. 2017, arXiv:1611.01144). The smaller
    `tau` is, the nearer the result is to 0 and 1. hard: the result is 0 or 1, with the derivative of the softmax.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=errors.callers_level())
    tensors("gumbel_softmax", logits=logits)
    floating("gumbel_softmax", logits)
    waits = exponential(logits._data.shape, logits._data.dtype, generator_for(logits))
    soft = softmax((logits - waits.log()) / tau, dim)
    if not hard:
        return soft
    axis = wrap_axis(dim, logits._data.ndim)
    chosen = soft.max(axis, keepdim=True)[1]
    positions = arange(logits.size(axis), device=logits.device).reshape(-1, *[1] * (logits._data.ndim - axis - 1))
    return (positions == chosen).to(soft.dtype) - soft.detach() + soft


alias("nn.functional.gumbel_softmax", gumbel_softmax)
