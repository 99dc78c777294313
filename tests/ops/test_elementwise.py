"""Elementwise operations where the samples of their entries do not reach: derivatives of high order, extreme values,
names, `out=`, and special functions with and without SciPy.
"""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
from pullback.autograd import grad
from pullback.ops import TABLE
from pullback.table.samples import A, Array, S
from tests.oracle import call, converted, resolve


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def derivatives(function: Callable[[Any], Any], at: float, count: int) -> list[float]:
    """The function at a point, and its derivatives by `count` recorded backward passes."""
    x = pullback.tensor(at, dtype=pullback.float64, requires_grad=True)
    found = [function(x)]
    for _ in range(count):
        if not found[-1].requires_grad:
            found.append(pullback.zeros(()))
            continue
        (g,) = pullback.autograd.grad(found[-1], x, create_graph=True)
        found.append(g)
    return [f.item() for f in found]


# Derivatives of high order at 0, where a quotient by x would be 0 / 0 -------------------------------------------------

_SINC = [1, 0, -(math.pi**2) / 3, 0, math.pi**4 / 5, 0, -(math.pi**6) / 7]
_AT_ZERO = {
    "sinc": _SINC,
    "special.spherical_bessel_j0": [1, 0, -1 / 3, 0, 1 / 5, 0, -1 / 7],
    "special.bessel_j0": [1, 0, -1 / 2, 0, 3 / 8, 0, -5 / 16],
    "special.bessel_j1": [0, 1 / 2, 0, -3 / 8, 0, 5 / 16, 0],
    "i0": [1, 0, 1 / 2, 0, 3 / 8, 0, 5 / 16],
    "special.i1": [0, 1 / 2, 0, 3 / 8, 0, 5 / 16, 0],
    "special.entr": [0, math.inf],
    "expm1": [0, 1, 1, 1],
    "erf": [0, 2 / math.sqrt(math.pi), 0, -4 / math.sqrt(math.pi)],
}


@pytest.mark.parametrize("name", _AT_ZERO)
def test_derivatives_at_zero(name: str) -> None:
    expected = _AT_ZERO[name]
    assert derivatives(resolve(pullback, name), 0.0, len(expected) - 1) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", range(5))
def test_the_slope_of_sinc_near_zero_is_exact(n: int) -> None:
    x = 10.0**-n
    expected = (math.pi * x * math.cos(math.pi * x) - math.sin(math.pi * x)) / (math.pi * x * x)
    series = -(math.pi**2) * x / 3 + math.pi**4 * x**3 / 30 - math.pi**6 * x**5 / 840
    found = derivatives(pullback.sinc, x, 1)[1]
    assert found == pytest.approx(expected if n == 0 else series, rel=2e-4 if n == 1 else 1e-10)


@pytest.mark.parametrize("family", ["j", "y", "i", "k", "i scaled", "k scaled", "spherical"])
@pytest.mark.parametrize("n", range(5))
def test_bessel_functions_of_every_order_are_scipys(family: str, n: int) -> None:
    x = np.array([0.2, 0.9, 1.5, 2.99, 3.01, 4.7, 12.0])
    names = {
        "j": "jv",
        "y": "yv",
        "i": "iv",
        "k": "kv",
        "i scaled": "ive",
        "k scaled": "kve",
        "spherical": "spherical_jn",
    }
    expected = getattr(scipy.special, names[family])(n, x)
    bessel = TABLE["_bessel"].call
    np.testing.assert_allclose(bessel(pullback.tensor(x), family, n).numpy(), expected, rtol=2e-12, atol=1e-13)


# Extreme values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_sigmoid_and_tanh_saturate(dtype: str) -> None:
    x = pullback.tensor([-1e4, -30.0, 30.0, 1e4], dtype=getattr(pullback, dtype), requires_grad=True)
    for function, low in ((pullback.sigmoid, 0.0), (pullback.tanh, -1.0)):
        y = function(x)
        np.testing.assert_allclose(y.detach().numpy(), [low, low, 1, 1], atol=1e-6)
        (g,) = pullback.autograd.grad(y.sum().real, x)
        np.testing.assert_allclose(g.numpy(), 0, atol=1e-6)


