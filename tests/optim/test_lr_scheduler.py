"""The learning-rate schedules: the sequences of rates against PyTorch's, what they remember, and what they refuse."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.optim import lr_scheduler

STEPS = 50

Make = Callable[[Any, Any], Any]


class Decay:
    """A function of the epoch with something to be saved."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, epoch: float) -> float:
        return self.rate**epoch


def _sgd(lib: Any, **options: Any) -> Any:
    groups = [
        {"params": [lib.zeros(2, requires_grad=True)]},
        {"params": [lib.zeros(3, requires_grad=True)], "lr": 0.03},
    ]
    return lib.optim.SGD(groups, **{"lr": 0.5, "momentum": 0.9, **options})


def _adam(lib: Any) -> Any:
    groups = [{"params": [lib.zeros(2, requires_grad=True)]}, {"params": [lib.zeros(3, requires_grad=True)], "lr": 0.3}]
    return lib.optim.Adam(groups, lr=0.5)


# Each of a module of schedules, torch's or ours, and an optimiser.
SCHEDULES: dict[str, Make] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
    "LambdaLR, one each": lambda s, o: s.LambdaLR(o, [Decay(0.9), Decay(0.8)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95 if epoch % 3 else 1.01),
    "StepLR": lambda s, o: s.StepLR(o, 7, gamma=0.3),
    "StepLR, every": lambda s, o: s.StepLR(o, 1),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 8, 8, 30], gamma=0.7),
    "ConstantLR": lambda s, o: s.ConstantLR(o),
    "ConstantLR, longer": lambda s, o: s.ConstantLR(o, factor=0.7, total_iters=20),
    "LinearLR": lambda s, o: s.LinearLR(o),
    "LinearLR, down": lambda s, o: s.LinearLR(o, start_factor=1.0, end_factor=0.1, total_iters=30),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.93),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o),
    "PolynomialLR, quadratic": lambda s, o: s.PolynomialLR(o, total_iters=31, power=2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 9),
    "CosineAnnealingLR, to more": lambda s, o: s.CosineAnnealingLR(o, T_max=60, eta_min=0.001),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "CosineAnnealingWarmRestarts, longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, T_mult=2, eta_min=0.01),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.1, 0.5, step_size_up=4),
    "CyclicLR, halved": lambda s, o: s.CyclicLR(o, [0.1, 0.2], [0.5, 0.6], 4, 7, mode="triangular2"),
    "CyclicLR, shrinking": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 5, mode="exp_range", gamma=0.95, base_momentum=0.5),
    "CyclicLR, scaled": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 5, scale_fn=Decay(0.5), cycle_momentum=False),
    "CyclicLR, scaled by steps": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 5, scale_fn=Decay(0.9), scale_mode="iterations"),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 2.0, total_steps=STEPS),
    "OneCycleLR, linear": lambda s, o: s.OneCycleLR(
        o, [2.0, 3.0], epochs=5, steps_per_epoch=STEPS // 5, anneal_strategy="linear"
    ),
    "OneCycleLR, three phases": lambda s, o: s.OneCycleLR(
        o, 2.0, STEPS, three_phase=True, pct_start=0.4, div_factor=4, final_div_factor=10, max_momentum=[0.9, 0.8]
    ),
    "OneCycleLR, rates only": lambda s, o: s.OneCycleLR(o, 2.0, STEPS, cycle_momentum=False),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=5), s.ExponentialLR(o, 0.9), s.StepLR(o, 3)], [5, 20]
    ),
    "SequentialLR, at once": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o), s.CosineAnnealingLR(o, 10)], [0]),
    "SequentialLR, restarts": lambda s, o: s.SequentialLR(
        o,
        [s.ConstantLR(o, 0.5, 2), s.CosineAnnealingWarmRestarts(o, 3, 2), s.MultiplicativeLR(o, Decay(0.9))],
        [4, 30],
    ),
    "SequentialLR, cycles": lambda s, o: s.SequentialLR(
        o, [s.PolynomialLR(o, 8), s.CyclicLR(o, 0.1, 0.5, 4), s.LambdaLR(o, Decay(0.9))], [6, 30]
    ),
    "SequentialLR, nested": lambda s, o: s.SequentialLR(
        o, [s.SequentialLR(o, [s.ConstantLR(o), s.ExponentialLR(o, 0.9)], [4]), s.StepLR(o, 5)], [20]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.5, 7), s.ExponentialLR(o, 0.95), s.CosineAnnealingLR(o, 40)]
    ),
    "ChainedScheduler, nested": lambda s, o: s.ChainedScheduler(
        [s.SequentialLR(o, [s.ConstantLR(o), s.ExponentialLR(o, 0.9)], [4]), s.StepLR(o, 5)], optimizer=o
    ),
}
each_schedule = pytest.mark.parametrize("name", SCHEDULES)


