"""Elementwise comparisons, logic and bit operations. Their results are bools and integers, without a derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...table.entry import TABLE, constant, titled
from ...table.op import Over
from ...table.operands import INTEGERS, REAL, Operation, need, need_both
from ...table.samples import EDGE_PAIRS, NO_PAIR, S, Sample, V, inf, integers, nan, pairs, unary
from ...tensor.tensor import Tensor
from ..make.conversion import to


def _compared() -> list[Sample]:
    return [*pairs("real", None, 1, 0.5), S(V([1, 2, 0]), V([1, 3, 0]))]


def _edges() -> list[Sample]:
    return [S(*EDGE_PAIRS)]


def _odd() -> list[Sample]:
    return [*unary(), S(V([nan, inf, -inf, 0.0], "float64"))]


def _bits() -> list[Sample]:
    return [*pairs("real", None, 1, True), S(1, V([1, 2], "int64"))]


def _in_numbers(name: str) -> Callable[..., Tensor]:
    """What the in-place form of a comparison computes: 0 and 1 in the tensor's dtype, with the gradient 0 in torch."""

    def compare(input: Tensor, other: Any) -> Tensor:
        apart = other.detach() if isinstance(other, Tensor) else other
        found: Tensor = to(TABLE[name].call(input.detach(), apart), input.dtype)
        for t in (other, input):
            if isinstance(t, Tensor) and t._requires_grad:
                if t._data.dtype.kind == "c" and found._data.dtype.kind != "c":
                    t = t.real
                below = to(t, found.dtype).expand(found._data.shape)
                found = titled(Over.op.call, f"{name.capitalize()}Backward0")(below, found)
        return found

    return compare


eq = constant(
    "eq",
    np.equal,
    "``input == other``, elementwise.",
    dunder="eq",
    inplace=_in_numbers("eq"),
    samples=_compared,
    kinks=_edges,
)
ne = constant(
    "ne",
    np.not_equal,
    "``input != other``, elementwise.",
    also="not_equal",
    dunder="ne",
    inplace=_in_numbers("ne"),
    samples=_compared,
    kinks=_edges,
)
lt: Operation = constant(
    "lt",
    lambda input, other: np.less(*need_both("lt", REAL, input, other)),
    "``input < other``, elementwise.",
    also="less",
    dunder="lt",
    inplace=_in_numbers("lt"),
    numpy={np.less: lambda x1, x2: lt(x1, x2)},
    samples=_compared,
    kinks=_edges,
)
le: Operation = constant(
    "le",
    lambda input, other: np.less_equal(*need_both("le", REAL, input, other)),
    "``input <= other``, elementwise.",
    also="less_equal",
    dunder="le",
    inplace=_in_numbers("le"),
    numpy={np.less_equal: lambda x1, x2: le(x1, x2)},
    samples=_compared,
    kinks=_edges,
)
gt: Operation = constant(
    "gt",
    lambda input, other: np.greater(*need_both("gt", REAL, input, other)),
    "``input > other``, elementwise.",
    also="greater",
    dunder="gt",
    inplace=_in_numbers("gt"),
    numpy={np.greater: lambda x1, x2: gt(x1, x2)},
    samples=_compared,
    kinks=_edges,
)
ge: Operation = constant(
    "ge",
    lambda input, other: np.greater_equal(*need_both("ge", REAL, input, other)),
    "``input >= other``, elementwise.",
    also="greater_equal",
    dunder="ge",
    inplace=_in_numbers("ge"),
    numpy={np.greater_equal: lambda x1, x2: ge(x1, x2)},
    samples=_compared,
    kinks=_edges,
)


# Logic on bools: NumPy's logical functions are slow for other numbers
def _holding(*values: Any) -> Any:
    return (v if getattr(v, "dtype", np.dtype(bool)).kind == "b" else np.not_equal(v, 0) for v in values)


