"""`scipy.interpolate`: interpolants that are differentiable in the values, in the knots and in the query points."""

from ..mirror import home, refuse
from .basis_splines import BSpline, make_interp_spline
from .cubic_pieces import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    pchip_interpolate,
)
from .grids import RegularGridInterpolator, interpn
from .one_variable import interp1d
from .piecewise import PPoly
from .radial_basis import RBFInterpolator

__all__ = [
    "Akima1DInterpolator",
    "BSpline",
    "CubicHermiteSpline",
    "CubicSpline",
    "PPoly",
    "PchipInterpolator",
    "RBFInterpolator",
    "RegularGridInterpolator",
    "interp1d",
    "interpn",
    "make_interp_spline",
    "pchip_interpolate",
]

refuse(
    "interpolate",
    {
        "NearestNDInterpolator": "the result is a step function of the points",
        "generate_knots": "the number of knots depends on the values",
        "make_splrep": "the number of knots depends on the values; with s=0 it is make_interp_spline",
        "make_splprep": "the number of knots depends on the values; with s=0 it is make_interp_spline",
        "splrep": "the number of knots depends on the values; with s=0 it is make_interp_spline",
        "splprep": "the number of knots depends on the values; with s=0 it is make_interp_spline",
        "bisplrep": "the number of knots depends on the values",
        "UnivariateSpline": "the number of knots depends on the values; with s=0 it is make_interp_spline",
        "SmoothBivariateSpline": "the number of knots depends on the values",
        "AAA": "the poles are chosen greedily, one after the other",
        "interp2d": "SciPy has removed it; use RegularGridInterpolator",
    },
)

__getattr__, __dir__ = home("interpolate", globals())
