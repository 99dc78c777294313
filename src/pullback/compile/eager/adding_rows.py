"""Rows added at positions, as a loop in C: the sums by index of large arrays, which NumPy takes element by element.

The loop adds in the order of the positions, as `np.add.at` does, so the sums are the same to the bit.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.index.index_add import index_add
from ..backends import c, cache
from .kernel import announce, calm, tell

_NAME = index_add.op.name  # what the first build and a failure speak of

_SOURCE = """\
#include <stdint.h>

void add_rows(int64_t blocks, int64_t n, int64_t count, int64_t length,
              const int64_t *places, const TYPE *values, TYPE *sums)
{
    for (int64_t block = 0; block < blocks; block++, sums += n * length)
        for (int64_t i = 0; i < count; i++, values += length) {
            TYPE *row = sums + places[i] * length;
            for (int64_t k = 0; k < length; k++)
                row[k] += values[k];
        }
}
"""
_PARTS = {"f": ("float", 1), "d": ("double", 1), "F": ("float", 2), "D": ("double", 2)}
"""The numbers that an element consists of."""


def add_rows(sums: np.ndarray[Any, Any], places: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> bool:
    """``sums[:, places] += values``, once for each time that a position occurs; False where it is left to NumPy.

    sums: contiguous, of the shape (blocks, n, length); values: (blocks, len(places), length). The positions are from 0
    to n - 1.

    >>> sums = np.zeros((1, 2, 3))
    >>> add_rows(sums, np.array([1, 1]), np.ones((1, 2, 3))) in (True, False)
    True
    """
    loop = _loop(sums.dtype.char) if sums.dtype == values.dtype and sums.dtype.isnative and calm() else None
    if loop is None or not (sums.flags.carray and sums.flags.aligned):
        return False
    places = np.ascontiguousarray(places, np.int64)
    if np.may_share_memory(sums, values):
        values = values.copy()
    values = np.require(values, requirements=["C", "A"])
    blocks, n, length = sums.shape
    parts = _PARTS[sums.dtype.char][1]
    loop(blocks, n, len(places), length * parts, places.ctypes.data, values.ctypes.data, sums.ctypes.data)
    return True


@functools.cache
def _loop(char: str) -> Callable[..., None] | None:
    """The loop for a dtype; None where there is none, or no compiler that takes it."""
    if char not in _PARTS:
        return None
    text = _SOURCE.replace("TYPE", _PARTS[char][0])
    try:
        if (failure := c.failure()) is not None:
            raise failure
        announce(_NAME, text)
        found = cache.load(text).add_rows
    except cache.CompilerError as error:
        tell(_NAME, error)
        return None
    found.argtypes, found.restype = [ctypes.c_int64] * 4 + [ctypes.c_void_p] * 3, None
    return found
