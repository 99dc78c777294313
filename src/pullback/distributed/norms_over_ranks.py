"""Products and norms of what is spread over ranks, and clipping by them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import errors
from ..autograd.node import leaf_edge
from ..ops import NAMES
from ..table.levels import memory_of
from ..tensor.tensor import Tensor, need_tensor, wrap
from . import messages
from .data_parallel import SUMMED
from .meeting import Refusals, compare
from .moves import AllGather, AllReduce, move
from .placements import is_placed, placed_on
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
    how = AllGather(placed_on(own, group), f"norm(ord={float(ord)})")
    return of(NAMES[""]["stack"](move(how, own)), ord)


def _need_order(what: str, order: float) -> None:
    if not order >= 1:
        raise ValueError(errors.message(what, expected="at least 1", found=str(order)))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, *, group: Group | None = None
) -> Tensor:
    """Scale gradients so that the norm of all of them, on all ranks together, is at most `max_norm`; the norm before.

    The gradients of varying parameters are others on each rank, and all count. Those that are the same on every rank
    count once: of replicated parameters, and of the module of a `DistributedDataParallel`. (Gradients that a program
    has made the same by itself count once for each rank: `nn.utils.clip_grad_norm_` is the one for these.)
    norm_type: the order p of ``sum(|g|^p)^(1/p)``, at least 1 or infinity.

    RuntimeError: parameters of another group.
    """
    found = group_of(group)
    with Refusals(found, "clip_grad_norm_()"):
        _need_order("clip_grad_norm_(): norm_type", norm_type)
        params = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        grads = [(p, need_tensor("clip_grad_norm_()", p)._grad) for p in params]
        given = [(g, _is_shared(p, found)) for p, g in grads if g is not None]
    same = [[*g.shape] for g, once in given if once]
    compare(found, "clip_grad_norm_()", f"clip_grad_norm_() {max_norm} {norm_type}, replicated {same}", False)
    arrays = [(memory_of(g._data), shared) for g, shared in given]
    join, op, last = (max, "MAX", 1.0) if math.isinf(norm_type) else (math.fsum, "SUM", 1 / norm_type)
    own, once = (join([0.0, *(_size(a, norm_type) for a, shared in arrays if shared is of)]) for of in (False, True))
    total = join([float(messages.all_reduce(found, np.array(own), op, "clip_grad_norm_()")), once]) ** last
    factor = min(1.0, max_norm / (total + 1e-6))
    for (g, _), (a, _) in zip(given, arrays, strict=True):
        a[...] = a * factor
        g._bump()
    return wrap(np.array(total))


def _is_shared(p: Tensor, group: Group) -> bool:
    """Whether the gradient of a parameter is the same on every rank of a group."""
    theirs = p._data.level.group if is_placed(p) else SUMMED.get(leaf_edge(p)[0])
    if theirs not in (None, group):
        raise RuntimeError(
            errors.message(
                "clip_grad_norm_()",
                expected=f"parameters of {group}",
                found=f"one whose gradient is the same on {theirs}",
                do="pass group=, or clip it by nn.utils.clip_grad_norm_",
            )
        )
    return theirs is not None


def _size(a: np.ndarray[Any, Any], order: float) -> float:
    """The sum of ``|a|^order``, or for infinity the greatest."""
    size = np.abs(a).astype(np.float64)
    return float(size.max(initial=0.0) if math.isinf(order) else (size**order).sum())
