"""Several runs of the suite as one table: `python -m benchmarks.joined FILE...` reads what `--json` wrote.

A figure is the middle one of the runs' medians. Where the table of one run has quartiles, this one has the lowest and
the highest ratio to PyTorch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness import Result, Timing
from benchmarks.report import HEADINGS, lines, notes
from benchmarks.suite import ROWS


def joined(files: list[Any]) -> list[Result]:
    """The rows of the first file, each with the medians of the runs as its runs."""
    found = []
    for name in [row["name"] for row in files[0]["rows"]]:
        (row,) = (row for row in ROWS if row.name == name)
        runs = [one for file in files for one in file["rows"] if one["name"] == name]
        void = next((one["void"] for one in runs if one["void"]), None)
        sides = {} if void else runs[0]["sides"]
        median = f"median_{row.unit}"
        found.append(Result(row, {s: Timing([one["sides"][s][median] for one in runs]) for s in sides}, void))
    return found


def _spread(result: Result, side: str) -> str:
    """The lowest and the highest ratio of the runs."""
    if "torch" not in result.timings:
        return ""
    pairs = zip(result.timings[side].runs, result.timings["torch"].runs, strict=True)
    ratios = [own / torch for own, torch in pairs]
    return f"{min(ratios):.3f}..{max(ratios):.3f}"


def main(argv: list[str]) -> int:
    """Print the table in Markdown, and the meaning of its rows."""
    files = [json.loads(Path(name).read_text("utf-8")) for name in argv]
    if len(files) < 2:
        print("joined: give two or more files that `python -m benchmarks --json FILE` wrote", file=sys.stderr)
        return 1
    results, about = joined(files), dict(files[0]["about"])
    about["load"] = ", ".join(str(file["about"]["load"]) for file in files)
    about["runs"] = f"{len(files)} of {about['runs']}"
    print("; ".join(f"{key}: {value}" for key, value in about.items()) + "\n")
    headings = [("ratios of the runs" if heading == "quartiles" else heading) for heading in HEADINGS]
    print(f"| {' | '.join(headings)} |\n| --- | --- | ---: | ---: | ---: | ---: | --- |")
    for result in results:
        for line in lines([result]):
            print(f"| {' | '.join([*line[:3], _spread(result, line[1]), *line[4:]])} |")
    print()
    print(*[f"* {line}" for line in notes(results)], sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
