"""First values of parameters, gradients that are clipped, and parameters as a vector.

What is deterministic agrees with PyTorch to the last digit it shows; of what is random the distribution is tested: its
bounds, its first moments, and with SciPy the whole of it, from a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.nn import Parameter, init, utils

# what is not random ---------------------------------------------------------------------------------------------------


def test_what_is_no_tensor_is_refused() -> None:
    for name in init.__all__:
        if name != "calculate_gain":
            with pytest.raises(TypeError, match=rf"{name}\(\): expected a Tensor, found list"):
                getattr(init, name)([1.0], *((1.0,) if name in ("constant_", "sparse_") else ()))


def test_the_shape_is_said_where_it_does_not_fit() -> None:
    with pytest.raises(
        ValueError, match=r"Only tensors with 2 dimensions are supported by eye_\(\): found shape \[2\]"
    ):
        init.eye_(pullback.empty(2))


# what is random -------------------------------------------------------------------------------------------------------

SHAPE = (200, 50, 3)
FAN_IN, FAN_OUT = 150, 600
SLOPE = 2 / (1 + 0.3**2)


def wrapped(name: str, *args: Any, **kwargs: Any) -> Any:
    return pytest.param(
        lambda t, g=None: getattr(init, name)(t, *args, generator=g, **kwargs), id=f"{name}{args or ''}{kwargs or ''}"
    )


UNIFORM = [
    (wrapped("uniform_"), 0.0, 1.0),
    (wrapped("uniform_", -2.0, 3.0), -2.0, 3.0),
    (wrapped("xavier_uniform_"), None, math.sqrt(6 / (FAN_IN + FAN_OUT))),
    (wrapped("xavier_uniform_", gain=3.0), None, 3 * math.sqrt(6 / (FAN_IN + FAN_OUT))),
    (wrapped("kaiming_uniform_"), None, math.sqrt(2) * math.sqrt(3 / FAN_IN)),
    (wrapped("kaiming_uniform_", a=0.3, mode="fan_out"), None, math.sqrt(SLOPE * 3 / FAN_OUT)),
    (wrapped("kaiming_uniform_", nonlinearity="tanh"), None, 5 / 3 * math.sqrt(3 / FAN_IN)),
]
NORMAL = [
    (wrapped("normal_"), 0.0, 1.0),
    (wrapped("normal_", -2.0, 3.0), -2.0, 3.0),
    (wrapped("xavier_normal_"), 0.0, math.sqrt(2 / (FAN_IN + FAN_OUT))),
    (wrapped("xavier_normal_", gain=3.0), 0.0, 3 * math.sqrt(2 / (FAN_IN + FAN_OUT))),
    (wrapped("kaiming_normal_"), 0.0, math.sqrt(2 / FAN_IN)),
    (wrapped("kaiming_normal_", a=0.3, mode="FAN_OUT"), 0.0, math.sqrt(SLOPE / FAN_OUT)),
    (wrapped("kaiming_normal_", nonlinearity="linear"), 0.0, math.sqrt(1 / FAN_IN)),
]
TRUNCATED = [
    (wrapped("trunc_normal_"), 0.0, 1.0, -2.0, 2.0),
    (wrapped("trunc_normal_", 1.0, 2.0, 0.0, 1.5), 1.0, 2.0, 0.0, 1.5),  # narrow: few normal draws would fall there
    (wrapped("trunc_normal_", 0.0, 1.0, 1.0, 1.5), 0.0, 1.0, 1.0, 1.5),  # at the side
    (wrapped("trunc_normal_", 0.0, 1.0, -math.inf, -1.9), 0.0, 1.0, -math.inf, -1.9),  # a tail without end
    (wrapped("trunc_normal_", 0.0, 1.0, -math.inf, math.inf), 0.0, 1.0, -math.inf, math.inf),
]


def cases(table: list[Any]) -> list[Any]:
    return [pytest.param(*case[0].values, *case[1:], id=case[0].id) for case in table]


def drawn(fill: Callable[..., Any]) -> np.ndarray:
    """The values that `fill` writes, once it is known to write them in place and outside of any graph."""
    p = Parameter(pullback.zeros(*SHAPE))
    assert fill(p) is p
    assert p.is_leaf
    assert p.requires_grad
    assert p._version > 0
    return p.detach().numpy().astype(np.float64).ravel()


def distributed_as(values: np.ndarray, law: Any) -> None:
    """The values have the law's mean and spread, and pass the test of Kolmogorov and Smirnov."""
    stats = pytest.importorskip("scipy.stats")
    assert stats.kstest(values, law.cdf).pvalue > 1e-4
    assert abs(values.mean() - law.mean()) < 5 * law.std() / math.sqrt(values.size)


