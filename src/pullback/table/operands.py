"""Helpers for forwards, checks and rules: refused dtypes, conversions and masks; and, at the end, matrices.

A forward is plain NumPy on payloads of one dtype. It calls `need` if NumPy would compute a result that torch refuses. A
rule runs on arrays or on Tensors. Its masks and signs have no derivative: it takes them from `plain`.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..tensor import dtypes
from ..tensor.arrays import repeats
from ..tensor.protocol import check_later, is_foreign
from ..tensor.tensor import Lifted, Tensor
from .narrow import Conversion

Operation = Callable[..., Any]
"""The type of an elementwise entry, declared where its own definition refers to it."""

REAL, NUMBERS, REAL_NUMBERS, FLOATS, INTEGERS = "biuf", "iufc", "iuf", "f", "iu"
"""Kinds of dtypes, for `need`: ordered; no bools; ordered and no bools; floating point; integers."""

_EXPECTED = {
    REAL: ("real numbers, which have an order", "take .real, .abs() or .angle() first"),
    NUMBERS: ("numbers, not bools", "convert it first, e.g. with .int()"),
    REAL_NUMBERS: ("real numbers, not bools", "convert it first, e.g. with .int()"),
    FLOATS: ("a floating point tensor", "convert it with .{floats}"),
    INTEGERS: ("a tensor of integers", "convert it with .long()"),
    "fc": ("a tensor of floating point or complex numbers", "convert it with .{floats}"),
    "biu": ("a tensor of integers or bools", "convert it with .long() or .bool()"),
}


def common_dtype(op: Any, args: tuple[Any, ...], payloads: list[Any]) -> np.dtype[Any]:
    """The dtype that the operands of an elementwise operation are brought to. TypeError if one is not an operand."""
    if not any(isinstance(a, Tensor) for a in args):
        raise TypeError(
            errors.message(
                f"{op.name}()",
                expected="a Tensor among the arguments",
                found=", ".join(errors.describe(a) for a in args),
                do="convert one with pullback.tensor(...)",
            )
        )
    found = [payloads[i] for i in op.promoted if payloads[i] is not None or not op.defaults]
    for p in found:
        dtypes.refuse_beyond_64_bits(p)
        if not hasattr(p, "size") and not isinstance(p, (bool, int, float, complex)):
            raise TypeError(
                errors.message(
                    f"{op.name}()",
                    expected="a Tensor, an array or a number",
                    found=errors.describe(p),
                    do="convert it with pullback.tensor(...)",
                )
            )
        if isinstance(p, np.ndarray):
            dtypes.known(p)
    dtype = dtypes.result_type(found)
    if op.floats and dtype.kind in "biu":
        return dtypes.default()
    if op.about.fits is not None and dtype.kind in "iu":
        for i in op.promoted:
            if type(payloads[i]) is int:
                op.about.fits(i, payloads[i], dtype)
    return dtype


def older_form(name: str, places: int, named: Sequence[str], args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The tensors and the keywords of a call in torch's older form, with numbers among the tensors.

    ``x.add_(-lr, g)`` is ``x.add_(g, alpha=-lr)``, ``addmm(2, m, 3, a, b)`` is ``addmm(m, a, b, beta=2, alpha=3)``.
    places: the number of tensors. named: the names of the numbers, in order. TypeError if the call is not of that form.
    """
    tensors = tuple(a for a in args if isinstance(a, Tensor))
    numbers = [a for a in args if type(a) in (int, float, complex)]
    wanted = f"{name}({', '.join('abc'[:places])}, {', '.join(f'{n}=...' for n in named[: len(numbers) or 1])})"
    known = len(tensors) + len(numbers) == len(args) and len(tensors) == places and isinstance(args[-1], Tensor)
    if not (known and 0 < len(numbers) <= len(named)):
        raise TypeError(
            errors.message(
                f"{name}()",
                expected=f"{places} tensors, and {' and '.join(named)} by name",
                found=", ".join(errors.describe(a) for a in args),
                do=f"write {wanted}",
            )
        )
    warnings.warn(
        f"This overload of {name} is deprecated, with numbers among the tensors. Write {wanted}.",
        stacklevel=errors.callers_level(),
    )
    return tensors, dict(zip(named, numbers, strict=False))


