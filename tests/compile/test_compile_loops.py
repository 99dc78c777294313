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


# Other derivatives ----------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
WEIGHT, START, INPUTS = 0.4 * RNG.normal(size=(3, 3)), RNG.normal(size=3), RNG.normal(size=(5, 3))


def tensors(requires_grad: bool = True) -> tuple[pullback.Tensor, ...]:
    return tuple(pullback.tensor(a, requires_grad=requires_grad) for a in (WEIGHT, START, INPUTS))


def network(weight: Any, start: Any, inputs: Any) -> Any:
    """A number of a scan that reads a tensor and what is computed from it, which its graph passes on to one another."""
    double = weight * 2

    def step(carry: Any, x: Any) -> Any:
        state = pullback.tanh(weight @ carry["state"] + x * double.sum() * 0.1)
        return {"state": state, "n": carry["n"] + 1}, (state.sum(), [carry["state"] * carry["n"]])

    last, (sums, (weighted,)) = func.scan(step, {"state": start, "n": 1.0}, inputs, reverse=True)
    return (last["state"] ** 2).sum() * last["n"] + (sums**2).sum() + (weighted[1] * inputs[0]).sum()


MODES: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(f, (0, 1, 2))(*tensors()),
    "hessian": lambda f: func.hessian(f, (0, 1))(*tensors()),
    "jacrev of jacrev": lambda f: func.jacrev(func.jacrev(f, 0), 2)(*tensors()),
    "third": lambda f: func.jacrev(func.jacrev(func.grad(f, 1), 1), 1)(*tensors(False)),
    "jacfwd": lambda f: func.jacfwd(f, 0)(*tensors()),
    "jvp": lambda f: func.jvp(f, tensors(), tensors()),
    "jvp of grad": lambda f: func.jvp(func.grad(f, 2), tensors(), tensors())[1],
    "vmap": lambda f: func.vmap(f, (None, 0, None))(
        tensors()[0], pullback.tensor(np.stack([START, -START])), tensors()[2]
    ),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_a_compiled_function(mode: str, backend: str) -> None:
    compiled = pullback.compile(network, backend=backend)
    for a, b in zip(flat(MODES[mode](network)), flat(MODES[mode](compiled)), strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_within_a_compiled_function(mode: str, backend: str) -> None:
    def within(weight: Any, start: Any, inputs: Any) -> Any:
        given = {
            "grad": lambda: func.grad(network, (0, 1, 2))(weight, start, inputs),
            "hessian": lambda: func.hessian(network, (0, 1))(weight, start, inputs),
            "jacrev of jacrev": lambda: func.jacrev(func.jacrev(network, 0), 2)(weight, start, inputs),
            "third": lambda: func.jacrev(func.jacrev(func.grad(network, 1), 1), 1)(weight, start, inputs),
            "jacfwd": lambda: func.jacfwd(network, 0)(weight, start, inputs),
            "jvp": lambda: func.jvp(network, (weight, start, inputs), (weight, start, inputs)),
            "jvp of grad": lambda: func.jvp(func.grad(network, 2), (weight, start, inputs), (weight, start, inputs))[1],
            "vmap": lambda: func.vmap(lambda s: network(weight, s, inputs))(pullback.stack([start, -start])),
        }
        return given[mode]()

    compiled = pullback.compile(within, backend=backend)
    for requires_grad in (False, True):
        args = tensors(requires_grad)
        expected, found = flat(within(*args)), flat(compiled(*args))
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-9, atol=1e-9)
        if requires_grad:
            pairs = [pullback.autograd.grad(loss_of(outs, RNG_OF(2)), args) for outs in (expected, found)]
            for a, b in zip(*pairs, strict=True):
                np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-8, atol=1e-8)


RNG_OF = np.random.default_rng


