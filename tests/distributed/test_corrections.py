"""Each correction with code that `pullback.distributed` prints is followed by two ranks, and has the right gradient.

`corrections.txt` holds the programs, in the format of `tests/corrections`: both ranks run each of them. A mistake
has to raise on both, so that they are in step for what follows it.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.corrections import printed
from tests.corrections.test_every_correction import rows, stands_in

from .launching import needs_mpi, passes

pytestmark = needs_mpi

ROWS = {row.title: row for row in rows(Path(__file__).parent / "corrections.txt")}

# What ends the processes, or has to be done before they begin: the test that makes the mistake, and shows what is said.
ELSEWHERE = {
    "have every rank reach the same collectives": "test_stuck.py",
    "have every rank call it": "test_stuck.py",
    "start all processes by mpiexec": "programs/in_place.py",
    "start by `pullback run -n N`": "test_collectives.py",
    'pip install "pullback[mpi]"': "test_collectives.py",
}


Found = dict[str, tuple[list[str], list[list[str]]]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """For each row what the mistake was told on each rank, and each program that follows the advice."""
    folder = tmp_path_factory.mktemp("corrections")
    passes(2, "corrections", str(folder))
    held: Found = json.loads((folder / "found.json").read_text())
    return held


@pytest.mark.parametrize("title", ROWS)
def test_the_correction_is_right(title: str, found: Found) -> None:
    row, (told, ended) = ROWS[title], found[title]
    assert all(printed.BEGINS in text for text in told), told
    source = "\n".join(row.mended)
    missing = {name for name in printed.names_of_code(told[0]) if not stands_in(name, source)}
    assert not missing, f"no program below has {sorted(missing)}, as was said:\n{told[0]}"
    assert ended, "no program follows the advice"
    for program, texts in zip(row.mended, ended, strict=True):
        calls = {getattr(n.func, "id", "") for n in ast.walk(ast.parse(program)) if isinstance(n, ast.Call)}
        assert "near" in calls or "assert" in program, f"this looks at nothing:\n{program}"
        assert texts == ["", ""], f"{program}\n{texts}"


def test_every_correction_with_code_has_a_row(found: Found) -> None:
    said = [text for told, _ in found.values() for text in told]
    here = [text for text, place in printed.with_code().items() if place.startswith("distributed/")]
    assert here
    missing = [
        text
        for text in here
        if not text.startswith(tuple(ELSEWHERE)) and not any(printed.is_said(text, told) for told in said)
    ]
    assert not missing, "\n".join(missing)


def test_what_is_followed_elsewhere_is_there() -> None:
    here = [text for text, place in printed.with_code().items() if place.startswith("distributed/")]
    for begin, test in ELSEWHERE.items():
        assert any(text.startswith(begin) for text in here), begin
        assert (Path(__file__).parent / test).exists()
