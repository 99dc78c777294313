"""pullback: PyTorch's automatic differentiation, and its plug-in interface `autograd.Function`, as a small library on
NumPy.

The names are torch's: ``import pullback as torch`` runs code written for `torch.autograd`. Operations come from the
table in `pullback.ops` and are listed there; everything else is imported below.
"""

import math as _math
import warnings as _warnings
from typing import Any as _Any

from . import autograd, cuda, inspect, nn, ops, optim
from ._dtypes import (
    bool,
    cdouble,
    cfloat,
    complex64,
    complex128,
    device,
    double,
    dtype,
    float,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._repr import printoptions, set_printoptions
from ._tensor import Size, Tensor
from .autograd import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .ops import sparse
from .ops.creation import (
    Generator,
    arange,
    as_tensor,
    default_generator,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    manual_seed,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    tensor,
    zeros,
    zeros_like,
)
from .ops.questions import is_tensor
from .ops.sparse import layout, sparse_coo, sparse_coo_tensor, strided

__version__ = "0.1.0"

inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e

# NumPy warns of overflow and division by zero where PyTorch does not. Only warnings raised in this package's own
# frames are silenced: NumPy code of the user's keeps its own.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"pullback\.")

globals().update({name: op.call for name, op in ops.TABLE.items() if op.public})


def __getattr__(name: str) -> _Any:
    raise AttributeError(
        f"module 'pullback' has no attribute {name!r}: it is not in pullback, or not yet (README.md says what is)"
    )
