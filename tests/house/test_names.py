"""The mechanism knows no operation by name, and guesses nothing from what an argument is called.

No string constant below `table/` or `interpreters/` is the name of an operation or of an argument of one, and below
`compile/` only where NumPy or C has a function of that name. The syntax trees are walked: docstrings are left out, and
so is what `getattr` and its like are asked for, which is an attribute of an object. A string with a space in it is a
message, unless it is split into words. What else may stand is listed, each word with its reason. `found_in` takes a
source text, so that the checker is itself checked, against planted faults.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pullback
from pullback.ops import NAMES, TABLE

LIBRARY = Path(pullback.__file__).parent
OPERATIONS = {*TABLE, *(name.rpartition(".")[2] for name in TABLE), *(n for names in NAMES.values() for n in names)}
ARGUMENTS = {name for op in TABLE.values() for name in op.params}

# Words that mean something else than an operation or an argument, and why they may stand there.
KNOWN = {
    "linear": "a kind of entry",
    "bilinear": "a kind of entry",
    "narrow": "a fact of `About`",
    "fft": "a module whose functions are entered",
    "complex": "an annotation",
    "real": "where samples come from",
    "positive": "where samples come from",
    "input": "`elementwise` itself calls its first argument so",
    "other": "`elementwise` itself calls its second argument so",
    "alpha": "the keyword that `elementwise` itself adds",
    "out": "the keyword that every function has, and what a rule calls the result",
    "name": "a keyword of entries",
}
# A file about something else, whose words are its own.
ELSEWHERE = {"table/samples.py": "it describes arrays: how they lie, where their values come from"}
# SciPy's functions that the backends know, and words of their generated text.
OF_C = {"erf", "erfc", "expit", "gammaln", "deg2rad", "rad2deg", "contiguous", "t"}


def _constants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The words of string constants that could be names, each with its line."""
    attributes: set[int] = set()
    lists: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            attributes.add(id(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("getattr", "hasattr", "setattr", "delattr"):
                attributes.add(id(node.args[1]))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
            lists.add(id(node.func.value))
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__slots__" for t in node.targets
        ):
            attributes.update(map(id, ast.walk(node.value)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in attributes:
            for word in node.value.split() if id(node) in lists else [node.value]:
                yield node.lineno, word


def found_in(source: str, path: str) -> list[str]:
    """The names in a file of the library, in words."""
    problems = []
    for line, word in _constants(ast.parse(source)):
        place = f"{path}:{line}: {word!r} is"
        if path.startswith("compile/"):
            if word in OPERATIONS and not (hasattr(np, word) or word in OF_C or word in KNOWN):
                problems.append(
                    f"{place} an operation, and no function of NumPy or C: ask its entry (`About.symbolic`)"
                )
        elif word in KNOWN or len(word) == 1 or path in ELSEWHERE:
            continue
        elif word in OPERATIONS:
            problems.append(f"{place} an operation: make what is true of it a fact of its entry (`About`)")
        elif word in ARGUMENTS:
            problems.append(f"{place} an argument of operations: have the entries say which argument it is")
    return problems


def test_the_mechanism_knows_no_operation_and_no_argument_by_name() -> None:
    problems = [
        problem
        for folder in ("table", "interpreters", "compile")
        for path in sorted((LIBRARY / folder).rglob("*.py"))
        for problem in found_in(path.read_text("utf-8"), path.relative_to(LIBRARY).as_posix())
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "fault",
    [
        'if op.name == "matmul": pass',
        'EXACT = frozenset(("gather", "take"))',
        'put = TABLE["_put_through"]',
        'NAMES = {"_index": "indexing with a mask"}',
        'OF_VALUES = "nonzero argwhere".split()',
        'OPERATORS = {"truediv": "div"}',
        'DIMS = {"dim", "dims"}',
        'dim = given["dim"]',
        'NUMBERS = frozenset("axis diagonal".split())',
        'ALIASES = {"axis": "dim"}',
        'if op.params[1:] == ("value",): pass',
        'keep = given.get("keepdim")',
        'print(f"{op.name}" + "sum")',
    ],
)
@pytest.mark.parametrize("path", ["table/calls.py", "interpreters/batched.py"])
def test_a_planted_name_is_found(path: str, fault: str) -> None:
    assert found_in(fault, path)


@pytest.mark.parametrize(
    "fault", ['KNOWN = {"expand": 1}', 'if op.name == "_place": pass', 'WORDS = "sgn softmax".split()']
)
def test_a_planted_name_is_found_in_compile(fault: str) -> None:
    assert found_in(fault, "compile/trace/symbols.py")


@pytest.mark.parametrize(
    "line",
    [
        '"""sum"""',
        'x = getattr(value, "dtype", None)',
        'raise TypeError("the sum over dim is refused")',
        '__slots__ = ("shape", "dtype")',
        'if op.kind == "bilinear": pass',
        'if "out" in kwargs: pass',
    ],
)
def test_what_is_no_name_may_stand(line: str) -> None:
    assert not found_in(line, "table/calls.py")


def test_the_names_of_numpys_functions_may_stand_in_compile() -> None:
    assert not found_in('STEPS = {"add": "+", "erf": "erf(a)"}', "compile/backends/c_steps.py")
    assert found_in('STEPS = {"add": "+"}', "table/calls.py")


def test_every_exemption_is_used() -> None:
    """A word that no file has any more is taken off the lists."""
    words = {
        word
        for folder in ("table", "interpreters", "compile")
        for path in (LIBRARY / folder).rglob("*.py")
        for _, word in _constants(ast.parse(path.read_text("utf-8")))
    }
    assert not {*KNOWN, *OF_C} - words
    assert all((LIBRARY / path).exists() for path in ELSEWHERE)