def test_sigmoid_of_half_precision_does_not_vanish_early() -> None:
    assert pullback.sigmoid(pullback.tensor([-14.0], dtype=pullback.float16)).item() == pytest.approx(8.3e-7, rel=0.1)


def test_a_line_between_two_points_ends_in_them() -> None:
    rng = np.random.default_rng(0)
    start, end = (pullback.tensor(rng.uniform(-1, 1, 1000)) for _ in range(2))
    for weight in (0.0, 1.0):
        expected = end if weight else start
        for w in (weight, pullback.full((1000,), weight, dtype=pullback.float64)):
            assert pullback.equal(pullback.lerp(start, end, w), expected)


def test_ldexp_overflows_only_if_its_result_does() -> None:
    x = pullback.tensor([1e-300, 1.0, 1e300], dtype=pullback.float64)
    n = pullback.tensor([1030, -1000, -1080])
    np.testing.assert_array_equal(pullback.ldexp(x, n).numpy(), np.ldexp(x.numpy(), n.numpy()))


def test_the_logarithm_of_a_sum_of_far_exponentials() -> None:
    far = pullback.tensor([1e4, -1e4, 0.0], dtype=pullback.float64, requires_grad=True)
    near = pullback.tensor([0.0, -1e4, -1e4], dtype=pullback.float64, requires_grad=True)
    for function in (pullback.logaddexp, pullback.logaddexp2):
        first, second = pullback.autograd.grad(function(far, near).sum(), [far, near], create_graph=True)
        assert (first.tolist(), second.tolist()) == ([1.0, 0.5, 1.0], [0.0, 0.5, 0.0])
        (again,) = pullback.autograd.grad(first.sum(), far)
        assert np.isfinite(again.numpy()).all()


def test_what_stands_at_a_step_gets_the_gradient() -> None:
    x = pullback.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    values = pullback.tensor([0.3, 0.4, 0.5], requires_grad=True)
    y = pullback.heaviside(x, values)
    assert y.tolist() == pytest.approx([0.0, 0.4, 1.0])
    assert [g.tolist() for g in pullback.autograd.grad(y.sum(), [x, values])] == [[0, 0, 0], [0, 1, 0]]


def test_a_masked_operand_made_safe_has_no_nan_in_any_order() -> None:
    def safe(x: Any) -> Any:
        return pullback.where(x > 0, pullback.sqrt(pullback.where(x > 0, x, 1)), 0)

    assert derivatives(safe, 0.0, 2) == [0.0, 0.0, 0.0]
    assert derivatives(safe, 4.0, 2) == pytest.approx([2.0, 0.25, -1 / 32])


def test_powers_of_and_by_zero() -> None:
    base = pullback.tensor([0.0, 0.0, 0.0, 2.0, 2.0], dtype=pullback.float64, requires_grad=True)
    n = pullback.tensor([0.0, 1.0, 2.0, 0.0, 3.0], dtype=pullback.float64, requires_grad=True)
    by_base, by_exponent = pullback.autograd.grad((base**n).sum(), [base, n], create_graph=True)
    assert by_base.tolist() == [0.0, 1.0, 0.0, 0.0, 12.0]
    assert by_exponent.tolist() == pytest.approx([0.0, 0.0, 0.0, math.log(2), 8 * math.log(2)])
    mixed, twice = pullback.autograd.grad(by_exponent.sum(), [base, n])
    assert mixed.tolist()[3:] == pytest.approx([0.5, 12 * math.log(2) + 4])
    assert np.isfinite(twice.numpy()).all()


def test_second_derivatives_where_a_product_with_a_logarithm_is_zero() -> None:
    for function, edge in ((pullback.xlogy, 0.0), (pullback.special.xlog1py, -1.0)):
        x = pullback.tensor([0.0, 0.0], dtype=pullback.float64, requires_grad=True)
        y = pullback.tensor([edge, edge + 2], dtype=pullback.float64, requires_grad=True)
        (by_x,) = pullback.autograd.grad(function(x, y).sum(), x, create_graph=True)
        assert by_x.tolist() == [0.0, math.log(2)]
        assert pullback.autograd.grad(by_x.sum(), y)[0].tolist() == [0.0, 0.5]


