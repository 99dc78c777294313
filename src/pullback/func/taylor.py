"""Taylor mode: `jet`, which computes derivatives of all orders along a path in one pass, and what is built on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..interpreters.jets import EXACT, Jet, Taylor
from ..table.levels import inner
from ..tensor.modes import restoring, thread
from ..tensor.nested import rebuild
from ..tensor.tensor import Tensor, wrap
from .trees import tensors_of, untracked


@restoring("jet")
def jet(
    fun: Callable[..., Any], primals: Any, series: Any, factorial_scaled: bool = True
) -> tuple[Any, Any]:
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
    if not order:
        return fun(*primals), rebuild_series(fun(*primals), [])
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
    scaled = [[terms[0], *(t if scale[k] == 1 else t * scale[k] for k, t in enumerate(terms[1:], 1))] for terms in found]
    value = rebuild(out, iter([terms[0] for terms in scaled]))
    return value, rebuild_series(out, [terms[1:] for terms in scaled])


def rebuild_series(out: Any, series: Sequence[list[Tensor]]) -> Any:
    """The series, nested as the results are."""
    return rebuild(out, iter(series))


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
            raise TypeError(
                errors.message(
                    "jet()",
                    expected=f"{name} to be a tuple, one entry for each argument",
                    found=errors.describe(value),
                    do="write jet(f, (x,), ([v, w],))",
                )
            )
    if len(primals) != len(series) or not primals:
        raise ValueError(
            errors.message(
                "jet()", expected="a series for each primal, at least one", found=f"{len(primals)} and {len(series)}"
            )
        )
    for i, (x, terms) in enumerate(zip(primals, series, strict=True)):
        if not isinstance(x, Tensor) or x._data.dtype.kind not in "fcV":
            raise TypeError(
                errors.message(
                    "jet()",
                    expected=f"primal {i} to be a Tensor of floating point or complex dtype",
                    found=errors.describe(x),
                    do="convert it first, e.g. x.float()",
                )
            )
        if not isinstance(terms, (tuple, list)) or len(terms) != len(series[0]):
            raise ValueError(
                errors.message(
                    "jet()",
                    expected=f"series {i} to be a list of {len(series[0])} Tensors, as the first",
                    found=f"{len(terms)} of them" if isinstance(terms, (tuple, list)) else errors.describe(terms),
                    do="fill the shorter one with zeros",
                )
            )
        for k, c in enumerate(terms, 1):
            if not isinstance(c, Tensor) or c._data.shape != x._data.shape or c._data.dtype != x._data.dtype:
                raise ValueError(
                    errors.message(
                        "jet()",
                        expected=f"term {k} of series {i} to have the shape and dtype of its primal, {errors.describe(x)}",
                        found=errors.describe(c),
                    )
                )
    return [(x, list(terms)) for x, terms in zip(primals, series, strict=True)]
