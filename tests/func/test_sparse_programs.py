"""Patterns of functions made at random hold every nonzero: a few hundred here, `python -m tests.patterns` does more."""

from __future__ import annotations

from collections import Counter

import pytest

from tests import patterns


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_patterns_of_random_programs_hold_every_nonzero(start: int) -> None:
    found = [r for r in map(patterns.run, range(start, start + 100)) if r is not None]
    assert [text for *_, text in found if text] == []
    counts = Counter(first for _, first, _, _ in found)
    assert counts[patterns.EXACT] > 0.4 * len(found)
    assert counts[patterns.REFUSED] < 0.1 * len(found)


def test_a_pattern_that_misses_a_nonzero_is_found() -> None:
    import pullback
    from pullback.func import sparse

    def without_last(f: object, x: object) -> sparse.Sparsity:
        found = sparse.jacobian_sparsity(f, x)  # type: ignore[arg-type]
        found.matrix[-1, -1] = False
        return found

    points = [pullback.ones(3, dtype=pullback.float64)]
    assert patterns.judged(patterns.jacobian, without_last, lambda x: x * x, points) == patterns.WRONG
    assert patterns.judged(patterns.jacobian, sparse.jacobian_sparsity, lambda x: x * x, points) == patterns.EXACT
