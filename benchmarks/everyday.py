"""Everyday operations on float32, forward and backward, and steps of optimisers, eager.

`python -m benchmarks.everyday` prints the table of docs/benchmarks.md.

PyTorch and pullback run in a process each, one thread each, on the same numbers. Their values and gradients are
compared before anything is timed. Then they take turns; a figure is the median, in processor time, so that other work
on the machine counts little.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import environment as environment
from benchmarks.apart import Process

SIZES = (10, 10_000, 100_000, 1_000_000, 10_000_000)
_RUN = 0.01  # seconds that a measurement takes at least

Work = Callable[[], tuple[Any, Any]]


# -- the work ----------------------------------------------------------------------------------------------------------


def _of_elements(lib: Any, name: str, size: int) -> tuple[Callable[[Any], Any], Any]:
    f = lib.nn.functional
    functions = {
        "silu": f.silu,
        "gelu": f.gelu,
        "gelu, tanh": lambda x: f.gelu(x, approximate="tanh"),
        "softplus": f.softplus,
        "mish": f.mish,
        "elu": f.elu,
        "dropout": f.dropout,
    }
    return functions[name], np.linspace(-4, 4, size, dtype=np.float32)


def _of_rows(lib: Any, name: str, size: int, length: int) -> tuple[Callable[[Any], Any], Any]:
    f, rows = lib.nn.functional, size // length
    scale = [lib.from_numpy(np.linspace(1, 2, length, dtype=np.float32)).requires_grad_() for _ in range(2)]
    target = lib.from_numpy(np.arange(rows) % length)
    functions = {
        "log_softmax": lambda x: f.log_softmax(x, 1),
        "layer_norm": lambda x: f.layer_norm(x, (length,), *scale),
        "cross_entropy": lambda x: f.cross_entropy(x, target),
    }
    values = np.sin(np.arange(rows * length, dtype=np.float64)).astype(np.float32)
    return functions[name], values.reshape(rows, length)


def _of_step(lib: Any, options: dict[str, Any], size: int) -> Work:
    """The step of an optimiser, with one parameter; it returns the parameter and its gradient."""
    p, g = (lib.from_numpy(f(np.arange(size)).astype(np.float32)) for f in (np.sin, np.cos))
    p.requires_grad_().grad = g
    named = dict(options)
    optimiser = getattr(lib.optim, named.pop("name"))([p], lr=1e-3, **named)

    def run() -> tuple[Any, Any]:
        optimiser.step()
        return p, p.grad

    return run


STEPS: dict[str, dict[str, Any]] = {
    "SGD.step": {"name": "SGD", "momentum": 0.9},
    "Adam.step": {"name": "Adam"},
    "RMSprop.step": {"name": "RMSprop"},
}
NAMES = (
    "silu",
    "gelu",
    "gelu, tanh",
    "softplus",
    "mish",
    "elu",
    "log_softmax",
    "layer_norm",
    "cross_entropy",
    "dropout",
    *STEPS,
)


def work(lib: Any, name: str, size: int, length: int) -> Work:
    """Forward and backward of an operation, which returns the result and the gradient; or a step of an optimiser."""
    if name in STEPS:
        return _of_step(lib, STEPS[name], size)
    by_rows = name in ("log_softmax", "layer_norm", "cross_entropy")
    function, values = _of_rows(lib, name, size, min(length, size)) if by_rows else _of_elements(lib, name, size)
    x = lib.from_numpy(values).requires_grad_()
    g = lib.from_numpy(np.linspace(1, 2, values.size, dtype=np.float32).reshape(values.shape))
    scalar = name == "cross_entropy"

    def run() -> tuple[Any, Any]:
        x.grad = None
        y = function(x)
        y.backward() if scalar else y.backward(g)
        return y, x.grad

    return run


def shown(name: str, run: Work) -> list[list[float]]:
    """What is compared: some of the values, and of the gradient; of dropout, which numbers there are."""
    found = [t.detach().numpy().reshape(-1) for t in run()]
    if name == "dropout":
        return [sorted({bool(v) for v in array[:1000]}) for array in found]
    return [array[:: max(1, array.size // 100)].tolist() for array in found]


# -- a process for each library ----------------------------------------------------------------------------------------


def answers(package: str) -> Callable[..., Any]:
    """What a library's process does: prepare an operation and show its values, or time it."""
    lib = importlib.import_module(package)
    lib.set_num_threads(1)
    prepared: list[tuple[Work, int]] = []

    def answer(*asked: Any) -> Any:
        if not asked:
            run, times = prepared[-1]
            return _timed(run, times) * 1e6
        run = work(lib, *asked)
        found = shown(asked[0], run)
        took = min(_timed(run, 1) for _ in range(2))
        prepared[:] = [(run, max(1, int(_RUN / max(took, 1e-6))))]
        return found

    return answer


def _timed(run: Work, times: int) -> float:
    """The seconds of a run."""
    start = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - start) / times


def measured(name: str, size: int, length: int, repeat: int, sides: list[Process]) -> list[float]:
    """The medians of the sides, in microseconds. ValueError if their values differ."""
    values = [side.ask(name, size, length) for side in sides]
    for ours, theirs in zip(*values, strict=True):
        if not np.allclose(ours, theirs, rtol=1e-4, atol=1e-5):
            raise ValueError(f"{name} of {size} elements: the two libraries differ")
    runs = [[side.ask() for side in sides] for _ in range(repeat)]
    return [statistics.median(times) for times in zip(*runs, strict=True)]


def main(argv: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.everyday", description=__doc__)
    parser.add_argument("--names", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="N", help="numbers of elements")
    parser.add_argument("--length", type=int, default=100, help="of the rows of log_softmax and its like (100)")
    parser.add_argument("--repeat", type=int, default=9, help="runs of each side (9)")
    options = parser.parse_args(argv)
    print("| operation | " + " | ".join(f"{size:.0e}" for size in options.sizes) + " |")
    print("| --- |" + " ---: |" * len(options.sizes), flush=True)
    sides = [Process(answers, "torch"), Process(answers, "pullback")]
    for name in options.names:
        cells = []
        for size in options.sizes:
            torch, own = measured(name, size, options.length, options.repeat, sides)
            cells.append(f"{own:.4g} / {torch:.4g} us: {own / torch:.2f}")
        print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)
    for side in sides:
        side.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
