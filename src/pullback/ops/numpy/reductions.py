"""NumPy's reductions, statistics, sorting and searching, with arguments or a meaning that differ from torch's.

`np.var` divides by n, `np.median` takes the mean of the middle two, `np.quantile` has methods. Arguments that are not
listed here (``out=``, ``where=``, ``initial=``) are refused: for a Tensor they have no meaning, or are not supported.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...table.entry import constant, special
from ...tensor.arrays import as_array, wrap_axes, wrap_axis
from ...tensor.tensor import NUMPY, Tensor, wrap
from ..elementwise.limits import where
from ..elementwise.value_checks import check_values
from ..make.conversion import to
from ..reduce.counting import bincount, histogram
from ..reduce.differences import diff, gradient_along, strips, trapezoid, widths
from ..reduce.extremes import amax, amin
from ..reduce.picking import many_jvp, many_rule
from ..reduce.quantiles import INTERPOLATIONS, check_probability, quantiles
from ..reduce.searching import distinct_elements, isin, searchsorted
from ..reduce.sorting import argsort, sort
from ..reduce.statistics import corrcoef, cov, std, var
from ..reduce.sums import mean, nanmean, nansum, prod, sum
from ..shape.axes import permute
from ..shape.joining import cat
from ..shape.reshape import expand, flatten, reshape


def _tensor(value: Any, dtype: Any = None) -> Tensor:
    """An array, a number or a Tensor as a Tensor, converted if a dtype is given."""
    found = value if isinstance(value, Tensor) else wrap(as_array(value))
    return found if dtype is None else to(found, dtype)


def _floating(a: Any) -> Tensor:
    """The value as a Tensor, with integers and bools converted to float64, as in NumPy."""
    t = _tensor(a)
    return to(t, np.float64) if t._data.dtype.kind in "biu" else t


def _one_axis(a: Tensor, axis: Any) -> tuple[Tensor, Any]:
    """A tensor with the axes in a tuple joined into one, the last, and the number of that axis."""
    if not isinstance(axis, (tuple, list)):
        return a, axis
    shape = a._data.shape
    axes = wrap_axes(axis, len(shape)) or ()
    kept = [i for i in range(len(shape)) if i not in axes]
    moved = permute(a, (*kept, *axes))
    return reshape(moved, (*(shape[i] for i in kept), math.prod(shape[i] for i in axes))), -1


def _kept(a: Tensor, axis: Any) -> tuple[int, ...]:
    """The shape of a reduction with `keepdims`: reduced axes have length 1."""
    axes = wrap_axes(axis, a._data.ndim)
    return tuple(1 if axes is None or i in axes else n for i, n in enumerate(a._data.shape))


# Reductions -----------------------------------------------------------------------------------------------------------


def _mean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    return mean(_floating(a), axis, keepdims, dtype=dtype)


def _prod(a: Tensor, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    joined, one = _one_axis(a, axis)
    found = prod(joined, one, keepdims and one is axis, dtype=dtype)
    return found if one is axis or not keepdims else reshape(found, _kept(a, axis))


def _moment(moment: Any) -> Any:
    def call(
        a: Any, axis: Any = None, dtype: Any = None, *, ddof: Any = 0, keepdims: bool = False, correction: Any = None
    ) -> Tensor:
        given = _floating(a) if dtype is None else _tensor(a, dtype)
        found = moment(given, axis, keepdim=keepdims, correction=ddof if correction is None else correction)
        return found if dtype is None else to(found, dtype)  # which may be complex

    return call


def _ptp(a: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return amax(a, axis, keepdims) - amin(a, axis, keepdims)


def _nan_extreme(best: Any, worst: float) -> Any:
    def call(a: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        if a._data.dtype.kind not in "fV":
            return best(a, axis, keepdims)
        missing = np.isnan(a)
        found = best(where(missing, worst, a), axis, keepdims)
        return where(np.all(missing, axis=axis, keepdims=keepdims), np.nan, found)

    return call


def _nan_moment(root: bool) -> Any:
    def call(
        a: Any, axis: Any = None, dtype: Any = None, *, ddof: Any = 0, keepdims: bool = False, correction: Any = None
    ) -> Any:
        a = _floating(a) if dtype is None else _tensor(a, dtype)
        missing = np.isnan(a)
        number = np.sum(~missing, axis=axis, keepdims=True)
        centred = where(missing, 0, a - np.nansum(a, axis=axis, keepdims=True) / number)
        square = np.square(np.absolute(centred)) if a.is_complex() else np.square(centred)
        left = np.sum(~missing, axis=axis, keepdims=keepdims) - (ddof if correction is None else correction)
        found = np.sum(square, axis=axis, keepdims=keepdims) / where(left > 0, left, np.nan)
        found = where(found == 0, 0, np.sqrt(where(found == 0, 1, found))) if root else found
        return found if dtype is None else to(found, dtype)

    return call


def _nanprod(a: Tensor, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    return _prod(a if a._data.dtype.kind in "biu" else where(np.isnan(a), 1, a), axis, dtype, keepdims=keepdims)


def _nansum(a: Tensor, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    if a._data.dtype.kind == "c":
        return sum(where(np.isnan(a), 0, a), axis, keepdims, dtype=dtype)
    return nansum(a, axis, keepdims, dtype=dtype)


def _nanmean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    return nanmean(_floating(a), axis, keepdims, dtype=dtype)


def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    a = _floating(a)
    w = np.ones_like(a) if weights is None else _floating(weights)
    if w._data.shape != a._data.shape:
        axes = () if axis is None else wrap_axes(axis, a._data.ndim) or ()
        if not axes or w._data.shape != tuple(a._data.shape[i] for i in axes):
            raise TypeError(
                errors.message(
                    "numpy.average()",
                    expected="weights of the shape of a, or of its axes in axis",
                    found=f"{errors.describe(w)}, axis={axis}",
                )
            )
        w = permute(w, tuple(int(i) for i in np.argsort(axes)))
        w = reshape(w, tuple(n if i in axes else 1 for i, n in enumerate(a._data.shape)))
    total = sum(expand(w, a._data.shape), axis, keepdims)
    found = sum(a * w, axis, keepdims) / total
    return (found, expand(total, found._data.shape)) if returned else found


# Quantiles ------------------------------------------------------------------------------------------------------------

_BETWEEN = {  # the constants alpha and beta from Hyndman and Fan, Sample quantiles in statistical packages (1996)
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def _ranks(method: str) -> Any:
    """A function from a quantile and a number of elements to the rank, counted from 0."""
    if method == "inverted_cdf":
        return lambda q, number: np.clip(np.ceil(q * number) - 1, 0, None)
    if method not in _BETWEEN:
        return lambda q, number: q * (number - 1)
    alpha, beta = _BETWEEN[method]
    return lambda q, number: np.minimum(np.clip(number * q + (alpha + q * (1 - alpha - beta)) - 1, 0, None), number - 1)


def _quantile(name: str, skip_nan: bool, scale: float) -> Any:
    def call(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
        known = *INTERPOLATIONS, *_BETWEEN, "inverted_cdf"
        if method not in known:
            raise ValueError(
                errors.message(f"{name}()", expected=f"method to be one of {', '.join(known)}", found=repr(method))
            )
        a, q = _floating(a), check_values(check_probability, _tensor(q, np.float64) / scale)
        joined, one = _one_axis(a, axis)
        how = "linear" if method in _BETWEEN else "lower" if method == "inverted_cdf" else method
        found = quantiles(joined, reshape(q, -1), one, False, how, skip_nan, _ranks(method))
        left = _kept(a, axis) if keepdims else found._data.shape[1:]
        return reshape(found, (*q._data.shape, *left))

    return call


def _median(name: str, skip_nan: bool) -> Any:
    def call(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return _quantile(name, skip_nan, 1)(a, 0.5, axis, keepdims=keepdims)

    return call


# Sorting, searching ---------------------------------------------------------------------------------------------------


def _sorting(find: Any) -> Any:
    def call(a: Tensor, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Any:
        found = find(flatten(a), 0) if axis is None else find(a, axis)
        return found[0] if isinstance(found, tuple) else found

    return call


def _partitioned(input: Any, kth: Any, axis: int) -> Any:
    return np.argpartition(input, kth, axis=axis) if input.ndim else np.zeros((), np.int64)


@special(method=False, batch=dims("dim"), input=many_rule, jvp=many_jvp)
def _partition(input: Any, kth: Any, dim: int) -> Any:
    """`input` with the sorted elements at `kth`, smaller ones before, larger ones after; and the positions."""
    index = _partitioned(input, kth, dim)
    return (np.take_along_axis(input, index, dim) if input.ndim else np.copy(input)), index


@constant(method=False, batch=dims("dim"))
def _argpartition(input: Any, kth: Any, dim: int) -> Any:
    return _partitioned(input, kth, dim)


def _numpy_partition(a: Tensor, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Tensor:
    a, axis = (flatten(a), 0) if axis is None else (a, wrap_axis(axis, a._data.ndim))
    return _partition(a, kth, axis)[0]


def _numpy_argpartition(a: Tensor, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Tensor:
    a, axis = (flatten(a), 0) if axis is None else (a, wrap_axis(axis, a._data.ndim))
    return _argpartition(a, kth, axis)


@constant(method=False)
def _first_places(inverse: Any, number: int) -> Any:
    """The first position of each of `number` distinct elements."""
    found = np.full(number, inverse.size)
    np.minimum.at(found, np.reshape(inverse, -1), np.arange(inverse.size))
    return found


def _unique(
    ar: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    values, inverse, counts = distinct_elements(ar, axis, equal_nan)
    found = [values]
    if return_index:
        found.append(_first_places(inverse, len(counts)))
    found += [inverse] * return_inverse + [counts] * return_counts
    return tuple(found) if len(found) > 1 else values


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    by = None if sorter is None else _tensor(sorter, np.int64)
    return searchsorted(_tensor(a), _tensor(v), side=side, sorter=by)


def _isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Tensor:
    return isin(_tensor(element), _tensor(test_elements), assume_unique=assume_unique, invert=invert)


def _in1d(ar1: Any, ar2: Any, **given: Any) -> Tensor:
    return _isin(np.ravel(ar1), ar2, **given)


# Differences, tables, counts ------------------------------------------------------------------------------------------


def _end(a: Tensor, end: Any, axis: int) -> Any:
    """A tensor that `np.diff` puts before or after `a`; a number stands for one slice."""
    if end is None or np.ndim(end):
        return None if end is None else _tensor(end)
    shape = list(a._data.shape)
    shape[axis] = 1
    return expand(_tensor(end), tuple(shape))


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    a = _tensor(a)
    return diff(a, n, axis, _end(a, prepend, axis), _end(a, append, axis))


def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    inner = diff(flatten(_tensor(ary)))
    parts = [to_begin, inner, to_end]
    return cat([flatten(_tensor(p, inner.dtype)) for p in parts if p is not None])


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    if x is None and np.ndim(dx):  # the widths of the strips
        y = _floating(y)
        axis = wrap_axis(axis, y._data.ndim)
        return sum(strips(y, None, _tensor(dx), axis), axis)
    return trapezoid(_floating(y), None if x is None else _tensor(x), dx=dx if x is None else None, dim=axis)


def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = _floating(f)
    axes = wrap_axes(axis, f._data.ndim) if axis is not None else tuple(range(f._data.ndim))
    axes = axes or ()
    spacing = [1.0] * len(axes) if not varargs else list(varargs) * (len(axes) if len(varargs) == 1 else 1)
    if len(spacing) != len(axes):
        raise TypeError(
            errors.message(
                "numpy.gradient()", expected=f"a spacing for each of {len(axes)} axes", found=f"{len(varargs)}"
            )
        )
    found = []
    for i, h in zip(axes, spacing, strict=True):
        width = widths(_floating(h), f._data.ndim, i) if np.ndim(h) else h
        found.append(gradient_along(f, i, width, edge_order))
    return found[0] if len(found) == 1 else tuple(found)


@functools.cache
def _turns_a_row() -> bool:
    """Whether NumPy reads a matrix of one row as one observation with ``rowvar=False``, as it does since 2.2."""
    return bool(np.cov(np.ones((1, 2)), rowvar=False, ddof=0).ndim)


def _observations(m: Any, y: Any, rowvar: bool) -> Tensor:
    """The variables as rows: those of `m`, then those of `y`, where one row is always one variable."""

    def rows(value: Any, turns: bool) -> Tensor:
        t = _floating(value)
        if t._data.ndim < 2:
            return reshape(t, (1, -1))
        return t if rowvar or (t._data.shape[0] == 1 and not turns) else permute(t, (1, 0))

    first = rows(m, _turns_a_row())
    return first if y is None else cat([first, rows(y, False)])


def _cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Tensor:
    table = _observations(m, y, rowvar)
    return cov(
        table if dtype is None else to(table, dtype),
        correction=(0 if bias else 1) if ddof is None else ddof,
        fweights=None if fweights is None else _tensor(fweights, np.int64),
        aweights=None if aweights is None else _floating(aweights),
    )


def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    table = _observations(x, y, rowvar)
    return corrcoef(table if dtype is None else to(table, dtype))


def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    a = _floating(a)
    if isinstance(bins, str):
        bins = len(np.histogram_bin_edges(a.detach().numpy(), bins, range)) - 1
    if isinstance(bins, (int, np.integer)):
        ends = histogram(a, bins, range=range).bin_edges
        edges: Any = np.linspace(ends[0], ends[-1], int(bins) + 1)  # PyTorch's differ in the last digit
    else:
        edges = _tensor(bins, a.dtype)
    weight = None if weights is None else _tensor(weights, a.dtype)
    counts, edges = histogram(a, edges, weight=weight, density=bool(density))
    return to(counts, np.int64) if weights is None and not density else counts, edges


def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    return _histogram(a, bins, range, None, weights)[1]


def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Tensor:
    return bincount(_tensor(x), None if weights is None else _tensor(weights), minlength)


NUMPY.update(
    {
        np.mean: _mean,
        np.prod: _prod,
        np.var: _moment(var),
        np.std: _moment(std),
        np.ptp: _ptp,
        np.nanmax: _nan_extreme(amax, -np.inf),
        np.nanmin: _nan_extreme(amin, np.inf),
        np.nansum: _nansum,
        np.nanmean: _nanmean,
        np.nanprod: _nanprod,
        np.nanvar: _nan_moment(False),
        np.nanstd: _nan_moment(True),
        np.average: _average,
        np.median: _median("numpy.median", False),
        np.nanmedian: _median("numpy.nanmedian", True),
        np.quantile: _quantile("numpy.quantile", False, 1),
        np.nanquantile: _quantile("numpy.nanquantile", True, 1),
        np.percentile: _quantile("numpy.percentile", False, 100),
        np.nanpercentile: _quantile("numpy.nanpercentile", True, 100),
        np.sort: _sorting(sort),
        np.argsort: _sorting(argsort),
        np.partition: _numpy_partition,
        np.argpartition: _numpy_argpartition,
        np.unique: _unique,
        np.searchsorted: _searchsorted,
        np.isin: _isin,
        np.diff: _diff,
        np.ediff1d: _ediff1d,
        np.trapezoid: _trapezoid,
        np.gradient: _gradient,
        np.cov: _cov,
        np.corrcoef: _corrcoef,
        np.histogram: _histogram,
        np.histogram_bin_edges: _histogram_bin_edges,
        np.bincount: _bincount,
        **({np.in1d: _in1d} if hasattr(np, "in1d") else {}),  # before NumPy 2.4
    }
)
