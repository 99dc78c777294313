"""The command: starts the parts on 1 to 4 ranks, each in processes of its own, and prints what they found."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pullback
from benchmarks import report
from benchmarks.over_ranks import scaling
from pullback.cli.run import launcher
from pullback.cli.script import TargetError

ROOT = Path(__file__).parents[2]
MOST = 40.0  # microseconds that an all_reduce of ten numbers may take more than two calls of mpi4py
MANY = (2, 64, 1024)
EDGES = 4  # of a block that has neighbours all around


class FailedError(Exception):
    """The ranks have failed: values differ, or there is no MPI."""


def main(argv: list[str]) -> int:
    """Measure, print, and say by the status whether everything could be measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.over_ranks", description=__doc__)
    parser.add_argument("--turns", type=int, default=40, help="turns of each side (40)")
    parser.add_argument("--runs", type=int, default=3, help="how often latency and step are measured anew (3)")
    parser.add_argument("--threads", type=int, default=1, help="how many threads each rank may use (1)")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write everything that was measured to a file as well"
    )
    options = parser.parse_args(argv)
    if options.turns < 2 or options.runs < 1:
        parser.error("at least 2 turns and 1 run")
    load = os.getloadavg()[0]
    try:
        found = measured(options.turns, options.runs)
    except (FailedError, TargetError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    found["about"] = report.machine(["pullback", "mpi4py"]) | {
        "load at the beginning": f"{load:.1f}",
        "turns": options.turns,
        "runs": options.runs,
    }
    print("\n".join(page(found)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


def measured(turns: int, runs: int) -> dict[str, Any]:
    """Everything: the parts by name, those on several ranks by number of ranks."""
    return {
        "latency": [on_ranks(2, "latency", turns) for _ in range(runs)],
        "step": [on_ranks(2, "step", turns) for _ in range(runs)],
        "links": {ranks: on_ranks(ranks, "links", turns) for ranks in (1, 2)},
        "counts": {ranks: on_ranks(ranks, "counts", turns) for ranks in (1, 2, 3, 4)},
    }


def on_ranks(ranks: int, part: str, turns: int) -> dict[str, Any]:
    """What a part finds on some ranks."""
    print(f"... {part} on {ranks}", file=sys.stderr, flush=True)
    command = [
        launcher()[0],
        "-n",
        str(ranks),
        sys.executable,
        "-m",
        "benchmarks.over_ranks.on_ranks",
        part,
        str(turns),
    ]
    path = os.pathsep.join(filter(None, [str(Path(pullback.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedError(f"{part} on {ranks} ranks:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown, its first column to the left."""
    shown = [headings, ["---"] + ["---:"] * (len(headings) - 1), *rows]
    return [f"| {' | '.join(row)} |" for row in shown] + [""]


def page(found: dict[str, Any]) -> list[str]:
    """The result, as Markdown."""
    two = found["links"][2]
    links = {kind: scaling.fitted({int(b): t for b, t in times.items()}) for kind, times in two.items()}
    about = "; ".join(f"{name}: {value}" for name, value in found["about"].items())
    parts = _latency(found), _step(found), _links(found, links), _counts(found), _predicted(found, links)
    return [about, "", *(line for part in parts for line in part)]


def _latency(found: dict[str, Any]) -> list[str]:
    rows = []
    for number, run in enumerate(found["latency"], 1):
        bare = statistics.median(run["bare"])
        for side, times in run.items():
            low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
            more = "" if side == "bare" else f"{middle - bare:+.1f}"
            met = "" if side != "all_reduce" else "yes" if middle - bare <= MOST else "NO"
            name = "two calls of mpi4py" if side == "bare" else side
            figures = f"{middle:.1f}", f"{low:.1f}..{high:.1f}", f"{min(times):.1f}"
            rows.append((f"{name}, run {number}", *figures, more, met))
    title = f"Ten numbers on 2 ranks, forward and backward; microseconds, at most {MOST:+.0f} for all_reduce"
    return [title, "", *table(("", "median", "quartiles", "least", "more", "met"), rows)]


def _step(found: dict[str, Any]) -> list[str]:
    rows = []
    runs = found["step"]
    sides = [side for side in runs[0] if side not in ("parameters", "trace")]
    for side in sides:
        medians = [statistics.median(run[side]) / 1e3 for run in runs]
        ratios = [m / statistics.median(run[sides[0]]) * 1e3 for m, run in zip(medians, runs, strict=True)]
        rows.append((side, ", ".join(f"{m:.1f}" for m in medians), f"{statistics.median(ratios):.2f}"))
    parameters = f"{runs[0]['parameters']:,} parameters"
    title = f"A step with {parameters} on 2 ranks; milliseconds, the median of each run, and over the first line's"
    order = [f"    {at:7.2f} ms  {text}" for text, at in runs[0]["trace"]]
    return [
        title,
        "",
        *table(("", "runs", "ratio"), rows),
        "The order of a step in the first run, on rank 0",
        "",
        *order,
        "",
    ]


def _links(found: dict[str, Any], links: dict[str, scaling.Link]) -> list[str]:
    rows = []
    for size in found["links"][2]["sum"]:
        times = [found["links"][ranks][kind][size] for kind in ("sum", "exchange") for ranks in (1, 2)]
        rows.append((f"{int(size):,} B", *(f"{t:.1f}" for t in times)))
    said = [f"{kind}: {link.latency:.1f} us, {link.bandwidth / 1e3:.2f} GB/s" for kind, link in links.items()]
    headings = ("message", "sum, 1 rank", "sum, 2 ranks", "exchange, 1 rank", "exchange, 2 ranks")
    title = "Sums and exchanges by mpi4py alone, microseconds"
    return [title, "", *table(headings, rows), f"Latency and bandwidth on 2 ranks: {'; '.join(said)}", ""]


def _counts(found: dict[str, Any]) -> list[str]:
    kinds = "network", "grid"
    names = [(kind, name) for kind in kinds for name in found["counts"][1][kind]]
    rows = [[str(n), *(f"{part[kind][name]:,}" for kind, name in names)] for n, part in found["counts"].items()]
    headings = ("ranks", *(f"{kind}: {name}" for kind, name in names))
    return ["What a rank gives to MPI in a step, forward and backward, at most", "", *table(headings, rows)]


def _predicted(found: dict[str, Any], links: dict[str, scaling.Link]) -> list[str]:
    alone, step = (
        statistics.median(statistics.median(run[side]) for run in found["step"])
        for side in ("without communication", "buckets filled, nothing sent")
    )
    network, grid = found["counts"][4]["network"], found["counts"][4]["grid"]
    messages = 2 * EDGES  # forward and backward
    size = messages * grid["bytes"] / grid["messages"]
    rows = []
    for n in MANY:
        times = scaling.of_network(links["sum"], step, network["messages"], network["bytes"], n)
        around = scaling.of_grid(links["exchange"], links["sum"], messages, size, grid["agreements"], n)
        steps = [f"{t / 1e3:.1f} ({alone / t:.0%})" for t in times]
        rows.append((str(n), f"{links['sum'].sum(40, n):.0f}", *steps, f"{around:.0f}"))
    headings = ("ranks", "sum of 10, us", "network, sums waited for, ms", "network, beside backward, ms", "grid, us")
    return ["What the model predicts: a model, on no such machine", "", *table(headings, rows)]
