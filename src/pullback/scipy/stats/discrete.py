"""The distributions of whole numbers: an entry each, for location 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from ...table.operands import plain
from ...tensor.tensor import Lifted
from ..in_programs import in_programs
from ..mirror import mirrors
from ..special import incomplete as ic
from ..special.large_parameters import near_beta_mode, near_gamma_mode
from .formulas import times_log, times_log1m
from .univariate import Discrete, Law

INF = np.inf


def _log_choose(n: Any, k: Any) -> Any:
    return sp.gammaln(n + 1) - sp.gammaln(k + 1) - sp.gammaln(n - k + 1)


def _log_orders(k: Any, n: Any) -> Any:
    return sp.gammaln(n + k) - sp.gammaln(k + 1) - sp.gammaln(n)


def _bounded_exp(x: Any) -> Any:
    """``exp(x)``, finite beside a factor that is 0."""
    return np.exp(np.minimum(x, 700.0))


def _probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _binom(k: Any, n: Any, p: Any) -> Any:
    """The density of p for the beta law of k + 1 and n - k + 1, over n + 1."""
    whole = np.log(n + 1)
    found = _log_choose(n, k) + times_log(k, p) + times_log1m(n - k, p)
    return near_beta_mode(found + whole, k + 1, n - k + 1, p) - whole


def _nbinom(k: Any, n: Any, p: Any) -> Any:
    """The density of p for the beta law of n and k + 1, times p over n + k."""
    ratio = np.log(p) - np.log(n + k)
    found = _log_orders(k, n) + times_log(n, p) + times_log1m(k, p)
    return near_beta_mode(found - ratio, n, k + 1, p) + ratio


def _betabinom(k: Any, n: Any, a: Any, b: Any) -> Any:
    return _log_choose(n, k) + sp.betaln(k + a, n - k + b) - sp.betaln(a, b)


def _betabinom_cdf(k: Any, n: Any, a: Any, b: Any) -> Any:
    """The sum of the probabilities up to k, whose values are looked at; a program calls it as a whole."""
    every = k
    while isinstance(every, Lifted) and every._data.inside is not None:  # under vmap, of all samples
        every = every._data.inside
    each = np.arange(float(np.max(plain(every))) + 1)
    wanted = each <= np.expand_dims(k, -1)
    j = np.where(wanted, each, 0.0)
    terms = np.exp(_betabinom(j, *[np.expand_dims(s, -1) for s in (n, a, b)]))
    return np.sum(np.where(wanted, terms, 0.0), axis=-1)


_betabinom_sum = in_programs("stats.betabinom.cdf", _betabinom_cdf, False)


def _zipf_ratio(k: Any, a: Any) -> Any:
    return ic.zeta2(a, k + 1) / ic.zeta2(a, 1.0)


LAWS = {
    "bernoulli": Law(
        lambda k, p: times_log(k, p) + times_log1m(1 - k, p), (0.0, 1.0), valid=_probability, usual=(0.5,),
        cdf=lambda k, p: 1 - p, sf=lambda k, p: p, mean=lambda p: p, var=lambda p: p * (1 - p),
        entropy=lambda p: sp.entr(p) + sp.entr(1 - p), mass=lambda k, p: p**k * (1 - p) ** (1 - k),
    ),
    "betabinom": Law(
        _betabinom, (0.0, lambda n, a, b: n), valid=lambda n, a, b: (n >= 0) & (n == np.floor(n)) & (a > 0) & (b > 0),
        usual=(1.0, 1.0, 1.0), whole="n", cdf=_betabinom_sum, mean=lambda n, a, b: n * a / (a + b),
        var=lambda n, a, b: n * (a + b + n) * a * b / (np.square(a + b) * (a + b + 1)),
    ),
    "binom": Law(
        _binom, (0.0, lambda n, p: n),
        valid=lambda n, p: (n >= 0) & (n == np.floor(n)) & _probability(p), usual=(1.0, 0.5), whole="n",
        cdf=lambda k, n, p: ic.betaincc(k + 1, n - k, p), sf=lambda k, n, p: ic.betainc(k + 1, n - k, p),
        logcdf=lambda k, n, p: ic.log_betaincc(k + 1, n - k, p), logsf=lambda k, n, p: ic.log_betainc(k + 1, n - k, p),
        mean=lambda n, p: n * p, var=lambda n, p: n * p * (1 - p),
        mass=lambda k, n, p: _bounded_exp(_log_choose(n, k)) * p**k * (1 - p) ** (n - k),
    ),
    "geom": Law(
        lambda k, p: times_log1m(k - 1, p) + np.log(p), (1.0, INF), valid=lambda p: (p > 0) & (p <= 1), usual=(0.5,),
        logsf=lambda k, p: times_log1m(k, p), mean=lambda p: 1 / p, var=lambda p: (1 - p) / np.square(p),
        entropy=lambda p: (sp.entr(p) + sp.entr(1 - p)) / p, mass=lambda k, p: p * (1 - p) ** (k - 1),
    ),
    "nbinom": Law(
        _nbinom,
        (0.0, INF), valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1), usual=(1.0, 0.5),
        cdf=lambda k, n, p: ic.betainc(n, k + 1, p), sf=lambda k, n, p: ic.betaincc(n, k + 1, p),
        logcdf=lambda k, n, p: ic.log_betainc(n, k + 1, p), logsf=lambda k, n, p: ic.log_betaincc(n, k + 1, p),
        mean=lambda n, p: n * (1 - p) / p, var=lambda n, p: n * (1 - p) / np.square(p),
        mass=lambda k, n, p: _bounded_exp(_log_orders(k, n)) * p**n * (1 - p) ** k,
    ),
    "poisson": Law(
        lambda k, mu: near_gamma_mode(times_log(k, mu) - sp.gammaln(k + 1) - mu, k + 1, mu), (0.0, INF),
        valid=lambda mu: mu >= 0,
        cdf=lambda k, mu: ic.gammaincc(k + 1, mu), sf=lambda k, mu: ic.gammainc(k + 1, mu),
        logcdf=lambda k, mu: ic.log_gammaincc(k + 1, mu), logsf=lambda k, mu: ic.log_gammainc(k + 1, mu),
        mean=lambda mu: mu, var=lambda mu: mu, mass=lambda k, mu: mu**k * np.exp(-mu - sp.gammaln(k + 1)),
    ),
    "zipf": Law(
        lambda k, a: -a * np.log(k) - np.log(ic.zeta2(a, 1.0)), (1.0, INF), valid=lambda a: a > 1, usual=(2.0,),
        sf=_zipf_ratio,
        mean=lambda a: _zipf_moment(a, 1), var=lambda a: _zipf_moment(a, 2) - np.square(_zipf_moment(a, 1)),
    ),
}  # fmt: skip


def _zipf_moment(a: Any, order: int) -> Any:
    """Infinite up to ``a = order + 1``."""
    exists = plain(a) > order + 1
    return np.where(exists, ic.zeta2(np.where(exists, a - order, 2.0), 1.0) / ic.zeta2(a, 1.0), INF)


def _entered(name: str, law: Law) -> Discrete:
    found = Discrete(name, law)
    missing = [m for m in ("mean", "var", "entropy") if getattr(law, m) is None]
    notes = [f"no {', '.join(missing)}: not in closed form"] if missing else []
    notes += [f"{law.whole} is a whole number"] if law.whole else []
    mirrors(
        f"stats.{name}",
        derivative="in the shapes; steps in k and loc",
        limits="; ".join(["rvs by the score function", *notes]),
    )(found)
    return found


DISTRIBUTIONS = {name: _entered(name, law) for name, law in sorted(LAWS.items())}
globals().update(DISTRIBUTIONS)

__all__ = [*DISTRIBUTIONS]
