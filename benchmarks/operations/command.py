"""The command line of the operations' benchmark: which of them, how often, and where the results go."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pullback
from benchmarks import report
from benchmarks.harness import Result, Row, Timing
from benchmarks.operations.page import lines, page
from benchmarks.operations.rows import public, rows, timed


def main(argv: list[str]) -> int:
    """Time the operations named, or all; 1 where the page cannot be made, or the sides of a row differ."""
    options = _parse(argv)
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    modules: dict[str, ModuleType] = {"torch": torch, "pullback": pullback}
    results = {} if options.json is None or not options.json.exists() else _read(options.json)
    about = report.machine(["torch", "scipy", "pullback"])
    for name in options.names:
        print(f"... {name}", file=sys.stderr, flush=True)
        results[name] = [timed(row, modules, options.repeat) for row in rows(name, modules)]
        if options.json:
            everything = [result for found in results.values() for result in found]
            options.json.write_text(json.dumps(report.as_json(everything, about), indent=1) + "\n", "utf-8")
    shown = [result for found in results.values() for result in found]
    try:
        print(page(shown, about | _runs(shown)) if options.markdown else "\n".join(lines(shown)))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return int(any(result.void is not None for result in shown))


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="operations, as the table names them (all)")
    parser.add_argument("--repeat", type=int, default=7, help="runs of each side of each row (7)")
    parser.add_argument("--markdown", action="store_true", help="print the page")
    help = "keep every run in a file; what it has of operations that are not timed now is shown with the others"
    parser.add_argument("--json", type=Path, metavar="FILE", help=help)
    parser.add_argument("--none", action="store_true", help="time nothing: show what the file has")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.names) - set(public()))
    if unknown or options.repeat < 2:
        parser.error(
            f"no such operation: {', '.join(unknown)}" if unknown else f"--repeat {options.repeat}: at least 2"
        )
    options.names = [] if options.none else options.names or public()
    return options


def _runs(results: list[Result]) -> dict[str, str]:
    """How many runs a side had, at least."""
    counts = [len(timing.runs) for result in results for timing in result.timings.values()]
    return {"runs": f"{min(counts)} or more"} if counts else {}


def _read(file: Path) -> dict[str, list[Result]]:
    """The results in a file, by operation."""
    found: dict[str, list[Result]] = {}
    for row in json.loads(file.read_text("utf-8"))["rows"]:
        times = {side: Timing(timing["runs_us"]) for side, timing in row["sides"].items()}
        result = Result(Row(row["name"], row["title"], 1, row["budget"], {}), times, row["void"])
        found.setdefault(row["name"], []).append(result)
    return found
