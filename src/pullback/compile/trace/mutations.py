"""Refuses forbidden changes while a function is traced: setting variables, attributes and items that outlive the call.

A program has arguments and results, and writes to tensors in place; it sets no name. A value set in the traced call
would keep that value in every further call, so setting it is refused. Whatever holds values is compared with what it
held before, and put back. Most such values were set in copies, which the trace works on (`closure.py`).

The first use of a `functools.cached_property` is allowed: its value does not depend on the caller. It is computed
first, uncompiled, and the trace begins again. So it does if a module was imported, which its package then has as an
attribute, or a name of this library was loaded.
"""

from __future__ import annotations

import functools
import random
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...interpreters.traced import TraceError
from ...tensor.tensor import Tensor
from .closure import Environment
from .code_names import as_written, is_library, names_of
from .consumed import Consumed
from .holders import attributes, contents, equal, is_a, is_compiled, is_object, restore
from .late import LateError

_MISSING = object()

Use = tuple[Any, str]
"""An object, and the name of one of its attributes."""


class FirstUseError(TraceError):
    """Cached properties were used for the first time while the function was traced."""

    def __init__(self, uses: list[Use]) -> None:
        self.uses = uses
        names = ", ".join(f"{type(owner).__name__}.{name}" for owner, name in uses)
        super().__init__(f"compile: {names} was computed for the first time while the function was traced")

    def computed(self) -> bool:
        """Compute them, uncompiled; return whether each has a value now."""
        for owner, name in self.uses:
            getattr(owner, name)
        return all(name in (attributes(owner) or ()) for owner, name in self.uses)


class _Place:
    """Something that holds values, as it was before the call."""

    def __init__(self, label: str, holder: Any, owner: Any = None, names: list[str] | None = None) -> None:
        """label: the user's name for it. owner: the original, if it is an object. names: of a module's dict, those
        that are looked at."""
        self.label, self.holder, self.owner, self.names = label, holder, owner, names
        self.before = self._contents()

    def _contents(self) -> dict[Any, Any]:
        if self.names is not None:
            return {k: self.holder[k] for k in self.names if k in self.holder}
        return contents(self.holder) or {}

    def first_uses(self) -> list[Use]:
        """The cached properties that have a value now and had none before."""
        if self.owner is None:
            return []
        kind = type(self.owner)
        new = [name for name in self._contents() if name not in self.before]
        return [(self.owner, n) for n in new if is_a(getattr(kind, n, None), functools.cached_property)]

    def _module(self) -> types.ModuleType | None:
        """The module whose names it holds."""
        title = self.holder.get("__name__") if type(self.holder) is dict else None
        module = sys.modules.get(title) if isinstance(title, str) else None
        return module if is_a(module, types.ModuleType) and vars(module) is self.holder else None

    def loaded(self) -> list[Use]:
        """The names that a module has now and had not before because it, or a part of it, was loaded."""
        module = self._module()
        if module is None:
            return []
        new = [(name, value) for name, value in self._contents().items() if name not in self.before]
        return [(module, name) for name, value in new if _is_loaded(module.__name__, name, value)]

    def changes(self) -> Iterator[str]:
        """The names of changed values."""
        now = self._contents()
        cached = {name for _, name in (*self.first_uses(), *self.loaded())}
        cached.add("__warningregistry__")  # where Python notes the warnings that a module has given
        for name in {**self.before, **now}:
            old, new = self.before.get(name, _MISSING), now.get(name, _MISSING)
            if old is not new and name not in cached and not equal(old, new):
                yield as_written(self._named(name))

    def _named(self, name: Any) -> str:
        if self.names is not None:
            return str(name)
        if is_a(self.holder, (types.CellType, np.ndarray, set, bytearray, Tensor)) or name == "":
            return self.label
        attribute = self._module() is not None
        attribute |= is_object(self.holder) and not is_a(self.holder, (dict, list, tuple))
        return f"{self.label}.{name}" if attribute or is_a(self.holder, type) else f"{self.label}[{name!r}]"

    def put_back(self) -> None:
        """Restore the earlier values."""
        if self.names is None:
            restore(self.holder, self.before)
            return
        for name in self.names:
            if name not in self.before:
                self.holder.pop(name, None)
        self.holder.update(self.before)


