"""autograd.misc: nested values as one row of numbers, simple optimisers, fixed points, and `const_graph`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import passes
from .box import getval
from .spaces import vspace
from .user_rules import defvjp, primitive
from .wrapping import wraps


def _in_order(value: Any) -> Iterator[Any]:
    """The leaves of nested lists, tuples and dicts; a dict's by the order of its keys."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _in_order(part)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from _in_order(value[key])
    else:
        yield value


def _again(value: Any, parts: Iterator[Any]) -> Any:
    """A structure like `value`, with its leaves replaced in the order of `_in_order`."""
    if isinstance(value, (list, tuple)):
        made = [_again(part, parts) for part in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        found = {key: _again(value[key], parts) for key in sorted(value)}
        return {key: found[key] for key in value}
    return next(parts)


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers of nested lists, tuples and dicts in one row, and the function from such a row to the structure.

    >>> from pullback.bridge.autograd.misc import flatten
    >>> row, unflatten = flatten({"a": 1.0, "b": [2.0, 3.0]})
    >>> row
    array([1., 2., 3.])
    >>> unflatten(row)["b"] == [2.0, 3.0]
    True
    """
    found = list(_in_order(value))
    shapes = [np.shape(getval(leaf)) for leaf in found]
    ends = np.cumsum([0, *(int(np.prod(s)) for s in shapes)]).tolist()
    kinds = [type(getval(leaf)) is np.ndarray for leaf in found]

    def unflatten(row: Any) -> Any:
        """The structure with the numbers of a row."""
        each = zip(ends, ends[1:], shapes, kinds, strict=False)
        parts = [np.reshape(row[first:last], shape) if kind else row[first] for first, last, shape, kind in each]
        return _again(value, iter(parts))

    rows = [np.ravel(leaf) for leaf in found]
    return (np.concatenate(rows) if rows else np.array([])), unflatten


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Any, Any, Any]:
    """A function as one from a row to a row; the function from a row to the structure; and the example as a row."""
    row, unflatten = flatten(example)

    def flat(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return flat, unflatten, row


# Optimisers -----------------------------------------------------------------------------------------------------------


def unflatten_optimizer(optimize: Callable[..., Any]) -> Callable[..., Any]:
    """An optimiser of rows of numbers as one of nested values."""

    @wraps(optimize)
    def nested(grad: Any, x0: Any, callback: Any = None, *args: Any, **kwargs: Any) -> Any:
        row, unflatten = flatten(x0)

        def told(x: Any, i: int, g: Any) -> None:
            callback(unflatten(x), i, unflatten(g))

        found = optimize(
            lambda x, i: flatten(grad(unflatten(x), i))[0], row, told if callback else None, *args, **kwargs
        )
        return unflatten(found)

    return nested


def _steps(grad: Any, x: Any, callback: Any, num_iters: int, move: Callable[[Any, Any, int], Any]) -> Any:
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        x = move(x, g, i)
    return x


@unflatten_optimizer
def sgd(
    grad: Any, x: Any, callback: Any = None, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9
) -> Any:
    """Gradient descent with momentum; ``grad(x, i)`` gets the number of the step."""
    velocity = [np.zeros(len(x))]

    def move(x: Any, g: Any, i: int) -> Any:
        velocity[0] = mass * velocity[0] - (1.0 - mass) * g
        return x + step_size * velocity[0]

    return _steps(grad, x, callback, num_iters, move)


@unflatten_optimizer
def rmsprop(
    grad: Any,
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """RMSprop: steps divided by the root of a running mean of squares, which begins with ones."""
    mean = [np.ones(len(x))]

    def move(x: Any, g: Any, i: int) -> Any:
        mean[0] = mean[0] * gamma + g**2 * (1 - gamma)
        return x - step_size * g / (np.sqrt(mean[0]) + eps)

    return _steps(grad, x, callback, num_iters, move)


@unflatten_optimizer
def adam(
    grad: Any,
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam (Kingma and Ba, 2015)."""
    moments = [np.zeros(len(x)), np.zeros(len(x))]

    def move(x: Any, g: Any, i: int) -> Any:
        moments[0] = (1 - b1) * g + b1 * moments[0]
        moments[1] = (1 - b2) * g**2 + b2 * moments[1]
        first, second = moments[0] / (1 - b1 ** (i + 1)), moments[1] / (1 - b2 ** (i + 1))
        return x - step_size * first / (np.sqrt(second) + eps)

    return _steps(grad, x, callback, num_iters, move)


# Fixed points ---------------------------------------------------------------------------------------------------------


@primitive
def fixed_point(f: Any, a: Any, x0: Any, distance: Any, tol: float) -> Any:
    """The fixed point of ``f(a)``, by iteration from `x0` until `distance` is at most `tol`."""
    step = f(a)
    before, x = x0, step(x0)
    while distance(x, before) > tol:
        before, x = x, step(x)
    return x


def _fixed_point_vjp(ans: Any, f: Any, a: Any, x0: Any, distance: Any, tol: float) -> Callable[[Any], Any]:
    """By the implicit function theorem: the cotangent of the iteration is a fixed point itself."""
    pull_a, _ = passes.make_vjp(lambda a: f(a)(ans), a)

    def backwards(parameters: Any) -> Callable[[Any], Any]:
        a, x, g = parameters
        pull, _ = passes.make_vjp(f(a), x)
        space = vspace(x)
        return lambda u: space.add(pull(u), g)

    return lambda g: pull_a(fixed_point(backwards, (a, ans, g), vspace(x0).zeros(), distance, tol))


defvjp(fixed_point, None, _fixed_point_vjp, None)


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The function with its first arguments given. Its graph is not kept: each call computes all of it."""
    return wraps(fun)(functools.partial(fun, *args, **kwargs))


def const_graph_unary(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function itself, as `const_graph`."""
    return fun
