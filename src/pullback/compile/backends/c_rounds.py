"""A loop of steps in C, if each stage of a step is a `Loop`: one function that runs all stages of all steps.

The stages are the functions of `c_source.py`. Between them stand the addresses: of a row of an array, of one of two
arrays by turns, of an array that stays. The function runs some of the steps, so that Python is asked in between whether
the user interrupts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import cache
from .c import Written, header, microseconds, with_numbers
from .c_source import HEADER, functions_of, whole_source
from .loop import Loop

_PATIENCE = 50_000.0
"""Microseconds of steps that run in one call."""


class Operand(NamedTuple):
    """Where the memory of an operand lies in a step.

    array: the name of an array. row: the bytes of a row, 0 if it is the array itself; first: the row of the first
    place. other: the array for every second step. initial: the array for the first step, if that is another; lag: how
    many steps before it was written.
    """

    array: str
    row: int = 0
    first: int = 0
    other: str = ""
    initial: str = ""
    lag: int = 0


class Steps:
    """What `build` makes one function of.

    stages: each loop with the names of its inputs and its outputs. copies: targets, sources and counts of bytes, after
    all stages. operands: of the names that change from step to step; any other name is an array. arrays: the names of
    all arrays, in the order in which the function takes them.
    """

    def __init__(
        self,
        n: int,
        reverse: bool,
        stages: Sequence[tuple[Loop, list[str], list[str]]],
        copies: Sequence[tuple[str, str, int]],
        operands: dict[str, Operand],
    ) -> None:
        self.n, self.reverse, self.stages, self.copies = n, reverse, stages, copies
        self._operands = operands
        self.arrays: list[str] = []
        self.numbers: list[int] = []

    def source(self, write: bool = True) -> Written:
        """The source, and its numbers after the header. write: whether the source is wanted; else it is empty."""
        functions: list[str] = []
        body: list[str] = []
        loops: list[Loop] = []
        for loop, inputs, outputs in self.stages:
            texts, names, numbers = functions_of(loop, len(functions), write)
            functions += texts
            loops.append(loop)
            places = ", ".join(self._address(name) for name in (*inputs, *outputs))
            body.append(f"{{ char *const p[] = {{{places}}};")
            for name, own in zip(names, numbers, strict=True):
                body.append(f"if (!status) status = {name}(numbers + {self._number(own)}, p, threads);")
            body.append("}")
        for target, source, count in self.copies:
            place = self._number([count])
            body.append(f"memcpy({self._address(target)}, {self._address(source)}, numbers[{place}]);")
        k = f"numbers[{self._number([self.n])}] - 1 - t" if self.reverse else "t"
        lines = [
            "static int steps(const int64_t *numbers, char *const *data, int threads) {",
            "const int64_t *const bounds = (const int64_t *)data[0];",
            "int status = 0;",
            "for (int64_t t = bounds[0]; t < bounds[1] && !status; t++) {",
            f"const int64_t k = {k};",
            *body,
            "}",
            "return status;\n}",
        ]
        if not write:
            return "", self.numbers
        calls = f"    status = steps(numbers + {HEADER}, data, threads);"
        text = whole_source(
            loops, [*functions, "#include <string.h>", "\n".join(lines)], len(self.arrays) + 1, 0, calls
        )
        return text, self.numbers

    def _number(self, values: Sequence[int]) -> int:
        """The place of numbers among all."""
        self.numbers += values
        return len(self.numbers) - len(values)

    def _data(self, name: str) -> str:
        if name not in self.arrays:
            self.arrays.append(name)
        return f"data[{1 + self.arrays.index(name)}]"

    def _address(self, name: str) -> str:
        """The expression of an address, in step t, at place k."""
        found = self._operands.get(name, Operand(name))
        if found.other:
            even, odd = self._data(found.array), self._data(found.other)
            text = f"((t & 1) == {found.lag} ? {even} : {odd})"
        elif found.row:
            before = 0 if not found.lag else (found.lag if self.reverse else -found.lag)
            stride = f"numbers[{self._number([found.row])}]"
            text = f"({self._data(found.array)} + (k + {found.first + before}) * {stride})"
        else:
            text = self._data(found.array)
        return f"(t == 0 ? {self._data(found.initial)} : {text})" if found.initial else text


def build(steps: Steps, threads: int) -> Callable[[Sequence[Any]], None]:
    """The function that runs all steps on arrays, C-contiguous ones, in the order of `Steps.arrays`.

    Raises:
        pullback.compile.backends.cache.CompilerError: there is no compiler, or it rejects the source.
    """
    text, own = steps.source()
    work = sum(microseconds(loop) + 0.05 for loop, _, _ in steps.stages)
    most = max(microseconds(loop) for loop, _, _ in steps.stages)
    run = with_numbers(cache.load(text), [*header(threads, most, work * steps.n), *own])
    chunk = max(1, int(_PATIENCE / work))
    bounds = [np.array([i, min(i + chunk, steps.n)], np.int64) for i in range(0, steps.n, chunk)]

    def call(arrays: Sequence[Any]) -> None:
        for some in bounds:
            run((some, *arrays), ())

    return call
