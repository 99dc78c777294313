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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

PACKAGE = "pullback"
LIBRARY = Path(__file__).parents[2] / "src" / PACKAGE

# A module may import from its own layer and from those below it. The key is a path below the package: the longest one
# that a module's own path begins with says where the module belongs.
LAYERS = [
    {"errors", "kept_gradients"},
    {"tensor"},
    {"autograd", "kernels"},
    {"diagnose"},
    {"table"},
    {"interpreters"},
    {"ops"},
    {"func"},
    {"compile", "diagnose.gradcheck", "utils"},
    {
        "array_api",
        "assembly",
        "cuda",
        "fft",
        "linalg",
        "nn",
        "random",
        "return_types",
        "_locations",
        "_safetensors",
        "_torch_files",
        "special",
    },
    {"compat", "optim", "serialization", "testing"},
    {"scipy", "distributed"},
    {"inspect", "bridge"},
    {"__init__"},
    {"cli", "__main__"},
]
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
HEART = {"tensor", "autograd"}

REQUIRED = {"numpy"}
OPTIONAL = {
    "checkpoint_schedules", "cupy", "mpi4py", "scipy", "rich", "matplotlib", "sklearn", "opt_einsum", "ml_dtypes",
}  # fmt: skip

# The libraries that a room is a bridge to, imported at the top of its files; torch and jax nowhere else.
HOSTS = {"torch": {"bridge.torch"}, "jax": {"bridge.jax"}, "scipy": {"bridge.autograd", "scipy"}}

LINES_PER_FILE = 450
LINES_PER_FUNCTION = 60
FILES_PER_FOLDER = 15

# A room is one subject and is read as a whole: this is how many lines of code it may hold. Catalogues (a file or a few
# for each thing that a user looks for) are read one file at a time and have no ceiling of their own.
LINES_PER_ROOM = {
    "tensor": 2660,
    "autograd": 2600,
    "table": 2840,
    "kernels": 900,
    "interpreters": 3145,
    "func": 2600,
    "diagnose": 2626,
    "compile": 9310,
    "utils": 1500,
    "compat": 1000,
    "cli": 3861,
    "distributed": 3105,
    "bridge": 3450,
    "testing": 3490,
}

