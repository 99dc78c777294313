"""Classes derived from PyTorch's own `Function` where ours was meant: they are noticed, and warned of."""

from __future__ import annotations

import sys
import warnings
import weakref
from sys import getrefcount
from types import ModuleType
from typing import Any

from .callers import callers_level
from .translation import INSTALLED
from .words import message

_TOLD: weakref.WeakSet[type] = weakref.WeakSet()
_LOOKED = [0]  # the references to `Function` after the last look: a class that is derived from it holds some


def notice_foreign_functions() -> None:
    """Warn once of each class derived from PyTorch's `Function` that is written, or named, where this package is used
    and PyTorch is not.

    PyTorch runs such a class's forward with our tensors, which record what it computes, and never calls its backward. A
    pass, backward or forward, looks at the classes that were derived since the last look, where PyTorch is loaded.
    """
    torch = sys.modules.get("torch")
    if torch is None or torch.__name__ != "torch":  # this package stands for it under `bridge.as_torch`
        return
    base = getattr(getattr(torch, "autograd", None), "Function", None)
    references = getrefcount(base)  # a list of the hundreds of classes would be a tenth of a small pass
    if references == _LOOKED[0]:
        return
    _LOOKED[0] = references
    kinds: list[type] = base.__subclasses__() if isinstance(base, type) else []
    for kind in kinds:
        if kind not in _TOLD and _seems_ours(kind):
            _TOLD.add(kind)
            warnings.warn(foreign_function(f"{kind.__module__}.{kind.__qualname__}"), stacklevel=callers_level())


def foreign_function(where: str) -> str:
    """What is said of a class that is derived from PyTorch's own `Function`."""
    return message(
        where,
        expected="a class derived from pullback.autograd.Function",
        found="one derived from PyTorch's own Function, whose backward is never called for Tensors of pullback: the "
        "graph holds what its forward computed",
        do="write `from pullback.autograd import Function` or `import pullback as torch` for the import of PyTorch's",
    )


def _seems_ours(kind: type) -> bool:
    """Whether a class derived from PyTorch's `Function` is most likely meant to be derived from ours."""
    home = sys.modules.get(kind.__module__)
    if home is None or INSTALLED in (getattr(home, "__file__", None) or ""):
        return False
    names = vars(home)
    if is_meant_for_us(names):
        return _stands_in(names, kind) or (
            "<locals>" in kind.__qualname__ and {"torch"} == {home_of(v) for v in names.values() if _is_function(v)}
        )
    if "pullback.bridge.torch" in sys.modules:  # which runs PyTorch's functions as they are
        return False
    if not hasattr(home, "__file__") or not _has_names_of(names, "torch") or _has_names_of(names, "pullback"):
        return False
    return any(_uses(module, home, kind) for module in [*sys.modules.values()])


def _is_function(value: Any) -> bool:
    return isinstance(value, type) and value.__name__ == "Function"


def _uses(module: Any, home: ModuleType, kind: type) -> bool:
    """Whether a module uses this package, nothing of PyTorch, and a class or its module by name."""
    if not isinstance(module, ModuleType) or INSTALLED in (getattr(module, "__file__", None) or ""):
        return False
    names = vars(module)
    if not any(value is kind or value is home for value in [*names.values()]):
        return False
    return _has_names_of(names, "pullback") and not _has_names_of(names, "torch")


def _has_names_of(names: Any, package: str) -> bool:
    return any(home_of(value) == package for value in [*names.values()])


def _stands_in(names: Any, kind: type) -> bool:
    """Whether a class is written in a module, whose globals are given: a function may have made it for any library."""
    found = None
    for part in kind.__qualname__.split("."):
        found = names.get(part)
        names = getattr(found, "__dict__", {})
    return found is kind


def is_meant_for_us(names: Any) -> bool:
    """Whether a module, whose globals are given, has names of this package, and no module of PyTorch."""
    homes = {home_of(value) for value in names.values()}
    return "pullback" in homes and not any(
        isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "torch" for value in names.values()
    )


def home_of(value: Any) -> str:
    """The package that a module, a class or a function is of."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    return str(name).partition(".")[0]


def is_of_pytorch(kind: type) -> bool:
    """Whether a class is PyTorch's own `Function`, or derived from it."""
    return any(base.__name__ == "Function" and base.__module__ == "torch.autograd.function" for base in kind.__mro__)
