"""Hooks: who is called, when, with what, and what comes of what they return.

Of tensors (`register_hook`, `retain_grad`, `register_post_accumulate_grad_hook`) and of nodes (`register_prehook`,
`register_hook`). The programs write down what happens; they run in PyTorch, too, and have to come to the same events.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import AccumulateGrad, Function, Node, grad
from tests.side_by_side import constant, leaf

wanting: Callable[..., Any] = functools.partial(leaf, pullback)
double: Callable[..., Any] = functools.partial(constant, pullback)


class Pair(Function):
    """Two outputs, 2 x and 3 x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        return a * 2 + b * 3


# hooks of tensors -----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["leaf", "inner"])
def hooked(request: pytest.FixtureRequest) -> tuple[Any, Any, Any]:
    """A leaf x, a tensor t with hooks to come (x itself, or 1 x), and the loss 5 t."""
    x = wanting([1.0])
    t = x if request.param == "leaf" else x * 1
    return x, t, t * 5


def test_a_hook_sees_the_gradient_and_may_replace_it(hooked: Any) -> None:
    x, t, y = hooked
    seen = []

    def replace(g: Any) -> Any:
        seen.append(g.item())
        return g * 10

    t.register_hook(replace)
    t.register_hook(replace)
    t.register_hook(lambda g: seen.append(g.item()))
    y.backward()
    assert seen == [5.0, 50.0, 500.0]
    assert x.grad.item() == 500.0


def test_a_removed_hook_is_not_called(hooked: Any) -> None:
    x, t, y = hooked
    handle = t.register_hook(lambda g: g * 10)
    handle.remove()
    handle.remove()
    y.backward(retain_graph=True)
    with t.register_hook(lambda g: g * 100):
        y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 5.0 + 500.0 + 5.0


def test_a_hook_may_remove_itself_and_others_while_hooks_run(hooked: Any) -> None:
    _, t, y = hooked
    events = []

    def first(g: Any) -> None:
        events.append("first")
        handles["first"].remove()
        handles["second"].remove()
        t.register_hook(lambda g: events.append("added"))

    handles = {"first": t.register_hook(first)}
    handles["second"] = t.register_hook(lambda g: events.append("second"))
    t.register_hook(lambda g: events.append("third"))
    y.backward(retain_graph=True)
    assert events == ["first", "second", "third"]
    y.backward()
    assert events[3:] == ["third", "added"]


def test_the_same_function_twice_is_called_twice(hooked: Any) -> None:
    _, t, y = hooked
    calls: list[Any] = []
    t.register_hook(calls.append)
    t.register_hook(calls.append)
    y.backward()
    assert len(calls) == 2


def test_a_hook_is_called_once_with_the_sum(hooked: Any) -> None:
    _, t, y = hooked
    calls: list[Any] = []
    t.register_hook(calls.append)
    (y + t * 2 + t.exp() * 0).backward()
    assert [g.item() for g in calls] == [7.0]


def test_a_hook_that_raises_leaves_everything_as_it_was(hooked: Any) -> None:
    x, t, y = hooked

    def fails(g: Any) -> None:
        raise ArithmeticError("hook broke")

    handle = t.register_hook(fails)
    for taped in (False, True):
        with pytest.raises(ArithmeticError, match="hook broke"):
            y.backward(retain_graph=True, create_graph=taped)
        assert (x.grad, pullback.is_grad_enabled()) == (None, True)
    handle.remove()
    y.backward()
    assert x.grad.item() == 5.0


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (3.0, TypeError, "(?s)hook returned 'float'.*hook '.*wrong' return a Tensor or None"),
        (lambda: double([1.0, 2.0]), RuntimeError, r"hook '.*wrong' has changed the size.*\[1\].*\[2\]"),
        (lambda: double([[1.0]]), RuntimeError, "has changed the size"),
        (lambda: constant(pullback, [1.0], "float32"), RuntimeError, r"has changed the type.*float64.*float32"),
    ],
    ids=["number", "size", "rank", "dtype"],
)
def test_a_hook_must_return_what_it_got(hooked: Any, answer: Any, kind: type[Exception], words: str) -> None:
    x, t, y = hooked

    def wrong(g: Any) -> Any:
        return answer() if callable(answer) else answer

    t.register_hook(wrong)
    with pytest.raises(kind, match=words):
        y.backward()
    assert x.grad is None


def test_hooks_run_in_the_mode_of_the_pass(hooked: Any) -> None:
    x, t, _ = hooked
    y = t * t * t
    modes = []
    t.register_hook(lambda g: modes.append((pullback.is_grad_enabled(), g.requires_grad)))
    grad(y, x, retain_graph=True)
    grad(y, x, create_graph=True)
    assert modes == [(False, False), (True, True)]


