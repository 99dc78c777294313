"""One program, two libraries: what it does with pullback, and with the oracle, PyTorch, in a form that compares.

A program is a function of the library, `pullback` or `torch`, that returns what it observed: tensors, nodes, numbers,
strings, and tuples, lists and dicts of them. `outcome` makes plain values of that; of an exception it keeps the type.
Nothing here imports torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback

Program = Callable[[Any], Any]


def plain(value: Any, rounded: bool = True) -> Any:
    """A value of either library without the library: a tensor as shape, dtype, requires_grad and elements.

    rounded: elements have five digits, so that what differs by rounding only is equal.
    """
    if hasattr(value, "grad_fn"):
        narrow = str(value.dtype).endswith("bfloat16")  # torch makes no array of it
        elements = np.asarray((value.float() if narrow else value).detach().numpy())
        if rounded and elements.dtype.kind in "fc":
            elements = np.array([float(f"{z:.5g}") for z in elements.real.ravel()]).reshape(elements.shape) + (
                1j * elements.imag if elements.dtype.kind == "c" else 0
            )
        dtype = str(value.dtype).rpartition(".")[2]
        return ("tensor", tuple(value.shape), dtype, value.requires_grad, elements.tolist())
    if hasattr(value, "next_functions"):
        return ("node", value.name().rpartition("::")[2])
    if isinstance(value, dict):
        return {key: plain(element, rounded) for key, element in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(element, rounded) for element in value]
    assert value is None or isinstance(value, (bool, int, float, complex, str)), f"cannot compare {value!r}"
    return value


def outcome(program: Program, lib: ModuleType, rounded: bool = True, said: bool = False) -> Any:
    """What the program returns in one library, as plain values, or the type of what it raises, and if `said` the first
    line of its message."""
    with warnings.catch_warnings():
        if lib is not pullback:
            warnings.simplefilter("ignore")
        try:
            found = program(lib)
        except ImportError:  # an optional package is missing: nothing to compare
            raise
        except Exception as error:
            message = str(error).partition("\n")[0][:160].rstrip()
            return ("raises", type(error).__name__, *([message] if said else []))
    return plain(found, rounded)


def outcomes(program: Program) -> tuple[Any, Any]:
    """What the program comes to in pullback, and in PyTorch."""
    return outcome(program, pullback), outcome(program, pytest.importorskip("torch"))


def programs() -> tuple[list[Program], Callable[[Program], Program]]:
    """A list, and a decorator that puts programs on it."""
    found: list[Program] = []

    def program(fn: Program) -> Program:
        found.append(fn)
        return fn

    return found, program


def named(name: str, program: Program) -> Program:
    """The program under a name, for those that are made in a loop."""
    program.__name__ = name
    return program


def name_of(program: Program) -> str:
    """What a program is called in a test's name."""
    return program.__name__


def leaf(lib: Any, values: Any, dtype: str = "float64") -> Any:
    """A leaf that requires grad, in double precision."""
    return lib.tensor(values, dtype=getattr(lib, dtype), requires_grad=True)


def constant(lib: Any, values: Any, dtype: str = "float64") -> Any:
    """A tensor that requires no grad, in double precision."""
    return lib.tensor(values, dtype=getattr(lib, dtype))


def function(lib: Any, forward: Callable[..., Any], backward: Callable[..., Any], **more: Any) -> Any:
    """A Function of the library with this forward and backward, and with more static methods and flags."""
    methods = {"forward": forward, "backward": backward, **more}
    body = {name: staticmethod(value) if callable(value) else value for name, value in methods.items()}
    return type("F", (lib.autograd.Function,), body)


def refused(call: Callable[[], Any]) -> str:
    """The type of the exception that a call raises, "" if it raises none."""
    try:
        call()
    except ImportError:  # an optional package is missing: nothing to compare
        raise
    except Exception as error:
        return type(error).__name__
    return ""


def says(call: Callable[[], Any], phrase: str) -> str:
    """The type of the exception that a call raises, and whether its message says a phrase, perhaps after the name of
    the function."""
    try:
        call()
    except ImportError:  # an optional package is missing: nothing to compare
        raise
    except Exception as error:
        return f"{type(error).__name__} {'says' if phrase in str(error) else 'does not say'}: {phrase}"
    return ""
