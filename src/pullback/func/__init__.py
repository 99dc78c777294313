"""Transforms of functions, as in `torch.func`: derivatives and batches of pure functions, which nest freely."""

from . import sparse
from .forward import jvp, linearize
from .functionalization import functionalize
from .jacobian import hessian, jacfwd, jacrev
from .reverse import grad, grad_and_value, vjp
from .sparse import sparse_hessian, sparse_jacobian
from .stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .taylor import biharmonic, derivatives, jet, laplacian, linear_operator
from .trees import debug_unwrap
from .vectorize import vmap

__all__ = [
    "biharmonic",
    "debug_unwrap",
    "derivatives",
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
    "sparse",
    "sparse_hessian",
    "sparse_jacobian",
    "stack_module_state",
    "vjp",
    "vmap",
]


def __dir__() -> list[str]:
    return sorted(__all__)
