"""Functions of neural networks, by torch's names: what layers compute, and losses."""

from typing import Any as _Any

from ...ops.table import NAMES as _NAMES
from . import (
    activations,
    attention,
    averages,
    classes,
    convolution,
    ctc,
    distance,
    dropouts,
    embeddings,
    folding,
    gaussian,
    likelihoods,
    losses,
    normalization,
    padding,
    pairs,
    pooling,
    products,
    resampling,
    sampling,
    softmaxes,
    unpooling,
)

globals().update(_NAMES["nn.functional"])


def __getattr__(name: str) -> _Any:
    raise AttributeError(
        f"module 'pullback.nn.functional' has no attribute {name!r}: it is not in pullback, or not yet.\n"
        "  What to do: write it with functions of pullback."
    )
