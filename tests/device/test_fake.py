"""The device that is not there refuses what CuPy refuses, and counts what CuPy waits for."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from .fake import CUPY, FUNCTIONS, UFUNCS, DeviceArray


def on_device(*values: Any, dtype: Any = float) -> DeviceArray:
    return DeviceArray(np.array(values, dtype))


@pytest.mark.parametrize(
    "work",
    [
        np.asarray,
        np.array,
        lambda a: a + np.ones(2),
        lambda a: np.ones(2) * a,
        lambda a: np.concatenate([a, np.ones(2)]),
        lambda a: np.where(np.array([True, False]), a, a),
        lambda a: np.add(a, a, out=np.zeros(2)),
        lambda a: np.sum(a, out=np.zeros(())),
        lambda a: operator.setitem(a, slice(None), np.zeros(2)),
        lambda a: np.add.at(a, [0], np.ones(1)),
        lambda a: np.add.at(np.zeros(2), [0], a),
        lambda a: a.dot(np.ones(2)),
        lambda a: np.add.at(a, (np.array([0]),), 2.0),
        lambda a: np.vecdot(a, a),
        lambda a: np.max(a, initial=0.0),
        lambda a: np.add(a, a, where=a > 0),
        *([lambda a: np.unstack(a)] if hasattr(np, "unstack") else []),  # since NumPy 2.1
        lambda a: np.insert(a, 0, 1.0),
        lambda a: np.linalg.vector_norm(a),
        lambda a: np.exp(np.zeros(2), out=a),
    ],
)
def test_it_refuses(work: Any) -> None:
    a = on_device(1.0, 2.0)
    with pytest.raises(TypeError):
        work(a)
    assert a.inner.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "work",
    [
        lambda a: np.multiply.at(a, np.array([0]), 2.0),
        np.maximum.reduce,
        np.logical_and.reduce,
        np.maximum.accumulate,
        lambda a: np.maximum.reduceat(a, np.array([0])),
    ],
)
def test_a_method_of_a_ufunc_that_cupy_lacks_is_not_implemented(work: Any) -> None:
    with pytest.raises(NotImplementedError):
        work(on_device(1.0, 2.0))


def test_what_cupy_has_was_read_off_cupy() -> None:
    assert CUPY["cupy"].startswith("14.")
    lacked = {"insert", "unstack", "block", "nanquantile", "linalg.vector_norm", "linalg.matrix_norm"}
    assert not lacked & FUNCTIONS.keys()
    assert not {"vecdot", "matvec", "spacing", "airy", "_zeta"} & UFUNCS.keys()
    assert {"sum", "concatenate", "einsum", "linalg.inv", "linalg.norm", "fft.fft"} <= FUNCTIONS.keys()
    assert {"add", "matmul", "erf", "zeta", "gammaln"} <= UFUNCS.keys()
    assert FUNCTIONS["max"] == ["a", "axis", "out", "keepdims"], "no initial="


def test_positions_from_the_host_are_sent_to_it_but_not_values() -> None:
    a = on_device(1.0, 2.0, 3.0)
    assert a[np.array([2, 0])].inner.tolist() == [3.0, 1.0]
    assert np.take(a, np.array([1])).inner.tolist() == [2.0]
    a[np.array([0])] = np.array([5.0])
    a[1:] = 0.0
    assert a.inner.tolist() == [5.0, 0.0, 0.0]
    with pytest.raises(TypeError):
        a[1:] = np.ones(2)
    assert np.asarray(np.ones(2), like=a).inner.tolist() == [1.0, 1.0]


def test_it_computes_with_numbers_and_its_own_kind() -> None:
    a = on_device(1.0, 2.0)
    for found, wanted in (
        (a + 1, [2.0, 3.0]),
        (2 * a, [2.0, 4.0]),
        (a * np.float64(3), [3.0, 6.0]),
        (np.concatenate([a, a]), [1.0, 2.0, 1.0, 2.0]),
        (a[a > 1], [2.0]),
        (a[np.array([1])], [2.0]),
        (a.reshape(2, 1), [[1.0], [2.0]]),
    ):
        assert type(found) is DeviceArray
        assert found.inner.tolist() == wanted
    out = on_device(0.0, 0.0)
    assert np.exp(a, out=out) is out  # type: ignore[call-overload]
    np.testing.assert_array_equal(out.inner, np.exp([1.0, 2.0]))


def test_results_without_axes_stay_arrays() -> None:
    a = on_device(1.0, 2.0)
    for found in (a[0], a.sum(), np.sum(a), np.add.reduce(a), np.dot(a, a), np.max(a) + 1, a.real[0]):
        assert type(found) is DeviceArray
        assert type(found.inner) is np.ndarray
        assert found.shape == ()


@pytest.mark.parametrize(
    ("look", "name"),
    [
        (bool, "bool"),
        (float, "float"),
        (int, "int"),
        (complex, "complex"),
        (lambda a: a.item(), "item"),
        (lambda a: a.tolist(), "tolist"),
        (lambda a: a.get(), "get"),
    ],
)
def test_a_look_at_values_is_counted(look: Any, name: str) -> None:
    a = on_device(1.0)[0]
    DeviceArray.waits.clear()
    look(a)
    assert dict(DeviceArray.waits) == {name: 1}
    DeviceArray.waits.clear()
    _ = a + 1, a.shape, a.dtype, a.ndim
    assert not DeviceArray.waits


@pytest.mark.parametrize("name", ["flat", "tobytes", "ctypes", "tofile", "dumps"])
def test_its_memory_cannot_be_read(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute {name!r}"):
        getattr(on_device(1.0), name)


@pytest.mark.parametrize(
    "look",
    [
        lambda a: a[a > 1],
        lambda a: a[:, a[0] > 1],
        np.nonzero,
        lambda a: a.nonzero(),
        np.unique,
        lambda a: np.repeat(a[0], DeviceArray(np.array([1, 2]))),
    ],
)
def test_a_shape_that_depends_on_values_is_waited_for(look: Any) -> None:
    a = DeviceArray(np.array([[1.0, 2.0]] * 2))
    before = DeviceArray.waits["shape"]
    look(a)
    assert DeviceArray.waits["shape"] == before + 1


def test_a_comparison_of_whole_arrays_stays_on_the_device() -> None:
    a = on_device(1.0, 2.0)
    for found in (np.allclose(a, a), np.array_equal(a, a)):
        assert type(found) is DeviceArray
        assert found.inner.dtype == bool
