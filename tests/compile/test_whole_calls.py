"""Functions whose forward works with values, in compiled functions: a program calls them as they are."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import Function, grad

from .backends import BACKENDS


class WithCtx(Function):
    """A sine whose forward is NumPy's, and keeps an array on its ctx."""

    @staticmethod
    def forward(ctx: Any, x: Any, k: float) -> Any:
        a = x.detach().numpy()
        ctx.slope = k * np.cos(k * a)
        return pullback.from_numpy(np.sin(k * a))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * pullback.from_numpy(ctx.slope), None


class Separate(Function):
    """The same, in the form whose forward has no ctx."""

    @staticmethod
    def forward(x: Any, k: float) -> Any:
        return pullback.from_numpy(np.sin(k * x.detach().numpy()))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.k = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.k * pullback.cos(ctx.k * x), None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * ctx.k * pullback.cos(ctx.k * x)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, k: float) -> Any:
        return Separate.apply(x, k), in_dims[0]


def leaf(*values: float) -> Any:
    return pullback.tensor(values, dtype=pullback.float64, requires_grad=True)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("kind", [WithCtx, Separate])
def test_values_and_gradients_are_those_of_eager_mode(kind: Any) -> None:
    def f(x: Any) -> Any:
        return (kind.apply(x * 2, 3.0) * x).sum()

    compiled = pullback.compile(f, backend="numpy")
    for x in (leaf(1.0, 2.0, 3.0), leaf(0.5, -1.0, 4.0)):
        same(compiled(x), f(x))
        same(grad(compiled(x), x)[0], grad(f(x), x)[0])
    assert len(compiled._entries) == 1
    assert f"{kind.__name__}() is called as it is" in compiled.explain()


def test_second_derivatives() -> None:
    def f(x: Any) -> Any:
        return (Separate.apply(x * 2, 3.0) * x).sum()

    x, compiled = leaf(1.0, 2.0), pullback.compile(f, backend="numpy")
    (slope,) = grad(compiled(x), x, create_graph=True)
    (expected,) = grad(f(x), x, create_graph=True)
    same(grad(slope.sum(), x)[0], grad(expected.sum(), x)[0])


@pytest.mark.parametrize("transform", [pullback.func.grad, pullback.func.hessian, pullback.func.jacfwd])
def test_transforms_in_and_around_a_compiled_function(transform: Any) -> None:
    def f(x: Any) -> Any:
        return (Separate.apply(x * 2, 3.0) * x).sum()

    x = leaf(1.0, 2.0).detach()
    same(pullback.compile(transform(f), backend="numpy")(x), transform(f)(x))
    same(transform(pullback.compile(f, backend="numpy"))(x), transform(f)(x))
    rows = pullback.stack([x, 2 * x])
    same(pullback.compile(pullback.vmap(transform(f)), backend="numpy")(rows), pullback.vmap(transform(f))(rows))


def test_an_error_of_forward_is_raised_in_each_call() -> None:
    class Positive(Separate):
        @staticmethod
        def forward(x: Any, k: float) -> Any:
            if (x.numpy() < 0).any():
                raise ValueError("negative")
            return Separate.forward(x, k)

    compiled = pullback.compile(lambda x: Positive.apply(x, 2.0).sum(), backend="numpy")
    compiled(leaf(1.0, 2.0))
    with pytest.raises(ValueError, match="negative"):
        compiled(leaf(1.0, -2.0))
    with pytest.raises(ValueError, match="negative"):
        pullback.compile(lambda x: Positive.apply(x, 2.0).sum(), backend="numpy")(leaf(-1.0, 2.0))


