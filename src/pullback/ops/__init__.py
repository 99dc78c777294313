"""The operations, a folder for each family; importing this package fills the table.

The operations of networks (convolutions, losses) are in `pullback.nn.functional`, the masked ones in the folder
`masked`. They are entered when `pullback.nn` and `pullback.masked` are loaded: on their first use, or when the whole
`TABLE` or `NAMES` is read here.
"""

import importlib as _importlib
import math as _math
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ..table.entry import NAMES as _NAMES
from ..table.entry import TABLE as _TABLE
from ..table.nodes import SAVED_NAMES as _SAVED_NAMES
from ..table.op import SPELLINGS as _SPELLINGS
from ..table.tensor_methods import enter_methods as _enter_methods
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
    determinants,
    last_axes,
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
from .numpy import curves, no_axes, reductions, scipy_special, shapes, ufuncs, values
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
from .shape import axes, channels, inplace_views, joining, rearranging, reshape, resizing, slices, splitting, strided
from .signal import fft, stft, windows
from .sparse import compressed, coo, namespace, pattern, sparse_operations, sparse_places

if _TYPE_CHECKING:
    from ..table.entry import NAMES, TABLE

__all__ = ["NAMES", "TABLE"]

# NumPy's spellings of torch's arguments.
_SPELLINGS.update(axis="dim", keepdims="keepdim", x="input")

# Torch's names of saved values (the part after `_saved_`), if the name here differs or the value follows from a shape.
_SAVED_NAMES.update(
    {
        "self": "input A",
        "result": "out out0",
        "result0": "out0",
        "result1": "out1",
        "b": "B",
        "dim": "dims",
        "exponent": "other out1",
        "indices": "index out1",
        "kernel_size": "kernel",
        "mask": "condition",
        "mat2": "other",
        "mat2_sym_sizes": "other_shape",
        "tensor": "other",
        "vec": "other",
        "self_sizes": "input_shape",
        "self_sym_sizes": "input_shape",
        "self_sym_numel": lambda input_shape: _math.prod(input_shape),
        "self_sym_argsize_minus_1": lambda input_shape: input_shape[-1],
        "self_sym_argsize_minus_2": lambda input_shape: input_shape[-2],
    }
)

_enter_methods()


def __getattr__(name: str) -> _Any:
    whole = {"NAMES": _NAMES, "TABLE": _TABLE}
    if name not in whole:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in ("nn", "masked"):
        _importlib.import_module(f"pullback.{module}")
    return whole[name]


def __dir__() -> list[str]:
    return sorted(__all__)
