"""Dropout: in training, elements or whole channels are left out at random."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import errors
from ...ops.make.generators import generator_for
from ...ops.make.random import drawn
from ...table.entry import composite
from ...table.samples import A, S
from ...tensor.tensor import Tensor
from .activation import SELU_ALPHA, SELU_SCALE
from .arguments import floating, refuse

_OFF = -SELU_ALPHA * SELU_SCALE  # the limit of selu far below 0


def _checked(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise refuse(name, "p, a probability, between 0 and 1", p, error=ValueError)


def _channels(input: Tensor, before: int) -> tuple[int, ...]:
    """The shape of one number for each channel: the first `before` axes, and length 1 for the others."""
    shape = input._data.shape
    return tuple(n if i < before else 1 for i, n in enumerate(shape))


def _kept(input: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """Numbers of shape `shape` in the dtype of `input`: 0 with probability `p`, else 1. For ``p=1``, a single 0."""
    dtype = input._data.dtype
    if p == 1:  # none is drawn
        return input.new_zeros(())
    own: Any = np.float64 if dtype == np.float64 else np.float32
    return drawn(
        lambda stream, shape: np.greater_equal(stream.random(shape, own), p).astype(dtype),
        shape,
        generator=generator_for(input),
    )


def _left_out(name: str, input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    """`input` with elements set to 0 with probability `p`, drawn for each of `shape`; the others divided by ``1 -
    p``."""
    _checked(name, p)
    if not training or not p:
        return input
    floating(name, input)
    kept = _kept(input, shape, p)
    factor = kept / (1 - p) if p < 1 else kept
    return input.mul_(factor) if inplace else input * factor


def _switched_off(name: str, input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    """As `_left_out`, but set to the lower limit of `selu`, then scaled and shifted to keep mean 0 and variance 1."""
    _checked(name, p)
    if not training or not p:
        return input
    floating(name, input)
    kept = _kept(input, shape, p)
    if p == 1:
        return input.mul_(kept) if inplace else input * kept
    scale = ((1 - p) * (1 + p * _OFF * _OFF)) ** -0.5
    shift = ((1 - kept) - p) * (scale * _OFF)
    factor = kept * scale
    return input.mul_(factor).add_(shift) if inplace else input * factor + shift


_SAME = [S(A(2, 3), training=False), S(A(), 0.3, False), S(A(2), p=0.0, training=True), S(A(0), 0.5, False)]
_NO_PROBABILITY = [S(A(2), 1.5), S(A(2), -0.1), S(A(2), p=2, training=False), S(), S(A(2), nonsense=1)]


@composite(truths="inplace", home="nn.functional", samples=_SAME, refused=_NO_PROBABILITY)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element set to 0 with probability `p`, else divided by ``1 - p``; `input` itself unless `training`.

    Drawn from the default generator (Hinton et al. 2012, arXiv:1207.0580).

    >>> import pullback
    >>> x = pullback.ones(1000)
    >>> sorted(set(pullback.nn.functional.dropout(x, 0.75).tolist()))
    [0.0, 4.0]
    """
    return _left_out("dropout", input, input._data.shape, p, training, inplace)


@composite(truths="inplace", home="nn.functional", samples=_SAME, refused=_NO_PROBABILITY)
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for `selu`: it keeps mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515)."""
    return _switched_off("alpha_dropout", input, input._data.shape, p, training, inplace)


@composite(
    truths="inplace",
    home="nn.functional",
    samples=lambda: [*_SAME[:2], S(A(2, 3), p=0.0, training=True)],
    refused=lambda: [*_NO_PROBABILITY, S(A(2), 0.5, True)],
)
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels: ``(N, C, ...)``."""
    if training and input._data.ndim < 2:
        raise refuse("feature_alpha_dropout", "an input (N, C, ...)", f"size {list(input._data.shape)}")
    return _switched_off("feature_alpha_dropout", input, _channels(input, 2), p, training, inplace)


_CHANNELS = [*_NO_PROBABILITY[:3], S(), S(A(2, 3, 4), nonsense=1)]


@composite(
    truths="inplace",
    home="nn.functional",
    samples=lambda: [S(A(2, 3), training=False), S(A(2, 3, 4), 0.0)],
    refused=lambda: [*_CHANNELS, S(A(2)), S(A(1, 2, 3, 4))],
)
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels: ``(N, C, L)`` or ``(C, L)``."""
    _checked("dropout1d", p)
    ndim = input._data.ndim
    if ndim not in (2, 3):
        raise refuse("dropout1d", "an input (N, C, L) or (C, L)", f"size {list(input._data.shape)}")
    return _viewed(
        input,
        _left_out("dropout1d", input, _channels(input, ndim - 1), p, training, inplace),
        ndim == 2 and not inplace,
    )


@composite(
    truths="inplace",
    home="nn.functional",
    samples=lambda: [S(A(2, 3, 2, 1), training=False), S(A(2, 3, 4, 2), 0.0)],
    refused=_CHANNELS,
)
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels: ``(N, C, H, W)``."""
    _checked("dropout2d", p)
    ndim = input._data.ndim
    if ndim != 4:
        read_as = ", which is read as (N, C, L): use dropout1d for that" if ndim == 3 else ": use dropout for others"
        warnings.warn(
            f"dropout2d: Received a {ndim}-D input to dropout2d, which is deprecated and will result in an error in a "
            f"future release. It is for inputs (N, C, H, W){read_as}.",
            stacklevel=errors.callers_level(),
        )
    _refuse_vectors("dropout2d", input, 2, training)
    return _left_out("dropout2d", input, _channels(input, 2), p, training, inplace)


@composite(
    truths="inplace",
    home="nn.functional",
    samples=lambda: [S(A(2, 3, 2, 1), training=False), S(A(2, 3, 4, 2, 1), 0.0)],
    refused=_CHANNELS,
)
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels: ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""
    _checked("dropout3d", p)
    ndim = input._data.ndim
    if ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {ndim}-D input to dropout3d, which is deprecated and will result in an error in a "
            "future release. It is for inputs (N, C, D, H, W) or (C, D, H, W): use dropout for others.",
            stacklevel=errors.callers_level(),
        )
    _refuse_vectors("dropout3d", input, 1, training)
    found = _left_out("dropout3d", input, _channels(input, 2 if ndim == 5 else 1), p, training, inplace)
    return _viewed(input, found, ndim != 5 and not inplace)


def _viewed(input: Tensor, found: Tensor, alone: bool) -> Tensor:
    """What was found; as in torch a view of `input` if it is `input` itself, `alone`: without an axis of samples."""
    return input.view_as(input) if alone and found is input else found


def _refuse_vectors(name: str, input: Any, least: int, training: bool) -> None:
    if training and input._data.ndim < least:
        raise refuse(name, "an input with an axis of channels", f"size {list(input._data.shape)}")
