"""What a public module shows: `__all__`, `dir`, a star import and the typing stub say the same, and nothing else.

The public modules are those of `compat/paths.py`, which has to list every module that another one offers. Where torch
is installed, what our modules offer is compared with what torch's have: the names of our own are listed here.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import pullback
from docs import site_hooks
from pullback.compat.paths import PATHS, PUBLIC
from pullback.inspect.stubs import stubs

PACKAGE = Path(pullback.__file__).parent

# Modules made on the spot, which stand for torch's files and for libraries that are not here; and modules of SciPy's.
MADE = ("nn.modules.", "backends.", "scipy.signal.windows", "scipy.stats.qmc")

# What our modules offer and torch's of the same path do not.
OWN = {
    "": {"array_api", "bridge", "custom_jvp", "custom_vjp", "explain", "printoptions", "to"},
    "autograd": {
        *("AccumulateGrad", "FunctionCtx", "GradcheckError", "Node", "is_anomaly_check_nan_enabled"),
        *("is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled"),
        *("is_recording_origins", "record_origins"),
    },
    "autograd.grad_mode": {
        *("is_grad_enabled", "is_inference_mode_enabled", "is_multithreading_enabled"),
        *("set_fwd_grad_enabled", "unsafe_preserve_version_counter"),
    },
    "backends": {"fused"},
    "distributed": {
        *("DistributedDataParallel", "DistributedSampler", "Grid", "ZeroRedundancyOptimizer", "cg", "check"),
        *("clip_grad_norm_", "dot", "fft", "gmres", "halo", "ifft", "load", "norm", "partial", "placement"),
        *("replicate", "save", "varying", "vdot"),
    },
    "distributed.nn.functional": {"all_gather_into_tensor", "sendrecv"},
    "func": {
        *("biharmonic", "derivatives", "jet", "laplacian", "linear_operator"),
        *("sparse", "sparse_hessian", "sparse_jacobian"),
        *("fori_loop", "scan", "while_loop"),
    },
    "nn.modules": {"DataParallel"},
    "ops": {"NAMES", "TABLE"},
    "optim.adam": {"AdamW"},
    "overrides": {"DisableTorchFunction", "DisableTorchFunctionSubclass", "disabled_torch_function_impl"},
    "sparse": {"SparseTensor", "layout", "sparse_coo", "sparse_coo_tensor", "strided"},
    "utils": {"checkpoint_steps", "explain_steps"},
    "utils.checkpoint": {"checkpoint_steps", "explain_steps"},
    "testing": {"Audit", "CODES", "Change", "Code", "Finding", "Line", "audit", "check_interpreter", "check_payload"},
}


def module(path: str) -> ModuleType:
    """The public module at a path below `pullback`."""
    return importlib.import_module(f"pullback.{path}" if path else "pullback")


def differences(found: ModuleType, star: set[str]) -> Iterator[str]:
    """In what a module's `__all__`, its `dir` and what a star import of it gives disagree."""
    offered: list[str] = found.__all__
    if len(offered) != len(set(offered)):
        yield "a name stands twice in __all__"
    if odd := sorted({*dir(found)} ^ {*offered}):
        yield f"dir() and __all__ differ: {odd}"
    if odd := sorted(star ^ {*offered}):
        yield f"a star import and __all__ differ: {odd}"
    if odd := [name for name in offered if name.startswith("_")]:
        yield f"private names in __all__: {odd}"
    yield from (f"__all__ has {name}, and the module has not" for name in offered if not hasattr(found, name))


def star_import(path: str) -> set[str]:
    """The names that ``from pullback.path import *`` gives."""
    names: dict[str, object] = {}
    exec(f"from {module(path).__name__ if path not in PATHS else 'pullback.' + path} import *", names)
    return {*names} - {"__builtins__"}


# Every public module; those of a bridge need its host.
HOSTS = {"bridge": ("torch", "jax"), "bridge.torch": ("torch",), "bridge.jax": ("jax",)}
MODULES = [pytest.param(p, marks=[getattr(pytest.mark, host) for host in HOSTS.get(p, ())]) for p in PUBLIC]


@pytest.mark.parametrize("path", MODULES)
def test_a_public_module_shows_what_it_offers(path: str) -> None:
    assert [*differences(module(path), star_import(path))] == []


def test_every_module_that_is_offered_is_listed() -> None:
    offered = {
        f"{path}.{name}".lstrip(".")
        for path in PUBLIC
        if not path.startswith("bridge")  # its modules need their hosts
        for name in module(path).__all__
        if isinstance(getattr(module(path), name), ModuleType)
    }
    assert {path for path in offered if not path.startswith(MADE)} <= {*PUBLIC}
    assert {path for paths in site_hooks.REFERENCE.values() for path in paths} <= {*PUBLIC}
    assert {*PATHS} <= {*PUBLIC}
    assert len(PUBLIC) == len({*PUBLIC})


@pytest.mark.parametrize("path", [p for p in stubs() if p.name != "methods.pyi"], ids=lambda p: p.name)
def test_the_stub_declares_what_the_module_offers(path: Path) -> None:
    declared = set()
    for statement in ast.parse(path.read_text("utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            declared |= {alias.asname for alias in statement.names if alias.asname}
        elif isinstance(statement, ast.FunctionDef):
            declared.add(statement.name)
        elif isinstance(statement, ast.AnnAssign):
            declared.add(ast.unparse(statement.target))
    home = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
    assert {name for name in declared if not name.startswith("_")} == {*module(home).__all__}


def made(source: str) -> ModuleType:
    """A module with this source."""
    found = ModuleType("made")
    exec(source, vars(found))
    return found


FAULTS = {
    "a helper in dir": ("__all__ = ['f']\ndef f(): pass\ndef __dir__(): return ['f', 'helper']", "helper"),
    "a name that dir leaves out": ("__all__ = ['f', 'g']\nf = g = 1\ndef __dir__(): return ['f']", "['g']"),
    "a name that is not there": ("__all__ = ['f']\ndef __dir__(): return __all__", "the module has not"),
    "twice": ("__all__ = ['f', 'f']\nf = 1\ndef __dir__(): return ['f']", "twice"),
    "a private name": ("__all__ = ['_f']\n_f = 1\ndef __dir__(): return __all__", "private"),
    "no __dir__": ("import math\n__all__ = ['f']\nf = 1", "math"),
}


@pytest.mark.parametrize(("source", "said"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_found(source: str, said: str) -> None:
    found = made(source)
    assert said in " ".join(differences(found, {*found.__all__}))
    good = made("__all__ = ['f']\nf = 1\ndef __dir__(): return __all__")
    assert [*differences(good, {"f"})] == []
    assert "star import" in " ".join(differences(good, {"f", "math"}))


@pytest.mark.torch
@pytest.mark.parametrize("path", MODULES)
def test_what_is_offered_torch_has_too_but_for_names_of_our_own(path: str) -> None:
    pytest.importorskip("torch")
    try:
        theirs = importlib.import_module(f"torch.{path}" if path else "torch")
    except ImportError:
        assert path.partition(".")[0] in ("bridge", "scipy") or path in (
            "array_api",
            "compile",
            "inspect",
            "interpreters",
            "func.sparse",
            "autograd.anomaly",
            "optim.adafactor",
            "optim.muon",
        )
        return
    ours = {*module(path).__all__} - {*dir(theirs)}
    if not path:  # PyTorch has most operations that write in place as methods alone
        ours = {name for name in ours if not (name.endswith("_") and hasattr(theirs.Tensor, name))}
    assert ours == OWN.get(path, set())
