"""Formulas that several distributions share, exact at both ends and differentiable at points where terms cancel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from ...table.operands import plain
from .univariate import log1mexp, log_of, replaced

LOG_2PI = math.log(2 * math.pi)
EULER = float(np.euler_gamma)
_SERIES = np.arange(1, 14)


def normal(x: Any) -> Any:
    """The logarithm of the normal density."""
    return -0.5 * (np.square(x) + LOG_2PI)


def log_det(factor: Any) -> Any:
    """The logarithm of the determinant of the matrix, or the matrices, with this Cholesky factor."""
    return 2 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def times_log(c: Any, x: Any) -> Any:
    """``c log(x)``, 0 where both are 0, of derivative 0 there."""
    both = (plain(c) == 0) & (plain(x) == 0)
    return np.where(both, 0.0, sp.xlogy(c, np.where(both, 1.0, x)))


def times_log1m(c: Any, x: Any) -> Any:
    """``c log(1 - x)``, 0 where c is 0 and x is 1, of derivative 0 there."""
    both = (plain(c) == 0) & (plain(x) == 1)
    return np.where(both, 0.0, sp.xlog1py(c, -np.where(both, 0.0, x)))


def growing(x: Any) -> Any:
    """``exp(x)``, a constant where it overflows."""
    over = plain(x) > 709.7
    return replaced(over, np.exp(replaced(over, x, 0.0)), np.inf)


def power(x: Any, c: Any) -> Any:
    """``x ** c`` for x >= 0, a constant where it overflows."""
    with np.errstate(divide="ignore"):
        over = plain(c) * np.log(plain(x)) > 709.7
    return replaced(over, replaced(over, x, 1.0) ** c, np.inf)


def log1p_power(x: Any, c: Any) -> Any:
    """``log(1 + x ** c)`` for x >= 0, without overflow."""
    large = plain(x) > 1
    turned = np.where(large, 1 / np.where(large, x, 1.0), x)
    return c * np.log(np.where(large, x, 1.0)) + np.log1p(turned**c)


def log1p_over(c: Any, x: Any) -> Any:
    """``log(1 + c x) / c``, which is x where c is 0; by its series near there."""
    z = c * x
    near = np.absolute(plain(z)) < 0.02
    small = np.expand_dims(np.where(near, z, 0.0), -1)
    series = x * (1 + np.sum((-small) ** _SERIES / (_SERIES + 1), axis=-1))
    return np.where(near, series, np.log1p(np.where(near, 1.0, z)) / np.where(near, 1.0, c))


def _finite(x: Any) -> Any:
    """Infinite bounds as numbers beyond which the normal distribution has no mass."""
    value = plain(x)
    return np.where(np.isinf(value), np.where(value > 0, 1e10, -1e10), x)


def log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability between a and b, from the tail that is nearer."""
    a, b = _finite(a), _finite(b)
    turned = plain(a) > 0
    low, high = np.where(turned, -b, a), np.where(turned, -a, b)
    one_side = (plain(high) <= 0) & (plain(low) < -1)
    near, far = np.where(one_side, high, -1.0), np.where(one_side, low, -2.0)
    top = sp.log_ndtr(near)
    left, right = np.where(one_side, -1.0, low), np.where(one_side, 1.0, high)
    middle = (sp.erf(right * math.sqrt(0.5)) - sp.erf(left * math.sqrt(0.5))) / 2
    return np.where(one_side, top + log1mexp(sp.log_ndtr(far) - top), log_of(middle, sp.ndtr(left) + sp.ndtr(-right)))


def mass_slopes(a: Any, b: Any) -> tuple[Any, Any]:
    """``phi(a) - phi(b)`` and ``a phi(a) - b phi(b)`` of the normal density, over the mass between a and b."""
    mass, a, b = log_mass(a, b), _finite(a), _finite(b)
    at_a, at_b = np.exp(normal(a) - mass), np.exp(normal(b) - mass)
    return at_a - at_b, a * at_a - b * at_b


__all__ = [
    "EULER", "LOG_2PI", "growing", "log1p_over", "log1p_power", "log_mass", "mass_slopes", "normal", "power",
    "times_log", "times_log1m",
]  # fmt: skip
