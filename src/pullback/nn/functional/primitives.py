"""Operations that functions in several files use, and that are not public themselves.

The arithmetic of the linear ones is in `kernels/planes.py` and `kernels/taps.py`; here are their adjoints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels import planes, taps
from ...table.calls import on
from ...table.entry import linear, pointwise

# The attributes that torch's nodes of sliding windows save.
SAVED = {
    "stride": lambda slide: slide.stride,
    "padding": lambda slide: tuple(low for low, _ in slide.padding),
    "dilation": lambda slide: slide.dilation,
}


@linear(
    name="_from_planes",
    home="nn.functional",
    batch="leading",
    numbers="space",
    input=lambda g, index, space, input_shape: on(added_into_planes, g, index, tuple(input_shape[-space:])),
)
def picked_from_planes(input: Any, index: Any, space: Any) -> Any:
    """The elements at flat positions ``(..., *places)`` in the planes ``(..., *plane)``; both have `space` axes."""
    return planes.from_planes(input, index, space)


@linear(
    name="_into_planes",
    home="nn.functional",
    batch="leading",
    numbers="plane",
    input=lambda g, index, plane: on(picked_from_planes, g, index, len(plane)),
)
def added_into_planes(input: Any, index: Any, plane: Any) -> Any:
    """Zeros ``(..., *plane)`` with each element of `input` added at its flat position."""
    return planes.into_planes(input, index, plane)


@linear(
    name="_resample",
    home="nn.functional",
    saved={"output_size": lambda maps: tuple(m.outputs for m in maps)},
    batch="leading",
    numbers="",
    input=lambda g, maps: on(resampled, g, tuple(m and m.transposed for m in maps)),
)
def resampled(input: Any, maps: Any) -> Any:
    """A linear map for each of the last axes, or None for an axis that stays unchanged."""
    return taps.applied(maps, input)


@pointwise(name="_at_least", home="nn.functional", input=lambda g: g)
def at_least(input: Any, bound: float) -> Any:
    """``max(input, bound)`` with the derivative of `input`: a bound that avoids a division by 0."""
    return np.maximum(input, bound)