def _made(name: str, module: Any, optimizer: Any) -> Any:
    with warnings.catch_warnings():
        if name == "SequentialLR, nested":  # the inner one takes its second step, in torch as well
            warnings.simplefilter("ignore")
        return SCHEDULES[name](module, optimizer)


def _rates(optimizer: Any) -> list[float]:
    """What a schedule writes: the learning rate of each group, and its momentum."""
    found = []
    for group in optimizer.param_groups:
        found += [float(group["lr"]), float(group["betas"][0] if "betas" in group else group["momentum"])]
    return found


def _run(optimizer: Any, scheduler: Any, steps: int) -> list[list[float]]:
    """What a schedule writes in each epoch: before the first step, and after each."""
    seen = [_rates(optimizer)]
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        seen.append(_rates(optimizer))
        assert [float(lr) for lr in scheduler.get_last_lr()] == seen[-1][::2]
    return seen


@pytest.mark.torch
@pytest.mark.parametrize("build", [_sgd, _adam])
@each_schedule
def test_the_rates_are_torchs(name: str, build: Callable[[Any], Any]) -> None:
    torch = pytest.importorskip("torch")
    optimizers = [build(lib) for lib in (pullback, torch)]
    ours, theirs = (
        _made(name, module, optimizer)
        for module, optimizer in zip((lr_scheduler, torch.optim.lr_scheduler), optimizers, strict=True)
    )
    rates = [_run(optimizers[0], ours, STEPS), _run(optimizers[1], theirs, STEPS)]
    np.testing.assert_allclose(*rates, rtol=1e-12, atol=1e-16)
    assert getattr(ours, "last_epoch", None) == getattr(theirs, "last_epoch", None)
    keys = [set(group) for optimizer in optimizers for group in optimizer.param_groups]
    assert keys[:2] == keys[2:]


@each_schedule
def test_a_loaded_schedule_goes_on_where_the_saved_one_stopped(name: str, tmp_path: Path) -> None:
    optimizer = _sgd(pullback)
    scheduler = _made(name, lr_scheduler, optimizer)
    whole = _run(optimizer, scheduler, STEPS)

    optimizer = _sgd(pullback)
    scheduler = _made(name, lr_scheduler, optimizer)
    _run(optimizer, scheduler, 17)
    pullback.save({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, tmp_path / "state")

    loaded = pullback.load(tmp_path / "state")
    before = copy.deepcopy(loaded["scheduler"])
    optimizer = _sgd(pullback)
    scheduler = _made(name, lr_scheduler, optimizer)
    optimizer.load_state_dict(loaded["optimizer"])
    scheduler.load_state_dict(loaded["scheduler"])
    assert loaded["scheduler"] == before
    assert _run(optimizer, scheduler, STEPS - 17) == whole[17:]


# Those that may be given the last epoch instead of a saved state.
RESUMING: dict[str, Make] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, Decay(0.9), last_epoch=6),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, Decay(0.9), last_epoch=6),
    "StepLR": lambda s, o: s.StepLR(o, 7, last_epoch=6),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 9], last_epoch=6),
    "ConstantLR": lambda s, o: s.ConstantLR(o, total_iters=9, last_epoch=6),
    "LinearLR": lambda s, o: s.LinearLR(o, total_iters=9, last_epoch=6),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9, last_epoch=6),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 9, last_epoch=6),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, last_epoch=6),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, last_epoch=6),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 4, last_epoch=6),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", RESUMING)
