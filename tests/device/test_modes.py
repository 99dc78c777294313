"""The entries that do not agree with NumPy on the fake device are those that `not_yet.json` lists, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .modes import FILE, MODES, measured

LISTED = json.loads(FILE.read_text("utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return measured()


@pytest.mark.parametrize("mode", list(MODES))
def test_the_list_is_what_is_found(mode: str, found: dict[str, Any]) -> None:
    now, listed = found[mode]["not yet"], LISTED[mode]["not yet"]
    assert all(listed.values())
    assert {name: now[name] for name in sorted(now.keys() - listed.keys())} == {}, "these agreed with NumPy before"
    assert sorted(listed.keys() - now.keys()) == [], "these agree now: run python -m tests.device.modes"
    assert found[mode]["agree"] == LISTED[mode]["agree"]
