"""A trace without what it computes twice or for nothing, in which rows of a buffer are read where they come from.

A loop that fills a buffer (``out[t] = h``) has a new buffer after each write, in a trace and in its backward pass. A
part that is read of one, and that the write before did not touch, is read of the buffer before that; a part that is
read as it was written is what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..interpreters.traced import Entry, Ref, Trace
from ..ops.shape.slices import getitem
from ..table.writing import Through
from .trace.lower import replaced
from .trace.program import key_of

_SMALL = 512
"""Constants of at most so many elements are compared with one another."""


class Noted(NamedTuple):
    """An entry, the numbers of the tensors among its arguments, and a key for all that is not."""

    entry: Entry
    refs: Sequence[int]
    key: Any


def subscripts_of_write(entry: Entry) -> tuple[Any, ...] | None:
    """The subscripts of a write to a part of a tensor; None if the entry is none, or goes through several views."""
    if entry.op is not Through.op or len(entry.args[2]) != 1:
        return None
    ((op, (*args,)),) = entry.args[2]
    return args[0] if op is getitem.op else None


def flat(tree: Any, refs: list[int]) -> Any:
    """A key that is equal for equal arguments, whatever their tensors are; the numbers of those are added to a list."""
    kind = type(tree)
    if kind is Ref:
        refs.append(tree.number)
        return Ref
    if kind is tuple or kind is list:
        return (kind, *[flat(part, refs) for part in tree])
    if kind is int or kind is bool or kind is str or tree is None:
        return kind, tree
    if kind is dict:
        return (dict, *[(key, flat(part, refs)) for key, part in tree.items()])
    return key_of(replaced(tree, lambda ref: refs.append(ref.number)))


def simplified(
    level: Trace, constants: Iterable[int], roots: Callable[[], Iterable[int]], same: dict[int, int]
) -> list[Noted]:
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
    found: list[Noted] = []
    for entry in level.entries:
        refs: list[int] = []
        key: Any = (entry.op, flat((entry.args, entry.kwargs), refs))
        if any(n in same for n in refs):
            entry, refs = renamed(entry, same), [now(n, same) for n in refs]
        if entry.op is getitem.op:
            entry = _read(level, entry, writes, same)
            if entry.results[0] in same:
                continue
            refs = [entry.args[0].number]
        elif (parts := subscripts_of_write(entry)) is not None:
            writes[entry.results[0]] = entry, parts
        try:
            earlier = entry if entry.op is None else known.setdefault((key, *refs), entry)
        except TypeError:  # arguments that cannot be compared
            earlier, key = entry, None
        if earlier is entry:
            found.append(Noted(entry, refs, key))
        else:
            same.update(zip(entry.results, earlier.results, strict=True))
    return _needed(found, roots())


def renamed(entry: Entry, same: dict[int, int]) -> Entry:
    """An entry with the numbers that stand for those of its arguments."""
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


def _needed(entries: Sequence[Noted], roots: Iterable[int]) -> list[Noted]:
    """The entries that make what is needed, in order."""
    needed, found = {*roots}, []
    for noted in reversed(entries):
        if not needed.isdisjoint(noted.entry.results):
            found.append(noted)
            needed.update(noted.refs)
    return found[::-1]
