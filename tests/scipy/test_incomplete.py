"""Incomplete gamma and beta functions, Student's distribution and zeta: derivatives by parameters, in every mode.

The recorded derivatives are those of mpmath, with 60 digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import pullback
from pullback.autograd import grad, gradcheck, gradgradcheck
from pullback.scipy.special import incomplete

GAMMA = [
    (0.003, 0.001, -6.2171888003490065),
    (0.05, 0.5, -0.58674722335074716),
    (0.3, 5.0, -0.0034310827952698855),
    (1.0, 0.56, -0.49153319848810708),
    (2.5, 40.0, -2.5267860704828765e-15),
    (30.0, 5.0, -5.1121523193616428e-14),
    (80.0, 80.0, -0.044649607357713675),
    (20000.0, 20100.0, -0.0021933116041998435),
]
BETA = [
    (0.003, 1.5, 1.0e-12, -24.915782245408498, 0.0025826301162435871),
    (0.05, 0.05, 0.3, -5.1990011287207798, 4.8290198841754523),
    (0.3, 500.0, 0.001, -0.65604660071690042, 0.00032960670768086795),
    (2.0, 0.003, 0.9, -0.0016345595599130583, 1.3991039474918642),
    (3.0, 2.0, 0.999, -3.4913395825331728e-6, 3.7897287854926864e-5),
    (40.0, 9.0, 0.3, -2.9572581669484131e-14, 4.0226801815827431e-14),
    (500.0, 300.0, 0.63, -0.010430150349747548, 0.01757429002540874),
    (1.5, 1000.0, 0.02, -2.6167036913829121e-8, 1.7159711367799343e-10),
]
STUDENT = [
    (0.3, -5.0, -0.47966890977756185),
    (1.0, 0.7, 0.047406450355715748),
    (3.0, -40.0, -4.7812694250283066e-5),
    (12.5, 2.5, 0.00066208076959973228),
    (100.0, -1.0, -1.2037892855727073e-5),
    (10000.0, 3.0, 3.3282403426193826e-10),
]
ZETA = [
    (1.01, 1.0, -9999.927281160435),
    (2.0, 0.3, 12.341930688885221),
    (3.5, 20.0, -0.00080227913232219656),
    (12.0, 1.0, -0.00017138284585435377),
]
FAR = [
    ("log_gammainc", (400.0, 2.0), -1725.2368258113446, -5.2995793453244287),
    ("log_gammaincc", (3.5, 1200.0), -1183.4736977468714, 5.987754569116134),
    ("log_betainc", (300.0, 2.5, 0.01), -1373.2888539675054, -4.6001910943913479),
    ("log_stdtr", (200.0, -1000000.0), -2236.8397221692227, -10.668845624967877),
]

EACH: dict[str, tuple[list[float], ...]] = {
    "gammainc": ([0.3, 2.0, 40.0], [0.5, 1.0, 50.0]),
    "gammaincc": ([0.3, 2.0, 40.0], [0.5, 1.0, 50.0]),
    "log_gammainc": ([0.3, 2.0, 40.0], [0.5, 1.0, 50.0]),
    "log_gammaincc": ([0.3, 2.0, 40.0], [0.5, 4.0, 50.0]),
    "gammaincinv": ([0.3, 2.0, 40.0], [0.5, 0.1, 0.9]),
    "gammainccinv": ([0.3, 2.0, 40.0], [0.5, 0.1, 0.9]),
    "betainc": ([0.3, 2.0, 40.0, 0.5], [1.5, 0.6, 9.0, 9.0], [0.2, 0.7, 0.8, 0.02]),
    "betaincc": ([0.3, 2.0, 40.0, 0.5], [1.5, 0.6, 9.0, 9.0], [0.2, 0.7, 0.8, 0.02]),
    "log_betainc": ([0.3, 2.0, 40.0, 0.5], [1.5, 0.6, 9.0, 9.0], [0.2, 0.7, 0.8, 0.02]),
    "log_betaincc": ([0.3, 2.0, 40.0, 0.5], [1.5, 0.6, 9.0, 9.0], [0.2, 0.7, 0.8, 0.02]),
    "betaincinv": ([0.3, 2.0, 40.0], [1.5, 0.6, 9.0], [0.2, 0.7, 0.8]),
    "betainccinv": ([0.3, 2.0, 40.0], [1.5, 0.6, 9.0], [0.2, 0.7, 0.8]),
    "stdtr": ([0.7, 3.0, 40.0], [-2.0, 0.4, 1.6]),
    "log_stdtr": ([0.7, 3.0, 40.0], [-2.0, 0.4, 1.6]),
    "stdtrit": ([0.7, 3.0, 40.0], [0.1, 0.4, 0.9]),
    "zeta2": ([1.5, 3.0, 8.0], [0.7, 1.0, 3.0]),
}


def leaf(value: Any) -> pullback.Tensor:
    return pullback.tensor(value, dtype=pullback.float64, requires_grad=True)


@pytest.mark.parametrize("name", EACH)
def test_every_argument_in_every_mode(name: str) -> None:
    function, leaves = getattr(incomplete, name), [leaf(a) for a in EACH[name]]
    assert gradcheck(function, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, leaves)
    plain = [t.detach() for t in leaves]
    each = pullback.vmap(function)(*plain)
    np.testing.assert_allclose(each.numpy(), function(*plain).numpy(), rtol=1e-14)
    # forward over reverse, of each sample
    hessians = pullback.vmap(pullback.func.hessian(function))(*plain)
    (slope,) = grad(function(*leaves).sum(), leaves[0], create_graph=True)
    (second,) = grad(slope.sum(), leaves[0])
    np.testing.assert_allclose(hessians.numpy(), second.numpy(), rtol=1e-8)


@pytest.mark.parametrize(("a", "x", "expected"), GAMMA)
def test_gammainc_by_its_parameter(a: float, x: float, expected: float) -> None:
    p = leaf(a)
    (found,) = grad(incomplete.gammainc(p, x), p)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)
    (upper,) = grad(incomplete.gammaincc(p, x), p)
    np.testing.assert_allclose(upper.numpy(), -expected, rtol=1e-10)
    (log,) = grad(incomplete.log_gammainc(p, x), p)
    np.testing.assert_allclose(log.numpy() * sp.gammainc(a, x), expected, rtol=1e-10)


@pytest.mark.parametrize(("a", "b", "x", "by_a", "by_b"), BETA)
def test_betainc_by_its_parameters(a: float, b: float, x: float, by_a: float, by_b: float) -> None:
    p, q = leaf(a), leaf(b)
    found = grad(incomplete.betainc(p, q, x), [p, q])
    np.testing.assert_allclose([t.item() for t in found], [by_a, by_b], rtol=1e-10)
    logs = grad(incomplete.log_betainc(p, q, x), [p, q])
    np.testing.assert_allclose([t.item() * sp.betainc(a, b, x) for t in logs], [by_a, by_b], rtol=1e-10)


@pytest.mark.parametrize(("df", "t", "expected"), STUDENT)
def test_stdtr_by_its_parameter(df: float, t: float, expected: float) -> None:
    p = leaf(df)
    (found,) = grad(incomplete.stdtr(p, t), p)
    # terms of size 1 / df cancel, to a result of size 1 / df ** 2
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(("s", "q", "expected"), ZETA)
def test_zeta_by_its_argument(s: float, q: float, expected: float) -> None:
    p = leaf(s)
    (found,) = grad(incomplete.zeta2(p, q), p)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11)


@pytest.mark.parametrize(("name", "arguments", "value", "slope"), FAR)
def test_logarithms_where_the_probability_underflows(
    name: str, arguments: tuple[float, ...], value: float, slope: float
) -> None:
    function: Callable[..., Any] = getattr(incomplete, name)
    p = leaf(arguments[0])
    found = function(p, *arguments[1:])
    np.testing.assert_allclose(found.item(), value, rtol=1e-12)
    (by_p,) = grad(found, p)
    np.testing.assert_allclose(by_p.item(), slope, rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("gammainc", ([2.0, 2.0], [0.0, np.inf])),
        ("log_gammaincc", ([2.0, 0.5], [0.0, 0.0])),
        ("betainc", ([2.0, 2.0], [3.0, 3.0], [0.0, 1.0])),
        ("log_betaincc", ([2.0, 2.0], [3.0, 3.0], [0.0, 0.0])),
        ("stdtr", ([2.0, 2.0], [-np.inf, np.inf])),
    ],
)
def test_no_derivative_by_a_parameter_at_the_ends(name: str, arguments: Any) -> None:
    p, *rest = [leaf(a) for a in arguments]
    (found,) = grad(getattr(incomplete, name)(p, *[t.detach() for t in rest]).sum(), p)
    assert found.tolist() == [0.0, 0.0]


def test_an_elementwise_node_asks_for_no_derivative_that_is_not_needed() -> None:
    from pullback.scipy.array_nodes import elementwise

    bessel = elementwise("bessel", sp.jv, None, lambda v, x: (sp.jv(v - 1, x) - sp.jv(v + 1, x)) / 2)
    x = leaf([0.5, 1.5])
    assert gradcheck(lambda t: bessel(2.0, t), [x], check_forward_ad=True, check_batched_grad=True)
    with pytest.raises(RuntimeError, match="bessel has no derivative with respect to argument 0"):
        pullback.func.jvp(lambda v: bessel(v, x.detach()), (x.detach(),), (x.detach(),))
