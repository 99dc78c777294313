"""Bridges: one definition, used here and in another library, at every order of derivative.

A *foreign function* is four functions: its call, its vjp, its jvp and its vmap. Those of `pullback.func`, of
`torch.func` and of JAX mean the same, and each of them applied to a foreign function is a foreign function again. So
one class for each direction is enough: every order and mode follows from it.

`bridge.torch` and `bridge.jax` are loaded on first use. They are the only modules that import these libraries, which
are extras: ``pip install 'pullback[torch]'``, ``pip install 'pullback[jax]'``. `bridge.autograd` is the namespace of
HIPS autograd on this package; it needs no autograd. `bridge.as_torch` answers ``import torch`` with this package.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from .. import errors

__all__ = ["as_torch", "autograd", "jax", "torch"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        text = f"module 'pullback.bridge' has no attribute {name!r}; it has {' and '.join(__all__)}"
        raise errors.absent(__name__, text)
    return importlib.import_module(f"pullback.bridge.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
