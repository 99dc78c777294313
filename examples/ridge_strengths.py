"""A bilevel problem: the strength of each ridge penalty is chosen by the error on data that were held out.

Inside, `minimize` fits a classifier, ``w(s) = argmin_w sum log(1 + exp(-y X w)) + sum exp(s_j) w_j^2 / 2``, with a
penalty for each group of features. Outside, `minimize` changes the strengths s until w(s) predicts held-out data best.
The derivative of w(s) is that of the conditions of the minimum, and the inner solver is SciPy's. Two of the four
groups of features are noise: their penalties grow. ``python examples/ridge_strengths.py ridge.png`` draws it.
"""

import sys

import numpy as np

import pullback as torch
from pullback.scipy import optimize, special

GROUPS = np.repeat(np.arange(4), 8)  # 32 features
STRONG = np.array([1.0, 0.3, 0.0, 0.0])  # how much each group says


def data(count, rng):
    x = rng.normal(size=(count, GROUPS.size))
    return torch.tensor(x), torch.tensor(np.sign(x @ WEIGHTS + rng.logistic(size=count)))


RNG = np.random.default_rng(3)
WEIGHTS = RNG.normal(size=GROUPS.size) * STRONG[GROUPS]
TRAIN, HELD_OUT, TEST = data(120, RNG), data(120, RNG), data(4000, RNG)


def loss(w, x, y):
    return -special.log_expit(x @ w * y).mean()


def penalised(w, s):
    return loss(w, *TRAIN) * len(TRAIN[0]) + (torch.exp(s)[GROUPS] * w**2).sum() / 2


def fitted(s):
    """The weights for these strengths: a node whose input is s."""
    return optimize.minimize(penalised, np.zeros(GROUPS.size), args=(s,), method="trust-ncg", tol=1e-6).x


def held_out(s):
    return loss(fitted(s), *HELD_OUT)


def draw(file, start, found):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 2])
    left.bar(range(4), torch.exp(found).numpy())
    left.set(yscale="log", title="penalty", xlabel="group of features")
    for s, color, label in ((start, "0.7", "equal penalties"), (found, "tab:blue", "chosen")):
        right.plot(np.abs(fitted(s).numpy() - WEIGHTS), ".-", color=color, label=label)
    right.set(title="error of each weight", xlabel="feature", ylim=(-0.05, 1))
    right.legend()
    figure.savefig(file)


def main() -> None:
    start = torch.zeros(4, dtype=torch.float64)
    found = optimize.minimize(held_out, start, bounds=[(-3.0, 8.0)] * 4).x
    before, after = (loss(fitted(s), *TEST).item() for s in (start, found))
    print("penalties:", ", ".join(f"{strength:.3g}" for strength in torch.exp(found).tolist()))
    print(f"loss on new data: {before:.4f} with equal penalties, {after:.4f} with those chosen")
    assert after < before
    assert found[2:].min() > found[:2].max()
    print("gradcheck:", torch.autograd.gradcheck(held_out, start))
    for file in [name for name in sys.argv[1:] if name.endswith(".png")]:
        draw(file, start, found)


if __name__ == "__main__":
    main()
