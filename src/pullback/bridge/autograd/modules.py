"""The modules of autograd's namespace, by their paths below `autograd`: which of our files has which of their names.

No file stands for these paths. A finder makes a module when it is first imported, as `pullback.bridge.autograd.numpy`
and, once `install` was called, as `autograd.numpy`: the same module under both names.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

from ... import errors

PACKAGE = __name__.rpartition(".")[0]
HOST = "autograd"

_OPERATORS = (
    "deriv elementwise_grad grad grad_and_aux grad_named hessian hessian_tensor_product hessian_vector_product "
    "holomorphic_grad jacobian make_ggnvp make_hvp make_jvp make_vjp multigrad_dict tensor_jacobian_product "
    "value_and_grad vector_jacobian_product checkpoint"
)
_RULES = "def_linear defjvp defjvp_argnum defjvp_argnums defvjp defvjp_argnum defvjp_argnums"
_SPACES = "VSpace vspace"
_DENSITIES = ("beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t")

NAMES: dict[str, dict[str, str]] = {
    "": {"operators": _OPERATORS, "boxed_containers": "dict isinstance list tuple type", "user_rules": "primitive"},
    "builtins": {
        "boxed_containers": "dict isinstance list tuple type container_take make_sequence sequence_extend_left "
        "sequence_extend_right",
        "box": "DictBox SequenceBox",
        "spaces": "ContainerVSpace DictVSpace ListVSpace NamedTupleVSpace SequenceVSpace TupleVSpace",
    },
    "core": {
        "passes": "make_jvp make_vjp",
        "user_rules": f"{_RULES} add_outgrads primitive primitive_jvps primitive_vjps sum_outgrads",
        "spaces": _SPACES,
        "box": "Box getval isbox",
    },
    "differential_operators": {
        "operators": f"{_OPERATORS} make_jvp_reversemode",
        "user_rules": "defvjp_argnum primitive",
        "spaces": "vspace",
        "wrapping": "unary_to_nary",
    },
    "extend": {
        "user_rules": f"{_RULES} notrace_primitive primitive register_notrace",
        "spaces": _SPACES,
        "box": "Box ArrayBox getval isbox",
    },
    "misc": {"misc_names": "const_graph flatten"},
    "misc.fixed_points": {"misc_names": "fixed_point"},
    "misc.flatten": {"misc_names": "flatten flatten_func"},
    "misc.optimizers": {"misc_names": "adam rmsprop sgd unflatten_optimizer"},
    "misc.tracers": {"misc_names": "const_graph const_graph_unary"},
    "numpy": {},
    "numpy.fft": {},
    "numpy.linalg": {"numpy_names": "eigh eigvalsh"},
    "numpy.numpy_boxes": {"box": "ArrayBox"},
    "numpy.numpy_jvps": {},
    "numpy.numpy_vjps": {
        "numpy_names": "dot_adjoint_0 dot_adjoint_1 match_complex replace_zero unbroadcast unbroadcast_f"
    },
    "numpy.numpy_vspaces": {"spaces": "ArrayVSpace ComplexArrayVSpace"},
    "numpy.numpy_wrapper": {},
    "numpy.random": {},
    "scipy": {},
    "scipy.integrate": {"scipy_names": "odeint"},
    "scipy.linalg": {"scipy_names": "solve_banded solve_sylvester solve_triangular sqrtm"},
    "scipy.signal": {"scipy_names": "convolve"},
    "scipy.special": {},
    "scipy.stats": {},
    **{f"scipy.stats.{name}": {} for name in _DENSITIES},
    "test_util": {
        "checked_grads": "EPS RTOL TOL check_equivalent check_grads check_jvp check_vjp combo_check make_numerical_jvp "
        "scalar_close"
    },
    "tracer": {
        "user_rules": "Node notrace_primitive primitive register_notrace trace trace_primitives_map",
        "box": "Box getval isbox",
    },
    "util": {"wrapping": "func subval subvals"},
    "wrap_util": {"wrapping": "get_doc get_name unary_to_nary wrap_nary_f wraps"},
}
"""For each path, the names that it has from each file of this folder. Paths without files have a whole namespace."""


def _whole(path: str) -> dict[str, Any]:
    """The names of a path that has a namespace of NumPy or SciPy."""
    if path in ("numpy", "numpy.numpy_wrapper"):
        return _ours("numpy_names").namespace()
    if path.startswith("numpy."):
        whole = {"fft": np.fft, "linalg": np.linalg, "random": np.random}.get(path.partition(".")[2])
        return {} if whole is None else {k: v for k, v in vars(whole).items() if not k.startswith("_")}
    if path in ("scipy.special", "scipy.linalg"):
        return getattr(_ours("scipy_names"), path.rpartition(".")[2])()
    if path.startswith("scipy.stats."):
        return _ours("densities").names(path.rpartition(".")[2])
    return {}


def _ours(name: str) -> Any:
    """A file of this folder; ModuleNotFoundError with what to do if it needs SciPy, which is not installed."""
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        if error.name != "scipy":
            raise
        said = f"{HOST}.scipy needs SciPy, which is not installed"
        raise ModuleNotFoundError(errors.message(said, do="pip install scipy"), name="scipy") from None


def module(path: str) -> ModuleType:
    """The module at a path below autograd, imported when it is first asked for."""
    return importlib.import_module(f"{PACKAGE}.{path}") if path else sys.modules[PACKAGE]


def _below(path: str) -> list[str]:
    """The paths one step below a path."""
    prefix = f"{path}." if path else ""
    return [p for p in NAMES if p.startswith(prefix) and p != path and "." not in p[len(prefix) :]]


class _Loader:
    """Makes a module of the table, and enters it under both names."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        path = _path_of(spec.name)
        return None if spec.name.startswith(PACKAGE) or path is None else module(path)

    def exec_module(self, made: ModuleType) -> None:
        path = _path_of(made.__name__)
        if path is None or vars(made).get("_ready"):
            return
        vars(made)["_ready"] = True
        vars(made).update(_whole(path))
        made.__doc__ = f"{HOST}.{path}, on this package."
        for child in _below(path):
            setattr(made, child.rpartition(".")[2], module(child))
        for source, names in NAMES[path].items():
            vars(made).update({name: getattr(_ours(source), name) for name in names.split()})


