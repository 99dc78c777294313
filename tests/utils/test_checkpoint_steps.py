"""Checkpointing of time steps: gradients of the whole graph, with few states kept and few steps taken again."""

from __future__ import annotations

import functools
import gc
import io
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor, nn
from pullback.utils import checkpoint_steps, explain_steps

pytest.importorskip("checkpoint_schedules")
f64 = pullback.float64


@functools.cache
def reversal(n: int, kept: int) -> int:
    """The least number of steps that reverses n from their first state, with room for so many more states."""
    if n <= 1:
        return 0
    if kept == 0:
        return n * (n - 1) // 2
    return min(k + reversal(n - k, kept - 1) + reversal(k, kept) for k in range(1, n))


@functools.cache
def least(n: int, kept: int) -> int:
    """The least number of steps after a sweep that kept so many states, and not the one before the last step."""
    if n <= 1:
        return 0
    if kept == 0:
        return n * (n - 1) // 2
    return min(least(n - k, kept - 1) + reversal(k, kept) for k in range(1, n))


class Counted:
    """A diffusion with a source, which counts its steps."""

    def __init__(self) -> None:
        self.k = pullback.linspace(0.1, 0.2, 5, dtype=f64).requires_grad_()
        self.c = pullback.tensor(0.5, dtype=f64, requires_grad=True)
        self.twice = self.k * 2  # both it and what it is made of are used
        self.calls = 0

    def __call__(self, u: Tensor) -> Tensor:
        self.calls += 1
        u = u + self.twice * (pullback.roll(u, 1, 0) - 2 * u + pullback.roll(u, -1, 0))
        return u + 0.01 * pullback.sin(u * self.c) * self.k

    def plain(self, u: Tensor, n: int) -> Tensor:
        for _ in range(n):
            u = self(u)
        return u


def first() -> Tensor:
    return pullback.linspace(-1, 2, 5, dtype=f64).requires_grad_()


@pytest.mark.parametrize(("n", "snapshots"), [(1, 0), (2, 1), (7, 2), (23, 0), (23, 3), (40, 10), (12, 30)])
@pytest.mark.parametrize("disk", [0, 3])
def test_gradients_are_those_of_the_whole_graph_with_the_fewest_steps(n: int, snapshots: int, disk: int) -> None:
    step, u = Counted(), first()
    inputs = [u, step.k, step.c]
    right = pullback.autograd.grad(step.plain(u, n).square().sum(), inputs, retain_graph=True)
    step.calls = 0
    last = checkpoint_steps(step, u, n, snapshots, disk=disk)
    assert step.calls == n
    assert last.tolist() == step.plain(u.detach(), n).tolist()
    for repeat in range(2):  # the second time, the snapshots are made anew
        step.calls = 0
        found = pullback.autograd.grad(last.square().sum(), inputs, retain_graph=True)
        for a, b in zip(found, right, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-14)
        if repeat == 0:
            assert step.calls - n == least(n, snapshots + disk) == explain_steps(n, snapshots, disk=disk).again


def test_the_number_of_steps_is_the_optimum() -> None:
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))
    for n in range(1, 130):
        for kept in range(21):
            assert explain_steps(n, kept).again == least(n, kept)
    draw = random.Random(0)
    for _ in range(6):
        n, kept = draw.randrange(200, 501), draw.randrange(1, 21)
        calls = 0

        def step(u: Tensor) -> Tensor:
            nonlocal calls
            calls += 1
            return u * 0.99

        last = checkpoint_steps(step, first(), n, kept)
        last.sum().backward()
        assert calls - 2 * n == explain_steps(n, kept).again == least(n, kept)


