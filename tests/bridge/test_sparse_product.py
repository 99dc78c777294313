"""The sparse product of the examples, trained here, inside PyTorch and inside JAX: the losses are equal."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback

Spmm = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "sparse_product.py"))["Spmm"]

STEPS, RATE, SHAPE = 20, 0.05, (5, 4)
INDICES = np.array([[0, 1, 1, 3, 4, 4], [2, 0, 3, 1, 0, 3]])
_rng = np.random.default_rng(0)
VALUES, DENSE, TARGET = _rng.normal(size=6), _rng.normal(size=(4, 3)), _rng.normal(size=(5, 3))


def product(indices: Any, values: Any, b: Any) -> Any:
    return Spmm.apply(indices, values, SHAPE, b)


def losses_here() -> list[float]:
    values, b = (pullback.tensor(a, requires_grad=True) for a in (VALUES, DENSE))
    optimizer, losses = pullback.optim.SGD([values, b], lr=RATE), []
    for _ in range(STEPS):
        loss = ((product(pullback.tensor(INDICES), values, b) - pullback.tensor(TARGET)) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_the_product_is_trained_here() -> None:
    losses = losses_here()
    assert losses[-1] < losses[0] / 2


@pytest.mark.torch
def test_the_product_is_trained_inside_torch_with_equal_losses() -> None:
    torch = pytest.importorskip("torch")
    inside = pullback.bridge.torch.wrap(product)
    values, b = (torch.tensor(a, requires_grad=True) for a in (VALUES, DENSE))
    optimizer, losses = torch.optim.SGD([values, b], lr=RATE), []
    for _ in range(STEPS):
        loss = ((inside(torch.tensor(INDICES), values, b) - torch.tensor(TARGET)) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(losses, losses_here(), rtol=1e-12)


@pytest.mark.jax
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_the_product_is_trained_inside_jax_with_equal_losses(jitted: bool) -> None:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        inside = pullback.bridge.jax.wrap(product)

        def loss_of(parts: Any) -> Any:
            return ((inside(INDICES, *parts) - TARGET) ** 2).sum()

        step = jax.value_and_grad(loss_of)
        step = jax.jit(step) if jitted else step
        parts, losses = (jax.numpy.array(VALUES), jax.numpy.array(DENSE)), []
        for _ in range(STEPS):
            loss, slopes = step(parts)
            parts = tuple(p - RATE * g for p, g in zip(parts, slopes, strict=True))
            losses.append(float(loss))
    finally:
        jax.config.update("jax_enable_x64", before)
    np.testing.assert_allclose(losses, losses_here(), rtol=1e-12)
