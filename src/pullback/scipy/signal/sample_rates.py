"""Other sample rates: by FFT, by polyphase filters, by leaving samples out."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from typing import Any

import numpy as np
import scipy.signal

from ... import errors
from ...autograd.function import Function
from ...ops.shape.axes import movedim
from ...ops.shape.joining import stack
from ...tensor.tensor import Tensor
from ..array_nodes import array_of, floating, tensor_of
from ..fft.fourier_transforms import fft, ifft, irfft, rfft
from ..mirror import mirrors
from ..user_functions import bare, plain_setting
from .convolving import fftconvolve
from .extending import extended, flipped
from .recursive_filters import filtfilt, lfilter, sosfilt, sosfiltfilt


def _sized(x: Any, n: int) -> Any:
    """The last axis cut or extended with zeros to n values."""
    missing = max(n - x.shape[-1], 0)
    return np.concatenate([x[..., :n], np.zeros((*x.shape[:-1], missing), x._data.dtype)], axis=-1)


class Upfirdn(Function):
    """``y[n] = sum(h[n down - m up] x[m])`` along the last axis."""

    @staticmethod
    def forward(up: int, down: int, h: Any, x: Any) -> Any:
        """SciPy's polyphase filter."""
        return tensor_of(scipy.signal.upfirdn(array_of(h), array_of(x), up, down))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the filter and the signal."""
        ctx.up, ctx.down, h, x = inputs
        ctx.kinds = [t._data.dtype.kind for t in (h, x)]
        ctx.save_for_backward(h, x)
        ctx.save_for_forward(h, x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """The flipped filter with up and down exchanged; for the filter, a correlation."""
        h, x = ctx.saved_tensors
        up, down, taps = ctx.up, ctx.down, len(h)
        grads: list[Any] = [None, None]
        if ctx.needs_input_grad[3]:
            shift = (1 - taps) % up
            turned = np.concatenate([np.zeros(shift, h._data.dtype), flipped(h, (-1,))])
            start = (taps - 1 + shift) // up
            grads[1] = _sized(Upfirdn.apply(down, up, turned, g)[..., start:], x.shape[-1])
        if ctx.needs_input_grad[2]:
            one = tensor_of(np.ones(1, x._data.dtype))
            wide, spread = Upfirdn.apply(up, 1, one, x), Upfirdn.apply(down, 1, one, g)
            lags = fftconvolve(spread, flipped(wide, (-1,)), axes=-1)[..., wide.shape[-1] - 1 :]
            grads[0] = np.sum(np.reshape(_sized(lags, taps), (-1, taps)), axis=0)
        real = [np.real(v) if v is not None and k != "c" else v for v, k in zip(grads, ctx.kinds, strict=True)]
        return None, None, *real

    @staticmethod
    def jvp(ctx: Any, _up: Any, _down: Any, th: Any, tx: Any) -> Any:
        """The product rule."""
        h, x = ctx.saved_tensors
        terms = [Upfirdn.apply(ctx.up, ctx.down, th, x)] if th is not None else []
        terms += [Upfirdn.apply(ctx.up, ctx.down, h, tx)] if tx is not None else []
        return sum(terms[1:], terms[0])

    @staticmethod
    def vmap(info: Any, in_dims: Any, up: int, down: int, h: Tensor, x: Tensor) -> Any:
        """One call for many signals, or one for each filter."""
        h, x = (t if d is None else movedim(t, d, 0) for t, d in zip((h, x), in_dims[2:], strict=True))
        if in_dims[2] is None:
            return Upfirdn.apply(up, down, h, x), 0
        xs = [x] * info.batch_size if in_dims[3] is None else x
        return stack([Upfirdn.apply(up, down, h[i], xs[i]) for i in range(info.batch_size)]), 0


_PADS = ("constant", "wrap", "edge", "symmetric", "reflect", "smooth", "line", "antisymmetric", "antireflect")
"""SciPy's modes of `upfirdn`."""

_BORDERS = {"constant": "constant", "wrap": "wrap", "edge": "nearest", "symmetric": "reflect", "reflect": "mirror"}


def _supported(what: str, mode: str, known: Collection[str]) -> None:
    if mode not in known:
        raise NotImplementedError(
            errors.message(f"signal.{what}={mode!r} has no derivatives here", do=f"give one of {', '.join(known)}")
        )


