"""`pullback.scipy.ndimage` against SciPy, and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage as theirs

import pullback
from pullback import func
from pullback.autograd import gradcheck, gradgradcheck
from pullback.scipy import ndimage

from .grid_checks import OfTensors, check_adjoint, check_derivatives, complex_numbers, numbers, same, same_signatures

ours: Any = OfTensors(ndimage)
MODES = ("reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap", "wrap")
modes = pytest.mark.parametrize("mode", MODES)
pytestmark = pytest.mark.filterwarnings("ignore:It is recommended:UserWarning", "ignore:promoting:UserWarning")
X = numbers(3, 4)


def test_arguments_are_scipys() -> None:
    same_signatures(ours, theirs)


@modes
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_correlations_along_an_axis(size: int, mode: str) -> None:
    for n in (1, 2, 5):
        x, w = complex_numbers(2, n), complex_numbers(size)
        for origin in range(-(size // 2), (size - 1) // 2 + 1):
            for name in ("correlate1d", "convolve1d"):
                for a, b in ((x, w), (x.real, w.real)):
                    args = (a, b, 1, None, mode, 0.7, origin)
                    same(getattr(ours, name)(*args), getattr(theirs, name)(*args))
        for origin in range(-(size // 2), (size + 1) // 2):
            args = (x, size, 1, None, mode, 0.7, origin)
            same(ours.uniform_filter1d(*args), theirs.uniform_filter1d(*args))


@modes
def test_correlations_of_images(mode: str) -> None:
    for shape in ((2, 1), (2, 5), (4, 3)):
        x = complex_numbers(*shape)
        for size in ((1, 1), (2, 3), (3, 4), (1, 7)):
            w = numbers(*size)
            for name in ("correlate", "convolve"):
                same(getattr(ours, name)(x, w, None, mode, 0.7), getattr(theirs, name)(x, w, None, mode, 0.7))
                same(getattr(ours, name)(x.real, w + 1j, None, mode), getattr(theirs, name)(x.real, w + 1j, None, mode))
    check_derivatives(lambda x, w: ours.correlate1d(x, w, 0, mode=mode, cval=0.7), complex_numbers(3, 2), numbers(5))
    check_derivatives(lambda x, w: ours.convolve(x, w, mode=mode, cval=0.7), X, numbers(2, 5))
    check_derivatives(lambda x: ours.uniform_filter(x, (2, 5), mode=mode, cval=0.7), X)


@modes
def test_gaussian_filters(mode: str) -> None:
    for n in (1, 2, 6):
        x = numbers(2, n)
        for sigma in (0.5, 1.3):
            for order in range(4):
                args = (x, sigma, -1, order, None, mode, 0.7)
                same(ours.gaussian_filter1d(*args), theirs.gaussian_filter1d(*args))
            args = (x, (sigma, 0.7), (1, 0), None, mode, 0.7)
            same(ours.gaussian_filter(*args), theirs.gaussian_filter(*args))
            for name in ("gaussian_laplace", "gaussian_gradient_magnitude"):
                same(getattr(ours, name)(x, sigma, None, mode, 0.7), getattr(theirs, name)(x, sigma, None, mode, 0.7))
        for name in ("laplace", "sobel", "prewitt"):
            same(getattr(ours, name)(x, mode=mode, cval=0.7), getattr(theirs, name)(x, mode=mode, cval=0.7))
            check_adjoint(
                lambda x, name=name: getattr(ours, name)(x, mode=mode),
                lambda x, name=name: getattr(theirs, name)(x, mode=mode),
                x,
            )
    check_derivatives(lambda x, s: ours.gaussian_filter(x, s, (0, 2), mode=mode, cval=0.7), X, np.array([0.6, 0.9]))
    check_derivatives(lambda x, s: ours.gaussian_gradient_magnitude(x, s, mode=mode), X[:2, :3], np.array(0.7))
    check_derivatives(lambda x, s: ours.gaussian_laplace(x, s, mode=mode), X[:2, :3], np.array(0.7))


def test_some_axes_and_a_flat_image() -> None:
    x = numbers(3, 4, 5)
    same(ours.gaussian_filter(x, 1.0, axes=(0, 2)), theirs.gaussian_filter(x, 1.0, axes=(0, 2)))
    same(ours.gaussian_laplace(x, 1.0, axes=(0, 2)), theirs.gaussian_laplace(x, 1.0, axes=(0, 2)))
    w = np.arange(6.0).reshape(2, 3)
    for axes in ((0, 2), (2, 0)):
        same(ours.correlate(x, w, axes=axes), theirs.correlate(x, w, axes=axes))
    flat = pullback.zeros(3, 4, dtype=pullback.float64, requires_grad=True)
    ours.gaussian_gradient_magnitude(flat, 1.0).sum().backward()
    assert not flat.grad.numpy().any()
    nan = np.where(np.arange(60).reshape(x.shape) == 7, np.nan, x)
    same(ours.convolve(nan, np.ones((3, 3, 3))), theirs.convolve(nan, np.ones((3, 3, 3))))


@modes
def test_filters_that_pick(mode: str) -> None:
    for shape in ((2, 1), (3, 5)):
        x = numbers(*shape)
        for size in (1, 2, (1, 4)):
            for name in ("maximum_filter", "minimum_filter", "median_filter"):
                given = {"mode": mode, "cval": 0.1}
                same(getattr(ours, name)(x, size, **given), getattr(theirs, name)(x, size, **given))
            same(ours.percentile_filter(x, 30, size, mode=mode), theirs.percentile_filter(x, 30, size, mode=mode))
            same(ours.rank_filter(x, -1, size, mode=mode), theirs.rank_filter(x, -1, size, mode=mode))
            for name in ("erosion", "dilation", "opening", "closing"):
                mine, scipys = (getattr(m, f"grey_{name}") for m in (ours, theirs))
                same(mine(x, size, mode=mode, cval=0.1), scipys(x, size, mode=mode, cval=0.1))
    check_derivatives(lambda x: ours.median_filter(x, 3, mode=mode, cval=0.1), X)
    check_derivatives(lambda x: ours.grey_opening(x, 3, mode=mode), X)
    check_derivatives(lambda x: ours.maximum_filter1d(x, 3, mode=mode, cval=0.1), X)


@modes
@pytest.mark.parametrize("order", range(6))
def test_images_between_pixels(order: int, mode: str) -> None:
    x = complex_numbers(4, 5)
    for n in (1, 2, 5, 9):
        line, q = numbers(n), -2.5 * n - 3 + (6 * n + 6) * numbers(1, 40, low=0.0)
        for prefilter in (True, False):
            args = (line, q, None, order, mode, 0.7, prefilter)
            same(ours.map_coordinates(*args), theirs.map_coordinates(*args))
        if order > 1:
            f, g = (lambda x, m=m: m.spline_filter1d(x, order, 1, mode=mode) for m in (ours, theirs))
            check_adjoint(f, g, complex_numbers(2, n))
            same(f(line[None]), g(line[None]))
    m, offset = np.array([[0.93, 0.21], [-0.13, 1.07]]), np.array([0.31, -0.23])
    for matrix in (m, [0.7, 1.3], np.c_[m, offset]):
        args = (x, matrix, offset, (3, 6), None, order, mode, 0.7)
        same(ours.affine_transform(*args), theirs.affine_transform(*args))
    args = (x, (0.3, -1.2), None, order, mode, 0.7)
    same(ours.shift(*args), theirs.shift(*args))
    for factor in (1.7, 0.6, (2, 1), 3):
        for grid in (False, True):
            image = x.real if grid else x  # SciPy drops grid_mode for complex images
            mine, scipys = (m.zoom(image, factor, None, order, mode, 0.7, grid_mode=grid) for m in (ours, theirs))
            same(mine, scipys)
    for angle in (0, 30, 90, 180, -45.5):
        for whole in (True, False):
            args = (x, angle, (1, 0), whole, None, order, mode, 0.7)
            same(ours.rotate(*args), theirs.rotate(*args))


@modes
@pytest.mark.parametrize("order", range(6))
def test_derivatives_between_pixels(order: int, mode: str) -> None:
    q = 0.1 + 2.8 * numbers(2, 3, low=0.0)
    q[:, 1] -= 3
    q[:, 2] += 4
    check_derivatives(lambda x, q: ours.map_coordinates(x, q, order=order, mode=mode, cval=0.7), numbers(4, 5), q)
    check_derivatives(lambda q: ours.map_coordinates(complex_numbers(4, 5), q, order=order, mode=mode), q, second=False)
    if order in (1, 3):
        m, offset = np.array([[0.93, 0.21], [-0.13, 1.07]]), np.array([0.31, -0.23])
        f = lambda x, m, o: ours.affine_transform(x, m, o, (2, 3), order=order, mode=mode, cval=0.7)  # noqa: E731
        check_derivatives(f, X, m, offset)
    if order == 3:
        check_derivatives(lambda x, a: ours.rotate(x, a, reshape=False, mode=mode), X, np.array(31.0))
        check_derivatives(lambda x, s: ours.shift(x, s, mode=mode), X, np.array([0.3, -1.2]))
        check_adjoint(lambda x: ours.zoom(x, 1.7, mode=mode), lambda x: theirs.zoom(x, 1.7, mode=mode), X)


@modes
@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("prefilter", [True, False])
def test_derivatives_beyond_the_border(order: int, mode: str, prefilter: bool) -> None:
    """A spline reaches over the edge by half its width, and a point may lie anywhere outside."""
    how = {"order": order, "mode": mode, "cval": 0.7, "prefilter": prefilter}
    calls = (
        lambda m, x: m.map_coordinates(x, [[-0.4, 2.3, 9.0, -7.0, 4.4], [0.3, 4.6, -0.2, 2.0, -30.0]], **how),
        lambda m, x: m.shift(x, (0.7, -2.6), **how),
        lambda m, x: m.affine_transform(x, [1.3, 0.8], (-1.2, 0.4), (5, 5), **how),
        lambda m, x: m.rotate(x, 37.0, **how),
        lambda m, x: m.zoom(x, (1.7, 0.6), **how),
    )
    for call in calls:
        for x in (numbers(3, 5), complex_numbers(3, 5)):
            same(call(ours, x), call(theirs, x))
            check_adjoint(lambda x, call=call: call(ours, x), lambda x, call=call: call(theirs, x), x)
    grids = [lambda x, m=m: m.zoom(x, 2.4, grid_mode=True, **how) for m in (ours, theirs)]
    check_adjoint(*grids, numbers(3, 5))
    q = np.array([[-0.4, 0.45, 3.4, 4.6, -1.7, 9.2, -20.3]])  # no knots, where derivatives jump
    f = lambda q: ours.map_coordinates(numbers(4), q, **how)  # noqa: E731
    assert gradcheck(f, [pullback.tensor(q, requires_grad=True)], check_forward_ad=True)
    if order > 2:
        assert gradgradcheck(f, [pullback.tensor(q, requires_grad=True)])


def test_solids_and_precisions() -> None:
    x = numbers(3, 4, 5)
    same(ours.rotate(x, 20, axes=(2, 0)), theirs.rotate(x, 20, axes=(2, 0)))
    same(ours.zoom(x.astype("f"), 1.3), theirs.zoom(x.astype("f"), 1.3), 1e-5)
    same(ours.gaussian_filter(x.astype("f"), 1.0), theirs.gaussian_filter(x.astype("f"), 1.0), 1e-5)
    same(ours.spline_filter(x), theirs.spline_filter(x))
    assert ours.sobel(x, output=np.float32).dtype == pullback.float32
    whole = func.vmap(lambda x: ours.rotate(x, 30.0, reshape=False))(pullback.tensor(x))
    for row, one in zip(whole, x, strict=True):
        same(row, theirs.rotate(one, 30.0, reshape=False))


def test_factors_of_fourier_transforms() -> None:
    z = complex_numbers(3, 4)
    for name, width in (("gaussian", 0.5), ("uniform", 2.0), ("ellipsoid", 2.0), ("shift", (0.3, 1.0))):
        mine, scipys = (getattr(m, f"fourier_{name}") for m in (ours, theirs))
        same(mine(z, width), scipys(z, width))
        check_derivatives(lambda z, mine=mine, width=width: mine(z, width), z)


def test_bad_input() -> None:
    x = pullback.tensor(X, requires_grad=True)
    with pytest.raises(RuntimeError, match="boundary mode not supported"):
        ours.correlate1d(x, [1.0, 2.0], mode="spam")
    with pytest.raises(ValueError, match="origin"):
        ours.correlate1d(x, [1.0, 2.0], origin=5)
    with pytest.raises(RuntimeError, match="spline order not supported"):
        ours.zoom(x, 2.0, order=7)
    with pytest.raises(RuntimeError, match="coordinate array"):
        ours.map_coordinates(x, numbers(3, 2))
    with pytest.raises(RuntimeError, match="affine matrix"):
        ours.affine_transform(x, numbers(3, 3)[:, :1])
    with pytest.raises(TypeError, match="output must be None or a dtype"):
        ours.laplace(x, output=np.zeros((3, 4)))
    with pytest.raises(TypeError, match="setting"):
        ours.zoom(x, pullback.tensor(2.0, requires_grad=True))
    with pytest.raises(RuntimeError, match="sequence argument"):
        ours.gaussian_filter(x, [1.0, 2.0, 3.0])
    with pytest.raises(NotImplementedError, match="structure"):
        ours.grey_erosion(x, structure=np.ones((3, 3)))
    with pytest.raises(AttributeError, match="numbers of regions"):
        ours.label  # noqa: B018 - the access raises
    assert x.grad is None
    assert np.array_equal(x.detach().numpy(), X)


def test_a_size_that_is_negative_is_told() -> None:
    for factors in (-1.0, (1.0, -2.0)):
        with pytest.raises(ValueError, match=r"ndimage\.zoom: expected factors that are not negative"):
            ours.zoom(numbers(4, 5), factors)
        with pytest.raises(ValueError, match="negative"):
            theirs.zoom(numbers(4, 5), factors)


def test_an_axis_is_filtered_once() -> None:
    for m in (ours, theirs):
        for call in (m.uniform_filter, m.laplace):
            with pytest.raises(ValueError, match="axes must be unique"):
                call(numbers(4, 5), axes=(0, -2))


EMPTY = {
    **{name: lambda m, x, name=name: getattr(m, name)(x) for name in ("sobel", "prewitt", "laplace", "spline_filter")},
    **{
        f"{mode} {n}": lambda m, x, n=n, mode=mode: getattr(m, n)(x, 2, mode=mode)
        for mode in MODES
        for n in ("gaussian_filter", "uniform_filter")
    },
    "correlate1d": lambda m, x: m.correlate1d(x, [1.0, 2.0, 1.0], 0),
    "uniform_filter1d": lambda m, x: m.uniform_filter1d(x, 3, 0),
    "gaussian_laplace": lambda m, x: m.gaussian_laplace(x, 1.0),
    "spline_filter1d": lambda m, x: m.spline_filter1d(x, axis=0),
    "shift": lambda m, x: m.shift(x, 0.5),
    "affine_transform": lambda m, x: m.affine_transform(x, [1.0, 1.0]),
    "zoom": lambda m, x: m.zoom(x, 2.0),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_an_image_without_pixels(name: str, shape: tuple[int, int]) -> None:
    x = pullback.tensor(np.zeros(shape), requires_grad=True)
    out = EMPTY[name](ours, x)
    same(out, EMPTY[name](theirs, np.zeros(shape)))
    out.sum().backward()
    assert x.grad.shape == shape


def test_nothing_stands_between_no_pixels() -> None:
    with pytest.raises(ValueError, match="expected an image that has pixels"):
        ours.map_coordinates(np.zeros((0, 3)), [[0.0], [0.0]])
