"""Piecewise polynomials, differentiable in coefficients, breakpoints and query points."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import scipy.interpolate

from ...ops.elementwise.limits import clamp
from ...ops.reduce.searching import searchsorted
from ..mirror import mirrors
from ..user_functions import bare
from .given import beside, double, points_of, real, result_axes


def interval_of(breaks: Any, q: Any, first: int, last: int) -> Any:
    """The number i of the interval ``breaks[i] <= q < breaks[i + 1]`` of each query, from `first` to `last`."""
    return clamp(searchsorted(breaks, q, right=True) - 1, first, last)


def periodic(q: Any, start: Any, end: Any) -> Any:
    """The queries moved into the base interval; how often they were moved is constant."""
    period = end - start
    return q - np.floor((q - start) / period) * period


def blanked(out: Any, q: Any, start: Any, end: Any, extrapolate: Any) -> Any:
    """NaN where the query is NaN and, unless it is extrapolated, outside of [start, end]."""
    outside = np.isnan(q) if extrapolate else ~((q >= start) & (q <= end))
    return np.where(beside(outside, out.ndim), math.nan, out)


@mirrors(
    "interpolate.PPoly",
    derivative="the polynomial of the interval, in recorded operations; zero for the choice of the interval",
    limits="solve, roots, extend, from_spline and from_bernstein_basis are not here",
)
class PPoly:
    """A piecewise polynomial: ``sum(c[m, i] * (q - x[i]) ** (k - m))`` for ``x[i] <= q < x[i + 1]``.

    c: of shape (k + 1, m, ...). x: the breakpoints, of shape (m + 1,). Both may be Tensors, and so may the queries.
    Derivatives at a breakpoint are those of the interval on its right, as the values are.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> c = pullback.tensor([[1.0, 2.0], [0.0, 1.0]], requires_grad=True)
    >>> p = interpolate.PPoly(c, [0.0, 1.0, 2.0])
    >>> p(1.5).backward()
    >>> c.grad
    tensor([[0.0000, 0.5000],
            [0.0000, 1.0000]])
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        made = scipy.interpolate.PPoly(bare(c), bare(x), extrapolate, axis)
        c = double(c)
        if axis:
            c = np.moveaxis(np.moveaxis(c, axis + 1, 0), axis + 1, 0)
        self.c, self.x, self.extrapolate, self.axis = c, real(x, "the breaks x"), made.extrapolate, made.axis

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Self:
        """A piecewise polynomial of arguments that are known to be right."""
        self = object.__new__(cls)
        self.c, self.x, self.axis = double(c), double(x), axis
        self.extrapolate = True if extrapolate is None else extrapolate
        return self

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or the derivatives of order `nu`, at the points x, of any shape."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        x = real(x, "the places x")
        q = np.reshape(x, (-1,))
        if extrapolate == "periodic":
            q, extrapolate = periodic(q, self.x[0], self.x[-1]), False
        out = self._at(q, nu, extrapolate)
        return result_axes(np.reshape(out, (*x.shape, *self.c.shape[2:])), x.ndim, self.axis)

    def _at(self, q: Any, nu: int, extrapolate: Any) -> Any:
        breaks, low, high = self.x, self.x[0], self.x[-1]
        side = 1.0
        if (ends := points_of(breaks)[[0, -1]])[0] > ends[1]:
            side, low, high = -1.0, high, low
        i = interval_of(side * breaks, side * q, 0, self.c.shape[1] - 1)
        c = np.take(self.c, i, axis=1)
        u = beside(q - breaks[i], c.ndim - 1)
        degree = len(c) - 1
        out = c[0] * 0
        for power in range(degree, nu - 1, -1):
            out = out * u + c[degree - power] * math.perm(power, nu)
        return blanked(out, q, low, high, extrapolate)

    def derivative(self, nu: int = 1) -> Self:
        """The derivative of order `nu`, another piecewise polynomial."""
        if nu < 0:
            return self.antiderivative(-nu)
        k = len(self.c)
        c = self.c[: k - nu] if nu < k else self.c[:1] * 0
        factors = [math.perm(power, nu) for power in range(k - 1, max(k - 1 - len(c), -1), -1)]
        c = c * beside(np.array(factors, float), c.ndim)
        return self.construct_fast(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Self:
        """The antiderivative of order `nu` that is zero at the first breakpoint and continuous."""
        if nu <= 0:
            return self.derivative(-nu)
        k = len(self.c)
        c = self.c / beside(np.arange(k, 0, -1.0), self.c.ndim)
        h = beside(np.diff(self.x), c.ndim - 1)
        total = c[0] * h
        for term in c[1:]:
            total = (total + term) * h
        steps = np.concatenate([total[:1] * 0, np.cumsum(total, axis=0)[:-1]])
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        made = self.construct_fast(np.concatenate([c, steps[None]]), self.x, extrapolate, self.axis)
        return made.antiderivative(nu - 1) if nu > 1 else made

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from a to b; its derivatives by the limits are the values there."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        whole = self.construct_fast(self.c, self.x, True, 0).antiderivative()
        ends = np.stack([real(a, "the limit a"), real(b, "the limit b")])
        if extrapolate == "periodic":
            first, last = self.x[0], self.x[-1]
            turns = np.floor((ends - first) / (last - first))
            values = whole._at(periodic(ends, first, last), 0, True)
            values = values + beside(turns, values.ndim) * whole._at(self.x[-1:], 0, True)
        else:
            values = whole._at(ends, 0, extrapolate)
        return values[1] - values[0]
