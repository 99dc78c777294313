"""The mechanism knows no operation by name, and guesses nothing from what an argument is called.

No string constant below `table/` or `interpreters/` is the name of an operation or of an argument of one. Below
`compile/` one file has such names, its table of the functions of NumPy and C; the others ask that table. The syntax
trees are walked: docstrings are left out, and so are the attributes that `getattr` and its like ask an object for,
unless the object is NumPy. A string with a space in it is a message, unless it is split into words. What else may
stand is listed, each word with its file and its reason. `found_in` takes a source text, so that the checker is itself
checked, against planted faults.
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

# Words that mean something else than an operation or an argument: where they may stand, and why.
_KIND, _DOMAIN, _LAYOUT = "a kind of entry", "where the values of samples come from", "how the array of a sample lies"
_OUT = "the keyword that every function has, and what a rule calls the result"
_ITSELF = "`elementwise` itself calls its arguments so"
KNOWN = {
    ("table/op.py", "linear"): _KIND,
    ("table/op.py", "bilinear"): _KIND,
    ("table/entry.py", "linear"): _KIND,
    ("table/entry.py", "bilinear"): _KIND,
    ("table/narrow.py", "bilinear"): _KIND,
    ("interpreters/dual.py", "linear"): _KIND,
    ("interpreters/dual.py", "bilinear"): _KIND,
    ("interpreters/dual_rules.py", "linear"): _KIND,
    ("interpreters/dual_rules.py", "bilinear"): _KIND,
    ("interpreters/jets.py", "linear"): _KIND,
    ("interpreters/jets.py", "bilinear"): _KIND,
    ("table/entry.py", "fft"): "a module whose functions are entered",
    ("table/entry.py", "input"): _ITSELF,
    ("table/entry.py", "other"): _ITSELF,
    ("table/entry.py", "alpha"): "the keyword that `elementwise` itself adds",
    ("table/entry.py", "name"): "a keyword of entries",
    ("table/entry.py", "out"): _OUT,
    ("table/calls.py", "out"): _OUT,
    ("table/checks.py", "out"): _OUT,
    ("table/nodes.py", "out"): _OUT,
    ("table/results.py", "out"): _OUT,
    ("interpreters/dual_rules.py", "out"): _OUT,
    ("interpreters/jets.py", "out"): _OUT,
    ("interpreters/payload.py", "axis"): "what NumPy calls the axes of its reductions",
    ("table/samples.py", "real"): _DOMAIN,
    ("table/samples.py", "positive"): _DOMAIN,
    ("table/samples.py", "hermitian"): _DOMAIN,
    ("table/samples.py", "lower"): _DOMAIN,
    ("table/samples.py", "upper"): _DOMAIN,
    ("table/samples.py", "index"): _DOMAIN,
    ("table/samples.py", "step"): _LAYOUT,
    ("compile/trace/outside.py", "copy"): "a module of Python's",
    ("compile/trace/outside.py", "geterr"): "a setting of NumPy's",
    ("compile/trace/outside.py", "initial_seed"): "a setting of ours",
    ("compile/trace/outside.py", "get_printoptions"): "settings of NumPy's and ours",
    ("table/samples.py", "nan"): "a number",
    ("table/samples.py", "values"): "the field of a record that is checked against the oracle",
}
# Words of `compile/` that NumPy has functions of, too.
OF_COMPILE = {
    "array": "a kind of value, and the name of a variable in the programs that are written",
    "block": "a parameter of a C function",
    "load": "the step that reads an element",
    "size": "a parameter of a C function",
}
# The one file of `compile/` that knows functions by name, and the names in it that are SciPy's or C's.
STEPS = "compile/backends/steps.py"
OF_OTHERS = {"erf", "erfc", "expit", "gammaln", "lgamma"}
OF_NUMPY = {name for name in np.__all__ if callable(f := getattr(np, name)) and not isinstance(f, type)}


# The one file of `interpreters/` that knows functions of NumPy, and what they call their arguments.
RULES = "interpreters/pattern_rules.py"
OF_ARGUMENTS = {"axis", "dtype", "indices"}


def _constants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The words of string constants that could be names, each with its line."""
    attributes: set[int] = set()
    lists: dict[int, str | None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            attributes.add(id(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("getattr", "hasattr", "setattr", "delattr") and ast.unparse(node.args[0]) != "np":
                attributes.add(id(node.args[1]))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
            separator = node.args[0] if node.args else None
            lists[id(node.func.value)] = separator.value if isinstance(separator, ast.Constant) else None
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__slots__" for t in node.targets
        ):
            attributes.update(map(id, ast.walk(node.value)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in attributes:
            parts = node.value.split(lists[id(node)]) if id(node) in lists else []
            for word in [part.strip() for part in parts] or [node.value]:
                yield node.lineno, word


def found_in(source: str, path: str) -> list[str]:
    """The names in a file of the library, in words."""
    problems = []
    for line, word in _constants(ast.parse(source)):
        place = f"{path}:{line}: {word!r} is"
        if (path, word) in KNOWN or len(word) == 1:
            continue
        if path == STEPS:
            if word in OPERATIONS and not (hasattr(np, word) or word in OF_OTHERS):
                problems.append(f"{place} an operation, and no function of NumPy or C: ask its entry")
        elif path.startswith("compile/"):
            if word in OPERATIONS | OF_NUMPY and word not in OF_COMPILE:
                problems.append(f"{place} a function's name: make what is true of it a fact in {STEPS}")
        elif path == RULES and (word in OF_NUMPY or hasattr(np.fft, word) or word in OF_ARGUMENTS):
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
        'NUMBERS = frozenset("axis, diagonal".split(","))',
        'ALIASES = {"axis": "dim"}',
        'if op.params[1:] == ("value",): pass',
        'keep = given.get("keepdim")',
        'print(f"{op.name}" + "sum")',
        *(f'if op.name == "{name}": pass' for name in ("real", "narrow", "complex", "positive")),
    ],
)
@pytest.mark.parametrize("path", ["table/calls.py", "table/entry.py", "table/op.py", "interpreters/batched.py"])
def test_a_planted_name_is_found(path: str, fault: str) -> None:
    assert found_in(fault, path)


@pytest.mark.parametrize(
    "fault",
    [
        'KNOWN = {"expand": 1}',
        'if op.name == "_place": pass',
        'WORDS = "sgn softmax".split()',
        *(f'if op.name == "{name}": pass' for name in ("matmul", "sum", "cumsum", "real", "positive", "power")),
        'if op.name in ("matmul", "sum", "cumsum"): pass',
        'COSTLY = frozenset("exp log".split())',
        'COSTLY = frozenset("exp,log".split(","))',
        'if fn is getattr(np, "matmul"): pass',
        'if fn.__name__ in ("rollaxis", "convolve"): pass',
    ],
)
@pytest.mark.parametrize("path", ["compile/trace/symbols.py", "compile/plan/fuse.py", "compile/backends/c_steps.py"])
def test_a_planted_name_is_found_in_compile(path: str, fault: str) -> None:
    assert found_in(fault, path)


def test_an_operation_that_is_no_function_of_numpy_is_found_in_the_rules_of_patterns() -> None:
    assert found_in('RULES = {"softmax": 1}', RULES)
    assert found_in('keep = given.get("keepdim")', RULES)
    assert not found_in('RULES = {"where": 1}', RULES)


def test_an_operation_that_is_no_function_of_numpy_is_found_in_the_table_of_functions() -> None:
    assert found_in('STEPS = {"softmax": 1}', STEPS)


@pytest.mark.parametrize(
    "line",
    [
        '"""sum"""',
        'x = getattr(value, "dtype", None)',
        'raise TypeError("the sum over dim is refused")',
        '__slots__ = ("shape", "dtype")',
        'if "out" in kwargs: pass',
    ],
)
def test_what_is_no_name_may_stand(line: str) -> None:
    assert not found_in(line, "table/calls.py")


def test_the_names_of_numpys_functions_may_stand_in_one_file() -> None:
    source = 'STEPS = {"add": "+", "erf": "erf(a)"}'
    assert not found_in(source, STEPS)
    assert found_in(source, "compile/backends/c_steps.py")
    assert found_in(source, "table/calls.py")


def test_every_exemption_is_used() -> None:
    """A word that a file no longer has is taken off the list."""
    words = {
        (path, word)
        for path in {*(path for path, _ in KNOWN), STEPS}
        for _, word in _constants(ast.parse((LIBRARY / path).read_text("utf-8")))
    }
    assert not {*KNOWN, *((STEPS, word) for word in OF_OTHERS)} - words
    paths = (LIBRARY / "compile").rglob("*.py")
    assert OF_COMPILE.keys() <= {word for p in paths for _, word in _constants(ast.parse(p.read_text("utf-8")))}
