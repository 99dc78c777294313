"""NVRTC, CUDA's compiler as a library, of the wheel `nvidia-cuda-nvrtc-cu12`: it needs no driver and no GPU."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any


@functools.cache
def library() -> Any:
    """NVRTC; None without the wheel."""
    spec = importlib.util.find_spec("nvidia.cuda_nvrtc") if importlib.util.find_spec("nvidia") else None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder, "lib").glob("libnvrtc.so.*"):
            return ctypes.CDLL(str(path))
    return None


def compiled(source: str, options: Sequence[str] = ()) -> tuple[str, str]:
    """The PTX of a source, "" if it is refused, and what the compiler said."""
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None) == 0
    try:
        given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
        return "" if failed else _text(nvrtc, program, "PTX"), _text(nvrtc, program, "ProgramLog")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: Any, program: Any, what: str) -> str:
    size = ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    held = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{what}")(program, held) == 0
    return held.value.decode()
