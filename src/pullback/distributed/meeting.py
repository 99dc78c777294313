"""Where ranks meet: before a differentiable collective, and before a backward pass that contains some.

Before a collective they compare what they are about to call, and agree whether its result requires grad: it does if the
argument of any rank does. So a branch that differs is found at once, with the lines of both.

A communication that has another in its backward is noted, with a number that is the same on all ranks. Before a pass
each rank says which of these its roots reach. What one rank reaches all run, with zeros where nothing came, or the
others would wait for it.
"""

from __future__ import annotations

import pickle
import weakref
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..autograd.engine import Together
from ..autograd.node import reachable
from ..tensor.tensor import Edge, wrap
from .board import here
from .process_group import ENDINGS, WORLD, DistBackendError, Group, same_everywhere


def compare(group: Group, what: str, signature: str, tracked: bool) -> bool:
    """Whether any rank's arguments are tracked. DistBackendError on all ranks if they call different things."""
    if group.comm is None:
        return tracked
    mark = zlib.crc32(signature.encode())
    most, least, tracked = same_everywhere(group, np.array([mark, -mark, tracked]), what).tolist()
    if most != -least:
        raise _differ(group, f"{signature} at {here()}")
    return bool(tracked)


def gathered_objects(group: Group, mine: Any, what: str) -> list[Any]:
    """What each rank gives, pickled on the way: for reports and for objects, not for arrays."""
    if group.comm is None:
        return [mine]
    data = np.frombuffer(pickle.dumps(mine), np.uint8)
    length = int(same_everywhere(group, np.array([data.size]), what)[0])
    padded, found = np.zeros(length, np.uint8), np.empty((group.size, length), np.uint8)
    padded[: data.size] = data
    group.finish(what, lambda: group.control.Iallgather(padded, found))
    return [pickle.loads(row.tobytes()) for row in found]


def gathered(group: Group, text: str) -> list[str]:
    """A sentence of each rank."""
    return gathered_objects(group, text, "")


def _differ(group: Group, mine: str) -> DistBackendError:
    """The error of ranks that are about to do different things."""
    lines = [f"    rank {rank}: {said}\n" for rank, said in zip(group.ranks, gathered(group, mine), strict=True)]
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
    Together.meet = staticmethod(meet)


def _forget() -> None:
    _LEDGERS.clear()
    Together.meet = None


ENDINGS.append(_forget)


def meet(
    roots: Sequence[tuple[Edge, Any]], towards: set[Any] | None, taped: bool, keep: bool
) -> tuple[Any, set[Any] | None]:
    """The roots and targets of a pass, with those for the sake of other ranks.

    DistBackendError on all ranks if one has dropped the result of a communication that another differentiates.
    """
    ledgers = sorted(((g, ledger) for g, ledger in _LEDGERS.items() if ledger.open), key=lambda pair: pair[0].number)
    if not ledgers:
        return roots, towards
    group = ledgers[0][0] if len(ledgers) == 1 else WORLD[0].groups[0]
    entries = [noted for _, ledger in ledgers for noted in ledger.open.values()]
    count = len(entries)
    state = np.array([len(ledgers), *(n for _, ledger in ledgers for n in (ledger.low, ledger.next)), count])
    _check_ledgers(group, state, entries)
    nodes = [noted.node() for noted in entries]
    own = set(reachable(edge[0] for edge, _ in roots))
    reached, first = _spread(group, nodes, own, entries)
    added = [
        ((nodes[i], 0, entries[i].shape, entries[i].dtype), np.zeros(entries[i].shape, entries[i].dtype))
        for i in map(int, np.flatnonzero(reached & ~first))
    ]
    if towards is not None:
        towards = towards | {nodes[i] for i in map(int, np.flatnonzero(reached))}
    alive = same_everywhere(group, np.array([node is not None for node in nodes], np.int64), "backward()")
    done = [i for i in range(count) if not alive[i] or (reached[i] and not keep)]
    _close(ledgers, done)
    return [*roots, *((edge, wrap(zeros) if taped else zeros) for edge, zeros in added)], towards


def _check_ledgers(group: Group, state: np.ndarray[Any, Any], entries: Sequence[Noted]) -> None:
    mark = zlib.crc32(state.tobytes())
    found = same_everywhere(group, np.array([mark, -mark]), "backward()")
    if found[0] != -found[1]:
        raise _differ(group, f"backward() at {here()}, after {len(entries)} communications, last {entries[-1].said}")


def _spread(
    group: Group, nodes: Sequence[Any], own: set[Any], entries: Sequence[Noted]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Which communications some rank reaches, and which this one does from its own roots."""
    first = reached = np.array([node in own for node in nodes])
    while True:
        union = same_everywhere(group, reached.astype(np.int64), "backward()") > 0
        wanted = [int(i) for i in np.flatnonzero(union)]
        lost = [i for i in wanted if nodes[i] is None]
        more = set(reachable(nodes[i] for i in wanted if nodes[i] is not None))
        grown = union | np.array([node in more for node in nodes])
        state = np.array([bool((grown != reached).any()), (lost[0] + 1) if lost else 0])
        found = same_everywhere(group, state, "backward()")
        if found[1]:
            here_lost = f"dropped it: {entries[lost[0]].said}" if lost else f"has {entries[found[1] - 1].said}"
            lines = zip(group.ranks, gathered(group, here_lost), strict=True)
            raise DistBackendError(
                "backward(): a rank differentiates the result of a communication that another has dropped:\n"
                + "".join(f"    rank {rank} {said}\n" for rank, said in lines)
                + "  What to do: keep the result until after backward() on every rank, also where it is not used."
            )
        if not found[0]:
            return grown, first
        reached = grown


def _close(ledgers: Sequence[tuple[Group, Ledger]], done: Sequence[int]) -> None:
    """Take communications off the ledgers; without any, passes need no meeting."""
    numbers = [(ledger, number) for _, ledger in ledgers for number in ledger.open]
    for i in done:
        ledger, number = numbers[i]
        del ledger.open[number]
    for _, ledger in ledgers:
        ledger.low = min(ledger.open, default=ledger.next)
    if not any(ledger.open for ledger in _LEDGERS.values()):
        Together.meet = None


def need_same_values(group: Group, array: np.ndarray[Any, Any], what: str) -> None:
    """RuntimeError on every rank unless all hold the same bytes."""
    if group.comm is None:
        return
    mark = zlib.crc32(
        f"{array.dtype}{array.shape}".encode(), zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)
    )
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
