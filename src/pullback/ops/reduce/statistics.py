"""Moments: variance and standard deviation, alone or with the mean; covariance and correlation.

The variance is computed in two passes, from the deviations from the mean, so a large mean costs no precision. Where all
elements are equal the standard deviation has no derivative, and its gradient is 0.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...table.entry import composite, special
from ...table.nodes import dims_of
from ...table.operands import number_of, plain, raise_where, somewhere
from ...table.samples import EMPTY, NO_DIM, A, Differs, S, Sample, V, along, index, inf, nan, whole
from ...tensor import dtypes
from ...tensor.adding import summed
from ...tensor.arrays import insert_axes, wrap_axes
from ...tensor.protocol import is_foreign
from ...tensor.tensor import Tensor
from ..elementwise.value_checks import check_values
from ..make.conversion import to
from ..products.matmul import matmul
from ..shape.reshape import reshape
from .sums import along_slices, mean, sum


def _size(shape: Any, axes: Any) -> int:
    """The number of elements along the axes (None: all axes)."""
    return math.prod(n for i, n in enumerate(shape) if axes is None or i in axes)


def _total(input: Any, axes: Any, keepdim: bool) -> Any:
    return summed(input, axis=axes, keepdims=keepdim)


def _mean(input: Any, axes: Any) -> Any:
    """The mean over the axes, which are kept."""
    count = _size(np.shape(input), axes) or 1
    if type(input) is np.ndarray and input.dtype.char == "e":  # a total in half precision could overflow
        return _mean(input.astype(np.float32), axes).astype(input.dtype)
    return np.true_divide(_total(input, axes, True), count)


def _is_extreme(variance: Any) -> bool:
    """Whether variances may be beyond single precision; of a symbol of `compile`, for one, nobody can tell."""
    limits = np.finfo(variance.dtype)
    known = isinstance(variance, (np.ndarray, np.generic))
    return not known or bool(np.any((variance < limits.tiny) | (variance > limits.max)))


def _moments(name: str, input: Any, dim: Any, correction: Any, keepdim: bool, root: bool = False) -> tuple[Any, Any]:
    """The variance, or its `root`, and the mean over `dim`."""
    if input.dtype.char == "e":  # squares in half precision would overflow
        single = _moments(name, input.astype(np.float32), dim, correction, keepdim, root)
        return single[0].astype(input.dtype), single[1].astype(input.dtype)
    if input.dtype.kind not in "fcV":
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="a floating point or complex tensor",
                found=errors.describe(input),
                do=f"convert it first, x.{dtypes.to_default()}",
            )
        )
    axes = wrap_axes(dim, input.ndim)
    size = _size(input.shape, axes)
    if size <= correction:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the number of elements "
            f"that are reduced to one: found correction {correction} and {size} elements.",
            stacklevel=errors.callers_level(),
        )
    center = np.true_divide(_total(input, axes, True), input.dtype.type(size))
    deviations = np.subtract(input, center)
    squares = (
        np.square(np.real(deviations)) + np.square(np.imag(deviations))
        if input.dtype.kind == "c"
        else np.square(deviations)
    )
    total = _total(squares, axes, keepdim)
    middle = (
        center
        if keepdim or not input.ndim
        else np.squeeze(center, axes if axes is not None else tuple(range(input.ndim)))
    )
    variance = np.true_divide(total, total.dtype.type(np.maximum(size - correction, 0)))
    if not root:
        return variance, middle
    if variance.dtype == np.float32 and size > correction and _is_extreme(variance):
        # the squares are beyond single precision; their root may not be
        double = _moments(name, input.astype(np.result_type(input.dtype, np.float64)), dim, correction, keepdim, root)
        return double[0].astype(variance.dtype), middle
    return np.sqrt(variance), middle


def _deviation_rule(g: Any, input: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
    """The rule of the variance: ``2 (x - mean) / (n - correction)``."""
    shape = np.shape(input)
    axes = wrap_axes(dim, len(shape))
    size = _size(shape, axes)
    left = np.maximum(size - correction, 0)
    center = _mean(input, axes)
    factor = float(np.true_divide(2, left)) if left else np.inf
    return np.multiply(np.multiply(insert_axes(g, axes, shape, keepdim), factor), np.subtract(input, center))


def _std_rule(g: Any, input: Any, out: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
    zero = np.equal(plain(out), 0)
    halved = np.where(zero, 0, np.true_divide(g, np.multiply(2, np.where(zero, 1, out))))
    return _deviation_rule(halved, input, dim, correction, keepdim)


def _along(weights: Any, tangent: Any, dim: Any, keepdim: bool) -> Any:
    """The tangent of a real moment, also of complex numbers, from its derivatives by each element."""
    return np.real(along_slices(np.conjugate(weights), tangent, dim, keepdim))


def _mean_rule(g: Any, input: Any, dim: Any, keepdim: Any) -> Any:
    shape = np.shape(input)
    axes = wrap_axes(dim, len(shape))
    return np.broadcast_to(np.true_divide(insert_axes(g, axes, shape, keepdim), _size(shape, axes) or 1), shape)


def _with_mean_rule(spread: Any, g: Any, input: Any, dim: Any, keepdim: Any) -> Any:
    if g[1] is None:
        return spread
    return (
        _mean_rule(g[1], input, dim, keepdim)
        if spread is None
        else np.add(spread, _mean_rule(g[1], input, dim, keepdim))
    )


def _var_mean_rule(g: Any, input: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
    spread = None if g[0] is None else _deviation_rule(g[0], input, dim, correction, keepdim)
    return _with_mean_rule(spread, g, input, dim, keepdim)


def _std_mean_rule(g: Any, input: Any, out0: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
    spread = None if g[0] is None else _std_rule(g[0], input, out0, dim, correction, keepdim)
    return _with_mean_rule(spread, g, input, dim, keepdim)


def _asked(name: str, dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """The axes and the correction, from any of torch's forms of calling `var`."""
    if isinstance(dim, bool):  # var(input, unbiased)
        if unbiased is not None:
            raise TypeError(errors.message(f"{name}()", expected="unbiased once", found="two bools"))
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(
            errors.message(f"{name}()", expected="unbiased or correction", found="both", do="leave unbiased away")
        )
    correction = number_of(correction)
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if not isinstance(correction, (int, float, np.number)):
        raise TypeError(
            errors.message(f"{name}()", expected="correction to be a number", found=errors.describe(correction))
        )
    return dim, correction


