"""Sums, means and products along axes; whether any or all elements are nonzero, and how many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...kernels.counterparts import folded, scanned
from ...table.calls import on
from ...table.checks import Titled
from ...table.entry import composite, constant, linear, special
from ...table.nodes import OpNode, dims_of
from ...table.op import Op
from ...table.operands import data_of, plain, somewhere
from ...table.samples import EMPTY, NO_DIM, A, D, Differs, S, Sample, V, along, inf, nan, whole
from ...tensor import dtypes
from ...tensor.adding import summed, summing
from ...tensor.arrays import insert_axes, wrap_axes
from ...tensor.tensor import Tensor
from ..make.conversion import to, to_copy

_LARGEST_HALF = 65504  # the largest float16
_LONG = 256  # rows at least this long are processed one by one, or folded in halves


def accumulator(input: Any, dtype: Any) -> Any:
    """The dtype of a sum: the requested one, int64 for integers and bools, or the tensor's own."""
    if dtype is not None:
        return dtypes.to_numpy(dtype)
    return np.dtype(np.int64) if input.dtype.kind in "biu" else input.dtype


def _total(input: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    axes = None if dim is None else wrap_axes(dim, input.ndim)
    if dtype is not None or input.dtype.kind not in "fc":
        dtype = accumulator(input, dtype)
    return summed(input, axes, keepdim, dtype)


def _along(node: OpNode) -> int:
    """The number at the end of torch's name for a node: 1 if an axis was given, or the axes were kept."""
    return int(node.saved_as("dim") is not None or bool(node.saved_as("keepdim")))


def _count(shape: Any, dim: Any) -> int:
    axes = None if dim is None else wrap_axes(dim, len(shape))
    return math.prod(shape) if axes is None else math.prod([shape[i] for i in axes])


def _samples() -> list[Sample]:
    return [
        *whole(),
        *along(0, 1, -1, None, ()),
        *EMPTY,
        S(A(2, 3), dtype=D("float64")),
        S(A(2, 3, dtype="int64"), 0, dtype=D("float32")),
        S(A(2, 3), axis=1, keepdims=True),
    ]


# Sums and means -------------------------------------------------------------------------------------------------------


def _sum_rule(g: Any, input_shape: Any, dim: Any, keepdim: Any) -> Any:
    return g if dim is None else insert_axes(g, wrap_axes(dim, len(input_shape)), input_shape, keepdim)


@linear(
    node=lambda node: f"SumBackward{_along(node)}",
    saved={"dim": dims_of},
    batch=dims("dim", keeps="keepdim"),
    out="dtype",
    input=_sum_rule,
    numpy={np.sum: lambda a, axis=None, dtype=None, *, keepdims=False: sum(a, axis, keepdims, dtype=dtype)},
    samples=lambda: [*_samples(), S(A(2, 3, dtype="float64"), dtype=D("int64")), S(A(2, 3), 0, dtype=D("bool"))],
    refused=NO_DIM,
)
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum over `dim` (an int, a tuple, or None for all); integers and bools add up in int64.

    >>> import pullback
    >>> pullback.ones(2, 3).sum(dim=0)
    tensor([2., 2., 2.])
    """
    return _total(input, dim, keepdim, dtype)


def _mean_rule(g: Any, input_shape: Any, dim: Any, keepdim: Any) -> Any:
    spread, count = _sum_rule(g, input_shape, dim, keepdim), _count(input_shape, dim) or 1
    if count > _LARGEST_HALF and g.dtype in (np.float16, dtypes.float16):  # count would be infinite
        return np.multiply(spread, 1 / count)
    return np.true_divide(spread, count)


@linear(
    node=lambda node: f"MeanBackward{_along(node)}",
    saved={"dim": dims_of},
    batch=dims("dim", keeps="keepdim"),
    input=_mean_rule,
    samples=_samples,
    kinks=[S(V([nan, 1.0])), S(V([inf, -inf]))],
    refused=[*NO_DIM, S(A(3, dtype="int64")), S(A(3), dtype=D("int64"))],
)
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The arithmetic mean over `dim`; NaN for no elements. Integers and bools need a `dtype`."""
    if (input.dtype if dtype is None else dtypes.to_numpy(dtype)).kind not in "fcV":
        raise RuntimeError(
            errors.message(
                "mean(): could not infer output dtype",
                expected="a floating point or complex dtype",
                found=errors.describe(input) if dtype is None else str(dtype),
                do=f"call numpy.mean(x), convert it first, x.{dtypes.to_default()}.mean(), or pass such a dtype=",
            )
        )
    count, wanted = _count(input.shape, dim), accumulator(input, dtype)
    total = _total(input, dim, keepdim, summing(wanted))
    found = np.true_divide(total, total.dtype.type(count))
    return found if found.dtype == wanted else found.astype(wanted)


def _nansum_rule(g: Any, input: Any, dim: Any, keepdim: Any) -> Any:
    values = plain(input)
    spread = _sum_rule(g, np.shape(values), dim, keepdim)
    return np.where(np.isnan(values), 0, spread)


def _refuse_complex(name: str, input: Any) -> None:
    if input.dtype.kind == "c":
        raise RuntimeError(errors.message(f"{name}()", expected="real numbers", found=errors.describe(input)))


_MISSING = [[nan, 1.0, 2.0], [nan, nan, nan]]


def _nan_kinks() -> list[Sample]:
    return [*(S(V(_MISSING), *dim) for dim in ((), (0,), (1,), (0, True))), S(V([inf, -inf])), S(V([inf, nan]))]


@special(
    saved={"dim": dims_of},
    batch=dims("dim", keeps="keepdim"),
    input=_nansum_rule,
    samples=_samples,
    kinks=_nan_kinks,
    refused=[*NO_DIM, S(A(2, dtype="complex64"))],
)
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum over `dim` of the elements that are not NaN; the gradient of NaN is 0."""
    _refuse_complex("nansum", input)
    total = _total(input, dim, keepdim, dtype) if dtype is None else None
    if total is None or somewhere(np.isnan(total)):  # NaN elements, or infinities that cancelled
        total = _total(np.where(np.isnan(input), 0, input), dim, keepdim, dtype)
    return total


@composite(
    samples=lambda: [s for s in _samples() if "axis" not in s.kwargs],
    kinks=_nan_kinks,
    refused=[*NO_DIM, S(A(2, dtype="complex64")), S(A(2, dtype="int64"))],
    differs=[
        Differs("an empty sum has no gradient; torch's is 0 times infinity", "kinks", "float64", "[nan, nan, nan]")
    ],
)
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over `dim` of the elements that are not NaN; NaN if all are.

    >>> import pullback
    >>> pullback.tensor([1.0, pullback.nan, 3.0]).nanmean()
    tensor(2.)
    """
    if input._data.dtype.kind not in "fV":
        raise RuntimeError(
            errors.message(
                "nanmean(): expected input to have floating point or complex dtype",
                found=errors.describe(input),
                do=f"convert it first, x.{dtypes.to_default()}",
            )
        )
    if dtype is not None and dtypes.to_numpy(dtype).kind not in "fcV":
        raise RuntimeError(
            errors.message("nanmean(): could not infer output dtype", expected="a floating dtype", found=str(dtype))
        )
    number = sum(np.logical_not(np.isnan(input)), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / number


def along_slices(weights: Any, tangent: Any, dim: Any, keepdim: bool) -> Any:
    """The tangent of a reduction, whose elements each reach one result with these derivatives."""
    return summed(np.multiply(weights, tangent), axis=wrap_axes(dim, np.ndim(tangent)), keepdims=keepdim)


def _logsumexp_rule(g: Any, input: Any, out: Any, dim: Any, keepdim: Any) -> Any:
    shape = np.shape(input)
    axes = wrap_axes(dim, len(shape))
    best, g = (insert_axes(v, axes, shape, keepdim) for v in (out, g))
    return np.multiply(g, np.exp(np.subtract(input, best)))


@special(
    batch=dims("dim", keeps="keepdim"),
    also="special.logsumexp",
    saved={"dim": dims_of},
    input=_logsumexp_rule,
    jvp=lambda tangents, input, out, dim, keepdim: along_slices(
        _logsumexp_rule(np.ones_like(out), input, out, dim, keepdim), tangents[0], dim, keepdim
    ),
    samples=lambda: [
        *along(0, 1, -1),
        S(A(0), 0),
        S(A(2, 0), 1),
        S(A(2, 0), 0),
        S(A(2, 3), axis=0, keepdims=True),
        S(A(2, 3), dim=1),
    ],
    kinks=lambda: [
        *(S(V(v), 0) for v in ([1000.0, 1000.0], [-1000.0, -1001.0], [1e30, 1.0], [-inf, 1.0], [-inf, -inf])),
        *(S(V(v), 0) for v in ([inf, 1.0], [inf, inf], [inf, -inf], [nan, 1.0], [nan, inf])),
        S(V([[-inf, -inf], [0.0, 800.0]]), 1),
    ],
    refused=[*NO_DIM, S(A(2, 3))],
)
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """``log(sum(exp(input)))`` over `dim`, relative to the largest element against overflow; -inf for no elements.

    >>> import pullback
    >>> pullback.tensor([1000.0, 1000.0, -1000.0]).logsumexp(0).item() - 1000
    0.69317...
    """
    axes = wrap_axes(dim, input.ndim)
    if input.dtype.kind in "biu":
        input = input.astype(dtypes.default())
    best: Any = folded(np.maximum, np.real(input), axis=axes, keepdims=True, initial=-np.inf)
    best = np.where(np.isfinite(best), best, 0)
    total = np.log(summed(np.exp(input - best), axis=axes, keepdims=keepdim))
    return total + np.reshape(best, np.shape(total))


# Products -------------------------------------------------------------------------------------------------------------


def cast_first(input: Tensor, dtype: Any) -> Tensor:
    """The factors of a product: `input` in the requested dtype, or in the dtype of a sum."""
    return to(input, accumulator(input._data, dtype))


_RUNNING = {"f": np.dtype("d"), "F": np.dtype("D")}
"""The dtypes that running sums and products are formed in, as torch does: errors add up from element to element."""


def running(ufunc: np.ufunc, values: Any, axis: int, dtype: Any = None) -> Any:
    """``ufunc.accumulate``, a whole row at a time where rows are contiguous: NumPy's own goes element by element.

    >>> running(np.add, np.ones((3, 2)), 0)[-1]
    array([3., 3.])
    """
    dtype = dtype or values.dtype
    wide: Any = dtype if ufunc in (np.maximum, np.minimum) else _RUNNING.get(dtype.char, summing(dtype))
    rows = np.moveaxis(values, axis, 0)
    if type(values) is not np.ndarray or axis in (-1, values.ndim - 1) or rows[:1].size < _LONG:
        return scanned(ufunc, values, axis, wide).astype(dtype, copy=False)
    if not np.can_cast(values.dtype, wide, "same_kind"):
        rows = rows.astype(wide)  # as `accumulate` does
    out = np.empty(values.shape, dtype)
    into = np.moveaxis(out, axis, 0)
    so_far = rows[:1].astype(wide)
    into[:1] = so_far
    for row, here in zip(rows[1:], into[1:], strict=True):
        ufunc(so_far[0], row, out=so_far[0])
        here[...] = so_far[0]
    return out


def exact(value: Any) -> Any:
    """A value of floating point or complex numbers in the dtype that running sums of it are formed in."""
    wanted = _RUNNING.get(data_of(value).dtype.char)
    return value if wanted is None else on(to_copy, value, wanted)


def products(values: Any, axis: int) -> Any:
    """The running products along an axis."""
    return running(np.multiply, values, axis) if type(values) is np.ndarray else np.cumprod(values, axis=axis)


def _prod_rule(g: Any, input: Any, out: Any, dim: Any, keepdim: Any) -> Any:
    shape = np.shape(input)
    axes = wrap_axes(dim, len(shape))
    if _count(shape, dim) == 1:  # one factor: linear, so that its second derivative is exactly zero
        return insert_axes(g, axes, shape, keepdim)
    g, out = insert_axes(g, axes, shape, keepdim), insert_axes(out, axes, shape, keepdim)
    zero = np.equal(plain(input), 0)
    if not somewhere(zero):
        return np.multiply(g, out / input)
    # The product of all other elements: the elements before times the elements after, which is correct with zeros.
    flat = (
        np.reshape(input, (1, -1, 1))
        if axes is None
        else np.reshape(input, (math.prod(shape[: axes[0]]), shape[axes[0]], math.prod(shape[axes[0] + 1 :])))
    )
    one = np.ones_like(flat[:, :1])
    before = products(np.concatenate([one, flat[:, :-1]], axis=1), 1)
    after = np.flip(products(np.concatenate([one, np.flip(flat[:, 1:], axis=1)], axis=1), 1), axis=1)
    others = np.reshape(np.multiply(before, after), shape)
    # Where no factor is 0 it is the quotient: a product of the others may overflow where that of all does not.
    none = np.logical_not(np.any(zero, axis=axes, keepdims=True))
    return np.multiply(g, np.where(none, out / np.where(zero, 1, input), others))


def _check_prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if isinstance(dim, (tuple, list)):
        raise TypeError(errors.message("prod()", expected="one dim", found=str(dim), do="call prod once for each axis"))
    given = cast_first(input, dtype), dim, keepdim
    return given if dim is None else Titled("ProdBackward1", given)


@special(
    checks=_check_prod,
    out="dtype",
    batch=dims("dim", keeps="keepdim"),
    input=_prod_rule,
    jvp=lambda tangents, input, out, dim, keepdim: along_slices(
        _prod_rule(np.ones_like(out), input, out, dim, keepdim), tangents[0], dim, keepdim
    ),
    numpy={np.prod: lambda a, axis=None, dtype=None, *, keepdims=False: prod(a, axis, keepdims, dtype=dtype)},
    samples=lambda: [*whole(), *along(0, 1, -1, lists=False), *EMPTY, S(A(2, 3), dtype=D("float64"))],
    kinks=lambda: [
        S(V([0.0, 2.0, 3.0])),
        S(V([0.0, 0.0, 3.0])),
        S(V([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]), 0),
        S(V([[0.0, 2.0], [0.0, 0.0]]), 1),
    ],
    refused=lambda: [*(S(A(2, 3), d) for d in (2, -3, "x", (0, 1))), S(A(), 1), S([1.0], 0), S(A(2, 3), 0, nonsense=1)],
)
def prod(input: Any, dim: Any, keepdim: bool) -> Any:
    """The product over one axis, or of all elements; its derivatives are correct where elements are zero."""
    axes = wrap_axes(dim, input.ndim)
    found = input.reshape(-1) if axes is None else input
    if axes in (None, (input.ndim - 1,)):
        # np.multiply.reduce goes element by element; multiplying halves of the array is vectorised
        while found.shape[-1:] > (_LONG,):
            half = found.shape[-1] // 2
            last = found[..., 2 * half :]
            found = found[..., :half] * found[..., half : 2 * half]
            if last.size:
                found[..., :1] *= last
    rest: Any = {"axis": axes if found.ndim == input.ndim else 0, "keepdims": keepdim, "dtype": found.dtype}
    found = np.multiply.reduce(found, **rest)
    return found if axes is not None or not keepdim else np.reshape(found, (1,) * input.ndim)


# Nonzero or not -------------------------------------------------------------------------------------------------------


def _holds(ufunc: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    found = input != 0
    if not _is_empty(dim):
        found = folded(ufunc, found, axis=wrap_axes(dim, input.ndim), keepdims=keepdim)
    return found.astype(np.uint8) if input.dtype == np.uint8 else found  # as in torch: uint8 was once the bool


def _is_empty(dim: Any) -> bool:
    """Whether `dim` is an empty tuple. torch's sums then reduce all dimensions, `any` and `all` reduce none."""
    return isinstance(dim, (tuple, list)) and not dim


_along_dim = dims("dim", keeps="keepdim")


def _held_of_each(level: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """vmap: as for every reduction, except where no dimension is reduced."""
    input, dim, keepdim = op.padded(args, kwargs)
    if _is_empty(dim):
        return op.unchecked(level.value(input), dim, keepdim)
    return _along_dim(level, op, args, kwargs)


def _test_samples() -> list[Sample]:
    uint8 = [S(A(2, 3, dtype="uint8"), dim) for dim in (0, ())]
    return [*whole(), *along(0, 1, -1, None, ()), *EMPTY, S(A(2, 3), keepdim=True), *uint8]


@constant(
    batch=_held_of_each,
    numpy={np.any: lambda a, axis=None, *, keepdims=False: any(a, axis, keepdims)},
    samples=_test_samples,
    kinks=[S(V([nan, 0.0])), S(V([0.0, -0.0]))],
    refused=NO_DIM,
)
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether any of the elements is nonzero, over `dim` (default: all elements); bool, no derivative."""
    return _holds(np.logical_or, input, dim, keepdim)


@constant(
    batch=_held_of_each,
    numpy={np.all: lambda a, axis=None, *, keepdims=False: all(a, axis, keepdims)},
    samples=_test_samples,
    kinks=[S(V([nan, 0.0])), S(V([nan, 1.0]))],
    refused=NO_DIM,
)
def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all of the elements are nonzero, over `dim` (default: all elements); bool, no derivative."""
    return _holds(np.logical_and, input, dim, keepdim)


@constant(
    out=False,
    batch=dims("dim"),
    numpy={np.count_nonzero: lambda a, axis=None, *, keepdims=False: sum(a != 0, axis, keepdims)},
    samples=lambda: [
        *whole(),
        *(S(A(2, 3, 4), d) for d in (0, -1, None, (), (0, 2), [1, 0])),
        S(A(3, 2, layout="T"), dim=0),
        S(A(), 0),
        *EMPTY,
        S(V([0.0, -0.0, nan, 1.0], "float64")),
    ],
    refused=NO_DIM,
)
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """The number of nonzero elements, over `dim` (default: all elements); int64, no derivative.

    >>> import pullback
    >>> pullback.count_nonzero(pullback.tensor([[1, 0], [2, 3]]), dim=0)
    tensor([2, 1])
    """
    axes = wrap_axes(dim, input.ndim)
    if axes is None and type(input) is np.ndarray:
        return np.int64(np.count_nonzero(input))
    return np.sum(input != 0, axis=axes, dtype=np.int64)