def scaled(name: str, input: Any, other: Any, alpha: Any, product: Callable[[Any, Any], Any]) -> Any:
    """``alpha * other``, for torch's ``input + alpha * other``."""
    whole = [dtypes.CATEGORY[t._data.dtype.kind] <= 1 for t in (input, other) if isinstance(t, Tensor)]
    if isinstance(alpha, float) and all(whole):
        raise RuntimeError(
            errors.message(
                f"{name}(): For integral input tensors, argument alpha must not be a floating point number",
                found=f"alpha={alpha}",
                do=f"write alpha={int(alpha)}, or convert the tensor first",
            )
        )
    if dtypes.is_large(alpha):
        kind = dtypes.result_type([getattr(t, "_data", t) for t in (input, other)])
        if kind.kind in "fcV":
            dtypes.refuse_overflow(alpha, kind)
    if not isinstance(other, Tensor):
        return other * alpha
    if isinstance(input, Tensor) and input._data.dtype != other._data.dtype:  # where the product fits, with its digits
        other = Conversion.to(other, dtypes.result_type([input._data, other._data]))
    if isinstance(alpha, int) and other._data.dtype.kind in "iu":
        dtypes.refuse_overflow(alpha, other._data.dtype)
    return product(other, alpha)


def in_range(place: int, value: int, dtype: np.dtype[Any]) -> None:
    """Refuse a number that the integer dtype of the operands cannot hold; for `About.fits`."""
    dtypes.refuse_overflow(value, dtype)


def cast(p: Any, dtype: np.dtype[Any]) -> Any:
    """A payload or a number as an operand of `dtype`."""
    if not hasattr(p, "size"):
        p = np.asarray(p)
    return p if p.dtype == dtype else converted(p, dtype)


def converted(p: Any, dtype: Any) -> Any:
    """A payload as a new array of `dtype`, with the layout that a ufunc gives its result.

    `astype` would put an axis that repeats elements last in memory, so that what is computed from it has that order.
    """
    if not repeats(p):
        return p.astype(dtype)
    return p.astype(dtype, "C") if p.dtype.kind == "V" else np.positive(p, dtype=dtype, casting="unsafe")


def need(name: str, kinds: str, value: Any) -> Any:
    """Return the value (a payload or a number); NotImplementedError if its dtype is not of one of these kinds."""
    if hasattr(value, "size") and value.dtype.kind.replace("V", "f") not in kinds:  # V: bfloat16
        do = _EXPECTED[REAL if value.dtype.kind == "c" else kinds][1]  # none that loses the imaginary part
        raise NotImplementedError(
            errors.message(
                f"{name}() is not implemented for {value.dtype}",
                expected=_EXPECTED[kinds][0],
                found=errors.describe(value),
                do=do.format(floats=dtypes.to_default()),
            )
        )
    return value


def need_both(name: str, kinds: str, input: Any, other: Any) -> tuple[Any, Any]:
    """`need` for two operands, which have the same dtype unless one is a number."""
    need(name, kinds, input if hasattr(input, "size") else other)
    return input, other


def need_numbers(name: str, **given: Any) -> None:
    """Refuse arguments that are not real Python numbers."""
    for argument, value in given.items():
        if not isinstance(value, (int, float)):
            raise TypeError(
                errors.message(f"{name}()", expected=f"{argument} to be a number", found=errors.describe(value))
            )


def index_of(name: str, argument: str, value: Any) -> int:
    """An integer, or the integer in a 0-d tensor or array, as an int."""
    try:
        return operator.index(value)
    except TypeError:
        found = errors.describe(value)
        raise TypeError(errors.message(f"{name}()", expected=f"{argument} to be an integer", found=found)) from None


def number_of(value: Any) -> Any:
    """The number in a 0-d tensor that does not require grad; any other value unchanged."""
    return value.item() if isinstance(value, Tensor) and not (value._data.ndim or value._requires_grad) else value


def divisor(input: Any, other: Any) -> tuple[Any, Any]:
    """Return both operands of a division; RuntimeError if integers would be divided by 0."""
    if hasattr(other, "size") and other.dtype.kind in "iu" and (is_foreign(other) or not np.all(other)):
        text = f"ZeroDivisionError: integers are divided by 0.\n  What to do: divide floats: x.{dtypes.to_default()}."
        raise_where(np.equal(other, 0), RuntimeError(text))
    return input, other


def floating(input: Any) -> Any:
    """A payload in floating point: integers and bools in the default dtype."""
    return input if input.dtype.kind in "fcV" else converted(input, dtypes.default())


def fits_half(op: Any, number: Any) -> bool:
    """Whether a number beside tensors of half precision is one of half precision, or rounded to it."""
    return bool(op.about.rounds or not op.differentiable or float(np.float16(number)) == number)


