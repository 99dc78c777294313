"""Data in parallel, and a grid in parts, against one process."""

import pytest

from .launching import needs_mpi, passes

pytestmark = needs_mpi


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("what", ["one_gradient", "steps", "unused", "sampler", "clipping", "heat"])
def test_it_equals_one_process(what: str, ranks: int) -> None:
    passes(ranks, "training", what)
