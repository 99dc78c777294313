"""Sparse Jacobians and Hessians, whose patterns are found from the function.

`interpreters/patterns.py` finds which elements depend on which, `colouring.py` puts columns or rows together that have
no nonzero in common, `sparse_plan.py` keeps both, and `evaluation.py` computes one derivative for each colour.
"""

from .detection import hessian_plan, hessian_sparsity, jacobian_plan, jacobian_sparsity
from .evaluation import sparse_hessian, sparse_jacobian, value_and_jacobian
from .sparse_plan import Plan, Sparsity

__all__ = [
    "Plan",
    "Sparsity",
    "hessian_plan",
    "hessian_sparsity",
    "jacobian_plan",
    "jacobian_sparsity",
    "sparse_hessian",
    "sparse_jacobian",
    "value_and_jacobian",
]


def __dir__() -> list[str]:
    return sorted(__all__)
