"""Spectra that change in time: `stft`, the Fourier transform of overlapping windows of a signal, and its inverse.

Both combine a transform of `fft.py` with cutting a signal into frames. The transpose of cutting is to add the frames up
where they overlap.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...table.entry import composite, linear
from ...table.samples import A, S, Sample, V
from ...tensor import dtypes
from ...tensor.arrays import zeros_beside
from ...tensor.protocol import on_arrays
from ...tensor.tensor import Tensor, wrap
from ..elementwise.complex import view_as_real
from ..elementwise.value_checks import check_values
from ..make.conversion import to
from ..shape.joining import cat
from .fft import _c2c, _c2r, _r2c, _resize

# Frames ---------------------------------------------------------------------------------------------------------------


@linear(
    method=False,
    batch="leading",
    input=lambda g, hop, input_shape: on(_overlap_add, g, hop, input_shape[-1]),
)
def _frames(input: Any, size: int, hop: int) -> Any:
    """The pieces of length `size`, one every `hop` elements of the last axis, along a new axis before it."""
    return np.copy(np.lib.stride_tricks.sliding_window_view(input, size, -1)[..., ::hop, :])


@linear(
    method=False,
    batch="leading",
    input=lambda g, hop, input_shape: on(_frames, g, input_shape[-1], hop),
)
@on_arrays
def _overlap_add(input: Any, hop: int, length: int) -> Any:
    """A signal of `length` with each frame added at its place: the transpose of `_frames`."""
    *lead, count, size = input.shape
    out = zeros_beside(input, (*lead, length))
    pieces = -(-size // hop)
    if count <= pieces:
        for i in range(count):
            out[..., i * hop : i * hop + size] += input[..., i, :]
        return out
    # all first pieces of length hop at once, then all second ones, which lie one piece further on, and so on
    whole = zeros_beside(input, (*lead, count + pieces - 1, hop))
    for j in range(pieces):
        piece = input[..., j * hop : (j + 1) * hop]
        whole[..., j : j + count, : piece.shape[-1]] += piece
    flat = np.reshape(whole, (*lead, -1))
    common = min(length, flat.shape[-1])
    out[..., :common] = flat[..., :common]
    return out


def _refused(name: str, expected: str, found: Any) -> RuntimeError:
    return RuntimeError(errors.message(f"{name}()", expected=expected, found=str(found)))


def _lengths(name: str, n_fft: Any, hop_length: Any, win_length: Any, window: Any) -> tuple[int, int]:
    """The distance between windows and their length, checked, with torch's defaults."""
    for what, value in (("n_fft", n_fft), ("hop_length", hop_length), ("win_length", win_length)):
        if value is None and what != "n_fft":
            continue
        if isinstance(value, float) or not hasattr(value, "__index__"):
            raise TypeError(errors.message(f"{name}()", expected=f"{what} to be an integer", found=repr(value)))
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if hop <= 0:
        raise _refused(name, "hop_length > 0", hop)
    if not 0 < width <= n_fft:
        raise _refused(name, f"0 < win_length <= n_fft = {n_fft}", width)
    if window is not None:
        if not isinstance(window, Tensor):
            raise TypeError(
                errors.message(f"{name}()", expected="window to be a Tensor", found=errors.describe(window))
            )
        if window._data.shape != (width,):
            raise _refused(name, f"a 1-d window of {width} elements, as win_length says", list(window._data.shape))
    return hop, width


def _centred(window: Tensor, width: int, n_fft: int) -> Tensor:
    """The window with zeros before and after it, `n_fft` elements in total."""
    if width == n_fft:
        return window
    left = (n_fft - width) // 2
    return _zeros_around(window, left, n_fft - width - left)


def _zeros_around(input: Tensor, before: int, behind: int) -> Tensor:
    shape = input._data.shape[:-1]
    parts = [wrap(zeros_beside(input._data, (*shape, n))) for n in (before, behind)]
    return cat([parts[0], input, parts[1]], -1)


def _warn_of_no_window() -> None:
    warnings.warn(
        "A window was not provided. A rectangular window will be applied, which is known to cause spectral leakage. "
        "Other windows such as pullback.hann_window or pullback.hamming_window are recommended.",
        stacklevel=errors.callers_level(),
    )


# The transform --------------------------------------------------------------------------------------------------------

