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

from ..interpreters.traced import Entry, Trace
from ..ops.shape.slices import getitem, placed
from .steps_alone import NotRolledError, numbers
from .trace.lower import replaced
from .trace.program import Slot, key_of

FEWEST = 3
"""How many equal steps are rolled up."""

_LONGEST = 512
"""The most operations of a step."""

_LAG = 4
"""How many steps back a step may look."""

_SUBSCRIPTS = (getitem.op, placed.op)


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
    """A row that each step adds to a sum, which nothing else in the loop reads: the entries that place and add it."""

    place: int
    add: int
    row: int  # the entry of the step that makes the row


class Steps:
    """A stretch of a trace that is `count` times the same step, of `period` entries.

    own: where a number is made: its step, entry and result. starts: the carries, each with the number that it has in
    the first step. elements: values that change from step to step, and that were there before. rows: by the entry that
    takes it, the part of an array. fills: see `Filled`.
    """

    def __init__(self, entries: Sequence[Entry], first: int, period: int, count: int) -> None:
        self.first, self.period, self.count = first, period, count
        self.entries = entries[first : first + period * count]
        self.own: dict[int, tuple[int, int, int]] = {}
        for place, entry in enumerate(self.entries):
            self.own |= {n: (*divmod(place, period), r) for r, n in enumerate(entry.results)}
        self.starts: dict[Carry, int] = {}
        self.elements: list[tuple[int, ...]] = []
        self.closures: list[int] = []
        self.rows: dict[int, Rows] = {}
        self.fills: list[Filled] = []

    @property
    def end(self) -> int:
        """The number of the first entry after it."""
        return self.first + self.period * self.count

    def number(self, step: int, entry: int, result: int = 0) -> int:
        """The number of a result of a step."""
        return self.entries[step * self.period + entry].results[result]

    def step(self, step: int) -> list[Entry]:
        """The entries of a step that are computed in each."""
        left_out = {*self.rows, *(i for fill in self.fills for i in fill[:2])}
        all_of_it = self.entries[step * self.period : (step + 1) * self.period]
        return [entry for i, entry in enumerate(all_of_it) if i not in left_out]


def may_repeat(entries: Sequence[Entry]) -> bool:
    """Whether any operation is there so often that it may be one of equal steps; quick to say."""
    return len(entries) >= FEWEST and max(Counter(id(entry.op) for entry in entries).values()) >= FEWEST