logical_and: Callable[..., Any] = constant(
    "logical_and",
    lambda input, other: np.logical_and(*_holding(input, other)),
    "Whether both are nonzero.",
    inplace=True,
    numpy={np.logical_and: lambda x1, x2: logical_and(x1, x2)},
    kinks=_edges,
)
logical_or: Callable[..., Any] = constant(
    "logical_or",
    lambda input, other: np.logical_or(*_holding(input, other)),
    "Whether either is nonzero.",
    inplace=True,
    numpy={np.logical_or: lambda x1, x2: logical_or(x1, x2)},
    kinks=_edges,
)
logical_xor: Callable[..., Any] = constant(
    "logical_xor",
    lambda input, other: np.logical_xor(*_holding(input, other)),
    "Whether exactly one is nonzero.",
    inplace=True,
    numpy={np.logical_xor: lambda x1, x2: logical_xor(x1, x2)},
    kinks=_edges,
)
logical_not = constant("logical_not", np.logical_not, "Whether it is zero.", inplace=True)

# Bits
bitwise_and = constant(
    "bitwise_and",
    np.bitwise_and,
    "``input & other``, of bools and integers.",
    dunder="and rand iand",
    inplace=True,
    samples=_bits,
    refused=integers(NO_PAIR),
)
bitwise_or = constant(
    "bitwise_or",
    np.bitwise_or,
    "``input | other``, of bools and integers.",
    dunder="or ror ior",
    inplace=True,
    samples=_bits,
    refused=integers(NO_PAIR),
)
bitwise_xor = constant(
    "bitwise_xor",
    np.bitwise_xor,
    "``input ^ other``, of bools and integers.",
    dunder="xor rxor ixor",
    inplace=True,
    samples=_bits,
    refused=integers(NO_PAIR),
)
bitwise_not = constant(
    "bitwise_not", np.invert, "``~input``, of bools and integers.", dunder="invert", inplace=True, out="exact"
)
bitwise_left_shift: Operation = constant(
    "bitwise_left_shift",
    lambda input, other: np.left_shift(*need_both("bitwise_left_shift", INTEGERS, input, other)),
    "``input << other``, of integers; 0 when all bits have been shifted out.",
    dunder="lshift rlshift ilshift",
    inplace=True,
    numpy={np.left_shift: lambda x1, x2: bitwise_left_shift(x1, x2)},
    samples=lambda: [*_bits(), S(V([5, -5, 1, -1, 8], "int64"), V([1, 1, 63, 64, 2], "int64"))],
    refused=integers(NO_PAIR),
)
bitwise_right_shift: Operation = constant(
    "bitwise_right_shift",
    lambda input, other: np.right_shift(*need_both("bitwise_right_shift", INTEGERS, input, other)),
    "``input >> other``, of integers: rounded down, and 0 or -1 when all bits have been shifted out.",
    dunder="rshift rrshift irshift",
    inplace=True,
    numpy={np.right_shift: lambda x1, x2: bitwise_right_shift(x1, x2)},
    samples=lambda: [*_bits(), S(V([5, -5, 1, -1, 8], "int64"), V([1, 1, 63, 64, 2], "int64"))],
    refused=integers(NO_PAIR),
)

# Kinds of numbers: finite, infinite, NaN, signs
isnan = constant("isnan", np.isnan, "Whether it is NaN.", samples=_odd)
isinf = constant("isinf", np.isinf, "Whether it is infinite.", samples=_odd)
isfinite = constant("isfinite", np.isfinite, "Whether it is neither infinite nor NaN.", samples=_odd)
isposinf: Operation = constant(
    "isposinf",
    lambda input: np.equal(need("isposinf", REAL, input), np.inf),
    "Whether it is positive infinity.",
    numpy={np.isposinf: lambda x: isposinf(x)},
    out="exact",
    samples=_odd,
)
isneginf: Operation = constant(
    "isneginf",
    lambda input: np.equal(need("isneginf", REAL, input), -np.inf),
    "Whether it is negative infinity.",
    numpy={np.isneginf: lambda x: isneginf(x)},
    out="exact",
    samples=_odd,
)
isreal: Operation = constant(
    "isreal",
    np.isreal,
    "Whether its imaginary part is 0; True for every real number.",
    numpy={np.isreal: lambda x: isreal(x), np.iscomplex: lambda x: logical_not(isreal(x))},
    out=False,
    samples=lambda: [*unary(), S(V([1 + 2j, 3, 0j], "complex128"))],
)
