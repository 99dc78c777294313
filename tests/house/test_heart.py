"""Holds `autograd/` to what it is: the heart, which one can read in an evening, and which knows nothing above it.

It imports the tensor and the errors, also where only the type checker looks; it names no operation; and it is short.
`problems` takes the folder to check, so that the checker is itself checked, against planted faults.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import pullback
from pullback.autograd.saved import Details
from pullback.table.entry import NAMES, TABLE

LIBRARY = Path(__file__).parents[2] / "src" / "pullback"
LINES = 3600
FILES = 15
BELOW = {"tensor", "errors"}

# Names of operations that are also words of PyTorch's in the heart: an argument, and the two values of one.
WORDS = {"gradient", "all", "any"}

Import = ast.Import | ast.ImportFrom


def problems(root: Path, operations: Collection[str]) -> list[str]:
    """What is wrong with the room `autograd/` of the package at `root`."""
    paths = sorted((root / "autograd").rglob("*"))
    files = [path for path in paths if path.suffix == ".py"]
    total = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    found = [f"{total} lines, of at most {LINES}: what only diagnoses belongs in diagnose/"] * (total > LINES)
    found += [f"{len(files)} files, of at most {FILES}"] * (len(files) > FILES)
    for path in files:
        tree = ast.parse(path.read_text("utf-8"))
        place = path.relative_to(root)
        for node in ast.walk(tree):
            if isinstance(node, Import):
                found += [f"{place}:{node.lineno}: imports {name}" for name in _above(node, place)]
        found += [f"{place}:{line}: names {name!r}" for line, name in _strings(tree) if name in operations]
    return found


def _above(statement: Import, place: Path) -> Iterator[str]:
    """The rooms of the package that a statement imports and the heart may not."""
    if isinstance(statement, ast.Import):
        targets = [alias.name for alias in statement.names]
    else:
        package = ["pullback", *place.parent.parts]
        start = package[: len(package) + 1 - statement.level] if statement.level else []
        module = ".".join([*start, *([statement.module] if statement.module else [])])
        # of `from .. import x`, x is the room
        targets = [f"{module}.{alias.name}" for alias in statement.names] if module == "pullback" else [module]
    for target in targets:
        room = target.split(".")[1] if target.startswith("pullback.") else ""
        if target == "pullback" or (room and room not in BELOW | {"autograd"}):
            yield target


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The strings of a file that are a value of their own; not docstrings, of `__all__`, or of `__slots__`."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__all__", "__slots__"):
            skipped |= {id(part) for part in ast.walk(node)}
        elif isinstance(node, ast.JoinedStr):  # words of a message
            skipped |= {id(part) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def _operations() -> set[str]:
    """The names of all operations: of entries, of functions, and the last part of each."""
    names = {*TABLE, *(f"{home}.{name}" for home, found in NAMES.items() for name in found)}
    return (names | {name.rpartition(".")[2] for name in names}) - WORDS


def test_the_heart_is_nothing_but_the_heart() -> None:
    found = problems(LIBRARY, _operations())
    assert not found, "\n".join(found)


def test_the_readme_says_how_long_it_is_and_how_long_the_rest() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in LIBRARY.rglob("*.py")}
    heart = sum(length for path, length in lengths.items() if path.parent.name == "autograd")
    for name, of_heart, of_rest in (
        ("README.md", f"fewer than {LINES:,} lines", r"some (\d+),000 lines"),
        ("README.zh-CN.md", f"不到 {LINES} 行", r"约 ([\d.]+) 万行"),
    ):
        text = (LIBRARY.parents[1] / name).read_text("utf-8")
        assert of_heart in text
        (said,) = re.findall(of_rest, text)
        unit = 10_000 if name.endswith("zh-CN.md") else 1000
        assert abs(float(said) * unit - sum(lengths.values()) + heart) <= 5000


def test_the_heart_alone_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Details, "of_freed", lambda node: "")
    monkeypatch.setattr(Details, "of_written", lambda node, t, expected: ("", ""))
    x = pullback.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"a second time .* had run\.\n  What to do: Specify retain_graph=True"):
        y.backward()
    z = x.exp()
    w = z * z
    z += 1
    with pytest.raises(
        RuntimeError,
        match=r"inplace operation: a .* version 0 instead\.\n  What to do: compute the new .* `new = y\[i\] / n; y = y",
    ):
        w.sum().backward()


FAULTS = {
    "import of a room above": (
        "from ..diagnose.anomaly import x\n",
        "autograd/a.py:1: imports pullback.diagnose.anomaly",
    ),
    "import by two dots": ("from .. import errors, ops\n", "autograd/a.py:1: imports pullback.ops"),
    "import, absolute": ("import pullback.table.entry\n", "autograd/a.py:1: imports pullback.table.entry"),
    "import of the namespace": ("from pullback import Tensor\n", "autograd/a.py:1: imports pullback.Tensor"),
    "import for the type checker": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..table.entry import Op\n",
        "autograd/a.py:3: imports pullback.table.entry",
    ),
    "an operation's name": ("if name == 'matmul':\n    pass\n", "autograd/a.py:1: names 'matmul'"),
    "too long": ("x = 0\n" * 3601, "3601 lines, of at most 3600"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    source, expected = FAULTS[name]
    (tmp_path / "autograd").mkdir()
    (tmp_path / "autograd" / "a.py").write_text(source, "utf-8")
    (found,) = problems(tmp_path, {"matmul"})
    assert found.startswith(expected)


def test_too_many_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "autograd").mkdir()
    for number in range(16):
        (tmp_path / "autograd" / f"m{number}.py").write_text("", "utf-8")
    assert problems(tmp_path, ()) == ["16 files, of at most 15"]


def test_what_is_allowed_is_not_reported(tmp_path: Path) -> None:
    source = (
        '"""As matmul."""\nimport numpy as np\nfrom .. import errors\nfrom ..tensor.tensor import Tensor\n'
        "from .node import Node\n__all__ = ['matmul']\n"
    )
    (tmp_path / "autograd").mkdir()
    (tmp_path / "autograd" / "a.py").write_text(source, "utf-8")
    assert problems(tmp_path, {"matmul"}) == []
