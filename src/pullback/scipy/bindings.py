"""The variables that a person's function reads, as they were when a solver was called.

A derivative calls the function again, in backward, when a variable may be another: of a loop that has gone on, a
global, an attribute of ``self``. `Bindings` notes which object each variable is, and gives the function as it was:
itself where nothing was bound anew, otherwise a copy that reads what was there. Objects that are written to in place
are not copied.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import errors
from ..compile.compiled import Compiled
from ..compile.trace.code_names import names_in
from ..tensor.tensor import Tensor

_DEPTH = 6  # how far it looks from the function
_MANY = 100  # a larger container is data
_MOST = 2000  # what is looked into of a large program
_GONE = object()
_LIBRARIES = frozenset(("pullback", "numpy", "scipy", "builtins", *sys.stdlib_module_names)) - {"__main__"}

Variable = tuple[Any, Any, Any]
"""A cell, or a dict or a list with a key, and the object there."""


class Bindings:
    """What the variables of a function are now."""

    def __init__(self, fun: Any) -> None:
        self.fun = fun
        self._seen: dict[int, tuple[Any, list[Variable]]] = {}  # what was looked into, with its variables
        self._fixed: list[Variable] = []  # differentiated tensors that no copy of a function would read
        self._copies: dict[int, Any] = {}
        self._look(fun, _DEPTH)
        self._all = [v for _, variables in self._seen.values() for v in variables]

    def as_it_was(self, where: str) -> Any:
        """The function, or a copy of it that reads what it read then. where: the function that the user called.

        RuntimeError for a tensor in a class, which is not copied.
        """
        if all(_at(space, key) is value for space, key, value in self._all):
            changed = [str(key) for space, key, value in self._fixed if _at(space, key) is not value]
            if not changed:
                return self.fun
            raise RuntimeError(
                errors.message(
                    f"{where}: {changed[0]}, a tensor that the function reads and that is differentiated, is another "
                    "one now than when the solver was called",
                    do="take the derivative before it is assigned anew; or pass it in args=",
                )
            )
        return self._copy(self.fun)

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        """The arrays among the variables."""
        return [value for _, _, value in self._all if isinstance(value, np.ndarray)]

    # Looking ----------------------------------------------------------------------------------------------------------

    def _look(self, value: Any, depth: int) -> None:
        if (
            depth == 0
            or id(value) in self._seen
            or len(self._seen) > _MOST
            or isinstance(value, (Tensor, str, bytes, int, float, type))
        ):
            return
        variables = list(self._variables(value))
        held = list(_held(value))
        if variables or held:
            self._seen[id(value)] = value, variables
        for part in (*held, *[v for _, _, v in variables]):
            self._look(part, depth - 1)

    def _variables(self, value: Any) -> Iterator[Variable]:
        """What may be bound anew in a value."""
        if isinstance(value, types.FunctionType):
            yield from ((cell, None, _at(cell, None)) for cell in value.__closure__ or ())
            if not _is_library(value.__module__):
                space = value.__globals__
                yield from ((space, name, space[name]) for name in names_in(value.__code__) if name in space)
        elif type(value) is dict and len(value) <= _MANY:
            yield from ((value, key, part) for key, part in value.items())
        elif type(value) is list and len(value) <= _MANY:
            yield from ((value, i, part) for i, part in enumerate(value))
        elif _is_object(value):
            yield from ((vars(value), key, part) for key, part in vars(value).items())
            self._note_fixed(type(value))

    def _note_fixed(self, cls: type) -> None:
        """Note the differentiated tensors in a class, and those that its methods read."""
        for kind in cls.__mro__:
            if _is_library(kind.__module__):
                continue
            space: Any = vars(kind)
            for key, part in space.items():
                names = [(space, key, part)]
                if isinstance(part, types.FunctionType):
                    names = [(part.__globals__, n, part.__globals__.get(n)) for n in names_in(part.__code__)]
                self._fixed += [v for v in names if isinstance(v[2], Tensor) and v[2].requires_grad]

    # Copies -----------------------------------------------------------------------------------------------------------

    def _copy(self, value: Any) -> Any:
        """A value whose variables are what they were."""
        if id(value) not in self._seen:
            return value
        if id(value) not in self._copies:
            self._copies[id(value)] = value  # a way back to it while its copy is being made
            self._copies[id(value)] = self._made(value, self._seen[id(value)][1])
        return self._copies[id(value)]

    def _made(self, value: Any, variables: list[Variable]) -> Any:
        if isinstance(value, types.FunctionType):
            return self._function(value, variables)
        if isinstance(value, types.MethodType):
            return types.MethodType(self._copy(value.__func__), self._copy(value.__self__))
        if isinstance(value, functools.partial):
            return functools.partial(
                self._copy(value.func),
                *map(self._copy, value.args),
                **{k: self._copy(v) for k, v in value.keywords.items()},
            )
        if isinstance(value, Compiled):
            return self._copy(value.traced_function)
        if type(value) is tuple:
            return tuple(map(self._copy, value))
        if type(value) is list:
            return [self._copy(part) for _, _, part in variables]
        parts = {key: self._copy(part) for _, key, part in variables}
        if type(value) is dict:
            return parts
        made = object.__new__(type(value))
        vars(made).update(parts)
        return made

    def _function(self, value: Any, variables: list[Variable]) -> Any:
        cells = [
            types.CellType(*[] if part is _GONE else [self._copy(part)]) for s, _, part in variables if _is_cell(s)
        ]
        space = value.__globals__
        read = {key: self._copy(part) for s, key, part in variables if s is space}
        if any(space.get(key, _GONE) is not part for key, part in read.items()):
            space = {**space, **read}
        defaults = None if value.__defaults__ is None else tuple(map(self._copy, value.__defaults__))
        made = types.FunctionType(value.__code__, space, value.__name__, defaults, tuple(cells))
        made.__kwdefaults__ = value.__kwdefaults__ and {k: self._copy(v) for k, v in value.__kwdefaults__.items()}
        made.__qualname__, made.__module__ = value.__qualname__, value.__module__
        vars(made).update(vars(value))
        return made


def _held(value: Any) -> Iterator[Any]:
    """What a value holds and what stays in its place."""
    if isinstance(value, types.FunctionType):
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
    elif isinstance(value, types.MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, Compiled):
        yield value.traced_function
    elif type(value) is tuple and len(value) <= _MANY:
        yield from value


def _at(space: Any, key: Any) -> Any:
    """The object in a place now."""
    if _is_cell(space):
        try:
            return space.cell_contents
        except ValueError:  # not assigned yet
            return _GONE
    if type(space) is list:
        return space[key] if key < len(space) else _GONE
    return space.get(key, _GONE)


def _is_cell(space: Any) -> bool:
    return type(space) is types.CellType


def _is_library(module: Any) -> bool:
    return str(module).partition(".")[0] in _LIBRARIES


def _is_object(value: Any) -> bool:
    """Whether it is an object of a class of the user's that can be made with other attributes."""
    cls: Any = type(value)
    plain = cls.__new__ is object.__new__ and hasattr(value, "__dict__") and not isinstance(value, types.ModuleType)
    ours = str(cls.__module__).startswith(("pullback.nn", "pullback.scipy.sparse.linalg"))  # they hold what is read
    return plain and (ours or not _is_library(cls.__module__))


__all__ = ["Bindings"]
