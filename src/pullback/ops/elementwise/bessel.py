"""Bessel functions of integer order and their relatives.

The derivative is a combination of the functions of neighbouring orders, without a division by the argument, so it is
exact at 0, and so is every higher derivative. One operation, `_bessel`, computes all families and orders; the functions
that torch names are its orders 0 and 1. torch has derivatives of `i0`, `i0e`, `i1`, `i1e` and `sinc` only.

The identities are in the NIST Handbook, chapter 10 (https://dlmf.nist.gov/10). SciPy computes the values, except for
the spherical family, where NumPy does.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...table.entry import composite, pointwise, titled
from ...table.operands import FLOATS, REAL, Operation, floating, is_number, need, plain, somewhere
from ...table.samples import NO_UNARY, Differs, S, Sample, V, unary
from ...tensor.arrays import writable
from ...tensor.protocol import is_foreign
from ...tensor.tensor import Tensor

# For each family: SciPy's functions of orders 0 and 1; the signs of ``2 n / x`` times order n and of order n - 1 in the
# recurrence for order n + 1; and the sign of ``x ** 2 / 4`` in the series near 0, or 0 if the series is not needed.
_FAMILIES = {
    "j": ("j0", "j1", 1, -1, -1),
    "y": ("y0", "y1", 1, -1, 0),
    "i": ("i0", "i1", -1, 1, 1),
    "k": ("k0", "k1", 1, 1, 0),
    "i scaled": ("i0e", "i1e", -1, 1, 1),
    "k scaled": ("k0e", "k1e", 1, 1, 0),
}


SPECIAL = {"cupy": "cupyx.scipy.special"}
"""For libraries of arrays of other devices, where they have the functions of scipy.special."""


def special_of(name: str, *args: Any) -> Any:
    """A function of scipy.special on payloads; for arrays of another library, its own function of that name."""
    homes = (SPECIAL.get(type(a).__module__.partition(".")[0]) for a in args if is_foreign(a))
    if (home := next(homes, None)) is None:
        return scipy_special(name)(*args)
    if (found := getattr(importlib.import_module(home), name, None)) is None:
        raise TypeError(
            errors.message(f"SciPy's {name} computes on the host, and {home} has none", do="move it there, x.cpu()")
        )
    return found(*args)


def scipy_special(name: str) -> Any:
    """A function of scipy.special; ImportError if SciPy is missing."""
    try:
        import scipy.special
    except ImportError:
        raise ImportError(
            errors.message(
                "special functions are computed by SciPy, which is not installed", do="pip install 'pullback[scipy]'"
            )
        ) from None
    return getattr(scipy.special, name)


def by_scipy(name: str, function: str, *args: Any) -> Any:
    """SciPy's `function` of floating point payloads of one dtype, in that dtype. name: the operation."""
    first = need(name, FLOATS, next(a for a in args if hasattr(a, "size")))
    if len(args) > 1:
        args = tuple([first.dtype.type(a) if is_number(a) else a for a in args])
    return writable(special_of(function, *args)).astype(first.dtype, copy=False)


def _value(family: str, n: int, x: Any) -> Any:
    if family == "spherical":
        return _spherical(x, n)
    zeroth, first, by_n, below, sign = _FAMILIES[family]
    if n < 2:
        return by_scipy("bessel", first if n else zeroth, x)
    before, found = by_scipy("bessel", zeroth, x), by_scipy("bessel", first, x)
    for k in range(1, n):
        before, found = found, by_n * 2 * k / x * found + below * before
    return _near_zero(found, x, n, sign, family == "i scaled") if sign else found


def _near_zero(found: Any, x: Any, n: int, sign: int, scaled: bool) -> Any:
    """`found`, with the sum of the power series near 0, where the recurrence would cancel."""
    near, found = np.less(np.abs(x), n + 1), writable(found)
    z = np.where(near, x, 0) if is_foreign(x) else x[near]
    series = _series(0.5 * z, n, sign * 0.25 * z * z, lambda k: k, lambda k: k * (n + k))
    return _put_near(found, near, series * np.exp(-np.abs(z)) if scaled else series)


def _put_near(found: Any, near: Any, series: Any) -> Any:
    """`found`, with the series in its place where `near` holds; on a device, the series was computed everywhere."""
    if is_foreign(found):
        return np.where(near, series, found)
    found[near] = series
    return found


def _series(x: Any, n: int, square: Any, lead: Any, by: Any) -> Any:
    """A power series: ``x ** n / (lead(1) ... lead(n))`` times the sum of ``square ** k / (by(1) ... by(k))``."""
    term = np.ones_like(x)
    for k in range(1, n + 1):
        term = term * x / lead(k)
    total = term
    for k in range(1, 12 + 2 * n):
        term = term * square / by(k)
        total = total + term
    return total


def _spherical(x: Any, n: int) -> Any:
    """The spherical Bessel function of order n: a power series near 0, elsewhere a recurrence from lower orders."""
    near = np.less(np.abs(x), n + 1.0) if n else np.equal(x, 0)  # sin(x) / x is exact everywhere else
    far = np.where(near, 1, x) if somewhere(near) else x
    found = np.sin(far) / far
    if n:
        before, found = found, (found - np.cos(far)) / far
    for k in range(1, n):
        before, found = found, (2 * k + 1) / far * found - before
    found = np.where(np.isinf(x), 0, found)
    if not n:
        return np.where(near, 1, found)
    z = np.where(near, x, 0) if is_foreign(x) else x[near]
    series = _series(z, n, -0.5 * z * z, lambda k: 2 * k + 1, lambda k: k * (2 * (n + k) + 1))
    return _put_near(found, near, series)


