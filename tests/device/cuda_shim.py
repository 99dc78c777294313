"""CUDA C run on the host: a C++ compiler reads kernels with CUDA's words defined as C++.

The threads of a block are coroutines: each runs to the next `__syncthreads()`, and the block goes on when all have come
there; a barrier that some threads pass and others do not is an error. They take turns in ascending or in descending
order, so a kernel that lacks a barrier gives two results. Each array lies between two guards, so a kernel that writes
beside one is found. `RawModule` stands for CuPy's class of that name.

What it cannot show: speed, races between blocks and within a warp, the order of atomic sums, and what NVRTC says.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from . import captures

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
FLAGS = "-std=c++17 -O1 -w -fPIC -ffp-contract=off -fno-strict-aliasing -fwrapv".split()

WORDS = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <setjmp.h>
#include <ucontext.h>
using namespace std;
#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
struct Place { unsigned x, y, z; };
static Place blockIdx, blockDim, threadIdx, gridDim;

enum { MOST = 1024, STACK = 1 << 16 };
static ucontext_t outside, inside;
static jmp_buf scheduler, coroutines[MOST]; /* a jump takes a hundredth of the time of swapcontext() */
static char *stacks; /* of one launch: static ones would be 64 MB of each module */
static bool begun[MOST], ended[MOST];
static unsigned running;
static void (*body)(void **);
static void **given;
static void begin() { body(given); ended[running] = true; _longjmp(scheduler, 1); }
static void __syncthreads() { if (!_setjmp(coroutines[running])) _longjmp(scheduler, 1); }

static void go_on(unsigned t) {
    running = t;
    threadIdx = {t, 0, 0};
    if (_setjmp(scheduler)) return;
    if (begun[t]) _longjmp(coroutines[t], 1);
    begun[t] = true;
    getcontext(&inside);
    inside.uc_stack.ss_sp = stacks + (size_t)t * STACK;
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, begin, 0);
    swapcontext(&outside, &inside);
}

/* Runs the threads of a block from barrier to barrier; 1 if some are through while others wait. */
static int run_block(unsigned threads, int backwards) {
    for (unsigned t = 0; t < threads; t++) begun[t] = ended[t] = false;
    for (unsigned left = threads; left;) {
        unsigned through = 0;
        for (unsigned k = 0; k < threads; k++) {
            go_on(backwards ? threads - 1 - k : k);
            through += ended[running];
        }
        if (through && through != threads) return 1;
        left = threads - through;
    }
    return 0;
}

static int run_grid(void (*kernel)(void **), int meets, unsigned blocks, unsigned threads, int backwards, void **args) {
    if (!blocks || !threads || threads > MOST) return 2;
    gridDim = {blocks, 1, 1}; blockDim = {threads, 1, 1};
    body = kernel; given = args;
    stacks = meets ? (char *)malloc((size_t)threads * STACK) : nullptr;
    if (meets && !stacks) return 2;
    int status = 0;
    for (unsigned k = 0; k < blocks && !status; k++) {
        blockIdx = {backwards ? blocks - 1 - k : k, 0, 0};
        if (meets) { status = run_block(threads, backwards); continue; }
        for (unsigned t = 0; t < threads; t++) {
            threadIdx = {backwards ? threads - 1 - t : t, 0, 0};
            kernel(args);
        }
    }
    free(stacks);
    return status;
}
"""

LAUNCH = r"""
static void call_%(name)s(void **args) { %(name)s(%(arguments)s); }
extern "C" int launch_%(name)s(unsigned blocks, unsigned threads, int backwards, void **args) {
    return run_grid(call_%(name)s, %(meets)d, blocks, threads, backwards, args);
}
"""

BEGINS = 'extern "C" __global__ void '
KERNEL = re.compile(r"(\w+)\(([^)]*)\)(.*)", re.DOTALL)
GUARD = 64


def kinds_of(parameters: str) -> list[str]:
    """The C types of a kernel's parameters."""
    return [re.sub(r"\b__restrict__\b|\bconst\b|\w+$", "", p.strip()).strip() for p in parameters.split(",")]


