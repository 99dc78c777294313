"""Functions of neural networks under torch's names: the computations of layers, and losses."""

from typing import Any as _Any

from ... import errors as _errors
from ...table.entry import NAMES as _NAMES
from ...table.tensor_methods import enter_methods as _enter_methods
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

_enter_methods()
__all__ = sorted(_NAMES["nn.functional"])

globals().update(_NAMES["nn.functional"])


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> _Any:
    raise _errors.absent(
        __name__,
        f"module 'pullback.nn.functional' has no attribute {name!r}: it is not in pullback, or not yet.\n"
        "  What to do: write it with functions of pullback.",
    )
