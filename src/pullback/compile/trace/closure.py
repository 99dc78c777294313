"""The values that a function reaches besides its arguments: tensors that it uses, and values that must not change.

Tensors become arguments of the program if they are in the function's closure, globals or defaults, in objects and
containers there (such as a module with its parameters), or in functions that it calls by name. For a trace, a copy of
the function is made with other tensors; no object of the caller is written to, so other threads see no difference.
Numbers and the like are part of the program, which is valid for as long as they are unchanged.
"""

from __future__ import annotations

import copy
import functools
import re
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...interpreters.traced import TraceError
from ...tensor.tensor import Tensor

PLAIN: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None))
"""Types whose values are part of a program."""
_DEEPEST = 24


class Environment:
    """The tensors that can be reached from a function and other roots, and their places."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.tensors: list[Tensor] = []
        self._items: list[tuple[Any, Any, Any]] = []  # (mapping, key, value)
        self._cells: list[tuple[Any, Any]] = []
        self._lists: list[tuple[Any, tuple[Any, ...]]] = []
        self._holds: dict[int, bool] = {}  # by id: whether tensors can be reached from the object
        self._kept: list[Any] = []  # kept alive, so that no id is given to another object
        self._labels: dict[int, str] = {}
        self._roots = list(roots)
        for root in self._roots:
            self._scan(root, 0, "self")

    def holds_still(self) -> bool:
        """Whether all values are still the same, in the same places."""
        for mapping, key, value in self._items:
            if mapping.get(key) is not value and not equal(mapping.get(key), value):
                return False
        for cell, value in self._cells:
            if content(cell) is not value and not equal(content(cell), value):
                return False
        return all(
            len(values) == len(held) and all(a is b or equal(a, b) for a, b in zip(values, held, strict=True))
            for values, held in self._lists
        )

    def label(self, value: Any) -> str:
        """The function's own name for an object that it reaches; "" if it does not reach it."""
        return as_written(self._labels.get(id(value), ""))

    def reached(self) -> list[Any]:
        """The functions, objects and containers that can be reached."""
        return self._kept

    # Scanning -------------------------------------------------------------------------------------------------------

    def _scan(self, value: Any, depth: int, label: str) -> bool:
        """Whether tensors can be reached from a value. The tensors are noted, and so are the values to be guarded."""
        if isinstance(value, Tensor):
            if not any(t is value for t in self.tensors):
                self.tensors.append(value)
                self._labels[id(value)] = label
            return True
        if isinstance(value, PLAIN) or id(value) in self._holds or depth > _DEEPEST:
            return self._holds.get(id(value), False)
        self._holds[id(value)] = False  # while it is being scanned: a reference back to it adds nothing
        self._kept.append(value)
        self._labels[id(value)] = label
        found = False
        for name, part in self._parts(value, label):
            found = self._scan(part, depth + 1, name) or found
        self._holds[id(value)] = found
        if isinstance(value, list) and (found or (value and all(isinstance(part, PLAIN) for part in value))):
            self._lists.append((value, tuple(value)))
        return found

    def _parts(self, value: Any, label: str) -> Iterator[tuple[str, Any]]:
        """The parts of a value, each with the function's name for it."""
        if isinstance(value, types.FunctionType):
            yield from self._parts_of_function(value)
        elif isinstance(value, types.MethodType):
            yield from ((label, value.__self__), (label, value.__func__))
        elif hasattr(value, "traced_function"):
            yield label, value.traced_function
        elif isinstance(value, functools.partial):
            yield from ((label, value.func), (label, value.args), (label, value.keywords))
        elif isinstance(value, dict):
            self._items += [(value, k, v) for k, v in value.items() if _guarded(v)]
            yield from [(f"{label}[{k!r}]", v) for k, v in value.items()]
        elif isinstance(value, (list, tuple)):
            yield from [(f"{label}[{i}]", v) for i, v in enumerate(value)]
        elif is_object(value):
            found = vars(value)
            self._items += [(found, k, v) for k, v in found.items() if _guarded(v)]
            yield from [(f"{label}.{k}", v) for k, v in found.items()]

    def _parts_of_function(self, fn: types.FunctionType) -> Iterator[tuple[str, Any]]:
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            value = content(cell)
            if _guarded(value):
                self._cells.append((cell, value))
            yield name, value
        for name in _globals_of(fn):
            value = fn.__globals__[name]
            if _guarded(value):
                self._items.append((fn.__globals__, name, value))
            yield name, value
        yield from [("a default", v) for v in fn.__defaults__ or ()]
        yield from (fn.__kwdefaults__ or {}).items()
        wrapped = fn.__dict__.get("__wrapped__")
        if wrapped is not None:
            yield "self", wrapped

    # Copying -------------------------------------------------------------------------------------------------

    def replaced(self, value: Any, by: dict[int, Tensor], made: dict[int, Any] | None = None) -> Any:
        """A copy of this value with other tensors instead of its own (found by the ids of its own)."""
        made = {} if made is None else made
        if isinstance(value, Tensor):
            return by.get(id(value), value)
        if not self._holds.get(id(value), False):
            return value
        if id(value) not in made:
            made[id(value)] = value  # a reference back to this value while its copy is being made
            made[id(value)] = self._made_again(value, by, made)
        return made[id(value)]

    def _made_again(self, value: Any, by: dict[int, Tensor], made: dict[int, Any]) -> Any:
        def again(part: Any) -> Any:
            return self.replaced(part, by, made)

        if isinstance(value, types.FunctionType):
            names = _globals_of(value)
            space = value.__globals__
            if names:
                space = {**space, **{n: again(space[n]) for n in names}}
            defaults = value.__defaults__ and tuple(again(v) for v in value.__defaults__)
            cells = value.__closure__ and tuple(_cell(again(content(c)), c) for c in value.__closure__)
            found = types.FunctionType(value.__code__, space, value.__name__, defaults, cells)
            found.__kwdefaults__ = value.__kwdefaults__ and {k: again(v) for k, v in value.__kwdefaults__.items()}
            found.__dict__.update(value.__dict__)
            return found
        if isinstance(value, types.MethodType):
            return types.MethodType(again(value.__func__), again(value.__self__))
        if hasattr(value, "traced_function"):
            return again(value.traced_function)
        if isinstance(value, functools.partial):
            return functools.partial(again(value.func), *again(value.args), **again(value.keywords))
        if isinstance(value, dict):
            mapping = copy.copy(value)  # of any class of dict
            for key, part in value.items():
                mapping[key] = again(part)
            return mapping
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(again, value))
        if isinstance(value, (list, tuple)):
            return type(value)(map(again, value))
        if isinstance(value, functools._lru_cache_wrapper):
            raise TraceError(
                f"compile: {self.label(value)}() keeps what it gave (functools.cache) and is made of tensors: what is "
                "traced would be kept as well.\n"
                "  What to do: call it outside, and pass what it gives; or let such a function run as it is written, "
                "with fallback=True."
            )
        instance = made[id(value)] = object.__new__(type(value))
        instance.__dict__.update({k: again(v) for k, v in vars(value).items()})
        return instance


