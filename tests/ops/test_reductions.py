"""Reductions, scans, sorting and statistics where a table of samples does not reach: ties, zeros to the second order,
large inputs, results with names, methods of ufuncs.
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import gradcheck, gradgradcheck
from pullback.ops import TABLE
from tests.oracle import array_of, cases, difference_of_values

inf, nan = float("inf"), float("nan")


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def leaf(values: Any) -> pullback.Tensor:
    """A leaf of double precision."""
    return pullback.tensor(values, dtype=pullback.float64, requires_grad=True)


# Results with names ---------------------------------------------------------------------------------------------------

NAMED = cases("""
L.max(x, 0) | L.min(x, 0) | L.median(x, 0) | L.nanmedian(x, 0) | L.mode(x) | L.kthvalue(x, 2) | L.sort(x) | L.topk(x, 2)
L.cummax(x, 0) | L.cummin(x, 0) | L.aminmax(x) | L.histogram(x, 2)
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", NAMED)
def test_results_with_names_print_as_those_of_torch(torch: ModuleType, code: str) -> None:
    found, expected = (eval(code, {"L": lib, "x": lib.tensor([3.0, 1.0, 2.0])}) for lib in (pullback, torch))
    assert repr(found) == repr(expected).replace("torch.return_types", "pullback.return_types")
    assert isinstance(found, tuple)
    assert type(found).__name__ == type(expected).__name__.rpartition(".")[2]
    fields = [
        name for name in dir(expected) if not name.startswith("_") and isinstance(getattr(expected, name), torch.Tensor)
    ]
    assert sorted(found._fields) == sorted(fields)


@pytest.mark.parametrize("code", NAMED)
def test_results_with_names_are_public_and_can_be_pickled(code: str) -> None:
    found = eval(code, {"L": pullback, "x": pullback.tensor([3.0, 1.0, 2.0])})
    assert getattr(pullback.return_types, type(found).__name__) is type(found)
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is type(found)
    assert all(pullback.equal(a, b) for a, b in zip(again, found, strict=True))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "args"),
    [
        *((name, ()) for name in "sum mean prod var std amax amin median nanmedian nansum norm".split()),
        *((name, (0,)) for name in "max min median sort cummax cumsum cumprod logcumsumexp logsumexp mode".split()),
        *((name, (1,)) for name in "topk kthvalue".split()),
    ],
)
def test_nodes_are_named_as_those_of_torch(torch: ModuleType, name: str, args: tuple[Any, ...]) -> None:
    names = []
    for lib in (pullback, torch):
        out = getattr(lib, name)(lib.ones(3, 3, requires_grad=True), *args)
        names.append((out[0] if isinstance(out, tuple) else out).grad_fn.name())
    assert names[0].rstrip("01").replace("Dim", "") == names[1].rstrip("01")


@pytest.mark.torch
def test_what_is_a_method_in_torch_is_one_and_nothing_else(torch: ModuleType) -> None:
    modules = "counting differences extremes norm quantiles sums scans searching sorting statistics".split()
    family = {f"pullback.ops.reduce.{m}" for m in modules}
    names = [n for n, op in TABLE.items() if op.forward.__module__ in family and not n.startswith("_")]
    assert len(names) > 45
    ours, theirs = ([callable(getattr(lib.Tensor, n, None)) for n in names] for lib in (pullback, torch))
    wrong = [n for n, here, there in zip(names, ours, theirs, strict=True) if here != there]
    assert not wrong
    assert all(hasattr(pullback.Tensor, n) for n in ("cumsum_", "cumprod_"))


# Zeros and ties, to the second order ----------------------------------------------------------------------------------

ZEROS = [[2.0, 3.0, 0.5], [0.0, 3.0, 0.5], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.5], [1.0, 0.0, 2.0, 0.0, 3.0]]


@pytest.mark.parametrize("values", ZEROS, ids=str)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.prod(),
        lambda x: x.prod(0),
        lambda x: x.cumprod(0),
        lambda x: pullback.stack([x, x * x]).prod(1),
        lambda x: pullback.stack([x, x + 1]).cumprod(0),
    ],
    ids=["prod", "prod(0)", "cumprod", "prod of rows", "cumprod of columns"],
)
def test_products_with_zeros_have_both_derivatives(function: Callable[..., Any], values: list[float]) -> None:
    assert gradcheck(function, leaf(values))
    assert gradgradcheck(function, leaf(values))


