"""Transforms of functions, as in `torch.func`: derivatives and batches of pure functions, which nest freely.

`sparse` and the loops are loaded when they are first asked for.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .forward import jvp, linearize
from .functionalization import functionalize
from .jacobian import hessian, jacfwd, jacrev
from .reverse import grad, grad_and_value, vjp
from .stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .taylor import biharmonic, derivatives, jet, laplacian, linear_operator
from .trees import debug_unwrap
from .vectorize import vmap

if _TYPE_CHECKING:
    from . import sparse
    from .loops import fori_loop, scan, while_loop
    from .sparse import sparse_hessian, sparse_jacobian

__all__ = [
    "biharmonic",
    "debug_unwrap",
    "derivatives",
    "fori_loop",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jet",
    "jvp",
    "laplacian",
    "linear_operator",
    "linearize",
    "replace_all_batch_norm_modules_",
    "scan",
    "sparse",
    "sparse_hessian",
    "sparse_jacobian",
    "stack_module_state",
    "vjp",
    "vmap",
    "while_loop",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> _Any:
    if name in ("sparse", "sparse_hessian", "sparse_jacobian"):
        found = _importlib.import_module(".sparse", __name__)
        return found if name == "sparse" else getattr(found, name)
    if name in ("fori_loop", "scan", "while_loop"):
        return getattr(_importlib.import_module(".loops", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
