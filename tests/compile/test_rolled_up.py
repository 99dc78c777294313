"""Loops of Python's in compiled functions: equal steps are one loop of the program, and give what the function does."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.tensor.nested import leaves

from .backends import BACKENDS
from .random_loops import made

equal_steps: Any = importlib.import_module("pullback.compile.equal_steps")
rolling: Any = importlib.import_module("pullback.compile.rolling")
N = 20
Loops = tuple[list[int], list[int]]


def loops(compiled: Any) -> Loops:
    """The numbers of steps of the loops of a compiled function's programs, forward and backward."""
    found: Loops = [], []
    for entries in compiled._entries.values():
        for entry in entries:
            for steps, plans in zip(found, ([entry.forward], entry.backward_plans()), strict=True):
                steps += [value.fn.rounds.n for plan in plans for value in plan.rounds]
    return found


def arguments(seed: int, names: list[str], dtype: Any = pullback.float64) -> list[pullback.Tensor]:
    """The tensors that a program is called with, by their names."""
    rng = np.random.default_rng(seed)
    shapes = {
        "x": (N, 4, 3),
        "z": (4, N, 3),
        "y": (N, 5),
        "W": (5, 5),
        "U": (3, 5),
        "b": (5,),
        "v": (5,),
        "w": (5,),
        "k": (),
    }
    every = {name: 0.4 * rng.normal(size=shape) for name, shape in shapes.items()}
    return [pullback.tensor(every[name], dtype=dtype, requires_grad=True) for name in names]


def gradients(out: Any, by: list[pullback.Tensor]) -> list[Any]:
    """Those of a sum in which each element of each result counts differently."""
    outs = [t for t in leaves(out) if isinstance(t, pullback.Tensor) and t.requires_grad]
    terms = [(t * pullback.tensor(np.cos(np.arange(t.numel())).reshape(t.shape), dtype=t.dtype)).sum() for t in outs]
    return list(pullback.autograd.grad(sum(terms[1:], terms[0]), by, allow_unused=True)) if terms else []


def same(function: Any, compiled: Any, given: list[Any], tol: float = 1e-10) -> None:
    """Compare values and gradients."""
    by = [t for t in given if t.requires_grad]
    expected, found = function(*given), compiled(*given)
    for a, b in zip(leaves(expected), leaves(found), strict=True):
        if isinstance(a, pullback.Tensor):
            assert (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=tol, atol=tol)
    for a, b in zip(gradients(expected, by), gradients(found, by), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            scale = 1 + float(abs(a).max()) if a.numel() else 1.0
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=100 * tol, atol=10 * tol * scale)


# Loops as people write them -------------------------------------------------------------------------------------------


def recurrent(x: Any, W: Any, U: Any, b: Any) -> Any:
    h = pullback.zeros(4, 5, dtype=x.dtype)
    for t in range(N):
        h = pullback.tanh(x[t] @ U + h @ W + b)
    return (h * h).sum()


def all_states(x: Any, W: Any, U: Any, b: Any) -> Any:
    h, outs = pullback.zeros(4, 5, dtype=x.dtype), []
    for row in x:
        h = pullback.tanh(row @ U + h @ W + b)
        outs.append(h)
    return pullback.stack(outs)


def batch_first(z: Any, W: Any, U: Any, b: Any) -> Any:
    h, outs = pullback.zeros(4, 5, dtype=z.dtype), []
    for t in range(N):
        h = pullback.tanh(z[:, t] @ U + h @ W + b)
        outs.append(h)
    return pullback.stack(outs, 1), h


def from_the_end(x: Any, W: Any, U: Any, b: Any) -> Any:
    h, outs = pullback.zeros(4, 5, dtype=x.dtype), []
    for t in reversed(range(N)):
        h = pullback.tanh(x[t] @ U + h @ W + b)
        outs.append(h)
    return pullback.stack(outs[::-1])


def negative(x: Any, W: Any, U: Any, b: Any) -> Any:
    h = pullback.zeros(4, 5, dtype=x.dtype)
    for t in range(N):
        h = pullback.tanh(x[-1 - t] @ U + h @ W + b)
    return h


def leapfrog(v: Any, w: Any, k: Any) -> Any:
    for _ in range(N):
        v, w = w, 2 * w - v - k * pullback.sin(w) * 0.01
    return v, w


def three_back(v: Any, w: Any, k: Any) -> Any:
    p, q, r = v, w, v * w
    for _ in range(N):
        p, q, r = q, r, pullback.tanh(p + k * r) + q
    return r


def the_same_in_each(x: Any, W: Any, U: Any, b: Any, k: Any) -> Any:
    h = pullback.zeros(4, 5, dtype=x.dtype)
    for t in range(N):
        h = pullback.tanh(x[t] @ (U * k) + h @ (W * k).t() + b)
    return h


