"""The cost of diagnosis: a training step and a chain of small operations, plain, with origins, and in anomaly mode.

``python -m benchmarks.diagnosis`` prints the processor time of each on one thread, best of several runs: on a machine
that does other things as well, that is the steadier figure. (With more threads it would count those that only wait.)
"""

from __future__ import annotations

import contextlib
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

# first, because libraries read its settings when they are loaded
from benchmarks import environment as environment  # isort: skip

import pullback
from pullback import nn

MODES: dict[str, Callable[[], Any]] = {
    "plain": contextlib.nullcontext,
    "record_origins()": pullback.autograd.record_origins,
    "record_origins(stack=True)": lambda: pullback.autograd.record_origins(stack=True),
    "detect_anomaly(check_nan=False)": lambda: pullback.autograd.detect_anomaly(check_nan=False),
    "detect_anomaly()": pullback.autograd.detect_anomaly,
    "plain, after all of them": contextlib.nullcontext,
}
LENGTH = 100


def chain(size: int) -> Callable[[], None]:
    """A hundred products of `size` elements, forward and backward."""
    x = pullback.ones(size, requires_grad=True)

    def run() -> None:
        y = x
        for _ in range(LENGTH):
            y = y * 1.01
        y.sum().backward()

    return run


def training(batch: int) -> Callable[[], None]:
    """One step of a network 784-256-256-10 with Adam."""
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = pullback.optim.Adam(model.parameters())
    images, digits = pullback.randn(batch, 784), pullback.randint(0, 10, (batch,))

    def run() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), digits).backward()
        optimizer.step()

    return run


def best(run: Callable[[], None], times: int, rounds: int = 9) -> float:
    """Seconds of processor time of one run."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            run()
        found.append((time.process_time() - start) / times)
    return min(found)


def bytes_a_tensor() -> float:
    """The bytes that recording keeps for each living tensor."""
    with pullback.autograd.record_origins():
        tensors = [pullback.ones(1) for _ in range(1000)]
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        held = [t * 2 for t in tensors]
        recorded = tracemalloc.get_traced_memory()[0] - before
    before = tracemalloc.get_traced_memory()[0]
    plain = [t * 2 for t in tensors]
    alone = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return (recorded - alone) / len(held) if plain else 0.0


def main() -> None:
    """Print the table."""
    small, large, step = chain(3), chain(100_000), training(64)
    print(f"{'':<34}{'3 elements, us/op':>20}{'1e5 elements, us/op':>22}{'training step, ms':>20}")
    for name, mode in MODES.items():
        with mode():
            row = best(small, 20) / LENGTH * 1e6, best(large, 2) / LENGTH * 1e6, best(step, 5) * 1e3
        print(f"{name:<34}{row[0]:>20.2f}{row[1]:>22.1f}{row[2]:>20.2f}", flush=True)
    print(f"bytes that recording keeps of each living tensor: {bytes_a_tensor():.0f}")


if __name__ == "__main__":
    main()
