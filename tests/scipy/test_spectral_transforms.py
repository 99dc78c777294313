"""`pullback.scipy.fft` against SciPy, and its adjoints."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.fft as theirs

import pullback
from pullback.scipy import fft
from pullback.scipy.mirror import HANDED_ON

from .grid_checks import OfTensors, check_adjoint, check_derivatives, complex_numbers, numbers, same, same_signatures

ours: Any = OfTensors(fft)
FOURIER = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
COSINE = ("dct", "idct", "dst", "idst")
norms = pytest.mark.parametrize("norm", [None, "ortho", "forward"])


def both(name: str, x: Any, **given: Any) -> None:
    """Values and adjoint."""
    mine, scipys = getattr(ours, name), getattr(theirs, name)
    same(mine(x, **given), scipys(x, **given))
    check_adjoint(lambda x: mine(x, **given), lambda x: scipys(x, **given), x)


def test_arguments_are_scipys() -> None:
    same_signatures(ours, theirs)


@norms
@pytest.mark.parametrize("name", FOURIER)
def test_fourier_transforms(name: str, norm: Any) -> None:
    real, half = name in ("rfft", "ihfft"), name in ("irfft", "hfft")
    for size in (1, 2, 3, 6):
        for n in (None, 1, 3, 4, 8):
            if half and n is None and size == 1:
                continue
            x = numbers(2, size, 3)
            for v in (x,) if real else (x, complex_numbers(2, size, 3)):
                both(name, v, n=n, axis=1, norm=norm)
                both(f"{name}n", v, s=None if n is None else (4, n), axes=(2, 1), norm=norm)
                both(f"{name}2", v, norm=norm)


@norms
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("name", COSINE)
def test_cosine_and_sine_transforms(name: str, kind: int, norm: Any) -> None:
    for size in (2, 3, 6):
        for n in (None, 3, 8):
            for orthogonal in (None, True, False):
                given = {"type": kind, "norm": norm, "orthogonalize": orthogonal}
                both(name, complex_numbers(2, size, 3), n=n, axis=1, **given)
                both(f"{name}n", numbers(2, size, 3), s=None if n is None else (n, 3), axes=(1, 2), **given)


@pytest.mark.parametrize("name", FOURIER + COSINE)
def test_derivatives(name: str) -> None:
    x = numbers(2, 5) if name in ("rfft", "ihfft", *COSINE) else complex_numbers(2, 5)
    check_derivatives(getattr(ours, name), x)
    check_derivatives(getattr(ours, f"{name}n"), x)


def test_shifts_and_hankel_transforms() -> None:
    both("fftshift", numbers(3, 4))
    both("ifftshift", numbers(3, 4), axes=0)
    for bias in (0.0, 0.3):
        for n in (5, 6):
            for name in ("fht", "ifht"):
                both(name, numbers(2, n), dln=0.1, mu=0.7, offset=0.2, bias=bias)


def test_precisions_and_integers() -> None:
    for name in ("fft", "rfft", "dct", "dst"):
        same(getattr(ours, name)(numbers(6).astype("f")), getattr(theirs, name)(numbers(6).astype("f")), 1e-5)
        same(getattr(ours, name)(np.arange(6)), getattr(theirs, name)(np.arange(6)))


def test_bad_input_is_scipys() -> None:
    with pytest.raises(ValueError, match="norm"):
        ours.fft([1.0, 2.0], norm="spam")
    with pytest.raises(ValueError, match="number of data points"):
        ours.fft([1.0, 2.0], n=0)
    with pytest.raises(TypeError, match="real"):
        ours.rfft(np.array([1j, 2.0]))
    with pytest.raises(ValueError, match=r"[Uu]nexpected|type|norm"):
        ours.dct([1.0, 2.0], type=9)
    with pytest.raises(TypeError, match="setting"):
        ours.fft([1.0, 2.0], n=pullback.tensor(2.0, requires_grad=True))
    assert ours.next_fast_len is theirs.next_fast_len


ALONG_AXES = [n for n in ours.__all__ if n not in HANDED_ON["fft"] and n[-1] != "n" and "ht" not in n]


@pytest.mark.parametrize("name", ALONG_AXES)
def test_an_axis_that_is_not_there_is_an_error(name: str) -> None:
    for axis in (3, -4):
        for m in (ours, theirs):
            call = getattr(m, name)
            several = "axes" in inspect.signature(getattr(ours, name)).parameters
            with pytest.raises((IndexError, ValueError)):
                call(numbers(2, 3, 4), **({"axes": (0, axis)} if several else {"axis": axis}))
