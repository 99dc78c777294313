"""Distances of two vectors as compositions, along the last axis; the other axes broadcast.

Where a distance has a corner, at zero, its derivative is taken as zero, as in PyTorch: there is no NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.spatial.distance as plain_distance
import scipy.special

from ....ops.make.conversion import to
from ...array_nodes import floating
from ...mirror import mirrors
from ...user_functions import bare, plain_setting

_CORNER = "at zero distance the derivative is taken as zero"
_CONJUGATES = plain_distance.sqeuclidean(np.array([1j]), [0.0]).real > 0
"""Whether SciPy's squares of complex differences are those of their sizes, as since 1.18."""


def root(s: Any) -> Any:
    """The square root, with the derivative zero at zero."""
    none = s == 0
    return np.where(none, 0.0, np.sqrt(np.where(none, 1.0, s)))


def ratio(a: Any, b: Any) -> Any:
    """``a / b``, and 0 / 0 as NaN without a gradient that is NaN."""
    none = b == 0
    return np.where(none, np.where(a == 0, math.nan, math.inf), a / np.where(none, 1.0, b))


def weighted(x: Any, w: Any) -> Any:
    return x if w is None else w * x


def l1(u: Any, v: Any, w: Any = None) -> Any:
    return np.sum(weighted(np.abs(u - v), w), axis=-1)


def squares(u: Any, v: Any, w: Any = None) -> Any:
    d = u - v
    return np.sum(weighted(np.conj(d) * d if _CONJUGATES and np.iscomplexobj(d) else np.square(d), w), axis=-1)


def l2(u: Any, v: Any, w: Any = None) -> Any:
    d = u - v
    if np.iscomplexobj(d):
        return root(np.sum(weighted(np.square(np.real(d)) + np.square(np.imag(d)), w), axis=-1))
    return root(squares(u, v, w))


def greatest(u: Any, v: Any, w: Any = None) -> Any:
    return np.max(weighted(np.abs(u - v), None if w is None else w > 0), axis=-1)


def power_mean(u: Any, v: Any, p: Any, w: Any = None) -> Any:
    """``sum(w |u - v|^p)^(1 / p)``, scaled by its greatest term, so that it neither overflows nor loses precision."""
    if not hasattr(p, "requires_grad"):
        if p == 1:
            return l1(u, v, w)
        if p == 2:
            return l2(u, v, w)
        if p == math.inf:
            return greatest(u, v, None if w is None else w != 0)
    size = np.abs(u - v)
    flat = size == 0
    total = np.sum(np.where(flat, 0.0, weighted(np.power(np.where(flat, 1.0, size), p), w)), axis=-1)
    none = total == 0
    return np.where(none, 0.0, np.power(np.where(none, 1.0, total), 1 / p))


