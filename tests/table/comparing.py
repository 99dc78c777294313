"""What a test of the table compares: something in at least one sample, or its operation is listed with the reason.

A check of a sample returns what is wrong, "" if nothing is, and None if there was nothing to compare: no derivative, or
a call that is refused. `judge` fails for what is wrong, but for the deliberate differences of the entry, whose right
answers `test_differences.py` holds; and for a test that compared nothing and is not listed, or the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pullback.ops import TABLE
from pullback.table.samples import Sample
from tests.table.nothing_compared import REASONS

Found = Iterable[tuple[Sample, str | None]]


def deliberate(check: str, name: str, dtype: str, sample: Sample) -> bool:
    """Whether the entry says that this check differs from torch's for this sample."""
    return any(d.covers(check, dtype, sample) for d in TABLE[name].domain("differs"))


def reason_to_compare_nothing(test: str, name: str, dtype: str) -> str | None:
    """Why this test of this operation compares nothing, if that is listed."""
    for reason, tests, dtypes, names in REASONS:
        if test in tests.split() and dtype in dtypes.split() and name in names.split():
            return reason
    return None


def judge(test: str, check: str, name: str, dtype: str, found: Found) -> None:
    """Fail with all that was found, or because nothing was compared and that is not listed, or is listed in vain."""
    results = list(found)
    problems = [
        f"{name}{s} of {dtype}: {text}" for s, text in results if text and not deliberate(check, name, dtype, s)
    ]
    if problems:
        pytest.fail(f"{len(problems)} problems\n" + "\n".join(problems), pytrace=False)
    compared = any(text is not None for _, text in results)
    reason = reason_to_compare_nothing(test, name, dtype)
    if compared and reason is not None:
        pytest.fail(
            f"{test} of {name} in {dtype} compares something: take it out of nothing_compared.py", pytrace=False
        )
    if not compared and reason is None:
        pytest.fail(f"{test} of {name} in {dtype} compares nothing: give it a sample, or list it", pytrace=False)
