"""The cost of a node may only go down: counts of calls and of memory against those that are recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback
from tests.house import hot_path

Counts = dict[str, dict[str, int]]


def growth(recorded: Counts, found: Counts) -> list[str]:
    """What has grown, each in words."""
    return [
        f"{chain}: {what} {recorded[chain][what]} -> {n} (+{n - recorded[chain][what]})"
        for chain, of_chain in found.items()
        for what, n in of_chain.items()
        if n > recorded[chain][what]
    ]


@pytest.fixture(scope="module")
def recorded() -> Counts:
    every: dict[str, Counts] = json.loads(hot_path.RECORDED.read_text())
    if hot_path.version() not in every:
        pytest.skip(
            f"no counts are recorded for Python {hot_path.version()}, whose calls and objects differ from those of "
            f"{', '.join(every)}; with it, run: python tests/house/hot_path.py --record"
        )
    return every[hot_path.version()]


@pytest.fixture(scope="module")
def found() -> Counts:
    """The counts of a process of its own, where nothing else was ever recorded, watched or hooked."""
    library = str(Path(pullback.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, hot_path.__file__],
        env={**os.environ, "PYTHONPATH": library, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    counts: Counts = json.loads(run.stdout)
    return counts


def test_a_node_costs_no_more_than_recorded(recorded: Counts, found: Counts) -> None:
    grown = growth(recorded, found)
    assert not grown, (
        "the hot path has grown:\n  " + "\n  ".join(grown) + "\nMake it as short as it was (docs/benchmarks.md)."
    )


def test_every_chain_and_count_is_recorded(recorded: Counts, found: Counts) -> None:
    assert {name: sorted(of_name) for name, of_name in recorded.items()} == {
        name: sorted(of_name) for name, of_name in found.items()
    }


def test_recording_only_lowers() -> None:
    old = {"view": {"calls forward": 9, "bytes": 800}}
    new = {"view": {"calls forward": 8, "bytes": 900}, "sum": {"bytes": 5}}
    assert hot_path.lowered(old, new) == {"view": {"calls forward": 8, "bytes": 800}, "sum": {"bytes": 5}}


def test_a_growth_is_said_with_its_size() -> None:
    recorded, found = {"view": {"calls forward": 9, "bytes": 800}}, {"view": {"calls forward": 11, "bytes": 790}}
    assert growth(recorded, found) == ["view: calls forward 9 -> 11 (+2)"]


@pytest.mark.parametrize("chain", hot_path.CHAINS)
def test_a_call_more_is_noticed(chain: str, monkeypatch: Any) -> None:
    def longer(y: Any, n: int) -> Any:
        for _ in range(n):
            y = hot_path.CHAINS[chain](y, 1)
        return y

    shorter, more = hot_path.measured(hot_path.CHAINS[chain]), hot_path.measured(longer)
    assert more["calls forward"] == shorter["calls forward"] + 1
    assert more["calls backward"] == shorter["calls backward"]
