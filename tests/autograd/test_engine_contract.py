"""The engine's contract, clause by clause: order, nested passes, what runs, what arrives, errors, callbacks, freeing.

The programs write down what happens; they run in PyTorch, too, and have to come to the same. What the engine computes
is in test_engine.py, hooks are in test_hooks.py.
"""

from __future__ import annotations

import contextvars
import copy
import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import Function
from tests.side_by_side import constant, function, leaf

# passes within passes -------------------------------------------------------------------------------------------------


def test_deep_passes_keep_modes_and_context_and_raise_through() -> None:
    variable = contextvars.ContextVar("variable", default=0)
    seen = []

    class Nested(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, depth: int) -> Any:
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.depth:
                with pullback.enable_grad():
                    Nested.apply(leaf(pullback, [1.0]), ctx.depth - 1).backward()
            else:
                seen.append((variable.get(), pullback.is_anomaly_enabled(), threading.current_thread() is main))
                raise ArithmeticError("at the bottom")
            return g, None

    main = threading.current_thread()
    variable.set(7)
    before = threading.active_count()
    depth = sys.getrecursionlimit() // 4
    with warnings.catch_warnings(action="ignore"), pullback.autograd.detect_anomaly():
        y = Nested.apply(leaf(pullback, [1.0]), depth)
        with pytest.raises(ArithmeticError, match="at the bottom"):
            y.backward()
    assert seen == [(7, True, False)]
    assert threading.active_count() == before
    assert pullback.is_grad_enabled()


