"""The benchmark for GPUs on the device that is not there: it compares first, says what failed, refuses without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback
from benchmarks import gpu as bench

SMALL = ["--sizes", "1000", "--batch", "8", "--rounds", "2"]


class Other:
    """What stands for PyTorch: this library under another name."""

    __version__ = "2.13.0"
    version = SimpleNamespace(cuda="12.6")

    def __getattr__(self, name: str) -> Any:
        return getattr(pullback, name)


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "other_library", lambda: (Other(), ""))


def told(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


@pytest.mark.usefixtures("compiling", "other")
def test_rows_are_compared_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = bench.main([*SMALL, "--json", str(tmp_path / "figures")])
    said = told(tmp_path / "figures")
    assert said["about"]["PyTorch"] == "2.13.0, CUDA 12.6"
    assert said["about"]["GPU"] == "None, in fact"
    eager, compiled, step, compiled_step, graphs = said["rows"]
    for row, names in ((eager, {"PyTorch's Function", "pullback's Function"}), (step, {"PyTorch", "pullback"})):
        assert row["milliseconds"].keys() == names
        assert row["ratio"] == 1, "the same program twice takes as many arrays"
        assert not row["problems"]
    assert eager["share of the bandwidth of a copy"] > 0
    for row, name in ((compiled, "compiled"), (compiled_step, "compiled"), (graphs, "compiled, CUDA graphs")):
        assert f"pullback {name}" in row["milliseconds"]
        assert not row["problems"]
    assert graphs["milliseconds"].keys() == {
        "torch.compile",
        "torch.compile, CUDA graphs",
        "pullback compiled, CUDA graphs",
    }
    assert status == int(any(row["problems"] for row in said["rows"]))
    printed = capsys.readouterr().out
    assert "Swish of 1e+03, eager: PyTorch's Function" in printed
    assert all(problem in printed for row in said["rows"] for problem in row["problems"])


@pytest.mark.usefixtures("gpu", "other")
@pytest.mark.parametrize("fault", ["differs", "fails"])
def test_a_side_that_is_wrong_is_not_timed(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = bench.swish

    def wrong(library: Any, size: int) -> Any:
        program = real(library, size)
        if isinstance(library, Other):
            return program
        if fault == "fails":
            raise RuntimeError("planted")
        return bench.Program(lambda _: [t * 1.01 for t in program.once()], list)

    monkeypatch.setattr(bench, "swish", wrong)
    assert bench.main([*SMALL, "--json", str(tmp_path / "figures")]) == 1
    row = told(tmp_path / "figures")["rows"][0]
    assert row["milliseconds"].keys() == {"PyTorch's Function"}
    assert "ratio" not in row
    (problem,) = row["problems"]
    assert problem.startswith(f"pullback's Function{':' if fault == 'differs' else ''} ")


@pytest.mark.usefixtures("gpu")
def test_without_pytorch_there_is_no_ratio(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "other_library", lambda: (None, "not installed"))
    bench.main([*SMALL, "--json", str(tmp_path / "figures")])
    said = told(tmp_path / "figures")
    assert said["about"]["PyTorch"] == "not installed"
    assert not any("ratio" in row for row in said["rows"])
    assert said["rows"][0]["milliseconds"].keys() == {"pullback's Function"}


@pytest.mark.usefixtures("gpu")
def test_the_copy_moves_what_swish_moves() -> None:
    moved = []
    real = pullback.Tensor.copy_

    class Library:
        ones, empty = staticmethod(pullback.ones), staticmethod(pullback.empty)

    program = bench.copied(Library, 1000)
    try:
        pullback.Tensor.copy_ = lambda self, src: (moved.append(2 * src.nbytes), real(self, src))[1]
        program.once()
    finally:
        pullback.Tensor.copy_ = real
    assert sum(moved) == bench.MOVED * 1000


@pytest.mark.usefixtures("compiling")
def test_pytorchs_results_are_cloned_before_the_next_call() -> None:
    begun, modes = [], []

    class Library:
        compiler = SimpleNamespace(cudagraph_mark_step_begin=lambda: begun.append(len(begun)))

        @staticmethod
        def compile(fn: Any, mode: str) -> Any:
            modes.append(mode)
            return fn

    x = pullback.ones(2, device="cuda")
    (kept, (again,)) = bench.WithGraphs(Library).compile(lambda x: (x, [x]))(x)  # type: ignore[arg-type]
    x.add_(1)
    assert (begun, modes) == ([0], ["reduce-overhead"])
    assert kept.tolist() == again.tolist() == [1, 1]


def test_the_works_give_swish() -> None:
    values, cotangent = bench.arrays._swish_data(7)
    s = 1 / (1 + np.exp(-values.astype(float)))
    program = bench.arrays.swish(pullback, 7)
    y, gradient = (t.detach().numpy() for t in program.once())
    np.testing.assert_allclose(y, values * s, rtol=1e-5)
    np.testing.assert_allclose(gradient, cotangent * s * (1 + values * (1 - s)), rtol=1e-4, atol=1e-6)


def test_without_a_gpu_it_refuses() -> None:
    root = Path(__file__).parents[2]
    hidden = "import sys; sys.modules['cupy'] = None; from benchmarks import gpu; sys.exit(gpu.main([]))"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 2
    assert "this needs a GPU, so nothing was measured" in done.stderr
    assert "pip install 'pullback[gpu12]'" in done.stderr
    assert not done.stdout
