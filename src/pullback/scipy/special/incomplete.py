"""The incomplete gamma and beta functions, Student's distribution and zeta, with derivatives by all their parameters.

SciPy computes the values. The derivatives by parameters are conditional means, see `tails`; for small parameters, where
the tail spreads over many orders of magnitude, by the power series or the recurrence first (https://dlmf.nist.gov,
chapters 8 and 25). The functions whose names begin with ``log_`` do not underflow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from ...table.operands import plain
from ..array_nodes import Array, elementwise
from .large_parameters import finite, half_step, half_step_slope, near_beta_mode, near_gamma_mode
from .tails import average, column, log_parts, weights

_POWERS = np.arange(1, 25)


# The incomplete gamma function ----------------------------------------------------------------------------------------


def gamma_log_density(a: Any, x: Any) -> Any:
    """The logarithm of the derivative of `gammainc` by x."""
    return near_gamma_mode(sp.xlogy(a - 1, x) - x - sp.gammaln(a), a, x)


def _below(a: Any, x: Any) -> tuple[Any, Any]:
    """Points u for the part below x, t = x exp(-u), and the weights relative to that at x."""
    a_, x_ = column(a), column(x)
    return weights(lambda u: -a_ * u - x_ * np.expm1(-u), np.maximum(a - x, 0) + np.sqrt(a))


def _above(a: Any, x: Any) -> tuple[Any, Any]:
    """Points for the part above x, t = x + v, and the weights relative to that at x."""
    a_, x_, more = column(a), column(x), np.maximum(a - 1, 0)
    return weights(lambda v: (a_ - 1) * np.log1p(v / x_) - v, np.maximum(1 - more / x, 0) + np.sqrt(more) / x)


def _gamma_score(a: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Where the part below x is the one to take, the mean score of that part, and the arguments.

    Where there is no derivative the score is 0, and the arguments are 1.
    """
    regular = (x > 0) & (x < np.inf) & (a > 0) & (a < np.inf)
    a, x = np.where(regular, a, 1.0), np.where(regular, x, 1.0)
    log_x, psi = np.log(x), sp.psi(a)
    small, left = (a < 1) & (x < 1), log_x < psi
    # below: E[log t]
    u, w = _below(a, x)
    low = log_x - average(u, w) - psi
    # above, where x is at least 1/2
    a1, x1 = np.where(small, 1.0, a), np.where(small, 1.0, x)
    v, w = _above(a1, x1)
    high = log_x + average(np.log1p(v / column(x1)), w) - psi
    # P(a, x) = x**a / Gamma(a + 1) (1 + a sum of (-x)**k / (k! (a + k)))
    terms = (-column(np.where(small, x, 0.5))) ** _POWERS / sp.factorial(_POWERS)
    over = column(a) + _POWERS
    series = 1 + a * np.sum(terms / over, axis=-1)
    near = log_x - sp.psi(a + 1) + np.sum(terms * _POWERS / over**2, axis=-1) / series
    score = np.where(small, near, np.where(left, low, high))
    return small | left, np.where(regular, score, 0.0), a, x


def _gammainc_by_a(a: Any, x: Any) -> Any:
    left, score, a, x = _gamma_score(a, x)
    return np.where(left, gammainc(a, x), -gammaincc(a, x)) * score


def _log_gammainc_by_a(a: Any, x: Any) -> Any:
    left, score, a, x = _gamma_score(a, x)
    odds = np.where(left, 0.0, log_gammaincc(a, x) - log_gammainc(a, x))
    return np.where(left, 1.0, -np.exp(odds)) * score


def _log_gammaincc_by_a(a: Any, x: Any) -> Any:
    left, score, a, x = _gamma_score(a, x)
    odds = np.where(left, log_gammainc(a, x) - log_gammaincc(a, x), 0.0)
    return np.where(left, -np.exp(odds), 1.0) * score


