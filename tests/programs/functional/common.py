"""What the programs of this clause share."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant


def fn(lib: Any) -> Any:
    return lib.autograd.functional


def one(lib: Any) -> Any:
    return constant(lib, [0.3, -1.2, 0.7])


def two(lib: Any) -> Any:
    return one(lib), constant(lib, [1.5, 0.2])


def vector(x: Any, y: Any) -> Any:
    return (x.sin() * y.sum(), x[:2] * y)
