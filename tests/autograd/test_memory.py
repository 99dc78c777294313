"""Memory: what a graph keeps alive and for how long, without the garbage collector; and saved values written to since.

A node lives as long as an output of it, or a graph that leads to it; what it saved, until it has run. The collector is
switched off in every test here, so that what dies, dies at once, by its last reference.
"""

from __future__ import annotations

import functools
import gc
import os
import platform
import re
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import Function, backward, grad
from tests.side_by_side import constant, leaf

wanting: Callable[..., Any] = functools.partial(leaf, pullback)
double: Callable[..., Any] = functools.partial(constant, pullback)


@pytest.fixture(autouse=True)
def _without_the_collector() -> Iterator[None]:
    while gc.collect():  # what one pass frees, another library's callbacks may leave more behind
        pass
    gc.disable()
    yield
    gc.enable()


def array_of(t: Any) -> Any:
    """The array behind a tensor, which can be watched."""
    return t.detach().numpy()


def watched(*objects: Any) -> Callable[[], list[bool]]:
    """A function that tells which of the objects still live."""
    references = [weakref.ref(o) for o in objects]
    return lambda: [reference() is not None for reference in references]


class Saves(Function):
    """exp(x), which saves its input, its output, and what lies between."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        inner = x * 1
        y = inner.exp()
        ctx.save_for_backward(x, inner, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return ctx.saved_tensors[2] * g


class Pair(Function):
    """Two outputs, both saved."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        a, b = x * 2, x * 3
        ctx.save_for_backward(a, b)
        return a, b

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.saved_tensors  # noqa: B018 - as one does
        return a * 2 + b * 3


# -- nodes and outputs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x,
        lambda x: x.exp(),
        lambda x: x + 1,
        lambda x: x.sum(),
        lambda x: x.view(1, -1),
        lambda x: x[0],
        lambda x: pullback.stack([x, x]),
        lambda x: pullback.softmax(x, 0),
        lambda x: x.sigmoid(),
        lambda x: x.max(),
        Saves.apply,
        lambda x: Pair.apply(x)[1],
    ],
)
def test_a_node_dies_with_its_output(function: Any) -> None:
    x = wanting([1.0, 2.0])
    y = function(x)
    alive = watched(y, y.grad_fn, array_of(y)) if y._data.base is None else watched(y, y.grad_fn)
    assert all(alive())
    del y
    assert not any(alive())


def test_an_output_dies_before_its_node_and_what_it_saved_lives_on() -> None:
    x = wanting([0.0])
    y = Saves.apply(x)
    z = y * 1
    alive = watched(y, y.grad_fn, array_of(y))
    del y
    assert alive() == [False, True, True]
    z.backward()
    assert x.grad.item() == 1.0
    del z
    assert alive() == [False, False, False]


def test_a_graph_dies_with_its_last_output() -> None:
    x = wanting([1.0])
    hidden = x * 2
    y = (hidden + x).sin()
    accumulator = hidden.grad_fn.next_functions[0][0]
    alive = watched(hidden, hidden.grad_fn, y.grad_fn)
    del hidden
    assert alive() == [False, True, True]
    del y
    assert alive() == [False] * 3
    assert (x * 3).grad_fn.next_functions[0][0] is accumulator  # which lives as long as its leaf
    alive = watched(x, accumulator)
    del x, accumulator
    assert alive() == [False] * 2


def test_what_a_graph_needs_of_a_leaf_outlives_it() -> None:
    x = wanting([1.0])
    x.register_hook(lambda g: g * 10)
    seen: list[pullback.Tensor] = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
    y = x * 3
    alive = watched(x, array_of(x))
    del x
    assert alive() == [False, True]
    leaf = y.grad_fn.next_functions[0][0].variable
    assert (leaf.tolist(), leaf.requires_grad, leaf.is_leaf) == ([1.0], True, True)
    y.backward()
    assert (leaf.grad.item(), seen[0] is leaf.grad) == (30.0, True)
    alive = watched(leaf, y.grad_fn.next_functions[0][0])
    del leaf, y
    assert alive() == [False, False]


