"""The benchmarks of small calls, of two threads, and of several runs: what is timed agrees, and what is shown is so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from benchmarks import free_threads, joined, small_calls
from benchmarks.harness import SideError


class Side:
    """A side that says what it is told to."""

    def __init__(self, result: Any, *times: float, gradient: bool = True) -> None:
        self.result, self.times, self.gradient = result, iter(times), gradient

    def ask(self, *what: Any) -> Any:
        return (self.result, self.gradient) if what else next(self.times)


def test_there_are_a_hundred_calls_and_each_is_one_once() -> None:
    assert len({*small_calls.NAMES}) == len(small_calls.NAMES) >= 100


@pytest.mark.parametrize("name", small_calls.NAMES)
def test_each_call_runs(name: str) -> None:
    answer = small_calls.answers("pullback")
    found, timed = answer(name, False)
    assert timed
    assert answer() > 0
    assert answer(name, True)[0] == found or name in small_calls.RANDOM


@pytest.mark.torch
def test_each_call_gives_what_torch_gives() -> None:
    pytest.importorskip("torch")
    ours, theirs = small_calls.answers("pullback"), small_calls.answers("torch")
    for name in small_calls.NAMES:
        if name not in small_calls.RANDOM:
            assert small_calls._agree(ours(name, True)[0], theirs(name, True)[0]), name
        assert ours(name, True)[1] is theirs(name, True)[1], name


def test_a_call_that_differs_is_not_timed() -> None:
    sides: Any = [Side([1.0, 2.0], 3.0, 4.0), Side([1.0, 2.0], 9.0, 8.0)]
    assert small_calls.measured("x", True, 2, sides) == [3.5, 8.5]
    for wrong in (Side([1.0, 2.1]), Side([1.0, 2.0], gradient=False), Side([[1.0, 2.0]])):
        with pytest.raises(ValueError, match="the two libraries differ"):
            small_calls.measured("x", True, 2, [sides[0], wrong])  # type: ignore[list-item]
    none: Any = [Side(1, gradient=False), Side(1, gradient=False)]
    assert small_calls.measured("x", True, 2, none) is None


def test_what_is_above_the_limit_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert small_calls._show("forward", {"a": [1.0, 2.9], "b": [2.0, 1.0]}, 1) == 0
    assert small_calls._show("forward", {"a": [1.0, 3.1], "b": [2.0, 1.0]}, 1) == 1
    shown = capsys.readouterr().out
    assert "forward: 2 calls; the middle one takes 1.80 of PyTorch's time" in shown
    assert " 3.10     3.10 us of    1.00  a" in shown
    assert "  b" not in shown


def test_a_call_that_fails_in_its_process_is_an_error() -> None:
    process = small_calls.Process(small_calls.answers, "pullback")
    try:
        with pytest.raises(SideError, match="NameError: name 'nonsense' is not defined"):
            process.ask("nonsense", False)
        assert process.ask("x.sum()", False)[1]
    finally:
        process.close()


def test_two_passes_at_once_give_what_they_give_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_threads, "NODES", 50)
    makers = (
        lambda: free_threads.chain(pullback, lambda a, b: a * b),
        lambda: free_threads.network(pullback),
        free_threads.plain,
    )
    for make in makers:
        works = [make(), make()]
        for one, both in zip(free_threads.one_by_one(works), free_threads.at_once(works), strict=True):
            np.testing.assert_array_equal(one, both)
    c = np.array([1.0, 1 - 2**-20, 1 + 2**-20], np.float32)
    np.testing.assert_allclose(makers[0]()(), c**50, rtol=1e-5)


# -- several runs ------------------------------------------------------------------------------------------------------


def a_run(torch: float, own: float, void: str | None = None) -> dict[str, Any]:
    """What a run of one row wrote."""
    sides = {"torch": {"median_us": torch}, "pullback": {"median_us": own}}
    row = {"name": "chain", "void": void, "sides": {} if void else sides}
    return {"about": {"CPU": "an abacus", "load": "0.1", "runs": 15}, "rows": [row]}


def written(folder: Path, *runs: dict[str, Any]) -> list[str]:
    files = [folder / f"{i}.json" for i in range(len(runs))]
    for file, run in zip(files, runs, strict=True):
        file.write_text(json.dumps(run), "utf-8")
    return [str(file) for file in files]


def test_several_runs_are_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert joined.main(written(tmp_path, a_run(4.0, 1.0), a_run(5.0, 2.0), a_run(4.2, 3.0))) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "CPU: an abacus; load: 0.1, 0.1, 0.1; runs: 3 of 15"
    assert shown[2] == "| row | side | us per op | ratios of the runs | x torch | budget | met |"
    assert shown[4:6] == [
        "| chain | torch | 4.20 | 1.000..1.000 | 1.000 |  |  |",
        "| chain | pullback | 2.00 | 0.250..0.714 | 0.476 | 0.45 | NO |",
    ]
    assert shown[-1].startswith("* chain: built-in multiplication")


def test_a_row_that_was_void_in_one_run_is_void(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert joined.main(written(tmp_path, a_run(4.0, 1.0), a_run(1.0, 1.0, "pullback fails: no luck"))) == 0
    assert "not timed: pullback fails: no luck" in capsys.readouterr().out
    assert joined.main(written(tmp_path, a_run(4.0, 1.0))) == 1
