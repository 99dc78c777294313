"""`pullback.compile`: results and gradients of compiled functions are those of the functions, and what cannot be is
said.

The NumPy backend is used unless a test is about another: it is there on every machine.
"""

from __future__ import annotations

import copy
import functools
import gc
import math
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback
from pullback import Tensor, nn
from pullback.compile.backends import blocks, c, cache
from pullback.compile.plan import plan
from pullback.diagnose.watch import without_collector
from pullback.interpreters.traced import TraceError

numpy_backend = functools.partial(pullback.compile, backend="numpy")


def randn(*shape: int, seed: int = 0, requires_grad: bool = False, dtype: Any = pullback.float64) -> Tensor:
    """Random numbers."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return pullback.tensor(values, dtype=dtype, requires_grad=requires_grad)


def close(a: Any, b: Any, rtol: float = 1e-12) -> None:
    """Assert that two tensors are equal, to rounding."""
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=rtol)


def same_as_eager(fn: Callable[..., Any], *shapes: tuple[int, ...], **options: Any) -> Any:
    """Compile a function of tensors of these shapes, and assert that values and two derivatives are those of eager."""
    compiled = pullback.compile(fn, **{"backend": "numpy", **options})
    for _ in range(2):  # traced, and from the plan
        found = []
        for f in (compiled, fn):
            inputs = [randn(*s, seed=i, requires_grad=True) for i, s in enumerate(shapes)]
            out = f(*inputs)
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            tracked = [o for o in outs if o.requires_grad]
            weights = [randn(*o.shape, seed=50 + i, requires_grad=True) for i, o in enumerate(tracked)]
            grads = pullback.autograd.grad(tracked, inputs, weights, create_graph=True, allow_unused=True)
            again = [g for g in grads if g is not None and g.requires_grad]
            second: Any = []
            if again:
                vectors = [randn(*g.shape, seed=90 + i) for i, g in enumerate(again)]
                second = pullback.autograd.grad(again, [*inputs, *weights], vectors, allow_unused=True)
            found.append((outs, grads, second))
        for ours, theirs in zip(*found, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                if a is None or b is None:
                    rest = a if b is None else b
                    assert rest is None or not rest.detach().numpy().any()
                else:
                    close(a, b)
    return compiled


def swish(x: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return x * pullback.sigmoid(x)


# What it returns ------------------------------------------------------------------------------------------------------


def test_a_compiled_function_is_one_node() -> None:
    x = randn(4, 3, requires_grad=True)
    y = numpy_backend(swish)(x)
    assert y.grad_fn.name() == "SwishBackward"
    assert [node.name() for node, _ in y.grad_fn.next_functions] == ["AccumulateGrad"]
    assert numpy_backend(swish)(x.detach()).grad_fn is None
    with pullback.no_grad():
        assert not numpy_backend(swish)(x).requires_grad


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (swish, [(4, 3)]),
        (swish, [()]),
        (swish, [(0, 3)]),
        (lambda x, y: x * y + x.sum(0) / (y * y + 1), [(4, 3), (3,)]),
        (lambda x, y: (x @ y, (x @ y).relu().sum()), [(4, 3), (3, 5)]),
        (lambda x: pullback.softmax(x, -1), [(4, 3)]),
        (lambda x: (x - x.mean(0)) / (x.var(0) + 1e-3).sqrt(), [(5, 3)]),
        (lambda x, y: pullback.cat([x, y * 2], 0)[1:, ::2].T, [(2, 3), (2, 3)]),
        (lambda x: x.reshape(3, 4).transpose(0, 1).exp().sum(1), [(4, 3)]),
        (lambda x: x.amax(1) + x.logsumexp(1), [(4, 3)]),
        (lambda x: (x[None] * x[:, None, :]).sum((0, 2)).tanh(), [(4, 3)]),
        (lambda x: pullback.where(x > 0, x, x.exp() - 1), [(4, 3)]),
        (lambda x: x.clamp(-0.5, 0.5).cumsum(0), [(4, 3)]),
        (lambda x: nn.functional.layer_norm(x, (3,)), [(4, 3)]),
        (lambda x: pullback.linalg.inv(x @ x.T + pullback.eye(3, dtype=x.dtype)), [(3, 4)]),
        (lambda x, y: x.detach() * y, [(3,), (3,)]),
        (lambda x: x, [(3,)]),
        (lambda x: (x, x * 2, x), [(3,)]),
        (lambda x: (x.reshape(-1), x * 1), [(2, 3)]),
        (lambda x: x.expand(4, 3) * 1.5, [(3,)]),
        (lambda x: x.sum(), [(0,)]),
        (lambda x: pullback.ones(3, dtype=x.dtype) * x.sum(), [(3,)]),
        (lambda x, y: x * y.sum(), [(70, 300), (300,)]),
        (lambda x: (x * 2).sum(0), [(900, 70)]),
        (lambda x: x.sin().sum((0, 2)), [(30, 40, 50)]),
    ],
)
def test_values_and_two_derivatives_are_those_of_the_function(fn: Any, shapes: Any) -> None:
    same_as_eager(fn, *shapes)


@pytest.mark.skipif(not c.available(), reason="no C compiler")
@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (swish, [(40, 300)]),
        (lambda x, w, b: ((x @ w + b).relu().softmax(1) * x.sum(1, keepdim=True)).sum(0), [(8, 3), (3, 5), (5,)]),
        (lambda x: (x - x.mean(0)) / (x.var(0) + 1e-3).sqrt() + x.amax(1, keepdim=True), [(50, 30)]),
        (lambda x: x.sum() * x.T.contiguous().exp(), [(0, 3)]),
    ],
)
def test_the_c_backend(fn: Any, shapes: Any) -> None:
    compiled = same_as_eager(fn, *shapes, backend="c")
    assert ", c, " in compiled.explain()


def test_arguments_and_results_nest() -> None:
    def fn(tree: Any, *, scale: Any) -> Any:
        a, (b,) = tree["a"], tree["b"]
        return {"sum": a + b * scale, "rest": [(a.sum(), "text", 3), None]}

    compiled = numpy_backend(fn)
    a, b, scale = randn(3, requires_grad=True), randn(3, seed=1), randn(seed=2, requires_grad=True)
    found, expected = (f({"a": a, "b": (b,)}, scale=scale) for f in (compiled, fn))
    close(found["sum"], expected["sum"])
    close(found["rest"][0][0], expected["rest"][0][0])
    assert found["rest"][0][1:] == ("text", 3)
    assert found["rest"][1] is None
    found["sum"].sum().backward()
    close(scale.grad, b.sum())


def test_only_what_requires_grad_gets_gradients() -> None:
    x, y = randn(3, requires_grad=True), randn(3, seed=1)
    n = pullback.tensor([1, 2, 3])
    out, count = numpy_backend(lambda x, y, n: (x * y * n, n + 1))(x, y, n)
    assert not count.requires_grad
    assert count.dtype is pullback.int64
    out.sum().backward()
    close(x.grad, y * n)
    assert y.grad is None


def test_some_results_of_several_are_differentiated() -> None:
    x = randn(3, requires_grad=True)
    compiled = numpy_backend(lambda x: (x.exp(), 1 / (x - x)))  # the second has an infinite gradient
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, _ = compiled(x)
    first.sum().backward()
    close(x.grad, x.exp())


def test_a_gradient_that_repeats_one_number() -> None:
    x = randn(6, requires_grad=True)
    compiled = numpy_backend(swish)
    compiled(x).sum().backward()
    expected = pullback.autograd.grad(swish(x).sum(), x)[0]
    close(x.grad, expected)


def test_dtypes() -> None:
    for dtype in (pullback.float16, pullback.float32, pullback.float64, pullback.complex64, pullback.complex128):
        x = randn(4, 3).to(dtype).requires_grad_()
        y = numpy_backend(swish)(x)
        close(y, swish(x), 1e-2 if dtype is pullback.float16 else 1e-5)
        (g,) = pullback.autograd.grad(y, x, pullback.ones_like(y))
        (expected,) = pullback.autograd.grad(swish(x), x, pullback.ones_like(y))
        close(g, expected, 1e-2 if dtype is pullback.float16 else 1e-5)


def test_results_never_lie_in_the_memory_of_arguments() -> None:
    x = randn(2, 3)
    for fn in (lambda x: x.T, lambda x: x[0], lambda x: x.reshape(-1), lambda x: (x * 1).T, lambda x: x.diagonal()):
        y = numpy_backend(fn)(x)
        close(y, fn(x))
        assert not np.shares_memory(y.numpy(), x.numpy())


def test_results_of_one_call_survive_the_next() -> None:
    compiled = numpy_backend(lambda x: x * 2 + 1)
    big = np.arange(100_000, dtype=np.float64)
    first = compiled(pullback.from_numpy(big))
    view = first[10:20]
    kept = first.numpy().copy()
    compiled(pullback.from_numpy(big * 3))
    assert np.array_equal(first.numpy(), kept)
    del first
    compiled(pullback.from_numpy(big * 5))
    assert np.array_equal(view.numpy(), kept[10:20])


# What backward needs --------------------------------------------------------------------------------------------------


def test_a_write_to_what_was_saved_is_an_error() -> None:
    x = randn(3, requires_grad=True)
    y = numpy_backend(swish)(x)
    with pullback.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    x = randn(3, requires_grad=True)
    y = numpy_backend(lambda x: x.exp())(x)  # saves its result
    with pullback.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_write_to_what_was_not_saved_is_none() -> None:
    x = randn(3, requires_grad=True)
    y = numpy_backend(lambda x: x * 2)(x)
    with pullback.no_grad():
        x.add_(1)
    y.sum().backward()
    close(x.grad, pullback.full((3,), 2.0, dtype=pullback.float64))


def test_backward_twice_is_an_error() -> None:
    x = randn(3, requires_grad=True)
    y = numpy_backend(swish)(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_nothing_is_kept_alive() -> None:
    alive = []
    for _ in range(3):
        x = randn(3, requires_grad=True)
        y = numpy_backend(lambda x: x.exp())(x)
        node = pullback.autograd.graph.get_gradient_edge(y).node
        alive.append(weakref.ref(node))
        del node, y, x
    assert [ref() for ref in alive] == [None] * 3


def test_the_first_call_is_not_kept_alive() -> None:
    compiled = numpy_backend(lambda x, w: (x * w).exp().sum())
    x, w = randn(50, requires_grad=True), randn(50)
    refs = [weakref.ref(x), weakref.ref(x._data), weakref.ref(w)]
    compiled(x, w).backward()
    del x, w
    assert [ref() for ref in refs] == [None] * 3


def test_saved_tensors_hooks() -> None:
    packed: list[Any] = []

    def pack(t: Tensor) -> Any:
        packed.append(t)
        return t.numpy().copy()

    x = randn(3, requires_grad=True)
    with pullback.autograd.graph.saved_tensors_hooks(pack, pullback.from_numpy):
        y = numpy_backend(swish)(x)
    assert packed
    (g,) = pullback.autograd.grad(y.sum(), x)
    close(g, pullback.autograd.grad(swish(x).sum(), x)[0])


# What the function reaches besides its arguments ----------------------------------------------------------------------


def test_parameters_of_a_module_are_inputs() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    compiled = numpy_backend(lambda x: net(x).sum())
    x = randn(5, 3)
    for _ in range(3):
        compiled(x).backward()
        found = [p.grad.clone() for p in net.parameters()]
        net.zero_grad()
        net(x).sum().backward()
        for p, g in zip(net.parameters(), found, strict=True):
            close(p.grad, g)
        with pullback.no_grad():
            for p in net.parameters():
                p.sub_(0.1 * p.grad)
        net.zero_grad()
        close(compiled(x), net(x).sum())


def test_a_module_itself() -> None:
    net = nn.Linear(3, 2).double()
    compiled = numpy_backend(net)
    x = randn(5, 3)
    close(compiled(x), net(x))
    net.weight = nn.Parameter(net.weight.detach() * 2)
    close(compiled(x), net(x))
    compiled(x).sum().backward()
    assert net.weight.grad is not None


def test_a_method_and_training_mode() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(randn(3))

        @numpy_backend
        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale if self.training else x + self.scale

    net, x = Net(), randn(3, seed=1)
    close(net(x), x * net.scale)
    net.eval()
    close(net(x), x + net.scale)
    net(x).sum().backward()
    close(net.scale.grad, pullback.ones(3, dtype=pullback.float64))


def test_a_closure_is_never_constant() -> None:
    w, factor = randn(3, requires_grad=True), 2.0

    @numpy_backend
    def fn(x: Tensor) -> Tensor:
        return x * (w * factor)  # w * factor is of no argument

    x = randn(3, seed=1)
    close(fn(x), x * w * 2)
    (g,) = pullback.autograd.grad(fn(x).sum(), w)
    close(g, x * 2)
    factor = 3.0
    close(fn(x), x * w * 3)
    w = randn(3, seed=5)
    close(fn(x), x * w * 3)
    with pullback.no_grad():
        w.mul_(7)
    close(fn(x), x * w * 3)
    tensors = [w]
    listed = numpy_backend(lambda x: x + tensors[0].exp())
    listed(x)
    tensors[0] = randn(3, seed=6)
    close(listed(x), x + tensors[0].exp())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex64", "int8", "bool"])
def test_arrays_within_a_function_may_have_any_dtype(dtype: str) -> None:
    def fn(x: Tensor) -> tuple[Tensor, ...]:
        return x + 1, pullback.arange(2).to(getattr(pullback, dtype)), x.new_zeros(2, dtype=getattr(pullback, dtype))

    compiled, x = numpy_backend(fn), randn(2)
    for _ in range(2):
        for found, expected in zip(compiled(x), fn(x), strict=True):
            assert found.dtype == expected.dtype
            assert found.tolist() == expected.tolist()


def test_parts_of_bfloat16_have_their_gradients_in_a_compiled_function() -> None:
    x = pullback.tensor([[1.0, 0.0], [-2.0, -0.5]], dtype=pullback.bfloat16, requires_grad=True)
    for fn in (lambda t: t.chunk(2, -1)[0], lambda t: t.floor() + t, lambda t: t.unbind(-1)[1]):
        found = numpy_backend(fn)(x)
        assert found.tolist() == fn(x).tolist()
        grads = [pullback.autograd.grad(y.sum(), x)[0].tolist() for y in (found, fn(x))]
        assert grads[0] == grads[1]


def test_a_helper_and_its_globals() -> None:
    space: dict[str, Any] = {"w": randn(3, requires_grad=True)}
    exec("def helper(x):\n    return x * w.exp()\ndef fn(x):\n    return helper(x) + 1\n", space)
    fn = numpy_backend(space["fn"])
    x = randn(3, seed=1)
    close(fn(x), x * space["w"].exp() + 1)
    space["w"] = randn(3, seed=4, requires_grad=True)
    close(fn(x), x * space["w"].exp() + 1)
    fn(x).sum().backward()
    close(space["w"].grad, x * space["w"].exp())


def test_a_tensor_that_is_hidden_is_an_error_not_a_constant() -> None:
    class Holder:  # attributes of a class are not looked at
        w = randn(3, requires_grad=True)

    with pytest.raises(TraceError, match="neither an argument nor found"):
        numpy_backend(lambda x: x * (Holder.w * 2))(randn(3))


def test_one_tensor_twice() -> None:
    x = randn(3, requires_grad=True)
    fn = numpy_backend(lambda a, b: pullback.autograd.grad((a * a * b).sum(), a))
    close(fn(x, x)[0], 3 * x * x)
    close(fn(x, x.detach())[0], 2 * x * x)


@pytest.mark.parametrize("first", ["captured", "another"])
def test_a_captured_tensor_that_is_also_an_argument_is_one(first: str) -> None:
    w, other = randn(3, requires_grad=True), randn(3)
    fn = numpy_backend(lambda x: x * w)
    for x in (w, other, w) if first == "captured" else (other, w, other):
        (g,) = pullback.autograd.grad(fn(x).sum(), w)
        close(g, 2 * w if x is w else other)
    assert programs(fn) == 2


# Signatures -----------------------------------------------------------------------------------------------------------


def programs(fn: Any) -> int:
    """How many programs a function was compiled to."""
    return sum(map(len, fn._entries.values()))


def test_it_is_traced_once_for_a_signature() -> None:
    @numpy_backend
    def fn(x: Tensor, n: int = 2, *, flag: bool = False) -> Tensor:
        return x**n if flag else x * n

    x = randn(3)
    for _ in range(2):
        close(fn(x), x * 2)
        close(fn(x, 3), x * 3)
        close(fn(x, 3, flag=True), x**3)
        fn(randn(4))
        fn(x.float())
        fn(x.clone().requires_grad_())
    assert programs(fn) == 6


def test_static_arguments() -> None:
    @functools.partial(numpy_backend, static=("axes",))
    def fn(x: Tensor, axes: Any) -> Tensor:
        return x.sum(axes)

    x = randn(2, 3)
    close(fn(x, (0, 1)), x.sum())
    close(fn(x, axes=(0,)), x.sum(0))
    fn(x, (0, 1))
    assert programs(fn) == 2


def test_options_with_and_without_parentheses() -> None:
    @pullback.compile
    def one(x: Tensor) -> Tensor:
        """Words."""
        return x + 1

    @pullback.compile(backend="numpy")
    def two(x: Tensor) -> Tensor:
        return x + 2

    x = randn(3)
    close(one(x), x + 1)
    close(two(x), x + 2)
    assert one.__name__ == "one"
    assert one.__doc__ == "Words."
    with pytest.raises(ValueError, match="backend"):
        pullback.compile(swish, backend="cuda")
    with pytest.raises(TypeError, match="a function"):
        pullback.compile(3)  # type: ignore[call-overload]


# What cannot be traced ------------------------------------------------------------------------------------------------


def _if(x: Tensor) -> Tensor:
    if x.sum() > 0:  # the line
        return x
    return -x


@pytest.mark.parametrize(
    ("fn", "found"),
    [
        (_if, r"if x\.sum\(\) > 0:  # the line"),
        (lambda x: x * x.sum().item(), "item"),
        (lambda x: x * float(x[0]), "float"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: pullback.from_numpy(x.detach().numpy() * 2), "numpy"),
        (lambda x: x[x > 0], "shape of the result"),
        (lambda x: pullback.masked_select(x, x > 0), "masked_select"),
        (lambda x: x.nonzero(), "nonzero"),
        (lambda x: pullback.unique(x), "unique"),
        (lambda x: x + pullback.rand(3), "random"),
        (lambda x: nn.functional.dropout(x), "random"),
    ],
)
def test_what_cannot_be_traced_is_an_error_that_names_the_line(fn: Any, found: str) -> None:
    x = randn(3)
    with pytest.raises(TraceError, match=found) as caught:
        numpy_backend(fn)(x)
    assert __file__ in str(caught.value)
    assert "fallback=True" in str(caught.value)
    assert pullback.rand(3).shape == (3,)  # the trace is over


def test_fallback_warns_once() -> None:
    fn = pullback.compile(_if, fallback=True)
    x = randn(3, requires_grad=True)
    with pytest.warns(UserWarning, match="runs as it is written"):
        close(fn(x), _if(x))
    close(fn(-x), _if(-x))
    fn(x).sum().backward()


def test_an_error_of_the_function_is_that_of_eager() -> None:
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        numpy_backend(lambda x: x @ x)(randn(2, 3))
    with pytest.raises(ZeroDivisionError):
        numpy_backend(lambda x: x * (1 // 0))(randn(2, 3))


def test_a_module_keeps_its_attributes() -> None:
    net = nn.Linear(3, 2)
    compiled = numpy_backend(net)
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in net.parameters()]
    with pytest.raises(AttributeError):
        compiled.nothing  # noqa: B018
    assert copy.copy(compiled).traced_function is net


def test_c_without_a_compiler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c, "failure", lambda: cache.NoCompilerError("no cc here"))
    with pytest.raises(RuntimeError, match="no cc here"):
        pullback.compile(swish, backend="c")(randn(3))
    close(pullback.compile(swish)(randn(3)), swish(randn(3)))


def test_a_loop_that_the_compiler_refuses_runs_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise cache.CompilerError("no")

    monkeypatch.setattr(c, "failure", lambda: None)
    monkeypatch.setattr(c, "build", refuse)
    monkeypatch.setattr(plan, "_told", set())
    x = randn(3)
    compiled = pullback.compile(swish)
    with pytest.warns(UserWarning, match=r"run as NumPy, .*: no$"):
        close(compiled(x), swish(x))
    assert "numpy (no)" in compiled.explain()
    with pytest.raises(cache.CompilerError):
        pullback.compile(swish, backend="c")(x)


def test_an_argument_that_is_neither_tensor_nor_hashable() -> None:
    with pytest.raises(TraceError, match="hashed"):
        numpy_backend(lambda x, a: x)(randn(3), {1.0})
    with pytest.warns(UserWarning, match="hashed"):
        close(numpy_backend(lambda x, a: x * 2, fallback=True)(randn(3), {1.0}), randn(3) * 2)


def test_a_number_that_changes_from_call_to_call_is_warned_of_once() -> None:
    compiled = numpy_backend(lambda x, n: x + n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(70):
            close(compiled(randn(3), n), randn(3) + n)
    assert ["0-d tensor" in str(w.message) for w in caught] == [True]


# Writes in place ------------------------------------------------------------------------------------------------------


def test_writes_to_what_the_function_made() -> None:
    def fn(x: Tensor) -> Tensor:
        total = pullback.zeros(4, 3, dtype=x.dtype)
        total += x
        total[1:3] *= 2
        row = total[0]
        row.add_(x[1])
        total[:, 1] = x[:, 0]
        y = x * 3
        y.clamp_(min=0)
        y[0].zero_()
        return total + y

    same_as_eager(fn, (4, 3))


def test_writes_to_arguments() -> None:
    def fn(x: Tensor, total: Tensor) -> Tensor:
        total.add_(x.sum(0))
        return x * total

    found, expected = randn(3), randn(3)
    compiled, x = numpy_backend(fn), randn(4, 3, seed=1)
    for _ in range(3):
        close(compiled(x, found), fn(x, expected))
        close(found, expected)
    assert found._version == 3


# Nesting --------------------------------------------------------------------------------------------------------------


def test_transforms_within() -> None:
    def fn(x: Tensor, w: Tensor) -> Any:
        def loss(w: Tensor, row: Tensor) -> Tensor:
            return (row * w).tanh().sum()

        each = pullback.vmap(pullback.func.grad(loss), (None, 0))(w, x)
        _, slope = pullback.func.jvp(lambda w: loss(w, x[0]), (w,), (x[1],))
        return each, slope, pullback.func.hessian(loss)(w, x[0])

    same_as_eager(fn, (4, 3), (3,))


def test_transforms_outside() -> None:
    compiled = numpy_backend(swish)
    x = randn(4, 3)
    close(pullback.vmap(compiled)(x), swish(x))
    close(pullback.func.grad(lambda x: compiled(x).sum())(x), pullback.func.grad(lambda x: swish(x).sum())(x))
    for transform in (pullback.func.jacrev, pullback.func.jacfwd, pullback.func.hessian):
        close(transform(compiled)(x[0]), transform(swish)(x[0]))


def test_a_training_step_is_compiled_whole() -> None:
    def step(params: Any, x: Tensor, y: Tensor) -> Any:
        params = [p.detach().requires_grad_() for p in params]
        hidden = (x @ params[0] + params[1]).relu()
        loss = ((hidden @ params[2] - y) ** 2).mean()
        grads = pullback.autograd.grad(loss, params)
        with pullback.no_grad():
            return [p - 0.1 * g for p, g in zip(params, grads, strict=True)], loss.detach()

    compiled = numpy_backend(step)
    ours = theirs = [randn(3, 5), randn(5, seed=1), randn(5, 1, seed=2)]
    x, y = randn(8, 3, seed=3), randn(8, 1, seed=4)
    losses = []
    for _ in range(5):
        ours, a = compiled(ours, x, y)
        theirs, b = step(theirs, x, y)
        close(a, b)
        losses.append(a.item())
    assert losses[-1] < losses[0]
    for p, q in zip(ours, theirs, strict=True):
        close(p, q)
        assert not p.requires_grad


# Products of matrices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (lambda x, y: (x @ y).T * 2, [(4, 3), (3, 5)]),
        (lambda x, y: (x @ y).T, [(4, 3), (3, 5)]),
        (lambda x, y: (x @ y, (x @ y).T * 2), [(4, 3), (3, 5)]),
        (lambda x, y: ((x @ y).T, (x @ y).T), [(4, 3), (3, 5)]),
        (lambda x, y: (x @ y).T @ x + (x @ y).T.exp().sum(0)[0], [(4, 3), (3, 5)]),
        (lambda x, y: (x @ y).T.reshape(-1) * 2, [(4, 3), (3, 5)]),
        (lambda x, y: (x @ y).T.exp()[1:] + (x @ y).reshape(-1)[:4], [(4, 3), (3, 5)]),
        (lambda x, y: (x @ y).transpose(-1, -2) * 3, [(2, 4, 3), (2, 3, 5)]),
        (lambda x, y: (x @ y).permute(1, 0, 2) * 3, [(2, 4, 3), (2, 3, 5)]),
        (lambda x, y: (x @ y).permute(2, 1, 0) * 3, [(2, 4, 3), (2, 3, 5)]),
        (lambda x, y: (x @ y).permute(1, 2, 0) * 3, [(2, 4, 3), (2, 3, 5)]),
        (lambda x, y: (x @ y).permute(0, 2, 1, 3).reshape(2, 4, -1).tanh(), [(2, 3, 4, 3), (2, 3, 3, 5)]),
        (lambda x, y: ((x @ y).T[None] * 2 - (x @ y).T[:, None]).sum(0), [(4, 3), (3, 4)]),
        (lambda x, y: (x @ y).T.expand(2, 5, 4) * 2, [(4, 3), (3, 5)]),
        (lambda x, y: (x.T @ (x @ y).relu()).T.sum(0), [(4, 3), (3, 5)]),
        (lambda x, y: (x @ y) * 2, [(2, 4, 3), (3, 5)]),
        (lambda x, y: (x @ y) * 2, [(2, 2, 4, 3), (3, 5)]),
        (lambda x, y: x @ y + 1, [(4, 1), (1, 5)]),
        (lambda x, y: x @ y + 1, [(3, 4, 1), (1, 5)]),
        (lambda x, y: x @ y + 1, [(3, 4, 1), (3, 1, 5)]),
        (lambda x, y: x @ y, [(1, 1), (1, 1)]),
        (lambda x, y: x @ y, [(2, 0, 3), (3, 5)]),
        (lambda x, y: x @ y, [(2, 4, 0), (0, 5)]),
        (lambda x, y: x @ y, [(2, 4, 3), (3,)]),
        (lambda x, y: x @ y + 1, [(1,), (1, 5)]),
    ],
)
def test_products_however_they_lie_in_memory(fn: Any, shapes: Any) -> None:
    same_as_eager(fn, *shapes)


def test_the_gradient_of_a_transposed_weight_is_written_as_it_lies() -> None:
    """It is the transposed of a product: no other memory, and no copy of it."""
    w = randn(5, 3, requires_grad=True)
    compiled = numpy_backend(lambda x: (x @ w.T).exp().sum())
    compiled(randn(4, 3)).backward()
    gradient = w.grad.numpy()
    assert gradient.flags.c_contiguous
    assert gradient.base is None
    (entry,) = next(iter(compiled._entries.values()))
    (plan,) = entry.backward_plans()
    assert ".transpose((1, 0))" in plan.source
    assert "owned" not in plan.source
    assert "contiguous(v" not in plan.source


def test_a_product_of_many_matrices_by_one_is_one_product() -> None:
    w = randn(3, 5, requires_grad=True)
    compiled = numpy_backend(lambda x: (x @ w).exp().sum())
    x = randn(2, 7, 4, 3, seed=1)
    compiled(x).backward()
    assert all("float64[56, 5]" in line or "float64[3, 5]" in line for line in _calls_of("matmul", compiled))
    close(w.grad, pullback.autograd.grad((x @ w).exp().sum(), w)[0])


def test_a_product_of_a_column_and_a_row_joins_a_loop() -> None:
    compiled = numpy_backend(lambda x, y: (x @ y).exp())
    compiled(randn(4, 1), randn(1, 5))
    assert not _calls_of("matmul", compiled)


def _calls_of(name: str, compiled: Any) -> list[str]:
    return [line for line in compiled.explain().splitlines() if f"= {name}(" in line]


def test_of_two_values_the_one_that_the_other_is_made_of_is_kept() -> None:
    """The derivative of maximum needs y and y * 0."""
    w, v = randn(5, 5, seed=2), randn(5, 5, seed=3)

    def fn(x: Tensor) -> Tensor:
        y = x @ w + x @ v
        return pullback.maximum(y, y * 0) @ w

    (entry,) = next(iter(same_as_eager(fn, (4, 5))._entries.values()))
    assert [(v.fn, v.shape) for v in entry.kept] == [("add", (4, 5))]


def test_one_compiled_function_in_another() -> None:
    w = randn(3, requires_grad=True)
    inner = numpy_backend(lambda x: x * w)
    outer = numpy_backend(lambda x: inner(x).exp() + inner(x))
    x = randn(3, seed=1)
    close(outer(x), (x * w).exp() + x * w)
    outer(x).sum().backward()
    close(w.grad, x * (x * w).exp() + x)


def test_functions_are_traced_with_their_own_backward() -> None:
    class Straight(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.round()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 2

    same_as_eager(lambda x: Straight.apply(x * 3) * x, (4, 3))


def test_the_methods_of_a_function() -> None:
    class Swish(pullback.autograd.Function):
        @staticmethod
        @numpy_backend
        def kernel(x: Tensor) -> Tensor:
            return x / (1 + (-x).exp())

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return Swish.kernel(x)

        @staticmethod
        @numpy_backend
        def slope(x: Tensor, g: Tensor) -> Tensor:
            s = pullback.sigmoid(x)
            return g * s * (1 + x * (1 - s))

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return Swish.slope(*ctx.saved_tensors, g)

    x = randn(4, 3, requires_grad=True)
    y = Swish.apply(x)
    close(y, swish(x))
    (g,) = pullback.autograd.grad(y.sum(), x, create_graph=True)
    close(g, pullback.autograd.grad(swish(x).sum(), x)[0])
    assert pullback.autograd.gradcheck(Swish.apply, x)
    assert pullback.autograd.gradgradcheck(Swish.apply, x)


def test_forward_and_backward_of_a_function() -> None:
    class Swish(pullback.autograd.Function):
        @staticmethod
        @numpy_backend
        def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
            s = pullback.sigmoid(x * scale)
            ctx.save_for_backward(x, s)
            ctx.scale = scale
            return x * s

        @staticmethod
        @numpy_backend
        def backward(ctx: Any, g: Tensor) -> Any:
            x, s = ctx.saved_tensors
            return g * s * (1 + ctx.scale * x * (1 - s)), None

    x = randn(4, 3, requires_grad=True)
    for _ in range(3):
        y = Swish.apply(x, 2.0)
        close(y, x * pullback.sigmoid(x * 2))
        assert y.grad_fn.scale == 2.0
        assert y.grad_fn.saved_tensors[0] is x
        (g,) = pullback.autograd.grad(y.sum(), x)
        close(g, pullback.autograd.grad((x * pullback.sigmoid(x * 2)).sum(), x)[0])
    assert [programs(f._on_tensors) for f in (Swish.forward, Swish.backward)] == [1, 1]
    assert pullback.autograd.gradcheck(lambda x: Swish.apply(x, 2.0), x)


def test_what_a_function_asks_of_its_context() -> None:
    class Product(pullback.autograd.Function):
        @staticmethod
        @numpy_backend
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Any:
            above = (x > 0).to(x.dtype)
            ctx.mark_non_differentiable(above)
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x, w)
            ctx.sizes, ctx.parts = [2, 3], {"double": w * 2}
            return x @ w, above

        @staticmethod
        @numpy_backend
        def backward(ctx: Any, g: Any, of_above: Any) -> Any:
            x, _ = ctx.saved_tensors
            assert of_above is None
            if g is None:
                return None, None
            first, second = ctx.needs_input_grad
            half = ctx.sizes[0] / 4
            return (g @ ctx.parts["double"].T * half if first else None), (x.T @ g if second else None)

    x, w = randn(4, 3, requires_grad=True), randn(3, 2, seed=1, requires_grad=True)
    out, above = Product.apply(x, w)
    assert (out.requires_grad, above.requires_grad) == (True, False)
    assert pullback.autograd.gradcheck(lambda x, w: Product.apply(x, w)[0], (x, w))
    assert pullback.autograd.gradcheck(lambda x: Product.apply(x, w.detach())[0], x)


def test_a_function_of_three_parts() -> None:
    class Power(pullback.autograd.Function):
        generate_vmap_rule = True

        @numpy_backend
        @staticmethod
        def forward(x: Tensor, n: int) -> Tensor:
            return x**n

        @numpy_backend
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, n = inputs
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            ctx.n = n

        @numpy_backend
        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

        @numpy_backend
        @staticmethod
        def jvp(ctx: Any, tangent: Tensor, _: Any) -> Tensor:
            (x,) = ctx.saved_tensors
            return tangent * ctx.n * x ** (ctx.n - 1)

    x = randn(4, 3, requires_grad=True)
    assert pullback.autograd.gradcheck(lambda x: Power.apply(x, 3), x)
    assert pullback.autograd.gradgradcheck(lambda x: Power.apply(x, 3), x)
    each = pullback.vmap(pullback.func.grad(lambda x: Power.apply(x, 3).sum()))
    close(each(x.detach()), 3 * x.detach() ** 2)
    _, tangent = pullback.func.jvp(lambda x: Power.apply(x, 3), (x.detach(),), (x.detach(),))
    close(tangent, 3 * x.detach() ** 3)


def test_a_function_that_writes_to_its_argument() -> None:
    class Tripled(pullback.autograd.Function):
        @staticmethod
        @numpy_backend
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.mark_dirty(x)
            x.mul_(3)
            return x

        @staticmethod
        @numpy_backend
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 3

    x = randn(4, requires_grad=True)
    for _ in range(2):
        a = x * 1
        b = Tripled.apply(a)
        assert b is a
        close(b, 3 * x)
        close(pullback.autograd.grad(b.sum(), x)[0], pullback.full((4,), 3.0, dtype=x.dtype))


def test_a_parameter_may_be_written_to_where_nothing_is_recorded() -> None:
    w = randn(3, requires_grad=True)
    before = w.detach().clone()

    @numpy_backend
    def update(g: Tensor) -> None:
        w.sub_(0.5 * g)

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        update(pullback.ones(3, dtype=w.dtype))
    with pullback.no_grad():
        for _ in range(2):
            update(pullback.ones(3, dtype=w.dtype))
    close(w.detach(), before - 1)
    assert w.is_leaf
    assert w._version == 2


def test_results_that_are_equal_have_gradients_of_their_own() -> None:
    x, y = randn(3, requires_grad=True), randn(3, seed=1, requires_grad=True)
    with pullback.no_grad():
        y[0] = x[0]
    fn = lambda x, y: (pullback.clamp_min(x, y), pullback.maximum(x, y))  # noqa: E731
    for ours, theirs in zip(numpy_backend(fn)(x, y), fn(x, y), strict=True):
        found, expected = (pullback.autograd.grad(t.sum(), (x, y), retain_graph=True) for t in (ours, theirs))
        for a, b in zip(found, expected, strict=True):
            close(a, b)
    a, b, c, d = numpy_backend(lambda x: (x.detach(), x * 1, x, x * 2))(x)
    assert [t.requires_grad for t in (a, b, c, d)] == [False, True, True, True]
    assert c is x
    assert not np.shares_memory(a.numpy(), b.detach().numpy())


def test_recording_is_part_of_the_signature() -> None:
    with pullback.no_grad():
        fn = numpy_backend(lambda x: x * 2 if not pullback.is_grad_enabled() else x * 3)
        close(fn(randn(3)), randn(3) * 2)
    close(fn(randn(3)), randn(3) * 3)


def test_gradcheck() -> None:
    x, w = randn(3, 2, requires_grad=True), randn(2, seed=1, requires_grad=True)
    compiled = numpy_backend(lambda x, w: (x.sin() * w, (x * w).sum(0).exp()))
    assert pullback.autograd.gradcheck(compiled, (x, w))
    assert pullback.autograd.gradgradcheck(compiled, (x, w))


def test_an_input_that_depends_on_another() -> None:
    """The second derivatives are partial ones: what is outside of the function is not differentiated twice."""
    found = []
    for fn in (numpy_backend(lambda x, y: x * x * y), lambda x, y: x * x * y):
        x = randn(3, requires_grad=True)
        (g,) = pullback.autograd.grad(fn(x, x.exp()).sum(), x, create_graph=True)
        (h,) = pullback.autograd.grad(g.sum(), x, create_graph=True)
        found.append((g, h, pullback.autograd.grad(h.sum(), x)[0]))
    for a, b in zip(*found, strict=True):
        close(a, b)


# Threads --------------------------------------------------------------------------------------------------------------


def test_calls_from_several_threads() -> None:
    compiled = numpy_backend(lambda x: (x * 2 + 1).exp().sum(0))
    inputs = [randn(300, 400, seed=i, requires_grad=True) for i in range(4)]
    expected = [(x * 2 + 1).exp().sum(0) for x in inputs]
    problems: list[Any] = []

    def work(i: int) -> None:
        try:
            for _ in range(5):
                y = compiled(inputs[i])
                close(y, expected[i])
                (g,) = pullback.autograd.grad(y.sum(), inputs[i])
                close(g, 2 * (inputs[i] * 2 + 1).exp())
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


def test_the_collector_rests_until_the_last_thread_has_left() -> None:
    """What watches the collector, as hypothesis does, would be taken for the traced function's code."""
    runs: list[bool] = []

    def work() -> None:
        for _ in range(100):
            with without_collector():
                time.sleep(1e-5)
                runs.append(gc.isenabled())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(runs) == 400
    assert not any(runs)
    assert gc.isenabled()