# Names, out= and twins ------------------------------------------------------------------------------------------------

_FAMILIES = "arithmetic powers bessel limits comparison complex analysis rounding gamma".split()
_OF_I = "special.i0e special.i1 special.i1e".split()  # Bessel functions, too, which one description enters
_ENTRIES = {
    value.op.name: value.op
    for family in _FAMILIES
    for value in vars(sys.modules[f"pullback.ops.elementwise.{family}"]).values()
    if hasattr(value, "op") and not value.op.name.rpartition(".")[2].startswith("_")
} | {name: op for name, op in TABLE.items() if name in _OF_I or (name.startswith("special.") and "bessel" in name)}


@pytest.mark.torch
@pytest.mark.parametrize("name", _ENTRIES)
def test_an_entry_is_where_torch_has_it(torch: ModuleType, name: str) -> None:
    assert len(_ENTRIES) > 138
    for path in (name, *_ENTRIES[name].about.also.split()):
        home, _, last = path.rpartition(".")
        for lib in (pullback, torch):
            assert callable(resolve(lib, path)), path
        if not home:
            for method in (last, f"{last}_"):
                assert hasattr(pullback.Tensor, method) == hasattr(torch.Tensor, method), method
            assert hasattr(pullback, f"{last}_") or not hasattr(torch, f"{last}_")


@pytest.mark.torch
@pytest.mark.parametrize("name", _ENTRIES)
def test_out_takes_the_result_where_torch_has_it(torch: ModuleType, name: str) -> None:
    samples = [s for s in _ENTRIES[name].domain("samples") if any(isinstance(a, Array) and a.shape for a in s.args)]
    sample = next(s for s in samples if all(not isinstance(a, Array) or 0 not in a.shape for a in s.args))
    for dtype in ("float64", "int64"):
        found = []
        for lib in (pullback, torch):
            s, _ = converted(lib, sample.arrays(dtype))
            function = resolve(lib, name)
            result = call(lib, function, *s.args, **s.kwargs)
            if isinstance(result, Exception) or not hasattr(result, "dtype"):
                break
            out = lib.zeros_like(result)
            returned = call(lib, lambda f=function, s=s, out=out: f(*s.args, **s.kwargs, out=out))
            found.append(returned is out and np.array_equal(np.asarray(out), np.asarray(result), equal_nan=True))
        if len(found) == 2 and found[1]:
            assert found[0]


def test_a_number_stands_for_either_of_two_tensors() -> None:
    x = pullback.tensor([-1.0, 3.0])
    for name in "maximum minimum fmax fmin atan2 hypot copysign logaddexp fmod nextafter special.xlog1py".split():
        function = resolve(pullback, name)
        for number, tensor in ((2.0, pullback.tensor(2.0)), (0.5, pullback.tensor(0.5))):
            for mixed, expected in (
                (function(x, number), function(x, tensor)),
                (function(number, x), function(tensor, x)),
            ):
                np.testing.assert_allclose(mixed.numpy(), expected.numpy(), rtol=1e-6)


def test_a_twin_is_a_method_and_a_function() -> None:
    x, y = pullback.ones(2), pullback.tensor([1.0, 2.0])
    assert pullback.add_(x, y) is x
    assert pullback.square_(x) is x
    assert x.arcsinh_() is x
    np.testing.assert_allclose(x.numpy(), np.arcsinh([4.0, 9.0]), rtol=1e-6)


# Special functions and SciPy ------------------------------------------------------------------------------------------


def test_importing_the_package_does_not_import_scipy() -> None:
    code = "import sys, pullback; pullback.special.xlogy(*[pullback.ones(2)] * 2); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["erf", "lgamma", "i0", "special.airy_ai", "special.bessel_j0", "polygamma"])
def test_without_scipy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    x = pullback.ones(2)
    with pytest.raises(ImportError, match=r"pip install 'pullback\[scipy\]'"):
        resolve(pullback, name)(*((1, x) if name == "polygamma" else (x,)))


