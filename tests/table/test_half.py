"""Half precision. Its numbers end at 65504, and beyond 2048 adding 1 changes nothing: sums, squares and their kin are
found in single precision and rounded, here as in PyTorch.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from tests.oracle import cases


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def tensors(lib: Any) -> dict[str, Any]:
    """Many numbers from 0 to 1 in columns, some up to 300, ones, and the gradient of a sum of what a function makes."""

    def half(values: Any) -> Any:
        return lib.from_numpy(np.array(values, np.float16))

    def slope(function: Any, values: Any) -> Any:
        leaf = values.clone().requires_grad_()
        return lib.autograd.grad(function(leaf).sum(), leaf)[0]

    many = np.random.default_rng(1).uniform(0, 1, (5000, 4))
    return {
        "L": lib,
        "F": lib.nn.functional,
        "x": half(many),
        "big": half(np.linspace(1, 300, 60)),
        "one": half(np.ones(4)),
        "line": half(np.linspace(-300, 300, 61)),
        "slope": slope,
    }


CASES = cases("""
x.sum(0) | x.sum() | x.t().sum(1) | x.reshape(50, 100, 4).sum((0, 1)) | x.nansum(0) | (x * 60).mean(0) | x.mean()
L.sum(x, 0, dtype=L.float16) | L.ones(70000, dtype=L.float16).mean() | L.trapezoid(x, dim=0)
x[:, 0].cumsum(0)[-1] | x.cumsum(0)[-1] | x.logsumexp(0) | x.logcumsumexp(0)[-1] | L.softmax(x, 0) * 5000
L.log_softmax(x, 0) | x.var(0) | L.var_mean(x, 0)[1] | (big * 2).std() | L.std_mean(big * 2)[0] | L.cov(x[:500].t())
big.norm() | big.norm(3) | big.norm(2.5) | big.norm(1) | big.reshape(6, 10).norm(dim=1) | x.norm(3, 0) | x.norm(dim=0)
L.linalg.norm(big) | L.linalg.norm(big.reshape(6, 10)) | L.linalg.matrix_norm(big.reshape(6, 10), 1)
L.linalg.vector_norm(big) | L.linalg.vecdot(big / 10, big / 10) | L.dist(big, -big)
L.renorm(big.reshape(6, 10), 2, 0, 1)
F.normalize(big, dim=0) | F.cosine_similarity(big, big.flip(0), 0) | F.pairwise_distance(big, -big)
F.l1_loss(x * 1000, -x * 1000) | F.mse_loss(x * 200, x) | F.huber_loss(x * 1000, -x) | L.einsum("ij->j", x)
F.avg_pool1d(big.reshape(1, 1, 60) * 100, 30) | F.adaptive_avg_pool1d(big.reshape(1, 1, 60) * 100, 2)
slope(lambda b: (x + b) / 100, one) | slope(lambda b: (b.expand(5000, 4) * x), one) | slope(lambda a: a.mean(), x) * 1e4
slope(lambda a: a.std(0) * 1000, x) | slope(lambda a: L.softmax(a, 0) ** 2 * 1e4, x) | slope(lambda a: a.norm(), big)
slope(lambda a: L.ones(70000, dtype=L.float16).mul(a).mean() * 7, one[0])
slope(lambda a: F.layer_norm(a.t(), (5000,)) ** 3, x) | slope(lambda a: F.gelu(a, approximate="tanh"), line)
slope(lambda w: F.linear(x, w, one[:2]) / 100, one.expand(2, 4)) | slope(lambda b: F.linear(x, x[:2], b) / 10, one[:2])
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", CASES)
def test_half_precision_is_computed_in_single(torch: ModuleType, code: str) -> None:
    ours, theirs = (eval(code, tensors(lib)) for lib in (pullback, torch))
    assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2] == "float16"
    expected = theirs.numpy()
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(ours.numpy(), expected, rtol=4e-3, atol=4e-3 * np.abs(expected).max())


def test_gradients_of_half_precision_are_added_up_in_single() -> None:
    rows = pullback.zeros(3000, dtype=pullback.int64)
    w = pullback.ones(2, 3, dtype=pullback.float16, requires_grad=True)
    for read in (
        lambda: w[rows],
        lambda: pullback.nn.functional.embedding(rows, w),
        lambda: w.gather(0, rows[:, None].expand(-1, 3)),
        lambda: w.take(rows[:, None] + pullback.arange(3)),
        lambda: w.amax(0).expand(3000, 3),
    ):
        (found,) = pullback.autograd.grad((read() / 10).sum(), w)
        np.testing.assert_allclose(found.numpy().sum(0), 300, rtol=2e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_is_added_at_a_place_is_added_up_in_single(dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    index = pullback.zeros(3000, dtype=pullback.int64)
    x, into = (pullback.full((n,), value).to(getattr(pullback, dtype)) for n, value in ((3000, 0.1), (2, 0.0)))
    for found in (
        into.index_add(0, index, x),
        into.scatter_add(0, index, x),
        into.put(index, x, accumulate=True),
        into.index_put((index,), x, accumulate=True),
        into.clone().index_add_(0, index, x),
        into.clone().index_put_((index,), x, accumulate=True),
        into.index_reduce(0, index, x, "mean") * 3000,
    ):
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found.tolist(), [300, 0], rtol=1e-2)
