"""From a `Program` to stages: elementwise values and the reductions that end them go into `Loop`s, the rest are calls.

Values are taken in order. A value joins the loops that make its operands, or that read the same inputs, if they have
its shape and no loop would then wait for itself. A value that another shape or a call needs goes through memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..backends.loop import Access, Loop, Output, Step
from ..trace.program import Shape, Value, reachable

STEPS_PER_LOOP = 200
_FUSABLE = "biufc"


class LoopStage(NamedTuple):
    """A loop, the values it reads (contiguous memory, see `memory`) and the values it writes."""

    loop: Loop
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


class CallStage(NamedTuple):
    """A call of a function, or the same memory under another shape."""

    value: Value


Stage = LoopStage | CallStage


def memory(value: Value) -> Value:
    """The value whose memory this value lies in."""
    while value.kind == "reshaped":
        value = value.args[0]
    return value


def source(value: Value) -> Value:
    """The value that this one repeats, if it repeats one."""
    return value.args[0] if value.kind == "broadcast" else value


class _Group:
    """Values that one loop makes, or one call. What it waits for is known as bits, one for each group ever made."""

    def __init__(self, number: int, shape: Shape | None) -> None:
        self.number, self.shape = number, shape  # shape: None for a call
        self.members: list[Value] = []
        self.reads: set[Value] = set()  # the values it reads from memory or makes itself
        self.bits = 1 << number  # its own, and those of the groups that were merged into it
        self.after = 0  # the groups that it waits for, directly or through others
        self.behind = 0  # the groups whose results it reads from memory: it cannot be merged with them
        self.direct: set[_Group] = set()  # the groups that it waits for directly
        self.waiting: set[_Group] = set()  # the groups that wait for it directly


class _Fusion:
    """The groups, as they grow."""

    def __init__(self, available: Iterable[Value]) -> None:
        self.available = set(available)
        self.groups: dict[int, _Group] = {}
        self.of: dict[Value, _Group] = {}
        self._readers: dict[tuple[Value, Shape], list[int]] = {}
        self._count = 0

    def maker(self, value: Value) -> _Group | None:
        """The group that makes a value, also through views and repetitions of each other."""
        while value not in self.available:
            if value.kind not in ("reshaped", "broadcast"):
                return self.of.get(value)
            value = value.args[0]
        return None

    def enter(self, value: Value) -> None:
        """Put a value into a group."""
        if value.kind in ("const", "array", "input", "reshaped"):
            return
        looped = value.kind in ("map", "reduce") and all(v.dtype.kind in _FUSABLE for v in (value, *value.args))
        if not looped:
            if value.kind != "broadcast":
                self._alone(value)
            return
        shape = value.args[0].shape if value.kind == "reduce" else value.shape
        wanted = self._wanted(value.args)
        behind = 0
        for group in self._wanted(a for a in value.args if source(a).kind != "map"):
            behind |= group.bits
        candidates = self._candidates(value, shape)
        found = next((g for g in candidates if self._may_join(g, wanted, behind)), None) or self._new(shape)
        found.behind |= behind
        self._add(found, value, wanted)
        for candidate in candidates:
            if candidate is not found:
                self._merge(found, candidate)

    def _wanted(self, args: Iterable[Value]) -> set[_Group]:
        """The groups that make values."""
        return {group for arg in args if (group := self.maker(arg)) is not None}

    def _candidates(self, value: Value, shape: Shape) -> list[_Group]:
        numbers: list[int] = []
        for arg in value.args:
            arg = source(arg)
            group = self.of.get(arg) if arg not in self.available and arg.kind == "map" else None
            if group is not None and group.shape == shape:
                numbers.append(group.number)
        for arg in value.args:
            arg = source(arg)
            if arg.kind != "const" and (arg.size > 1 or not shape):
                numbers += reversed(self._readers.get((arg, shape), [])[-3:])
        return [self.groups[n] for n in dict.fromkeys(numbers) if n in self.groups]

    def _may_join(self, group: _Group, wanted: set[_Group], behind: int) -> bool:
        alone = len(group.members) >= STEPS_PER_LOOP or behind & group.bits
        return not (alone or any(other.after & group.bits for other in wanted if other is not group))

    def _new(self, shape: Shape | None) -> _Group:
        group = self.groups[self._count] = _Group(self._count, shape)
        self._count += 1
        return group

    def _alone(self, value: Value) -> None:
        self._add(self._new(None), value, self._wanted(value.args))

    def _add(self, group: _Group, value: Value, wanted: set[_Group]) -> None:
        group.members.append(value)
        self.of[value] = group
        for other in wanted:
            if other is not group:
                group.direct.add(other)
                other.waiting.add(group)
                self._wait(group, other.bits | other.after)
        if group.shape is not None:
            reads = [source(a) for a in value.args if source(a).kind != "const"]
            for read in (*reads, value) if value.kind == "map" else reads:
                if read not in group.reads:
                    group.reads.add(read)
                    self._readers.setdefault((read, group.shape), []).append(group.number)

    def _wait(self, group: _Group, bits: int) -> None:
        """A group waits for others, and so does every group that waits for it."""
        told = [group]
        while told:
            one = told.pop()
            if bits | one.after != one.after:
                one.after |= bits
                told += one.waiting

    def _merge(self, into: _Group, other: _Group) -> None:
        """Merge two loops over the same elements, if neither waits for the other through a third.

        It does so if a third that it waits for directly waits for the other: only those have to be looked at.
        """
        both, direct = into.bits | other.bits, (into.direct | other.direct) - {into, other}
        apart = into.behind & other.bits or other.behind & into.bits
        full = len(into.members) + len(other.members) > STEPS_PER_LOOP
        if apart or full or any(third.after & both for third in direct):
            return
        for third in other.direct | other.waiting:
            third.waiting.discard(other)
            third.direct.discard(other)
        into.waiting = (into.waiting | other.waiting) - {into, other}
        into.direct = direct
        for third in into.direct:
            third.waiting.add(into)
        for third in into.waiting:
            third.direct.add(into)
        into.members += other.members
        into.bits, into.after, into.behind = both, (into.after | other.after) & ~both, into.behind | other.behind
        del self.groups[other.number]
        for value in other.members:
            self.of[value] = into
        for read in other.reads - into.reads:
            into.reads.add(read)
            self._readers.setdefault((read, other.shape or ()), []).append(into.number)
        for third in into.waiting:
            self._wait(third, both | into.after)

    def ordered(self) -> list[_Group]:
        """The groups, each after those it waits for."""
        return sorted(self.groups.values(), key=lambda g: (g.after.bit_count(), g.number))


def schedule(outs: Sequence[Value], available: Iterable[Value]) -> list[Stage]:
    """The stages that make `outs` from the available values."""
    fusion = _Fusion(available)
    values = [v for v in reachable(outs, fusion.available) if v not in fusion.available]
    for value in values:
        fusion.enter(value)
    written = {memory(v) for v in outs}
    for value in values:
        group = fusion.of.get(value)
        for arg in value.args:
            held = memory(source(arg))
            if value.kind not in ("reshaped", "broadcast") and fusion.of.get(held) is not group:
                written.add(held)
            if arg is not source(arg) and group is not None and group.shape is None:
                written |= {held, arg}
            if value.kind in ("reshaped", "broadcast"):
                continue
            if memory(arg).kind == "broadcast":  # a repeated value must be written out in another shape
                written |= {memory(arg), held}
    wanted = list(written)
    while wanted:  # the repeated value itself must be in memory once
        value = wanted.pop()
        if value.kind == "broadcast" and value not in fusion.available and memory(value.args[0]) not in written:
            written.add(memory(value.args[0]))
            wanted.append(memory(value.args[0]))
    stages: list[Stage] = []
    for group in fusion.ordered():
        if group.shape is None:
            stages.append(CallStage(group.members[0]))
        else:
            stages.append(_loop_stage(group, [m for m in group.members if m in written or m.kind == "reduce"]))
    return _with_repeats(stages, [v for v in values if v.kind == "broadcast" and v in written])


def _with_repeats(stages: list[Stage], repeats: list[Value]) -> list[Stage]:
    """Add stages that write repeated values to memory, each as soon as the repeated value exists."""
    for value in repeats:
        wanted = memory(value.args[0])
        place = 0
        for i, stage in enumerate(stages):
            made = stage.outputs if isinstance(stage, LoopStage) else (stage.value,)
            if wanted in made:
                place = i + 1
        stages.insert(place, CallStage(value))
    return stages


def _loop_stage(group: _Group, outputs: list[Value]) -> LoopStage:
    shape = group.shape
    assert shape is not None
    steps: list[Step] = []
    inputs: list[Value] = []
    accesses: list[Access] = []
    numbers: dict[Value, int] = {}
    own = set(group.members)

    def number(value: Value) -> int:
        value = source(value)
        found = numbers.get(value)
        if found is None:
            if value.kind == "const":
                steps.append(Step("const", (), value.dtype, value.params))
            elif value in own and value.kind == "map":
                args = tuple(number(a) for a in value.args)
                steps.append(Step(value.fn, args, value.dtype))
            else:
                steps.append(Step("load", (), value.dtype, len(inputs)))
                inputs.append(value)
                accesses.append(Access(value.dtype, _varies(value.shape, shape)))
            found = numbers[value] = len(steps) - 1
        return found

    for member in sorted(own, key=lambda v: v.number):
        number(member if member.kind == "map" else member.args[0])
    outs = tuple(
        Output(number(v), v.dtype) if v.kind == "map" else Output(number(v.args[0]), v.dtype, v.fn, tuple(v.params))
        for v in outputs
    )
    loop = collapsed(Loop(shape, tuple(accesses), tuple(steps), outs))
    return LoopStage(loop, tuple(inputs), tuple(outputs))


def _varies(shape: Shape, whole: Shape) -> tuple[bool, ...]:
    lead = len(whole) - len(shape)
    return tuple(i >= lead and shape[i - lead] != 1 for i in range(len(whole)))


def collapsed(loop: Loop) -> Loop:
    """The same loop over as few axes as possible: axes that no input or output distinguishes become one."""
    kinds = [
        (*(a.varies[i] for a in loop.inputs), *(o.reduce is not None and i in o.axes for o in loop.outputs))
        for i in range(len(loop.shape))
    ]
    kept = [i for i, n in enumerate(loop.shape) if n != 1]
    runs: list[list[int]] = []
    for i in kept:
        if runs and kinds[runs[-1][0]] == kinds[i]:
            runs[-1].append(i)
        else:
            runs.append([i])
    place = {i: k for k, run in enumerate(runs) for i in run}
    shape = tuple(math.prod(loop.shape[i] for i in run) for run in runs)
    inputs = tuple(Access(a.dtype, tuple(a.varies[run[0]] for run in runs)) for a in loop.inputs)
    outputs: list[Any] = []
    for o in loop.outputs:
        axes = tuple(sorted({place[i] for i in o.axes if i in place}))
        outputs.append(o._replace(axes=axes, reduce=o.reduce if axes else None))
    return Loop(shape, inputs, loop.steps, tuple(outputs))
