"""`autograd.functional`, and `autograd.grad` of a batch of vectors, side by side with torch's."""

from __future__ import annotations

import pullback
from tests.programs.functional.common import fn, one, two, vector
from tests.programs.functional.jacobian import MODES, scalar
from tests.side_by_side import leaf


def test_jacobian_of_an_empty_result() -> None:
    """torch raises "stack expects a non-empty TensorList"."""
    for mode in MODES:
        assert fn(pullback).jacobian(lambda x: x[:0], one(pullback), **mode).shape == (0, 3)


def test_forward_mode_nests_as_reverse_mode_does() -> None:
    """torch's forward strategy returns lists instead of tuples; they require grad if a captured tensor does."""
    w = leaf(pullback, [1.0, 2.0, 3.0])
    x = one(pullback)
    (block,) = fn(pullback).jacobian(lambda a: (a * w,), x, vectorize=True, strategy="forward-mode")
    assert not block.requires_grad
    found = fn(pullback).jacobian(lambda a: (a * w,), (x,), vectorize=True, strategy="forward-mode")
    assert isinstance(found, tuple)
    assert isinstance(found[0], tuple)


def test_the_results_of_forward_mode_nest_in_tuples() -> None:
    """torch's are lists there, and carry a graph in a Hessian."""
    x, y = two(pullback)
    found = fn(pullback).jacobian(vector, (x, y), vectorize=True, strategy="forward-mode")
    assert isinstance(found, tuple)
    assert all(isinstance(row, tuple) for row in found)
    second = fn(pullback).hessian(scalar, (x, y), vectorize=True, outer_jacobian_strategy="forward-mode")
    assert not any(t.requires_grad for row in second for t in row)
