"""CUDA C without a GPU: the kernels of `examples/cuda_kernel.py`, run on the host; and all that is compiled to PTX."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from pullback.compile.backends.gpu.cuda import OPTIONS
from pullback.compile.backends.gpu.cuda_source import source
from pullback.compile.backends.loop import Access, Loop, Output, Step
from tests.compile import test_compile_c as of_c

from . import library, nvrtc
from .cuda_shim import COMPILER, RawModule
from .fake import DeviceArray

EXAMPLE = Path(__file__).parents[2] / "examples" / "cuda_kernel.py"

on_the_host = pytest.mark.skipif(COMPILER is None, reason="a C++ compiler is needed")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="pip install nvidia-cuda-nvrtc-cu12")


@on_the_host
@pytest.mark.parametrize("n", [1, 127, 128, 300])
def test_the_examples_kernels_give_the_values(n: int) -> None:
    example = runpy.run_path(str(EXAMPLE))
    module, threads = RawModule(example["SOURCE"]), example["THREADS"]
    rng = np.random.default_rng(n)
    x, g = rng.standard_normal((2, n))
    y, gx, blocks = np.empty(n), np.empty(n), -(-n // threads)
    module.get_function("swish")((blocks,), (threads,), (DeviceArray(x), DeviceArray(y), n))
    given = (DeviceArray(x), DeviceArray(g), DeviceArray(gx), n)
    module.get_function("swish_backward")((blocks,), (threads,), given)
    s = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(y, x * s, rtol=1e-14)
    np.testing.assert_allclose(gx, g * (s + x * s * (1 - s)), rtol=1e-13)


@on_the_host
def test_the_example_passes_gradcheck_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", library)
    example = runpy.run_path(str(EXAMPLE))
    assert example["GPU"]
    module, before = RawModule(example["SOURCE"]), len(RawModule.launched)
    assert example["checked"](module.get_function("swish"), module.get_function("swish_backward"))
    assert set(RawModule.launched[before:]) == {"swish", "swish_backward"}


@needs_nvrtc
def test_nvrtc_takes_the_examples_kernels() -> None:
    ptx, said = nvrtc.compiled(runpy.run_path(str(EXAMPLE))["SOURCE"])
    assert ".entry swish(" in ptx, said
    assert ".entry swish_backward(" in ptx


def taken(loop: Loop) -> str:
    """The PTX of a loop, in which all its kernels are."""
    text, kernels = source(loop)
    ptx, said = nvrtc.compiled(text, OPTIONS)
    errors = "\n".join(line for line in said.splitlines() if "error" in line)
    assert ptx, errors
    for kernel in kernels:
        assert f".entry {kernel.name}(" in ptx
    return ptx


@needs_nvrtc
@pytest.mark.parametrize("dtype", of_c.DTYPES)
def test_nvrtc_takes_every_operation_and_every_cast(dtype: str) -> None:
    whole = list(of_c.operations(np.dtype(dtype)))
    for start in range(0, len(whole), 12):
        loop, _ = of_c.table(np.dtype(dtype), whole[start : start + 12])
        taken(of_c.every_step(loop))
    steps: list[Step] = []
    for k, origin in enumerate(of_c.DTYPES):
        steps += [Step("load", (), np.dtype(origin), k), Step("cast", (2 * k,), np.dtype(dtype))]
    accesses = tuple(Access(np.dtype(origin), (True,)) for origin in of_c.DTYPES)
    taken(of_c.every_step(Loop((9,), accesses, tuple(steps), ())))


@needs_nvrtc
@pytest.mark.parametrize("dtype", of_c.DTYPES)
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 250_000)])
def test_nvrtc_takes_every_reduction(dtype: str, shape: tuple[int, ...]) -> None:
    ptx = taken(of_c.reduction(shape, dtype, [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()]))
    assert "bar.sync" in ptx
    assert "atom." not in ptx, "the order of atomic operations changes from run to run"


@needs_nvrtc
def test_nvrtc_contracts_no_product_and_sum() -> None:
    f = np.dtype("float32")
    steps = (*(Step("load", (), f, k) for k in range(3)), Step("multiply", (0, 1), f), Step("add", (3, 2), f))
    ptx = taken(Loop((9,), (Access(f, (True,)),) * 3, steps, (Output(4, f),)))
    assert "fma" not in ptx
    assert "ftz" not in ptx, "numbers below the normal range are kept"
