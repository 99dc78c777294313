"""Utilities around training: checkpointing, and data sets in minibatches."""

import importlib as _importlib
from typing import Any as _Any

from . import checkpoint, data

__all__ = ["checkpoint", "data", "dlpack", "hooks"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> _Any:
    if name in ("dlpack", "hooks"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module 'pullback.utils' has no attribute {name!r}: it is not in pullback, or not yet "
        "(README.md says what is)."
    )
