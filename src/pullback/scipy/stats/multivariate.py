"""Distributions of vectors and matrices, under SciPy's names: compositions of triangular solves and log determinants.

Covariances and scales enter by their Cholesky factors; the gradient by a symmetric matrix is symmetric. The samples are
a function of standard ones that do not depend on the parameters (reparametrised): they have SciPy's distribution, and
are not SciPy's number for number.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.special as sp
import scipy.stats

from ... import errors
from ...ops.linalg.solving import solve_triangular
from ...ops.shape.joining import stack
from ...table.operands import plain, somewhere
from ...tensor.tensor import Lifted, Tensor
from ..array_nodes import as_tensor
from ..mirror import mirrors
from ..plain_calls import methods_on_arrays
from ..special.composites import seen
from ..special.large_parameters import finite, gamma_entropy, log_rising
from .continuous import DISTRIBUTIONS
from .formulas import LOG_2PI, log_det, times_log
from .univariate import exp_of, real, refuse_samples, replaced

LOG2 = math.log(2.0)
M = TypeVar("M", bound=Callable[..., Any])
_gamma, _chi2, _norm = DISTRIBUTIONS["gamma"], DISTRIBUTIONS["chi2"], DISTRIBUTIONS["norm"]


def _scipys(method: M) -> M:
    """Where a method fails, SciPy's own error is raised, if SciPy fails as well."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        try:
            return method(self, *args, **kwds)
        except (ValueError, RuntimeError, TypeError, IndexError):
            if any(isinstance(a, Lifted) for a in (*args, *kwds.values())):
                raise
            values = [a.detach().numpy() if isinstance(a, Tensor) else a for a in (*args, *kwds.values())]
            getattr(self._scipy, method.__name__)(
                *values[: len(args)], **dict(zip(kwds, values[len(args) :], strict=True))
            )
            raise

    return call  # type: ignore[return-value]


