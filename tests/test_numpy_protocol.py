"""NumPy's functions and operators on tensors: they are recorded, or refused by name, and never drop a gradient.

No oracle is needed: the value is NumPy's own on the arrays, and the gradient is compared with finite differences.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import cases

import pullback
from pullback._tensor import NUMPY

A = np.array([[0.31, 0.92, 0.57], [0.73, 0.22, 0.43]])
B = np.array([[0.64, 0.13, 0.84], [0.26, 0.37, 0.48]])
V = np.array([0.3, 0.9, 0.5])

# Functions of one array and of two, as a person writes them
ONE = cases("""
np.sin(a) | np.cos(a) | np.tan(a) | np.sinh(a) | np.cosh(a) | np.tanh(a) | np.exp(a) | np.expm1(a) | np.log(a)
np.log1p(a) | np.log2(a) | np.log10(a) | np.sqrt(a) | np.square(a) | np.reciprocal(a) | np.negative(a)
np.positive(a) | np.absolute(a) | np.abs(a) | np.fabs(a) | np.conjugate(a) | np.conj(a) | np.real(a) | np.sum(a)
np.mean(a) | np.prod(a) | np.var(a) | np.std(a) | np.max(a) | np.amax(a) | np.min(a) | np.amin(a) | np.cumsum(a)
np.cumprod(a) | np.ravel(a) | np.transpose(a) | np.squeeze(a) | np.copy(a) | np.flip(a) | np.triu(a) | np.tril(a)
np.sum(a, axis=0) | np.sum(a, axis=(0, 1)) | np.sum(a, 1, keepdims=True) | np.sum(a, axis=-1, dtype=np.float64)
np.mean(a, axis=1) | np.prod(a, axis=0, keepdims=True) | np.max(a, axis=1) | np.min(a, 0, keepdims=True)
np.var(a, axis=0, ddof=1) | np.std(a, axis=1, keepdims=True) | np.cumsum(a, axis=1) | np.cumprod(a, axis=0)
np.reshape(a, (3, 2)) | np.reshape(a, -1) | np.reshape(a, shape=(6, 1)) | np.transpose(a, (1, 0))
np.swapaxes(a, 0, 1) | np.moveaxis(a, 0, -1) | np.expand_dims(a, 1) | np.squeeze(a[None], axis=0)
np.broadcast_to(a, (4, 2, 3)) | np.flip(a, axis=1) | np.triu(a, k=1) | np.tril(a, -1) | np.clip(a, 0.25, 0.75)
np.clip(a, None, 0.6) | np.clip(a, min=0.45) | np.take(a, [0, 2, -1], axis=1) | np.take(a, [[0, 1], [4, 5]])
np.take_along_axis(a, np.array([[0, 2], [1, 1]]), axis=1) | np.power(a, 3) | np.power(2.0, a) | np.float_power(a, 2.0)
np.where(a > 0.5, a, 0.0) | np.where(np.array([True, False, True]), 2.0 * a, a * a) | np.astype(a, np.float64)
np.round(a) + a | np.remainder(a, 0.35) | a[:, ::2] ** 2 | np.multiply(a, 3) | np.sign(a) * a | np.floor(a) + a
""")
TWO = cases("""
np.add(a, b) | np.subtract(a, b) | np.multiply(a, b) | np.divide(a, b) | np.true_divide(a, b) | np.power(a, b)
np.maximum(a, b) | np.minimum(a, b) | a + b | a - b | a * b | a / b | a ** b | a % b | np.matmul(a, b.T) | a @ b.T
np.dot(a, b.T) | np.dot(a[0], b[0]) | np.outer(a[0], b[1]) | np.concatenate([a, b]) | np.concatenate((a, b), axis=1)
np.concatenate([a, b], axis=None) | np.stack([a, b]) | np.stack((a, b), axis=-1) | np.where(a > b, a, b)
np.clip(a, b - 0.1, b + 0.1) | a * b[0] | a + b[:, :1]
""")


def run(code: str, *values: Any) -> Any:
    """The value of an expression in a and, if there is one, b."""
    return eval(code, {"np": np, "a": values[0], "b": values[-1]})


def checked(code: str, arrays: list[Any], differentiable: list[bool]) -> None:
    """Compare the value on tensors, where `differentiable` says so, with NumPy's, and the gradient with differences."""
    leaves = [pullback.tensor(a, requires_grad=True) if d else a for a, d in zip(arrays, differentiable, strict=True)]
    out = run(code, *leaves)
    assert isinstance(out, pullback.Tensor)
    assert out.requires_grad
    np.testing.assert_allclose(out.detach().numpy(), run(code, *arrays), rtol=1e-14)
    weight = np.cos(np.arange(out.numel())).reshape(out.shape) + 2
    wanted = [x for x in leaves if isinstance(x, pullback.Tensor)]
    gradients = iter(pullback.autograd.grad(out, wanted, pullback.tensor(weight)))
    for i in np.flatnonzero(differentiable):
        turn, step = np.sin(np.arange(arrays[i].size)).reshape(arrays[i].shape) + 1.5, 1e-6
        ahead, behind = ([a + s * turn if k == i else a for k, a in enumerate(arrays)] for s in (step, -step))
        slope = np.sum(weight * (run(code, *ahead) - run(code, *behind))) / (2 * step)
        np.testing.assert_allclose(np.sum(next(gradients).numpy() * turn), slope, rtol=1e-7)