@pytest.mark.parametrize("values", ZEROS, ids=str)
def test_products_of_complex_numbers_with_zeros_have_both_derivatives(values: list[float]) -> None:
    z = pullback.tensor(np.array(values) * (1 + 0.5j), requires_grad=True)
    for function in (lambda z: z.prod(), lambda z: z.cumprod(0)):
        assert gradcheck(function, z)
        assert gradgradcheck(function, z)


@pytest.mark.torch
def test_products_with_zeros_have_the_third_derivative(torch: ModuleType) -> None:
    found = []
    for lib in (pullback, torch):
        x = lib.tensor([0.0, 2.0, 0.0, 3.0], dtype=lib.float64, requires_grad=True)
        y = (x.cumprod(0) * x).sum() + x.prod()
        for _ in range(2):
            (g,) = lib.autograd.grad(y, x, create_graph=True)
            y = (g * lib.tensor([1.0, 2.0, 3.0, 4.0], dtype=lib.float64)).sum()
        found.append(array_of(lib.autograd.grad(y, x)[0]))
    assert not difference_of_values(*found)


@pytest.mark.parametrize("p", [0.5, 1.5, 2, 2.5, 3, 4, -1, -2, inf, -inf])
def test_norms_have_a_second_derivative_away_from_the_origin(p: float) -> None:
    assert gradgradcheck(lambda x: x.norm(p), leaf([1.5, -0.5, 2.0]))
    assert gradgradcheck(lambda x: x.norm(p, 1, True), leaf([[1.5, -0.5], [0.7, 2.0]]))


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 2.5, 3, 4, -1, -2, inf, -inf])
def test_the_gradient_of_a_norm_at_the_origin_is_zero(p: float) -> None:
    x = leaf([0.0, 0.0])
    x.norm(p).backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_long_running_log_sum_exps_neither_overflow_nor_cancel() -> None:
    rng = np.random.default_rng(0)
    x = leaf(rng.uniform(-900, 900, 60))
    out = x.logcumsumexp(0)
    expected = [np.logaddexp.reduce(x.detach().numpy()[: i + 1]) for i in range(60)]
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-14)
    (g,) = pullback.autograd.grad(out[-1], x)
    np.testing.assert_allclose(g.numpy(), np.exp(x.detach().numpy() - expected[-1]), rtol=1e-12)
    assert gradgradcheck(lambda x: x.logcumsumexp(0), leaf(rng.uniform(-2, 2, 7)))


def test_unique_shares_the_gradient_evenly_among_the_equal() -> None:
    x = leaf([3.0, 1.0, 3.0, 3.0, 1.0, 2.0])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert (inverse.tolist(), counts.tolist()) == ([2, 0, 2, 2, 0, 1], [2, 1, 3])
    (g,) = pullback.autograd.grad(values, x, pullback.tensor([4.0, 5.0, 6.0], dtype=x.dtype))
    assert g.tolist() == [2.0, 2.0, 2.0, 2.0, 2.0, 5.0]
    (g,) = pullback.autograd.grad(x.unique_consecutive(), x, pullback.tensor([1.0, 2.0, 4.0, 5.0, 6.0], dtype=x.dtype))
    assert g.tolist() == [1.0, 2.0, 2.0, 2.0, 5.0, 6.0]


def test_unique_slices_share_the_gradient() -> None:
    x = leaf([[1.0, 2.0, 1.0], [3.0, 4.0, 3.0]])
    values = x.unique(dim=1)
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    (g,) = pullback.autograd.grad(values, x, pullback.tensor([[2.0, 5.0], [4.0, 7.0]], dtype=x.dtype))
    assert g.tolist() == [[1.0, 5.0, 1.0], [2.0, 7.0, 2.0]]