class _Finder:
    """Finds the modules of the table: below this package, and below `autograd` once that is installed."""

    installed = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        below = _path_of(fullname)
        if not below or not (fullname.startswith(PACKAGE) or self.installed):
            return None
        return ModuleSpec(fullname, _Loader(), is_package=bool(_below(below)))  # type: ignore[arg-type]


def _path_of(fullname: str) -> str | None:
    """The path of a module's full name below autograd, if it is in the table."""
    for start in (PACKAGE, HOST):
        if fullname == start or fullname.startswith(f"{start}."):
            path = fullname[len(start) + 1 :]
            return path if path in NAMES else None
    return None


FINDER = _Finder()


def install() -> None:
    """Answer ``import autograd`` with this package, for the rest of the process: call it before anything imports that.

    Raises:
        RuntimeError: autograd itself has been imported.
    """
    found = sys.modules.get(HOST)
    if found is not None and found is not sys.modules[PACKAGE]:
        raise RuntimeError(
            errors.message(
                "bridge.autograd.install(): autograd was imported already",
                found=f"autograd from {getattr(found, '__file__', None)}",
                do="install it before the program imports autograd, or run the program by "
                "python -m pullback.bridge.autograd script.py",
            )
        )
    FINDER.installed = True
    sys.modules[HOST] = sys.modules[PACKAGE]
    for path in NAMES:
        known = sys.modules.get(f"{PACKAGE}.{path}") if path else None
        if known is not None:
            sys.modules[f"{HOST}.{path}"] = known


sys.meta_path.insert(0, FINDER)
