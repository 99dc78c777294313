"""NumPy arrays as arguments of compiled functions: part of the signature by value, as numbers are."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor
from pullback.interpreters.traced import TraceError

compiled = functools.partial(pullback.compile, backend="numpy")


def leaf(*values: float) -> Tensor:
    """A tensor of double precision that requires grad."""
    return pullback.tensor(values, dtype=pullback.float64, requires_grad=True)


def test_values_and_gradients_are_those_of_the_function() -> None:
    def f(a: Any, x: Tensor) -> Any:
        return (np.sin(a) * x**3).sum() + a.mean()

    a = np.array([0.5, 1.5])
    found = []
    for g in (f, compiled(f)):
        x = leaf(1.0, 2.0)
        y = g(a, x)
        (first,) = pullback.autograd.grad(y, x, create_graph=True)
        (second,) = pullback.autograd.grad(first.sum(), x)
        found.append((y.item(), first.tolist(), second.tolist()))
    assert found[0] == found[1]


def test_an_array_that_changes_is_another_signature() -> None:
    compiled_one = compiled(lambda a, x: a * x)
    x, a = leaf(1.0, 2.0), np.array([1.0, 1.0])
    assert compiled_one(a, x).tolist() == [1.0, 2.0]
    a[0] = 5.0  # the same array with other values, as a loop over data has it
    assert compiled_one(a, x).tolist() == [5.0, 2.0]
    a[0] = 1.0
    assert compiled_one(a, x).tolist() == [1.0, 2.0]
    assert compiled_one(a.astype(np.float32), x).tolist() == [1.0, 2.0]
    assert compiled_one.explain().count("forward:") == 3


def test_an_array_of_the_same_values_runs_the_same_program() -> None:
    compiled_one = compiled(lambda a, x: a * x)
    for _ in range(3):
        compiled_one(np.array([1.0, 2.0]), leaf(1.0, 2.0))
    assert compiled_one.explain().count("forward:") == 1


@pytest.mark.parametrize("index", [np.array([1, 0, 1]), np.array([True, False])], ids=["numbers", "mask"])
def test_an_array_chooses_elements(index: Any) -> None:
    x = leaf(3.0, 4.0)
    compiled(lambda x, i: x[i] * 2)(x, index).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0 * np.count_nonzero(np.arange(2)[index] == k) for k in range(2)]


def test_arrays_in_containers_and_by_name() -> None:
    f = compiled(lambda x, *, parts: x * parts["weights"][0] + parts["shift"])
    parts = {"weights": [np.array([1.0, 2.0])], "shift": np.array(0.5)}
    assert f(leaf(1.0, 1.0), parts=parts).tolist() == [1.5, 2.5]
    assert f(leaf(1.0, 1.0), parts=parts | {"shift": np.array(1.0)}).tolist() == [2.0, 3.0]


def test_one_array_given_twice_is_one() -> None:
    f = compiled(lambda a, b, x: x * 2 if a is b else x * 3)
    a = np.ones(1)
    assert [f(a, a, leaf(1.0)).item(), f(a, a.copy(), leaf(1.0)).item(), f(a, a, leaf(1.0)).item()] == [2.0, 3.0, 2.0]


def test_a_write_to_an_array_is_refused_and_changes_nothing() -> None:
    def f(a: Any, x: Tensor) -> Tensor:
        a[0] = 7.0
        return x * 2

    a = np.ones(2)
    with pytest.raises(TraceError, match=r"an argument was changed(.|\n)*test_compile_arrays"):
        compiled(f)(a, leaf(1.0))
    assert a.tolist() == [1.0, 1.0]


def test_a_tensor_that_is_written_to_may_not_share_memory_with_an_array() -> None:
    def f(t: Tensor, a: Any) -> Tensor:
        t += 1
        return t * pullback.from_numpy(a)

    g, t = compiled(f), pullback.zeros(2)
    with pytest.raises(TraceError, match="shares memory with an array among the arguments"):
        g(t, t.numpy())
    assert t.tolist() == [0.0, 0.0]
    assert g(t, np.full(2, 3.0, np.float32)).tolist() == [3.0, 3.0]
    with pytest.raises(TraceError, match="shares memory with an array among the arguments"):
        g(t, t.numpy())


@pytest.mark.parametrize("f", [lambda a: a, lambda a: a[1:], np.sin], ids=["itself", "view", "new"])
def test_no_array_is_returned(f: Any) -> None:
    with pytest.raises(TraceError, match=r"returns a ndarray that it made or was given(?s:.*)from_numpy"):
        compiled(lambda a, x: (f(a), x * 2))(np.ones(2), leaf(1.0))


@pytest.mark.parametrize("given", [np.array([None]), np.ma.array([1.0, 2.0])], ids=["objects", "masked"])
def test_arrays_of_other_kinds_are_refused(given: Any) -> None:
    with pytest.raises(TraceError, match="expected arguments that are tensors or NumPy arrays"):
        compiled(lambda a, x: x * 2)(given, leaf(1.0))
