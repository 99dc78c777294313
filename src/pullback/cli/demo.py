"""`pullback demo`: learns handwritten digits through a custom graph node.

The whole library in one run: a custom `Function` (`SwishFunction`) is checked against finite differences, put into a
small network `swish(x @ w + b)`, trained with minibatches and `Adam` on the 8 x 8 digits that come with scikit-learn,
tested on digits it has not seen, and drawn: `demo.png` has the loss and the digits; `graph.html`, `graph.svg` and
`graph.mmd` have the graph of a step.

The sizes and rates below were chosen by cross-validation on the training part alone; the test part is used once, at the
end. scikit-learn, matplotlib and rich make up the extra `demo`; they are imported where they are used.
"""

from __future__ import annotations

import importlib
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pullback
from pullback.diagnose.gradcheck.checking import gradcheck, gradgradcheck
from pullback.inspect import graph as graph_of

EPOCHS = 30
WIDTHS = (64, 256, 128, 10)
BATCH = 64
LEARNING_RATE = 5e-3  # of the first step; it falls linearly to zero
NOISE = 0.6  # added to the training images (which reach from -2 to 2), so that no two epochs are the same
REQUIRED_ACCURACY = 0.97

INK, QUIET, BLUE, RED = "#1f2933", "#7b8794", "#2563eb", "#dc2626"  # the colours of the picture

Array = np.ndarray[Any, Any]
Parameters = dict[str, pullback.Tensor]


class SwishFunction(pullback.autograd.Function):
    """swish(x) = x * sigmoid(x), as a custom node.

    Its derivative is s + x * s * (1 - s) with s = sigmoid(x). `backward` is written in tensor operations, so it can be
    recorded and differentiated in turn. Source: Ramachandran et al., https://arxiv.org/abs/1710.05941.

    >>> x = pullback.tensor([0.0, 1.0], requires_grad=True)
    >>> SwishFunction.apply(x).sum().backward()
    >>> x.grad
    tensor([0.5000, 0.9277])
    """

    @staticmethod
    def forward(ctx: Any, x: pullback.Tensor) -> pullback.Tensor:
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: Any, grad_output: pullback.Tensor) -> pullback.Tensor:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad_output * (s + x * s * (1 - s))


swish = SwishFunction.apply


@dataclass(frozen=True)
class Digits:
    """The data: images as rows of 64 floats around zero, labels 0 to 9, and the test images as they are shown."""

    train_x: Array
    train_y: Array
    test_x: Array
    test_y: Array
    test_images: Array


@dataclass(frozen=True)
class Outcome:
    """The result of a run, for the report, the picture and the exit status."""

    losses: list[float]  # of each epoch: the mean of its minibatches
    minibatches: list[float]
    predicted: Array
    accuracy: float
    seconds: float


def run(epochs: int = EPOCHS, out: Path = Path(), seed: int = 0, as_json: bool = False) -> int:
    """Run the demo, write `demo.png` and the graph into `out`, and return the exit status.

    That is 0 if `REQUIRED_ACCURACY` is reached on the test digits, else 1. `as_json` prints one JSON object instead of
    the progress and the report. Raises `ImportError` if the extra is not installed, and `OSError` if `out` cannot be
    made (both before any computation) or a file cannot be written.
    """
    for module, package in {"sklearn": "scikit-learn", "matplotlib": "matplotlib", "rich": "rich"}.items():
        _require(module, package)
    out.mkdir(parents=True, exist_ok=True)
    from rich.console import Console
    from rich.markup import escape

    console = Console(quiet=as_json, highlight=False)
    console.print("[bold]pullback demo[/]  handwritten digits through a Function of one's own\n")
    checked = check_swish()
    console.print(f"  gradcheck      {_mark(checked)}  SwishFunction, first and second derivatives")

    digits = load_digits()
    rng = np.random.default_rng(seed)
    parameters = new_parameters(rng)
    start = time.perf_counter()
    steps = len(digits.train_x) // BATCH
    minibatches = _with_progress(console, train(parameters, digits, epochs, rng), epochs, steps)
    losses = [_mean_of_epoch(minibatches[i : i + steps]) for i in range(0, len(minibatches), steps)]
    seconds = time.perf_counter() - start
    predicted = predict(parameters, digits.test_x)
    outcome = Outcome(losses, minibatches, predicted, float(np.mean(predicted == digits.test_y)), seconds)
    passed = checked and outcome.accuracy >= REQUIRED_ACCURACY

    picture, graphs = out / "demo.png", [out / f"graph.{form}" for form in ("html", "svg", "mmd")]
    draw(picture, digits, outcome)
    with pullback.autograd.record_origins():
        step_loss = loss(parameters, digits.train_x[:BATCH], digits.train_y[:BATCH])
        step = graph_of(step_loss, parameters, backward=True)
    for path in graphs:
        step.save(path)

    right = int(np.sum(predicted == digits.test_y))
    console.print(
        f"  test accuracy  {_mark(outcome.accuracy >= REQUIRED_ACCURACY)}  [bold]{outcome.accuracy:.1%}[/], {right} "
        f"of {len(predicted)} new digits ({REQUIRED_ACCURACY:.0%} required)"
    )
    console.print(f"  loss           {_shown(losses[-1])}, the mean of the last epoch")
    console.print(f"  loss, answers  {escape(str(picture))}", soft_wrap=True)
    for title, path in zip(("graph, page", "graph, SVG", "graph, text"), graphs, strict=True):
        console.print(f"  {title:15s}{escape(str(path))}", soft_wrap=True)
    if as_json:
        print(json.dumps(_report(digits, outcome, epochs, seed, checked, passed, [picture, *graphs]), indent=2))
    return 0 if passed else 1


