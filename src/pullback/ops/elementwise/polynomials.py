"""Orthogonal polynomials of Chebyshev, Hermite, Laguerre and Legendre, of degree `n`.

Each family is a recurrence of three terms, ``p_(k+1) = (a_k x + b_k) p_k - c_k p_(k-1)`` (NIST Handbook, section 18.9,
https://dlmf.nist.gov/18.9). Differentiated r times, it is a recurrence again,
``D^r p_(k+1) = (a_k x + b_k) D^r p_k + r a_k D^(r-1) p_k - c_k D^r p_(k-1)``: one operation, `_polynomial`, holds all
families and all derivatives by `input`. torch has none of these derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...kernels.counterparts import folded
from ...table.calls import on
from ...table.entry import composite, pointwise
from ...table.operands import FLOATS, Operation, floating, need
from ...table.samples import A, Differs, S, Sample, V
from ...tensor.arrays import beside
from ...tensor.tensor import Tensor

# For each family: the factor and the summand of p_1; then a_k, b_k and c_k of the step from p_k to p_(k+1).
_Step = Callable[[int], tuple[float, float, float]]
_FAMILIES: dict[str, tuple[tuple[float, float], _Step]] = {
    "chebyshev_polynomial_t": ((1, 0), lambda k: (2, 0, 1)),
    "chebyshev_polynomial_u": ((2, 0), lambda k: (2, 0, 1)),
    "chebyshev_polynomial_v": ((2, -1), lambda k: (2, 0, 1)),
    "chebyshev_polynomial_w": ((2, 1), lambda k: (2, 0, 1)),
    "shifted_chebyshev_polynomial_t": ((2, -1), lambda k: (4, -2, 1)),
    "shifted_chebyshev_polynomial_u": ((4, -2), lambda k: (4, -2, 1)),
    "shifted_chebyshev_polynomial_v": ((4, -3), lambda k: (4, -2, 1)),
    "shifted_chebyshev_polynomial_w": ((4, -1), lambda k: (4, -2, 1)),
    "hermite_polynomial_h": ((2, 0), lambda k: (2, 0, 2 * k)),
    "hermite_polynomial_he": ((1, 0), lambda k: (1, 0, k)),
    "laguerre_polynomial_l": ((-1, 1), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    "legendre_polynomial_p": ((1, 0), lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1))),
}


_HIGHEST = 10**6  # a larger degree takes minutes and more, and its rounding errors are larger than the result

_SMALL = 32  # up to this degree, the steps are written out in one loop


def _no_derivative(name: str) -> Any:
    raise NotImplementedError(
        errors.message(f"the derivative for {name}() by n is not implemented", do="call .detach() on n")
    )


@pointwise(
    method=False,
    input=lambda g, input, n, family, order: g * on(_polynomial, input, n, family, order + 1),
    n=lambda g, family: _no_derivative(family),
)
def _polynomial(input: Any, n: Any, family: str, order: int) -> Any:
    """A derivative, of the given order, of the polynomials of degrees n, which are rounded towards 0.

    It is zero for negative degrees, and for degrees that are NaN or infinite.
    """
    given = need(family, FLOATS, floating(input))
    x = given.astype(np.float64)  # rounding errors grow with degree
    degree = np.trunc(np.float64(n) if isinstance(n, (int, float)) else floating(n))
    degree = np.where(np.isfinite(degree), degree, -1)
    highest = int(folded(np.maximum, degree, initial=-1))
    if highest > _HIGHEST:
        raise RuntimeError(
            errors.message(f"{family}()", expected=f"degrees up to {_HIGHEST}, a step for each", found=str(highest))
        )
    x, degree = beside(degree, x), beside(x, degree)  # either may have been a number
    found = np.zeros_like(x + degree)
    (factor, summand), step = _FAMILIES[family]
    one, zero = np.ones_like(x), np.zeros_like(x)
    # the polynomials of two neighbouring degrees, each with its derivatives up to the order
    before: list[Any] = [zero] * (order + 1)
    now: list[Any] = [one, *[zero] * order]
    for k in range(highest + 1):
        np.copyto(found, now[order], where=np.equal(degree, k))
        a, b, c = step(k) if k else (factor, summand, 0)
        line = a * x + b
        later = [line * now[r] + (r * a * now[r - 1] if r else 0) - c * before[r] for r in range(order + 1)]
        before, now = now, later
    return found.astype(given.dtype)


@pointwise(
    method=False,
    fused=True,
    input=lambda g, input, n, family, order: g * on(_of_degree, input, n, family, order + 1),
)
def _of_degree(input: Any, n: Any, family: str, order: int) -> Any:
    """`_polynomial` of one degree, a whole number that is not large: the steps without the terms that are zero."""
    given = need(family, FLOATS, floating(input))
    x = given.astype(np.float64)
    (factor, summand), step = _FAMILIES[family]
    before: list[Any] = [None] * (order + 1)  # None is zero
    now: list[Any] = [1.0, *[None] * order]
    for k in range(n):
        a, b, c = step(k) if k else (factor, summand, 0)
        line = a * x + b if b else a * x
        later: list[Any] = []
        for r in range(order + 1):
            terms = [] if now[r] is None else [line * now[r]]
            terms += [r * a * now[r - 1]] if r and now[r - 1] is not None else []
            terms += [-c * before[r]] if c and before[r] is not None else []
            later.append(sum(terms[1:], terms[0]) if terms else None)
        before, now = now, later
    found = 0.0 if now[order] is None else now[order]
    return (found + np.zeros_like(x)).astype(given.dtype)


def _samples() -> list[Sample]:
    return [
        *(S(A(2, 3, domain="small"), n) for n in (0, 1, 2, 5, 9, -1)),
        S(A(), 3),
        S(A(0, 2), 2),
        S(A(3, 2, layout="T"), 4),
        S(A(2, 2, layout="step"), 1.0),
        S(A(4), V([0, 1, 2, 3], "int64")),
        S(A(3, 1, domain="small"), V([8, 0, -2, 3], "int64")),
        S(A(3), V([2.0, 3.0, 1.0])),
        S(0.5, V([0, 1, 2, 3], "int64")),
        S(V([1.0, -1.0, 0.0]), n=7),
    ]


_REFUSED = [S(A(3)), S(1.5, 2), S(A(2), A(3)), S(A(3), "2"), S(A(3), None), S(A(2), 1, 2)]
_DIFFERS = [Differs("torch has no derivative of it", check) for check in ("gradients", "second")]
_DIFFERS += [
    Differs("as in torch, there is no derivative by n", check, sample="[2.0, 3.0, 1.0]")
    for check in ("slopes", "forward")
]


def _enter(name: str, doc: str) -> Operation:
    """Enter a family in the table."""

    def body(input: Any, n: Any) -> Tensor:
        alone = type(n) is int and 0 <= n <= _SMALL and isinstance(input, Tensor)
        found: Tensor = (_of_degree if alone else _polynomial)(input, n, name, 0)
        return found

    body.__name__ = name
    body.__doc__ = f"{doc}, of degree `n`, which may be a tensor; 0 for degrees below 0."
    entered: Operation = composite(home="special", fused=True, samples=_samples, refused=_REFUSED, differs=_DIFFERS)(
        body
    )
    return entered


chebyshev_polynomial_t = _enter(
    "chebyshev_polynomial_t", "The Chebyshev polynomial of the first kind, ``cos(n acos(input))``"
)
chebyshev_polynomial_u = _enter(
    "chebyshev_polynomial_u",
    "The Chebyshev polynomial of the second kind, ``sin((n + 1) t) / sin(t)`` with ``t = acos(input)``",
)
chebyshev_polynomial_v = _enter(
    "chebyshev_polynomial_v",
    "The Chebyshev polynomial of the third kind, ``cos((n + 1/2) t) / cos(t / 2)`` with ``t = acos(input)``",
)
chebyshev_polynomial_w = _enter(
    "chebyshev_polynomial_w",
    "The Chebyshev polynomial of the fourth kind, ``sin((n + 1/2) t) / sin(t / 2)`` with ``t = acos(input)``",
)
shifted_chebyshev_polynomial_t = _enter(
    "shifted_chebyshev_polynomial_t", "The Chebyshev polynomial of the first kind at ``2 input - 1``"
)
shifted_chebyshev_polynomial_u = _enter(
    "shifted_chebyshev_polynomial_u", "The Chebyshev polynomial of the second kind at ``2 input - 1``"
)
shifted_chebyshev_polynomial_v = _enter(
    "shifted_chebyshev_polynomial_v", "The Chebyshev polynomial of the third kind at ``2 input - 1``"
)
shifted_chebyshev_polynomial_w = _enter(
    "shifted_chebyshev_polynomial_w", "The Chebyshev polynomial of the fourth kind at ``2 input - 1``"
)
hermite_polynomial_h = _enter(
    "hermite_polynomial_h", "The physicist's Hermite polynomial, orthogonal under ``exp(-x ** 2)``"
)
hermite_polynomial_he = _enter(
    "hermite_polynomial_he", "The probabilist's Hermite polynomial, orthogonal under ``exp(-x ** 2 / 2)``"
)
laguerre_polynomial_l = _enter("laguerre_polynomial_l", "The Laguerre polynomial, orthogonal under ``exp(-x)`` above 0")
legendre_polynomial_p = _enter("legendre_polynomial_p", "The Legendre polynomial, orthogonal on [-1, 1]")
