"""Two independent backward passes, one after the other and in two threads at once.

`python -m benchmarks.free_threads` prints the times and the interpreter: the lock of an ordinary one lets one
thread go on at a time; on a free-threaded one (3.14t) two passes should take half the time. Values are compared first.
The two ways take turns; a figure is the median of the times on the clock, so nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback
from benchmarks import environment as environment
from benchmarks.rows import _multiply

NODES = 20_000


def chain(lib: Any, multiply: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    """Builds a chain of nodes on three numbers and runs it backward; returns the gradient."""
    x, c = lib.tensor([0.5, -1.25, 2.0], requires_grad=True), lib.tensor([1.0, 1 - 2**-20, 1 + 2**-20])

    def work() -> Any:
        x.grad = None
        y = x
        for _ in range(NODES):
            y = multiply(y, c)
        y.sum().backward()
        return x.grad.numpy()

    return work


def network(lib: Any) -> Callable[[], Any]:
    """Trains a layer by small products; returns the gradient."""
    rng = np.random.default_rng(0)
    w = lib.tensor(rng.standard_normal((16, 16)) / 4, requires_grad=True)
    x = lib.tensor(rng.standard_normal((8, 16)))

    def work() -> Any:
        w.grad = None
        h = x
        for _ in range(2000):
            h = (h @ w).tanh()
        (h * h).sum().backward()
        return w.grad.numpy()

    return work


def plain() -> Callable[[], Any]:
    """As much plain Python, without pullback: what two threads can win on this machine."""

    class Held:
        __slots__ = ("n",)

    def work() -> Any:
        held, found = Held(), {}
        held.n = 0
        for i in range(400_000):
            held.n += 1
            found[i & 7] = held.n, i
        return np.array(list(found.values()))

    return work


def at_once(works: list[Callable[[], Any]]) -> list[Any]:
    """What each returns, run in a thread each."""
    found: list[Any] = [None] * len(works)

    def run(i: int) -> None:
        found[i] = works[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def one_by_one(works: list[Callable[[], Any]]) -> list[Any]:
    """What each returns, one after the other."""
    return [work() for work in works]


def main(argv: list[str]) -> int:
    """Print the times of each work in both ways."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.free_threads", description=__doc__)
    parser.add_argument("--repeat", type=int, default=15, help="runs of each way (15)")
    parser.add_argument("--gc", choices=("on", "off"), default="on", help="Python's collector, which stops all threads")
    options = parser.parse_args(argv)
    pullback.set_num_threads(1)
    lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    kind = "free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else "ordinary"
    settings = f"lock {'on' if lock else 'off'}; collector {options.gc}; NumPy {np.__version__}"
    print(f"Python {sys.version.split()[0]}, {kind}; {settings}")
    if options.gc == "off":
        gc.disable()
    makers: dict[str, Callable[[], Callable[[], Any]]] = {
        f"{NODES:,} multiplications": lambda: chain(pullback, lambda a, b: a * b),
        f"{NODES:,} calls of a custom Function": lambda: chain(pullback, _multiply(pullback)),
        "2,000 layers of 16, batch 8": lambda: network(pullback),
        "plain Python": plain,
    }
    for name, make in makers.items():
        works = [make() for _ in range(2)]
        expected = one_by_one(works)
        for found in (at_once(works), [works[0](), works[0]()]):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
        times: dict[str, list[float]] = {"one by one": [], "at once": []}
        for _ in range(options.repeat):
            for way, run in (("one by one", one_by_one), ("at once", at_once)):
                start = time.perf_counter()
                run(works)
                times[way].append(time.perf_counter() - start)
        one, both = (statistics.median(found) * 1e3 for found in times.values())
        print(f"two passes of {name}: one by one {one:.0f} ms, at once {both:.0f} ms: {both / one:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