def check_swish() -> bool:
    """Whether `SwishFunction` agrees with finite differences, to second order."""
    x = pullback.tensor(np.linspace(-4.0, 4.0, 12).reshape(3, 4), requires_grad=True)
    return gradcheck(swish, (x,), raise_exception=False) and gradgradcheck(swish, (x,), raise_exception=False)


def load_digits() -> Digits:
    """The 1797 digits, three quarters for training and one quarter for testing, with the same share of each digit."""
    from sklearn import datasets, model_selection

    images, labels = datasets.load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = model_selection.train_test_split(
        images, labels, test_size=0.25, stratify=labels, random_state=0
    )
    mean = train_x.mean(axis=0)
    scaled = (((part - mean) / 8).astype(np.float32) for part in (train_x, test_x))
    return Digits(next(scaled), train_y, next(scaled), test_y, test_x.reshape(-1, 8, 8))


def new_parameters(rng: np.random.Generator) -> Parameters:
    """Weights of variance 1 / inputs and biases of zero, in float32, under the names they have in the graph."""
    parameters = {}
    for i, (inputs, outputs) in enumerate(itertools.pairwise(WIDTHS), start=1):
        weights = rng.normal(scale=inputs**-0.5, size=(inputs, outputs)).astype(np.float32)
        parameters[f"w{i}"] = pullback.tensor(weights, requires_grad=True)
        parameters[f"b{i}"] = pullback.zeros(outputs, requires_grad=True)
    return parameters


def logits(parameters: Parameters, images: Array) -> pullback.Tensor:
    """The network: `swish(x @ w + b)` twice, then `x @ w + b`."""
    p, x = parameters, pullback.tensor(images, device=parameters["w1"].device)
    x = swish(x @ p["w1"] + p["b1"])
    x = swish(x @ p["w2"] + p["b2"])
    return x @ p["w3"] + p["b3"]


def loss(parameters: Parameters, images: Array, labels: Array) -> pullback.Tensor:
    """The cross-entropy of the network's answers, averaged over the images."""
    found = logits(parameters, images)
    return pullback.nn.functional.cross_entropy(found, pullback.tensor(labels, device=found.device))


def train(parameters: Parameters, digits: Digits, epochs: int, rng: np.random.Generator) -> Iterator[float]:
    """Train in place, and yield the loss of every step; each epoch leaves out a few digits that do not fill a
    minibatch.
    """
    optimizer = pullback.optim.Adam(parameters.values(), lr=LEARNING_RATE)
    steps = len(digits.train_x) // BATCH
    for epoch in range(epochs):
        order = rng.permutation(len(digits.train_x))[: steps * BATCH]
        for i, chosen in enumerate(order.reshape(steps, BATCH)):
            done = (epoch + i / steps) / epochs
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - done)
            images = digits.train_x[chosen]
            images = images + NOISE * rng.standard_normal(images.shape, dtype=np.float32)
            optimizer.zero_grad()
            step_loss = loss(parameters, images, digits.train_y[chosen])
            step_loss.backward()
            optimizer.step()
            yield step_loss.item()


def predict(parameters: Parameters, images: Array) -> Array:
    """The digit that the network takes each image for."""
    with pullback.no_grad():
        return logits(parameters, images).cpu().numpy().argmax(axis=1)