def _log_gammainc_value(a: Array, x: Array) -> Array:
    a, x = np.broadcast_arrays(a, x)

    def far(at: Array) -> Any:
        b, y = a[at], np.maximum(x[at], np.finfo(float).tiny)
        found = gamma_log_density(b, y) + np.log(y) + np.log(np.sum(_below(b, y)[1], axis=-1))
        return np.where(x[at] > 0, found, -np.inf)

    return log_parts(sp.gammainc(a, x), sp.gammaincc(a, x), far)


def _log_gammaincc_value(a: Array, x: Array) -> Array:
    a, x = np.broadcast_arrays(a, x)

    def far(at: Array) -> Any:
        b, y = a[at], np.minimum(x[at], np.finfo(float).max)
        found = gamma_log_density(b, y) + np.log(np.sum(_above(b, y)[1], axis=-1))
        return np.where(x[at] < np.inf, found, -np.inf)

    return log_parts(sp.gammaincc(a, x), sp.gammainc(a, x), far)


def _gamma_density(a: Any, x: Any) -> Any:
    return np.exp(gamma_log_density(a, x))


gammainc: Any = elementwise("special.gammainc", sp.gammainc, _gammainc_by_a, _gamma_density)
gammaincc: Any = elementwise(
    "special.gammaincc",
    sp.gammaincc,
    lambda a, x: -_gammainc_by_a(a, x),
    lambda a, x: -_gamma_density(a, x),
)
log_gammainc: Any = elementwise(
    "log_gammainc",
    _log_gammainc_value,
    _log_gammainc_by_a,
    lambda a, x: np.exp(gamma_log_density(a, x) - log_gammainc(a, x)),
)
log_gammaincc: Any = elementwise(
    "log_gammaincc",
    _log_gammaincc_value,
    _log_gammaincc_by_a,
    lambda a, x: -np.exp(gamma_log_density(a, x) - log_gammaincc(a, x)),
)


def _inverse_by_a(x: Any, a: Any) -> Any:
    return -_gammainc_by_a(a, x) / _gamma_density(a, x)


gammaincinv: Any = elementwise(
    "special.gammaincinv",
    sp.gammaincinv,
    lambda a, y: _inverse_by_a(gammaincinv(a, y), a),
    lambda a, y: 1 / _gamma_density(a, gammaincinv(a, y)),
)
gammainccinv: Any = elementwise(
    "special.gammainccinv",
    sp.gammainccinv,
    lambda a, y: _inverse_by_a(gammainccinv(a, y), a),
    lambda a, y: -1 / _gamma_density(a, gammainccinv(a, y)),
)

# The incomplete beta function -----------------------------------------------------------------------------------------


def beta_log_density(a: Any, b: Any, x: Any) -> Any:
    """The logarithm of the derivative of `betainc` by x."""
    return near_beta_mode(sp.xlogy(a - 1, x) + sp.xlog1py(b - 1, -x) - sp.betaln(a, b), a, b, x)


def _part_below(a: Any, b: Any, x: Any, rest: Any) -> tuple[Any, Any]:
    """Points u for the part below x, t = x exp(-u), and the weights relative to that at x; rest: 1 - x."""
    a_, b_, ratio, more = column(a), column(b), column(x / rest), np.maximum(b - 1, 0)
    rate = np.maximum(a - more * x / rest, 0) + np.sqrt(more * x) / rest
    return weights(lambda u: -a_ * u + (b_ - 1) * np.log1p(-ratio * np.expm1(-u)), rate)


