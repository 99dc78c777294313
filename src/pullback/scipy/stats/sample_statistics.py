"""Statistics of samples that are smooth functions of the data: moments, standard scores, correlation, a fitted line.

Results are SciPy's own objects with Tensors where their fields depend on the data. `nan_policy` is a setting:
"propagate" (the default) or "raise".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp
import scipy.stats

from ... import errors
from ...ops.make.conversion import to
from ...table.operands import plain
from ...tensor.tensor import Tensor
from ..mirror import mirrors
from ..special.composites import seen
from ..user_functions import plain_setting
from .continuous import DISTRIBUTIONS
from .univariate import real, replaced

Interval = type(scipy.stats.pearsonr([0.0, 1.0, 3.0], [0.0, 2.0, 1.0]).confidence_interval())
_beta, _t = DISTRIBUTIONS["beta"], DISTRIBUTIONS["t"]

with np.errstate(all="ignore"):  # through two points, rising and level: SciPy 1.18 has NaN where others have 0, 1
    _RISING, _LEVEL = (scipy.stats.linregress([0.0, 1.0], [0.0, last]) for last in (1.0, 0.0))


def _data(where: str, a: Any, axis: Any, nan_policy: str = "propagate", keepdims: bool = False) -> tuple[Any, Any]:
    """The data, and the axis; for None all data along the last one, which is the only one without keepdims."""
    t = real(a, f"stats.{where}")
    if nan_policy not in ("propagate", "raise"):
        raise ValueError(
            errors.message(
                f"pullback.scipy.stats.{where}: nan_policy", expected="'propagate' or 'raise'", found=repr(nan_policy)
            )
        )
    if nan_policy == "raise" and seen(np.isnan(plain(t))):
        raise ValueError("The input contains nan values")
    if axis is not None:
        return t, axis
    ones = (1,) * (t.dim() - 1) if keepdims else ()
    return np.reshape(t, (*ones, -1)), len(ones)


def _count(a: Any, axis: Any) -> int:
    """How many data are along an axis, or several."""
    return math.prod(a.shape[i] for i in (axis if isinstance(axis, tuple) else (axis,)))


def _in_its_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """The statistic in float32 where all data are, as SciPy gives it; it is computed in float64."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        data = [v for v in (*args, *kwargs.values()) if isinstance(v, (Tensor, np.ndarray))]
        dtypes = {v._data.dtype if isinstance(v, Tensor) else v.dtype for v in data}
        return to(found, np.float32) if dtypes == {np.dtype(np.float32)} else found

    return call


def _central(a: Any, order: int, axis: int, keepdims: bool = False, center: Any = None) -> Any:
    gaps = a - (np.mean(a, axis=axis, keepdims=True) if center is None else center)
    return np.mean(gaps**order, axis=axis, keepdims=keepdims)


def _nothing(second: Any, a: Any, axis: int, keepdims: bool) -> Any:
    """Where data are all the same to rounding, so that their standardised moments mean nothing."""
    mean = np.mean(plain(a), axis=axis, keepdims=keepdims)
    return plain(second) <= np.square(np.finfo(float).eps * mean)


@mirrors("stats.moment", derivative="in a and center", limits="order is a setting")
@_in_its_dtype
def moment(
    a: Any, order: Any = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None, keepdims: bool = False
) -> Any:
    """The mean of ``(a - center) ** order``, around the mean by default."""
    a, axis = _data("moment", a, axis, nan_policy, keepdims)
    (order,) = plain_setting("stats.moment", order=order)
    orders = np.asarray(order)
    if orders.ndim > 1 or not orders.size or np.any(orders != np.round(orders)):
        raise ValueError("All elements of `order` must be integral.")
    return (
        np.stack([_moment(a, int(n), axis, keepdims, center) for n in orders])
        if orders.ndim
        else _moment(a, int(orders), axis, keepdims, center)
    )


def _moment(a: Any, order: int, axis: int, keepdims: bool, center: Any) -> Any:
    if center is None and order == 1:
        return np.mean(a, axis=axis, keepdims=keepdims) * 0
    return _central(a, order, axis, keepdims, center)


