"""Compares first, then times: the rows of a benchmark, and the measurement of their numbers.

A `Row` is one piece of work, written once for each library (a *side*). `measure` runs every side once and compares all
its results, outputs and gradients, with the first side's; a side that differs makes the row void, and nothing is timed.
Then the sides take turns, run by run, so that other load on the machine affects all of them alike.

Python's garbage collector treats all sides alike too: what exists before the timing is frozen (importing a large
library must not slow the others down), garbage is collected before each run, and during it the collector works as it
does in a user's program.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

Arrays = list[np.ndarray]
Clock = Callable[[], float]


class VoidError(Exception):
    """A row that must not be timed: a side disagrees with the reference, or fails."""


@dataclass(frozen=True)
class Program:
    """One side's way of doing a row's work.

    Only `work` is timed. It takes the result of `prepare`, which is not timed, and returns results that `arrays` turns
    into NumPy arrays for the comparison. A program with a `prepare` does its work once a run, any other as often as
    fills the run. If there is a `figure`, a run is measured by the figure of its results, in the row's unit, instead of
    by its time.
    """

    work: Callable[[Any], Any]
    arrays: Callable[[Any], Arrays]
    prepare: Callable[[], Any] | None = None
    figure: Callable[[Any], float] | None = None

    def once(self) -> Any:
        """Prepare and work, untimed."""
        return self.work(self.prepare() if self.prepare else None)


@dataclass(frozen=True)
class Row:
    """One piece of work.

    `operations`: how many operations it consists of. `budget`: the most that pullback's time may be, over PyTorch's.
    `sides`: the function that makes each side's program from the side's module. `limits`: further budgets, for the
    first side's time over the second's. `tolerance`: how far results may differ, relative to their size. `unit`: the
    unit of the figures, "us" (microseconds an operation) if the work is timed. `most`: a further budget, for pullback's
    own figure. `runs`: as many runs at the most, where one takes long.
    """

    name: str
    title: str
    operations: int
    budget: float | None
    sides: Mapping[str, Callable[[ModuleType], Program]]
    limits: Mapping[tuple[str, str], float] = field(default_factory=dict)
    tolerance: float = 1e-5
    unit: str = "us"
    most: float | None = None
    runs: int | None = None


@dataclass(frozen=True)
class Timing:
    """The times of one side's runs, in microseconds an operation; or figures in the row's unit."""

    runs: Sequence[float]

    @property
    def median(self) -> float:
        """The middle run."""
        return statistics.median(self.runs)

    @property
    def quartiles(self) -> tuple[float, float]:
        """A quarter of the runs was faster than the first, a quarter slower than the second."""
        low, _, high = statistics.quantiles(self.runs, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Result:
    """The result of a row: the timings, or the reason why it has none."""

    row: Row
    timings: dict[str, Timing] = field(default_factory=dict)
    void: str | None = None

    def ratio(self, side: str, reference: str = "torch") -> float | None:
        """A side's median over the reference's; None where one of them did not run."""
        if side not in self.timings or reference not in self.timings:
            return None
        return self.timings[side].median / self.timings[reference].median

    @property
    def met(self) -> bool | None:
        """Whether pullback keeps its budgets; None without a budget, or without anything to compare with."""
        ratio, kept = self.ratio("pullback"), []
        if ratio is not None and self.row.budget is not None:
            kept.append(ratio <= self.row.budget)
        if "pullback" in self.timings and self.row.most is not None:
            kept.append(self.timings["pullback"].median <= self.row.most)
        return all(kept) if kept else None


def compared(row: Row, modules: Mapping[str, ModuleType]) -> dict[str, Program]:
    """The programs of the sides whose modules are there.

    Raises `VoidError` unless each of them returns the same as the first: as many arrays, of the same shapes, dtypes and
    values.
    """
    programs: dict[str, Program] = {}
    results: dict[str, Arrays] = {}
    for side in [side for side in row.sides if side in modules]:
        try:
            programs[side] = row.sides[side](modules[side])
            results[side] = programs[side].arrays(programs[side].once())
        except Exception as error:
            raise VoidError(f"{side} fails: {type(error).__name__}: {error}") from error
    reference = next(iter(results))
    for side, found in results.items():
        _same(side, found, reference, results[reference], row.tolerance)
    return programs


def _same(side: str, found: Arrays, reference: str, expected: Arrays, tolerance: float) -> None:
    if len(found) != len(expected):
        raise VoidError(f"{side} returns {len(found)} arrays, {reference} {len(expected)}")
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if ours.dtype != theirs.dtype:
            raise VoidError(f"{side}: array {number} has dtype {ours.dtype}, {reference}'s has {theirs.dtype}")
        try:
            size = float(np.abs(theirs).max(initial=0)) if tolerance > 1e-5 else 0.01
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * size, strict=True)
        except AssertionError as error:
            raise VoidError(f"{side}: array {number} differs from {reference}'s:{error}") from error


def measure(
    row: Row,
    modules: Mapping[str, ModuleType],
    *,
    repeat: int = 15,
    seconds: float = 0.005,
    collector: bool = True,
    clock: Clock = time.perf_counter,
) -> Result:
    """Compare the sides of a row whose modules are there, then time each of them `repeat` times, if the row does not
    say fewer, taking turns.

    A run repeats work that is short until it lasts about `seconds`. `collector=False` switches the garbage collector
    off while the clock runs.
    """
    try:
        programs = compared(row, modules)
    except VoidError as reason:
        return Result(row, void=str(reason))
    counts = {side: _count(program, seconds, clock) for side, program in programs.items()}
    runs: dict[str, list[float]] = {side: [] for side in programs}
    gc.collect()
    gc.freeze()
    try:
        for turn in range(min(repeat, row.runs or repeat)):
            sides = list(programs)
            for side in sides[turn % len(sides) :] + sides[: turn % len(sides)]:
                program = programs[side]
                if program.figure:
                    runs[side].append(program.figure(program.once()))
                    continue
                elapsed = _run(program, counts[side], collector, clock)
                runs[side].append(elapsed / counts[side] / row.operations * 1e6)
    finally:
        gc.unfreeze()
    return Result(row, {side: Timing(times) for side, times in runs.items()})


def _run(program: Program, count: int, collector: bool, clock: Clock) -> float:
    """The seconds that `count` times the work takes."""
    work, prepared = program.work, program.prepare() if program.prepare else None
    turns = range(count)
    gc.collect()
    if not collector:
        gc.disable()
    try:
        start = clock()
        for _ in turns:
            work(prepared)
        return clock() - start
    finally:
        gc.enable()


def _count(program: Program, seconds: float, clock: Clock) -> int:
    """How often a program's work fits into a run of `seconds`; once where it needs a `prepare`, or is not timed."""
    if program.prepare or program.figure:
        return 1
    elapsed = min(_run(program, 1, True, clock) for _ in range(3))
    return max(1, round(seconds / max(elapsed, 1e-7)))
