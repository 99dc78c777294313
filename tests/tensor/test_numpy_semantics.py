"""NumPy's functions of Tensors follow NumPy where torch's function of that name means something else."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import gradcheck, gradgradcheck
from pullback.tensor.dtypes import ALL
from pullback.tensor.tensor import NUMPY

A = np.array([[0.31, 0.92, 0.57], [0.73, 0.22, 0.43]])


def since(version: str, call: Any) -> Any:
    """A case that older versions of NumPy refuse, or read in another way."""
    older = np.lib.NumpyVersion(np.__version__) < version
    return pytest.param(call, marks=pytest.mark.skipif(older, reason=f"NumPy has it since {version}"))


def compared(call: Callable[..., Any], *arrays: Any, forward: bool = True) -> None:
    """Compare a call on Tensors with NumPy's on arrays: value, shape and dtype, then the derivatives of both orders."""
    leaves = [pullback.tensor(a, requires_grad=np.asarray(a).dtype.kind in "fc") for a in arrays]
    found, wanted = call(*leaves), call(*arrays)
    assert isinstance(found, pullback.Tensor)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-12, atol=1e-15, strict=True)
    if found.requires_grad and forward:
        doubles = [t for t in leaves if t.requires_grad]
        if all(t.dtype in (pullback.float64, pullback.complex128) for t in doubles):
            assert gradcheck(call, leaves, check_forward_ad=True, check_batched_grad=True)
            assert gradgradcheck(call, leaves)


# Reductions over no axis ----------------------------------------------------------------------------------------------

MORE: dict[Any, tuple[Any, ...]] = dict.fromkeys(
    (np.quantile, np.nanquantile, np.percentile, np.nanpercentile), (0.5,)
)  # the arguments between the array and the axis


def parameters(function: Callable[..., Any]) -> set[str]:
    """The names of its parameters; of functions in C before NumPy 2.4 nobody says them, and none of them reduces."""
    try:
        return set() if isinstance(function, np.ufunc) else set(inspect.signature(function).parameters)
    except ValueError:
        return set()


