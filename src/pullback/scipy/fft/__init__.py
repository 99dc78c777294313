"""`scipy.fft`: Fourier, cosine and sine transforms, all of them linear, so that the gradient is the adjoint."""

from ..mirror import home
from .cosine_transforms import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from .fourier_transforms import (
    fft,
    fft2,
    fftn,
    fftshift,
    fht,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ifht,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftn",
    "fftshift",
    "fht",
    "hfft",
    "hfft2",
    "hfftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ifht",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
]

__getattr__, __dir__ = home(
    "fft",
    globals(),
    same="fftfreq rfftfreq next_fast_len prev_fast_len fhtoffset get_workers set_workers set_backend skip_backend "
    "register_backend set_global_backend",
)
