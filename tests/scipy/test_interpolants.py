"""`pullback.scipy.interpolate` against SciPy, and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as theirs

import pullback
from pullback import func
from pullback.scipy import interpolate

from .grid_checks import OfTensors, check_derivatives, numbers, same, same_signatures

ours: Any = OfTensors(interpolate)
X = np.array([0.0, 0.7, 1.5, 2.8, 4.0, 5.0])
Y = numbers(6)
Q = np.array([0.3, 1.2, 2.0, 3.9, 5.5])
BCS: list[Any] = [
    "not-a-knot",
    "natural",
    "clamped",
    "periodic",
    ((1, 0.5), (2, -0.3)),
    ("natural", "not-a-knot"),
]


def test_arguments_are_scipys() -> None:
    same_signatures(ours, theirs)


@pytest.mark.parametrize("bc", BCS, ids=str)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_cubic_spline_is_scipys(n: int, bc: Any) -> None:
    x, y = np.sort(numbers(n, seed=2)), numbers(n, seed=3)
    if bc == "periodic":
        y[-1] = y[0]
    a, b = ours.CubicSpline(x, y, bc_type=bc), theirs.CubicSpline(x, y, bc_type=bc)
    q = numbers(3, 2, seed=4)
    same(a.c, b.c, 1e-10)
    for nu in range(5):
        same(a(q, nu), b(q, nu), 1e-9)
    same(a(q, extrapolate=False), b(q, extrapolate=False), 1e-9)
    same(a.derivative(2)(q), b.derivative(2)(q), 1e-9)
    same(a.antiderivative(2)(q), b.antiderivative(2)(q), 1e-9)
    same(a.integrate(-0.3, 1.7), b.integrate(-0.3, 1.7), 1e-9)
    same(a.integrate(1.7, -0.3), b.integrate(1.7, -0.3), 1e-9)


def test_cubic_spline_of_many_axes_and_complex_values() -> None:
    y = numbers(2, 6, 3) + 1j * numbers(2, 6, 3, seed=1)
    a, b = ours.CubicSpline(X, y, axis=1), theirs.CubicSpline(X, y, axis=1)
    same(a(numbers(4, 2, low=0.0)), b(numbers(4, 2, low=0.0)))
    check_derivatives(lambda y: ours.CubicSpline(X, y)(Q), y[0, :, 0])


@pytest.mark.parametrize("bc", ["not-a-knot", "natural", "clamped"])
def test_derivatives_of_cubic_splines(bc: str) -> None:
    check_derivatives(lambda x, y, q: ours.CubicSpline(x, y, bc_type=bc)(q), X, Y, Q)


def test_derivatives_of_periodic_splines_end_values_and_integrals() -> None:
    def closed(x: Any, y: Any, q: Any) -> Any:
        return ours.CubicSpline(x, np.concatenate([y, y[:1]]), bc_type="periodic")(q)

    check_derivatives(closed, X, Y[:5], Q)
    check_derivatives(lambda v: ours.CubicSpline(X, Y, bc_type=((1, v[0]), (2, v[1])))(Q), np.array([0.3, -0.2]))
    check_derivatives(lambda y, a, b: ours.CubicSpline(X, y).integrate(a, b), Y, np.array(0.3), np.array(4.4))
    check_derivatives(lambda y, q: ours.CubicSpline(X, y).antiderivative()(q, 1), Y, Q)


def test_gradient_of_a_cubic_spline_by_the_query_is_its_derivative() -> None:
    q = pullback.tensor(Q, requires_grad=True)
    spline = ours.CubicSpline(X, Y)
    spline(q).sum().backward()
    np.testing.assert_allclose(q.grad.numpy(), theirs.CubicSpline(X, Y)(Q, 1), rtol=1e-12)


@pytest.mark.parametrize("name", ["PchipInterpolator", "Akima1DInterpolator"])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_local_cubics(name: str, n: int) -> None:
    x, y = np.sort(numbers(n, seed=2)), numbers(n, 2, seed=3)
    same(getattr(ours, name)(x, y)(Q - 2), getattr(theirs, name)(x, y)(Q - 2), 1e-9)
    flat = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    same(getattr(ours, name)(X, flat)(Q), getattr(theirs, name)(X, flat)(Q))
    if n == 7:
        check_derivatives(lambda x, y, q: getattr(ours, name)(x, y, extrapolate=True)(q), X, Y, Q)
    t = pullback.tensor(flat, requires_grad=True)
    getattr(ours, name)(X, t)(Q[:3]).sum().backward()
    assert np.isfinite(t.grad.numpy()).all()


def test_makima_and_hermite() -> None:
    same(ours.Akima1DInterpolator(X, Y, method="makima")(Q), theirs.Akima1DInterpolator(X, Y, method="makima")(Q))
    slopes = numbers(6, seed=9)
    same(ours.CubicHermiteSpline(X, Y, slopes)(Q), theirs.CubicHermiteSpline(X, Y, slopes)(Q))
    check_derivatives(lambda x, y, s, q: ours.CubicHermiteSpline(x, y, s)(q), X, Y, slopes, Q)
    same(ours.pchip_interpolate(X, Y, Q, 1), theirs.pchip_interpolate(X, Y, Q, 1))


@pytest.mark.parametrize("extrapolate", [True, False, "periodic"])
def test_piecewise_polynomials(extrapolate: Any) -> None:
    c = numbers(4, 5, 2)
    for x in (X, X[::-1].copy()):
        if extrapolate == "periodic" and x[0] > x[-1]:
            continue
        a, b = (m.PPoly(c, x, extrapolate) for m in (ours, theirs))
        for nu in range(5):
            same(a(Q * 1.5 - 1, nu), b(Q * 1.5 - 1, nu))
    a, b = (m.PPoly(c, X, extrapolate) for m in (ours, theirs))
    same(a.integrate(0.3, 9.0), b.integrate(0.3, 9.0))
    same(a.antiderivative(2)(Q), b.antiderivative(2)(Q))
    same(a(np.nan), b(np.nan))
    q = Q if extrapolate != False else Q[:4]  # noqa: E712 - one of three settings
    check_derivatives(lambda c, x, q: ours.PPoly(c, x, extrapolate)(q), c, X, q)


@pytest.mark.parametrize("bc", [None, "periodic"])
@pytest.mark.parametrize("k", range(6))
def test_interpolating_splines_are_scipys(k: int, bc: Any) -> None:
    if k < 2 and bc:
        return
    x, y = np.sort(numbers(9, seed=2)), numbers(2, 9, seed=3)
    if bc:
        y[:, -1] = y[:, 0]
    a, b = (m.make_interp_spline(x, y, k, bc_type=bc, axis=1) for m in (ours, theirs))
    q = x[0] + (x[-1] - x[0]) * numbers(3, 2, low=0.0)
    same(a.t, b.t)
    same(a.c, b.c, 1e-9)
    for nu in range(k + 2):
        same(a(q, nu), b(q, nu), 1e-8)
    same(a.integrate(x[1], x[-2]), b.integrate(x[1], x[-2]), 1e-9)
    if k and not bc:
        same(a.derivative()(q), b.derivative()(q), 1e-9)
        same(a.antiderivative(2)(q), b.antiderivative(2)(q), 1e-9)


@pytest.mark.parametrize("k", range(6))
def test_derivatives_of_interpolating_splines(k: int) -> None:
    check_derivatives(lambda x, y, q: ours.make_interp_spline(x, y, k)(q), X, Y, Q)


def test_interpolating_splines_with_conditions_and_knots() -> None:
    for bc in ("natural", "clamped", ([(1, 0.5)], [(2, 0.3)])):
        same(ours.make_interp_spline(X, Y, bc_type=bc)(Q), theirs.make_interp_spline(X, Y, bc_type=bc)(Q))
    check_derivatives(lambda v: ours.make_interp_spline(X, Y, bc_type=([(1, v[0])], [(2, v[1])]))(Q), Y[:2])
    t = np.r_[[0.0] * 4, 1.6, 3.1, [5.0] * 4]
    same(ours.make_interp_spline(X, Y, t=t)(Q), theirs.make_interp_spline(X, Y, t=t)(Q))
    inner = lambda m, q: ours.make_interp_spline(X, Y, t=np.concatenate([t[:4], m, t[-4:]]))(q)  # noqa: E731
    check_derivatives(inner, t[4:6], Q)


def test_splines_of_given_knots() -> None:
    t, c = np.array([0.0, 0.5, 1.0, 2.0, 3.5, 4.0, 5.0, 6.0]), numbers(4, 2)
    a, b = (m.BSpline(t, c, 3) for m in (ours, theirs))
    same(a(Q), b(Q))
    same(a.derivative(2)(Q), b.derivative(2)(Q))
    check_derivatives(lambda t, c, q: ours.BSpline(t, c, 3)(q), t, c, Q[1:4])
    check_derivatives(lambda t, c: ours.BSpline(t, c, 3).integrate(2.1, 3.3), t, c)
    element = [0.0, 1.0, 2.5, 3.0]
    same(ours.BSpline.basis_element(element)(Q), theirs.BSpline.basis_element(element)(Q))


KINDS: list[Any] = [
    "linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", 5,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_interp1d(kind: Any) -> None:
    x, y = X[[2, 0, 5, 1, 4, 3]], numbers(2, 6)
    q = np.array([[0.3, 1.2], [4.4, 2.8], [0.0, 5.0]])
    same(ours.interp1d(x, y, kind)(q), theirs.interp1d(x, y, kind)(q))
    same(ours.interp1d(x, y.T, kind, axis=0)(1.3), theirs.interp1d(x, y.T, kind, axis=0)(1.3))
    for fill in (7.0, (1.0, 2.0), "extrapolate"):
        a, b = (m.interp1d(x, y, kind, bounds_error=False, fill_value=fill) for m in (ours, theirs))
        same(a(q * 2 - 3.3), b(q * 2 - 3.3))
    with pytest.raises(ValueError, match="above the interpolation range"):
        ours.interp1d(x, y, kind)([9.0])
    check_derivatives(lambda x, y, q: ours.interp1d(x, y, kind=kind)(q), X, y, np.array([0.3, 1.2, 4.4]))


@pytest.mark.parametrize("x", [[0, 1, 1, 2.0], [0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 2.0], [0, 1, 1, 2]])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float32])
def test_lines_through_points_at_one_place(x: Any, dtype: Any) -> None:
    y, q = np.array([1, 2, 5, 6], dtype), np.array([0.0, 0.5, 1.0, 1.2, 2.0])
    with np.errstate(invalid="ignore", divide="ignore"):
        same(ours.interp1d(x, y)(q), theirs.interp1d(x, y)(q))
        same(ours.interp1d(x, y, fill_value="extrapolate")(q), theirs.interp1d(x, y, fill_value="extrapolate")(q))
    places, values = np.array([0.0, 1.0, 1.0, 2.0]), np.array([1.0, 2.0, 5.0, 6.0])
    check_derivatives(lambda y, q: ours.interp1d(places, y)(q), values, np.array([0.5, 1.2]))


def test_steps_are_constant_between_the_points() -> None:
    q = pullback.tensor(Q[:4], requires_grad=True)
    y = ours.interp1d(X, pullback.tensor(Y, requires_grad=True), "nearest")(q).sum()
    (slope,) = pullback.autograd.grad(y, q, allow_unused=True, materialize_grads=True)
    assert not slope.numpy().any()


GRID = (np.cumsum(numbers(6, low=0.5)), np.cumsum(numbers(7, low=0.5))[::-1].copy(), np.cumsum(numbers(6, low=0.6)))
POINTS = np.stack([g.min() + (g.max() - g.min()) * numbers(4, low=0.0, seed=i) for i, g in enumerate(GRID)], -1)


@pytest.mark.parametrize("method", ["linear", "nearest", "slinear", "cubic", "quintic", "pchip", "cubic_legacy"])
def test_regular_grids(method: str) -> None:
    v = numbers(6, 7, 6, 2)
    # SciPy's new spline methods iterate to a tolerance of 1e-6; its older ones solve, as ours do
    name = f"{method}_legacy" if method in ("slinear", "cubic", "quintic") else method
    for more in ({}, {"bounds_error": False, "fill_value": None}, {"bounds_error": False}):
        q = POINTS * (1.3 if more else 1.0)
        a = ours.RegularGridInterpolator(GRID, v, method, **more)
        b = theirs.RegularGridInterpolator(GRID, v, name, **more)
        same(a(q), b(q), 1e-9)
    same(ours.interpn(GRID, v, POINTS, method), b.__class__(GRID, v, name)(POINTS), 1e-9)
    with pytest.raises(ValueError, match="out of bounds"):
        ours.RegularGridInterpolator(GRID, v, method)([[9.0, 0.0, 0.0]])
    if method == "nearest":
        check_derivatives(lambda v: ours.RegularGridInterpolator(GRID[:2], v, method)(POINTS[:, :2]), v[:, :, 0, 0])
    elif method == "pchip":
        f = lambda v, q: ours.RegularGridInterpolator(GRID[:2], v, method)(q)  # noqa: E731
        check_derivatives(f, v[:, :, 0, 0], POINTS[:1, :2])
    else:
        g = lambda a, b, v, q: ours.RegularGridInterpolator((a, b), v, method)(q)  # noqa: E731
        check_derivatives(g, GRID[0], GRID[1], v[:, :, 0, 0], POINTS[:1, :2])


def test_derivatives_of_grid_splines_by_nu() -> None:
    v = numbers(6, 7)
    f = ours.RegularGridInterpolator(GRID[:2], v, "cubic")
    q = pullback.tensor(POINTS[:, :2], requires_grad=True)
    (slope,) = pullback.autograd.grad(f(q).sum(), q)
    np.testing.assert_allclose(f(POINTS[:, :2], nu=[0, 1]).numpy(), slope.numpy()[:, 1], rtol=1e-9, atol=1e-10)


KERNELS = [
    "linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic",
    "gaussian",
]  # fmt: skip


@pytest.mark.parametrize("neighbors", [None, 9])
@pytest.mark.parametrize("kernel", KERNELS)
def test_radial_basis_functions(kernel: str, neighbors: int | None) -> None:
    y, d, q = numbers(12, 2, low=0.0), numbers(12), numbers(5, 2, low=0.0, seed=4)
    a, b = (m.RBFInterpolator(y, d, neighbors, 0.1, kernel, 1.5) for m in (ours, theirs))
    same(a(q), b(q), 1e-8)
    f = lambda y, d, s, e, q: ours.RBFInterpolator(y, d, neighbors, s, kernel, e)(q)  # noqa: E731
    check_derivatives(f, y, d, np.array(0.1), np.array(1.5), q[:1], second=neighbors is None)


def test_radial_basis_functions_at_their_points() -> None:
    y, d = numbers(12, 2, low=0.0), numbers(12)
    same(ours.RBFInterpolator(y, d + 1j * d**2)(y), theirs.RBFInterpolator(y, d + 1j * d**2)(y), 1e-8)
    for kernel in KERNELS:
        f = ours.RBFInterpolator(y, d, kernel=kernel, epsilon=1.5)
        assert np.isfinite(func.hessian(lambda q, f=f: f(q).sum())(pullback.tensor(y[:1])).numpy()).all()


def test_bad_input_is_scipys() -> None:
    with pytest.raises(ValueError, match="strictly increasing"):
        ours.CubicSpline([0.0, 0.0, 1.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="finite"):
        ours.CubicSpline([0.0, 1.0, 2.0], [1.0, np.nan, 3.0])
    with pytest.raises(ValueError, match="at least"):
        ours.BSpline([0.0, 1.0], [1.0], 3)
    with pytest.raises(ValueError, match="incompatible"):
        ours.make_interp_spline([0.0, 1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="equal in length"):
        ours.interp1d([0.0, 1.0], [1.0])
    with pytest.raises(NotImplementedError, match="unsupported"):
        ours.interp1d([0.0, 1.0], [1.0, 2.0], "spam")
    with pytest.raises(ValueError, match="kernel"):
        ours.RBFInterpolator(numbers(5, 2), numbers(5), kernel="spam")
    with pytest.raises(ValueError, match="not defined"):
        ours.RegularGridInterpolator(GRID, numbers(6, 7, 6), "spam")


def test_integers_and_float32_become_double() -> None:
    whole = ours.CubicSpline([0, 1, 2, 3], pullback.tensor([0, 1, 4, 9]))
    same(whole(1.5), theirs.CubicSpline([0, 1, 2, 3], [0, 1, 4, 9])(1.5))
    y = pullback.tensor(Y.astype(np.float32), requires_grad=True)
    ours.CubicSpline(X, y)(Q).sum().backward()
    assert y.grad.dtype == pullback.float32


@pytest.mark.parametrize("name", ["UnivariateSpline", "NearestNDInterpolator", "splrep"])
def test_refusals_say_why(name: str) -> None:
    with pytest.raises(AttributeError, match="has no derivative"):
        getattr(ours, name)
    with pytest.raises(AttributeError, match="class Krogh"):
        ours.KroghInterpolator  # noqa: B018 - the access raises


PLACES: dict[str, Any] = {
    "CubicSpline": lambda q: ours.CubicSpline(X, Y)(q),
    "PchipInterpolator": lambda q: ours.PchipInterpolator(X, Y)(q),
    "Akima1DInterpolator": lambda q: ours.Akima1DInterpolator(X, Y)(q),
    "CubicHermiteSpline": lambda q: ours.CubicHermiteSpline(X, Y, Y)(q),
    "PPoly": lambda q: ours.PPoly(numbers(3, 5), X)(q),
    "PPoly.integrate": lambda q: ours.PPoly(numbers(3, 5), X).integrate(q[0], 1.0),
    "make_interp_spline": lambda q: ours.make_interp_spline(X, Y)(q),
    "BSpline.integrate": lambda q: ours.make_interp_spline(X, Y).integrate(0.5, q[0]),
    "interp1d": lambda q: ours.interp1d(X, Y)(q),
    "interpn": lambda q: ours.interpn((X,), Y, q[:, None]),
    "RBFInterpolator": lambda q: ours.RBFInterpolator(X[:, None], Y)(q[:, None]),
    "RBFInterpolator y": lambda q: ours.RBFInterpolator(q[:, None] + np.arange(3.0)[:, None], Y[:3]),
    "RBFInterpolator smoothing": lambda q: ours.RBFInterpolator(X[:, None], Y, smoothing=q[0]),
    "RBFInterpolator epsilon": lambda q: ours.RBFInterpolator(X[:, None], Y, kernel="gaussian", epsilon=q[0]),
}


@pytest.mark.parametrize("name", PLACES)
def test_complex_places_are_refused(name: str) -> None:
    q = np.array([1.0, 1.2, 2.0]) + 0.1j
    for given in (q, pullback.tensor(q, requires_grad=True)):
        with pytest.raises(TypeError, match=r"pullback\.scipy\.interpolate: .*: expected real numbers, found"):
            PLACES[name](given)


def test_a_grid_by_pchip_has_the_dtype_of_its_values() -> None:
    x, v = np.linspace(0, 1, 6, dtype=np.float32), np.float32([0, 1, 3, 2, 5, 4])
    for q in (np.float32([[0.2], [0.5]]), np.array([[0.2], [0.5]])):
        expected = theirs.RegularGridInterpolator((x,), v, method="pchip")(q)
        found = ours.RegularGridInterpolator((x,), pullback.tensor(v), method="pchip")(q)
        assert found.numpy().dtype == expected.dtype == np.float32
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
