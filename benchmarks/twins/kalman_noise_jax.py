"""The noise of a Kalman filter, in JAX: it has no Riccati equation, so the covariance is stepped until it stays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy.optimize import minimize

jax.config.update("jax_enable_x64", True)

motion = np.array([[1.0, 1.0], [0.0, 1.0]])
disturbed = np.diag([0.0, 1.0])


def unlikeliness(log_noise: Any, measured: Any) -> Any:
    """How unlikely the errors of the filter's predictions are."""
    q, r = jnp.exp(2 * log_noise)

    def later(p: Any, _: Any) -> Any:
        kept = p - jnp.outer(p[:, 0], p[0]) / (p[0, 0] + r)
        return motion @ kept @ motion.T + q * disturbed, None

    p, _ = jax.lax.scan(later, jnp.eye(2), length=300)
    variance = p[0, 0] + r

    def filtered(state: Any, y: Any) -> Any:
        state = motion @ state
        error = y - state[0]
        return state + p[:, 0] / variance * error, error

    _, errors = jax.lax.scan(filtered, jnp.zeros(2), measured)
    return -norm.logpdf(errors, scale=jnp.sqrt(variance)).sum()


slope = jax.jit(jax.value_and_grad(unlikeliness))
hessian = jax.jit(jax.hessian(unlikeliness))


def solve() -> dict[str, Any]:
    """What the page finds, by its names."""
    rng, state, places = np.random.default_rng(0), np.zeros(2), []
    for _ in range(300):
        state = motion @ state + [0.0, rng.normal(0, 0.05)]
        places.append(state[0])
    measured = places + rng.normal(0, 2.0, 300)
    found = minimize(slope, np.zeros(2), (measured,), jac=True).x
    return {"found": found, "spread": np.sqrt(np.diagonal(np.linalg.inv(hessian(found, measured))))}
