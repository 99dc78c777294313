"""Scans: running sums, products, extremes and log-sum-exps along an axis.

The derivatives of running products and log-sum-exps come from one linear recurrence, run backward:
``y[i] = x[i] + decay[i] y[i - 1]``. It never divides by an element that may be 0, and nothing grows until it overflows.
The recurrence is an operation of the table itself, so derivatives of every order are correct.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...table.calls import on
from ...table.entry import linear, special
from ...table.op import Op
from ...table.results import result_type
from ...table.samples import A, D, Differs, S, Sample, V, along, inf, nan
from ...tensor.arrays import arange_beside, wrap_axis, zeros_beside
from ...tensor.protocol import on_arrays
from ...tensor.tensor import Tensor
from .picking import many_jvp, refuse_unordered, repeated_rule
from .sums import accumulator, cast_first, exact, products, running

CummaxResult = result_type("cummax", "values", "indices")
CumminResult = result_type("cummin", "values", "indices")


def _samples() -> list[Sample]:
    return [
        *along(0, 1, -1, keepdim=False, lists=False),
        S(A(0), 0),
        S(A(2, 0), 1),
        S(A(2, 0), 0),
        S(A(2), dim=0),
    ]


def _typed() -> list[Sample]:
    return [*_samples(), S(A(2, 3), 0, dtype=D("float64"))]


def _refused() -> list[Sample]:
    return [
        *(S(A(2, 3), d) for d in (2, -3, "x", 0.5, (0, 1))),
        S(A(), 1),
        S(A(2, 3)),
        S([1.0], 0),
        S(A(2), 0, nonsense=1),
        S(A(2), 0, dtype=D("bool")),
    ]


def _refuse_bool(name: str, input: Any, dtype: np.dtype[Any]) -> None:
    """Refuse a running sum or product of bools. A number has none: it is only converted."""
    if dtype.kind == "b" and input.ndim:
        raise NotImplementedError(
            errors.message(f"{name}(): not implemented for 'Bool'", expected="a dtype of numbers", found="dtype=bool")
        )


# Sums -----------------------------------------------------------------------------------------------------------------


def _cumsum_rule(g: Any, dim: Any) -> Any:
    if not len(np.shape(g)):
        return g
    back = np.flip(g, axis=dim)
    return np.flip(running(np.add, back, dim) if type(g) is np.ndarray else np.cumsum(back, axis=dim), axis=dim)


@linear(
    batch=dims("dim"),
    inplace=True,
    out="dtype",
    input=_cumsum_rule,
    numpy={
        np.cumsum: lambda a, axis=None, dtype=None: cumsum(
            a if axis is not None else a.flatten(), axis or 0, dtype=dtype
        )
    },
    samples=_typed,
    refused=_refused,
)
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The running sum along `dim`; integers and bools add up in int64.

    >>> import pullback
    >>> pullback.tensor([1.0, 2.0, 3.0]).cumsum(0)
    tensor([1., 3., 6.])
    """
    axis = wrap_axis(dim, input.ndim)
    found = accumulator(input, dtype)
    _refuse_bool("cumsum", input, found)
    return running(np.add, input, axis, found) if input.ndim else input.astype(found)


# The recurrence -------------------------------------------------------------------------------------------------------


def _shifted(x: Any, axis: int, back: bool) -> Any:
    """``x[i - 1]`` instead of ``x[i]``, or ``x[i + 1]`` if `back`; 0 at the end."""
    lead, zero = (slice(None),) * axis, np.zeros_like(x[(*(slice(None),) * axis, slice(0, 1))])
    parts = [x[(*lead, slice(1, None))], zero] if back else [zero, x[(*lead, slice(None, -1))]]
    return np.concatenate(parts, axis=axis)


def _recurrence_rule(g: Any, decay: Any, axis: Any, back: Any) -> Any:
    # the transpose runs in the other direction, with the decays shifted by one
    return on(_recurrence, g, _shifted(decay, axis, not back), axis, not back)


