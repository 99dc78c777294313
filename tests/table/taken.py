"""Calls that torch refuses and we take: the hostile calls of each operation, counted by cause.

docs/differences.md says what each cause is. `taken_counts.json` holds the counts, which may fall and not rise:
`python -m tests.table.taken --record` lowers them to what is found, and counts an operation that is new.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pullback
from tests.hostile import Case, limited, outcome

RECORDED = Path(__file__).with_name("taken_counts.json")

LARGE = ("2**31", "2**62", "2**63", "10**30")
NUMBERS = ("True", "-1", "-5", "2.5", "nan", "inf", "1j", *LARGE)


def cause(case: Case, theirs: BaseException) -> str:
    """Why torch refuses a call that we take."""
    argument, _, value = case.change.partition(" is ")
    if argument == "out=":
        return "out="
    if value.startswith("array of") or value == "numpy scalar":
        return "arrays"
    if isinstance(theirs, OverflowError) or "overflow" in str(theirs).lower():
        return "large numbers"
    if isinstance(theirs, (TypeError, AttributeError)):
        return "numbers" if value in NUMBERS else "forms"
    return "values"


def taken(torch: ModuleType, ours: Any, theirs: Any, cases: list[Case]) -> Counter[str]:
    """How many of the hostile calls of an operation torch refuses and we take, by cause."""
    found: Counter[str] = Counter()
    with limited():
        for case in cases:
            if isinstance(outcome(pullback, ours, case), BaseException):
                continue
            refused = outcome(torch, theirs, case)
            if isinstance(refused, BaseException):
                found[cause(case, refused)] += 1
    return found


def recorded() -> dict[str, dict[str, int]]:
    """The recorded counts: by operation, then by cause."""
    return dict(json.loads(RECORDED.read_text())) if RECORDED.exists() else {}


def lowered(old: dict[str, int] | None, new: Counter[str]) -> dict[str, int]:
    """The recorded counts of an operation, with those that have become lower; those that are found, if it is new."""
    return {why: n if old is None else min(n, old.get(why, 0)) for why, n in new.items() if old is None or why in old}


def record() -> None:
    """Lower the recorded counts to what is found."""
    import torch

    from tests.table.test_hostile import PUBLIC, of_both

    old = recorded()
    new = {name: lowered(old.get(name), taken(torch, *of_both(torch, name))) for name in PUBLIC}
    RECORDED.write_text(json.dumps(new, indent=1, sort_keys=True) + "\n")
    print(
        Counter(
            {why: sum(of_name.get(why, 0) for of_name in new.values()) for of_name in new.values() for why in of_name}
        )
    )


if __name__ == "__main__" and "--record" in sys.argv:
    record()
