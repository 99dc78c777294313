"""Powers and roots.

The derivative by the base is 0 where the exponent is 0, and the derivative by the exponent is 0 where the base is 0.
These are limits; the plain expressions would give ``0 * inf``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...table.entry import composite, elementwise, front
from ...table.operands import NUMBERS, Operation, is_number, need, one_beside, plain, somewhere
from ...table.samples import EDGE_PAIRS, EDGES, NO_PAIR, A, S, V, pairs
from ...tensor import dtypes
from ...tensor.arrays import in_order
from ...tensor.protocol import is_foreign
from ...tensor.tensor import Tensor


def _square(input: Any) -> Any:
    return np.square(input, dtype=np.int64) if input.dtype.kind == "b" else np.square(input)


def _twice(product: Any) -> Any:
    """A product that was just made, doubled: in place, for large arrays take the time of their memory."""
    return np.add(product, product, product) if type(product) is np.ndarray else product + product


square: Operation = elementwise(
    "square",
    _square,
    "``input ** 2``.",
    node="PowBackward0",
    saved={"exponent": lambda: 2},
    numpy={np.square: lambda x: square(x)},
    input=lambda g, input: _twice(g * input),
    kinks=[S(V(EDGES)), S(V([0.0, 0.0]))],
)
sqrt = elementwise(
    "sqrt",
    np.sqrt,
    "The square root; NaN below 0. Derivative ``1 / (2 sqrt(x))``, infinite at 0.",
    floats=True,
    domain="positive",
    input=lambda g, out: g / (2 * out),
    kinks=[S(V(EDGES))],
)
rsqrt = elementwise(
    "rsqrt",
    lambda input: np.reciprocal(np.sqrt(input)),
    "``1 / sqrt(input)``.",
    floats=True,
    domain="positive",
    input=lambda g, out: g * (-0.5 * out * out * out),
    kinks=[S(V(EDGES))],
)
_cbrt = elementwise(  # NumPy has it, torch does not
    "_cbrt",
    np.cbrt,
    "The real cube root.",
    floats=True,
    method=False,
    input=lambda g, out: g / (3 * out * out),
)


def _raised(x: Any, n: Any) -> Any:
    """``x ** n`` for a number n. Small powers are products, which are faster, and equal to torch's."""
    if n == 2:
        return np.square(x)
    if n == 3:
        return np.multiply(np.square(x), x)
    if n == 0.5:
        return np.sqrt(x)
    if n == -0.5:
        return np.reciprocal(np.sqrt(x))
    if n == -1:
        return np.reciprocal(x)
    if n == -2:
        return np.reciprocal(np.square(x))
    return np.power(x, n)


def _refuse_exponent(place: int, value: int, dtype: np.dtype[Any]) -> None:
    if place == 1 and value < 0:
        raise RuntimeError(
            errors.message(
                "Integers to negative integer powers are not allowed",
                do=f"convert the base first, e.g. x.{dtypes.to_default()} ** n",
            )
        )
    if place == 1:
        dtypes.refuse_overflow(value, dtype)


def _power(input: Any, other: Any) -> Any:
    if not hasattr(input, "size"):
        return in_order(np.power(input, other))
    need("pow", NUMBERS, input)
    if not input.ndim:  # as for a number
        return in_order(_of_arrays(input, other))
    return _of_arrays(input, other)


def _of_arrays(input: Any, other: Any) -> Any:
    if input.dtype.kind in "fcV":
        if is_number(other):
            return _raised(input, other)
        return np.power(input, other) if other.ndim or is_foreign(other) else _raised(input, other.item())
    if not somewhere(np.less(other, 0)):
        return np.power(input, other)
    # torch refuses a negative number, but no negative exponent in a tensor: its result is truncated to 0, or 1 or -1
    whole = np.where(np.equal(np.abs(input), 1), np.power(input, np.abs(other)), 0)
    return np.where(np.less(other, 0), whole, np.power(input, np.maximum(other, 0)))


