"""What to write instead where a Tensor would become an array or a number and lose its gradient: it depends on who asks.

The code that asks is found on the stack: a function of SciPy, of another library, or a line of the user's own.
"""

from __future__ import annotations

import dis
import importlib
import sys
from collections.abc import Iterable, Iterator
from itertools import takewhile
from types import FrameType
from typing import Any

_DO = "  What to do: {}.\n  For the values alone, use tensor.detach().numpy()."
_WRITTEN = (
    "begin with numpy.zeros_like(t) or pullback.zeros(...), which keep the gradients of what is written to them, or "
    "join the parts with numpy.stack([a, b])"
)
_JOINED = (
    "write numpy.stack([a, b]) for numpy.array([a, b]), and t for numpy.asarray(t): NumPy's functions take Tensors"
)
_OF_NUMBERS = "write numpy.sin(t) for math.sin(t), and leave out float()"
_TABLES = "pandas", "xarray"
_WRITES = dis.opmap["STORE_SUBSCR"]


def keeping_gradient(number: bool = False) -> str:
    """The lines of an error that say what keeps the gradient, for the code outside of this package that is running.

    number: it asks for a number, not for an array.
    """
    frames = list(_outside())
    home = _package(frames[0]) if frames else ""
    if home == "scipy":
        return _of_scipy(takewhile(lambda frame: _package(frame) == home, frames))
    if home in _TABLES:
        return _DO.format("give the values of the other operand as a tensor, pullback.tensor(other.to_numpy())")
    writes = frames and frames[0].f_code.co_code[frames[0].f_lasti] == _WRITES
    return _DO.format(_WRITTEN if writes else _OF_NUMBERS if number else _JOINED)


def _outside() -> Iterator[FrameType]:
    """The frames outside of this package and NumPy, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _package(frame) not in ("pullback", "numpy"):
            yield frame
        frame = frame.f_back


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _of_scipy(frames: Iterable[FrameType]) -> str:
    """What to write instead of a function of SciPy, whose frames are given, innermost first."""
    called = ""
    for frame in frames:  # the outermost with a public name is the one that the user called
        owner = frame.f_locals.get("self")
        if hasattr(type(owner), "tocsr"):
            return _DO.format("write pullback.scipy.sparse.csr_array(S) for the matrix S: its products take Tensors")
        for module, name in _names(frame):
            package = ".".join(part for part in module.split(".")[1:3] if not part.startswith("_"))
            if hasattr(sys.modules.get(f"scipy.{package}"), name.partition(".")[0]):
                called = f"{package}.{name}"
    if not called:
        return _DO.format("call a function of pullback.scipy, or make it a pullback.autograd.Function")
    try:
        _found("pullback.scipy." + called)
    except AttributeError as error:
        return f"  {error}"
    return _DO.format(f"call pullback.scipy.{called}")


def _names(frame: FrameType) -> Iterator[tuple[str, str]]:
    """The modules and names that a frame of SciPy may stand for: a function, a class or a distribution."""
    name, given, home = frame.f_code.co_name, frame.f_locals, frame.f_globals["__name__"]
    if "self" in given:
        kind = type(given["self"]).__name__.removesuffix("_gen")
        yield home, kind if name == "__init__" else f"{getattr(given['self'], 'name', kind)}.{name}"
    elif name.endswith("wrapper"):
        for inside in given.values():
            if str(getattr(inside, "__module__", "")).startswith("scipy."):
                yield inside.__module__, getattr(inside, "__name__", "")
    else:
        yield home, name


def _found(name: str) -> Any:
    """The module or the object of this name; AttributeError, with a reason, if there is none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        package, _, own = name.rpartition(".")
        return getattr(_found(package), own)
