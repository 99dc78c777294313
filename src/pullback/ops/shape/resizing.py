"""`resize_` and `resize_as_`: another shape for a tensor, on its memory or on larger memory.

Within the memory this is `as_strided_` (`inplace_views.py`) with the strides of a tensor without gaps. If the memory is
too small, the tensor first moves to larger memory, together with its base and its views.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...kernels.boxes import address
from ...table.entry import alias, method
from ...table.writing import refuse_turn
from ...tensor.arrays import refuse_size, sizes
from ...tensor.modes import thread
from ...tensor.tensor import Lifted, Tensor, need_tensor, wrap
from ...tensor.views import unmark
from ..make.conversion import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format,
    order_of,
    preserve_format,
)
from .inplace_views import _as_strided_
from .strided import _memory, geometry_of


def _refuse(name: str, t: Tensor) -> None:
    """Raise if a tensor must not be given another shape."""
    if isinstance(t, Lifted):
        raise RuntimeError(
            errors.message(
                f"{name}(): cannot resize variables that belong to a transform or have a forward grad",
                do="use narrow(), or cat() with new elements, which make a new tensor",
            )
        )
    if (t._requires_grad or (t._view is not None and t._view.base._requires_grad)) and not thread.modes.inference:
        raise RuntimeError(
            errors.message(
                f"{name}(): cannot resize variables that require grad",
                do="use narrow() or cat(), which are recorded; or resize t.data, and let t.data be what comes of it",
            )
        )
    refuse_turn(t)


def _grow(t: Tensor, length: int) -> None:
    """Move a tensor, its base and its views to memory of `length` elements; new elements are 0."""
    old = _memory(t._data)
    new = np.zeros(length, old.dtype)
    new[: old.size] = old
    base = t if t._view is None else t._view.base
    seen = [view for ref in base._share_version().views if isinstance(view := ref(), Tensor) and view is not base]
    for each in (base, *seen):
        unmark(each)
        a = each._data
        if np.may_share_memory(a, old):
            each._set_payload(np.ndarray(a.shape, a.dtype, new, address(a) - address(old), a.strides))


def _strides(name: str, shape: tuple[int, ...], format: memory_format) -> tuple[int, ...]:
    """The strides, in elements, of a tensor of this shape without gaps."""
    axes = range(len(shape)) if format.axes is None else format.axes
    if len(axes) != len(shape):
        raise RuntimeError(
            errors.message(
                f"{name}()", expected=f"{len(axes)} axes for {format!r}", found=f"{len(shape)}: {list(shape)}"
            )
        )
    found, step = [0] * len(shape), 1
    for axis in reversed(axes):
        found[axis], step = step, step * max(shape[axis], 1)
    return tuple(found)


def _resized(name: str, t: Tensor, shape: tuple[int, ...], format: memory_format | None) -> Tensor:
    """Give a tensor a shape and the strides of a format. Without a format, an unchanged shape keeps its strides."""
    _refuse(name, t)
    if min(shape, default=0) < 0:
        raise RuntimeError(errors.message(f"{name}()", expected="no negative size", found=str(list(shape))))
    refuse_size(shape, t._data.itemsize)
    strides = _strides(name, shape, format or contiguous_format)
    if t._data.shape == shape and (format is None or t.stride() == strides):
        return t
    offset = geometry_of(t)[1]
    length = offset + math.prod(shape)
    memory = _memory(t._data)
    if not memory.size:  # no elements to keep or to share
        t._bump()
        t.data = wrap(
            np.ndarray(shape, memory.dtype, np.zeros(length, memory.dtype), 0, [s * memory.itemsize for s in strides])
        )
        return t
    if length > memory.size:
        _grow(t, length)
    return _as_strided_(t, shape, strides, offset)


@method("resize_", named=True)
def _resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Give this tensor another shape, and return it. It takes the elements of its memory, in order.

    Elements beyond the former memory are 0. RuntimeError for a tensor that requires grad.
    """
    if not size:
        raise TypeError('resize_() missing 1 required positional arguments: "size"')
    order_of(memory_format)  # refuses other objects
    if memory_format is preserve_format:
        raise RuntimeError(errors.message("resize_()", expected="another memory_format", found="preserve_format"))
    return _resized("resize_", self, sizes(size), memory_format)


@method("resize_as_", named=True)
def _resize_as_(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """`resize_` to the shape of another tensor; with `preserve_format`, also to its memory format."""
    need_tensor("resize_as_()", the_template)
    order_of(memory_format)
    if memory_format is preserve_format:
        formats = (contiguous_format, channels_last, channels_last_3d)
        memory_format = next((f for f in formats if the_template.is_contiguous(f)), contiguous_format)
    return _resized("resize_as_", self, tuple(the_template._data.shape), memory_format)


alias("resize_as_", _resize_as_)
