"""Fourier transforms, as `torch.fft`: of complex, real and Hermitian signals.

The functions come from the table in `pullback.ops`; NumPy's (`np.fft.fft` and its siblings) find them for a Tensor.
Gradients of complex numbers follow torch's convention.

>>> import pullback
>>> x = pullback.ones(4, requires_grad=True)
>>> pullback.fft.rfft(x).abs().square().sum().backward()
>>> x.grad
tensor([8., 8., 8., 8.])
"""

from .table.entry import NAMES

__all__ = sorted(NAMES["fft"])


def __dir__() -> list[str]:
    return sorted(__all__)


globals().update(NAMES["fft"])