def test_a_value_taken_negative_is_not_computed_for_a_sum() -> None:
    edges = np.array([0.0, -0.0, 1.0, -3.5, np.inf, -np.inf, 1e308, 5e-324])
    a, b = (pullback.from_numpy(part.reshape(-1)) for part in np.meshgrid(edges, edges))

    def f(a: Any, b: Any) -> Any:
        return a + (-b), (-a) + b, a - (-b), (-a) - b, (-a) + (-b)

    whole = pullback.tensor([[1, 0], [2, 255]], dtype=pullback.uint8)
    for pair in ((a, b), (a.float(), b.float()), (a.reshape(8, 8), b[:8]), (whole, whole.flip(0)), (whole, a[:2])):
        compiled = numpy_backend(f)
        for found, eager in zip(compiled(*pair), f(*pair), strict=True):
            known = ~np.isnan(eager.numpy()) if eager.is_floating_point() else ...
            assert found.numpy()[known].tobytes() == eager.numpy()[known].tobytes()
    steps = compiled.explain()
    assert steps.count("negative") == 1  # the last two results are one


@pytest.mark.parametrize("backend", ["numpy", None])
def test_a_program_rolls_as_numpy_does(backend: Any) -> None:
    for shape, by, axes in (
        *(((5,), s, 0) for s in (0, 1, -2, 5, 12)),
        *(((3, 4), s, a) for s in (1, -3, 4) for a in (0, -1)),
        *(((2, 3, 2), by, axes) for by, axes in ((3, 1), ((1, 1), (0, 2)), (1, None), ((2, 1), (1, 1)))),
        *(((0, 3), 1, axis) for axis in (0, 1)),
    ):
        x = randn(*shape)
        for turned in (x, x.transpose(0, -1)):
            eager = np.roll(turned.numpy(), by, axes)
            for f in (pullback.roll, pullback.compile(pullback.roll, backend=backend)):
                found = f(turned, by, axes)
                np.testing.assert_array_equal(found.numpy(), eager)
                assert found.is_contiguous()


