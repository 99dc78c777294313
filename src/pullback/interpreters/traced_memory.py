"""The memory that a trace reads: arrays of the host or of a GPU, who holds them, and copies that lie as they do."""

from __future__ import annotations

import collections
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tensor.gpu import gpu_of, to_host
from ..tensor.tensor import Tensor


def _references() -> int:
    """The reference count of an array that only one variable holds."""
    array = np.empty(1)
    return sys.getrefcount(array)


REFERENCES = _references()


def is_memory(array: Any) -> bool:
    """Whether it is an array of the host or of a GPU."""
    return isinstance(array, np.ndarray) or gpu_of(array) is not None


def arrays_of(tensors: Sequence[Tensor]) -> dict[int, Any]:
    """The arrays that hold the memory of some tensors, by their ids; none if something else than arrays does."""
    found: dict[int, Any] = {}
    for t in tensors:
        array: Any = t._data
        while is_memory(array):
            found[id(array)] = array
            array = array.base
        if array is not None:
            return {}
    return found


def is_held(arrays: dict[int, np.ndarray[Any, Any]], number: int) -> bool:
    """Whether code outside these arrays, and the views among them, may write to one."""
    listed = collections.Counter(map(id, arrays.values()))
    views = collections.Counter(id(a.base) for a in {id(a): a for a in arrays.values()}.values() if a.base is not None)
    array: Any = arrays[number]
    while is_memory(array):
        if sys.getrefcount(array) > REFERENCES + listed[id(array)] + views[id(array)]:
            return True
        array = array.base
    return array is not None


def copied(array: Any) -> np.ndarray[Any, Any]:
    """A copy on the host that lies in memory as the array does, and is part of a larger piece of it if the array is."""
    if not array.size:
        return np.asarray(to_host(array))
    reach = [step * (n - 1) for n, step in zip(array.shape, array.strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + array.itemsize
    memory = np.empty(high - low + (not is_whole(array)), np.uint8)
    made = np.ndarray(array.shape, array.dtype, memory, -low, array.strides)
    made[...] = to_host(array)
    return made


def is_whole(array: Any) -> bool:
    """Whether an array is all of its memory."""
    owner = array
    while owner.base is not None:
        owner = owner.base
        if not is_memory(owner):
            return False
    return bool(owner.nbytes == array.nbytes)
