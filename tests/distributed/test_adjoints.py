"""The derivatives of the collectives on one to four ranks, by adjoint tests that are summed over the ranks."""

import pytest

from .launching import needs_mpi, passes

pytestmark = needs_mpi


@pytest.mark.parametrize("what", ["collectives", "operations"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_every_collective_is_the_transpose_of_its_adjoint(ranks: int, dtype: str, what: str) -> None:
    passes(ranks, "adjoints", dtype, what)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_collective_under_transforms_is_what_it_is_on_one_process(ranks: int, dtype: str) -> None:
    passes(ranks, "transforms", dtype)
