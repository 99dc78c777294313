"""The continuous distributions of one variable: an entry each, for location 0 and scale 1.

The parametrisations are SciPy's. A survival function or its logarithm stands where it is the exact one; `Law` says how
the others follow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp
import scipy.stats

from ...table.operands import plain
from ..array_nodes import elementwise
from ..mirror import mirrors
from ..special import incomplete as ic
from ..special.large_parameters import finite, gamma_entropy, half_step, near_beta_mode, near_gamma_mode
from .formulas import (
    EULER,
    LOG_2PI,
    growing,
    log1p_over,
    log1p_power,
    log_mass,
    mass_slopes,
    normal,
    power,
    times_log,
    times_log1m,
)
from .univariate import Continuous, Law, log1mexp, log_of, replaced

INF, LOG2 = np.inf, math.log(2.0)


def _when(condition: Any, value: Any, other: Any = INF) -> Any:
    """A moment where it exists."""
    return np.where(plain(condition), value, other)


def _ratio(a: Any, b: Any) -> Any:
    """``a / b``, without dividing by 0."""
    return a / np.where(plain(b) == 0, 1.0, b)


# Log densities and distribution functions that are longer than a line


def _student_entropy(df: Any) -> Any:
    df = finite(df)
    a, b = df / 2, (df + 1) / 2
    return gamma_entropy(a) - gamma_entropy(b) + sp.psi(b) - 1.5 * sp.psi(a) + (1 + math.log(math.pi) + np.log(df)) / 2


def _f(x: Any, m: Any, n: Any) -> Any:
    head = m / 2 * np.log(m) + n / 2 * np.log(n) - sp.betaln(m / 2, n / 2)
    return head + times_log(m / 2 - 1, x) - (m + n) / 2 * np.log(n + m * x)


def _f_ratios(x: Any, m: Any, n: Any) -> tuple[Any, Any]:
    return m * x / (n + m * x), n / (n + m * x)


def _invgauss_parts(x: Any, mu: Any) -> tuple[Any, Any, Any]:
    root = 1 / np.sqrt(x)
    return root * (x / mu - 1), 2 / mu, -root * (x + mu) / mu


def _invgauss_logcdf(x: Any, mu: Any) -> Any:
    a, b, c = _invgauss_parts(x, mu)
    first = sp.log_ndtr(a)
    return first + np.log1p(np.exp(b + sp.log_ndtr(c) - first))


def _invgauss_logsf(x: Any, mu: Any) -> Any:
    a, b, c = _invgauss_parts(x, mu)
    first = sp.log_ndtr(-a)
    return first + np.log1p(-np.exp(b + sp.log_ndtr(c) - first))


def _genpareto(x: Any, c: Any) -> Any:
    end = plain(c) * plain(x) <= -1
    x = replaced(end, x, 0.0)
    at_end = np.where(plain(c) == -1, 0.0, np.where(plain(c) < -1, INF, -INF))
    return replaced(end, -log1p_over(c, x) - np.log1p(c * x), at_end)


def _extreme(x: Any, c: Any) -> Any:
    return -log1p_over(-c, x)


def _genextreme(x: Any, c: Any) -> Any:
    end = plain(c) * plain(x) >= 1
    x = replaced(end, x, 0.0)
    inner = _extreme(x, c) - growing(_extreme(x, c)) - np.log1p(-c * x)
    return replaced(end, inner, np.where(plain(c) == 1, 0.0, -INF))


def _exponnorm(x: Any, k: Any) -> Any:
    return (0.5 / k - x) / k + sp.log_ndtr(x - 1 / k)


def _exponnorm_logcdf(x: Any, k: Any) -> Any:
    """Below 0 by Mills' ratios, whose common factor is the normal density."""
    below = plain(x) < 0
    low, high = np.where(below, x, -1.0), np.where(below, 1.0, x)
    mills = sp.erfcx(-low * math.sqrt(0.5)) - sp.erfcx((1 / k - low) * math.sqrt(0.5))
    left = normal(low) + np.log(mills) + math.log(math.pi / 2) / 2
    first = sp.log_ndtr(high)
    return np.where(below, left, first + np.log1p(-np.exp(_exponnorm(high, k) - first)))


