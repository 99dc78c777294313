"""autograd.scipy.stats: SciPy's distributions, and those of `pullback.scipy.stats` for traced arguments.

Without a traced argument SciPy's own functions are called; so its other methods (`expect`, `moment`) are there as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import scipy.stats

from ...scipy import stats
from .box import ArrayBox, boxed

_UNIVARIATE = "logpdf pdf cdf logcdf sf logsf ppf isf mean var std entropy"
_METHODS = {
    **dict.fromkeys(("norm", "beta", "gamma", "chi2", "t"), _UNIVARIATE),
    "poisson": _UNIVARIATE.replace("pdf", "pmf").replace(" ppf isf", ""),
    "dirichlet": "logpdf pdf mean var cov entropy",
    "multivariate_normal": "logpdf pdf entropy",
}
"""The methods of each distribution that take traced arguments."""


def _inside(value: Any) -> Any:
    return value.tensor if type(value) is ArrayBox else value


def _chosen(method: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's method, or ours if an argument is traced."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(type(a) is ArrayBox for a in (*args, *kwargs.values())):
            return boxed(ours(*map(_inside, args), **{k: _inside(v) for k, v in kwargs.items()}))
        return method(*args, **kwargs)

    return call


def names(distribution: str) -> dict[str, Any]:
    """The names of a distribution: SciPy's methods, those with a derivative replaced."""
    given, ours = getattr(scipy.stats, distribution), getattr(stats, distribution)
    found = {name: getattr(given, name) for name in dir(given) if not name.startswith("_")}
    return {**found, **{m: _chosen(found[m], getattr(ours, m)) for m in _METHODS[distribution].split() if m in found}}
