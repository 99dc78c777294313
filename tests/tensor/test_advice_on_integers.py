"""Advice to convert integers names the conversion to the default dtype: another one meets the next error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback
from pullback.nn.functional import huber_loss, softplus


@pytest.fixture(params=["float32", "float64", "float16"])
def default(request: pytest.FixtureRequest) -> Iterator[Any]:
    before, chosen = pullback.get_default_dtype(), getattr(pullback, request.param)
    try:
        pullback.set_default_dtype(chosen)
        yield chosen
    finally:
        pullback.set_default_dtype(before)


CALLS: dict[str, Callable[[Any], Any]] = {
    "requires_grad_": lambda x: x.requires_grad_(),
    "mean": lambda x: x.mean(),
    "nanmean": lambda x: x.nanmean(),
    "var": lambda x: x.var(),
    "norm": lambda x: pullback.linalg.norm(x),
    "a negative power": lambda x: x**-1,
    "a division by zero": lambda x: pullback.div(x, 0 * x, rounding_mode="floor"),
    "addcdiv": lambda x: pullback.addcdiv(x, x, x),
    "softplus": lambda x: softplus(x),
    "inv": lambda x: pullback.linalg.inv(x.reshape(1, 2).T @ x.reshape(1, 2)),
    "huber_loss": lambda x: huber_loss(x, x),
    "jet": lambda x: pullback.func.jet(lambda x: x, (x,), ([x],)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_conversion_is_that_to_the_default(call: Callable[[Any], Any], default: Any) -> None:
    x = pullback.tensor([1, 2])
    with pytest.raises((RuntimeError, TypeError, NotImplementedError)) as caught:
        call(x)
    (method,) = re.findall(r"\.(float|double|half)\(\)", str(caught.value))
    assert getattr(x, method)().dtype is default
