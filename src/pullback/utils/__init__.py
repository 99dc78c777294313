"""Utilities around training: checkpointing, and data sets in minibatches."""

import importlib as _importlib
from typing import Any as _Any

from .. import errors as _errors
from . import checkpoint, data
from .time_steps import checkpoint_steps, explain_steps

__all__ = ["checkpoint", "checkpoint_steps", "data", "dlpack", "explain_steps", "hooks"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> _Any:
    if name in ("dlpack", "hooks"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise _errors.absent(
        __name__,
        f"module 'pullback.utils' has no attribute {name!r}: it is not in pullback, or not yet "
        "(dir(pullback.utils) lists what is).",
    )
