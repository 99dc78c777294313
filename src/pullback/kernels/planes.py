"""Reading and adding at positions in planes. A plane is the last axes of an array, flattened; there may be many.

The two functions are the adjoints of each other. The derivatives of pooling and sampling are built on them.
"""

from __future__ import annotations

import math

import numpy as np

from ..tensor.adding import summing
from ..tensor.arrays import arange_beside, zeros_beside
from ..tensor.protocol import on_arrays
from .counterparts import combine_at
from .sliding import Array, Ints


def _flat(index: Array, lead: Ints, space: int, plane: int) -> Array:
    """Positions ``(..., *places)`` in planes of `plane` elements, as positions in all the planes of shape `lead`."""
    places = index.shape[index.ndim - space :]
    start = arange_beside(index, math.prod(lead), np.int64).reshape(*lead, *[1] * space) * plane
    return (index + start).reshape(math.prod(lead), *places) if places else (index + start).reshape(-1)


def _lead(first: Array, second: Array, space: int) -> Ints:
    return np.broadcast_shapes(first.shape[: first.ndim - space], second.shape[: second.ndim - space])


@on_arrays
def from_planes(values: Array, index: Array, space: int) -> Array:
    """The elements at flat positions ``(..., *places)`` in the planes ``(..., *plane)``; both have `space` axes."""
    lead, plane = _lead(values, index, space), values.shape[values.ndim - space :]
    flat = _flat(index, lead, space, math.prod(plane))
    whole = np.broadcast_to(values, (*lead, *plane)).reshape(-1)
    return np.take(whole, flat).reshape(*lead, *index.shape[index.ndim - space :])


@on_arrays
def into_planes(values: Array, index: Array, plane: Ints) -> Array:
    """Zeros ``(..., *plane)`` with each element of `values` added at its flat position."""
    space = len(plane)
    lead = _lead(values, index, space)
    out = zeros_beside(values, (*lead, *plane), summing(values.dtype))
    flat = _flat(index, lead, space, math.prod(plane))
    spread = np.broadcast_to(values, (*lead, *values.shape[values.ndim - space :]))
    combine_at(np.add, out.reshape(-1), flat.reshape(-1), spread.reshape(-1))
    return out.astype(values.dtype, copy=False)