def test_a_schedule_that_is_told_the_last_epoch(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib, module in ((pullback, lr_scheduler), (torch, torch.optim.lr_scheduler)):
        optimizer = _sgd(lib)
        for group in optimizer.param_groups:
            group.update(initial_lr=0.7, base_momentum=0.5, max_momentum=0.9)
        found.append(_run(optimizer, RESUMING[name](module, optimizer), 20))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("name", RESUMING)
def test_a_step_to_an_epoch_takes_the_closed_form(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib, module in ((pullback, lr_scheduler), (torch, torch.optim.lr_scheduler)):
        optimizer = _sgd(lib)
        scheduler = _made(name, module, optimizer)
        optimizer.step()
        rates = []
        for epoch in (3, 12, 4, 0):
            if name == "CosineAnnealingWarmRestarts":
                scheduler.step(epoch + 0.25)
            else:
                with pytest.warns(UserWarning, match="epoch parameter"):
                    scheduler.step(epoch)
            rates.append(_rates(optimizer))
        scheduler.step()
        found.append([*rates, _rates(optimizer)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("epochs", [[0.5, 3.25, 9.0, 21.5, 2.0], [44.75]])
def test_warm_restarts_at_fractions_of_epochs(epochs: list[float]) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib, module in ((pullback, lr_scheduler), (torch, torch.optim.lr_scheduler)):
        optimizer = _sgd(lib)
        scheduler = module.CosineAnnealingWarmRestarts(optimizer, 3, T_mult=2)
        rates = []
        for epoch in epochs:
            scheduler.step(epoch)
            rates.append(_rates(optimizer))
            scheduler.step()
            rates.append([*_rates(optimizer), scheduler.last_epoch, scheduler.T_cur, scheduler.T_i])
        found.append(np.concatenate(rates))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


# -- the plateau -------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"factor": 0.5, "patience": 2},
        {"factor": 0.5, "patience": 0, "cooldown": 3, "threshold": 0.05},
        {"factor": 0.3, "patience": 1, "min_lr": [0.01, 0.02]},
        {"factor": 0.3, "patience": 0, "min_lr": 0.02, "eps": 0.01},
    ],
)
def test_a_plateau_is_noticed_when_torch_notices_it(mode: str, threshold_mode: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    parts = [np.linspace(3, 1, 10), 1 + 0.1 * rng.random(15), np.linspace(1, -1, 6), -1 + rng.random(20)]
    losses = np.concatenate(parts)
    found = []
    for lib, module in ((pullback, lr_scheduler), (torch, torch.optim.lr_scheduler)):
        optimizer = _sgd(lib)
        scheduler = module.ReduceLROnPlateau(optimizer, mode, threshold_mode=threshold_mode, **options)
        seen = []
        for i, loss in enumerate(losses if mode == "min" else -losses):
            scheduler.step(lib.tensor(loss) if i % 2 else loss)
            seen.append([*scheduler.get_last_lr(), scheduler.num_bad_epochs, scheduler.best, scheduler.in_cooldown])
        found.append(seen)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_a_saved_plateau(tmp_path: Path) -> None:
    losses = [3.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    rates = []
    optimizer = _sgd(pullback)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for i, loss in enumerate(losses):
        pullback.save([optimizer.state_dict(), scheduler.state_dict()], tmp_path / f"{i}")
        scheduler.step(loss)
        rates.append(_rates(optimizer))
    assert rates[0] != rates[-1]
    for i, loss in enumerate(losses):
        optimizer = _sgd(pullback)
        scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        state, schedule = pullback.load(tmp_path / f"{i}")
        optimizer.load_state_dict(state)
        scheduler.load_state_dict(schedule)
        scheduler.step(loss)
        assert _rates(optimizer) == rates[i]


def test_a_plateau_and_a_group_that_was_added() -> None:
    for min_lr, lrs in ((0.25, [0.25, 0.25, 0.25]), ([0.25, 0.25], None)):
        optimizer = _sgd(pullback)
        scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=min_lr)
        optimizer.param_groups[1]["lr"] = 1.0
        optimizer.add_param_group({"params": [pullback.zeros(1, requires_grad=True)], "lr": 1.0})
        scheduler.step(1.0)
        if lrs is None:
            with pytest.raises(RuntimeError, match="min_lrs"):
                scheduler.step(1.0)
        else:
            scheduler.step(1.0)
            assert scheduler.get_last_lr() == lrs


# -- the order of steps ------------------------------------------------------------------------------------------------


def _warned(lib: Any, module: Any, order: str) -> list[bool]:
    """Whether each step of a schedule warns: `s` is that of one, `o` the optimiser's, `S` a second's, made at `c`."""
    optimizer = _sgd(lib)
    if order[0] == "b":  # a step before there is a schedule
        optimizer.step()
    scheduler = module.StepLR(optimizer, 2)
    second = None if "c" in order else module.StepLR(optimizer, 3)
    seen = []
    for letter in order.lstrip("b"):
        if letter == "o":
            optimizer.step()
            continue
        if letter == "c":
            second = module.StepLR(optimizer, 3)
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (scheduler if letter == "s" else second).step()
        seen.append(any("lr_scheduler.step()` before `optimizer.step()" in str(w.message) for w in caught))
    return seen


@pytest.mark.torch
@pytest.mark.parametrize(
    "order", ["so", "os", "sso", "oso", "bso", "bos", "osS", "sSo", "oSs", "ocS", "cSo", "coS", "socS"]
)
def test_the_wrong_order_is_warned_of_as_in_torch(order: str) -> None:
    torch = pytest.importorskip("torch")
    assert _warned(pullback, lr_scheduler, order) == _warned(torch, torch.optim.lr_scheduler, order)


def test_the_wrong_order_is_warned_of_once_and_where_it_is() -> None:
    scheduler = lr_scheduler.StepLR(_sgd(pullback), 2)
    with pytest.warns(UserWarning, match=r"before `optimizer.step\(\)`") as caught:
        scheduler.step()
    assert caught[0].filename == __file__
    scheduler.step()


def test_an_optimiser_of_ones_own_is_seen_to_step() -> None:
    class Own(pullback.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            pass

    optimizer = Own([pullback.zeros(1, requires_grad=True)], {"lr": 1.0})
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_get_lr_is_for_step_alone() -> None:
    scheduler = lr_scheduler.ExponentialLR(_sgd(pullback), 0.5)
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()


# -- rates that are tensors, copies, ends ------------------------------------------------------------------------------


@pytest.mark.torch
@each_schedule
def test_a_rate_that_is_a_tensor_is_written_in_place(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib, module in ((pullback, lr_scheduler), (torch, torch.optim.lr_scheduler)):
        lr = lib.tensor(0.5, dtype=lib.float64)
        optimizer = _sgd(lib, lr=lr)
        scheduler = _made(name, module, optimizer)
        initial = optimizer.param_groups[0]["initial_lr"]
        found.append([*_run(optimizer, scheduler, 12), [float(initial)] * 4])
        assert optimizer.param_groups[0]["lr"] is lr
        assert scheduler.get_last_lr()[0] is not lr
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_copy_of_optimiser_and_schedule(duplicate: Callable[[Any], Any]) -> None:
    optimizer = _sgd(pullback)
    scheduler = lr_scheduler.SequentialLR(
        optimizer, [lr_scheduler.LinearLR(optimizer), lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, 5)], [6]
    )
    _run(optimizer, scheduler, 4)
    other, other_scheduler = duplicate((optimizer, scheduler))
    assert other_scheduler.optimizer is other
    assert _run(other, other_scheduler, 9) == _run(optimizer, scheduler, 9)


def test_a_schedule_keeps_no_optimiser_alive_that_is_gone() -> None:
    optimizer = _sgd(pullback)
    scheduler = lr_scheduler.CyclicLR(optimizer, 0.1, 0.5)
    optimizer.step()
    scheduler.step()
    gone = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer, scheduler
        assert gone() is None
    finally:
        gc.enable()


def test_one_cycle_ends() -> None:
    optimizer = _sgd(pullback)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=5)
    _run(optimizer, scheduler, 5)
    with pytest.raises(ValueError, match="5 steps in total"):
        scheduler.step()


def test_functions_are_not_saved_but_the_attributes_of_objects_are() -> None:
    one, other = (lr_scheduler.LambdaLR(_sgd(pullback), [Decay(rate), lambda epoch: 1.0]) for rate in (0.5, 0.25))
    saved = one.state_dict()
    assert saved["lr_lambdas"] == [{"rate": 0.5}, None]
    other.load_state_dict(saved)
    assert other.lr_lambdas[0].rate == 0.5  # type: ignore[attr-defined]
    assert saved["lr_lambdas"] == [{"rate": 0.5}, None]


def test_a_schedule_under_its_old_name() -> None:
    class Old(lr_scheduler._LRScheduler):
        def get_lr(self) -> list[Any]:
            return [lr / 2 for lr in self.base_lrs]

    optimizer = _sgd(pullback)
    assert isinstance(Old(optimizer), lr_scheduler.LRScheduler)
    assert optimizer.param_groups[0]["lr"] == 0.25


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, type[Exception], str, Callable[[Any, Any, Any], Any]]] = [
    ("no optimiser", TypeError, "Optimizer", lambda lib, s, o: s.StepLR([1], 2)),
    ("no optimiser, cyclic", TypeError, "Optimizer", lambda lib, s, o: s.CyclicLR(1, 0.1, 0.2)),
    ("no optimiser, one cycle", TypeError, "Optimizer", lambda lib, s, o: s.OneCycleLR(1, 0.1, 3)),
    ("no optimiser, plateau", TypeError, "Optimizer", lambda lib, s, o: s.ReduceLROnPlateau(1)),
    ("no initial_lr", KeyError, "initial_lr", lambda lib, s, o: s.StepLR(o, 2, last_epoch=3)),
    ("lambdas", ValueError, "2 groups|Expected 2", lambda lib, s, o: s.LambdaLR(o, [abs])),
    ("no function", TypeError, "function", lambda lib, s, o: s.MultiplicativeLR(o, 3)),
    ("constant", ValueError, "between 0 and 1|in .0, 1.", lambda lib, s, o: s.ConstantLR(o, 1.5)),
    ("linear start", ValueError, "start|Start", lambda lib, s, o: s.LinearLR(o, 0)),
    ("linear end", ValueError, "end|End", lambda lib, s, o: s.LinearLR(o, 0.5, 1.5)),
    ("restart", ValueError, "T_0", lambda lib, s, o: s.CosineAnnealingWarmRestarts(o, 0)),
    ("restart, mult", ValueError, "T_mult", lambda lib, s, o: s.CosineAnnealingWarmRestarts(o, 2, 1.5)),
    ("restart, end", ValueError, "eta_min", lambda lib, s, o: s.CosineAnnealingWarmRestarts(o, 2, eta_min="0")),
    ("restart, epoch", ValueError, "negative", lambda lib, s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1)),
    ("cyclic mode", ValueError, "mode", lambda lib, s, o: s.CyclicLR(o, 0.1, 0.2, mode="square")),
    ("cyclic rates", ValueError, "base_lr", lambda lib, s, o: s.CyclicLR(o, [0.1], 0.2)),
    ("cyclic momenta", ValueError, "max_momentum", lambda lib, s, o: s.CyclicLR(o, 0.1, 0.2, max_momentum=[0.9])),
    ("cyclic momentum", ValueError, "momentum", lambda lib, s, o: s.CyclicLR(_adagrad(lib), 0.1, 0.2)),
    ("one cycle momentum", ValueError, "momentum", lambda lib, s, o: s.OneCycleLR(_adagrad(lib), 0.1, 5)),
    ("one cycle steps", ValueError, "total_steps", lambda lib, s, o: s.OneCycleLR(o, 0.1)),
    ("one cycle total", ValueError, "total_steps", lambda lib, s, o: s.OneCycleLR(o, 0.1, 0)),
    ("one cycle epochs", ValueError, "epochs", lambda lib, s, o: s.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3)),
    ("one cycle part", ValueError, "pct_start", lambda lib, s, o: s.OneCycleLR(o, 0.1, 9, pct_start=1.5)),
    ("one cycle way", ValueError, "anneal_strategy", lambda lib, s, o: s.OneCycleLR(o, 0.1, 9, anneal_strategy="x")),
    ("plateau factor", ValueError, "1", lambda lib, s, o: s.ReduceLROnPlateau(o, factor=1.0)),
    ("plateau mode", ValueError, "mode", lambda lib, s, o: s.ReduceLROnPlateau(o, "least")),
    ("plateau threshold", ValueError, "threshold", lambda lib, s, o: s.ReduceLROnPlateau(o, threshold_mode="x")),
    ("plateau rates", ValueError, "min_lr", lambda lib, s, o: s.ReduceLROnPlateau(o, min_lr=[0.1])),
    ("nothing chained", ValueError, "at least one", lambda lib, s, o: s.ChainedScheduler([])),
    ("chained plateau", ValueError, "Plateau", lambda lib, s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)], o)),
    ("strangers", ValueError, "same opt", lambda lib, s, o: s.ChainedScheduler([_step(s, o), _step(s, _sgd(lib))])),
    ("no schedule", TypeError, "optimizer", lambda lib, s, o: s.SequentialLR(o, [3], [])),
    ("nothing in sequence", ValueError, "at least one", lambda lib, s, o: s.SequentialLR(o, [], [])),
    ("milestones", ValueError, "milestones", lambda lib, s, o: s.SequentialLR(o, [_step(s, o)], [3])),
]


