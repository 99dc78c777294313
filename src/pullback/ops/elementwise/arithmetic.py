"""Arithmetic: sums, products, quotients, remainders, and combinations of them.

A rounded quotient has the derivative 0. A remainder is ``input - quotient * other`` with such a quotient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.series_rules import quotient
from ...table.calls import on
from ...table.entry import METHODS, composite, constant, elementwise, front, special, titled
from ...table.nodes import tensor_of
from ...table.operands import (
    INTEGERS,
    NUMBERS,
    REAL_NUMBERS,
    Operation,
    converted,
    data_of,
    divisor,
    is_number,
    need,
    need_both,
)
from ...table.samples import EDGE_PAIRS, EDGES, NO_PAIR, NO_UNARY, A, Differs, S, V, integers, pairs, unary
from ...tensor import dtypes
from ...tensor.protocol import is_foreign
from ...tensor.tensor import NUMPY, Tensor
from ..make.conversion import to

# In torch's nodes, number operands are tensors.
_OPERANDS = {"self": lambda input: tensor_of(input), "other": lambda other: tensor_of(other)}

mul = elementwise(
    "mul",
    np.multiply,
    "``input * other``, broadcast.",
    also="multiply",
    saved=_OPERANDS,
    dunder="mul rmul imul",
    series="product",
    input=lambda g, other: g * other,
    other=lambda g, input: g * input,
    samples=lambda: [*pairs("real", None, 2, 2.5, True, 1 + 2j), S(2.5, A(3))],
    kinks=lambda: [S(*EDGE_PAIRS)],
)
times = elementwise(
    "_times",
    np.multiply,
    "``input * other`` for a number, such as ``alpha``: the node saves no tensor, so it can run again.",
    method=False,
    node="MulBackward0",
    numbers="other",
    numpy={},
    input=lambda g, other: g * other,
    samples=lambda: [S(A(3), 2), S(A(2, 3), 2.5), S(A(2), 1 + 2j)],
)
add = elementwise(
    "add",
    np.add,
    "``input + alpha * other``, broadcast.",
    saved={"alpha": lambda: 1},
    alpha=times,
    dunder="add radd iadd",
    input=lambda g: g,
    other=lambda g: g,
    samples=lambda: [
        *pairs("real", None, 2, 2.5, True, 1 + 2j),
        S(A(3), A(2, 3), alpha=2),
        S(A(3), 2, alpha=3),
        S(A(2), A(2), alpha=-0.5),
        S(2, A(3)),
    ],
    kinks=lambda: [S(*EDGE_PAIRS)],
    differs=[Differs("the product with alpha promotes as every product does", "values", "bool", "alpha=2")],
)
sub = elementwise(
    "sub",
    np.subtract,
    "``input - alpha * other``, broadcast.",
    saved={"alpha": lambda: 1},
    also="subtract",
    alpha=times,
    dunder="sub rsub isub",
    input=lambda g: g,
    other=lambda g: -g,
    samples=lambda: [
        *pairs("real", None, 2, 2.5),
        S(A(3), A(2, 3), alpha=2),
        S(A(2), 1.5, alpha=2),
        S(2.5, A(3)),
    ],
    kinks=lambda: [S(*EDGE_PAIRS)],
    differs=[
        Differs("torch refuses to subtract from a bool; a number makes it an integer or a float", "values", "bool")
    ],
)


@composite(
    out=False,
    method=False,
    samples=lambda: [*pairs("real", None, 2, 2.5), S(A(3), A(2, 3), alpha=2), S(A(2), 1.5, alpha=2)],
    refused=NO_PAIR,
    differs=[Differs("torch refuses to subtract a bool; a number makes it an integer or a float", "values", "bool")],
)
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """``other - alpha * input``, broadcast: `sub` with its operands exchanged."""
    return titled(sub, f"RsubBackward{int(not isinstance(other, Tensor))}")(other, input, alpha=alpha)


neg = elementwise(
    "neg",
    np.negative,
    "``-input``.",
    also="negative",
    dunder="neg",
    out="exact",
    input=lambda g: -g,
    kinks=[S(V(EDGES))],
)


@composite(numpy={np.positive: lambda x: positive(x).clone()}, out=False, samples=unary, refused=NO_UNARY)
def positive(input: Tensor) -> Tensor:
    """``+input``: the tensor itself; bools are refused."""
    need("positive", NUMBERS, input._data)
    return input


METHODS["__pos__"] = positive

# Quotients
_div = elementwise(
    "div",
    np.true_divide,
    "``input / other``, broadcast; a float for integers.",
    also="divide true_divide",
    front=True,
    saved={**_OPERANDS, "rounding_mode": lambda: None},
    floats=True,
    dunder="truediv rtruediv itruediv",
    series=quotient,
    input=lambda g, other: g / other,
    other=lambda g, input, other: -g * ((input / other) / other),
    samples=lambda: [
        *pairs("real", None, 2, 2.5, 1 + 2j),
        S(2.5, A(3)),
        *(S(A(2, 3, domain="between"), A(3), rounding_mode=m) for m in ("floor", "trunc", None)),
        *(S(A(3, domain="between"), 0.77, rounding_mode=m) for m in ("floor", "trunc")),
    ],
    kinks=lambda: [S(*EDGE_PAIRS), *(S(*EDGE_PAIRS, rounding_mode=m) for m in ("floor", "trunc"))],
    refused=[
        *NO_PAIR,
        S(A(3), A(3), rounding_mode="up"),
        *(S(V([1, 2], "int64"), V([1, 0], "int64"), rounding_mode=m) for m in ("floor", "trunc")),
    ],
)
METHODS["__div__"], METHODS["__rdiv__"] = METHODS["__truediv__"], METHODS["__rtruediv__"]


_BLOCK = 1 << 13  # elements; their intermediate results fit in the processor's cache


def _by_quotient(whole: Any, rule: Any, input: Any, other: Any) -> Any:
    """`whole` for large float32 arrays, computed by `rule` from the float64 quotient: NumPy's own function is slow.

    The 53-bit quotient of 24-bit numbers is on the right side of every whole number up to 2**24, and the remainder is
    exact. `rule` takes both operands and the quotient. For larger quotients, `whole` itself is called.
    """
    if any(getattr(v, "dtype", None) != np.float32 for v in (input, other)) or input.size < _BLOCK:
        return whole(input, other)
    pair = np.broadcast_arrays(input, other)
    flat, out = [np.ravel(v) for v in pair], np.empty(pair[0].size, np.float32)
    for start in range(0, out.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        x, y = (v[block].astype(np.float64) for v in flat)
        quotient = x / y
        exact = np.maximum.reduce(np.abs(quotient)) < 2**24
        out[block] = rule(x, y, quotient) if exact else whole(flat[0][block], flat[1][block])
    return np.reshape(out, pair[0].shape)


def _floor_divide(input: Any, other: Any) -> Any:
    return _by_quotient(np.floor_divide, lambda x, y, quotient: np.floor(quotient), input, other)


def _remainder(input: Any, other: Any) -> Any:
    return _by_quotient(np.remainder, lambda x, y, quotient: np.copysign(x - np.floor(quotient) * y, y), input, other)


def _fmod(input: Any, other: Any) -> Any:
    return _by_quotient(np.fmod, lambda x, y, quotient: np.copysign(x - np.trunc(quotient) * y, x), input, other)


def _counted(input: Any) -> Any:
    """An operand, with 0 and 1 instead of bools."""
    return input if is_number(input) or data_of(input).dtype.kind != "b" else np.add(input, 0)


_FLOOR = "the derivative is 0, as that of floor() and of div(rounding_mode='floor'); torch has none for floor_divide"
floor_divide: Operation = elementwise(
    "floor_divide",
    lambda input, other: _floor_divide(*divisor(*need_both("floor_divide", REAL_NUMBERS, input, other))),
    "``floor(input / other)``; its derivative is 0.",
    dunder="floordiv rfloordiv ifloordiv",
    numpy={np.floor_divide: lambda x1, x2: floor_divide(x1, x2)},
    input=lambda g: np.zeros_like(g),
    other=lambda g: np.zeros_like(g),
    samples=lambda: [*pairs("between", "positive", 2, 0.77), S(2.5, A(3))],
    kinks=lambda: [S(*EDGE_PAIRS)],
    refused=[*NO_PAIR, S(V([1, 2], "int64"), V([1, 0], "int64"))],
    differs=[Differs(_FLOOR, check) for check in ("gradients", "second", "kinks")],
)


def _truncated(input: Any, other: Any) -> Any:
    need_both("div", REAL_NUMBERS, *divisor(input, other))
    if all(isinstance(v, int) or getattr(v, "dtype", np.dtype(float)).kind in "iub" for v in (input, other)):
        whole = np.floor_divide(input, other)
        return np.add(whole, np.less(whole, 0) & np.not_equal(np.multiply(whole, other), input), dtype=input.dtype)
    return np.trunc(np.true_divide(input, other))


_trunc_divide = elementwise(
    "_trunc_divide",
    _truncated,
    "``trunc(input / other)``; its derivative is 0.",
    node="DivBackward2",
    saved={"rounding_mode": lambda: "trunc"},
    numpy={},
    method=False,
    input=lambda g: np.zeros_like(g),
    other=lambda g: np.zeros_like(g),
)
_ROUNDED = {None: _div, "floor": titled(floor_divide, "DivBackward2", rounding_mode="floor"), "trunc": _trunc_divide}


@front(_div)
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """``input / other``, broadcast; a float for integers. Rounded to 0 ("trunc") or down ("floor"): derivative 0.

    >>> import pullback
    >>> x = pullback.tensor([7, -7])
    >>> x.div(2), x.div(2, rounding_mode="trunc")
    (tensor([ 3.5000, -3.5000]), tensor([ 3, -3]))
    """
    if not isinstance(rounding_mode, (str, type(None))) or rounding_mode not in _ROUNDED:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}."
        )
    return _ROUNDED[rounding_mode](input, other, out=out)


_BY_ZERO = [*NO_PAIR, S(V([1, 2], "int64"), V([1, 0], "int64"))]
remainder: Operation = elementwise(
    "remainder",
    lambda input, other: _remainder(*divisor(*need_both("remainder", REAL_NUMBERS, input, other))),
    "``input - floor(input / other) * other``; takes the sign of `other`.",
    dunder="mod rmod imod",
    numpy={np.remainder: lambda x1, x2: remainder(x1, x2)},
    input=lambda g: g,
    other=lambda g, input, other: np.negative(np.multiply(g, on(floor_divide, _counted(input), other))),
    samples=lambda: [
        *pairs("between", "positive", 2, 0.77),
        S(A(2, 3, domain="between"), A(3)),
        S(2.5, A(3)),
    ],
    kinks=lambda: [S(*EDGE_PAIRS)],
    refused=_BY_ZERO,
    differs=[
        Differs("torch has no derivative of the remainder of a number", check, sample="(2.5")
        for check in ("gradients", "second")
    ],
)
fmod: Operation = elementwise(
    "fmod",
    lambda input, other: _fmod(*divisor(*need_both("fmod", REAL_NUMBERS, input, other))),
    "``input - trunc(input / other) * other``; takes the sign of `input`.",
    numpy={np.fmod: lambda x1, x2: fmod(x1, x2)},
    input=lambda g: g,
    other=lambda g, input, other: np.negative(np.multiply(g, on(_trunc_divide, _counted(input), other))),
    samples=lambda: [*pairs("between", "positive", 2, 0.77), S(A(2, 3, domain="between"), A(3))],
    kinks=lambda: [S(*EDGE_PAIRS)],
    refused=_BY_ZERO,
)
NUMPY[np.divmod] = lambda x1, x2: (floor_divide(x1, x2), remainder(x1, x2))
METHODS["__divmod__"] = lambda self, other: (self // other, self % other)  # numbers have it; torch has not
METHODS["__rdivmod__"] = lambda self, other: (other // self, other % self)
reciprocal = elementwise(
    "reciprocal",
    np.reciprocal,
    "``1 / input``.",
    floats=True,
    input=lambda g, out: -g * (out * out),
    kinks=[S(V(EDGES))],
)


# Combinations
def _in_half(*operands: Tensor) -> Any:
    """float16 if these operands give it (the result is then computed in float32, against overflow), or None."""
    if np.float16 not in [t._data.dtype for t in operands]:
        return None
    dtype = dtypes.result_type([t._data for t in operands])
    return dtype if dtype == np.float16 else None


def _in_common(input: Tensor, tensor1: Tensor, tensor2: Tensor) -> tuple[Tensor, Tensor]:
    """Both factors in the dtype of the result, unless their product has it: integers do not overflow in it, and single
    numbers keep their digits. A factor that need not be converted is saved itself, and not a copy."""
    common = dtypes.result_type([t._data for t in (input, tensor1, tensor2)])
    if common.kind in "bV" or dtypes.result_type([tensor1._data, tensor2._data]) == common:
        return tensor1, tensor2
    return to(tensor1, common), to(tensor2, common)


@composite(
    scalars="value",
    inplace=True,
    older=True,
    samples=lambda: [
        S(A(2, 3), A(2, 3), A(2, 3)),
        S(A(2, 3), A(3), A(2, 1), value=2),
        S(A(3), A(2, 3), A(), value=-1),
        S(A(), A(1), A(), value=2),
        S(A(0), A(1), A(0)),
        S(A(3, 2, layout="T"), A(3, 2, layout="step"), A(2, layout="readonly")),
    ],
    refused=[S(A(2), A(3), A(2)), S(A(2), A(2)), S(A(2), A(2), 1.0), S([1.0], A(1), A(1))],
)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``, broadcast."""
    if (dtype := _in_half(input, tensor1, tensor2)) is not None:
        return to(addcmul(*(to(t, np.float32) for t in (input, tensor1, tensor2)), value=value), dtype)
    tensor1, tensor2 = _in_common(input, tensor1, tensor2)
    product = tensor1 * tensor2
    if product._data.dtype.kind == "b" and input._data.dtype.kind != "b":
        product = to(product, input.dtype)
    need("addcmul", NUMBERS, product._data)
    if type(value) is float and input._data.dtype.kind in "biu" and product._data.dtype.kind in "biu":
        value = int(value)  # torch cuts it off
    return add(input, product, alpha=value)


