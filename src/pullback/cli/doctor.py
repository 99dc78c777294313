"""`pullback doctor`: what there is on this machine of what the library can use, and how to get what is missing.

Nothing that is missing is a fault: the library needs NumPy alone. A fault is what is there and does not work, such as a
compiler that makes no programs, or an MPI that cannot be loaded; then the exit status is 1.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

import numpy as np

import pullback
from pullback.cli import run as run_command
from pullback.cli.script import TargetError
from pullback.compile import get_num_threads
from pullback.compile.backends import c, cache

EXTRAS: dict[str, tuple[dict[str, str], str]] = {
    "scipy": ({"scipy": "scipy"}, "pullback.scipy, sparse tensors"),
    "bfloat16": ({"ml_dtypes": "ml_dtypes"}, "tensors of bfloat16"),
    "checkpoint": ({"checkpoint_schedules": "checkpoint_schedules"}, "the disk as a level of checkpoint_steps"),
    "terminal": ({"rich": "rich"}, "progress bars and colours in a terminal"),
    "plot": ({"matplotlib": "matplotlib"}, "the pictures of the gallery and the examples"),
    "torch": ({"torch": "torch"}, "pullback.bridge.torch"),
    "jax": ({"jax": "jax"}, "pullback.bridge.jax"),
    "mpi": ({"mpi4py": "mpi4py"}, "pullback.distributed on more than one process"),
    "gpu13": ({"cupy-cuda13x": "cupy", "cupy-cuda12x": "cupy", "cupy": "cupy"}, "tensors on a GPU"),
}
"""For each extra: the distributions that bring it, with the module of each, and what it is for."""

OK, MISSING, FAULT = "ok", "missing", "fault"
LIMIT = 60.0
"""Seconds after which a library that does not load is given up."""


@dataclass(frozen=True)
class Finding:
    """What was found of one thing, and what to do where it is missing or does not work."""

    what: str
    state: str
    found: str
    do: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no options of its own."""


def run(arguments: argparse.Namespace) -> int:
    """Print what was found: 1 if something that is there does not work, else 0."""
    findings = [*examined()]
    if arguments.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
    else:
        print(as_text(findings), end="")
    return int(any(finding.state == FAULT for finding in findings))


def as_text(findings: list[Finding]) -> str:
    """The findings as a table, what to do below each, and one line that sums them up."""
    width = max(len(finding.what) for finding in findings)
    lines = []
    for finding in findings:
        first, *rest = finding.found.splitlines() or [""]
        lines.append(f"{finding.state:<8}{finding.what:<{width + 2}}{first}")
        lines += (" " * (width + 10) + line for line in rest)
        if finding.do:
            lines.append(f"{'':{width + 10}}What to do: {finding.do}")
    faults = [finding.what for finding in findings if finding.state == FAULT]
    lines.append(f"Does not work: {', '.join(faults)}." if faults else "What is there works.")
    return "\n".join(lines) + "\n"


def examined() -> Iterator[Finding]:
    """Everything that is looked at, one after the other. What cannot be looked at is a fault, with its error."""
    looks: list[tuple[str, Callable[[], Finding]]] = [
        ("python", _python),
        ("pullback", _library),
        ("numpy", _numpy),
        ("threads", _threads),
        ("compiler", _compiler),
        ("cache", _cache),
        *((name, functools.partial(_extra, name)) for name in EXTRAS),
        ("mpiexec", _launcher),
        ("gpu", _gpu),
    ]
    for what, look in looks:
        try:
            yield look()
        except Exception as error:  # a part that is broken in a way that nobody thought of must not hide the others
            yield Finding(what, FAULT, f"{type(error).__name__}: {error}", "install it again, or report this text")


def _python() -> Finding:
    return Finding("python", OK, f"{platform.python_version()} ({platform.platform()}), {sys.executable}")


def _library() -> Finding:
    return Finding("pullback", OK, f"{pullback.__version__}, {Path(pullback.__file__).parent}")


def _numpy() -> Finding:
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    words = " ".join(filter(None, [blas.get("name"), blas.get("version")])) or "unknown"
    return Finding("numpy", OK, f"{np.__version__}, BLAS: {words}")