def _decay_rule(g: Any, decay: Any, out: Any, axis: Any, back: Any) -> Any:
    return np.multiply(_recurrence_rule(g, decay, axis, back), _shifted(out, axis, back))


def _put_in_front(level: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """vmap: put the batch axis first in both, so that `axis` moves on by one."""
    input, decay, axis, back = args
    return op.unchecked(level.lower(input), level.lower(decay), axis + 1, back)


@special(method=False, input=_recurrence_rule, decay=_decay_rule, batch=_put_in_front)
@on_arrays
def _recurrence(input: Any, decay: Any, axis: int, back: bool) -> Any:
    """``y[i] = input[i] + decay[i] y[i - 1]`` along `axis`; with ``y[i + 1]`` if `back`."""
    x, a = (np.copy(np.moveaxis(v, axis, 0)[:: -1 if back else 1], order="C") for v in (input, decay))
    step = 1
    while step < len(x):  # y over stretches of twice the length each time (Hillis and Steele, 1986)
        x[step:] += a[step:] * x[:-step]
        a[step:] *= a[:-step]
        step *= 2
    return np.moveaxis(x[:: -1 if back else 1], 0, axis)


# Products -------------------------------------------------------------------------------------------------------------


def _cumprod_rule(g: Any, input: Any, dim: Any) -> Any:
    # d out[j] / d x[i] is the product of x[k] over k <= j, k != i: the elements before i, times those between i and j.
    # The latter are in the cotangents s[i] = g[i] + x[i + 1] s[i + 1]. This is exact with zeros.
    shape = np.shape(input)
    if not shape:
        return g
    axis = wrap_axis(dim, len(shape))
    if not shape[axis]:
        return np.zeros_like(input)
    lead = (slice(None),) * axis
    before = np.concatenate([np.ones_like(input[(*lead, slice(0, 1))]), input[(*lead, slice(None, -1))]], axis=axis)
    later = on(_recurrence, g, _shifted(input, axis, True), axis, True)
    return np.multiply(products(before, axis), later)


def _check_cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
    found = cast_first(input, dtype)
    _refuse_bool("cumprod", found, found._data.dtype)
    return found, dim


@special(
    checks=_check_cumprod,
    out="dtype",
    batch=dims("dim"),
    input=_cumprod_rule,
    inplace=True,
    numpy={
        np.cumprod: lambda a, axis=None, dtype=None: cumprod(
            a if axis is not None else a.flatten(), axis or 0, dtype=dtype
        )
    },
    samples=_typed,
    kinks=lambda: [
        S(V([0.0, 2.0, 3.0]), 0),
        S(V([1.0, 0.0, 0.0, 3.0]), 0),
        S(V([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]), 0),
        S(V([[2.0, 0.0], [0.0, 5.0]]), 1),
    ],
    refused=_refused,
    differs=[
        Differs("torch ignores that the imaginary part was discarded", check, "complex128", "dtype=float64")
        for check in ("gradients", "second")
    ],
)
def cumprod(input: Any, dim: int) -> Any:
    """The running product along `dim`; its derivatives are correct where elements are zero."""
    axis = wrap_axis(dim, input.ndim)
    return products(input, axis) if input.ndim else np.copy(input)


# Extremes -------------------------------------------------------------------------------------------------------------


def _running(name: str, ufunc: np.ufunc, input: Any, dim: int) -> tuple[Any, Any]:
    """The running extreme, and its last position."""
    axis = wrap_axis(dim, input.ndim)
    if input.ndim and input.size:
        refuse_unordered(name, input)
    if not input.ndim:
        return np.copy(input), zeros_beside(input, (), np.int64)
    values = running(ufunc, input, axis)
    here = np.equal(input, values)
    if input.dtype.kind in "fV":
        here |= np.isnan(input)
    places = arange_beside(input, input.shape[axis]).reshape(-1, *(1,) * (input.ndim - axis - 1))
    return values, running(np.maximum, np.multiply(here, places), axis)


def _running_kinks() -> list[Sample]:
    rows = [[1.0, 3.0, 3.0, 2.0, 3.0], [1.0, nan, 5.0, nan, -inf], [2.0, 2.0, -inf, inf, inf]]
    return [*(S(V(row), 0) for row in rows), S(V(rows), 0), S(V(rows), 1)]


@special(batch=dims("dim"), input=repeated_rule, jvp=many_jvp, samples=_samples, kinks=_running_kinks, refused=_refused)
def cummax(input: Any, dim: int) -> tuple[Any, Any]:
    """The largest so far along `dim`, and its last position: ``(values, indices)``; NaN from the first NaN on.

    >>> import pullback
    >>> pullback.tensor([1.0, 3.0, 2.0, 3.0]).cummax(0).indices
    tensor([0, 1, 1, 3])
    """
    return CummaxResult(*_running("cummax", np.maximum, input, dim))


@special(batch=dims("dim"), input=repeated_rule, jvp=many_jvp, samples=_samples, kinks=_running_kinks, refused=_refused)
def cummin(input: Any, dim: int) -> tuple[Any, Any]:
    """The smallest so far along `dim`, and its last position: ``(values, indices)``; NaN from the first NaN on."""
    return CumminResult(*_running("cummin", np.minimum, input, dim))


# Log-sum-exps ---------------------------------------------------------------------------------------------------------


def _logcumsumexp_rule(g: Any, input: Any, out: Any, dim: Any) -> Any:
    # exp(x[i]) times the sum of g[j] exp(-out[j]) over j >= i. out does not decrease, so the recurrence cannot overflow
    shape = np.shape(input)
    if not shape:
        return np.multiply(g, np.exp(np.subtract(input, out)))
    axis = wrap_axis(dim, len(shape))
    lead = (slice(None),) * axis
    input, out = exact(input), exact(out)  # the falls are small differences, and their exponentials are multiplied
    falls = np.subtract(out[(*lead, slice(None, -1))], out[(*lead, slice(1, None))])
    decay = np.concatenate([np.exp(falls), np.zeros_like(out[(*lead, slice(0, 1))])], axis=axis)
    later = on(_recurrence, g, decay, axis, True)
    return np.multiply(np.exp(np.subtract(input, out)), later)


def _log_add(a: Any, b: Any) -> Any:
    """``log(exp(a) + exp(b))`` for complex numbers."""
    first = np.greater_equal(np.real(a), np.real(b))
    high, low = np.where(first, a, b), np.where(first, b, a)
    return np.where(np.equal(np.real(high), -np.inf), high, high + np.log1p(np.exp(low - high)))


@special(
    batch=dims("dim"),
    input=_logcumsumexp_rule,
    samples=_samples,
    kinks=lambda: [
        S(V([1000.0, 1000.0, -1000.0, 0.0]), 0),
        S(V([-1000.0, 0.0, 1000.0]), 0),
        S(V([1.0, -inf, 2.0]), 0),
        S(V([1.0, nan, 2.0]), 0),
    ],
    refused=_refused,
    differs=[
        Differs("the imaginary part of a logarithm is defined up to multiples of 2 pi", "values", "complex128", "step")
    ],
)
def logcumsumexp(input: Any, dim: int) -> Any:
    """The logarithm of the running sum of exponentials along `dim`, without overflow."""
    axis = wrap_axis(dim, input.ndim)
    if input.dtype.kind not in "fcV":
        raise NotImplementedError(
            errors.message(
                "logcumsumexp()", expected="a floating point or complex tensor", found=errors.describe(input)
            )
        )
    if not input.ndim:
        return np.copy(input)
    if input.dtype.kind in "fV":
        return running(np.logaddexp, input, axis)
    found, step = np.moveaxis(np.copy(input), axis, 0), 1
    while step < len(found):
        found = np.concatenate([found[:step], _log_add(found[:-step], found[step:])])
        step *= 2
    return np.moveaxis(found, 0, axis)
