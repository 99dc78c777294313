"""`quad` and `quad_vec`: integrals of functions, with Leibniz' rule.

For ``I = integral from a to b of f(x, theta)``, ``dI = f(b) db - f(a) da + integral of (df/dtheta) dtheta``. The last
integral is one of the same kind, whose integrand is the vjp or the jvp of f, so there is every order in both modes.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate

from ... import errors
from ...autograd.function import Function
from ...autograd.grad_mode import no_grad
from ...func.vectorize import vmap
from ...ops.make.conversion import to
from ...ops.shape.joining import concatenate
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Lifted, Tensor, wrap
from ..array_nodes import Array, array_of, floating
from ..closed_functions import Closed, call, each, given
from ..mirror import mirrors
from ..user_functions import (
    ON_FAILURE,
    Given,
    arguments,
    check_choice,
    check_function,
    example,
    not_converged,
    plain_setting,
    value_of,
)

Integrate = Callable[[Callable[[float], Array], float, float], Array]


class Integrand(NamedTuple):
    """What is integrated, and how.

    closed: the function of x and further inputs. integrate: of a function of numbers to arrays, and of the limits.
    further: the same for the integrals of derivatives. finite: which limits are.
    weight: the function that it is multiplied by, None if that is 1; limited: whether limits have a derivative.
    """

    closed: Closed
    integrate: Integrate
    further: Integrate
    finite: tuple[bool, bool]
    weight: Callable[[Any], Any] | None = None
    limited: bool = True


class Integral(Function):
    """An integral as a node. Its inputs are the limits, and the inputs of the integrand."""

    @staticmethod
    def forward(spec: Integrand, a: Tensor, b: Tensor, *xs: Tensor) -> Any:
        """Integrate on arrays."""
        own = [x.detach() for x in xs]

        def f(x: float) -> Array:
            return spec.closed.values(wrap(np.array(x, np.float64)), *own)[0]._data

        with no_grad():
            return wrap(np.array(spec.integrate(f, float(array_of(a)), float(array_of(b)))))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the inputs."""
        ctx.spec, *xs = inputs
        ctx.save_for_backward(*xs)
        ctx.set_materialize_grads(False)
        ctx.save_for_forward(*xs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        """Leibniz' rule: the integrand at the limits, and the integral of its vjp."""
        if g is None:
            return (None,) * len(ctx.needs_input_grad)
        a, b, *xs = ctx.saved_tensors
        spec, (of_a, of_b, *wanted) = ctx.spec, ctx.needs_input_grad[1:]
        grads: list[Any] = [None, None]
        for i, (x, asked) in enumerate(((a, of_a), (b, of_b))):
            if asked:
                edge = np.real((np.conj(g) * _at_limit(spec, i, x, xs)).sum())
                grads[i] = edge if i else -edge
        if not any(wanted):
            return None, *grads, *[None] * len(wanted)
        pulled = spec.closed.vjp((False, *wanted), (True,))
        flat = _integral_of(spec, lambda x, g, *xs: pulled.fun(g, x, *xs), a, b, g, *xs)
        parts = _split(flat, [x for x, w in zip(xs, wanted, strict=True) if w])
        return None, *grads, *[next(parts) if w else None for w in wanted]

    @staticmethod
    def jvp(ctx: Any, _: Any, *ts: Any) -> Any:
        """The same rule along the tangents."""
        a, b, *xs = ctx.saved_tensors
        spec = ctx.spec
        total = 0.0
        for i, (x, t) in enumerate(((a, ts[0]), (b, ts[1]))):
            if t is not None:
                edge = _at_limit(spec, i, x, xs) * t
                total = total + (edge if i else -edge)
        moved = tuple(t is not None for t in ts[2:])
        if any(moved):
            pushed = spec.closed.jvp((False, *moved), (True,))
            n = sum(moved)
            along = Closed(lambda x, *v: pushed.fun(*v[:n], x, *v[n:]), tangents=n)
            total = total + Integral.apply(
                spec._replace(closed=along, integrate=spec.further), a, b, *given(ts[2:]), *xs
            )
        return total

    @staticmethod
    def vmap(info: Any, in_dims: Any, spec: Integrand, *xs: Tensor) -> Any:
        """One integral for each sample; one of a vector if they differ in tangents alone, as in a Jacobian."""
        dims, closed = in_dims[1:], spec.closed
        if any(d is not None for d in (*dims[:2], *dims[2 + closed.tangents :])):
            return each(info.batch_size, dims, xs, lambda *x: Integral.apply(spec, *x))
        together = Closed(lambda x, *v: vmap(closed.fun, (None, *dims[2:]))(x, *v))
        return Integral.apply(spec._replace(closed=together), *xs), 0


def _at_limit(spec: Integrand, number: int, x: Any, xs: Sequence[Any]) -> Any:
    """The integrand at a limit; 0 at an infinite one."""
    if not spec.finite[number]:
        return wrap(np.zeros(()))
    if not spec.limited:
        raise RuntimeError(
            errors.message(
                "pullback.scipy.integrate.quad: the limits have no derivative with this weight", do="detach them"
            )
        )
    value = call(spec.closed, x, *xs)[0]
    return value if spec.weight is None else value * spec.weight(x)


def _integral_of(spec: Integrand, fun: Callable[..., Any], a: Any, b: Any, *xs: Any) -> Any:
    """The integral of several arrays as one vector."""

    def flat(*values: Any) -> tuple[Any]:
        parts = [reshape(p, (-1,)) for p in fun(*values)]
        dtype = np.result_type(np.float64, *[p._data.dtype for p in parts])
        return (concatenate([to(p, dtype) for p in parts], 0),)

    return Integral.apply(spec._replace(closed=Closed(flat), integrate=spec.further), a, b, *xs)


def _split(flat: Any, like: Sequence[Any]) -> Any:
    """The parts of a vector, with the shapes and dtypes of others."""
    start = 0
    for x in like:
        size = x.numel()
        part = reshape(flat[start : start + size], tuple(x.shape))
        if part._data.dtype.kind == "c" and x._data.dtype.kind != "c":
            part = np.real(part)
        yield to(part, x._data.dtype)
        start += size


_ROUNDING = 2  # the status of quad_vec for an integral that is as exact as rounding allows

_CHANGE = "change the limits, points, limit, epsabs or epsrel"


class _Adaptive:
    """SciPy's integrator with its settings.

    scalar: those of `quad`, None for `quad_vec`. outputs: what it returned besides values, for each call. messages:
    why the integral that was asked for did not converge.
    """

    def __init__(self, where: str, on_failure: str, scalar: dict[str, Any] | None, vector: dict[str, Any]) -> None:
        check_choice(where, "on_failure", on_failure, ON_FAILURE)
        self.where, self.on_failure, self.scalar, self.vector = where, on_failure, scalar, vector
        self.outputs: list[tuple[Any, ...]] = []
        self.messages: list[str] = []

    def first(self, f: Callable[[float], Array], a: float, b: float) -> Array:
        """The integral that was asked for, by the function that was called."""
        if self.scalar is None:
            found, lost = _vectors(f, a, b, self.vector)
        else:
            found, lost = _numbers(lambda x: f(x).item(), a, b, self.scalar)
        self.messages += lost
        self.outputs.append(found[1:])
        return np.asarray(found[0])

    def further(self, f: Callable[[float], Array], a: float, b: float) -> Array:
        """Integrals of derivatives: `quad` for one number or with a weight, else `quad_vec`."""
        sample = f(_inside(a, b))
        if sample.size == 0:
            return sample
        if self.scalar is None or (sample.size > 1 and self.scalar.get("weight") is None):
            with np.errstate(over="ignore", invalid="ignore"):  # of an integral that diverges, which is an error below
                found, lost = _vectors(f, a, b, {**self.vector, "full_output": False})
            return self._checked(np.asarray(found[0]), lost)
        known = functools.cache(lambda x: np.ravel(f(x)))
        settings = {**self.scalar, "full_output": 0, "complex_func": sample.dtype.kind == "c"}
        parts, lost = [], []
        for i in range(sample.size):
            found, messages = _numbers(lambda x: known(x)[i].item(), a, b, settings)  # noqa: B023 - called at once
            parts.append(found[0])
            lost += messages
        return self._checked(np.array(parts).reshape(sample.shape), lost)

    def _checked(self, value: Array, lost: list[str]) -> Array:
        if not lost:
            return value
        if self.on_failure == "raise":
            raise not_converged(f"{self.where}: the integral of a derivative", lost[0], _CHANGE)
        return np.full_like(value, np.nan)


def _vectors(f: Callable[[float], Array], a: float, b: float, settings: dict[str, Any]) -> tuple[Any, list[str]]:
    """What `quad_vec` returns, and why it did not converge."""
    *found, info = scipy.integrate.quad_vec(f, a, b, **{**settings, "full_output": True})
    lost = [] if info.success or info.status == _ROUNDING else [info.message]
    return (*found, info) if settings.get("full_output") else tuple(found), lost


def _numbers(f: Callable[[float], Any], a: float, b: float, settings: dict[str, Any]) -> tuple[Any, list[str]]:
    """What `quad` returns, and why it did not converge. Its further results hold that where they are asked for."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = scipy.integrate.quad(f, a, b, **settings)
    lost = []
    for w in caught:
        if issubclass(w.category, scipy.integrate.IntegrationWarning):
            lost.append(str(w.message))
        else:
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    if settings["full_output"]:
        parts = found[2].values() if isinstance(found[2], dict) and "real" in found[2] else [found[2:]]
        lost += [part[1] for part in parts if len(part) > 1]
    return found, lost


def _inside(a: float, b: float) -> float:
    """A point between the limits."""
    if np.isfinite(a) and np.isfinite(b):
        return a + 0.4321 * (b - a)
    if np.isfinite(a) or np.isfinite(b):
        return a + 0.4321 if np.isfinite(a) and b > a else (b - 0.4321 if np.isfinite(b) else a - 0.4321)
    return 0.4321


def _integrated(
    func: Any, a: Any, b: Any, args: Any, adaptive: _Adaptive, weight: Any = None, limited: bool = True
) -> Any:
    """The node of an integral."""
    where = adaptive.where
    as_complex = adaptive.scalar is not None and adaptive.scalar["complex_func"]
    check_function(where, func)
    taken = Given(arguments(args))
    a, b = to(floating(a), np.float64), to(floating(b), np.float64)

    def integrand(x: Any, *theta: Any) -> tuple[Any]:
        value = value_of(func, where, taken.call(func, (x,), theta))
        return (to(value, np.complex128) if as_complex else value,)

    ends = [float(example(x)._data) for x in (a, b)]
    taken.find_reads(where, lambda *xs: integrand(*xs)[0], wrap(np.array(_inside(*ends))), fun=func)
    taken.refuse_numbers(lambda *theta: integrand(wrap(np.array(_inside(*ends))), *theta)[0])
    finite = (bool(np.isfinite(ends[0])), bool(np.isfinite(ends[1])))

    def first(f: Callable[[float], Array], a: float, b: float) -> Array:
        with taken.running():
            return adaptive.first(f, a, b)

    spec = Integrand(Closed(integrand), first, adaptive.further, finite, weight, limited)
    tensors = (a, b, *taken.inputs)
    value = Integral.apply(spec, *tensors)
    if adaptive.messages:
        if adaptive.on_failure == "nan":
            return value * np.nan
        if any(x.requires_grad or isinstance(x, Lifted) for x in tensors):
            raise not_converged(where, adaptive.messages[0], _CHANGE)
        if adaptive.scalar is not None and not adaptive.scalar["full_output"]:
            for text in adaptive.messages:
                warnings.warn(text, scipy.integrate.IntegrationWarning, stacklevel=3)
    return value


@mirrors(
    "integrate.quad",
    derivative="Leibniz' rule, limits too",
    limits="with the weights 'alg*' and 'cauchy' the limits have no derivative; points and settings have none",
)
def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = 0,
    epsabs: Any = 1.49e-8,
    epsrel: Any = 1.49e-8,
    limit: Any = 50,
    points: Any = None,
    weight: Any = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: Any = 50,
    limlst: Any = 50,
    complex_func: Any = False,
    *,
    on_failure: str = "raise",
) -> Any:
    """The integral of a function of one variable, and SciPy's estimate of its error.

    Args:
        func: is called with a Tensor x without axes, and with `args`; it returns a number. Tensors that it reads
            besides its arguments are differentiated as well.
        a, b, args: Tensors in them are differentiated. A limit may be infinite.
        on_failure: if SciPy warns that the integral did not converge and something requires grad, "raise" a
            RuntimeError with SciPy's words; "nan" gives NaN, and gradients that are NaN. Without gradients it is
            SciPy's warning. It holds for the integrals of derivatives as well.

    Returns:
        ``(value, error)``, and SciPy's further results with `full_output`; only the value is a Tensor. Under `vmap` the
        error is the largest of the samples.

    ``dI = f(b) db - f(a) da + integral of df/dtheta dtheta`` (Leibniz); the last integral is computed by `quad`, or by
    `quad_vec` for several parameters, with the same settings.

    >>> import pullback
    >>> k = pullback.tensor(2.0, dtype=pullback.float64, requires_grad=True)
    >>> value, error = quad(lambda x, k: (-k * x).exp(), 0.0, float("inf"), args=(k,))
    >>> value.backward()  # of 1 / k
    >>> round(k.grad.item(), 6)
    -0.25
    """
    where = "pullback.scipy.integrate.quad"
    settings = {
        "full_output": full_output, "epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points,
        "weight": weight, "wvar": wvar, "wopts": wopts, "maxp1": maxp1, "limlst": limlst, "complex_func": complex_func,
    }  # fmt: skip
    scalar = dict(zip(settings, plain_setting(where, **settings), strict=True))
    vector = {"epsabs": scalar["epsabs"], "epsrel": scalar["epsrel"], "points": scalar["points"], "norm": "max"}
    adaptive = _Adaptive(where, on_failure, scalar, vector)
    factor = {None: None, "cos": lambda x: np.cos(scalar["wvar"] * x), "sin": lambda x: np.sin(scalar["wvar"] * x)}
    known = weight is None or weight in factor
    value = _integrated(func, a, b, args, adaptive, factor.get(weight), known)
    return value, *_largest(adaptive.outputs)


@mirrors("integrate.quad_vec", derivative="Leibniz' rule, limits too", limits="settings have none")
def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: Any = 1e-200,
    epsrel: Any = 1e-8,
    norm: Any = "2",
    cache_size: Any = 100e6,
    limit: Any = 10000,
    workers: Any = 1,
    points: Any = None,
    quadrature: Any = None,
    full_output: Any = False,
    *,
    args: Any = (),
    on_failure: str = "raise",
) -> Any:
    """The integral of a function whose values are arrays, and SciPy's estimate of its error.

    f, a, b, args, on_failure: as in `quad`; `f` returns a Tensor of any shape. An integral that is as exact as rounding
    allows has converged. Without gradients one that did not is SciPy's value, as `full_output` says.

    >>> import pullback
    >>> n = pullback.tensor([1.0, 2.0], dtype=pullback.float64, requires_grad=True)
    >>> value, error = quad_vec(lambda x: x**n, 0.0, 1.0)
    >>> value.sum().backward()  # of 1 / (n + 1)
    >>> n.grad
    tensor([-0.2500, -0.1111], dtype=pullback.float64)
    """
    where = "pullback.scipy.integrate.quad_vec"
    settings = {
        "epsabs": epsabs, "epsrel": epsrel, "norm": norm, "cache_size": cache_size, "limit": limit, "workers": workers,
        "points": points, "quadrature": quadrature, "full_output": full_output,
    }  # fmt: skip
    known = dict(zip(settings, plain_setting(where, **settings), strict=True))
    adaptive = _Adaptive(where, on_failure, None, known)
    value = _integrated(f, a, b, args, adaptive)
    return value, *_largest(adaptive.outputs)


def _largest(outputs: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """What SciPy returned besides values, with the largest error of all samples."""
    return max(outputs, key=lambda o: abs(o[0]))


__all__ = ["quad", "quad_vec"]
