"""What is written from a table is as the table is: typing stubs, the page of operations, that of SciPy's functions."""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.inspect import operations
from pullback.inspect.stubs import stubs

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pullback"
STUBS = stubs()

each_stub = pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(PACKAGE)))


def check_fresh(path: Path, expected: str, command: str) -> None:
    """Fail with the first lines in which a file differs, and with the command that refreshes it."""
    found = path.read_text("utf-8") if path.exists() else ""
    if found != expected:
        change = difflib.unified_diff(found.splitlines(), expected.splitlines(), "on disk", "fresh", n=0, lineterm="")
        shown = "\n".join([*change][:12])
        pytest.fail(f"{path.name} is stale; run: {command}\n{shown}", pytrace=False)


@each_stub
def test_a_stub_is_that_of_the_table(path: Path) -> None:
    check_fresh(path, STUBS[path], "python -m pullback ops --stubs")


def test_no_other_stub_lies_in_the_package() -> None:
    assert set(PACKAGE.rglob("*.pyi")) == set(STUBS)


def test_the_pages_of_operations_are_those_of_the_table() -> None:
    pytest.importorskip("scipy", reason="the dtypes of special functions are those they have with SciPy")
    if not hasattr(np, "matvec"):
        pytest.skip("the pages name functions that NumPy has since 2.2")
    pages = operations.pages(operations.rows())
    for name, page in pages.items():
        check_fresh(ROOT / "docs" / name, page, "python -m pullback ops --pages docs")
    families = {f"operations/{path.name}" for path in (ROOT / "docs" / "operations").iterdir()}
    assert families | {"operations.md"} == set(pages)


def test_every_operation_is_in_one_family() -> None:
    rows = operations.rows(dtypes=False)
    lines = [line for page in operations.pages(rows).values() for line in page.splitlines() if line.startswith("| `")]
    assert len(lines) == len(rows)
    assert {row.family for row in rows} <= {*operations._FAMILIES}


def test_the_page_of_scipys_functions_is_that_of_the_list() -> None:
    scipy = pytest.importorskip("scipy", reason="pullback.scipy needs SciPy")
    if not scipy.__version__.startswith("1.17."):
        pytest.skip("the page is that of SciPy 1.17")
    page = importlib.import_module("pullback.scipy.mirror").as_markdown()
    check_fresh(ROOT / "docs" / "scipy_functions.md", page, "python -m pullback ops --scipy > docs/scipy_functions.md")


def _declared(path: Path) -> list[str]:
    """The names that a stub declares for others: those of a module, or of the class of methods."""
    body = ast.parse(STUBS[path]).body
    if path.name == "methods.pyi":
        (body,) = (s.body for s in body if isinstance(s, ast.ClassDef))
    found: list[str] = []
    for s in body:
        if isinstance(s, ast.ImportFrom):
            found += [alias.asname for alias in s.names if alias.asname]
        elif isinstance(s, ast.FunctionDef):
            a_setter = any(ast.unparse(d) == f"{s.name}.setter" for d in s.decorator_list)  # of the property above it
            if s.name != "__getattr__" and not a_setter:  # __getattr__ speaks of all other names
                found.append(s.name)
        elif isinstance(s, ast.AnnAssign):
            found.append(ast.unparse(s.target))
    return found


@each_stub
def test_a_stub_declares_what_is_there_and_once(path: Path) -> None:
    names = _declared(path)
    assert len(names) == len(set(names))
    *parts, file = path.relative_to(PACKAGE).with_suffix("").parts
    parts += [] if file in ("__init__", "methods") else [file]
    place: Any = pullback.Tensor if file == "methods" else functools.reduce(getattr, parts, pullback)
    assert [name for name in names if not hasattr(place, name)] == []


def test_the_stub_of_methods_leaves_out_what_tensor_defines_itself() -> None:
    tree = ast.parse((PACKAGE / "tensor" / "tensor.py").read_text("utf-8"))
    (cls,) = (s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == "Tensor")
    own = {s.name for s in cls.body if isinstance(s, ast.FunctionDef)}
    declared = _declared(PACKAGE / "tensor" / "methods.pyi")
    assert {"sin", "sum", "add_", "T"} <= set(declared)
    assert {"detach", "requires_grad_"} <= own
    assert own.isdisjoint(declared)


def test_a_stale_file_is_reported_with_the_command_that_refreshes_it(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("one\ntwo\n", "utf-8")
    check_fresh(path, "one\ntwo\n", "make it")
    with pytest.raises(pytest.fail.Exception, match=r"page.md is stale; run: make it\n(.|\n)*-two\n\+2$"):
        check_fresh(path, "one\n2\n", "make it")
    with pytest.raises(pytest.fail.Exception, match=r"page.md is stale"):
        check_fresh(path, "one\ntwo", "make it")
    with pytest.raises(pytest.fail.Exception, match=r"other.md is stale; run: make it\n(.|\n)*\+one$"):
        check_fresh(tmp_path / "other.md", "one\n", "make it")
