"""The class Tensor gets attributes by one function, `tensor.extend`, and that is called in three places alone."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import pullback

LIBRARY = Path(pullback.__file__).parent

# What a Tensor is by itself, what the heart adds, and what operations add.
LISTS = {"tensor/__init__.py", "autograd/api.py", "table/tensor_methods.py"}


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
