"""Rules of Taylor mode for entries where one is faster than what follows from the derivative: `About.series`.

A rule gets a `Series`, the arguments of the operation and its value, and returns the polynomial of the result. The
coefficients are Tensors of the level below, so that a rule is differentiable, batched and compiled as all code is.
Quotients and solutions divide polynomials; the others integrate ``y' = r x'``, where the rate r follows from y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .jets import Jet, Series, Terms


def divided(s: Series, left: Terms, by: Terms, out: Any, product: Callable[..., Any], divide: Any) -> list[Jet]:
    """The polynomial q with ``by q = left``, which begins with `out`: ``q_k = by_0^-1 (left_k - sum by_i q_(k-i))``."""
    found: Terms = [out]
    for k in range(1, s.order + 1):
        rest: Any = left[k]
        for i in range(1, k + 1):
            a, q = by[i], found[k - i]
            if a is not None and q is not None:
                part = product(a, q)
                rest = np.negative(part) if rest is None else np.subtract(rest, part)
        found.append(None if rest is None else divide(rest))
    return s.made(found)


def quotient(s: Series, input: Any, other: Any, out: Any) -> list[Jet]:
    """``input / other``."""
    by = s.of(other)
    return divided(s, s.of(input), by, out, np.multiply, lambda rest: np.true_divide(rest, by[0]))


def integrated(s: Series, input: Any, out: Any, rate: Callable[[Terms, int], Any]) -> list[Jet]:
    """The polynomial y with ``y' = r x'``: ``k y_k = sum_j j x_j r_(k-j)``. rate: coefficient k of r, from y."""
    slopes = s.slopes(input)
    y, rates = [out], []
    for k in range(1, s.order + 1):
        rates.append(rate(y, k - 1))
        total = _added([(slopes[j], rates[k - j]) for j in range(1, k + 1)])
        y.append(total if total is None or k == 1 else total * (1 / k))
    return s.made(y)


def _added(pairs: Iterable[tuple[Any, Any]]) -> Any:
    """The sum of the products of pairs, the first a Tensor or the number 1; None if there is none without a zero."""
    total: Any = None
    for a, b in pairs:
        if a is not None and b is not None:
            part = b if type(a) is int else np.multiply(a, b)
            total = part if total is None else np.add(total, part)
    return total


def _squared(y: Terms, k: int) -> Any:
    """Coefficient `k` of the square of a polynomial."""
    twice = _added([(y[i], y[k - i]) for i in range((k + 1) // 2)])
    middle = None if k % 2 or y[k // 2] is None else np.multiply(y[k // 2], y[k // 2])
    if twice is None:
        return middle
    return 2 * twice if middle is None else np.add(2 * twice, middle)


def growing(s: Series, input: Any, out: Any) -> list[Jet]:
    """``y' = y x'``: the exponential."""
    return integrated(s, input, out, lambda y, k: y[k])


def saturating(s: Series, input: Any, out: Any) -> list[Jet]:
    """``y' = (1 - y**2) x'``: the hyperbolic tangent."""

    def rate(y: Terms, k: int) -> Any:
        square = _squared(y, k)
        return np.subtract(1, square) if not k else None if square is None else np.negative(square)

    return integrated(s, input, out, rate)


def logistic(s: Series, input: Any, out: Any) -> list[Jet]:
    """``y' = (y - y**2) x'``: the sigmoid."""

    def rate(y: Terms, k: int) -> Any:
        square = _squared(y, k)
        if square is None or y[k] is None:
            return y[k] if square is None else np.negative(square)
        return np.subtract(y[k], square)

    return integrated(s, input, out, rate)
