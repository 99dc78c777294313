"""Dropout: in training, elements or whole channels are set to 0 at random; otherwise they do nothing."""

from __future__ import annotations

from ... import errors
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .layer import Layer, layer


@layer
class _Dropout(Layer):
    p: float = 0.5
    inplace: bool = False

    def __post_init__(self) -> None:
        if self.p < 0 or self.p > 1:
            where = f"{type(self).__name__}(): dropout probability"
            raise ValueError(errors.message(where, expected="to be between 0 and 1", found=errors.describe(self.p)))

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Sets each element to 0 with probability `p`, and multiplies the others by ``1 / (1 - p)``.

    >>> import pullback
    >>> pullback.nn.Dropout(0.2).eval()(pullback.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """`Dropout` of whole channels of (N, C, L) or (C, L).

    >>> import pullback
    >>> pullback.nn.Dropout1d(1.0)(pullback.ones(1, 2, 3)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """`Dropout` of whole channels of (N, C, H, W) or (N, C, L).

    >>> import pullback
    >>> pullback.nn.Dropout2d(1.0)(pullback.ones(1, 2, 3, 3)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """`Dropout` of whole channels of (N, C, D, H, W) or (C, D, H, W).

    >>> import pullback
    >>> pullback.nn.Dropout3d(1.0)(pullback.ones(1, 2, 3, 3, 3)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Sets elements to SELU's lower bound, and keeps mean 0 and variance 1 (Klambauer et al., 2017).

    >>> import pullback
    >>> pullback.nn.AlphaDropout().eval()(pullback.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels.

    >>> import pullback
    >>> pullback.nn.FeatureAlphaDropout().eval()(pullback.ones(1, 2))
    tensor([[1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
