"""Differences of gamma functions whose terms cancel for large parameters, by what Stirling's formula leaves.

``gammaln(a) = (a - 1/2) log(a) - a + log(2 pi) / 2 + r(a)``, https://dlmf.nist.gov/5.11#E1: the leading terms are
subtracted by hand, and r is a series of the odd powers of ``1 / a``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from ...table.operands import plain, somewhere

_LARGE = 12.0
_EVEN = np.arange(2, 18, 2)
_STIRLING = sp.bernoulli(16)[_EVEN] / (_EVEN * (_EVEN - 1))
_HALF = (2.0 ** (1 - _EVEN) - 2) * _STIRLING


def finite(df: Any) -> Any:
    """Degrees of freedom, infinitely many as so many that every value is the same."""
    return np.where(plain(df) == np.inf, 1e20, df)


def _odd(coefficients: Any, x: Any) -> Any:
    """The sum of coefficients times ``x, x ** 3, ...``."""
    square, found = np.square(x), coefficients[-1]
    for c in coefficients[-2::-1]:
        found = c + square * found
    return found * x


def _split(a: Any) -> tuple[Any, Any, Any]:
    """Where a is large, ``1 / a`` for there and a for elsewhere."""
    large = plain(a) > _LARGE
    return large, 1 / np.where(large, a, _LARGE), np.where(large, _LARGE, a)


def half_step(a: Any) -> Any:
    """``gammaln(a + 1/2) - gammaln(a) - log(a) / 2``, which is about ``-1 / (8 a)``."""
    large, x, low = _split(a)
    return np.where(large, _odd(_HALF, x), sp.gammaln(low + 0.5) - sp.gammaln(low) - np.log(low) / 2)


def half_step_slope(a: Any) -> Any:
    """The derivative of `half_step`, which is about ``1 / (8 a ** 2)``."""
    large, x, low = _split(a)
    return np.where(large, x * _odd((1 - _EVEN) * _HALF, x), sp.psi(low + 0.5) - sp.psi(low) - 0.5 / low)


def gamma_entropy(a: Any) -> Any:
    """``a + (1 - a) psi(a) + gammaln(a)``, which is about ``log(2 pi e a) / 2``."""
    large, x, low = _split(a)
    rest = _odd(_EVEN * _STIRLING, x) - x * _odd((_EVEN - 1) * _STIRLING, x)
    far = (math.log(2 * math.pi) + 1 - np.log(x) - x) / 2 + rest
    return np.where(large, far, low + (1 - low) * sp.psi(low) + sp.gammaln(low))


def _deviance(a: Any, u: Any) -> Any:
    return a * (u - np.log1p(u))


def near_gamma_mode(found: Any, a: Any, x: Any) -> Any:
    """The log density of a gamma variable: near the mode of a large a as the distance from that, elsewhere `found`."""
    mode = (plain(a) > 1e3) & (np.absolute(plain(x) - plain(a)) < plain(a) / 2)
    if not somewhere(mode):
        return found
    b, y = np.where(mode, a, 1e4), np.where(mode, x, 1e4)
    constant = (np.log(b) - math.log(2 * math.pi)) / 2 - _odd(_STIRLING, 1 / b)
    return np.where(mode, constant - np.log(y) - _deviance(b, (y - b) / b), found)


def near_beta_mode(found: Any, a: Any, b: Any, x: Any) -> Any:
    """The log density of a beta variable, in the same way where a and b are large."""
    gap = np.absolute(plain(b) * plain(x) - plain(a) * (1 - plain(x)))
    least = np.minimum(plain(a), plain(b))
    mode = (least > 1e3) & (gap < least / 2)
    if not somewhere(mode):
        return found
    a, b, x = np.where(mode, a, 1e4), np.where(mode, b, 1e4), np.where(mode, x, 0.5)
    whole, gap = a + b, b * x - a * (1 - x)
    constant = (np.log(a) + np.log(b) - np.log(whole) - math.log(2 * math.pi)) / 2 + _odd(_STIRLING, 1 / whole)
    constant = constant - _odd(_STIRLING, 1 / a) - _odd(_STIRLING, 1 / b) - np.log(x) - np.log1p(-x)
    return np.where(mode, constant - _deviance(a, gap / a) - _deviance(b, -gap / b), found)


def log_rising(a: Any, steps: int) -> Any:
    """``gammaln(a + steps / 2) - gammaln(a) - steps log(a) / 2``."""
    odd = steps % 2
    found = half_step(a) if odd else 0 * a
    return found + sum(np.log1p((i + odd / 2) / a) for i in range(steps // 2))


__all__ = ["finite", "gamma_entropy", "half_step", "half_step_slope", "log_rising", "near_beta_mode", "near_gamma_mode"]
