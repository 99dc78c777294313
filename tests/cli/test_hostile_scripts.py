"""Commands beside code that does what code may do: it leaves the folder, closes the output, exits; and readers that
go away. What a command answers is what it would have answered otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback.cli import main

DOUBLE = """
class Double(Function):
    @staticmethod
    def forward(ctx, x: "float64[2]"):
        {before}
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return {factor} * g
"""
SOURCE = str(Path(pullback.__file__).parents[1])
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {"PYTHONPATH": SOURCE}
HEAD = "import os, sys\nimport pullback as torch\nfrom pullback.autograd import Function\n"
LOSS = "w = torch.ones(2, requires_grad=True)\nloss = (w * 3).sum()\n"
FILE = HEAD + LOSS + DOUBLE.format(before="pass", factor=2)

COMMANDS = {
    "check": ["check", "mine.py"],
    "graph": ["graph", "mine.py", "--backward"],
    "graph -o": ["graph", "mine.py", "-o", "graph.svg"],
    "explain": ["explain", "mine.py:w", "--loss", "loss"],
    "explain --json": ["explain", "mine.py:w", "--loss", "loss", "--json"],
}
WITHOUT_FILE = {
    "ops": ["ops"],
    "--help": ["--help"],
    "--version": ["--version"],
    "demo --help": ["demo", "--help"],
    "bench --help": ["bench", "--help"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file, which is the working directory, and one beside it."""
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (here / "mine.py").write_text(FILE)
    monkeypatch.chdir(here)
    return here


def answer(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, str, str]:
    status = main.main(arguments)
    return status, *capsys.readouterr()


MISCHIEF = {
    "leaves the folder": "os.chdir('../elsewhere')",
    "leaves the folder in a call": "",
    "closes the output": "sys.stdout.close()",
    "closes the errors": "sys.stderr.close()",
    "closes the output at the end of a block": "with sys.stdout: pass",
    "writes elsewhere": "import io; sys.stdout = io.StringIO()",
    "takes the output apart": "try: sys.stdout.detach()\nexcept OSError: pass",
}


@pytest.mark.parametrize("command", ["check", "graph -o", "explain"])
@pytest.mark.parametrize("what", MISCHIEF)
def test_what_a_file_does_changes_no_answer(
    what: str, command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = answer(capsys, COMMANDS[command])
    pictures = sorted(path.name for path in folder.iterdir() if path.suffix == ".svg")
    for path in folder.glob("*.svg"):
        path.unlink()
    text = FILE.replace("import os, sys\n", f"import os, sys\n{MISCHIEF[what]}\n").replace(
        "pass\n", "os.chdir('/')\n" if "call" in what else "pass\n"
    )
    (folder / "mine.py").write_text(text)
    found = answer(capsys, COMMANDS[command])
    assert found[0] == wanted[0]
    assert without_lines(found[1]) == without_lines(wanted[1])
    assert found[2] == wanted[2]
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".svg") == pictures
    assert Path.cwd() == folder
    assert not sys.stdout.closed


def without_lines(text: str) -> str:
    """The text without numbers, which count lines."""
    return "".join(c for c in text if not c.isdigit())


def test_a_second_file_is_found_from_where_the_command_began(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "first.py").write_text("import os\nos.chdir('..')\n" + FILE)
    status, out, err = answer(capsys, ["check", "first.py", "mine.py"])
    assert (status, err) == (0, "")
    assert "2 of 2 passed" in out


def test_a_fault_is_shown_with_its_line_from_another_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.py").write_text(HEAD + "os.chdir('..')\n" + DOUBLE.format(before="pass", factor=1))
    status, out, _ = answer(capsys, ["check", "wrong.py"])
    assert status == 1
    assert "    - return 1 * g\n    + return 2 * (1 * g)\n" in out
    assert "wrong.py:14" in out


def test_the_error_of_a_file_is_shown_with_its_line_from_another_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "fails.py").write_text("import os\nos.chdir('..')\nraise ValueError('no')\n")
    status, _, err = answer(capsys, ["graph", "fails.py"])
    assert status == 2
    assert "raise ValueError('no')" in err