def test_the_number_of_threads() -> None:
    before = pullback.get_num_threads()
    x = randn(400, 500, requires_grad=True)
    results = []
    try:
        for n in (1, 2, 3):
            pullback.set_num_threads(n)
            y = numpy_backend(lambda x: (swish(x).sum(0), swish(x).sum(1), swish(x).amax()))(x)
            results.append([t.detach() for t in y])
        with pytest.raises(RuntimeError, match="positive"):
            pullback.set_num_threads(0)
    finally:
        pullback.set_num_threads(before)
    for found in results:
        for a, b in zip(found, (swish(x).sum(0), swish(x).sum(1), swish(x).amax()), strict=True):
            close(a, b)


# The plan -------------------------------------------------------------------------------------------------------------


def test_explain() -> None:
    def fn(x: Tensor, w: Tensor) -> Tensor:
        return pullback.lgamma((x @ w).tanh() * 2 + 3).sum()

    compiled = numpy_backend(fn)
    assert "nothing has been compiled" in compiled.explain()
    compiled(randn(4, 3, requires_grad=True), randn(3, 5))
    text = compiled.explain()
    for part in ("forward:", "backward:", "matmul", "tanh", "saved for backward", "computed again", "read and written"):
        assert part in text
    assert "not fused: lgamma()" in text