def test_what_a_hook_does_is_recorded_in_a_recorded_pass(hooked: Any) -> None:
    x, t, _ = hooked
    t.register_hook(lambda g: g * g)
    (first,) = grad(t**3, x, create_graph=True)  # (3 t^2)^2
    assert (first.item(), grad(first, x)[0].item()) == (9.0, 36.0**2)  # the hook is called in the second pass, too


def test_hooks_also_run_for_grad(hooked: Any) -> None:
    x, t, y = hooked
    t.register_hook(lambda g: g * 10)
    assert grad(y, t, retain_graph=True)[0].item() == 50.0
    assert grad(y, x)[0].item() == 50.0


def test_a_hook_of_the_root_sees_the_first_gradient() -> None:
    x = wanting([1.0])
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.backward(double([3.0]))
    assert x.grad.item() == 60.0


def test_a_hook_is_called_with_none_where_a_function_sent_none() -> None:
    class Nothing(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    x = wanting([1.0])
    y = x * 1
    calls: list[Any] = []
    x.register_hook(calls.append)
    y.register_hook(calls.append)
    Nothing.apply(y).backward()
    a, b = Pair.apply(x * 1)
    b.register_hook(calls.append)
    a.backward(inputs=[a])
    assert (calls, x.grad) == ([None, None, None], None)


def test_hooks_of_one_output_do_not_see_the_other() -> None:
    events = []
    x = wanting([1.0])
    a, b = Pair.apply(x)
    b.register_hook(lambda g: events.append(("b", g and g.item())))
    a.register_hook(lambda g: events.append(("a", g.item())))
    a.register_hook(lambda g: g * 10)
    (a * 5).backward(retain_graph=True)
    assert events == [("b", None), ("a", 5.0)]
    assert x.grad.item() == 100.0
    (a + b).backward()
    assert events[2:] == [("b", 1.0), ("a", 1.0)]


def test_what_does_not_require_grad_has_no_hooks() -> None:
    for t in (double([1.0]), pullback.tensor([1])):
        with pytest.raises(RuntimeError, match="doesn't require gradient"):
            t.register_hook(lambda g: None)
        with pytest.raises(RuntimeError, match="doesn't require gradient"):
            t.register_post_accumulate_grad_hook(lambda t: None)
        with pytest.raises(RuntimeError, match="can't retain_grad"):
            t.retain_grad()


def test_a_hook_must_be_callable() -> None:
    x = wanting([1.0])
    y = x * 2
    for register in (
        x.register_hook,
        y.register_hook,
        x.register_post_accumulate_grad_hook,
        y.grad_fn.register_hook,
        y.grad_fn.register_prehook,
    ):
        with pytest.raises(TypeError, match="callable, not int"):
            register(3)


# retain_grad ----------------------------------------------------------------------------------------------------------


def test_an_inner_tensor_keeps_its_gradient_if_asked_to() -> None:
    x = wanting([1.0])
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert (y.retains_grad, y.grad) == (True, None)
    z = y * 3
    z.backward(retain_graph=True)
    kept = y.grad
    z.backward()
    assert (kept.item(), y.grad.item(), x.grad.item()) == (3.0, 6.0, 12.0)  # not in place


def test_on_a_leaf_it_does_nothing() -> None:
    x = wanting([1.0])
    x.retain_grad()
    (x * 2).backward()
    assert (x.retains_grad, x.grad.item()) == (False, 2.0)


def test_what_is_retained_is_what_the_hooks_of_the_tensor_left() -> None:
    x = wanting([1.0])
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 100,))
    y.backward()
    assert (y.grad.item(), x.grad.item()) == (10.0, 2000.0)


def test_each_output_of_a_node_retains_its_own() -> None:
    a, b = Pair.apply(wanting([1.0]))
    b.retain_grad()
    assert (a.retains_grad, b.retains_grad) == (False, True)
    (a * 5 + b * 7).backward(retain_graph=True)
    assert b.grad.item() == 7.0
    a.backward()
    assert b.grad.item() == 7.0


def test_grad_fills_what_is_retained_as_well() -> None:
    x = wanting([1.0])
    y = x * 2
    y.retain_grad()
    grad(y * 3, x)
    assert (y.grad.item(), x.grad) == (3.0, None)


def test_a_tensor_that_retains_its_gradient_may_die() -> None:
    x = wanting([1.0])
    y = x * 2
    y.retain_grad()
    z = y + 1
    y = weakref.ref(y)
    gc.collect()
    assert y() is None
    z.backward()
    assert x.grad.item() == 2.0


# register_post_accumulate_grad_hook -----------------------------------------------------------------------------------


