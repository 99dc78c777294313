"""Kernels for eager calls: a forward or a rule of the table, on large arrays, as one loop in C.

A `Kernel` shows the function symbols, as `trace/lower.py` does, and so has its program; the program becomes a loop if
it is one. The loop is compiled once on a machine (`backends/cache.py`); for another number of elements it is called
with other numbers. Where anything stands in the way, the kernel gives None, and the caller runs the function itself, as
NumPy: on another layout or dtype, without a compiler, while NumPy is asked to raise floating point errors.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from .backends import c, c_source, cache
from .backends.loop import Loop
from .num_threads import get_num_threads
from .plan.fuse import LoopStage, schedule
from .trace.lower import same
from .trace.program import Program, Value
from .trace.symbols import Symbol, made_in

_ndarray = np.ndarray
_FORMS = 16
"""The most kinds of arguments (dtypes and numbers) for which one function is compiled. Each takes the compiler a
second: a program that has a new number in each call must not wait for it each time."""

_SIZES = 512
"""The most numbers of elements whose loops are kept."""

_CALM = {"ignore", "warn"}


_said: set[str] = set()


def tell(name: str, failure: cache.CompilerError) -> None:
    """Warn once that large calls run as NumPy, unless there is simply no compiler."""
    if not isinstance(failure, cache.NoCompilerError) and "failure" not in _said:
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


class Form(NamedTuple):
    """A function as a loop, for one kind of arguments.

    order: which arguments the loop reads. loop: of any number of elements. runs: what runs it, by that number.
    """

    order: tuple[int, ...]
    dtype: np.dtype[Any]
    loop: Loop
    library: Any
    runs: dict[tuple[int, int], Any]

    def run(self, n: int, threads: int) -> Any:
        """What runs the loop on `n` elements."""
        loop = self.loop._replace(shape=(n,))
        if len(self.runs) >= _SIZES:
            self.runs.clear()
        made = self.runs[n, threads] = c.of_library(self.library, loop, threads, c_source.numbers(loop))
        return made


class Kernel:
    """A function of arrays that treats each element alone, in C where it can be. It is called as the function is."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function, self._name = function, name
        self._forms: dict[Any, Form | None] = {}

    def __call__(self, *args: Any) -> Any:
        """The result, an array; None where the function itself has to run."""
        kinds: list[Any] = []
        shape = None
        for a in args:
            if type(a) is not _ndarray:
                kinds.append((type(a), repr(a)))
            elif (shape is None or a.shape == shape) and a.flags.c_contiguous:
                shape = a.shape
                kinds.append(a.dtype)
            else:
                kinds.append((a.dtype,))  # one number, repeated
        if shape is None or not _CALM.issuperset(np.geterr().values()):
            return None
        n = math.prod(shape)
        key = (*kinds, n > c_source.BLOCK)
        try:
            form = self._forms[key]
        except KeyError:
            form = self._new(key, args, kinds)
        if form is None:
            return None
        arrays = []
        for i in form.order:
            a = args[i]
            if type(kinds[i]) is tuple:
                if a.ndim > len(shape) or (a.size != 1 and (a.shape != shape or any(a.strides))):
                    return None
                a = np.asarray(a[(0,) * a.ndim])
            elif not a.flags.aligned:
                return None
            arrays.append(a)
        threads = get_num_threads()
        run = form.runs.get((n, threads)) or form.run(n, threads)
        out = np.empty(shape, form.dtype)
        run(arrays, (out,))
        return out

    def _new(self, key: Any, args: Sequence[Any], kinds: Sequence[Any]) -> Form | None:
        """The form for arguments of these kinds; None if there is none."""
        if len(self._forms) >= _FORMS:
            return None
        form, failure = None, c.failure()
        if failure is None:
            try:
                form = self._traced(args, kinds, key[-1])
            except cache.CompilerError as error:
                failure = error
        if failure is not None:
            tell(self._name, failure)
        return self._forms.setdefault(key, form)

    def _traced(self, args: Sequence[Any], kinds: Sequence[Any], long: bool) -> Form | None:
        program, size = Program(), c_source.BLOCK + 1 if long else 2
        symbols: list[Any] = []
        examples: list[Any] = []
        places: dict[Value, int] = {}
        for i, (a, kind) in enumerate(zip(args, kinds, strict=True)):
            symbols.append(a)
            examples.append(a)
            if type(a) is _ndarray:
                if a.dtype.kind not in "bf":
                    return None
                shape = () if type(kind) is tuple else (size,)
                examples[i] = np.linspace(-3, 3, math.prod(shape)).reshape(shape).astype(a.dtype)
                places[value := program.input(shape, a.dtype)] = i
                symbols[i] = made_in(program, value, examples[i])
        try:
            with np.errstate(all="ignore"):
                found, expected = self._function(*symbols), self._function(*examples)
        except Exception:  # the function itself will raise it
            return None
        if not isinstance(found, Symbol) or not same(found.example, np.asarray(expected)):
            return None
        stages = schedule([found.value], places)
        stage = stages[0] if len(stages) == 1 else None
        if not isinstance(stage, LoopStage) or stage.loop.shape != (size,) or c.supports(stage.loop):
            return None
        text, _ = c_source.source(stage.loop)
        announce(self._name, text)
        return Form(tuple(places[v] for v in stage.inputs), found.dtype, stage.loop, cache.load(text), {})
