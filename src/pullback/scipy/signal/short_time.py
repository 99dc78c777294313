"""Short-time Fourier transforms and the spectra that are means over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal

from ...ops.shape.axes import movedim
from ..array_nodes import Array, floating, linear
from ..fft.fourier_transforms import fft, ifft, irfft, rfft
from ..mirror import mirrors
from ..user_functions import bare
from .recursive_filters import continued
from .smoothing import detrend as _detrend


def _cut(size: int, step: int, length: int) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """The map from a signal to its segments, as a further axis in front of the last, and its adjoint: their sum."""
    starts = range(0, length - size + 1, step)

    def cut(a: Array) -> Array:
        return np.lib.stride_tricks.sliding_window_view(a, size, axis=-1)[..., ::step, :].copy()

    def add(g: Array) -> Array:
        out = np.zeros((*g.shape[:-2], length), g.dtype)
        for i, start in enumerate(starts):
            out[..., start : start + size] += g[..., i, :]
        return out

    return cut, add


def segments(x: Any, size: int, step: int) -> Any:
    """The segments of the last axis, of shape (..., number, size).

    >>> segments(np.arange(4.0), 2, 1)
    tensor([[0., 1.],
            [1., 2.],
            [2., 3.]], dtype=pullback.float64)
    """
    return linear(*_cut(size, step, x.shape[-1]), x, batched=True)


def overlapped(x: Any, step: int) -> Any:
    """The sum of segments that overlap: the adjoint of `segments`."""
    count, size = x.shape[-2:]
    cut, add = _cut(size, step, (count - 1) * step + size)
    return linear(add, cut, x, batched=True)


def _window(window: Any, size: int, like: Any) -> Any:
    """The window as a Tensor of a real dtype."""
    found = scipy.signal.get_window(window, size) if isinstance(window, (str, tuple)) else floating(window)
    kind = np.float32 if like._data.dtype in (np.float32, np.complex64) else np.float64
    return floating(found).to(kind) if not isinstance(found, np.ndarray) else floating(found.astype(kind))


def _given(value: Any) -> Any:
    return value if isinstance(value, (str, tuple)) else bare(floating(value))


def _one_signal(x: Any, axis: int) -> Array:
    """The first of several signals, for SciPy's checks."""
    a = np.moveaxis(bare(x), axis, -1)
    return a.reshape(-1, a.shape[-1])[0] if a.size else a