def _threads() -> Finding:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    given = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = f"{get_num_threads()} for compiled loops, {cores} cores for this process"
    return Finding("threads", OK, "; ".join([found, f"BLAS: {', '.join(given) or 'as many as it likes'}"]))


def _compiler() -> Finding:
    error = c.failure()
    if error is None:
        used = cache.compiler()
        return Finding("compiler", OK, f"{shlex.join(used.command)} {shlex.join(used.flags)}")
    text, _, do = str(error).partition("\n  What to do: ")
    nothing_wrong = isinstance(error, cache.NoCompilerError)
    do = do.rstrip(".") or "name another compiler in the environment variable CC"
    return Finding(
        "compiler", MISSING if nothing_wrong else FAULT, f"{text.rstrip('.')}; compiled functions run as NumPy", do
    )


def _cache() -> Finding:
    if isinstance(c.failure(), cache.NoCompilerError):
        return Finding("cache", MISSING, "none; it holds what a compiler makes")
    try:
        folder = cache.directory()
    except OSError as error:
        text, _, do = str(error).partition("\n  What to do: ")
        return Finding("cache", FAULT, text, do.rstrip("."))
    try:
        lasts, why = folder == cache.place(), f"{cache.place()} cannot be written"
    except RuntimeError:
        lasts, why = False, "there is no home folder"
    if not lasts:
        found = f"{why}; each process compiles its loops anew, into a temporary folder such as {folder}"
        do = "make that folder one that you can write, or name another in the environment variable PULLBACK_CACHE"
        return Finding("cache", FAULT if os.environ.get("PULLBACK_CACHE") else MISSING, found, do)
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    loops = len([*folder.glob("*/loop.c")])
    return Finding("cache", OK, f"{folder}: {loops} loops, {sum(sizes) / 2**20:.1f} of {cache.LIMIT >> 20} MiB")


def _extra(name: str) -> Finding:
    """Whether one of the distributions of an extra is installed, and can be imported."""
    distributions, purpose = EXTRAS[name]
    for distribution, module in distributions.items():
        try:
            version = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
        status, said = _imported(module)
        if status:
            return Finding(name, FAULT, f"{distribution} {version} cannot be imported: {said}", "install it again")
        return Finding(name, OK, f"{distribution} {version}{said}, for {purpose}")
    install = f'pip install "pullback[{name}]"' + (" (or [gpu12] for CUDA 12)" if name == "gpu13" else "")
    return Finding(name, MISSING, f"not installed; for {purpose}", install)


def _imported(module: str) -> tuple[int, str]:
    """Import a module in a process of its own: one that ends the process does so there. Its status and last words."""
    code = f"import {module}"
    if module == "mpi4py":  # which loads an MPI library with this module alone
        code = "from mpi4py import MPI; print(', ' + MPI.Get_library_version().split(chr(10))[0].strip(chr(0)))"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return 1, f"it did not come to an end within {LIMIT:g} s"
    words = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    return done.returncode, words[-1] if words else f"exit status {done.returncode}" if done.returncode else ""


def _launcher() -> Finding:
    try:
        return Finding("mpiexec", OK, run_command.launcher()[0])
    except TargetError:
        return Finding("mpiexec", MISSING, "none; for `pullback run -n 4 script.py`", 'pip install "pullback[mpi]"')


def _gpu() -> Finding:
    if pullback.cuda.is_available():
        names = [pullback.cuda.get_device_name(number) for number in range(pullback.cuda.device_count())]
        return Finding("gpu", OK, ", ".join(names))
    if util.find_spec("cupy") is not None:
        return Finding("gpu", MISSING, "CuPy is here, and finds no GPU", "look whether `nvidia-smi` lists one")
    if shutil.which("nvidia-smi"):
        return Finding("gpu", MISSING, "there is a driver, and no CuPy", 'pip install "pullback[gpu13]" (or [gpu12])')
    return Finding("gpu", MISSING, "none; tensors lie in the memory of the processor")
