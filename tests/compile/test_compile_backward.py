"""Code of the user's that runs in the backward of a compiled function: a Function's backward, and hooks."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor
from pullback.interpreters.traced import TraceError

from .backends import BACKENDS

compiled = pullback.compile(backend="numpy")
COUNTED = itertools.count()


def given() -> Tensor:
    return pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)


def with_backward(backward: Callable[[Any, Tensor], Any]) -> Any:
    """A function of one tensor whose gradient is made by `backward`."""

    class Squared(pullback.autograd.Function):
        n = 0

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return backward(ctx, g)

    return Squared


def with_hook(hook: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        y = x * 2
        y.register_hook(hook)
        return y.sum()

    return function


def of_function(act: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    made = with_backward(lambda ctx, g: act(g))
    return lambda x: made.apply(x).sum()


FORMS = pytest.mark.parametrize("form", [of_function, with_hook], ids=["Function", "hook"])


@FORMS
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda g: g * random.random(), id="random"),
        pytest.param(lambda g: g * time.time(), id="time"),
        pytest.param(lambda g: g * float(np.random.rand()), id="numpy"),
        pytest.param(lambda g, it=COUNTED: g * next(it), id="default"),
    ],
)
def test_what_a_backward_asks_for_anew_each_time_is_refused(form: Any, act: Any) -> None:
    with pytest.raises(TraceError):
        compiled(form(act))(given()).backward()


@FORMS
def test_an_iterator_that_a_backward_takes_from_is_refused(form: Any) -> None:
    counted = itertools.count(1)
    with pytest.raises(TraceError, match="counted is an iterator"):
        compiled(form(lambda g: g * next(counted)))(given()).backward()
    assert next(counted) == 1


@FORMS
@pytest.mark.parametrize("kind", ["append", "item", "count"])
def test_what_a_backward_sets_is_refused_and_undone(form: Any, kind: str) -> None:
    log: list[Any] = []
    kept: dict[str, Any] = {"n": 0}

    def act(g: Tensor) -> Tensor:
        if kind == "append":
            log.append(g)
        elif kind == "item":
            kept["shape"] = g.shape
        else:
            kept["n"] += 1
        return g

    with pytest.raises(TraceError, match="was changed while the function was traced"):
        compiled(form(act))(given())
    assert (log, kept) == ([], {"n": 0})


def test_an_attribute_of_its_class_that_a_backward_sets_is_refused() -> None:
    def backward(ctx: Any, g: Tensor) -> Tensor:
        made.n += 1
        return g

    made = with_backward(backward)
    with pytest.raises(TraceError, match=r"\.n was changed"):
        compiled(lambda x: made.apply(x).sum())(given())
    assert made.n == 0


def test_a_tensor_from_outside_that_a_hook_writes_to_is_refused() -> None:
    total = pullback.zeros(3)

    def function(x: Tensor) -> Tensor:
        def hook(g: Tensor) -> None:
            total.add_(g.detach())

        y = x * 2
        y.register_hook(hook)
        return y.sum()

    with pytest.raises(TraceError, match="writes in place"):
        compiled(function)(given())
    assert total.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("backend", BACKENDS)
@FORMS
def test_what_a_backward_reads_may_change_between_calls_and_not_before_it(form: Any, backend: str) -> None:
    factor = [2.0]
    fast = pullback.compile(form(lambda g: g * factor[0]), backend=backend)
    for number in (2.0, 5.0):
        factor[0] = number
        found = [pullback.autograd.grad(f(x), x)[0].tolist() for f in (fast, fast.traced_function) for x in [given()]]
        assert found[0] == found[1]
    x = given()
    y = fast(x)
    factor[0] = 7.0
    with pytest.raises(RuntimeError, match="factor has changed since the function was called"):
        y.backward()
    factor[0] = 5.0
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == found[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backward_that_asks_whether_it_is_recorded_is_answered(backend: str) -> None:
    made = with_backward(lambda ctx, g: g * (2.0 if pullback.is_grad_enabled() else 3.0))
    fast = pullback.compile(lambda x: made.apply(x).sum(), backend=backend)
    for create_graph in (False, True, False):
        x = given()
        found = pullback.autograd.grad(fast(x), x, create_graph=create_graph)[0]
        assert found.tolist() == [2.0 if create_graph else 3.0] * 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backward_that_asks_which_gradients_are_wanted_is_answered(backend: str) -> None:
    class Scaled(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g * (2.0 if ctx.needs_input_grad[1] else 1.0), g

    fast = pullback.compile(lambda a, b: Scaled.apply(a, b).sum(), backend=backend)
    a, b = given(), given()
    assert pullback.autograd.grad(fast(a, b), [a])[0].tolist() == [1.0] * 3
    assert pullback.autograd.grad(fast(a, b), [a, b])[0].tolist() == [2.0] * 3


@pytest.mark.parametrize("recorded", [False, True])
def test_memory_that_is_replaced_between_forward_and_backward_is_an_error(recorded: bool) -> None:
    w = pullback.tensor([1.0, 2.0, 3.0])
    fast = compiled(lambda x: (x**3 * w).exp().sum())
    x = given()
    y = fast(x)
    if recorded:
        (first,) = pullback.autograd.grad(y, x, create_graph=True)
        y = first.sum()
    w.data = pullback.ones(3) * 5
    with pytest.raises(RuntimeError, match="has been modified: w got other memory"):
        y.backward()
    found = [pullback.autograd.grad(f(x), x)[0].tolist() for f in (fast, fast.traced_function)]
    assert found[0] == found[1]
