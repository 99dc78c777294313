"""A spline through noisy points, in PyTorch: it has no splines, so SciPy makes the matrix from heights to values.

That is enough because the knots stay where they are. The derivative of a minimum is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize


def lowest(loss: Callable[[Any], Any], start: Any) -> Any:
    """The minimum, by SciPy."""

    def slope(unknowns: Any) -> Any:
        inputs = torch.tensor(unknowns, requires_grad=True)
        value = loss(inputs)
        return value.item(), torch.autograd.grad(value, inputs)[0].numpy()

    return torch.from_numpy(minimize(slope, start, jac=True).x)


def solve() -> dict[str, Any]:
    """What the page finds, by its names."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(0, 10, 120))
    exact = np.sin(x) + 0.3 * x
    y = exact + rng.normal(0, 0.1, 120)
    y[::10] += rng.uniform(1, 3, 12)
    B, readings = torch.from_numpy(CubicSpline(np.linspace(0, 10, 10), np.eye(10))(x)), torch.from_numpy(y)

    def cauchy(heights: Any, width: Any, y: Any) -> Any:
        return torch.log(1 + ((B @ heights - y) / width) ** 2).sum()

    by_squares = lowest(lambda heights: ((B @ heights - readings) ** 2).sum(), np.zeros(10))
    start = np.append(by_squares, -1.0)
    found = lowest(lambda n: cauchy(n[:-1], torch.exp(n[-1]), readings) + len(y) * n[-1], start)
    robust, width = found[:-1], torch.exp(found[-1])
    slope = torch.func.grad(lambda heights, y: cauchy(heights, width, y))
    by_heights, by_readings = torch.func.jacrev(slope, (0, 1))(robust, readings)
    pull = -B @ torch.linalg.solve(by_heights, by_readings)
    return {"by_squares": by_squares, "robust": robust, "own": torch.diagonal(pull)}