def test_counts_are_linear_in_their_weights() -> None:
    weights, places = leaf([0.5, 1.5, -2.0, 1.0]), pullback.tensor([2, 0, 2, 1])
    assert gradcheck(lambda w: pullback.bincount(places, w, 5), weights)
    assert gradgradcheck(lambda w: pullback.bincount(places, w * w), weights)
    x, edges = leaf([0.1, 0.9, 0.4, 2.0]), leaf([0.0, 0.3, 1.0, 1.5])
    assert gradcheck(lambda w: pullback.histogram(x, edges, weight=w).hist, weights)
    density = [leaf([0.5, 1.5, 2.0, 1.0]), x, edges]
    assert gradcheck(lambda w, x, e: pullback.histogram(x, e, weight=w, density=True).hist, density)
    assert gradcheck(lambda w, x: pullback.histogram(x, 3, weight=w, density=True), density[:2])


# Large inputs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable(descending: bool) -> None:
    x = pullback.tensor(np.random.default_rng(0).integers(0, 5, (3, 2000)))
    values, indices = x.sort(1, descending)
    rows = x.numpy() * (-1 if descending else 1)
    np.testing.assert_array_equal(indices.numpy(), np.lexsort((np.broadcast_to(np.arange(2000), rows.shape), rows)))
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x.numpy(), indices.numpy(), 1))


@pytest.mark.parametrize("n", [15, 255, 256, 1000, 4097, 30000])
@pytest.mark.parametrize("largest", [True, False])
def test_the_largest_are_those_at_the_end_of_the_sorted(n: int, largest: bool) -> None:
    rng = np.random.default_rng(n)
    for array in (
        rng.standard_normal((2, n)),
        np.where(rng.random((2, n)) < 0.2, rng.choice([nan, inf, -inf], (2, n)), rng.standard_normal((2, n))),
        np.full((2, n), nan),
        rng.integers(-50, 50, (2, n)),
        rng.permutation(2 * n).reshape(2, n).astype(np.uint8),
    ):
        for k in (1, 3, 15):
            for dim, t in ((1, pullback.tensor(array)), (0, pullback.tensor(array.T.copy()))):
                values, indices = t.topk(k, dim, largest)
                expected = t.sort(dim, descending=largest)[0].narrow(dim, 0, k)
                np.testing.assert_array_equal(values.numpy(), expected.numpy())
                np.testing.assert_array_equal(np.take_along_axis(t.numpy(), indices.numpy(), dim), expected.numpy())
                places = np.sort(indices.numpy(), dim)
                assert np.all(np.diff(places, axis=dim) > 0)  # none of them twice


@pytest.mark.parametrize("function", [pullback.var, pullback.std], ids=lambda f: f.__name__)
def test_a_large_mean_costs_the_variance_nothing(function: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).standard_normal(1000)
    offset = float(2**26)
    x = (x + offset) - offset
    np.testing.assert_allclose(
        function(pullback.tensor(x + offset)).item(), function(pullback.tensor(x)).item(), rtol=1e-13
    )


# Methods of ufuncs ----------------------------------------------------------------------------------------------------


def test_at_is_refused_where_a_gradient_would_be_lost_and_nothing_is_written() -> None:
    x, a, t = leaf([1.0, 2.0]), np.zeros(3), pullback.zeros(3, dtype=pullback.float64)
    for write in (
        lambda: np.add.at(a, [0, 1], x),
        lambda: np.multiply.at(t, [0, 1], x),
        lambda: np.negative.at(t, [0]),
    ):
        with pytest.raises(TypeError, match=r"\.at\(\) writes in place(.|\n)*numpy\.add\.at"):
            write()
    for kind, index, source in (
        (IndexError, [3], 1.0),
        (ValueError, [0, 1], np.ones(3)),
        (ValueError, [0, 1], leaf([1.0, 2.0, 3.0])),
        (TypeError, [0], "a"),
        (TypeError, [0], 1j),
    ):
        with pytest.raises(kind):
            np.add.at(t, index, source)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        np.add.at(x, [0], 1.0)
    assert x.tolist() == [1.0, 2.0]
    assert not a.any()
    assert not t.any()


AT = {
    "repeated": ((4,), [0, 0, -1], (3,)),
    "a tensor": ((4,), pullback.tensor([1, 1]), (2,)),
    "one number for all": ((4,), np.array([-1, 1]), ()),
    "one element": ((3, 4), (1, 2), ()),
    "a row": ((3, 4), 2, (4,)),
    "a slice": ((4,), slice(1, 3), (2,)),
    "a slice and a list": ((3, 4), (slice(None), [0, 0, 2]), (3, 3)),
    "a block": ((3, 4), np.ix_([0, 2], [1, 1]), (2, 2)),
    "a mask": ((2, 3), np.array([[True, False, True], [False, True, True]]), (4,)),
    "a new axis": ((3, 4), (None, [0, 0]), (1, 2, 4)),
    "nothing": ((4,), np.zeros(0, int), (0,)),
    "a scalar": ((), (), ()),
}


