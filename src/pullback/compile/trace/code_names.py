"""What the code of a function names: globals, what it asks modules for, and what it imports; and whose code it is."""

from __future__ import annotations

import dis
import re
import sys
import types
from collections.abc import Iterator
from threading import Event, local
from typing import Any

from ...diagnose.watch import computes, is_python
from .holders import is_a

ASKING = frozenset(("getattr", "hasattr", "vars", "dir", "__dict__", "attrgetter", "getmembers"))
"""Names by which attributes are asked for that the code does not name."""


def names_in(code: types.CodeType) -> list[str]:
    """The global names that a function, and functions defined in it, mention; without those that nobody can write: a
    tool put them there (pytest does, for each `assert`)."""
    found = dict.fromkeys(name for name in code.co_names if name.isidentifier())
    for constant in code.co_consts:
        if is_a(constant, types.CodeType):
            found.update(dict.fromkeys(names_in(constant)))
    return list(found)


def asked_in(code: types.CodeType) -> list[str]:
    """The names by which a function, and functions defined in it, may ask a module for something."""
    names = names_in(code)
    if ASKING.isdisjoint(names):
        return names
    constants = [c for part in codes_in(code) for c in part.co_consts]
    texts = [text for c in constants for text in (c if is_a(c, tuple) else (c,)) if is_a(text, str)]
    return list(dict.fromkeys([*names, *(text for text in texts if text.isidentifier())]))


def imported_in(code: types.CodeType, space: dict[str, Any]) -> list[str]:
    """The modules that a function, and functions defined in it, import, and what they might import from these."""
    found: list[str] = []
    codes = [part for part in codes_in(code) if dis.opmap["IMPORT_NAME"] in part.co_code[::2]]
    steps = [step for part in codes for step in dis.get_instructions(part) if step.opname != "EXTENDED_ARG"]
    for i, step in enumerate(steps):
        if step.opname != "IMPORT_NAME":
            continue
        level, parts = steps[i - 2].argval, steps[i - 1].argval or ()
        package = str(space.get("__package__") or space.get("__name__")).split(".")
        path = [*(package[: len(package) - level + 1] if level else ()), *filter(None, step.argval.split("."))]
        names = [".".join(path[:n]) for n in range(1, len(path) + 1)]
        found += [*names, *(f"{names[-1]}.{part}" for part in parts if names)]
    return list(dict.fromkeys(found))


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if is_a(constant, types.CodeType):
            yield from codes_in(constant)


def names_of(fn: types.FunctionType) -> list[str]:
    """The global names that a function written by the user mentions; library functions are not looked into."""
    return names_in(fn.__code__) if is_users(fn) else []


def is_users(fn: types.FunctionType) -> bool:
    # where its code stands: a decorator gives its function the module of what it wraps. Those of `os` read `os.environ`
    module = fn.__globals__.get("__name__")
    return not is_library(module) and (module == "os" or not is_python(fn.__code__))


def is_library(module: Any) -> bool:
    """Whether a module belongs to this library, or to what it computes with."""
    return computes(str(module)) or module == "builtins"


_NOT_READ = (
    *("logging", "threading", "_thread"),
    *("pullback.autograd", "pullback.compile", "pullback.interpreters", "pullback.ops", "pullback.table"),
)
"""Modules whose objects are not looked into: what loggers and locks keep decides nothing that is computed, and this
library's own objects are read as arguments of the functions that use them."""


def is_private(value: Any) -> bool:
    """Whether it is not looked into: classes of libraries and of Python, loggers and locks."""
    if is_a(value, type):
        root = str(value.__module__).partition(".")[0]
        return is_library(root) or root in sys.stdlib_module_names
    return str(type(value).__module__).startswith(_NOT_READ) and not is_a(value, (local, Event))


def as_written(label: str) -> str:
    """The name of a parameter, buffer or module of a module as a user writes it."""
    return re.sub(r"\._(?:parameters|buffers|modules)\['(\w+)'\]", r".\1", label)