def test_it_is_called_after_each_accumulation_with_the_leaf() -> None:
    x, w = wanting([1.0]), wanting([2.0])
    events = []
    x.register_hook(lambda g: events.append(("hook", x.grad is None)))
    handle = x.register_post_accumulate_grad_hook(lambda t: events.append((t is x, t.grad.item())))
    x.register_post_accumulate_grad_hook(lambda t: events.append("second"))
    (x * 2 + x * 3).backward()
    assert events == [("hook", True), (True, 5.0), "second"]
    grad(x * 2, x)
    (w * x.detach()).backward()
    (x * w).backward(inputs=[w])
    assert events[3:] == [("hook", False)]
    handle.remove()
    x.grad = None
    (x * 2).backward()
    assert events[4:] == [("hook", True), "second"]


def test_it_may_use_up_the_gradient() -> None:
    x = wanting([1.0])

    def step(t: Any) -> None:
        with pullback.no_grad():
            t.sub_(t.grad * 0.125)
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).backward()
    assert (x.item(), x.grad) == (0.75, None)


def test_it_is_for_leaves() -> None:
    with pytest.raises(RuntimeError, match="non-leaf"):
        (wanting([1.0]) * 2).register_post_accumulate_grad_hook(lambda t: None)


# nodes ----------------------------------------------------------------------------------------------------------------


def test_a_node_tells_what_it_is_and_where_it_leads() -> None:
    x, w = wanting([1.0]), wanting([2.0])
    y = x * 2
    node = (y * w).grad_fn
    assert isinstance(node, Node)
    assert node.name() == "MulBackward0"
    (first, i), (second, j) = node.next_functions
    assert (first is y.grad_fn, i, j) == (True, 0, 0)
    assert isinstance(second, AccumulateGrad)
    assert second.variable is w
    assert (second.name(), second.next_functions) == ("AccumulateGrad", ())
    assert node.metadata is node.metadata
    node.metadata["seen"] = True
    assert node.metadata == {"seen": True}
    assert repr(node).startswith("<MulBackward0 object at 0x")


def test_a_leaf_has_one_accumulator_for_as_long_as_a_graph_needs_it() -> None:
    x = wanting([1.0])
    y, z = x * 2, x.exp()
    assert y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0]


def test_hooks_of_a_node_are_called_around_it() -> None:
    x = wanting([1.0])
    y = x * 2
    events = []
    y.grad_fn.register_prehook(lambda grads: events.append(("before", [g.item() for g in grads])))
    y.grad_fn.register_hook(
        lambda sent, got: events.append(("after", [g and g.item() for g in sent], [g.item() for g in got]))
    )
    y.register_hook(lambda g: g * 5)
    y.backward()
    assert events == [("before", [5.0]), ("after", [10.0, None], [5.0])]


def test_a_prehook_may_replace_the_gradients() -> None:
    x = wanting([1.0])
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_prehook(lambda grads: (grads[0] + 1,))
    y.backward()
    assert x.grad.item() == 22.0


def test_a_hook_may_replace_what_is_sent() -> None:
    x, w = wanting([1.0]), wanting([3.0])
    y = x * w
    y.grad_fn.register_hook(lambda sent, got: (sent[0] * 10, sent[1] * 100))
    y.grad_fn.register_hook(lambda sent, got: (sent[0], None))
    y.backward()
    assert (x.grad.item(), w.grad) == (30.0, None)


@pytest.mark.parametrize("place", [0, 1])
def test_a_hook_of_an_operation_finds_each_gradient_at_its_inputs_place(place: int) -> None:
    x, c = wanting([2.0]), double([3.0])
    y = x * c if place == 0 else c * x
    seen = []

    def replace(sent: Any, got: Any) -> Any:
        seen.extend(sent)
        return tuple(None if g is None else g * 10 for g in sent)

    y.grad_fn.register_hook(replace)
    y.backward()
    assert [g and g.item() for g in seen] == ([3.0, None] if place == 0 else [None, 3.0])
    assert x.grad.item() == 30.0


def test_it_sees_gradients_in_the_shape_of_the_inputs() -> None:
    x, w = wanting([2.0]), wanting([[1.0, 2.0, 3.0]])
    seen: list[Any] = []
    y = x * w
    y.grad_fn.register_hook(lambda sent, got: seen.extend(sent))
    y.sum().backward()
    assert [g.tolist() for g in seen] == [[6.0], [[2.0, 2.0, 2.0]]]


