"""Windows: weights that fall off towards the ends of a stretch of a signal, e.g. for `stft`.

A symmetric window has its highest value in the middle of its n elements. A periodic one, the default, is the symmetric
one of n + 1 elements without the last: repeated, it has the period n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tensor.arrays import counted
from ..make.of_size import factory, or_default, sizes_of
from ..make.random import need_kind


def _window(name: str, length: Any, periodic: bool, dtype: Any, weight: Callable[[Any], Any]) -> Any:
    """`weight` at n points from 0 to 1; a window of one element is 1."""
    found = or_default(dtype)
    need_kind(name, found, "fVc", RuntimeError)
    need_kind(name, found, "fV")
    (n,) = sizes_of((length,))
    if n <= 1:
        return np.ones(n, found)
    return weight(counted(n) / (n if periodic else n - 1)).astype(found)


def _cosines(*factors: float) -> Callable[[Any], Any]:
    """A sum of cosines of 0, 1, 2... turns, with alternating signs."""
    return lambda x: sum((-1) ** k * a * np.cos(2 * np.pi * k * x) for k, a in enumerate(factors))


@factory
def hann_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Any:
    """``(1 - cos(2 pi x)) / 2`` for x from 0 to 1.

    >>> import pullback
    >>> pullback.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, dtype, _cosines(0.5, 0.5))


@factory
def hamming_window(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None
) -> Any:
    """``alpha - beta cos(2 pi x)`` for x from 0 to 1."""
    return _window("hamming_window", window_length, periodic, dtype, _cosines(alpha, beta))


@factory
def blackman_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Any:
    """``0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)`` for x from 0 to 1."""
    return _window("blackman_window", window_length, periodic, dtype, _cosines(0.42, 0.5, 0.08))


@factory
def bartlett_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Any:
    """``1 - |2 x - 1|`` for x from 0 to 1: a triangle."""
    return _window("bartlett_window", window_length, periodic, dtype, lambda x: 1 - np.abs(2 * x - 1))


@factory
def kaiser_window(window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None) -> Any:
    """``I0(beta sqrt(1 - (2 x - 1)**2)) / I0(beta)`` for x from 0 to 1; I0 is the modified Bessel function."""

    def weight(x: Any) -> Any:
        return np.i0(beta * np.sqrt(np.maximum(1 - np.square(2 * x - 1), 0))) / np.i0(beta)

    return _window("kaiser_window", window_length, periodic, dtype, weight)
