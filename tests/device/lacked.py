"""The names of NumPy that CuPy lacks, as data: run this file beside CuPy, which imports without a GPU, to remake it.

`lacked.json` holds the names of functions and ufuncs by NumPy's modules, and the versions that were compared.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("lacked.json")
MODULES = ["", "linalg", "fft"]


def lacked(theirs: Any) -> list[str]:
    """The public functions of NumPy that another module with NumPy's names does not have."""
    found = []
    for module in MODULES:
        parts = module.split(".") if module else []
        ours, other = (functools.reduce(getattr, parts, root) for root in (np, theirs))
        for name in sorted(ours.__all__):
            value = getattr(ours, name)
            if callable(value) and not isinstance(value, type) and not hasattr(other, name):
                found.append(".".join([*parts, name]))
    return found


if __name__ == "__main__":
    import cupy

    told = {"cupy": cupy.__version__, "numpy": np.__version__, "lacked": lacked(cupy)}
    FILE.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