def gates(x: Any, W: Any, U: Any, b: Any) -> Any:
    h = c = pullback.zeros(4, 5, dtype=x.dtype)
    for row in x:
        z = row @ U + h @ W + b
        i = pullback.sigmoid(z)
        c = i * c + (1 - i) * pullback.tanh(z * 0.5)
        h = i * pullback.tanh(c)
    return h.sum() + (c**2).sum()


def layers(x: Any, W: Any, U: Any, b: Any) -> Any:
    h, outs = pullback.zeros(4, 5, dtype=x.dtype), []
    for row in x:
        h = pullback.tanh(row @ U + h @ W + b)
        outs.append(h)
    g = pullback.zeros(4, 5, dtype=x.dtype)
    for out in outs:
        g = pullback.sigmoid(out @ W + g)
    return g


def constants(v: Any, k: Any) -> Any:
    for _ in range(N):
        v = pullback.tanh(v * k + pullback.ones(5, dtype=v.dtype) * 0.1)
    return v


def other_constants(v: Any, k: Any) -> Any:
    for t in range(N):
        v = pullback.tanh(v * k + pullback.full((5,), 0.01 * t, dtype=v.dtype))
    return v


def numbers(v: Any, k: Any) -> Any:
    for t in range(N):
        v = pullback.tanh(v * k + 0.01 * t) * (1 + t)
    return v


def filled(x: Any, W: Any, U: Any, b: Any) -> Any:
    h, out = pullback.zeros(4, 5, dtype=x.dtype), pullback.zeros(N, 4, 5, dtype=x.dtype)
    for t in range(N):
        h = pullback.tanh(x[t] @ U + h @ W + b)
        out[t] = h
    return out


def stepped(v: Any, k: Any) -> Any:
    """Each row follows from the one before, which is read of the same buffer."""
    out = pullback.zeros(N + 1, 5, dtype=v.dtype)
    out[0] = v
    for t in range(N):
        out[t + 1] = out[t] + 0.1 * pullback.sin(k * out[t])
    return out


def columns(y: Any, k: Any) -> Any:
    out = pullback.zeros(5, N, dtype=y.dtype)
    for t in range(N):
        out[:, t] = y[t] * k
    return out


def written_twice(y: Any, k: Any) -> Any:
    """The second row of a step is the first of the next, which writes over it."""
    out = pullback.zeros(N + 1, 5, dtype=y.dtype)
    for t in range(N):
        out[t] = y[t] * k
        out[t + 1] = y[t] * 3
    return out


def two_columns(y: Any, k: Any) -> Any:
    out = pullback.zeros(N, 2, dtype=y.dtype)
    for t in range(N):
        out[t, 0] = y[t].sum() * k
        out[t, 1] = pullback.sin(y[t]).sum()
    return out


def losses(x: Any, W: Any, U: Any, b: Any, y: Any) -> Any:
    h, loss = pullback.zeros(4, 5, dtype=x.dtype), 0.0
    for t in range(N):
        h = pullback.tanh(x[t] @ U + h @ W + b)
        loss = loss + ((h - y[t]) ** 2).sum()
    return loss


def neighbours(y: Any) -> Any:
    return sum([((y[t + 1] - y[t]) ** 2).sum() for t in range(N - 1)])


def parts(y: Any, k: Any) -> Any:
    s = k * 0
    for t in range(N):
        s = s * k + y[t, 2] * y[t, 0]
    return s


def alternating(v: Any, w: Any, k: Any) -> Any:
    for t in range(2 * N):
        v = pullback.tanh(v * k + w) if t % 2 else pullback.sin(v - w)
    return v


def first_is_another(x: Any, W: Any, U: Any, b: Any) -> Any:
    h = pullback.zeros(4, 5, dtype=x.dtype)
    for t in range(N):
        h = pullback.tanh(x[t] @ U + h @ W + b) if t else pullback.sin(x[t] @ U)
    return h


def in_place(v: Any, w: Any, k: Any) -> Any:
    v = v * 1
    for _ in range(N):
        v *= k
        v += w
        v[2:] += 1
    return v


def gradient_inside(v: Any, k: Any) -> Any:
    def loss(v: Any) -> Any:
        for _ in range(N):
            v = pullback.tanh(v * k)
        return v.sum()

    return func.grad(loss)(v)


def descent(v: Any, w: Any) -> Any:
    for _ in range(N):
        v = v - 0.1 * func.grad(lambda q: ((q - w) ** 4).sum())(v)
    return v


def newton(k: Any) -> Any:
    a = x = k * k + 1
    for _ in range(N):
        x = (x + a / x) / 2
    return x


def chosen(v: Any, w: Any, k: Any) -> Any:
    for _ in range(N):
        v = pullback.where(v > w, v * k, v + w)
    return v


