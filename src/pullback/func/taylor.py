"""Taylor mode: `jet`, which computes derivatives of all orders along a path in one pass, and what is built on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..interpreters.batched import Vmap
from ..interpreters.jets import Collapsed, Jet, Taylor
from ..table.levels import inner
from ..tensor import dtypes
from ..tensor.memory import check_fit, same_memory
from ..tensor.modes import restoring, thread
from ..tensor.nested import rebuild
from ..tensor.tensor import Tensor, is_tracked, wrap
from .trees import tensors_of, untracked


@restoring("jet")
def jet(fun: Callable[..., Any], primals: Any, series: Any, factorial_scaled: bool = True) -> tuple[Any, Any]:
    """The value of `fun` along a path, and its derivatives of all orders along it: Taylor mode.

    The path is ``x(t) = x0 + x1 t + x2 t**2 / 2! + ...``, with x0 among `primals` and (x1, x2, ...) its series. The
    result is ``f(x(t))`` in the same form: ``(f0, [f1, f2, ...])``, e.g. ``f1 = f'(x0) x1`` and
    ``f2 = f''(x0) x1**2 + f'(x0) x2``. At kinks and branches the derivatives are those of the branch taken.

    Args:
        fun: takes and returns Tensors; its results may be nested in tuples, lists and dicts.
        primals: a tuple with a Tensor of floating point or complex dtype for each argument.
        series: a tuple with a list or tuple of Tensors for each argument, all of the same length, the order; each of
            the shape and dtype of its primal.
        factorial_scaled: whether series are derivatives; False: coefficients, without the factorials.

    Returns:
        the value, and its series: nested as the value, with a list of Tensors for each Tensor.

    Raises:
        TypeError, ValueError: primals and series that do not match.
        NotImplementedError: an operation that has no derivative rule, by name.

    >>> import pullback
    >>> x = pullback.tensor(0.5)
    >>> f0, (f1, f2) = pullback.func.jet(pullback.sin, (x,), ([pullback.tensor(1.0), pullback.tensor(0.0)],))
    >>> f0, f1, f2
    (tensor(0.4794), tensor(0.8776), tensor(-0.4794))

    See https://docs.jax.dev/en/latest/jax.experimental.jet.html.
    """
    given = _checked(primals, series)
    order = len(given[0][1])
    for x, terms in given:  # a write to the value would be one to a coefficient
        terms[:] = [c.clone() if same_memory(c._data, x._data) else c for c in terms]
    if not order:
        out = fun(*primals)
        return out, rebuild(out, iter([[] for _ in tensors_of(out, "jet")]))
    scale = [math.factorial(k) if factorial_scaled else 1 for k in range(order + 1)]
    with Taylor() as level:
        args = [
            wrap(Jet(level, [x, *(c if scale[k] == 1 else c / scale[k] for k, c in enumerate(terms, 1))], order))
            for x, terms in given
        ]
        out = fun(*args)
        found = [_lowered(level, part, order) for part in tensors_of(out, "jet")]
    if not thread.modes.grad_enabled:
        found = [[untracked(t) if t._requires_grad else t for t in terms] for terms in found]
    scaled = [
        [terms[0], *(t if scale[k] == 1 else t * scale[k] for k, t in enumerate(terms[1:], 1))] for terms in found
    ]
    value = rebuild(out, iter([terms[0] for terms in scaled]))
    return value, rebuild(out, iter([terms[1:] for terms in scaled]))


def _lowered(level: Taylor, part: Tensor, order: int) -> list[Tensor]:
    """The coefficients of a result, zeros among them."""
    held = inner(part, level)
    terms = held.terms if isinstance(held, Jet) else [part]
    first: Any = terms[0]
    zeros = [np.zeros_like(first.detach()) for _ in range(order + 1 - len(terms))]
    return [np.zeros_like(first.detach()) if t is None else t for t in [*terms, *zeros][: order + 1]]


def _checked(primals: Any, series: Any) -> list[tuple[Tensor, list[Tensor]]]:
    """Each primal with its series."""
    for name, value in (("primals", primals), ("series", series)):
        if not isinstance(value, (tuple, list)):
            raise _wrong(
                TypeError, "jet", f"{name} to be a tuple, one entry for each argument", errors.describe(value), _WRITTEN
            )
    if len(primals) != len(series) or not primals:
        expected = f"a series for each of {len(primals)} primals, at least one"
        raise _wrong(ValueError, "jet", expected, f"{len(series)}", _WRITTEN)
    for i, (x, terms) in enumerate(zip(primals, series, strict=True)):
        _check_argument("jet", f"primal {i}", x)
        if not isinstance(terms, (tuple, list)) or len(terms) != len(series[0]):
            like = f" of {len(series[0])} Tensors, as the first" if i else " of Tensors"
            found = f"{len(terms)} of them" if isinstance(terms, (tuple, list)) else errors.describe(terms)
            do = "fill the shorter one with zeros" if i else _WRITTEN
            raise _wrong(ValueError, "jet", f"series {i} to be a list{like}", found, do)
        for k, c in enumerate(terms, 1):
            if not isinstance(c, Tensor) or c._data.shape != x._data.shape or c._data.dtype != x._data.dtype:
                expected = f"term {k} of series {i} to be like its primal, {errors.describe(x)}"
                raise _wrong(ValueError, "jet", expected, errors.describe(c), "e.g. pullback.zeros_like(x)")
            check_fit("tangent", x, c)
    return [(x, list(terms)) for x, terms in zip(primals, series, strict=True)]


_WRITTEN = "write jet(f, (x,), ([v, w],))"


def _wrong(error: type[Exception], name: str, expected: str, found: str, do: str = "") -> Exception:
    return error(errors.message(f"{name}()", expected=expected, found=found, do=do))


def _check_argument(name: str, which: str, x: Any) -> None:
    if not isinstance(x, Tensor) or x._data.dtype.kind not in "fcV":
        expected = f"{which} to be a Tensor of floating point or complex dtype"
        raise _wrong(TypeError, name, expected, errors.describe(x), f"convert it first, e.g. x.{dtypes.to_default()}")


# Built on it ----------------------------------------------------------------------------------------------------------


def derivatives(func: Callable[[Any], Any], n: int) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns ``(f(x), f'(x), ..., f^(n)(x))``, for `func` of one number, in one pass.

    The argument may have any shape, if `func` acts on each element alone: the derivatives are those by each element.

    Raises:
        TypeError, ValueError: n is no integer, or negative; the argument is no Tensor with a derivative.

    >>> import pullback
    >>> pullback.func.derivatives(lambda x: x**3, 3)(pullback.tensor(2.0))
    (tensor(8.), tensor(12.), tensor(12.), tensor(6.))
    """
    _check_order("derivatives", n, 0)

    def of(x: Any) -> tuple[Any, ...]:
        _check_argument("derivatives", "x", x)
        if not n:
            value, _ = jet(func, (x,), ([],))
            return (value,)
        zeros: Any = np.zeros_like(x.detach())
        value, series = jet(func, (x,), ([np.ones_like(x.detach()), *[zeros] * (n - 1)],))
        return (value, *series)

    return of


