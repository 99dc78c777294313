"""Smoothing, trends and envelopes: linear maps of the signal."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.signal

from ..array_nodes import floating, linear
from ..fft.fourier_transforms import fft, ifft
from ..mirror import mirrors
from ..user_functions import bare, plain_setting
from .convolving import along
from .extending import extended


@mirrors("signal.savgol_filter", derivative="the adjoint: correlation, the border folded back")
def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: float = 0.0,
) -> Any:
    """The values, or derivatives, of polynomials fitted in a moving window (Savitzky and Golay 1964).

    >>> import pullback
    >>> x = pullback.tensor([0.0, 1.0, 4.0, 9.0, 16.0], requires_grad=True)
    >>> savgol_filter(x, 3, 1)[2].backward()
    >>> x.grad
    tensor([0.0000, 0.3333, 0.3333, 0.3333, 0.0000])
    """
    names = ("window_length", "polyorder", "deriv", "delta", "cval")
    given = dict(zip(names, (window_length, polyorder, deriv, delta, cval), strict=True))
    w, polyorder, deriv, delta, cval = plain_setting("signal.savgol_filter", **given)
    x = floating(x)
    short = np.take(bare(x), range(min(x.shape[axis], w)), axis=axis)
    scipy.signal.savgol_filter(short, w, polyorder, deriv, delta, axis, mode, cval)  # SciPy's checks
    weights = scipy.signal.savgol_coeffs(w, polyorder, deriv=deriv, delta=delta)
    if mode != "interp":
        return along(extended(x, axis, (w - 1) // 2, w // 2, mode, cval), weights, axis)
    x = np.moveaxis(x, axis, -1)
    n, half, shift = x.shape[-1], w // 2, (w - 1) // 2
    middle = along(x, weights, -1)[..., half - shift : n - half - shift]
    fit = scipy.signal.savgol_filter(np.eye(w), w, polyorder, deriv, delta, axis=0, mode="interp")
    fit = fit.astype(x._data.dtype, copy=False)
    first = np.matmul(x[..., :w], fit[:half].T)
    last = np.matmul(x[..., n - w :], fit[w - half :].T)
    return np.moveaxis(np.concatenate([first, middle, last], axis=-1), -1, axis)


@mirrors("signal.detrend", derivative="a projection, which is symmetric: the map itself")
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    """The data without its mean, or without the line fitted to it; `overwrite_data` has no effect.

    >>> import pullback
    >>> detrend(pullback.tensor([1.0, 2.0, 4.0]), type="constant").round(decimals=4)
    tensor([-1.3333, -0.3333,  1.6667])
    """
    (bp,) = plain_setting("signal.detrend", bp=bp)
    x = floating(data)
    axis = axis % x.ndim - x.ndim if -x.ndim <= axis < x.ndim else axis
    project = functools.partial(scipy.signal.detrend, axis=axis, type=type, bp=bp)
    return linear(project, project, x, batched=True)


@mirrors("signal.hilbert", derivative="Fourier transforms, in recorded operations")
def hilbert(x: Any, N: Any = None, axis: int = -1) -> Any:
    """The analytic signal: without the negative frequencies, the positive ones doubled.

    >>> import pullback
    >>> hilbert(pullback.tensor([1.0, 0.0, -1.0, 0.0])).imag
    tensor([ 0.,  1.,  0., -1.])
    """
    x = floating(x)
    n = x.shape[axis] if N is None else N
    if x.is_complex() or n <= 0:
        scipy.signal.hilbert(bare(x), N, axis)
    weights = np.zeros(n)
    weights[0], weights[1 : (n + 1) // 2] = 1, 2
    if n % 2 == 0:
        weights[n // 2] = 1
    weights = weights.reshape((-1, *[1] * (-1 - (axis % x.ndim - x.ndim))))
    return ifft(fft(x, n, axis) * weights.astype(x._data.dtype), axis=axis)
