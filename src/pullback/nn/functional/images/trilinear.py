"""The operations behind all convolutions: the derivatives of a trilinear form in an image x, a weight w and a result y.

The form is the sum over ``x[n, c, p + q] w[o, c, q] y[n, o, p]``. `_convolve` is its derivative with respect to y,
`_spread` with respect to x, `_correlate` with respect to w. The adjoints of each are the other two, so there are
derivatives of every order, and a transposed convolution is `_spread`.

Each is a matrix product with the columns under the window, for a few images at a time, so that these columns stay in
the processor's cache. NumPy copies and adds along the innermost axis: that of an image's rows; or, where the rows are
short and the images many, that of the images.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ....kernels.sliding import Array, Ints, Slide, add_windows, offsets, pad, windows
from ....table.calls import on
from ....table.entry import bilinear
from ....tensor.arrays import empty_beside, zeros_beside
from ....tensor.protocol import on_arrays

_COLUMNS = 1 << 18  # elements of the columns made at a time
_GAP = 16
_SHORT = 8  # rows of at most this many places are short
_MANY = 8  # and at least this many images are many


class _Form(NamedTuple):
    """The sizes of one trilinear form, with the arrays ``x (B, N, C, *image)``, ``w (B, O, C/g, *kernel)`` and y.

    B, the number of forms, is 1 or the same in all arrays. If it is 1 in w, only one of x and y may have it. step: the
    number of images whose columns are made at a time. images_last: whether the images are the innermost axis, in
    columns and in padded images.
    """

    slide: Slide
    groups: int
    batch: int
    images: int
    inputs: int
    outputs: int
    image: Ints
    kernel: Ints
    places: Ints
    step: int
    images_last: bool

    @property
    def window(self) -> int:
        """The number of elements that a window sees in one group."""
        return self.inputs // self.groups * math.prod(self.kernel)

    def blocks(self) -> Iterator[slice]:
        """The images, a few at a time."""
        for start in range(0, self.images, self.step):
            yield slice(start, min(start + self.step, self.images))

    def matrices(self, w: Array) -> Array:
        """The weight as ``(B, G, O/g, window)``."""
        return w.reshape(self.batch, self.groups, self.outputs // self.groups, self.window)

    def maps(self, y: Array, block: slice) -> Array:
        """A few of y's images as ``(B, G, O/g, width)``, ordered as in columns; a view if it is one image."""
        count, places = block.stop - block.start, math.prod(self.places)
        each = self.outputs // self.groups
        grouped = y[:, block].reshape(self.batch, count, self.groups, each, places)
        ordered = grouped.transpose(0, 2, 3, *((4, 1) if self.images_last else (1, 4)))
        return ordered.reshape(self.batch, self.groups, each, count * places)

    def images_of(self, maps: Array, block: slice) -> Array:
        """The inverse of `maps`: ``(B, N, O, *places)``, a view."""
        count = block.stop - block.start
        if self.images_last:
            return _second(maps.reshape(self.batch, self.outputs, *self.places, count), -1)
        return np.swapaxes(maps.reshape(self.batch, self.outputs, count, *self.places), 1, 2)

    def empty_columns(self, block: slice, like: Array) -> Array:
        """Memory for the columns of some images, ``(B, G, window, width)``; between one row and the next is a gap.

        Without a gap, rows of 1024 numbers would all begin in the same few lines of the cache, at half the speed.
        """
        width = (block.stop - block.start) * math.prod(self.places)
        return empty_beside(like, (self.batch, self.groups, self.window, width + _GAP))[..., :width]

    def seen(self, columns: Array, block: slice) -> Array:
        """A view of columns as the elements under the window, ``(B, N, C, *kernel, *places)``."""
        count, space = block.stop - block.start, len(self.image)
        if self.images_last:
            shape = (self.batch, self.inputs, *self.kernel, *self.places, count)
            return _second(columns.reshape(shape), -1)
        shape = (self.batch, self.inputs, *self.kernel, count, *self.places)
        return _second(columns.reshape(shape), 2 + space)

    def empty_padded(self, block: slice, like: Array) -> Array:
        """Memory for some images with their padding, ``(B, N, C, *padded)``."""
        count, padded = block.stop - block.start, self.slide.padded(self.image)
        if self.images_last:
            return _second(empty_beside(like, (self.batch, self.inputs, *padded, count)), -1)
        return empty_beside(like, (self.batch, count, self.inputs, *padded))

    def padded(self, x: Array, block: slice) -> Array:
        """Some images of x with their padding."""
        if not self.images_last:
            return pad(x[:, block], self.slide)
        out = self.empty_padded(block, x)
        out.fill(0)
        out[self.slide.inside(self.image)] = x[:, block]
        return out

    def columns(self, x: Array) -> Iterator[tuple[slice, Array]]:
        """The columns ``(B, G, window, width)`` of x, a few images at a time; the memory is reused."""
        buffer = None
        for block in self.blocks():
            seen = windows(self.padded(x, block), self.slide, self.kernel, self.places)
            if buffer is None or buffer.size != seen.size:
                buffer = self.empty_columns(block, x)
            np.copyto(self.seen(buffer, block), seen)
            yield block, buffer


