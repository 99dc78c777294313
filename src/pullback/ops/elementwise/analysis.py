"""Elementwise functions of analysis: exponentials and logarithms, trigonometry, the sigmoid and its inverse.

Each is one entry: a ufunc and an expression of the derivative. If torch's derivative is infinite or NaN at the edge of
a domain (`logit` at 0, `hypot` at the origin), so is the one here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.series_rules import growing, logistic, saturating
from ...kernels.masks import either
from ...table.calls import on
from ...table.entry import elementwise, pointwise
from ...table.operands import (
    FLOATS,
    Operation,
    converted,
    floating,
    is_complex,
    is_number,
    need,
    need_both,
    plain,
    somewhere,
)
from ...table.samples import EDGE_PAIRS, EDGES, NO_UNARY, A, S, V, pairs, unary
from ...tensor.arrays import writable
from .bessel import _slope

_FINITE = [S(V([x for x in EDGES if abs(x) != np.inf]))]
_UNIT = [S(V([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, np.nan]))]

# Exponentials and logarithms
exp = elementwise(
    "exp",
    np.exp,
    "``e ** input``.",
    floats=True,
    series=growing,
    input=lambda g, out: g * out,
    kinks=[S(V(EDGES))],
)
exp2: Operation = elementwise(
    "exp2",
    np.exp2,
    "``2 ** input``.",
    also="special.exp2",
    floats=True,
    numpy={np.exp2: lambda x: exp2(x), "scipy.special.exp2": lambda x: exp2(x)},
    input=lambda g, out: g * (out * 0.6931471805599453),
    kinks=[S(V(EDGES))],
)
expm1: Operation = elementwise(
    "expm1",
    np.expm1,
    "``exp(input) - 1``, exact near 0.",
    also="special.expm1",
    floats=True,
    numpy={np.expm1: lambda x: expm1(x), "scipy.special.expm1": lambda x: expm1(x)},
    input=lambda g, out: g * (out + 1),
    kinks=[S(V(EDGES))],
)
log = elementwise(
    "log",
    np.log,
    "The natural logarithm.",
    floats=True,
    domain="positive",
    input=lambda g, input: g / input,
    kinks=[S(V(EDGES))],
)
log1p: Operation = elementwise(
    "log1p",
    np.log1p,
    "``log(1 + input)``, exact near 0.",
    node="Log1PBackward0",
    also="special.log1p",
    floats=True,
    domain="positive",
    numpy={np.log1p: lambda x: log1p(x), "scipy.special.log1p": lambda x: log1p(x)},
    input=lambda g, input: g / (input + 1),
    kinks=[S(V(EDGES))],
)
log2 = elementwise(
    "log2",
    np.log2,
    "The logarithm to base 2.",
    floats=True,
    domain="positive",
    input=lambda g, input: g / (input * 0.6931471805599453),
    kinks=[S(V(EDGES))],
)
log10 = elementwise(
    "log10",
    np.log10,
    "The logarithm to base 10.",
    floats=True,
    domain="positive",
    input=lambda g, input: g / (input * 2.302585092994046),
    kinks=[S(V(EDGES))],
)


_LARGE = 4096  # from this size on, several vectorised calls are faster than one that is not


def _log_of_sum(input: Any, other: Any, exp: Any, log: Any, whole: Any) -> Any:
    """``log(1 + exp(smaller - larger)) + larger`` for large arrays: NumPy's own function `whole` is not vectorised."""
    gap = np.subtract(input, other)
    if np.size(gap) < _LARGE:
        return whole(input, other)
    np.negative(np.abs(gap, out=gap), out=gap)
    np.fmin(gap, 0, out=gap)  # between equal infinities the gap was NaN
    log(exp(gap, out=gap), out=gap)
    return np.add(gap, np.maximum(input, other), out=gap)


def _log2_of_one_more(x: Any, out: Any) -> Any:
    return np.multiply(np.log1p(x, out=out), x.dtype.type(1.4426950408889634), out=out)


def _logaddexp(input: Any, other: Any) -> Any:
    need_both("logaddexp", "fc", input, other)
    if "c" not in {getattr(v, "dtype", np.dtype(float)).kind for v in (input, other)}:
        return _log_of_sum(input, other, np.exp, np.log1p, np.logaddexp)
    first = np.greater_equal(np.real(input), np.real(other))
    larger, smaller = np.where(first, input, other), np.where(first, other, input)
    return larger + np.log1p(np.exp(smaller - larger))


