"""Rows of larger arrays and other shapes of graph: mixed operations, shared leaves, fused kernels, sparse products,
Jacobians.

"compiled" is pullback with `pullback.compile`, "whole" with the backward pass in the compiled function, as in "jit",
which is JAX compiled; "inductor" is PyTorch with `torch.compile`, "fused"
PyTorch's own kernel for the same function, "scipy" the gradient written by hand, and "memory" only the reading and
writing that the work requires.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Arrays, Program, Row

RNG = np.random.default_rng(0)
USES = 1000


def _detached(tensors: Any) -> Arrays:
    return [tensor.detach().numpy() for tensor in tensors]


def _numpy(arrays: Any) -> Arrays:
    return [np.asarray(array) for array in arrays]


# -- a mixed chain -----------------------------------------------------------------------------------------------------

_MIXED = RNG.standard_normal((4, 6)).astype(np.float32)
_BIAS = RNG.standard_normal(6).astype(np.float32)
ROUNDS, PER_ROUND = 4, 8


def _mixed_chain(sin: Callable[[Any], Any], y: Any, bias: Any) -> Any:
    for _ in range(ROUNDS):
        y = y + bias  # broadcast
        y = sin(y)
        z = y * y
        z = z.reshape(6, 4)
        w = z[1]
        y = y + z.reshape(4, 6)
        y = y * w.sum()
    return y.sum()


def _mixed(torch: ModuleType, compiled: bool = False) -> Program:
    x, bias = torch.tensor(_MIXED, requires_grad=True), torch.tensor(_BIAS, requires_grad=True)
    chain = functools.partial(_mixed_chain, torch.sin)
    called = torch.compile(chain) if compiled else chain

    def work(_: None) -> Any:
        x.grad = bias.grad = None
        loss = called(x, bias)
        loss.backward()
        return loss, x.grad, bias.grad

    return Program(work, _detached)


def _mixed_whole(lib: ModuleType) -> Program:
    x, bias = lib.tensor(_MIXED), lib.tensor(_BIAS)
    called = lib.compile(lib.func.grad_and_value(functools.partial(_mixed_chain, lib.sin), (0, 1)))

    def work(_: None) -> Any:
        gradients, loss = called(x, bias)
        return loss, *gradients

    return Program(work, _detached)


def _mixed_jit(jax: ModuleType) -> Program:
    x, bias = jax.numpy.asarray(_MIXED), jax.numpy.asarray(_BIAS)
    called = jax.jit(jax.value_and_grad(functools.partial(_mixed_chain, jax.numpy.sin), (0, 1)))

    def work(_: None) -> Any:
        loss, gradients = jax.block_until_ready(called(x, bias))
        return loss, *gradients

    return Program(work, _numpy)


# -- one leaf, used many times -----------------------------------------------------------------------------------------


def _leaf(torch: ModuleType, size: int) -> Program:
    values = np.linspace(-1, 1, size, dtype=np.float32)
    x, c = torch.tensor(values, requires_grad=True), torch.tensor(np.full(size, 0.5, np.float32))
    g = torch.tensor(np.ones(size, np.float32))

    def work(_: None) -> Any:
        x.grad = None
        y = c
        for _ in range(USES):
            y = y + x
        y.backward(g)
        return y, x.grad

    return Program(work, _detached)


# -- Swish -------------------------------------------------------------------------------------------------------------


def _swish_data(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(-6, 6, size, dtype=np.float32), np.linspace(1, 2, size, dtype=np.float32)


def _backward_of(torch: ModuleType, swish: Callable[[Any], Any], size: int) -> Program:
    values, cotangent = _swish_data(size)
    x, g = torch.tensor(values, requires_grad=True), torch.tensor(cotangent)

    def work(_: None) -> Any:
        x.grad = None
        y = swish(x)
        y.backward(g)
        return y, x.grad

    return Program(work, _detached)


def swish(torch: ModuleType, size: int) -> Program:
    class Swish(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * torch.sigmoid(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            s = torch.sigmoid(x)
            return g * (s * (1 + x * (1 - s)))

    return _backward_of(torch, Swish.apply, size)


def _swish_compiled(lib: ModuleType, size: int) -> Program:
    return _backward_of(lib, lib.compile(lambda x: x * lib.sigmoid(x)), size)


def _swish_whole(lib: ModuleType, size: int) -> Program:
    values, cotangent = (lib.tensor(array) for array in _swish_data(size))

    @lib.compile  # type: ignore[untyped-decorator]
    def both(x: Any, g: Any) -> Any:
        y, vjp = lib.func.vjp(lambda x: x * lib.sigmoid(x), x)
        return y, *vjp(g)

    return Program(lambda _: both(values, cotangent), _detached)


def _swish_fused(torch: ModuleType, size: int) -> Program:
    return _backward_of(torch, torch.nn.functional.silu, size)


def _swish_jit(jax: ModuleType, size: int) -> Program:
    values, cotangent = (jax.numpy.asarray(a) for a in _swish_data(size))

    @jax.jit
    def both(x: Any, g: Any) -> Any:
        y, vjp = jax.vjp(lambda x: x * jax.nn.sigmoid(x), x)
        return y, *vjp(g)

    return Program(lambda _: jax.block_until_ready(both(values, cotangent)), _numpy)


def _swish_memory(numpy: ModuleType, size: int) -> Program:
    """Copy as much as Swish reads and writes: forward x and y, backward x, g and the gradient."""
    values, cotangent = _swish_data(size)
    y, gradient = np.empty_like(values), np.empty_like(values)
    exact = 1 / (1 + np.exp(-values.astype(float)))
    expected = [values * exact, cotangent * exact * (1 + values * (1 - exact))]

    def work(_: None) -> Any:
        np.copyto(y, values)
        np.add(values, cotangent, out=gradient)

    return Program(work, lambda _: [a.astype(np.float32) for a in expected])


def _swish_row(name: str, size: int, silu: float, memory: float, against: float) -> Row:
    limits = {("compiled", "torch"): against, ("compiled", "fused"): silu, ("compiled", "memory"): memory}
    return Row(
        name,
        f"Swish of {size:.0e} float32, forward + backward: a custom Function in plain array operations, and fused",
        1,
        0.7,
        {
            "torch": lambda module: swish(module, size),
            "pullback": lambda module: swish(module, size),
            "compiled": lambda module: _swish_compiled(module, size),
            "whole": lambda module: _swish_whole(module, size),
            "fused": lambda module: _swish_fused(module, size),
            "inductor": lambda module: _swish_compiled(module, size),
            "jit": lambda module: _swish_jit(module, size),
            "memory": lambda module: _swish_memory(module, size),
        },
        limits if size > 10_000 else {},
        most={"whole": 10} if size == 10_000 else {},
    )


# -- a sparse matrix times a dense one: the gradients of its values and of the dense one ------------------------------

N, NNZ, COLUMNS = 20_000, 200_000, 64


def _sparse_data() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    places = np.sort(rng.choice(N * N, NNZ, replace=False))
    rows, columns = np.divmod(places, N)
    dense, cotangent = (rng.standard_normal((N, COLUMNS)).astype(np.float32) for _ in range(2))
    return rows, columns, rng.standard_normal(NNZ).astype(np.float32), dense, cotangent


def _sparse(torch: ModuleType) -> Program:
    rows, columns, data, matrix, cotangent = _sparse_data()
    values, dense = torch.tensor(data, requires_grad=True), torch.tensor(matrix, requires_grad=True)
    places, g = torch.tensor(np.stack([rows, columns])), torch.tensor(cotangent)
    known = {"check_invariants": False} if torch.__name__ == "torch" else {}

    def work(_: None) -> Any:
        y = torch.sparse.mm(torch.sparse_coo_tensor(places, values, (N, N), is_coalesced=True, **known), dense)
        return y, *torch.autograd.grad(y, [values, dense], g)

    return Program(work, _detached)


def _sparse_by_hand(scipy: ModuleType) -> Program:
    rows, columns, values, dense, cotangent = _sparse_data()

    def work(_: None) -> Any:
        matrix = scipy.sparse.csr_matrix((values, (rows, columns)), shape=(N, N))
        return matrix @ dense, np.einsum("ij,ij->i", cotangent[rows], dense[columns]), matrix.T @ cotangent

    return Program(work, _numpy)


# -- the same product by indexing and index_add ------------------------------------------------------------------------

FEW, PLACES, WIDTH = 2_000, 20_000, 32


def _index_data() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(2)
    rows, columns = np.divmod(np.sort(rng.choice(FEW * FEW, PLACES, replace=False)), FEW)
    dense, cotangent = (rng.standard_normal((FEW, WIDTH)).astype(np.float32) for _ in range(2))
    return rows, columns, rng.standard_normal((PLACES, 1)).astype(np.float32), dense, cotangent


def _index(torch: ModuleType) -> Program:
    rows, columns, values, dense, g = (torch.tensor(array) for array in _index_data())
    values.requires_grad_()
    dense.requires_grad_()

    def work(_: None) -> Any:
        y = torch.zeros(FEW, WIDTH).index_add(0, rows, values * dense[columns])
        return y, *torch.autograd.grad(y, [values, dense], g)

    return Program(work, _detached)


def _index_jit(jax: ModuleType) -> Program:
    rows, columns, values, dense, g = (jax.numpy.asarray(array) for array in _index_data())

    @jax.jit
    def both(values: Any, dense: Any) -> Any:
        def product(values: Any, dense: Any) -> Any:
            return jax.numpy.zeros((FEW, WIDTH), "float32").at[rows].add(values * dense[columns])

        y, vjp = jax.vjp(product, values, dense)
        return y, *vjp(g)

    return Program(lambda _: jax.block_until_ready(both(values, dense)), _numpy)


# -- Jacobians and a Hessian ---------------------------------------------------------------------------------------

_LAYERS = [RNG.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(3)]
_POINT = RNG.standard_normal(64).astype(np.float32)
_ROSENBROCK = RNG.standard_normal(100).astype(np.float32)


def _net(tanh: Callable[[Any], Any], layers: list[Any]) -> Callable[[Any], Any]:
    def net(x: Any) -> Any:
        for layer in layers:
            x = tanh(layer @ x)
        return x

    return net


def _rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _derivative(lib: ModuleType, transform: str, compiled: bool = False) -> Program:
    jax = lib.__name__ == "jax"
    array = lib.numpy.asarray if jax else lib.tensor
    home = lib if jax else lib.func
    if transform == "hessian":
        derivative, x = home.hessian(_rosenbrock), array(_ROSENBROCK)
    else:
        name = {"jacrev": "jacrev", "jacfwd": "jacfwd"}[transform]
        net = _net(lib.numpy.tanh if jax else lib.tanh, [array(layer) for layer in _LAYERS])
        derivative, x = getattr(home, name)(net), array(_POINT)
    if jax:
        derivative = lib.jit(derivative)
        return Program(lambda _: [lib.block_until_ready(derivative(x))], _numpy)
    derivative = lib.compile(derivative) if compiled else derivative
    return Program(lambda _: [derivative(x)], _detached)


def _derivative_row(transform: str, title: str) -> Row:
    return Row(
        transform,
        title,
        1,
        0.6,
        {
            "torch": lambda module: _derivative(module, transform),
            "pullback": lambda module: _derivative(module, transform),
            "compiled": lambda module: _derivative(module, transform, compiled=True),
            "jit": lambda module: _derivative(module, transform),
        },
        {("compiled", "jit"): 2.0},
        tolerance=1e-4,
    )


ROWS = [
    Row(
        "mixed",
        "add, mul, sin, sum, reshape, index, broadcast add on 24 float32, forward + backward",
        ROUNDS * PER_ROUND + 1,
        0.7,
        {
            "torch": _mixed,
            "pullback": _mixed,
            "compiled": lambda module: _mixed(module, compiled=True),
            "whole": _mixed_whole,
            "inductor": lambda module: _mixed(module, compiled=True),
            "jit": _mixed_jit,
        },
        {("whole", "jit"): 1.2},
        tolerance=1e-3,
    ),
    *(
        Row(
            f"leaf-{label}",
            f"one leaf of {size:.0e} float32 used {USES} times, forward + backward, per use",
            USES,
            budget,
            {"torch": lambda module, n=size: _leaf(module, n), "pullback": lambda module, n=size: _leaf(module, n)},
        )
        for label, size, budget in (("small", 3, 0.5), ("large", 100_000, 0.9))
    ),
    Row(
        "compiled-call",
        "x * sigmoid(x) of 3 float32, forward + backward: a compiled function's fixed cost",
        1,
        None,
        {
            "torch": lambda module: _swish_fused(module, 3),
            "compiled": lambda module: _swish_compiled(module, 3),
            "whole": lambda module: _swish_whole(module, 3),
            "inductor": lambda module: _swish_compiled(module, 3),
            "jit": lambda module: _swish_jit(module, 3),
        },
        most={"whole": 6},
    ),
    _swish_row("swish-1e4", 10_000, 1.0, 1.0, 1.0),
    _swish_row("swish-1e6", 1_000_000, 0.9, 3.0, 0.1),
    _swish_row("swish-1e7", 10_000_000, 0.2, 2.0, 0.06),
    Row(
        "sparse",
        f"sparse ({N} x {N}, {NNZ} values) @ dense ({N} x {COLUMNS}): product, gradients of the values and the dense",
        1,
        0.02,
        {"torch": _sparse, "pullback": _sparse, "scipy": _sparse_by_hand},
        {("pullback", "scipy"): 1.0},
        tolerance=1e-4,
    ),
    Row(
        "index",
        f"sparse ({FEW} x {FEW}, {PLACES} values) @ dense ({FEW} x {WIDTH}) by indexing and index_add, and gradients",
        1,
        1.0,
        {"torch": _index, "pullback": _index, "jit": _index_jit},
        tolerance=1e-4,
    ),
    _derivative_row("jacrev", "Jacobian, reverse mode, of a 3-layer tanh net from R^64 to R^64"),
    _derivative_row("jacfwd", "Jacobian, forward mode, of the same net"),
    _derivative_row("hessian", "Hessian of the Rosenbrock function of 100 variables"),
]
