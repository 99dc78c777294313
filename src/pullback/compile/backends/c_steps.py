"""The C expression of each step of a `Loop`: the meaning of the NumPy ufunc of that name, in C, without branches.

`c.py` writes the loops around these expressions. A table for each kind of operand (bool, integer, float) gives the
expression by the ufunc's name; `a`, `b`, `c` stand for the operands, `s` for the suffix of the C library's float32
functions, `n` for the type's name in `arithmetic.h`. The functions that begin with `pb_` are those of `elementary.h`
and `arithmetic.h`; any other is the C library's.

Floating-point results are NumPy's bit for bit where IEEE 754 fixes them (arithmetic, `sqrt`, rounding, comparisons:
products and sums are never contracted), and within 4 units in the last place elsewhere.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .loop import Loop, Step

C_TYPES = {
    "bool": "_Bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
}
"""The C type in which a value of each dtype is held; a bool in an array is a byte, `uint8_t`."""

_COMPARISONS = {
    "equal": "{a} == {b}",
    "not_equal": "{a} != {b}",
    "less": "{a} < {b}",
    "less_equal": "{a} <= {b}",
    "greater": "{a} > {b}",
    "greater_equal": "{a} >= {b}",
}
_LOGIC = {
    "logical_and": "({a} != 0) & ({b} != 0)",
    "logical_or": "({a} != 0) | ({b} != 0)",
    "logical_xor": "({a} != 0) ^ ({b} != 0)",
    "logical_not": "{a} == 0",
}
_OR, _AND, _XOR = "{a} | {b}", "{a} & {b}", "{a} ^ {b}"

BOOL = {
    **_COMPARISONS,
    **dict.fromkeys(["add", "maximum", "fmax", "logical_or", "bitwise_or"], _OR),
    **dict.fromkeys(["multiply", "minimum", "fmin", "logical_and", "bitwise_and"], _AND),
    **dict.fromkeys(["logical_xor", "bitwise_xor", "not_equal"], _XOR),
    **dict.fromkeys(["logical_not", "invert"], "!{a}"),
    **dict.fromkeys(["absolute", "positive"], "{a}"),
    **dict.fromkeys(["isnan", "isinf"], "0"),
    "isfinite": "1",
}

INTEGER = {
    **_COMPARISONS,
    **_LOGIC,
    "add": "{a} + {b}",
    "subtract": "{a} - {b}",
    "multiply": "{a} * {b}",
    "divide": "(double){a} / (double){b}",
    "floor_divide": "pb_floor_divide_{n}({a}, {b})",
    "remainder": "pb_remainder_{n}({a}, {b})",
    "fmod": "pb_fmod_{n}({a}, {b})",
    "negative": "-{a}",
    **dict.fromkeys(["positive", "conjugate", "floor", "ceil", "trunc"], "{a}"),
    "square": "{a} * {a}",
    "absolute": "{a} < 0 ? -{a} : {a}",
    "sign": "({a} > 0) - ({a} < 0)",
    "power": "pb_power_{n}({a}, {b})",
    **dict.fromkeys(["maximum", "fmax"], "{a} > {b} ? {a} : {b}"),
    **dict.fromkeys(["minimum", "fmin"], "{a} < {b} ? {a} : {b}"),
    "clip": "pb_clip_{n}({a}, {b}, {c})",
    "bitwise_or": _OR,
    "bitwise_and": _AND,
    "bitwise_xor": _XOR,
    "invert": "~{a}",
    "left_shift": "pb_left_shift_{n}({a}, {b})",
    "right_shift": "pb_right_shift_{n}({a}, {b})",
    **dict.fromkeys(["isnan", "isinf"], "0"),
    "isfinite": "1",
}

FLOAT = {
    **_COMPARISONS,
    **_LOGIC,
    "add": "{a} + {b}",
    "subtract": "{a} - {b}",
    "multiply": "{a} * {b}",
    "divide": "{a} / {b}",
    "floor_divide": "pb_floor_divide_{n}({a}, {b})",
    "remainder": "pb_remainder_{n}({a}, {b})",
    "fmod": "fmod{s}({a}, {b})",
    "negative": "-{a}",
    **dict.fromkeys(["positive", "conjugate"], "{a}"),
    "square": "{a} * {a}",
    "reciprocal": "1 / {a}",
    **dict.fromkeys(["absolute", "fabs"], "fabs{s}({a})"),
    "sign": "{a} > 0 ? 1 : ({a} < 0 ? -1 : ({a} == 0 ? 0 : {a}))",
    "heaviside": "{a} != {a} ? {a} : ({a} == 0 ? {b} : ({a} < 0 ? 0 : 1))",
    **{name: f"pb_{name}_{{n}}({{a}}, {{b}})" for name in ("maximum", "minimum", "fmax", "fmin")},
    "clip": "pb_minimum_{n}(pb_maximum_{n}({a}, {b}), {c})",
    **{name: f"{name}{{s}}({{a}})" for name in ("sqrt", "floor", "ceil", "trunc", "rint", "cbrt")},
    "copysign": "copysign{s}({a}, {b})",
    "nextafter": "nextafter{s}({a}, {b})",
    "ldexp": "pb_ldexp_{n}({a}, {b})",
    "isnan": "{a} != {a}",
    "isinf": "fabs{s}({a}) == INFINITY",
    "isfinite": "fabs{s}({a}) < INFINITY",
    "signbit": "pb_signbit_{n}({a})",
    **{name: f"pb_{name}{{s}}({{a}})" for name in ("exp", "exp2", "expm1", "log", "log1p", "tanh")},
    **{name: f"{name}{{s}}({{a}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "log2", "log10", "erf", "erfc")},
    **{"arc" + name: f"a{name}{{s}}({{a}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arctan2": "atan2{s}({a}, {b})",
    "hypot": "hypot{s}({a}, {b})",
    **dict.fromkeys(["power", "float_power"], "pow{s}({a}, {b})"),
    "logaddexp": "pb_logaddexp_{n}({a}, {b})",
    "logaddexp2": "pb_logaddexp2_{n}({a}, {b})",
    **dict.fromkeys(["deg2rad", "radians"], "{a} * (3.14159265358979324{s} / 180.0{s})"),
    **dict.fromkeys(["rad2deg", "degrees"], "{a} * (180.0{s} / 3.14159265358979324{s})"),
    "gammaln": "lgamma{s}({a})",
    "gamma": "tgamma{s}({a})",
    "expit": "1 / (1 + pb_exp{s}(-{a}))",
}

FLOAT32 = {
    **FLOAT,
    **{name: f"pb_{name}f({{a}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "log2", "log10", "erf", "arctan")},
    **dict.fromkeys(["power", "float_power"], "pb_powf({a}, {b})"),
    "hypot": "pb_hypotf({a}, {b})",
}
"""Where `elementary.h` has a function for float32 alone."""

_POWERS = {-2: "(1 / {a}) * (1 / {a})", -1: "1 / {a}", 1: "{a}", 2: "{a} * {a}", 3: "{a} * {a} * {a}"}
"""`power` with a constant exponent, where a few products are as good."""

COSTLY = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh"
    " arctan2 hypot power float_power logaddexp logaddexp2 erf erfc expit gamma gammaln cbrt fmod remainder"
    " floor_divide".split()
)
"""The steps that take more than ten times as long as an addition: what decides when a second thread pays."""


def c_type(dtype: np.dtype[Any], *, stored: bool = False) -> str:
    """The C type of a value, or of an element in an array."""
    return "uint8_t" if stored and dtype.kind == "b" else C_TYPES[dtype.name]


def short(dtype: np.dtype[Any]) -> str:
    """The name of a type in `arithmetic.h`: `f32`, `i64`, `u8`, `b8`."""
    return f"{dtype.kind}{8 * dtype.itemsize}"


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """A number as a C constant of `dtype`, exact to the bit.

    >>> literal(0.1, np.dtype("float32")), literal(float("-inf"), np.dtype("float64")), literal(True, np.dtype("bool"))
    ('0x1.99999a0000000p-4f', '(-INFINITY)', '1')
    """
    if dtype.kind == "b":
        return str(int(bool(value)))
    if dtype.kind in "iu":
        whole = int(np.asarray(value).astype(dtype))
        if whole == -(2**63):
            return "(-9223372036854775807LL - 1)"
        return f"(({C_TYPES[dtype.name]}){whole}{'ULL' if dtype.kind == 'u' else 'LL'})"
    with np.errstate(all="ignore"):
        number = float(np.asarray(value).astype(dtype))
    if math.isnan(number):
        return "((float)NAN)" if dtype == np.float32 else "((double)NAN)"
    sign = "-" if math.copysign(1, number) < 0 else ""
    text = "INFINITY" if math.isinf(number) else abs(number).hex() + ("f" if dtype == np.float32 else "")
    return f"({sign}{text})" if sign else text


def _cast(a: str, source: np.dtype[Any], target: np.dtype[Any]) -> str:
    if target.kind == "b":
        return f"{a} != 0"
    if source.kind == "f" and target.kind in "iu" and target.itemsize < 8:
        # Beyond the range of the target C defines nothing; NumPy wraps what a wider integer holds.
        wide = "int64_t" if target == np.uint32 else "int32_t"
        return f"({C_TYPES[target.name]})({wide}){a}"
    return f"({C_TYPES[target.name]}){a}"


def _template(step: Step, operands: list[Step]) -> str | None:
    """The expression for a ufunc's step, with the operands still to be filled in, or None if there is none."""
    dtype = operands[0].dtype
    table = {"b": BOOL, "i": INTEGER, "u": INTEGER}.get(dtype.kind) or (FLOAT32 if dtype == np.float32 else FLOAT)
    if step.name == "power" and operands[1].name == "const":
        exponent = float(operands[1].value)
        if dtype.kind == "f" and exponent in _POWERS:
            return _POWERS[int(exponent)]
        if dtype.kind == "i" and exponent < 0:
            return None  # NumPy raises an error
    elif step.name == "power" and dtype.kind == "i":
        return None  # so it does if any exponent is negative
    return table.get(step.name)


