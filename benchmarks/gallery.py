"""The times of the gallery's pages: `python -m benchmarks.gallery [NAME...]`.

Each program runs in a process of its own, on one thread. Where it is one of PyTorch's names alone, it runs there as
well, after a changed import; where it is not, and the problem can be written in PyTorch or JAX, `benchmarks/twins/` has
the program. What a page's program prints has to be what the page shows, and what a twin finds has to be what the page's
finds, or nothing is reported. A program runs twice: the first run imports, and in JAX compiles; the second shows what
its work takes. Loops in C are compiled once on a machine, so a turn with an empty cache comes before the others. The
libraries take turns; shown are the medians of three, in seconds of CPU time, without `gradcheck`. The picture is no
part of the program (docs/drawings.py). A page of several processes has the time of the busiest, too (it needs mpiexec).
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "gallery"
TWINS = ROOT / "benchmarks" / "twins"
# What only this library has; a page that uses one of them does not run in PyTorch.
OURS = re.compile(r"pullback\.scipy|func\.derivatives|runpy")
RANKS = {"digits": 2}  # the pages whose programs are for several processes, and on how many they are timed
TURNS = 3
SETTINGS = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}

NAMES = {"pullback": "here", "torch": "PyTorch", "jax": "JAX"}

Times = dict[str, float]  # of the first run, and of the one after it


def libraries(name: str) -> list[str]:
    """Where the problem of a page is timed: here, and where the same lines run or another program is written."""
    twins = {path.stem.removeprefix(f"{name}_") for path in TWINS.glob(f"{name}_*.py")} - {"pullback"}
    same = set() if OURS.search((PAGES / f"{name}.md").read_text("utf-8")) else {"torch"}
    return ["pullback", *sorted(same | twins)]


def examples(page: Path) -> list[doctest.Example]:
    """The program of a page, statement by statement."""
    return doctest.DocTestParser().get_examples(re.sub(r"^```$", "", page.read_text("utf-8"), flags=re.MULTILINE))


def in_pytorch(code: str) -> str:
    """The same code with the imports changed, and the printed names."""
    code = re.sub(r"^import pullback as torch$", "import torch", code, flags=re.MULTILINE)
    return code.replace("pullback.", "torch.")


def spent() -> float:
    """The seconds of CPU time of this process, and of the compilers that it started."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def once(page: Path, parts: list[tuple[str, str]], library: str) -> tuple[float, dict[str, Any]]:
    """The seconds of one run of a page's program, and its names; what it prints is compared."""
    names: dict[str, Any] = {}
    checker, seconds = doctest.OutputChecker(), 0.0
    for source, want in parts:
        printed, code = io.StringIO(), compile(source, str(page), "single")
        with contextlib.redirect_stdout(printed):
            start = spent()
            exec(code, names)
            seconds += 0.0 if "gradcheck(" in source else spent() - start
        if not checker.check_output(want, printed.getvalue(), doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS):
            raise SystemExit(f"{page.stem} with {library}: expected {want!r}, found {printed.getvalue()!r}")
    return seconds, names


def run(page: Path, library: str) -> Times:
    """The seconds that the program of a page takes, here or in PyTorch by the same lines."""
    parts = [(e.source, e.want) for e in examples(page)]
    if library == "torch":
        parts = [(in_pytorch(source), in_pytorch(want)) for source, want in parts]
    first, again = (once(page, parts, library)[0] for _ in range(2))
    return {"first": first, "again": again}


def run_twin(name: str, library: str) -> Times:
    """The seconds that a twin takes; what it finds is compared with what the page's program finds."""
    start = spent()
    solve: Callable[[], dict[str, Any]] = importlib.import_module(f"benchmarks.twins.{name}_{library}").solve
    found = solve()
    first, start = spent() - start, spent()
    solve()
    again, page = spent() - start, PAGES / f"{name}.md"
    _, names = once(page, [(e.source, e.want) for e in examples(page)], "pullback")
    importlib.import_module("benchmarks.twins").compare(found, names)
    return {"first": first, "again": again}


def measured(name: str, library: str, ranks: int, cache: str) -> Times:
    """One turn in fresh processes, which share a cache of compiled loops; of several, the times of the busiest."""
    launcher = importlib.import_module("pullback.cli.run").launcher()[0] if ranks > 1 else ""
    command = [sys.executable, "-m", "benchmarks.gallery", "--one", name, library, str(ranks)]
    started = [launcher, "-n", str(ranks), *command] if launcher else command
    environment = {**os.environ, **SETTINGS, "PULLBACK_CACHE": cache}
    done = subprocess.run(started, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[Times] = [json.loads(one) for one in re.findall(r"\{.*?\}", done.stdout)]  # lines may meet
    return {run: max(times[run] for times in found) for run in ("first", "again")}


def sides(name: str) -> list[tuple[str, int]]:
    """The libraries that a page is timed in, and on how many processes."""
    found = [(library, 1) for library in libraries(name)]
    return found + [(library, RANKS[name]) for library, _ in found if name in RANKS]


def label(name: str, library: str, ranks: int) -> str:
    """The head of a row of a page's table: where, and by which program."""
    is_twin = library != "pullback" and (TWINS / f"{name}_{library}.py").exists()
    program = f", `benchmarks/twins/{name}_{library}.py`" if is_twin else ", the same lines"
    return NAMES[library] + program * (library != "pullback") + f", on {ranks} processes" * (ranks > 1)


def timed(name: str) -> list[str]:
    """The rows of a page's table: median seconds, the libraries in turns. Here loops are compiled in a turn before."""
    found: dict[tuple[str, int], list[Times]] = {side: [] for side in sides(name)}
    with tempfile.TemporaryDirectory() as cache:
        compiling = {side: measured(name, *side, cache)["first"] for side in found if side[0] == "pullback"}
        for _ in range(TURNS):
            for side, turns in found.items():
                turns.append(measured(name, *side, cache))
    rows = []
    for side, turns in found.items():
        cells = [statistics.median(times[run] for times in turns) for run in ("again", "first")]
        cells += [compiling[side]] if side in compiling else []
        shown = [f"{seconds:.2g} s" for seconds in cells] + ["-"] * (side not in compiling)
        rows.append(f"| {' | '.join([label(name, *side), *shown])} |")
    return rows


def main(arguments: list[str]) -> None:
    """Print one turn for the process that asked for it, or the table."""
    if arguments[:1] == ["--one"]:
        name, library, ranks = arguments[1:]
        is_twin = (TWINS / f"{name}_{library}.py").exists() and (library != "pullback" or int(ranks) > 1)
        print(json.dumps(run_twin(name, library) if is_twin else run(PAGES / f"{name}.md", library)), flush=True)
        return
    for name in arguments or sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index"):
        print(name, *timed(name), sep="\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
