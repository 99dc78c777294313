"""Methods of a Function see what they are given: transforms around them do not reach into those inside of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.autograd import Function

X = pullback.tensor([0.3, 0.7, 1.1], dtype=pullback.float64)


def slope(x: Any) -> Any:
    """The gradient of a sum of sines, by a transform, and as an array."""
    found = func.grad(lambda y: y.sin().sum())(x)
    return pullback.from_numpy(found.numpy())


class Inside(Function):
    """``cos(x)``, whose forward takes the values of a derivative out of the library."""

    @staticmethod
    def forward(x: Any) -> Any:
        return slope(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -g * ctx.saved_tensors[0].sin()

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return -t * ctx.saved_tensors[0].sin()

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        along = x.movedim(in_dims[0], 0)
        return pullback.stack([Inside.apply(along[i]) for i in range(info.batch_size)]), 0


class Joined(Function):
    """The same with one method for both, `forward(ctx, x)`."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return slope(x)

    backward = staticmethod(Inside.backward)
    jvp = staticmethod(Inside.jvp)


class InsideVmap(Inside):
    """The same, whose `vmap` takes the values out itself."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        along = x.movedim(in_dims[0], 0)
        return pullback.stack([slope(along[i]) for i in range(info.batch_size)]), 0


class InsideJvp(Inside):
    """The same, whose `jvp` takes the values of a derivative out."""

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t * slope_of_slope(ctx.saved_tensors[0].detach())


def slope_of_slope(x: Any) -> Any:
    found = func.grad(lambda y: y.cos().sum())(x)
    return pullback.from_numpy(found.numpy())


def sums(f: Any) -> Any:
    return lambda x: f(x).sum()


TRANSFORMS = {
    "jvp": lambda f: func.jvp(f, (X,), (X,))[1],
    "jvp of jvp": lambda f: func.jvp(lambda x: func.jvp(f, (x,), (X,))[1], (X,), (X,))[1],
    "grad": lambda f: func.grad(sums(f))(X),
    "hessian": lambda f: func.hessian(sums(f))(X),
    "jvp of grad": lambda f: func.jvp(func.grad(sums(f)), (X,), (X,))[1],
    "jacfwd": lambda f: func.jacfwd(f)(X),
}
BATCHES = {
    "vmap": lambda f: pullback.vmap(f)(X[:, None] * X),
    "vmap of jvp": lambda f: pullback.vmap(lambda x: func.jvp(f, (x,), (X,))[1])(X[:, None] * X),
    "jvp of vmap": lambda f: func.jvp(pullback.vmap(f), (X[:, None] * X,), (X[:, None] * X,))[1],
    "vmap of grad": lambda f: pullback.vmap(func.grad(sums(f)))(X[:, None] * X),
    "other argument": lambda f: pullback.vmap(lambda x: x * f(X))(X),
}


@pytest.mark.parametrize(
    ("function", "name"),
    [(Inside, n) for n in (*TRANSFORMS, *BATCHES)]
    + [(InsideVmap, n) for n in ("vmap", "vmap of grad")]
    + [(InsideJvp, "jvp")]
    + [(Joined, n) for n in TRANSFORMS if "hessian" not in n],
)
def test_a_transform_inside_a_method_is_of_what_it_was_given(function: Any, name: str) -> None:
    run = {**TRANSFORMS, **BATCHES}[name]
    np.testing.assert_allclose(run(function.apply).numpy(), run(pullback.cos).numpy(), rtol=1e-12, atol=1e-15)


def test_a_level_inside_is_above_those_that_are_hidden() -> None:
    """A tensor of a transform outside that a method reads is not taken for one of a transform inside."""
    found = []

    class Reading(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            found.append(func.jvp(lambda y: y * outer[0], (x,), (x,))[1])
            return x.clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t.clone()

    outer: list[Any] = []

    def f(x: Any) -> Any:
        outer.append(x)
        Reading.apply(pullback.full((3,), 2.0, dtype=pullback.float64))
        return found[-1] * 1

    value, slope = func.jvp(f, (X,), (pullback.ones_like(X),))
    np.testing.assert_allclose(value.numpy(), 2 * X.numpy())
    np.testing.assert_allclose(slope.numpy(), [2.0, 2.0, 2.0])


class Copied(Function):
    """A copy, without a jvp."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.clone()


class CopiedJoined(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    backward = staticmethod(Copied.backward)


@pytest.mark.parametrize("function", [Copied, CopiedJoined])
@pytest.mark.parametrize("still", [lambda t: t == t, lambda t: t.detach(), pullback.ones_like, lambda t: X])
def test_an_argument_without_a_tangent_asks_for_no_jvp(function: Any, still: Any) -> None:
    def f(x: Any) -> Any:
        return function.apply(still(x)) * x

    np.testing.assert_allclose(func.jvp(f, (X,), (X,))[1].numpy(), (still(X) * X).numpy())
    np.testing.assert_allclose(func.linearize(f, X)[1](X).numpy(), (still(X) * X).numpy())
    np.testing.assert_allclose(func.jacfwd(f)(X).numpy(), np.diag((still(X) * pullback.ones_like(X)).numpy()))


def test_an_argument_with_a_tangent_does() -> None:
    with pytest.raises(NotImplementedError, match="you must implement the jvp function"):
        func.jvp(lambda x: Copied.apply(x == x) * Copied.apply(x), (X,), (X,))


class Doubled(pullback.autograd.Function):
    """Takes settings in a container, which holds no tensor."""

    @staticmethod
    def forward(settings: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.settings = inputs[0]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, g * 2

    @staticmethod
    def jvp(ctx: Any, settings: Any, t: Any) -> Any:
        return t * 2

    @staticmethod
    def vmap(info: Any, in_dims: Any, settings: Any, x: Any) -> Any:
        return Doubled.apply(settings, x), in_dims[1]


@pytest.mark.parametrize("settings", [(1, 2), [1, [2]], {"a": 1, "b": 2}, (), (None, "x")])
def test_settings_in_a_container_without_tensors_reach_a_function_in_every_transform(settings: Any) -> None:
    x, t = pullback.tensor([1.0, 2.0]), pullback.tensor([3.0, 5.0])

    def f(x: Any) -> Any:
        return Doubled.apply(settings, x)

    assert func.jvp(f, (x,), (t,))[1].tolist() == [6.0, 10.0]
    assert pullback.vmap(f)(x).tolist() == [2.0, 4.0]
    assert pullback.vmap(func.grad(f))(x).tolist() == [2.0, 2.0]
    assert func.jvp(func.grad(lambda x: (f(x) ** 2).sum()), (x,), (t,))[1].tolist() == [24.0, 40.0]