@pytest.mark.parametrize("code", ONE)
def test_a_function_of_a_tensor_is_recorded(code: str) -> None:
    checked(code, [A], [True])


@pytest.mark.parametrize("kinds", ["both", "tensor, array", "array, tensor"])
@pytest.mark.parametrize("code", TWO)
def test_a_function_of_two_is_recorded_whichever_is_a_tensor(code: str, kinds: str) -> None:
    checked(code, [A, B], [kinds != "array, tensor", kinds != "tensor, array"])


def test_every_function_with_a_rule_is_among_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever adds a rule for a NumPy function finds that it is not tested yet."""
    asked: set[Any] = set()

    class Spy(dict[Any, Any]):
        def get(self, func: Any, default: Any = None) -> Any:
            asked.add(func)
            return super().get(func, default)

    monkeypatch.setattr("pullback._tensor.NUMPY", Spy(NUMPY))
    x, y = pullback.tensor(A), pullback.tensor(B)
    for code in [*ONE, *TWO, *CONSTANT, *ROUNDING]:
        run(code, x, y)
    assert set(NUMPY) - asked <= {
        np.imag,
        np.shape,
        np.ndim,
        np.size,
        np.allclose,
        np.isclose,
        np.array_equal,
    }  # which have tests below


CONSTANT = cases("""
a > 0.5 | np.greater(a, b) | np.less_equal(b, a) | np.equal(a, a) | np.not_equal(a, 0.3) | np.less(a, 1)
np.greater_equal(a, b) | np.isnan(a) | np.isinf(a) | np.isfinite(a) | np.logical_not(a) | np.logical_and(a, b)
np.logical_or(a, b) | np.logical_xor(a, b) | np.any(a) | np.all(a) | np.argmax(a) | np.argmin(a)
np.argmax(a, axis=1) | np.any(a > 0.6, axis=0) | np.all(a > 0.6, axis=1, keepdims=True) | np.zeros_like(a)
np.ones_like(a) | np.bitwise_and(a > 0.4, a > 0.5) | np.bitwise_or(a > 0.4, a > 0.5)
np.bitwise_xor(a > 0.4, a > 0.5) | ~(a > 0.5) | np.invert(a > 0.5) | np.full_like(a, 2.0)
""")


@pytest.mark.parametrize("code", CONSTANT)
def test_what_has_no_derivative_is_a_tensor_that_requires_none(code: str) -> None:
    out = run(code, pullback.tensor(A, requires_grad=True), B)
    assert isinstance(out, pullback.Tensor)
    assert not out.requires_grad
    np.testing.assert_array_equal(out.numpy(), run(code, A, B))


ROUNDING = cases("""
np.floor(a) | np.ceil(a) | np.trunc(a) | np.rint(a) | np.round(a) | np.sign(a) | np.floor_divide(a, 0.3)
""")


@pytest.mark.parametrize("code", ROUNDING)
def test_rounding_has_the_gradient_zero(code: str) -> None:
    x = pullback.tensor(A, requires_grad=True)
    out = run(code, x)
    np.testing.assert_array_equal(out.detach().numpy(), run(code, A))
    assert not pullback.autograd.grad(out.sum(), x)[0].any()


def test_questions_about_the_shape_are_answered_with_numbers() -> None:
    x = pullback.tensor(A, requires_grad=True)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)


def test_complex_parts() -> None:
    z = pullback.tensor(A + 1j * B, requires_grad=True)
    assert np.array_equal(np.imag(z).detach().numpy(), B)
    (g,) = pullback.autograd.grad(np.imag(np.conj(z)).sum() + np.real(z).sum(), z)
    assert g.tolist() == np.full((2, 3), 1 - 1j).tolist()


# Arrays, NumPy's numbers and tensors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv]
)
@pytest.mark.parametrize("other", [np.float64(2), np.float32(2), np.int64(2), np.array(2.0), V, 2, True], ids=repr)
def test_operators_with_arrays_and_numbers_on_either_side(op: Callable[..., Any], other: Any) -> None:
    x = pullback.tensor(A, requires_grad=True)
    for mixed, plain in ((op(x, other), op(A, other)), (op(other, x), op(other, A))):
        assert isinstance(mixed, pullback.Tensor)
        assert mixed.requires_grad
        np.testing.assert_allclose(mixed.detach().numpy(), plain, rtol=1e-14)


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_comparisons_with_arrays_on_either_side(op: Callable[..., Any]) -> None:
    x = pullback.tensor(A)
    for mixed, plain in ((op(x, B), op(A, B)), (op(B, x), op(B, A)), (op(np.float64(0.3), x), op(0.3, A))):
        assert isinstance(mixed, pullback.Tensor)
        np.testing.assert_array_equal(mixed.numpy(), plain)


def test_an_array_times_a_tensor_is_one_tensor_not_an_array_of_tensors() -> None:
    x = pullback.tensor(A, requires_grad=True)
    out = B * x + np.ones(3) @ x.T.reshape(3, 2)[:, 0] - np.float64(1)
    assert out.shape == (2, 3)
    out.sum().backward()
    assert x.grad is not None
    assert (B.T.T @ x.T).shape == (2, 2)


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("numpy.sort", np.sort),
        ("numpy.median", np.median),
        ("numpy.linalg.inv", np.linalg.inv),
        ("numpy.fft.fft", np.fft.fft),
        ("numpy.arcsin", np.arcsin),
        ("numpy.diff", np.diff),
        ("numpy.roll", lambda t: np.roll(t, 1)),
        ("numpy.hypot", lambda t: np.hypot(t, t)),
        ("numpy.add.reduce", np.add.reduce),
        ("numpy.multiply.outer", lambda t: np.multiply.outer(t, t)),
        ("numpy.add.accumulate", np.add.accumulate),
        ("numpy.einsum", lambda t: np.einsum("ij->i", t)),
        ("numpy.vstack", lambda t: np.vstack([t, t])),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_function_without_a_rule_is_refused_by_name(name: str, fn: Callable[..., Any]) -> None:
    if name in {getattr(f, "__name__", "") and f"numpy.{f.__name__}" for f in NUMPY}:
        pytest.skip(f"{name} has a rule by now")
    x = pullback.tensor(A, requires_grad=True)
    with pytest.raises(TypeError, match=rf"{name}\(\) has no derivative rule(.|\n)*detach\(\)"):
        fn(x)


def test_out_is_refused_and_nothing_is_written() -> None:
    x, a, t = pullback.tensor(A, requires_grad=True), A.copy(), pullback.zeros(2, 3, dtype=pullback.float64)
    for write in (
        lambda: np.sin(x, out=a),
        lambda: np.sin(A, out=t),
        lambda: np.add(a, x, out=a),
        lambda: np.sum(x, axis=0, out=a[0]),
        lambda: np.multiply(A, B, out=t),
        lambda: np.add.at(a, 0, x[0]),
        lambda: operator.iadd(a, x),
        lambda: operator.imul(a, x),
        lambda: np.copyto(a, x),
    ):
        with pytest.raises(TypeError, match=r"out=|no derivative rule|argument 'out'"):
            write()
    np.testing.assert_array_equal(a, A)
    assert not t.any()


def test_unknown_arguments_of_numpy_are_refused() -> None:
    x = pullback.tensor(A, requires_grad=True)
    for call in (
        lambda: np.sum(x, where=A > 0.5),
        lambda: np.max(x, initial=3.0),
        lambda: np.sin(x, where=A > 0.5),
        lambda: np.clip(x, 0, 1, casting="unsafe"),
    ):
        with pytest.raises(TypeError, match="argument"):
            call()


def test_a_tensor_in_the_graph_does_not_become_an_array_silently() -> None:
    x = pullback.tensor(A, requires_grad=True)
    y = x * 2
    for convert in (
        np.asarray,
        np.array,
        np.ascontiguousarray,
        lambda t: np.asarray(t, dtype=float),
        lambda t: np.array([t, t]),
    ):
        for t in (x, y):
            with pytest.raises(RuntimeError, match=r"detach\(\)"):
                convert(t)
    a = np.zeros(3)
    with pytest.raises(ValueError, match="array element") as info:
        a[0] = x[0, 0]
    assert "detach()" in str(info.value.__cause__)
    assert np.array_equal(np.asarray(x.detach()), A)
    assert np.asarray(y.detach(), dtype=np.float32).dtype == np.float32
    with pullback.no_grad():
        assert np.array_equal(np.asarray(x * 1), A)


def test_asarray_of_a_plain_tensor_shares_its_memory() -> None:
    t = pullback.tensor(A)
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert not np.shares_memory(np.array(t), t.numpy())
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, dtype=np.float32, copy=False)


# Warnings -------------------------------------------------------------------------------------------------------------


def test_numpy_warns_of_a_persons_own_arrays_and_not_of_tensors() -> None:
    zero = np.zeros(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", category=RuntimeWarning, module=r"pullback\."
        )  # what importing the package sets
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            np.log(zero)
        x = pullback.tensor(zero, requires_grad=True)
        for out in (
            np.log(x),
            x / 0.0,
            1 / x,
            x / x,
            x**-1,
            np.sqrt(x - 1),
            np.exp(x + 1000),
            np.sum(np.log(x) - np.log(x)),
        ):
            out.sum().backward(retain_graph=True)
        pullback.tensor([300.0]).to(pullback.float16) * 300


def test_importing_the_package_sets_that_filter_and_no_other() -> None:
    found = [f for f in warnings.filters if f[3] is not None and "pullback" in getattr(f[3], "pattern", str(f[3]))]
    assert all(f[0] == "ignore" and f[2] is RuntimeWarning for f in found)
    assert found
