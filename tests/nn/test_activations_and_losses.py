"""Activations, dropout and losses of `nn.functional`, in what the table's samples cannot say.

Writing in place, random numbers, warnings, signatures, large arrays, alignments counted one by one.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.func import grad, vmap
from pullback.kernels.masks import either, only
from pullback.nn import functional as F  # noqa: N812 - the field's name for it

SMOOTH = np.array([-3.5, -2.2, -0.7, -0.1, 0.2, 0.9, 2.3, 3.7, 7.1])
EXTREMES = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e300, -1e-300])


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def tensor(values: Any, requires_grad: bool = False) -> pullback.Tensor:
    """A tensor of double precision."""
    return pullback.tensor(np.array(values, dtype=np.float64), requires_grad=requires_grad)


# Names ----------------------------------------------------------------------------------------------------------------

NAMES = """
    relu relu6 elu selu celu gelu silu mish softplus softsign softshrink hardshrink hardsigmoid hardswish hardtanh
    tanhshrink leaky_relu prelu rrelu logsigmoid threshold glu softmax softmin log_softmax gumbel_softmax tanh sigmoid
    relu_ elu_ selu_ celu_ leaky_relu_ hardtanh_ rrelu_ threshold_
    dropout alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d
    mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss gaussian_nll_loss poisson_nll_loss
    binary_cross_entropy binary_cross_entropy_with_logits kl_div hinge_embedding_loss margin_ranking_loss
    multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss triplet_margin_loss
    triplet_margin_with_distance_loss cosine_embedding_loss ctc_loss linear_cross_entropy
    linear bilinear cosine_similarity pairwise_distance one_hot normalize
