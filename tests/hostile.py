"""Hostile calls of every public function: what a user may pass by mistake, each in turn instead of a good argument.

A call is refused as documented if it raises one of `DOCUMENTED`, with a message, or a note below it, that names the
function. It may also be right: many of these values are good arguments of some functions. Anything else is listed by
`complaint`.
"""

from __future__ import annotations

import inspect
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

DOCUMENTED = (TypeError, ValueError, RuntimeError, IndexError, AssertionError, ZeroDivisionError, OverflowError)
"""The types of errors of a refused call; NotImplementedError and LinAlgError are RuntimeErrors; an OverflowError is
raised, as in torch, for a number that is an integer beyond 64 bits. Functions that
torch wrote in Python raise AssertionError (`embedding`, `multi_head_attention_forward`), and ZeroDivisionError where a
number that they divide by is 0 (`group_norm`, `lp_pool1d`)."""

SECONDS = 20
"""Longer than any of these calls takes; a loop over 2**31 numbers takes longer."""

MEMORY = 6 << 30


class Case(NamedTuple):
    """One call: the path of the function, what was changed, and how the call is made in a library."""

    name: str
    change: str
    make: Callable[[ModuleType], tuple[tuple[Any, ...], dict[str, Any]]]


class Strange:
    """Neither a number nor a tensor."""

    def __repr__(self) -> str:
        return "Strange()"


def _subclass(lib: Any) -> Any:
    class Marked(lib.Tensor):  # type: ignore[name-defined]
        pass

    return lib.ones(2, 3).as_subclass(Marked)


def _values() -> dict[str, Callable[[Any], Any]]:
    """The hostile values by what they are called: functions of the library that make them."""
    fixed = {
        "None": None,
        "a string": "abc",
        "bytes": b"abc",
        "True": True,
        "-1": -1,
        "-5": -5,
        "2.5": 2.5,
        "nan": float("nan"),
        "inf": float("inf"),
        "1j": 1j,
        "2**31": 2**31,
        "2**62": 2**62,
        "2**63": 2**63,
        "10**30": 10**30,
        "()": (),
        "[]": [],
        "{}": {},
        "a nested list": [[1.0, 2.0], [3.0, 4.0]],
        "a ragged list": [[1.0], [2.0, 3.0]],
        "(0, 0)": (0, 0),
        "(-7,)": (-7,),
        "(2**40, 2**40)": (2**40, 2**40),
        "strings": ("a", "b"),
        "a slice": slice(None),
        "...": ...,
        "a type": int,
        "a function": len,
    }
    made: dict[str, Callable[[Any], Any]] = {key: (lambda lib, v=value: v) for key, value in fixed.items()}
    return made | {
        "an object": lambda lib: Strange(),
        "array of U": lambda lib: np.array(["a", "b"]),
        "array of O": lambda lib: np.array([None, 1], object),
        "array of times": lambda lib: np.array([1, 2], "datetime64[s]"),
        "array of records": lambda lib: np.zeros(2, [("a", "f4")]),
        "array of f4": lambda lib: np.ones((2, 3), np.float32),
        "numpy scalar": lambda lib: np.float64(2.0),
        "a 0-d tensor": lambda lib: lib.tensor(2.0),
        "a 5-d tensor": lambda lib: lib.ones(1, 2, 1, 3, 1),
        "an empty tensor": lambda lib: lib.ones(0, 3),
        "a vector of 7": lambda lib: lib.ones(7),
        "ints": lambda lib: lib.tensor([[5, -7, 2]]),
        "bools": lambda lib: lib.tensor([[True, False, True]]),
        "complex": lambda lib: lib.tensor([[1j, 2.0, 0.0]]),
        "half": lambda lib: lib.ones(2, 3, dtype=lib.float16),
        "NaNs": lambda lib: lib.full((2, 3), float("nan")),
        "a list of tensors": lambda lib: [lib.ones(2), lib.ones(3)],
        "a dtype": lambda lib: lib.float64,
        "a subclass": _subclass,
    }


VALUES = _values()


def cases(name: str, args: int, names: tuple[str, ...], base: Callable[[Any], Any]) -> Iterator[Case]:
    """The hostile calls of a function with so many arguments by place, and some by name. base: makes a good call."""
    for key, value in VALUES.items():
        for i in range(args):

            def at(lib: ModuleType, i: int = i, value: Any = value) -> Any:
                given, named = base(lib)
                return (*given[:i], value(lib), *given[i + 1 :]), named

            yield Case(name, f"argument {i} is {key}", at)
        for n in names:

            def by(lib: ModuleType, n: str = n, value: Any = value) -> Any:
                given, named = base(lib)
                return given, {**named, n: value(lib)}

            yield Case(name, f"{n}= is {key}", by)
        yield Case(name, f"one more is {key}", lambda lib, value=value: ((*base(lib)[0], value(lib)), base(lib)[1]))
    for i in range(args):
        yield Case(name, f"the first {i} alone", lambda lib, i=i: (base(lib)[0][:i], {}))
    yield Case(name, "an unknown name", lambda lib: (base(lib)[0], {**base(lib)[1], "nonsense": 1}))
    yield Case(name, "ten more", lambda lib: ((*base(lib)[0], *[1] * 10), base(lib)[1]))


class Slow(BaseException):
    """Raised in a call that takes too long."""


@contextmanager
def limited() -> Iterator[None]:
    """Within it a call cannot take all memory; without this, a size of 2**31 may.

    The limit is beside what the process has mapped: what earlier tests have loaded would leave Python itself nothing.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as found:
        mapped = int(found.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _stop(number: int, frame: FrameType | None) -> None:
    raise Slow


def outcome(lib: ModuleType, fn: Callable[..., Any], case: Case) -> Any:
    """What a call returns, or the exception it raises.

    It has a context of its own: NumPy's `errstate` stays set if a signal comes as it begins or ends.
    """
    args, kwargs = case.make(lib)
    before = signal.signal(signal.SIGALRM, _stop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            return copy_context().run(fn, *args, **kwargs)
        except (Exception, Slow) as error:
            return error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def said(error: BaseException) -> str:
    """What a traceback ends with: the message of an error and its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def complaint(case: Case, found: Any) -> str:
    """What is wrong with the outcome of a call, or "" ."""
    if not isinstance(found, BaseException):
        return ""
    last = case.name.rpartition(".")[2]
    if not isinstance(found, DOCUMENTED):
        return f"{type(found).__name__}: {str(found)[:100]}"
    if last.strip("_") not in said(found):
        return f"no name in {type(found).__name__}: {said(found)[:100]}"
    return ""


def parameters(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments that a function takes by name only."""
    try:
        found = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(p.name for p in found if p.kind is p.KEYWORD_ONLY)
