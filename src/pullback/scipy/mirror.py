"""The list of SciPy's functions that are here, and of those that are refused.

`mirrors` enters a function or a class; a module of this package gets its ``__getattr__`` and ``__dir__`` from `home`.
The table of the documentation is `MIRRORS`, and a test compares each signature with SciPy's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from .. import errors

F = TypeVar("F", bound=Callable[..., Any])


class Mirror(NamedTuple):
    """What the documentation says of a function: how its derivative is found, and where it has none."""

    function: Callable[..., Any]
    derivative: str
    limits: str


MIRRORS: dict[str, Mirror] = {}
"""By the name below ``scipy.``, e.g. ``optimize.root``."""

REFUSED: dict[str, str] = {}
"""Why a function of SciPy has no derivative, by its name below ``scipy.``."""


def mirrors(name: str, *, derivative: str, limits: str = "") -> Callable[[F], F]:
    """Enter a function that has the arguments of SciPy's function `name`, and a derivative.

    derivative: how it is found, in a few words. limits: where there is none, or what is not supported.
    """

    def enter(function: F) -> F:
        MIRRORS[name] = Mirror(function, derivative, limits)
        function.__module__ = f"pullback.scipy.{name.rpartition('.')[0]}"  # where it is public, for pickles and help()
        return function

    return enter


def refuse(package: str, reasons: dict[str, str]) -> None:
    """Enter names of a package of SciPy that have no derivative, each with the reason."""
    REFUSED.update({f"{package}.{name}": reason for name, reason in reasons.items()})


def home(package: str, names: dict[str, Any], same: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and the ``__dir__`` of a module that mirrors a package of SciPy.

    names: the globals of the module; those in its ``__all__`` are public. same: SciPy's own names that are handed on
    as they are, because they hold settings or results.

    >>> find, names = home("optimize", {"__all__": ["root"]}, same="Bounds")
    >>> find("Bounds").__module__.split(".")[:2], names()
    (['scipy', 'optimize'], ['Bounds', 'root'])
    """
    handed_on = same.split()
    names["__all__"] += handed_on

    def find(name: str) -> Any:
        if name in handed_on:
            return getattr(importlib.import_module(f"scipy.{package}"), name)
        raise AttributeError(_not_here(package, name))

    return find, lambda: sorted(names["__all__"])


def _not_here(package: str, name: str) -> str:
    full = f"{package}.{name}"
    if full in REFUSED:
        return errors.message(
            f"pullback.scipy.{full} has no derivative: {REFUSED[full]}",
            do=f"use scipy.{full} on t.detach().numpy(), whose result is a constant",
        )
    if name.startswith("_") or not hasattr(importlib.import_module(f"scipy.{package}"), name):
        return f"module 'pullback.scipy.{package}' has no attribute {name!r}"
    cls = "".join(part.capitalize() for part in name.split("_"))
    return (
        f"scipy.{full} is not among the functions of pullback.scipy.\n"
        f"  What to do: for values alone, use scipy.{full} on t.detach().numpy(). For derivatives, write a node:\n"
        f"    class {cls}(pullback.autograd.Function):\n"
        "        @staticmethod\n"
        "        def forward(ctx, x):\n"
        f"            y = pullback.from_numpy(scipy.{full}(x.numpy()))\n"
        "            ctx.save_for_backward(x, y)\n"
        "            return y\n"
        "        @staticmethod\n"
        "        def backward(ctx, g):\n"
        "            x, y = ctx.saved_tensors\n"
        "            return ...  # the vector-Jacobian product of g\n"
        f"    y = {cls}.apply(x)"
    )
