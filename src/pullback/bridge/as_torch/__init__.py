"""A program that imports torch, on this package: the program stays as it is.

`install` answers ``import torch`` with pullback for the rest of the process, and so does
``python -m pullback.bridge.as_torch script.py``. ``torch.nn.functional`` is then `pullback.nn.functional`, the same
module under both names. PyTorch need not be installed; where it is, it stays unloaded.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from ... import errors
from ...compat import paths
from ...compat.instead import INSTEAD

__all__ = ["install"]

_PACKAGE, _HOST = __name__.partition(".")[0], "torch"
_OWN = {"array_api", "bridge", "inspect", "interpreters", "ops", "scipy"}  # public modules that PyTorch does not have


def install() -> None:
    """Answer ``import torch`` with this package, for the rest of the process: call it before anything imports torch.

    A second call does nothing. A module of PyTorch that pullback lacks is a ModuleNotFoundError that says so, and what
    to do instead.

    Raises:
        RuntimeError: PyTorch itself has been imported; nothing is changed.

    Example:
        ``python -m pullback.bridge.as_torch train.py --epochs 3`` does the same for a script:

        >>> import subprocess, sys
        >>> program = "from pullback.bridge import as_torch; as_torch.install(); import torch; print(torch.nn.Linear)"
        >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
        "<class 'pullback.nn.layers.linear.Linear'>\\n"
    """
    here = sys.modules[_PACKAGE]
    found = sys.modules.get(_HOST)
    if found is here:
        return
    if found is not None:
        raise RuntimeError(
            errors.message(
                "bridge.as_torch.install(): PyTorch was imported already",
                found=f"torch from {getattr(found, '__file__', None)}",
                do="install it before the program or a library imports torch, or run the program by "
                "python -m pullback.bridge.as_torch script.py",
            )
        )
    sys.modules[_HOST] = here
    # What is loaded must not be imported once more: an import would put a module such as `pullback.compile` where the
    # function of that name stands.
    for path in paths.PUBLIC:
        known = sys.modules.get(f"{_PACKAGE}.{path}")
        if known is not None:
            sys.modules[f"{_HOST}.{path}"] = known
    sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds each module below torch as the one of that path below this package, and no other."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        host, _, below = fullname.partition(".")
        if host != _HOST:
            return None
        if not paths.is_public(below):
            raise ModuleNotFoundError(_absent(below), name=fullname)
        return ModuleSpec(fullname, _Loader())  # type: ignore[arg-type]


class _Loader:
    """Enters a module of this package under torch's name as well; it keeps its own name and spec."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        below = module.__name__.partition(".")[2]
        sys.modules[module.__name__] = importlib.import_module(f"{_PACKAGE}.{below}")


def _absent(below: str) -> str:
    """What a program is told that asks for a part of PyTorch which is not here."""
    parts = below.split(".")
    paths_above = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    do = next((INSTEAD[path] for path in paths_above if path in INSTEAD), "")
    return errors.message(f"torch.{below}: pullback stands for torch, and has no {below}", do=do or _what_there_is())


def _what_there_is() -> str:
    """Where a program has to do without a module: the modules that it may use, in words that need no network."""
    tops = sorted({path.partition(".")[0] for path in paths.PUBLIC} - {""} - _OWN)
    modules = ", ".join(f"torch.{path}" for path in tops)
    return (
        f"compute without it, or run the program with PyTorch. These modules are here: {modules}; "
        "`pullback ops` lists the operations"
    )


def advise(error: ImportError) -> None:
    """Add to the error of an import what Python leaves out of it: what to do instead, or how to get what is missing."""
    root, _, below = (error.name or "").partition(".")
    if isinstance(error, ModuleNotFoundError) and root not in ("", _HOST, _PACKAGE):
        on_host = f"; it is built on PyTorch: run the program without {__name__}" if root.startswith(_HOST) else ""
        error.add_note(f"  What to do: pip install {root}{on_host}.")
    name = re.match(r"cannot import name '(\w+)'", str(error))
    if root == _PACKAGE and name is not None:
        error.add_note(_absent(f"{below}.{name[1]}".lstrip(".")))


def __dir__() -> list[str]:
    return sorted(__all__)
