"""`torch.backends`, the switches of the libraries that PyTorch computes with: none of these libraries is used here.

Scripts set some at the start (`torch.backends.cudnn.deterministic = True`) and ask which are available. A setting is
kept, and changes nothing; `is_available()` is False.

>>> from pullback import backends
>>> backends.cudnn.benchmark = True
>>> backends.cudnn.benchmark, backends.cudnn.is_available(), backends.mps.is_available()
(True, False, False)
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


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
