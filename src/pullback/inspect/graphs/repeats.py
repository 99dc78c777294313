"""Finds repeats in a graph, and folds them: twelve layers become one box, "x 12".

The operations stand in the order in which they were made. A loop in the program makes blocks that follow each other,
with the same operations on the same shapes. `_longest` looks for such runs: for a period p, the places where the
sequence equals itself shifted by p. Then it compares the wiring of each block with the one before, because only blocks
connected alike are repeats. The inside of a block is searched in turn.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from .description import LEAF, LOSS, Description, NodeInfo

PERIODS = 2048
"""The length, in operations, of the longest block that is searched for."""

SHIFTS = 64
"""The number of ways to cut a run into blocks that are tried."""

CANDIDATES = 64
"""The number of periods, the most promising first, that are compared with the wiring."""

LEAVES = 12
"""The most leaves of one operation that are drawn one by one."""

LARGE = 60
"""Graphs with more nodes than this are folded, unless the caller says otherwise."""


@dataclasses.dataclass(slots=True)
class Group:
    """A run of `count` equal blocks of `period` operations; or one block of such a run, its parent; or, if the period
    is 0, `count` leaves that only one operation uses.

    start: its first operation, in the order of the forward pass, from 0. parent: the group around it, or -1. block:
    which block of its parent it is, from 1; 0 for a run. members: the numbers of the nodes in it: operations, and the
    leaves that only one of its blocks uses.
    """

    number: int
    start: int
    period: int
    count: int
    parent: int
    block: int = 0
    members: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Folding:
    """The groups of a graph, and for each node the innermost group it is in, or -1."""

    groups: list[Group]
    home: list[int]


def fold(description: Description) -> Folding:
    """Find the repeats in a graph."""
    made = description.operations
    groups = _groups(_Wiring(description, made))
    home = [-1] * len(description.nodes)
    blocks: list[list[tuple[int, int]]] = [[] for _ in made]  # the groups around an operation, and its block in each
    for group in groups:  # the outer ones come first
        for i in range(group.start, group.start + group.period * group.count):
            blocks[i].append((group.number, (i - group.start) // group.period))
            home[made[i].number] = group.number
    for leaf, around in _users(description, made, groups, blocks).items():
        for one, *others in zip(*around, strict=False):  # outer groups first, as long as all users share the block
            if any(other != one for other in others):
                break
            home[leaf] = one[0]
    groups += _leaves(description, made, home, len(groups))
    for number, inner in enumerate(home):
        while inner >= 0:
            groups[inner].members.append(number)
            inner = groups[inner].parent
    return Folding(groups, home)


def _leaves(description: Description, made: Sequence[NodeInfo], home: list[int], number: int) -> list[Group]:
    """Groups of many leaves that only one operation uses, numbered from `number` on."""
    uses = Counter(edge.target for info in made for edge in info.edges)
    found: list[Group] = []
    for i, info in enumerate(made):
        leaves = [e.target for e in info.edges if uses[e.target] == 1 and description.nodes[e.target].kind == LEAF]
        if len(leaves) > LEAVES:
            found.append(Group(number + len(found), i, 0, len(leaves), home[leaves[0]]))
            for leaf in leaves:
                home[leaf] = found[-1].number
    return found


Blocks = list[tuple[int, int]]
"""The groups that an operation is in, outer ones first, and its block in each."""


def _users(
    description: Description, made: Sequence[NodeInfo], groups: Sequence[Group], blocks: Sequence[Blocks]
) -> dict[int, list[Blocks]]:
    """For each leaf, the blocks of its users; a leaf that only the first block of a run takes lies outside the run."""
    users: dict[int, list[Blocks]] = {}
    for i, info in enumerate(made):
        for edge in info.edges:
            if description.nodes[edge.target].kind != LEAF:
                continue
            around = []
            for g, k in blocks[i]:
                like = made[i + groups[g].period] if k == 0 and not groups[g].block else info
                if not any(
                    e.argument == edge.argument and description.nodes[e.target].kind == LEAF for e in like.edges
                ):
                    break
                around.append((g, k))
            users.setdefault(edge.target, []).append(around)
    return users


Inputs = dict[tuple[str, int], object]
"""The sources of an operation's inputs, by argument: a place in its block (below 0: an earlier block), or a leaf's
shape.
"""

FAR = -(10**9)


class _Wiring:
    """The operations of a graph as a sequence of signatures, and the source of each input."""

    def __init__(self, description: Description, made: Sequence[NodeInfo]) -> None:
        place = {info.number: i for i, info in enumerate(made)}
        nodes = description.nodes
        kinds: dict[object, int] = {}
        signatures = [kinds.setdefault((info.name, str(info.outputs)), len(kinds)) for info in made]
        self.signatures = np.array(signatures, np.int64)
        self.inputs: list[list[tuple[tuple[str, int], int, str]]] = []
        for info in made:
            seen: dict[str, int] = {}
            inputs = []
            for edge in info.edges:  # an argument may hold several tensors: each gets its own key
                again = seen[edge.argument] = seen.get(edge.argument, -1) + 1
                leaf = "" if edge.target in place else str(nodes[edge.target].outputs)
                inputs.append(((edge.argument, again), place.get(edge.target, -1), leaf))
            self.inputs.append(inputs)
        # signatures with the distance to each input: most operations of a block share them with the next block
        keys: list[object] = []
        for i, (kind, inputs) in enumerate(zip(signatures, self.inputs, strict=True)):
            keys.append((kind, *(leaf or i - p for _, p, leaf in inputs)))
        self.distances = np.array([kinds.setdefault(key, len(kinds)) for key in keys], np.int64)

    def equal_blocks(self, start: int, period: int, count: int) -> tuple[int, int]:
        """The longest run of blocks connected alike among the `count` from `start`: (its start, its length)."""
        best, first, before = (start, 1), 0, self._pattern(start, 0, period)
        for k in range(1, count):
            pattern = self._pattern(start, k, period)
            if pattern != before and not (k - first == 1 and _begins(before, pattern)):
                first = k
            before = pattern
            if k - first + 1 > best[1]:
                best = (start + first * period, k - first + 1)
        return best

    def _pattern(self, start: int, k: int, period: int) -> list[Inputs]:
        """The inputs of the operations of block `k`."""
        begin = start + k * period
        return [
            {key: leaf or (p - begin if p >= begin - period else FAR) for key, p, leaf in self.inputs[i]}
            for i in range(begin, begin + period)
        ]

    def entrances(self, begin: int, period: int) -> int:
        """How many results of earlier operations a block uses: few, if it is cut where the program's own blocks are."""
        return len({p for i in range(begin, begin + period) for _, p, leaf in self.inputs[i] if p < begin and not leaf})