def as_written(label: str) -> str:
    """The name of a parameter, buffer or module of a module as a user writes it."""
    return re.sub(r"\._(?:parameters|buffers|modules)\['(\w+)'\]", r".\1", label)


def content(cell: Any) -> Any:
    """The value in a cell of a closure; None if it is not bound yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _cell(value: Any, old: Any) -> Any:
    return old if value is content(old) else types.CellType(value)


def _names_in(code: types.CodeType) -> list[str]:
    """The global names that a function, and functions defined in it, mention."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(dict.fromkeys(_names_in(constant)))
    return list(found)


def _globals_of(fn: types.FunctionType) -> list[str]:
    """The globals that a function written by the user reads."""
    return [n for n in names_of(fn) if n in fn.__globals__]


def names_of(fn: types.FunctionType) -> list[str]:
    """The global names that a function written by the user mentions; library functions are not scanned."""
    return [] if _is_library(fn.__module__) else _names_in(fn.__code__)


def _is_library(module: Any) -> bool:
    return str(module).partition(".")[0] in ("pullback", "numpy", "scipy", "builtins")


def is_object(value: Any) -> bool:
    """Whether its attributes are scanned: an instance of a class written in Python."""
    if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, np.generic)):
        return False
    return hasattr(value, "__dict__") and type(value).__flags__ & (1 << 9) != 0


def _guarded(value: Any) -> bool:
    """Whether the program is valid for this value only."""
    return not isinstance(value, (types.ModuleType, type))


def equal(a: Any, b: Any) -> bool:
    """Whether two numbers, strings and the like are the same."""
    return type(a) is type(b) and isinstance(a, PLAIN) and a == b
