"""Reading and adding at positions in planes: the last axes of an array, flattened, of which there may be many.

The adjoints of each other, and what the derivatives of pooling and sampling come down to.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..table.calls import on
from ..table.entry import linear
from ..tensor.arrays import summing
from .sliding import Array, Ints


def _flat(index: Array, lead: Ints, space: int, plane: int) -> Array:
    """Positions ``(..., *places)`` in planes of so many elements, as positions in all the planes of shape `lead`."""
    places = index.shape[index.ndim - space :]
    start = np.arange(math.prod(lead), dtype=np.int64).reshape(*lead, *[1] * space) * plane
    return (index + start).reshape(math.prod(lead), *places) if places else (index + start).reshape(-1)


def _lead(first: Array, second: Array, space: int) -> Ints:
    return np.broadcast_shapes(first.shape[: first.ndim - space], second.shape[: second.ndim - space])


@linear(
    home="nn.functional",
    batch="leading",
    numbers="space",
    input=lambda g, index, space, input_shape: on(_into_planes, g, index, tuple(input_shape[-space:])),
)
def _from_planes(input: Any, index: Any, space: Any) -> Any:
    """The elements at flat positions ``(..., *places)`` in the planes ``(..., *plane)``; both have `space` axes."""
    lead, plane = _lead(input, index, space), input.shape[input.ndim - space :]
    flat = _flat(index, lead, space, math.prod(plane))
    whole = np.broadcast_to(input, (*lead, *plane)).reshape(-1)
    return np.take(whole, flat).reshape(*lead, *index.shape[index.ndim - space :])


@linear(
    home="nn.functional",
    batch="leading",
    numbers="plane",
    input=lambda g, index, plane: on(_from_planes, g, index, len(plane)),
)
def _into_planes(input: Any, index: Any, plane: Any) -> Any:
    """Zeros ``(..., *plane)`` with what stands in `input` added at flat positions."""
    space = len(plane)
    lead = _lead(input, index, space)
    out = np.zeros((*lead, *plane), summing(input.dtype))
    flat = _flat(index, lead, space, math.prod(plane))
    values = np.broadcast_to(input, (*lead, *input.shape[input.ndim - space :]))
    np.add.at(out.reshape(-1), flat.reshape(-1), values.reshape(-1))
    return out.astype(input.dtype, copy=False)
