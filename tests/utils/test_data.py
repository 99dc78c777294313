"""Data sets and loaders: what does not depend on the order drawn is as in torch, and the order is repeatable."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.utils.data import DataLoader, Dataset, TensorDataset, random_split
from tests.programs.data.loaders import Squares


def order(loader: Any) -> list[float]:
    return [n for (batch,) in loader for n in batch.tolist()]


def test_the_order_is_repeated_by_the_seed() -> None:
    loader = DataLoader(TensorDataset(pullback.arange(50)), batch_size=7, shuffle=True)
    pullback.manual_seed(3)
    first, second = order(loader), order(loader)
    pullback.manual_seed(3)
    assert order(loader) == first != second


def test_the_order_is_drawn_from_a_generator() -> None:
    data = TensorDataset(pullback.arange(50))
    pullback.manual_seed(0)
    before = pullback.default_generator.get_state().tolist()

    def drawn(seed: int) -> tuple[list[float], Any]:
        loader = DataLoader(data, 7, shuffle=True, generator=pullback.Generator().manual_seed(seed))
        return order(loader), random_split(data, [20, 30], pullback.Generator().manual_seed(seed))[0].indices

    assert drawn(1) == drawn(1) != drawn(2)
    assert pullback.default_generator.get_state().tolist() == before


def test_workers_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="num_workers=0: batches are made in this process"):
        DataLoader(Squares(), num_workers=2)


def test_a_data_set_without_items() -> None:
    with pytest.raises(NotImplementedError):
        Dataset[Any]()[0]
    with pytest.raises(IndexError):
        (TensorDataset(pullback.ones(2)) + TensorDataset(pullback.ones(2)))[4]


def test_what_cannot_be_collated_says_what_to_pass() -> None:
    with pytest.raises(TypeError, match="pass a collate_fn"):
        next(iter(DataLoader([object(), object()])))


def test_samplers_repeat_with_their_generator() -> None:
    data = pullback.utils.data

    def drawn() -> list[list[int]]:
        generator = pullback.Generator().manual_seed(5)
        return [
            list(data.RandomSampler(range(20), generator=generator)),
            list(data.RandomSampler(range(20), replacement=True, generator=generator)),
            list(data.SubsetRandomSampler(range(20), generator)),
            list(data.WeightedRandomSampler([1.0] * 20, 20, generator=generator)),
        ]

    first = drawn()
    assert drawn() == first
    assert len({tuple(order) for order in first}) == 4
