"""On a GPU, against PyTorch on the same one: `python -m benchmarks.gpu`, or `pullback bench gpu`.

Swish of 1e7 and 1e8 float32 numbers, forward and backward: as a custom Function beside PyTorch's custom Function, and
compiled beside PyTorch's `silu`, with the share of the memory's bandwidth; and a training step of the MLP
784-256-256-10, batch 512, eager, compiled, and compiled with CUDA graphs, ``mode="reduce-overhead"``: there beside
both of PyTorch's modes, and the ratio is to `torch.compile`. Values are compared before anything is timed. The sides
take turns; a time is the median of the rounds, between two events on the GPU. What a side cannot do is said, and its
row has no ratio.

Status 2 where CuPy or a GPU is missing, 1 if a side fails or differs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import pullback
from benchmarks import arrays, models
from benchmarks.harness import Program

SIZES = (10**7, 10**8)
BATCH = 512
MOVED = 5 * 4  # bytes for each number: x read and y written, then x and the gradient read and that of x written


class Side(NamedTuple):
    """One library's way of doing a row's work."""

    name: str
    library: ModuleType
    make: Callable[[], Program]


class Row(NamedTuple):
    """Work that sides do, the reference first. bytes: what it has to move; 0 if that says nothing."""

    title: str
    sides: list[Side]
    moved: int = 0


class OnGPU:
    """A library whose tensors are made on the GPU: what the programs of other benchmarks make lies there."""

    def __init__(self, library: ModuleType) -> None:
        self._library = library

    def tensor(self, data: Any, **how: Any) -> Any:
        """As `torch.tensor`, on the GPU."""
        return self._library.tensor(data, device="cuda", **how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)


class WithGraphs(OnGPU):
    """The same, and what it compiles runs as CUDA graphs. PyTorch overwrites results in the next call: they are cloned,
    as its documentation asks."""

    def compile(self, fn: Any) -> Any:
        """As `torch.compile`, with CUDA graphs."""
        compiled = self._library.compile(fn, mode="reduce-overhead")
        begin = getattr(getattr(self._library, "compiler", None), "cudagraph_mark_step_begin", None)
        if begin is None:
            return compiled

        def call(*args: Any) -> Any:
            begin()
            return cloned(compiled(*args))

        return call


def cloned(tree: Any) -> Any:
    """Tensors, or lists and tuples of them, in memory of their own."""
    return type(tree)(map(cloned, tree)) if isinstance(tree, (list, tuple)) else tree.clone()


def to_host(tensors: Any) -> list[Any]:
    """Results as arrays of NumPy."""
    return [t.detach().cpu().numpy() for t in tensors]


# The works ------------------------------------------------------------------------------------------------------------


def swish(library: Any, size: int) -> Program:
    """Swish as a custom Function."""
    return arrays.swish(OnGPU(library), size)  # type: ignore[arg-type]


def compiled_swish(library: Any, size: int) -> Program:
    """Swish through the library's `compile`."""
    return arrays._swish_compiled(OnGPU(library), size)  # type: ignore[arg-type]


def silu(library: Any, size: int) -> Program:
    """Swish through PyTorch's kernel."""
    return arrays._swish_fused(OnGPU(library), size)  # type: ignore[arg-type]


