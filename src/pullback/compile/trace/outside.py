"""What functions give that depends on more than their arguments, by their modules and names.

A function in C is known by its module: most depend on their arguments alone. Any other is refused with its line:
clocks, random numbers, files, the environment, and modules that are not known; and functions in Python that give a
setting.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Iterable
from typing import Any

from ...diagnose.places import formatted
from ...diagnose.watch import is_python
from ...errors import is_of_pytorch
from ...interpreters.traced import TraceError
from .consumed import place_naming
from .holders import is_a

_KNOWN = frozenset(
    "builtins math cmath numpy scipy operator itertools functools collections re sre string struct copy types typing "
    "enum weakref abc decimal fractions numbers datetime json bisect heapq array contextlib dataclasses inspect ast "
    "warnings sys contextvars threading thread tokenize codecs imp unicodedata binascii zlib hashlib md5 sha1 sha2 "
    "blake2 statistics pickle suggestions symtable opcode stat genericpath posixpath posix".split()
)
"""Modules in C, or with a part in C, whose functions depend on nothing else than their arguments."""
_REFUSED = {
    **dict.fromkeys((("builtins", "print"), ("builtins", "input"), ("builtins", "open")), "files and the terminal"),
    ("builtins", "globals"): "all names of a module",
    **dict.fromkeys((("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today")), "the time"),
    **dict.fromkeys((("posix", "urandom"), ("posix", "getrandom")), "random numbers"),
    ("functools", "cache_info"): "earlier calls",
    **dict.fromkeys((("builtins", "id"), ("builtins", "hash")), "where an object lies in memory"),
    **dict.fromkeys((("contextvars", "set"), ("contextvars", "reset")), "the context"),
    **dict.fromkeys([("thread", name) for name in ("locked", "get_ident", "get_native_id", "_count")], "other threads"),
    **dict.fromkeys([("sys", f"get{name}") for name in (
        "recursionlimit", "switchinterval", "_int_max_str_digits", "refcount", "allocatedblocks"
    )], "the interpreter"),
    ("sys", "_getframe"): "who calls",
    ("decimal", "getcontext"): "settings",
    ("builtins", "__import__"): "what has been imported",
    **dict.fromkeys((("pickle", "load"), ("pickle", "loads")), "what is found under the names that are unpickled"),
}  # fmt: skip
_PURE = frozenset(("fspath", "_path_normpath", "_path_splitroot", "_path_splitroot_ex", "strerror"))
"""Functions of the operating system that depend on their arguments alone."""
_SETTINGS = frozenset(
    "geterr get_printoptions initial_seed get_num_threads is_anomaly_enabled is_anomaly_check_nan_enabled load "
    "getlocale current_thread active_count main_thread enumerate".split()
)
"""Functions in Python that give what is set elsewhere: of NumPy, this library, and `threading`."""
_TOLD = frozenset("time random os posix".split())
"""Modules whose functions in C are not to be handed on."""
_OF_CALLERS = frozenset("inspect.currentframe inspect.stack traceback.extract_stack traceback.format_stack".split())
"""Functions in Python that look at the functions that are running."""
_REASONS = {
    "time": "the time",
    "random": "random numbers",
    "io": "files and the terminal",
    "locale": "settings",
    "os": "the environment",
}


def setting_of(frame: types.FrameType) -> str:
    """What the function in Python of a frame depends on besides its arguments; "" if it gives no setting."""
    module, name = str(frame.f_globals.get("__name__")), frame.f_code.co_name
    caller = frame.f_back
    if module in ("inspect", "traceback", "importlib") and caller is not None and not is_python(caller.f_code):
        if f"{module}.{name}" in _OF_CALLERS:
            return "who calls"
        if name == "import_module" and frame.f_locals["name"] not in caller.f_code.co_consts:
            return "what has been imported"  # a name that stands in the code was looked at
    if module.endswith("core.arrayprint") and name in frame.f_globals and not name.endswith("_dispatcher"):
        return "how NumPy is told to print arrays"
    function: Any = frame.f_globals.get(name) if name in _SETTINGS else None
    known = function is not None and getattr(inspect.unwrap(function), "__code__", None) is frame.f_code
    return "settings" if known and module.partition(".")[0] in ("numpy", "pullback", "threading", "locale") else ""


def handed_on(frame: types.FrameType) -> tuple[Any, str, int] | None:
    """The first function in C that code takes without calling it at once, and what it depends on besides its arguments,
    with the line; None if there is none.

    Whoever it is handed to may be a function in C, such as `map` or `functools.partial`, whose calls nobody sees.
    """
    code, space = frame.f_code, frame.f_globals
    named = [space.get(name) for name in code.co_names]
    if not any((isinstance(v, types.ModuleType) and v.__name__ in _TOLD) or _depends(v) for v in named):
        return None
    value: Any = None
    called, line = False, code.co_firstlineno
    for step in dis.get_instructions(code):
        flag = bool((step.arg or 0) & 1)
        if step.opname == "LOAD_GLOBAL":
            value, called = space.get(step.argval), flag
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(value, types.ModuleType):
            called |= step.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and flag)
            value = vars(value).get(step.argval)
        elif step.opname != "EXTENDED_ARG":
            if not called and step.opname != "PUSH_NULL" and (why := _depends(value)):
                return value, why, line
            value = None
        if step.positions is not None and step.positions.lineno is not None:
            line = step.positions.lineno
    return None


def _depends(value: Any) -> str:
    """What a function in C of Python's depends on: the time, random numbers, the process; "" for anything else."""
    return depends_on(value) if isinstance(value, types.BuiltinFunctionType) and _root(value) in _TOLD else ""


