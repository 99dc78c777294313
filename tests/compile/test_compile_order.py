"""What a compiled function does in the order that eager code does it: entries of ordered dicts, axes in memory."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor

from .backends import BACKENDS


class Ordered(collections.OrderedDict[str, float]):
    """One of the user's own."""


class Plain(dict[str, float]):
    """One of the user's own."""


def _set_again(held: Any) -> None:
    held["a"] = held.pop("a")


def _moved(held: Any) -> None:
    held.move_to_end("a")


ORDERS: dict[str, tuple[Any, Callable[[Any], None]]] = {
    "dict": (dict, _set_again),
    "a dict's class": (Plain, _set_again),
    "OrderedDict": (collections.OrderedDict, _set_again),
    "OrderedDict, moved": (collections.OrderedDict, _moved),
    "an OrderedDict's class, moved": (Ordered, _moved),
    "Counter": (collections.Counter, _set_again),
}


def _by_place(held: Any) -> Callable[[Tensor], Tensor]:
    def fn(x: Tensor) -> Tensor:
        y = x**3
        for place, key in enumerate(held):
            y = y * (held[key] + 10 * place)
        return y

    return fn


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ORDERS)
def test_another_order_of_the_same_entries_is_seen(name: str, backend: str) -> None:
    kind, change = ORDERS[name]
    held = kind(a=1, b=2)
    fn, x = _by_place(held), pullback.ones(1)
    compiled = pullback.compile(fn, backend=backend)
    assert (compiled(x).item(), fn(x).item()) == (12.0, 12.0)
    change(held)
    assert (compiled(x).item(), fn(x).item()) == (22.0, 22.0)


@pytest.mark.parametrize("name", ORDERS)
def test_second_derivatives_use_the_entries_and_the_order_of_the_first_run(name: str) -> None:
    kind, change = ORDERS[name]
    held = kind(a=1, b=2)
    x = pullback.ones(1, requires_grad=True)
    (first,) = pullback.autograd.grad(pullback.compile(_by_place(held), backend="numpy")(x), x, create_graph=True)
    change(held)
    held["c"] = 7
    del held["b"]
    (second,) = pullback.autograd.grad(first, x)
    assert second.item() == 72.0  # of 12 x ** 3
    assert sorted(held) == ["a", "c"]


REPEATED: dict[str, Callable[[Tensor], Tensor]] = {
    "a number": lambda x: x.expand(3, 2) * 2,
    "itself": lambda x: x.expand(3, 2) + x,
    "a function": lambda x: x.expand(3, 2).neg(),
    "before": lambda x: (x * 2).expand(3, 2).neg(),
    "two axes": lambda x: x.expand(3, 4, 2) * 3,
    "within": lambda x: x[:, None].expand(2, 3) - 1,
    "turned": lambda x: x.expand(3, 2).t() * 2,
    "bools": lambda x: x.expand(3, 2) > 1,
    "a choice": lambda x: pullback.where(x.expand(3, 2) > 1, x, 0.0),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REPEATED)
def test_what_is_computed_of_repeated_elements_lies_in_memory_as_it_does_eagerly(name: str, backend: str) -> None:
    fn, x = REPEATED[name], pullback.tensor([1.0, 2.0])
    eager, found = fn(x), pullback.compile(fn, backend=backend)(x)
    assert found.tolist() == eager.tolist()
    assert found.stride() == eager.stride()
    assert found.is_contiguous() == eager.is_contiguous()


# A gather's gradient repeats what was repeated before: the call waits for what makes it.
GATHERED: dict[str, Callable[[Tensor], Tensor]] = {
    "rows, two reductions": lambda y: y[0, 0] * y[[2, 0, 1]].sum(0).mean(),
    "an axis kept": lambda y: y.mean() * y[:, [0, 1]].sum(1, keepdim=True).mean(0).sum(),
    "twice the same row": lambda y: (y[[1, 1]].sum(0).sum() * y.sin()).sum(),
    "three reductions": lambda y: y[1, 2] * y[[2, 0]].mean(0).reshape(2, 2).sum(1).mean(),
    "expanded": lambda y: y[0, 0] * y[[2, 0, 1]].mean(0).sum().exp().reshape(1).expand(3).sum(),
    "one dot product": lambda y: (y[[0, 2]].sum((0, 1)) * y[1]).mean() * y[2, 2],
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", GATHERED)
def test_what_is_repeated_twice_is_made_before_the_call_that_reads_it(name: str, backend: str) -> None:
    f, found = GATHERED[name], []
    for g in (f, pullback.compile(f, backend=backend)):
        y = pullback.arange(1.0, 13.0, dtype=pullback.float64).reshape(3, 4).requires_grad_()
        (first,) = pullback.autograd.grad(g(y), y, create_graph=True)
        (second,) = pullback.autograd.grad(first.square().sum(), y)
        found.append([first.detach().numpy(), second.numpy()])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