def _begins(first: list[Inputs], second: list[Inputs]) -> bool:
    """Whether a block may be the first of a run connected like the second; inputs from outside the block may differ."""
    for one, two in zip(first, second, strict=True):
        own = {key: p for key, p in two.items() if not isinstance(p, int) or p >= 0}
        if any(one.get(key) != p for key, p in own.items()):
            return False
        if any(isinstance(p, int) and p >= 0 for key, p in one.items() if key not in own):
            return False
    return True


def _groups(wiring: _Wiring) -> list[Group]:
    """The repeats, outer groups first: runs, and the blocks of a run, which are groups themselves if they are long."""
    found: list[Group] = []
    spans = [(0, len(wiring.signatures), -1)]
    while spans:
        low, high, parent = spans.pop()
        run = _longest(wiring, low, high)
        if run is None:
            continue
        start, period, count = run
        number = len(found)
        found.append(Group(number, start, period, count, parent))
        end = start + period * count
        spans += [(low, start, parent), (end, high, parent)]
        if period > 2:
            for k in range(count):
                begin = start + k * period
                found.append(Group(len(found), begin, period, 1, number, k + 1))
                spans.append((begin, begin + period, found[-1].number))
    return found


def _longest(wiring: _Wiring, low: int, high: int) -> tuple[int, int, int] | None:
    """The repeat between two places that hides most: (start, period, count), or None."""
    part, distances = wiring.signatures[low:high], wiring.distances[low:high]
    candidates = []
    for period in range(1, min(PERIODS, len(part) // 2) + 1):
        same = np.concatenate([[False], part[period:] == part[:-period], [False]])
        if not same.any():
            continue
        edges = np.flatnonzero(same[1:] != same[:-1])
        lengths = edges[1::2] - edges[::2]
        longest = int(np.argmax(lengths))
        length, begin = int(lengths[longest]), int(edges[2 * longest])
        count = length // period + 1
        alike = distances[begin : begin + length] == distances[begin + period : begin + period + length]
        if _worth(period, count) and 2 * np.count_nonzero(alike) >= length:
            candidates.append(((count - 1) * period, -period, low + begin, length))
    best: tuple[int, int, int] | None = None
    quality = (0, 0)
    for hidden, negative, start, length in sorted(candidates, reverse=True)[:CANDIDATES]:
        period = -negative
        if quality[0] >= hidden:
            break
        for shift in range(min(period, length % period + 1, SHIFTS)):
            begin, count = wiring.equal_blocks(start + shift, period, (length - shift) // period + 1)
            found = (count - 1) * period, -wiring.entrances(begin + period * (count > 1), period)
            if _worth(period, count) and found > quality:
                best, quality = (begin, period, count), found
    return best


def _worth(period: int, count: int) -> bool:
    """Whether folding a repeat makes a picture easier to read: two blocks of a few operations are not worth it."""
    return count >= 3 or (count == 2 and period >= 4)


def visible(description: Description, folding: Folding, opened: Collection[int]) -> Visible:
    """The graph with all groups folded but those `opened`."""
    shown = [_outermost(folding, folding.home[n], opened) for n in range(len(description.nodes))]

    def rank(item: tuple[bool, int]) -> int:
        is_group, number = item
        return rank_of(description, folding.groups[number]) if is_group else _rank(description, number)

    items = sorted({(g >= 0, g if g >= 0 else n) for n, g in enumerate(shown)}, key=rank)
    place = {item: i for i, item in enumerate(items)}
    edges: dict[tuple[int, int], int] = {}
    for n, info in enumerate(description.nodes):
        source = place[shown[n] >= 0, shown[n] if shown[n] >= 0 else n]
        for edge in info.edges:
            g = shown[edge.target]
            target = place[g >= 0, g if g >= 0 else edge.target]
            if source != target:
                edges[source, target] = edges.get((source, target), 0) + 1
    return Visible(items, edges)


def _rank(description: Description, number: int) -> int:
    """A number that orders nodes in the picture: the loss, then the operations, last made first, then the leaves."""
    info, last = description.nodes[number], len(description.nodes)
    return last - info.made if info.made else -1 if info.kind == LOSS else last + number


def first_of(description: Description, group: Group) -> int:
    """The number of the first node of a group, in the order of `_rank`."""
    return min(group.members, key=lambda number: _rank(description, number))


def rank_of(description: Description, group: Group) -> int:
    """A number that orders the boxes of groups in the picture, as `_rank` does nodes."""
    return _rank(description, first_of(description, group))


@dataclasses.dataclass(frozen=True, slots=True)
class Visible:
    """The boxes and edges to draw. items: (whether it is a group, its number), each before those it sends gradients to.

    edges: between places in `items`, with the number of edges of the graph that each stands for.
    """

    items: list[tuple[bool, int]]
    edges: dict[tuple[int, int], int]


def _outermost(folding: Folding, group: int, opened: Collection[int]) -> int:
    """The outermost folded group around and with `group`, or -1."""
    found = -1
    while group >= 0:
        if group not in opened:
            found = group
        group = folding.groups[group].parent
    return found
