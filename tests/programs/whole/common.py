"""What the programs of this clause share."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np


def numbers() -> np.random.RandomState:
    """The same numbers for every program and library; a stream of NumPy's that never changes."""
    return np.random.RandomState(7)


def filled(lib: Any, module: Any, values: np.random.RandomState, scale: float = 0.3) -> Any:
    """The module in double precision, with parameters from the given random numbers."""
    module.to(lib.float64)
    with lib.no_grad():
        for parameter in module.parameters():
            parameter.copy_(lib.from_numpy(scale * values.randn(*parameter.shape)))
    return module


def below(lib: Any, name: str) -> Any:
    """A module of the library by its path."""
    return importlib.import_module(f"{lib.__name__}.{name}")


def blobs(lib: Any, values: np.random.RandomState, count: int = 90) -> tuple[Any, Any]:
    """Images of 8 by 8, each with a bright third, and which third it is."""
    label = np.arange(count) % 3
    images = values.rand(count, 1, 8, 8)
    for image, k in zip(images, label, strict=True):
        image[0, :, 3 * k : 3 * k + 2] += 1
    return lib.from_numpy(images), lib.from_numpy(label)
