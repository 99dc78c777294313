"""The cost of a gradient through an ODE solver: `python -m benchmarks.scipy_integrate`.

A network of 2-32-2 units with tanh is the right-hand side, DOP853 solves from 0 to 10 in float64, and the gradient of
the end with respect to the start and all weights is computed: by `pullback.scipy.integrate.solve_ivp`, and by
torchdiffeq, if it is installed, at the same tolerances. States and gradients are compared before anything
is timed; the sides take turns. Ratios are to SciPy's forward alone.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import scipy.integrate

import pullback
from benchmarks.bridges import Sides, show
from pullback.scipy.integrate import solve_ivp

END, START = 10.0, np.array([1.0, -0.5])
TOLERANCES = {"rtol": 1e-8, "atol": 1e-8}
_RNG = np.random.default_rng(0)
WEIGHTS = [0.5 * _RNG.standard_normal(shape) for shape in ((32, 2), (32,), (2, 32), (2,))]


def network(t: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """The right-hand side, for arrays and for Tensors."""
    return w2 @ np.tanh(w1 @ y + b1) + b2


def alone() -> Any:
    """SciPy's forward, without derivatives."""
    return scipy.integrate.solve_ivp(network, (0.0, END), START, "DOP853", args=tuple(WEIGHTS), **TOLERANCES).y[:, -1]


def ours(adjoint: str = "discrete") -> tuple[Any, list[Any]]:
    """The end, and its gradients."""
    y0, *weights = (pullback.tensor(a, requires_grad=True) for a in (START, *WEIGHTS))
    sol = solve_ivp(network, (0.0, END), y0, "DOP853", args=tuple(weights), adjoint=adjoint, **TOLERANCES)
    end = sol.y[:, -1]
    return end.detach().numpy(), [g.numpy() for g in pullback.autograd.grad(end.sum(), [y0, *weights])]


def forward() -> Any:
    """The end, ready for a gradient."""
    y0, *weights = (pullback.tensor(a, requires_grad=True) for a in (START, *WEIGHTS))
    return solve_ivp(network, (0.0, END), y0, "DOP853", args=tuple(weights), **TOLERANCES).y[:, -1].detach().numpy()


def theirs(method: str, adjoint: bool) -> tuple[Any, list[Any]]:
    """The same by torchdiffeq."""
    import torch
    import torchdiffeq

    y0 = torch.tensor(START, requires_grad=True)

    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.ParameterList([torch.nn.Parameter(torch.tensor(a)) for a in WEIGHTS])

        def forward(self, t: Any, y: Any) -> Any:
            w1, b1, w2, b2 = self.w
            return w2 @ torch.tanh(w1 @ y + b1) + b2

    f = Network()
    solve = torchdiffeq.odeint_adjoint if adjoint else torchdiffeq.odeint
    end = solve(f, y0, torch.tensor([0.0, END], dtype=torch.float64), method=method, **TOLERANCES)[-1]
    return end.detach().numpy(), [g.numpy() for g in torch.autograd.grad(end.sum(), [y0, *f.w])]


def main() -> None:
    """Compare values, then time."""
    reference = ours()
    cases: dict[str, Any] = {"pullback, discrete": ours, "pullback, continuous": lambda: ours("continuous")}
    if importlib.util.find_spec("torchdiffeq") is not None:
        import torch

        torch.set_num_threads(1)
        for method in ("dopri8", "dopri5"):
            for adjoint in (False, True):
                name = f"torchdiffeq {method}{', adjoint' if adjoint else ''}"
                cases[name] = lambda m=method, a=adjoint: theirs(m, a)
    else:
        print("torchdiffeq is not installed, and is left out")
    np.testing.assert_allclose(alone(), reference[0], rtol=1e-12)
    for name, case in cases.items():
        found = case()
        for a, b in zip([found[0], *found[1]], [reference[0], *reference[1]], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)
    sides: Sides = {"SciPy, forward alone": alone, "pullback, forward alone": forward}
    sides |= {f"{name}, forward + gradient": lambda case=case: case()[0] for name, case in cases.items()}
    show("the end of a network's trajectory, and its gradient", sides, 1, 25)


if __name__ == "__main__":
    main()
