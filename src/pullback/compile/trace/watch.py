"""Watches a function while it is traced: what its code names, and which functions of Python and of C it calls.

A trace runs the function once, so what it reads must be guarded and what it calls must give the same again. Names are
looked at when the code that has them begins to run. A call of a function in C that is not known to depend on its
arguments alone is refused with its line: clocks, random numbers, files, the environment. The hook is Python's own for
profilers, which sees every call in this thread; a profiler that was there is put back afterwards.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import sysconfig
import types
from typing import Any

from ...diagnose.places import formatted, is_ours, place_of
from ...interpreters.traced import TraceError
from .closure import Environment
from .mutations import State

_PYTHON = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})
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


class Watch:
    """A context in which calls are watched. `problem` is the last that was refused, also if the function caught it."""

    def __init__(self, environment: Environment, state: State) -> None:
        self._environment, self._state = environment, state
        self._seen = set(environment.codes)
        self._ours: dict[types.CodeType, bool] = {}
        self.problem: TraceError | None = None

    def __enter__(self) -> Watch:
        self._before = sys.getprofile()
        if self._before is not None and not callable(self._before):
            self._before.disable()
        self._collects = gc.isenabled()
        gc.disable()  # whoever watches the collector is not called by the function
        sys.setprofile(self._see)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.setprofile(None)
        if self._collects:
            gc.enable()
        if callable(self._before):
            sys.setprofile(self._before)
        elif self._before is not None:
            self._before.enable()

    def _see(self, frame: types.FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "c_call":
            if not self._is_ours(code, frame):
                why = _refused(arg)
                if why:
                    self._refuse(frame, arg, why)
        elif event == "call" and code not in self._seen:
            self._seen.add(code)
            if not self._is_ours(code, frame) and not code.co_filename.startswith(_PYTHON):
                self._environment.visit(frame)
                self._state.note_reached()

    def _is_ours(self, code: types.CodeType, frame: types.FrameType) -> bool:
        """Whether code belongs to this library, or to what it computes with."""
        found = self._ours.get(code)
        if found is None:
            root = str(frame.f_globals.get("__name__")).partition(".")[0]
            python = code.co_filename.startswith("<frozen importlib") or root.startswith("namedtuple_")
            found = self._ours[code] = is_ours(frame) or root in _COMPUTES or python
        return found

    def _refuse(self, frame: Any, function: Any, why: str) -> None:
        name = getattr(function, "__qualname__", repr(function))
        at = frame
        while at.f_back is not None and at.f_code.co_filename.startswith(_PYTHON + _INSTALLED):
            at = at.f_back
        if self._is_ours(at.f_code, at):  # it asked on its own account
            return
        self.problem = TraceError(
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
