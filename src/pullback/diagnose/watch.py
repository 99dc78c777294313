"""Watches a function while it runs: the code that begins to run, and calls of functions that give what they like.

The hook is Python's own for profilers, which sees every call in this thread; a profiler that was there is put back
afterwards, and one written in Python sees the calls as well.
"""

from __future__ import annotations

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
_PASSED = (*_INSTALLED, f"{os.sep}pullback{os.sep}errors.py")
_COMPUTES = ("numpy", "scipy")
"""Their functions depend on their arguments, but for random numbers, whose state is compared."""
_ON_THE_WAY = ("_getframe", "getrefcount", "id", "get_ident")
"""What Python's library asks for on the way."""


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

    began: called with the frame of each code that begins to run, once, if it is the user's and none of `known`.
    depends_on, setting_of: what a function in C, and one in Python by its frame, depends on besides its arguments; such
    a call is refused with its line. error: the class of what is raised. `problem` is the last that was refused, also
    if the function caught it.
    """

    def __init__(
        self,
        began: Callable[[types.FrameType], None],
        known: Iterable[types.CodeType],
        depends_on: Callable[[Any], str],
        setting_of: Callable[[types.FrameType], str],
        error: type[Exception],
    ) -> None:
        self._depends_on, self._setting_of = depends_on, setting_of
        self._began, self._seen, self._error = began, set(known), error
        self._ours: dict[types.CodeType, bool] = {}
        self._calling: Any = None  # the function in C that was called last, until something else happens
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
        calling, self._calling = self._calling, arg if event == "c_call" else None
        if event == "c_call":
            if not self._is_ours(code, frame):
                why = self._depends_on(arg)
                if why:
                    self._refuse(frame, arg, why)
        elif event == "call" and calling is hash and code.co_name == "__hash__" and is_ours(frame):
            self._refuse(frame.f_back, hash, "where an object lies in memory")
        elif event == "call" and (why := self._setting_of(frame)) and frame.f_back is not None:
            self._refuse(frame.f_back, frame.f_globals[code.co_name], why)
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
        while at.f_back is not None and (is_python(at.f_code) or any(p in at.f_code.co_filename for p in _PASSED)):
            at = at.f_back
        if self._is_ours(at.f_code, at) or self._is_imported(frame):  # it asked on its own account
            return
        if name in _ON_THE_WAY and at is not frame:
            return
        self.problem = self._error(
            f"compile: {name}() is called, which depends on {why} and not on its arguments alone: it would be called "
            f"once and not in every call\n{formatted([place_of(at)])}"
            "  What to do: call it outside, and pass what it gives as an argument; or let such a function run as it "
            "is written, with fallback=True."
        )
        raise self.problem
