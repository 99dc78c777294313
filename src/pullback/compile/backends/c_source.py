"""Writes the C source of a `Loop`: one pass over memory, whatever the loop computes.

The source holds no sizes, so loops that differ only in sizes share one library. The layout of a loop:

* Axes of length 1 are dropped, and neighbouring axes that all inputs and outputs treat alike are merged, so most loops
  have one axis or two. The last axis is cut into blocks of 1,024 elements; a block is one SIMD loop without
  branches, over values in registers. Values that do not vary along the last axis are computed once before it.
* With a single axis and no reduction, blocks begin at a cache line of the first output: writing vectors across lines
  costs up to a fifth of the speed.
* A block of values to be reduced along the last axis goes through a buffer in the first-level cache to the functions of
  `arithmetic.h`, which reduce it to one number. A reduction over other axes adds blocks to a block of accumulators.
* The outermost loop runs over tasks: the kept axes, the blocks of a kept last axis, and, if these are few, pieces of
  the reduced axes. The division of work depends on the sizes alone, so results do not depend on the number of threads.

Sums of float32 are computed in float64 and rounded once. Sums of float64 are compensated. Constants are written into
the source exactly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .c_steps import c_type, turns
from .loop import Loop
from .nests import Nest, NestWriter, nests_of, strides_over
from .steps import facts

BLOCK = 1024
"""Elements of a block: 4 KiB of float32. The buffers of a few blocks fit the first-level cache."""

VECTOR = 64
"""Bytes of the widest vectors, and of a cache line."""

HEADER = 3
"""The count of numbers before the sizes and strides in the array that a loop's function reads."""

_PIECE = 16384
"""Elements below which a separate task is not worth it."""

# -- the layout of a loop --------------------------------------------------------------------------------------------


