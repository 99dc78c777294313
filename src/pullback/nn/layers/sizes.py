"""Sizes along several dimensions, given as one number for all or one for each."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any


def repeated(value: Any, n: int) -> tuple[Any, ...]:
    """`n` times the same number, or the given numbers."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


_single, _pair, _triple, _quadruple = (partial(repeated, n=n) for n in (1, 2, 3, 4))  # torch's names
