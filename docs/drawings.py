"""The pictures at the top of the gallery's pages: a function for each page, whose arguments are names of its program.

`python -m docs.notebooks [NAME...]` runs the pages and saves their pictures. A notebook has the source of its function.
"""

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import pullback as torch


def beam(x: Any, expected: Any, found: Any) -> Figure:
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(x, -expected, color="0.7", linewidth=6, label="SciPy, solve_bvp")
    axes.plot(x, -found, color="tab:blue", label="the network")
    axes.set(xlabel="x", ylabel="bending")
    axes.legend()
    return figure


def c_kernel(true: Any, found: Any, heard: Any) -> Figure:
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes, m, name in ((left, true, "true"), (middle, found, "found")):
        axes.imshow(m.numpy(), cmap="cividis", vmin=0.15, vmax=0.27)
        axes.plot([*heard], [3] * len(heard), "v", color="tab:red")
        axes.set_title(f"{name}: (c dt)^2, charges")
    right.imshow(heard[24].numpy(), cmap="gray", aspect="auto", vmin=-0.2, vmax=0.2)
    right.set(title="heard", xlabel="place", ylabel="time")
    return figure


def conductances(side: Any, one: Any, other: Any, heat: Any, true: Any, found: Any) -> Figure:
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    ends = [[(a % side, a // side), (b % side, b // side)] for a, b in zip(one, other, strict=True)]
    wires = left.add_collection(LineCollection(ends, array=found.numpy(), cmap="viridis", linewidths=2))
    left.plot(heat.argmax(0) % side, heat.argmax(0) // side, "o", color="tab:red", markersize=3)
    left.set(title="conductances found, places of heat", aspect="equal")
    figure.colorbar(wires, ax=left)
    right.axline((0, 0), slope=1, color="0.7", linewidth=1)
    right.plot(true.numpy(), found.numpy(), ".", markersize=4)
    right.set(xlabel="true", ylabel="found")
    return figure


def digits(losses: Any, says: Any, digits: Any) -> Figure:
    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.3])
    left.subplots().semilogy(losses)
    left.axes[0].set(xlabel="step", ylabel="loss")
    wrong_first = np.argsort(says == digits.test_y, kind="stable")[:28]
    for axes, k in zip(right.subplots(4, 7).flat, wrong_first, strict=True):
        axes.imshow(digits.test_images[k], cmap="gray_r")
        axes.set_title(says[k], fontsize=9, color="black" if says[k] == digits.test_y[k] else "tab:red")
        axes.axis("off")
    return figure


def gaussian_process(t: Any, y: Any, s: Any, slow: Any, wave: Any, band: Any) -> Figure:
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes, mean = figure.subplots(), (slow + wave)[:, 0].numpy()
    axes.fill_between(s.numpy(), mean - band.numpy(), mean + band.numpy(), color="tab:blue", alpha=0.25)
    axes.plot(s.numpy(), mean, color="tab:blue", label="mean, and two standard deviations")
    axes.plot(s.numpy(), slow[:, 0].numpy(), color="tab:orange", label="drift")
    axes.plot(t.numpy(), y.numpy(), ".", color="black", markersize=4, label="measured")
    axes.set(xlabel="years", ylim=(-2.6, 3.2))
    axes.legend(ncols=3, loc="upper center", fontsize="small")
    return figure


def gpt(losses: Any, model: Any, letters: Any, heads: Any) -> Figure:
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(losses)
    left.set(xlabel="step", ylabel="loss")
    read = "sixty-four, sixty-five, sixty-s"
    with torch.no_grad():
        x = model.letter(torch.tensor([[letters.index(c) for c in read]])) + model.place.weight[: len(read)]
        block = model.blocks[1]
        q, k, _ = block.qkv(block.norm1(model.blocks[0](x))).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2))[0, 0] / q.shape[-1] ** 0.5
        scores += torch.full_like(scores, -np.inf).triu(1)
    right.imshow(torch.softmax(scores, -1).numpy(), cmap="Blues")
    right.set_xticks(range(len(read)), read, fontsize=6)
    right.set_yticks(range(len(read)), read, fontsize=6)
    return figure