class _BetaScore:
    """How ``betainc(a, b, x)`` depends on a: by the mean score of a part, at a or (for small a, above) at a + 1.

    y: x, or with `turned` 1 - x, so that neither is rounded near 1. left: where the part is the one below x. a: of the
    part. score: its mean, 0 where there is no derivative. jump: the derivative of what ``betainc(a + 1, b, x)`` lacks,
    where the part is that of a + 1, and 0.
    """

    def __init__(self, a: Any, b: Any, y: Any, turned: bool) -> None:
        regular = (y > 0) & (y < 1) & (a > 0) & (b > 0) & (a < np.inf) & (b < np.inf)
        a, b, y = np.where(regular, a, 1.0), np.where(regular, b, 1.0), np.where(regular, y, 0.5)
        self.turned, self.first, self.b, self.y = turned, a, b, y
        x, rest = (1 - y, y) if turned else (y, 1 - y)
        log_x, log_rest = (np.log1p(-y), np.log(y)) if turned else (np.log(y), np.log1p(-y))
        self.shifted = (a < 1) & (x * (1 + np.maximum(b, 1)) < 1) & (log_x >= sp.psi(a) - sp.psi(a + b))
        term = np.exp(a * log_x + b * log_rest - sp.betaln(a, b)) / a * (log_x - sp.psi(a + 1) + sp.psi(a + b))
        self.jump = np.where(self.shifted & regular, term, 0.0)
        self.a = np.where(self.shifted, a + 1, a)
        centre = sp.psi(self.a) - sp.psi(self.a + b)
        self.left = log_x < centre
        u, w = _part_below(self.a, b, x, rest)
        low = log_x - average(u, w)
        u, w = _part_below(b, self.a, rest, x)
        log_t = np.log1p(-column(rest / x) * np.expm1(-u))
        high = log_x + average(log_t, w)
        self.score = np.where(regular, np.where(self.left, low, high) - centre, 0.0)

    def parts(self, a: Any, below: Any, above: Any) -> tuple[Any, Any]:
        """The parts below and above x for this a, by `betainc` and `betaincc` or by their logarithms."""
        if self.turned:
            return above(self.b, a, self.y), below(self.b, a, self.y)
        return below(a, self.b, self.y), above(a, self.b, self.y)


def _betainc_by_a(a: Any, b: Any, y: Any, turned: bool = False) -> Any:
    s = _BetaScore(a, b, y, turned)
    low, high = s.parts(s.a, betainc, betaincc)
    return np.where(s.left, low, -high) * s.score + s.jump


def _betainc_by_b(a: Any, b: Any, x: Any) -> Any:
    return -_betainc_by_a(b, a, x, turned=True)


def _log_by_a(a: Any, b: Any, y: Any, upper: bool, turned: bool = False) -> Any:
    """The derivative of the logarithm of the part below x, or above it."""
    s = _BetaScore(a, b, y, turned)
    part = np.where(s.left, *s.parts(s.a, log_betainc, log_betaincc))
    whole = s.parts(s.first, log_betainc, log_betaincc)[upper]
    same = (~s.left if upper else s.left) & ~s.shifted
    ratio = np.exp(np.where(same, 0.0, part - whole))
    found = np.where(s.left, ratio, -ratio) * s.score + s.jump * np.exp(np.where(s.shifted, -whole, 0.0))
    return -found if upper else found


def _log_betainc_value(a: Array, b: Array, x: Array) -> Array:
    a, b, x = np.broadcast_arrays(a, b, x)

    def far(at: Array) -> Any:
        y = np.maximum(x[at], np.finfo(float).tiny)
        return np.where(x[at] > 0, _log_below(a[at], b[at], y, 1 - y), -np.inf)

    return log_parts(sp.betainc(a, b, x), sp.betaincc(a, b, x), far)


def _log_betaincc_value(a: Array, b: Array, x: Array) -> Array:
    a, b, x = np.broadcast_arrays(a, b, x)

    def far(at: Array) -> Any:
        y = np.minimum(x[at], 1 - np.finfo(float).epsneg)
        return np.where(x[at] < 1, _log_below(b[at], a[at], 1 - y, y), -np.inf)

    return log_parts(sp.betaincc(a, b, x), sp.betainc(a, b, x), far)


def _log_below(a: Array, b: Array, x: Array, rest: Array) -> Any:
    """The logarithm of the part below x, from the density at x and the weights relative to that."""
    density = sp.xlogy(a, x) + sp.xlogy(b - 1, rest) - sp.betaln(a, b)
    return density + np.log(np.sum(_part_below(a, b, x, rest)[1], axis=-1))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return np.exp(beta_log_density(a, b, x))


