"""Calls of `pullback.scipy` without a Tensor are SciPy's own, in value, type and error; objects meet Tensors later."""

from __future__ import annotations

import copy
import importlib
import inspect
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse.linalg
import scipy.stats

import pullback
import pullback.scipy
from pullback import func
from pullback.scipy import fft, interpolate, linalg, mirror, ndimage, optimize, signal, sparse, special, stats
from pullback.scipy.plain_calls import OfArrays, takes_functions
from pullback.scipy.sparse.constant_arrays import MeetsTensors
from pullback.scipy.sparse.linalg import cg, factorized, splu, spsolve
from pullback.tensor.nested import leaves

mirror.load()
FUNCTIONS = [
    name
    for name, entry in mirror.MIRRORS.items()
    if (inspect.isroutine(entry.function) or inspect.isclass(entry.function))
    and not takes_functions(name, entry.function)
]

RNG = np.random.default_rng(3)
A = RNG.normal(size=(4, 4)) + 5 * np.eye(4)
SYMMETRIC = A @ A.T
V, W = RNG.uniform(0.2, 0.8, size=4), RNG.uniform(0.2, 0.8, size=4)
X = np.arange(8.0)
LONG = RNG.normal(size=64)
SPARSE = scipy.sparse.csc_array(np.tril(SYMMETRIC))
SOS = np.array([[0.2, 0.1, 0.0, 1.0, -0.3, 0.1]])
GUESSES: list[tuple[Any, ...]] = [
    (V,), (V, W), (A,), (SYMMETRIC, V), (A, A), (2, V), (2, 3, 0.5), (0.3, 0.4, 0.5), (1, 0.3, 0.4, 0.2), (LONG,),
]  # fmt: skip
"""Arguments: SciPy's function gets the first that it takes."""

GIVEN: dict[str, tuple[Any, ...]] = {
    "interpolate.PPoly": (A[:, :3], X[:4]),
    "interpolate.BSpline": (X, V, 3),
    "interpolate.make_interp_spline": (X[:4], V),
    "interpolate.CubicHermiteSpline": (X[:4], V, W),
    "interpolate.pchip_interpolate": (X[:4], V, 1.5),
    "interpolate.RegularGridInterpolator": ((X[:4], X[:4]), A),
    "interpolate.interpn": ((X[:4], X[:4]), A, [[1.5, 0.5]]),
    "interpolate.RBFInterpolator": (X[:4, None], V),
    **{f"interpolate.{n}": (X[:4], V) for n in ("PchipInterpolator", "Akima1DInterpolator", "CubicSpline", "interp1d")},
    "linalg.solve_banded": ((1, 1), A[:3], V),
    "linalg.solveh_banded": (SYMMETRIC.diagonal()[None], V),
    "linalg.cho_solve": ((np.linalg.cholesky(SYMMETRIC).T, False), V),
    "linalg.lu_solve": (scipy.linalg.lu_factor(A), V),
    "linalg.solve_sylvester": (A, A, A),
    "linalg.solve_continuous_are": (A, A, SYMMETRIC, np.eye(4)),
    "linalg.solve_discrete_are": (A, A, SYMMETRIC, np.eye(4)),
    "linalg.fractional_matrix_power": (SYMMETRIC, 0.3),
    "linalg.leslie": (V, W[1:]),
    "linalg.convolution_matrix": (V, 3),
    "fft.fht": (V, 0.1, 0.3),
    "fft.ifht": (V, 0.1, 0.3),
    "signal.lfilter": ([0.2, 0.3], [1.0, -0.4], LONG),
    "signal.lfilter_zi": ([0.2, 0.3], [1.0, -0.4]),
    "signal.filtfilt": ([0.2, 0.3], [1.0, -0.4], LONG),
    "signal.sosfilt": (SOS, LONG),
    "signal.sosfilt_zi": (SOS,),
    "signal.sosfiltfilt": (SOS, LONG),
    "signal.resample": (LONG, 20),
    "signal.resample_poly": (LONG, 2, 3),
    "signal.decimate": (LONG, 2),
    "signal.savgol_filter": (LONG, 5, 2),
    "signal.istft": (scipy.signal.stft(LONG, nperseg=16)[2], 1.0, "hann", 16),
    "ndimage.map_coordinates": (A, [[0.5, 1.5], [1.0, 2.0]]),
    "ndimage.affine_transform": (A, np.eye(2)),
    "ndimage.shift": (A, 0.3),
    "ndimage.zoom": (A, 1.5),
    "ndimage.rotate": (A, 30.0),
    "ndimage.rank_filter": (A, 1, 3),
    "ndimage.percentile_filter": (A, 40, 3),
    "spatial.distance.seuclidean": (V, W, W),
    "spatial.distance.mahalanobis": (V, W, SYMMETRIC),
    "spatial.distance.squareform": (RNG.uniform(size=6),),
    "sparse.diags_array": (V,),
    "sparse.eye_array": (3,),
    "sparse.linalg.expm_multiply": (SPARSE, V),
    "sparse.linalg.spsolve": (SPARSE, V),
    "sparse.linalg.spsolve_triangular": (SPARSE.tocsr(), V),
    "sparse.linalg.eigsh": (scipy.sparse.csc_array(SYMMETRIC), 2, None, None, "LM", V),
    "sparse.linalg.eigs": (SPARSE, 2, None, None, "LM", V),
    "sparse.linalg.svds": (SPARSE, 2, None, 0.0, "LM", V),
    "sparse.linalg.splu": (SPARSE,),
    "sparse.linalg.factorized": (SPARSE,),
    "sparse.linalg.norm": (SPARSE,),
    "special.multigammaln": (4.5, 2),
    "stats.gaussian_kde": (V,),
    "stats.linregress": (V, W),
    **{f"ndimage.{n}": (A, 3) for n in "minimum_filter maximum_filter median_filter grey_erosion grey_dilation "
       "grey_opening grey_closing minimum_filter1d maximum_filter1d uniform_filter1d gaussian_filter "
       "gaussian_filter1d gaussian_laplace gaussian_gradient_magnitude".split()},
    **{f"ndimage.fourier_{n}": (A, 0.7) for n in "gaussian uniform ellipsoid shift".split()},
}  # fmt: skip


