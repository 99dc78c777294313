"""autograd's own namespace (https://github.com/HIPS/autograd) on this package: one import changes, the program stays.

``import pullback.bridge.autograd.numpy as np`` and ``from pullback.bridge.autograd import grad`` stand for the same
lines with ``autograd``; `install` answers ``import autograd`` itself, for programs and libraries that are not to be
changed, and so does ``python -m pullback.bridge.autograd script.py``. Outside of a derivative there are only NumPy's
arrays and numbers; inside, an `ArrayBox` holds a Tensor. autograd need not be installed.
"""

from __future__ import annotations

import importlib
from typing import Any

from .boxed_containers import dict, isinstance, list, tuple, type
from .modules import NAMES, install
from .operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from .user_rules import primitive

__all__ = [
    "builtins",
    "checkpoint",
    "core",
    "deriv",
    "dict",
    "differential_operators",
    "elementwise_grad",
    "extend",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "install",
    "isinstance",
    "jacobian",
    "list",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_vjp",
    "misc",
    "multigrad_dict",
    "numpy",
    "primitive",
    "scipy",
    "tensor_jacobian_product",
    "test_util",
    "tracer",
    "tuple",
    "type",
    "util",
    "value_and_grad",
    "vector_jacobian_product",
    "wrap_util",
]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> Any:
    return sorted(__all__)