def _triang(x: Any, c: Any) -> Any:
    rising = plain(x) < plain(c)
    share = np.where(rising, _ratio(x, c), _ratio(1 - x, 1 - c))
    none, top = plain(share) <= 0, (plain(c) == 1) & (plain(x) == 1)
    return LOG2 + np.where(top, 0.0, np.where(none, -INF, np.log(np.where(none, 1.0, share))))


def _triang_cdf(x: Any, c: Any) -> Any:
    rising = plain(x) < plain(c)
    return np.where(rising, _ratio(np.square(x), c), 1 - _ratio(np.square(1 - x), 1 - c))


def _triang_sf(x: Any, c: Any) -> Any:
    return _triang_cdf(1 - x, 1 - c)


def _nearer(part: Any, rest: Any) -> Any:
    """The logarithm of a probability, near 1 from that of the other side."""
    return np.where(plain(part) > -0.1, log1mexp(rest), part)


def _half_logsf(x: Any, part: Any, log_whole: Any) -> Any:
    """Of an even law's upper half, from the probability up to x and the logarithm of the even law's cdf."""
    near = plain(x) < 0.5
    far = LOG2 + log_whole(-np.where(near, 1.0, x))
    return np.where(near, np.log1p(-np.where(near, part, 0.0)), far)


def _truncnorm_logcdf(x: Any, a: Any, b: Any) -> Any:
    whole = log_mass(a, b)
    return _nearer(log_mass(a, x) - whole, log_mass(x, b) - whole)


def _gumbel_log(x: Any) -> Any:
    """``log(1 - exp(-exp(x)))``, which far below is x."""
    far = plain(x) < -37
    return np.where(far, x, log1mexp(-growing(np.where(far, 0.0, x))))


def _f_logs(x: Any, m: Any, n: Any) -> tuple[Any, Any]:
    part, rest = _f_ratios(x, m, n)
    return ic.log_betainc(m / 2, n / 2, part), ic.log_betainc(n / 2, m / 2, rest)


_skewnorm_cdf = elementwise(
    "stats.skewnorm.cdf",
    scipy.stats.skewnorm.cdf,
    lambda x, a: 2 * np.exp(normal(x)) * sp.ndtr(a * x),
    lambda x, a: -np.exp(-np.square(x) * (1 + a * a) / 2) / (math.pi * (1 + a * a)),
)


def _laplace(x: Any) -> Any:
    """The probability of values up to x for x <= 0; of values up to 0 for the others."""
    return 0.5 * np.exp(np.where(plain(x) > 0, 0.0, x))


_LEGENDRE, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(120)


def _vonmises(x: Any, kappa: Any) -> Any:
    return kappa * sp.cosm1(x) - np.log(2 * math.pi * sp.i0e(kappa))


def _vonmises_by_kappa(x: Any, kappa: Any) -> Any:
    """The integral of the score ``cos t - I1 / I0`` over the density from 0; that up to 0 is 0 by symmetry."""
    turned = x - 2 * math.pi * np.round(plain(x) / (2 * math.pi))
    reach = np.minimum(1.0, 14 / np.sqrt(plain(kappa) + 1e-300) / np.maximum(np.absolute(plain(turned)), 1e-300))
    half = np.expand_dims(turned * reach / 2, -1)
    t, k = half * (1 + _LEGENDRE), np.expand_dims(kappa, -1)
    score = np.cos(t) - sp.i1e(k) / sp.i0e(k)
    return np.sum(score * np.exp(_vonmises(t, k)) * (half * _LEGENDRE_WEIGHTS), axis=-1)


_vonmises_cdf = elementwise(
    "stats.vonmises.cdf", scipy.stats.vonmises.cdf, lambda x, k: np.exp(_vonmises(x, k)), _vonmises_by_kappa
)


_ORDERS = np.arange(2, 20)
_GAMMALN = np.concatenate([[-EULER], sp.zeta(_ORDERS) * (-1.0) ** _ORDERS / _ORDERS])


