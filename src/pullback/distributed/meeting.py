"""Where ranks meet: before a differentiable collective, and before a backward pass that contains some.

Before a collective they compare what they are about to call, and agree whether its result requires grad: it does if the
argument of any rank does. So a branch that differs is found at once, with the lines of both.

A communication that has another in its backward is noted, with a number that is the same on all ranks. Before a pass
each rank says which of these its roots reach. What one rank reaches all run, with zeros where nothing came, or the
others would wait for it.
"""

from __future__ import annotations

import functools
import pickle
import weakref
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..autograd.engine import Together
from ..autograd.node import reachable
from ..nn.parameter import Parameter
from ..tensor.tensor import Edge, wrap
from .board import here
from .process_group import (
    ENDINGS,
    NON_MEMBER,
    WORLD,
    DistBackendError,
    Group,
    group_of,
    same_everywhere,
    seconds_of,
    the_world,
)

_TRACKED, _REFUSED, UNCLEAR = 1, 2, 4
"""What a rank says of its call: it is tracked; its arguments are refused; it is tracked by leaves not looked at yet."""

_ROWS, _BITS = 4, 62
"""The rows of bits that a meeting has place for, of so many bits each."""

_NONE = (0,) * _ROWS
_PLACES = bytes(8 * (3 + _ROWS))  # `array` is made faster than an array of NumPy's, by a microsecond or two


def compare(group: Group, what: str, signature: str, flags: int) -> int:
    """Whether any rank's arguments are tracked, and more of the flags. DistBackendError on all ranks if they call
    different things."""
    return flags if group.comm is None else _meeting(group, what, signature, flags, _NONE, None)[0]


def _meeting(
    group: Group, what: str, signature: str, flags: int, rows: Sequence[int], told: Callable[[], str] | None
) -> list[int]:
    """The flags and the rows of bits, joined by "or" over the ranks, which all call the same thing."""
    mark = _mark_of(signature)
    given, found = array("q", (mark, ~mark, flags, *rows)), array("q", _PLACES)
    group.finish(what, lambda: group.control.Iallreduce(given, found, group.world.mpi.BOR))
    most, least, *joined = found.tolist()
    if most & least or joined[0] & _REFUSED:
        raise _differ(group, told() if told else f"{signature} at {here()}", bool(joined[0] & _REFUSED))
    return joined


@functools.lru_cache(1000)
def _mark_of(signature: str) -> int:
    return zlib.crc32(signature.encode())


class Refusals:
    """A context for the checks of a collective's arguments on one rank: what it refuses there, all ranks raise.

    The other ranks are told as they compare what they call, so that all go on with the next collective.
    """

    __slots__ = ("_group", "_what")

    def __init__(self, group: Group, what: str) -> None:
        self._group, self._what = group, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            tell_refused(self._group, self._what, error)


def tell_refused(group: Group, what: str, error: Exception) -> None:
    """Tell the other ranks what this one is about to raise, as they compare what they call."""
    if group.comm is None or group.broken:
        return
    given, found = array("q", (0, 0, _REFUSED, *_NONE)), array("q", _PLACES)
    group.finish(what, lambda: group.control.Iallreduce(given, found, group.world.mpi.BOR))
    said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    gathered(group, f"refuses {what} at {here()}: {said}")


def barrier(group: Group | None = None) -> None:
    """Wait until every rank of the group has come here."""
    compare(group_of(group), "barrier()", "barrier()", False)


def new_group(ranks: Sequence[int] | None = None, timeout: Any = None, backend: str | None = None) -> Any:
    """A group of some ranks. Every process calls it, members or not, in the same order.

    ranks: by default all; the same on every rank. Ranks that are no members get a value that no collective takes.
    ValueError: a rank that does not exist, or stands twice.
    """
    world = the_world()
    whole = world.groups[0]
    with Refusals(whole, "new_group()"):
        chosen, seconds = (
            _members(world.size, ranks, backend),
            world.timeout if timeout is None else seconds_of(timeout),
        )
    compare(whole, "new_group()", f"new_group({chosen})", False)
    if whole.comm is None:
        return Group(world, None, chosen, seconds)
    member = world.rank in chosen
    comm = whole.comm.Split(0 if member else world.mpi.UNDEFINED, world.rank)
    return Group(world, comm, chosen, seconds) if member else NON_MEMBER


