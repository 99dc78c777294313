"""Twice as long a function takes twice the steps to compile, not four times: loops that Python unrolls stay usable."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import pullback
from pullback import Tensor


def runge_kutta(steps: int) -> Callable[[Tensor], Tensor]:
    """Pendulums with friction, in steps of four stages."""

    def rate(y: Tensor) -> Tensor:
        return pullback.stack([y[1], -pullback.sin(y[0]) - 0.1 * y[1]])

    def fn(angle: Tensor) -> Tensor:
        y = pullback.stack([angle, 0 * angle])
        for _ in range(steps):
            a = rate(y)
            b = rate(y + 0.025 * a)
            c = rate(y + 0.025 * b)
            y = y + 0.05 / 6 * (a + 2 * b + 2 * c + rate(y + 0.05 * c))
        return y.sum()

    return fn


def waves(steps: int) -> Callable[[Tensor], Tensor]:
    """Fields on a staggered grid, the second written in slices."""

    def fn(c: Tensor) -> Tensor:
        e, h = pullback.zeros(50), pullback.zeros(49)
        for _ in range(steps):
            h = h + 0.5 * (e[1:] - e[:-1])
            e[1:-1] += c[1:-1] * (h[1:] - h[:-1])
            e[25] += 0.1
        return e.sum()

    return fn


def recurrence(steps: int) -> Callable[[Tensor], Tensor]:
    """One chain of products and sums, with a mean in between."""

    def fn(x: Tensor) -> Tensor:
        y = x
        for k in range(steps):
            y = pullback.tanh(y * x + k)
            if k % 4 == 0:
                y = y - y.mean()
        return y.sum()

    return fn


def calls(work: Callable[[], Any]) -> int:
    """How many functions are called, and generators resumed, in Python and in C."""
    count = 0

    def counting(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("made", [runge_kutta, waves, recurrence])
def test_the_steps_of_compiling_grow_like_the_function(made: Any) -> None:
    def compiled(steps: int) -> Callable[[], None]:
        x = pullback.full((50,), 0.3, requires_grad=True)
        fast = pullback.compile(made(steps), backend="numpy")
        return lambda: fast(x).backward()

    compiled(2)()  # what is loaded at the first use
    few, many = calls(compiled(20)), calls(compiled(80))
    assert many < 5 * few