_PADDINGS = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _padded(input: Tensor, pad: int, mode: str) -> Tensor:
    """The signal with `pad` more elements at either end, as `mode` says."""
    n = input._data.shape[-1] if input._data.ndim else 1
    if mode not in _PADDINGS:
        raise NotImplementedError(
            errors.message("stft()", expected=f"pad_mode to be one of {', '.join(_PADDINGS)}", found=repr(mode))
        )
    if mode == "constant":
        return _zeros_around(input, pad, pad)
    if input._data.dtype.kind == "b":
        raise NotImplementedError(errors.message(f"stft(): pad_mode={mode!r} is not implemented for bool"))
    if not n or (mode == "reflect" and pad >= n) or (mode == "circular" and pad > n):
        raise _refused(
            "stft", f"a signal longer than what pad_mode={mode!r} takes of it, {pad} elements", f"length {n}"
        )
    return input[..., np.pad(np.arange(n), pad, _PADDINGS[mode])]  # type: ignore[call-overload]


def _window(n: int, **how: Any) -> Any:
    return A(n, domain="positive", **how)


def _stft_samples() -> list[Sample]:
    yes = {"return_complex": True}
    return [
        S(A(10), 4, window=_window(4), **yes),
        S(A(2, 10), 4, 2, window=_window(4), **yes),
        S(A(9), 5, 3, 4, _window(4), **yes),
        S(A(9), 5, 3, 4, _window(4), False, **yes),
        S(A(8), 4, 1, 4, _window(4), True, "constant", True, True, True),
        *(
            S(A(8), 4, 3, 3, _window(3), True, mode, return_complex=True)
            for mode in ("reflect", "replicate", "circular")
        ),
        S(A(8), 4, window=_window(4), onesided=False, **yes),
        S(A(8), 5, window=_window(5, dtype="complex128"), **yes),
        S(A(8), 6, 2, 4, _window(4), center=False, align_to_window=True, **yes),
        S(A(8), 6, 2, 4, _window(4), center=False, align_to_window=False, normalized=True, **yes),
        S(A(8, layout="step"), 4, window=_window(4, layout="readonly"), **yes),
        S(A(4), 4, window=_window(4), center=False, **yes),
        S(A(8), 1, 1, window=_window(1), **yes),
    ]


