"""`embedding`, which looks up rows of a matrix, and `embedding_bag`, which adds them up.

Looking up is linear in the matrix, and its adjoint adds rows at positions. A sum over bags is that same operation,
with the numbers of the bags as positions. An index is a column ``(..., m, 1)``, so that all arrays have the same number
of axes.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ...autograd.grad_mode import no_grad
from ...errors import callers_level
from ...interpreters.traced import open_trace
from ...kernels.counterparts import combine_at
from ...kernels.positions import add_at, within
from ...kernels.sliding import Array
from ...ops.elementwise.limits import where
from ...ops.elementwise.value_checks import check_values
from ...ops.reduce.searching import searchsorted
from ...ops.sparse.coo import Pattern, sparse_at
from ...table.calls import on
from ...table.entry import composite, constant, linear
from ...table.samples import A, Differs, S, V
from ...tensor.adding import summing
from ...tensor.arrays import arange_beside, full_beside, zeros_beside
from ...tensor.protocol import check_later, is_foreign, on_arrays
from ...tensor.tensor import Tensor, wrap
from .arguments import refuse, tensors
from .primitives import picked_from_planes


def _check(index: Array, n: int, error: type[Exception]) -> None:
    """Refuse positions outside n rows."""
    if not within(index, n):
        raise refuse(
            "embedding",
            f"positions in [0, {n - 1}], the index of a row",
            f"{index.min()} to {index.max()}",
            error=error,
        )


@linear(
    home="nn.functional",
    batch="leading",
    numbers="",
    input=lambda g, index, input_shape: on(_add_rows, g, index, input_shape[-2]),
)
def _rows(input: Any, index: Any) -> Any:
    """The rows ``(..., m, d)`` of ``(..., n, d)`` at ``(..., m, 1)``."""
    if input.ndim == 2 == index.ndim:
        return input.take(index[:, 0], 0)
    lead = np.broadcast_shapes(input.shape[:-2], index.shape[:-2])
    n, d = input.shape[-2:]
    if math.prod(input.shape[:-2]) == 1:
        position = np.broadcast_to(index[..., 0], (*lead, index.shape[-2]))
        return np.take(input.reshape(n, d), position, axis=0)
    start = arange_beside(index, math.prod(lead)).reshape(*lead, 1) * n
    flat = np.broadcast_to(input, (*lead, n, d)).reshape(math.prod(lead) * n, d)
    return np.take(flat, index[..., 0] + start, axis=0)


@linear(home="nn.functional", batch="leading", numbers="", input=lambda g, index: on(_rows, g, index))
def _add_rows(input: Any, index: Any, n: Any) -> Any:
    """n rows ``(..., n, d)``: zeros plus the rows ``(..., m, d)`` at the positions ``(..., m, 1)``."""
    m, d = input.shape[-2:]
    lead = np.broadcast_shapes(input.shape[:-2], index.shape[:-2])
    blocks, places = math.prod(lead), index[..., 0]
    out = zeros_beside(input, (blocks * n, d), summing(input.dtype))
    if lead:
        places = np.broadcast_to(places, (*lead, m)).reshape(blocks, m)
        places = (places + arange_beside(index, blocks).reshape(blocks, 1) * n).reshape(-1)
        input = np.broadcast_to(input, (*lead, m, d)).reshape(blocks * m, d)
    add_at(out, (places,), input)
    return out.reshape(*lead, n, d).astype(input.dtype, copy=False)


def _gradient(g: Any, index: Any, weight_shape: Any, padding_idx: Any, scale_grad_by_freq: Any, sparse: Any) -> Any:
    n = weight_shape[-2]
    if sparse and isinstance(index, np.ndarray):
        kept = np.arange(index.size) if padding_idx is None else np.flatnonzero(index[:, 0] != padding_idx)
        values = g if padding_idx is None else on(_rows, g, kept[:, None])
        return sparse_at(values, Pattern(np.ascontiguousarray(index[kept].T), tuple(weight_shape), False))
    if padding_idx is not None:
        g = np.where(np.equal(index, padding_idx), 0, g)
    if scale_grad_by_freq:
        ones = np.ones_like(g[..., :1])
        g = np.true_divide(g, on(_rows, on(_add_rows, ones, index, n), index))
    return on(_add_rows, g, index, n)


@linear(
    home="nn.functional",
    saved={
        "indices": lambda index: index[:, 0] if isinstance(index, Tensor) else wrap(index[:, 0]),
        "padding_idx": lambda padding_idx: -1 if padding_idx is None else padding_idx,
        "weight_sym_argsize_0": lambda weight_shape: weight_shape[0],
    },
    batch="leading",
    numbers="padding_idx scale_grad_by_freq sparse",
    weight=_gradient,
)
def _embedding(weight: Any, index: Any, padding_idx: Any, scale_grad_by_freq: Any, sparse: Any) -> Any:
    """`_rows` with the requested gradient, which may differ from the derivative."""
    return _rows.op.forward(weight, index)


def _renormalize(weight: Tensor, index: Array, max_norm: float, norm_type: float) -> None:
    """Shorten, in place, the looked-up rows that are longer than `max_norm`."""
    rows = np.unique(index)
    values = weight._data[rows]
    norms = np.linalg.norm(values, norm_type, axis=-1)
    long = norms > max_norm
    with no_grad():
        weight[rows[long]] = values[long] * (max_norm / (norms[long] + 1e-7))[:, None].astype(values.dtype)


def _looked_up(
    name: str,
    input: Any,
    weight: Any,
    padding_idx: int | None,
    max_norm: float | None,
    norm_type: float,
    by_frequency: bool,
    sparse: bool,
    outside: type[Exception],
) -> Tensor:
    """The rows ``(m, d)`` of the weight at the input, flattened, after all checks."""
    tensors(name, input=input, weight=weight)
    if input._data.dtype not in (np.int64, np.int32):
        raise refuse(name, "input of int64 or int32", input.dtype, "convert it with .long()")
    if weight._data.ndim != 2:
        raise refuse(name, "weight to be a matrix, a row for each index", f"size {list(weight._data.shape)}")
    input = check_values(_check, input, weight._data.shape[0], outside)
    if max_norm is not None and isinstance(input._data, np.ndarray):
        _renormalize(weight, input._data, max_norm, norm_type)
    elif max_norm is not None:
        raise refuse(name, "no max_norm inside a transform: it changes the weight in place", max_norm)
    if sparse and by_frequency:
        raise refuse(name, "scale_grad_by_freq or sparse", "both")
    if sparse and (level := open_trace()) is not None:
        level.sparse = True  # its gradient is a dense one there
    # without a transform the index is a plain array, which a sparse gradient can read
    source: Any = input._data if isinstance(input._data, np.ndarray) else input
    column = source.reshape(math.prod(input._data.shape), 1)
    return _embedding(weight, column, padding_idx, by_frequency, sparse)


def _padding(name: str, padding_idx: int | None, n: int, error: type[Exception]) -> int | None:
    """The row of padding, counted from the first row."""
    if padding_idx is None or 0 <= padding_idx < n:
        return padding_idx
    if not -n <= padding_idx < n:
        raise refuse(name, f"padding_idx within the {n} rows of the weight", padding_idx, error=error)
    return padding_idx + n


_NOT_A_DERIVATIVE = "the gradient that was asked for is not the derivative"
_DIFFERS = [
    *(Differs(_NOT_A_DERIVATIVE, c, "", s) for c in ("slopes", "forward") for s in ("padding_idx", "by_freq")),
    Differs("torch has no second derivative with scale_grad_by_freq", "second", "", "scale_grad_by_freq"),
    Differs("torch has no second derivative of nothing", "second", "", "([], "),
]


@composite(
    home="nn.functional",
    samples=lambda: [
        S(_I, A(4, 3)),
        S(V([[1, 3], [1, 1]], "int64"), A(4, 2, layout="T")),
        S(V(2, "int32"), A(3, 2)),
        S(V([], "int64"), A(3, 2)),
        S(_I, A(4, 3), padding_idx=1),
        S(_I, weight=A(4, 3, layout="step"), padding_idx=-2),
        S(_I, A(4, 3), None, None, 2.0, scale_grad_by_freq=True),
        S(_I, A(4, 3, layout="readonly"), None, None, 2.0, False, False),
    ],
    refused=lambda: [
        S(V([0, 3], "int64"), A(3, 2)),
        S(V([0, -1], "int64"), A(3, 2)),
        S(V([0, 1], "int16"), A(3, 2)),
        S(A(2), A(3, 2)),
        S(_I, A(4)),
        S(_I, A(4, 2, 2)),
        S(_I, A(4, 2), 4),
        S(_I, A(4, 2), -5),
        S([1], A(4, 2)),
        S(_I),
    ],
    differs=_DIFFERS,
)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: Any = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """``weight[input]``: the rows of a matrix ``(n, d)`` at integers of any shape, with a new last axis.

    padding_idx: a row that gets no gradient. max_norm: rows that are longer, by the norm of `norm_type`, are first
    shortened, in place. scale_grad_by_freq: the gradient of a row is divided by its number of look-ups. sparse: the
    gradient is a sparse tensor of the rows that were looked up.

    >>> import pullback
    >>> w = pullback.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> pullback.nn.functional.embedding(pullback.tensor([1, 1]), w)
    tensor([[2., 3.],
            [2., 3.]])
    """
    rows = weight._data.shape[0] if isinstance(weight, Tensor) and weight._data.ndim else 0
    place = _padding("embedding", padding_idx, rows, AssertionError)
    found = _looked_up("embedding", input, weight, place, max_norm, norm_type, scale_grad_by_freq, sparse, IndexError)
    return found if input._data.ndim == 1 else found.reshape(*input._data.shape, weight._data.shape[1])


# Bags -----------------------------------------------------------------------------------------------------------------


def _check_offsets(offsets: Any, count: int) -> None:
    if not offsets.size:
        return
    if is_foreign(offsets):
        wrong = np.logical_or(np.any(offsets[..., 0] != 0), np.any(offsets[..., -1] > count))
        error = refuse("embedding_bag", f"offsets from 0 up to the input's length {count}", "others")
        return check_later(wrong, error)
    first, last = np.max(np.abs(offsets[..., 0])), np.max(offsets[..., -1])
    if first != 0:
        raise refuse("embedding_bag", "offsets to begin with 0", f"offsets[0] = {first}")
    if last > count:
        raise refuse("embedding_bag", f"offsets up to the input's length {count}", f"offsets[-1] = {last}")


def _bags(offsets: Tensor, count: int, with_end: bool) -> Tensor:
    """The bag number of each of `count` elements, as a column."""
    offsets = check_values(_check_offsets, offsets, count)
    starts = offsets[:-1] if with_end else offsets
    return (searchsorted(starts, wrap(arange_beside(starts, count)), right=True) - 1).unsqueeze(-1)


@constant(home="nn.functional", method=False)
@on_arrays
def _first_of_largest(rows: Any, bag: Any, bags: Any, left_out: Any) -> Any:
    """The position of the first of the largest of ``(m, d)`` for each bag and column; m for an empty bag."""
    m, d = rows.shape
    out = full_beside(rows, (bags, d), m, np.int64)
    if is_foreign(rows):
        return _first_by_places(rows, bag[:, 0], out, left_out)
    kept = np.arange(m) if left_out is None else np.flatnonzero(~left_out)
    if not kept.size:
        return out
    rows, bag = rows[kept], bag[kept, 0]
    starts = np.flatnonzero(np.diff(bag, prepend=-1))
    largest = np.repeat(np.maximum.reduceat(rows, starts, axis=0), np.diff(starts, append=bag.size), axis=0)
    place = np.where(rows == largest, kept[:, None], m)
    out[bag[starts]] = np.minimum.reduceat(place, starts, axis=0)
    return out


def _first_by_places(rows: Any, bag: Any, out: Any, left_out: Any) -> Any:
    """As `_first_of_largest`, by combining at places, so that nothing waits for a device. out: m for each bag."""
    m, d = rows.shape
    kept = full_beside(rows, (m,), True, bool) if left_out is None else np.logical_not(left_out)
    places = (bag[:, None] * d + arange_beside(rows, d)).reshape(-1)
    lowest = np.where(kept[:, None], rows, -np.inf)
    best = full_beside(rows, (out.size,), -np.inf)
    combine_at(np.maximum, best, places, lowest.reshape(-1))
    first = np.logical_and(np.equal(lowest, np.take(best, places).reshape(m, d)), kept[:, None])
    found = out.reshape(-1)
    combine_at(np.minimum, found, places, np.where(first, arange_beside(rows, m)[:, None], m).reshape(-1))
    return found.reshape(out.shape)


def _largest(rows: Tensor, bag: Any, bags: int, left_out: Any) -> Tensor:
    """The largest element of each column of the rows of each bag; 0 for an empty bag."""
    m, d = rows._data.shape
    if not m:
        return rows.new_zeros(bags, d) + rows.sum()
    place = _first_of_largest(rows, bag, bags, left_out)
    found = picked_from_planes(rows.t(), place.clamp(max=m - 1).t(), 1).t()
    return where(place < m, found, 0)


def _check_bags(input: Tensor, offsets: Any, mode: str, sparse: bool, by_frequency: bool, weights: Any) -> None:
    name = "embedding_bag"
    if mode not in ("sum", "mean", "max"):
        raise refuse(name, "mode 'sum', 'mean' or 'max'", repr(mode), error=ValueError)
    if weights is not None and weights._data.shape != input._data.shape:
        raise refuse(
            name, f"per_sample_weights of the input's shape {list(input.shape)}", list(weights.shape), error=ValueError
        )
    if input._data.ndim == 2 and offsets is not None:
        raise refuse(name, "offsets to be None with a 2D input, whose rows are the bags", "offsets", error=ValueError)
    if input._data.ndim == 1 and (not isinstance(offsets, Tensor) or offsets._data.ndim != 1):
        raise refuse(name, "offsets to be a 1D Tensor with a 1D input", "none such", error=ValueError)
    if input._data.ndim not in (1, 2):
        raise refuse(name, "a 1D or 2D input", f"{input._data.ndim}D", error=ValueError)
    if mode == "max" and (sparse or by_frequency):
        raise refuse(name, "neither sparse nor scale_grad_by_freq with mode='max'", "one of them", error=ValueError)
    if mode != "sum" and weights is not None:
        raise refuse(name, "per_sample_weights only with mode='sum'", f"mode={mode!r}", error=NotImplementedError)


@composite(
    home="nn.functional",
    narrow="one dtype",
    samples=lambda: _bag_samples(),
    refused=lambda: _bag_refused(),
    differs=[
        *(Differs(_NOT_A_DERIVATIVE, c, "", "by_freq") for c in ("slopes", "forward")),
        Differs("torch has no second derivative of embedding_bag", "second", "float64"),
        Differs("torch divides by the count of another index", "gradients", "float32 float64", "by_freq"),
    ],
)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: Any = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of `weight` at the indices of each bag, ``(bags, d)``; 0 for an empty bag.

    input: ``(bags, length)``, or all indices in a row; then `offsets` says where each bag begins (and, with
    `include_last_offset`, where the last one ends). per_sample_weights: a factor for each index of a sum. padding_idx:
    a row that does not count. The other arguments are those of `embedding`.

    >>> import pullback
    >>> w = pullback.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> pullback.nn.functional.embedding_bag(pullback.tensor([1, 1, 0]), w, pullback.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [0., 1.]])
    """
    name = "embedding_bag"
    tensors(name, input=input, weight=weight)
    if input.is_floating_point() and weight._data.dtype == np.int64:
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed: (weight, input, ...) is deprecated, "
            "write embedding_bag(input, weight, ...)",
            stacklevel=callers_level(),
        )
        input, weight = weight, input
    _check_bags(input, offsets, mode, sparse, scale_grad_by_freq, per_sample_weights)
    if per_sample_weights is not None and per_sample_weights._data.dtype != weight._data.dtype:
        wanted = f"per_sample_weights to have the same type as weight, {weight.dtype}"
        raise refuse("embedding_bag", wanted, per_sample_weights.dtype, "convert one of them")
    if weight._data.dtype.kind != "f":
        raise refuse(name, "weight of floating point numbers", weight.dtype)
    place = _padding(name, padding_idx, weight._data.shape[0], RuntimeError)
    rows = _looked_up(name, input, weight, place, max_norm, norm_type, scale_grad_by_freq, sparse, RuntimeError)
    m = rows._data.shape[0]
    if offsets is None:
        bags, length = input._data.shape
        bag: Any = np.repeat(arange_beside(rows, bags), length)[:, None]
    else:
        bags = max(offsets._data.shape[0] - bool(include_last_offset), 0)
        bag = _bags(offsets, m, include_last_offset)
    left_out: Any = None if place is None else input.reshape(m).eq(place)
    if mode == "max":
        return _largest(rows, bag, bags, left_out)
    if left_out is not None:
        rows = where(left_out[:, None], 0, rows)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(m, 1)
    if offsets is None:
        total = rows.reshape(*input._data.shape, weight._data.shape[1]).sum(1)
    else:
        total = _add_rows(rows, bag, bags)
    if mode == "sum":
        return total
    counted = weight.new_ones(m, 1) if left_out is None else (~left_out).to(weight.dtype).reshape(m, 1)
    return total / _add_rows(counted, bag, bags).clamp(min=1)


