"""Every public name of scipy.special: differentiable in these arguments, a constant, or refused with the reason."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import pullback.scipy.special
from pullback.autograd import grad, gradcheck, gradgradcheck
from pullback.ops.numpy.scipy_special import IN_SCIPY, WITH_PARAMETERS
from pullback.scipy.mirror import HANDED_ON, MIRRORS, REFUSED
from pullback.scipy.special import handed_on

from .grid_checks import OfTensors

special: Any = OfTensors(pullback.scipy.special)

LOW, HIGH, WHOLE, MORE = [0.31, 0.83, 0.57], [1.21, 1.83, 1.47], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
ARGUMENTS: dict[int, list[list[Any]]] = {
    1: [[LOW], [HIGH], [[-1.31, -0.83, -0.57]]],
    2: [[WHOLE, LOW], [HIGH, LOW], [WHOLE, HIGH], [[1, 2, 3], LOW]],
    3: [[WHOLE, MORE, LOW], [MORE, HIGH, LOW], [HIGH, WHOLE, HIGH], [LOW, HIGH, MORE], [LOW, [0.6, 0.7, 0.8], HIGH]],
    4: [[[3.0, 2.0, 1.0], HIGH, LOW, LOW], [[3.0, 2.0, 1.0], MORE, HIGH, LOW]],
}
STEPS = {"round", "gammasgn", "pdtr", "pdtrc", "bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri"}


def tensor(value: Any) -> pullback.Tensor:
    return pullback.tensor(np.asarray(value, float))


MADE_OF_GAMMA = set("gammainc gammaincc chdtr chdtrc chdtri gdtr gdtrc pdtr pdtrc".split())
WHOLE_COUNTS: dict[str, list[list[Any]]] = {name: [[[1, 2, 3], [4, 5, 6], LOW]] for name in ("bdtr", "bdtrc", "bdtri")}


def usable(name: str) -> list[list[Any]]:
    """Arguments at which SciPy gives numbers."""
    ufunc, found = getattr(sp, name), []
    for arguments in WHOLE_COUNTS.get(name, ARGUMENTS[ufunc.nin]):
        try:
            with np.errstate(all="ignore"):
                value = ufunc(*map(np.asarray, arguments))
        except (TypeError, SystemError):  # a degree or a count that is not whole
            continue
        if np.isfinite(value).all():
            found.append(arguments)
    return found


def test_every_public_name_is_here_or_refused() -> None:
    handed = set(special._SETTINGS.split())
    left = [n for n in sp.__all__ if n not in special.__all__ and n not in handed and f"special.{n}" not in REFUSED]
    assert not left
    own = {*special.__all__} - {*HANDED_ON["special"]}
    assert not [n for n in own if n not in sp.__all__ or f"special.{n}" in REFUSED]
    assert not [n for n in own if f"special.{n}" not in MIRRORS and n not in handed_on.CONSTANTS]


@pytest.mark.parametrize("name", handed_on.UFUNCS)
def test_a_ufunc_is_differentiable_or_says_that_it_is_not(name: str) -> None:
    function, ufunc = getattr(special, name), getattr(sp, name)
    cases = usable(name)
    assert cases, "no arguments of the test fit"
    lacking = handed_on.WITHOUT.get(name, "")
    for arguments in cases:
        with np.errstate(all="ignore"):
            expected = ufunc(*map(np.asarray, arguments))
        np.testing.assert_allclose(function(*map(tensor, arguments)).numpy(), expected, rtol=1e-11, atol=1e-14)
        for i in range(ufunc.nin):
            given = [tensor(a) for a in arguments]
            x = given[i].clone().requires_grad_()

            def of_one(t: Any, i: int = i, given: Any = given) -> Any:
                return function(*given[:i], t, *given[i + 1 :])

            try:
                (slope,) = grad(of_one(x).sum(), x, allow_unused=True)
            except (NotImplementedError, RuntimeError) as error:
                assert lacking or name in ("wofz", "gammasgn"), str(error)  # noqa: PT017
                continue
            if name in STEPS and i < ufunc.nin - (ufunc.nin > 1):
                assert slope is None or not slope.numpy().any()
                continue
            assert gradcheck(of_one, [x], check_forward_ad=True)
            assert gradgradcheck(of_one, [x])


@pytest.mark.parametrize("name", handed_on.UFUNCS)
def test_what_scipys_own_name_lacks_is_said_to_be_here(name: str) -> None:
    """A derivative that this package has, and ``scipy.special.X(t)`` has not, is told of where it is refused."""
    ufunc, told = getattr(sp, name), set()
    arguments = usable(name)[0]
    for i in range(ufunc.nin):

        def slope(function: Any, i: int = i) -> Any:
            given = [tensor(a) for a in arguments]
            x = given[i].requires_grad_()
            return grad(function(*given).sum(), x, allow_unused=True)[0]

        try:
            slope(getattr(special, name))
        except (NotImplementedError, RuntimeError):
            continue
        try:
            slope(ufunc)
        except (NotImplementedError, TypeError) as error:
            named = re.findall(r"pullback\.scipy\.special\.(\w+)(?: \(or ([\w, ]+) there\))?, which has", str(error))
            assert name in re.findall(r"\w+", str(named)), str(error)  # noqa: PT017
            told.add(i)
    assert bool(told) == (name in {*IN_SCIPY, *WITH_PARAMETERS} | MADE_OF_GAMMA)


LOGITS, FACTORS = np.array([[0.3, -1.2, 2.0], [0.0, 0.5, -0.5]]), np.array([[1.0, 0.5, -0.2], [2.0, 1.0, 0.3]])
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "logsumexp": (LOGITS,), "softmax": (LOGITS,), "log_softmax": (LOGITS,), "softplus": (LOGITS,), "sinc": (LOW,),
    "zeta": (HIGH,), "zetac": (HIGH,), "factorial": (HIGH,), "comb": (MORE, HIGH), "perm": (MORE, HIGH),
}  # fmt: skip
SET_FIRST: dict[str, tuple[Any, Any]] = {
    "polygamma": (2, HIGH), "jvp": (1.5, HIGH), "yvp": (1.5, HIGH), "ivp": (1.5, HIGH), "kvp": (1.5, HIGH),
    "spherical_jn": ([0, 1, 3], HIGH), "spherical_yn": ([0, 1, 3], HIGH), "spherical_in": ([0, 1, 3], HIGH),
    "spherical_kn": ([0, 1, 3], HIGH),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_composition(name: str) -> None:
    function, arguments = getattr(special, name), FUNCTIONS[name]
    with np.errstate(all="ignore"):
        expected = getattr(sp, name)(*map(np.asarray, arguments))
    np.testing.assert_allclose(function(*map(tensor, arguments)).numpy(), expected, rtol=1e-12)
    leaves = [tensor(a).requires_grad_() for a in arguments]
    assert gradcheck(function, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, leaves)
    whole = function(*[t.detach() for t in leaves], axis=-1) if "soft" in name and name != "softplus" else None
    if whole is not None:
        each = pullback.vmap(function)(*[t.detach() for t in leaves])
        np.testing.assert_allclose(each.numpy(), whole.numpy(), rtol=1e-14)


@pytest.mark.parametrize("name", SET_FIRST)
def test_a_function_of_an_order(name: str) -> None:
    function, (order, x) = getattr(special, name), SET_FIRST[name]
    np.testing.assert_allclose(function(order, x).numpy(), getattr(sp, name)(order, np.asarray(x)), rtol=1e-12)
    if name.startswith("spherical"):
        wanted = getattr(sp, name)(order, np.asarray(x), derivative=True)
        np.testing.assert_allclose(function(order, x, derivative=True).numpy(), wanted, rtol=1e-12)
    elif name != "polygamma":
        np.testing.assert_allclose(
            function(order, x, 3).numpy(), getattr(sp, name)(order, np.asarray(x), 3), rtol=1e-12
        )
    leaves = [tensor(x).requires_grad_()]
    assert gradcheck(lambda t: function(order, t), leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(lambda t: function(order, t), leaves)


@pytest.mark.parametrize("name", [n for n in (*FUNCTIONS, *SET_FIRST, "multigammaln") if n != "zetac"])
def test_signatures_of_functions(name: str) -> None:
    """zetac: SciPy's takes what every ufunc does."""
    ours, theirs = (list(inspect.signature(getattr(m, name)).parameters) for m in (special, sp))
    assert ours == theirs


