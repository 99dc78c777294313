"""Differentiable collectives, at torch's path ``distributed.nn.functional``."""

from . import functional
from .functional import all_gather, all_reduce, all_to_all, broadcast, gather, reduce, reduce_scatter, scatter

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "functional",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def __dir__() -> list[str]:
    return sorted(__all__)
