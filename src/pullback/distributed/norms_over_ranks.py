"""Norms of what is spread over ranks, and clipping by them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import errors
from ..tensor.tensor import Tensor, wrap
from . import messages
from .process_group import Group, group_of


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, *, group: Group | None = None
) -> Tensor:
    """Scale gradients so that the norm of all of them, on all ranks together, is at most `max_norm`; the norm before.

    For parameters that are others on each rank. Where every rank has the same gradients, as with
    `DistributedDataParallel`, `nn.utils.clip_grad_norm_` is the one to use: here they would count once for each rank.
    norm_type: the order p of ``sum(|g|^p)^(1/p)``, at least 1 or infinity.
    """
    found = group_of(group)
    if not norm_type >= 1:
        raise ValueError(errors.message("clip_grad_norm_(): norm_type", expected="at least 1", found=str(norm_type)))
    params = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [p._grad for p in params if p._grad is not None]
    sizes: list[Any] = [np.abs(g._data).astype(np.float64).ravel() for g in grads]
    if math.isinf(norm_type):
        own = max([float(s.max()) for s in sizes if s.size], default=0.0)
        total = float(messages.all_reduce(found, np.array(own), "MAX", "clip_grad_norm_()"))
    else:
        own = sum(float((s**norm_type).sum()) for s in sizes)
        total = float(messages.all_reduce(found, np.array(own), "SUM", "clip_grad_norm_()")) ** (1 / norm_type)
    factor = min(1.0, max_norm / (total + 1e-6))
    for g in grads:
        g._data[...] = g._data * factor
        g._bump()
    return wrap(np.array(total))
