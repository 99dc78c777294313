"""Kernels for eager calls: a forward or a rule of the table, on large arrays, as loops in C.

A `Kernel` shows the function symbols, as `trace/lower.py` does, and so has its program, whose elementwise steps and
reductions become loops (`plan/fuse.py`). They are compiled once on a machine (`backends/cache.py`). A program that
treats each row alone (an index of the first axis longer than 1; of an elementwise operation, each element), or adds
rows up at its end, is traced for a few rows and serves any number of them; several loops take turns on some rows at a
time, which stay in the processor's cache. Any other program is made for one shape.

Where anything stands in the way, the kernel gives None, and the caller runs the function itself, as NumPy: on another
layout or dtype, without a compiler, while NumPy is asked to raise floating point errors.
"""

from __future__ import annotations

import math
import operator
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import errors
from ...tensor.adding import summed
from ..backends import c, c_source, cache
from ..backends.c_rounds import Operand, Steps
from ..backends.loop import Loop
from ..backends.steps import fold
from ..num_threads import get_num_threads
from ..plan.fuse import LoopStage, memory, schedule
from ..trace.lower import same
from ..trace.program import Program, Value, reachable
from ..trace.symbols import Symbol, made_in

_ndarray = np.ndarray
_FORMS = 64
"""The most kinds of arguments (dtypes, numbers, lengths of rows) for which one function is traced."""

_SOURCES = 32
"""The most loops that are compiled for one function. Each takes the compiler a second: a program that has a new number
in each call must not wait for it each time."""

_SIZES = 512
"""The most numbers of rows whose loops are kept."""

_TOGETHER = 1 << 15  # elements that several loops take turns on
_NUMBERS = (bool, int, float, str, type(None))
_CALM = {"ignore", "warn"}
_said: set[str] = set()


class _NoFormError(Exception):
    """A function that has no form in loops."""


def tell(name: str, failure: cache.CompilerError) -> None:
    """Warn once that large calls run as NumPy, unless there is simply no compiler."""
    if not isinstance(failure, cache.NoCompilerError) and (errors.WarnAlways.on or "failure" not in _said):
        _said.add("failure")
        warnings.warn(
            f"{name}() of large arrays runs as NumPy, for its loop cannot be compiled: {failure}",
            stacklevel=errors.callers_level(),
        )


def announce(name: str, text: str) -> None:
    """Say once, on the error stream, that loops of eager calls are compiled."""
    if "built" not in _said and cache.lacks(text):
        _said.add("built")
        print(
            f"pullback: compiling {name}() for large arrays, and others when they are called, once on this machine "
            "(pullback.backends.fused.enabled = False switches this off)",
            file=sys.stderr,
        )


def calm() -> bool:
    """Whether NumPy raises no floating point errors: loops in C raise none."""
    return _CALM.issuperset(np.geterr().values())


