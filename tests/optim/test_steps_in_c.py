"""Large steps run as loops in C: the same values as with NumPy, for every optimiser that treats elements alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import backends
from pullback.compile.backends import c
from pullback.table.nodes import Fused

optim = pullback.optim
elementwise = sys.modules["pullback.optim.elementwise"]

MADE: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "SGD, momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01, maximize=True),
    "SGD, nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "Adam, amsgrad": lambda p: optim.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.01),
    "Adam, slow": lambda p: optim.Adam(p, lr=0.1, betas=(0.3, 0.9)),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.1),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1),
    "RMSprop, centered": lambda p: optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adamax": lambda p: optim.Adamax(p),
    "NAdam": lambda p: optim.NAdam(p),
    "RAdam": lambda p: optim.RAdam(p),
    "ASGD": lambda p: optim.ASGD(p),
}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLBACK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each loop that was asked for has run, from here on."""
    found: list[bool] = []
    make = Fused.in_place

    def noted(*rule: Any) -> Callable[..., bool]:
        loop = make(*rule)
        return lambda *given: bool(found.append(done := loop(*given)) or done)

    elementwise._in_c.cache_clear()
    monkeypatch.setattr(Fused, "in_place", staticmethod(noted))
    yield found
    elementwise._in_c.cache_clear()


@pytest.fixture
def a_compiler() -> None:
    if not c.available():
        pytest.skip(str(c.unavailable()))


def values(size: int, phase: float, dtype: str = "float32") -> Any:
    return np.sin(np.arange(size) + phase).astype(dtype)


def trained(make: Callable[[Any], Any], params: list[Any], grads: Callable[[int, Any], Any], steps: int = 5) -> Any:
    """The parameters, and all arrays of the state, after some steps with a rate that changes."""
    opt = make(params)
    for step in range(steps):
        for p in params:
            p.grad = grads(step, p)
        opt.step()
        opt.param_groups[0]["lr"] *= 0.7
    state = [t for p in params for _, t in sorted(opt.state[p].items())]
    return [t.detach().numpy().copy() for t in (*params, *state)]


def both(work: Callable[[], Any]) -> Any:
    with backends.fused.flags(enabled=True):
        ours = work()
    with backends.fused.flags(enabled=False):
        return ours, work()


def same(ours: Any, theirs: Any) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=20 * np.finfo(a.dtype).eps, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MADE)
def test_the_values_are_those_of_numpy(a_compiler: None, ran: list[bool], name: str, dtype: str) -> None:
    def work() -> Any:
        params = [pullback.from_numpy(values(size, 0.5, dtype)).requires_grad_() for size in (5000, 7, 2048)]
        return trained(MADE[name], params, lambda step, p: pullback.from_numpy(values(p.numel(), step, dtype)))

    same(*both(work))
    assert (len(ran), ran[0], ran[-6:]) == (10, False, [True] * 6)  # a kind of step is compiled when it is met again


@pytest.mark.parametrize("name", ["SGD, momentum", "Adam, amsgrad", "RMSprop"])
def test_extremes_are_as_with_numpy(a_compiler: None, ran: list[bool], name: str) -> None:
    extremes = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-45, 3e38, -3e38, 1.0], np.float32)

    def work() -> Any:
        p = pullback.from_numpy(np.tile(extremes, 300)).requires_grad_()
        return trained(MADE[name], [p], lambda step, p: pullback.from_numpy(np.repeat(extremes, 300)), steps=5)

    same(*both(work))
    assert ran[-3:] == [True] * 3


def test_other_memory_is_as_with_numpy(a_compiler: None, ran: list[bool]) -> None:
    """Transposed, expanded and shared memory, and the gradient that is the parameter itself."""

    def work() -> Any:
        wide = pullback.from_numpy(values(6000, 1).reshape(60, 100)).t().detach().requires_grad_()
        one = pullback.from_numpy(values(6000, 2)).requires_grad_()
        tied = pullback.from_numpy(one.detach().numpy()[1000:]).requires_grad_()
        own = pullback.from_numpy(values(3000, 3)).requires_grad_()
        found = trained(MADE["Adam"], [wide], lambda step, p: pullback.full((100, 60), 0.1 * step + 0.1))
        found += trained(MADE["SGD"], [wide], lambda step, p: pullback.tensor(0.1).expand(100, 60))
        found += trained(MADE["SGD, momentum"], [one, tied], lambda step, p: p.detach() * 0.1)
        return found + trained(MADE["SGD, momentum"], [own], lambda step, p: p.detach())

    same(*both(work))
    assert True not in ran


