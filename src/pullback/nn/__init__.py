"""The everyday part: functions of neural networks."""

from typing import Any

from . import functional

__all__ = ["functional"]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'pullback.nn' has no attribute {name!r}: there are no layers yet.\n"
        "  What to do: keep the parameters as tensors, and call pullback.nn.functional."
    )
