"""Reductions: sums, products, extremes and moments along axes.

Extremes over several elements share the gradient evenly among ties (`amax`, `amin`, `max()` of all); `max(dim)` and
`min(dim)` give it all to the element whose index they return, as torch does.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from .. import _dtypes, errors
from .._arrays import insert_axes, wrap_axes, wrap_axis
from .._tensor import Tensor, wrap
from .creation import to
from .elementwise import plain, sign
from .indexing import gather
from .table import composite, linear, special

MaxResult = namedtuple("MaxResult", ["values", "indices"])
MinResult = namedtuple("MinResult", ["values", "indices"])


def quiet(fold: Any, function: Any, input: Any, **how: Any) -> Any:
    """``function(input, ...)`` for a NumPy function that folds an array by a method of a ufunc, `fold`.

    On an array the method is called itself: NumPy's warnings of overflow and of inf - inf, which torch does not give,
    then arise in a frame of this package, where they are silenced.
    """
    return (fold if type(input) is np.ndarray else function)(input, **how)


def _sum_rule(g: Any, input_shape: Any, dim: Any, keepdim: Any) -> Any:
    return insert_axes(g, wrap_axes(dim, len(input_shape)), input_shape, keepdim)


def _accumulator(input: Any, dtype: Any) -> Any:
    """The dtype of a sum: the one asked for, int64 for integers and bools, else the tensor's."""
    if dtype is not None:
        return _dtypes.to_numpy(dtype)
    return np.dtype(np.int64) if input.dtype.kind in "biu" else input.dtype


@linear(
    input=_sum_rule,
    numpy={np.sum: lambda a, axis=None, dtype=None, *, keepdims=False: sum(a, axis, keepdims, dtype=dtype)},
)
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum over `dim` (an int, a tuple, or None for all); integers and bools add up in int64.

    >>> import pullback
    >>> pullback.ones(2, 3).sum(dim=0)
    tensor([2., 2., 2.])
    """
    return _total(input, dim, keepdim, dtype)


def _total(input: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    axes = wrap_axes(dim, input.ndim)
    return quiet(np.add.reduce, np.sum, input, axis=axes, keepdims=keepdim, dtype=_accumulator(input, dtype))


def _count(shape: Any, dim: Any) -> int:
    axes = wrap_axes(dim, len(shape))
    return int(np.prod([n for i, n in enumerate(shape) if axes is None or i in axes], dtype=np.int64))


def _mean_rule(g: Any, input_shape: Any, dim: Any, keepdim: Any) -> Any:
    return np.true_divide(_sum_rule(g, input_shape, dim, keepdim), _count(input_shape, dim) or 1)


@linear(
    input=_mean_rule,
    numpy={np.mean: lambda a, axis=None, dtype=None, *, keepdims=False: mean(a, axis, keepdims, dtype=dtype)},
)
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The arithmetic mean over `dim`; NaN of nothing. Of floating point or complex numbers, unless `dtype` is given."""
    if dtype is None and input.dtype.kind not in "fc":
        raise RuntimeError(
            errors.message(
                "mean()",
                expected="a floating point or complex dtype",
                found=errors.describe(input),
                do="convert it first, x.float().mean(), or pass dtype=",
            )
        )
    total = _total(input, dim, keepdim, dtype)
    return np.true_divide(total, total.dtype.type(_count(np.shape(input), dim)))


def _cast_first(input: Tensor, dtype: Any) -> Tensor:
    """What a product is of: `input` in the dtype asked for, or else in that of a sum."""
    if not isinstance(input, Tensor):
        raise TypeError(errors.message("prod()", expected="a Tensor", found=errors.describe(input)))
    return to(input, _accumulator(input._data, dtype))


def _products(values: Any, axis: int) -> Any:
    return quiet(np.multiply.accumulate, np.cumprod, values, axis=axis)


def _prod_rule(g: Any, input: Any, dim: Any, keepdim: Any) -> Any:
    # The product of all the others, from products of what comes before and what comes after: right with zeros, too.
    shape = np.shape(input)
    axes = wrap_axes(dim, len(shape))
    flat = (
        np.reshape(input, (1, -1, 1))
        if axes is None
        else np.reshape(input, (int(np.prod(shape[: axes[0]])), shape[axes[0]], int(np.prod(shape[axes[0] + 1 :]))))
    )
    one = np.ones_like(flat[:, :1])
    before = _products(np.concatenate([one, flat[:, :-1]], axis=1), 1)
    after = np.flip(_products(np.concatenate([one, np.flip(flat[:, 1:], axis=1)], axis=1), 1), axis=1)
    others = np.reshape(np.multiply(before, after), shape)
    return np.multiply(insert_axes(g, axes, shape, keepdim), np.conj(others))


