"""Rows of higher derivatives: all derivatives of a network up to the eighth, and the Laplacian of one in training.

PyTorch nests its transforms, `torch.func.grad` for each order and the trace of `torch.func.hessian`, as its users do;
pullback has Taylor mode, JAX `jax.experimental.jet` ("jit": compiled).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Arrays, Program, Row

ORDER = 8
Maker = Callable[[ModuleType], Program]


def _network(sizes: Sequence[int], dtype: str) -> list[np.ndarray]:
    """The weights and biases of a network, from the inputs on."""
    rng = np.random.default_rng(5)
    found = []
    for a, b in itertools.pairwise(sizes):
        found += [rng.standard_normal((a, b)) / math.sqrt(a), 0.1 * rng.standard_normal(b)]
    return [a.astype(dtype) for a in found]


def _applied(lib: Any, parameters: Sequence[Any], x: Any) -> Any:
    """The network with tanh: `lib` has it."""
    for i in range(0, len(parameters) - 2, 2):
        x = lib.tanh(x @ parameters[i] + parameters[i + 1])
    return x @ parameters[-2] + parameters[-1]


def _detached(tensors: Any) -> Arrays:
    return [tensor.detach().numpy() for tensor in tensors]


# -- all derivatives of MLP 1-64-64-64-1 at 100 points -----------------------------------------------------------------

_DEEP = _network((1, 64, 64, 64, 1), "float64")
_POINTS = np.linspace(-1, 1, 100)


def _nested(torch: ModuleType) -> Program:
    parameters, points = [torch.tensor(a) for a in _DEEP], torch.tensor(_POINTS)
    orders = [lambda x: _applied(torch, parameters, x.reshape(1, 1)).reshape(())]
    for _ in range(ORDER):
        orders.append(torch.func.grad(orders[-1]))
    batched = [torch.func.vmap(f) for f in orders]
    return Program(lambda _: [f(points) for f in batched], _detached)


def _derivatives(pullback: ModuleType, compiled: bool) -> Program:
    parameters, points = [pullback.tensor(a) for a in _DEEP], pullback.tensor(_POINTS[:, None])
    of = pullback.func.derivatives(lambda x: _applied(pullback, parameters, x), ORDER)
    call = pullback.compile(lambda x: of(x)) if compiled else of
    return Program(lambda _: call(points), lambda found: [a[:, 0] for a in _detached(found)])


def _jax_jet(jax: ModuleType) -> Program:
    from jax.experimental.jet import jet

    with jax.enable_x64(True):
        parameters, points = [jax.numpy.asarray(a) for a in _DEEP], jax.numpy.asarray(_POINTS[:, None])

    @jax.jit
    def of(x: Any) -> Any:
        along = [jax.numpy.ones_like(x), *[jax.numpy.zeros_like(x)] * (ORDER - 1)]
        value, series = jet(lambda x: _applied(jax.numpy, parameters, x), (x,), (along,))
        return [value, *series]

    def work(_: None) -> Any:
        with jax.enable_x64(True):
            return jax.block_until_ready(of(points))

    return Program(work, lambda found: [np.asarray(a)[:, 0] for a in found])


# -- Laplacian of MLP 10-128-128-1 at 1,000 points, and its gradient by the parameters ---------------------------------

_WIDE = _network((10, 128, 128, 1), "float64")
_PLACES = np.random.default_rng(6).standard_normal((1000, 10))


def trained(lib: ModuleType, laplacian: Callable[[Any], Any], points: int, dtype: str, compiled: bool) -> Program:
    """The mean square of a Laplacian and its gradient by the parameters: the same program in either library."""
    parameters = tuple([lib.tensor(a.astype(dtype)) for a in _WIDE])
    places = lib.tensor(_PLACES[:points].astype(dtype))

    def loss(*parameters: Any) -> Any:
        of = lib.func.vmap(laplacian(lambda x: _applied(lib, parameters, x)[0]))
        return (of(places) ** 2).mean()

    step = lib.func.grad_and_value(loss, argnums=tuple(range(5)))  # no derivative depends on the last bias
    step = lib.compile(step) if compiled else step

    def work(_: None) -> Any:
        gradients, value = step(*parameters)
        return [value, *gradients]

    return Program(work, lambda found: [np.array(a) for a in _detached(found)])


def by_hessian(torch: ModuleType, points: int = 1000, dtype: str = "float64") -> Program:
    """By the trace of the Hessian."""
    return trained(torch, lambda f: lambda x: torch.func.hessian(f)(x).diagonal().sum(), points, dtype, False)


def by_jets(pullback: ModuleType, points: int = 1000, dtype: str = "float64", compiled: bool = False) -> Program:
    """By Taylor mode, collapsed."""
    return trained(pullback, pullback.func.laplacian, points, dtype, compiled)


ROWS = [
    Row(
        "taylor-8",
        "MLP 1-64-64-64-1, tanh, 100 points, float64: all derivatives up to the eighth",
        1,
        None,
        {
            "torch": _nested,
            "pullback": lambda lib: _derivatives(lib, False),
            "compiled": lambda lib: _derivatives(lib, True),
            "jit": _jax_jet,
        },
        limits={("compiled", "torch"): 1 / 500, ("compiled", "jit"): 1.0},
    ),
    *[
        Row(
            name,
            f"MLP 10-128-128-1, tanh, 1,000 points, {dtype}: the Laplacian, and the gradient of its mean square",
            1,
            0.3,
            {
                "torch": lambda lib, dtype=dtype: by_hessian(lib, dtype=dtype),  # type: ignore[misc]
                "pullback": lambda lib, dtype=dtype: by_jets(lib, dtype=dtype),  # type: ignore[misc]
                "compiled": lambda lib, dtype=dtype: by_jets(lib, dtype=dtype, compiled=True),  # type: ignore[misc]
            },
            tolerance=1e-5 if dtype == "float64" else 1e-3,
        )
        for name, dtype in (("laplacian", "float64"), ("laplacian-float32", "float32"))
    ],
]
