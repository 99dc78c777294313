"""`DistributedSampler`: each rank's part of the indices of a data set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .. import errors
from ..ops.make.generators import Generator
from ..ops.make.random import randperm
from ..utils.samplers import Sampler
from .process_group import get_rank, get_world_size

__all__ = ["DistributedSampler"]


def __dir__() -> list[str]:
    return sorted(__all__)


class DistributedSampler(Sampler[int]):
    """Every n-th index of a data set, from the rank's own on, in an order that is the same on all n ranks.

    shuffle: the order is random, and another one after each `set_epoch`. seed: of that order, equal on all ranks.
    drop_last: leave out the last indices so that all ranks have as many; else the first ones come again at the end.
    num_replicas, rank: by default those of the process group. ValueError: a rank that is not below `num_replicas`.

    >>> from pullback.distributed import DistributedSampler
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.num_replicas = get_world_size() if num_replicas is None else num_replicas
        self.rank = get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                errors.message(f"Invalid rank {self.rank}, rank should be in the interval [0, {self.num_replicas - 1}]")
            )
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0
        part = len(dataset) / self.num_replicas
        self.num_samples = math.floor(part) if drop_last else math.ceil(part)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = randperm(len(order), generator=generator).tolist()
        while order and len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Have the next iteration in the order of an epoch, on every rank."""
        self.epoch = epoch