def theirs(name: str) -> Any:
    package, _, own = name.rpartition(".")
    return getattr(importlib.import_module(f"scipy.{package}"), own)


def arguments(name: str) -> tuple[Any, ...]:
    """Arguments that SciPy takes."""
    if name in GIVEN:
        return GIVEN[name]
    for guess in GUESSES:
        try:
            with np.errstate(all="ignore"):
                theirs(name)(*copy.deepcopy(guess))
        except (TypeError, ValueError, IndexError):
            continue
        return guess
    raise AssertionError(f"no arguments fit {name}: add some")


def same(found: Any, expected: Any) -> None:
    """The same type and the same bits."""
    if isinstance(found, MeetsTensors):
        assert isinstance(found, type(expected))
    else:
        assert type(found) is type(expected)
    if scipy.sparse.issparse(expected):
        assert found.format == expected.format
        found, expected = found.toarray(), expected.toarray()
    if isinstance(expected, (list, tuple)):
        for mine, other in zip(found, expected, strict=True):
            same(mine, other)
    elif isinstance(expected, (np.ndarray, np.generic, float, int)):
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_on_arrays_is_scipys(name: str) -> None:
    given, function = arguments(name), mirror.MIRRORS[name].function
    found, expected = function(*copy.deepcopy(given)), theirs(name)(*copy.deepcopy(given))
    if isinstance(found, OfArrays):
        assert type(found._plain) is type(expected)
    else:
        same(found, expected)
        assert not any(isinstance(leaf, pullback.Tensor) for leaf in leaves(found))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex64])
def test_dtypes_are_scipys(dtype: Any) -> None:
    x = np.array([1, 2, 4, 3], dtype)
    for call in (
        lambda m: m.fft.fft(x),
        lambda m: m.signal.convolve(x, x),
        lambda m: m.linalg.norm(x),
        lambda m: m.linalg.toeplitz(x),
        lambda m: m.sparse.csr_array(np.diag(x)) @ x,
        lambda m: m.sparse.csr_array(np.diag(x)).toarray(),
        *([lambda m: m.ndimage.gaussian_filter(x, 1.0), lambda m: m.special.erf(x)] if dtype != np.complex64 else []),
    ):
        same(call(pullback.scipy), call(scipy))


def test_errors_are_scipys() -> None:
    for call in (
        lambda m: m.linalg.solve(np.eye(2), np.ones(3)),
        lambda m: m.linalg.cholesky(-np.eye(2)),
        lambda m: m.interpolate.CubicSpline([0.0, 0.0], [1.0, 2.0]),
        lambda m: m.signal.lfilter([], [], [1.0]),
        lambda m: m.sparse.csr_array((np.ones(3), [0], [0, 1])),
        lambda m: m.stats.norm.logpdf(),
    ):
        with pytest.raises(Exception) as expected:  # noqa: PT011
            call(scipy)
        with pytest.raises(expected.type) as found:
            call(pullback.scipy)
        assert str(found.value) == str(expected.value)


