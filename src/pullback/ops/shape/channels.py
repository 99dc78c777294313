"""Channels of images turned into pixels and back, and shuffled: reshapes around a permutation, and a copy between."""

from __future__ import annotations

from typing import Any

from ... import errors
from ...table.entry import composite
from ...table.samples import A, S
from ...tensor.tensor import Tensor
from .axes import permute
from .reshape import copied_in_order, reshape


def _image(name: str, input: Tensor, ndim: int, factor: int) -> Any:
    """The lengths of an image's axes; an error for fewer than `ndim`."""
    shape = input._data.shape
    if len(shape) < ndim:
        raise RuntimeError(
            errors.message(f"{name}()", expected=f"at least {ndim} dimensions", found=errors.describe(input))
        )
    if factor <= 0:
        raise RuntimeError(errors.message(f"{name}()", expected="a positive factor", found=str(factor)))
    return shape


def _refuse_remainder(name: str, what: str, n: int, by: int) -> None:
    if n % by:
        raise RuntimeError(errors.message(f"{name}()", expected=f"{what} to be divisible by {by}", found=str(n)))


@composite(
    contiguous=True,
    home="nn.functional",
    also="pixel_shuffle",
    samples=lambda: [
        S(A(4, 1, 3), 2),
        S(A(2, 8, 2, 3), 2),
        S(A(4, 1, 3, 1, 2), 1),
        S(A(9, 2, 2), upscale_factor=3),
        S(A(4, 3, 2, layout="T"), 2),
    ],
    refused=lambda: [S(A(4, 3), 2), S(A(3, 2, 2), 2), S(A(4, 1, 1), 0), S([1.0], 1)],
)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as pixels: ``(*, C r^2, H, W)`` to ``(*, C, H r, W r)``, where r is the `upscale_factor`.

    >>> import pullback
    >>> pullback.pixel_shuffle(pullback.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    r = upscale_factor
    *lead, channels, height, width = _image("pixel_shuffle", input, 3, r)
    _refuse_remainder("pixel_shuffle", "the number of channels", channels, r * r)
    n = len(lead)
    split = reshape(input, (*lead, channels // r**2, r, r, height, width))
    moved = permute(split, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(copied_in_order(moved), (*lead, channels // r**2, height * r, width * r))


@composite(
    contiguous=True,
    home="nn.functional",
    also="pixel_unshuffle",
    samples=lambda: [
        S(A(1, 2, 6), 2),
        S(A(2, 2, 4, 6), 2),
        S(A(4, 1, 3, 1, 2), 1),
        S(A(1, 3, 3), downscale_factor=3),
        S(A(4, 2, 2, layout="T"), 2),
    ],
    refused=lambda: [S(A(4, 2), 2), S(A(3, 2, 3), 2), S(A(3, 3, 2), 2), S(A(4, 1, 1), 0)],
)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels as channels, the inverse of `pixel_shuffle`: ``(*, C, H r, W r)`` to ``(*, C r^2, H, W)``."""
    r = downscale_factor
    *lead, channels, height, width = _image("pixel_unshuffle", input, 3, r)
    _refuse_remainder("pixel_unshuffle", "the height", height, r)
    _refuse_remainder("pixel_unshuffle", "the width", width, r)
    n = len(lead)
    split = reshape(input, (*lead, channels, height // r, r, width // r, r))
    moved = permute(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(copied_in_order(moved), (*lead, channels * r**2, height // r, width // r))


@composite(
    contiguous=True,
    home="nn.functional",
    also="channel_shuffle",
    samples=lambda: [
        S(A(1, 4, 3), 2),
        S(A(2, 6, 2, 1), 3),
        S(A(1, 3, 4), groups=1),
        S(A(1, 4, 0), 2),
        S(A(2, 4, 2, layout="T"), 4),
    ],
    refused=lambda: [S(A(1, 4, 3), 3), S(A(4, 2), 2), S(A(1, 4, 3), 0), S([1.0], 1)],
)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels (the second axis) divided into groups, and taken from each group in turn."""
    batch, channels, *rest = _image("channel_shuffle", input, 3, groups)
    _refuse_remainder("channel_shuffle", "the number of channels", channels, groups)
    split = reshape(input, (batch, groups, channels // groups, *rest))
    moved = permute(split, (0, 2, 1, *range(3, len(rest) + 3)))
    return reshape(copied_in_order(moved), (batch, channels, *rest))