@composite(
    scalars="value",
    inplace=True,
    older=True,
    samples=lambda: [
        S(A(2, 3), A(2, 3), A(2, 3)),
        S(A(2, 3), A(3), A(2, 1), value=0.5),
        S(A(3), A(2, 3), A(), value=-1),
        S(A(), A(1), A(), value=2),
        S(A(0), A(1), A(0)),
        S(A(3, 2, layout="T"), A(3, 2, layout="step"), A(2, layout="readonly")),
    ],
    kinks=[S(V([1.0, 1.0, 0.0]), V([0.0, 1.0, 2.0]), V([0.0, 0.0, np.inf]))],
    refused=[S(A(2), A(3), A(2)), S(A(2), A(2)), S(A(2), A(2), 1.0), S([1.0], A(1), A(1))],
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``, broadcast; not for integers."""
    if not {tensor1._data.dtype.kind, tensor2._data.dtype.kind} & {"f", "c", "V"}:
        raise RuntimeError(
            errors.message(
                "addcdiv()",
                expected="tensors of floating point or complex numbers to divide",
                found=f"{tensor1.dtype} and {tensor2.dtype}",
                do=f"convert them with .{dtypes.to_default()}, or write input + value * "
                "tensor1.div(tensor2, rounding_mode='trunc')",
            )
        )
    if (dtype := _in_half(input, tensor1, tensor2)) is not None:
        return to(addcdiv(*(to(t, np.float32) for t in (input, tensor1, tensor2)), value=value), dtype)
    tensor1, tensor2 = _in_common(input, tensor1, tensor2)
    return add(input, tensor1 / tensor2, alpha=value)


@special(
    scalars="weight",
    contiguous=False,
    inplace=True,
    batch="leading",
    numbers="weight",
    narrow="one dtype",
    input=lambda g, weight: g * (1 - weight),
    end=lambda g, weight: g * weight,
    weight=lambda g, input, end: g * (end - input),
    samples=lambda: [
        *(S(A(*a), A(*b), w) for a, b in (((), ()), ((2, 3), (3,)), ((3,), (2, 1)), ((0,), (1,))) for w in (0.3, 2)),
        S(A(2, 3), A(2, 3), A(2, 3)),
        S(A(2, 3), A(3), A(2, 1)),
        S(A(3), A(3), A()),
        S(A(3, 2, layout="T"), A(3, 2, layout="step"), weight=A(2, layout="readonly")),
    ],
    kinks=[
        *(S(V([1.0, 1e30, -2.0]), V([3.0, 1.0, 7.1]), w) for w in (0.0, 0.5, 1.0, -1.0)),
        S(V([0.1, 0.1, 0.1]), V([0.7, 0.7, 0.7]), V([0.0, 1.0, 0.5])),
    ],
    refused=[
        S(A(2), A(3), 0.5),
        S(A(2), A(2)),
        S(A(2), 1.0, 0.5),
        S(A(2), A(2), "x"),
        S(A(2), A(2), A(3)),
        S(A(2), A(2, dtype="float64"), 0.5),
        S([1.0], A(1), 0.5),
    ],
)
def lerp(input: Any, end: Any, weight: Any) -> Any:
    """``input + weight * (end - input)``; exactly `input` and `end` at the weights 0 and 1."""
    need("lerp", "fc", input)
    for value in (end, weight):
        if not (hasattr(value, "size") or (is_number(value) and value is weight)):
            raise TypeError(errors.message("lerp()", expected="tensors", found=errors.describe(value)))
        if hasattr(value, "size") and value.dtype != input.dtype:
            raise RuntimeError(
                errors.message(
                    f"lerp(): expected dtype {input.dtype} for all operands",
                    found=str(value.dtype),
                    do="convert it with .to(dtype)",
                )
            )
    if input.dtype == np.float16:  # the difference would overflow
        wide = (v if is_number(v) else converted(v, np.float32) for v in (input, end, weight))
        return lerp.op.forward(*wide).astype(np.float16)
    near = np.less(np.abs(weight), 0.5)
    if np.ndim(near) or is_foreign(near):
        return np.where(near, input + weight * (end - input), end - (end - input) * (1 - weight))
    return input + weight * (end - input) if near else end - (end - input) * (1 - weight)


# Whole numbers
gcd: Operation = constant(
    "gcd",
    lambda input, other: np.gcd(*need_both("gcd", INTEGERS, input, other)),
    "The greatest common divisor of integers.",
    inplace=True,
    numpy={np.gcd: lambda x1, x2: gcd(x1, x2)},
    samples=lambda: [*pairs(), S(V([12, -18, 0, 0], "int64"), V([8, 27, 5, 0], "int64"))],
    refused=integers(NO_PAIR),
)
lcm: Operation = constant(
    "lcm",
    lambda input, other: np.lcm(*need_both("lcm", INTEGERS, input, other)),
    "The least common multiple of integers.",
    inplace=True,
    numpy={np.lcm: lambda x1, x2: lcm(x1, x2)},
    samples=lambda: [*pairs(), S(V([12, -18, 0, 0], "int64"), V([8, 27, 5, 0], "int64"))],
    refused=integers(NO_PAIR),
)