logaddexp: Operation = elementwise(
    "logaddexp",
    _logaddexp,
    "``log(exp(input) + exp(other))``, without overflow.",
    inplace=False,
    numpy={np.logaddexp: lambda x1, x2: logaddexp(x1, x2)},
    input=lambda g, input, other: g * on(sigmoid, input - other),
    other=lambda g, input, other: g * on(sigmoid, other - input),
    samples=pairs,
    kinks=lambda: [S(*EDGE_PAIRS), S(V([1000.0, -1000.0, 0.0]), V([0.0, -1001.0, 2000.0]))],
)
logaddexp2: Operation = elementwise(
    "logaddexp2",
    lambda input, other: _log_of_sum(
        *need_both("logaddexp2", FLOATS, input, other), np.exp2, _log2_of_one_more, np.logaddexp2
    ),
    "``log2(2 ** input + 2 ** other)``, without overflow.",
    inplace=False,
    numpy={np.logaddexp2: lambda x1, x2: logaddexp2(x1, x2)},
    input=lambda g, input, other: g * on(sigmoid, 0.6931471805599453 * (input - other)),
    other=lambda g, input, other: g * on(sigmoid, 0.6931471805599453 * (other - input)),
    samples=pairs,
    kinks=lambda: [S(*EDGE_PAIRS), S(V([1000.0, -1000.0, 0.0]), V([0.0, -1001.0, 2000.0]))],
)

# Trigonometry
sin = elementwise("sin", np.sin, "The sine.", floats=True, input=lambda g, input: g * np.cos(input), kinks=_FINITE)
cos = elementwise("cos", np.cos, "The cosine.", floats=True, input=lambda g, input: -g * np.sin(input), kinks=_FINITE)
tan = elementwise(
    "tan",
    np.tan,
    "The tangent.",
    floats=True,
    domain="small",
    input=lambda g, out: g * (out * out + 1),
    kinks=_FINITE,
)


def _unit_root(input: Any) -> Any:
    """``sqrt(1 - input ** 2)``; on a branch cut of complex numbers the sign of the zero picks the side."""
    if is_complex(input):  # the zero's sign survives a difference from a number, not a sum
        return np.sqrt(-(input - 1)) * np.sqrt(input - (-1))
    return np.sqrt(1 - input * input)


asin = elementwise(
    "asin",
    np.arcsin,
    "The inverse of the sine, from -pi/2 to pi/2; NaN outside [-1, 1].",
    also="arcsin",
    floats=True,
    domain="small",
    input=lambda g, input: g / _unit_root(input),
    kinks=_UNIT,
)
acos = elementwise(
    "acos",
    np.arccos,
    "The inverse of the cosine, from 0 to pi; NaN outside [-1, 1].",
    also="arccos",
    floats=True,
    domain="small",
    input=lambda g, input: -g / _unit_root(input),
    kinks=_UNIT,
)
atan = elementwise(
    "atan",
    np.arctan,
    "The inverse of the tangent, from -pi/2 to pi/2.",
    also="arctan",
    floats=True,
    input=lambda g, input: g / (input * input + 1),
    kinks=[S(V(EDGES))],
)


def _turned(g: Any, toward: int, input: Any, other: Any) -> Any:
    # in the dtype of g: squares of small integers, and minus an unsigned one, do not fit theirs
    pair = [v if is_number(v) or plain(v).dtype.kind == "f" else np.add(np.zeros_like(g), v) for v in (input, other)]
    size = pair[0] * pair[0] + pair[1] * pair[1]
    along = -pair[0] if toward == 0 else pair[1]
    return g * (along / np.where(np.equal(plain(size), 0), np.inf, size))  # 0 at the origin, in every order


atan2 = elementwise(
    "atan2",
    np.arctan2,
    "The angle, from -pi to pi, of the point with coordinates `other` and `input`; at the origin its derivative is 0.",
    also="arctan2",
    floats=True,
    input=lambda g, input, other: _turned(g, 1, input, other),
    other=lambda g, input, other: _turned(g, 0, input, other),
    samples=pairs,
    kinks=lambda: [S(*EDGE_PAIRS)],
)
hypot: Operation = elementwise(
    "hypot",
    lambda input, other: np.hypot(*need_both("hypot", FLOATS, input, other)),
    "``sqrt(input ** 2 + other ** 2)``, without overflow; at the origin the derivative is NaN.",
    numpy={np.hypot: lambda x1, x2: hypot(x1, x2)},
    input=lambda g, input, out: g * (input / out),
    other=lambda g, other, out: g * (other / out),
    samples=pairs,
    kinks=lambda: [S(*EDGE_PAIRS), S(V([1e200, 1e-200]), V([1e200, 1e-200]))],
)


def _sinc(input: Any) -> Any:
    x = np.multiply(input, np.pi)
    zero = np.equal(x, 0)
    return np.where(zero, 1, np.sin(x) / np.where(zero, 1, x)) if somewhere(zero) else np.sin(x) / x


sinc: Operation = elementwise(
    "sinc",
    _sinc,
    "``sin(pi x) / (pi x)``, 1 at 0.",
    also="special.sinc",
    floats=True,
    numpy={np.sinc: lambda x: sinc(x)},
    input=lambda g, input: (
        g * (np.pi * _slope(np.pi * np.where(np.isinf(plain(input)), np.nan, input), "spherical", 0))
    ),
    kinks=[S(V([0.0, -0.0, 1.0, -1.0, 0.5, 30.0, 1e-30, np.nan, np.inf, -np.inf]))],
)
deg2rad: Operation = elementwise(
    "deg2rad",
    lambda input: np.multiply(need("deg2rad", FLOATS, input), 0.017453292519943295),
    "Degrees to radians.",
    node="Deg2RadBackward0",
    floats=True,
    numpy={np.deg2rad: lambda x: deg2rad(x), np.radians: lambda x: deg2rad(x)},
    input=lambda g: g * 0.017453292519943295,
    kinks=[S(V(EDGES))],
)
rad2deg: Operation = elementwise(
    "rad2deg",
    lambda input: np.multiply(need("rad2deg", FLOATS, input), 57.29577951308232),
    "Radians to degrees.",
    node="Rad2DegBackward0",
    floats=True,
    numpy={np.rad2deg: lambda x: rad2deg(x), np.degrees: lambda x: rad2deg(x)},
    input=lambda g: g * 57.29577951308232,
    kinks=[S(V(EDGES))],
)