# What a Tensor is found in --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda t: special.logsumexp([t, 1.0]),
        lambda t: special.logsumexp(np.array([1.0, 2.0]), b=[t, 2.0]),
        lambda t: linalg.solve(np.eye(2), t * np.ones(2)),
        lambda t: interpolate.CubicSpline([0.0, 1.0, 2.0], [t, 1.0, 3.0])(0.5),
        lambda t: interpolate.CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 3.0])(t),
        lambda t: interpolate.CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 3.0])([0.1, t]),
        lambda t: interpolate.CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 3.0]).integrate(0.0, t),
        lambda t: interpolate.make_interp_spline(X, X**2).derivative()(t),
        lambda t: interpolate.RegularGridInterpolator(([0.0, 1.0],), [0.0, 3.0])([t - 1]),
        lambda t: stats.norm.logpdf(1.0, scale=t),
        lambda t: stats.norm(0.0, t).logpdf(1.0),
        lambda t: stats.norm(0.0, 1.0).logpdf(t),
        lambda t: stats.poisson.logpmf(3, t),
        lambda t: stats.multivariate_normal.logpdf([1.0, 1.0], cov=t * np.eye(2)),
        lambda t: stats.gaussian_kde([0.0, 1.0, 3.0]).logpdf(t),
        lambda t: sparse.csr_array(np.eye(2)) @ (t * np.ones(2)),
        lambda t: (t * np.ones(2)) @ sparse.csr_array(np.eye(2)),
        lambda t: (t * sparse.csr_array(np.eye(2))).toarray(),
        lambda t: (sparse.eye_array(2) / t).sum(),
        lambda t: spsolve(sparse.csc_array(np.eye(2)), t * np.ones(2)),
        lambda t: spsolve(sparse.eye_array(2) + sparse.diags_array([t, t]), np.ones(2)),
        lambda t: spsolve(sparse.diags_array([t, t]) - sparse.eye_array(2), np.ones(2)),
        lambda t: (sparse.csr_array(np.eye(2)) @ sparse.diags_array([t, t])).toarray(),
        lambda t: (sparse.diags_array([t, t]) @ sparse.csr_array(np.eye(2))).toarray(),
        lambda t: splu(sparse.csc_array(np.eye(2))).solve(t * np.ones(2)),
        lambda t: factorized(sparse.csc_array(np.eye(2)))(t * np.ones(2)),
        lambda t: cg(sparse.csc_array(np.eye(2)), t * np.ones(2))[0],
        lambda t: ndimage.shift(np.ones((3, 3)), [t, 0.0], mode="nearest"),
        lambda t: signal.lfilter([t], [1.0], np.ones(3)),
    ],
)
def test_a_tensor_anywhere_is_differentiated(call: Callable[[Any], Any]) -> None:
    t = pullback.tensor(1.5, dtype=pullback.float64, requires_grad=True)
    assert call(t).requires_grad
    assert pullback.autograd.gradcheck(call, [t])


def test_solvers_call_functions_with_tensors() -> None:
    met = []
    optimize.root(lambda x: (met.append(type(x)), x - 1)[1], 0.0)
    assert all(issubclass(kind, pullback.Tensor) for kind in met)


def test_settings_of_ours_are_kept() -> None:
    a, b = scipy.sparse.csr_array(SYMMETRIC), V
    x, info = cg(a, b, rtol=1e-12, on_failure="nan")
    assert type(x) is np.ndarray
    assert info == 0
    np.testing.assert_allclose(a @ x, b)
    with pytest.raises(RuntimeError, match="not solved to the tolerance"):
        cg(a, b, maxiter=1, rtol=1e-15, on_failure="raise")


# Objects --------------------------------------------------------------------------------------------------------------

