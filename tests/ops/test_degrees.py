"""Orthogonal polynomials of one degree are those of a tensor of degrees, whose steps are computed for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

import pullback
from pullback.ops.elementwise import polynomials

FAMILIES = sorted(polynomials._FAMILIES)
DEGREES = [0, 1, 2, 5, polynomials._SMALL, polynomials._SMALL + 1]
X = np.linspace(-0.99, 0.99, 41)
NUMPYS = {
    "chebyshev_polynomial_t": chebyshev.chebval,
    "hermite_polynomial_h": hermite.hermval,
    "hermite_polynomial_he": hermite_e.hermeval,
    "laguerre_polynomial_l": laguerre.lagval,
    "legendre_polynomial_p": legendre.legval,
}


def thrice(name: str, n: Any, x: np.ndarray) -> list[np.ndarray]:
    """The polynomial, its derivative and its second derivative."""
    t = pullback.tensor(x, requires_grad=True)
    y = getattr(pullback.special, name)(t, n)
    (first,) = pullback.autograd.grad(y.sum(), t, create_graph=True)
    if not first.requires_grad:
        return [y.detach().numpy(), first.numpy(), np.zeros_like(x)]
    (second,) = pullback.autograd.grad(first.sum(), t)
    return [y.detach().numpy(), first.detach().numpy(), second.numpy()]


@pytest.mark.parametrize("n", DEGREES)
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("size", [41, 4100])
def test_one_degree_is_as_a_tensor_of_it(name: str, n: int, size: int) -> None:
    x = np.resize(X, size)
    for one, many in zip(thrice(name, n, x), thrice(name, pullback.tensor(n), x), strict=True):
        np.testing.assert_allclose(one, many, rtol=1e-11, atol=1e-11 * np.abs(many).max())


@pytest.mark.parametrize("n", DEGREES)
@pytest.mark.parametrize("name", NUMPYS)
def test_one_degree_is_numpys(name: str, n: int) -> None:
    found = getattr(pullback.special, name)(pullback.tensor(X), n).numpy()
    expected = NUMPYS[name](X, [0.0] * n + [1.0])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_numbers_that_are_no_small_degree_go_the_general_way() -> None:
    t = pullback.tensor(X)
    for n in (-1, 2.7, True, float("nan"), 10**6 + 1):
        if n == 10**6 + 1:
            with pytest.raises(RuntimeError, match="degrees up to 1000000"):
                pullback.special.legendre_polynomial_p(t, n)
        else:
            expected = pullback.special.legendre_polynomial_p(t, pullback.tensor(float(n)))
            assert pullback.equal(pullback.special.legendre_polynomial_p(t, n), expected)


def test_infinite_and_missing_numbers_are_as_by_the_general_way() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e200])
    for name in FAMILIES:
        one, many = (thrice(name, n, x)[0] for n in (3, pullback.tensor(3)))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(one, many)
