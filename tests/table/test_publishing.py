"""How an entry gets its names: each name is given once, and a function of another signature may stand in front."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pullback
from pullback.table import entry
from pullback.table.op import Op


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave the table as it was."""
    table, methods = dict(entry.TABLE), dict(entry.METHODS)
    names = {home: dict(found) for home, found in entry.NAMES.items()}
    yield
    for now, before in ((entry.TABLE, table), (entry.METHODS, methods)):
        now.clear()
        now.update(before)  # type: ignore[arg-type]
    for home, found in names.items():
        entry.NAMES[home].clear()
        entry.NAMES[home].update(found)


@pytest.mark.parametrize("name", ["sin", "div", "where", "pow"])
def test_a_second_entry_of_a_name_is_refused(name: str) -> None:
    first = entry.TABLE[name]
    with pytest.raises(TypeError, match="there is an operation of that name") as said:
        entry.elementwise(name, np.sin, "Sine.", numpy={}, input=lambda g, input: g)
    assert first.place in str(said.value)
    assert __file__ in str(said.value)
    assert entry.TABLE[name] is first
    assert entry.NAMES[""][name].op is first


@pytest.mark.parametrize("also", ["cos", "linalg.det"])
def test_a_further_name_that_is_taken_is_refused(also: str) -> None:
    with pytest.raises(TypeError, match="there is a function") as said:
        entry.elementwise("made_up", np.sin, "Sine.", also=also, numpy={}, input=lambda g, input: g)
    assert entry.TABLE[also].place in str(said.value)
    assert "made_up" not in entry.TABLE.keys() | entry.NAMES[""].keys() | entry.METHODS.keys()
    with pytest.raises(TypeError, match="there is a function"):
        entry.alias(also, pullback.sin)
    assert entry.NAMES[also.rpartition(".")[0]][also.rpartition(".")[2]].op is entry.TABLE[also]


def test_a_function_in_front_of_an_entry_has_its_names() -> None:
    made = entry.elementwise("made_up", np.sin, "Sine.", also="linalg.made_up", front=True, numpy={})
    op: Op = made.op  # type: ignore[attr-defined]
    assert "made_up" not in entry.NAMES[""]

    @entry.front(made)
    def twice(input: pullback.Tensor, *, times: int = 1) -> pullback.Tensor:
        """Sine, times a number."""
        return made(input) * times

    assert entry.NAMES[""]["made_up"] is entry.NAMES["linalg"]["made_up"] is entry.METHODS["made_up"] is twice
    assert op.call is twice
    assert twice.__name__ == "made_up"
    assert twice.__doc__ == "Sine, times a number."
    assert float(twice(pullback.tensor(0.5), times=2)) == pytest.approx(2 * np.sin(0.5), rel=1e-6)
    with pytest.raises(TypeError, match="published already"):
        entry.front(made)
    with pytest.raises(TypeError, match="published already"):
        entry.front(pullback.sin)


def test_every_entry_that_wants_a_function_in_front_has_one() -> None:
    fronted = {name: op for name, op in entry.TABLE.items() if op.about.front}
    assert fronted.keys() == {"div", "pow", "where"}
    for name, op in fronted.items():
        assert getattr(pullback, name) is op.call
        assert op.call.op is op
