"""Messages of errors, and the one place that formats them.

Every refusal of the library names five things, as far as they are known: the operation, the argument, what was
expected, what was found, and what to do. The exception's type is the one PyTorch raises for the same mistake, so that
`except` clauses written for PyTorch keep working; the wording is this library's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, NamedTuple, TypeVar

import numpy as np


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """Raised for a matrix without a result, e.g. the inverse of a singular one: torch's and NumPy's error in one."""


def message(where: str, *, expected: str = "", found: str = "", do: str = "") -> str:
    """The text of an error: ``where: expected ..., found ...`` and, on a separate line, what to do.

    >>> print(message("sum()", expected="dim in [-2, 1]", found="dim 5", do="count the axes from 0"))
    sum(): expected dim in [-2, 1], found dim 5.
      What to do: count the axes from 0.
    """
    parts = [f"expected {expected}"] if expected else []
    if found:
        parts.append(f"found {found}")
    text = where + (": " + ", ".join(parts) if parts else "")
    text = text.rstrip(".") + "."
    return text + (f"\n  What to do: {do.rstrip('.')}." if do else "")


def describe(value: Any) -> str:
    """A value in a few words: a tensor or an array by dtype and shape, anything else by its type."""
    shape = getattr(value, "shape", None)
    dtype = getattr(value, "dtype", None)
    if shape is not None and dtype is not None and not isinstance(value, type):
        # to the author of the function, a transform's tensor is a Tensor
        name = type(value).__name__.replace("Lifted", "Tensor")
        return f"{name} of {str(dtype).removeprefix('pullback.')}{list(shape)}"
    if isinstance(value, (bool, int, float, complex, str)):
        return f"{type(value).__name__} {value!r}"
    return type(value).__name__


def broadcast_message(shapes: Iterable[tuple[int, ...]]) -> str | None:
    """PyTorch's sentence about the first pair of sizes that cannot be broadcast, or None if all can."""
    shapes = list(shapes)
    done: tuple[int, ...] = ()
    for shape in shapes:
        for k in range(1, min(len(done), len(shape)) + 1):
            a, b = done[-k], shape[-k]
            if a != b and 1 not in (a, b):
                dim = max(len(done), len(shape)) - k
                return (
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                    f"{dim}; the shapes are {list(done)} and {list(shape)}"
                )
        done = np.broadcast_shapes(done, shape)
    return None


_OF_BOOLS = {
    "sub": "Subtraction, the `-` operator, with two bool tensors is not supported. "
    "Use the `^` or `logical_xor()` operator instead.",
    "neg": "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead.",
}


def final(error: Exception) -> Exception:
    """Have `translate` return `error` as it is: it already has PyTorch's type, and names the operation."""
    vars(error)["final"] = True
    return error


def translate(name: str, args: Iterable[Any], error: Exception) -> Exception:
    """The exception that PyTorch would raise, given the `error` that NumPy raised in operation `name` on `args`."""
    if vars(error).get("final"):
        return error
    values = [a for a in args if hasattr(a, "shape") or isinstance(a, (int, float, complex, tuple, list))]
    # These are payloads; the caller passed tensors.
    found = ", ".join(describe(a).replace("ndarray of", "Tensor of") for a in values)
    if isinstance(error, np.exceptions.AxisError):
        ndim = error.ndim or 0
        if not ndim and error.axis in (-1, 0):
            return IndexError(
                message(
                    f"{name}(): Dimension specified as {error.axis} but tensor has no dimensions",
                    do="give a tensor of 1 dimension or more, e.g. t.reshape(1)",
                )
            )
        span = f"[{-max(ndim, 1)}, {max(ndim, 1) - 1}]"
        return IndexError(
            message(f"{name}(): Dimension out of range", expected=f"to be in range of {span}", found=str(error.axis))
        )
    if isinstance(error, (IndexError, NotImplementedError, MemoryError, RuntimeError)):
        return error
    if isinstance(error, TypeError):
        kinds = {a.dtype.kind for a in values if hasattr(a, "dtype")}
        if "boolean" in str(error) or ("loop" in str(error) and "b" in kinds):
            which = _OF_BOOLS.get(name, f"{name}() is not supported on a bool tensor: {error}")
            return RuntimeError(f"{which}\n  The arguments were: {found}.")
        if "not supported for the input types" in str(error):
            return NotImplementedError(f'"{name}" not implemented for these dtypes: {found}.')
        return TypeError(f"{name}(): {error}\n  The arguments were: {found}.")
    if isinstance(error, np.linalg.LinAlgError):
        return LinAlgError(f"{name}(): {error}\n  The arguments were: {found}.")
    text = str(error)
    if "broadcast" in text:
        shapes = [tuple(a.shape) for a in values if hasattr(a, "shape")]
        text = broadcast_message(shapes) or text
    return RuntimeError(f"{name}(): {text}\n  The arguments were: {found}.")


class Called(NamedTuple):
    """The notes about a function, by its code: its name in messages, and whether it acts on each element alone."""

    name: str
    elementwise: bool


CALLED: dict[CodeType, Called] = {}
"""The notes that `called` made about functions, by their code."""

F = TypeVar("F", bound=Callable[..., Any])


def called(function: F, name: str, *, elementwise: bool = False) -> F:
    """Give a function the name `name` in messages, tracebacks and profilers, and return it.

    It is for functions made by another function, as all operations are: they share one name and one code, so each gets
    a separate code here. elementwise: the function is an operation that acts on each element alone.
    """
    code = function.__code__.replace(co_name=name, co_qualname=name)
    function.__code__ = code
    CALLED[code] = Called(name, elementwise)
    return function


def callers_level() -> int:
    """The `stacklevel` for a warning of the calling function to point at the code that uses the library."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pullback."):
        frame, level = frame.f_back, level + 1
    return level
