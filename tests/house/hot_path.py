"""What one node costs, in numbers that do not depend on the clock: calls of Python functions, and memory.

`python tests/house/hot_path.py` prints the counts of this interpreter, `--record` lowers those that are recorded in
`hot_path_counts.json` to them. Chains are measured at two lengths, so that what happens once drops out.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pullback
from pullback.autograd import Function

RECORDED = Path(__file__).with_name("hot_path_counts.json")
SHORT, LONG = 100, 200  # lengths of chains
PYTHON_DOMAIN = 0  # of tracemalloc: what NumPy allocates for elements is in another

Chain = Callable[[Any, int], Any]


class Multiply(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, c: Any) -> Any:
        ctx.save_for_backward(c)
        return x * c

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (c,) = ctx.saved_tensors
        return g * c, None


FACTOR = pullback.tensor(np.ones((1, 3), np.float32))


def multiplications(y: Any, n: int) -> Any:
    for _ in range(n):
        y = y * FACTOR
    return y


def functions(y: Any, n: int) -> Any:
    for _ in range(n):
        y = Multiply.apply(y, FACTOR)
    return y


def reductions(y: Any, n: int) -> Any:
    for _ in range(n):
        y = y.sum(0, True)
    return y


def views(y: Any, n: int) -> Any:
    for _ in range(n):
        y = y.view(1, 3)
    return y


CHAINS: dict[str, Chain] = {
    "multiplication": multiplications,
    "function": functions,
    "reduction": reductions,
    "view": views,
}


def calls(work: Callable[[], Any]) -> int:
    """How many calls of Python functions `work` makes."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def held(build: Callable[[], Any]) -> tuple[int, int]:
    """How many blocks of memory, and bytes in them, of Python's allocator what `build` returns holds."""
    gc.collect()  # which also empties the lists of objects kept for reuse
    tracemalloc.start()
    kept = build()
    traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, PYTHON_DOMAIN)]).traces
    tracemalloc.stop()
    del kept
    return len(traces), sum(trace.size for trace in traces)


def leaf() -> Any:
    return pullback.tensor(np.ones((1, 3), np.float32), requires_grad=True)


def measured(chain: Chain) -> dict[str, int]:
    """The counts of one node of a chain, rounded to whole ones.

    A collection would call what other tests left, and a pass looks again at the classes of PyTorch once it took some
    away: the only one comes first.
    """
    if gc.isenabled():
        gc.collect()
        gc.disable()
        try:
            return measured(chain)
        finally:
            gc.enable()
    gradient = pullback.tensor(np.ones((1, 3), np.float32))
    found: dict[int, list[int]] = {}
    for n in (SHORT, SHORT, LONG):  # at first all that is made once is made
        build = functools.partial(chain, leaf(), n)
        found[n] = [calls(build), calls(functools.partial(build().backward, gradient)), *held(lambda: chain(leaf(), n))]  # noqa: B023 - called at once
    names = ("calls forward", "calls backward", "blocks", "bytes")
    pairs = zip(names, found[SHORT], found[LONG], strict=True)
    return {name: round((long - short) / (LONG - SHORT)) for name, short, long in pairs}


def version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def counts() -> dict[str, dict[str, int]]:
    """The counts of all chains."""
    gc.disable()
    return {name: measured(chain) for name, chain in CHAINS.items()}


def lowered(old: dict[str, dict[str, int]], new: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The recorded counts, with those that have become lower."""
    return {
        name: {what: min(n, old.get(name, {}).get(what, n)) for what, n in of_name.items()}
        for name, of_name in new.items()
    }


if __name__ == "__main__":
    found = counts()
    print(json.dumps(found, indent=2))
    if "--record" in sys.argv:
        recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        recorded[version()] = lowered(recorded.get(version(), {}), found)
        RECORDED.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n")
