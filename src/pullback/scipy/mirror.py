"""The list of SciPy's functions that are here, and of those that are refused.

`mirrors` enters a function or a class; a module of this package gets its ``__getattr__`` and ``__dir__`` from `home`.
`as_markdown` makes the table of the documentation of them, and a test compares each signature with SciPy's.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from .. import errors
from .in_programs import in_programs
from .plain_calls import on_arrays

F = TypeVar("F", bound=Callable[..., Any])


class Mirror(NamedTuple):
    """What the documentation says of a function: how its derivative is found, and where it has none."""

    function: Callable[..., Any]
    derivative: str
    limits: str


MIRRORS: dict[str, Mirror] = {}
"""By the name below ``scipy.``, e.g. ``optimize.root``."""

HANDED_ON: dict[str, list[str]] = {}
"""Names that are SciPy's own, by its package."""

INSTEAD: dict[str, str] = {}
"""What to write for functions that are not here, by their names below ``scipy.``."""

REFUSED: dict[str, str] = {}
"""Why a function of SciPy has no derivative, by its name below ``scipy.``."""


def mirrors(
    name: str,
    *,
    derivative: str,
    limits: str = "",
    whole: bool = False,
    of_arrays: Callable[[Any], Any] | None = None,
) -> Callable[[F], F]:
    """Enter a function that has the arguments of SciPy's function `name`, and a derivative.

    derivative: how it is found, in a few words. limits: where there is none, or what is not supported. whole: a program
    of `compile` calls it as a whole, also if no function is among its arguments. of_arrays: see `on_arrays`, which
    gives calls without a Tensor to SciPy.
    """

    def enter(function: F) -> F:
        made: Any = in_programs(name, function, whole)
        if isinstance(function, types.FunctionType):
            made = on_arrays(name, made, function, of_arrays)
        function = made
        MIRRORS[name] = Mirror(function, derivative, limits)
        function.__module__ = f"pullback.scipy.{name.rpartition('.')[0]}"  # where it is public, for pickles and help()
        return function

    return enter


def refuse(package: str, reasons: dict[str, str]) -> None:
    """Enter names of a package of SciPy that have no derivative, each with the reason."""
    REFUSED.update({f"{package}.{name}": reason for name, reason in reasons.items()})


def instead(package: str, words: dict[str, str]) -> None:
    """Enter what to write for functions of a package that are not here: by their names, separated by spaces."""
    INSTEAD.update({f"{package}.{name}": do for names, do in words.items() for name in names.split()})


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
    HANDED_ON[package] = handed_on

    def find(name: str) -> Any:
        if name in handed_on:
            return getattr(importlib.import_module(f"scipy.{package}"), name)
        raise errors.absent(f"pullback.scipy.{package}", _not_here(package, name))

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
    if (newer := f"{full.removesuffix('_matrix')}_array") in MIRRORS:  # SciPy's older names of sparse matrices
        return errors.message(
            f"scipy.{full} is not among the functions of pullback.scipy",
            do=f"use pullback.scipy.{newer}, SciPy's newer name",
        )
    if full in INSTEAD:
        return errors.message(f"scipy.{full} is not among the functions of pullback.scipy", do=INSTEAD[full])
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


# The page of all functions --------------------------------------------------------------------------------------------

PACKAGES = (
    "optimize",
    "integrate",
    "linalg",
    "sparse",
    "sparse.linalg",
    "interpolate",
    "signal",
    "fft",
    "ndimage",
    "spatial.distance",
    "spatial",
    "stats",
    "special",
)
"""The packages of SciPy that have functions here, in the order of the page."""


def load() -> dict[str, ModuleType]:
    """Import all packages, so that `MIRRORS` and `REFUSED` are complete; the packages by their names."""
    return {name: importlib.import_module(f"{__package__}.{name}") for name in PACKAGES}


def as_markdown() -> str:
    """The page of all functions: what has a derivative and how it is found, what is SciPy's own, what is refused.

    >>> from pullback.scipy import mirror
    >>> print(mirror.as_markdown().splitlines()[0])
    # SciPy's functions with derivatives
    """
    parts = [_PREAMBLE]
    for package, module in load().items():
        parts += _section(package, module)
    return "\n\n".join(parts) + "\n"


def _section(package: str, module: ModuleType) -> Iterator[str]:
    here = {name: mirror[1:] for name, mirror in MIRRORS.items() if name.rpartition(".")[0] == package}
    refused = {name: (why,) for name, why in REFUSED.items() if name.rpartition(".")[0] == package}
    same = [name for name in dir(module) if name not in vars(module)]
    yield f"## `pullback.scipy.{package}`"
    if here:
        yield _table(("function", "derivative", "limits"), here)
    if same:
        yield f"SciPy's own, handed on as they are: {_listed(same)}."
    if refused:
        yield _table(("refused", "why"), refused)


def _table(heads: tuple[str, ...], rows: Mapping[str, tuple[str, ...]]) -> str:
    """Functions that have the same text share a row; the rows are in the order of their first names."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(rows, key=str.lower):
        shared.setdefault(rows[name], []).append(name.rpartition(".")[2])
    lines = [heads, ("---",) * len(heads), *((_listed(names), *said) for said, names in shared.items())]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_PREAMBLE = """# SciPy's functions with derivatives

Names, arguments and values are those of SciPy 1.17.
[SciPy with derivatives](scipy.md) says how to use them.

- *derivative*: how it is found. It has every order and every mode: backward, forward, `vmap`, and all of them nested.
- *limits*: arguments that have no derivative, and what is not supported.
- *refused*: functions that have no derivative, with the reason, which is also the error's text. For their values, call
  SciPy's function on `t.detach().numpy()`.

Where no Tensor and no function is among the arguments, a function is SciPy's own, and gives arrays. Of Tensors,
integers and booleans become float64, also where SciPy keeps them, as it does in `ndimage`: they have no derivative, so
SciPy itself has the values that are rounded.

A function of SciPy's that is not on this page raises an error, which shows
[the node to write](scipy.md#what-is-not-here)."""