# A file name means one thing. These stand twice: the layers correspond to the functions of networks, file by file; and
# these public modules have the path that torch, or our own command line, gives them.
PARALLEL = {"nn/functional", "nn/layers"}
MIRRORED = {"fft.py", "functional.py", "random.py"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


# -- the checker -------------------------------------------------------------------------------------------------------


def violations(root: Path) -> list[str]:
    """Everything in `root`, the package's folder, that breaks a rule, as `path:line: what is wrong and what to do`."""
    found: list[str] = []
    lengths: dict[Path, int] = {}
    for path in sorted(root.rglob("*.py")):
        source = path.read_text("utf-8")
        tree = ast.parse(source, str(path))
        code = _lines_of_code(source, tree)
        lengths[path] = len(code)
        problems = [*_import_problems(path.relative_to(root), tree, root), *_size_problems(code, tree)]
        found += [f"{path.relative_to(root.parent)}:{line}: {problem}" for line, problem in sorted(problems)]
    return found + _room_problems(root, lengths)


def _room_problems(root: Path, length: Mapping[Path, int]) -> list[str]:
    """Folders that are too full, rooms that are too long, and file names that stand for two things."""
    files = list(length)
    found = []
    for folder, count in sorted(Counter(path.parent for path in files).items()):
        if count > FILES_PER_FOLDER:
            place = folder.relative_to(root.parent)
            found.append(f"{place}: {count} files, of at most {FILES_PER_FOLDER} in a folder: divide it by ideas")
    lengths: Counter[str] = Counter()
    for path in files:
        lengths[path.relative_to(root).parts[0]] += length[path]
    for room, most in LINES_PER_ROOM.items():
        if lengths[room] > most:
            found.append(f"{PACKAGE}/{room}: {lengths[room]} lines of code, of at most {most} in this room")
    named: dict[str, list[str]] = {}
    for path in files:
        if path.name not in ("__init__.py", "__main__.py"):
            named.setdefault(path.name, []).append(path.relative_to(root).parent.as_posix())
    for name, folders in sorted(named.items()):
        apart = [f for f in folders if not (name in MIRRORED and f in (".", "distributed/nn"))]
        rooms = {next((p for p in PARALLEL if f == p or f.startswith(f"{p}/")), f) for f in apart}
        if len(apart) > 1 and not (rooms <= PARALLEL and len(rooms) == len(apart)):
            found.append(f"{PACKAGE}: {name} stands in {' and '.join(sorted(apart))}: a file name means one thing")
    return found


def _import_problems(path: Path, tree: ast.Module, root: Path) -> Iterator[tuple[int, str]]:
    parts = path.with_suffix("").parts
    home = _home(parts)
    if home not in LAYER:
        yield 1, f"{home} has no layer: give it one in LAYERS, in {Path(__file__).name}"
        return
    for statement, in_function in _imports(tree, in_function=False):
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            yield statement.lineno, "star import: name what is needed"
        for target in _targets(statement, path, root):
            if HOSTS.get(target[0], set()) & {parts[0], ".".join(parts[:2])}:
                continue
            problem = _import_problem(home, target, in_function)
            if problem:
                yield statement.lineno, problem


def _home(parts: Sequence[str]) -> str:
    """The longest path that has a layer and that a module's path, given in parts, begins with; else its first part."""
    paths = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((path for path in paths if path in LAYER), parts[0])


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
        folder = root.joinpath(*module[1:])
        inside = {file.stem for file in folder.iterdir()} if module[0] == PACKAGE and folder.is_dir() else set()
        return [(*module, alias.name) if alias.name in inside else module for alias in statement.names]
    # `from pullback import x`: a module of that name, or else a name of the package's own `__init__`.
    modules = LAYER.keys() | {file.stem for file in root.iterdir()}
    return [(PACKAGE, alias.name) if alias.name in modules else module for alias in statement.names]


def _import_problem(home: str, target: tuple[str, ...], in_function: bool) -> str | None:
    top = target[0]
    if top == PACKAGE:
        return _layer_problem(home, _home(target[1:] or ("__init__",)), in_function)
    if top in sys.stdlib_module_names or top in REQUIRED:
        return f"import of {top} inside a function: move it to the top of the file" if in_function else None
    if top not in OPTIONAL:
        return f"import of {top}, which is neither required nor an extra of pyproject.toml"
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


def _size_problems(code: set[int], tree: ast.Module) -> Iterator[tuple[int, str]]:
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


def unused(root: Path, layers: Iterable[str], optional: Iterable[str]) -> list[str]:
    """The layers that are no file or folder of the package in `root`, and the packages that nothing in it imports."""
    there = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in [*root.rglob("*.py"), *(path for path in root.rglob("*") if path.is_dir())]
    }
    asked = {
        target[0]
        for path in root.rglob("*.py")
        for statement, _ in _imports(ast.parse(path.read_text("utf-8")), in_function=False)
        for target in _targets(statement, path.relative_to(root), root)
    }
    return sorted({*layers} - there) + sorted({*optional} - asked)


def test_the_lists_name_only_what_is_there(tmp_path: Path) -> None:
    assert unused(LIBRARY, LAYER, OPTIONAL) == []
    _plant(tmp_path, {"ops/a.py": "def f():\n    import scipy.sparse\n"})
    layers = ["ops", "ops.a", "tensor", "__init__", "bridge", "ops.b"]
    assert unused(tmp_path / PACKAGE, layers, ["scipy", "cupy"]) == ["bridge", "ops.b", "cupy"]


# -- the checker, on planted faults ------------------------------------------------------------------------------------


