"""torch's type promotion: tensors, 0-d tensors and Python numbers of every dtype, for each operation that promotes.

The rule is compared with `torch.result_type`, and each operation with torch's, in all pairs.
"""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.tensor import dtypes as _dtypes
from tests.oracle import call, cases, difference, name_of

DTYPES = [d.name for d in _dtypes.ALL]
# bfloat16 is tested where the package is installed that brings it
WITH_BFLOAT16 = [*DTYPES, "bfloat16"] if importlib.util.find_spec("ml_dtypes") else DTYPES
# What an operand may be: a tensor with dimensions or without, of each dtype, or a Python number.
NUMBERS = [True, 3, 2.5, 1.5 - 1j]
OPERANDS = [*((name, shape) for name in WITH_BFLOAT16 for shape in ((2,), ())), *NUMBERS]

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


def pairs(dtypes: list[str] = DTYPES) -> list[tuple[Operand, Operand]]:
    """All pairs of operands in which one at least is a tensor."""
    operands = [o for o in OPERANDS if not isinstance(o, tuple) or o[0] in dtypes]
    return [(a, b) for a, b in itertools.product(operands, operands) if isinstance(a, tuple) or isinstance(b, tuple)]


def left_out(theirs: Any) -> bool:
    """Whether torch has no kernel, or the result is of the complex32 that NumPy lacks."""
    if isinstance(theirs, Exception):
        return "not implemented for" in str(theirs)
    return str(getattr(theirs, "dtype", theirs)) == "torch.complex32"


@pytest.mark.torch
def test_the_rule_is_that_of_torch(torch: ModuleType) -> None:
    wrong = []
    for a, b in pairs(WITH_BFLOAT16):
        theirs = call(torch, torch.result_type, make(torch, a), make(torch, b))
        ours = call(
            pullback, _dtypes.result_type, [getattr(v, "_data", v) for v in (make(pullback, a), make(pullback, b))]
        )
        if not left_out(theirs) and (found := _named(ours)) != _named(theirs):
            wrong.append(f"{a}, {b}: {found}, expected {_named(theirs)}")
    assert not wrong


def _named(outcome: Any) -> str:
    """A dtype of either library, or of NumPy, or an exception, by its name."""
    if isinstance(outcome, Exception):
        return type(outcome).__name__
    return outcome.name if isinstance(outcome, np.dtype) else name_of(outcome)


@pytest.mark.torch
def test_promote_types(torch: ModuleType) -> None:
    wrong = []
    for a, b in itertools.product(WITH_BFLOAT16, WITH_BFLOAT16):
        ours, theirs = (call(lib, lib.promote_types, getattr(lib, a), getattr(lib, b)) for lib in (pullback, torch))
        if _named(ours) != _named(theirs):
            wrong.append(f"{a}, {b}: {ours}, expected {theirs}")
        if pullback.can_cast(getattr(pullback, a), getattr(pullback, b)) != torch.can_cast(
            getattr(torch, a), getattr(torch, b)
        ):
            wrong.append(f"can_cast({a}, {b})")
    assert not wrong


@pytest.mark.torch
def test_result_type(torch: ModuleType) -> None:
    wrong = []
    for a, b in itertools.product(OPERANDS, OPERANDS):
        ours, theirs = (call(lib, lib.result_type, make(lib, a), make(lib, b)) for lib in (pullback, torch))
        if not left_out(theirs) and _named(ours) != _named(theirs):
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
        found = "" if left_out(theirs) else difference(ours, theirs)
        wrong += [f"{a}, {b}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["cat", "stack"])
def test_joining_promotes_as_torch_does(torch: ModuleType, name: str) -> None:
    shapes = ((2,),) if name == "cat" else ((2,), ())
    wrong = []
    for a, b in itertools.product(itertools.product(DTYPES, shapes), repeat=2):
        ours, theirs = (call(lib, getattr(lib, name), [make(lib, a), make(lib, b)]) for lib in (pullback, torch))
        found = "" if left_out(theirs) else difference(ours, theirs)
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
        found = "" if left_out(results[1]) else difference(*results)
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


# bfloat16, which is another package's --------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    cases("""
torch.tensor([1.1, -2.2, 3e38, 1e-40]).to(B) | torch.tensor([1.1, 2, 3], dtype=B) | torch.tensor([1, 300], dtype=B)
torch.ones(2, dtype=B).double() | torch.tensor([1.5, -2.5], dtype=B).long()
torch.tensor([0.1], dtype=torch.float64).to(B) | torch.tensor([1.1], dtype=B).to(torch.complex64)
torch.arange(300, dtype=B) | torch.linspace(0, 1, 5, dtype=B) | torch.full((2,), 1.1, dtype=B)
torch.full((2,), 1e39, dtype=B) | torch.eye(2, dtype=B) | torch.zeros(2, 3, dtype=B).T
torch.zeros_like(torch.ones(2, dtype=B)) | torch.ones(2).bfloat16() | torch.ones(2, dtype=B).type()
torch.ones(2).type('torch.BFloat16Tensor') | torch.frombuffer(bytearray(b'abcd'), dtype=B)
torch.tensor(1.1, dtype=B).item() | torch.tensor([1.1, 2], dtype=B).tolist() | torch.ones(3, dtype=B)[1:]
torch.tensor([1.1, 1j], dtype=torch.complex64).real.to(B) | torch.bernoulli(torch.ones(2, dtype=B))
torch.ones(2, dtype=B).nbytes
"""),
)
def test_bfloat16(torch: ModuleType, code: str) -> None:
    pytest.importorskip("ml_dtypes")
    found = []
    for lib in (pullback, torch):
        value = call(lib, eval, code, {"torch": lib, "B": lib.bfloat16})
        if isinstance(value, lib.Tensor):
            value = name_of(value.dtype), value.tolist()
        found.append(type(value) if isinstance(value, Exception) else str(value).replace("pullback.", "torch."))
    assert found[0] == found[1]


def test_arrays_of_bfloat16_are_tensors() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.ones(2, ml_dtypes.bfloat16)
    t = pullback.from_numpy(array)
    assert t.dtype is pullback.bfloat16
    assert t.numpy() is array
    assert pullback.zeros(1, dtype=array.dtype).dtype is pullback.zeros(1, dtype="bfloat16").dtype is pullback.bfloat16
    for draw in (pullback.rand, pullback.randn):
        x = draw(1000, dtype=pullback.bfloat16)
        assert x.dtype is pullback.bfloat16
    assert pullback.rand(1000, dtype=pullback.bfloat16).float().max().item() < 1


def test_without_its_package_bfloat16_is_only_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.setattr(pullback.bfloat16, "_numpy", None)
    assert repr(pullback.bfloat16) == "pullback.bfloat16"
    assert pullback.finfo(pullback.float16).bits == pullback.bfloat16.itemsize * 8
    for use in (lambda: pullback.zeros(2, dtype=pullback.bfloat16), lambda: pullback.ones(2).bfloat16()):
        with pytest.raises(ImportError, match=r"not installed.\n.*pip install 'pullback\[bfloat16\]'"):
            use()


def test_importing_brings_no_package_that_is_not_used() -> None:
    code = "import pullback, sys; print(sorted({'ml_dtypes', 'scipy', 'numpy.random'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
