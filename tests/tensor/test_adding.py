"""Sums in blocks are the sums, whatever the shape, the strides, the axes and the sizes of the blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.tensor import adding


def _some_view(random: np.random.Generator, longest: int) -> Any:
    """An array of one to four axes, in any order in memory, with gaps, backwards, or repeated."""
    shape = random.integers(1, longest, random.integers(1, 5))
    x = random.random(shape)
    x = x.transpose(random.permutation(x.ndim))
    x = x[tuple(slice(None, None, int(random.choice([1, 1, 2, -1]))) for _ in shape)]
    return np.broadcast_to(x[..., :1], x.shape) if random.random() < 0.2 else x


@pytest.mark.parametrize(
    "sizes", [(256, 64, 32, 512), (2, 2, 2, 4), (1, 3, 3, 12), (3, 2, 1, 1), (5, 7, 100, 100)], ids=str
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_a_sum_in_blocks_is_the_sum(monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], dtype: str) -> None:
    for name, size in zip(("FEW", "BLOCK", "SHORT", "WIDE"), sizes, strict=True):
        monkeypatch.setattr(adding, name, size)
    random = np.random.default_rng(0)
    for _ in range(200):
        x = _some_view(random, 30 if sizes[0] == 256 else 9).astype(dtype)
        axes = tuple(
            int(a) for a in random.permutation(x.ndim)[: random.integers(1, x.ndim + 1)] - x.ndim * random.integers(2)
        )
        axis, keepdims = (
            (axes[0] if len(axes) == 1 else None if random.random() < 0.2 else axes),
            bool(random.integers(2)),
        )
        expected = np.sum(x, axis, np.result_type(dtype, np.float64), keepdims=keepdims)
        found = adding.summed(x, axis, keepdims)
        assert np.shape(found) == np.shape(expected)
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float16" else 1e-5)


def test_a_sum_in_another_dtype_and_of_integers() -> None:
    ones = np.ones((3000, 2), np.float16)
    assert adding.summed(ones, 0).tolist() == [3000.0, 3000.0]
    assert adding.summed(ones, 0, dtype=np.dtype(np.float64)).dtype == np.float64
    assert adding.summed(np.ones((3000, 2), np.int8), 0).tolist() == [3000, 3000]
