"""Tensor's methods from operations: methods, operators, and their in-place twins.

An entry of the table says that it is a method, and under which names. `enter_methods` is the only place where the class
gets them: once all operations of `ops` are entered, and again after those that are loaded later.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import errors
from ..tensor.tensor import Tensor, extend
from .entry import METHODS, NAMES, TABLE
from .inplace import operator_of, twin_of


def enter_methods() -> None:
    """Give Tensor the methods of all operations that were entered since the last call, then their twins."""
    extend(METHODS)
    METHODS.clear()
    _enter_twins()


def _enter_twins() -> None:
    """Publish the in-place twin of every entry that has one, under each of its names: as a method and a function."""
    for op in list(TABLE.values()):
        wanted = op.kind == "elementwise" if op.about.inplace is None else op.about.inplace
        names = [op.name, *op.about.also.split()]
        for name in names if wanted else []:
            method = None if "." in name else getattr(Tensor, name, None)
            if method is not None and callable(wanted):
                method = wanted
            if method is not None and not hasattr(Tensor, f"{name}_"):
                twin = twin_of(op, name, method)
                extend({f"{name}_": twin})
                NAMES[""][f"{name}_"] = twin
        if op.written_by and not hasattr(Tensor, f"__{op.written_by}__"):
            extend({f"__{op.written_by}__": operator_of(getattr(Tensor, f"{op.name}_"))})


class Counted(int):
    """A number of elements, as it is an attribute of arrays, which is called as the method that it is of a Tensor."""

    _call: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call[0](self._call[1], *args, **kwargs)

    def __reduce__(self) -> Any:
        return int, (int(self),)


class CountedMethod:
    """A method that is of a tensor a `Counted`, and of the class the function."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __get__(self, t: Any, kind: Any = None) -> Any:
        if t is None:
            return self._method
        found = Counted(t._data.size)
        found._call = self._method, t
        return found


def counted(cls: type, name: str) -> None:
    """Have a method be the number of elements as well: ``x.size`` beside ``x.size()`` and ``x.size(0)``."""
    setattr(cls, name, CountedMethod(getattr(cls, name)))


def for_own_kind(cls: type, names: str) -> None:
    """Have these methods of a class refuse an object of another class, as in ``Tensor.dim([1.0])``.

    PyTorch's are of C, which refuse it. A look at each call would cost too much here: the AttributeError that comes of
    it is told as what it is.
    """
    for name in names.split():
        setattr(cls, name, _for_own_kind(cls, name, getattr(cls, name)))


def other_kind(cls: type, name: str, found: Any) -> TypeError:
    """The error of a method of a class that is called for an object of another class."""
    text = f"descriptor {name!r} for {cls.__name__!r} objects doesn't apply to a {type(found).__name__!r} object"
    return TypeError(errors.message(text, expected=f"a {cls.__name__}", found=errors.describe(found)))


def _for_own_kind(cls: type, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    if method.__code__.co_argcount == 1 and not method.__code__.co_kwonlyargcount:  # the faster form

        @functools.wraps(method)
        def call(self: Any) -> Any:
            try:
                return method(self)
            except AttributeError:
                if isinstance(self, cls):
                    raise
                raise other_kind(cls, name, self) from None

        return errors.called(call, name)

    @functools.wraps(method)
    def call_with(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except AttributeError:
            if isinstance(self, cls):
                raise
            raise other_kind(cls, name, self) from None

    return errors.called(call_with, name)