@pytest.mark.parametrize("error", ["sys.exit(0)", "raise SystemExit", "exit(0)", "raise GeneratorExit"])
@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("check", HEAD + DOUBLE.format(before="pass", factor=2) + "{error}\n"),
        ("graph", HEAD + LOSS + "{error}\n"),
        ("graph mine.py:make", HEAD + "def make():\n    {error}\n"),
    ],
)
def test_a_file_that_exits_is_no_success(
    command: str, text: str, error: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.py").write_text(text.format(error=error))
    name, _, target = command.partition(" ")
    status, out, err = answer(capsys, [name, target or "mine.py"])
    assert (status, out if name == "graph" else "") == (2, "")
    assert "raised" in err
    assert ("SystemExit" in err) == ("Generator" not in error)


@pytest.mark.parametrize("place", ["forward", "backward", "inputs"])
@pytest.mark.parametrize("code", ["0", "1", "'text'", ""])
def test_a_function_that_exits_is_no_success(
    place: str, code: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = f"sys.exit({code})"
    text = HEAD + DOUBLE.format(before=ends if place == "forward" else "pass", factor=2)
    if place == "backward":
        text = text.replace("return 2 * g", ends)
    if place == "inputs":
        text += f"\ndef audit_inputs():\n    {ends}\n"
    (folder / "mine.py").write_text(text + DOUBLE.replace("Double", "Sound").format(before="pass", factor=2))
    status, out, err = answer(capsys, ["check", "mine.py", "--json"])
    assert status == 2
    assert "SystemExit" in err
    told = json.loads(out)
    assert not told["ok"]
    assert [a["function"] for a in told["audits"] if place != "inputs"] == ["Sound"] * (place != "inputs")


def test_a_backward_that_exits_is_no_success(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD + LOSS.replace("loss =", "w.register_hook(lambda g: sys.exit(0))\nloss =")
    (folder / "mine.py").write_text(text)
    status, out, err = answer(capsys, ["graph", "mine.py", "--backward"])
    assert (status, out) == (2, "")
    assert "the backward pass raised SystemExit" in err


def test_an_attribute_that_exits_is_no_success(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD + "class Holder:\n    @property\n    def w(self):\n        sys.exit(0)\nholder = Holder()\n"
    (folder / "mine.py").write_text(text)
    status, out, err = answer(capsys, ["explain", "mine.py:holder.w"])
    assert (status, out) == (2, "")
    assert "exited with 0" in err


# -- output that nobody reads, or that cannot be written ---------------------------------------------------------------


def command(arguments: list[str], folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """`python -m pullback`, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pullback", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize(
    "name", ["check", "graph", "graph -o", "explain --json", "ops", "--help", "demo --help", "bench --help"]
)
def test_a_reader_that_is_gone_ends_a_command_without_a_word(name: str, folder: Path) -> None:
    arguments = {**COMMANDS, **WITHOUT_FILE}[name]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = command(arguments, folder, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_reader_of_both_streams_that_is_gone(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert command(["ops"], folder, stdout=writing, stderr=writing).returncode == 141
        assert command(["graph", "no_file.py"], folder, stdout=writing, stderr=writing).returncode == 141
    finally:
        os.close(writing)


@pytest.mark.parametrize("name", ["check", "graph", "ops"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_that_is_full_is_told(name: str, folder: Path) -> None:
    arguments = {**COMMANDS, **WITHOUT_FILE}[name]
    with open("/dev/full", "w") as full:
        ended = command(arguments, folder, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 2
    assert "No space left" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["check", "graph", "--version"])
@pytest.mark.parametrize("closed", [1, 2])
def test_an_output_that_the_shell_closed_is_no_error(name: str, closed: int, folder: Path) -> None:
    arguments = {**COMMANDS, **WITHOUT_FILE}[name]
    wanted = command(arguments, folder, capture_output=True)
    call = "os.execv(sys.executable, [sys.executable, '-m', 'pullback', *sys.argv[1:]])"
    code = f"import os, sys; os.close({closed}); {call}"
    found = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (found.returncode, found.stderr) == (wanted.returncode, wanted.stderr)
    assert found.stdout == ("" if closed == 1 else wanted.stdout)


def test_a_file_that_closes_the_output_itself_is_told(folder: Path) -> None:
    (folder / "mine.py").write_text(FILE + "os.close(1)\n")
    found = command(["graph", "mine.py"], folder, capture_output=True)
    assert found.returncode == 2
    assert "Bad file descriptor" in found.stderr
    assert len(found.stderr.splitlines()) == 1
