"""The engine: `backward` and `grad`, what they accept and refuse, the order of nodes, and how gradients add up.

The programs at the end run in PyTorch, too. Random graphs are compared with it, and with themselves built in another
order.
"""

from __future__ import annotations

import functools
import operator
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback
from pullback.autograd import Function, backward, grad
from tests.side_by_side import constant, leaf

wanting: Callable[..., Any] = functools.partial(leaf, pullback)
double: Callable[..., Any] = functools.partial(constant, pullback)


class Keep(Function):
    """x * x, which returns as gradient what it is told to keep."""

    @staticmethod
    def forward(ctx: Any, x: Any, kept: Any) -> Any:
        ctx.save_for_backward(kept)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return ctx.saved_tensors[0], None


# accumulation ---------------------------------------------------------------------------------------------------------


def test_gradients_add_up_in_place() -> None:
    x = wanting([1.0, 2.0])
    (x * x).sum().backward()
    kept = x.grad
    (3 * x).sum().backward()
    assert x.grad is kept
    assert kept.tolist() == [5.0, 7.0]
    assert kept._version == 1


def test_a_gradient_that_is_set_is_added_to() -> None:
    x = wanting([1.0])
    x.grad = mine = double([10.0])
    (x * 2).backward()
    assert x.grad is mine
    assert mine.item() == 12.0


@pytest.mark.parametrize("clear", ["none", "delete"])
def test_a_gradient_that_is_cleared_starts_anew(clear: str) -> None:
    x = wanting([1.0])
    (x * 2).backward()
    kept = x.grad
    if clear == "none":
        x.grad = None
    else:
        del x.grad
    assert x.grad is None
    (x * 3).backward()
    assert (kept.item(), x.grad.item()) == (2.0, 3.0)


@pytest.mark.parametrize("kind", ["read-only", "expanded", "strided"])
def test_a_gradient_in_any_memory_is_added_to(kind: str) -> None:
    x = wanting([1.0, 2.0])
    memory = np.array([10.0, 99.0, 20.0])
    array = {"read-only": memory[::2].copy(), "expanded": np.broadcast_to(10.0, 2), "strided": memory[::2]}[kind]
    if kind == "read-only":
        array.flags.writeable = False
    x.grad = pullback.autograd.node.wrap(array)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [13.0, 13.0 if kind == "expanded" else 23.0]
    assert memory.tolist() == ([13.0, 99.0, 23.0] if kind == "strided" else [10.0, 99.0, 20.0])


def test_a_recorded_pass_replaces_the_gradient_and_does_not_write_to_it() -> None:
    x = wanting([2.0])
    (x**2).backward(create_graph=True)
    first = x.grad
    (x**3).backward(create_graph=True)
    assert (first.item(), x.grad.item(), x.grad is first) == (4.0, 16.0, False)
    assert grad(x.grad, x)[0].item() == 14.0


def test_a_leaf_that_no_longer_requires_grad_gets_none() -> None:
    x = wanting([1.0])
    y = x * 2
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None


def test_a_leaf_used_many_times_is_written_once() -> None:
    x = wanting([1.0, 1.0])
    (sum(x * k for k in range(1, 101))).sum().backward()
    assert x.grad.tolist() == [5050.0, 5050.0]
    assert x.grad._version == 0


# .grad belongs to the leaf alone --------------------------------------------------------------------------------------


def spoil(t: Any) -> None:
    """Write to a tensor's memory, whatever it is."""
    with pullback.no_grad():
        t.detach().mul_(-7)


@pytest.mark.parametrize("taped", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x + w,
        lambda x, w: x - (-w),
        lambda x, w: (x + 0) + (w + 0),
        lambda x, w: pullback.stack([x, w]).sum(0),
        lambda x, w: x.view(2, 1).view(2) + w.reshape(2),
        lambda x, w: x.expand(2) + w,
    ],
)
def test_leaves_do_not_share_a_gradient_with_each_other_or_with_the_caller(function: Any, taped: bool) -> None:
    x, w = wanting([1.0, 2.0]), wanting([3.0, 4.0])
    g = double([5.0, 6.0])
    function(x, w).backward(g, create_graph=taped)
    spoil(x.grad)
    assert (w.grad.tolist(), g.tolist()) == ([5.0, 6.0], [5.0, 6.0])
    spoil(w.grad)
    assert (x.grad.tolist(), g.tolist()) == ([-35.0, -42.0], [5.0, 6.0])