def reductions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each function with a rule, or method `reduce` of a ufunc, that NumPy lets reduce an array over no axis."""
    for key in NUMPY:
        if isinstance(key, tuple) and key[1] == "reduce":
            yield f"{key[0].__name__}.reduce", key
        elif callable(key) and {"axis", "keepdims"} <= parameters(key):
            try:
                key(A, *MORE.get(key, ()), axis=())
            except (TypeError, ValueError):  # argmax, linalg.norm
                continue
            yield key.__name__, key


REDUCTIONS = dict(reductions())


def test_these_are_numpys_reductions() -> None:
    assert {f.__name__ for f in (np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.ptp, np.nansum)} <= set(
        REDUCTIONS
    )
    assert {"add.reduce", "multiply.reduce", "maximum.reduce", "minimum.reduce", "logaddexp.reduce"} <= set(REDUCTIONS)
    assert {"average", "count_nonzero", "vector_norm", "nanmean", "nanmax", "nanvar", "median"} <= set(REDUCTIONS)


@pytest.mark.parametrize("keep", [{}, {"keepdims": True}], ids=["", "keepdims"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_over_no_axis_leaves_the_axes(name: str, keep: dict[str, Any]) -> None:
    key = REDUCTIONS[name]
    call = getattr(*key) if isinstance(key, tuple) else key

    def reduced(x: Any) -> Any:
        return call(x, *MORE.get(key, ()), axis=(), **keep)

    compared(reduced, A)
    compared(reduced, A[0, 0])
    if name not in ("average", "median", "quantile", "percentile"):  # NumPy refuses no elements
        compared(reduced, A[:, :0])
    each = pullback.vmap(reduced)(pullback.tensor(A))
    np.testing.assert_allclose(each.numpy(), reduced(A), rtol=1e-14)


def test_weights_of_an_average_over_no_axis() -> None:
    compared(lambda x, w: np.average(x, axis=(), weights=w), A, A + 1)
    compared(lambda x: np.average(x, (), A + 1, True)[1], A)
    compared(lambda w: np.average([1.0, 2.0], axis=(), weights=w), A[0, :2])


def test_positions_of_the_axis() -> None:
    compared(lambda x: np.sum(x, ()), A)
    compared(lambda x: np.sum(a=x, axis=()), A)
    compared(lambda x: np.add.reduce(x, ()), A)
    compared(lambda x: np.sum(x, (), np.float64, keepdims=True), A)


def test_torchs_functions_reduce_all_axes() -> None:
    x = pullback.tensor(A)
    for found in (x.sum(dim=()), pullback.sum(x, ()), x.mean(dim=()), pullback.linalg.vector_norm(x, dim=())):
        assert found.shape == ()


# Empty axes, 0-d tensors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.roll(x, (), axis=()),
        lambda x: np.roll(x, 1, axis=()),
        lambda x: np.fft.fftshift(x, axes=()),
        lambda x: np.fft.ifftshift(x, axes=()),
        lambda x: np.squeeze(x, axis=()),
        lambda x: np.expand_dims(x, ()),
        lambda x: np.flip(x, ()),
        lambda x: np.transpose(x[0, 0], ()),
        lambda x: np.repeat(x[0, 0], 2, axis=0),
        lambda x: np.repeat(x[0, 0], [3], axis=-1),
        lambda x: np.repeat(x[0, 0], 2),
        lambda x: np.roll(x[0, 0], 1),
        np.imag,
    ],
)
def test_empty_axes_and_single_numbers(call: Callable[..., Any]) -> None:
    compared(call, A)


def test_the_imaginary_part_of_integers_is_zero() -> None:
    compared(np.imag, np.array([1, 2]))


# Products of two dtypes -----------------------------------------------------------------------------------------------

PRODUCTS = {
    "dot": lambda a, b: np.dot(a, b.T),
    "dot of vectors": lambda a, b: np.dot(a[0], b[1]),
    "matmul": lambda a, b: np.matmul(a, b.T),
    "linalg.matmul": lambda a, b: np.linalg.matmul(a, b.T),
    "einsum": lambda a, b: np.einsum("ij,kj->ik", a, b),
    "einsum by numbers": lambda a, b: np.einsum(a, [0, 1], b, [2, 1], [0, 2]),
    "einsum without a result": lambda a, b: np.einsum(a, [0, 1], b, [2, 1]),
    "tensordot": lambda a, b: np.tensordot(a, b, ([1], [1])),
    "linalg.tensordot": lambda a, b: np.linalg.tensordot(a, b, axes=2),
    "inner": np.inner,
    "vdot": np.vdot,
    "outer": np.outer,
    "linalg.outer": lambda a, b: np.linalg.outer(a[0], b[0]),
    "kron": np.kron,
    "cross": np.cross,
    "linalg.cross": np.linalg.cross,
    "vecdot": np.vecdot,
    "linalg.vecdot": np.linalg.vecdot,
    "multi_dot": lambda a, b: np.linalg.multi_dot([a, b.T, a]),
    "solve": lambda a, b: np.linalg.solve(a[:, :2] + 2 * np.eye(2, dtype=np.float32), b[:, :1]),
    "lstsq": lambda a, b: np.linalg.lstsq(a.T, b[0], rcond=None)[0],
    "tensorsolve": lambda a, b: np.linalg.tensorsolve(a[:, :2] + 2 * np.eye(2, dtype=np.float32), b[:, 0]),
}


@pytest.mark.parametrize("kind", ["f4", "i8", "c16"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_of_two_dtypes_is_in_the_one_they_promote_to(name: str, kind: str) -> None:
    call, b = PRODUCTS[name], np.arange(1.0, 7.0).reshape(2, 3).astype(kind)
    x, y = pullback.tensor(A, requires_grad=True), pullback.tensor(b, requires_grad=kind != "i8")
    wanted = call(A, b)
    for found in (call(x, y), call(x, b), call(A, y)):
        assert isinstance(found, pullback.Tensor)
        assert found.dtype.numpy == wanted.dtype
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-12)
    given = [t for t in (x, y) if t.requires_grad]
    for t, g in zip(given, pullback.autograd.grad(call(x, y).abs().sum(), given), strict=True):
        assert (g.dtype, g.shape) == (t.dtype, t.shape)
    compared(call, A, b, forward=kind != "f4")


def test_torchs_products_refuse_two_dtypes() -> None:
    x, y = pullback.tensor(A), pullback.tensor(A.T, dtype=pullback.float32)
    for call in (lambda: x @ y, lambda: pullback.matmul(x, y), lambda: pullback.einsum("ij,jk", x, y)):
        with pytest.raises(RuntimeError, match="same dtype"):
            call()


def test_the_method_dot_names_the_products_of_matrices() -> None:
    x = pullback.tensor(A)
    with pytest.raises(RuntimeError, match=r"two 1-D tensors(.|\n)*@(.|\n)*np\.dot"):
        x.dot(x.T)


# dtypes, and the methods of arrays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", ALL, ids=repr)
def test_numpy_takes_a_dtype(d: pullback.dtype) -> None:
    assert np.dtype(d) == d.numpy  # type: ignore[call-overload]
    assert np.zeros(3, dtype=d).dtype == d.numpy  # type: ignore[call-overload]
    assert np.ones(2).astype(d).dtype == d.numpy  # type: ignore[call-overload]
    assert pullback.from_numpy(np.zeros(2, pullback.zeros(1, dtype=d).dtype)).dtype is d  # type: ignore[call-overload]


def test_bfloat16_without_its_package_is_no_dtype_of_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pullback.bfloat16, "_numpy", None)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert not hasattr(pullback.bfloat16, "dtype")
    with pytest.raises(TypeError, match="bfloat16"):
        np.dtype(pullback.bfloat16)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="found dtype"):
        pullback.add(pullback.ones(2), pullback.bfloat16)


@pytest.mark.parametrize("d", [pullback.int64, pullback.float32, pullback.bool, pullback.complex64], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda x, d: x + d,
        lambda x, d: d * x,
        lambda x, d: pullback.roll(x, d),
        lambda x, d: pullback.where(d, x, x),
        lambda x, d: pullback.lerp(x, x, d),
        lambda x, d: pullback.sum(x, d),
        lambda x, d: pullback.full((2,), d),
        lambda x, d: pullback.nn.functional.leaky_relu(x, d),
        lambda x, d: pullback.result_type(x, d),
        lambda x, d: x[d],
        lambda x, d: x @ d,
        lambda x, d: pullback.matmul(x, d),
        lambda x, d: pullback.tensor(d),
        lambda x, d: pullback.gather(x, 0, d),
        lambda x, d: pullback.einsum("i,i", x, d),
    ],
)
def test_a_dtype_is_not_taken_for_an_array(call: Callable[..., Any], d: pullback.dtype) -> None:
    with pytest.raises((TypeError, IndexError, RuntimeError), match=r"dtype|found|operand|must be"):
        call(pullback.ones(3), d)


@pytest.mark.parametrize("dtype", [np.float32, "float32", pullback.float32, np.dtype("f4")], ids=repr)
def test_astype_converts(dtype: Any) -> None:
    x = pullback.tensor(A, requires_grad=True)
    found = x.astype(dtype)
    assert found.dtype == pullback.float32
    np.testing.assert_array_equal(found.detach().numpy(), A.astype(np.float32))
    assert pullback.autograd.grad(found.sum(), x)[0].dtype == pullback.float64


def test_astype_copies_as_numpy_does() -> None:
    x = pullback.tensor(A)
    assert x.astype(float, copy=False) is x
    assert x.astype(float).data_ptr() != x.data_ptr()
    assert x.astype(int).dtype == pullback.int64
    with pytest.raises(TypeError, match=r"dtype"):
        x.astype("nonsense")


def test_copy_and_conjugate() -> None:
    compared(lambda x: x.copy() * 2, A)
    compared(lambda x: x.conjugate() * 2, A)
    compared(lambda z: z.conjugate() * 2, A + 1j)
    x = pullback.tensor(A)
    y = x.copy()
    y[0] = 0
    np.testing.assert_array_equal(x.numpy(), A)


# Copies ---------------------------------------------------------------------------------------------------------------

COPYING = [
    *("np.take(x, 0)", "np.take(x, 0, axis=0)", "np.take(x, 1, 1)", "np.take(x, np.int64(5))", "np.block(x)"),
    *("np.conjugate(x)", "np.conj(x)", "np.positive(x)", "np.roll(x, 0)", "np.tile(x, 1)"),
    *(f"np.pad(x, 0, mode={mode!r})" for mode in ("constant", "edge", "wrap", "reflect", "symmetric")),
    *("np.insert(x, [], np.zeros((0, 3)), 0)", "np.delete(x, [], 0)", "np.append(x, np.zeros((0, 3)), 0)"),
    *("np.concatenate([x])", "np.resize(x, (2, 3))", "np.median(x, axis=())", "np.nan_to_num(x)"),
    since("2.1.0", "np.clip(x, None, None)"),
]


@pytest.mark.parametrize("code", COPYING)
def test_what_numpy_copies_is_no_view(code: str) -> None:
    call = eval(f"lambda x: {code}", {"np": np})
    compared(call, A)
    x = pullback.tensor(A)
    call(x)[...] = 9.0
    np.testing.assert_array_equal(x.numpy(), A)


def test_rows_are_exchanged_by_way_of_take() -> None:
    def exchanged(x: Any) -> Any:
        x = x * 1
        first = np.take(x, 0, axis=0)
        x[0] = x[1]
        x[1] = first
        return x

    compared(exchanged, A)


# Positions and coefficients as NumPy reads them -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.take(x, np.array([True, False]), axis=0),
        lambda x: np.take(x, [[True]], axis=1),
        lambda x: np.take(x, True),
        lambda x: np.take(x, [True, False, True], mode="clip"),
        lambda x: np.take(x, [], axis=0),
        lambda x: np.polyval(np.poly1d([1.0, 2.0, 4.0]), x),
        lambda x: np.convolve(np.poly1d([1.0, 2.0]), x[0]),
        lambda x: np.polymul(np.append([0.0, 0.0], x[0]), [0.0, 1.0, 2.0]),
        lambda x: np.polymul(x[0] * 0, x[0]),
        lambda x: np.polyint(x[0], 2, k=[1.0]),
        lambda x: np.polyint(x[0], 3, k=x[1, :1]),
        lambda x: np.polyint(x[0], 2, k=[x[1, 0], 2.0]),
        lambda x: np.polyint(x[0], 1, k=[1.0, 2.0]),
        lambda x: np.polyint(x[0], 0),
        lambda x: np.polyint(x[0], 1, k=np.float64(2.0)),
        lambda x: np.trapezoid(x, dx=np.array([1.0, 2.0])),
        lambda x: np.trapezoid(x, dx=[1.0, 2.0]),
        lambda x: np.trapezoid(x, dx=x[0, :2]),
        lambda x: np.trapezoid(x, dx=np.array([[1.0, 2.0, 3.0]]), axis=0),
        lambda x: np.trapezoid([1.0, 2.0, 4.0], dx=x[:, :2]),
        lambda x: np.cov(x[:1], rowvar=False, ddof=0),
        lambda x: np.cov(x[:1], x[1:], rowvar=False, ddof=0) if x.shape[0] < 2 else np.cov(x, x, False),
        lambda x: np.cov(x[0], rowvar=False),
        lambda x: np.cov(x[0], x[1:], rowvar=False),
        lambda x: np.insert(x, [1], [[7.0], [8.0]], axis=0) if x.ndim < 2 else np.insert(x[0], [1], [7.0, 8.0]),
        lambda x: np.insert(x, [1], np.ones((2, 3)), axis=0),
        since("2.2.0", lambda x: np.insert(x, np.array([True, False]), 7.0, axis=0)),
        lambda x: np.insert(x, 1, [7.0, 8.0], axis=1),
        lambda x: np.insert(x, [0, 2], x[:, :2] * 2, axis=1),
        lambda x: np.insert(np.zeros(2), 1, x[0]),
        lambda x: np.insert(x, slice(0, 2), [7.0, 8.0]),
        lambda x: np.insert(x, -1, True),
        lambda x: np.piecewise(x[0], np.stack([x[0] < 0.5, x[0] > 0.9]), [lambda v: v**2, np.sin, 3.0]),
        lambda x: np.piecewise(x[0], [[True, False, True], [False, True, False]], [lambda v: v**2, np.sin]),
        lambda x: np.piecewise(x[:, :2], [[True, False], [False, True]], [lambda v: v**2, np.sin]),
        lambda x: np.piecewise(x[:, :2], np.array([[True, False], [False, True]]), [lambda v: v**2, np.sin]),
        lambda x: np.piecewise(x[0, 0], [x[0, 0] < 9, x[0, 0] > 9], [lambda v: v**2, np.sin]),
        lambda x: np.piecewise(x, x[None] < 0.5, [lambda v: v**2, 1.0]),
        lambda x: np.average(x[None], axis=(0, 2), weights=[[1.0, 2.0, 4.0]]),
        lambda x: np.average(x, axis=(1, 0), weights=[[1.0, 2.0], [4.0, 3.0], [0.5, 1.0]]),
        lambda x: np.average(x[None], axis=(-1, 0), weights=x[:1].T, keepdims=True),
        lambda x: np.average(x, axis=(1,), weights=[1.0, 2.0, 4.0]),
        since("2.1.0", lambda x: np.clip(x, None, None)),
    ],
)
def test_arguments_are_read_as_by_numpy(call: Callable[..., Any]) -> None:
    compared(call, A)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.polyval(x, np.poly1d([1.0, 2.0])),
        lambda x: np.polyadd(np.poly1d([1.0, 2.0]), x),
        lambda x: np.polysub(x, np.poly1d([1.0, 2.0])),
        lambda x: np.polymul(x, np.poly1d([1.0, 2.0, 0.0])),
    ],
)
def test_a_polynomial_object_is_its_coefficients(call: Callable[..., Any]) -> None:
    np.testing.assert_allclose(call(pullback.tensor(A[0])).numpy(), call(A[0]).coeffs, strict=True)
    assert gradcheck(call, [pullback.tensor(A[0], requires_grad=True)])


@pytest.mark.parametrize("dtype", [complex, np.complex128])
@pytest.mark.parametrize("moment", [np.var, np.std, np.nanvar, np.nanstd])
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_a_moment_has_the_dtype_that_is_asked_for(moment: Callable[..., Any], dtype: Any) -> None:
    compared(lambda x: moment(x, axis=1, dtype=dtype), A)


@pytest.mark.parametrize("dtype", [int, np.int32, pullback.int64])
def test_a_grid_of_integers_is_rounded_down(dtype: Any) -> None:
    for ends in ((-2.6, 2.3), (2.3, -2.6)):
        low, high = (pullback.tensor(end, dtype=pullback.float64) for end in ends)
        assert np.linspace(low, high, 6, dtype=dtype).tolist() == np.linspace(*ends, 6, dtype=int).tolist()


def test_values_take_the_dtype_of_the_array_they_are_inserted_in() -> None:
    for array in (np.arange(3), np.arange(3, dtype=np.float32)):
        found = np.insert(array, 1, pullback.tensor([1.7, 2.2]))
        np.testing.assert_array_equal(found.numpy(), np.insert(array, 1, [1.7, 2.2]), strict=True)
    with pytest.raises(TypeError, match=r"gradient would be lost(.|\n)*arr.astype\(float\)"):
        np.insert(np.arange(3), 1, pullback.tensor(1.7, requires_grad=True))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.interp(x, [0.0, 1.0, 2.0], [1.0, 2.0]),
        lambda x: np.interp(x, [0.0, 1.0], [1.0, 2.0, 3.0], period=3.0),
        lambda x: np.interp(x, [], []),
        lambda x: np.interp(x, [[0.0, 1.0]], [[0.0, 1.0]]),
        lambda x: np.polyint(x[0], 3, k=[1.0, 2.0]),
        lambda x: np.polyint(x[0], -1),
        lambda x: np.polyder(x[0], -1),
        lambda x: np.insert(x, [0, 1], [1.0, 2.0, 3.0]),
    ],
)
def test_what_numpy_refuses_is_refused(call: Callable[..., Any]) -> None:
    for x in (A, pullback.tensor(A)):
        with pytest.raises(ValueError, match=r"\w"):
            call(x)


def test_the_edges_of_a_histogram_follow_the_ends() -> None:
    def edges(x: Any) -> Any:
        return np.histogram_bin_edges(x, 4)

    compared(edges, A, forward=False)
    compared(lambda x: np.histogram_bin_edges(x, [0.0, 1.0]), A)
    x = pullback.tensor(A, requires_grad=True)
    for bins in (4, "sturges", [0.1, 0.5]):
        assert np.array_equal(np.histogram_bin_edges(x, bins), np.histogram(x, bins)[1])
    assert gradcheck(edges, [x])


def test_coefficients_of_a_batch_keep_the_zeros_in_front() -> None:
    batch = pullback.tensor([[0.0, 2.0], [1.0, 3.0]])
    found = pullback.vmap(lambda p: np.polymul(p, [1.0, 1.0]))(batch)
    assert found.tolist() == [[0.0, 2.0, 2.0], [1.0, 4.0, 3.0]]


def test_a_mask_may_be_a_tensor() -> None:
    mask = np.array([True, False, True])
    for call in (
        lambda m: np.sum(A[0], where=m),
        lambda m: np.max(A[0], where=m, initial=0.0),
        lambda m: np.add(A[0], 1.0, where=m, out=np.zeros(3)),
    ):
        assert np.array_equal(call(pullback.tensor(mask)), call(mask))
    with pytest.raises(TypeError, match=r"^numpy.add.reduce\(\) of a Tensor got an unexpected .*'where'"):
        np.add.reduce(pullback.tensor(A[0]), where=mask)


@pytest.mark.parametrize("function", [np.poly, np.roots, np.trim_zeros, np.spacing, np.union1d])
def test_a_function_without_a_rule_says_what_to_write_inside_of_a_transform(function: Callable[..., Any]) -> None:
    t = pullback.tensor(A)
    call = (lambda x: function(x, x)) if function is np.union1d else function
    words = rf"^numpy.{function.__name__}\(\) has no rule(.|\n)*inside of {{}}\(\)(.|\n)*What to do: write"
    with pytest.raises(RuntimeError, match=words.format("vmap")):
        pullback.vmap(call)(t)
    with pytest.raises(RuntimeError, match=words.format("jvp")):
        pullback.func.jvp(call, (t[0],), (t[1],))


# Methods whose results are PyTorch's ----------------------------------------------------------------------------------

POINTS = [[0.0, 1.0], [2.0, 0.5], [-1.0, 3.0]]
TAKEN: dict[str, Callable[[Any], Any]] = {
    "unpacked": lambda t: (lambda a, b: a)(*t.max(axis=0)),
    "indexed": lambda t: t.max(axis=0)[0],
    "the last": lambda t: t.min(axis=1)[-1],
    "iterated": lambda t: list(t.min(axis=0)),
    "keepdims": lambda t: t.max(0, keepdims=True)[0],
    "summed": lambda t: sum(t.max(axis=0)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_pair_that_is_taken_apart_where_an_array_has_values_is_told_of(name: str) -> None:
    t = pullback.tensor(POINTS, requires_grad=True)
    with pytest.warns(UserWarning, match=r"(?s)a pair of values and indices.*numpy\.m(ax|in)\(t, axis=0\)") as caught:
        TAKEN[name](t)
    assert {w.filename for w in caught} == {__file__}


def test_a_pair_that_numpy_takes_apart_is_told_of_at_the_line_that_calls_numpy() -> None:
    t = pullback.tensor(POINTS)
    with pytest.warns(UserWarning, match=r"a pair of values and indices") as caught:
        np.sort(t.max(axis=0))
    assert {w.filename for w in caught} == {__file__}


def test_a_pair_of_pytorchs_names_is_taken_apart_as_there() -> None:
    t = pullback.tensor(POINTS, requires_grad=True)
    values, indices = t.max(0)  # any warning would be an error
    again, (least, _) = t.max(dim=0)[0], t.min(dim=0)
    spelled = t.max(axis=0)
    assert values.tolist() == again.tolist() == spelled.values.tolist() == [2.0, 3.0]
    assert indices.tolist() == spelled.indices.tolist() == [1, 2]
    assert least.tolist() == [-1.0, 0.5]
    assert isinstance(spelled, pullback.return_types.max)
    assert repr(spelled) == repr(t.max(0))
    kept = pickle.loads(pickle.dumps(t.detach().max(axis=0)))
    assert type(kept) is pullback.return_types.max
    assert pullback.compile(lambda t: t.max(axis=0), backend="numpy")(t).values.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("used", [lambda t: t.max(axis=1)[:, None], lambda t: t.max(1)[:, None]])
def test_a_pair_has_no_axes(used: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"(?s)tuple indices must be integers.*numpy\.max\(t, axis=0\)"):
        used(pullback.tensor(POINTS))


def test_a_pair_has_no_methods_of_tensors() -> None:
    with pytest.raises(AttributeError, match=r"(?s)'min' object has no attribute 'sum'.*numpy\.min\(t, axis=0\)"):
        pullback.tensor(POINTS).min(axis=0).sum()
    assert not hasattr(pullback.tensor(POINTS).min(0), "__array__")


def test_the_size_is_a_number_and_is_called() -> None:
    t = pullback.tensor(POINTS, requires_grad=True)
    assert (t.size, t.size - 1, t.size == 6, 2 * t.size, [*range(t.size)][-1]) == (6, 5, True, 12, 5)
    assert (t.size(), t.size(0), t.size(-1), t.size(dim=1)) == (pullback.Size([3, 2]), 3, 2, 2)
    assert pullback.Tensor.size(t) == t.shape
    assert np.zeros(t.size).shape == (6,)
    (t.sum() / t.size).backward()
    np.testing.assert_allclose(t.grad.numpy(), np.full((3, 2), 1 / 6), rtol=1e-6)
    assert pullback.vmap(lambda row: row * row.size)(t.detach()).tolist() == (2 * t.detach()).tolist()
    assert pullback.compile(lambda t: t.sum() / t.size, backend="numpy")(t).item() == (t.sum() / 6).item()
    assert pickle.loads(pickle.dumps(t.size)) == 6
    with pytest.raises(IndexError, match="Dimension out of range"):
        t.size(2)
    with pytest.raises(TypeError, match="descriptor 'size'"):
        pullback.Tensor.size([1.0])  # type: ignore[arg-type]