def test_logsumexp() -> None:
    for settings in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}, {"axis": (0, 1)}):
        found = special.logsumexp(LOGITS, b=np.abs(FACTORS), **settings).numpy()
        np.testing.assert_allclose(found, sp.logsumexp(LOGITS, b=np.abs(FACTORS), **settings), rtol=1e-13)
    found, sign = special.logsumexp(LOGITS, axis=1, b=-FACTORS, return_sign=True)
    expected, other = sp.logsumexp(LOGITS, axis=1, b=-FACTORS, return_sign=True)
    np.testing.assert_allclose(found.numpy(), expected)
    assert sign.tolist() == other.tolist()
    leaves = [tensor(LOGITS).requires_grad_(), tensor(FACTORS).requires_grad_()]
    assert gradcheck(lambda a, b: special.logsumexp(a, 1, b, return_sign=True)[0], leaves, check_forward_ad=True)
    assert gradgradcheck(lambda a, b: special.logsumexp(a, 1, b, return_sign=True)[0], leaves)
    large = tensor([1000.0, 1000.0, -np.inf]).requires_grad_()
    value = special.logsumexp(large)
    assert value.item() == pytest.approx(1000 + np.log(2))
    assert grad(value, large)[0].tolist() == [0.5, 0.5, 0.0]
    for extreme in (-np.inf, np.inf):
        x = tensor([extreme, extreme]).requires_grad_()
        value = special.logsumexp(x)
        assert value.item() == extreme
        assert grad(value, x)[0].tolist() == [0.0, 0.0]
    assert special.logsumexp([]).item() == -np.inf
    assert special.logsumexp([1, 2]).dtype == pullback.float64
    with pytest.raises(TypeError, match="real numbers"):
        special.logsumexp(pullback.tensor([1j]))


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"])
def test_spherical_bessel_functions_of_complex_numbers(name: str) -> None:
    z = pullback.tensor([1.5 + 0.4j, 0.7 - 1.1j], dtype=pullback.complex128, requires_grad=True)
    assert gradcheck(lambda z: getattr(special, name)([1, 2], z), [z], check_forward_ad=True)
    assert gradgradcheck(lambda z: getattr(special, name)([1, 2], z), [z])
    x = pullback.tensor([1.5, 0.7], dtype=pullback.float64, requires_grad=True)
    assert gradcheck(lambda x: getattr(special, name)(1, x) * (2 + 1j), [x])


