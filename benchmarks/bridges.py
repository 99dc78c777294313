"""The cost of the bridges: `python -m benchmarks.bridges torch`, `... jax`, `... autograd` and `... rules`, each in its
own process.

The values of both sides are compared before anything is timed, and the sides take turns. Printed are the
median and the least time of one call, forward and backward unless the line says otherwise, and the ratio to the first.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback

SMALL, LARGE = 10, 10**7

Sides = dict[str, Callable[[], Any]]


class Swish(pullback.autograd.Function):
    """The node that is called."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return g * (s + x * s * (1 - s))


def show(title: str, sides: Sides, calls: int, turns: int = 75) -> None:
    """Time the sides in turns. A ratio is the median of those to the first side within each turn."""
    values = [np.asarray(side(), np.float64) for side in sides.values()]
    assert all(np.allclose(values[0], v, rtol=1e-4, atol=1e-6) for v in values), title
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, side in sides.items():
            start = time.perf_counter()
            for _ in range(calls):
                side()
            times[name].append((time.perf_counter() - start) / calls * 1e6)
    first = next(iter(times.values()))
    print(title)
    for name, found in times.items():
        ratio = statistics.median(t / one for t, one in zip(found, first, strict=True))
        print(f"  {name:32s} {statistics.median(found):12.1f} us {min(found):12.1f} us {ratio:8.2f}")


