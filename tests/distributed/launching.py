"""Starts the programs of this folder on several ranks, and says how they ended."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIMIT = 120  # seconds after which a program is killed: it should have ended itself

MPIEXEC = next(
    (str(path) for path in [Path(sys.executable).parent / "mpiexec"] if path.exists()), shutil.which("mpiexec")
)
needs_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None, reason="mpi4py or mpiexec is missing"
)


class Ended(NamedTuple):
    """How a program ended: its status, and what its ranks wrote."""

    status: int
    out: str


def launch(ranks: int, program: str, *args: str, alone: bool = False, by: tuple[str, ...] = ()) -> Ended:
    """Run ``programs/<program>.py`` on some ranks; alone: without mpiexec. by: another launcher's command."""
    start = list(by) if by else [] if alone else [str(MPIEXEC), "-n", str(ranks)]
    python = [] if by else [sys.executable]
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*start, *python, str(HERE / "programs" / f"{program}.py"), *args],
        env=env,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return Ended(done.returncode, done.stdout)


def passes(ranks: int, program: str, *args: str) -> str:
    """Run a program that has to end with status 0 on every rank; what it wrote."""
    ended = launch(ranks, program, *args)
    assert ended.status == 0, ended.out
    assert ended.out.count("passed") == ranks, ended.out
    return ended.out
