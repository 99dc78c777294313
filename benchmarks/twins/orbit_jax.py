"""An orbit of three bodies, in JAX: its `odeint`, whose derivative goes backwards, and SciPy's `least_squares`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.ode import odeint
from scipy.optimize import least_squares

jax.config.update("jax_enable_x64", True)

START = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])


def motion(state: Any, t: Any, period: Any) -> Any:
    """Newton's law for three unit masses."""
    places = state[:6].reshape(3, 2)
    apart = places[None] - places[:, None]
    cubed = ((apart**2).sum(-1) + np.eye(3)) ** 1.5
    return period * jnp.concatenate([state[6:], (apart / cubed[..., None]).sum(1).reshape(-1)])


@jax.jit
def missed(unknowns: Any) -> Any:
    """How far each body is, after a third of the period, from where another was."""
    u, v, period = unknowns
    state = jnp.concatenate([START.reshape(-1), jnp.stack([u, v, u, v, -2 * u, -2 * v])])
    flown = odeint(motion, state, jnp.array([0.0, 1 / 3]), period, rtol=1e-8, atol=1e-8)
    before, after = flown.reshape(2, 2, 3, 2)
    return (after - before[:, jnp.array([1, 2, 0])]).reshape(-1)


jacobian = jax.jit(jax.jacrev(missed))


def solve() -> dict[str, Any]:
    """What the page finds, by its names."""
    return {"found.x": least_squares(missed, [0.3, 0.6, 6.0], jacobian).x}
