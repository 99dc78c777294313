"""No two rooms of the library import each other, directly or through others.

A room is a folder. A file at the top of the package is a room by itself, and so is the `__init__` of a folder that has
folders in it: it gathers what lies below, which knows nothing of it. What is imported for the type checker alone counts
as well, for a reader follows it all the same. Within `table/` that holds for files, too: an entry knows nothing of how
it is called, recorded or written. Nor does a room use a private name of another.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pullback

LIBRARY = Path(pullback.__file__).parent

Graph = dict[str, dict[str, str]]
"""For each room the rooms that it imports, each with one import as an example."""


def room(path: Path, root: Path) -> str:
    """The room a file is in."""
    folder = path.parent.relative_to(root).as_posix()
    if folder == ".":
        return path.stem
    gathers = path.name == "__init__.py" and any(one.is_dir() for one in path.parent.iterdir() if one.name[0] != "_")
    return f"{folder}/__init__" if gathers else folder


def imports(path: Path, root: Path) -> Iterator[tuple[str, ...]]:
    """What a file imports of the library: paths below it in parts, a name of a module or a module, whichever it is."""
    package = path.parent.relative_to(root).parts
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first, *below = alias.name.split(".")
                if first == root.name:
                    yield tuple(below)
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            if node.level:
                base = (*package[: len(package) - node.level + 1], *parts)
            elif parts[0] == root.name:
                base = tuple(parts[1:])
            else:
                continue
            yield from ((*base, alias.name) for alias in node.names)


def file_of(parts: tuple[str, ...], root: Path) -> Path:
    """The file that a path of an import leads to: the module, or the one whose name its last part is."""
    for n in range(len(parts), 0, -1):
        place = root.joinpath(*parts[:n])
        for found in (place.with_suffix(".py"), place / "__init__.py"):
            if found.exists():
                return found
    return root / "__init__.py"


def file(path: Path, root: Path) -> str:
    """A file as a room of its own."""
    return path.relative_to(root).as_posix()


def graph(root: Path, of: Callable[[Path, Path], str] = room) -> Graph:
    """Which rooms of a package import which."""
    found: Graph = {}
    for path in sorted(root.rglob("*.py")):
        home = of(path, root)
        for parts in imports(path, root):
            other = of(file_of(parts, root), root)
            if other != home:
                found.setdefault(home, {}).setdefault(other, f"{path.relative_to(root).as_posix()}: {'.'.join(parts)}")
    return found


def reached(start: str, edges: Graph) -> set[str]:
    """The rooms that a room imports, directly or through others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for other in edges.get(waiting.pop(), {}):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def circles(root: Path, of: Callable[[Path, Path], str] = room) -> list[str]:
    """The imports by which rooms are tied in a circle, those of one circle in one line."""
    edges = graph(root, of)
    below = {name: reached(name, edges) for name in edges}
    rings = {frozenset(b for b in below[a] if a in below.get(b, ())) | {a} for a in edges if a in below[a]}
    return sorted(
        f"{', '.join(sorted(ring))} import each other: "
        + "; ".join(edges[a][b] for a in sorted(ring) for b in sorted(ring & {*edges[a]}))
        for ring in rings
    )


# Names that PyTorch gave an underscore and public code uses: subclasses are asked for by them.
TORCHS = {"_BatchNorm"}


def private_imports(root: Path) -> list[str]:
    """Where a file imports, or reads, a private name of another room: each room says itself what others may use."""
    found = []
    for path in sorted(root.rglob("*.py")):
        modules = set()
        for parts in imports(path, root):
            other = file_of(parts, root)
            if room(other, root) == room(path, root):
                continue
            if parts[-1:] == (other.stem,):
                modules.add(parts[-1])
            elif parts and parts[-1].startswith("_") and not parts[-1].startswith("__") and parts[-1] not in TORCHS:
                found.append(f"{path.relative_to(root).as_posix()}: {'.'.join(parts)}")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            of_module = isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules
            if of_module and node.attr.startswith("_") and not node.attr.startswith("__"):
                found.append(f"{path.relative_to(root).as_posix()}: {ast.unparse(node)}")
    return found


