"""The kernels of `examples/cuda_kernel.py` without a GPU: compiled as C++, and to PTX where NVRTC is installed."""

from __future__ import annotations

import ctypes
import importlib.util
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .cuda_shim import COMPILER, compiled, launched

EXAMPLE = Path(__file__).parents[2] / "examples" / "cuda_kernel.py"
KERNELS = {
    "swish": "const double *x, double *y, long long n",
    "swish_backward": "const double *x, const double *gy, double *gx, long long n",
}


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.skipif(COMPILER is None, reason="a C++ compiler is needed")
@pytest.mark.parametrize("n", [1, 127, 128, 300])
def test_the_cuda_c_gives_the_values_and_writes_nothing_else(n: int, example: dict[str, Any], tmp_path: Path) -> None:
    library, threads = compiled(example["SOURCE"], KERNELS, tmp_path), example["THREADS"]
    rng = np.random.default_rng(n)
    x, g = rng.standard_normal((2, n))
    y, gx = np.full((2, n + 5), 7.0)
    blocks = -(-n // threads)
    launched(library.launch_swish, blocks, threads, x, y)
    launched(library.launch_swish_backward, blocks, threads, x, g, gx)
    s = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(y[:n], x * s, rtol=1e-14)
    np.testing.assert_allclose(gx[:n], g * (s + x * s * (1 - s)), rtol=1e-13)
    assert np.all(y[n:] == 7)
    assert np.all(gx[n:] == 7)


def nvrtc() -> Any:
    """NVRTC of the wheel `nvidia-cuda-nvrtc-cu12`; None without it."""
    spec = importlib.util.find_spec("nvidia.cuda_nvrtc") if importlib.util.find_spec("nvidia") else None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder, "lib").glob("libnvrtc.so.*"):
            return ctypes.CDLL(str(path))
    return None


@pytest.mark.skipif(nvrtc() is None, reason="pip install nvidia-cuda-nvrtc-cu12")
def test_the_cuda_c_is_compiled_to_ptx(example: dict[str, Any]) -> None:
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    source = example["SOURCE"].encode()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source, b"swish.cu", 0, None, None) == 0
    assert library.nvrtcCompileProgram(program, 0, None) == 0
    assert library.nvrtcGetPTXSize(program, ctypes.byref(size)) == 0
    ptx = ctypes.create_string_buffer(size.value)
    assert library.nvrtcGetPTX(program, ptx) == 0
    assert b".entry swish(" in ptx.value
    assert b".entry swish_backward(" in ptx.value
