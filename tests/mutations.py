"""Planted mutations: does the suite see it when a line of the library is wrong?

`python -m tests.mutations` copies the tree, and for each mutation changes one place of the copy and runs the tests that
should see it, until one fails; first it sees to it that these tests pass without the mutation. `WORD...` chooses
mutations by their words, `--jobs N` runs N at once, `--with-torch` has the tests compare with PyTorch as well; some
mutations need that, as what they change is compared with nothing else. It ends with the counts; its exit status is 0
only if all were caught.

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
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.planted import MUTATIONS, Mutation

ROOT = Path(__file__).parents[1]


def _copy(home: Path) -> Path:
    """A copy of what the tests need of the tree."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, home / name)
    return home


def _fails(home: Path, files: str, selected: str, with_torch: bool) -> tuple[bool, str]:
    """Whether a test fails in the copy, and which it was and in what time; SystemExit if it could not run them."""
    marker = [] if with_torch else ["-m", "not torch"]
    selection = ["-k", selected] if selected else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *marker, *files.split(), *selection],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(home / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 2):  # passed, failed, could not be collected
        raise SystemExit(f"{files}: pytest could not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    lines = done.stdout.strip().splitlines() or [""]
    return done.returncode != 0, "; ".join([*(line for line in lines if line.startswith("FAILED")), lines[-1]])


def _check_that_all_pass(chosen: list[Mutation], scratch: Path, with_torch: bool) -> None:
    """SystemExit if one of the tests fails where no mutation is planted: it would show nothing."""
    home = _copy(Path(tempfile.mkdtemp(dir=scratch)))
    for files, oracle in dict.fromkeys((m.files, m.oracle) for m in chosen):
        selections = {f"({m.selected})" if m.selected else "" for m in chosen if (m.files, m.oracle) == (files, oracle)}
        selected = "" if "" in selections else " or ".join(sorted(selections))
        failed, last = _fails(home, files, selected, with_torch or oracle)
        if failed:
            raise SystemExit(f"Without any mutation, a test of {files} fails: {last}")


def _judged(mutation: Mutation, scratch: Path, with_torch: bool) -> str:
    """Plant the mutation in a copy of its own, and say what became of it: caught, or missed."""
    started = time.monotonic()
    home = _copy(Path(tempfile.mkdtemp(dir=scratch)))
    try:
        file, text = mutation.planted(home / "src" / "pullback")
        file.write_text(text, "utf-8")
        failed, last = _fails(home, mutation.files, mutation.selected, with_torch or mutation.oracle)
    finally:
        shutil.rmtree(home)
    return f"{'caught' if failed else 'MISSED'}  {mutation.what} ({time.monotonic() - started:.0f} s: {last})"


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
        _check_that_all_pass(chosen, Path(scratch), options.with_torch)
        for line in pool.map(lambda m: _judged(m, Path(scratch), options.with_torch), chosen):
            print(line, flush=True)
            caught += line.startswith("caught")
    print(f"{len(chosen)} mutations: {caught} caught, {len(chosen) - caught} missed")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