def linear_operator(
    func: Callable[[Any], Any], order: int, directions: Any, weights: Any = None
) -> Callable[[Any], Any]:
    """A function that returns ``sum_d weights[d] D^order f(x)[v_d, ..., v_d]``: a linear differential operator.

    Each term is the derivative of an order along one direction, and every linear operator of one order with constant
    coefficients is such a sum. All directions are followed in one pass, in which their last coefficients are added up
    (collapsed Taylor mode): time and memory grow with their number only below the last order.

    Args:
        func: of one Tensor, to a Tensor.
        order: of the derivatives, at least 1.
        directions: a Tensor with the directions along its first axis, each of the shape of the argument.
        weights: a Tensor or a sequence of one number for each direction; 1 for each if None. Weights and directions
            that require grad get their gradients.

    Raises:
        TypeError, ValueError: directions and weights that do not match, or another order.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0])
    >>> laplacian = pullback.func.linear_operator(lambda x: (x**3).sum(), 2, pullback.eye(2))
    >>> laplacian(x)
    tensor(18.)
    """
    _check_order("linear_operator", order, 1)
    if not isinstance(directions, Tensor) or not directions._data.ndim or not directions._data.shape[0]:
        expected = "directions to be a Tensor with at least one of them along its first axis"
        raise _wrong(TypeError, "linear_operator", expected, errors.describe(directions))
    count = directions._data.shape[0]
    given = np.ones(count) if weights is None else _numbers(weights)
    if tuple(given.shape) != (count,):
        expected = f"{count} weights, one for each direction"
        raise _wrong(ValueError, "linear_operator", expected, str(np.size(given)))

    def of(x: Any) -> Any:
        return _collapsed("linear_operator", func, order, directions, given, x)

    return of


