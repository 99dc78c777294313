"""A trace without what it computes twice or for nothing, in which rows of a buffer are read where they come from.

A loop that fills a buffer (``out[t] = h``) has a new buffer after each write, in a trace and in its backward pass. A
part that is read of one, and that the write before did not touch, is read of the buffer before that; a part that is
read as it was written is what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..interpreters.traced import Entry, Ref, Trace
from ..ops.shape.slices import getitem
from ..table.writing import Through
from .steps_alone import numbers
from .trace.lower import replaced
from .trace.program import Slot, key_of

_SMALL = 512
"""Constants of at most so many elements are compared with one another."""


def subscripts_of_write(entry: Entry) -> tuple[Any, ...] | None:
    """The subscripts of a write to a part of a tensor; None if the entry is none, or goes through several views."""
    if entry.op is not Through.op or len(entry.args[2]) != 1:
        return None
    ((op, (*args,)),) = entry.args[2]
    return args[0] if op is getitem.op else None


def simplified(
    level: Trace, constants: Iterable[int], roots: Callable[[], Iterable[int]], same: dict[int, int]
) -> list[Entry]:
    """The entries that are needed.

    constants: the numbers of tensors from outside that never change. roots: the numbers that are needed. same: gets the
    number that stands for each one which is left out.
    """
    known: dict[Any, Any] = {}
    for n in sorted(constants):
        a = level.examples[n]
        if a.size <= _SMALL and (first := known.setdefault((a.shape, a.dtype, a.tobytes()), n)) != n:
            same[n] = first
    writes: dict[int, tuple[Entry, tuple[Any, ...]]] = {}
    found = []
    for entry in level.entries:
        entry = renamed(entry, same)
        if entry.op is getitem.op:
            entry = _read(level, entry, writes, same)
            if entry.results[0] in same:
                continue
        elif (parts := subscripts_of_write(entry)) is not None:
            writes[entry.results[0]] = entry, parts
        key = (entry.op, key_of(replaced((entry.args, entry.kwargs), lambda ref: Slot(ref.number))))
        try:
            earlier = entry if entry.op is None else known.setdefault(key, entry)
        except TypeError:  # arguments that cannot be compared
            earlier = entry
        if earlier is entry:
            found.append(entry)
        else:
            same.update(zip(entry.results, earlier.results, strict=True))
    return _needed(found, roots())


def renamed(entry: Entry, same: dict[int, int]) -> Entry:
    """An entry with the numbers that stand for those of its arguments."""
    if same.keys().isdisjoint(numbers((entry.args, entry.kwargs))):
        return entry
    args, kwargs = replaced((entry.args, entry.kwargs), lambda ref: Ref(now(ref.number, same)))
    return entry._replace(args=args, kwargs=kwargs)


def now(n: int, same: dict[int, int]) -> int:
    """The number that stands for one."""
    while n in same:
        n = same[n]
    return n


def _read(level: Trace, entry: Entry, writes: dict[int, tuple[Entry, tuple[Any, ...]]], same: dict[int, int]) -> Entry:
    """A part, read of the earliest buffer that has it; or noted as the same as what was written."""
    ref, parts = entry.args
    n = ref.number
    while n in writes:
        write, written = writes[n]
        shape = level.examples[n].shape
        if not _apart(parts, written, shape):
            value = write.args[1]
            if parts == written and isinstance(value, Ref):
                a, b = level.examples[value.number], level.examples[entry.results[0]]
                if a.shape == b.shape and a.dtype == b.dtype:
                    same[entry.results[0]] = value.number
            break
        n = write.args[0].number
    return entry if n == ref.number else entry._replace(args=(Ref(n), parts))


def _apart(one: Sequence[Any], other: Sequence[Any], shape: Sequence[int]) -> bool:
    """Whether two subscripts give parts that have no element in common, as a whole number in them says."""
    for axis, (a, b) in enumerate(zip(one, other, strict=False)):
        if type(a) is int and type(b) is int:
            if a % shape[axis] != b % shape[axis]:
                return True
        elif not (isinstance(a, (int, slice)) and isinstance(b, (int, slice))):
            return False
    return False


def _needed(entries: Sequence[Entry], roots: Iterable[int]) -> list[Entry]:
    """The entries that make what is needed, in order."""
    needed, found = {*roots}, []
    for entry in reversed(entries):
        if not needed.isdisjoint(entry.results):
            found.append(entry)
            needed.update(numbers((entry.args, entry.kwargs)))
    return found[::-1]
