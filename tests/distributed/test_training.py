"""Data in parallel, and a grid in parts, against one process."""

from pathlib import Path

import pytest

from .launching import needs_mpi, passes

pytestmark = needs_mpi


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "what",
    ["one_gradient", "progress", "steps", "unused", "odd_parameters", "sampler", "clipping", "zero_redundancy", "heat"],
)
def test_it_equals_one_process(what: str, ranks: int, tmp_path: Path) -> None:
    passes(ranks, "training", what, str(tmp_path))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("what", ["heat", "grids", "fourier", "products", "solvers"])
def test_what_is_split_equals_the_whole(what: str, ranks: int) -> None:
    passes(ranks, "split", what)