def test_elementwise_chains_are_one_loop_and_nothing_is_computed_twice() -> None:
    compiled = numpy_backend(lambda x, y: (x.exp() * y + x.exp()).sum(1) + 0 * pullback.ones(4).double())
    compiled(randn(4, 3), randn(3))
    plan = next(iter(compiled._entries.values()))[0].forward
    loops = [stage for stage in plan.stages if hasattr(stage, "loop")]
    assert len(loops) == 2
    assert [step.name for step in loops[0].loop.steps].count("exp") == 1
    assert loops[0].loop.outputs[0].reduce == "add"


@pytest.mark.parametrize(("n", "saved"), [(3, 1), (5, 1), (6, 2), (9, 5)])
def test_what_is_cheap_is_computed_again_and_the_rest_is_saved(n: int, saved: int) -> None:
    def chain(x: Tensor) -> Tensor:
        for _ in range(n):
            x = x.sin()
        return x

    compiled, x = numpy_backend(chain), randn(5, requires_grad=True)
    y = compiled(x)
    (text,) = re.findall(r"saved for backward: (.*)", compiled.explain())
    assert len(text.split(", ")) == saved  # the argument, and what more than four sines have made of it
    close(pullback.autograd.grad(y.sum(), x)[0], pullback.autograd.grad(chain(x).sum(), x)[0])


