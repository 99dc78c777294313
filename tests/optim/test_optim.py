"""The optimisers: their arithmetic by hand and against PyTorch, what they refuse, and what they remember."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.optim import SGD, Adam, AdamW, Optimizer, line_search, sweep, updates
from pullback.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook, required


def parameter(*values: float) -> pullback.Tensor:
    return pullback.tensor(values, dtype=pullback.float64, requires_grad=True)


def values_after(optimizer: Optimizer, p: pullback.Tensor, grads: Iterable[float]) -> list[float]:
    """The values of the one-element parameter `p` after a step with each of the gradients."""
    seen = []
    for g in grads:
        p.grad = pullback.tensor([g], dtype=pullback.float64)
        optimizer.step()
        seen.append(p.item())
    return seen


# -- the arithmetic, by hand -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "start", "grads", "expected"),
    [
        ({"lr": 0.5}, 3.0, [2.0, -4.0], [2.0, 4.0]),
        ({"lr": 0.5, "maximize": True}, 3.0, [2.0], [4.0]),
        ({"lr": 0.25, "weight_decay": 0.5}, 2.0, [1.0], [1.5]),
        ({"lr": 0.25, "weight_decay": 0.5, "maximize": True}, 2.0, [1.0, 3.0], [2.0, 2.5]),
        ({"lr": 0.5, "momentum": 0.5}, 1.0, [1.0, 1.0, 0.0], [0.5, -0.25, -0.625]),
        ({"lr": 1.0, "momentum": 0.5, "dampening": 0.5}, 1.0, [1.0, 1.0, 2.0], [0.0, -1.0, -2.5]),
        ({"lr": 0.5, "momentum": 0.5, "nesterov": True}, 1.0, [1.0, 1.0], [0.25, -0.625]),
    ],
)
def test_sgd_by_hand(options: dict[str, Any], start: float, grads: list[float], expected: list[float]) -> None:
    p = parameter(start)
    assert values_after(SGD([p], **options), p, grads) == pytest.approx(expected, rel=1e-15)


# With both betas 1/2, gradients 2 and 4: m = 1, 5/2 and v = 2, 9, to be divided by 1/2 and 3/4.
@pytest.mark.parametrize(
    ("kind", "options", "start", "grads", "expected"),
    [
        (Adam, {}, 1.0, [2.0, 4.0], [0.0, -(10 / 3) / 12**0.5]),
        (Adam, {"maximize": True}, 1.0, [2.0], [2.0]),
        (Adam, {}, 0.0, [2.0, 0.0], [-1.0, -1.0 - (2 / 3) / (4 / 3) ** 0.5]),
        (Adam, {"amsgrad": True}, 0.0, [2.0, 0.0], [-1.0, -1.0 - (2 / 3) / (8 / 3) ** 0.5]),
        (Adam, {"eps": 2.0}, 1.0, [2.0], [0.5]),
        (Adam, {"weight_decay": 0.5}, 4.0, [-1.0], [3.0]),  # follows the sign of -1 + 0.5 * 4
        (Adam, {"weight_decay": 0.5, "decoupled_weight_decay": True}, 4.0, [-1.0], [3.0]),  # 4 / 2 + 1
        (AdamW, {"weight_decay": 0.25}, 4.0, [1.0], [2.0]),  # 4 * 3/4 - 1
        (AdamW, {"weight_decay": 0.0}, 4.0, [1.0], [3.0]),
    ],
)
def test_adam_by_hand(
    kind: type[Adam], options: dict[str, Any], start: float, grads: list[float], expected: list[float]
) -> None:
    p = parameter(start)
    optimizer = kind([p], lr=1.0, betas=(0.5, 0.5), **{"eps": 0.0, **options})
    assert values_after(optimizer, p, grads) == pytest.approx(expected, rel=1e-14)


# Numbers that can be followed: gradients that are powers of two, and averages that keep one half.
@pytest.mark.parametrize(
    ("name", "options", "start", "grads", "expected"),
    [
        ("RMSprop", {"lr": 1.0, "alpha": 0.75, "eps": 0.0}, 1.0, [4.0], [-1.0]),  # v = 16 / 4
        ("RMSprop", {"lr": 1.0, "alpha": 0.5, "eps": 1.0, "momentum": 0.5}, 0.0, [0.0, 0.0], [0.0, 0.0]),
        ("RMSprop", {"lr": 1.0, "alpha": 0.5, "eps": 0.0, "centered": True}, 0.0, [4.0], [-2.0]),  # v = 8 - 2 ** 2
        ("Adagrad", {"lr": 1.0, "eps": 0.0}, 0.0, [3.0, 4.0], [-1.0, -1.8]),
        ("Adagrad", {"lr": 1.0, "eps": 0.0, "lr_decay": 1.0}, 0.0, [3.0, 4.0], [-1.0, -1.4]),
        ("Adagrad", {"lr": 1.0, "eps": 1.0, "initial_accumulator_value": 9.0}, 0.0, [4.0], [-4 / 6]),
        ("Adadelta", {"rho": 0.75, "eps": 1.0}, 0.0, [2.0], [-(2.0**0.5)]),  # sqrt(0 + 1) / sqrt(1 + 1) * 2
        ("Adamax", {"lr": 1.0, "betas": (0.5, 0.5), "eps": 0.0}, 0.0, [2.0, 1.0], [-1.0, -1.0 - 4 / 3]),
        ("RAdam", {"lr": 1.0, "betas": (0.5, 0.5)}, 0.0, [2.0, 5.0], [-2.0, -6.0]),  # m = 1 / (1/2), 3 / (3/4)
        ("Rprop", {"lr": 1.0, "etas": (0.5, 2.0)}, 0.0, [3.0, 7.0, -1.0, -1.0], [-1.0, -3.0, -3.0, -2.0]),
        ("Rprop", {"lr": 1.0, "etas": (0.5, 2.0), "step_sizes": (1.0, 1.5)}, 0.0, [1.0, 1.0], [-1.0, -2.5]),
        ("ASGD", {"lr": 0.5, "lambd": 0.0}, 1.0, [1.0, 1.0], [0.5, 0.0]),
        ("ASGD", {"lr": 0.5, "lambd": 1.0, "alpha": 1.0}, 4.0, [0.0, 0.0], [2.0, 2.0 * (1 - 0.5 / 1.5)]),
    ],
)
def test_the_others_by_hand(
    name: str, options: dict[str, Any], start: float, grads: list[float], expected: list[float]
) -> None:
    p = parameter(start)
    # eta is kept in single precision
    assert values_after(getattr(pullback.optim, name)([p], **options), p, grads) == pytest.approx(expected, rel=1e-7)


def test_the_average_of_asgd_begins_after_t0_steps() -> None:
    p = parameter(0.0)
    optimizer = pullback.optim.ASGD([p], lr=1.0, lambd=0.0, t0=2)
    averages = []
    for g in (1.0, 1.0, 1.0, 1.0, 1.0):
        values_after(optimizer, p, [g])
        averages.append(optimizer.state[p]["ax"].item())
    assert averages == [-1.0, -2.0, -3.0, -4.0, -4.5]  # mu is 1 up to step t0 + 2, then 1/2


def test_adam_treats_a_complex_parameter_as_two_real_ones() -> None:
    z = pullback.tensor([1 + 5j, -2 + 0.5j], dtype=pullback.complex128, requires_grad=True)
    re, im = parameter(1.0, -2.0), parameter(5.0, 0.5)
    optimizer = Adam([z, re, im], lr=0.1, amsgrad=True, weight_decay=0.1)
    for g in ([1 - 2j, 3j], [0.5 + 1j, -1 - 1j]):
        z.grad = pullback.tensor(g, dtype=pullback.complex128)
        re.grad, im.grad = (pullback.tensor(part) for part in (np.real(g), np.imag(g)))
        optimizer.step()
    np.testing.assert_array_equal(z.detach().numpy(), re.detach().numpy() + 1j * im.detach().numpy())


# -- the arithmetic, against PyTorch -----------------------------------------------------------------------------------


def _product(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(choices, chosen, strict=True)) for chosen in itertools.product(*choices.values())]


CASES = [
    *(
        ("SGD", {"lr": 0.1, **options})
        for options in _product(
            momentum=(0, 0.9), dampening=(0, 0.3), weight_decay=(0, 0.1), nesterov=(False, True), maximize=(False, True)
        )
        if not (options["nesterov"] and (options["momentum"] == 0 or options["dampening"] != 0))
    ),
    *(
        (name, {"lr": 0.05, **options})
        for name in ("Adam", "AdamW")
        for options in _product(
            betas=((0.9, 0.999), (0.5, 0.6)), weight_decay=(0, 0.1), amsgrad=(False, True), maximize=(False, True)
        )
    ),
    *(
        ("RMSprop", options)
        for options in _product(
            alpha=(0.99, 0.3), weight_decay=(0, 0.1), momentum=(0, 0.5), centered=(False, True), maximize=(False, True)
        )
    ),
    *(
        ("Adagrad", {"lr": 0.1, **options})
        for options in _product(
            lr_decay=(0, 0.3), weight_decay=(0, 0.1), initial_accumulator_value=(0, 0.5), maximize=(False, True)
        )
    ),
    *(("Adadelta", options) for options in _product(rho=(0.9, 0.2), weight_decay=(0, 0.1), maximize=(False, True))),
    *(
        ("Adamax", options)
        for options in _product(betas=((0.9, 0.999), (0.3, 0.5)), weight_decay=(0, 0.1), maximize=(False, True))
    ),
    *(
        (name, {"betas": (0.8, 0.9), **options})
        for name in ("NAdam", "RAdam")
        for options in _product(
            weight_decay=(0, 0.1), decoupled_weight_decay=(False, True), eps=(1e-8, 0.1), maximize=(False, True)
        )
    ),
    ("NAdam", {"momentum_decay": 0.5}),
    ("RAdam", {"betas": (0.3, 0.999)}),
    *(
        ("Rprop", options)
        for options in _product(
            etas=((0.5, 1.2), (0.1, 3)), step_sizes=((1e-6, 50), (0.005, 0.1)), maximize=(False, True)
        )
    ),
    *(
        ("ASGD", {"lr": 0.1, **options})
        for options in _product(lambd=(1e-4, 0.3), t0=(1e6, 5), weight_decay=(0, 0.1), maximize=(False, True))
    ),
]


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda value: value if isinstance(value, str) else None)
def test_twenty_steps_agree_with_torch(
    name: str, options: dict[str, Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    # So small that some arrays are cut, and some joined.
    monkeypatch.setattr(sweep, "BLOCK", 128)
    monkeypatch.setattr(sweep, "JOINED", 40)
    rng = np.random.default_rng(7)

    def sample(shape: tuple[int, ...]) -> Any:
        re, im = rng.normal(size=(2, *shape))
        return (re + 1j * im if dtype.startswith("complex") else re).astype(dtype)

    shapes = [(4, 3), (5,), (), (0, 2), (3, 17)]
    starts = [sample(shape) for shape in shapes]
    ours = [pullback.tensor(start, requires_grad=True) for start in starts]
    theirs = [torch.tensor(start, requires_grad=True) for start in starts]
    mine, reference = getattr(pullback.optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
    for _ in range(20):
        for p, q in zip(ours, theirs, strict=True):
            grad = sample(tuple(p.shape))
            p.grad, q.grad = pullback.tensor(grad), torch.tensor(grad)
        mine.step()
        reference.step()

    tolerance = 1e-13 if dtype == "float64" else 2e-5
    for p, q in zip(ours, theirs, strict=True):
        assert p.detach().numpy().dtype == dtype
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance)
    ours_saved, theirs_saved = mine.state_dict(), reference.state_dict()
    assert ours_saved["param_groups"] == theirs_saved["param_groups"]
    assert ours_saved["state"].keys() == theirs_saved["state"].keys()
    for i, kept in theirs_saved["state"].items():
        assert list(ours_saved["state"][i]) == list(kept)
        for key, value in kept.items():
            found = ours_saved["state"][i][key]
            assert str(found.dtype).split(".")[-1] == str(value.dtype).split(".")[-1]
            np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", ["SGD", "ASGD", "Adadelta", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"]
)
def test_half_precision_stays_what_it_is(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib in (pullback, torch):
        rng = np.random.default_rng(6)
        params = [lib.tensor(rng.normal(size=n).astype(np.float16), requires_grad=True) for n in (4, 7)]
        optimizer = getattr(lib.optim, name)(params, lr=0.05)
        for _ in range(10):
            for p in params:
                p.grad = lib.tensor(rng.normal(size=len(p)).astype(np.float16))
            optimizer.step()
        assert {p.dtype for p in params} == {lib.float16}
        found.append(np.concatenate([p.detach().numpy() for p in params]))
    np.testing.assert_allclose(found[0], found[1], atol=0.01)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {"lr": 2e-4, "momentum": 0.9, "nesterov": True}), ("Adam", {"lr": 0.1}), ("AdamW", {"lr": 0.1})],
)
def test_descent_agrees_with_torch(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")

    def descend(library: Any) -> Any:
        x = library.tensor([-1.5, 2.0], dtype=library.float64, requires_grad=True)
        optimizer = getattr(library.optim, name)([x], **options)
        for _ in range(20):
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            optimizer.step()
        return x.detach().numpy()

    np.testing.assert_allclose(descend(pullback), descend(torch), rtol=1e-10)


# -- how a step writes -------------------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "ASGD": {"lr": 0.1, "t0": 1, "weight_decay": 0.1},
    "Adadelta": {"weight_decay": 0.1, "maximize": True},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5},
    "Adam": {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"lr": 0.1},
    "Adamax": {"lr": 0.1, "weight_decay": 0.1},
    "NAdam": {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1},
    "RAdam": {"lr": 0.1, "betas": (0.5, 0.6)},
    "RMSprop": {"lr": 0.1, "momentum": 0.5, "centered": True},
    "Rprop": {"lr": 0.1},
}
KINDS = [functools.partial(getattr(pullback.optim, name), **options) for name, options in OPTIONS.items()]
each_kind = pytest.mark.parametrize("make", KINDS, ids=list(OPTIONS))


def test_every_optimiser_is_among_the_kinds() -> None:
    kinds = {name for name in pullback.optim.__all__ if isinstance(getattr(pullback.optim, name), type)}
    others = {"LBFGS", "Adafactor", "Muon", "SparseAdam"}  # no rules for each element, with tests of their own
    assert OPTIONS.keys() == kinds - {"Optimizer"} - others


@each_kind
def test_a_step_writes_in_place_and_is_not_recorded(make: Callable[..., Optimizer]) -> None:
    p = pullback.tensor([1.0, 2.0], requires_grad=True)
    optimizer = make([p])
    (p * p).sum().backward()
    memory, before, version = p.detach(), p.detach().clone(), p._version
    grad = p.grad.clone()
    optimizer.step()
    assert p.is_leaf
    assert p.requires_grad
    assert p._version > version
    assert p.dtype == pullback.float32
    assert not np.array_equal(p.detach().numpy(), before.numpy())
    np.testing.assert_array_equal(memory.numpy(), p.detach().numpy())
    np.testing.assert_array_equal(p.grad.numpy(), grad.numpy())
    versions = {name: t._version for name, t in optimizer.state[p].items()}
    optimizer.step()
    assert all(t._version > versions[name] for name, t in optimizer.state[p].items())


def test_a_graph_that_saved_the_parameter_notices_the_step() -> None:
    p = pullback.tensor([1.0, 2.0], requires_grad=True)
    optimizer = SGD([p], lr=0.1)
    loss = (p * p).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified"):
        loss.backward()


@each_kind
def test_later_steps_allocate_nothing_of_the_size_of_a_parameter(make: Callable[..., Optimizer]) -> None:
    p = pullback.zeros(200_000, requires_grad=True)
    optimizer = make([p])
    p.grad = pullback.ones(200_000)
    for _ in range(3):  # the first makes the state; in the second, or the third, a loop may be compiled
        optimizer.step()
    tracemalloc.start()
    try:
        optimizer.step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@each_kind
def test_a_parameter_without_gradient_is_left_alone(make: Callable[..., Optimizer]) -> None:
    used, unused = parameter(1.0), parameter(1.0)
    optimizer = make([used, unused])
    (used * 2).sum().backward()
    optimizer.step()
    assert unused.item() == 1.0
    assert unused not in optimizer.state or optimizer.state[unused]["step"].item() == 0  # Adagrad's begins at once


@each_kind
def test_non_contiguous_parameters(make: Callable[..., Optimizer]) -> None:
    rng = np.random.default_rng(3)
    start, grad = rng.normal(size=(2, 3, 4))
    found = []
    for array in (start.copy(), np.asfortranarray(start), np.repeat(start, 2, axis=1)[:, ::2]):
        p = pullback.from_numpy(array).requires_grad_()
        optimizer = make([p])
        for _ in range(3):
            p.grad = pullback.tensor(grad)
            optimizer.step()
        found.append(array)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_a_gradient_that_is_not_finite_shows_in_the_parameter_and_not_as_a_warning() -> None:
    p = parameter(1.0, 1.0, 1.0)
    p.grad = pullback.tensor([np.inf, np.nan, 0.0], dtype=pullback.float64)
    Adam([p], lr=0.1, eps=0.0).step()
    assert np.isnan(p.detach().numpy()).all()


def test_closure_runs_with_gradients_and_its_value_is_returned() -> None:
    p = parameter(3.0)
    optimizer = SGD([p], lr=0.5)

    def closure() -> pullback.Tensor:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with pullback.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert p.item() == 0.0
    assert SGD([p]).step() is None


def test_zero_grad() -> None:
    p, q, r = parameter(1.0, 2.0), parameter(1.0), parameter(1.0)
    optimizer = SGD([p, q, r])
    (p * p).sum().backward()
    (q.grad,) = pullback.autograd.grad((q**3).sum(), q, create_graph=True)
    held, recorded = p.grad, q.grad
    assert recorded.requires_grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is held
    assert q.grad is recorded
    assert held.tolist() == [0.0, 0.0]
    assert recorded.tolist() == [0.0]
    assert not recorded.requires_grad
    assert r.grad is None
    optimizer.zero_grad()
    assert p.grad is None
    assert q.grad is None


@each_kind
def test_gradients_that_are_missing_at_times_and_mixed_dtypes(make: Callable[..., Optimizer]) -> None:
    """What is updated together by chance makes no difference: each parameter goes the way it goes alone."""
    rng = np.random.default_rng(11)
    starts = [rng.normal(size=3).astype(dtype) for dtype in ("float32", "float64", "float64", "complex128", "float64")]
    together, alone = ([pullback.tensor(start, requires_grad=True) for start in starts] for _ in range(2))
    optimizer, optimizers = make(together), [make([p]) for p in alone]
    for _ in range(8):
        for p, q in zip(together, alone, strict=True):
            present = rng.random() < 0.6
            g = rng.normal(size=3)
            p.grad, q.grad = (pullback.tensor(g, dtype=p.dtype) if present else None for _ in range(2))
        optimizer.step()
        for one in optimizers:
            one.step()
    for p, q in zip(together, alone, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


@pytest.mark.torch
@pytest.mark.parametrize("name", OPTIONS)
def test_two_parameters_on_the_same_memory_are_updated_one_after_the_other(name: str) -> None:
    torch = pytest.importorskip("torch")

    def tied(lib: Any) -> Any:
        p = lib.tensor([1.0, -2.0], dtype=lib.float64, requires_grad=True)
        q = p.detach()[:1].requires_grad_()
        optimizer = getattr(lib.optim, name)([p, q], **OPTIONS[name])
        for i in range(5):
            p.grad = lib.tensor([1.0, 0.5 * i], dtype=lib.float64)
            q.grad = lib.tensor([0.5 - i], dtype=lib.float64)
            optimizer.step()
        return p.detach().numpy()

    np.testing.assert_allclose(tied(pullback), tied(torch), rtol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("name", OPTIONS)
def test_a_parameter_that_is_twice_in_a_group_is_updated_twice(name: str) -> None:
    torch = pytest.importorskip("torch")
    options = {"lr": 0.1} if name == "SGD" else OPTIONS[name]  # torch's SGD begins such a parameter's momentum twice

    def twice(lib: Any) -> Any:
        p = lib.tensor([1.0, -2.0], dtype=lib.float64, requires_grad=True)
        with pytest.warns(UserWarning, match=r"twice|duplicate"):
            optimizer = getattr(lib.optim, name)([p, p], **options)
        p.grad = lib.tensor([1.0, 0.5], dtype=lib.float64)
        optimizer.step()
        return p.detach().numpy()

    np.testing.assert_allclose(twice(pullback), twice(torch), rtol=1e-12)


@each_kind
def test_a_parameter_of_a_module_stays_one(make: Callable[..., Optimizer]) -> None:
    p = pullback.nn.Parameter(pullback.tensor([1.0, 2.0], dtype=pullback.float64))
    q = parameter(1.0, 2.0)
    for one in (p, q):
        one.grad = pullback.tensor([0.5, -0.5], dtype=pullback.float64)
        make([one]).step()
    assert isinstance(p, pullback.nn.Parameter)
    assert p.tolist() == q.tolist()


# -- the sweep ---------------------------------------------------------------------------------------------------------


def _layouts(shape: tuple[int, ...], dtype: str) -> dict[str, Callable[[], np.ndarray[Any, Any]]]:
    """Arrays of a shape that lie in memory in different ways."""
    wide = (*shape[:-1], 2 * shape[-1])
    return {
        "C": lambda: np.zeros(shape, dtype),
        "F": lambda: np.zeros(shape, dtype, order="F"),
        "strided": lambda: np.zeros(wide, dtype)[..., ::2],
        "reversed": lambda: np.zeros(shape, dtype)[::-1],
    }


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(1,), (7,), (50,), (3, 4), (2, 40), (20, 3), (3, 2, 30), (0, 3)])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_sweep_gets_to_every_element_once(
    shape: tuple[int, ...], dtype: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "BLOCK", 128)
    monkeypatch.setattr(sweep, "JOINED", 100)
    rng = np.random.default_rng(5)
    sizes = []

    def rule(block: Any, work: Any) -> None:
        grad, param, kept = block
        sizes.append(param.nbytes)
        assert param.dtype.kind == "f"
        assert {w.shape for w in work} == {param.shape}
        work[-1][...] = grad  # scratch memory is the rule's own
        param += work[-1]
        kept += 2 * grad

    run = sweep.Sweep()
    made = list(_layouts(shape, dtype).items())
    for (_, param), (_, grad), (_, kept) in itertools.product(made, repeat=3):
        members = [(grad(), param(), kept()) for _ in range(count)]
        for g, _, _ in members:
            g[...] = rng.integers(1, 9, size=(2, *shape)).T.T[0] * (1 + (1j if dtype.startswith("c") else 0))
        before = [g.copy() for g, _, _ in members]
        run(rule, members)
        for (g, p, k), old in zip(members, before, strict=True):
            np.testing.assert_array_equal(g, old)
            np.testing.assert_array_equal(p, old)
            np.testing.assert_array_equal(k, 2 * old)
    assert all(size <= 128 for size in sizes)


def test_small_arrays_are_joined_and_large_ones_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "BLOCK", 1 << 16)
    monkeypatch.setattr(sweep, "JOINED", 1 << 12)
    seen = []
    run = sweep.Sweep()

    def members(count: int, size: int) -> list[tuple[np.ndarray[Any, Any], ...]]:
        return [(np.zeros(size), np.zeros(size)) for _ in range(count)]

    def rule(block: Any, work: Any) -> None:
        seen.append(block[0].size)

    run(rule, members(100, 10))
    assert seen == [1000]
    seen.clear()
    run(rule, members(1, 2 * sweep.BLOCK // 8 + 5))
    assert seen == [sweep.BLOCK // 8, sweep.BLOCK // 8, 5]
    seen.clear()
    run(rule, members(3, sweep.JOINED // 8 + 1))
    assert seen == [sweep.JOINED // 8 + 1] * 3
    seen.clear()
    run(rule, members(sweep.BLOCK // sweep.JOINED + 1, sweep.JOINED // 8))
    assert seen == [sweep.BLOCK // 8, sweep.JOINED // 8]


@pytest.mark.parametrize("weight", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_a_running_mean_is_exact_at_both_ends(weight: float) -> None:
    mean, target = np.array([1e20, 1.0, 0.1]), np.array([1.0, 1e20, 0.3])
    expected = {0.0: mean.copy(), 1.0: target.copy()}.get(weight, (1 - weight) * mean + weight * target)
    updates.move(mean, target, weight, np.empty(3))
    np.testing.assert_allclose(mean, expected, rtol=0.0 if weight in (0, 1) else 1e-15)


# -- hooks -------------------------------------------------------------------------------------------------------------


def test_hooks_around_a_step_in_their_order() -> None:
    p = parameter(1.0)
    optimizer = SGD([p], lr=0.5)
    p.grad = pullback.ones(1, dtype=pullback.float64)
    seen: list[Any] = []

    def note(name: str) -> Callable[..., None]:
        return lambda opt, args, kwargs: seen.append((name, opt is optimizer, args[1:], kwargs, p.item()))

    handles = [
        optimizer.register_step_post_hook(note("after")),
        optimizer.register_step_pre_hook(note("before")),
        register_optimizer_step_pre_hook(note("before any")),
        register_optimizer_step_post_hook(note("after any")),
    ]
    try:
        optimizer.step(closure=None)
    finally:
        for handle in handles:
            handle.remove()
    none = {"closure": None}
    assert seen == [
        ("before any", True, (), none, 1.0),
        ("before", True, (), none, 1.0),
        ("after", True, (), none, 0.5),
        ("after any", True, (), none, 0.5),
    ]
    optimizer.step()
    assert len(seen) == 4


def test_a_hook_may_give_other_arguments() -> None:
    p = parameter(1.0)
    optimizer = SGD([p], lr=0.5)
    with optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((opt, lambda: 7), {})):
        assert optimizer.step() == 7
    with (
        optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3),
        pytest.raises(RuntimeError, match=r"new_args, new_kwargs"),
    ):
        optimizer.step()
    assert optimizer.step() is None


def test_hooks_run_once_around_a_step_that_calls_the_step_of_its_class() -> None:
    class Noisy(SGD):
        def step(self, closure: Any = None) -> Any:
            seen.append("step")
            return super().step(closure)

    seen: list[str] = []
    optimizer = Noisy([parameter(1.0)])
    optimizer.register_step_pre_hook(lambda *args: seen.append("before"))
    optimizer.step()
    assert seen == ["before", "step"]


def test_an_optimiser_of_ones_own() -> None:
    class Signs(Optimizer):
        @pullback.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])
                    self.state[p]["count"] = self.state[p].get("count", 0) + 1

    p = parameter(1.0, 2.0)
    optimizer = Signs([p], {"lr": 0.5})
    p.grad = pullback.tensor([3.0, -4.0], dtype=pullback.float64)
    optimizer.step()
    assert p.tolist() == [0.5, 2.5]
    other = Signs([parameter(0.0, 0.0)], {"lr": 0.1})
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["lr"] == 0.5
    assert next(iter(other.state.values())) == {"count": 1}


def test_an_option_may_be_required_of_each_group() -> None:
    class Fixed(Optimizer):
        def __init__(self, params: Any, lr: Any = required) -> None:
            super().__init__(params, {"lr": lr, "decay": 0.5})

    p, q = parameter(1.0), parameter(2.0)
    assert repr(required) == "<required parameter>"
    assert Fixed([p], lr=2.0).param_groups[0]["lr"] == 2.0
    optimizer = Fixed([{"params": [p], "lr": 3.0}])
    assert optimizer.param_groups[0] == {"params": [p], "lr": 3.0, "decay": 0.5}
    group: dict[str, Any] = {"params": [q]}
    with pytest.raises(
        ValueError, match=r"specify a value of required optimization parameter lr\.\n.*give lr=\.\.\. to"
    ):
        optimizer.add_param_group(group)
    assert group == {"params": [q]}
    assert len(optimizer.param_groups) == 1


def test_an_optimiser_around_another_may_leave_out_the_init_of_its_base() -> None:
    """As it is written for torch, where only that init puts hooks around the steps."""

    class Around(Optimizer):
        def __init__(self, inner: Optimizer) -> None:
            self.inner, self.param_groups = inner, inner.param_groups

        def step(self, closure: Any = None) -> Any:
            return self.inner.step(closure)

    p = parameter(1.0)
    p.grad = pullback.ones(1, dtype=pullback.float64)
    around = Around(SGD([p], lr=0.25))
    around.step()
    around.step()
    assert p.tolist() == [0.5]


def test_hooks_around_saving_and_loading() -> None:
    optimizer = SGD([parameter(1.0)], lr=0.5)
    seen: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda opt: seen.append("second"))
    optimizer.register_state_dict_pre_hook(lambda opt: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
    optimizer.register_state_dict_post_hook(lambda opt, state: seen.append(f"more is {state['more']}"))
    saved = optimizer.state_dict()
    assert seen == ["first", "second", "more is 1"]
    assert saved["more"] == 1

    def halved(opt: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "param_groups": [{**group, "lr": group["lr"] / 2} for group in state["param_groups"]]}

    optimizer.register_load_state_dict_pre_hook(halved)
    optimizer.register_load_state_dict_post_hook(lambda opt: seen.append(f"lr is {opt.param_groups[0]['lr']}"))
    optimizer.load_state_dict(saved)
    assert seen[3:] == ["lr is 0.25"]
    assert saved["param_groups"][0]["lr"] == 0.5


# -- groups ------------------------------------------------------------------------------------------------------------


def test_groups_have_options_of_their_own_that_may_change_between_steps() -> None:
    p, q = parameter(0.0), parameter(0.0)
    optimizer = SGD([{"params": [p]}, {"params": q, "lr": 1.0}], lr=0.5)
    p.grad, q.grad = (pullback.ones(1, dtype=pullback.float64) for _ in range(2))
    optimizer.step()
    assert (p.item(), q.item()) == (-0.5, -1.0)
    optimizer.param_groups[0]["lr"] = 2.0
    optimizer.step()
    assert (p.item(), q.item()) == (-2.5, -2.0)


def test_add_param_group_keeps_the_dict_and_completes_it() -> None:
    p, q = parameter(0.0), parameter(0.0)
    optimizer = SGD([p], lr=0.5, momentum=0.9)
    group = {"params": iter([q]), "lr": 0.1}
    optimizer.add_param_group(group)
    assert optimizer.param_groups[1] is group
    assert (group["params"], group["lr"], group["momentum"]) == ([q], 0.1, 0.9)


def test_named_parameters() -> None:
    p, q = parameter(0.0), parameter(0.0)
    optimizer = SGD([("first", p), ("second", q)])
    assert optimizer.param_groups[0]["params"] == [p, q]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["first", "second"]
    with pytest.raises(ValueError, match="names"):
        optimizer.add_param_group({"params": [parameter(0.0)]})
    with pytest.raises(ValueError, match="no name for number 1"):
        SGD([("first", p), q])


def test_repr_lists_the_options_of_each_group() -> None:
    text = repr(SGD([{"params": [parameter(0.0)]}, {"params": [parameter(0.0)], "lr": 0.25}], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.5\n" in text
    assert "Parameter Group 1\n" in text
    assert "    lr: 0.25\n" in text


def test_tensors_as_learning_rate_and_betas() -> None:
    p, q = parameter(3.0), parameter(3.0)
    grads = [2.0, -1.0, 0.5]
    as_tensors = Adam([p], lr=pullback.tensor(0.5), betas=(pullback.tensor(0.5), pullback.tensor([0.25])))
    assert values_after(as_tensors, p, grads) == values_after(Adam([q], lr=0.5, betas=(0.5, 0.25)), q, grads)
    assert as_tensors.param_groups[0]["betas"] == (0.5, 0.25)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_tensor_as_learning_rate_may_change_in_place(name: str) -> None:
    lr = pullback.tensor(0.5, dtype=pullback.float64)
    p, q = parameter(3.0), parameter(3.0)
    as_tensor, as_float = (getattr(pullback.optim, name)([one], lr=rate) for one, rate in ((p, lr), (q, 0.5)))
    for rate in (0.5, 0.25):
        lr.fill_(rate)
        as_float.param_groups[0]["lr"] = rate
        assert values_after(as_tensor, p, [2.0, 1.0]) == values_after(as_float, q, [2.0, 1.0])


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, type[Exception], str, Callable[[Any], Any]]] = [
    ("a lone tensor", TypeError, "single Tensor", lambda lib: lib.optim.SGD(lib.zeros(2, requires_grad=True))),
    ("no parameters", ValueError, "empty parameter list", lambda lib: lib.optim.SGD([])),
    ("a used iterator", ValueError, "empty parameter list", lambda lib: lib.optim.Adam(iter(()))),
    ("a set", TypeError, "order", lambda lib: lib.optim.SGD([{"params": {lib.zeros(2, requires_grad=True)}}])),
    ("an array", TypeError, "ndarray", lambda lib: lib.optim.SGD([np.zeros(2)])),
    ("no params", KeyError, "params", lambda lib: lib.optim.SGD([{"lr": 1.0}])),
    ("not a dict", TypeError, "dict", lambda lib: _sgd(lib).add_param_group([lib.zeros(2, requires_grad=True)])),
    ("a non-leaf", ValueError, "non-leaf", lambda lib: lib.optim.SGD([lib.zeros(2, requires_grad=True) * 2])),
    ("twice", ValueError, "more than one", lambda lib: _twice(lib)),
    ("lr", ValueError, "lr", lambda lib: _sgd(lib, lr=-1.0)),
    ("lr shape", ValueError, "1 element", lambda lib: _sgd(lib, lr=lib.zeros(2))),
    ("momentum", ValueError, "momentum", lambda lib: _sgd(lib, momentum=-0.1)),
    ("decay", ValueError, "weight_decay", lambda lib: _sgd(lib, weight_decay=-0.1)),
    ("nesterov", ValueError, "nesterov", lambda lib: _sgd(lib, nesterov=True)),
    ("dampened", ValueError, "dampening", lambda lib: _sgd(lib, momentum=0.9, dampening=0.1, nesterov=True)),
    ("adam lr", ValueError, "lr", lambda lib: _adam(lib, lr=float("nan"))),
    ("eps", ValueError, "eps", lambda lib: _adam(lib, eps=-1e-8)),
    ("adam decay", ValueError, "weight_decay", lambda lib: _adam(lib, weight_decay=-0.1)),
    ("beta 0", ValueError, r"betas\[0\]", lambda lib: _adam(lib, betas=(1.0, 0.9))),
    ("beta 1", ValueError, r"betas\[1\]", lambda lib: _adam(lib, betas=(0.9, -0.1))),
    ("integer beta", ValueError, "betas", lambda lib: _adam(lib, betas=(0, 0.9))),
    ("mixed betas", ValueError, "betas", lambda lib: _adam(lib, betas=(lib.tensor(0.5), 0.9))),
    ("foreach and fused", RuntimeError, "fused", lambda lib: _adam(lib, foreach=True, fused=True)),
    ("rmsprop alpha", ValueError, "alpha", lambda lib: _made(lib, "RMSprop", alpha=-0.1)),
    ("rmsprop momentum", ValueError, "momentum", lambda lib: _made(lib, "RMSprop", momentum=-0.1)),
    ("adagrad lr_decay", ValueError, "lr_decay", lambda lib: _made(lib, "Adagrad", lr_decay=-0.1)),
    ("adagrad sum", ValueError, "initial_acc", lambda lib: _made(lib, "Adagrad", initial_accumulator_value=-1.0)),
    ("adadelta rho", ValueError, "rho", lambda lib: _made(lib, "Adadelta", rho=1.5)),
    ("adamax betas", ValueError, r"betas\[1\]", lambda lib: _made(lib, "Adamax", betas=(0.9, 1.0))),
    ("nadam decay", ValueError, "momentum_decay", lambda lib: _made(lib, "NAdam", momentum_decay=-0.1)),
    ("radam betas", ValueError, r"betas\[0\]", lambda lib: _made(lib, "RAdam", betas=(-0.1, 0.9))),
    ("rprop etas", ValueError, "etas", lambda lib: _made(lib, "Rprop", etas=(0.5, 0.9))),
    ("asgd decay", ValueError, "weight_decay", lambda lib: _made(lib, "ASGD", weight_decay=-0.1)),
    ("lbfgs lr", ValueError, "lr", lambda lib: _made(lib, "LBFGS", lr=-1.0)),
    ("lbfgs groups", ValueError, "group", lambda lib: lib.optim.LBFGS([{"params": lib.zeros(2)} for _ in range(2)])),
]


def _made(lib: Any, name: str, **options: Any) -> Any:
    return getattr(lib.optim, name)([lib.zeros(2, requires_grad=True)], **options)


_sgd, _adam = (functools.partial(_made, name=name) for name in ("SGD", "Adam"))


def _twice(lib: Any) -> Any:
    p = lib.zeros(2, requires_grad=True)
    return lib.optim.SGD([{"params": [p]}, {"params": [p]}])


@pytest.mark.parametrize(("kind", "words", "make"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(kind: type[Exception], words: str, make: Callable[[Any], Any]) -> None:
    with pytest.raises(kind, match=words):
        make(pullback)


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "make"), [(case[1], case[3]) for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_torch_refuses_with_the_same_exception(kind: type[Exception], make: Callable[[Any], Any]) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is what is compared
        make(torch)
    assert type(caught.value) is kind


def test_a_beta_of_several_elements_is_refused() -> None:
    with pytest.raises(ValueError, match=r"betas\[0\].*1 element"):
        _adam(pullback, betas=(pullback.zeros(2), pullback.zeros(2)))


@pytest.mark.parametrize("name", OPTIONS)
def test_a_differentiable_step_is_refused(name: str) -> None:
    with pytest.raises(NotImplementedError, match="tensor operations"):
        _made(pullback, name, differentiable=True)


@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - {"SGD", "Adagrad"}))
def test_a_captured_step_is_refused(name: str) -> None:
    with pytest.raises(NotImplementedError, match="no device"):
        _made(pullback, name, capturable=True)


@each_kind
@pytest.mark.parametrize("foreach", [None, False, True])
def test_which_of_torchs_implementations_is_asked_for_makes_no_difference(
    make: Callable[..., Optimizer], foreach: bool | None
) -> None:
    p, q = parameter(1.0), parameter(1.0)
    grads = [2.0, -1.0]
    assert values_after(make([p], foreach=foreach), p, grads) == values_after(make([q]), q, grads)


def test_a_sparse_parameter_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"values\(\)"):
        SGD([pullback.eye(2).to_sparse().requires_grad_()])


def test_a_non_leaf_that_retains_its_gradient_is_accepted() -> None:
    p = parameter(3.0)
    q = p * 2
    q.retain_grad()
    optimizer = SGD([q], lr=0.5)
    (q * q).sum().backward()
    with pullback.no_grad():
        optimizer.step()
    assert q.item() == 0.0


def test_a_parameter_twice_in_one_group_is_warned_of() -> None:
    p = parameter(3.0)
    with pytest.warns(UserWarning, match="twice"):
        SGD([p, p])


def test_a_refused_group_changes_nothing() -> None:
    p = parameter(0.0)
    optimizer = SGD([p])
    group = {"params": (parameter(0.0), p)}
    before = dict(group)
    with pytest.raises(ValueError, match="parameter 1 in more than one"):
        optimizer.add_param_group(group)
    assert group == before
    assert len(optimizer.param_groups) == 1


def test_the_base_class_has_no_rule() -> None:
    p = parameter(0.0)
    optimizer = Optimizer([p], {"lr": 0.1})
    p.grad = pullback.zeros(1, dtype=pullback.float64)
    with pytest.raises(NotImplementedError, match=r"Optimizer must define step\(\)"):
        optimizer.step()


# -- saving and loading ------------------------------------------------------------------------------------------------


@each_kind
def test_a_loaded_state_goes_on_where_the_saved_one_stopped(make: Callable[..., Optimizer]) -> None:
    grads = [1.0, -2.0, 0.5, 3.0]
    p, q = parameter(1.0), parameter(1.0)
    whole = values_after(make([p]), p, grads)
    first = make([q])
    values_after(first, q, grads[:2])
    saved = first.state_dict()
    r = parameter(q.item())
    second = make([r])
    second.load_state_dict(saved)
    assert values_after(second, r, grads[2:]) == whole[2:]
    # What was loaded is a copy: the first optimiser did not move with the second.
    assert values_after(first, q, grads[2:]) == whole[2:]


def test_state_dict_names_parameters_by_position() -> None:
    params = [parameter(float(i)) for i in range(3)]
    optimizer = Adam([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}])
    for p in params[1:]:
        p.grad = pullback.ones(1, dtype=pullback.float64)
    optimizer.step()
    saved = optimizer.state_dict()
    assert [group["params"] for group in saved["param_groups"]] == [[0], [1, 2]]
    assert set(saved["state"]) == {1, 2}
    assert saved["state"][2]["step"].item() == 1.0
    assert saved["state"][2]["exp_avg"] is optimizer.state[params[2]]["exp_avg"]


def test_loading_casts_to_the_parameter_but_not_the_step() -> None:
    p = parameter(1.0)
    first = Adam([p])
    values_after(first, p, [1.0])
    q = pullback.zeros(1, dtype=pullback.float16, requires_grad=True)
    second = Adam([q])
    second.load_state_dict(first.state_dict())
    assert second.state[q]["exp_avg"].dtype == pullback.float16
    assert second.state[q]["step"].dtype == pullback.float32


@each_kind
def test_the_counts_of_old_states_are_numbers(make: Callable[..., Optimizer]) -> None:
    p = parameter(1.0)
    first = make([p])
    values_after(first, p, [1.0, 2.0])
    saved = first.state_dict()
    counts = {name: t.item() for name, t in saved["state"][0].items() if t.ndim == 0}
    saved = {**saved, "state": {0: {**saved["state"][0], **counts}}}
    q = parameter(p.item())
    second = make([q])
    second.load_state_dict(saved)
    assert {name: second.state[q][name].dtype for name in counts} == dict.fromkeys(counts, pullback.float32)
    assert values_after(second, q, [3.0]) == values_after(first, p, [3.0])


def test_a_momentum_that_has_not_begun_may_be_saved_as_none() -> None:
    p = parameter(1.0)
    optimizer = SGD([p], lr=1.0, momentum=0.5, dampening=0.5)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: {"momentum_buffer": None}}})
    assert values_after(optimizer, p, [1.0, 1.0]) == [0.0, -1.0]


@each_kind
def test_a_state_goes_through_a_file(make: Callable[..., Optimizer], tmp_path: Path) -> None:
    p = parameter(1.0)
    first = make([p])
    values_after(first, p, [1.0, 2.0])
    pullback.save(first.state_dict(), tmp_path / "state")
    q = parameter(p.item())
    second = make([q])
    second.load_state_dict(pullback.load(tmp_path / "state"))
    assert values_after(second, q, [3.0]) == values_after(first, p, [3.0])


def test_loading_replaces_options_and_keeps_those_that_are_missing() -> None:
    p = parameter(1.0)
    optimizer = SGD([p], lr=0.5, momentum=0.9)
    optimizer.load_state_dict({"state": {}, "param_groups": [{"lr": 0.25, "params": [0]}]})
    group = optimizer.param_groups[0]
    assert (group["lr"], group["momentum"], group["params"]) == (0.25, 0.9, [p])


def test_adamw_stays_decoupled_when_it_loads_adams_state() -> None:
    p = parameter(1.0)
    optimizer = AdamW([p])
    optimizer.load_state_dict(Adam([parameter(1.0)]).state_dict())
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is True


def test_a_state_of_other_groups_is_refused_and_changes_nothing() -> None:
    p = parameter(1.0)
    optimizer = SGD([p], lr=0.5)
    with pytest.raises(ValueError, match=r"sizes \[1\].*sizes \[2\]"):
        optimizer.load_state_dict(SGD([parameter(0.0), parameter(0.0)], lr=0.1).state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.param_groups[0]["params"] == [p]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda optimizer: pickle.loads(pickle.dumps(optimizer))])
def test_a_copy_goes_on_by_itself(duplicate: Callable[[Optimizer], Optimizer]) -> None:
    p = parameter(1.0)
    optimizer = Adam([p], lr=0.1)
    values_after(optimizer, p, [1.0, 2.0])
    optimizer.register_step_pre_hook(lambda *args: None)  # hooks stay where they are
    other = duplicate(optimizer)
    (q,) = other.param_groups[0]["params"]
    assert q is not p
    assert values_after(other, q, [3.0]) == values_after(optimizer, p, [3.0])


# -- L-BFGS ------------------------------------------------------------------------------------------------------------


def _rosenbrock(lib: Any) -> tuple[list[Any], Callable[[], Any]]:
    x = lib.tensor([-1.5, 2.0], dtype=lib.float64, requires_grad=True)
    return [x], lambda: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def _logistic(lib: Any) -> tuple[list[Any], Callable[[], Any]]:
    rng = np.random.default_rng(0)
    inputs, labels = lib.tensor(rng.normal(size=(40, 6))), lib.tensor(np.sign(rng.normal(size=40)))
    weights = lib.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    bias = lib.tensor(np.zeros(()), requires_grad=True)
    unused = lib.tensor(np.zeros(2), requires_grad=True)

    def loss() -> Any:
        margins = labels * (inputs @ weights.reshape(6) + bias)
        return (1 + (-margins).exp()).log().sum() + 0.1 * (weights**2).sum()

    return [weights, unused, bias], loss


def _network(lib: Any) -> tuple[list[Any], Callable[[], Any]]:
    rng = np.random.default_rng(1)
    inputs, targets = lib.tensor(rng.normal(size=(30, 4))), lib.tensor(rng.normal(size=(30, 1)))
    first, second = (lib.tensor(rng.normal(size=size), requires_grad=True) for size in ((4, 8), (8, 1)))
    return [first, second], lambda: (((inputs @ first).tanh() @ second - targets) ** 2).mean()


def _complex(lib: Any) -> tuple[list[Any], Callable[[], Any]]:
    rng = np.random.default_rng(2)
    real, imag = rng.normal(size=(2, 5, 4))
    system, right = lib.tensor((real + 1j * imag)[:, :3]), lib.tensor((real + 1j * imag)[:, 3])
    x = lib.tensor(np.zeros(3, complex), requires_grad=True)
    return [x], lambda: ((system @ x - right).abs() ** 2).sum()


def _minimiser(lib: Any, problem: Callable[..., Any], **options: Any) -> tuple[list[Any], Any, Callable[[], Any]]:
    params, loss = problem(lib)
    optimizer = lib.optim.LBFGS(params, **options)

    def closure() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    return params, optimizer, closure


@pytest.mark.torch
@pytest.mark.parametrize("problem", [_rosenbrock, _logistic, _network, _complex])
@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": 1, "lr": 1e-3},
        {"max_iter": 4, "lr": 1e-3, "history_size": 2},
        {"max_iter": 1, "line_search_fn": "strong_wolfe"},
        {"max_iter": 3, "history_size": 2, "line_search_fn": "strong_wolfe"},
        {"max_iter": 20, "max_eval": 4, "line_search_fn": "strong_wolfe"},
        {"max_iter": 4, "max_eval": 1, "line_search_fn": "strong_wolfe"},
        {"max_iter": 9, "tolerance_change": 1e-3, "line_search_fn": "strong_wolfe"},
        {"max_iter": 9, "tolerance_grad": 1e-1, "lr": 0.01},
        {"max_iter": 9, "tolerance_change": 1e-3, "lr": 1e-4},
        {"max_iter": 10, "tolerance_grad": 0.1, "tolerance_change": 0, "line_search_fn": "strong_wolfe"},
    ],
)
def test_lbfgs_takes_the_steps_that_torch_takes(problem: Callable[..., Any], options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    ours, mine, closure = _minimiser(pullback, problem, **options)
    theirs, reference, their_closure = _minimiser(torch, problem, **options)
    for _ in range(8):
        assert mine.step(closure).item() == pytest.approx(reference.step(their_closure).item(), rel=1e-9, abs=1e-12)
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-8, atol=1e-9)
        state, their_state = mine.state[ours[0]], reference.state[theirs[0]]
        assert (state["func_evals"], state["n_iter"]) == (their_state["func_evals"], their_state["n_iter"])
        assert state.keys() <= their_state.keys()
        for name in ("old_dirs", "old_stps", "ro"):
            assert len(state[name]) == len(their_state[name])


def _hills(rng: np.random.Generator) -> Callable[[float], tuple[float, float]]:
    """A function of a number, and its derivative: waves on a parabola, or on a barrier beyond which it is NaN."""
    heights, widths, shifts = rng.normal(size=(3, 4)) * [[1.0], [8.0], [3.0]]
    curvature, barrier = 0.3 * rng.random(), 0.3 * rng.random() * rng.integers(0, 2)

    def value(t: float) -> tuple[float, float]:
        angles = widths * t + shifts
        f, slope = heights @ np.sin(angles) + curvature * t * t, heights @ (widths * np.cos(angles)) + 2 * curvature * t
        if barrier:
            f, slope = (f - barrier * np.log(2 - t), slope + barrier / (2 - t)) if t < 2 else (np.nan, np.nan)
        return float(f), float(slope)

    return value


def _assert_searched_alike(
    hills: Callable[[float], tuple[float, float]], d: float, step: float, most: int, tolerance: float
) -> None:
    """Our line search and torch's try the same steps along `d`, and find the same."""
    torch, lbfgs = (pytest.importorskip(name) for name in ("torch", "torch.optim.lbfgs"))
    tried: tuple[list[float], list[float]] = ([], [])

    def ours(t: float) -> line_search.Point:
        tried[0].append(t)
        value, slope = hills(t * d)
        return line_search.Point(t, value, np.array([slope]), slope * d)

    def theirs(x: Any, t: Any, direction: Any) -> Any:
        tried[1].append(float(t))
        value, slope = hills(float(t) * d)
        return value, torch.tensor([slope], dtype=torch.float64)

    f, slope = hills(0.0)
    start = line_search.Point(0.0, f, np.array([slope]), slope * d)
    point, spent = line_search.strong_wolfe(ours, start, step, abs(d), tolerance, most)
    direction, gradient = (torch.tensor([v], dtype=torch.float64) for v in (d, slope))
    loss, _, t, evals = lbfgs._strong_wolfe(
        theirs, None, step, direction, f, gradient, gradient.dot(direction), tolerance_change=tolerance, max_ls=most
    )
    np.testing.assert_allclose(tried[0], tried[1], rtol=1e-8)
    assert spent == evals
    np.testing.assert_allclose([point.step, point.loss], [float(t), loss], rtol=1e-8)


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(10))
def test_the_line_search_tries_what_torch_tries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        hills = _hills(rng)
        d = float(-np.sign(hills(0.0)[1]) * rng.choice([0.3, 1.0]))
        step, most = float(rng.choice([0.01, 0.3, 1.0, 5.0])), int(rng.choice([0, 1, 4, 25]))
        _assert_searched_alike(hills, d, step, most, tolerance=float(rng.choice([1e-9, 1e-1])))


