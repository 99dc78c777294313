"""Writes the CUDA C source of a `Loop`: a kernel for each set of axes that its outputs are reduced over.

The steps, the types and the reductions are those of the C form (`nests.py`); what differs is the loop around them. As
there, the source holds no sizes, the division of work depends on the sizes alone, and so a result is the same to the
bit in each run:

* Without reductions, an element is the work of one thread. A grid has at most `GRID` blocks: a thread goes on with the
  element that lies a grid further.
* With reductions, the threads of a block are `lanes` results by `rows` parts of what is reduced. Neighbouring threads
  read neighbouring elements: they stand for parts where the last axis is reduced, and for results where it is kept.
  Each thread adds up its part in order; the parts meet in shared memory, one half with the other until one is left.
* Few results of many elements would leave most of the device idle. Then what is reduced is also cut into pieces, whose
  results go through memory to a second kernel, which joins them in the same way. Nothing is added atomically.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..c_source import header
from ..c_steps import c_type, turns
from ..loop import Loop
from ..nests import Nest, NestWriter, nests_of
from ..steps import facts, fold

THREADS = 256
"""Threads of a block, a power of two."""

WARP = 32
"""Threads that read together: they should read neighbouring elements."""

GRID = 4096
"""The most blocks of a grid."""

WANTED = 528
"""Blocks that keep a large device busy: four for each of its 132 processors."""

LEAST = 16
"""Elements that a thread adds up at least, before what is reduced is cut into more pieces."""

IN_32_BITS = 1 << 30
"""Elements up to which 32 bits number them, also a grid further: their divisions are many times as fast."""


class Kernel(NamedTuple):
    """How a kernel is called: with its arrays, its memory for pieces, and its numbers, by as many blocks.

    arrays: which of the loop's inputs, and then outputs. pieces: the bytes of memory for unfinished reductions, which
    the kernel of a nest fills and the next one joins; 0 if there are none.
    """

    name: str
    arrays: tuple[int, ...]
    pieces: int
    joins: bool
    numbers: tuple[int, ...]
    blocks: int


def _power(n: int) -> int:
    """The smallest power of two that is not less than `n`."""
    return 1 << max(n - 1, 0).bit_length()


class _Writer(NestWriter):
    """Writes the kernels of one nest; `kernels` says how they are called."""

    def __init__(self, loop: Loop, nest: Nest, number: int) -> None:
        super().__init__(loop, nest, number)
        self.kernels: list[Kernel] = []
        self.name = f"{name_of(loop)}_{number}"
        read = {loop.steps[k].value for k in self._used() if loop.steps[k].name == "load"}
        self.read = sorted(read)
        self.kept, self.swept = ([axis for axis, r in enumerate(nest.reduced) if r is swept] for swept in (False, True))
        self.total = math.prod(nest.sizes)
        self.results = math.prod(nest.sizes[axis] for axis in self.kept)
        self.count = math.prod(nest.sizes[axis] for axis in self.swept)
        self.inner_reduced = nest.reduced[-1]

    def write(self) -> str:
        """The kernels, as text."""
        if not self.reductions:
            self._elementwise()
        else:
            self._reducing()
        return "\n".join(filter(None, self.lines))

    def _begin(
        self, name: str, arrays: list[int], numbers: dict[str, int], blocks: int, pieces: int = 0, joins: bool = False
    ) -> None:
        """The head of a kernel; its call is noted."""
        inputs = len(self.loop.inputs)
        parameters = []
        for k in arrays:
            reads = k < inputs
            kind = c_type((self.loop.inputs[k] if reads else self.loop.outputs[k - inputs]).dtype, stored=True)
            parameters.append(f"{f'const {kind}' if reads else kind} *__restrict__ {self._array(k)}")
        parameters += ["char *__restrict__ memory"] if pieces else []
        parameters += [f"const int64_t given_{name}" for name in numbers]
        self.kernels.append(Kernel(name, tuple(arrays), pieces, joins, tuple(numbers.values()), min(blocks, GRID)))
        self.lines.append(f'extern "C" __global__ void {name}({", ".join(parameters)}) {{')
        self.lines += [f"const {self._index()} {name} = given_{name};" for name in numbers]

    def _index(self) -> str:
        return "int32_t" if self.total <= IN_32_BITS else "int64_t"

    def _array(self, k: int) -> str:
        inputs = len(self.loop.inputs)
        return f"in{k}" if k < inputs else f"out{k - inputs}"

    def _sizes(self) -> dict[str, int]:
        return {f"size{axis}": size for axis, size in enumerate(self.nest.sizes)}

    def _decode(self, number: str, axes: list[int]) -> None:
        """The indices along some axes from their common number, which is taken apart from the last axis on."""
        rest = number
        for axis in reversed(axes):
            final = axis == axes[0]
            self.lines.append(f"const {self._index()} i{axis} = {rest}{'' if final else f' % size{axis}'};")
            rest = f"({rest} / size{axis})"

    def _place(self, varies: tuple[bool, ...]) -> str:
        """The number of an element in an array that is contiguous over the axes along which it varies."""
        place = ""
        for axis in range(len(varies)):
            if varies[axis]:
                place = f"({place} * size{axis} + i{axis})" if place else f"i{axis}"
        return place or "0"

    def _element(self, i: int, index: str) -> str:
        return f"in{i}[{self._place(self.nest.varies[i])}]"

    def _body(self) -> None:
        """One element: its steps, and the outputs that have all elements."""
        self.lines += [self._step(k, "") for k in self._used()]
        whole = self._place((True,) * len(self.nest.sizes))
        self.lines += [f"out{i}[{whole}] = v{self.loop.outputs[i].step};" for i in self.plain]

    def _elementwise(self) -> None:
        outputs = [len(self.loop.inputs) + i for i in self.plain]
        blocks = -(-self.total // THREADS)
        self._begin(self.name, [*self.read, *outputs], {**self._sizes(), "total": self.total}, blocks)
        self._stride("e", "total", "(int64_t)blockIdx.x * blockDim.x + threadIdx.x", "(int64_t)gridDim.x * blockDim.x")
        self._decode("e", [*range(len(self.nest.sizes))])
        self._body()
        self.lines.append("}\n}")

    def _stride(self, index: str, limit: str, first: str, step: str) -> None:
        kind = self._index()
        self.lines.append(f"for ({kind} {index} = {first}; {index} < {limit}; {index} += {step}) {{")

    # Reductions

    def _tile(self) -> dict[str, int]:
        """The division of the work: threads for results, threads for parts, and pieces."""
        if self.inner_reduced:
            rows = min(THREADS, _power(self.count), max(WARP, _power(self.count // 4)))
            lanes = THREADS // rows
        else:
            lanes = min(_power(self.results), max(WARP, THREADS // _power(self.count)), THREADS)
            rows = THREADS // lanes
        blocks = -(-self.results // lanes)
        pieces = 1
        if blocks < WANTED // 2:
            pieces = max(1, min(-(-WANTED // blocks), self.count // (rows * LEAST)))
        span = -(-self.count // pieces)
        pieces = -(-self.count // span)
        tile = {"lanes": lanes, "rows": rows, "pieces": pieces, "span": span}
        return {**tile, "results": self.results, "count": self.count, "groups": blocks * pieces}

    def _reducing(self) -> None:
        tile, put = self._tile(), self.lines.append
        inputs = len(self.loop.inputs)
        width = 8 * len(self._parts())
        pieces = width * self.results * tile["pieces"] if tile["pieces"] > 1 else 0
        outputs = [inputs + i for i in [*self.plain, *(self.reductions if not pieces else [])]]
        self._begin(self.name, [*self.read, *outputs], {**self._sizes(), **tile}, tile["groups"], pieces)
        self._declare_pieces(bool(pieces))
        self._shared()
        put("const int32_t x = " + ("threadIdx.x / rows" if self.inner_reduced else "threadIdx.x % lanes") + ";")
        put("const int32_t y = " + ("threadIdx.x % rows" if self.inner_reduced else "threadIdx.x / lanes") + ";")
        self._stride("group", "groups", "blockIdx.x", "gridDim.x")
        put(f"const {self._index()} r = group / pieces * lanes + x, piece = group % pieces;")
        self._start()
        put("if (r < results) {")
        self._decode("r", self.kept)
        put(f"const {self._index()} stop = piece * span + span < count ? piece * span + span : count;")
        put(f"for ({self._index()} k = piece * span + y; k < stop; k += rows) {{")
        self._decode("k", self.swept)
        self._body()
        self.lines += [self._join(i, f"a{i}", f"v{self.loop.outputs[i].step}") for i in self.reductions]
        put("}\n}")
        self._meet("half" if self.inner_reduced else "half * lanes")
        put("if (y == 0 && r < results) {")
        self._store("r * pieces + piece" if pieces else "")
        put("}\n}\n}")
        if pieces:
            self._joining(tile["pieces"], pieces)

    def _joining(self, pieces: int, held: int) -> None:
        """The second kernel: a block joins the pieces of one result."""
        put = self.lines.append
        outputs = [len(self.loop.inputs) + i for i in self.reductions]
        rows = min(THREADS, _power(pieces))
        numbers = {"results": self.results, "pieces": pieces, "rows": rows}
        self._begin(f"{self.name}_join", outputs, numbers, self.results, held, joins=True)
        self._declare_pieces(True)
        self._shared()
        put("const int32_t y = threadIdx.x;")
        self._stride("r", "results", "blockIdx.x", "gridDim.x")
        self._start()
        put(f"for ({self._index()} k = r * pieces + y; k < (r + 1) * pieces && y < rows; k += rows) {{")
        for i in self.reductions:
            put(self._join(i, f"a{i}", f"s{i}[k]"))
            if self._compensated(i):
                put(f"a{i}_rest += s{i}_rest[k];")
        put("}")
        self._meet("half")
        put("if (y == 0) {")
        self._store("")
        put("}\n}\n}")

    def _declare_pieces(self, pieces: bool) -> None:
        """The memory for the pieces of reductions, under their names."""
        for k, (name, kind) in enumerate(self._parts() if pieces else []):
            self.lines.append(f"{kind} *const s{name} = ({kind} *)(memory + {8 * k} * ((int64_t)results * pieces));")

    def _shared(self) -> None:
        """Memory in which threads meet; all reductions use it, one after the other."""
        self.lines.append(f"__shared__ double shared_memory[{2 * THREADS}];")

    def _start(self) -> None:
        for i in self.reductions:
            kind, _, start = self._accumulator(i)
            self.lines.append(f"{kind} a{i} = {start}{f', a{i}_rest = 0' if self._compensated(i) else ''};")

    def _meet(self, apart: str) -> None:
        """Join the parts of the threads of a block. apart: the distance of two threads that are half of them apart."""
        put = self.lines.append
        for i in self.reductions:
            kind, rest = self._accumulator(i)[0], self._compensated(i)
            put(f"{{\n{kind} *const part = ({kind} *)shared_memory;")
            put(f"double *const part_rest = shared_memory + {THREADS};" if rest else "")
            put("__syncthreads();")
            put(f"part[threadIdx.x] = a{i};")
            put(f"part_rest[threadIdx.x] = a{i}_rest;" if rest else "")
            put("for (int32_t half = rows / 2; half > 0; half /= 2) {\n__syncthreads();\nif (y < half) {")
            put(self._join(i, "part", f"part[threadIdx.x + {apart}]", "[threadIdx.x]"))
            put(f"part_rest[threadIdx.x] += part_rest[threadIdx.x + {apart}];" if rest else "")
            put("}\n}")
            put(f"a{i} = part[threadIdx.x];")
            put(f"a{i}_rest = part_rest[threadIdx.x];" if rest else "")
            put("}")

    def _store(self, piece: str) -> None:
        """Write the results, or what is unfinished. piece: where that goes."""
        for i in self.reductions:
            if not piece:
                self.lines.append(f"out{i}[r] = {self._finish(i, f'a{i}')};")
        for name, _ in self._parts() if piece else []:
            self.lines.append(f"s{name}[{piece}] = a{name};")


def name_of(loop: Loop) -> str:
    """A name for the kernels of a loop, from the first of its functions.

    >>> f = np.dtype("float32")
    >>> from pullback.compile.backends.loop import Access, Output, Step
    >>> steps = (Step("load", (), f, 0), Step("exp", (0,), f))
    >>> name_of(Loop((3,), (Access(f, (True,)),), steps, (Output(1, f, "add", (0,)),)))
    'exp_sum'
    """
    functions = dict.fromkeys(step.name for step in loop.steps if step.name not in ("load", "const", "cast"))
    folds = dict.fromkeys(known.function.__name__ for o in loop.outputs if (known := fold(o.reduce)) is not None)
    found = [*list(functions)[:4], *folds]
    return "_".join(found) or "copies"


def own_part(loop: Loop) -> tuple[str, list[Kernel]]:
    """The source of a loop's kernels without the functions that they call, and how they are called, in order."""
    writers = [_Writer(loop, nest, number) for number, nest in enumerate(nests_of(loop))]
    text = "\n".join(writer.write() for writer in writers)
    return text, [kernel for writer in writers for kernel in writer.kernels]


def source(loop: Loop) -> tuple[str, list[Kernel]]:
    """The complete CUDA C source of a loop, and its kernels in the order in which they are called."""
    own, kernels = own_part(loop)
    turning = any(facts(step.name).turns and step.dtype == np.float32 for step in loop.steps)
    parts = [*map(header, ("gpu/cuda.h", "elementary.h", "arithmetic.h")), own]
    return (turns() if turning else "") + "\n".join(parts), kernels