def _is_loaded(module: str, name: str, value: Any) -> bool:
    """Whether a name of a module is that of one below it; or one of this library's, for a function of its own."""
    if is_a(value, types.ModuleType):
        return sys.modules.get(f"{module}.{name}") is value
    return is_library(module) and is_a(value, types.FunctionType) and is_library(value.__module__)


class State:
    """Everything that holds values and can be reached from a function about to be traced, and from its arguments."""

    def __init__(self, environment: Environment, made: dict[int, Any], arguments: Any) -> None:
        """made: the copies that the trace uses, by the ids of the originals."""
        self._places: list[_Place] = []
        self._owners: dict[int, Any] = {}  # the original, by the id of its copy
        self._environment, self._made = environment, made
        self._noted = self._spaces = 0
        self.note_reached()
        self._note_arguments(arguments)
        self._places.append(_Place("the state of np.random", np.random.mtrand._rand))
        self._places.append(_Place("the state of random", random._inst))

    def note_reached(self) -> None:
        """Note what has been reached since this was last called, as it is now."""
        reached = self._environment.reached()
        for value in reached[self._noted :]:
            used = self._made.get(id(value), value)
            self._owners[id(used)] = value
            if type(used) is not Consumed:
                self._note(self._environment.label(value), used)
        self._noted = len(reached)
        for space, names in self._environment.spaces[self._spaces :]:
            self._places.append(_Place("", space, names=names))
        self._spaces = len(self._environment.spaces)

    def _note(self, label: str, value: Any) -> None:
        add = self._places.append
        if is_a(value, types.FunctionType):
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                add(_Place(name, cell))
            if names := names_of(value):
                add(_Place("", value.__globals__, names=names))
        elif not (is_a(value, tuple) or is_compiled(value)) and contents(value) is not None:
            owner = self._owners.get(id(value), value)
            add(_Place(label, value, owner if is_object(owner) else None))

    def _note_arguments(self, part: Any, label: str = "") -> None:
        """Lists and dicts among the arguments: `part` of them."""
        if is_a(part, (dict, list)) and label:
            self._note(label, part)
        if is_a(part, (dict, list, tuple)):
            for value in part.values() if is_a(part, dict) else part:
                self._note_arguments(value, label or "an argument")

    def first_use_in(self, error: BaseException) -> FirstUseError | None:
        """The first use of a cached property in which an error was raised, if there was one."""
        code = functools.cached_property.__get__.__code__
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is code:
                asked = trace.tb_frame.f_locals
                owner = self._owners.get(id(asked["instance"]))
                if owner is not None and asked["self"].attrname not in (attributes(owner) or ()):
                    return FirstUseError([(owner, asked["self"].attrname)])
            trace = trace.tb_next
        return None

    def set_so_far(self) -> LateError | None:
        """The error that names what was set, or None if nothing was."""
        name = next((name for place in self._places for name in place.changes()), None)
        return None if name is None else _outlives(name)

    def changed(self) -> TraceError | None:
        """Put back everything that was set; return the error that names it, or None if nothing was set."""
        found = [(name, place) for place in self._places for name in place.changes()]
        uses = [(use, place) for place in self._places for use in place.first_uses()]
        for _, place in (*found, *uses):
            place.put_back()
        if found:
            return _outlives(found[0][0])
        first = [*(use for use, _ in uses), *(use for place in self._places for use in place.loaded())]
        first += [(module, "__name__") for module in self._environment.loaded()]
        return FirstUseError(first) if first else None


def _outlives(name: str) -> LateError:
    return LateError(
        f"{name} was changed while the function was traced, but a program sets nothing that outlives a call: further "
        "calls would not change it",
        "return the new value, and set it outside; or keep it in a tensor and write to that in place (copy_(), "
        "add_()), which is part of the program; or let such a function run as it is written, with fallback=True.",
    )
