"""B-splines, differentiable in knots, coefficients and query points, and the spline through given points."""

from __future__ import annotations

import math
import operator
from typing import Any, Self

import numpy as np
import scipy.interpolate

from ...ops.index.scatter import scatter, scatter_add
from ...ops.shape.axes import movedim
from ...tensor.tensor import Tensor
from ..mirror import mirrors
from ..user_functions import bare
from .banded_systems import banded_solve, tensor_or
from .given import beside, double, real, result_axes
from .piecewise import blanked, interval_of, periodic


def _local(knots: Any, d: Any, q: Any, k: int, nu: int) -> Any:
    """The value of each query's own polynomial (de Boor 1978, chapter X).

    knots: the 2 k knots around the query's interval, of shape (queries, 2 k). d: the k + 1 coefficients that count
    there, of shape (queries, k + 1, ...). A query in ``[t[i], t[i + 1]]`` has ``t[i - k + 1 : i + k + 1]`` and
    ``c[i - k : i + 1]``.
    """
    if nu > k:
        return d[:, 0] * 0
    for r in range(1, nu + 1):
        p = k - r + 1
        width = knots[:, r - 1 + p : k + p] - knots[:, r - 1 : k]
        d = (d[:, 1:] - d[:, :-1]) * beside(p / width, d.ndim)
    p = k - nu
    for r in range(1, p + 1):
        low, high = knots[:, nu + r - 1 : k], knots[:, nu + p : k + p - r + 1]
        width = np.where(high == low, math.inf, high - low)  # an interval of no width counts nothing, as in SciPy
        left, right = (beside(w / width, d.ndim) for w in (high - q[:, None], q[:, None] - low))
        d = left * d[:, :-1] + right * d[:, 1:]
    return d[:, 0]


def _around(t: Any, q: Any, k: int, n: int) -> tuple[Any, Any]:
    """The interval of each query, and the 2 k knots around it."""
    i = interval_of(t, q, k, n - 1)
    return i, t[i[:, None] + np.arange(1 - k, k + 1)]


def basis_values(t: Any, q: Any, k: int, nu: int = 0) -> tuple[Any, Any]:
    """The number of the first of the k + 1 B-splines that are not zero at each query, and their values there."""
    i, knots = _around(t, q, k, len(t) - k - 1)
    unit = np.broadcast_to(np.eye(k + 1), (len(q), k + 1, k + 1))
    return i - k, _local(knots, tensor_or(np.array(unit)), q, k, nu)


