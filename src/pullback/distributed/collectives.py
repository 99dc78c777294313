"""Collectives in place, under the names and with the arguments of `torch.distributed`: without gradients.

They write into memory that is given. So a tensor that requires grad is refused while operations are recorded, and so is
a placed one: what it means would no longer be true. `nn.functional` has the same collectives with gradients.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..tensor.modes import thread
from ..tensor.tensor import Lifted, Tensor, need_tensor
from . import messages
from .meeting import Refusals, compare, gathered_objects, need_fitting
from .messages import ReduceOp, need_for_each, need_op
from .process_group import Group, group_of

Array = np.ndarray[Any, Any]


_TAGS = 1 << 20


class Work:
    """A collective that has been started: `wait` ends it."""

    def __init__(
        self, group: Group, request: Any, said: str, memory: Any = None, end: Callable[[], None] = lambda: None
    ) -> None:
        self._group, self._request, self._said, self._memory, self._end = group, request, said, memory, end

    def is_completed(self) -> bool:
        """Whether it has ended; `wait` returns at once then."""
        return self._request is None or bool(self._request.Test())

    def wait(self) -> bool:
        """Wait until it has ended: until then nobody may read or write its tensors. True."""
        if self._request is not None:
            self._group.wait(self._request, self._said)
            self._end()
            self._request = None
        return True


def _array(what: str, t: Any, written: bool = True) -> Array:
    """The memory of a tensor, which may be written to."""
    need_tensor(what, t)
    name = what.removesuffix("()")
    if isinstance(t, Lifted) or not isinstance(t._data, np.ndarray):
        raise RuntimeError(
            errors.message(
                f"{what}: a tensor with a placement, or of a transform, is not written to by a collective",
                do=f"distributed.nn.functional.{name}, which returns new tensors",
            )
        )
    if t.requires_grad and thread.modes.grad_enabled:
        raise RuntimeError(
            errors.message(
                f"{what}: a tensor that requires grad, and a collective in place has no gradient",
                do=f"distributed.nn.functional.{name} for one that has, or write within pullback.no_grad()",
            )
        )
    if written and not t._data.flags.writeable:
        raise RuntimeError(errors.message(f"{what}: the tensor's memory is read-only", do="pass t.clone()"))
    return t._data


def _write(t: Tensor, array: Array) -> None:
    t._data[...] = array
    t._bump()


def _alike(what: str, tensors: Any, group: Group, like: Array | None = None) -> list[Array]:
    """The memory of a list of tensors, one for each rank, of one dtype (and the shape of `like`)."""
    found = [_array(what, t) for t in need_for_each(what, tensors, group.size)]
    for a in found:
        _need_like(what, a, found[0] if like is None else like, like is not None)
    return found


def _need_like(what: str, a: Array, like: Array, of_shape: bool = True) -> None:
    if a.dtype != like.dtype or (of_shape and a.shape != like.shape):
        raise ValueError(
            errors.message(
                what, expected=f"tensors of {like.dtype}{list(like.shape)}", found=f"{a.dtype}{list(a.shape)}"
            )
        )


def _agree(group: Group, what: str, array: Array, details: str = "") -> None:
    """DistBackendError on every rank unless all call the same, with tensors of one shape and dtype."""
    compare(group, what, f"{what} {array.dtype}{list(array.shape)} {details}", False)


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Group | None = None, async_op: bool = False) -> Any:
    """Replace a tensor by its sum over the ranks (or mean, product, least, greatest), on every rank.

    async_op: return a `Work` at once; the tensor has its new values after ``work.wait()``. Else None.
    """
    found = group_of(group)
    with Refusals(found, "all_reduce()"):
        data = _array("all_reduce()", tensor)
        need_op("all_reduce()", op, data.dtype)
    _agree(found, "all_reduce()", data, op)
    if not async_op or found.comm is None or not data.size:
        _write(tensor, messages.all_reduce(found, data, op, "all_reduce()"))
        return Work(found, None, "") if async_op else None
    given = messages.addable(data)
    taken = np.empty_like(given)
    said = found.say("all_reduce()")
    request = found.comm.Iallreduce(given, taken, messages.mpi_op(found, op))

    def end() -> None:
        _write(tensor, messages.joined(found, taken, data.dtype, op))

    return Work(found, request, said, (given, taken), end)


def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: Group | None = None) -> None:
    """Replace the tensor of rank `dst` by the sum over the ranks; the others keep theirs."""
    found = group_of(group)
    with Refusals(found, "reduce()"):
        data, root = _array("reduce()", tensor), found.rank_in(dst, "reduce()")
        need_op("reduce()", op, data.dtype)
    _agree(found, "reduce()", data, f"{op} rank {found.ranks[root]}")
    total = messages.reduce(found, data, root, op, "reduce()")
    if found.rank == root:
        _write(tensor, total)


def broadcast(tensor: Tensor, src: int, group: Group | None = None) -> None:
    """Replace a tensor by that of rank `src`."""
    found = group_of(group)
    with Refusals(found, "broadcast()"):
        data, root = _array("broadcast()", tensor), found.rank_in(src, "broadcast()")
    _agree(found, "broadcast()", data, f"rank {found.ranks[root]}")
    taken = messages.broadcast(found, data, root, "broadcast()")
    if found.rank != root:
        _write(tensor, taken)


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Group | None = None) -> None:
    """Write the tensors of all ranks into those of a list, in their order, and of their shapes, which may differ."""
    found = group_of(group)
    with Refusals(found, "all_gather()"):
        data = _array("all_gather()", tensor, written=False)
        parts = _alike("all_gather()", tensor_list, found)
        _need_like("all_gather()", parts[found.rank], data)
    shapes = [[*a.shape] for a in parts]
    compare(found, "all_gather()", f"all_gather() {data.dtype} of {shapes}", False)
    differ = any(shape != shapes[0] for shape in shapes)
    for t, a in zip(
        tensor_list, messages.all_gather(found, data, "all_gather()", shapes if differ else ()), strict=True
    ):
        _write(t, a)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Group | None = None) -> None:
    """Write the tensors of all ranks into one: joined along the first axis, or stacked along a new one."""
    found = group_of(group)
    with Refusals(found, "all_gather_into_tensor()"):
        data = _array("all_gather_into_tensor()", input_tensor, written=False)
        out = _array("all_gather_into_tensor()", output_tensor)
        if out.size != found.size * data.size or out.dtype != data.dtype:
            raise ValueError(
                errors.message(
                    "all_gather_into_tensor(): output_tensor",
                    expected=f"{data.dtype} with {found.size} * {data.size} elements",
                    found=errors.describe(output_tensor),
                )
            )
    _agree(found, "all_gather_into_tensor()", data)
    parts = messages.all_gather(found, data, "all_gather_into_tensor()")
    _write(output_tensor, np.stack(parts).reshape(out.shape))


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int = 0, group: Group | None = None
) -> None:
    """Write the tensors of all ranks into those of a list on rank `dst`. gather_list: None on the others."""
    found = group_of(group)
    with Refusals(found, "gather()"):
        data, root = _array("gather()", tensor, written=False), found.rank_in(dst, "gather()")
        _need_list("gather()", "gather_list", gather_list, found.rank == root)
        if gather_list is not None:
            _alike("gather()", gather_list, found, data)
    _agree(found, "gather()", data, f"rank {found.ranks[root]}")
    parts = messages.gather(found, data, root, "gather()")
    for t, a in zip(gather_list or (), parts, strict=False):
        _write(t, a)


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int = 0, group: Group | None = None
) -> None:
    """Write the tensor that rank `src` has for this rank into a tensor. scatter_list: None on the other ranks."""
    found = group_of(group)
    with Refusals(found, "scatter()"):
        data, root = _array("scatter()", tensor), found.rank_in(src, "scatter()")
        _need_list("scatter()", "scatter_list", scatter_list, found.rank == root)
        given = [data] * found.size if scatter_list is None else _alike("scatter()", scatter_list, found, data)
    _agree(found, "scatter()", data, f"rank {found.ranks[root]}")
    _write(tensor, messages.scatter(found, given, root, "scatter()"))


def _need_list(what: str, name: str, value: Any, wanted: bool) -> None:
    if wanted == (value is None):
        raise ValueError(
            errors.message(
                f"{what}: argument {name} must be specified on the one rank that it is for, and on no other",
                found="None there" if wanted else "a list on another rank",
            )
        )


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM, group: Group | None = None
) -> None:
    """Write the sum over the ranks of the tensors that they have for this one into `output`."""
    found = group_of(group)
    with Refusals(found, "reduce_scatter()"):
        data = _array("reduce_scatter()", output)
        given = _alike("reduce_scatter()", input_list, found, data)
        need_op("reduce_scatter()", op, data.dtype)
    _agree(found, "reduce_scatter()", data, op)
    _write(output, messages.reduce_scatter(found, given, op, "reduce_scatter()"))


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Group | None = None
) -> None:
    """Write what each rank has for this one into the tensors of a list; shapes may differ."""
    found = group_of(group)
    with Refusals(found, "all_to_all()"):
        given = _alike("all_to_all()", input_tensor_list, found)
        taken = _alike("all_to_all()", output_tensor_list, found)
    compare(found, "all_to_all()", f"all_to_all() {given[0].dtype} into {taken[0].dtype}", False)
    need_fitting(found, [a.shape for a in given], [a.shape for a in taken])
    parts = messages.all_to_all(found, given, [(a.shape, a.dtype) for a in taken], "all_to_all()")
    for t, part in zip(output_tensor_list, parts, strict=True):
        _write(t, part)


def isend(tensor: Tensor, dst: int, group: Group | None = None, tag: int = 0) -> Work:
    """Start to send a tensor to rank `dst`; the `Work` ends when that rank has begun to receive it.

    Until then nobody may write to its memory. tag: a number from 0 to 2**20, which `irecv` has to give as well.
    DistBackendError from ``work.wait()`` on both ranks if the one that receives has another shape or dtype.
    """
    found = group_of(group)
    data, to = _ours("isend()", tensor, dst, found, tag, sends=True)
    given = messages.contiguous(data)  # the work keeps it until it has ended
    said = found.say(f"isend() to rank {dst}")
    sending = messages.Parcel(found, given, to, tag, said, sends=True)
    return Work(found, sending, said, given, sending.check)


def irecv(tensor: Tensor, src: int, group: Group | None = None, tag: int = 0) -> Work:
    """Start to receive a tensor from rank `src`, which has its values when the `Work` has ended.

    It has the shape and the dtype of what is sent: DistBackendError from ``work.wait()`` on both ranks else.
    """
    found = group_of(group)
    data, fro = _ours("irecv()", tensor, src, found, tag, sends=False)
    into = np.empty(data.shape, data.dtype)
    said = found.say(f"irecv() from rank {src}")
    coming = messages.Parcel(found, into, fro, tag, said, sends=False)

    def end() -> None:
        coming.check()
        _write(tensor, into)

    return Work(found, coming, said, into, end)


def send(tensor: Tensor, dst: int, group: Group | None = None, tag: int = 0) -> None:
    """Send a tensor to rank `dst`, and wait until that rank receives it."""
    isend(tensor, dst, group, tag).wait()


def recv(tensor: Tensor, src: int, group: Group | None = None, tag: int = 0) -> int:
    """Receive a tensor of the same shape and dtype from rank `src`, which is returned."""
    irecv(tensor, src, group, tag).wait()
    return src


def _ours(what: str, t: Any, rank: int, group: Group, tag: Any, sends: bool) -> tuple[Array, int]:
    """The memory of a tensor that is sent or received, and the number of the other rank, which is told of a refusal."""
    other = group.rank_in(rank, what)
    _need_other(what, group, other, "destination" if sends else "source", tag)
    try:
        return _array(what, t, written=not sends), other
    except Exception as error:
        messages.tell_other(group, other, tag, what, error, sends)
        raise


def _need_other(what: str, group: Group, rank: int, name: str, tag: Any) -> None:
    if not isinstance(tag, int) or not 0 <= tag <= _TAGS:
        raise ValueError(errors.message(f"{what}: tag", expected=f"an int from 0 to {_TAGS}", found=repr(tag)))
    if rank == group.rank:
        raise ValueError(
            errors.message(
                f"{what}: Invalid {name} rank: {name} rank should not be the same as the rank of this process"
            )
        )


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Group | None = None) -> None:
    """Replace the objects in a list by those of rank `src`. They are pickled; lists are equally long on all ranks."""
    found = group_of(group)
    with Refusals(found, "broadcast_object_list()"):
        root = found.rank_in(src, "broadcast_object_list()")
        if not isinstance(object_list, list):
            raise TypeError(
                errors.message("broadcast_object_list()", expected="a list", found=errors.describe(object_list))
            )
        data = np.frombuffer(pickle.dumps(object_list) if found.rank == root else b"", np.uint8)
    compare(found, "broadcast_object_list()", f"broadcast_object_list() of {len(object_list)} objects", False)
    if found.comm is None:
        return
    length = messages.broadcast(found, np.array(data.size), root, "broadcast_object_list()")
    taken = data if found.rank == root else np.empty(int(length), np.uint8)
    taken = messages.broadcast(found, taken, root, "broadcast_object_list()")
    if found.rank != root:
        object_list[:] = pickle.loads(taken.tobytes())


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Write the objects of all ranks into a list, in their order. They are pickled."""
    found = group_of(group)
    with Refusals(found, "all_gather_object()"):
        if not isinstance(object_list, list) or len(object_list) != found.size:
            raise ValueError(
                errors.message(
                    "all_gather_object(): object_list",
                    expected=f"a list with a place for each of {found.size} ranks",
                    found=errors.describe(object_list),
                )
            )
    object_list[:] = gathered_objects(found, obj, "all_gather_object()")