def test_no_room_uses_a_private_name_of_another() -> None:
    assert private_imports(LIBRARY) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from ..b.y import _z", ["a/x.py: b.y._z"]),
        ("from ..b.y import _z as z, public", ["a/x.py: b.y._z"]),
        ("from ..b import y\nz = y._z", ["a/x.py: y._z"]),
        ("from package.b.y import _z", ["a/x.py: b.y._z"]),
        ("def f():\n    from ..b.y import _z", ["a/x.py: b.y._z"]),
        ("from .own import _z\nfrom ..b.y import public\nfrom .. import __version__", []),
        ("from ..b import y\nz = y.public, y.__name__", []),
        ("from ..b.y import _BatchNorm", []),
    ],
)
def test_a_private_name_of_another_room_is_found(tmp_path: Path, source: str, found: list[str]) -> None:
    plant(tmp_path, {"a/x.py": source, "a/own.py": "", "b/y.py": ""})
    assert private_imports(tmp_path / "package") == found


def test_no_two_rooms_import_each_other() -> None:
    assert len(graph(LIBRARY)) > 20
    assert circles(LIBRARY) == []


def test_no_two_files_of_the_table_import_each_other() -> None:
    assert [ring for ring in circles(LIBRARY, file) if "table/" in ring] == []


def test_a_circle_of_files_is_found(tmp_path: Path) -> None:
    plant(tmp_path, {"table/a.py": "from .b import x\n", "table/b.py": "if TYPE_CHECKING:\n    from .a import y\n"})
    (found,) = circles(tmp_path / "package", file)
    assert "table/a.py, table/b.py import each other" in found


def plant(tmp_path: Path, files: dict[str, str]) -> list[str]:
    """The circles of a package that is made of these files."""
    root = tmp_path / "package"
    for name, source in {"__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, "utf-8")
        for folder in path.relative_to(root).parents:
            (root / folder / "__init__.py").touch()
    return circles(root)


def test_what_is_no_circle_is_not_reported(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from . import a, errors\n",
        "errors.py": "import sys\n",
        "a/__init__.py": "from .inner.deep import x\nfrom .base import y\n",
        "a/base.py": "from .. import errors\n",
        "a/inner/deep.py": "from ..base import y\nfrom ...b import one\n",
        "b/one.py": "from .two import x\nimport numpy\n",
        "b/two.py": "from .one import y\nfrom package.errors import z\n",
    }
    assert plant(tmp_path, files) == []


FAULTS = {
    "two folders": ({"a/x.py": "from ..b import y\n", "b/y.py": "from ..a.x import z\n"}, "a, b import each other"),
    "for the type checker": (
        {
            "a/x.py": "from ..b.y import z\n",
            "b/y.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..a.x import X\n",
        },
        "b/y.py: a.x.X",
    ),
    "in a function": ({"a/x.py": "from ..b.y import z\n", "b/y.py": "def f():\n    import package.a.x\n"}, "b/y.py"),
    "by way of a third": (
        {"a/x.py": "from ..b import y\n", "b/y.py": "from ..c import z\n", "c/z.py": "from ..a import x\n"},
        "a, b, c import each other",
    ),
    "a folder and one in it": (
        {"a/x.py": "from .inner.deep import y\n", "a/inner/deep.py": "from ..x import z\n"},
        "a, a/inner import each other",
    ),
    "a file at the top": ({"errors.py": "from .a import x\n", "a/x.py": "from .. import errors\n"}, "a, errors import"),
    "up to what gathers": (
        {"a/__init__.py": "from .inner import y\n", "a/inner/y.py": "from .. import z\n"},
        "a/__init__, a/inner import each other",
    ),
    "an absolute name": ({"a/x.py": "from package.b.y import z\n", "b/y.py": "import package.a.x\n"}, "b/y.py: a.x"),
}


@pytest.mark.parametrize(("files", "said"), FAULTS.values(), ids=FAULTS)
def test_a_planted_circle_is_found(tmp_path: Path, files: dict[str, str], said: str) -> None:
    (found,) = plant(tmp_path, files)
    assert said in found
