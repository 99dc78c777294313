"""Equal steps in a trace: where a loop of Python's has written the same operations many times, one step after another.

`steps_in` finds stretches of entries that repeat with a period, and how a step hangs together with the others: what it
takes from the steps before it (carries), from an array one row after another (rows), from a sequence one value each
(elements), and what all steps read (closures). A stretch that does not fit is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..interpreters.traced import Entry, Ref, Trace
from ..ops.elementwise import arithmetic
from ..ops.shape.slices import getitem, placed
from ..table.writing import Through
from .simplify import Noted, flat, subscripts_of_write
from .steps_alone import NotRolledError

FEWEST = 16
"""How many equal steps are rolled up."""

_LONGEST = 512
"""The most operations of a step."""

_LAG = 4
"""How many steps back a step may look."""

_TRIED = 16
"""How often the entries of a trace are looked at, lest one that repeats, but is no loop, be looked at for long."""

_ADD, *_OTHERS = [fn.op for fn in (arithmetic.add, arithmetic.sub, arithmetic.mul, arithmetic.div)]  # type: ignore[attr-defined]


class Carry(NamedTuple):
    """A result of a step that a later one takes: that of `lag` steps before."""

    entry: int
    result: int
    lag: int


class Rows(NamedTuple):
    """Parts of an array that steps take or fill one after another: the subscripts are `lead`, a whole number, `tail`.

    first: that number in the first step. down: whether it falls by one in each step, instead of rising.
    """

    lead: tuple[Any, ...]
    tail: tuple[Any, ...]
    first: int
    down: bool

    @property
    def axis(self) -> int:
        """The place of the rows among the axes of what the subscripts give, were the number a slice."""
        return sum(isinstance(part, slice) for part in self.lead)


class Filled(NamedTuple):
    """A row that each step adds to a sum, or writes to a buffer, which nothing else in the loop reads.

    place: the entry that has the subscripts; add: the one that adds, or the same if it is a write. argument: which of
    the first one's tensors is the row. row: its entry and result, if a step makes it. after: the entry that fills the
    same thing before it in a step; None if it is the first to do so.
    """

    place: int
    add: int
    argument: int
    row: tuple[int, int] | None
    after: int | None


class Steps:
    """A stretch of a trace that is `count` times the same step, of `period` entries.

    own: where a number is made: its step, entry and result. starts: the carries, each with the number that it has in
    the first step. elements: values that change from step to step, and that were there before. rows: by the entry that
    takes it, the part of an array. fills: see `Filled`. varying: numbers of Python's, by entry and argument, that are
    not the same in each step.
    """

    def __init__(self, entries: Sequence[Noted], first: int, period: int, count: int) -> None:
        self.first, self.period, self.count = first, period, count
        part = entries[first : first + period * count]
        self.entries, self.refs = [noted.entry for noted in part], [noted.refs for noted in part]
        self.own: dict[int, tuple[int, int, int]] = {}
        for place, entry in enumerate(self.entries):
            self.own |= {n: (*divmod(place, period), r) for r, n in enumerate(entry.results)}
        self.starts: dict[Carry, int] = {}
        self.elements: list[tuple[int, ...]] = []
        self.closures: list[int] = []
        self.rows: dict[int, Rows] = {}
        self.fills: list[Filled] = []
        self.varying: dict[tuple[int, int], tuple[float, ...]] = {}

    @property
    def end(self) -> int:
        """The number of the first entry after it."""
        return self.first + self.period * self.count

    def number(self, step: int, entry: int, result: int = 0) -> int:
        """The number of a result of a step."""
        return self.entries[step * self.period + entry].results[result]

    @property
    def filled(self) -> set[int]:
        """The entries whose results are sums or buffers that steps fill."""
        return {fill.add for fill in self.fills}

    def filling(self, fill: Filled) -> list[int]:
        """The rows of all steps, by their numbers."""
        return [refs[fill.argument] for refs in self.refs[fill.place :: self.period]]

    def before(self, fill: Filled) -> int:
        """The number of what a row is added or written to, as if the rows of all steps before it were there."""
        if fill.after is not None:
            return self.number(self.count - 1, fill.after)
        last = max(self.chain(fill))
        return self.starts[Carry(last, 0, 1)]

    def chain(self, fill: Filled) -> list[int]:
        """The entries of a step, in order, that fill the same thing."""
        found = [fill.add]
        while (after := next((f.add for f in self.fills if f.after == found[-1]), None)) is not None:
            found.append(after)
        return found

    def take_numbers(self, level: Trace, enter: Callable[[Any], tuple[int, ...]]) -> None:
        """Let numbers that differ from step to step be elements of a constant. enter: the numbers of its elements."""
        for (i, k), values in self.varying.items():
            dtype = level.examples[self.number(0, i)].dtype
            self.elements.append(enter(np.array(values, dtype)))
            for j, n in enumerate(self.elements[-1]):
                place = j * self.period + i
                entry = self.entries[place]
                self.entries[place] = entry._replace(args=(*entry.args[:k], Ref(n), *entry.args[k + 1 :]))
        self.varying.clear()

    def step(self, step: int) -> list[Entry]:
        """The entries of a step that are computed in each."""
        left_out = {*self.rows, *self.filled}
        all_of_it = self.entries[step * self.period : (step + 1) * self.period]
        return [entry for i, entry in enumerate(all_of_it) if i not in left_out]


def may_repeat(entries: Sequence[Entry]) -> bool:
    """Whether any operation is there so often that it may be one of equal steps; quick to say."""
    return len(entries) >= FEWEST and max(Counter(id(entry.op) for entry in entries).values()) >= FEWEST


def steps_in(
    level: Trace, entries: Sequence[Noted], used: Callable[[int], Iterable[int]], backward: float
) -> list[Steps]:
    """The stretches of equal steps, in order.

    used: the places in the trace where a number is used. backward: the first number of the backward pass, which is a
    program of its own.
    """
    known: dict[Any, int] = {}
    kinds: dict[Any, int] = {}
    kind_of = [kinds.setdefault((a.shape, a.dtype), len(kinds)) for a in level.examples]
    keys = np.array([known.setdefault(_key(level, e, kind_of, backward, i), len(known)) for i, e in enumerate(entries)])
    found: list[Steps] = []
    left = _TRIED * len(entries)
    for period, first, end in _repeats(keys):
        for other in found:
            if first < other.end and other.first < end:
                first, end = (max(first, other.end), end) if other.first <= first else (first, other.first)
        for shift in (0, *_places_of_fills(entries[first : first + period])):
            left -= max(0, end - first)
            if left < 0:
                break
            try:
                steps = _settled(entries, first + shift, period, (end - first - shift) // period)
                _take_fills(steps, used)
            except NotRolledError:
                continue
            if any(entry.op is not None and not entry.op.view for entry in steps.step(0)):
                found.append(steps)
            break
    return sorted(found, key=lambda steps: steps.first)


def _key(level: Trace, noted: Noted, kind_of: Sequence[int], backward: float, place: int) -> Any:
    """What is equal for entries that do the same with other values. Numbers among them may differ."""
    entry, refs, key = noted
    if key is None:
        return place
    if entry.op is None:
        array = np.asarray(entry.args[0])
        key = (array.shape, array.dtype, array.tobytes()) if array.size <= _LONGEST else place
    elif (parts := _subscripts(entry)) is not None:
        key = entry.op, *[int if type(part) is int else flat(part, []) for part in parts]
        key = (*key, entry.args[2]) if entry.op is placed.op else key
    elif _takes_numbers(level, entry, refs):
        key = entry.op, *[float if type(a) in (int, float) else Ref for a in entry.args]
    return entry.results[0] >= backward, key, *[kind_of[n] for n in (*refs, *entry.results)]


def _subscripts(entry: Entry) -> tuple[Any, ...] | None:
    """The subscripts of a row that is taken, placed or written; None if the entry does something else."""
    if entry.op is getitem.op or entry.op is placed.op:
        found: tuple[Any, ...] = entry.args[1]
        return found
    return subscripts_of_write(entry) if entry.op is Through.op and isinstance(entry.args[1], Ref) else None


def _takes_numbers(level: Trace, entry: Entry, refs: Sequence[int]) -> bool:
    """Whether a number of Python's among its operands can be an element of an array just as well."""
    if entry.op not in (_ADD, *_OTHERS) or entry.kwargs or len(entry.args) != 2:
        return False
    dtypes = {level.examples[n].dtype for n in (*refs, *entry.results)}
    return len(dtypes) == 1 and dtypes.pop().char in "fdFD"


