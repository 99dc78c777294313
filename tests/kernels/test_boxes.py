"""Which parts may share an element: all that do, and few of the others."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback.kernels.boxes import Boxes, apart

LAYOUTS: dict[str, Callable[[], Any]] = {
    "one axis": lambda: np.zeros(7),
    "two axes": lambda: np.zeros((4, 5)),
    "transposed": lambda: np.zeros((5, 4)).T,
    "three axes": lambda: np.zeros((3, 1, 4, 2)).transpose(2, 0, 3, 1),
    "with gaps": lambda: np.zeros((6, 9))[1:5, ::2],
    "one element": lambda: np.zeros((1, 1)),
    "expanded": lambda: np.broadcast_to(np.zeros(4), (3, 4)),
    "windows": lambda: np.lib.stride_tricks.sliding_window_view(np.zeros(6), 3),
    "backwards": lambda: np.zeros((4, 5))[::-1],
}


def an_index(rng: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    for n in shape:
        first = rng.randrange(n)
        found.append(rng.choice([first, slice(first, None), slice(None, first + 1), slice(first, n, 2), slice(None)]))
        if rng.random() < 0.1:
            found.append(None)
    return (*found, ...)  # a view, also of one element


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_that_share_an_element_meet(layout: str) -> None:
    rng, whole = random.Random(layout), LAYOUTS[layout]()
    parts = [whole[an_index(rng, whole.shape)] for _ in range(60)]
    parts = [p[an_index(rng, p.shape)] if rng.random() < 0.3 else p for p in parts]
    boxes, spared = Boxes(whole), 0
    for i, part in enumerate(parts):
        if (own := boxes.of(part)) is not None:
            boxes.meet(own, i + 1)
            boxes.put(i, own)
    for _ in range(40):
        written = whole[an_index(rng, whole.shape)]
        box = boxes.of(written)
        if box is None:
            continue
        found = boxes.meet(box, len(parts))
        assert found == sorted(found)
        for i in set(range(len(parts))) - set(found):
            spared += 1
            assert not np.shares_memory(parts[i], written)
            assert apart(boxes.of(parts[i]), box)  # type: ignore[arg-type]
    known = layout not in ("one element", "expanded", "windows", "backwards")
    assert bool(spared) == known
    assert (boxes.of(whole) is None) == (not known)


def test_a_part_is_anywhere_until_its_box_is_known() -> None:
    whole = np.zeros((4, 5))
    boxes = Boxes(whole)
    row = boxes.of(whole[1])
    assert row == ([1, 0], [1, 4])
    assert boxes.meet(row, 3) == [0, 1, 2]
    boxes.put(1, boxes.of(whole[2]))  # type: ignore[arg-type]
    assert [boxes.is_known(i) for i in range(3)] == [False, True, False]
    assert boxes.meet(row, 9) == [0, 2, 3, 4, 5, 6, 7, 8]
    assert boxes.is_known(1)
    assert boxes.meet(boxes.of(whole[:, 2:4]), 2) == [0, 1]  # type: ignore[arg-type]


def test_what_numbers_do_not_tell_has_no_box() -> None:
    whole = np.zeros((4, 2))
    assert Boxes(whole).of(whole.view(np.float32)[:, 1:2]) is None
    assert Boxes(whole).of(whole[:0]) is None
    assert Boxes(np.zeros(())).of(np.zeros(())) is None
    assert Boxes(whole).of(whole[1:2].copy()) is None
    both = np.zeros((2, 4, 2))
    assert Boxes(both[0]).of(both[1]) is Boxes(both[1]).of(both[0]) is None


def test_parts_that_get_other_numbers_keep_their_boxes() -> None:
    whole = np.zeros((4, 5))
    boxes = Boxes(whole)
    for number in range(4):
        box = boxes.of(whole[number])
        assert box is not None
        assert number in boxes.meet(box, 6)  # it is anywhere
        boxes.put(number, box)
    boxes.renumber([3, 1, -1, 4, 9, 0])  # 4 and 9 are not known
    first = boxes.of(whole[0])
    assert first is not None
    assert boxes.meet(first, 6) == [2, 3, 4, 5]
    assert [boxes.is_known(number) for number in range(6)] == [True, True, False, False, False, True]
