"""Fourier transforms beyond what their entries are tested for: NumPy's names, adjoints, warnings, memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.func import vmap
from pullback.ops.signal import fft as transforms
from tests.oracle import array_of


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


NAMES = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift ifftshift".split()
CALLS: dict[str, list[Callable[[Any, Any], Any]]] = {
    "1": [
        lambda f, a: f(a),
        lambda f, a: f(a, 3),
        lambda f, a: f(a, n=6, axis=0),
        lambda f, a: f(a, None, -2, "ortho"),
        lambda f, a: f(a, norm="forward"),
    ],
    "2": [
        lambda f, a: f(a),
        lambda f, a: f(a, (3, 5), (-2, -1)),
        lambda f, a: f(a, s=(2, 2), axes=(0, 1)),
        lambda f, a: f(a, axes=(1, 0), norm="ortho"),
    ],
    "shift": [lambda f, a: f(a), lambda f, a: f(a, 0), lambda f, a: f(a, axes=(0, 1))],
}


@pytest.mark.parametrize("name", NAMES)
def test_numpys_functions_find_their_rules(name: str) -> None:
    function = getattr(np.fft, name)
    kind = "shift" if "shift" in name else "2" if name[-1] in "2n" else "1"
    rng = np.random.default_rng(1)
    real = name.startswith(("rfft", "ihfft"))
    for make in CALLS[kind]:
        a = rng.normal(size=(4, 5)) + (0 if real else 1j * rng.normal(size=(4, 5)))
        t = pullback.tensor(a, requires_grad=True)
        found = make(function, t)
        assert isinstance(found, pullback.Tensor)
        assert found.requires_grad
        np.testing.assert_allclose(array_of(found), make(function, a), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in (*NAMES, "hfft2", "hfftn", "ihfft2", "ihfftn") if "shift" not in n])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("shape", [(4, 5), (5, 4), (3, 6)])
def test_the_inverse_undoes_it_and_norms_share_the_factor(name: str, norm: str, shape: tuple[int, int]) -> None:
    inverse = {"fft": "ifft", "rfft": "irfft", "hfft": "ihfft"}
    base, tail = name.rstrip("2n"), name[len(name.rstrip("2n")) :]
    back = next((b if base == a else a) for a, b in inverse.items() if base in (a, b)) + tail
    rng = np.random.default_rng(2)
    size = shape if tail else shape[-1]
    if base in ("fft", "ifft"):
        x = pullback.tensor(rng.normal(size=shape) + 1j * rng.normal(size=shape))
        there = getattr(pullback.fft, name)(x, norm=norm)
        found = getattr(pullback.fft, back)(there, norm=norm)
    else:
        real, half = (name, back) if base in ("rfft", "ihfft") else (back, name)
        x = pullback.tensor(rng.normal(size=shape))
        found = getattr(pullback.fft, half)(getattr(pullback.fft, real)(x, norm=norm), size, norm=norm)
    np.testing.assert_allclose(array_of(found), array_of(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("given", [1, 3, 4, 7])
def test_parts_that_do_not_count_get_no_gradient(n: int, given: int) -> None:
    x = (pullback.randn(given, dtype=pullback.complex128) + 1).requires_grad_()
    pullback.fft.irfft(x, n).square().sum().backward()
    assert x.grad is not None
    used = n // 2 + 1
    assert x.grad[used:].abs().sum() == 0  # cut off
    assert x.grad[0].imag == 0
    if n % 2 == 0 and used <= given:
        assert abs(x.grad[used - 1].imag.item()) < 1e-12
    assert x.grad[:used].abs().min() > 1e-6


def test_an_adjoint_is_that_of_the_real_inner_product() -> None:
    rng = np.random.default_rng(3)
    for f in (
        lambda t: pullback.fft.rfft(t, 7),
        lambda t: pullback.fft.irfft(t, 7),
        lambda t: pullback.fft.hfft(t, 6, norm="ortho"),
        lambda t: pullback.fft.ihfft(t, 4),
        lambda t: pullback.fft.fftn(t, (3, 9)),
    ):
        x = pullback.tensor(rng.normal(size=(2, 5)), requires_grad=True)
        y = f(x)
        u = pullback.tensor(rng.normal(size=y.shape) + (1j * rng.normal(size=y.shape) if y.is_complex() else 0))
        (g,) = pullback.autograd.grad(y, x, u)
        left = np.real(np.vdot(array_of(u), array_of(y)))
        assert abs(left - np.vdot(array_of(g), array_of(x))) < 1e-10


def test_a_batch_is_transformed_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    for name in ("fftn", "irfftn"):
        function = getattr(np.fft, name)
        monkeypatch.setattr(np.fft, name, lambda *a, f=function, n=name, **k: (calls.append(n), f(*a, **k))[1])
    monkeypatch.setattr(transforms, "_library", lambda: np.fft)
    x = pullback.randn(5, 3, 4)
    found = vmap(lambda t: pullback.fft.irfft2(pullback.fft.fft2(t), (3, 4)))(x)
    assert calls == ["fftn", "irfftn"]
    assert found.shape == x.shape


def test_scipy_or_numpy_transform_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    scipy_fft = pytest.importorskip("scipy.fft")
    assert transforms._library() is scipy_fft
    signal, spectrum = pullback.randn(3, 4, 5), pullback.randn(3, 4, dtype=pullback.complex64)

    def transformed() -> list[pullback.Tensor]:
        made = [getattr(pullback.fft, name)(signal, norm="ortho") for name in ("fft", "fft2", "rfft", "rfftn")]
        return made + [getattr(pullback.fft, name)(spectrum) for name in ("ifft", "ifftn", "irfft", "irfft2")]

    by_scipy = transformed()
    monkeypatch.setattr(transforms, "_library", lambda: np.fft)
    for one, other in zip(by_scipy, transformed(), strict=True):
        assert one.dtype is other.dtype
        assert pullback.allclose(one, other, atol=1e-6)


def test_float32_stays_float32_and_memory_is_its_own() -> None:
    x = pullback.ones(4)
    assert pullback.fft.fft(x).dtype is pullback.complex64
    assert pullback.fft.irfft(pullback.fft.rfft(x)).dtype is pullback.float32
    z = pullback.ones(3, dtype=pullback.complex64)
    same = pullback.fft.fftn(z, dim=())
    same[0] = 5
    assert z[0].item() == 1


# stft -----------------------------------------------------------------------------------------------------------------


def test_istft_is_the_inverse_of_stft() -> None:
    x = pullback.randn(2, 50, dtype=pullback.float64)
    for n, hop, width, centred, two_sided in [
        (8, 2, 8, True, False),
        (9, 3, 9, True, False),
        (8, 3, 6, True, True),
        (8, 1, 8, True, False),
        (16, 8, 16, True, False),
    ]:
        how: dict[str, Any] = {
            "hop_length": hop,
            "win_length": width,
            "window": pullback.hamming_window(width, dtype=pullback.float64),
            "center": centred,
            "onesided": not two_sided,
        }
        spectrum = pullback.stft(x, n, return_complex=True, **how)
        found = pullback.istft(spectrum, n, length=50, **how)
        np.testing.assert_allclose(array_of(found)[:, :48], array_of(x)[:, :48], atol=1e-12)
        np.testing.assert_allclose(array_of(x.stft(n, return_complex=True, **how)), array_of(spectrum))
        np.testing.assert_allclose(array_of(spectrum.istft(n, length=50, **how)), array_of(found))


@pytest.mark.torch
def test_a_window_left_out_and_pairs_of_numbers_are_warned_of(torch: ModuleType) -> None:
    a = np.arange(10.0)
    window = pullback.ones(4)
    with pytest.warns(UserWarning, match="rectangular window"):
        found = pullback.stft(pullback.tensor(a), 4, return_complex=True)
    with pytest.warns(UserWarning, match="rectangular window"):
        back = pullback.istft(found, 4)
    with pytest.warns(UserWarning, match="deprecated"):
        pairs = pullback.stft(pullback.tensor(a), 4, window=window, return_complex=False)
    with pytest.warns(UserWarning, match="padded with zeros"):
        longer = pullback.istft(found, 4, window=window, length=14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.stft(torch.tensor(a), 4, return_complex=True)
        expected = [
            theirs,
            torch.istft(theirs, 4),
            torch.stft(torch.tensor(a), 4, window=torch.ones(4), return_complex=False),
            torch.istft(theirs, 4, window=torch.ones(4), length=14),
        ]
    for ours, wanted in zip([found, back, pairs, longer], expected, strict=True):
        np.testing.assert_allclose(array_of(ours), array_of(wanted), atol=1e-12)


@pytest.mark.parametrize(("size", "hop"), [(1, 1), (4, 1), (4, 4), (4, 6), (6, 4), (7, 3), (30, 7)])
@pytest.mark.parametrize("length", [30, 31, 36])
def test_frames_added_up_are_the_transpose_of_frames(size: int, hop: int, length: int) -> None:
    from pullback.ops.signal.stft import _frames, _overlap_add

    rng = np.random.default_rng(4)
    x = pullback.tensor(rng.normal(size=(2, length)))
    frames = _frames(x, size, hop)
    u = pullback.tensor(rng.normal(size=frames.shape))
    back = _overlap_add(u, hop, length)
    assert back.shape == x.shape
    assert abs(np.vdot(array_of(u), array_of(frames)) - np.vdot(array_of(back), array_of(x))) < 1e-10


@pytest.mark.torch
@pytest.mark.parametrize(
    ("code", "phrase"),
    [
        ("L.fft.fft(x[:0])", r"Invalid number of data points \(0\) specified"),
        ("L.fft.irfftn(y, s=(3, 0))", r"Invalid number of data points \(-?\d\) specified"),
        ("L.fft.fft(x, norm='x')", "Invalid normalization mode"),
        ("L.fft.rfft(x * 1j)", "rfft expects a real input tensor"),
        ("L.fft.rfftn(y * 1j)", "rfftn expects a real-valued input tensor"),
        ("L.fft.ihfft(x * 1j)", "ihfft expects a real input tensor"),
        ("L.fft.fft(x.half()[:3])", "Unsupported dtype"),
        ("L.fft.fftn(y, dim=(0, -2))", "dims must be unique"),
        ("L.fft.fft2(y, s=(1,))", "dim and shape .* same length"),
        ("L.fft.ifftn(y, s=(1, 1, 1))", "tensor only has 2 dimensions"),
        ("L.fft.fftn(y, dim=(2,))", "Dimension out of range"),
    ],
)
def test_errors_have_the_phrase_of_those_of_torch(torch: ModuleType, code: str, phrase: str) -> None:
    for lib in (pullback, torch):
        with pytest.raises((RuntimeError, IndexError), match=phrase):
            eval(code, {"L": lib, "x": lib.ones(4), "y": lib.ones(2, 3)})
