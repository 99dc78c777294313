"""Interpolation on a rectangular grid of any number of dimensions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate

from ...ops.elementwise.limits import clamp
from ...ops.make.conversion import to
from ...ops.reduce.searching import searchsorted
from ...ops.shape.axes import movedim
from ..array_nodes import as_tensor, floating
from ..mirror import mirrors
from ..user_functions import bare
from .basis_splines import basis_values, grid_knots, spline_of
from .cubic_pieces import PchipInterpolator
from .given import beside, double, points_of, real

_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}


def _queries(xi: Any, ndim: int) -> Any:
    """The points as an array whose last axis holds the coordinates."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        return np.stack(np.broadcast_arrays(*map(double, xi)), axis=-1)
    xi = real(xi, "the places xi")
    return np.reshape(xi, (-1, ndim)) if xi.ndim == 1 else xi


def _cells(grid: list[Any], xi: Any) -> tuple[list[Any], list[Any]]:
    """For each axis, the cell of each point, and where in it the point lies, from 0 to 1."""
    cells, shares = [], []
    for d, g in enumerate(grid):
        q = xi[:, d]
        if len(g) == 1:
            i, share = clamp(searchsorted(g, q), 0, 0), q * 0
        else:
            i = clamp(searchsorted(g, q, right=True) - 1, 0, len(g) - 2)
            share = (q - g[i]) / (g[i + 1] - g[i])
        cells.append(i)
        shares.append(share)
    return cells, shares


def _linear(grid: list[Any], values: Any, xi: Any, nu: Any) -> Any:
    cells, shares = _cells(grid, xi)
    total: Any = 0
    sides = [((i, 1 - s), (clamp(i + 1, 0, len(g) - 1), s)) for i, s, g in zip(cells, shares, grid, strict=True)]
    for corner in itertools.product(*sides):
        value = values[tuple(i for i, _ in corner)]
        weight = math.prod(s for _, s in corner)
        total = total + value * beside(weight, value.ndim)
    return total


def _nearest(grid: list[Any], values: Any, xi: Any, nu: Any) -> Any:
    cells, shares = _cells(grid, xi)
    return values[tuple(i + (s > 0.5).long() for i, s in zip(cells, shares, strict=True))]


def _splines(k: int) -> Callable[..., Any]:
    """The product of splines of degree k: coefficients axis by axis, then the basis functions of each point."""

    def evaluate(grid: list[Any], values: Any, xi: Any, nu: Any) -> Any:
        places, n = [], len(grid)
        for d, g in enumerate(grid):
            values = movedim(spline_of(g, movedim(values, d, 0), k), 0, d)
            first, weights = basis_values(grid_knots(g, k), xi[:, d], k, 0 if nu is None else int(nu[d]))
            shape = (-1, *[1] * d, k + 1, *[1] * (n - 1 - d))
            places.append((np.reshape(first[:, None] + np.arange(k + 1), shape), np.reshape(weights, shape)))
        out = values[tuple(i for i, _ in places)]
        for _, weights in reversed(places):
            weights = np.reshape(weights, (len(xi), *weights.shape[1:])) if len(xi) else weights
            out = out * beside(weights, out.ndim)
        return np.sum(out, axis=tuple(range(1, n + 1)))

    return evaluate


def _pchip(grid: list[Any], values: Any, xi: Any, nu: Any) -> Any:
    """Monotone cubics along the last axis, then along the one before, each time at the points' own coordinates."""
    last = len(grid) - 1
    out = np.moveaxis(PchipInterpolator(grid[last], values, axis=last)(xi[:, last]), last, 0)
    rows = np.arange(len(xi))
    for d in range(last - 1, -1, -1):
        g, q = grid[d], xi[:, d]
        pieces = PchipInterpolator(g, out, axis=d + 1).c  # (4, n - 1, points, ...)
        i = clamp(searchsorted(g, q, right=True) - 1, 0, len(g) - 2)
        c = pieces[:, i, rows]
        u = beside(q - g[i], c.ndim - 1)
        out = ((c[0] * u + c[1]) * u + c[2]) * u + c[3]
    return out


