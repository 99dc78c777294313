"""A physics-informed network, in JAX: `jet`, which is experimental, has all orders in one pass; SciPy's L-BFGS-B."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.jet import jet
from scipy.integrate import solve_bvp
from scipy.optimize import minimize

jax.config.update("jax_enable_x64", True)

SIZES = [(1, 16), (16,), (16, 16), (16,), (16, 1)]
points = jnp.linspace(0, 1, 40)[:, None]


def beam(x: Any) -> Any:
    """s, s', s'' and q."""
    return 1 - 0.6 * x**2, -1.2 * x, -1.2, 100 * (1 + 2 * np.sin(3 * np.pi * x))


def bending(flat: Any, x: Any) -> Any:
    """The network, whose weights are one vector."""
    ends = np.cumsum([np.prod(size) for size in SIZES])[:-1]
    a, b, c, d, e = (part.reshape(size) for part, size in zip(jnp.split(flat, ends), SIZES, strict=True))
    return x**2 * (1 - x) ** 2 * (jnp.tanh(jnp.tanh(x * a + b) @ c + d) @ e)


@jax.jit
@jax.value_and_grad
def loss(flat: Any) -> Any:
    """By how much the equation does not hold."""
    ahead = [jnp.ones_like(points)] + [jnp.zeros_like(points)] * 3
    _, (_, u2, u3, u4) = jet(lambda x: bending(flat, x), (points,), (ahead,))
    s, s1, s2, q = beam(np.asarray(points))
    return ((s * u4 + 2 * s1 * u3 + s2 * u2 - q) ** 2).mean() / 1e4


def solve() -> dict[str, Any]:
    """What the page finds, by its names."""
    normal = np.random.default_rng(0).normal
    weights = np.concatenate([normal(0, 2 if k < 2 else 0.4, n).ravel() for k, n in enumerate(SIZES)])
    trained = minimize(loss, weights, jac=True, method="L-BFGS-B", options={"maxiter": 1500, "maxcor": 50, "ftol": 0})

    def slope(x: Any, y: Any) -> Any:
        return np.stack([y[1], y[2] / beam(x)[0], y[3], beam(x)[3]])

    x = np.linspace(0, 1, 201)
    solved = solve_bvp(slope, lambda a, b: np.stack([*a[:2], *b[:2]]), x, np.zeros((4, 201)), tol=1e-8)
    found = np.asarray(bending(trained.x, x[:, None]))[:, 0]
    return {"expected": solved.sol(x)[0], "found": found}
