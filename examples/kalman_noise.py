"""The noise of a Kalman filter, fitted to what the filter did not expect.

A car moves along a line, and its place is measured, badly. A filter needs to know how much the speed changes by itself
in a step, q, and how wrong a measurement is, r. Its gain comes from `solve_discrete_are`. If q and r are right, its
errors of prediction are normal and independent: `minimize` makes their `stats.norm.logpdf` as large as it can, and the
Hessian there says how sure q and r are. ``python examples/kalman_noise.py kalman.png`` draws the filtered path.
"""

import sys

import numpy as np

import pullback as torch
from pullback.scipy import linalg, optimize, stats

MOTION = np.array([[1.0, 1.0], [0.0, 1.0]])  # place and speed, a step later
PLACE, SPEED = np.array([[1.0, 0.0]]), np.diag([0.0, 1.0])
TRUE = np.array([0.05, 2.0])  # q and r, as standard deviations


def drive(steps=300):
    """The true places, and the measured ones."""
    rng, state, places = np.random.default_rng(0), np.zeros(2), []
    for _ in range(steps):
        state = MOTION @ state + [0.0, rng.normal(0, TRUE[0])]
        places.append(state[0])
    return np.array(places), places + rng.normal(0, TRUE[1], steps)


def filtered(log_noise, measured):
    """The estimated places, the errors of prediction, and their standard deviation."""
    q, r = torch.exp(2 * log_noise)
    p = linalg.solve_discrete_are(MOTION.T, PLACE.T, q * SPEED, r.reshape(1, 1))  # the covariance of a prediction
    variance = p[0, 0] + r
    gain, state, places, surprises = p[:, 0] / variance, torch.zeros(2, dtype=p.dtype), [], []
    for y in measured:
        state = MOTION @ state
        surprises.append(y - state[0])
        state = state + gain * surprises[-1]
        places.append(state[0])
    return torch.stack(places), torch.stack(surprises), torch.sqrt(variance)


def surprise(log_noise, measured):
    _, errors, scale = filtered(log_noise, measured)
    return -stats.norm.logpdf(errors, scale=scale).sum()


def draw(file, places, measured, guess, found):
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(7, 3), layout="constrained")).subplots()
    axes.plot(measured - places, ".", color="0.8", label="measured")
    for noise, color, label in ((guess, "tab:orange", "first guess"), (found, "tab:blue", "fitted")):
        axes.plot(filtered(noise, measured)[0].numpy() - places, color=color, label=f"filtered, {label}")
    axes.set(xlabel="step", ylabel="error of the place")
    axes.legend()
    figure.savefig(file)


def main() -> None:
    (places, measured), guess = drive(), torch.zeros(2, dtype=torch.float64)
    found = optimize.minimize(surprise, guess, args=(measured,)).x
    spread = torch.sqrt(torch.diagonal(torch.linalg.inv(torch.func.hessian(lambda n: surprise(n, measured))(found))))
    for name, value, share, true in zip("qr", torch.exp(found).tolist(), spread.tolist(), TRUE, strict=True):
        print(f"{name} = {value:.3f}, give or take {share:.0%}; true {true}")
    assert (np.abs(found.numpy() - np.log(TRUE)) < 3 * spread.numpy()).all()
    print("gradcheck:", torch.autograd.gradcheck(lambda n: surprise(n, measured[:30]), guess))
    for file in [name for name in sys.argv[1:] if name.endswith(".png")]:
        draw(file, places, measured, guess, found)


if __name__ == "__main__":
    main()
