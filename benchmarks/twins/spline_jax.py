"""A spline through noisy points, in JAX: it has no splines, so SciPy makes the matrix from heights to values.

That is enough because the knots stay where they are. The derivative of a minimum is written by hand.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

jax.config.update("jax_enable_x64", True)


def squares(heights: Any, B: Any, y: Any) -> Any:
    """The sum of squares."""
    return ((B @ heights - y) ** 2).sum()


def cauchy(unknowns: Any, B: Any, y: Any) -> Any:
    """What outliers hardly change."""
    heights, log_width = unknowns[:-1], unknowns[-1]
    return jnp.log(1 + ((B @ heights - y) / jnp.exp(log_width)) ** 2).sum() + len(y) * log_width


squares_slope, cauchy_slope = (jax.jit(jax.value_and_grad(loss)) for loss in (squares, cauchy))


@jax.jit
def pull(heights: Any, width: Any, B: Any, y: Any) -> Any:
    """How the curve at the minimum follows the readings, by the implicit function theorem."""

    def slope(heights: Any, y: Any) -> Any:
        return jax.grad(lambda h: jnp.log(1 + ((B @ h - y) / width) ** 2).sum())(heights)

    by_heights, by_readings = jax.jacfwd(slope, (0, 1))(heights, y)
    return -B @ jnp.linalg.solve(by_heights, by_readings)


def solve() -> dict[str, Any]:
    """What the page finds, by its names."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(0, 10, 120))
    exact = np.sin(x) + 0.3 * x
    y = exact + rng.normal(0, 0.1, 120)
    y[::10] += rng.uniform(1, 3, 12)
    knots = np.linspace(0, 10, 10)
    B = CubicSpline(knots, np.eye(10))(x)
    by_squares = minimize(squares_slope, np.zeros(10), (B, y), jac=True).x
    found = minimize(cauchy_slope, np.append(by_squares, -1.0), (B, y), jac=True).x
    robust, width = found[:-1], np.exp(found[-1])
    return {"by_squares": by_squares, "robust": robust, "own": np.diagonal(pull(robust, width, B, y))}
