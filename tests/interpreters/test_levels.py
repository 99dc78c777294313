"""What must hold of all programs, whatever transforms read them; and how levels nest, end and keep apart.

Random programs of five to ten operations, among them views, writes in place and writes through views: a batch gives
what a loop gives, ``<u, J v> = <J^T u, v>``, and every nesting of the modes gives the same second derivatives.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback
from pullback.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from pullback.tensor.modes import thread

Tensor = Any
Steps = Sequence[tuple[int, int, int, int]]

UNARY: list[Callable[[Tensor], Tensor]] = [
    lambda t: t.sin(),
    lambda t: t.tanh() * 2,
    lambda t: 1 / (1 + t * t),
    lambda t: pullback.where(t > 0.1, t, t.exp()),
    lambda t: t.abs() + 0.5,
    lambda t: t.clone(),
]
SHAPED: list[Callable[[Tensor, int], Tensor]] = [  # with a number to choose an axis by
    lambda t, k: t.sum(k),
    lambda t, k: t.mean(k, keepdim=True),
    lambda t, k: t.cumsum(k),
    lambda t, k: t.softmax(k),
    lambda t, k: t.max(k).values,
    lambda t, k: t.sort(k, descending=True).values,
    lambda t, k: t.flip(k),
    lambda t, k: pullback.cat([t, t * 0.5], k),
    lambda t, k: pullback.stack([t, t.sin()], k),
    lambda t, k: t.index_select(k, pullback.tensor([0, 0])),
    lambda t, k: t.norm(dim=k),
    lambda t, k: t.prod(k),
    lambda t, k: pullback.logsumexp(t, k),
    lambda t, k: t.gather(k, t.argsort(k)),
]
VIEWS: list[Callable[[Tensor, int], Tensor]] = [
    lambda t, k: t.transpose(k, 0),
    lambda t, k: t.reshape(-1),
    lambda t, k: t.unsqueeze(k),
    lambda t, k: t.select(k, 0),
    lambda t, k: t.narrow(k, 0, 1),
    lambda t, k: t[..., -1],
    lambda t, k: t[None, 0],
    lambda t, k: t.movedim(k, -1),
    lambda t, k: t.tensor_split(2, k)[0],
    lambda t, k: t.flatten(0, k),
]


def written(t: Tensor, other: Tensor, how: int) -> None:
    """A write in place: of all, of a part, or through a view."""
    if how == 0:
        t.mul_(0.5)
    elif how == 1:
        t.add_(other.sum())
    elif how == 2:
        t[0] = other.mean()
    elif how == 3:
        t[..., -1:].mul_(other.sum().tanh())
    elif how == 4:
        t.select(-1, 0).copy_(other.max())
    else:
        t.sin_()


def run(steps: Steps, *inputs: Tensor, saves: bool = True) -> tuple[Tensor, ...]:
    """The program that `steps` spell, on inputs whose own memory it leaves alone: every tensor it made.

    saves: whether operations work on copies of what later steps may write, as what reverse mode saves must stand.
    """
    copied = pullback.clone if saves else lambda t: t
    pool = [x.clone() for x in inputs]
    for kind, i, j, k in steps:
        t, other = pool[i % len(pool)], pool[j % len(pool)]
        if kind == 0:
            made = UNARY[k % len(UNARY)](copied(t))
        elif kind == 1:
            t, other = copied(t), copied(other)
            made = other.sum() * t + other.mean() if k % 2 or t.shape != other.shape else t * other
        elif t.ndim == 0:
            made = t.reshape(1, 1) if k % 2 else t + other.sum()
        elif kind == 2:
            made = SHAPED[k % len(SHAPED)](copied(t), j % t.ndim)
        elif kind == 3:
            made = VIEWS[k % len(VIEWS)](t, j % t.ndim)
        elif kind == 4 and t.ndim > 1:
            t = copied(t)
            made = t @ t.mT
        else:
            written(t, copied(other), k % 6)
            continue
        pool.append(made if kind == 3 else copied(made))
    return tuple(pool)


STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 11), st.integers(0, 11), st.integers(0, 59)), min_size=5, max_size=10
)


def random(*shape: int, seed: int = 0) -> Tensor:
    return pullback.from_numpy(np.asarray(np.random.default_rng(seed).uniform(-1, 1, shape)))


def assert_close(ours: Tensor, other: Tensor) -> None:
    assert ours.shape == other.shape
    assert ours.dtype == other.dtype
    np.testing.assert_allclose(ours.detach().numpy(), other.detach().numpy(), rtol=1e-7, atol=1e-8)


# Programs of random steps use elements that were overwritten.
overwritten = pytest.mark.filterwarnings("ignore:An element that was taken by an index")


@overwritten
@given(STEPS)
@settings(max_examples=120, deadline=None)
def test_a_batch_is_a_loop(steps: Steps) -> None:
    a, b = random(3, 2, 4), random(3, 4, seed=1)
    whole = vmap(lambda *x: run(steps, *x, saves=False))(a, b)
    each = [run(steps, *x, saves=False) for x in zip(a, b, strict=True)]
    for w, *parts in zip(whole, *each, strict=True):
        assert_close(w, pullback.stack(parts))


@overwritten
@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_a_batch_of_a_part_is_a_loop(steps: Steps) -> None:
    a, b = random(2, 4), random(4, 3, seed=1)

    def f(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        x = x + y.sum() * 0  # what is written with something that varies has to vary
        return run(steps, x, y, saves=False)

    whole = vmap(f, in_dims=(None, 1))(a, b)
    each = [f(a, b[:, k]) for k in range(3)]
    for w, *parts in zip(whole, *each, strict=True):
        assert_close(w, pullback.stack(parts))


def inner_product(us: Sequence[Tensor], vs: Sequence[Tensor]) -> float:
    return float(sum((u * v).sum() for u, v in zip(us, vs, strict=True)))


@overwritten
@given(STEPS)
@settings(max_examples=120, deadline=None)
def test_forward_and_reverse_mode_are_transposes(steps: Steps) -> None:
    inputs = (random(2, 4), random(4, seed=1))
    v = (random(2, 4, seed=2), random(4, seed=3))
    f = lambda *x: run(steps, *x)  # noqa: E731
    outs, tangents = jvp(f, inputs, v)
    u = tuple(random(*o.shape, seed=4 + k) for k, o in enumerate(outs))
    values, pull = vjp(f, *inputs)
    for a, b in zip(outs, values, strict=True):
        assert_close(a, b)
    assert inner_product(u, tangents) == pytest.approx(inner_product(pull(u), v), rel=1e-7, abs=1e-9)


@overwritten
@given(STEPS)
@settings(max_examples=40, deadline=None)
def test_a_batch_of_derivatives_is_a_loop(steps: Steps) -> None:
    a, b, v = random(3, 2, 4), random(3, 4, seed=1), random(3, 2, 4, seed=2)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return sum((t.sin() * (k + 1)).sum() for k, t in enumerate(run(steps, x, y)))

    def derivatives(x: Tensor, y: Tensor, t: Tensor) -> Any:
        first = grad(loss, (0, 1))
        return (*first(x, y), *jvp(lambda p: first(p, y), (x,), (t,))[1])

    whole = vmap(derivatives)(a, b, v)
    each = [derivatives(*x) for x in zip(a, b, v, strict=True)]
    for w, *parts in zip(whole, *each, strict=True):
        assert_close(w, pullback.stack(parts))


@overwritten
@given(STEPS)
@settings(max_examples=40, deadline=None)
def test_every_nesting_gives_the_same_hessian(steps: Steps) -> None:
    x, y = random(2, seed=5), random(4, seed=1)

    def loss(p: Tensor) -> Tensor:
        return sum((t.sin() * (k + 1)).sum() for k, t in enumerate(run(steps, p * y[:2], y)))

    first = jacrev(jacrev(loss))(x)
    for outer, inner in ((jacfwd, jacrev), (jacrev, jacfwd), (jacfwd, jacfwd)):
        assert_close(outer(inner(loss))(x), first)


@overwritten
@given(STEPS)
@settings(max_examples=30, deadline=None)
def test_linearize_is_jvp(steps: Steps) -> None:
    inputs, v = (random(2, 4), random(4, seed=1)), (random(2, 4, seed=2), random(4, seed=3))
    f = lambda *x: run(steps, *x)  # noqa: E731
    _, push = linearize(f, *inputs)
    for a, b in zip(push(*v), jvp(f, inputs, v)[1], strict=True):
        assert_close(a, b)


# How levels begin and end -----------------------------------------------------------------------------------------


def test_levels_end_whatever_happens() -> None:
    def fails(x: Tensor) -> Tensor:
        raise KeyError("x")

    x = random(3)
    for call in (
        lambda: vmap(fails)(x),
        lambda: jvp(fails, (x,), (x,)),
        lambda: vmap(grad(fails))(x),
        lambda: jacfwd(jacrev(fails))(x),
        lambda: jacrev(jacfwd(fails))(x),
    ):
        with pytest.raises(KeyError):
            call()
        assert not thread.modes.levels
        assert thread.modes.grad_enabled


def test_levels_are_of_a_thread() -> None:
    """A thread that runs beside a transform sees nothing of it, and runs transforms of its own."""
    x = random(3, 2)
    found: list[Any] = []

    def beside() -> None:
        found.append(vmap(grad(lambda r: (r**3).sum()))(x))
        found.append(len(thread.modes.levels))

    def f(r: Tensor) -> Tensor:
        other = threading.Thread(target=beside)
        other.start()
        other.join()
        return r * 2

    assert_close(vmap(f)(x), x * 2)
    assert_close(found[0], 3 * x**2)
    assert found[1] == 0


def test_nothing_outlives_a_transform() -> None:
    """Not the tensors made inside, nor the graph, without the garbage collector."""
    seen: list[weakref.ref[Any]] = []

    def f(x: Tensor) -> Tensor:
        y = x.sin() * x
        seen.append(weakref.ref(y))
        return y.sum()

    gc.disable()
    try:
        x = random(3, 2)
        vmap(grad(f))(x)
        grad(f)(x)
        jvp(f, (x,), (x,))
        hessian(f)(x[0])
        jacrev(f)(x[0])
        assert [ref() for ref in seen] == [None] * len(seen)
    finally:
        gc.enable()


def test_a_captured_tensor_written_in_jvp_keeps_the_graph_below() -> None:
    """What it holds when the level ends is tracked as what was written is."""
    w, kept = random(3).requires_grad_(), pullback.zeros(3, dtype=pullback.float64)

    def f(x: Tensor) -> Tensor:
        kept[1:].copy_((w * x)[1:])
        return x

    jvp(f, (random(3, seed=1),), (random(3, seed=2),))
    kept.sum().backward()
    assert w.grad.tolist() == pytest.approx([0.0, *random(3, seed=1).tolist()[1:]])
