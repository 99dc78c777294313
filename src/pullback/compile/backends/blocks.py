"""Loops as NumPy in blocks that fit the cache: the backend if there is no compiler.

A block goes through all steps of a loop before the next block begins, so intermediate values never leave the cache.
Blocks are shared out among threads: NumPy releases the interpreter lock while it computes. A small loop is one block,
and is written out as Python code: there the cost of looking at blocks is larger than that of arithmetic.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ...tensor.adding import summed
from ...tensor.arrays import full_beside
from .loop import Loop, Output, Step, fill_empty
from .steps import fold

Array = np.ndarray[Any, Any]
Run = Callable[[Sequence[Array], Sequence[Array]], None]

BLOCK = 32768
"""Elements in a block: a few of them, in float32, fit the second-level cache."""
SMALL = 4096
"""Up to this number of elements a loop is written out: its values are new arrays, which then are all in the cache."""
_PARALLEL = 4 * BLOCK

_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # threads are not inherited


def build(loop: Loop, threads: int) -> Run:
    """A function of the loop's inputs and of its outputs, which it writes; see `loop.py`."""
    return _written_out(loop) if 0 < math.prod(loop.shape) <= SMALL else _Blocks(loop, threads).run


def plain(loop: Loop) -> Run:
    """The same function, of arrays on a GPU: each step is a call of CuPy's."""
    return _written_out(loop, on_gpu=True) if 0 not in loop.shape else lambda xs, ys: fill_empty(loop, ys)


def _written_out(loop: Loop, on_gpu: bool = False) -> Run:
    """The steps of a small loop as straight Python code."""
    # The name is of a frame of this package, whose warnings are muted.
    space: Any = {"__name__": __name__, "reduced": _reduced, "written": np.copyto, "spread": np.broadcast_to}
    space["number"] = full_beside
    lines = []

    def shaped(name: str, value: str, shape: tuple[int, ...]) -> None:
        lines.append(f"{name} = {value}")
        lines.append(f"if {name}.shape != {shape!r}: {name} = {name}.reshape({shape!r})")

    for i, access in enumerate(loop.inputs):
        shaped(f"x{i}", f"xs[{i}]", tuple(n if v else 1 for n, v in zip(loop.shape, access.varies, strict=True)))
    names: list[str] = []
    varies = _steps_vary(loop)
    for i, step in enumerate(loop.steps):
        names.append(f"x{step.value}" if step.name == "load" else f"v{i}")
        if step.name == "const":
            space[f"v{i}"] = np.array(step.value, step.dtype)
            if on_gpu:  # made there, in the function
                space[f"k{i}"] = space[f"v{i}"]
                lines.append(f"v{i} = number(ys[0], (), k{i}[()], k{i}.dtype)")
        elif step.name != "load":
            space[f"f{i}"] = _function(step, out=False)
            lines.append(f"v{i} = f{i}({', '.join(names[a] for a in step.args)})")
    for k, output in enumerate(loop.outputs):
        value = names[output.step]
        if output.reduce is not None:
            space[f"o{k}"] = output
            whole = value if all(varies[output.step]) else f"spread({value}, {loop.shape!r})"
            value = f"reduced(o{k}, {whole}, {output.axes!r})"
        axes = () if output.reduce is None else output.axes
        shaped(f"y{k}", f"ys[{k}]", tuple(n for i, n in enumerate(loop.shape) if i not in axes))
        lines.append(f"written(y{k}, {value})")
    exec(compile("\n    ".join(["def run(xs, ys):", *lines]), "<pullback.compile.loop>", "exec"), space)
    return space["run"]


class _Operation(NamedTuple):
    """One step of a block: the function, the registers it reads, and the register it writes."""

    fn: Any
    reads: tuple[int, ...]
    to: int


