"""`python -m tests.random_programs` runs random programs until its time is up, and prints each difference it finds.

`--seconds N` says how long, `--programs N` how many at most of each kind; `--seed S` chooses the programs; a seed goes
on where it stopped the last time. `--kinds` says which: ``eager`` programs are compared with PyTorch, ``numpy`` and
``c`` ones, compiled, with themselves as they are written. The counts are summed in a file, `--counts FILE`. `--show
KIND NUMBER` prints one program. `--again` runs those once more that differed before, and counts them by what they come
to now. The exit status is 0 only if nothing differs but what is meant to (`meant.py`), which is counted at the end;
`--refusals N` accepts up to N programs in which only one library raises an error, and no value differs.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.random_programs import comparing, meant, workers
from tests.random_programs.counting import Counts
from tests.random_programs.workers import Batch

HOME = Path(__file__).parent
SHARE = {"eager": 0.5, "numpy": 0.25, "c": 0.25}  # of the time


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--programs", type=int, help="of each kind, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(comparing.KINDS), help="eager, numpy, c; separated by commas")
    parser.add_argument("--counts", type=Path, default=HOME / "counts.json", metavar="FILE")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="how many at once")
    parser.add_argument("--refusals", type=int, default=0, metavar="N", help="how many may differ in what is refused")
    parser.add_argument("--again", action="store_true", help="only what is open")
    parser.add_argument("--show", nargs=2, metavar=("KIND", "NUMBER"), help="print one program, and what it shows")
    options = parser.parse_args(arguments)
    options.kinds = options.kinds.split(",")
    if unknown := set(options.kinds) - set(comparing.KINDS):
        parser.error(f"--kinds: expected some of {', '.join(comparing.KINDS)}, found {', '.join(unknown)}")
    if "eager" in options.kinds and importlib.util.find_spec("torch") is None:
        parser.error("--kinds: eager programs need PyTorch, which is not installed (pip install torch==2.13.0)")
    return options


def _show(options: argparse.Namespace) -> int:
    kind, number = options.show[0], int(options.show[1])
    print(comparing.made(kind, options.seed, number))
    outcome, found = comparing.one(kind, options.seed, number)
    print(f"\n{outcome}" + (f": the smallest program that shows it\n\n{found.text}" if found else ""))
    return 0 if found is None else 1


def _batches(options: argparse.Namespace, kind: str, counts: Counts) -> Iterator[Batch]:
    """The batches of a kind, until its share of the time is up, or all its programs have been handed out."""
    total = sum(SHARE[k] for k in options.kinds)
    until = time.monotonic() + options.seconds * SHARE[kind] / total
    first = counts.next(kind, options.seed)
    last = sys.maxsize if options.programs is None else first + options.programs
    for start in itertools.count(first, workers.BATCH[kind]):
        if start >= last or time.monotonic() > until:
            return
        yield Batch(kind, options.seed, range(start, min(start + workers.BATCH[kind], last)))


def _again(options: argparse.Namespace, counts: Counts) -> int:
    """Run what is open in the counts, and settle what no longer differs."""

    def done(batch: Batch) -> None:
        (outcome,) = batch.outcomes
        counts.settle(batch.kind, batch.seed, batch.numbers.start, outcome)
        print(f"{batch.kind} program {batch.numbers.start} of seed {batch.seed}: {outcome}", flush=True)

    for kind in options.kinds:
        once = (Batch(kind, seed, range(number, number + 1)) for seed, number in counts.open(kind))
        workers.run(once, options.jobs, done)
    left = {kind: len(counts.open(kind)) for kind in options.kinds}
    print("open: " + ", ".join(f"{n} {kind}" for kind, n in left.items()))
    return 1 if any(left.values()) else 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    options = _options(arguments)
    if options.show:
        return _show(options)
    counts, known, reasons = Counts(options.counts), set(), Counter[str]()
    before = {kind: counts.programs(kind) for kind in options.kinds}

    def done(batch: Batch) -> None:
        counts.add(batch.kind, batch.seed, batch.numbers.stop, batch.outcomes, batch.unsettled)
        for about, text in batch.found:
            if about in meant.REASONS:
                reasons[about] += 1
            elif about not in known:
                known.add(about)
                print(f"{text}\n", flush=True)

    with tempfile.TemporaryDirectory() as cache:
        os.environ["PULLBACK_CACHE"] = cache
        comparing.warm(options.kinds)
        if options.again:
            return _again(options, counts)
        for kind in options.kinds:
            workers.run(_batches(options, kind, counts), options.jobs, done)
    run = {kind: counts.programs(kind) - before[kind] for kind in options.kinds}
    print(meant.said(reasons))
    print(f"random programs of seed {options.seed}: " + ", ".join(f"{n} {kind}" for kind, n in run.items()), end="; ")
    print(f"{len(known)} differences; in all " + ", ".join(f"{counts.programs(k)} {k}" for k in options.kinds))
    refusals = sum(about.startswith("refused: ") for about in known)
    return 1 if len(known) > refusals or refusals > options.refusals else 0


if __name__ == "__main__":
    sys.exit(main())
