"""Elementwise operations: one entry each, a ufunc and the derivative's expression.

Kinks take torch's choice: the derivative of `abs` and `relu` at 0 is 0; `maximum` and `minimum` share a tie in halves;
`clamp` passes the gradient at its bounds. Where a rule multiplies by a mask it uses `where`, so that an infinite
cotangent does not become NaN on the side not taken.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import errors
from .._tensor import NUMPY, Tensor
from .table import _publish, constant, elementwise, linear, pointwise, special

_FLOAT = np.dtype(float)


def _refuse_complex(name: str, input: Any) -> None:
    """Complex numbers have no order; NumPy would compare first their real parts, then their imaginary ones."""
    if getattr(input, "dtype", _FLOAT).kind == "c":
        raise NotImplementedError(
            errors.message(f"{name}()", expected="real numbers, which have an order", found=errors.describe(input))
        )


def _of_order(ufunc: np.ufunc, input: Any, other: Any) -> Any:
    """A ufunc of two arguments that goes by their order."""
    _refuse_complex(ufunc.__name__, input)
    return ufunc(input, other)


# Arithmetic
add = elementwise(
    "add",
    np.add,
    "``input + alpha * other``, broadcast.",
    alpha=True,
    dunder="add",
    input=lambda g: g,
    other=lambda g: g,
)
sub = elementwise(
    "sub",
    np.subtract,
    "``input - alpha * other``, broadcast.",
    alpha=True,
    dunder="sub",
    input=lambda g: g,
    other=lambda g: -g,
)
mul = elementwise(
    "mul",
    np.multiply,
    "``input * other``, broadcast.",
    dunder="mul",
    input=lambda g, other: g * other,
    other=lambda g, input: g * input,
)
div = elementwise(
    "div",
    np.true_divide,
    "``input / other``, broadcast; of integers a float.",
    floats=True,
    dunder="truediv",
    input=lambda g, other: g / other,
    other=lambda g, other, out: -(g * out) / other,
)
neg = elementwise("neg", np.negative, "``-input``.", dunder="neg", input=lambda g: -g)
positive = elementwise("positive", np.positive, "``+input``.", dunder="pos", input=lambda g: g)
reciprocal = elementwise(
    "reciprocal",
    np.reciprocal,
    "``1 / input``.",
    floats=True,
    input=lambda g, out: -g * (out * out),
)


def _square(input: Any) -> Any:
    return np.square(input, dtype=np.int64) if input.dtype.kind == "b" else np.square(input)


square = NUMPY[np.square] = elementwise(
    "square",
    _square,
    "``input ** 2``.",
    numpy={},
    input=lambda g, input: g * (2 * input),
)
sqrt = elementwise(
    "sqrt",
    np.sqrt,
    "The square root; NaN below 0. Derivative ``1 / (2 sqrt(x))``.",
    floats=True,
    input=lambda g, out: g / (2 * out),
)
rsqrt = elementwise(
    "rsqrt",
    lambda input: np.reciprocal(np.sqrt(input)),
    "``1 / sqrt(input)``.",
    floats=True,
    input=lambda g, out: g * (-0.5 * out * out * out),
)


def _pow_by_base(g: Any, input: Any, other: Any) -> Any:
    # d/dx x**n = n x**(n-1), and 0 where n is 0, also at x = 0 where the expression would be 0 * inf
    slope = np.multiply(g, np.multiply(other, np.power(input, np.subtract(other, 1))))
    return np.where(np.equal(other, 0), 0, slope) if np.any(np.equal(plain(other), 0)) else slope


def _pow_by_exponent(g: Any, input: Any, other: Any, out: Any) -> Any:
    # d/dn x**n = x**n log x, and 0 at x = 0 where n >= 0 (the limit), as torch has it
    zero = np.logical_and(np.equal(plain(input), 0), np.greater_equal(np.real(plain(other)), 0))
    if not np.any(zero):
        return np.multiply(g, np.multiply(out, np.log(input)))
    return np.where(zero, 0, np.multiply(g, np.multiply(out, np.log(np.where(zero, 1, input)))))


def plain(value: Any) -> Any:
    """The payload of a Tensor: for masks, which have no derivative."""
    return value._data if isinstance(value, Tensor) else value


def _power(input: Any, other: Any) -> Any:
    if getattr(other, "dtype", _FLOAT).kind not in "iu" or not np.any(np.less(other, 0)):
        return np.power(input, other)
    if not other.ndim:
        raise RuntimeError(
            "Integers to negative integer powers are not allowed.\n"
            "  What to do: convert the base first, e.g. x.float() ** n."
        )
    # Among many exponents torch lets negative ones be, and gives the integer part of the result: 0, but for 1 and -1.
    whole = np.where(np.equal(np.abs(input), 1), np.power(input, np.abs(other)), 0)
    return np.where(np.less(other, 0), whole, np.power(input, np.maximum(other, 0)))


pow = elementwise(
    "pow",
    _power,
    "``input ** other``, broadcast.",
    dunder="pow",
    numpy={},
    input=_pow_by_base,
    other=_pow_by_exponent,
)
NUMPY[np.power] = NUMPY[np.float_power] = pow
floor_divide = elementwise(
    "floor_divide",
    np.floor_divide,
    "``floor(input / other)``; its derivative is 0.",
    dunder="floordiv",
    input=lambda g: np.zeros_like(g),
    other=lambda g: np.zeros_like(g),
)


def _truncated(input: Any, other: Any) -> Any:
    if input.dtype.kind in "iu":
        return np.multiply(np.sign(input) * np.sign(other), np.floor_divide(np.abs(input), np.abs(other)))
    return np.trunc(np.true_divide(input, other))


_trunc_divide = elementwise(
    "_trunc_divide",
    _truncated,
    "``trunc(input / other)``; its derivative is 0.",
    numpy={},
    method=False,
    input=lambda g: np.zeros_like(g),
    other=lambda g: np.zeros_like(g),
)
_ROUNDED = {None: div, "floor": floor_divide, "trunc": _trunc_divide}


def _rounded_div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """``input / other``, broadcast; of integers a float. Rounded, to 0 ("trunc") or down ("floor"): derivative 0."""
    if rounding_mode not in _ROUNDED:
        raise RuntimeError(
            errors.message("div()", expected="rounding_mode None, 'trunc' or 'floor'", found=repr(rounding_mode))
        )
    return _ROUNDED[rounding_mode](input, other)


div = _publish(div.op, _rounded_div, _rounded_div, {}, True)  # type: ignore[attr-defined]
remainder = elementwise(
    "remainder",
    np.remainder,
    "``input - floor(input / other) * other``; takes the sign of `other`.",
    dunder="mod",
    input=lambda g: g,
    other=lambda g, input, other: np.negative(np.multiply(g, np.floor_divide(plain(input), plain(other)))),
)

# Exponentials and logarithms
exp = elementwise("exp", np.exp, "``e ** input``.", floats=True, input=lambda g, out: g * out)
expm1 = elementwise(
    "expm1",
    np.expm1,
    "``exp(input) - 1``, exact near 0.",
    floats=True,
    input=lambda g, out: g * (out + 1),
)
log = elementwise("log", np.log, "The natural logarithm.", floats=True, input=lambda g, input: g / input)
log1p = elementwise(
    "log1p",
    np.log1p,
    "``log(1 + input)``, exact near 0.",
    floats=True,
    input=lambda g, input: g / (input + 1),
)
log2 = elementwise(
    "log2",
    np.log2,
    "The logarithm to base 2.",
    floats=True,
    input=lambda g, input: g / (input * 0.6931471805599453),
)
log10 = elementwise(
    "log10",
    np.log10,
    "The logarithm to base 10.",
    floats=True,
    input=lambda g, input: g / (input * 2.302585092994046),
)

# Trigonometry
sin = elementwise("sin", np.sin, "The sine.", floats=True, input=lambda g, input: g * np.cos(input))
cos = elementwise(
    "cos",
    np.cos,
    "The cosine.",
    floats=True,
    input=lambda g, input: -g * np.sin(input),
)
tan = elementwise(
    "tan",
    np.tan,
    "The tangent.",
    floats=True,
    input=lambda g, out: g * (out * out + 1),
)
sinh = elementwise("sinh", np.sinh, "The hyperbolic sine.", floats=True, input=lambda g, input: g * np.cosh(input))
cosh = elementwise("cosh", np.cosh, "The hyperbolic cosine.", floats=True, input=lambda g, input: g * np.sinh(input))
tanh = elementwise(
    "tanh",
    np.tanh,
    "The hyperbolic tangent.",
    floats=True,
    input=lambda g, out: g * (1 - out * out),
)


def _sigmoid(input: Any) -> Any:
    # exp of a non-positive number never overflows; the two halves meet in 1/2 at 0
    if input.dtype.kind == "c":
        return np.reciprocal(np.add(np.exp(np.negative(input)), 1))
    e = np.exp(np.negative(np.abs(input)))
    return np.true_divide(np.where(np.greater_equal(input, 0), np.ones_like(e), e), np.add(e, 1))


sigmoid = elementwise(
    "sigmoid",
    _sigmoid,
    "``1 / (1 + exp(-input))``.",
    floats=True,
    input=lambda g, out: g * (out * (1 - out)),
)


# Kinks
def _relu(input: Any) -> Any:
    _refuse_complex("relu", input)
    return np.maximum(input, input.dtype.type(0))


relu = elementwise(
    "relu",
    _relu,
    "``max(input, 0)``; its derivative at 0 is 0.",
    numpy={},
    input=lambda g, out: np.where(np.less_equal(plain(out), 0), 0, g),
)


def _abs_rule(g: Any, input: Any) -> Any:
    if plain(input).dtype.kind != "c":
        return np.multiply(g, np.sign(plain(input)))
    size = np.abs(input)
    return np.where(
        np.equal(plain(size), 0), 0, np.true_divide(np.multiply(g, input), np.where(np.equal(plain(size), 0), 1, size))
    )


@special(numpy={np.absolute: lambda x: abs(x), np.fabs: lambda x: abs(x)}, input=_abs_rule)
def abs(input: Any) -> Any:
    """The absolute value, of complex numbers the modulus (a real tensor); the derivative at 0 is 0."""
    return np.abs(input)


Tensor.__abs__ = abs  # type: ignore[method-assign]


def _larger(g: Any, mine: Any, theirs: Any, better: Any) -> Any:
    """The cotangent where this operand won, half of it where the two are equal; where one is NaN both get it."""
    mine, theirs = plain(mine), plain(theirs)
    return np.where(better(theirs, mine), 0, np.where(np.equal(mine, theirs), np.multiply(0.5, g), g))


maximum = NUMPY[np.maximum] = elementwise(
    "maximum",
    functools.partial(_of_order, np.maximum),
    numpy={},
    doc="The larger of two, elementwise; NaN if either is. A tie shares the gradient in halves.",
    input=lambda g, input, other: _larger(g, input, other, np.greater),
    other=lambda g, input, other: _larger(g, other, input, np.greater),
)
minimum = NUMPY[np.minimum] = elementwise(
    "minimum",
    functools.partial(_of_order, np.minimum),
    numpy={},
    doc="The smaller of two, elementwise; NaN if either is. A tie shares the gradient in halves.",
    input=lambda g, input, other: _larger(g, input, other, np.less),
    other=lambda g, input, other: _larger(g, other, input, np.less),
)


def _bounded(g: Any, input: Any, min: Any, max: Any) -> Any:
    inside = np.ones(np.shape(plain(g)), dtype=bool)
    if min is not None:
        inside = np.logical_and(inside, np.greater_equal(plain(input), plain(min)))
    if max is not None:
        inside = np.logical_and(inside, np.less_equal(plain(input), plain(max)))
    return np.where(inside, g, 0)


def _below(g: Any, input: Any, min: Any, max: Any) -> Any:
    below = np.less(plain(input), plain(min))
    return np.where(below if max is None else np.logical_and(below, np.less(plain(min), plain(max))), g, 0)


def _above(g: Any, input: Any, min: Any, max: Any) -> Any:
    above = np.greater(plain(input), plain(max))
    return np.where(above if min is None else np.logical_or(above, np.greater(plain(min), plain(max))), g, 0)


@pointwise(
    input=_bounded,
    min=_below,
    max=_above,
    numpy={
        np.clip: lambda a, a_min=None, a_max=None, *, min=None, max=None: clamp(
            a, min if a_min is None else a_min, max if a_max is None else a_max
        )
    },
)
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """`input` limited to ``[min, max]``, numbers or tensors; the gradient passes at the bounds themselves.

    >>> import pullback
    >>> pullback.tensor([-1.0, 0.5, 2.0]).clamp(min=0, max=1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError(errors.message("clamp()", expected="at least one of min and max", found="neither"))
    _refuse_complex("clamp", input)
    low = input if min is None else np.maximum(input, min)
    return low if max is None else np.minimum(low, max)


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        raise TypeError("numpy.where(condition) with one argument has no derivative; use condition.detach().numpy()")
    return where(condition, x, y)


@pointwise(
    input=lambda g, condition: np.where(condition, g, 0),
    other=lambda g, condition: np.where(condition, 0, g),
    numpy={np.where: _where},
    method=False,
)
def where(condition: Any, input: Any, other: Any) -> Any:
    """`input` where `condition` holds, else `other`, broadcast. Only the chosen side gets a gradient.

    The side not taken is still computed: ``where(x > 0, sqrt(x), 0)`` has the gradient ``0 * inf = NaN`` at 0. Make the
    operand safe instead: ``where(x > 0, sqrt(where(x > 0, x, 1)), 0)``.
    """
    if not hasattr(condition, "dtype"):
        raise TypeError(
            errors.message("where()", expected="condition to be a bool Tensor", found=errors.describe(condition))
        )
    if condition.dtype != bool:
        raise RuntimeError(
            errors.message("where()", expected="condition to be a bool tensor", found=errors.describe(condition))
        )
    return np.where(condition, input, other)


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where `condition` holds, else `other`."""
    return where(condition, self, other)


Tensor.where = _where_method  # type: ignore[attr-defined]


# Complex numbers: their parts are linear over the reals, not over the complex numbers, so each has its own adjoint
@linear(numpy={np.real: lambda val: real(val)}, method=False, view=True, input=lambda g: g)
def real(input: Any) -> Any:
    """The real part, a view; a real tensor is its own."""
    return np.real(np.reshape(input, np.shape(input)))


@linear(numpy={np.imag: lambda val: imag(val)}, method=False, view=True, input=lambda g: np.multiply(1j, g))
def imag(input: Any) -> Any:
    """The imaginary part, a view."""
    if input.dtype.kind != "c":
        raise RuntimeError(errors.message("imag()", expected="a complex tensor", found=errors.describe(input)))
    return np.imag(input)


Tensor.real = property(real)  # type: ignore[attr-defined]
Tensor.imag = property(imag)  # type: ignore[attr-defined]


@linear(numpy={np.conjugate: lambda x: conj(x)}, input=lambda g: np.conj(g))
def conj(input: Any) -> Any:
    """The complex conjugate; a real tensor is its own."""
    return np.copy(input) if input.dtype.kind == "b" else np.conj(input)


# Comparisons and logic: their results, bools and integers, have no derivative
for _name, _ufunc, _doc, _dunder in [
    ("eq", np.equal, "``input == other``, elementwise.", "eq"),
    ("ne", np.not_equal, "``input != other``, elementwise.", "ne"),
    ("bitwise_and", np.bitwise_and, "``input & other``, of bools and integers.", "and"),
    ("bitwise_or", np.bitwise_or, "``input | other``, of bools and integers.", "or"),
    ("bitwise_xor", np.bitwise_xor, "``input ^ other``, of bools and integers.", "xor"),
    ("logical_and", np.logical_and, "Whether both are nonzero.", ""),
    ("logical_or", np.logical_or, "Whether either is nonzero.", ""),
    ("logical_xor", np.logical_xor, "Whether exactly one is nonzero.", ""),
    ("bitwise_not", np.invert, "``~input``, of bools and integers.", "invert"),
    ("logical_not", np.logical_not, "Whether it is zero.", ""),
    ("isnan", np.isnan, "Whether it is NaN.", ""),
    ("isinf", np.isinf, "Whether it is infinite.", ""),
    ("isfinite", np.isfinite, "Whether it is neither infinite nor NaN.", ""),
]:
    constant(_name, _ufunc, _doc, dunder=_dunder)


for _name, _ufunc, _doc in [
    ("lt", np.less, "``input < other``, elementwise."),
    ("le", np.less_equal, "``input <= other``, elementwise."),
    ("gt", np.greater, "``input > other``, elementwise."),
    ("ge", np.greater_equal, "``input >= other``, elementwise."),
]:
    NUMPY[_ufunc] = constant(_name, functools.partial(_of_order, _ufunc), _doc, dunder=_name, numpy={})

# Rounding: the derivative is 0 where there is one, and torch's choice elsewhere; the result is recorded all the same
floor = elementwise("floor", np.floor, "The largest integer not above.", input=lambda g: np.zeros_like(g))
ceil = elementwise("ceil", np.ceil, "The smallest integer not below.", input=lambda g: np.zeros_like(g))
trunc = elementwise("trunc", np.trunc, "The integer part.", input=lambda g: np.zeros_like(g))


def _sign(input: Any) -> Any:
    _refuse_complex("sign", input)
    return np.copy(input) if input.dtype.kind == "b" else np.sign(input)


sign = NUMPY[np.sign] = elementwise("sign", _sign, "-1, 0 or 1.", numpy={}, input=lambda g: np.zeros_like(g))


@pointwise(
    input=lambda g: np.zeros_like(g),
    numpy={np.rint: lambda x: round(x), np.round: lambda a, decimals=0: round(a, decimals)},
)
def round(input: Any, decimals: int = 0) -> Any:
    """The nearest number with so many decimals, halves to the even one; negative `decimals` round to tens, hundreds."""
    if input.dtype.kind not in "iuf":
        raise NotImplementedError(errors.message("round()", expected="real numbers", found=errors.describe(input)))
    return np.round(input, decimals)
