"""`max_unpool1d` to `3d`, which put elements back to their places before a pooling, and pooling over random windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....kernels.positions import within
from ....kernels.sliding import Array, Ints
from ....ops.make.random import rand
from ....table.calls import on
from ....table.entry import linear, special, titled
from ....table.samples import A, S, V, index
from ....tensor.arrays import arange_beside, zeros_beside
from ....tensor.protocol import is_foreign, on_arrays
from ....tensor.tensor import Tensor
from ..arguments import floating, integers, ranks, refuse, tensors
from ..primitives import added_into_planes, picked_from_planes
from .family import family
from .pooling import chosen_windows


@linear(
    home="nn.functional",
    batch="leading",
    numbers="plane",
    input=lambda g, indices, plane: on(picked_from_planes, g, indices, len(plane)),
)
@on_arrays
def _max_unpool(input: Any, indices: Any, plane: Any) -> Any:
    """Zeros ``(..., *plane)`` with the elements of `input` at their flat positions."""
    size = math.prod(plane)
    if is_foreign(indices):
        within(indices, size)
    elif indices.size and not 0 <= indices.min() <= indices.max() < size:
        raise refuse(
            "max_unpool", f"positions below {size}, the size of {list(plane)}", f"{indices.min()} to {indices.max()}"
        )
    shape = np.broadcast_shapes(input.shape, indices.shape)
    lead, places = shape[: -len(plane)], math.prod(shape[-len(plane) :])
    out = zeros_beside(input, (*lead, size))
    where, values = (np.broadcast_to(a, shape).reshape(*lead, places) for a in (indices, input))
    np.put_along_axis(out, where, values, -1)
    return out.reshape(*lead, *plane)


@family(samples=lambda space: _samples(space), refused=lambda space: _refused(space))
def _unpooling(
    space: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """`max_unpool1d` to `max_unpool3d`."""
    name = f"max_unpool{space}d"
    tensors(name, input=input, indices=indices)
    floating(name, input)
    kernel = integers(name, "kernel_size", kernel_size, space, 1)
    given = isinstance(stride, int) or bool(stride)
    steps = integers(name, "stride", stride, space, 1) if given else kernel
    before = integers(name, "padding", padding, space)
    ranks(name, input, space + 1, space + 2)
    if indices._data.dtype != np.int64:
        raise refuse(name, "indices of int64", indices.dtype, "pass those that the pooling returned")
    if indices._data.shape != input._data.shape:
        raise refuse(name, f"indices of the input's shape {list(input.shape)}", list(indices._data.shape))
    places = input._data.shape[-space:]
    plain = tuple((n - 1) * s + k - 2 * p for n, k, s, p in zip(places, kernel, steps, before, strict=True))
    call = titled(_max_unpool, f"MaxUnpool{space}DBackward0")
    return call(input, indices, _size(name, output_size, plain, steps))


def _size(name: str, output_size: Any, plain: Ints, stride: Ints) -> Ints:
    """The requested size, or the most likely size of the pooling's input."""
    if output_size is None:
        return plain
    found = tuple(output_size)
    if len(found) == len(plain) + 2:
        found = found[2:]
    if len(found) != len(plain):
        raise refuse(name, f"output_size to be {len(plain)} integers", list(output_size), error=ValueError)
    if any(not n - s < m < n + s for m, n, s in zip(found, plain, stride, strict=True)):
        raise refuse(
            name,
            f"output_size to be within the stride, {list(stride)}, of {list(plain)}",
            list(found),
            error=ValueError,
        )
    return found


@_unpooling(1)
def max_unpool1d() -> None:
    """Zeros with the elements of `input` at `indices`, which `max_pool1d` returned: its inverse, as far as one exists.

    output_size: the length of the pooling's input, if several lengths are possible.

    >>> import pullback
    >>> F = pullback.nn.functional
    >>> F.max_unpool1d(*F.max_pool1d(pullback.tensor([[1.0, 5.0, 2.0, 3.0]]), 2, return_indices=True), 2)
    tensor([[0., 5., 0., 3.]])
    """


