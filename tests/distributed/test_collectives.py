"""The collectives in place, what gradients mean, and how a program begins, on one to four ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .launching import ROOT, launch, needs_mpi, passes


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("program", ["in_place", "meanings", "bad_input", "uneven"])
def test_on_some_ranks(program: str, ranks: int) -> None:
    passes(ranks, program)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_what_one_rank_refuses_all_ranks_raise(ranks: int) -> None:
    passes(ranks, "refusals")


@pytest.mark.parametrize("program", ["in_place", "meanings", "bad_input", "uneven"])
def test_without_a_launcher(program: str) -> None:
    pytest.importorskip("ml_dtypes", reason="they need ml_dtypes, which is not installed")
    ended = launch(1, program, alone=True)
    assert (ended.status, ended.out) == (0, "passed\n")


def _begun(environment: dict[str, str], hidden: str = "") -> subprocess.CompletedProcess[str]:
    """A program that begins with this environment, without a module that is hidden."""
    code = f"import sys; sys.modules[{hidden!r}] = None; " if hidden else ""
    code += "import pullback.distributed as dist; dist.init_process_group(); print(dist.get_world_size())"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_one_process_needs_no_mpi4py() -> None:
    assert _begun({}, "mpi4py").stdout == "1\n"


def test_several_processes_without_mpi4py_are_told_what_to_install() -> None:
    ended = _begun({"PMI_SIZE": "2"}, "mpi4py")
    assert ended.returncode == 1
    assert 'pip install "pullback[mpi]"' in ended.stderr


@needs_mpi
def test_an_mpiexec_of_another_library_is_named() -> None:
    ended = _begun({"OMPI_COMM_WORLD_SIZE": "2"})
    assert ended.returncode == 1
    assert "each sees itself alone" in ended.stderr
    assert "pullback run -n N" in ended.stderr


def test_several_processes_without_an_mpi_library_are_told_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("")
    (tmp_path / "mpi4py" / "MPI.py").write_text("raise RuntimeError('cannot load MPI library')")
    ended = _begun({"PMI_SIZE": "2", "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'src'}"})
    assert ended.returncode == 1
    assert "cannot load MPI library" in ended.stderr
    assert 'pip install "pullback[mpi]"' in ended.stderr
