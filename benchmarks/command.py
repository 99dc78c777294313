"""The command line: the choice of rows, the number of runs, and the place for the results."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

from benchmarks import arrays, derivatives, environment, layers, models, processes, report
from benchmarks.harness import measure
from benchmarks.rows import ROWS as NODES

ROWS = [*NODES, *arrays.ROWS, *models.ROWS, *layers.ROWS, *derivatives.ROWS, *processes.ROWS]

# The sides, the reference first: the package of each, and further modules to import.
SIDES: dict[str, list[str]] = {
    "torch": ["torch"],
    "pullback": ["pullback"],
    "compiled": ["pullback"],
    "fused": ["torch"],
    "inductor": ["torch"],
    "autograd": ["autograd", "autograd.extend"],
    "mygrad": ["mygrad"],
    "jax": ["jax"],
    "jit": ["jax"],
    "scipy": ["scipy", "scipy.sparse"],
    "memory": ["numpy"],
    "numpy": ["numpy"],
}


def main(argv: list[str]) -> int:
    """Run the benchmarks; 1 if a row could not be timed, because its sides disagree or fail, else 0."""
    options = _parse(argv)
    modules = _import(options.sides)
    if "pullback" not in modules:
        print("benchmarks: pullback is not installed: pip install -e .", file=sys.stderr)
        return 1
    rows = [row for row in ROWS if row.name in options.rows]
    results = []
    for row in rows:
        print(f"... {row.name}", file=sys.stderr, flush=True)
        results.append(measure(row, modules, repeat=options.repeat, collector=options.gc == "on"))
    about = report.machine(modules) | {"runs": options.repeat, "garbage collector": options.gc}
    if options.markdown:
        print(report.markdown(results, about))
    else:
        report.show(results, about)
    if options.json:
        options.json.write_text(json.dumps(report.as_json(results, about), indent=1) + "\n", "utf-8")
    return int(any(result.void is not None for result in results))


def _parse(argv: list[str]) -> argparse.Namespace:
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, allow_abbrev=False)
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="ROW", help=", ".join(names))
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES), metavar="SIDE", help=", ".join(SIDES))
    parser.add_argument("--repeat", type=int, default=15, help="runs of each side of each row (15)")
    parser.add_argument(
        "--gc", choices=("on", "off"), default="on", help="Python's garbage collector during a run (on)"
    )
    parser.add_argument("--threads", type=int, default=1, help="how many threads each side may use (1)")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run to a file as well")
    options = parser.parse_args(argv)
    if options.repeat < 2:
        parser.error(f"--repeat {options.repeat}: quartiles need at least 2 runs")
    if options.threads < 1:
        parser.error(f"--threads {options.threads}: each side needs at least 1 thread")
    return options


def _import(sides: list[str]) -> dict[str, ModuleType]:
    """The modules of the sides that are installed, in the table's order."""
    modules = {}
    for side, (package, *submodules) in SIDES.items():
        try:
            if side in sides:
                modules[side] = importlib.import_module(package)
                for name in submodules:
                    importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
            print(f"benchmarks: {package} is not installed, {side} left out", file=sys.stderr)
    for name in ("torch", "pullback"):
        if name in modules:
            modules[name].set_num_threads(environment.THREADS)
    return modules
