"""One kernel that copies many arrays: what a CUDA graph reads into its memory, and what it gave out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import cuda
from .cuda_source import THREADS

MOST = 96
"""The most arrays of a launch, whose arguments have to fit 4 KiB."""
_BLOCKS = 64
"""The most blocks for an array."""

_SOURCE = """struct __align__(16) Sixteen {{ long long a, b; }};
extern "C" __global__ void copy_{n}({parameters}) {{
    const unsigned char *from = 0;
    unsigned char *to = 0;
    long long count = 0;
    switch (blockIdx.x % {n}) {{
{cases}
    }}
    long long first = (long long)(blockIdx.x / {n}) * blockDim.x + threadIdx.x;
    long long step = (long long)(gridDim.x / {n}) * blockDim.x, wide = 0;
    if ((((size_t)from | (size_t)to) & 15) == 0) {{
        wide = count / 16;
        for (long long i = first; i < wide; i += step) ((Sixteen *)to)[i] = ((const Sixteen *)from)[i];
    }}
    for (long long i = wide * 16 + first; i < count; i += step) to[i] = from[i];
}}
"""


def source(n: int) -> str:
    """The CUDA C of the kernel for so many pairs of arrays."""
    parameters = ", ".join(f"const unsigned char *a{i}, unsigned char *b{i}, long long n{i}" for i in range(n))
    cases = "\n".join(f"        case {i}: from = a{i}; to = b{i}; count = n{i}; break;" for i in range(n))
    return _SOURCE.format(n=n, parameters=parameters, cases=cases)


def ready(n: int) -> Any:
    """The kernel for so many pairs; KernelError where it cannot be compiled."""
    return cuda.functions(source(n), [f"copy_{n}"])[0]


def copy(pairs: Sequence[tuple[Any, Any]]) -> None:
    """Copy arrays of the current device on its current stream. pairs: from and to, C-contiguous and of one size."""
    pairs = [pair for pair in pairs if pair[0].nbytes]
    for start in range(0, len(pairs), MOST):
        part = pairs[start : start + MOST]
        n, most = len(part), max(a.nbytes for a, _ in part)
        blocks = min(-(-most // (16 * THREADS)), _BLOCKS)
        arguments = [one for a, b in part for one in (a, b, a.nbytes)]
        ready(n)((n * blocks,), (THREADS,), tuple(arguments))
