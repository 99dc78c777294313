"""The bridge to JAX: `wrap` makes a JAX function of one of ours, `function` a node of our graph of one of JAX's."""

from __future__ import annotations

from ..hosts import missing

try:
    import jax as _host
except ModuleNotFoundError as error:
    raise missing("jax") from error

from .jax_node import function
from .primitive import wrap

__all__ = ["function", "wrap"]


def __dir__() -> list[str]:
    return sorted(__all__)
