"""The shape of a heat source inside a plate, found from thermometers through `spsolve`.

The temperature u of a plate that is cold at its edges fulfils ``-div(c grad u) = q``: on a grid, a sparse system
``A u = q``. The source q is an ellipse that glows evenly, and the plate is thicker to the right, c = 1 + x. 36
thermometers measure u, with errors of half a per cent. `least_squares` finds the ellipse; SciPy gets the exact Jacobian
of the residuals, through the sparse solver. ``python examples/heat_source.py heat.png`` draws what is found.
"""

import sys

import numpy as np
import scipy.sparse

import pullback as torch
from pullback.scipy import optimize
from pullback.scipy.sparse.linalg import spsolve

N = 31  # grid points inside, in each direction
GRID = np.arange(1, N + 1) / (N + 1)
X, Y = np.meshgrid(GRID, GRID, indexing="ij")
PLACES = np.ix_(np.arange(2, N, 5), np.arange(2, N, 5))
TRUE = np.array([0.62, 0.42, 0.22, 0.1, 0.6])  # centre, half axes, angle


# The matrix of -div(c grad u): along x with c between the points, across it with c at the points.
C = 1 + np.arange(0.5, N + 1) / (N + 1)
ALONG = scipy.sparse.diags_array([-C[1:-1], C[:-1] + C[1:], -C[1:-1]], offsets=[-1, 0, 1]) * (N + 1) ** 2
ACROSS = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(N, N)) * (N + 1) ** 2
CONDUCTION = scipy.sparse.kron(ALONG, np.eye(N)) + scipy.sparse.kron(np.diag(1 + GRID), ACROSS)


def source(shape):
    """The heat of each point: 100 inside the ellipse, 0 outside, with an edge as wide as the grid is fine."""
    x0, y0, a, b, angle = shape
    x, y, c, s = X - x0, Y - y0, torch.cos(angle), torch.sin(angle)
    radius = torch.sqrt(((c * x + s * y) / a) ** 2 + ((c * y - s * x) / b) ** 2 + 1e-6)
    return 100 * torch.sigmoid((1 - radius) * torch.sqrt(a * b) * (N + 1))


def temperature(shape):
    return spsolve(CONDUCTION, source(shape).reshape(-1)).reshape(N, N)


def draw(file, start, found):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, subplot_kw={"aspect": "equal"})
    figure.colorbar(left.pcolormesh(GRID, GRID, temperature(found).numpy().T, cmap="inferno"), ax=left)
    left.plot(X[PLACES], Y[PLACES], ".", color="white")
    left.set_title("temperature, thermometers")
    for shape, color, width in ((start, "0.7", 1), (torch.tensor(TRUE), "black", 4), (found, "tab:orange", 1.5)):
        right.contour(GRID, GRID, source(shape).numpy().T, [50.0], colors=color, linewidths=width)
    right.set_title("source: guess, true (black), found")
    figure.savefig(file)


def main() -> None:
    start, u = torch.tensor([0.5, 0.5, 0.15, 0.15, 0.3], dtype=torch.float64), temperature(torch.tensor(TRUE))[PLACES]
    measured = u * (1 + np.random.default_rng(0).normal(0, 0.005, u.shape))
    misfit = lambda shape: (temperature(shape)[PLACES] - measured).reshape(-1)  # noqa: E731
    found = optimize.least_squares(misfit, start)
    for name, value, true in zip(("centre", "", "half axes", "", "angle"), found.x.tolist(), TRUE, strict=True):
        print(f"{name:10}{value:.3f}, true {true:.3f}")
    error = np.abs(found.x.numpy() - TRUE).max()
    print(f"largest error of the shape, after {found.nfev} evaluations: {error:.3f}")
    assert error < 0.05
    print("gradcheck:", torch.autograd.gradcheck(misfit, start))
    for file in [name for name in sys.argv[1:] if name.endswith(".png")]:
        draw(file, start, found.x)


if __name__ == "__main__":
    main()