T = pullback.tensor([0.4, 1.6, 2.2], dtype=pullback.float64)
OBJECTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "CubicSpline": (lambda m: m.interpolate.CubicSpline(X[:4], V), lambda o, q: o(q)),
    "its derivative": (lambda m: m.interpolate.CubicSpline(X[:4], V).derivative(), lambda o, q: o(q)),
    "its antiderivative": (lambda m: m.interpolate.CubicSpline(X[:4], V).antiderivative(), lambda o, q: o(q, 1)),
    "PPoly": (lambda m: m.interpolate.PPoly(A[:, :3], X[:4]), lambda o, q: o(q)),
    "PchipInterpolator": (lambda m: m.interpolate.PchipInterpolator(X[:4], V), lambda o, q: o(q)),
    "BSpline": (lambda m: m.interpolate.BSpline(X, V, 3), lambda o, q: o(q)),
    "basis_element": (lambda m: m.interpolate.BSpline.basis_element([0.0, 1.0, 2.5, 3.0]), lambda o, q: o(q)),
    "BSpline.construct_fast": (lambda m: m.interpolate.BSpline.construct_fast(X, V, 3), lambda o, q: o(q)),
    "PPoly.construct_fast": (lambda m: m.interpolate.PPoly.construct_fast(A[:, :3], X[:4]), lambda o, q: o(q)),
    "make_interp_spline": (lambda m: m.interpolate.make_interp_spline(X[:4], V), lambda o, q: o(q)),
    "interp1d": (lambda m: m.interpolate.interp1d(X[:4], V), lambda o, q: o(q)),
    "grid": (lambda m: m.interpolate.RegularGridInterpolator((X[:4],), V), lambda o, q: o(q[:, None])),
    "RBFInterpolator": (lambda m: m.interpolate.RBFInterpolator(X[:4, None], V), lambda o, q: o(q[:, None])),
    "gaussian_kde": (lambda m: m.stats.gaussian_kde(V), lambda o, q: o.logpdf(q)),
    "splu": (lambda m: m.sparse.linalg.splu(SPARSE[:3, :3]), lambda o, q: o.solve(q, "T")),
    "factorized": (lambda m: m.sparse.linalg.factorized(SPARSE[:3, :3]), lambda o, q: o(q)),
    "csr_array": (lambda m: m.sparse.csr_array(A[:3, :3]), lambda o, q: o @ q),
    "norm": (lambda m: m.stats.norm(0.3, 2.0), lambda o, q: o.logcdf(q)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_of_arrays_gives_arrays_and_meets_tensors(name: str) -> None:
    make, use = OBJECTS[name]
    ours, plain = make(pullback.scipy), make(scipy)
    same(use(ours, T.numpy()), use(plain, T.numpy()))
    t = T.clone().requires_grad_()
    found = use(ours, t)
    np.testing.assert_allclose(found.detach().numpy(), use(plain, T.numpy()), rtol=1e-12)
    assert pullback.autograd.gradcheck(lambda t: use(ours, t), [t])
    assert type(use(ours, T.numpy())) is np.ndarray  # also after a Tensor came


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_copied_pickled_compiled_and_mapped(name: str) -> None:
    make, use = OBJECTS[name]
    ours = make(pullback.scipy)
    expected = use(make(scipy), T.numpy())
    if name not in ("interp1d", "grid"):  # whether a query lies outside is decided by its value
        compiled = pullback.compile(lambda t: use(ours, t) * 2, backend="numpy")
        for _ in range(2):
            np.testing.assert_allclose(compiled(T).numpy(), 2 * expected, rtol=1e-12)
    batch = func.vmap(lambda t: use(ours, t))(pullback.stack([T, T]))
    np.testing.assert_allclose(batch[1].numpy(), expected, rtol=1e-12)
    if name not in ("splu", "factorized", "norm"):  # SciPy's own factorisation cannot be copied
        for other in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
            np.testing.assert_allclose(use(other, T).numpy(), expected, rtol=1e-12)
            same(use(other, T.numpy()), expected)


def test_an_object_first_used_where_nothing_is_recorded_serves_what_is() -> None:
    spline = interpolate.CubicSpline(X[:4], V)
    with pullback.inference_mode():
        spline(T)
    t = T.clone().requires_grad_()
    spline(t).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), scipy.interpolate.CubicSpline(X[:4], V)(T.numpy(), 1))


def test_arrays_that_are_written_to_later_change_no_object() -> None:
    y, a = V.copy(), SPARSE.copy()
    spline, lu, matrix = interpolate.CubicSpline(X[:4], y), splu(a), sparse.csc_array(a)
    expected = spline(1.5), lu.solve(V)
    matrix @ pullback.tensor(V)
    y[:] = 0.0
    a.data[:] = 0.0
    assert spline(pullback.tensor(1.5)).item() == pytest.approx(expected[0])
    np.testing.assert_allclose(lu.solve(pullback.tensor(V)).numpy(), expected[1])
    np.testing.assert_allclose((matrix @ pullback.tensor(V)).numpy(), matrix @ V)  # SciPy's matrix shares memory


