"""Images as splines: the filter that finds the coefficients, and values between the pixels.

A spline of order n is ``sum(c[k] B(q - k))`` with the B-spline of degree n (Unser, Aldroubi and Eden 1993); beyond the
border the coefficients are continued. Its derivative by q has the derivative of B in place of B. So one pair of nodes,
the sum and its adjoint, is closed under derivatives by coefficients and by coordinates.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage
import scipy.signal
import scipy.sparse

from ...autograd.function import Function
from ...ops.shape.axes import movedim
from ...ops.shape.joining import stack
from ...tensor.tensor import Tensor
from ..array_nodes import Array, array_of, linear, tensor_of

_REFLECTED = ("nearest", "reflect", "grid-mirror")
"""The modes in which `scipy.ndimage.spline_filter1d` reflects a line about the edge of its last pixel."""


def coefficients(x: Any, order: int, axis: int, mode: str) -> Any:
    """The spline's coefficients along an axis (negative), and the adjoint of SciPy's filter.

    The matrix of values at the pixels is symmetric, hence its inverse is; with the mode 'mirror' it is after the first
    and the last pixel are counted half. SciPy's reflecting filter is not quite the inverse before SciPy 1.18, and has
    an adjoint of its own.
    """
    n = x.shape[axis]
    halves = np.ones(n)
    if mode != "grid-wrap" and mode not in _REFLECTED and n > 1:
        halves[[0, -1]] = 0.5
    halves = halves.reshape((-1, *[1] * (-1 - axis)))

    def solve(a: Array) -> Array:
        kind = np.complex128 if a.dtype.kind == "c" else np.float64
        return np.asarray(scipy.ndimage.spline_filter1d(a, order, axis, output=kind, mode=mode))

    def adjoint(g: Array) -> Array:
        if mode in _REFLECTED and n > 1 and not _reflects_exactly():
            return np.moveaxis(_reflecting_adjoint(np.moveaxis(g, axis, -1), order), -1, axis)
        return halves * solve(g / halves)

    return linear(solve, adjoint, x, batched=True)


@functools.cache
def _reflects_exactly() -> bool:
    """Whether SciPy's reflecting filter is the inverse of a symmetric matrix, since SciPy 1.18."""
    matrix = scipy.ndimage.spline_filter1d(np.eye(3), 3, 0, mode="reflect")
    return bool(np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12))


def _reflecting_adjoint(g: Array, order: int) -> Array:
    """The recursions of SciPy's filter in the opposite order and direction, along the last axis."""
    n = g.shape[-1]
    for z in reversed(_poles(order)):
        g = scipy.signal.lfilter([1.0], [1.0, -z], g)
        g[..., :-1] *= -z
        g[..., -1] *= z / (z - 1)
        g = scipy.signal.lfilter([1.0], [1.0, -z], g[..., ::-1])[..., ::-1].copy()
        start = _start(n, z)
        first = g[..., :1].copy()
        g[..., 0] = 0
        g += start * first
        g *= (1 - z) * (1 - 1 / z)
    return g


def _start(n: int, z: float) -> Array:
    """The weights with which SciPy's causal recursion of a reflected line starts.

    They are ``z^i + z^(2n - 1 - i)``, but for the last term of the sum: it reads the value that is being summed.
    """
    powers = z ** np.arange(n)
    sums = powers + z**n * powers[::-1]
    sums[-1] -= powers[-1]
    sums[0] -= z**n * powers[-1]
    sums *= 1 + powers[-1] * z**n
    sums[-1] += powers[-1]
    sums *= z / (1 - z ** (2 * n))
    sums[0] += 1
    return sums


@functools.cache
def _poles(order: int) -> list[float]:
    """The roots within the unit circle of the polynomial of the B-spline's values at the integers."""
    values = [np.polyval(p, 0.0 if order % 2 else 0.5) for p in _pieces(order)]
    roots = np.roots([v for v in values if v > 0]).real
    return sorted((float(r) for r in roots if abs(r) < 1), key=abs, reverse=True)


@functools.cache
def _pieces(order: int) -> Array:
    """The polynomials of the n + 1 B-splines on one interval of their knots, highest power first."""
    rows = [np.array([1.0])]
    for n in range(1, order + 1):
        before = [np.zeros(1), *rows, np.zeros(1)]
        rows = [
            (np.polyadd(np.polymul([1, n - j], before[j]), np.polymul([-1, 1 + j], before[j + 1]))) / n
            for j in range(n + 1)
        ]
    return np.array([np.concatenate([np.zeros(order + 1 - len(r)), r]) for r in rows])


