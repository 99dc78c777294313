"""Conditional means over the tail of a density: what the derivatives of incomplete integrals by parameters are made of.

For a distribution function ``F(x; p)``, the integral of a density f up to x,

    dF/dp  =  F * E[d log f / dp | below x]  =  -(1 - F) * E[d log f / dp | above x].

The score has mean 0, and it changes sign once: on the side of x where it has one sign nothing cancels, so the
derivative is exact relative to F even where F underflows. The mean is a quotient of two sums over the same weights, in
which the constants of the density drop out. The sums are those of the double exponential rule (Takahasi and Mori,
1974), on the half line that starts at x; they are operations like any other, so that every order follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...table.operands import plain

_STEP = 0.1
_GRID = np.arange(-37, 46) * _STEP
NODES = np.exp(_GRID - np.exp(-_GRID))
STEPS = NODES * (1 + np.exp(-_GRID)) * _STEP

Log = Callable[[Any], Any]


def weights(log_weight: Log, rate: Any) -> tuple[Any, Any]:
    """Points u > 0 along a new last axis, and ``exp(log_weight(u))`` times the steps between them.

    rate: by which the weight falls, about; the sums do not depend on it.
    """
    rate = np.expand_dims(plain(rate), -1)
    u = NODES / rate
    return u, np.exp(log_weight(u)) * (STEPS / rate)


def average(values: Any, w: Any) -> Any:
    """The mean of values at the points, by the weights."""
    return np.sum(values * w, axis=-1) / np.sum(w, axis=-1)


def column(x: Any) -> Any:
    """With a last axis for the points."""
    return np.expand_dims(x, -1)


def log_parts(part: Any, rest: Any, far: Callable[[Any], Any]) -> Any:
    """The logarithm of an array of probabilities whose complement is known.

    far: the logarithm where the probability underflows, given the mask of these places.
    """
    found = np.log(part, where=part > 0, out=np.full(part.shape, -np.inf))
    np.copyto(found, np.log1p(-rest, where=part > 0.5, out=np.zeros(part.shape)), where=part > 0.5)
    tiny = part < 1e-290
    if tiny.any():
        found[tiny] = far(tiny)
    found[np.isnan(part)] = np.nan
    return found


__all__ = ["average", "column", "log_parts", "weights"]