def test_a_leaf_runs_after_what_uses_it_whatever_used_it_before() -> None:
    x = wanting([1.0])
    (x * 2).backward()
    order: list[str] = []
    z = wanting([1.0])
    early, late = z * 5, x * 3
    for name, t in (("early", early), ("late", late), ("x", x), ("z", z)):
        (t.register_hook if t.is_leaf else t.grad_fn.register_hook)(lambda *g, name=name: order.append(name))
    (early + late).backward()
    assert order == ["late", "x", "early", "z"]  # the leaf's place is that of its first use in this graph


def test_one_of_several_outputs_keeps_the_node() -> None:
    a, b = Pair.apply(wanting([1.0]))
    alive = watched(a, a.grad_fn)
    del a
    assert alive() == [False, True]
    del b
    assert alive() == [False, False]


def test_a_leaf_with_a_gradient_and_hooks_dies() -> None:
    x = wanting([1.0])
    x.register_hook(lambda g: None)
    x.register_post_accumulate_grad_hook(lambda t: None)
    (x * x).backward()
    alive = watched(x, x.grad)
    del x
    assert alive() == [False, False]


def test_an_inner_tensor_with_hooks_and_a_retained_gradient_dies() -> None:
    y = wanting([1.0]) * 2
    y.retain_grad()
    y.register_hook(lambda g: None)
    y.grad_fn.register_hook(lambda sent, got: None)
    y.grad_fn.register_prehook(lambda got: None)
    (y * y).backward()
    alive = watched(y, y.grad_fn, y.grad)
    del y
    assert alive() == [False, False, False]


def test_views_and_in_place_writes_make_no_cycles() -> None:
    x = wanting([1.0, 2.0, 3.0])
    base = x * 1
    view = base[:2]
    view.mul_(2)
    base.add_(1)
    alias = base.detach()
    alive = watched(base, view, alias, base.grad_fn, view.grad_fn)
    base.sum().backward()
    del base, view, alias
    assert not any(alive())


# -- what was saved ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_grad", [False, True])
def test_saved_values_are_freed_when_their_node_has_run(by_grad: bool) -> None:
    x = wanting([1.0])
    inner = x * 1
    y = Saves.apply(inner)
    z = y.sin()
    alive = watched(array_of(inner), array_of(y))
    del inner
    node = y.grad_fn
    del y
    assert alive() == [True, True]
    if by_grad:
        grad(z, x)
    else:
        z.backward()
    assert alive() == [False, False]
    for n in (node, z.grad_fn):
        with pytest.raises(RuntimeError, match=f"{n.name()} dropped what it saved"):
            n.saved_tensors  # noqa: B018


def test_they_are_freed_while_the_pass_goes_on() -> None:
    x = wanting([1.0])
    early = x * 1
    late = early.exp()
    z = late.sin()
    alive = watched(array_of(late))
    seen = []
    early.register_hook(lambda g: seen.append(alive()))
    del late
    z.backward()
    assert seen == [[False]]


@pytest.mark.parametrize("options", [{"retain_graph": True}, {"create_graph": True}])
def test_they_are_kept_if_asked_for(options: dict[str, bool]) -> None:
    x = wanting([1.0])
    y = Saves.apply(x * 1)
    node = y.grad_fn
    grad(y, x, **options)
    saved = node.saved_tensors
    assert [t.item() for t in saved] == pytest.approx([1.0, 1.0, np.e])
    grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        node.saved_tensors  # noqa: B018


def test_saving_an_output_makes_no_cycle() -> None:
    y = Saves.apply(wanting([1.0]))
    saved = y.grad_fn.saved_tensors
    assert saved[2].grad_fn is y.grad_fn
    assert saved[2] is not y
    alive = watched(y, y.grad_fn)
    del y, saved
    assert alive() == [False, False]