def _samples() -> list[Sample]:
    return [
        *whole(),
        *along(0, 1, -1, None),
        S(A(3), False),
        S(A(2, 3), 1, False),
        S(A(2, 3), unbiased=False),
        S(A(2, 3), 0, True, True),
        S(A(2, 3), correction=0),
        S(A(2, 3), None, correction=0, keepdim=True),
        S(A(2, 3), keepdim=True),
        S(A(2, 3), 0, correction=2),
        S(A(4, 2), 0, correction=1.5),
        S(A(3), correction=-1),
        S(A(1)),
        *EMPTY,
    ]


def _kinks() -> list[Sample]:
    values = [1.0, 1.0, 1.0], [2.0], [nan, 1.0], [inf, 1.0]
    return [
        *(S(V(v), *dim) for v in values for dim in ((), (0,))),
        S(V([2.0]), correction=0),
        S(V(1.0), 0, correction=0),
        S(V([[1.0, 1.0], [1.0, 2.0]]), 1),
    ]


def _refused() -> list[Sample]:
    return [
        *NO_DIM,
        S(A(3), unbiased=True, correction=1),
        S(A(3), True, True),
        S(A(3), correction="x"),
        S(A(3, dtype="int64")),
        S(A(3, dtype="bool"), 0),
    ]


_INFINITE = Differs("the mean of infinity and numbers is infinite; torch's is NaN", "kinks", sample="inf")


def _check_var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    return input, *_asked("var", dim, unbiased, correction), keepdim


