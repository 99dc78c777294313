"""Order statistics: the median, the k-th smallest, the most frequent, and quantiles. NaN counts as the largest.

For an even number of elements, `median` is the lower of the middle two, as in torch; `np.median` takes their mean.
Along an axis, the gradient goes to the element whose index is returned; `median()` of all elements shares it among
equal elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...kernels.counterparts import counted, scanned
from ...table.entry import composite, special
from ...table.operands import index_of, somewhere
from ...table.results import result_type
from ...table.samples import A, S, Sample, V, inf, nan, whole
from ...tensor.arrays import arange_beside, beside, full_beside, taken_along, wrap_axis, zeros_beside
from ...tensor.protocol import check_later, is_foreign, on_arrays
from ...tensor.tensor import Tensor, wrap
from ..elementwise.limits import where
from ..elementwise.value_checks import check_values
from ..make.conversion import to
from ..shape.axes import movedim
from ..shape.reshape import reshape
from .extremes import shared_rule
from .picking import chosen, one_jvp, one_rule, pick, refuse_empty, refuse_unordered
from .sorting import order, sort

MedianResult = result_type("median", "values", "indices")
NanmedianResult = result_type("nanmedian", "values", "indices")
ModeResult = result_type("mode", "values", "indices")
KthvalueResult = result_type("kthvalue", "values", "indices")


def _kth(x: Any, k: int, axis: int) -> Any:
    """The position of the k-th smallest along an axis, counted from 0."""
    return np.take(np.argpartition(x, k, axis=axis), [k], axis=axis)


def _middle(x: Any, axis: int, skip_nan: bool) -> Any:
    """The position of the lower median along an axis: that of a NaN if there is one, unless NaN is skipped."""
    n = x.shape[axis]
    missing = np.isnan(x) if x.dtype.kind in "fV" else zeros_beside(x, x.shape, bool)
    if not somewhere(missing):
        return _kth(x, (n - 1) // 2, axis)
    if skip_nan:
        number = n - counted(missing, axis)
        return taken_along(order(x, axis), np.maximum(number - 1, 0) // 2, axis)
    first = np.argmax(missing, axis=axis, keepdims=True)
    return np.where(taken_along(missing, first, axis), first, _kth(x, (n - 1) // 2, axis))


def _of_all(name: str, input: Any, skip_nan: bool) -> Any:
    if not input.size:
        return np.full_like(input, np.iinfo(input.dtype).min if input.dtype.kind in "iu" else np.nan, shape=())
    refuse_unordered(name, input, kinds="cb")
    flat = np.reshape(input, -1)
    return flat[_middle(flat, 0, skip_nan)].reshape(())


def _along(name: str, input: Any, dim: int, keepdim: bool, skip_nan: bool) -> Any:
    refuse_unordered(name, input, kinds="cb")
    refuse_empty(name, input, dim)
    return chosen(input, dim, keepdim, lambda x, axis: _middle(x, axis, skip_nan))


def _of_all_rule(g: Any, input: Any, out: Any) -> Any:
    return shared_rule(g, input, out, None, False)


@special(method=False, input=_of_all_rule)
def _median(input: Any) -> Any:
    return _of_all("median", input, False)


@special(method=False, node="MedianBackward1", batch=dims("dim", keeps="keepdim"), input=one_rule, jvp=one_jvp)
def _median_dim(input: Any, dim: int, keepdim: bool) -> Any:
    return MedianResult(*_along("median", input, dim, keepdim, False))


@special(method=False, input=_of_all_rule)
def _nanmedian(input: Any) -> Any:
    return _of_all("nanmedian", input, True)


@special(method=False, node="NanmedianBackward1", batch=dims("dim", keeps="keepdim"), input=one_rule, jvp=one_jvp)
def _nanmedian_dim(input: Any, dim: int, keepdim: bool) -> Any:
    return NanmedianResult(*_along("nanmedian", input, dim, keepdim, True))


def _one_samples(*first: Any) -> list[Sample]:
    """Samples of an operation that chooses one along an axis. first: an argument before the axis."""
    return [
        *(S(A(*shape, domain="whole"), *first, d) for shape in ((5,), (4, 3), (2, 4, 3)) for d in (0, -1)),
        S(A(3, 4, domain="whole", layout="T"), *first, dim=0),
        S(A(3, 4, domain="whole", layout="step"), *first, dim=1, keepdim=True),
        S(A(4, 3, domain="whole", layout="readonly"), *first, 0, True),
        S(A(), *first, 0),
        S(A(), *first, -1, True),
        S(A(1), *first, 0),
        S(A(0, 2), *first, 1),
    ]


def _not_one(*first: Any) -> list[Sample]:
    return [
        *(S(A(2, 3), *first, d) for d in (2, -3, 0.5, "x", (0, 1))),
        S(A(), *first, 1),
        S(A(0, 2), *first, 0),
        S(A(0), *first, -1),
        S([1.0], *first, 0),
        S(A(2), *first, 0, nonsense=1),
        S(A(2, dtype="complex64"), *first, 0),
    ]


def _median_samples() -> list[Sample]:
    return [*whole("whole"), S(A(4, domain="whole")), S(A(0)), *_one_samples()]


def _median_kinks() -> list[Sample]:
    rows = [[1.0, 2.0, 2.0, 3.0], [nan, 1.0, nan, inf], [-inf, inf, 0.0, -0.0], [nan, nan, nan, nan]]
    return [
        *(S(V(row)) for row in rows),
        S(V(rows[1:3]), 1),
        S(V([[nan, 1.0, 2.0], [3.0, 1.0, nan]]), dim=-1, keepdim=True),
    ]


_NO_BOOL = S(A(3, dtype="bool"))


def _check_keepdim(name: str, dim: Any, keepdim: Any) -> None:
    if dim is None and keepdim:
        raise TypeError(errors.message(f"{name}()", expected="keepdim with a dim only", found="no dim"))


@composite(samples=_median_samples, kinks=_median_kinks, refused=lambda: [*_not_one(), _NO_BOOL, S([1.0])])
def median(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower median of all elements, or along `dim` with its index: ``(values, indices)``; NaN if there is one.

    >>> import pullback
    >>> pullback.tensor([3.0, 1.0, 2.0, 4.0]).median()
    tensor(2.)
    """
    _check_keepdim("median", dim, keepdim)
    return _median(input) if dim is None else _median_dim(input, dim, keepdim)