def steps_in(
    level: Trace, entries: Sequence[Entry], used: Callable[[int], Iterable[int]], backward: float
) -> list[Steps]:
    """The stretches of equal steps, in order.

    used: the places in the trace where a number is used. backward: the first number of the backward pass, which is a
    program of its own.
    """
    known: dict[Any, int] = {}
    all_keys = [(entry.results[0] >= backward, _key(level, entry, i)) for i, entry in enumerate(entries)]
    keys = np.array([known.setdefault(key, len(known)) for key in all_keys])
    found: list[Steps] = []
    for period, first, end in _repeats(keys):
        for other in found:
            if first < other.end and other.first < end:
                first, end = (max(first, other.end), end) if other.first <= first else (first, other.first)
        for shift in (0, *_places_of_fills(entries[first : first + period])):
            try:
                steps = _settled(entries, first + shift, period, (end - first - shift) // period)
                _take_fills(steps, used)
            except NotRolledError:
                continue
            if any(entry.op is not None and not entry.op.view for entry in steps.step(0)):
                found.append(steps)
            break
    return sorted(found, key=lambda steps: steps.first)


def _key(level: Trace, entry: Entry, place: int) -> Any:
    """What is equal for entries that do the same with other values; the numbers among subscripts may differ."""
    kinds = [level.examples[n] for n in (*numbers((entry.args, entry.kwargs)), *entry.results)]
    kinds = tuple((a.shape, a.dtype) for a in kinds)
    if entry.op is None:
        array = np.asarray(entry.args[0])
        return (None, array.shape, array.dtype, array.tobytes()) if array.size <= _LONGEST else place
    args = entry.args
    if entry.op in _SUBSCRIPTS:
        args = (args[0], tuple(int if type(part) is int else part for part in args[1]), *args[2:])
    key = (entry.op.name, entry.op.forward, key_of(replaced((args, entry.kwargs), lambda ref: Slot(0))), kinds)
    try:
        hash(key)
    except TypeError:
        return place
    return key


def _repeats(keys: Any) -> Iterator[tuple[int, int, int]]:
    """The periods, and where stretches of at least `FEWEST` of them begin and end."""
    for period in range(1, min(_LONGEST, len(keys) // FEWEST) + 1):
        same = np.concatenate(([False], keys[:-period] == keys[period:], [False]))
        edges = np.flatnonzero(same[1:] != same[:-1])
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if last - first >= (FEWEST - 1) * period:
                yield period, first, last + period


def _places_of_fills(step: Sequence[Entry]) -> list[int]:
    """Where a step may begin instead, lest a row is placed in one and added in the next."""
    return [i for i, entry in enumerate(step) if entry.op is placed.op and i]


# How a step hangs together with the others ----------------------------------------------------------------------------


def _settled(entries: Sequence[Entry], first: int, period: int, count: int) -> Steps:
    """The steps, without those at the beginning that are not like the others. NotRolledError if too few are left."""
    while count >= FEWEST:
        steps = Steps(entries, first, period, count)
        unlike = max((_enter(steps, i) for i in range(period)), default=-1)
        if unlike < 0:
            return steps
        first, count = first + period * (unlike + 1), count - unlike - 1
    raise NotRolledError("too few of its steps are equal")


def _enter(steps: Steps, i: int) -> int:
    """Note what entry i of the steps takes. The last step in which it is not as in the last two; -1 if it always is."""
    each = [steps.entries[j * steps.period + i] for j in range(steps.count)]
    refs = [[*numbers((entry.args, entry.kwargs))] for entry in each]
    unlike = -1
    if each[0].op in _SUBSCRIPTS and each[-1].args[1] != each[-2].args[1]:
        rows, unlike = _rows([entry.args[1] for entry in each])
        steps.rows[i] = rows
        if each[0].op is getitem.op and (refs[-1] != refs[-2] or refs[-1][0] in steps.own):
            raise NotRolledError("subscripts differ, and so does what they are of")
    elif each[0].op in _SUBSCRIPTS:
        unlike = max((j for j, entry in enumerate(each) if entry.args[1] != each[-1].args[1]), default=-1)
    for values in zip(*refs, strict=True):
        unlike = max(unlike, _value(steps, values))
    return unlike


def _value(steps: Steps, values: tuple[int, ...]) -> int:
    """Note where an argument comes from, by its number in each step."""
    own = steps.own
    place = own.get(values[-1])
    if values[-1] == values[-2]:
        unlike = max((j for j, n in enumerate(values) if n != values[-1]), default=-1)
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
    """Note the sums to which each step adds a row."""
    for place in [i for i in steps.rows if steps.entries[i].op is placed.op]:
        (row,) = numbers(steps.entries[-steps.period + place].args)
        made = steps.own.get(row)
        users = {*used(steps.number(steps.count - 1, place))}
        add = users.pop() - (steps.end - steps.period) if len(users) == 1 else -1
        if made is None or made[::2] != (steps.count - 1, 0) or not place < add < steps.period:
            raise NotRolledError("a row is placed that is not added up")
        entry, carry = steps.entries[-steps.period + add], Carry(add, 0, 1)
        adds = [steps.first + j * steps.period + add for j in range(steps.count)]
        alone = all({*used(steps.number(j, place))} == {at} for j, at in enumerate(adds))
        alone &= all({*used(steps.number(j, add))} == {at} for j, at in enumerate(adds[1:]))
        terms = [*numbers(entry.args)]
        known = entry.op is not None and entry.op.name == "add" and len(entry.args) == 2 and not entry.kwargs
        if not (known and alone and carry in steps.starts and len(terms) == 2 and terms[0] != terms[1]):
            raise NotRolledError("a row is placed that is not added up")
        steps.fills.append(Filled(place, add, made[1]))
    for fill in steps.fills:
        if any(fill.row in other[:2] for other in steps.fills) or fill.row in steps.rows:
            raise NotRolledError("a row is placed that is itself placed or taken")
