"""autograd.scipy.stats: densities and distribution functions as formulas for traced arguments.

Without a traced argument SciPy's own functions are called; so its other methods (`rvs`, `ppf`) are there as well.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp
import scipy.stats

from .box import ArrayBox, getval

_LOG_2PI = math.log(2 * math.pi)


def _exp_of(log: Callable[..., Any]) -> Callable[..., Any]:
    """The exponential of a formula."""
    return lambda *args, **kwargs: np.exp(log(*args, **kwargs))


def _log_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The logarithm of a formula."""
    return lambda *args, **kwargs: np.log(function(*args, **kwargs))


def _placed(log: Callable[..., Any]) -> Callable[..., Any]:
    """A standard logarithmic density with a location and a scale."""

    def formula(x: Any, *shapes: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        return log((x - loc) / scale, *shapes) - np.log(scale)

    return formula


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    """A standard distribution function with a location and a scale."""

    def formula(x: Any, *shapes: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        return function((x - loc) / scale, *shapes)

    return formula


def _norm_log(x: Any) -> Any:
    return -0.5 * (x**2 + _LOG_2PI)


def _beta_log(x: Any, a: Any, b: Any) -> Any:
    return sp.xlog1py(b - 1.0, -x) + sp.xlogy(a - 1.0, x) - sp.betaln(a, b)


def _gamma_log(x: Any, a: Any) -> Any:
    return sp.xlogy(a - 1.0, x) - x - sp.gammaln(a)


def _chi2_log(x: Any, df: Any) -> Any:
    return sp.xlogy(df / 2.0 - 1.0, x) - x / 2.0 - sp.gammaln(df / 2.0) - df * (math.log(2.0) / 2.0)


def _t_log(x: Any, df: Any) -> Any:
    half = sp.gammaln((df + 1.0) / 2.0) - sp.gammaln(df / 2.0) - 0.5 * np.log(df * math.pi)
    return half - (df + 1.0) / 2.0 * np.log1p(x**2 / df)


def _poisson_log(k: Any, mu: Any) -> Any:
    return np.where(getval(k) % 1 == 0, sp.xlogy(k, mu) - mu - sp.gammaln(k + 1.0), -np.inf)


def _dirichlet_log(x: Any, alpha: Any) -> Any:
    constant = np.sum(sp.gammaln(alpha)) - sp.gammaln(np.sum(alpha))
    powers = alpha - 1.0 if np.ndim(getval(x)) == 1 else (alpha - 1.0)[:, None]
    return np.sum(powers * np.log(x), 0) - constant


def _mvn_log(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    if allow_singular and type(cov) is ArrayBox:
        raise NotImplementedError("the density of multivariate_normal has no derivative by a singular covariance")
    gap, d = x - mean, np.ndim(getval(cov))
    if not d:
        return _norm_log(gap / np.sqrt(cov)) - 0.5 * np.log(cov)
    if allow_singular:
        values, vectors = np.linalg.eigh(cov)
        kept = values > 1e6 * np.finfo(values.dtype).eps * np.max(np.abs(values))
        solved = gap @ ((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)
        rank, log_det = int(kept.sum()), np.sum(np.log(values[kept]))
    else:
        solved, rank = np.linalg.solve(cov, gap.T).T, np.shape(getval(cov))[0]
        log_det = np.linalg.slogdet(cov)[1]
    return -0.5 * (np.sum(gap * solved, axis=-1) + rank * _LOG_2PI + log_det)


def _mvn_entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    return 0.5 * (np.shape(getval(cov))[0] * (1.0 + _LOG_2PI) + np.linalg.slogdet(cov)[1])


def _named(formula: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A formula with a location and a scale, which may also follow the `count` shapes as positional arguments."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.update(zip(("loc", "scale"), args[count:], strict=False))
        return formula(x, *args[:count], **kwargs)

    return call


def _family(count: int, log: Callable[..., Any], **others: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The formulas of a distribution of one variable with `count` shapes."""
    found = {name: _named(_moved(f), count) for name, f in others.items()}
    return {"logpdf": _named(_placed(log), count), "pdf": _named(_exp_of(_placed(log)), count), **found}


def _t_cdf(x: Any, df: Any) -> Any:
    return sp.stdtr(df, x)


FORMULAS: dict[str, dict[str, Callable[..., Any]]] = {
    "norm": _family(
        0,
        _norm_log,
        cdf=sp.ndtr,
        sf=lambda x: sp.ndtr(-x),
        logcdf=sp.log_ndtr,
        logsf=lambda x: sp.log_ndtr(-x),
    ),
    "beta": _family(2, _beta_log, cdf=lambda x, a, b: sp.betainc(a, b, x)),
    "gamma": _family(1, _gamma_log, cdf=lambda x, a: sp.gammainc(a, x)),
    "chi2": _family(1, _chi2_log, cdf=lambda x, df: sp.gammainc(df / 2.0, x / 2.0)),
    "t": _family(1, _t_log, cdf=_t_cdf, logcdf=_log_of(_t_cdf)),
    "poisson": {
        "logpmf": _poisson_log,
        "pmf": _exp_of(_poisson_log),
        "cdf": lambda k, mu: sp.gammaincc(np.floor(getval(k)) + 1.0, mu),
    },
    "dirichlet": {"logpdf": _dirichlet_log, "pdf": _exp_of(_dirichlet_log)},
    "multivariate_normal": {"logpdf": _mvn_log, "pdf": _exp_of(_mvn_log), "entropy": _mvn_entropy},
}
"""For each distribution, the formulas by the names of SciPy's methods."""


def _chosen(method: Callable[..., Any], formula: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's method, or the formula if an argument is traced."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(type(a) is ArrayBox for a in (*args, *kwargs.values())):
            return formula(*args, **kwargs)
        return method(*args, **kwargs)

    return call


def names(distribution: str) -> dict[str, Any]:
    """The names of a distribution: SciPy's methods, those with a formula replaced."""
    given = getattr(scipy.stats, distribution)
    found = {name: getattr(given, name) for name in dir(given) if not name.startswith("_")}
    return {**found, **{name: _chosen(found[name], f) for name, f in FORMULAS[distribution].items()}}
