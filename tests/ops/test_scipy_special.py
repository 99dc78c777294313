"""The ufuncs of scipy.special on tensors: each has a rule, or is refused by name with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import pullback
from pullback.autograd import gradcheck, gradgradcheck
from pullback.ops.numpy.scipy_special import IN_SCIPY
from pullback.tensor.protocol import INSTEAD, full_name
from pullback.tensor.tensor import NUMPY
from tests.oracle import cases
from tests.tensor.test_numpy_protocol import ONE, TWO

UFUNCS = {name: f for name in dir(sp) if isinstance(f := getattr(sp, name), np.ufunc) and not name.startswith("_")}
PRIVATE = {"scipy.special._zeta", "scipy.special._riemann_zeta"}  # which only functions call

# Expressions in x, between 0 and 1, y, between 1 and 2, and z, complex. Each is differentiable in all that it names.
REAL = cases("""
sp.gamma(x) | sp.gamma(-x) | sp.rgamma(y) | sp.rgamma(-x) | sp.loggamma(x) | sp.beta(x, y) | sp.betaln(x, y)
sp.betainc(2.0, 0.5, x) | sp.betaincc(2.0, 0.5, x) | sp.betaincinv(2.0, 1.5, x) | sp.betainccinv(2.0, 1.5, x)
sp.gammaincinv(2.0, x) | sp.gammainccinv(2.0, x) | sp.binom(y, x) | sp.poch(y, x) | sp.erfcinv(x) | sp.erfi(x)
sp.dawsn(x) | sp.dawsn(y) | sp.ndtri_exp(-x) | sp.owens_t(x, y) | sp.jv(2, x) | sp.jv(0.5, y) | sp.jv(0, x)
sp.jn(3, y)
sp.jv(np.array([0.0, 1.5, 2.0]), y) | sp.yv(1, y) | sp.yv(2.5, y) | sp.yn(2, y) | sp.iv(2, x) | sp.iv(0.5, y)
sp.kv(1.5, y) | sp.kn(2, y) | sp.ive(1.5, y) | sp.ive(2, -y) | sp.ive(2, x) | sp.kve(1.5, y) | sp.jve(2, y)
sp.yve(2, y)
sp.exp1(y) | sp.expi(y) | sp.hyp0f1(1.5, x) | sp.hyp1f1(0.5, 1.5, x) | sp.hyperu(0.5, 1.5, y)
sp.hyp2f1(0.5, 1.5, 2.5, x) | sp.exprel(x) | sp.spence(y) | sp.spence(x) | sp.ellipk(x) | sp.ellipkm1(x)
sp.ellipe(x)
sp.sindg(30 * y) | sp.cosdg(30 * y) | sp.tandg(30 * y) | sp.cotdg(30 * y) | sp.cosm1(x) | sp.log_expit(y)
sp.exp10(x)
sp.powm1(y, x) | sp.rel_entr(x, y) | sp.kl_div(x, y) | sp.stdtr(3.0, x) | sp.stdtrit(3.0, x)
sp.eval_jacobi(3, 0.5, 1.5, x) | sp.eval_jacobi(0, 0.5, 1.5, x) + x | sp.eval_gegenbauer(3, 0.5, x)
sp.eval_genlaguerre(3, 0.5, x) | sp.eval_genlaguerre(0, 0.5, x) + x | sp.eval_legendre(3, x) | sp.eval_laguerre(3, x)
sp.eval_chebyt(3, x) | sp.eval_chebyu(3, x) | sp.eval_chebyc(3, x) | sp.eval_chebys(3, x) | sp.eval_sh_legendre(2, x)
sp.eval_chebyt(0.3, x) | sp.eval_chebyc(0.3, x) | sp.eval_sh_chebyt(2.7, x) | sp.eval_chebyu(0.3, x)
sp.eval_legendre(1.3, x) | sp.eval_laguerre(0.3, x) | sp.eval_chebyt(0, x) + x | sp.eval_chebyt(-2, x)
sp.eval_chebyu(-3, x) | sp.eval_chebys(-4, x) | sp.eval_sh_chebyu(-3, x) | sp.eval_chebyu(-0.7, x)
sp.eval_legendre(-3, x) | sp.eval_sh_legendre(-2, x) | sp.eval_legendre(-0.7, x)
sp.eval_sh_chebyt(3, x) | sp.eval_sh_chebyu(3, x) | sp.eval_hermite(3, x) | sp.eval_hermitenorm(3, x)
sp.cbrt(y) | sp.radian(x, y, 3.0) | sp.chdtr(3.0, y) | sp.chdtrc(3.0, y) | sp.chdtri(3.0, x) | sp.gdtr(x, 2.0, y)
sp.gdtrc(x, 2.0, y) | sp.pdtr(2, y) | sp.pdtrc(2, y) | sp.boxcox(y, x) | sp.boxcox1p(y, x) | sp.inv_boxcox(y, x)
sp.inv_boxcox1p(y, x) | sp.huber(0.5, x - 0.2) | sp.pseudo_huber(y, x) | sp.zeta(2.0, y) | sp.erfcx(x) | sp.erf(x)
sp.wrightomega(x) | sp.wrightomega(-9 * y)
sp.boxcox(y, 0 * y) | sp.inv_boxcox(y, 0.0 * y) | sp.exprel(0 * x) | sp.ellipk(0 * x) | sp.spence(1 + 0 * x)
sp.erfc(x)
sp.eval_gegenbauer(0, 1.0, x) + x | sp.eval_chebyu(0, x) + x | sp.eval_chebys(0, x) + x | sp.eval_sh_chebyu(0, x) + x
sp.eval_jacobi(0.0, 1.0, 0.5, x) + x | sp.eval_jacobi(1.0, 0.0, 0.5, x)
sp.rgamma(0 * x) | sp.rgamma(0 * x - 2) | sp.jv(1, 0 * x) | sp.ellipe(0 * x) | sp.iv(2, 0 * x)
""")
COMPLEX = cases(
    "sp.erf(z) | sp.erfc(z) | sp.erfcx(z) | sp.wofz(z) | sp.erfi(z) | sp.dawsn(z) | sp.wofz(x) | sp.wrightomega(z)"
)
X, Y = np.array([0.31, 0.83, 0.57]), np.array([1.21, 1.83, 1.47])
GIVEN = {"x": X, "y": Y, "z": X - 0.3j * Y}


def function(code: str) -> tuple[Callable[..., Any], list[str]]:
    names = [n for n in GIVEN if re.search(rf"\b{n}\b", code)]
    return eval(f"lambda {', '.join(names)}: {code}", {"sp": sp, "np": np}), names


@pytest.mark.parametrize("code", [*REAL, *COMPLEX])
def test_a_ufunc_is_recorded_in_every_mode(code: str) -> None:
    call, names = function(code)
    leaves = [pullback.tensor(GIVEN[n], requires_grad=True) for n in names]
    found = call(*leaves)
    np.testing.assert_allclose(found.detach().numpy(), call(*(GIVEN[n] for n in names)), rtol=1e-13, atol=1e-15)
    assert gradcheck(call, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(call, leaves)
    each = pullback.vmap(call)(*(pullback.tensor(GIVEN[n]) for n in names)) if "array" not in code else found
    np.testing.assert_allclose(each.detach().numpy(), found.detach().numpy(), rtol=1e-13)


@pytest.mark.filterwarnings("ignore:floating point number truncated to an integer:RuntimeWarning")
@pytest.mark.parametrize("function", [sp.yn, sp.kn])
def test_an_order_is_cut_to_an_integer_as_in_scipy(function: Any) -> None:
    x = pullback.tensor(Y, requires_grad=True)
    np.testing.assert_allclose(function(2.6, x).detach().numpy(), function(2.6, Y), rtol=1e-13)
    np.testing.assert_allclose(function(2.6, x).detach().numpy(), function(2, Y), rtol=1e-13)
    assert gradcheck(lambda x: function(2.6, x), [x])


@pytest.mark.parametrize("code", [c for c in REAL if "eval_" not in c and "zeta" not in c])
def test_a_ufunc_keeps_the_dtype(code: str) -> None:
    call, names = function(code)
    found = call(*(pullback.tensor(GIVEN[n], dtype=pullback.float32) for n in names))
    if "array" not in code:
        assert found.dtype == pullback.float32
    np.testing.assert_allclose(found.numpy(), call(*(GIVEN[n] for n in names)), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("degree", [0, 0.0, 1, 2.0])
@pytest.mark.parametrize("name", [n for n in UFUNCS if n.startswith("eval_") and n != "eval_sh_jacobi"])
def test_derivatives_beyond_the_degree_are_0(name: str, degree: float) -> None:
    parameters = {"eval_jacobi": (1.0, 0.5), "eval_gegenbauer": (1.0,), "eval_genlaguerre": (1.0,)}.get(name, ())

    def at(x: Any) -> Any:
        return UFUNCS[name](degree, *parameters, x)

    for order in range(5):
        if order > degree:
            assert at(pullback.tensor(0.3, dtype=pullback.float64)).item() == 0
        at = pullback.func.grad(at)


# By mpmath, with 50 digits; the polynomials in z by hand.
SLOPES: list[tuple[Any, tuple[float, float], tuple[float | None, float | None]]] = [
    (sp.binom, (4.0, 5.0), (0.2, -0.2)),
    (sp.binom, (4.0, 6.0), (-1 / 30, 1 / 30)),
    (sp.binom, (0.0, 1.0), (1.0, -1.0)),
    (sp.binom, (4.0, -1.0), (0.0, 0.2)),
    (sp.binom, (4.0, -3.0), (0.0, 1 / 105)),
    (sp.binom, (4.3, 5.0), (0.5380875, -0.5524819474998016)),
    (sp.binom, (-0.7, 2.3), (2.2296544035674444, -2.2296544035674466)),
    (sp.binom, (-1.5, -1.0), (0.0, -2.0)),
    (sp.binom, (-2.5, 0.5), (16 / 3, -16 / 3)),
    (sp.binom, (-3.5, -1.5), (-4 / 15, 4 / 15)),
    (sp.binom, (1e15, 2.5), (2.3788321548703587e22, 3.1815090955786055e38)),
    (sp.binom, (11000.0, 3.0), (60489000.333333336, 1785117335495.4634)),
    (sp.poch, (0.0, 2.0), (1.0, 0.0)),
    (sp.poch, (-3.0, 2.0), (-5.0, None)),
    (sp.poch, (-3.0, 5.0), (-6.0, 0.0)),
    (sp.poch, (-3.0, -2.0), (0.0225, None)),
    (sp.poch, (-1.0, 1.0), (1.0, None)),
    (sp.poch, (0.2, 0.6), (1.0965665731932874, -0.24472443799869567)),
    (sp.poch, (1e15, 0.5), (1.58113883008419e-08, 1092212010.03177)),
]


@pytest.mark.parametrize(("ufunc", "at", "expected"), SLOPES)
def test_slopes_of_factorials_where_psi_has_poles_or_cancels(
    ufunc: Any, at: tuple[float, float], expected: tuple[float | None, float | None]
) -> None:
    leaves = [pullback.tensor(v, dtype=pullback.float64, requires_grad=True) for v in at]
    with np.errstate(all="ignore"):
        ufunc(*leaves).backward()
    for leaf, slope in zip(leaves, expected, strict=True):
        if slope is not None:
            np.testing.assert_allclose(leaf.grad.numpy(), slope, rtol=1e-11)
    if None not in expected and abs(at[0]) < 1e3:
        assert gradgradcheck(ufunc, leaves, rtol=1e-4)


@pytest.mark.parametrize("name", ["jv", "iv", "kv", "hyp0f1", "hyp1f1", "hyp2f1", "gamma", "loggamma", "exp1"])
def test_complex_numbers_without_a_rule_keep_their_imaginary_part(name: str) -> None:
    z = pullback.tensor(GIVEN["z"], requires_grad=True)
    first = (0.5, 1.5, 2.5)[: UFUNCS[name].nin - 1]
    with pytest.raises(NotImplementedError, match=r"complex numbers has no derivative rule(.|\n)*\.real") as error:
        UFUNCS[name](*first, z)
    assert ".float()" not in str(error.value)
    assert UFUNCS[name](*first, z.detach().numpy()).dtype == np.complex128  # as the message advises


@pytest.mark.parametrize("name", ["psi", "ndtr", "gammaln", "j0", "betaln"])
def test_no_advice_loses_an_imaginary_part(name: str) -> None:
    z = pullback.tensor(GIVEN["z"], requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"take \.real, \.abs\(\) or \.angle\(\) first"):
        UFUNCS[name](*[z] * UFUNCS[name].nin)


def test_integers_are_float64_as_in_scipy() -> None:
    for f in (sp.gamma, sp.exp1, sp.cosm1, lambda x: sp.jv(2, x), lambda x: sp.beta(x, x)):
        found = f(pullback.tensor([1, 2]))
        assert found.dtype == pullback.float64
        np.testing.assert_allclose(found.numpy(), f(np.array([1, 2])), rtol=1e-14)


def test_the_sign_of_gamma_is_a_constant() -> None:
    found = sp.gammasgn(pullback.tensor([-0.5, 0.5, -1.5], requires_grad=True))
    assert found.tolist() == [-1.0, 1.0, 1.0]
    assert not found.requires_grad


def test_zeta_has_no_derivative_by_its_exponent() -> None:
    x = pullback.tensor(Y, requires_grad=True)
    np.testing.assert_allclose(sp.zeta(x).detach().numpy(), sp.zeta(Y))
    np.testing.assert_allclose(sp.zetac(x).detach().numpy(), sp.zetac(Y), rtol=1e-13)
    for found in (sp.zeta(x), sp.zetac(x), sp.zeta(x, 1.5)):
        with pytest.raises(NotImplementedError, match=r"derivative(.|\n)*detach"):
            found.sum().backward()


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("a", lambda t: sp.betainc(t, 2.0, 0.5)),
        ("b", lambda t: sp.betainc(2.0, t, 0.5)),
        ("v", lambda t: sp.jv(t, 0.5)),
        ("v", lambda t: sp.ive(t, 0.5)),
        ("n", lambda t: sp.eval_jacobi(t, 0.5, 0.5, 0.3)),
        ("df", lambda t: sp.stdtr(t, 0.5)),
    ],
)
def test_an_argument_without_a_derivative_is_refused_by_name(argument: str, call: Callable[..., Any]) -> None:
    t = pullback.tensor(Y, requires_grad=True)
    found = call(t)
    np.testing.assert_allclose(found.detach().numpy(), call(Y))
    with pytest.raises(NotImplementedError, match=rf"scipy\.special\.\w+\(\) by {argument} is not implemented"):
        found.sum().backward()


@pytest.mark.parametrize("name", UFUNCS)
def test_every_ufunc_has_a_rule_or_is_refused_with_the_reason(name: str) -> None:
    full = full_name(UFUNCS[name])
    assert full.startswith(("scipy.special.", "numpy."))
    has_rule = full in NUMPY or UFUNCS[name] in NUMPY or f"scipy.special.{name}" in NUMPY
    assert has_rule != (full in INSTEAD)
    if full in INSTEAD:
        t = pullback.tensor(X, requires_grad=True)
        why = rf"write pullback\.scipy\.special\.{name}, " if name in IN_SCIPY else r"\(its .*\)"
        reason = rf"^{re.escape(full)}\(\) has no derivative rule(.|\n)*{why}(.|\n)*detach"
        with pytest.raises(TypeError, match=reason):
            UFUNCS[name](*[t] * UFUNCS[name].nin)


def test_every_rule_is_among_these() -> None:
    entered = {key for key in NUMPY if isinstance(key, str)}
    tested = " ".join([*REAL, *COMPLEX, *ONE, *TWO])
    named = {f"scipy.special.{UFUNCS[n].__name__ if n in UFUNCS else n}" for n in re.findall(r"sp\.(\w+)", tested)}
    assert entered - named <= {"scipy.special.gammasgn", "scipy.special.zetac", *PRIVATE}  # tested above