def test_a_function_of_scipy_that_has_no_rule_is_refused_by_name() -> None:
    x = pullback.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=r"scipy\.special\.bdtr\(\) has no derivative rule"):
        scipy.special.bdtr(x, x, x)
    assert isinstance(scipy.special.struve(2.0, x.detach()), np.ndarray)


def test_arguments_of_a_ufunc_that_have_no_meaning_are_refused() -> None:
    x = pullback.ones(2)
    for name, value in {"where": np.array([True, False]), "dtype": np.float32, "casting": "no", "order": "C"}.items():
        for ufunc, operands in ((np.sin, (x,)), (np.add, (x, x)), (scipy.special.erf, (x,))):
            with pytest.raises(TypeError, match=rf"{ufunc.__name__}\(\): the argument {name}= (.|\n)*What to do"):
                ufunc(*operands, **{name: value})


def test_no_derivative_by_the_first_argument_is_an_error_not_zero() -> None:
    a, x = (pullback.full((2,), 2.0, requires_grad=True) for _ in range(2))
    for function in (pullback.igamma, pullback.igammac, pullback.special.zeta):
        with pytest.raises(NotImplementedError, match=r"the derivative for .* is not implemented(.|\n)*detach\(\)"):
            function(a, x).sum().backward()
        with (
            pullback.autograd.forward_ad.dual_level(),
            pytest.raises(NotImplementedError, match=r"Trying to use forward AD with .* that does not support it"),
        ):
            function(pullback.autograd.forward_ad.make_dual(a.detach(), x.detach()), x)
        assert np.isfinite(pullback.autograd.grad(function(a.detach(), x).sum(), x)[0].numpy()).all()


# Complex numbers ------------------------------------------------------------------------------------------------------


def test_parts_are_views_that_can_be_assigned() -> None:
    z = pullback.tensor([1 + 2j, 3 - 1j])
    z.real = pullback.tensor([5.0, 6.0])
    z.imag *= 2
    pullback.view_as_real(z)[0, 0] = 7.0
    assert z.tolist() == [7 + 4j, 6 - 2j]
    pairs = pullback.ones(3, 2)
    pullback.view_as_complex(pairs).mul_(1j)
    assert pairs.tolist() == [[-1.0, 1.0]] * 3


@pytest.mark.parametrize("axes", [(2, 1, 0), (1, 0, 2), (0, 2, 1), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(-1,), (4, 3), (3, 4)])
def test_a_write_to_pairs_seen_as_complex_numbers_takes_gradients_of_any_layout(
    axes: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    """The gradient of what was written comes in an order in which no pairs lie side by side."""
    x = pullback.randn(3, 4, 2, dtype=pullback.float64, requires_grad=True)
    pairs = x.clone()
    pullback.view_as_complex(pairs).reshape(shape).mul_(2)
    w = pullback.randn(*(x.shape[i] for i in axes), dtype=pullback.float64, requires_grad=True)
    (g,) = pullback.autograd.grad((pairs.permute(axes) * w).sum(), x, create_graph=True)
    back = [axes.index(i) for i in range(3)]
    np.testing.assert_array_equal(g.detach(), 2 * w.detach().permute(back))
    np.testing.assert_array_equal(pullback.autograd.grad((g * g).sum(), w)[0], 8 * w.detach())


def test_a_real_tensor_is_its_own_conjugate() -> None:
    x, z = pullback.ones(2, requires_grad=True), pullback.tensor([1 + 2j])
    assert x.conj() is x.resolve_conj() is x.resolve_neg() is +x is x
    assert z.conj() is not z
    assert [z.conj().is_conj(), z.conj().imag.is_neg()] == [False, False]
    other = z.conj()
    before = other.tolist()
    with pullback.no_grad():
        z.add_(1)
    assert other.tolist() == before  # in torch it is a view of z


@pytest.mark.parametrize(("left", "right"), [*itertools.product([-1.5, 0.3, 2.0], repeat=2)])
def test_the_slope_of_acosh_is_right_on_both_sides_of_the_imaginary_axis(left: float, right: float) -> None:
    z = pullback.tensor(complex(left, right), dtype=pullback.complex128, requires_grad=True)
    (g,) = pullback.autograd.grad(pullback.acosh(z).real, z)
    step = 1e-6
    slope = (np.arccosh(z.item() + step) - np.arccosh(z.item() - step)) / (2 * step)
    assert np.conj(g.item()) == pytest.approx(slope, rel=1e-7)


def test_where_alone_gives_the_places() -> None:
    (rows, columns) = pullback.where(pullback.tensor([[True, False], [False, True]]))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [0, 1])