# Random programs ------------------------------------------------------------------------------------------------------

_STEPS: dict[str, Callable[[list[Tensor], int, int], Tensor]] = {
    "add": lambda v, i, j: v[i] + v[j],
    "mul": lambda v, i, j: v[i] * v[j],
    "sub": lambda v, i, j: v[i] - 2 * v[j],
    "div": lambda v, i, j: v[i] / (v[j] * v[j] + 1),
    "tanh": lambda v, i, j: v[i].tanh(),
    "sin": lambda v, i, j: v[i].sin(),
    "relu": lambda v, i, j: v[i].relu(),
    "sigmoid": lambda v, i, j: v[i].sigmoid(),
    "where": lambda v, i, j: pullback.where(v[i] > v[j], v[i], v[j] * 0.5),
    "maximum": lambda v, i, j: pullback.maximum(v[i], v[j]),
    "clamp": lambda v, i, j: v[i].clamp(-0.7, 0.9),
    "mean": lambda v, i, j: v[i] - v[i].mean(0),
    "sum": lambda v, i, j: v[i].sum(1, keepdim=True) * v[j] * 0.3,
    "softmax": lambda v, i, j: pullback.softmax(v[i], j % 2),
    "amax": lambda v, i, j: v[i] - v[i].amax(j % 2, keepdim=True),
    "matmul": lambda v, i, j: (v[i] @ v[j].T) * 0.2,
    "transpose": lambda v, i, j: v[i].T * v[j],
    "reshape": lambda v, i, j: v[i].reshape(-1).flip(0).reshape(3, 3) + v[j],
    "index": lambda v, i, j: v[i][[2, 0, 1]] + v[j][:, :1],
    "cat": lambda v, i, j: pullback.cat([v[i][:1], v[j][1:]], 0),
    "detach": lambda v, i, j: v[i] * v[j].detach(),
    "write": lambda v, i, j: v[i].clone().index_copy_(0, pullback.tensor([1]), v[j][:1]),
    "set": lambda v, i, j: _set(v[i] * 1, v[j]),
}