def test_what_changes_an_object_changes_both_sides() -> None:
    kde, plain = stats.gaussian_kde(V), scipy.stats.gaussian_kde(V)
    for change in (lambda k: k.set_bandwidth(0.3), lambda k: k.set_bandwidth("silverman")):
        change(kde)
        change(plain)
        same(kde(T.numpy()), plain(T.numpy()))
        np.testing.assert_allclose(kde(T).numpy(), plain(T.numpy()), rtol=1e-12)
    spline = interpolate.CubicSpline(X[:4], V)
    with pytest.raises(ValueError, match="read-only"):
        spline.c[0] = 0.0
    spline.extrapolate = False
    assert np.isnan(spline(9.0))
    assert np.isnan(spline(pullback.tensor(9.0)).item())


def test_objects_have_what_scipys_have() -> None:
    spline, plain = interpolate.CubicSpline(X[:4], V), scipy.interpolate.CubicSpline(X[:4], V)
    same(spline.c, plain.c)
    same(spline.roots(), plain.roots())
    assert {"c", "x", "roots", "__call__"} <= {*dir(spline)}
    assert repr(spline) == repr(spline._plain)
    with pytest.raises(AttributeError, match="nothing"):
        spline.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="roots"):
        spline.roots(pullback.tensor(0.0))

    class Own(interpolate.CubicSpline):
        pass

    assert isinstance(Own(X[:4], V), interpolate.CubicSpline)
    assert isinstance(Own(X[:4], V)(1.0), pullback.Tensor)


def test_what_was_made_of_an_object_stays_as_it_is_when_that_is_changed() -> None:
    spline, plain = interpolate.CubicSpline(X[:4], V), scipy.interpolate.CubicSpline(X[:4], V)
    slope, other = spline.derivative(), plain.derivative()
    for each in (spline, plain):
        each.extrapolate = False
    q = np.array([1.0, 9.0])
    same(slope(q), other(q))
    np.testing.assert_allclose(slope(pullback.tensor(q)).numpy(), other(q))
    np.testing.assert_allclose(spline.derivative()(pullback.tensor(q)).numpy(), plain.derivative()(q))


def test_an_object_whose_change_has_no_derivative_takes_no_tensor_any_more() -> None:
    c, x = A[:, :3], X[:4]
    poly, plain = interpolate.PPoly(c, x), scipy.interpolate.PPoly(c, x)
    poly(T)
    for each in (poly, plain):
        each.extend(c[:, :1], [9.0])
    same(poly(np.array([8.0])), plain(np.array([8.0])))
    with pytest.raises(TypeError, match=r"changed by extend\(\)(.|\n)*make another object"):
        poly(T)


# Sparse matrices ------------------------------------------------------------------------------------------------------

B = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [4.0, 0.0, 5.0]])
SPARSE_CALLS: list[Callable[[Any], Any]] = [
    lambda a: a @ np.ones(3),
    lambda a: np.ones(3) @ a,
    lambda a: a @ B,
    lambda a: a @ a,
    lambda a: 2 * a - a / 3 + a,
    lambda a: -a,
    lambda a: abs(a),
    lambda a: a**2,
    lambda a: a.T,
    lambda a: a.transpose().conj(),
    lambda a: a.tocsc().tocoo().tocsr(),
    lambda a: a.toarray(),
    lambda a: a.todense(),
    lambda a: a.diagonal(),
    lambda a: a.sum(),
    lambda a: a.sum(0),
    lambda a: a.sum(axis=1),
    lambda a: a.dot(np.ones(3)),
    lambda a: a.data,
    lambda a: (a.indices, a.indptr),
    lambda a: a.dtype,
    lambda a: (a.nnz, a.shape, a.ndim, a.format),
    lambda a: a[1:, :2],
    lambda a: a[1],
    lambda a: a[0, 2],
    lambda a: a.power(3),
    lambda a: a.multiply(a),
    lambda a: a.maximum(a.T),
    lambda a: a.tolil(),
    lambda a: a.todok(),
    lambda a: a.nonzero(),
    lambda a: a.max(),
    lambda a: a @ scipy.sparse.csr_array(B),
    lambda a: scipy.sparse.csr_array(B) @ a,
]


