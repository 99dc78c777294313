"""The C expression of each step of a `Loop`: the NumPy ufunc of that name, in C, without branches.

`c_source.py` writes the loops around these expressions, which `steps.py` has by the function's name.

Floating-point results are NumPy's bit for bit where IEEE 754 fixes them (arithmetic, `sqrt`, rounding, comparisons:
products and sums are never contracted), and within 4 units in the last place elsewhere.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .loop import Loop, Step
from .steps import facts

C_TYPES = {
    "bool": "_Bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
}
"""The C type of a value of each dtype; a bool in an array is a byte, `uint8_t`."""


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
    if source.kind == "b" and target.kind == "f":
        return f"{a} ? ({C_TYPES[target.name]})1 : 0"  # a conversion keeps gcc from SIMD
    if source.kind == "f" and target.kind in "iu" and target.itemsize < 8:
        # C does not define a conversion beyond the range of the target; NumPy wraps the value of a wider integer.
        wide = "int64_t" if target == np.uint32 else "int32_t"
        return f"({C_TYPES[target.name]})({wide}){a}"
    return f"({C_TYPES[target.name]}){a}"


def _template(step: Step, operands: list[Step]) -> str | None:
    """The expression for a ufunc's step, with the operands still to be filled in, or None if there is none."""
    dtype, known = operands[0].dtype, facts(step.name)
    second = operands[1] if known.constants or known.natural else None
    number = float(second.value) if second is not None and second.name == "const" else None
    if known.natural and dtype.kind == "i" and (number is None or number < 0):
        return None  # NumPy raises an error if any of them is negative
    if dtype.kind == "f" and number is not None and number in known.constants:
        return known.constants[number]
    return known.expression(dtype) or None


def expression(step: Step, steps: tuple[Step, ...]) -> str:
    """The C expression of one step, of the variables `v0`, `v1`, ... that hold the earlier ones (no load, no constant).

    >>> f = np.dtype("float32")
    >>> x = Step("load", (), f, 0)
    >>> expression(Step("exp", (0,), f), (x,)), expression(Step("cast", (0,), np.dtype("bool")), (x,))
    ('(float)(pb_expf(v0))', 'v0 != 0')
    """
    names = [f"v{i}" for i in step.args]
    operands = [steps[i] for i in step.args]
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
        if step.name in ("load", "const", "cast"):
            continue
        operands = [loop.steps[i] for i in step.args]
        if not operands or _template(step, operands) is None:
            of = f" of {operands[0].dtype}" if operands else ""
            return f"there is no C for {step.name}{of}"
    return None


@functools.cache
def turns() -> str:
    """`PB_TURNS` of `elementary.h`: for each exponent, 2/pi without the part that makes whole turns, in 28 + 53 bits.

    A float32 of exponent e is a whole multiple of 2^(e - 150), so parts of 2/pi that are multiples of 4 / 2^(e - 150)
    do not matter: the table begins below them (Payne and Hanek's reduction).
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
    body = ", ".join("{" + ", ".join([*row, "1"]) + "}" for row in rows)
    return f"#define PB_TURNS {{{body}}}\n"
