"""Distances between vectors, as modules."""

from __future__ import annotations

from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .layer import Layer, layer


@layer
class CosineSimilarity(Layer):
    """``x1 . x2 / (|x1| |x2|)`` along `dim`; a norm smaller than `eps` counts as `eps`.

    >>> import pullback
    >>> pullback.nn.CosineSimilarity(dim=0)(pullback.tensor([1.0, 0.0]), pullback.tensor([3.0, 4.0]))
    tensor(0.6000)
    """

    dim: int = 1
    eps: float = 1e-8
    _shown = ""

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


@layer
class PairwiseDistance(Layer):
    """``(sum |x1 - x2 + eps|^p)^(1 / p)`` along the last dimension.

    >>> import pullback
    >>> pullback.nn.PairwiseDistance()(pullback.tensor([[3.0, 4.0]]), pullback.zeros(1, 2))
    tensor([5.0000])
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False
    _shown = ""

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)
