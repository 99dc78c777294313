"""`python -m tests.coverage_by_room FILE` prints how much of each room of the library the tests of a run went through.

FILE is the JSON that `pytest --cov=pullback --cov-branch --cov-report=json:FILE` writes. A line counts, and so does
each way out of a line that branches.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path, PurePath
from typing import Any

LEAST = 60  # per cent, of a file that is not listed by itself


def room_of(file: str) -> str:
    """The room of a file: its folder below the package, and of operations and layers the one below that."""
    parts = PurePath(file).parts
    inside = parts[len(parts) - parts[::-1].index("pullback") :]
    return "/".join(inside[:-1][:2]) or "pullback"


def counted(files: dict[str, Any]) -> dict[str, Counter[str]]:
    """For each room, and for all together, how much there is and how much of it was covered."""
    rooms: dict[str, Counter[str]] = {}
    for file, entry in files.items():
        of = entry["summary"]
        for room in (room_of(file), "all"):
            seen = rooms.setdefault(room, Counter())
            seen["there"] += of["num_statements"] + of["num_branches"]
            seen["covered"] += of["covered_lines"] + of["covered_branches"]
    return rooms


def percentage(seen: Counter[str]) -> int:
    """How much was covered, in whole per cents, rounded down."""
    return 100 * seen["covered"] // max(seen["there"], 1)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    (path,) = sys.argv[1:] if arguments is None else arguments
    files = json.loads(Path(path).read_text("utf-8"))["files"]
    rooms = counted(files)
    whole = rooms.pop("all")
    for room, seen in sorted(rooms.items()):
        print(f"{percentage(seen):4d} %  {room}")
    for file, entry in sorted(files.items()):
        seen = counted({file: entry})["all"]
        if seen["there"] and percentage(seen) < LEAST:
            print(f"      {percentage(seen)} % of {file}")
    print(f"{percentage(whole)} % of all lines and branches")
    return 0


if __name__ == "__main__":
    sys.exit(main())