class Multivariate:
    """What the distributions share: called with parameters, one keeps them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._scipy = getattr(scipy.stats, self.name)
        self.__doc__ = type(self).__doc__

    def __repr__(self) -> str:
        return f"<pullback.scipy.stats.{self.name}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._scipy, name):
            raise AttributeError(f"pullback.scipy.stats.{self.name} has no attribute {name!r}")
        raise AttributeError(
            errors.message(
                f"pullback.scipy.stats.{self.name}.{name} has no derivative here",
                do=f"for values alone, use scipy.stats.{self.name}.{name}",
            )
        )


class FrozenMultivariate:
    """A distribution with its parameters; its methods are those of the distribution without them."""

    def __init__(self, dist: Multivariate, **parameters: Any) -> None:
        self._dist, self.parameters = dist, parameters

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._bound(name)

    def _bound(self, name: str) -> Any:
        method = getattr(self._dist, name)
        taken = inspect.signature(method).parameters
        return functools.partial(method, **{k: v for k, v in self.parameters.items() if k in taken})

    def rvs(self, size: Any = 1, random_state: Any = None) -> Any:
        """Samples, see the method of the distribution."""
        return self._bound("rvs")(size=size, random_state=random_state)


def _generator(random_state: Any) -> Any:
    """A generator from a seed, so that several draws go on."""
    return np.random.RandomState(random_state) if isinstance(random_state, (int, np.integer)) else random_state


def _sizes(size: Any) -> tuple[int, ...]:
    return () if size is None else tuple(np.atleast_1d(size).astype(int).tolist())


def _normals(shape: tuple[int, ...], state: Any) -> Any:
    return _norm.rvs(size=shape, random_state=state)


def _squeezed(t: Any) -> Any:
    return np.squeeze(t)


def _matrix(value: Any, dim: int | None = None) -> Any:
    """A covariance: a number times the identity, or a diagonal, as SciPy takes it."""
    t = real(value)
    if t.dim() == 0:
        return t * np.eye(dim or 1)
    if t.dim() == 1:
        return np.expand_dims(t, -1) * np.eye(t.shape[0])
    if t.dim() != 2 or t.shape[0] != t.shape[1] or (dim is not None and t.shape[0] != dim):
        raise ValueError(f"a covariance of shape {tuple(t.shape)} does not fit")
    return t


def _solved(factor: Any, right: Any) -> Any:
    """``factor^-1 right`` for a lower triangle."""
    return solve_triangular(factor, right, upper=False)


def _points(x: Any, dim: int) -> Any:
    """Points along the last axis."""
    t = real(x)
    if t.dim() == 0:
        t = np.expand_dims(t, 0)
    if t.dim() == 1 and dim == 1:
        t = np.expand_dims(t, -1)
    if t.shape[-1] != dim:
        raise ValueError(f"points of shape {tuple(t.shape)} do not have {dim} components")
    return t


def _mahalanobis(gap: Any, factor: Any) -> Any:
    """The squared length of ``factor^-1 gap`` for gaps along the last axis."""
    flat = np.reshape(gap, (-1, gap.shape[-1]))
    whitened = _solved(factor, np.swapaxes(flat, 0, 1))
    return np.reshape(np.sum(np.square(whitened), axis=0), tuple(gap.shape[:-1]))


class _Elliptical(Multivariate):
    """The parameters of distributions with a centre and a matrix."""

    @staticmethod
    def _parameters(mean: Any, cov: Any) -> tuple[Any, Any, int]:
        """The centre, the matrix, and their dimension."""
        matrix = real(cov)
        dim = matrix.shape[0] if matrix.dim() else (1 if mean is None else max(1, math.prod(real(mean).shape)))
        centre = np.zeros(dim) if mean is None else np.reshape(real(mean), (-1,))
        if len(centre) != dim:
            raise ValueError(f"a centre of {len(centre)} components and a matrix of {dim}")
        return centre, _matrix(matrix, dim), dim


@methods_on_arrays
class MultivariateNormal(_Elliptical):
    """The multivariate normal distribution, differentiable in x, mean and cov.

    ``log p = -(|L^-1 (x - mean)|^2 + log det cov + d log(2 pi)) / 2`` with ``cov = L L^T``. A singular covariance
    (``allow_singular=True``) is a constant. `cdf` is not here: SciPy integrates at random points.

    >>> import numpy as np, pullback
    >>> from pullback.scipy.stats import multivariate_normal
    >>> mean = pullback.tensor([0.0, 1.0], requires_grad=True)
    >>> multivariate_normal.logpdf([1.0, 1.0], mean, np.eye(2)).backward()
    >>> mean.grad
    tensor([1., 0.])
    """

    def __call__(
        self, mean: Any = None, cov: Any = 1, allow_singular: bool = False, seed: Any = None, **kwds: Any
    ) -> Any:
        """The distribution with these parameters."""
        if kwds:
            self._scipy(mean, cov, allow_singular, seed, **kwds)
        return FrozenMultivariate(self, mean=mean, cov=cov, allow_singular=allow_singular)

    @_scipys
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density; x: points along the last axis."""
        centre, matrix, dim = self._parameters(mean, cov)
        gap = _points(x, dim) - centre
        if allow_singular:
            return _squeezed(_singular(gap, matrix))
        factor = np.linalg.cholesky(matrix)
        return _squeezed(-0.5 * (_mahalanobis(gap, factor) + log_det(factor) + dim * LOG_2PI))

    @_scipys
    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        return exp_of(self.logpdf(x, mean, cov, allow_singular))

    @_scipys
    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """The differential entropy."""
        _, matrix, dim = self._parameters(mean, cov)
        return 0.5 * (dim * (1 + LOG_2PI) + log_det(np.linalg.cholesky(matrix)))

    @_scipys
    def rvs(self, mean: Any = None, cov: Any = 1, size: Any = 1, random_state: Any = None) -> Any:
        """Samples ``mean + L z`` of standard normal z."""
        centre, matrix, dim = self._parameters(mean, cov)
        z = _normals((*_sizes(size), dim), random_state)
        return _squeezed(centre + z @ np.swapaxes(np.linalg.cholesky(matrix), -1, -2))


