"""What the programs of this clause share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.side_by_side import function


def noting(lib: Any, events: list[Any], name: str, factor: float = 1.0) -> Callable[[Any], Any]:
    """A Function that multiplies by a factor, and notes when its backward runs."""

    def backward(ctx: Any, g: Any) -> Any:
        events.append(name)
        return g * factor

    return function(lib, lambda ctx, x: x * factor, backward).apply  # type: ignore[no-any-return]


# The nodes behind it run (a Function's backward gets zeros, or None if it does not materialise; an operation sends on
# Nones), and their hooks are called with None.
def nothing(lib: Any) -> Any:
    return function(lib, lambda ctx, x: x * 2, lambda ctx, g: None).apply
