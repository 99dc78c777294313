"""`scipy.spatial.distance`: distances of vectors and of sets of points, differentiable in all of them."""

from ...mirror import home, refuse
from .point_sets import cdist, pdist, squareform
from .vectors import (
    braycurtis,
    canberra,
    chebyshev,
    cityblock,
    correlation,
    cosine,
    euclidean,
    jensenshannon,
    mahalanobis,
    minkowski,
    seuclidean,
    sqeuclidean,
)

__all__ = [
    "braycurtis",
    "canberra",
    "cdist",
    "chebyshev",
    "cityblock",
    "correlation",
    "cosine",
    "euclidean",
    "jensenshannon",
    "mahalanobis",
    "minkowski",
    "pdist",
    "seuclidean",
    "sqeuclidean",
    "squareform",
]

_BOOLEAN = "it compares booleans"

refuse(
    "spatial.distance",
    {
        **dict.fromkeys(
            ("dice", "hamming", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"), _BOOLEAN
        ),
        "directed_hausdorff": "its results are numbers of points; for the distance, use cdist(u, v).amin(1).amax()",
    },
)

__getattr__, __dir__ = home("spatial.distance", globals(), same="is_valid_dm is_valid_y num_obs_dm num_obs_y")