def heat_source(
    X: Any, Y: Any, grid: Any, places: Any, source: Any, temperature: Any, start: Any, true: Any, found: Any
) -> Figure:
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, subplot_kw={"aspect": "equal"})
    figure.colorbar(left.pcolormesh(grid, grid, temperature(found.x).numpy().T, cmap="inferno"), ax=left)
    left.plot(X[places], Y[places], ".", color="white")
    left.set_title("temperature, thermometers")
    for shape, color, width in ((start, "0.7", 1), (true, "black", 4), (found.x, "tab:orange", 1.5)):
        right.contour(grid, grid, source(shape).numpy().T, [50.0], colors=color, linewidths=width)
    right.set_title("source: guess, true (black), found")
    return figure


def kalman_noise(measured: Any, places: Any, filtered: Any, guess: Any, found: Any) -> Figure:
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(measured - places, ".", color="0.8", label="measured")
    for noise, color, label in ((guess, "tab:orange", "first guess"), (found, "tab:blue", "fitted")):
        axes.plot(filtered(noise, measured)[0].numpy() - places, color=color, label=f"filtered, {label}")
    axes.set(xlabel="step", ylabel="error of the place")
    axes.legend()
    return figure


def lens(traced: Any, height: Any, start: Any, lens: Any, scale: Any) -> Figure:
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    y = torch.linspace(-10, 10, 100, dtype=torch.float64)
    for axes, shape, name in zip(figure.subplots(1, 2), (start, lens.detach()), ("spherical", "found"), strict=True):
        z, heights = (torch.stack([p[k] for p in traced(shape)]).numpy() for k in (0, 1))
        axes.plot(z, heights, color="tab:orange", linewidth=0.6)
        axes.plot(height(y, shape * scale).numpy(), y.numpy(), color="tab:blue", linewidth=2)
        axes.plot([4, 4], [-10, 10], color="tab:blue", linewidth=2)
        axes.set(title=name, aspect="equal", xlabel="mm")
    return figure


def orbit(flown: Any, guess: Any, found: Any) -> Figure:
    figure = Figure(figsize=(8, 2.8), layout="constrained")
    for axes, unknowns, name in zip(figure.subplots(1, 2), (guess, found.x), ("guessed", "found"), strict=True):
        paths = flown(unknowns.detach(), np.linspace(0, 1, 300)).numpy()[:6].reshape(3, 2, -1)
        for (x, y), color in zip(paths, ("tab:blue", "tab:orange", "tab:green"), strict=True):
            axes.plot(x[:100], y[:100], color=color)
            axes.plot(x[100:], y[100:], color=color, linewidth=0.5)
            axes.plot(x[0], y[0], "o", color=color)
        axes.set(title=name, aspect="equal")
    return figure


def spline(x: Any, y: Any, curve: Any, by_squares: Any, robust: Any) -> Figure:
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes, s = figure.subplots(), np.linspace(0, 10, 400)
    axes.plot(x, y, ".", color="0.3", label="readings")
    axes.plot(s, np.sin(s) + 0.3 * s, color="0.8", linewidth=5, label="exact")
    axes.plot(s, curve(by_squares, s).numpy(), color="tab:orange", label="least squares")
    axes.plot(s, curve(robust, s).numpy(), color="tab:blue", label="robust")
    axes.legend()
    return figure


def survival(X: Any, time: Any, died: Any, b: Any) -> Figure:
    """Kaplan and Meier's steps need no model. The curves are the means over a group's patients."""
    figure = Figure(figsize=(6.5, 3.4), layout="constrained")
    axes, t, found = figure.subplots(), np.linspace(0.01, 5, 200), b.detach().numpy()
    for treated, color, name in ((0, "tab:gray", "without treatment"), (1, "tab:blue", "treated")):
        group = X.numpy()[:, 1] == treated
        order = np.argsort(time[group])
        alive = np.cumprod(1 - died[group][order] / np.arange(len(order), 0, -1))
        axes.step(time[group][order], alive, where="post", color=color, alpha=0.6)
        z = np.exp(found[3]) * (np.log(t)[:, None] - X.numpy()[group] @ found[:3])
        axes.plot(t, np.exp(-np.exp(z)).mean(axis=1), color=color, linewidth=2, label=name)
    axes.set(xlabel="years", ylabel="share alive", ylim=(0, 1.02))
    axes.legend()
    return figure
