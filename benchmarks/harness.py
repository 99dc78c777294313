"""Compares first, then times: the rows of a benchmark, and the measurement of their numbers.

A `Row` is one piece of work, written once for each library (a *side*). `measure` runs every side once and compares all
its results, outputs and gradients, with the first side's; a side that differs makes the row void, and nothing is timed.
Then the sides take turns, run by run, so that other load on the machine affects all of them alike. A side works in this
process (`Here`) or in one of its own (`apart.Apart`).

Python's garbage collector treats all sides alike too: what exists before the timing is frozen (importing a large
library must not slow the others down), garbage is collected before each run, and during it the collector works as it
does in a user's program.
"""

from __future__ import annotations

import functools
import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol

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
    unit of the figures, "us" (microseconds an operation) if the work is timed. `most`: further budgets, for the figures
    of sides by themselves. `runs`: as many runs at the most, where one takes long.
    """

    name: str
    title: str
    operations: int
    budget: float | None
    sides: Mapping[str, Callable[[ModuleType], Program]]
    limits: Mapping[tuple[str, str], float] = field(default_factory=dict)
    tolerance: float = 1e-5
    unit: str = "us"
    most: Mapping[str, float] = field(default_factory=dict)
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

    def met(self, side: str = "pullback") -> bool | None:
        """Whether a side keeps its budgets; None without a budget, or without anything to compare with."""
        kept = []
        ratio = self.ratio(side)
        if side == "pullback" and ratio is not None and self.row.budget is not None:
            kept.append(ratio <= self.row.budget)
        if side in self.timings and side in self.row.most:
            kept.append(self.timings[side].median <= self.row.most[side])
        return all(kept) if kept else None


class SideError(Exception):
    """A side that fails: the type and the text of its error."""


class Side(Protocol):
    """A side's program, wherever it runs."""

    def arrays(self) -> Arrays:
        """The results of its work, done once. `SideError` where it fails."""

    def count(self, seconds: float) -> None:
        """Find how often the work fits into a run of so many seconds."""

    def run(self, collector: bool) -> float:
        """The seconds that the work takes, by a run; or the figure of its results."""

    def close(self) -> None:
        """Nothing more is asked."""


class Here:
    """A side in this process."""

    def __init__(self, maker: Callable[[], Program], clock: Clock = time.perf_counter) -> None:
        self._maker, self._clock = maker, clock
        self._count = 1

    @functools.cached_property
    def program(self) -> Program:
        return self._maker()

    def arrays(self) -> Arrays:
        try:
            return self.program.arrays(self.program.once())
        except Exception as error:
            raise SideError(f"{type(error).__name__}: {error}") from error

    def count(self, seconds: float) -> None:
        """Once where the work needs a `prepare`, or is not timed."""
        if not (self.program.prepare or self.program.figure):
            elapsed = min(self._elapsed(True) for _ in range(3))
            self._count = max(1, round(seconds / max(elapsed, 1e-7)))

    def run(self, collector: bool) -> float:
        if self.program.figure:
            return self.program.figure(self.program.once())
        return self._elapsed(collector) / self._count

    def _elapsed(self, collector: bool) -> float:
        """The seconds of all the work of a run."""
        work, prepared = self.program.work, self.program.prepare() if self.program.prepare else None
        turns, clock = range(self._count), self._clock
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

    def close(self) -> None:
        pass


def here(row: Row, modules: Mapping[str, ModuleType], clock: Clock = time.perf_counter) -> dict[str, Here]:
    """The sides of a row whose modules are there, in this process."""
    return {
        side: Here(functools.partial(maker, modules[side]), clock)
        for side, maker in row.sides.items()
        if side in modules
    }


def compare(row: Row, sides: Mapping[str, Side]) -> None:
    """Raise `VoidError` unless each side returns the same as the first: as many arrays, of the same shapes, dtypes and
    values.
    """
    results: dict[str, Arrays] = {}
    for name, side in sides.items():
        try:
            results[name] = side.arrays()
        except SideError as error:
            raise VoidError(f"{name} fails: {error}") from error
    reference = next(iter(results))
    for name, found in results.items():
        _same(name, found, reference, results[reference], row.tolerance)


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
    sides: Mapping[str, Side],
    *,
    repeat: int = 15,
    seconds: float = 0.005,
    collector: bool = True,
) -> Result:
    """Compare the sides of a row, then time each of them `repeat` times, if the row does not say fewer, taking turns;
    in the end they are closed.

    A run repeats work that is short until it lasts about `seconds`. `collector=False` switches the garbage collector
    off while the clock runs.
    """
    try:
        compare(row, sides)
        for side in sides.values():
            side.count(seconds)
        runs: dict[str, list[float]] = {name: [] for name in sides}
        scale = 1e6 / row.operations if row.unit == "us" else 1.0
        gc.collect()
        gc.freeze()
        for turn in range(min(repeat, row.runs or repeat)):
            names = list(sides)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                runs[name].append(sides[name].run(collector) * scale)
    except VoidError as reason:
        return Result(row, void=str(reason))
    finally:
        gc.unfreeze()
        for side in sides.values():
            side.close()
    return Result(row, {name: Timing(times) for name, times in runs.items()})
