"""The file of counts: how many programs of each kind have been run so far, and where a seed goes on.

It is JSON: for each kind how many programs were the same, refused and different, and for each seed the number of the
next program. It is written anew, at once, after each batch of programs.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any


class Counts:
    """The counts in a file, which need not be there; with no file, they are kept in memory alone."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file is not None and file.exists() else {}
        self._kinds: dict[str, dict[str, Any]] = found

    def _of(self, kind: str) -> dict[str, Any]:
        return self._kinds.setdefault(kind, {"programs": 0, "outcomes": {}, "next": {}})

    def programs(self, kind: str) -> int:
        """How many programs of a kind have been run."""
        return int(self._of(kind)["programs"])

    def outcome(self, kind: str, outcome: str) -> int:
        """How many programs of a kind had this outcome."""
        return int(self._of(kind)["outcomes"].get(outcome, 0))

    def next(self, kind: str, seed: int) -> int:
        """The number of the next program of a kind under a seed."""
        return int(self._of(kind)["next"].get(str(seed), 0))

    def add(self, kind: str, seed: int, upto: int, outcomes: Counter[str]) -> None:
        """Count the programs of a batch, and say where the seed goes on."""
        entry = self._of(kind)
        entry["programs"] += sum(outcomes.values())
        entry["outcomes"] = dict(sorted((Counter(entry["outcomes"]) + outcomes).items()))
        entry["next"][str(seed)] = max(upto, self.next(kind, seed))
        if self.file is not None:
            fresh = self.file.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(self._kinds, indent=1) + "\n", "utf-8")
            fresh.replace(self.file)
