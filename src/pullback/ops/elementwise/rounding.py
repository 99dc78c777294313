"""Rounding, and parts of a floating point number: whole and fraction, mantissa and exponent, sign bit, neighbours.

The derivative of rounding is 0 where it exists, and torch's choice elsewhere. The operation is still recorded.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...table.entry import METHODS, constant, elementwise, pointwise, special
from ...table.operands import FLOATS, REAL, REAL_NUMBERS, Operation, is_number, need, need_both, plain
from ...table.results import result_type
from ...table.samples import EDGE_PAIRS, EDGES, NO_UNARY, A, Differs, S, V, inf, nan, pairs, unary
from ...tensor.arrays import copied, in_order, writable
from ...tensor.tensor import Tensor

floor: Operation = elementwise(
    "floor",
    lambda input: np.floor(need("floor", REAL_NUMBERS, input)),
    "The largest integer up to `input`.",
    domain="between",
    numpy={np.floor: lambda x: floor(x)},
    out="exact",
    input=lambda g: np.zeros_like(g),
    kinks=[S(V(EDGES))],
)
ceil: Operation = elementwise(
    "ceil",
    lambda input: np.ceil(need("ceil", REAL_NUMBERS, input)),
    "The smallest integer from `input` on.",
    domain="between",
    numpy={np.ceil: lambda x: ceil(x)},
    out="exact",
    input=lambda g: np.zeros_like(g),
    kinks=[S(V(EDGES))],
)
trunc: Operation = elementwise(
    "trunc",
    lambda input: np.trunc(need("trunc", REAL_NUMBERS, input)),
    "The integer part: rounded toward 0.",
    also="fix",
    domain="between",
    numpy={np.trunc: lambda x: trunc(x), np.fix: lambda x: trunc(x)},
    out="exact",
    input=lambda g: np.zeros_like(g),
    kinks=[S(V(EDGES))],
)
frac: Operation = elementwise(
    "frac",
    lambda input: np.subtract(need("frac", FLOATS, input), np.trunc(input)),
    "``input - trunc(input)``, with the sign of `input`.",
    domain="between",
    numpy={np.modf: lambda x: (frac(x), trunc(x))},
    out="exact",
    input=lambda g: g,
    kinks=[S(V(EDGES))],
)


@pointwise(
    also="special.round",
    inplace=True,
    out="exact",
    input=lambda g: np.zeros_like(g),
    numpy={
        np.rint: lambda x: round(x),
        np.round: lambda a, decimals=0: round(a, decimals),
        "scipy.special.round": lambda x: round(x),
    },
    samples=lambda: [
        *unary("between"),
        S(A(3), decimals=1),
        S(A(2, 3), decimals=-1),
        S(A(3, dtype="float32"), decimals=0),
    ],
    kinks=[S(V([0.5, 1.5, 2.5, -0.5, -1.5, inf, nan, 0.0]))],
    refused=[*NO_UNARY, S(V([1, 2], "int64"), decimals=1), S(A(2), decimals=1.5)],
)
def round(input: Any, decimals: int = 0) -> Any:
    """The nearest number with `decimals` decimals, halves to the even one; negative `decimals` round to tens, hundreds.

    >>> import pullback
    >>> pullback.round(pullback.tensor([2.5, 3.5, -1.26])), pullback.round(pullback.tensor(-1.26), decimals=1)
    (tensor([ 2.,  4., -1.]), tensor(-1.3000))
    """
    if not isinstance(decimals, int):
        raise TypeError(errors.message("round()", expected="decimals to be an int", found=errors.describe(decimals)))
    need("round", FLOATS if decimals else REAL_NUMBERS, input)
    return copied(input) if input.dtype.kind in "iu" else np.round(input, decimals)


def _rounded(self: Tensor, ndigits: int | None = None) -> Any:
    """Python's ``round(t, ndigits)``, of any tensor; without `ndigits` an int, of a tensor with one element."""
    if ndigits is not None:
        return round(self, decimals=ndigits if self.is_floating_point() else min(ndigits, 0))
    if self._data.size != 1:
        raise TypeError(
            errors.message(
                "round()", expected="a tensor with one element", found=errors.describe(self), do="write numpy.round(t)"
            )
        )
    return builtins.round(self._number("int"))


