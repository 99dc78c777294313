"""What depends on the line of the user's that called: where a warning points, and which error a missing name is."""

from __future__ import annotations

import dis
import re
import sys
import warnings
from types import FrameType

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


def callers_level() -> int:
    """The `stacklevel` for a warning of the calling function to point at the code that uses the library.

    NumPy's functions in Python are no code of the user's.
    """
    libraries = ("pullback.", "numpy.")
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(libraries):
        frame, level = frame.f_back, level + 1
    return level


FIRST: dict[str, tuple[str, int]] = {}
"""The line that was told each text of `tell` first."""


def tell(text: str, level: int) -> None:
    """Warn of a line that is at fault, by a text that stays the same for many lines.

    The first line in a process is told all of it, every other one its first sentence, and where the whole was told.
    level: the `stacklevel` of the line, as the caller sees it.
    """
    frame = sys._getframe()
    for _ in range(level):
        frame = frame.f_back or frame  # as `warnings.warn` does where there are not so many
    place = frame.f_code.co_filename, frame.f_lineno
    file, line = first = FIRST.setdefault(text, place)
    if first != place:
        sentence = re.split(r"[.]\s", text, maxsplit=1)[0]
        text = f"{sentence}: what to do was said for {file}:{line}."
    warnings.warn(text, stacklevel=level + 1)


class WarnAlways:
    """Whether what warns once in a process warns each time; `set_warn_always` says it."""

    on = False


def absent(module: str, text: str) -> AttributeError | ImportError:
    """The error of a module's ``__getattr__``: an ImportError where the user's line is ``from module import name``.

    Python has words of its own for an AttributeError there, and hides those of `text`. Where it asks, all else that
    `name` may be has been tried, a module of a package among it.

    >>> import pullback
    >>> try:
    ...     from pullback import jit
    ... except ImportError as error:
    ...     print(str(error).splitlines()[0])
    module 'pullback' has no attribute 'jit'.
    """
    frame: FrameType | None = sys._getframe(1)
    inside = True  # one `__getattr__` of ours may ask another
    while frame is not None and inside:
        if frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
            return ImportError(text, name=module)
        inside = str(frame.f_globals.get("__name__")).partition(".")[0] == "pullback"
        frame = frame.f_back
    return AttributeError(text)