betainc: Any = elementwise("special.betainc", sp.betainc, _betainc_by_a, _betainc_by_b, _beta_density)
betaincc: Any = elementwise(
    "special.betaincc",
    sp.betaincc,
    lambda a, b, x: -_betainc_by_a(a, b, x),
    lambda a, b, x: -_betainc_by_b(a, b, x),
    lambda a, b, x: -_beta_density(a, b, x),
)
log_betainc: Any = elementwise(
    "log_betainc",
    _log_betainc_value,
    lambda a, b, x: _log_by_a(a, b, x, upper=False),
    lambda a, b, x: _log_by_a(b, a, x, upper=True, turned=True),
    lambda a, b, x: np.exp(beta_log_density(a, b, x) - log_betainc(a, b, x)),
)
log_betaincc: Any = elementwise(
    "log_betaincc",
    _log_betaincc_value,
    lambda a, b, x: _log_by_a(a, b, x, upper=True),
    lambda a, b, x: _log_by_a(b, a, x, upper=False, turned=True),
    lambda a, b, x: -np.exp(beta_log_density(a, b, x) - log_betaincc(a, b, x)),
)


def _beta_inverse(name: str, ufunc: Any, sign: int) -> Any:
    """The inverse of a part by x: ``dx = (sign dy - dI) / density``."""

    def inverse(a: Any, b: Any, y: Any) -> Any:
        return entered(a, b, y)

    entered = elementwise(
        name,
        ufunc,
        lambda a, b, y: -_betainc_by_a(a, b, inverse(a, b, y)) / _beta_density(a, b, inverse(a, b, y)),
        lambda a, b, y: -_betainc_by_b(a, b, inverse(a, b, y)) / _beta_density(a, b, inverse(a, b, y)),
        lambda a, b, y: sign / _beta_density(a, b, inverse(a, b, y)),
    )
    return entered


betaincinv = _beta_inverse("special.betaincinv", sp.betaincinv, 1)
betainccinv = _beta_inverse("special.betainccinv", sp.betainccinv, -1)

# Student's distribution -----------------------------------------------------------------------------------------------


def student_log_density(df: Any, t: Any) -> Any:
    """The logarithm of the derivative of `stdtr` by t."""
    df = finite(df)
    return half_step(df / 2) - math.log(2 * math.pi) / 2 - (df + 1) / 2 * np.log1p(t * t / df)


def _student_tail(df: Any, size: Any) -> tuple[Any, Any, Any]:
    """``t = sqrt(df) sinh(z)``: the z where the tail starts, those above it, and the weights ``cosh(z) ** -df``."""
    start = np.arcsinh(size / np.sqrt(df))
    z0, d = column(start), column(df)
    first = np.log1p(np.exp(-2 * z0))
    u, w = weights(lambda u: -d * (u + np.log1p(np.exp(-2 * (z0 + u))) - first), df * np.tanh(start) + np.sqrt(df))
    return start, z0 + u, w


def _student_score(df: Any, t: Any) -> tuple[Any, Any, Any]:
    """The mean score by df over the tail beyond abs(t), and the arguments; 0, 1 and 1 where there is no derivative."""
    regular = (df > 0) & (df < np.inf) & np.isfinite(t)
    df, t = np.where(regular, df, 1.0), np.where(regular, t, 1.0)
    size = np.where(t < 0, -t, t)
    _, z, w = _student_tail(df, size)
    d = column(df)
    log_cosh = z + np.log1p(np.exp(-2 * z)) - math.log(2)
    known = column(half_step_slope(df / 2))
    score = (known - 2 * log_cosh + (d + 1) / d * np.square(np.tanh(z))) / 2
    return np.where(regular, average(score, w), 0.0), df, t


def _stdtr_by_df(df: Any, t: Any) -> Any:
    score, df, t = _student_score(df, t)
    return stdtr(df, np.where(t < 0, t, -t)) * np.where(t < 0, 1.0, -1.0) * score


def _log_stdtr_by_df(df: Any, t: Any) -> Any:
    score, df, t = _student_score(df, t)
    odds = np.where(t < 0, 0.0, log_stdtr(df, -t) - log_stdtr(df, t))
    return np.where(t < 0, 1.0, -np.exp(odds)) * score


