"""Poolings by the largest element, over sliding windows and over adaptive ones, which cover an axis evenly.

One operation finds values and positions. Its derivative reads and adds at these positions, which are constants.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ....kernels.planes import from_planes
from ....kernels.sliding import Array, Ints, Slide, offsets, pad, windows
from ....table.calls import on
from ....table.entry import special, titled
from ....table.operands import somewhere
from ....table.samples import A, Differs, S, V, inf, nan
from ....tensor.arrays import beside, counted, empty_beside
from ....tensor.protocol import on_arrays
from ....tensor.tensor import Tensor
from ..arguments import floating, integers, ranks, refuse, tensors
from ..primitives import SAVED, added_into_planes, picked_from_planes
from .family import family

_BLOCK = 1 << 16  # outputs computed at a time, so that they stay in the processor's cache


# Windows -------------------------------------------------------------------------------------------------------------


def window(
    name: str,
    space: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: Any,
) -> tuple[Ints, Slide]:
    """The size of the window of a pooling, and a slide that ends at the last place that counts."""
    tensors(name, input=input)
    kernel = integers(name, "kernel_size", kernel_size, space, 1)
    given = isinstance(stride, int) or bool(stride)
    steps = integers(name, "stride", stride, space, 1) if given else kernel
    before = integers(name, "padding", padding, space, 0)
    spread = integers(name, "dilation", dilation, space, 1)
    ranks(name, input, space + 1, space + 2)
    shape = input._data.shape
    if 0 in shape[-space - 1 :]:
        raise refuse(name, "an input of some elements, but for the batch", f"size {list(shape)}")
    ends = []
    for n, k, s, p, d in zip(shape[-space:], kernel, steps, before, spread, strict=True):
        reach = d * (k - 1) + 1
        if p > reach // 2:
            raise refuse(name, "padding of at most half of the window", f"padding {p}, a window of {reach}")
        rest = n + 2 * p - reach
        count = (rest + (s - 1 if ceil_mode else 0)) // s + 1
        count -= bool(ceil_mode) and (count - 1) * s >= n + p  # it would begin in the padding
        if count < 1:
            raise refuse(name, "a window no larger than the padded input", f"a window of {reach} on {n + 2 * p}")
        ends.append((count - 1) * s + reach - n - p)
    return kernel, Slide(steps, tuple(zip(before, ends, strict=True)), spread)


def targets(name: str, input: Tensor, output_size: Any, space: int) -> Ints:
    """The sizes of the result of an adaptive pooling; None stands for the size of the input."""
    tensors(name, input=input)
    floating(name, input)
    ranks(name, input, space + 1, space + 2)
    shape = input._data.shape[-space:]
    if 0 in shape:
        raise refuse(name, "an input of some elements along the axes that are pooled", f"size {list(shape)}")
    if output_size is None or isinstance(output_size, float):
        raise refuse(name, "output_size to be integers", repr(output_size), error=TypeError)
    if isinstance(output_size, (tuple, list)):
        if len(output_size) != space:
            raise refuse(name, f"output_size to be an integer or {space} of them", list(output_size))
        output_size = tuple(n if m is None else m for m, n in zip(output_size, shape, strict=True))
    return integers(name, "output_size", output_size, space, 0)


def adaptive(n: int, m: int) -> tuple[Array, Array]:
    """The starts ``floor(i n / m)`` and the ends ``ceil((i + 1) n / m)`` of m windows that cover n elements."""
    i = counted(m)
    return i * n // max(m, 1), -((i + 1) * n // -max(m, 1))


# The largest element --------------------------------------------------------------------------------------------------


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _largest(padded: Array, slide: Slide, kernel: Ints, places: Ints, values: Array, found: Array) -> None:
    """Write the largest element of each window, and its number there: the first of equals, the last NaN."""
    mask = empty_beside(values, values.shape, bool)
    for n, (_, index) in enumerate(offsets(slide, kernel, places)):
        seen = padded[index]
        if not n:
            np.copyto(values, seen)
            found.fill(0)
            continue
        np.greater(seen, values, out=mask)
        np.maximum(values, seen, out=values)
        # the numbers grow, so the last element that was larger has the largest one
        np.maximum(found, np.multiply(mask.view(np.uint8), n, dtype=found.dtype), out=found)
    if values.dtype.kind == "f" and somewhere(np.isnan(values)):
        for n, (_, index) in enumerate(offsets(slide, kernel, places)):
            np.copyto(found, n, where=np.isnan(padded[index]))


def _largest_of_many(padded: Array, slide: Slide, kernel: Ints, places: Ints, values: Array, found: Array) -> None:
    """As `_largest`, for windows of more elements than there are places."""
    space, planes = len(kernel), len(padded)
    seen = np.moveaxis(windows(padded, slide, kernel, places), [*range(1, space + 1)], [*range(-space, 0)])
    seen = seen.reshape(planes, *places, math.prod(kernel))
    found[...] = np.argmax(seen, axis=-1)
    values[...] = np.take_along_axis(seen, found[..., None].astype(np.intp), -1)[..., 0]
    if values.dtype.kind == "f" and somewhere(np.isnan(values)):
        last = seen.shape[-1] - 1 - np.argmax(np.isnan(seen[..., ::-1]), axis=-1)
        np.copyto(found, last, where=np.isnan(values), casting="unsafe")


@functools.lru_cache(256)
def _table(slide: Slide, kernel: Ints, image: Ints) -> tuple[Array, Array, Array]:
    """Flat positions in an image: the elements of the window at place 0, the places, and the first element at each."""
    space = len(image)
    places = slide.places(image, kernel)
    table, start, first = np.zeros(kernel, np.int64), np.zeros(places, np.int64), np.zeros(places, np.int64)
    for i in range(space):
        shape = [-1 if j == i else 1 for j in range(space)]
        step = math.prod(image[i + 1 :])
        table += (np.arange(kernel[i]) * slide.dilation[i] * step).reshape(shape)
        begin = np.arange(places[i]) * slide.stride[i] - slide.padding[i][0]
        start += (begin * step).reshape(shape)
        first += (np.where(begin < 0, begin % slide.dilation[i], begin) * step).reshape(shape)
    return table.reshape(-1), start, first


def _positions(found: Array, values: Array, slide: Slide, kernel: Ints, image: Ints) -> Array:
    """Flat positions, in an image without its padding, of the elements with these numbers in their windows."""
    table, start, first = (beside(found, a) for a in _table(slide, kernel, image))
    index = np.take(table, found)
    index += start
    if any(low > 0 for low, _ in slide.padding):
        # if no element is above the padding, the first one that is not padding
        np.copyto(index, first, where=values == _lowest(values.dtype))
    return index


@special(
    home="nn.functional",
    saved=SAVED,
    batch="leading",
    jvp=lambda tangents, out1, slide: [on(picked_from_planes, tangents[0], out1, len(slide.stride)), None],
    input=lambda g, out1, slide, input_shape: on(
        added_into_planes, g[0], out1, tuple(input_shape[-len(slide.stride) :])
    ),
)
@on_arrays
def _max_pool(input: Any, slide: Any, kernel: Any) -> Any:
    """The largest elements, and their flat positions in the image: the first of equals, the last NaN."""
    space = len(kernel)
    lead, image = input.shape[: input.ndim - space], input.shape[input.ndim - space :]
    places, planes = slide.places(image, kernel), math.prod(lead)
    x = input.reshape(planes, *image)
    values = empty_beside(input, (planes, *places))
    found = empty_beside(values, values.shape, np.min_scalar_type(math.prod(kernel)))
    find = _largest if math.prod(places) >= math.prod(kernel) else _largest_of_many
    step = max(1, _BLOCK // max(1, math.prod(places)))
    for start in range(0, planes, step):
        block = slice(start, start + step)
        padded = pad(x[block], slide, _lowest(input.dtype))
        find(padded, slide, kernel, places, values[block], found[block])
    index = _positions(found, values, slide, kernel, image)
    return values.reshape(*lead, *places), index.reshape(*lead, *places)


@family(truths="return_indices", samples=lambda space: _max_samples(space), refused=lambda space: _refused(space))
def _max_pooling(
    space: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """`max_pool1d` to `max_pool3d`."""
    name = f"max_pool{space}d"
    kernel, slide = window(name, space, input, kernel_size, stride, padding, dilation, ceil_mode)
    floating(name, input, also="iu")
    found = titled(_max_pool, f"MaxPool{space}DWithIndicesBackward0")(input, slide, kernel)
    return found if return_indices else found[0]


@_max_pooling(
    1,
    also="max_pool1d",
    kinks=lambda: _KINKS,
    differs=[Differs("torch pools integers only if it returns indices, or in 2D and 3D", "values", "int64")],
)
def max_pool1d() -> None:
    """The largest element of each window along the last axis of ``(N, C, L)`` or ``(C, L)``.

    stride: `kernel_size` unless given; padding: elements of minus infinity, on both sides; ceil_mode: a last window
    that is not full counts; return_indices: the result is a tuple that also holds the positions of the elements. Among
    equal elements, the first gets the gradient.

    >>> import pullback
    >>> pullback.nn.functional.max_pool1d(pullback.tensor([[1.0, 5.0, 2.0, 3.0]]), 2, return_indices=True)
    (tensor([[5., 3.]]), tensor([[1, 3]]))
    """


@_max_pooling(2, also="max_pool2d")
def max_pool2d() -> None:
    """The largest element of each window on images ``(N, C, H, W)`` or ``(C, H, W)``; arguments as of `max_pool1d`.

    The indices are positions in the flattened image.

    >>> import pullback
    >>> x = pullback.arange(16.0).reshape(1, 4, 4)
    >>> pullback.nn.functional.max_pool2d(x, 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """


@_max_pooling(3, also="max_pool3d")
def max_pool3d() -> None:
    """The largest element of each window on volumes ``(N, C, D, H, W)``; arguments as of `max_pool1d`.

    >>> import pullback
    >>> pullback.nn.functional.max_pool3d(pullback.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """


def chosen_windows(input: Array, rows: list[Array]) -> tuple[Array, Array]:
    """The largest elements of windows that are given by their elements, and their flat positions.

    rows: for each of the last axes, positions ``(..., windows, size)``; the leading axes are the same in all, or
    missing.
    """
    space = len(rows)
    image = input.shape[input.ndim - space :]
    kernel = tuple(r.shape[-1] for r in rows)
    flat: Any = 0
    for i, r in enumerate(rows):
        r = r.reshape(*r.shape[:-2], -1)
        flat = flat * image[i] + beside(input, r).reshape(*r.shape[:-1], *[1] * i, -1, *[1] * (space - 1 - i))
    seen = from_planes(input, flat, space)
    values, index = _max_pool.op.forward(seen, Slide(kernel, ((0, 0),) * space, (1,) * space), kernel)
    return values, from_planes(np.broadcast_to(flat, seen.shape), index, space)


@special(
    home="nn.functional",
    batch="leading",
    jvp=lambda tangents, out1, size: [on(picked_from_planes, tangents[0], out1, len(size)), None],
    input=lambda g, out1, size, input_shape: on(added_into_planes, g[0], out1, tuple(input_shape[-len(size) :])),
)
def _adaptive_max_pool(input: Any, size: Any) -> Any:
    if 0 in size:
        shape = (*input.shape[: input.ndim - len(size)], *size)
        return empty_beside(input, shape), empty_beside(input, shape, np.int64)
    rows = []
    for n, m in zip(input.shape[-len(size) :], size, strict=True):
        start, end = adaptive(n, m)
        # a shorter window repeats its last element, which is never the first of equals
        rows.append(np.minimum(start[:, None] + np.arange(np.max(end - start)), end[:, None] - 1))
    return chosen_windows(input, rows)


@family(
    truths="return_indices",
    samples=lambda space: adaptive_samples(space, True),
    refused=lambda space: adaptive_refused(space),
)
def _adaptive_max(space: int, input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """`adaptive_max_pool1d` to `adaptive_max_pool3d`."""
    name = f"adaptive_max_pool{space}d"
    size = targets(name, input, output_size, space)
    if 0 in input._data.shape[input._data.ndim - space - 1 :] and input._data.ndim == space + 2:
        raise refuse(name, "an input of some channels", f"size {list(input._data.shape)}")
    found = titled(_adaptive_max_pool, f"AdaptiveMaxPool{space}DBackward0")(input, size)
    return found if return_indices else found[0]


@_adaptive_max(1)
def adaptive_max_pool1d() -> None:
    """The largest element in each of `output_size` windows that cover the last axis evenly.

    >>> import pullback
    >>> pullback.nn.functional.adaptive_max_pool1d(pullback.arange(5.0).reshape(1, 5), 2)
    tensor([[2., 4.]])
    """


@_adaptive_max(2)
def adaptive_max_pool2d() -> None:
    """As `adaptive_max_pool1d`, along two axes; None in `output_size` keeps the length of an axis.

    >>> import pullback
    >>> pullback.nn.functional.adaptive_max_pool2d(pullback.arange(4.0).reshape(1, 2, 2), (1, None))
    tensor([[[2., 3.]]])
    """


@_adaptive_max(3)
def adaptive_max_pool3d() -> None:
    """As `adaptive_max_pool1d`, along three axes; None in `output_size` keeps the length of an axis.

    >>> import pullback
    >>> pullback.nn.functional.adaptive_max_pool3d(pullback.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """


# Their domains --------------------------------------------------------------------------------------------------------


def _max_samples(space: int) -> list[Any]:
    image, kernel = (6, 5, 4)[:space], (3, 2, 2)[:space]
    x = A(2, 2, *image, domain="distinct")
    return [
        S(x, 2),
        S(x, kernel, 1),
        S(A(2, *image, domain="distinct"), kernel, (2, 1, 2)[:space], 1),
        S(x, 2, stride=3, padding=1, ceil_mode=True),
        S(x, [2] * space, None, 0, 2, return_indices=True),
        S(A(1, 2, *image, domain="distinct", layout="T"), 3, 2, (1,), return_indices=True, ceil_mode=True),
        S(A(1, 2, *image, domain="distinct", layout="step"), 2, [], dilation=(2, 1, 1)[:space]),
        S(A(0, 2, *image), 2, return_indices=True),
        S(A(1, 1, *[1] * space), 1),
        S(A(2, 1, *image, domain="distinct", layout="readonly"), kernel_size=3, stride=2),
    ]


_ROWS = [
    [1.0, 1.0, 0.0, 0.0, 2.0],
    [nan, 1.0, nan, 2.0, 0.0],
    [-inf, -inf, -inf, -inf, inf],
    [0.0, -0.0, 0.0, nan, inf],
]
_KINKS: Any = [
    S(V([_ROWS]), *how, return_indices=True) for how in ((2,), (3, 1), (3, 1, 1), (2, 2, 1), (3, 1, 1, 2), (5,))
]


def _refused(space: int) -> list[Any]:
    x = A(1, 2, *[5] * space)
    return [
        S(A(*[5] * space), 2),
        S(x, 2, 0),
        S(x, 2, -1),
        S(x, 0),
        S(x, 6),
        S(x, 2, padding=2),
        S(x, 2, padding=-1),
        S(x, 2, dilation=0),
        S(x, [2] * (space + 1)),
        S(x, 2.5),
        S(A(1, 0, *[5] * space), 2),
        S(A(1, 2, *[5] * (space - 1), 0), 2),
        S([1.0], 2),
        S(x),
        S(x, 2, nonsense=1),
    ]


def adaptive_samples(space: int, indices: bool = False) -> list[Any]:
    """Samples of an adaptive pooling; with `indices`, of one that may return indices."""
    image = (6, 5, 4)[:space]
    x = A(2, 2, *image, domain="distinct")
    found = [
        S(x, 2),
        S(A(2, *image, domain="distinct"), (3, 2, 4)[:space]),
        S(A(1, 2, *image, domain="distinct", layout="T"), [4] * space),
        S(A(1, 2, *image, domain="distinct", layout="step"), output_size=(7, 1, 3)[:space]),
        S(A(0, 2, *image), 2),
        S(A(1, 1, *[1] * space), 2),
    ]
    if space > 1:
        found += [S(x, (None, 2, 3)[:space])]
    return found + [S(x, 2, True), S(x, (4, 3, 2)[:space], return_indices=True)] * indices


def adaptive_refused(space: int) -> list[Any]:
    """Calls that every adaptive pooling refuses."""
    x = A(1, 2, *[5] * space)
    return [
        S(A(*[5] * space), 2),
        S(x, [2] * (space + 1)),
        S(x, -2),
        S(x, None),
        S(x, 2.5),
        S(A(1, 2, 0, *[5] * (space - 1)), 2),
        S(x),
    ]
