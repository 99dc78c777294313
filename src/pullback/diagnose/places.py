"""Places in the user's code: the frames outside this package, the functions they call, and their variables.

Nothing here records anything. It reads the stack when a place is asked for, and source files when a place is shown.
From the package's own frames it reads arguments by position, never a variable by name.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import CALLED
from ..tensor.protocol import full_name
from ..tensor.tensor import Tensor

Place = tuple[str, int, str]
"""A file, a line and the name of a function."""

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<pullback."
"""The prefixes of the names of this package's files, and of the code that `pullback.compile` writes."""

CALLERS = tuple(
    os.path.join(os.path.dirname(os.path.dirname(np.__file__)), name) + os.sep for name in ("numpy", "scipy")
)
"""The prefixes of the names of files that call this package on behalf of the user."""


def is_ours(frame: Any) -> bool:
    """Whether a frame runs code of this package."""
    return frame.f_code.co_filename.startswith(PACKAGE)


def user_frames() -> Iterator[Any]:
    """The frames of the user's code, innermost first: without those of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame):
            yield frame
        frame = frame.f_back


def locals_of(frame: Any) -> dict[str, Any]:
    """The local variables of a frame, without making the frame keep their values.

    Before Python 3.13, a function's frame keeps the dictionary that it once returned, and with it values whose
    variables have changed since. So the dictionary is emptied, unless a debugger or a profiler may write it back into
    the variables.
    """
    found = frame.f_locals
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a module's frame: these are its variables themselves
        return found
    copy = dict(found)
    if sys.version_info < (3, 13) and sys.gettrace() is None and sys.getprofile() is None:
        found.clear()
    return copy


def place_of(frame: Any) -> Place:
    """The place of a frame."""
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def user_place() -> list[Place]:
    """The innermost line of the user's code."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((*PACKAGE, *CALLERS)):
        frame = frame.f_back
    return [] if frame is None else [place_of(frame)]


def user_stack() -> list[Place]:
    """The places on the user's stack, innermost last."""
    frame: Any = sys._getframe(1)
    found = []
    while frame is not None:  # written out, because anomaly mode calls it for every node
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    found.reverse()
    return found


def formatted(stack: Sequence[Place]) -> str:
    """A stack as a traceback shows it."""
    lines = []
    for file, line, name in stack:
        source = linecache.getline(file, line).strip()
        lines.append(f'  File "{file}", line {line}, in {name}\n' + (f"    {source}\n" if source else ""))
    return "".join(lines)


def at(place: Place | None) -> str:
    """A place in one line: ``file:line, in function: source``."""
    if place is None:
        return "a place outside of any file"
    file, line, name = place
    source = linecache.getline(file, line).strip()
    inside = "" if name == "<module>" else f", in {name}"
    return f"{file}:{line}{inside}" + (f": {source}" if source else "")


def place_of_node(node: Any) -> Place | None:
    """The line of the user's code that made a node, if recorded."""
    stack = node.metadata.get("origin")
    return stack[-1] if stack else None


def named_tensors() -> Iterator[tuple[str, Tensor]]:
    """The tensors in variables of the user's frames, innermost first: local and global ones, and attributes of self."""
    for frame in user_frames():
        for name, value in [*locals_of(frame).items(), *frame.f_globals.items()]:
            if isinstance(value, Tensor):
                if not name.startswith("_"):
                    yield name, value
            elif name == "self":
                attributes = [*getattr(value, "__dict__", {}).items()]
                yield from ((f"self.{k}", v) for k, v in attributes if isinstance(v, Tensor))


def variables(matches: Callable[[Tensor], bool]) -> list[str]:
    """The names of the user's variables whose tensor `matches`, each once; at most a few."""
    found: dict[str, None] = {}
    for name, value in named_tensors():
        if matches(value):
            found[name] = None
            if len(found) == _FEW:
                break
    return list(found)


_FEW = 3


# Calls ----------------------------------------------------------------------------------------------------------------


def arguments(frame: Any) -> list[Any]:
    """The arguments of the call of a frame's function; those in lists, tuples and dicts one by one."""
    code = frame.f_code
    given = locals_of(frame)
    found: list[Any] = []
    count = code.co_argcount + code.co_kwonlyargcount + (code.co_flags >> 2 & 1) + (code.co_flags >> 3 & 1)
    for name in code.co_varnames[:count]:
        value = given.get(name)
        if isinstance(value, (tuple, list)):
            found += value
        elif isinstance(value, dict):
            found += value.values()
        else:
            found.append(value)
    return found


def tensors_in(values: Sequence[Any]) -> list[Tensor]:
    """The tensors among some values."""
    return [v for v in values if isinstance(v, Tensor)]


def title_of(frame: Any) -> str:
    """The user's name for the function of a frame: the operation, or the method."""
    code = frame.f_code
    if (known := CALLED.get(code)) is not None:
        return known.name
    if code.co_name == "__new__":
        return str(first_argument(frame).__name__)
    if code.co_name in ("__array_ufunc__", "__array_function__"):
        # NumPy passes the function that was called, and of a ufunc the name of its method
        function, method = map(locals_of(frame).get, code.co_varnames[1:3])
        return full_name(function if method == "__call__" else getattr(function, str(method), function))
    return _methods().get(code, code.co_name)


def is_elementwise(frame: Any) -> bool:
    """Whether the operation that a frame of this package is in acts on each element alone."""
    while frame is not None and is_ours(frame):
        if frame.f_code in CALLED:
            return CALLED[frame.f_code].elementwise
        frame = frame.f_back
    return False


def first_argument(frame: Any) -> Any:
    """The first positional argument that the function of a frame was called with: for a method, its object or class."""
    code = frame.f_code
    return locals_of(frame).get(code.co_varnames[0]) if code.co_argcount else None


@functools.cache
def _methods() -> dict[Any, str]:
    """The names of Tensor's methods by their code: many are defined under other names."""
    codes = {name: getattr(method, "__code__", None) for name, method in vars(Tensor).items()}
    times = Counter(codes.values())
    return {code: name for name, code in codes.items() if code is not None and times[code] == 1}


class Call:
    """The way from the user's code to a line of this package: its place, the function called, the tensors passed.

    frame: a frame of the package. made: a tensor that is not an operand. given: all that was passed with the tensors.
    codes: the code objects of the package's frames, innermost first. outer: the frame of the function that the user
    called; above: that of the user's code.
    """

    __slots__ = ("above", "codes", "given", "operands", "outer", "place")

    def __init__(self, frame: Any, made: Tensor | None = None) -> None:
        self.operands: list[Tensor] = []
        self.given: list[Any] = []
        self.codes: list[Any] = []
        self.outer: Any = None
        while frame is not None and is_ours(frame):
            self.codes.append(frame.f_code)
            if not self.operands:
                self.given = [v for v in arguments(frame) if v is not made]
                self.operands = tensors_in(self.given)
            self.outer, frame = frame, frame.f_back
        self.above = frame
        self.place: Place | None = None if frame is None else place_of(frame)

    def title(self) -> str:
        """The name of the function that was called."""
        return "" if self.outer is None else title_of(self.outer)
