"""What C for the processor and CUDA C for a GPU have in common: the axes of a `Loop`, its steps, and its reductions.

`c_source.py` and `cuda_source.py` write what differs: the loop around the steps, and how the parts of a reduction meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .c_steps import c_type, expression, literal, short
from .loop import Loop, Output, Step
from .steps import Fold, facts, fold


class Nest(NamedTuple):
    """A loop whose reductions are all over the same axes, with its axes merged. The last axis is the inner one."""

    sizes: tuple[int, ...]
    reduced: tuple[bool, ...]
    varies: tuple[tuple[bool, ...], ...]  # for each input
    outputs: tuple[int, ...]  # numbers of the loop's outputs


def nests_of(loop: Loop) -> list[Nest]:
    """A loop as one nest for each set of axes that its outputs are reduced over; most loops have one."""
    long = [axis for axis, size in enumerate(loop.shape) if size != 1]
    groups: dict[frozenset[int], list[int]] = {}
    plain = [i for i, output in enumerate(loop.outputs) if output.reduce is None]
    for i, output in enumerate(loop.outputs):
        if output.reduce is not None:
            groups.setdefault(frozenset(output.axes) & frozenset(long), []).append(i)
    if plain:  # they fix no axes themselves, and join the first nest
        groups.setdefault(next(iter(groups), frozenset()), []).extend(plain)
    nests = []
    for axes, outputs in groups.items():
        sizes: list[int] = []
        kinds: list[tuple[bool, ...]] = []
        for axis in long:
            kind = (axis in axes, *(access.varies[axis] for access in loop.inputs))
            if kinds and kinds[-1] == kind:
                sizes[-1] *= loop.shape[axis]
            else:
                sizes.append(loop.shape[axis])
                kinds.append(kind)
        if not sizes:
            sizes, kinds = [1], [(False,) * (1 + len(loop.inputs))]
        reduced, *varies = zip(*kinds, strict=True)
        nests.append(Nest(tuple(sizes), reduced, tuple(varies), tuple(outputs)))
    return nests


def strides_over(sizes: Sequence[int], varies: Sequence[bool]) -> list[int]:
    """The strides, in elements, of an array that is contiguous over the axes that vary; 0 for the others."""
    strides, step = [0] * len(sizes), 1
    for axis in reversed(range(len(sizes))):
        if varies[axis]:
            strides[axis], step = step, step * sizes[axis]
    return strides


class NestWriter:
    """Writes the statements of one nest that are the same wherever they run; `numbers` are what its code is given.

    The variables of steps are `v0`, `v1`, ...; `a3` is the accumulator of output 3, and `a3_rest`, for a sum of
    float64, what its additions rounded off.
    """

    def __init__(self, loop: Loop, nest: Nest, number: int) -> None:
        self.loop, self.nest, self.number = loop, nest, number
        self.lines: list[str] = []
        self.numbers: dict[str, int] = {}
        self.reductions = [i for i in nest.outputs if loop.outputs[i].reduce is not None]
        self.plain = [i for i in nest.outputs if loop.outputs[i].reduce is None]

    def _element(self, i: int, index: str) -> str:
        """The expression of an element of an input."""
        raise NotImplementedError

    def _output(self, i: int) -> tuple[Output, str]:
        """An output and the name, in `arithmetic.h`, of the type it is reduced in: a bool is reduced as a byte."""
        output = self.loop.outputs[i]
        return output, "u8" if output.dtype == bool else short(output.dtype)

    def _fold(self, i: int) -> Fold:
        """How an output is reduced."""
        known = fold(self.loop.outputs[i].reduce)
        assert known is not None
        return known

    def _operation(self, i: int) -> str:
        """The name of a reduction in `arithmetic.h`."""
        output, _ = self._output(i)
        return self._fold(i).of_bools if output.dtype == bool else str(output.reduce)

    def _accumulator(self, i: int) -> tuple[str, str, str]:
        """The type that a reduction is accumulated in, its name in `arithmetic.h`, and the value for no elements."""
        output, kind = self._output(i)
        known = facts(self._operation(i)).fold
        assert known is not None
        stored = c_type(output.dtype, stored=True)
        if output.dtype.kind == "f":
            return *(("double", "f64") if known.wide else (stored, kind)), known.start
        if known.none is not None:
            return stored, kind, str(known.none)
        limits = np.iinfo(np.uint8 if output.dtype == bool else output.dtype)
        return stored, kind, literal(limits.min if known.lowest else limits.max, limits.dtype)

    def _compensated(self, i: int) -> bool:
        output, _ = self._output(i)
        return output.dtype == np.float64 and self._fold(i).compensated

    def _parts(self) -> list[tuple[str, str]]:
        """The numbers that unfinished reductions hold, with their C types."""
        parts = []
        for i in self.reductions:
            parts.append((f"{i}", self._accumulator(i)[0]))
            if self._compensated(i):
                parts.append((f"{i}_rest", "double"))
        return parts

    def _join(self, i: int, to: str, value: str, index: str = "") -> str:
        """The statement that takes one more value into an accumulator."""
        if self._compensated(i):
            return f"PB_TWO_SUM({to}{index}, {to}_rest{index}, {value});"
        return f"{to}{index} = pb_{self._operation(i)}_{self._accumulator(i)[1]}({to}{index}, {value});"

    def _finish(self, i: int, accumulator: str, index: str = "") -> str:
        """The expression of a reduction's result."""
        if self._compensated(i):
            return f"pb_finish_f64({accumulator}{index}, {accumulator}_rest{index})"
        return f"({c_type(self.loop.outputs[i].dtype, stored=True)}){accumulator}{index}"

    def _used(self) -> list[int]:
        """The steps that this nest's outputs need, in order."""
        wanted = {self.loop.outputs[i].step for i in self.nest.outputs}
        for k in reversed(range(len(self.loop.steps))):
            if k in wanted:
                wanted.update(self.loop.steps[k].args)
        return sorted(wanted)

    def _step(self, k: int, index: str) -> str:
        """The declaration of the variable that holds a step's value. index: where `_element` reads."""
        step: Step = self.loop.steps[k]
        if step.name == "const":
            value = literal(step.value, step.dtype)
        elif step.name == "load":
            value = self._element(step.value, index) + (" != 0" if step.dtype == bool else "")
        else:
            value = expression(step, self.loop.steps)
        return f"const {c_type(step.dtype)} v{k} = {value};"
