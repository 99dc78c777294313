"""What the programs of this clause share."""

from __future__ import annotations

from typing import Any


def a_of(lib: Any) -> Any:
    return lib.arange(24.0, dtype=lib.float64).reshape(2, 3, 4) / 10 - 1


def b_of(lib: Any) -> Any:
    return lib.arange(12.0, dtype=lib.float64).reshape(3, 4) / 7 - 0.5