class _Writer(NestWriter):
    """Writes the C function of one nest, and computes the numbers that it is called with.

    The function reads these from an array: `numbers` maps their names to their values, in order.
    """

    def __init__(self, loop: Loop, nest: Nest, number: int) -> None:
        super().__init__(loop, nest, number)
        self.inner_reduced = nest.reduced[-1]
        self.kept, self.swept = (
            [axis for axis, r in enumerate(nest.reduced[:-1]) if r is swept] for swept in (False, True)
        )
        self.aligned = len(nest.sizes) == 1 and not self.reductions and nest.sizes[0] > BLOCK
        self._lay_out()

    def _lay_out(self) -> None:
        """Set the numbers: sizes, strides, the division into tasks, groups of tasks and pieces of reductions."""
        sizes, name = self.nest.sizes, self.numbers
        n = sizes[-1]
        lead = VECTOR // self.loop.outputs[self.plain[0]].dtype.itemsize - 1 if self.aligned else 0  # at the most
        blocks = -(-(n + lead) // BLOCK)
        name.update({f"size{axis}": size for axis, size in enumerate(sizes)}, blocks=blocks)
        tasks = math.prod(sizes[axis] for axis in self.kept) * (1 if self.inner_reduced else blocks)
        sweeps = math.prod(sizes[axis] for axis in self.swept) * (blocks if self.inner_reduced else 1)
        work = sweeps * min(n, BLOCK)
        pieces = 1
        if tasks < 32 and tasks * work > 4 * _PIECE:
            pieces = max(1, min(-(-64 // tasks), sweeps, work // _PIECE))
        span = -(-sweeps // pieces)
        pieces = -(-sweeps // span)
        per = max(1, _PIECE // max(work, 1)) if pieces == 1 else 1
        groups = -(-tasks * pieces // per)
        name.update(pieces=pieces, span=span, sweeps=sweeps, per=per, tasks=tasks * pieces, groups=groups)
        for i, varies in enumerate(self.nest.varies):
            self._name_strides(f"in{i}", varies)
        for i in self.plain:
            self._name_strides(f"out{i}", (True,) * len(sizes))
        for i in self.reductions:
            self._name_strides(f"out{i}", [not reduced for reduced in self.nest.reduced])

    def _name_strides(self, array: str, varies: Sequence[bool]) -> None:
        strides = strides_over(self.nest.sizes, varies)
        self.numbers.update({f"{array}_{axis}": strides[axis] for axis in [*self.kept, *self.swept] if varies[axis]})

    # The function

    def write(self) -> str:
        """The C function; `numbers` is complete afterwards."""
        put = self.lines.append
        put(f"static void group{self.number}(const int64_t *d, char *const *p, char *memory, int64_t group) {{")
        self._declare_numbers()
        self._declare_arrays()
        put("int64_t task = group * per, last = task + per < tasks ? task + per : tasks;")
        self._decode("task", self._task_counters())
        put("for (; task < last; task++) {")
        self._task()
        self._advance(self._task_counters())
        put("}\n}")
        put(f"static int nest{self.number}(const int64_t *d, char *const *p, int threads) {{")
        self._declare_numbers()
        put("char *memory = NULL;")
        if self.reductions:
            put(f"if (pieces > 1) memory = malloc({8 * self._width() * len(self._parts())} * tasks);")
            put("if (pieces > 1 && memory == NULL) return 2;")
        self._declare_arrays()
        put(f"pb_share(group{self.number}, d, p, memory, groups, threads);")
        self._combine()
        put("return 0;\n}")
        return "\n".join(self.lines)

    def _declare_numbers(self) -> None:
        self.lines += [f"const int64_t {name} = d[{k}];" for k, name in enumerate(self.numbers)]

    def _declare_arrays(self) -> None:
        """The inputs, the outputs, and the memory for the pieces of reductions, under their names."""
        for i, access in enumerate(self.loop.inputs):
            self.lines.append(f"const {c_type(access.dtype, stored=True)} *const in{i} = (const void *)p[{i}];")
        for i in self.nest.outputs:
            kind = c_type(self.loop.outputs[i].dtype, stored=True)
            self.lines.append(f"{kind} *const out{i} = (void *)p[{len(self.loop.inputs) + i}];")
        for k, (name, kind) in enumerate(self._parts()):
            self.lines.append(f"{kind} *const s{name} = ({kind} *)(memory + {8 * self._width() * k} * tasks);")

    def _task_counters(self) -> list[tuple[str, str]]:
        """The indices of a task with their limits, from the fastest: piece of the reduction, block, kept axes."""
        counters = [("piece", "pieces")] if self.reductions else []
        if not self.inner_reduced:
            counters.append(("block", "blocks"))
        return counters + [(f"i{axis}", f"size{axis}") for axis in reversed(self.kept)]

    def _sweep_counters(self) -> list[tuple[str, str]]:
        """The indices that a reduction runs over, from the fastest."""
        counters = [("block", "blocks")] if self.inner_reduced else []
        return counters + [(f"i{axis}", f"size{axis}") for axis in reversed(self.swept)]

    def _decode(self, number: str, counters: list[tuple[str, str]]) -> None:
        """Indices from their common number, by division: done once for a run of many."""
        rest = number
        for k, (name, limit) in enumerate(counters):
            final = k == len(counters) - 1
            self.lines.append(f"int64_t {name} = {rest}{'' if final else f' % {limit}'};")
            rest = f"{rest} / {limit}"

    def _advance(self, counters: list[tuple[str, str]]) -> None:
        """The next indices, as an odometer turns."""
        text = ""
        for name, limit in reversed(counters[:-1]):
            text = f"if (++{name} == {limit}) {{ {name} = 0; {text or f'{counters[-1][0]}++;'} }}"
        if counters:
            self.lines.append(text or f"{counters[-1][0]}++;")

    def _block(self) -> str:
        """The statement for the start of a block and its number of elements."""
        n = f"size{len(self.nest.sizes) - 1}"
        if self.aligned:
            out = f"out{self.plain[0]}"
            size = self.loop.outputs[self.plain[0]].dtype.itemsize
            return (
                f"const int64_t edge = block * {BLOCK} - (int64_t)((uintptr_t){out} % {VECTOR} / {size});\n"
                f"const int64_t j0 = edge < 0 ? 0 : edge, m = ({n} - edge < {BLOCK} ? {n} : edge + {BLOCK}) - j0;"
            )
        return f"const int64_t j0 = block * {BLOCK}, m = {n} - j0 < {BLOCK} ? {n} - j0 : {BLOCK};"

    def _task(self) -> None:
        """The body of the loop over tasks: all the work for one block of results, or one reduced value."""
        put = self.lines.append
        if not self.inner_reduced:
            put(self._block())
        for i in self.reductions:
            kind, _, start = self._accumulator(i)
            if self.inner_reduced:
                put(f"{kind} a{i} = {start}{f', a{i}_rest = 0' if self._compensated(i) else ''};")
                if self._loaded(i) is None:
                    put(f"{c_type(self.loop.outputs[i].dtype, stored=True)} t{i}[{BLOCK}];")
                continue
            put(f"{kind} a{i}[{BLOCK}]{f', a{i}_rest[{BLOCK}]' if self._compensated(i) else ''};")
            rest = f" a{i}_rest[j] = 0;" if self._compensated(i) else ""
            put(f"for (int64_t j = 0; j < m; j++) {{ a{i}[j] = {start};{rest} }}")
        if not self.reductions:
            self._body()
            return
        put("int64_t sweep = piece * span, stop = sweep + span < sweeps ? sweep + span : sweeps;")
        self._decode("sweep", self._sweep_counters())
        put("for (; sweep < stop; sweep++) {")
        if self.inner_reduced:
            put(self._block())
        self._body()
        self._advance(self._sweep_counters())
        put("}")
        put("if (pieces == 1) {")
        self._store_results("a")
        put("} else {")
        self._store_pieces()
        put("}")

    def _body(self) -> None:
        """One block: addresses, values that do not vary within it, the SIMD loop, and the block's reductions."""
        put, loop, last = self.lines.append, self.loop, len(self.nest.sizes) - 1
        used = self._used()
        varying = self._varying()
        for i in sorted({loop.steps[k].value for k in used if loop.steps[k].name == "load"}):
            inner = "j0" if self.nest.varies[i][last] else ""
            put(f"const {c_type(loop.inputs[i].dtype, stored=True)} *const x{i} = {self._address(f'in{i}', inner)};")
        for i in self.plain:
            put(f"{c_type(loop.outputs[i].dtype, stored=True)} *const y{i} = {self._address(f'out{i}', 'j0')};")
        self.lines += [self._step(k, "0") for k in used if k not in varying]
        made = [i for i in self.reductions if self._loaded(i) is None]
        if made or self.plain:
            put("#pragma omp simd\nfor (int64_t j = 0; j < m; j++) {")
            self.lines += [self._step(k, "j") for k in used if k in varying]
            self.lines += [f"y{i}[j] = v{loop.outputs[i].step};" for i in self.plain]
            for i in made:
                value = f"v{loop.outputs[i].step}"
                put(f"t{i}[j] = {value};" if self.inner_reduced else self._join(i, f"a{i}", value, "[j]"))
            put("}")
        for i in self.reductions if self.inner_reduced else []:
            block = self._loaded(i) or f"t{i}"
            if self._compensated(i):
                put(f"pb_runs_add_f64({block}, m, &a{i}, &a{i}_rest);")
            else:
                block = f"pb_block_{self._operation(i)}_{self._output(i)[1]}({block}, m)"
                put(self._join(i, f"a{i}", block))

    def _loaded(self, i: int) -> str | None:
        """The block of an input that a reduction along the last axis takes as it is; None if it takes another."""
        step = self.loop.steps[self.loop.outputs[i].step]
        as_it_is = self.inner_reduced and step.name == "load" and step.dtype != bool
        return f"x{step.value}" if as_it_is and self.nest.varies[step.value][-1] else None

    def _element(self, i: int, index: str) -> str:
        return f"x{i}[{index}]"

    def _varying(self) -> set[int]:
        """The steps whose values change along the last axis."""
        varying: set[int] = set()
        for k, step in enumerate(self.loop.steps):
            along = step.name == "load" and self.nest.varies[step.value][-1]
            if along or any(i in varying for i in step.args):
                varying.add(k)
        return varying

    def _address(self, array: str, inner: str) -> str:
        """The start of a block of an array."""
        axes = [axis for axis in [*self.kept, *self.swept] if f"{array}_{axis}" in self.numbers]
        return " + ".join([array, *(f"i{axis} * {array}_{axis}" for axis in axes), *([inner] if inner else [])])

    # Results: written at once, or kept as pieces that are joined in order at the end

    def _width(self) -> int:
        return 1 if self.inner_reduced else BLOCK

    def _store_results(self, accumulator: str) -> None:
        for i in self.reductions:
            address = self._address(f"out{i}", "" if self.inner_reduced else "j0")
            if self.inner_reduced:
                self.lines.append(f"*({address}) = {self._finish(i, f'{accumulator}{i}')};")
                continue
            value = self._finish(i, f"{accumulator}{i}", "[j]")
            self.lines.append(f"for (int64_t j = 0; j < m; j++) ({address})[j] = {value};")

    def _store_pieces(self) -> None:
        for name, _ in self._parts():
            if self.inner_reduced:
                self.lines.append(f"s{name}[task] = a{name};")
            else:
                self.lines.append(f"for (int64_t j = 0; j < m; j++) s{name}[task * {BLOCK} + j] = a{name}[j];")

    def _combine(self) -> None:
        """Join the pieces of each result in order, whichever thread made them."""
        if not self.reductions:
            return
        put = self.lines.append
        put("if (pieces > 1) {\nfor (int64_t task = 0; task < tasks; task += pieces) {")
        counters = self._task_counters()[1:]
        self._decode("task / pieces", counters)
        index = "task + piece"
        if not self.inner_reduced:
            put(self._block())
            index = f"(task + piece) * {BLOCK} + j"
            put("for (int64_t j = 0; j < m; j++) {")
        for i in self.reductions:
            kind, _, start = self._accumulator(i)
            rest = self._compensated(i)
            put(f"{kind} a{i} = {start}{f', a{i}_rest = 0' if rest else ''};")
            put("for (int64_t piece = 0; piece < pieces; piece++) {")
            put(self._join(i, f"a{i}", f"s{i}[{index}]"))
            if rest:
                put(f"a{i}_rest += s{i}_rest[{index}];")
            put("}")
            address = self._address(f"out{i}", "" if self.inner_reduced else "j0 + j")
            put(f"*({address}) = {self._finish(i, f'a{i}')};")
        put("}\n}" if self.inner_reduced else "}\n}\n}")
        put("free(memory);")


# -- the whole source --------------------------------------------------------------------------------------------------

_MAIN = """
/* What Python calls, a function of the stable interface (METH_FASTCALL) that takes the inputs and the outputs: as cheap
   a call as there is. Its self is a bytes object that holds the numbers: [0] the type ndarray; [1] the number of
   threads; [2] whether other Python threads may run meanwhile; then sizes and strides. An ndarray has the address of
   its elements right after its type. */
typedef struct _object PyObject;
extern PyObject _Py_NoneStruct, *PyExc_TypeError;
extern char *PyBytes_AsString(PyObject *);
extern PyObject *PySequence_Tuple(PyObject *), *PyTuple_GetItem(PyObject *, intptr_t), *PyErr_NoMemory(void);
extern intptr_t PyTuple_Size(PyObject *);
extern void Py_IncRef(PyObject *), Py_DecRef(PyObject *), PyErr_SetString(PyObject *, const char *);
extern void *PyEval_SaveThread(void), PyEval_RestoreThread(void *);

/* where the elements of the arrays of a sequence are; the tuple returned keeps the arrays alive */
static PyObject *addresses(PyObject *sequence, int count, char **data, const int64_t *numbers) {{
    PyObject *const arrays = PySequence_Tuple(sequence);
    if (arrays == NULL) return NULL;
    int wrong = PyTuple_Size(arrays) != count;
    for (int k = 0; k < count && !wrong; k++) {{
        const char *const after_type = (const char *)PyTuple_GetItem(arrays, k) + {offset};
        wrong = *(const intptr_t *)(after_type - sizeof(void *)) != numbers[0];
        data[k] = *(char *const *)after_type;
    }}
    if (!wrong) return arrays;
    Py_DecRef(arrays);
    PyErr_SetString(PyExc_TypeError, "a compiled loop takes {inputs} inputs and {outputs} outputs, each a "
                                     "numpy.ndarray itself and not of a subclass");
    return NULL;
}}

PyObject *pullback_loop(PyObject *self, PyObject *const *sequences, intptr_t count) {{
    const int64_t *const numbers = (const int64_t *)PyBytes_AsString(self);
    if (count != 2) {{
        PyErr_SetString(PyExc_TypeError, "a compiled loop takes two arguments: the inputs and the outputs");
        return NULL;
    }}
    char *data[{inputs} + {outputs}];
    PyObject *const inputs = addresses(sequences[0], {inputs}, data, numbers);
    if (inputs == NULL) return NULL;
    PyObject *const outputs = addresses(sequences[1], {outputs}, data + {inputs}, numbers);
    if (outputs == NULL) {{
        Py_DecRef(inputs);
        return NULL;
    }}
    const int threads = (int)numbers[1];
    void *const state = numbers[2] ? PyEval_SaveThread() : NULL;
    int status = 0;
{calls}
    if (state) PyEval_RestoreThread(state);
    Py_DecRef(inputs);
    Py_DecRef(outputs);
    if (status) return PyErr_NoMemory();
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}}
"""


@functools.cache
def header(name: str) -> str:
    """A file of C functions beside this one, or below it."""
    return Path(__file__).parent.joinpath(name).read_text("utf-8")


def own_part(loop: Loop) -> str:
    """The source of a loop's own functions, without those that they call."""
    return "\n".join(_Writer(loop, nest, number).write() for number, nest in enumerate(nests_of(loop)))


def functions_of(loop: Loop, first: int, write: bool = True) -> tuple[list[str], list[str], list[list[int]]]:
    """The functions of a loop, numbered from `first`, their names, and the numbers to call each with.

    write: whether the functions are wanted; else there is only room for them.
    """
    writers = [_Writer(loop, nest, first + number) for number, nest in enumerate(nests_of(loop))]
    functions = [writer.write() if write else "" for writer in writers]
    return functions, [f"nest{w.number}" for w in writers], [[*w.numbers.values()] for w in writers]


def kind(loop: Loop) -> Any:
    """What is equal for loops that differ in sizes alone and have one source."""
    aligned = [_Writer(loop, nest, i).aligned for i, nest in enumerate(nests_of(loop))]
    return (*[n == 1 for n in loop.shape], *aligned)


def source(loop: Loop) -> tuple[str, list[int]]:
    """The complete C source of a loop, and the sizes and strides to call its function with."""
    functions, names, parts = functions_of(loop, 0)
    numbers: list[int] = []
    calls = []
    for name, own in zip(names, parts, strict=True):
        calls.append(f"    if (!status) status = {name}(numbers + {HEADER + len(numbers)}, data, threads);")
        numbers += own
    return whole_source([loop], functions, len(loop.inputs), len(loop.outputs), "\n".join(calls)), numbers


def whole_source(loops: Sequence[Loop], functions: Sequence[str], inputs: int, outputs: int, calls: str) -> str:
    """The source of a library: functions of loops, and the one that Python calls, with these calls of others."""
    main = _MAIN.format(inputs=inputs, outputs=outputs, offset=object.__basicsize__, calls=calls)
    turning = any(facts(s.name).turns and s.dtype == np.float32 for loop in loops for s in loop.steps)
    parts = [*map(header, ("sharing.h", "elementary.h", "arithmetic.h")), *functions, main]
    return (turns() if turning else "") + "\n".join(parts)
