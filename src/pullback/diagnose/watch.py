"""Watches a function while it runs: the code that begins to run, and calls of functions that give what they like.

The hook is Python's own for profilers, which sees every call in this thread; a profiler that was there is put back
afterwards, and one written in Python sees the calls as well.
"""

from __future__ import annotations

import gc
import os
import sys
import sysconfig
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from .. import errors
from ..tensor.modes import thread
from .places import formatted, is_ours, place_of

_PYTHON = (*{sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")}, "<frozen ")
_INSTALLED = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"
COMPUTES = {"numpy", "scipy", "cupy", "cupyx", "pullback"}
"""The packages to compute with. Their functions depend on their arguments, but for random numbers, whose state is
compared. This library is named for the methods that Python writes for its classes, which are in no file."""
_RESTORING: set[types.CodeType] = set()
_ON_THE_WAY = ("_getframe", "getrefcount", "id", "hash", "get_ident", "__import__")
"""What Python's library asks for on the way."""
_ERRORS = os.path.dirname(errors.__file__) + os.sep


def is_python(code: types.CodeType) -> bool:
    """Whether code belongs to Python's own library."""
    file = code.co_filename
    return file.startswith(_PYTHON) and not any(part in file for part in _INSTALLED)


def is_computing(frame: types.FrameType) -> bool:
    """Whether the code of a frame is that of a package to compute with: NumPy, SciPy, CuPy, or this library."""
    return computes(str(frame.f_globals.get("__name__")))


def computes(module: str) -> bool:
    """Whether a module is one to compute with."""
    return module.partition(".")[0] in COMPUTES or module in COMPUTES


def _is_passed(frame: types.FrameType) -> bool:
    """Whether a function that asks for something does so for whoever called it: in Python's library, or a package that
    is installed. This library, wherever it is installed, asks on its own account, but for the room of its errors."""
    file = frame.f_code.co_filename
    return file.startswith(_ERRORS) if is_ours(frame) else is_python(frame.f_code) or any(p in file for p in _INSTALLED)


def restores(function: Any) -> Any:
    """Say that a function calls code of the user's with everything as it was at first, also if it has changed since.

    A decorator. Code that runs in such a call does not count as met.
    """
    _RESTORING.add(function.__code__)
    return function


_WITHOUT: set[object] = set()  # who is within, of all threads
_ONE_BY_ONE = threading.RLock()
_collected = True


@contextmanager
def without_collector() -> Iterator[None]:
    """Within it the collector does not run, so that whoever watches the collector is not called.

    The last thread to leave has it run again.
    """
    global _collected
    mine = object()
    try:
        with _ONE_BY_ONE:
            if not _WITHOUT:
                _collected = gc.isenabled()
            _WITHOUT.add(mine)
            gc.disable()
        yield
    finally:
        with _ONE_BY_ONE:
            if mine in _WITHOUT:
                _WITHOUT.discard(mine)
                if _collected and not _WITHOUT:
                    gc.enable()


class Watch:
    """A context in which calls are watched.

    began: called with the frame of each code that begins to run, once, if it is the user's and none of `known`.
    depends_on, setting_of: what a function in C, and one in Python by its frame, depends on besides its arguments; such
    a call is refused with its line. handed_on: the function in C that code takes to hand it on to others, what it
    depends on, and the line; it is refused where that code begins to run. error: the class of what is raised. `problem`
    is the last that was refused, also if the function caught it. met: whether code of the user's has run since
    `begin_again` was called, other than in calls of functions that put everything back (`restores`).
    """

    def __init__(
        self,
        began: Callable[[types.FrameType], None],
        known: Iterable[types.CodeType],
        depends_on: Callable[[Any], str],
        setting_of: Callable[[types.FrameType], str],
        error: type[Exception],
        handed_on: Callable[[types.FrameType], tuple[Any, str, int] | None],
    ) -> None:
        self._depends_on, self._setting_of = depends_on, setting_of
        self._began, self._error, self._handed_on = began, error, handed_on
        # By identity, for the hash of code reads all of it. The code is held, so that no other takes its place.
        self._known: dict[int, types.CodeType] = {id(code): code for code in known}
        self._met: dict[int, types.CodeType] = {}
        self._seen: dict[int, types.CodeType] = {}  # in calls that put everything back
        self._ours: dict[int, tuple[bool, types.CodeType]] = {}
        self._calling: Any = None  # the function in C that was called last, until something else happens
        self.problem: Exception | None = None
        self.met = False

    def begin_again(self) -> None:
        """Take code that has run before for code that runs for the first time."""
        self._met, self._seen, self.met = {}, {}, False

    def __enter__(self) -> Watch:
        self._before = cast(Any, sys.getprofile())
        self._as_well = self._before if callable(self._before) else None
        self._calls_before = thread.modes.unseen
        try:
            if self._before is not None and self._as_well is None:
                self._before.disable()
            self._outside = cast(Any, sys._getframe(1))
            sys.setprofile(self._see)
            thread.modes.unseen = self._unseen if self._as_well is None else None
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        thread.modes.unseen = self._calls_before
        sys.setprofile(None)
        self._outside = None  # with all that its variables hold
        if self._as_well is not None:
            sys.setprofile(self._as_well)
        elif self._before is not None:
            self._before.enable()

    def _unseen(self, work: Callable[..., Any], *args: Any) -> Any:
        """The result of ``work(*args)``, code of this library alone, whose calls are not watched: there are many."""
        try:
            thread.modes.unseen = None
            sys.setprofile(None)
            return work(*args)
        finally:
            sys.setprofile(self._see)
            thread.modes.unseen = self._unseen

    def _see(self, frame: types.FrameType, event: str, arg: Any) -> None:
        if self._as_well is not None:
            self._as_well(frame, event, arg)
        if event == "c_call":
            if not self._is_ours(frame):
                why = self._depends_on(arg)
                if why:
                    self._refuse(frame, arg, why)
        elif event == "call":
            if self._calling is hash and frame.f_code.co_name == "__hash__" and is_ours(frame):
                self._refuse(frame.f_back, hash, "where an object lies in memory")
            if id(frame.f_code) not in self._met:
                self._meet(frame)
        self._calling = arg if event == "c_call" else None

    def _meet(self, frame: types.FrameType) -> None:
        """Look at the frame of code that runs for the first time."""
        code = frame.f_code
        if (why := self._setting_of(frame)) and frame.f_back is not None:
            self._refuse(frame.f_back, frame.f_globals[code.co_name], why)
            return
        if self._is_ours(frame) or is_python(code):
            self._met[id(code)] = code
            return
        if not self.met and self._is_restored(frame):  # it may be met again, in a call of another kind
            if id(code) in self._seen:
                return
            self._seen[id(code)] = code
        else:
            self._met[id(code)] = code
            self.met = True
        if not (_is_passed(frame) or self._is_imported(frame)) and (found := self._handed_on(frame)) is not None:
            self._refuse(frame, *found)
        if id(code) not in self._known and not self._is_imported(frame):
            try:
                self._began(frame)
            except self._error as error:
                self.problem = error
                raise

    def _is_restored(self, frame: Any) -> bool:
        while frame is not None and frame is not self._outside:
            if frame.f_code in _RESTORING:
                return True
            frame = frame.f_back
        return False

    def _is_ours(self, frame: types.FrameType) -> bool:
        """Whether the code of a frame belongs to this library, or to what it computes with."""
        code = frame.f_code
        found = self._ours.get(id(code))
        if found is None:
            name = str(frame.f_globals.get("__name__"))
            python = code.co_filename.startswith("<frozen importlib") or name.startswith("namedtuple_")
            found = self._ours[id(code)] = is_ours(frame) or is_computing(frame) or python, code
        return found[0]

    def _is_imported(self, frame: Any) -> bool:
        """Whether a frame runs because a module is imported, which happens once in any case."""
        while frame is not None and frame is not self._outside:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    def _refuse(self, frame: Any, function: Any, why: str, line: int | None = None) -> None:
        name = getattr(function, "__qualname__", repr(function))
        at = frame
        while at.f_back is not None and _is_passed(at):
            at = at.f_back
        if self._is_ours(at) or self._is_imported(frame):  # it asked on its own account
            return
        if (name in _ON_THE_WAY and at is not frame) or (name == "hash" and frame.f_code.co_name == "__hash__"):
            return
        (file, at_line, code), done = place_of(at), "called" if line is None else "handed on"
        self.problem = self._error(
            f"compile: {name}() is {done}, which depends on {why} and not on its arguments alone: it would be called "
            f"once and not in every call\n{formatted([(file, line or at_line, code)])}"
            "  What to do: call it outside, and pass what it gives as an argument; or let such a function run as it "
            "is written, with fallback=True."
        )
        raise self.problem
