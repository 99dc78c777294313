"""The command line: the choice of rows, the number of runs, and the place for the results."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.apart import Apart
from benchmarks.harness import measure
from benchmarks.suite import ROWS, SIDES


def main(argv: list[str]) -> int:
    """Run the benchmarks; 1 if a row could not be timed, because its sides disagree or fail, else 0."""
    options = _parse(argv)
    sides = _installed(options.sides)
    if "pullback" not in sides:
        print("benchmarks: pullback is not installed: pip install -e .", file=sys.stderr)
        return 1
    rows = [row for row in ROWS if row.name in options.rows]
    results, load = [], report.load()
    for row in rows:
        print(f"... {row.name}", file=sys.stderr, flush=True)
        taking = {side: Apart(row.name, side) for side in row.sides if side in sides}
        results.append(measure(row, taking, repeat=options.repeat, collector=options.gc == "on"))
    about = report.machine(sides) | {"load": load} | {"runs": options.repeat, "garbage collector": options.gc}
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


def _installed(sides: list[str]) -> list[str]:
    """The sides whose packages are installed, in the table's order."""
    found = []
    for side, (package, *_) in SIDES.items():
        if side in sides and importlib.util.find_spec(package) is None:
            print(f"benchmarks: {package} is not installed, {side} left out", file=sys.stderr)
        elif side in sides:
            found.append(side)
    return found
