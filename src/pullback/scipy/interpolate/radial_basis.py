"""Interpolation of scattered points by radial basis functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate

from ...ops.reduce.sorting import argsort, sort
from ..mirror import mirrors
from ..user_functions import bare
from .given import double, real


def _root(s: Any) -> Any:
    """The distance from its square; at zero its derivative is taken as zero."""
    return np.where(s == 0, 0.0, np.sqrt(np.where(s == 0, 1.0, s)))


_KERNELS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda s: -_root(s),
    "thin_plate_spline": lambda s: s * np.log(np.where(s == 0, 1.0, s)) / 2,
    "cubic": lambda s: s * _root(s),
    "quintic": lambda s: -s * s * _root(s),
    "multiquadric": lambda s: -np.sqrt(s + 1),
    "inverse_multiquadric": lambda s: 1 / np.sqrt(s + 1),
    "inverse_quadratic": lambda s: 1 / (s + 1),
    "gaussian": lambda s: np.exp(-s),
}
"""As functions of the squared distance, which is smooth where points meet."""

_DEGREES = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}


def _squares(a: Any, b: Any) -> Any:
    """Squared distances of the points a (..., m, d) from the points b (..., n, d)."""
    return np.sum(np.square(a[..., :, None, :] - b[..., None, :, :]), axis=-1)


def _monomials(x: Any, degree: int) -> Any:
    """All products of up to `degree` coordinates of the points (..., n, d)."""
    ndim, one = x.shape[-1], x[..., 0] * 0 + 1
    columns = []
    for total in range(degree + 1):
        for chosen in itertools.combinations_with_replacement(range(ndim), total):
            column = one
            for axis in chosen:
                column = column * x[..., axis]
            columns.append(column)
    return np.stack(columns, axis=-1) if columns else x[..., :0]


@mirrors(
    "interpolate.RBFInterpolator",
    derivative="the linear system of the coefficients, in recorded operations; in y, d, smoothing, epsilon, queries",
    limits="at a data point the kernel 'linear' has the derivative zero; the choice of neighbors is constant",
)
class RBFInterpolator:
    """Interpolation of scattered points, differentiable in y, d, `smoothing`, `epsilon` and the query points.

    The coefficients solve ``(K + diag(smoothing)) a + P b = d`` with ``P^T a = 0``, where K holds the kernel at the
    distances of the points and P their monomials (Wahba 1990; Fasshauer 2007).

    >>> import pullback
    >>> from pullback.scipy import interpolate
    >>> d = pullback.tensor([0.0, 1.0, 4.0], requires_grad=True)
    >>> f = interpolate.RBFInterpolator([[0.0], [1.0], [2.0]], d)
    >>> f([[1.0]]).sum().backward()
    >>> d.grad.round(decimals=6).abs()
    tensor([0., 1., 0.])
    """

    def __init__(
        self,
        y: Any,
        d: Any,
        neighbors: Any = None,
        smoothing: Any = 0.0,
        kernel: str = "thin_plate_spline",
        epsilon: Any = None,
        degree: Any = None,
    ) -> None:
        y, smoothing = real(y, "the points y"), real(smoothing, "smoothing")
        epsilon = None if epsilon is None else real(epsilon, "epsilon")
        smooth = bare(smoothing)
        smooth = smooth.item() if np.ndim(smooth) == 0 and isinstance(smooth, np.ndarray) else smooth
        scipy.interpolate.RBFInterpolator(bare(y), bare(d), neighbors, smooth, kernel, bare(epsilon), degree)
        self.y, d = y, double(d)
        self.kernel = kernel.lower()
        self.degree = max(_DEGREES.get(self.kernel, -1), 0) if degree is None else int(degree)
        self.epsilon = 1.0 if epsilon is None else epsilon
        self.smoothing = np.broadcast_to(smoothing, (len(self.y),))
        self.neighbors = None if neighbors is None else int(min(neighbors, len(self.y)))
        self._complex, self._shape = d._data.dtype.kind == "c", tuple(d.shape[1:])
        d = np.reshape(d, (len(self.y), -1))
        self.d = np.concatenate([np.real(d), np.imag(d)], axis=1) if self._complex else d
        if neighbors is None:
            self._solved = self._solve(self.y, self.d, self.smoothing)

    def _solve(self, y: Any, d: Any, smoothing: Any) -> Any:
        """Coefficients, and how coordinates are scaled for the monomials, which changes no value."""
        fixed = y.detach()
        low, high = np.min(fixed, axis=-2), np.max(fixed, axis=-2)
        shift, scale = (high + low)[..., None, :] / 2, (high - low)[..., None, :] / 2
        scale = np.where(scale == 0, 1.0, scale)
        powers = _monomials((y - shift) / scale, self.degree)
        n, m = powers.shape[-2:]
        kernels = self._kernel(_squares(y, y)) + smoothing[..., None, :] * np.eye(n)
        corner = np.broadcast_to(np.zeros((m, m)), (*powers.shape[:-2], m, m))
        top = np.concatenate([kernels, powers], axis=-1)
        bottom = np.concatenate([np.swapaxes(powers, -1, -2), corner], axis=-1)
        right = np.concatenate([d, np.broadcast_to(np.zeros((m, d.shape[-1])), (*d.shape[:-2], m, d.shape[-1]))], -2)
        return np.linalg.solve(np.concatenate([top, bottom], axis=-2), right), shift, scale

    def _kernel(self, s: Any) -> Any:
        return _KERNELS[self.kernel](s * self.epsilon**2)

    def __call__(self, x: Any) -> Any:
        """The values at the points x, of shape (points, dimensions)."""
        x = real(x, "the places x")
        if x.ndim != 2:
            raise ValueError("`x` must be a 2-dimensional array.")
        if x.shape[1] != self.y.shape[1]:
            raise ValueError(f"Expected the second axis of `x` to have length {self.y.shape[1]}.")
        if self.neighbors is None:
            out = self._values(x, self.y, *self._solved)
        else:
            order = argsort(_squares(x, self.y).detach(), dim=-1)[:, : self.neighbors]
            near = sort(order, dim=-1)[0]
            y = self.y[near]
            out = self._values(x[:, None, :], y, *self._solve(y, self.d[near], self.smoothing[near]))[:, 0]
        if self._complex:
            half = out.shape[1] // 2
            out = out[:, :half] + 1j * out[:, half:]
        return np.reshape(out, (len(x), *self._shape))

    def _values(self, x: Any, y: Any, coefficients: Any, shift: Any, scale: Any) -> Any:
        powers = _monomials((x - shift) / scale, self.degree)
        return np.matmul(np.concatenate([self._kernel(_squares(x, y)), powers], axis=-1), coefficients)