@composite(
    truths="center",
    out=False,
    samples=_stft_samples,
    refused=lambda: [
        S(A(10), 4, window=_window(4)),
        S(A(10, dtype="complex64"), 4, window=_window(4), onesided=True),
        S(A(10), 4, window=_window(3), return_complex=True),
        S(A(10), 4, window=A(4, 1), return_complex=True),
        S(A(10), 4, win_length=5, window=_window(5), return_complex=True),
        S(A(10), 4, win_length=0, window=_window(0), return_complex=True),
        *(S(A(10), n, window=_window(4), return_complex=True) for n in (0, -1, 4.5)),
        *(S(A(10), 4, hop, window=_window(4), return_complex=True) for hop in (0, -1)),
        S(A(10), 11, window=_window(11), center=False, return_complex=True),
        S(A(10), 4, window=_window(4), pad_mode="bad", return_complex=True),
        S(A(2), 4, window=_window(4), return_complex=True),
        S(A(1), 4, window=_window(4), pad_mode="circular", return_complex=True),
        S(A(0), 4, window=_window(4), return_complex=True),
        S(A(), 4, window=_window(4), return_complex=True),
        S(A(2, 3, 10), 4, window=_window(4), return_complex=True),
        S(A(10, dtype="int64"), 4, window=_window(4), return_complex=True),
        S(A(10), 4, window=[1.0] * 4, return_complex=True),
        S(A(10), 4, window=_window(4), align_to_window=True, return_complex=True),
        S(A(10)),
    ],
)
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: Any = None,
) -> Tensor:
    """``X[k, t] = sum_j window[j] x[t hop + j] exp(-2 pi i j k / n_fft)``: the spectrum of a signal over time.

    Args:
        input: of shape ``(L,)`` or ``(B, L)``, real or complex.
        n_fft: the length of a frame, and of its Fourier transform.
        hop_length: the distance between frames (``n_fft // 4``).
        win_length: the length of the window (`n_fft`), which lies in the middle of a frame.
        window: the factor of each frame (ones).
        center: whether frame t has its middle, not its beginning, at ``t * hop_length``; the signal is then padded at
            both ends as `pad_mode` says: "reflect", "constant" (zeros), "replicate" or "circular".
        normalized: divide by the root of `n_fft`.
        onesided: only the ``n_fft // 2 + 1`` frequencies that determine the others; not for complex numbers.
        return_complex: True for complex numbers; False, deprecated in torch, for pairs of real ones. Must be given if
            the signal is real.
        align_to_window: with ``center=False``, whether the window of the first frame, not the frame itself, is at the
        beginning.

    Returns a tensor of shape ``(B, frequencies, frames)``, without the first axis if the signal has none.

    >>> import pullback
    >>> pullback.stft(pullback.ones(8), 4, window=pullback.ones(4), return_complex=True).abs()[:, :3]
    tensor([[4., 4., 4.],
            [0., 0., 0.],
            [0., 0., 0.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.stft.html.
    """
    is_complex = input.is_complex() or (isinstance(window, Tensor) and window.is_complex())
    if return_complex is None and not is_complex:
        raise _refused("stft", "return_complex=True (or False) for a real signal", "None")
    if center and align_to_window is not None:
        raise _refused("stft", "align_to_window with center=False only", "center=True")
    hop, width = _lengths("stft", n_fft, hop_length, win_length, window)
    if window is None:
        _warn_of_no_window()
    if center:
        input = _padded(input, n_fft // 2, pad_mode)
    _check_signal(input, n_fft, width if align_to_window else n_fft)
    if onesided and is_complex:
        raise _refused("stft", "onesided=False where signal or window are complex", "onesided=True")
    if align_to_window:
        left = (n_fft - width) // 2
        input = _zeros_around(input, left, n_fft - width - left)
    frames = _frames(input, n_fft, hop)
    if window is not None or width < n_fft:
        frames = frames * _centred(_ones(width, input) if window is None else window, width, n_fft)
    axes, scale = (frames._data.ndim - 1,), "ortho" if normalized else "backward"
    one = not is_complex if onesided is None else onesided
    found = _r2c(frames, axes, scale) if one else _c2c(frames, axes, scale, False)
    found = found.transpose(-1, -2)
    return found if return_complex or return_complex is None else _as_pairs(found)


def _ones(width: int, like: Tensor) -> Tensor:
    return wrap(np.ones(width, dtypes.real_of(like._data.dtype)))


def _as_pairs(found: Tensor) -> Tensor:
    warnings.warn(
        "stft with return_complex=False is deprecated; use view_as_real(stft(...)).", stacklevel=errors.callers_level()
    )
    return view_as_real(found)


def _check_signal(input: Tensor, n_fft: int, least: int) -> None:
    data = input._data
    if data.dtype.kind not in "fcV" or data.dtype.itemsize < 4:
        raise _refused("stft", "a tensor of floating point or complex values", errors.describe(input))
    if data.ndim not in (1, 2):
        raise _refused("stft", "a 1D or 2D tensor", f"{data.ndim}D")
    if n_fft <= 0 or least > data.shape[-1]:
        raise _refused("stft", f"0 < n_fft <= {data.shape[-1]}, the length of the (padded) signal", n_fft)


# The inverse ----------------------------------------------------------------------------------------------------------


def _istft_samples() -> list[Sample]:
    def c(*shape: int, **how: Any) -> Any:
        return A(*shape, dtype="complex128", **how)

    window = A(4, domain="positive", dtype="float64")

    return [
        S(c(3, 6), 4, window=window),
        S(c(2, 3, 6), 4, 2, window=window),
        S(c(3, 5), 5, 3, 4, window),
        S(c(3, 5), 4, 2, 4, window, False),
        S(c(3, 5), 4, 2, 4, window, True, True, True, 7),
        S(c(3, 5), 4, 2, window=window, length=3),
        S(c(4, 5), 4, 2, window=window, onesided=False),
        S(c(4, 5), 4, 2, window=window),
        S(c(4, 5), 4, 2, window=window, onesided=False, return_complex=True),
        S(c(4, 5), 4, 2, window=_window(4, dtype="complex128"), onesided=False, return_complex=True),
        S(c(3, 2), 4, window=window),
        S(c(3, 6, layout="T"), 4, 1, window=window),
        S(A(3, 6, dtype="complex64"), 4, window=_window(4, dtype="float32")),
    ]


@composite(
    out=False,
    samples=_istft_samples,
    refused=lambda: [
        S(A(3, 6), 4, window=_window(4)),
        S(A(3, 6, 2), 4, window=_window(4)),
        *(S(A(*shape, dtype="complex64"), 4, window=_window(4)) for shape in ((2, 2, 3, 6), (3,), (2, 6), (3, 0))),
        S(A(3, 6, dtype="complex64"), 4, window=_window(4), onesided=False),
        S(A(4, 6, dtype="complex64"), 4, window=_window(4), onesided=True),
        S(A(3, 6, dtype="complex64"), 4, window=_window(4), return_complex=True),
        S(A(4, 6, dtype="complex64"), 4, window=_window(4, dtype="complex64"), onesided=False),
        *(S(A(3, 6, dtype="complex64"), 4, hop, window=_window(4)) for hop in (0, -1, 5)),
        S(A(3, 6, dtype="complex64"), 4, win_length=5, window=_window(5)),
        S(A(3, 6, dtype="complex64"), 4, window=_window(3)),
        S(A(3, 6, dtype="complex64"), 0, window=_window(4)),
        S(A(3, 6, dtype="complex64"), 4, 4, 3, _window(3)),
        S(A(3, 6, dtype="complex64"), 4, window=V([0.0] * 4)),
        S(A(3, 6, dtype="complex64"), 4.5),
        S(A(3, 6, dtype="complex64")),
    ],
)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose `stft` with the same arguments is `input`, or the least-squares one if there is no such signal.

    The frames are transformed back, windowed and added up, and divided by the sum of the squared windows. RuntimeError
    if that sum is 0 anywhere. length: the length of the result, which is cut off or padded with zeros.

    >>> import pullback
    >>> x, window = pullback.arange(8.0), pullback.hann_window(4)
    >>> X = pullback.stft(x, 4, window=window, return_complex=True)
    >>> pullback.allclose(pullback.istft(X, 4, window=window, length=8), x, atol=1e-6)
    True

    See https://docs.pytorch.org/docs/stable/generated/torch.istft.html.
    """
    if not input.is_complex():
        raise _refused("istft", "a complex tensor, as of stft with return_complex=True", errors.describe(input))
    hop, width = _lengths("istft", n_fft, hop_length, win_length, window)
    one = _check_spectrum(input, n_fft, hop, width, onesided)
    if window is None:
        _warn_of_no_window()
        window = _ones(width, input)
    if return_complex and one:
        raise _refused("istft", "onesided=False for a complex result", "onesided=True")
    if not return_complex and window.is_complex():
        raise _refused("istft", "return_complex=True for a complex window", "False")
    if window._data.dtype.kind not in "fcV":
        window = to(window, dtypes.real_of(input._data.dtype))
    window = _centred(window, width, n_fft)
    frames = input.transpose(-1, -2)
    axes, scale = (frames._data.ndim - 1,), "ortho" if normalized else "backward"
    if return_complex:
        frames = _c2c(frames, axes, scale, True)
    else:
        frames = _c2r(_resize(frames, axes, (n_fft // 2 + 1,)), axes, scale, n_fft)
    count = frames._data.shape[-2]
    whole = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - start
    signal = _overlap_add(frames * window, hop, whole)[..., start:end]
    envelope = _overlap_add((window * window).expand(count, n_fft), hop, whole)[start:end]
    found = signal / check_values(_check_cover, envelope)
    if end > whole:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            stacklevel=errors.callers_level(),
        )
        found = _zeros_around(found, 0, end - whole)
    return found


def _check_spectrum(input: Tensor, n_fft: int, hop: int, width: int, onesided: bool | None) -> bool:
    """Whether the spectrum is one-sided; an error if it does not belong to frames of this length."""
    shape = input._data.shape
    if len(shape) == 1:
        raise IndexError("istft(): Dimension out of range: expected a tensor with 2 or 3 dimensions")
    if len(shape) not in (2, 3) or 0 in shape:
        raise _refused("istft", "a tensor of 2 or 3 dimensions with elements", f"shape {list(shape)}")
    one = shape[-2] != n_fft if onesided is None else onesided
    wanted = n_fft // 2 + 1 if one else n_fft
    if shape[-2] != wanted:
        raise _refused("istft", f"{wanted} frequencies, as n_fft={n_fft} and onesided={one} say", shape[-2])
    if hop > width:
        raise _refused("istft", f"hop_length <= win_length = {width}", hop)
    return one


def _check_cover(envelope: Any) -> None:
    """Refuse a sum of squared windows that is 0 anywhere, since the signal is divided by it."""
    if not envelope.size or np.abs(envelope).min() < 1e-11:
        raise RuntimeError(
            errors.message(
                "istft(): window overlap add min is 0",
                expected="windows that cover each element of the signal",
                found="an element that none covers",
                do="use a window without zeros at its ends, or center=True",
            )
        )
