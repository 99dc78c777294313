"""Watches a function while it runs: the code that begins to run, and calls of functions in C that give what they like.

A function in C is known by its module: most depend on their arguments alone. Any other is refused with its line:
clocks, random numbers, files, the environment, and modules that are not known. The hook is Python's own for profilers,
which sees every call in this thread; a profiler that was there is put back afterwards, and one written in Python sees
the calls as well.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from .places import formatted, is_ours, place_of

_PYTHON = (*{sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")}, "<frozen ")
_INSTALLED = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"
_COMPUTES = ("numpy", "scipy")
"""Their functions depend on their arguments, but for random numbers, whose state is compared."""

_KNOWN = frozenset(
    "builtins math cmath numpy scipy operator itertools functools collections re sre string struct copy types typing "
    "enum weakref abc decimal fractions numbers datetime json bisect heapq array contextlib dataclasses inspect ast "
    "warnings sys threading thread tokenize codecs imp unicodedata binascii zlib hashlib md5 sha1 sha2 blake2 "
    "statistics pickle locale suggestions symtable opcode stat genericpath posixpath posix".split()
)
"""Modules in C, or with a part in C, whose functions depend on nothing else than their arguments."""
_REFUSED = {
    **dict.fromkeys((("builtins", "print"), ("builtins", "input"), ("builtins", "open")), "files and the terminal"),
    ("builtins", "globals"): "all names of a module",
    **dict.fromkeys((("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today")), "the time"),
    **dict.fromkeys((("posix", "urandom"), ("posix", "getrandom")), "random numbers"),
}
_REASONS = {"time": "the time", "random": "random numbers", "io": "files and the terminal", "os": "the environment"}


def is_python(code: types.CodeType) -> bool:
    """Whether code belongs to Python's own library."""
    file = code.co_filename
    return file.startswith(_PYTHON) and not any(part in file for part in _INSTALLED)


@contextmanager
def without_collector() -> Iterator[None]:
    """Within it the collector does not run, so that whoever watches the collector is not called."""
    collects = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collects:
            gc.enable()


class Watch:
    """A context in which calls are watched.

    began: called with the frame of each code that begins to run, once, if it is the user's and none of `known`. error:
    the class of what is raised. `problem` is the last that was refused, also if the function caught it.
    """

    def __init__(
        self, began: Callable[[types.FrameType], None], known: Iterable[types.CodeType], error: type[Exception]
    ) -> None:
        self._began, self._seen, self._error = began, set(known), error
        self._ours: dict[types.CodeType, bool] = {}
        self.problem: Exception | None = None

    def __enter__(self) -> Watch:
        self._before = cast(Any, sys.getprofile())
        if self._before is not None and not callable(self._before):
            self._before.disable()
        self._outside = cast(Any, sys._getframe(1))
        sys.setprofile(self._see)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.setprofile(None)
        self._outside = None  # with all that its variables hold
        if callable(self._before):
            sys.setprofile(self._before)
        elif self._before is not None:
            self._before.enable()

    def _see(self, frame: types.FrameType, event: str, arg: Any) -> None:
        if callable(self._before):
            self._before(frame, event, arg)
        code = frame.f_code
        if event == "c_call":
            if not self._is_ours(code, frame):
                why = _refused(arg)
                if why:
                    self._refuse(frame, arg, why)
        elif event == "call" and code not in self._seen:
            self._seen.add(code)
            if not self._is_ours(code, frame) and not is_python(code) and not self._is_imported(frame):
                self._began(frame)

    def _is_ours(self, code: types.CodeType, frame: types.FrameType) -> bool:
        """Whether code belongs to this library, or to what it computes with."""
        found = self._ours.get(code)
        if found is None:
            root = str(frame.f_globals.get("__name__")).partition(".")[0]
            python = code.co_filename.startswith("<frozen importlib") or root.startswith("namedtuple_")
            found = self._ours[code] = is_ours(frame) or root in _COMPUTES or python
        return found

    def _is_imported(self, frame: Any) -> bool:
        """Whether a frame runs because a module is imported, which happens once in any case."""
        while frame is not None and frame is not self._outside:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    def _refuse(self, frame: Any, function: Any, why: str) -> None:
        name = getattr(function, "__qualname__", repr(function))
        at = frame
        while at.f_back is not None and (is_python(at.f_code) or any(p in at.f_code.co_filename for p in _INSTALLED)):
            at = at.f_back
        if self._is_ours(at.f_code, at) or self._is_imported(frame):  # it asked on its own account
            return
        self.problem = self._error(
            f"compile: {name}() is called, which depends on {why} and not on its arguments alone: it would be called "
            f"once and not in every call\n{formatted([place_of(at)])}"
            "  What to do: call it outside, and pass what it gives as an argument; or let such a function run as it "
            "is written, with fallback=True."
        )
        raise self.problem


@functools.cache
def _of_module(root: str, name: str) -> str:
    root = root.strip("_")
    why = _REFUSED.get((root, name))
    if why is None and root not in _KNOWN:
        why = _REASONS.get(root, "something that is not known")
    return why or ""


def _refused(function: Any) -> str:
    """What a function in C depends on besides its arguments; "" if on nothing."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        module = function.__module__
    else:  # the class that has the method
        kind = owner if isinstance(owner, type) else type(owner)
        module = next((base for base in kind.__mro__ if function.__name__ in vars(base)), kind).__module__
    root, _, rest = str(module).partition(".")
    if root == "numpy" and rest.startswith("random"):
        return "random numbers"
    return _of_module(root, function.__name__)
