"""`scipy.ndimage`: filters and transforms of images, differentiable in the image and in weights and coordinates."""

from ..mirror import home, refuse
from .image_filters import convolve, convolve1d, correlate, correlate1d, uniform_filter, uniform_filter1d
from .moved_images import (
    affine_transform,
    map_coordinates,
    rotate,
    shift,
    spline_filter,
    spline_filter1d,
    zoom,
)
from .rank_filters import (
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)
from .smooth_filters import (
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
)
from .spectral_filters import fourier_ellipsoid, fourier_gaussian, fourier_shift, fourier_uniform

__all__ = [
    "affine_transform",
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "fourier_ellipsoid",
    "fourier_gaussian",
    "fourier_shift",
    "fourier_uniform",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "grey_closing",
    "grey_dilation",
    "grey_erosion",
    "grey_opening",
    "laplace",
    "map_coordinates",
    "maximum_filter",
    "maximum_filter1d",
    "median_filter",
    "minimum_filter",
    "minimum_filter1d",
    "percentile_filter",
    "prewitt",
    "rank_filter",
    "rotate",
    "shift",
    "sobel",
    "spline_filter",
    "spline_filter1d",
    "uniform_filter",
    "uniform_filter1d",
    "zoom",
]

_BINARY = "the image is black and white"
_NUMBERS = "its results are numbers of regions or positions, which do not change as the image changes a little"
_DISTANCE = "the image is black and white; only its zeros count"

refuse(
    "ndimage",
    {
        **{
            f"binary_{name}": _BINARY
            for name in "closing dilation erosion fill_holes hit_or_miss opening propagation".split()
        },
        **dict.fromkeys("find_objects label maximum_position minimum_position value_indices".split(), _NUMBERS),
        **{f"distance_transform_{name}": _DISTANCE for name in ("bf", "cdt", "edt")},
        "histogram": "counts are step functions of the image",
        "watershed_ift": _NUMBERS,
        "geometric_transform": "the mapping is called for one point at a time; use map_coordinates",
    },
)

__getattr__, __dir__ = home("ndimage", globals(), same="generate_binary_structure iterate_structure")
