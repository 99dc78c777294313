"""`quad`, `quad_vec` and the integrals of samples: values are SciPy's; derivatives of every order, in every mode."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import pullback
from pullback import func
from pullback.autograd import gradcheck, gradgradcheck
from pullback.scipy import integrate
from pullback.scipy.integrate import quad, quad_vec

CHECKS = {"check_forward_ad": True, "check_batched_grad": True}
INF = np.inf


def t64(value: Any, grad: bool = True) -> Any:
    return pullback.tensor(value, dtype=pullback.float64, requires_grad=grad)


# quad -----------------------------------------------------------------------------------------------------------------


def wave(x: Any, k: Any, w: Any) -> Any:
    return np.exp(-k * x) * np.sin(w[0] * x) + w[1] * x


def bell(x: Any, k: Any, w: Any) -> Any:
    return np.exp(-k * x * x) * (w[0] + w[1] * x)


QUADS: dict[str, tuple[Callable[..., Any], Any, Any, dict[str, Any]]] = {
    "plain": (wave, 0.2, 1.7, {}),
    "turned": (wave, 1.7, 0.2, {}),
    "points": (wave, 0.2, 1.7, {"points": [0.5]}),
    "infinite above": (bell, 0.3, INF, {}),
    "infinite below": (bell, -INF, 0.4, {}),
    "infinite": (bell, -INF, INF, {}),
    "cos": (wave, 0.2, 1.7, {"weight": "cos", "wvar": 3.0}),
    "sin": (wave, 0.2, 1.7, {"weight": "sin", "wvar": 3.0}),
    "alg": (wave, 0.2, 1.7, {"weight": "alg", "wvar": (-0.5, 0.5)}),
}


@pytest.mark.parametrize("case", QUADS)
def test_quad(case: str) -> None:
    f, a, b, settings = QUADS[case]
    k, w = 0.8, [2.0, 0.3]
    ours = quad(f, a, b, args=(t64(k), t64(w)), **settings)
    theirs = scipy.integrate.quad(f, a, b, args=(k, w), **settings)
    np.testing.assert_allclose(ours[0].item(), theirs[0], rtol=1e-14)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)

    def value(a: Any, b: Any, k: Any, w: Any) -> Any:
        return quad(f, a, b, args=(k, w), epsabs=1e-11, epsrel=1e-11, **settings)[0]

    fixed = np.isfinite(a) and case != "alg", np.isfinite(b) and case != "alg"
    given = (t64(a, bool(fixed[0])), t64(b, bool(fixed[1])), t64(k), t64(w))
    if all(fixed):
        gradcheck(value, given, **CHECKS)
        if case in ("plain", "cos"):
            gradgradcheck(value, given)
    else:
        chosen = [x for x in given if x.requires_grad]

        def of_chosen(*xs: Any) -> Any:
            parts = iter(xs)
            return value(*[next(parts) if x.requires_grad else x for x in given])

        gradcheck(of_chosen, tuple(chosen), **CHECKS)


def test_modes_and_captured_tensors() -> None:
    k = t64(0.8)
    j = k * 2

    def value(k: Any) -> Any:
        return quad(lambda x, k: np.exp(-k * x * x), 0.0, k, args=(k,), epsabs=1e-12, epsrel=1e-12)[0]

    plain = k.detach()
    second = [
        func.hessian(value)(plain),
        func.grad(func.grad(value))(plain),
        func.grad(lambda k: func.jvp(value, (k,), (t64(1.0, False),))[1])(plain),
    ]
    np.testing.assert_allclose([s.item() for s in second], second[0].item(), rtol=1e-8)
    ks = t64([0.5, 0.8, 1.5], False)
    for f in (value, func.grad(value)):
        np.testing.assert_allclose(func.vmap(f)(ks).numpy(), [f(x).item() for x in ks], rtol=1e-10)

    def reads(x: Any) -> Any:
        return np.exp(-k * x) * j

    (g,) = pullback.autograd.grad(quad(reads, 0.0, 1.0)[0], k, create_graph=True)
    (h,) = pullback.autograd.grad(g, k)  # of 2 (1 - exp(-k))
    np.testing.assert_allclose([g.item(), h.item()], [2 * np.exp(-0.8), -2 * np.exp(-0.8)], rtol=1e-9)

    def read(k: Any) -> Any:
        j = k * 2
        return quad(lambda x: np.exp(-k * x) * j, 0.0, 1.0)[0]  # 2 (1 - exp(-k))

    one = t64(1.0, False)
    for f, expected in (
        (read, 2 - 2 * np.exp(-ks.numpy())),
        (func.grad(read), 2 * np.exp(-ks.numpy())),
        (func.hessian(read), -2 * np.exp(-ks.numpy())),
        (lambda k: func.jvp(func.grad(read), (k,), (one,))[1], -2 * np.exp(-ks.numpy())),
    ):
        np.testing.assert_allclose(func.vmap(f)(ks).numpy(), expected, rtol=1e-8)
        np.testing.assert_allclose(f(ks[1]).item(), expected[1], rtol=1e-8)


def test_complex_functions_and_full_output() -> None:
    def f(x: Any, w: Any) -> Any:
        return np.exp(w * x * 1j)

    w = t64(1.5)
    value, error, info = quad(f, 0.0, 1.0, args=(w,), complex_func=True, full_output=1)
    expected = scipy.integrate.quad(f, 0.0, 1.0, args=(1.5,), complex_func=True)
    np.testing.assert_allclose(value.item(), expected[0])
    assert (set(info), error) == ({"real", "imag"}, expected[1])
    gradcheck(lambda w: quad(f, 0.0, w, args=(w,), complex_func=True, epsrel=1e-11)[0], (w,))
    assert "neval" in quad(lambda x: x, 0, 1, full_output=1)[2]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: quad(lambda x: x, 0, 1, epsabs=t64(1.0)), TypeError, "epsabs is a setting"),
        (lambda: quad(lambda x: x, 0, 1, weight="cos", wvar=t64(1.0)), TypeError, "wvar is a setting"),
        (lambda: quad(lambda x: x, 0, 1, weight="none", wvar=1), ValueError, "not a recognized weighting"),
        (lambda: quad(lambda x: None, 0, 1), TypeError, "must return a value"),
        (lambda: quad(3, 0, 1), TypeError, "a function"),
        (
            lambda: quad(lambda x, k: k / x, 0, 1, args=(t64(1.0),)),
            RuntimeError,
            "(?s)maximum number|divergent|bad integrand",
        ),
        (
            lambda: quad(lambda x: x, t64(0.1), 1, weight="alg", wvar=(0, 0))[0].backward(),
            RuntimeError,
            "limits have no derivative",
        ),
    ],
    ids=range(7),
)
def test_bad_input_to_quad(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_an_integral_that_does_not_converge() -> None:
    with pytest.warns(scipy.integrate.IntegrationWarning):
        quad(lambda x: 1 / x, 0.0, 1.0)
    value, _ = quad(lambda x, k: k / x, 0.0, 1.0, args=(t64(1.0),), on_failure="nan")
    assert np.isnan(value.item())


def _rough(x: Any, k: Any) -> Any:
    return k / x


def _rough_pair(x: Any, k: Any) -> Any:
    return np.array([1.0, 2.0]) * k / x


@pytest.mark.parametrize("settings", [{}, {"full_output": 1}, {"full_output": 1, "complex_func": True}], ids=range(3))
def test_quad_says_why_there_is_no_gradient(settings: dict[str, Any]) -> None:
    said = r"quad did not converge, .*(divergent|maximum number of subdivisions)"
    with pytest.raises(RuntimeError, match=said):
        quad(_rough, 0.0, 1.0, args=(t64(1.0),), **settings)
    k = t64(1.0)
    value = quad(_rough, 0.0, 1.0, args=(k,), on_failure="nan", **settings)[0]
    value.real.backward()
    assert np.isnan([value.real.item(), k.grad.item()]).all()


def test_quad_vec_says_why_there_is_no_gradient() -> None:
    with pytest.raises(RuntimeError, match=r"quad_vec did not converge, .*Target precision not reached"):
        quad_vec(_rough_pair, 0.0, 1.0, args=(t64(1.0),), limit=30)
    k = t64(1.0)
    value, _ = quad_vec(_rough_pair, 0.0, 1.0, args=(k,), limit=30, on_failure="nan")
    value.sum().backward()
    assert np.isnan([*value.detach().numpy(), k.grad.item()]).all()
    plain = quad_vec(_rough_pair, 0.0, 1.0, args=(1.0,), limit=30, full_output=True)[2]
    assert not plain.success
    odd, _ = quad_vec(lambda x, k: k * x**3 * np.array([1.0, -1.0]), -1.0, 1.0, args=(k,))  # 0, but for rounding
    np.testing.assert_allclose(odd.detach().numpy(), 0.0, atol=1e-15)


@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
def test_an_integral_whose_derivative_does_not_converge(shape: tuple[int, ...]) -> None:
    def root_of(x: Any, k: Any) -> Any:  # 1 at k = 1, with the slope 1 / x
        return 1 + np.log(k).sum() / x

    k = t64(np.ones(shape))
    value, _ = quad(root_of, 0.0, 1.0, args=(k,))
    with pytest.raises(RuntimeError, match="quad: the integral of a derivative did not converge"):
        value.backward()
    quad(root_of, 0.0, 1.0, args=(k,), on_failure="nan")[0].backward()
    assert np.isnan(k.grad.numpy()).all()


@pytest.mark.parametrize("limits", [(0.1, 1.3), (0.1, INF)], ids=str)
def test_quad_vec(limits: tuple[float, float]) -> None:
    def f(x: Any, k: Any) -> Any:
        return np.exp(-k * x) * np.array([[1.0], [2.0]]) * x

    k = t64([0.7, 1.1])
    ours, error = quad_vec(f, *limits, args=(k,))
    theirs = scipy.integrate.quad_vec(lambda x: f(x, np.array([0.7, 1.1])), *limits)
    np.testing.assert_allclose(ours.detach().numpy(), theirs[0], rtol=1e-12)
    assert ours.shape == (2, 2)
    assert error > 0
    if limits[1] < INF:
        given = (t64(limits[0]), t64(limits[1]), k)
        gradcheck(lambda a, b, k: quad_vec(f, a, b, args=(k,), epsrel=1e-11)[0], given, **CHECKS)
        gradgradcheck(lambda a, b, k: quad_vec(f, a, b, args=(k,), epsrel=1e-11)[0], given)
    else:
        gradcheck(lambda a, k: quad_vec(f, a, INF, args=(k,), epsrel=1e-11)[0], (t64(0.1), k), **CHECKS)
    np.testing.assert_allclose(
        func.vmap(lambda k: quad_vec(f, *limits, args=(k,))[0])(t64([[0.7, 1.1], [0.2, 0.4]], False))[0].numpy(),
        theirs[0],
    )
    assert quad_vec(f, 0, 1, args=(k,), full_output=True)[2].success


# Samples --------------------------------------------------------------------------------------------------------------

NAMES = ["trapezoid", "simpson", "cumulative_trapezoid", "cumulative_simpson"]
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [2, 3, 4, 7])
@pytest.mark.parametrize("spacing", ["dx", "x", "x of each"])
@pytest.mark.parametrize("axis", [0, -1])
def test_integrals_of_samples(name: str, size: int, spacing: str, axis: int) -> None:
    y = RNG.standard_normal((size, 2) if axis == 0 else (2, size))
    x = np.cumsum(RNG.uniform(0.2, 1.0, y.shape), axis=axis)
    given: dict[str, Any] = {"axis": axis}
    if name.startswith("cumulative"):
        given["initial"] = 0
    key, grid = ("dx", np.array(0.3)) if spacing == "dx" else ("x", x if spacing != "x" else np.take(x, 0, 1 + axis))
    if spacing == "x":
        grid = np.sort(RNG.uniform(0, 3, size))
    ours, theirs = getattr(integrate, name), getattr(scipy.integrate, name)
    expected = theirs(y, **{key: grid}, **given)
    np.testing.assert_array_equal(ours(t64(y), **{key: grid}, **given).detach().numpy(), expected)

    def value(y: Any, grid: Any) -> Any:
        return ours(y, **{key: grid}, **given)

    gradcheck(value, (t64(y), t64(grid)), **CHECKS)
    gradgradcheck(value, (t64(y), t64(grid)))
    batch = np.stack([y, 2 * y + 1])
    found = func.vmap(lambda y: value(y, t64(grid, False)))(t64(batch, False))
    np.testing.assert_allclose(found[1].numpy(), theirs(batch[1], **{key: grid}, **given))

    def square(g: Any) -> Any:
        return (value(t64(y, False), g) ** 2).sum()

    at, ones = t64(grid, False), t64(np.ones(np.shape(grid)), False)
    mixed = func.jvp(func.grad(square), (at,), (ones,))[1]
    turned = func.grad(lambda g: func.jvp(square, (g,), (ones,))[1])(at)
    np.testing.assert_allclose(mixed.numpy(), turned.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.complex128])
@pytest.mark.parametrize("size", [3, 4])
def test_dtypes_of_samples(name: str, dtype: Any, size: int) -> None:
    y = np.arange(size).astype(dtype)
    ours, theirs = getattr(integrate, name)(pullback.from_numpy(y.copy())), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(scipy.integrate, name)(y if dtype not in (np.bool_, np.int64) else y.astype(np.float64))
    assert ours.numpy().dtype == theirs.dtype
    np.testing.assert_array_equal(ours.numpy(), theirs)
    if np.issubdtype(dtype, np.inexact):
        t = pullback.from_numpy(y.copy()).requires_grad_()
        (getattr(integrate, name)(t) * 1).sum().abs().backward()
        assert t.grad.dtype == t.dtype


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("simpson", ([1.0, 2.0],), {"x": [1.0, 2.0, 3.0]}),
        ("cumulative_trapezoid", ([1.0, 2.0],), {"x": [1.0, 2.0, 3.0]}),
        ("cumulative_trapezoid", ([1.0, 2.0],), {"initial": 3}),
        ("cumulative_trapezoid", ([],), {}),
        ("cumulative_simpson", ([1.0, 2.0, 3.0],), {"x": [1.0, 2.0, 2.0]}),
        ("cumulative_simpson", ([1.0, 2.0, 3.0],), {"x": [1.0, 2.0]}),
        ("trapezoid", ([1.0, 2.0, 3.0],), {"x": [1.0, 2.0, 3.0, 4.0]}),
    ],
)
def test_scipys_errors_come_through(name: str, args: Any, kwargs: Any) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        getattr(scipy.integrate, name)(*map(np.array, args), **kwargs)
    with pytest.raises(type(theirs.value)) as ours:
        getattr(integrate, name)(*map(t64, args), **kwargs)
    assert str(theirs.value) == str(ours.value)


def test_lists_of_tensors() -> None:
    a = t64(2.0)
    integrate.simpson([a, 1.0, a * a], x=[0.0, 1.0, a]).backward()
    (expected,) = pullback.autograd.grad(
        integrate.simpson(np.stack([a, t64(1.0), a * a]), x=np.stack([t64(0.0), t64(1.0), a])), a
    )
    np.testing.assert_allclose(a.grad.item(), expected.item())
