"""Patterns: what an array knows of the inputs of each element, through NumPy's functions and the table's operations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.interpreters.pattern_rules import RULES
from pullback.interpreters.patterns import Pattern, Run
from pullback.ops.make.generators import manual_seed
from pullback.table.op import Op
from pullback.table.samples import Sample
from pullback.tensor.nested import leaves
from pullback.tensor.tensor import Tensor, wrap
from pullback.testing.payloads.carrying import _of_dtype, entries

pytest.importorskip("scipy")


def inputs(*shape: int) -> Pattern:
    """A pattern of as many inputs, each one an element."""
    run = Run(int(np.prod(shape)), RULES)
    return run.inputs(np.random.default_rng(0).normal(size=shape))


def sets(p: Any) -> list[set[int]]:
    """The inputs of each element."""
    rows = p.rows
    return [set(rows.indices[a:b].tolist()) for a, b in zip(rows.indptr, rows.indptr[1:], strict=False)]


SPARSE = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])

CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], list[set[int]]]] = {
    "add": (lambda x: x + x[::-1], (3,), [{0, 2}, {1}, {0, 2}]),
    "times zero": (lambda x: x * np.array([1.0, 0.0, 2.0]), (3,), [{0}, set(), {2}]),
    "broadcast": (lambda x: x + np.ones((2, 1)), (2,), [{0}, {1}, {0}, {1}]),
    "where": (lambda x: np.where(np.array([True, False]), x, 2.0), (2,), [{0}, set()]),
    "where, of a condition that varies": (lambda x: np.where(x > 0, x, x[::-1]), (2,), [{0, 1}, {0, 1}]),
    "concatenate": (lambda x: np.concatenate([x, np.ones(1), x[:1]]), (2,), [{0}, {1}, set(), {0}]),
    "sum": (lambda x: np.sum(x, axis=0), (2, 2), [{0, 2}, {1, 3}]),
    "cumsum": (lambda x: np.cumsum(x, axis=1), (1, 3), [{0}, {0, 1}, {0, 1, 2}]),
    "sort": (lambda x: np.sort(x, axis=1), (2, 2), [{0, 1}] * 2 + [{2, 3}] * 2),
    "fft": (lambda x: np.fft.irfft(x, axis=1), (2, 2), [{0, 1}] * 2 + [{2, 3}] * 2),
    "matmul": (lambda x: SPARSE @ x, (3,), [{0, 2}, set()]),
    "matmul, from the left": (lambda x: np.matmul(x, SPARSE), (2,), [{0}, set(), {0}]),
    "matmul of a batch": (lambda x: np.matmul(np.ones((2, 1, 2)), x), (2, 2, 1), [{0, 1}, {2, 3}]),
    "dot": (lambda x: np.dot(SPARSE, x), (3, 1), [{0, 2}, set()]),
    "tensordot": (lambda x: np.tensordot(SPARSE, x, 1), (3,), [{0, 2}, set()]),
    "einsum": (lambda x: np.einsum("ij,j->i", SPARSE, x), (3,), [{0, 2}, set()]),
    "a trace": (lambda x: np.einsum("ii->", x), (2, 2), [{0, 3}]),
    "outer": (lambda x: np.outer(x, np.array([0.0, 1.0])), (2,), [set(), {0}, set(), {1}]),
    "solve": (lambda x: np.linalg.solve(np.eye(2)[None].repeat(2, 0), x), (2, 2, 1), [{0, 1}] * 2 + [{2, 3}] * 2),
    "tril": (lambda x: np.tril(x), (2, 2), [{0}, set(), {2}, {3}]),
    "take_along_axis": (
        lambda x: np.take_along_axis(x, np.argsort(x, axis=1), 1),
        (2, 2),
        [{0, 1}] * 2 + [{2, 3}] * 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_numpys_functions_are_carried_by_their_structure(name: str) -> None:
    f, shape, expected = CASES[name]
    x = inputs(*shape)
    found = f(x)
    assert sets(found) == expected
    np.testing.assert_allclose(found.array, f(x.array))
    assert not x.run.unknown
    assert not x.run.looks


def test_an_unknown_function_depends_on_all_it_got() -> None:
    x = inputs(3)
    assert sets(np.interp(x[:2], np.arange(2.0), np.ones(2))) == [{0, 1}] * 2
    assert x.run.unknown == {"numpy.interp": 1}


def test_a_function_of_sums_and_products_is_followed_element_by_element() -> None:
    x = inputs(4)
    assert sets(np.trace(np.reshape(x, (2, 2)))) == [{0, 3}]
    found = np.convolve(x, np.array([1.0, 0.0, 1.0]), "valid")
    assert [*map(sorted, sets(found))] == [[0, 2], [1, 3]]
    assert not x.run.unknown


def test_writes_are_seen_in_views() -> None:
    x = inputs(4)
    y = np.zeros_like(x)
    part = np.reshape(y, (2, 2))[1]
    y[2:] = x[:2]
    assert sets(part) == [{0}, {1}]
    part[1] = x[3]
    assert sets(y) == [set(), set(), {0}, {3}]
    np.add.at(y, np.array([0, 0, 3]), x[:3])
    assert sets(y) == [{0, 1}, set(), {0}, {2, 3}]
    np.testing.assert_allclose(y.array, [x.array[0] + x.array[1], 0, x.array[0], x.array[3] + x.array[2]])


def test_a_masked_copy_leaves_the_other_elements() -> None:
    x = inputs(3)
    y = x * 1
    np.copyto(y, x[::-1], where=np.array([True, False, False]))
    assert sets(y) == [{2}, {1}, {2}]
    np.testing.assert_array_equal(y.array, x.array[[2, 1, 2]])
    np.copyto(y, 0.0)
    assert sets(y) == [set(), set(), set()]


def test_where_arrays_are_not_trusted_their_zeros_are_not() -> None:
    run = Run(3, RULES, trusting=False)
    x = run.inputs(np.ones(3))
    assert sets(x * np.array([1.0, 0.0, 2.0])) == [{0}, {1}, {2}]
    assert sets(SPARSE @ x) == [{0, 1, 2}] * 2


def test_the_values_of_a_derivative_are_not_looked_at() -> None:
    with pytest.raises(TypeError, match=r"values of a derivative(?s:.*)operations on tensors"):
        float(inputs(1)[0])


def test_dense_rows_beyond_memory_are_refused() -> None:
    run = Run(100_000, RULES)
    with pytest.raises(MemoryError, match=r"100000 inputs each do not fit into memory(?s:.*)structure is known"):
        np.interp(run.inputs(np.ones(100_000)), np.arange(2.0), np.ones(2))


# The table ----------------------------------------------------------------------------------------------------------

LEFT_OUT = {
    **dict.fromkeys(("histogram", "histogramdd"), "counts into an array, and has no derivative"),
    **dict.fromkeys(("index_reduce", "scatter_reduce"), "its rule takes tensors alone"),
}


def flat(op: Op, made: Sample) -> tuple[Callable[[Any], Any], Any] | None:
    """An operation on a sample as a function of one vector; None if no float64 goes in."""
    arrays = [leaf for leaf in leaves([made.args, made.kwargs]) if _real(leaf)]
    if not arrays:
        return None
    sizes = [a.size for a in arrays]

    def call(x: Any) -> Any:
        parts = iter(zip(pullback.split(x, sizes), arrays, strict=True))

        def leaf(value: Any) -> Any:
            if _real(value):
                part, array = next(parts)
                return part.reshape(array.shape)
            return wrap(value.copy()) if isinstance(value, np.ndarray) else _of_dtype(value)

        manual_seed(0)
        given = made.replaced(leaf)
        outs = [t for t in leaves([op.call(*given.args, **given.kwargs)]) if isinstance(t, Tensor)]
        return pullback.cat([t.reshape(-1) for t in outs if t.dtype is pullback.float64])

    return call, np.concatenate([a.ravel() for a in arrays])


def _real(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


ENTRIES = entries()


@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in LEFT_OUT])
def test_the_pattern_of_an_operation_holds_every_nonzero(name: str) -> None:
    op = ENTRIES[name]
    for sample in op.domain("samples")[:2]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = flat(op, sample.arrays("float64"))
            if found is None:
                continue
            f, x = found
            try:
                true = np.nan_to_num(func.jacfwd(f)(wrap(x.copy())).numpy()) != 0
            except Exception:
                continue  # no derivative
            run = Run(x.size, RULES)
            _, tangent = func.jvp(f, (wrap(run.point(x)),), (wrap(run.inputs(np.ones_like(x))),))
            rows = tangent._data.rows if isinstance(tangent._data, Pattern) else None
        pattern = np.zeros(true.shape, bool) if rows is None else rows.toarray()
        assert (true <= pattern).all(), sample