METHODS["__round__"] = _rounded


signbit: Operation = constant(
    "signbit",
    lambda input: np.signbit(input) if input.dtype.kind in "fV" else np.less(need("signbit", REAL, input), 0),
    "Whether the sign bit is set: for negative numbers and -0.0.",
    numpy={np.signbit: lambda x: signbit(x)},
    out="exact",
    samples=lambda: [*unary(), S(V([0.0, -0.0, -inf], "float64"))],
)
nextafter: Operation = elementwise(
    "nextafter",
    lambda input, other: np.nextafter(*need_both("nextafter", FLOATS, input, other)),
    "The next number of the dtype after `input`, toward `other`. Its derivative by `input` is 1.",
    narrow="itself",
    numpy={np.nextafter: lambda x1, x2: nextafter(x1, x2)},
    input=lambda g, input, other: np.where(np.equal(plain(input), plain(other)), 0, g),
    other=lambda g: np.zeros_like(g),
    samples=lambda: [*pairs(), S(A(3, dtype="float32"), A(3, dtype="float32"))],
    kinks=lambda: [S(*EDGE_PAIRS)],
)

# Mantissa and exponent
Frexp = result_type("frexp", "mantissa", "exponent")


@special(
    contiguous=False,
    batch="leading",
    input=lambda g, out1: np.true_divide(g[0], np.exp2(plain(out1) + np.zeros_like(plain(g[0])))),
    numpy={np.frexp: lambda x: tuple(frexp(x))},
    samples=unary,
    kinks=[S(V([0.0, -0.0, 1.0, -1.0, 0.5, 1e30, 1e-30, inf, -inf]))],
    refused=[*NO_UNARY, S(V([1, 2], "int64"))],
)
def frexp(input: Any) -> tuple[Any, Any]:
    """Mantissa and exponent: ``input = mantissa * 2 ** exponent`` with ``0.5 <= |mantissa| < 1``.

    >>> import pullback
    >>> mantissa, exponent = pullback.frexp(pullback.tensor([10.0, -0.75]))
    >>> mantissa, exponent
    (tensor([ 0.6250, -0.7500]), tensor([4, 0], dtype=pullback.int32))
    """
    mantissa, exponent = np.frexp(need("frexp", FLOATS, input))
    return Frexp(writable(mantissa), writable(exponent))


def _ldexp(input: Any, other: Any) -> Any:
    other = np.asarray(other, input.dtype) if is_number(other) else other  # otherwise its halves would be float64
    # in two steps, which do not overflow unless the result does
    half = np.clip(np.floor(np.real(other) / 2), -1100, 1100)
    return input * in_order(np.exp2(half)) * in_order(np.exp2(other - half))


ldexp: Operation = elementwise(
    "ldexp",
    _ldexp,
    "``input * 2 ** other``, in floating point.",
    floats=True,
    numpy={np.ldexp: lambda x1, x2: ldexp(x1, x2)},
    input=lambda g, other: on(ldexp, g, other),
    other=lambda g, out: g * (out * 0.6931471805599453),
    samples=lambda: [
        *pairs("real", "small"),
        S(A(3), V([1, -2, 20], "int64")),
        S(A(3), V([1, 0, 2], "int64")),
    ],
    kinks=[S(V([0.0, 1.0, inf, nan]), V([inf, -inf, 1.0, 2.0]))],
    differs=[
        Differs("torch raises 2 to a negative power among integers, where it is 0", check, sample="-2, 20]")
        for check in ("gradients", "second")
    ],
)
