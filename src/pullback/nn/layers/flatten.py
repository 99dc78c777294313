"""Other shapes for the same numbers: flattened, folded, shuffled."""

from __future__ import annotations

from typing import Any

from ... import errors
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .layer import Layer, layer


@layer
class Flatten(Layer):
    """One dimension instead of the dimensions from `start_dim` to `end_dim`.

    >>> import pullback
    >>> pullback.nn.Flatten()(pullback.zeros(2, 3, 4)).shape
    pullback.Size([2, 12])
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        flat: Any = input
        return flat.flatten(self.start_dim, self.end_dim)


@layer
class Unflatten(Layer):
    """Several dimensions, of sizes `unflattened_size`, instead of `dim`.

    >>> import pullback
    >>> pullback.nn.Unflatten(1, (3, -1))(pullback.zeros(2, 12)).shape
    pullback.Size([2, 3, 4])
    """

    dim: int
    unflattened_size: Any

    def __post_init__(self) -> None:
        size = self.unflattened_size
        wrong = [n for n in size if not isinstance(n, int)] if isinstance(size, (tuple, list)) else [size]
        if wrong:
            where, found = "Unflatten(): unflattened_size", errors.describe(wrong[0])
            raise TypeError(errors.message(where, expected="a tuple of ints", found=found))

    def forward(self, input: Tensor) -> Tensor:
        flat: Any = input
        return flat.unflatten(self.dim, self.unflattened_size)


@layer
class Unfold(Layer):
    """The patches under a kernel that slides over images, as columns: (N, C * prod(kernel_size), L).

    >>> import pullback
    >>> pullback.nn.Unfold(2)(pullback.arange(9.0).reshape(1, 1, 3, 3))[0, :, 0]
    tensor([0., 1., 3., 4.])
    """

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


@layer
class Fold(Layer):
    """Images that are sums of patches, each added at its place in `Unfold`.

    >>> import pullback
    >>> pullback.nn.Fold((3, 3), 2)(pullback.ones(1, 4, 4))[0, 0]
    tensor([[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]])
    """

    output_size: Any
    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


@layer
class PixelShuffle(Layer):
    """``(*, C r^2, H, W)`` to ``(*, C, H r, W r)``: r^2 channels become one channel of finer pixels.

    >>> import pullback
    >>> pullback.nn.PixelShuffle(2)(pullback.arange(4.0).reshape(1, 4, 1, 1))
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """

    upscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


@layer
class PixelUnshuffle(Layer):
    """``(*, C, H r, W r)`` to ``(*, C r^2, H, W)``: the inverse of `PixelShuffle`.

    >>> import pullback
    >>> pullback.nn.PixelUnshuffle(2)(pullback.zeros(1, 1, 4, 6)).shape
    pullback.Size([1, 4, 2, 3])
    """

    downscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


@layer
class ChannelShuffle(Layer):
    """Takes the channels from `groups` groups in turn.

    >>> import pullback
    >>> pullback.nn.ChannelShuffle(2)(pullback.arange(4.0).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    groups: int

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)
