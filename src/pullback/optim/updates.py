"""Parts of update rules: running averages and steps, in place, on blocks of real numbers.

`work` is memory of the block's shape that is overwritten. No function here allocates memory.
"""

from __future__ import annotations

import numpy as np

from .sweep import Array


def move(mean: Array, target: Array, weight: float, work: Array) -> None:
    """``mean += weight * (target - mean)``, exact at both ends: a weight of 1 gives `target`."""
    if weight < 0.5:
        np.subtract(target, mean, out=work)
        np.multiply(work, weight, out=work)
        np.add(mean, work, out=mean)
    else:
        np.subtract(target, mean, out=work)
        np.multiply(work, 1 - weight, out=work)
        np.subtract(target, work, out=mean)


def average_square(mean: Array, x: Array, keep: float, work: Array) -> None:
    """``mean = keep * mean + (1 - keep) * x ** 2``."""
    np.multiply(x, 1 - keep, out=work)
    np.multiply(work, x, out=work)
    np.multiply(mean, keep, out=mean)
    np.add(mean, work, out=mean)


def root(x: Array, eps: float, out: Array) -> Array:
    """``out = sqrt(x) + eps``."""
    np.sqrt(x, out=out)
    return np.add(out, eps, out=out)


def descend(param: Array, direction: Array, rate: float, work: Array) -> None:
    """``param -= rate * direction``; `work` may be `direction` itself."""
    np.multiply(direction, rate, out=work)
    np.subtract(param, work, out=param)