def doubled(v: Any) -> Any:
    """Its backward goes on with the operations of forward."""
    for _ in range(N):
        v = v * 2.0
    return v


def read_back(y: Any, k: Any) -> Any:
    """A row is read that was spread from one number; beside another loop."""
    out, total, row = pullback.zeros(N, 5, dtype=y.dtype), 0.0, y[0]
    for _ in range(N):
        k = pullback.sin(k)
    for t in range(N):
        out[t] = y[t].sum() * k
        row = out[t]
        total = total + (row * y[t]).sum() + out[t - 1, 0]
    return total, row


def spread(y: Any, k: Any) -> Any:
    out, s = pullback.zeros(N, 5, dtype=y.dtype), k
    for t in range(N):
        s = s * k + y[t].sum()
        out[t] = s
    return out


def kalman(x: Any, W: Any, k: Any) -> Any:
    m, S, total = pullback.zeros(5, dtype=x.dtype), pullback.eye(5, dtype=x.dtype), 0.0
    for t in range(N):
        m, S = W @ m, W @ S @ W.t() + pullback.eye(5, dtype=x.dtype) * k**2
        e, s = x[t, 0, 0] - m[0], S[0, 0] + 1
        K = S[:, 0] / s
        m, S = m + K * e, S - pullback.outer(K, S[0])
        total = total - 0.5 * (pullback.log(s) + e * e / s)
    return total


def numbers_of_each(y: Any, k: Any) -> Any:
    s, outs = pullback.zeros(5, dtype=y.dtype), []
    for t in range(N):
        s = s * k + y[t]
        outs.append(s.sum())
    return outs


# Each with the steps of its loops, forward and backward. The first steps and the last may differ from the others.
LOOPS: dict[Callable[..., Any], Loops] = {
    recurrent: ([20], [18]),
    all_states: ([20], [18]),
    batch_first: ([20], [18]),
    from_the_end: ([20], [18]),
    negative: ([20], [18]),
    leapfrog: ([20], [19]),
    three_back: ([20], [19]),
    the_same_in_each: ([19], [18]),
    gates: ([20], [18]),
    layers: ([20, 19], [19, 18]),
    constants: ([20], [19]),
    other_constants: ([20], [19]),
    numbers: ([20], [19]),
    filled: ([20], [18]),
    stepped: ([20], []),
    columns: ([20], [19]),
    written_twice: ([19], []),
    two_columns: ([20], [19]),
    losses: ([19], [18]),
    neighbours: ([17, 18], [18]),
    parts: ([20], [19]),
    alternating: ([20], [19]),
    first_is_another: ([19], [18]),
    in_place: ([20], [19]),
    gradient_inside: ([20, 20], [19, 19]),
    descent: ([19], [19]),
    newton: ([20], [18]),
    chosen: ([20], [19]),
    doubled: ([20], [20]),
    read_back: ([20], []),
    spread: ([], [18]),
    kalman: ([18], [18]),
    numbers_of_each: ([20], [18]),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_loops_as_people_write_them(function: Callable[..., Any], backend: str) -> None:
    compiled, names = pullback.compile(function, backend=backend), [*inspect.signature(function).parameters]
    for seed in range(3):
        same(function, compiled, arguments(seed, names))
    assert loops(compiled) == LOOPS[function]


@pytest.mark.parametrize("function", [recurrent, gates, stepped, numbers, neighbours], ids=lambda f: f.__name__)
def test_single_precision(function: Callable[..., Any]) -> None:
    compiled, names = pullback.compile(function), [*inspect.signature(function).parameters]
    same(function, compiled, arguments(0, names, pullback.float32), 2e-5)
    assert loops(compiled) == LOOPS[function]


@pytest.mark.parametrize("function", [recurrent, stepped, leapfrog], ids=lambda f: f.__name__)
def test_some_gradients_alone(function: Callable[..., Any]) -> None:
    compiled, names = pullback.compile(function), [*inspect.signature(function).parameters]
    for i in range(len(names)):
        given = arguments(i, names)
        found = [
            pullback.autograd.grad(sum(t.sum() for t in leaves(f(*given))), given[i])[0] for f in (function, compiled)
        ]
        np.testing.assert_allclose(found[1].numpy(), found[0].numpy(), rtol=1e-9)
    assert loops(compiled)[0] == LOOPS[function][0]


def test_results_of_which_some_have_a_cotangent_take_the_same_forward_loop() -> None:
    def function(x: Any, W: Any, U: Any, b: Any) -> Any:
        h = g = pullback.zeros(4, 5, dtype=x.dtype)
        outs = []
        for row in x:
            h = pullback.tanh(row @ U + h @ W)
            g = pullback.sin(g * b + h)
            outs.append(h)
        return pullback.stack(outs), g.sum(), (outs[7] * outs[3]).sum()

    compiled, given = pullback.compile(function), arguments(0, ["x", "W", "U", "b"])
    for i in (1, 2, 0):
        found = [pullback.autograd.grad(f(*given)[i].sum(), given[:3]) for f in (function, compiled)]
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-9, atol=1e-12)
    (entry,) = [e for entries in compiled._entries.values() for e in entries]
    for plan in entry.backward_plans():  # what forward has computed is not computed again
        assert all(value.fn.rounds.reverse for value in plan.rounds)


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_loops(backend: str) -> None:
    functions = [made(seed) for seed in range(60 if backend == "numpy" else 12)]
    rolled = [_agrees(function, backend, text) for function, text in functions]
    assert sum(rolled) > len(rolled) / 4