# Hyperbolic functions
sinh = elementwise(
    "sinh",
    np.sinh,
    "The hyperbolic sine.",
    floats=True,
    input=lambda g, input: g * np.cosh(input),
    kinks=[S(V(EDGES))],
)
cosh = elementwise(
    "cosh",
    np.cosh,
    "The hyperbolic cosine.",
    floats=True,
    input=lambda g, input: g * np.sinh(input),
    kinks=[S(V(EDGES))],
)
tanh = elementwise(
    "tanh",
    np.tanh,
    "The hyperbolic tangent.",
    floats=True,
    series=saturating,
    input=lambda g, out: g * (1 - out * out),
    kinks=[S(V(EDGES))],
)
asinh = elementwise(
    "asinh",
    np.arcsinh,
    "The inverse of the hyperbolic sine.",
    also="arcsinh",
    floats=True,
    input=lambda g, input: g / (_unit_root(input * 1j) if is_complex(input) else np.sqrt(input * input + 1)),
    kinks=[S(V(EDGES))],
)


def _acosh_rule(g: Any, input: Any) -> Any:
    if is_complex(input):  # left of the imaginary axis, the root of the product would have the other sign
        return g / (np.sqrt(input - 1) * np.sqrt(input - (-1)))  # a difference keeps the sign of an imaginary zero
    return g / np.sqrt(input * input - 1)


acosh = elementwise(
    "acosh",
    np.arccosh,
    "The inverse of the hyperbolic cosine; NaN below 1.",
    also="arccosh",
    floats=True,
    domain="above one",
    input=_acosh_rule,
    kinks=_UNIT,
)
atanh = elementwise(
    "atanh",
    np.arctanh,
    "The inverse of the hyperbolic tangent; NaN outside [-1, 1].",
    also="arctanh",
    floats=True,
    domain="small",
    input=lambda g, input: g / (1 - input * input),
    kinks=_UNIT,
)


# The sigmoid, its inverse, and x log y
def _sigmoid(input: Any) -> Any:
    if input.dtype == np.float16:  # in half precision exp would overflow too early
        return _sigmoid(converted(input, np.float32)).astype(np.float16)
    if not is_complex(input):
        found = writable(np.negative(input))
        np.exp(found, out=found)
        found += 1
        return np.reciprocal(found, out=found)  # where exp overflows, 1 / inf is 0
    right = np.greater_equal(np.real(input), 0)  # for complex numbers, 1 / inf may be NaN
    e = np.exp(np.where(right, -input, input))
    return np.true_divide(np.where(right, 1, e), np.add(e, 1))


sigmoid: Operation = elementwise(
    "sigmoid",
    _sigmoid,
    "``1 / (1 + exp(-input))``.",
    also="special.expit",
    floats=True,
    numpy={"scipy.special.expit": lambda x: sigmoid(x)},
    series=logistic,
    fused=True,
    input=lambda g, out: g * (out * (1 - out)),
    kinks=[S(V(EDGES))],
)


def _logit_rule(g: Any, input: Any, eps: Any) -> Any:
    slope = g / (input * (1 - input))
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    outside = np.logical_or(np.less(plain(input), low), np.greater(plain(input), high))
    return either(np.logical_not(outside), slope, np.nan if eps is None else 0)


@pointwise(
    bounds="eps",
    also="special.logit",
    inplace=True,
    input=_logit_rule,
    numpy={"scipy.special.logit": lambda x: logit(x)},
    samples=lambda: [
        *unary("between 0 and 1"),
        S(A(2, 3, domain="between 0 and 1"), 0.3),
        S(A(2, 3), eps=0.2),
        S(A(3, domain="between 0 and 1"), None),
    ],
    kinks=[S(V([0.0, 1.0, -1.0, 2.0, 0.5, np.nan, 1e-30])), S(V([0.0, 0.25, 0.75, 1.0, 2.0, np.nan]), 0.25)],
    refused=NO_UNARY,
)
def logit(input: Any, eps: float | None = None) -> Any:
    """``log(input / (1 - input))``, the inverse of `sigmoid`; NaN outside [0, 1].

    eps: `input` is limited to ``[eps, 1 - eps]`` first, and gets no gradient outside.
    """
    if not (eps is None or is_number(eps)):
        raise TypeError(errors.message("logit()", expected="eps to be a number or None", found=errors.describe(eps)))
    x = need("logit", FLOATS, floating(input))
    x = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))