@composite(samples=_median_samples, kinks=_median_kinks, refused=lambda: [*_not_one(), _NO_BOOL, S([1.0])])
def nanmedian(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not NaN; NaN if all are."""
    _check_keepdim("nanmedian", dim, keepdim)
    return _nanmedian(input) if dim is None else _nanmedian_dim(input, dim, keepdim)


@special(
    batch=dims("dim", keeps="keepdim"),
    input=one_rule,
    jvp=one_jvp,
    samples=lambda: _one_samples(2)[:-6] + _one_samples(1),
    kinks=[S(V([3.0, nan, 2.0, inf]), k) for k in (1, 3, 4)],
    refused=lambda: [
        *_not_one(1),
        *(S(A(3), k) for k in (0, 4, -1, 1.5, "x")),
        S(A(3)),
        S(A(), 2),
        S(_NO_BOOL.args[0], 1),
    ],
)
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """The k-th smallest element along `dim`, counted from 1, and its index: ``(values, indices)``.

    >>> import pullback
    >>> pullback.tensor([3.0, 1.0, 2.0]).kthvalue(2).values
    tensor(2.)
    """
    refuse_unordered("kthvalue", input, kinds="cb" * bool(input.ndim))
    refuse_empty("kthvalue", input, dim)
    n = input.shape[wrap_axis(dim, input.ndim)] if input.ndim else 1
    k = index_of("kthvalue", "k", k)
    if not 1 <= k <= n:
        raise RuntimeError(
            errors.message("kthvalue(): selected number k out of range", expected=f"k in [1, {n}]", found=str(k))
        )
    return KthvalueResult(*chosen(input, dim, keepdim, lambda x, axis: _kth(x, k - 1, axis)))


@on_arrays
def _most_frequent(x: Any, axis: int) -> Any:
    """The last position of the smallest of the most frequent elements; that of NaN if there is one and all differ."""
    n = x.shape[axis]
    positions = order(x, axis)
    values = np.moveaxis(taken_along(x, positions, axis), axis, -1)
    starts = full_beside(values, values.shape, True, bool)
    starts[..., 1:] = np.not_equal(values[..., 1:], values[..., :-1])
    place = arange_beside(values, n)
    length = place - scanned(np.maximum, np.where(starts, place, 0), -1)
    best = np.argmax(length, axis=-1, keepdims=True)
    if x.dtype.kind in "fV":
        missing = np.isnan(values)
        alone = np.equal(taken_along(length, best, -1), 0) & missing[..., -1:]
        best = np.where(alone, np.argmax(missing, axis=-1, keepdims=True), best)
    return taken_along(positions, np.moveaxis(best, -1, axis), axis)


@special(
    batch=dims("dim", keeps="keepdim"),
    input=one_rule,
    jvp=one_jvp,
    samples=lambda: [*_one_samples(), S(A(2, 3, domain="whole"))],
    kinks=[
        S(V([1.0, 2.0, 2.0, 1.0, 3.0])),
        S(V([[3.0, 1.0], [1.0, 1.0], [3.0, 2.0]]), 0),
        S(V([nan, nan, 1.0])),
        S(V([nan, 1.0, 1.0, -inf, inf])),
    ],
    refused=lambda: [*_not_one(), S(A(0))],
)
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """The most frequent element along `dim` (the smallest at a tie) and its last index: ``(values, indices)``."""
    refuse_unordered("mode", input, kinds="c" * bool(input.ndim and input.size))
    refuse_empty("mode", input, dim)
    return ModeResult(*chosen(input, dim, keepdim, _most_frequent))


# Quantiles ------------------------------------------------------------------------------------------------------------

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def check_probability(q: Any) -> None:
    """Refuse values if one is not a probability."""
    if is_foreign(q):
        error = ValueError("quantile() q values must be in the range [0, 1]")
        check_later(np.logical_not(np.logical_and(np.greater_equal(q, 0), np.less_equal(q, 1))), error)
    elif not np.all(np.logical_and(np.greater_equal(q, 0), np.less_equal(q, 1))):
        raise RuntimeError(
            f"quantile() q must be in the range [0, 1] but got {q.item()}."
            if np.size(q) == 1
            else f"quantile() q values must be in the range [0, 1] but got {q.tolist()}."
        )


def _at_ranks(values: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """The values at `ranks`, counted from 0 and possibly fractional, of values sorted along the last axis."""
    last, fixed = values._data.ndim - 1, ranks.detach()
    if interpolation not in ("linear", "midpoint"):
        rounded = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}[interpolation](fixed)
        return pick(values, last, to(rounded, np.int64))
    floor = np.floor(fixed)
    below = pick(values, last, to(floor, np.int64))
    above = pick(values, last, to(np.ceil(fixed), np.int64))
    weight = to(ranks - floor if interpolation == "linear" else np.full_like(ranks, 0.5), values.dtype)
    # from the nearer end, so that it is exact at both
    return where(weight < 0.5, below + weight * (above - below), above - (above - below) * (1 - weight))


def quantiles(
    input: Tensor, q: Tensor, dim: Any, keepdim: bool, interpolation: str, skip_nan: bool, ranks: Any
) -> Tensor:
    """The elements at ``ranks(q, number)`` along `dim` (None: of all). The axis of `q`, if any, is in front.

    ranks: a function that returns the ranks in the dtype of `q`; number: the number of elements or, with `skip_nan`, of
    those that are not NaN.
    """
    shape = input._data.shape
    axis = None if dim is None else wrap_axis(dim, len(shape))
    if axis is None or not shape:
        rows, left = reshape(input, -1), (1,) * (len(shape) * keepdim)
    else:
        rows, left = movedim(input, axis, -1), (*shape[:axis], *(1,) * keepdim, *shape[axis + 1 :])
    values = sort(rows, -1)[0]
    missing = np.isnan(values)
    if skip_nan:
        at = ranks(q, to(np.maximum(np.sum(np.logical_not(missing), axis=-1, keepdims=True), 1), q.dtype))
    else:  # NaN sorts last
        number = rows._data.shape[-1]
        at = where(missing[..., -1:], float(number - 1), ranks(reshape(q, -1), number))
    found = movedim(_at_ranks(values, at, interpolation), -1, 0)
    return reshape(found, (*q._data.shape, *left))


def _from_first(q: Tensor, number: Any) -> Tensor:
    return q * (number - 1)


def _as_probability(name: str, input: Tensor, q: Any, interpolation: str) -> Tensor:
    """`q` as a checked tensor of the dtype of the input."""
    data = input._data

    def refuse(what: str, found: Any, error: type[Exception] = RuntimeError) -> Exception:
        return error(errors.message(f"{name}() {what}", found=errors.describe(found)))

    if interpolation not in INTERPOLATIONS:
        among = "linear, lower, higher, midpoint or nearest"
        raise RuntimeError(f"{name}() interpolation must be one of {among}, but got {interpolation}.")
    if not data.size:
        raise refuse("input tensor must be non-empty", input)
    if data.dtype.kind not in "fV":
        raise refuse("input tensor must be either float or double dtype", input)
    if not isinstance(q, (Tensor, int, float, np.number)):
        raise refuse("q must be a number or a Tensor", q, TypeError)
    if not isinstance(q, Tensor):
        return wrap(beside(data, check_values(check_probability, wrap(np.asarray(q, data.dtype)))._data))
    if q._data.ndim > 1:
        raise refuse("q must be a scalar or 1D tensor", q)
    if q._data.dtype != data.dtype:
        raise refuse("q tensor must be same dtype as the input tensor", q)
    return check_values(check_probability, q)


def _quantile_samples() -> list[Sample]:
    x = A(4, 3, domain="whole")
    return [
        *(S(A(5, domain="whole"), 0.3, interpolation=i) for i in INTERPOLATIONS),
        *(S(x, V([0.15, 0.6]), 0, interpolation=i) for i in INTERPOLATIONS),
        *(S(x, 0.7, d, k) for d in (0, -1, None) for k in (False, True)),
        *(S(x, V([0.3]), dim=d, keepdim=k) for d in (0, 1, None) for k in (False, True)),
        S(A(2, 3, 4, domain="whole", layout="T"), V([0.9, 0.1]), 1),
        S(A(4, 3, domain="whole", layout="step"), V(0.45), 1),
        S(x, V([], "float64"), 0),
        S(A(), 0.5),
        S(A(), 0.5, 0, True),
        S(A(), V([0.5, 0.9]), 0),
        S(A(1), 0.2, 0),
        S(A(3, domain="whole"), 1),
    ]


def _quantile_kinks() -> list[Sample]:
    return [
        S(V([1.0, 2.0, 2.0, 3.0]), 0.4),
        S(V([1.0, 2.0, 4.0]), V([0.0, 0.5, 1.0])),
        *(S(V([1.0, 2.0, 4.0]), V([0.25, 0.75]), interpolation=i) for i in INTERPOLATIONS),
        S(V([[1.0, nan, 3.0, 2.0], [1.0, 5.0, 3.0, 2.0], [nan, nan, nan, nan]]), 0.3, 1),
        S(V([[1.0, nan, 3.0, 2.0], [1.0, 5.0, 3.0, 2.0]]), V([0.3, 0.9]), 1, interpolation="higher"),
        S(V([1.0, inf, 2.0]), 0.25),
        S(V([-inf, 1.0, 2.0]), 0.75),
    ]


def _not_quantiles() -> list[Sample]:
    x = A(3, dtype="float32")
    return [
        *(S(x, q) for q in (1.5, -0.5, nan, "x", None, [0.5])),
        *(S(x, V(q, "float32")) for q in ([1.5], [0.5, nan], [[0.5]])),
        S(x, V([0.5], "float64")),
        S(x, 0.5, 1),
        S(x, 0.5, (0,)),
        S(x, 0.5, interpolation="cubic"),
        *(S(A(3, dtype=d), 0.5) for d in ("int64", "bool", "complex64")),
        S(A(0), 0.5),
        S(A(0, 2), 0.5, 1),
        S([1.0], 0.5),
        S(x),
    ]


@composite(samples=_quantile_samples, kinks=_quantile_kinks, refused=_not_quantiles)
def quantile(input: Tensor, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The `q`-th quantiles, q in [0, 1], along `dim` (default: of all elements); NaN where there is a NaN.

    `q` is a number, or a vector whose axis comes first in the result. A quantile between two elements is interpolated
    ("linear"), or is the "lower" one, the "higher", the "nearest" or their "midpoint".

    >>> import pullback
    >>> pullback.tensor([1.0, 2.0, 4.0]).quantile(0.75)
    tensor(3.)
    """
    q = _as_probability("quantile", input, q, interpolation)
    return quantiles(input, q, dim, keepdim, interpolation, False, _from_first)


@composite(samples=_quantile_samples, kinks=_quantile_kinks, refused=_not_quantiles)
def nanquantile(
    input: Tensor, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN if all are."""
    q = _as_probability("nanquantile", input, q, interpolation)
    return quantiles(input, q, dim, keepdim, interpolation, True, _from_first)