@pytest.mark.parametrize("seed", range(100, 140))
def test_random_loops_in_which_a_few_equal_steps_are_a_loop(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_steps, "FEWEST", 3)
    function, text = made(seed)
    _agrees(function, "numpy", text)


def _agrees(function: Any, backend: str, text: str) -> bool:
    """Whether a function has a loop; that it gives the same with it."""
    compiled = pullback.compile(function, backend=backend)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        given = [pullback.tensor(0.4 * rng.normal(size=shape)) for shape in ((24, 5), (24, 5), (5, 5), ())]
        given = [t.double().requires_grad_(i != seed + 1) for i, t in enumerate(given)]
        with contextlib.suppress(RuntimeError):  # a row is read whose buffer is written to later
            gradients(function(*given), [t for t in given if t.requires_grad])
        try:
            same(function, compiled, given, 1e-9)
        except AssertionError as error:
            raise AssertionError(text) from error
    return bool(loops(compiled)[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_step_is_given_and_what_it_makes_have_names_of_their_own(backend: str) -> None:
    def function(x: Any, *given: Any) -> Any:
        h = x[0]
        for row in x:
            turned = (row + h)[[1, 2, 0]]
            y = turned
            for g in given:
                y = y + pullback.sin(g * y)
            h = pullback.tanh(y)
        return h, turned, y

    for count in range(1, 13):
        rng = np.random.default_rng(count)
        tensors = [pullback.tensor(rng.normal(size=shape)) for shape in ((N, 3), *[(3,)] * count)]
        compiled = pullback.compile(function, backend=backend)
        same(function, compiled, tensors)
        assert loops(compiled)[0]


def test_zeros_of_both_signs_are_two_numbers() -> None:
    def function(v: Any) -> Any:
        for t in range(N):
            v = v + (-0.0 if t < N - 1 else 0.0)
        return v

    for backend in ("numpy", "eager"):
        found = pullback.compile(function, backend=backend)(pullback.tensor([-0.0, 0.0]))
        assert np.signbit(found.numpy()).tolist() == [False, False]


# What it costs --------------------------------------------------------------------------------------------------------


def test_the_program_of_many_steps_is_as_long_as_that_of_few() -> None:
    def function(x: Any, W: Any, U: Any) -> Any:
        h = pullback.zeros(4, 5, dtype=x.dtype)
        for row in x:
            h = pullback.tanh(row @ U + h @ W)
        return h.sum()

    lengths = []
    for n in (20, 200):
        compiled, rng = pullback.compile(function), np.random.default_rng(0)
        given = [pullback.tensor(rng.normal(size=s), requires_grad=True) for s in ((n, 4, 3), (5, 5), (3, 5))]
        compiled(*given).backward()
        lengths.append(len(compiled.explain().splitlines()))
        assert "repeated(%" in compiled.explain()
        assert f": {n} steps" in compiled.explain()
    assert lengths[0] == lengths[1]


def test_few_steps_and_steps_of_many_elements_are_left_to_the_loops_over_elements() -> None:
    def function(v: Any, n: int) -> Any:
        for _ in range(n):
            v = pullback.tanh(v) * 0.9
        return v

    for size, n, is_one in ((5, equal_steps.FEWEST - 1, False), (5, equal_steps.FEWEST, True)):
        compiled = pullback.compile(function)
        same(lambda v, n=n: function(v, n), lambda v, n=n, c=compiled: c(v, n), [pullback.randn(size).double()])
        assert loops(compiled)[0] == ([n] if is_one else [])
    compiled = pullback.compile(function)
    same(lambda v: function(v, 20), lambda v: compiled(v, 20), [pullback.randn(rolling.LARGE + 1).double()])
    assert not loops(compiled)[0]


def test_a_step_that_gives_something_else_by_itself_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "evaluated", lambda outs, known: [np.zeros(v.shape, v.dtype) + 7 for v in outs])
    compiled = pullback.compile(leapfrog)
    same(leapfrog, compiled, arguments(0, ["v", "w", "k"]))
    assert loops(compiled) == ([], [])