def laplacian(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that returns the Laplacian of `func`, from a vector to a number: the trace of its Hessian.

    It can be batched over points by `vmap`, differentiated with respect to parameters, and compiled.

    >>> import pullback
    >>> pullback.func.laplacian(lambda x: (x * x).sum())(pullback.zeros(3))
    tensor(6.)
    """

    def of(x: Any) -> Any:
        n = _length("laplacian", x)
        return _collapsed("laplacian", func, 2, wrap(np.eye(n, dtype=x._data.dtype)), np.ones(n), x)

    return of


def biharmonic(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that returns the Laplacian of the Laplacian of `func`, from a vector to a number.

    The fourth derivatives along the n unit vectors and along the sums and differences of two of them are weighted, so
    that those that are mixed in two variables are left.

    >>> import pullback
    >>> pullback.func.biharmonic(lambda x: x[0]**2 * x[1]**2)(pullback.ones(2))
    tensor(8.)
    """

    def of(x: Any) -> Any:
        n = _length("biharmonic", x)
        units = np.eye(n, dtype=x._data.dtype)
        rows, columns = np.triu_indices(n, 1)
        along = np.concatenate([units, units[rows] + units[columns], units[rows] - units[columns]])
        weights = np.concatenate([np.full(n, 1 - (n - 1) / 3), np.full(2 * len(rows), 1 / 6)])
        return _collapsed("biharmonic", func, 4, wrap(along), weights, x)

    return of


def _check_order(name: str, n: Any, least: int) -> None:
    if not isinstance(n, int) or isinstance(n, bool):
        raise _wrong(TypeError, name, "the order to be an integer", errors.describe(n))
    if n < least:
        raise _wrong(ValueError, name, f"an order of at least {least}", str(n))


def _numbers(weights: Any) -> Any:
    """The weights as an array, or as a Tensor if one of them is tracked or belongs to a transform."""
    try:
        parts = [w if isinstance(w, Tensor) else wrap(np.asarray(float(w))) for w in weights]
        found: Any = np.stack(parts) if len(parts) else wrap(np.ones(0))
        if found._data.dtype.kind not in "fVbiu":
            raise TypeError(found.dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        expected = "weights to be a Tensor or a sequence of numbers, one for each direction"
        raise _wrong(TypeError, "linear_operator", expected, errors.describe(weights)) from error
    known = isinstance(found._data, np.ndarray) and not is_tracked(found)
    return found._data.astype(np.float64) if known else found


def _length(name: str, x: Any) -> int:
    if not isinstance(x, Tensor) or x._data.dtype.kind not in "fV" or len(x._data.shape) != 1:
        do = "give it one point" + ("; for many, write vmap(laplacian(f))(points)" if name == "laplacian" else "")
        raise _wrong(TypeError, name, "a vector of floating point numbers", errors.describe(x), do)
    return int(x._data.shape[0])


def _collapsed(name: str, func: Callable[[Any], Any], order: int, along: Tensor, weights: Any, x: Any) -> Any:
    """The weighted sum of the derivatives along directions."""
    if not isinstance(x, Tensor) or x._data.shape != along._data.shape[1:] or x._data.dtype != along._data.dtype:
        expected = f"an argument like the directions, {list(along._data.shape[1:])} of {along.dtype}"
        raise _wrong(ValueError, name, expected, errors.describe(x))
    if not len(weights):  # a function of no numbers has no second derivatives, and their sum is 0
        return np.zeros_like(tensors_of(func(x), name)[0].detach())
    mean, total, along = _mean(weights, along)
    with Vmap(along._data.shape[0], "same") as batch, Collapsed(batch, order, mean) as level:
        terms: list[Any] = [x, batch.lift(along), *[None] * (order - 1)]
        out = func(wrap(level.kept_terms(Jet(level, terms, order))))
        (part, *others) = tensors_of(out, name)
        if others:
            raise _wrong(TypeError, name, "f to return one Tensor", f"{len(others) + 1} of them", "stack them")
        held = inner(part, level)
        last = held.term(order) if isinstance(held, Jet) else None
        found = (
            np.zeros_like(_below(part, level)) if last is None else batch.value(last) * (total * math.factorial(order))
        )
    if not thread.modes.grad_enabled and found._requires_grad:
        found = untracked(found)
    return found


def _mean(weights: Any, along: Any) -> tuple[Tensor, Any, Tensor]:
    """Weights that add up to 1, the number that the mean is to be multiplied by, and the directions.

    If the weights nearly cancel, or have no values, a direction of zeros takes what makes the sum that of their sizes.
    """
    dtype, known = along._data.dtype, isinstance(weights, np.ndarray)
    total: Any = weights.sum()
    size: Any = abs(weights if known else weights.detach()).sum()
    if known and abs(total) >= 0.25 * size:
        return wrap((weights / (total or 1.0)).astype(dtype)), float(total), along
    size = np.where(size == 0, 1, size)
    full: Any = np.concatenate([weights, (size - total)[None]]) / size
    whole: Any = np.concatenate([along, np.zeros_like(along[:1].detach())])
    return wrap(full.astype(dtype)) if known else full.to(dtype), float(size) if known else size.to(dtype), whole


def _below(part: Tensor, level: Taylor) -> Any:
    held = inner(part, level)
    first = held.primal if isinstance(held, Jet) else part
    return first.detach()
