"""Planted mutations: does the suite see it when a line of the library is wrong?

`python -m tests.mutations` copies the tree, and for each mutation changes one place of the copy and runs the tests that
should see it, until one fails; before the first mutation that asks for them it sees to it that they pass without it.
`WORD...` chooses mutations by their words, `--jobs N` runs N at once, `--with-torch` has the tests compare with PyTorch
as well; some mutations need that, as what they change is compared with nothing else. It ends with the counts; its exit
status is 0 only if all were caught.

A place is found by its text, wherever in the library that stands, so that moving a function leaves this list as it is;
`tests/house/test_mutations.py` says where a text is gone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source
from pathlib import Path

from tests.planted import MUTATIONS, Mutation

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "docs", "examples", "conftest.py", "pyproject.toml", "README.md", "CHANGELOG.md")


def copied(home: Path) -> Path:
    """A copy of what the tests need of the tree, in a folder that need not exist."""
    home.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, home / name)
    return home


def fails(home: Path, files: str, selected: str, with_torch: bool) -> tuple[bool, str]:
    """Whether a test fails in the copy, and which it was and in what time; SystemExit if it could not run them."""
    marker = [] if with_torch else ["-m", "not torch"]
    selection = ["-k", selected] if selected else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *marker, *files.split(), *selection],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(home / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 2):  # passed, failed, could not be collected
        raise SystemExit(f"{files}: pytest could not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    lines = done.stdout.strip().splitlines() or [""]
    return done.returncode != 0, "; ".join([*(line for line in lines if line.startswith("FAILED")), lines[-1]])


class Judge:
    """Plants mutations in copies of the tree, one for each thread that asks, and runs the tests there."""

    def __init__(self, chosen: Sequence[Mutation], scratch: Path, with_torch: bool) -> None:
        self.scratch, self.with_torch = scratch, with_torch
        self._own = threading.local()
        self._lock = threading.Lock()
        self._passing: dict[tuple[str, bool], threading.Lock] = {(m.files, m.oracle): threading.Lock() for m in chosen}
        self._selections = {
            key: {m.selected for m in chosen if (m.files, m.oracle) == key} for key in self._passing
        }  # of the tests in the same files, which are run together
        self._without: dict[tuple[str, bool], str] = {}

    def __call__(self, mutation: Mutation) -> str:
        """What became of the mutation: caught, missed, or not judged since a test fails without it."""
        started = time.monotonic()
        if not hasattr(self._own, "home"):
            with self._lock:
                self._own.home = copied(Path(tempfile.mkdtemp(dir=self.scratch)) / "tree")
        home = self._own.home
        if last := self._failing_without(home, mutation):
            return f"NO TEST {mutation.what} (without any mutation: {last})"
        file, text = mutation.planted(home / "src" / "pullback")
        right = file.read_text("utf-8")
        try:
            _write(file, text)
            failed, last = fails(home, mutation.files, mutation.selected, self.with_torch or mutation.oracle)
        finally:
            _write(file, right)
        return f"{'caught' if failed else 'MISSED'}  {mutation.what} ({time.monotonic() - started:.0f} s: {last})"

    def _failing_without(self, home: Path, mutation: Mutation) -> str:
        """Which test of the same files fails where no mutation is planted, and so would show nothing; "" if none."""
        key = mutation.files, mutation.oracle
        with self._passing[key]:
            if key not in self._without:
                chosen = self._selections[key]
                selected = "" if "" in chosen else " or ".join(f"({s})" for s in sorted(chosen))
                failed, last = fails(home, mutation.files, selected, self.with_torch or mutation.oracle)
                self._without[key] = last if failed else ""
        return self._without[key]


def _write(file: Path, text: str) -> None:
    """Write a file of the library, and delete what Python has compiled of it: it may be as long and as old."""
    file.write_text(text, "utf-8")
    Path(cache_from_source(str(file))).unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutations whose description has one of these words")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    parser.add_argument("--with-torch", action="store_true", help="also the tests that compare with PyTorch")
    options = parser.parse_args(arguments)
    chosen = [m for m in MUTATIONS if not options.words or any(word in m.what for word in options.words)]
    caught = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        for line in pool.map(Judge(chosen, Path(scratch), options.with_torch), chosen):
            print(line, flush=True)
            caught += line.startswith("caught")
    rate = 100 * caught / max(len(chosen), 1)
    print(f"{len(chosen)} mutations: {caught} caught ({rate:.1f} %), {len(chosen) - caught} not")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
