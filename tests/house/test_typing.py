"""Programs of users as type checkers see them: `tests/typing/user_code.py` says what must pass, and what must not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "typing"
SOURCE = Path(__file__).parents[2] / "src"

CHECKERS = {
    "mypy": ["--config-file=", "--warn-unused-ignores", "--check-untyped-defs", "user_code.py"],
    "basedpyright": ["--project", "pyrightconfig.json", "--pythonpath", sys.executable],  # pyright, as a wheel
}


def checked(checker: str, folder: Path) -> str:
    """What a checker finds, "" if nothing."""
    pytest.importorskip(checker)
    done = subprocess.run(
        [sys.executable, "-m", checker, *CHECKERS[checker]],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(SOURCE), "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr if done.returncode else ""


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_what_a_user_writes_has_types(checker: str) -> None:
    assert checked(checker, FOLDER) == ""


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_wrong_line_is_found(checker: str, tmp_path: Path) -> None:
    text = (FOLDER / "user_code.py").read_text("utf-8").replace("assert_type(Scale.apply(x), Tensor)", "Scale.apply(1)")
    (tmp_path / "user_code.py").write_text(text.replace("  # type: ignore[call-arg]", "", 1))
    (tmp_path / "pyrightconfig.json").write_text((FOLDER / "pyrightconfig.json").read_text())
    said = checked(checker, tmp_path)
    assert said.count("error:" if checker == "mypy" else " error: ") == 2
