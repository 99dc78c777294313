"""Differentiable collectives, at torch's path: each returns new tensors, and has all derivatives in both modes.

Every rank of the group calls them, with tensors of one dtype and shape. What they take and give, and so what their
gradients are, follows from the placements of tensors:

| function | takes | gives | gradient with respect to what it took |
| --- | --- | --- | --- |
| `all_reduce` | varying or partial | replicated | the gradient of the result, as it is |
| `broadcast` | varying | replicated | that of the result on `src`, zeros elsewhere |
| `all_gather` | varying | replicated | this rank's part of the result's |
| `reduce` | varying | varying: the sum on `dst`, zeros elsewhere | that of the result on `dst` |
| `gather` | varying | varying: all on `dst`, zeros elsewhere | this rank's part of the result's on `dst` |
| `scatter` | varying | varying | the gradients of all ranks on `src`, zeros elsewhere |
| `reduce_scatter` | varying | varying | the gradient of each part, from the rank that has it |
| `all_to_all` | varying | varying | sent back to where it came from |
| `sendrecv` | varying | varying | sent back |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import errors
from ...ops import NAMES
from ...tensor.tensor import Tensor, need_tensor
from .. import moves
from ..meeting import Refusals, gathered_objects, need_fitting, tell_refused
from ..messages import ReduceOp, need_for_each, need_op
from ..moves import group_for, move
from ..placements import PARTIAL, placement
from ..process_group import Group, group_of


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Group | None = None) -> Tensor:
    """The sum over the ranks (or their mean, product, greatest, least), replicated.

    tensor: varying, of any shape; or partial, for SUM and AVG. op: of `ReduceOp`. The gradient with respect to `tensor`
    is that of the result: the same on every rank, and not multiplied by the number of ranks. PRODUCT, MAX and MIN
    gather the tensors of all ranks; where several are the greatest, they share the gradient, as in `amax`.

    RuntimeError: `tensor` is replicated already. ValueError: there is no such op, or not for the dtype.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> x = dist.varying(pullback.ones(3, requires_grad=True))
    >>> loss = dist.nn.functional.all_reduce((x * x).sum())
    >>> loss.backward()
    >>> loss, x.grad
    (tensor(3., placement='replicated'), tensor([2., 2., 2.]))
    >>> dist.destroy_process_group()

    See https://docs.pytorch.org/docs/stable/distributed.html.
    """
    found = group_for("all_reduce()", tensor, group)
    try:  # faster than `Refusals`
        need_op("all_reduce()", op, tensor._data.dtype)
    except Exception as error:
        tell_refused(found, "all_reduce()", error)
        raise
    if op in (ReduceOp.SUM, ReduceOp.AVG):
        kind = moves.SumParts if placement(tensor) == PARTIAL else moves.AllReduce
        how = found.sums.get((kind, op))
        if how is None:
            how = found.sums[kind, op] = kind(found, f"all_reduce({op})")
        total: Tensor = move(how, tensor)
        return total / found.size if op == ReduceOp.AVG else total
    name = {ReduceOp.PRODUCT: "prod", ReduceOp.MAX: "amax", ReduceOp.MIN: "amin"}[op]
    parts = move(moves.AllGather(found, f"all_reduce({op})"), tensor)
    return NAMES[""][name](NAMES[""]["stack"](parts), 0)


def broadcast(tensor: Tensor, src: int, group: Group | None = None) -> Tensor:
    """The tensor of rank `src`, replicated. tensor: varying, of the same shape on every rank."""
    found = group_for("broadcast()", tensor, group)
    with Refusals(found, "broadcast()"):
        root = found.rank_in(src, "broadcast()")
    return move(moves.Broadcast(found, "broadcast()", root), tensor)


def all_gather(tensor: Tensor, group: Group | None = None, *, uneven: bool = False) -> tuple[Tensor, ...]:
    """The tensors of all ranks, in their order, each replicated.

    uneven: their shapes may differ; ranks tell each other by a further message. Without it that is an error.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> dist.nn.functional.all_gather(pullback.ones(dist.get_rank() + 1), uneven=True)
    (tensor([1.], placement='replicated'),)
    >>> dist.destroy_process_group()
    """
    found = group_for("all_gather()", tensor, group)
    if not uneven:
        return move(moves.AllGather(found, "all_gather()"), tensor)
    shapes = tuple(gathered_objects(found, tuple(tensor.shape), "all_gather(), uneven"))
    return move(moves.GatherUneven(found, "all_gather()", shapes), tensor)


def all_gather_into_tensor(tensor: Tensor, group: Group | None = None, *, uneven: bool = False) -> Tensor:
    """The tensors of all ranks, joined along their first axis, replicated. tensor: with at least one axis.

    uneven: the lengths of that axis may differ, as for `all_gather`.
    """
    found = group_for("all_gather_into_tensor()", tensor, group)
    with Refusals(found, "all_gather_into_tensor()"):
        if not tensor.ndim:
            raise RuntimeError(errors.message("all_gather_into_tensor()", expected="an axis", found="a 0-d tensor"))
    return NAMES[""]["cat"](all_gather(tensor, group, uneven=uneven))


def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: Group | None = None) -> Tensor:
    """The sum (or the mean) over the ranks, on rank `dst`; zeros on the others. tensor, result: varying.

    RuntimeError: another op; use `all_reduce`.
    """
    found = group_for("reduce()", tensor, group)
    with Refusals(found, "reduce()"):
        need_op("reduce()", op, tensor._data.dtype)
        _need_sum("reduce()", op)
        root = found.rank_in(dst, "reduce()")
    total: Tensor = move(moves.Reduce(found, "reduce()", root), tensor)
    return total / found.size if op == ReduceOp.AVG else total


def gather(tensor: Tensor, dst: int = 0, group: Group | None = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, in their order, on rank `dst`; zeros on the others. tensor, results: varying."""
    found = group_for("gather()", tensor, group)
    with Refusals(found, "gather()"):
        root = found.rank_in(dst, "gather()")
    return move(moves.Gather(found, "gather()", root), tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Group | None = None) -> Tensor:
    """The tensor that rank `src` has for this rank. tensors: one for each rank, of one shape; varying."""
    found = group_of(group)
    with Refusals(found, "scatter()"):
        given = _one_for_each("scatter()", tensors, found, alike=True)
        root = found.rank_in(src, "scatter()")
    return move(moves.Scatter(found, "scatter()", root), *given)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM, group: Group | None = None
) -> Tensor:
    """The sum (or the mean) over the ranks of the tensors that they have for this one.

    output: a tensor of the shape of the result; it is not written to. input_list: one for each rank; varying.
    """
    found = group_of(group)
    with Refusals(found, "reduce_scatter()"):
        need_tensor("reduce_scatter()", output)
        given = _one_for_each("reduce_scatter()", input_list, found, alike=True)
        need_op("reduce_scatter()", op, given[0]._data.dtype)
        _need_sum("reduce_scatter()", op)
        if output.shape != given[0].shape:
            raise ValueError(
                errors.message(
                    "reduce_scatter(): output", expected=f"shape {[*given[0].shape]}", found=f"{[*output.shape]}"
                )
            )
    total: Tensor = move(moves.ReduceScatter(found, "reduce_scatter()"), *given)
    return total / found.size if op == ReduceOp.AVG else total


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Group | None = None
) -> tuple[Tensor, ...]:
    """What each rank has for this one, in their order; varying.

    output_tensor_list: tensors of the shapes of the results; they are not written to. input_tensor_list: one for each
    rank, of any shapes. ValueError on every rank: the shapes do not fit to those that another rank sends.
    """
    found = group_of(group)
    with Refusals(found, "all_to_all()"):
        given = _one_for_each("all_to_all()", input_tensor_list, found)
        taken = _one_for_each("all_to_all()", output_tensor_list, found)
    sent, wanted = (tuple(tuple(t.shape) for t in tensors) for tensors in (given, taken))
    need_fitting(found, sent, wanted)
    return move(moves.AllToAll(found, "all_to_all()", sent, wanted), *given)


