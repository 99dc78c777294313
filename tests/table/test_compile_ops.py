"""Every operation of the table, compiled: on the samples its entry carries, results and gradients are those of eager.

Elementwise operations on all samples and dtypes, the others on their first samples; and all elementwise functions at
once in C, where there is a compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.compile.backends import c
from pullback.interpreters.traced import TraceError
from pullback.ops import TABLE
from pullback.table.samples import Sample
from tests.oracle import Run, difference, difference_of_gradients, resolve, tensors_of

OPERATIONS = {name: op for name, op in TABLE.items() if not name.rpartition(".")[2].startswith("_")}
ELEMENTWISE = [name for name, op in OPERATIONS.items() if op.elementwise and op.domain("samples")]
OTHERS = [name for name, op in OPERATIONS.items() if not op.elementwise and op.domain("samples")]
DTYPES = ("float32", "float64", "int64", "bool", "complex128")

# Their results are as long as values say, or a size is given as a tensor.
REFUSED = {
    *("where", "bincount", "masked_select", "nonzero", "argwhere", "index_put", "split", "tensor_split", "select"),
    *("narrow", "nn.functional.ctc_loss", "unique", "unique_consecutive"),
}


def compiled(fn: Callable[..., Any], backend: str = "numpy") -> Callable[..., Any]:
    """The function, compiled."""
    return pullback.compile(lambda *args, **kwargs: fn(*args, **kwargs), backend=backend)


def problem(name: str, sample: Sample, dtype: str) -> str:
    """What differs between compiled and eager."""
    fn = resolve(pullback, name)
    made = sample.arrays(dtype)
    eager, ours = Run(pullback, fn, made), Run(pullback, compiled(fn), made)
    if isinstance(ours.error, TraceError) and not isinstance(eager.error, TraceError):
        return "" if name in REFUSED else str(ours.error)
    found = difference(ours.result, eager.result, 4)
    if found or eager.error:
        return found
    wanted = [[getattr(t, "requires_grad", None) for t in tensors_of(run.result)] for run in (ours, eager)]
    if wanted[0] != wanted[1]:
        return f"requires_grad {wanted[0]}, expected {wanted[1]}"
    return difference_of_gradients(ours.gradients(), eager.gradients(), 10)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_elementwise_operation(name: str) -> None:
    problems = [
        f"{name}{sample} of {dtype}: {found}"
        for sample in OPERATIONS[name].domain("samples")
        for dtype in DTYPES
        if (found := problem(name, sample, dtype))
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", OTHERS)
def test_an_operation_of_another_kind(name: str) -> None:
    problems = [
        f"{name}{sample}: {found}"
        for sample in OPERATIONS[name].domain("samples")[:4]
        if (found := problem(name, sample, "float64"))
    ]
    assert not problems, "\n".join(problems)


EDGES = {"histogram", "histogramdd"}
"""Their edges are read for the counts; a write to them afterwards is refused."""


def _repeated(a: Any) -> Any:
    return np.broadcast_to(a[:1], a.shape) if np.ndim(a) and len(a) else a


def _problem_of_layout(name: str, sample: Sample, layout: Callable[[Any], Any]) -> str:
    """What differs where each result is set to zero through its `reshape(-1)`, which is a view of some and a copy of
    others: that depends on how it lies in memory."""

    def through_a_reshape(*args: Any, **kwargs: Any) -> Any:
        found = tensors_of(resolve(pullback, name)(*args, **kwargs))
        given = (*args, *kwargs.values())
        dense = [t for t in found if getattr(t, "layout", None) is pullback.strided and not any(t is a for a in given)]
        for t in dense:
            t.reshape(-1).zero_()
        return dense

    made = sample.arrays("float32").replaced(layout)
    with pullback.no_grad():
        eager, ours = (Run(pullback, fn, made) for fn in (through_a_reshape, compiled(through_a_reshape)))
    if eager.error or (isinstance(ours.error, TraceError) and name in REFUSED | EDGES):
        return ""
    return difference(ours.result, eager.result, 4)


@pytest.mark.parametrize("layout", [np.asfortranarray, _repeated], ids=["columns", "repeated"])
@pytest.mark.parametrize("name", [*ELEMENTWISE, *OTHERS])
def test_a_result_lies_in_memory_as_that_of_eager_mode(name: str, layout: Callable[[Any], Any]) -> None:
    found = (
        _problem_of_layout(name, sample, lambda a: layout(a) if np.ndim(a) > 1 else a)
        for sample in OPERATIONS[name].domain("samples")[:4]
    )
    problems = [problem for problem in found if problem]
    assert not problems, "\n".join(problems)


def test_the_comparison_finds_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = OPERATIONS["sin"].domain("samples")[0]
    assert not problem("sin", sample, "float64")
    monkeypatch.setitem(OPERATIONS["sin"].rules, "input", lambda g, input: g * np.sin(input))
    monkeypatch.setattr(OPERATIONS["sin"], "plans", {})
    first = Run(pullback, compiled(pullback.sin), sample.arrays("float64")).gradients()
    monkeypatch.undo()
    OPERATIONS["sin"].plans.clear()
    assert difference_of_gradients(first, Run(pullback, pullback.sin, sample.arrays("float64")).gradients(), 10)


def _arity(name: str) -> int:
    return len(OPERATIONS[name].params) - len(OPERATIONS[name].defaults)


@pytest.mark.skipif(not c.available(), reason="no C compiler")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2])
def test_all_elementwise_functions_in_c(count: int, dtype: str) -> None:
    """One program of all of them: its loops, compiled by C, agree with NumPy's to a few units in the last place."""
    values = np.linspace(0.21, 0.93, 90).astype(dtype).reshape(9, 10)
    arrays = [values, values[::-1].copy()][:count]
    names, results = [], []
    for name in ELEMENTWISE:
        if _arity(name) == count:
            leaves = [pullback.from_numpy(a).requires_grad_() for a in arrays]
            try:
                result = resolve(pullback, name)(*leaves)
                if result.requires_grad:
                    result.sum().backward()
            except (NotImplementedError, RuntimeError, TypeError):
                continue  # of integers, of complex numbers, or not to be differentiated
            results.append(result.detach())
            names.append(name)
    assert len(names) > 20

    def everything(*inputs: Any) -> Any:
        return tuple(resolve(pullback, name)(*inputs) for name in names)

    inputs = [pullback.from_numpy(a).requires_grad_() for a in arrays]
    found = pullback.compile(everything, backend="c")(*inputs)
    units = 16 * np.finfo(dtype).eps
    problems = [
        name
        for name, ours, expected in zip(names, found, results, strict=True)
        if not np.allclose(ours.detach().numpy(), expected.numpy(), rtol=units, atol=units, equal_nan=True)
    ]
    assert not problems
    floats = [i for i, t in enumerate(found) if t.requires_grad]
    sums = [sum(out[i].sum() for i in floats) for out in (found, everything(*inputs))]
    ours, expected = (pullback.autograd.grad(total, inputs) for total in sums)
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e3 * units)
