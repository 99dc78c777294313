"""Collectives on arrays: what MPI does, for any dtype and layout, with a time limit. No tensor, no gradient.

Everything is sent as contiguous memory. Numbers that MPI cannot add (float16, bfloat16) are added in float32. In a
group of one process every function is the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from .board import here
from .process_group import DistBackendError, Group

Array = np.ndarray[Any, Any]


class ReduceOp:
    """How `all_reduce` and its kin join the values of the ranks."""

    SUM = "SUM"
    AVG = "AVG"
    PRODUCT = "PRODUCT"
    MIN = "MIN"
    MAX = "MAX"


_NAMES = {"SUM": "SUM", "AVG": "SUM", "PRODUCT": "PROD", "MIN": "MIN", "MAX": "MAX"}


def need_for_each(what: str, tensors: Any, ranks: int) -> Sequence[Any]:
    """A list with something for each rank; TypeError for another kind, ValueError for another number."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(errors.message(what, expected="a list of tensors", found=errors.describe(tensors)))
    if len(tensors) != ranks:
        raise ValueError(errors.message(what, expected=f"a tensor for each of {ranks} ranks", found=str(len(tensors))))
    return tensors


def need_op(what: str, op: Any, dtype: np.dtype[Any]) -> None:
    """Refuse a `ReduceOp` that does not exist, or that the dtype has not."""
    if op not in _NAMES:
        raise ValueError(
            errors.message(f"{what}: op", expected="ReduceOp." + ", ReduceOp.".join(_NAMES), found=repr(op))
        )
    if dtype.kind == "c" and op in ("MIN", "MAX"):
        raise ValueError(
            errors.message(
                f"{what}: all_reduce does not support {op} on complex tensors", do="reduce abs(), or the parts"
            )
        )
    if op == "AVG" and dtype.kind not in "fcV":
        raise RuntimeError(
            errors.message(
                f"{what}: AVG of {dtype}", expected="a floating point or complex dtype", do="convert it first"
            )
        )
    if dtype.kind == "b" and op in ("SUM", "PRODUCT"):
        raise RuntimeError(
            errors.message(
                f"{what}: {op} of bool", expected="numbers, or MAX (any) and MIN (all)", do="convert it: t.int()"
            )
        )


def contiguous(array: Array) -> Array:
    """The same numbers in contiguous memory; a 0-d array stays one."""
    return array if array.flags.c_contiguous else array.copy(order="C")


def raw(array: Array) -> Array:
    """The bytes of a contiguous array, on the same memory."""
    return array.reshape(-1).view(np.uint8)


def all_reduce(group: Group, array: Array, op: str, what: str) -> Array:
    """The sum (or another join) over the ranks, on each, in new memory."""
    if group.comm is None or not array.size:
        return array.copy()
    given = addable(array)
    found = np.empty_like(given)
    how = mpi_op(group, op)
    group.finish(what, lambda: group.comm.Iallreduce(given, found, how))
    return joined(group, found, array.dtype, op)


def addable(array: Array) -> Array:
    """The same numbers, contiguous, in a dtype that MPI computes with."""
    if array.dtype.kind == "V" or array.dtype.char == "e":
        return array.astype(np.float32, order="C")
    return contiguous(array).view(np.uint8) if array.dtype.kind == "b" else contiguous(array)


def mpi_op(group: Group, op: str) -> Any:
    """MPI's operation for a `ReduceOp`."""
    return getattr(group.world.mpi, _NAMES[op])


def joined(group: Group, found: Array, dtype: np.dtype[Any], op: str) -> Array:
    """What MPI found, in the dtype of the tensor; for AVG divided by the number of ranks."""
    if op == "AVG":
        found /= group.size
    return found.view(np.bool_) if dtype.kind == "b" else found.astype(dtype, copy=False)


def reduce(group: Group, array: Array, dst: int, op: str, what: str) -> Array:
    """The same, on one rank; zeros on the others."""
    if group.comm is None or not array.size:
        return array.copy()
    given = addable(array)
    found = np.zeros_like(given)
    target = found if group.rank == dst else None
    how = mpi_op(group, op)
    group.finish(what, lambda: group.comm.Ireduce(given, target, how, dst))
    return joined(group, found, array.dtype, op)