def sendrecv(tensor: Tensor, dst: int | None, src: int | None, group: Group | None = None) -> Tensor:
    """Send a tensor to rank `dst`, and receive one of the same shape from rank `src`; both varying.

    dst, src: None for no one; zeros are received from no one. Every rank of the group calls it, and each sends to the
    rank that receives from it. The gradient goes back the same way.
    """
    found = group_for("sendrecv()", tensor, group)
    with Refusals(found, "sendrecv()"):
        to, fro = (None if r is None else found.rank_in(r, "sendrecv()") for r in (dst, src))
    return move(moves.Exchange(found, "sendrecv()", to, fro), tensor)


def _need_sum(what: str, op: str) -> None:
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise RuntimeError(
            errors.message(what, expected="SUM or AVG, which have a derivative here", found=op, do="use all_reduce")
        )


def _one_for_each(what: str, tensors: Any, group: Group, alike: bool = False) -> list[Tensor]:
    """A list of tensors, one for each rank of the group and of one dtype."""
    found = [need_tensor(what, t) for t in need_for_each(what, tensors, group.size)]
    kinds = {(t.dtype, t.shape if alike else None) for t in found}
    if len(kinds) > 1:
        shown = ", ".join(errors.describe(t) for t in found)
        raise ValueError(errors.message(what, expected=f"tensors of one dtype{' and shape' * alike}", found=shown))
    return found


__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
    "sendrecv",
]


def __dir__() -> list[str]:
    return sorted(__all__)