def of_rules() -> None:
    """The node under a decorator, beside the class form."""

    @pullback.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    square.defvjp(lambda x: (x * x, (x,)), lambda residuals, g: (2 * g * residuals[0],))

    class Square(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * g * x

    x, g = pullback.ones(SMALL, requires_grad=True), pullback.ones(SMALL)
    sides: Sides = {
        "the class": lambda: pullback.autograd.grad(Square.apply(x), x, g)[0],
        "custom_vjp": lambda: pullback.autograd.grad(square(x), x, g)[0],
    }
    show("a square of 10 elements", sides, 100)


def in_torch() -> None:
    """PyTorch."""
    import torch

    from pullback.bridge.torch import function, wrap

    torch.set_num_threads(1)

    class Theirs(torch.autograd.Function):
        forward, backward = Swish.__dict__["forward"], Swish.__dict__["backward"]

    own, compiled = wrap(Swish.apply), wrap(pullback.compile(lambda x: x * pullback.sigmoid(x)))
    here = function(lambda x: x * x.sigmoid())

    def slope(f: Any, x: Any, g: Any, lib: Any = torch) -> Callable[[], Any]:
        return lambda: lib.autograd.grad(f(x), x, g)[0]

    x, g = torch.randn(SMALL, requires_grad=True), torch.ones(SMALL)
    p, h = pullback.tensor(x.detach().numpy(), requires_grad=True), pullback.ones(SMALL)
    sides = {"torch's Function": slope(Theirs.apply, x, g), "ours in torch": slope(own, x, g)}
    show("a Function on 10 elements", {**sides, "ours, compiled, in torch": slope(compiled, x, g)}, 100)
    sides = {"torch alone": slope(lambda x: x * x.sigmoid(), x, g), "torch's here": slope(here, p, h, pullback)}
    show("a torch function on 10 elements", sides, 100)
    x, g = torch.randn(LARGE, requires_grad=True), torch.ones(LARGE)
    silu = torch.nn.functional.silu
    sides = {"torch's Function": slope(Theirs.apply, x, g), "torch's silu": slope(silu, x, g)}
    show("Swish of 1e7 float32", {**sides, "ours, compiled, in torch": slope(compiled, x, g)}, 1, 9)


def in_jax() -> None:
    """JAX."""
    import jax
    import jax.numpy as jnp

    from pullback.bridge.jax import function, wrap

    swish = pullback.compile(lambda x: x * pullback.sigmoid(x))
    own = wrap(swish)
    x = jnp.linspace(-1, 1, SMALL, dtype=jnp.float32)
    kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
    values = np.asarray(own(x))
    empty = jax.jit(lambda x: jax.pure_callback(lambda v: values, kind, x))
    forward, both = jax.jit(own), jax.jit(jax.grad(lambda x: own(x).sum()))
    sides = {
        "an empty pure_callback": lambda: empty(x).block_until_ready(),
        "ours": lambda: forward(x).block_until_ready(),
    }
    show("forward in jit, on 10 elements", sides, 100)
    p, g = pullback.tensor(np.array(x), requires_grad=True), pullback.ones(SMALL)
    here = function(jax.nn.silu)
    run, pull, a, b = (
        jax.jit(lambda x: jax.vjp(jax.nn.silu, x)),
        jax.jit(lambda r, g: r(g)),
        np.array(x),
        np.ones_like(x),
    )
    sides = {
        "JAX's two compiled calls alone": lambda: np.array(pull(run(a)[1], b)[0]),
        "JAX's here": lambda: pullback.autograd.grad(here(p), p, g)[0],
        "ours, in jit(grad)": lambda: both(x).block_until_ready(),
    }
    show("forward and backward on 10 elements", sides, 100)
    big = jnp.ones(LARGE, jnp.float32)
    theirs = jax.jit(jax.grad(lambda x: jax.nn.silu(x).sum()))
    sides = {"JAX's silu": lambda: theirs(big).block_until_ready(), "ours": lambda: both(big).block_until_ready()}
    show("Swish of 1e7 float32, in jit(grad)", sides, 1, 9)


def _gradients(operators: Any, np_: Any) -> Sides:
    """Gradients of a number and of small arrays, by autograd or by its namespace here."""
    times = np.linspace(0.5, 3, SMALL)

    def tanh(x: Any) -> Any:
        y = np_.exp(-2.0 * x)
        return (1.0 - y) / (1.0 + y)

    def many(x: Any) -> Any:
        for _ in range(30):
            x = 0.9 * np_.sin(x)
        return x

    def rosenbrock(x: Any) -> Any:
        return np_.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def weibull(p: Any) -> Any:
        scale, shape = p[0], p[1]
        rate = np_.log(shape) - np_.log(scale) + (shape - 1) * (np_.log(times) - np_.log(scale))
        return -np_.sum(rate - (times / scale) ** shape)

    weights = np.linspace(-1, 1, 3 * SMALL * SMALL).reshape(3, SMALL, SMALL)

    def layers(w: Any) -> Any:
        h = times
        for i in range(3):
            h = np_.tanh(np_.dot(w[i], h))
        return np_.sum(h)

    x, p = np.linspace(0.1, 1, SMALL), np.array([1.5, 1.2])
    of_layers = operators.grad(layers)
    of_tanh, of_many = operators.grad(tanh), operators.grad(many)
    of_rosenbrock, of_weibull = operators.grad(rosenbrock), operators.value_and_grad(weibull)
    third = operators.grad(operators.grad(of_tanh))
    second = operators.hessian(rosenbrock)
    return {
        "tanh at a number, by its formula": lambda: of_tanh(1.0),
        "its third derivative": lambda: third(1.0),
        "60 operations on a number": lambda: of_many(1.0),
        "Rosenbrock's function of 10 numbers": lambda: of_rosenbrock(x),
        "three layers of 10 units": lambda: of_layers(weights),
        "a Weibull likelihood with its value, 10 data": lambda: np.append(*reversed(of_weibull(p))),
        "Hessian of Rosenbrock's function": lambda: second(x),
        "three layers of 10 units, forward mode": lambda: operators.make_jvp(layers)(weights)(weights)[1],
        "60 operations on a number, forward mode": lambda: operators.make_jvp(many)(1.0)(1.0)[1],
    }


def in_autograd() -> None:
    """HIPS autograd."""
    import autograd
    import autograd.numpy as theirs
    import pullback.bridge.autograd.numpy as ours

    import pullback.bridge.autograd as here

    sides = _gradients(here, ours)
    for title, side in _gradients(autograd, theirs).items():
        show(title, {"autograd": side, "ours": sides[title]}, 20, 25)


if __name__ == "__main__":
    for host in sys.argv[1:]:
        {"rules": of_rules, "torch": in_torch, "jax": in_jax, "autograd": in_autograd}[host]()