@pytest.mark.parametrize(
    ("N", "k"),
    [(0, 0), (3, 0), (0.4, 0), (0.4, 0.7), (3, 2), (2, 5), (0, 2), (-2.5, 3), (-1, 0), (4, -1), ([0, 3], [0, 2])],
)
def test_comb_with_repetition_is_scipys(N: Any, k: Any) -> None:
    found = special.comb(tensor(N), k, repetition=True).numpy()
    np.testing.assert_allclose(found, sp.comb(N, k, repetition=True), rtol=1e-13)
    x = tensor([0.4, 3.0]).requires_grad_()
    assert gradcheck(lambda n: special.comb(n, np.array([0.7, 2.0]), repetition=True), [x])


def test_multigammaln() -> None:
    a = tensor(HIGH).requires_grad_()
    np.testing.assert_allclose(special.multigammaln(a, 3).detach().numpy(), sp.multigammaln(np.asarray(HIGH), 3))
    assert gradcheck(lambda t: special.multigammaln(t, 3), [a], check_forward_ad=True)
    for bad in ((LOW, 3), (HIGH, 1.5)):
        with pytest.raises(ValueError) as theirs:  # noqa: PT011
            sp.multigammaln(np.asarray(bad[0]), bad[1])
        with pytest.raises(ValueError) as ours:  # noqa: PT011
            special.multigammaln(bad[0], bad[1])
        assert str(ours.value)[:20] == str(theirs.value)[:20]


