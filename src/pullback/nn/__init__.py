"""The everyday part: functions of neural networks."""

from . import functional

__all__ = ["functional"]