""".split()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.torch
def test_a_function_has_the_parameters_of_torch(torch: ModuleType, name: str) -> None:
    ours = getattr(F, name)
    try:
        theirs = inspect.signature(getattr(torch.nn.functional, name)).parameters
    except ValueError:  # written in C++
        assert callable(ours)
        return
    found = {n: p for n, p in inspect.signature(ours).parameters.items() if n in theirs or n != "out"}
    assert list(found) == list(theirs)
    assert [p.default for p in found.values()] == [p.default for p in theirs.values()]


def test_what_is_missing_says_so() -> None:
    with pytest.raises(AttributeError, match="not in pullback, or not yet"):
        F.nonsense  # noqa: B018


# In place -------------------------------------------------------------------------------------------------------------

IN_PLACE: dict[str, tuple[Any, ...]] = {
    "relu": (),
    "relu6": (),
    "elu": (0.7,),
    "selu": (),
    "celu": (1.5,),
    "silu": (),
    "mish": (),
    "hardsigmoid": (),
    "hardswish": (),
    "hardtanh": (-1.0, 2.0),
    "leaky_relu": (0.2,),
    "rrelu": (0.1, 0.3),
    "threshold": (0.5, -1.0),
}


def _written(lib: ModuleType, call: Callable[..., Any], args: tuple[Any, ...], **kwargs: Any) -> Any:
    x = lib.tensor(SMOOTH.tolist(), dtype=lib.float64, requires_grad=True)
    y = x * 1
    out = call(y, *args, **kwargs)
    assert out is y
    out.sum().backward()
    return out.detach().numpy(), x.grad.numpy()


@pytest.mark.torch
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_writes_and_is_differentiated(torch: ModuleType, name: str) -> None:
    args = IN_PLACE[name]
    results = [_written(lib, getattr(lib.nn.functional, name), args, inplace=True) for lib in (pullback, torch)]
    for ours, theirs in zip(*results, strict=True):
        # torch's derivative of hardsigmoid is of single precision
        np.testing.assert_allclose(ours, theirs, rtol=1e-12 if name != "hardsigmoid" else 1e-7)


@pytest.mark.torch
@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith("_")])
def test_a_name_with_an_underscore_writes(torch: ModuleType, name: str) -> None:
    args = IN_PLACE[name[:-1]]
    results = [_written(lib, getattr(lib.nn.functional, name), args) for lib in (pullback, torch)]
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_leaf_is_not_written() -> None:
    x = tensor(SMOOTH, requires_grad=True)
    for call in (F.silu, F.elu, F.hardtanh, F.dropout):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            call(x, inplace=True)
    np.testing.assert_array_equal(x.detach().numpy(), SMOOTH)


# Choosing by masks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("size", [9, 9 * 1000])
def test_a_choice_is_exact(dtype: str, size: int) -> None:
    with np.errstate(over="ignore"):
        values = np.resize(EXTREMES, size).astype(dtype)
    others, mask = values[::-1], np.random.default_rng(0).random(size) < 0.5
    bits = f"u{values.itemsize}"
    for found, expected in (
        (either(mask, values, others), np.where(mask, values, others)),
        (only(mask, values), np.where(mask, values, values.dtype.type(0))),
        (only(mask, np.broadcast_to(values[4], size)), np.where(mask, values[4], values.dtype.type(0))),
    ):
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found.view(bits), expected.view(bits))


def test_a_choice_takes_what_numpy_takes() -> None:
    mask = np.arange(6000) % 2 == 0
    np.testing.assert_array_equal(either(mask, np.arange(6000), 0.5), np.where(mask, np.arange(6000), 0.5))
    np.testing.assert_array_equal(only(mask, np.ones((2, 6000))), np.where(mask, np.ones((2, 6000)), 0))
    assert only(mask, np.ones(6000, complex)).dtype == complex


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", "relu elu selu gelu silu mish softplus hardswish leaky_relu softshrink logsigmoid hardtanh".split()
)
def test_large_arrays(torch: ModuleType, name: str) -> None:
    values, weights = np.random.default_rng(1).standard_normal((2, 70, 1000)) * 3
    found = []
    for lib in (pullback, torch):
        x = lib.from_numpy(values).requires_grad_()
        out = getattr(lib.nn.functional, name)(x)
        found.append((out.detach().numpy(), lib.autograd.grad(out, x, lib.from_numpy(weights))[0].numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(("dtype", "ulps"), [("float64", 8), ("float32", 8)])
def test_gelu_is_accurate_in_the_tail(dtype: str, ulps: float) -> None:
    x = np.linspace(-6, 6, 4001).astype(dtype)
    exact = np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x.tolist()])
    found = F.gelu(pullback.from_numpy(x)).numpy().astype(np.float64)
    error = np.abs(found - exact) / np.maximum(np.abs(exact), np.finfo(dtype).tiny)
    # exp(-x**2 / 2) is as inexact as its argument is large
    assert (error <= ulps * np.finfo(dtype).eps * (1 + x.astype(np.float64) ** 2 / 8)).all()


def test_gelu_of_half_precision() -> None:
    x = np.linspace(-3, 3, 25)
    found = F.gelu(pullback.from_numpy(x.astype(np.float16)))
    assert found.dtype is pullback.float16
    np.testing.assert_allclose(found.numpy(), F.gelu(tensor(x)).numpy(), atol=2e-3)


FAR = [
    ("gelu", {}, 54.6, 1600),
    ("gelu", {}, -300, 1600),
    ("gelu", {}, 6e4, 1),
    ("gelu", {"approximate": "tanh"}, 60, 1),
    ("gelu", {"approximate": "tanh"}, -6e4, 1),
    ("mish", {}, 60, 1),
    ("mish", {}, -6e4, 1),
]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(("name", "options", "value", "along"), FAR)
def test_second_derivatives_of_half_precision_far_from_zero(
    name: str, options: dict[str, str], value: float, along: float, batch: bool
) -> None:
    def f(x: pullback.Tensor) -> Any:
        return pullback.func.grad(lambda x: getattr(F, name)(x, **options))(x)

    x = pullback.tensor([value], dtype=pullback.float16, requires_grad=True)
    first = pullback.vmap(f)(x) if batch else f(x[0])[None]
    (second,) = pullback.autograd.grad(first, x, pullback.full_like(x, along), create_graph=True)
    (third,) = pullback.autograd.grad(second.sum(), x)
    assert first.item() == pytest.approx(float(value > 0), abs=1e-3)
    assert (second.tolist(), third.tolist()) == ([0], [0])


# Random numbers -------------------------------------------------------------------------------------------------------


def _twice(call: Callable[[], Any]) -> tuple[Any, Any]:
    pullback.manual_seed(5)
    first = call()
    pullback.manual_seed(5)
    return first, call()


def test_dropout_keeps_the_mean_and_scales_the_gradient() -> None:
    x = tensor(np.full(20000, 2.0), requires_grad=True)
    out, again = _twice(lambda: F.dropout(x, 0.2))
    values = out.detach().numpy()
    assert set(values.tolist()) == {0.0, 2.5}
    assert abs((values == 0).mean() - 0.2) < 0.015
    np.testing.assert_array_equal(values, again.detach().numpy())
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values / 2)


def test_dropout_at_the_ends_of_p() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    assert F.dropout(x, training=False) is x
    assert F.dropout(x, 0.0) is x
    out = F.dropout(x, 1.0)
    assert out.tolist() == [0.0, 0.0]
    assert pullback.autograd.grad(out.sum(), x)[0].tolist() == [0.0, 0.0]
    assert F.alpha_dropout(x, 1.0, True).tolist() == [0.0, 0.0]
    y = x * 1
    assert F.dropout(y, 1.0, inplace=True) is y
    assert y.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "size", "axes"),
    [
        (F.dropout1d, (40, 30, 4), (2,)),
        (F.dropout1d, (600, 4), (1,)),
        (F.dropout2d, (40, 30, 2, 3), (2, 3)),
        (F.dropout3d, (40, 30, 2, 3, 1), (2, 3, 4)),
        (F.dropout3d, (600, 2, 3, 1), (1, 2, 3)),
    ],
)
def test_channels_are_left_out_whole(call: Callable[..., Any], size: tuple[int, ...], axes: tuple[int, ...]) -> None:
    pullback.manual_seed(0)
    values = call(pullback.ones(*size), 0.5).numpy()
    low, high = values.min(axis=axes), values.max(axis=axes)
    np.testing.assert_array_equal(low, high)
    assert set(low.ravel().tolist()) == {0.0, 2.0}
    assert abs((low == 0).mean() - 0.5) < 0.08
    y = pullback.ones(*size)
    assert call(y, 0.5, inplace=True) is y
    assert set(y.numpy().ravel().tolist()) == {0.0, 2.0}


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    pullback.manual_seed(3)
    x = pullback.randn(200, 500, dtype=pullback.float64)
    for p in (0.1, 0.5):
        for call in (F.alpha_dropout, F.feature_alpha_dropout):
            out = call(x[:, :, None], p, True)
            assert abs(out.mean().item()) < 0.03
            assert abs(out.std().item() - 1) < 0.03
    features = F.feature_alpha_dropout(pullback.randn(50, 40, 3), 0.5, True).numpy()
    off = (features == features[:, :, :1]).all(axis=2)
    assert abs(off.mean() - 0.5) < 0.05
    assert len(set(features[off].ravel().tolist())) == 1
    y = pullback.ones(3, 2)
    assert F.alpha_dropout(y, 0.5, True, inplace=True) is y


def test_rrelu_draws_slopes() -> None:
    x = tensor(np.linspace(-3, 3, 5001), requires_grad=True)
    out = F.rrelu(x, 0.1, 0.4, training=True)
    out.sum().backward()
    slopes, positive = x.grad.numpy(), x.detach().numpy() > 0
    assert (slopes[positive] == 1).all()
    assert slopes[~positive].min() >= 0.1
    assert slopes[~positive].max() <= 0.4
    assert abs(slopes[~positive].mean() - 0.25) < 0.01
    np.testing.assert_array_equal(out.detach().numpy(), x.detach().numpy() * slopes)


def test_gumbel_softmax_chooses_with_the_probabilities_of_softmax() -> None:
    pullback.manual_seed(2)
    logits = tensor([1.0, 0.0, -1.0])
    hard = F.gumbel_softmax(logits.expand(20000, 3), hard=True)
    assert set(hard.numpy().round(12).ravel().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(hard.numpy().mean(axis=0), F.softmax(logits, 0).numpy(), atol=0.015)
    warm = F.gumbel_softmax(logits.expand(20000, 3), tau=0.01).numpy()
    np.testing.assert_allclose(warm.mean(axis=0), F.softmax(logits, 0).numpy(), atol=0.015)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gumbel_softmax_has_the_gradient_of_what_is_soft(dim: int) -> None:
    x = tensor(np.random.default_rng(0).standard_normal((3, 4)), requires_grad=True)
    weights = tensor(np.arange(12.0).reshape(3, 4))

    def gradient(hard: bool) -> Any:
        pullback.manual_seed(1)
        out = F.gumbel_softmax(x, 0.7, hard, dim=dim)
        np.testing.assert_allclose(out.detach().numpy().sum(axis=dim), 1)
        return pullback.autograd.grad((out * weights).sum(), x)[0].numpy()

    np.testing.assert_array_equal(gradient(True), gradient(False))
    assert gradient(True).any()


def test_vmap_is_told_how_to_draw() -> None:
    x = pullback.ones(3, 200)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(F.dropout)(x)
    same = vmap(F.dropout, randomness="same")(x).numpy()
    assert (same == same[0]).all()
    assert (same == 0).any()
    different = vmap(F.dropout, randomness="different")(x).numpy()
    assert (different != different[0]).any()
    assert set(different.ravel().tolist()) == {0.0, 2.0}


# Warnings -------------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("average", "reduce", "meant"),
    [(True, None, "mean"), (False, None, "sum"), (None, False, "none"), (True, True, "mean"), (False, True, "sum")],
)
def test_the_older_arguments_of_losses(torch: ModuleType, average: Any, reduce: Any, meant: str) -> None:
    x = np.array([[0.2, 0.7], [0.4, 0.1]])
    labels = np.array([0, 1])
    for name in "mse_loss l1_loss smooth_l1_loss soft_margin_loss nll_loss poisson_nll_loss kl_div".split():
        found = []
        for lib in (pullback, torch):
            target = lib.from_numpy(labels if name == "nll_loss" else x[::-1].copy())
            loss = getattr(lib.nn.functional, name)
            with pytest.warns(UserWarning, match=f"please use reduction='{meant}'"):
                found.append(loss(lib.from_numpy(x), target, size_average=average, reduce=reduce).numpy())
        np.testing.assert_allclose(*found)


def test_a_warning_points_at_the_caller() -> None:
    x = pullback.ones(2, 2)
    calls: list[tuple[Callable[..., Any], str]] = [
        (lambda: F.mse_loss(x, x, reduce=False), "size_average and reduce args"),
        (lambda: F.mse_loss(x, x, reduction="elementwise_mean"), "elementwise_mean"),
        (lambda: F.mse_loss(x, x[0]), "is broadcast with an input"),
        (lambda: F.kl_div(x, x), "'mean' divides"),
        (lambda: F.softmax(x), "Implicit dimension choice"),
        (lambda: F.log_softmax(x), "Implicit dimension choice"),
        (lambda: F.softmin(x), "Implicit dimension choice"),
        (lambda: F.gumbel_softmax(x, eps=1e-3), "`eps` parameter"),
        (lambda: F.dropout2d(x[None]), "dropout2d: Received a 3-D input"),
        (lambda: F.dropout3d(x[None]), "dropout3d: Received a 3-D input"),
    ]
    for call, text in calls:
        with pytest.warns(UserWarning, match=text) as caught:
            call()
        assert caught[0].filename == __file__, text


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Implicit dimension")
def test_the_implicit_dimension_of_softmax(torch: ModuleType) -> None:
    for shape in ((3,), (2, 3), (2, 3, 2), (2, 1, 3, 2)):
        x = np.random.default_rng(0).standard_normal(shape)
        ours, theirs = (lib.nn.functional.softmax(lib.from_numpy(x)).numpy() for lib in (pullback, torch))
        np.testing.assert_allclose(ours, theirs)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.*broadcast")
def test_a_target_is_broadcast(torch: ModuleType) -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 3, 4))
    for name in "mse_loss l1_loss smooth_l1_loss huber_loss".split():
        ours, theirs = (
            getattr(lib.nn.functional, name)(lib.from_numpy(x), lib.from_numpy(y[0])).item()
            for lib in (pullback, torch)
        )
        assert ours == pytest.approx(theirs, rel=1e-12)


# Losses ---------------------------------------------------------------------------------------------------------------


def test_gradients_for_each_example_with_its_own_class() -> None:
    logits = tensor(np.random.default_rng(0).standard_normal((5, 3)))
    labels = pullback.tensor([0, 2, 1, -100, 2])

    def loss(x: Any, label: Any) -> Any:
        return F.cross_entropy(x, label, reduction="sum", label_smoothing=0.1)

    found = vmap(grad(loss))(logits, labels)
    for x, label, gradient in zip(logits, labels, found, strict=True):
        np.testing.assert_allclose(gradient.numpy(), grad(loss)(x, label).numpy(), atol=1e-15)
    margins = vmap(grad(F.multi_margin_loss))(logits, labels.abs() % 3)
    np.testing.assert_allclose(margins[0].numpy(), grad(F.multi_margin_loss)(logits[0], labels[0]).numpy())


def test_a_class_out_of_range_changes_nothing() -> None:
    x = tensor([[1.0, 2.0]], requires_grad=True)
    with pytest.raises(IndexError, match="Target 2 is out of bounds: expected classes 0 to 1"):
        F.cross_entropy(x, pullback.tensor([2]))
    with pytest.raises(RuntimeError, match="Target -5 is out of bounds"):
        F.multi_margin_loss(x, pullback.tensor([-5]))


def test_what_is_ignored_may_be_anything() -> None:
    x = tensor([[0.5, 1.5], [np.nan, np.inf]], requires_grad=True)
    loss = F.nll_loss(x, pullback.tensor([1, -100]))
    assert loss.item() == -1.5
    assert pullback.autograd.grad(loss, x)[0].tolist() == [[0.0, -1.0], [0.0, 0.0]]


def test_a_bound_of_the_variance_does_not_stop_the_gradient() -> None:
    var = tensor([0.0, 2.0], requires_grad=True)
    F.gaussian_nll_loss(tensor([1.0, 1.0]), tensor([1.0, 1.0]), var, eps=0.5, reduction="sum").backward()
    assert var.grad.tolist() == [1.0, 0.25]


def test_a_distance_of_the_callers() -> None:
    a, p, n = tensor([[0.0, 0.0]]), tensor([[1.0, 2.0]]), tensor([[0.5, 0.0]])

    def city(x: Any, y: Any) -> Any:
        return (x - y).abs().sum(-1)

    assert F.triplet_margin_with_distance_loss(a, p, n, distance_function=city).item() == 3.5
    assert F.triplet_margin_with_distance_loss(a, p, n, distance_function=city, margin=2.0, swap=True).item() == 4.5


def test_normalize_writes_out() -> None:
    out = pullback.empty(1, 2)
    assert F.normalize(pullback.tensor([[3.0, 4.0]]), out=out) is out
    np.testing.assert_allclose(out.numpy(), [[0.6, 0.8]], rtol=1e-6)


# Sequences ------------------------------------------------------------------------------------------------------------


def _collapsed(path: tuple[int, ...], blank: int) -> list[int]:
    return [label for label, _ in itertools.groupby(path) if label != blank]


@pytest.mark.parametrize(
    ("labels", "blank"), [([1, 2], 0), ([1, 1], 0), ([0], 2), ([], 1), ([2, 1, 2], 0), ([0, 0], 1)]
)
def test_ctc_is_the_sum_over_alignments(labels: list[int], blank: int) -> None:
    steps, classes = 4, 3
    logs = F.log_softmax(tensor(np.random.default_rng(len(labels)).standard_normal((steps, classes))), 1)
    probability = sum(
        math.exp(sum(logs[t, c].item() for t, c in enumerate(path)))
        for path in itertools.product(range(classes), repeat=steps)
        if _collapsed(path, blank) == labels
    )
    target = pullback.tensor(labels, dtype=pullback.int64)
    found = F.ctc_loss(logs, target, (steps,), (len(labels),), blank, reduction="none")
    assert math.exp(-found.item()) == pytest.approx(probability, rel=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("blank", [0, 3])
def test_ctc_behind_log_softmax(torch: ModuleType, blank: int, reduction: str, zero_infinity: bool) -> None:
    rng = np.random.default_rng(blank)
    x = rng.standard_normal((7, 5, 4)) * 2
    targets = rng.integers(0, 3, (5, 4)) + (blank == 0)
    # the third does not fit, the fourth has no label, the last no time either
    times, lengths = (7, 6, 3, 5, 0), (4, 2, 4, 0, 0)
    targets[2] = targets[2, 0]
    found = []
    for lib in (pullback, torch):
        leaf = lib.from_numpy(x).requires_grad_()
        logs = lib.nn.functional.log_softmax(leaf, 2)
        loss = lib.nn.functional.ctc_loss(
            logs, lib.from_numpy(targets), times, lengths, blank, reduction, zero_infinity
        )
        weighted = (loss * lib.arange(1.0, 6.0, dtype=lib.float64)).sum() if reduction == "none" else loss
        found.append((loss.detach().numpy(), lib.autograd.grad(weighted, leaf)[0].numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)
    assert np.isinf(found[0][0]).any() != zero_infinity or reduction != "none"


def test_ctc_with_impossible_labels_has_a_gradient() -> None:
    x = tensor(np.random.default_rng(0).standard_normal((5, 1, 3)), requires_grad=True)
    masked = x.masked_fill(pullback.tensor([False, False, True]), -math.inf)
    loss = F.ctc_loss(F.log_softmax(masked, 2), pullback.tensor([[1]]), (5,), (1,))
    (gradient,) = pullback.autograd.grad(loss, x)
    assert np.isfinite(gradient.numpy()).all()
    assert gradient.numpy()[:, :, :2].any()


def test_ctc_has_second_derivatives() -> None:
    x = tensor(np.random.default_rng(1).standard_normal((4, 2, 3)), requires_grad=True)

    def loss(x: Any) -> Any:
        return F.ctc_loss(F.log_softmax(x, 2), pullback.tensor([[1, 2], [1, 1]]), (4, 3), (2, 2), reduction="none")

    assert pullback.autograd.gradgradcheck(loss, (x,))


# Half precision: what lies between the arguments and the result may be beyond it --------------------------------------

BEYOND_HALF = [
    "L.nn.functional.layer_norm(x, (4,)) * w",
    "L.nn.functional.layer_norm(x, (4,), w, w)",
    "L.nn.functional.rms_norm(x / 1000, (4,)) * w",
    "L.nn.functional.rms_norm(x, (4,)) * w",
    "L.nn.functional.group_norm(x[None], 2) * w",
    "L.nn.functional.instance_norm(x[None]) * w",
    "L.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])",
    "L.nn.functional.scaled_dot_product_attention(x, x / 300, x, attn_mask=x[:, :2] / 300)",
    "L.nn.functional.normalize(x / 1000 / 1000)",
    "L.nn.functional.cosine_similarity(x / 1000 / 1000, w[None])",
    "L.renorm(100 * x, 2, 0, 1.0)",
    "L.addcmul(x, x, x, value=1e-3)",
    "L.addcdiv(x, 100 * x, x / 3000, value=1e-3)",
    "L.lerp(120 * x, -120 * x, 0.5)",
]


@pytest.mark.torch
@pytest.mark.parametrize("code", BEYOND_HALF)
def test_half_precision_is_left_in_between(torch: ModuleType, code: str) -> None:
    found = []
    for lib in (pullback, torch):
        values = [[300.0, -400.0, 250.0, 60.0], [-310.0, 280.0, 45.0, 500.0]]
        x = lib.tensor(values, dtype=lib.float16, requires_grad=True)
        out = eval(code, {"L": lib, "x": x, "w": lib.tensor([1.0, -2.0, 3.0, 0.5], dtype=lib.float16)})
        out.sum().backward()
        found.append([out.dtype == lib.float16, out.detach().float().numpy(), x.grad.float().numpy()])
    assert found[0][0]
    for mine, theirs in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-2, atol=2e-3 * np.abs(theirs[np.isfinite(theirs)]).max())


# Numbers that a dtype cannot hold -------------------------------------------------------------------------------------

TOO_LARGE = [
    ("threshold", (2, 7e4), "float16"),
    ("threshold", (2, -1e5), "float16"),
    ("threshold", (2, 1e39), "bfloat16"),
    ("threshold", (2, 1e39), "float32"),
    ("threshold", (1e39, 2), "float16"),
    ("threshold", (2, 300), "uint8"),
    ("threshold", (float("inf"), 2), "int32"),
    ("threshold", (float("nan"), 2), "int64"),
    ("threshold", (2**40, 2), "int32"),
    ("hardtanh", (-7e4, 7e4), "float16"),
    ("hardtanh", (0, 1e39), "bfloat16"),
    ("hardtanh", (0, 1e39), "float32"),
    ("hardtanh", (0, 300), "int8"),
]


def of_numbers(lib: ModuleType, name: str, numbers: tuple[float, ...], dtype: str, inplace: bool) -> Any:
    x = lib.tensor([1, 3], dtype=getattr(lib, dtype))
    try:
        return getattr(lib.nn.functional, name)(x, *numbers, inplace=inplace).tolist()
    except RuntimeError as error:
        known = re.search("value cannot be converted to type .* without overflow", str(error))
        return "refused" if known else str(error), x.tolist()


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(("name", "numbers", "dtype"), TOO_LARGE)
def test_a_number_that_the_dtype_cannot_hold_is_refused(
    name: str, numbers: tuple[float, ...], dtype: str, inplace: bool
) -> None:
    assert of_numbers(pullback, name, numbers, dtype, inplace) == ("refused", [1, 3])


HELD = [
    ("threshold", (2, 65504), "float16"),
    ("threshold", (7e4, 2), "float16"),
    ("threshold", (2, float("-inf")), "float16"),
    ("threshold", (2, 1e38), "bfloat16"),
    ("threshold", (2, -1), "uint8"),
    ("hardtanh", (float("-inf"), 2), "float16"),
    ("hardtanh", (-65504, 2), "float16"),
    ("hardtanh", (0, 2.5), "int32"),
]


@pytest.mark.torch
@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(("name", "numbers", "dtype"), TOO_LARGE + HELD)
def test_so_it_is_in_torch(torch: ModuleType, name: str, numbers: tuple[float, ...], dtype: str, inplace: bool) -> None:
    assert of_numbers(pullback, name, numbers, dtype, inplace) == of_numbers(torch, name, numbers, dtype, inplace)


@pytest.mark.torch
@pytest.mark.parametrize("first", ["int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("second", ["float16", "bfloat16", "float32", "float64"])
def test_huber_loss_has_the_dtype_of_the_input(torch: ModuleType, first: str, second: str) -> None:
    found = []
    for lib in (pullback, torch):
        x, y = lib.tensor([3, -1]).to(getattr(lib, first)), lib.tensor([1.3, 2.0]).to(getattr(lib, second))
        try:
            result = lib.nn.functional.huber_loss(x, y, "none", 0.5)
            found.append((str(result.dtype).rpartition(".")[2], result.tolist()))
        except RuntimeError as error:
            found.append(("refused", ["can't be cast to the desired output type" in str(error)]))
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-2)


def test_huber_loss_of_two_dtypes_has_gradients() -> None:
    x = pullback.tensor([3.0, -1.0], dtype=pullback.float16, requires_grad=True)
    y = pullback.tensor([1.3, -0.9], dtype=pullback.float64, requires_grad=True)
    F.huber_loss(x, y, delta=0.5).backward()
    assert x.grad is not None
    assert y.grad is not None
    assert (x.grad.dtype, y.grad.dtype) == (pullback.float16, pullback.float64)
    np.testing.assert_allclose(x.grad.numpy(), [0.25, -0.05], rtol=2e-3)
    np.testing.assert_allclose(y.grad.numpy(), [-0.25, 0.05], rtol=2e-3)


FLOATS = ("float16", "float32", "float64", "bfloat16")
# losses of tensors of several dtypes: the dtype of the result is that of the tensor with this number
MIXED: dict[str, tuple[int, list[list[Any]], dict[str, list[Any]]]] = {
    "binary_cross_entropy": (0, [[[0.2, 0.7]], [[0.1, 0.9]]], {"weight": [0.3, 2.0]}),
    "binary_cross_entropy_with_logits": (1, [[[0.2, -0.7]], [[0.1, 0.9]]], {"weight": [0.3, 2], "pos_weight": [3, 1]}),
    "soft_margin_loss": (0, [[[0.2, -0.7]], [[1.0, -1.0]]], {}),
    "hinge_embedding_loss": (0, [[[0.2, -0.7]], [[1.0, -1.0]]], {}),
    "cosine_embedding_loss": (0, [[[0.2, -0.7], [1, 2]], [[0.5, 0.25], [2, 1]], [1.0, -1.0]], {}),
}


def _mixed(lib: Any, name: str, kinds: tuple[str, ...], reduction: str) -> tuple[Any, Any]:
    _, values, named = MIXED[name]
    made = [lib.tensor(v, dtype=getattr(lib, k)) for v, k in zip([*values, *named.values()], kinds, strict=True)]
    made[0].requires_grad_()
    more = dict(zip(named, made[len(values) :], strict=True))
    out = getattr(lib.nn.functional, name)(*made[: len(values)], reduction=reduction, **more)
    return out, lib.autograd.grad(out.sum(), made[0])[0]


def _mixtures() -> list[Any]:
    found = []
    for name, (_, values, named) in MIXED.items():
        for kinds in itertools.product(FLOATS, repeat=len(values) + len(named)):
            alike = 2 if name in ("binary_cross_entropy", "cosine_embedding_loss") else 1  # which torch asks for
            if len({*kinds[:alike]}) == 1 and (len(kinds) < 4 or len({*kinds}) < 3):
                found.append((name, kinds))
    return found


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(("name", "kinds"), _mixtures())
def test_a_loss_of_several_dtypes_has_the_one_that_it_is_said_to_have(
    name: str, kinds: tuple[str, ...], reduction: str
) -> None:
    pytest.importorskip("ml_dtypes")
    out, g = _mixed(pullback, name, kinds, reduction)
    assert out.dtype is getattr(pullback, kinds[MIXED[name][0]])
    assert g.dtype is getattr(pullback, kinds[0])
    exact, slope = _mixed(pullback, name, ("float64",) * len(kinds), reduction)
    tolerance = 0.04 if "bfloat16" in kinds else 4e-3 if "float16" in kinds else 1e-6
    np.testing.assert_allclose(out.double().detach().numpy(), exact.detach().numpy(), tolerance, tolerance)
    np.testing.assert_allclose(g.double().numpy(), slope.numpy(), tolerance, tolerance)


@pytest.mark.torch
@pytest.mark.parametrize(("name", "kinds"), _mixtures())
def test_a_loss_of_several_dtypes_has_torchs(name: str, kinds: tuple[str, ...]) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    found = [[str(t.dtype).partition(".")[2] for t in _mixed(lib, name, kinds, "mean")] for lib in (torch, pullback)]
    assert found[0] == found[1]


WEIGHTED = list(itertools.product(("huber_loss", "l1_loss", "mse_loss"), itertools.product(FLOATS, repeat=3)))


def _weighted_by(lib: Any, name: str, kinds: tuple[str, ...], reduction: str) -> tuple[Any, Any]:
    """A weighted loss, and its first argument."""
    values = [[0.5, -0.75, 3.0], [0.25, 1.0, -1.0], [1.0, 0.5, 2.0]]
    x, y, w = (lib.tensor(v, dtype=getattr(lib, k)) for v, k in zip(values, kinds, strict=True))
    x.requires_grad_()
    return getattr(lib.nn.functional, name)(x, y, reduction=reduction, weight=w), x


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(("name", "kinds"), WEIGHTED)
def test_a_weighted_loss_has_the_dtype_of_what_it_multiplies(name: str, kinds: tuple[str, ...], reduction: str) -> None:
    pytest.importorskip("ml_dtypes")
    out, leaf = _weighted_by(pullback, name, kinds, reduction)
    exact, exact_leaf = _weighted_by(pullback, name, ("float64",) * 3, reduction)
    (g,), (slope,) = (pullback.autograd.grad(o.sum(), t) for o, t in ((out, leaf), (exact, exact_leaf)))
    x, y, w = (getattr(pullback, k) for k in kinds)
    losses = x if name == "huber_loss" else pullback.promote_types(x, y)
    assert (out.dtype, g.dtype) == (pullback.promote_types(losses, w), x)
    np.testing.assert_allclose(out.double().detach().numpy(), exact.detach().numpy(), 0.01)
    np.testing.assert_allclose(g.double().numpy(), slope.numpy(), 0.01)


@pytest.mark.parametrize("name", ["gelu", "softplus", "softmax", "dropout"])
def test_no_advice_loses_an_imaginary_part(name: str) -> None:
    arguments = {"softmax": (0,)}.get(name, ())
    with pytest.raises(NotImplementedError, match=r"take \.real, \.abs\(\) or \.angle\(\) first"):
        getattr(pullback.nn.functional, name)(pullback.tensor([1j]), *arguments)


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(("name", "kinds"), WEIGHTED)
def test_a_weighted_loss_has_torchs_dtype(name: str, kinds: tuple[str, ...], reduction: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    theirs, ours = (_weighted_by(lib, name, kinds, reduction)[0].detach() for lib in (torch, pullback))
    assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
    np.testing.assert_allclose(ours.double().numpy(), theirs.double().numpy(), 0.01 if "bfloat16" in kinds else 1e-3)