def _set(x: Tensor, y: Tensor) -> Tensor:
    row = x[1]
    x[0] = y[2] * 2
    row.mul_(3)
    return x


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(_STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=10),
    st.integers(1, 3),
)
def test_random_programs(steps: Any, results: int) -> None:
    def program(*inputs: Tensor) -> Any:
        values = list(inputs)
        for name, i, j in steps:
            values.append(_STEPS[name](values, i % len(values), j % len(values)))
        return tuple(values[-results:])

    same_as_eager(program, (3, 3), (3, 3))


@pytest.mark.parametrize("kind", [float, complex, np.float32, np.float64, np.complex64])
def test_a_nan_is_one_signature_and_the_sign_of_a_zero_another(kind: type) -> None:
    compiled = numpy_backend(lambda x, c: x * c)
    x = pullback.tensor([1.0, -2.0])
    for _ in range(5):
        assert compiled(x, kind("nan")).isnan().all()
    assert len(compiled._entries) == 1
    plus, minus = compiled(x, kind(0.0)), compiled(x, -kind(0.0))
    assert len(compiled._entries) == 3
    np.testing.assert_array_equal(np.signbit(plus.real.numpy()), np.signbit((x * kind(0.0)).real.numpy()))
    np.testing.assert_array_equal(np.signbit(minus.real.numpy()), np.signbit((x * -kind(0.0)).real.numpy()))