@pytest.mark.parametrize("taped", [False, True])
def test_a_leaf_that_is_the_root_does_not_keep_the_callers_gradient(taped: bool) -> None:
    x, g = wanting([1.0, 2.0]), double([5.0, 6.0])
    x.backward(g, create_graph=taped)
    assert x.grad is not g
    spoil(x.grad)
    assert g.tolist() == [5.0, 6.0]
    spoil(g)
    assert x.grad.tolist() == [-35.0, -42.0]


@pytest.mark.parametrize("taped", [False, True])
def test_a_gradient_is_not_the_tensor_that_was_saved(taped: bool) -> None:
    x, kept = wanting([1.0, 2.0]), double([3.0, 4.0])
    Keep.apply(x, kept).sum().backward(create_graph=taped)
    spoil(x.grad)
    assert kept.tolist() == [3.0, 4.0]


def test_a_gradient_is_not_what_backward_still_holds() -> None:
    held = []

    class Holds(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, how: Any) -> Any:
            ctx.how = how
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            new = g * 2
            held.append(ctx.how(new))
            return new, None

    for how in (
        lambda t: t,
        lambda t: t.numpy(),
        lambda t: t[:1],
        lambda t: t.detach(),
        lambda t: memoryview(t.numpy()),
    ):
        x = wanting([1.0, 2.0])
        Holds.apply(x, how).sum().backward()
        spoil(x.grad)
        assert np.asarray(held.pop()).tolist()[0] == 2.0


def test_a_gradient_is_not_what_a_hook_holds() -> None:
    held: list[Any] = []
    for on_leaf in (False, True):
        x = wanting([1.0, 2.0])
        y = x * 1
        (x if on_leaf else y).register_hook(held.append)
        (y * 2).sum().backward()
        spoil(x.grad)
        assert held.pop().tolist() == [2.0, 2.0]


def test_a_retained_gradient_is_nobody_elses() -> None:
    x = wanting([1.0, 2.0])
    y = x + 0
    y.retain_grad()
    g = double([3.0, 4.0])
    y.backward(g)
    spoil(y.grad)
    assert (x.grad.tolist(), g.tolist()) == ([3.0, 4.0], [3.0, 4.0])


@pytest.mark.parametrize("taped", [False, True])
def test_gradients_of_inner_inputs_are_nobody_elses(taped: bool) -> None:
    x = wanting([1.0, 2.0])
    y, z = x + 0, x + 1
    g = double([3.0, 4.0])
    (y + z).backward(g, inputs=[y, z, x], create_graph=taped)
    spoil(y.grad)
    spoil(x.grad)
    assert (z.grad.tolist(), g.tolist()) == ([3.0, 4.0], [3.0, 4.0])


def test_a_gradient_can_always_be_written_to() -> None:
    for reduce in (lambda x: x.sum(), lambda x: x.mean(), lambda x: x.sum(0).sum(), lambda x: x[0].sum() + x[1].sum()):
        x = wanting([[1.0, 2.0], [3.0, 4.0]])
        reduce(x).backward()
        before = x.grad.tolist()
        x.grad[0, 0] = 7.0
        assert x.grad.tolist() == [[7.0, before[0][1]], before[1]]
        (found,) = grad(reduce(x), x)
        found[0, 0] = 7.0
        assert found.tolist() == [[7.0, before[0][1]], before[1]]


def test_an_expanded_gradient_of_the_caller_is_copied() -> None:
    x = wanting([[1.0, 2.0], [3.0, 4.0]])
    g = double(1.0).expand(2, 2)
    x.backward(g)
    x.grad[0, 0] = 7.0
    assert (x.grad.tolist(), g.tolist()) == ([[7.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]])


# using a graph again --------------------------------------------------------------------------------------------------


