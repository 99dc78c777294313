"""Memory formats, side by side with torch: in which order the axes of a result lie in memory."""

from __future__ import annotations

import copy
import pickle

import pullback


def test_a_format_is_one_of_a_kind() -> None:
    assert repr(pullback.channels_last) == "pullback.channels_last"
    assert pickle.loads(pickle.dumps(pullback.channels_last_3d)) is pullback.channels_last_3d
    assert copy.deepcopy(pullback.channels_last) is pullback.channels_last


def test_each_element_of_a_batch_is_laid_out() -> None:
    x = pullback.arange(24.0).reshape(2, 1, 3, 2, 2)
    y = pullback.func.vmap(lambda t: t.clone(memory_format=pullback.channels_last) * 1)(x)
    assert pullback.equal(x, y)