def test_half_precision_and_complex_numbers_are_left_to_numpy(a_compiler: None, ran: list[bool]) -> None:
    def work() -> Any:
        half = pullback.from_numpy(values(4000, 1, "float16")).requires_grad_()
        whole = pullback.from_numpy(values(4000, 1) + 1j * values(4000, 2)).requires_grad_()
        found = trained(MADE["Adam"], [half], lambda step, p: pullback.from_numpy(values(4000, step, "float16")))
        return found + trained(MADE["Adam"], [whole], lambda step, p: p.detach() * 0.1)

    same(*both(work))
    assert True not in ran


def test_a_rate_that_changes_is_no_new_loop(a_compiler: None, monkeypatch: pytest.MonkeyPatch, ran: list[bool]) -> None:
    built: list[Any] = []
    build = c.build
    monkeypatch.setattr(c, "build", lambda *given: built.append(given) or build(*given))
    p = pullback.from_numpy(values(3001, 1)).requires_grad_()
    trained(MADE["AdamW"], [p], lambda step, p: p.detach() * 0.1, steps=20)
    assert (len(built), ran) == (1, [False] + [True] * 19)


@pytest.mark.parametrize(("name", "option", "asked"), [("SGD, momentum", "momentum", 1), ("AdamW", "betas", 0)])
def test_a_schedule_of_momentum_does_not_ask_the_compiler_in_each_step(
    a_compiler: None, monkeypatch: pytest.MonkeyPatch, ran: list[bool], name: str, option: str, asked: int
) -> None:
    built: list[Any] = []
    build = c.build
    monkeypatch.setattr(c, "build", lambda *given: built.append(given) or build(*given))
    p = pullback.from_numpy(values(3005, 1)).requires_grad_()
    opt = MADE[name]([p])
    for step in range(12):
        momentum = 0.8 + step / 100
        opt.param_groups[0][option] = (momentum, 0.999) if option == "betas" else momentum
        p.grad = p.detach() * 0.1
        opt.step()
    assert len(built) == asked


def test_numpys_errors_are_raised_where_they_are_asked_for(a_compiler: None, ran: list[bool]) -> None:
    p = pullback.from_numpy(values(3000, 1)).requires_grad_()
    opt = optim.SGD([p], lr=0.1, momentum=0.9)
    for _ in range(2):
        p.grad = pullback.ones(3000)
        opt.step()
    p.grad = pullback.full((3000,), 3e38)
    opt.step()
    p.grad = pullback.full((3000,), 3e38)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        opt.step()
    assert ran == [False, True, True, False]


def test_a_step_that_is_refused_writes_nothing(a_compiler: None, ran: list[bool]) -> None:
    p, q = (pullback.from_numpy(values(3000, i)).requires_grad_() for i in range(2))
    opt = optim.Adam([p, q], lr=0.1)
    p.grad, q.grad = pullback.ones(3000), pullback.ones(3000)
    q.detach().numpy().flags.writeable = False
    before = p.detach().numpy().copy()
    with pytest.raises(RuntimeError, match="read-only"):
        opt.step()
    assert not ran
    assert (p.detach().numpy() == before).all()


def test_a_version_counts_the_write(a_compiler: None, ran: list[bool]) -> None:
    p = pullback.from_numpy(values(3000, 1)).requires_grad_()
    opt = optim.SGD([p], lr=0.1)
    p.grad = pullback.ones(3000)
    opt.step()
    y = (p * p).sum()
    opt.step()
    assert ran == [False, True]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_without_a_compiler_nothing_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, ran: list[bool]) -> None:
    monkeypatch.setattr(c, "failure", lambda: sys.modules[c.cache.__name__].NoCompilerError("none here"))

    def work() -> Any:
        p = pullback.from_numpy(values(3003, 1)).requires_grad_()
        return trained(MADE["Adam"], [p], lambda step, p: p.detach() * 0.1)

    same(*both(work))
    assert ran == [False] * 5
