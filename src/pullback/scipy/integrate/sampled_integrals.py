"""Integrals of samples: `trapezoid`, `simpson`, and their cumulative forms.

SciPy computes the values. Each is linear in the samples, with weights that are rational functions of the positions, and
the derivatives are those of the same formulas in recorded operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate

from ...ops.make.conversion import to
from ...ops.shape.axes import movedim
from ...ops.shape.joining import concatenate
from ...tensor.nested import leaves
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import array_of, as_tensor, floating
from ..closed_functions import Closed, call
from ..mirror import mirrors

_DERIVATIVE = "linear in y; x, dx and initial by the formula of the weights"


def _sampled(scipy_function: Callable[..., Any], formula: Callable[..., Any], axis: int, **given: Any) -> Any:
    """The node of a function of SciPy's: the Tensors among the arguments are its inputs.

    formula: the same of y, of the spacings and of `initial`, along the last axis.
    """
    given["y"] = floating(given["y"])
    for name, value in given.items():
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in leaves(value)):
            given[name] = as_tensor(value)
    names = [name for name, value in given.items() if isinstance(value, Tensor)]
    found: list[Any] = []

    def values(*tensors: Tensor) -> tuple[Tensor]:
        arrays = {**given, **dict(zip(names, map(array_of, tensors), strict=True))}
        out = np.asarray(scipy_function(arrays.pop("y"), axis=axis, **arrays))
        found.append(out.dtype)
        return (wrap(np.array(out)),)

    def recorded(*tensors: Tensor) -> tuple[Any]:
        every = {**given, **dict(zip(names, tensors, strict=True))}
        y = every["y"]
        steps: Any = every.get("dx") if every.get("x") is None else _spacings(every["x"], y, axis)
        if every.get("x") is None and np.ndim(steps):
            steps = movedim(as_tensor(steps), axis, -1)
        initial = every.get("initial")
        if initial is not None and np.ndim(initial):
            initial = movedim(as_tensor(initial), axis, -1)
        return (to(formula(movedim(y, axis, -1), steps, initial), found[0]),)

    return call(Closed(recorded, values), *[given[name] for name in names])[0]


def _spacings(x: Any, y: Any, axis: int) -> Any:
    """The distances of the positions, along the last axis."""
    x = floating(x)
    if x.dim() > 1 or y.dim() == 1:
        x = movedim(x, axis, -1)
    return x[..., 1:] - x[..., :-1]


def _ratio(a: Any, b: Any) -> Any:
    """a / b, and 0 where b is 0."""
    zero = b == 0
    return np.where(zero, 0.0, a / np.where(zero, 1.0, b))


@mirrors("integrate.trapezoid", derivative=_DERIVATIVE)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule.

    y, x, dx: Tensors in them are differentiated; dx is a number or has the shape of the differences.

    >>> import pullback
    >>> y = pullback.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> trapezoid(y, dx=0.5).backward()
    >>> y.grad
    tensor([0.2500, 0.5000, 0.2500])
    """

    def formula(y: Any, d: Any, _: Any) -> Any:
        return (d * (y[..., 1:] + y[..., :-1]) / 2.0).sum(-1)

    return _sampled(scipy.integrate.trapezoid, formula, axis, y=y, x=x, dx=dx)


