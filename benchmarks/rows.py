"""The timed programs: the same mathematics, on the same arrays, as a user of each library would write it.

A maker takes a library's module and returns a `Program`. PyTorch and pullback share their makers, because the code is
the same; HIPS autograd, MyGrad and JAX (op by op, not compiled) have their own if they can express the work: MyGrad's
operations have one output, and its backward pass recurses, so it has no part in the wide and the long rows; a graph of
1e5 nodes takes JAX minutes, and one of 1e6 is built by PyTorch and pullback alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Arrays, Program, Row

X = np.array([0.5, -1.25, 2.0], np.float32)
C = np.array([1.0, 1 - 2**-20, 1 + 2**-20], np.float32)  # so near to 1 that no chain overflows
G = np.array([1.0, -2.0, 0.25], np.float32)
SHORT, LONG, MILLION = 100, 100_000, 1_000_000

WIDE = [np.array([i, i + 0.5, -i], np.float32) for i in range(13)]
WIDE_G = (G, np.array([3.0, 0.5, -1.0], np.float32))

Maker = Callable[[ModuleType], Program]


def _numpy(arrays: Any) -> Arrays:
    return [np.asarray(array) for array in arrays]


def _detached(tensors: Any) -> Arrays:
    return [tensor.detach().numpy() for tensor in tensors]


# -- chains: y = x * c * c * ... * c, then the gradient of x ----------------------------------------------------------


def _torch_chain(
    torch: ModuleType, multiply: Callable[[Any, Any], Any] = operator.mul, compiled: bool = False
) -> Program:
    x, c, g = torch.tensor(X, requires_grad=True), torch.tensor(C), torch.tensor(G)

    def chain(y: Any, c: Any) -> Any:
        for _ in range(SHORT):
            y = multiply(y, c)
        return y

    called = torch.compile(chain) if compiled else chain

    def work(_: None) -> Any:
        x.grad = None
        y = called(x, c)
        y.backward(g)
        return y, x.grad

    return Program(work, _detached)


def _multiply(torch: ModuleType) -> Callable[[Any, Any], Any]:
    """``x * c`` as a custom Function."""

    class Multiply(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, c: Any) -> Any:
            ctx.c = c
            return x * c

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.c, None

    return Multiply.apply  # type: ignore[no-any-return]


def _torch_function_chain(torch: ModuleType, compiled: bool = False) -> Program:
    return _torch_chain(torch, _multiply(torch), compiled)


def _whole_function_chain(lib: ModuleType) -> Program:
    x, c, g = lib.tensor(X), lib.tensor(C), lib.tensor(G)
    multiply = _multiply(lib)

    @lib.compile  # type: ignore[untyped-decorator]
    def both(x: Any, c: Any, g: Any) -> Any:
        def chain(x: Any) -> Any:
            for _ in range(SHORT):
                x = multiply(x, c)
            return x

        y, vjp = lib.func.vjp(chain, x)
        return y, *vjp(g)

    return Program(lambda _: both(x, c, g), _detached)


def _autograd_chain(autograd: ModuleType, multiply: Callable[[Any, Any], Any] = operator.mul) -> Program:
    def chain(x: Any) -> Any:
        for _ in range(SHORT):
            x = multiply(x, C)
        return x

    def work(_: None) -> Any:
        vjp, y = autograd.make_vjp(chain)(X)
        return y, vjp(G)

    return Program(work, _numpy)


def _autograd_function_chain(autograd: ModuleType) -> Program:
    multiply = autograd.extend.primitive(np.multiply)
    autograd.extend.defvjp(multiply, lambda y, x, c: lambda g: g * c, None)
    return _autograd_chain(autograd, multiply)


def _mygrad_chain(mygrad: ModuleType, multiply: Callable[[Any, Any], Any] = operator.mul) -> Program:
    mygrad.turn_memory_guarding_off()  # its documentation's advice for many small tensors
    x = mygrad.tensor(X)

    def work(_: None) -> Any:
        y = x
        for _ in range(SHORT):
            y = multiply(y, C)
        y.backward(G)
        return y, x.grad

    return Program(work, lambda results: [results[0].data, results[1]])


def _mygrad_function_chain(mygrad: ModuleType) -> Program:
    class Multiply(mygrad.operation_base.Operation):  # type: ignore[misc, name-defined]
        def __call__(self, x: Any, c: np.ndarray) -> np.ndarray:
            self.variables = (x,)
            self.c = c
            return x.data * c

        def backward_var(self, grad: np.ndarray, index: int, **_: Any) -> np.ndarray:
            return grad * self.c

    return _mygrad_chain(mygrad, lambda x, c: mygrad.execute_op(Multiply, x, op_args=(c,)))


def _jax_chain(jax: ModuleType, multiply: Callable[[Any, Any], Any] = operator.mul, compiled: bool = False) -> Program:
    x, c, g = jax.numpy.asarray(X), jax.numpy.asarray(C), jax.numpy.asarray(G)

    def both(x: Any, c: Any, g: Any) -> Any:
        def chain(x: Any) -> Any:
            for _ in range(SHORT):
                x = multiply(x, c)
            return x

        y, vjp = jax.vjp(chain, x)
        return y, *vjp(g)

    called = jax.jit(both) if compiled else both
    return Program(lambda _: jax.block_until_ready(called(x, c, g)), _numpy)


def _jax_function_chain(jax: ModuleType, compiled: bool = False) -> Program:
    @jax.custom_vjp
    def multiply(x: Any, c: Any) -> Any:
        return x * c

    multiply.defvjp(lambda x, c: (x * c, c), lambda c, g: (g * c, None))
    return _jax_chain(jax, multiply, compiled)


# -- a function of 13 inputs and 2 outputs: almost no arithmetic, so that the bookkeeping is timed ---------------------
#
# y0 = x0 + x1 and y1 = x2 + x3. The gradient is by decree: the first seven inputs receive the gradient of y0, the
# others that of y1; with saved inputs, x0 receives that of y0 times x0.


def _torch_wide(torch: ModuleType, variant: str) -> Program:
    saved = variant == "saved"

    class Wide(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            if saved:
                ctx.save_for_backward(*xs)
            return xs[0] + xs[1], xs[2] + xs[3]

        @staticmethod
        def backward(ctx: Any, g0: Any, g1: Any) -> Any:
            first = g0 * ctx.saved_tensors[0] if saved else g0
            return first, *[g0] * 6, *[g1] * 6

    xs = [torch.tensor(x, requires_grad=variant != "plain") for x in WIDE]
    gs = [torch.tensor(g) for g in WIDE_G]

    def apply(_: None) -> Any:
        return Wide.apply(*xs)

    def gradients(_: None) -> Any:
        ys = Wide.apply(*xs)
        return *ys, *torch.autograd.grad(ys, xs, gs)

    if variant == "plain":
        return Program(apply, _detached)
    if variant == "recorded":
        return Program(apply, lambda ys: _detached([*ys, *torch.autograd.grad(ys, xs, gs)]))
    return Program(gradients, _detached)


def _autograd_wide(autograd: ModuleType, variant: str) -> Program:
    saved = variant == "saved"

    @autograd.extend.primitive
    def wide(*xs: Any) -> Any:
        return xs[0] + xs[1], xs[2] + xs[3]

    def vjp_of_all(argnums: Any, ys: Any, xs: Any, _: Any) -> Any:
        def vjp(gs: Any) -> Any:
            g0, g1 = gs
            return g0 * xs[0] if saved else g0, *[g0] * 6, *[g1] * 6

        return vjp

    autograd.extend.defvjp_argnums(wide, vjp_of_all)
    record = autograd.make_vjp(wide, argnum=tuple(range(13)))

    def gradients(_: None) -> Any:
        vjp, ys = record(*WIDE)
        return *ys, *vjp(WIDE_G)

    if variant == "plain":
        return Program(lambda _: wide(*WIDE), _numpy)
    if variant == "recorded":
        return Program(lambda _: record(*WIDE), lambda result: _numpy([*result[1], *result[0](WIDE_G)]))
    return Program(gradients, _numpy)


def _jax_wide(jax: ModuleType, variant: str) -> Program:
    saved = variant == "saved"

    @jax.custom_vjp
    def wide(*xs: Any) -> Any:
        return xs[0] + xs[1], xs[2] + xs[3]

    def backward(xs: Any, gs: Any) -> Any:
        g0, g1 = gs
        return g0 * xs[0] if saved else g0, *[g0] * 6, *[g1] * 6

    wide.defvjp(lambda *xs: ((xs[0] + xs[1], xs[2] + xs[3]), xs if saved else None), backward)
    xs, gs = [jax.numpy.asarray(x) for x in WIDE], tuple(jax.numpy.asarray(g) for g in WIDE_G)

    def recorded(_: None) -> Any:
        ys, vjp = jax.vjp(wide, *xs)
        return jax.block_until_ready(ys), vjp

    def gradients(_: None) -> Any:
        ys, vjp = jax.vjp(wide, *xs)
        return jax.block_until_ready((*ys, *vjp(gs)))

    if variant == "plain":
        return Program(lambda _: jax.block_until_ready(wide(*xs)), _numpy)
    if variant == "recorded":
        return Program(recorded, lambda result: _numpy([*result[0], *result[1](gs)]))
    return Program(gradients, _numpy)


# -- a long chain: a graph of 1e5 or 1e6 nodes, kept until the clock has stopped; and what it takes to free one -------


def _torch_long(torch: ModuleType, length: int) -> Program:
    x, c, g = torch.tensor(X, requires_grad=True), torch.tensor(C), torch.tensor(G)

    def work(kept: list[Any]) -> Any:
        x.grad = None
        y = x
        for _ in range(length):
            y = y * c
        kept.append(y)
        y.backward(g)
        return y, x.grad

    return Program(work, _detached, prepare=list)


def _torch_freed(torch: ModuleType, length: int) -> Program:
    x, c, g = torch.tensor(X, requires_grad=True), torch.tensor(C), torch.tensor(G)

    def build() -> list[Any]:
        y = x
        for _ in range(length):
            y = y * c
        return [y]

    def arrays(_: None) -> Arrays:
        (y,) = build()
        return _detached([y, *torch.autograd.grad(y, x, g)])

    return Program(list.clear, arrays, prepare=build)


def _autograd_long(autograd: ModuleType) -> Program:
    def chain(x: Any) -> Any:
        for _ in range(LONG):
            x = x * C
        return x

    def work(kept: list[Any]) -> Any:
        vjp, y = autograd.make_vjp(chain)(X)
        kept.append(vjp)
        return y, vjp(G)

    return Program(work, _numpy, prepare=list)


def _autograd_freed(autograd: ModuleType) -> Program:
    def chain(x: Any) -> Any:
        for _ in range(LONG):
            x = x * C
        return x

    def arrays(_: None) -> Arrays:
        vjp, y = autograd.make_vjp(chain)(X)
        return _numpy([y, vjp(G)])

    return Program(list.clear, arrays, prepare=lambda: list(autograd.make_vjp(chain)(X)))


# -- the table ---------------------------------------------------------------------------------------------------------


def _wide(variant: str) -> dict[str, Maker]:
    return {
        "torch": lambda module: _torch_wide(module, variant),
        "pullback": lambda module: _torch_wide(module, variant),
        "autograd": lambda module: _autograd_wide(module, variant),
        "jax": lambda module: _jax_wide(module, variant),
    }


def _long(name: str, length: int, *makers: Maker) -> list[Row]:
    """The two rows of a chain of that length; autograd has its own makers, or no part in them."""

    def both(maker: Callable[[ModuleType, int], Program]) -> dict[str, Maker]:
        return dict.fromkeys(("torch", "pullback"), lambda module: maker(module, length))

    built, freed = [{"autograd": maker} for maker in makers] or [{}, {}]
    chain = f"chain of {length:.0e} multiplications"
    return [
        Row(name, f"{chain}, build + backward, per node", length, 0.7, both(_torch_long) | built),
        Row(f"{name}-freed", f"{chain}, freeing the graph, per node", length, 0.8, both(_torch_freed) | freed),
    ]


ROWS = [
    Row(
        "chain",
        f"built-in multiplication of 3 float32, chain of {SHORT}, forward + backward",
        SHORT,
        0.45,
        {
            "torch": _torch_chain,
            "pullback": _torch_chain,
            "autograd": _autograd_chain,
            "mygrad": _mygrad_chain,
            "jax": _jax_chain,
        },
    ),
    Row(
        "function",
        f"custom Function x * c of 3 float32, chain of {SHORT}, forward + backward",
        SHORT,
        0.4,
        {
            "torch": _torch_function_chain,
            "pullback": _torch_function_chain,
            "compiled": lambda module: _torch_function_chain(module, compiled=True),
            "whole": _whole_function_chain,
            "inductor": lambda module: _torch_function_chain(module, compiled=True),
            "autograd": _autograd_function_chain,
            "mygrad": _mygrad_function_chain,
            "jax": _jax_function_chain,
            "jit": lambda module: _jax_function_chain(module, compiled=True),
        },
        {("whole", "jit"): 1.2},
    ),
    Row("wide-plain", "Function of 13 inputs and 2 outputs: apply, nothing recorded", 1, 0.4, _wide("plain")),
    Row("wide-recorded", "Function of 13 inputs and 2 outputs: apply, recorded", 1, 0.4, _wide("recorded")),
    Row("wide-gradients", "Function of 13 inputs and 2 outputs: apply + 13 gradients", 1, 0.4, _wide("gradients")),
    Row("wide-saved", "Function of 13 inputs and 2 outputs: the same, all 13 saved", 1, 0.4, _wide("saved")),
    *_long("long", LONG, _autograd_long, _autograd_freed),
    *_long("million", MILLION),
]