def test_a_static_nan_is_one_signature() -> None:
    compiled = pullback.compile(lambda x, c: x * c[0], backend="numpy", static=("c",))
    for _ in range(5):
        assert compiled(pullback.ones(2), c=(1.5,)).tolist() == [1.5, 1.5]
    assert len(compiled._entries) == 1
    compiled = pullback.compile(lambda x, c: x * c, backend="numpy", static=("c",))
    for _ in range(5):
        assert compiled(pullback.ones(2), c=float("nan")).isnan().all()
    assert len(compiled._entries) == 1


def test_programs_are_kept_for_a_bounded_number_of_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["pullback.compile.compiled"], "_MOST", 5)
    compiled = numpy_backend(lambda x, n: x * n)
    for n in range(12):
        assert compiled(pullback.ones(2), n).tolist() == [n, n]
    assert len(compiled._entries) == 5
    assert compiled(pullback.ones(2), 0).tolist() == [0, 0]
    assert len(compiled._entries) == 5


# Digits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [None, "numpy", "c"])
@pytest.mark.parametrize("whole", [pullback.int8, pullback.int64])
@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda x, n: n**x, math.sqrt(3) * math.log(3)),
        (pullback.xlogy, math.log(3)),
        (pullback.special.xlog1py, math.log(4)),
    ],
    ids=["power", "xlogy", "xlog1py"],
)
def test_integers_beside_double_precision_keep_its_digits(fn: Any, expected: float, whole: Any, backend: Any) -> None:
    if backend == "c" and not c.available():
        pytest.skip("no C compiler")
    fast = fn if backend is None else pullback.compile(lambda x, n: fn(x, n), backend=backend)
    for form in ([3], 3):
        x = pullback.tensor([0.5], dtype=pullback.float64, requires_grad=True)
        n = pullback.tensor(form, dtype=whole)
        for create_graph in (False, True):
            (g,) = pullback.autograd.grad(fast(x, n).sum(), x, create_graph=create_graph)
            assert g.item() == pytest.approx(expected, rel=1e-14)
        assert pullback.func.jvp(lambda x: fn(x, n), (x.detach(),), (pullback.ones_like(x),))[1].item() == (  # noqa: B023
            pytest.approx(expected, rel=1e-14)
        )


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize(
    "fn",
    [
        *(lambda x: x - 1.2, lambda x: 1.2 - x, lambda x: x / 1.2, lambda x: x % 1.2, lambda x: (x - 1.2) * 1000),
        *(lambda x: pullback.fmod(x, 1.2), lambda x: x + 1e-8, lambda x: np.subtract(x, 1.2), lambda x: x > 1.2),
        *(lambda x: x.clamp(1.2), lambda x: x.remainder(0.7), lambda x: pullback.heaviside(x - 1.2, x)),
    ],
)
def test_a_number_beside_half_precision_keeps_its_digits(fn: Any, backend: str) -> None:
    if backend == "c" and not c.available():
        pytest.skip("no C compiler")
    x = pullback.tensor([1.2, 0.3, 2.5], dtype=pullback.float16)
    found = pullback.compile(lambda x: fn(x), backend=backend)(x)
    assert found.dtype == fn(x).dtype
    assert found.tolist() == fn(x).tolist()