def test_passes_that_nest_a_little_stay_in_the_callers_thread() -> None:
    seen = []

    class Nested(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(threading.current_thread())
            if len(seen) < 10:
                with pullback.enable_grad():
                    Nested.apply(leaf(pullback, [1.0])).backward()
            return g

    Nested.apply(leaf(pullback, [1.0])).backward()
    assert set(seen) == {threading.current_thread()}
    assert len(seen) == 10


# gradients in batches -------------------------------------------------------------------------------------------------


def _cube_in_numpy() -> Any:
    @pullback.autograd.function.once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return pullback.from_numpy(3 * ctx.x**2 * g.numpy()), None

    def forward(ctx: Any, x: Any, other: Any) -> Any:
        ctx.x = x.detach().numpy()
        return pullback.from_numpy(ctx.x**3)

    return function(pullback, forward, backward)


def test_a_backward_marked_once_differentiable_is_called_for_each_row_of_a_batch() -> None:
    x = leaf(pullback, [1.0, 2.0])
    y, rows = _cube_in_numpy().apply(x, leaf(pullback, [1.0])), constant(pullback, [[1.0, 0.0], [0.0, 1.0]])
    (found,) = pullback.autograd.grad(y, x, rows, is_grads_batched=True, create_graph=True)
    assert found.tolist() == [[3.0, 0.0], [0.0, 12.0]]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        pullback.autograd.grad((found + x).sum(), x)


def test_a_tensor_that_retains_its_gradient_gets_the_sum_over_a_batch() -> None:
    x = leaf(pullback, [1.0, 2.0])
    y = x * 2
    y.retain_grad()
    pullback.autograd.grad(y**2, x, constant(pullback, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), is_grads_batched=True)
    assert y.grad.tolist() == [8.0, 16.0]


# refusals -------------------------------------------------------------------------------------------------------------


def test_errors_name_the_node_and_what_to_do() -> None:
    x = leaf(pullback, [1.0, 2.0])
    y = function(pullback, lambda ctx, a, b: a * b, lambda ctx, g: (g,)).apply(x, x)
    with pytest.raises(RuntimeError, match=r"FBackward.*expected 2, got 1.*\n.*F.forward \(a, b\)"):
        y.sum().backward()
    z = x.exp()
    z.sum().backward()
    with pytest.raises(RuntimeError, match=r"(?s)a second time.*ExpBackward0.*retain_graph=True"):
        z.sum().backward()


# the warning of a recorded backward -----------------------------------------------------------------------------------


def test_the_warning_points_at_the_callers_line() -> None:
    x = leaf(pullback, [1.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (x**2).backward(create_graph=True)
    x.grad = None
    assert [w.filename for w in caught] == [__file__]


# graphs that die ------------------------------------------------------------------------------------------------------

N = 150_000


class Twice(Function):
    """2 x, which saves its input."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Pair(Function):
    """Two outputs, and its input kept as an attribute."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x = x
        return x * 1, x * 2

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        return a


STEPS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "operations that save": (N, lambda y: y.exp()),
    "operations that save nothing": (N, lambda y: y + 1),
    "two ways": (N, lambda y: y + y),
    "functions": (N, Twice.apply),
    "functions of several outputs": (N, lambda y: Pair.apply(y)[0]),
    "views": (N // 4, lambda y: y.view(1)),
    "operations of several outputs": (N // 4, lambda y: y.sort()[0]),
    "pieces": (N // 4, lambda y: y.unbind()[0].reshape(1)),
    "joins": (N // 4, lambda y: pullback.cat([y, y])[:1]),
    "writes in place": (N // 4, lambda y: y.mul_(1.0)),
}


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """Without the garbage collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def chain(n: int, step: Callable[[Any], Any]) -> tuple[Any, Callable[[], Any]]:
    """The end of a chain of `n` steps, and a weak reference to its first node."""
    y = leaf(pullback, [1.0], "float32") * 1
    first = weakref.ref(y.grad_fn)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        for _ in range(n):
            y = step(y)
    return y, first


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("name", STEPS)
def test_a_deep_graph_dies_by_reference_count(name: str) -> None:
    y, first = chain(*STEPS[name])
    assert first() is not None
    del y
    assert first() is None


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("step", [STEPS["operations that save"][1], Twice.apply], ids=["operations", "functions"])
def test_a_deep_graph_may_die_anywhere(step: Callable[[Any], Any]) -> None:
    y, first = chain(N, step)
    held = [y]
    del y
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert first() is None

    def generator() -> Iterator[Any]:
        y, first = chain(N, step)
        yield first
        y.sum()

    going = generator()
    first = next(going)
    going.close()
    assert first() is None


def test_a_deep_graph_in_a_cycle_is_collected() -> None:
    y, first = chain(N, Twice.apply)
    cycle: list[Any] = [y]
    cycle.append(cycle)
    del y, cycle
    gc.collect()
    assert first() is None


@pytest.mark.usefixtures("_no_collector")
def test_a_wide_graph_dies_by_reference_count() -> None:
    # each node is used by some of the next three
    recent = [leaf(pullback, [1.0], "float32") * 1 for _ in range(3)]
    first = weakref.ref(recent[0].grad_fn)
    for i in range(N // 2):
        recent.append((recent[0] + recent[1]) * 0.5)
        del recent[(i * 7) % 3]
    recent.clear()
    assert first() is None


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("taped", [False, True])
def test_a_deep_graph_that_ran_dies_by_reference_count(taped: bool) -> None:
    x = leaf(pullback, [1.0], "float32")
    y = x * 1
    first = weakref.ref(y.grad_fn)
    for _ in range(N // 10):
        y = y * x
    (g,) = pullback.autograd.grad(y, x, create_graph=taped)
    assert g.item() == N // 10 + 1
    newest = weakref.ref(g.grad_fn) if taped else first
    del y, g
    assert (first(), newest()) == (None, None)


@pytest.mark.usefixtures("_no_collector")
def test_a_backward_in_a_destructor() -> None:
    class Runs:
        def __init__(self, y: Any) -> None:
            self.y = y

        def __del__(self) -> None:
            self.y.backward()

    def backward(ctx: Any, g: Any) -> Any:
        ctx.held = None  # here another pass begins and ends
        return g

    inner, x = leaf(pullback, [1.0]), leaf(pullback, [2.0])
    y = function(pullback, lambda ctx, x: x * 1, backward).apply(x)
    y.grad_fn.held = Runs((inner * 5).sum())
    y.backward()
    del y
    assert (x.grad.item(), inner.grad.item()) == (1.0, 5.0)


# the dtype of a leaf's gradient ---------------------------------------------------------------------------------------


def test_a_deep_copy_with_a_gradient_of_another_dtype_keeps_the_dtype_set_for_it() -> None:
    x = leaf(pullback, [1.0, 2.0], "float32")
    x.grad_dtype = pullback.float64
    assert copy.deepcopy(x).grad_dtype is pullback.float32  # as in torch, which refuses the other:
    (x * 3).sum().backward()
    made = copy.deepcopy(x)
    assert made.grad_dtype is pullback.float64
    (made * 2).sum().backward()
    assert made.grad.dtype is pullback.float64
    assert (made.grad.tolist(), x.grad.tolist()) == ([5.0, 5.0], [3.0, 3.0])


def test_the_dtype_of_a_gradient_counts_for_what_is_computed_from_then_on() -> None:
    x = leaf(pullback, [1.0, 2.0], "float32")
    before = (x * 2).sum()
    x.grad_dtype = pullback.float64
    assert pullback.autograd.grad(before, x)[0].dtype is pullback.float32
    assert pullback.autograd.grad((x * 2).sum(), x)[0].dtype is pullback.float64


# what a leaf was ------------------------------------------------------------------------------------------------------


def inputs_of_which_the_second_requires_no_gradient(lib: Any) -> str:
    x, c = lib.ones(2, requires_grad=True), lib.ones(2)
    with pytest.raises(RuntimeError) as refused:
        (x * c).sum().backward(inputs=[x, c])
    return str(refused.value)


def test_the_input_that_requires_no_gradient_is_named_by_its_number() -> None:
    assert "(inputs[1])" in inputs_of_which_the_second_requires_no_gradient(pullback)


# small differences (docs/differences.md) ------------------------------------------------------------------------------


def test_a_hook_of_a_node_must_be_callable() -> None:
    node = (leaf(pullback, [1.0]) * 2).grad_fn
    for register in (node.register_hook, node.register_prehook):
        with pytest.raises(TypeError, match="a hook must be callable, not int"):
            register(3)


@pytest.mark.parametrize(
    "keeps", [pullback.linalg.eigvalsh, pullback.linalg.svdvals, pullback.special.ndtr], ids=lambda f: f.__name__
)
def test_an_operation_that_keeps_its_argument_refuses_a_write_to_it(keeps: Callable[..., Any]) -> None:
    x = pullback.eye(2, dtype=pullback.float64).requires_grad_()
    y = x * 1
    out = keeps(y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_what_is_computed_of_a_tensor_that_escaped_from_a_transform_is_tracked() -> None:
    escaped = []

    def loss(x: Any) -> Any:
        escaped.append(x * 2)
        return escaped[0].sum()

    pullback.func.grad(loss)(pullback.ones(2))
    assert escaped[0].requires_grad
    assert (escaped[0] * 3).requires_grad


def test_methods_that_a_function_does_not_define_say_so() -> None:
    doubled = function(pullback, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    for cls in (Function, doubled):
        with pytest.raises(NotImplementedError, match="override the vmap staticmethod or set generate_vmap_rule=True"):
            cls.vmap(None, (0,), pullback.ones(1))
        with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
            cls.jvp(None, pullback.ones(1))
        with pytest.raises(NotImplementedError, match="setup_context is not implemented"):
            cls.setup_context(None, (), None)
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Function.forward(None)
    for name in ("backward", "vjp"):
        with pytest.raises(NotImplementedError, match="must implement either the backward or the vjp method"):
            getattr(Function, name)(None, pullback.ones(1))


@pytest.mark.parametrize("wrong", [1, "x", [1.0], np.ones(2)])
def test_save_for_forward_takes_tensors(wrong: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(None, x, wrong)
        return x * 2

    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensors"):
        function(pullback, forward, lambda ctx, g: g).apply(pullback.ones(2))


def test_requires_grad_cannot_be_deleted() -> None:
    x = leaf(pullback, [1.0])
    with pytest.raises(RuntimeError, match="requires_grad must be a bool, and cannot be deleted"):
        del x.requires_grad
    with pullback.autograd.record_origins(), pytest.raises(RuntimeError, match="and cannot be deleted"):
        del x.requires_grad
    assert x.requires_grad


def test_an_empty_list_of_inputs_is_refused_before_anything_else() -> None:
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"):
        (leaf(pullback, [1.0, 2.0]) * 2).backward(inputs=[])