def _singular(gap: Any, matrix: Any) -> Any:
    """The logarithm of the density on the range of a constant covariance."""
    if matrix.requires_grad or isinstance(matrix, Lifted):
        raise NotImplementedError(
            errors.message(
                "pullback.scipy.stats.multivariate_normal: the density has no derivative by a singular covariance",
                do="give cov.detach(), or leave out allow_singular",
            )
        )
    values, vectors = np.linalg.eigh(matrix.numpy())
    kept = values > 1e6 * np.finfo(float).eps * np.max(np.abs(values))
    whitened = gap @ (vectors[:, kept] / np.sqrt(values[kept]))
    found = -0.5 * (np.sum(np.square(whitened), -1) + np.sum(np.log(values[kept])) + kept.sum() * LOG_2PI)
    outside = np.linalg.norm(plain(gap) @ vectors[:, ~kept], axis=-1) >= 1e3 * 1e6 * np.finfo(float).eps
    return replaced(outside, found, -np.inf)


@methods_on_arrays
class MultivariateT(_Elliptical):
    """The multivariate t distribution, differentiable in x, loc, shape and df."""

    def __call__(
        self, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False, seed: Any = None
    ) -> Any:
        """The distribution with these parameters."""
        return FrozenMultivariate(self, loc=loc, shape=shape, df=df)

    @_scipys
    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The logarithm of the density; x: points along the last axis."""
        centre, matrix, dim = self._parameters(loc, shape)
        nu = real(df)
        if not isinstance(nu, Lifted) and np.isinf(nu.detach().numpy()):
            return normal_vectors.logpdf(x, loc, shape)
        factor = np.linalg.cholesky(matrix)
        length = _mahalanobis(_points(x, dim) - centre, factor)
        constant = log_rising(nu / 2, dim) - dim / 2 * LOG_2PI
        return _squeezed(constant - log_det(factor) / 2 - (nu + dim) / 2 * np.log1p(length / nu))

    @_scipys
    def pdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        if allow_singular:
            raise NotImplementedError("pullback.scipy.stats.multivariate_t: allow_singular is not supported")
        return exp_of(self.logpdf(x, loc, shape, df))

    @_scipys
    def entropy(self, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The differential entropy."""
        _, matrix, dim = self._parameters(loc, shape)
        nu = finite(real(df))
        half, both = nu / 2, (nu + dim) / 2
        constant = gamma_entropy(half) - gamma_entropy(both) + dim / 2 * (1 + np.log(nu * math.pi))
        slopes = sp.psi(both) - (1 + dim / 2) * sp.psi(half)
        return constant + slopes + log_det(np.linalg.cholesky(matrix)) / 2

    @_scipys
    def rvs(self, loc: Any = None, shape: Any = 1, df: Any = 1, size: Any = 1, random_state: Any = None) -> Any:
        """Samples ``loc + L z / sqrt(v / df)`` of standard normal z and chi-squared v."""
        state = _generator(random_state)
        centre, matrix, dim = self._parameters(loc, shape)
        v = _chi2.rvs(df, size=_sizes(size), random_state=state) / real(df)
        z = _normals((*_sizes(size), dim), state) / np.expand_dims(np.sqrt(v), -1)
        return _squeezed(centre + z @ np.swapaxes(np.linalg.cholesky(matrix), -1, -2))