def _plant(tmp_path: Path, files: dict[str, str]) -> list[str]:
    root = tmp_path / PACKAGE
    for name in ["__init__.py", "ops/__init__.py", "autograd/__init__.py", "tensor/tensor.py", *files]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(files.get(name, ""), "utf-8")
    return violations(root)


def test_what_the_rules_allow_is_not_reported(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from . import nn, ops\nfrom .tensor.tensor import Tensor\nimport pullback.autograd.engine\n",
        "autograd/engine.py": "import heapq\nimport numpy as np\nfrom ..tensor import arrays\nfrom .node import Node\n",
        "autograd/node.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pullback.ops import table\n",
        "tensor/arrays.py": "def f():\n    import scipy.sparse\n    return scipy.sparse\n",
        "ops/shape/axes.py": "from ...interpreters import batched\nfrom pullback.table import entry\n",
        "interpreters/batched.py": "",
        "nn/__init__.py": "from ..func import grad\nfrom pullback.table.entry import Entry\n",
        "func/__init__.py": "",
        "bridge/torch/a.py": "import torch\nfrom torch.autograd import Function\nfrom ...nn import x\n",
        "bridge/jax/b.py": "import jax\n",
        "cli/main.py": "import argparse\nimport pullback\nfrom pullback import Tensor\n",
    }
    assert _plant(tmp_path, files) == []


FAULTS = {
    "up": (
        "errors.py",
        "import math\nfrom .tensor.tensor import Tensor\n",
        ":2: errors (layer 0) imports tensor (layer 1)",
    ),
    "up, absolute": ("func/vmap.py", "import pullback.nn.functional\n", ":1: func (layer 7) imports nn (layer 9)"),
    "up, by two dots": ("ops/shape.py", "from .. import func\n", ":1: ops (layer 6) imports func (layer 7)"),
    "the namespace": ("nn/__init__.py", "import pullback\n", ":1: nn (layer 9) imports __init__ (layer 13)"),
    "a name of the namespace": ("ops/a.py", "from pullback import ones\n", ":1: ops (layer 6) imports __init__"),
    "in a try": ("ops/b.py", "try:\n    from ..nn import x\nexcept ImportError:\n    x = None\n", ":2: ops (layer 6)"),
    "in the type checker's else": (
        "ops/c.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    from ..nn import x\n",
        ":5: ops (layer 6) imports nn",
    ),
    "the heart, from autograd": (
        "autograd/engine.py",
        "from ..ops.shape import x\n",
        ":1: autograd imports ops: the heart",
    ),
    "the heart, from the tensor": ("tensor/tensor.py", "from .. import ops\n", ":1: tensor imports ops: the heart"),
    "star": ("nn/__init__.py", "from ..ops import *\n", ":1: star import"),
    "own, in a function": (
        "ops/d.py",
        "def f():\n    from .. import tensor\n",
        ":2: import of pullback.tensor inside",
    ),
    "own, in a method": (
        "ops/e.py",
        "class A:\n    def f(self):\n        if self:\n            from .. import tensor\n",
        ":4: import of pullback.tensor inside a function",
    ),
    "standard, in a function": ("ops/f.py", "def f():\n    import math\n", ":2: import of math inside a function"),
    "NumPy, in a function": ("ops/g.py", "def f():\n    import numpy as np\n", ":2: import of numpy inside a function"),
    "optional, at the top": ("ops/h.py", "import scipy.special\n", ":1: import of scipy at the top"),
    "optional, in a try": (
        "ops/i.py",
        "try:\n    import rich\nexcept ImportError:\n    rich = None\n",
        ":2: import of rich at the top",
    ),
    "torch": ("ops/j.py", "def f():\n    import torch\n", ":2: import of torch, which is neither"),
    "a host in another room": ("bridge/hosts.py", "import torch\n", ":1: import of torch, which is neither"),
    "a host in the bridge to another": (
        "bridge/jax/a.py",
        "import torch.fx\n",
        ":1: import of torch, which is neither",
    ),
    "no extra": ("ops/k.py", "def f():\n    import pandas\n", ":2: import of pandas, which is neither"),
    "gradcheck from below": (
        "interpreters/batched.py",
        "from ..diagnose.gradcheck import checking\n",
        ":1: interpreters (layer 5) imports diagnose.gradcheck (layer 8)",
    ),
    "no layer": ("helpers.py", "", ":1: helpers has no layer"),
    "from where there is no layer": (
        "nn/__init__.py",
        "from ..mystery import x\n",
        ":1: import of mystery, which has no layer",
    ),
    "a long file": ("ops/l.py", "x = 0\n" * 451, ":1: 451 lines of code, of at most 450"),
    "a long function": ("ops/m.py", "\n\ndef f():\n" + "    x = 0\n" * 60, ":3: f: 61 lines of code, of at most 60"),
    "a long method": ("ops/n.py", "class A:\n    def f(self):\n" + "        x = 0\n" * 60, ":2: f: 61 lines of code"),
    "a long string": ("ops/o.py", 'def f():\n    return """\n' + "text\n" * 60 + '"""\n', ":1: f: 63 lines of code"),
}


