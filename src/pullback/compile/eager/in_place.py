"""Kernels for rules that write to their arrays: a step of an optimiser as one loop in C.

A rule is NumPy code with ``out=``. Called with symbols (`trace/symbols.py`) it shows the last value of each array. The
loop reads each element once, and writes it once, where NumPy goes over memory for every operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..backends import c, cache
from ..num_threads import get_num_threads
from ..plan.fuse import LoopStage, schedule
from ..trace.lower import same
from ..trace.program import Program
from ..trace.symbols import made_in
from .kernel import announce, calm, tell

Array = np.ndarray[Any, Any]
_FORMS = 64
"""The most kinds of calls that are remembered."""

_SIZES = 512
"""The most sizes whose loops are kept."""

_UNKNOWN: Any = object()  # of a kind of call: it was met once


class InPlace:
    """A rule ``rule(arrays, work, numbers, *constants)`` that treats each element of its arrays alone.

    numbers: a dict of those that may differ from call to call. work: so many arrays that are overwritten. A loop is
    made when a kind of call is met again, so that no constant that is new in each call asks the compiler each time.
    """

    def __init__(self, rule: Callable[..., None], name: str, work: int) -> None:
        self._rule, self._name, self._work = rule, name, work
        self._forms: dict[Any, Any] = {}
        self._runs: dict[Any, Any] = {}

    def __call__(self, arrays: Sequence[Array], numbers: dict[str, float], *constants: Any) -> bool:
        """Whether it has run. Where it has not, nothing was written, and the rule itself has to run."""
        first = arrays[0]
        for a in arrays:
            if type(a) is not np.ndarray or a.dtype != first.dtype or a.size != first.size or not a.flags.carray:
                return False
        if first.dtype.char not in "fd" or not calm():
            return False
        if len({id(a if a.base is None else a.base) for a in arrays}) < len(arrays):
            return False  # an array may be read after another one was written, which shares its memory
        key = (first.dtype, len(arrays), *numbers, repr(constants))
        whole = (first.size, get_num_threads(), *key)
        found = self._runs.get(whole, _UNKNOWN)
        if found is _UNKNOWN:
            if key not in self._forms:
                if len(self._forms) >= _FORMS:
                    self._forms.clear()
                self._forms[key] = _UNKNOWN
                return False
            found = self._built(key, arrays, numbers, constants)
            if len(self._runs) >= _SIZES:
                self._runs.clear()
            self._runs[whole] = found
        if found is None:
            return False
        run, reads, writes = found
        held = [*arrays, *[np.array(n, first.dtype) for n in numbers.values()]]
        run([held[i] for i in reads], [held[i] for i in writes])
        return True

    def _built(self, key: Any, arrays: Sequence[Array], numbers: dict[str, float], constants: Any) -> Any:
        """What runs for arrays of this size, with the places of what it reads and writes; None if nothing does."""
        form = self._forms.get(key, _UNKNOWN)
        if form is _UNKNOWN:
            form = self._forms[key] = self._traced(arrays, numbers, constants)
        if form is None:
            return None
        loop, reads, writes = form
        loop = loop._replace(shape=(arrays[0].size,))
        try:
            failure = c.failure()
            if failure is not None:
                raise failure
            written = c.source(loop)
            announce(self._name, written[0])
            return c.build(loop, get_num_threads(), written), reads, writes
        except cache.CompilerError as error:
            tell(self._name, error)
            return None

    def _traced(self, arrays: Sequence[Array], numbers: dict[str, float], constants: Any) -> Any:
        """The loop, and the places of what it reads and writes; None if the rule has none."""
        program, dtype, n = Program(), arrays[0].dtype, 16
        examples = [1.5 + np.sin(np.arange(1, n + 1) * (i + 1.0)).astype(dtype) for i in range(len(arrays))]
        values = [program.input((n,), dtype) for _ in arrays]
        symbols = [made_in(program, v, example) for v, example in zip(values, examples, strict=True)]
        scalars = {name: np.array(number, dtype) for name, number in numbers.items()}
        inputs = {name: program.input((), dtype) for name in numbers}
        given = {name: made_in(program, inputs[name], scalars[name]) for name in numbers}
        work = [made_in(program, values[0], np.empty(n, dtype)) for _ in range(self._work)]
        expected = [example.copy() for example in examples]
        try:
            with np.errstate(all="ignore"):
                self._rule(symbols, work, given, *constants)
                self._rule(expected, [np.empty(n, dtype) for _ in work], scalars, *constants)
        except Exception:  # of an operation that has no symbol; an error of the rule is raised by itself
            return None
        places = {v: i for i, v in enumerate((*values, *inputs.values()))}
        changed = [i for i, (s, v) in enumerate(zip(symbols, values, strict=True)) if s.value is not v]
        outs = {symbols[i].value: i for i in changed}
        stages = schedule([*outs], places)
        if len(stages) != 1 or not isinstance(stages[0], LoopStage) or c.supports(stages[0].loop) is not None:
            return None
        loop, reads, writes = stages[0]
        told = all(same(s.example, e) for s, e in zip(symbols, expected, strict=True))
        if not told or {*writes} != {*outs} or len(outs) != len(changed):
            return None
        return loop, [places[v] for v in reads], [outs[v] for v in writes]