@methods_on_arrays
class Dirichlet(Multivariate):
    """The Dirichlet distribution, differentiable in x and alpha; the components of x are along its first axis."""

    def __call__(self, alpha: Any, seed: Any = None) -> Any:
        """The distribution with these parameters."""
        return FrozenMultivariate(self, alpha=alpha)

    def _checked(self, x: Any, alpha: Any) -> tuple[Any, Any]:
        """x with all its components. SciPy's own error for what is no point of the simplex."""
        x, alpha = real(x), real(alpha)
        if not isinstance(x, Lifted) and not isinstance(alpha, Lifted):
            self._scipy.logpdf(x.detach().numpy(), alpha.detach().numpy())
        if x.shape[0] + 1 == alpha.shape[0]:
            x = np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)])
        return x, alpha

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density."""
        x, alpha = self._checked(x, alpha)
        powers = np.reshape(alpha - 1, (-1, *[1] * (x.dim() - 1)))
        return _squeezed(np.sum(times_log(powers, x), axis=0) - np.sum(sp.gammaln(alpha)) + sp.gammaln(np.sum(alpha)))

    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        return exp_of(self.logpdf(x, alpha))

    @_scipys
    def mean(self, alpha: Any) -> Any:
        """The mean of each component."""
        a = real(alpha)
        return a / np.sum(a)

    @_scipys
    def var(self, alpha: Any) -> Any:
        """The variance of each component."""
        m = self.mean(alpha)
        return m * (1 - m) / (np.sum(real(alpha)) + 1)

    @_scipys
    def cov(self, alpha: Any) -> Any:
        """The covariance matrix."""
        m = self.mean(alpha)
        return (np.expand_dims(m, -1) * np.eye(len(m)) - np.outer(m, m)) / (np.sum(real(alpha)) + 1)

    @_scipys
    def entropy(self, alpha: Any) -> Any:
        """The differential entropy."""
        a = real(alpha)
        total = np.sum(a)
        return np.sum(gamma_entropy(a)) - gamma_entropy(total) + (1 - len(a)) * sp.psi(total)

    @_scipys
    def rvs(self, alpha: Any, size: Any = 1, random_state: Any = None) -> Any:
        """Samples of gamma variables, divided by their sum."""
        a = real(alpha)
        g = _gamma.rvs(a, size=(*_sizes(size), len(a)), random_state=random_state)
        return g / np.sum(g, axis=-1, keepdims=True)


class _OfMatrices(Multivariate):
    """What the distribution of Wishart and its inverse share."""

    @staticmethod
    def _parameters(df: Any, scale: Any) -> tuple[Any, Any, int]:
        matrix = _matrix(scale)
        dim = matrix.shape[0]
        df = real(df)
        if seen(plain(df) <= dim - 1):
            raise ValueError("Degrees of freedom must be greater than the dimension of scale matrix minus 1.")
        return df, matrix, dim

    @staticmethod
    def _points(x: Any, dim: int) -> Any:
        """Matrices with the points along the first axis; SciPy has them along the last."""
        t = real(x)
        if t.dim() == 0:
            t = t * np.eye(dim)
        elif t.dim() == 1:
            t = np.expand_dims(np.expand_dims(t, 0), 0) if dim == 1 else np.expand_dims(t, -1) * np.eye(dim)
        t = np.moveaxis(t, -1, 0) if t.dim() == 3 else np.expand_dims(t, 0)
        if tuple(t.shape[-2:]) != (dim, dim):
            raise ValueError(f"points of shape {tuple(t.shape)} are no matrices of dimension {dim}")
        return t

    def __call__(self, df: Any = None, scale: Any = None, seed: Any = None) -> Any:
        """The distribution with these parameters."""
        return FrozenMultivariate(self, df=df, scale=scale)

    def _bartlett(self, df: Any, dim: int, size: Any, state: Any) -> Any:
        """Bartlett's factors: standard normals below the diagonal, roots of chi-squared variables on it."""
        sizes = _sizes(size)
        squares = [_chi2.rvs(df - i, size=sizes, random_state=state) for i in range(dim)]
        diagonal = np.expand_dims(np.sqrt(stack(squares, -1)), -1) * np.eye(dim)
        return diagonal + np.tril(_normals((*sizes, dim, dim), state), -1)

    @_scipys
    def pdf(self, x: Any, df: Any, scale: Any) -> Any:
        """The density."""
        return exp_of(self.logpdf(x, df, scale))


def _multigammaln(a: Any, dim: int) -> Any:
    return sum((sp.gammaln(a - i / 2) for i in range(dim)), dim * (dim - 1) / 4 * math.log(math.pi))


def _outer_diagonal(matrix: Any) -> Any:
    d = np.diagonal(matrix)
    return np.outer(d, d)


