"""The CUDA backend of `pullback.compile`: a `Loop` becomes kernels on the GPU, compiled by NVRTC through CuPy.

For `build`, `cuda_source.py` writes the CUDA C of a loop and `cupy.RawModule` compiles and loads it; CuPy keeps the
binaries on disk, and this module keeps the loaded ones by their source. A call queues its kernels on CuPy's current
stream and waits for nothing. The arithmetic is the C backend's: what it says of values holds here, where CUDA's
functions stand in for those of the C library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....errors import message
from ....tensor.gpu import AcceleratorError, gpu_library, of_device
from .. import c
from ..loop import Loop, fill_empty
from .cuda_source import THREADS, Kernel, source

Runner = Callable[[Sequence[Any], Sequence[Any]], None]

OPTIONS = ("-std=c++17", "-default-device", "--fmad=false")
"""The options of NVRTC: functions are the device's; products and sums are not contracted, as in the C backend."""

_ARRAYS = 400
"""The most arrays of a loop: a kernel's arguments, with the sizes, have to fit 4 KiB."""

_MODULES: dict[str, Any] = {}
_LOCK = threading.Lock()


class KernelError(RuntimeError):
    """NVRTC refused a source, or cannot be had."""


def supports(loop: Loop) -> str | None:
    """The reason why a loop cannot become kernels, or None if it can: that is so for all loops that become C."""
    if len(loop.inputs) + len(loop.outputs) > _ARRAYS:
        return f"a kernel takes at most {_ARRAYS} arrays"
    return c.supports(loop)


def build(loop: Loop) -> Runner:
    """The function that runs a loop: it takes the inputs and the outputs, C-contiguous arrays on the current GPU.

    Raises:
        KernelError: the source cannot be compiled.
    """
    if 0 in loop.shape:
        return lambda inputs, outputs: fill_empty(loop, outputs)
    text, kernels = source(loop)
    launched = functions(text, [kernel.name for kernel in kernels])

    def run(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        arrays, held = (*inputs, *outputs), None
        for function, kernel in zip(launched, kernels, strict=True):
            given = [arrays[k] for k in kernel.arrays]
            if kernel.pieces:
                held = memory((kernel.pieces,), np.uint8) if held is None else held
                given.append(held)
            try:
                function((kernel.blocks,), (THREADS,), (*given, *kernel.numbers))
            except Exception as error:
                raise _not_launched(loop, kernel, error) from error
            if kernel.joins:
                held = None

    return run


def memory(shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory on the current GPU; PyTorch's error where it is full."""
    try:
        return gpu_library().empty(shape, dtype)
    except Exception as error:
        raise (of_device("compile", error, ()) or error) from error


def functions(text: str, names: Sequence[str]) -> list[Any]:
    """Functions of CuPy's module of a source, compiled once; KernelError if it cannot be."""
    with _LOCK:
        module = _MODULES.get(text)
        try:
            if module is None:
                module = gpu_library().RawModule(code=text, options=OPTIONS)
            found = [module.get_function(name) for name in names]
        except Exception as error:  # CuPy's own, or of a library that cannot be loaded
            raise KernelError(f"{type(error).__name__}: {error}") from error
        _MODULES[text] = module
        return found


def _not_launched(loop: Loop, kernel: Kernel, error: Exception) -> RuntimeError:
    steps = ", ".join(dict.fromkeys(step.name for step in loop.steps if step.name not in ("load", "const", "cast")))
    return AcceleratorError(
        message(
            f"compile: the kernel {kernel.name} ({steps or 'copies'}, over {list(loop.shape)}) was not launched",
            found=f"{type(error).__name__}: {error}",
            do="if an earlier operation is at fault, which a device tells later, pullback.cuda.synchronize() after "
            "each one finds it; backend='numpy' runs the function without kernels",
        ),
        int(getattr(error, "status", 0)),
    )