@mirrors(
    "signal.upfirdn",
    derivative="the flipped filter, up and down exchanged",
    limits="the modes smooth, line, antisymmetric and antireflect are not here",
)
def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: Any = 0) -> Any:
    """Upsample, filter, downsample; differentiable in the filter h and in x.

    >>> import pullback
    >>> upfirdn(pullback.tensor([1.0, 1.0]), [1.0, 2.0], up=2)
    tensor([1., 1., 2., 2.], dtype=pullback.float64)
    """
    (cval,) = plain_setting("signal.upfirdn", cval=cval)
    h, x = floating(h), floating(x)
    first = np.take(bare(x), range(1), axis=axis)
    # SciPy's checks; SciPy itself ends the process where it reflects a signal of one value
    scipy.signal.upfirdn(bare(h), first, up, down, axis, "constant" if mode in _PADS else mode, cval)
    _supported("upfirdn: mode", mode, _BORDERS)
    up, down = int(up), int(down)
    x = np.moveaxis(x, axis, -1)
    n, taps = x.shape[-1], len(h)
    if mode == "constant" and cval == 0:
        return np.moveaxis(Upfirdn.apply(up, down, h, x), -1, axis)
    more = down * -(-taps // (up * down))
    length = -(-((n - 1) * up + taps) // down)
    y = Upfirdn.apply(up, down, h, extended(x, -1, more, more, _BORDERS[mode], cval))
    start = more * up // down
    return np.moveaxis(y[..., start : start + length], -1, axis)


@mirrors("signal.resample", derivative="Fourier transforms, in recorded operations; in x, t and window")
def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    """A periodic signal at `num` places, by its Fourier coefficients; ``(y, new_t)`` if t is given.

    >>> import pullback
    >>> resample(pullback.tensor([1.0, 0.0, -1.0, 0.0]), 2).round()
    tensor([ 1., -1.])
    """
    x = floating(x)
    if domain not in ("time", "freq"):
        scipy.signal.resample(bare(x), num, None, axis, None, domain)
    x = np.moveaxis(x, axis, -1) if x.ndim > 1 else x
    n, real = x.shape[-1], domain == "time" and not x.is_complex()
    m = min(num, n)
    weights = _frequency_window(window, n)
    spectrum = rfft(x) if real else fft(x) if domain == "time" else x
    if weights is not None:
        if real:
            half = spectrum.shape[-1]
            mean = (weights[1:half] + np.flip(weights[n - half + 1 :], 0)) / 2
            weights = np.concatenate([weights[:1], mean])
        spectrum = spectrum * weights
    if real:
        keep = np.ones(m // 2 + 1)
        if m % 2 == 0 and num != n:
            keep[-1] = 2.0 if num < n else 0.5
        y = irfft(spectrum[..., : m // 2 + 1] * keep.astype(x._data.dtype) / (n / num), n=num)
    else:
        y = ifft(_resized_spectrum(spectrum, n, num) / (n / num), n=num)
    y = np.moveaxis(y, -1, axis) if y.ndim > 1 else y
    if t is None:
        return y
    t = floating(t)
    return y, t[0] + (t[1] - t[0]) * (n / num) * np.arange(num)


def _frequency_window(window: Any, n: int) -> Any:
    """The window as weights of the n frequencies, in the order of the FFT; None if there is none."""
    if window is None:
        return None
    if callable(window) and not isinstance(window, Tensor):
        return floating(window(np.fft.fftfreq(n)))
    if hasattr(window, "shape"):
        if tuple(window.shape) != (n,):
            raise ValueError(
                f"window.shape={tuple(window.shape)!r} != ({n},), i.e., window length is not equal to number of "
                "frequency bins!"
            )
        return floating(window)
    return tensor_of(np.fft.fftshift(scipy.signal.get_window(window, n)))


def _resized_spectrum(spectrum: Any, n: int, num: int) -> Any:
    """Frequencies left out, or zeros in between; the middle one of an even number is divided, or its halves added."""
    m = min(n, num)
    low, high = spectrum[..., : m // 2 + 1], spectrum[..., n - (m - m // 2 - 1) :] if m > 1 + m // 2 else None
    if m % 2 == 0 and num < n:
        low = np.concatenate([low[..., :-1], low[..., -1:] + spectrum[..., n - m // 2 : n - m // 2 + 1]], axis=-1)
        high = spectrum[..., n - (m // 2 - 1) :] if m > 2 else None
    parts = [low]
    if m % 2 == 0 and n < num:
        middle = low[..., -1:] / 2
        parts = [low[..., :-1], middle, _zeros(spectrum, num - m - 1), middle]
    elif num > m:
        parts.append(_zeros(spectrum, num - m))
    return np.concatenate(parts + ([high] if high is not None else []), axis=-1)


def _zeros(like: Any, count: int) -> Any:
    return np.zeros((*like.shape[:-1], count), like._data.dtype)


_BACKGROUNDS: dict[str, Any] = {"mean": np.mean, "median": np.median, "minimum": np.min, "maximum": np.max}


@mirrors(
    "signal.resample_poly", derivative="that of upfirdn; in x, and in a window that is a filter", limits="as upfirdn"
)
def resample_poly(
    x: Any,
    up: int,
    down: int,
    axis: int = 0,
    window: Any = ("kaiser", 5.0),
    padtype: str = "constant",
    cval: Any = None,
) -> Any:
    """A signal at ``up / down`` times its rate, by a polyphase filter; differentiable in x and in the filter.

    >>> import pullback
    >>> resample_poly(pullback.tensor([1.0, 2.0, 3.0, 2.0]), 1, 2, window=[1.0])
    tensor([1., 3.], dtype=pullback.float64)
    """
    x = floating(x)
    given = bare(floating(window)) if isinstance(window, (Tensor, list, np.ndarray)) else window
    first = np.take(bare(x), range(1), axis=axis)
    # SciPy's checks; SciPy itself ends the process where it reflects a signal of one value
    checked = "wrap" if padtype in _PADS and padtype != "constant" else padtype
    scipy.signal.resample_poly(first, up, down, axis, given, checked, cval)
    _supported("resample_poly: padtype", padtype, (*_BACKGROUNDS, *_BORDERS))
    common = math.gcd(int(up), int(down))
    up, down = int(up) // common, int(down) // common
    if up == down == 1:
        return x * 1
    n = x.shape[axis]
    length = -(-n * up // down)
    if given is not window or isinstance(window, (list, np.ndarray)):
        h = floating(window)
    else:
        rate = max(up, down)
        h = tensor_of(scipy.signal.firwin(20 * rate + 1, 1.0 / rate, window=window).astype(x._data.dtype))
    half = (len(h) - 1) // 2
    before = down - half % down
    start = (half + before) // down
    after = max((start + length - 1) * down + 1 - ((n - 1) * up + len(h) + before), 0)
    taps = np.concatenate([np.zeros(before, h._data.dtype), h * up, np.zeros(after, h._data.dtype)])
    back: Any = _BACKGROUNDS[padtype](x, axis=axis, keepdims=True) if padtype in _BACKGROUNDS else None
    mode = "constant" if back is not None else padtype
    y = upfirdn(taps, x if back is None else x - back, up, down, axis, mode, 0 if cval is None else cval)
    y = np.moveaxis(np.moveaxis(y, axis, -1)[..., start : start + length], -1, axis)
    return y if back is None else y + back


@mirrors("signal.decimate", derivative="that of the filters", limits="the filter is a constant")
def decimate(x: Any, q: Any, n: Any = None, ftype: Any = "iir", axis: int = -1, zero_phase: bool = True) -> Any:
    """Every q-th sample after a filter against aliasing, differentiable in x.

    >>> import pullback
    >>> decimate(pullback.tensor([1.0] * 40), 2).shape
    pullback.Size([20])
    """
    x, q = floating(x), operator.index(q)
    kind = x._data.dtype
    if isinstance(ftype, scipy.signal.dlti):
        poles, system = ftype.poles, ftype.to_tf()
        b, a = np.asarray(system.num, kind), np.asarray(system.den, kind)
        if len(poles) == 0:
            return _decimate_by_taps(b / a, x, q, axis, zero_phase)
        y = filtfilt(b, a, x, axis=axis) if zero_phase else lfilter(b, a, x, axis=axis)
    elif ftype == "fir":
        taps = 20 * q if n is None else operator.index(n)
        return _decimate_by_taps(
            scipy.signal.firwin(taps + 1, 1.0 / q, window="hamming").astype(kind), x, q, axis, zero_phase
        )
    elif ftype == "iir":
        order = 8 if n is None else operator.index(n)
        sos = scipy.signal.cheby1(order, 0.05, 0.8 / q, output="sos").astype(kind)
        y = sosfiltfilt(sos, x, axis=axis) if zero_phase else sosfilt(sos, x, axis=axis)
    else:
        raise ValueError("invalid ftype")
    return np.moveaxis(np.moveaxis(y, axis, -1)[..., ::q], -1, axis)


def _decimate_by_taps(b: Any, x: Any, q: int, axis: int, zero_phase: bool) -> Any:
    if zero_phase:
        return resample_poly(x, 1, q, axis=axis, window=b)
    length = -(-x.shape[axis] // q)
    return np.moveaxis(np.moveaxis(upfirdn(b, x, 1, q, axis), axis, -1)[..., :length], -1, axis)
