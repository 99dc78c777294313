"""The functions of scipy.special that are no ufuncs, as compositions of those that are, and a few new ufuncs.

Tensors may stand wherever SciPy takes arrays; what counts (orders, numbers of things) is a setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from ... import errors
from ...ops.elementwise.gamma import polygamma as _polygamma
from ...table.operands import plain
from ...tensor.tensor import Lifted
from ..array_nodes import elementwise, floating
from ..mirror import mirrors
from ..user_functions import plain_setting
from . import incomplete as ic


def _replaced(mask: Any, x: Any, value: float) -> Any:
    return np.where(mask, value, x)


def seen(mask: Any) -> bool:
    """Whether a mask holds somewhere; False in a transform, whose values are not read."""
    return not isinstance(mask, Lifted) and bool(np.any(mask))


# Sums of exponentials -------------------------------------------------------------------------------------------------


@mirrors("special.logsumexp", derivative="in a and b: softmax")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """``log(sum(b exp(a)))`` without overflow; with `return_sign`, of its absolute value, and its sign.

    The derivative by a is ``b exp(a) / sum``. Where every term is 0, the value is -inf, and the gradient 0.

    >>> import pullback
    >>> from pullback.scipy.special import logsumexp
    >>> a = pullback.tensor([0.0, 0.0], requires_grad=True)
    >>> logsumexp(a).backward()
    >>> a.grad
    tensor([0.5000, 0.5000])
    """
    a = floating(a)
    if a.is_complex():
        raise TypeError(
            errors.message("pullback.scipy.special.logsumexp", expected="real numbers", found="complex ones")
        )
    if 0 in tuple(a.shape):
        none = np.sum(a, axis=axis, keepdims=keepdims) - np.inf
        return (none, np.zeros_like(none)) if return_sign else none
    value = plain(a)
    a = np.where(np.isinf(value), value, a)
    top = np.max(value, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    infinite = np.max(value, axis=axis, keepdims=keepdims) == np.inf
    terms = np.exp(a - top)
    terms = terms if b is None else np.where(plain(floating(b)) == 0, 0.0, floating(b) * terms)
    total = np.sum(terms, axis=axis, keepdims=keepdims)
    size, sign = (np.absolute(total), np.sign(total)) if return_sign else (total, None)
    none = plain(size) == 0
    top = top if keepdims else np.squeeze(top, axis=axis)
    found = np.log(_replaced(none | infinite, size, 1.0)) + top
    found = np.where(infinite, np.log(np.where(infinite, plain(size), 1.0)), np.where(none, -np.inf, found))
    return (found, sign) if return_sign else found


@mirrors("special.softmax", derivative="in x")
def softmax(x: Any, axis: Any = None) -> Any:
    """``exp(x) / sum(exp(x))``."""
    x = floating(x)
    powers = np.exp(x - np.max(plain(x), axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


@mirrors("special.log_softmax", derivative="in x")
def log_softmax(x: Any, axis: Any = None) -> Any:
    """``log(softmax(x))``, without underflow."""
    x = floating(x)
    top = np.max(plain(x), axis=axis, keepdims=True)
    shifted = x - np.where(np.isfinite(top), top, 0.0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@mirrors("special.softplus", derivative="in x")
def softplus(x: Any, **kwargs: Any) -> Any:
    """``log(1 + exp(x))``."""
    if kwargs:
        raise TypeError(errors.message("pullback.scipy.special.softplus", expected="x alone", found=", ".join(kwargs)))
    return np.logaddexp(0.0, floating(x))


# The gamma function's relatives ---------------------------------------------------------------------------------------


@mirrors("special.multigammaln", derivative="in a", limits="d is a setting")
def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function of dimension d."""
    size: Any
    (size,) = plain_setting("special.multigammaln", d=d)
    if not isinstance(size, (int, float, np.number)) or np.floor(size) != size:
        raise ValueError("d should be a positive integer (dimension)")
    a, least = floating(a), 0.5 * (size - 1)
    if seen(plain(a) <= least):
        raise ValueError(f"condition a ({plain(a)}) > 0.5 * (d-1) ({least:f}) not met")
    return sum((sp.gammaln(a - i / 2) for i in range(int(size))), size * (size - 1) / 4 * math.log(math.pi))


@mirrors("special.polygamma", derivative="in x", limits="n is a setting, one number")
def polygamma(n: Any, x: Any) -> Any:
    """The derivative of order n of digamma."""
    (n,) = plain_setting("special.polygamma", n=n)
    return _polygamma(int(np.asarray(n).item()), floating(x))


@mirrors("special.zeta", derivative="in x and q", limits="with q, x > 1 for the derivative by x")
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """The zeta function of Riemann, or with q that of Hurwitz: the sum of ``(k + q) ** -x`` over k from 0."""
    if out is not None:
        raise TypeError(errors.message("pullback.scipy.special.zeta", expected="no out=", do="use the result"))
    return ic.zeta1(x) if q is None else ic.zeta2(x, q)


@mirrors("special.zetac", derivative="in x")
def zetac(x: Any) -> Any:
    """``zeta(x) - 1``."""
    return ic.zetac(x)


