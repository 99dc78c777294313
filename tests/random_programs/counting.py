"""The file of counts: how many programs of each kind have been run so far, and where a seed goes on.

It is JSON: for each kind how many programs were the same, refused and different, for each seed the number of the next
program, and as ``open`` the seed, the number and the outcome of each that has not been settled since. It is written
anew, at once, after each batch of programs.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OPEN = ("differs", "broken", "died")  # outcomes that somebody has to look at


class Counts:
    """The counts in a file, which need not be there; with no file, they are kept in memory alone."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file is not None and file.exists() else {}
        self._kinds: dict[str, dict[str, Any]] = found

    def _of(self, kind: str) -> dict[str, Any]:
        return self._kinds.setdefault(kind, {"programs": 0, "outcomes": {}, "next": {}, "open": []})

    def programs(self, kind: str) -> int:
        """How many programs of a kind have been run."""
        return int(self._of(kind)["programs"])

    def outcome(self, kind: str, outcome: str) -> int:
        """How many programs of a kind had this outcome."""
        return int(self._of(kind)["outcomes"].get(outcome, 0))

    def next(self, kind: str, seed: int) -> int:
        """The number of the next program of a kind under a seed."""
        return int(self._of(kind)["next"].get(str(seed), 0))

    def open(self, kind: str) -> list[tuple[int, int]]:
        """The seed and the number of each program of a kind that has not been settled."""
        found = (entry.split() for entry in self._of(kind).get("open", []))
        return [(int(seed), int(number)) for seed, number, _ in found]

    def add(
        self, kind: str, seed: int, upto: int, outcomes: Counter[str], unsettled: Sequence[tuple[int, str]] = ()
    ) -> None:
        """Count the programs of a batch, and say where the seed goes on and which numbers are open, with outcomes."""
        entry = self._of(kind)
        entry["programs"] += sum(outcomes.values())
        entry["outcomes"] = dict(sorted((Counter(entry["outcomes"]) + outcomes).items()))
        entry["next"][str(seed)] = max(upto, self.next(kind, seed))
        entry["open"] = [*entry.get("open", []), *(f"{seed} {number} {outcome}" for number, outcome in unsettled)]
        self._write()

    def settle(self, kind: str, seed: int, number: int, outcome: str) -> None:
        """Count a program that is open by what it comes to now; it stays open where that has to be looked at, too."""
        entry = self._of(kind)
        (known,) = (found for found in entry["open"] if found.startswith(f"{seed} {number} "))
        outcomes = Counter(entry["outcomes"])
        outcomes[known.split()[-1]] -= 1
        outcomes[outcome] += 1
        entry["outcomes"] = dict(sorted((+outcomes).items()))
        entry["open"].remove(known)
        if outcome in OPEN:
            entry["open"].append(f"{seed} {number} {outcome}")
        self._write()

    def _write(self) -> None:
        if self.file is not None:
            fresh = self.file.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(self._kinds, indent=1) + "\n", "utf-8")
            fresh.replace(self.file)
