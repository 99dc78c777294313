"""`Plan`: stages as one function of arrays, written out as straight Python code.

Every value has a variable; every loop and every call has a line. A result that is no longer needed lends its memory to
later ones. Large results reuse the memory of an earlier run once it is free: fresh pages cost more than arithmetic.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ... import errors
from ...tensor.arrays import repeats
from ..backends import blocks, c, cache
from ..backends.loop import Loop
from ..backends.steps import Called, function, is_fixed
from ..trace.program import Rounds, Slot, Value
from ..trace.whole_calls import LoopRun
from .fuse import CallStage, LoopStage, Stage, memory
from .layouts import turned
from .on_gpu import OnGpu
from .saving import is_view

Array = np.ndarray[Any, Any]
_LARGE = 1 << 18


def is_large(count: int) -> bool:
    """Whether memory of an earlier run is worth looking for, for that many bytes."""
    return count >= _LARGE


class TraceChangedError(RuntimeError):
    """A call gave a result of another shape than in the trace."""


class Buffer:
    """Arrays of one shape and dtype; an array without other references is handed out again."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self.held: list[Array] = []

    def take(self) -> Array:
        """An array, with any values in it."""
        for array in self.held if _COUNTS else ():
            # this list, this variable and the argument of the call; any other reference adds one
            if sys.getrefcount(array) == _UNUSED:
                return array
        array = np.empty(self.shape, self.dtype)
        if len(self.held) < 4:
            self.held.append(array)
        return array


def _count_of_unused() -> int:
    held = [np.empty(1)]
    for array in held:
        found = sys.getrefcount(array)
    return found


_UNUSED = _count_of_unused()
_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()  # without the interpreter lock, a count proves nothing


def contiguous(array: Any) -> Array:
    """The array in one piece of memory, in order."""
    return array if type(array) is np.ndarray and array.flags.c_contiguous else np.asarray(array, order="C")


def owned(array: Any, *others: Array) -> Array:
    """An array that shares its memory with no other."""
    if type(array) is np.ndarray and array.base is None and not any(array is other for other in others):
        return array
    if not repeats(array):
        return np.array(array)
    # a copy would put the axis that repeats elements last in memory, where a ufunc, as it is called eagerly, does not
    return np.logical_or(array, array) if array.dtype.kind == "b" else np.positive(array)


def backend_for(loop: Loop, wanted: str | None) -> tuple[str, str]:
    """The backend for a loop ("c" or "numpy"), and the reason if it is not C."""
    if wanted == "numpy":
        return "numpy", "backend='numpy' was asked for"
    failure = c.failure()
    if failure is not None and wanted == "c":
        raise RuntimeError(
            errors.message(
                "compile(backend='c')",
                expected="a C compiler",
                found=str(failure),
                do="install one, or leave backend= out, which then takes NumPy",
            )
        )
    if failure is not None:
        tell(failure)
    reason = c.supports(loop) if failure is None else str(failure)
    return ("c", "") if reason is None else ("numpy", reason)


_told: set[str] = set()


def tell(failure: cache.CompilerError) -> None:
    """Warn once in a process that loops run as NumPy, unless there is simply no compiler."""
    if not isinstance(failure, cache.NoCompilerError) and (errors.WarnAlways.on or "failure" not in _told):
        _told.add("failure")
        warnings.warn(
            f"compile: loops run as NumPy, for they cannot be compiled: {failure}", stacklevel=errors.callers_level()
        )