def _slope(x: Any, family: str, n: int) -> Any:
    """The derivative of the order-n function of a family, from the argument alone: the result may be overwritten."""

    def order(k: int) -> Any:
        return on(_bessel, x, family, k)

    if family == "spherical":
        return -order(1) if n == 0 else (n * order(n - 1) - (n + 1) * order(n + 1)) / (2 * n + 1)
    if family in ("j", "y"):
        return -order(1) if n == 0 else 0.5 * (order(n - 1) - order(n + 1))
    mean = order(1) if n == 0 else 0.5 * (order(n - 1) + order(n + 1))
    if family == "i":
        return mean
    if family == "k":
        return -mean
    return mean - np.sign(plain(x)) * order(n) if family == "i scaled" else order(n) - mean


@pointwise(method=False, input=lambda g, input, family, n: g * _slope(input, family, n))
def _bessel(input: Any, family: str, n: int) -> Any:
    """The function of order n in a family."""
    return _value(family, n, need("bessel", FLOATS if family != "spherical" else "fc", floating(input)))


_NEAR = [S(V([0.0, -0.0, 1.0, -1.0, 1e-30, 0.5, 1.5, -30.0]))]  # torch gives NaN at infinities
_NO_DERIVATIVE = [Differs("torch has no derivative of it", check) for check in ("gradients", "second")]


def _samples() -> list[Sample]:
    return [*unary(), *_NEAR]


def _positive() -> list[Sample]:
    return [*unary("positive"), S(V([0.1, 0.5, 1.0, 1.5, 30.0]))]


def _of_order(name: str, family: str, n: int, words: str, *, node: str = "", **about: Any) -> Operation:
    """Enter the function of order n, 0 or 1, of a family.

    node: torch's name of its nodes, if torch has a derivative of it. about: further keywords of its entry.
    """

    bessel = titled(_bessel, node) if node else _bessel

    def call(input: Tensor) -> Tensor:
        return bessel(input, family, n)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = words
    usual = {
        "home": "special",
        "numpy": {f"scipy.special.{_FAMILIES[family][n]}": lambda x: entered(x)},
        "samples": _samples,
        "refused": NO_UNARY,
        "differs": () if node else _NO_DERIVATIVE,
    }
    entered: Operation = composite(**usual | about)(call)
    return entered


_I, _K = "The modified Bessel function of the first kind", "The modified Bessel function of the second kind"
_J, _Y = "The Bessel function of the first kind", "The Bessel function of the second kind"

i0: Operation = _of_order(
    "i0",
    "i",
    0,
    f"{_I}, of order 0.",
    node="I0Backward0",
    home="",
    also="special.i0",
    inplace=True,
    numpy={np.i0: lambda x: i0(x), "scipy.special.i0": lambda x: i0(x)},
)
_of_order("i1", "i", 1, f"{_I}, of order 1.", node="SpecialI1Backward0")
for _n in (0, 1):
    _of_order(
        f"i{_n}e",
        "i scaled",
        _n,
        f"``exp(-|x|) i{_n}(x)``, which does not overflow.",
        node=f"SpecialI{_n}EBackward0",
        samples=unary,
        kinks=_NEAR,
    )
    _of_order(f"bessel_j{_n}", "j", _n, f"{_J}, of order {_n}.")
    _of_order(f"bessel_y{_n}", "y", _n, f"{_Y}, of order {_n}; NaN below 0.", samples=_positive)
    _of_order(f"modified_bessel_i{_n}", "i", _n, f"{_I}, of order {_n}: `i{_n}`.", numpy={})
    _of_order(f"modified_bessel_k{_n}", "k", _n, f"{_K}, of order {_n}; NaN below 0.", samples=_positive)
    _of_order(
        f"scaled_modified_bessel_k{_n}",
        "k scaled",
        _n,
        f"``exp(x) modified_bessel_k{_n}(x)``, which does not underflow.",
        samples=_positive,
    )


@composite(home="special", samples=_samples, refused=NO_UNARY, differs=_NO_DERIVATIVE)
def spherical_bessel_j0(input: Tensor) -> Tensor:
    """``sin(x) / x``, the spherical Bessel function of order 0; 1 at 0."""
    need("spherical_bessel_j0", REAL, input._data)
    return _bessel(input, "spherical", 0)


# Airy's function (n = 0) and its derivative (n = 1); the second derivative is x times the function
def _check_airy_ai(input: Tensor) -> Any:
    return input, 0


@pointwise(
    home="special",
    checks=_check_airy_ai,
    node="AiryBackward0",
    input=lambda g, input, n: g * (on(airy_ai, input, 1) if n == 0 else input * on(airy_ai, input, 0)),
    samples=_samples,
    refused=NO_UNARY,
    differs=_NO_DERIVATIVE,
)
def airy_ai(input: Any, n: int) -> Any:
    """Airy's function Ai, which solves ``y'' = x y`` and vanishes for large x."""
    x = need("airy_ai", FLOATS, floating(input))
    found = special_of("airy", x)[n].astype(x.dtype, copy=False)
    return np.where((x > 110) & (x < np.inf), 0, found)  # too small for any dtype; SciPy gives NaN
