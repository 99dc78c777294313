"""Utilities around training: checkpointing."""

from typing import Any as _Any

from . import checkpoint, dlpack

__all__ = ["checkpoint", "dlpack"]


def __getattr__(name: str) -> _Any:
    raise AttributeError(
        f"module 'pullback.utils' has no attribute {name!r}: it is not in pullback, or not yet "
        "(README.md says what is)."
        + ("\n  What to do: index the tensors with the pieces of randperm(n).split(size)." * (name == "data"))
    )
