"""`python -m tests.checks_page FILE` writes the rows that .ci/full collected, and the counts, into docs/checks.md."""

from __future__ import annotations

import datetime
import re
import sys
from pathlib import Path

from tests.random_programs.comparing import KINDS
from tests.random_programs.counting import Counts
from tests.random_programs.meant import REASONS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "checks.md"
COUNTS = ROOT / "tests" / "random_programs" / "counts.json"


def written(page: str, name: str, text: str) -> str:
    """The page with a text between the two marks of this name."""
    mark = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    if not mark.search(page):
        raise ValueError(f"docs/checks.md: expected the marks of {name}, found none")
    return mark.sub(lambda m: m[1] + text + m[2], page)


def of_counts(counts: Counts) -> str:
    """The sentence that says how many random programs have been run."""
    eager, numpy, c = (f"{counts.programs(kind):,}" for kind in KINDS)
    return f"So far {eager} programs were compared with PyTorch, {numpy} in the NumPy form and {c} in C."


def of_meant(counts: Counts) -> str:
    """The differences that only the smallest program shows to be meant: how many programs, and the reasons."""
    head = f"Of the programs compared with PyTorch, {counts.outcome('eager', 'meant'):,} differ for one of these:\n"
    return "\n".join([head, *(f"- {reason}" for reason in REASONS)])


def main(arguments: list[str] | None = None) -> int:
    """Run the command; without a file, only the counts are written."""
    page = PAGE.read_text("utf-8")
    for path in sys.argv[1:] if arguments is None else arguments:
        rows = Path(path).read_text("utf-8").strip()
        head = f"The run of {datetime.date.today()}:\n\n| what | | last line | time |\n| --- | --- | --- | --- |\n"
        page = written(page, "results", head + rows)
    counts = Counts(COUNTS)
    page = written(page, "meant", of_meant(counts))
    PAGE.write_text(written(page, "counts", of_counts(counts)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
