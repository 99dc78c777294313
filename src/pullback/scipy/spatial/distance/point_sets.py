"""Distances of all pairs of points, and their two forms: a square matrix and a condensed vector."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.spatial.distance as plain_distance

from ....ops.make.conversion import to
from ...array_nodes import floating
from ...mirror import mirrors
from ...user_functions import bare
from .vectors import (
    correlated,
    curtis,
    divergence,
    greatest,
    l1,
    l2,
    power_mean,
    relative,
    skewed,
    squares,
)

_METRICS: dict[str, Callable[..., Any]] = {
    "braycurtis": curtis,
    "canberra": relative,
    "chebyshev": greatest,
    "cityblock": l1,
    "correlation": correlated,
    "cosine": functools.partial(correlated, centered=False),
    "euclidean": l2,
    "jensenshannon": divergence,
    "mahalanobis": lambda u, v, VI: skewed(u, v, VI),
    "minkowski": lambda u, v, p=2, w=None: power_mean(u, v, p, w),
    "seuclidean": lambda u, v, V: l2(u, v, 1 / V),
    "sqeuclidean": squares,
}

_ALIASES = {
    "cityblock": "cblock cb c",
    "chebyshev": "chebychev cheby cheb ch",
    "correlation": "co",
    "cosine": "cos",
    "euclidean": "euclid eu e",
    "jensenshannon": "js",
    "mahalanobis": "mahal mah",
    "minkowski": "mi m pnorm",
    "seuclidean": "se s",
    "sqeuclidean": "sqe sqeuclid",
}
_NAMES = {alias: name for name, several in _ALIASES.items() for alias in [name, *several.split()]}


def _metric(where: str, metric: Any) -> str:
    name = getattr(metric, "__name__", metric) if callable(metric) else str(metric).lower()
    name = _NAMES.get(str(name), str(name))
    if name not in _METRICS or (callable(metric) and metric is not getattr(plain_distance, name, None)):
        if not callable(metric):
            plain_distance.cdist([[0.0]], [[0.0]], metric)  # SciPy's own error for what it does not know
        known = ", ".join(_METRICS)
        raise NotImplementedError(
            f"{where}: the metric {metric!r} has no derivatives here; one of {known} has.\n"
            "  What to do: for your own function of two vectors, use func.vmap twice over it"
        )
    return name


def _settings(name: str, points: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The metric's own arguments, where they are not given computed from all points as SciPy computes them."""
    given = {k: v if k in ("p", "base") or v is None else floating(v) for k, v in settings.items()}
    if name in ("seuclidean", "mahalanobis"):
        whole = np.concatenate(points)
        if name == "seuclidean" and given.get("V") is None:
            given["V"] = np.var(whole, axis=0, ddof=1)
        if name == "mahalanobis" and given.get("VI") is None:
            centred = whole - np.mean(whole, axis=0)
            given["VI"] = np.linalg.inv(np.matmul(centred.T, centred) / (len(whole) - 1)).T
    return {k: v for k, v in given.items() if v is not None}


def _no_out(where: str, out: Any) -> None:
    if out is not None:
        raise TypeError(f"{where}: out= is not supported; the result is a new Tensor")


def _few(x: Any) -> Any:
    return np.asarray(bare(x))[:3] if x.ndim else np.asarray(bare(x))


@mirrors(
    "spatial.distance.cdist",
    derivative="a composition; in both sets of points, weights, V and VI",
    limits="metrics of booleans have no derivative; at zero distance the derivative is taken as zero",
)
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distances of the points XA (m, d) from the points XB (n, d), of shape (m, n).

    >>> import pullback
    >>> a = pullback.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    >>> cdist(a, [[0.0, 0.0]]).sum().backward()
    >>> a.grad
    tensor([[0.0000, 0.0000],
            [0.6000, 0.8000]])
    """
    _no_out("cdist", out)
    name = _metric("cdist", metric)
    a, b = floating(XA), floating(XB)
    plain = {k: bare(v) for k, v in kwargs.items()}
    if name in ("seuclidean", "mahalanobis"):
        plain_distance.cdist(bare(a), bare(b), name, **plain)  # SciPy's checks
    else:
        plain_distance.cdist(_few(a), _few(b), name, **plain)
    a, b = to(a, np.float64), to(b, np.float64)
    given = _settings(name, [a, b], kwargs)
    return _METRICS[name](a[:, None, :], b[None, :, :], **given)


@mirrors(
    "spatial.distance.pdist",
    derivative="a composition; in the points, weights, V and VI",
    limits="metrics of booleans have no derivative; at zero distance the derivative is taken as zero",
)
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distances of all pairs of the points X (n, d), as a vector of n (n - 1) / 2 entries.

    >>> import pullback
    >>> pdist(pullback.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426], dtype=pullback.float64)
    """
    _no_out("pdist", out)
    name = _metric("pdist", metric)
    x = floating(X)
    plain = {k: bare(v) for k, v in kwargs.items()}
    whole = name in ("seuclidean", "mahalanobis")
    plain_distance.pdist(bare(x) if whole else _few(x), name, **plain)  # SciPy's checks
    x = to(x, np.float64)
    given = _settings(name, [x], kwargs)
    first, second = np.triu_indices(len(x), 1)
    return _METRICS[name](x[first], x[second], **given)


@mirrors("spatial.distance.squareform", derivative="linear: entries moved", limits="a matrix must be symmetric")
def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """A condensed vector as a square matrix, or the upper part of a square matrix as a vector.

    >>> import pullback
    >>> squareform(pullback.tensor([1.0, 2.0, 3.0]))
    tensor([[0., 1., 2.],
            [1., 0., 3.],
            [2., 3., 0.]])
    """
    x = floating(X)
    made = plain_distance.squareform(bare(x), force, checks)
    if x.ndim == 2:
        return x[np.triu_indices(len(x), 1)]
    n = len(made)
    entry = np.zeros((n, n), int)
    first, second = np.triu_indices(n, 1)
    entry[first, second] = entry[second, first] = np.arange(1, len(x) + 1)
    return np.concatenate([np.zeros(1, x._data.dtype), x])[entry]