class _Blocks:
    """A loop cut along one axis: it loops over the axes before it; the axes after it lie in a block."""

    def __init__(self, loop: Loop, threads: int) -> None:
        self.loop, self.threads = loop, threads
        shape = loop.shape
        self.axis = len(shape) - 1
        inner = 1
        while self.axis > 0 and inner * shape[self.axis] <= BLOCK // 4:
            inner *= shape[self.axis]
            self.axis -= 1
        self.size = math.prod(shape)
        length = shape[self.axis] if shape else 1
        self.chunk = max(1, min(length, BLOCK // max(inner, 1)))
        self.lead = shape[: max(self.axis, 0)]
        self.one_block = not self.lead and self.chunk == length  # which holds all elements
        self.views = [tuple([n if v else 1 for n, v in zip(shape, a.varies, strict=True)]) for a in loop.inputs]
        self.varies = _steps_vary(loop)
        self.spare: list[list[Array]] = []  # scratch memory that no call is using
        self.constants: list[tuple[int, Any]] = []
        self.operations, self.scratch = self._planned()
        self.kept = [tuple(n for i, n in enumerate(shape) if o.reduce is None or i not in o.axes) for o in loop.outputs]
        self.crossing = [  # reductions over an axis that blocks divide: the parts are combined afterwards
            o.reduce is not None and any(a <= self.axis for a in o.axes) for o in loop.outputs
        ]

    def _block_shape(self, varies: Sequence[bool]) -> tuple[int, ...]:
        """The shape of a step's value in a block; axes along which it does not vary have length 1."""
        shape = self.loop.shape
        if not shape:
            return ()
        axes = [(self.chunk if i == self.axis else shape[i]) for i in range(self.axis, len(shape))]
        return tuple(n if v else 1 for n, v in zip(axes, varies[self.axis :], strict=True))

    def _planned(self) -> tuple[list[_Operation], list[tuple[tuple[int, ...], Any]]]:
        """The operations of a block on registers, the inputs first, and the shapes of the other registers."""
        loop = self.loop
        last = dict.fromkeys(range(len(loop.steps)), -1)
        for i, step in enumerate(loop.steps):
            for a in step.args:
                last[a] = i
        for o in loop.outputs:
            last[o.step] = len(loop.steps)
        # an output step is written directly: the outputs are the last registers
        self.direct = {
            o.step: k - len(loop.outputs)
            for k, o in enumerate(loop.outputs)
            if o.reduce is None and all(self.varies[o.step]) and loop.steps[o.step].args
        }
        free: dict[Any, list[int]] = {}
        scratch: list[tuple[tuple[int, ...], Any]] = []
        self.registers: dict[int, int] = {}
        operations: list[_Operation] = []
        for i, step in enumerate(loop.steps):
            if step.name == "load":
                self.registers[i] = step.value
                continue
            kind = (self._block_shape(self.varies[i]), step.dtype)
            if i in self.direct:
                to = self.direct[i]
            elif step.name == "const" or not free.get(kind):
                scratch.append(kind)
                to = len(loop.inputs) + len(scratch) - 1
            else:
                to = free[kind].pop()
            self.registers[i] = to
            if step.name == "const":
                self.constants.append((to - len(loop.inputs), step.value))
                continue
            operations.append(_Operation(_function(step), tuple(self.registers[a] for a in step.args), to))
            for a in set(step.args):
                if last[a] == i and loop.steps[a].args and a not in self.direct:
                    free.setdefault((self._block_shape(self.varies[a]), loop.steps[a].dtype), []).append(
                        self.registers[a]
                    )
        return operations, scratch

    # Running ------------------------------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write the outputs."""
        if not self.size:
            fill_empty(self.loop, outputs)
            return
        views = [x.reshape(shape) for x, shape in zip(inputs, self.views, strict=True)]
        outputs = [out.reshape(shape) for out, shape in zip(outputs, self.kept, strict=True)]
        places = list(self._places())
        workers = min(self.threads, len(places)) if self.size >= _PARALLEL else 1
        if workers <= 1:
            parts = self._work(views, outputs, places)
        else:
            cuts = [len(places) * k // workers for k in range(workers + 1)]
            jobs = [_pool(workers).submit(self._work, views, outputs, places[a:b]) for a, b in itertools.pairwise(cuts)]
            parts = [part for job in jobs for part in job.result()]
        if parts:
            self._put_together(outputs, parts)

    def _places(self) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """The blocks: the indices along the leading axes, and a piece of the cut axis."""
        length = self.loop.shape[self.axis] if self.loop.shape else 1
        for lead in np.ndindex(*self.lead):
            for start in range(0, length, self.chunk):
                yield lead, start, min(start + self.chunk, length)

    def _work(self, views: Sequence[Array], outputs: Sequence[Array], places: Any) -> list[Any]:
        """Run some of the blocks; return the parts still to be combined, as (place, parts)."""
        try:
            scratch = self.spare.pop()
        except IndexError:
            scratch = [np.empty(shape, dtype) for shape, dtype in self.scratch]
            for i, value in self.constants:
                scratch[i].fill(value)
        left: list[Any] = []
        for place in places:
            parts = self._block(views, outputs, scratch, place)
            if parts:
                left.append((place, parts))
        self.spare.append(scratch)
        return left

    def _block(self, views: Sequence[Array], outputs: Sequence[Array], scratch: list[Array], place: Any) -> Any:
        _, start, stop = place
        if self.one_block:
            registers = [*views, *scratch, *outputs]
        else:
            registers = [_cut(x, a.varies, place, self.axis) for x, a in zip(views, self.loop.inputs, strict=True)]
            whole = stop - start == self.chunk
            registers += (
                scratch if whole else [s[: stop - start] if s.shape[:1] == (self.chunk,) else s for s in scratch]
            )
            everywhere = (True,) * len(self.loop.shape)
            registers += [
                _cut(out, everywhere, place, self.axis) if o.reduce is None else out
                for o, out in zip(self.loop.outputs, outputs, strict=True)
            ]
        for fn, reads, to in self.operations:
            fn(*[registers[r] for r in reads], out=registers[to])
        parts: dict[int, Any] = {}
        for k, o in enumerate(self.loop.outputs):
            register = self.registers[o.step]
            value = registers[register]
            if o.reduce is None:
                if register != k - len(outputs):
                    np.copyto(registers[k - len(outputs)], value)
                continue
            full = self._full_shape(stop - start)
            value = np.broadcast_to(value, full)
            axes = tuple(a - self.axis for a in o.axes if a >= self.axis)
            part = _reduced(o, value, axes) if axes else value
            if self.crossing[k]:
                parts[k] = part if axes else part.copy()
            else:
                kept = tuple(i not in o.axes for i in range(len(self.loop.shape)))
                _cut(outputs[k], kept, place, self.axis, dropped=True)[...] = part
        return parts

    def _full_shape(self, length: int) -> tuple[int, ...]:
        return (length, *self.loop.shape[self.axis + 1 :]) if self.loop.shape else ()

    def _put_together(self, outputs: Sequence[Array], parts: list[Any]) -> None:
        """Combine the blocks' partial reductions over axes that blocks divide."""
        for k, o in enumerate(self.loop.outputs):
            if o.reduce is None or not self.crossing[k]:
                continue
            kept = tuple(i not in o.axes for i in range(len(self.loop.shape)))
            found: dict[Any, list[Any]] = {}
            where: dict[Any, Any] = {}
            for place, made in parts:
                lead, start, _ = place
                key = (*(i for i, keep in zip(lead, kept, strict=False) if keep), start if kept[self.axis] else 0)
                found.setdefault(key, []).append(made[k])
                where[key] = place
            for key, values in found.items():
                total = _reduced(o, np.stack(values), (0,))
                _cut(outputs[k], kept, where[key], self.axis, dropped=True)[...] = total


def _cut(x: Array, varies: Sequence[bool], place: Any, axis: int, dropped: bool = False) -> Array:
    """The part of an array that belongs to a block. dropped: the array lacks the axes along which it does not vary."""
    lead, start, stop = place
    if not varies:
        return x
    index: list[Any] = []
    for i, v in zip(lead, varies, strict=False):
        if v:
            index.append(i)
        elif not dropped:
            index.append(0)
    if varies[axis]:
        index.append(slice(start, stop))
    elif not dropped:
        index.append(slice(None))
    return x[(*index, ...)]


def _reduced(output: Output, value: Array, axes: tuple[int, ...]) -> Any:
    """The reduction of one output over axes; sums are taken in blocks of rows, as in eager code."""
    found = fold(output.reduce)
    if found is not None and found.in_blocks:
        return summed(value, axes, dtype=output.dtype)
    if found is not None and type(value) is not np.ndarray:  # CuPy has few of the ufuncs' methods
        return found.function(value, axis=axes)
    return getattr(np, str(output.reduce)).reduce(value, axis=axes, dtype=output.dtype)


def _steps_vary(loop: Loop) -> list[tuple[bool, ...]]:
    """For each step, the axes along which its value varies."""
    found: list[tuple[bool, ...]] = []
    for step in loop.steps:
        if step.name == "load":
            found.append(loop.inputs[step.value].varies)
        else:
            found.append(tuple(any(found[a][i] for a in step.args) for i in range(len(loop.shape))))
    return found


def _where(condition: Array, a: Array, b: Array, out: Array) -> None:
    np.copyto(out, b)
    np.copyto(out, a, where=condition)


def _cast(a: Array, out: Array) -> None:
    np.copyto(out, a, casting="unsafe")


def _function(step: Step, out: bool = True) -> Any:
    """The function of a step. out: it is given ``out=``."""
    if step.name == "cast":
        return _cast if out else lambda a: a.astype(step.dtype)
    found = getattr(np, step.name)
    return found if isinstance(found, np.ufunc) or not out else _where  # the one that has no `out`


def _pool(workers: int) -> ThreadPoolExecutor:
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="pullback")
        return _pools[workers]