@methods_on_arrays
class Wishart(_OfMatrices):
    """The distribution of Wishart, differentiable in x, df and scale; several matrices x are along the last axis."""

    @_scipys
    def logpdf(self, x: Any, df: Any, scale: Any) -> Any:
        """The logarithm of the density."""
        df, matrix, dim = self._parameters(df, scale)
        points, factor = self._points(x, dim), np.linalg.cholesky(matrix)
        roots = np.linalg.cholesky(points)
        trace = np.sum(np.square(_solved(factor, roots)), axis=(-2, -1))
        constant = df / 2 * (dim * LOG2 + log_det(factor)) + _multigammaln(df / 2, dim)
        return _squeezed((df - dim - 1) / 2 * log_det(roots) - trace / 2 - constant)

    @_scipys
    def mean(self, df: Any, scale: Any) -> Any:
        """The mean."""
        df, matrix, _ = self._parameters(df, scale)
        return _squeezed(df * matrix)

    @_scipys
    def var(self, df: Any, scale: Any) -> Any:
        """The variance of each element."""
        df, matrix, _ = self._parameters(df, scale)
        return _squeezed(df * (np.square(matrix) + _outer_diagonal(matrix)))

    @_scipys
    def entropy(self, df: Any, scale: Any) -> Any:
        """The differential entropy."""
        df, matrix, dim = self._parameters(df, scale)
        sums = sum(sp.psi((df - i) / 2) for i in range(dim))
        constant = dim * (dim + 1) / 2 * LOG2 + _multigammaln(df / 2, dim) + df * dim / 2
        return constant + (dim + 1) / 2 * log_det(np.linalg.cholesky(matrix)) - (df - dim - 1) / 2 * sums

    @_scipys
    def rvs(self, df: Any, scale: Any, size: Any = 1, random_state: Any = None) -> Any:
        """Samples ``L A A^T L^T`` of Bartlett's factors A."""
        df, matrix, dim = self._parameters(df, scale)
        root = np.linalg.cholesky(matrix) @ self._bartlett(df, dim, size, _generator(random_state))
        return _squeezed(root @ np.swapaxes(root, -1, -2))


@methods_on_arrays
class InverseWishart(_OfMatrices):
    """The inverse of a matrix with the distribution of Wishart, differentiable in x, df and scale."""

    @_scipys
    def logpdf(self, x: Any, df: Any, scale: Any) -> Any:
        """The logarithm of the density."""
        df, matrix, dim = self._parameters(df, scale)
        roots, factor = np.linalg.cholesky(self._points(x, dim)), np.linalg.cholesky(matrix)
        trace = np.sum(np.square(_solved(roots, factor + np.zeros(tuple(roots.shape)))), axis=(-2, -1))
        constant = df / 2 * (dim * LOG2 - log_det(factor)) + _multigammaln(df / 2, dim)
        return _squeezed(-(df + dim + 1) / 2 * log_det(roots) - trace / 2 - constant)

    @_scipys
    def mean(self, df: Any, scale: Any) -> Any:
        """The mean, for ``df > dim + 1``."""
        df, matrix, dim = self._parameters(df, scale)
        return _squeezed(matrix / (df - dim - 1))

    @_scipys
    def var(self, df: Any, scale: Any) -> Any:
        """The variance of each element, for ``df > dim + 3``."""
        df, matrix, dim = self._parameters(df, scale)
        over = (df - dim) * np.square(df - dim - 1) * (df - dim - 3)
        return _squeezed(((df - dim + 1) * np.square(matrix) + (df - dim - 1) * _outer_diagonal(matrix)) / over)

    @_scipys
    def entropy(self, df: Any, scale: Any) -> Any:
        """The differential entropy."""
        df, matrix, dim = self._parameters(df, scale)
        sums = sum(sp.psi((df - dim + i) / 2) for i in range(1, dim + 1))
        constant = _multigammaln(df / 2, dim) + dim * df / 2
        return constant + (dim + 1) / 2 * (log_det(np.linalg.cholesky(matrix)) - LOG2) - (df + dim + 1) / 2 * sums

    @_scipys
    def rvs(self, df: Any, scale: Any, size: Any = 1, random_state: Any = None) -> Any:
        """Samples ``C C^T`` with ``C = L A^-T``, of Bartlett's factors A."""
        df, matrix, dim = self._parameters(df, scale)
        factors = self._bartlett(df, dim, size, _generator(random_state))
        inverse = _solved(factors, np.eye(dim) + np.zeros(tuple(factors.shape)))
        root = np.linalg.cholesky(matrix) @ np.swapaxes(inverse, -1, -2)
        return _squeezed(root @ np.swapaxes(root, -1, -2))


