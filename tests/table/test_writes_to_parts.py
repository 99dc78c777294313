"""Writes to a tensor that many parts were taken from: each looks at those that it may reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.table import writing


def rows(x: Any, n: int) -> Any:
    out = np.zeros_like(x, shape=(n, *x.shape))
    out[0] = x
    for i in range(1, n):
        out[i] = np.sin(out[i - 1])
    return out


def columns(x: Any, n: int) -> Any:
    out = np.zeros_like(x, shape=(*x.shape, n))
    out[:, 0] = x
    for i in range(1, n):
        out[:, i] = np.sin(out[:, i - 1])
    return out


def inner(x: Any, n: int) -> Any:
    out = np.zeros_like(x, shape=(n, *x.shape))
    out[0] = x
    for i in range(1, n):
        out[i, 1:-1] = out[i - 1, 1:-1] + 0.1 * np.sin(out[i - 1, 2:] * out[i - 1, :-2])
    return out


def in_place(x: Any, n: int) -> Any:
    out = np.zeros_like(x, shape=(n, *x.shape))
    out[0] = x
    for i in range(1, n):
        out[i] += np.cos(out[i - 1])
        out[i, 1:] *= 0.5
    return out


def by_positions(x: Any, n: int) -> Any:
    out = np.zeros_like(x, shape=(n, *x.shape))
    out[0] = x
    for i in range(1, n):
        out[i, [0, 2]] = np.sin(out[i - 1, 1:3])
        out[i, np.array([False, True, False, True])] = out[i - 1, 0] * out[i - 1, 2]
    return out


PROGRAMS = [rows, columns, inner, in_place, by_positions]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_write_looks_at_a_few_views_however_many_there_are(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []
    for name in ("_look_at_part", "_keeps_its_place"):
        before = getattr(writing, name)
        monkeypatch.setattr(writing, name, lambda *a, before=before: looks.append(a) or before(*a))  # type: ignore[func-returns-value]
    counts = []
    for n in (100, 200, 400):
        looks.clear()
        program(pullback.linspace(0.1, 0.9, 4, dtype=pullback.float64, requires_grad=True), n).sum().backward()
        counts.append(len(looks))
    assert counts[2] - counts[1] <= 3 * (counts[1] - counts[0]), counts  # linear, but for lists made anew: else 4


@pytest.mark.parametrize("few", [0, 1 << 30])
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_of_time_steps_are_right(program: Any, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_FEW", few)
    x = pullback.linspace(0.1, 0.9, 4, dtype=pullback.float64, requires_grad=True)
    assert pullback.autograd.gradcheck(lambda x: program(x, 30), x, check_forward_ad=True)


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_a_part_that_was_written_to_before_it_is_saved_may_be_used(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_FEW", few)

    def steps(x: Any) -> Any:
        y = x * 1.0
        a, b = y[:2], y[2:]
        a *= 2.0
        s = a.sin()  # saves the part as it is now
        b *= s
        y[3] = 0.5 * y[2]
        return s.sum() + y.sum()

    x = pullback.linspace(0.1, 0.9, 4, dtype=pullback.float64, requires_grad=True)
    assert pullback.autograd.gradcheck(steps, x)
    y = x * 1.0
    a = y[:2]
    s = a.sin()
    y[1:] = 0.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        s.sum().backward()


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_a_part_with_other_memory_is_looked_at(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `data=` the part of one place shows another one."""
    monkeypatch.setattr(writing, "_FEW", few)
    y = pullback.linspace(0.1, 0.9, 4, dtype=pullback.float64, requires_grad=True) * 1.0
    a = y[:2]
    y[3] = 1.0  # the place of `a` is known from here on
    a.data = y.detach()[2:]
    s = a.sin()
    y[2:] = 0.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        s.sum().backward()


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_a_part_of_rows_that_were_joined_is_looked_at(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies in two rows, so that it is within no range of each axis."""
    monkeypatch.setattr(writing, "_FEW", few)

    def steps(x: Any) -> Any:
        y = x * 1.0
        v = y.reshape(-1)[3:5]
        y[1, 1] = 2.0
        y[1, 0] = x[0, 0]
        return (v * v).sum() + y.sum()

    x = pullback.linspace(0.1, 0.9, 16, dtype=pullback.float64).reshape(4, 4).requires_grad_()
    assert pullback.autograd.gradcheck(steps, x)


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_a_part_of_what_was_detached_is_looked_at(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_FEW", few)
    x = pullback.ones(4, requires_grad=True)
    y = x * 1.0
    part = y.detach()[:2]
    s = (x[:2] * part).sum()
    y[:3] = x[1:]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        s.backward()


def test_a_number_of_writes_that_comes_twice_does_not_hide_one() -> None:
    x = pullback.ones(4, requires_grad=True)
    y = x * 1.0
    part = y[:2]
    with pullback.autograd._unsafe_preserve_version_counter(y):
        y[3] = 2.0
        s = (part * part).sum()
    y[:3] = x[1:]  # the same number as the write before
    y[3] = 3.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        s.backward()


@pytest.mark.parametrize("kept", [6, 7, 8, 14, 62, 63, 64, 1022])
def test_the_list_of_parts_is_made_anew_only_where_it_has_doubled(kept: int) -> None:
    """However many live: each time, all living parts are looked through, and their boxes are found once more."""
    y = pullback.ones(2000, requires_grad=True) * 1.0
    alive = [y[i : i + 1] for i in range(kept)]
    memory, lists = y._share_version(), []
    for i in range(1000):
        y[i % 1000 : i % 1000 + 1].sum()  # a part that nobody keeps
        if not lists or lists[-1] is not memory.views:
            lists.append(memory.views)
    assert len(lists) <= 2 + 1000 / (kept + 1)
    assert len(alive) == kept