# -- loops that are written out ----------------------------------------------------------------------------------------


_SMALL: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "steps": (lambda x, y: pullback.sin(x) * y + 1 / (1 + y * y), [(3, 4), (3, 4)]),
    "broadcast": (lambda x, y: pullback.exp(x) * y, [(3, 1), (4,)]),
    "sum": (lambda x, y: (x * y).sum(), [(3, 4), (4,)]),
    "sum of an axis": (lambda x, y: pullback.tanh(x * y).sum(0), [(3, 4), (3, 4)]),
    "sum of the last axis": (lambda x, y: (x * y).sum(-1, keepdim=True) * x, [(3, 4), (4,)]),
    "largest": (lambda x, y: (x - y).amax(1) + (x * y).amin(1), [(3, 4), (3, 4)]),
    "two results": (lambda x, y: (x * y, (x + y).sum(0)), [(3, 4), (3, 4)]),
    "a choice": (lambda x, y: pullback.where(x > y, x, -y), [(3, 4), (3, 1)]),
    "a conversion": (lambda x, y: (x * 2).to(pullback.float64) + (y > 0), [(3, 4), (3, 4)]),
    "numbers": (lambda x, y: x * y + 2, [(), ()]),
    "numbers and a vector": (lambda x, y: (x * y + 2).exp(), [(), (5,)]),
    "none": (lambda x, y: (x * y).sum(0), [(0, 4), (4,)]),
    "integers": (lambda x, y: (x.to(pullback.int64) * 3 + 1, y), [(3, 4), ()]),
    "a constant result": (lambda x, y: (x * 0 + 1, pullback.ones(3) * y), [(2,), ()]),
}


@pytest.mark.parametrize("name", _SMALL)
def test_a_small_loop_that_is_written_out_gives_the_bits_of_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, shapes = _SMALL[name]
    rng = np.random.default_rng(3)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = []
    for small in (blocks.SMALL, 0):
        monkeypatch.setattr(blocks, "SMALL", small)
        inputs = [pullback.tensor(a, requires_grad=True) for a in given]
        outs = pullback.compile(f, backend="numpy")(*inputs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        total = sum((o.sum() for o in outs if o.requires_grad), pullback.zeros(()))
        found.append([*outs, *pullback.autograd.grad(total, inputs, allow_unused=True)])
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())