def _root(function: Any) -> str:
    return str(getattr(function, "__module__", "")).partition(".")[0]


@functools.cache
def _of_module(root: str, name: str) -> str:
    root = root.strip("_")
    if root == "posix" and (root, name) not in _REFUSED:
        return "" if name in _PURE else "files and the process"
    why = _REFUSED.get((root, name))
    if why is None and root not in _KNOWN:
        why = _REASONS.get(root, "something that is not known")
    return why or ""


def is_unseen(value: Any) -> bool:
    """Whether nobody sees what is done with an object, and what it gives is not known: a function of ``ctypes``, or of
    a class in C of another module that is not known; a `functools.partial` of a clock; or a pointer of ``ctypes``."""
    kind = type(value)
    if issubclass(kind, functools.partial) and _depends(value.func):
        return True
    if any(base.__module__ == "_ctypes" and base.__name__.endswith(("FuncPtr", "Pointer")) for base in kind.__mro__):
        return True
    if issubclass(kind, type) or not callable(value):
        return False
    base = next(base for base in kind.__mro__ if "__call__" in vars(base))
    roots = [str(getattr(part, "__module__", "")).partition(".")[0].strip("_") for part in (base, value)]
    known = roots[0] in _KNOWN or "pullback" in roots or not {"numpy", "scipy"}.isdisjoint(roots)
    return not known and isinstance(vars(base)["__call__"], types.WrapperDescriptorType)


def depends_on(function: Any) -> str:
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


def refuse_of_pytorch(value: Any, codes: Iterable[types.CodeType], label: str) -> None:
    """Raise if it is a user's class that is derived from PyTorch's `Function`, with the line that names it: as it is
    written, the function would be wrong as well.
    """
    if is_a(value, type) and is_of_pytorch(value) and not value.__module__.startswith("torch."):
        place = place_naming(codes, label)
        raise TraceError(
            f"compile: {value.__name__} is derived from PyTorch's own Function, whose backward is never called for our "
            f"Tensors\n{formatted([place] if place else [])}"
            "  What to do: write `from pullback.autograd import Function`."
        )
