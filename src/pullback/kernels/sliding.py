"""Windows that slide over arrays, for convolutions, foldings and poolings, and their adjoint.

Plain arrays only, no derivatives. An image is an array whose last axes are its spatial ones. There may be any number of
axes before them. A `Slide` says how a window moves over the spatial axes.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from ..tensor.arrays import full_beside
from .counterparts import strided_windows

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]


class Slide(NamedTuple):
    """How a window moves over spatial axes, with a number for each; `padding` holds the zeros before and after.

    If the padding after is negative, the window does not reach the last elements.
    """

    stride: Ints
    padding: tuple[tuple[int, int], ...]
    dilation: Ints

    def places(self, shape: Ints, kernel: Ints) -> Ints:
        """The number of places of a window of size `kernel` on an image of size `shape`; below 1 if it does not fit."""
        return tuple(
            (n + low + high - d * (k - 1) - 1) // s + 1
            for n, k, s, (low, high), d in zip(shape, kernel, self.stride, self.padding, self.dilation, strict=True)
        )

    def padded(self, shape: Ints) -> Ints:
        """The size of an image of size `shape` with its padding, large enough to hold the whole image."""
        return tuple(n + low + max(high, 0) for n, (low, high) in zip(shape, self.padding, strict=True))

    def inside(self, shape: Ints) -> tuple[Any, ...]:
        """The index of the image in the padded one."""
        return (..., *(slice(low, low + n) for n, (low, _) in zip(shape, self.padding, strict=True)))

    def apart(self, kernel: Ints) -> bool:
        """Whether no two places of a window of size `kernel` overlap."""
        return all(s > d * (k - 1) for k, s, d in zip(kernel, self.stride, self.dilation, strict=True))


def pad(image: Array, slide: Slide, value: Any = 0) -> Array:
    """The image with its padding; the image itself if there is no padding."""
    if not any(low > 0 or high > 0 for low, high in slide.padding):
        return image
    shape = image.shape[-len(slide.stride) :]
    out = full_beside(image, (*image.shape[: image.ndim - len(shape)], *slide.padded(shape)), value)
    out[slide.inside(shape)] = image
    return out


def windows(padded: Array, slide: Slide, kernel: Ints, places: Ints) -> Array:
    """A view of a padded image, of shape ``(..., *kernel, *places)``: the elements under the window."""
    return strided_windows(padded, kernel, places, slide.stride, slide.dilation)


@functools.lru_cache(64)
def offsets(slide: Slide, kernel: Ints, places: Ints) -> list[tuple[Ints, tuple[Any, ...]]]:
    """Each position in the window, and the index, in a padded image, of the elements under it at all places."""
    found = []
    for position in itertools.product(*map(range, kernel)):
        parts = zip(position, slide.stride, slide.dilation, places, strict=True)
        found.append((position, (..., *(slice(d * i, d * i + s * (n - 1) + 1, s) for i, s, d, n in parts))))
    return found


def _at(position: Ints, after: int = 0) -> Any:
    """The index of a position in some axes, with `after` axes after them."""
    return (..., *position, *[slice(None)] * after)


def add_windows(padded: Array, seen: Array, slide: Slide, kernel: Ints, places: Ints) -> None:
    """Add `seen`, of shape ``(..., *kernel, *places)``, to a padded image where it was seen: the adjoint of `windows`.

    The loop is over the positions in the window or over its places, whichever are fewer.
    """
    if not seen.size:
        return
    if type(padded) is np.ndarray and slide.apart(kernel):
        windows(padded, slide, kernel, places)[...] += seen
    elif math.prod(places) < math.prod(kernel):
        turned = Slide(slide.dilation, slide.padding, slide.stride)
        for place, index in offsets(turned, places, kernel):
            padded[index] += seen[_at(place)]
    else:
        for position, index in offsets(slide, kernel, places):
            padded[index] += seen[_at(position, len(places))]