@mirrors("integrate.cumulative_trapezoid", derivative=_DERIVATIVE)
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """The integrals of samples up to each of them, by the trapezoidal rule.

    y, x, dx: Tensors in them are differentiated. initial: 0 to begin with a zero, or None.

    >>> import pullback
    >>> cumulative_trapezoid(pullback.tensor([1.0, 2.0, 4.0]), initial=0)
    tensor([0.0000, 1.5000, 4.5000])
    """

    def formula(y: Any, d: Any, initial: Any) -> Any:
        parts = np.cumsum(d * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
        return movedim(parts if initial is None else concatenate([y[..., :1] * 0, parts], -1), -1, axis)

    return _sampled(scipy.integrate.cumulative_trapezoid, formula, axis, y=y, x=x, dx=dx, initial=initial)


@mirrors("integrate.simpson", derivative=_DERIVATIVE)
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by Simpson's rule; for an even number of them, with Cartwright's correction at the end.

    y, x, dx: Tensors in them are differentiated.

    >>> import pullback
    >>> y = pullback.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> simpson(y).backward()
    >>> y.grad
    tensor([0.3333, 1.3333, 0.3333])
    """
    return _sampled(scipy.integrate.simpson, _simpson, axis, y=y, x=x, dx=dx)


def _simpson(y: Any, d: Any, _: Any) -> Any:
    n = y.shape[-1]
    if n < 2:
        return y.sum(-1) * 0
    if not np.ndim(d):
        d = d * wrap(np.ones(n - 1))
    if n == 2:
        return 0.5 * d[..., 0] * (y[..., 1] + y[..., 0])
    odd = n if n % 2 else n - 1
    h0, h1, total = d[..., 0 : odd - 1 : 2], d[..., 1 : odd - 1 : 2], 0.0
    width = h0 + h1
    y0, y1, y2 = y[..., 0 : odd - 2 : 2], y[..., 1 : odd - 1 : 2], y[..., 2:odd:2]
    total = (
        width / 6.0 * (y0 * (2.0 - _ratio(h1, h0)) + y1 * width * _ratio(width, h0 * h1) + y2 * (2.0 - _ratio(h0, h1)))
    ).sum(-1)
    if n % 2:
        return total
    a, b = d[..., -2], d[..., -1]
    last = _ratio(2 * b**2 + 3 * a * b, 6 * (b + a)) * y[..., -1]
    middle = _ratio(b**2 + 3 * a * b, 6 * a) * y[..., -2]
    return total + last + middle - _ratio(b**3, 6 * a * (a + b)) * y[..., -3]


@mirrors("integrate.cumulative_simpson", derivative=_DERIVATIVE)
def cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """The integrals of samples up to each of them, by parabolas through three neighbours.

    y, x, dx, initial: Tensors in them are differentiated.

    >>> import pullback
    >>> cumulative_simpson(pullback.tensor([0.0, 1.0, 4.0, 9.0]), initial=0.0)
    tensor([0.0000, 0.3333, 2.6667, 9.0000], dtype=pullback.float64)
    """
    return _sampled(
        scipy.integrate.cumulative_simpson,
        lambda y, d, initial: movedim(_cumulative_simpson(y, d, initial), -1, axis),
        axis,
        y=y,
        x=x,
        dx=dx,
        initial=initial,
    )


def _cumulative_simpson(y: Any, d: Any, initial: Any) -> Any:
    n = y.shape[-1]
    steps = d * wrap(np.ones(n - 1))
    if n < 3:
        parts = steps * (y[..., 1:] + y[..., :-1]) / 2.0
    else:
        first = _first_of_two(y, steps)
        second = np.flip(_first_of_two(np.flip(y, axis=-1), np.flip(steps, axis=-1)), axis=-1)
        parts = concatenate(
            [first[..., i : i + 1] if i % 2 == 0 and i < n - 2 else second[..., i - 1 : i] for i in range(n - 1)], -1
        )
    sums = np.cumsum(parts, axis=-1)
    if initial is None:
        return sums
    start = y[..., :1] * 0 + initial
    return concatenate([start, sums + start], -1)


def _first_of_two(y: Any, d: Any) -> Any:
    """The integrals over the first of each two neighbouring intervals, of the parabola through the three samples."""
    a, b = d[..., :-1], d[..., 1:]
    to_both = a / (a + b)
    corner = to_both * a / b
    return a / 6 * ((3 - to_both) * y[..., :-2] + (3 + corner + to_both) * y[..., 1:-1] - corner * y[..., 2:])


__all__ = ["cumulative_simpson", "cumulative_trapezoid", "simpson", "trapezoid"]
