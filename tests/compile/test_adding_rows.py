"""Sums by index in C: what they compute is what NumPy does, to the bit, and nobody else notices them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import backends
from pullback.compile.backends import c, cache
from pullback.compile.eager import adding_rows
from pullback.inspect.operations import SUMS_BY_INDEX, rows
from pullback.kernels import positions
from pullback.ops import TABLE
from tests.oracle import Run, difference, difference_of_gradients, resolve

EXTREMES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 5e-324, 1e-300, 3e38, -3e38, 1, -1]
SHAPES = [(1, 5, 1, 5000), (3, 7, 2, 900), (1, 2000, 32, 20_000), (2, 3, 0, 5), (2, 1, 1, 4000), (1, 4, 3, 0)]


@pytest.fixture(autouse=True)
def forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache that begins empty, and no loop in memory, before and after a test; all sizes take the loop."""
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))
    monkeypatch.setattr(positions, "_FEW", 0)
    monkeypatch.setattr(positions, "_MANY", 0)
    adding_rows._loop.cache_clear()
    yield
    adding_rows._loop.cache_clear()


@pytest.fixture
def a_compiler() -> None:
    if not c.available():
        pytest.skip(str(c.unavailable()))


def arrays(shape: tuple[int, int, int, int], char: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums to add to, positions and values, extreme ones among them."""
    blocks, n, length, count = shape
    rng = np.random.default_rng(0)
    values, sums = (rng.standard_normal((blocks, m, length)) for m in (count, n))
    for array in (values, sums):
        array.reshape(-1)[: len(EXTREMES)] = EXTREMES[: array.size]
    with np.errstate(all="ignore"):
        return sums.astype(char), rng.integers(0, n, count), values.astype(char)


def by_numpy(sums: np.ndarray, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The same by `np.add.at`."""
    found = sums.copy()
    with np.errstate(all="ignore"):
        for block, part in zip(found, values, strict=True):
            np.add.at(block, places, part)
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("char", "fdFD")
def test_sums_are_numpys_to_the_bit(a_compiler: None, shape: tuple[int, int, int, int], char: str) -> None:
    sums, places, values = arrays(shape, char)
    expected = by_numpy(sums, places, values)
    assert adding_rows.add_rows(sums, places, values)
    np.testing.assert_array_equal(sums, expected, strict=True)
    bits = [np.where(np.isnan(a.view(a.real.dtype)), 0, a.view(a.real.dtype)).tobytes() for a in (sums, expected)]
    assert bits[0] == bits[1]  # the sign of zero, too


def test_positions_and_values_of_any_layout(a_compiler: None) -> None:
    sums, places, values = arrays((2, 4, 6, 50), "d")
    expected = by_numpy(sums, places, values)
    strange = np.asfortranarray(values)[:, :, :]
    assert not strange.flags.c_contiguous
    assert adding_rows.add_rows(sums, places.astype(np.int32), strange)
    np.testing.assert_array_equal(sums, expected)
    one = np.broadcast_to(np.array(0.5), (2, 50, 6))
    expected = by_numpy(sums, places, one)
    assert adding_rows.add_rows(sums, np.repeat(places, 2)[::2], one)
    np.testing.assert_array_equal(sums, expected)


def test_what_shares_memory_with_the_sums_is_read_before_they_change(a_compiler: None) -> None:
    x = np.arange(1.0, 13.0).reshape(1, 4, 3)
    expected = by_numpy(x, np.array([1, 2, 3, 0]), x.copy())
    assert adding_rows.add_rows(x, np.array([1, 2, 3, 0]), x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("char", ["i", "l", "?", "e", ">f8"])
def test_other_dtypes_are_left_to_numpy(char: str) -> None:
    sums = np.zeros((1, 2, 3), char)
    assert not adding_rows.add_rows(sums, np.array([1, 1]), np.ones((1, 2, 3), char))
    assert not sums.any()


def test_values_of_another_dtype_and_errors_that_numpy_raises_are_left_to_it(a_compiler: None) -> None:
    sums = np.zeros((1, 2, 3))
    assert not adding_rows.add_rows(sums, np.array([1, 1]), np.ones((1, 2, 3), np.float32))
    assert not adding_rows.add_rows(np.zeros((1, 3, 2)).transpose(0, 2, 1), np.array([1, 1]), np.ones((1, 2, 3)))
    with np.errstate(over="raise"):
        assert not adding_rows.add_rows(sums, np.array([1, 1]), np.ones((1, 2, 3)))
    assert not sums.any()


# -- the operations --------------------------------------------------------------------------------------------------


def seen(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each sum by index that follows runs in C."""
    found: list[bool] = []
    inner = positions.SumsByIndex.in_c

    def add_rows(*rows: Any) -> bool:
        found.append(inner(*rows))
        return found[-1]

    monkeypatch.setattr(positions.SumsByIndex, "in_c", staticmethod(add_rows))
    return found


@pytest.mark.parametrize("name", sorted(SUMS_BY_INDEX))
def test_the_samples_of_the_table(a_compiler: None, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Values and gradients are those without C; some of the samples, or their gradients, take the loop."""
    found, fn = seen(monkeypatch), resolve(pullback, name)
    for sample in TABLE[name].domain("samples"):
        for dtype in ("float32", "float64"):
            made, runs = sample.arrays(dtype), []
            for enabled in (True, False):
                with backends.fused.flags(enabled=enabled):
                    run = Run(pullback, fn, made)
                    runs.append((run.result, run.gradients()))
            assert difference(runs[0][0], runs[1][0], 0) == ""
            assert difference_of_gradients(runs[0][1], runs[1][1], 0) == ""
    assert True in found


def test_the_table_of_operations_marks_them() -> None:
    assert {row.name for row in rows() if row.fused} >= SUMS_BY_INDEX
    assert not any(row.fused for row in rows(["scatter", "sin"]))


def of_index_add(enabled: bool = True) -> list[np.ndarray]:
    x = pullback.linspace(-3, 3, 600).reshape(200, 3).requires_grad_()
    places = pullback.arange(200) % 7
    with backends.fused.flags(enabled=enabled):
        y = pullback.zeros(7, 3).index_add(0, places, x[places])
        (y * y).sum().backward()
    return [y.detach().numpy(), x.grad.numpy()]


def same(found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_the_setting_switches_it_off(a_compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    found = seen(monkeypatch)
    with_c = of_index_add()
    assert found == [True, True]
    del found[:]
    assert same(with_c, of_index_add(enabled=False))
    assert not any(found)


def test_the_first_build_says_so_once(
    a_compiler: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[adding_rows.announce.__module__], "_said", set())
    of_index_add()
    of_index_add()
    assert capsys.readouterr().err.count("pullback: compiling index_add() for large arrays") == 1


def test_without_a_compiler_nothing_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expected = of_index_add(enabled=False)
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    cache._find.cache_clear()
    found = seen(monkeypatch)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert same(of_index_add(), expected)
    finally:
        cache._find.cache_clear()
    assert found == [False, False]


def test_a_compiler_that_fails_gives_one_warning(a_compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: Callable[..., Any] = cache._compile

    def refuse(source: str, *rest: Any) -> Any:
        if "add_rows" in source:
            raise cache.CompilerError("it is a fault of this test")
        return refused(source, *rest)

    monkeypatch.setattr(cache, "_compile", refuse)
    monkeypatch.setattr(sys.modules[adding_rows.tell.__module__], "_said", set())
    with pytest.warns(UserWarning, match=r"index_add\(\) of large arrays runs as NumPy.*fault of this test") as caught:
        found = of_index_add()
    assert [warning.filename for warning in caught] == [__file__]
    assert same(found, of_index_add(enabled=False))
    of_index_add()  # where a second warning is an error


def test_positions_out_of_range_are_refused_before_anything_is_added(a_compiler: None) -> None:
    x = pullback.zeros(3, 4)
    for bad in (3, -4):
        with pytest.raises(IndexError):
            x.index_put_((pullback.tensor([0, bad]),), pullback.ones(2, 4), accumulate=True)
        with pytest.raises((IndexError, RuntimeError)):
            x.index_add_(0, pullback.tensor([0, bad]), pullback.ones(2, 4))
    assert not x.any()
