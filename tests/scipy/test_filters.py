"""`pullback.scipy.signal` against SciPy, and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal as theirs

import pullback
from pullback import func
from pullback.scipy import signal

from .grid_checks import OfTensors, check_adjoint, check_derivatives, complex_numbers, numbers, same, same_signatures

ours: Any = OfTensors(signal)
pytestmark = pytest.mark.filterwarnings("ignore:nperseg:UserWarning", "ignore:NOLA:UserWarning")

X = numbers(2, 60)


def test_arguments_are_scipys() -> None:
    same_signatures(ours, theirs)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve", "oaconvolve"])
def test_convolutions(name: str, mode: str) -> None:
    mine, scipys = getattr(ours, name), getattr(theirs, name)
    for n in (1, 2, 5, 8):
        for m in (1, 3, 4, 7):
            for a, b in ((numbers(n), numbers(m)), (complex_numbers(n), numbers(m)), (numbers(n), complex_numbers(m))):
                same(mine(a, b, mode), scipys(a, b, mode))
    f = lambda a, b: mine(a, b, mode)  # noqa: E731
    check_derivatives(f, complex_numbers(5), complex_numbers(3))
    check_derivatives(f, numbers(3, 2), numbers(4, 3) if mode != "valid" else numbers(2, 2))
    if name in ("convolve", "correlate"):
        for method in ("direct", "fft"):
            same(mine(numbers(3, 4), numbers(2, 2), mode, method), scipys(numbers(3, 4), numbers(2, 2), mode, method))
    else:
        same(mine(numbers(2, 5), numbers(1, 3), mode, 1), scipys(numbers(2, 5), numbers(1, 3), mode, 1))
        check_derivatives(lambda a, b: mine(a, b, mode, axes=1), numbers(2, 5), numbers(1, 3))


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_convolutions_of_images(name: str, mode: str, boundary: str) -> None:
    mine, scipys = getattr(ours, name), getattr(theirs, name)
    for a in ((1, 1), (2, 6), (5, 3)):
        for b in ((1, 1), (2, 3), (3, 4), (5, 2)):
            if mode == "valid" and not (a >= b and a[1] >= b[1]):
                continue
            x, y = complex_numbers(*a), numbers(*b)
            same(mine(x, y, mode, boundary, 0.7), scipys(x, y, mode, boundary, 0.7))
    check_derivatives(lambda a, b: mine(a, b, mode, boundary, 0.5), numbers(4, 3), complex_numbers(3, 2))


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize(("taps", "poles"), [(1, 1), (4, 1), (1, 3), (2, 5), (4, 3)])
def test_recursive_filters(taps: int, poles: int, n: int) -> None:
    for make in (numbers, complex_numbers):
        b, a, x = make(taps), 0.3 * make(poles), make(2, n, 3)
        a[0] = 2.0
        state = max(taps, poles) - 1
        z = make(2, state, 3)
        same(ours.lfilter(b, a, x, 1), theirs.lfilter(b, a, x, 1))
        for mine, scipys in zip(ours.lfilter(b, a, x, 1, z), theirs.lfilter(b, a, x, 1, z), strict=True):
            same(mine, scipys)
        check_derivatives(lambda b, a, x: ours.lfilter(b, a, x, 1), b, a, x[:, :, 0])
        if state:
            for i in (0, 1):
                f = lambda b, a, x, z, i=i: ours.lfilter(b, a, x, 1, z)[i]  # noqa: E731
                check_derivatives(f, b, a, x[:1, :, 0], z[:1, :, 0], second=make is numbers)


def test_a_batch_of_filters() -> None:
    b, a = theirs.butter(2, 0.3)
    stacked = [pullback.tensor(np.stack([v, v * 1.1])) for v in (b, a, X[0])]
    many = func.vmap(lambda b, a, x: ours.lfilter(b, a, x))(*stacked)
    for i, scale in enumerate((1.0, 1.1)):
        np.testing.assert_allclose(many[i].numpy(), theirs.lfilter(b * scale, a * scale, X[0] * scale), rtol=1e-12)


@pytest.mark.parametrize("padtype", ["odd", "even", "constant", None])
def test_filters_forwards_and_backwards(padtype: Any) -> None:
    b, a = theirs.butter(3, 0.3)
    sos = theirs.butter(5, 0.3, output="sos")
    for x, axis in ((X, -1), (X.T, 0)):
        same(ours.filtfilt(b, a, x, axis, padtype), theirs.filtfilt(b, a, x, axis, padtype))
        same(ours.sosfiltfilt(sos, x, axis, padtype), theirs.sosfiltfilt(sos, x, axis, padtype))
    check_derivatives(lambda b, a, x: ours.filtfilt(b, a, x, padtype=padtype, padlen=4), b, a, X[0, :8])
    same(ours.filtfilt(b, [1.0], X), theirs.filtfilt(b, [1.0], X))


def test_sections() -> None:
    b, a = theirs.butter(3, 0.3)
    sos, x = theirs.butter(5, 0.3, output="sos"), X[:, :8]
    same(ours.lfilter_zi(b, a), theirs.lfilter_zi(b, a))
    same(ours.sosfilt_zi(sos), theirs.sosfilt_zi(sos))
    same(ours.sosfilt(sos, x), theirs.sosfilt(sos, x))
    zi = numbers(3, 2, 2)
    for mine, scipys in zip(ours.sosfilt(sos, x, zi=zi), theirs.sosfilt(sos, x, zi=zi), strict=True):
        same(mine, scipys)
    check_derivatives(ours.lfilter_zi, b, a)

    def free(s: Any, x: Any, z: Any) -> Any:  # a section must have a 1 in its fourth place
        one = np.ones((len(s), 1))
        return ours.sosfilt(np.concatenate([s[:, :3], one, s[:, 3:]], axis=1), x, zi=z)[0]

    check_derivatives(free, sos[:, [0, 1, 2, 4, 5]], x[:, :4], zi)


def test_polynomial_division() -> None:
    u, d = complex_numbers(6), complex_numbers(3)
    for i in (0, 1):
        same(ours.deconvolve(u, d)[i], theirs.deconvolve(u, d)[i])
        check_derivatives(lambda u, d, i=i: ours.deconvolve(u, d)[i], u, d)


@pytest.mark.parametrize("mode", ["interp", "mirror", "constant", "nearest", "wrap"])
@pytest.mark.parametrize(("window", "order"), [(3, 1), (5, 2), (4, 2), (11, 3)])
def test_savgol_filter(window: int, order: int, mode: str) -> None:
    x = X[:, :11]
    for deriv in (0, 1):
        args = (window, order, deriv, 0.5)
        same(ours.savgol_filter(x, *args, -1, mode, 0.4), theirs.savgol_filter(x, *args, -1, mode, 0.4), 1e-10)
        same(ours.savgol_filter(x.T, *args, 0, mode, 0.4), theirs.savgol_filter(x.T, *args, 0, mode, 0.4), 1e-10)
    check_derivatives(lambda x: ours.savgol_filter(x, window, order, mode=mode), x[:1])


def test_trends_and_analytic_signals() -> None:
    x = X[:, :9]
    for kind in ("linear", "constant"):
        same(ours.detrend(x, 1, kind), theirs.detrend(x, 1, kind))
        check_derivatives(lambda x, kind=kind: ours.detrend(x, 1, kind), x)
    check_adjoint(lambda x: ours.detrend(x, 0, bp=[2]), lambda x: theirs.detrend(x, 0, bp=[2]), complex_numbers(6, 2))
    for n in (None, 8, 9, 15):
        same(ours.hilbert(x, n, 1), theirs.hilbert(x, n, 1))
        check_derivatives(lambda x, n=n: ours.hilbert(x, n), x)


@pytest.mark.parametrize("num", [1, 2, 3, 5, 6, 7, 12])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_resample(n: int, num: int) -> None:
    for x in (X[:, :n], complex_numbers(2, n)):
        for window in (None, numbers(n), "hann"):
            for domain in ("time", "freq"):
                given = {"axis": 1, "window": window, "domain": domain}
                same(ours.resample(x, num, **given), theirs.resample(x, num, **given))
    check_derivatives(lambda x, w: ours.resample(x, num, window=w), X[0, :n], numbers(n))


@pytest.mark.parametrize(("up", "down"), [(1, 1), (2, 3), (3, 2), (1, 4), (5, 1)])
def test_polyphase_filters(up: int, down: int) -> None:
    for taps in (1, 2, 8):
        for n in (1, 2, 6):
            h, x = numbers(taps), complex_numbers(2, n)
            same(ours.upfirdn(h, x, up, down), theirs.upfirdn(h, x, up, down))
            for mode in ("wrap", "edge", "symmetric", "constant", *["reflect"] * (n > 1)):  # SciPy crashes for n = 1
                args = (h, x.real, up, down, -1, mode, 0.3)
                same(ours.upfirdn(*args), theirs.upfirdn(*args))
    check_derivatives(lambda h, x: ours.upfirdn(h, x, up, down), complex_numbers(4), numbers(2, 5))
    for padtype in ("constant", "mean", "median", "minimum", "maximum", "edge"):
        same(ours.resample_poly(X, up, down, 1, padtype=padtype), theirs.resample_poly(X, up, down, 1, padtype=padtype))
    h = numbers(7)
    same(ours.resample_poly(X.T, up, down, window=h), theirs.resample_poly(X.T, up, down, window=h))
    check_derivatives(lambda x, h: ours.resample_poly(x, up, down, window=h), X[0, :8], h)


FILTERS: list[Any] = ["iir", "fir", theirs.dlti([1.0], [1.0, 0.3]), theirs.dlti([1.0, 0.3], [1.0])]


@pytest.mark.parametrize("zero_phase", [True, False])
@pytest.mark.parametrize("kind", FILTERS, ids=["iir", "fir", "poles", "taps"])
def test_decimate(kind: Any, zero_phase: bool) -> None:
    f = lambda x, axis=-1: ours.decimate(x, 3, ftype=kind, zero_phase=zero_phase, axis=axis)  # noqa: E731
    same(f(X), theirs.decimate(X, 3, ftype=kind, zero_phase=zero_phase))
    same(f(X.T, 0), theirs.decimate(X.T, 3, ftype=kind, zero_phase=zero_phase, axis=0))
    check_adjoint(f, lambda x: theirs.decimate(x, 3, ftype=kind, zero_phase=zero_phase), X)


STFTS: list[dict[str, Any]] = [
    {},
    {"nperseg": 9, "noverlap": 3},
    {"nperseg": 8, "nfft": 12, "detrend": "linear", "boundary": "odd"},
    {"nperseg": 8, "boundary": None, "padded": False, "scaling": "psd"},
    {"nperseg": 8, "return_onesided": False, "boundary": "even"},
    {"window": np.array([1.0, 2.0, 3.0, 2.0, 1.5, 1.0, 0.5]), "nperseg": None, "boundary": "constant"},
]


@pytest.mark.parametrize("given", STFTS, ids=str)
def test_short_time_transforms(given: dict[str, Any]) -> None:
    for x, axis in ((X, -1), (X, 1), (X.T, 0), (X.T, -2)):
        mine, scipys = (m.stft(x, fs=2.0, axis=axis, **given) for m in (ours, theirs))
        same(mine[2], scipys[2])
        assert np.array_equal(mine[0], scipys[0])
        assert np.array_equal(mine[1], scipys[1])
    back = {k: v for k, v in given.items() if k in ("nperseg", "noverlap", "nfft", "window")}
    if "window" in given:
        back["nperseg"] = len(given["window"])
    back["input_onesided"] = given.get("return_onesided", True)
    back["boundary"] = given.get("boundary", "zeros") is not None
    z = theirs.stft(X, fs=2.0, **given)[2]
    same(ours.istft(z, fs=2.0, **back)[1], theirs.istft(z, fs=2.0, **back)[1])
    moved = np.moveaxis(z, -1, 0)
    places = {"time_axis": 0, "freq_axis": -1}
    same(ours.istft(moved, fs=2.0, **back, **places)[1], theirs.istft(moved, fs=2.0, **back, **places)[1])
    check_adjoint(lambda x: ours.stft(x, **given)[2], lambda x: theirs.stft(x, **given)[2], X)
    check_adjoint(lambda z: ours.istft(z, **back)[1], lambda z: theirs.istft(z, **back)[1], z)


def test_derivatives_by_the_window() -> None:
    window = np.array([1.0, 2.0, 1.5, 0.5])
    check_derivatives(lambda x, w: ours.stft(x, window=w, nperseg=None)[2], X[0, :9], window)
    z = theirs.stft(X[0, :9], nperseg=4)[2]
    check_derivatives(lambda z, w: ours.istft(z, window=w)[1], z, window)


SPECTRA: list[dict[str, Any]] = [
    {},
    {"nperseg": 9, "noverlap": 3, "average": "median"},
    {"nperseg": 8, "nfft": 12, "detrend": "linear", "scaling": "spectrum"},
    {"nperseg": 8, "return_onesided": False},
]


@pytest.mark.parametrize("given", SPECTRA, ids=str)
def test_spectra(given: dict[str, Any]) -> None:
    same(ours.welch(X, **given)[1], theirs.welch(X, **given)[1])
    same(ours.welch(X.T, axis=0, **given)[1], theirs.welch(X.T, axis=0, **given)[1])
    same(ours.csd(X, X[:, :40], **given)[1], theirs.csd(X, X[:, :40], **given)[1])


def test_more_spectra() -> None:
    for given in ({}, {"nfft": 32}, {"nfft": 100}, {"window": "hann"}):
        same(ours.periodogram(X, **given)[1], theirs.periodogram(X, **given)[1])
    same(ours.coherence(X, X**2, nperseg=9)[1], theirs.coherence(X, X**2, nperseg=9)[1])
    x, y = X[0, :9], X[1, :9]
    check_derivatives(lambda x, y: ours.csd(x, y, nperseg=4)[1], x, y)
    check_derivatives(lambda x, y: ours.coherence(x, y, nperseg=4)[1], x, y)
    check_derivatives(lambda x: ours.periodogram(x)[1], x)


def test_bad_input_is_scipys() -> None:
    with pytest.raises(ValueError, match="a\\[0\\] == 0"):
        ours.lfilter([1.0], [0.0, 1.0], X)
    with pytest.raises(ValueError, match="greater than padlen"):
        ours.filtfilt([1.0, 2.0], [1.0, 0.5], [1.0, 2.0])
    with pytest.raises(ValueError, match="mode"):
        ours.convolve([1.0], [1.0], "spam")
    with pytest.raises(ValueError, match="same dimensionality"):
        ours.fftconvolve([1.0], [[1.0]])
    with pytest.raises(ValueError, match="at least as large"):
        ours.convolve2d(numbers(2, 5), numbers(5, 2), "valid")
    with pytest.raises(ValueError, match="shape for parameter zi"):
        ours.lfilter([1.0, 2.0], [1.0], X, zi=numbers(3, 9))
    with pytest.raises(ValueError, match="sos"):
        ours.sosfilt(numbers(2, 5), X)
    with pytest.raises(ValueError, match="polyorder"):
        ours.savgol_filter(X, 3, 7)
    with pytest.raises(NotImplementedError, match="gust"):
        ours.filtfilt([1.0, 2.0], [1.0], X, method="gust")
    with pytest.raises(TypeError, match="setting"):
        ours.savgol_filter(X, 5, 2, cval=pullback.tensor(1.0, requires_grad=True))


def test_precisions_and_empty_signals() -> None:
    x = X.astype(np.float32)
    b = np.float32([1.0, 0.5])
    same(ours.lfilter(b, b, x), theirs.lfilter(b, b, x), 1e-5)
    same(ours.savgol_filter(x, 5, 2), theirs.savgol_filter(x, 5, 2), 1e-5)
    same(ours.upfirdn(b, x, 2, 3), theirs.upfirdn(b, x, 2, 3), 1e-5)
    same(ours.convolve(x, x[:, :3]), theirs.convolve(x, x[:, :3]), 1e-5)
    with pytest.raises(ValueError, match="empty"):
        ours.convolve([], [1.0], method="direct")
    assert ours.convolve([1, 2], pullback.tensor([1, 1])).tolist() == [1.0, 3.0, 2.0]
    nan = np.array([1.0, np.nan, 1.0, 1.0, 1.0])
    same(ours.savgol_filter(nan, 3, 1, mode="nearest"), theirs.savgol_filter(nan, 3, 1, mode="nearest"))


def test_refusals_and_designs() -> None:
    with pytest.raises(AttributeError, match="positions"):
        ours.find_peaks  # noqa: B018 - the access raises
    with pytest.raises(AttributeError, match="median_filter"):
        ours.medfilt  # noqa: B018
    with pytest.raises(AttributeError, match="class Wiener"):
        ours.wiener  # noqa: B018
    assert ours.butter is theirs.butter


def test_float32_stays_float32() -> None:
    b, a, sos = [1.0, 0.5], [1.0, -0.4, 0.1], theirs.butter(3, 0.3, output="sos")
    x, z = numbers(2, 30), numbers(2, 2)
    calls = {
        "lfilter": lambda m, b, a, x, z: m.lfilter(b, a, x, zi=z)[1],
        "lfilter_zi": lambda m, b, a, x, z: m.lfilter_zi(b, a),
        "filtfilt": lambda m, b, a, x, z: m.filtfilt(b, a, x),
        "decimate": lambda m, b, a, x, z: m.decimate(x, 2, n=1),
        "sosfilt": lambda m, b, a, x, z: m.sosfilt(sos.astype(np.float32), x),
    }
    for call in calls.values():
        given = [np.asarray(v, np.float32) for v in (b, a, x, z)]
        tensors = [pullback.tensor(v, requires_grad=True) for v in given]
        found = call(ours, *tensors)
        same(found, call(theirs, *given), rtol=1e-4)
        found.sum().backward()
        assert all(t.grad is None or t.grad.dtype == pullback.float32 for t in tensors)


def test_a_filter_that_divides_by_zero_is_refused() -> None:
    for a in ([0.0], 0.0, pullback.zeros(1, requires_grad=True)):
        with pytest.raises(ValueError, match=r"signal.lfilter: a\[0\] is 0"):
            ours.lfilter([1.0, 1.0], a, X)
        with pytest.raises(ValueError, match=r"signal.lfilter_zi: a\[0\] is 0"):
            ours.lfilter_zi([1.0, 1.0], a)


def test_an_axis_that_is_not_there_is_scipys_error() -> None:
    for m in (ours, theirs):
        with pytest.raises(ValueError, match="selected axis is out of range"):
            m.lfilter([1.0], [1.0, 0.5], X, axis=3)


def test_sections_may_lie_in_memory_in_any_order() -> None:
    sos, x = theirs.butter(4, 0.3, output="sos"), numbers(40)
    turned = pullback.tensor(np.ascontiguousarray(sos.T)).T
    for name in ("sosfilt", "sosfiltfilt"):
        same(getattr(ours, name)(turned, x), getattr(theirs, name)(sos, x))
    np.testing.assert_allclose(ours.sosfilt_zi(turned).numpy(), theirs.sosfilt_zi(sos))
    tail = pullback.tensor(sos[:, [0, 1, 2, 4, 5]], requires_grad=True)

    def filtered(tail: Any) -> Any:
        return ours.sosfilt(np.concatenate([tail[:, :3], np.ones_like(tail[:, :1]), tail[:, 3:]], axis=1), x)

    batch = pullback.stack([tail, tail * 1.01], -1)
    whole = func.vmap(filtered, in_dims=-1)(batch)
    for i in range(2):
        np.testing.assert_allclose(whole[i].detach().numpy(), filtered(batch[..., i]).detach().numpy(), rtol=1e-9)


def test_borders_without_derivatives_are_refused_before_scipy_meets_them() -> None:
    # SciPy ends the process where "antireflect" meets a signal of one value
    for mode in ("smooth", "line", "antisymmetric", "antireflect"):
        for x in (numbers(9), numbers(1)):
            with pytest.raises(NotImplementedError, match=f"padtype='{mode}' has no derivatives"):
                ours.resample_poly(x, 2, 3, padtype=mode)
            with pytest.raises(NotImplementedError, match=f"mode='{mode}' has no derivatives"):
                ours.upfirdn([1.0, 1.0], x, 2, 3, mode=mode)
    with pytest.raises(ValueError, match="cval has no effect"):
        ours.resample_poly(numbers(9), 2, 3, padtype="reflect", cval=1.0)
    same(
        ours.resample_poly(numbers(9), 2, 3, padtype="median"), theirs.resample_poly(numbers(9), 2, 3, padtype="median")
    )
