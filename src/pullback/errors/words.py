"""The one place that formats the messages of errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from .others import do_of_others, of_another_library, part_of_another_library


def message(where: str, *, expected: str = "", found: str = "", do: str = "", anyway: bool = False) -> str:
    """The text of an error: ``where: expected ..., found ...`` and, on a separate line, what to do.

    anyway: whether that is to be done also about an object of another library, for which other words stand.

    >>> print(message("sum()", expected="dim in [-2, 1]", found="dim 5", do="count the axes from 0"))
    sum(): expected dim in [-2, 1], found dim 5.
      What to do: count the axes from 0.
    """
    do = do if anyway else do_of_others(found) or do
    parts = [f"expected {expected}"] if expected else []
    if found:
        parts.append(f"found {found}")
    text = where + (": " + ", ".join(parts) if parts else "")
    text = text.rstrip(".") + "."
    return text + (f"\n  What to do: {do.rstrip('.')}." if do else "")


def describe(value: Any) -> str:
    """A value in a few words: a tensor or an array by dtype and shape, anything else by its type."""
    if theirs := of_another_library(value):
        return theirs
    shape = getattr(value, "shape", None)
    dtype = getattr(value, "dtype", None)
    if isinstance(shape, (tuple, list)) and dtype is not None and not isinstance(value, type):
        # to the author of the function, a transform's tensor is a Tensor
        name = type(value).__name__.replace("Lifted", "Tensor")
        return f"{name} of {str(dtype).removeprefix('pullback.')}{list(shape)}"
    if isinstance(value, (bool, int, float, complex, str)):
        return f"{type(value).__name__} {value!r}"
    return type(value).__name__


def holding(t: Any) -> str:
    """A tensor in a few words, with the class of its payload unless that is a transform's."""
    return describe(t) + ("" if hasattr(t._data, "level") else f", which holds a {type(t._data).__name__}")


def refuse_foreign(name: str, values: Iterable[Any]) -> None:
    """TypeError if a tensor, module... of PyTorch, JAX or SciPy is among the arguments, or in a sequence among them."""
    waiting, seen = [*values], set()
    for value in waiting:
        if isinstance(value, (list, tuple)):
            if id(value) not in seen:  # a list may contain itself
                seen.add(id(value))
                waiting.extend(value)
        elif part_of_another_library(value):
            raise no_tensor(name, value)


def no_tensor(where: str, value: Any) -> TypeError:
    """The error of an argument that is no Tensor."""
    if not of_another_library(value):
        return TypeError(message(where, expected="a Tensor", found=describe(value)))
    where += "()" if where.replace(".", "").isidentifier() else ""
    expected = "Tensors of pullback" if hasattr(value, "shape") else "parts of pullback"
    return cast(TypeError, final(TypeError(message(where, expected=expected, found=describe(value)))))


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


def final(error: Exception) -> Exception:
    """Have `translate` and `rename` leave `error` as it is: it already has PyTorch's type, and names the operation."""
    vars(error)["final"] = True
    return error