class OnHost:
    """The place of a plan: the host's memory. What a plan does otherwise on a GPU is in `on_gpu.py`."""

    into_memory = True
    to_send: Collection[Value] = ()
    refused = ""
    is_array = "{0}.__class__ is ndarray"

    def __init__(self, backend: str | None, threads: int) -> None:
        self.backend, self.threads = backend, threads
        self.names: dict[str, Any] = {
            "copied": np.array,
            **{known.__name__: known for known in (contiguous, owned, np.ndarray, np.asarray)},
        }

    def look_at(self, calls: Sequence[Value]) -> None:
        """See what a plan calls, before it is made."""

    def called(self, fn: Any, known: Called) -> Any:
        """The function that is called for one of NumPy's."""
        return known.plain or fn

    def running(self, run: Any, inputs: Sequence[Value]) -> Any:
        """The function that is called for a plan, of the one that it is written as."""
        return run

    def constant(self, tree: Any) -> Any:
        """An array among arguments, or these."""
        return tree

    def memory(self, shape: tuple[int, ...], dtype: np.dtype[Any], large: bool) -> Callable[[], Any]:
        """A function that gives memory. large: whether memory of an earlier run is worth looking for."""
        return Buffer(shape, dtype).take if large else functools.partial(np.empty, shape, dtype)

    def reduce(self, name: str) -> Any:
        """The function that reduces by a ufunc, of an array and axes."""
        return getattr(np, name).reduce

    def written(self, loops: list[Loop]) -> list[c.Written | None]:
        """The sources of loops that become C, compiled at the same time."""
        in_c = self.backend != "numpy" and c.failure() is None
        return c.write(loops) if in_c else [None] * len(loops)

    def loop(self, loop: Loop, written: c.Written | None) -> tuple[Any, str, str]:
        """What runs a loop, the name of its form, and the reason if that is not C."""
        name, reason = backend_for(loop, self.backend)
        try:
            run = c.build(loop, self.threads, written) if name == "c" else blocks.build(loop, self.threads)
        except cache.CompilerError as error:
            if self.backend == "c":
                raise
            tell(error)
            return blocks.build(loop, self.threads), "numpy", str(error)
        return run, name, reason