@pytest.mark.parametrize("call", SPARSE_CALLS)
def test_a_sparse_matrix_of_arrays_is_scipys(call: Callable[[Any], Any]) -> None:
    same(call(sparse.csr_array(B)), call(scipy.sparse.csr_array(B)))


@pytest.mark.parametrize(
    "call", [c for c in SPARSE_CALLS[:17] if c is not SPARSE_CALLS[6] and c is not SPARSE_CALLS[7]]
)
def test_what_it_gives_meets_tensors(call: Callable[[Any], Any]) -> None:
    found, expected = call(sparse.csr_array(B)), call(scipy.sparse.csr_array(B))
    if isinstance(found, MeetsTensors):
        t = pullback.ones(found.shape[1], dtype=pullback.float64, requires_grad=True)
        np.testing.assert_allclose((found @ t).detach().numpy(), expected @ np.ones(3))
        assert pullback.autograd.gradcheck(lambda t: found @ t, [t])


def test_elements_that_are_set_reach_products_with_tensors() -> None:
    data = np.array([2.0, 3.0, 4.0])
    a = sparse.csr_array((data, ([0, 1, 1], [0, 0, 1])), shape=(2, 2))
    plain, t = scipy.sparse.csr_array(a), pullback.ones(2, dtype=pullback.float64)

    def check() -> None:
        np.testing.assert_array_equal((a @ t).numpy(), scipy.sparse.csr_array(a) @ np.ones(2))
        np.testing.assert_array_equal((a @ t).numpy(), a @ np.ones(2))

    check()
    a[0, 0] = 9.0
    check()
    a.data[1] = np.nan
    check()
    a.data[1] = 5.0
    check()
    a.setdiag([1.0, 2.0])
    with pytest.warns(scipy.sparse.SparseEfficiencyWarning):
        a[0, 1] = 7.0
    check()
    a.indices[:] = a.indices[::-1].copy()
    check()
    a.resize((2, 2))
    a.eliminate_zeros()
    check()
    assert plain.shape == (2, 2)


def test_other_formats_and_one_axis_are_scipys_and_meet_no_tensor() -> None:
    a = sparse.eye_array(2, format="lil")
    a[0, 1] = 3.0
    np.testing.assert_array_equal(sparse.csr_array(a).toarray(), [[1.0, 3.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="expected a matrix, found a sparse array of shape"):
        sparse.csr_array(V) @ pullback.tensor(V)


def test_the_values_of_a_matrix_of_tensors_are_assigned_as_scipys() -> None:
    a = sparse.csr_array(pullback.tensor(B))
    t = pullback.tensor(2.0, dtype=pullback.float64, requires_grad=True)
    a.data = a.data * t
    (a @ np.ones(3)).sum().backward()
    assert t.grad.item() == B.sum()


def test_it_is_scipys_to_scipys_functions() -> None:
    a, plain = sparse.csc_array(SPARSE), SPARSE
    assert scipy.sparse.issparse(a)
    assert isinstance(a, scipy.sparse.csc_array)
    same(scipy.sparse.linalg.spsolve(a, V), scipy.sparse.linalg.spsolve(plain, V))
    same(scipy.sparse.linalg.norm(a), scipy.sparse.linalg.norm(plain))
    same(scipy.sparse.hstack([a, a]).toarray(), scipy.sparse.hstack([plain, plain]).toarray())
    same(scipy.sparse.linalg.splu(a).solve(V), scipy.sparse.linalg.splu(plain).solve(V))
    for other in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert type(other) is type(a)
        assert (other @ pullback.tensor(V)).shape == (4,)


def test_a_matrix_with_tensors_gives_tensors() -> None:
    a = sparse.csr_array(pullback.tensor(B))
    assert not isinstance(a, MeetsTensors)
    for found in (a @ np.ones(3), a.data, a.toarray(), a.sum(), spsolve(a.tocsc(), np.ones(3))):
        assert isinstance(found, pullback.Tensor)
    assert all(isinstance(m @ np.ones(3), pullback.Tensor) for m in (a + sparse.eye_array(3), sparse.eye_array(3) - a))


def test_the_program_of_a_person_computes_its_constants_as_before() -> None:
    """`std` of a Tensor divides by n - 1; of a constant of the program it must not."""
    y = linalg.solve(A, V)
    assert y.std() == np.std(scipy.linalg.solve(A, V))
    assert fft.rfft(V).real.std() == np.std(scipy.fft.rfft(V).real)
    assert [*itertools.accumulate(stats.norm.pdf(V))] == [*itertools.accumulate(scipy.stats.norm.pdf(V))]
