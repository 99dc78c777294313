"""What stands in the rooms of operations: each file below `ops/` publishes something, and no file of `table/` does.

Where a function or a rule comes from is read off its code object, so a decorator in between changes nothing.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback.ops import NAMES, TABLE
from pullback.ops.sparse.coo import SparseTensor
from pullback.tensor.tensor import NUMPY

PACKAGE = Path(pullback.__file__).parent


def files_behind(values: Iterable[Any]) -> set[str]:
    """The files in which functions, classes, and what they wrap, are written."""
    found: set[str] = set()
    stack, seen = list(values), set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if (code := getattr(value, "__code__", None)) is not None:
            found.add(code.co_filename)
        elif isinstance(value, type) and (module := sys.modules.get(value.__module__)) is not None:
            found.add(getattr(module, "__file__", None) or "")
        stack += [getattr(value, name) for name in ("__wrapped__", "__func__", "fget") if hasattr(value, name)]
    return found


def entered() -> Iterator[Any]:
    """The computation and the rules of each entry of the table."""
    for op in TABLE.values():
        yield op.forward
        yield from op.rules.values()


def published() -> Iterator[Any]:
    """What people call: entries, functions of `pullback` and its modules, methods, and rules of NumPy's functions."""
    yield from entered()
    yield from NUMPY.values()
    for names in NAMES.values():
        yield from names.values()
    for place in (pullback, pullback.sparse, pullback.nn.functional):
        yield from (getattr(place, name) for name in dir(place))
    for kind in (pullback.Tensor, SparseTensor):
        yield from (inspect.getattr_static(kind, name) for name in dir(kind))


def _files(room: str) -> list[str]:
    return sorted(str(path) for path in (PACKAGE / room).rglob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize("path", [pytest.param(path, id=Path(path).stem) for path in _files("ops")])
def test_each_file_of_operations_publishes_something(path: str) -> None:
    assert path in files_behind(published()), f"{path} publishes nothing: arithmetic on arrays belongs in kernels/"


def test_no_file_of_the_table_defines_an_operation() -> None:
    assert set(_files("table")) & files_behind(entered()) == set()


def test_kernels_enter_nothing() -> None:
    assert set(_files("kernels")) & files_behind(entered()) == set()


@pytest.mark.parametrize("path", _files("kernels"))
def test_kernels_know_arrays_alone(path: str) -> None:
    tree = ast.parse(Path(path).read_text("utf-8"))
    outside = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level > 1}
    assert outside <= {None, "tensor.adding", "tensor.arrays", "tensor.protocol"}  # None: `from .. import errors`


def test_where_a_function_comes_from_is_found_behind_what_wraps_it() -> None:
    import functools

    def inner() -> None:
        """Do nothing."""

    assert files_behind([functools.wraps(inner)(lambda: None), staticmethod(inner), type("T", (), {})]) == {__file__}
    assert files_behind([pullback.sin]) & set(_files("table"))  # its wrapper is the table's, its entry is not
    assert files_behind([TABLE["cumsum"].forward]) == {str(PACKAGE / "ops" / "reduce" / "scans.py")}