def correlated(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    if w is not None:
        w = w / np.sum(w)
    if centered:
        u, v = (
            x - (np.mean(x, axis=-1, keepdims=True) if w is None else np.sum(x * w, -1, keepdims=True)) for x in (u, v)
        )
    uv, uu, vv = (np.sum(weighted(a * b, w), axis=-1) for a, b in ((u, v), (u, u), (v, v)))
    return np.clip(1.0 - ratio(uv, root(uu * vv)), 0.0, 2.0)


def curtis(u: Any, v: Any, w: Any = None) -> Any:
    return ratio(np.sum(weighted(np.abs(u - v), w), -1), np.sum(weighted(np.abs(u + v), w), -1))


def relative(u: Any, v: Any, w: Any = None) -> Any:
    total = np.abs(u) + np.abs(v)
    none = total == 0
    return np.sum(weighted(np.where(none, 0.0, np.abs(u - v) / np.where(none, 1.0, total)), w), axis=-1)


def skewed(u: Any, v: Any, inverse: Any) -> Any:
    d = u - v
    return root(np.sum(np.matmul(d, inverse) * d, axis=-1))


def divergence(p: Any, q: Any, base: Any = None, axis: int = -1, keepdims: bool = False) -> Any:
    p, q = (x / np.sum(x, axis=axis, keepdims=True) for x in (p, q))
    m = (p + q) / 2.0
    total = np.sum(_entropy(p, m) + _entropy(q, m), axis=axis, keepdims=keepdims)
    total = total if base is None else total / np.log(base)
    return root(np.maximum(total, 0.0) / 2.0)


def _entropy(p: Any, m: Any) -> Any:
    """``p log(p / m)``, zero where p is, with the limit of its derivative replaced by zero there."""
    bad = (p < 0) | (m < 0)
    none = (p <= 0) | (m <= 0)
    found = scipy.special.rel_entr(np.where(none, 1.0, p), np.where(none, 1.0, m))
    return np.where(bad, math.inf, np.where(none, 0.0, found))


def _pair(name: str, u: Any, v: Any, *others: Any) -> list[Any]:
    """The vectors as Tensors, after SciPy's own checks."""
    given = [None if x is None else floating(x) for x in (u, v, *others)]
    getattr(plain_distance, name)(*[bare(x) for x in given])
    return given


# The public functions -------------------------------------------------------------------------------------------------


def _of_weights(
    name: str, distance: Callable[..., Any], formula: str, limits: str, doubles: bool = False
) -> Callable[..., Any]:
    """doubles: SciPy takes v, not u, as float64, and warns where that drops imaginary parts."""

    def function(u: Any, v: Any, w: Any = None) -> Any:
        u, v, w = _pair(name, u, v, w)
        return distance(u, to(v, np.float64) if doubles else v, w)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The distance ``{formula}`` of two vectors, differentiable in u, v and the weights w."
    derivative = "a composition; in u, v and w"
    return mirrors(f"spatial.distance.{name}", derivative=derivative, limits=limits)(function)


euclidean = _of_weights("euclidean", l2, "sqrt(sum(w (u - v)^2))", _CORNER)
sqeuclidean = _of_weights("sqeuclidean", squares, "sum(w (u - v)^2)", "")
cityblock = _of_weights("cityblock", l1, "sum(w |u - v|)", "corners where coordinates are equal")
chebyshev = _of_weights("chebyshev", greatest, "max(|u - v|)", "corners where two differences are equal; zero in w")
braycurtis = _of_weights(
    "braycurtis", curtis, "sum(w |u - v|) / sum(w |u + v|)", "corners where coordinates are equal", True
)
canberra = _of_weights(
    "canberra", relative, "sum(w |u - v| / (|u| + |v|))", "corners where coordinates are equal", True
)
cosine = _of_weights(
    "cosine", lambda u, v, w: correlated(u, v, w, centered=False), "1 - u v / (|u| |v|)", "NaN for a vector of zeros"
)


@mirrors(
    "spatial.distance.correlation",
    derivative="a composition; in u, v and w",
    limits="NaN for equal entries",
)
def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """One minus the correlation of two vectors.

    >>> import pullback
    >>> correlation(pullback.tensor([1.0, 0.0, 0.0]), [0.0, 1.0, 0.0])
    tensor(1.5000, dtype=pullback.float64)
    """
    u, v, w = _pair("correlation", u, v, w)
    return correlated(u, v, w, centered)


@mirrors("spatial.distance.minkowski", derivative="a composition; in u, v, p and w", limits=_CORNER)
def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    """The distance ``sum(w |u - v|^p)^(1 / p)``, differentiable in p as well.

    >>> import pullback
    >>> minkowski(pullback.tensor([1.0, 0.0]), [0.0, 1.0], 1)
    tensor(2., dtype=pullback.float64)
    """
    u, v, w = (None if x is None else floating(x) for x in (u, v, w))
    plain = [bare(x) for x in (u, v, w)]
    plain_distance.minkowski(plain[0], plain[1], bare(p).item() if hasattr(p, "_data") else p, plain[2])
    return power_mean(u, v, p, w)


@mirrors("spatial.distance.seuclidean", derivative="a composition; in u, v and V", limits=_CORNER)
def seuclidean(u: Any, v: Any, V: Any) -> Any:
    """The Euclidean distance after a division of each coordinate by the root of its variance.

    >>> import pullback
    >>> seuclidean(pullback.tensor([1.0, 0.0]), [0.0, 0.0], [0.25, 1.0])
    tensor(2., dtype=pullback.float64)
    """
    u, v, V = _pair("seuclidean", u, v, V)
    return l2(u, v, 1 / V)


@mirrors("spatial.distance.mahalanobis", derivative="a composition; in u, v and VI", limits=_CORNER)
def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    """The distance ``sqrt((u - v) VI (u - v))``.

    >>> import pullback
    >>> mahalanobis(pullback.tensor([1.0, 0.0]), [0.0, 0.0], [[4.0, 0.0], [0.0, 1.0]])
    tensor(2., dtype=pullback.float64)
    """
    u, v, inverse = _pair("mahalanobis", u, v, VI)
    return skewed(u, v, np.atleast_2d(inverse))


@mirrors(
    "spatial.distance.jensenshannon",
    derivative="a composition; in p and q",
    limits=f"{_CORNER}; so it is where p or q is zero",
)
def jensenshannon(p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False) -> Any:
    """The root of the Jensen-Shannon divergence of probabilities along an axis.

    >>> import pullback
    >>> jensenshannon(pullback.tensor([1.0, 0.0]), [0.0, 1.0], 2.0)
    tensor(1., dtype=pullback.float64)
    """
    (base,) = plain_setting("spatial.distance.jensenshannon", base=base)
    return divergence(floating(p), floating(q), base, axis, keepdims)
