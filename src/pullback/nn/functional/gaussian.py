"""`gelu`, and the cumulative function of the normal distribution behind it, in NumPy alone."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...table.entry import composite, pointwise, special
from ...table.operands import data_of
from ...table.samples import CORNERS, NOT_TENSORS, A, S, on_one
from ...tensor.arrays import writable
from ...tensor.tensor import Tensor
from .arguments import floats_only, refuse

# For x >= 0, (x + 4) exp(x**2 / 2) P(X < -x) as a Chebyshev series in t = (x - 4) / (x + 4), which goes from -1 to 1;
# computed with 40 digits. The rest is smaller than 1e-16, and after the first 11 terms smaller than 3e-9.
_SERIES = (
    9.7045120456607654e-1,
    -7.5170881683957053e-1,
    2.2219355567525103e-1,
    -4.8517753260446086e-2,
    6.9259204962424804e-3,
    -3.2059847439814995e-4,
    -1.0054739163210678e-4,
    1.8903369019706964e-5,
    1.0103568854746311e-6,
    -6.1453347493978239e-7,
    -3.3810201200691756e-9,
    2.0686508061742834e-8,
    -1.1282603632469506e-10,
    -7.7740152283886943e-10,
    -9.9414241914047075e-12,
    3.1744829498583028e-11,
    1.842480684470494e-12,
    -1.3128616466710965e-12,
    -1.7415362652654814e-13,
    4.9072740317044241e-14,
    1.2931384326165576e-14,
    -1.2180663521726341e-15,
    -8.052147372620933e-16,
)
_BLOCK = 1 << 15  # elements that stay in the processor's cache while the polynomial is evaluated
_SQRT_2PI = 2.5066282746310002


@functools.cache
def _polynomial(terms: int) -> list[float]:
    """The coefficients of the powers of t, the highest first."""
    return np.polynomial.chebyshev.cheb2poly(np.array(_SERIES[:terms]))[::-1].tolist()


def _below(x: Any, coefficients: list[float]) -> Any:
    """The probability that a standard normal number is below each x."""
    size = np.absolute(x)
    scale = np.reciprocal(np.add(size, 4))
    t = np.subtract(1, np.multiply(8, scale))
    tail = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        tail *= t
        tail += coefficient
    tail *= scale
    size *= size
    size *= -0.5
    tail *= np.exp(size, out=size)
    np.subtract(np.greater(x, 0), tail, out=tail)  # for positive x, one minus the tail
    return np.abs(tail, out=tail)


def _normal_cdf(input: Any) -> Any:
    if input.dtype == np.float16:
        return _normal_cdf(input.astype(np.float32)).astype(np.float16)
    coefficients = _polynomial(23 if input.dtype == np.float64 else 11)
    if type(input) is not np.ndarray:
        return _below(input, coefficients)
    flat = np.ravel(input)
    out = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        out[start : start + _BLOCK] = _below(flat[start : start + _BLOCK], coefficients)
    return np.reshape(out, input.shape)


def _with_density(input: Any) -> tuple[Any, Any]:
    """The input (in half precision at most 6: further out it may overflow, and the density is 0), and its density."""
    x = np.clip(input, -6, 6) if data_of(input).dtype == np.float16 else input
    return x, np.true_divide(np.exp(np.multiply(-0.5, np.square(x))), _SQRT_2PI)


def _gelu_rule(g: Any, input: Any, out1: Any) -> Any:
    x, density = _with_density(input)
    found: Any = 0.0
    if g[0] is not None:
        found = np.multiply(g[0], np.add(np.multiply(x, density), out1))
    return found if g[1] is None else np.add(found, np.multiply(g[1], density))


def _gelu_tangents(tangents: Any, input: Any, out1: Any) -> list[Any]:
    x, density = _with_density(input)
    return [
        np.multiply(tangents[0], np.add(np.multiply(x, density), out1)),
        np.multiply(tangents[0], density),
    ]


@special(
    home="nn.functional",
    batch="leading",
    node="GeluBackward0",
    saved={"approximate": lambda: "none"},
    fused=True,
    alone=True,
    jvp=_gelu_tangents,
    input=_gelu_rule,
)
def _gelu(input: Any) -> Any:
    """``x P(X <= x)``, and the probability."""
    below = _normal_cdf(input)
    return np.multiply(input, below), below


_ROOT, _CUBIC = 0.7978845608028654, 0.044715  # sqrt(2 / pi)


def _tanh_rule(g: Any, input: Any) -> Any:
    x = np.clip(input, -10, 10) if data_of(input).dtype == np.float16 else input  # whose cube overflows; beyond, t is 1
    square = np.square(x)
    t = np.tanh(np.multiply(np.multiply(x, np.add(np.multiply(square, _CUBIC), 1)), _ROOT))
    bend = np.multiply(np.subtract(1, np.square(t)), np.add(np.multiply(square, 3 * _CUBIC * _ROOT), _ROOT))
    return np.multiply(g, np.multiply(0.5, np.add(np.add(t, 1), np.multiply(x, bend))))


@pointwise(
    home="nn.functional", node="GeluBackward0", saved={"approximate": lambda: "tanh"}, fused=True, input=_tanh_rule
)
def _gelu_tanh(input: Any) -> Any:
    floats_only("gelu", input)
    found = writable(np.square(input))
    found *= _CUBIC * _ROOT
    found += _ROOT
    found *= input
    np.tanh(found, out=found)
    found += 1
    found *= input
    found *= 0.5
    return found


@composite(
    out=True,
    home="nn.functional",
    fused=True,
    samples=lambda: on_one(S(A(2, 3), approximate="tanh"), S(A(), approximate="tanh"), S(A(3), approximate="none")),
    kinks=lambda: [*CORNERS, S(CORNERS[0].args[0], approximate="tanh")],
    refused=lambda: [*NOT_TENSORS, S(A(2), approximate="erf"), S(A(2), "tanh")],
)
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """``input * P(X <= input)`` for a standard normal X (Hendrycks & Gimpel 2016, arXiv:1606.08415).

    approximate: "tanh" for ``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3)))``.

    >>> import pullback
    >>> pullback.nn.functional.gelu(pullback.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate == "tanh":
        return _gelu_tanh(input)
    if approximate != "none":
        raise refuse("gelu", "approximate to be 'none' or 'tanh'", repr(approximate))
    floats_only("gelu", input._data)
    return _gelu(input)[0]
