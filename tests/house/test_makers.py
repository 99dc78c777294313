"""A node is started in one way: `begin` gives it its edges, its hooks and its number.

One fast path writes these lines out; `test_fast_is_general.py` holds it to the general way. Here the syntax trees say
that nobody else does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pullback

LIBRARY = Path(pullback.__file__).parent

# `begin` itself, the leaf's `AccumulateGrad`, which has a fixed place in the order, the fast path, and boundaries,
# which get a place between the graph of a step and what was there before it.
MAKERS = {
    "autograd/node.py:begin",
    "autograd/node.py:__init__",
    "table/calls.py:call",
    "utils/time_steps.py:_cut",
    "compile/steps_alone.py:_cut",
}


def makers(source: str, path: str) -> Iterator[str]:
    """The functions of a file that give an object a place in the order of nodes."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                targets = node.targets if isinstance(node, ast.Assign) else []
                if isinstance(node, ast.AnnAssign | ast.AugAssign):
                    targets = [node.target]
                parts = [part for target in targets for part in ast.walk(target)]
                called = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "setattr"
                if any(isinstance(part, ast.Attribute) and part.attr == "_order" for part in parts) or (
                    called and "'_order'" in ast.unparse(node)
                ):
                    yield f"{path}:{function.name}"


def test_nodes_are_started_in_one_way() -> None:
    files = sorted(LIBRARY.rglob("*.py"))
    found = {m for path in files for m in makers(path.read_text("utf-8"), path.relative_to(LIBRARY).as_posix())}
    assert found - {"table/calls.py:binary"} == MAKERS


@pytest.mark.parametrize(
    "line",
    [
        "node._order = next_order()",
        "node._edges, node._order = edges, next_order()",
        "self._order: int = 3",
        "setattr(node, '_order', 3)",
        "node._order -= 1",
    ],
)
def test_a_planted_maker_is_found(line: str) -> None:
    assert [*makers(f"def f(node):\n    {line}\n", "compile/x.py")] == ["compile/x.py:f"]
    assert not [*makers("def f(node):\n    return node._order, sorted(nodes, key=lambda n: n._order)\n", "a.py")]
