"""What the programs of this clause share."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import function


def double_of(lib: Any) -> Any:
    """A Function, 2 x."""
    return function(lib, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