def _continued(k: Any, n: int, mode: str) -> Any:
    """The pixel that stands at place k of the line that is continued beyond its ends."""
    if n == 1 or mode == "nearest":
        return np.clip(k, 0, n - 1)
    if mode == "grid-wrap":
        return k % n
    if mode in ("reflect", "grid-mirror"):
        k = k % (2 * n)
        return np.minimum(k, 2 * n - 1 - k)
    k = k % (2 * n - 2)
    return np.minimum(k, 2 * n - 2 - k)


class Spline(NamedTuple):
    """How coefficients are summed: at coordinates of shape (axes, points), each axis derived `derived` times."""

    shape: tuple[int, ...]
    order: int
    mode: str
    cval: Any
    derived: tuple[int, ...]

    def more(self, axis: int) -> Spline:
        """The derivative along an axis."""
        return self._replace(derived=tuple(d + (i == axis) for i, d in enumerate(self.derived)))

    def weights(self, q: Array) -> tuple[Any, Array]:
        """The sparse matrix (points, pixels), and what is added to its product: the border's constant."""
        count = q.shape[1]
        valid, index, weight, outer = np.ones(count), np.zeros((count, 1), int), np.ones((count, 1)), np.ones(count)
        for axis, n in enumerate(self.shape):
            places, values, inside = self._along(q[axis], n, self.derived[axis])
            index = (index[:, :, None] * n + places[:, None, :]).reshape(count, -1)
            outer = outer * values.sum(axis=1)
            known = (places >= 0) & (places < n)
            weight = (weight[:, :, None] * (values * known)[:, None, :]).reshape(count, -1)
            valid = valid * inside
        weight = weight * valid[:, None]
        constant = (outer - weight.sum(axis=1)) * valid if self.mode == "grid-constant" else np.zeros(count)
        if not any(self.derived):
            constant = constant + (1 - valid)
        size = math.prod(self.shape)
        starts = np.arange(count + 1) * index.shape[1]
        index = np.clip(index, 0, size - 1)
        matrix = scipy.sparse.csr_array((weight.ravel(), index.ravel(), starts), shape=(count, size))
        return matrix, constant * self.cval

    def _along(self, q: Array, n: int, derived: int) -> tuple[Array, Array, Array]:
        """Along one axis: the pixels of each point, their weights, and 0 for a point that counts nothing."""
        inside: Any = (q >= 0) & (q <= n - 1)
        if self.mode == "wrap" and n > 1:
            turned = np.where(q < 0, q + (n - 1) * (np.floor(-q / (n - 1)) + 1), q - (n - 1) * np.floor(q / (n - 1)))
            q, inside = np.where(inside, q, turned), np.ones(len(q))
        elif self.mode == "constant":
            q = np.where(inside, q, 0)
        elif self.mode == "nearest":
            q, inside = np.clip(q, -1 - self.order, n + self.order), np.ones(len(q))  # constant beyond
        else:
            inside = np.ones(len(q))
        left = np.floor(q if self.order % 2 else q + 0.5)
        u = q - left + (0 if self.order % 2 else 0.5)
        values = np.stack([np.polyval(np.polyder(p, derived), u) + 0 * u for p in _pieces(self.order)], axis=1)
        places = left.astype(int)[:, None] - self.order // 2 + np.arange(self.order + 1)
        return places if self.mode == "grid-constant" else _continued(places, n, self.mode), values, inside


def _flat(c: Array, spline: Spline) -> Array:
    return c.reshape((-1, math.prod(spline.shape)))