@methods_on_arrays
class Multinomial(Multivariate):
    """The multinomial distribution, differentiable in p; x and n are whole numbers.

    Where p does not add to 1, SciPy replaces its last element, and so it is here.
    """

    def __call__(self, n: Any, p: Any, seed: Any = None) -> Any:
        """The distribution with these parameters."""
        return FrozenMultivariate(self, n=n, p=p)

    @staticmethod
    def _parameters(n: Any, p: Any) -> tuple[Any, Any, Any]:
        p, n = real(p), np.floor(real(n).detach())
        head = p[..., :-1]
        off = np.absolute(1 - np.sum(plain(p), axis=-1)) > 10 * np.finfo(float).eps
        last = np.where(off, 1 - np.sum(head, axis=-1), p[..., -1])
        p = np.concatenate([head, np.expand_dims(last, -1)], axis=-1)
        bad = np.any((plain(p) < 0) | (plain(p) > 1), axis=-1) | (plain(n) < 0)
        return n, p, bad

    @staticmethod
    def _within(x: Any, n: Any) -> tuple[Any, Any, Any]:
        """Where x has no probability, x, and the logarithm of the number of orders of its events."""
        x = real(x).detach()
        value = plain(x)
        outside = np.any((value < 0) | (value != np.floor(value)), axis=-1) | (np.sum(value, axis=-1) != plain(n))
        x = replaced(np.expand_dims(outside, -1), x, 0.0)
        return outside, x, sp.gammaln(n + 1) - np.sum(sp.gammaln(x + 1), axis=-1)

    @_scipys
    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """The logarithm of the probability of x, whose last axis are the components."""
        n, p, bad = self._parameters(n, p)
        outside, x, orders = self._within(x, n)
        found = orders + np.sum(times_log(x, p), axis=-1)
        return replaced(bad, replaced(outside, found, -np.inf), np.nan)

    @_scipys
    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """The probability of x."""
        n, p, bad = self._parameters(n, p)
        outside, x, orders = self._within(x, n)
        none = np.expand_dims(np.any((plain(p) == 0) & (plain(x) > 0), axis=-1), -1)
        found = exp_of(orders + np.sum(times_log(x, replaced(none, p, 1.0)), axis=-1))
        if somewhere(none):
            product = np.exp(np.minimum(orders, 700.0)) * np.prod(replaced(~none, p, 1.0) ** x, axis=-1)
            found = np.where(none[..., 0], product, found)
        return replaced(bad, replaced(outside, found, 0.0), np.nan)

    @_scipys
    def mean(self, n: Any, p: Any) -> Any:
        """The mean."""
        n, p, bad = self._parameters(n, p)
        return replaced(np.expand_dims(bad, -1), np.expand_dims(n, -1) * p, np.nan)

    @_scipys
    def cov(self, n: Any, p: Any) -> Any:
        """The covariance matrix."""
        n, p, bad = self._parameters(n, p)
        column = np.expand_dims(p, -1)
        found = np.expand_dims(n, (-2, -1)) * (column * np.eye(p.shape[-1]) - column * np.expand_dims(p, -2))
        return replaced(np.expand_dims(bad, (-2, -1)), found, np.nan)

    def rvs(self, n: Any, p: Any, size: Any = None, random_state: Any = None) -> Any:
        """Samples, SciPy's own. RuntimeError if p requires grad."""
        refuse_samples("stats.multinomial", "logpmf", [real(n), real(p)])
        return as_tensor(self._scipy.rvs(real(n).numpy().astype(int), real(p).numpy(), size, random_state))


