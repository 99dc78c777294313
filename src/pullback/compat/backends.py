"""`torch.backends`, the switches of the libraries that PyTorch computes with; and `fused`, a switch of our own.

None of PyTorch's libraries is used here. Scripts set some at the start (`torch.backends.cudnn.deterministic = True`)
and ask which are available. A setting is kept, and changes nothing; `is_available()` is False. `fused` does what it
says: it switches the loops in C of large eager calls off and on.

>>> from pullback import backends
>>> backends.cudnn.benchmark = True
>>> backends.cudnn.benchmark, backends.cudnn.is_available(), backends.mps.is_available()
(True, False, False)
>>> backends.cudnn.benchmark = False
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .. import errors
from ..table.nodes import Fused

__all__ = ["cuda", "cudnn", "fused", "mkl", "mkldnn", "mps", "openmp"]


def __dir__() -> list[str]:
    return sorted(__all__)


def _absent() -> bool:
    """False: the library is not used here."""
    return False


def _library(name: str, **settings: Any) -> Any:
    """An importable module for a library that is not used here: it keeps its settings."""
    found = ModuleType(f"pullback.backends.{name}", f"Settings of {name}, without effect.")
    found.__dict__.update(settings)
    return found


cudnn = _library(
    "cudnn",
    is_available=_absent,
    version=lambda: None,
    enabled=True,
    benchmark=False,
    benchmark_limit=None,
    deterministic=False,
    allow_tf32=True,
)
cuda = _library("cuda", is_built=_absent)
cuda.matmul = _library(
    "cuda.matmul",
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
)
mps = _library("mps", is_available=_absent, is_built=_absent)
mkl = _library("mkl", is_available=_absent)
mkldnn = _library("mkldnn", is_available=_absent, enabled=True)
openmp = _library("openmp", is_available=_absent)


class _Fused(ModuleType):
    """Loops in C for eager calls of large arrays: see docs/compile.md."""

    @property
    def enabled(self) -> bool:
        """Whether large calls of activations, softmax and `layer_norm` run as loops in C, where there is a compiler.

        It holds for all threads. RuntimeError for what is no bool.
        """
        return Fused.enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if type(value) is not bool:
            raise RuntimeError(
                errors.message("pullback.backends.fused.enabled", expected="a bool", found=errors.describe(value))
            )
        Fused.enabled = value


def _is_available() -> bool:
    """Whether there is a C compiler that works."""
    return bool(importlib.import_module("pullback.compile.backends.c").available())


@contextlib.contextmanager
def _flags(enabled: bool = False) -> Iterator[None]:
    """A context in which `pullback.backends.fused.enabled` is another; also a decorator. At its end it is as before.

    >>> import pullback
    >>> with pullback.backends.fused.flags(enabled=False):
    ...     pullback.backends.fused.enabled
    False
    """
    before = Fused.enabled
    fused.enabled = enabled
    try:
        yield
    finally:
        Fused.enabled = before


fused = _Fused("pullback.backends.fused", _Fused.__doc__)
vars(fused).update(is_available=_is_available, flags=_flags)