def draw(path: Path, digits: Digits, outcome: Outcome) -> None:
    """The picture: the loss of every step on the left, test digits with the answers on the right."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(13, 6.6), facecolor="white")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
    _draw_loss(left.add_axes((0.15, 0.13, 0.78, 0.68)), outcome)
    left.text(0.15, 0.92, "Learning", size=17, weight="bold", color=INK)
    left.text(0.15, 0.865, "cross-entropy of each minibatch, and its mean by epoch", size=11, color=QUIET)

    wrong = np.flatnonzero(outcome.predicted != digits.test_y)
    correct = np.flatnonzero(outcome.predicted == digits.test_y)
    shown = np.concatenate([wrong, correct])[:60]
    right.text(
        0.03,
        0.92,
        f"{outcome.accuracy:.1%} right on {len(digits.test_y)} new digits",
        size=17,
        weight="bold",
        color=INK,
    )
    count = f"all {len(wrong)} mistakes" if len(wrong) < len(shown) else f"{len(shown)} of {len(wrong)} mistakes"
    right.text(0.03, 0.865, f"what the network reads; {count} first, framed and corrected", size=11, color=QUIET)
    for axes, i in zip(right.subplots(6, 10, gridspec_kw=_GRID).flat, shown, strict=True):
        _draw_digit(axes, digits.test_images[i], int(outcome.predicted[i]), int(digits.test_y[i]))
    figure.savefig(path, dpi=150)


_GRID = {"left": 0.03, "right": 0.97, "bottom": 0.03, "top": 0.81, "wspace": 0.16, "hspace": 0.42}


def _draw_loss(axes: Any, outcome: Outcome) -> None:
    """The loss against epochs, on a logarithmic scale."""
    from matplotlib.ticker import LogLocator, NullLocator

    means, each = outcome.losses, outcome.minibatches
    axes.semilogy(np.arange(1, len(each) + 1) * len(means) / len(each), each, color=BLUE, alpha=0.25, linewidth=0.8)
    axes.semilogy(np.arange(len(means)) + 0.5, means, color=BLUE, linewidth=2.4, marker="o", markersize=3.5)
    axes.annotate(
        _shown(means[-1]),
        (len(means) - 0.5, means[-1]),
        (0, 9),
        textcoords="offset points",
        ha="center",
        color=BLUE,
        weight="bold",
    )
    axes.set_xlim(0, len(means))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("epoch", color=INK, size=11)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(True, which="major", color="#e4e7eb", linewidth=0.8)
    axes.tick_params(which="both", length=0, labelcolor=QUIET)
    for side in axes.spines.values():
        side.set_visible(False)


def _draw_digit(axes: Any, image: Array, predicted: int, truth: int) -> None:
    """One test digit with the network's answer above it; a wrong answer is framed, and the right one given."""
    wrong = predicted != truth
    axes.imshow(image, cmap="gray_r", interpolation="nearest")
    title = f"{predicted}, is {truth}" if wrong else str(predicted)
    axes.set_title(title, size=9.5, pad=3, color=RED if wrong else QUIET, weight="bold" if wrong else "normal")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(RED if wrong else "#e4e7eb")
        side.set_linewidth(2.2 if wrong else 0.8)


def _with_progress(console: Any, losses: Iterator[float], epochs: int, per_epoch: int) -> list[float]:
    """Run the training under a progress bar with the epoch and its mean loss so far; return that of each minibatch."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("  training      "),
        BarColumn(bar_width=32),
        TextColumn("epoch {task.fields[epoch]}/" + str(epochs)),
        TextColumn("loss {task.fields[loss]}"),
        TimeElapsedColumn(),
    )
    found: list[float] = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=epochs * per_epoch, epoch=0, loss="")
        for value in losses:
            found.append(value)
            begun = (len(found) - 1) // per_epoch * per_epoch
            mean = _mean_of_epoch(found[begun:])
            progress.update(task, advance=1, epoch=len(found) // per_epoch, loss=_shown(mean))
    return found


def _mean_of_epoch(minibatches: list[float]) -> float:
    return sum(minibatches) / len(minibatches)


def _shown(loss: float) -> str:
    """A loss as the progress, the report and the picture show it: the same number in all of them."""
    return f"{loss:.4f}"


def _mark(good: bool) -> str:
    return "[green]passed[/]" if good else "[red]failed[/]"


def _report(
    digits: Digits, outcome: Outcome, epochs: int, seed: int, checked: bool, passed: bool, files: list[Path]
) -> dict[str, Any]:
    """The report that `--json` prints."""
    return {
        "gradcheck": checked,
        "epochs": epochs,
        "seed": seed,
        "train_digits": len(digits.train_y),
        "test_digits": len(digits.test_y),
        "first_loss": outcome.losses[0],
        "last_loss": outcome.losses[-1],
        "test_accuracy": outcome.accuracy,
        "required_accuracy": REQUIRED_ACCURACY,
        "passed": passed,
        "seconds": round(outcome.seconds, 3),
        "files": [str(path) for path in files],
    }


def _require(module: str, package: str) -> None:
    """Raise an `ImportError` that says what to install, if `module` cannot be imported."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"the demo needs {package}, which is not installed: pip install 'pullback[demo]'") from error