def _second(array: Array, axis: int) -> Array:
    """The array with that axis as its second."""
    order = list(range(array.ndim))
    order.insert(1, order.pop(axis))
    return array.transpose(order)


class Geometry(NamedTuple):
    """The moves of a convolution's window, and the number of groups that its channels are divided into."""

    slide: Slide
    groups: int

    def turned(self, image: Ints, kernel: Ints, places: Ints) -> Geometry | None:
        """The geometry by which `_convolve` of a turned kernel is `_spread`, where a window moves by one; or None."""
        sizes = zip(image, kernel, places, self.slide.padding, self.slide.dilation, strict=True)
        padding = tuple((d * (k - 1) - low, n + low - m) for n, k, m, (low, _), d in sizes)
        if any(step > 1 for step in self.slide.stride) or any(low < 0 or high < 0 for low, high in padding):
            return None
        return self._replace(slide=self.slide._replace(padding=padding))

    def form(self, batch: int, images: int, inputs: int, outputs: int, image: Ints, kernel: Ints) -> _Form:
        places = self.slide.places(image, kernel)
        each = batch * inputs * math.prod(kernel) * math.prod(places)
        step = max(1, min(images, _COLUMNS // max(each, 1)))
        last = places[-1] <= _SHORT and step >= _MANY
        return _Form(self.slide, self.groups, batch, images, inputs, outputs, image, kernel, places, step, last)


def _precise(*arrays: Array) -> list[Array]:
    """The arrays in a dtype in which products are fast and precise."""
    return [a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays]


def _flat_lead(array: Array, space: int, batch: Ints) -> Array:
    """An array whose axes before the last `space` + 2 are broadcast to `batch` and flattened into one."""
    core = array.shape[array.ndim - space - 2 :]
    if array.shape[: array.ndim - space - 2] != batch:
        array = np.broadcast_to(array, batch + core)
    return array.reshape(math.prod(batch), *core)


def _joined_lead(image: Array, weight: Array, space: int) -> tuple[Ints, Array, Array]:
    """An image and a weight with one batch axis each, and the shape of the batch.

    Where the weight has no batch, the images of the batch are further images, and their batch axis has length 1.
    """
    lead, own = image.shape[: image.ndim - space - 2], weight.shape[: weight.ndim - space - 2]
    if math.prod(own) == 1:
        images = math.prod(image.shape[: -space - 1])
        return (
            np.broadcast_shapes(lead, own),
            image.reshape(1, images, *image.shape[-space - 1 :]),
            weight.reshape(1, *weight.shape[-space - 2 :]),
        )
    batch = np.broadcast_shapes(lead, own)
    return batch, _flat_lead(image, space, batch), _flat_lead(weight, space, batch)


# The attributes that torch's node saves. The bias is not part of this operation.
_SAVED = {
    "bias_sym_sizes_opt": lambda: (0,),
    "stride": lambda geometry: geometry.slide.stride,
    "padding": lambda geometry: tuple(low for low, _ in geometry.slide.padding),
    "dilation": lambda geometry: geometry.slide.dilation,
    "groups": lambda geometry: geometry.groups,
}


@bilinear(
    home="nn.functional",
    node="ConvolutionBackward0",
    saved={**_SAVED, "transposed": lambda: False, "output_padding": lambda geometry: (0,) * len(geometry.slide.stride)},
    batch="leading",
    input=lambda g, weight, geometry, input_shape: on(_spread, g, weight, geometry, _space(input_shape, geometry)),
    weight=lambda g, input, geometry, weight_shape: _weights(input, g, geometry, weight_shape),
)
@on_arrays
def _convolve(input: Any, weight: Any, geometry: Any) -> Any:
    """y, from ``(..., N, C, *image)`` and ``(..., O, C/g, *kernel)``; either or both may have leading batch axes."""
    return _convolved(input, weight, geometry)


def _convolved(input: Array, weight: Array, geometry: Geometry) -> Array:
    """`_convolve` of arrays."""
    space, dtype = len(geometry.slide.stride), input.dtype
    images = input.shape[-space - 2]
    input, weight = _precise(input, weight)
    lead, x, w = _joined_lead(input, weight, space)
    form = geometry.form(len(x), x.shape[1], x.shape[2], w.shape[1], x.shape[3:], w.shape[3:])
    y = empty_beside(x, (form.batch, form.images, form.outputs, *form.places))
    matrices = form.matrices(w)
    for block, columns in form.columns(x):
        if block.stop - block.start == 1:
            np.matmul(matrices, columns, out=form.maps(y, block))
            continue
        y[:, block] = form.images_of(np.matmul(matrices, columns), block)
    return y.reshape(*lead, images, form.outputs, *form.places).astype(dtype, copy=False)


@bilinear(
    home="nn.functional",
    node="ConvolutionBackward0",
    saved={**_SAVED, "transposed": lambda: True},
    batch="leading",
    input=lambda g, weight, geometry: on(_convolve, g, weight, geometry),
    weight=lambda g, input, geometry, weight_shape: _weights(g, input, geometry, weight_shape),
)
@on_arrays
def _spread(input: Any, weight: Any, geometry: Any, image: Any) -> Any:
    """x, with images of size `image`, from y as `input` and a weight.

    Where y has no more channels than x, elements are read at every place of a turned window, which is faster than to
    add there.
    """
    space, dtype = len(geometry.slide.stride), input.dtype
    turned = geometry.turned(image, weight.shape[-space:], input.shape[-space:])
    if turned is not None and 1 < weight.shape[-space - 1] >= weight.shape[-space - 2] // geometry.groups:
        return _convolved(input, _turned(weight, space, geometry.groups), turned)
    images = input.shape[-space - 2]
    input, weight = _precise(input, weight)
    lead, y, w = _joined_lead(input, weight, space)
    inputs = w.shape[2] * geometry.groups
    form = geometry.form(len(y), y.shape[1], inputs, w.shape[1], image, w.shape[3:])
    x = empty_beside(y, (form.batch, form.images, inputs, *image))
    matrices = np.swapaxes(form.matrices(w), -1, -2)
    alone = form.groups == inputs == form.outputs
    columns = padded = np.empty(0)
    for block in form.blocks():
        maps = form.maps(y, block)
        if columns.shape[-1] != maps.shape[-1]:  # in the first block, and in a smaller last one
            columns = form.empty_columns(block, y)
            padded = form.empty_padded(block, y)
        padded.fill(0)
        if alone:
            _spread_alone(padded, y[:, block], w, form)
        else:
            np.matmul(matrices, maps, out=columns)
            add_windows(padded, form.seen(columns, block), form.slide, form.kernel, form.places)
        x[:, block] = padded[form.slide.inside(image)]
    return x.reshape(*lead, images, inputs, *image).astype(dtype, copy=False)


def _turned(weight: Array, space: int, groups: int) -> Array:
    """A weight ``(..., O, C/g, *kernel)`` as one of C outputs from O/g inputs, with each kernel turned round."""
    *lead, outputs, each = weight.shape[: weight.ndim - space]
    kernel = weight.shape[weight.ndim - space :]
    grouped = np.swapaxes(weight.reshape(*lead, groups, outputs // groups, each, *kernel), -space - 1, -space - 2)
    turned = np.flip(grouped, tuple(range(-space, 0)))
    return turned.reshape(*lead, groups * each, outputs // groups, *kernel)


def _spread_alone(padded: Array, y: Array, w: Array, form: _Form) -> None:
    """Spread each channel of y over padded images, where each channel is a group: this needs no columns."""
    each = w.reshape(form.batch, 1, form.inputs, math.prod(form.kernel), *[1] * len(form.kernel))
    for k, (_, index) in enumerate(offsets(form.slide, form.kernel, form.places)):
        padded[index] += y * each[:, :, :, k]


@bilinear(
    home="nn.functional",
    batch="leading",
    input=lambda g, other, geometry, input_shape: on(_spread, other, g, geometry, _space(input_shape, geometry)),
    other=lambda g, input, geometry: on(_convolve, input, g, geometry),
)
@on_arrays
def _correlate(input: Any, other: Any, geometry: Any, kernel: Any) -> Any:
    """w, with kernels of size `kernel`, from x as `input` and y as `other`."""
    space, dtype = len(geometry.slide.stride), input.dtype
    input, other = _precise(input, other)
    batch = np.broadcast_shapes(input.shape[: input.ndim - space - 2], other.shape[: other.ndim - space - 2])
    x, y = (_flat_lead(a, space, batch) for a in (input, other))
    form = geometry.form(len(x), x.shape[1], x.shape[2], y.shape[2], x.shape[3:], kernel)
    w = zeros_beside(x, (form.batch, form.groups, form.outputs // form.groups, form.window))
    for block, columns in form.columns(x):
        w += np.matmul(form.maps(y, block), np.swapaxes(columns, -1, -2))
    return w.reshape(*batch, form.outputs, form.inputs // form.groups, *kernel).astype(dtype, copy=False)


def _weights(x: Any, y: Any, geometry: Geometry, shape: Ints) -> Any:
    """w, from x and y. If they have a batch and w has none, w is a sum over it: the batch is further images."""
    kernel = _space(shape, geometry)
    if len(shape) == len(kernel) + 2 < len(np.shape(x)):
        x, y = (np.reshape(a, (-1, *np.shape(a)[-len(kernel) - 1 :])) for a in (x, y))
    return on(_correlate, x, y, geometry, kernel)


def _space(shape: Ints, geometry: Geometry) -> Ints:
    """The spatial part of the shape of an image or a weight."""
    return tuple(shape[-len(geometry.slide.stride) :])
