"""The script `run`, where what it needs is missing: it says what and how to get it, and leaves nothing half made."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="it is a shell script")


def program(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run(folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the script in a folder that holds nothing else but the project's file."""
    for name in ("run", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    environment = {name: value for name, value in os.environ.items() if name not in ("PULLBACK_VENV", "PYTHON")}
    return subprocess.run(
        [folder / "run", *words], env=environment | settings, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("word", ["", "help", "--help"])
def test_alone_it_lists_what_there_is(word: str, tmp_path: Path) -> None:
    done = run(tmp_path, *filter(None, [word]))
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("demo", "test", "test --all", "doctor"):
        assert f"  ./run {command} " in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"run", "pyproject.toml"}


def test_an_unknown_word_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "tset")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("./run: there is no 'tset'.\nWhat there is:\n")


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    old = program(tmp_path / "bin" / "python3", 'if [ "$1" = --version ]; then echo Python 3.9.2; else exit 1; fi')
    done = run(tmp_path, "demo", PYTHON=str(old))
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "Found: Python 3.9.2." in done.stderr
    assert "PYTHON=/path/to/python3.12 ./run" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_without_python_it_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "test", PYTHON=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "Found: no working " in done.stderr
    assert not (tmp_path / ".venv").exists()


PIP_FAILS = """
case "$*" in
*"-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
*"pip install"*) echo "ERROR: no matching distribution" >&2; exit 1 ;;
esac
"""


def test_without_a_network_nothing_is_left_half_made(tmp_path: Path) -> None:
    python = program(tmp_path / "bin" / "python3", PIP_FAILS)
    done = run(tmp_path, "demo", PYTHON=str(python))
    assert done.returncode == 1
    assert "ERROR: no matching distribution" in done.stderr
    assert "pullback[demo] could not be installed" in done.stderr
    assert "PIP_INDEX_URL" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_an_environment_that_was_there_stays(tmp_path: Path) -> None:
    kept = program(tmp_path / ".venv" / "bin" / "python", PIP_FAILS)
    done = run(tmp_path, "test")
    assert done.returncode == 1
    assert "could not be installed" in done.stderr
    assert kept.exists()
    assert not (tmp_path / ".venv" / "installed-test.toml").exists()


@pytest.mark.parametrize(("words", "time"), [(["test"], "two minutes"), (["test", "--all"], "twenty minutes")])
def test_it_says_beforehand_how_long_the_tests_take(words: list[str], time: str, tmp_path: Path) -> None:
    said = tmp_path / "said"
    program(tmp_path / ".venv" / "bin" / "python", f'echo "python $*" >> {said}')
    shutil.copy(ROOT / "pyproject.toml", tmp_path / ".venv" / "installed-test.toml")
    done = run(tmp_path, *words)
    assert done.returncode == 0
    assert time in done.stderr
    assert said.read_text().startswith("python -m pytest ")