@pytest.mark.torch
def test_the_line_search_turns_back_where_the_loss_has_grown_between_two_steps() -> None:
    """On a saw, whose slope is always that of the start: the third step is past a tooth."""
    _assert_searched_alike(lambda t: (-(t % 0.95), -1.0), d=1.0, step=0.01, most=9, tolerance=1e-9)


def test_lbfgs_goes_on_from_a_loaded_state(tmp_path: Path) -> None:
    options = {"max_iter": 2, "line_search_fn": "strong_wolfe"}
    (whole,), optimizer, closure = _minimiser(pullback, _rosenbrock, **options)
    for _ in range(2):
        optimizer.step(closure)
    pullback.save(optimizer.state_dict(), tmp_path / "state")
    (resumed,), other, other_closure = _minimiser(pullback, _rosenbrock, **options)
    resumed.data = whole.detach().clone()
    other.load_state_dict(pullback.load(tmp_path / "state"))
    for _ in range(3):
        optimizer.step(closure)
        other.step(other_closure)
    assert whole.tolist() == resumed.tolist()


def test_lbfgs_evaluates_with_gradients_and_returns_the_first_loss() -> None:
    (x,), optimizer, closure = _minimiser(pullback, _rosenbrock, max_iter=3)
    version = x._version
    with pullback.no_grad():
        assert optimizer.step(closure).item() == pytest.approx(2.5**2 + 100 * 0.25**2)
    assert x._version > version
    assert x.is_leaf


