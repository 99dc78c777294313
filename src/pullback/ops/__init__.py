"""The operations, a folder for each family; importing this package fills the table.

Those of networks (convolutions, losses) are in `pullback.nn.functional` and enter themselves when that is loaded: by
who asks for it, or for the whole `TABLE` or `NAMES` here.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ..table import inplace, narrow
from ..table.entry import NAMES as _NAMES
from ..table.entry import TABLE as _TABLE
from .elementwise import (
    analysis,
    arithmetic,
    bessel,
    close,
    comparison,
    complex,
    gamma,
    limits,
    polynomials,
    powers,
    rounding,
    softmax,
)
from .index import diagonals, fill, gather, index_add, put, scatter, subscripts
from .linalg import (
    cholesky_qr,
    common,
    determinants,
    ldl,
    leastsquares,
    lowrank,
    lu,
    matrix_functions,
    matrix_norms,
    solving,
    spectral,
)
from .make import conversion, draws, from_data, of_size, random
from .numpy import reductions, shapes, ufuncs
from .products import contractions, distances, einsum, matmul, tensordot
from .reduce import (
    counting,
    differences,
    extremes,
    norm,
    picking,
    quantiles,
    scans,
    searching,
    sorting,
    statistics,
    sums,
)
from .shape import axes, channels, inplace_views, joining, rearranging, reshape, resizing, splitting, strided
from .signal import fft, stft, windows
from .sparse import coo, namespace, pattern

if _TYPE_CHECKING:
    from ..table.entry import NAMES, TABLE

__all__ = ["NAMES", "TABLE"]

inplace.enter_twins()


def __getattr__(name: str) -> _Any:
    whole = {"NAMES": _NAMES, "TABLE": _TABLE}
    if name not in whole:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _importlib.import_module("pullback.nn")
    return whole[name]