def _members(size: int, ranks: Any, backend: Any) -> list[int]:
    if backend not in (None, "mpi"):
        raise ValueError(errors.message("backend", expected="'mpi'", found=repr(backend), do="leave it away"))
    chosen = list(range(size) if ranks is None else ranks)
    if not all(isinstance(rank, (int, np.integer)) for rank in chosen):
        raise TypeError(errors.message("new_group(): ranks", expected="ints", found=errors.describe(ranks)))
    chosen = sorted(map(int, chosen))
    if len({*chosen}) < len(chosen) or not chosen or chosen[0] < 0 or chosen[-1] >= size:
        raise ValueError(
            errors.message(
                "new_group(): the new group's rank should be within the world_size set by init_process_group",
                expected=f"different ranks from 0 to {size - 1}",
                found=str(list(ranks or ())),
            )
        )
    return chosen


def gathered_objects(group: Group, mine: Any, what: str) -> list[Any]:
    """What each rank gives, pickled on the way: for reports and for objects, not for arrays."""
    if group.comm is None:
        return [mine]
    with Refusals(group, what):
        data = np.frombuffer(pickle.dumps(mine), np.uint8)
    if what:
        compare(group, what, what, False)
    length = int(same_everywhere(group, np.array([data.size]), what)[0])
    padded, found = np.zeros(length, np.uint8), np.empty((group.size, length), np.uint8)
    padded[: data.size] = data
    group.finish(what, lambda: group.control.Iallgather(padded, found))
    return [pickle.loads(row.tobytes()) for row in found]


def gathered(group: Group, text: str) -> list[str]:
    """A sentence of each rank."""
    return gathered_objects(group, text, "")


def _differ(group: Group, mine: str, refused: bool = False) -> DistBackendError:
    """The error of ranks that are about to do different things. refused: one of them has refused to."""
    lines = [f"    rank {rank}: {said}\n" for rank, said in zip(group.ranks, gathered(group, mine), strict=True)]
    if refused:
        return DistBackendError(
            f"a rank refuses its arguments, so that no rank has done the collective:\n{''.join(lines)}"
            "  What to do: mend that rank's call. All ranks have raised, and may go on together."
        )
    return DistBackendError(
        "the ranks call different collectives, or with different tensors:\n"
        + "".join(lines)
        + "  What to do: have every rank of the group call the same collectives in the same order, with the same "
        "shapes and dtypes; no branch may depend on the rank where one stands."
    )


def need_fitting(group: Group, sent: Sequence[Any], wanted: Sequence[Any]) -> None:
    """ValueError on every rank unless each gets what it expects."""
    tables = gathered_objects(group, (sent, wanted), "all_to_all()")
    fits = all(tables[a][0][b] == tables[b][1][a] for a in range(group.size) for b in range(group.size))
    lines = [f"sends {a}, expects {b}" for a, b in tables]
    if not fits:
        text = "\n".join(f"    rank {rank}: {line}" for rank, line in zip(group.ranks, lines, strict=True))
        raise ValueError(errors.message(f"all_to_all(): what ranks send is not what others expect\n{text}"))


class Noted(NamedTuple):
    """A communication that has another in its backward: its node, and what it was, where."""

    node: weakref.ref[Any]
    said: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Ledger:
    """The communications of a group that backward passes may reach, by number, those below `low` being done."""

    def __init__(self) -> None:
        self.next, self.low = 0, 0
        self.open: dict[int, Noted] = {}


_LEDGERS: dict[Group, Ledger] = {}


