"""Checks of arguments that functions of this package share, with one wording for refusals."""

from __future__ import annotations

import operator
from typing import Any

from ... import errors
from ...table.operands import is_complex
from ...table.samples import Differs
from ...tensor import dtypes
from ...tensor.tensor import Tensor


def refuse(name: str, expected: str, found: Any, do: str = "", error: type[Exception] = RuntimeError) -> Exception:
    """The error for an argument of the function `name`: `expected` describes the right value, `found` the given one."""
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
    """`count` integers, one for each axis, from one integer for all axes or a sequence of them.

    least: the smallest allowed integer.
    """
    if type(value) is int and (least is None or value >= least):  # as most are
        return (value,) * count
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
    """Refuse Tensors whose dtype is not floating point, nor of one of the kinds `also` (letters of NumPy's)."""
    for value in values:
        if value._data.dtype.kind not in "f" + also:
            raise _of_no_floats(name, "floating point numbers" + " or integers" * ("i" in also), value)


def floats_only(name: str, *payloads: Any) -> None:
    """Refuse payloads whose dtype is not floating point."""
    for value in payloads:
        if value.dtype.kind != "f":
            raise _of_no_floats(name, "a floating point tensor", value)


def _of_no_floats(name: str, expected: str, found: Any) -> Exception:
    do = "take .real, .abs() or .angle() first" if is_complex(found) else f"convert it with .{dtypes.to_default()}"
    return refuse(name, expected, errors.describe(found), do, NotImplementedError)


def ranks(name: str, value: Tensor, *allowed: int) -> int:
    """The number of axes of a Tensor, or an error if that number is not among `allowed`."""
    found: int = value._data.ndim
    if found not in allowed:
        wanted = " or ".join(f"{n}D" for n in allowed)
        raise refuse(name, f"a {wanted} input", f"one of size {list(value._data.shape)}")
    return found


def where_empty(dtypes: str, checks: str = "values", sample: str = "([0, ") -> list[Differs]:
    """The difference from torch that dtypes are refused for empty tensors as well."""
    reason = "torch looks at the dtype only where there are elements"
    return [Differs(reason, check, dtypes if check == "values" else "complex128", sample) for check in checks.split()]
