"""`pullback.scipy.spatial.distance` against SciPy, and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance as theirs

import pullback
from pullback.scipy import spatial
from pullback.scipy.spatial import distance
from pullback.scipy.spatial.distance import point_sets

from .grid_checks import OfTensors, check_derivatives, numbers, same, same_signatures

ours: Any = OfTensors(distance)
U, V, W = numbers(4, low=0.2), numbers(4, low=0.2, seed=1), numbers(4, low=0.2, seed=2)
A, B = numbers(6, 3, low=0.2), numbers(5, 3, low=0.2)
WEIGHTED = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "braycurtis", "canberra", "cosine", "correlation")
METRICS = (*WEIGHTED, "jensenshannon", "mahalanobis", "minkowski", "seuclidean")


def test_arguments_are_scipys() -> None:
    same_signatures(ours, theirs)


@pytest.mark.parametrize("name", WEIGHTED)
def test_weighted_distances(name: str) -> None:
    for w in (None, W):
        same(getattr(ours, name)(U, V, w), getattr(theirs, name)(U, V, w))
    check_derivatives(getattr(ours, name), U, V, W)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
def test_minkowski(p: Any) -> None:
    for w in (None, W):
        same(ours.minkowski(U, V, p, w), theirs.minkowski(U, V, p, w))
    check_derivatives(lambda u, v: ours.minkowski(u, v, p), U, V)
    check_derivatives(ours.minkowski, U, V, np.array(2.5), W)


def test_distances_with_settings() -> None:
    m = numbers(4, 4)
    m = m @ m.T
    same(ours.mahalanobis(U, V, m), theirs.mahalanobis(U, V, m))
    same(ours.seuclidean(U, V, W), theirs.seuclidean(U, V, W))
    for base in (None, 2.0):
        same(ours.jensenshannon(U, V, base), theirs.jensenshannon(U, V, base))
    zero = np.array([0.0, 1.0, 2.0, 0.0])
    same(ours.jensenshannon(zero, V), theirs.jensenshannon(zero, V))
    check_derivatives(ours.mahalanobis, U, V, m)
    check_derivatives(ours.seuclidean, U, V, W)
    check_derivatives(ours.jensenshannon, U, V)


@pytest.mark.parametrize("metric", METRICS)
def test_sets_of_points(metric: str) -> None:
    same(ours.cdist(A, B, metric), theirs.cdist(A, B, metric), 1e-10)
    same(ours.pdist(A, metric), theirs.pdist(A, metric), 1e-10)
    if metric in WEIGHTED:
        same(ours.cdist(A, B, metric, w=W[:3]), theirs.cdist(A, B, metric, w=W[:3]), 1e-10)
    check_derivatives(lambda a, b: ours.cdist(a, b, metric), A[:4], B[:4])
    check_derivatives(lambda a: ours.pdist(a, metric), A[:5])


@pytest.mark.parametrize("metric", METRICS)
def test_no_nan_at_zero_distance(metric: str) -> None:
    x = pullback.tensor(A, requires_grad=True)
    d = ours.cdist(x, x, metric)
    d.sum().backward(create_graph=True)
    assert np.isfinite(x.grad.detach().numpy()).all()
    (second,) = pullback.autograd.grad(x.grad.sum(), x)
    assert np.isfinite(second.numpy()).all()


def test_zero_distance_has_a_zero_gradient() -> None:
    x = pullback.tensor(A, requires_grad=True)
    ours.cdist(x, A).diagonal().sum().backward()
    assert not x.grad.numpy().any()


def test_square_and_condensed() -> None:
    x = theirs.pdist(A)
    same(ours.squareform(x), theirs.squareform(x))
    same(ours.squareform(theirs.squareform(x)), x)
    check_derivatives(ours.squareform, x)
    with pytest.raises(ValueError, match="Incompatible vector size"):
        ours.squareform(x[:4])


@pytest.mark.parametrize("name", [*WEIGHTED, "minkowski", "seuclidean", "mahalanobis"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_dtypes_are_taken_as_scipy_takes_them(name: str, dtype: Any) -> None:
    u, v = (x + 1j * y if dtype is np.complex128 else x.astype(dtype) for x, y in ((U, W), (V, U)))
    settings = {"seuclidean": [W], "mahalanobis": [np.diag(W)]}.get(name, [])
    try:
        expected = getattr(theirs, name)(u, v, *settings)
    except TypeError as error:
        with pytest.raises(TypeError, match=str(error)):
            getattr(ours, name)(pullback.tensor(u), pullback.tensor(v), *settings)
    else:
        found = getattr(ours, name)(pullback.tensor(u), pullback.tensor(v), *settings)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("where", ["cdist", "pdist"])
def test_what_scipy_refuses_is_its_error(where: str) -> None:
    points = (A,) if where == "pdist" else (A, B)
    for metric in ("nope", "manhattan", "city_block", None, 3):
        with pytest.raises((ValueError, TypeError)) as scipys:
            getattr(theirs, where)(*points, metric)
        with pytest.raises(type(scipys.value), match=str(scipys.value)):
            getattr(ours, where)(*map(pullback.tensor, points), metric)
    with pytest.raises(ValueError, match="Unsupported dtype complex128"):
        getattr(ours, where)(*[pullback.tensor(p + 1j) for p in points])
    for alias, name in point_sets._NAMES.items():
        settings = {"VI": np.eye(A.shape[1])} if name == "mahalanobis" else {}
        found = getattr(ours, where)(*map(pullback.tensor, points), alias, **settings)
        same(found, getattr(theirs, where)(*points, alias, **settings))


def test_bad_input_and_refusals() -> None:
    with pytest.raises(ValueError, match="same number of columns"):
        ours.cdist(A, B[:, :2])
    with pytest.raises(NotImplementedError, match="'hamming' has no derivatives"):
        ours.cdist(A, B, "hamming")
    with pytest.raises(TypeError, match="out="):
        ours.pdist(A, out=np.zeros(15))
    with pytest.raises(ValueError, match="1-D"):
        ours.cosine(A, B)
    with pytest.raises(AttributeError, match="compares booleans"):
        ours.jaccard  # noqa: B018 - the access raises
    with pytest.raises(AttributeError, match="numbers of points"):
        spatial.KDTree  # noqa: B018
    same(ours.cdist(pullback.tensor([[1, 2]]), [[4, 6]]), theirs.cdist([[1, 2]], [[4, 6]]))


@pytest.mark.parametrize("name", ["euclidean", "sqeuclidean", "minkowski", "cosine", "cityblock"])
def test_rows_are_taken_where_scipy_takes_them(name: str) -> None:
    """SciPy 1.18 takes rows of vectors in some of its functions."""
    try:
        expected = getattr(theirs, name)(A, 2 * A)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)):
            getattr(ours, name)(A, 2 * A)
    else:
        same(getattr(ours, name)(pullback.tensor(A), 2 * A), expected)