@_unpooling(2)
def max_unpool2d() -> None:
    """As `max_unpool1d`, after `max_pool2d`.

    >>> import pullback
    >>> F = pullback.nn.functional
    >>> F.max_unpool2d(*F.max_pool2d(pullback.arange(4.0).reshape(1, 2, 2), 2, return_indices=True), 2)
    tensor([[[0., 0.],
             [0., 3.]]])
    """


@_unpooling(3)
def max_unpool3d() -> None:
    """As `max_unpool1d`, after `max_pool3d`.

    >>> import pullback
    >>> F = pullback.nn.functional
    >>> x = pullback.arange(2.0).reshape(1, 1, 1, 2)
    >>> F.max_unpool3d(*F.max_pool3d(x, (1, 1, 2), return_indices=True), (1, 1, 2))
    tensor([[[[0., 1.]]]])
    """


# Windows at random places ---------------------------------------------------------------------------------------------


def _starts(sample: Array, n: int, m: int, k: int) -> Array:
    """The starts ``(..., m)`` of m windows of k elements on n, with steps that a number from 0 to 1 decides."""
    sample = sample[..., None]
    step = sample.dtype.type((n - k) / (m - 1) if m > 1 else 0)
    found = np.floor((arange_beside(sample, m, sample.dtype) + sample) * step) - np.floor(sample * step)
    found[..., m - 1 :] = n - k
    return found.astype(np.int64)


@special(
    home="nn.functional",
    jvp=lambda tangents, out1, kernel: [on(picked_from_planes, tangents[0], out1, len(kernel)), None],
    input=lambda g, out1, kernel, input_shape: on(added_into_planes, g[0], out1, tuple(input_shape[-len(kernel) :])),
)
@on_arrays
def _fractional_max_pool(input: Any, samples: Any, kernel: Any, size: Any) -> Any:
    lead = input.shape[: -len(kernel)]
    image = input.shape[input.ndim - len(kernel) :]
    # in two dimensions torch takes the last axis first
    order = (1, 0) if len(kernel) == 2 else tuple(range(len(kernel)))
    rows = [
        np.broadcast_to(_starts(samples[..., i], n, m, k)[..., None] + arange_beside(samples, k), (*lead, m, k))
        for i, n, m, k in zip(order, image, size, kernel, strict=True)
    ]
    return chosen_windows(input, rows)


