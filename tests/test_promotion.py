"""torch's type promotion: tensors, 0-d tensors and Python numbers of every dtype, for each operation that promotes.

The rule is compared with `torch.result_type`, and each operation with torch's, in all pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from oracle import call, difference, name_of

import pullback
from pullback import _dtypes

DTYPES = [d.name for d in _dtypes.ALL]
# What an operand may be: a tensor with dimensions or without, of each dtype, or a Python number.
OPERANDS = [*((name, shape) for name in DTYPES for shape in ((2,), ())), True, 3, 2.5, 1.5 - 1j]

Operand = Any


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def make(lib: ModuleType, operand: Operand) -> Any:
    """An operand: ones of a dtype and shape, or the number itself."""
    if not isinstance(operand, tuple):
        return operand
    return lib.ones(operand[1], dtype=getattr(lib, operand[0]))


def pairs() -> list[tuple[Operand, Operand]]:
    """All pairs of operands in which one at least is a tensor."""
    return [(a, b) for a, b in itertools.product(OPERANDS, OPERANDS) if isinstance(a, tuple) or isinstance(b, tuple)]


UNSIGNED = {"uint16", "uint32", "uint64"}


def left_out(theirs: Any, *operands: Operand) -> bool:
    """Whether torch has no kernel, or no rule for its newer unsigned types, or the complex32 that NumPy lacks."""
    if isinstance(theirs, Exception):
        unsigned = any(isinstance(o, tuple) and o[0] in UNSIGNED for o in operands)
        return unsigned or "not implemented for" in str(theirs)
    return str(getattr(theirs, "dtype", theirs)) == "torch.complex32"


@pytest.mark.torch
def test_the_rule_is_that_of_torch(torch: ModuleType) -> None:
    wrong = []
    for a, b in pairs():
        theirs = call(torch, torch.result_type, make(torch, a), make(torch, b))
        ours = call(
            pullback, _dtypes.result_type, [getattr(v, "_data", v) for v in (make(pullback, a), make(pullback, b))]
        )
        if left_out(theirs, a, b):
            continue
        found = type(ours).__name__ if isinstance(ours, Exception) else ours.name
        expected = type(theirs).__name__ if isinstance(theirs, Exception) else name_of(theirs)
        if found != expected:
            wrong.append(f"{a}, {b}: {found}, expected {expected}")
    assert not wrong


@pytest.mark.torch
def test_promote_types(torch: ModuleType) -> None:
    wrong = []
    for a, b in itertools.product(DTYPES, DTYPES):
        ours = call(pullback, pullback.promote_types, getattr(pullback, a), getattr(pullback, b))
        theirs = call(torch, torch.promote_types, getattr(torch, a), getattr(torch, b))
        if not left_out(theirs, (a, ()), (b, ())) and str(ours).split(".")[-1] != str(theirs).split(".")[-1]:
            wrong.append(f"{a}, {b}: {ours}, expected {theirs}")
    assert not wrong


def _where(lib: ModuleType, a: Any, b: Any) -> Any:
    return lib.where(lib.tensor([True, False]), a, b)


OPERATIONS: dict[str, Callable[[ModuleType, Any, Any], Any]] = {
    "add": lambda lib, a, b: a + b,
    "sub": lambda lib, a, b: a - b,
    "mul": lambda lib, a, b: a * b,
    "div": lambda lib, a, b: a / b,
    "eq": lambda lib, a, b: a == b,
    "lt": lambda lib, a, b: a < b,
    "pow": lambda lib, a, b: a**b,
    "where": _where,
}
# where a bool takes part in these torch has no kernel, and we have a result
NO_BOOLS = {"sub", "pow"}


@pytest.mark.torch
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_promote_as_torch_does(torch: ModuleType, name: str) -> None:
    wrong = []
    for a, b in pairs():
        if name in NO_BOOLS and any(v is True or (isinstance(v, tuple) and v[0] == "bool") for v in (a, b)):
            continue
        ours, theirs = (call(lib, OPERATIONS[name], lib, make(lib, a), make(lib, b)) for lib in (pullback, torch))
        found = "" if left_out(theirs, a, b) else difference(ours, theirs)
        wrong += [f"{a}, {b}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["cat", "stack"])
def test_joining_promotes_as_torch_does(torch: ModuleType, name: str) -> None:
    shapes = ((2,),) if name == "cat" else ((2,), ())
    wrong = []
    for a, b in itertools.product(itertools.product(DTYPES, shapes), repeat=2):
        ours, theirs = (call(lib, getattr(lib, name), [make(lib, a), make(lib, b)]) for lib in (pullback, torch))
        found = "" if left_out(theirs, a, b) else difference(ours, theirs)
        wrong += [f"{a}, {b}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["add_", "mul_", "div_", "sub_"])
def test_a_result_must_fit_what_is_written_in_place(torch: ModuleType, name: str) -> None:
    wrong = []
    for a, b in pairs():
        if not isinstance(a, tuple) or "bool" in str(a) or b is True or "bool" in str(b):
            continue
        results = []
        for lib in (pullback, torch):
            t = make(lib, a)
            results.append(call(lib, getattr(t, name), make(lib, b)))
        found = "" if left_out(results[1], a, b) else difference(*results)
        wrong += [f"{a}, {b}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.torch
@pytest.mark.parametrize("default", ["float32", "float64", "float16"])
def test_numbers_take_the_default_dtype(torch: ModuleType, default: str) -> None:
    expressions = [
        "i * 2.5",
        "i / 2",
        "i + 1j",
        "f + 1j",
        "i.sin()",
        "torch.tensor(2.5)",
        "torch.tensor(1j)",
        "torch.full((1,), 2.5)",
        "i.mean(dtype=torch.float64)",
    ]
    results: dict[str, list[Any]] = {e: [] for e in expressions}
    for lib in (pullback, torch):
        before = lib.get_default_dtype()
        lib.set_default_dtype(getattr(lib, default))
        try:
            names = {"torch": lib, "i": lib.tensor([1, 2]), "f": lib.tensor([1.5])}
            for e in expressions:
                results[e].append(call(lib, eval, e, names))
        finally:
            lib.set_default_dtype(before)
    wrong = [(e, difference(*pair)) for e, pair in results.items() if not left_out(pair[1])]
    assert not [(e, found) for e, found in wrong if found]


@pytest.mark.torch
def test_gradients_come_back_in_the_dtype_of_the_leaf(torch: ModuleType) -> None:
    floats = ["float32", "float64", "complex64", "complex128"]
    wrong = []
    for a, b, shape in itertools.product(floats, floats, [(2,), ()]):
        results = []
        for lib in (pullback, torch):
            x, y = lib.ones(2, dtype=getattr(lib, a)), lib.ones(shape, dtype=getattr(lib, b))
            x, y = x.requires_grad_(), y.requires_grad_()
            out = x * y
            results.append((out, *lib.autograd.grad(out, [x, y], lib.ones_like(out))))
        found = difference(*results)
        wrong += [f"{a}, {b}{list(shape)}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


def test_numpy_scalars_count_as_numbers() -> None:
    x = pullback.ones(2)
    assert (x * np.float64(2)).dtype is pullback.float32
    assert (np.float64(2) * x).dtype is pullback.float32
    assert (pullback.ones(2, dtype=pullback.int64) * np.float32(2)).dtype is pullback.float32
    assert (x * np.ones(2)).dtype is pullback.float64  # an array is not a number
    assert (x * np.int8(2)).dtype is pullback.float32