class SplineSum(Function):
    """Values of a spline: coefficients (..., *shape) and coordinates (axes, points) to (..., points)."""

    @staticmethod
    def forward(spline: Spline, c: Tensor, q: Tensor) -> Any:
        """SciPy's sum for values; a sparse matrix for derivatives."""
        coefs, at = array_of(c), array_of(q)
        lead = coefs.shape[: coefs.ndim - len(spline.shape)]
        rows = _flat(coefs, spline)
        if any(spline.derived):
            matrix, constant = spline.weights(at)
            return tensor_of((matrix @ rows.T).T.reshape(*lead, -1) + constant)
        settings = {"order": spline.order, "mode": spline.mode, "cval": spline.cval, "prefilter": False}
        each = [scipy.ndimage.map_coordinates(r.reshape(spline.shape), at, **settings) for r in rows]
        return tensor_of(np.array(each, coefs.dtype).reshape(*lead, at.shape[1]))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep coefficients and coordinates."""
        ctx.spline, c, q = inputs
        ctx.save_for_backward(c, q)
        ctx.save_for_forward(c, q)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """The adjoint sum; for the coordinates, the spline's derivatives."""
        c, q = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        gc = SplineSpread.apply(ctx.spline, g, q) if wanted[1] else None
        return None, gc, _by_coordinates(ctx.spline, c, q, g) if wanted[2] else None

    @staticmethod
    def jvp(ctx: Any, _: Any, tc: Any, tq: Any) -> Any:
        """The sum of the tangent, and the derivatives along the axes."""
        c, q = ctx.saved_tensors
        terms = [SplineSum.apply(ctx.spline._replace(cval=0.0), tc, q)] if tc is not None else []
        if tq is not None:
            terms += [SplineSum.apply(ctx.spline.more(i), c, q) * tq[i] for i in range(len(ctx.spline.shape))]
        return sum(terms[1:], terms[0])

    @staticmethod
    def vmap(info: Any, in_dims: Any, spline: Spline, c: Tensor, q: Tensor) -> Any:
        """One call for many images at the same coordinates."""
        return _batched(SplineSum, info, in_dims, spline, c, q)


class SplineSpread(Function):
    """The adjoint of `SplineSum` in the coefficients: (..., points) to (..., *shape)."""

    @staticmethod
    def forward(spline: Spline, g: Tensor, q: Tensor) -> Any:
        """The transposed sparse matrix."""
        values = array_of(g)
        matrix, _ = spline.weights(array_of(q))
        rows = values.reshape(-1, values.shape[-1])
        return tensor_of((matrix.T @ rows.T).T.reshape(*values.shape[:-1], *spline.shape))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the argument and the coordinates."""
        ctx.spline, g, q = inputs
        ctx.save_for_backward(g, q)
        ctx.save_for_forward(g, q)

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> Any:
        """The sum; for the coordinates, its derivatives."""
        g, q = ctx.saved_tensors
        spline, wanted = ctx.spline._replace(cval=0.0), ctx.needs_input_grad
        gg = SplineSum.apply(spline, h, q) if wanted[1] else None
        return None, gg, _by_coordinates(spline, h, q, g) if wanted[2] else None

    @staticmethod
    def jvp(ctx: Any, _: Any, tg: Any, tq: Any) -> Any:
        """The adjoint of the tangent, and of the derivatives along the axes."""
        g, q = ctx.saved_tensors
        terms = [SplineSpread.apply(ctx.spline, tg, q)] if tg is not None else []
        if tq is not None:
            terms += [SplineSpread.apply(ctx.spline.more(i), g * tq[i], q) for i in range(len(ctx.spline.shape))]
        return sum(terms[1:], terms[0])

    @staticmethod
    def vmap(info: Any, in_dims: Any, spline: Spline, g: Tensor, q: Tensor) -> Any:
        """One call for many images at the same coordinates."""
        return _batched(SplineSpread, info, in_dims, spline, g, q)


def _by_coordinates(spline: Spline, c: Any, q: Any, g: Any) -> Any:
    """The gradient of the coordinates: for each axis, the derivative times the cotangent, over all images."""
    count = q.shape[-1]
    parts = []
    for axis in range(len(spline.shape)):
        slope = SplineSum.apply(spline.more(axis), c, q)
        parts.append(np.sum(np.reshape(np.real(np.conj(slope) * g), (-1, count)), axis=0))
    return np.stack(parts)


def _batched(node: Any, info: Any, in_dims: Any, spline: Spline, a: Tensor, q: Tensor) -> Any:
    if in_dims[2] is None:
        return node.apply(spline, movedim(a, in_dims[1], 0), q), 0
    q = movedim(q, in_dims[2], 0)
    several = [a] * info.batch_size if in_dims[1] is None else movedim(a, in_dims[1], 0)
    return stack([node.apply(spline, several[i], q[i]) for i in range(info.batch_size)]), 0
