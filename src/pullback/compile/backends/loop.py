"""`Loop`: the form in which backends get elementwise work and the reductions that end it.

The planner (`fuse.py`) cuts a trace into loops and calls; a backend (`blocks.py` with NumPy, `c.py` with the system's
compiler) turns a loop into a function of arrays. A backend is a module with

    build(loop: Loop, threads: int) -> Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]

The function takes the loop's inputs (C-contiguous arrays, as `Access` says) and its outputs (preallocated C-contiguous
arrays of the loop's shape, with the reduced axes dropped), and writes the outputs. No output overlaps an input
or another output.

A step has the meaning of the NumPy ufunc of its name, and every conversion is a separate step:

* the operands of a ufunc step have exactly the dtypes of one of that ufunc's loops (`float32, float32` for a
  float32 `add`; comparisons take two operands of one dtype and give `bool`), so a backend never promotes;
* `"cast"` converts its one operand as `astype(dtype)` does (`"same value"`, C's conversion);
* `"where"` takes a bool and two operands of its own dtype;
* `"const"` carries a scalar of its dtype in `value`, `"load"` the number of the input it reads.

Steps come in order: each names only earlier ones. A reduction has the meaning of the ufunc's `reduce`: `maximum` and
`minimum` pass a NaN on, the sum of no elements is 0, and a sum of many is as accurate as a pairwise one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .steps import fold


class Step(NamedTuple):
    """One value for each element of a loop: a ufunc of earlier steps, or a load, a constant, a cast, a choice."""

    name: str  # a NumPy ufunc's name ("add", "exp", "less", ...), or "load", "const", "cast", "where"
    args: tuple[int, ...]  # numbers of earlier steps
    dtype: np.dtype[Any]  # of this value
    value: Any = None  # "const": the number; "load": the number of the input


class Access(NamedTuple):
    """The access to an input: C-contiguous over the axes that it varies along, the same value along the others."""

    dtype: np.dtype[Any]
    varies: tuple[bool, ...]  # for each axis of the loop's shape: False if the input is broadcast along it


class Output(NamedTuple):
    """An output of a loop: a step for every element, or the reduction of a step over some axes."""

    step: int
    dtype: np.dtype[Any]  # the step's own
    reduce: str | None = None  # None, "add", "maximum", "minimum" or "multiply"
    axes: tuple[int, ...] = ()  # the axes reduced over; all of them: the output is 0-d


class Loop(NamedTuple):
    """Elementwise work over one shape, with its inputs and outputs."""

    shape: tuple[int, ...]
    inputs: tuple[Access, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]


def fill_empty(loop: Loop, outputs: Sequence[Any]) -> None:
    """Run a loop over no elements: only its reductions are written."""
    for output, array in zip(loop.outputs, outputs, strict=True):
        known = fold(output.reduce)
        if known is not None and array.size:
            array[...] = known.none