def _repeats(keys: Any) -> Iterator[tuple[int, int, int]]:
    """The periods, and where stretches of at least `FEWEST` of them begin and end."""
    for period in range(1, min(_LONGEST, len(keys) // FEWEST) + 1):
        same = np.concatenate(([False], keys[:-period] == keys[period:], [False]))
        edges = np.flatnonzero(same[1:] != same[:-1])
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if last - first >= (FEWEST - 1) * period:
                yield period, first, last + period


def _places_of_fills(step: Sequence[Noted]) -> list[int]:
    """Where a step may begin instead, lest a row is placed in one and added in the next."""
    return [i for i, noted in enumerate(step) if i and noted.entry.op in (placed.op, Through.op)]


# How a step hangs together with the others ----------------------------------------------------------------------------


def _settled(entries: Sequence[Noted], first: int, period: int, count: int) -> Steps:
    """The steps, without those at the beginning that are not like the others. NotRolledError if too few are left."""
    for _ in range(2 * _LAG):
        if count < FEWEST:
            break
        steps = Steps(entries, first, period, count)
        unlike = max((_enter(steps, i) for i in range(period)), default=-1)
        if unlike < 0:
            return steps
        first, count = first + period * (unlike + 1), count - unlike - 1
    raise NotRolledError("too few of its steps are equal")


def _enter(steps: Steps, i: int) -> int:
    """Note what entry i of the steps takes. The last step in which it is not as in the last two; -1 if it always is."""
    each, refs = steps.entries[i :: steps.period], steps.refs[i :: steps.period]
    unlike = -1
    if (parts := _subscripts(each[-1])) is not None:
        all_parts = [found for entry in each if (found := _subscripts(entry)) is not None]
        if parts != all_parts[-2]:
            steps.rows[i], unlike = _rows(all_parts)
            if each[0].op is getitem.op and (refs[-1] != refs[-2] or refs[-1][0] in steps.own):
                raise NotRolledError("subscripts differ, and so does what they are of")
        else:
            unlike = _last_unlike(all_parts)
    else:
        for k, a in enumerate(each[-1].args):
            if type(a) in (int, float):
                there = [repr(entry.args[k]) for entry in each]  # 0.0 and -0.0 are two numbers
                if there[-1] == there[-2]:
                    unlike = max(unlike, _last_unlike(there))
                else:
                    steps.varying[i, k] = tuple([entry.args[k] for entry in each])
    for values in zip(*refs, strict=True):
        unlike = max(unlike, _value(steps, values))
    return unlike


def _last_unlike(values: Sequence[Any]) -> int:
    """The last place in which a value is not the last one; -1 if all are equal."""
    return max((j for j, value in enumerate(values) if value != values[-1]), default=-1)


def _value(steps: Steps, values: tuple[int, ...]) -> int:
    """Note where an argument comes from, by its number in each step."""
    own = steps.own
    place = own.get(values[-1])
    if values[-1] == values[-2]:
        unlike = _last_unlike(values)
        if place is None and values[-1] not in steps.closures:
            steps.closures.append(values[-1])
        return unlike if place is None else max(unlike, place[0])
    if place is None:
        if values not in steps.elements:
            steps.elements.append(values)
        return max((j for j, n in enumerate(values) if n in own), default=-1)
    step, entry, result = place
    lag = steps.count - 1 - step
    if lag > _LAG:
        raise NotRolledError("a step looks far back")
    unlike = -1
    for j, n in enumerate(values):
        if j >= lag:
            fits = own.get(n) == (j - lag, entry, result)
        else:
            fits = n not in own and steps.starts.setdefault(Carry(entry, result, lag - j), n) == n
        unlike = unlike if fits else j
    return unlike


def _rows(subscripts: Sequence[tuple[Any, ...]]) -> tuple[Rows, int]:
    """How subscripts go on from step to step; and the last step in which they do not."""
    last, before = subscripts[-1], subscripts[-2]
    places = [k for k, part in enumerate(last) if part != before[k]]
    if len(places) != 1:
        raise NotRolledError("several subscripts change")
    (k,) = places
    lead, tail, rise = last[:k], last[k + 1 :], last[k] - before[k]
    if abs(rise) != 1 or any(part is None or part is Ellipsis for part in lead):
        raise NotRolledError("a subscript does not go on by one")
    first = last[k] - rise * (len(subscripts) - 1)
    expected = [(*lead, first + rise * j, *tail) for j in range(len(subscripts))]
    unlike = max((j for j, found in enumerate(subscripts) if found != expected[j]), default=-1)
    if unlike < 0 and (first < 0) != (last[k] < 0):
        raise NotRolledError("subscripts go from one end to the other")
    return Rows(lead, tail, first, rise < 0), unlike


def _take_fills(steps: Steps, used: Callable[[int], Iterable[int]]) -> None:
    """Note the sums to which each step adds a row, and the buffers to which it writes one."""
    last, users = steps.count - 1, {}
    fills: dict[int, tuple[int, int]] = {}  # by the entry that adds: the one that places, and what it adds to
    for place in steps.rows:
        entry = steps.entries[-steps.period + place]
        if entry.op is getitem.op:
            continue
        add = place
        if entry.op is placed.op:
            add = _only_user(steps, used, place, last)
            entry = steps.entries[-steps.period + add]
            known = entry.op is _ADD and len(entry.args) == 2 and not entry.kwargs
            if not known or not all(_only_user(steps, used, place, j) == add for j in range(last)):
                raise _NOT_FILLED
        terms = {*steps.refs[-steps.period + add][: 2 if add != place else 1]} - {steps.number(last, place)}
        if len(terms) != 1 or add in fills:
            raise _NOT_FILLED
        fills[add] = place, terms.pop()
    for add, (place, before) in sorted(fills.items()):
        where = steps.own.get(before)
        if where is None or where[1] not in fills or where[0] not in (last, last - 1):
            raise _NOT_FILLED
        users[where[1]] = add
        steps.fills.append(_filled(steps, place, add, where[1] if where[0] == last else None))
    for add in fills:
        if add not in users or (fills[add][0] == add) != (fills[users[add]][0] == users[add]):
            raise _NOT_FILLED
        ends = users[add] <= add  # the next row is that of the next step
        for j in range(last if ends else last + 1):
            if {*used(steps.number(j, add))} != {steps.first + (j + ends) * steps.period + users[add]}:
                raise _NOT_FILLED
    _refuse_mixed(steps)


_NOT_FILLED = NotRolledError("a row is placed that is not added up, or written to what is read")


def _only_user(steps: Steps, used: Callable[[int], Iterable[int]], place: int, step: int) -> int:
    """The entry of the same step that alone takes the result of an entry."""
    found = {*used(steps.number(step, place))}
    user = found.pop() - steps.first - step * steps.period if len(found) == 1 else -1
    if not place < user < steps.period:
        raise _NOT_FILLED
    return user


def _filled(steps: Steps, place: int, add: int, after: int | None) -> Filled:
    argument = int(place == add)
    row = steps.refs[-steps.period + place][argument]
    made = steps.own.get(row)
    if made is None and row in steps.closures:
        raise NotRolledError("the same row is placed in each step")
    return Filled(place, add, argument, None if made is None else made[1:], after)


def _refuse_mixed(steps: Steps) -> None:
    """NotRolledError if rows are written over one another, or are themselves sums or buffers that are filled."""
    for fill in steps.fills:
        if fill.row is not None and (fill.row[0] in steps.filled or fill.row[0] in {f.place for f in steps.fills}):
            raise _NOT_FILLED
        if fill.place != fill.add:
            continue
        rows = steps.rows[fill.place]
        for other in steps.chain(fill)[1:]:
            parts, others = (
                [part if type(part) is int else None for part in (*r.lead, ..., *r.tail)]
                for r in (rows, steps.rows[other])
            )
            apart = [a != b for a, b in zip(parts, others, strict=False) if a is not None and b is not None]
            alike = rows == steps.rows[other]
            if not alike and (len(rows.lead) != len(steps.rows[other].lead) or not any(apart)):
                raise NotRolledError("rows may be written over one another")
