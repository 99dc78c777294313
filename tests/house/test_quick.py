"""`./run test`, the quick run: what it keeps, and that it says what it leaves out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import conftest
from tests import quick
from tests.table.test_ops import SAMPLES

ROOT = Path(__file__).parents[2]


def _pytest(*arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 5), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", quick.LEFT_OUT)
def test_what_is_left_out_is_there(name: str) -> None:
    path, _, test = name.partition("::")
    assert (ROOT / path).exists()
    assert not test or f"def {test}" in (ROOT / path).read_text("utf-8")


def test_each_operation_with_a_sample_is_in_it_once() -> None:
    found = _pytest("--quick", "--collect-only", "tests/table").splitlines()
    slopes = [line for line in found if "test_slopes_are_those" in line]
    assert all(line.endswith("-float64]") for line in slopes)
    assert sorted(line.partition("[")[2].removesuffix("-float64]") for line in slopes) == sorted(SAMPLES)


@pytest.mark.parametrize("processes", [[], ["-n", "1"]], ids=["one", "worker"])
def test_it_says_what_it_leaves_out_and_how_long_it_takes(processes: list[str]) -> None:
    said = _pytest("--quick", *processes, "tests/house/test_words.py", "tests/tensor/test_adding.py", "-v")
    assert "two minutes" in said
    assert "because this was a quick run (./run test --all runs them)" in said
    assert "test_words" not in said


def test_a_number_chooses_the_order_of_the_same_tests() -> None:
    orders = [
        [line for line in _pytest("--collect-only", *words, "tests/house/test_extras.py").splitlines() if "::" in line]
        for words in ([], ["--shuffle", "1"], ["--shuffle", "1"], ["--shuffle", "2"])
    ]
    assert len(orders[0]) > 5
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(orders[0]))}
    assert orders[1] == orders[2]
    assert len(set(map(tuple, orders))) == 3


def test_only_what_is_missing_leaves_a_test_out(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [
        "ModuleNotFoundError: No module named 'scipy'",
        "ModuleNotFoundError: No module named 'scipy.special'",
        "ImportError: LDL factors are computed by SciPy, which is not installed.",
    ]
    monkeypatch.setattr(conftest, "ABSENT", {})
    assert [conftest._absent(text) for text in said] == [None] * 3
    monkeypatch.setattr(conftest, "ABSENT", {"scipy": "SciPy"})
    assert [conftest._absent(text) for text in said] == ["they need SciPy, which is not installed"] * 3
    for text in ("No module named 'scipyx'", "NumPy, which is not installed", "AssertionError: SciPy is not installed"):
        assert conftest._absent(text) is None


def test_what_is_run_in_turn_is_about_a_quarter_and_another_one_each_day() -> None:
    tests = [f"{place}::test_it[{n}]" for place in quick.IN_TURN if not place.endswith("/") for n in range(100)]
    days = [{t for t in tests if quick.is_of_the_day(t, day)} for day in ("20260101", "20260102", "20260301")]
    assert all(len(tests) / 5 < len(day) < len(tests) / 3.2 for day in days)
    assert len(days[0] | days[1] | days[2]) > max(map(len, days)) * 1.5


@pytest.mark.parametrize("name", quick.IN_TURN)
def test_what_is_run_in_turn_is_there(name: str) -> None:
    path, _, test = name.partition("::")
    assert (ROOT / path).exists()
    assert not test or f"def {test}" in (ROOT / path).read_text("utf-8")
