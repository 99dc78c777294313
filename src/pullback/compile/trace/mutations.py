"""Refuses forbidden changes while a function is traced: setting variables, attributes and items that outlive the call.

A program has arguments and results, and writes to tensors in place; it sets no name. A value set in the traced call
would keep that value in every further call, so setting it is refused. Most such values were set in copies, which the
trace works on (`closure.py`); the others are put back.

The first use of a `functools.cached_property` is allowed: its value does not depend on the caller. It is computed
first, uncompiled, and the trace begins again.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

from ...diagnose.places import formatted
from ...interpreters.traced import TracedTensor, TraceError
from ...tensor.nested import leaves
from .closure import PLAIN, Environment, as_written, content, equal, is_object, names_of

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
        return all(name in vars(owner) for owner, name in self.uses)


class _Place:
    """A container of values by their names, as it was before the call."""

    def __init__(self, label: str, holder: Any, form: str, copied: bool, names: Any = None, owner: Any = None) -> None:
        """label: the user's name for the holder. form: the format of a value's name. copied: the trace works on a copy.
        names: the names to check; None: all. owner: the object with these attributes."""
        self.label, self.holder, self.form, self.copied, self.names = label, holder, form, copied, names
        self.owner = owner
        self.before = self._contents()

    def _contents(self) -> dict[Any, Any]:
        if isinstance(self.holder, types.CellType):
            return {"": content(self.holder)}
        found = dict(enumerate(self.holder)) if isinstance(self.holder, list) else dict(self.holder)
        return found if self.names is None else {k: found[k] for k in self.names if k in found}

    def first_uses(self) -> list[Use]:
        """The cached properties that have a value now and had none before."""
        kind = type(self.owner)
        new = [] if self.owner is None else [name for name in self._contents() if name not in self.before]
        return [(self.owner, n) for n in new if isinstance(getattr(kind, n, None), functools.cached_property)]

    def changes(self) -> Iterator[str]:
        """The names of changed values. A container that is not a copy may have grown, but not by traced tensors."""
        now = self._contents()
        cached = {name for _, name in self.first_uses()}
        for name in {**self.before, **now}:
            old, new = self.before.get(name, _MISSING), now.get(name, _MISSING)
            if old is new or name in cached or equal(old, new):
                continue
            counted = isinstance(old, PLAIN) and isinstance(new, PLAIN)
            if self.copied or counted or any(isinstance(v, TracedTensor) for v in leaves(new)):
                yield as_written(self.form.format(self.label, name))

    def put_back(self) -> None:
        """Restore the earlier values."""
        if isinstance(self.holder, types.CellType):
            self.holder.cell_contents = self.before[""]
        elif isinstance(self.holder, list):
            self.holder[:] = self.before.values()
        else:
            for name in self.names or [*self.holder]:
                if name not in self.before:
                    self.holder.pop(name, None)
            self.holder.update(self.before)


class State:
    """The containers that can be reached from a function about to be traced, and from its arguments."""

    def __init__(self, fn: Any, environment: Environment, made: dict[int, Any], arguments: Any) -> None:
        """made: the copies that the trace uses, by the ids of the originals."""
        self._code = getattr(getattr(fn, "__func__", fn), "__code__", None)
        self._places: list[_Place] = []
        self._owners: dict[int, Any] = {}  # the original, by the id of its copy
        for value in environment.reached():
            used = made.get(id(value), value)
            self._owners[id(used)] = value
            self._note(environment.label(value), used, used is not value)
        self._note_arguments(arguments)

    def _note(self, label: str, value: Any, copied: bool) -> None:
        add = self._places.append
        if isinstance(value, types.FunctionType):
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                add(_Place(name, cell, "{0}", copied))
            if names := names_of(value):
                add(_Place("", value.__globals__, "{1}", copied, names))
        elif isinstance(value, (dict, list)):
            add(_Place(label, value, "{0}[{1!r}]", copied))
        elif is_object(value) and not (isinstance(value, tuple) or hasattr(value, "traced_function")):
            add(_Place(label, vars(value), "{0}.{1}", copied, owner=self._owners.get(id(value), value)))

    def _note_arguments(self, part: Any, label: str = "") -> None:
        """Lists and dicts among the arguments: `part` of them."""
        if isinstance(part, (dict, list)) and label:
            self._note(label, part, True)
        if isinstance(part, (dict, list, tuple)):
            for value in part.values() if isinstance(part, dict) else part:
                self._note_arguments(value, label or "an argument")

    def first_use_in(self, error: BaseException) -> FirstUseError | None:
        """The first use of a cached property in which an error was raised, if there was one."""
        code = functools.cached_property.__get__.__code__
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is code:
                asked = trace.tb_frame.f_locals
                owner = self._owners.get(id(asked["instance"]))
                if owner is not None and asked["self"].attrname not in vars(owner):
                    return FirstUseError([(owner, asked["self"].attrname)])
            trace = trace.tb_next
        return None

    def changed(self) -> TraceError | None:
        """Put back everything that was set; return the error that names it, or None if nothing was set."""
        found = [(name, place) for place in self._places for name in place.changes()]
        uses = [(use, place) for place in self._places for use in place.first_uses()]
        for _, place in (*found, *uses):
            place.put_back()
        if not found:
            return FirstUseError([use for use, _ in uses]) if uses else None
        name = found[0][0]
        code = self._code
        line = formatted([(code.co_filename, code.co_firstlineno, code.co_name)]) if code else ""
        return TraceError(
            f"compile: {name} was changed while the function was traced, but a program sets nothing that outlives a "
            f"call: further calls would not change it\n{line}"
            "  What to do: return the new value, and set it outside; or keep it in a tensor and write to that in place "
            "(copy_(), add_()), which is part of the program; or let such a function run as it is written, with "
            "fallback=True."
        )