def broadcast(group: Group, array: Array, src: int, what: str) -> Array:
    """The array of one rank, on each."""
    found = array.copy(order="C")
    if group.comm is not None and found.size:
        group.finish(what, lambda: group.comm.Ibcast(raw(found), src))
    return found


def all_gather(group: Group, array: Array, what: str, shapes: Sequence[Any] = ()) -> list[Array]:
    """The arrays of all ranks, on each. shapes: theirs, if they are not alike."""
    if shapes and group.comm is not None:
        parts = [np.empty(shape, array.dtype) for shape in shapes]
        taken, sizes = np.empty(sum(a.nbytes for a in parts), np.uint8), [a.nbytes for a in parts]
        into = [taken, sizes, None, group.world.mpi.BYTE]
        group.finish(what, lambda: group.comm.Iallgatherv(raw(contiguous(array)), into))
        return _cut(taken, parts)
    if group.comm is None or not array.size:
        return [array.copy() for _ in range(group.size)]
    found = np.empty((group.size, *array.shape), array.dtype)
    group.finish(what, lambda: group.comm.Iallgather(raw(contiguous(array)), raw(found)))
    return list(found)


def gather(group: Group, array: Array, dst: int, what: str) -> list[Array]:
    """The arrays of all ranks on one; zeros on the others."""
    found = np.zeros((group.size, *array.shape), array.dtype)
    if group.comm is None or not array.size:
        found[...] = array
    else:
        target = raw(found) if group.rank == dst else None
        group.finish(what, lambda: group.comm.Igather(raw(contiguous(array)), target, dst))
    return list(found)


def scatter(group: Group, arrays: Sequence[Array], src: int, what: str) -> Array:
    """The array that one rank has for this one."""
    if group.comm is None or not arrays[0].size:
        return arrays[group.rank].copy()
    found = np.empty(arrays[0].shape, arrays[0].dtype)
    given = raw(np.stack(arrays)) if group.rank == src else None
    group.finish(what, lambda: group.comm.Iscatter(given, raw(found), src))
    return found


def reduce_scatter(group: Group, arrays: Sequence[Array], op: str, what: str) -> Array:
    """The join over the ranks of the arrays that they have for this one."""
    parts = all_to_all(group, arrays, [(a.shape, a.dtype) for a in [arrays[group.rank]] * group.size], what)
    join = {"SUM": np.add, "AVG": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum}[op]
    found = join.reduce(np.stack(parts), axis=0, dtype=parts[0].dtype)
    return np.asarray(found / group.size if op == "AVG" else found, parts[0].dtype)


def all_to_all(group: Group, arrays: Sequence[Array], kinds: Sequence[Any], what: str) -> list[Array]:
    """What each rank has for this one. kinds: the shapes and dtypes of these."""
    if group.comm is None:
        return [a.copy() for a in arrays]
    found = [np.empty(shape, dtype) for shape, dtype in kinds]
    given = np.concatenate([raw(contiguous(a)) for a in arrays])
    taken = np.empty(sum(a.nbytes for a in found), np.uint8)
    sizes, lengths = [a.nbytes for a in arrays], [a.nbytes for a in found]
    byte = group.world.mpi.BYTE
    group.finish(what, lambda: group.comm.Ialltoallv([given, sizes, None, byte], [taken, lengths, None, byte]))
    return _cut(taken, found)


def _cut(taken: Array, into: list[Array]) -> list[Array]:
    """The bytes that have come, written into arrays one after the other."""
    start = 0
    for a in into:
        raw(a)[...] = taken[start : start + a.nbytes]
        start += a.nbytes
    return into


