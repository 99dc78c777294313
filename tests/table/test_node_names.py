"""The names of nodes: for every operation of the table, its results' nodes have torch's names.

`docs/node_names.md` lists the operations whose nodes have other names, for some arguments at least; the list is
read from there, and each operation on it has to differ.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pullback
import pullback.nn.functional
from pullback.ops import TABLE
from pullback.table.samples import Sample
from tests.oracle import converted, tensors_of

pytestmark = pytest.mark.torch

DOCUMENT = (Path(__file__).parents[2] / "docs" / "node_names.md").read_text("utf-8")
LISTED = DOCUMENT.split("## Operations whose nodes have other names")[1].split("\n## ")[0]
DIFFERENT = sorted(re.findall(r"`([\w.]+)`", LISTED))


def function(lib: ModuleType, name: str) -> Any:
    """The function of that name, or the method of a Tensor."""
    path, _, last = name.rpartition(".")
    for home in [*path.split("."), None] if path else [None]:
        lib = lib if home is None else getattr(lib, home)
    return getattr(lib, last, None) or getattr(lib.Tensor, last)


def names_of(lib: ModuleType, name: str, made: Sample) -> list[str] | None:
    """The names of the nodes of the results of a call, "" where there is none; None if it fails, or has no leaf."""
    sample, leaves = converted(lib, made, requires_grad=True)
    if not any(t.requires_grad for t in leaves):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = function(lib, name)(*sample.args, **sample.kwargs)
        except Exception:
            return None
    return [
        t.grad_fn.name().rpartition("::")[2] if t.grad_fn else "" for t in tensors_of(found) if hasattr(t, "grad_fn")
    ]


def pairs(torch: ModuleType, name: str) -> Iterator[tuple[list[str], list[str]]]:
    """Our names and torch's, for each sample of an operation that torch can differentiate."""
    for sample in TABLE[name].domain("samples"):
        made = sample.arrays("float64")
        theirs = names_of(torch, name, made)
        ours = names_of(pullback, name, made) if theirs and "NotImplemented" not in theirs else None
        if theirs and ours and any(theirs):
            yield ours, theirs


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def differing(torch: ModuleType) -> dict[str, str]:
    """The operations whose nodes have other names than torch's, each with the first that differ."""
    public = [name for name in TABLE if not name.rpartition(".")[2].startswith("_")]
    first = {name: next(((a, b) for a, b in pairs(torch, name) if a != b), None) for name in public}
    return {name: f"{found[0]}, in torch {found[1]}" for name, found in first.items() if found}


def test_nodes_have_torchs_names(differing: dict[str, str]) -> None:
    unlisted = {name: found for name, found in differing.items() if name not in DIFFERENT}
    assert not unlisted, "give the entry a node=, or list it in docs/node_names.md"


def test_no_operation_is_listed_whose_nodes_have_torchs_names(differing: dict[str, str]) -> None:
    assert sorted(set(DIFFERENT) - set(differing)) == []
    assert sorted(set(DIFFERENT)) == DIFFERENT


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x @ x, "MmBackward0"),
        (lambda x: x @ x[0], "MvBackward0"),
        (lambda x: x[0] @ x[1], "DotBackward0"),
        (lambda x: x.t(), "TBackward0"),
        (lambda x: x.max(), "MaxBackward1"),
        (lambda x: x.masked_fill(x > 0, 0.0), "MaskedFillBackward0"),
        (lambda x: x.split([1, 1])[1], "SplitWithSizesBackward0"),
        (lambda x: x.prod(0), "ProdBackward1"),
    ],
)
def test_a_name_stays_when_the_node_has_run(call: Any, name: str) -> None:
    y = call(pullback.ones(2, 2, requires_grad=True))
    node = y.grad_fn
    assert node.name() == name
    y.sum().backward()
    assert node.name() == name