def copied(library: Any, size: int) -> Program:
    """Copies that move as much as Swish does, which has to read and write five arrays: what the memory can do."""
    x, y = library.ones(size, device="cuda"), library.empty(size, device="cuda")
    z = library.empty(size // 2, device="cuda")

    def work(_: None) -> Any:
        y.copy_(x)
        y.copy_(x)
        z.copy_(x[: size // 2])
        return ()

    return Program(work, list)


def mlp(library: Any, size: int) -> Program:
    """A training step of the MLP with modules and Adam."""
    model = _model(library)
    optimizer = library.optim.Adam(model.parameters(), lr=models.RATE)
    images, labels = (library.tensor(a, device="cuda") for a in models._batch(size))

    def work(_: None) -> Any:
        optimizer.zero_grad()
        loss = library.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return [loss, *model.parameters()]

    return Program(work, to_host)


def _model(library: Any) -> Any:
    nn = library.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    with library.no_grad():
        for layer, weight, bias in zip(list(model)[::2], models._WEIGHTS, models._BIASES, strict=True):
            layer.weight.copy_(library.tensor(weight))
            layer.bias.copy_(library.tensor(bias))
    return model.to("cuda")


def compiled_mlp(library: Any, size: int) -> Program:
    """The step as a function of its state, through the library's `compile`."""
    return models._mlp_compiled(OnGPU(library), size)  # type: ignore[arg-type]


def graphed_mlp(library: Any, size: int) -> Program:
    """The same, with CUDA graphs."""
    return models._mlp_compiled(WithGraphs(library), size)  # type: ignore[arg-type]


def rows(torch: Any, sizes: tuple[int, ...], batch: int) -> list[Row]:
    """The rows; those of PyTorch are left out where it has no CUDA."""

    def side(name: str, library: Any, make: Any, size: int) -> list[Side]:
        return [] if library is None else [Side(name, library, lambda: make(library, size))]

    found = []
    for size in sizes:
        eager = [*side("PyTorch's Function", torch, swish, size), *side("pullback's Function", pullback, swish, size)]
        fast = [*side("PyTorch's silu", torch, silu, size), *side("pullback compiled", pullback, compiled_swish, size)]
        found.append(Row(f"Swish of {size:.0e}, eager", eager, MOVED * size))
        found.append(Row(f"Swish of {size:.0e}, compiled", fast, MOVED * size))
    eager = [*side("PyTorch", torch, mlp, batch), *side("pullback", pullback, mlp, batch)]
    compiled = [
        *side("torch.compile", torch, compiled_mlp, batch),
        *side("pullback compiled", pullback, compiled_mlp, batch),
    ]
    found.append(Row(f"a step of the MLP, batch {batch}, eager", eager))
    found.append(Row(f"a step of the MLP, batch {batch}, compiled", compiled))
    graphs = [
        *side("torch.compile", torch, compiled_mlp, batch),
        *side("torch.compile, CUDA graphs", torch, graphed_mlp, batch),
        *side("pullback compiled, CUDA graphs", pullback, graphed_mlp, batch),
    ]
    found.append(Row(f"a step of the MLP, batch {batch}, compiled, CUDA graphs", graphs))
    return found


# Measuring ------------------------------------------------------------------------------------------------------------


def milliseconds(side: Side, program: Program) -> float:
    """The time of a work on the GPU."""
    cuda = side.library.cuda
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    cuda.synchronize()
    start.record()
    program.once()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))


def compared(row: Row) -> tuple[dict[str, Program], list[str]]:
    """The programs whose results agree with those of the first side on the host's copies; and what is wrong."""
    programs, problems, reference = {}, [], None
    for side in row.sides:
        try:
            program = side.make()
            found = to_host(program.once())
        except Exception as error:
            problems.append(f"{side.name} fails: {type(error).__name__}: {error}".split("\n")[0])
            continue
        reference = found if reference is None else reference
        for number, (mine, theirs) in enumerate(zip(found, reference, strict=True)):
            size = float(np.abs(theirs).max(initial=0))
            if mine.shape != theirs.shape or not np.allclose(mine, theirs, rtol=1e-4, atol=1e-5 * max(size, 1e-2)):
                problems.append(f"{side.name}: array {number} differs from {row.sides[0].name}'s")
                break
        else:
            programs[side.name] = program
    return programs, problems


def measured(row: Row, rounds: int, copy: float) -> dict[str, Any]:
    """A row's figures. copy: the milliseconds in which the memory moves a byte."""
    programs, problems = compared(row)
    sides = [s for s in row.sides if s.name in programs]
    times: dict[str, list[float]] = {s.name: [] for s in sides}
    for side in sides:  # what is compiled or allocated once
        for _ in range(3):
            milliseconds(side, programs[side.name])
    for turn in range(rounds if sides else 0):
        for side in sides[turn % len(sides) :] + sides[: turn % len(sides)]:
            times[side.name].append(milliseconds(side, programs[side.name]))
    medians = {name: statistics.median(runs) for name, runs in times.items()}
    told: dict[str, Any] = {"row": row.title, "milliseconds": medians, "problems": problems}
    first, last = row.sides[0].name, row.sides[-1].name
    if first != last and first in medians and last in medians and medians[first]:
        told["ratio"] = medians[last] / medians[first]
    if row.moved and last in medians and medians[last]:
        told["share of the bandwidth of a copy"] = row.moved * copy / medians[last]
    return told


def bandwidth(size: int, rounds: int) -> float:
    """The milliseconds in which a copy moves a byte: the least of the rounds."""
    side = Side("copy", pullback, lambda: copied(pullback, size))
    program = side.make()
    return min(milliseconds(side, program) for _ in range(rounds + 3)) / (MOVED * size)


def machine(torch: Any, why: str) -> dict[str, str]:
    """What the figures were measured on."""
    cupy = importlib.import_module("cupy")
    return {
        "GPU": pullback.cuda.get_device_name(),
        "pullback": pullback.__version__,
        "CuPy": str(cupy.__version__),
        "PyTorch": why if torch is None else f"{torch.__version__}, CUDA {torch.version.cuda}",
    }


def other_library() -> tuple[Any, str]:
    """PyTorch, if it is here and computes on the GPU; otherwise None, and why."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None, "not installed: no ratios (pip install torch==2.13.0)"
    return (torch, "") if torch.cuda.is_available() else (None, f"{torch.__version__}, without CUDA: no ratios")


def main(argv: list[str]) -> int:
    """Run the rows on the GPU; 2 where there is none, 1 if a side fails or differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__, allow_abbrev=False)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="numbers in Swish's arrays")
    parser.add_argument("--batch", type=int, default=BATCH, help=f"rows of the MLP's batch ({BATCH})")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each side (15)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file as well")
    options = parser.parse_args(argv)
    if not pullback.cuda.is_available():
        try:
            pullback.cuda.init()
        except RuntimeError as error:
            print(f"benchmarks.gpu: this needs a GPU, so nothing was measured.\n{error}", file=sys.stderr)
        return 2
    torch, why = other_library()
    about = machine(torch, why)
    print("; ".join(f"{name}: {value}" for name, value in about.items()))
    copy = bandwidth(max(options.sizes), options.rounds)
    print(f"a copy moves {1e-6 / copy:.0f} GB/s" if copy else "a copy takes no time")
    told = []
    for row in rows(torch, tuple(options.sizes), options.batch):
        told.append(found := measured(row, options.rounds, copy))
        times = ", ".join(f"{name} {value:.3f} ms" for name, value in found["milliseconds"].items())
        rest = "".join(f"; {name} {found[name]:.2f}" for name in found if name[:2] in ("ra", "sh"))
        print(f"{found['row']}: {times or 'nothing measured'}{rest}")
        for problem in found["problems"]:
            print(f"  {problem}")
    if options.json:
        options.json.write_text(json.dumps({"about": about, "rows": told}, indent=1) + "\n", "utf-8")
    return int(any(found["problems"] for found in told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