@pytest.mark.parametrize("sample", [S(A(2, 3)), S(A()), S(A(0))], ids=str)
def test_angle_and_size_make_the_number_again(sample: Any) -> None:
    (array,) = sample.arrays("complex128").args
    z = pullback.tensor(array)
    np.testing.assert_allclose(pullback.polar(z.abs(), z.angle()).numpy(), array, rtol=1e-14)
    np.testing.assert_allclose((z.sgn() * z.abs()).numpy(), array, rtol=1e-14)
    np.testing.assert_array_equal(pullback.complex(z.real, z.imag).numpy(), array)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        *((name, complex(re, im)) for name in ("asin", "acos") for re in (2.0, -2.0) for im in (0.0, -0.0)),
        *(("acosh", complex(re, im)) for re in (0.5, -2.0) for im in (0.0, -0.0)),
        *(("asinh", complex(0.0, im)) for im in (2.0, -2.0)),
    ],
)
def test_slopes_on_a_branch_cut_are_those_of_the_side_of_the_value(name: str, at: complex) -> None:
    def slope(z: complex) -> complex:
        x = pullback.tensor([z], dtype=pullback.complex128, requires_grad=True)
        getattr(pullback, name)(x).sum().real.backward()
        return complex(x.grad.item())

    step = math.copysign(1e-12, at.real) if name == "asinh" else 1j * math.copysign(1e-12, at.imag)
    assert slope(at) == pytest.approx(slope(at + step), rel=1e-6)


@pytest.mark.torch
def test_mish_of_half_precision_is_finite(torch: ModuleType) -> None:
    values = [-10.0, -1.0, 5.0, 6.0, 20.0, 6e4, math.inf]
    found, expected = (
        lib.nn.functional.mish(lib.tensor(values, dtype=lib.float16)).tolist() for lib in (pullback, torch)
    )
    assert found == pytest.approx(expected, rel=2e-3)


def test_functions_that_vanish_far_out_do() -> None:
    far = pullback.tensor([120.0, 1e10, 1e300], dtype=pullback.float64)
    assert pullback.special.airy_ai(far).tolist() == [0.0, 0.0, 0.0]
    ends = pullback.tensor([math.inf, -math.inf])
    assert pullback.special.spherical_bessel_j0(ends).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("of", ["x - x", "-x"])
@pytest.mark.torch
def test_what_bools_do_not_have_is_said_as_torch_says_it(torch: ModuleType, of: str) -> None:
    said = []
    for lib in (pullback, torch):
        with pytest.raises(RuntimeError) as info:
            eval(of, {"x": lib.tensor([True])})
        said.append(str(info.value).split("supported")[0])
    assert said[0] == said[1]


def test_log_ndtr_has_every_derivative_far_out() -> None:
    x = pullback.tensor([-100.0, 3.0, 38.0, 60.0, 300.0], dtype=pullback.float64, requires_grad=True)
    found = pullback.special.log_ndtr(x)
    for order in range(1, 4):
        (found,) = pullback.autograd.grad(found.sum(), x, create_graph=True)
        assert pullback.isfinite(found).all()
        assert found[-1] == 0
        if order == 2:  # -r (x + r) of the first derivative r
            first = math.exp(-4.5) / math.sqrt(2 * math.pi) / scipy.special.ndtr(3)
            assert found[1].item() == pytest.approx(-first * (3 + first))


@pytest.mark.parametrize("degree", [math.nan, math.inf, -math.inf])
@pytest.mark.torch
def test_a_polynomial_of_no_degree_is_zero(torch: ModuleType, degree: float) -> None:
    for lib in (pullback, torch):
        assert lib.special.legendre_polynomial_p(lib.tensor([0.5, 2.0]), degree).tolist() == [0.0, 0.0]


