"""`unfold` takes the windows of an image as columns, and its adjoint `fold` adds up columns to an image."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....kernels.counterparts import contiguous
from ....kernels.sliding import Ints, Slide, add_windows, pad, windows
from ....table.calls import on
from ....table.entry import linear
from ....table.samples import A, S
from ....tensor.arrays import zeros_beside
from ....tensor.protocol import on_arrays
from ....tensor.tensor import Tensor
from ..arguments import floating, integers, ranks, refuse
from ..primitives import SAVED


def _slide(name: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Ints, Slide]:
    kernel = integers(name, "kernel_size", kernel_size, 2, 1)
    found = integers(name, "padding", padding, 2, 0)
    return kernel, Slide(
        integers(name, "stride", stride, 2, 1),
        tuple((n, n) for n in found),
        integers(name, "dilation", dilation, 2, 1),
    )


def _check_unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    floating("unfold", input, also="cb")
    ranks("unfold", input, 3, 4)
    kernel, slide = _slide("unfold", kernel_size, dilation, padding, stride)
    shape = input._data.shape
    if 0 in shape[-3:]:
        raise refuse("unfold", "images of at least one element", f"size {list(shape)}")
    if min(slide.places(shape[-2:], kernel)) < 1:
        raise refuse("unfold", "a kernel no larger than the padded image", f"{list(kernel)}, an image {list(shape)}")
    return input, slide, kernel


@linear(
    home="nn.functional",
    checks=_check_unfold,
    node="Im2ColBackward0",
    saved=SAVED,
    batch="leading",
    numbers="slide kernel",
    input=lambda g, slide, kernel, input_shape: on(fold, g, slide, kernel, tuple(input_shape[-2:])),
    samples=lambda: [
        S(A(2, 2, 4, 5), 2),
        S(A(2, 4, 5), (2, 3)),
        S(A(2, 2, 5, 4), (3, 2), 1, (1, 0), 2),
        S(A(1, 2, 5, 5, layout="T"), kernel_size=2, dilation=(2, 1), padding=1, stride=(1, 3)),
        S(A(0, 2, 4, 4), 2),
        S(A(1, 1, 1, 1), 1),
    ],
    refused=lambda: [
        S(A(2, 0, 4, 4), 2),
        S(A(1, 2, 4, 4), 5),
        S(A(1, 2, 4, 4), 0),
        S(A(1, 2, 4, 4), 2, stride=0),
        S(A(1, 2, 4, 4), 2, padding=-1),
        S(A(1, 2, 4, 4), 2, dilation=0),
        S(A(1, 2, 4, 4), (2, 2, 2)),
        S([1.0], 2),
    ],
)
@on_arrays
def unfold(input: Any, slide: Any, kernel: Any) -> Any:
    """The elements that a window sees at each of its L places, as columns: ``(N, C, H, W)`` to ``(N, C * kernel, L)``.

    >>> import pullback
    >>> x = pullback.arange(9.0).reshape(1, 3, 3)
    >>> pullback.nn.functional.unfold(x, 2)
    tensor([[0., 1., 3., 4.],
            [1., 2., 4., 5.],
            [3., 4., 6., 7.],
            [4., 5., 7., 8.]])
    """
    image = input.shape[-2:]
    places = slide.places(image, kernel)
    seen = windows(pad(input, slide), slide, kernel, places)
    shape = (*input.shape[:-3], input.shape[-3] * math.prod(kernel), math.prod(places))
    return np.copy(seen, order="C").reshape(shape)


def _check_fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    floating("fold", input, also="cb")
    ranks("fold", input, 2, 3)
    image = integers("fold", "output_size", output_size, 2, 1)
    kernel, slide = _slide("fold", kernel_size, dilation, padding, stride)
    rows, columns = input._data.shape[-2:]
    if rows % math.prod(kernel) or not rows:
        raise refuse("fold", f"columns of a length divisible by the kernel's, {math.prod(kernel)}", f"length {rows}")
    places = slide.places(image, kernel)
    if min(places) < 1 or columns != math.prod(places):
        raise refuse("fold", f"a column for each of {list(places)} places", f"{columns} columns")
    return input, slide, kernel, image


@linear(
    home="nn.functional",
    checks=_check_fold,
    node="Col2ImBackward0",
    saved=SAVED,
    batch="leading",
    numbers="slide kernel",
    input=lambda g, slide, kernel: on(unfold, g, slide, kernel),
    samples=lambda: [
        S(A(2, 8, 12), (4, 5), 2),
        S(A(12, 15), (4, 5), (2, 3), padding=(0, 1)),
        S(A(2, 6, 6), (5, 4), (3, 2), 1, (1, 0), 2),
        S(A(1, 4, 6, layout="T"), output_size=[5, 4], kernel_size=2, dilation=(2, 1), padding=(0, 1), stride=(1, 3)),
        S(A(0, 8, 9), 4, 2),
        S(A(1, 1, 1), (1, 1), (1, 1)),
    ],
    refused=lambda: [
        S(A(16), 5, 2),
        S(A(1, 7, 16), 5, 2),
        S(A(1, 8, 15), 5, 2),
        S(A(1, 8, 16), 5, 2, stride=0),
        S(A(1, 8, 16), 5, 2, padding=-1),
        S(A(1, 8, 16), (5, 5, 1), 2),
        S([1.0], 5, 2),
    ],
)
@on_arrays
def fold(input: Any, slide: Any, kernel: Any, image: Any) -> Any:
    """The sum of columns ``(N, C * kernel, L)`` as images ``(N, C, *output_size)``: the adjoint of `unfold`.

    >>> import pullback
    >>> pullback.nn.functional.fold(pullback.ones(4, 4), 3, 2)
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    places = slide.places(image, kernel)
    channels = input.shape[-2] // math.prod(kernel)
    padded = zeros_beside(input, (*input.shape[:-2], channels, *slide.padded(image)))
    seen = input.reshape(*input.shape[:-2], channels, *kernel, *places)
    add_windows(padded, seen, slide, kernel, places)
    return contiguous(padded[slide.inside(image)])
