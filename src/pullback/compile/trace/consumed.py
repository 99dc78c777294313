"""What stands, while a function is traced, for things from outside whose use cannot be part of a program: iterators,
functions in C that are not known, pointers, and functions that keep what they gave. Each refuses to be used, with
the line.
"""

from __future__ import annotations

import dis
import types
import weakref
from collections.abc import Iterable
from typing import Any

from ...diagnose.places import Place
from ...interpreters.traced import TraceError, refused
from .holders import contents, is_a

METHODS = (types.BuiltinFunctionType, types.MethodWrapperType)


class _StandIn:
    """Stands for something from outside while a function is traced. It has a label, and refuses to be used."""

    def __init__(self, label: str) -> None:
        self._label = label

    def _error(self) -> TraceError:
        raise NotImplementedError

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise self._error()

    def __getattr__(self, name: str) -> Any:
        raise self._error()


class Consumed(_StandIn):
    """Stands for an iterator: what it gives depends on who asked before."""

    def _error(self) -> TraceError:
        return of_iterator(self._label)

    __iter__ = __next__ = __len__ = __getitem__ = __call__ = __enter__ = _StandIn._refuse


class Unseen(_StandIn):
    """Stands for a function of a module in C that is not known, or a pointer."""

    def _error(self) -> TraceError:
        return refused(
            f"{self._label or 'a function in C'} is used, a function in C or a pointer: what it gives depends on "
            "something that is not known",
            "use it in the forward of a Function, which a program calls as it is; or outside, and pass what it gives",
        )

    __call__ = __getitem__ = __setitem__ = __bool__ = _StandIn._refuse


class Kept(_StandIn):
    """Stands for a function that keeps what it gave, made of tensors (functools.cache)."""

    def _error(self) -> TraceError:
        return refused(
            f"{self._label}() keeps what it gave (functools.cache) and is made of tensors: what is traced would be "
            "kept as well",
            "call it outside, and pass what it gives",
        )

    __call__ = _StandIn._refuse


def of_iterator(label: str, place: Place | None = None) -> TraceError:
    """The error about the use of an iterator, where it is used, or at the place in the code that names it."""
    return refused(
        f"{label or 'an iterator from outside'} is an iterator: what it gives next would be the same in every call",
        "call next() outside, and pass what it gives",
        place=place,
    )


def is_iterator(value: Any) -> bool:
    """Whether it is one, or a method of one: what it gives is not to be had twice."""
    if is_a(value, METHODS):
        value = value.__self__
    return hasattr(type(value), "__next__") and not is_a(value, weakref.ProxyTypes)


def first_iterator(named: Iterable[tuple[str, Any]]) -> str | None:
    """The name of the first iterator whose state cannot be looked at; None if there is none."""
    return next((name for name, value in named if is_iterator(value) and contents(value) is None), None)


def last_name(label: str) -> str:
    """The name at the end of a label, by which code asks for what it labels."""
    return label.rpartition(".")[2].partition("[")[0]


def place_naming(codes: Iterable[types.CodeType], label: str) -> Place | None:
    """The first line of some functions that names what has a label; None if none does."""
    name = last_name(label)
    found = [
        (code.co_filename, step.positions.lineno, code.co_name)
        for code in codes
        for step in dis.get_instructions(code)
        if step.argval == name and step.positions is not None and step.positions.lineno is not None
    ]
    return min(found, default=None)
