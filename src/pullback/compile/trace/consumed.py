"""What stands, while a function is traced, for things from outside whose use cannot be part of a program: iterators,
functions in C that are not known, and pointers. Each refuses to be used, with the line.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable
from typing import Any

from ...interpreters.traced import TraceError, refused
from .holders import contents, is_a

METHODS = (types.BuiltinFunctionType, types.MethodWrapperType)


class Consumed:
    """Stands for an iterator from outside while a function is traced: what it gives depends on who asked before."""

    def __init__(self, label: str) -> None:
        self._label = label

    def _refuse(self, *args: Any) -> Any:
        raise of_iterator(self._label)

    __iter__ = __next__ = __len__ = __getitem__ = __call__ = __enter__ = _refuse

    def __getattr__(self, name: str) -> Any:
        raise of_iterator(self._label)


class Unseen:
    """Stands for a function of a module in C that is not known, or a pointer, while a function is traced."""

    def __init__(self, label: str) -> None:
        self._label = label

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise refused(
            f"{self._label or 'a function in C'} is used, a function in C or a pointer: what it gives depends on "
            "something that is not known",
            "use it in the forward of a Function, which a program calls as it is; or outside, and pass what it gives",
        )

    __call__ = __getitem__ = __setitem__ = __bool__ = _refuse

    def __getattr__(self, name: str) -> Any:
        return self._refuse()


def of_iterator(label: str) -> TraceError:
    return refused(
        f"{label or 'an iterator from outside'} is an iterator: what it gives next would be the same in every call",
        "call next() outside, and pass what it gives",
    )


def is_iterator(value: Any) -> bool:
    """Whether it is one, or a method of one: what it gives is not to be had twice."""
    if is_a(value, METHODS):
        value = value.__self__
    return hasattr(type(value), "__next__") and not is_a(value, weakref.ProxyTypes)


def first_iterator(named: Iterable[tuple[str, Any]]) -> str | None:
    """The name of the first iterator whose state cannot be looked at; None if there is none."""
    return next((name for name, value in named if is_iterator(value) and contents(value) is None), None)
