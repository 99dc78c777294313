# Made from the table of operations by `pullback ops --stubs`; do not edit.
import builtins
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from .tensor.tensor import Tensor
_Other = builtins.complex | np.ndarray[Any, Any] | np.generic
def airy_ai(input: Tensor, *, out: Any = ...) -> Tensor:
    """Airy's function Ai, which solves ``y'' = x y`` and vanishes for large x."""
def bessel_j0(input: Tensor, *, out: Any = ...) -> Tensor:
    """The Bessel function of the first kind, of order 0."""
def bessel_j1(input: Tensor, *, out: Any = ...) -> Tensor:
    """The Bessel function of the first kind, of order 1."""
def bessel_y0(input: Tensor, *, out: Any = ...) -> Tensor:
    """The Bessel function of the second kind, of order 0; NaN below 0."""
def bessel_y1(input: Tensor, *, out: Any = ...) -> Tensor:
    """The Bessel function of the second kind, of order 1; NaN below 0."""
def chebyshev_polynomial_t(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Chebyshev polynomial of the first kind, ``cos(n acos(input))``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def chebyshev_polynomial_u(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Chebyshev polynomial of the second kind, ``sin((n + 1) t) / sin(t)`` with ``t = acos(input)``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def chebyshev_polynomial_v(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Chebyshev polynomial of the third kind, ``cos((n + 1/2) t) / cos(t / 2)`` with ``t = acos(input)``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def chebyshev_polynomial_w(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Chebyshev polynomial of the fourth kind, ``sin((n + 1/2) t) / sin(t / 2)`` with ``t = acos(input)``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def digamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """The derivative of `lgamma`."""
def entr(input: Tensor, *, out: Any = ...) -> Tensor:
    """``-x log(x)``, 0 at 0 and -inf below: the entropy of a probability."""
def erf(input: Tensor, *, out: Any = ...) -> Tensor:
    """``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to `input`."""
def erfc(input: Tensor, *, out: Any = ...) -> Tensor:
    """``1 - erf(input)``, exact for large numbers."""
def erfcx(input: Tensor, *, out: Any = ...) -> Tensor:
    """``exp(input ** 2) erfc(input)``, which does not underflow."""
def erfinv(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of `erf`, infinite at -1 and 1, NaN beyond."""
def exp2(input: Tensor, *, out: Any = ...) -> Tensor:
    """``2 ** input``."""
def expit(input: Tensor, *, out: Any = ...) -> Tensor:
    """``1 / (1 + exp(-input))``."""
def expm1(input: Tensor, *, out: Any = ...) -> Tensor:
    """``exp(input) - 1``, exact near 0."""
def gammainc(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The regularised lower incomplete gamma function ``P(input, other)``; no derivative by `input`."""
def gammaincc(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The regularised upper incomplete gamma function, ``1 - igamma(input, other)``; no derivative by `input`."""
def gammaln(input: Tensor, *, out: Any = ...) -> Tensor:
    """``log |Gamma(input)|``."""
def hermite_polynomial_h(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The physicist's Hermite polynomial, orthogonal under ``exp(-x ** 2)``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def hermite_polynomial_he(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The probabilist's Hermite polynomial, orthogonal under ``exp(-x ** 2 / 2)``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def i0(input: Tensor, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""
def i0e(input: Tensor, *, out: Any = ...) -> Tensor:
    """``exp(-|x|) i0(x)``, which does not overflow."""
def i1(input: Tensor, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind, of order 1."""
def i1e(input: Tensor, *, out: Any = ...) -> Tensor:
    """``exp(-|x|) i1(x)``, which does not overflow."""
def laguerre_polynomial_l(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Laguerre polynomial, orthogonal under ``exp(-x)`` above 0, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def legendre_polynomial_p(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Legendre polynomial, orthogonal on [-1, 1], of degree `n`, which may be a tensor; 0 for degrees below 0."""
def log1p(input: Tensor, *, out: Any = ...) -> Tensor:
    """``log(1 + input)``, exact near 0."""
def log_ndtr(input: Tensor, *, out: Any = ...) -> Tensor:
    """The logarithm of `ndtr`, exact far below 0."""
def log_softmax(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim`, more precise than the logarithm of `softmax`."""
def logit(input: Tensor, eps: SupportsFloat | None = ..., *, out: Any = ...) -> Tensor:
    """``log(input / (1 - input))``, the inverse of `sigmoid`; NaN outside [0, 1]."""
def logsumexp(input: Tensor, dim: Any, keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """``log(sum(exp(input)))`` over `dim`, relative to the largest element against overflow; -inf for no elements."""
def modified_bessel_i0(input: Tensor, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind, of order 0: `i0`."""
def modified_bessel_i1(input: Tensor, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind, of order 1: `i1`."""
def modified_bessel_k0(input: Tensor, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the second kind, of order 0; NaN below 0."""
def modified_bessel_k1(input: Tensor, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the second kind, of order 1; NaN below 0."""
def multigammaln(input: Tensor, p: SupportsIndex, *, out: Any = ...) -> Tensor:
    """The multivariate `lgamma`: ``p (p - 1) / 4 log(pi) + sum of lgamma(input - j / 2)`` over j from 0 to p - 1."""
def ndtr(input: Tensor, *, out: Any = ...) -> Tensor:
    """The normal distribution function: the area under its density up to `input`."""
def ndtri(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of `ndtr`, infinite at 0 and 1, NaN beyond."""
def polygamma(n: SupportsIndex, input: Tensor, *, out: Any = ...) -> Tensor:
    """The derivative of order `n` of `digamma`: ``polygamma(0, x)`` is ``digamma(x)``."""
def psi(input: Tensor, *, out: Any = ...) -> Tensor:
    """The derivative of `lgamma`."""
def round(input: Tensor, decimals: SupportsIndex = ..., *, out: Any = ...) -> Tensor:
    """The nearest number with `decimals` decimals, halves to the even one; negative `decimals` round to tens, hundreds."""
def scaled_modified_bessel_k0(input: Tensor, *, out: Any = ...) -> Tensor:
    """``exp(x) modified_bessel_k0(x)``, which does not underflow."""
def scaled_modified_bessel_k1(input: Tensor, *, out: Any = ...) -> Tensor:
    """``exp(x) modified_bessel_k1(x)``, which does not underflow."""
def shifted_chebyshev_polynomial_t(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Chebyshev polynomial of the first kind at ``2 input - 1``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def shifted_chebyshev_polynomial_u(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Chebyshev polynomial of the second kind at ``2 input - 1``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def shifted_chebyshev_polynomial_v(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Chebyshev polynomial of the third kind at ``2 input - 1``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def shifted_chebyshev_polynomial_w(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """The Chebyshev polynomial of the fourth kind at ``2 input - 1``, of degree `n`, which may be a tensor; 0 for degrees below 0."""
def sinc(input: Tensor, *, out: Any = ...) -> Tensor:
    """``sin(pi x) / (pi x)``, 1 at 0."""
def softmax(input: Tensor, dim: SupportsIndex, *, dtype: Any = ..., out: Any = ...) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size."""
def spherical_bessel_j0(input: Tensor, *, out: Any = ...) -> Tensor:
    """``sin(x) / x``, the spherical Bessel function of order 0; 1 at 0."""
def xlog1py(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``input * log(1 + other)``, and 0 where `input` is 0, unless `other` is NaN."""
def xlogy(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """``input * log(other)``, and 0 where `input` is 0, unless `other` is NaN."""
def zeta(input: Tensor | _Other, other: Tensor | _Other, *, out: Any = ...) -> Tensor:
    """The Hurwitz zeta function, the sum of ``(k + other) ** -input`` over k from 0; no derivative by `input`."""
