"""Sliding windows, and linear maps along one axis, held to loops; each adjoint by the product <u, A v> = <A^T u, v>."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from pullback.kernels import sliding, taps
from pullback.kernels.sliding import Slide

Array = np.ndarray[Any, Any]

# How the window moves, its size, and the size of the image: overlapping, apart, dilated, padded unevenly, cut short.
SLIDES = [
    (Slide((1,), ((0, 0),), (1,)), (3,), (7,)),
    (Slide((3,), ((1, 1),), (1,)), (2,), (8,)),
    (Slide((1,), ((2, 0),), (2,)), (3,), (6,)),
    (Slide((2,), ((0, -1),), (1,)), (2,), (7,)),
    (Slide((1, 2), ((1, 0), (0, 1)), (1, 1)), (2, 3), (4, 6)),
    (Slide((1, 1), ((0, 0), (0, 0)), (1, 1)), (4, 5), (5, 5)),  # more places in the window than of it
]


@pytest.mark.parametrize(("slide", "kernel", "shape"), SLIDES)
def test_a_window_sees_the_elements_under_it_and_gives_them_back(slide: Slide, kernel: Any, shape: Any) -> None:
    rng = np.random.default_rng(0)
    image = rng.normal(size=(2, *shape))
    padded, places = sliding.pad(image, slide), slide.places(shape, kernel)
    np.testing.assert_array_equal(padded[slide.inside(shape)], image)
    assert padded.sum() == pytest.approx(image.sum())
    seen = sliding.windows(padded, slide, kernel, places)
    assert seen.shape == (2, *kernel, *places)
    total = np.zeros_like(padded)
    back = rng.normal(size=seen.shape)
    for position, place in itertools.product(np.ndindex(*kernel), np.ndindex(*places)):
        at = tuple(d * i + s * j for d, i, s, j in zip(slide.dilation, position, slide.stride, place, strict=True))
        np.testing.assert_array_equal(seen[(slice(None), *position, *place)], padded[(slice(None), *at)])
        total[(slice(None), *at)] += back[(slice(None), *position, *place)]
    for position, index in sliding.offsets(slide, kernel, places):
        np.testing.assert_array_equal(padded[index], seen[(slice(None), *position)])
    found = np.zeros_like(padded)
    sliding.add_windows(found, back, slide, kernel, places)
    np.testing.assert_allclose(found, total, rtol=1e-12, atol=1e-12)


def test_padding_has_a_value_and_is_left_out_where_there_is_none() -> None:
    image = np.ones((1, 2))
    assert sliding.pad(image, Slide((1,), ((0, 0),), (1,))) is image
    padded = sliding.pad(image, Slide((1,), ((1, 2),), (1,)), -np.inf)
    assert padded.tolist() == [[-np.inf, 1.0, 1.0, -np.inf, -np.inf]]


def dense(m: taps.Taps) -> Array:
    """A map as a matrix."""
    found = np.zeros((m.outputs, m.inputs))
    for i, (row, column) in enumerate(zip(m.rows, m.columns, strict=True)):
        found[row, column] += 1 if m.weights is None else m.weights[i]
    return found


def maps() -> dict[str, taps.Taps]:
    """A map of every form."""
    rng = np.random.default_rng(1)
    columns = np.clip(np.arange(9)[:, None] // 2 + np.arange(2), 0, 4)
    many = np.sort(rng.permuted(np.tile(np.arange(40), (3, 1)), axis=1)[:, :20])
    return {
        "weights": taps.of_rows(9, 5, columns, np.stack([np.linspace(0, 1, 9), np.linspace(1, 0, 9)], 1)),
        "mirrored borders": taps.picked(5, np.array([2, 1, 0, 1, 2, 3, 4, 3, 2])),
        "one input for all": taps.picked(5, np.zeros(4, np.int64)),
        "no pattern": taps.picked(30, rng.integers(0, 30, 60)),
        "windows": taps.runs(7, np.arange(0, 6, 2), np.arange(3, 9, 2), evenly=True),
        "uneven windows": taps.runs(6, np.array([0, 1, 3]), np.array([2, 4, 6])),
        "windows over the border": taps.runs(5, np.array([-2, 1, 4]), np.array([1, 4, 7])),
        "the total": taps.runs(6, np.array([0]), np.array([6])),
        "an empty output": taps.of_rows(3, 4, np.array([[0], [1], [2]]), np.array([[1.0], [0.0], [2.0]])),
        "many inputs": taps.of_rows(3, 40, many, rng.normal(size=(3, 20))),
    }


@pytest.mark.parametrize("name", maps())
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_map_is_its_matrix_along_an_axis(name: str, axis: int) -> None:
    m = maps()[name]
    shape = [2, 3, 2]
    shape[axis] = m.inputs
    x = np.random.default_rng(2).normal(size=shape)
    expected = np.moveaxis(np.tensordot(dense(m), x, (1, axis)), 0, axis)
    np.testing.assert_allclose(m(x, axis), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(dense(m.transposed), dense(m).T)
    assert m.transposed.transposed is m
    back = np.moveaxis(np.tensordot(dense(m).T, expected, (1, axis)), 0, axis)
    np.testing.assert_allclose(m.transposed(expected, axis), back, rtol=1e-12, atol=1e-12)


def test_maps_of_several_axes_and_half_precision() -> None:
    short, long = maps()["windows"], maps()["mirrored borders"]
    x = np.random.default_rng(3).normal(size=(2, 7, 4, 5))
    expected = np.einsum("ai,bj,nikj->nakb", dense(short), dense(long), x)
    np.testing.assert_allclose(taps.applied([short, None, long], x), expected, rtol=1e-12, atol=1e-12)
    whole = taps.applied([None, None], x)
    assert whole is not x
    np.testing.assert_array_equal(whole, x)
    half = np.ones((1, 4096), np.float16)
    total = taps.applied([taps.runs(4096, np.array([0]), np.array([4096]))], half)
    assert total.dtype == np.float16
    assert total.tolist() == [[4096.0]]
