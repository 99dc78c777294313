"""Interpolants of cubic pieces: from values and slopes at the knots, which they find in different ways."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.interpolate

from ...ops.shape.axes import movedim
from ..mirror import mirrors
from ..user_functions import bare
from .banded_systems import banded_solve
from .given import beside, double
from .piecewise import PPoly


def _prepared(x: Any, y: Any, axis: int) -> tuple[Any, Any, int]:
    y = double(y)
    axis %= y.ndim
    return double(x), movedim(y, axis, 0), axis


def _quotient(a: Any, b: Any, good: Any) -> Any:
    """``a / b`` where `good`, zero and without derivative elsewhere."""
    return np.where(good, a / np.where(good, b, 1.0), 0.0)


class _FromSlopes(PPoly):
    """A piecewise cubic with values y and slopes s at the knots."""

    def _set(self, x: Any, y: Any, s: Any, extrapolate: Any, axis: int) -> None:
        h = beside(np.diff(x), y.ndim)
        slope = np.diff(y, axis=0) / h
        t = (s[:-1] + s[1:] - 2 * slope) / h
        self.c = np.stack([t / h, (slope - s[:-1]) / h - t, s[:-1] + 0 * t, y[:-1] + 0 * t])
        self.x, self.extrapolate, self.axis = x, extrapolate, axis


@mirrors("interpolate.CubicHermiteSpline", derivative="the coefficients of each piece, in recorded operations")
class CubicHermiteSpline(_FromSlopes):
    """A piecewise cubic with given values and slopes at the knots, differentiable in x, y, dydx and the queries.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> slopes = pullback.tensor([0.0, 1.0], requires_grad=True)
    >>> interpolate.CubicHermiteSpline([0.0, 1.0], [0.0, 1.0], slopes)(0.5).backward()
    >>> slopes.grad
    tensor([ 0.1250, -0.1250])
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        made = scipy.interpolate.CubicHermiteSpline(bare(x), bare(y), bare(dydx), axis, extrapolate)
        x, y, axis = _prepared(x, y, axis)
        self._set(x, y, movedim(double(dydx), axis, 0), made.extrapolate, axis)


# Monotone and local interpolants --------------------------------------------------------------------------------------


def _end_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The three-point slope at an end, limited so that the shape is kept."""
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    turned = np.sign(d) != np.sign(m0)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3.0 * np.abs(m0))
    return np.where(turned, 0.0, np.where(steep, 3.0 * m0, d))


def _monotone_slopes(x: Any, y: Any) -> Any:
    """Weighted harmonic means of neighbouring slopes (Fritsch and Butland 1984), zero where their signs differ."""
    h = beside(np.diff(x), y.ndim)
    m = np.diff(y, axis=0) / h
    if len(y) == 2:
        return np.concatenate([m, m])
    left, right = m[:-1], m[1:]
    good = (np.sign(left) == np.sign(right)) & (left != 0) & (right != 0)
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    mean = (w1 / np.where(good, left, 1.0) + w2 / np.where(good, right, 1.0)) / (w1 + w2)
    first = _end_slope(h[0], h[1], m[0], m[1])
    last = _end_slope(h[-1], h[-2], m[-1], m[-2])
    return np.concatenate([first[None], _quotient(1.0, mean, good), last[None]])


@mirrors(
    "interpolate.PchipInterpolator",
    derivative="the slopes at the knots, in recorded operations",
    limits="the slopes have corners where neighbouring differences of y change sign",
)
class PchipInterpolator(_FromSlopes):
    """The monotone piecewise cubic through the points (Fritsch and Butland 1984), differentiable in x and y.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> y = pullback.tensor([0.0, 1.0, 4.0], requires_grad=True)
    >>> interpolate.PchipInterpolator([0.0, 1.0, 2.0], y)(1.5).backward()
    >>> y.grad
    tensor([-0.2031,  0.8750,  0.3281])
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        made = scipy.interpolate.PchipInterpolator(bare(x), bare(y), axis, extrapolate)
        x, y, axis = _prepared(x, y, axis)
        self._set(x, y, _monotone_slopes(x, y), made.extrapolate, axis)


