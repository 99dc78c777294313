"""`pullback bench distributed`: it refuses to time what differs, counts what is sent, and the model is its formula."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.over_ranks import command, on_ranks, scaling
from benchmarks.over_ranks.watched import Watched, watching

from .launching import needs_mpi


def test_the_model_is_its_formula() -> None:
    link = scaling.fitted({b: 3.0 + b / 500 for b in (4, 4096, 10**6)})
    assert link.latency == pytest.approx(3, rel=1e-9)
    assert link.bandwidth == pytest.approx(500, rel=1e-9)
    assert link.sum(1000, 64) == pytest.approx(6 * 3 + 2 * 63 / 64 * 1000 / 500)
    assert link.message(1000) == pytest.approx(5)
    waiting, beside = scaling.of_network(link, 1000.0, 4, 4000, 64)
    assert waiting == pytest.approx(1000 + 4 * link.sum(1000, 64))
    assert beside == pytest.approx(1000 + link.sum(1000, 64))
    assert scaling.of_network(link, 1.0, 4, 4000, 64)[1] == pytest.approx(4 * link.sum(1000, 64))
    assert scaling.of_grid(link, link, 8, 8000, 12, 1024) == pytest.approx(8 * 5 + 12 * link.sum(24, 1024))


class _Comm:
    """A communicator that notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            self.asked.append(name)
            return SimpleNamespace(Test=lambda: len(self.asked) > 3)

        return call


def test_what_is_sent_is_counted_and_its_order_noted() -> None:
    comm, log = _Comm(), []
    group: Any = SimpleNamespace(comm=comm, control=_Comm(), world=SimpleNamespace(mpi=SimpleNamespace(PROC_NULL=-1)))
    with watching(group, log) as (data, control):
        request = group.comm.Iallreduce(object(), np.ones(3), "sum")
        group.comm.Isend(np.ones(2, np.uint8), 1, 0)
        group.comm.Isend(np.ones(9, np.uint8), -1, 0)  # to no one
        group.control.Iallreduce(np.ones(1), np.ones(1), "max")
        assert not request.Test()
        with pytest.raises(AssertionError, match="Ialltoallv is not counted"):
            group.comm.Ialltoallv()
        group.comm.Irecv(np.ones(2), 0, 0)
        data.look()
        assert request.Test()
    assert group.comm is comm
    assert (data.messages, data.bytes, control.messages, control.bytes) == (2, 26, 1, 8)
    assert [text for text, _ in log] == ["sum 0 starts", "sum 1 starts", "sum 0 finished", "sum 1 finished"]
    assert isinstance(data, Watched)


def test_what_differs_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ranks.dist, "get_rank", lambda: 0)
    on_ranks.same(np.ones(2), 1)
    with pytest.raises(AssertionError, match="rank 0"):
        on_ranks.same(np.array([1.0, 1.1]), 1)


@needs_mpi
def test_the_whole_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--turns", "2", "--runs", "1", "--json", str(tmp_path / "found.json")]) == 0
    printed = capsys.readouterr().out
    for title in ("Ten numbers on 2 ranks", "The order of a step", "What the model predicts: a model", "| 1024 |"):
        assert title in printed
    found = json.loads((tmp_path / "found.json").read_text())
    parameters = found["step"][0]["parameters"]
    assert parameters == on_ranks.LAYERS * on_ranks.WIDTH * (on_ranks.WIDTH + 1)
    for ranks in ("2", "3", "4"):
        assert found["counts"][ranks]["network"] == {"messages": 8, "bytes": 4 * parameters, "agreements": 0}
    edge = 8 * on_ranks.BLOCK
    sent = [found["counts"][ranks]["grid"] for ranks in ("1", "2", "3", "4")]
    assert [part["messages"] for part in sent] == [0, 2, 4, 4]
    assert [part["bytes"] for part in sent] == [0, 2 * edge, 4 * edge, 4 * edge]
    order = [text for text, _ in found["step"][0]["trace"]]
    assert sorted(order) == sorted(
        ["backward begins", "backward ended"]
        + [f"gradient of {2 * i}.weight" for i in range(8)]
        + [f"sum {i} {what}" for i in range(8) for what in ("starts", "finished")]
    )
    for i in range(7):  # a layer's sum begins when its gradient has come, and before that of the layer below
        place = order.index(f"sum {i} starts")
        assert order.index(f"gradient of {14 - 2 * i}.weight") < place < order.index(f"gradient of {12 - 2 * i}.weight")


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def none() -> Any:
        raise command.TargetError("there is no mpiexec")

    monkeypatch.setattr(command, "launcher", none)
    assert command.main([]) == 1
    assert "there is no mpiexec" in capsys.readouterr().err
