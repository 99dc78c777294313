"""The parts that are put together at import are put together in few places, and each place shows all of its parts.

The class Tensor gets attributes by one function, `tensor.extend`, and that is called in three places alone. What a room
needs from a room above it is handed down in `assembly.py`. Modules get further paths in `compat/paths.py`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import pullback
from tests.house.test_circles import file_of, room

LIBRARY = Path(pullback.__file__).parent

# What a Tensor is by itself, what the heart adds, and what operations add.
LISTS = {"tensor/__init__.py", "autograd/api.py", "table/tensor_methods.py", "ops/numpy/shapes.py"}


def additions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where a file adds to the class Tensor, and how: by `setattr`, by an assignment, or by `extend`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            if called == "setattr" and node.args and ast.unparse(node.args[0]) == "Tensor":
                yield node.lineno, "setattr"
            elif called == "extend" and "." not in ast.unparse(node.func):
                yield node.lineno, "extend"
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "Tensor":
                    yield node.lineno, "an assignment"


def found(how: set[str]) -> set[str]:
    """The files that add to the class in one of these ways."""
    return {
        path.relative_to(LIBRARY).as_posix()
        for path in LIBRARY.rglob("*.py")
        for _, way in additions(ast.parse(path.read_text("utf-8")))
        if way in how
    }


def test_one_function_adds_to_the_class() -> None:
    assert found({"setattr", "an assignment"}) == {"tensor/tensor.py"}
    assert found({"extend"}) == LISTS


@pytest.mark.parametrize(
    ("source", "ways"),
    [
        ("setattr(Tensor, 'sin', sin)", ["setattr"]),
        ("for n in names:\n    setattr(Tensor, n, 1)", ["setattr"]),
        ("Tensor.sin = sin", ["an assignment"]),
        ("Tensor.sin, Tensor.cos = sin, cos", ["an assignment"] * 2),
        ("Tensor.sin: Any = sin", ["an assignment"]),
        ("extend({'sin': sin})", ["extend"]),
        ("names.extend([1]); setattr(self, 'a', 1); t.data = Tensor.data", []),
    ],
)
def test_every_way_of_adding_is_found(source: str, ways: list[str]) -> None:
    assert [way for _, way in additions(ast.parse(source))] == ways


def test_methods_are_called_by_their_public_names() -> None:
    for name in ("backward", "fill_", "__getitem__", "to_dense", "as_subclass", "__deepcopy__", "where"):
        method = inspect.getattr_static(pullback.Tensor, name)
        assert method.__name__ == name


def test_an_operation_that_is_entered_later_is_a_method_once_methods_are_entered() -> None:
    from pullback.table import tensor_methods
    from pullback.table.entry import METHODS

    assert METHODS == {}
    before = {*vars(pullback.Tensor)}
    METHODS["_tried"] = lambda self: 7
    try:
        assert not hasattr(pullback.Tensor, "_tried")
        tensor_methods.enter_methods()
        assert pullback.ones(2)._tried() == 7
        assert METHODS == {}
        assert {*vars(pullback.Tensor)} - before == {"_tried"}
    finally:
        del pullback.Tensor._tried


# What rooms hand to each other ----------------------------------------------------------------------------------------

# Tables that operations and classes enter themselves in when they are defined.
TABLES = {"INSTEAD", "METHODS", "NAMES", "NUMPY", "PLAIN", "SAVED_NAMES", "SPELLINGS"}
# What a file gives its own functions.
DOORS = {"errors.doors", "errors.named_constructor"}


def at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a file that importing it runs."""
    for statement in body:
        if isinstance(statement, ast.If | ast.For | ast.With | ast.Try):
            yield from at_import(statement.body)
        elif not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement


