"""Transforms of functions, as `torch.func` has them: derivatives and batches of pure functions, to be nested freely."""

from . import checks as checks
from .forward import jvp
from .jacobian import hessian, jacfwd, jacrev
from .modules import functional_call, linearize, stack_module_state
from .reverse import grad, grad_and_value, vjp
from .vectorize import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
