"""Holds the architecture of the library by reading its syntax trees, without importing it.

Imports point one way, the heart knows no operation, optional packages are asked for only where they are used, and
nothing grows past what one reads in one go. `violations` takes the folder to check, so that the checker is itself
checked, against planted faults.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "pullback"
LIBRARY = Path(__file__).parents[2] / "src" / PACKAGE

# A module may import from its own layer and from those below it. The key is the first name below the package.
LAYERS = [
    {"errors", "_state", "_arrays", "_dtypes", "_numpy", "_repr"},
    {"_copying", "_memory", "_methods", "_tensor", "_views", "autograd", "overrides"},
    {"interpreters", "ops"},
    {"func", "compile", "utils", "autograd.forward_ad", "autograd.functional"},
    {
        *("nn", "return_types", "optim", "inspect", "testing", "bridge", "cuda", "serialization", "_safetensors"),
        *("_settings", "array_api", "backends", "distributions", "fft", "linalg", "random", "special"),
    },
    {"__init__"},
    {"cli", "_check", "_demo", "_explain", "_graph", "_script", "__main__"},
]
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
HEART = {"_copying", "_memory", "_methods", "_tensor", "_views", "autograd"}

REQUIRED = {"numpy"}
OPTIONAL = {"scipy", "cupy", "mpi4py", "rich", "matplotlib", "sklearn", "torch", "jax", "opt_einsum", "ml_dtypes"}

LINES_PER_FILE = 400
LINES_PER_FUNCTION = 60

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


# -- the checker -------------------------------------------------------------------------------------------------------


def violations(root: Path) -> list[str]:
    """Everything in `root`, the package's folder, that breaks a rule, as `path:line: what is wrong and what to do`."""
    found = []
    for path in sorted(root.rglob("*.py")):
        source = path.read_text("utf-8")
        tree = ast.parse(source, str(path))
        problems = [*_import_problems(path.relative_to(root), tree, root), *_size_problems(source, tree)]
        found += [f"{path.relative_to(root.parent)}:{line}: {problem}" for line, problem in sorted(problems)]
    return found


def _import_problems(path: Path, tree: ast.Module, root: Path) -> Iterator[tuple[int, str]]:
    parts = path.with_suffix("").parts
    home = ".".join(parts[:2]) if ".".join(parts[:2]) in LAYER else parts[0]
    if home not in LAYER:
        yield 1, f"{home} has no layer: give it one in LAYERS, in {Path(__file__).name}"
        return
    for statement, in_function in _imports(tree, in_function=False):
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            yield statement.lineno, "star import: name what is needed"
        for target in _targets(statement, path, root):
            problem = _import_problem(home, target, in_function)
            if problem:
                yield statement.lineno, problem