def test_derivatives_of_second_order() -> None:
    def fn(u: Tensor, p: Tensor) -> Tensor:
        q = p * 2
        return checkpoint_steps(lambda u: pullback.sin(u * p) + q * u * 0.1, u, 6, 2)

    given = (pullback.randn(3, dtype=f64, requires_grad=True), pullback.randn(3, dtype=f64, requires_grad=True))
    assert pullback.autograd.gradcheck(fn, given)
    assert pullback.autograd.gradgradcheck(fn, given)
    # where the state and a tensor from outside are the same tensor
    assert pullback.autograd.gradcheck(lambda u, p: fn(u * p, u), given)
    assert pullback.autograd.gradgradcheck(
        lambda u: checkpoint_steps(lambda v: pullback.sin(v * u), u, 4, 1), given[:1]
    )


def test_a_state_is_a_nest() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        x, v = state["pair"]
        v = v - 0.1 * x * state["i"]
        return {"pair": (x + 0.1 * v, v), "i": state["i"] + 1, "name": state["name"], "t": state["t"] + 0.1}

    def start(x: Tensor, v: Tensor) -> dict[str, Any]:
        return {"pair": (x, v), "i": pullback.tensor(0), "name": "oscillator", "t": 0.0}

    x, v = first(), first()
    right: Any = start(x, v)
    for _ in range(9):
        right = step(right)
    found = checkpoint_steps(step, start(x, v), 9, 2)
    assert (found["i"].item(), found["name"]) == (9, "oscillator")
    assert found["t"] == right["t"]
    for which in (0, 1):  # a result that gets no gradient
        a = pullback.autograd.grad(found["pair"][which].sum(), [x, v], retain_graph=True)
        b = pullback.autograd.grad(right["pair"][which].sum(), [x, v], retain_graph=True)
        assert all(pullback.allclose(p, q) for p, q in zip(a, b, strict=True))


def test_none_in_a_state_is_a_value_like_others() -> None:
    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        nothing, u, (also,) = state
        assert (nothing, also) == (None, None)
        return None, pullback.sin(u) * k, (None,)

    k, u = pullback.linspace(0.5, 1.0, 5, dtype=f64).requires_grad_(), first()
    right: Any = (None, u, (None,))
    for _ in range(6):
        right = step(right)
    last = checkpoint_steps(step, (None, u, (None,)), 6, 2)
    assert (last[0], last[2]) == (None, (None,))

    def twice(out: Tensor) -> tuple[Tensor, ...]:
        found = pullback.autograd.grad(out.sum(), [u, k], create_graph=True)  # the graph is kept, and passed again
        return pullback.autograd.grad(sum(g.square().sum() for g in found), [u, k], retain_graph=True)

    for a, b in zip(twice(last[1]), twice(right[1]), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    for _ in range(2):
        found = pullback.autograd.grad(last[1].sum(), [u, k], retain_graph=True)
        expected = pullback.autograd.grad(right[1].sum(), [u, k], retain_graph=True)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_hooks_of_what_the_steps_use_fire_once() -> None:
    step, u = Counted(), first()
    seen = []
    step.k.register_hook(lambda g: seen.append("k"))
    step.twice.register_hook(lambda g: g * 2)
    last = checkpoint_steps(step, u, 10, 2)
    last.sum().backward()
    other = Counted()
    other.twice.register_hook(lambda g: g * 2)
    other.plain(first(), 10).sum().backward()
    assert step.k.grad is not None
    assert other.k.grad is not None
    np.testing.assert_allclose(step.k.grad.numpy(), other.k.grad.numpy(), rtol=1e-12)
    assert seen == ["k"]


def test_modules_are_trained() -> None:
    pullback.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    u = pullback.randn(2, 3, dtype=f64)
    checkpoint_steps(lambda u: u + 0.1 * net(u), u, 8, 2).square().sum().backward()
    found = [p.grad for p in net.parameters()]
    net.zero_grad()
    right = u
    for _ in range(8):
        right = right + 0.1 * net(right)
    right.square().sum().backward()
    for a, p in zip(found, net.parameters(), strict=True):
        assert a is not None
        np.testing.assert_allclose(a.numpy(), p.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("snapshots", [0, 3])
def test_random_numbers_are_drawn_again(snapshots: int) -> None:
    def step(u: Tensor) -> Tensor:
        return u * pullback.rand(5, dtype=f64)

    pullback.manual_seed(3)
    u = first()
    last = checkpoint_steps(step, u, 11, snapshots)
    after = pullback.rand(1)
    last.sum().backward()
    again = pullback.rand(1)
    assert u.grad is not None
    np.testing.assert_allclose(u.grad.numpy() * u.detach().numpy(), last.detach().numpy(), rtol=1e-12)
    pullback.manual_seed(3)
    plain = first()
    for _ in range(11):
        plain = step(plain)
    assert (after.item(), again.item()) == (pullback.rand(1).item(), pullback.rand(1).item())


def test_snapshots_on_disk_are_in_the_directory_and_go_with_the_graph(tmp_path: Path) -> None:
    step = Counted()
    last = checkpoint_steps(step, first(), 30, 1, disk=4, directory=tmp_path)
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.iterdir())) == 4
    assert {file.stat().st_size for file in folder.iterdir()} == {5 * 8}
    last.sum().backward()
    assert not list(folder.iterdir())
    del last
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_state_of_narrow_numbers_goes_through_the_disk() -> None:
    u = pullback.ones(3, dtype=pullback.bfloat16, requires_grad=True)
    checkpoint_steps(lambda u: u * 0.5, u, 6, 0, disk=2).sum().backward()
    assert u.grad is not None
    assert u.grad.tolist() == [0.5**6] * 3