class Memory(NamedTuple):
    """The shape and dtype of an array of a form.

    split: its axis of rows, of any length; or None. summed: whether it is a sum over rows, with one part for each turn.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    split: int | None
    summed: bool = False

    def of_rows(self, rows: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """The shape for so many rows, and the dtype."""
        split = self.split
        return self.shape if split is None else (*self.shape[:split], rows, *self.shape[split + 1 :]), self.dtype

    def step(self, rows: int) -> int:
        """The bytes from one turn of so many rows to the next."""
        if self.split is None:
            return math.prod(self.shape) * self.dtype.itemsize if self.summed else 0
        return rows * math.prod(self.shape[self.split + 1 :]) * self.dtype.itemsize

    def rest(self, rows: int, turns: int) -> Any:
        """The part for the last turn, which begins at that row."""
        if self.split is None:
            return slice(turns - 1, None) if self.summed else None
        return (slice(None),) * self.split + (slice(rows, None),)


class Stage(NamedTuple):
    """A loop of a form. each: what its first length is for one row; 0 if it does not depend on their number."""

    loop: Loop
    each: int
    reads: list[int]
    writes: list[int]

    def of_rows(self, rows: int) -> tuple[Loop, list[str], list[str]]:
        """The loop for so many rows, and the names of its arrays."""
        loop = self.loop._replace(shape=(rows * self.each, *self.loop.shape[1:])) if self.each else self.loop
        return loop, [*map(str, self.reads)], [*map(str, self.writes)]


class Run(NamedTuple):
    """A function in C, with the bounds of its turns, and what picks its arrays from these and all that there are."""

    function: Any
    bounds: Any
    order: Callable[[list[Any]], tuple[Any, ...]]


class Call(NamedTuple):
    """A form for arguments of certain shapes.

    ones: the places of arrays that repeat one number. first, last: what runs on all rows but the last ones, if they are
    taken in turns; and on the last ones, which are those parts (`rest`) of the arrays. flat: the arrays are taken for
    one row of elements each. summed: the places of results that are one part for each turn, to be added up.
    """

    arguments: list[int]
    ones: list[int]
    results: list[tuple[tuple[int, ...], np.dtype[Any]]]
    between: list[tuple[tuple[int, ...], np.dtype[Any]]]
    first: Run | None
    rest: list[Any]
    flat: bool
    last: Run
    many: bool
    summed: list[int]

    def run(self, given: Sequence[Any]) -> Any:
        """The results."""
        held: list[Any] = [self.last.bounds, *[given[i] for i in self.arguments]]
        for i in self.ones:
            held[1 + i] = _one(held[1 + i])
        outs = [np.empty(shape, dtype) for shape, dtype in self.results]
        held += outs
        between = [np.empty(shape, dtype) for shape, dtype in self.between]
        if self.first is not None:
            function, held[0], order = self.first
            function(order(held + between), ())
            for i, part in enumerate(self.rest, 1):
                if part is not None:
                    held[i] = (held[i].reshape(-1) if self.flat else held[i])[part]
            held[0] = self.last.bounds
        self.last.function(self.last.order(held + between), ())
        for i in self.summed:
            outs[i] = summed(outs[i], 0) if len(outs[i]) > 1 else outs[i][0]
        return tuple(outs) if self.many else outs[0]


class Form:
    """A function as loops, for one kind of arguments: one function in C that runs all of them on some rows in turns.

    order: the arguments that they read. Arrays are numbered from these (`inputs`) on; then come the results, and what
    is left between loops. many: whether there is a tuple of results. per_row: the elements of a row; 0 if
    there are no rows. load: gives the library of a source.
    """

    def __init__(
        self,
        stages: list[Stage],
        order: list[int],
        inputs: list[Memory],
        results: list[Memory],
        between: list[Memory],
        many: bool,
        per_row: int,
        load: Callable[[str], Any],
    ) -> None:
        self._stages, self._arguments, self._results, self._between = stages, order, results, between
        self._many, self._per_row, self._load = many, per_row, load
        self._held = [*inputs, *results]
        self._libraries: dict[Any, Any] = {}

    def call(self, look: _Look) -> Call:
        """The call with arguments of these shapes."""
        rows, shape = look.rows, look.shape
        parts = 1
        if len(self._stages) > 1:  # each with more rows than one, which would be another loop
            parts = max(1, min(rows // 2, rows * self._per_row // _TOGETHER))
        each = rows // parts
        last = rows - (parts - 1) * each  # which is at least as many
        results = [out.of_rows(rows) if shape is None else (shape, out.dtype) for out in self._results]
        of_parts = [i for i, out in enumerate(self._results) if out.summed]
        for i in of_parts:
            results[i] = ((parts, *results[i][0]), results[i][1])
        return Call(
            self._arguments,
            [i for i, k in enumerate(self._arguments) if k in look.ones],
            results,
            [some.of_rows(last) for some in self._between],
            self._run(each, parts - 1) if parts > 1 else None,
            [some.rest(rows - last, parts) for some in self._held],
            shape is not None,
            self._run(last, 1),
            self._many,
            of_parts,
        )

    def _run(self, rows: int, times: int) -> Run:
        """The function in C for so many rows, so many times."""
        threads = get_num_threads()
        stages = [stage.of_rows(rows) for stage in self._stages]
        operands = {str(i): Operand(str(i), some.step(rows)) for i, some in enumerate(self._held) if some.step(rows)}
        steps, loops = Steps(times, False, stages, (), operands), [loop for loop, _, _ in stages]
        kind = tuple(map(c_source.kind, loops))
        if kind not in self._libraries:
            text, numbers = steps.source()
            self._libraries[kind] = self._load(text)
        else:
            _, numbers = steps.source(write=False)
        work = [*map(c.microseconds, loops)]
        found = c.with_numbers(self._libraries[kind], [*c.header(threads, max(work), sum(work) * times), *numbers])
        order = operator.itemgetter(0, *[1 + int(name) for name in steps.arrays])
        return Run(found, np.array([0, times], np.int64), order)


class _Look(NamedTuple):
    """What is seen of arguments.

    kinds: of each, what tells forms apart. given: the arguments. ones: the places of arrays that repeat one number.
    rows: the number of rows. shape: of the result, if the operation is elementwise.
    """

    kinds: tuple[Any, ...]
    given: Sequence[Any]
    ones: set[int]
    rows: int
    shape: tuple[int, ...] | None


class Kernel:
    """A function of arrays, in C where it can be. It is called as the function is.

    elementwise: each element is treated alone, so that shapes do not matter.
    """

    def __init__(self, function: Callable[..., Any], name: str, elementwise: bool) -> None:
        self._function, self._name, self._elementwise = function, name, elementwise
        self._forms: dict[Any, Any] = {}
        self._calls: dict[Any, Call | None] = {}
        self._sources: set[str] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result; None where the function itself has to run."""
        flat: Sequence[Any] = args
        key: list[Any] = [get_num_threads()]
        if kwargs or list in map(type, args):
            flat = [leaf for a in (*args, *kwargs.values()) for leaf in (a if type(a) is list else (a,))]
            key += [*[len(a) if type(a) is list else -1 for a in args], *kwargs]
        for a in flat:
            if type(a) is _ndarray:
                key.append((a.shape, a.strides, a.dtype, a.flags.aligned))
            elif type(a) in _NUMBERS:
                key.append(repr(a))
            elif type(a) is tuple and all(type(n) is int for n in a):
                key.append(a)
            else:
                return None
        if not calm():
            return None
        call = self._calls.get(whole := tuple(key), _UNKNOWN)
        if call is _UNKNOWN:
            call = self._call(flat, args, kwargs)
            if len(self._calls) >= _SIZES:
                self._calls.clear()
            self._calls[whole] = call
        return None if call is None else call.run(flat)

    def _call(self, flat: Sequence[Any], args: Any, kwargs: Any) -> Call | None:
        """What runs for arguments of these shapes; None if the function itself has to run."""
        look = (_elements if self._elementwise else _rows)(flat)
        if look is None:
            return None
        key: Any = (look.kinds, *[len(a) if type(a) is list else -1 for a in args], *kwargs)
        try:
            if key not in self._forms and len(self._forms) < _FORMS:
                self._forms[key] = self._by_rows(look, args, kwargs)
            form = self._forms.get(key)
            if form is _EXACT:
                key = (key, look.rows)
                if key not in self._forms and len(self._forms) < _FORMS:
                    self._forms[key] = _Traced(self._function, look, args, kwargs, 0).form(self._load)
                form = self._forms.get(key)
            return None if form is None else form.call(look)
        except cache.CompilerError as error:
            tell(self._name, error)
        except _NoFormError:
            pass
        self._forms[key] = None
        return None

    def _by_rows(self, look: _Look, args: Any, kwargs: Any) -> Any:
        """The form for arguments of these kinds with any number of rows; `_EXACT` if each number has its own."""
        failure = c.failure()
        if failure is not None:
            raise failure
        lengths = {n for kind in look.kinds if isinstance(kind[0], np.dtype) for n in kind[1]}
        numbers = [p for p in _PRIMES if all(n % p for n in lengths)][:2]
        if not look.rows or len(numbers) < 2:
            return _EXACT
        traced, again = (_Traced(self._function, look, args, kwargs, n) for n in numbers)
        same_program = traced.goes_by_rows() and traced.signature() == again.signature()
        return traced.form(self._load) if same_program else _EXACT

    def _load(self, text: str) -> Any:
        """The library of a source."""
        if text not in self._sources and len(self._sources) >= _SOURCES:
            raise _NoFormError
        self._sources.add(text)
        announce(self._name, text)
        return cache.load(text)