def note(group: Group, node: Any, said: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Note a communication whose backward has one, too. shape, dtype: those of its first result."""
    if group.comm is None:
        return
    ledger = _LEDGERS.setdefault(group, Ledger())
    ledger.open[ledger.next] = Noted(weakref.ref(node), f"{said} at {here()}", shape, dtype)
    ledger.next += 1
    _set_meeting()


GUARDS: weakref.WeakSet[Any] = weakref.WeakSet()
"""Objects whose ``_check_roots(roots, towards)`` is called before each backward pass, with its edges and gradients."""


def guard(one: Any, wanted: bool) -> None:
    """Have an object look at the roots of passes, or no longer."""
    (GUARDS.add if wanted else GUARDS.discard)(one)
    _set_meeting()


def _set_meeting() -> None:
    """Have passes meet while there is a reason."""
    wanted = GUARDS or any(ledger.open for ledger in _LEDGERS.values())
    Together.meet = staticmethod(meet) if wanted else None


def _forget() -> None:
    _LEDGERS.clear()
    GUARDS.clear()
    _set_meeting()


ENDINGS.append(_forget)


def meet(
    roots: Sequence[tuple[Edge, Any]], towards: set[Any] | None, taped: bool, keep: bool
) -> tuple[Any, set[Any] | None]:
    """The roots and targets of a pass, with those for the sake of other ranks.

    DistBackendError on all ranks if one has dropped the result of a communication that another differentiates.
    """
    for one in list(GUARDS):
        one._check_roots(roots, towards)
    ledgers = sorted(((g, ledger) for g, ledger in _LEDGERS.items() if ledger.open), key=lambda pair: pair[0].number)
    if not ledgers:
        return roots, towards
    group = ledgers[0][0] if len(ledgers) == 1 else WORLD[0].groups[0]
    entries = [noted for _, ledger in ledgers for noted in ledger.open.values()]
    state = [len(entries), *((ledger.low, ledger.next) for _, ledger in ledgers)]
    nodes = [noted.node() for noted in entries]
    first = _bits(map(set(reachable(edge[0] for edge, _ in roots)).__contains__, nodes))
    reached, alive = _spread(group, state, nodes, first, entries)
    added = [
        ((nodes[i], 0, entries[i].shape, entries[i].dtype), np.zeros(entries[i].shape, entries[i].dtype))
        for i in _places(reached & ~first)
    ]
    if towards is not None:
        towards = towards | {nodes[i] for i in _places(reached)}
    done = [i for i in range(len(nodes)) if not alive >> i & 1 or (reached >> i & 1 and not keep)]
    _close(ledgers, done)
    return [*roots, *((edge, wrap(zeros) if taped else zeros) for edge, zeros in added)], towards


# Leaves that nobody has placed ---------------------------------------------------------------------------------------

SAID: weakref.WeakSet[Any] = weakref.WeakSet()
"""The nodes of leaves that are known to be each rank's own: it was said, or they hold other values on each."""


class _Unclear:
    """Refuses passes from a loss of all ranks whose leaves may be copies of one parameter, which would drift apart."""

    def __init__(self) -> None:
        self.nodes: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

    def _check_roots(self, roots: Sequence[tuple[Edge, Any]], towards: Any) -> None:
        if not self.nodes:
            guard(self, False)
        elif towards is None:  # else it is said by which tensors it is
            for node in reachable(edge[0] for edge, _ in roots):
                if node in self.nodes:
                    raise RuntimeError(self.nodes[node])


_UNCLEAR = _Unclear()


def look_at_leaves(group: Group, what: str, leaves: Sequence[Any]) -> Callable[[Any], None] | None:
    """Ranks tell each other of leaves behind a result of all ranks. What to call with its node, if one is unclear.

    A parameter of a module is, and a leaf with the same values on every rank; the others are each rank's own.
    """
    marks = [
        (issubclass(leaf._class, Parameter), f"{leaf._data.dtype}{[*leaf._data.shape]}", _mark(leaf._data))
        for leaf in leaves
    ]
    told = gathered_objects(group, marks, "")
    unclear = {mark for mark in told[0] if all(mark in marks for marks in told)}
    unclear |= {mark for marks in told for mark in marks if mark[0]}
    SAID.update(leaf for leaf, mark in zip(leaves, marks, strict=True) if mark not in unclear)
    if not unclear:
        return None
    parameter, kind, _ = max(unclear)
    text = errors.message(
        f"backward() of a loss of all ranks, from {what} at {here()}: "
        + (f"a Parameter, {kind}, of a module that is" if parameter else f"a leaf, {kind}, with the same values")
        + " on every rank: each would get the gradient by its own copy, and the copies would drift apart",
        do=(
            "DistributedDataParallel(module) for one network, with backward() on each rank's own loss; or "
            if parameter
            else "distributed.replicate(x) if it is one value of all; "
        )
        + "distributed.varying(x), once, if each rank has its own; or backward(inputs=...)",
    )

    def note(node: Any) -> None:
        _UNCLEAR.nodes[node] = text
        guard(_UNCLEAR, True)

    return note


def _mark(values: np.ndarray[Any, Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(values).view(np.uint8).data)


def _bits(of: Iterable[bool]) -> int:
    """A row of bits, the first of them the lowest."""
    return sum([1 << i for i, bit in enumerate(of) if bit])


def _places(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _spread(group: Group, state: Any, nodes: Sequence[Any], reached: int, entries: Sequence[Noted]) -> tuple[int, int]:
    """Which communications some rank reaches, and which live on some rank. reached: those that this one's roots do.

    Where all ranks reach the same, as they mostly do, that is one message.
    """
    every = (1 << len(nodes)) - 1
    lives = _bits(node is not None for node in nodes)
    while True:
        reached, others, alive, dead = _joined(
            group, state, (reached, every & ~reached, lives, every & ~lives), entries
        )
        if lost := _places(reached & dead):
            said = "has" if nodes[lost[0]] is not None else "dropped it:"
            lines = zip(group.ranks, gathered(group, f"{said} {entries[lost[0]].said}"), strict=True)
            raise DistBackendError(
                "backward(): a rank differentiates the result of a communication that another has dropped:\n"
                + "".join(f"    rank {rank} {said}\n" for rank, said in lines)
                + "  What to do: keep the result until after backward() on every rank, also where it is not used."
            )
        if not reached & others:
            return reached, alive
        more = set(reachable(nodes[i] for i in _places(reached)))
        reached |= _bits(map(more.__contains__, nodes))


def _joined(group: Group, state: Any, rows: Sequence[int], entries: Sequence[Noted]) -> list[int]:
    """Rows of bits about the communications, joined by "or" over the ranks, which all have the same communications."""

    def told() -> str:
        return f"backward() at {here()}, after {len(entries)} communications, last {entries[-1].said}"

    lowest = (1 << _BITS) - 1
    _, *found = _meeting(group, "backward()", f"backward() {state}", 0, [row & lowest for row in rows], told)
    for start in range(_BITS, len(entries), _BITS):  # more than have place in a meeting
        rest = _meeting(group, "", "", 0, [row >> start & lowest for row in rows], told)[1:]
        found = [low | more << start for low, more in zip(found, rest, strict=True)]
    return found


def _close(ledgers: Sequence[tuple[Group, Ledger]], done: Sequence[int]) -> None:
    """Take communications off the ledgers; without any, passes need no meeting."""
    numbers = [(ledger, number) for _, ledger in ledgers for number in ledger.open]
    for i in done:
        ledger, number = numbers[i]
        del ledger.open[number]
    for _, ledger in ledgers:
        ledger.low = min(ledger.open, default=ledger.next)
    _set_meeting()


def need_same_values(group: Group, array: np.ndarray[Any, Any], what: str) -> None:
    """RuntimeError on every rank unless all hold the same bytes."""
    if group.comm is None:
        return
    compare(group, what, what, False)
    mark = zlib.crc32(f"{array.dtype}{array.shape}".encode(), _mark(array))
    found = same_everywhere(group, np.array([mark, -mark]), what)
    if found[0] != -found[1]:
        flat = array.ravel()
        more = " ..." if flat.size > 4 else ""
        shown = f"{array.dtype}{list(array.shape)} {np.array2string(flat[:4], precision=6)}{more}"
        lines = zip(group.ranks, gathered(group, shown), strict=True)
        raise RuntimeError(
            errors.message(
                f"{what} at {here()}: the ranks hold different values\n"
                + "\n".join(f"    rank {rank}: {said}" for rank, said in lines),
                do="broadcast(x, 0) of distributed.nn.functional for the values of one rank, or its all_reduce(x, AVG)",
            )
        )
