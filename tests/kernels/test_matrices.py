"""Triangular systems, factors and exponentials of matrices, held to what they are by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import matrices

Array = np.ndarray[Any, Any]

SIZES = [1, 2, 7, matrices._BLOCK, matrices._BLOCK + 1, 2 * matrices._BLOCK + 5]


def random(*shape: int, dtype: str = "f8", seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=shape)
    return (found + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else found).astype(dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize(("upper", "unit"), [(False, False), (False, True), (True, False), (True, True)])
def test_a_triangular_system_is_solved_and_one_triangle_read(n: int, dtype: str, upper: bool, unit: bool) -> None:
    a = random(2, n, n, dtype=dtype) / n + 2 * np.eye(n)
    b = random(2, n, 3, dtype=dtype, seed=1)
    x = matrices.solve_triangular(a, b, upper, unit)
    used = np.triu(a) if upper else np.tril(a)
    if unit:
        used = used - used * np.eye(n) + np.eye(n)
    np.testing.assert_allclose(used @ x, b, rtol=1e-9, atol=1e-9)


def test_a_zero_on_the_diagonal_is_divided_by() -> None:
    with np.errstate(all="ignore"):
        x = matrices.solve_triangular(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0], [3.0]]), False)
    assert x.tolist() == [[1.0], [np.inf]]


def rebuilt(factors: Array, pivots: Array) -> Array:
    """``P^-1 L U`` of one matrix."""
    m, n = factors.shape
    k = min(m, n)
    lower, upper = np.tril(factors[:, :k], -1) + np.eye(m, k), np.triu(factors[:k])
    found = lower @ upper
    for i in reversed(range(k)):
        j = pivots[i] - 1
        found[[i, j]] = found[[j, i]]
    return found


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (8, 8), (40, 40), (70, 33), (33, 70), (5, 2), (2, 5), (0, 0)])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("scipy", [True, False])
def test_lu_factors_give_the_matrix(
    shape: tuple[int, int], dtype: str, scipy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not scipy:
        monkeypatch.setattr(matrices, "_getrf", lambda stack: None)
    a = random(2, *shape, dtype=dtype)
    factors, pivots, info = matrices.lu(a)
    assert not info.any()
    for matrix, found, rows in zip(a, factors, pivots, strict=True):
        np.testing.assert_allclose(rebuilt(found, rows), matrix, rtol=1e-10, atol=1e-10)
        assert (np.abs(np.tril(found, -1)[:, : min(shape)]) <= 1.5).all()  # rows were exchanged for the largest pivot


def test_lu_tells_of_the_first_pivot_that_is_zero() -> None:
    a = np.array([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    assert matrices.lu(a)[2].tolist() == [2, 1, 0]


def test_cholesky_factors_and_the_minor_that_is_not_positive() -> None:
    b = random(2, 4, 4, dtype="c16")
    a = b @ np.conj(np.swapaxes(b, -1, -2)) + np.eye(4)
    found, info = matrices.cholesky(a)
    np.testing.assert_allclose(found @ np.conj(np.swapaxes(found, -1, -2)), a, rtol=1e-10, atol=1e-10)
    assert info.tolist() == [0, 0]
    odd = np.stack([a[0].real, np.diag([1.0, 4.0, -1.0, 2.0])])
    found, info = matrices.cholesky(odd)
    assert info.tolist() == [0, 3]
    assert found[1].tolist() == np.diag([1.0, 2.0, 0.0, 0.0]).tolist()


@pytest.mark.parametrize("scale", [0.001, 0.1, 0.7, 2.0, 9.0])
@pytest.mark.parametrize(("dtype", "digits"), [("f8", 1e-12), ("f4", 2e-5), ("c16", 1e-12)])
def test_the_exponential_is_its_series(scale: float, dtype: str, digits: float) -> None:
    a = random(3, 4, 4, dtype=dtype) * np.dtype(dtype).type(scale / 3)
    found = matrices.exponential(a)
    term = total = np.broadcast_to(np.eye(4, dtype="c16"), a.shape)
    for k in range(1, 120):
        term = term @ a / k
        total = total + term
    np.testing.assert_allclose(
        found, total if a.dtype.kind == "c" else total.real, rtol=digits, atol=digits * np.exp(scale)
    )
    assert found.dtype == a.dtype


def test_the_exponential_of_what_is_not_finite() -> None:
    a = np.stack([np.full((2, 2), np.inf), np.zeros((2, 2))])
    assert np.isnan(matrices.exponential(a)[0]).all()
    assert matrices.exponential(a)[1].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert matrices.exponential(np.zeros((0, 2, 2))).shape == (0, 2, 2)
