"""`func.scan`, `fori_loop` and `while_loop` in compiled functions: one loop of the program, by the loop written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.compile.backends import c

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not c.available(), reason="no C compiler"))]
F32, F64 = pullback.float32, pullback.float64


def _entries(compiled: Any) -> list[Any]:
    return [e for entries in compiled._entries.values() for e in entries if e is not None]


def is_rolled(compiled: Any) -> bool:
    """Whether each loop of a compiled function became a loop of its program."""
    entries = _entries(compiled)
    return all(not e.traced.written_out and e.forward.rounds for e in entries) and bool(entries)


def leaf(rng: np.random.Generator, *shape: int, dtype: Any = F64) -> pullback.Tensor:
    return pullback.tensor(0.6 * rng.normal(size=shape), dtype=dtype, requires_grad=True)


def flat(tree: Any) -> list[pullback.Tensor]:
    if isinstance(tree, pullback.Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (tuple, list)) else ()
    return [t for part in parts for t in flat(part)]


def loss_of(outs: list[pullback.Tensor], rng: np.random.Generator) -> Any:
    """A number that depends on each element of each result in another way."""
    floats = [t for t in outs if t.dtype.is_floating_point and t.requires_grad]
    return sum([(t * pullback.tensor(rng.normal(size=t.shape), dtype=t.dtype)).sum() for t in floats])


def check(f: Callable[..., Any], args: tuple[Any, ...], by: list[pullback.Tensor], backend: str, tol: float) -> Any:
    """Values and gradients of a function and of its compiled form; returns that."""
    compiled = pullback.compile(f, backend=backend)
    for _ in range(2):
        expected, found = flat(f(*args)), flat(compiled(*args))
        assert len(expected) == len(found)
        for a, b in zip(expected, found, strict=True):
            assert (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=tol, atol=tol)
        if any(t.requires_grad for t in expected):
            pairs = []
            for outs in (expected, found):
                pairs.append(pullback.autograd.grad(loss_of(outs, np.random.default_rng(1)), by, allow_unused=True))
            for a, b in zip(*pairs, strict=True):
                assert (a is None) <= (b is None or not b.any())
                if a is not None and b is not None:
                    assert (a.dtype, a.shape) == (b.dtype, b.shape)
                    np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=20 * tol, atol=20 * tol)
                else:
                    assert a is None or not a.any()
    return compiled


# Programs of steps, made at random ------------------------------------------------------------------------------------


def made_step(seed: int, dtype: Any) -> tuple[Callable[..., Any], tuple[Any, ...], list[pullback.Tensor]]:
    """A function with a scan in it, its arguments, and the tensors by which it has gradients."""
    rng = np.random.default_rng(seed)
    rows, width = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    n, reverse = int(rng.integers(2, 7)), bool(rng.integers(2))
    weight, bias, gain = leaf(rng, width, width, dtype=dtype), leaf(rng, width, dtype=dtype), leaf(rng, dtype=dtype)
    init = {
        "h": leaf(rng, rows, width, dtype=dtype),
        "late": [leaf(rng, rows, width, dtype=dtype), (leaf(rng, width, dtype=dtype),)],
        "n": pullback.tensor(int(rng.integers(3))),
        "s": leaf(rng, dtype=dtype),
    }
    xs = (leaf(rng, n, rows, width, dtype=dtype), {"mask": pullback.tensor(rng.normal(size=(n, width)) > 0)}, None)
    unary = [
        pullback.tanh,
        pullback.sin,
        lambda v: v * v * 0.3,
        lambda v: v.t() if v.ndim == 2 and v.shape[0] == v.shape[1] else -v,
        lambda v: pullback.softmax(v, -1) if v.ndim else v,
        lambda v: v.flip(0) if v.ndim else v,
        lambda v: v.reshape(-1).reshape(v.shape),
        lambda v: pullback.exp(-v * v),
    ]
    how = rng.integers(0, 10**6, size=40)
    written = int(rng.integers(6))

    def step(carry: Any, x: Any) -> Any:
        element, others, nothing = x
        assert nothing is None
        choice = iter(how.tolist())
        pool = [carry["h"], element, *carry["late"][:1], bias, carry["s"], carry["late"][1][0], gain]
        for _ in range(1 + written):
            a, b = (pool[next(choice) % len(pool)] for _ in range(2))
            kind = next(choice) % 6
            if kind == 0:
                made = unary[next(choice) % len(unary)](a)
            elif kind == 1 and a.ndim == 2:
                made = a @ weight
            elif kind == 2 and a.ndim:
                made = a.sum(-1, keepdim=True) * 0.1 + a
            elif kind == 3 and a.ndim:
                made = pullback.where(others["mask"], a, a * carry["n"])
            elif kind == 4 and a.ndim == 2:
                made = pullback.cat([a[1:], a[:1]], 0)
            else:
                made = a * b * 0.5 + a if a.shape == b.shape or b.ndim == 0 or a.ndim == 0 else a + gain
            pool.append(made)
        whole = [v for v in pool if v.shape == carry["h"].shape]
        lines = [v for v in pool if v.shape == bias.shape]
        numbers = [v for v in pool if v.ndim == 0]
        following = {
            "h": whole[next(choice) % len(whole)],
            "late": [[carry["h"], carry["late"][0]][next(choice) % 2], (lines[next(choice) % len(lines)],)],
            "n": [carry["n"] + 1, carry["n"]][next(choice) % 2],
            "s": [numbers[next(choice) % len(numbers)], carry["s"] * 0.5 + pool[-1].sum() * 0.1][next(choice) % 2],
        }
        outs = [pool[next(choice) % len(pool)], following["h"], bias, None, following["n"], element]
        return following, [outs[next(choice) % len(outs)] for _ in range(next(choice) % 4)]

    def function(init: Any, xs: Any) -> Any:
        return func.scan(step, init, xs, reverse=reverse)

    return function, (init, xs), [*(t for t in flat((init, xs)) if t.requires_grad), weight, bias, gain]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(24))
def test_random_steps(seed: int, backend: str) -> None:
    function, args, by = made_step(seed, F64)
    assert is_rolled(check(function, args, by, backend, 1e-10))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(100, 106))
def test_random_steps_of_float32(seed: int, backend: str) -> None:
    function, args, by = made_step(seed, F32)
    assert is_rolled(check(function, args, by, backend, 2e-5))
