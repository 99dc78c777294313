"""The benchmark of every operation: what is called exists and agrees with torch's, and the page hides nothing slow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pullback
from benchmarks.harness import Result, Row, Timing
from benchmarks.operations import command, page, reasons, rows
from benchmarks.operations.calls import LISTED


def result(name: str, ratio: float, title: str = "(), forward") -> Result:
    """An operation that takes so many times PyTorch's time."""
    return Result(Row(name, title, 1, rows.LIMIT, {}), {"torch": Timing([1.0] * 2), "pullback": Timing([ratio] * 2)})


def test_what_is_listed_and_what_has_a_reason_is_in_the_table() -> None:
    assert set(LISTED) <= set(rows.public())
    assert set(reasons.REASONS) <= set(rows.public())


def test_the_page_counts_an_operation_by_its_slowest_call() -> None:
    results = [result("sin", 0.5), result("sin", 1.2), result("cos", 0.9), result("tan", 1.6), result("erf", 9.0)]
    text = page.page(results, {"CPU": "an abacus"})
    assert "CPU: an abacus" in text
    assert text.split("| --- | ---: |\n")[1].split("\n\n")[0].splitlines() == [
        "| faster than PyTorch | 1 |",
        "| 1 to 1.5 times its time | 1 |",
        "| 1.5 to 3 | 1 |",
        "| above 3 | 1 |",
        "| all | 4 |",
    ]
    assert f"| `erf` | (), forward | 9.0 | 0.009 | {reasons.reason('erf')} |" in text


def test_the_page_is_refused_while_something_slow_has_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(reasons.REASONS, "erf")
    with pytest.raises(ValueError, match=r"without a reason in benchmarks/operations/reasons.py: \['erf'\]"):
        page.page([result("sin", 0.5), result("erf", 3.1)], {})
    page.page([result("erf", 2.9)], {})


def test_a_row_that_was_not_timed_is_listed_with_its_reason() -> None:
    void = Result(Row("sin", "(), forward", 1, rows.LIMIT, {}), void="values differ, by 2 of the largest")
    assert "* `sin` (), forward: values differ, by 2 of the largest" in page.page([void, result("cos", 1.0)], {})


@pytest.mark.torch
def test_the_command_times_what_is_named_and_keeps_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "results.json"
    assert command.main(["sin", "argmax", "--repeat", "2", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    for step in ("sin ([1000, 1000]), forward", "sin ([1000, 1000]), forward + backward", "argmax ([1000, 1000], 1)"):
        assert step in shown
    assert "argmax ([1000, 1000]), forward + backward" not in shown
    assert command.main(["--none", "--json", str(file)]) == 0
    assert capsys.readouterr().out == shown
    assert {row["name"] for row in json.loads(file.read_text("utf-8"))["rows"]} == {"sin", "argmax"}


@pytest.mark.torch
def test_a_side_that_is_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    modules = {"torch": torch, "pullback": pullback}
    (forward, _) = rows.rows("exp", modules)
    assert rows.problem(forward, modules) is None
    monkeypatch.setattr(pullback, "exp", pullback.exp2)
    (wrong, _) = rows.rows("exp", modules)
    assert (rows.problem(wrong, modules) or "").startswith("values differ")


def test_an_operation_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["nonsense"])
    assert "no such operation: nonsense" in capsys.readouterr().err
