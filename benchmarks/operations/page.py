"""What is shown of the operations' times: lines for the terminal, and docs/operations_speed.md.

The page refuses to be made while an operation that takes more than `LIMIT` times PyTorch's time has no reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Result
from benchmarks.operations.reasons import reason
from benchmarks.operations.rows import LIMIT

PAGE = Path("docs/operations_speed.md")


def ratio(result: Result) -> float:
    """How many times PyTorch's time we take."""
    return result.ratio("pullback") or 0.0


def worst(results: Sequence[Result]) -> list[Result]:
    """Of each operation, the row that is slowest in relation to PyTorch; the slowest operation first."""
    found: dict[str, Result] = {}
    for result in results:
        if result.void is None and (result.row.name not in found or ratio(result) > ratio(found[result.row.name])):
            found[result.row.name] = result
    return sorted(found.values(), key=ratio, reverse=True)


def lines(results: Sequence[Result]) -> list[str]:
    """A line for each row, the slowest in relation to PyTorch first."""
    ordered = sorted((r for r in results if r.void is None), key=ratio, reverse=True)
    return [f"{ratio(r):7.2f}  {_milliseconds(r, 'pullback')} ms  {r.row.name} {r.row.title}" for r in ordered] + [
        f"not timed: {r.row.name} {r.row.title}: {r.void}" for r in results if r.void is not None
    ]


def _milliseconds(result: Result, side: str) -> str:
    return f"{result.timings[side].median / 1000:.3g}"


_INTRODUCTION = f"""# The speed of every operation

Every operation of the table on about 1e6 elements (float32; linear algebra in float64, on matrices of similar work),
forward alone and forward + backward, against PyTorch's of the same name. One thread a side; values and gradients are
compared before anything is timed; the sides take turns; the figures are medians. An operation counts by the slowest of
its calls. None may take more than {LIMIT:g} times PyTorch's time without a line here that says why.

This page is generated, from several sittings (`--json` keeps what was timed) on a machine that does other work, too: a
ratio varies by a third from run to run, that of short or memory-bound operations by more. To repeat it,
in a clone with `pip install -e . torch scipy`:

```sh
python -m benchmarks.operations --markdown > {PAGE}
python -m benchmarks.operations sin cumsum        # some operations, in the terminal
```
"""


def page(results: Sequence[Result], about: dict[str, Any]) -> str:
    """docs/operations_speed.md; a `ValueError` names the operations above the limit that have no reason."""
    ordered = worst(results)
    slow = [r for r in ordered if ratio(r) > LIMIT]
    unexplained = [r.row.name for r in slow if not reason(r.row.name)]
    if unexplained:
        raise ValueError(
            f"above {LIMIT:g} times PyTorch's time, without a reason in benchmarks/operations/reasons.py: {unexplained}"
        )
    parts = [_INTRODUCTION, "; ".join(f"{key}: {value}" for key, value in about.items()), _distribution(ordered)]
    parts += [f"## Above {LIMIT:g}", _table(slow)] if slow else []
    void = [f"* `{r.row.name}` {r.row.title}: {r.void}" for r in results if r.void is not None]
    parts += ["## Not timed\n\nThe sides differ, for the reason given.", "\n".join(void)] if void else []
    return "\n\n".join(part.strip() for part in parts)


def _distribution(ordered: Sequence[Result]) -> str:
    bounds = {"faster than PyTorch": 1.0, "1 to 1.5 times its time": 1.5, "1.5 to 3": 3.0, "above 3": float("inf")}
    table, last = ["| pullback | operations |", "| --- | ---: |"], 0.0
    for words, bound in bounds.items():
        table.append(f"| {words} | {sum(last < ratio(r) <= bound for r in ordered)} |")
        last = bound
    return "\n".join([*table, f"| all | {len(ordered)} |"])


def _table(slow: Sequence[Result]) -> str:
    head = ["| operation | slowest call | x torch | ms | why |", "| --- | --- | ---: | ---: | --- |"]
    cells = [
        (f"`{r.row.name}`", r.row.title, f"{ratio(r):.1f}", _milliseconds(r, "pullback"), reason(r.row.name))
        for r in slow
    ]
    return "\n".join(head + [f"| {' | '.join(line)} |" for line in cells])