def test_a_compiled_step() -> None:
    step, u = Counted(), first()
    c = step.c
    fast = pullback.compile(lambda u, c: u + 0.01 * pullback.sin(u * c), backend="numpy")
    found = pullback.autograd.grad(checkpoint_steps(lambda u: fast(u, c), u, 9, 2).sum(), [u, c])
    right = u
    for _ in range(9):
        right = right + 0.01 * pullback.sin(right * c)
    for a, b in zip(found, pullback.autograd.grad(right.sum(), [u, c]), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_transforms_and_compile_take_the_steps_as_they_are() -> None:
    def fn(u: Tensor) -> Tensor:
        return checkpoint_steps(lambda u: pullback.sin(u) * 2, u, 5, 1)

    def plain(u: Tensor) -> Tensor:
        for _ in range(5):
            u = pullback.sin(u) * 2
        return u

    u = first().detach()
    for transform in (pullback.func.vmap, pullback.func.jacfwd, pullback.func.jacrev, pullback.compile):
        assert pullback.allclose(transform(fn)(u), transform(plain)(u)), transform
    assert pullback.allclose(
        pullback.func.hessian(lambda u: fn(u).sum())(u), pullback.func.hessian(lambda u: plain(u).sum())(u)
    )


def test_no_node_without_need() -> None:
    u = first()
    with pullback.no_grad():
        assert not checkpoint_steps(lambda u: u * 2, u, 3).requires_grad
    assert not checkpoint_steps(lambda u: u * 2, u.detach(), 3).requires_grad
    assert checkpoint_steps(lambda u: u * 2, u, 0) is u
    node = checkpoint_steps(lambda u: u * 2, u, 100, 3).grad_fn
    assert node is not None
    assert [following for following, _ in node.next_functions if following is not None] == [
        (u * 1).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
    ]


def test_results_that_were_there_before() -> None:
    u, k = first(), first()
    checkpoint_steps(lambda u: u, u, 4, 1).sum().backward()
    assert u.grad is not None
    assert u.grad.tolist() == [1.0] * 5
    checkpoint_steps(lambda u: k, u, 4, 1).sum().backward()
    assert k.grad is not None
    assert k.grad.tolist() == [1.0] * 5
    assert u.grad.tolist() == [1.0] * 5


def test_a_tensor_that_only_a_later_step_uses() -> None:
    k = pullback.tensor(2.0, dtype=f64, requires_grad=True)
    u = pullback.ones(1, dtype=f64)
    last = checkpoint_steps(lambda s: (s[0] * k if s[1] == 3 else s[0], s[1] + 1), (u, 0), 5, 1)
    last[0].backward()
    assert k.grad is not None
    assert k.grad.item() == 1.0


def test_a_tensor_that_was_not_used_before_is_refused() -> None:
    u, k = first(), first()
    uses = [False]
    last = checkpoint_steps(lambda u: u * k if uses[0] else u * 2, u, 4, 1)
    uses[0] = True
    with pytest.raises(RuntimeError, match="uses the same tensors as in the forward pass"):
        last.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="uses the same tensors as in the forward pass"):
        pullback.autograd.grad(last.sum(), u, create_graph=True)
    assert (u.grad, k.grad) == (None, None)
    uses[0] = False
    last.sum().backward()
    assert u.grad is not None
    assert u.grad.tolist() == [16.0] * 5