@mirrors("signal.stft", derivative="segments, window and FFT, in recorded operations; in x and window")
def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann_periodic",
    nperseg: Any = 256,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: Any = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Any, Any, Any]:
    """Frequencies, times and the short-time Fourier transform, which is differentiable in x and in `window`.

    >>> import pullback
    >>> f, t, z = stft(pullback.tensor([1.0, 2.0, 3.0, 4.0]), nperseg=2)
    >>> z.shape
    pullback.Size([2, 5])
    """
    x = floating(x)
    f, t, _ = scipy.signal.stft(
        _one_signal(x, axis), fs, _given(window), nperseg, noverlap, nfft, detrend, return_onesided, boundary, padded,
        -1, scaling,
    )  # fmt: skip
    x = np.moveaxis(x, axis, -1)
    if isinstance(window, (str, tuple)):
        nperseg = min(256 if nperseg is None else int(nperseg), x.shape[-1])
    win = _window(window, nperseg or 0, x)
    size = len(win)
    step = size - (size // 2 if noverlap is None else int(noverlap))
    nfft = size if nfft is None else int(nfft)
    x = continued(x, size // 2, boundary)
    if padded:
        more = -(x.shape[-1] - size) % step % size
        x = np.concatenate([x, np.zeros((*x.shape[:-1], more), x._data.dtype)], axis=-1)
    scale = np.sum(win) if scaling == "spectrum" else np.sqrt(fs * np.sum(np.square(win)))
    z = _spectra(x, win, step, nfft, detrend, return_onesided and not x.is_complex()) / scale
    z = np.swapaxes(z, -1, -2)
    return f, t, np.moveaxis(z, -2, axis - 1 if axis < 0 else axis)


def _spectra(x: Any, win: Any, step: int, nfft: int, detrend: Any, onesided: bool) -> Any:
    """The transforms of the segments: shape (..., segments, frequencies)."""
    parts = segments(x, len(win), step)
    if callable(detrend):
        parts = detrend(parts)
    elif detrend:
        parts = _detrend(parts, type=detrend)
    return (rfft if onesided else fft)(parts * win, n=nfft)


@mirrors("signal.istft", derivative="FFT, window and overlapping sums, in recorded operations; in Zxx and window")
def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann_periodic",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    input_onesided: bool = True,
    boundary: Any = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Any, Any]:
    """Times and the signal of a short-time Fourier transform, which is differentiable in Zxx and in `window`.

    >>> import pullback
    >>> x = [1.0, 2.0, 3.0, 4.0]
    >>> istft(pullback.tensor(stft(x, nperseg=2)[2]), nperseg=2)[1].round(decimals=6)
    tensor([1., 2., 3., 4.], dtype=pullback.float64)
    """
    z = floating(Zxx)
    t, _ = scipy.signal.istft(
        bare(z), fs, _given(window), nperseg, noverlap, nfft, input_onesided, boundary, time_axis,
        freq_axis, scaling,
    )  # fmt: skip
    ndim = z.ndim
    z = movedim(z, (time_axis, freq_axis), (-2, -1))
    usual = 2 * (z.shape[-1] - 1) if input_onesided else z.shape[-1]
    size = usual if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = size if input_onesided and size == usual + 1 else usual
    step = size - (size // 2 if noverlap is None else int(noverlap))
    win = _window(window, size, z)
    parts = (irfft if input_onesided else ifft)(z, n=int(nfft))[..., :size]
    scale = np.sum(win) if scaling == "spectrum" else np.sqrt(fs * np.sum(np.square(win)))
    x = overlapped(parts * (win * scale), step)
    norm = overlapped(np.stack([np.square(win)] * z.shape[-2]), step)
    if boundary:
        half = size // 2
        x, norm = x[..., half : x.shape[-1] - half], norm[half : norm.shape[-1] - half]
    x = x / np.where(norm > 1e-10, norm, 1.0)
    t_axis, f_axis = time_axis % ndim, freq_axis % ndim
    if x.ndim > 1 and t_axis != ndim - 1:
        x = np.moveaxis(x, -1, t_axis - (f_axis < t_axis))
    return t, x


# Means of spectra -----------------------------------------------------------------------------------------------------


@mirrors("signal.csd", derivative="segments, window and FFT, in recorded operations; in x, y and window")
def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann_periodic",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """Frequencies and the cross spectral density by Welch's method, differentiable in x, y and `window`.

    >>> import pullback
    >>> csd(pullback.tensor([1.0, -1.0, 1.0, -1.0]), [1.0, 1.0, 1.0, 1.0], nperseg=4)[1].shape
    pullback.Size([3])
    """
    same = y is x
    x, y = floating(x), floating(y)
    both = [_one_signal(v, axis) for v in (x, y)]
    f, _ = scipy.signal.csd(
        both[0], both[0] if same else both[1], fs, _given(window), nperseg, noverlap, nfft, detrend, return_onesided,
        scaling, -1, average,
    )  # fmt: skip
    x, y = (np.moveaxis(v, axis, -1) for v in (x, y))
    n = max(x.shape[-1], y.shape[-1])
    x, y = (np.concatenate([v, np.zeros((*v.shape[:-1], n - v.shape[-1]), v._data.dtype)], axis=-1) for v in (x, y))
    if isinstance(window, (str, tuple)):
        nperseg = min(256 if nperseg is None else int(nperseg), n)
    win = _window(window, nperseg or 0, x)
    step = len(win) - (len(win) // 2 if noverlap is None else int(noverlap))
    nfft = len(win) if nfft is None else int(nfft)
    onesided = return_onesided and not x.is_complex()
    left = _spectra(x, win, step, nfft, detrend, onesided)
    right = left if same else _spectra(y, win, step, nfft, detrend, onesided)
    scale = fs * np.sum(np.square(win)) if scaling == "density" else np.square(np.sum(win))
    product = np.square(np.real(left)) + np.square(np.imag(left)) if same else np.conj(left) * right
    if onesided:
        twice = np.full(product.shape[-1], 2.0)
        twice[0] = 1.0
        if nfft % 2 == 0:
            twice[-1] = 1.0
        product = product * twice.astype(win._data.dtype)
    return f, np.moveaxis(_average(product / scale, average), -1, axis)


def _average(p: Any, average: str) -> Any:
    """The mean over the segments, or their median without its bias."""
    n = p.shape[-2]
    if n == 1 or average == "mean":
        return np.mean(p, axis=-2)
    even = 2 * np.arange(1.0, (n - 1) // 2 + 1)
    bias = 1 + np.sum(1.0 / (even + 1) - 1.0 / even)
    if p.is_complex():
        return (np.median(np.real(p), axis=-2) + 1j * np.median(np.imag(p), axis=-2)) / bias
    return np.median(p, axis=-2) / bias


@mirrors("signal.welch", derivative="that of csd")
def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann_periodic",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """Frequencies and the power spectral density by Welch's method, differentiable in x and `window`.

    >>> import pullback
    >>> welch(pullback.tensor([1.0, -1.0, 1.0, -1.0]), window="boxcar", nperseg=4)[1]
    tensor([0., 0., 4.])
    """
    x = floating(x)
    return csd(x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


@mirrors("signal.coherence", derivative="that of csd")
def coherence(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann_periodic",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    axis: int = -1,
) -> tuple[Any, Any]:
    """Frequencies and the magnitude squared coherence, differentiable in x, y and `window`.

    >>> import pullback
    >>> coherence(pullback.tensor([1.0, -1.0, 2.0, -1.0]), [1.0, 1.0, 3.0, 1.0], nperseg=2)[1].shape
    pullback.Size([2])
    """
    settings = {"nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "detrend": detrend, "axis": axis}
    x, y = floating(x), floating(y)
    f, pxx = welch(x, fs, window, **settings)
    pyy, pxy = welch(y, fs, window, **settings)[1], csd(x, y, fs, window, **settings)[1]
    return f, (np.square(np.real(pxy)) + np.square(np.imag(pxy))) / pxx / pyy


@mirrors("signal.periodogram", derivative="that of csd, of one segment")
def periodogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = "boxcar",
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Any, Any]:
    """Frequencies and the power spectral density of the whole signal, differentiable in x and `window`.

    >>> import pullback
    >>> periodogram(pullback.tensor([1.0, -1.0, 1.0, -1.0]))[1]
    tensor([0., 0., 4.])
    """
    x = floating(x)
    f, _ = scipy.signal.periodogram(_one_signal(x, axis), fs, _given(window), nfft, detrend, return_onesided, scaling)
    n = x.shape[axis]
    nfft = n if nfft is None else int(nfft)
    if nfft < n:
        x = np.moveaxis(np.moveaxis(x, axis, -1)[..., :nfft], -1, axis)
    size = min(nfft, n)
    return f, welch(x, fs, window, size, 0, nfft, detrend, return_onesided, scaling, axis)[1]