def test_a_prehook_may_take_all_gradients_away() -> None:
    x = wanting([1.0])
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (None,))
    (y + 0).backward()
    assert x.grad is None


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (lambda g: g, TypeError, r"(?s)hook returned 'Tensor'.*hook '.*wrong' return a tuple"),
        (lambda g: [g], TypeError, "expected tuple, but hook returned 'list'"),
        (lambda g: 3, TypeError, "expected tuple, but hook returned 'int'"),
        (lambda g: (g, g, g), RuntimeError, r"hook '.*wrong' has returned an incorrect number of values: expected \d"),
        (lambda g: (), RuntimeError, "incorrect number of values"),
        (lambda g: (3.0,), TypeError, "expected Variable, but hook returned 'float'"),
        (lambda g: (double([1.0, 2.0]),), RuntimeError, "changed the size"),
        (lambda g: (g.to(pullback.float32),), RuntimeError, "changed the type"),
    ],
    ids=["tensor", "list", "number", "three", "none", "element", "size", "dtype"],
)
def test_hooks_of_nodes_must_return_what_they_got(when: str, answer: Any, kind: type[Exception], words: str) -> None:
    x = wanting([1.0])
    y = x.exp()

    def wrong(grads: Any, *got: Any) -> Any:
        return answer(grads[0])

    (y.grad_fn.register_prehook if when == "before" else y.grad_fn.register_hook)(wrong)
    with pytest.raises(kind, match=words):
        y.backward()
    assert (x.grad, pullback.is_grad_enabled()) == (None, True)


def test_none_cannot_be_replaced_by_a_gradient() -> None:
    a, _ = Pair.apply(wanting([1.0]))
    a.grad_fn.register_prehook(lambda grads: (grads[0], double([1.0])))
    with pytest.raises(RuntimeError, match="can't replace a None gradient"):
        a.backward()


@pytest.mark.parametrize("register", ["register_prehook", "register_hook"])
def test_hooks_of_nodes_are_removed_while_hooks_run(register: str) -> None:
    y = wanting([1.0]) * 2
    events = []

    def first(*_: Any) -> None:
        events.append("first")
        handle.remove()

    getattr(y.grad_fn, register)(first)
    handle = getattr(y.grad_fn, register)(lambda *_: events.append("second"))
    y.backward(retain_graph=True)
    y.backward()
    assert events == ["first", "second", "first"]


def test_hooks_of_the_accumulator_are_called_around_accumulation() -> None:
    x = wanting([1.0])
    y = x * 2
    events = []
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: events.append(("before", x.grad is None)))
    node.register_hook(lambda sent, got: events.append(("after", sent, x.grad.item())))
    x.register_hook(lambda g: events.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda t: events.append("accumulated"))
    y.backward(retain_graph=True)
    assert events == ["tensor", ("before", True), "accumulated", ("after", (), 2.0)]
    grad(y, x)
    assert events[4:] == ["tensor"]


def test_a_prehook_of_the_accumulator_may_replace_the_gradient() -> None:
    x = wanting([1.0])
    y = x * 2
    g = double([5.0])
    y.grad_fn.next_functions[0][0].register_prehook(lambda grads: (g,))
    y.backward()
    x.grad.mul_(2)
    assert (x.grad.item(), g.item()) == (10.0, 5.0)


def test_a_gradient_is_captured_before_tensor_hooks_where_the_pass_goes_on() -> None:
    x = wanting([1.0])
    y = x * 2
    y.register_hook(lambda g: g * 10)
    by_x, by_y = grad(y * 3, [x, y])
    assert (by_x.item(), by_y.item()) == (60.0, 3.0)


# as PyTorch does ------------------------------------------------------------------------------------------------------


def test_a_backward_that_is_refused_retains_nothing() -> None:
    y = wanting([1.0, 2.0]).exp()
    for call in (lambda: y.backward(inputs=[y]), lambda: y.sum().backward(inputs=[y, double([1.0])])):
        with pytest.raises(RuntimeError):
            call()
    assert not y.retains_grad  # in torch it does, where another of the inputs is refused


def test_several_gradients_and_a_pass_within_that_computes_fewer() -> None:
    # torch leaves out the outer pass: the number it waits for is the inner one's by then (docs/differences.md)
    seen: list[Any] = []
    a, b, z = (leaf(pullback, [1.0]) for _ in range(3))
    pullback.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.append([g is None for g in grads]))

    def hook(g: Any) -> None:
        with pullback.enable_grad():
            (a * 2).backward()

    y = z * b
    y.register_hook(hook)
    (y * a).backward()
    assert seen == [[False, True], [False, False]]
    assert a.grad.tolist() == [3.0]


def test_a_second_derivative_that_does_not_come_to_a_result_calls_no_hook_on_it() -> None:
    x = pullback.tensor([0.5, -1.0, 2.0], dtype=pullback.float64, requires_grad=True)
    y = pullback.nn.functional.gelu(x)
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g) or g * 3)
    (first,) = pullback.autograd.grad(y.sum(), x, create_graph=True)
    first.sum().backward()
    assert [g.tolist() for g in seen] == [[1.0, 1.0, 1.0]]
    density = (-(x.detach() ** 2) / 2).exp() / (2 * np.pi) ** 0.5
    np.testing.assert_allclose(x.grad.numpy(), (3 * density * (2 - x.detach() ** 2)).numpy(), rtol=1e-12)
