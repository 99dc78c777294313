"""The extras of pyproject.toml: each names what the library imports, and what it imports beyond NumPy is in one."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# For those who work on the library or try it: what these bring need not be imported by it.
OF_DEVELOPMENT = {"test", "dev", "docs", "bench", "demo"}

# What a distribution is called where it is imported.
MODULES = {"scikit-learn": "sklearn", "cupy-cuda12x": "cupy", "cupy-cuda13x": "cupy"}

# What others load: the MPI library of mpi4py.
OF_OTHERS = {"mpich"}

Extras = dict[str, list[str]]


def extras() -> Extras:
    """The extras with their requirements."""
    found: Extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return found


def imported(folder: Path) -> set[str]:
    """The packages that the files of a folder import, but for Python's own, NumPy and those of the folder itself."""
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").partition(".")[0])
    return found - {*sys.stdlib_module_names, "numpy", "pullback"}


def modules(name: str, known: Extras) -> set[str]:
    """What an extra brings, as it is imported; an extra may stand for another."""
    found: set[str] = set()
    for requirement in known[name]:
        inner = re.fullmatch(r"pullback\[(\w+)\]", requirement)
        package = re.split(r"[^\w-]", requirement)[0]
        found |= modules(inner[1], known) if inner else {MODULES.get(package, package)}
    return found


def problems(known: Extras, used: set[str]) -> Iterator[str]:
    """Extras that bring what nothing imports, and imports that no extra brings."""
    for name in known.keys() - OF_DEVELOPMENT:
        yield from (f"extra {name}: nothing imports {package}" for package in modules(name, known) - used - OF_OTHERS)
    brought = set().union(*(modules(name, known) for name in known))
    yield from (f"no extra brings {package}, which is imported" for package in used - brought)


def test_every_extra_is_imported_and_every_import_has_an_extra() -> None:
    assert sorted(problems(extras(), imported(ROOT / "src"))) == []


def test_the_older_names_stand_for_scipy() -> None:
    assert all(modules(name, extras()) == {"scipy"} for name in ("scipy", "sparse", "special"))


def test_what_the_library_tells_to_install_is_an_extra() -> None:
    said = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"pullback\[(\w+)\]", path.read_text("utf-8"))
    }
    assert said <= extras().keys()
    assert said >= {"bfloat16", "scipy"}
    assert not said & {"sparse", "special"}  # older names


@pytest.mark.parametrize(
    ("known", "used", "said"),
    [
        ({"gpu": ["cupy-cuda12x"], "a": ["scipy"]}, {"scipy"}, ["extra gpu: nothing imports cupy"]),
        ({"a": ["scipy>=1"]}, {"scipy", "rich"}, ["no extra brings rich, which is imported"]),
        ({"a": ["scipy"], "b": ["pullback[a]"]}, set(), ["extra a: nothing imports scipy", "extra b: nothing imports"]),
        ({"dev": ["ruff"], "demo": ["scikit-learn"]}, {"sklearn"}, []),
    ],
)
def test_a_planted_fault_is_found(known: Extras, used: set[str], said: list[str]) -> None:
    found = sorted(problems(known, used))
    assert len(found) == len(said)
    assert all(one.startswith(start) for one, start in zip(found, said, strict=True))


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import numpy.linalg, os\ndef f():\n    from scipy.sparse import x\n", "utf-8")
    (tmp_path / "b.py").write_text("from . import c\nimport rich.console as r\nfrom pullback import y\n", "utf-8")
    assert imported(tmp_path) == {"scipy", "rich"}
