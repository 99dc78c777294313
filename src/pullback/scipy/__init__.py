"""SciPy's solvers and transforms with derivatives, under SciPy's own names: ``from pullback.scipy import optimize``.

A function here takes the arguments of SciPy's function of the same name, and Tensors where that takes arrays. SciPy
itself computes the values, on plain arrays. The derivative is an operation of the graph like any other: by the implicit
function theorem for solvers, by the adjoint for what is linear, by its formula for what is a composition. It has every
order and every mode: backward, forward, `vmap`, and all of them nested.

`mirror.py` keeps the list of what is here; `docs/scipy.md` prints it. SciPy is an extra: ``pip install
'pullback[scipy]'``. Each module is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

from .. import errors

try:
    import scipy as _scipy
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        errors.message("pullback.scipy needs SciPy, which is not installed", do="pip install 'pullback[scipy]'"),
        name="scipy",
    ) from _error

__all__ = [
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "set_tracing",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]

_REFUSED = {
    "cluster": "the result is a division into groups, which does not change as the points move a little",
    "datasets": "there is nothing to differentiate",
    "io": "there is nothing to differentiate",
}


def __getattr__(name: str) -> Any:
    if name == "set_tracing":
        return importlib.import_module(f"{__name__}.repeated_calls").set_tracing
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _REFUSED:
        text = errors.message(
            f"pullback.scipy has no {name}, because {_REFUSED[name]}", do=f"use scipy.{name} on t.detach().numpy()"
        )
    else:
        text = f"module 'pullback.scipy' has no attribute {name!r}; it has {', '.join(__all__)}"
    raise errors.absent(__name__, text)


def __dir__() -> list[str]:
    return sorted(__all__)