def from_other_rooms(path: Path, root: Path, tree: ast.Module) -> dict[str, str]:
    """The names that a file has from other rooms of a package: as it calls them, and as they are called there."""
    package = path.relative_to(root).parent.parts
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = (*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                if room(file_of((*base, alias.name), root), root) != room(path, root):
                    found[alias.asname or alias.name] = alias.name
    return found


def root_of(node: ast.AST) -> str:
    """The name that an expression like `a.b[0].c` begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def handed_over(path: Path, root: Path) -> Iterator[tuple[int, str]]:
    """Where a file, when it is imported, changes what another room has: its line, and the name that it changes."""
    tree = ast.parse(path.read_text("utf-8"))
    other = {name: there for name, there in from_other_rooms(path, root, tree).items() if there not in TABLES}
    for statement in at_import(tree.body):
        places: list[ast.AST] = []
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                places += target.elts if isinstance(target, ast.Tuple) else [target]
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            places = call.args[:1] if ast.unparse(call.func) == "setattr" else [call.func]
            if (isinstance(places[0], ast.Name) and places[0] is call.func) or ast.unparse(call.func) in DOORS:
                places = []  # a function of another room may enter what it is given in a table
        for place in places:
            name = root_of(place)
            if name in other and (not isinstance(place, ast.Name) or isinstance(statement, ast.Expr)):
                yield statement.lineno, name


def test_one_file_hands_down_what_rooms_below_need() -> None:
    found = {path.relative_to(LIBRARY).as_posix(): {*handed_over(path, LIBRARY)} for path in LIBRARY.rglob("*.py")}
    assert {path for path, lines in found.items() if lines} == {"assembly.py"}
    assert {name for _, name in found["assembly.py"]} == {
        "ACTIVE",
        "Batches",
        "Conversion",
        "Details",
        "Elsewhere",
        "FirstPasses",
        "Fused",
        "Held",
        "Over",
        "SumsByIndex",
        "Through",
    }


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from ..below.x import Holder\nHolder.call = print", ["Holder"]),
        ("from ..below.x import Holder\nHolder.a, Holder.b = print, print", ["Holder", "Holder"]),
        ("from ..below.x import Holder\nHolder.call: object = print", ["Holder"]),
        ("from ..below.x import Holder\nsetattr(Holder, 'call', print)", ["Holder"]),
        ("from ..below import x\nx.Holder.call = print", ["x"]),
        ("from ..below import x\nx.takes(print)", ["x"]),
        ("from ..below.x import HEARD as _HEARD\n_HEARD.append(print)", ["_HEARD"]),
        ("from ..below.x import HEARD\nif True:\n    HEARD[0] = print", ["HEARD"]),
        ("from ..below.x import METHODS\nMETHODS['sin'] = print\nMETHODS.update(sin=print)", []),
        ("from ..below.x import alias\nalias('sin', print)", []),
        ("from .own import Holder\nHolder.call = print", []),
        ("from ..below.x import Holder\ndef f():\n    Holder.call = print", []),
        ("from ..below.x import Holder\nmine = Holder.call", []),
    ],
)
def test_every_way_of_handing_over_is_found(tmp_path: Path, source: str, names: list[str]) -> None:
    for path, text in (("__init__", ""), ("below/x", ""), ("above/own", ""), ("above/y", source)):
        file = tmp_path / f"{path}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert [name for _, name in handed_over(tmp_path / "above" / "y.py", tmp_path)] == names


# Paths of modules -----------------------------------------------------------------------------------------------------

# A program that `pullback run` and the like start is the module that its classes are looked up in.
SCRIPT = "cli/script.py"


def plants(tree: ast.Module) -> Iterator[int]:
    """The lines on which a file changes the modules that Python knows, or how it finds them."""
    for node in ast.walk(tree):
        targets: list[ast.AST] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = [*node.targets]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            reading = node.func.attr in ("copy", "get", "items", "keys", "values")
            targets = [] if reading or isinstance(node.func.value, ast.Subscript) else [node.func.value]
        elif isinstance(node, ast.ImportFrom) and node.module == "sys":
            targets = [ast.parse(f"sys.{alias.name}", mode="eval").body for alias in node.names]
        for target in targets:
            parts = {ast.unparse(part) for part in ast.walk(target) if isinstance(part, ast.Attribute)}
            if parts & {"sys.modules", "sys.meta_path", "sys.path_hooks"}:
                yield node.lineno


def test_one_file_gives_modules_further_paths() -> None:
    found = {
        path.relative_to(LIBRARY).as_posix()
        for path in LIBRARY.rglob("*.py")
        if any(plants(ast.parse(path.read_text("utf-8"))))
    }
    # the last two give paths to namespaces that stand for another package's
    assert found == {"compat/paths.py", SCRIPT, "bridge/autograd/modules.py", "bridge/as_torch/__init__.py"}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import sys\nsys.modules['a.b'] = sys.modules['c']", [2]),
        ("import sys\na = sys.modules[__name__ + '.b'] = c", [2]),
        ("import sys\nsys.modules.update(a=b)", [2]),
        ("import sys\nsys.modules.setdefault('a', b)", [2]),
        ("import sys\ndef f():\n    del sys.modules['a']", [3]),
        ("import sys\nsys.meta_path.insert(0, finder)", [2]),
        ("from sys import modules\nmodules['a'] = b", [1]),
        ("import sys\na = sys.modules.get('scipy'), sys.modules['b'].c(), 'd' in sys.modules", []),
    ],
)
def test_every_way_of_giving_a_path_is_found(source: str, lines: list[int]) -> None:
    assert [*plants(ast.parse(source))] == lines
