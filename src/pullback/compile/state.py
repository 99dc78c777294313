"""What a function may not do while it is traced: set variables, attributes and items that outlive the call.

A program has arguments and results, and writes to tensors in place; it sets no name. What the function has set in the
call that is traced would stay as it was in every further call, so it is refused. Most of it was set in copies, which
the trace works on (`closure.py`); what was not is put back.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from ..autograd.places import formatted
from ..autograd.structure import leaves
from ..interpreters.traced import TracedTensor, TraceError
from .closure import PLAIN, Environment, as_written, content, equal, is_object, names_of

_MISSING = object()


class _Place:
    """A container of values by their names, as it was before the call."""

    def __init__(self, label: str, holder: Any, form: str, copied: bool, names: Any = None) -> None:
        """label: what the user calls the holder. form: of the name of a value in it. copied: the trace has it for
        itself. names: those that are looked at; all."""
        self.label, self.holder, self.form, self.copied, self.names = label, holder, form, copied, names
        self.before = self._contents()

    def _contents(self) -> dict[Any, Any]:
        if isinstance(self.holder, types.CellType):
            return {"": content(self.holder)}
        found = dict(enumerate(self.holder)) if isinstance(self.holder, list) else dict(self.holder)
        return found if self.names is None else {k: found[k] for k in self.names if k in found}

    def changes(self) -> Iterator[str]:
        """The names of what is not as it was. What is no copy may have grown, but not by traced tensors."""
        now = self._contents()
        for name in {**self.before, **now}:
            old, new = self.before.get(name, _MISSING), now.get(name, _MISSING)
            if old is new or equal(old, new):
                continue
            counted = isinstance(old, PLAIN) and isinstance(new, PLAIN)
            if self.copied or counted or any(isinstance(v, TracedTensor) for v in leaves(new)):
                yield as_written(self.form.format(self.label, name))

    def put_back(self) -> None:
        """What was there before."""
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
    """What can be reached from a function that is about to be traced, and from its arguments."""

    def __init__(self, fn: Any, environment: Environment, made: dict[int, Any], arguments: Any) -> None:
        """made: what the trace uses in the place of others, by their ids."""
        self._code = getattr(getattr(fn, "__func__", fn), "__code__", None)
        self._places: list[_Place] = []
        for value in environment.reached():
            used = made.get(id(value), value)
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
            add(_Place(label, vars(value), "{0}.{1}", copied))

    def _note_arguments(self, part: Any, label: str = "") -> None:
        """Lists and dicts among the arguments: `part` of them."""
        if isinstance(part, (dict, list)) and label:
            self._note(label, part, True)
        if isinstance(part, (dict, list, tuple)):
            for value in part.values() if isinstance(part, dict) else part:
                self._note_arguments(value, label or "an argument")

    def changed(self) -> TraceError | None:
        """Put back what was set, and the error that says so, if anything was."""
        found = [(name, place) for place in self._places for name in place.changes()]
        for _, place in found:
            place.put_back()
        if not found:
            return None
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