@pytest.mark.parametrize(("path", "source", "expected"), FAULTS.values(), ids=FAULTS.keys())
def test_a_planted_fault_is_found_and_named(tmp_path: Path, path: str, source: str, expected: str) -> None:
    (problem,) = _plant(tmp_path, {path: source})
    assert problem.startswith(f"{Path(PACKAGE, path)}{expected}")


ROOM_FAULTS = {
    "a full folder": (
        {f"ops/shape/file{n}.py": "" for n in range(16)},
        "pullback/ops/shape: 16 files, of at most 15 in a folder",
    ),
    "a long room": (
        {f"table/file{n}.py": "x = 0\n" * 400 for n in range(8)},
        f"pullback/table: 3200 lines of code, of at most {LINES_PER_ROOM['table']} in this room",
    ),
    "one name for two things": (
        {"ops/shape/axes.py": "", "tensor/axes.py": ""},
        "pullback: axes.py stands in ops/shape and tensor: a file name means one thing",
    ),
    "a name of the parallel rooms elsewhere": (
        {"nn/layers/linear.py": "", "nn/functional/linear.py": "", "ops/linear.py": ""},
        "pullback: linear.py stands in nn/functional and nn/layers and ops",
    ),
    "twice in one of the parallel rooms": (
        {"nn/layers/linear.py": "", "nn/layers/images/linear.py": ""},
        "pullback: linear.py stands in nn/layers and nn/layers/images",
    ),
    "a mirrored name twice below": (
        {"fft.py": "", "ops/signal/fft.py": "", "kernels/fft.py": ""},
        "pullback: fft.py stands in kernels and ops/signal",
    ),
}


@pytest.mark.parametrize(("files", "expected"), ROOM_FAULTS.values(), ids=ROOM_FAULTS.keys())
def test_a_fault_of_a_room_is_found_and_named(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    (problem,) = _plant(tmp_path, files)
    assert problem.startswith(expected)


def test_names_that_may_stand_twice(tmp_path: Path) -> None:
    assert not _plant(
        tmp_path, dict.fromkeys(["fft.py", "ops/signal/fft.py", "nn/layers/a.py", "nn/functional/a.py"], "")
    )


def test_docstrings_comments_and_blank_lines_are_not_code(tmp_path: Path) -> None:
    padding = "    # a comment\n\n" * 100
    body = "".join(f"    x = {number}\n" for number in range(59))
    docstring = '    """Words.\n' + "    More words.\n" * 100 + '    """\n'
    function = f"def f():\n{docstring}{padding}{body}"
    assert _plant(tmp_path, {"ops/long.py": '"""' + "words\n" * 500 + '"""\n' + function}) == []
