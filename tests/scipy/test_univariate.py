"""Distributions of one variable against SciPy, in every mode, outside of the support, and with bad input."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.stats

import pullback.scipy.stats
from pullback.autograd import grad, gradcheck, gradgradcheck
from pullback.scipy.stats import continuous, discrete

from .grid_checks import OfTensors

stats: Any = OfTensors(pullback.scipy.stats)
CONTINUOUS: Any = {name: OfTensors(law) for name, law in continuous.DISTRIBUTIONS.items()}
DISCRETE: Any = {name: OfTensors(law) for name, law in discrete.DISTRIBUTIONS.items()}

SHAPES: dict[str, tuple[float, ...]] = {
    "t": (3.5,), "gamma": (2.3,), "chi2": (3.1,), "invgamma": (5.2,), "nakagami": (1.7,), "beta": (2.2, 1.4),
    "f": (3.3, 6.6), "exponnorm": (1.3,), "lognorm": (0.8,), "invgauss": (0.9,), "weibull_min": (1.7,),
    "weibull_max": (1.7,), "pareto": (3.1,), "genpareto": (0.2,), "genextreme": (-0.2,), "fisk": (3.2,),
    "burr12": (2.2, 1.9), "triang": (0.4,), "truncnorm": (-1.1, 1.7), "skewnorm": (1.4,), "vonmises": (1.6,),
    "lomax": (3.1,), "powerlaw": (1.7,), "invweibull": (3.4,), "chi": (2.6,),
    "bernoulli": (0.3,), "betabinom": (7, 2.1, 1.3), "binom": (9, 0.35), "geom": (0.35,), "nbinom": (3.3, 0.4),
    "poisson": (3.7,), "zipf": (3.6,),
}  # fmt: skip
LOC, SCALE = 0.3, 1.4
PLACED = (LOC, SCALE)
FUNCTIONS = ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf")
MASSES = ("logpmf", "pmf", "cdf", "logcdf", "sf", "logsf")
MOMENTS = ("mean", "var", "std", "entropy")


def leaf(value: Any) -> pullback.Tensor:
    return pullback.tensor(np.asarray(value, float), requires_grad=True)


def points(name: str) -> np.ndarray[Any, Any]:
    return getattr(scipy.stats, name).ppf([0.001, 0.2, 0.55, 0.93], *SHAPES.get(name, ()), *PLACED)  # type: ignore[no-any-return]


def parameters(name: str) -> list[pullback.Tensor]:
    return [*map(leaf, SHAPES.get(name, ())), leaf(LOC), leaf(SCALE)]


@pytest.mark.parametrize("method", FUNCTIONS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_values_are_scipys(name: str, method: str) -> None:
    x = np.concatenate([points(name), [-1e3, np.nan]])
    with np.errstate(all="ignore"):
        expected = getattr(getattr(scipy.stats, name), method)(x, *SHAPES.get(name, ()), *PLACED)
    found = getattr(CONTINUOUS[name], method)(x, *SHAPES.get(name, ()), *PLACED).numpy()
    if (name, method) in {
        ("exponnorm", "logcdf"),
        ("vonmises", "logcdf"),
    }:
        # SciPy takes the logarithm of what cancels, and of more than 1
        found[-2] = expected[-2]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("method", FUNCTIONS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_every_argument_in_every_mode(name: str, method: str) -> None:
    function, leaves = getattr(CONTINUOUS[name], method), [leaf(points(name)), *parameters(name)]
    assert gradcheck(function, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, leaves)


@pytest.mark.parametrize("method", ["ppf", "isf"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_quantiles(name: str, method: str) -> None:
    q = np.array([0.2, 0.55, 0.93])
    function = getattr(CONTINUOUS[name], method)
    expected = getattr(getattr(scipy.stats, name), method)(q, *SHAPES.get(name, ()), *PLACED)
    leaves = [leaf(q), *parameters(name)]
    np.testing.assert_allclose(function(*leaves).detach().numpy(), expected, rtol=1e-12)
    assert gradcheck(function, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, leaves)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_are_scipys_and_reparametrised(name: str) -> None:
    law, leaves = CONTINUOUS[name], parameters(name)
    x = law.rvs(*leaves, size=(2, 3), random_state=3)
    expected = getattr(scipy.stats, name).rvs(*SHAPES.get(name, ()), *PLACED, size=(2, 3), random_state=3)
    np.testing.assert_array_equal(x.detach().numpy(), expected)
    # a sample keeps its probability as the parameters move
    quantile = law.ppf(law.cdf(x.detach(), *[p.detach() for p in leaves]).detach(), *leaves)
    found, wanted = grad(x.sum(), leaves), grad(quantile.sum(), leaves)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)


@pytest.mark.parametrize("method", MOMENTS)
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_moments(name: str, method: str) -> None:
    law = getattr(stats, name)
    places = PLACED if name in CONTINUOUS else (1,)
    try:
        found = getattr(law, method)(*SHAPES.get(name, ()), *places)
    except NotImplementedError as error:
        assert f"stats.{name}.{'var' if method == 'std' else method} is not in closed form" in str(error)  # noqa: PT017
        return
    expected = getattr(getattr(scipy.stats, name), method)(*SHAPES.get(name, ()), *places)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)
    if name in CONTINUOUS and name not in ("cauchy", "halfcauchy"):
        assert gradcheck(getattr(law, method), parameters(name), check_forward_ad=True)
        assert gradgradcheck(getattr(law, method), parameters(name))


@pytest.mark.parametrize("method", FUNCTIONS)
@pytest.mark.parametrize("name", [n for n in CONTINUOUS if not n.startswith("gumbel")])
def test_gradients_are_finite_everywhere(name: str, method: str) -> None:
    x = leaf([-np.inf, -1e3, *points(name), 1e3, np.inf])
    leaves = [x, *parameters(name)]
    with np.errstate(all="ignore"):
        found = grad(getattr(CONTINUOUS[name], method)(*leaves).sum(), leaves)
    assert all(np.isfinite(t.numpy()).all() for t in found)
    assert found[0][0] == found[0][-1] == 0


@pytest.mark.parametrize("name", ["gumbel_l", "gumbel_r"])
@pytest.mark.parametrize("method", ["logpdf", "pdf", "cdf", "sf"])
def test_a_doubly_exponential_tail(name: str, method: str) -> None:
    x = leaf([-1e3, 1e3])
    (found,) = grad(getattr(CONTINUOUS[name], method)(x, LOC, SCALE).sum(), x)
    assert np.isfinite(found.numpy()).all()


@pytest.mark.parametrize("name", CONTINUOUS)
def test_parameters_out_of_range_give_nan_and_no_gradient(name: str) -> None:
    scale = leaf([-1.0, 0.0, 2.0])
    found = CONTINUOUS[name].logpdf(points(name)[2], *SHAPES.get(name, ()), LOC, scale)
    assert np.isnan(found.detach().numpy()).tolist() == [True, True, False]
    (slope,) = grad(found.sum(), scale)
    assert slope[0] == slope[1] == 0
    assert np.isfinite(slope.numpy()).all()


OUT_OF_RANGE = [(0.3, -1.0), (0.3, 0.0), (0.3, np.nan), (np.nan, 1.0)]


@pytest.mark.parametrize("place", OUT_OF_RANGE)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_moments_of_parameters_out_of_range_are_nan(name: str, place: tuple[float, float]) -> None:
    law, shapes, (loc, scale) = CONTINUOUS[name], SHAPES.get(name, ()), place
    for method in ("mean", "var", "std", "entropy", "support"):
        if getattr(law.law, {"std": "var", "support": "log_density"}.get(method, method)) is None:
            continue
        leaves = [*map(leaf, shapes), leaf([loc, LOC]), leaf([scale, SCALE])]
        found = getattr(law, method)(*leaves)
        alone = getattr(law, method)(*shapes, LOC, SCALE)
        for end, right in zip(*[t if method == "support" else (t,) for t in (found, alone)], strict=True):
            assert np.isnan(end[0].item())
            np.testing.assert_equal(end[1].item(), right.item())
            if end.requires_grad:
                slopes = grad(end.sum(), leaves, allow_unused=True, retain_graph=True)
                assert all(s is None or s[0] == 0 for s in slopes[-2:])
    data = np.abs(points(name)) + 0.01
    with np.errstate(all="ignore"):
        assert law.nnlf((*shapes, loc, scale), data).item() == np.inf
        assert getattr(scipy.stats, name).nnlf((*shapes, loc, scale), data) == np.inf


@pytest.mark.parametrize("name", [n for n in [*CONTINUOUS, *DISCRETE] if SHAPES.get(n)])
def test_shapes_out_of_range_have_no_support(name: str) -> None:
    shapes = [np.nan] * len(SHAPES[name])
    assert np.isnan([t.item() for t in getattr(stats, name).support(*shapes)]).all()
    assert getattr(stats, name).nnlf((*shapes, 0.0, 1.0)[: len(shapes) + 1 + (name in CONTINUOUS)], [1.0]) == np.inf


@pytest.mark.parametrize("method", FUNCTIONS)
@pytest.mark.parametrize("place", [(np.nan, 1.0), (0.3, np.inf), (np.inf, 1.0), (-np.inf, 1.0)])
def test_infinite_points_of_parameters_that_are_not_finite(method: str, place: tuple[float, float]) -> None:
    x = [-np.inf, 0.5, np.inf, np.nan]
    with np.errstate(all="ignore"):
        expected = getattr(scipy.stats.norm, method)(x, *place)
    np.testing.assert_equal(getattr(stats.norm, method)(x, *place).numpy(), expected)


@pytest.mark.parametrize("method", ["mean", "var", "std", "entropy"])
def test_moments_have_the_shape_of_all_parameters(method: str) -> None:
    for name, places in (("norm", ([0.0, 1.0], [[1.0], [2.0]])), ("expon", ([0.0, 1.0],)), ("geom", (0.3, [0, 1]))):
        expected = getattr(getattr(scipy.stats, name), method)(*places)
        found = getattr(getattr(stats, name), method)(*places).numpy()
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_likelihood_of_columns() -> None:
    data = np.array([[0.1, 0.7], [1.1, 2.0], [0.3, 0.4]])
    expected = scipy.stats.norm.nnlf((0.2, 1.5), data)
    np.testing.assert_allclose(stats.norm.nnlf((0.2, 1.5), data).numpy(), expected, rtol=1e-14)
    assert stats.norm.nnlf((0.2, 1.5), [0.1, np.nan]) == scipy.stats.norm.nnlf((0.2, 1.5), np.array([0.1, np.nan]))


def test_tails_where_the_probability_underflows() -> None:
    for name, x, shapes in [
        ("norm", 60.0, ()),
        ("gamma", 1500.0, (2.3,)),
        ("t", 1e40, (12.0,)),
        ("halfnorm", 60.0, ()),
    ]:
        law, p = getattr(stats, name), leaf(x)
        value = law.logsf(p, *shapes)
        (slope,) = grad(value, p)
        np.testing.assert_allclose(slope.item(), -np.exp((law.logpdf(x, *shapes) - value.detach()).item()), rtol=1e-9)
        step = (law.logsf(x * (1 + 1e-6), *shapes) - law.logsf(x * (1 - 1e-6), *shapes)).item() / (2e-6 * x)
        np.testing.assert_allclose(slope.item(), step, rtol=1e-5)


@pytest.mark.parametrize("name", ["genpareto", "genextreme"])
def test_the_limit_of_shape_0(name: str) -> None:
    x = np.array([0.3, 0.8])
    limit = {"genpareto": "expon", "genextreme": "gumbel_r"}[name]
    found = CONTINUOUS[name].logpdf(x, leaf(0.0))
    np.testing.assert_allclose(found.detach().numpy(), getattr(scipy.stats, limit).logpdf(x), rtol=1e-14)
    assert gradcheck(lambda c: CONTINUOUS[name].logpdf(x, c), [leaf(0.0)], check_forward_ad=True)
    assert gradgradcheck(lambda c: CONTINUOUS[name].logsf(x, c), [leaf(0.0)])


@pytest.mark.parametrize("method", MASSES)
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_values_are_scipys(name: str, method: str) -> None:
    k = np.array([-2, 0, 1, 2, 2.5, 5, 7, 9, 14, np.nan])
    with np.errstate(all="ignore"):
        expected = getattr(getattr(scipy.stats, name), method)(k, *SHAPES[name], 1)
    found = getattr(DISCRETE[name], method)(k, *SHAPES[name], 1).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("method", MASSES)
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_shapes_in_every_mode(name: str, method: str) -> None:
    k = np.array([0.0, 0.0]) if name == "bernoulli" else np.array([1.0, 2.0, 5.0])
    whole, shapes = (SHAPES[name][:1], SHAPES[name][1:]) if DISCRETE[name].law.whole else ((), SHAPES[name])

    def function(*found: Any) -> Any:
        return getattr(DISCRETE[name], method)(k, *whole, *found)

    leaves = [*map(leaf, shapes)]
    assert gradcheck(function, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, leaves)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_quantiles_and_samples(name: str) -> None:
    ours, theirs, shapes = DISCRETE[name], getattr(scipy.stats, name), SHAPES[name]
    np.testing.assert_array_equal(ours.ppf([0.1, 0.6], *shapes).numpy(), theirs.ppf([0.1, 0.6], *shapes))
    np.testing.assert_array_equal(ours.isf([0.1, 0.6], *shapes).numpy(), theirs.isf([0.1, 0.6], *shapes))
    np.testing.assert_array_equal(
        ours.rvs(*shapes, size=4, random_state=1).numpy(), theirs.rvs(*shapes, size=4, random_state=1)
    )
    with pytest.raises(RuntimeError, match=f"stats.{name}.rvs: samples of this distribution have no derivative"):
        ours.rvs(*shapes[:-1], leaf(shapes[-1]))


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_signatures_are_scipys(name: str) -> None:
    ours, theirs = getattr(pullback.scipy.stats, name), getattr(scipy.stats, name)
    assert inspect.signature(ours) == inspect.signature(theirs) or list(inspect.signature(ours).parameters) == list(
        inspect.signature(theirs).parameters
    )
    for method in ours._methods:
        mine, other = (list(inspect.signature(getattr(d, method)).parameters) for d in (ours, theirs))
        assert [n.replace("kwargs", "kwds") for n in other] == mine or method == "fit"
    assert ours.shapes == theirs.shapes


def test_vmap_and_hessian_of_a_likelihood() -> None:
    data = pullback.tensor(np.array([0.4, 1.3, 2.2, 0.9]))

    def loss(theta: Any, x: Any) -> Any:
        return -stats.gamma.logpdf(x, theta[0], 0.0, theta[1]).sum()

    theta = pullback.tensor(np.array([1.7, 0.6]))
    whole = pullback.func.hessian(loss)(theta, data)
    each = pullback.vmap(pullback.func.hessian(loss), in_dims=(None, 0))(theta, data)
    np.testing.assert_allclose(each.sum(0).numpy(), whole.numpy(), rtol=1e-12)
    loop = [pullback.func.jacrev(pullback.func.grad(loss))(theta, x) for x in data]
    np.testing.assert_allclose(each.numpy(), np.stack([t.numpy() for t in loop]), rtol=1e-12)


def test_samples_and_quantiles_in_transforms() -> None:
    a = pullback.tensor(np.array([0.7, 2.0, 5.0]))
    quantiles = pullback.vmap(lambda s: stats.gamma.ppf(0.3, s))(a)
    np.testing.assert_allclose(quantiles.numpy(), scipy.stats.gamma.ppf(0.3, a.numpy()), rtol=1e-13)
    slopes = pullback.vmap(pullback.func.grad(lambda s: stats.gamma.ppf(0.3, s)))(a)
    p = leaf(a.numpy())
    np.testing.assert_allclose(slopes.numpy(), grad(stats.gamma.ppf(0.3, p).sum(), p)[0].numpy(), rtol=1e-12)
    assert pullback.vmap(lambda s: stats.gamma.rvs(s, size=5, random_state=1))(a).shape == (3, 5)


def test_inside_compile() -> None:
    def loss(x: Any, a: Any) -> Any:
        return stats.gamma.logsf(x, a).sum() + stats.norm.logpdf(x, a, 2.0).sum()

    x, a = leaf([0.5, 1.5]), leaf(2.0)
    eager = loss(x, a)
    wanted = grad(eager, [x, a])
    found = pullback.compile(loss, backend="numpy")(x, a)
    np.testing.assert_allclose(found.item(), eager.item(), rtol=1e-14)
    for one, other in zip(grad(found, [x, a]), wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13)


def test_frozen() -> None:
    mu = leaf(0.5)
    law = stats.norm(mu, scale=2.0)
    (slope,) = grad(law.logpdf(1.5), mu)
    assert slope.item() == 0.25
    assert law.rvs(3, random_state=1).tolist() == scipy.stats.norm(0.5, scale=2.0).rvs(3, random_state=1).tolist()
    assert law.interval(0.9)[0].item() == pytest.approx(scipy.stats.norm(0.5, 2.0).interval(0.9)[0])
    assert [t.item() for t in law.support()] == [-np.inf, np.inf]
    assert law.mean().item() == 0.5
    assert stats.poisson(2.0).pmf(3).item() == pytest.approx(scipy.stats.poisson(2.0).pmf(3))


FROZEN: list[tuple[str, dict[str, Any]]] = [
    *[(m, {"x": 0.5}) for m in FUNCTIONS], ("ppf", {"q": 0.3}), ("isf", {"q": 0.3}), ("interval", {"confidence": 0.9}),
    ("stats", {"moments": "m"}), ("stats", {"moments": "mv"}), ("rvs", {"size": 3, "random_state": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "named"), FROZEN)
@pytest.mark.parametrize("parameters", [((2.3, 0.1, 1.5), {}), ((2.3,), {"scale": 1.5}), ((), {"a": 2.3, "loc": 0.1})])
def test_frozen_methods_take_keywords(method: str, named: dict[str, Any], parameters: Any) -> None:
    args, kwds = parameters
    expected = getattr(scipy.stats.gamma(*args, **kwds), method)(**named)
    law, bound = stats.gamma(*args, **kwds), {**dict(zip(("a", "loc", "scale"), args, strict=False)), **kwds}
    found = [getattr(law, method)(**named)]
    if method != "rvs":
        found.append(getattr(law, method)(*named.values()))
        found.append(getattr(stats.gamma, method)(**named, **bound))
    for value in found:
        for one, other in zip(*[np.atleast_1d(np.asarray(v)) for v in (value, expected)], strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12)
    with pytest.raises(TypeError):
        getattr(law, method)(**named, nothing=1)


def test_frozen_discrete_laws_take_keywords() -> None:
    ours, theirs = stats.binom(7, 0.3, loc=1), scipy.stats.binom(7, 0.3, loc=1)
    for method in MASSES:
        named = {"k" if method.endswith("pmf") else "x": 3}
        assert getattr(ours, method)(**named).item() == pytest.approx(getattr(theirs, method)(**named))
        assert getattr(ours, method)(k=3).item() == getattr(ours, method)(3).item()
    assert ours.ppf(q=0.4).item() == theirs.ppf(q=0.4)
    assert [t.item() for t in ours.interval(confidence=0.9)] == list(theirs.interval(confidence=0.9))


def test_other_methods() -> None:
    data = scipy.stats.norm.rvs(size=20, random_state=0)
    assert stats.norm.fit(pullback.tensor(data)) == scipy.stats.norm.fit(data)
    with pytest.raises(TypeError, match=r"stats.norm.fit: the estimate has no derivative by the data here"):
        stats.norm.fit(leaf(data))
    np.testing.assert_allclose(
        stats.gamma.nnlf((2.0, 0.0, 1.5), np.abs(data)).item(), scipy.stats.gamma.nnlf((2.0, 0.0, 1.5), np.abs(data))
    )
    assert [t.item() for t in stats.gamma.stats(2.0, scale=3.0)] == [6.0, 18.0]
    with pytest.raises(NotImplementedError, match="skewness and kurtosis are not here"):
        stats.gamma.stats(2.0, moments="mvsk")
    with pytest.raises(AttributeError, match=r"stats.norm.expect has no derivative here(.|\n)*logpdf"):
        stats.norm.expect  # noqa: B018
    with pytest.raises(AttributeError, match=r"stats.norm has no attribute 'nothing'"):
        stats.norm.nothing  # noqa: B018


@pytest.mark.parametrize(
    "arguments", [(1.0,), (1.0, 2.0, 3.0, 4.0, 5.0)], ids=["too few parameters", "too many parameters"]
)
def test_scipys_own_errors(arguments: tuple[float, ...]) -> None:
    with pytest.raises(TypeError) as theirs:
        scipy.stats.gamma(*arguments[1:])
    with pytest.raises(TypeError) as ours:
        stats.gamma.logpdf(*arguments)
    assert str(ours.value) == str(theirs.value)


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="real numbers"):
        stats.norm.logpdf(pullback.tensor([1j]))
    with pytest.raises(TypeError, match="n is a whole number, and has no derivative"):
        stats.binom.logpmf(1, leaf(3.0), 0.5)
    with pytest.raises(ValueError, match=r"Domain error in arguments"):
        stats.norm.rvs(scale=-1.0)
    with pytest.raises(ValueError, match=r"size does not match the broadcast shape of the parameters"):
        stats.norm.rvs(np.zeros(3), size=2)
    assert stats.norm.logpdf(pullback.tensor([1, 2])).dtype == pullback.float64
    assert stats.norm.logpdf(pullback.tensor([True])).dtype == pullback.float64
    assert stats.norm.logpdf([]).shape == (0,)
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    assert grad(stats.norm.logpdf(x).sum(), x)[0].dtype == pullback.float32
    with pytest.raises(AttributeError, match=r"stats.spearmanr has no derivative: it depends on the order"):
        stats.spearmanr  # noqa: B018
    with pytest.raises(AttributeError, match=r"stats.randint has no derivative: its parameters and values are whole"):
        stats.randint  # noqa: B018
    with pytest.raises(AttributeError, match="class LevyStable"):
        stats.levy_stable  # noqa: B018


def test_the_kink_of_laplaces_density_is_no_kink_of_its_cdf() -> None:
    for method, slope in (("cdf", 0.5), ("sf", -0.5), ("logcdf", 1.0), ("logsf", -1.0)):
        x, loc, scale = leaf(0.7), leaf(0.7), leaf(2.0)
        found = grad(getattr(stats.laplace, method)(x, loc, scale), [x, loc, scale])
        assert [t.item() for t in found] == [slope / 2, -slope / 2, 0.0]


@pytest.mark.parametrize("method", FUNCTIONS)
@pytest.mark.parametrize(
    ("name", "c", "x"),
    [
        *[("genpareto", c, -1 / c) for c in (-0.3, -0.5, -1.0, -2.0)],
        *[("genextreme", c, 1 / c) for c in (0.3, 0.5, 1.0, 2.0, -0.5)],
    ],
)
def test_the_finite_end_of_a_support_that_depends_on_the_shape(name: str, c: float, x: float, method: str) -> None:
    leaves = [leaf(x), leaf(c)]
    value = getattr(getattr(stats, name), method)(*leaves)
    np.testing.assert_equal(value.item(), getattr(getattr(scipy.stats, name), method)(x, c))
    assert [t.item() for t in grad(value, leaves)] == [0.0, 0.0]


# The probabilities up to x, or below these by their complement: mpmath's logarithms, with 50 digits.
NEAR_THE_END = [
    ("halfnorm", (), 1e-17, -39.369737933543504, -7.9788456080286542e-18),
    ("halfnorm", (), 1e-12, -27.856812468573276, -7.9788456080318365e-13),
    ("halfnorm", (), 0.3, -1.4446744152580375, -0.26895563760890535),
    ("halfnorm", (), 1.3, -0.21517658351498706, -1.6419560981024972),
    ("halflogistic", (), 1e-17, -39.837093761458722, -5.0000000000000004e-18),
    ("halflogistic", (), 1e-12, -28.324168296488494, -5.0000000000012499e-13),
    ("halflogistic", (), 0.3, -1.9045808572833738, -0.1612080639085818),
    ("halflogistic", (), 1.3, -0.55919343648939738, -0.84786127327304693),
    ("halflogistic", (), 30.0, -1.8715245937680349e-13, -29.306852819440148),
    ("truncnorm", (0.0, 2.0), 1e-17, -39.323170021251114, -8.3591910047026921e-18),
    ("truncnorm", (0.0, 2.0), 1e-12, -27.810244556280885, -8.3591910047061851e-13),
    ("truncnorm", (0.0, 2.0), 0.3, -1.3981065029656473, -0.2837754956114407),
    ("truncnorm", (0.0, 2.0), 1.3, -0.1686086712225969, -1.863294883274313),
]


@pytest.mark.parametrize(("name", "shapes", "x", "logcdf", "logsf"), NEAR_THE_END)
def test_logarithms_near_the_end_of_the_support(
    name: str, shapes: tuple[float, ...], x: float, logcdf: float, logsf: float
) -> None:
    law = getattr(stats, name)
    point = leaf(x)
    for method, expected, sign in (("logcdf", logcdf, 1.0), ("logsf", logsf, -1.0)):
        value = getattr(law, method)(point, *shapes)
        assert value.item() == pytest.approx(expected, rel=1e-13, abs=0)
        slope = sign * np.exp(law.logpdf(x, *shapes).item() - expected)
        assert grad(value, point)[0].item() == pytest.approx(slope, rel=1e-12)


def test_the_mean_of_extremes_near_shape_0() -> None:
    c = leaf([-0.11, -0.09, -1e-6, 0.0, 1e-9, 2e-5, 0.09, 0.11])
    found = stats.genextreme.mean(c)
    # mpmath, with 40 digits
    values = [
        0.6984607529992116, 0.6743678396965594, 0.5772166539584357, 0.5772156649015329,
        0.5772156639124769, 0.5771958841446101, 0.49489457583554175, 0.47822269055180056,
    ]  # fmt: skip
    second = [
        2.6370872364310793, 2.4572629289504864, 1.8149640425420774, 1.8149581521617726,
        1.8149581462714042, 1.8148403495047698, 1.3675343246334017, 1.2869520615495724,
    ]  # fmt: skip
    np.testing.assert_allclose(found.detach().numpy(), values, rtol=1e-14)
    (slope,) = grad(found.sum(), c, create_graph=True)
    np.testing.assert_allclose(grad(slope.sum(), c)[0].numpy(), second, rtol=1e-13)


# One-sided derivatives of the mass by the last shape, of first and second order.
ENDS = [
    ("bernoulli", 0, (0.0,), -1, 0), ("bernoulli", 1, (0.0,), 1, 0), ("bernoulli", 0, (1.0,), -1, 0),
    ("binom", 0, (3, 0.0), -3, 6), ("binom", 1, (3, 0.0), 3, -12), ("binom", 2, (3, 0.0), 0, 6),
    ("binom", 3, (3, 0.0), 0, 0), ("binom", 2, (3, 1.0), -3, -12), ("binom", 5, (3, 0.0), 0, 0),
    ("binom", 1500, (3000, 0.0), 0, 0), ("poisson", 0, (0.0,), -1, 1), ("poisson", 1, (0.0,), 1, -2),
    ("poisson", 2, (0.0,), 0, 1), ("geom", 1, (1.0,), 1, 0), ("geom", 2, (1.0,), -1, -2), ("geom", 3, (1.0,), 0, 2),
    ("nbinom", 0, (3.0, 1.0), 3, 6), ("nbinom", 1, (3.0, 1.0), -3, -18), ("nbinom", 2, (3.0, 1.0), 0, 12),
]  # fmt: skip


@pytest.mark.parametrize(("name", "k", "shapes", "first", "second"), ENDS)
def test_a_mass_where_the_parameter_ends(
    name: str, k: int, shapes: tuple[float, ...], first: float, second: float
) -> None:
    *others, last = shapes

    def mass(p: Any) -> Any:
        return getattr(stats, name).pmf(k, *others, p)

    p = leaf(last).detach()
    assert mass(p).item() == getattr(scipy.stats, name).pmf(k, *shapes)
    assert pullback.func.grad(mass)(p).item() == pytest.approx(first)
    assert pullback.func.jvp(mass, (p,), (leaf(1.0).detach(),))[1].item() == pytest.approx(first)
    assert pullback.func.hessian(mass)(p).item() == pytest.approx(second)
    batch = pullback.vmap(pullback.func.grad(mass))(pullback.stack([p, 0 * p + 0.5]))
    assert batch[0].item() == pytest.approx(first)
    assert batch[1].item() == pytest.approx(pullback.func.grad(mass)(0 * p + 0.5).item())


def test_a_mass_of_several_where_a_probability_is_0() -> None:
    p = leaf([0.0, 0.25, 0.75])
    x = np.array([[1, 1, 1], [0, 1, 2], [2, 0, 1]])
    jacobian = pullback.func.jacrev(lambda q: stats.multinomial.pmf(x, 3, q))
    moved = [scipy.stats.multinomial.pmf(x, 3, [h, 0.25, 0.75 - h]) for h in (0.0, 1e-5, 2e-5)]
    slopes = (4 * moved[1] - moved[2] - 3 * moved[0]) / 2e-5
    found = jacobian(p.detach()).numpy()
    np.testing.assert_allclose(found[:, 0] - found[:, 2], slopes, atol=1e-8)
    np.testing.assert_allclose(pullback.func.jacfwd(lambda q: stats.multinomial.pmf(x, 3, q))(p.detach()), found)


@pytest.mark.parametrize(
    ("name", "shapes", "x"),
    [
        ("gamma", (2.0,), 0.0), ("beta", (2.0, 1.5), 0.0), ("beta", (2.0, 1.5), 1.0), ("weibull_min", (2.0,), 0.0),
        ("f", (4.0, 3.0), 0.0), ("chi", (2.0,), 0.0), ("maxwell", (), 0.0), ("weibull_max", (2.0,), 0.0),
    ],
)  # fmt: skip
def test_a_density_that_is_0_at_the_end_has_no_gradient_there(name: str, shapes: tuple[float, ...], x: float) -> None:
    leaves = [leaf([x, points(name)[1]]), *map(leaf, shapes)]
    law = getattr(stats, name)
    found, inner = (grad(law.pdf(y, *leaves[1:]).sum(), [y, *leaves[1:]]) for y in (leaves[0], leaf(points(name)[1])))
    assert found[0][0].item() == 0
    np.testing.assert_allclose([t.numpy().sum() for t in found], [t.item() for t in inner], rtol=1e-12)


def test_the_edges_of_the_support() -> None:
    for name, shapes, x in [
        ("gamma", (1.0,), 0.0),
        ("expon", (), 0.0),
        ("beta", (1.0, 2.0), 0.0),
        ("weibull_min", (1.0,), 0.0),
    ]:
        leaves = [leaf(x), *map(leaf, shapes)]
        value = getattr(stats, name).logpdf(*leaves)
        assert value.item() == pytest.approx(getattr(scipy.stats, name).logpdf(x, *shapes))
        assert all(np.isfinite(t.numpy()) for t in grad(value, leaves))
    a = leaf(-np.inf)
    value = stats.truncnorm.logpdf(0.3, a, 1.0)
    assert value.item() == pytest.approx(scipy.stats.truncnorm.logpdf(0.3, -np.inf, 1.0))
    assert grad(value, a)[0].item() == 0


# The entropies are mpmath's, with 80 digits.
LARGE = [
    ("t", (30.0,), 1.4525433297872075),
    ("t", (1e9,), 1.4189385342046727),
    ("t", (1e15,), 1.4189385332046737),
    ("gamma", (13.0,), 2.6752743359521419),
    ("gamma", (1e12,), 15.234449091168614),
    ("gamma", (1e15,), 18.688326730660015),
    ("chi2", (1e12,), 15.581022681448253),
    ("chi", (1e12,), 1.0723649429245334),
    ("nakagami", (1e12,), -13.08971920531963),
    ("invgamma", (1e12,), -40.027593140687483),
    ("beta", (1e12, 1e12), -13.436292795599769),
    ("beta", (2.0, 1e15), -32.961560730009155),
    ("f", (1e12, 1e13), -12.00234334457803),
]


@pytest.mark.parametrize(("name", "shapes", "expected"), LARGE)
def test_entropies_of_large_shapes_lose_no_digits(name: str, shapes: tuple[float, ...], expected: float) -> None:
    assert getattr(stats, name).entropy(*shapes).item() == pytest.approx(expected, rel=4e-15, abs=4e-15)


# mpmath's logarithms, with 60 digits
NEAR_THE_MODE: list[tuple[str, float, tuple[float, ...], float]] = [
    ("gamma", 2031.0, (2000.0,), -4.9726084550756894),
    ("chi2", 4062.0, (4000.0,), -5.6657556356356347),
    ("poisson", 2031.0, (2000.0,), -4.9661395844775087),
    ("beta", 0.5022360679774998, (2000.0, 2000.0), 3.8811905676016079),
    ("binom", 2031.0, (4000.0, 0.5), -4.8532777951584438),
    ("nbinom", 2031.0, (2000.0, 0.5), -5.1967783557929977),
    ("gamma", 1000022136.0, (1000000000.0,), -11.525591220011155),
    ("chi2", 2000044272.0, (2000000000.0,), -12.2187384005711),
    ("poisson", 1000022136.0, (1000000000.0,), -11.525581959876177),
    ("beta", 0.5000031622776602, (1000000000.0, 1000000000.0), 10.442415156022518),
    ("binom", 1000022136.0, (2000000000.0, 0.5), -11.424000357317921),
    ("nbinom", 1000022136.0, (1000000000.0, 0.5), -11.749660912110327),
    ("gamma", 1000000022135944.0, (1000000000000000.0,), -18.43332675756599),
    ("chi2", 2000000044271888.0, (2000000000000000.0,), -19.126473938125935),
    ("poisson", 1000000022135944.0, (1000000000000000.0,), -18.433326748305787),
    ("beta", 0.5000000031622777, (1000000000000000.0, 1000000000000000.0), 17.350170435045516),
    ("binom", 1000000022135944.0, (2000000000000000.0, 0.5), -18.331753157151179),
    ("nbinom", 1000000022135944.0, (1000000000000000.0, 0.5), -18.657400340378903),
]


@pytest.mark.parametrize(("name", "x", "shapes", "expected"), NEAR_THE_MODE)
def test_densities_of_large_shapes_lose_no_digits(
    name: str, x: float, shapes: tuple[float, ...], expected: float
) -> None:
    law, least = getattr(stats, name), 3e-8 if max(shapes) > 1e12 else 1e-10
    point = leaf(x)
    found = (law.logpdf if name in CONTINUOUS else law.logpmf)(point, *shapes)
    assert found.item() == pytest.approx(expected, abs=least)
    if name in CONTINUOUS:
        (slope,) = grad(law.cdf(point, *shapes), point)
        assert slope.item() == pytest.approx(np.exp(expected), rel=least)


@pytest.mark.parametrize(("name", "x", "shapes"), [(n, x, s) for n, x, s, _ in NEAR_THE_MODE if max(s) < 1e4])
def test_densities_of_large_shapes_in_every_mode(name: str, x: float, shapes: tuple[float, ...]) -> None:
    law, last = getattr(stats, name), shapes[-1]

    def of_ratio(r: Any) -> Any:
        """From the mode to where the usual formula is taken."""
        return (law.logpdf if name in CONTINUOUS else law.logpmf)(x, *shapes[:-1], last * r)

    assert gradcheck(of_ratio, [leaf([0.3, 0.9, 1.0, 1.1, 1.7])], check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(of_ratio, [leaf([0.9, 1.0, 1.1])], rtol=1e-4)


@pytest.mark.parametrize("df", [1e9, 1e12, 1e15, np.inf])
def test_many_degrees_of_freedom_are_a_normal_distribution(df: float) -> None:
    x = leaf([-2.0, 0.3])
    normal = scipy.stats.norm
    np.testing.assert_allclose(stats.t.logpdf(x, df).detach().numpy(), normal.logpdf(x.detach().numpy()), rtol=1e-8)
    (slope,) = grad(stats.t.cdf(x, df).sum(), x)
    np.testing.assert_allclose(slope.numpy(), normal.pdf(x.detach().numpy()), rtol=1e-8)
    assert stats.t.entropy(df).item() == pytest.approx(normal.entropy(), rel=2e-9)
    assert [stats.t.mean(df).item(), stats.t.var(df).item()] == pytest.approx([0.0, 1.0])
    many = stats.multivariate_t
    vectors = scipy.stats.multivariate_normal
    for dim in (1, 2, 3):
        point, centre, matrix = np.full(dim, 0.3), np.zeros(dim), np.eye(dim)
        found = many.logpdf(point, centre, matrix, df).item(), many.entropy(centre, matrix, df).item()
        assert found == pytest.approx((vectors.logpdf(point, centre), vectors.entropy(centre)), rel=2e-8)


def test_variances_of_large_shapes_lose_no_digits() -> None:
    assert stats.chi.var(1e15).item() == pytest.approx(0.5, rel=1e-14)
    assert stats.nakagami.var(1e15).item() == pytest.approx(2.5e-16, rel=1e-14)


@pytest.mark.parametrize("method", ["cdf", "sf", "logcdf", "logsf"])
def test_the_hessian_of_student_in_the_middle_is_symmetric(method: str) -> None:
    function = getattr(stats.t, method)
    found = pullback.func.hessian(lambda v: function(v[0], v[1]))(leaf([0.0, 5.7]).detach()).numpy()
    near = pullback.func.hessian(lambda v: function(v[0], v[1]))(leaf([1e-7, 5.7]).detach()).numpy()
    np.testing.assert_allclose(found, near, atol=1e-7)
    assert found[1, 0] == pytest.approx(found[0, 1], rel=1e-10)
    assert abs(found[0, 1]) > 1e-3
