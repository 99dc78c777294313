"""An in-place operation whose tensor cannot hold the result: what is said fits how it was written, and is followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback

WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "eager": lambda f: f,
    "compiled": pullback.compile,
}


def function(source: str) -> Callable[[Any, Any], Any]:
    names: dict[str, Any] = {"pullback": pullback}
    exec(f"def f(y, x):\n    {source}\n    return y\n", names)
    made: Callable[[Any, Any], Any] = names["f"]
    return made


def given() -> tuple[Any, Any]:
    return pullback.ones(3, dtype=pullback.int64), pullback.tensor([0.5, 1.5, 2.5])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**", "//", "%"])
def test_an_operator(symbol: str, way: str) -> None:
    with pytest.raises(RuntimeError, match=r"result type pullback.float32 can't be cast") as refused:
        WAYS[way](function(f"y {symbol}= x"))(*given())
    said = str(refused.value).partition("What to do: ")[2]
    assert said == f"write y = y {symbol} x for y {symbol}= x, or convert y first, y = y.to(pullback.float32)."
    first, second = function(f"y = y {symbol} x"), function(f"y = y.to(pullback.float32); y {symbol}= x")
    assert pullback.equal(first(*given()), second(*given()))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("symbol", ["+", "-", "*", "/"])
def test_an_operator_on_some_elements(symbol: str, way: str) -> None:
    with pytest.raises(RuntimeError) as refused:
        WAYS[way](function(f"y[1:] {symbol}= x[1:]"))(*given())
    said = str(refused.value).partition("What to do: ")[2]
    assert said == f"convert the tensor before y[i] {symbol}= x, y = y.to(pullback.float32)."
    assert function(f"y = y.to(pullback.float32); y[1:] {symbol}= x[1:]")(*given())[0] == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", ["y.add_(x)", "y[1:].add_(x[1:])", "y = y.add_(x) + 1", "y.sqrt_()", "y.mul_(0.5)"])
def test_a_method(call: str, way: str) -> None:
    with pytest.raises(RuntimeError, match=r"use \w+\(\) without the underscore, or convert the tensor first"):
        WAYS[way](function(call))(*given())


@pytest.mark.parametrize("way", WAYS)
def test_out_is_not_told_of_an_underscore(way: str) -> None:
    with pytest.raises(RuntimeError, match="pass an out= of that dtype, or convert the operands first"):
        WAYS[way](function("pullback.add(x, x, out=y)"))(*given())