def test_a_second_pass_is_an_error_that_names_the_node() -> None:
    x = wanting([3.0])
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=r"a second time.*\n?.*MulBackward0(.|\n)*retain_graph=True"):
        y.backward()
    assert x.grad.item() == 6.0


def test_it_is_not_where_nothing_was_saved() -> None:
    x = wanting([3.0])
    y = x + x
    y.backward()
    y.backward()
    assert x.grad.item() == 4.0


def test_the_shared_part_of_two_graphs_is_freed_by_the_first() -> None:
    x = wanting([3.0])
    shared = x * x
    (shared + 1).backward()
    with pytest.raises(RuntimeError, match="a second time"):
        (shared + 2).backward()


def test_only_what_ran_is_freed() -> None:
    x, w = wanting([1.0]), wanting([2.0])
    a, b = x.exp(), w * w
    y = a * b
    y.backward(inputs=[x])
    assert grad(b, w)[0].item() == 4.0
    with pytest.raises(RuntimeError, match="a second time"):
        grad(a, x)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, False),
        ({"retain_graph": True}, True),
        ({"create_graph": True}, True),
        ({"create_graph": True, "retain_graph": False}, False),
        ({"retain_graph": False}, False),
    ],
)
def test_what_is_retained(options: dict[str, bool], kept: bool) -> None:
    x = wanting([3.0])
    for first in (lambda y: y.backward(**options), lambda y: grad(y, x, **options)):
        y = x * x
        first(y)
        if kept:
            y.backward()
        else:
            with pytest.raises(RuntimeError, match="a second time"):
                y.backward()


def test_a_first_pass_that_failed_can_be_repeated() -> None:
    x = wanting([3.0])
    y = x * x
    z = y * y
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        z.backward(double([1.0, 2.0]))
    handle = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        z.backward(retain_graph=True)
    handle.remove()
    z.backward()
    assert x.grad.item() == 108.0


# the shapes of graphs -------------------------------------------------------------------------------------------------


def test_each_node_runs_once_with_the_sum_of_what_arrives() -> None:
    ran: list[tuple[str, float]] = []

    class Note(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, name: str) -> Any:
            ctx.what = name
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            ran.append((ctx.what, g.item()))
            return g, None

    x = wanting([1.0])
    a = Note.apply(x, "a")
    b, c = Note.apply(a * 2, "b"), Note.apply(a * 3, "c")
    d = Note.apply(b + c, "d")
    (d + a * 5 + b).backward()
    assert ran == [("d", 1.0), ("c", 1.0), ("b", 2.0), ("a", 12.0)]
    assert x.grad.item() == 12.0


def test_nodes_run_newest_first() -> None:
    order: list[str] = []
    x = wanting([1.0])
    nodes = {}
    first = x * 2
    for name in "abcdef":
        nodes[name] = first.exp()
        nodes[name].grad_fn.register_hook(lambda *_, name=name: order.append(name))
    total = functools.reduce(operator.add, [nodes[name] for name in "dbface"])
    total.backward()
    assert order == list("fedcba")


def test_the_order_is_that_of_making_also_across_roots() -> None:
    order: list[str] = []
    x = wanting([1.0])
    ys = []
    for name in "abcd":
        y = (x * 2).exp()
        y.register_hook(lambda g, name=name: order.append(name))
        ys.append(y)
    backward([ys[i] for i in (2, 0, 3, 1)])
    assert order == list("dcba")


def test_a_node_waits_for_all_its_consumers_however_late_they_are_reached() -> None:
    x = wanting([1.0])
    y = x * 2
    late = y
    for _ in range(50):
        late = late * 1
    early = y * 3
    (early * 0 + late + y + early).backward()
    assert x.grad.item() == 2.0 * (1 + 1 + 3)


def test_a_root_inside_of_another_roots_graph() -> None:
    x = wanting([3.0])
    y = x * 2
    z = y * y
    backward([y, z, x])
    assert x.grad.item() == 2.0 + 24.0 + 1.0


def test_the_same_root_twice_counts_twice() -> None:
    x = wanting([3.0])
    y = x * 2
    backward([y, y], [double([1.0]), double([10.0])])
    assert x.grad.item() == 22.0


