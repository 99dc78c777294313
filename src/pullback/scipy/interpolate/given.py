"""What an interpolant is given: Tensors of double precision, and their points as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...ops.make.conversion import to
from ...tensor.tensor import Tensor
from ..array_nodes import Array, as_tensor
from ..user_functions import bare


def double(value: Any) -> Tensor:
    """A Tensor of float64, or of complex128, as SciPy's interpolants convert what they are given."""
    t = as_tensor(value)
    return to(t, np.complex128 if t._data.dtype.kind == "c" else np.float64)


def real(value: Any, what: str) -> Tensor:
    """A Tensor of float64. TypeError for complex numbers: places have an order, and distances.

    SciPy drops the imaginary part, with a warning.
    """
    t = double(value)
    if t.is_complex():
        raise TypeError(
            errors.message(f"pullback.scipy.interpolate: {what}", expected="real numbers", found=errors.describe(t))
        )
    return t


def points_of(value: Any) -> Array:
    """The values of an argument as an array of float64."""
    return np.asarray(bare(double(value)))


def beside(t: Any, ndim: int) -> Any:
    """A Tensor with further axes of size 1 at the end, so that it has `ndim` in all."""
    return t[(..., *[None] * (ndim - t.ndim))] if t.ndim < ndim else t


def result_axes(out: Any, queries: int, axis: int) -> Any:
    """The axes of the queries, which are the first, moved to where the interpolated axis was."""
    order = list(range(out.ndim))
    order = order[queries : queries + axis] + order[:queries] + order[queries + axis :]
    return np.transpose(out, order) if axis else out
