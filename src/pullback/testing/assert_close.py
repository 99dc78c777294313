"""`assert_close`: whether two results agree, within tolerances that depend on their dtypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import errors
from ..table.levels import memory_of
from ..tensor import dtypes as _dtypes
from ..tensor.tensor import Tensor, wrap

TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
"""rtol and atol of each dtype, as in PyTorch; a complex dtype has those of its parts, and any other dtype has 0."""


@dataclass(frozen=True)
class Rules:
    """How two results are compared."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *dtypes: _dtypes.dtype) -> tuple[float, float]:
        """rtol and atol: the given ones, or the larger ones of those for the dtypes."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        pairs = [TOLERANCES.get(str((d.to_real() if d.is_complex else d).name), (0.0, 0.0)) for d in dtypes]
        return max(rtol for rtol, _ in pairs), max(atol for _, atol in pairs)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|``, element by element.

    Args:
        actual, expected: tensors or arrays, numbers, booleans or None; or sequences and mappings of these, which must
            match item by item. Shapes must be equal.
        allow_subclasses: also compare tensors and arrays of derived classes.
        rtol, atol: the tolerances, both or neither; by default those of the dtypes, e.g. 1.3e-6 and 1e-5 for float32.
        equal_nan: treat NaN as equal to NaN.
        check_device, check_dtype, check_layout, check_stride: further properties that must be equal.
        msg: the error message, or a function that makes it from the default message.

    Raises:
        AssertionError: they differ; the message shows where they differ most.
        TypeError: they are of kinds that cannot be compared with each other.
        ValueError: only one of `rtol` and `atol` was given.

    >>> import pullback
    >>> assert_close(pullback.tensor([1.0, 2.0]), pullback.tensor([1.0, 2.000001]))
    >>> assert_close(pullback.tensor([1.0, 2.0]), pullback.tensor([1.0, 2.5]))
    Traceback (most recent call last):
        ...
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
      In assert_close().

    See https://docs.pytorch.org/docs/stable/testing.html.
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    rules = Rules(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    problem = _difference(actual, expected, rules, "")
    if problem:
        raise AssertionError(msg if isinstance(msg, str) else problem if msg is None else msg(problem))


def _difference(actual: Any, expected: Any, rules: Rules, path: str) -> str:
    """The difference in words; the empty string if there is none."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return _of_mappings(actual, expected, rules, path)
    if all(isinstance(v, Sequence) and not isinstance(v, (str, bytes)) for v in (actual, expected)):
        if len(actual) != len(expected):
            return _at(path, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        pairs = enumerate(zip(actual, expected, strict=True))
        found = (_difference(a, e, rules, f"{path}[{k}]") for k, (a, e) in pairs)
        return next(filter(None, found), "")
    if actual is None or expected is None:
        return "" if actual is expected else _at(path, f"None mismatch: {actual} is not {expected}")
    if isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
        return "" if actual == expected else _at(path, f"Booleans mismatch: {actual} is not {expected}")
    numbers = (int, float, complex, np.number)
    if isinstance(actual, numbers) and isinstance(expected, numbers):
        a, e = (v.item() if isinstance(v, np.number) else v for v in (actual, expected))
        return _at(path, _of_numbers(a, e, rules))
    arrays = (Tensor, np.ndarray)
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    same = type(actual) is type(expected) or rules.allow_subclasses
    if isinstance(actual, arrays) and isinstance(expected, arrays) and related and same:
        return _at(path, _of_tensors(_tensor(actual), _tensor(expected), rules))
    raise TypeError(
        _at(path, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    )


def _at(path: str, problem: str) -> str:
    return f"{problem}\n\nThe failure occurred for item {path}" if path and problem else problem


def _of_mappings(actual: Mapping[Any, Any], expected: Mapping[Any, Any], rules: Rules, path: str) -> str:
    missing, more = ([k for k in a if k not in b] for a, b in ((expected, actual), (actual, expected)))
    if missing or more:
        return _at(
            path,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
            f"Additional keys in the actual mapping: {sorted(more, key=str)}",
        )
    found = (_difference(actual[k], expected[k], rules, f"{path}[{k!r}]") for k in expected)
    return next(filter(None, found), "")


def _of_numbers(actual: Any, expected: Any, rules: Rules) -> str:
    if rules.check_dtype and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    kinds = {int: _dtypes.int64, float: _dtypes.float64, complex: _dtypes.complex128}
    dtypes = [next(dtype for kind, dtype in kinds.items() if isinstance(v, kind)) for v in (actual, expected)]
    return _of_values(np.asarray(actual), np.asarray(expected), rules, *rules.tolerances(*dtypes))


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else wrap(np.asarray(value))


def _of_tensors(actual: Tensor, expected: Tensor, rules: Rules) -> str:
    compared: list[tuple[str, bool, Callable[[Tensor], Any]]] = [
        ("shape", True, lambda t: t.shape),
        ("device", rules.check_device, lambda t: t.device),
        ("dtype", rules.check_dtype, lambda t: t.dtype),
        ("layout", rules.check_layout, lambda t: t.layout),
    ]
    for name, checked, of in compared:
        if checked and of(actual) != of(expected):
            return f"The values for attribute '{name}' do not match: {of(actual)} != {of(expected)}."
    if rules.check_stride and actual.stride() != expected.stride():
        return f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}."
    rtol, atol = rules.tolerances(actual.dtype, expected.dtype)
    a, e = (np.asarray(memory_of((t if t._in_array else t.to_dense()).detach()._data)) for t in (actual, expected))
    dtype = _dtypes.promote_types(actual.dtype, expected.dtype).numpy
    return _of_values(a.astype(dtype), e.astype(dtype), rules, rtol, atol)


def _of_values(a: np.ndarray[Any, Any], e: np.ndarray[Any, Any], rules: Rules, rtol: float, atol: float) -> str:
    """The difference between arrays of one shape and dtype, in words."""
    with np.errstate(all="ignore"):
        close = np.isclose(a, e, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    if close.all():
        return ""
    if a.dtype.kind == "b":
        a, e = a.astype(np.int64), e.astype(np.int64)
    with np.errstate(all="ignore"):
        absolute = np.where(close, 0, np.abs(a - e) if a.dtype.kind != "u" else np.maximum(a, e) - np.minimum(a, e))
        exact = absolute.dtype.kind in "iu"
        relative = np.where(close, 0, absolute / np.abs(e))
        relative = relative.astype(np.float32) if exact and a.ndim else relative
    allowed = [f" (up to {t} allowed)" if rtol or atol else "" for t in (atol, rtol)]
    ending = "close" if rtol or atol else "equal"
    if a.ndim == 0:
        return (
            f"Scalars are not {ending}!\n\nExpected {e.item()} but got {a.item()}.\n"
            f"Absolute difference: {absolute.item()}{allowed[0]}\nRelative difference: {relative.item()}{allowed[1]}"
        )
    wrong = np.count_nonzero(~close)
    lines = [f"Tensor-likes are not {ending}!\n", f"Mismatched elements: {wrong} / {a.size} ({wrong / a.size:.1%})"]
    for name, values, limit in zip(("absolute", "relative"), (absolute, relative), allowed, strict=True):
        at = tuple(int(i) for i in np.unravel_index(np.argmax(values), values.shape))
        lines.append(f"Greatest {name} difference: {values[at].item()} at index {at}{limit}")
    return "\n".join(lines)


errors.doors(globals(), "assert_close")
