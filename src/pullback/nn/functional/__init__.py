"""Functions of neural networks, by torch's names: what layers compute, and losses."""

from typing import Any as _Any

from ...table.entry import NAMES as _NAMES
from . import (
    activation,
    attention,
    borders,
    distance,
    dropout,
    embedding,
    gaussian,
    linear,
    normalization,
    softmaxes,
)
from .images import averages, convolution, folding, grid_sample, pooling, resampling, unpooling
from .losses import classes, ctc, likelihoods, pairs, regression

globals().update(_NAMES["nn.functional"])


def __getattr__(name: str) -> _Any:
    raise AttributeError(
        f"module 'pullback.nn.functional' has no attribute {name!r}: it is not in pullback, or not yet.\n"
        "  What to do: write it with functions of pullback."
    )
