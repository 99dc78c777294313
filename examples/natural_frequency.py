"""The natural frequency of a structure, optimised through `eigsh`.

A mast is clamped at its foot and carries a mass at its top. With a given amount of steel, how wide is it best at each
height, so that its lowest frequency is as high as possible? The square of the frequency is the smallest eigenvalue of
``K v = w^2 M v``, with sparse matrices K and M made of beams, whose values depend on the widths. `eigsh` finds it, with
its derivative, and `minimize` changes the widths, with the amount of steel as a constraint.
``python examples/natural_frequency.py mast.png`` draws the mast.
"""

import sys

import numpy as np

import pullback as torch
from pullback.scipy import optimize, sparse
from pullback.scipy.sparse.linalg import eigsh

N = 30  # beams, one on top of the other
TOP = 0.2  # the mass at the top; the steel weighs 1

# The stiffness and the mass of a beam of length 1 / N, for displacement and slope / N at its lower and its upper end.
STIFFNESS = N**3 * np.array([[12, 6, -12, 6], [6, 4, -6, 2], [-12, -6, 12, -6], [6, 2, -6, 4]])
MASS = np.array([[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]]) / (420 * N)
ROWS, COLUMNS = (2 * np.arange(N)[:, None, None] + np.indices((4, 4))[i] - 2 for i in (0, 1))
MOVES = np.nonzero((ROWS >= 0) & (COLUMNS >= 0))  # all but the foot


def assembled(beams):
    """The matrix of the mast, as the sum of those of its beams, shape [N, 4, 4]."""
    return sparse.csr_array((beams[MOVES], (ROWS[MOVES], COLUMNS[MOVES])), shape=(2 * N, 2 * N))


TOP_MASS = sparse.csr_array(([TOP], ([2 * N - 2], [2 * N - 2])), shape=(2 * N, 2 * N))


def modes(width):
    """The smallest eigenvalue, and how the mast sways: a beam's stiffness is width^4, its mass width^2."""
    k = assembled((width**4).reshape(-1, 1, 1) * STIFFNESS)
    m = assembled((width**2).reshape(-1, 1, 1) * MASS) + TOP_MASS
    return eigsh(k, k=1, M=m, sigma=0)


def square(width):
    return modes(width)[0][0]


def draw(file, masts):
    from matplotlib.figure import Figure

    figure, heights = Figure(figsize=(6, 3.6), layout="constrained"), np.arange(N + 1) / N
    for axes, (name, width) in zip(figure.subplots(1, len(masts), sharey=True), masts.items(), strict=True):
        value, sway = modes(width)
        place = np.append(0, sway.numpy()[::2, 0]) / sway[-2, 0].item()
        for at, color in ((place, "0.85"), (0 * place, "tab:blue")):
            half = np.append(width.numpy(), width[-1].item()) / 4
            axes.fill_betweenx(heights, at - half, at + half, step="post", color=color)
        axes.set(title=f"{name}: frequency {value.item() ** 0.5:.2f}", xlabel="width, and swaying")
    figure.savefig(file)


def main() -> None:
    even, bounds = torch.ones(N, dtype=torch.float64), [(0.2, 2.0)] * N
    steel = {"type": "eq", "fun": lambda width: (width**2).mean() - 1}
    found = optimize.minimize(lambda width: -square(width), even, bounds=bounds, constraints=steel)
    before, after = (square(width).item() ** 0.5 for width in (even, found.x))
    print(f"lowest frequency: {before:.3f} of an even mast, {after:.3f} of the best one, {found.nit} iterations")
    print(f"width: {found.x[0].item():.2f} at the foot, {found.x[-1].item():.2f} at the top")
    assert after > 1.2 * before and abs((found.x**2).mean().item() - 1) < 1e-6  # noqa: PT018
    print("gradcheck:", torch.autograd.gradcheck(square, even))
    for file in [name for name in sys.argv[1:] if name.endswith(".png")]:
        draw(file, {"even": even, "best": found.x})


if __name__ == "__main__":
    main()
