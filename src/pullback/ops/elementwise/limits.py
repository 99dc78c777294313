"""Signs and moduli, the larger and the smaller, limits, `where`, and replacements for NaN.

At kinks they follow torch: the derivative of `abs` and `relu` at 0 is 0; `maximum` and `minimum` share a tie in halves,
`fmax` and `fmin` give it to the first; `clamp` passes the gradient at its bounds. Rules apply masks by `where`, not by
multiplication, so that an infinite cotangent does not become NaN on the side not taken.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import errors
from ...kernels.masks import either, only
from ...table.calls import on
from ...table.entry import TABLE, elementwise, front, method, pointwise, special
from ...table.operands import (
    NUMBERS,
    REAL,
    REAL_NUMBERS,
    Operation,
    in_range,
    is_complex,
    need,
    need_both,
    plain,
    somewhere,
)
from ...table.samples import EDGE_PAIRS, EDGES, NO_PAIR, NO_UNARY, A, Differs, S, V, inf, mask, nan, pairs, unary
from ...tensor.arrays import copied, writable
from ...tensor.dtypes import bfloat16, finfo
from ...tensor.protocol import is_payload
from ...tensor.tensor import Tensor, wrap


# Signs and sizes
def _within(input: Any, low: Any, high: Any) -> Any:
    """``min(max(input, low), high)``; None is no limit."""
    if input.size >= _LARGE and input.dtype.kind in "fV" and all(np.ndim(v) == 0 for v in (low, high)):
        # for an array and a number, several times faster than np.maximum
        return input.clip(-inf if low is None else low, inf if high is None else high)
    found = input if low is None else np.maximum(input, low)
    return found if high is None else np.minimum(found, high)


_LARGE = 4096


def _relu(input: Any) -> Any:
    need("relu", REAL_NUMBERS, input)
    return _within(input, 0, None) if input.size >= _LARGE else np.maximum(input, input.dtype.type(0))


relu = elementwise(
    "relu",
    _relu,
    "``max(input, 0)``; its derivative at 0 is 0.",
    numpy={},
    out=False,
    flat=True,
    input=lambda g, out: only(np.logical_not(np.less_equal(plain(out), 0)), g),
    kinks=[S(V(EDGES))],
)


def _as_numbers(mask: Any) -> Any:
    """A mask as 0 and 1."""
    return mask.view(np.int8) if type(mask) is np.ndarray else mask.astype(np.int8)


def _sign(input: Any) -> Any:
    need("sign", REAL, input)
    if input.dtype.kind not in "fV":
        return copied(input) if input.dtype.kind == "b" else np.sign(input)
    above, below = (_as_numbers(mask) for mask in (np.greater(input, 0), np.less(input, 0)))
    return np.subtract(above, below).astype(input.dtype)  # 0 for NaN


def _signs(out: Any, input: Any) -> Any:
    """The signs, for dtypes that `compile` has loops for."""
    if input.dtype.kind not in "fiu" or input.dtype.itemsize < 4:
        return NotImplemented
    above, below = np.greater(input, 0), np.less(input, 0)
    return np.subtract(above.astype(input.dtype), below.astype(input.dtype))


sign = elementwise(
    "sign",
    _sign,
    "-1, 0 or 1; 0 for NaN. Its derivative is 0.",
    numpy={},
    symbolic=_signs,
    out="exact",
    input=lambda g: np.zeros_like(g),
    kinks=[S(V(EDGES))],
)


def _complex_direction(g: Any, input: Any, out: Any) -> Any:
    # only turning z changes z / |z|: subtract the part of g along z, and divide the rest by |z|
    size = np.abs(plain(input))
    across = g - out * np.real(np.conj(out) * g)
    return np.where(np.equal(size, 0), 0, across / np.where(np.equal(size, 0), 1, np.abs(input)))


def _sgn_rule(g: Any, input: Any, out: Any) -> Any:
    return _complex_direction(g, input, out) if is_complex(input) else np.zeros_like(g)


@special(
    contiguous=False,
    inplace=True,
    conjugate=False,
    batch="leading",
    symbolic=_signs,
    out="exact",
    input=_sgn_rule,
    jvp=lambda tangents, input, out: _sgn_rule(tangents[0], input, out),
    numpy={np.sign: lambda x: sgn(x)},
    samples=lambda: [*unary(), S(V([3 + 4j, -1, -2j], "complex128"))],
    kinks=[S(V(EDGES)), S(V([0j, 1 + 1j], "complex128")), S(V([0j], "complex64"))],
    refused=NO_UNARY,
)
def sgn(input: Any) -> Any:
    """`sign` for real numbers; for complex ones the direction ``input / |input|``, 0 at 0.

    >>> import pullback
    >>> pullback.sgn(pullback.tensor([3 + 4j, 0]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    if input.dtype.kind != "c":
        return _sign(input)
    size = np.abs(input)
    return np.where(np.equal(size, 0), 0, input / np.where(np.equal(size, 0), 1, size))


def _abs_rule(g: Any, input: Any) -> Any:
    return np.multiply(g, on(sgn, input if is_complex(input) else plain(input)))


abs: Operation = elementwise(
    "abs",
    lambda input: np.abs(need("abs", NUMBERS, input)),
    "The absolute value; for complex numbers the modulus, a real tensor. The derivative at 0 is 0.",
    also="absolute",
    dunder="abs",
    holomorphic=False,
    numpy={np.absolute: lambda x: abs(x), np.fabs: lambda x: abs(x)},
    flat=True,
    input=_abs_rule,
    kinks=[S(V(EDGES)), S(V([0j, 1 + 1j], "complex128"))],
)


def _copysign_rule(g: Any, input: Any, out: Any) -> Any:
    zero = np.equal(plain(input), 0)
    return np.where(zero, 0, np.multiply(g, np.true_divide(plain(out), np.where(zero, 1, plain(input)))))


copysign: Operation = elementwise(
    "copysign",
    lambda input, other: np.copysign(*need_both("copysign", REAL, input, other)),
    "``|input|`` with the sign of `other`; at 0 and by `other` the derivative is 0.",
    floats=True,
    numpy={np.copysign: lambda x1, x2: copysign(x1, x2)},
    flat=True,
    input=_copysign_rule,
    other=lambda g: np.zeros_like(g),
    samples=lambda: [*pairs("real", None, 2, -0.5), S(A(3), -1)],
    kinks=lambda: [S(*EDGE_PAIRS), S(V([0.0, -0.0, 1.0]), V([-0.0, 0.0, -0.0]))],
)


@pointwise(
    inplace=True,
    input=lambda g: np.zeros_like(g),
    values=lambda g, input: only(np.equal(plain(input), 0), g),
    numpy={np.heaviside: lambda x1, x2: heaviside(x1, x2)},
    samples=lambda: [*pairs(), S(V([0, 1, -1, 0], "int64"), V([1, 2, 3, 4], "int64")), S(A(2), values=A(2))],
    kinks=[S(V([nan, inf, -inf, 0.0, -0.0]), V([1.0, 2.0, 3.0, nan, 5.0]))],
    refused=NO_PAIR,
    differs=[Differs("torch has no derivative of it", check) for check in ("gradients", "second", "kinks")],
)
def heaviside(input: Any, values: Any) -> Any:
    """0 where `input` is negative or NaN, 1 where it is positive, `values` where it is 0 (they get the gradient)."""
    need("heaviside", REAL, input)
    return np.where(np.equal(input, 0), values, np.greater(input, 0)).astype(input.dtype, copy=False)


# The larger and the smaller
def _larger(g: Any, mine: Any, theirs: Any, better: Any) -> Any:
    """The cotangent where this operand is larger, half of it at a tie; if one is NaN, both get it."""
    mine, theirs = plain(mine), plain(theirs)
    return only(np.logical_not(better(theirs, mine)), np.where(np.equal(mine, theirs), np.multiply(0.5, g), g))


def _first(input: Any, other: Any, holds: Any) -> Any:
    """The mask of elements taken from the first operand: the comparison with the second holds, or the second is NaN."""
    return np.logical_or(holds(plain(input), plain(other)), np.isnan(plain(other)))


maximum: Operation = elementwise(
    "maximum",
    lambda input, other: np.maximum(*need_both("maximum", REAL, input, other)),
    "The larger of two, elementwise; NaN if either is. A tie shares the gradient in halves.",
    fits=in_range,
    inplace=False,
    numpy={np.maximum: lambda x1, x2: maximum(x1, x2)},
    input=lambda g, input, other: _larger(g, input, other, np.greater),
    other=lambda g, input, other: _larger(g, other, input, np.greater),
    kinks=lambda: [S(*EDGE_PAIRS)],
)
minimum: Operation = elementwise(
    "minimum",
    lambda input, other: np.minimum(*need_both("minimum", REAL, input, other)),
    "The smaller of two, elementwise; NaN if either is. A tie shares the gradient in halves.",
    fits=in_range,
    inplace=False,
    numpy={np.minimum: lambda x1, x2: minimum(x1, x2)},
    input=lambda g, input, other: _larger(g, input, other, np.less),
    other=lambda g, input, other: _larger(g, other, input, np.less),
    kinks=lambda: [S(*EDGE_PAIRS)],
)
fmax: Operation = elementwise(
    "fmax",
    lambda input, other: np.fmax(*need_both("fmax", REAL, input, other)),
    "The larger of two, elementwise; if one is NaN, the other. At a tie the first gets the gradient.",
    fits=in_range,
    inplace=False,
    numpy={np.fmax: lambda x1, x2: fmax(x1, x2)},
    input=lambda g, input, other: only(_first(input, other, np.greater_equal), g),
    other=lambda g, input, other: only(np.logical_not(_first(input, other, np.greater_equal)), g),
    kinks=lambda: [S(*EDGE_PAIRS)],
)
fmin: Operation = elementwise(
    "fmin",
    lambda input, other: np.fmin(*need_both("fmin", REAL, input, other)),
    "The smaller of two, elementwise; if one is NaN, the other. At a tie the first gets the gradient.",
    fits=in_range,
    inplace=False,
    numpy={np.fmin: lambda x1, x2: fmin(x1, x2)},
    input=lambda g, input, other: only(_first(input, other, np.less_equal), g),
    other=lambda g, input, other: only(np.logical_not(_first(input, other, np.less_equal)), g),
    kinks=lambda: [S(*EDGE_PAIRS)],
)


# Limits
def _bounded(g: Any, input: Any, min: Any, max: Any) -> Any:
    inside = None if min is None else np.greater_equal(plain(input), plain(min))
    if max is not None:
        below = np.less_equal(plain(input), plain(max))
        inside = below if inside is None else np.logical_and(inside, below)
    return only(inside, g)


def _below(g: Any, input: Any, min: Any, max: Any) -> Any:
    below = np.less(plain(input), plain(min))
    return only(below if max is None else np.logical_and(below, np.less(plain(min), plain(max))), g)


def _above(g: Any, input: Any, min: Any, max: Any) -> Any:
    above = np.greater(plain(input), plain(max))
    return only(above if min is None else np.logical_or(above, np.greater(plain(min), plain(max))), g)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    low, high = min if a_min is None else a_min, max if a_max is None else a_max
    return a.clone() if low is None and high is None else clamp(a, low, high)


@pointwise(
    fits=in_range,
    also="clip",
    inplace=True,
    rounds=True,
    bounds="min max",
    input=_bounded,
    min=_below,
    max=_above,
    numpy={np.clip: _clip},
    samples=lambda: [
        *(S(A(*shape), -1.0, 1.0) for shape in ((), (3,), (2, 3), (0,))),
        S(A(2, 3, layout="T"), min=0.1),
        S(A(2, 3, layout="readonly"), max=0.1),
        S(A(2, 3), 0, 2),
        S(A(2, 3), min=1, max=-1),
        S(A(2, 3), A(3), A(2, 1)),
        S(A(3), A(2, 3)),
        S(A(2, 3), max=A()),
        S(A(), A(2), A(2)),
    ],
    kinks=lambda: [
        S(V([-1.0, 1.0, 0.0, 2.0, -2.0, nan, inf]), -1.0, 1.0),
        S(V([0.0, 1.0]), min=0.0),
        S(V([0.0, 1.0]), max=1.0),
        S(V([0.0, 1.0, 2.0, nan]), V([0.0, 1.0, nan, 0.0]), V([0.0, 1.0, 2.0, 1.0])),
        S(V([0.0, 1.0, 2.0]), V([1.0, 1.0, 3.0]), V([0.0, 1.0, 1.0])),
    ],
    refused=[S(A(2)), S(A(2), A(3)), S(A(2), "x"), S([1.0], 0, 1), S(A(2), 0, 1, 2), S(A(2), None, None)],
)
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """`input` limited to ``[min, max]``, numbers or tensors; the gradient passes at the bounds themselves.

    >>> import pullback
    >>> pullback.tensor([-1.0, 0.5, 2.0]).clamp(min=0, max=1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("clamp(): At least one of 'min' or 'max' must not be None")
    need("clamp", REAL if min is None or max is None else REAL_NUMBERS, input)
    return _within(input, min, max)


_LIMITS = [S(A(2), A(3)), S(A(2), "x"), S([1.0], 0), S(A(2), 0, 1), S(A(2)), S(A(2), None)]


@pointwise(
    fits=in_range,
    inplace=True,
    rounds=True,
    bounds="min",
    input=lambda g, input, min: only(np.greater_equal(plain(input), plain(min)), g),
    min=lambda g, input, min: only(np.less(plain(input), plain(min)), g),
    samples=lambda: [*pairs("real", None, 0, 0.5), S(A(3), min=A(2, 3))],
    kinks=lambda: [S(*EDGE_PAIRS)],
    refused=_LIMITS,
)
def clamp_min(input: Any, min: Any) -> Any:
    """`input`, or `min` where that is larger; at a tie `input` gets the gradient."""
    need_both("clamp_min", REAL, input, min)
    return np.maximum(input, min) if np.ndim(input) < np.ndim(min) else _within(input, min, None)


@pointwise(
    fits=in_range,
    inplace=True,
    rounds=True,
    bounds="max",
    input=lambda g, input, max: only(np.less_equal(plain(input), plain(max)), g),
    max=lambda g, input, max: only(np.greater(plain(input), plain(max)), g),
    samples=lambda: [*pairs("real", None, 0, 0.5), S(A(3), max=A(2, 3))],
    kinks=lambda: [S(*EDGE_PAIRS)],
    refused=_LIMITS,
)
def clamp_max(input: Any, max: Any) -> Any:
    """`input`, or `max` where that is smaller; at a tie `input` gets the gradient."""
    need_both("clamp_max", REAL, input, max)
    return np.minimum(input, max) if np.ndim(input) < np.ndim(max) else _within(input, None, max)


def _ends(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments for bfloat16: infinities become its largest numbers, not those of float32."""
    ends = {"posinf": finfo(bfloat16).max, "neginf": finfo(bfloat16).min}
    return ends | {name: value for name, value in given.items() if value is not None}


def _numpy_nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """`np.nan_to_num`; with copy=False it would write to the Tensor itself."""
    if not copy:
        text = "numpy.nan_to_num(): a Tensor cannot be written to by NumPy, which does not record it"
        raise errors.final(TypeError(errors.message(text, do="leave copy=False out, and use the result")))
    return nan_to_num(x, nan, posinf, neginf)


@pointwise(
    inplace=True,
    narrow=_ends,
    out="exact",
    input=lambda g, input: only(np.isfinite(plain(input)), g),
    numpy={np.nan_to_num: _numpy_nan_to_num},
    samples=lambda: [
        *unary(),
        S(A(3), 1.0, 2.0, -2.0),
        S(V([nan, inf, -inf, 0.5], "float64"), nan=0.25, posinf=1.0, neginf=-1.0),
    ],
    kinks=lambda: [
        *(S(V(EDGES, dtype)) for dtype in ("float32", "float64")),
        S(V([complex(nan, 1), complex(inf, -inf), 1j], "complex128")),
        S(V(EDGES), 1.0, 2.0, 3.0),
        S(V(EDGES), nan=0.5),
    ],
    refused=NO_UNARY,
)
def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """`input` with NaN replaced by 0, and infinities by the largest and smallest numbers of the dtype.

    No gradient passes at replaced elements.
    """
    for value in (nan, posinf, neginf):
        if value is not None and not isinstance(value, (int, float)):
            raise TypeError(errors.message("nan_to_num()", expected="numbers or None", found=errors.describe(value)))
    if input.dtype.kind not in "fcV" or not somewhere(~np.isfinite(input)):
        return copied(input)
    return writable(np.nan_to_num(input, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf))


# where
def _numpy_where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return where(condition)
    if not isinstance(condition, Tensor):
        array = condition if is_payload(condition) else np.asarray(condition)
        condition = wrap(array.astype(bool, copy=False))
    return where(condition if condition.dtype == bool else condition != 0, x, y)


@pointwise(
    fits=in_range,
    numbers="",
    input=lambda g, condition: only(condition, g),
    other=lambda g, condition: only(np.logical_not(condition), g),
    name="where",
    front=True,
    scalars="input other",
    numpy={np.where: _numpy_where},
    method=False,
    inplace=False,
    samples=lambda: [
        S(mask(), A(), A()),
        S(mask(3), A(3), A(3)),
        S(mask(2, 3), A(3), A()),
        S(mask(3), A(2, 1), A(1)),
        S(mask(), A(2), A(2, 1)),
        S(mask(0), A(1), A()),
        S(mask(2, 1), A(1, 3), A(4, 1, 1)),
        S(mask(2, 3), A(2, 3, layout="T"), A(3, layout="step")),
        S(mask(3), 1.5, A(3)),
        S(mask(3), A(3), 0),
        S(mask(3), A(2, 3), 2.5),
        S(mask(2, 3), 1, 2.5),
        S(mask(2, 3), 1, 2),
        S(mask(2, 3)),
        S(mask(0)),
    ],
    kinks=[S(V([True, False, True, False], "bool"), V([inf, nan, 1.0, 0.0]), V([nan, inf, -inf, 0.0]))],
    refused=[
        S(A(2), A(2), A(2)),
        S(mask(2), A(3), A(2)),
        S(mask(2), A(2)),
        S(mask(2), "x", A(2)),
        S([True], A(1), A(1)),
        S([True]),
        S(),
    ],
)
def _where(condition: Any, input: Any, other: Any) -> Any:
    if not hasattr(condition, "size"):
        raise TypeError(
            errors.message("where()", expected="condition to be a bool Tensor", found=errors.describe(condition))
        )
    if condition.dtype != bool:
        raise RuntimeError(
            errors.message("where()", expected="condition to be a bool tensor", found=errors.describe(condition))
        )
    return either(condition, input, other)


@front(_where)
def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where `condition` holds, else `other`, broadcast. Only the chosen side gets a gradient.

    ``where(condition)`` alone is ``nonzero(condition, as_tuple=True)``: an index for each dimension.

    The side not taken is still computed: ``where(x > 0, sqrt(x), 0)`` has the gradient ``0 * inf = NaN`` at 0. Make the
    operand safe: ``where(x > 0, sqrt(where(x > 0, x, 1)), 0)``.

    >>> import pullback
    >>> x = pullback.tensor([-1.0, 2.0])
    >>> pullback.where(x > 0, x, 0), pullback.where(x > 0)
    (tensor([0., 2.]), (tensor([1]),))
    """
    if input is None and other is None and isinstance(condition, Tensor):
        return TABLE["nonzero"].call(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError(errors.message("where()", expected="both input and other, or neither", found="one of them"))
    if isinstance(condition, Tensor) and condition._data.dtype.char == "B":
        warnings.warn(
            "where() received a uint8 condition tensor. This is deprecated, as in torch: use a bool condition, such as "
            "x > 0 or x.bool().",
            stacklevel=errors.callers_level(),
        )
        condition = condition.bool()
    return _where(condition, input, other) if out is None else _where(condition, input, other, out=out)


@method("where")
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where `condition` holds, else `other`."""
    return where(condition, self, other)
