"""Rows that need a fresh process for each run: the time of an import, the memory of a node, the size on disk.

`probe` is what runs there. The first run of a side, which is compared and not counted, warms the file system's cache
and writes missing bytecode.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Program, Row
from benchmarks.rows import MILLION, C, G, Maker, X

ROOT = Path(__file__).parents[1]


def probed(what: str, module: ModuleType, **keywords: Any) -> Program:
    """The program that has a function of `probe` measure a package in a separate process."""
    command = [sys.executable, "-m", "benchmarks.probe", what, module.__name__, json.dumps(keywords)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    home = str(Path(str(module.__file__)).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [home, environment.get("PYTHONPATH")]))

    def work(_: None) -> Any:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{module.__name__}: {done.stderr.strip().rpartition(chr(10))[2]}")
        return json.loads(done.stdout)

    return Program(work, lambda found: [np.array(a) for a in found["arrays"]], figure=lambda found: found["figure"])


def _sides(what: str, *names: str, **keywords: Any) -> dict[str, Maker]:
    return dict.fromkeys(names, lambda module: probed(what, module, **keywords))


_CHAIN = {"x": X.tolist(), "c": C.tolist(), "g": G.tolist()}

ROWS = [
    Row(
        "million-memory",
        f"chain of {MILLION:.0e} multiplications, build + backward: how far a process grows, bytes per node",
        1,
        None,
        _sides("memory", "torch", "pullback", nodes=MILLION, **_CHAIN),
        unit="B",
        most={"pullback": 800},
    ),
    Row(
        "laplacian-memory",
        "the row laplacian: how far a process grows in one step, at its peak",
        1,
        1.0,
        _sides("laplacian", "torch", "pullback"),
        unit="MB",
        tolerance=1e-3,
    ),
    Row(
        "import",
        "importing the package, in a fresh process, bytecode at hand",
        1,
        None,
        _sides("importing", "torch", "pullback", "numpy"),
        {("pullback", "numpy"): 1.6},
        unit="ms",
    ),
    *(
        Row(
            f"compiling-{name}",
            f"the first call of the row {name}, forward and backward, in a fresh process with nothing compiled before",
            1,
            None,
            _sides("compiling", "inductor", "compiled", "jit", row=name),
            {("compiled", "inductor"): 1.0},
            tolerance=2e-3,
            unit="s",
            runs=3,
        )
        for name in ("rnn", "transformer")
    ),
    Row(
        "compiled-size",
        "what the first call of the row transformer leaves on the disk",
        1,
        None,
        _sides("compiling", "inductor", "compiled", row="transformer", cached=True),
        {("compiled", "inductor"): 1.0},
        tolerance=2e-3,
        unit="kB",
        runs=3,
    ),
    Row(
        "size",
        "what is installed: the package and the dependencies it cannot do without, bytecode left out",
        1,
        None,
        _sides("size", "torch", "pullback", "numpy"),
        unit="MB",
        most={"pullback": 62},
    ),
]
