"""CUDA C run on the host: a C++ compiler reads a kernel with CUDA's words defined as C++, a thread after the other.

What it cannot show is what only many threads do: races, shared memory and the order of atomic sums.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")

WORDS = r"""
#include <cmath>
using std::exp;
#define __global__
struct Place { unsigned x, y, z; };
static Place blockIdx, blockDim, threadIdx, gridDim;
"""

LAUNCH = r"""
extern "C" void launch_%(name)s(unsigned blocks, unsigned threads, %(parameters)s) {
    gridDim = {blocks, 1, 1}; blockDim = {threads, 1, 1};
    for (unsigned b = 0; b < blocks; b++)
        for (unsigned t = 0; t < threads; t++) {
            blockIdx = {b, 0, 0}; threadIdx = {t, 0, 0};
            %(name)s(%(arguments)s);
        }
}
"""


def compiled(source: str, kernels: dict[str, str], folder: Path) -> Any:
    """A library with a function ``launch_NAME(blocks, threads, ...)`` for each kernel, whose parameters are given."""
    text = WORDS + source
    for name, parameters in kernels.items():
        arguments = ", ".join(p.split()[-1].lstrip("*") for p in parameters.split(","))
        text += LAUNCH % {"name": name, "parameters": parameters, "arguments": arguments}
    (folder / "kernels.cpp").write_text(text)
    assert COMPILER is not None
    command = [COMPILER, "-O1", "-Wall", "-Werror", "-shared", "-fPIC", folder / "kernels.cpp", "-o", folder / "k.so"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "k.so"))


def launched(function: Any, blocks: int, threads: int, *arrays: np.ndarray[Any, Any]) -> None:
    """Run a kernel on arrays of doubles and their number."""
    places = [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]
    function(ctypes.c_uint(blocks), ctypes.c_uint(threads), *places, ctypes.c_longlong(arrays[0].size))