def _imports(node: ast.AST, in_function: bool) -> Iterator[tuple[Import, bool]]:
    """Every import that is executed, and whether it stands in a function; not those for the type checker only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Import):
            yield child, in_function
        elif isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for alternative in child.orelse:
                yield from _imports(ast.Module([alternative], []), in_function)
        else:
            yield from _imports(child, in_function or isinstance(child, Function | ast.Lambda))


def _targets(statement: Import, path: Path, root: Path) -> list[tuple[str, ...]]:
    """What a statement imports, as absolute dotted names in parts, far enough to tell the layer."""
    if isinstance(statement, ast.Import):
        return [tuple(alias.name.split(".")) for alias in statement.names]
    package = (PACKAGE, *path.parent.parts)
    module = tuple(statement.module.split(".")) if statement.module else ()
    if statement.level:
        module = package[: len(package) - statement.level + 1] + module
    if module != (PACKAGE,):
        return [module]
    # `from pullback import x`: a module of that name, or else a name of the package's own `__init__`.
    modules = LAYER.keys() | {file.stem for file in root.iterdir()}
    return [(PACKAGE, alias.name) if alias.name in modules else module for alias in statement.names]


def _import_problem(home: str, target: tuple[str, ...], in_function: bool) -> str | None:
    top = target[0]
    if top == PACKAGE:
        below = ".".join(target[1:3])
        return _layer_problem(home, below if below in LAYER else ".".join(target[1:2]) or "__init__", in_function)
    if top in sys.stdlib_module_names or top in REQUIRED:
        return f"import of {top} inside a function: move it to the top of the file" if in_function else None
    if top not in OPTIONAL:
        return f"import of {top}, which is neither required nor an extra of pyproject.toml"
    if top == "torch" and home != "bridge":
        return "import of torch outside bridge/: the library does not depend on it"
    if not in_function:
        return f"import of {top} at the top of the file: it is optional, import it in the function that uses it"
    return None


def _layer_problem(home: str, target: str, in_function: bool) -> str | None:
    if in_function:
        return f"import of {PACKAGE}.{target} inside a function: move it to the top of the file"
    if home in HEART and target == "ops":
        return f"{home} imports ops: the heart knows no operation; let the operation register itself, or pass it in"
    if target not in LAYER:
        return f"import of {target}, which has no layer: give it one in LAYERS, in {Path(__file__).name}"
    if LAYER[target] > LAYER[home]:
        return (
            f"{home} (layer {LAYER[home]}) imports {target} (layer {LAYER[target]}): imports point down; "
            "move what is needed below both, or pass it in"
        )
    return None


def _size_problems(source: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    code = _lines_of_code(source, tree)
    if len(code) > LINES_PER_FILE:
        yield 1, f"{len(code)} lines of code, of at most {LINES_PER_FILE} in a file: split it"
    for node in ast.walk(tree):
        if isinstance(node, Function):
            size = len(code & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
            if size > LINES_PER_FUNCTION:
                yield node.lineno, f"{node.name}: {size} lines of code, of at most {LINES_PER_FUNCTION}: split it"


def _lines_of_code(source: str, tree: ast.Module) -> set[int]:
    """The numbers of the lines that hold more than a docstring, a comment or nothing."""
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node, clean=False) is not None:
            docstrings.add((node.body[0].lineno, node.body[0].col_offset))
    blank = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in blank and token.start not in docstrings:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


# -- the library -------------------------------------------------------------------------------------------------------


def test_the_library_keeps_its_layers_and_ceilings() -> None:
    assert list(LIBRARY.rglob("*.py")), f"no library at {LIBRARY}"
    found = violations(LIBRARY)
    assert not found, "\n" + "\n".join(found)


# -- the checker, on planted faults ------------------------------------------------------------------------------------


def _plant(tmp_path: Path, files: dict[str, str]) -> list[str]:
    root = tmp_path / PACKAGE
    for name in ["__init__.py", "ops/__init__.py", "autograd/__init__.py", "_tensor.py", *files]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(files.get(name, ""), "utf-8")
    return violations(root)


def test_what_the_rules_allow_is_not_reported(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from . import nn, ops\nfrom ._tensor import Tensor\nimport pullback.autograd.engine\n",
        "autograd/engine.py": "import heapq\nimport numpy as np\nfrom .. import _arrays\nfrom .node import Node\n",
        "autograd/node.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pullback.ops import table\n",
        "_arrays.py": "def f():\n    import scipy.sparse\n    return scipy.sparse\n",
        "ops/table.py": "from ..interpreters import batched\nfrom pullback import _tensor\n",
        "interpreters/batched.py": "",
        "nn/__init__.py": "from ..func import grad\nfrom pullback.ops.table import Entry\n",
        "func/__init__.py": "",
        "bridge/torch.py": "def f():\n    import torch\n    return torch\n",
        "cli.py": "import argparse\nimport pullback\nfrom pullback import Tensor\n",
    }
    assert _plant(tmp_path, files) == []


FAULTS = {
    "up": (
        "_arrays.py",
        "import math\nfrom ._tensor import Tensor\n",
        ":2: _arrays (layer 0) imports _tensor (layer 1)",
    ),
    "up, absolute": ("func/vmap.py", "import pullback.nn.functional\n", ":1: func (layer 3) imports nn (layer 4)"),
    "up, by two dots": ("ops/shape.py", "from .. import func\n", ":1: ops (layer 2) imports func (layer 3)"),
    "the namespace": ("nn/__init__.py", "import pullback\n", ":1: nn (layer 4) imports __init__ (layer 5)"),
    "a name of the namespace": ("ops/a.py", "from pullback import tensor\n", ":1: ops (layer 2) imports __init__"),
    "in a try": ("ops/b.py", "try:\n    from ..nn import x\nexcept ImportError:\n    x = None\n", ":2: ops (layer 2)"),
    "in the type checker's else": (
        "ops/c.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    from ..nn import x\n",
        ":5: ops (layer 2) imports nn",
    ),
    "the heart, from autograd": (
        "autograd/engine.py",
        "from ..ops.table import x\n",
        ":1: autograd imports ops: the heart",
    ),
    "the heart, from the tensor": ("_tensor.py", "from . import ops\n", ":1: _tensor imports ops: the heart"),
    "star": ("nn/__init__.py", "from ..ops import *\n", ":1: star import"),
    "own, in a function": (
        "ops/d.py",
        "def f():\n    from .. import _tensor\n",
        ":2: import of pullback._tensor inside",
    ),
    "own, in a method": (
        "ops/e.py",
        "class A:\n    def f(self):\n        if self:\n            from .. import _tensor\n",
        ":4: import of pullback._tensor inside a function",
    ),
    "standard, in a function": ("ops/f.py", "def f():\n    import math\n", ":2: import of math inside a function"),
    "NumPy, in a function": ("ops/g.py", "def f():\n    import numpy as np\n", ":2: import of numpy inside a function"),
    "optional, at the top": ("ops/h.py", "import scipy.special\n", ":1: import of scipy at the top"),
    "optional, in a try": (
        "ops/i.py",
        "try:\n    import cupy\nexcept ImportError:\n    cupy = None\n",
        ":2: import of cupy at the top",
    ),
    "torch elsewhere": ("ops/j.py", "def f():\n    import torch\n", ":2: import of torch outside bridge/"),
    "torch at the top": ("bridge/torch.py", "from torch import nn\n", ":1: import of torch at the top"),
    "no extra": ("ops/k.py", "def f():\n    import pandas\n", ":2: import of pandas, which is neither"),
    "no layer": ("helpers.py", "", ":1: helpers has no layer"),
    "from where there is no layer": (
        "nn/__init__.py",
        "from ..mystery import x\n",
        ":1: import of mystery, which has no layer",
    ),
    "a long file": ("ops/l.py", "x = 0\n" * 401, ":1: 401 lines of code, of at most 400"),
    "a long function": ("ops/m.py", "\n\ndef f():\n" + "    x = 0\n" * 60, ":3: f: 61 lines of code, of at most 60"),
    "a long method": ("ops/n.py", "class A:\n    def f(self):\n" + "        x = 0\n" * 60, ":2: f: 61 lines of code"),
    "a long string": ("ops/o.py", 'def f():\n    return """\n' + "text\n" * 60 + '"""\n', ":1: f: 63 lines of code"),
}


@pytest.mark.parametrize(("path", "source", "expected"), FAULTS.values(), ids=FAULTS.keys())
def test_a_planted_fault_is_found_and_named(tmp_path: Path, path: str, source: str, expected: str) -> None:
    (problem,) = _plant(tmp_path, {path: source})
    assert problem.startswith(f"{Path(PACKAGE, path)}{expected}")


def test_docstrings_comments_and_blank_lines_are_not_code(tmp_path: Path) -> None:
    padding = "    # a comment\n\n" * 100
    body = "".join(f"    x = {number}\n" for number in range(59))
    docstring = '    """Words.\n' + "    More words.\n" * 100 + '    """\n'
    function = f"def f():\n{docstring}{padding}{body}"
    assert _plant(tmp_path, {"ops/long.py": '"""' + "words\n" * 500 + '"""\n' + function}) == []