_UNKNOWN: Any = object()
_EXACT: Any = object()  # a form for each number of rows
_PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
"""Numbers of rows to trace with: in a length of the program, the divisor says that it goes by rows."""


def _elements(args: Sequence[Any]) -> _Look | None:
    """The arguments of an elementwise operation: arrays of one shape, and arrays that repeat one number."""
    kinds: list[Any] = []
    ones: set[int] = set()
    arrays = [a for a in args if type(a) is _ndarray and a.flags.c_contiguous]
    if not arrays:
        return None
    shape = max(arrays, key=_size).shape
    for i, a in enumerate(args):
        if type(a) is not _ndarray:
            kinds.append((type(a), repr(a)))
        elif a.shape == shape and a.flags.c_contiguous:
            if not a.flags.aligned:
                return None
            kinds.append((a.dtype, (-1,)))
        elif a.ndim <= len(shape) and (a.size == 1 or (a.shape == shape and not any(a.strides))):
            kinds.append((a.dtype, ()))
            ones.add(i)
        else:
            return None
    return _Look(tuple(kinds), args, ones, math.prod(shape), shape)


def _rows(args: Sequence[Any]) -> _Look | None:
    """Arguments of any other operation. The rows are those of the largest array."""
    arrays = [a for a in args if type(a) is _ndarray and a.flags.c_contiguous and a.flags.aligned]
    if not arrays:
        return None
    largest = max(arrays, key=_size)
    axis = next((i for i, n in enumerate(largest.shape) if n != 1), 0)
    rows = largest.shape[axis] if largest.size > 1 else 0
    kinds: list[Any] = []
    ones: set[int] = set()
    for i, a in enumerate(args):
        if type(a) is not _ndarray:
            kinds.append((type(a), repr(a)))
            continue
        lead = a.shape[: axis + 1]
        split = a.ndim == largest.ndim and rows and lead == (*(1,) * axis, rows)
        repeats = not (a.flags.c_contiguous and a.flags.aligned)
        if not a.size or (repeats and any(a.strides)):
            return None
        kinds.append((a.dtype, (*lead[:-1], -1, *a.shape[axis + 1 :]) if split else a.shape, repeats))
        if repeats:
            ones.add(i)
    return _Look(tuple(kinds), args, ones, rows, None)