@mirrors(
    "interpolate.BSpline",
    derivative="de Boor's recursion in recorded operations: in knots, coefficients and query points",
    limits="design_matrix, from_power_basis and insert_knot are not here; a repeated knot has one-sided derivatives",
)
class BSpline:
    """A spline of degree k: ``sum(c[j] * B[j, k; t](q))``.

    t: the knots, of shape (n + k + 1,). c: the coefficients, of shape (n or more, ...). Both may be Tensors, and so
    may the queries.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> c = pullback.tensor([0.0, 1.0, 3.0], requires_grad=True)
    >>> spline = interpolate.BSpline([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], c, 2)
    >>> spline(0.5).backward()
    >>> c.grad
    tensor([0.2500, 0.5000, 0.2500])
    """

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        made = scipy.interpolate.BSpline(bare(t), bare(c), k, extrapolate, axis)
        self.k, self.extrapolate, self.axis = made.k, made.extrapolate, made.axis
        self.t, self.c = double(t), movedim(double(c), axis, 0)

    @classmethod
    def construct_fast(cls, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Self:
        """A spline of arguments that are known to be right."""
        self = object.__new__(cls)
        self.t, self.c, self.k, self.extrapolate, self.axis = double(t), double(c), k, extrapolate, axis
        return self

    @classmethod
    def basis_element(cls, t: Any, extrapolate: Any = True) -> Self:
        """The one B-spline on the knots t, of degree ``len(t) - 2``."""
        t = real(t, "the knots t")
        k = len(t) - 2
        t = np.concatenate([*[t[:1] - 1] * k, t, *[t[-1:] + 1] * k])
        return cls.construct_fast(t, np.eye(len(t))[k], k, extrapolate)

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients, degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or the derivatives of order `nu`, at the points x, of any shape."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        x = real(x, "the places x")
        q = np.reshape(x, (-1,))
        start, end = self._base()
        if extrapolate == "periodic":
            q, extrapolate = periodic(q, start, end), False
        i, knots = _around(self.t, q, self.k, len(self.t) - self.k - 1)
        d = self.c[i[:, None] + np.arange(-self.k, 1)]
        out = blanked(_local(knots, d, q, self.k, nu), q, start, end, extrapolate)
        return result_axes(np.reshape(out, (*x.shape, *self.c.shape[1:])), x.ndim, self.axis)

    def _base(self) -> tuple[Any, Any]:
        return self.t[self.k], self.t[len(self.t) - self.k - 1]

    def _coefficients(self) -> Any:
        missing = len(self.t) - len(self.c)
        return np.concatenate([self.c, np.zeros((max(missing, 0), *self.c.shape[1:]))])

    def derivative(self, nu: int = 1) -> Self:
        """The derivative of order `nu`, a spline of degree ``k - nu``. ValueError where knots repeat too often."""
        scipy.interpolate.BSpline.construct_fast(*bare(self.tck)).derivative(nu)
        t: Any = self.t
        c, k = self._coefficients(), self.k
        if nu < 0:
            return self.antiderivative(-nu)
        for _ in range(nu):
            width = t[k + 1 : -1] - t[1 : -k - 1]
            c = (c[1 : -1 - k] - c[: -2 - k]) * beside(k / width, c.ndim)
            c = np.concatenate([c, np.zeros((k, *c.shape[1:]))])
            t, k = t[1:-1], k - 1
        return self.construct_fast(t, c, k, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Self:
        """The antiderivative of order `nu` that is zero at the first knot, a spline of degree ``k + nu``."""
        if nu < 0:
            return self.derivative(-nu)
        t: Any = self.t
        c, k = self._coefficients(), self.k
        for _ in range(nu):
            width = beside(t[k + 1 :] - t[: -k - 1], c.ndim)
            total = np.cumsum(c[: -k - 1] * width, axis=0) / (k + 1)
            c = np.concatenate([np.zeros((1, *c.shape[1:])), total, *[total[-1:]] * (k + 2)])
            t, k = np.concatenate([t[:1], t, t[-1:]]), k + 1
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        return self.construct_fast(t, c, k, extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from a to b, within the base interval unless it is extrapolated."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        start, end = self._base()
        ends = np.stack([real(a, "the limit a"), real(b, "the limit b")])
        whole = self.construct_fast(*self.tck, True, 0).antiderivative()
        if extrapolate == "periodic":
            turns = np.floor((ends - start) / (end - start))
            values = whole(periodic(ends, start, end))
            values = values + beside(turns, values.ndim) * (whole(end) - whole(start))
        else:
            values = whole(ends if extrapolate else np.clip(ends, start, end))
        return values[1] - values[0]


# The spline through given points --------------------------------------------------------------------------------------


def _end_values(bc: Any, shape: tuple[int, ...]) -> list[tuple[int, Any]]:
    """The derivatives given at an end: pairs of order and value."""
    named = {"clamped": [(1, np.zeros(shape))], "natural": [(2, np.zeros(shape))], None: []}
    return named[bc] if bc is None or isinstance(bc, str) else list(bc)


def _knots(x: Any, k: int, kind: str) -> Any:
    """The knots that SciPy chooses: without knots next to the ends, augmented, or periodic."""
    ends = [x[:1]], [x[-1:]]
    if kind == "augmented":
        return np.concatenate([*ends[0] * k, x, *ends[1] * k])
    middle = x if k % 2 else np.concatenate([*ends[0], (x[1:] + x[:-1]) / 2, *ends[1]])
    if kind == "not-a-knot":
        half = (k + 1) // 2 if k % 2 else k // 2 + 1
        return np.concatenate([*ends[0] * (k + 1), middle[half:-half], *ends[1] * (k + 1)])
    middle = x if k % 2 else np.concatenate([*ends[0], x[1:-1] - np.diff(x)[:-1] / 2, *ends[1]])
    steps = np.diff(middle)
    number = np.arange(k) % len(steps)
    after = np.cumsum(np.take(steps, number, axis=0), axis=0)
    before = np.flip(np.cumsum(np.take(steps, len(steps) - 1 - number, axis=0), axis=0), 0)
    return np.concatenate([middle[0] - before, middle, middle[-1] + after])


def _placed(first: Any, values: Any, row: int, k: int) -> Any:
    """The rows, from number `row`, of a banded matrix that has these values from column `first` on."""
    n = len(values)
    where = first[:, None] + np.arange(k + 1) - np.arange(row, row + n)[:, None] + k
    return scatter(tensor_or(np.zeros((n, 2 * k + 1))), 1, where, values)


def _periodic_coefficients(x: Any, y: Any, t: Any, k: int) -> Any:
    """Coefficients that repeat after a period: a cyclic system, solved as a dense one."""
    n = len(x) - 1
    first, values = basis_values(t, x[:-1], k)
    where = (first[:, None] + np.arange(k + 1)) % n
    matrix = scatter_add(tensor_or(np.zeros((n, n))), 1, where, values)
    c = np.reshape(np.linalg.solve(matrix, np.reshape(y[:-1], (n, -1))), y[:-1].shape)
    return np.concatenate([c] * (1 + -(-k // n)))[: n + k]


@mirrors(
    "interpolate.make_interp_spline",
    derivative="the banded system of the coefficients and its transpose, in recorded operations; x, y, t, end values",
    limits="bc_type='periodic' solves a dense system",
)
def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> BSpline:
    """The spline of degree k through the points: a `BSpline`, differentiable in x, y, t and the values in `bc_type`.

    The coefficients solve ``A c = y`` with ``A[i, j] = B[j, k; t](x[i])``, which is banded.

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> y = pullback.tensor([0.0, 1.0, 4.0, 9.0], requires_grad=True)
    >>> interpolate.make_interp_spline([0.0, 1.0, 2.0, 3.0], y)(1.5).backward()
    >>> y.grad
    tensor([-0.0625,  0.5625,  0.5625, -0.0625])
    """
    made = scipy.interpolate.make_interp_spline(bare(x), bare(y), k, bare(t), bare(bc_type), axis, check_finite)
    x, y, k = double(x), double(y), operator.index(k)
    axis %= y.ndim
    y = movedim(y, axis, 0)
    ends: Any = (None, None) if bc_type in (None, "not-a-knot", "periodic") else bc_type
    ends = (ends, ends) if isinstance(ends, str) else ends
    if k == 0 or (k == 1 and t is None):
        ends = np.concatenate([x[:1], x, x[-1:]] if k else [x, x[-1:]])
        return BSpline.construct_fast(ends, y, k, made.extrapolate, axis)
    left, right = (_end_values(bc, tuple(y.shape[1:])) for bc in ends)
    kind = "periodic" if bc_type == "periodic" else "augmented" if left or right else "not-a-knot"
    knots: Any = _knots(x, k, kind) if t is None else double(t)
    if kind == "periodic":
        return BSpline.construct_fast(knots, _periodic_coefficients(x, y, knots, k), k, "periodic", axis)
    c = _coefficients(x, y, knots, k, left, right) if y.numel() else double(made.c)
    return BSpline.construct_fast(knots, c, k, made.extrapolate, axis)


def _coefficients(x: Any, y: Any, t: Any, k: int, left: list[Any], right: list[Any]) -> Any:
    """The solution of the banded system: values at the points, between derivatives at the ends."""
    rows = [_placed(*basis_values(t, x, k), len(left), k)]
    values: list[Any] = [y]
    for point, given, start in ((x[:1], left, 0), (x[-1:], right, len(left) + len(x))):
        if given:
            parts = [_placed(*basis_values(t, point, k, nu), start + r, k) for r, (nu, _) in enumerate(given)]
            rows.insert(len(rows) if start else 0, np.concatenate(parts))
            wanted = [np.broadcast_to(double(v), y.shape[1:]) for _, v in given]
            values.insert(len(values) if start else 0, np.stack(wanted))
    return banded_solve(k, k, np.concatenate(rows), np.concatenate(values))


def spline_of(x: Any, y: Any, k: int) -> Tensor:
    """The coefficients of the spline through points on a grid, without SciPy's checks; y of shape (n, ...)."""
    return _coefficients(x, y, _knots(x, k, "not-a-knot"), k, [], []) if k > 1 else y


def grid_knots(x: Any, k: int) -> Any:
    """The knots of `spline_of`."""
    return _knots(x, k, "not-a-knot") if k > 1 else np.concatenate([x[:1], x, x[-1:]])