# Numbers among tensors ------------------------------------------------------------------------------------------------


OLDER: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "add": lambda lib, v, w, m: lib.add(v, 10, w),
    "add, a method": lambda lib, v, w, m: v.add(10, w),
    "add_": lambda lib, v, w, m: v.clone().add_(-0.5, w),
    "sub": lambda lib, v, w, m: lib.sub(v, 10, w),
    "addcmul": lambda lib, v, w, m: lib.addcmul(v, 2, v, w),
    "addcmul_": lambda lib, v, w, m: v.clone().addcmul_(2, v, w),
    "addcdiv_": lambda lib, v, w, m: v.clone().addcdiv_(-0.1, v, w),
    "addmm": lambda lib, v, w, m: lib.addmm(2, m, 3, m, m),
    "addmm, beta alone": lambda lib, v, w, m: lib.addmm(2, m, m, m),
    "addmm_": lambda lib, v, w, m: m.clone().addmm_(2, 3, m, m),
    "addmv": lambda lib, v, w, m: lib.addmv(2, v, 3, m, w),
    "addr": lambda lib, v, w, m: lib.addr(2, m, 3, v, w),
    "baddbmm": lambda lib, v, w, m: lib.baddbmm(2, m[None], 3, m[None], m[None]),
}


@pytest.mark.torch
@pytest.mark.parametrize("call", OLDER.values(), ids=OLDER)
def test_the_older_forms_with_numbers_among_the_tensors(call: Callable[[Any, Any, Any, Any], Any]) -> None:
    torch = pytest.importorskip("torch")
    data = ([1.0, 2.0], [3.0, -1.0], [[1.0, 2.0], [3.0, 4.0]])
    with pytest.warns(UserWarning, match=r"This overload of \w+ is deprecated.*Write \w+\(a, b"):
        ours = call(pullback, *map(pullback.tensor, data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ours.tolist() == call(torch, *map(torch.tensor, data)).tolist()


def test_what_is_no_older_form_says_how_it_is_written() -> None:
    x = pullback.ones(2)
    with pytest.raises(TypeError, match=r"add\(a, b, alpha=\.\.\.\)"):
        pullback.add(x, x, x)
    with pytest.raises(TypeError, match=r"addcmul\(a, b, c, value=\.\.\.\)"):
        x.addcmul(2, 3, x)


BEYOND: dict[str, Callable[[Any, Any], Any]] = {
    "pow": lambda lib, x: x**300,
    "pow_": lambda lib, x: x.pow_(300),
    "a negative power": lambda lib, x: x**-1,
    "clamp": lambda lib, x: lib.clamp(x, 0, 300),
    "clamp_min": lambda lib, x: x.clamp(min=300),
    "where": lambda lib, x: lib.where(x > 1, x, 300),
    "alpha": lambda lib, x: lib.add(x, x, alpha=300),
    "value": lambda lib, x: lib.addcmul(x, x, x, value=300),
}


@pytest.mark.parametrize("call", BEYOND.values(), ids=BEYOND)
def test_a_number_that_integers_cannot_hold_is_refused(call: Callable[[Any, Any], Any]) -> None:
    x = pullback.tensor([1, 2], dtype=pullback.uint8)
    refused = "cannot be converted to type .*uint8|Integers to negative integer powers"
    with pytest.raises(RuntimeError, match=refused):
        call(pullback, x)
    assert x.tolist() == [1, 2]
    if torch := sys.modules.get("torch"):
        with pytest.raises(RuntimeError, match=refused):
            call(torch, torch.tensor([1, 2], dtype=torch.uint8))


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_numbers_that_torch_does_not_take_there_are_not_wrapped_either(name: str) -> None:
    with pytest.raises(RuntimeError, match="without overflow"):
        getattr(pullback, name)(pullback.tensor([1, 2], dtype=pullback.uint8), 300)


HALF: dict[str, Callable[[Any], Any]] = {
    "mul": lambda x: x * 1e-6,
    "rmul": lambda x: 1e-6 * x,
    "div": lambda x: x / 3e6,
    "add": lambda x: x + 1e-6,
    "rsub": lambda x: 1e-3 - x,
    "pow": lambda x: x**0.3333,
    "square": lambda x: x**2,
}


@pytest.mark.torch
@pytest.mark.parametrize("call", HALF.values(), ids=HALF)
def test_a_number_beside_half_precision_keeps_its_digits(call: Callable[[Any], Any]) -> None:
    """1e-6 is 5 % off in half precision, and 3e6 infinite; also in the gradient."""
    torch = pytest.importorskip("torch")
    found = []
    for lib in (pullback, torch):
        x = lib.tensor([1000.0, 3.0, 20000.0], dtype=lib.float16, requires_grad=True)
        y = call(x)
        assert y.dtype == lib.float16
        (gradient,) = lib.autograd.grad(y, x, lib.full((3,), 100.0, dtype=lib.float16))
        assert gradient.dtype == lib.float16
        found.append([*y.tolist(), *gradient.tolist()])
    np.testing.assert_allclose(*found, rtol=2e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("exponent", "slope"), [(2.0, 0.0), (0.0, 0.0), (0.5, 0.0), (-1.0, -np.inf)])
def test_the_slope_of_a_power_of_zero_is_differentiable_in_its_cotangent(
    exponent: float, slope: float, dtype: str
) -> None:
    """``g * (0**n * log 0)`` is 0 for each g where n >= 0, so its derivative by g is 0 and not 0 * inf."""
    for base in (0.0, 0, pullback.zeros((), dtype=getattr(pullback, dtype))):
        n = pullback.tensor(exponent, dtype=getattr(pullback, dtype), requires_grad=True)
        g = pullback.ones_like(n).detach().requires_grad_()
        (by_n,) = grad(base**n, n, g, create_graph=True)
        assert (by_n.item(), grad(by_n, g, retain_graph=True)[0].item()) == (slope, slope)
        if exponent > 0:
            assert grad(by_n, n)[0].item() == 0


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(), (7,), (5, 33)])
def test_softmax_of_float16_is_rounded_once(name: str, shape: Any) -> None:
    x = pullback.randn(shape, generator=pullback.Generator().manual_seed(3)) * 3
    found = getattr(pullback, name)(x.half(), -1)
    assert found.dtype == pullback.float16
    assert pullback.equal(found, getattr(pullback, name)(x.half().float(), -1).half())
    assert getattr(pullback, name)(x, -1, dtype=pullback.float16).dtype == pullback.float16


