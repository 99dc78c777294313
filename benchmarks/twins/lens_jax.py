"""A lens shaped by ray tracing, in JAX, with SciPy's BFGS."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

jax.config.update("jax_enable_x64", True)

rays = np.linspace(-9, 9, 41)
scale = np.array([1 / 16.33, 1e-4, 1e-6, 1e-9])


def height(y: Any, face: Any) -> Any:
    """The shape of a face: a sphere and three corrections."""
    c, a, b, d = face
    return c * y**2 / (1 + jnp.sqrt(1 - (c * y) ** 2)) + a * y**4 + b * y**6 + d * y**8


def slope(y: Any, face: Any) -> Any:
    """Its derivative."""
    c, a, b, d = face
    return c * y / jnp.sqrt(1 - (c * y) ** 2) + 4 * a * y**3 + 6 * b * y**5 + 8 * d * y**7


def refracted(place: Any, way: Any, face: Any, corner: float, ratio: float) -> Any:
    """Where rays meet a face, by Newton's method, and their direction behind it, by Snell's law."""
    t = (corner - place[0]) / way[0]
    for _ in range(4):
        z, y = place + t * way
        t = t - (z - corner - height(y, face)) / (way[0] - slope(y, face) * way[1])
    place = place + t * way
    normal = jnp.stack([jnp.ones_like(t), -slope(place[1], face)])
    normal = normal / jnp.sqrt((normal**2).sum(0))
    along = (normal * way).sum(0)
    return place, ratio * way + (jnp.sqrt(1 - ratio**2 * (1 - along**2)) - ratio * along) * normal


@jax.jit
@jax.value_and_grad
def spot(shape: Any) -> Any:
    """The mean square of the distance from the axis, and its gradient."""
    place, way = jnp.stack([jnp.full_like(rays, -6.0), rays]), jnp.stack([jnp.ones_like(rays), jnp.zeros_like(rays)])
    for face, corner, ratio in ((shape * scale, 0.0, 1 / 1.5), (np.zeros(4), 4.0, 1.5)):
        place, way = refracted(place, way, face, corner, ratio)
    return ((place[1] + (34.0 - place[0]) / way[0] * way[1]) ** 2).mean()


def solve() -> dict[str, Any]:
    """What the page finds, by its names."""
    found = minimize(spot, np.array([1.0, 0.0, 0.0, 0.0]), jac=True, method="BFGS", options={"gtol": 1e-12}).x
    return {"lens.detach()": found}