def test_a_result_whose_shape_depends_on_values_is_traced_again() -> None:
    class Chosen(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            a = x.numpy()
            ctx.places, ctx.n = np.flatnonzero(a > 0), a.size
            return pullback.from_numpy(a[ctx.places])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            out = np.zeros(ctx.n)
            out[ctx.places] = g.numpy()
            return pullback.from_numpy(out)

    def f(x: Any) -> Any:
        y = Chosen.apply(x * 2)
        return (y**2).sum() / y.shape[0]

    compiled = pullback.compile(f, backend="numpy")
    for x in (leaf(1.0, 2.0, -3.0), leaf(1.0, -2.0, -3.0), leaf(3.0, 1.0, -3.0)):
        same(compiled(x), f(x))
        same(grad(compiled(x), x)[0], grad(f(x), x)[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_traced_again_reads_its_own_tensors(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which tensor from outside a function reads may depend on the shape that has changed."""
    for name, value in (("holds_ten", 10.0), ("holds_hundred", 100.0)):
        module = types.ModuleType(name)
        module.k = pullback.tensor([value])  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)

    class Positive(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            a = x.detach().numpy()
            return pullback.from_numpy(a[a > 0])

    def f(x: Any) -> Any:
        found = Positive.apply(x)
        return found.sum() * sys.modules["holds_ten" if found.shape[0] == 1 else "holds_hundred"].k

    fast = pullback.compile(f, backend=backend)
    for values in ([1.0, -1.0], [1.0, 2.0], [3.0, -1.0], [3.0, 4.0]):
        x = pullback.tensor(values)
        assert fast(x).tolist() == f(x).tolist()


def test_many_traces_again_are_told_once() -> None:
    class First(Separate):
        @staticmethod
        def forward(x: Any, k: float) -> Any:
            return pullback.from_numpy(np.ones(int(x.detach().numpy()[0])))

    compiled = pullback.compile(lambda x: First.apply(x, 1.0).sum(), backend="numpy")
    with pytest.warns(UserWarning, match="was traced 8 times because of what its solvers gave"):
        found = [compiled(pullback.tensor([float(n)])).item() for n in range(1, 13)]
    assert found == list(range(1, 13))


def test_results_without_a_gradient() -> None:
    class Both(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            a = x.numpy()
            largest, place = pullback.from_numpy(a.max(keepdims=True)), pullback.from_numpy(a.argmax(keepdims=True))
            steps = pullback.from_numpy(np.arange(3.0))
            ctx.mark_non_differentiable(steps)
            ctx.place, ctx.n = int(a.argmax()), a.size
            return largest, place, steps

        @staticmethod
        def backward(ctx: Any, g: Any, *_: Any) -> Any:
            out = pullback.zeros(ctx.n, dtype=g.dtype)
            out[ctx.place] = g[0]
            return out

    x = leaf(1.0, 3.0, 2.0)
    found = pullback.compile(lambda x: Both.apply(x), backend="numpy")(x)
    expected = Both.apply(x)
    for one, other in zip(found, expected, strict=True):
        same(one, other)
        assert (one.dtype, one.requires_grad) == (other.dtype, other.requires_grad)
    same(grad(found[0].sum(), x)[0], grad(expected[0].sum(), x)[0])


class Writes(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.numpy()[...] = 1.0
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Counts(Separate):
    @staticmethod
    def forward(x: Any, log: Any) -> Any:
        log.append(float(x.detach().numpy()[0]))
        return pullback.from_numpy(x.detach().numpy() * 2)


class Draws(Separate):
    @staticmethod
    def forward(x: Any, k: float) -> Any:
        return pullback.from_numpy(x.detach().numpy()) * pullback.rand(1).double()


class Total:
    calls = 0


class Global(Separate):
    @staticmethod
    def forward(x: Any, k: float) -> Any:
        Total.calls += 1
        return Separate.forward(x, k)


def logged(x: Any) -> Any:
    log: list[float] = []
    return Counts.apply(x, log) * log[0]


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: Writes.apply(x * 1), "value"),
        (logged, "was changed while the function was traced"),
        (lambda x: Global.apply(x, 1.0), "calls was changed while the function was traced"),
        (lambda x: Draws.apply(x, 1.0), "random numbers are drawn"),
    ],
    ids=["in place", "a list", "a class", "random numbers"],
)
def test_what_a_program_cannot_repeat_is_refused(f: Any, message: str) -> None:
    pullback.manual_seed(3)
    state = pullback.get_rng_state()
    with pytest.raises(pullback.interpreters.traced.TraceError, match=message):
        pullback.compile(f, backend="numpy")(leaf(1.0, 2.0))
    assert pullback.equal(pullback.get_rng_state(), state)