class Plan:
    """The plan of one direction: `run` is a function of arrays that returns a tuple of arrays."""

    def __init__(
        self,
        stages: Sequence[Stage],
        inputs: Sequence[Value],
        outs: Sequence[Value],
        *,
        place: OnHost | OnGpu,
        fresh: Sequence[bool],
        plan_of: Callable[[Rounds, Any], Plan],
        given_away: bool = False,
    ) -> None:
        """plan_of: makes the plan of a loop of steps, there. fresh: the `outs` that belong to the caller, in new
        memory. given_away: they may become a gradient, whose memory must be unshared."""
        self._given_away, self._plan_of = given_away, plan_of
        self.stages, self.inputs, self.outs = stages, inputs, outs
        self.place = place
        self.backends: list[tuple[str, str]] = []  # of each loop
        self._names: dict[Value, str] = self._given()
        self.rounds: dict[Value, Plan] = {}  # the plans of the loops of steps
        self._space: dict[str, Any] = {
            "__name__": "pullback.compile.generated",
            "check": _check,
            **place.names,
        }
        self._lines: list[str] = []
        calls = [s.value for s in stages if isinstance(s, CallStage)]
        place.look_at(calls)
        self._turned = turned(calls, [value for _, value in self._reads()]) if place.into_memory else {}
        self._turned_views = {how.view for how in self._turned.values()}
        self._last = self._last_uses()
        self._own: set[Value] = set()  # in memory that this plan has made and nothing else reads
        self._spare: dict[Any, list[str]] = {}
        loops = [stage.loop for stage in stages if isinstance(stage, LoopStage)]
        self._written: Any = iter(self._sources(loops))
        self._lines += [f"a{i} = asarray(a{i})" for i, v in enumerate(inputs) if v in place.to_send]
        self._prepare()
        for number, stage in enumerate(stages):
            if isinstance(stage, LoopStage):
                self._loop(stage)
            else:
                self._call(stage)
            self._release(number)
        self._finish(fresh)
        arguments = ", ".join(f"a{i}" for i in range(len(inputs)))
        self.source = f"def run({arguments}):\n" + "".join(f"    {line}\n" for line in self._all_lines())
        exec(compile(self.source, "<pullback.compile>", "exec"), self._space)
        self.run: Callable[..., tuple[Array, ...]] = place.running(self._space["run"], inputs)

    def _given(self) -> dict[Value, str]:
        """The names of the inputs."""
        return {v: f"a{i}" for i, v in enumerate(self.inputs)}

    def _sources(self, loops: list[Loop]) -> Sequence[c.Written | None]:
        """The sources of the loops, compiled at the same time."""
        return self.place.written(loops)

    def _prepare(self) -> None:
        """Decide what has to be known before the first stage is written."""

    def _all_lines(self) -> list[str]:
        """The lines of the function."""
        return self._lines

    # Names ----------------------------------------------------------------------------------------------------------

    def _constant(self, value: Any) -> str:
        """A name for an object."""
        name = f"k{len(self._space)}"
        self._space[name] = value
        return name

    def _name(self, value: Value) -> str:
        """The variable of a value; made here for a constant or a view."""
        found = self._names.get(value)
        if found is None:
            if value.kind == "array":
                found = self._constant(self.place.constant(value.params))
            elif value.kind == "const":
                found = self._constant(self.place.constant(np.asarray(value.params)))
            elif value.kind == "reshaped":
                held = self._name(value.args[0])
                found = f"v{value.number}"
                self._lines.append(f"{found} = {held}.reshape({value.shape!r})")
            elif value.kind == "broadcast":
                held = self._name(value.args[0])
                found = f"v{value.number}"
                self._lines.append(f"{found} = {self._constant(np.broadcast_to)}({held}, {value.shape!r})")
            else:
                raise AssertionError(f"{value} ({value.kind} {value.fn}) was not made")
            self._names[value] = found
        return found

    def _new(self, value: Value, kept: bool) -> str:
        """A variable with memory for a value. kept: it outlives the run."""
        key = (value.shape, value.dtype)
        name = f"v{value.number}"
        self._names[value] = name
        self._own.add(value)
        if not kept and self._spare.get(key):
            self._allocate(f"{name} = {self._spare[key].pop()}")
            return name
        large = is_large(value.nbytes) and not (kept and self._given_away)
        self._allocate(f"{name} = {self._constant(self.place.memory(*key, large))}()")
        return name

    def _allocate(self, line: str) -> None:
        """Have memory, which this line gets."""
        self._lines.append(line)

    def _reads(self) -> list[tuple[int, Value]]:
        """The reads of each stage, with its number; the returned values are read after all stages."""
        found = [
            (number, read)
            for number, stage in enumerate(self.stages)
            for read in (stage.inputs if isinstance(stage, LoopStage) else stage.value.args)
        ]
        return found + [(len(self.stages), out) for out in self.outs]

    def _last_uses(self) -> dict[Value, int]:
        """The last stage that reads the memory of each value; for returned values, after all stages."""
        return {self._held(read): number for number, read in self._reads()}

    def _held(self, value: Value) -> Value:
        """The value whose memory a value lies in, through views."""
        while True:
            below = memory(value)
            if below in self._turned:
                below = self._turned[below].view
            elif (below.kind == "broadcast" or is_view(below)) and below not in self._turned_views:
                below = memory(below.args[0])
            if below is value:
                return value
            value = below

    def _release(self, number: int) -> None:
        """Lend the memory of values that no later stage reads."""
        for value in list(self._own):
            if self._last.get(value, -1) <= number:
                self._own.discard(value)
                self._spare.setdefault((value.shape, value.dtype), []).append(self._names[value])

    # Stages ---------------------------------------------------------------------------------------------------------

    def _loop(self, stage: LoopStage) -> None:
        run, name, reason = self.place.loop(stage.loop, next(self._written))
        self.backends.append((name, reason))
        inputs = [self._contiguous(v) for v in stage.inputs]
        outputs = [self._new(v, self._last.get(v, 0) >= len(self.stages)) for v in stage.outputs]
        self._lines.append(f"{self._constant(run)}({_tuple(inputs)}, {_tuple(outputs)})")

    def _contiguous(self, value: Value) -> str:
        value = memory(value)
        name = self._name(value)
        if value in self._own or value.kind in ("array", "const") or name.startswith("c"):
            return name
        made = f"c{value.number}"
        self._lines.append(f"{made} = contiguous({name})")
        self._names[value] = made
        return made

    def _call(self, stage: CallStage) -> None:
        value = stage.value
        if value in self._turned_views:  # made together with its product, whose axes it reorders
            return
        if value.kind == "broadcast":
            self._name(value)
            return
        name = f"v{value.number}"
        if value.kind == "item":
            self._lines.append(f"{name} = {self._name(value.args[0])}[{value.params}]")
            self._check(name, value)
            self._names[value] = name
            return
        if value.kind in ("map", "reduce"):
            self._numpy(value)
            return
        args, kwargs = value.params
        names = [self._name(a) for a in value.args]
        if isinstance(value.fn, LoopRun):
            self.rounds[value] = found = self._plan_of(value.fn.rounds, self.place)
            self._lines.append(f"{name} = {self._constant(found.run)}({', '.join(names)})")
            self._names[value] = name
            return
        parts = [self._text(a, names) for a in args]
        parts += [f"{k}={self._text(v, names)}" for k, v in kwargs.items()]
        known = function(value.fn)
        if known.product and value.shape and not kwargs and self.place.into_memory:
            out = self._product(value)
            self._lines.append(f"{self._constant(value.fn)}({', '.join(parts)}, {out})")
            return
        self._lines.append(f"{name} = {self._constant(self.place.called(value.fn, known))}({', '.join(parts)})")
        if not (is_fixed(value.fn) or getattr(value.fn, "view", False)):
            self._check(name, value)
        self._names[value] = name
        self._keep(value)

    def _check(self, name: str, value: Value) -> None:
        """Have it noticed if a result has another size or dtype than in the trace: it depends on values."""
        kind = f"{name}.dtype != {self._constant(value.dtype)}"
        shape = f"{name}.shape != {value.shape!r}"
        self._lines.append(f"if {self.place.is_array.format(name)} and ({shape} or {kind}): check({name!r})")

    def _product(self, value: Value) -> str:
        """A variable with memory for a product, in the order of axes in which the product is read."""
        held = self._held(value)
        name = self._new(held, self._last.get(held, 0) >= len(self.stages))
        if held is value:
            return name
        made = f"v{value.number}"
        self._lines.append(f"{made} = {name}.transpose({self._turned[value].axes!r})")
        return made

    def _keep(self, value: Value) -> None:
        """Do not lend the memory of arguments that a result may lie in."""
        if not is_view(value):
            for arg in value.args:
                self._own.discard(self._held(arg))

    def _numpy(self, value: Value) -> None:
        """A value that no loop makes, e.g. with a dtype that loops lack."""
        names = [self._name(a) for a in value.args]
        name = f"v{value.number}"
        if value.kind == "reduce":
            text = f"{self._constant(self.place.reduce(value.fn))}({names[0]}, {value.params!r})"
        elif value.fn == "cast":
            text = f"{names[0]}.astype({self._constant(value.dtype)})"
        else:
            text = f"{self._constant(getattr(np, value.fn))}({', '.join(names)})"
        self._lines.append(f"{name} = {text}")
        self._names[value] = name

    def _text(self, tree: Any, names: list[str]) -> str:
        """Arguments as an expression."""
        if isinstance(tree, Slot):
            return names[tree.i]
        if tree is None or type(tree) in (bool, int, str):
            return repr(tree)
        if not _has_slots(tree):
            return self._constant(self.place.constant(tree))
        if isinstance(tree, dict):
            return "{" + ", ".join(f"{k!r}: {self._text(v, names)}" for k, v in tree.items()) + "}"
        parts = [self._text(part, names) for part in tree]
        if hasattr(tree, "_fields"):
            return f"{self._constant(type(tree))}({', '.join(parts)})"
        return _tuple(parts) if isinstance(tree, tuple) else f"[{', '.join(parts)}]"

    def _finish(self, fresh: Sequence[bool]) -> None:
        names: list[str] = []
        # this memory is kept for backward or holds another result: a result must not lie in it
        given = {self._held(out) for out, returned in zip(self.outs, fresh, strict=True) if not returned}
        for out, returned in zip(self.outs, fresh, strict=True):
            name, held = self._name(out), self._held(out)
            if returned:
                made_here = held.kind in ("map", "reduce") or held in self._turned_views
                made_here |= function(held.fn).product and self.place.into_memory
                made_here = made_here and held is memory(out)
                if held in given:
                    self._lines.append(f"r{len(names)} = copied({name})")
                    name = f"r{len(names)}"
                elif not made_here:
                    others = ", ".join([name, *(f"a{i}" for i in range(len(self.inputs)))])
                    self._lines.append(f"r{len(names)} = owned({others})")
                    name = f"r{len(names)}"
                given.add(held)
            elif held.kind in ("call", "item"):
                self._lines.append(f"{name} = asarray({name})")
            names.append(name)
        self._lines.append(f"return {_tuple(names)}")


def _has_slots(tree: Any) -> bool:
    if isinstance(tree, Slot):
        return True
    if isinstance(tree, dict):
        return any(map(_has_slots, tree.values()))
    return isinstance(tree, (tuple, list)) and any(map(_has_slots, tree))


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _check(name: str) -> None:
    raise TraceChangedError(
        f"compile: a result ({name}) has another shape or dtype than when the function was traced: it depends on "
        "values.\n"
        "  What to do: leave that part out of the compiled function."
    )
