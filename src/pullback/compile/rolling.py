"""Loops of Python's in a trace, rolled up: equal steps become one loop of the program, as the steps of a `scan` do.

The trace has them one after another, forward and backward. A stretch of equal steps (`equal_steps`) is replaced by one
entry. What later entries take of its steps lies in one array, which a loop of the backward pass reads from the end.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..interpreters.traced import Entry, Ref, Trace
from ..ops.shape.axes import permute
from ..ops.shape.joining import cat, stack
from ..ops.shape.rearranging import flip
from ..ops.shape.reshape import unsqueeze
from ..ops.shape.slices import getitem, placed
from ..ops.shape.splitting import unbound
from .equal_steps import Carry, Rows, Steps, may_repeat, steps_in
from .plan.fuse import LoopStage, schedule
from .simplify import Noted, now, renamed, simplified
from .steps_alone import NotRolledError, Part
from .trace.lower import Lowered, same
from .trace.program import Rounds, Value, evaluated, reachable
from .trace.whole_calls import LoopOp

LARGE = 4096
"""Steps of elementwise operations on more elements than these are left to the loops over elements, which make several
steps of an element while it is at hand."""

Kept = dict[tuple[int, int, int], tuple[list[tuple[int, int]], list[tuple[int, int]]]]
"""What is kept of each step of a loop, and what of the last one alone: entry and result; by the loop's place in its
trace."""


def roll_up(
    level: Trace, roots: Iterable[int], cotangents: Sequence[int], captured: Iterable[int], kept: Kept
) -> _RolledUp:
    """Roll up the loops of a trace.

    roots: the numbers that are needed of it. cotangents: those that the backward pass begins with. captured: those of
    tensors from outside that are no constants. kept: what the loops of an earlier trace of the same function keep, so
    that those of this one can be the same.
    """
    return _RolledUp(level, [*roots], min(cotangents, default=math.inf), set(level.met) - {*captured}, kept)


class _Row(NamedTuple):
    """Where a value lies in an array: under the subscripts ``(*lead, at, *tail)``."""

    array: int
    lead: tuple[Any, ...]
    tail: tuple[Any, ...]
    at: int

    def follows(self, other: _Row) -> int:
        """1 or -1 if it lies after or before another; else 0."""
        beside = self[:3] == other[:3] and abs(self.at - other.at) == 1
        return self.at - other.at if beside else 0


class _Run(NamedTuple):
    """Rows that lie side by side: the first and the last."""

    first: _Row
    last: _Row

    @property
    def down(self) -> bool:
        """Whether they go from the end of the array to its beginning."""
        return self.last.at < self.first.at


class _RolledUp:
    """The entries of a trace with its loops rolled up.

    same: numbers for which another one stands. opaque: operations that are not taken apart, with the reason.
    """

    def __init__(self, level: Trace, roots: list[int], backward: float, constants: set[int], kept: Kept) -> None:
        self.level, self.examples, self.constants, self.kept = level, level.examples, constants, kept
        self.same: dict[int, int] = {}
        self.opaque: dict[str, str] = {}
        self.entries: list[Entry] = []
        self._rows: dict[int, _Row] = {}
        self._lazy: set[int] = set()  # rows that no entry takes yet
        self._begins: dict[int, tuple[int, int]] = {}  # the number that a history begins with, and its place
        self._used: dict[int, list[int]] = defaultdict(list)
        if level.on_gpu or not may_repeat(level.entries) or not self._roll(roots, backward):
            self.entries, self.same = level.entries, {}

    def _roll(self, roots: Sequence[int], backward: float) -> bool:
        """Enter everything anew; whether there are loops."""
        entries = simplified(self.level, self.constants, lambda: map(self.now, roots), self.same)
        for place, noted in enumerate(entries):
            for n in noted.refs:
                self._used[n].append(place)
        for n in roots:
            self._used[self.now(n)].append(len(entries))
        found = steps_in(self.level, entries, self._used.__getitem__, backward)
        place = 0
        for steps in found:
            self._enter_all(entries[place : steps.first])
            place = steps.end
            try:
                self._loop(steps)
            except NotRolledError:
                self._enter_all(entries[steps.first : steps.end])
        self._enter_all(entries[place:])
        for n in roots:
            self._need(self.now(n))
        return bool(found)

    # Entries ----------------------------------------------------------------------------------------------------------

    def now(self, n: int) -> int:
        """The number that stands for one."""
        return now(n, self.same)

    def _enter_all(self, entries: Iterable[Noted]) -> None:
        for entry, refs, _ in entries:
            if any(n in self.same for n in refs):
                entry, refs = renamed(entry, self.same), [*map(self.now, refs)]
            if entry.op is stack.op and entry.args[1] == 0 and self._is_array(entry.results[0], refs):
                continue
            for n in refs:
                self._need(n)
            self.entries.append(entry)
            if entry.op is getitem.op:
                self._note_row(entry)
            elif entry.op is unbound.op:
                (array,), dim = refs, entry.args[1]
                lead = (slice(None),) * (dim % self.examples[array].ndim)
                self._rows |= {n: _Row(array, lead, (), at) for at, n in enumerate(entry.results)}

    def _note_row(self, entry: Entry) -> None:
        """Note that the result is a row, if one subscript is a whole number."""
        array, parts = entry.args[0].number, entry.args[1]
        places = [k for k, part in enumerate(parts) if type(part) is int]
        if len(places) == 1 and all(isinstance(part, slice) for part in parts[: places[0]]):
            (k,) = places
            at = parts[k] % self.examples[array].shape[k]
            self._rows[entry.results[0]] = _Row(array, parts[:k], parts[k + 1 :], at)

    def _is_array(self, result: int, rows: Sequence[int]) -> bool:
        """Whether rows are stacked that lie in an array as they are; it then stands for the result."""
        parts = self._parts(rows)
        if len(parts) > max(1, len(rows) // 4):
            return False
        self.same[result] = self._array(parts, False)
        return True

    def _emit(self, op: Any, args: tuple[Any, ...], example: Any) -> int:
        """A new entry; the number of its result."""
        n = self.level.new(example).number
        self.entries.append(Entry(op, args, {}, (n,)))
        return n

    def _need(self, n: int) -> None:
        """See to it that a number is made."""
        if n in self._lazy:
            self._lazy.discard(n)
            row = self._rows[n]
            self._need(row.array)
            self.entries.append(Entry(getitem.op, (Ref(row.array), (*row.lead, row.at, *row.tail)), {}, (n,)))

    # Arrays of rows ---------------------------------------------------------------------------------------------------

    def _parts(self, ns: Sequence[int]) -> list[_Run | int]:
        """The runs of rows in a sequence of values, and the values beside them."""
        rows = [self._rows.get(n) for n in ns]
        for k, other in ((0, 1), (len(ns) - 1, len(ns) - 2)):  # a loop's history has what it begins with, too
            near = rows[other] if len(ns) > 1 else None
            begins = None if near is None else self._begins.get(near.array)
            if near is not None and begins is not None and begins[0] == ns[k] and not near.lead:
                rows[k] = near._replace(at=begins[1])
        parts: list[_Run | int] = []
        for n, row in zip(ns, rows, strict=True):
            before = parts[-1] if parts else None
            if row is None:
                parts.append(n)
            elif (
                isinstance(before, _Run)
                and (step := row.follows(before.last))
                and (before.first is before.last or (step < 0) is before.down)
            ):
                parts[-1] = _Run(before.first, row)
            else:
                parts.append(_Run(row, row))
        return parts

    def _array(self, parts: Sequence[_Run | int], reverse: bool) -> int:
        """The number of an array of rows, in their order or from the last to the first."""
        pieces = []
        for part in reversed(parts) if reverse else parts:
            if isinstance(part, int):
                self._need(part)
                piece = self._emit(unsqueeze.op, (Ref(part), 0), self.examples[part][None])
            else:
                low, high = sorted((part.first.at, part.last.at))
                piece = self._slice(part.first, low, high + 1)
                if part.first is not part.last and part.down is not reverse:
                    piece = self._emit(flip.op, (Ref(piece), (0,)), self.examples[piece][::-1])
            pieces.append(piece)
        if len(pieces) == 1:
            return pieces[0]
        joined = np.concatenate([self.examples[n] for n in pieces])
        return self._emit(cat.op, ([*map(Ref, pieces)], 0), joined)

    def _slice(self, row: _Row, start: int, stop: int) -> int:
        """The rows of an array from one to another, along the first axis."""
        self._need(row.array)
        whole = self.examples[row.array]
        if not row.lead and (start, stop) == (0, len(whole)) and all(part == slice(None) for part in row.tail):
            return row.array
        index = (*row.lead, slice(start, stop), *row.tail)
        found = self._emit(getitem.op, (Ref(row.array), index), whole[index])
        axis = Rows(row.lead, row.tail, 0, False).axis
        return self._moved(found, axis, 0) if axis else found

    def _moved(self, n: int, axis: int, to: int) -> int:
        """An array with an axis in another place."""
        order = [*range(self.examples[n].ndim)]
        order.insert(to, order.pop(axis))
        return self._emit(permute.op, (Ref(n), tuple(order)), self.examples[n].transpose(order))

    # Loops ------------------------------------------------------------------------------------------------------------

    def _loop(self, steps: Steps) -> None:
        """Enter the loop of some steps."""
        step = _Step(self, steps, self._outside(steps))
        step.check()
        sources = [self._parts_of_input(steps, x) for x in step.xs]
        down = sum(isinstance(p[0], _Run) and p[0].down for p in sources)
        reverse = 2 * down > len(sources)
        args = [self.now(n) for n in step.starts]
        args += [self._zeros(v) for v in step.last_only]
        args += [self._array(parts, reverse) for parts in sources]
        args += [self.now(n) for n in step.closures]
        for n in args:
            self._need(n)
        results = step.lasts()
        rounds = step.rounds(reverse)
        order = range(steps.count - 1, -1, -1) if reverse else range(steps.count)
        for i, r in step.ys:
            rows = [steps.number(j, i, r) for j in order]
            array = self._kept_rows(rows)
            results.append(array)
            self._rows |= {n: _Row(array, (), (), at) for at, n in enumerate(rows)}
        for carry in step.histories:
            rows, start = [steps.number(j, *carry[:2]) for j in order], self.now(steps.starts[carry])
            array = self._kept_rows([*rows, start] if reverse else [start, *rows])
            results.append(array)
            self._rows |= {n: _Row(array, (), (), at) for at, n in enumerate(rows, 0 if reverse else 1)}
            self._begins[array] = start, len(rows) if reverse else 0
        self.entries.append(Entry(LoopOp(rounds), tuple(map(Ref, args)), {}, tuple(results)))
        self._lazy |= {steps.number(j, i, r) for i, r in step.kept for j in order} - {*results}
        for i, rows_of in steps.rows.items():
            self._take_rows(steps, i, rows_of)
        self._fill(steps)
        self.opaque |= step.opaque

    def _outside(self, steps: Steps) -> dict[tuple[int, int], set[int]]:
        """The results of steps that are used outside of the loop: the steps, by entry and result."""
        found: dict[tuple[int, int], set[int]] = {}
        for n, (j, i, r) in steps.own.items():
            if any(not steps.first <= place < steps.end for place in self._used[n]):
                found.setdefault((i, r), set()).add(j)
        return found

    def _parts_of_input(self, steps: Steps, x: tuple[int, ...] | int) -> list[_Run | int]:
        """Where the values of an input come from: a sequence, or the rows that an entry takes."""
        if isinstance(x, tuple):
            return self._parts([self.now(n) for n in x])
        ends = [self._row_of(steps, x, j) for j in (0, steps.count - 1)]
        return [_Run(ends[0], ends[1])]

    def _row_of(self, steps: Steps, i: int, step: int) -> _Row:
        """The row that entry i takes in a step."""
        rows = steps.rows[i]
        array = steps.refs[i][0]
        at = rows.first + (-step if rows.down else step)
        array = self.now(array)
        return _Row(array, rows.lead, rows.tail, at % self.examples[array].shape[len(rows.lead)])

    def _take_rows(self, steps: Steps, i: int, rows: Rows) -> None:
        """Note the rows that the steps took: others may take them, too."""
        if steps.entries[i].op is not getitem.op:
            return
        for j in range(steps.count):
            n = steps.number(j, i)
            self._rows[n] = self._row_of(steps, i, j)
            self._lazy.add(n)

    def _kept_rows(self, ns: Sequence[int]) -> int:
        return self.level.new(np.stack([self.examples[n] for n in ns])).number

    def _zeros(self, value: Value) -> int:
        return self._constant(np.zeros(value.shape, value.dtype))

    def _constant(self, array: Any) -> int:
        n = self.level.new(array).number
        self.entries.append(Entry(None, (array,), {}, (n,)))
        return n

    def enter_numbers(self, values: Any) -> tuple[int, ...]:
        """The numbers of a constant's elements."""
        array = self._constant(values)
        found = tuple(self.level.new(value).number for value in values)
        self._rows |= {n: _Row(array, (), (), at) for at, n in enumerate(found)}
        return found

    def _fill(self, steps: Steps) -> None:
        """Add, or write, the rows of all steps to what they fill, at once."""
        for fill in steps.fills:
            rows, entry = steps.rows[fill.place], steps.entries[fill.place]
            array = self._array(self._parts([self.now(n) for n in steps.filling(fill)]), rows.down)
            start = rows.first - (steps.count - 1) * rows.down
            start %= self.examples[entry.results[0]].shape[len(rows.lead)]
            index = (*rows.lead, slice(start, start + steps.count), *rows.tail)
            if rows.axis:
                array = self._moved(array, 0, rows.axis)
            before, result = self.now(steps.before(fill)), steps.number(steps.count - 1, fill.add)
            self._need(before)
            if fill.place == fill.add:
                way = ((getitem.op, (index,)),)
                self.entries.append(Entry(entry.op, (Ref(before), Ref(array), way), {}, (result,)))
                continue
            shape = entry.args[2]
            whole = np.zeros(shape, self.examples[array].dtype)
            whole[index] = self.examples[array]
            full = self._emit(placed.op, (Ref(array), index, shape), whole)
            self.entries.append(Entry(steps.entries[fill.add].op, (Ref(before), Ref(full)), {}, (result,)))


