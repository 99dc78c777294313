"""Products and norms of what is spread over ranks, and clipping by them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import errors
from ..ops import NAMES
from ..tensor.tensor import Tensor, need_tensor, wrap
from . import messages
from .meeting import Refusals, compare
from .moves import AllGather, AllReduce, move
from .placements import VARYING, placed_on, placement
from .process_group import Group, group_of


def dot(a: Tensor, b: Tensor, *, group: Group | None = None) -> Tensor:
    """``sum(a * b)`` over all elements of all ranks, replicated. a, b: varying, of one shape on each rank."""
    return _product("dot()", a, b, group)


def vdot(a: Tensor, b: Tensor, *, group: Group | None = None) -> Tensor:
    """``sum(conj(a) * b)`` over all elements of all ranks, replicated: the inner product of complex vectors."""
    return _product("vdot()", need_tensor("vdot()", a).conj(), b, group)


def _product(what: str, a: Tensor, b: Tensor, group: Group | None) -> Tensor:
    with Refusals(group_of(group), what):
        if need_tensor(what, a).shape != need_tensor(what, b).shape:
            shapes = f"{[*a.shape]} and {[*b.shape]}"
            raise RuntimeError(errors.message(what, expected="two tensors of one shape on this rank", found=shapes))
        total = (a * b).sum()
    return move(AllReduce(placed_on(total, group), what), total)


def norm(x: Tensor, ord: float = 2.0, *, group: Group | None = None) -> Tensor:
    """``sum(|x|^ord)^(1/ord)`` over all elements of all ranks, replicated.

    x: varying; shapes may differ. ord: at least 1, or infinity. The gradient at zeros is 0, as of `linalg.vector_norm`.

    ValueError: another order.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> dist.norm(pullback.tensor([3.0, 4.0]))
    tensor(5., placement='replicated')
    >>> dist.destroy_process_group()
    """
    of = NAMES["linalg"]["vector_norm"]
    with Refusals(group_of(group), "norm()"):
        _need_order("norm(): ord", ord)
        own = of(need_tensor("norm()", x), ord) if x.numel() else x.abs().sum()
    return of(NAMES[""]["stack"](move(AllGather(placed_on(own, group), "norm()"), own)), ord)


def _need_order(what: str, order: float) -> None:
    if not order >= 1:
        raise ValueError(errors.message(what, expected="at least 1", found=str(order)))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, *, group: Group | None = None
) -> Tensor:
    """Scale gradients so that the norm of all of them, on all ranks together, is at most `max_norm`; the norm before.

    For parameters that are others on each rank. Where every rank has the same gradients, as with
    `DistributedDataParallel`, `nn.utils.clip_grad_norm_` is the one to use: here they would count once for each rank.
    norm_type: the order p of ``sum(|g|^p)^(1/p)``, at least 1 or infinity.
    """
    found = group_of(group)
    _need_order("clip_grad_norm_(): norm_type", norm_type)
    with Refusals(found, "clip_grad_norm_()"):
        grads = _varying_gradients(parameters)
    compare(found, "clip_grad_norm_()", f"clip_grad_norm_() {max_norm} {norm_type}", False)
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


def _varying_gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    params = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [p._grad for p in params if p._grad is not None]
    if placed := [kind for g in grads if (kind := placement(g)) != VARYING]:
        raise RuntimeError(
            errors.message(
                "clip_grad_norm_()",
                expected="varying gradients, others on each rank",
                found=f"{placed[0]} ones",
                do="nn.utils.clip_grad_norm_(parameters, max_norm), which has the norm of one rank's",
            )
        )
    return grads