def expression(step: Step, steps: tuple[Step, ...]) -> str:
    """The C expression of one step, of the variables `v0`, `v1`, ... that hold the earlier ones (no load, no constant).

    >>> f = np.dtype("float32")
    >>> x = Step("load", (), f, 0)
    >>> expression(Step("exp", (0,), f), (x,)), expression(Step("cast", (0,), np.dtype("bool")), (x,))
    ('(float)(pb_expf(v0))', 'v0 != 0')
    """
    names = [f"v{i}" for i in step.args]
    operands = [steps[i] for i in step.args]
    if step.name == "where":
        return f"{names[0]} ? {names[1]} : {names[2]}"
    if step.name == "cast":
        return _cast(names[0], operands[0].dtype, step.dtype)
    template = _template(step, operands)
    if template is None:
        raise NotImplementedError(f"no C for the step {step.name} of {operands[0].dtype}")
    dtype = operands[0].dtype
    fields = dict(zip("abc", names, strict=False), s="f" if dtype == np.float32 else "", n=short(dtype))
    return f"({c_type(step.dtype)})({template.format(**fields)})"


def refusal(loop: Loop) -> str | None:
    """Why a loop cannot become C, in words, or None if it can."""
    for dtype in (*(step.dtype for step in loop.steps), *(access.dtype for access in loop.inputs)):
        if dtype.name not in C_TYPES or not dtype.isnative:
            return f"there is no C for {dtype}"
    for step in loop.steps:
        if step.name in ("load", "const", "where", "cast"):
            continue
        operands = [loop.steps[i] for i in step.args]
        if not operands or _template(step, operands) is None:
            of = f" of {operands[0].dtype}" if operands else ""
            return f"there is no C for {step.name}{of}"
    return None