@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_the_gradient_of_a_remainder_by_its_divisor_is_recorded(name: str) -> None:
    x, y = (pullback.tensor(v, requires_grad=True) for v in ([5.0, -3.0], [2.0, 2.0]))
    (slope,) = pullback.autograd.grad(getattr(x, name)(y).sum(), y, create_graph=True)
    assert slope.requires_grad
    again = pullback.autograd.grad(slope.sum(), (x, y))
    assert [g.tolist() for g in again] == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("whole", ["int64", "uint8", "int8", "bool"])
@pytest.mark.parametrize(
    "name", ["fmod", "remainder", "pow", "atan2", "hypot", "copysign", "xlogy", "true_divide", "mul"]
)
def test_an_integer_beside_a_float_has_the_gradient_of_the_same_number_as_a_float(name: str, whole: str) -> None:
    x = pullback.tensor([0.3, 0.6, 0.9], dtype=pullback.float64, requires_grad=True)
    n = pullback.tensor([3, 1, 2]).to(getattr(pullback, whole))
    op = getattr(pullback, name)
    for swapped in (False, True):

        def of(n: Any, swapped: bool = swapped) -> Any:
            y = op(x, n) if swapped else op(n, x)
            return [pullback.autograd.grad(y.sum(), x, create_graph=taped)[0].tolist() for taped in (True, False)]

        np.testing.assert_allclose(of(n), of(n.double()), rtol=1e-14)


def test_lgamma_of_a_denormal_number_is_minus_its_logarithm() -> None:
    x = [1e-310, 5e-324, -1e-310]
    found = pullback.lgamma(pullback.tensor(x, dtype=pullback.float64)).tolist()
    assert found == pytest.approx([-math.log(abs(v)) for v in x], rel=1e-14)
