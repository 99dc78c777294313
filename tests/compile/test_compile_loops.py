"""`func.scan`, `fori_loop` and `while_loop` in compiled functions: one loop of the program, by the loop written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.compile.backends import c

from .backends import BACKENDS

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
    return func.scan(
        lambda c, x: ((c[0].detach() * 2, pullback.sin(c[1] + c[0]) * x), c[0] * x), (start, start), inputs
    )


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
    return func.scan(
        lambda z, x: (z * z * 0.3 + pullback.complex(x, start), z.real), pullback.complex(start, start), inputs
    )


STEPS = [
    _nested, _constants, _detached, _cut, _takes_grad_inside, _writes_to_its_own, _closes_over_a_result, _numbers,
    _many,
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


# Other loops ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_fori_loop(backend: str) -> None:
    def function(start: Any, inputs: Any) -> Any:
        weight = inputs.sum(0)
        last = func.fori_loop(2, 9, lambda i, v: {"a": pullback.sin(v["a"] * i + weight), "b": v["b"] + v["a"]}, start)
        return last["a"], last["b"]

    _, start, inputs = tensors()
    by = [start, inputs]
    compiled = check(lambda s, x: function({"a": s, "b": s * 2}, x), (start, inputs), by, backend, 1e-10)
    assert is_rolled(compiled)


def _divides(start: Any, inputs: Any) -> Any:
    return func.fori_loop(0, 5, lambda i, v: v * (i / 3) + 1, start)


def _subscripts(start: Any, inputs: Any) -> Any:
    return func.fori_loop(0, 5, lambda i, v: v + inputs[i], start)


def _chooses(start: Any, inputs: Any) -> Any:
    return func.fori_loop(0, 5, lambda i, v: v * 2 if i == 3 else v + inputs[0], start)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [_divides, _subscripts, _chooses])
def test_a_number_that_python_computes_with_is_written_out(function: Callable[..., Any], backend: str) -> None:
    _, start, inputs = tensors()
    compiled = check(function, (start, inputs), [start, inputs], backend, 1e-12)
    (entry,) = _entries(compiled)
    assert len(entry.traced.written_out) == 1
    assert not entry.forward.rounds


def _root(a: Any) -> Any:
    return func.while_loop(lambda x: (abs(x * x - a) > 1e-5).any(), lambda x: (x + a / x) / 2, a)


def _first_above(a: Any) -> Any:
    last = func.while_loop(
        lambda c: (c["sum"] < 10) & (c["n"] < 30),
        lambda c: {"sum": c["sum"] + a[0].abs(), "n": c["n"] + 1},
        {"sum": 0.0, "n": 0},
    )
    return last["sum"], last["n"]


def _no_step(a: Any) -> Any:
    return func.while_loop(lambda x: x.sum() < -100, lambda x: x * 2, a)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [_root, _no_step])
def test_while_loop(function: Callable[..., Any], backend: str) -> None:
    compiled = pullback.compile(function, backend=backend)
    for values in ([0.5, 2.0, 7.0], [1.0, 1.0, 1.0], [1e-3, 1e3, 4.0]):
        a, b = (pullback.tensor(values, dtype=F64, requires_grad=True) for _ in range(2))
        expected, found = function(a), compiled(b)
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-14)
        (g,), (h,) = (pullback.autograd.grad((o * o).sum(), [t]) for o, t in ((expected, a), (found, b)))
        np.testing.assert_allclose(h.numpy(), g.numpy(), rtol=1e-12)
    (entry,) = _entries(compiled)
    assert is_rolled(compiled)
    assert "Reverse-mode differentiation does not work" in entry.traced.problem


@pytest.mark.parametrize("backend", BACKENDS)
def test_while_loop_of_a_nest(backend: str) -> None:
    compiled = pullback.compile(_first_above, backend=backend)
    for x in (0.7, 3.0, 100.0):
        a = pullback.tensor([x], dtype=F64)
        for one, other in zip(flat(_first_above(a)), flat(compiled(a)), strict=True):
            assert (one.dtype, one.item()) == (other.dtype, pytest.approx(other.item()))


def test_the_gradient_of_while_loop_within_a_compiled_function_is_refused() -> None:
    compiled = pullback.compile(lambda a: func.grad(lambda v: _root(v).sum())(a))
    with pytest.raises(RuntimeError, match=r"Reverse-mode differentiation does not work for while_loop\(\)"):
        compiled(pullback.ones(3))


def test_a_condition_that_is_no_bool_is_refused() -> None:
    for cond in (lambda x: x.sum(), lambda x: x > 0):
        with pytest.raises(TypeError, match="cond_fun must return a boolean scalar"):
            pullback.compile(lambda a, cond=cond: func.while_loop(cond, lambda x: x / 2, a))(pullback.ones(3))


# Sizes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("backend", BACKENDS)
def test_few_steps(n: int, backend: str) -> None:
    _, start, _ = tensors()
    inputs = pullback.tensor(RNG.normal(size=(n, 3)), requires_grad=True)

    def function(start: Any, inputs: Any) -> Any:
        last, ys = func.scan(lambda h, x: (pullback.sin(h * x), (h, None, {"k": x.sum()})), start, inputs)
        return last, ys[0], ys[2]["k"]

    check(function, (start, inputs), [start, inputs], backend, 1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_elements(backend: str) -> None:
    start, inputs = pullback.zeros(0, 3, requires_grad=True), pullback.zeros(4, 0, 3, requires_grad=True)
    function = lambda s, x: func.scan(lambda h, y: (pullback.tanh(h * y), h.sum()), s, x)  # noqa: E731
    check(function, (start, inputs), [start, inputs], backend, 1e-12)


@pytest.mark.parametrize("dtype", [F32, F64, pullback.float16, pullback.bfloat16, pullback.complex64])
@pytest.mark.parametrize("backend", BACKENDS)
def test_dtypes(dtype: Any, backend: str) -> None:
    start, inputs = (pullback.tensor(a, dtype=dtype, requires_grad=True) for a in (START, INPUTS))
    tol = {F64: 1e-12, F32: 1e-5, pullback.complex64: 1e-5}.get(dtype, 2e-2)
    compiled = pullback.compile(lambda s, x: func.scan(lambda h, y: (h * y + h, h * 2), s, x)[0], backend=backend)
    expected, found = func.scan(lambda h, y: (h * y + h, h * 2), start, inputs)[0], compiled(start, inputs)
    assert expected.dtype == found.dtype
    pairs = [[out, *pullback.autograd.grad((out * out).sum().abs(), [start, inputs])] for out in (expected, found)]
    for a, b in zip(*pairs, strict=True):
        assert a.dtype == b.dtype
        a, b = (t.detach().to(pullback.complex128 if dtype.is_complex else F64).numpy() for t in (a, b))
        np.testing.assert_allclose(b, a, rtol=tol, atol=tol)


def _sizes(compiled: Any) -> list[int]:
    """The count of values of a program, and of the lines of its plans and of those of its loops."""
    (entry,) = _entries(compiled)
    found = [len(entry.traced.lowered.program.values)]
    for plan in (entry.forward, *entry.backward_plans()):
        found.append(plan.source.count("\n"))
        for inner in plan.rounds.values():
            rounds = inner._rounds
            found += [inner.source.count("\n"), len(inner.stages), len({*rounds.nexts, *rounds.ys})]
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_program_of_many_steps_is_that_of_a_few(backend: str) -> None:
    sizes = []
    for n in (2, 20, 2000):
        compiled = pullback.compile(network, backend=backend)
        weight, start, _ = tensors()
        inputs = pullback.tensor(0.1 * RNG.normal(size=(n, 3)), requires_grad=True)
        out = compiled(weight, start, inputs)
        pullback.autograd.grad(out, [weight, start, inputs])
        sizes.append(_sizes(compiled))
    assert sizes[0] == sizes[1] == sizes[2]


def test_steps_of_loops_alone_are_one_call_of_c() -> None:
    if not c.available():
        pytest.skip("no C compiler")
    compiled = pullback.compile(lambda s, x: func.scan(lambda h, y: (pullback.sin(h + y), h * y), s, x), backend="c")
    _, start, inputs = tensors()
    last, ys = compiled(start, inputs)
    pullback.autograd.grad(last.sum() + (ys * ys).sum(), [start, inputs])
    text = compiled.explain()
    assert text.count("5 steps, one call of C; a step:") == 1
    assert text.count("5 steps, from the end, one call of C; a step:") == 1
    (entry,) = _entries(compiled)
    assert ["for " in plan.source for plan in entry.forward.rounds.values()] == [False]


def test_memory_is_used_again() -> None:
    """A step of loops and products takes no memory: that of all steps is taken before the first."""
    compiled = pullback.compile(network, backend="numpy")
    pullback.autograd.grad(compiled(*(args := tensors())), args)
    (entry,) = _entries(compiled)
    plans = [p for plan in (entry.forward, *entry.backward_plans()) for p in plan.rounds.values()]
    assert len(plans) == 2
    for plan in plans:
        before, _, body = plan.source.partition("    for ")
        assert "()\n" in before
        assert body
        assert "()\n" not in body


# Bad input ------------------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "a carry of another shape": (
        lambda s, x: func.scan(lambda h, y: (h[:2], y), s, x), TypeError, "must return a carry of equal types"
    ),
    "a carry of another dtype": (
        lambda s, x: func.scan(lambda h, y: (h.to(F32), y), s, x), TypeError, "must return a carry of equal types"
    ),
    "a carry of another nesting": (
        lambda s, x: func.scan(lambda h, y: ((h, h), y), s, x), TypeError, "must return a carry of equal types"
    ),
    "no pair": (lambda s, x: func.scan(lambda h, y: h, s, x), TypeError, "scan body output must be a pair"),
    "a write to the carry": (
        lambda s, x: func.scan(lambda h, y: (h.add_(y), y), s, x), RuntimeError, "wrote to an argument in place"
    ),
    "a write to an element": (
        lambda s, x: func.scan(lambda h, y: (h + y.mul_(2), y), s, x), RuntimeError, "wrote to an argument in place"
    ),
    "lengths that differ": (
        lambda s, x: func.scan(lambda h, y: (h, y), s, (x, x[:2])), ValueError, "different leading axis sizes: 2, 5"
    ),
    "another length": (lambda s, x: func.scan(lambda h, y: (h, y), s, x, length=3), ValueError, "disagrees with"),
    "no length": (lambda s, x: func.scan(lambda h, y: (h, y), s), ValueError, "no values to scan over"),
    "no axis": (lambda s, x: func.scan(lambda h, y: (h, y), s, x[0, 0]), ValueError, "no leading axis to scan over"),
    "a bad hint": (lambda s, x: func.scan(lambda h, y: (h, y), s, x, unroll=-1), ValueError, "`unroll` to be an int"),
    "a bound that is no integer": (
        lambda s, x: func.fori_loop(0, 2.5, lambda i, h: h, s), TypeError, "upper as an integer"
    ),
}  # fmt: skip


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_refused_as_without_compile(case: str, requires_grad: bool) -> None:
    function, kind, words = REFUSED[case]
    if "write" in case and requires_grad:
        words = "wrote to an argument in place|leaf Variable"
    with pytest.raises(kind, match=words):
        function(*tensors(requires_grad)[1:])
    _, start, inputs = tensors(requires_grad)
    compiled = pullback.compile(function)
    with pytest.raises(RuntimeError if kind is RuntimeError else (kind, RuntimeError), match=words):
        compiled(start, inputs)
    assert (start.detach().numpy() == START).all()
    assert "element" in case or (inputs.detach().numpy() == INPUTS).all()  # an element is a view of the input


def test_a_value_that_python_reads_is_refused_with_its_line() -> None:
    compiled = pullback.compile(lambda s, x: func.scan(lambda h, y: (h if h.sum() > 0 else y, h), s, x))
    with pytest.raises(RuntimeError, match="the value of a tensor is used by Python"):
        compiled(*tensors()[1:])


def test_after_an_exception_in_a_step_all_is_as_before() -> None:
    fails = [True]

    def step(h: Any, x: Any) -> Any:
        if fails[0]:
            raise KeyError("not now")
        return h * x, h

    compiled = pullback.compile(lambda s, x: func.scan(step, s, x))
    _, start, inputs = tensors()
    with pytest.raises(KeyError, match="not now"):
        compiled(start, inputs)
    fails[0] = False
    for a, b in zip(compiled(start, inputs), func.scan(step, start, inputs), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy())


class _Interrupts:
    """A product that is interrupted when it is asked for the third time."""

    def __init__(self) -> None:
        self.left = 3

    def __call__(self, *args: Any) -> Any:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return np.matmul(*args)


def test_an_interrupt_between_two_steps() -> None:
    def function(weight: Any, start: Any, inputs: Any) -> Any:
        return func.scan(lambda h, x: (pullback.tanh(weight @ h + x), h), start, inputs)

    compiled = pullback.compile(function)
    args = tensors()
    expected = [t.detach().numpy().copy() for t in compiled(*args)]
    (entry,) = _entries(compiled)
    (plan,) = entry.forward.rounds.values()
    name = next(k for k, v in plan._space.items() if v is np.matmul)
    plan._space[name] = _Interrupts()
    with pytest.raises(KeyboardInterrupt):
        compiled(*args)
    plan._space[name] = np.matmul
    for a, b in zip(expected, compiled(*args), strict=True):
        assert (a == b.detach().numpy()).all()


def test_an_interrupt_ends_steps_in_c() -> None:
    """Many steps are several calls of C, so that Python hears of an interrupt."""
    if not c.available():
        pytest.skip("no C compiler")
    from pullback.compile.backends import c_rounds

    asked: list[int] = []

    def counted(*args: Any) -> Any:
        run = made(*args)

        def call(arrays: Any, outputs: Any) -> None:
            asked.append(int(arrays[0][1] - arrays[0][0]))
            run(arrays, outputs)

        return call

    made = c_rounds.with_numbers
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c_rounds, "with_numbers", counted)
        patch.setattr(c_rounds, "_PATIENCE", 2.0)
        compiled = pullback.compile(
            lambda s, x: func.scan(lambda h, y: (pullback.sin(h + y), h * y), s, x), backend="c"
        )
        _, start, _ = tensors(False)
        inputs = pullback.tensor(RNG.normal(size=(300, 3)))
        found = compiled(start, inputs)
    assert len(asked) > 1
    assert sum(asked) == 300
    for a, b in zip(func.scan(lambda h, y: (pullback.sin(h + y), h * y), start, inputs), found, strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-12, atol=1e-12)


def test_a_compiler_that_fails_for_the_loop() -> None:
    """The steps run as NumPy's functions, and one warning says so."""
    if not c.available():
        pytest.skip("no C compiler")
    from pullback.compile.backends import cache
    from pullback.compile.plan import plan

    def fails(*args: Any) -> Any:
        raise cache.CompilerError("no space left")

    function = lambda s, x: func.scan(lambda h, y: (pullback.sin(h + y), h * y), s, x)  # noqa: E731
    _, start, inputs = tensors()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "load", fails)
        patch.setattr(cache, "load_all", lambda sources: [*sources])
        patch.setattr(plan, "_told", set())
        with pytest.warns(UserWarning, match="no space left") as told:
            check(function, (start, inputs), [start, inputs], None, 1e-10)
        assert len(told) == 1
        with pytest.raises(cache.CompilerError, match="no space left"):
            pullback.compile(function, backend="c")(start, inputs)


def test_a_write_to_a_result_that_backward_reads_is_noticed() -> None:
    compiled = pullback.compile(lambda s, x: func.scan(lambda h, y: ((t := pullback.tanh(h + y)), t), s, x)[1])
    _, start, inputs = tensors()
    out = compiled(start, inputs)
    total = out.sum()
    with pullback.no_grad():
        out.mul_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pullback.autograd.grad(total, [start, inputs])


def test_results_have_memory_of_their_own() -> None:
    def function(s: Any, x: Any) -> Any:
        return func.scan(lambda c, y: ((c[0], c[0] * 1, c[2] + y), (c[2], c[2], y)), (s, s, s), x)

    compiled = pullback.compile(function)
    first = flat(compiled(*tensors(False)[1:]))
    kept = [t.numpy().copy() for t in first]
    second = flat(compiled(*tensors(False)[1:]))
    for i, a in enumerate([*first, *second]):
        for b in [*first, *second][i + 1 :]:
            assert not np.shares_memory(a.numpy(), b.numpy())
    for t in second:
        t.zero_()
    assert all((a == t.numpy()).all() for a, t in zip(kept, first, strict=True))
