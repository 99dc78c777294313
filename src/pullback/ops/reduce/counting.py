"""Counting: histograms, and the number of occurrences.

A count is piecewise constant. But sums of weights in bins are linear in the weights, and edges that follow the extremes
move with them. torch gives neither a derivative.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...kernels.counterparts import folded
from ...table.entry import composite, constant, linear, special
from ...table.results import result_type
from ...table.samples import A, Differs, S, Sample, V, index, nan
from ...tensor.adding import summed
from ...tensor.arrays import arange_beside, beside, need_memory
from ...tensor.protocol import on_arrays
from ...tensor.tensor import Tensor, wrap
from ..shape.reshape import contiguous, reshape
from ..shape.splitting import unbind
from .extremes import shared_rule
from .picking import pick, place
from .sums import sum

HistogramResult = result_type("histogram", "hist", "bin_edges")
HistogramddResult = result_type("histogramdd", "hist", "bin_edges")


def _check_floats(name: str, input: Any) -> None:
    if input.dtype.kind not in "fV":
        raise NotImplementedError(
            errors.message(
                f"{name}() is not implemented for {input.dtype}",
                expected="a floating point tensor",
                found=errors.describe(input),
            )
        )


def _span(name: str, low: Any, high: Any, margin: float) -> tuple[Any, Any]:
    """The ends of the bins, checked. If they are equal, each is moved out by `margin`."""
    if not np.isfinite(low) or not np.isfinite(high):
        raise RuntimeError(errors.message(f"{name}(): range of [{low}, {high}] is not finite", expected="finite ends"))
    if low > high:
        raise RuntimeError(
            errors.message(
                f"{name}(): max must be larger than min; min should not exceed max", found=f"[{low}, {high}]"
            )
        )
    return (low - margin, high + margin) if low == high else (low, high)


def _check_bins(name: str, bins: Any) -> None:
    if not isinstance(bins, (int, np.integer)):
        raise TypeError(errors.message(f"{name}()", expected="bins to be an integer", found=errors.describe(bins)))
    if bins <= 0:
        raise RuntimeError(errors.message(f"{name}(): bins must be > 0", found=str(bins)))


@constant(
    samples=lambda: [
        *(S(A(*shape, dtype=d), 4) for shape in ((7,), (2, 3), ()) for d in ("float32", "float64")),
        S(A(9, dtype="float64"), 3, -1, 2),
        S(A(9, dtype="float64"), bins=5, min=0, max=2),
        S(A(300, dtype="float64")),
        S(V([2.0, 2.0]), 4),
        S(A(0, dtype="float64"), 4),
        S(A(3, 2, layout="T", dtype="float64"), 3),
    ],
    kinks=[S(V([1.0, nan, 2.0, 0.0]), 4, 0, 2), S(V([0.0, 1.0, 2.0, 3.0]), 3)],
    refused=lambda: [
        *(S(A(3), bins) for bins in (0, -1, 1.5, "x")),
        S(A(3), 4, 3, 1),
        S(V([1.0, nan]), 4),
        S(V([1.0, float("inf")]), 4),
        *(S(A(3, dtype=d), 4) for d in ("int64", "bool", "complex64")),
        S([1.0], 4),
    ],
)
def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """The number of elements in each of `bins` bins of equal width from `min` to `max`.

    If `min` and `max` are equal, the bins span the extremes. Elements outside, and NaN, are not counted. The result has
    the dtype of `input` and no derivative.

    >>> import pullback
    >>> pullback.tensor([1.0, 2.0, 1.0]).histc(4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    _check_bins("histc", bins)
    _check_floats("histc", input)
    if min == max and input.size:
        min, max = folded(np.minimum, input), folded(np.maximum, input)
    low, high = _span("histc", min, max, 1)
    inside = input[np.logical_and(input >= low, input <= high)]
    if low == high:  # for numbers so large that adding 1 changes nothing
        places = np.full(inside.shape, bins // 2)
    else:
        places = ((inside - low) * bins / (high - low)).astype(np.int64)
    places = np.minimum(places, bins - 1)
    return np.bincount(places, minlength=bins).astype(input.dtype)


def _bin_edges_rule(g: Any, input: Any, bins: Any) -> Any:
    if not np.size(input):
        return np.zeros_like(input)
    # the edges lie between the smallest element and the largest, in fixed proportions
    part = beside(input, np.linspace(0, 1, bins + 1))
    low = shared_rule(summed(np.multiply(g, 1 - part)), input, np.min(input), None, False)
    return np.add(low, shared_rule(summed(np.multiply(g, part)), input, np.max(input), None, False))


@special(method=False, input=_bin_edges_rule)
@on_arrays
def _bin_edges(input: Any, bins: int) -> Any:
    """The edges of bins of equal width that hold all elements."""
    low, high = (folded(np.minimum, input), folded(np.maximum, input)) if input.size else (0.0, 1.0)
    return beside(input, _even_edges(low, high, bins, input.dtype))


def _even_edges(low: Any, high: Any, bins: int, dtype: Any) -> Any:
    low, high = (
        end.astype(dtype) if hasattr(end, "astype") else dtype.type(end) for end in _span("histogram", low, high, 0.5)
    )
    step, i = (high - low) / dtype.type(bins), arange_beside(low, bins + 1, dtype)
    return np.where(i < (bins + 1) // 2, low + step * i, high - step * (bins - i))  # exact at both ends


@constant(method=False)
@on_arrays
def _bin_places(input: Any, edges: Any, even: bool) -> Any:
    """The bin of each element, or the number of bins for an element outside. even: the bins have equal width.

    The last bin includes both its edges.
    """
    x, edges, number = np.reshape(input, -1), beside(input, edges), len(edges) - 1
    inside = np.logical_and(x >= edges[0], x <= edges[-1])
    if even:  # first near the right bin, then corrected by one
        x = np.where(inside, x, edges[0])
        places = np.minimum(((x - edges[0]) * number / (edges[-1] - edges[0])).astype(np.int64), number - 1)
        places = places - (x < edges[places])
        places = places + (x >= edges[places + 1])
    else:
        places = np.searchsorted(edges, x, "right") - 1
    return np.where(inside, np.minimum(places, number - 1), number)


def _edges(name: str, input: Tensor, bins: Any, ends: Any) -> Tensor:
    """The edges: `bins` itself, or those of `bins` equal bins between `ends` or the extremes of the elements."""
    if not isinstance(bins, Tensor):
        _check_bins(name, bins)
        return (
            _bin_edges(input, bins)
            if ends is None
            else wrap(beside(input._data, _even_edges(ends[0], ends[1], bins, input._data.dtype)))
        )
    for wrong, which in (
        (bins._data.dtype != input._data.dtype, "input tensor and bins tensors should have the same dtype"),
        (bins._data.ndim != 1, "bins tensor should have one dimension"),
        (bins._data.size < 2, "bins tensor should have at least 1 element, and one more for the last bin's end"),
    ):
        if wrong:
            raise RuntimeError(errors.message(f"{name}(): {which}", found=errors.describe(bins)))
    return bins.clone()


def _weights(name: str, input: Tensor, weight: Any, shape: Any) -> Tensor:
    if weight is None:
        return wrap(beside(input._data, np.ones(shape, input._data.dtype)))
    if not isinstance(weight, Tensor):
        raise TypeError(errors.message(f"{name}()", expected="weight to be a Tensor", found=errors.describe(weight)))
    if weight._data.dtype != input._data.dtype:
        which = "input tensor and weight tensor should have the same dtype"
        raise RuntimeError(errors.message(f"{name}(): {which}", found=f"{input.dtype} and {weight.dtype}"))
    if weight._data.shape != shape:
        raise RuntimeError(
            errors.message(
                f"{name}(): if weight tensor is provided it should have the same shape as the input tensor excluding "
                "its innermost dimension",
                expected=str(list(shape)),
                found=errors.describe(weight),
            )
        )
    return weight


def _histogram_refused() -> list[Sample]:
    x = A(4, dtype="float32")
    return [
        *(S(x, bins) for bins in (0, -1, "x")),
        *(S(x, V(bins, "float32")) for bins in ([1.0], [[0.0, 1.0]])),
        S(x, V([0.0, 1.0], "float64")),
        S(x, 3, range=(3.0, 1.0)),
        S(x, 3, weight=A(3)),
        S(x, 3, weight=A(4, dtype="float64")),
        S(V([1.0, nan]), 3),
        S(A(3, dtype="int64"), 3),
        S([1.0], 3),
        S(x, 3, range=(0.0, nan)),
    ]


@composite(
    samples=lambda: [
        S(A(9, dtype="float64"), 4),
        S(A(9, dtype="float64"), 4, range=(-1.0, 2.0)),
        S(A(3, 3, layout="T", dtype="float64"), V([-2.0, 0.0, 0.5, 2.0], "float64")),
        *(S(A(9, dtype="float64"), 3, weight=A(9, dtype="float64"), density=d) for d in (False, True)),
        S(A(9, dtype="float64"), V([-2.0, 0.0, 0.5, 2.0], "float64"), density=True),
        S(A(0, dtype="float64"), 3),
        S(A(dtype="float64"), 2),
    ],
    kinks=[
        S(V([2.0, 2.0]), 3),
        S(V([1.0, nan, 2.0, 0.0]), 4, range=(0.0, 2.0)),
        S(V([0.0, 0.1, 0.2, 0.3, 0.7, 1.0]), 10),
    ],
    refused=_histogram_refused,
    differs=[
        Differs("the counts are linear in the weights, the edges follow the ends; torch has no derivative", check)
        for check in ("gradients", "second", "kinks")
    ],
)
def histogram(
    input: Tensor, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """The sums of weights (1) in each bin, and the edges of the bins: ``(hist, bin_edges)``.

    bins: their number, with equal width over `range` or the range of the elements; or a tensor of their edges. weight:
    a tensor of the shape of `input`; the result is linear in it. density: divide by the sum and the widths of the bins.

    >>> import pullback
    >>> pullback.tensor([1.0, 2.0, 4.0]).histogram(3).hist
    tensor([1., 1., 1.])
    """
    _check_floats("histogram", input._data)
    if range is not None and isinstance(bins, Tensor):
        raise TypeError(
            errors.message("histogram() received an invalid combination of arguments", found="range and edges of bins")
        )
    edges = _edges("histogram", input, bins, range)
    weight = _weights("histogram", input, weight, input._data.shape)
    places = _bin_places(input, edges.detach(), not isinstance(bins, Tensor))
    counts = place(reshape(weight, -1), 0, places, (edges._data.shape[0],))[:-1]
    if density:
        counts = counts / (sum(counts) * (edges[1:] - edges[:-1]))
    return HistogramResult(counts, edges)


def _histogramdd_samples() -> list[Sample]:
    x = A(20, 2, dtype="float64")
    edges = [V([-2.0, 0.0, 2.0], "float64"), V([-1.0, 0.5, 1.0, 2.0], "float64")]
    return [
        S(x, 3),
        S(x, [2, 4]),
        S(x, [2, 4], range=[-1.0, 1.0, -2.0, 2.0]),
        S(x, edges),
        *(S(x, 3, weight=A(20, dtype="float64"), density=d) for d in (False, True)),
        S(A(2, 3, 2, dtype="float64", layout="step"), 2, weight=A(2, 3, dtype="float64")),
        S(A(0, 2, dtype="float64"), [2, 3]),
        S(A(3, 0, dtype="float64"), 2),
    ]


@composite(
    out=False,
    method=False,
    samples=_histogramdd_samples,
    refused=lambda: [
        *(S(A(4, 2, dtype="float32"), bins) for bins in (0, [3], "x")),
        S(A(4, 2, dtype="float32"), [V([0.0, 1.0], "float64"), V([0.0, 1.0], "float64")]),
        S(A(4, 2, dtype="float32"), 3, weight=A(3, dtype="float32")),
        S(A(4, 2, dtype="float32"), 3, range=(0.0, 1.0)),
        S(A(4, 2, dtype="int64"), 3),
        S([1.0], 3),
    ],
    differs=[
        Differs("the counts are linear in the weights, the edges follow the ends; torch has no derivative", check)
        for check in ("gradients", "second")
    ],
)
def histogramdd(input: Tensor, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """As `histogram`, for points with coordinates along the last axis of `input`: a bin is a box in D dimensions.

    bins: for each dimension, the number of bins or a tensor of their edges; or one number for all. range: 2 D numbers,
    the ends of the first dimension, of the second, and so on. weight: a tensor of the shape of `input` without its last
    axis. The edges are a tuple with a tensor for each dimension.

    >>> import pullback
    >>> pullback.histogramdd(pullback.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.1]]), 2).hist
    tensor([[0., 1.],
            [2., 0.]])
    """
    _check_floats("histogramdd", input._data)
    if input._data.ndim < 2:
        raise RuntimeError(
            errors.message(
                "histogramdd(): input tensor should have at least 2 dimensions", found=errors.describe(input)
            )
        )
    if isinstance(bins, bool) or not isinstance(bins, (int, tuple, list)):
        raise TypeError(
            errors.message(
                "histogramdd()", expected="bins: a number, or one or a Tensor for each axis", found=repr(bins)
            )
        )
    axes = input._data.shape[-1]
    each = [bins] * axes if isinstance(bins, int) else list(bins)
    if len(each) != axes or (range is not None and len(range) != 2 * axes):
        raise RuntimeError(
            errors.message(
                "histogramdd()",
                expected=f"bins for each of {axes} axes, and two numbers of range for each",
                found=f"{len(each)} and {range}",
            )
        )
    weight = reshape(_weights("histogramdd", input, weight, input._data.shape[:-1]), -1)
    if not axes:
        total = sum(weight) * 0
        return HistogramddResult(total / total if density else total, ())
    columns = unbind(reshape(input, (-1, axes)), 1)
    ends = [None] * axes if range is None else list(zip(range[::2], range[1::2], strict=True))
    edges = [_edges("histogramdd", *given) for given in zip(columns, each, ends, strict=True)]
    shape = tuple(e._data.shape[0] for e in edges)  # one more, for points outside the bins
    places = [
        _bin_places(x, e.detach(), not isinstance(b, Tensor)) for x, e, b in zip(columns, edges, each, strict=True)
    ]
    flat = places[0]
    for found, n in zip(places[1:], shape[1:], strict=True):
        flat = flat * n + found
    counts = reshape(place(weight, 0, flat, (math.prod(shape),)), shape)
    counts = counts[tuple(slice(-1) for _ in shape)]
    if density:
        counts = counts / sum(counts)
        for axis, e in enumerate(edges):
            counts = counts / reshape(e[1:] - e[:-1], (-1,) + (1,) * (axes - 1 - axis))
    return HistogramddResult(contiguous(counts), tuple(edges))


@linear(
    out=False,
    shape_from_values=True,
    numbers="",
    weights=lambda g, input: pick(g, 0, input),
    samples=lambda: [
        *(S(V([1, 2, 2, 5], d)) for d in ("int64", "uint8", "int32")),
        S(V([1, 2, 2], "int64"), A(3)),
        S(V([1, 2, 2], "int64"), A(3, dtype="float32")),
        S(V([1, 2, 2], "int64"), weights=A(3, dtype="float64"), minlength=5),
        S(V([1, 2, 2], "int64"), minlength=2),
        S(V([], "int64")),
        S(V([], "int64"), None, 2),
        S(index(4, 9), A(9, layout="step")),
    ],
    refused=lambda: [
        S(V([1, 2], "int64"), minlength=-1),
        S(V([1, 2], "int64"), minlength=1.5),
        S(V([-1, 2], "int64")),
        S(V([[1, 2]], "int64")),
        S(A(3, dtype="float32")),
        S(A(3, dtype="bool")),
        S(V([1, 2], "int64"), A(3)),
        S(V([1, 2], "int64"), [1.0, 2.0]),
        S([1, 2]),
    ],
    differs=[
        *(Differs("linear in the weights; torch has no derivative for it", check) for check in ("gradients", "second")),
        Differs("complex weights are refused; torch drops their imaginary parts", "values", "complex128"),
    ],
)
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """The counts of 0, 1, 2... in `input`, a vector of integers; or the sums of the `weights` there.

    The result reaches to the largest element, and has at least `minlength` entries. Counts are int64; sums are float32
    for float32 weights, otherwise float64.

    >>> import pullback
    >>> pullback.tensor([0, 2, 2]).bincount(), pullback.tensor([0, 2, 2]).bincount(pullback.tensor([0.5, 1.0, 2.0]))
    (tensor([1, 0, 2]), tensor([0.5000, 0.0000, 3.0000]))
    """
    if not isinstance(minlength, (int, np.integer)):
        raise TypeError(
            errors.message("bincount()", expected="minlength to be an integer", found=errors.describe(minlength))
        )
    if input.dtype.kind not in "iu":
        raise NotImplementedError(
            errors.message(
                f"bincount() is not implemented for {input.dtype}",
                expected="a vector of integers",
                found=errors.describe(input),
            )
        )
    if minlength < 0:
        raise RuntimeError(errors.message("bincount(): minlength should be >= 0", found=str(minlength)))
    if input.ndim != 1 or np.any(np.less(input, 0)):
        raise RuntimeError(
            errors.message("bincount() only supports 1-d non-negative integral inputs", found=errors.describe(input))
        )
    if type(input) is np.ndarray and input.size:
        need_memory(int(np.max(input)) + 1)
    if weights is None:
        return np.bincount(input, minlength=minlength)
    if not hasattr(weights, "size"):
        raise TypeError(errors.message("bincount()", expected="weights to be a Tensor", found=errors.describe(weights)))
    if weights.shape != input.shape or weights.dtype.kind == "c":
        raise RuntimeError(
            errors.message(
                "bincount(): weights should be 1-d and have the same length as input",
                expected=f"real numbers of shape {list(input.shape)}",
                found=errors.describe(weights),
            )
        )
    found = np.bincount(input, weights.astype(np.float64), minlength)
    return found.astype(np.float32) if weights.dtype == np.float32 else found
