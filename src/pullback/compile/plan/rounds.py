"""`RoundsPlan`: a loop of steps as one function of arrays.

The step is planned like a program of its own. Its lines are the body of a loop; all memory is taken before it. A result
of a step is written where it is kept: in its row of the array of all results, or, if it only goes on to the next step,
in one of two arrays by turns. If every stage of the step is a loop that has a form in C, all steps are one call of C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backends import c, c_rounds, cache
from ..backends.loop import Loop
from ..backends.steps import function
from ..trace.program import Rounds, Value
from .fuse import CallStage, LoopStage, memory, schedule
from .on_gpu import OnGpu
from .plan import OnHost, Plan, is_large, tell


def rounds_plan(rounds: Rounds, place: OnHost | OnGpu) -> Plan:
    """The plan of a loop of steps."""
    if isinstance(place, OnHost) and place.backend != "numpy" and c.failure() is None:
        try:
            return RoundsPlan(rounds, place, in_c=True)
        except cache.CompilerError as error:
            if place.backend == "c":
                raise
            tell(error)
    return RoundsPlan(rounds, place)


def rows(array: Any, reverse: bool) -> list[Any]:
    """The parts of an array along its first axis, in the order of the steps."""
    found = list(array) if array.ndim > 1 else [array[i, ...] for i in range(len(array))]
    return found[::-1] if reverse else found


class RoundsPlan(Plan):
    """The plan of a loop of steps. in_c: whether it is to be one call of C, if its stages can be."""

    def __init__(self, rounds: Rounds, place: OnHost | OnGpu, in_c: bool = False) -> None:
        self._rounds, self.in_c = rounds, in_c
        self._before: list[str] = []  # the lines before the loop
        self._elements: dict[str, str] = {}  # what changes from step to step, and where it comes from
        self._targets: dict[Value, str] = {}  # the memory of results that stages write themselves
        self._direct: set[Value] = set()
        self._numbers: dict[str, c_rounds.Operand] = {}
        self._stages: list[tuple[Loop, list[str], list[str]]] = []
        self._copies: list[tuple[str, str, int]] = []
        inputs = [*rounds.carries, *rounds.xs, *rounds.closures]
        outs = [*rounds.nexts, *rounds.ys]
        stages = schedule(outs, inputs)
        super().__init__(stages, inputs, outs, place=place, fresh=[False] * len(outs), plan_of=rounds_plan)

    # Before the first stage -------------------------------------------------------------------------------------------

    def _given(self) -> dict[Value, str]:
        """The names of the inputs. Those with a "c" in front are in one piece of memory."""
        rounds, names = self._rounds, {}
        m = len(rounds.carries)
        for i, v in enumerate(self.inputs):
            names[v] = f"ci{i}" if i < m + len(rounds.xs) else f"a{i}"
        return names

    def _sources(self, loops: list[Loop]) -> Sequence[c.Written | None]:
        """No sources if the steps are one function of C."""
        self.in_c = self.in_c and self._can_be_c(loops)
        return [None] * len(loops) if self.in_c else super()._sources(loops)

    def _can_be_c(self, loops: list[Loop]) -> bool:
        """Whether each stage is a loop with a form in C, and each result one of theirs, an input, or a constant."""
        supported = self._rounds.n >= 0 and all(c.supports(loop) is None and 0 not in loop.shape for loop in loops)
        alone = len(loops) == len(self.stages) and bool(loops)
        made = {o for s in self.stages if isinstance(s, LoopStage) for o in s.outputs} | {*self.inputs}
        return supported and alone and all(memory(v) in made or _is_constant(v) for v in self.outs)

    def _prepare(self) -> None:
        """Take the memory of all results."""
        rounds = self._rounds
        m = len(rounds.carries)
        made: set[Value] = set()
        self._space |= {known.__name__: known for known in (rows, np.copyto)}
        for stage in self.stages:
            if isinstance(stage, LoopStage):
                made.update(stage.outputs)
            elif self._makes_product(stage):
                made.add(self._held(stage.value))
        put = self._before.append
        for i in range(m, m + len(rounds.xs)):
            put(f"X{i} = contiguous(a{i})")
            self._elements[f"ci{i}"] = f"X{i}"
            self._numbers[f"ci{i}"] = c_rounds.Operand(f"X{i}", self.inputs[i].nbytes)
        self._results: list[str] = []  # the arrays of all steps
        self._out_targets: list[str] = []  # the memory of each out in a step
        self._of_steps(made)
        for i in range(m):
            self._carry(i, made)

    def _makes_product(self, stage: CallStage) -> bool:
        value = stage.value
        if value.kind != "call" or not self.place.into_memory:
            return False
        return function(value.fn).product and bool(value.shape) and not value.params[1]

    def _of_steps(self, made: set[Value]) -> None:
        """The arrays of the results of all steps, and of the histories of carries."""
        rounds, put = self._rounds, self._before.append
        m = len(rounds.carries)
        self._kept: dict[int, str] = {}  # the targets of carries that are rows
        for k, i in enumerate(rounds.histories):
            out, lead = rounds.nexts[i], int(rounds.reverse)
            target = self._rows(f"H{k}", out, made, rounds.n + 1, 1 - lead)
            put(f"H{k}[{rounds.n if lead else 0}] = a{i}")
            first = f"H{k}[{rounds.n if lead else 0}, ...]"
            put(f"ci{i} = {first}")
            self._numbers[f"ci{i}"] = c_rounds.Operand(f"H{k}", out.nbytes, lead)
            self._kept[i] = target
        self._ys = [self._rows(f"Y{k}", y, made, rounds.n, 0) for k, y in enumerate(rounds.ys)]
        for i in range(m):
            same = [t for t, y in zip(self._ys, rounds.ys, strict=True) if y is rounds.nexts[i] and self._takes(y, t)]
            if i not in self._kept and same:
                self._kept[i] = same[0]

    def _takes(self, out: Value, target: str) -> bool:
        return self._targets.get(memory(out)) == target

    def _rows(self, name: str, out: Value, made: set[Value], n: int, first: int) -> str:
        """An array of the results of all steps; the name of its row in a step."""
        held = memory(out)
        direct = held in made and held not in self._targets
        shape = (n, *out.shape)
        large = is_large(n * out.nbytes)
        self._before.append(f"{name} = {self._constant(self.place.memory(shape, out.dtype, large))}()")
        row, source = f"c{name}", name
        if direct and held.shape != out.shape:
            source = f"{name}.reshape({(n, *held.shape)!r})"
        if n > self._rounds.n:
            source = f"{source}[{first}:{first + self._rounds.n}]"
        self._elements[row] = source
        self._numbers[row] = c_rounds.Operand(name, out.nbytes, first)
        if direct:
            self._targets[held] = row
        self._results.append(name)
        return row

    def _carry(self, i: int, made: set[Value]) -> None:
        """The memory of a carry that is not kept: two arrays by turns, if it changes."""
        put, out, value = self._before.append, self._rounds.nexts[i], self._rounds.carries[i]
        if i not in self._rounds.histories:
            put(f"ci{i} = contiguous(a{i})")
        if i in self._kept or out is value:
            self._numbers.setdefault(f"ci{i}", c_rounds.Operand(f"ci{i}"))
            if i in self._kept and i not in self._rounds.histories:
                self._numbers[f"ci{i}"] = self._numbers[self._kept[i]]._replace(initial=f"ci{i}", lag=1)
            return
        held = memory(out)
        direct = held in made and held not in self._targets
        take = self._constant(self.place.memory(held.shape if direct else out.shape, out.dtype, False))
        put(f"ct{i}, u{i} = {take}(), {take}()")
        self._numbers[f"ct{i}"] = c_rounds.Operand(f"ct{i}", other=f"u{i}")
        self._numbers[f"ci{i}"] = c_rounds.Operand(f"ct{i}", other=f"u{i}", initial=f"ci{i}", lag=1)
        if direct:
            self._targets[held] = f"ct{i}"
        self._kept[i] = f"ct{i}"

    # Stages -----------------------------------------------------------------------------------------------------------

    def _new(self, value: Value, kept: bool) -> str:
        if value not in self._targets:
            return super()._new(value, kept)
        self._names[value] = self._targets[value]
        self._direct.add(value)
        return self._targets[value]

    def _allocate(self, line: str) -> None:
        self._before.append(line)

    def _contiguous(self, value: Value) -> str:
        value = memory(value)
        if value in self._rounds.closures and self._names[value].startswith("a"):
            i = self._names[value][1:]
            self._before.append(f"ci{i} = contiguous(a{i})")
            self._names[value] = f"ci{i}"
        return super()._contiguous(value)

    def _loop(self, stage: LoopStage) -> None:
        if not self.in_c:
            super()._loop(stage)
            return
        inputs = [self._contiguous(v) for v in stage.inputs]
        outputs = [self._new(v, self._last.get(v, 0) >= len(self.stages)) for v in stage.outputs]
        self._stages.append((stage.loop, inputs, outputs))
        self.backends.append(("c", ""))

    def _constant_out(self, out: Value) -> str:
        """A constant, in memory before the loop."""
        spread = np.array(np.broadcast_to(_value_of(out), out.shape), order="C")
        return self._constant(self.place.constant(spread))

    def _finish(self, fresh: Sequence[bool]) -> None:
        """Copy what no stage wrote where it is kept, and go on to the next step."""
        rounds, put = self._rounds, self._lines.append
        m = len(rounds.carries)
        histories = [(self._kept[i], rounds.nexts[i]) for i in rounds.histories]
        carries = [(self._kept[i], rounds.nexts[i]) for i in range(m) if i in self._kept]
        wanted = dict([*histories, *zip(self._ys, rounds.ys, strict=True), *carries])
        for target, out in wanted.items():
            held = memory(out)
            if held in self._direct and self._targets[held] == target:
                continue
            name = self._constant_out(out) if _is_constant(out) else self._name(out if not self.in_c else held)
            put(f"copyto({target}, {name})")
            self._copies.append((target, name, out.nbytes))
        for i in range(m):
            if i not in self._kept:
                continue
            target = self._kept[i]
            held = memory(rounds.nexts[i])
            shaped = self._takes(rounds.nexts[i], target) and held.shape != rounds.nexts[i].shape
            put(f"ci{i} = {target}.reshape({rounds.nexts[i].shape!r})" if shaped else f"ci{i} = {target}")
            if target == f"ct{i}":
                put(f"ct{i}, u{i} = u{i}, ct{i}")

    def _all_lines(self) -> list[str]:
        """The lines of the function."""
        rounds, m = self._rounds, len(self._rounds.carries)
        histories = [f"H{k}" for k in range(len(rounds.histories))]
        ys = [f"Y{k}" for k in range(len(rounds.ys))]
        if self.in_c:
            lines = self._lines_of_c()
        else:
            names, sources = [*self._elements], [f"rows({s}, {rounds.reverse})" for s in self._elements.values()]
            loop = f"for {', '.join(names)}, in zip({', '.join(sources)}):" if names else f"for _ in range({rounds.n}):"
            loop = f"while ci{m - 1}:" if rounds.n < 0 else loop
            lines = [*self._before, loop, *[f"    {line}" for line in self._lines or ["pass"]]]
        last = [f"copied(ci{i})" for i in range(m)]
        outs = [*last, *ys, *histories]
        return [*lines, f"return ({', '.join(outs)}{',' if len(outs) == 1 else ''})"]

    def _lines_of_c(self) -> list[str]:
        """The lines, if all steps are one call."""
        rounds, threads = self._rounds, self.place.threads  # type: ignore[union-attr]
        program = c_rounds.Steps(rounds.n, rounds.reverse, self._stages, self._copies, self._numbers)
        run = c_rounds.build(program, threads)
        lines = [*self._before, f"{self._constant(run)}(({', '.join(program.arrays)},))"]
        last = 0 if rounds.reverse else rounds.n - 1
        for i, target in self._kept.items():
            shape = rounds.nexts[i].shape
            if target.startswith("ct"):
                lines.append(f"ci{i} = {target if rounds.n % 2 else f'u{i}'}.reshape({shape!r})")
            else:
                first = self._numbers[target].first
                lines.append(f"ci{i} = {target[1:]}[{last + first}, ...].reshape({shape!r})")
        return lines


def _is_constant(value: Value) -> bool:
    """Whether it is a constant, perhaps repeated."""
    while value.kind in ("broadcast", "reshaped"):
        value = value.args[0]
    return value.kind in ("const", "array")


def _value_of(value: Value) -> Any:
    """A constant: one number, or an array of the same elements in order."""
    while value.kind in ("broadcast", "reshaped"):
        value = value.args[0]
    return np.asarray(value.params)