@special(method=False, input=_prod_rule)
def _prod(input: Any, dim: Any, keepdim: bool) -> Any:
    return quiet(np.multiply.reduce, np.prod, input, axis=wrap_axes(dim, input.ndim), keepdims=keepdim)


@composite(numpy={np.prod: lambda a, axis=None, dtype=None, *, keepdims=False: prod(a, axis, keepdims, dtype=dtype)})
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over one axis, or of all elements; its gradient is right where elements are zero."""
    if isinstance(dim, (tuple, list)):
        raise TypeError(errors.message("prod()", expected="one dim", found=str(dim), do="call prod once for each axis"))
    return _prod(_cast_first(input, dtype), dim, keepdim)


def _cumprod_rule(g: Any, input: Any, dim: Any) -> Any:
    # d out_j / d x_i = prod of x_k, k <= j, k != i: a sum over j of products without x_i, O(n^2), exact with zeros.
    if not np.ndim(input):
        return g
    axis = wrap_axis(dim, len(np.shape(input)))
    moved, gm = np.moveaxis(input, axis, 0), np.moveaxis(g, axis, 0)
    parts = []
    for i in range(moved.shape[0]):
        head = quiet(np.multiply.reduce, np.prod, moved[:i], axis=0)
        tail = _products(np.concatenate([np.ones_like(moved[i : i + 1]), moved[i + 1 :]], axis=0), 0)
        parts.append(quiet(np.add.reduce, np.sum, np.multiply(gm[i:], np.conj(np.multiply(head, tail))), axis=0))
    return np.moveaxis(np.stack(parts), 0, axis) if parts else np.zeros_like(input)


@special(method=False, input=_cumprod_rule)
def _cumprod(input: Any, dim: int) -> Any:
    axis = wrap_axis(dim, input.ndim)
    return _products(input, axis) if input.ndim else np.copy(input)


@composite(numpy={np.cumprod: lambda a, axis=None: cumprod(a if axis is not None else a.flatten(), axis or 0)})
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The running product along `dim`."""
    return _cumprod(_cast_first(input, dtype), dim)


def _cumsum_rule(g: Any, dim: Any) -> Any:
    if not len(np.shape(g)):
        return g
    return np.flip(quiet(np.add.accumulate, np.cumsum, np.flip(g, axis=dim), axis=dim), axis=dim)


@linear(
    input=_cumsum_rule,
    numpy={np.cumsum: lambda a, axis=None: cumsum(a if axis is not None else a.flatten(), axis or 0)},
)
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The running sum along `dim`."""
    axis = wrap_axis(dim, input.ndim)
    found = _accumulator(input, dtype)
    return (
        quiet(np.add.accumulate, np.cumsum, input, axis=axis, dtype=found)
        if input.ndim
        else np.array(input, dtype=found)
    )


# Extremes -----------------------------------------------------------------------------------------------------------


def _extreme_rule(g: Any, input: Any, out: Any, dim: Any, keepdim: Any) -> Any:
    values, best = plain(input), plain(out)
    axes = wrap_axes(dim, values.ndim)
    best = insert_axes(best, axes, values.shape, keepdim)
    ties = np.logical_or(np.equal(values, best), np.logical_and(np.isnan(values), np.isnan(best)))
    share = np.true_divide(
        insert_axes(g, axes, values.shape, keepdim), np.sum(ties, axis=axes, keepdims=True).astype(values.dtype)
    )
    return np.where(ties, share, 0)


def _refuse_extreme(name: str, input: Any, dim: Any) -> None:
    """Refuse to look for the largest of nothing, or of complex numbers, which have no order."""
    if input.dtype.kind == "c":
        raise NotImplementedError(
            errors.message(f"{name}()", expected="real numbers, which have an order", found=errors.describe(input))
        )
    if _count(input.shape, dim) == 0:
        error = RuntimeError if dim == () else IndexError
        raise error(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0, and to have non-zero size; "
            f"found shape {list(input.shape)}, dim {dim}."
        )


@special(
    input=_extreme_rule,
    numpy=dict.fromkeys((np.max, np.amax), lambda a, axis=None, *, keepdims=False: amax(a, axis, keepdims)),
)
def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest element over `dim` (default: all); ties share the gradient evenly."""
    _refuse_extreme("amax", input, dim)
    return np.max(input, axis=wrap_axes(dim, input.ndim), keepdims=keepdim)


