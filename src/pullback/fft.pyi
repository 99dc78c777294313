# Made from the table of operations by `pullback ops --stubs`; do not edit.
import builtins
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from .tensor.tensor import Tensor
_Other = builtins.complex | np.ndarray[Any, Any] | np.generic
def fft(input: Tensor, n: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """``X[k] = sum_j x[j] exp(-2 pi i j k / n)``: the discrete Fourier transform, of the input cut or padded to `n`."""
def fft2(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """`fftn` along the last two axes, or those of `dim`."""
def fftfreq(n: Any, d: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """The frequencies of the results of `fft` of length `n`, for samples `d` apart: 0, 1, ..., -2, -1 over ``n d``."""
def fftn(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """The discrete Fourier transform along `dim` (None: all axes, or the last ``len(s)``), cut or padded to `s`."""
def fftshift(input: Tensor, dim: Any = ..., *, out: Any = ...) -> Tensor:
    """A spectrum with the frequency 0 moved from the front to the middle, along `dim` (None: all axes)."""
def hfft(input: Tensor, n: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """`fft` of a Hermitian signal, given by its first half: a real tensor of length `n` (``2 * (m - 1)`` for None)."""
def hfft2(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """`hfftn` along the last two axes, or those of `dim`."""
def hfftn(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """`fftn` of a signal that is Hermitian along the last axis, given by half of it: a real tensor."""
def ifft(input: Tensor, n: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """The inverse of `fft`."""
def ifft2(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """The inverse of `fft2`."""
def ifftn(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """The inverse of `fftn`."""
def ifftshift(input: Tensor, dim: Any = ..., *, out: Any = ...) -> Tensor:
    """The inverse of `fftshift`."""
def ihfft(input: Tensor, n: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """The inverse of `hfft`, of a real tensor."""
def ihfft2(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """`ihfftn` along the last two axes, or those of `dim`."""
def ihfftn(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """The inverse of `hfftn`, of a real tensor."""
def irfft(input: Tensor, n: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """The inverse of `rfft`: a real tensor of length `n`, which is ``2 * (m - 1)`` for None."""
def irfft2(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """`irfftn` along the last two axes, or those of `dim`."""
def irfftn(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """The inverse of `rfftn`: a real tensor, along the last axis of length ``s[-1]`` (``2 * (n - 1)`` for None)."""
def rfft(input: Tensor, n: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """`fft` of a real tensor: only its first ``n // 2 + 1`` frequencies; the rest are their conjugates."""
def rfft2(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """`rfftn` along the last two axes, or those of `dim`."""
def rfftfreq(n: Any, d: Any = ..., *, dtype: Any = ..., out: Any = ..., layout: Any = ..., device: Any = ..., pin_memory: Any = ..., requires_grad: Any = ...) -> Any:
    """The frequencies of the results of `rfft` of length `n`, for samples `d` apart: 0, 1, ... over ``n d``."""
def rfftn(input: Tensor, s: Any = ..., dim: Any = ..., norm: Any = ..., *, out: Any = ...) -> Tensor:
    """`fftn` of a real tensor: only the half along the last axis that determines the rest."""
