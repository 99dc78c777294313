"""Sparse tensors with other axes or other entries, and written over: derivatives, and refusals that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.autograd import gradcheck, gradgradcheck

CHANGES: dict[str, Callable[[Any], Any]] = {
    "unsqueeze": lambda s: s.unsqueeze(1),
    "unsqueeze a dense axis": lambda s: s.unsqueeze(-1),
    "permute": lambda s: s.permute(1, 0, 2),
    "index_select": lambda s: s.index_select(0, pullback.tensor([2, 0, 2, 1])),
    "index_select a dense axis": lambda s: s.index_select(2, pullback.tensor([1, 1, 0])),
    "stack": lambda s: pullback.stack([s, s * 3], 1),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("places", [[[0, 2, 2], [1, 0, 1]], [[2, 0, 2], [1, 0, 1]], [[1, 1, 0], [1, 1, 0]]])
def test_what_moves_entries_is_that_of_the_dense_tensor_with_all_derivatives(name: str, places: Any) -> None:
    change = CHANGES[name]
    values = pullback.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=pullback.float64, requires_grad=True)

    def made(values: Any) -> Any:
        return pullback.sparse_coo_tensor(places, values, (3, 2, 2))

    assert change(made(values)).to_dense().tolist() == change(made(values).to_dense()).tolist()
    found = change(made(values)).coalesce()
    whole = pullback.sparse_coo_tensor(found.indices(), found.values(), found.shape)
    assert whole.coalesce().indices().tolist() == found.indices().tolist()
    assert gradcheck(lambda v: change(made(v)).to_dense() ** 2, (values,))
    assert gradgradcheck(lambda v: change(made(v)).to_dense() ** 3, (values,))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s: s.unsqueeze(3), IndexError, "Dimension out of range"),
        (lambda s: s.permute(0, 0), RuntimeError, "does not match the length of the desired ordering"),
        (lambda s: s.permute(0), RuntimeError, "does not match the length of the desired ordering"),
        (lambda s: s.index_select(0, pullback.tensor([2])), IndexError, "index out of range"),
        (lambda s: s.index_select(0, pullback.tensor([0.5])), IndexError, "a vector of integers"),
        (lambda s: s.index_select(0, [1]), IndexError, "a vector of integers"),
        (lambda s: pullback.stack([s, s.to_dense()]), RuntimeError, "a dense tensor was found at position 1"),
        (lambda s: pullback.stack([s, s.t()]), RuntimeError, "each tensor to be equal size"),
        (lambda s: s.copy_(s.to_dense()), RuntimeError, "between dense and sparse Tensors is not implemented"),
        (lambda s: s.copy_(s.t()), RuntimeError, "cannot write"),
        (lambda s: s.to_sparse_csr().unsqueeze(0), RuntimeError, "unsupported tensor layout: SparseCsr"),
        (lambda s: s.to_sparse_csr().permute(1, 0), RuntimeError, "unsupported tensor layout: SparseCsr"),
        (lambda s: pullback.add(s, s, out=s.to_dense()), NotImplementedError, "an out of another layout"),
        (lambda s: pullback.add(s, s, out=s.long()), RuntimeError, "can't be cast to the desired output type"),
        (lambda s: pullback.add(s, s, out=s.clone().requires_grad_()), RuntimeError, "automatic differentiation"),
        (lambda s: s.requires_grad_().zero_(), RuntimeError, "a leaf Variable that requires grad"),
    ],
)
def test_what_is_refused_changes_nothing(call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    s = pullback.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]).to_sparse()
    with pytest.raises(error, match=words):
        call(s)
    assert s.detach().to_dense().tolist() == [[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]
    assert s._version == 0


def test_a_compressed_tensor_written_over_keeps_its_layout() -> None:
    s = pullback.tensor([[0.0, 1.0], [2.0, 3.0]]).to_sparse_csr()
    other = pullback.tensor([[4.0, 0.0], [0.0, 0.0]], dtype=pullback.float64).to_sparse()
    assert s.copy_(other) is s
    assert s.layout is pullback.sparse_csr
    assert s.dtype is pullback.float32
    assert s.to_dense().tolist() == [[4.0, 0.0], [0.0, 0.0]]
    assert s.zero_() is s
    assert not s.to_dense().any()
    assert s._version == 2


def test_a_write_between_forward_and_backward_is_an_error() -> None:
    s = pullback.tensor([[0.0, 1.0], [2.0, 3.0]]).to_sparse()
    w = pullback.ones(2, 2, requires_grad=True)
    loss = (s @ w).sum()
    s.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