def exchange(group: Group, array: Array, dst: int | None, src: int | None, what: str, compared: bool = True) -> Array:
    """Send to one rank and receive an array of the same kind from another; zeros where there is no sender.

    compared: whether it is known that all have the same kind. DistBackendError if another comes; the others do not know
    of it, so nothing can be sent in the group any more.
    """
    found = np.zeros(array.shape, array.dtype)
    if group.comm is None:
        return array.copy() if dst == src == 0 else found
    said = group.say(what)
    given, none = contiguous(array), group.world.mpi.PROC_NULL
    to, fro = (none if rank is None else rank for rank in (dst, src))
    sent = Parcel(group, given, to, 1, said, sends=True, asked=False, told=not compared)
    coming = Parcel(group, found, fro, 1, said, sends=False, asked=not compared, told=False)
    for parcel in (coming, sent):
        group.wait(parcel, said)
    try:
        coming.check()
    except DistBackendError as error:
        group.broken = str(error).partition(chr(10))[0]
        raise
    return found


class Parcel:
    """An array on its way to a rank, or from one, as a request, beside which the two tell each other what it is.

    array: what is sent, or the memory for what comes. told: whether this rank says what it has; asked: whether the
    other does. So both know if these differ, and neither waits for the other then. refused: what this rank says instead
    of what it has, where it has refused its own call.
    """

    def __init__(
        self,
        group: Group,
        array: Array,
        rank: int,
        tag: int,
        said: str,
        sends: bool,
        asked: bool = True,
        told: bool = True,
        refused: str = "",
    ) -> None:
        self._group, self._rank, self._said, self._sends, self._mpi = group, rank, said, sends, group.world.mpi
        self._own = _described(refused or f"{array.dtype}{list(array.shape)}")
        self._theirs = np.zeros(_SAID, np.uint8) if asked else self._own
        tags = 2 * tag, 2 * tag + 1  # of what a sender says, and of what a receiver says
        self._requests = [group.control.Isend(self._own, rank, tags[not sends])] if told else []
        if asked:
            self._requests.append(group.control.Irecv(self._theirs, rank, tags[sends]))
        start = group.comm.Isend if sends else group.comm.Irecv
        self._requests.append(start(raw(array), rank, tag))

    def Test(self) -> bool:  # noqa: N802 - as MPI's requests have it
        """Whether it has come."""
        self._requests = [request for request in self._requests if not self._ended(request)]
        return not self._requests

    def _ended(self, request: Any) -> bool:
        try:
            return bool(request.Test())
        except self._mpi.Exception as error:
            if error.Get_error_class() != self._mpi.ERR_TRUNCATE:
                raise
            return True  # there was more than has place, and both are told so

    def check(self) -> None:
        """DistBackendError if the other rank has said something else."""
        if self._rank != self._mpi.PROC_NULL and not np.array_equal(self._own, self._theirs):
            own, theirs = (said.tobytes().rstrip(b"\0").decode(errors="ignore") for said in (self._own, self._theirs))
            if theirs.startswith(_REFUSES):
                raise DistBackendError(
                    errors.message(f"{self._said}: rank {self._group.ranks[self._rank]} {theirs}", do="mend its call")
                )
            raise DistBackendError(
                errors.message(
                    f"{self._said}: rank {self._group.ranks[self._rank]} {'expects' if self._sends else 'has sent'} "
                    "other data",
                    expected=theirs if self._sends else own,
                    found=own if self._sends else theirs,
                    do="have both ranks give tensors of one dtype and shape",
                )
            )


_SAID = 256
"""The bytes of what ranks tell each other of an array."""

_REFUSES = "refuses "

_KEPT: list[Parcel] = []
"""What was sent to tell of a refusal, and is not waited for."""


def _described(text: str) -> Array:
    return np.frombuffer(text.encode()[:_SAID].ljust(_SAID, b"\0"), np.uint8)


def tell_other(group: Group, rank: int, tag: int, what: str, error: Exception, sends: bool) -> None:
    """Tell the rank that this one sends to, or receives from, what this one is about to raise; it raises as well."""
    if group.comm is not None:
        said = f"{_REFUSES}{what} at {here()}: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        none = np.zeros(0, np.uint8)
        _KEPT[:] = [parcel for parcel in _KEPT if not parcel.Test()]
        _KEPT.append(Parcel(group, none, rank, tag, group.say(what), sends, refused=said))
