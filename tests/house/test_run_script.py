"""The script `run`, where what it needs is missing: it says what and how to get it, and leaves nothing half made.

What it did not make it neither deletes nor writes to.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
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


def start(folder: Path, *words: str, **settings: str) -> subprocess.Popen[str]:
    """Start a copy of the script in a folder that holds nothing else but the project's file."""
    for name in ("run", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    environment = {name: value for name, value in os.environ.items() if name not in ("PULLBACK_VENV", "PYTHON")}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [folder / "run", *words],
        env=environment | settings,
        stdout=pipe,
        stderr=pipe,
        text=True,
        preexec_fn=_by_default,
    )


def _by_default() -> None:
    """Signals end a program, although whoever runs the tests ignores some, as nohup does: sh leaves these ignored."""
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)


def run(folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """What the script says and returns."""
    with start(folder, *words, **settings) as process:
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def contents(folder: Path) -> dict[str, str]:
    """Each file in a folder, and each folder in it, with what it holds."""
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else "" for path in folder.rglob("*")}


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


def fake(pip: str, version: str = "3.12.1", code: str = "exit 0") -> str:
    """The text of a Python that makes environments of itself, and whose `pip install` is a line of shell.

    The other programs that the script gives it end as `code` says; what starts a group of processes is run by Python.
    """
    return f"""
case "$*" in
--version) echo Python {version} ;;
*setpgid*) exec {sys.executable} "$@" ;;
"-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; touch "$3/pyvenv.cfg" "$3/.gitignore" ;;
"-m pip install"*) {pip} ;;
*) {code} ;;
esac
"""


PIP_FAILS = fake('echo "ERROR: no matching distribution" >&2; exit 1')


def environment(folder: Path, text: str) -> Path:
    """A virtual environment with this Python."""
    program(folder / "bin" / "python", text)
    (folder / "pyvenv.cfg").touch()
    return folder


def test_without_a_network_nothing_is_left_half_made(tmp_path: Path) -> None:
    python = program(tmp_path / "bin" / "python3", PIP_FAILS)
    done = run(tmp_path, "demo", PYTHON=str(python))
    assert done.returncode == 1
    assert "ERROR: no matching distribution" in done.stderr
    assert "pullback[demo] could not be installed" in done.stderr
    assert "PIP_INDEX_URL" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_an_empty_folder_is_used_and_stays_empty_if_that_fails(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "link").symlink_to(empty)
    python = program(tmp_path / "bin" / "python3", PIP_FAILS)
    done = run(tmp_path, "demo", PYTHON=str(python), PULLBACK_VENV=str(tmp_path / "link"))
    assert "pullback[demo] could not be installed" in done.stderr
    assert (tmp_path / "link").is_symlink()
    assert list(empty.iterdir()) == []


def test_what_it_has_made_stays(tmp_path: Path) -> None:
    python = program(tmp_path / "bin" / "python3", fake('cp "$0" "$(dirname "$0")/pullback"'))
    done = run(tmp_path, "doctor", PYTHON=str(python))
    assert done.returncode == 0
    assert (tmp_path / ".venv" / "installed-terminal.toml").read_text() == (ROOT / "pyproject.toml").read_text()


def test_an_environment_that_was_there_stays(tmp_path: Path) -> None:
    kept = environment(tmp_path / ".venv", PIP_FAILS)
    before = contents(kept)
    done = run(tmp_path, "test")
    assert done.returncode == 1
    assert "could not be installed" in done.stderr
    assert contents(kept) == before


def not_empty(path: Path) -> None:
    path.mkdir()
    (path / "data.txt").write_text("important")


def only_hidden(path: Path) -> None:
    path.mkdir()
    (path / ".data").write_text("important")


def a_python_alone(path: Path) -> None:
    program(path / "bin" / "python", PIP_FAILS)


def a_file(path: Path) -> None:
    path.write_text("important")


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "not mounted")


def named_by_a_newline(path: Path) -> None:
    path.mkdir()
    (path / "\n").write_text("important")


@pytest.mark.parametrize(
    "made", [not_empty, only_hidden, named_by_a_newline, a_python_alone, a_file, a_link_to_nothing]
)
@pytest.mark.parametrize("name", [".venv", "of another"])
def test_what_is_no_environment_is_refused_and_left(made: Callable[[Path], None], name: str, tmp_path: Path) -> None:
    made(tmp_path / name)
    python = program(tmp_path / "python3", PIP_FAILS)
    before = contents(tmp_path)
    done = run(tmp_path, "doctor", PYTHON=str(python), **({} if name == ".venv" else {"PULLBACK_VENV": name}))
    assert done.returncode == 1
    assert f"{name} is there, and is no virtual environment" in done.stderr
    assert "PULLBACK_VENV=/path/to/a/new/folder ./run" in done.stderr
    assert before.items() <= contents(tmp_path).items()
    assert (tmp_path / name).is_symlink() is (made is a_link_to_nothing)