@functools.cache
def turns() -> str:
    """`PB_TURNS` of `elementary.h`: for each exponent, 2/pi without what makes whole turns, in 28 + 53 bits.

    A float32 of exponent e is a whole multiple of 2^(e - 150), so of 2/pi its product needs no part that is a multiple
    of 4 / 2^(e - 150): the table begins below that (Payne and Hanek's reduction).
    """
    bits = 400
    one = 1 << (bits + 32)

    def arctan_of_inverse(n: int) -> int:
        return sum((-1) ** k * (one // (n ** (2 * k + 1) * (2 * k + 1))) for k in range(bits // 2))

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))  # Machin's formula
    two_over_pi = (2 * one << bits) // pi
    rows: tuple[list[str], list[str]] = ([], [])
    for exponent in range(126 - 150, 255 - 150):
        rest = two_over_pi << exponent if exponent >= 0 else two_over_pi >> -exponent
        rest %= 4 << bits
        top = bits + 2 if exponent >= 0 else rest.bit_length()
        for row, width in zip(rows, (28, 53), strict=True):
            top -= width
            part = (rest >> top) << top
            rest -= part
            row.append((part / (1 << bits) * 2.0**-exponent).hex())
    body = ", ".join("{" + ", ".join([*row, "NAN"]) + "}" for row in rows)
    return f"#define PB_TURNS {{{body}}}\n"