@pytest.mark.parametrize(("fill", "low", "high"), cases(UNIFORM))
def test_uniform_values(fill: Callable[..., Any], low: float | None, high: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    low = -high if low is None else low
    values = drawn(fill)
    assert values.min() >= np.float32(low)
    assert values.max() <= np.float32(high)
    distributed_as(values, stats.uniform(low, high - low))


@pytest.mark.parametrize(("fill", "mean", "std"), cases(NORMAL))
def test_normal_values(fill: Callable[..., Any], mean: float, std: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    values = drawn(fill)
    assert values.std() == pytest.approx(std, rel=0.02)
    distributed_as(values, stats.norm(mean, std))


@pytest.mark.parametrize(("fill", "mean", "std", "low", "high"), cases(TRUNCATED))
def test_truncated_values(fill: Callable[..., Any], mean: float, std: float, low: float, high: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    values = drawn(fill)
    assert values.min() >= np.float32(low)
    assert values.max() <= np.float32(high)
    distributed_as(values, stats.truncnorm((low - mean) / std, (high - mean) / std, mean, std))


def test_truncated_values_far_from_the_mean() -> None:
    stats = pytest.importorskip("scipy.stats")
    for low, high in ((30.0, math.inf), (30.0, 1e9), (-40.0, -30.0)):
        with pytest.warns(UserWarning, match="mean is more than 2 std from"):
            values = init.trunc_normal_(pullback.empty(20_000, dtype=pullback.float64), 0.0, 1.0, low, high).numpy()
        near, side = (low, 1.0) if low > 0 else (-high, -1.0)
        distributed_as(side * values, stats.truncnorm(near, near + 9))


@pytest.mark.parametrize(
    "args", [(0, 0), (0, -1), (0, math.inf), (math.nan, 1), (math.inf, 1), (0, 1, 2, 1), (0, 1, math.nan)], ids=str
)
def test_a_truncated_law_that_is_none(args: tuple[float, ...]) -> None:
    x = pullback.zeros(2)
    with pytest.raises(RuntimeError, match="expected a finite mean, std > 0 and a <= b"):
        init.trunc_normal_(x, *args)
    assert x.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("fill", [case.values[0] for table in (UNIFORM, NORMAL, TRUNCATED) for case, *_ in table])
def test_values_come_from_the_generator(fill: Callable[..., Any]) -> None:
    def values(generator: Any = None) -> Any:
        return fill(pullback.empty(4, 5, dtype=pullback.float64), generator).tolist()

    own = pullback.Generator().manual_seed(3)
    first = values(own)
    assert values(own) != first
    assert values(pullback.Generator().manual_seed(3)) == first
    pullback.manual_seed(3)
    assert values() == first


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 4), (6, 1, 2), (1, 1), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_orthogonal_values(shape: tuple[int, ...], dtype: str) -> None:
    p = Parameter(pullback.zeros(*shape, dtype=getattr(pullback, dtype)))
    assert init.orthogonal_(p, gain=2.0) is p
    m = p.detach().numpy().astype(np.float64).reshape(shape[0], math.prod(shape[1:]))
    square = m @ m.T if m.shape[0] <= m.shape[1] else m.T @ m
    if m.size:
        np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=64 * np.finfo(dtype).eps)


def test_orthogonal_matrices_have_no_preferred_direction() -> None:
    found = np.array([init.orthogonal_(pullback.empty(2, 2, dtype=pullback.float64)).numpy() for _ in range(4000)])
    angles = np.arctan2(found[:, 1, 0], found[:, 0, 0])
    determinants = np.linalg.det(found)
    assert abs(np.exp(1j * angles).mean()) < 0.06
    assert abs(determinants.mean()) < 0.06  # rotations as often as reflections


@pytest.mark.parametrize(("sparsity", "zeros"), [(0.0, 0), (0.1, 1), (0.25, 3), (0.5, 5), (1.0, 10)])
def test_sparse_values(sparsity: float, zeros: int) -> None:
    p = Parameter(pullback.ones(10, 400, dtype=pullback.float64))
    assert init.sparse_(p, sparsity, std=2.0) is p
    values = p.detach().numpy()
    assert ((values == 0).sum(axis=0) == zeros).all()
    if zeros < 10:
        assert values[values != 0].std() == pytest.approx(2.0, rel=0.1)
    if 0 < zeros < 10:  # every row has its share
        assert (values == 0).mean(axis=1) == pytest.approx(zeros / 10, abs=0.1)


def test_sparse_values_come_from_the_generator() -> None:
    first, second = (
        init.sparse_(pullback.empty(5, 4), 0.3, generator=pullback.Generator().manual_seed(1)).tolist()
        for _ in range(2)
    )
    assert first == second


# clipping gradients ---------------------------------------------------------------------------------------------------


def test_the_norm_of_many_half_precision_gradients_does_not_overflow() -> None:
    p = Parameter(pullback.zeros(10_000, dtype=pullback.float16))
    p.grad = pullback.full((10_000,), 100.0, dtype=pullback.float16)
    assert utils.clip_grad_norm_(p, 1.0).item() == 10_000.0
    assert p.grad[0].item() == pytest.approx(0.01, rel=1e-3)


def test_what_has_no_gradients_is_refused() -> None:
    with pytest.raises(TypeError, match="parameters: expected a Tensor or several, found float 1"):
        utils.clip_grad_norm_([1.0], 1.0)


# parameters as a vector -----------------------------------------------------------------------------------------------


def test_a_vector_that_is_too_short_changes_nothing() -> None:
    ps = [Parameter(pullback.ones(2)), Parameter(pullback.ones(2))]
    with pytest.raises(RuntimeError, match=r"expected a vector of 4 elements, found Tensor of float32\[3\]"):
        utils.vector_to_parameters(pullback.zeros(3), ps)
    assert [p.tolist() for p in ps] == [[1.0, 1.0], [1.0, 1.0]]
