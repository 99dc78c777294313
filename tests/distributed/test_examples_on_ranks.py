"""The examples that are meant for several ranks, on two and on four."""

import re
from pathlib import Path

import pytest

from .launching import ROOT, launch, needs_mpi

pytestmark = needs_mpi


def said(example: str, ranks: int, *args: str, alone: bool = False) -> str:
    """What an example says; it has to end with status 0."""
    ended = launch(ranks, str(ROOT / "examples" / example), *args, alone=alone)
    assert ended.status == 0, ended.out
    return ended.out


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_all_reduce_by_hand_says_which_backward_is_right(ranks: int) -> None:
    out = said("all_reduce", ranks)
    assert "OneLoss, one loss: <v, J u> and <J^T v, u> differ by 0.0" in out
    assert f"gradient on {ranks} ranks: [{ranks * (ranks + 1)}.0, {ranks * (ranks + 1)}.0]" in out


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_digits_are_learned_as_on_one_process(ranks: int) -> None:
    pytest.importorskip("sklearn")
    alone, together = said("digits_on_ranks", 1, alone=True), said("digits_on_ranks", ranks)
    assert alone.startswith("1 ranks, 105 steps: loss 2.275251 to ")
    assert together.splitlines()[0] == alone.splitlines()[0].replace("1 ranks", f"{ranks} ranks", 1)
    (differ,) = re.findall(r"from the losses of one process: (\S+)\n", together)
    assert float(differ) < 1e-12


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_heaters_are_found_as_on_one_process_and_drawn(ranks: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    alone = said("heaters_on_ranks", 1, alone=True)
    together = said("heaters_on_ranks", ranks, str(tmp_path / "heaters.png"))
    assert together.splitlines()[1] == alone.splitlines()[1]
    (differ,) = re.findall(rf"^{ranks} ranks: the gradient differs from that of one process by (\S+) of it", together)
    assert float(differ) < 1e-12
    assert (tmp_path / "heaters.png").read_bytes().startswith(b"\x89PNG")
