"""A physics-informed network, in PyTorch: four gradients, one within another, as no pass has all orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.integrate import solve_bvp

points = torch.linspace(0, 1, 40, dtype=torch.float64)[:, None].requires_grad_()


def beam(x: Any) -> Any:
    """s, s', s'' and q."""
    return 1 - 0.6 * x**2, -1.2 * x, -1.2, 100 * (1 + 2 * np.sin(3 * np.pi * x))


def bending(weights: Any) -> Callable[[Any], Any]:
    """The function that the network is."""
    a, b, c, d, e = weights
    return lambda x: x**2 * (1 - x) ** 2 * (torch.tanh(torch.tanh(x * a + b) @ c + d) @ e)


def residual(weights: Any, x: Any) -> Any:
    """By how much the equation does not hold. A point's bending depends on that point alone, so sums have slopes."""
    orders = [bending(weights)(x)]
    for _ in range(4):
        orders.append(torch.autograd.grad(orders[-1].sum(), x, create_graph=True)[0])
    (s, s1, s2, q), (_, _, u2, u3, u4) = beam(x.detach()), orders
    return s * u4 + 2 * s1 * u3 + s2 * u2 - q


def solve() -> dict[str, Any]:
    """What the page finds, by its names."""
    normal, sizes = np.random.default_rng(0).normal, [(1, 16), (16,), (16, 16), (16,), (16, 1)]
    weights = [torch.tensor(normal(0, 2 if k < 2 else 0.4, n), requires_grad=True) for k, n in enumerate(sizes)]
    optimizer = torch.optim.LBFGS(weights, max_iter=1500, history_size=50, line_search_fn="strong_wolfe")

    def evaluate() -> Any:
        optimizer.zero_grad()
        value = (residual(weights, points) ** 2).mean() / 1e4
        value.backward()
        return value

    optimizer.step(evaluate)

    def slope(x: Any, y: Any) -> Any:
        return np.stack([y[1], y[2] / beam(x)[0], y[3], beam(x)[3]])

    x = np.linspace(0, 1, 201)
    solved = solve_bvp(slope, lambda a, b: np.stack([*a[:2], *b[:2]]), x, np.zeros((4, 201)), tol=1e-8)
    found = bending(weights)(torch.tensor(x)[:, None]).detach().numpy()[:, 0]
    return {"expected": solved.sol(x)[0], "found": found}
