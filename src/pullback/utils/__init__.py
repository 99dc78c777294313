"""Utilities around training: checkpointing, and data sets in minibatches."""

from typing import Any as _Any

from . import checkpoint, data, dlpack, hooks

__all__ = ["checkpoint", "data", "dlpack", "hooks"]


def __getattr__(name: str) -> _Any:
    raise AttributeError(
        f"module 'pullback.utils' has no attribute {name!r}: it is not in pullback, or not yet "
        "(README.md says what is)."
    )