@special(
    checks=_check_var,
    samples=_samples,
    kinks=_kinks,
    refused=_refused,
    saved={"dim": dims_of},
    batch=dims("dim", keeps="keepdim"),
    input=_deviation_rule,
    jvp=lambda tangents, input, out, dim, correction, keepdim: _along(
        _deviation_rule(np.ones_like(out), input, dim, correction, keepdim), tangents[0], dim, keepdim
    ),
)
def var(input: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """The variance over `dim`: squared deviations from the mean, summed, over ``n - correction``.

    `correction` is 1 by default (Bessel's); ``unbiased=False`` means 0. For complex numbers it is the real
    ``E|x - mean|^2``. The variance of one element and its gradient are NaN, unless the correction is 0.

    >>> import pullback
    >>> pullback.tensor([1.0, 2.0, 3.0]).var(), pullback.tensor([1.0, 2.0, 3.0]).var(unbiased=False)
    (tensor(1.), tensor(0.6667))
    """
    return _moments("var", input, dim, correction, keepdim)[0]


def _check_std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    return input, *_asked("std", dim, unbiased, correction), keepdim


@special(
    checks=_check_std,
    samples=_samples,
    kinks=_kinks,
    refused=_refused,
    saved={"dim": dims_of},
    batch=dims("dim", keeps="keepdim"),
    input=_std_rule,
    jvp=lambda tangents, input, out, dim, correction, keepdim: _along(
        _std_rule(np.ones_like(out), input, out, dim, correction, keepdim), tangents[0], dim, keepdim
    ),
)
def std(input: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """The standard deviation over `dim`: the square root of `var`; its gradient is 0 where all elements are equal."""
    return _moments("std", input, dim, correction, keepdim, True)[0]


def _check_var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    return input, *_asked("var_mean", dim, unbiased, correction), keepdim


@special(
    out=False,
    checks=_check_var_mean,
    method=False,
    samples=_samples,
    kinks=_kinks,
    refused=_refused,
    differs=[_INFINITE],
    saved={"dim": dims_of},
    batch=dims("dim", keeps="keepdim"),
    conjugate=False,
    input=_var_mean_rule,
)
def var_mean(input: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """The variance and the mean over `dim`; see `var`."""
    return _moments("var_mean", input, dim, correction, keepdim)


def _check_std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    return input, *_asked("std_mean", dim, unbiased, correction), keepdim


@special(
    out=False,
    checks=_check_std_mean,
    method=False,
    samples=_samples,
    kinks=_kinks,
    refused=_refused,
    differs=[_INFINITE],
    saved={"dim": dims_of},
    batch=dims("dim", keeps="keepdim"),
    conjugate=False,
    input=_std_mean_rule,
)
def std_mean(input: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """The standard deviation and the mean over `dim`; see `std`."""
    return _moments("std_mean", input, dim, correction, keepdim, True)


# Of several variables -------------------------------------------------------------------------------------------------


def _check_weights(weights: Any) -> None:
    negative = np.less(weights, 0)
    if somewhere(negative):
        found = "others" if is_foreign(weights) else str(weights.min())
        raise_where(
            negative, RuntimeError(errors.message("cov()", expected="weights that are not negative", found=found))
        )


def _check_observations(name: str, input: Tensor, kinds: dict[str, tuple[Any, str]]) -> None:
    """Refuse an input that is not a table of observations, and weights (name: tensor, dtype kinds) that do not fit."""
    if input._data.ndim > 2 or input._data.dtype.kind == "b":
        raise RuntimeError(
            errors.message(f"{name}()", expected="at most 2 dimensions, of numbers", found=errors.describe(input))
        )
    number = input._data.shape[-1] if input._data.ndim else 1
    for which, (weights, kind) in kinds.items():
        if weights is None:
            continue
        if not isinstance(weights, Tensor):
            raise TypeError(
                errors.message(f"{name}()", expected=f"{which} to be a Tensor", found=errors.describe(weights))
            )
        data = weights._data
        if data.ndim > 1 or data.dtype.kind not in kind or data.size != number:
            what = "integers" if "i" in kind else "floating point numbers"
            raise RuntimeError(
                errors.message(
                    f"{name}()", expected=f"{which} to be a vector of {number} {what}", found=errors.describe(weights)
                )
            )


def _table_samples() -> list[Sample]:
    return [
        *(S(A(*shape)) for shape in ((2, 4), (3, 2), (1, 3), (4,), (1,), (), (2, 0), (0,), (0, 3), (2, 1))),
        S(A(4, 3, layout="T")),
        S(A(3, 4, layout="step")),
    ]


@composite(
    out=False,
    samples=lambda: [
        *_table_samples(),
        *(S(A(2, 4), correction=c) for c in (0, 2)),
        S(A(2, 4, dtype="float64"), correction=4),
        S(A(2, 4), fweights=index(5, 4)),
        S(A(2, 4), fweights=V([1, 2, 0, 1], "int64"), correction=0),
        S(A(2, 4, dtype="float64"), aweights=A(4, domain="positive", dtype="float64")),
        S(A(4), aweights=A(4, domain="positive", dtype="float64"), correction=0),
        S(A(3, 2), fweights=V([1, 2], "int64"), aweights=A(2, domain="positive", dtype="float64")),
    ],
    kinks=[S(V([[nan, 1.0, 2.0], [3.0, 1.0, 0.0]])), S(V([[1.0, 1.0, 1.0], [3.0, 1.0, 0.0]]))],
    refused=lambda: [
        S(A(2, 2, 2)),
        S(A(2, dtype="bool")),
        S(A(3), fweights=A(3, dtype="float64")),
        S(A(3), aweights=A(3, dtype="int64")),
        S(A(3), fweights=index(3, 2)),
        S(A(3), aweights=A(1, 3, dtype="float64")),
        S(A(3), fweights=V([1, -1, 1], "int64")),
        S(A(3), aweights=V([1.0, -1.0, 1.0], "float64")),
        S([1.0]),
        S(A(3), 1),
    ],
)
def cov(input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariances of variables (the rows of `input`) over observations (its columns); for a vector, the variance.

    correction: subtracted from the number of observations in the divisor. fweights: the number of times each
    observation was made, integers. aweights: the weight of each observation, not negative.

    >>> import pullback
    >>> pullback.cov(pullback.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _check_observations("cov", input, {"fweights": (fweights, "iu"), "aweights": (aweights, "f")})
    if input._data.dtype.kind in "iu":
        input = to(input, dtypes.default())
    shape = input._data.shape
    table = reshape(input, (1, -1)) if len(shape) < 2 else input
    number: Any = table._data.shape[1]
    scaled, left = table, number - correction
    if fweights is None and aweights is None:
        deviations = scaled = table - mean(table, 1, True)
    else:
        weights = check_values(_check_weights, fweights if aweights is None else aweights)
        both = fweights is not None and aweights is not None
        repeats = check_values(_check_weights, fweights) if both else 1
        each = weights * repeats
        number = sum(each)
        deviations = table - sum(table * each, 1, True) / number
        scaled = deviations * each
        left = number - correction * (1 if aweights is None else sum(each * weights) / number)
    product = matmul(scaled, np.conj(np.transpose(deviations)))
    found = product / (np.maximum(left, 0) if isinstance(left, Tensor) else float(np.maximum(left, 0)))
    return reshape(found, ()) if len(found) == 1 else found


@composite(
    out=False,
    samples=_table_samples,
    kinks=[S(V([[1.0, 1.0, 1.0], [3.0, 1.0, 0.0]])), S(V([[nan, 1.0, 2.0], [3.0, 1.0, 0.0]]))],
    refused=lambda: [S(A(2, 2, 2)), S(A(2, dtype="bool")), S([1.0]), S(A(3), 1)],
)
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlation coefficients of variables (the rows of `input`): ``cov[i, j] / (std[i] std[j])``."""
    _check_observations("corrcoef", input, {})
    found = cov(input)
    if not found._data.ndim:
        return found / found
    spread = np.sqrt(np.real(found[range(len(found)), range(len(found))]))
    found = found / spread[:, None] / spread[None, :]
    if found._data.dtype.kind == "c":
        return np.clip(np.real(found), -1, 1) + 1j * np.clip(np.imag(found), -1, 1)
    return np.clip(found, -1, 1)