def test_an_error_in_a_step_leaves_the_graph_as_it_was() -> None:
    u = first()
    fails = [False]

    def step(u: Tensor) -> Tensor:
        if fails[0]:
            raise KeyError("mine")
        return u * 2

    last = checkpoint_steps(step, u, 6, 1)
    fails[0] = True
    with pytest.raises(KeyError, match="mine"):
        last.sum().backward(retain_graph=True)
    assert u.grad is None
    fails[0] = False
    last.sum().backward()
    assert u.grad is not None
    assert u.grad.tolist() == [64.0] * 5


def test_steps_that_write_to_their_state_are_refused() -> None:
    u, counts = first().detach(), pullback.zeros(2, dtype=pullback.int64)
    with pytest.raises(RuntimeError, match="in-place operation"):
        checkpoint_steps(lambda u: u.mul_(2), u, 3)
    assert u.tolist() == first().tolist()
    with pytest.raises(RuntimeError, match="leaves its state as it is"):
        checkpoint_steps(lambda s: (s[0] * 2, s[1].add_(1)), (u, counts), 3)


def test_bad_arguments() -> None:
    u = first()
    with pytest.raises(
        RuntimeError, match=r"returns a state like the one that it gets, one value[\s\S]*\(\.\.\., \.\.\.\)"
    ):
        checkpoint_steps(lambda u: (u, u), u, 3)
    for forgotten, state in ((lambda u: None, u), (lambda s: (s[0], 2), (u, pullback.ones(2)))):
        with pytest.raises(RuntimeError, match=r"a Tensor where that has one[\s\S]*return the next state"):
            checkpoint_steps(forgotten, state, 3)
    with pytest.raises(TypeError, match="a function of a state"):
        checkpoint_steps(3, u, 3)  # type: ignore[arg-type]
    for n, snapshots, disk in ((-1, 3, 0), (3, -1, 0), (3, 3, -1), (2**31, 3, 0)):
        with pytest.raises(ValueError, match="a number from 0 to 1,000,000,000"):
            checkpoint_steps(lambda u: u, u, n, snapshots, disk=disk)
    for n, snapshots in ((2.0, 3), (3, "a"), (True, 3)):
        with pytest.raises(TypeError, match="expected an int"):
            checkpoint_steps(lambda u: u, u, n, snapshots)  # type: ignore[arg-type]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "checkpoint_schedules", None)
    with pytest.raises(ImportError, match=r"pip install 'pullback\[checkpoint\]'"):
        checkpoint_steps(lambda u: u, first(), 3)


def test_a_bar_is_shown_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.diagnose import progress

    class Timer:
        """Time that has passed at once."""

        def __init__(self, seconds: float, function: Any) -> None:
            self.start = function

        def cancel(self) -> None: ...

        def is_alive(self) -> bool:
            return False

    monkeypatch.setattr(progress.threading, "Timer", Timer)
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    last = checkpoint_steps(lambda u: u * 2, first(), 20, 2, progress=True)
    assert "[#####.....] checkpoint_steps: steps ..." in errors.getvalue()
    last.sum().backward()
    assert "[#####.....] checkpoint_steps: steps backward ..." in errors.getvalue()
    assert errors.getvalue().endswith("\r\033[K")
