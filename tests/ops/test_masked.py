"""Masked operations by their definition: each slice gives what its valid elements alone give, in every mode.

Below the mask lie NaN and infinity. They reach no value and no derivative: the valid elements have the derivatives of
the plain operation on them, and the masked ones have 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func, masked

inf, nan = float("inf"), float("nan")

MASK = [[True, False, True, True], [False, True, True, True], [True, True, False, True]]
CLEAN = [[1.5, 9.0, -0.5, 2.0], [9.0, 0.25, 3.0, -1.0], [-2.0, 1.0, 9.0, 0.75]]
BELOW = [nan, inf, -inf]

Fn = Callable[..., Any]

# Each masked operation along the last axis, and the plain one on a vector of valid elements.
REDUCTIONS: dict[str, tuple[Fn, Fn]] = {
    "sum": (lambda x, m: masked.sum(x, -1, mask=m), lambda v: v.sum()),
    "prod": (lambda x, m: masked.prod(x, -1, mask=m), lambda v: v.prod()),
    "amax": (lambda x, m: masked.amax(x, -1, mask=m), lambda v: v.amax()),
    "amin": (lambda x, m: masked.amin(x, -1, mask=m), lambda v: v.amin()),
    "mean": (lambda x, m: masked.mean(x, -1, mask=m), lambda v: v.mean()),
    "median": (lambda x, m: masked.median(x, -1, mask=m), lambda v: v.median()),
    "norm": (lambda x, m: masked.norm(x, 2.0, -1, mask=m), lambda v: v.norm()),
    "norm 3": (lambda x, m: masked.norm(x, 3, -1, mask=m), lambda v: v.norm(3)),
    "norm inf": (lambda x, m: masked.norm(x, inf, -1, mask=m), lambda v: v.norm(inf)),
    "norm -inf": (lambda x, m: masked.norm(x, -inf, -1, mask=m), lambda v: v.norm(-inf)),
    "logsumexp": (lambda x, m: masked.logsumexp(x, -1, mask=m), lambda v: v.logsumexp(0)),
    "var": (lambda x, m: masked.var(x, -1, mask=m), lambda v: v.var()),
    "var of all": (lambda x, m: masked.var(x, -1, unbiased=False, mask=m), lambda v: v.var(unbiased=False)),
    "std": (lambda x, m: masked.std(x, -1, mask=m), lambda v: v.std()),
}
SLICEWISE: dict[str, tuple[Fn, Fn]] = {
    "softmax": (lambda x, m: masked.softmax(x, -1, mask=m), lambda v: v.softmax(0)),
    "log_softmax": (lambda x, m: masked.log_softmax(x, -1, mask=m), lambda v: v.log_softmax(0)),
    "softmin": (lambda x, m: masked.softmin(x, -1, mask=m), lambda v: (-v).softmax(0)),
    "normalize": (lambda x, m: masked.normalize(x, 2.0, -1, mask=m), lambda v: v / v.norm()),
    "cumsum": (lambda x, m: masked.cumsum(x, -1, mask=m), lambda v: v.cumsum(0)),
    "cumprod": (lambda x, m: masked.cumprod(x, -1, mask=m), lambda v: v.cumprod(0)),
}
ALL = {**REDUCTIONS, **SLICEWISE}


def points(below: float) -> tuple[pullback.Tensor, pullback.Tensor]:
    """A matrix with one number below its mask, and the mask."""
    x, mask = np.array(CLEAN), np.array(MASK)
    x[~mask] = below
    return pullback.tensor(x), pullback.tensor(mask)


def loss_of(name: str) -> Callable[[Any, Any], Any]:
    """A number that depends on every valid element of a masked result."""
    fn, whole = ALL[name][0], name in SLICEWISE

    def loss(x: Any, mask: Any) -> Any:
        found = fn(x, mask)
        return (pullback.where(mask, found, 0.0) if whole else found).pow(2).sum()

    return loss


def by_rows(name: str, x: Any, mask: Any) -> Any:
    """The same number from the valid elements of each row."""
    return sum(ALL[name][1](row[m]).pow(2).sum() for row, m in zip(x.unbind(), mask.unbind(), strict=True))


def close(ours: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(ours.detach()), np.asarray(expected.detach()), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("below", BELOW)
@pytest.mark.parametrize("name", ALL)
def test_values_are_those_of_the_valid_elements(name: str, below: float) -> None:
    x, mask = points(below)
    found = ALL[name][0](x, mask)
    for row, m, ours in zip(x, mask, found, strict=True):
        close(ours[m] if name in SLICEWISE else ours, ALL[name][1](row[m]))


@pytest.mark.parametrize("below", BELOW)
@pytest.mark.parametrize("name", ALL)
def test_two_orders_of_reverse_mode(name: str, below: float) -> None:
    x, mask = points(below)
    found = []
    for fn in (loss_of(name), lambda x, mask: by_rows(name, x, mask)):
        leaf = x.clone().requires_grad_()
        (first,) = pullback.autograd.grad(fn(leaf, mask), leaf, create_graph=True)
        weights = pullback.arange(12.0, dtype=pullback.float64).reshape(3, 4).cos()
        second = pullback.autograd.grad((first * weights).sum(), leaf, allow_unused=True)[0]
        found.append((first, pullback.zeros(3, 4) if second is None else second))
    for ours, expected in zip(*found, strict=True):
        close(ours, expected)
        assert not np.any(np.asarray(ours.detach())[~np.array(MASK)])


@pytest.mark.parametrize("below", BELOW)
@pytest.mark.parametrize("name", ALL)
def test_forward_mode(name: str, below: float) -> None:
    x, mask = points(below)
    turn = pullback.arange(12.0, dtype=pullback.float64).reshape(3, 4).sin()
    value, slope = func.jvp(lambda x: loss_of(name)(x, mask), (x,), (turn,))
    leaf = x.clone().requires_grad_()
    expected = by_rows(name, leaf, mask)
    close(value, expected)
    gradient = pullback.autograd.grad(expected, leaf)[0]
    close(slope, (gradient * turn)[mask].sum())


@pytest.mark.parametrize("name", ALL)
def test_batches_of_tensors_and_of_masks(name: str) -> None:
    x, mask = points(nan)
    one_by_one = pullback.stack([func.grad(loss_of(name))(row, m) for row, m in zip(x, mask, strict=True)])
    close(func.vmap(func.grad(loss_of(name)))(x, mask), one_by_one)
    close(func.vmap(func.grad(loss_of(name)), in_dims=1)(x.t(), mask.t()), one_by_one)


@pytest.mark.parametrize("name", ALL)
def test_compiled(name: str) -> None:
    x, mask = points(nan)
    fast = pullback.compile(loss_of(name))
    found = []
    for fn in (fast, loss_of(name)):
        leaf = x.clone().requires_grad_()
        value = fn(leaf, mask)
        value.backward()
        found.append((value, leaf.grad))
    for ours, expected in zip(*found, strict=True):
        close(ours, expected)


NOTHING: dict[str, float] = {
    **{"sum": 0, "prod": 1, "amax": -inf, "amin": inf, "mean": nan, "median": nan, "norm": 0, "norm 3": 0, "var": nan},
    **{"norm inf": 0, "norm -inf": inf, "logsumexp": -inf, "var of all": nan, "std": nan, "softmax": nan},
    **{"log_softmax": nan, "softmin": nan, "normalize": 0, "cumsum": 0, "cumprod": 1},
}


@pytest.mark.parametrize("below", [2.0, *BELOW])
@pytest.mark.parametrize("name", ALL)
def test_slices_without_valid_elements(name: str, below: float) -> None:
    x = pullback.tensor([[1.0, 2.0], [below, below]], dtype=pullback.float64, requires_grad=True)
    mask = pullback.tensor([[True, True], [False, False]])
    found = ALL[name][0](x, mask)
    np.testing.assert_array_equal(np.asarray(found.detach())[1], NOTHING[name])
    found.sum().backward()
    np.testing.assert_array_equal(np.asarray(x.grad)[1], 0)
    alone = x.detach()[0].requires_grad_()
    ALL[name][1](alone).sum().backward()
    close(x.grad[0], alone.grad)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, inf, -inf])
def test_norms_of_complex_numbers(order: float) -> None:
    z = pullback.tensor([3 + 4j, nan, 1 - 2j], dtype=pullback.complex128, requires_grad=True)
    mask = pullback.tensor([True, False, True])
    found = masked.norm(z, order, mask=mask)
    kept = z.detach()[mask].requires_grad_()
    expected = pullback.linalg.vector_norm(kept, order)
    close(found, expected)
    found.backward()
    expected.backward()
    close(z.grad[mask], kept.grad)
    assert z.grad[1] == 0


def test_a_standard_deviation_of_equal_elements_has_the_gradient_zero() -> None:
    x = pullback.tensor([2.0, nan, 2.0], requires_grad=True)
    masked.std(x, mask=~x.isnan()).backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_positions_among_the_valid_elements() -> None:
    x, mask = points(inf)
    assert masked.argmax(x, 1, mask=mask, dtype=pullback.int64).tolist() == [3, 2, 1]
    assert masked.argmin(-x, 1, mask=mask, dtype=pullback.int64).tolist() == [3, 2, 1]
    assert masked.argmax(x, mask=mask).dtype is x.dtype


def test_logaddexp_of_valid_elements() -> None:
    x = pullback.tensor([0.5, nan, 2.0, inf], dtype=pullback.float64, requires_grad=True)
    y = pullback.tensor([1.5, 3.0, nan, -inf], dtype=pullback.float64, requires_grad=True)
    first, second = pullback.tensor([True, False, True, False]), pullback.tensor([True, True, False, False])
    found = masked.logaddexp(x, y, input_mask=first, other_mask=second)
    np.testing.assert_allclose(np.asarray(found.detach()), [np.logaddexp(0.5, 1.5), 3, 2, -inf], rtol=1e-12)
    found.sum().backward()
    share = 1 / (1 + np.e)
    np.testing.assert_allclose(np.asarray(x.grad), [share, 0, 1, 0], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(y.grad), [1 - share, 1, 0, 0], rtol=1e-12)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a list": (lambda: masked.sum([1.0]), TypeError, "Tensor"),
    "a mask that is a list": (lambda: masked.sum(pullback.ones(2), mask=[True, False]), TypeError, "mask"),
    "a mask of more axes": (
        lambda: masked.mean(pullback.ones(2), mask=pullback.ones(1, 2)),
        IndexError,
        "expected broadcastable mask",
    ),
    "several axes of a scan": (lambda: masked.cumsum(pullback.ones(2, 2), (0, 1)), TypeError, "must be int, not tuple"),
    "no axis of a softmax": (lambda: masked.softmax(pullback.ones(2, 2), None), TypeError, "must be int, not NoneType"),
    "an order below zero": (
        lambda: masked.norm(pullback.ones(2), -1, mask=pullback.ones(2)),
        ValueError,
        "not negative, or -inf",
    ),
    "both corrections": (lambda: masked.var(pullback.ones(2), 0, True, correction=1), TypeError, "Only one of"),
    "medians of no integers": (
        lambda: masked.median(pullback.tensor([1, 2]), mask=pullback.tensor(False)),
        ValueError,
        "no fully masked out rows",
    ),
    "bools have no least": (
        lambda: masked.amax(pullback.tensor([True]), mask=pullback.tensor(True)),
        NotImplementedError,
        "identity of amax",
    ),
}


@pytest.mark.parametrize(("call", "error", "said"), REFUSED.values(), ids=REFUSED)
def test_refused(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_medians_of_large_integers_are_exact() -> None:
    found = masked.median(pullback.tensor([2**40 + 1, 5, 2**40 + 3]), mask=pullback.tensor([True, False, True]))
    assert found == 2**40 + 1