_size = operator.attrgetter("size")


def _one(array: Any) -> Any:
    """The number that an array repeats, as an array."""
    return np.asarray(array[(0,) * array.ndim])


class _Traced:
    """The program of a function for arguments of some kinds, traced for a few rows; for all of them if `rows` is 0."""

    def __init__(self, function: Callable[..., Any], look: _Look, args: Any, kwargs: Any, rows: int) -> None:
        self._look, self._rows = look, rows
        self._program = Program()
        self._inputs: dict[Value, tuple[int, Memory]] = {}  # the numbers of arguments, and how they lie
        made = [self._made(i, kind) for i, kind in enumerate(look.kinds)]
        symbols, examples = (_nested(args, kwargs, [pair[k] for pair in made]) for k in range(2))
        try:
            with np.errstate(all="ignore"):
                found, expected = function(*symbols[0], **symbols[1]), function(*examples[0], **examples[1])
        except Exception:  # the function itself will raise it
            raise _NoFormError from None
        self._many = type(found) is tuple
        self._outs, expected = (part if self._many else (part,) for part in (found, expected))
        for out, array in zip(self._outs, expected, strict=True):
            if not isinstance(out, Symbol) or not same(out.example, np.asarray(array)):
                raise _NoFormError
        self._values = reachable([out.value for out in self._outs])
        self._by_rows = {v for v in self._values if rows and any(n and n % rows == 0 for n in v.shape)}
        self._summed = {v for v in self._values if v not in self._by_rows and self._adds_rows(v)}

    def _made(self, i: int, kind: Any) -> tuple[Any, Any]:
        """An argument as a symbol, and as an example."""
        dtype, shape, *repeats = kind
        if not isinstance(dtype, np.dtype):
            return (self._look.given[i],) * 2
        if dtype.kind not in "bf":
            raise _NoFormError
        split = shape.index(-1) if -1 in shape else None
        n = self._rows or self._look.rows
        shape = tuple([n if m < 0 else m for m in shape])
        size = 1 if repeats == [True] else math.prod(shape)
        example = (3 * np.sin(np.arange(1, size + 1) * (i + 1.0))).astype(dtype)  # no two alike, which could cancel
        example = np.broadcast_to(example, shape) if size < math.prod(shape) else example.reshape(shape)
        given = self._program.input(() if repeats == [True] else shape, dtype)
        self._inputs[given] = i, Memory(given.shape, dtype, None if repeats == [True] or not self._rows else split)
        return made_in(self._program, self._program.broadcast(given, shape), example), example

    def _adds_rows(self, v: Value) -> bool:
        """Whether a value is a sum over rows."""
        known = fold(v.fn) if v.kind == "reduce" and v.args[0] in self._by_rows else None
        return known is not None and known.in_blocks and self._axis(v.args[0]) in v.params

    def goes_by_rows(self) -> bool:
        """Whether each row of the results depends on that row of the arguments alone, or is a sum over rows."""
        for v in self._values:
            if v in self._summed:
                continue
            if v.kind != "reshaped" and not self._summed.isdisjoint(map(memory, v.args)):
                return False
            if v not in self._by_rows:
                if not self._by_rows.isdisjoint(v.args):
                    return False
            elif self._axis(v) is None or (v.kind == "reduce" and self._axis(v.args[0]) in v.params):
                return False
        return all(out.value in self._by_rows or memory(out.value) in self._summed for out in self._outs)

    def _axis(self, value: Value) -> int | None:
        """The axis of rows: the first that is longer than 1."""
        axis = next((i for i, n in enumerate(value.shape) if n != 1), None)
        return None if axis is None or value.shape[axis] != self._rows else axis

    def signature(self) -> Any:
        """What is equal for programs that do the same with any number of rows."""
        place = {v: i for i, v in enumerate(self._values)}
        return [
            (
                v.kind,
                str(v.fn),
                [place[a] for a in v.args],
                v.params.tobytes() if v.kind == "const" else v.params if v.kind == "reduce" else None,
                v.dtype,
                [-1 if n == self._rows else n for n in v.shape],
            )
            for v in self._values
        ]

    def form(self, load: Callable[[str], Any]) -> Form:
        """The form. _NoFormError if there is none."""
        stages = schedule([out.value for out in self._outs], self._inputs)
        places = {v: i for i, v in enumerate(self._inputs)}
        results: list[Memory] = []
        for out in self._outs:
            held = memory(out.value)
            if held in places or held.kind not in ("map", "reduce"):
                raise _NoFormError
            places[held] = len(places)
            results.append(self._memory(out.value))
        between: list[Memory] = []
        made: list[Stage] = []
        for stage in stages:
            if not isinstance(stage, LoopStage) or c.supports(stage.loop) is not None:
                raise _NoFormError
            for v in stage.outputs:
                if v not in places:
                    places[v] = len(places)
                    between.append(self._memory(v))
            rows = 0 if (self._by_rows | self._summed).isdisjoint(stage.outputs) else self._rows
            if any(memory(v) not in places for v in stage.inputs):
                raise _NoFormError
            reads, writes = ([places[memory(v)] for v in part] for part in (stage.inputs, stage.outputs))
            made.append(Stage(stage.loop, stage.loop.shape[0] // rows if rows else 0, reads, writes))
        if not made:
            raise _NoFormError
        per_row = max([math.prod(v.shape) // self._rows for v in self._by_rows], default=0)
        order, inputs = zip(*self._inputs.values(), strict=True)
        return Form(made, [*order], [*inputs], results, between, self._many, per_row, load)

    def _memory(self, value: Value) -> Memory:
        split = self._axis(value) if value in self._by_rows else None
        return Memory(value.shape, value.dtype, split, memory(value) in self._summed)


def _nested(args: Any, kwargs: dict[str, Any], flat: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Other leaves in the places of the arguments."""
    leaves = iter(flat)
    nested = [[next(leaves) for _ in a] if type(a) is list else next(leaves) for a in args]
    return nested, {name: next(leaves) for name in kwargs}
