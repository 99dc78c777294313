"""`scipy.signal`: convolutions, filters, sample rates and spectra, differentiable in signals and in coefficients."""

from ..mirror import home, refuse
from .convolving import convolve, convolve2d, correlate, correlate2d, fftconvolve, oaconvolve
from .recursive_filters import deconvolve, filtfilt, lfilter, lfilter_zi, sosfilt, sosfilt_zi, sosfiltfilt
from .sample_rates import decimate, resample, resample_poly, upfirdn
from .short_time import coherence, csd, istft, periodogram, stft, welch
from .smoothing import detrend, hilbert, savgol_filter

__all__ = [
    "coherence",
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "decimate",
    "deconvolve",
    "detrend",
    "fftconvolve",
    "filtfilt",
    "hilbert",
    "istft",
    "lfilter",
    "lfilter_zi",
    "oaconvolve",
    "periodogram",
    "resample",
    "resample_poly",
    "savgol_filter",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
    "stft",
    "upfirdn",
    "welch",
]

_POSITIONS = "its results are positions in the signal, which do not change as the signal moves a little"

refuse(
    "signal",
    {
        **dict.fromkeys(("argrelextrema", "argrelmax", "argrelmin", "find_peaks", "find_peaks_cwt"), _POSITIONS),
        **dict.fromkeys(("peak_prominences", "peak_widths"), "it measures found peaks"),
        "medfilt": "use ndimage.median_filter(x, size, mode='constant'), which has the same values",
        "medfilt2d": "use ndimage.median_filter(x, size, mode='constant'), which has the same values",
        "order_filter": "use ndimage.rank_filter(x, rank, footprint=domain, mode='constant')",
        "max_len_seq": "there is nothing to differentiate",
        "unit_impulse": "there is nothing to differentiate",
    },
)

__getattr__, __dir__ = home(
    "signal",
    globals(),
    same="BadCoefficients bessel butter buttord cheb1ord cheb2ord cheby1 cheby2 check_COLA check_NOLA "
    "choose_conv_method correlation_lags dlti ellip ellipord firls firwin firwin2 get_window iircomb iirdesign "
    "iirfilter iirnotch iirpeak kaiser_atten kaiser_beta kaiserord lti remez savgol_coeffs windows",
)
