"""The times of the gallery's pages: `python -m benchmarks.gallery [NAME...]`.

Each program runs in a process of its own, on one thread. Where it is one of PyTorch's names alone, it runs there as
well, after a changed import. What it prints has to be what the page shows, in both, or nothing is reported. It runs
twice and the second run counts, since at the first one libraries load parts of themselves. The libraries take turns;
shown are the medians of three, in seconds of CPU time, without the drawing of the picture.
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
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "gallery"
# What only this library has; a page that uses one of them does not run in PyTorch.
OURS = re.compile(r"pullback\.scipy|func\.derivatives|runpy")
TURNS = 3


def examples(page: Path) -> list[doctest.Example]:
    """The program of a page, statement by statement, without its picture."""
    text = re.sub(r"^```$", "", page.read_text("utf-8"), flags=re.MULTILINE)
    return [e for e in doctest.DocTestParser().get_examples(text) if not re.match(r"def draw|figure\b", e.source)]


def in_pytorch(code: str) -> str:
    """The same code with the imports changed, and the printed names."""
    code = re.sub(r"^import pullback as torch$", "import torch", code, flags=re.MULTILINE)
    return code.replace("pullback.", "torch.")


def run(page: Path, library: str) -> float:
    """The seconds that the program of a page takes when it runs again; what it prints is compared."""
    parts = [(e.source, e.want) for e in examples(page)]
    if library == "torch":
        parts = [(in_pytorch(source), in_pytorch(want)) for source, want in parts]
        importlib.import_module("torch").set_num_threads(1)
    once(page, parts, library)
    return once(page, parts, library)


def once(page: Path, parts: list[tuple[str, str]], library: str) -> float:
    """The seconds of one run: of this process, so that what else runs on the machine counts little."""
    names: dict[str, object] = {}
    checker, seconds = doctest.OutputChecker(), 0.0
    for source, want in parts:
        printed, code = io.StringIO(), compile(source, str(page), "single")
        with contextlib.redirect_stdout(printed):
            start = time.process_time()
            exec(code, names)
            seconds += time.process_time() - start
        if not checker.check_output(want, printed.getvalue(), doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS):
            raise SystemExit(f"{page.stem} with {library}: expected {want!r}, found {printed.getvalue()!r}")
    return seconds


def timed(name: str) -> dict[str, float]:
    """The median seconds of a page by library, each run in a fresh process, in turns."""
    libraries = ["pullback"] if OURS.search((PAGES / f"{name}.md").read_text("utf-8")) else ["pullback", "torch"]
    found: dict[str, list[float]] = {library: [] for library in libraries}
    for _ in range(TURNS):
        for library, seconds in found.items():
            command = [sys.executable, "-m", "benchmarks.gallery", "--one", name, library]
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            seconds.append(json.loads(done.stdout))
    return {library: statistics.median(seconds) for library, seconds in found.items()}


def main(arguments: list[str]) -> None:
    """Print one run for the process that asked for it, or the table."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(run(PAGES / f"{arguments[1]}.md", arguments[2])))
        return
    for name in arguments or sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index"):
        print(f"{name:20s}", ", ".join(f"{library} {seconds:.2f} s" for library, seconds in timed(name).items()))


if __name__ == "__main__":
    main(sys.argv[1:])
