"""The examples that are meant for several ranks, on two and on four."""

import re
from pathlib import Path

import pytest

import pullback

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


@pytest.mark.parametrize("page", ["docs/distributed.md", "docs/zh/distributed.md"])
def test_the_loop_of_the_page_shows_the_same_losses_on_any_number_of_ranks(page: str, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    (tmp_path / "train.py").write_text(code.replace('"model.pt"', repr(str(tmp_path / "model.pt"))), "utf-8")
    outs = [said(str(tmp_path / "train"), ranks, alone=ranks == 1).splitlines() for ranks in (1, 2, 4)]
    losses = [[float(line.rpartition(" ")[2]) for line in out] for out in outs]
    assert len(losses[0]) == 5
    assert losses[0][-1] < losses[0][0] / 1000
    for found in losses[1:]:
        assert found == pytest.approx(losses[0], rel=1e-3, abs=2e-6)
    assert set(pullback.load(tmp_path / "model.pt")) == {"weight", "bias"}
