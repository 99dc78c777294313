"""`scipy.spatial`: distances, in `pullback.scipy.spatial.distance`."""

from ..mirror import home, refuse
from . import distance

__all__ = ["distance"]

_NUMBERS = "its results are numbers of points, which do not change as the points move a little"

refuse(
    "spatial",
    {
        **dict.fromkeys(("ConvexHull", "Delaunay", "KDTree", "cKDTree", "tsearch"), _NUMBERS),
        "HalfspaceIntersection": "the choice of the faces is constant; solve for the corners with linalg.solve",
        "SphericalVoronoi": _NUMBERS,
        "Voronoi": _NUMBERS,
    },
)

__getattr__, __dir__ = home("spatial", globals())