class RawModule:
    """A module of kernels, compiled once for each source. options: as NVRTC's, which a C++ compiler does not take.

    made: the sources so far, by the number of the modules made of them. launched: the kernels that ran, in order.
    asked: how many the host asked for, to run or to be recorded.
    """

    made: ClassVar[dict[str, int]] = {}
    launched: ClassVar[list[str]] = []
    asked: ClassVar[int] = 0
    backwards: ClassVar[bool] = False
    _folder: ClassVar[Any] = None

    def __init__(self, code: str, options: tuple[str, ...] = ()) -> None:
        captures.refuse()
        if RawModule._folder is None:
            RawModule._folder = tempfile.TemporaryDirectory(prefix="cuda-shim-")
        self.code = code
        found = [KERNEL.match(part) for part in code.split(BEGINS)[1:]]
        self.kernels = {m[1]: (kinds_of(m[2]), "__syncthreads" in m[3]) for m in found if m is not None}
        RawModule.made[code] = RawModule.made.get(code, 0) + 1
        self.library = ctypes.CDLL(str(self._compiled()))

    def _compiled(self) -> Path:
        path = Path(RawModule._folder.name, hashlib.sha256(self.code.encode()).hexdigest()[:32] + ".so")
        if path.exists():
            return path
        head, begins, rest = self.code.partition(BEGINS)
        text = f'#include "{self._precompiled(WORDS + head)}"\n{begins}{rest}'
        for name, (kinds, meets) in self.kernels.items():
            arguments = ", ".join(f"*({kind} *)args[{k}]" for k, kind in enumerate(kinds))
            text += LAUNCH % {"name": name, "arguments": arguments, "meets": meets}
        source = path.with_suffix(".cpp")
        source.write_text(text)
        self._run("-shared", source, "-o", path)
        return path

    def _precompiled(self, head: str) -> str:
        """The name of a header with what stands before the kernels, which is the same in most modules."""
        path = Path(RawModule._folder.name, hashlib.sha256(head.encode()).hexdigest()[:32] + ".hpp")
        if not path.exists():
            path.write_text(head)
            self._run("-x", "c++-header", path, "-o", f"{path}.gch")
        return path.name

    def _run(self, *arguments: Any) -> None:
        assert COMPILER is not None
        done = subprocess.run([COMPILER, *FLAGS, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"CompileException: {done.stderr[:2000]}")

    def get_function(self, name: str) -> Kernel:
        return Kernel(name, self.kernels[name][0], getattr(self.library, f"launch_{name}"))


class Kernel:
    """A kernel, as CuPy's `RawKernel`: called with a grid, a block, and arguments of the types of its parameters."""

    max_threads_per_block = 1024

    def __init__(self, name: str, kinds: list[str], function: Any) -> None:
        self.name, self.kinds, self.function = name, kinds, function

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        assert len(args) == len(self.kinds), f"{self.name} takes {len(self.kinds)} arguments, and got {len(args)}"
        RawModule.asked += 1
        captures.written(self._run, (grid, block, tuple([getattr(a, "inner", a) for a in args])), {})

    def _run(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        held = [Argument(value, kind) for value, kind in zip(args, self.kinds, strict=True)]
        places = (ctypes.c_void_p * len(held))(*[h.address for h in held])
        RawModule.launched.append(self.name)
        status = self.function(*grid, *block, int(RawModule.backwards), places)
        assert status != 1, f"{self.name}: some threads wait at a barrier that others passed"
        if status:
            raise RuntimeError(f"CUDADriverError: CUDA_ERROR_INVALID_VALUE: {grid} x {block}")
        for one in held:
            one.give_back(self.name)


class Argument:
    """An argument of a kernel: a number, or an array between two guards, which is read back if it may be written."""

    def __init__(self, value: Any, kind: str) -> None:
        self.array = getattr(value, "inner", value) if kind.endswith("*") else None
        if self.array is None:
            assert kind in ("int64_t", "long long"), f"{value!r} is given for {kind}"
            assert type(value) is int, f"{value!r} is given for {kind}"
            self.held: Any = ctypes.c_longlong(value)
            self.address = ctypes.addressof(self.held)
            return
        assert isinstance(self.array, np.ndarray), f"{value!r} is given for {kind}"
        assert self.array.flags.c_contiguous, "a kernel's array has to lie in one piece"
        wanted = TYPES[kind.removesuffix("*").strip()]
        assert wanted in (None, self.array.dtype.str[1:]), f"an array of {self.array.dtype} is given for {kind}"
        self.memory = np.full(self.array.nbytes + 2 * GUARD, 0xAB, np.uint8)
        self.inside = self.memory[GUARD : GUARD + self.array.nbytes]
        self.inside[:] = np.frombuffer(self.array.tobytes(), np.uint8)
        self.held = ctypes.c_void_p(self.inside.ctypes.data)
        self.address = ctypes.addressof(self.held)

    def give_back(self, name: str) -> None:
        if self.array is None:
            return
        guards = np.concatenate([self.memory[:GUARD], self.memory[GUARD + self.array.nbytes :]])
        assert np.all(guards == 0xAB), f"{name} wrote beside an array"
        # what DLPack gives is read-only to NumPy, and not to a kernel
        ctypes.memmove(self.array.ctypes.data, self.inside.ctypes.data, self.array.nbytes)


TYPES: dict[str, str | None] = {
    **{f"int{8 * n}_t": f"i{n}" for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}_t": f"u{n}" for n in (2, 4, 8)},
    **{
        "uint8_t": None,
        "char": None,
        "unsigned char": None,
        "float": "f4",
        "double": "f8",
    },  # a bool is a byte, and pieces are bytes
}
