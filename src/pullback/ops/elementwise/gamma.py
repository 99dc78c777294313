"""Special functions: the families of the gamma and error functions and the normal distribution, zeta, ``x log y``.

SciPy computes them (the extra "scipy"; an error names it if SciPy is missing), except for `entr`, `xlogy` and
`xlog1py`, where NumPy does. SciPy's functions called on a Tensor, ``scipy.special.erf(t)``, lead here as well.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...table.entry import METHODS, composite, elementwise, pointwise
from ...table.operands import (
    FLOATS,
    NUMBERS,
    REAL,
    Operation,
    floating,
    index_of,
    is_number,
    need,
    need_both,
    one_beside,
    plain,
)
from ...table.samples import EDGE_PAIRS, EDGES, A, Differs, S, V, inf, nan, pairs
from ...tensor.arrays import writable
from ...tensor.gpu import gpu_of
from ...tensor.tensor import Tensor
from .bessel import by_scipy, scipy_special, special_of

_TEN_DIGITS = "torch's trigamma function is exact to ten digits only"
_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


def _by_scipy(name: str, words: str, *, function: str = "", **about: Any) -> Operation:
    """Enter an operation on one argument that calls SciPy's `function` (default: the one of the same name)."""
    function = function or name
    entered: Operation = elementwise(
        name,
        lambda input: by_scipy(name, function, input),
        words,
        floats=True,
        numpy={f"scipy.special.{function}": lambda x: entered(x)},
        **about,
    )
    return entered


# x log y
def _of(function: Any, value: Any) -> Any:
    """``function(value)``; a number for a number, so that it does not change the dtype of a product."""
    return function(float(value)).item() if is_number(value) else function(value)


def _times(name: str, input: Any, factor: Any, other: Any) -> Any:
    """``input * factor``, and 0 where `input` is 0, unless `other` is NaN."""
    need_both(name, REAL, input, other)
    return np.where(np.logical_and(np.equal(input, 0), ~np.isnan(other)), 0, np.multiply(input, factor))


def _by_factor(g: Any, input: Any, other: Any, logarithm: Any, edge: int) -> Any:
    # if the product is 0 for any factor, the argument is replaced: the next derivative would be 0 / 0
    corner = np.logical_and(np.equal(plain(input), 0), np.less_equal(plain(other), edge))
    if is_number(other):
        return np.where(corner, 0, g * _of(logarithm, other))
    return g * logarithm(np.where(corner, (edge + 1) * one_beside(other, g), other))


def _entr(input: Any) -> Any:
    need("entr", FLOATS, input)
    return np.where(np.equal(input, 0), 0, np.where(np.less(input, 0), -inf, -input * np.log(input)))


entr: Operation = elementwise(
    "entr",
    _entr,
    "``-x log(x)``, 0 at 0 and -inf below: the entropy of a probability.",
    home="special",
    floats=True,
    domain="positive",
    numpy={"scipy.special.entr": lambda x: entr(x)},
    input=lambda g, input: g * (-1 - np.log(input)),
    kinks=[S(V(EDGES))],
)
xlogy: Operation = elementwise(
    "xlogy",
    lambda input, other: _times("xlogy", input, _of(np.log, other), other),
    "``input * log(other)``, and 0 where `input` is 0, unless `other` is NaN.",
    also="special.xlogy",
    floats=True,
    numpy={"scipy.special.xlogy": lambda x, y: xlogy(x, y)},
    input=lambda g, input, other: _by_factor(g, input, other, np.log, 0),
    other=lambda g, input, other: g * (input / other),
    samples=lambda: [*pairs("real", "positive", 2, 0.5), S(2, A(3, domain="positive"))],
    kinks=lambda: [S(*EDGE_PAIRS)],
)
xlog1py: Operation = elementwise(
    "xlog1py",
    lambda input, other: _times("xlog1py", input, _of(np.log1p, other), other),
    "``input * log(1 + other)``, and 0 where `input` is 0, unless `other` is NaN.",
    node="SpecialXlog1PyBackward0",
    home="special",
    floats=True,
    numpy={"scipy.special.xlog1py": lambda x, y: xlog1py(x, y)},
    input=lambda g, input, other: _by_factor(g, input, other, np.log1p, -1),
    other=lambda g, input, other: g * (input / (other + 1)),
    samples=lambda: [*pairs("real", "positive", 2, 0.5), S(2, A(3, domain="positive"))],
    kinks=lambda: [S(*EDGE_PAIRS)],
)


# The gamma function's family
def _log_gamma(input: Any) -> Any:
    """`lgamma`: infinite at both ends, as C's is. SciPy's is minus infinity at the lower end, and infinite beside 0."""
    found = by_scipy("lgamma", "gammaln", input)
    if gpu_of(found) is None and not np.isinf(found).any():  # a look that would make a GPU wait
        return found
    beside = np.logical_and(np.less(np.abs(input), 1e-300), np.not_equal(input, 0))
    np.copyto(found, -np.log(np.where(beside, np.abs(input), 1)), where=beside, casting="same_kind")
    np.copyto(found, np.inf, where=np.isneginf(input))
    return found


