"""Every size from which on something is computed in another way has a name, and tests/thresholds.py lists it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.thresholds import LOWERED, OTHERS

PACKAGE = Path(__file__).parents[2] / "src" / "pullback"
ROOMS = (
    *("kernels", "ops", "nn", "tensor", "table", "interpreters", "autograd", "optim", "compile", "func"),
    *("bridge", "compat", "cuda", "distributed", "scipy", "utils"),
)

# Whole numbers in comparisons that are no sizes of arrays.
NUMBERS = {"a seed or a bound of integers": {2**24, 2**63, 2**64}}


def _value(node: ast.expr) -> int | None:
    """The whole number that an expression of numbers is."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.LShift, ast.Pow, ast.Mult)):
        left, right = _value(node.left), _value(node.right)
        if left is None or right is None or right > 100:
            return None
        return left << right if isinstance(node.op, ast.LShift) else int(eval(ast.unparse(node)))
    known = isinstance(node, ast.Constant) and type(node.value) is int
    return node.value if known else None  # type: ignore[attr-defined, return-value]


def _constants(file: Path) -> Iterator[str]:
    """The names of whole numbers, at least 8, that a module gives at its top."""
    module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
    for statement in ast.parse(file.read_text("utf-8")).body:
        if not isinstance(statement, ast.Assign):
            continue
        targets, values = statement.targets[0], statement.value
        pairs = [(targets, values)]
        if isinstance(targets, ast.Tuple) and isinstance(values, ast.Tuple):
            pairs = list(zip(targets.elts, values.elts, strict=True))
        for target, value in pairs:
            number = _value(value)
            if isinstance(target, ast.Name) and target.id.isupper() and number is not None and number >= 8:
                yield f"{module}.{target.id}"


def files() -> list[Path]:
    """The files of the rooms that compute."""
    return [file for room in ROOMS for file in sorted((PACKAGE / room).rglob("*.py"))]


def test_every_threshold_is_listed() -> None:
    found = {name for file in files() for name in _constants(file)}
    derived = {"compile.backends.blocks._PARALLEL"}  # four times another
    assert found - set(LOWERED) - set(OTHERS) == set()
    assert (set(LOWERED) | set(OTHERS)) - found - derived == set()


def test_no_module_imports_a_threshold_by_its_name() -> None:
    names = {name.rpartition(".")[2] for name in LOWERED}
    imported = [
        f"{file.relative_to(PACKAGE)}: {alias.name}"
        for file in files()
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in names
    ]
    assert imported == []


def test_no_threshold_is_without_a_name() -> None:
    """A size of an array is compared with a name, not with a number of three digits."""
    found = []
    for file in files():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            sizes = any(word in ast.unparse(node) for word in ("size", "numel", "nbytes", "len(", "shape"))
            numbers = [number for side in sides if (number := _value(side)) is not None and number >= 100]
            if sizes and numbers and not set(numbers) & set().union(*NUMBERS.values()):
                found.append(f"{file.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
