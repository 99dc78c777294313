"""Averages of models: against PyTorch's, and what is refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.optim import swa_utils


def _model(lib: Any) -> Any:
    class Model(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = lib.nn.Parameter(lib.zeros(2, 3, dtype=lib.float64))
            self.b = lib.nn.Parameter(lib.zeros(3))
            self.register_buffer("mean", lib.zeros(3))

        def forward(self, x: Any) -> Any:
            return x @ self.w + self.b

    return Model()


class _OneModel(pullback.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = pullback.nn.Parameter(pullback.ones(2))


def _change(lib: Any, model: Any, rng: np.random.Generator) -> None:
    for t in (*model.parameters(), *model.buffers()):
        t.detach().copy_(lib.tensor(rng.normal(size=tuple(t.shape))))


AVERAGES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "mean": lambda utils: {},
    "mean, buffers": lambda utils: {"use_buffers": True},
    "mean, given": lambda utils: {"avg_fn": utils.get_swa_avg_fn()},
    "mean, multi": lambda utils: {"multi_avg_fn": utils.get_swa_multi_avg_fn(), "use_buffers": True},
    "ema": lambda utils: {"avg_fn": utils.get_ema_avg_fn(0.9)},
    "ema, default": lambda utils: {"avg_fn": utils.get_ema_avg_fn(), "use_buffers": True},
    "ema, multi": lambda utils: {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.7)},
    "own": lambda utils: {"avg_fn": lambda averaged, current, n: averaged + current * n},
}


@pytest.mark.torch
@pytest.mark.parametrize("name", AVERAGES)
def test_the_average_is_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib, utils in ((pullback, swa_utils), (torch, torch.optim.swa_utils)):
        rng = np.random.default_rng(8)
        model = _model(lib)
        averaged = utils.AveragedModel(model, **AVERAGES[name](utils))
        seen = []
        for _ in range(6):
            _change(lib, model, rng)
            averaged.update_parameters(model)
            seen.append([t.detach().numpy().copy() for t in averaged.state_dict().values()])
        found.append((list(averaged.state_dict()), seen, averaged(lib.ones(1, 2, dtype=lib.float64)).detach().numpy()))
    (names, ours, result), (their_names, theirs, their_result) = found
    assert names == their_names
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine, other, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6 if a.dtype == np.float32 else 1e-13, atol=1e-7)
    np.testing.assert_allclose(result, their_result, rtol=1e-6)


def test_the_model_itself_is_left_alone_and_nothing_is_recorded() -> None:
    model = _OneModel()
    averaged = swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    model.w.data.fill_(3.0)
    averaged.update_parameters(model)
    assert model.w.tolist() == [3.0, 3.0]
    assert averaged.module.w.tolist() == [2.0, 2.0]
    assert averaged.module.w.is_leaf
    assert averaged.n_averaged.item() == 2


def test_an_average_without_parameters() -> None:
    model = pullback.nn.Identity()
    averaged = swa_utils.AveragedModel(model)
    for _ in range(2):
        averaged.update_parameters(model)
    assert averaged.n_averaged.item() == 2


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", [name for name in AVERAGES if name != "own"])
def test_a_copy_goes_on_by_itself(name: str, duplicate: Callable[[Any], Any]) -> None:
    model = _OneModel()
    averaged = swa_utils.AveragedModel(model, **AVERAGES[name](swa_utils))
    averaged.update_parameters(model)
    other = duplicate(averaged)
    model.w.data.fill_(3.0)
    averaged.update_parameters(model)
    assert other.module.w.tolist() == [1.0, 1.0]
    other.update_parameters(model)
    assert other.module.w.tolist() == averaged.module.w.tolist()


# -- the learning rate -------------------------------------------------------------------------------------------------


def _optimizer(lib: Any) -> Any:
    groups = [{"params": [lib.zeros(2, requires_grad=True)]}, {"params": [lib.zeros(1, requires_grad=True)], "lr": 0.1}]
    return lib.optim.SGD(groups, lr=0.5)


OPTIONS: list[dict[str, Any]] = [
    {"swa_lr": 0.05},
    {"swa_lr": [0.05, 0.3], "anneal_epochs": 7, "anneal_strategy": "linear"},
    {"swa_lr": 0.05, "anneal_epochs": 0},
    {"swa_lr": 0.05, "anneal_epochs": 1},
]


@pytest.mark.torch
@pytest.mark.parametrize("options", OPTIONS)
def test_the_rates_are_torchs(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib in (pullback, torch):
        optimizer = _optimizer(lib)
        other = lib.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for _ in range(3):
            optimizer.step()
            other.step()
        scheduler = lib.optim.swa_utils.SWALR(optimizer, **options)
        seen = [scheduler.get_last_lr()]
        for _ in range(20):
            optimizer.step()
            scheduler.step()
            seen.append(scheduler.get_last_lr())
        found.append(seen)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_a_loaded_rate_goes_on(tmp_path: Path) -> None:
    optimizer = _optimizer(pullback)
    scheduler = swa_utils.SWALR(optimizer, 0.05, anneal_epochs=6)
    rates = []
    for i in range(8):
        if i == 3:
            pullback.save([optimizer.state_dict(), scheduler.state_dict()], tmp_path / "state")
        optimizer.step()
        scheduler.step()
        rates.append(scheduler.get_last_lr())
    other = _optimizer(pullback)
    resumed = swa_utils.SWALR(other, 0.05, anneal_epochs=6)
    state, schedule = pullback.load(tmp_path / "state")
    other.load_state_dict(state)
    resumed.load_state_dict(schedule)
    for expected in rates[3:]:
        other.step()
        resumed.step()
        assert resumed.get_last_lr() == expected


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[type[Exception], str, Callable[[Any, Any], Any]]] = {
    "decay": (ValueError, "decay", lambda lib, s: s.get_ema_avg_fn(1.5)),
    "multi decay": (ValueError, "decay", lambda lib, s: s.get_ema_multi_avg_fn(-0.5)),
    "both": (
        AssertionError,
        "multi_avg_fn",
        lambda lib, s: s.AveragedModel(_model(lib), None, s.get_swa_avg_fn(), s.get_swa_multi_avg_fn()),
    ),
    "strategy": (ValueError, "anneal_strategy", lambda lib, s: s.SWALR(_optimizer(lib), 0.1, anneal_strategy="x")),
    "epochs": (ValueError, "anneal_epochs", lambda lib, s: s.SWALR(_optimizer(lib), 0.1, anneal_epochs=-1)),
    "rates": (ValueError, "swa_lr", lambda lib, s: s.SWALR(_optimizer(lib), [0.1])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    kind, words, make = REFUSED[name]
    with pytest.raises(kind, match=words):
        make(pullback, swa_utils)


@pytest.mark.torch
@pytest.mark.parametrize("name", REFUSED)
def test_torch_refuses_with_the_same_exception(name: str) -> None:
    torch = pytest.importorskip("torch")
    kind, _, make = REFUSED[name]
    with pytest.raises(kind):
        make(torch, torch.optim.swa_utils)
