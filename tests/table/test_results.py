"""Signatures and typing stubs say what operations return: one tensor, several, or something else."""

from __future__ import annotations

import ast
import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.compat.paths import PATHS
from pullback.inspect.stubs import stubs
from pullback.ops import TABLE
from pullback.table.entry import Op
from pullback.table.samples import DType
from pullback.tensor.tensor import Tensor, wrap

PUBLIC = {
    name: op for name, op in TABLE.items() if not name.rpartition(".")[2].startswith("_") and op.domain("samples")
}


def results(op: Op) -> list[Any]:
    """What the first samples of an operation come to; those that the operation refuses are left out."""
    found = []
    for sample in op.domain("samples")[:6]:
        for dtype in ("float32", "int64"):
            made = sample.arrays(dtype).replaced(
                lambda leaf: (
                    np.dtype(leaf.name)
                    if isinstance(leaf, DType)
                    else wrap(leaf)
                    if isinstance(leaf, np.ndarray)
                    else leaf
                )
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found.append(op.call(*made.args, **made.kwargs))
                except (NotImplementedError, RuntimeError, TypeError, ValueError, ImportError):
                    continue
    return found


def fits(result: Any, annotation: str) -> bool:
    """Whether a result is what an annotation of a signature says."""
    if annotation == "Any" or " | " in annotation:
        return annotation == "Any" or any(fits(result, part) for part in annotation.split(" | "))
    if annotation.startswith("tuple[") and "..." not in annotation:
        return isinstance(result, tuple) and len(result) == annotation.count(",") + 1
    if annotation.startswith("tuple["):
        return isinstance(result, tuple)
    return isinstance(result, {"Tensor": Tensor, "bool": bool, "int": int, "None": type(None)}[annotation])


def declared() -> dict[str, dict[str, str]]:
    """What each function of a typing stub returns, by the stub's module."""
    found = {}
    for path, text in stubs().items():
        home = ".".join(path.relative_to(Path(pullback.__file__).parent).with_suffix("").parts)
        functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        found[home.removesuffix("__init__").rstrip(".")] = {f.name: ast.unparse(f.returns or f) for f in functions}
    return found


STUBS = declared()


@pytest.mark.parametrize("name", PUBLIC)
def test_an_operation_returns_what_its_signature_and_its_stub_say(name: str) -> None:
    op = PUBLIC[name]
    said = str(inspect.signature(op.call).return_annotation)
    home, _, last = name.rpartition(".")
    stub = STUBS[PATHS.get(home, home)].get(last, "Any")
    for result in results(op):
        assert said == str(inspect.Signature.empty) or said == "None" or fits(result, said)
        assert fits(result, stub)


@pytest.mark.parametrize(
    ("path", "count"), [("linalg.svd", 3), ("geqrf", 2), ("linalg.eigh", 2), ("sort", 2), ("linalg.lstsq", 4)]
)
def test_several_results_are_a_tuple_in_the_signature(path: str, count: int) -> None:
    annotation = str(inspect.signature(TABLE[path].call).return_annotation)
    assert annotation.startswith("tuple[")
    assert annotation.count(",") == count - 1


def test_what_fits_is_told_from_what_does_not() -> None:
    one = pullback.ones(2)
    assert fits(one, "Tensor")
    assert not fits((one, one), "Tensor")
    assert not fits(one, "tuple[Tensor, Tensor]")
    assert not fits((one, one, one), "tuple[Tensor, Tensor]")
    assert fits((one, one), "tuple[Tensor, Tensor]")
    assert fits((), "tuple[Tensor, ...]")
    assert not fits(one, "bool")