class _Step:
    """The program of a step.

    carries, xs, closures: its arguments, in words of `Steps`; an x is a sequence, or the entry that takes a row.
    ys: the results of each step that are kept, and no carries; histories: the carries that are kept. last_only: values
    whose last one alone is used.
    """

    def __init__(self, rolled: _RolledUp, steps: Steps, outside: dict[tuple[int, int], set[int]]) -> None:
        self.steps, self._examples = steps, rolled.examples
        self.carries = sorted(c for c in steps.starts if c.entry not in steps.filled)
        last = steps.count - 1
        self.kept, self._last_only = self._keeps(outside, rolled.kept)
        at_last = [steps.number(last - c.lag, *c[:2]) for c in self.carries]
        steps.take_numbers(rolled.level, rolled.enter_numbers)
        xs: list[Any] = [*steps.elements, *(i for i in steps.rows if steps.entries[i].op is getitem.op)]
        at_last += [self._x(x, last) for x in xs]
        met = [n for n in steps.closures if n in rolled.constants]
        closures = [n for n in steps.closures if n not in rolled.constants]
        inputs = [*at_last, *closures]
        if len({*inputs, *met}) < len(inputs) + len(met):
            raise NotRolledError("a value of the last step is two things at once")
        part: Any = Part(inputs, self._examples, steps.step(last), False, tuple(met))
        lowered = Lowered(part, (), None, {}, ())
        values, self.opaque = lowered.values, lowered.opaque
        self.last_only = [values[steps.number(last, *place)] for place in self._last_only]
        extra = [lowered.program.input(v.shape, v.dtype) for v in self.last_only]
        following = [values[steps.number(last - c.lag + 1, *c[:2])] for c in self.carries]
        self._nexts = [*following, *self.last_only]
        self.histories = [c for c in self.carries if c.lag == 1 and c[:2] in self.kept]
        self.ys = [place for place in self.kept if Carry(*place, 1) not in self.histories]
        self._ys = [values[steps.number(last, *place)] for place in self.ys]
        given = [values[n] for n in inputs]
        m = len(self.carries)
        self._carries, self._xs, self._closures = [*given[:m], *extra], given[m : len(at_last)], given[len(at_last) :]
        needed = {*reachable([*self._nexts, *self._ys])}
        self.xs = [x for x, v in zip(xs, self._xs, strict=True) if v in needed]
        self.closures = [n for n, v in zip(closures, self._closures, strict=True) if v in needed]
        self._xs = [v for v in self._xs if v in needed]
        self._closures = [v for v in self._closures if v in needed]

    @property
    def starts(self) -> list[int]:
        """The numbers of the first carries."""
        return [self.steps.starts[c] for c in self.carries]

    def _x(self, x: tuple[int, ...] | int, step: int) -> int:
        return x[step] if isinstance(x, tuple) else self.steps.number(step, x)

    def _keeps(
        self, outside: dict[tuple[int, int], set[int]], known: Kept
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """What is kept of each step, and what of the last one alone: entry and result."""
        steps = self.steps
        left_out = {*steps.rows, *steps.filled}
        given = {(c.entry, c.result, steps.count - c.lag) for c in self.carries}
        wanted = {
            place: {j for j in at if (*place, j) not in given}
            for place, at in outside.items()
            if place[0] not in left_out
        }
        rows = {fill.row for fill in steps.fills if fill.row is not None and fill.row[0] not in steps.rows}
        kept = sorted({place for place, at in wanted.items() if at - {steps.count - 1}} | rows)
        last = sorted(place for place, at in wanted.items() if at and place not in kept)
        before = known.setdefault((steps.number(0, 0), steps.period, steps.count), (kept, last))
        covers = {*kept} <= {*before[0]} and {*last} <= {*before[0], *before[1]}
        return before if covers else (kept, last)

    def lasts(self) -> list[int]:
        """The numbers of the last carries."""
        steps = self.steps
        found = [steps.number(steps.count - c.lag, *c[:2]) for c in self.carries]
        return found + [steps.number(steps.count - 1, *place) for place in self._last_only]

    def rounds(self, reverse: bool) -> Rounds:
        """The loop."""
        histories = [self.carries.index(c) for c in self.histories]
        arguments = self._carries, self._xs, self._closures
        return Rounds("repeated", self.steps.count, reverse, arguments, self._nexts, self._ys, histories)

    def check(self) -> None:
        """NotRolledError if it does not pay, or does not give what the trace has."""
        steps = self.steps
        inputs = [*self._carries, *self._xs, *self._closures]
        outs = [*self._nexts, *self._ys]
        stages = schedule(outs, inputs)
        sizes = [v.size for stage in stages if isinstance(stage, LoopStage) for v in (*stage.inputs, *stage.outputs)]
        if len(sizes) and all(isinstance(stage, LoopStage) for stage in stages) and max(sizes) > LARGE:
            raise NotRolledError("its steps are loops over many elements")
        for fill in steps.fills:
            part, rows = self._examples[steps.number(0, fill.place)], steps.rows[fill.place]
            part = part[(*rows.lead, rows.first, *rows.tail)]
            if any(self._examples[n].shape != part.shape for n in steps.filling(fill)):
                raise NotRolledError("a row is written with fewer elements than it has")
        for step in {steps.count - 1, max([steps.count // 2, *(c.lag for c in self.carries)])}:
            given = [steps.number(step - c.lag, *c[:2]) for c in self.carries]
            arrays = [self._examples[n] for n in given] + [np.zeros(v.shape, v.dtype) for v in self.last_only]
            arrays += [self._examples[n] for n in (*(self._x(x, step) for x in self.xs), *self.closures)]
            expected = [steps.number(step - c.lag + 1, *c[:2]) for c in self.carries]
            expected += [steps.number(step, *place) for place in (*self._last_only, *self.ys)]
            found = evaluated(outs, dict(zip(inputs, arrays, strict=True)))
            if not all(map(same, found, [self._examples[n] for n in expected])):
                raise NotRolledError("a step does something else by itself")