@family(
    truths="return_indices",
    samples=lambda space: _fractional_samples(space),
    refused=lambda space: _fractional_refused(space),
)
def _fractional(
    space: int,
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """`fractional_max_pool2d` and `fractional_max_pool3d`."""
    name = f"fractional_max_pool{space}d"
    tensors(name, input=input)
    if output_size is None and output_ratio is None:
        raise refuse(name, "output_size or output_ratio", "neither", error=ValueError)
    kernel = integers(name, "kernel_size", kernel_size, space, 1)
    image = input._data.shape[-space:]
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * space
        output_size = tuple(int(n * r) for n, r in zip(image, ratios, strict=True))
    size = integers(name, "output_size", output_size, space, 1)
    rank = ranks(name, input, space + 1, space + 2)
    floating(name, input)
    if any(m + k - 1 > n for n, m, k in zip(image, size, kernel, strict=True)) or 0 in input._data.shape[-space - 1 :]:
        raise refuse(
            name, f"an input that holds {list(size)} windows of size {list(kernel)}", f"size {list(input.shape)}"
        )
    lead = input._data.shape[: rank - space]
    batch = lead if rank == space + 2 else (1, *lead)
    samples = (
        rand(*batch, space, dtype=input.dtype, device=input.device) if _random_samples is None else _random_samples
    )
    if samples._data.dtype != input._data.dtype or samples._data.shape != (*batch, space):
        raise refuse(name, f"samples of {input.dtype} of shape {[*batch, space]}", list(samples._data.shape))
    found = _fractional_max_pool(input, samples.reshape(*lead, space), kernel, size)
    return found if return_indices else found[0]


@_fractional(2)
def fractional_max_pool2d() -> None:
    """The largest element of each of `output_size` windows, or of `output_ratio` times the input's, at random places.

    The steps between windows differ by one at most; a number from 0 to 1 for each channel and axis decides which steps
    are long (Graham 2014, arXiv:1412.6071).

    >>> import pullback
    >>> pullback.nn.functional.fractional_max_pool2d(pullback.zeros(1, 6, 6), 2, output_ratio=0.5).shape
    pullback.Size([1, 3, 3])
    """


@_fractional(3)
def fractional_max_pool3d() -> None:
    """As `fractional_max_pool2d`, of volumes.

    >>> import pullback
    >>> pullback.nn.functional.fractional_max_pool3d(pullback.zeros(1, 6, 6, 6), 2, (3, 2, 1)).shape
    pullback.Size([1, 3, 2, 1])
    """


# Their domains --------------------------------------------------------------------------------------------------------


def _found(*shape: int, size: int) -> Any:
    """Positions in planes, as a pooling returns them: no position twice in a plane."""
    rng = np.random.default_rng(5)
    planes, places = int(np.prod(shape[:2])), int(np.prod(shape[2:]))
    rows = [np.sort(rng.permutation(size)[:places]) for _ in range(planes)]
    return V(np.reshape(rows, shape).tolist() if planes else np.zeros(shape).tolist(), "int64")


def _samples(space: int) -> list[Any]:
    places = (3, 2, 2)[:space]
    x, big = A(2, 2, *places), int(np.prod([2 * n for n in places]))
    return [
        S(x, _found(2, 2, *places, size=big), 2),
        S(A(1, 2, *places, layout="T"), _found(1, 2, *places, size=big), [2] * space, 2, 0),
        S(x, _found(2, 2, *places, size=big), 2, output_size=[2 * n + 1 for n in places]),
        S(A(2, 2, *[2] * space), _found(2, 2, *[2] * space, size=3**space), 2, 3, padding=1),
        S(x, _found(2, 2, *places, size=big), 2, None, 0, (9, 9, *(2 * n for n in places))),
    ]


def _refused(space: int) -> list[Any]:
    x, i = A(1, 2, *[2] * space), index(4, 1, 2, *[2] * space)
    return [
        S(x, A(1, 2, *[2] * space), 2),
        S(x, index(4, 1, 2, *[3] * space), 2),
        S(x, V(np.full((1, 2, *[2] * space), 4**space).tolist()), 2),
        S(x, V(np.full((1, 2, *[2] * space), -1).tolist()), 2),
        S(x, i, 2, output_size=[6] * space),
        S(x, i, 2, output_size=[2] * space),
        S(x, i),
        S(x),
    ]


def _fractional_samples(space: int) -> list[Any]:
    image = (6, 5, 4)[:space]
    x = A(2, 2, *image, domain="distinct")
    halves = (0.5, 0.7, 0.5)[:space]
    u = V(np.linspace(0.05, 0.95, 4 * space).reshape(2, 2, space).tolist())
    return [
        S(x, 2, (3, 3, 2)[:space], None, False, u),
        S(x, (2, 1, 2)[:space], (3, 3, 2)[:space], return_indices=True, _random_samples=u),
        S(x, 2, output_ratio=halves, _random_samples=u),
        S(
            A(2, *image, domain="distinct"),
            2,
            None,
            halves,
            _random_samples=V([np.linspace(0.1, 0.8, 2 * space).reshape(2, space).tolist()]),
        ),
        S(A(2, 2, *image, domain="distinct", layout="T"), 3, 1, _random_samples=u),
    ]


def _fractional_refused(space: int) -> list[Any]:
    x = A(1, 2, *[5] * space)
    return [S(x, 2), S(x, 2, 5), S(x, 2, [2] * (space + 1)), S(x)]