_METHODS: dict[str, Callable[..., Any]] = {
    "linear": _linear,
    "nearest": _nearest,
    "pchip": _pchip,
    **{name: _splines(k) for name, k in _DEGREES.items()},
}


@mirrors(
    "interpolate.RegularGridInterpolator",
    derivative="products of lines or splines in recorded operations: in the grid, the values and the points",
    limits="nearest is constant between the points; solver is not used: the spline's coefficients are exact",
)
class RegularGridInterpolator:
    """Interpolation on a rectangular grid, differentiable in the grid's coordinates, the values and the points.

    The coefficients of the methods slinear, cubic and quintic are found axis by axis from banded systems. SciPy finds
    them by an iteration, to its tolerance; those of its methods ``cubic_legacy`` and so on agree to rounding.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> v = pullback.tensor([[0.0, 1.0], [2.0, 5.0]], requires_grad=True)
    >>> f = interpolate.RegularGridInterpolator(([0.0, 1.0], [0.0, 1.0]), v)
    >>> f([[0.5, 0.25]]).backward()
    >>> v.grad
    tensor([[0.3750, 0.1250],
            [0.3750, 0.1250]])
    """

    def __init__(
        self,
        points: Any,
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = math.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        checked = {"method": f"{method}_legacy"} if method in _DEGREES else {"method": method, "solver": solver}
        fill = bare(fill_value)
        make = scipy.interpolate.RegularGridInterpolator
        self._plain = make(bare(points), bare(values), bounds_error=bounds_error, fill_value=fill, **checked)
        grid: list[Any] = [real(p, "the grid's points") for p in points]
        values = floating(values)
        for axis, p in enumerate(grid):
            ends = points_of(p)[[0, -1]]
            if ends[0] > ends[1]:
                grid[axis], values = np.flip(p, 0), np.flip(values, axis)
        self.grid, self.values, self.method = tuple(grid), values, method
        self.bounds_error, self.fill_value = bounds_error, fill_value

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        """The values at the points, whose last axis holds the coordinates; `nu`: orders of derivatives of a spline."""
        method = self.method if method is None else method
        name = method.removesuffix("_legacy")
        if name not in _METHODS or (nu is not None and method not in _DEGREES):
            self._plain(bare(xi), method, nu=nu)
        xi = _queries(xi, len(self.grid))
        flat = np.reshape(xi, (-1, xi.shape[-1]))
        outside = self._outside(flat)
        out = _METHODS[name](list(self.grid), self.values, flat, nu)
        if not self.bounds_error and self.fill_value is not None:
            out = np.where(beside(outside, out.ndim), as_tensor(self.fill_value), out)
        out = np.where(beside(np.any(np.isnan(flat), axis=-1), out.ndim), math.nan, out)
        out = to(out, self.values._data.dtype) if name == "pchip" else out  # as SciPy's, unlike the other splines
        return np.reshape(out, (*xi.shape[:-1], *self.values.shape[len(self.grid) :]))

    def _outside(self, xi: Any) -> Any:
        """Which points lie outside of the grid. ValueError, SciPy's, for the wrong number of coordinates or any."""
        if xi.shape[-1] != len(self.grid):
            self._plain(points_of(xi))
        low, high = (np.stack([g[end] for g in self.grid]) for end in (0, -1))
        if self.bounds_error:
            given = points_of(xi)
            if not ((given >= points_of(low)) & (given <= points_of(high))).all():
                self._plain(given)
        return np.any((xi < low) | (xi > high), axis=-1)


@mirrors(
    "interpolate.interpn", derivative="that of RegularGridInterpolator", limits="method='splinef2d' is not supported"
)
def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = math.nan
) -> Any:
    """Interpolation on a rectangular grid in one call; see `RegularGridInterpolator`.

    >>> import pullback
    >>> interpn(([0.0, 1.0],), pullback.tensor([0.0, 3.0]), [[0.5]])
    tensor([1.5000], dtype=pullback.float64)
    """
    if method == "splinef2d":
        raise NotImplementedError("interpn: method='splinef2d' (FITPACK) has no derivatives here; use method='cubic'")
    made = RegularGridInterpolator(points, values, method=method, bounds_error=bounds_error, fill_value=fill_value)
    return made(xi)
