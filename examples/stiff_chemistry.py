"""Rate constants of a chemical system, fitted to measurements through a stiff solver.

Robertson's reactions A -> B, B + B -> C + B, B + C -> A + C have rate constants that differ by nine powers of ten:

    A' = -k1 A + k3 B C,    B' = k1 A - k3 B C - k2 B^2,    C' = k2 B^2

`solve_ivp` follows them with SciPy's Radau, and `minimize` changes the logarithms of the constants until the solution
meets the data: BFGS, with the gradient by the adjoint of the steps. Both are SciPy's own solvers.
``python examples/stiff_chemistry.py chemistry.png`` draws the fit.
"""

import sys

import numpy as np

import pullback as torch
from pullback.scipy import integrate, optimize

TRUE, GUESS = np.array([0.04, 3e7, 1e4]), np.array([0.1, 1e7, 5e4])
TIMES = np.logspace(-4, 1, 12)
SCALE = np.array([[1.0], [1e4], [1.0]])  # of B there are never more than 4e-5


def rates(t, y, k1, k2, k3):
    a, b, c = y
    decay, back, pair = k1 * a, k3 * b * c, k2 * b * b
    return [back - decay, decay - back - pair, pair]


def concentrations(log_k, times=TIMES, rtol=1e-3):
    """Of A, B and C at the times, shape [3, times]."""
    settings = {"method": "Radau", "rtol": rtol, "atol": [1e-8, 1e-11, 1e-8]}
    k1, k2, k3 = torch.exp(log_k)
    return integrate.solve_ivp(rates, (0.0, times[-1]), [1.0, 0.0, 0.0], t_eval=times, args=(k1, k2, k3), **settings).y


def misfit(log_k, data):
    return ((SCALE * (concentrations(log_k) - data)) ** 2).sum()


def draw(file, data, start, found):
    from matplotlib.figure import Figure

    figure, times = Figure(figsize=(8, 2.6), layout="constrained"), np.logspace(-4, 1, 200)
    guessed, fitted = (concentrations(log_k, times, 1e-6).numpy() for log_k in (start, found))
    for i, axes in enumerate(figure.subplots(1, 3)):
        axes.semilogx(times, guessed[i], color="0.7", label="first guess")
        axes.semilogx(times, fitted[i], color="tab:blue", label="fitted")
        axes.semilogx(TIMES, data[i], ".", color="black", label="measured")
        axes.set(title="ABC"[i], xlabel="time")
    figure.axes[0].legend()
    figure.savefig(file)


def main() -> None:
    start, noise = torch.tensor(np.log(GUESS)), np.random.default_rng(0).normal(0, 0.004, (3, len(TIMES)))
    data = concentrations(torch.tensor(np.log(TRUE)), rtol=1e-6).numpy() + noise / SCALE
    found = optimize.minimize(misfit, start, args=(data,), method="BFGS", options={"gtol": 1e-3})
    k = torch.exp(found.x).numpy()
    for name, guess, value, true in zip(("k1", "k2", "k3"), GUESS, k, TRUE, strict=True):
        print(f"{name}: {guess:.3g} guessed, {value:.4g} fitted, {true:.4g} true")
    error = np.abs(k / TRUE - 1).max()
    print(f"largest error of a rate constant, with {found.nfev} solutions of the system: {error:.1%}")
    assert error < 0.05
    end = lambda log_k: (SCALE * concentrations(log_k, TIMES[4:5], 1e-6)).sum()  # noqa: E731
    print("gradcheck:", torch.autograd.gradcheck(end, start))
    for file in [name for name in sys.argv[1:] if name.endswith(".png")]:
        draw(file, data, start, found.x)


if __name__ == "__main__":
    main()
