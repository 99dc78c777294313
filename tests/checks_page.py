"""`python -m tests.checks_page` writes docs/checks.md anew: what .ci/full noted of each step, and the counts."""

from __future__ import annotations

import re
from pathlib import Path

from tests.full import STEPS, Result, results
from tests.random_programs.comparing import KINDS
from tests.random_programs.counting import Counts
from tests.random_programs.meant import REASONS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "checks.md"
COUNTS = ROOT / "tests" / "random_programs" / "counts.json"


def written(whole: str, name: str, text: str) -> str:
    """A page with a text between the two marks of this name."""
    mark = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    if not mark.search(whole):
        raise ValueError(f"docs/checks.md: expected the marks of {name}, found none")
    return mark.sub(lambda m: m[1] + text + m[2], whole)


def of_counts(counts: Counts) -> str:
    """The sentences that say how many random programs have been run, and how many of them are not settled."""
    eager, numpy, c = (f"{counts.programs(kind):,}" for kind in KINDS)
    unsettled = sum(len(counts.open(kind)) for kind in KINDS)
    return (
        f"So far {eager} programs were compared with PyTorch, {numpy} in the NumPy form and {c} in C. Of those that "
        f"differed, also in the last hour below, {unsettled} are open: the others are mended or have their reason."
    )


def of_meant(counts: Counts) -> str:
    """The differences that only the smallest program shows to be meant: how many programs, and the reasons."""
    head = f"Of the programs compared with PyTorch, {counts.outcome('eager', 'meant'):,} differ for one of these:\n"
    return "\n".join([head, *(f"- {reason}" for reason in REASONS)])


def of_step(name: str, result: Result | None) -> str:
    """The row of a step: what its last run came to, and on which commit that was."""
    title = f"| `{name}` | {STEPS[name].what} |"
    if result is None:
        return f"{title} not run yet | | | |"
    outcome = "passed" if result.passed else "**failed**"
    commit = result.commit if result.clean else f"{result.commit}, with changes"
    return f"{title} {outcome} | {result.lines} | {result.minutes} min | {result.date}, {commit} |"


def of_results(found: dict[str, Result]) -> str:
    """The table of what each step came to when it was last run."""
    head = "| step | what | | last lines | time | run |\n| --- | --- | --- | --- | --- | --- |\n"
    return head + "\n".join(of_step(name, found.get(name)) for name in STEPS)


def page(text: str) -> str:
    """The page as it has to be, of the page as it is."""
    counts = Counts(COUNTS)
    parts = {"meant": of_meant(counts), "counts": of_counts(counts), "results": of_results(results())}
    for name, part in parts.items():
        text = written(text, name, part)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
