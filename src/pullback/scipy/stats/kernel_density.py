"""`gaussian_kde`: a density estimated from points, differentiable in the points, the data, their weights and the width.

The estimate is ``sum of w_i N(x; x_i, C)``, where C is the covariance of the weighted data times ``factor ** 2``; that
depends on the data and the weights as well, and so does every derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp
import scipy.stats

from ... import errors
from ...ops.linalg.solving import solve_triangular
from ...table.operands import plain
from ...tensor.tensor import Lifted, Tensor
from ..array_nodes import as_tensor
from ..mirror import mirrors
from ..special.composites import logsumexp
from .formulas import LOG_2PI, log_det
from .univariate import exp_of, real


def _columns(t: Any) -> Any:
    """Points along the last axis, with their components along the first."""
    return np.expand_dims(t, 0) if t.dim() == 1 else np.reshape(t, (1, 1)) if t.dim() == 0 else t


@mirrors(
    "stats.gaussian_kde",
    derivative="in points, dataset, weights and a bandwidth that is a tensor",
    limits="no integrate_box, no marginal; resample not in weights",
)
class gaussian_kde:  # noqa: N801
    """A kernel density estimate with Gaussian kernels.

    dataset: data of one variable, or a row for each variable. bw_method: "scott", "silverman", a number, a function of
    the estimate, or a tensor, in which it is differentiable. weights: of the data.

    >>> import pullback
    >>> from pullback.scipy.stats import gaussian_kde
    >>> data = pullback.tensor([0.0, 1.0, 3.0], requires_grad=True)
    >>> gaussian_kde(data).logpdf([1.0]).sum().backward()
    >>> data.grad
    tensor([ 0.3562,  0.0289, -0.3219])
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset = _columns(real(dataset))
        if self.dataset.shape[1] <= 1:
            raise ValueError("`dataset` input should have multiple elements.")
        self.d, self.n = (int(s) for s in self.dataset.shape)
        if weights is None:
            self._weights = np.full(self.n, 1 / self.n)
        else:
            given = real(weights)
            if given.dim() != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if len(given) != self.n:
                raise ValueError("`weights` input should be of length n")
            self._weights = given / np.sum(given)
        self._neff = 1 / np.sum(np.square(self._weights))
        if self.d > self.n:
            raise ValueError(
                "Number of dimensions is greater than number of samples. This results in a singular data covariance "
                "matrix, which cannot be treated using the algorithms implemented in `gaussian_kde`. Note that "
                "`gaussian_kde` interprets each *column* of `dataset` to be a point; consider transposing the input "
                "to `dataset`."
            )
        self.set_bandwidth(bw_method)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(scipy.stats.gaussian_kde, name):
            raise AttributeError(f"'gaussian_kde' object has no attribute {name!r}")
        raise AttributeError(
            errors.message(
                f"pullback.scipy.stats.gaussian_kde.{name} has no derivative here",
                do=f"for values alone, use scipy.stats.gaussian_kde(...).{name}",
            )
        )

    @property
    def weights(self) -> Any:
        """The weights, which add to 1."""
        return self._weights

    @property
    def neff(self) -> Any:
        """The effective number of data, ``1 / sum(weights ** 2)``."""
        return self._neff

    @property
    def inv_cov(self) -> Any:
        """The inverse of the covariance of the kernels."""
        return np.linalg.inv(self.covariance)

    def scotts_factor(self) -> Any:
        """``neff ** (-1 / (d + 4))``."""
        return self._neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """``(neff (d + 2) / 4) ** (-1 / (d + 4))``."""
        return (self._neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Choose the factor of the width, as in the constructor."""
        self.covariance_factor: Callable[[], Any]
        if bw_method is None or (isinstance(bw_method, str) and bw_method == "scott"):
            self.covariance_factor = self.scotts_factor
        elif isinstance(bw_method, str) and bw_method == "silverman":
            self.covariance_factor = self.silverman_factor
        elif isinstance(bw_method, Tensor) or (np.isscalar(bw_method) and not isinstance(bw_method, str)):
            self.covariance_factor = lambda: real(bw_method)
        elif callable(bw_method):
            self.covariance_factor = lambda: bw_method(self)
        else:
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
        self.factor = self.covariance_factor()
        gaps = self.dataset - np.expand_dims(self.dataset @ self._weights, -1)
        data = (self._weights * gaps) @ np.swapaxes(gaps, 0, 1) / (1 - np.sum(np.square(self._weights)))
        self.covariance = data * np.square(self.factor)
        try:
            self.cho_cov = np.linalg.cholesky(self.covariance)
        except RuntimeError as error:
            raise np.linalg.LinAlgError(
                "The data appears to lie in a lower-dimensional subspace of the space in which it is expressed. This "
                "has resulted in a singular data covariance matrix, which cannot be treated using the algorithms "
                "implemented in `gaussian_kde`. Consider performing principal component analysis / dimensionality "
                "reduction and using `gaussian_kde` with the transformed data."
            ) from error

    def _points(self, x: Any) -> Any:
        points = _columns(real(x))
        d, m = (int(s) for s in points.shape)
        if d != self.d:
            if d == 1 and m == self.d:
                return np.reshape(points, (self.d, 1))
            raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")
        return points

    def _log_mixture(self, points: Any, factor: Any, log_weights: Any) -> Any:
        """``log(sum of w_i N(x; x_i, F F^T))`` at each point x."""
        centres, at = (solve_triangular(factor, t, upper=False) for t in (self.dataset, points))
        energy = np.sum(np.square(np.expand_dims(centres, -1) - np.expand_dims(at, 1)), axis=0) / 2
        terms = np.expand_dims(log_weights, -1) - energy
        return logsumexp(terms, axis=0) - (log_det(factor) + self.d * LOG_2PI) / 2

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points."""
        weights = self._weights
        none = plain(weights) <= 0
        logs = np.where(none, -np.inf, np.log(np.where(none, 1.0, weights)))
        return self._log_mixture(self._points(x), self.cho_cov, logs)

    def evaluate(self, points: Any) -> Any:
        """The density at points."""
        points = self._points(points)
        centres, at = (solve_triangular(self.cho_cov, t, upper=False) for t in (self.dataset, points))
        energy = np.sum(np.square(np.expand_dims(centres, -1) - np.expand_dims(at, 1)), axis=0) / 2
        scale = np.exp(-(log_det(self.cho_cov) + self.d * LOG_2PI) / 2)
        return np.sum(np.expand_dims(self._weights, -1) * np.exp(-energy), axis=0) * scale

    __call__ = evaluate

    def pdf(self, x: Any) -> Any:
        """The density at points."""
        return self.evaluate(x)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability between two bounds, of one variable."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        deviation = np.sqrt(self.covariance)[0, 0]
        a, b = ((real(t) - self.dataset[0]) / deviation for t in (low, high))
        return np.sum(self._weights * (sp.ndtr(b) - sp.ndtr(a)))

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times a normal density."""
        centre, matrix = np.atleast_1d(real(mean)), real(cov)
        matrix = np.reshape(matrix, (1, 1)) if matrix.dim() == 0 else matrix
        if tuple(centre.shape) != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if tuple(matrix.shape) != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        factor = np.linalg.cholesky(self.covariance + matrix)
        return exp_of(self._log_mixture(np.expand_dims(centre, -1), factor, np.log(self._weights)))[0]

    def integrate_kde(self, other: Any) -> Any:
        """The integral of the product of two estimates."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        factor = np.linalg.cholesky(self.covariance + other.covariance)
        return np.sum(other.weights * np.exp(self._log_mixture(other.dataset, factor, np.log(self._weights))))

    def resample(self, size: Any = None, seed: Any = None) -> Any:
        """Samples: data chosen by their weights, plus the Cholesky factor of the kernels times standard normals.

        Differentiable in the dataset and the width. RuntimeError if weights require grad: the choice has no derivative.
        """
        weights = real(self._weights)
        if weights.requires_grad or isinstance(weights, Lifted):
            raise RuntimeError(
                errors.message(
                    "pullback.scipy.stats.gaussian_kde.resample: the choice of data has no derivative by the weights",
                    do="give weights.detach()",
                )
            )
        number = int(weights.numpy().sum() / np.square(weights.numpy()).sum()) if size is None else int(size)
        state = np.random.RandomState(seed) if seed is None or isinstance(seed, (int, np.integer)) else seed
        z = as_tensor(scipy.stats.norm.rvs(size=(self.d, number), random_state=state))
        return self.dataset[:, state.choice(self.n, size=number, p=weights.numpy())] + self.cho_cov @ z


__all__ = ["gaussian_kde"]
