"""Where the user's code stands: the frames that are not this package's, as places, and what they call and name.

Nothing here records anything: it looks at the stack of calls when it is asked, and at source files when it tells.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._tensor import Tensor

Place = tuple[str, int, str]
"""A file, a line and the name of a function."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_ours(frame: Any) -> bool:
    """Whether a frame runs code of this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def user_frames() -> Iterator[Any]:
    """The frames of the user's code, innermost first: without those of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame):
            yield frame
        frame = frame.f_back


def place_of(frame: Any) -> Place:
    """Where a frame stands."""
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def user_place() -> list[Place]:
    """The innermost line of the user's code, alone."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return [] if frame is None else [place_of(frame)]


def user_stack() -> list[Place]:
    """Where the user's code stands, innermost last."""
    return [place_of(frame) for frame in user_frames()][::-1]


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
    """The line of the user's code that made a node, where that was recorded."""
    stack = node.metadata.get("origin")
    return stack[-1] if stack else None


def named_tensors() -> Iterator[tuple[str, Tensor]]:
    """The tensors in variables of the user's frames, innermost first: local and global ones, and attributes of self."""
    for frame in user_frames():
        for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
            if isinstance(value, Tensor):
                if not name.startswith("_"):
                    yield name, value
            elif name == "self":
                attributes = [*getattr(value, "__dict__", {}).items()]
                yield from ((f"self.{k}", v) for k, v in attributes if isinstance(v, Tensor))


def variables(matches: Callable[[Tensor], bool]) -> list[str]:
    """The names of the user's variables that hold what `matches`, each once, at most a few."""
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
    """The arguments that the function of a frame was called with, those of lists, tuples and dicts one by one."""
    code = frame.f_code
    given = frame.f_locals
    found: list[Any] = []
    count = code.co_argcount + code.co_kwonlyargcount + (code.co_flags >> 2 & 1) + (code.co_flags >> 3 & 1)
    for name in code.co_varnames[:count]:
        value = given.get(name)
        if type(value) in (tuple, list):
            found += value
        elif type(value) is dict:
            found += value.values()
        else:
            found.append(value)
    return found


def tensors_in(values: Sequence[Any], but: Tensor | None = None) -> list[Tensor]:
    """The tensors among some values, all but one."""
    return [v for v in values if isinstance(v, Tensor) and v is not but]


def title_of(frame: Any) -> str:
    """What a user calls the function of a frame: the operation, or the method."""
    # many functions are made by others, whose variables tell which operation they are
    name, given = frame.f_code.co_name, frame.f_locals
    if name == "twin":
        return f"{given.get('name')}_"
    if name == "convert":
        return f"to({given.get('dtype')})"
    maker = given.get("make")
    for told in (getattr(given.get("op"), "name", None), given.get("name"), getattr(maker, "__name__", None)):
        if isinstance(told, str) and name in ("call", "method"):
            return told
    return name if name.startswith("__") else name.strip("_")


class Call:
    """How the user's code came to a line of this package: where it stands, what it called, and with which tensors.

    frame: a frame of the package. made: a tensor that is none of the operands. codes: the code objects of the frames
    of the package, innermost first. outer: the frame of what the user called; above: that of the user's code.
    """

    __slots__ = ("above", "codes", "operands", "outer", "place")

    def __init__(self, frame: Any, made: Tensor | None = None) -> None:
        self.operands: list[Tensor] = []
        self.codes: list[Any] = []
        self.outer: Any = None
        while frame is not None and is_ours(frame):
            self.codes.append(frame.f_code)
            if not self.operands:
                self.operands = tensors_in(arguments(frame), made)
            self.outer, frame = frame, frame.f_back
        self.above = frame
        self.place: Place | None = None if frame is None else place_of(frame)

    def title(self) -> str:
        """What was called."""
        return "" if self.outer is None else title_of(self.outer)