@special(
    input=_extreme_rule,
    numpy=dict.fromkeys((np.min, np.amin), lambda a, axis=None, *, keepdims=False: amin(a, axis, keepdims)),
)
def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The smallest element over `dim` (default: all); ties share the gradient evenly."""
    _refuse_extreme("amin", input, dim)
    return np.min(input, axis=wrap_axes(dim, input.ndim), keepdims=keepdim)


def _argument(name: str, find: Any, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(errors.message(f"{name}()", expected="a Tensor", found=errors.describe(input)))
    data = input._data
    axis = None if dim is None else wrap_axis(dim, data.ndim)
    _refuse_extreme(name, data, dim)
    if not data.ndim:
        return wrap(np.zeros((), np.int64))
    return wrap(np.asarray(find(data, axis=axis, keepdims=keepdim), dtype=np.int64))


@composite(numpy={np.argmax: lambda a, axis=None, *, keepdims=False: argmax(a, axis, keepdims)})
def argmax(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The index of the (first) largest element, in the flattened tensor or along `dim`; int64, no derivative."""
    return _argument("argmax", np.argmax, input, dim, keepdim)


@composite(numpy={np.argmin: lambda a, axis=None, *, keepdims=False: argmin(a, axis, keepdims)})
def argmin(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The index of the (first) smallest element, in the flattened tensor or along `dim`; int64, no derivative."""
    return _argument("argmin", np.argmin, input, dim, keepdim)


def _extreme(
    name: str, every: Any, pair: Any, where: Any, result: Any, input: Tensor, args: tuple[Any, ...], keepdim: bool
) -> Any:
    if not args:
        return every(input)
    if isinstance(args[0], Tensor):
        return pair(input, *args)
    dim, keepdim = args[0], args[1] if len(args) > 1 else keepdim
    indices = where(input, dim, True)
    values = gather(input, dim, indices)
    if keepdim or not input.ndim:
        return result(values, indices)
    return result(values.squeeze(dim), indices.squeeze(dim))


@composite()
def max(input: Tensor, *args: Any, dim: Any = None, other: Any = None, keepdim: bool = False) -> Any:
    """`max(x)`: the largest element; `max(x, dim)`: ``(values, indices)`` along an axis; `max(x, y)`: as `maximum`.

    >>> import pullback
    >>> pullback.tensor([[1.0, 5.0], [7.0, 2.0]]).max(dim=1)
    MaxResult(values=tensor([5., 7.]), indices=tensor([1, 0]))
    """
    args = args or tuple(a for a in (dim, other) if a is not None)
    return _extreme("max", amax, np.maximum, argmax, MaxResult, input, args, keepdim)


@composite()
def min(input: Tensor, *args: Any, dim: Any = None, other: Any = None, keepdim: bool = False) -> Any:
    """`min(x)`: the smallest element; `min(x, dim)`: ``(values, indices)`` along an axis; `min(x, y)`: as `minimum`."""
    args = args or tuple(a for a in (dim, other) if a is not None)
    return _extreme("min", amin, np.minimum, argmin, MinResult, input, args, keepdim)


# Moments and norms --------------------------------------------------------------------------------------------------


def _deviation(name: str, input: Tensor, dim: Any, unbiased: Any, correction: Any) -> tuple[Tensor, float]:
    """The deviations from the mean over `dim`, and what the sum of their squares is to be divided by."""
    if not isinstance(input, Tensor):
        raise TypeError(errors.message(f"{name}()", expected="a Tensor", found=errors.describe(input)))
    if input._data.dtype.kind not in "fc":
        raise RuntimeError(
            errors.message(f"{name}()", expected="a floating point or complex tensor", found=errors.describe(input))
        )
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    left = _count(input._data.shape, dim) - correction
    return input - mean(input, dim, True), left if left > 0 else 0


@composite(
    numpy={np.var: lambda a, axis=None, *, ddof=0, keepdims=False: var(a, axis, correction=ddof, keepdim=keepdims)}
)
def var(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """The variance over `dim`: squared deviations from the mean, summed, over ``n - correction``.

    `correction` is 1 by default (Bessel's); ``unbiased=False`` means 0. Of complex numbers the real E|x - mean|^2.
    """
    if isinstance(dim, bool):  # torch's var(input, unbiased)
        dim, unbiased = None, dim
    deviation, left = _deviation("var", input, dim, unbiased, correction)
    squares = np.square(deviation) if deviation._data.dtype.kind == "f" else np.square(np.abs(deviation))
    return sum(squares, dim, keepdim) / left


@composite(
    numpy={np.std: lambda a, axis=None, *, ddof=0, keepdims=False: std(a, axis, correction=ddof, keepdim=keepdims)}
)
def std(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """The standard deviation over `dim`: the square root of `var`; its derivative where all elements are equal is 0."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    deviation, left = _deviation("std", input, dim, unbiased, correction)
    return _euclidean(deviation, dim, keepdim) / left**0.5


def _safe_root_rule(g: Any, input: Any, out: Any, dim: Any, keepdim: Any) -> Any:
    # d|x| = x / |x|, and 0 at the origin, torch's choice of subgradient
    shape = np.shape(input)
    axes = wrap_axes(dim, len(shape))
    size = insert_axes(out, axes, shape, keepdim)
    zero = np.equal(plain(size), 0)
    scale = np.true_divide(insert_axes(g, axes, shape, keepdim), np.where(zero, 1, size))
    return np.multiply(np.where(zero, 0, scale), input)


def _p_norm_rule(g: Any, input: Any, out: Any, p: float, dim: Any, keepdim: Any) -> Any:
    # d|x| = sgn(x_i) (|x_i| / |x|)^(p-1), and 0 where either is 0, torch's choice of subgradient
    axes = wrap_axes(dim, len(np.shape(input)))
    size, total = np.abs(input), insert_axes(out, axes, np.shape(input), keepdim)
    zero = np.logical_or(np.equal(plain(size), 0), np.equal(plain(total), 0))
    size, total = np.where(zero, 1, size), np.where(zero, 1, total)
    slope = np.multiply(np.true_divide(input, size), np.power(np.true_divide(size, total), p - 1))
    return np.where(zero, 0, np.multiply(insert_axes(g, axes, np.shape(input), keepdim), slope))


@special(method=False, input=_p_norm_rule)
def _p_norm(input: Any, p: float, dim: Any = None, keepdim: bool = False) -> Any:
    return np.power(_total(np.power(np.abs(input), p), dim, keepdim, None), 1 / p)


@special(method=False, input=_safe_root_rule)
def _euclidean(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.sqrt(_total(np.square(np.abs(input)), dim, keepdim, None))


@composite()
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The p-norm ``(sum |x|^p)^(1/p)`` over `dim` (default: all); ``"fro"`` is p = 2, `inf` the largest modulus.

    The 2-norm's gradient at the origin is 0.
    """
    if not isinstance(input, Tensor):
        raise TypeError(errors.message("norm()", expected="a Tensor", found=errors.describe(input)))
    if dtype is not None:
        if input.is_complex() and not _dtypes.to_numpy(dtype).kind == "c":
            raise RuntimeError(
                errors.message("norm()", expected="a complex dtype for a complex tensor", found=str(dtype))
            )
        input = to(input, dtype)
    if input._data.dtype.kind not in "fc":
        raise RuntimeError(
            errors.message("norm()", expected="a floating point or complex tensor", found=errors.describe(input))
        )
    if p is None or p == "fro" or p == 2:
        return _euclidean(input, dim, keepdim)
    size = abs(input)
    axes = () if dim is None else dim
    if p == float("inf"):
        return amax(size, axes, keepdim)
    if p == float("-inf"):
        return amin(size, axes, keepdim)
    if p == 0:
        return sum(sign(size), dim, keepdim)
    if p == 1:
        return sum(size, dim, keepdim)
    if not isinstance(p, (int, float)):
        raise RuntimeError(errors.message("norm()", expected="p a number, 'fro' or inf", found=repr(p)))
    return _p_norm(input, p, dim, keepdim)


def _test(find: Any, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(errors.message(f"{find.__name__}()", expected="a Tensor", found=errors.describe(input)))
    data = input._data
    return wrap(np.asarray(find(data != 0, axis=wrap_axes(dim, data.ndim), keepdims=keepdim)))


@composite(numpy={np.any: lambda a, axis=None, *, keepdims=False: any(a, axis, keepdims)})
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any of the elements is nonzero, over `dim` (default: all elements); bool, no derivative."""
    return _test(np.any, input, dim, keepdim)


@composite(numpy={np.all: lambda a, axis=None, *, keepdims=False: all(a, axis, keepdims)})
def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether all of the elements are nonzero, over `dim` (default: all elements); bool, no derivative."""
    return _test(np.all, input, dim, keepdim)