def test_constants_and_settings() -> None:
    nodes, weights = special.roots_legendre(4)
    assert nodes.tolist() == sp.roots_legendre(4)[0].tolist()
    assert weights.sum() == pytest.approx(2)
    assert special.comb(5, 2, exact=True) == 10
    assert special.factorial(5, exact=True) == 120
    assert pullback.scipy.special.errstate is sp.errstate
    x = tensor(0.5).requires_grad_()
    with pytest.raises(TypeError, match=r"roots_jacobi: argument 1 is a setting of the solver, and has no derivative"):
        special.roots_jacobi(3, x, 0.5)
    with pytest.raises(TypeError, match="n is a setting"):
        special.polygamma(x, 1.0)
    poly = special.legendre(3)
    assert gradcheck(poly, [x])


def test_refusals_and_bad_input() -> None:
    with pytest.raises(AttributeError, match=r"special\.airy has no derivative: its results are several"):
        special.airy  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        special.nothing  # noqa: B018
    with pytest.raises(TypeError, match=r"expected 2 arguments, and no out=.*found 1"):
        special.gammainc(tensor(1.0))
    with pytest.raises(TypeError, match="out="):
        special.gammainc(tensor(1.0), 2.0, out=np.zeros(()))
    assert special.gammainc(2, 1).dtype == pullback.float64
    assert special.expit(pullback.tensor([0.5])).dtype == pullback.float32
    assert special.gammainc(pullback.tensor([2.0]), pullback.tensor([0.5])).dtype == pullback.float32
    x = tensor(0.5).requires_grad_()
    with pytest.raises(NotImplementedError, match="jv"):
        special.jv(x, 1.0).backward()
    with pytest.raises(ValueError, match="non-negative integer"):
        special.jvp(1, 1.0, -1)
    with pytest.raises(ValueError, match="non-negative integer"):
        special.spherical_jn(-1, tensor(1.0))
    with pytest.raises(ValueError, match="broadcast"):
        special.gammainc([1.0, 2.0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("name", ["zeta", "zetac"])
def test_the_zeta_function_has_a_derivative_on_both_sides_of_its_pole(name: str) -> None:
    f = getattr(special, name)
    x = pullback.tensor([-7.3, -3.1, -0.9, 0.3, 0.8, 1.3, 4.0], dtype=pullback.float64, requires_grad=True)
    assert gradcheck(f, x)
    assert gradgradcheck(f, x)
    np.testing.assert_array_equal(pullback.vmap(f)(x.detach()).numpy(), f(x).detach().numpy())
    np.testing.assert_array_equal(pullback.compile(f)(x.detach()).numpy(), f(x).detach().numpy())


@pytest.mark.parametrize("name", ["ellipkinc", "ellipeinc"])
def test_incomplete_elliptic_integrals_by_both_arguments(name: str) -> None:
    f = getattr(special, name)
    phi = pullback.tensor([0.3, 1.1, 0.7, -0.4], dtype=pullback.float64, requires_grad=True)
    m = pullback.tensor([0.2, 0.7, -0.5, 0.05], dtype=pullback.float64, requires_grad=True)
    assert gradcheck(f, (phi, m))
    assert gradgradcheck(f, (phi, m))
    zero = pullback.zeros(1, dtype=pullback.float64, requires_grad=True)
    slope = pullback.autograd.grad(f(phi.detach()[:1], zero).sum(), zero)[0].item()
    at = getattr(sp, name)
    np.testing.assert_allclose(slope, (at(0.3, 1e-5) - at(0.3, -1e-5)) / 2e-5, rtol=1e-6)
