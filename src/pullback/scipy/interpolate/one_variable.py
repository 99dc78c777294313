"""`interp1d`: interpolation of one variable, by straight lines, by steps, or by splines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.interpolate

from ...ops.elementwise.limits import clamp
from ...ops.reduce.searching import searchsorted
from ...ops.reduce.sorting import argsort
from ...tensor.tensor import Tensor
from ..array_nodes import as_tensor, floating
from ..mirror import mirrors
from ..user_functions import bare
from .basis_splines import make_interp_spline
from .given import beside, points_of, real, result_axes

_STEPS = ("nearest", "nearest-up", "previous", "next")
_ORDERS = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}


@mirrors(
    "interpolate.interp1d",
    derivative="lines and splines in recorded operations: in x, y, fill_value and the queries",
    limits="nearest, previous, next and zero are constant between the points: the derivative by the query is zero",
)
class interp1d:  # noqa: N801 - SciPy's name
    """Interpolation of one variable, differentiable in x, y, `fill_value` and the query points.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> y = pullback.tensor([0.0, 1.0, 4.0], requires_grad=True)
    >>> f = interpolate.interp1d([0.0, 1.0, 2.0], y)
    >>> f(1.25).backward()
    >>> y.grad
    tensor([0.0000, 0.7500, 0.2500])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = math.nan,
        assume_sorted: bool = False,
    ) -> None:
        self._plain = scipy.interpolate.interp1d(
            bare(x), bare(y), kind, axis, copy, bounds_error, bare(fill_value), assume_sorted
        )
        given = [np.asarray(bare(v)) for v in (x, y)]
        doubles = all(v.dtype in (np.dtype(np.float64), np.dtype(int)) for v in given)
        self._by_numpy = doubles and given[1].ndim == 1 and not isinstance(fill_value, str)  # as SciPy
        x, y = floating(x), floating(y)
        if not assume_sorted:
            order = argsort(as_tensor(x), stable=True)
            x, y = x[order], np.take(y, order, axis=axis)
        self.axis, self.bounds_error = self._plain.axis, self._plain.bounds_error
        self.x, self.y, self.fill_value = x, y, fill_value
        self._y = np.moveaxis(y, self.axis, 0)
        self._kind = kind if kind in ("linear", *_STEPS) else "spline"
        if self._kind == "spline":
            self._by_spline = make_interp_spline(x, self._y, _ORDERS.get(kind, kind), check_finite=False)
        self._below_above = self._fill()

    def _fill(self) -> tuple[Any, Any] | None:
        """What stands below and above the range; None where it is extrapolated."""
        fill = self.fill_value
        if isinstance(fill, str):
            ends = {"previous": (math.nan, self._y[-1]), "next": (self._y[0], math.nan)}
            return ends.get(self._kind)
        return fill if isinstance(fill, tuple) and len(fill) == 2 else (fill, fill)

    def __call__(self, x: Any) -> Any:
        """The values at the points x, of any shape. ValueError outside of the range, if `bounds_error`."""
        x = floating(x)
        real(x, "the places x")
        q = np.reshape(x, (-1,))
        low, high = q < self.x[0], q > self.x[-1]
        if self.bounds_error:
            given, ends = points_of(q), points_of(self.x)
            if ((given < ends[0]) | (given > ends[-1])).any():
                self._plain(given)
        out = getattr(self, f"_{'steps' if self._kind in _STEPS else self._kind}")(q)
        if self._below_above is not None:
            for outside, value in zip((low, high), self._below_above, strict=True):
                fill = value if isinstance(value, Tensor) else np.asarray(bare(value))
                out = np.where(beside(outside, out.ndim), fill, out)
        return result_axes(np.reshape(out, (*x.shape, *self._y.shape[1:])), x.ndim, self.axis if x.ndim else 0)

    def _linear(self, q: Any) -> Any:
        if self._by_numpy:
            return np.interp(q, self.x, self._y)
        high = clamp(searchsorted(self.x, q), 1, len(self.x) - 1)
        x0, x1, y0, y1 = self.x[high - 1], self.x[high], self._y[high - 1], self._y[high]
        return (y1 - y0) / beside(x1 - x0, y0.ndim) * beside(q - x0, y0.ndim) + y0

    def _steps(self, q: Any) -> Any:
        n, x = len(self.x), self.x.detach()
        if self._kind.startswith("nearest"):
            half = x / 2.0
            found = searchsorted(half[1:] + half[:-1], q, right=self._kind == "nearest-up")
            return self._y[clamp(found, 0, n - 1)]
        next_one = self._kind == "next"
        found = searchsorted(x, q, right=not next_one)
        return self._y[clamp(found - (not next_one), 0, n - 1)]

    def _spline(self, q: Any) -> Any:
        return self._by_spline(q)
