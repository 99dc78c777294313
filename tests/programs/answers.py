"""Answers in plain text: what a program came to, written so that a person can read it, and compared within rounding.

The answers to the programs of `<clause>/<file>.py` stand in `<clause>/<file>.txt`, a block for each program: its name,
and below it, indented, a Python expression. `tensor([1, 2.5], float64, requires_grad)` is a tensor,
`node('MulBackward0')` a node of a graph, `raises(RuntimeError, 'no')` the exception that ended the program, with the
first line of its message; all else is as Python writes it. Nothing here imports torch.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.table.phrases import shared

WIDTH = 118
HEADER = "# What PyTorch 2.13 answered. Written by `python -m tests.programs --record`.\n"

# How many digits are written, and which relative difference counts as rounding. Half precision is as good as exact.
DIGITS = {"float64": 9, "complex128": 9}
RELATIVE = {"float64": 1e-7, "complex128": 1e-7, "float32": 2e-6, "complex64": 2e-6}
ABSOLUTE = 1e-12

# Writing --------------------------------------------------------------------------------------------------------------


def written(answer: Any) -> str:
    """A plain value, as `side_by_side.outcome` makes it, as a Python expression on one or more lines."""
    return "\n".join(_laid_out(_pieces(answer), WIDTH - 4))


def _pieces(answer: Any) -> Any:
    """A string, or a bracket, what stands in it, and the bracket that closes it."""
    if isinstance(answer, dict):
        return "{", [_with_key(key, _pieces(value)) for key, value in answer.items()], "}"
    if isinstance(answer, str):
        lines = answer.splitlines(keepends=True)
        return ("(", [("", [repr(line) for line in lines], "", "\n")], ")") if len(lines) > 1 else repr(answer)
    if not isinstance(answer, tuple):
        return _number(answer, 9)
    kind, *parts = answer
    if kind == "tensor":
        return _tensor(*parts)
    if kind == "node":
        return f"node({parts[0]!r})"
    if kind == "raises":
        return f"raises({', '.join([parts[0], *map(repr, parts[1:])])})"
    opening, closing = {"list": ("[", "]"), "tuple": ("(", ")")}.get(kind, (f"{kind}(", ")"))
    if kind == "tuple" and len(parts[0]) == 1:
        closing = ",)"
    return opening, [_pieces(part) for part in parts[0]], closing


def _with_key(key: Any, piece: Any) -> Any:
    if isinstance(piece, str):
        return f"{key!r}: {piece}"
    return f"{key!r}: {piece[0]}", *piece[1:]


def _tensor(shape: tuple[int, ...], dtype: str, requires_grad: bool, elements: Any) -> Any:
    digits = DIGITS.get(dtype, 7)

    def nested(part: Any) -> Any:
        if isinstance(part, list):
            return "[", [nested(p) for p in part], "]"
        return _number(part, digits).removesuffix(".0")

    flags = [dtype] + ["requires_grad"] * requires_grad + [f"shape={shape}"] * (0 in shape)
    return "tensor(", [nested(elements), *flags], ")"


def _number(value: Any, digits: int) -> str:
    if isinstance(value, complex):
        return f"complex({_number(value.real, digits)}, {_number(value.imag, digits)})"
    if isinstance(value, float):
        text = f"{value:.{digits}g}"
        return text if re.search(r"[.en]", text) else text + ".0"
    return repr(value)


def _flat(piece: Any) -> str:
    return piece if isinstance(piece, str) else piece[0] + ", ".join(map(_flat, piece[1])) + piece[2]


def _laid_out(piece: Any, width: int) -> list[str]:
    """The lines of a piece: one if it fits, else one for each part; numbers fill each line."""
    if isinstance(piece, str):
        return [piece]
    if len(piece) == 4:  # the lines of a text
        return list(piece[1])
    flat = _flat(piece)
    if len(flat) <= width and not re.search(r"\\n", flat):
        return [flat]
    opening, parts, closing = piece
    if all(_is_short(part) for part in parts):
        inner = _filled([_flat(part) for part in parts], width - 4)
    else:
        inner = []
        for i, part in enumerate(parts):
            lines = _laid_out(part, width - 5)
            comma = "" if i == len(parts) - 1 and isinstance(part, tuple) and len(part) == 4 else ","
            inner += [*lines[:-1], lines[-1] + comma]
    return [opening, *("    " + line for line in inner), closing.lstrip(",")]


def _is_short(part: Any) -> bool:
    """Whether several of a kind may stand on a line: words and numbers, and rows of numbers."""
    row = isinstance(part, str) or (part[0] == "[" and all(isinstance(p, str) for p in part[1]))
    return row and len(_flat(part)) < (60 if isinstance(part, tuple) else 30)


def _filled(parts: list[str], width: int) -> list[str]:
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) + 2 > width:
            lines.append("")
        lines[-1] += f" {part}," if lines[-1] else f"{part},"
    return lines


# Reading --------------------------------------------------------------------------------------------------------------


def read(text: str) -> Any:
    """The plain value that `written` wrote."""
    return _value(ast.parse(text.strip(), mode="eval").body)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        return _of_call(node)
    if isinstance(node, (ast.List, ast.Tuple)):
        return type(node).__name__.lower(), [_value(element) for element in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {ast.literal_eval(key): _value(value) for key, value in pairs if key is not None}
    return _scalar(node)


def _scalar(node: ast.expr) -> Any:
    if isinstance(node, ast.UnaryOp):
        return -_scalar(node.operand) or -0.0
    if isinstance(node, ast.Name):
        return float(node.id)  # nan and inf
    if isinstance(node, ast.Call):
        return complex(*map(_scalar, node.args))
    return ast.literal_eval(node)


def _of_call(node: ast.Call) -> Any:
    name = ast.unparse(node.func)
    if name == "complex":
        return _scalar(node)
    if name == "node":
        return "node", ast.literal_eval(node.args[0])
    if name == "raises":
        return "raises", ast.unparse(node.args[0]), *map(ast.literal_eval, node.args[1:])
    if name != "tensor":
        return name, [_value(argument) for argument in node.args]

    def nested(part: ast.expr) -> Any:
        return [nested(element) for element in part.elts] if isinstance(part, ast.List) else _scalar(part)

    elements, (dtype, *flags) = nested(node.args[0]), [ast.unparse(flag) for flag in node.args[1:]]
    shape = ast.literal_eval(node.keywords[0].value) if node.keywords else np.shape(elements)
    return "tensor", tuple(shape), dtype, bool(flags), elements


# Comparing ------------------------------------------------------------------------------------------------------------


def difference(ours: Any, answer: Any, absolute: float = ABSOLUTE) -> str:
    """Where a plain value is not the answer, but for rounding: a path to it, and both values; "" if nowhere."""
    return next(_differences(ours, answer, absolute, ""), "")


def _differences(ours: Any, answer: Any, absolute: float, path: str) -> Iterator[str]:
    both = f"{path or 'all'}: {_brief(ours)}, expected {_brief(answer)}"
    if type(ours) is not type(answer):
        yield both
    elif isinstance(answer, dict):
        if list(ours) != list(answer):
            yield f"{path}: keys {list(ours)}, expected {list(answer)}"
        else:
            for key in answer:
                yield from _differences(ours[key], answer[key], absolute, f"{path}[{key!r}]")
    elif not isinstance(answer, tuple):
        if not _close(ours, answer, RELATIVE["float64"], absolute):
            yield both
    elif ours[0] == answer[0] == "raises":
        said = len(ours) == len(answer) == 3 and (answer[1] == "TypeError" or shared(ours[2], answer[2]))
        if ours[1] != answer[1] or not said:
            yield both
    elif ours[0] != answer[0] or answer[0] == "node":
        if ours != answer:
            yield both
    elif answer[0] == "tensor":
        relative = RELATIVE.get(answer[2], 1e-6)
        pairs = zip(_leaves(ours[4]), _leaves(answer[4]), strict=True)
        if ours[1:4] != answer[1:4] or not all(_close(a, b, relative, absolute) for a, b in pairs):
            yield both
    elif len(ours[1]) != len(answer[1]):
        yield both
    else:
        for i, (a, b) in enumerate(zip(ours[1], answer[1], strict=True)):
            yield from _differences(a, b, absolute, f"{path}[{i}]")


def _leaves(nested: Any) -> Iterator[Any]:
    if isinstance(nested, list):
        for part in nested:
            yield from _leaves(part)
    else:
        yield nested


def _close(ours: Any, answer: Any, relative: float, absolute: float) -> bool:
    if isinstance(answer, complex):
        return _close(ours.real, answer.real, relative, absolute) and _close(ours.imag, answer.imag, relative, absolute)
    if isinstance(ours, float) and isinstance(answer, (int, float)):
        same = math.isnan(ours) and math.isnan(answer)
        return same or math.isclose(ours, answer, rel_tol=relative, abs_tol=absolute)
    return bool(ours == answer)


def _brief(answer: Any) -> str:
    text = written(answer)
    return text if len(text) < 2000 else text[:2000] + "..."


# Files ----------------------------------------------------------------------------------------------------------------


def recorded(file: Path) -> dict[str, str]:
    """The blocks of a file of answers: the text of each answer, by the name of its program."""
    blocks: dict[str, list[str]] = {}
    for line in file.read_text("utf-8").splitlines() if file.is_file() else []:
        if line.startswith("    "):
            blocks[next(reversed(blocks))].append(line[4:])
        elif line and not line.startswith("# "):
            blocks[line] = []
    return {name: "\n".join(lines) for name, lines in blocks.items()}


def as_file(blocks: Iterable[tuple[str, str]]) -> str:
    """The text of a file of answers."""
    body = (name + "\n" + "\n".join("    " + line for line in text.splitlines()) + "\n" for name, text in blocks)
    return HEADER + "\n" + "\n".join(body)