def _log_stdtr_value(df: Array, t: Array) -> Array:
    df, t = np.broadcast_arrays(df, t)

    def far(at: Array) -> Any:
        d, size = df[at], np.minimum(-t[at], 1e150)
        start, _, w = _student_tail(d, size)
        found = student_log_density(d, size) + np.log(d) / 2 + np.log(np.cosh(start)) + np.log(np.sum(w, axis=-1))
        return np.where(t[at] > -np.inf, found, -np.inf)

    return log_parts(sp.stdtr(df, t), sp.stdtr(df, -t), far)


stdtr: Any = elementwise("special.stdtr", sp.stdtr, _stdtr_by_df, lambda df, t: np.exp(student_log_density(df, t)))
log_stdtr: Any = elementwise(
    "log_stdtr",
    _log_stdtr_value,
    _log_stdtr_by_df,
    lambda df, t: np.exp(student_log_density(df, t) - log_stdtr(df, t)),
)
stdtrit: Any = elementwise(
    "special.stdtrit",
    sp.stdtrit,
    lambda df, p: -_stdtr_by_df(df, stdtrit(df, p)) / np.exp(student_log_density(df, stdtrit(df, p))),
    lambda df, p: 1 / np.exp(student_log_density(df, stdtrit(df, p))),
)

# The zeta function of Hurwitz -----------------------------------------------------------------------------------------

_TERMS, _EVEN = 12, np.arange(2, 26, 2)
_BERNOULLI = sp.bernoulli(24)[_EVEN] / sp.factorial(_EVEN)


def _zeta_by_s(s: Any, q: Any) -> Any:
    """The derivative of Euler and Maclaurin's sum, https://dlmf.nist.gov/25.11#E43, term by term."""
    s, q = s + 0 * q, q + 0 * s
    s_, q_ = column(s), column(q)
    n = q_ + np.arange(_TERMS)
    found = -np.sum(np.log(n) * n**-s_, axis=-1)
    end = q + _TERMS
    log = np.log(end)
    found = found - end ** (1 - s) * (log / (s - 1) + 1 / np.square(s - 1)) - log * end**-s / 2
    rising, slope = s, 1 / s
    for k, factor in zip(_EVEN, _BERNOULLI, strict=True):
        found = found + factor * rising * (slope - log) * end ** (1.0 - k - s)
        rising = rising * (s + (k - 1)) * (s + k)
        slope = slope + 1 / (s + (k - 1)) + 1 / (s + k)
    return found


zeta2: Any = elementwise("special.zeta", sp.zeta, _zeta_by_s, lambda s, q: -s * zeta2(s + 1, q))


def _riemann_by_s(s: Any) -> Any:
    """As above; below -1, where its terms cancel, of ``2 (2 pi)^(s-1) sin(pi s/2) gamma(t) zeta(t)``, t = 1 - s."""
    low = plain(s) < -1
    t = np.where(low, 1 - s, 3.0)
    sine, cosine = np.sin(np.pi / 2 * (1 - t)), np.cos(np.pi / 2 * (1 - t))
    scale = 2 * (2 * np.pi) ** -t * sp.gamma(t)
    slope = (math.log(2 * math.pi) * sine + np.pi / 2 * cosine - sine * sp.psi(t)) * zeta2(t, np.ones(()))
    reflected = scale * (slope - sine * _zeta_by_s(t, np.ones(())))
    return np.where(low, reflected, _zeta_by_s(np.where(low, 3.0, s), np.ones(())))


zeta1: Any = elementwise("special.zeta", sp.zeta, _riemann_by_s)
zetac: Any = elementwise("special.zetac", sp.zetac, _riemann_by_s)

__all__ = [
    "betainc", "betaincc", "betainccinv", "betaincinv", "gammainc", "gammaincc", "gammainccinv", "gammaincinv",
    "log_betainc", "log_betaincc", "log_gammainc", "log_gammaincc", "log_stdtr", "stdtr", "stdtrit", "zeta1",
    "zeta2", "zetac",
]  # fmt: skip
