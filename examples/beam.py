"""A neural network that solves the equation of a beam: fourth derivatives by Taylor mode, training by reverse mode.

A beam, clamped at both ends and thinner towards the right, bends under a load:

    (s u'')'' = s u'''' + 2 s' u''' + s'' u'' = q,    u(0) = u'(0) = u(1) = u'(1) = 0

The network N has to make ``u = x^2 (1 - x)^2 N(x)`` fulfil it at 40 points; the ends it fulfils by its form. One pass
of `derivatives` gives u, u', ..., u'''', and `backward` goes through them to the weights. SciPy solves it as a
boundary value problem. ``python examples/beam.py beam.png`` draws both.
"""

import sys

import numpy as np
from scipy.integrate import solve_bvp

import pullback as torch


def beam(x):
    return 1 - 0.6 * x**2, -1.2 * x, -1.2, 100 * (1 + 2 * np.sin(3 * np.pi * x))  # s, s', s'' and q


def bending(weights):
    a, b, c, d, e = weights
    return lambda x: x**2 * (1 - x) ** 2 * (torch.tanh(torch.tanh(x * a + b) @ c + d) @ e)


def residual(weights, x):
    (s, s1, s2, q), (_, _, u2, u3, u4) = beam(x), torch.func.derivatives(bending(weights), 4)(x)
    return s * u4 + 2 * s1 * u3 + s2 * u2 - q


def reference(x):
    """The same by SciPy, as a system of first order: (u, u', m, m') with the moment m = s u''."""
    slope = lambda x, y: np.stack([y[1], y[2] / beam(x)[0], y[3], beam(x)[3]])  # noqa: E731
    return solve_bvp(slope, lambda a, b: np.stack([*a[:2], *b[:2]]), x, np.zeros((4, len(x))), tol=1e-8).sol(x)[0]


def draw(file, x, found, expected):
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(6, 3), layout="constrained")).subplots()
    axes.plot(x, -expected, color="0.7", linewidth=6, label="SciPy, solve_bvp")
    axes.plot(x, -found, color="tab:blue", label="the network")
    axes.legend()
    figure.savefig(file)


def main() -> None:
    normal, sizes = np.random.default_rng(0).normal, [(1, 16), (16,), (16, 16), (16,), (16, 1)]
    weights = [torch.tensor(normal(0, 2 if k < 2 else 0.4, n), requires_grad=True) for k, n in enumerate(sizes)]
    points = torch.linspace(0, 1, 40, dtype=torch.float64)[:, None]
    loss = torch.compile(lambda *weights: (residual(weights, points) ** 2).mean() / 1e4)
    optimizer = torch.optim.LBFGS(weights, max_iter=1500, history_size=50, line_search_fn="strong_wolfe")

    def evaluate():
        optimizer.zero_grad()
        value = loss(*weights)
        value.backward()
        return value

    print(f"loss: {optimizer.step(evaluate).item():.1e} before training, {evaluate().item():.1e} after it")
    x = np.linspace(0, 1, 201)
    found, expected = bending(weights)(torch.tensor(x)[:, None]).detach().numpy()[:, 0], reference(x)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"largest difference from SciPy's solution: {error:.1e} of the largest bending")
    assert error < 1e-3
    print("gradcheck:", torch.autograd.gradcheck(lambda w: residual([w, *weights[1:]], points[::8]), weights[0]))
    for file in [name for name in sys.argv[1:] if name.endswith(".png")]:
        draw(file, x, found, expected)


if __name__ == "__main__":
    main()