@pytest.mark.parametrize("ufunc", [np.add, np.subtract], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("case", AT)
def test_at_adds_to_a_tensor_what_it_adds_to_an_array(case: str, ufunc: np.ufunc) -> None:
    shape, index, given = AT[case]
    rng = np.random.default_rng(0)
    array, source = rng.normal(size=shape), rng.normal(size=given)
    expected = array.copy()
    ufunc.at(expected, index.numpy() if isinstance(index, pullback.Tensor) else index, source)

    def added(t: pullback.Tensor, source: pullback.Tensor) -> pullback.Tensor:
        t = t * 1
        assert ufunc.at(t, index, source) is None
        return t

    leaves = leaf(array), leaf(source)
    np.testing.assert_allclose(added(*leaves).detach().numpy(), expected, rtol=1e-14)
    assert pullback.autograd.gradcheck(lambda t, source: added(t, source) ** 2, leaves)


def test_at_adds_to_a_part_of_a_tensor_and_converts_what_numpy_converts() -> None:
    t, x = pullback.zeros(2, 3), pullback.ones(2, requires_grad=True)
    np.add.at(t[:, 1], [0, 0], x)
    np.add.at(t, (0, 0), 3)
    assert t.tolist() == [[3.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    t.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_at_of_a_transform() -> None:
    def counted(x: pullback.Tensor) -> pullback.Tensor:
        t = np.zeros_like(x, shape=2)
        np.add.at(t, [0, 1, 1], x)
        return t**2

    x = leaf([[1.0, 2.0, 3.0], [0.0, 1.0, -2.0]])
    assert pullback.vmap(counted)(x).tolist() == [[1.0, 25.0], [0.0, 1.0]]
    assert pullback.compile(counted)(x[0]).tolist() == [1.0, 25.0]
    assert pullback.func.jacfwd(counted)(x[0]).tolist() == [[2.0, 0.0, 0.0], [0.0, 10.0, 10.0]]


def test_at_takes_the_values_of_tensors_without_a_gradient() -> None:
    a = np.zeros(3)
    np.add.at(a, pullback.tensor([0, 2, 2]), pullback.tensor([1.0, 2.0, 3.0]))
    assert a.tolist() == [1.0, 0.0, 5.0]


def test_methods_of_ufuncs_refuse_out() -> None:
    x, a = leaf([1.0, 2.0]), np.zeros(())
    for call in (
        lambda: np.add.reduce(x, out=a),
        lambda: np.multiply.outer(x, x, out=np.zeros((2, 2))),
        lambda: np.add.accumulate(x, out=np.zeros(2)),
        lambda: np.add.reduce(x, where=[True, False]),
        lambda: np.maximum.reduce(x, initial=3.0),
    ):
        with pytest.raises(TypeError, match=r"out=|argument"):
            call()


# NumPy's meaning, where it is not torch's -----------------------------------------------------------------------------


def test_functions_of_numpy_take_integers_as_floats() -> None:
    a = np.array([[1, 5, 2], [4, 4, 3]])
    x = pullback.tensor(a)
    for function in (np.mean, np.var, np.std, np.median, np.average, np.nanmean):
        found = function(x, axis=1)
        assert found.dtype is pullback.float64
        np.testing.assert_allclose(found.numpy(), function(a, axis=1), rtol=1e-15)


def test_missing_values_of_numpy() -> None:
    a = np.array([[1.0, nan, 3.0], [nan, nan, nan]])
    x = pullback.tensor(a)
    for function in (np.nanmax, np.nanmin, np.nanmedian, np.nanmean):
        found = function(x, axis=1)
        with pytest.warns(RuntimeWarning):  # NumPy's, of the second row
            expected = function(a, axis=1)
        np.testing.assert_array_equal(found.numpy(), expected)
    assert np.unique(pullback.tensor([nan, 1.0, nan])).numel() == 2  # one NaN, as NumPy has it
    assert pullback.unique(pullback.tensor([nan, 1.0, nan])).numel() == 3  # two, as torch has it
    assert np.isnan(np.median(x).item())


def test_a_method_of_quantiles_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="weibull"):
        np.quantile(leaf([1.0, 2.0]), 0.5, method="closest_observation")
    with pytest.raises(RuntimeError, match=r"\[0, 1\]"):
        np.quantile(leaf([1.0, 2.0]), 1.5)


def test_averages_refuse_weights_that_do_not_fit() -> None:
    with pytest.raises(TypeError, match="weights"):
        np.average(leaf([[1.0, 2.0]]), weights=[1.0, 2.0, 3.0], axis=1)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_a_variance_without_degrees_of_freedom_is_warned_of(name: str) -> None:
    torch = pytest.importorskip("torch")
    for lib in (pullback, torch):
        with np.errstate(all="ignore"), pytest.warns(UserWarning, match=rf"{name}\(\): degrees of freedom is <= 0"):
            getattr(lib, name)(lib.ones(1, 3), 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            getattr(lib, name)(lib.ones(1, 3), 0, correction=0)
            getattr(lib, name)(lib.ones(1, 3), 1)


# What is asked for wrongly, and the ends of what can be counted -------------------------------------------------------

REFUSED = cases("""
x.max(keepdim=True) | x.min(dim=None, keepdim=True) | x.median(keepdim=True) | x.nanmedian(dim=None, keepdim=True)
x.nanmean(dtype=L.int32) | L.norm(x, dtype=L.int32) | L.norm(x, dtype=L.complex64) | L.histogramdd(x[0], [2, 2])
L.histogramdd(x, [2]) | L.histogramdd(x, "ten") | L.histogramdd(x, 0)
L.histogram(x, L.tensor([0.0, 1.0]), range=(0, 1))
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", REFUSED)
def test_what_is_asked_for_wrongly_is_refused_with_the_error_of_torch(torch: ModuleType, code: str) -> None:
    kinds = []
    for lib in (pullback, torch):
        with pytest.raises((TypeError, RuntimeError)) as info:
            eval(code, {"L": lib, "x": lib.tensor([[1.0, 2.0], [3.0, 4.0]])})
        kinds.append(info.type)
    assert kinds[0] is kinds[1]


PHRASES = [
    ("L.bincount(L.tensor([1, -1]))", "1-d non-negative integral"),
    ("L.bincount(L.tensor([1]), minlength=-1)", "minlength should be >= 0"),
    ("L.bincount(L.tensor([1, 0]), L.ones(3))", "same length"),
    ("L.searchsorted(y, y, side='bad')", "side can only be 'left' or 'right'"),
    ("L.searchsorted(y, y, sorter=L.arange(2))", "boundary and sorter must have the same size"),
    ("L.searchsorted(y, y, sorter=y)", "sorter must be a tensor of long dtype"),
    ("L.searchsorted(L.ones(2, 2), 1)", "only when boundaries tensor dimension is 1"),
    ("L.bucketize(y, L.ones(2, 2))", "boundaries tensor must be 1 dimension"),
    ("L.quantile(L.ones(0), 0.5)", "quantile() input tensor must be non-empty"),
    ("L.quantile(y, L.ones(1, 1))", "quantile() q must be a scalar or 1D tensor"),
    ("L.quantile(y, -1.0)", "quantile() q must be in the range [0, 1] but got -1"),
    ("L.quantile(L.arange(3), 0.5)", "quantile() input tensor must be either float or double dtype"),
    ("L.quantile(y, L.tensor([1]))", "quantile() q tensor must be same dtype as the input tensor"),
    ("L.histc(y, bins=-1)", "bins must be > 0"),
    ("L.histc(y, min=2, max=1)", "max must be larger than min"),
    ("L.histc(y / 0)", "is not finite"),
    ("L.arange(3).mean()", "mean(): could not infer output dtype"),
    ("L.max(L.ones(0, 2), 0)", "Expected reduction dim 0 to have non-zero size"),
]


@pytest.mark.torch
@pytest.mark.parametrize(("code", "phrase"), PHRASES)
def test_errors_have_the_key_phrase_of_those_of_torch(torch: ModuleType, code: str, phrase: str) -> None:
    for lib in (pullback, torch):
        with pytest.raises((RuntimeError, IndexError), match=re.escape(phrase)):
            eval(code, {"L": lib, "y": lib.arange(3.0)})


def test_the_largest_numbers_fall_into_bins() -> None:
    largest = pullback.finfo(pullback.float32).max
    assert pullback.full((3,), largest).histc(4).sum() == 3


@pytest.mark.parametrize("density", [False, True])
def test_boxes_of_points_are_counted_as_numpy_counts_them(density: bool) -> None:
    rng = np.random.default_rng(3)
    points, weights = rng.normal(size=(40, 3)), rng.uniform(size=40)
    given = {"range": [-1.0, 1.0, -2.0, 2.0, -1.0, 2.0], "density": density}
    x, w = pullback.tensor(points), leaf(weights)
    hist, edges = pullback.histogramdd(x, [2, 3, 4], weight=w, **given)
    ends = [(-1, 1), (-2, 2), (-1, 2)]
    expected, expected_edges = np.histogramdd(points, [2, 3, 4], range=ends, weights=weights, density=density)
    np.testing.assert_allclose(hist.detach().numpy(), expected)
    for found, wanted in zip(edges, expected_edges, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted)
    gradcheck(lambda w: pullback.histogramdd(x, [2, 3, 4], weight=w, **given).hist, w)
    # each row of a batch is counted for itself
    rows = pullback.func.vmap(lambda x: pullback.histogramdd(x, [2, 3, 4], **given).hist)(x.reshape(2, 20, 3))
    for row, part in zip(rows, x.reshape(2, 20, 3), strict=True):
        assert pullback.equal(row, pullback.histogramdd(part, [2, 3, 4], **given).hist)


@pytest.mark.parametrize("values", [[complex(inf, 0), 1], [complex(1, -inf), 2j]])
def test_the_norm_of_an_infinite_complex_number_is_infinite(values: list[complex]) -> None:
    x = pullback.tensor(values)
    assert x.norm() == inf
    assert pullback.linalg.vector_norm(x.flip(0)) == inf


@pytest.mark.parametrize("size", [1e-25, 1.0, 1e25])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_standard_deviation_is_found_where_its_square_is_beyond_the_dtype(size: float, dtype: str) -> None:
    values = np.array([1.0, -2.0, 4.0])
    x = pullback.tensor(values * size, dtype=getattr(pullback, dtype), requires_grad=True)
    found = x.std()
    found.backward()
    assert found.item() == pytest.approx(values.std(ddof=1) * size, rel=1e-5)
    slope = (values - values.mean()) / 2 / values.std(ddof=1)
    np.testing.assert_allclose(x.grad.detach().numpy(), slope, rtol=1e-5, atol=1e-6)
    assert pullback.std_mean(x)[0].item() == pytest.approx(found.item())


# Many numbers in single precision -------------------------------------------------------------------------------------

ROWS = np.full((100_001, 3), 0.1, np.float32)  # added up one after the other, they are wrong in the fourth digit

ACCURATE = cases("""
x.sum(0) | x.t().sum(1) | x[:50000].sum(0) | x[None].sum((0, 1)) | x.nansum(0) | x.mean(0) | x.nanmean(0)
L.var_mean(x, 0)[1] | (x + noise)[:, :2].std() | x.norm(dim=0) | x.norm(3, dim=0) | L.linalg.vector_norm(x, 1, 0)
L.linalg.matrix_norm(x, 1) | F.normalize(x, dim=0) | F.cosine_similarity(x, x + 1, dim=0) | L.trapezoid(x, dim=0)
x.cumsum(0) | x.t().cumsum(1) | x.expand(2, *x.shape).cumsum(1) | x.logcumsumexp(0) | L.cumulative_trapezoid(x, dim=0)
x[:30000].repeat(1, 100).cumsum(0) | L.einsum('ij->j', x) | x.sum_to_size(1, 3) | F.adaptive_avg_pool1d(x.t()[None], 1)
L.cdist(x.t(), 2 * x.t(), p=1) | L.cdist(x.t(), 2 * x.t(), p=3) | g(lambda w: x * (x + w), 3)
g(lambda w: w.expand(100001, 3) * x, 1, 3) | g(lambda w: w.repeat(100001, 1) * x, 1, 3)
g(lambda w: w.repeat_interleave(100001, 0) * x, 1, 3)
g(lambda w: F.batch_norm(noise, None, None, w, None, True) * noise, 3)
g(lambda w: F.batch_norm(noise, None, None, None, w, True) * x, 3)
g(lambda w: F.layer_norm(noise, (3,), None, w) * x, 3)
g(lambda w: F.linear(x, L.ones(2, 3).to(x.dtype), w) * 0.1, 2) | g(lambda w: (x + w).logcumsumexp(0), 3)
g(lambda w: w.cumsum(0) * 0.1, 100001) | g(lambda w: L.vmap(lambda row: row * w)(x), 3)
""")


def _in(dtype: Any, code: str, compiled: str = "") -> Any:
    """What a line finds in a dtype; its gradient is that of the sum of what the function g was given makes of zeros."""

    def g(made: Any, *shape: int) -> Any:
        w = pullback.zeros(shape, dtype=dtype, requires_grad=True)
        (made(w)).sum().backward()
        return w.grad

    def work(x: Any, noise: Any) -> Any:
        return eval(code, {"L": pullback, "F": pullback.nn.functional, "x": x, "noise": noise, "g": g})

    made = pullback.compile(work, backend=compiled) if compiled else work
    noise = pullback.from_numpy(np.random.default_rng(0).random(ROWS.shape, np.float32)).to(dtype)
    found = made(pullback.from_numpy(ROWS).to(dtype), noise)
    return found.double().numpy()


@pytest.mark.parametrize("code", ACCURATE)
def test_many_numbers_add_up_in_single_precision(code: str) -> None:
    expected = _in(pullback.float64, code)
    tolerance = 2e-5 * np.abs(expected).max()
    np.testing.assert_allclose(_in(pullback.float32, code), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize(
    "code",
    cases("(2 * x).sum(0) | (x * x).mean(0) | (x[:, ::2] * x[:, ::2]).sum() | x.cumsum(0) | (x * 1j).sum(0).imag"),
)
def test_many_numbers_add_up_in_compiled_programs(code: str, backend: str) -> None:
    expected = _in(pullback.float64, code)
    tolerance = 2e-5 * np.abs(expected).max()
    np.testing.assert_allclose(_in(pullback.float32, code, backend), expected, rtol=0, atol=tolerance)


def test_a_running_logarithm_of_one_complex_number_has_its_own_memory() -> None:
    z = pullback.tensor([1 + 2j, 3j])
    for part in (z[:1], z[:0]):
        part.logcumsumexp(0).fill_(0)
    assert z.tolist() == [1 + 2j, 3j]


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize(
    ("source", "dtype"), [("float64", "int64"), ("complex128", "float64"), ("float32", "uint8"), ("int64", "int8")]
)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_a_scan_of_long_rows_may_narrow_its_dtype(name: str, source: str, dtype: str) -> None:
    values = np.random.default_rng(0).integers(1, 3, size=(5, 700)).astype(source)
    found = getattr(pullback, name)(pullback.tensor(values), 0, dtype=getattr(pullback, dtype))
    expected = getattr(np, name)(values.real.astype(dtype), axis=0, dtype=dtype)
    assert found.dtype is getattr(pullback, dtype)
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("given", ["", "weights", "density", "range"])
def test_numpys_histogram_puts_elements_at_an_edge_where_numpy_does(given: str) -> None:
    rng = np.random.default_rng(len(given))
    for _ in range(60):
        n, m = rng.integers(1, 12), rng.integers(1, 9)
        x, w = rng.integers(-5, 6, size=m) * 0.1, rng.normal(size=m)  # many lie on edges, but for rounding
        named: dict[str, Any] = {"weights": w} if given == "weights" else {}
        named |= {"density": True} if given == "density" else {}
        named |= {"range": (-0.5, 0.5)} if given == "range" else {}
        expected, edges = np.histogram(x, n, **named)
        t = pullback.from_numpy(x).requires_grad_()
        named |= {"weights": pullback.from_numpy(w).requires_grad_()} if given == "weights" else {}
        found, ends = np.histogram(t, n, **named)
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(ends.detach().numpy(), edges)
