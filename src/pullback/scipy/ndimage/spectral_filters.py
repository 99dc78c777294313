"""Filters of Fourier transforms: a product with constant factors, which SciPy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage

from ..array_nodes import floating, tensor_of
from ..mirror import mirrors
from ..user_functions import plain_setting
from .image_filters import as_output


def _filtered(name: str, input: Any, width: Any, n: int, axis: int, output: Any) -> Any:
    setting = {"fourier_shift": "shift", "fourier_gaussian": "sigma"}.get(name, "size")
    width, n, axis = plain_setting(f"ndimage.{name}", **{setting: width, "n": n, "axis": axis})
    x = floating(input)
    factors = getattr(scipy.ndimage, name)(np.ones(x.shape, x._data.dtype), width, n, axis)
    return as_output(name, x * tensor_of(factors), output)


@mirrors("ndimage.fourier_gaussian", derivative="the same factors", limits="sigma is a setting")
def fourier_gaussian(input: Any, sigma: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """A Fourier transform times that of a Gaussian.

    >>> import pullback
    >>> fourier_gaussian(pullback.tensor([1.0, 1.0]), 1.0)[0]
    tensor(1.)
    """
    return _filtered("fourier_gaussian", input, sigma, n, axis, output)


@mirrors("ndimage.fourier_uniform", derivative="the same factors", limits="size is a setting")
def fourier_uniform(input: Any, size: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """A Fourier transform times that of a box.

    >>> import pullback
    >>> fourier_uniform(pullback.tensor([1.0, 1.0]), 1.0)[0]
    tensor(1.)
    """
    return _filtered("fourier_uniform", input, size, n, axis, output)


@mirrors("ndimage.fourier_ellipsoid", derivative="the same factors", limits="size is a setting")
def fourier_ellipsoid(input: Any, size: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """A Fourier transform times that of an ellipsoid.

    >>> import pullback
    >>> fourier_ellipsoid(pullback.tensor([1.0, 1.0]), 1.0)[0]
    tensor(1.)
    """
    return _filtered("fourier_ellipsoid", input, size, n, axis, output)


@mirrors("ndimage.fourier_shift", derivative="the conjugate factors", limits="shift is a setting")
def fourier_shift(input: Any, shift: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """The Fourier transform of an image that is moved.

    >>> import pullback
    >>> fourier_shift(pullback.tensor([1.0, 1.0]), 1.0).real.round()
    tensor([ 1., -1.], dtype=pullback.float64)
    """
    return _filtered("fourier_shift", input, shift, n, axis, output)
