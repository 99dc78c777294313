"""Tensors that are made of a number which is itself a Tensor: its gradient is kept, or it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.func import grad, hessian, jvp, vmap


def leaf(*values: float) -> Any:
    return pullback.tensor(values, dtype=pullback.float64, requires_grad=True)


FULL: dict[str, Callable[[Any], Any]] = {
    "number": lambda x: np.full_like(x, x[1]),
    "shape": lambda x: np.full_like(x, x[1], shape=(2, 3)) * x,
    "length": lambda x: np.full_like(x, x[1], shape=2),
    "axes": lambda x: np.full_like(np.zeros((2, 1)) * x, x),
    "computed": lambda x: np.full_like(x, np.sum(x**2)) * x,
}


@pytest.mark.parametrize("name", FULL)
def test_full_like_of_numpys_keeps_the_gradient_of_its_number(name: str) -> None:
    f, x = FULL[name], leaf(0.5, 1.5, 2.5)
    assert pullback.autograd.gradcheck(f, x, check_forward_ad=True)
    assert pullback.autograd.gradgradcheck(f, x)
    found = f(x)
    assert found.requires_grad
    np.testing.assert_array_equal(found.detach().numpy(), f(x.detach().numpy()))


def test_full_like_is_new_memory_of_the_dtype_that_was_asked_for() -> None:
    x = leaf(0.5, 1.5)
    found = np.full_like(x, x, dtype=np.float32)
    assert found.dtype is pullback.float32
    found[0] = 7.0
    assert x.tolist() == [0.5, 1.5]
    assert np.full_like(x, x[0], dtype=np.int64).tolist() == [0, 0]
    assert not np.full_like(x, pullback.tensor(2.0)).requires_grad
    with pytest.raises(RuntimeError, match="expanded size"):
        np.full_like(x, leaf(1.0, 2.0, 3.0))


def test_full_like_in_transforms() -> None:
    def f(x: Any) -> Any:
        return (np.full_like(x, x[0] ** 2) * x).sum()

    x = pullback.tensor([0.5, 1.5], dtype=pullback.float64)
    assert grad(f)(x).tolist() == [2.25, 0.25]
    assert hessian(f)(x).tolist() == [[6.0, 1.0], [1.0, 0.0]]
    assert jvp(f, (x,), (pullback.ones_like(x),))[1].item() == 2.5
    assert vmap(grad(f))(pullback.stack([x, x])).tolist() == [[2.25, 0.25]] * 2


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "full": lambda lib, t: lib.full((2,), t),
    "full_like": lambda lib, t: lib.full_like(lib.zeros(2), t),
    "new_full": lambda lib, t: lib.zeros(2).new_full((2,), t),
    "arange": lambda lib, t: lib.arange(t, 5),
    "arange end": lambda lib, t: lib.arange(0, end=t),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", REFUSED)
def test_a_number_that_requires_grad_is_refused_as_in_torch(name: str) -> None:
    for lib in (pytest.importorskip("torch"), pullback):
        with pytest.raises(TypeError, match=r"must be Number, not Tensor|invalid combination of arguments"):
            REFUSED[name](lib, lib.tensor(2.0, requires_grad=True))


@pytest.mark.parametrize("name", REFUSED)
def test_a_number_that_requires_grad_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="that requires grad"):
        REFUSED[name](pullback, pullback.tensor(2.0, requires_grad=True))
    REFUSED[name](pullback, pullback.tensor(2.0))


@pytest.mark.parametrize("make", [pullback.linspace, pullback.logspace])
def test_bounds_that_lose_their_gradient_are_told(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pullback.kept_gradients._TOLD_PLACES", set())
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
        make(0.0, pullback.tensor(2.0, requires_grad=True), 3)


def test_grids_and_signs_of_numpys_are_copies() -> None:
    x = leaf(0.5, 1.5) * 1
    for copy in (np.meshgrid(x, x)[0], np.meshgrid(x, x, sparse=True)[1], np.positive(x)):
        copy[0] = 7.0
    assert x.tolist() == [0.5, 1.5]
    assert np.shares_memory(np.meshgrid(x, x, copy=False)[0].detach().numpy(), x.detach().numpy())
    assert pullback.autograd.gradcheck(lambda x: np.meshgrid(x, x * x), leaf(0.5, 1.5))


@pytest.mark.parametrize("positions", [[], (), np.array([], dtype=int), [1], [0, 2], slice(0, 2), -1])
def test_positions_that_are_deleted(positions: Any) -> None:
    x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found: Any = np.delete(x, positions)
    expected = np.delete(x.detach().numpy(), positions)
    assert found.tolist() == expected.tolist()
    assert not np.shares_memory(found.detach().numpy(), x.detach().numpy())
    (found * found).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2 * v if v in expected else 0.0 for v in x.tolist()]


@pytest.mark.parametrize("join", [np.stack, np.vstack, np.concatenate, np.column_stack])
def test_a_list_with_tensors_beside_a_tensor_is_joined(join: Any) -> None:
    x = pullback.tensor([1.0, 2.0], dtype=pullback.float64, requires_grad=True)
    found: Any = join([x, [x[1], 3.0]])
    assert np.array_equal(found.detach().numpy(), join([[1.0, 2.0], [2.0, 3.0]]))
    (found * found).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 8.0]