def test_gradients_within_a_compiled_function_are_a_loop() -> None:
    compiled = pullback.compile(lambda *given: func.grad(network, (0, 1, 2))(*given), backend="numpy")
    compiled(*tensors(False))
    (entry,) = _entries(compiled)
    assert [plan._rounds.name for plan in entry.forward.rounds.values()] == ["scan", "scan, backward"]
    assert entry.traced.written_out == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_recorded_pass_and_derivatives_of_it(backend: str) -> None:
    compiled = pullback.compile(network, backend=backend)
    found = []
    for f in (network, compiled):
        args = tensors()
        first = pullback.autograd.grad(f(*args), args, create_graph=True)
        second = pullback.autograd.grad(sum([(g * g).sum() for g in first]), args, create_graph=True)
        found.append([*first, *second, *pullback.autograd.grad(sum([g.sum() for g in second]), args)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("present", [(0,), (1,), (0, 1)])
def test_some_results_have_no_cotangent(present: tuple[int, ...], backend: str) -> None:
    def function(weight: Any, start: Any, inputs: Any) -> Any:
        return func.scan(lambda h, x: ((t := pullback.tanh(weight @ h + x)), t * h), start, inputs)

    compiled = pullback.compile(function, backend=backend)
    found = []
    for f in (function, compiled):
        args = tensors()
        outs = f(*args)
        found.append(pullback.autograd.grad(sum([(outs[i] ** 2).sum() for i in present]), args))
        found[-1] += pullback.autograd.grad(f(*args)[1].sum(), args[1:2])  # all elements of the cotangent are one
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-10, atol=1e-12)


# What a step may do ---------------------------------------------------------------------------------------------------


def _nested(start: Any, inputs: Any) -> Any:
    def outer(h: Any, x: Any) -> Any:
        last, ys = func.scan(lambda c, y: (pullback.sin(c + y * h), c * h), x, inputs)
        return pullback.tanh(h + last), ys.sum(0)

    return func.scan(outer, start, inputs)


def _constants(start: Any, inputs: Any) -> Any:
    ones, table = pullback.ones(3, dtype=F64), np.arange(3.0)

    def step(h: Any, x: Any) -> Any:
        return pullback.sin(h * ones + x * table + pullback.eye(3, dtype=F64)[0]), pullback.zeros(2)

    return func.scan(step, start, inputs)


def _detached(start: Any, inputs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        with pullback.no_grad():
            scale = h.abs().max()
        return pullback.sin(h + x).detach() * x + h / (1 + scale), h.detach() * x

    return func.scan(step, start, inputs)


def _cut(start: Any, inputs: Any) -> Any:
    return func.scan(lambda c, x: ((c[0].detach() * 2, pullback.sin(c[1] + c[0]) * x), c[0] * x), (start, start), inputs)


def _takes_grad_inside(start: Any, inputs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        slope = func.grad(lambda v: (pullback.sin(v) * h * x).sum())(h)
        return h - 0.1 * slope, slope

    return func.scan(step, start, inputs)


def _writes_to_its_own(start: Any, inputs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        t = h * x
        t[0] = x[1] * h[2]
        t.mul_(0.5)
        return t + h, t

    return func.scan(step, start, inputs)


def _closes_over_a_result(start: Any, inputs: Any) -> Any:
    last, ys = func.scan(lambda h, x: (pullback.sin(h * x), h), start, inputs)
    again, zs = func.scan(lambda h, x: (h * last + ys.sum(0) * x, (h, start)), last, ys, reverse=True)
    return again, zs


def _numbers(start: Any, inputs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        return (c[0] + 0.5, c[1] * True, {"k": c[2]["k"] * x[0]}, None), c[0]

    return func.scan(step, (1.0, True, {"k": 2.0}, None), inputs)


def _many(start: Any, inputs: Any) -> Any:
    return func.scan(lambda c, _: ((c[1], c[2], c[0]), c), (start, start * 2, inputs[0]), length=7)


def _linear_algebra(start: Any, inputs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        a = pullback.outer(h, x) * 0.1 + pullback.eye(3, dtype=F64)
        values, order = pullback.sort(pullback.linalg.solve(a, x))
        return pullback.cumsum(values, 0) * 0.3, (order, pullback.logsumexp(h, 0))

    return func.scan(step, start, inputs)


def _no_carry(start: Any, inputs: Any) -> Any:
    return func.scan(lambda _, x: (None, (x * start).exp()), None, inputs)


def _complex(start: Any, inputs: Any) -> Any:
    return func.scan(lambda z, x: (z * z * 0.3 + pullback.complex(x, start), z.real), pullback.complex(start, start), inputs)


STEPS = [
    _nested, _constants, _detached, _cut, _takes_grad_inside, _writes_to_its_own, _closes_over_a_result, _numbers, _many,
    _linear_algebra, _no_carry, _complex,
]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", STEPS, ids=lambda f: f.__name__)
def test_what_a_step_may_do(function: Callable[..., Any], backend: str) -> None:
    _, start, inputs = tensors()
    assert is_rolled(check(function, (start, inputs), [start, inputs], backend, 1e-10))


def _counts(start: Any, inputs: Any) -> Any:
    calls: list[int] = []

    def step(h: Any, x: Any) -> Any:
        calls.append(1)
        return h * len(calls) + x, h

    return func.scan(step, start, inputs)


def _takes_from_an_iterator(start: Any, inputs: Any) -> Any:
    numbers = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    return func.scan(lambda h, x: (h * next(numbers) + x, h), start, inputs)


def _writes_to_what_it_closes_over(start: Any, inputs: Any) -> Any:
    total = start * 0

    def step(h: Any, x: Any) -> Any:
        total.add_(h)
        return h * x, total * 2

    return (*func.scan(step, start, inputs), total)


def _writes_to_a_constant(start: Any, inputs: Any) -> Any:
    count = pullback.zeros(1, dtype=F64)

    def step(h: Any, x: Any) -> Any:
        count.add_(1)
        return h * x, h + count

    return func.scan(step, start, inputs)


def _fills_a_buffer(start: Any, inputs: Any) -> Any:
    buffer = pullback.zeros(3, dtype=F64)

    def step(h: Any, x: Any) -> Any:
        buffer.copy_(h.detach() + buffer)
        return h * x, h + buffer

    return (*func.scan(step, start, inputs), buffer)


class _Cube(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def _has_a_function(start: Any, inputs: Any) -> Any:
    return func.scan(lambda h, x: (_Cube.apply(h) * 0.1 + x, h), start, inputs)


def _has_a_hook(start: Any, inputs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        t = h * x
        t.register_hook(lambda g: g * 2)
        return pullback.sin(t), h

    return func.scan(step, start, inputs)


def _asks_for_all_steps(start: Any, inputs: Any) -> Any:
    return func.scan(lambda h, x: (h * x, h), start, inputs, unroll=True)


WRITTEN_OUT = {
    _counts: "not the same each time",
    _takes_from_an_iterator: "iterator",
    _writes_to_what_it_closes_over: "WrittenInStepError",
    _writes_to_a_constant: "not the same each time",
    _fills_a_buffer: "WrittenInStepError",
    _has_a_function: "code of yours",
    _has_a_hook: "code of yours",
    _asks_for_all_steps: "",
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", WRITTEN_OUT, ids=lambda f: f.__name__)
def test_what_is_written_out(function: Callable[..., Any], backend: str) -> None:
    _, start, inputs = tensors()
    compiled = check(function, (start, inputs), [start, inputs], backend, 1e-10)
    (entry,) = _entries(compiled)
    assert not entry.forward.rounds
    assert all(WRITTEN_OUT[function] in reason for reason in entry.traced.written_out)
    assert len(entry.traced.written_out) == (WRITTEN_OUT[function] != "")
    assert all(reason in compiled.explain() for reason in entry.traced.written_out)