def test_lbfgs_is_back_where_it_was_when_a_closure_fails_in_the_line_search() -> None:
    (x,), optimizer, closure = _minimiser(pullback, _rosenbrock, line_search_fn="strong_wolfe")
    calls: list[None] = []

    def failing() -> Any:
        calls.append(None)
        if len(calls) == 3:
            raise ArithmeticError("the third time")
        return closure()

    with pytest.raises(ArithmeticError):
        optimizer.step(failing)
    assert x.tolist() == [-1.5, 2.0]


@pytest.mark.parametrize("options", [{}, {"line_search_fn": "strong_wolfe"}])
def test_lbfgs_stays_where_the_gradient_is_zero(options: dict[str, Any]) -> None:
    p = parameter(0.0, 0.0)
    optimizer = pullback.optim.LBFGS([p], **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert p.tolist() == [0.0, 0.0]
    assert optimizer.state[p]["func_evals"] == 1


def test_what_lbfgs_refuses() -> None:
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        pullback.optim.LBFGS([parameter(1.0)], line_search_fn="golden")
    with pytest.raises(TypeError, match="closure"):
        pullback.optim.LBFGS([parameter(1.0)]).step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adafactor", "SparseAdam"])
def test_a_step_that_is_refused_has_changed_no_parameter(name: str) -> None:
    """Also none of a group before that of the gradient that does not fit."""
    first, second = (pullback.ones(2, 2).requires_grad_() for _ in range(2))
    optimizer = getattr(pullback.optim, name)([{"params": [first]}, {"params": [second]}], lr=0.1)
    (first * second).sum().backward()
    second.data = pullback.ones(3)
    with pytest.raises(RuntimeError, match=r"a gradient of shape \[3\], as its parameter's, found \[2, 2\]"):
        optimizer.step()
    assert first.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert not optimizer.state


def test_lbfgs_refuses_a_gradient_that_is_not_of_its_parameters_shape() -> None:
    parameter_ = pullback.ones(2, 2).requires_grad_()
    parameter_.sum().backward()
    parameter_.data = pullback.ones(4)
    with pytest.raises(RuntimeError, match=r"a gradient of shape \[4\], as its parameter's, found \[2, 2\]"):
        pullback.optim.LBFGS([parameter_]).step(lambda: parameter_.detach().sum())
    assert parameter_.tolist() == [1.0] * 4


def test_lbfgs_takes_sparse_gradients() -> None:
    weight = pullback.ones(4, 2).requires_grad_()
    optimizer = pullback.optim.LBFGS([weight], max_iter=3)

    def closure() -> pullback.Tensor:
        optimizer.zero_grad()
        rows = pullback.nn.functional.embedding(pullback.tensor([0, 2]), weight, sparse=True)
        loss = rows.square().sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0
    pullback.testing.assert_close(weight.detach(), pullback.tensor([[0.0, 0.0], [1.0, 1.0]] * 2))