lgamma: Operation = elementwise(
    "lgamma",
    _log_gamma,
    "``log |Gamma(input)|``.",
    also="special.gammaln",
    floats=True,
    numpy={"scipy.special.gammaln": lambda x: lgamma(x)},
    input=lambda g, input: g * on(digamma, input),
    kinks=[S(V([0.0, -0.0, 1.0, 2.0, 0.5, 1e-30, 1e-310, -5e-324, 30.0, 800.0, inf, -inf, nan]))],
    differs=[Differs(_TEN_DIGITS, "second", "float64")],
)
digamma: Operation = _by_scipy(
    "digamma",
    "The derivative of `lgamma`.",
    also="special.digamma special.psi",
    function="psi",
    input=lambda g, input: g * on(polygamma, input, 1),
    differs=[Differs(_TEN_DIGITS, check, "float64") for check in ("gradients", "second")],
)


def _check_polygamma(n: int, input: Tensor) -> Any:
    n = index_of("polygamma", "n", n)
    if n < 0:
        raise RuntimeError(errors.message("polygamma(n, x) does not support negative n", found=str(n)))
    return input, n


@pointwise(
    checks=_check_polygamma,
    also="special.polygamma",
    input=lambda g, input, n: g * on(polygamma, input, n + 1),
    method=False,
    inplace=True,
    samples=lambda: [
        *(S(n, A(2, 3, domain="positive")) for n in (0, 1, 2, 5)),
        S(1, A(domain="positive")),
        S(3, A(0)),
        S(0, A(3)),
    ],
    refused=[S(-1, A(3)), S(1.5, A(3)), S(A(3), 1), S(1, 2.0), S(1)],
    differs=[
        Differs(_TEN_DIGITS, "values", "float64", "(1"),
        *(Differs(_TEN_DIGITS, check, "float64", "(0") for check in ("gradients", "second")),
    ],
)
def polygamma(input: Any, n: int) -> Any:
    """The derivative of order `n` of `digamma`: ``polygamma(0, x)`` is ``digamma(x)``.

    >>> import pullback
    >>> pullback.polygamma(1, pullback.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    if n == 0:
        return by_scipy("digamma", "psi", floating(input))
    # (-1) ** (n + 1) n! zeta(n + 1, x)
    x = need("polygamma", FLOATS, floating(input))
    factor = (-1.0) ** (n + 1) * scipy_special("gamma")(n + 1.0)
    return writable(factor * special_of("zeta", np.int64(n + 1), x)).astype(x.dtype, copy=False)


METHODS["polygamma"] = lambda self, n: polygamma(n, self)


_DIMENSIONS = 10**6  # of mvlgamma, a summand for each


@composite(
    contiguous=True,
    also="special.multigammaln",
    inplace=True,
    samples=lambda: [
        *(S(A(*shape, domain="above one"), p) for shape in ((), (2, 3), (0,)) for p in (1, 2, 3)),
        S(A(3, 2, domain="above one", layout="T"), p=2),
    ],
    refused=[S(A(3), 0), S(A(3)), S(A(3), 1.5), S([1.0], 1)],
    differs=[Differs(_TEN_DIGITS, "second", "float64")],
)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The multivariate `lgamma`: ``p (p - 1) / 4 log(pi) + sum of lgamma(input - j / 2)`` over j from 0 to p - 1."""
    p = index_of("mvlgamma", "p", p)
    if not 1 <= p <= _DIMENSIONS:
        raise RuntimeError(errors.message("mvlgamma()", expected=f"p from 1 to {_DIMENSIONS}", found=str(p)))
    need("mvlgamma", NUMBERS, input._data)
    total = lgamma(input)
    for j in range(1, p):
        total = total + lgamma(input - 0.5 * j)
    return total + p * (p - 1) / 4 * math.log(math.pi)


def no_derivative(name: str, argument: str, instead: str = "") -> Any:
    """Refuse to differentiate an operation by one of its arguments. instead: functions that have this derivative."""
    raise NotImplementedError(
        errors.message(
            f"the derivative for {name}() by {argument} is not implemented",
            do=f"write {instead}, or call .detach() on {argument}" if instead else f"call .detach() on {argument}",
        )
    )


def _density(a: Any, x: Any) -> Any:
    """The derivative of the regularised incomplete gamma function: ``x**(a-1) exp(-x) / Gamma(a)``."""
    a = _beside(a, x)
    return np.exp(on(xlogy, a - 1, x) - x - on(lgamma, a))


def _beside(value: Any, x: Any) -> Any:
    """A number or an integer tensor as an operand of the dtype of x."""
    return value + np.zeros_like(x)


_POSITIVE = [S(V([1, 2, 2], "int64"), A(2, 3, domain="positive")), S(V(2, "int64"), A(3, domain="positive"))]
_FIRST = [
    Differs("as in torch, there is no derivative by the first argument", check, sample="([")
    for check in ("slopes", "forward")
]


