"""The tests that wait for a GPU, run on the device that is not there: so that they run when there is one.

They are the functions of `tests/gpu` with fewer steps. What this shows is that each of them can pass and can fail.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback
from pullback.tensor.tensor import wrap
from tests.gpu import test_on_gpu as bodies
from tests.gpu.test_on_gpu import (
    test_a_captured_graph_is_replayed,
    test_compiled_steps_as_cuda_graphs,
    test_files_go_to_the_devices_that_they_came_from,
    test_gradients_on_a_stream,
    test_many_steps_keep_memory_flat,
    test_pinned_memory_goes_and_comes,
    test_random_numbers_are_those_of_the_seed,
    test_streams_order_their_work,
    test_the_demo_trains,
)

from . import modes
from .fake import DeviceArray
from .machine import MACHINE

__all__ = [
    "test_a_captured_graph_is_replayed",
    "test_compiled_steps_as_cuda_graphs",
    "test_files_go_to_the_devices_that_they_came_from",
    "test_gradients_on_a_stream",
    "test_many_steps_keep_memory_flat",
    "test_pinned_memory_goes_and_comes",
    "test_random_numbers_are_those_of_the_seed",
    "test_streams_order_their_work",
    "test_the_demo_trains",
]

pytestmark = pytest.mark.usefixtures("compiling", "few")

SOME = (
    "add sin sum matmul softmax cat index_select sort linalg.inv nn.functional.conv2d nn.functional.cross_entropy"
).split()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer steps, and memory that is counted."""
    monkeypatch.setattr(bodies, "STEPS", 100)
    monkeypatch.setattr(bodies, "EPOCHS", 2)
    monkeypatch.setattr(bodies, "SIZE", 64)
    MACHINE.limit = 1 << 30


@pytest.mark.parametrize("mode", list(modes.MODES))
@pytest.mark.filterwarnings("ignore")
def test_samples(mode: str) -> None:
    with np.errstate(all="ignore"):
        assert not bodies.differing(mode, SOME)


def test_a_difference_is_seen() -> None:
    one = np.ones(2, np.float32)
    there, host = wrap(DeviceArray(one.copy())), wrap(one)
    assert not bodies.difference([there], [host])
    assert "differ by" in bodies.difference([there * 1.0001], [host])
    assert "lies on the host" in bodies.difference([host], [host])
    assert "expected float32[3]" in bodies.difference([there], [wrap(np.ones(3, np.float32))])
    assert bodies.difference([], [host]) == "0 results, expected 1"
    assert bodies.difference(ValueError("x"), [host]) == "ValueError: x"
    assert "missing" in bodies.difference([None], [host])


def test_memory_that_grows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    real = pullback.nn.functional.cross_entropy

    def leaking(*args: object) -> object:
        kept.append(found := real(*args))
        return found

    monkeypatch.setattr(pullback.nn.functional, "cross_entropy", leaking)
    with pytest.raises(AssertionError):
        test_many_steps_keep_memory_flat()


def test_memory_that_is_full() -> None:
    MACHINE.limit = 1 << 20
    bodies.test_memory_that_is_full_is_torchs_error_and_the_program_goes_on()


def test_without_a_gpu_they_are_left_out_and_that_is_said() -> None:
    root = Path(__file__).parents[2]
    what = ["-q", "-p", "no:cacheprovider", "tests/gpu", "-k", "demo"]
    hidden = "import sys; sys.modules['cupy'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", hidden, *what], capture_output=True, text=True, cwd=root, check=False)
    assert "1 skipped" in done.stdout, done.stdout + done.stderr
    assert "they need a GPU: CuPy or a GPU is missing, so nothing ran on one" in done.stdout