def _akima_slopes(x: Any, y: Any, method: str) -> Any:
    """Means of neighbouring slopes, weighted by how much those beyond them differ (Akima 1970)."""
    m = np.diff(y, axis=0) / beside(np.diff(x), y.ndim)
    if len(y) == 2:
        return np.concatenate([m, m])
    before = 2.0 * m[0] - m[1]
    after = 2.0 * m[-1] - m[-2]
    outer = [2.0 * before - m[0], before, m, after, 2.0 * after - m[-1]]
    m = np.concatenate([v if v.ndim == y.ndim else v[None] for v in outer])
    weight = np.abs(np.diff(m, axis=0))
    if method == "makima":
        weight = weight + 0.5 * np.abs(m[1:] + m[:-1])
    f1, f2 = weight[2:], weight[:-2]
    total = f1 + f2
    good = total > 1e-9 * np.max(total)
    middle = m[1:-2] + _quotient(f2, total, good) * (m[2:-1] - m[1:-2])
    return np.where(good, middle, 0.5 * (m[3:] + m[:-3]))


@mirrors(
    "interpolate.Akima1DInterpolator",
    derivative="the slopes at the knots, in recorded operations",
    limits="the slopes have corners where neighbouring differences of y are equal",
)
class Akima1DInterpolator(_FromSlopes):
    """Akima's piecewise cubic through the points, and its modified form, differentiable in x and y.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> y = pullback.tensor([0.0, 1.0, 4.0, 5.0], requires_grad=True)
    >>> interpolate.Akima1DInterpolator([0.0, 1.0, 2.0, 3.0], y)(1.0).backward()
    >>> y.grad
    tensor([0., 1., 0., 0.])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        axis: int = 0,
        *,
        method: Literal["akima", "makima"] = "akima",
        extrapolate: bool | None = None,
    ) -> None:
        made = scipy.interpolate.Akima1DInterpolator(bare(x), bare(y), axis, method=method, extrapolate=extrapolate)
        x, y, axis = _prepared(x, y, axis)
        self._set(x, y, _akima_slopes(x, y, method), made.extrapolate, axis)


# The cubic spline -----------------------------------------------------------------------------------------------------


def _end_conditions(bc_type: Any, y: Any) -> list[Any]:
    """'not-a-knot', 'periodic', or (order of the derivative, its value) for each end."""
    named = {"clamped": (1, np.zeros(y.shape[1:])), "natural": (2, np.zeros(y.shape[1:]))}
    pair = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    return [named.get(b, b) if isinstance(b, str) else (b[0], double(b[1])) for b in pair]


class _End:
    """The equation at an end of a cubic spline: ``main * s[0] + side * s[1] = right``, seen from there."""

    def __init__(self, condition: Any, h: Any, slope: Any, sign: float) -> None:
        h0: Any = h[0]
        h1: Any = h[1] if len(h) > 1 else None
        if isinstance(condition, str):  # not-a-knot: the third derivative is continuous at the next knot
            d = h0 + h1
            self.main, self.side = h1, d
            self.right = ((h0 + 2 * d) * h1 * slope[0] + h0**2 * slope[1]) / d
            return
        order, value = condition
        if order == 1:
            self.main, self.side, self.right = h0 * 0 + 1, h0 * 0, value
        else:
            self.main, self.side = 2 * h0, h0
            self.right = -sign * 0.5 * value * h0**2 + 3 * h0 * slope[0]


def _spline_slopes(x: Any, y: Any, bc: list[Any]) -> Any:
    """The slopes for which second derivatives are continuous: a tridiagonal system (de Boor 1978, chapter IV)."""
    n, h = len(x), np.diff(x)
    slope = np.diff(y, axis=0) / beside(h, y.ndim)
    if n == 2:
        bc = [(1, slope[0]) if isinstance(b, str) else b for b in bc]
    elif n == 3 and bc == ["not-a-knot", "not-a-knot"]:  # a parabola
        curve = (slope[1] - slope[0]) / (x[2] - x[0])
        first = slope[0] - curve * h[0]
        return np.stack([first, first + 2 * curve * h[0], first + 2 * curve * (x[2] - x[0])])
    if bc[0] == "periodic":
        return _periodic_slopes(h, slope)
    first = _End(bc[0], h, slope, 1.0)
    last = _End(bc[1], np.flip(h, 0), np.flip(slope, 0), -1.0)
    zero = h[:1] * 0
    lower = np.concatenate([zero, h[1:], last.side[None]])
    main = np.concatenate([first.main[None], 2 * (h[:-1] + h[1:]), last.main[None]])
    upper = np.concatenate([first.side[None], h[:-1], zero])
    wide = beside(h, y.ndim)
    right = 3 * (wide[1:] * slope[:-1] + wide[:-1] * slope[1:])
    ends = [np.broadcast_to(e.right, y.shape[1:])[None] for e in (first, last)]
    return banded_solve(1, 1, np.stack([lower, main, upper], axis=1), np.concatenate([ends[0], right, ends[1]]))


def _periodic_slopes(h: Any, slope: Any) -> Any:
    """The cyclic tridiagonal system, condensed to the last unknown slope."""
    wide = beside(h, slope.ndim)
    if len(h) == 2:
        t = np.sum(slope / wide, axis=0) / np.sum(1.0 / wide, axis=0)
        return np.stack([t, t, t])
    before = np.concatenate([h[-1:], h[:-1]])  # the step on the left of each knot
    steps, left = beside(before, slope.ndim), np.concatenate([slope[-1:], slope[:-1]])
    right = 3 * (wide * left + steps * slope)
    rows = np.stack([h, 2 * (before + h), before], axis=1)[:-1]
    corner = np.concatenate([-h[:1], np.zeros(len(h) - 3), -before[-2:-1]])
    flat = np.reshape(right[:-1], (len(h) - 1, -1))
    both = banded_solve(1, 1, rows, np.concatenate([flat, corner[:, None]], axis=1))
    s1, s2 = np.reshape(both[:, :-1], right[:-1].shape), both[:, -1]
    a, b, c = h[-1], 2 * (before[-1] + h[-1]), before[-1]
    last = (right[-1] - c * s1[0] - a * s1[-1]) / (b + c * s2[0] + a * s2[-1])
    s = s1 + beside(s2, s1.ndim) * last
    return np.concatenate([s, last[None], s[:1]])


@mirrors(
    "interpolate.CubicSpline",
    derivative="the tridiagonal system of the slopes and its transpose, in recorded operations; x, y and end values",
)
class CubicSpline(_FromSlopes):
    """The cubic spline through the points, differentiable in x, y, the values in `bc_type`, and the queries.

    The slopes at the knots solve a tridiagonal system ``A(x) s = b(x, y)``; the gradient solves its transpose.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> y = pullback.tensor([0.0, 1.0, 4.0, 9.0], requires_grad=True)
    >>> spline = interpolate.CubicSpline([0.0, 1.0, 2.0, 3.0], y)
    >>> spline(1.5).backward()
    >>> y.grad
    tensor([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        made = scipy.interpolate.CubicSpline(bare(x), bare(y), axis, bare(bc_type), extrapolate)
        x, y, axis = _prepared(x, y, axis)
        bc = _end_conditions(bc_type, y)
        self._set(x, y, _spline_slopes(x, y, bc) if y.numel() else y, made.extrapolate, axis)


@mirrors("interpolate.pchip_interpolate", derivative="that of PchipInterpolator", limits="der is one number")
def pchip_interpolate(xi: Any, yi: Any, x: Any, der: int = 0, axis: int = 0) -> Any:
    """The values or derivatives of the monotone piecewise cubic at the points x.

    >>> import pullback
    >>> pchip_interpolate(pullback.tensor([0.0, 1.0, 2.0]), [0.0, 1.0, 4.0], 1.0)
    tensor(1., dtype=pullback.float64)
    """
    return PchipInterpolator(xi, yi, axis=axis)(x, nu=der)