_WITH_PARAMETERS = {
    "gammainc": "pullback.scipy.special.gammainc (or chdtr, gdtr, pdtrc there), which has it",
    "gammaincc": "pullback.scipy.special.gammaincc (or chdtrc, gdtrc, pdtr there), which has it",
}


def _incomplete(name: str, function: str, words: str, rule: Any) -> Operation:
    """Enter a regularised incomplete gamma function: SciPy's `function`, with a rule for the second argument."""
    entered: Operation = elementwise(
        name,
        lambda input, other: by_scipy(name, function, input, other),
        f"{words}; no derivative by `input`.",
        also=f"special.{function}",
        numpy={f"scipy.special.{function}": lambda a, x: entered(a, x)},
        input=lambda g: no_derivative(name, "input", _WITH_PARAMETERS[function]),
        other=rule,
        samples=lambda: [*pairs("positive"), *_POSITIVE],
        kinks=[S(V(2, "int64"), V([0.0, 1.0, 30.0, 800.0]))],
        differs=_FIRST,
    )
    return entered


igamma: Operation = _incomplete(
    "igamma",
    "gammainc",
    "The regularised lower incomplete gamma function ``P(input, other)``",
    lambda g, input, other: g * _density(input, other),
)
igammac: Operation = _incomplete(
    "igammac",
    "gammaincc",
    "The regularised upper incomplete gamma function, ``1 - igamma(input, other)``",
    lambda g, input, other: -g * _density(input, other),
)
zeta: Operation = elementwise(
    "zeta",
    lambda input, other: by_scipy("zeta", "zeta", input, other),
    "The Hurwitz zeta function, the sum of ``(k + other) ** -input`` over k from 0; no derivative by `input`.",
    home="special",
    floats=True,
    numpy={"scipy.special._zeta": lambda x, q: zeta(x, q)},
    input=lambda g: no_derivative("zeta", "input"),
    other=lambda g, input, other: g * (-input * on(zeta, _beside(input, other) + 1, other)),
    samples=lambda: [
        *pairs("above one", "positive"),
        S(2.5, A(2, 3, domain="positive")),
        S(V([2, 3], "int64"), A(2, domain="positive")),
        S(A(3, domain="above one"), 2),
    ],
    differs=_FIRST,
)

# The error function's family
erf: Operation = _by_scipy(
    "erf",
    "``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to `input`.",
    also="special.erf",
    input=lambda g, input: g * (_TWO_BY_ROOT_PI * np.exp(-input * input)),
    kinks=[S(V(EDGES))],
)
erfc: Operation = _by_scipy(
    "erfc",
    "``1 - erf(input)``, exact for large numbers.",
    also="special.erfc",
    input=lambda g, input: g * (-_TWO_BY_ROOT_PI * np.exp(-input * input)),
    kinks=[S(V(EDGES))],
)
erfcx: Operation = _by_scipy(
    "erfcx",
    "``exp(input ** 2) erfc(input)``, which does not underflow.",
    home="special",
    input=lambda g, input, out: g * (2 * input * out - _TWO_BY_ROOT_PI),
    kinks=[S(V([0.0, -0.0, 1.0, -1.0, 30.0, nan]))],
)
erfinv: Operation = _by_scipy(
    "erfinv",
    "The inverse of `erf`, infinite at -1 and 1, NaN beyond.",
    also="special.erfinv",
    domain="small",
    input=lambda g, input: g * (np.exp(np.square(on(erfinv, input))) / _TWO_BY_ROOT_PI),  # `out` may be overwritten
    kinks=[S(V([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, nan]))],
)

# The normal distribution
ndtr: Operation = _by_scipy(
    "ndtr",
    "The normal distribution function: the area under its density up to `input`.",
    home="special",
    input=lambda g, input: g * (np.exp(-0.5 * input * input) / _ROOT_TWO_PI),
    kinks=[S(V(EDGES))],
)


def _log_ndtr_rule(g: Any, input: Any) -> Any:
    # exp(-x**2 / 2) / sqrt(2 pi) / ndtr(x): as written for x > 0, where erfcx soon overflows; by erfcx below 0
    above = np.greater(plain(input), 0)
    high, low = np.where(above, input, 0), np.where(above, 0, input)
    normal = np.exp(-0.5 * np.square(high)) / (0.5 * _ROOT_TWO_PI * on(erfc, high * -math.sqrt(0.5)))
    return g * np.where(above, normal, 2 / _ROOT_TWO_PI / on(erfcx, low * -math.sqrt(0.5)))


log_ndtr: Operation = _by_scipy(
    "log_ndtr",
    "The logarithm of `ndtr`, exact far below 0.",
    home="special",
    input=_log_ndtr_rule,
    kinks=[S(V([0.0, 1.0, -1.0, 30.0, -30.0, nan]))],
)
ndtri: Operation = _by_scipy(
    "ndtri",
    "The inverse of `ndtr`, infinite at 0 and 1, NaN beyond.",
    home="special",
    domain="between 0 and 1",
    input=lambda g, out: g * (np.exp(0.5 * out * out) * _ROOT_TWO_PI),
    kinks=[S(V([0.0, 1.0, 0.5, -1.0, 2.0, nan]))],
)