def in_single(number: Any, beside: Any) -> Any:
    """A number that is used beside `beside`: where that is of half precision, it keeps its digits and its range."""
    half = is_number(number) and data_of(beside).dtype.char == "e"
    return np.float32(number) if half else number


def one_beside(value: Any, like: Any) -> Any:
    """1, in the dtype of `like` where `value` is of integers: beside it they keep the digits of that dtype."""
    return 1 if value.dtype.kind in "fcV" else np.ones_like(like)


def plain(value: Any) -> Any:
    """The value without its derivative, for masks: the payload of a Tensor, or the detached Tensor of a transform."""
    if isinstance(value, Lifted):
        return value.detach()
    return value._data if isinstance(value, Tensor) else value


def somewhere(mask: Any) -> bool:
    """Whether a mask may be True anywhere. A transform's mask cannot be read, a device's is not waited for: it may."""
    return isinstance(mask, Lifted) or is_foreign(mask) or bool(np.any(mask))


def raise_where(wrong: Any, error: Exception) -> None:
    """Raise an error if a mask holds anywhere; if it is a device's, where the host waits next."""
    if is_foreign(wrong):
        check_later(wrong, error)
    elif np.any(wrong):
        raise error


def is_complex(x: Any) -> bool:
    """Whether an array or a Tensor holds complex numbers."""
    return bool(data_of(x).dtype.kind == "c")


def is_number(value: Any) -> bool:
    """Whether it is a Python number. A rule may branch on its value: it is an argument, not data."""
    return isinstance(value, (int, float, complex))


# Matrices -------------------------------------------------------------------------------------------------------------


def data_of(value: Any) -> Any:
    """The payload of a Tensor; an array itself."""
    return value._data if isinstance(value, Tensor) else value


def check_floating(name: str, value: Any, what: str = "A", *, half: bool = False) -> None:
    """Refuse all but tensors of a floating point or complex dtype that LAPACK has or, with `half`, of 16 bits."""
    data = data_of(value)
    if not hasattr(data, "size") or isinstance(data, type):
        raise TypeError(errors.message(f"{name}()", expected=f"{what} to be a Tensor", found=errors.describe(value)))
    if data.dtype.kind not in "fcV":
        raise NotImplementedError(
            errors.message(
                f"{name}()",
                expected=f"{what} to be a floating point or complex tensor",
                found=errors.describe(value),
                do=f"convert it first, e.g. A.{dtypes.to_default()}",
            )
        )
    if data.dtype.itemsize < 4 and not half:
        raise NotImplementedError(
            errors.message(
                f"{name}()", expected=f"{what} of at least single precision", found=str(data.dtype), do="use A.float()"
            )
        )


def check_matrix(name: str, value: Any, what: str = "A", *, square: bool = False, half: bool = False) -> None:
    """`check_floating`, and refuse anything but a matrix or a stack of matrices, which are square if `square`."""
    check_floating(name, value, what, half=half)
    shape = data_of(value).shape
    if len(shape) < 2:
        raise RuntimeError(
            errors.message(
                f"{name}: The input tensor {what} must have at least 2 dimensions", found=f"shape {list(shape)}"
            )
        )
    if square and shape[-1] != shape[-2]:
        raise RuntimeError(
            errors.message(
                f"{name}: {what} must be batches of square matrices", found=f"{shape[-2]} by {shape[-1]} matrices"
            )
        )


def check_same_dtype(name: str, **values: Any) -> None:
    """Refuse tensors, given by name, of different dtypes."""
    dtypes = {which: data_of(value).dtype for which, value in values.items()}
    if len(set(dtypes.values())) > 1:
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="tensors of the same dtype",
                found=", ".join(f"{which} of {dtype}" for which, dtype in dtypes.items()),
                do="convert them with .to(dtype)",
            )
        )


def singular(name: str, info: Any) -> errors.LinAlgError:
    """The error for a singular matrix; `info` holds for each matrix of the batch its first zero pivot, or 0."""
    first = int(np.ravel(info)[np.flatnonzero(info)[0]]) if np.any(info) else 0
    which = f" (Batch element {int(np.flatnonzero(info)[0])})" if np.ndim(info) else ""
    return errors.LinAlgError(
        f"{name}{which}: The diagonal element {first} is zero, the inversion could not be completed: "
        "the input matrix is singular.\n"
        "  What to do: add a small multiple of the identity, or use linalg.lstsq or linalg.pinv."
    )