def test_saving_a_dirty_output_makes_none_either() -> None:
    class Exponential(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            x.exp_()
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return ctx.saved_tensors[0] * g

    x = wanting([0.0])
    y = Exponential.apply(x * 1)
    alive = watched(y, y.grad_fn)
    y.backward(retain_graph=True)
    assert x.grad.item() == 1.0
    del y
    assert alive() == [False, False]


def test_an_output_kept_as_an_attribute_is_a_cycle_that_the_collector_ends() -> None:
    class Keeps(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.y

    x = wanting([3.0])
    y = Keeps.apply(x)
    alive = watched(y, y.grad_fn)
    y.backward()
    assert x.grad.item() == 6.0
    del y
    assert alive() == [True, True]
    gc.collect()
    assert alive() == [False, False]


def test_forward_keeps_nothing_that_it_did_not_save() -> None:
    alive: list[Any] = []

    class Drops(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, other: Any) -> Any:
            inner = x * 2
            alive.append(watched(inner, array_of(inner), other))
            return inner * 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 6, None

    y = Drops.apply(wanting([1.0]), [double([1.0])][0])
    assert alive[0]() == [False, False, False]
    y.backward()


def test_a_call_that_is_not_recorded_keeps_nothing() -> None:
    contexts = []

    class Notes(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            contexts.append(weakref.ref(ctx))
            y = x * 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    y = Notes.apply(double([1.0]))
    with pullback.no_grad():
        z = Notes.apply(wanting([1.0]))
    assert [c() for c in contexts] == [None, None]
    assert (y.item(), z.item()) == (2.0, 2.0)


# -- passes ------------------------------------------------------------------------------------------------------------


def unreachable() -> int:
    """How many objects only the collector could free."""
    return gc.collect()


@pytest.mark.parametrize("apply", [lambda x: x**3, lambda x: Saves.apply(x * 2), lambda x: Pair.apply(x * x)[0]])
def test_recorded_passes_leave_no_cycles(apply: Any) -> None:
    x = wanting([0.5])
    y = apply(x)
    (first,) = grad(y, x, create_graph=True)
    if first.requires_grad:
        (second,) = grad(first, x, create_graph=True)
        alive = watched(first, second, y, y.grad_fn, first.grad_fn)
        del second
    else:
        alive = watched(first, y, y.grad_fn)
    del first, y
    assert not any(alive())
    assert unreachable() == 0


def test_a_recorded_gradient_in_a_leaf_is_a_cycle_until_it_is_taken_away() -> None:
    x = wanting([2.0])
    (x**3).backward(create_graph=True)
    alive = watched(x.grad, x.grad.grad_fn)
    x.grad = None
    assert alive() == [False, False]
    assert unreachable() == 0


def test_passes_that_fail_leave_nothing() -> None:
    def fails(g: Any) -> None:
        raise ArithmeticError

    x = wanting([1.0])
    y = x.exp()
    handle = y.register_hook(fails)
    z = y * y
    with pytest.raises(ArithmeticError):
        z.backward(retain_graph=True)
    handle.remove()
    alive = watched(y, y.grad_fn, z.grad_fn)
    del y, z, handle
    assert alive() == [False, False, False]


def test_a_thousand_steps_of_training_need_no_more_memory_than_one() -> None:
    w = wanting(np.ones((20, 20)))
    x = double(np.ones(20))

    def steps(n: int) -> int:
        for _ in range(n):
            w.grad = None
            loss = Saves.apply((w @ x).sigmoid()).sum() + pullback.softmax(w, 0).square().mean()
            loss.backward()
            with pullback.no_grad():
                w.sub_(w.grad * 1e-3)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        steps(20)
        assert unreachable() == 0  # which also empties the interpreter's own stocks of small objects
        before = steps(1)
        steps(200)
        assert unreachable() == 0
        after = steps(1)
    finally:
        tracemalloc.stop()
    assert after - before < 2_000


def test_gradients_on_their_way_do_not_pile_up() -> None:
    size = 200_000
    x = wanting(np.ones(size))
    y = x
    for _ in range(50):
        y = y * 1.0
    total = y.sum()
    del y
    tracemalloc.start()
    try:
        total.backward()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 8 * size


def test_the_gradient_that_arrives_becomes_the_leafs_without_a_copy() -> None:
    size = 1_000_000
    x = wanting(np.ones(size))
    y = (x * 2.0).sum()
    tracemalloc.start()
    try:
        y.backward()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * 8 * size


# -- values that were written to since they were saved -----------------------------------------------------------------


def saves_input(x: Any) -> tuple[Any, Any]:
    inner = x * 1
    return Saves.apply(inner), inner


def saves_output(x: Any) -> tuple[Any, Any]:
    y = Saves.apply(x)
    return y, y


def operation_saves_input(x: Any) -> tuple[Any, Any]:
    inner = x * 1
    return inner * inner, inner


def operation_saves_output(x: Any) -> tuple[Any, Any]:
    y = x.exp()
    return y, y


WRITES: dict[str, Callable[[Any], Any]] = {
    "in place": lambda t: t.add_(1),
    "without recording": pullback.no_grad()(lambda t: t.add_(1)),
    "by index": lambda t: t.__setitem__(0, 5.0),
    "through a view": lambda t: t[:1].mul_(2),
    "through an alias": lambda t: t.detach().zero_(),
    "through a view of an alias": lambda t: t.detach().view(-1)[1:].fill_(3.0),
    "copied over": lambda t: t.copy_(double([5.0, 6.0])),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize(
    ("build", "name"),
    [
        (saves_input, "SavesBackward"),
        (saves_output, "SavesBackward"),
        (operation_saves_input, "MulBackward0"),
        (operation_saves_output, "ExpBackward0"),
    ],
)
def test_a_saved_value_that_was_written_to_is_an_error(build: Any, name: str, write: Any) -> None:
    x = wanting([1.0, 2.0])
    y, saved = build(x)
    node = y.grad_fn
    before = saved._version
    write(saved)
    words = (
        rf"float64 tensor of shape \[2\], saved by {name}, is at version {saved._version}; expected version {before}"
    )
    for _ in range(2):
        with pytest.raises(RuntimeError, match=words) as caught:
            y.sum().backward(retain_graph=True)
        assert "What to do: " in str(caught.value)
    with pytest.raises(RuntimeError, match=words):
        node.saved_tensors  # noqa: B018
    assert x.grad is None


@pytest.mark.parametrize("build", [saves_input, saves_output, operation_saves_input, operation_saves_output])
def test_a_write_through_data_is_on_ones_own_responsibility(build: Any) -> None:
    x = wanting([1.0, 2.0])
    y, saved = build(x)
    saved.data.add_(1)
    y.sum().backward()
    assert x.grad is not None


def test_the_version_that_counts_is_that_at_the_end_of_forward() -> None:
    class Writes(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            inner = x * 2
            inner.add_(1)
            ctx.save_for_backward(inner, None, x)
            inner.add_(1)
            return inner * 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    x = wanting([1.0])
    h = x * 1
    h.add_(1)
    Writes.apply(h).backward()
    assert x.grad.item() == 6.0


@pytest.mark.parametrize("first", [0, 3])
def test_versions_are_told_of_any_saved_tensor(first: int) -> None:
    class Sum(Function):
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            ctx.save_for_backward(*xs)
            return sum(xs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            ctx.saved_tensors  # noqa: B018
            return (g,) * 4

    for place in range(4):
        xs = [wanting(np.ones(k + 1)) for k in range(1)] + [wanting([1.0]) for _ in range(3)]
        inner = [x * 1 for x in xs]
        for _ in range(first):
            inner[place].add_(0)
        y = Sum.apply(*inner)
        inner[place].add_(1)
        words = re.escape(f"is at version {first + 1}; expected version {first} instead")
        with pytest.raises(RuntimeError, match=words):
            y.backward()


def test_writing_before_saving_and_after_the_pass_is_fine() -> None:
    x = wanting([1.0])
    inner = x * 1
    inner.add_(1)
    y = Saves.apply(inner)
    y.backward()
    inner.add_(1)
    assert x.grad.item() == pytest.approx(np.e**2)


def test_a_leaf_that_was_saved_and_updated_is_noticed() -> None:
    w = wanting([2.0])
    y = w * w
    with pullback.no_grad():
        w.sub_(0.5)
    with pytest.raises(RuntimeError, match=r"saved by MulBackward0, is at version 1; expected version 0"):
        backward(y)


def test_writing_to_what_was_not_saved_is_fine() -> None:
    x = wanting([1.0])
    inner = x * 1
    y = inner + inner
    inner.add_(5)
    y.backward()
    assert x.grad.item() == 2.0


_STEPS = """
import resource
import pullback

x, g = pullback.ones(1_000_000, requires_grad=True), pullback.ones(1_000_000)


def step():
    x.grad = None
    y = (x * x).sin() * 2
    y.backward(g)


faults = []
for _ in range(4):
    step()
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[-1] - faults[-2])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that is told to keep freed memory")
def test_freed_memory_is_kept_for_the_next_arrays() -> None:
    """A step on arrays of 4 MB needs none from the system, where each array would else be a thousand page faults."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run([sys.executable, "-c", _STEPS], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200
