"""The CUDA C of loops, run on the host: what the C backend is held to, step by step, holds for the kernels too.

The checks are those of `tests/compile/test_compile_c.py`, with another function that runs a loop.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from pullback.compile.backends.c_steps import refusal
from pullback.compile.backends.gpu import cuda, cuda_source
from pullback.compile.backends.loop import Access, Loop, Output, Step
from tests.compile import test_compile_c as of_c

from . import library
from .cuda_shim import COMPILER, RawModule
from .fake import DeviceArray

pytestmark = pytest.mark.skipif(COMPILER is None, reason="a C++ compiler is needed")


def run(loop: Loop, inputs: Any, threads: int = 1) -> list[Any]:
    """The outputs of a loop as its kernels compute them, the same in both orders of threads and blocks."""
    found: list[Any] = []
    for backwards in (False, True):
        outputs = []
        for output in loop.outputs:
            shape = [n for axis, n in enumerate(loop.shape) if axis not in output.axes or output.reduce is None]
            outputs.append(np.full(shape, 77, output.dtype))
        RawModule.backwards = backwards
        try:
            cuda.build(loop)([DeviceArray(np.ascontiguousarray(x)) for x in inputs], [*map(DeviceArray, outputs)])
        finally:
            RawModule.backwards = False
        found.append(outputs)
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes(), "the order of threads shows"
    return found[0]


@pytest.fixture(autouse=True)
def _kernels_run_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", library)
    monkeypatch.setattr(of_c, "run", run)


@pytest.mark.parametrize("dtype", of_c.DTYPES)
def test_every_operation_means_what_numpy_means(dtype: str) -> None:
    of_c.test_every_operation_means_what_numpy_means(dtype)


@pytest.mark.parametrize("dtype", of_c.FLOATS)
def test_powers_and_constants(dtype: str) -> None:
    of_c.test_power_with_a_constant_exponent(dtype)
    of_c.test_constants_are_exact(dtype)


@pytest.mark.parametrize("target", of_c.DTYPES)
def test_every_cast(target: str) -> None:
    of_c.test_every_cast(target)


def test_float32_functions_over_the_whole_range() -> None:
    of_c.test_float32_elementary_functions_over_the_whole_range()


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(of_c.loops())
def test_random_loops(case: Any) -> None:
    if refusal(case[0]) is None:
        of_c.verify(*case)


@pytest.mark.parametrize("dtype", of_c.DTYPES)
def test_reductions_over_all_sets_of_axes(dtype: str) -> None:
    of_c.test_reductions_over_all_sets_of_axes(dtype)


@pytest.mark.parametrize("dtype", of_c.FLOATS)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_nan_and_infinity_are_handed_on(dtype: str, axes: tuple[int, ...]) -> None:
    of_c.test_reductions_hand_nan_and_infinity_on(dtype, axes)


@pytest.mark.parametrize("dtype", of_c.FLOATS)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((300_003,), (0,)), ((100_000, 10), (0,)), ((2_000, 77), (1,)), ((3, 30_000), (0,)), ((9, 200, 70), (0, 2))],
)
def test_long_reductions_are_accurate(dtype: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(5).uniform(0, 1, shape).astype(dtype)
    of_c.check_reduction(of_c.reduction(shape, dtype, [axes]), [x])


def of_size(n: int) -> tuple[Loop, Any]:
    """A loop over n elements whose every element, and their sum, show."""
    i = np.dtype("int64")
    steps = (Step("load", (), i, 0), Step("const", (), i, 3), Step("multiply", (0, 1), i))
    loop = Loop((n,), (Access(i, (True,)),), steps, (Output(2, i), Output(2, i, "add", (0,))))
    return loop, np.arange(n)


@pytest.mark.parametrize("n", [1, 255, 256, 257, 4096 * 256 - 1, 4096 * 256 + 1, 3_000_017])
def test_grids_end_where_the_elements_do(n: int) -> None:
    loop, x = of_size(n)
    whole = loop._replace(outputs=loop.outputs[:1])  # without its sum, a thread has an element
    np.testing.assert_array_equal(run(whole, [x])[0], 3 * x)
    found, total = run(loop, [x])
    np.testing.assert_array_equal(found, 3 * x)
    assert total == 3 * x.sum()


def test_numbers_of_64_bits_are_taken_where_32_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, x = of_size(5000)
    assert "int32_t i0" in cuda_source.source(loop)[0]
    monkeypatch.setattr(cuda_source, "IN_32_BITS", 4999)
    assert "int32_t i0" not in cuda_source.source(loop)[0].rpartition("arithmetic")[2].partition("extern")[2]
    assert run(loop, [x])[1] == 3 * x.sum()


@pytest.mark.parametrize("pieces", [1, 7, 64, 10_000])
def test_pieces_are_joined_in_every_number(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_source, "WANTED", pieces)
    monkeypatch.setattr(cuda_source, "LEAST", 1)
    shape, sets = (13, 3000), [(0,), (1,), (0, 1)]
    for dtype in ("float64", "int32", "bool"):
        x = np.random.default_rng(0).normal(size=shape) * 3
        of_c.check_reduction(of_c.reduction(shape, dtype, sets), [x.astype(dtype)])


def test_the_shim_sees_a_missing_barrier_a_barrier_for_some_and_a_write_beside() -> None:
    array = [DeviceArray(np.arange(4.0)), DeviceArray(np.zeros(4))]
    head = 'extern "C" __global__ void f(const double *x, double *y) {\n__shared__ double s[4];\n'
    text = head + "s[threadIdx.x] = x[threadIdx.x];\n%s\ny[threadIdx.x] = s[3 - threadIdx.x];\n}\n"

    def both(source: str) -> list[Any]:
        found = []
        for RawModule.backwards in (False, True):
            RawModule(source).get_function("f")((1,), (4,), tuple(array))
            found.append(array[1].inner.tolist())
        RawModule.backwards = False
        return found

    assert both(text % "__syncthreads();") == [[3, 2, 1, 0]] * 2
    forward, backward = both(text % "// __syncthreads()")
    assert forward != backward
    with pytest.raises(AssertionError, match="some threads wait at a barrier"):
        both(text % "if (threadIdx.x) __syncthreads();")
    with pytest.raises(AssertionError, match="f wrote beside an array"):
        both(head + "y[threadIdx.x + 1] = 1;\n}\n")