def _adagrad(lib: Any) -> Any:
    return lib.optim.Adagrad([lib.zeros(1, requires_grad=True)])


def _step(module: Any, optimizer: Any) -> Any:
    return module.StepLR(optimizer, 2)


@pytest.mark.parametrize(("kind", "words", "make"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(kind: type[Exception], words: str, make: Callable[..., Any]) -> None:
    optimizer = _sgd(pullback)
    with pytest.raises(kind, match=words):
        make(pullback, lr_scheduler, optimizer)


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "make"), [(case[1], case[3]) for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_torch_refuses_with_the_same_exception(kind: type[Exception], make: Callable[..., Any]) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is what is compared
        make(torch, torch.optim.lr_scheduler, _sgd(torch))
    assert type(caught.value) is kind


@pytest.mark.parametrize("make", [case[3] for case in REFUSED if "epoch" not in case[0]])
def test_what_is_refused_changes_no_group(make: Callable[..., Any]) -> None:
    optimizer = _sgd(pullback)
    before = [dict(group) for group in optimizer.param_groups]
    with pytest.raises(Exception, match=r"\w"):
        make(pullback, lr_scheduler, optimizer)
    after = [{key: value for key, value in group.items() if key != "initial_lr"} for group in optimizer.param_groups]
    assert after == before


def test_a_sequence_cannot_begin_a_composed_schedule_anew() -> None:
    optimizer = _sgd(pullback)
    composed = lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(optimizer)])
    with pytest.raises(NotImplementedError, match="one by one"):
        lr_scheduler.SequentialLR(optimizer, [lr_scheduler.StepLR(optimizer, 2), composed], [3])


def test_the_base_class_has_no_rates() -> None:
    with pytest.raises(NotImplementedError, match="get_lr"):
        lr_scheduler.LRScheduler(_sgd(pullback))
