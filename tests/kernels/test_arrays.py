"""Masks, planes and positions: choosing, reading and adding on arrays alone, each held to a loop."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from pullback.kernels import masks, planes, positions

Array = np.ndarray[Any, Any]


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


# Masks ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, masks._LARGE - 1, masks._LARGE, masks._LARGE + 7])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16", "i8"])
def test_a_mask_chooses_as_where_does(size: int, dtype: str) -> None:
    rng = np.random.default_rng(1)
    mask, value, other = rng.random(size) < 0.4, (rng.normal(size=size) * 9).astype(dtype), rng.normal(size=size) * 9
    value[:2] = 0
    for second in (other.astype(dtype), 3, other.astype(dtype)[:1].reshape(())):
        found, expected = masks.either(mask, value, second), np.where(mask, value, second)
        assert found.dtype == expected.dtype == value.dtype or not isinstance(second, np.ndarray)
        assert found.tobytes() == expected.astype(found.dtype).tobytes()
    np.testing.assert_array_equal(masks.only(mask, value), np.where(mask, value, 0))


@pytest.mark.parametrize("size", [4, masks._LARGE])
def test_what_is_not_chosen_may_be_infinite_or_not_a_number(size: int) -> None:
    mask = np.arange(size) % 2 == 0
    odd = np.resize([1.0, np.inf, -2.0, np.nan], size)
    assert masks.only(mask, odd).tolist() == np.resize([1.0, 0.0, -2.0, 0.0], size).tolist()
    assert masks.either(mask, odd, -0.0).tobytes() == np.resize([1.0, -0.0, -2.0, -0.0], size).tobytes()
    assert odd[1] == np.inf  # nothing was written to


def test_a_mask_of_another_shape_is_broadcast() -> None:
    value = random(64, 64)
    mask = np.arange(64) % 3 == 0
    np.testing.assert_array_equal(masks.either(mask, value, 1.0), np.where(mask, value, 1.0))
    np.testing.assert_array_equal(masks.only(mask[:, None], value), np.where(mask[:, None], value, 0))


# Planes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lead", "index_lead", "plane", "places"),
    [((2,), (2,), (3, 4), (2, 2)), ((), (), (5,), (3,)), ((2, 3), (3,), (4,), (6,)), ((1,), (4,), (2, 2), (1, 3))],
)
def test_planes_are_read_and_added_to_at_flat_positions(
    lead: tuple[int, ...], index_lead: tuple[int, ...], plane: tuple[int, ...], places: tuple[int, ...]
) -> None:
    space, rng = len(plane), np.random.default_rng(2)
    values, index = rng.normal(size=(*lead, *plane)), rng.integers(0, np.prod(plane), size=(*index_lead, *places))
    read = planes.from_planes(values, index, space)
    whole = np.broadcast_shapes(lead, index_lead)
    flat = np.broadcast_to(values, (*whole, *plane)).reshape(*whole, -1)
    at = np.broadcast_to(index, (*whole, *places))
    for where in np.ndindex(*whole):
        for place in np.ndindex(*places):
            assert read[(*where, *place)] == flat[where][at[(*where, *place)]]
    seen = rng.normal(size=read.shape)
    added, expected = planes.into_planes(seen, index, plane), np.zeros_like(flat)
    for where in np.ndindex(*whole):
        for place in np.ndindex(*places):
            expected[where][at[(*where, *place)]] += seen[(*where, *place)]
    np.testing.assert_allclose(added, expected.reshape(*whole, *plane), rtol=1e-14)


def test_half_precision_is_added_up_in_single() -> None:
    ones = np.ones(4096, np.float16)
    found = planes.into_planes(ones, np.zeros(4096, np.int64), (2,))
    assert found.dtype == np.float16
    assert found.tolist() == [4096.0, 0.0]  # in half precision the sum would stop at 2048


# Positions ------------------------------------------------------------------------------------------------------------

# Few values; many for few places; many for many, without repetition; long rows; very long ones.
SIZES = [((5, 3), 4), ((4, 2), 3000), ((9000, 3), 9000), ((50, 12), 700), ((3, positions._VERY_LONG), 30)]


@pytest.mark.parametrize(("shape", "count"), SIZES)
@pytest.mark.parametrize("axis", [0, 1])
def test_every_occurrence_of_a_position_is_added(shape: tuple[int, int], count: int, axis: int) -> None:
    rng = np.random.default_rng(3)
    if axis:
        shape = shape[::-1]
    n = shape[axis]
    index = rng.permutation(n) if n == count else rng.integers(-n, n, size=count)
    values = rng.normal(size=(count, shape[1 - axis])) if not axis else rng.normal(size=(shape[0], count))
    out = rng.normal(size=shape)
    expected = out.copy()
    for k, place in enumerate(index):
        if axis:
            expected[:, place] += values[:, k]
        else:
            expected[place] += values[k]
    positions.add_at(out, (None,) * axis + (index,), values)
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("count", [3, 5000])
@pytest.mark.parametrize("adjacent", [True, False])
def test_positions_along_two_axes(count: int, adjacent: bool) -> None:
    rng = np.random.default_rng(4)
    i, j = rng.integers(0, 3, size=count), rng.integers(0, 4, size=count)
    out = np.zeros((3, 4, 2)) if adjacent else np.zeros((3, 2, 4))
    indices = (i, j) if adjacent else (i, None, j)
    assert positions.indexed_shape(out.shape, indices) == (count, 2)
    values = rng.normal(size=(count, 2))
    expected = out.copy()
    for k in range(count):
        expected[(i[k], j[k]) if adjacent else (i[k], slice(None), j[k])] += values[k]
    positions.add_at(out, indices, values)
    np.testing.assert_allclose(out, expected, rtol=1e-10)


def test_a_position_outside_is_refused_and_nothing_is_added() -> None:
    for count in (2, 5000):
        out = np.zeros(3)
        with pytest.raises(IndexError):
            positions.add_at(out, (np.full(count, 3),), np.ones(count))
        assert not out.any()


def test_positions_are_checked_and_counted_from_the_start() -> None:
    index = np.array([0, -1, 2])
    assert positions.positions("take", index, 3, negative=True).tolist() == [0, 2, 2]
    assert positions.positions("take", np.array([0, 2]), 3).tolist() == [0, 2]
    with pytest.raises(IndexError, match=r"take\(\): index -1 is out of bounds for a dimension of size 3"):
        positions.positions("take", index, 3)
    with pytest.raises(RuntimeError, match=r"index 3 is out of bounds.*\[-3, 2\]"):
        positions.positions("take", np.array([3]), 3, RuntimeError, negative=True)
    with pytest.raises(RuntimeError, match="an index of int64 or int32"):
        positions.positions("take", np.array([0.0]), 3)
    with pytest.raises(TypeError, match="an integer Tensor"):
        positions.positions("take", [0], 3)
    assert positions.vector("take", np.array(1), 3).shape == (1,)
    with pytest.raises(IndexError, match="a vector"):
        positions.vector("take", np.array([[1]]), 3)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_flat_positions_along_an_axis(dim: int) -> None:
    shape, rng = (3, 4, 5), np.random.default_rng(5)
    index = rng.integers(0, shape[dim], size=(2, 3, 4))
    flat = positions.along(index, dim, shape)
    for place in itertools.product(*map(range, index.shape)):
        whole = [*place]
        whole[dim] = int(index[place])
        assert flat[place] == np.ravel_multi_index(tuple(whole), shape)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)])
@pytest.mark.parametrize("mask_axes", [(0, 1, 2), (2, 1, 0), (2, 0, 1)])
@pytest.mark.parametrize("other", [0.0, "array"])
def test_selected_elements_lie_in_the_order_of_where(axes: Any, mask_axes: Any, other: Any) -> None:
    """Also in large arrays, which are selected by their bits."""
    rng = np.random.default_rng(0)
    value = np.empty((17, 17, 17)).transpose(axes)
    value[...] = rng.normal(size=value.shape)
    mask = (rng.random(value.shape) < 0.5).transpose(mask_axes)
    second = rng.normal(size=value.shape) if other == "array" else other
    for found, expected in (
        (masks.either(mask, value, second), np.where(mask, value, second)),
        (masks.only(mask, value), np.where(mask, value, 0)),
    ):
        np.testing.assert_array_equal(found, expected)
        assert found.strides == expected.strides
