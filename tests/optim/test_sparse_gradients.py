"""Steps for sparse gradients, of SGD and Adagrad: those for the same gradient made dense, and PyTorch's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pullback

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.5}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "nesterov": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 0.1, "maximize": True}),
]
BY_ENTRIES = [(name, options) for name, options in CASES if "momentum" not in options]


def _trained(lib: Any, name: str, options: dict[str, Any], made: Any, size: tuple[int, int] = (7, 3)) -> list[Any]:
    """What a table of rows and its state are after some steps; `made` is called with each gradient before its step."""
    rng = np.random.default_rng(5)
    rows = [rng.integers(0, size[0], 4) for _ in range(5)] + [np.zeros(0, np.int64)]
    table = lib.tensor(rng.normal(size=size), requires_grad=True)
    other = lib.tensor(rng.normal(size=2), requires_grad=True)  # a dense one in the same group
    optimizer = getattr(lib.optim, name)([table, other], **options)
    for at in rows:
        optimizer.zero_grad()
        found = lib.nn.functional.embedding(lib.tensor(at), table, sparse=True)
        ((found * lib.tensor(rng.normal(size=found.shape))).sum() + (other * other).sum()).backward()
        made(table)
        optimizer.step()
    state = [v.to_dense() if "sparse" in str(v.layout) else v for v in optimizer.state[table].values()]
    return [t.detach().numpy() for t in (table, other, *state)]


def _as_it_is(table: Any) -> None:
    assert "sparse" in str(table.grad.layout)


def _dense(table: Any) -> None:
    table.grad = table.grad.to_dense()


def _rows(table: Any) -> None:
    table.grad = table.grad.to_dense().to_sparse(1)


def _elements(table: Any) -> None:
    table.grad = table.grad.to_dense().to_sparse()


def _csr(table: Any) -> None:
    table.grad = table.grad.to_dense().to_sparse_csr()


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")  # once a process
@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps_are_those_of_torch(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in zip(*(_trained(lib, name, options, _as_it_is) for lib in (pullback, torch)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("made", [_as_it_is, _rows, _elements, _csr])
@pytest.mark.parametrize("size", [(7, 3), (900, 700)])  # of the second, the rows are so long that C takes the step
@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps_are_those_of_the_gradient_made_dense(
    name: str, options: dict[str, Any], size: tuple[int, int], made: Any
) -> None:
    found = [_trained(pullback, name, options, each, size) for each in (made, _dense)]
    for sparse, dense in zip(*found, strict=True):
        np.testing.assert_allclose(sparse, dense, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "options"), BY_ENTRIES)
def test_a_step_reads_and_writes_the_entries_alone(name: str, options: dict[str, Any]) -> None:
    table = pullback.ones(4, 2, requires_grad=True)
    optimizer = getattr(pullback.optim, name)([table], **options)
    for p in (table, *(kept for kept in optimizer.state[table].values() if kept.ndim)):
        with pullback.no_grad():
            p[0] = np.nan  # would be no error, but anything computed of it would
    version = table._version
    pullback.nn.functional.embedding(pullback.tensor([2, 2]), table, sparse=True).sum().backward()
    with np.errstate(invalid="raise"):
        optimizer.step()
    assert table._version > version
    assert table.grad is not None
    assert table.grad.layout is pullback.sparse_coo
    assert table[1].tolist() == table[3].tolist() == [1.0, 1.0]
    assert (table[2] != 1).all()


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_a_complex_table(name: str) -> None:
    found = []
    for dense in (False, True):
        table = pullback.tensor([[1 + 2j, 3.0], [2j, -1.0]], requires_grad=True)
        optimizer = getattr(pullback.optim, name)([table], lr=0.1)
        table.grad = pullback.sparse_coo_tensor([[1, 1]], pullback.tensor([[1j, 2.0], [1.0, 1j]]), (2, 2))
        if dense:
            _dense(table)
        optimizer.step()
        found.append(table.detach().numpy())
    np.testing.assert_allclose(*found)


@pytest.mark.parametrize("order", [*itertools.permutations(("sparse", "dense", "dense too"))])
def test_gradients_of_both_kinds_are_added_in_every_order(order: tuple[str, ...]) -> None:
    table = pullback.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    parts = {
        "sparse": lambda: pullback.nn.functional.embedding(pullback.tensor([1, 1]), table, sparse=True).sum(),
        "dense": lambda: (table * 3).sum(),
        "dense too": lambda: (table * 5).sum(),
    }
    sum((parts[name]() for name in order), pullback.zeros(())).backward()
    assert table.grad is not None
    assert table.grad.tolist() == [[8.0, 8.0], [10.0, 10.0]]
    g, h = pullback.autograd.grad(sum((parts[name]() for name in (*order, *order)), pullback.zeros(())), [table] * 2)
    assert g.tolist() == h.tolist() == [[16.0, 16.0], [20.0, 20.0]]
