"""Images of another size, as modules."""

from __future__ import annotations

from typing import Any

from ....tensor.tensor import Tensor
from ... import functional as F  # noqa: N812 - the field's name for it
from ..layer import Layer, layer


@layer
class Upsample(Layer):
    """Values on a finer grid, of size `size` or `scale_factor` times as fine; `mode` as in `interpolate`.

    >>> import pullback
    >>> pullback.nn.Upsample(scale_factor=2)(pullback.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def __post_init__(self) -> None:
        factor = self.scale_factor
        self.name = type(self).__name__
        self.scale_factor = (
            tuple(map(float, factor)) if isinstance(factor, tuple) else float(factor) if factor else None
        )

    def forward(self, input: Tensor) -> Tensor:
        recompute = self.recompute_scale_factor
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, recompute_scale_factor=recompute
        )

    def extra_repr(self) -> str:
        given = "size" if self.scale_factor is None else "scale_factor"
        return f"{given}={getattr(self, given)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of (N, C, H, W) with the nearest value.

    >>> import pullback
    >>> pullback.nn.UpsamplingNearest2d(scale_factor=2)(pullback.zeros(1, 1, 2, 2)).shape
    pullback.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of (N, C, H, W) by bilinear interpolation that keeps the corners.

    >>> import pullback
    >>> pullback.nn.UpsamplingBilinear2d(size=(1, 3))(pullback.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