def _count(N: Any, k: Any, formula: Callable[[Any, Any], Any]) -> Any:
    """A number of choices, 0 where there are none."""
    N, k = floating(N), floating(k)
    none = (plain(k) > plain(N)) | (plain(N) < 0) | (plain(k) < 0)
    return np.where(none, 0.0, formula(np.where(none, 1.0, N), np.where(none, 1.0, k)))


@mirrors("special.comb", derivative="in N and k", limits="constant with exact=True")
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """The number of combinations of N things taken k at a time, by the gamma function."""
    if exact:
        return sp.comb(*plain_setting("special.comb", N=N, k=k), exact=True, repetition=repetition)
    return _repeated(floating(N), floating(k)) if repetition else _count(N, k, sp.binom)


def _repeated(N: Any, k: Any) -> Any:
    """With repetition: there is one choice of nothing, and as in SciPy no limit to k."""
    none = (plain(k) == 0) & (plain(N) == 0)
    return np.where(none, 1.0, sp.binom(np.where(none, 1.0, N) + k - 1, k))


@mirrors("special.perm", derivative="in N and k", limits="constant with exact=True")
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """The number of permutations of N things taken k at a time, by the gamma function."""
    if exact:
        return sp.perm(*plain_setting("special.perm", N=N, k=k), exact=True)
    return _count(N, k, lambda n, j: sp.poch(n - j + 1, j))


@mirrors("special.factorial", derivative="in n", limits='constant with exact=True; extend="zero"')
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """``gamma(n + 1)``, 0 for negative n."""
    if exact or extend != "zero":
        (n,) = plain_setting("special.factorial", n=n)
        return sp.factorial(n, exact=exact, extend=extend)
    n = floating(n)
    none = plain(n) < 0
    return np.where(none, 0.0, sp.gamma(np.where(none, 0.0, n) + 1))


@mirrors("special.sinc", derivative="in x")
def sinc(x: Any) -> Any:
    """``sin(pi x) / (pi x)``."""
    return np.sinc(floating(x))


# Bessel functions: the order is a constant ----------------------------------------------------------------------------


def _order(name: str, n: Any) -> int:
    (n,) = plain_setting(name, n=n)
    if n < 0 or n != int(n):
        raise ValueError("n must be a non-negative integer.")
    return int(n)


def _differences(v: Any, z: Any, n: int, bessel: Any, phase: int) -> Any:
    """https://dlmf.nist.gov/10.6#E7: the n-th derivative, by orders from ``v - n`` to ``v + n``."""
    terms = [math.comb(n, i) * phase**i * bessel(v - n + 2 * i, z) for i in range(n + 1)]
    return sum(terms[1:], terms[0]) / 2**n


def _enter_derivative(name: str, bessel: Any, phase: int, sign: int = 1) -> Any:
    @mirrors(f"special.{name}", derivative="in z", limits="v is a constant, n a setting")
    def derivative(v: Any, z: Any, n: Any = 1) -> Any:
        n = _order(f"special.{name}", n)
        return sign**n * _differences(v, floating(z), n, bessel, phase)

    derivative.__name__ = derivative.__qualname__ = name
    derivative.__doc__ = f"The derivative of order n of ``{bessel.__name__}(v, z)`` by z."
    return derivative


jvp = _enter_derivative("jvp", sp.jv, -1)
yvp = _enter_derivative("yvp", sp.yv, -1)
ivp = _enter_derivative("ivp", sp.iv, 1)
kvp = _enter_derivative("kvp", sp.kv, 1, -1)


def _enter_spherical(name: str, lower: int, upper: int) -> Any:
    """A spherical Bessel function f, with ``(2 n + 1) f' = lower n f_(n-1) + upper (n + 1) f_(n+1)``.

    https://dlmf.nist.gov/10.51
    """
    ufunc = getattr(sp, name)

    def slope(n: Any, z: Any) -> Any:
        k = plain(n)
        below, above = np.maximum(k - 1, 0), k + 1
        return (lower * k * value(below, z) + upper * above * value(above, z)) / (2 * k + 1)

    value = elementwise(f"special.{name}", lambda n, z: ufunc(n.astype(int), z), None, slope)

    @mirrors(f"special.{name}", derivative="in z", limits="n is a constant")
    def spherical(n: Any, z: Any, derivative: bool = False) -> Any:
        n, z = floating(n), floating(z)
        if seen((plain(n) < 0) | (plain(n) != np.floor(plain(n)))):
            raise ValueError("n must be a non-negative integer.")
        return slope(n, z) if derivative else value(n, z)

    spherical.__name__ = spherical.__qualname__ = name
    spherical.__doc__ = f"scipy.special.{name}, and its derivative by z."
    return spherical


spherical_jn = _enter_spherical("spherical_jn", 1, -1)
spherical_yn = _enter_spherical("spherical_yn", 1, -1)
spherical_in = _enter_spherical("spherical_in", 1, 1)
spherical_kn = _enter_spherical("spherical_kn", -1, -1)

__all__ = [
    "comb", "factorial", "ivp", "jvp", "kvp", "log_softmax", "logsumexp", "multigammaln", "perm", "polygamma", "seen",
    "sinc", "softmax", "softplus", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn", "yvp", "zeta",
    "zetac",
]  # fmt: skip