# Their domains --------------------------------------------------------------------------------------------------------

_I: Any = V([1, 1, 2, 0], "int64")


def _bag_samples() -> list[Any]:
    w, offsets = A(4, 3, domain="distinct"), V([0, 2, 2], "int64")
    found = []
    for mode in ("mean", "sum", "max"):
        found += [
            S(_I, w, offsets, mode=mode),
            S(V([[1, 3], [1, 1]], "int64"), A(4, 2, domain="distinct", layout="T"), mode=mode),
            S(_I, w, V([0, 1, 4], "int64"), None, 2.0, False, mode, False, None, True),
            S(_I, w, V([0, 2, 3], "int64"), mode=mode, padding_idx=0),
            S(_I, w, V([0], "int64"), mode=mode, padding_idx=-3),
            S(V([], "int64"), w, V([0, 0], "int64"), mode=mode),
        ]
    return [
        *found,
        S(_I, w, offsets),
        S(_I, w, offsets, mode="sum", per_sample_weights=A(4)),
        S(V([[1, 3], [1, 1]], "int32"), w, mode="sum", per_sample_weights=A(2, 2), padding_idx=3),
        S(_I, w, offsets, mode="sum", scale_grad_by_freq=True),
    ]


def _bag_refused() -> list[Any]:
    w, pair = A(3, 2), V([0, 1], "int64")
    return [
        S(pair, w),
        S(pair, w, V([1], "int64")),
        S(pair, w, V([0, 3], "int64")),
        S(pair, w, V([[0]], "int64")),
        S(V([[0, 1]], "int64"), w, V([0], "int64")),
        S(V([[0, 1]], "int64"), w, mode="median"),
        S(V([[0, 1]], "int64"), w, mode="max", sparse=True),
        S(V([[0, 1]], "int64"), w, mode="max", scale_grad_by_freq=True),
        S(V([[0, 1]], "int64"), w, mode="mean", per_sample_weights=A(1, 2)),
        S(V([[0, 1]], "int64"), w, mode="sum", per_sample_weights=A(2)),
        S(V([0, 5], "int64"), w, V([0], "int64")),
        S(pair, w, V([0], "int64"), padding_idx=3),
        S(V([0.0, 1.0], "float32"), w, V([0], "int64")),
        S(V([[[0, 1]]], "int64"), w),
    ]