def _pow_by_base(g: Any, input: Any, other: Any) -> Any:
    # d/dx x**n = n x**(n-1), and 0 where n is 0, also where 1 / x is infinite, and the expression would be 0 * inf
    if is_number(other):
        return g * (other * _raised(input, other - 1)) if other != 0 else np.zeros_like(g)
    dtype = plain(input).dtype
    exact = dtypes.real_of(getattr(dtype, "numpy", dtype)) if dtype.kind in "fc" else np.dtype(np.float64)
    invertible = np.greater(np.abs(plain(input)), 1 / np.finfo(exact).max)
    degenerate = np.logical_and(np.equal(plain(other), 0), np.logical_not(invertible))
    return g * (other * np.power(np.where(degenerate, 1, input), np.subtract(other, 1.0)))


def _is_complex(value: Any) -> bool:
    return isinstance(value, complex) if is_number(value) else value.dtype.kind == "c"


def _pow_by_exponent(g: Any, input: Any, other: Any, out: Any) -> Any:
    # d/dn x**n = x**n log x, and 0 at x = 0 where n >= 0, the limit
    if out.dtype.kind == "c" and not _is_complex(input):  # the logarithm of a negative number is complex
        input = np.add(input, 0j if is_number(input) else np.zeros_like(out))
    if is_number(input) and input != 0:
        return g * (out * np.log(input).item())
    zero = np.logical_and(np.equal(plain(input), 0), np.greater_equal(np.real(plain(other)), 0))
    if is_number(input):  # it is 0
        input = np.zeros_like(plain(out))
    return g * (out * np.log(np.where(zero, one_beside(input, out), input)))


_pow = elementwise(
    "pow",
    _power,
    "``input ** exponent``, broadcast.",
    dunder="pow rpow ipow",
    fits=_refuse_exponent,
    node=lambda node: f"PowBackward{int(1 in node.plan.wanted)}",
    cut=True,
    front=True,
    numpy={np.power: lambda x1, x2: pow(x1, x2)},
    input=_pow_by_base,
    other=_pow_by_exponent,
    samples=lambda: [
        *pairs("positive", "small", 2, 3, 0.5, -1, 0, 1, 0.5 + 1j),
        S(2, A(2, 3)),
        S(0.5, A(3)),
        *(S(A(2, 3), n) for n in (2, 3, -2, 4)),
        *(S(A(3, domain="positive"), n) for n in (-0.5, 2.5)),
        S(A(2, 3, domain="positive"), exponent=A(3)),
        S(A(3, domain="positive"), V([2, 3, 0], "int64")),
        *(S(base, V([0.5 + 1j, -0.3 + 2j], "complex128")) for base in (-2.0, V([-1.0, 0.5], "float64"))),
    ],
    kinks=lambda: [
        S(*EDGE_PAIRS),
        *(S(V(EDGES), n) for n in (0, 1, 2, 3, -1, -2, 1.5, np.inf)),
        *(S(V([0.0, 1.0, 30.0, np.inf, np.nan]), n) for n in (0.5, -0.5)),
        *(S(n, V(EDGES)) for n in (0.0, 1.0, 2.0, np.inf)),
    ],
    refused=[*NO_PAIR, S(V([1, 2], "int64"), -1)],
)


@front(_pow)
def pow(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """``input ** exponent``, broadcast; its derivatives take their limit, 0, at exponent 0 and at base 0.

    >>> import pullback
    >>> pullback.pow(2, pullback.tensor([1.0, 3.0]))
    tensor([2., 8.])
    """
    return _pow(input, exponent, out=out)


@composite(
    contiguous=True,
    inplace="exact",
    numpy={np.float_power: lambda x1, x2: float_power(x1, x2)},
    out="exact",
    samples=lambda: [*pairs("positive", "small", 2, -1, 0.5, 1j), S(2, A(2, 3)), S(A(3), exponent=3)],
    refused=NO_PAIR,
)
def float_power(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent`` in double precision, whatever the dtypes."""
    kinds = {dtypes.result_type([v._data if isinstance(v, Tensor) else v]).kind for v in (input, exponent)}
    double = dtypes.complex128 if "c" in kinds else dtypes.float64
    return pow(*(v.to(double) if isinstance(v, Tensor) else v for v in (input, exponent)))