def test_several_outputs_of_one_node_as_roots_and_inputs() -> None:
    class Pair(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            return a * 2 + b * 3

    x = wanting([1.0])
    a, b = Pair.apply(x)
    c = a * 5 + b * 7
    found = grad([c, b], [a, b, x], [double([1.0]), double([100.0])])
    assert [t.item() for t in found] == [5.0, 107.0, 331.0]


def test_a_wide_fan_in_and_a_wide_fan_out() -> None:
    n = 20_000
    x = wanting([1.0])
    y = pullback.stack([x * (k % 7) for k in range(n)]).sum()
    y.backward()
    assert x.grad.item() == sum(k % 7 for k in range(n))


def test_the_sum_of_many_does_not_write_to_what_was_sent() -> None:
    # the first two gradients make a new sum, which may then be written to; none of the gradients themselves may
    seen: list[Any] = []
    x = wanting([1.0, 1.0])
    y = x * 1
    parts = [y * k for k in (1.0, 2.0, 3.0, 4.0)]
    for part in parts:
        part.register_hook(seen.append)
    g = double([1.0, 1.0])
    sum(parts[1:], parts[0]).backward(g)
    assert x.grad.tolist() == [10.0, 10.0]
    assert [s.tolist() for s in seen] == [[1.0, 1.0]] * 4
    assert g.tolist() == [1.0, 1.0]


def chain(n: int) -> tuple[Any, Any]:
    x = wanting([1.0])
    y = x
    for _ in range(n):
        y = y * 1.0
    return x, y


def test_a_long_chain_runs_and_dies_without_recursion() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        x, y = chain(20_000)
        y.backward()
        assert x.grad.item() == 1.0
        x, y = chain(150_000)
        del y
        x, y = chain(20_000)
        (found,) = grad(y, x, create_graph=True)
        assert found.item() == 1.0
        del found, y
    finally:
        sys.setrecursionlimit(limit)


def test_a_long_chain_of_functions_dies_without_recursion() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 1
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = wanting([1.0])
    y = x
    for _ in range(30_000):
        y = Same.apply(y)
    y.backward(retain_graph=True)
    assert x.grad.item() == 1.0
    del y


# random graphs --------------------------------------------------------------------------------------------------------

Step = tuple[int, tuple[int, ...]]


@functools.cache
def two_outputs(lib: Any) -> Any:
    """A Function of a library that returns a * b and a + b, broadcast."""

    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return a * b, a + b

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        a, b = ctx.saved_tensors
        ga, gb = g * b + h, g * a + h
        return ga.sum(0) if ga.ndim > a.ndim else ga, gb.sum(0) if gb.ndim > b.ndim else gb

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Two", (lib.autograd.Function,), methods)


OPERATIONS: list[Callable[[Any, Any, Any], Any]] = [
    lambda lib, a, b: a + b,
    lambda lib, a, b: a * b,
    lambda lib, a, b: a - b.tanh(),
    lambda lib, a, b: (a * 0.5).sin() + b * 0.25,
    lambda lib, a, b: a.sum() * 0.125 + b,
    lambda lib, a, b: (a.tanh() * b).exp() * 0.5,
    lambda lib, a, b: two_outputs(lib).apply(a.tanh(), b)[1],
    lambda lib, a, b: functools.reduce(operator.sub, two_outputs(lib).apply(a, b.tanh())),
]


@st.composite
def graphs(draw: Any) -> list[Step]:
    """A graph: for each node its operation and the two earlier tensors it is of; the first three are leaves."""
    steps = []
    for k in range(3, 3 + draw(st.integers(1, 14))):
        steps.append((draw(st.integers(0, len(OPERATIONS) - 1)), draw(st.tuples(*[st.integers(0, k - 1)] * 2))))
    return steps


LEAVES = ([0.5, -1.0], [0.25, 0.75], [[0.125, -0.5], [1.0, 0.0]])


def built(lib: Any, steps: list[Step], order: list[int]) -> tuple[list[Any], list[Any]]:
    """The leaves, and all tensors of a graph, whose nodes are made in the given order."""
    leaves = [leaf(lib, values) for values in LEAVES]
    tensors: dict[int, Any] = dict(enumerate(leaves))
    for k in order:
        operation, arguments = steps[k]
        tensors[k + 3] = OPERATIONS[operation](lib, *[tensors[a] for a in arguments])
    return leaves, [tensors[k] for k in sorted(tensors)]


def another_order(steps: list[Step], seed: int) -> list[int]:
    """An order of making the nodes in which each comes after its arguments."""
    chooser = random.Random(seed)
    order: list[int] = []
    while len(order) < len(steps):
        ready = [
            k for k, (_, args) in enumerate(steps) if k not in order and all(a < 3 or a - 3 in order for a in args)
        ]
        order.append(chooser.choice(ready))
    return order


def gradients(lib: Any, steps: list[Step], order: list[int], twice: bool) -> list[Any]:
    """The gradients of the sum of what nobody uses; or of their squares, in turn."""
    leaves, tensors = built(lib, steps, order)
    used = {a for _, args in steps for a in args}
    loss = sum(t.sum() for k, t in enumerate(tensors) if k not in used)
    found = lib.autograd.grad(loss, leaves, create_graph=twice, allow_unused=True)
    if twice:
        squares = sum((g * g).sum() for g in found if g is not None)
        if not (hasattr(squares, "requires_grad") and squares.requires_grad):
            return [None] * 3
        found = lib.autograd.grad(squares, leaves, allow_unused=True)
    return [None if g is None else g.detach().numpy() for g in found]


def assert_close(found: list[Any], expected: list[Any], zeros: bool = False) -> None:
    for a, b in zip(found, expected, strict=True):
        if zeros:
            a, b = (0 if a is None else a), (0 if b is None else b)
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@given(graphs(), st.integers(0, 2**16), st.booleans())
def test_the_order_of_building_does_not_matter(steps: list[Step], seed: int, twice: bool) -> None:
    one = gradients(pullback, steps, list(range(len(steps))), twice)
    other = gradients(pullback, steps, another_order(steps, seed), twice)
    assert_close(one, other)


@given(graphs(), st.integers(0, 2**16))
def test_backward_and_grad_agree_and_so_does_a_recorded_pass(steps: list[Step], seed: int) -> None:
    order = another_order(steps, seed)
    expected = gradients(pullback, steps, order, False)
    used = {a for _, args in steps for a in args}
    for options in ({}, {"create_graph": True}, {"inputs": True}):
        leaves, tensors = built(pullback, steps, order)
        if options.pop("inputs", False):
            options["inputs"] = leaves
        sum(t.sum() for k, t in enumerate(tensors) if k not in used).backward(**options)
        assert_close([None if x.grad is None else x.grad.detach().numpy() for x in leaves], expected)
        for x in leaves:
            x.grad = None


@given(graphs(), st.data())
def test_the_gradient_of_an_inner_tensor_is_that_of_a_leaf_in_its_place(steps: list[Step], data: Any) -> None:
    order = list(range(len(steps)))
    k = data.draw(st.integers(0, len(steps) - 1))
    _, tensors = built(pullback, steps, order)
    used = {a for _, args in steps for a in args}
    (found,) = grad(sum(t.sum() for i, t in enumerate(tensors) if i not in used), tensors[k + 3], allow_unused=True)
    replaced = {i: t.detach() for i, t in enumerate(tensors[: k + 4])}
    replaced[k + 3].requires_grad_()
    for i in range(k + 1, len(steps)):
        operation, arguments = steps[i]
        replaced[i + 3] = OPERATIONS[operation](pullback, *[replaced[a] for a in arguments])
    (expected,) = grad(sum(t.sum() for i, t in replaced.items() if i not in used), replaced[k + 3], allow_unused=True)
    assert_close([found.numpy()], [expected.numpy()])


@pytest.mark.torch
@given(steps=graphs(), seed=st.integers(0, 2**16), twice=st.booleans())
def test_random_graphs_have_torchs_gradients(steps: list[Step], seed: int, twice: bool) -> None:
    torch = pytest.importorskip("torch")
    order = another_order(steps, seed)
    # in second order PyTorch has zeros for some of what does not matter at all
    assert_close(gradients(pullback, steps, order, twice), gradients(torch, steps, order, twice), zeros=twice)


# inputs, unused inputs, batches ---------------------------------------------------------------------------------------


def test_only_the_inputs_asked_for_accumulate() -> None:
    x, w, v = wanting([2.0]), wanting([3.0]), wanting([5.0])
    y = x * w
    (y * v).backward(inputs=[w, y, v])
    assert (x.grad, w.grad.item(), y.grad.item(), v.grad.item()) == (None, 10.0, 5.0, 6.0)


@pytest.mark.parametrize("times", [1, 3])
def test_an_input_that_is_named_more_than_once_counts_once(times: int) -> None:
    x = wanting([3.0])
    y = x * 2
    (y * y).backward(inputs=[y, x] * times)
    assert (y.grad.item(), x.grad.item()) == (12.0, 24.0)


def test_an_inner_input_keeps_accumulating() -> None:
    x = wanting([3.0])
    y = x * 2
    z = y * y
    z.backward(inputs=[y], retain_graph=True)
    kept = y.grad
    z.backward(inputs=y)
    assert (kept.item(), y.grad.item(), x.grad) == (12.0, 24.0, None)  # not in place


def test_what_does_not_lead_to_the_inputs_does_not_run() -> None:
    ran = []

    class Note(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            ran.append(ctx)
            return g

    x, w = wanting([1.0]), wanting([1.0])
    a, b = Note.apply(x), Note.apply(w)
    wanted = a.grad_fn
    (a * b).backward(inputs=[x])
    assert ran == [wanted]


def test_unused_inputs() -> None:
    x, w = wanting([3.0]), wanting([[4.0, 5.0]])
    with pytest.raises(RuntimeError, match=r"index 1 .*not have been used.*allow_unused=True"):
        grad(x * 2, [x, w])
    found = grad(x * 2, [x, w], allow_unused=True)
    assert (found[0].item(), found[1]) == (2.0, None)
    found = grad(x * 2, [x, w], materialize_grads=True)
    assert (found[1].tolist(), found[1].dtype) == ([[0.0, 0.0]], pullback.float64)
    with pytest.raises(ValueError, match="allow_unused"):
        grad(x * 2, [x, w], materialize_grads=True, allow_unused=False)
    assert (x.grad, w.grad) == (None, None)


def test_an_unrelated_input_of_backward_gets_nothing() -> None:
    x, w = wanting([3.0]), wanting([4.0])
    (x * 2).backward(inputs=[w])
    assert (x.grad, w.grad) == (None, None)


def test_batched_gradients_are_the_rows_stacked() -> None:
    x, w = wanting([3.0, 4.0]), wanting([1.0, 2.0])
    y = x * x * w
    gx, gw = grad(y, [x, w], double([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), is_grads_batched=True, retain_graph=True)
    assert gx.tolist() == [[6.0, 0.0], [0.0, 16.0], [6.0, 16.0]]
    assert gw.tolist() == [[9.0, 0.0], [0.0, 16.0], [9.0, 16.0]]
    (again,) = grad(y, x, double([[1.0, 0.0]]), is_grads_batched=True)
    assert again.tolist() == [[6.0, 0.0]]
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()


@pytest.mark.parametrize(
    "vectors",
    [
        [None],
        [double(1.0)],
        [double(np.ones((0, 2)))],
        [double(np.ones((2, 2))), double(np.ones((3, 2)))],
        [double(np.ones((2, 3)))],
        [double(np.ones(2))],
    ],
    ids=["none", "0-d", "no rows", "different", "wrong shape", "no batch axis"],
)
def test_batched_gradients_that_do_not_fit_are_refused(vectors: list[Any]) -> None:
    x = wanting([3.0, 4.0])
    y = x * x
    with pytest.raises((ValueError, RuntimeError), match=r"is_grads_batched|Mismatch in shape"):
        grad([y] * len(vectors), x, vectors, is_grads_batched=True)
    y.sum().backward()


# what is refused, before anything has changed -------------------------------------------------------------------------


def refusals() -> dict[str, tuple[type[Exception], str, Callable[[Any, Any, Any], Any]]]:
    """For each: the exception, words of its message, and a call, of a leaf x = [1, 2], y = 2 x and c = [1, 1]."""
    return {
        "no scalar": (RuntimeError, r"only for scalar outputs.*\[2\](.|\n)*sum\(\)", lambda x, y, c: y.backward()),
        "no scalar for grad": (RuntimeError, "only for scalar outputs", lambda x, y, c: grad(y, x)),
        "no elements": (RuntimeError, "only for scalar outputs", lambda x, y, c: y[:0].backward()),
        "other shape": (
            RuntimeError,
            r"grad_output\[0\].*\[3\].*output\[0\].*\[2\]",
            lambda x, y, c: y.backward(double([1.0] * 3)),
        ),
        "shape that would broadcast": (RuntimeError, "Mismatch in shape", lambda x, y, c: y.backward(double([1.0]))),
        "complex for real": (
            RuntimeError,
            "complex128.*float64",
            lambda x, y, c: y.backward(c.to(pullback.complex128)),
        ),
        "complex scalar": (RuntimeError, "only for real scalar", lambda x, y, c: (y * 1j).sum().backward()),
        "number": (TypeError, "float", lambda x, y, c: y.backward(1.0)),
        "array": (TypeError, "ndarray", lambda x, y, c: y.backward(np.ones(2))),
        "number for grad": (TypeError, "float", lambda x, y, c: grad(y, x, 1.0)),
        "root without grad": (RuntimeError, "element 0.*does not require grad", lambda x, y, c: c.backward(c)),
        "integer root": (
            RuntimeError,
            "element 0.*does not require grad",
            lambda x, y, c: pullback.tensor(1).backward(),
        ),
        "second root without": (RuntimeError, "element 1", lambda x, y, c: backward([y.sum(), c.sum()])),
        "fewer gradients": (RuntimeError, "2 tensors and 1 gradients", lambda x, y, c: backward([y, y], [c])),
        "fewer for grad": (RuntimeError, "2 tensors and 1 gradients", lambda x, y, c: grad([y, y], x, [c])),
        "no inputs": (RuntimeError, "`backward\\(\\)` cannot be empty", lambda x, y, c: y.backward(c, inputs=[])),
        "no inputs for grad": (RuntimeError, "`grad\\(\\)` cannot be empty", lambda x, y, c: grad(y, [], c)),
        "input without grad": (RuntimeError, r"inputs\[0\]", lambda x, y, c: y.backward(c, inputs=[c])),
        "input without for grad": (RuntimeError, r"inputs\[1\]", lambda x, y, c: grad(y, [x, c], c)),
        "even if unused": (RuntimeError, r"inputs\[0\]", lambda x, y, c: grad(y, [c], c, allow_unused=True)),
        "array as input": (TypeError, "ndarray", lambda x, y, c: grad(y, [np.ones(2)], c)),
        "array as root": (TypeError, "ndarray", lambda x, y, c: backward([np.ones(2)])),
        "no outputs": (RuntimeError, "index 0 .*not have been used", lambda x, y, c: grad([], [x])),
    }


@pytest.mark.parametrize("case", refusals().values(), ids=refusals())
def test_refused(case: Any) -> None:
    kind, words, call = case
    x = wanting([1.0, 2.0])
    y = x * 2
    with pytest.raises(kind, match=words):
        call(x, y, double([1.0, 1.0]))
    assert (x.grad, pullback.is_grad_enabled()) == (None, True)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "value", [double([1.0, 2.0]), constant(pullback, [1.0], "float32"), 3.0, np.ones(1), "self"], ids=str
)
def test_a_grad_that_does_not_fit_cannot_be_set(value: Any) -> None:
    x = wanting([1.0])
    with pytest.raises((RuntimeError, TypeError)):
        x.grad = x if isinstance(value, str) else value
    assert x.grad is None


def test_reading_the_grad_of_an_inner_tensor_warns() -> None:
    y = wanting([1.0]) * 2
    with pytest.warns(UserWarning, match=r"not a leaf(.|\n)*retain_grad") as caught:
        assert y.grad is None
    assert caught[0].filename == __file__
