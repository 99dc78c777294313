"""`.ci/full` in pieces: the checks that take longer than `.ci/run` may, and the file that remembers what each came to.

`.ci/full` runs every step, `.ci/full mutations interrupts` these. Each runs in a fresh environment, and is noted in
`tests/full_results.json` when it ends: when it ran and on which commit, whether files had changes that were not
committed, how it ended, and its last lines. `docs/checks.md` is written from that file, so that a step that was not
run since stands there with the commit it was run on.

It needs the standard library alone, as it makes the environments of all others.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "tests" / "full_results.json"
WRITTEN = ("tests/full_results.json", "docs/checks.md", "tests/random_programs/counts.json")  # by the steps themselves

ORACLE = "torch==2.13.0"
# Each Python that is claimed, with the NumPy that it is tried with: its oldest, and "newest".
PAIRS: list[tuple[str, str]] = [
    (python, numpy)
    for python, numpy in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pullback"]["tried"]
]
CLIENTS = ("autograd", "pymanopt", "lifelines", "autograd-gamma", "examples")  # one command each, so that each is noted
ORDERS = (1, 2, 3)  # seeds of orders in which every test has to pass


@dataclass(frozen=True)
class Step:
    """A step: what it does, the arguments of Python for each of its commands, and the environment they need.

    In a command, {jobs} is how many processes it may use, {scratch} a folder that is deleted, {day} the date.
    """

    what: str
    commands: tuple[str, ...]
    python: str = ""  # a version; "" for the Python that runs this
    packages: tuple[str, ...] = (".[test,dev,docs]", ORACLE)


def numpy_package(numpy: str) -> str:
    """What pip is asked for: a NumPy of a pair, by its version or as the newest of the day."""
    return "numpy" if numpy == "newest" else f"numpy=={numpy}"


STEPS = {
    "large": Step(
        "large arrays: the table and SciPy's functions with lowered thresholds",
        ("-m pytest -q -n {jobs} --low-thresholds tests/table tests/optim tests/scipy",),
    ),
    "all": Step("every test, with PyTorch", ("-m pytest -q -n {jobs} -m 'not jax'",)),
    "shuffled": Step(
        f"every test, with PyTorch, in {len(ORDERS)} orders",
        tuple(f"-m pytest -q -n {{jobs}} -m 'not jax' --shuffle {seed}" for seed in ORDERS),
    ),
    "coverage": Step(
        "coverage without PyTorch, in the order of the day",
        (
            "-m pytest -q -n {jobs} -m 'not torch' --shuffle {day} --count-everything --cov=pullback --cov-branch "
            "--cov-report=json:{scratch}/covered",
            "-m tests.coverage_by_room {scratch}/covered",
        ),
    ),
    "jets": Step("Taylor mode to the fifth order", ("-m tests.jets --order 5 --jobs {jobs}",), "", (".[test]",)),
    "patterns": Step("patterns of random programs", ("-m tests.patterns --programs 10000 --jobs {jobs}",)),
    "random": Step("random programs for an hour", ("-m tests.random_programs --seconds 3600 --seed {day}",)),
    "clients": Step(
        "libraries that use HIPS autograd",
        tuple(f"-m tests.clients --folder {{scratch}} {name}" for name in CLIENTS),
        "",
        (".[test,dev]", "autograd==1.9.1", "autograd-gamma", "lifelines", "pymanopt", "flaky", "joblib", "jinja2"),
    ),
    "release": Step(
        "a release: built, checked, and tried on each Python",
        ("-m tests.release --dist dist --jobs {jobs}",),
        "",
        (".[test,dev]", "build", "twine", "check-wheel-contents"),
    ),
    "mutations": Step("planted mutations", ("-m tests.mutations --jobs {jobs}",)),
    "interrupts": Step("interrupts", ("-m tests.interrupts --all-kinds",)),
    **{
        f"{python}-{'newest' if numpy == 'newest' else 'oldest'}": Step(
            f"Python {python}, NumPy {numpy}",
            ("-c 'import numpy; print(\"NumPy\", numpy.__version__)'", "-m pytest -q -n {jobs} -m 'not torch'"),
            python,
            (".[test]", numpy_package(numpy)),
        )
        for python, numpy in PAIRS
    },
}


@dataclass(frozen=True)
class Result:
    """What became of a step the last time it was run."""

    date: str
    commit: str
    clean: bool  # no file of the tree had changes, from the first command to the last
    passed: bool
    lines: str  # the last line of each command
    minutes: int


def results() -> dict[str, Result]:
    """What was noted of each step; a step that was never run is not among them."""
    return {name: Result(**fields) for name, fields in json.loads(RESULTS.read_text("utf-8")).items()}


def note(name: str, result: Result) -> None:
    """Write what became of a step over what was noted of it before."""
    found = {key: asdict(value) for key, value in (results() | {name: result}).items()}
    text = json.dumps({key: found[key] for key in STEPS if key in found}, indent=4) + "\n"
    with tempfile.NamedTemporaryFile("w", dir=RESULTS.parent, delete=False) as file:
        file.write(text)
    Path(file.name).chmod(0o644)
    os.replace(file.name, RESULTS)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def state() -> tuple[str, str]:
    """The commit, and a number for what the tree holds beyond it; "" if that is nothing."""
    but = ["--", ".", *(f":!{path}" for path in WRITTEN)]
    changed = _git("status", "--porcelain", *but)
    beyond = hashlib.sha256((changed + _git("diff", "HEAD", *but)).encode()).hexdigest() if changed else ""
    return _git("rev-parse", "--short=9", "HEAD") or "unknown", beyond


def interpreter(version: str) -> str | None:
    """A Python of this version that can make environments, from the path or from pyenv; None if there is none."""
    if not version:
        return sys.executable
    others = (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")
    for found in filter(None, map(shutil.which, [f"python{version}", *map(str, sorted(others))])):
        works = [found, "-c", f"import sys, venv, ensurepip; assert sys.version.startswith('{version}.')"]
        if subprocess.run(works, capture_output=True, check=False).returncode == 0:
            return found
    return None


def environment(step: Step, python: str, folder: Path) -> Path | None:
    """The Python of an environment with what the step needs, made unless it is there; None if that could not be."""
    made = hashlib.sha256(repr((python, step.packages, (ROOT / "pyproject.toml").read_text("utf-8"))).encode())
    home = folder / made.hexdigest()[:12]
    own, done = home / "bin" / "python", home / "installed"
    if not done.exists():
        print(f"=== an environment of {python} with {' '.join(step.packages)}", flush=True)
        install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", "numpy"]
        for command in ([python, "-m", "venv", "--clear", home], [*install, "--editable", *step.packages]):
            if subprocess.run(command, cwd=ROOT, check=False).returncode:
                return None
        done.touch()
    return own


def last_line(command: Sequence[str]) -> tuple[int, str]:
    """Run a command and print what it prints: its exit status, and the last line that is not empty."""
    print(f"=== {' '.join(command[1:])}", flush=True)
    last = ""
    settings = {"MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": "src"}
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            last = line.strip(" =\n") or last
    return running.returncode, last.replace("|", "/")


def run(step: Step, own: Path | str, jobs: int) -> Result:
    """Run the commands of a step, until one fails."""
    started, before, lines = time.monotonic(), state(), []
    passed, day = True, f"{datetime.date.today():%Y%m%d}"
    with tempfile.TemporaryDirectory() as scratch:
        for command in step.commands:
            words = [word.format(jobs=jobs, scratch=scratch, day=day) for word in shlex.split(command)]
            status, last = last_line([str(own), *words])
            lines.append(last)
            if status:
                passed = False
                break
    return Result(
        date=f"{datetime.date.today()}",
        commit=before[0],
        clean=before == state() == (before[0], ""),
        passed=passed,
        lines="; ".join(lines),
        minutes=-int(-(time.monotonic() - started) // 60),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog=".ci/full", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"all, unless named: {', '.join(STEPS)}")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes at once")
    parser.add_argument("--environments", type=Path, metavar="FOLDER", help="keep them, for the next time")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.steps if name not in STEPS]:
        parser.error(f"expected some of {', '.join(STEPS)}, found {', '.join(unknown)}")
    bad = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.steps or STEPS:
            step = STEPS[name]
            python = interpreter(step.python)
            if python is None:
                print(f"--- {name}: not run, as there is no Python {step.python} here")
                continue
            own = environment(step, python, (options.environments or Path(scratch)).absolute())
            if own is None:
                print(f"--- {name}: FAILED, as its environment could not be made")
                bad.append(name)
                continue
            result = run(step, own, options.jobs)
            note(name, result)
            subprocess.run([own, "-m", "tests.checks_page"], cwd=ROOT, check=True)
            print(f"--- {name}: {'passed' if result.passed else 'FAILED'} in {result.minutes} min", flush=True)
            if not result.passed:
                bad.append(name)
    print(f"FAILED: {'; '.join(bad)}" if bad else "All steps passed.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