@mirrors("stats.skew", derivative="in a")
@_in_its_dtype
def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The third standardised moment."""
    a, axis = _data("skew", a, axis, nan_policy, keepdims)
    n = _count(a, axis)
    second, third = _central(a, 2, axis, keepdims), _central(a, 3, axis, keepdims)
    nothing = _nothing(second, a, axis, keepdims)
    found = third / replaced(nothing, second, 1.0) ** 1.5
    if not bias and n > 2:
        found = found * (math.sqrt(n * (n - 1.0)) / (n - 2.0))
    return replaced(nothing, found, np.nan)


@mirrors("stats.kurtosis", derivative="in a")
@_in_its_dtype
def kurtosis(
    a: Any,
    axis: Any = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The fourth standardised moment, less 3 with `fisher`."""
    a, axis = _data("kurtosis", a, axis, nan_policy, keepdims)
    n = _count(a, axis)
    second, fourth = _central(a, 2, axis, keepdims), _central(a, 4, axis, keepdims)
    nothing = _nothing(second, a, axis, keepdims)
    found = fourth / np.square(replaced(nothing, second, 1.0))
    if not bias and n > 3:
        found = ((n * n - 1.0) * found - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return replaced(nothing, found - 3 if fisher else found, np.nan)


@mirrors("stats.sem", derivative="in a", limits="ddof is a setting")
@_in_its_dtype
def sem(a: Any, axis: Any = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The standard error of the mean."""
    a, axis = _data("sem", a, axis, nan_policy, keepdims)
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / math.sqrt(_count(a, axis))


@mirrors("stats.variation", derivative="in a", limits="ddof is a setting")
@_in_its_dtype
def variation(a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False) -> Any:
    """The standard deviation over the mean."""
    a, axis = _data("variation", a, axis, nan_policy, keepdims)
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / np.mean(a, axis=axis, keepdims=keepdims)


def _mean_of(where: str, of: Callable[[Any], Any], back: Callable[[Any], Any]) -> Callable[..., Any]:
    """A mean of transformed data, transformed back."""

    def mean(a: Any, axis: Any, dtype: Any, weights: Any, nan_policy: str, keepdims: bool) -> Any:
        if dtype is not None:
            raise TypeError(
                errors.message(f"pullback.scipy.stats.{where}", expected="dtype=None", do="convert the data")
            )
        a, place = _data(where, a, axis, nan_policy, keepdims)
        values = of(a)
        if weights is None:
            return back(np.mean(values, axis=place, keepdims=keepdims))
        w = np.reshape(real(weights), (-1,)) if axis is None else real(weights)
        w = w + np.zeros(tuple(values.shape))
        return back(np.sum(values * w, axis=place, keepdims=keepdims) / np.sum(w, axis=place, keepdims=keepdims))

    return mean


_gmean, _hmean = _mean_of("gmean", np.log, np.exp), _mean_of("hmean", lambda a: 1 / a, lambda m: 1 / m)


@mirrors("stats.gmean", derivative="in a and weights")
@_in_its_dtype
def gmean(
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    weights: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The geometric mean."""
    return _gmean(a, axis, dtype, weights, nan_policy, keepdims)


@mirrors("stats.hmean", derivative="in a and weights")
@_in_its_dtype
def hmean(
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    *,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The harmonic mean."""
    return _hmean(a, axis, dtype, weights, nan_policy, keepdims)


@mirrors("stats.zmap", derivative="in scores and compare", limits="ddof is a setting")
@_in_its_dtype
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """The scores less the mean of `compare`, over its standard deviation."""
    return _scores("zmap", scores, compare, axis, ddof, nan_policy)


def _scores(where: str, scores: Any, compare: Any, axis: Any, ddof: int, nan_policy: str) -> Any:
    compare, axis = _data(where, compare, axis, nan_policy)
    mean, deviation = np.mean(compare, axis=axis, keepdims=True), np.std(compare, axis=axis, ddof=ddof, keepdims=True)
    alike = plain(deviation) <= np.absolute(np.finfo(float).eps * plain(mean))
    return replaced(alike, (real(scores) - mean) / replaced(alike, deviation, 1.0), np.nan)


@mirrors("stats.zscore", derivative="in a", limits="ddof is a setting")
@_in_its_dtype
def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """The data less their mean, over their standard deviation.

    >>> import pullback
    >>> from pullback.scipy.stats import zscore
    >>> zscore(pullback.tensor([1.0, 2.0, 3.0], dtype=pullback.float64))
    tensor([-1.2247,  0.0000,  1.2247], dtype=pullback.float64)
    """
    return _scores("zscore", a, a, axis, ddof, nan_policy)


def _tail(law: Any, value: Any, alternative: str, *parameters: Any, **kwds: Any) -> Any:
    """The p-value of an even law."""
    if alternative == "two-sided":
        return 2 * law.sf(np.absolute(value), *parameters, **kwds)
    if alternative not in ("less", "greater"):
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    return (law.cdf if alternative == "less" else law.sf)(value, *parameters, **kwds)


class Correlation(type(scipy.stats.pearsonr([0.0, 1.0, 3.0], [0.0, 2.0, 1.0]))):  # type: ignore[misc]
    """SciPy's result of `pearsonr`, with an interval that is differentiable."""

    def confidence_interval(self, confidence_level: float = 0.95, method: Any = None) -> Any:
        """The interval of the correlation, by Fisher's transformation."""
        if method is not None:
            raise NotImplementedError(
                errors.message("pullback.scipy.stats.pearsonr: resampling has no derivative", do="leave out method")
            )
        error = 1 / math.sqrt(self._n - 3) if self._n > 3 else math.inf
        tail = confidence_level if self._alternative != "two-sided" else 0.5 + confidence_level / 2
        reach, z = float(sp.ndtri(tail)) * error, np.arctanh(self.statistic)
        low = real(-1.0) if self._alternative == "less" else np.tanh(z - reach)
        high = real(1.0) if self._alternative == "greater" else np.tanh(z + reach)
        return Interval(low, high)


@mirrors("stats.pearsonr", derivative="in x and y, statistic and p-value", limits="method=None")
def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Any = 0) -> Any:
    """The correlation of two samples and its p-value, as SciPy's result with the fields `statistic` and `pvalue`."""
    if method is not None:
        raise NotImplementedError(
            errors.message("pullback.scipy.stats.pearsonr: resampling has no derivative", do="leave out method")
        )
    (x, axis), (y, _) = _data("pearsonr", x, axis), _data("pearsonr", y, axis)
    n = x.shape[axis]
    if n != y.shape[axis]:
        scipy.stats.pearsonr(plain(x), plain(y), axis=axis)
        raise ValueError("`x` and `y` must have the same length along `axis`.")
    if n < 2:
        raise ValueError("`x` and `y` must have length at least 2.")
    a, b = (t - np.mean(t, axis=axis, keepdims=True) for t in (x, y))
    r = np.sum(a * b, axis=axis) / np.sqrt(np.sum(a * a, axis=axis) * np.sum(b * b, axis=axis))
    r = np.where(plain(r) > 1, 1.0, np.where(plain(r) < -1, -1.0, r))
    pvalue = real(1.0) if n == 2 else _tail(_beta, r, alternative, n / 2 - 1, n / 2 - 1, loc=-1, scale=2)
    return Correlation(statistic=r, pvalue=pvalue, alternative=alternative, n=n, x=x, y=y, axis=axis)


@mirrors("stats.linregress", derivative="in x and y, every field", limits="one variable; equal x are refused")
def linregress(
    x: Any,
    y: Any,
    alternative: str = "two-sided",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The line fitted by least squares, as SciPy's result, e.g. its `slope`, `intercept` and `pvalue`."""
    (x, axis), (y, _) = (_data("linregress", t, axis, nan_policy, keepdims) for t in (x, y))
    n = x.shape[axis]
    if n != y.shape[axis] or n < 2:
        raise ValueError("x and y must have the same number of points, at least 2, along axis")
    middle_x, middle_y = (np.mean(t, axis=axis, keepdims=True) for t in (x, y))
    a, b = x - middle_x, y - middle_y
    xx, xy, yy = (np.mean(t, axis=axis, keepdims=keepdims) for t in (a * a, a * b, b * b))
    if seen(plain(xx) == 0):
        raise ValueError("Cannot calculate a linear regression if all x values are identical")
    slope = xy / xx
    mx, my = (np.mean(t, axis=axis, keepdims=keepdims) for t in (x, y))
    flat = plain(yy) == 0
    r = np.where(flat, float(_LEVEL.rvalue), xy / np.sqrt(xx * np.where(flat, 1.0, yy)))
    if n == 2:
        pvalue = np.where(flat, float(_LEVEL.pvalue), float(_RISING.pvalue)) + 0 * xy
        error = float(_RISING.stderr) + 0 * slope
    else:
        t = r * np.sqrt((n - 2) / ((1 - r + 1e-20) * (1 + r + 1e-20)))
        pvalue = _tail(_t, t, alternative, float(n - 2))
        error = np.sqrt((1 - np.square(r)) * yy / xx / (n - 2))
    result = type(scipy.stats.linregress([0.0, 1.0, 3.0], [0.0, 2.0, 1.0]))
    return result(
        slope=slope, intercept=my - slope * mx, rvalue=r, pvalue=pvalue, stderr=error,
        intercept_stderr=error * np.sqrt(xx + np.square(mx)),
    )  # fmt: skip


__all__ = [
    "gmean", "hmean", "kurtosis", "linregress", "moment", "pearsonr", "sem", "skew", "variation", "zmap", "zscore",
]  # fmt: skip
