"""The names of public functions in errors, tracebacks and profilers: each public function has a door."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from types import CodeType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from .translation import (
    OF_ARGUMENTS,
    Elsewhere,
    LinAlgError,
    NotConverted,
    OutOfMemoryError,
    of_another_type,
    raised_here,
    stated,
)
from .words import describe, refuse_foreign

F = TypeVar("F", bound=Callable[..., Any])
_KEPT = (
    TypeError,
    NotConverted,
    ValueError,
    IndexError,
    RuntimeError,
    NotImplementedError,
    AssertionError,
    LinAlgError,
    OutOfMemoryError,
)
_PREFIX = re.compile(r"[\w.<>]+\(\):? (?!takes |got |missing )")
_NAMED = re.compile(r"[\w.<>]+\(\): ")
_OTHERS = re.compile(
    r"[\w.<>]+\(\):? (?:got an unexpected keyword argument '(\w+)'|missing \d+ required positional|takes .* given|"
    r"argument '(dim0?|axis)'.* must be int, not (?:tuple|list|NoneType)|"
    r"argument '(start_dim)'.* must be int, not str|expected (index) to be an integer Tensor)"
)
_AXES = {"dim": "axis", "axis": "axis", "dim0": "axes", "start_dim": "order", "index": "indices"}
_NAMES = {"clamp": "clip", "flatten": "ravel"}
_BEFORE = {
    "where": "numpy.sum(numpy.where(m, t, 0)) for t.sum(where=m)",
    "initial": "numpy.maximum(numpy.max(t), v) for t.max(initial=v)",
}


def rename(name: str, error: Exception, given: Iterable[Any] = (), *, keep: bool = False) -> None:
    """Write the name of a public function into an error that arose in a call of it; raise another one where the error
    is of a type that is not documented.

    It costs a call that succeeds nothing, because it is called in an ``except``. An error of the user's own code, which
    the call reached through a hook or a subclass, stays as it is. given: the arguments. keep: a message that a
    ``raise`` of ours gave is PyTorch's and stays as it is; the name stands in a note below it.
    """
    kind, given = type(error), tuple(given)
    if vars(error).get("final") or (kind not in _KEPT and kind.__module__.startswith("pullback")):
        return
    if (
        isinstance(error, (MemoryError, RuntimeError, Warning))
        and (found := Elsewhere.error(name, error, given)) is not None
    ):
        raise found from None
    if not raised_here(error):
        return
    if isinstance(error, (TypeError, AttributeError)) or "dtype" in str(error):
        refuse_foreign(name, given)
    short, text = name.rpartition(".")[2].strip("_"), str(error)
    if kind in _KEPT or (keep and isinstance(error, (KeyError, AttributeError)) and stated(error, given)):
        text = str(*error.args[:1])  # a KeyError puts it in quotes
        whole = "\n".join([text, *getattr(error, "__notes__", ())])
        named = re.search(rf"\b_*{re.escape(short)}_*\b", whole) and not text.startswith("_")
        if not named and text and not name.rpartition(".")[2].startswith("_"):  # what no user calls has no name
            if keep and stated(error):
                error.add_note(f"  In {name}().")
            elif OF_ARGUMENTS.match(text):
                error.args = (OF_ARGUMENTS.sub(f"{name}() ", text, count=1),)
            else:
                error.args = (f"{name}(): {_PREFIX.sub('', text, count=1) if _PREFIX.match(text) else text}",)
        if kind is TypeError and error.args:
            error.args = (error.args[0] + _of_numpys(short, text),)
        if text:
            return
    other = of_another_type(name, error, text, ", ".join(describe(a) for a in given))
    if other is not error:
        raise other from None


def _of_numpys(name: str, text: str) -> str:
    """What to write, where a function was given the arguments of NumPy's function of its name and has others."""
    found, function = _OTHERS.match(text), getattr(np, _NAMES.get(name, name), None)
    if found is None or "What to do" in text or not isinstance(function, type(np.var)):
        return ""
    known = inspect.signature(function).parameters
    given = next((_AXES.get(word, word) for word in found.groups() if word), None)
    if given in _BEFORE and given in known:
        return f"\n  What to do: leave it out, and do its work before or after: {_BEFORE[given]}, say."
    more = [p for p in known.values() if p.default is p.empty and p.name != given][1:]
    if given == "out" or (given or "") not in {"", *known} or (more and not given):
        return ""
    theirs, rest = function.__name__, ", ..." if more or found[0].endswith(" given") else ""
    call = f"numpy.{theirs}(t{rest}, {given}=...)" if given else f"numpy.{theirs}(t{rest})"
    return f"\n  What to do: write {call} for NumPy's function; what is called {name} here is PyTorch's."


def named(error: Exception) -> bool:
    """Whether the message of an error begins with the name of a function."""
    return any(pattern.match(str(error)) for pattern in (_NAMED, OF_ARGUMENTS))


def door(function: F, name: str = "", method: bool = False) -> F:
    """`function`, whose errors `rename` writes its name into. name: what a user calls it, if not ``__name__``."""
    name = name or function.__name__
    inside: Any = getattr(function, "__wrapped__", None)  # of a context manager, which works when its block begins
    body: Any = inside or function
    if inspect.isgeneratorfunction(body):

        @functools.wraps(body)
        def begin(*args: Any, **kwargs: Any) -> Any:
            try:
                return (yield from body(*args, **kwargs))
            except Exception as error:
                rename(name, error, (*args[method:], *kwargs.values()), keep=True)
                raise

        return cast(F, called(begin, name) if inside is None else contextmanager(begin))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            first = method and not isinstance(error, MemoryError)  # whose message looks at the graph of `self`
            rename(name, error, (*args[first:], *kwargs.values()), keep=True)
            raise

    return cast(F, called(call, name))


def doors(home: dict[str, Any] | type, names: str) -> None:
    """Give a `door` to each of these `names` in a module or a class: to functions, and to constructors."""
    if isinstance(home, type):
        for name in names.split():
            setattr(home, name, door(getattr(home, name), name, method=True))
        return
    for name in names.split():
        if isinstance(home[name], type):
            named_constructor(home[name])
        else:
            home[name] = door(home[name], name)


def named_constructor(cls: type) -> None:
    """Have the errors of the constructor of a class, and of classes that inherit it, name the class."""
    place = "__new__" if "__new__" in vars(cls) else "__init__"
    construct = getattr(cls, place)

    @functools.wraps(construct)
    def begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return construct(self, *args, **kwargs)
        except Exception as error:
            kind = self if isinstance(self, type) else type(self)
            rename(kind.__name__, error, (*args, *kwargs.values()), keep=True)
            raise

    called(begin, cls.__name__)
    setattr(cls, place, staticmethod(begin) if place == "__new__" else begin)


class Called(NamedTuple):
    """The notes about a function, by its code: its name in messages, and whether it acts on each element alone."""

    name: str
    elementwise: bool


CALLED: dict[CodeType, Called] = {}
"""The notes that `called` made about functions, by their code."""


def called(function: F, name: str, *, elementwise: bool = False) -> F:
    """Give a function the name `name` in messages, tracebacks and profilers, and return it.

    It is for functions made by another function, as all operations are: they share one name and one code, so each gets
    a separate code here. elementwise: the function is an operation that acts on each element alone.
    """
    code = function.__code__.replace(co_name=name, co_qualname=name)
    function.__code__ = code
    CALLED[code] = Called(name, elementwise)
    return function
