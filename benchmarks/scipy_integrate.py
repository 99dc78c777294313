"""The cost of a gradient through an ODE solver: `python -m benchmarks.scipy_integrate`.

A network of 2-32-2 units with tanh is the right-hand side, DOP853 solves from 0 to 10 in float64, and the gradient of
the end with respect to the start and all weights is computed: by `pullback.scipy.integrate.solve_ivp`, and by
torchdiffeq, if it is installed, at the same tolerances. States and gradients are compared before anything
is timed; the sides take turns. Ratios are to SciPy's forward alone.

Then rates are fitted to states at some times, by `least_squares` over `solve_ivp`: SciPy takes differences for its
Jacobian; the other side has an exact one, and computes the gradient of the fit by the data as well.
"""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
import scipy.optimize

import pullback
from benchmarks.bridges import Sides, show
from pullback.scipy.integrate import solve_ivp
from pullback.scipy.optimize import least_squares

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


def predators(t: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Two species; one eats the other."""
    return [a * y[0] - b * y[0] * y[1], c * y[0] * y[1] - d * y[1]]


def chemistry(t: Any, y: Any, a: Any, b: Any, c: Any) -> Any:
    """Robertson's stiff reactions, with rates relative to the usual ones."""
    slow, fast, back = 0.04 * a * y[0], 3e7 * b * y[1] ** 2, 1e4 * c * y[1] * y[2]
    return [back - slow, slow - back - fast, fast]


class Fit(NamedTuple):
    """A system whose rates are fitted. weights: of the components. first: a guess of the rates."""

    system: Any
    start: list[float]
    times: Any
    rates: list[float]
    first: list[float]
    weights: Any
    settings: dict[str, Any]

    def data(self) -> Any:
        """States at the times, not quite those of the system."""
        y = self._solved(scipy.integrate.solve_ivp, self.rates).y
        return y * (1 + 0.01 * np.sin(np.arange(y.size)).reshape(y.shape))

    def _solved(self, solver: Any, rates: Any) -> Any:
        return solver(
            self.system, (0.0, self.times[-1]), self.start, t_eval=self.times, args=tuple(rates), **self.settings
        )

    def alone(self) -> Any:
        """By SciPy."""
        data = self.data()

        def rest(rates: Any) -> Any:
            return ((self._solved(scipy.integrate.solve_ivp, rates).y - data) * self.weights).ravel()

        return scipy.optimize.least_squares(rest, self.first).x

    def ours(self) -> Any:
        """The same, with the gradient by the data."""
        data = pullback.tensor(self.data(), requires_grad=True)

        def rest(rates: Any, data: Any) -> Any:
            return ((self._solved(solve_ivp, rates).y - data) * self.weights).reshape(-1)

        found = least_squares(rest, self.first, args=(data,)).x
        pullback.autograd.grad(found.sum(), data)
        return found.detach().numpy()


FITS = {
    "two species by RK45": Fit(
        predators, [10.0, 5.0], np.linspace(0, 10, 41), [1.1, 0.4, 0.1, 0.4], [1.0, 0.35, 0.12, 0.45], 1.0,
        {"method": "RK45", "rtol": 1e-8, "atol": 1e-8},
    ),
    "stiff reactions by Radau": Fit(
        chemistry, [1.0, 0.0, 0.0], np.array([1.0, 10.0, 100.0, 1e3, 1e4]), [1.0, 1.0, 1.0], [1.1, 1.1, 0.9],
        np.array([[1.0], [1e4], [1.0]]), {"method": "Radau", "rtol": 1e-6, "atol": 1e-10},
    ),
}  # fmt: skip


def fits() -> None:
    """Compare the fitted rates, then time."""
    for name, fit in FITS.items():
        np.testing.assert_allclose(fit.alone(), fit.ours(), rtol=1e-3, err_msg=name)
        show(f"rates fitted: {name}", {"SciPy alone": fit.alone, "pullback, with the gradient": fit.ours}, 1, 5)


def main() -> None:
    """Compare values, then time."""
    fits()
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
