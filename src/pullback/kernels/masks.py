"""Choosing by a mask, in forwards and rules: `either` and `only`, on arrays and on Tensors.

`np.where` is slow on a mask without a pattern, because the processor mispredicts half of the branches. Large arrays are
therefore selected by arithmetic on their bits, which is as exact and several times faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BITS = {np.dtype(f"f{size}"): np.dtype(f"i{size}") for size in (2, 4, 8)}
_LARGE = 4096


def _by_bits(mask: Any, value: Any) -> bool:
    """Whether selecting from these arrays by their bits is worth it."""
    return (
        type(value) is np.ndarray
        and value.size >= _LARGE
        and type(mask) is np.ndarray
        and value.shape == mask.shape
        and value.dtype in _BITS
        and _order(mask) == _order(value)  # else the result of `np.where` would lie in another order
    )


def _order(x: Any) -> list[int]:
    """The axes of an array from the last in memory to the first."""
    return sorted(range(x.ndim), key=x.strides.__getitem__)


def either(mask: Any, value: Any, other: Any) -> Any:
    """`value` where a bool mask is True, else `other` (an array or a number): ``np.where`` of the three."""
    if not (_by_bits(mask, value) and _same_kind(value, other)):
        return np.where(mask, value, other)
    other = np.asarray(other, value.dtype).view(_BITS[value.dtype])
    bits = np.bitwise_xor(value.view(other.dtype), other)
    bits *= mask
    bits ^= other
    return bits.view(value.dtype)


def _same_kind(value: Any, other: Any) -> bool:
    if type(other) in (int, float):
        return True
    return type(other) is np.ndarray and other.dtype == value.dtype and other.shape in (value.shape, ())


def only(mask: Any, value: Any) -> Any:
    """`value` where a bool mask is True, else 0: also where `value` is infinite or not a number."""
    if not _by_bits(mask, value):
        return np.where(mask, value, 0)
    return np.multiply(value.view(_BITS[value.dtype]), mask).view(value.dtype)
