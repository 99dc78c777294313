"""`replicate`, `varying` and `partial`: a user's statements about what a tensor means to the ranks."""

from __future__ import annotations

import numpy as np

from .. import errors
from ..autograd.node import leaf_edge
from ..tensor.modes import thread
from ..tensor.tensor import Tensor, need_tensor, wrap
from .meeting import SAID, Refusals, compare, need_same_values
from .moves import ToParts, Vary, move
from .placements import PARTIAL, REPLICATED, VARYING, level_of, placed_on, placement
from .process_group import Group, group_of


def replicate(x: Tensor, group: Group | None = None) -> Tensor:
    """A new leaf with the values of `x`, as one value of all ranks; every rank calls it.

    x: a tensor that is the same on every rank; that is checked. It may require grad only as a leaf: the result then
    does, and its gradient is the same on every rank, too. RuntimeError: the ranks hold different values, or `x` was
    computed from tensors that require grad.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> w = dist.replicate(pullback.ones(3)).requires_grad_()
    >>> (w * w).sum().backward()
    >>> w.grad
    tensor([2., 2., 2.], placement='replicated')
    >>> dist.destroy_process_group()
    """
    found = group_of(group)
    if isinstance(x, Tensor) and placement(x) == REPLICATED:
        return x
    with Refusals(found, "replicate()"):
        data = need_tensor("replicate()", x)._data
        if not isinstance(data, np.ndarray):
            raise TypeError(
                errors.message("replicate()", expected="a tensor that holds an array", found=f"a {placement(x)} one")
            )
        if x._edge is not None and thread.modes.grad_enabled:
            raise RuntimeError(
                errors.message(
                    "replicate(): a tensor computed from tensors that require grad, whose gradient would be lost",
                    do="distributed.nn.functional.broadcast(x, 0), or all_reduce(x, op=ReduceOp.AVG), which have one",
                )
            )
    compare(found, "replicate()", f"replicate() {data.dtype}{list(data.shape)} {x.requires_grad}", False)
    need_same_values(found, data, "replicate()")
    made = level_of(found).place(wrap(data.copy()), REPLICATED)
    return made.requires_grad_() if x.requires_grad else made


def varying(x: Tensor, group: Group | None = None) -> Tensor:
    """The values of a replicated tensor as each rank's own, to be computed with differently on each.

    The gradient with respect to `x` is the sum over the ranks of theirs: backward adds them up. So every rank calls it.
    A tensor that is varying is returned as it is; of a leaf it is said by that, once, that each rank has its own, also
    where it has the same values on every rank. RuntimeError: `x` is partial.
    """
    if placement(need_tensor("varying()", x)) == VARYING:
        if x._edge is None:
            SAID.add(leaf_edge(x)[0])
        return x
    return move(Vary(placed_on(x, group), "varying()"), x)


def partial(x: Tensor, group: Group | None = None) -> Tensor:
    """A varying tensor as this rank's part of a sum, which `nn.functional.all_reduce` adds up later.

    Sums of partial tensors, products with numbers, and linear operations of one are partial. RuntimeError: `x` is
    replicated, or not of floating point or complex numbers.
    """
    if placement(need_tensor("partial()", x)) == PARTIAL:
        return x
    if x._data.dtype.kind not in "fcV":
        raise RuntimeError(
            errors.message("partial()", expected="floating point or complex numbers", found=errors.describe(x))
        )
    return move(ToParts(placed_on(x, group), "partial()"), x)
