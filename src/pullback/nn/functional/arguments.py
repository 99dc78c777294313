"""What the functions of this package check of their arguments, in one wording."""

from __future__ import annotations

import operator
from typing import Any

from ... import errors
from ...table.samples import Differs
from ...tensor.tensor import Tensor


def refuse(name: str, expected: str, found: Any, do: str = "", error: type[Exception] = RuntimeError) -> Exception:
    """The error that says so."""
    return error(errors.message(f"{name}()", expected=expected, found=str(found), do=do))


def tensors(name: str, **given: Any) -> None:
    """Refuse arguments that are not Tensors."""
    for argument, value in given.items():
        if not isinstance(value, Tensor):
            raise refuse(
                name,
                f"argument {argument!r} to be a Tensor",
                errors.describe(value),
                "convert it with pullback.tensor(...)",
                TypeError,
            )


def integers(name: str, argument: str, value: Any, count: int, least: int | None = None) -> tuple[int, ...]:
    """An integer for all axes, or a sequence of one for each (or of one for all), as `count` of them.

    least: what none of them may be below.
    """
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        found = tuple(operator.index(v) for v in values)
    except TypeError:
        raise refuse(name, f"{argument} to be integers", errors.describe(value), error=TypeError) from None
    if len(found) == 1:
        found *= count
    if len(found) != count:
        raise refuse(name, f"{argument} to be an integer or {count} of them", list(found))
    if least is not None and any(n < least for n in found):
        raise refuse(name, f"{argument} to be at least {least}", list(found))
    return found


def floating(name: str, *values: Tensor, also: str = "") -> None:
    """Refuse Tensors that are not of floating point numbers, or of `also`, the kinds of NumPy's dtypes."""
    for value in values:
        if value._data.dtype.kind not in "f" + also:
            raise refuse(
                name,
                "floating point numbers" + " or integers" * ("i" in also),
                errors.describe(value),
                "convert it with .float()",
                NotImplementedError,
            )


def ranks(name: str, value: Tensor, *allowed: int) -> int:
    """The number of axes of a Tensor, or the error that it is none of those allowed."""
    found: int = value._data.ndim
    if found not in allowed:
        wanted = " or ".join(f"{n}D" for n in allowed)
        raise refuse(name, f"a {wanted} input", f"one of size {list(value._data.shape)}")
    return found


def where_empty(dtypes: str, checks: str = "values", sample: str = "([0, ") -> list[Differs]:
    """The difference from torch that dtypes are refused of empty tensors, too."""
    reason = "torch looks at the dtype only where there are elements"
    return [Differs(reason, check, dtypes if check == "values" else "complex128", sample) for check in checks.split()]
