"""The table of the functions that programs are made of: the facts that `compile` knows, by NumPy's or SciPy's name.

`STEPS` has the cost of each step of a loop, its C expression and its reduction; `FUNCTIONS` has the facts about
functions that are called with whole arrays. The other files of `compile` ask this table for facts and never for a name;
`HANDLERS` in `trace/symbols.py` has the functions that a trace turns into such steps. NumPy runs a function that is
missing here, without any facts.

In C expressions `a`, `b`, `c` stand for the operands, `s` for the suffix of the C library's float32 functions, `n` for
the type's name in `arithmetic.h`. The functions that begin with `pb_` are those of `elementary.h` and `arithmetic.h`;
any other is the C library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernels.counterparts import folded
from ...ops.shape.slices import placed
from ...tensor.adding import summed
from ...tensor.arrays import rolled

# -- steps of loops ----------------------------------------------------------------------------------------------------


class Fold(NamedTuple):
    """The reduction by a step's function.

    function: NumPy's, of arrays and axes. none: the result for no elements; None if NumPy refuses these. of_bools: the
    name, in `arithmetic.h`, of the same reduction of bytes that are 0 or 1. start: the C expression of an accumulator
    of floats before the first element. wide: whether floats are accumulated in float64. compensated: whether float64 is
    accumulated with its rounding errors. in_blocks: whether rows are reduced in blocks, as in eager code
    (`tensor/adding.py`). lowest: for integers, whether the accumulator of one that is not `wide` starts at their
    smallest number, or at their largest.
    """

    function: Any
    none: int | None
    of_bools: str
    start: str
    wide: bool = False
    compensated: bool = False
    in_blocks: bool = False
    lowest: bool = False


class Facts(NamedTuple):
    """The facts about a step.

    bools, integers, floats: its C expression for operands of that kind; "" if there is none. float32: the expression
    for float32, if `elementary.h` has a function for it. constants: expressions for second operands that are these
    constants, if a few products do. natural: whether NumPy refuses a negative second operand of signed integers. turns:
    whether its float32 function needs the table of 2/pi.

    cost: of one element, in additions. fold: the reduction by it, if loops have it. left, right: the constant on that
    side for which the result is the other operand. of_mask: the constant on the right for which the result for a mask,
    converted to numbers, is the mask. opposite: the step that gives the same for a second operand taken negative.
    commutes: whether the operands may change places. negates: whether it takes its operand negative.
    """

    bools: str = ""
    integers: str = ""
    floats: str = ""
    float32: str = ""
    constants: Mapping[float, str] = {}
    natural: bool = False
    turns: bool = False
    cost: int = 1
    fold: Fold | None = None
    left: float | None = None
    right: float | None = None
    of_mask: float | None = None
    opposite: str = ""
    commutes: bool = False
    negates: bool = False

    def expression(self, dtype: np.dtype[Any]) -> str:
        """The C expression for operands of a dtype; "" if there is none."""
        if dtype.kind == "f":
            return (dtype == np.float32 and self.float32) or self.floats
        return self.bools if dtype.kind == "b" else self.integers if dtype.kind in "iu" else ""


COSTLY = 10
"""The cost from which a few elements are enough work for a second thread."""

_OR, _AND, _XOR, _SAME = "{a} | {b}", "{a} & {b}", "{a} ^ {b}", "{a}"
_POWERS: dict[float, str] = {-2: "(1 / {a}) * (1 / {a})", -1: "1 / {a}", 1: "{a}", 2: "{a} * {a}", 3: "{a} * {a} * {a}"}


def _of_numbers(expression: str, bools: str = "", **known: Any) -> Facts:
    """The facts of a step whose expression is the same for integers and floats."""
    return Facts(bools, expression, expression, **known)


def _compares(sign: str, bools: str = "", **known: Any) -> Facts:
    return _of_numbers(f"{{a}} {sign} {{b}}", bools or f"{{a}} {sign} {{b}}", **known)


def _of_float(call: str, cost: int = 1, own: str = "", **known: Any) -> Facts:
    """The facts of a function of one float. call, own: the functions in C of any float, and of float32 alone."""
    return Facts(floats=f"{call}{{s}}({{a}})", float32=own and f"{own}({{a}})", cost=cost, **known)


STEPS: dict[str, Facts] = {
    "where": Facts("{a} ? {b} : {c}"),
    # comparisons and logic
    "equal": _compares("=="),
    "not_equal": _compares("!=", _XOR, of_mask=0),
    "less": _compares("<"),
    "less_equal": _compares("<="),
    "greater": _compares(">"),
    "greater_equal": _compares(">="),
    "logical_and": _of_numbers("({a} != 0) & ({b} != 0)", _AND),
    "logical_or": _of_numbers("({a} != 0) | ({b} != 0)", _OR),
    "logical_xor": _of_numbers("({a} != 0) ^ ({b} != 0)", _XOR),
    "logical_not": _of_numbers("{a} == 0", "!{a}"),
    "bitwise_or": Facts(_OR, _OR),
    "bitwise_and": Facts(_AND, _AND),
    "bitwise_xor": Facts(_XOR, _XOR),
    "invert": Facts("!{a}", "~{a}"),
    "left_shift": Facts(integers="pb_left_shift_{n}({a}, {b})"),
    "right_shift": Facts(integers="pb_right_shift_{n}({a}, {b})"),
    "isnan": Facts("0", "0", "{a} != {a}"),
    "isinf": Facts("0", "0", "fabs{s}({a}) == INFINITY"),
    "isfinite": Facts("1", "1", "fabs{s}({a}) < INFINITY"),
    "signbit": Facts(floats="pb_signbit_{n}({a})"),
    # arithmetic
    "add": _of_numbers(
        "{a} + {b}",
        _OR,
        fold=Fold(np.sum, 0, "maximum", "-0.0", wide=True, compensated=True, in_blocks=True),
        opposite="subtract",
        commutes=True,
    ),
    "subtract": _of_numbers("{a} - {b}", opposite="add"),
    "multiply": _of_numbers("{a} * {b}", _AND, fold=Fold(np.prod, 1, "minimum", "1", wide=True), left=1, right=1),
    "divide": Facts(integers="(double){a} / (double){b}", floats="{a} / {b}", cost=4, right=1),
    "reciprocal": Facts(floats="1 / {a}", cost=4),
    "floor_divide": _of_numbers("pb_floor_divide_{n}({a}, {b})", cost=COSTLY),
    "remainder": _of_numbers("pb_remainder_{n}({a}, {b})", cost=COSTLY),
    "fmod": Facts(integers="pb_fmod_{n}({a}, {b})", floats="fmod{s}({a}, {b})", cost=COSTLY),
    "negative": _of_numbers("-{a}", negates=True),
    "positive": _of_numbers(_SAME, _SAME),
    "conjugate": _of_numbers(_SAME),
    "square": _of_numbers("{a} * {a}"),
    "absolute": Facts(_SAME, "{a} < 0 ? -{a} : {a}", "fabs{s}({a})"),
    "fabs": _of_float("fabs"),
    "sign": Facts(integers="({a} > 0) - ({a} < 0)", floats="{a} > 0 ? 1 : ({a} < 0 ? -1 : ({a} == 0 ? 0 : {a}))"),
    "heaviside": Facts(floats="{a} != {a} ? {a} : ({a} == 0 ? {b} : ({a} < 0 ? 0 : 1))"),
    "copysign": Facts(floats="copysign{s}({a}, {b})"),
    "nextafter": Facts(floats="nextafter{s}({a}, {b})"),
    "ldexp": Facts(floats="pb_ldexp_{n}({a}, {b})"),
    "deg2rad": Facts(floats="{a} * (3.14159265358979324{s} / 180.0{s})"),
    "rad2deg": Facts(floats="{a} * (180.0{s} / 3.14159265358979324{s})"),
    # rounding
    "floor": Facts(integers=_SAME, floats="floor{s}({a})"),
    "ceil": Facts(integers=_SAME, floats="ceil{s}({a})"),
    "trunc": Facts(integers=_SAME, floats="trunc{s}({a})"),
    "rint": _of_float("rint"),
    # the larger and the smaller
    "maximum": Facts(
        _OR,
        "{a} > {b} ? {a} : {b}",
        "pb_maximum_{n}({a}, {b})",
        fold=Fold(np.max, None, "maximum", "-INFINITY", lowest=True),
        right=-math.inf,
    ),
    "minimum": Facts(
        _AND,
        "{a} < {b} ? {a} : {b}",
        "pb_minimum_{n}({a}, {b})",
        fold=Fold(np.min, None, "minimum", "INFINITY"),
        right=math.inf,
    ),
    "fmax": Facts(_OR, "{a} > {b} ? {a} : {b}", "pb_fmax_{n}({a}, {b})"),
    "fmin": Facts(_AND, "{a} < {b} ? {a} : {b}", "pb_fmin_{n}({a}, {b})"),
    "clip": Facts(integers="pb_clip_{n}({a}, {b}, {c})", floats="pb_minimum_{n}(pb_maximum_{n}({a}, {b}), {c})"),
    # powers and roots
    "power": Facts(
        integers="pb_power_{n}({a}, {b})",
        floats="pow{s}({a}, {b})",
        float32="pb_powf({a}, {b})",
        constants=_POWERS,
        natural=True,
        cost=25,
    ),
    "float_power": Facts(floats="pow{s}({a}, {b})", float32="pb_powf({a}, {b})", cost=25),
    "sqrt": _of_float("sqrt", 4),
    "cbrt": _of_float("cbrt", COSTLY),
    "hypot": Facts(floats="hypot{s}({a}, {b})", float32="pb_hypotf({a}, {b})", cost=25),
    # exponentials and logarithms
    "exp": _of_float("pb_exp", 10),
    "exp2": _of_float("pb_exp2", 10),
    "expm1": _of_float("pb_expm1", 10),
    "log": _of_float("pb_log", 10),
    "log1p": _of_float("pb_log1p", 10),
    "log2": _of_float("log2", 10, "pb_log2f"),
    "log10": _of_float("log10", 10, "pb_log10f"),
    "logaddexp": Facts(floats="pb_logaddexp_{n}({a}, {b})", cost=25),
    "logaddexp2": Facts(floats="pb_logaddexp2_{n}({a}, {b})", cost=25),
    # angles and hyperbolas
    "sin": _of_float("sin", 10, "pb_sinf", turns=True),
    "cos": _of_float("cos", 10, "pb_cosf", turns=True),
    "tan": _of_float("tan", 25, "pb_tanf", turns=True),
    "sinh": _of_float("sinh", 25, "pb_sinhf"),
    "cosh": _of_float("cosh", 25, "pb_coshf"),
    "tanh": _of_float("pb_tanh", 10),
    "arcsin": _of_float("asin", 25),
    "arccos": _of_float("acos", 25),
    "arctan": _of_float("atan", 25, "pb_arctanf"),
    "arctan2": Facts(floats="atan2{s}({a}, {b})", cost=25),
    "arcsinh": _of_float("asinh", 25),
    "arccosh": _of_float("acosh", 25),
    "arctanh": _of_float("atanh", 25),
    # functions of SciPy
    "erf": _of_float("erf", 25, "pb_erff"),
    "erfc": _of_float("erfc", 25),
    "expit": Facts(floats="1 / (1 + pb_exp{s}(-{a}))", cost=25),
    "gamma": _of_float("tgamma", 25),
    "gammaln": _of_float("lgamma", 25),
}
STEPS |= {"true_divide": STEPS["divide"], "radians": STEPS["deg2rad"], "degrees": STEPS["rad2deg"]}

_UNKNOWN = Facts()


def facts(name: str) -> Facts:
    """The facts about the step of that name: a function, or "load", "const", "cast"."""
    return STEPS.get(name, _UNKNOWN)


def fold(name: str | None) -> Fold | None:
    """The reduction by a function; None if loops do not have it, or if there is no reduction."""
    return None if name is None else facts(name).fold


def folds(ufunc: Any) -> bool:
    """Whether loops have reductions by this function."""
    return fold(ufunc.__name__) is not None and getattr(np, ufunc.__name__, None) is ufunc


# -- functions of whole arrays -----------------------------------------------------------------------------------------


class Called(NamedTuple):
    """The facts about a function that a program calls.

    product: whether it is a product of matrices, which takes ``out=`` and may be laid out in any order of axes. view:
    whether its result lies in the memory of its argument. order: for a view that reorders axes, the new order of the
    argument's axes, computed from their number and the other arguments. plain: the same for arrays alone, with less
    overhead. sum: whether it is a sum of products, spelled by its first argument.
    """

    product: bool = False
    sum: bool = False
    view: bool = False
    order: Callable[..., list[int]] | None = None
    plain: Callable[..., Any] | None = None


def _swapped(count: int, axis1: int, axis2: int) -> list[int]:
    order = [*range(count)]
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return order


def _transposed(count: int, axes: Sequence[int] | None = None) -> list[int]:
    order = [*range(count)]
    return order[::-1] if axes is None else [order[a] for a in axes]


_ANY = Called()

# The shape and the dtype of their results follow from those of the arguments.
FUNCTIONS: dict[Any, Called] = {
    np.matmul: Called(product=True),
    np.einsum: Called(sum=True),
    np.transpose: Called(view=True, order=_transposed),
    np.swapaxes: Called(view=True, order=_swapped),
    np.moveaxis: Called(view=True),
    np.rollaxis: Called(view=True),
    np.diagonal: Called(view=True),
    np.flip: Called(view=True),
    np.roll: Called(plain=rolled),
    **dict.fromkeys(
        (
            np.concatenate, np.stack, np.take, np.take_along_axis, np.cumsum, np.cumprod, np.sort, np.argsort,
            np.argmax, np.argmin, np.pad, np.tile, np.mean, summed, folded, placed.op.forward,
        ),
        _ANY,
    ),
}  # fmt: skip


def function(fn: Any) -> Called:
    """The facts about a function that a program calls."""
    return FUNCTIONS.get(fn, _ANY)


def is_fixed(fn: Any) -> bool:
    """Whether it is known that no value decides which shape and dtype a function's result has."""
    return fn in FUNCTIONS or isinstance(getattr(fn, "__self__", fn), np.ufunc)


ASKED = {
    "min": "its code asks for the smallest element",
    "max": "its code asks for the largest element",
    "item": "its code asks for the value of an element",
    "tolist": "its code asks for the values",
    "nonzero": "its code asks which elements are not zero",
    "any": "its code asks whether any element is true",
    "all": "its code asks whether all elements are true",
    "strides": "its code asks how an array lies in memory",
    "flags": "its code asks how an array lies in memory",
    "base": "its code asks whose memory an array is",
    "ctypes": "its code asks where an array lies in memory",
}
"""The reason why an operation is not decomposed, by the array attribute that its code reads."""
