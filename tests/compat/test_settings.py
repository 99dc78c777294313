"""Switches of how exactly PyTorch computes: they tell what they were told, and refuse what PyTorch refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pullback
from tests.programs.modes.settings import around


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    with around():
        yield


def test_another_precision_is_warned_of_and_changes_nothing() -> None:
    pullback.set_float32_matmul_precision("high")
    with pytest.warns(UserWarning, match="no effect"):
        pullback.set_float32_matmul_precision("low")
    assert pullback.get_float32_matmul_precision() == "high"
