"""The optimisers that treat a parameter as a whole: Adafactor, Muon and SparseAdam, beside PyTorch's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback

SHAPES = [(4, 3), (3, 17), (5, 5), (6, 1)]
OTHER_SHAPES = [(5,), (), (2, 3, 4)]

CASES = [
    *(
        ("Adafactor", SHAPES + OTHER_SHAPES, {"lr": lr, "weight_decay": decay, "d": d, "maximize": maximize})
        for lr, decay, d, maximize in itertools.product((0.01, 0.5), (0.0, 0.1), (1.0, 2.0), (False, True))
    ),
    ("Adafactor", SHAPES + OTHER_SHAPES, {"beta2_decay": -0.5, "eps": (1e-2, 0.1)}),
    *(
        ("Muon", SHAPES, {"lr": 0.1, "nesterov": nesterov, "adjust_lr_fn": adjust, "weight_decay": decay})
        for nesterov, adjust, decay in itertools.product(
            (False, True), (None, "original", "match_rms_adamw"), (0.0, 0.1)
        )
    ),
    ("Muon", SHAPES, {"momentum": 0.5, "ns_coefficients": (1.5, -0.5, 0.0), "ns_steps": 3, "eps": 0.1}),
]


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "shapes", "options"), CASES)
def test_steps_agree_with_torch(
    name: str, shapes: list[tuple[int, ...]], options: dict[str, Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    # torch's Muon rounds to bfloat16 on its way; without that the two are the same
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda t: t.clone())
    rng = np.random.default_rng(7)
    starts = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    grads = [[rng.normal(size=shape).astype(dtype) for shape in shapes] for _ in range(8)]
    found = []
    for lib in (pullback, torch):
        params = [lib.tensor(start, requires_grad=True) for start in starts]
        optimizer = getattr(lib.optim, name)(params, **options)
        for given in grads:
            for p, grad in zip(params, given, strict=True):
                p.grad = lib.tensor(grad)
            optimizer.step()
        found.append(([p.detach().numpy() for p in params], optimizer.state_dict()))
    (ours, state), (theirs, expected) = found
    tolerance = 1e-11 if dtype == "float64" else 1e-4
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    assert state["param_groups"] == expected["param_groups"]
    assert state["state"].keys() == expected["state"].keys()
    for i, kept in expected["state"].items():
        assert list(state["state"][i]) == list(kept)
        for key, value in kept.items():
            ours_kept = state["state"][i][key]
            assert str(ours_kept.dtype).split(".")[-1] == str(value.dtype).split(".")[-1]
            np.testing.assert_allclose(ours_kept.numpy(), value.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.torch
def test_muon_is_near_torchs_in_bfloat16() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    start, grad = rng.normal(size=(2, 6, 4)).astype("float32")
    found = []
    for lib in (pullback, torch):
        p = lib.tensor(start, requires_grad=True)
        p.grad = lib.tensor(grad)
        lib.optim.Muon([p], lr=1.0).step()
        found.append(p.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], atol=0.05)


@pytest.mark.torch
@pytest.mark.parametrize("options", [{}, {"lr": 0.1, "betas": (0.5, 0.6), "eps": 0.1}, {"lr": 0.1, "maximize": True}])
def test_sparse_adam_agrees_with_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    start = rng.normal(size=(7, 3))
    rounds = [(rng.integers(0, 7, 4), rng.normal(size=(4, 3))) for _ in range(6)]
    rounds.append((np.zeros(0, np.int64), np.zeros((0, 3))))
    found = []
    for lib in (pullback, torch):
        weight = lib.tensor(start, requires_grad=True)
        optimizer = lib.optim.SparseAdam([weight], **options)
        for rows, factors in rounds:
            optimizer.zero_grad()
            looked_up = lib.nn.functional.embedding(lib.tensor(rows), weight, sparse=True)
            (looked_up * lib.tensor(factors)).sum().backward()
            optimizer.step()
        kept = optimizer.state[weight]
        found.append((weight.detach().numpy(), kept["exp_avg"].numpy(), kept["exp_avg_sq"].numpy(), kept["step"]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_sparse_adam_leaves_the_other_rows_alone() -> None:
    weight = pullback.ones(4, 2, requires_grad=True)
    optimizer = pullback.optim.SparseAdam([weight], lr=0.5)
    pullback.nn.functional.embedding(pullback.tensor([2, 2]), weight, sparse=True).sum().backward()
    version = weight._version
    optimizer.step()
    assert weight._version > version
    assert (weight.detach() == 1).all(dim=1).tolist() == [True, True, False, True]
    assert optimizer.state[weight]["exp_avg"][:2].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def _made(name: str, *params: pullback.Tensor, **options: Any) -> Any:
    return getattr(pullback.optim, name)(params, **options)


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_a_state_goes_through_a_file(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    start, *grads = rng.normal(size=(4, 3, 2))
    p = pullback.tensor(start, requires_grad=True)
    first = _made(name, p, lr=0.1)
    for grad in grads[:2]:
        p.grad = pullback.tensor(grad)
        first.step()
    pullback.save(first.state_dict(), tmp_path / "state")
    q = p.detach().clone().requires_grad_()
    second = _made(name, q, lr=0.1)
    second.load_state_dict(pullback.load(tmp_path / "state"))
    for optimizer, each in ((first, p), (second, q)):
        each.grad = pullback.tensor(grads[2])
        optimizer.step()
    np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())
    assert not np.array_equal(p.detach().numpy(), start)


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_half_precision_stays_what_it_is(name: str) -> None:
    p = pullback.ones(3, 2, dtype=pullback.float16, requires_grad=True)
    optimizer = _made(name, p, lr=0.1)
    p.grad = pullback.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]], dtype=pullback.float16)
    optimizer.step()
    assert p.dtype == pullback.float16
    assert np.isfinite(p.detach().numpy()).all()
    assert (p.detach() != 1).any()


def test_closure_runs_with_gradients_and_its_value_is_returned() -> None:
    p = pullback.ones(2, 2, requires_grad=True)
    optimizer = _made("Muon", p)

    def closure() -> pullback.Tensor:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with pullback.no_grad():
        assert optimizer.step(closure).item() == 4.0


REFUSED: list[tuple[str, type[Exception], str, Callable[[Any], Any]]] = [
    ("a vector", ValueError, "2D", lambda lib: lib.optim.Muon([lib.zeros(2, requires_grad=True)])),
    ("steps", ValueError, "ns_steps", lambda lib: _dense_step(lib, "Muon", ns_steps=100)),
    ("adjust", ValueError, "adjust_lr_fn", lambda lib: _matrix(lib, "Muon", adjust_lr_fn="other")),
    ("muon lr", ValueError, "lr", lambda lib: _matrix(lib, "Muon", lr=-1.0)),
    ("muon momentum", ValueError, "momentum", lambda lib: _matrix(lib, "Muon", momentum=-1.0)),
    ("muon sparse", RuntimeError, "sparse", lambda lib: _sparse_step(lib, "Muon")),
    ("beta2_decay", ValueError, "beta2_decay", lambda lib: _matrix(lib, "Adafactor", beta2_decay=0.5)),
    ("d", ValueError, "d", lambda lib: _matrix(lib, "Adafactor", d=0.5)),
    ("eps 0", ValueError, r"eps", lambda lib: _matrix(lib, "Adafactor", eps=(-1.0, 1e-3))),
    ("eps 1", ValueError, r"eps", lambda lib: _matrix(lib, "Adafactor", eps=(None, -1.0))),
    ("adafactor complex", RuntimeError, "complex", lambda lib: _complex_step(lib, "Adafactor")),
    ("adafactor sparse", RuntimeError, "sparse", lambda lib: _sparse_step(lib, "Adafactor")),
    ("sparse lr", ValueError, "lr", lambda lib: _matrix(lib, "SparseAdam", lr=0.0)),
    ("sparse eps", ValueError, "eps", lambda lib: _matrix(lib, "SparseAdam", eps=0.0)),
    ("sparse betas", ValueError, "betas", lambda lib: _matrix(lib, "SparseAdam", betas=(0.5, 1.0))),
    ("sparse complex", ValueError, "complex", lambda lib: _complex_step(lib, "SparseAdam")),
    ("dense", RuntimeError, "dense", lambda lib: _dense_step(lib, "SparseAdam")),
]


def _matrix(lib: Any, name: str, **options: Any) -> Any:
    return getattr(lib.optim, name)([lib.ones(3, 2, requires_grad=True)], **options)


def _dense_step(lib: Any, name: str, **options: Any) -> None:
    optimizer = _matrix(lib, name, **options)
    (p,) = optimizer.param_groups[0]["params"]
    (p * p).sum().backward()
    optimizer.step()


def _sparse_step(lib: Any, name: str) -> None:
    optimizer = _matrix(lib, name)
    (p,) = optimizer.param_groups[0]["params"]
    lib.nn.functional.embedding(lib.tensor([1]), p, sparse=True).sum().backward()
    optimizer.step()


def _complex_step(lib: Any, name: str) -> None:
    p = lib.ones(3, 2, dtype=lib.complex64, requires_grad=True)
    optimizer = getattr(lib.optim, name)([p])
    p.grad = lib.ones(3, 2, dtype=lib.complex64)
    optimizer.step()


@pytest.mark.parametrize(("kind", "words", "make"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(kind: type[Exception], words: str, make: Callable[[Any], Any]) -> None:
    with pytest.raises(kind, match=words):
        make(pullback)


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "make"), [(c[1], c[3]) for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_torch_refuses_with_the_same_exception(kind: type[Exception], make: Callable[[Any], Any]) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(kind):
        make(torch)


def test_a_refused_step_has_written_nothing() -> None:
    p, q = pullback.ones(2, 2, requires_grad=True), pullback.ones(3, 2, requires_grad=True)
    optimizer = _made("Adafactor", p, q)
    p.grad = pullback.ones(2, 2)
    pullback.nn.functional.embedding(pullback.tensor([1]), q, sparse=True).sum().backward()
    with pytest.raises(RuntimeError, match="sparse"):
        optimizer.step()
    assert p.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert p not in optimizer.state
