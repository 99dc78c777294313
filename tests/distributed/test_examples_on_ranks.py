"""The examples that are meant for several ranks, on two and on four."""

import pytest

from .launching import ROOT, launch, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_all_reduce_by_hand_says_which_backward_is_right(ranks: int) -> None:
    ended = launch(ranks, str(ROOT / "examples" / "all_reduce"))
    assert ended.status == 0, ended.out
    assert "OneLoss, one loss: <v, J u> and <J^T v, u> differ by 0.0" in ended.out
    assert f"gradient on {ranks} ranks: [{ranks * (ranks + 1)}.0, {ranks * (ranks + 1)}.0]" in ended.out
