"""Distributions of vectors and matrices, kernel densities and statistics of samples: SciPy's values, every mode."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.stats

import pullback.scipy.stats
from pullback.autograd import grad, gradcheck, gradgradcheck
from pullback.scipy.stats.multivariate import MULTIVARIATE as LAWS

from .grid_checks import OfTensors

stats: Any = OfTensors(pullback.scipy.stats)
MULTIVARIATE: Any = {name: OfTensors(law) for name, law in LAWS.items()}

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 2)), RNG.normal(size=(3, 3))
S, R = A @ A.T + np.eye(2), B @ B.T + np.eye(3)
W = np.stack([S + 0.1 * i * np.eye(2) for i in range(3)], -1)
X, MEAN = RNG.normal(size=(4, 2)), np.array([0.1, 0.2])
MATRICES, CENTRE = RNG.normal(size=(4, 2, 3)), RNG.normal(size=(2, 3))
COUNTS, PROBABILITIES = np.array([[1, 2, 0], [0, 1, 2]]), np.array([0.2, 0.3, 0.5])

CASES: dict[str, tuple[str, list[Any]]] = {
    "multivariate_normal": ("logpdf", [X, MEAN, S]),
    "multivariate_t": ("logpdf", [X, MEAN, S, 3.3]),
    "dirichlet": ("logpdf", [PROBABILITIES, np.array([1.2, 2.2, 0.7])]),
    "wishart": ("logpdf", [W, 4.4, S]),
    "invwishart": ("logpdf", [W, 6.4, S]),
    "multinomial": ("logpmf", [COUNTS, 3, PROBABILITIES]),
    "matrix_normal": ("logpdf", [MATRICES, CENTRE, S, R]),
}
SAMPLED = [name for name in CASES if name != "multinomial"]


def leaf(value: Any) -> pullback.Tensor:
    return pullback.tensor(np.asarray(value, float), requires_grad=True)


def within(name: str, arguments: Any) -> list[Any]:
    """Arguments moved a little, brought back to symmetric matrices and to probabilities."""
    found = []
    for i, t in enumerate(arguments):
        if isinstance(t, pullback.Tensor) and t.dim() >= 2 and t.shape[0] == t.shape[1]:
            t = (t + t.swapaxes(0, 1)) / 2
        if (name, i) in {("dirichlet", 0), ("multinomial", 2)}:
            t = t / t.sum()
        found.append(t)
    return found


@pytest.mark.parametrize("name", CASES)
def test_densities(name: str) -> None:
    method, arguments = CASES[name]
    ours, theirs = MULTIVARIATE[name], getattr(scipy.stats, name)
    for each in (method, method[3:]):
        expected = getattr(theirs, each)(*arguments)
        found = getattr(ours, each)(*arguments).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert found.shape == expected.shape
        np.testing.assert_allclose(getattr(ours(*arguments[1:]), each)(arguments[0]).numpy(), expected, rtol=1e-12)
    constants = {0, 1} if name == "multinomial" else set()

    def function(*leaves: Any) -> Any:
        given = iter(leaves)
        return getattr(ours, method)(
            *within(name, [a if i in constants else next(given) for i, a in enumerate(arguments)])
        )

    leaves = [leaf(a) for i, a in enumerate(arguments) if i not in constants]
    assert gradcheck(function, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, leaves)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["mean", "var", "cov", "entropy"])
def test_moments_of_vectors(name: str, method: str) -> None:
    ours, theirs = MULTIVARIATE[name], getattr(scipy.stats, name)
    if not hasattr(type(LAWS[name]), method):
        return
    parameters = CASES[name][1][2 if (name, method) == ("matrix_normal", "entropy") else 1 :]
    found = getattr(ours, method)(*parameters).numpy()
    np.testing.assert_allclose(found, getattr(theirs, method)(*parameters), rtol=1e-12)


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_of_vectors(name: str) -> None:
    ours, theirs, parameters = MULTIVARIATE[name], getattr(scipy.stats, name), CASES[name][1][1:]
    for size in (1, 4):
        found = ours.rvs(*parameters, size=size, random_state=1).numpy()
        assert found.shape == theirs.rvs(*parameters, size=size, random_state=1).shape
    many = ours.rvs(*parameters, size=20000, random_state=2).numpy()
    other = theirs.rvs(*parameters, size=20000, random_state=3)
    near = 6 * (many.std(0) + other.std(0)) / np.sqrt(20000)
    assert (np.abs(np.median(many, 0) - np.median(other, 0)) < 2 * near).all()

    def function(*leaves: Any) -> Any:
        return ours.rvs(*within(name + " sampled", leaves), size=3, random_state=1)

    leaves = [leaf(p) for p in parameters]
    if name in ("multivariate_normal", "matrix_normal"):
        assert gradcheck(function, leaves, check_forward_ad=True)
    else:  # samples of gamma variables move with their parameters, and not as the generator does
        slopes = grad(function(*leaves).sum(), leaves, allow_unused=True)
        assert all(np.isfinite(g.numpy()).all() for g in slopes if g is not None)


def test_the_mean_of_samples_has_the_gradient_of_the_mean() -> None:
    df = leaf(6.4)
    (found,) = grad(stats.wishart.rvs(df, S, size=4000, random_state=0).mean(0).sum(), df)
    assert found.item() == pytest.approx(S.sum(), rel=0.05)
    alpha = leaf([1.2, 2.2, 0.7])
    (slope,) = grad(stats.dirichlet.rvs(alpha, size=40000, random_state=0).mean(0)[0], alpha)
    (wanted,) = grad(stats.dirichlet.mean(alpha)[0], alpha)
    np.testing.assert_allclose(slope.numpy(), wanted.numpy(), atol=3e-3)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.multivariate_normal.logpdf([1.0, 2.0], [0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]),
        lambda m: m.multivariate_normal.logpdf([1.0, 2.0, 3.0], [0.0, 0.0], np.eye(2)),
        lambda m: m.multivariate_normal.logpdf([1.0, 2.0], [0.0, 0.0, 0.0], np.eye(2)),
        lambda m: m.dirichlet.logpdf([0.5, 0.6], [1.0, 1.0]),
        lambda m: m.wishart.logpdf(S, 0.5, S),
        lambda m: m.matrix_normal.logpdf(S, S, R, R),
        lambda m: m.gaussian_kde([1.0]),
        lambda m: m.gaussian_kde([1.0, 2.0], weights=[1.0]),
        lambda m: m.gaussian_kde([1.0, 2.0], "wide"),
        lambda m: m.gaussian_kde([1.0, 1.0]),
        lambda m: m.gaussian_kde(X.T).evaluate(np.zeros((3, 2))),
        lambda m: m.gaussian_kde(np.zeros((3, 2))),
        lambda m: m.pearsonr([1.0, 2.0], [1.0, 2.0, 3.0]),
    ],
)
def test_scipys_own_errors_of_vectors(call: Any) -> None:
    with pytest.raises(ValueError) as theirs:  # noqa: PT011
        call(scipy.stats)
    with pytest.raises(type(theirs.value)) as ours:
        call(stats)
    assert str(ours.value) == str(theirs.value)


def test_a_line_through_one_place_is_refused() -> None:
    """SciPy refuses it as well before SciPy 1.18, which gives NaN."""
    with pytest.raises(ValueError, match="all x values are identical"):
        stats.linregress([1.0, 1.0], [1.0, 2.0])


def test_singular_covariances_are_constants() -> None:
    cov = np.array([[1.0, 1.0], [1.0, 1.0]])
    x = leaf([[1.0, 1.0], [0.5, 0.5]])
    found = stats.multivariate_normal.logpdf(x, cov=cov, allow_singular=True)
    expected = scipy.stats.multivariate_normal.logpdf(x.detach().numpy(), cov=cov, allow_singular=True)
    np.testing.assert_allclose(found.detach().numpy(), expected)
    assert np.isfinite(grad(found.sum(), x)[0].numpy()).all()
    assert stats.multivariate_normal.logpdf([1.0, 0.0], cov=cov, allow_singular=True).item() == -np.inf
    with pytest.raises(NotImplementedError, match="no derivative by a singular covariance"):
        stats.multivariate_normal.logpdf(x, cov=leaf(cov), allow_singular=True)


def test_what_vectors_have_not() -> None:
    with pytest.raises(AttributeError, match=r"multivariate_normal\.cdf has no derivative here"):
        stats.multivariate_normal.cdf  # noqa: B018
    with pytest.raises(RuntimeError, match=r"stats\.multinomial\.rvs: samples of this distribution have no derivative"):
        stats.multinomial.rvs(3, leaf(PROBABILITIES))
    assert stats.multinomial.rvs(3, PROBABILITIES, random_state=0).sum() == 3
    assert stats.multinomial.logpmf([1, 1, 2], 3, PROBABILITIES).item() == -np.inf
    with pytest.raises(AttributeError, match="integrate_box has no derivative here"):
        stats.gaussian_kde(X.T).integrate_box  # noqa: B018


@pytest.mark.parametrize("name", [*CASES, "gaussian_kde"])
def test_signatures_of_vectors(name: str) -> None:
    ours, theirs = getattr(pullback.scipy.stats, name), getattr(scipy.stats, name)
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    for method in vars(type(ours) if name != "gaussian_kde" else ours):
        if not method.startswith("_") and inspect.isfunction(getattr(theirs, method, None)):
            mine, other = (list(inspect.signature(getattr(d, method)).parameters) for d in (ours, theirs))
            assert mine[: len(other)] == other


# Kernel densities -----------------------------------------------------------------------------------------------------

DATA = {1: (RNG.normal(size=7), np.array([0.1, 0.7, 2.0])), 2: (RNG.normal(size=(2, 7)), RNG.normal(size=(2, 3)))}
WEIGHTS = RNG.uniform(0.5, 1.5, size=7)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("width", [None, "silverman", 0.4, lambda kde: 0.3 * kde.scotts_factor()])
@pytest.mark.parametrize("dim", DATA)
def test_kernel_density(dim: int, width: Any, weights: Any) -> None:
    data, at = DATA[dim]
    ours, theirs = stats.gaussian_kde(data, width, weights), scipy.stats.gaussian_kde(data, width, weights)
    mean, cov = [0.1] * dim, 0.3 * np.eye(dim) + 0.1
    pairs = [
        (ours.evaluate(at), theirs.evaluate(at)), (ours.pdf(at), theirs(at)), (ours.logpdf(at), theirs.logpdf(at)),
        (ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov)),
        (ours.integrate_kde(ours), theirs.integrate_kde(theirs)), (ours.covariance, theirs.covariance),
        (ours.inv_cov, theirs.inv_cov),
    ]  # fmt: skip
    pairs += [(ours.integrate_box_1d(-1, 0.5), theirs.integrate_box_1d(-1, 0.5))] if dim == 1 else []
    for found, expected in pairs:
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11)
    assert ours.resample(4, seed=1).shape == theirs.resample(4, seed=1).shape


@pytest.mark.parametrize("dim", DATA)
def test_kernel_density_in_every_mode(dim: int) -> None:
    data, at = DATA[dim]
    leaves = [leaf(data), leaf(at), leaf(WEIGHTS), leaf(0.5)]

    def log_density(d: Any, x: Any, w: Any, width: Any) -> Any:
        return stats.gaussian_kde(d, width, w).logpdf(x)

    assert gradcheck(log_density, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(log_density, leaves)
    assert gradcheck(lambda d, x, w: stats.gaussian_kde(d, None, w)(x), leaves[:3], check_forward_ad=True)
    assert gradcheck(lambda d, width: stats.gaussian_kde(d, width).resample(4, seed=1), [leaves[0], leaves[3]])
    with pytest.raises(RuntimeError, match="the choice of data has no derivative by the weights"):
        stats.gaussian_kde(data, weights=leaf(WEIGHTS)).resample(3)
    with pytest.raises(RuntimeError, match=r"rvs|weights"):
        pullback.vmap(lambda w: stats.gaussian_kde(data, weights=w).resample(3))(leaf(np.stack([WEIGHTS, WEIGHTS])))


# Statistics of samples ------------------------------------------------------------------------------------------------

TABLE, SCORES, OTHERS = RNG.uniform(0.5, 2, size=(5, 3)), RNG.normal(size=9), RNG.normal(size=9)
STATISTICS = ["zscore", "skew", "kurtosis", "sem", "variation", "gmean", "hmean"]
FIELDS = {
    "pearsonr": ["statistic", "pvalue"],
    "linregress": ["slope", "intercept", "rvalue", "pvalue", "stderr", "intercept_stderr"],
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name: str) -> None:
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for axis in (0, 1, None):
        np.testing.assert_allclose(ours(TABLE, axis=axis).numpy(), theirs(TABLE, axis=axis), rtol=1e-12)
    assert gradcheck(ours, [leaf(TABLE)], check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(ours, [leaf(TABLE)])
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    if name in ("skew", "kurtosis"):
        np.testing.assert_allclose(ours(TABLE, bias=False).numpy(), theirs(TABLE, bias=False), rtol=1e-12)
        with np.errstate(all="ignore"):
            assert np.isnan(ours(np.ones(4)).item())
    if name.endswith("mean"):
        weighted = ours(TABLE, weights=TABLE + 1), theirs(TABLE, weights=TABLE + 1)
        np.testing.assert_allclose(weighted[0].numpy(), weighted[1], rtol=1e-12)
        with pytest.raises(TypeError, match="dtype=None"):
            ours(TABLE, dtype=float)
    with pytest.raises(ValueError, match=f"{name}: nan_policy"):
        ours(TABLE, nan_policy="omit")
    single = pullback.tensor(TABLE.astype(np.float32), requires_grad=True)
    assert ours(single).detach().numpy().dtype == theirs(TABLE.astype(np.float32)).dtype
    ours(single).sum().backward()
    assert single.grad.dtype == pullback.float32


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("name", FIELDS)
def test_correlation_and_line(name: str, alternative: str) -> None:
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)

    def fields(x: Any, y: Any) -> tuple[Any, ...]:
        found = ours(x, y, alternative=alternative)
        return tuple(getattr(found, f) for f in FIELDS[name])

    expected = theirs(SCORES, OTHERS, alternative=alternative)
    for found, field in zip(fields(SCORES, OTHERS), FIELDS[name], strict=True):
        np.testing.assert_allclose(found.numpy(), getattr(expected, field), rtol=1e-11)
    leaves = [leaf(SCORES), leaf(OTHERS)]
    assert gradcheck(fields, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(fields, leaves)
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    if name == "pearsonr":
        interval = ours(SCORES, OTHERS, alternative=alternative).confidence_interval(0.9)
        for bound, wanted in zip(interval, expected.confidence_interval(0.9), strict=True):
            assert bound.item() == pytest.approx(wanted)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("name", ["gmean", "hmean", "sem", "skew", "kurtosis", "variation", "moment"])
def test_statistics_over_axes(name: str, axis: Any, keepdims: bool) -> None:
    data = np.random.default_rng(0).uniform(1, 2, (3, 4, 2))
    settings = {"order": [2, 3]} if name == "moment" else {}
    found, expected = (getattr(m, name)(data, axis=axis, keepdims=keepdims, **settings) for m in (stats, scipy.stats))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_lines_over_axes(axis: Any, keepdims: bool) -> None:
    x, y = np.random.default_rng(0).uniform(1, 2, (2, 3, 4))
    found, expected = (m.linregress(x, y, axis=axis, keepdims=keepdims) for m in (stats, scipy.stats))
    for name in FIELDS["linregress"]:
        assert getattr(found, name).shape == getattr(expected, name).shape
        np.testing.assert_allclose(getattr(found, name).numpy(), getattr(expected, name), rtol=1e-11)


@pytest.mark.parametrize("y", [[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
def test_a_line_through_two_points_is_that_of_scipy(y: list[float]) -> None:
    """SciPy 1.18 says NaN where others say 0 and 1."""
    with np.errstate(all="ignore"):
        found, expected = (m.linregress([0.0, 1.0], y) for m in (stats, scipy.stats))
    for name in FIELDS["linregress"]:
        np.testing.assert_equal(getattr(found, name).item(), getattr(expected, name))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_level_line_is_that_of_scipy() -> None:
    found, expected = (m.linregress([0.0, 1.0, 3.0], [2.0, 2.0, 2.0]) for m in (stats, scipy.stats))
    for name in FIELDS["linregress"]:
        np.testing.assert_allclose(getattr(found, name).numpy(), getattr(expected, name), atol=1e-15)


def test_moments_and_scores() -> None:
    np.testing.assert_allclose(stats.moment(TABLE, 3, axis=1).numpy(), scipy.stats.moment(TABLE, 3, axis=1), atol=1e-15)
    np.testing.assert_allclose(stats.moment(TABLE).numpy(), scipy.stats.moment(TABLE), atol=1e-15)
    for order, center in (([1, 2, 4], None), ([1, 2], 0.3), (np.array([3]), None), (2, 0.3)):
        found, expected = (m.moment(TABLE, order, center=center) for m in (stats, scipy.stats))
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-14)
    assert gradcheck(lambda a, c: stats.moment(a, [1, 2, 3], center=c), [leaf(SCORES), leaf(0.2)])
    for order in (1.5, [1, 0.5], []):
        with pytest.raises(ValueError, match="must be integral"):
            stats.moment(TABLE, order)
    np.testing.assert_allclose(stats.zmap(SCORES, OTHERS).numpy(), scipy.stats.zmap(SCORES, OTHERS), rtol=1e-12)
    assert gradcheck(stats.zmap, [leaf(SCORES), leaf(OTHERS)])
    with pytest.raises(NotImplementedError, match="resampling has no derivative"):
        stats.pearsonr(SCORES, OTHERS, method=scipy.stats.PermutationMethod())


def test_samples_have_scipys_parameters_also_of_a_distribution_with_its_own() -> None:
    for name in ("multivariate_normal", "multivariate_t"):
        ours, theirs = (inspect.signature(getattr(m, name).rvs).parameters for m in (stats, scipy.stats))
        assert list(ours) == list(theirs)
    frozen = stats.multivariate_normal([1.0, 2.0], allow_singular=True)
    assert frozen.rvs(3, random_state=0).shape == frozen.rvs(size=3, random_state=0).shape == (3, 2)
