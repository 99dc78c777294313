"""The noise of a Kalman filter, in PyTorch: it has no Riccati equation, so the covariance is stepped until it stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize

motion = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
disturbed = torch.diag(torch.tensor([0.0, 1.0], dtype=torch.float64))


def unlikeliness(log_noise: Any, measured: Any) -> Any:
    """How unlikely the errors of the filter's predictions are."""
    q, r = torch.exp(2 * log_noise)
    p = torch.eye(2, dtype=torch.float64)
    for _ in range(100):
        kept = p - torch.outer(p[:, 0], p[0]) / (p[0, 0] + r)
        p = motion @ kept @ motion.T + q * disturbed
    variance = p[0, 0] + r
    gain, state, errors = p[:, 0] / variance, torch.zeros(2, dtype=torch.float64), []
    for y in measured:
        state = motion @ state
        errors.append(y - state[0])
        state = state + gain * errors[-1]
    return (
        -torch.distributions.Normal(0.0, torch.sqrt(variance), validate_args=False).log_prob(torch.stack(errors)).sum()
    )


def slope(log_noise: Any, measured: Any) -> Any:
    """The value and its gradient."""
    inputs = torch.tensor(log_noise, requires_grad=True)
    value = unlikeliness(inputs, measured)
    return value.item(), torch.autograd.grad(value, inputs)[0].numpy()


def solve() -> dict[str, Any]:
    """What the page finds, by its names."""
    rng, state, places = np.random.default_rng(0), np.zeros(2), []
    for _ in range(300):
        state = motion.numpy() @ state + [0.0, rng.normal(0, 0.05)]
        places.append(state[0])
    measured = places + rng.normal(0, 2.0, 300)
    found = minimize(slope, np.zeros(2), (measured,), jac=True).x
    hessian = torch.func.hessian(lambda n: unlikeliness(n, measured))(torch.from_numpy(found))
    return {"found": found, "spread": torch.sqrt(torch.diagonal(torch.linalg.inv(hessian)))}