def _genextreme_mean(c: Any) -> Any:
    """``(1 - gamma(1 + c)) / c``: near 0 by the series of ``gammaln(1 + c) / c``, https://dlmf.nist.gov/5.7#E3."""
    near = np.absolute(plain(c)) < 0.1
    small, d = np.where(near, c, 0.0), np.where(near, 1.0, c)
    ratio = _GAMMALN[-1]
    for coefficient in _GAMMALN[-2::-1]:
        ratio = coefficient + small * ratio
    return _when(c > -1, np.where(near, -ratio * sp.exprel(small * ratio), -np.expm1(sp.gammaln(1 + d)) / d))


LAWS = {
    "norm": Law(
        normal, cdf=sp.ndtr, logcdf=sp.log_ndtr, even=True,
        mean=lambda: 0.0, var=lambda: 1.0, entropy=lambda: (1 + LOG_2PI) / 2,
    ),
    "t": Law(
        lambda x, df: ic.student_log_density(df, x),
        cdf=lambda x, df: ic.stdtr(df, x), logcdf=lambda x, df: ic.log_stdtr(df, x), even=True, usual=(3.0,),
        mean=lambda df: _when(df > 1, 0 / df),
        var=lambda df: _when(df > 2, _ratio(finite(df), finite(df) - 2), _when(df > 1, INF, np.nan)),
        entropy=_student_entropy,
    ),
    "gamma": Law(
        lambda x, a: near_gamma_mode(times_log(a - 1, x) - x - sp.gammaln(a), a, x), (0.0, INF),
        cdf=lambda x, a: ic.gammainc(a, x), sf=lambda x, a: ic.gammaincc(a, x),
        logcdf=lambda x, a: ic.log_gammainc(a, x), logsf=lambda x, a: ic.log_gammaincc(a, x),
        mean=lambda a: a, var=lambda a: a, entropy=gamma_entropy,
    ),
    "chi2": Law(
        lambda x, df: near_gamma_mode(times_log(df / 2 - 1, x / 2) - x / 2 - sp.gammaln(df / 2), df / 2, x / 2) - LOG2,
        (0.0, INF),
        cdf=lambda x, df: ic.gammainc(df / 2, x / 2), sf=lambda x, df: ic.gammaincc(df / 2, x / 2),
        logcdf=lambda x, df: ic.log_gammainc(df / 2, x / 2), logsf=lambda x, df: ic.log_gammaincc(df / 2, x / 2),
        mean=lambda df: df, var=lambda df: 2 * df,
        entropy=lambda df: gamma_entropy(df / 2) + LOG2,
    ),
    "invgamma": Law(
        lambda x, a: -(a + 1) * np.log(x) - sp.gammaln(a) - 1 / x, (0.0, INF), open=True,
        cdf=lambda x, a: ic.gammaincc(a, 1 / x), sf=lambda x, a: ic.gammainc(a, 1 / x),
        logcdf=lambda x, a: ic.log_gammaincc(a, 1 / x), logsf=lambda x, a: ic.log_gammainc(a, 1 / x),
        mean=lambda a: _when(a > 1, _ratio(1.0, a - 1)),
        var=lambda a: _when(a > 2, _ratio(1.0, np.square(a - 1) * (a - 2))),
        entropy=lambda a: gamma_entropy(a) - 2 * sp.psi(a),
    ),
    "maxwell": Law(
        lambda x: (LOG2 - math.log(math.pi)) / 2 + times_log(2.0, x) - np.square(x) / 2, (0.0, INF),
        cdf=lambda x: ic.gammainc(1.5, np.square(x) / 2), sf=lambda x: ic.gammaincc(1.5, np.square(x) / 2),
        logcdf=lambda x: ic.log_gammainc(1.5, np.square(x) / 2),
        logsf=lambda x: ic.log_gammaincc(1.5, np.square(x) / 2),
        mean=lambda: 2 * math.sqrt(2 / math.pi), var=lambda: 3 - 8 / math.pi,
        entropy=lambda: EULER + LOG_2PI / 2 - 0.5,
    ),
    "nakagami": Law(
        lambda x, nu: LOG2 + nu * np.log(nu) - sp.gammaln(nu) + times_log(2 * nu - 1, x) - nu * np.square(x),
        (0.0, INF),
        cdf=lambda x, nu: ic.gammainc(nu, nu * np.square(x)), sf=lambda x, nu: ic.gammaincc(nu, nu * np.square(x)),
        logcdf=lambda x, nu: ic.log_gammainc(nu, nu * np.square(x)),
        logsf=lambda x, nu: ic.log_gammaincc(nu, nu * np.square(x)),
        mean=lambda nu: np.exp(half_step(nu)), var=lambda nu: -np.expm1(2 * half_step(nu)),
        entropy=lambda nu: gamma_entropy(nu) - (sp.psi(nu) + np.log(nu)) / 2 - LOG2,
    ),
    "beta": Law(
        lambda x, a, b: near_beta_mode(times_log(a - 1, x) + times_log1m(b - 1, x) - sp.betaln(a, b), a, b, x),
        (0.0, 1.0),
        cdf=lambda x, a, b: ic.betainc(a, b, x), sf=lambda x, a, b: ic.betaincc(a, b, x),
        logcdf=lambda x, a, b: ic.log_betainc(a, b, x), logsf=lambda x, a, b: ic.log_betaincc(a, b, x),
        mean=lambda a, b: a / (a + b), var=lambda a, b: a * b / (np.square(a + b) * (a + b + 1)),
        entropy=lambda a, b: gamma_entropy(a) + gamma_entropy(b) - gamma_entropy(a + b) - sp.psi(a + b),
    ),
    "f": Law(
        _f, (0.0, INF),
        cdf=lambda x, m, n: ic.betainc(m / 2, n / 2, _f_ratios(x, m, n)[0]),
        sf=lambda x, m, n: ic.betainc(n / 2, m / 2, _f_ratios(x, m, n)[1]),
        logcdf=lambda x, m, n: _nearer(*_f_logs(x, m, n)),
        logsf=lambda x, m, n: _nearer(*reversed(_f_logs(x, m, n))),
        mean=lambda m, n: _when(n > 2, _ratio(n, n - 2) + 0 * m),
        var=lambda m, n: _when(n > 4, _ratio(2 * np.square(n) * (n + m - 2), m * np.square(n - 2) * (n - 4))),
        entropy=lambda m, n: np.log(n) - np.log(m) + gamma_entropy(m / 2) + gamma_entropy(n / 2)
        - gamma_entropy((m + n) / 2) - 2 * sp.psi(n / 2) + sp.psi((m + n) / 2),
    ),
    "expon": Law(
        lambda x: -x, (0.0, INF), logsf=lambda x: -x, mean=lambda: 1.0, var=lambda: 1.0, entropy=lambda: 1.0
    ),
    "exponnorm": Law(
        lambda x, k: _exponnorm(x, k) - np.log(k),
        cdf=lambda x, k: np.exp(_exponnorm_logcdf(x, k)), sf=lambda x, k: sp.ndtr(-x) + np.exp(_exponnorm(x, k)),
        logsf=lambda x, k: np.logaddexp(sp.log_ndtr(-x), _exponnorm(x, k)),
        logcdf=_exponnorm_logcdf,
        mean=lambda k: k, var=lambda k: 1 + k * k,
    ),
    "lognorm": Law(
        lambda x, s: normal(np.log(x) / s) - np.log(s * x), (0.0, INF), open=True,
        cdf=lambda x, s: sp.ndtr(np.log(x) / s), sf=lambda x, s: sp.ndtr(-np.log(x) / s),
        logcdf=lambda x, s: sp.log_ndtr(np.log(x) / s), logsf=lambda x, s: sp.log_ndtr(-np.log(x) / s),
        mean=lambda s: np.exp(s * s / 2), var=lambda s: np.expm1(s * s) * np.exp(s * s),
        entropy=lambda s: (1 + LOG_2PI) / 2 + np.log(s),
    ),
    "invgauss": Law(
        lambda x, mu: -LOG_2PI / 2 - 1.5 * np.log(x) - np.square(x / mu - 1) / (2 * x), (0.0, INF), open=True,
        logcdf=_invgauss_logcdf, logsf=_invgauss_logsf, mean=lambda mu: mu, var=lambda mu: mu**3,
    ),
    "weibull_min": Law(
        lambda x, c: np.log(c) + times_log(c - 1, x) - power(x, c), (0.0, INF), logsf=lambda x, c: -power(x, c),
        mean=lambda c: sp.gamma(1 + 1 / c), var=lambda c: sp.gamma(1 + 2 / c) - np.square(sp.gamma(1 + 1 / c)),
        entropy=lambda c: -EULER / c - np.log(c) + EULER + 1,
    ),
    "weibull_max": Law(
        lambda x, c: np.log(c) + times_log(c - 1, -x) - power(-x, c), (-INF, 0.0), logcdf=lambda x, c: -power(-x, c),
        mean=lambda c: -sp.gamma(1 + 1 / c), var=lambda c: sp.gamma(1 + 2 / c) - np.square(sp.gamma(1 + 1 / c)),
        entropy=lambda c: -EULER / c - np.log(c) + EULER + 1,
    ),
    "rayleigh": Law(
        lambda x: np.log(x) - np.square(x) / 2, (0.0, INF), logsf=lambda x: -np.square(x) / 2,
        mean=lambda: math.sqrt(math.pi / 2), var=lambda: 2 - math.pi / 2, entropy=lambda: EULER / 2 + 1 - LOG2 / 2,
    ),
    "halfnorm": Law(
        lambda x: LOG2 + normal(x), (0.0, INF), cdf=lambda x: sp.erf(x * math.sqrt(0.5)), sf=lambda x: 2 * sp.ndtr(-x),
        logcdf=lambda x: log_of(sp.erf(x * math.sqrt(0.5)), 2 * sp.ndtr(-x)),
        logsf=lambda x: _half_logsf(x, sp.erf(x * math.sqrt(0.5)), sp.log_ndtr),
        mean=lambda: math.sqrt(2 / math.pi), var=lambda: 1 - 2 / math.pi,
        entropy=lambda: (math.log(math.pi / 2) + 1) / 2,
    ),
    "pareto": Law(
        lambda x, b: np.log(b) - (b + 1) * np.log(x), (1.0, INF), logsf=lambda x, b: -b * np.log(x),
        mean=lambda b: _when(b > 1, _ratio(b, b - 1)),
        var=lambda b: _when(b > 2, _ratio(b, np.square(b - 1) * (b - 2))),
        entropy=lambda b: 1 + 1 / b - np.log(b),
    ),
    "genpareto": Law(
        _genpareto,
        (0.0, lambda c: np.where(plain(c) < 0, -1 / np.where(plain(c) < 0, c, -1.0), INF)),
        valid=np.isfinite, usual=(0.1,), logsf=lambda x, c: -log1p_over(c, x),
        mean=lambda c: _when(c < 1, _ratio(1.0, 1 - c)),
        var=lambda c: _when(c < 0.5, _ratio(1.0, np.square(1 - c) * (1 - 2 * c))), entropy=lambda c: 1 + c,
    ),
    "genextreme": Law(
        _genextreme,
        (
            lambda c: np.where(plain(c) < 0, 1 / np.where(plain(c) < 0, c, -1.0), -INF),
            lambda c: np.where(plain(c) > 0, 1 / np.where(plain(c) > 0, c, 1.0), INF),
        ),
        valid=np.isfinite, usual=(0.1,), logcdf=lambda x, c: -growing(_extreme(x, c)),
        mean=_genextreme_mean, entropy=lambda c: EULER * (1 - c) + 1,
    ),
    "gumbel_r": Law(
        lambda x: -x - growing(-x), logcdf=lambda x: -growing(-x), logsf=lambda x: _gumbel_log(-x),
        mean=lambda: EULER, var=lambda: math.pi**2 / 6, entropy=lambda: EULER + 1,
    ),
    "gumbel_l": Law(
        lambda x: x - growing(x), logsf=lambda x: -growing(x), logcdf=_gumbel_log,
        mean=lambda: -EULER, var=lambda: math.pi**2 / 6, entropy=lambda: EULER + 1,
    ),
    "fisk": Law(
        lambda x, c: np.log(c) + times_log(c - 1, x) - 2 * log1p_power(x, c), (0.0, INF),
        logsf=lambda x, c: -log1p_power(x, c), logcdf=lambda x, c: -log1p_power(1 / x, c),
        mean=lambda c: _when(c > 1, _ratio(math.pi / c, np.sin(math.pi / c))),
        var=lambda c: _when(
            c > 2,
            _ratio(2 * math.pi / c, np.sin(2 * math.pi / c)) - np.square(_ratio(math.pi / c, np.sin(math.pi / c))),
        ),
        entropy=lambda c: 2 - np.log(c),
    ),
    "burr12": Law(
        lambda x, c, d: np.log(c) + np.log(d) + times_log(c - 1, x) - (d + 1) * log1p_power(x, c), (0.0, INF),
        logsf=lambda x, c, d: -d * log1p_power(x, c),
        mean=lambda c, d: _when(c * d > 1, d * sp.beta(d - 1 / c, 1 + 1 / c)),
        var=lambda c, d: _when(
            c * d > 2, d * sp.beta(d - 2 / c, 1 + 2 / c) - np.square(d * sp.beta(d - 1 / c, 1 + 1 / c))
        ),
    ),
    "lomax": Law(
        lambda x, c: np.log(c) - (c + 1) * np.log1p(x), (0.0, INF), logsf=lambda x, c: -c * np.log1p(x),
        mean=lambda c: _when(c > 1, _ratio(1.0, c - 1)),
        var=lambda c: _when(c > 2, _ratio(c, np.square(c - 1) * (c - 2))), entropy=lambda c: 1 + 1 / c - np.log(c),
    ),
    "powerlaw": Law(
        lambda x, a: np.log(a) + times_log(a - 1, x), (0.0, 1.0), logcdf=lambda x, a: a * np.log(x),
        mean=lambda a: a / (a + 1), var=lambda a: a / ((a + 2) * np.square(a + 1)),
        entropy=lambda a: 1 - 1 / a - np.log(a),
    ),
    "invweibull": Law(
        lambda x, c: np.log(c) - (c + 1) * np.log(x) - power(1 / x, c), (0.0, INF), open=True,
        logcdf=lambda x, c: -power(1 / x, c), usual=(3.0,),
        mean=lambda c: _when(c > 1, sp.gamma(1 - 1 / c)), entropy=lambda c: 1 + EULER + EULER / c - np.log(c),
        var=lambda c: _when(c > 2, sp.gamma(1 - 2 / c) - np.square(sp.gamma(1 - 1 / c))),
    ),
    "chi": Law(
        lambda x, df: LOG2 * (1 - df / 2) - sp.gammaln(df / 2) + times_log(df - 1, x) - np.square(x) / 2, (0.0, INF),
        cdf=lambda x, df: ic.gammainc(df / 2, np.square(x) / 2),
        sf=lambda x, df: ic.gammaincc(df / 2, np.square(x) / 2),
        logcdf=lambda x, df: ic.log_gammainc(df / 2, np.square(x) / 2),
        logsf=lambda x, df: ic.log_gammaincc(df / 2, np.square(x) / 2),
        mean=lambda df: np.sqrt(df) * np.exp(half_step(df / 2)), var=lambda df: -df * np.expm1(2 * half_step(df / 2)),
        entropy=lambda df: gamma_entropy(df / 2) - (sp.psi(df / 2) + LOG2) / 2,
    ),
    "halflogistic": Law(
        lambda x: LOG2 + sp.log_expit(x) + sp.log_expit(-x), (0.0, INF), cdf=lambda x: np.tanh(x / 2),
        sf=lambda x: 2 * sp.expit(-x), logcdf=lambda x: log_of(np.tanh(x / 2), 2 * sp.expit(-x)),
        logsf=lambda x: _half_logsf(x, np.tanh(x / 2), sp.log_expit),
        mean=lambda: 2 * LOG2, var=lambda: math.pi**2 / 3 - 4 * LOG2**2, entropy=lambda: 2 - LOG2,
    ),
    "halfcauchy": Law(
        lambda x: LOG2 - math.log(math.pi) - np.log1p(np.square(x)), (0.0, INF),
        cdf=lambda x: 2 / math.pi * np.arctan(x), sf=lambda x: 2 / math.pi * np.arctan2(1.0, x),
        mean=lambda: INF, var=lambda: INF, entropy=lambda: math.log(2 * math.pi),
    ),
    "logistic": Law(
        lambda x: sp.log_expit(x) + sp.log_expit(-x), cdf=sp.expit, logcdf=sp.log_expit, even=True,
        mean=lambda: 0.0, var=lambda: math.pi**2 / 3, entropy=lambda: 2.0,
    ),
    "laplace": Law(
        lambda x: -np.absolute(x) - LOG2, even=True,
        cdf=lambda x: np.where(plain(x) < 0, _laplace(x), 1 - _laplace(-x)),
        logcdf=lambda x: np.where(plain(x) < 0, x - LOG2, np.log1p(-_laplace(-x))),
        mean=lambda: 0.0, var=lambda: 2.0, entropy=lambda: 1 + LOG2,
    ),
    "cauchy": Law(
        lambda x: -math.log(math.pi) - np.log1p(np.square(x)), cdf=lambda x: np.arctan2(1.0, -x) / math.pi, even=True,
        mean=lambda: np.nan, var=lambda: np.nan, entropy=lambda: math.log(4 * math.pi),
    ),
    "uniform": Law(
        lambda x: 0 * x, (0.0, 1.0), cdf=lambda x: x, logcdf=np.log, logsf=lambda x: np.log1p(-x), sf=lambda x: 1 - x,
        mean=lambda: 0.5, var=lambda: 1 / 12, entropy=lambda: 0.0,
    ),
    "triang": Law(
        _triang, (0.0, 1.0), valid=lambda c: (c >= 0) & (c <= 1), usual=(0.5,), cdf=_triang_cdf, sf=_triang_sf,
        mean=lambda c: (c + 1) / 3, var=lambda c: (1 - c + c * c) / 18, entropy=lambda c: 0.5 - LOG2 + 0 * c,
    ),
    "truncnorm": Law(
        lambda x, a, b: normal(x) - log_mass(a, b), (lambda a, b: a, lambda a, b: b),
        valid=lambda a, b: a < b, usual=(-1.0, 1.0),
        logcdf=_truncnorm_logcdf, logsf=lambda x, a, b: _truncnorm_logcdf(-x, -b, -a),
        mean=lambda a, b: mass_slopes(a, b)[0],
        var=lambda a, b: 1 + mass_slopes(a, b)[1] - np.square(mass_slopes(a, b)[0]),
        entropy=lambda a, b: (1 + LOG_2PI) / 2 + log_mass(a, b) + mass_slopes(a, b)[1] / 2,
    ),
    "skewnorm": Law(
        lambda x, a: LOG2 + normal(x) + sp.log_ndtr(a * x), valid=np.isfinite,
        cdf=_skewnorm_cdf, sf=lambda x, a: _skewnorm_cdf(-x, -a),
        mean=lambda a: math.sqrt(2 / math.pi) * a / np.sqrt(1 + a * a),
        var=lambda a: 1 - 2 / math.pi * a * a / (1 + a * a),
    ),
    "vonmises": Law(
        _vonmises, cdf=_vonmises_cdf, valid=lambda k: k >= 0, period=2 * math.pi,
        entropy=lambda k: k - k * sp.i1e(k) / sp.i0e(k) + np.log(2 * math.pi * sp.i0e(k)),
    ),
}  # fmt: skip


def _entered(name: str, law: Law) -> Continuous:
    found = Continuous(name, law)
    missing = [m for m in ("mean", "var", "entropy") if getattr(law, m) is None]
    limits = f"no {', '.join(missing)}: not in closed form" if missing else ""
    mirrors(f"stats.{name}", derivative="in x, shapes, loc and scale; ppf and rvs implicit", limits=limits)(found)
    return found


DISTRIBUTIONS = {name: _entered(name, law) for name, law in sorted(LAWS.items())}
globals().update(DISTRIBUTIONS)

__all__ = [*DISTRIBUTIONS]
