"""The functions of scipy.special that CuPy has, by CuPy's names: a module that stands for ``cupyx.scipy.special``."""

from __future__ import annotations

from typing import Any

import scipy.special

from .captures import computed
from .fake import UFUNCS, device, host


def __getattr__(name: str) -> Any:
    if name not in UFUNCS:
        raise AttributeError(f"cupyx.scipy.special has no {name}")
    return lambda *args: device(computed(getattr(scipy.special, name), [*map(host, args)], {}))
