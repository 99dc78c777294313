"""The C backend of `pullback.compile`: a `Loop` becomes a C function that makes one pass over memory.

For `build`, `c_source.py` writes the C source of a loop and `cache.py` compiles and loads it; the result is a function
of arrays. The arithmetic is NumPy's; sums are computed in higher precision and rounded once; elementary functions are
those of `elementary.h`, float32 within 4 units in the last place of NumPy's. nan, infinity and the sign of zero are
kept. The result does not depend on the number of threads.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ...errors import message
from . import cache
from .c_source import source
from .c_steps import refusal
from .loop import Loop, fill_empty
from .steps import COSTLY, facts, fold

Runner = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]

_THREADED = 200.0
"""Microseconds of work below which a second thread is not worth starting."""

_SHARED = 10.0
"""Microseconds below which the interpreter lock is not released: getting it back may take longer."""


def available() -> bool:
    """Whether there is a C compiler that works (`$CC`, or `cc`); `unavailable` gives the reason if not."""
    return unavailable() is None


def unavailable() -> str | None:
    """The reason why loops cannot be compiled here, or None if they can."""
    error = failure()
    return None if error is None else str(error)


def failure() -> cache.CompilerError | None:
    """Why loops cannot be compiled here: a `NoCompilerError` where nothing is wrong; or None if they can."""
    if not _layout_is_known():
        return cache.NoCompilerError(
            f"compiled loops find an array's elements as CPython lays arrays out, and this is {sys.version}"
        )
    try:
        cache.compiler()
    except cache.CompilerError as error:
        return error
    return None


@functools.cache
def _layout_is_known() -> bool:
    """Whether the address of an array's elements is stored where the loops expect it (see `c_source.py`)."""
    array = np.empty(1)
    place = id(array) + object.__basicsize__
    return sys.implementation.name == "cpython" and ctypes.c_void_p.from_address(place).value == array.ctypes.data


def supports(loop: Loop) -> str | None:
    """The reason why a loop cannot become C, or None if it can.

    >>> from pullback.compile.backends.loop import Access, Output, Step
    >>> half = np.dtype("float16")
    >>> supports(Loop((3,), (Access(half, (True,)),), (Step("load", (), half, 0),), (Output(0, half),)))
    'there is no C for float16'
    """
    for output in loop.outputs:
        if output.reduce is None:
            continue
        known = fold(output.reduce)
        if known is None:
            return f"there is no C for a reduction by {output.reduce}"
        if known.none is None and 0 in [loop.shape[axis] for axis in output.axes]:
            return f"the {output.reduce} of no elements is an error"
    return refusal(loop)


class _Method(ctypes.Structure):
    """Python's `PyMethodDef`, which describes a function written in C."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def method_of(library: ctypes.CDLL) -> _Method:
    """The method in a library; functions made from it refer to it, so it stays."""
    fastcall = 0x80
    return _Method(b"loop", ctypes.cast(library.pullback_loop, ctypes.c_void_p).value, fastcall, None)


if sys.implementation.name == "cpython":
    new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )


def microseconds(loop: Loop) -> float:
    """A rough estimate of a loop's time on one processor: 40 GB/s, and 0.02 ns or 0.3 ns for a step of four bytes."""
    arrays = [access.dtype for access in loop.inputs if any(access.varies)]
    arrays += [output.dtype for output in loop.outputs if output.reduce is None]
    steps = [(0.3 if facts(step.name).cost >= COSTLY else 0.02) / 4 * step.dtype.itemsize for step in loop.steps]
    return math.prod(loop.shape) * (sum(dtype.itemsize for dtype in arrays) / 40 + sum(steps)) / 1000


def header(threads: int, work: float, whole: float) -> list[int]:
    """The first numbers of a function: see `c_source.py`. work, whole: the time of its largest loop, and of a call."""
    return [id(np.ndarray), threads if work >= _THREADED else 1, whole >= _SHARED]


Written = tuple[str, list[int]]
"""What `source` gives for a loop."""


def write(loops: Iterable[Loop]) -> list[Written | None]:
    """The sources of loops, for `build`, compiled at the same time; None for a loop that has no form in C."""
    found = [source(loop) if supports(loop) is None and 0 not in loop.shape else None for loop in loops]
    cache.load_all(written[0] for written in found if written is not None)
    return found


def build(loop: Loop, threads: int, written: Written | None = None) -> Runner:
    """The function that runs a loop: it takes the inputs and the outputs, C-contiguous arrays, and writes the outputs.

    written: its source, if `write` has made it.

    The result is the same, to the bit, for any `threads`. The function may be called from several threads at once.

    Raises:
        NotImplementedError: the loop has no form in C; call `supports` first.
        pullback.compile.backends.cache.CompilerError: there is no compiler, or it rejects the source.

    >>> from pullback.compile.backends.loop import Access, Output, Step
    >>> f = np.dtype("float32")
    >>> steps = (Step("load", (), f, 0), Step("exp", (0,), f), Step("multiply", (0, 1), f))
    >>> loop = Loop((3,), (Access(f, (True,)),), steps, (Output(2, f), Output(2, f, "add", (0,))))
    >>> x, y, total = np.arange(3, dtype="float32"), np.empty(3, "float32"), np.empty((), "float32")
    >>> if available():
    ...     build(loop, threads=1)([x], [y, total])
    ...     assert np.allclose(y, x * np.exp(x)) and np.allclose(total, y.sum())
    """
    reason = supports(loop)
    if reason is not None:
        raise NotImplementedError(message("this loop cannot become C", found=reason, do="use the NumPy backend"))
    if 0 in loop.shape:
        return lambda inputs, outputs: fill_empty(loop, outputs)
    text, sizes = written or source(loop)
    work = microseconds(loop)
    return with_numbers(cache.load(text), [*header(threads, work, work), *sizes])


def with_numbers(library: ctypes.CDLL, numbers: Sequence[int]) -> Runner:
    """The function of a library, with its numbers: the header, the sizes and the strides."""
    held = np.array(numbers, np.int64).tobytes()
    return new_function(ctypes.addressof(method_of(library)), held, None)
