"""Distributions of one variable as objects, under SciPy's names: ``norm.logpdf(x, loc, scale)``, ``norm(loc).cdf(x)``.

A `Law` says what a distribution is, for location 0 and scale 1; the entries are in `continuous` and `discrete`.
Everything else follows here, once: location and scale, the support, parameters out of range, the forms of each other
(the survival function from its logarithm, ...), quantiles and samples by the implicit function theorem.

Outside of the support, and where a parameter is out of range, the value is SciPy's (0, -inf, NaN) and every gradient
is 0. All is computed in float64, as SciPy does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

from ... import errors
from ...func.forward import jvp
from ...ops.make.conversion import to
from ...table.operands import plain, somewhere
from ...tensor.tensor import Lifted, Tensor, wrap
from ..array_nodes import as_tensor, elementwise
from ..plain_calls import methods_on_arrays
from ..special.composites import seen

Formula = Callable[..., Any]


def real(value: Any, where: str = "stats") -> Any:
    """A Tensor of float64. TypeError for complex numbers."""
    t = as_tensor(value)
    if t.is_complex():
        raise TypeError(errors.message(f"pullback.scipy.{where}", expected="real numbers", found=errors.describe(t)))
    return t if t.dtype == wrap(np.zeros(())).dtype else to(t, np.float64)


def replaced(mask: Any, x: Any, value: Any) -> Any:
    """x, and `value` where the mask holds."""
    return np.where(mask, value, x) if somewhere(mask) else x


def exp_of(v: Any) -> Any:
    """``exp(v)``, a constant 0 where it underflows: the derivatives of v may overflow there."""
    return np.exp(_seen(v))


def _seen(v: Any) -> Any:
    return replaced(plain(v) < -750.0, v, -np.inf)


def log1mexp(v: Any) -> Any:
    """``log(1 - exp(v))`` for v <= 0, exact at both ends."""
    v = _seen(v)
    near = plain(v) > -0.7
    zero = plain(v) >= 0
    found = np.where(
        near, np.log(-np.expm1(np.where(near & ~zero, v, -0.5))), np.log1p(-np.exp(np.where(near, -1.0, v)))
    )
    return replaced(zero, found, -np.inf)


def log_of(part: Any, rest: Any) -> Any:
    """The logarithm of a probability whose complement is known as exactly."""
    low = plain(part) < 0.5
    none = plain(part) <= 0
    logs = np.log(np.where(low & ~none, part, 0.5)), np.log1p(-np.where(low, 0.0, rest))
    return replaced(none, np.where(low, *logs), -np.inf)


class Law(NamedTuple):
    """A distribution for location 0 and scale 1, as formulas of x and the shapes.

    support: the ends, numbers or functions of the shapes. valid: whether shapes are in their range; by default all are
    positive. Of the distribution functions some suffice: cdf, sf, or their logarithms; even: the density is even.
    open: the density is 0 at the lower end, where the formula is not defined. period: of angles, which samples are
    reduced by. usual: shapes in range. whole: the shapes that are integers. mean, var, entropy: of the shapes. mass: a
    probability as a product, where a factor of it is 0.
    """

    log_density: Formula
    support: tuple[Any, Any] = (-np.inf, np.inf)
    valid: Formula | None = None
    cdf: Formula | None = None
    sf: Formula | None = None
    logcdf: Formula | None = None
    logsf: Formula | None = None
    mean: Formula | None = None
    var: Formula | None = None
    entropy: Formula | None = None
    even: bool = False
    open: bool = False
    period: float | None = None
    usual: tuple[float, ...] = (1.0, 2.0)
    whole: str = ""
    mass: Formula | None = None

    def ends(self, shapes: Sequence[Any]) -> tuple[Any, Any]:
        low, high = self.support
        return low(*shapes) if callable(low) else low, high(*shapes) if callable(high) else high

    def form(self, name: str) -> Formula:
        """A distribution function by its name, from those that the entry gives."""
        given = getattr(self, name)
        if given is not None:
            return given
        other = {"cdf": "sf", "sf": "cdf", "logcdf": "logsf", "logsf": "logcdf"}[name]
        if self.even and getattr(self, other):
            mirrored = getattr(self, other)
            return lambda x, *shapes: mirrored(-x, *shapes)
        mine, theirs = (getattr(self, f"log{n}") for n in (name, other)) if name in ("cdf", "sf") else (None, None)
        if mine is not None:
            return lambda x, *shapes: exp_of(mine(x, *shapes))
        if theirs is not None:
            return lambda x, *shapes: -np.expm1(_seen(theirs(x, *shapes)))
        if name.startswith("log"):
            if getattr(self, other) is not None:
                return lambda x, *shapes: log1mexp(getattr(self, other)(x, *shapes))
            part, rest = self.form(name[3:]), self.form(other[3:])
            return lambda x, *shapes: log_of(part(x, *shapes), rest(x, *shapes))
        whole = getattr(self, other)
        return lambda x, *shapes: 1 - whole(x, *shapes)


def _spread(found: Any, shape: Any) -> Any:
    """A moment in the shape of all parameters, whether it depends on them or not."""
    return found if tuple(found.shape) == tuple(shape) else np.broadcast_to(found, tuple(shape))


def _loss(logs: Any) -> Any:
    found = -np.sum(logs, axis=0) if logs.dim() else -logs
    return replaced(np.isnan(plain(found)), found, np.inf)


class Univariate:
    """What continuous and discrete distributions share."""

    _places: tuple[str, ...] = ("loc", "scale")

    def __init__(self, name: str, law: Law) -> None:
        self.name, self.law = name, law
        self._scipy = getattr(scipy.stats, name)
        self.shapes: str | None = self._scipy.shapes
        words = (self.shapes or "").replace(",", " ").split()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        defaults = {"loc": 0.0, "scale": 1.0}
        self._signature = inspect.Signature(
            [inspect.Parameter(w, kind) for w in words]
            + [inspect.Parameter(w, kind, default=defaults[w]) for w in self._places]
        )
        self.__doc__ = (
            f"scipy.stats.{name}, with derivatives.\n\nMethods: {', '.join(self._methods)}. "
            f"Called with parameters, it keeps them: ``{name}(...)``."
        )

    _methods: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<pullback.scipy.stats.{self.name}>"

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with these parameters, whose methods take none."""
        return Frozen(self, args, kwds)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._scipy, name):
            raise AttributeError(f"pullback.scipy.stats.{self.name} has no attribute {name!r}")
        raise AttributeError(
            errors.message(
                f"pullback.scipy.stats.{self.name}.{name} has no derivative here",
                do=f"use one of {', '.join(self._methods)}; for values alone, scipy.stats.{self.name}.{name}",
            )
        )

    def __dir__(self) -> list[str]:
        return sorted([*self._methods, "name", "shapes"])

    # Parameters

    def _parsed(self, args: Sequence[Any], kwds: dict[str, Any]) -> list[Tensor]:
        """Shapes, location and scale. SciPy's own TypeError where they are too many or too few."""
        try:
            bound = self._signature.bind(*args, **kwds)
        except TypeError:
            self._scipy(*args, **kwds)
            raise
        bound.apply_defaults()
        found = []
        for word, value in bound.arguments.items():
            t = real(value, f"stats.{self.name}: {word}")
            if word in self.law.whole.split():
                if t.requires_grad:
                    raise TypeError(
                        errors.message(
                            f"pullback.scipy.stats.{self.name}: {word} is a whole number, and has no derivative",
                            found=f"{errors.describe(t)} that requires grad",
                            do=f"give {word}.detach()",
                        )
                    )
                t = t.detach()
            found.append(t)
        return found

    def _bad(self, shapes: Sequence[Any]) -> Any:
        """Where shapes are out of range."""
        given = [plain(s) for s in shapes]
        if self.law.valid is not None:
            return ~self.law.valid(*given)
        return functools.reduce(lambda bad, s: bad | ~(s > 0), given, np.False_)

    def _formula(self, name: str, of: str, shapes: Sequence[Any]) -> Any:
        formula = getattr(self.law, name)
        if formula is None:
            raise NotImplementedError(
                errors.message(
                    f"pullback.scipy.stats.{self.name}.{of} is not in closed form",
                    do=f"use scipy.stats.{self.name}.{of} for the value alone",
                )
            )
        bad = self._bad(shapes)
        found = real(formula(*self._usual(bad, shapes)))
        shape = np.broadcast_shapes(*[tuple(t.shape) for t in shapes])
        return replaced(bad, _spread(found, shape), np.nan)

    def _in_range(self, args: Sequence[Any], kwds: dict[str, Any]) -> tuple[list[Any], Any, Any, Any]:
        """Shapes, location, scale (1 for discrete laws), in range, and where they were out of it."""
        shapes = self._parsed(args, kwds)
        scale = shapes.pop() if "scale" in self._places else real(1.0)
        loc = shapes.pop()
        bad = self._bad(shapes) | ~(plain(scale) > 0) | np.isnan(plain(loc))
        return self._usual(bad, shapes), loc, replaced(bad, scale, 1.0), bad

    def support(self, *args: Any, **kwds: Any) -> tuple[Any, Any]:
        """The ends of the support."""
        shapes, loc, scale, bad = self._in_range(args, kwds)
        low, high = (replaced(bad, real(e) * scale + loc, np.nan) for e in self.law.ends(shapes))
        return low, high

    def mean(self, *args: Any, **kwds: Any) -> Any:
        """The mean."""
        shapes, loc, scale, bad = self._in_range(args, kwds)
        return replaced(bad, self._formula("mean", "mean", shapes) * scale + loc, np.nan)

    def var(self, *args: Any, **kwds: Any) -> Any:
        """The variance."""
        shapes, _, scale, bad = self._in_range(args, kwds)
        return replaced(bad, _spread(self._formula("var", "var", shapes) * np.square(scale), bad.shape), np.nan)

    def std(self, *args: Any, **kwds: Any) -> Any:
        """The standard deviation."""
        return np.sqrt(self.var(*args, **kwds))

    def stats(self, *args: Any, **kwds: Any) -> Any:
        """Mean and variance, by the letters of `moments` ("mv")."""
        return _stats(self, args, kwds)

    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """The entropy; of a density, the differential one."""
        shapes, _, scale, bad = self._in_range(args, kwds)
        return replaced(bad, _spread(self._formula("entropy", "entropy", shapes) + np.log(scale), bad.shape), np.nan)

    def _usual(self, bad: Any, shapes: Sequence[Any]) -> list[Any]:
        """Shapes, where they are out of range replaced by some that are not."""
        return [replaced(bad, s, u) for s, u in zip(shapes, self.law.usual, strict=False)]

    # On the standard form

    def _inner(self, shapes: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The ends of the support, and a point within."""
        low, high = (plain(real(e)) for e in self.law.ends(shapes))
        left, right = np.isfinite(low), np.isfinite(high)
        a, b = np.where(left, low, 0.0), np.where(right, high, 0.0)
        return low, high, np.where(left & right, (a + b) / 2, np.where(left, a + 1, np.where(right, b - 1, 0.5)))

    def _log_density(self, x: Any, shapes: Sequence[Any]) -> Any:
        raise NotImplementedError

    def _function(self, name: str, x: Any, shapes: Sequence[Any]) -> Any:
        """A distribution function: 0 and 1 outside of the support."""
        low, high, inside = self._inner(shapes)
        below, above = self._sides(plain(x), low, high)
        x = replaced(below | above, x, inside)
        found = self.law.form(name)(x, *shapes)
        first, last = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-np.inf, 0.0), "logsf": (0.0, -np.inf)}[name]
        return replaced(above, replaced(below, found, first), last)

    def _sides(self, x: Any, low: Any, high: Any) -> tuple[Any, Any]:
        return x <= low, x >= high


class Frozen:
    """A distribution with its parameters, `dist`, `args` and `kwds`; its methods are those of the distribution."""

    def __init__(self, dist: Univariate, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        dist._parsed(args, kwds)
        self.dist, self.args, self.kwds = dist, args, kwds

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(self.dist, name)
        parameters = self.dist._signature.bind(*self.args, **self.kwds).arguments

        def call(*first: Any, **named: Any) -> Any:
            if "x" in named:  # as SciPy names the point, also that of the cdf of a discrete law
                first = (named.pop("x"), *first)
            return method(*first, **named, **parameters)

        return call

    def stats(self, moments: str = "mv") -> Any:
        """Mean and variance, see the method of the distribution."""
        return self.dist.stats(*self.args, **self.kwds, moments=moments)

    def rvs(self, size: Any = None, random_state: Any = None) -> Tensor:
        """Samples, see the method of the distribution."""
        return self.dist.rvs(*self.args, **self.kwds, size=size, random_state=random_state)


@methods_on_arrays
class Continuous(Univariate):
    """A continuous distribution of one variable."""

    _methods = (
        "logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", "median", "interval", "support", "mean", "var",
        "std", "stats", "entropy", "nnlf", "rvs", "fit",
    )  # fmt: skip

    def _log_density(self, x: Any, shapes: Sequence[Any]) -> Any:
        low, high, inside = self._inner(shapes)
        value = plain(x)
        outside = (value < low) | (value > high) | (np.absolute(value) == np.inf)
        if self.law.open:
            outside = outside | (value == low)
        x = replaced(outside, x, inside)
        return replaced(outside, self.law.log_density(x, *shapes), -np.inf)

    def _placed(self, x: Any, args: Sequence[Any], kwds: dict[str, Any]) -> tuple[Any, list[Any], Any, Any]:
        """x for location 0 and scale 1, the shapes, the scale, and where parameters are out of range."""
        shapes, loc, scale, bad = self._in_range(args, kwds)
        x = real(x)
        far = np.absolute(plain(x)) == np.inf
        with np.errstate(invalid="ignore"):
            value = (plain(x) - plain(loc)) / plain(scale)
        return replaced(far, (replaced(far, x, 0.0) - loc) / scale, value), shapes, scale, bad

    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the density at x."""
        y, shapes, scale, bad = self._placed(x, args, kwds)
        return replaced(bad, self._log_density(y, shapes) - np.log(scale), np.nan)

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The density at x."""
        y, shapes, scale, bad = self._placed(x, args, kwds)
        logs, (low, high, inside) = self._log_density(y, shapes), self._inner(shapes)
        none = (plain(logs) == -np.inf) & ((plain(y) == low) | (plain(y) == high))
        if somewhere(none):
            logs = replaced(none, self._log_density(replaced(none, y, inside), shapes), -np.inf)
        return exp_of(replaced(bad, logs - np.log(scale), np.nan))

    def _at(self, name: str, x: Any, args: Sequence[Any], kwds: dict[str, Any]) -> Any:
        y, shapes, _, bad = self._placed(x, args, kwds)
        return replaced(bad, self._function(name, y, shapes), np.nan)

    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of values up to x."""
        return self._at("cdf", x, args, kwds)

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of `cdf`."""
        return self._at("logcdf", x, args, kwds)

    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of values above x: ``1 - cdf``, without cancellation."""
        return self._at("sf", x, args, kwds)

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of `sf`."""
        return self._at("logsf", x, args, kwds)

    # Quantiles and samples: x with F(x; shapes) = q has dx = (dq - dF) / density

    def _settled(self, tail: str, x: Any, q: Any, shapes: Sequence[Any]) -> Any:
        """x, with the derivatives of the solution of ``tail(x, *shapes) = q``."""
        sign = 1.0 if tail == "cdf" else -1.0

        def at(given: Sequence[Any]) -> tuple[Any, Any]:
            y = self._settled(tail, given[0], given[1], given[2:])
            density = np.exp(self._log_density(y, given[2:]))
            usable = (plain(density) > 0) & (plain(density) < np.inf)
            return y, np.where(usable, sign / np.where(usable, density, 1.0), 0.0)

        def by_shape(number: int) -> Formula:
            def partial(*given: Any) -> Any:
                y, factor = at(given)
                rest = [s + np.zeros(tuple(y.shape)) for s in given[2:]]

                def of_one(s: Any) -> Any:
                    return self._function(tail, y, [*rest[:number], s, *rest[number + 1 :]])

                slope = jvp(of_one, (rest[number],), (np.ones_like(rest[number]),))[1]
                return -factor * slope

            return partial

        partials = [None, lambda *given: at(given)[1], *[by_shape(i) for i in range(len(shapes))]]
        node = elementwise(f"stats.{self.name}", lambda x, *_: np.broadcast_arrays(x, *_)[0], *partials)
        return node(x, q, *shapes)

    def _quantile(self, tail: str, q: Any, args: Sequence[Any], kwds: dict[str, Any]) -> Any:
        shapes, loc, scale, bad = self._in_range(args, kwds)
        q = real(q)
        method = self._scipy.ppf if tail == "cdf" else self._scipy.isf
        known = elementwise(f"stats.{self.name}.ppf", method, *[None] * (1 + len(shapes)))
        x = known(q.detach(), *[s.detach() for s in shapes])
        return replaced(bad, self._settled(tail, x, q, shapes) * scale + loc, np.nan)

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """The quantile of the probability q: the inverse of `cdf`."""
        return self._quantile("cdf", q, args, kwds)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """The inverse of `sf`."""
        return self._quantile("sf", q, args, kwds)

    def median(self, *args: Any, **kwds: Any) -> Any:
        """The quantile of 1/2."""
        return self.ppf(0.5, *args, **kwds)

    def interval(self, confidence: Any, *args: Any, **kwds: Any) -> tuple[Any, Any]:
        """The ends of the interval around the median that has this probability."""
        half = real(confidence) / 2
        return self.ppf(0.5 - half, *args, **kwds), self.ppf(0.5 + half, *args, **kwds)

    def rvs(self, *args: Any, **kwds: Any) -> Any:
        """Samples, SciPy's own for the same `random_state`, differentiable in the parameters.

        size: the shape. random_state: as SciPy takes it. Location and scale act on standard samples; for the shapes the
        derivative is that of the quantile at the sample's own probability, ``-(dF/dshape) / density`` (implicit
        reparametrisation, Figurnov, Mohamed and Mnih, 2018). Under `vmap`, all share the standard samples of a law
        without shapes.
        """
        kwds = dict(kwds)
        size, state = kwds.pop("size", None), kwds.pop("random_state", None)
        if len(args) > len(self._signature.parameters):
            *args, size = args  # type: ignore[assignment]
        *shapes, loc, scale = self._parsed(args, kwds)
        broadcast = np.broadcast_shapes(*[tuple(p.shape) for p in (*shapes, loc, scale)])
        wanted = broadcast if size is None else tuple(np.atleast_1d(size).astype(int).tolist())
        trailing = broadcast[max(len(broadcast) - len(wanted), 0) :]
        fits = all(b in (1, w) for b, w in zip(reversed(trailing), reversed(wanted), strict=False))
        if not fits or len(broadcast) > len(wanted):
            raise ValueError("size does not match the broadcast shape of the parameters.")
        if seen(plain(scale) < 0):
            raise ValueError("Domain error in arguments.")

        def draw(whole: Any, *values: Any) -> Any:
            shape = np.broadcast_shapes(whole.shape, *[v.shape for v in values])
            return np.asarray(self._scipy.rvs(*values, size=shape, random_state=state)).reshape(shape)

        known = elementwise(f"stats.{self.name}.rvs", draw, *[None] * (1 + len(shapes)))
        x = known(np.zeros(wanted), *[s.detach() for s in shapes])
        found = (self._settled("cdf", x, 0.0, shapes) if shapes else x) * scale + loc
        period = self.law.period
        return found if period is None else np.mod(found + period / 2, period) - period / 2

    def nnlf(self, theta: Any, x: Any) -> Any:
        """The negative logarithm of the likelihood of x; theta: shapes, location and scale.

        Infinite, as SciPy's, where a parameter is out of range, or data are NaN.
        """
        return _loss(self.logpdf(x, *theta))

    def fit(self, data: Any, *args: Any, **kwds: Any) -> Any:
        """SciPy's estimate of shapes, location and scale from data: numbers, without derivatives.

        TypeError for data that requires grad: write the likelihood with `logpdf` or `nnlf` and minimise it.
        """
        if isinstance(data, Tensor):
            if data.requires_grad or isinstance(data, Lifted):
                raise TypeError(
                    errors.message(
                        f"pullback.scipy.stats.{self.name}.fit: the estimate has no derivative by the data here",
                        do="give data.detach(), or minimise nnlf with pullback.scipy.optimize.minimize",
                    )
                )
            data = data.numpy()
        return self._scipy.fit(data, *args, **kwds)


def _stats(dist: Any, args: Sequence[Any], kwds: dict[str, Any]) -> Any:
    kwds = dict(kwds)
    found = []
    for letter in kwds.pop("moments", "mv"):
        if letter not in "mv":
            raise NotImplementedError(
                errors.message(
                    f"pullback.scipy.stats.{dist.name}.stats: skewness and kurtosis are not here",
                    do='give moments="mv"',
                )
            )
        found.append((dist.mean if letter == "m" else dist.var)(*args, **kwds))
    return found[0] if len(found) == 1 else tuple(found)


@methods_on_arrays
class Discrete(Univariate):
    """A distribution of whole numbers. In the point and in the location the functions are steps, of derivative 0."""

    _places = ("loc",)
    _methods = (
        "logpmf", "pmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", "median", "interval", "support", "mean", "var",
        "std", "stats", "entropy", "nnlf", "rvs",
    )  # fmt: skip

    def _within(self, x: Any, shapes: Sequence[Any]) -> tuple[Any, Any]:
        """Where x has no probability, and x, there replaced by a value that has one."""
        low, high, inside = self._inner(shapes)
        value = plain(x)
        k = np.floor(value)
        outside = (value < low) | (value > high) | (k != value) | (np.absolute(value) == np.inf)
        return outside, replaced(outside, k, np.floor(inside))

    def _log_density(self, x: Any, shapes: Sequence[Any]) -> Any:
        outside, k = self._within(x, shapes)
        return replaced(outside, self.law.log_density(k, *shapes), -np.inf)

    def _mass(self, x: Any, shapes: Sequence[Any]) -> Any:
        outside, k = self._within(x, shapes)
        logs = self.law.log_density(k, *shapes)
        found, none = exp_of(logs), plain(logs) == -np.inf
        if self.law.mass is not None and somewhere(none):
            logs = self.law.log_density(k, *self._usual(none, shapes))
            found = np.where(none, self.law.mass(k, *self._usual(~none, shapes)), exp_of(logs))
        return replaced(outside, found, 0.0)

    def _sides(self, x: Any, low: Any, high: Any) -> tuple[Any, Any]:
        return x < low, x >= high

    def _placed(self, x: Any, args: Sequence[Any], kwds: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        *shapes, loc = self._parsed(args, kwds)
        x = (real(x) - loc).detach()
        missing = np.isnan(plain(x))
        bad = self._bad(shapes) | missing
        return replaced(missing, x, 0.0), self._usual(bad, shapes), bad

    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the probability of k."""
        k, shapes, bad = self._placed(k, args, kwds)
        return replaced(bad, self._log_density(k, shapes), np.nan)

    def pmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of k."""
        k, shapes, bad = self._placed(k, args, kwds)
        return replaced(bad, self._mass(k, shapes), np.nan)

    def _at(self, name: str, k: Any, args: Sequence[Any], kwds: dict[str, Any]) -> Any:
        k, shapes, bad = self._placed(k, args, kwds)
        return replaced(bad, self._function(name, np.floor(k), shapes), np.nan)

    def cdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of values up to k."""
        return self._at("cdf", k, args, kwds)

    def logcdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of `cdf`."""
        return self._at("logcdf", k, args, kwds)

    def sf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of values above k."""
        return self._at("sf", k, args, kwds)

    def logsf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of `sf`."""
        return self._at("logsf", k, args, kwds)

    def _constant(self, method: Formula, q: Any, args: Sequence[Any], kwds: dict[str, Any]) -> Any:
        given = [real(q), *self._parsed(args, kwds)]
        return elementwise(f"stats.{self.name}", method, *[None] * len(given))(*[t.detach() for t in given])

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """The smallest k with ``cdf(k) >= q``: a constant, because it moves in steps."""
        return self._constant(self._scipy.ppf, q, args, kwds)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """The inverse of `sf`: a constant, because it moves in steps."""
        return self._constant(self._scipy.isf, q, args, kwds)

    median, interval = Continuous.median, Continuous.interval

    def rvs(self, *args: Any, **kwds: Any) -> Any:
        """Samples, SciPy's own. They have no derivative: RuntimeError if a parameter requires grad."""
        kwds = dict(kwds)
        size, state = kwds.pop("size", None), kwds.pop("random_state", None)
        if len(args) > len(self._signature.parameters):
            *args, size = args  # type: ignore[assignment]
        parameters = self._parsed(args, kwds)
        refuse_samples(f"stats.{self.name}", "logpmf", parameters)
        words = zip(self._signature.parameters, parameters, strict=True)
        plains = [p.numpy().astype(np.int64) if w in self.law.whole.split() else p.numpy() for w, p in words]
        return as_tensor(self._scipy.rvs(*plains, size=size, random_state=state))

    def nnlf(self, theta: Any, x: Any) -> Any:
        """The negative logarithm of the likelihood of x; theta: shapes and location.

        Infinite, as SciPy's, where a parameter is out of range, or data are NaN.
        """
        return _loss(self.logpmf(x, *theta))


def refuse_samples(name: str, density: str, parameters: Sequence[Tensor]) -> None:
    """RuntimeError if samples would have to be differentiated."""
    if any(p.requires_grad or isinstance(p, Lifted) for p in parameters):
        raise RuntimeError(
            errors.message(
                f"pullback.scipy.{name}.rvs: samples of this distribution have no derivative by its parameters",
                do=f"detach() them, and weight by the score function: (f(x).detach() * {name.split('.')[-1]}.{density}"
                "(x, ...)).mean() has the gradient of the mean of f",
            )
        )


__all__ = ["Continuous", "Discrete", "Law", "exp_of", "log1mexp", "log_of", "real", "refuse_samples", "replaced"]
