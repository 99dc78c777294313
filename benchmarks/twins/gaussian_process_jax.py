"""A Gaussian process with its hyperparameters, in JAX, with SciPy's BFGS."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

jax.config.update("jax_enable_x64", True)


def kernels(log_size: Any, a: Any, b: Any) -> Any:
    """The covariances of the drift and of the yearly wave between the times a and b."""
    drift, span, yearly, half, change, _ = jnp.exp(log_size)
    d = a[:, None] - b
    slow = drift**2 * jnp.exp(-0.5 * (d / span) ** 2)
    waves = yearly**2 * jnp.cos(2 * math.pi * d) + half**2 * jnp.cos(4 * math.pi * d)
    return slow, waves * jnp.exp(-0.5 * (d / change) ** 2)


def factor(log_size: Any, t: Any) -> Any:
    """The factor of the covariance of what was measured."""
    slow, wave = kernels(log_size, t, t)
    return jnp.linalg.cholesky(slow + wave + jnp.exp(2 * log_size[5]) * jnp.eye(len(t)))


@jax.jit
@jax.value_and_grad
def loss(log_size: Any, t: Any, y: Any) -> Any:
    """How unlikely the measurements are."""
    L = factor(log_size, t)
    z = solve_triangular(L, y, lower=True)
    return 0.5 * (z**2).sum() + jnp.log(jnp.diagonal(L)).sum() + 0.5 * len(t) * math.log(2 * math.pi)


@jax.jit
def parts(log_size: Any, t: Any, y: Any, s: Any) -> Any:
    """The mean of each part at the times s, and the band of the whole."""
    L = factor(log_size, t)
    slow, wave = (k @ cho_solve((L, True), y) for k in kernels(log_size, s, t))
    across = solve_triangular(L, sum(kernels(log_size, t, s)), lower=True)
    return slow, wave, 2 * jnp.sqrt(jnp.diagonal(sum(kernels(log_size, s, s))) - (across**2).sum(0))


def solve() -> dict[str, Any]:
    """What the page finds, by its names."""
    rng = np.random.default_rng(1)
    t = np.sort(rng.uniform(0, 8, 160))
    wave = (1 + 0.3 * np.sin(0.8 * t)) * np.sin(2 * math.pi * t) + 0.4 * np.cos(4 * math.pi * t)
    y = wave + 0.8 * np.sin(0.7 * t + 1) + rng.normal(0, 0.3, 160)
    found = minimize(loss, np.zeros(6), (t, y), jac=True)
    slow, wave, band = parts(found.x, t, y, np.linspace(0, 8, 400))
    return {"loss(log_size).item()": found.fun, "slow[:, 0]": slow, "wave[:, 0]": wave, "band": band}
