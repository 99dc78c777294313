"""`testing.assert_close` beyond the programs of `tests/programs/testing/assert_close.py`."""

from __future__ import annotations

import pytest

import pullback
from pullback.testing import assert_close


def test_subclasses_are_compared_unless_that_is_forbidden() -> None:
    class Mine(pullback.Tensor):
        pass

    mine, plain = Mine([1.0]), pullback.tensor([1.0])
    assert_close(mine, plain)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(mine, plain, allow_subclasses=False)


def test_a_sparse_tensor_is_compared_by_its_elements() -> None:
    pytest.importorskip("scipy")
    a = pullback.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,))
    assert_close(a, a)
    with pytest.raises(AssertionError, match=r"1 / 3"):
        assert_close(a, pullback.sparse_coo_tensor([[0, 1]], [1.0, 3.0], (3,)))
