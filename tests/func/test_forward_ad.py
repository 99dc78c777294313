"""`autograd.forward_ad`, side by side with torch's: dual levels, what they end, views, writes in place, nesting."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import pullback
from pullback.func import forward_ad
from tests.programs.forward_ad.common import dual_of, fw, tangent_of
from tests.programs.forward_ad.levels import dual, pair
from tests.side_by_side import constant, leaf

# Levels ---------------------------------------------------------------------------------------------------------------


def test_levels_are_of_a_thread() -> None:
    """Another thread has no level, and may enter one of its own. In torch the levels are those of the process."""
    seen: list[Any] = []

    def other() -> None:
        try:
            forward_ad.make_dual(*pair(pullback))
        except RuntimeError:
            seen.append("no level")
        with forward_ad.dual_level():
            seen.append(forward_ad.unpack_dual(dual(pullback) * 2).tangent.tolist())

    with forward_ad.dual_level():
        x = dual(pullback)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert seen == ["no level", [2.0, 20.0, 200.0]]
        assert forward_ad.unpack_dual(x * 3).tangent.tolist() == [3.0, 30.0, 300.0]


# Where torch refuses, or loses something ------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("primal", "tangent"), [("float64", "float32"), ("float32", "float64"), ("complex128", "float64")]
)
def test_a_tangent_of_another_dtype_is_converted(primal: str, tangent: str) -> None:
    """In torch it stays as it is until it is computed with: a tangent may have another dtype than its primal."""
    torch = pytest.importorskip("torch")
    values = []
    for lib in (pullback, torch):
        x, t = lib.tensor([0.5, 2.0], dtype=getattr(lib, primal)), lib.tensor([1.0, 3.0], dtype=getattr(lib, tangent))
        with fw(lib).dual_level():
            made = fw(lib).make_dual(x, t)
            values.append(fw(lib).unpack_dual(made.exp()).tangent.tolist())
            if lib is pullback:
                assert fw(lib).unpack_dual(made).tangent.dtype is x.dtype
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_a_complex_tangent_of_a_real_primal_is_refused() -> None:
    """torch warns that it discards the imaginary part."""
    x, t = pair(pullback)
    with (
        forward_ad.dual_level(),
        pytest.raises(RuntimeError, match=r"to be real, as the primal is.*\n.*give its \.real"),
    ):
        forward_ad.make_dual(x, t + 1j)


def test_a_gradient_accumulated_in_a_level_has_its_tangent() -> None:
    """In torch, ``.grad`` is its primal alone; the Hessian times the tangent is to be had by autograd.grad only."""
    x, t = leaf(pullback, [0.3, -1.2]), constant(pullback, [1.0, 10.0])
    with forward_ad.dual_level():
        (forward_ad.make_dual(x, t) ** 3).sum().backward()
        assert forward_ad.unpack_dual(x.grad).tangent.tolist() == pytest.approx([1.8, -72.0])
    assert x.grad.tolist() == pytest.approx([0.27, 4.32])


def test_transforms_inside_of_a_level() -> None:
    """torch refuses jvp there, and vmap of a level."""
    x, t = pair(pullback)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, t)
        inner, cosine = pullback.func.jvp(pullback.sin, (d,), (pullback.ones_like(x),))
        assert forward_ad.unpack_dual(inner).tangent.tolist() == pytest.approx((x.cos() * t).tolist())
        assert forward_ad.unpack_dual(cosine).tangent.tolist() == pytest.approx((-x.sin() * t).tolist())

    def push(v: Any) -> Any:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(forward_ad.make_dual(x, v).sin()).tangent

    found = pullback.vmap(push)(pullback.stack([t, x]))
    assert found[1].tolist() == pytest.approx((x.cos() * x).tolist())


def test_an_operation_in_inference_mode_has_its_tangent() -> None:
    """torch computes none there."""
    with forward_ad.dual_level(), pullback.inference_mode():
        assert tangent_of(pullback, dual_of(pullback) * 2).tolist() == [6.0, 8.0]


def test_a_leaf_that_requires_grad_does_not_become_a_dual_by_a_write() -> None:
    """torch lets it, under no_grad."""
    p = pullback.zeros(2, dtype=pullback.float64, requires_grad=True)
    with forward_ad.dual_level(), pullback.no_grad():
        x = dual_of(pullback)
        with pytest.raises(RuntimeError, match="from outside"):
            p.add_(x)
    assert p.tolist() == [0.0, 0.0]


def test_a_write_to_a_dual_in_inference_mode_reaches_its_primal_and_its_tangent() -> None:
    with pullback.inference_mode(), forward_ad.dual_level():
        x = constant(pullback, [1.0, 2.0])
        d = forward_ad.make_dual(x, constant(pullback, [1.0, 1.0]))
        d *= 2
        found = x.tolist(), forward_ad.unpack_dual(d).tangent.tolist()
    assert found == ([2.0, 4.0], [2.0, 2.0])


@pytest.mark.parametrize(
    "shown",
    [
        lambda same, x: same(x),
        lambda same, x: same(same(x)),
        lambda same, x: same(x[:1]),
        lambda same, x: same(x)[:1],
    ],
)
def test_a_write_to_what_a_function_returned_of_its_input_reaches_it(shown: Any) -> None:
    """As a write to a view of a tensor from outside does."""

    class Same(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t

    x = pullback.tensor([1.0, 2.0])
    with forward_ad.dual_level():
        t = forward_ad.make_dual(pullback.tensor([3.0]), pullback.tensor([1.0]))
        shown(Same.apply, x)[:1].addcmul_(t, t, value=0.5)
        primal, tangent = forward_ad.unpack_dual(x)
        assert (primal.tolist(), tangent.tolist()) == ([5.5, 2.0], [3.0, 0.0])
    assert x.tolist() == [5.5, 2.0]