@methods_on_arrays
class MatrixNormal(Multivariate):
    """The matrix normal distribution, differentiable in X, mean, rowcov and colcov."""

    def __call__(self, mean: Any = None, rowcov: Any = 1, colcov: Any = 1, seed: Any = None) -> Any:
        """The distribution with these parameters."""
        return FrozenMultivariate(self, mean=mean, rowcov=rowcov, colcov=colcov)

    @staticmethod
    def _parameters(mean: Any, rowcov: Any, colcov: Any) -> tuple[Any, Any, Any]:
        """The mean and the factors of both covariances."""
        dims: tuple[int | None, ...] = (None, None) if mean is None else tuple(real(mean).shape)
        rows, columns = _matrix(rowcov, dims[0]), _matrix(colcov, dims[1])
        centre = np.zeros((rows.shape[0], columns.shape[0])) if mean is None else real(mean)
        return centre, np.linalg.cholesky(rows), np.linalg.cholesky(columns)

    @_scipys
    def logpdf(self, X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
        """The logarithm of the density; X: matrices along the last two axes."""
        centre, rows, columns = self._parameters(mean, rowcov, colcov)
        n, m = rows.shape[0], columns.shape[0]
        gap = real(X) - centre
        if tuple(gap.shape[-2:]) != (n, m):
            raise ValueError(f"points of shape {tuple(real(X).shape)} for a mean of shape {(n, m)}")
        zeros = np.zeros((*gap.shape[:-2], 1, 1))
        half = np.swapaxes(_solved(rows + zeros, gap), -1, -2)
        length = np.sum(np.square(_solved(columns + zeros, half)), axis=(-2, -1))
        return _squeezed(-0.5 * (n * m * LOG_2PI + m * log_det(rows) + n * log_det(columns) + length))

    @_scipys
    def pdf(self, X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
        """The density."""
        return exp_of(self.logpdf(X, mean, rowcov, colcov))

    @_scipys
    def entropy(self, rowcov: Any = 1, colcov: Any = 1) -> Any:
        """The differential entropy."""
        _, rows, columns = self._parameters(None, rowcov, colcov)
        n, m = rows.shape[0], columns.shape[0]
        return 0.5 * (n * m * (1 + LOG_2PI) + m * log_det(rows) + n * log_det(columns))

    @_scipys
    def rvs(self, mean: Any = None, rowcov: Any = 1, colcov: Any = 1, size: Any = 1, random_state: Any = None) -> Any:
        """Samples ``mean + R Z C^T`` of standard normal Z, with the factors R and C of the covariances."""
        centre, rows, columns = self._parameters(mean, rowcov, colcov)
        z = _normals((*_sizes(size), rows.shape[0], columns.shape[0]), random_state)
        found = centre + rows @ z @ np.swapaxes(columns, -1, -2)
        return found[0] if _sizes(size) == (1,) else found


_ENTRIES: list[tuple[str, type[Multivariate], str, str]] = [
    ("multivariate_normal", MultivariateNormal, "in x, mean, cov", "no cdf; constant if singular"),
    ("multivariate_t", MultivariateT, "in x, loc, shape, df", "no cdf"),
    ("dirichlet", Dirichlet, "in x, alpha", ""),
    ("wishart", Wishart, "in x, df, scale", ""),
    ("invwishart", InverseWishart, "in x, df, scale", ""),
    ("multinomial", Multinomial, "in p", "rvs by the score function"),
    ("matrix_normal", MatrixNormal, "in X, mean, rowcov, colcov", ""),
]


def as_function(law: Any) -> Any:
    """A distribution, which is called with its parameters."""
    return law


MULTIVARIATE = {
    name: mirrors(
        f"stats.{name}", derivative=words if name == "multinomial" else f"{words}; rvs reparametrised", limits=limits
    )(as_function(cls(name)))
    for name, cls, words, limits in _ENTRIES
}
normal_vectors = MULTIVARIATE["multivariate_normal"]

__all__ = ["MULTIVARIATE"]
