"""What CuPy has of NumPy, as data: run this file beside CuPy, which imports without a GPU, to remake it.

`manners.json` holds, of the CuPy that was looked at: the parameters of its functions by NumPy's names, the types of its
ufuncs (those of ``cupyx.scipy.special`` too) and the ufuncs that have a method.
"""

from __future__ import annotations

import functools
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("manners.json")
MODULES = ["", "linalg", "fft", "lib.stride_tricks"]


def parameters(function: Any) -> list[str] | None:
    """The names of the parameters of a function, "*" for any number of them; None where they cannot be read."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    return ["*" if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) else p.name for p in found]


def functions(theirs: Any) -> dict[str, list[str] | None]:
    """By the name that NumPy has for them, the functions of another module that are no ufuncs."""
    found = {}
    for module in MODULES:
        parts = module.split(".") if module else []
        ours, other = (functools.reduce(getattr, parts, root) for root in (np, theirs))
        for name in sorted(ours.__all__ if module != "lib.stride_tricks" else dir(ours)):
            value, here = getattr(other, name, None), getattr(ours, name)
            if callable(value) and value is not here and not isinstance(here, (type, np.ufunc)) and name[0] != "_":
                found[".".join([*parts, name])] = parameters(value)
    return found


def ufuncs(theirs: Any, special: Any) -> dict[str, list[str]]:
    """By name, the types that a ufunc of another module takes and gives, as NumPy writes them."""
    found = {}
    for home in (special, theirs):
        for name in sorted(dir(home)):
            value = getattr(home, name)
            if isinstance(value, (type(theirs.add), type(theirs.matmul))) and not isinstance(value, type):
                found[name] = [kind for kind in getattr(value, "types", ()) if "E" not in kind]  # E: CuPy's bfloat16
    return found


if __name__ == "__main__":
    import cupy
    import cupyx.scipy.special

    told = {
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "functions": functions(cupy),
        "ufuncs": ufuncs(cupy, cupyx.scipy.special),
        "at": sorted(n for n in dir(cupy) if getattr(getattr(cupy, n), "_scatter_op", None)),
        "methods of arrays": sorted(n for n in dir(cupy.ndarray) if n[0] != "_"),
    }
    FILE.write_text(json.dumps(told, indent=None, separators=(",", ":")).replace("],", "],\n") + "\n", "utf-8")