def test_an_environment_that_cannot_be_made_is_told_another_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(tmp_path, "doctor", PYTHON=sys.executable, PULLBACK_VENV="file/venv")
    assert (done.returncode, done.stdout) == (1, "")
    assert "The virtual environment file/venv could not be made; Python says above why." in done.stderr
    assert "PULLBACK_VENV=/path/to/a/new/folder ./run" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"file", "run", "pyproject.toml"}


def test_an_environment_without_a_working_python_is_refused_and_left(tmp_path: Path) -> None:
    kept = tmp_path / ".venv"
    (kept / "bin").mkdir(parents=True)
    (kept / "pyvenv.cfg").touch()
    (kept / "bin" / "python").symlink_to(tmp_path / "uninstalled" / "python")
    done = run(tmp_path, "doctor")
    assert done.returncode == 1
    assert "The virtual environment .venv has no working Python: .venv/bin/python does not run." in done.stderr
    assert "remove or rename .venv" in done.stderr
    assert (kept / "bin" / "python").is_symlink()


def test_an_environment_of_an_old_python_is_refused_and_left(tmp_path: Path) -> None:
    kept = environment(tmp_path / ".venv", fake("exit 0", "3.8.18", code='case "$2" in *version_info*) exit 1 ;; esac'))
    before = contents(kept)
    done = run(tmp_path, "doctor")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer. Found: Python 3.8.18, in the virtual environment .venv." in done.stderr
    assert "remove or rename .venv" in done.stderr
    assert "etwork" not in done.stderr
    assert contents(kept) == before


def test_an_environment_without_pip_is_named_and_can_be_mended(tmp_path: Path) -> None:
    made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=False)
    assert made.returncode == 0
    before = {path for path in (tmp_path / "v").rglob("*") if "__pycache__" not in path.parts}
    done = run(tmp_path, "doctor", PULLBACK_VENV="v")
    assert done.returncode == 1
    assert "The virtual environment v has no pip" in done.stderr
    assert "\n  v/bin/python -m ensurepip\n" in done.stderr
    assert "etwork" not in done.stderr
    assert {path for path in (tmp_path / "v").rglob("*") if "__pycache__" not in path.parts} == before


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("during", ["venv", "pip"])
def test_a_signal_leaves_nothing_half_made(sent: signal.Signals, during: str, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    slow = f'echo >> "$TMPDIR/left"; touch {tmp_path}/begun; (sleep 30; touch {tmp_path}/went_on); sleep 30'
    text = fake(slow) if during == "pip" else fake("exit 0").replace(' ;;\n"-m pip', f'; {slow} ;;\n"-m pip')
    python = program(tmp_path / "bin" / "python3", text)
    with start(tmp_path, "demo", PYTHON=str(python), TMPDIR=str(tmp_path / "tmp")) as process:
        until = time.monotonic() + 30
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.02)
        assert (tmp_path / ".venv" / "bin" / "python").exists()
        sent_at = time.monotonic()
        process.send_signal(sent)
        out, err = process.communicate(timeout=25)  # all who write there have ended
    assert time.monotonic() - sent_at < 20
    assert process.returncode == 128 + sent
    assert (out, "Traceback" in err) == ("", False)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "pyproject.toml", "bin", "tmp", "begun"}
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_signal_leaves_an_environment_that_was_there(tmp_path: Path) -> None:
    kept = environment(tmp_path / ".venv", fake(f"touch {tmp_path}/begun; sleep 30"))
    before = contents(kept)
    with start(tmp_path, "demo") as process:
        until = time.monotonic() + 30
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.terminate()
        process.communicate(timeout=25)
    assert process.returncode == 128 + signal.SIGTERM
    assert contents(kept) == before


@pytest.mark.parametrize(("words", "time"), [(["test"], "two minutes"), (["test", "--all"], "twenty minutes")])
def test_it_says_beforehand_how_long_the_tests_take(words: list[str], time: str, tmp_path: Path) -> None:
    said = tmp_path / "said"
    environment(tmp_path / ".venv", f'[ "$1" = -c ] || echo "python $*" >> {said}')
    shutil.copy(ROOT / "pyproject.toml", tmp_path / ".venv" / "installed-test.toml")
    done = run(tmp_path, *words)
    assert done.returncode == 0
    assert time in done.stderr
    assert said.read_text().startswith("python -m pytest ")


@pytest.mark.parametrize("words", [["--shuffle", "1"], ["--quick", "--shuffle", "1"], ["--all", "--shuffle", "1"]])
def test_an_order_of_the_tests_is_handed_to_pytest(words: list[str], tmp_path: Path) -> None:
    said = tmp_path / "said"
    environment(tmp_path / ".venv", f'[ "$1" = -c ] || echo "python $*" >> {said}')
    shutil.copy(ROOT / "pyproject.toml", tmp_path / ".venv" / "installed-test.toml")
    assert run(tmp_path, "test", *words).returncode == 0
    lines = said.read_text().splitlines()
    assert len(lines) == (2 if "--all" in words else 1)
    assert all(line.startswith("python -m pytest ") and line.endswith("--shuffle 1") for line in lines)
